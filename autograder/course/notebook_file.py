"""Reading a notebook from a file, for whom it is no submission.

Nothing here believes what was handed in; that is read by :mod:`autograder.grade.submission`.
"""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.errors import WrongUse
from autograder.text import plain_line
from lesson_kit import notebook_reading as reading


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
