"""Implementations of an exercise: known wrong ones and right ones that look different.

Each lesson keeps them in ``misconceptions.py`` and ``alternatives.py``, written with the
decorators below. The student's notebook, the solution, every misconception and every
alternative go through the same tests.
"""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from autograder.course.lessons import Lesson, LessonError
from autograder.lesson.known_mistakes import TWO_AT_ONCE

__all__ = [
    "TWO_AT_ONCE",
    "Choice",
    "Implementation",
    "alternative",
    "alternatives",
    "choice",
    "choices",
    "misconception",
    "misconceptions",
]

Definition = TypeVar("Definition", bound=Callable[..., Any])


@dataclass(frozen=True)
class Implementation:
    """Source that binds an exercise's name, and what is known about it."""

    exercise: str
    name: str
    source: str
    sentence: str = ""
    seen: str = ""
    right: bool = False


@dataclass(frozen=True)
class Choice:
    """One choice of a short answer, with the reason it is right or wrong."""

    exercise: str
    value: Any
    right: bool
    reason: str


_collected: list[Implementation | Choice] = []


def misconception(
    exercise: str, name: str, *, sentence: str, seen: str
) -> Callable[[Definition], Definition]:
    """Register a wrong implementation.

    Args:
        exercise: the name it binds.
        name: what the misconception is called in reports.
        sentence: for the student: what the code does, what it should do, and why,
            without giving the line away.
        seen: where it was met: a paper, a public issue, a course, or "folklore".
    """

    def register(definition: Definition) -> Definition:
        _collected.append(Implementation(exercise, name, "", sentence, seen))
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


def _sources_of(path: Path) -> dict[tuple[str, str], str]:
    """The source of each decorated definition, without its decorators.

    Read from the file: of several classes with one name, ``inspect`` finds only one.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found: dict[tuple[str, str], str] = {}
    for node in ast.parse(text).body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call):
                continue
            names = [one.value for one in decorator.args if isinstance(one, ast.Constant)]
            if len(names) == 2:
                key = str(names[0]), str(names[1])
                if key in found:
                    raise LessonError(f"{path}:{node.lineno}: {key[1]!r} stands there twice")
                found[key] = "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n"
    return found


def _load(path: Path) -> list[Implementation | Choice]:
    if not path.exists():
        raise LessonError(f"{path} is missing: every lesson has one, see lessons/README.md")
    sources = _sources_of(path)
    _collected.clear()
    runpy.run_path(str(path))
    found = list(_collected)
    _collected.clear()
    try:
        return [
            replace(one, source=sources[one.exercise, one.name])
            if isinstance(one, Implementation)
            else one
            for one in found
        ]
    except KeyError as error:
        raise LessonError(
            f"{path}: {error} is not defined at the top of the file, with its exercise and name "
            "as plain strings"
        ) from None


def choices(lesson: Lesson) -> list[Choice]:
    """The choices of the lesson's short answers."""
    found = [x for x in _load(lesson.path / "misconceptions.py") if isinstance(x, Choice)]
    for name in lesson.exercises:
        if name.startswith("answer_") and not any(c.exercise == name and c.right for c in found):
            raise LessonError(
                f"{lesson.path / 'misconceptions.py'}: {name} has no right choice; add "
                f"choice({name!r}, ..., right=True, reason=...)"
            )
    return found


def misconceptions(lesson: Lesson) -> list[Implementation]:
    """The lesson's wrong implementations; a wrong choice of a short answer is one too."""
    found: list[Implementation] = []
    for entry in _load(lesson.path / "misconceptions.py"):
        if isinstance(entry, Implementation):
            found.append(entry)
        elif not entry.right:
            found.append(
                Implementation(
                    entry.exercise,
                    f"{entry.exercise}_{entry.value}",
                    f"{entry.exercise} = {entry.value!r}\n",
                    entry.reason,
                    "choice",
                )
            )
    return found


def alternatives(lesson: Lesson) -> list[Implementation]:
    """The lesson's right implementations that look different from the solution."""
    found = _load(lesson.path / "alternatives.py")
    return [entry for entry in found if isinstance(entry, Implementation)]
