"""Make the demonstration class: ``python demo/make_class.py DIR``.

The students of ``students.toml`` hand in notebooks put together from the course's own
solutions, alternatives and misconceptions, the way a class does: right, partly right,
wrong in typical ways, untouched, and broken files.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.classroom.new_class import new_class
from autograder.course.implementations import Implementation, alternatives, misconceptions
from autograder.course.lessons import Course, Lesson
from autograder.notebooks import grade_id, is_answer, is_written

HERE = Path(__file__).resolve().parent


def implementation(lesson: Lesson, exercise: str, name: str) -> Implementation:
    """The misconception or alternative of that name.

    Raises:
        LookupError: the lesson has none.
    """
    for one in (*misconceptions(lesson), *alternatives(lesson)):
        if one.exercise == exercise and one.name == name:
            return one
    raise LookupError(f"students.toml: {lesson.folder} knows no {name!r} for {exercise}")


def filled_in(lesson: Lesson, released: Path, work: dict[str, Any]) -> NotebookNode:
    """The released notebook with a student's answers typed in.

    ``work`` may name exercises left as stubs (``blank``), replaced ones (``instead``) and
    the text of written answers (``written``); all others are solved.
    """
    notebook = nbformat.read(released, as_version=4)
    solved = dict(lesson.exercises)
    for exercise, name in work.get("instead", {}).items():
        solved[exercise] = implementation(lesson, exercise, name).source
    for cell in notebook.cells:
        name = grade_id(cell)
        if is_answer(cell) and name not in work.get("blank", []):
            cell.source = solved[name]
        elif is_written(cell) and "written" in work:
            cell.source = work["written"]
    return notebook


def hand_in(lesson: Lesson, release: Path, folder: Path, work: Any) -> None:
    """Put one submission into ``folder``."""
    folder.mkdir(parents=True)
    target = folder / f"{lesson.notebook_name}.ipynb"
    released = release / lesson.folder / target.name
    if work == "untouched":
        shutil.copy(released, target)
    elif work == "half a file":
        target.write_bytes(released.read_bytes()[:5000])
    elif work == "empty file":
        target.touch()
    elif work == "no notebook":
        (folder / "notes.txt").write_text("It is on my other laptop.\n", encoding="utf-8")
    elif work == "solved":
        nbformat.write(filled_in(lesson, released, {}), target)
    else:
        notebook = filled_in(lesson, released, work)
        for source in work.get("extra_cells", []):
            notebook.cells.insert(3, nbformat.v4.new_code_cell(source))
        nbformat.write(notebook, target)


def main() -> None:
    """Replace the class at the given folder."""
    root = Path(sys.argv[1])
    course = Course.load(HERE.parent)
    if root.exists():
        if not (root / "class.toml").exists():
            sys.exit(f"{root} exists and is no class; name another folder")
        shutil.rmtree(root)
    made = new_class(course, root)
    students = tomllib.loads((HERE / "students.toml").read_text(encoding="utf-8"))["student"]
    for student in students:
        for lesson in course.lessons:
            work = student.get(lesson.folder, student["otherwise"])
            folder = made.root / "submitted" / student["id"] / lesson.folder
            hand_in(lesson, made.root / "release", folder, work)
    print(f"{len(students)} students handed in {len(course.lessons)} lessons each")


if __name__ == "__main__":
    main()
