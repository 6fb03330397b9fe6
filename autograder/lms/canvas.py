"""Canvas's gradebook, as its import takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from autograder.classroom.folder import ClassFolder
from autograder.classroom.headings import HEADINGS, POINTS_POSSIBLE
from autograder.classroom.roster import squashed
from autograder.lms.export import (
    Export,
    ExportError,
    not_in,
    read_template,
    same_number,
    whose,
)
from autograder.lms.layouts import CANVAS
from autograder.lms.student_standings import StudentStanding, to_mark
from autograder.lms.systems import System
from autograder.tables import Table, as_cell, as_csv, as_points

#: Its last column that says who it is, in other languages.
SECTION = ("Section", "Sektion", "Abschnitt", "Sección", "Seção", "Sezione", "Sectie")

CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


_NO_GRADEBOOK = "it has no columns Student and ID; in Canvas, open Grades, then Export"


def canvas(
    folder: ClassFolder,
    standings: list[StudentStanding],
    template: Path | None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Export:
    """Canvas's gradebook: the columns that say who it is, and one for each assignment.

    With a template, an export of that gradebook, its students and columns are kept; what
    this class does not grade is left out, so that an import changes nothing else. ``columns`` is
    as in :func:`.read_template`.

    Raises:
        ExportError: the template has no column for any assignment, or is no such export.
    """
    names = sorted({standing.assignment for standing in standings})
    by_student: dict[str, dict[str, StudentStanding]] = {}
    for standing in standings:
        by_student.setdefault(standing.member.id, {})[standing.assignment] = standing
    most = {standing.assignment: standing.max_points for standing in standings}
    notes = to_mark(standings)
    if template is None:
        return _whole(folder, by_student, most, notes)
    table = read_template(template, columns, names)
    named = table.column(*HEADINGS["full name"])
    if named is None or table.column("ID") is None:
        raise ExportError(f"{template} is no gradebook of Canvas: {_NO_GRADEBOOK}")
    identity = _identity(table, named)
    places = {n: at for n in names if (at := _canvas_column(folder, table, n)) is not None}
    notes += _unplaced(folder, table, names, places, template)
    kept = [*identity, *places.values()]
    rows = []
    placed: set[str] = set()
    possible: dict[int, str] = {}
    for row in table.rows:
        cells = list(row)
        label = row[named].strip()
        if label in POINTS_POSSIBLE:
            possible = dict(enumerate(row))
            notes += [
                f"{table.columns[at]} has {row[at].strip()} points in Canvas and "
                f"{as_points(most[name])} here"
                for name, at in places.items()
                if not same_number(row[at], most[name])
            ]
        elif (member := whose(folder, by_student, table, row)) is not None:
            placed.add(member)
            for name, at in places.items():
                if name in by_student[member]:
                    like = possible.get(at, "")
                    cells[at] = as_points(by_student[member][name].total, like)
        rows.append([cells[at] for at in kept])
    notes += not_in(template, by_student, placed)
    titles = [table.columns[at] for at in kept]
    return Export(as_csv(titles, rows, table.delimiter), len(placed), notes)


def _whole(
    folder: ClassFolder,
    by_student: dict[str, dict[str, StudentStanding]],
    most: dict[str, float],
    notes: list[str],
) -> Export:
    """The columns as Canvas calls them, for a class of which it exported no gradebook."""
    names = sorted(most)
    header = [*CANVAS_COLUMNS, *(_title(folder, name) for name in names)]
    rows = [["    Points Possible", "", "", "", "", *(as_points(most[name]) for name in names)]]
    for student, has in by_student.items():
        who = next(iter(has.values())).member
        name = f"{who.last_name}, {who.first_name}" if who.last_name else student
        points = [as_points(has[name].total) if name in has else "" for name in names]
        rows.append([as_cell(name), as_cell(who.lms_id), "", as_cell(student), "", *points])
    notes.append(
        "columns have no number of Canvas's: the import will ask which assignment is meant; "
        "with --template GRADEBOOK.csv, exported from Canvas, it does not"
    )
    return Export(as_csv(header, rows), len(rows) - 1, notes)


def _identity(table: Table, named: int) -> list[int]:
    """The columns that say who a row is about."""
    others = [table.column(name) for name in CANVAS_COLUMNS[1:-1]]
    return [at for at in (named, *others, table.column(*SECTION)) if at is not None]


def _title(folder: ClassFolder, name: str) -> str:
    title = re.sub(r"^\d+\. ", "", folder.bundle(name).title)  # "3. Means" in the heading
    return folder.export_columns.get(name, title)


def _canvas_column(folder: ClassFolder, table: Table, name: str) -> int | None:
    if name in table.named:
        return table.named[name]
    bundle = folder.bundle(name)
    ours = folder.export_columns.get(name)
    wanted = (
        [ours]
        if ours
        else [
            name,
            bundle.notebook_name,
            bundle.title,
            name.partition("-")[2],
            bundle.title.partition(" ")[2],
        ]
    )
    titles = [squashed(re.sub(r" \(\d+\)$", "", column)) for column in table.columns]
    for heading in wanted:
        if squashed(heading) and squashed(heading) in titles:
            return titles.index(squashed(heading))
        if heading in table.columns:
            return table.columns.index(heading)
    return None


def _unplaced(
    folder: ClassFolder, table: Table, names: list[str], columns: dict[str, int], template: Path
) -> list[str]:
    without = [name for name in names if name not in columns]
    says = (
        f"{template} has no column for {', '.join(without)}; name it with --column, or in "
        f"class.toml under [export]. It has {', '.join(table.columns[len(CANVAS_COLUMNS) :])}"
    )
    if without and not columns:
        raise ExportError(says)
    return [says] if without else []


SYSTEM = System("canvas", CANVAS, canvas)
