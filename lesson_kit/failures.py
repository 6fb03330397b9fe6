"""A failed check: what it tells the student, and the evidence it keeps.

In a notebook a failed check shows a box with a plain-text fallback, and no traceback; what is known
of the mistake stands first.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from . import setting
from .advice import advice
from .answer_text import as_known
from .cells import asked_by_a_page, exercise_of_cell
from .differences import Shown
from .evidence import Evidence, evidence_of
from .exceptions import lines_of
from .shown import (
    NOTHING,
    WIDTH,
    Piece,
    as_html,
    as_tables,
    as_text,
    decimals,
    folded,
    in_columns,
    lines_high,
    paragraph,
    piece_of,
    show_box,
    within_view,
)
from .words import N_, N_n, said, tr, tr_n

__all__ = [
    "CheckFailed",
    "ChecksFailed",
    "Evidence",
    "Part",
    "begin_cell",
    "begin_part",
    "parts",
]

Key = TypeVar("Key", bound=Hashable)

#: Rows of arrays that a box shows without a click, and characters of one that has room for another
#: beside it.
MAX_ROWS, SIDE_BY_SIDE = 3, 36

#: A paragraph of a message: what it is (part, asked, said, arrays), and its text.
Block = tuple[str, str]


class CheckFailed(AssertionError):
    """A check did not hold. IPython shows a box and no traceback.

    Attributes:
        sentence: what the author of the check says to the student.
        details: what differs, with values.
        evidence: by which a known mistake is recognised, or None.
        arrays: the student's array and the expected one; of larger ones the first part that
            differs; or None.
        place: which part that is, as an index, such as " [0, 2:10]"; or "".
        against: of what call the second array is, where it comes of the student's code too; or "".
    """

    def __init__(
        self,
        sentence: str,
        *details: str,
        evidence: Evidence | None = None,
        shown: Shown = (None, ""),
        against: str = "",
    ) -> None:
        self.sentence = said(sentence)
        self.details = tuple(_sentence(detail) for detail in details if detail)
        self.evidence = evidence
        self.arrays, self.place = shown
        self.against = against
        self._boxed = False
        super().__init__(sentence, *details)

    @cached_property
    def advice(self) -> str:
        """What is known of the mistake, or "". Asked for when the failure is shown: one that a
        test expects costs nothing."""
        return advice(exercise_of_cell(), evidence_of(self), begin_cell, parts)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def own_blocks(self) -> Iterator[Block]:
        """The message, without the advice above it."""
        yield "asked", self.sentence
        for detail in self.details:
            yield "said", detail
        if self.arrays is not None:
            places = decimals(*self.arrays)
            yours, expected = (in_columns(array, places) for array in self.arrays)
            against = said(self.against)
            other = against[:1].upper() + against[1:] or tr("Expected")
            shown = [f"{tr('Yours')}{self.place}:", yours, f"{other}{self.place}:", expected]
            yield "arrays", "\n".join(shown)

    def lines(self) -> list[str]:
        """The message as plain text."""
        texts = [self.advice] if self.advice else []
        texts += [text for _, text in self.own_blocks()]
        return "\n".join(texts).split("\n")

    def html(self) -> str:
        """The message as a box for a notebook, its highest parts folded where it is too high."""
        first = [piece_of(self.advice, strong=True)] if self.advice else []
        return within_view([*first, *self._own_pieces()])

    def _own_pieces(self) -> Iterator[Piece]:
        yield from self.pieces(list(self.own_blocks()), known=bool(self.advice))

    def pieces(self, blocks: list[Block], *, known: bool) -> Iterator[Piece]:
        """Paragraphs and arrays as parts of a box.

        Args:
            blocks: of :meth:`own_blocks`.
            known: what is wrong is said above them, so that what the check asks can be folded.
        """
        for kind, text in blocks:
            if kind == "arrays" and self.arrays is not None:
                yield self._tables(text)
            else:
                yield piece_of(
                    text, tr("What this check asks") if known and kind == "asked" else ""
                )

    def _tables(self, text: str) -> Piece:
        """The arrays: folded where their rows would hide what is said of them."""
        assert self.arrays is not None
        tables = as_tables(*self.arrays, self.place, self.against)
        title = tr("The values, side by side")
        if any(len(np.atleast_2d(array)) > MAX_ROWS for array in self.arrays):
            return Piece(folded(title, tables), 1)
        lines = text.split("\n")
        wide = max(map(len, lines)) > SIDE_BY_SIDE
        return Piece(tables, len(lines) * 1.2 / (1 if wide else 2), title)

    def points(self) -> float:
        """Of the named checks that passed."""
        return 0.0

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: where a page shows a box, nothing more."""
        text = as_text(self.lines())
        # IPython asks twice: to show the error, and for the reply to the front end.
        self._boxed = self._boxed or show_box(self.html(), self.lines(), self.points())
        if not self._boxed:
            return text
        if asked_by_a_page():
            return [NOTHING]
        # What runs a notebook without showing it, as nbgrader's Validate does, has these lines.
        return textwrap.wrap(self.advice or self.sentence, WIDTH)


