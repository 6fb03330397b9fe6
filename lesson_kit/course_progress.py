"""A student's own progress, lesson by lesson, as saved in the notebooks.

The one code cell of the course's ``start.ipynb`` shows it. Nothing is run: what counts is what the
notebooks held when they were saved last. It needs nothing but the standard library, IPython and the
reader of notebooks beside it, and only the lesson folders: what a lesson is called and needs is in
the metadata of its notebook.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import notebook_reading as reading
from .words import N_, speaking, tr, words_in

__all__ = ["show_progress"]

#: In the metadata of a box below a check, and the lines of its text above what it says.
_BOX = "lesson_points"
_ABOVE = 3

#: In the metadata of a notebook: the number, title, minutes, needs and about of its lesson.
LESSON = "autograder_lesson"
#: The same in notebooks that were handed out when there was one course.
FORMER = "attention_course"

#: What a puzzle says once it is solved.
SOLVED = N_("is solved")


@dataclass
class Progress:
    """One lesson, and how far the student's notebook is.

    Attributes:
        link: of the notebook, from the course folder.
        title: of the lesson, with its number.
        minutes, needs, about: from the notebook's metadata, or "".
        exercises, begun: how many there are, and in how many something was written.
        checks, passing: visible checks, and those that passed when they ran last.
        problem: why the notebook could not be read, or "".
        left: what is begun and does not pass: name, link of its check, and why in a sentence.
        untouched: names of exercises that are not begun.
        core: whether the lesson is on the course's core path.
        cells: the link of each answer's cell, by its name.
        puzzle_solved: whether its puzzle, which is worth nothing else, was solved when it ran last.
    """

    link: str
    title: str
    minutes: str = ""
    needs: str = ""
    about: str = ""
    exercises: int = 0
    begun: int = 0
    checks: int = 0
    passing: int = 0
    problem: str = ""
    left: list[tuple[str, str, str]] = field(default_factory=list)
    untouched: list[str] = field(default_factory=list)
    core: bool = False
    cells: dict[str, str] = field(default_factory=dict)
    puzzle_solved: bool = False

    @property
    def next_step(self) -> tuple[str, str]:
        """Name and link of what to go on with: what does not pass yet, else what is not begun."""
        if self.left:
            return self.left[0][:2]
        name = self.untouched[0]
        return name, self.cells[name]

    @property
    def done(self) -> bool:
        """Whether nothing that can be seen here is left to do."""
        return not self.problem and self.begun == self.exercises and self.passing == self.checks


def lesson_notebooks(folder: Path) -> list[Path]:
    """Where the notebook of each lesson folder, ``NN-the-name/the_name.ipynb``, should be."""
    lessons = [path for path in folder.iterdir() if re.match(r"\d+-", path.name) and path.is_dir()]
    names = {path: re.sub(r"^\d+-", "", path.name).replace("-", "_") for path in lessons}
    return [path / f"{names[path]}.ipynb" for path in sorted(lessons)]


def progress_of(notebook: Path) -> Progress:
    """The progress in one notebook; one that cannot be read says so.

    A notebook that was renamed is found by what its metadata say of its lesson.
    """
    number, _, name = notebook.parent.name.partition("-")
    if not notebook.exists():
        notebook = next(filter(_is_of_a_lesson, _others(notebook.parent)), notebook)
    progress = Progress(
        quote(f"{notebook.parent.name}/{notebook.name}", safe="/()"),
        f"{number} {name.replace('-', ' ')}",
    )
    try:
        tree = reading.tree_of(notebook.read_bytes())
        _describe(tree.get("metadata"), progress, number)
        released = _released(notebook)
        _restore_names(tree["cells"], released)
        for cell in tree["cells"]:
            _count(cell, progress, {text for _, text, *_ in released})
    except FileNotFoundError:
        progress.problem = tr("the notebook is not there")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        progress.problem = tr("the file is damaged")
    return progress


def _others(folder: Path) -> list[Path]:
    """The notebooks of a folder, without those that an update set aside."""
    paths = sorted(folder.glob("*.ipynb")) if folder.is_dir() else []
    return [path for path in paths if not re.search(r"\.(before-update|new-release)-", path.name)]


def _is_of_a_lesson(path: Path) -> bool:
    try:
        return bool(_said_of_lesson(reading.tree_of(path.read_bytes())["metadata"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _said_of_lesson(metadata: Any) -> dict[str, Any]:
    said = (metadata.get(LESSON) or metadata.get(FORMER)) if isinstance(metadata, dict) else None
    return said if isinstance(said, dict) else {}


def _describe(metadata: Any, progress: Progress, number: str) -> None:
    """What the notebook says of its lesson; one of another making keeps its folder's name."""
    lesson = _said_of_lesson(metadata)
    if lesson:
        progress.title = f"{number} {lesson.get('title', '')}"
        progress.minutes, progress.needs, progress.about = (
            str(lesson.get(name, "")) for name in ("minutes", "needs", "about")
        )
        progress.core = "core_minutes" in lesson


