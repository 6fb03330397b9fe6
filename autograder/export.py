"""Grades for an LMS: what nbgrader's gradebook says, with the columns that the LMS imports.

Points given by hand count, and late penalties are taken off. Students who withdrew are left
out; who is on the roster and handed in nothing has 0 where others were graded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.class_folder import ClassFolder
from autograder.collect import collected
from autograder.errors import WrongUse
from autograder.gradebook import open_gradebook
from autograder.grades import NOTHING_HANDED_IN, read_entries
from autograder.roster import Member, squashed
from autograder.spreadsheet import Table, as_cell, as_csv, as_points, read_table
from autograder.standing import settle

CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
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
    "to_mark",
    "status",
)


class ExportError(WrongUse):
    """There is nothing to export, or not so; the message says what to do."""


@dataclass(frozen=True)
class Mark:
    """What one student has for one assignment."""

    member: Member
    assignment: str
    total: float
    max_points: float
    penalty: float = 0.0
    late_minutes: int | None = None
    to_mark: bool = False
    missing: bool = False

    @property
    def words(self) -> str:
        """How the points came about, in one line."""
        if self.missing:
            return NOTHING_HANDED_IN
        says = f"{as_points(self.total)} of {as_points(self.max_points)} points"
        if self.penalty:
            says += f", after {as_points(self.penalty)} for handing in late"
        return says + (", written answers are not marked yet" if self.to_mark else "")


@dataclass
class Export:
    """The text of a file, and what is to be said about it."""

    text: str
    rows: int
    notes: list[str] = field(default_factory=list)


def marks(folder: ClassFolder, assignments: list[str] | None = None) -> list[Mark]:
    """Everybody's points in the gradebook, with late penalties brought up to date.

    Raises:
        ExportError: nothing was graded.
        ClassError: there is no such assignment.
    """
    wanted = assignments or folder.assignments
    bundles = {name: folder.bundle(name) for name in wanted}
    entries = read_entries(folder.root / "grades.json")
    found: list[Mark] = []
    with open_gradebook(folder.db_url) as gradebook:
        for student, name in sorted(entries):
            member = folder.roster.by_id.get(student, Member(student))
            if name not in wanted or member.withdrawn:
                continue
            bundle = bundles[name]
            most = bundle.max_score + sum(one.points for one in bundle.written)
            if entries[student, name].get("reason") == NOTHING_HANDED_IN:
                found.append(Mark(member, name, 0.0, most, missing=True))
                continue
            stands = settle(gradebook, folder, student, name)
            found.append(
                Mark(
                    member,
                    name,
                    stands.total,
                    most,
                    stands.penalty,
                    stands.late_minutes,
                    stands.needs_manual_grade,
                )
            )
    if not found:
        raise ExportError(f"nothing to export yet; run `autograder grade {folder.root}` first")
    return found


def to_mark(found: Iterable[Mark]) -> list[str]:
    """What is to be said of written answers that nobody has read yet."""
    number = sum(one.to_mark for one in found)
    if not number:
        return []
    return [
        f"written answers of {number} submissions are not marked yet and count 0; mark them with "
        "`nbgrader formgrader` and export again"
    ]


def plain(found: list[Mark]) -> Export:
    """One row a student and assignment."""
    rows = [
        [
            as_cell(one.member.id),
            as_cell(one.member.first_name),
            as_cell(one.member.last_name),
            as_cell(one.member.email),
            one.assignment,
            as_points(one.total + one.penalty),
            as_points(one.penalty),
            as_points(one.total),
            as_points(one.max_points),
            "" if one.late_minutes is None else one.late_minutes,
            "yes" if one.to_mark else "",
            "missing" if one.missing else "graded",
        ]
        for one in found
    ]
    return Export(as_csv(PLAIN_COLUMNS, rows), len(rows), to_mark(found))


def canvas(folder: ClassFolder, found: list[Mark], template: Path | None) -> Export:
    """Canvas's gradebook: the columns that say who it is, and one for each assignment.

    With a template, an export of that gradebook, its students and columns are kept; what
    this class does not grade is left out, so that an import changes nothing else.

    Raises:
        ExportError: the template has no column for any assignment, or is no such export.
    """
    names = sorted({one.assignment for one in found})
    by_student: dict[str, dict[str, Mark]] = {}
    for one in found:
        by_student.setdefault(one.member.id, {})[one.assignment] = one
    most = {one.assignment: one.max_points for one in found}
    notes = to_mark(found)
    if template is None:
        header = [*CANVAS_COLUMNS, *(_title(folder, name) for name in names)]
        rows = [["    Points Possible", "", "", "", "", *(as_points(most[name]) for name in names)]]
        for student, has in by_student.items():
            who = next(iter(has.values())).member
            name = f"{who.last_name}, {who.first_name}" if who.last_name else student
            points = [as_points(has[one].total) if one in has else "" for one in names]
            rows.append([as_cell(name), as_cell(who.lms_id), "", as_cell(student), "", *points])
        notes.append(
            "columns have no number of Canvas's: the import will ask which assignment is meant; "
            "with --template GRADEBOOK.csv, exported from Canvas, it does not"
        )
        return Export(as_csv(header, rows), len(rows) - 1, notes)
    table = read_table(template)
    identity = [at for name in CANVAS_COLUMNS if (at := table.column(name)) is not None]
    if table.column("Student") is None or table.column("ID") is None:
        raise ExportError(
            f"{template} is no gradebook of Canvas: it has no columns Student and ID; in Canvas, "
            "open Grades, then Export"
        )
    places = {name: _canvas_column(folder, table, name) for name in names}
    columns = {name: at for name, at in places.items() if at is not None}
    notes += _unplaced(folder, table, names, columns, template)
    kept = [*identity, *columns.values()]
    rows = []
    placed: set[str] = set()
    for row in table.rows:
        cells = list(row)
        label = row[table.column("Student") or 0].strip()
        if label == "Points Possible":
            notes += [
                f"{table.columns[at]} has {row[at].strip()} points in Canvas and "
                f"{as_points(most[name])} here"
                for name, at in columns.items()
                if not _same_number(row[at], most[name])
            ]
        elif (member := _whose(folder, by_student, table, row)) is not None:
            placed.add(member)
            for name, at in columns.items():
                if name in by_student[member]:
                    cells[at] = as_points(by_student[member][name].total)
        rows.append([cells[at] for at in kept])
    notes += _not_in(template, by_student, placed)
    return Export(as_csv([table.columns[at] for at in kept], rows), len(placed), notes)


def moodle(folder: ClassFolder, found: list[Mark], template: Path | None) -> Export:
    """Moodle's offline grading worksheet for one assignment.

    With a template, the worksheet downloaded from Moodle, all its cells are kept but Grade
    and Feedback comments of the students of this class.

    Raises:
        ExportError: there are several assignments, or the template is no such worksheet.
    """
    names = sorted({one.assignment for one in found})
    if len(names) != 1:
        raise ExportError(
            "Moodle's worksheet is of one assignment; say which with --assignment, one of "
            + ", ".join(names)
        )
    by_student = {one.member.id: {one.assignment: one} for one in found}
    numbers = {
        place.partition("/")[0]: about.get("lms_id", "")
        for place, about in collected(folder).items()
        if place.partition("/")[2] == names[0] and about.get("folder")
    }
    notes = to_mark(found)
    if template is None:
        rows = []
        for one in found:
            number = numbers.get(one.member.id) or one.member.lms_id
            if not number:
                notes.append(f"{one.member.id}: Moodle's participant number is not known")
            rows.append(
                [
                    f"Participant {number}" if number else "",
                    as_cell(one.member.full_name),
                    as_cell(one.member.email),
                    "",
                    as_points(one.total),
                    as_points(one.max_points),
                    "Yes",
                    "-",
                    "-",
                    one.words,
                ]
            )
        return Export(as_csv(MOODLE_COLUMNS, rows), len(rows), notes)
    table = read_table(template)
    grade = table.column("Grade")
    if grade is None or table.column("Identifier") is None:
        raise ExportError(
            f"{template} is no grading worksheet: it has no columns Identifier and Grade; in "
            "Moodle, open the assignment's submissions, then “Download grading worksheet”"
        )
    comments, most = table.column("Feedback comments"), table.column("Maximum Grade")
    rows, placed = [], set[str]()
    wrong: set[str] = set()
    for row in table.rows:
        cells = list(row)
        member = _whose(folder, by_student, table, row, numbers)
        if member is not None:
            one = by_student[member][names[0]]
            placed.add(member)
            cells[grade] = as_points(one.total)
            if comments is not None:
                cells[comments] = one.words
            if most is not None and not _same_number(row[most], one.max_points):
                wrong.add(
                    f"the maximum is {row[most]} in Moodle and {as_points(one.max_points)} "
                    "here: set it there, or grades mean something else"
                )
        rows.append(cells)
    notes += sorted(wrong) + _not_in(template, by_student, placed)
    return Export(as_csv(table.columns, rows), len(placed), notes)


def _title(folder: ClassFolder, name: str) -> str:
    title = re.sub(r"^\d+\. ", "", folder.bundle(name).title)  # "3. Attention" in the heading
    return folder.export_columns.get(name, title)


def _canvas_column(folder: ClassFolder, table: Table, name: str) -> int | None:
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
    for one in wanted:
        if squashed(one) and squashed(one) in titles:
            return titles.index(squashed(one))
        if one in table.columns:
            return table.columns.index(one)
    return None


def _unplaced(
    folder: ClassFolder, table: Table, names: list[str], columns: dict[str, int], template: Path
) -> list[str]:
    without = [name for name in names if name not in columns]
    says = (
        f"{template} has no column for {', '.join(without)}; name it in class.toml under [export]."
        f" It has {', '.join(table.columns[len(CANVAS_COLUMNS) :])}"
    )
    if without and not columns:
        raise ExportError(says)
    return [says] if without else []


def _whose(
    folder: ClassFolder,
    there: dict[str, dict[str, Mark]],
    table: Table,
    row: tuple[str, ...],
    numbers: dict[str, str] | None = None,
) -> str | None:
    """Which of our students a row of a template is about."""

    def cell(*names: str) -> str:
        at = table.column(*names)
        return row[at].strip() if at is not None else ""

    number = re.sub(r"^\D+", "", cell("Identifier")) or cell("ID")
    for student, known in (numbers or {}).items():
        if known and known == number and student in there:
            return student
    ids = tuple(cell(name) for name in ("SIS Login ID", "SIS User ID", "Username", "ID number"))
    for one in ids:
        if one in there:
            return one
    name, email = cell("Full name", "Student"), cell("Email address")
    found = folder.roster.find(ids=ids, lms_id=number, name=name, email=email)
    if len(found) == 1 and found[0].id in there:
        return found[0].id
    return None


def _not_in(template: Path, there: dict[str, dict[str, Mark]], placed: set[str]) -> list[str]:
    return [
        f"{student} is not in {template.name}: their points are not in the export"
        for student in sorted(set(there) - placed)
    ]


def _same_number(text: str, number: float) -> bool:
    try:
        return abs(float(text.strip().replace(",", ".")) - number) < 0.005
    except ValueError:
        return True  # Canvas writes words, such as (read only), where there is none