def _sentence(detail: str) -> str:
    """With a capital, unless it begins with a name from code."""
    # How what is no code begins, in small letters: articles, each with its space.
    begins = tuple(tr("the |item ").split("|"))
    return detail[0].upper() + detail[1:] if detail.startswith(begins) else detail


@dataclass
class Part:
    """A named check in a test cell: what it is worth and what came of it.

    Attributes:
        name: what is checked, in words for the student.
        points: what it is worth.
        error: why it failed.
        over: whether it ran to its end.
        side: it is a side condition, see :func:`settle`.
    """

    name: str
    points: float
    error: Exception | None = None
    over: bool = False
    side: bool = False

    def fail(self, error: Exception) -> None:
        """Keep why it failed, for :func:`settle`; in haste that ends the cell."""
        self.error = error
        if setting.now.hasty:
            raise error

    @property
    def passed(self) -> bool:
        """Whether it counts."""
        return self.over and self.error is None

    @property
    def mark(self) -> str:
        """What stands before its name where some checks did not pass."""
        return "○" if isinstance(self.error, NotYetCounted) else "✗"


#: What a student reads of a side condition that holds while nothing else does.
NOT_YET_COUNTED = N_("This holds, and it counts once a check beside it passes of what {} computes.")


class NotYetCounted(CheckFailed):
    """A side condition holds while nothing else does."""

    def __init__(self, exercise: str) -> None:
        super().__init__(tr(NOT_YET_COUNTED).format(exercise or tr("this exercise")))


def lone_side_conditions(checks: Iterable[tuple[Key, str, bool, bool]]) -> set[Key]:
    """Those of some checks that hold while nothing beside them does that is no side condition.

    Arguments that stay as they are, errors for wrong use, texts that do not disturb each other:
    a function that does nothing can have these too, and by themselves they are worth nothing.

    Args:
        checks: of each what it is called by, whose it is, whether it passes, and whether it is a
            side condition.
    """
    known = list(checks)
    works = {whose for _, whose, passes, side in known if passes and not side}
    return {key for key, whose, passes, _ in known if passes and whose not in works}


def settle(parts: list[Part], exercise: str) -> list[Part]:
    """The named checks of a cell; fails those that :func:`lone_side_conditions` says."""
    checks = [(at, exercise, part.passed, part.side) for at, part in enumerate(parts)]
    for at in lone_side_conditions(checks):
        parts[at].error = NotYetCounted(exercise)
    return parts


_parts: list[Part] = []


def begin_cell() -> None:
    """Forget the named checks of an earlier cell."""
    _parts.clear()


def parts() -> list[Part]:
    """The named checks of the cell so far, in order."""
    return list(_parts)


def begin_part(name: str, points: float, *, side: bool = False) -> Part:
    """Another named check of the cell; one of the same name means that the cell runs again."""
    if _parts and _parts[-1].over and any(part.name == said(name) for part in _parts):
        begin_cell()
    _parts.append(Part(said(name), points, side=side))
    return _parts[-1]


def _points(points: float) -> str:
    return tr_n("{n} point", "{n} points", points)


class ChecksFailed(CheckFailed):
    """Some of a cell's named checks did not hold."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        failed = [part for part in parts if part.error is not None]
        # What is wrong comes first: a side condition that holds says nothing of a mistake.
        self.failed = sorted(failed, key=lambda part: isinstance(part.error, NotYetCounted))
        wrong = sum(not isinstance(part.error, NotYetCounted) for part in failed)
        singular, plural = N_n(
            "{n} of {whole} checks does not pass yet.", "{n} of {whole} checks do not pass yet."
        )
        super().__init__(tr_n(singular, plural, wrong, whole=len(parts)))

    def points(self) -> float:
        """Of the named checks that passed."""
        return sum((part.points for part in self.parts if part.error is None), 0.0)

    def own_blocks(self) -> Iterator[Block]:
        """The message, without the advice above it; nothing is said twice."""
        yield "said", self.sentence
        for part, blocks in self._by_part():
            yield "part", f"{part.mark} {part.name} ({_points(part.points)}):"
            yield from blocks

    def _by_part(self) -> Iterator[tuple[Part, list[Block]]]:
        before = {self.advice, self.advice.removeprefix(as_known(""))}
        for part in self.failed:
            assert part.error is not None
            blocks = (
                list(part.error.own_blocks())
                if isinstance(part.error, CheckFailed)
                else [("said", said(line)) for line in lines_of(part.error)]
            )
            new = [(kind, text) for kind, text in blocks if kind == "arrays" or text not in before]
            before |= {text for _, text in new}
            yield part, new or [("said", tr("As above."))]

    def _own_pieces(self) -> Iterator[Piece]:
        shown = []
        for part, blocks in self._by_part():
            title = f"{part.mark} <em>{html.escape(part.name)}</em> ({_points(part.points)})"
            error = part.error if isinstance(part.error, CheckFailed) else self
            body = error.pieces(blocks, known=bool(self.advice))
            shown.append([Piece(paragraph(title), lines_high(part.name)), *body])
        # The first is read at once; the others wait, so that the headline stays in view.
        yield from shown[0]
        others = "".join(piece.html for pieces in shown[1:] for piece in pieces)
        sentence = self.sentence
        yield Piece(folded(as_html(sentence), others), 1) if others else piece_of(sentence)
