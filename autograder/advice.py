"""What a student is told first when a check fails: the one thing that helps most, if it is certain.

Lies beside every notebook as ``lesson_advice.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from autograder.evidence import Evidence
from autograder.known_mistakes import known_mistake
from autograder.notebook_cells import not_run, not_yet_right

__all__ = ["advice", "look_up"]

_look_up = True


def look_up(yes: bool) -> None:
    """Whether a failed check gives advice (the grader does that itself)."""
    global _look_up
    _look_up = yes


def advice(exercise: str, evidence: Sequence[Evidence]) -> str:
    """The sentence to begin with, or "".

    In this order: the answer's cell did not run; an exercise that it builds on is not right
    yet; the known mistake that leaves this evidence.

    Args:
        exercise: whose check failed.
        evidence: what the check saw.
    """
    if not _look_up or not exercise:
        return ""
    return not_run(exercise) or not_yet_right(exercise) or known_mistake(exercise, evidence)
