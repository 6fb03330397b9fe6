"""Implementations of an exercise: known wrong ones and right ones that look different.

Each lesson keeps them in ``misconceptions.py`` and ``alternatives.py``, written with the
functions below. The student's notebook, the solution, every misconception and every
alternative go through the same tests.

They find what the lesson's setup cell imports; what their own file imports beyond that goes with
each source that uses it.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from autograder.course.definitions import decorated_sources, line_in, registering
from autograder.course.edits import Unfit, code_of, edited, with_body
from autograder.course.given_names import given_by, needed_of, taken_from_elsewhere
from autograder.course.lessons import Lesson
from autograder.course.libraries import setup_of
from autograder.course.source_rules import LessonError
from lesson_kit.known_mistakes import is_two_at_once

Definition = TypeVar("Definition", bound=Callable[..., Any])

#: Where a misconception was met when nothing is said of it.
FOLKLORE = "folklore"


@dataclass(frozen=True)
class Implementation:
    """Source that binds an exercise's name, and what is known about it."""

    exercise: str
    name: str
    source: str
    sentence: str = ""
    seen: str = ""
    right: bool = False
    #: What was changed in a right answer to get this source: texts of that answer's code, each
    #: with what replaces it. Empty where the is written out.
    edit: tuple[tuple[str, str], ...] = ()
    #: It is right but for one edge of what the card says, and must not cost more than an edge.
    edge: bool = False

    @property
    def two_at_once(self) -> bool:
        """Whether it is made of two other misconceptions."""
        return is_two_at_once(self.sentence)


@dataclass(frozen=True)
class Choice:
    """One choice of a short answer, with the reason it is right or wrong."""

    exercise: str
    value: Any
    right: bool
    reason: str


@dataclass(frozen=True)
class _Changed:
    """A misconception as :func:`wrong` is given it: not yet made of its base."""

    known: Implementation
    change: Mapping[str, str] | str
    base: str


#: What a file registers while it is read, and the exercise and base of the ``with`` it is in.
_collected: list[Implementation | Choice | _Changed] = []
_group: list[tuple[str, str]] = []


@contextmanager
def exercise(name: str, *, base: str = "") -> Iterator[None]:
    """Say of which exercise the misconceptions inside are.

    Args:
        name: the exercise.
        base: another right answer, as source, that the misconceptions inside are changes of;
            the lesson's own solution otherwise.
    """
    _group.append((name, base))
    try:
        yield
    finally:
        _group.pop()


def wrong(
    name: str,
    change: Mapping[str, str] | str,
    sentence: str,
    *,
    seen: str = FOLKLORE,
    edge: bool = False,
) -> None:
    """Register a wrong implementation, inside ``with exercise(...)``.

    Args:
        name: what the misconception is called in reports.
        change: what is done to the right answer: texts of its code, each of which stands there
            exactly once, with what replaces it. Or, where too little is left of it: the body
            of the function, or the whole source.
        sentence: for the student: what the code does, what it should do, and why,
            without giving the line away.
        seen: where it was met: a paper, a public issue, a course.
        edge: it is right but for one edge of its card, and has to keep most of its points.

    Raises:
        LessonError: it stands outside of ``with exercise(...)``.
    """
    if not _group:
        raise LessonError(
            f"wrong({name!r}, ...) belongs to no exercise; put it inside `with exercise(...):`"
        )
    of, base = _group[-1]
    known = Implementation(of, name, "", sentence, seen, edge=edge)
    _collected.append(_Changed(known, change, base))


def misconception(
    exercise: str, name: str, *, sentence: str, seen: str = FOLKLORE, edge: bool = False
) -> Callable[[Definition], Definition]:
    """Register the function or class below as a wrong implementation; see :func:`wrong`."""

    def register(definition: Definition) -> Definition:
        _collected.append(Implementation(exercise, name, "", sentence, seen, edge=edge))
        return definition

    return register


def alternative(exercise: str, name: str) -> Callable[[Definition], Definition]:
    """Register a right implementation that looks different from the solution."""

    def register(definition: Definition) -> Definition:
        _collected.append(Implementation(exercise, name, "", right=True))
        return definition

    return register


def choice(exercise: str, value: Any, *, right: bool = False, reason: str) -> None:
    """Register a choice of a short answer and the reason it is right or wrong."""
    _collected.append(Choice(exercise, value, right, reason))


