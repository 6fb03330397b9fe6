"""The command line: thin, the library under it does the work.

What is slow to import waits until a command needs it: every worker imports this module.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from autograder.box.sandbox import NoSandbox
from autograder.cli import (
    author,
    beginning,
    building,
    exporting,
    grading,
    instructor,
    reporting,
    student,
    translating,
)
from autograder.cli.options import NO_SANDBOX, WRONG_USE, Group
from autograder.cli.version import version
from autograder.errors import WrongUse
from autograder.text import plain_line

#: As a shell says it of a command that was interrupted, or whose reader went away.
INTERRUPTED, NOBODY_READS = 130, 141

#: What to do when the system refuses a file.
_ADVICE = {
    errno.EACCES: "get the right to read and write there, or name another place",
    errno.EPERM: "get the right to read and write there, or name another place",
    errno.EROFS: "nothing can be written there; name another place",
    errno.ENOENT: "it is not there; name one that is",
    errno.EISDIR: "it is a folder; name a file",
    errno.ENOTDIR: "a file stands where a folder should be; name another place",
    errno.EEXIST: "a file stands where a folder should be; name another place",
    errno.ENOSPC: "make room on the disk, then run the same command again",
    errno.EDQUOT: "make room on the disk, then run the same command again",
}


#: What to type instead of what commands were called once.
FORMER = {
    "release": "export DIR --to release",
    "regrade": "grade DIR --mended NAME",
    "feedback": "export DIR --to feedback",
    "requests": "report DIR --about requests",
    "similar": "report DIR --about similar --assignment NAME",
    "keep": "export DIR --to terms --output STORE --term NAME",
    "trends": "report STORE --about terms",
    "mutants": "measure mutants",
    "lost-points": "measure lost-points",
    "spoiled": "measure spoiled",
    "answers": "measure answers",
}


def _say_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(version())
        ctx.exit()


@click.group(
    cls=Group,
    former=FORMER,
    commands=[
        student.start,
        student.check,
        student.update,
        instructor.new_class,
        instructor.collect,
        grading.grade,
        instructor.mark,
        reporting.report,
        exporting.export,
        grading.doctor,
        beginning.new_course,
        beginning.new_lesson,
        beginning.import_nbgrader,
        building.build,
        author.lint,
        author.trial,
        author.measure,
        author.inputs,
        translating.translate,
    ],
    context_settings={"show_default": True},
    help="Build, check and grade a course of Jupyter notebooks.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Print the version, and digests of what grades.",
)
def cli() -> None:
    """All commands."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status; see ``autograder COMMAND --help``.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe on Windows has no ✓
        sys.stdout.reconfigure(errors="replace")
    try:
        with cli.make_context(_called(), list(sys.argv[1:] if argv is None else argv)) as asked:
            status: int = cli.invoke(asked)
        sys.stdout.flush()
    except click.exceptions.Exit as said:  # --help, --version
        sys.exit(said.exit_code)
    except click.UsageError as error:
        error.show()
        sys.exit(WRONG_USE)
    except WrongUse as error:
        print(f"autograder: {error}", file=sys.stderr)
        return WRONG_USE
    except NoSandbox as error:
        print(f"autograder: {error}", file=sys.stderr)
        return NO_SANDBOX
    except KeyboardInterrupt:
        print("autograder: stopped; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        if _somebody_reads():
            raise
        return NOBODY_READS
    except OSError as error:
        if error.errno not in _ADVICE:
            raise
        where = f"{plain_line(str(error.filename2 or error.filename))}: " if error.filename else ""
        says = f"{where}{error.strerror}; {_ADVICE[error.errno]}"
        print(f"autograder: {says}", file=sys.stderr)
        return WRONG_USE
    return status


def _called() -> str:
    """Which of the two names of the command was typed."""
    typed = Path(sys.argv[0]).stem
    return typed if typed == "attention-course" else "autograder"


def _somebody_reads() -> bool:
    """Whether standard output can be written; where not, such as in `| head`, it is let go."""
    try:
        print(flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
