"""What all commands of ``autograder`` have in common: their help, and how they are told things.

A command cannot be added without an example and the meaning of its exit statuses.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import autograder

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.course.lessons import Course

WRONG_USE = 2
NO_SANDBOX = 3

Run = Callable[[argparse.Namespace], int]


class _Help(argparse.HelpFormatter):
    """Fills each line of a text on its own, and leaves examples and indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(
            line
            if line.startswith((" ", "example:"))
            else super(_Help, self)._fill_text(line, width, indent)
            for line in text.splitlines()
        )


def add_command(
    commands: Any,
    name: str,
    run: Run,
    *,
    help: str,
    description: str,
    example: str,
    statuses: Mapping[int, str],
) -> argparse.ArgumentParser:
    """Add a command to the command line.

    Args:
        commands: argparse's subparsers.
        name: of the command.
        run: does it, and returns the exit status.
        help: one line for ``autograder --help``.
        description: what it does.
        example: of its use, without ``autograder`` and the command's name.
        statuses: what each exit status means; that of wrong use is added.
    """
    said = {**statuses, WRONG_USE: "wrong use, or a file that cannot be read or written"}
    lines = [f"example: autograder {name} {example}".rstrip(), "", "exit status:"]
    lines += [f"  {number}  {said[number]}" for number in sorted(said)]
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog="\n".join(lines),
        formatter_class=_Help,
    )
    made.set_defaults(run=run)
    return made


def positive(text: str) -> int:
    """A whole number from 1, for an option."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} should be a whole number from 1")
    return int(text)


def print_json(tree: Any) -> None:
    """Print what a script reads."""
    print(json.dumps(tree, indent=1, ensure_ascii=False))


def add_class(command: argparse.ArgumentParser) -> None:
    """Let a command take a class folder."""
    command.add_argument(
        "folder", type=Path, metavar="DIR", help="the class, made with `autograder new-class`"
    )


def class_of(arguments: argparse.Namespace) -> ClassFolder:
    """The class that a command is about, with settings that can be used.

    Raises:
        ClassError, LateError, RosterError, SpreadsheetError: it cannot be used.
    """
    from autograder.classroom.folder import ClassFolder

    folder = ClassFolder.open(arguments.folder)
    folder.check_settings()
    return folder


def add_course(command: argparse.ArgumentParser) -> None:
    """Let a command take the folder of the course."""
    command.add_argument(
        "--course", type=Path, metavar="DIR", help="the course's folder, if it is not this one"
    )


def course_of(arguments: argparse.Namespace) -> Course:
    """The course: as given, else in this folder, else where this package is developed.

    Raises:
        LessonError: it cannot be read, or there is none: an installed package has no lessons.
    """
    from autograder.course.lessons import Course, LessonError

    if arguments.course is not None:
        return Course.load(arguments.course)
    for folder in (Path.cwd(), Path(autograder.__file__).resolve().parent.parent):
        if (folder / "lessons" / "course.toml").exists():
            return Course.load(folder)
    raise LessonError(
        "there is no course here: run this in the course's folder, the one that holds lessons/, "
        "or name that folder with --course DIR"
    )
