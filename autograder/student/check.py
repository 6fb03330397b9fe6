"""Which visible checks pass in a student's own notebooks, on the student's machine.

The same test cells as in the notebook, run all at once. Nothing here is a grade: the grader
runs more checks, and runs them elsewhere.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.utils import compute_checksum

from autograder.course.notebook_file import DamagedNotebook, read_notebook
from autograder.course.release import (
    ManifestError,
    ReleasedCell,
    digests_of,
    is_beside,
    read_manifest,
    restore_names,
)
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
from autograder.student.run import Ran, run
from autograder.text import plain, plain_line
from lesson_kit.course_progress import has_code, is_begun, lesson_notebooks

#: Outcomes of a check.
PASSES, FAILS, NOT_WRITTEN, ERROR, CHANGED, GONE = (
    "passes",
    "does not pass",
    "not written yet",
    "stopped by an error",
    "the check was changed",
    "the check is gone",
)

#: Characters of a message that a terminal shows, and the width of a line.
MAX_MESSAGE = 20_000
WIDTH = 90
_INDENT = 6

#: What a check raises where the cells above it did not run.
_NOTHING_RAN = ("NameError", "ImportError", "ModuleNotFoundError")

_BRING_BACK = "take it from the release again, or ask `autograder update` for it"


class CheckError(WrongUse):
    """There is nothing to check; the message says what to do."""


@dataclass(frozen=True)
class Check:
    """One visible check.

    Attributes:
        grade_id: of its cell.
        exercise: it belongs to.
        points, max_points: got and possible; of named checks in a cell some may pass.
        outcome: one of the six above.
        message: what the check says, or why it did not run.
    """

    grade_id: str
    exercise: str
    points: float
    max_points: float
    outcome: str
    message: str = ""


@dataclass(frozen=True)
class Checked:
    """One notebook: its checks in order, or why it could not be read."""

    path: Path
    checks: tuple[Check, ...] = ()
    problem: str = ""

    @property
    def passes(self) -> bool:
        """Whether every visible check passes."""
        return not self.problem and all(check.outcome == PASSES for check in self.checks)

    def entry(self) -> dict[str, Any]:
        """The same for ``--json``."""
        return {
            "notebook": str(self.path),
            "problem": self.problem,
            "checks": [vars(check) for check in self.checks],
        }


def notebooks(given: Sequence[Path], here: Path) -> list[Path]:
    """The notebooks that are meant.

    Args:
        given: notebooks, lesson folders or course folders; the course folder ``here``, or
            ``here/course``, or the lesson folder ``here`` where there are none.
        here: the folder one stands in.

    Raises:
        CheckError: there is no notebook with checks; the message says where was looked.
    """
    if given:
        return list(dict.fromkeys(notebook for path in given for notebook in _in(path, named=True)))
    for folder in (here, here / "course"):
        if folder.is_dir() and (lessons := _in(folder, named=False)):
            return lessons
    raise CheckError(
        f"there is no lesson in {here}: run this in the course folder, or name a notebook: "
        "autograder check 03-NAME/NAME.ipynb"
    )


def _in(path: Path, named: bool) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise CheckError(f"{path} does not exist; name a notebook or a folder with notebooks")
    lessons = [notebook.parent for notebook in lesson_notebooks(path)] or [path]
    files = [file for folder in lessons for file in sorted(folder.glob("*.ipynb"))]
    with_checks = [file for file in files if not is_beside(file) and _may_have_checks(file)]
    if named and not with_checks:
        raise CheckError(
            f"{path} holds no notebook with checks; name a notebook or a course folder"
        )
    return with_checks


def _may_have_checks(path: Path) -> bool:
    """Whether it is a lesson's; a damaged one may be."""
    try:
        return any(is_test(cell) for cell in _read(path).cells)
    except DamagedNotebook:
        return True


