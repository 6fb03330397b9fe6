"""The submissions of a class, as ``grades.json`` tells of them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import GradesError
from autograder.grade.result import NOT_ATTEMPTED, PASSED, TestResult


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
class Entry:
    """One submission, as ``grades.json`` tells of it."""

    student: str
    assignment: str
    status: str
    reason: str
    max_score: float
    needs_manual_grade: bool
    tests: tuple[TestResult, ...]
    flags: tuple[str, ...]

    @cached_property
    def exercises(self) -> dict[str, ExerciseResult]:
        """What came of each exercise, in the order of the notebook."""
        names = dict.fromkeys(test.exercise for test in self.tests)
        return {
            name: ExerciseResult(tuple(test for test in self.tests if test.exercise == name))
            for name in names
        }

    @property
    def score(self) -> float:
        """Points of all its tests."""
        return sum(test.points for test in self.tests)


def read_grades(folder: ClassFolder) -> tuple[dict[str, str], list[Entry]]:
    """Course, engine and sandbox, and the submissions that ``grades.json`` tells of.

    Raises:
        GradesError: there is no such file, it is not ours, or it is about nobody.
    """
    path = folder.root / "grades.json"
    first = f"run `autograder grade {folder.root}`"
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        about = {name: str(tree[name]) for name in ("course", "engine", "sandbox")}
        entries = [_entry(one) for one in tree["submissions"]]
    except FileNotFoundError:
        raise GradesError(f"{path} does not exist; {first} first") from None
    except OSError as error:
        raise GradesError(f"{path} cannot be read: {error.strerror}; mend that") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise GradesError(
            f"{path} is not a grades file of this engine; move it away and {first}"
        ) from None
    if not entries:
        raise GradesError(f"{path} is about no submission; {first} when something is handed in")
    return about, entries


def _entry(tree: dict[str, Any]) -> Entry:
    return Entry(
        student=_text(tree["student"]),
        assignment=_text(tree["assignment"]),
        status=_text(tree["status"]),
        reason=_text(tree["reason"]),
        max_score=_number(tree["max_score"]),
        needs_manual_grade=bool(tree["needs_manual_grade"]),
        tests=tuple(
            TestResult(
                grade_id=_text(test["grade_id"]),
                exercise=_text(test["exercise"]),
                points=_number(test["points"]),
                max_points=_number(test["max_points"]),
                outcome=_text(test["outcome"]),
                message=_text(test["message"]),
                diagnosis=_text(test["diagnosis"]),
            )
            for test in tree["tests"]
        ),
        flags=tuple(_text(flag) for flag in tree["flags"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError
    return float(value)
