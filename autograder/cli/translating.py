"""The command of who translates: translate."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.cli.options import command, course_at, course_option
from autograder.errors import WrongUse


@command(example="02 --language de", statuses={0: "all is translated", 1: "some is not yet"})
@click.argument(
    "lesson",
    required=False,
    metavar="NAME",
    help="a lesson, as 02 or its folder; without one, what course.toml says",
)
@click.option("--engine", is_flag=True, help="the engine's own words, in place of a lesson")
@click.option("--language", required=True, metavar="XX", help="into which, such as de")
@course_option
def translate(*, lesson: str | None, engine: bool, language: str, course: Path | None) -> int:
    """Bring a catalogue of translations up to date.

    Writes XX.po beside the lesson's sources, or beside course.toml, for a translator's editor or
    any other: what is new is empty, what resembles a former text marked as fuzzy. What is there
    stays.
    """
    from babel import Locale, UnknownLocaleError

    from autograder.authors.translating import (
        course_template,
        engine_templates,
        fill_in,
        lesson_template,
        not_translated,
    )
    from autograder.course.translation import course_catalogue, engine_catalogues

    if lesson and engine:
        raise WrongUse("say one of the two: the name of a lesson, or --engine")
    try:
        Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        raise WrongUse(f"{language!r} is no language; say it as in de or pt_BR") from None
    if engine:
        brought = [*zip(engine_catalogues(language), engine_templates())]
    elif lesson:
        its_lesson = course_at(course).lesson(lesson)
        brought = [(its_lesson.path / f"{language}.po", lesson_template(its_lesson))]
    else:
        its_course = course_at(course)
        brought = [(course_catalogue(its_course, language), course_template(its_course))]
    some_left = False
    for path, template in brought:
        fill_in(path, template)
        left = not_translated(path, template)
        some_left |= bool(left)
        print(f"{path}: {len(left)} of {len(template)} messages to translate")
    return 1 if some_left else 0
