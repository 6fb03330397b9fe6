"""What all commands of ``autograder`` have in common: their help, and how they are told things.

A command cannot be added without an example and the meaning of its exit statuses.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import autograder
from autograder.errors import WrongUse

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.course.lessons import Course, Lesson

WRONG_USE = 2
NO_SANDBOX = 3

Run = Callable[..., int]

#: A path as it was typed; whoever opens it says what is wrong with it.
PATH = click.Path(path_type=Path, readable=False)
#: How many of something.
COUNT = click.IntRange(min=1)


class Command(click.Command):
    """A command whose help ends with an example and the meaning of its exit statuses."""

    def __init__(self, *, example: str, statuses: Mapping[int, str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.example = example
        self.statuses = {
            **statuses,
            WRONG_USE: "wrong use, or a file that cannot be read or written",
        }

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write both as they are: an example that is broken over two lines cannot be copied."""
        example = f"{ctx.command_path} {self.example}".rstrip()
        lines = ["", f"example: {example}", "", "exit status:"]
        lines += [f"  {number}  {self.statuses[number]}" for number in sorted(self.statuses)]
        formatter.write("\n".join(lines) + "\n")


class Group(click.Group):
    """Commands in the order in which they are named: those of one user together.

    Attributes:
        former: what to type instead of a name that a command had once.
    """

    def __init__(
        self, *arguments: Any, former: Mapping[str, str] | None = None, **attributes: Any
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.former = former or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Not by the alphabet."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A command by its name.

        Raises:
            WrongUse: it has another name now.
        """
        if name in self.former:
            raise WrongUse(f"`autograder {name}` is `autograder {self.former[name]}` now")
        return super().get_command(ctx, name)


def command(*, example: str, statuses: Mapping[int, str]) -> Callable[[Run], Command]:
    """Make a command of a function, which returns the exit status.

    The command has the function's name. The first line of the docstring is its line in
    ``autograder --help``.

    Args:
        example: of its use, without ``autograder`` and the command's name.
        statuses: what each exit status means; that of wrong use is added.
    """

    def decorate(run: Run) -> Command:
        short = inspect.cleandoc(run.__doc__ or "").partition("\n")[0].rstrip(".")
        make = click.command(cls=Command, short_help=short, example=example, statuses=statuses)
        return make(run)

    return decorate


#: Lets a command take a class folder, as ``folder``; see :func:`class_at`.
class_argument = click.argument(
    "folder", type=PATH, metavar="DIR", help="the class, made with `autograder new-class`"
)

#: Lets a command take the course's folder, as ``course``; see :func:`course_at`.
course_option = click.option(
    "--course", type=PATH, metavar="DIR", help="the course's folder, if it is not this one"
)

#: Lets a command take lessons, as ``lesson``; see :func:`lessons_of`.
lessons_argument = click.argument(
    "lesson", nargs=-1, metavar="[LESSON]...", help="as 03 or its folder; all lessons else"
)

#: Lets a command be about single exercises, as ``exercise``; see :func:`exercises_of`.
exercise_option = click.option(
    "--exercise", multiple=True, metavar="NAME", help="only this one; may be given again"
)

#: Lets a command be about exercises that changed, as ``changed``; see :func:`exercises_of`.
changed_option = click.option(
    "--changed", is_flag=True, help="only exercises of which the lock does not say: proved"
)

#: Lets a command be about some of the assignments.
assignments_option = click.option(
    "--assignment", multiple=True, metavar="NAME", help="only this one; may be given again"
)


def columns_named(columns: tuple[str, ...]) -> dict[str, str]:
    """What ``--column`` says, by our names.

    Raises:
        WrongUse: it is no pair.
    """
    pairs = [pair.partition("=") for pair in columns]
    if any(not to or not name for to, _, name in pairs):
        raise WrongUse("--column should be OURS=THEIRS, such as --column id=Matrikelnummer")
    return {to: name for to, _, name in pairs}


def refuse_options(where: str, given: Mapping[str, object]) -> None:
    """Refuse options that a kind of what a command does takes no notice of.

    Args:
        where: that kind, as it was typed.
        given: those options and what they were given; nothing where they were not.

    Raises:
        WrongUse: one was given.
    """
    for name, value in given.items():
        if value:
            raise WrongUse(f"{where} takes no {name}; leave it out")


def json_option(help: str) -> Callable[[Run], Run]:
    """Let a command print what a script reads, if ``as_json``; see :func:`print_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def print_json(tree: Any) -> None:
    """Print what a script reads."""
    print(json.dumps(tree, indent=1, ensure_ascii=False))


def class_at(folder: Path) -> ClassFolder:
    """The class that a command is about, with settings that can be used.

    Raises:
        ClassError, LateError, RosterError, SpreadsheetError: it cannot be used.
    """
    from autograder.classroom.folder import ClassFolder

    opened = ClassFolder.open(folder)
    opened.check_settings()
    return opened


def course_at(folder: Path | None) -> Course:
    """The course: as given, else in this folder, else where this package is developed.

    Raises:
        LessonError: it cannot be read, or there is none: an installed package has no lessons.
    """
    from autograder.course.lessons import Course
    from autograder.course.source_rules import LessonError

    if folder is not None:
        return Course.load(folder)
    for place in (Path.cwd(), Path(autograder.__file__).resolve().parent.parent):
        if (place / "lessons" / "course.toml").exists():
            return Course.load(place)
    raise LessonError(
        "there is no course here: run this in the course's folder, the one that holds lessons/, "
        "or name that folder, such as the unpacked source of a release, with --course DIR"
    )


def lessons_of(course: Course, names: tuple[str, ...]) -> list[Lesson]:
    """The lessons that were named; all when none was.

    Raises:
        LessonError: the course has no such lesson.
    """
    return [course.lesson(name) for name in names] or list(course.lessons)


def exercises_of(
    course: Course,
    lessons: tuple[str, ...],
    exercises: tuple[str, ...],
    *,
    changed: bool = False,
) -> list[tuple[Lesson, str]]:
    """Exercises that were named, with their lessons; all of the lessons when none was.

    Args:
        course: that holds them.
        lessons: by their names; all when none is named.
        exercises: by their names; all when none is named.
        changed: only those of which the lesson's lock does not say that they were proved.

    Raises:
        LessonError: the course has no such lesson, or none of the lessons such an exercise.
    """
    from autograder.course.source_rules import LessonError

    there = [(lesson, name) for lesson in lessons_of(course, lessons) for name in lesson.exercises]
    for wanted in exercises:
        if wanted not in [name for _, name in there]:
            names = ", ".join(name for _, name in there)
            raise LessonError(f"there is no exercise {wanted!r}; there are {names}")
    chosen = [(lesson, name) for lesson, name in there if not exercises or name in exercises]
    if changed:
        from autograder.authors.trial import unproved

        waiting = {
            lesson: unproved(lesson) for lesson in dict.fromkeys(lesson for lesson, _ in chosen)
        }
        chosen = [(lesson, name) for lesson, name in chosen if name in waiting[lesson]]
    return chosen
