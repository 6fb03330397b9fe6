"""What is asked of generated files: that they are as their sources make them, and say all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from autograder.notebooks import grade_id

_IMAGE = re.compile(r"<img\b[^>]*>")
_TEXT = re.compile(r'\balt="[^"]+"')


def files(folder: Path) -> Iterator[Path]:
    """The files below a folder, but for what tools leave there."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and ".ipynb_" not in str(path):
            yield path.relative_to(folder)


def drifted(kept: Path, made: Path) -> list[str]:
    """The files of two folders that only one of them has, or that differ."""
    names = {*files(kept), *files(made)}
    there = {name for name in names if (kept / name).exists() and (made / name).exists()}
    same = {name for name in there if (kept / name).read_bytes() == (made / name).read_bytes()}
    return sorted(name.as_posix() for name in names - same)


def without_alternative_text(notebook: NotebookNode) -> list[str]:
    """The cells of a solved notebook that show a picture without saying what is to be seen."""
    faulty = []
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            images = _IMAGE.findall("".join(data.get("text/html", "")))
            bare = "image/png" in data and not images
            if bare or not all(_TEXT.search(image) for image in images):
                faulty.append(f"cell {number} {grade_id(cell) or ''}")
    return faulty
