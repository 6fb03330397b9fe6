"""The rules that a lesson's source keeps, so that the build and the grader may rely on them."""

from __future__ import annotations

import ast
from pathlib import Path

from nbformat import NotebookNode

from autograder.course.cell_headers import spellings
from autograder.course.given_names import given_by
from autograder.errors import WrongUse
from autograder.notebooks import (
    SETUP,
    exercise_of,
    grade_id,
    is_answer,
    is_test,
    nbgrader_metadata,
    tags,
)

_REGIONS = {
    "solution": ("### BEGIN SOLUTION", "### END SOLUTION"),
    "hidden tests": ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"),
}


class LessonError(WrongUse):
    """A lesson's source cannot be used; the message names the file and what to do."""


def check_regions(path: Path, text: str) -> None:
    """Refuse a source whose solutions or hidden tests are not marked from begin to end.

    Raises:
        LessonError: which line, and what to add or remove.
    """
    for what, (begin, end) in _REGIONS.items():
        opened = 0
        for number, line in enumerate(text.splitlines(), start=1):
            stripped = line.strip().removeprefix("# ")
            if line.startswith("# %%") and opened:
                break
            if stripped == begin:
                if opened:
                    raise LessonError(
                        f"{path}:{number}: a second {begin!r} before {end!r}; close the {what} "
                        f"region opened in line {opened} first"
                    )
                opened = number
            elif stripped == end:
                if not opened:
                    raise LessonError(
                        f"{path}:{number}: {end!r} without {begin!r} in this cell; add the opening "
                        "line or remove this one"
                    )
                opened = 0
        if opened:
            raise LessonError(
                f"{path}:{opened}: {begin!r} is not closed in its cell; add a line {end!r}"
            )


def check_cells(path: Path, text: str, notebook: NotebookNode) -> None:
    """Refuse cells that have no name, share one, or lack the cell that belongs to them.

    Args:
        path: of the source.
        text: of the source, for the numbers of lines.
        notebook: what was read of it.

    Raises:
        LessonError: which line, and what to write.
    """
    lines = text.splitlines()

    def where(needle: str) -> str:
        for number, line in enumerate(lines, start=1):
            if needle and needle in line:
                return f"{path}:{number}"
        return str(path)

    def header_of(name: str) -> str:
        for number, line in enumerate(lines, start=1):
            if line.startswith("# %%") and any(form in line for form in spellings(name)):
                return f"{path}:{number}"
        return str(path)

    names: list[str] = []
    for cell in notebook.cells:
        first = cell.source.strip().splitlines()[0] if cell.source.strip() else ""
        name = grade_id(cell)
        if nbgrader_metadata(cell) and not name:
            raise LessonError(
                f"{where(first)}: the cell beginning {first!r} has nbgrader metadata without a "
                'grade_id; add "grade_id": "<name>" to its # %% line'
            )
        if not name and any(begin in cell.source for begin, _ in _REGIONS.values()):
            raise LessonError(
                f"{where(first)}: the cell beginning {first!r} holds a solution or hidden tests "
                "but no nbgrader grade_id, so it would be released as it is; write what it is on "
                'its # %% line, such as answer="<name>"'
            )
        if name in names and name:
            raise LessonError(
                f"{header_of(name)}: the grade_id {name!r} stands on two cells; rename one"
            )
        names.append(name)

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if not code or SETUP not in tags(code[0]):
        raise LessonError(
            f"{path}: the first code cell must import what the lesson uses and be tagged: "
            f'# %% tags=["{SETUP}"]'
        )
    exercises = [grade_id(cell) for cell in code if is_answer(cell)]
    for cell in code:
        name = grade_id(cell)
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            first = cell.source.strip().splitlines()[0]
            raise LessonError(f"{where(first)}: not valid Python: {error}") from None
        if is_answer(cell) and name not in given_by(cell.source):
            raise LessonError(
                f"{header_of(name)}: the answer cell {name!r} does not define {name!r}; an answer "
                "cell has the name of what it defines as its grade_id"
            )
        if is_test(cell):
            try:
                exercise_of(name, exercises)
            except LookupError:
                raise LessonError(
                    f"{header_of(name)}: the test cell {name!r} belongs to no answer cell; name "
                    "it test_<exercise> or test_<exercise>_<aspect>"
                ) from None
    for name in exercises:
        if f"test_{name}" not in names:
            raise LessonError(
                f"{header_of(name)}: the exercise {name!r} has no test cell test_{name}; add one "
                "below it"
            )