def _read(path: Path) -> NotebookNode:
    """A notebook, with the names of cells that lost theirs.

    Raises:
        DamagedNotebook: it cannot be read.
    """
    notebook = read_notebook(path)
    restore_names(notebook, _released(path))
    return notebook


#: Is told of a check as soon as its cell ran, how many of the notebook's are known, and how many
#: there are.
Tell = Callable[["Check", int, int], None]


def check_notebook(
    path: Path, seconds: int, tell: Tell = lambda check, known, most: None
) -> Checked:
    """Run a notebook and say what its visible checks say. The file is not written.

    Args:
        path: a notebook of the course.
        seconds: a cell may take.
        tell: is told of each check as it comes, once.
    """
    try:
        notebook = _read(path)
    except DamagedNotebook as error:
        return Checked(path, problem=str(error))
    released, told = _released(path), dict[str, Check]()

    def after(ran: Ran, number: int) -> None:
        outcomes = _Outcomes(notebook, ran, released)
        name = grade_id(notebook.cells[number])
        if outcomes.places.get(name) == number and name not in told:
            told[name] = outcomes.of(name)
            tell(told[name], len(told), len(outcomes.names))

    all_outcomes = _Outcomes(
        notebook, run(notebook, path.resolve().parent, seconds, after), released
    )
    for check in all_outcomes.all():
        if check.grade_id not in told:
            told[check.grade_id] = check
            tell(check, len(told), len(all_outcomes.names))
    return Checked(path, all_outcomes.all())


def _released(path: Path) -> list[ReleasedCell]:
    """The cells that the notebook came with, where that is known."""
    path = path.resolve()
    try:
        release = read_manifest(path.parent.parent)
    except ManifestError:
        return []
    return release.cells.get(f"{path.parent.name}/{path.name}", []) if release else []


class _Outcomes:
    """What each visible check of a notebook that was run came to."""

    def __init__(self, notebook: NotebookNode, ran: Ran, released: list[ReleasedCell]) -> None:
        self.texts = {cell.grade_id: cell.text for cell in released}
        expected = {cell.grade_id: cell.points for cell in released if cell.points}
        cells = list(enumerate(notebook.cells))
        self.cells, self.ran = notebook.cells, ran
        self.answers = {grade_id(cell): number for number, cell in cells if is_answer(cell)}
        self.places = {
            grade_id(cell): number
            for number, cell in cells
            if is_test(cell) and (has_code(cell.source) or not self.is_as_released(cell))
        }
        # Where it is not known what the notebook came with: every exercise has a check.
        self.expected = expected or {f"test_{name}": 0.0 for name in self.answers}

        more = [name for name in self.places if name not in self.expected]
        #: Of all checks, in order.
        self.names = [*self.expected, *more]

    def all(self) -> tuple[Check, ...]:
        """The checks in order."""
        return tuple(self.of(name) for name in self.names)

    def is_as_released(self, cell: NotebookNode) -> bool:
        """Whether a check is as it was handed out: the release keeps a digest that no formatter
        changes, nbgrader a checksum."""
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if compute_checksum(cell) == nbgrader_metadata(cell).get("checksum"):
                return True
        return self.texts.get(grade_id(cell)) in digests_of(cell)

    def exercise(self, name: str) -> str:
        """The exercise of a check, also where its answer cell is gone."""
        known = [*self.answers, *(test.removeprefix("test_") for test in self.expected)]
        try:
            return exercise_of(name, known)
        except LookupError:
            return name.removeprefix("test_")

    def of(self, name: str) -> Check:
        """One check."""
        exercise, number = self.exercise(name), self.places.get(name)
        if number is None:
            why = f"The cell {name} is not in the notebook; {_BRING_BACK}."
            return Check(name, exercise, 0.0, self.expected[name], GONE, why)
        worth = _points(self.cells[number])

        def result(outcome: str, message: str = "", points: float = 0.0) -> Check:
            return Check(name, exercise, points, worth, outcome, message)

        if not self.is_as_released(self.cells[number]):
            return result(CHANGED, f"The cell {name} is not as it was handed out; {_BRING_BACK}.")
        if number in self.ran.stopped:
            return result(ERROR, f"The check was stopped: {self.ran.stopped[number]}.")
        if number not in self.ran.errors:
            return result(PASSES, points=worth)
        kind, text = self.ran.errors[number]
        if kind == "NotImplementedError":
            return result(NOT_WRITTEN, self._why_not_written(exercise, text))
        shown, points = self.ran.boxes.get(number, ([], 0.0))
        if kind in ("CheckFailed", "ChecksFailed"):
            return result(FAILS, "\n".join(shown) or text, points)
        why = self._why_no_name(exercise) if kind in _NOTHING_RAN else ""
        return result(ERROR, why or "\n".join(shown) or f"{kind}: {text}", points)

    def _why_not_written(self, exercise: str, text: str) -> str:
        answer = self.answers.get(exercise)
        cell = self.cells[answer] if answer is not None else None
        if cell is None or not is_begun(cell) or digests_of(cell) & set(self.texts.values()):
            return ""
        return text or "It raises NotImplementedError: in itself, or in something it builds on."

    def _why_no_name(self, exercise: str) -> str:
        setup = next((n for n, cell in enumerate(self.cells) if SETUP in tags(cell)), -1)
        if setup in self.ran.stopped or setup in self.ran.errors:
            why = self.ran.stopped.get(setup) or ": ".join(self.ran.errors[setup])
            return f"The cell with the imports did not run. {why}"
        answer = self.answers.get(exercise)
        if answer is None:
            return f"The cell {exercise} is not in the notebook; {_BRING_BACK}."
        if answer in self.ran.stopped:
            return f"The cell {exercise} was stopped: {self.ran.stopped[answer]}."
        return ""


