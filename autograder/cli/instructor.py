"""The commands of an instructor's day around grading: new-class, collect, feedback, export, report.

Grading itself is in :mod:`autograder.cli.grading`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from autograder.cli.options import (
    add_class,
    add_command,
    add_course,
    class_of,
    course_of,
    print_json,
)

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.classroom.roster import Roster
    from autograder.lms.collect import Plan


def add_commands(commands: Any) -> None:
    """Add them to argparse's subparsers."""
    one = add_command(
        commands,
        "new-class",
        _new_class,
        help="make a class folder in nbgrader's layout",
        description="Make a class folder in nbgrader's layout, with every lesson released.",
        example="spring-class --roster students.csv",
        statuses={0: "made"},
    )
    one.add_argument("folder", type=Path, metavar="DIR", help="the folder to make")
    add_course(one)
    one.add_argument(
        "--roster", type=Path, metavar="FILE.csv", help="who is in it, as Moodle or Canvas lists it"
    )
    one.add_argument(
        "--column",
        action="append",
        metavar="OURS=THEIRS",
        help="which column of FILE.csv is our "
        "id, first_name, last_name, full_name, email, status or lms_id",
    )

    one.add_argument(
        "--short-answers",
        choices=["at_once", "when_graded"],
        default="at_once",
        help="when students learn whether a short answer is right; at_once lets whoever tries all "
        "choices find the right one",
    )

    one = add_command(
        commands,
        "release",
        _release,
        help="hand out the lessons whose turn it is, and hold back the others",
        description="Keep a lesson in DIR/held_back/ while the due date of an earlier one, whose "
        "solutions it brings, lies ahead, and in DIR/release/ from then on. Due dates stand in "
        "DIR/class.toml. `grade` and `collect` also hand out what has become due.",
        example="spring-class",
        statuses={0: "every lesson is where it belongs"},
    )
    add_class(one)
    one.add_argument("--json", action="store_true", help="print what was done, as JSON")

    one = add_command(
        commands,
        "collect",
        _collect,
        help="put submissions from an LMS's zip into a class",
        description="Put notebooks from zips of Moodle, Canvas or Gradescope, or from folders, "
        "into DIR/submitted/STUDENT/ASSIGNMENT/. The student follows from the path and "
        "DIR/roster.csv, the assignment from the notebook's name. Only a newer submission "
        "replaces one that is there; the older is kept below DIR/set_aside/.",
        example="spring-class submissions.zip --dry-run",
        statuses={
            0: "every notebook was taken or is there already",
            1: "some were left out (each is named)",
        },
    )
    add_class(one)
    one.add_argument("archive", type=Path, nargs="+", metavar="ARCHIVE", help="a zip or a folder")
    one.add_argument(
        "--assignment", metavar="NAME", help="only this one; takes notebooks of any name"
    )
    one.add_argument(
        "--layout",
        choices=["auto", "moodle", "canvas", "gradescope", "plain"],
        default="auto",
        help="how paths in the archive are made",
    )
    one.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
    one.add_argument("--json", action="store_true", help="print what becomes of each file, as JSON")

    one = add_command(
        commands,
        "feedback",
        _feedback,
        help="write the feedback pages again, for points given by hand",
        description="Write DIR/feedback/ again from what was graded, with the points and comments "
        "given in the Formgrader since. No student's code runs.",
        example="spring-class --assignment 02-query-key-value --zip pages.zip",
        statuses={
            0: "every submission has its page",
            1: "some were never graded, changed since or have no page (each is named)",
        },
    )
    add_class(one)
    one.add_argument("--assignment", action="append", metavar="NAME", help="only this one")
    one.add_argument(
        "--zip", type=Path, metavar="FILE", help="also pack the pages as Moodle takes them back"
    )
    one.add_argument("--json", action="store_true", help="print what was written as JSON")

    one = add_command(
        commands,
        "export",
        _export,
        help="write grades as an LMS imports them",
        description="Write the gradebook's points, those given by hand included and late "
        "penalties taken off, with the columns of an LMS.",
        example="spring-class --to canvas --template gradebook.csv",
        statuses={0: "written", 1: "written, and something is to be looked at (it is named)"},
    )
    add_class(one)
    one.add_argument(
        "--to", choices=["canvas", "moodle", "csv"], required=True, help="whose columns"
    )
    one.add_argument("--assignment", action="append", metavar="NAME", help="only this one")
    one.add_argument(
        "--template",
        type=Path,
        metavar="LMS.csv",
        help="the LMS's own export, to be filled: Canvas's gradebook, Moodle's grading worksheet",
    )
    one.add_argument(
        "--output", type=Path, metavar="FILE", help="a new file, instead of DIR/export-LMS.csv"
    )
    one.add_argument("--json", action="store_true", help="print what was written as JSON")

    one = add_command(
        commands,
        "report",
        _report,
        help="say what a class got right and wrong",
        description="Write DIR/report.html and DIR/report.csv from DIR/grades.json: points by "
        "exercise, which exercises separate strong from weak, misconceptions, time-outs and "
        "crashes, and the submissions that need an eye. Students are numbered, not named.",
        example="spring-class --names",
        statuses={0: "written"},
    )
    add_class(one)
    one.add_argument(
        "--names", action="store_true", help="say who is who, and quote flags as they are"
    )
    one.add_argument("--json", action="store_true", help="print all numbers, as JSON")


