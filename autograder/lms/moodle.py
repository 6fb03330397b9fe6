"""Moodle's offline grading worksheet."""

from __future__ import annotations

from pathlib import Path

from autograder.classroom.folder import ClassFolder
from autograder.classroom.hand_ins import collected
from autograder.lms.export import Export, ExportError, not_in, same_number, whose
from autograder.lms.standings import StudentStanding, to_mark
from autograder.tables import as_cell, as_csv, as_points, read_table

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


def moodle(folder: ClassFolder, standings: list[StudentStanding], template: Path | None) -> Export:
    """Moodle's offline grading worksheet for one assignment.

    With a template, the worksheet downloaded from Moodle, all its cells are kept but Grade
    and Feedback comments of the students of this class.

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
        member = whose(folder, by_student, table, row, numbers)
        if member is not None:
            standing = by_student[member][names[0]]
            placed.add(member)
            cells[grade] = as_points(standing.total)
            if comments is not None:
                cells[comments] = standing.words
            if most is not None and not same_number(row[most], standing.max_points):
                wrong.add(
                    f"the maximum is {row[most]} in Moodle and {as_points(standing.max_points)} "
                    "here: set it there, or say maximum in [grade] of class.toml, or grades mean "
                    "something else"
                )
        rows.append(cells)
    notes += sorted(wrong) + not_in(template, by_student, placed)
    return Export(as_csv(table.columns, rows), len(placed), notes)
