"""Course folders as students get them, of the tiny course; solved notebooks are not run."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.build.build import generate_release, nbgrader_config, write_source
from autograder.build.start_page import write_start_page
from autograder.classroom.new_gradebook import begin_gradebook
from autograder.course.lessons import Course
from autograder.course.release import record_release
from autograder.course.standalone import write_kit
from autograder.course.translation import course_in
from autograder.notebooks import grade_id

from .tiny import LESSON, tiny_course

#: The lesson's notebook in a course folder.
TINY = "01-tiny/tiny.ipynb"


def handed_out(root: Path, text: str = LESSON, language: str = "en") -> Path:
    """A course folder, ``root/course``, with the tiny lesson made from ``text``."""
    tiny_course(root)
    (root / "lessons" / "01-tiny" / "tiny.py").write_text(text)
    course, _ = course_in(Course.load(root), language)
    db_url = f"sqlite:///{root}/gradebook.db"
    begin_gradebook(db_url)
    config = nbgrader_config(root, db_url)
    config.CourseDirectory.source_directory = "build/source"
    config.CourseDirectory.release_directory = "course"
    for lesson in course.lessons:
        write_source(lesson, root / "build" / "source" / lesson.folder)
        generate_release(config, lesson.folder)
    write_start_page(root / "course", course)
    write_kit(root / "course")
    record_release(root / "course", course.package)
    return root / "course"


def read(path: Path) -> NotebookNode:
    """A notebook file."""
    return nbformat.read(path, as_version=4)


def cell_named(notebook: NotebookNode, name: str) -> NotebookNode:
    """The cell with that grade_id."""
    return next(cell for cell in notebook.cells if grade_id(cell) == name)


def type_in(path: Path, **answers: str) -> None:
    """Change cells of a notebook file by their grade_id, and nothing else."""
    notebook = read(path)
    for name, source in answers.items():
        cell_named(notebook, name).source = source
    nbformat.write(notebook, path)


def everything_in(folder: Path) -> dict[str, bytes]:
    """The files below a folder and what they hold, without what Python leaves there."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
