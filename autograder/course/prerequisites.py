"""What a lesson takes over from earlier ones: lifted from their answer cells, never retyped.

A lesson's setup cell says what it needs, ``from lesson_kit.earlier import softmax``. The build
puts it into the file beside the notebook: the course's own answers and what they build on, with
what these use of their own setup cells. The code is packed: it can be used without being read, so
that a lesson handed out early does not show the answer to an earlier one. It is no secret from
somebody who sets out to read it.
"""

from __future__ import annotations

import ast
import re

from autograder.course.given_names import given_by, needed_of, taken_from_elsewhere
from autograder.course.lessons import Lesson
from autograder.course.libraries import setup_of
from autograder.course.source_rules import LessonError
from autograder.notebooks import SETUP, tags
from lesson_kit.setting import pack_text

#: The module that a setup cell imports them from.
EARLIER = "lesson_kit.earlier"

_MARKERS = re.compile(r"^[^\n]*### (BEGIN|END) SOLUTION[^\n]*\n?", re.M)


def names_carried_over(lesson: Lesson) -> list[str]:
    """The names that the lesson's setup cell imports from earlier lessons."""
    names: list[str] = []
    for cell in lesson.notebook.cells:
        if cell.cell_type == "code" and SETUP in tags(cell):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.ImportFrom) and node.module == EARLIER:
                    names.extend(alias.name for alias in node.names)
    return names


def carried_over(lesson: Lesson) -> str:
    """What a lesson needs of earlier ones, packed, see :func:`lesson_kit.earlier.as_module`; empty
    when it needs nothing.

    Raises:
        LessonError: see :func:`sources_of`.
    """
    names = names_carried_over(lesson)
    if not names:
        return ""
    code = "\n\n".join([*sources_of(lesson, names), f"__all__ = {names!r}\n"])
    return pack_text(code)


def sources_of(lesson: Lesson, names: list[str]) -> list[str]:
    """The answers of earlier lessons that bind some names, with all that these build on: first what
    they use of their setup cells, then the answers.

    Raises:
        LessonError: no earlier lesson has an exercise of that name, or an answer uses what its
            lesson's setup cell does not give, or two setup cells give another thing of one name.
    """
    answers = {
        name: (home, source) for home in lesson.earlier for name, source in home.exercises.items()
    }
    for name in names:
        if name not in answers:
            raise LessonError(
                f"{lesson.source_path}: the setup cell imports {name!r} from {EARLIER}, and no "
                "earlier lesson has an exercise of that name"
            )
    wanted = set(names)
    waiting = list(names)
    while waiting:
        new = (taken_from_elsewhere(answers[waiting.pop()][1]) & set(answers)) - wanted
        wanted |= new
        waiting.extend(new)
    given: dict[str, str] = {}
    for name in (name for name in answers if name in wanted):
        _take_along(lesson, name, answers[name], set(answers), given)
    sources = [_MARKERS.sub("", source) for name, (_, source) in answers.items() if name in wanted]
    return ["\n".join(dict.fromkeys(given.values())), *sources] if given else sources


def _take_along(
    lesson: Lesson, name: str, answer: tuple[Lesson, str], others: set[str], given: dict[str, str]
) -> None:
    """Add to ``given`` what an answer uses of its own lesson's setup cell."""
    home, source = answer
    at_home = given_by(setup_of(home.notebook), besides=(EARLIER,))
    asked = taken_from_elsewhere(source) - others
    carried = f"{lesson.source_path}: the setup cell takes over {name!r} of {home.folder}"
    for missing in sorted(asked - set(at_home)):
        raise LessonError(
            f"{carried}, whose answer uses {missing!r}: no answer, and not in that lesson's setup "
            "cell; import it there, or define it inside the answer"
        )
    for text in needed_of(at_home, asked):
        for bound in given_by(text):
            if given.setdefault(bound, text) != text:
                raise LessonError(
                    f"{carried}, which needs `{text}`, and another answer that comes along needs "
                    f"`{given[bound]}`; give one of the two another name in its lesson"
                )
