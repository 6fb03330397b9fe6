"""Make the demonstration class: ``python demo/make_class.py DIR``.

The students of ``students.toml`` hand in notebooks put together from the course's own
solutions, alternatives and misconceptions, the way a class does: right, wrong in typical ways,
late, untouched, hostile, and broken files.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.classroom.folder import ClassFolder
from autograder.classroom.late import write_timestamp
from autograder.classroom.new_class import new_class
from autograder.classroom.roster import Member, Roster
from autograder.course.implementations import Implementation, alternatives, misconceptions
from autograder.course.lessons import Course, Lesson
from autograder.notebooks import grade_id, is_answer, is_written

HERE = Path(__file__).resolve().parent
CLASS = tomllib.loads((HERE / "students.toml").read_text(encoding="utf-8"))

#: What the class settings say in place of what a new class begins with: lateness costs something.
PER_DAY = ("per_day = 0", "per_day = 10")


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
    """The released notebook with a student's answers typed in, all others solved.

    Args:
        lesson: whose notebook it is.
        released: the notebook as it was handed out.
        work: as ``students.toml`` says it.
    """
    notebook = nbformat.read(released, as_version=4)
    solved = dict(lesson.exercises)
    for exercise, name in work.get("instead", {}).items():
        solved[exercise] = implementation(lesson, exercise, name).source
    blank = work.get("blank", [])
    for cell in notebook.cells:
        name = grade_id(cell)
        if is_answer(cell) and blank != "all" and name not in blank:
            cell.source = solved[name]
        elif is_written(cell) and "written" in work:
            cell.source = work["written"]
    for number, source in enumerate(work.get("extra_cells", [])):
        notebook.cells.insert(3 + number, nbformat.v4.new_code_cell(source.strip()))
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
    else:
        told = {} if work == "solved" else work
        nbformat.write(filled_in(lesson, released, told), folder / told.get("file", target.name))


def roster() -> Roster:
    """Who is in the class."""
    names = ((student["id"], *student["name"].split()) for student in CLASS["student"])
    return Roster(tuple(Member(*name) for name in names))


def set_due(made: ClassFolder, due: datetime) -> ClassFolder:
    """The class with this due date for every lesson, and with a price for being late."""
    settings = made.root / "class.toml"
    dates = "".join(
        f'\n"{name}" = {due.isoformat(timespec="seconds")}' for name in made.assignments
    )
    text = settings.read_text(encoding="utf-8").replace("[due]", f"[due]{dates}").replace(*PER_DAY)
    settings.write_text(text, encoding="utf-8")
    return ClassFolder.open(made.root)


def main() -> None:
    """Replace the class at the given folder."""
    root = Path(sys.argv[1])
    course = Course.load(HERE.parent)
    lessons = tuple(course.lesson(name) for name in CLASS["lessons"])
    if root.exists():
        if not (root / "class.toml").exists():
            sys.exit(f"{root} exists and is no class; name another folder")
        shutil.rmtree(root)
    due = datetime.now(UTC) - timedelta(days=3)
    made = set_due(new_class(replace(course, lessons=lessons), root, roster=roster()), due)
    for student in CLASS["student"]:
        for lesson in lessons:
            work = student.get(lesson.folder, student["otherwise"])
            if work == "nothing":
                continue
            folder = made.root / "submitted" / student["id"] / lesson.folder
            hand_in(lesson, made.root / "release", folder, work)
            late = timedelta(days=student.get("late_days", 0)) or -timedelta(hours=1)
            write_timestamp(folder, due + late)
    print(f"{len(CLASS['student'])} students, {len(lessons)} lessons: see demo/students.toml")


if __name__ == "__main__":
    main()
