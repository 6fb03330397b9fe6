"""Moodle's offline grading worksheet."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from autograder.classroom.folder import ClassFolder
from autograder.classroom.hand_ins import collected
from autograder.classroom.headings import HEADINGS
from autograder.lms.export import (
    Export,
    ExportError,
    not_in,
    read_template,
    same_number,
    whose,
)
from autograder.lms.layouts import MOODLE
from autograder.lms.student_standings import StudentStanding, to_mark
from autograder.lms.systems import System
from autograder.tables import Table, as_cell, as_csv, as_points

MOODLE_COLUMNS = (
    "Identifier",
    "Full name",
    "Email address",
    "Status",
    "Grade",
    "Maximum Grade",
    "Grade can be changed",
    "Last modified (submission)",
    "Last modified (grade)",
    "Feedback comments",
)


def moodle(
    folder: ClassFolder,
    standings: list[StudentStanding],
    template: Path | None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Export:
    """Moodle's offline grading worksheet for one assignment.

    With a template, the worksheet downloaded from Moodle, all its cells are kept but Grade
    and Feedback comments of the students of this class. ``columns`` is as in
    :func:`.read_template`.

    Raises:
        ExportError: there are several assignments, or the template is no such worksheet.
    """
    names = sorted({standing.assignment for standing in standings})
    if len(names) != 1:
        raise ExportError(
            "Moodle's worksheet is of one assignment; say which with --assignment, one of "
            + ", ".join(names)
        )
    by_student = {standing.member.id: {standing.assignment: standing} for standing in standings}
    numbers = {
        place.partition("/")[0]: about.get("lms_id", "")
        for place, about in collected(folder).items()
        if place.partition("/")[2] == names[0] and about.get("folder")
    }
    notes = to_mark(standings)
    if template is None:
        rows = []
        for standing in standings:
            number = numbers.get(standing.member.id) or standing.member.lms_id
            if not number:
                notes.append(f"{standing.member.id}: Moodle's participant number is not known")
            rows.append(
                [
                    f"Participant {number}" if number else "",
                    as_cell(standing.member.full_name),
                    as_cell(standing.member.email),
                    "",
                    as_points(standing.total),
                    as_points(standing.max_points),
                    "Yes",
                    "-",
                    "-",
                    standing.words,
                ]
            )
        return Export(as_csv(MOODLE_COLUMNS, rows), len(rows), notes)
    columns = {"grade" if name == names[0] else name: theirs for name, theirs in columns.items()}
    made = _filled(folder, by_student, template, read_template(template, columns, ()), numbers)
    made.notes[:0] = notes
    return made


def _filled(
    folder: ClassFolder,
    by_student: dict[str, dict[str, StudentStanding]],
    template: Path,
    table: Table,
    numbers: dict[str, str],
) -> Export:
    name = next(name for has in by_student.values() for name in has)
    places = _columns(table, folder.export_columns.get(name, ""))
    grade, identifier = places["grade"], places["number"]
    if grade is None or identifier is None:
        raise ExportError(
            f"{template} is no grading worksheet: it has no columns Identifier and Grade, in no "
            "language; in Moodle, open the assignment's submissions, then “Download grading "
            "worksheet”, or name them with --column grade=... and --column lms_id=...; class.toml "
            "can name that of grades, under [export]. It has "
            f"{', '.join(table.columns)}"
        )
    comments, most = places["comments"], places["maximum"]
    rows, placed, notes = [], set[str](), list[str]()
    wrong: set[str] = set()
    for row in table.rows:
        cells = list(row)
        member = whose(folder, by_student, table, row, numbers, said=row[identifier])
        if member is not None:
            standing = by_student[member][name]
            placed.add(member)
            cells[grade] = as_points(standing.total, row[most] if most is not None else "")
            if comments is not None:
                cells[comments] = standing.words
            if most is not None and not same_number(row[most], standing.max_points):
                wrong.add(
                    f"the maximum is {row[most]} in Moodle and {as_points(standing.max_points)} "
                    "here: set it there, or say maximum in [grade] of class.toml, or grades mean "
                    "something else"
                )
        rows.append(cells)
    if comments is None:
        notes.append(f"no column for comments was found; there are {', '.join(table.columns)}")
    notes += sorted(wrong) + not_in(template, by_student, placed)
    return Export(as_csv(table.columns, rows, table.delimiter), len(placed), notes)


def _columns(table: Table, named: str) -> dict[str, int | None]:
    """Where a worksheet has what, by its headings and, in other languages, by what stands there.

    Moodle puts the grade left of the maximum, which is the same number in each row, and first a
    word with everybody's number.

    Args:
        table: the worksheet.
        named: the heading of the grades, where class.toml says it.
    """
    places = {name: table.column(*HEADINGS[name]) for name in ("number", "grade", "maximum")}
    places["comments"] = table.column(*HEADINGS["comments"])
    columns = list(zip(*table.rows))
    if columns and places["number"] is None and all(_NUMBERED.match(cell) for cell in columns[0]):
        places["number"] = 0
    if places["maximum"] is None:
        same = [at for at, cells in enumerate(columns) if at > 1 and _is_one_number(cells)]
        places["maximum"] = same[0] if same and places["grade"] in (None, same[0] - 1) else None
        if places["grade"] is None and same:
            places["grade"] = same[0] - 1
    if named and places["grade"] not in table.named.values():
        places["grade"] = table.column(named)
    return places


_NUMBERED = re.compile(r"\D+\d+$")


def _is_one_number(cells: Sequence[str]) -> bool:
    """Whether a column holds one number, the same in each row."""
    return len(set(cells)) == 1 and re.fullmatch(r"\d+([.,]\d+)?", cells[0].strip()) is not None


SYSTEM = System("moodle", MOODLE, moodle)
