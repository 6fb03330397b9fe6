"""Submissions as students make them: a released notebook with answers typed in."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.box.boxes import Boxes
from autograder.box.sandbox import Protection, best_backend, examine, lacking
from autograder.course.bundle import Bundle
from autograder.grade.grading import grade
from autograder.grade.limits import Limits
from autograder.grade.result import Result
from autograder.grade.worker import _boxes
from autograder.notebooks import grade_id, is_answer

SEED = 20260


_MARKS = ("### BEGIN SOLUTION", "### END SOLUTION")


def notebook_with(bundle: Bundle, instead: dict[str, str] | None = None) -> NotebookNode:
    """The solved notebook, as a student would have typed it, with some answer cells replaced."""
    notebook = copy.deepcopy(bundle.notebook)
    for cell in notebook.cells:
        if is_answer(cell) and grade_id(cell) in (instead or {}):
            cell.source = (instead or {})[grade_id(cell)]
        elif is_answer(cell):
            lines = cell.source.splitlines(keepends=True)
            cell.source = "".join(line for line in lines if line.strip() not in _MARKS)
    return notebook


def as_bytes(notebook: NotebookNode | dict[str, Any]) -> bytes:
    """A notebook as a file."""
    return json.dumps(notebook).encode()


def graded(
    bundle: Bundle, notebook: Any, *, seed: int = SEED, limits: Limits | None = None
) -> Result:
    """The verdict on a notebook or on bytes."""
    data = notebook if isinstance(notebook, bytes) else as_bytes(notebook)
    return grade(data, bundle, make_box=boxes().start, seed=seed, limits=limits)


@cache
def protections() -> list[Protection]:
    """What this machine gives; tried once for all tests of a process."""
    return examine()


def why_not_confined() -> str:
    """Why a test of the sandbox has to be skipped, and what to do; an empty string: it has not.

    Raises:
        NoSandbox: it is not known. A test fails then: a busy machine is no reason to skip one.
    """
    best_backend(protections())
    says = lacking(protections())
    return f"Student code cannot be confined on this machine: {says}." if says else ""


def boxes() -> Boxes:
    """Boxes as confined as this machine allows; one fork server for all tests of a process, and
    for what :func:`.classes.grade_here` grades."""
    return _boxes(best_backend(protections()), ())


def points(verdict: Result) -> dict[str, float]:
    """The points of each exercise."""
    found: dict[str, float] = {}
    for test in verdict.tests:
        found[test.exercise] = found.get(test.exercise, 0.0) + test.points
    return found


def max_points(bundle: Bundle) -> dict[str, float]:
    """The points each exercise is worth."""
    found: dict[str, float] = {}
    for test in bundle.tests:
        found[test.exercise] = found.get(test.exercise, 0.0) + test.points
    return found


def released(bundle: Bundle) -> NotebookNode:
    """The untouched student notebook of a lesson in course/."""
    from .conftest import ROOT

    path = ROOT / "course" / bundle.assignment / f"{bundle.notebook_name}.ipynb"
    return nbformat.read(path, as_version=4)
