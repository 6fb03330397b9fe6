"""Of two arrays that differ, the part to look at: small enough to be shown, with its index."""

from __future__ import annotations

import numpy as np

__all__ = ["Shown", "where_they_differ"]

#: A matrix of so many numbers is shown whole; of a row that is longer than this, a stretch.
MOST = 64
LONGEST = 8
#: Numbers of that stretch.
STRETCH = 8

#: The student's part and the expected one, or None; and its index where it is not everything.
Shown = tuple[tuple[np.ndarray, np.ndarray] | None, str]


def where_they_differ(got: np.ndarray, want: np.ndarray, first: tuple[int, ...]) -> Shown:
    """The smallest part of two arrays around a difference that still can be read.

    A small matrix, the first of several that differs; of a large one the row; of a long row the
    numbers around the difference.

    Args:
        got, want: of one shape.
        first: the place of the first difference.
    """
    if not got.ndim:
        return None, ""
    length = got.shape[-1]
    index: tuple[int | slice, ...] = first[:-2]
    if got[index].size > MOST or length > LONGEST:
        index = first[:-1]
    if length > LONGEST:
        begin = max(0, min(first[-1] - STRETCH // 2, length - STRETCH))
        index = (*index, slice(begin, begin + STRETCH))
    return (got[index], want[index]), _as_index(index) if index else ""


def _as_index(index: tuple[int | slice, ...]) -> str:
    parts = [
        f"{part.start}:{part.stop}" if isinstance(part, slice) else f"{part}" for part in index
    ]
    return f" [{', '.join(parts)}]"
