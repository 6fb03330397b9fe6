"""The commands of who writes lessons: build, lint."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from autograder.cli.options import add_command, add_course, course_of, print_json


def add_commands(commands: Any) -> None:
    """Add them to argparse's subparsers."""
    one = add_command(
        commands,
        "build",
        _build,
        help="make course/ and solutions/ from lessons/",
        description="Make build/source, course/ and solutions/ from lessons/.",
        example="--lesson 03",
        statuses={0: "made"},
    )
    add_course(one)
    one.add_argument("--lesson", metavar="NAME", help="only this lesson, as 03 or its folder")
    one.add_argument("--into", type=Path, metavar="DIR", help="write there instead")

    one = add_command(
        commands,
        "lint",
        _lint,
        help="find the mistakes that authors of exercises make",
        description="Look at the exercises, tests and catalogues of lessons/.",
        example="03",
        statuses={0: "nothing found", 1: "something found"},
    )
    one.add_argument("lesson", nargs="*", metavar="LESSON", help="as 03 or its folder; all else")
    add_course(one)
    one.add_argument("--json", action="store_true", help="print what was found as JSON")


def _build(arguments: argparse.Namespace) -> int:
    from autograder.build.build import build

    course = course_of(arguments)
    build(course, arguments.into or course.root, only=arguments.lesson)
    return 0


def _lint(arguments: argparse.Namespace) -> int:
    from autograder.authors.lint import lint

    course = course_of(arguments)
    lessons = [course.lesson(name) for name in arguments.lesson] or list(course.lessons)
    found = [text for lesson in lessons for text in lint(lesson)]
    if arguments.json:
        print_json({"lessons": [lesson.folder for lesson in lessons], "found": found})
    else:
        print("\n".join(found) or f"{len(lessons)} lessons: nothing to mend")
    return 1 if found else 0
