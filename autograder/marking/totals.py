"""What grading a class came to in a few lines: totals, exceptions, and whose points changed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.classroom.grades_file import NOTHING_HANDED_IN, GradedSubmission
from autograder.classroom.roster import WITHDRAWN
from autograder.grade.flags import UNREAD
from autograder.grade.result import GRADED
from autograder.tables import as_points
from autograder.text import aligned, listed, plain_line

#: Students that a table on a terminal shows without being asked.
MAX_IN_TABLE = 40
#: Names in one line.
MAX_NAMES = 20


def totals(submissions: Sequence[GradedSubmission]) -> list[str]:
    """One line an assignment: how many were graded, and the points of the one in the middle."""
    lines = []
    for name in sorted({submission.result.assignment for submission in submissions}):
        here = [submission for submission in submissions if submission.result.assignment == name]
        stand = [
            submission.standing
            for submission in here
            if submission.result.status == GRADED and submission.standing is not None
        ]
        said = f"{name}: {len(stand)} graded"
        if stand:
            middle = statistics.median(standing.total for standing in stand)
            said += f", median {as_points(middle)} of {as_points(stand[0].out_of)}"
            waits = sum(
                submission.standing.needs_manual_grade
                for submission in here
                if submission.standing is not None and WITHDRAWN not in submission.notes
            )
            said += f", {waits} with answers to mark" if waits else ""
        lines.append(said)
    return lines


def exceptions(
    submissions: Sequence[GradedSubmission], *, grace_minutes: float = 0.0, details: bool = False
) -> list[str]:
    """A line for each kind of exception, with names.

    Args:
        submissions: of a class, graded.
        grace_minutes: who came within them is not late.
        details: name everybody, however many.
    """
    several = len({submission.result.assignment for submission in submissions}) > 1
    by_kind: dict[str, list[str]] = {}
    for submission in sorted(submissions, key=lambda submission: submission.key):
        number = submission.result.assignment.split("-")[0]
        who = f"{submission.student} ({number})" if several else submission.student
        for kind in _kinds(submission, grace_minutes):
            by_kind.setdefault(kind, []).append(who)
    most = len(submissions) if details else MAX_NAMES
    by_kind = {kind: list(dict.fromkeys(who)) for kind, who in by_kind.items()}
    return [f"{kind}: {len(who)}: {listed(who, most)}" for kind, who in sorted(by_kind.items())]


def _kinds(submission: GradedSubmission, grace_minutes: float) -> list[str]:
    kinds = [f"graded, but {note}" for note in submission.notes]
    if submission.result.reason == NOTHING_HANDED_IN:
        kinds.append("handed in no notebook")
    elif submission.result.status != GRADED:
        kinds.append(f"{submission.result.status}")
    kinds += [UNREAD[flag.kind] for flag in submission.result.flags if flag.kind in UNREAD]
    standing = submission.standing
    if standing is not None and (standing.late_minutes or 0) > grace_minutes:
        kinds.append("late")
    return kinds


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
