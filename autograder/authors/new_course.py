"""A course to begin with, and a lesson more in one.

Both are copies of ``examples/statistics``, which builds, passes lint and trial, and grades. An
author writes over it.
"""

from __future__ import annotations

import keyword
import re
import shutil
from pathlib import Path

import autograder
from autograder.course.course_toml import read_course_toml
from autograder.course.lessons import Course
from autograder.diagnose.lock import LOCK_FILE
from autograder.errors import WrongUse
from autograder.files import LEFT_BY_TOOLS, holds_something, write_whole

#: The folder in the installed package that setup.py makes of the example.
IN_WHEEL = "example_course"

#: A lesson in course.toml.
ENTRY = """
[[lesson]]
folder = "{folder}"
title = "{title}"
minutes = {minutes}
needs = []
about = "What it is about, in a sentence."
"""

#: What using the example leaves in it.
_LEFT = shutil.ignore_patterns(*LEFT_BY_TOOLS, LOCK_FILE)


class NewCourseError(WrongUse):
    """It cannot be made there; the message says what to do."""


def new_course(root: Path) -> Course:
    """Lay the example out as a course of one's own.

    Args:
        root: the folder to make, or an empty one.

    Raises:
        NewCourseError: something is there; nothing is touched.
    """
    if holds_something(root):
        raise NewCourseError(f"{root} exists and is not empty; choose a new folder for the course")
    shutil.copytree(_example(), root / "lessons", ignore=_LEFT)
    return Course.load(root)


def new_lesson(course: Course, name: str) -> Path:
    """Add a lesson to a course, with one exercise that is called as the lesson is.

    Args:
        course: gets it as its last lesson, in ``course.toml`` too.
        name: such as ``weighted-mean``; the number before it is the next one.

    Returns:
        The lesson's folder.

    Raises:
        NewCourseError: it is no name for a lesson, or the course has one of that name; nothing is
            touched.
    """
    taken = {"misconceptions", "alternatives", *keyword.kwlist}
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or name in taken:
        raise NewCourseError(
            f"{name!r} is no name for a lesson; write it in small letters with hyphens, without "
            "its number, such as weighted-mean"
        )
    [like] = read_course_toml((_example() / "course.toml").read_text("utf-8")).lessons
    word = name.replace("-", "_")
    lessons = (*course.lessons, *course.drafts)
    if word in [lesson.notebook_name for lesson in lessons]:
        raise NewCourseError(f"the course has a lesson {name!r}; choose another name")
    number = max((lesson.number for lesson in lessons), default=0) + 1
    folder = course.root / "lessons" / f"{number:02d}-{name}"
    if folder.exists():
        raise NewCourseError(
            f"{folder} is there and not in course.toml; choose another name, or remove it"
        )
    shutil.copytree(_example() / like.folder, folder, ignore=_LEFT)
    (folder / f"{like.notebook}.py").rename(folder / f"{word}.py")
    for path in folder.glob("*.py"):
        path.write_text(re.sub(rf"\b{like.notebook}", word, path.read_text("utf-8")), "utf-8")
    title = name.replace("-", " ").capitalize()
    entry = ENTRY.format(folder=folder.name, title=title, minutes=like.minutes)
    listed = course.root / "lessons" / "course.toml"
    write_whole(listed, listed.read_text("utf-8").rstrip() + "\n" + entry)
    return folder


def _example() -> Path:
    """The ``lessons/`` of the example: of an installed package its own, of a clone the clone's."""
    package = Path(autograder.__file__).resolve().parent
    for folder in (package / IN_WHEEL, package.parent / "examples" / "statistics"):
        if (folder / "lessons").is_dir():
            return folder / "lessons"
    raise NewCourseError("this installation has no example in it; install the wheel of a release")
