"""A notebook: its cells, what nbgrader's metadata says of them, and reading one from a file.

Nothing here believes what was handed in; that is read by :mod:`autograder.grade.submission`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder import reading
from autograder.errors import WrongUse
from autograder.text import plain_line

#: Cells with this tag train models or draw figures; nothing graded needs them.
DEMONSTRATION = "demonstration"

#: The cell with this tag imports what the lesson and its test cells use.
SETUP = "setup"

#: Cells with this tag hold predictions, ``guess_... = ...``; students get None in their place.
GUESS = "guess"

#: The part of a test cell that students never see.
HIDDEN = re.compile(r"^[^\n]*BEGIN HIDDEN TESTS.*?END HIDDEN TESTS[^\n]*\n?", re.S | re.M)


#: Tags that say what becomes of a cell; a release's manifest keeps them.
TAGS = (DEMONSTRATION, SETUP, GUESS)

#: A figure as :mod:`lesson_kit.figures` shows it: as HTML alone, which keeps its alternative text.
_FIGURE = re.compile(r'<img alt="[^"]*" src="data:image/png;base64,([0-9A-Za-z+/=]*)">')


def png_of(data: Mapping[str, Any]) -> str:
    """The picture that an output shows, in base64; "" where it shows none.

    Args:
        data: of the output, by media type.
    """
    figure = _FIGURE.fullmatch(joined(data.get("text/html")))
    return figure[1] if figure else joined(data.get("image/png"))


def joined(value: Any) -> str:
    """A text of an output, which a file may hold by lines."""
    if isinstance(value, list):
        value = "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def nbgrader_metadata(cell: NotebookNode) -> dict[str, Any]:
    """The nbgrader metadata of a cell, or an empty dict."""
    metadata = cell.get("metadata", {})
    ours = metadata.get("nbgrader", {}) if isinstance(metadata, dict) else {}
    return ours if isinstance(ours, dict) else {}


def grade_id(cell: NotebookNode) -> str:
    """nbgrader's name of a cell, or an empty string."""
    name = nbgrader_metadata(cell).get("grade_id", "")
    return name if isinstance(name, str) else ""


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    metadata = cell.get("metadata", {})
    listed = metadata.get("tags", []) if isinstance(metadata, dict) else []
    return [tag for tag in listed if isinstance(tag, str)] if isinstance(listed, list) else []


def is_test(cell: NotebookNode) -> bool:
    """Whether a cell holds autograded tests."""
    ours = nbgrader_metadata(cell)
    return bool(ours.get("grade")) and not ours.get("solution") and not ours.get("task")


def is_answer(cell: NotebookNode) -> bool:
    """Whether students fill this code cell."""
    ours = nbgrader_metadata(cell)
    return cell.cell_type == "code" and bool(ours.get("solution")) and not ours.get("grade")


def is_written(cell: NotebookNode) -> bool:
    """Whether a cell is graded by hand."""
    ours = nbgrader_metadata(cell)
    return bool(ours.get("grade")) and bool(ours.get("solution"))


def exercise_of(test_id: str, exercises: list[str]) -> str:
    """The exercise a test cell belongs to: ``test_<exercise>`` or ``test_<exercise>_<aspect>``.

    Raises:
        LookupError: no exercise has that name.
    """
    for name in sorted(exercises, key=len, reverse=True):
        if test_id == f"test_{name}" or test_id.startswith(f"test_{name}_"):
            return name
    raise LookupError(test_id)


class DamagedNotebook(WrongUse):
    """A file is no notebook; the message says what is wrong with it."""


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook of any format 4 version; every cell has a kind, a text and metadata.

    Raises:
        DamagedNotebook: it cannot be read; the file is left as it is.
    """
    text = ""
    try:
        text = reading.decoded(path.read_bytes())
        notebook = nbformat.reads(text, as_version=4)
        cells = list(notebook.cells)
    except OSError as error:
        raise DamagedNotebook(f"It cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise DamagedNotebook("It is not text (UTF-8), so it is not a notebook.") from None
    except ValueError as error:
        raise DamagedNotebook(_not_json(text, error)) from None
    except Exception:  # nbformat trusts the file's structure, and so raises anything
        raise DamagedNotebook(
            "It is JSON, but not a notebook. Did another program write it?"
        ) from None
    for number, cell in enumerate(cells, start=1):
        if not (
            isinstance(cell, dict)
            and cell.get("cell_type") in ("code", "markdown", "raw")
            and isinstance(cell.get("source"), str)
            and isinstance(cell.setdefault("metadata", NotebookNode()), dict)
        ):
            raise DamagedNotebook(f"Its cell {number} is damaged.")
        cell["source"] = reading.plain_source(cell["source"])
    return notebook


def _not_json(text: str, error: ValueError) -> str:
    if not text.strip():
        return "The file is empty."
    try:
        json.loads(text)
    except ValueError as problem:
        where = f"line {problem.lineno}" if isinstance(problem, json.JSONDecodeError) else "?"
        hint = (
            "It holds conflict marks of git (<<<<<<<): choose one of the versions."
            if "<<<<<<< " in text
            else "Was it saved whole? A copy from before may be in .ipynb_checkpoints."
        )
        return f"It is not JSON ({where}). {hint}"
    return f"It is not a notebook: {plain_line(str(error))}"
