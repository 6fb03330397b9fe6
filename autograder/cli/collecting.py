"""The command that brings submissions into a class: collect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.cli.instructor import say_released
from autograder.cli.options import PATH, class_argument, class_at, command, json_option, print_json

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.lms.collect import Plan


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
    type=click.Choice(["auto", "moodle", "canvas", "gradescope", "plain"]),
    default="auto",
    help="how paths in the archive are made",
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
    from autograder.lms.collect import LEFT_OUT, as_tree, carry_out, plan

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
_MOST_FILES = 20


def _say(
    folder: ClassFolder, made: Plan, aside: list[str], *, dry_run: bool, details: bool
) -> None:
    from autograder.lms import collect as actions

    for name, layout in made.layouts.items():
        by = f", by the pattern\n  {layout.pattern.pattern}" if details else ""
        print(f"{name}: layout {layout.name}{by}")
    told = [
        decision
        for decision in made.decisions
        if details or decision.note or decision.action in (actions.LEFT_OUT, actions.OLDER)
    ]
    told.sort(key=lambda decision: decision.action != actions.LEFT_OUT)  # these are somebody's work
    for decision in told if details else told[:_MOST_FILES]:
        about = ", ".join(text for text in (decision.late, decision.note) if text)
        if decision.action == actions.LEFT_OUT:
            print(f"{decision.path}\n  left out: {decision.note}")
        else:
            print(
                f"{decision.path}\n  {decision.action}: {decision.to}"
                f"{' (' + about + ')' if about else ''}"
            )
    if not details and len(told) > _MOST_FILES:
        print(f"and {len(told) - _MOST_FILES} more files like these (--details)")
    for path in aside if details else aside[:_MOST_FILES]:
        print(f"kept aside: {path}")
    for line in actions.exceptions(folder, made, details=details):
        print(line)
    said = [f"{made.count(actions.TAKE)} new", f"{made.count(actions.REPLACE)} newer"]
    said += [f"{made.count(actions.UNCHANGED)} unchanged", f"{made.count(actions.OLDER)} older"]
    said += [f"{made.count(actions.LEFT_OUT)} left out"]
    print(f"{', '.join(said)}.{' Nothing was written.' * dry_run}")
