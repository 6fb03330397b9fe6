"""More time for single students: from [extensions] in class.toml and from extensions.csv."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dateutil.parser import isoparse

from autograder.classroom.late import LateError
from autograder.tables import read_table

#: In the class folder, for those who keep extensions in a table.
EXTENSIONS_CSV = "extensions.csv"
#: Stands for every assignment.
EVERY = "all"

_SHOULD = (
    "should be a number of days, or a date, a time and an offset, such as 2026-12-03T23:59:00+01:00"
)


@dataclass(frozen=True)
class Extensions:
    """Who has until when: a new due date, or days more, by student and assignment or ``all``."""

    given: Mapping[tuple[str, str], datetime | timedelta] = field(default_factory=dict)

    def of(self, student: str, assignment: str, due: datetime | None) -> timedelta | None:
        """How much longer than ``due`` a student has; None where nothing is said of them.

        What is said of an assignment counts before what is said of all.
        """
        if due is None:
            return None
        for name in (assignment, EVERY):
            until = self.given.get((student, name))
            if until is not None:
                # Days are those of the class's zone: one on which the clocks change is one, too.
                end = due + until if isinstance(until, timedelta) else until
                return max(end.astimezone(UTC) - due.astimezone(UTC), timedelta())
        return None

    @classmethod
    def read(
        cls,
        table: Any,
        settings: Path,
        assignments: Collection[str],
        students: Collection[str],
    ) -> Extensions:
        """Read the table [extensions] and ``extensions.csv`` beside it.

        Args:
            table: student to assignment to days or date.
            settings: class.toml, for messages and to find the other file.
            assignments: of the class.
            students: on the roster; empty where there is none, and then anybody may be named.

        Raises:
            LateError, SpreadsheetError: something in it cannot be used.
        """
        if not isinstance(table, dict):
            raise LateError(f"{settings}: extensions should be a table, [extensions]")
        until: dict[tuple[str, str], datetime | timedelta] = {}
        where = f"{settings}: extensions"
        for student, by_assignment in table.items():
            if not isinstance(by_assignment, dict):
                raise LateError(
                    f'{where}: write "{student}" = {{ "ASSIGNMENT" = 3 }} for three days more; '
                    f'"{EVERY}" in place of ASSIGNMENT means every one'
                )
            for name, value in by_assignment.items():
                says = f"{where} of {student}"
                _known(student, name, assignments, students, says)
                until[student, name] = _longer(value, f"{says}, {name},")
        path = settings.with_name(EXTENSIONS_CSV)
        if path.exists():
            until |= _from_csv(path, assignments, students)
        return cls(until)


def _from_csv(
    path: Path, assignments: Collection[str], students: Collection[str]
) -> dict[tuple[str, str], datetime | timedelta]:
    table = read_table(path)
    at = {name: table.column(name) for name in ("id", "assignment", "until", "days")}
    if at["id"] is None or (at["until"] is None and at["days"] is None):
        raise LateError(
            f"{path} should have the columns id, assignment, and until or days; it has "
            f"{', '.join(table.columns)}"
        )
    until: dict[tuple[str, str], datetime | timedelta] = {}
    for number, row in enumerate(table.rows, start=2):
        cells = {name: row[place].strip() for name, place in at.items() if place is not None}
        where = f"{path}, line {number}:"
        name = cells.get("assignment") or EVERY
        _known(cells["id"], name, assignments, students, where)
        if (cells["id"], name) in until:
            raise LateError(f"{where} {cells['id']!r} and {name!r} stand there twice")
        try:
            value: Any = (
                isoparse(cells["until"]) if cells.get("until") else float(cells.get("days") or "")
            )
        except ValueError:
            raise LateError(f"{where} the extension {_SHOULD}") from None
        until[cells["id"], name] = _longer(value, where)
    return until


def _known(
    student: str, name: str, assignments: Collection[str], students: Collection[str], where: str
) -> None:
    if students and student not in students:
        raise LateError(f"{where} {student!r} is nobody on the roster; write the id that is there")
    if name != EVERY and name not in assignments:
        raise LateError(
            f"{where} {name!r} is no assignment; there are {', '.join(assignments)}, or {EVERY}"
        )


def _longer(value: Any, where: str) -> datetime | timedelta:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 3650:
        return timedelta(days=value)
    raise LateError(f"{where} {_SHOULD}")
