"""The commands of an instructor's day around grading: new-class, collect, mark.

Grading itself is in :mod:`autograder.cli.grading`, what is said of a class in
:mod:`autograder.cli.reporting`, what leaves it in :mod:`autograder.cli.exporting`.
"""

from __future__ import annotations

import getpass
import sys
import threading
import webbrowser
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, TextIO

import click

from autograder.cli.options import (
    COUNT,
    PATH,
    class_argument,
    class_at,
    columns_named,
    command,
    course_at,
    course_option,
    json_option,
    lessons_of,
    print_json,
    refuse_options,
)
from autograder.errors import WrongUse

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.classroom.roster import Roster
    from autograder.lms.collecting import Plan


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
@click.option(
    "--language",
    default="en",
    help="what students read, such as de; a lesson that is not translated stays English",
)
@click.option("--add", is_flag=True, help="put them into the class that DIR is already")
@click.option("--core", is_flag=True, help="only the lessons of the core path; see course.toml")
def new_class(
    *,
    folder: Path,
    course: Path | None,
    roster: Path | None,
    column: tuple[str, ...],
    short_answers: str,
    lesson: tuple[str, ...],
    language: str,
    add: bool,
    core: bool,
) -> int:
    """Make a class folder in nbgrader's layout.

    Every lesson is released in it, or those that are named, or those of the core path. With --add
    the lessons that --lesson names go into a class that is there: one that was written since, or
    left out at first.
    """
    from autograder.course.languages import ask_for_language
    from autograder.course.reading import lessons_read
    from autograder.course.source_rules import LessonError

    ask_for_language(language, "--language")
    if add:
        refuse_options("--add", {"--roster": roster, "--column": column})
        if not lesson:
            raise WrongUse("--add needs --lesson NAME: which lesson is the class to have as well?")
        there = class_at(folder)

    members = _roster(roster, column)
    whole = course_at(course)
    named = {item.folder for item in lessons_of(whole, lesson)}
    taught = replace(
        whole,
        lessons=tuple(
            item for item in whole.lessons if item.folder in named and (item.core or not core)
        ),
    )
    if not taught.lessons:
        raise LessonError("no such lesson has a core in lessons/course.toml; leave --core out")
    with lessons_read(taught):
        from autograder.classroom import new_class as making  # takes seconds, too
    if add:
        making.add_lessons(taught, there)
        say_released(there, to=sys.stdout)
        return 0
    made = making.new_class(
        taught, folder, roster=members, short_answers=short_answers, language=language
    )
    print(f"The class is at {made.root}.")
    print(f"Hand out {made.root}/release/, collect into {made.root}/submitted/STUDENT/ASSIGNMENT/")
    print("with `autograder collect` or by hand,")
    print(f"then run: autograder grade {folder}")
    print("A lesson brings solutions of earlier ones: with due dates in class.toml,")
    print(f"`autograder export {folder} --to release` holds it back until those are due.")
    return 0


def _roster(file: Path | None, columns: tuple[str, ...]) -> Roster | None:
    from autograder.classroom.roster import RosterError, import_roster

    theirs = columns_named(columns)
    if file is None:
        if theirs:
            raise RosterError("--column is about --roster FILE.csv; name that too")
        return None
    roster, says = import_roster(file, theirs)
    print(f"roster: {len(roster.members)} students; {', '.join(says)}")
    return roster


def say_released(folder: ClassFolder, *, to: TextIO) -> None:
    """Hand out what has become due, and say so."""
    from autograder.classroom.held_back import release_due

    for name in release_due(folder):
        print(f"{name}: what it gives away is due, so it is in release/ now", file=to)


@command(
    example="spring-class submissions.zip --dry-run",
    statuses={
        0: "every notebook was taken or is there already",
        1: "some were left out, or somebody handed in no notebook but other files (each is named)",
    },
)
@class_argument
@click.argument(
    "archive",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="ARCHIVE...",
    help="a zip or a folder",
)
@click.option("--assignment", metavar="NAME", help="only this one; takes notebooks of any name")
@click.option(
    "--layout",
    metavar="NAME",
    default="auto",
    help="how paths in the archive are made: moodle, canvas, gradescope, plain or that of another "
    "LMS that is installed; found out otherwise",
)
@click.option("--dry-run", is_flag=True, help="say what would be done, do nothing")
@click.option("--details", is_flag=True, help="say what becomes of each file")
@json_option("print what becomes of each file, as JSON")
def collect(
    *,
    folder: Path,
    archive: tuple[Path, ...],
    assignment: str | None,
    layout: str,
    dry_run: bool,
    details: bool,
    as_json: bool,
) -> int:
    """Put submissions from an LMS's zip into a class.

    Puts notebooks from zips of Moodle, Canvas or Gradescope, or from folders, into
    DIR/submitted/STUDENT/ASSIGNMENT/. The student follows from the path and DIR/roster.csv, the
    assignment from the notebook's name. Only a newer submission replaces one that is there; the
    older is kept below DIR/set_aside/.
    """
    from autograder.lms.collecting import LEFT_OUT, as_tree, carry_out, plan

    its_class = class_at(folder)
    made = plan(its_class, archive, assignment=assignment, layout=layout)
    aside = [] if dry_run else carry_out(its_class, made)
    if not dry_run:
        say_released(its_class, to=sys.stderr if as_json else sys.stdout)
    lost = [decision for decision in made.decisions if decision.action == LEFT_OUT]
    notebooks = [
        decision for decision in lost if decision.path.casefold().endswith((".ipynb", ".zip"))
    ]
    if as_json:
        print_json({**as_tree(made), "set_aside": aside})
    else:
        _say(its_class, made, aside, dry_run=dry_run, details=details)
    return 1 if notebooks or made.without_notebook else 0


