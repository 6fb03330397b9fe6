"""A notebook: its cells, and what nbgrader's metadata says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nbformat import NotebookNode

#: Cells with this tag train models or draw figures; nothing graded needs them.
DEMONSTRATION = "demonstration"

#: The cell with this tag imports what the lesson and its test cells use.
SETUP = "setup"

#: Cells with this tag hold predictions, ``guess_... = ...``; students get None in their place.
GUESS = "guess"

#: The part of a test cell that students never see.
HIDDEN = re.compile(r"^[^\n]*BEGIN HIDDEN TESTS.*?END HIDDEN TESTS[^\n]*\n?", re.S | re.M)


#: What a notebook's metadata says of the kernel that runs it.
KERNEL = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}

#: Tags that say what becomes of a cell; a release's manifest keeps them.
TAGS = (DEMONSTRATION, SETUP, GUESS)

#: How the last cell of a lesson's text begins, and what stands behind it in a student's copy.
ONWARD = "**Onward.** "
TO_START = " [All lessons, and how far you are](../start.ipynb)."

#: A figure as :mod:`lesson_kit.figures` shows it: as HTML alone, which keeps its alternative text.
_FIGURE = re.compile(
    r'(?:<style>[^<]*</style>)?<img (?:class="drawn" )?alt="[^"]*" '
    r'src="data:image/png;base64,([0-9A-Za-z+/=]*)">'
)


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
