"""The commands of a student's day: start, check, update."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.cli.options import COUNT, PATH, command, json_option, print_json

if TYPE_CHECKING:
    from autograder.student.check import Check, Checked


@command(
    example="my-course",
    statuses={0: "laid out; JupyterLab was closed", 1: "JupyterLab could not be started"},
)
@click.argument("folder", type=PATH, metavar="DIR", help="a new folder, or yours from last time")
@click.option("--no-lab", is_flag=True, help="only lay the course out")
def start(*, folder: Path, no_lab: bool) -> int:
    """Lay the course out in a folder, and open it in JupyterLab.

    Writes the notebooks, with all that they need, into DIR. Where the course is there already, it
    stays as it is, with your work, and JupyterLab opens on it.
    """
    from autograder.student import start as starting

    new = starting.start(folder)
    print(f"The course is {'now' if new else 'already'} in {folder}.", flush=True)
    if no_lab:
        print(f"`autograder start {folder}` opens it in JupyterLab.")
        return 0
    return starting.open_lab(folder)


@command(
    example="my-course",
    statuses={0: "all visible checks pass", 1: "some do not, or a notebook cannot be read"},
)
@click.argument(
    "notebook",
    nargs=-1,
    type=PATH,
    metavar="[NOTEBOOK]...",
    help="a notebook or a folder; else all lessons of the course folder you are in",
)
@click.option(
    "--seconds",
    type=COUNT,
    default=60,
    metavar="N",
    help="a cell may take",
)
@json_option("print the outcomes as JSON")
def check(*, notebook: tuple[Path, ...], seconds: int, as_json: bool) -> int:
    """Say which visible checks pass in your own notebooks.

    Runs notebooks of the course in a fresh kernel, without their demonstrations. It is your own
    code on your own machine: it runs without a sandbox. No notebook is written.
    """
    from autograder.student.check import check_notebook, notebooks, summary

    checked = []
    for path in notebooks(notebook, Path.cwd()):
        if as_json:
            checked.append(check_notebook(path, seconds))
        else:
            checked.append(_told_as_it_comes(path, seconds))
    passes = all(notebook.passes for notebook in checked)
    if as_json:
        print_json({"passes": passes, "notebooks": [notebook.entry() for notebook in checked]})
    else:
        print(f"\n{summary(checked)}")
    return 0 if passes else 1


#: Of the mark before a check, on a terminal that has colours.
_COLOURS = {"✓": "green", "✗": "red", "·": "bright_black"}


def _told_as_it_comes(path: Path, seconds: int) -> Checked:
    """Check a notebook and print each check when its cell ran, in the terminal's width."""
    from tqdm import tqdm

    from autograder.student.check import (
        WIDTH,
        as_lines,
        check_notebook,
        heading,
        lines_of_check,
        mark_of,
    )

    click.echo(heading(path))
    columns = min(shutil.get_terminal_size((WIDTH + 6, 24)).columns, WIDTH + 6)
    with tqdm(total=1, unit="check", leave=False, disable=None) as line:  # only on a terminal

        def tell(check: Check, known: int, most: int) -> None:
            mark = mark_of(check)
            first, *more = lines_of_check(check, columns)
            first = first.replace(mark, click.style(mark, fg=_COLOURS[mark]), 1)
            with line.external_write_mode():
                click.echo("\n".join([first, *more]))
            line.total = most
            line.update(known - line.n)

        checked = check_notebook(path, seconds, tell)
    if not checked.checks:
        click.echo("\n".join(as_lines(checked)[1:]))
    return checked


@command(
    example="course --from Downloads/course --dry-run",
    statuses={
        0: "the release was taken whole",
        1: "a file of yours had to stay as it is (it is named)",
    },
)
@click.argument("folder", type=PATH, metavar="COURSE_DIR", help="with your work")
@click.option(
    "--from",
    "release",
    type=PATH,
    metavar="NEW_COURSE_DIR",
    required=True,
    help="the new release, untouched",
)
@click.option("--dry-run", is_flag=True, help="say what would happen, do nothing")
@json_option("print what happens as JSON")
def update(*, folder: Path, release: Path, dry_run: bool, as_json: bool) -> int:
    """Take a new release of the course and keep your work.

    Copies a new release of the course into your course folder. What you wrote is carried over
    into the new notebooks; a file that you changed is first set aside beside the new one.
    Nothing is deleted. Close the notebooks in JupyterLab before.
    """
    from datetime import datetime

    from autograder.student.update import as_lines, plan

    planned = plan(folder, release, datetime.now())
    if as_json:
        if not dry_run:
            planned.carry_out()
        print_json(planned.tree())
        return planned.status
    if dry_run:
        said = [line for step in planned.steps for line in as_lines(step)]
        print("\n".join([*said, *planned.last_lines(dry_run=True)]))
        return planned.status
    planned.carry_out(lambda step: print("".join(f"{line}\n" for line in as_lines(step)), end=""))
    print("\n".join(planned.last_lines(dry_run=False)))
    return planned.status
