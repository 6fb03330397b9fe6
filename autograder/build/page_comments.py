"""What the page adds to a code cell as comments: how long it takes, what a right answer means.

Comments and not metadata, so that every program that opens notebooks shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

from autograder.course.cell_headers import MEANS, SECONDS
from autograder.course.lessons import Lesson
from autograder.course.translation import text_in
from lesson_kit.shown import IF_IT_PASSES, OPENS
from lesson_kit.words import N_, tr

_TAKES = N_("Takes about {seconds} s on a laptop.")


def saying_how_long(parts: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    """What the page makes of one cell, with a line if its author says that it takes long.

    The line is above the first part. A folded cell shows its first line alone, so there the words
    stand at its end.
    """
    for number, cell in enumerate(parts):
        seconds = cell.metadata.pop(SECONDS, None)
        if seconds and not number:
            words = tr(_TAKES, seconds=f"{seconds:g}")
            first, *rest = cell.source.split("\n")
            folded = cell.metadata.get("jupyter", {}).get("source_hidden")
            top = (
                [f"{first} {words}"] if folded and first.startswith("#") else [f"# {words}", first]
            )
            cell.source = "\n".join([*top, *rest])
        yield cell


def say_what_passing_means(lesson: Lesson, check: NotebookNode, figures: str) -> None:
    """Write into a check what its box says once it passes.

    Args:
        lesson: whose language is spoken.
        check: on the page, with its first line; its author's ``means=`` goes.
        figures: those that a right answer opens, in words; "" if there are none.
    """
    means = text_in(lesson, check.metadata.pop(MEANS, ""))
    first, rest = check.source.split("\n", 1)
    added = [tr(IF_IT_PASSES, means=means)] if means else []
    added += [tr(OPENS, figures=figures)] if figures else []
    check.source = "\n".join([first, *added, rest])
