"""Taking a mended lesson into a class, so that it can be graded again."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path

from autograder.build.build import write_source
from autograder.classroom.folder import ClassError, ClassFolder
from autograder.classroom.hand_out import release as hand_out
from autograder.classroom.held_back import lies_in
from autograder.course.bundle import Bundle
from autograder.course.lessons import Course
from autograder.course.translation import course_in
from autograder.files import untaken
from autograder.notebooks import grade_id


def refresh(folder: ClassFolder, course: Course, assignment: str) -> Path | None:
    """Take a lesson of the course into a class's ``source/`` and ``release/``.

    What was there is kept below ``set_aside/``. Exercises, tests and their points may have
    other contents; their names stay, since points in the gradebook hang on them.

    Returns:
        The folder that the former source was kept in; None when nothing had changed.

    Raises:
        ClassError: the class has no such assignment, or cells came or went.
    """
    old = folder.bundle(assignment)
    lesson = course_in(course, folder.language)[0].lesson(assignment)
    source = folder.root / "source" / assignment
    fresh = source.with_name(f".{assignment}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        write_source(lesson, fresh)
        new = Bundle.load(fresh)
        if _contents(fresh) == _contents(source):
            return None
        _refuse_other_cells(old, new, assignment)
        now = datetime.now().strftime("%Y-%m-%d-%H%M%S")
        kept = untaken(folder.set_aside / "lessons" / f"{assignment}-{now}")
        kept.mkdir(parents=True)
        os.replace(source, kept / "source")
        os.replace(fresh, source)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    release = lies_in(folder, assignment)
    try:
        if release.exists():
            shutil.copytree(release, kept / "release")
        hand_out(folder, assignment)
    except BaseException:
        os.replace(source, fresh)
        os.replace(kept / "source", source)
        shutil.rmtree(fresh)
        raise
    return kept


def _contents(folder: Path) -> dict[str, bytes]:
    """Its files, also those of the folder beside the notebook."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _refuse_other_cells(old: Bundle, new: Bundle, assignment: str) -> None:
    names = [{grade_id(cell) for cell in bundle.notebook.cells} - {""} for bundle in (old, new)]
    if names[0] == names[1] and old.notebook_name == new.notebook_name:
        return
    gone, come = sorted(names[0] - names[1]), sorted(names[1] - names[0])
    raise ClassError(
        f"{assignment}: cells came or went ({', '.join(['-' + name for name in gone])}"
        f"{', ' if gone and come else ''}{', '.join(['+' + name for name in come])}), and points "
        "in the gradebook hang on them; keep the names and mend their contents, or make a new class"
    )
