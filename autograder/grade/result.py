"""The verdict on one submission, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.grade.submission import Cell

#: Statuses of a submission, as grades.json names them.
GRADED, UNREADABLE, NO_NOTEBOOK, OUR_FAULT = "graded", "unreadable", "missing", "failed"

#: Outcomes of a test, as grades.json names them.
PASSED, PARTIAL, FAILED = "passed", "partial", "failed"
NOT_ATTEMPTED, TIMEOUT, CRASHED, MISSING = "not_attempted", "timeout", "crashed", "missing"


@dataclass(frozen=True)
class TestResult:
    """What came of one test cell.

    ``message`` is for the student. Of a hidden test it holds what its author says to the
    student, never a value.
    """

    __test__ = False  # not for pytest

    grade_id: str
    exercise: str
    points: float
    max_points: float
    outcome: str
    message: str = ""
    diagnosis: str = ""


@dataclass(frozen=True)
class CellRun:
    """What one of the student's cells did."""

    source: str
    grade_id: str
    output: str = ""
    error: str = ""


@dataclass(frozen=True)
class Graded:
    """The verdict on one submission."""

    assignment: str
    notebook: str
    status: str
    reason: str = ""
    tests: tuple[TestResult, ...] = ()
    written_to_read: frozenset[str] = frozenset()
    flags: tuple[str, ...] = ()
    runs: tuple[CellRun, ...] = ()
    cells: tuple[Cell, ...] = ()
    max_score: float = 0.0
    seconds: float = 0.0

    @property
    def score(self) -> float:
        """Points that the machine gives."""
        return sum(test.points for test in self.tests)

    @property
    def needs_manual_grade(self) -> bool:
        """Whether a person has something to grade."""
        return bool(self.written_to_read)
