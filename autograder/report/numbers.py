"""All numbers of a class report, counted from its submissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autograder.classroom.grades_file import RecordedResult
from autograder.classroom.marking_log import Agreement
from autograder.grade.result import GRADED
from autograder.report.findings import Misconception, Stopped, labels, misconceptions, stopped
from autograder.report.points import AssignmentNumbers, assignment_numbers
from autograder.report.review_queue import NeedsAnEye, need_an_eye


@dataclass(frozen=True)
class Report:
    """All numbers of a class report."""

    course: str
    engine: str
    sandbox: str
    names: bool
    students: int
    submissions: int
    assignments: tuple[AssignmentNumbers, ...]
    lost: int
    recognised: int
    misconceptions: tuple[Misconception, ...]
    stopped: tuple[Stopped, ...]
    need_an_eye: tuple[NeedsAnEye, ...]
    agreements: tuple[Agreement, ...] = ()

    def tree(self) -> dict[str, Any]:
        """The numbers as plain data, for JSON."""
        return asdict(self)


def make_report(
    about: dict[str, str],
    entries: Sequence[RecordedResult],
    *,
    seed: int = 0,
    names: bool = False,
    people: Mapping[str, str] | None = None,
    agreements: Sequence[Agreement] = (),
) -> Report:
    """All numbers of a class.

    Args:
        about: course, engine and sandbox.
        entries: the submissions.
        seed: of the class; see :func:`labels`.
        names: whether to say who is who.
        people: the names that the roster has, by id.
        agreements: of two people who marked the same answers.
    """
    called = labels((entry.student for entry in entries), seed, names, people or {})
    place = {student: number for number, student in enumerate(called)}
    entries = sorted(entries, key=lambda entry: (place[entry.student], entry.assignment))
    eyes = need_an_eye(entries, called, names)
    lost = [
        result
        for entry in entries
        if entry.status == GRADED
        for result in entry.exercises.values()
        if result.part in (1, 2)
    ]
    return Report(
        course=about["course"],
        engine=about["engine"],
        sandbox=about["sandbox"],
        names=names,
        students=len(called),
        submissions=sum(entry.handed_in for entry in entries),
        assignments=tuple(
            assignment_numbers(
                name,
                [entry for entry in entries if entry.assignment == name],
                sum(eye.assignment == name for eye in eyes),
            )
            for name in sorted({entry.assignment for entry in entries})
        ),
        lost=len(lost),
        recognised=sum(any(test.diagnosis for test in result.tests) for result in lost),
        misconceptions=tuple(misconceptions(entries, called, names)),
        stopped=tuple(stopped(entries, called)),
        need_an_eye=tuple(eyes),
        agreements=tuple(agreements),
    )