#: Files that are told of without being asked.
_MAX_FILES = 20


def _say(
    folder: ClassFolder, made: Plan, aside: list[str], *, dry_run: bool, details: bool
) -> None:
    from autograder.lms import collecting as actions

    for name, layout in made.layouts.items():
        by = f", by the pattern\n  {layout.pattern.pattern}" if details else ""
        print(f"{name}: layout {layout.name}{by}")
    told = [
        decision
        for decision in made.decisions
        if details or decision.note or decision.action in (actions.LEFT_OUT, actions.OLDER)
    ]
    told.sort(key=lambda decision: decision.action != actions.LEFT_OUT)  # these are somebody's work
    for decision in told if details else told[:_MAX_FILES]:
        about = ", ".join(text for text in (decision.late, decision.note) if text)
        if decision.action == actions.LEFT_OUT:
            print(f"{decision.path}\n  left out: {decision.note}")
        else:
            print(
                f"{decision.path}\n  {decision.action}: {decision.to}"
                f"{' (' + about + ')' if about else ''}"
            )
    if not details and len(told) > _MAX_FILES:
        print(f"and {len(told) - _MAX_FILES} more files like these (--details)")
    for path in aside if details else aside[:_MAX_FILES]:
        print(f"kept aside: {path}")
    for line in actions.exceptions(folder, made, details=details):
        print(line)
    said = [f"{made.count(actions.TAKE)} new", f"{made.count(actions.REPLACE)} newer"]
    said += [f"{made.count(actions.UNCHANGED)} unchanged", f"{made.count(actions.OLDER)} older"]
    said += [f"{made.count(actions.LEFT_OUT)} left out"]
    print(f"{', '.join(said)}.{' Nothing was written.' * dry_run}")


@command(
    example="spring-class --assignment 02-means --share 2/10",
    statuses={0: "ended with Ctrl-C; what was saved is in the gradebook"},
)
@class_argument
@click.option("--assignment", required=True, metavar="NAME", help="whose written answers")
@click.option(
    "--share",
    metavar="PART",
    help="only a part of the answers: 2/10, or a name out of [marking] in class.toml",
)
@click.option("--marker", metavar="NAME", help="who marks; the name of your account otherwise")
@click.option(
    "--second",
    type=COUNT,
    metavar="N",
    help="mark N answers a second time without seeing the points; they are compared in the report",
)
@click.option("--names", is_flag=True, help="say whose an answer is")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="of the page; 0: any free")
@click.option("--no-browser", is_flag=True, help="print the address only")
def mark(
    *,
    folder: Path,
    assignment: str,
    share: str | None,
    marker: str | None,
    second: int | None,
    names: bool,
    port: int,
    no_browser: bool,
) -> int:
    """Mark written answers, one question across all students.

    Opens a page on this machine with the marking scheme beside the answer and keys for points.
    Writes nbgrader's gradebook; nobody is named unless you ask. Several people may mark at once.
    """
    from autograder.classroom.gradebook import open_gradebook
    from autograder.marking.by_question import Marking
    from autograder.marking.mark_server import serve
    from autograder.marking.questions import Share

    its_class = class_at(folder)
    part = Share.parse(share, its_class.assistants)
    who = marker or (share if share in its_class.assistants else None) or getpass.getuser()

    def say(address: str) -> None:
        print(
            f"Marking at {address}\nCtrl-C ends it; then: autograder export {folder} --to feedback",
            flush=True,
        )
        if not no_browser:
            # By way of a file that nobody else can read: a command line holds no key.
            page.write(f'<meta http-equiv="refresh" content="0;url={address}">')
            page.flush()
            where = Path(page.name).resolve().as_uri()
            threading.Thread(target=webbrowser.open, args=(where,), daemon=True).start()

    with (
        NamedTemporaryFile("w", dir=its_class.root, prefix=".mark-", suffix=".html") as page,
        open_gradebook(its_class.db_url) as gradebook,
    ):
        marking = Marking(
            its_class, gradebook, assignment, marker=who, share=part, second=second or 0
        )
        try:
            serve(marking, names=names, port=port, say=say)
        except KeyboardInterrupt:
            return 0
    return 0
