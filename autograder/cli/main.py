"""The command line: thin, the library under it does the work.

What is slow to import waits until a command needs it: every worker imports this module.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence

import autograder
from autograder.box.sandbox import NoSandbox
from autograder.cli import grading, instructor, maintainer, student
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


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog="autograder", description="Build, check and grade the attention course."
    )
    top.add_argument("--version", action="version", version=autograder.__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    student.add_commands(commands)
    instructor.add_commands(commands)
    grading.add_commands(commands)
    maintainer.add_commands(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status; see ``autograder COMMAND --help``.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe on Windows has no ✓
        sys.stdout.reconfigure(errors="replace")
    arguments = parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
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