def _new_class(arguments: argparse.Namespace) -> int:
    from autograder.classroom.new_class import new_class

    roster = _roster(arguments)
    made = new_class(
        course_of(arguments), arguments.folder, roster=roster, short_answers=arguments.short_answers
    )
    print(f"The class is at {made.root}.")
    print(f"Hand out {made.root}/release/, collect into {made.root}/submitted/STUDENT/ASSIGNMENT/")
    print("with `autograder collect` or by hand,")
    print(f"then run: autograder grade {arguments.folder}")
    print("A lesson brings solutions of earlier ones: with due dates in class.toml,")
    print(f"`autograder release {arguments.folder}` holds it back until those are due.")
    return 0


def _release(arguments: argparse.Namespace) -> int:
    from autograder.classroom.held_back import settle

    folder = class_of(arguments)
    done = settle(folder)
    if arguments.json:
        print_json({"released": list(done.released), "held_back": done.held, "note": done.note})
        return 0
    for name in done.released:
        print(f"{name}: now in release/")
    for name, other in done.held.items():
        print(f"{name}: held back until {other} is due, {folder.due[other].isoformat(sep=' ')}")
    print(done.note or f"Hand out {folder.root}/release/.")
    return 0


def say_released(folder: ClassFolder, *, to: TextIO) -> None:
    """Hand out what has become due, and say so."""
    from autograder.classroom.held_back import release_due

    for name in release_due(folder):
        print(f"{name}: what it gives away is due, so it is in release/ now", file=to)


def _roster(arguments: argparse.Namespace) -> Roster | None:
    from autograder.classroom.roster import RosterError, import_roster

    pairs = [pair.partition("=") for pair in arguments.column or []]
    if any(not to or not name for to, _, name in pairs):
        raise RosterError("--column should be OURS=THEIRS, such as --column id=Matrikelnummer")
    if arguments.roster is None:
        if pairs:
            raise RosterError("--column is about --roster FILE.csv; name that too")
        return None
    roster, says = import_roster(arguments.roster, {to: name for to, _, name in pairs})
    print(f"roster: {len(roster.members)} students; {', '.join(says)}")
    return roster


def _collect(arguments: argparse.Namespace) -> int:
    from autograder.lms import collect

    folder = class_of(arguments)
    made = collect.plan(
        folder, arguments.archive, assignment=arguments.assignment, layout=arguments.layout
    )
    aside = [] if arguments.dry_run else collect.carry_out(folder, made)
    if not arguments.dry_run:
        say_released(folder, to=sys.stderr if arguments.json else sys.stdout)
    lost = [one for one in made.decisions if one.action == collect.LEFT_OUT]
    notebooks = [one for one in lost if one.path.casefold().endswith((".ipynb", ".zip"))]
    if arguments.json:
        print_json({**collect.as_tree(made), "set_aside": aside})
    else:
        _say(made, aside, dry_run=arguments.dry_run)
    return 1 if notebooks else 0


