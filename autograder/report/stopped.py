"""Exercises whose checks took too long or ended the process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from autograder.classroom.grades_file import RecordedResult
from autograder.grade.result import CRASHED, TIMEOUT, ExerciseResult
from autograder.report.labels import MAX_EXAMPLES


@dataclass(frozen=True)
class Stopped:
    """An exercise whose checks took too long or ended the process, and in which submissions."""

    assignment: str
    exercise: str
    submissions: int
    timeouts: int
    crashes: int
    examples: tuple[str, ...]


def stopped(entries: Iterable[RecordedResult], called: dict[str, str]) -> list[Stopped]:
    """The exercises in which that happened, by assignment, the most frequent first."""
    seen: dict[tuple[str, str], list[tuple[str, ExerciseResult]]] = {}
    for entry in entries:
        for exercise, result in entry.exercises.items():
            if result.has(TIMEOUT) or result.has(CRASHED):
                place = seen.setdefault((entry.assignment, exercise), [])
                place.append((called[entry.student], result))
    rows = [
        Stopped(
            assignment=assignment,
            exercise=exercise,
            submissions=len(who),
            timeouts=sum(result.has(TIMEOUT) for _, result in who),
            crashes=sum(result.has(CRASHED) for _, result in who),
            examples=tuple(label for label, _ in who[:MAX_EXAMPLES]),
        )
        for (assignment, exercise), who in seen.items()
    ]
    return sorted(rows, key=lambda row: (row.assignment, -row.submissions))
