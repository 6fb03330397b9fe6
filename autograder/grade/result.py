"""The verdict on one submission, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autograder.grade.cells import Cell
from autograder.grade.flags import Flag
from lesson_kit.answer_text import as_known
from lesson_kit.words import tr

#: Statuses of a submission, as grades.json names them.
GRADED, UNREADABLE, NO_NOTEBOOK, OUR_FAULT = "graded", "unreadable", "missing", "failed"

#: Outcomes of a test, as grades.json names them.
PASSED, PARTIAL, FAILED = "passed", "partial", "failed"
NOT_ATTEMPTED, TIMEOUT, CRASHED, MISSING = "not_attempted", "timeout", "crashed", "missing"


@dataclass(frozen=True)
class TestResult:
    """What came of one test cell.

    ``message`` is for the student. Of a hidden test it holds what its author says to the
    student, never a value. ``diagnosis`` names the known mistake that shows in it, and
    ``sentence`` is what is said of that, in one line. ``passed_parts`` are the named checks of the
    cell that passed, and their points.
    """

    __test__ = False  # not for pytest

    grade_id: str
    exercise: str
    points: float
    max_points: float
    outcome: str
    message: str = ""
    diagnosis: str = ""
    sentence: str = ""
    passed_parts: tuple[tuple[str, float], ...] = ()

    @property
    def says(self) -> str:
        """All that the student is told: of the known mistake, and of the test."""
        return self._under(as_known(self.sentence) if self.diagnosis else self.sentence)

    @property
    def recorded(self) -> str:
        """The same as ``grades.json`` keeps it: the sentence as the catalogue has it."""
        return self._under(self.sentence)

    def _under(self, sentence: str) -> str:
        return f"{sentence}\n{self.message}" if sentence else self.message


def line_of_part(mark: str, name: str, points: float, most: float) -> str:
    """What a message says of a named check: whether it passed, and its points."""
    both = {"points": f"{points:g}", "most": f"{most:g}"}
    return f"{mark} {name}: " + tr("{points} of {most}", **both)


@dataclass(frozen=True)
class CellRun:
    """What one of the student's cells did; ``unfinished``: it stopped at what is not written."""

    source: str
    grade_id: str
    output: str = ""
    error: str = ""
    unfinished: bool = False


@dataclass(frozen=True)
class ExerciseResult:
    """The tests of one exercise in one submission."""

    tests: tuple[TestResult, ...]

    @property
    def points(self) -> float:
        """Points of all its tests."""
        return sum(test.points for test in self.tests)

    @property
    def max_points(self) -> float:
        """Points it can bring."""
        return sum(test.max_points for test in self.tests)

    @property
    def share(self) -> float:
        """Share of its points, 0 to 1."""
        if not self.max_points:
            return float(all(test.outcome == PASSED for test in self.tests))
        return self.points / self.max_points

    @property
    def attempted(self) -> bool:
        """Whether the stub was touched, as far as the tests could see."""
        return any(test.outcome != NOT_ATTEMPTED for test in self.tests)

    def has(self, outcome: str) -> bool:
        """Whether one of its tests came out like that."""
        return any(test.outcome == outcome for test in self.tests)

    @property
    def part(self) -> int:
        """0 all points, 1 some, 2 tried and none, 3 not attempted."""
        if not self.attempted:
            return 3
        if math.isclose(self.share, 1.0):
            return 0
        return 1 if self.share > 1e-9 else 2


@dataclass(frozen=True)
class Result:
    """What the machine came to about one submission.

    ``reached_under``: see :mod:`.engine`; ``out_of_time``: a cell or a test took too long, so it is
    not kept; ``gave_up``: it slept, or seemed to, for too long.
    """

    assignment: str
    notebook: str
    status: str
    reason: str = ""
    tests: tuple[TestResult, ...] = ()
    written_to_read: frozenset[str] = frozenset()
    flags: tuple[Flag, ...] = ()
    runs: tuple[CellRun, ...] = ()
    cells: tuple[Cell, ...] = ()
    max_score: float = 0.0
    seconds: float = 0.0
    reached_under: str = ""
    out_of_time: bool = False
    gave_up: bool = False

    @property
    def score(self) -> float:
        """Points that the machine gives."""
        return sum(test.points for test in self.tests)

    @property
    def needs_manual_grade(self) -> bool:
        """Whether a person has something to grade."""
        return bool(self.written_to_read)
