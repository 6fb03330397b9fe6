"""The commands with which a course begins: new-course, new-lesson, import-nbgrader."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.cli.options import PATH, command, course_at, course_option


@command(example="my-course", statuses={0: "made"})
@click.argument("folder", type=PATH, metavar="DIR", help="the folder to make")
def new_course(*, folder: Path) -> int:
    """Make a course of your own to begin with.

    It has one lesson on another subject, with one exercise, known mistakes and alternatives, which
    can be built, tried and graded at once. Write over it.
    """
    from autograder.authors.new_course import new_course as make

    [lesson] = make(folder).lessons
    print(f"The course is at {folder}; write over {folder}/lessons/{lesson.folder}/.")
    print("There `autograder build` makes what students get, and `autograder trial` tries it.")
    return 0


@command(example="weighted-mean", statuses={0: "made"})
@click.argument("name", metavar="NAME", help="of the lesson, without a number")
@course_option
def new_lesson(*, name: str, course: Path | None) -> int:
    """Add a lesson to a course, to write over.

    It has one exercise, called as the lesson is, with known mistakes and alternatives, and becomes
    the last lesson in course.toml.
    """
    from autograder.authors.new_course import new_lesson as make

    made = make(course_at(course), name)
    print(f"The lesson is at {made}, and in course.toml.")
    print(f"Write it, then run: autograder build --lesson {made.name.partition('-')[0]}")
    return 0


@command(
    example="nbgrader-course/source my-course",
    statuses={0: "made", 1: "made, and something of it is left out (each is named)"},
)
@click.argument(
    "source", type=PATH, metavar="SOURCE", help="a source notebook, or a folder of them"
)
@click.argument("folder", type=PATH, metavar="DIR", help="the course to make")
def import_nbgrader(*, source: Path, folder: Path) -> int:
    """Make a course of nbgrader's source notebooks.

    Their answers, hidden tests and points are taken over, and graded in the sandbox; known mistakes
    can be added. The solutions are run, without a sandbox: they are your own code. A test that the
    solution does not pass when it runs apart from the student's code is left out, and said.
    """
    from autograder.authors.nbgrader_notebooks import import_notebooks

    made = import_notebooks(source, folder)
    print("\n".join([*made.remarks, f"{len(made.lessons)} lessons are in {folder}/lessons/."]))
    print(f"Now, in {folder}: autograder build, then autograder new-class CLASS")
    return 1 if made.remarks else 0
