"""The lessons as pages of the site: what students are given, with the figures of solved ones.

Sphinx reads ``course/*/*.ipynb``. Cells that only draw get the outputs that they have in
``solutions/``; answers, checks and what replies to a guess get none. ``make site`` alone therefore
shows no answer.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from autograder.course.lessons import Course, Lesson

ROOT = Path(__file__).resolve().parent.parent

#: From here on a notebook holds what there is to do, and nothing to read.
_LAST = "## Checks that run when your work is graded"
#: Of a folded cell, in JupyterLab.
_HOW_TO_OPEN = ": Shift+Enter runs it, a click opens it"
_MARK = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*(?:\n|\Z)", re.M)
_TO_START = " [All lessons, and how far you are](../start.ipynb)."


def page_of(lesson: Lesson) -> str:
    """What Sphinx calls the page of a lesson."""
    return f"course/{lesson.folder}/{lesson.notebook_name}"


def as_page(page: str, text: str) -> str:
    """The notebook of a lesson as it is to be read.

    Args:
        page: what Sphinx calls it.
        text: of the file that students are given.
    """
    notebook = json.loads(text)
    solved = json.loads(
        (ROOT / f"{page.replace('course/', 'solutions/', 1)}.ipynb").read_text("utf-8")
    )
    shown = {cell.get("id"): cell.get("outputs", []) for cell in solved["cells"]}
    cells: list[dict[str, Any]] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if source.startswith(_LAST):
            break
        if cell["cell_type"] == "markdown":
            cell["source"] = source.replace(_TO_START, "")
        else:
            _fold(cell)
            if source.startswith("# Draws "):
                cell["outputs"] = shown.get(cell.get("id"), [])
        cells.append(cell)
    notebook["cells"] = cells
    return json.dumps(notebook)


def as_solved_page(text: str) -> str:
    """A solved notebook as it is to be read: without the lines that mark its solutions."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        cell["source"] = _MARK.sub("", "".join(cell["source"]))
        if cell["cell_type"] == "code":
            _fold(cell)
    return json.dumps(notebook)


def _fold(cell: dict[str, Any]) -> None:
    """Fold a cell that students have folded, below what its first line says."""
    metadata = cell["metadata"]
    if metadata.get("jupyter", {}).get("source_hidden"):
        first = "".join(cell["source"]).partition("\n")[0].lstrip("# ")
        what = first.removesuffix(".").replace(_HOW_TO_OPEN, "")
        metadata["tags"] = [*metadata.get("tags", []), "hide-input"]
        metadata["mystnb"] = {"code_prompt_show": what}


def front_page(course: Course) -> dict[str, Any]:
    """What the front page says of the course, for its template."""
    paths: dict[str, list[dict[str, Any]]] = {}
    for lesson in course.lessons:
        heading = "The core path" if lesson.core else "From there, in any order"
        said = {name: getattr(lesson, name) for name in ("number", "title", "about", "minutes")}
        said["core_minutes"] = lesson.core_minutes
        paths.setdefault(heading, []).append({**said, "page": page_of(lesson)})
    if len(paths) == 1:
        paths = {"The lessons": next(iter(paths.values()))}
    assert course.picture is not None
    return {
        "title": course.title,
        "picture": course.picture,
        "picture_file": Path(course.picture.file).name,
        "paths": list(paths.items()),
    }
