"""The command that makes what students get: build."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.cli.options import PATH, command, course_at, course_option, exercises_of
from autograder.errors import WrongUse


@command(example="--lesson 03", statuses={0: "made"})
@course_option
@click.option("--lesson", metavar="NAME", help="only this lesson, as 03 or its folder")
@click.option("--exercise", metavar="NAME", help="only the lesson of this exercise")
@click.option("--into", type=PATH, metavar="DIR", help="write there instead")
@click.option("--language", metavar="XX", help="with --into: in which, such as de")
def build(
    *,
    course: Path | None,
    lesson: str | None,
    exercise: str | None,
    into: Path | None,
    language: str | None,
) -> int:
    """Make course/ and solutions/ from lessons/.

    Makes build/source, which grading uses, on the way. Runs what a change can have changed and
    nothing else. With --language the start page and all boxes are in that language, and the lessons
    that are translated.
    """
    from autograder.authors.trial import unproved
    from autograder.build import build as building
    from autograder.course.languages import ask_for_language
    from autograder.course.translation import course_in

    its_course = course_at(course)
    if exercise is not None:
        [(its_lesson, _), *_] = exercises_of(its_course, (lesson,) if lesson else (), (exercise,))
        lesson = its_lesson.folder
    if language is not None:
        if into is None:
            raise WrongUse("say with --into where the course in another language goes")
        its_course, _ = course_in(its_course, ask_for_language(language, "--language"))
    building.build(its_course, into or its_course.root, only=lesson)
    for built in its_course.lessons if lesson is None else [its_course.lesson(lesson)]:
        if into is None and (names := unproved(built)):
            print(f"now: autograder trial {built.folder[:2]} --changed ({len(names)} exercises)")
    return 0
