"""The final table: each assignment in percent, which of them count, and what they come to."""

from __future__ import annotations

from autograder.classroom.folder import ClassFolder
from autograder.lms.export import Export
from autograder.lms.student_standings import StudentStanding, strangers, to_mark
from autograder.tables import as_cell, as_csv, as_points

_PERSON = ("student", "first_name", "last_name", "email")


def final(folder: ClassFolder, standings: list[StudentStanding]) -> Export:
    """One row a student, by the rules of [grade] in class.toml; withdrawn students are not in it.

    A star marks an assignment that does not count for this student.
    """
    rules = folder.final_grade
    names = sorted({standing.assignment for standing in standings})
    by_student: dict[str, dict[str, StudentStanding]] = {}
    for standing in standings:
        by_student.setdefault(standing.member.id, {})[standing.assignment] = standing
    rows = []
    for has in by_student.values():
        member = next(iter(has.values())).member
        shares = {
            name: has[name].total / has[name].max_points if name in has else 0.0 for name in names
        }
        counts = set(rules.counted(shares))
        cells = [as_points(100 * shares[name]) + ("" if name in counts else "*") for name in names]
        most = sum(standing.max_written for standing in has.values())
        written = 100 * sum(standing.written for standing in has.values()) / most if most else None
        rows.append(
            [
                *(as_cell(getattr(member, name)) for name in ("id", *_PERSON[1:])),
                *cells,
                "" if written is None else as_points(written),
                as_points(rules.final(shares)),
                _passes(rules.written_at_least, written),
            ]
        )
    header = [*_PERSON, *names, "written", "final", "written_passed"]
    notes = [*to_mark(standings), *strangers(standings)]
    return Export(as_csv(header, rows), len(rows), notes, rules.in_words())


def _passes(least: float | None, written: float | None) -> str:
    if least is None or written is None:
        return ""
    return "yes" if written >= least - 1e-9 else "no"