def _say(made: Plan, aside: list[str], *, dry_run: bool) -> None:
    from autograder.lms import collect

    for name, layout in made.layouts.items():
        print(f"{name}: layout {layout.name}, by the pattern\n  {layout.pattern.pattern}")
    for one in made.decisions:
        if one.action == collect.LEFT_OUT:
            print(f"{one.path}\n  left out: {one.note}")
        elif dry_run or one.action == collect.OLDER or one.note:
            about = ", ".join(text for text in (one.late, one.note) if text)
            print(f"{one.path}\n  {one.action}: {one.to}{' (' + about + ')' if about else ''}")
    for path in aside:
        print(f"kept aside: {path}")
    said = [f"{made.count(collect.TAKE)} new", f"{made.count(collect.REPLACE)} newer"]
    said += [f"{made.count(collect.UNCHANGED)} unchanged", f"{made.count(collect.OLDER)} older"]
    said += [f"{made.count(collect.LEFT_OUT)} left out"]
    print(f"{', '.join(said)}.{' Nothing was written.' * dry_run}")


def _feedback(arguments: argparse.Namespace) -> int:
    from autograder.marking.hand_back import write_pages, zip_for_lms

    folder = class_of(arguments)
    done = write_pages(folder, arguments.assignment)
    known = zip_for_lms(folder, done.pages, arguments.zip) if arguments.zip is not None else 0
    if arguments.json:
        tree = {
            "pages": [str(path.relative_to(folder.root)) for path in done.pages],
            "zip": None if arguments.zip is None else str(arguments.zip),
            "as_moodle_named_them": known,
            "not_graded": done.not_graded,
            "problems": done.problems,
        }
        print_json(tree)
    else:
        print(f"{len(done.pages)} pages in {folder.root}/feedback/STUDENT/ASSIGNMENT/")
        if arguments.zip is not None:
            print(f"{arguments.zip}: {known} of them in folders as Moodle named them")
    for name in done.not_graded:
        print(f"no page: {name} was not graded, or changed since; grade it", file=sys.stderr)
    for name in done.problems:
        print(f"no page: {name}", file=sys.stderr)
    return 1 if done.not_graded or done.problems else 0


def _export(arguments: argparse.Namespace) -> int:
    from autograder.files import write_whole
    from autograder.lms.canvas import canvas
    from autograder.lms.export import ExportError, plain
    from autograder.lms.marks import marks
    from autograder.lms.moodle import moodle

    folder = class_of(arguments)
    if arguments.output is not None and arguments.output.exists():
        raise ExportError(f"{arguments.output} exists already; name another file")
    found = marks(folder, arguments.assignment)
    if arguments.to == "csv":
        if arguments.template is not None:
            raise ExportError("--to csv fills no template; leave --template out")
        made = plain(found)
    else:
        fill = canvas if arguments.to == "canvas" else moodle
        made = fill(folder, found, arguments.template)
    target = arguments.output or folder.root / f"export-{arguments.to}.csv"
    write_whole(target, made.text)
    if arguments.json:
        print_json({"file": str(target), **{k: v for k, v in asdict(made).items() if k != "text"}})
    else:
        print(f"{made.rows} rows with points in {target}")
        for note in made.notes:
            print(note, file=sys.stderr)
    return 1 if made.notes else 0


def _report(arguments: argparse.Namespace) -> int:
    from autograder.report.class_report import write_report

    folder = class_of(arguments)
    report = write_report(folder, names=arguments.names)
    if arguments.json:
        print_json(report.tree())
        return 0
    print(
        f"{_count(report.submissions, 'submission')}, {_count(report.students, 'student')}, "
        f"{len(report.need_an_eye)} need an eye, "
        f"{_count(len(report.misconceptions), 'misconception')} recognised."
    )
    print(f"page     {folder.root}/report.html{' (holds names)' if arguments.names else ''}")
    print(f"numbers  {folder.root}/report.csv")
    return 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
