"""What grading a class came to in a few lines: totals, and who is an exception."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from autograder.classroom.grades_file import NOTHING_HANDED_IN, Verdict
from autograder.grade.result import GRADED
from autograder.tables import as_points
from autograder.text import listed

#: Students that a table on a terminal shows without being asked.
MOST_IN_TABLE = 40
#: Names in one line.
MOST_NAMES = 20


def totals(verdicts: Sequence[Verdict]) -> list[str]:
    """One line an assignment: how many were graded, and the points of the one in the middle."""
    lines = []
    for name in sorted({verdict.result.assignment for verdict in verdicts}):
        here = [verdict for verdict in verdicts if verdict.result.assignment == name]
        stand = [
            verdict.standing
            for verdict in here
            if verdict.result.status == GRADED and verdict.standing is not None
        ]
        said = f"{name}: {len(stand)} graded"
        if stand:
            middle = statistics.median(standing.total for standing in stand)
            said += f", median {as_points(middle)} of {as_points(stand[0].out_of)}"
            waits = sum(standing.needs_manual_grade for standing in stand)
            said += f", {waits} with answers to mark" if waits else ""
        lines.append(said)
    return lines


def exceptions(verdicts: Sequence[Verdict], *, details: bool = False) -> list[str]:
    """A line for each kind of exception, with names.

    Args:
        verdicts: of a class.
        details: name everybody, however many.
    """
    several = len({verdict.result.assignment for verdict in verdicts}) > 1
    by_kind: dict[str, list[str]] = {}
    for verdict in sorted(verdicts, key=lambda verdict: verdict.key):
        number = verdict.result.assignment.split("-")[0]
        who = f"{verdict.student} ({number})" if several else verdict.student
        for kind in _kinds(verdict):
            by_kind.setdefault(kind, []).append(who)
    most = len(verdicts) if details else MOST_NAMES
    return [f"{kind}: {len(who)}: {listed(who, most)}" for kind, who in sorted(by_kind.items())]


def _kinds(verdict: Verdict) -> list[str]:
    kinds = [f"graded, but {note}" for note in verdict.notes]
    if verdict.result.reason == NOTHING_HANDED_IN:
        kinds.append("handed in nothing")
    elif verdict.result.status != GRADED:
        kinds.append(f"{verdict.result.status}")
    if verdict.standing is not None and verdict.standing.late_minutes:
        kinds.append("late")
    return kinds
