"""What a student is told first when a check fails: the one thing that helps most, if it is certain.

Lies beside every notebook as ``lesson/advice.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import setting
from .cells import (
    namespace,
    not_run,
    not_yet_right,
    seconds_of_cell,
    source_of,
    source_of_cell,
)
from .evidence import Evidence
from .known_mistakes import known_mistake
from .repair import in_this_notebook

__all__ = ["advice"]

#: A check that takes longer is not tried again with repairs.
MOST_SECONDS = 0.4


def advice(exercise: str, evidence: Sequence[Evidence], begin_cell: Callable[[], None]) -> str:
    """The sentence to begin with, or "".

    In this order: the answer's cell did not run; an exercise that it builds on is not right
    yet; the known mistake that leaves this evidence; where one small change would mend it.

    Args:
        exercise: whose check failed.
        evidence: what the check saw.
        begin_cell: forgets the named checks of a cell.
    """
    if not setting.now.advice or not exercise:
        return ""
    return (
        not_run(exercise)
        or not_yet_right(exercise)
        or known_mistake(exercise, evidence)
        or _repair(exercise, begin_cell)
    )


def _repair(exercise: str, begin_cell: Callable[[], None]) -> str:
    answer, check = source_of(exercise), source_of_cell()
    if not answer or not check or seconds_of_cell() > MOST_SECONDS:
        return ""
    with setting.without_advice():  # the checks that are tried give none of their own
        return in_this_notebook(answer, check, namespace(), begin_cell)
