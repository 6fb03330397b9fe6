"""What the grader asks about the sources of a submission.

Nothing that a student wrote is compiled, parsed or tokenised in a process that grades others: 2,300
characters can take a compiler gigabytes. It is done in :mod:`.reader_process`, within limits, and
no more is looked at than a person writes.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from autograder.grade.limits import MAX_CELL_CHARACTERS, MAX_NOTEBOOK_CHARACTERS
from autograder.limited_process import LimitedProcess, TooMuch
from lesson_kit.answer_text import Words

#: Cells of which it is remembered what was seen.
MAX_LOOKS = 4_000
#: So many questions of one notebook may be too much, two seconds each; the rest is not asked.
MAX_TOO_MUCH = 5

_reader = LimitedProcess("autograder.grade.reader_process")


def rebound_at(cells: Sequence[str], places: Iterable[int]) -> frozenset[int]:
    """The places of a notebook after which what stands before them may come to mean another thing.

    See :mod:`.cell_names`. Of what is too long, or too much to compile, that is every place.

    Args:
        cells: sources of its cells.
        places: numbers of cells before each.
    """
    places = frozenset(places)
    if not places or sum(map(len, cells)) > MAX_NOTEBOOK_CHARACTERS:
        return places
    looked_at = [cell if len(cell) <= MAX_CELL_CHARACTERS else None for cell in cells]
    try:
        return frozenset(_reader.ask("rebound", looked_at, sorted(places)))
    except TooMuch:
        return places


def names_bound(source: str) -> list[str]:
    """The functions, classes and variables that a cell binds at its top level, in order.

    Empty for what is no Python, too long or too much.
    """
    if len(source) > MAX_CELL_CHARACTERS:
        return []
    try:
        return list(map(str, _reader.ask("names_bound", source)))
    except TooMuch:
        return []


class Look(NamedTuple):
    """What is seen of a cell: the digest of its form, the names that its code binds, and whether
    Python can read it."""

    digest: str
    binds: frozenset[str] = frozenset()
    is_python: bool = False


_looks: dict[tuple[str, bool], Look] = {}


def look_at(cells: Iterable[tuple[str, bool]]) -> None:
    """Look at cells all at once; :func:`look` then knows what is seen.

    Args:
        cells: source of each, and whether it is code.
    """
    new = [cell for cell in dict.fromkeys(cells) if cell not in _looks]
    wanted = [(source, code) for source, code in new if len(source) <= MAX_CELL_CHARACTERS]
    if len(_looks) + len(wanted) > MAX_LOOKS:
        _looks.clear()
    left = MAX_TOO_MUCH
    for batch in _batches(wanted):
        for some in (batch, *([cell] for cell in batch)):
            if left and not all(cell in _looks for cell in some):
                try:
                    _looks.update(zip(some, map(_look, _reader.ask("look", some))))
                except TooMuch:
                    left -= 1
    for cell in wanted:
        _looks.setdefault(cell, _unread(cell[0]))


def _batches(cells: Sequence[tuple[str, bool]]) -> Iterator[list[tuple[str, bool]]]:
    """As many cells at a time as a notebook of a person has."""
    batch: list[tuple[str, bool]] = []
    characters = 0
    for cell in cells:
        characters += len(cell[0])
        if characters > MAX_NOTEBOOK_CHARACTERS:
            yield batch
            batch, characters = [], len(cell[0])
        batch.append(cell)
    yield batch


def look(source: str, code: bool) -> Look:
    """What is seen of one cell. What is too long or too much is no cell that was handed out."""
    if (source, code) not in _looks:
        seen = _unread(source)
        if len(source) <= MAX_CELL_CHARACTERS:
            with contextlib.suppress(TooMuch):
                seen = _look(_reader.ask("look", [(source, code)])[0])
        _looks[source, code] = seen
    return _looks[source, code]


def _unread(source: str) -> Look:
    return Look(hashlib.sha256(source.encode("utf-8", "replace")).hexdigest())


def _look(seen: Any) -> Look:
    digest, binds, is_python = seen
    return Look(str(digest), frozenset(map(str, binds)), is_python is True)


def words_of(source: str) -> Words:
    """The words of an answer, by which a sentence about them is told; none if it is too long.

    Raises:
        TooMuch: it cannot be read.
    """
    if len(source) > MAX_CELL_CHARACTERS:
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
    if len(source) > MAX_CELL_CHARACTERS:
        return ""
    return str(_reader.ask("repair", source, seconds, answer=passes))


def let_through(kind: str, text: str, cells: Sequence[str]) -> tuple[str, float]:
    """What may be told of an exception's text; see :mod:`.hidden_exceptions`.

    Raises:
        TooMuch: it cannot be read.
    """
    shown, bits = _reader.ask("let_through", kind, text, list(cells))
    return str(shown), float(bits)
