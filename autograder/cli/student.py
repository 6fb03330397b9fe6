"""The commands of a student's day: check, update."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from autograder.cli.options import add_command, positive, print_json


def add_commands(commands: Any) -> None:
    """Add them to argparse's subparsers."""
    one = add_command(
        commands,
        "check",
        _check,
        help="say which visible checks pass in your own notebooks",
        description="Run notebooks of the course in a fresh kernel, without their demonstrations, "
        "and say which visible checks pass. It is your own code on your own machine: it runs "
        "without a sandbox. No notebook is written.",
        example="03-scaled-dot-product-attention",
        statuses={0: "all visible checks pass", 1: "some do not, or a notebook cannot be read"},
    )
    one.add_argument(
        "notebook",
        nargs="*",
        type=Path,
        metavar="NOTEBOOK",
        help="a notebook or a folder; else all lessons of the course folder you are in",
    )
    one.add_argument(
        "--seconds", type=positive, default=60, metavar="N", help="a cell may take (default 60)"
    )
    one.add_argument("--json", action="store_true", help="print the outcomes as JSON")

    one = add_command(
        commands,
        "update",
        _update,
        help="take a new release of the course and keep your work",
        description="Copy a new release of the course into your course folder. What you wrote is "
        "carried over into the new notebooks; a file that you changed is first set aside beside "
        "the new one. Nothing is deleted. Close the notebooks in JupyterLab before.",
        example="course --from Downloads/course --dry-run",
        statuses={
            0: "the release was taken whole",
            1: "a file of yours had to stay as it is (it is named)",
        },
    )
    one.add_argument("folder", type=Path, metavar="COURSE_DIR", help="with your work")
    one.add_argument(
        "--from",
        dest="release",
        type=Path,
        metavar="NEW_COURSE_DIR",
        required=True,
        help="the new release, untouched",
    )
    one.add_argument("--dry-run", action="store_true", help="say what would happen, do nothing")
    one.add_argument("--json", action="store_true", help="print what happens as JSON")


def _check(arguments: argparse.Namespace) -> int:
    from autograder.student.check import as_lines, check_notebook, notebooks, summary

    found = []
    for path in notebooks(arguments.notebook, Path.cwd()):
        found.append(check_notebook(path, arguments.seconds))
        if not arguments.json:
            print("\n".join(as_lines(found[-1])), flush=True)
    passes = all(one.passes for one in found)
    if arguments.json:
        print_json({"passes": passes, "notebooks": [one.entry() for one in found]})
    else:
        print(f"\n{summary(found)}")
    return 0 if passes else 1


def _update(arguments: argparse.Namespace) -> int:
    from datetime import datetime

    from autograder.student.update import as_lines, plan

    found = plan(arguments.folder, arguments.release, datetime.now())
    if arguments.json:
        if not arguments.dry_run:
            found.carry_out()
        print_json(found.tree())
        return found.status
    if arguments.dry_run:
        said = [line for step in found.steps for line in as_lines(step)]
        print("\n".join([*said, *found.last_lines(dry_run=True)]))
        return found.status
    found.carry_out(lambda step: print("".join(f"{line}\n" for line in as_lines(step)), end=""))
    print("\n".join(found.last_lines(dry_run=False)))
    return found.status
