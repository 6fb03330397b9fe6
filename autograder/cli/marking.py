"""The commands for what a person has to read: mark and similar."""

from __future__ import annotations

import getpass
import sys
import threading
import webbrowser
from dataclasses import asdict
from pathlib import Path
from tempfile import NamedTemporaryFile

import click

from autograder.cli.options import (
    COUNT,
    class_argument,
    class_at,
    command,
    json_option,
    print_json,
)
from autograder.text import plain_line


@command(
    example="spring-class --assignment 02-query-key-value --share 2/10",
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
            f"Marking at {address}\nCtrl-C ends it; then: autograder feedback {folder}", flush=True
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


@command(
    example="spring-class --assignment 02-query-key-value",
    statuses={0: "compared; whether there are pairs or not"},
)
@class_argument
@click.option("--assignment", required=True, metavar="NAME", help="whose submissions")
@click.option(
    "--least",
    type=click.IntRange(1, 100),
    default=50,
    metavar="PERCENT",
    help="of one's own code that another one has",
)
@json_option("print the pairs as JSON")
def similar(*, folder: Path, assignment: str, least: int, as_json: bool) -> int:
    """List submissions with code in common that was not handed out.

    For a person to look at: it is no grade, and students may work together. What was handed out,
    the course's own answers and what a tenth of the class has is taken out. Writes
    DIR/similar-ASSIGNMENT.csv, which holds names. Needs the extra "similar".
    """
    from autograder.files import write_whole
    from autograder.report.similar import as_table, in_lines
    from autograder.report.similar import similar as compare

    its_class = class_at(folder)

    def left_out(student: str) -> None:
        name = plain_line(student)
        print(f"{name} is left out: that code takes too long to be read", file=sys.stderr)

    pairs = compare(its_class, assignment, least / 100, left_out)
    path = its_class.root / f"similar-{assignment}.csv"
    write_whole(path, as_table(pairs))
    if as_json:
        print_json([asdict(pair) for pair in pairs])
        return 0
    print(f"{len(pairs)} pairs with {least} % or more of one's own code in common")
    if pairs:
        print(in_lines(pairs))
    print(f"pieces in {path}; look at both before you say anything")
    return 0