@lru_cache(maxsize=64)
def _read(
    path: Path, text: str, setup: str, solutions: tuple[tuple[str, str], ...]
) -> tuple[Implementation | Choice, ...]:
    """What a file registers, with every source in full."""
    _collected.clear()
    _group.clear()
    try:
        sources = decorated_sources(path, text)
        exec(compile(registering(text), str(path), "exec"), {"__name__": path.stem})
        registered = list(_collected)
    except LessonError as error:
        told = str(error)
        raise LessonError(told if told.startswith(str(path)) else f"{path}: {told}") from None
    except Exception as error:
        raise LessonError(
            f"{path}{line_in(path, error)}: {type(error).__name__}: {error}"
        ) from error
    finally:
        _collected.clear()
    read: list[Implementation | Choice] = []
    names: set[tuple[str, str]] = set()
    imports = _imports(text, setup)
    for entry in registered:
        if isinstance(entry, _Changed):
            made = _made(path, entry, dict(solutions))
        elif isinstance(entry, Implementation):
            made = replace(entry, source=_source_of(path, entry, sources))
        else:
            read.append(entry)
            continue
        if (made.exercise, made.name) in names:
            raise LessonError(f"{path}: {made.name!r} of {made.exercise} stands there twice")
        names.add((made.exercise, made.name))
        read.append(_with(imports, made))
    return tuple(read)


def _imports(text: str, setup: str) -> dict[str, str]:
    """What a file imports that the setup cell does not, by name."""
    there = given_by(setup)
    return {
        name: line
        for name, line in given_by(text, besides=(__name__,)).items()
        if line.startswith(("import ", "from ")) and there.get(name) != line
    }


def _with(imports: Mapping[str, str], made: Implementation) -> Implementation:
    """An implementation that brings the imports that it uses."""
    if not any(name in made.source for name in imports):
        return made
    try:
        lines = needed_of(imports, taken_from_elsewhere(made.source))
    except SyntaxError:  # a wrong answer may be no Python
        return made
    return replace(made, source="".join(f"{line}\n" for line in lines) + made.source)


def _source_of(path: Path, entry: Implementation, sources: dict[tuple[str, str], str]) -> str:
    try:
        return sources[entry.exercise, entry.name]
    except KeyError as error:
        raise LessonError(
            f"{path}: {error} is not defined at the top of the file, or of a `with exercise(...)`, "
            "with its exercise and name as plain strings"
        ) from None


def _made(path: Path, change: _Changed, solutions: dict[str, str]) -> Implementation:
    """A misconception with the source that its change makes of its base."""
    known = change.known
    if known.exercise not in solutions:
        there = ", ".join(solutions)
        raise LessonError(f"{path}: {known.name!r} is of {known.exercise!r}; there are {there}")
    base = code_of(change.base or solutions[known.exercise])
    edit: tuple[tuple[str, str], ...] = ()
    try:
        if not isinstance(change.change, str):
            edit = tuple(change.change.items())
            source = edited(base, change.change)
        elif _defines(change.change, known.exercise):
            source = code_of(change.change)
        else:
            source = with_body(base, change.change)
    except Unfit as error:
        raise LessonError(f"{path}: {known.exercise}, {known.name!r}: {error}") from None
    return replace(known, source=source, edit=edit)


def _defines(text: str, name: str) -> bool:
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return False  # of a body with a return, or of what is said to be no Python later
    return any(getattr(node, "name", "") == name for node in tree.body)


def _load(lesson: Lesson, name: str) -> tuple[Implementation | Choice, ...]:
    path = lesson.path / name
    if not path.exists():
        raise LessonError(f"{path} is missing: every lesson has one, see lessons/README.md")
    text = path.read_text(encoding="utf-8")
    setup = setup_of(lesson.notebook)
    return _read(path, text, setup, tuple(lesson.exercises.items()))


def choices(lesson: Lesson) -> list[Choice]:
    """The choices of the lesson's short answers."""
    registered = [x for x in _load(lesson, "misconceptions.py") if isinstance(x, Choice)]
    for name in lesson.exercises:
        if name.startswith("answer_") and not any(
            c.exercise == name and c.right for c in registered
        ):
            raise LessonError(
                f"{lesson.path / 'misconceptions.py'}: {name} has no right choice; add "
                f"choice({name!r}, ..., right=True, reason=...)"
            )
    return registered


def misconceptions(lesson: Lesson) -> list[Implementation]:
    """The lesson's wrong implementations; a wrong choice of a short answer is one too."""
    wrong: list[Implementation] = []
    for entry in _load(lesson, "misconceptions.py"):
        if isinstance(entry, Implementation):
            wrong.append(entry)
        elif not entry.right:
            wrong.append(
                Implementation(
                    entry.exercise,
                    f"{entry.exercise}_{entry.value}",
                    f"{entry.exercise} = {entry.value!r}\n",
                    entry.reason,
                    "choice",
                )
            )
    return wrong


def alternatives(lesson: Lesson) -> list[Implementation]:
    """The lesson's right implementations that look different from the solution."""
    registered = _load(lesson, "alternatives.py")
    return [entry for entry in registered if isinstance(entry, Implementation)]
