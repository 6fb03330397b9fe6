"""``grades.json`` and ``grades.csv``: the results of a class as files for others to read.

Both are written here, and ``grades.json`` is read here and nowhere else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import autograder
from autograder.classroom.folder import ClassFolder
from autograder.classroom.late import Standing
from autograder.errors import WrongUse
from autograder.files import write_whole
from autograder.grade.flags import Flag, flag_of
from autograder.grade.result import GRADED, ExerciseResult, Result, TestResult
from autograder.tables import as_cell, as_csv, as_points
from autograder.text import aligned, plain_line

#: Where the submissions begin in ``grades.json``.
_LIST = re.compile(r'"submissions":\s*\[')
_BETWEEN = re.compile(r"[,\s]*")

#: Said of a student on the roster of whom no notebook was collected; a file of another kind that
#: came with an archive is left there.
NOTHING_HANDED_IN = "No notebook was handed in."
_NOTHING = (NOTHING_HANDED_IN, "Nothing was handed in.")  # as files of before have it


@dataclass
class GradedSubmission:
    """A graded submission and whose it is.

    ``standing`` is what it counts in the end, known once it is published; ``notes`` is what
    the roster says of the student.
    """

    student: str
    result: Result
    standing: Standing | None = None
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Student and assignment: one submission each."""
        return self.student, self.result.assignment

    def entry(self) -> dict[str, Any]:
        """Its entry in ``grades.json``."""
        result = self.result
        return {
            "student": self.student,
            "assignment": result.assignment,
            "notebook": result.notebook,
            "status": result.status,
            "reason": result.reason,
            "score": result.score,
            "max_score": result.max_score,
            "needs_manual_grade": result.needs_manual_grade,
            "tests": [_test_entry(test) for test in result.tests],
            "flags": [*map(str, result.flags), *self.notes],
            "seconds": round(result.seconds, 2),
            "reached_under": result.reached_under,
            **(self.standing.entry() if self.standing is not None else {}),
        }


def _test_entry(test: TestResult) -> dict[str, Any]:
    """A test as ``grades.json`` holds it: its message begins with the line on a known mistake."""
    return {
        "grade_id": test.grade_id,
        "exercise": test.exercise,
        "points": test.points,
        "max_points": test.max_points,
        "outcome": test.outcome,
        "message": test.recorded,
        "diagnosis": test.diagnosis,
    }


def _test_of(tree: dict[str, Any]) -> TestResult:
    """What :func:`_test_entry` wrote."""
    diagnosis, says = _text(tree["diagnosis"]), _text(tree["message"])
    sentence, _, message = says.strip().partition("\n") if diagnosis else ("", "", says)
    return TestResult(
        grade_id=_text(tree["grade_id"]),
        exercise=_text(tree["exercise"]),
        points=_number(tree["points"]),
        max_points=_number(tree["max_points"]),
        outcome=_text(tree["outcome"]),
        message=message,
        diagnosis=diagnosis,
        sentence=sentence,
    )


@dataclass(frozen=True)
class RecordedResult:
    """The result of one submission, as it was read back from ``grades.json``."""

    student: str
    assignment: str
    status: str
    reason: str
    max_score: float
    needs_manual_grade: bool
    tests: tuple[TestResult, ...]
    flags: tuple[Flag, ...]

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

    @property
    def handed_in(self) -> bool:
        """Whether there is a submission; who is on the roster and has none is told of too."""
        return self.reason not in _NOTHING

    @property
    def untouched(self) -> bool:
        """Whether nothing was attempted."""
        return not any(result.attempted for result in self.exercises.values())


class GradesError(WrongUse):
    """grades.json cannot be read; the message says what to do."""


def read_grades(folder: ClassFolder) -> tuple[dict[str, str], list[RecordedResult]]:
    """Course, engine and sandbox, and the submissions that ``grades.json`` tells of.

    Raises:
        GradesError: there is no such file, it is not ours, or it is about nobody.
    """
    path = folder.root / "grades.json"
    first = f"run `autograder grade {folder.root}`"
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        about = {name: str(tree[name]) for name in ("course", "engine", "sandbox")}
        entries = [_entry_of(entry) for entry in tree["submissions"]]
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


