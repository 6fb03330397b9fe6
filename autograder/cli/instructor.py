"""The commands of an instructor's day around grading: new-class, feedback, export, report.

Collecting is in :mod:`autograder.cli.collecting`, grading itself in :mod:`autograder.cli.grading`.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from autograder.cli.options import (
    PATH,
    assignments_option,
    class_argument,
    class_at,
    command,
    course_at,
    course_option,
    json_option,
    lessons_of,
    print_json,
)
from autograder.errors import WrongUse

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.classroom.roster import Roster
    from autograder.report.numbers import Report


@command(example="spring-class --roster students.csv", statuses={0: "made"})
@click.argument("folder", type=PATH, metavar="DIR", help="the folder to make")
@course_option
@click.option(
    "--roster", type=PATH, metavar="FILE.csv", help="who is in it, as Moodle or Canvas lists it"
)
@click.option(
    "--column",
    multiple=True,
    metavar="OURS=THEIRS",
    help="which column of FILE.csv is our "
    "id, first_name, last_name, full_name, email, status or lms_id",
)
@click.option(
    "--short-answers",
    type=click.Choice(["at_once", "when_graded"]),
    default="at_once",
    help="when students learn whether a short answer is right; at_once lets whoever tries all "
    "choices find the right one",
)
@click.option(
    "--lesson",
    multiple=True,
    metavar="NAME",
    help="only this lesson, as 03 or its folder; once for each; all of them when not given",
)
def new_class(
    *,
    folder: Path,
    course: Path | None,
    roster: Path | None,
    column: tuple[str, ...],
    short_answers: str,
    lesson: tuple[str, ...],
) -> int:
    """Make a class folder in nbgrader's layout.

    Every lesson is released in it, or those that are named.
    """
    from autograder.course.reading import lessons_read

    members = _roster(roster, column)
    whole = course_at(course)
    named = {one.folder for one in lessons_of(whole, lesson)}
    taught = replace(whole, lessons=tuple(one for one in whole.lessons if one.folder in named))
    with lessons_read(taught):
        from autograder.classroom import new_class as making  # takes seconds, too
    made = making.new_class(taught, folder, roster=members, short_answers=short_answers)
    print(f"The class is at {made.root}.")
    print(f"Hand out {made.root}/release/, collect into {made.root}/submitted/STUDENT/ASSIGNMENT/")
    print("with `autograder collect` or by hand,")
    print(f"then run: autograder grade {folder}")
    print("A lesson brings solutions of earlier ones: with due dates in class.toml,")
    print(f"`autograder release {folder}` holds it back until those are due.")
    return 0


@command(example="spring-class", statuses={0: "every lesson is where it belongs"})
@class_argument
@json_option("print what was done, as JSON")
def release(*, folder: Path, as_json: bool) -> int:
    """Hand out the lessons whose turn it is, and hold back the others.

    Keeps a lesson in DIR/held_back/ while the due date of an earlier one, whose solutions it
    brings, lies ahead, and in DIR/release/ from then on. Due dates stand in DIR/class.toml. `grade`
    and `collect` also hand out what has become due.
    """
    from autograder.classroom.held_back import settle

    its_class = class_at(folder)
    done = settle(its_class)
    if as_json:
        print_json({"released": list(done.released), "held_back": done.held, "note": done.note})
        return 0
    for name in done.released:
        print(f"{name}: now in release/")
    for name, other in done.held.items():
        due = its_class.due[other].isoformat(sep=" ")
        print(f"{name}: held back until {other} is due, {due}")
    print(done.note or f"Hand out {its_class.root}/release/.")
    return 0


def say_released(folder: ClassFolder, *, to: TextIO) -> None:
    """Hand out what has become due, and say so."""
    from autograder.classroom.held_back import release_due

    for name in release_due(folder):
        print(f"{name}: what it gives away is due, so it is in release/ now", file=to)


def _roster(file: Path | None, columns: tuple[str, ...]) -> Roster | None:
    from autograder.classroom.roster import RosterError, import_roster

    theirs = _theirs(columns)
    if file is None:
        if theirs:
            raise RosterError("--column is about --roster FILE.csv; name that too")
        return None
    roster, says = import_roster(file, theirs)
    print(f"roster: {len(roster.members)} students; {', '.join(says)}")
    return roster


def _theirs(columns: tuple[str, ...]) -> dict[str, str]:
    """What ``--column`` says, by our names."""
    pairs = [pair.partition("=") for pair in columns]
    if any(not to or not name for to, _, name in pairs):
        raise WrongUse("--column should be OURS=THEIRS, such as --column id=Matrikelnummer")
    return {to: name for to, _, name in pairs}


@command(
    example="spring-class --assignment 02-query-key-value --zip pages.zip",
    statuses={
        0: "every submission has its page",
        1: "some were never graded, changed since or have no page (each is named)",
    },
)
@class_argument
@assignments_option
@click.option(
    "--zip",
    "packed",
    type=PATH,
    metavar="FILE",
    help="also pack the pages as Moodle takes them back",
)
@json_option("print what was written as JSON")
def feedback(
    *, folder: Path, assignment: tuple[str, ...], packed: Path | None, as_json: bool
) -> int:
    """Write the feedback pages again, for points given by hand.

    Writes DIR/feedback/ again from what was graded, with the points and comments given in the
    Formgrader since. No student's code runs.
    """
    from autograder.marking.hand_back import write_pages, zip_for_lms

    its_class = class_at(folder)
    done = write_pages(its_class, assignment)
    known = zip_for_lms(its_class, done.pages, packed) if packed is not None else 0
    if as_json:
        tree = {
            "pages": [str(path.relative_to(its_class.root)) for path in done.pages],
            "zip": None if packed is None else str(packed),
            "as_moodle_named_them": known,
            "not_graded": done.not_graded,
            "problems": done.problems,
        }
        print_json(tree)
    else:
        print(f"{len(done.pages)} pages in {its_class.root}/feedback/STUDENT/ASSIGNMENT/")
        if packed is not None:
            print(f"{packed}: {known} of them in folders as Moodle named them")
    for name in done.not_graded:
        print(f"no page: {name} was not graded, or changed since; grade it", file=sys.stderr)
    for name in done.problems:
        print(f"no page: {name}", file=sys.stderr)
    return 1 if done.not_graded or done.problems else 0


@command(
    example="spring-class --to canvas --template gradebook.csv",
    statuses={0: "written", 1: "written, and something is to be looked at (it is named)"},
)
@class_argument
@click.option(
    "--to",
    type=click.Choice(["canvas", "moodle", "csv", "final"]),
    required=True,
    help="whose columns",
)
@assignments_option
@click.option(
    "--template",
    type=PATH,
    metavar="LMS.csv",
    help="the LMS's own export, to be filled: Canvas's gradebook, Moodle's grading worksheet",
)
@click.option(
    "--column",
    multiple=True,
    metavar="OURS=THEIRS",
    help="which column of LMS.csv is our id, first_name, last_name, full_name, email, lms_id, "
    "grade, maximum, comments, or an assignment's points",
)
@click.option(
    "--output", type=PATH, metavar="FILE", help="a new file, instead of DIR/export-LMS.csv"
)
@json_option("print what was written as JSON")
def export(
    *,
    folder: Path,
    to: str,
    assignment: tuple[str, ...],
    template: Path | None,
    column: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> int:
    """Write grades as an LMS imports them.

    Writes the gradebook's points, those given by hand included and late penalties taken off,
    with the columns of an LMS. [grade] in DIR/class.toml says another maximum, and for --to final
    weights, the best n and what written parts need; the table shows each step.
    """
    from autograder.files import write_whole
    from autograder.lms.canvas import canvas
    from autograder.lms.export import ExportError, plain
    from autograder.lms.final import final
    from autograder.lms.moodle import moodle
    from autograder.lms.standings import standings

    its_class = class_at(folder)
    if output is not None and output.exists():
        raise ExportError(f"{output} exists already; name another file")
    if to in ("csv", "final") and template is not None:
        raise ExportError(f"--to {to} fills no template; leave --template out")
    theirs = _theirs(column)
    if theirs and template is None:
        raise ExportError("--column is about --template LMS.csv; name that too")
    class_standings = standings(its_class, assignment)
    if to == "final":
        made = final(its_class, class_standings)
    else:
        maximum = its_class.final_grade.maximum
        class_standings = [standing.scaled_to(maximum) for standing in class_standings]
        if to == "csv":
            made = plain(class_standings)
        else:
            fill = {"canvas": canvas, "moodle": moodle}[to]
            made = fill(its_class, class_standings, template, theirs)
        if maximum is not None:
            made.rule = f"Points are their share of all points, times {maximum:g}."
    target = output or its_class.root / f"export-{to}.csv"
    write_whole(target, made.text)
    if as_json:
        print_json({"file": str(target), **{k: v for k, v in asdict(made).items() if k != "text"}})
    else:
        print(f"{made.rows} rows with points in {target}")
        if made.rule:
            print(made.rule)
        for note in made.notes:
            print(note, file=sys.stderr)
    return 1 if made.notes else 0


@command(
    example="spring-class",
    statuses={0: "listed", 1: "some are about nobody or nothing here (each is named)"},
)
@class_argument
@json_option("print the requests as JSON")
def requests(*, folder: Path, as_json: bool) -> int:
    """List who asked for another look, and what changed since.

    Reads DIR/requests.csv and the tables in DIR/requests/, as a form of an LMS gives them, with the
    columns id (or an e-mail address or a name), assignment, exercise and text. The points of when a
    request was first listed are kept, so that a regrade shows what became of it.
    """
    from autograder.classroom.requests import look_at, table

    its_class = class_at(folder)
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


@command(example="spring-class --names", statuses={0: "written"})
@class_argument
@click.option("--names", is_flag=True, help="say who is who, and quote flags as they are")
@json_option("print all numbers, as JSON")
def report(*, folder: Path, names: bool, as_json: bool) -> int:
    """Say what a class got right and wrong.

    Writes DIR/report.html and DIR/report.csv from DIR/grades.json: points by exercise, which
    exercises separate strong from weak, misconceptions, time-outs and crashes, and the
    submissions that need an eye. Students are numbered, not named.
    """
    from autograder.report.class_report import write_report

    its_class = class_at(folder)
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
