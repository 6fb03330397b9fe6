"""What a student is told first when a check fails: the one thing that helps most, if it is certain.

Lies beside every notebook as ``lesson_advice.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autograder.lesson.cells import (
    namespace,
    not_run,
    not_yet_right,
    seconds_of_cell,
    source_of,
    source_of_cell,
)
from autograder.lesson.evidence import Evidence
from autograder.lesson.known_mistakes import known_mistake
from autograder.lesson.repair import in_this_notebook

__all__ = ["advice", "look_up"]

#: A check that takes longer is not tried again with repairs.
MOST_SECONDS = 0.4

_look_up = True


def look_up(yes: bool) -> None:
    """Whether a failed check gives advice (the grader does that itself)."""
    global _look_up
    _look_up = yes


def advice(exercise: str, evidence: Sequence[Evidence], begin_cell: Callable[[], None]) -> str:
    """The sentence to begin with, or "".

    In this order: the answer's cell did not run; an exercise that it builds on is not right
    yet; the known mistake that leaves this evidence; where one small change would mend it.

    Args:
        exercise: whose check failed.
        evidence: what the check saw.
        begin_cell: forgets the named checks of a cell.
    """
    if not _look_up or not exercise:
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
    look_up(False)  # the checks that are tried give no advice of their own
    try:
        return in_this_notebook(answer, check, namespace(), begin_cell)
    finally:
        look_up(True)
