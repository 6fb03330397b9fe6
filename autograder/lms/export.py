"""Grades as a table for others: what every format shares, and the plain one.

Canvas's is in :mod:`autograder.lms.canvas`, Moodle's in
:mod:`autograder.lms.moodle`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.classroom.folder import ClassFolder
from autograder.classroom.headings import HEADINGS
from autograder.errors import WrongUse
from autograder.lms.student_standings import StudentStanding, strangers, to_mark
from autograder.tables import Table, as_cell, as_csv, as_points, read_table

PLAIN_COLUMNS = (
    "student",
    "first_name",
    "last_name",
    "email",
    "assignment",
    "points",
    "penalty",
    "total",
    "max_points",
    "late_minutes",
    "extension_minutes",
    "to_mark",
    "status",
)


#: What a column of a template may hold, as ``--column`` calls it, and the names that it then has.
OURS: dict[str, tuple[str, ...]] = {
    "id": HEADINGS["login"],
    "first_name": HEADINGS["first name"],
    "last_name": HEADINGS["last name"],
    "full_name": HEADINGS["full name"],
    "email": HEADINGS["email"],
    "lms_id": (*HEADINGS["number"], "ID"),
    "grade": HEADINGS["grade"],
    "maximum": HEADINGS["maximum"],
    "comments": HEADINGS["comments"],
}


class ExportError(WrongUse):
    """It cannot be exported so; the message says what to do."""


@dataclass
class Export:
    """The text of a file, what is to be looked at, and the rule that points follow."""

    text: str
    rows: int
    notes: list[str] = field(default_factory=list)
    rule: str = ""


def plain(standings: list[StudentStanding]) -> Export:
    """One row a student and assignment."""
    rows = [
        [
            as_cell(standing.member.id),
            as_cell(standing.member.first_name),
            as_cell(standing.member.last_name),
            as_cell(standing.member.email),
            standing.assignment,
            as_points(standing.total + standing.penalty),
            as_points(standing.penalty),
            as_points(standing.total),
            as_points(standing.max_points),
            "" if standing.late_minutes is None else standing.late_minutes,
            standing.extension_minutes or "",
            "yes" if standing.to_mark else "",
            "missing" if standing.missing else "graded",
        ]
        for standing in standings
    ]
    notes = [*to_mark(standings), *strangers(standings)]
    return Export(as_csv(PLAIN_COLUMNS, rows), len(rows), notes)


def read_template(path: Path, columns: Mapping[str, str], assignments: Iterable[str]) -> Table:
    """An LMS's table that is to be filled.

    Args:
        path: of the table.
        columns: the heading of a column, by what we call it or by the assignment it is of.
        assignments: their names.

    Raises:
        ExportError: what we call it is unknown, or there is no such column.
    """
    table = read_table(path)
    ours = OURS | {name: (name,) for name in assignments}
    named: dict[str, int] = {}
    for name, heading in columns.items():
        if name not in ours:
            raise ExportError(f"--column {name}=... is unknown; there are {', '.join(ours)}")
        at = table.column(heading)
        if at is None:
            raise ExportError(f"{path} has no column {heading}; it has {', '.join(table.columns)}")
        named |= dict.fromkeys(ours[name], at)
    return replace(table, named=named)


def whose(
    folder: ClassFolder,
    there: dict[str, dict[str, StudentStanding]],
    table: Table,
    row: tuple[str, ...],
    numbers: dict[str, str] | None = None,
    *,
    said: str = "",
) -> str | None:
    """Which of our students a row of a template is about.

    Args:
        folder: the class.
        there: its students.
        table, row: the template.
        numbers: of the LMS, by student, where they are known.
        said: the row's own number, where its column has no name that is known.
    """

    def cell(*names: str) -> str:
        at = table.column(*names)
        return row[at].strip() if at is not None else ""

    number = re.sub(r"^\D+", "", said or cell(*HEADINGS["number"]) or cell("ID"))
    for student, known in (numbers or {}).items():
        if known and known == number and student in there:
            return student
    ids = tuple(cell(name) for name in HEADINGS["login"])
    for known_id in ids:
        if known_id in there:
            return known_id
    name, email = cell(*HEADINGS["full name"]), cell(*HEADINGS["email"])
    name = name or f"{cell(*HEADINGS['first name'])} {cell(*HEADINGS['last name'])}"
    members = folder.roster.find(ids=ids, lms_id=number, name=name, email=email)
    if len(members) == 1 and members[0].id in there:
        return members[0].id
    return None


def not_in(
    template: Path, there: dict[str, dict[str, StudentStanding]], placed: set[str]
) -> list[str]:
    """What is to be said of our students whom a template does not have."""
    return [
        f"{student} is not in {template.name}: their points are not in the export"
        for student in sorted(set(there) - placed)
    ]


def same_number(text: str, number: float) -> bool:
    """Whether a cell of a template holds this number; words are not compared."""
    try:
        return abs(float(text.strip().replace(",", ".")) - number) < 0.005
    except ValueError:
        return True  # Canvas writes words, such as (read only), where there is none
