"""The command that writes what leaves a class: export."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.cli.options import (
    PATH,
    assignments_option,
    class_argument,
    class_at,
    columns_named,
    command,
    json_option,
    print_json,
    refuse_options,
)
from autograder.errors import WrongUse

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder

CSV, FINAL = "csv", "final"
FEEDBACK, RELEASE, TERMS = "feedback", "release", "terms"


@command(
    example="spring-class --to canvas --template gradebook.csv",
    statuses={0: "written", 1: "written, and something is to be looked at (it is named)"},
)
@class_argument
@click.option(
    "--to",
    metavar="WHERE",
    required=True,
    help="canvas, moodle or another LMS that is installed, csv, final; feedback, release, terms",
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
    "--output",
    type=PATH,
    metavar="FILE",
    help="a new file, instead of DIR/export-LMS.csv; for feedback a zip of the pages as Moodle "
    "takes them back; for terms the folder for the results of all of them",
)
@click.option("--term", metavar="NAME", help="for terms: such as 2026-spring")
@json_option("print what was written as JSON")
def export(
    *,
    folder: Path,
    to: str,
    assignment: tuple[str, ...],
    template: Path | None,
    column: tuple[str, ...],
    output: Path | None,
    term: str | None,
    as_json: bool,
) -> int:
    """Write what leaves a class: grades for an LMS, pages, lessons.

    Grades are the gradebook's points, those given by hand included and late penalties taken off,
    with the columns of an LMS. [grade] in DIR/class.toml says another maximum, and for --to final
    weights, the best n and what written parts need; the table shows each step.

    --to feedback writes DIR/feedback/ again from what was graded, with the points and comments
    given by hand since. No student's code runs.

    --to release hands out the lessons whose turn it is, and holds back the others: a lesson is in
    DIR/held_back/ while the due date of an earlier one, whose solutions it brings, lies ahead, and
    in DIR/release/ from then on. Due dates stand in DIR/class.toml. `grade` and `collect` also hand
    out what has become due.

    --to terms keeps a class's results beside those of other terms: it writes
    FILE/term=NAME/ as Parquet, a row for each test of each submission, from DIR/grades.json.
    Students are a keyed hash, no names. Needs the extra "terms".
    """
    if to != TERMS:
        refuse_options(f"--to {to}", {"--term": term})
    if to in (FEEDBACK, RELEASE, TERMS):
        refuse_options(f"--to {to}", {"--template": template, "--column": column})
    if to in (RELEASE, TERMS):
        refuse_options(f"--to {to}", {"--assignment": assignment})
    if to == RELEASE:
        refuse_options(f"--to {to}", {"--output": output})
    its_class = class_at(folder)
    if to == FEEDBACK:
        return _feedback(its_class, assignment, output, as_json=as_json)
    if to == RELEASE:
        return _release(its_class, as_json=as_json)
    if to == TERMS:
        return _keep(its_class, output, term, as_json=as_json)
    filled = template, columns_named(column)
    return _grades(its_class, to, assignment, filled, output, as_json=as_json)


def _grades(
    its_class: ClassFolder,
    to: str,
    assignment: tuple[str, ...],
    filled: tuple[Path | None, dict[str, str]],
    output: Path | None,
    *,
    as_json: bool,
) -> int:
    from autograder.files import write_whole
    from autograder.lms.export import ExportError, plain
    from autograder.lms.final_table import final
    from autograder.lms.student_standings import standings
    from autograder.lms.systems import systems

    template, theirs = filled
    if output is not None and output.exists():
        raise ExportError(f"{output} exists already; name another file")
    if to in (CSV, FINAL) and template is not None:
        raise ExportError(f"--to {to} fills no template; leave --template out")
    if theirs and template is None:
        raise ExportError("--column is about --template LMS.csv; name that too")
    fills = {lms.name: lms.fill for lms in systems().values() if lms.fill}
    if to not in (CSV, FINAL, *fills):
        there = ", ".join([*fills, CSV, FINAL, FEEDBACK, RELEASE, TERMS])
        raise WrongUse(f"--to {to} is unknown; there are {there}")
    class_standings = standings(its_class, assignment)
    if to == FINAL:
        made = final(its_class, class_standings)
    else:
        maximum = its_class.final_grade.maximum
        class_standings = [standing.scaled_to(maximum) for standing in class_standings]
        if to == CSV:
            made = plain(class_standings)
        else:
            made = fills[to](its_class, class_standings, template, theirs)
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


def _feedback(
    its_class: ClassFolder, assignment: tuple[str, ...], packed: Path | None, *, as_json: bool
) -> int:
    from autograder.marking.hand_back import write_pages, zip_for_lms

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


def _release(its_class: ClassFolder, *, as_json: bool) -> int:
    from autograder.classroom.held_back import settle

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


def _keep(its_class: ClassFolder, store: Path | None, term: str | None, *, as_json: bool) -> int:
    if store is None or term is None:
        raise WrongUse("--to terms needs --output, a folder for all terms, and --term NAME")
    from autograder.classroom.grades_file import stream_entries
    from autograder.report import terms

    entries = stream_entries(its_class.root / "grades.json")
    number = terms.keep(store, term, entries, its_class.seed)
    if as_json:
        print_json({"store": str(store), "term": term, "submissions": number})
    else:
        print(f"{number} submissions of {term} in {store}")
    return 0
