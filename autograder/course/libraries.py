"""Libraries that a lesson's notebook can do without, and that nobody can grade it without.

A setup cell says which: ``try: import keras`` with something else in its place ``except
ImportError``. Where such a library is missing, a student's notebook runs and says what to install.
A grader must not take that for a wrong answer, and refuses before anything is graded.

What a setup cell imports otherwise, such as keras, is imported once for all boxes of a lesson.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib.util import find_spec

from nbformat import NotebookNode

from autograder.errors import WrongUse
from autograder.notebooks import SETUP, tags

#: Packages that a box has imported before there is a submission.
IN_EVERY_BOX = {"IPython", "lesson_kit", "matplotlib", "numpy", "seaborn", "torch", "tqdm"}


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


def imported(setup: str) -> set[str]:
    """The packages that a setup cell imports, Python's own among them.

    Args:
        setup: source of the cell.
    """
    names = set()
    for node in ast.walk(ast.parse(setup)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@cache
def libraries_to_import(setup: str) -> tuple[str, ...]:
    """The packages that a setup cell imports, are installed, and are not in every box: where they
    are imported before there is a submission, each begins that much sooner.

    Args:
        setup: source of the cell.
    """
    new = imported(setup) - sys.stdlib_module_names - IN_EVERY_BOX
    return tuple(sorted(name for name in new if find_spec(name) is not None))


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
