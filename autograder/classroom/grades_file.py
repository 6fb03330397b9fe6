"""``grades.json`` and ``grades.csv``: the verdicts of a class as files for others to read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import autograder
from autograder.classroom.late import Standing
from autograder.errors import WrongUse
from autograder.files import write_whole
from autograder.grade.result import Graded
from autograder.tables import as_cell, as_csv
from autograder.text import aligned, plain_line

#: Said of a student on the roster who handed in nothing.
NOTHING_HANDED_IN = "Nothing was handed in."


@dataclass
class Verdict:
    """A graded submission and whose it is.

    ``standing`` is what it counts in the end, known once it is published; ``notes`` is what
    the roster says of the student.
    """

    student: str
    graded: Graded
    standing: Standing | None = None
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Student and assignment: one verdict each."""
        return self.student, self.graded.assignment

    def entry(self) -> dict[str, Any]:
        """The verdict as ``grades.json`` holds it."""
        graded = self.graded
        return {
            "student": self.student,
            "assignment": graded.assignment,
            "notebook": graded.notebook,
            "status": graded.status,
            "reason": graded.reason,
            "score": graded.score,
            "max_score": graded.max_score,
            "needs_manual_grade": graded.needs_manual_grade,
            "tests": [
                {
                    "grade_id": test.grade_id,
                    "exercise": test.exercise,
                    "points": test.points,
                    "max_points": test.max_points,
                    "outcome": test.outcome,
                    "message": test.message,
                    "diagnosis": test.diagnosis,
                }
                for test in graded.tests
            ],
            "flags": [*graded.flags, *self.notes],
            "seconds": round(graded.seconds, 2),
            **(self.standing.entry() if self.standing is not None else {}),
        }


class GradesError(WrongUse):
    """grades.json cannot be read; the message says what to do."""


def read_entries(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The verdicts in an existing ``grades.json``, by student and assignment.

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
    verdicts: Iterable[Verdict],
    whole: Iterable[str] = (),
) -> None:
    """Write both files, keeping the verdicts of submissions that were not graded now.

    Of the assignments in ``whole`` everybody was looked at: who was said to have handed in
    nothing and is not any more, such as somebody who left the roster, is taken out.
    """
    looked_at = set(whole)
    entries = {
        key: entry
        for key, entry in read_entries(folder / "grades.json").items()
        if entry.get("reason") != NOTHING_HANDED_IN or entry["assignment"] not in looked_at
    }
    entries |= {verdict.key: verdict.entry() for verdict in verdicts}
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
#: Only where a due date or a roster gives them a meaning.
_STANDING = ("late_minutes", "penalty", "total")


def _as_csv(entries: list[dict[str, Any]]) -> str:
    standing = _STANDING if any("total" in entry for entry in entries) else ()
    rows = (
        [as_cell(entry[name]) for name in _COLUMNS] + [entry.get(name, "") for name in standing]
        for entry in entries
    )
    return as_csv([*_COLUMNS, *standing], rows)


def table(verdicts: list[Verdict]) -> str:
    """Students and points, for a terminal. A star: something is left to grade by hand."""
    assignments = sorted({verdict.graded.assignment for verdict in verdicts})
    students = sorted({verdict.student for verdict in verdicts})
    cells = {verdict.key: _cell(verdict.graded) for verdict in verdicts}
    rows = [["student", *(name.split("-")[0] for name in assignments)]]
    rows += [
        [plain_line(who), *(cells.get((who, name), "") for name in assignments)] for who in students
    ]
    lines = aligned(rows, left=1)
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def _cell(graded: Graded) -> str:
    if graded.status != "graded":
        return graded.status
    return f"{graded.score:g}/{graded.max_score:g}{'*' if graded.needs_manual_grade else ''}"
