"""The commands that run students' code, and what they say of it: grade, regrade, doctor."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from autograder.box.sandbox import BUBBLEWRAP, NONE, NoSandbox, best_tier, examine
from autograder.cli.instructor import say_released
from autograder.cli.options import (
    NO_SANDBOX,
    add_class,
    add_command,
    add_course,
    class_of,
    course_of,
    positive,
    print_json,
)

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.marking.changes import Change
    from autograder.marking.grade_class import ClassResult

_STATUSES = {
    0: "every submission has a verdict",
    1: "some could not be judged through no fault of theirs (each is named)",
    3: "no sandbox: see `autograder doctor`",
}


def add_commands(commands: Any) -> None:
    """Add them to argparse's subparsers."""
    one = add_command(
        commands,
        "grade",
        _grade,
        help="grade what a class handed in",
        description="Grade DIR/submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb.",
        example="spring-class --assignment 02-query-key-value",
        statuses=_STATUSES,
    )
    add_class(one)
    one.add_argument("--assignment", action="append", metavar="NAME", help="only this one")
    one.add_argument("--student", action="append", metavar="ID", help="only this one")
    _add_how(one)
    one.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers grade instead"
    )
    one.add_argument(
        "--again", action="store_true", help="grade also what did not change since an earlier run"
    )

    one = add_command(
        commands,
        "regrade",
        _regrade,
        help="take a mended lesson into a class and grade it again",
        description="Take a lesson's tests from the course into DIR/source/ and DIR/release/, "
        "grade the assignment again, and say whose points change. The former source is kept "
        "below DIR/set_aside/.",
        example="spring-class --assignment 02-query-key-value",
        statuses=_STATUSES,
    )
    add_class(one)
    one.add_argument("--assignment", required=True, metavar="NAME", help="the mended one")
    add_course(one)
    _add_how(one)

    one = add_command(
        commands,
        "doctor",
        _doctor,
        help="say how student code can be confined on this machine",
        description="Try each protection of the sandbox and say what to install or allow.",
        example="",
        statuses={
            0: "student code is confined here when you grade, or --tier or --json was answered",
            3: "it is not, or that could not be tried: `autograder grade` refuses",
        },
    )
    one.add_argument("--tier", action="store_true", help="print bubblewrap or none, nothing else")
    one.add_argument("--json", action="store_true", help="print the protections as JSON")


def _add_how(command: argparse.ArgumentParser) -> None:
    command.add_argument("--workers", type=positive, metavar="N", help="how many at a time")
    command.add_argument(
        "--sandbox",
        choices=["auto", BUBBLEWRAP, NONE],
        default="auto",
        help="how student code is confined; none only for code you trust",
    )
    command.add_argument("--quiet", action="store_true", help="print the result only")
    command.add_argument("--json", action="store_true", help="print the result as JSON")


def _grade(arguments: argparse.Namespace) -> int:
    from autograder.classroom.grades_file import read_entries
    from autograder.marking.changes import changes
    from autograder.marking.grade_class import grade_class

    folder = class_of(arguments)
    say_released(folder, to=sys.stderr if arguments.json else sys.stdout)
    before = read_entries(folder.root / "grades.json")
    if arguments.sandbox == NONE:
        said = "No sandbox: the submissions run as ordinary processes with your rights."
        print(said, file=sys.stderr if arguments.json else sys.stdout)
    result = grade_class(
        folder,
        assignments=arguments.assignment,
        students=arguments.student,
        workers=arguments.workers,
        sandbox=arguments.sandbox,
        scheduler=arguments.scheduler,
        again=arguments.again,
        quiet=arguments.quiet,
    )
    changed = changes(before, read_entries(folder.root / "grades.json"))
    if arguments.json:
        print_json(_tree(result, changed))
    else:
        _say(folder, result, changed, again=arguments.again and bool(before))
    for name in result.strangers:
        print(
            f"not graded: submitted/{name} is no student's assignment; there are "
            f"{', '.join(folder.assignments)}",
            file=sys.stderr,
        )
    for verdict in result.not_judged:
        graded = verdict.graded
        print(f"not judged: {verdict.student} {graded.assignment}", file=sys.stderr)
        print(graded.reason, file=sys.stderr)
    return 1 if result.not_judged or result.strangers else 0


def _tree(result: ClassResult, changed: list[Change]) -> dict[str, Any]:
    verdicts = sorted(result.verdicts, key=lambda one: one.key)
    return {
        "sandbox": result.sandbox,
        "submissions": [one.entry() for one in verdicts],
        "changes": [vars(one) for one in changed],
        "not_judged": [list(one.key) for one in verdicts if one in result.not_judged],
        "not_graded": result.strangers,
    }


def _say(folder: ClassFolder, result: ClassResult, changed: list[Change], *, again: bool) -> None:
    from autograder.classroom.grades_file import table
    from autograder.marking.changes import table as changes_table

    if not result.verdicts:
        print(f"Nothing to grade in {folder.root}/submitted/STUDENT/ASSIGNMENT/.")
        return
    print(result.summary)
    print()
    print(table(result.verdicts))
    print("* something is left to grade by hand")
    if changed:
        print()
        print("points that are not what they were")
        print(changes_table(changed))
    elif again:
        print("no points changed")
    for verdict in sorted(result.verdicts, key=lambda one: one.key):
        if verdict.notes:
            who = f"{verdict.student} {verdict.graded.assignment}"
            print(f"graded, but {', '.join(verdict.notes)}: {who}")
    print()
    print(f"feedback pages  {folder.root}/feedback/STUDENT/ASSIGNMENT/")
    print(f"grades          {folder.root}/grades.csv and grades.json")
    print(f"gradebook       {folder.root}/gradebook.db (open it with `nbgrader formgrader`)")


def _regrade(arguments: argparse.Namespace) -> int:
    from autograder.marking.regrade import refresh

    folder = class_of(arguments)
    kept = refresh(folder, course_of(arguments), arguments.assignment)
    said = (
        f"{arguments.assignment}: the class has what the course has; grading it again"
        if kept is None
        else f"{arguments.assignment}: taken from the course; the former is in {kept}"
    )
    print(said, file=sys.stderr if arguments.json else sys.stdout)
    told = {"assignment": [arguments.assignment], "student": None, "scheduler": None, "again": True}
    return _grade(argparse.Namespace(**{**vars(arguments), **told}))


def _doctor(arguments: argparse.Namespace) -> int:
    found = examine()
    confined = all(one.works for one in found)
    if arguments.json:
        try:
            tier: str | None = best_tier(found)
        except NoSandbox:
            tier = None
        protections = [
            {
                "name": one.name,
                "works": one.works if one.tried else None,
                "advice": "" if one.works else one.advice,
            }
            for one in found
        ]
        print_json({"tier": tier, "protections": protections})
        return 0
    if arguments.tier:
        print(best_tier(found))
        return 0
    for one in found:
        answer = "yes" if one.works else "NO " if one.tried else "?  "
        print(f"{answer}  {one.name}{'' if one.works else ': ' + one.advice}")
    if confined:
        print("Student code is confined with bubblewrap when you grade on this machine.")
        return 0
    print("`autograder grade` refuses here, unless you trust the code and say --sandbox none.")
    return NO_SANDBOX
