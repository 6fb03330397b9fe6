"""Whether a solved notebook ran through: nbgrader goes on after a cell that raised an error."""

from __future__ import annotations

from nbformat import NotebookNode

from autograder.notebooks import grade_id
from autograder.text import plain_line


def what_stopped(solved: NotebookNode) -> list[str]:
    """The cells of a notebook that was run and ended with an error, each in one line.

    Args:
        solved: with outputs; a cell that ran for too long has an error among them too.
    """
    return [
        plain_line(f"{_name_of(cell, number)}: {output.ename}: {' '.join(output.evalue.split())}")
        for number, cell in enumerate(solved.cells, start=1)
        if cell.cell_type == "code"
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]


def _name_of(cell: NotebookNode, number: int) -> str:
    """As its author finds it: nbgrader's name, or the line that it begins with."""
    lines = cell.source.strip().splitlines()
    return f"cell {number}, {grade_id(cell) or (lines[0] if lines else 'empty')}"
