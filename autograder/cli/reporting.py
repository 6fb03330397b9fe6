"""The command that says what became of a class, or of several over the terms: report."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.cli.options import PATH, class_at, command, json_option, print_json, refuse_options
from autograder.errors import WrongUse
from autograder.text import plain_line

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.report.numbers import Report

CLASS, REQUESTS, SIMILAR, TERMS = "class", "requests", "similar", "terms"


@command(
    example="spring-class --names",
    statuses={0: "written or printed", 1: "requests are about nobody or nothing here (named)"},
)
@click.argument(
    "folder",
    type=PATH,
    metavar="DIR",
    help="the class, made with `autograder new-class`; for --about terms the folder that "
    "`autograder export --to terms` wrote",
)
@click.option(
    "--about",
    type=click.Choice([CLASS, REQUESTS, SIMILAR, TERMS]),
    default=CLASS,
    help="what the class can do; who asked for another look; submissions with code in common; "
    "exercises over terms",
)
@click.option("--names", is_flag=True, help="of a class: say who is who, quote flags as they are")
@click.option("--assignment", metavar="NAME", help="of similar: whose submissions")
@click.option(
    "--least",
    type=click.IntRange(1, 100),
    default=50,
    metavar="PERCENT",
    help="of similar: of one's own code that another one has",
)
@json_option("print all of it as JSON")
def report(
    *, folder: Path, about: str, names: bool, assignment: str | None, least: int, as_json: bool
) -> int:
    """Say what a class got right and wrong.

    Writes DIR/report.html and DIR/report.csv from DIR/grades.json: points by exercise, which
    exercises separate strong from weak, misconceptions, time-outs and crashes, and the
    submissions that need an eye. Students are numbered, not named.

    --about requests lists who asked for another look, and what changed since. It reads
    DIR/requests.csv and the tables in DIR/requests/, as a form of an LMS gives them, with the
    columns id (or an e-mail address or a name), assignment, exercise and text. The points of when a
    request was first listed are kept, so that grading again shows what became of it.

    --about similar lists submissions with code in common that was not handed out, for a person to
    look at: it is no grade, and students may work together. What was handed out, the course's own
    answers and what a tenth of the class has is taken out. Writes DIR/similar-ASSIGNMENT.csv, which
    holds names. Needs the extra "similar".

    --about terms compares terms in the order of their names: exercises that were hard in each, and
    known mistakes that at most half as many made once their sentence was another one.
    """
    if about != CLASS:
        refuse_options(f"--about {about}", {"--names": names})
    if about != SIMILAR:
        refuse_options(f"--about {about}", {"--assignment": assignment})
    if about == TERMS:
        return _over_terms(folder, as_json=as_json)
    its_class = class_at(folder)
    if about == REQUESTS:
        return _requests(its_class, as_json=as_json)
    if about == SIMILAR:
        if assignment is None:
            raise WrongUse("--about similar compares one assignment; name it with --assignment")
        return _similar(its_class, assignment, least, as_json=as_json)
    return _report(its_class, names=names, as_json=as_json)


def _report(its_class: ClassFolder, *, names: bool, as_json: bool) -> int:
    from autograder.report.class_report import write_report

    its_report = write_report(its_class, names=names)
    if as_json:
        print_json(its_report.tree())
        return 0
    print(
        f"{_count(its_report.submissions, 'submission')}, "
        f"{_count(its_report.students, 'student')}, "
        f"{_nothing(its_report)}"
        f"{len(its_report.need_an_eye)} need an eye, "
        f"{_count(len(its_report.misconceptions), 'misconception')} recognised."
    )
    print(f"page     {its_class.root}/report.html{' (holds names)' if names else ''}")
    print(f"numbers  {its_class.root}/report.csv")
    return 0


def _nothing(its_report: Report) -> str:
    missing = sum(assignment.nothing for assignment in its_report.assignments)
    return f"{missing} handed in nothing, " if missing else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _requests(its_class: ClassFolder, *, as_json: bool) -> int:
    from autograder.classroom.requests import look_at, table

    requested, problems = look_at(its_class)
    if as_json:
        print_json({"requests": [asdict(request) for request in requested], "problems": problems})
    else:
        changed = sum(request.changed for request in requested)
        print(f"{_count(len(requested), 'request')}, {changed} with other points since")
        if requested:
            print(table(requested))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _similar(its_class: ClassFolder, assignment: str, least: int, *, as_json: bool) -> int:
    from autograder.files import write_whole
    from autograder.report.similar import as_table, in_lines
    from autograder.report.similar import similar as compare

    def left_out(student: str) -> None:
        name = plain_line(student)
        print(f"{name} is left out: that code takes too long to be read", file=sys.stderr)

    pairs = compare(its_class, assignment, least / 100, left_out)
    path = its_class.root / f"similar-{assignment}.csv"
    write_whole(path, as_table(pairs))
    if as_json:
        print_json([asdict(pair) for pair in pairs])
        return 0
    print(f"{len(pairs)} pairs with {least} % or more of one's own code in common")
    if pairs:
        print(in_lines(pairs))
    print(f"pieces in {path}; look at both before you say anything")
    return 0


def _over_terms(store: Path, *, as_json: bool) -> int:
    from autograder.report import terms

    known = terms.terms_of(store)
    items, mistakes = terms.trends(store)
    if as_json:
        print_json(
            {
                "terms": known,
                "items": [{**asdict(item), "stays_hard": item.stays_hard} for item in items],
                "mistakes": [
                    {**asdict(mistake), "faded": list(mistake.faded)} for mistake in mistakes
                ],
            }
        )
        return 0
    print(f"terms: {', '.join(known)}")
    hard = [item for item in items if item.stays_hard]
    print(f"stay hard: {len(hard)} of {len(items)} exercises")
    for item in hard:
        print(f"  {item.assignment} {item.exercise}: {_listed(item.shares)} of the points")
    faded = [mistake for mistake in mistakes if mistake.faded]
    print(f"faded after another sentence: {len(faded)} of {len(mistakes)} mistakes")
    for mistake in faded:
        said = f"{mistake.assignment} {mistake.exercise} {mistake.name}"
        print(
            f"  {said}: {_listed(mistake.shares)}; another sentence in {', '.join(mistake.faded)}"
        )
    return 0


def _listed(shares: dict[str, float]) -> str:
    return ", ".join(f"{term} {share:.0%}" for term, share in sorted(shares.items()))
