"""Libraries that a lesson's notebook can do without, and that nobody can grade it without.

A setup cell says which: ``try: import keras`` with something else in its place ``except
ImportError``. Where such a library is missing, a student's notebook runs and says what to install.
A grader must not take that for a wrong answer, and refuses before anything is graded.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec

from nbformat import NotebookNode

from autograder.errors import WrongUse
from autograder.notebooks import SETUP, tags


class LibraryLacking(WrongUse):
    """A lesson cannot be graded here; the message says what to install."""


def setup_of(notebook: NotebookNode) -> str:
    """Source of a lesson's setup cell."""
    return next(str(cell.source) for cell in notebook.cells if SETUP in tags(cell))


@cache  # asked twice for each submission, of the few setup cells that there are
def optional_libraries(setup: str) -> tuple[str, ...]:
    """The modules that a setup cell imports where they are installed.

    Args:
        setup: source of the cell.
    """
    attempts = [node for node in ast.parse(setup).body if isinstance(node, ast.Try)]
    return tuple(
        alias.name
        for attempt in attempts
        for line in attempt.body
        if isinstance(line, ast.Import)
        for alias in line.names
    )


def lacking(setup: str) -> list[str]:
    """Those of :func:`optional_libraries` that are not installed here."""
    return [name for name in optional_libraries(setup) if find_spec(name) is None]


def ask_for_libraries(assignment: str, setup: str) -> None:
    """Refuse a lesson of which a library is missing.

    Args:
        assignment: its name.
        setup: source of its setup cell.

    Raises:
        LibraryLacking: its answers cannot be run here; no fault of who wrote them.
    """
    missing = " ".join(lacking(setup))
    if missing:
        raise LibraryLacking(
            f"{assignment} cannot be graded here, and nothing of it was: it needs {missing}. "
            f"Install it where grading runs (pip install {missing}), or name the other assignments "
            "with --assignment."
        )
