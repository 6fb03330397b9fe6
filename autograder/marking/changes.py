"""Whose published points changed between two gradings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from autograder.text import aligned, plain_line

Entries = dict[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True)
class Change:
    """An exercise of a submission whose points are not what they were."""

    student: str
    assignment: str
    exercise: str
    before: float
    after: float


def changes(before: Entries, after: Entries) -> list[Change]:
    """Whose published points changed, exercise by exercise.

    Args:
        before: the verdicts of ``grades.json`` as they were; who has none there is new.
        after: as they are.
    """
    changed: list[Change] = []
    for key in sorted(set(before) & set(after)):
        was, now = _by_exercise(before[key]), _by_exercise(after[key])
        for exercise in dict.fromkeys([*was, *now]):
            points = was.get(exercise, 0.0), now.get(exercise, 0.0)
            if abs(points[0] - points[1]) > 1e-9:
                changed.append(Change(*key, exercise, *points))
    return changed


def _by_exercise(entry: dict[str, Any]) -> dict[str, float]:
    points: dict[str, float] = {}
    for test in entry["tests"]:
        points[test["exercise"]] = points.get(test["exercise"], 0.0) + test["points"]
    return points


def table(changed: Iterable[Change]) -> str:
    """Changes for a terminal."""
    rows = [("student", "assignment", "exercise", "before", "after")]
    rows += [
        (
            plain_line(change.student),
            change.assignment,
            change.exercise,
            f"{change.before:g}",
            f"{change.after:g}",
        )
        for change in changed
    ]
    return "\n".join(aligned(rows, left=3))
