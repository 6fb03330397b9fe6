"""What the grader asks about the sources of a submission.

Nothing that a student wrote is compiled, parsed or tokenised in a process that grades others: 2,300
characters can take a compiler gigabytes. It is done in :mod:`.reader_process`, within limits, and
no more is looked at than a person writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from autograder.limited_process import LimitedProcess, TooMuch
from lesson_kit.claims import Words

__all__ = ["TooMuch", "let_through", "names_bound", "rebound_at", "repaired", "words_of"]

#: Characters of one cell that are looked at; of a longer one everything may be.
MOST_OF_A_CELL = 20_000
#: Characters of all cells of a notebook.
MOST_OF_A_NOTEBOOK = 400_000

_reader = LimitedProcess("autograder.grade.reader_process")


def rebound_at(cells: Sequence[str], places: Iterable[int]) -> frozenset[int]:
    """The places of a notebook after which what stands before them may come to mean another thing.

    See :mod:`.rebound`. Of what is too long, or too much to compile, that is every place.

    Args:
        cells: sources of its cells.
        places: numbers of cells before each.
    """
    places = frozenset(places)
    if not places or sum(map(len, cells)) > MOST_OF_A_NOTEBOOK:
        return places
    looked_at = [cell if len(cell) <= MOST_OF_A_CELL else None for cell in cells]
    try:
        return frozenset(_reader.ask("rebound", looked_at, sorted(places)))
    except TooMuch:
        return places


def names_bound(source: str) -> list[str]:
    """The functions, classes and variables that a cell binds at its top level, in order.

    Empty for what is no Python, too long or too much.
    """
    if len(source) > MOST_OF_A_CELL:
        return []
    try:
        return list(map(str, _reader.ask("names_bound", source)))
    except TooMuch:
        return []


def words_of(source: str) -> Words:
    """The words of an answer, by which a sentence about them is told; none if it is too long.

    Raises:
        TooMuch: it cannot be read.
    """
    if len(source) > MOST_OF_A_CELL:
        return Words()
    names, numbers = _reader.ask("words", source)
    return Words(frozenset(names), frozenset(numbers))


def repaired(source: str, passes: Callable[[str], bool], seconds: float) -> str:
    """:func:`.nearest_repair` of an answer.

    Args:
        source: of the answer.
        passes: whether the checks pass with an answer like this.
        seconds: that it may take.

    Raises:
        TooMuch: it cannot be read or changed.
    """
    if len(source) > MOST_OF_A_CELL:
        return ""
    return str(_reader.ask("repair", source, seconds, answer=passes))


def let_through(kind: str, text: str, cells: Sequence[str]) -> tuple[str, float]:
    """What may be told of an exception's text; see :mod:`.hidden_exceptions`.

    Raises:
        TooMuch: it cannot be read.
    """
    shown, bits = _reader.ask("let_through", kind, text, list(cells))
    return str(shown), float(bits)
