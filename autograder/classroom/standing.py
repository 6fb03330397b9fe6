"""What a submission counts in the end: machine, person and clock together.

nbgrader's gradebook holds it all: the points, the due date of an assignment, when a
submission came, and its late penalty, which the Formgrader shows. A person's extension,
given in the gradebook, counts.
"""

from __future__ import annotations

import math
from datetime import UTC, timedelta
from pathlib import Path

from nbgrader.api import (
    Grade,
    Gradebook,
    GradeCell,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.plugins import LateSubmissionPlugin

from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import GradedSubmission
from autograder.classroom.late import Standing, by_the_clock, read_timestamp


def settle(gradebook: Gradebook, folder: ClassFolder, student: str, assignment: str) -> Standing:
    """Write due date, time and late penalty of one submission into the gradebook.

    To be called again when a person gave points: the penalty is a share of all points.

    Raises:
        MissingEntry: the submission was never graded.
        LateError: class.toml cannot be used.
    """
    submission = gradebook.find_submission(assignment, student)
    due = folder.due.get(assignment)
    came = read_timestamp(folder.root / "submitted" / student / assignment)
    naive = {
        name: time and time.astimezone(UTC).replace(tzinfo=None)
        for name, time in (("due", due), ("came", came))
    }  # as nbgrader keeps times
    if due is not None:
        submission.assignment.duedate = naive["due"]
    if came is not None:
        submission.timestamp = naive["came"]
    longer = folder.extensions.of(student, assignment, due)
    if longer is not None:
        submission.extension = longer
    score = float(submission.score)
    dated = submission.assignment.duedate is not None
    minutes = submission.total_seconds_late / 60 if dated else 0.0
    penalty = folder.late_policy.penalty(score, minutes, _by_the_clock(submission, folder))
    left = penalty
    for notebook in submission.notebooks:
        notebook.late_submission_penalty = min(left, float(notebook.score))
        left -= notebook.late_submission_penalty
    grades = (
        gradebook.db.query(
            GradeCell.name,
            Grade.auto_score,
            Grade.manual_score,
            Grade.needs_manual_grade,
            GradeCell.max_score,
        )
        .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
        .join(GradeCell, Grade.cell_id == GradeCell.id)
        .filter(SubmittedNotebook.assignment_id == submission.id)
        .all()
    )
    machine = sum(auto or 0.0 for _, auto, given, _, _ in grades if given is None)
    gradebook.db.commit()
    return Standing(
        late_minutes=math.ceil(minutes) if dated else None,
        manual=score - machine,
        penalty=penalty,
        total=round(score - penalty, 4),
        out_of=float(sum(most for *_, most in grades)),
        to_mark=float(sum(most for *_, waits, most in grades if waits)),
        needs_manual_grade=any(waits for *_, waits, _ in grades),
        written=sum(given or 0.0 for name, _, given, _, _ in grades if name.startswith("written_")),
        extension=submission.extension or timedelta(),
    )


def _by_the_clock(submission: SubmittedAssignment, folder: ClassFolder) -> float | None:
    """Minutes from when a submission was due until it came, as clocks where the class is say it."""
    due, came = submission.duedate, submission.timestamp
    if due is None or came is None:
        return None
    return by_the_clock(due.replace(tzinfo=UTC), came.replace(tzinfo=UTC), folder.time_zone)


def give_standing(submission: GradedSubmission, gradebook: Gradebook, folder: ClassFolder) -> None:
    """Settle what a submission counts and let it say so: this is the number that everything shows.

    Raises:
        MissingEntry: the submission was never graded.
        LateError: class.toml cannot be used.
    """
    submission.standing = settle(gradebook, folder, *submission.key)
    submission.notes = folder.roster.notes(submission.student)


class LatePenalty(LateSubmissionPlugin):  # type: ignore[misc]
    """The penalty of class.toml, for nbgrader's own Autograde."""

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        """What is taken off the points of a notebook."""
        coursedir = self.parent.parent.parent.coursedir
        folder = ClassFolder.open(Path(coursedir.root))
        assignment, minutes = coursedir.assignment_id, total_seconds_late / 60
        due = folder.due_for(student_id, assignment)
        came = read_timestamp(folder.root / "submitted" / student_id / assignment)
        if due is None or came is None:
            return folder.late_policy.penalty(score, minutes)
        changed = by_the_clock(due, came, folder.time_zone) - by_the_clock(due, came, None)
        return folder.late_policy.penalty(score, minutes, minutes + changed)