def _released(notebook: Path) -> list[list[Any]]:
    """Id, digest, name and points of each cell as it was handed out, where that is known."""
    folder = notebook.resolve().parent
    try:
        tree = json.loads((folder.parent / ".release.json").read_bytes())
        cells: list[list[Any]] = tree["cells"][f"{folder.name}/{notebook.name}"]
        return cells if all(len(cell) >= 4 for cell in cells) else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _restore_names(cells: list[dict[str, Any]], released: list[list[Any]]) -> None:
    """Give cells that lost nbgrader's metadata their names again."""
    ours = [cell.setdefault("metadata", {}).get("nbgrader", {}) for cell in cells]
    texts = [
        (cell["cell_type"], text_of(cell), str(of_cell.get("grade_id", "")))
        for cell, of_cell in zip(cells, ours)
    ]
    given = [(text, name, points) for _, text, name, points, *_ in released]
    for at, metadata in reading.lost_metadata(texts, given).items():
        cells[at]["metadata"]["nbgrader"] = metadata


def _count(cell: dict[str, Any], progress: Progress, released: set[str]) -> None:
    source, metadata = text_of(cell), cell.get("metadata", {})
    ours = metadata.get("nbgrader", {})
    name = str(ours.get("grade_id", ""))
    if ours.get("solution"):
        progress.exercises += 1
        progress.cells[name] = f"{progress.link}#cell-id={cell.get('id', '')}"
        code = cell["cell_type"] == "code"
        if is_begun(cell) and reading.digest(source, code) not in released:
            progress.begun += 1
        else:
            progress.untouched.append(name)
    elif ours.get("grade") and has_code(source):
        progress.checks += 1
        name = name.removeprefix("test_")
        why = _why_not(cell)
        if not why:
            progress.passing += 1
        elif name not in progress.untouched:
            progress.left.append((name, f"{progress.link}#cell-id={cell.get('id', '')}", why))
    elif "puzzle" in metadata.get("tags", []):
        shown = json.dumps(cell.get("outputs", []))
        progress.puzzle_solved = SOLVED in shown or tr(SOLVED) in shown


def _why_not(cell: dict[str, Any]) -> str:
    """Why a check does not pass, in a sentence; "" where it passed when it ran last."""
    if not cell.get("execution_count"):
        return tr("its check has not run yet")
    outputs = cell.get("outputs", [])
    errors = [output for output in outputs if output.get("output_type") == "error"]
    if not errors:
        return ""
    for output in outputs:
        if _BOX in output.get("metadata", {}):
            text = output["data"]["text/plain"]
            lines = (text if isinstance(text, str) else "".join(text)).splitlines()[_ABOVE:]
            said = " ".join(lines[: lines.index("")] if "" in lines else lines[:-1])
            return re.match(r".*?[.?!](?=\s|$)|.*", said, re.S)[0]  # type: ignore[index]
    return str(errors[-1].get("evalue") or errors[-1].get("ename") or tr("an error"))


def text_of(cell: dict[str, Any]) -> str:
    """The text of a cell, which a file may hold as a list of lines."""
    source = reading.plain_source(cell["source"])
    if source is None:
        raise TypeError("a cell without text")
    return source


def has_code(source: str) -> bool:
    """Whether a check does something here; hidden ones hold a comment only."""
    try:
        return bool(ast.parse(source).body)
    except (SyntaxError, ValueError):
        return True


def is_begun(cell: dict[str, Any]) -> bool:
    """Whether the student wrote something into a cell for answers.

    nbgrader keeps a checksum of the cell as it was handed out.
    """
    ours = cell["metadata"]["nbgrader"]
    graded = bool(ours.get("grade"))
    parts = [text_of(cell), ours.get("cell_type", cell["cell_type"])]
    parts += [str(graded), "True", "False", ours["grade_id"]]  # graded, for answers, not locked
    if graded:
        parts.append(str(float(ours["points"])))
    digest = hashlib.md5("".join(parts).encode("utf-8", "replace"), usedforsecurity=False)
    return digest.hexdigest() != ours.get("checksum")


def show_progress(folder: str = ".") -> None:
    """Show below the cell the progress of all lessons of a course folder, and the student's own
    package, once there is one."""
    from IPython.display import Markdown, display

    from .course_map import as_map, refresh
    from .own_frame import as_markdown

    notebooks = lesson_notebooks(Path(folder))
    with speaking(next(filter(None, map(words_in, (path.parent for path in notebooks))), "")):
        lessons = [progress_of(path) for path in notebooks]
        display(Markdown(refresh() + as_map(lessons) + as_markdown(Path(folder))))
