"""The commands that run students' code, and what they say of it: grade, doctor."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autograder.box.cgroup import how_memory_is_held
from autograder.box.sandbox import BUBBLEWRAP, NONE, NoSandbox, best_backend, examine
from autograder.cli.instructor import say_released
from autograder.cli.options import (
    COUNT,
    NO_SANDBOX,
    Run,
    assignments_option,
    class_argument,
    class_at,
    command,
    course_at,
    course_option,
    json_option,
    print_json,
    refuse_options,
)

if TYPE_CHECKING:
    from autograder.box.sandbox import Protection
    from autograder.classroom.folder import ClassFolder
    from autograder.marking.grade_class import ClassResult
    from autograder.marking.totals import Change

_STATUSES = {
    0: "every submission has a verdict",
    1: "some could not be judged through no fault of theirs (each is named)",
    3: "no sandbox: see `autograder doctor`",
}


@dataclass(frozen=True)
class How:
    """How submissions are run, and what is said meanwhile."""

    workers: int | None
    sandbox: str
    quiet: bool
    as_json: bool
    details: bool


def _how_options(run: Run) -> Run:
    """Let a command that grades be told how; it takes one :class:`How`."""

    @click.option("--workers", type=COUNT, metavar="N", help="how many at a time")
    @click.option(
        "--sandbox",
        type=click.Choice(["auto", BUBBLEWRAP, NONE]),
        default="auto",
        help="how student code is confined; none only for code you trust",
    )
    @click.option("--quiet", is_flag=True, help="print the result only")
    @click.option("--details", is_flag=True, help="list every student, however many there are")
    @json_option("print the result as JSON")
    @functools.wraps(run)
    def told(
        workers: int | None, sandbox: str, quiet: bool, as_json: bool, details: bool, **others: Any
    ) -> int:
        return run(how=How(workers, sandbox, quiet, as_json, details), **others)

    return told


@command(example="spring-class --assignment 02-means", statuses=_STATUSES)
@class_argument
@assignments_option
@click.option("--student", multiple=True, metavar="ID", help="only this one; may be given again")
@_how_options
@click.option("--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers grade instead")
@click.option("--again", is_flag=True, help="grade also what did not change since an earlier run")
@click.option(
    "--mended",
    metavar="NAME",
    help="take this lesson from the course first, and grade all of it again",
)
@course_option
def grade(
    *,
    folder: Path,
    assignment: tuple[str, ...],
    student: tuple[str, ...],
    how: How,
    scheduler: str | None,
    again: bool,
    mended: str | None,
    course: Path | None,
) -> int:
    """Grade what a class handed in.

    Grades DIR/submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb.

    --mended takes a lesson's tests from the course into DIR/source/ and DIR/release/, grades the
    assignment again, and says whose points change. The former source is kept below DIR/set_aside/.
    """
    its_class = class_at(folder)
    if mended is not None:
        refuse_options("--mended", {"--assignment": assignment, "--student": student})
        _take_mended(its_class, course, mended, how)
        assignment, again = (mended,), True
    return _grade(
        its_class,
        how,
        assignments=assignment,
        students=student,
        scheduler=scheduler,
        again=again,
    )


def _take_mended(folder: ClassFolder, course: Path | None, name: str, how: How) -> None:
    """Take a mended lesson into a class, and say so."""
    from autograder.marking.regrade import refresh

    kept = refresh(folder, course_at(course), name)
    said = (
        f"{name}: the class has what the course has; grading it again"
        if kept is None
        else f"{name}: taken from the course; the former is in {kept}"
    )
    print(said, file=sys.stderr if how.as_json else sys.stdout)


def _grade(
    folder: ClassFolder,
    how: How,
    *,
    assignments: Sequence[str],
    students: Sequence[str] = (),
    scheduler: str | None = None,
    again: bool,
) -> int:
    """Grade, say what came of it and what changed.

    Args:
        folder: the class.
        how: its submissions are run.
        assignments: only these; all if empty.
        students: only these; all if empty.
        scheduler: address of a Dask scheduler whose workers grade instead.
        again: grade also what did not change since an earlier run.

    Returns:
        The exit status.
    """
    from autograder.classroom.grades_file import read_entries
    from autograder.marking.grade_class import grade_class
    from autograder.marking.totals import changes

    say_released(folder, to=sys.stderr if how.as_json else sys.stdout)
    before = read_entries(folder.root / "grades.json")
    _say_renewed(folder)
    if how.sandbox == NONE:
        said = "No sandbox: the submissions run as ordinary processes with your rights."
        print(said, file=sys.stderr if how.as_json else sys.stdout)
    result = grade_class(
        folder,
        assignments=assignments,
        students=students,
        workers=how.workers,
        sandbox=how.sandbox,
        scheduler=scheduler,
        again=again,
        quiet=how.quiet,
    )
    changed = changes(before, read_entries(folder.root / "grades.json"))
    if how.as_json:
        print_json(_tree(result, changed))
    else:
        _say(folder, how, result, changed, again=again and bool(before))
    for name in result.strangers:
        print(
            f"not graded: submitted/{name} is no student's assignment; there are "
            f"{', '.join(folder.assignments)}, and a student's folder has none of "
            '< > " \\ in its name',
            file=sys.stderr,
        )
    for submission in result.not_judged:
        graded = submission.result
        print(f"not judged: {submission.student} {graded.assignment}", file=sys.stderr)
        print(graded.reason, file=sys.stderr)
    return 1 if result.not_judged or result.strangers else 0


def _say_renewed(folder: ClassFolder) -> None:
    """Make a gradebook whose file is gone anew, and say what is not in it."""
    if not folder.lacks_gradebook:  # what makes one imports torch
        return
    from autograder.classroom.hand_out import renew_gradebook

    if renew_gradebook(folder):
        said = f"{folder.db_url} was missing and is made anew, without the points that people gave"
        print(f"{said}: these stand in marking.jsonl", file=sys.stderr)


def _tree(result: ClassResult, changed: list[Change]) -> dict[str, Any]:
    submissions = sorted(result.submissions, key=lambda submission: submission.key)
    return {
        "sandbox": result.sandbox,
        "submissions": [submission.entry() for submission in submissions],
        "changes": [vars(change) for change in changed],
        "not_judged": [
            list(submission.key) for submission in submissions if submission in result.not_judged
        ],
        "not_graded": result.strangers,
    }


def _say(
    folder: ClassFolder, how: How, result: ClassResult, changed: list[Change], *, again: bool
) -> None:
    from autograder.classroom.grades_file import table
    from autograder.marking.totals import MAX_IN_TABLE, exceptions, totals
    from autograder.marking.totals import table as changes_table

    if not result.submissions:
        print(f"Nothing to grade in {folder.root}/submitted/STUDENT/ASSIGNMENT/.")
        return
    print(result.summary)
    print()
    students = len({submission.student for submission in result.submissions})
    if how.details or students <= MAX_IN_TABLE:
        print(table(result.submissions))
        said = "points so far of all points, what being late costs taken off"
        waits = sum(
            submission.standing.needs_manual_grade
            for submission in result.submissions
            if submission.standing
        )
        print(f"{said}; * {waits} of them a person still has to mark" if waits else said)
    else:
        print(f"{students} students; --details lists each, as grades.csv does")
    print()
    odd = exceptions(
        result.submissions,
        grace_minutes=folder.late_policy.grace_minutes,
        details=how.details,
    )
    for line in (*totals(result.submissions), *odd):
        print(line)
    if changed:
        print()
        print("points that are not what they were")
        print(changes_table(changed))
    elif again:
        print("no points changed")
    print()
    print(f"feedback pages  {folder.root}/feedback/STUDENT/ASSIGNMENT/")
    print(f"grades          {folder.root}/grades.csv and grades.json")
    print(f"gradebook       {folder.root}/gradebook.db (open it with `nbgrader formgrader`)")


@command(
    example="",
    statuses={
        0: "student code is confined here when you grade, or --backend or --json was answered",
        3: "it is not, or that could not be tried: `autograder grade` refuses",
    },
)
@click.option("--backend", is_flag=True, help="print bubblewrap or none, nothing else")
@json_option("print the protections as JSON")
def doctor(*, backend: bool, as_json: bool) -> int:
    """Say how student code can be confined on this machine.

    Tries each protection of the sandbox and says what to install or allow.
    """
    protections = examine()
    if as_json:
        print_json(_protections(protections))
        return 0
    if backend:
        print(best_backend(protections))
        return 0
    for protection in protections:
        answer = "yes" if protection.works else "NO " if protection.tried else "?  "
        print(f"{answer}  {protection.name}{'' if protection.works else ': ' + protection.advice}")
    if all(protection.works for protection in protections):
        print("Student code is confined with bubblewrap when you grade on this machine.")
        print(f"Of a box, {how_memory_is_held()}.")
        return 0
    print("`autograder grade` refuses here, unless you trust the code and say --sandbox none.")
    return NO_SANDBOX


def _protections(protections: list[Protection]) -> dict[str, Any]:
    try:
        backend: str | None = best_backend(protections)
    except NoSandbox:
        backend = None
    entries = [
        {
            "name": protection.name,
            "works": protection.works if protection.tried else None,
            "advice": "" if protection.works else protection.advice,
        }
        for protection in protections
    ]
    return {"backend": backend, "protections": entries}