def _points(cell: NotebookNode) -> float:
    points = nbgrader_metadata(cell).get("points", 0)
    return float(points) if isinstance(points, (int, float)) else 0.0


def heading(path: Path) -> str:
    """The line above the checks of a notebook."""
    return plain_line(f"{path.parent.name}/{path.name}".removeprefix("/"))


def as_lines(checked: Checked) -> list[str]:
    """One notebook for the terminal."""
    lines = [heading(checked.path)]
    if checked.problem:
        return [*lines, f"  cannot be checked: {plain_line(checked.problem)}"]
    if not checked.checks:
        return [*lines, "  has no checks"]
    return lines + [line for check in checked.checks for line in lines_of_check(check)]


def mark_of(check: Check) -> str:
    """✓, ✗, or · where nothing is written yet."""
    return {PASSES: "✓", NOT_WRITTEN: "·"}.get(check.outcome, "✗")


def lines_of_check(check: Check, columns: int = WIDTH + _INDENT) -> list[str]:
    """One check for a terminal of some width; its first line begins with :func:`mark_of`."""
    name = plain_line(check.grade_id.removeprefix("test_"))
    counts = f"{check.points:g}/{check.max_points:g}"
    lines = [f"  {mark_of(check)} {name}  {counts}  {check.outcome}"]
    width = max(columns - _INDENT, 20)
    for line in plain(check.message, MAX_MESSAGE).splitlines():
        # Tables keep their columns.
        fits = len(line) <= width or line.startswith("  ")
        lines += [
            f"{' ' * _INDENT}{part}".rstrip()
            for part in ([line] if fits else textwrap.wrap(line, width))
        ]
    return lines


def summary(checked: list[Checked]) -> str:
    """The last lines: points of the visible checks, and that there are others."""
    points = sum(check.points for notebook in checked for check in notebook.checks)
    most = sum(check.max_points for notebook in checked for check in notebook.checks)
    unread = sum(1 for notebook in checked if notebook.problem)
    text = f"{points:g} of {most:g} points of the visible checks."
    if unread:
        text += f" {unread} notebook{'s' * (unread > 1)} could not be checked."
    return f"{text}\nMore checks run when your work is graded, and written answers are read."