def _entry_of(tree: dict[str, Any]) -> RecordedResult:
    return RecordedResult(
        student=_text(tree["student"]),
        assignment=_text(tree["assignment"]),
        status=_text(tree["status"]),
        reason=_text(tree["reason"]),
        max_score=_number(tree["max_score"]),
        needs_manual_grade=bool(tree["needs_manual_grade"]),
        tests=tuple(_test_of(test) for test in tree["tests"]),
        flags=tuple(flag_of(_text(flag)) for flag in tree["flags"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError
    return float(value)


def read_entries(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The entries of an existing ``grades.json``, by student and assignment.

    Raises:
        GradesError: the file is there and is not what this engine writes.
    """
    if not path.exists():
        return {}
    try:
        submissions = json.loads(path.read_text(encoding="utf-8"))["submissions"]
        return {(entry["student"], entry["assignment"]): entry for entry in submissions}
    except (ValueError, KeyError, TypeError):
        raise GradesError(
            f"{path} is not a grades file of this engine; move it away and grade again"
        ) from None


def stream_entries(path: Path, most: int = 2**20) -> Iterator[dict[str, Any]]:
    """The submissions in a ``grades.json``, one after the other: the file is never in memory.

    Args:
        path: of the file.
        most: characters that are read at a time.

    Raises:
        GradesError: it is not there, or not what this engine writes.
    """
    decoder, text = json.JSONDecoder(), ""
    not_ours = GradesError(f"{path} is not a grades file of this engine; grade the class again")
    try:
        with path.open(encoding="utf-8") as file:
            while (start := _LIST.search(text)) is None:
                more = file.read(most)
                if not more:
                    raise not_ours
                text += more
            at = start.end()
            while True:
                at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
                if text.startswith("]", at):
                    return
                try:
                    entry, at = decoder.raw_decode(text, at)
                except json.JSONDecodeError:
                    more = file.read(most)
                    if not more:
                        raise not_ours from None
                    text, at = text[at:] + more, 0
                    continue
                if not isinstance(entry, dict):
                    raise not_ours
                yield entry
    except FileNotFoundError:
        raise GradesError(f"{path} does not exist; run `autograder grade` first") from None
    except UnicodeDecodeError:
        raise not_ours from None


def handed_in_nothing(entry: dict[str, Any]) -> bool:
    """Whether an entry is about somebody on the roster who handed in nothing."""
    return entry.get("reason") in _NOTHING


def sandbox_of(path: Path) -> str:
    """How student code was confined, as an existing ``grades.json`` says; empty where none does."""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["sandbox"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def write_grades(
    folder: Path,
    course: str,
    sandbox: str,
    submissions: Iterable[GradedSubmission],
    whole: Iterable[str] = (),
) -> None:
    """Write both files, keeping the entries of submissions that were not graded now.

    Of the assignments in ``whole`` everybody was looked at: who was said to have handed in
    nothing and is not any more, such as somebody who left the roster, is taken out.
    """
    looked_at = set(whole)
    entries = {
        key: entry
        for key, entry in read_entries(folder / "grades.json").items()
        if not handed_in_nothing(entry) or entry["assignment"] not in looked_at
    }
    entries |= {submission.key: submission.entry() for submission in submissions}
    ordered = [entry for _, entry in sorted(entries.items())]
    tree = {
        "engine": autograder.__version__,
        "sandbox": sandbox,
        "course": course,
        "submissions": ordered,
    }
    write_whole(folder / "grades.json", json.dumps(tree, indent=1, ensure_ascii=False) + "\n")
    write_whole(folder / "grades.csv", _as_csv(ordered))


_COLUMNS = ("student", "assignment", "status", "score", "max_score", "needs_manual_grade", "reason")
#: An entry that was written by an earlier version has not all of them.
_STANDING = ("late_minutes", "penalty", "total", "out_of", "to_mark")


def _as_csv(entries: list[dict[str, Any]]) -> str:
    rows = (
        [as_cell(entry[name]) for name in _COLUMNS] + [entry.get(name, "") for name in _STANDING]
        for entry in entries
    )
    return as_csv([*_COLUMNS, *_STANDING], rows)


def table(submissions: list[GradedSubmission]) -> str:
    """Students and points of all that there are, for a terminal.

    A star: a person still has to mark something. Lateness is taken off.
    """
    assignments = sorted({submission.result.assignment for submission in submissions})
    students = sorted({submission.student for submission in submissions})
    cells = {submission.key: _cell(submission) for submission in submissions}
    rows = [["student", *(name.split("-")[0] for name in assignments)]]
    rows += [
        [plain_line(who), *(cells.get((who, name), "") for name in assignments)] for who in students
    ]
    lines = aligned(rows, left=1)
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def _cell(submission: GradedSubmission) -> str:
    result, stands = submission.result, submission.standing
    if result.status != GRADED or stands is None:
        return result.status
    star = "*" if stands.needs_manual_grade else ""
    return f"{as_points(stands.total)}/{as_points(stands.out_of)}{star}"
