"""How far a result may be from what is expected and still be the same.

A formula that was computed in single precision where double is asked for is the right formula with
fewer digits: that costs the points of the checks that ask for precision, and no others.
"""

from __future__ import annotations

import numpy as np

__all__ = ["tolerance"]

#: Relative and absolute, of results of that precision.
HALF, SINGLE, DOUBLE = (2e-2, 2e-3), (1e-4, 1e-5), (1e-7, 1e-9)
#: Of doubles that may have been single precision on their way.
ON_THE_WAY = (1e-5, 1e-6)


def tolerance(
    got: np.ndarray, want: np.ndarray, given: tuple[float | None, ...], *, precise: bool
) -> list[float]:
    """The relative and the absolute tolerance of a comparison.

    What is given holds, and for results in single precision no less than these have. By default
    the absolute one is relative to the largest value where that is below 1: a small number does
    not pass for being small.

    Args:
        got: a result.
        want: what is expected.
        given: what the check allows; None for what follows from the precision.
        precise: the check asks for the precision of ``want``.
    """
    if want.dtype != np.float64 or precise:
        default = {np.float16: HALF, np.float32: SINGLE}.get(want.dtype.type, DOUBLE)
        least = 0
    else:
        least = int(got.dtype == np.float32)
        relative, absolute = SINGLE if least else ON_THE_WAY
        largest = float(np.max(np.abs(want), initial=0.0, where=np.isfinite(want)))
        default = relative, max(DOUBLE[1], absolute * min(1.0, largest))
    return [usual if it is None else max(it, least * usual) for it, usual in zip(given, default)]
