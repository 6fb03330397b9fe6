"""The commands of an instructor's day: collect, export, feedback, regrade."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_commands(commands: Any, grade: Callable[[argparse.Namespace], int]) -> None:
    """Add them to the command line.

    Args:
        commands: argparse's subparsers.
        grade: runs ``autograder grade``, which ``regrade`` ends with.
    """
    one = commands.add_parser(
        "collect",
        help="put submissions from an LMS's zip into a class",
        description="Put notebooks from zips of Moodle, Canvas or Gradescope, or from folders, "
        "into DIR/submitted/STUDENT/ASSIGNMENT/. The student follows from the path and "
        "DIR/roster.csv, the assignment from the notebook's name. Only a newer submission "
        "replaces one that is there; the older is kept below DIR/set_aside/.",
        epilog="example: autograder collect spring-class submissions.zip --dry-run. "
        "Exit status: 0 every notebook was taken or is there already, 1 some were left out (each "
        "is named), 2 wrong use, such as a damaged zip.",
    )
    one.add_argument("folder", type=Path, metavar="DIR")
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
    one.set_defaults(run=_collect)

    one = commands.add_parser(
        "feedback",
        help="write the feedback pages again, for points given by hand",
        description="Write DIR/feedback/ again from what was graded, with the points and comments "
        "given in the Formgrader since. No student's code runs.",
        epilog="example: autograder feedback spring-class --assignment 02-query-key-value "
        "--zip pages.zip. Exit status: 0 every submission has its page, 1 some were never graded "
        "or changed since (each is named), 2 wrong use.",
    )
    one.add_argument("folder", type=Path, metavar="DIR")
    one.add_argument("--assignment", action="append", metavar="NAME", help="only this one")
    one.add_argument(
        "--zip", type=Path, metavar="FILE", help="also pack the pages as Moodle takes them back"
    )
    one.set_defaults(run=_feedback)

    one = commands.add_parser(
        "export",
        help="write grades as an LMS imports them",
        description="Write the gradebook's points, those given by hand included and late "
        "penalties taken off, with the columns of an LMS.",
        epilog="example: autograder export spring-class --to canvas --template gradebook.csv. "
        "Exit status: 0 written, 1 written, and something is to be looked at (it is named), "
        "2 wrong use.",
    )
    one.add_argument("folder", type=Path, metavar="DIR")
    one.add_argument("--to", choices=["canvas", "moodle", "csv"], required=True)
    one.add_argument("--assignment", action="append", metavar="NAME", help="only this one")
    one.add_argument(
        "--template",
        type=Path,
        metavar="LMS.csv",
        help="the LMS's own export, to be filled: Canvas's gradebook, Moodle's grading worksheet",
    )
    one.add_argument(
        "--output", type=Path, metavar="FILE", help="write there, not to DIR/export-LMS.csv"
    )
    one.set_defaults(run=_export)

    one = commands.add_parser(
        "regrade",
        help="take a mended lesson into a class and grade it again",
        description="Take a lesson's tests from the course into DIR/source/ and DIR/release/, "
        "grade the assignment again, and say whose points change. The former source is kept "
        "below DIR/set_aside/.",
        epilog="example: autograder regrade spring-class --assignment 02-query-key-value. "
        "Exit status: as of `autograder grade`.",
    )
    one.add_argument("folder", type=Path, metavar="DIR")
    one.add_argument("--assignment", required=True, metavar="NAME")
    one.add_argument("--course", type=Path, metavar="DIR", help="the course's folder")
    one.add_argument("--workers", type=int, metavar="N", help="how many at a time")
    one.add_argument("--sandbox", choices=["auto", "bubblewrap", "none"], default="auto")
    one.add_argument("--quiet", action="store_true", help="print the result only")
    one.set_defaults(run=_regrade, grade=grade)


def roster_from(arguments: argparse.Namespace) -> Any:
    """The roster that ``new-class --roster`` names, or None."""
    from autograder.roster import RosterError, import_roster

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
    from autograder import collect
    from autograder.class_folder import ClassFolder

    folder = ClassFolder.open(arguments.folder)
    made = collect.plan(
        folder, arguments.archive, assignment=arguments.assignment, layout=arguments.layout
    )
    aside = [] if arguments.dry_run else collect.carry_out(folder, made)
    lost = [one for one in made.decisions if one.action == collect.LEFT_OUT]
    notebooks = [one for one in lost if one.path.casefold().endswith((".ipynb", ".zip"))]
    if arguments.json:
        print(json.dumps({**collect.as_tree(made), "set_aside": aside}, indent=1))
        return 1 if notebooks else 0
    for name, layout in made.layouts.items():
        print(f"{name}: layout {layout.name}, by the pattern\n  {layout.pattern.pattern}")
    for one in made.decisions:
        if one.action == collect.LEFT_OUT:
            print(f"{one.path}\n  left out: {one.note}")
        elif arguments.dry_run or one.action == collect.OLDER or one.note:
            about = ", ".join(text for text in (one.late, one.note) if text)
            print(f"{one.path}\n  {one.action}: {one.to}{' (' + about + ')' if about else ''}")
    for path in aside:
        print(f"kept aside: {path}")
    said = [f"{made.count(collect.TAKE)} new", f"{made.count(collect.REPLACE)} newer"]
    said += [f"{made.count(collect.UNCHANGED)} unchanged", f"{made.count(collect.OLDER)} older"]
    print(f"{', '.join(said)}, {len(lost)} left out.{' Nothing was written.' * arguments.dry_run}")
    return 1 if notebooks else 0


def _feedback(arguments: argparse.Namespace) -> int:
    from autograder.class_folder import ClassFolder
    from autograder.handing_back import write_pages, zip_for_lms

    folder = ClassFolder.open(arguments.folder)
    done = write_pages(folder, arguments.assignment)
    print(f"{len(done.pages)} pages in {folder.root}/feedback/STUDENT/ASSIGNMENT/")
    if arguments.zip is not None:
        known = zip_for_lms(folder, done.pages, arguments.zip)
        print(f"{arguments.zip}: {known} of them in folders as Moodle named them")
    for name in done.not_graded:
        print(f"no page: {name} was not graded, or changed since; grade it", file=sys.stderr)
    return 1 if done.not_graded else 0


def _export(arguments: argparse.Namespace) -> int:
    from autograder import export
    from autograder.class_folder import ClassFolder
    from autograder.whole_file import write_whole

    folder = ClassFolder.open(arguments.folder)
    found = export.marks(folder, arguments.assignment)
    if arguments.to == "csv":
        made = export.plain(found)
    else:
        fill = export.canvas if arguments.to == "canvas" else export.moodle
        made = fill(folder, found, arguments.template)
    target = arguments.output or folder.root / f"export-{arguments.to}.csv"
    write_whole(target, made.text)
    print(f"{made.rows} rows with points in {target}")
    for note in made.notes:
        print(note, file=sys.stderr)
    return 1 if made.notes else 0


def _regrade(arguments: argparse.Namespace) -> int:
    from autograder.class_folder import ClassFolder
    from autograder.cli import course_root
    from autograder.course import Course
    from autograder.regrade import refresh

    folder = ClassFolder.open(arguments.folder)
    course = Course.load(course_root(arguments.course))
    kept = refresh(folder, course, arguments.assignment)
    if kept is None:
        print(f"{arguments.assignment}: the class has what the course has; grading it again")
    else:
        print(f"{arguments.assignment}: taken from the course; the former is in {kept}")
    told = {"assignment": [arguments.assignment], "student": None, "scheduler": None, "again": True}
    status: int = arguments.grade(argparse.Namespace(**{**vars(arguments), **told}))
    return status
