"""The commands of a student's day: check, update."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.cli.options import COUNT, PATH, command, json_option, print_json


@command(
    example="03-scaled-dot-product-attention",
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
    from autograder.student.check import as_lines, check_notebook, notebooks, summary

    checked = []
    for path in notebooks(notebook, Path.cwd()):
        checked.append(check_notebook(path, seconds))
        if not as_json:
            print("\n".join(as_lines(checked[-1])), flush=True)
    passes = all(notebook.passes for notebook in checked)
    if as_json:
        print_json({"passes": passes, "notebooks": [notebook.entry() for notebook in checked]})
    else:
        print(f"\n{summary(checked)}")
    return 0 if passes else 1


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
