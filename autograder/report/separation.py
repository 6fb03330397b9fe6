"""Which exercises separate strong from weak: a correlation, and what it means in words."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

#: Submissions below which a correlation says nothing.
FEWEST_TO_CORRELATE = 10


def separates(shares: Sequence[float], rest: Sequence[float]) -> tuple[float | None, str]:
    """How well an exercise separates strong from weak: the item-rest correlation.

    Args:
        shares: each submission's share of the exercise's points.
        rest: its points in the rest of the assignment; the exercise is not among them,
            or it would be correlated with itself.

    Returns:
        Pearson's correlation, -1 to 1, and ""; or None and why there is none.
    """
    if len(shares) < FEWEST_TO_CORRELATE:
        return None, f"fewer than {FEWEST_TO_CORRELATE} submissions"
    if max(shares) - min(shares) < 1e-9:
        return None, "all have the same points here"
    if max(rest) - min(rest) < 1e-9:
        return None, "all have the same points elsewhere"
    return statistics.correlation(shares, rest), ""


def in_words(separation: float) -> str:
    """A correlation in words; the steps are those in use for items of examinations."""
    if separation < 0:
        return "the wrong way round: look at its checks"
    for least, words in ((0.6, "strongly"), (0.4, "clearly"), (0.2, "somewhat")):
        if separation >= least:
            return words
    return "hardly"
