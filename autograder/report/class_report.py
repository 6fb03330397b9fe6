"""What a class got right and wrong, as one page and one table for its instructor.

The numbers come from ``grades.json``, and those of two markers from ``marking.jsonl``. Without
names nothing that a student chose is shown: not the id, and not the words in flags and reasons
that may hold one, such as the name of a file; what is said instead is the engine's own.
"""

from __future__ import annotations

from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import read_grades
from autograder.classroom.marking_log import agreements, given_so_far
from autograder.files import write_whole
from autograder.report.numbers import Report, make_report
from autograder.report.page import report_page
from autograder.report.table import report_csv


def write_report(folder: ClassFolder, *, names: bool = False) -> Report:
    """Write ``report.html`` and ``report.csv`` into the class and return their numbers.

    Raises:
        GradesError: ``grades.json`` is not there or not ours.
        ClassError: the class's settings cannot be read.
    """
    about, entries = read_grades(folder)
    people = {member.id: member.full_name for member in folder.roster.members}
    report = make_report(
        about,
        entries,
        seed=folder.seed,
        names=names,
        people=people,
        agreements=agreements(given_so_far(folder)),
    )
    write_whole(folder.root / "report.html", report_page(report))
    write_whole(folder.root / "report.csv", report_csv(report))
    return report
