"""Other points for the exercises of a lesson, in a course that extends another.

All checks of an exercise are worth more or less in the same proportion, and so are the named checks
in them: what a part of an answer is worth beside another stays as its author meant it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from nbformat import NotebookNode

from autograder.course.source_rules import LessonError
from autograder.notebooks import (
    exercise_of,
    grade_id,
    is_answer,
    is_test,
    is_written,
    nbgrader_metadata,
)

__all__ = ["change_points"]


def change_points(path: Path, notebook: NotebookNode, wanted: Mapping[str, float]) -> None:
    """Give exercises and written answers of a source notebook the points that are wanted.

    Args:
        path: of the source.
        notebook: which is changed.
        wanted: points of an exercise, all its checks together, or of a written answer, by name.

    Raises:
        LessonError: there is no such exercise, or it is worth nothing.
    """
    names = [grade_id(cell) for cell in notebook.cells if is_answer(cell)]
    worth: dict[str, list[NotebookNode]] = {name: [] for name in names}
    for cell in notebook.cells:
        if is_written(cell):
            worth[grade_id(cell)] = [cell]
        elif is_test(cell):
            worth[exercise_of(grade_id(cell), names)].append(cell)
    for name, points in wanted.items():
        before = sum(nbgrader_metadata(cell)["points"] for cell in worth.get(name, []))
        if not before:
            there = ", ".join(worth)
            raise LessonError(f"{path}: no exercise {name!r} with points; there are {there}")
        for cell in worth[name]:
            ours = nbgrader_metadata(cell)
            ours["points"] = ours["points"] * points / before
            if is_test(cell):
                cell.source = _rescaled(cell.source, points / before)


def _rescaled(source: str, by: float) -> str:
    """A test cell whose named checks (``with check("a title", points=2)``) are worth so many times
    as much."""
    lines = source.splitlines(keepends=True)
    values = [
        keyword.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check"
        for keyword in node.keywords
        if keyword.arg == "points"
    ]
    for value in sorted(values, key=lambda value: (value.lineno, value.col_offset), reverse=True):
        line = lines[value.lineno - 1].encode()
        now = ast.get_source_segment(source, value) or ""
        then = f"{ast.literal_eval(value) * by!r}" if isinstance(value, ast.Constant) else ""
        changed = (then or f"({now}) * {by!r}").encode()
        lines[value.lineno - 1] = (
            line[: value.col_offset] + changed + line[value.col_offset + len(now.encode()) :]
        ).decode()
    return "".join(lines)
