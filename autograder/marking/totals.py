"""What grading a class came to in a few lines: totals, and who is an exception."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from autograder.classroom.grades_file import NOTHING_HANDED_IN, GradedSubmission
from autograder.classroom.roster import WITHDRAWN
from autograder.grade.flags import UNREAD
from autograder.grade.result import GRADED
from autograder.tables import as_points
from autograder.text import listed

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
