"""The command line: thin, the library under it does the work.

What is slow to import waits until a command needs it: every worker imports this module.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence

import click

import autograder
from autograder.box.sandbox import NoSandbox
from autograder.cli import collecting, grading, instructor, maintainer, marking, student, terms
from autograder.cli.options import NO_SANDBOX, WRONG_USE
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


class _Group(click.Group):
    """Lists commands in the order of this module: those of one user together."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Group,
    commands=[
        student.check,
        student.update,
        instructor.new_class,
        instructor.release,
        collecting.collect,
        grading.grade,
        grading.regrade,
        marking.mark,
        instructor.feedback,
        instructor.requests,
        instructor.export,
        instructor.report,
        marking.similar,
        terms.keep,
        terms.trends,
        grading.doctor,
        maintainer.build,
        maintainer.lint,
        maintainer.trial,
        maintainer.mutants,
        maintainer.lost_points,
        maintainer.inputs,
        maintainer.spoiled,
        maintainer.answers,
    ],
    context_settings={"show_default": True},
    help="Build, check and grade the attention course.",
)
@click.version_option(autograder.__version__, message="%(version)s", help="Print the version.")
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
        with cli.make_context("autograder", list(sys.argv[1:] if argv is None else argv)) as asked:
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
