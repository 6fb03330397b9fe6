"""Students who ask for another look at their points, and what became of it.

The requests are tables that an LMS or a form fills; nothing here listens to anybody. What the
points were when a request was first looked at is kept beside them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import open_gradebook, written_points
from autograder.classroom.grades_file import read_entries
from autograder.classroom.roster import NAMES
from autograder.errors import WrongUse
from autograder.files import write_whole
from autograder.tables import Table, as_points, read_table
from autograder.text import aligned, plain_line

#: In the class folder: one table, or a folder of them, and the points of before.
REQUESTS_CSV, REQUESTS_FOLDER, SEEN = "requests.csv", "requests", "requests-seen.json"
#: Characters of a request that a terminal shows.
MAX_SHOWN = 60


class RequestError(WrongUse):
    """There are no requests to read; the message says what to do."""


@dataclass(frozen=True)
class Request:
    """Somebody asks about an exercise, or about the whole of an assignment ("").

    ``before`` is what it had when the request was first listed, ``now`` what it has.
    """

    student: str
    assignment: str
    exercise: str
    text: str
    before: float
    now: float

    @property
    def changed(self) -> bool:
        """Whether the points are not what they were."""
        return abs(self.before - self.now) > 1e-9


def look_at(folder: ClassFolder) -> tuple[list[Request], list[str]]:
    """All requests of a class, and what is wrong with those that are about nothing here.

    Raises:
        RequestError: there is no table, or one lacks a column.
        GradesError: nothing was graded.
    """
    paths = [folder.root / REQUESTS_CSV, *sorted((folder.root / REQUESTS_FOLDER).glob("*.csv"))]
    paths = [path for path in paths if path.exists()]
    if not paths:
        raise RequestError(
            f"there is no {folder.root / REQUESTS_CSV} and no table in "
            f"{folder.root / REQUESTS_FOLDER}/; save there what your LMS's form gives, with the "
            "columns id, assignment, exercise and text"
        )
    entries = read_entries(folder.root / "grades.json")
    seen = _seen(folder)
    requested: list[Request] = []
    problems: list[str] = []
    for path in paths:
        table = read_table(path)
        for number, row in enumerate(table.rows, start=2):
            asked = _asked(folder, table, row, path)
            student, assignment, exercise, _ = asked
            if student is None:
                problems.append(
                    f"{path.name}, line {number}: several students have this name; give the id"
                )
                continue
            points = _points(folder, entries.get((student, assignment)), exercise)
            if points is None:
                what = f"{exercise} of {assignment}" if exercise else assignment
                problems.append(
                    f"{path.name}, line {number}: no points of {plain_line(student)!r} for "
                    f"{plain_line(what)!r}; is the name right, and was it graded?"
                )
                continue
            before = seen.setdefault(json.dumps(asked), points)
            requested.append(Request(student, *asked[1:], before=before, now=points))
    write_whole(folder.root / SEEN, json.dumps(seen, indent=1) + "\n")
    return requested, problems


def _asked(
    folder: ClassFolder, table: Table, row: Sequence[str], path: Path
) -> tuple[str | None, str, str, str]:
    """Who asks (None: several students are called so), of what, and in which words."""

    def cell(*names: str) -> str:
        at = table.column(*names)
        return row[at].strip() if at is not None else ""

    if table.column("assignment") is None:
        raise RequestError(
            f"{path} has no column assignment; it has {', '.join(table.columns)}, and needs id, "
            "assignment, exercise and text"
        )
    student = cell(*NAMES["id"])
    members = folder.roster.find(
        ids=(student,),
        name=cell(*NAMES["full_name"]) or student,
        email=cell(*NAMES["email"]) or student,
    )
    assignment = cell("assignment")
    matching = [name for name in folder.assignments if name.split("-")[0] == assignment.zfill(2)]
    text = plain_line(" ".join(cell("text", "reason", "comment").split()), 1000)
    who = None if len(members) > 1 else members[0].id if members else student
    return who, matching[0] if matching else assignment, cell("exercise", "question"), text


def _points(folder: ClassFolder, entry: dict[str, Any] | None, exercise: str) -> float | None:
    """The points of an exercise, or all of them; None where there is nothing of that name."""
    if entry is not None and exercise.startswith("written_"):
        with open_gradebook(folder.db_url) as gradebook:
            written = written_points(gradebook, entry["student"], entry["assignment"])
            return written.get(exercise)
    if entry is None:
        return None
    if not exercise:
        return float(entry["total"] if "total" in entry else entry["score"])
    points = [float(test["points"]) for test in entry["tests"] if test["exercise"] == exercise]
    return sum(points) if points else None


def _seen(folder: ClassFolder) -> dict[str, float]:
    try:
        tree = json.loads((folder.root / SEEN).read_text(encoding="utf-8"))
        return {str(key): float(points) for key, points in tree.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        raise RequestError(
            f"{folder.root / SEEN} is damaged; move it away: points are then compared with those "
            "of now"
        ) from None


def table(requested: Sequence[Request]) -> str:
    """Requests for a terminal, those with other points first."""
    rows = [("student", "assignment", "exercise", "before", "now", "what was written")]
    rows += [
        (
            plain_line(request.student),
            request.assignment,
            plain_line(request.exercise) or "(all)",
            as_points(request.before),
            as_points(request.now),
            request.text[:MAX_SHOWN],
        )
        for request in sorted(requested, key=lambda request: not request.changed)
    ]
    return "\n".join(aligned(rows, left=3))
