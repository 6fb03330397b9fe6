"""What the hidden tests of one submission tell of exceptions: so many bits, and no more.

The text of an exception is the student's to choose, and what a hidden test gave the code could be
put into it. Each text that is told costs what a code for it would take; when
:data:`.limits.MAX_TOLD_BITS` are spent, no further one is told. So of all that can be said about
exceptions in a submission there is less than two to the power of 70.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from autograder.box.box import BoxError, in_line
from autograder.grade.limits import (
    MAX_CELL_CHARACTERS,
    MAX_NOTEBOOK_CHARACTERS,
    MAX_TOLD_BITS,
    MAX_TOLD_LINE_CHARACTERS,
)
from autograder.grade.reader import let_through
from autograder.limited_process import TooMuch

HOW_MANY = 1.5
#: Bits for which of the named checks of a test it is.
WHICH_CHECK = 3.0


class Telling:
    """What was told of one submission, and what may still be."""

    def __init__(self, cells: Sequence[str], tests: int) -> None:
        """Nothing is told yet.

        Args:
            cells: sources of the student's notebook; of a very long one nothing is told.
            tests: how many there are.
        """
        self._cells = [cell for cell in cells if len(cell) <= MAX_CELL_CHARACTERS]
        if sum(map(len, self._cells)) > MAX_NOTEBOOK_CHARACTERS:
            self._cells = []
        self._lines = {row.strip() for cell in self._cells for row in cell.splitlines()}
        self._where = math.log2(max(tests, 1)) + WHICH_CHECK
        self._told: list[tuple[str, str, bool]] = []
        self.bits_left = MAX_TOLD_BITS - HOW_MANY

    def of(self, error: BoxError) -> tuple[str, str]:
        """The text of an exception, made anew, and the line in which it arose, in words; or "".

        Args:
            error: as the box says.
        """
        if error.by_hand:
            return "", ""
        try:
            text, bits = let_through(error.types[0], error.text, self._cells)
        except TooMuch:
            return "", ""
        line = error.line.strip()
        has_line = 0 < len(line) <= MAX_TOLD_LINE_CHARACTERS and line in self._lines
        if text and has_line and self._spend((text, line, error.below), bits):
            return text, in_line(line, error.below)
        if text and self._spend((text, "", bool(line)), bits):
            return text, ""
        return "", ""

    def _spend(self, what: tuple[str, str, bool], bits: float) -> bool:
        """Whether this may be told; if so it is. What was told before costs less."""
        if what in self._told:
            cost = 1 + math.log2(len(self._told))
        else:
            cost = 1 + bits + (2 + math.log2(len(self._lines)) if what[1] else 2)
        if cost + self._where > self.bits_left:
            return False
        self.bits_left -= cost + self._where
        self._told += [what] if what not in self._told else []
        return True
