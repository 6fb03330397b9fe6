"""What a class got right and wrong, as one page and one table for its instructor.

The numbers come from ``grades.json``, and those of two markers from ``marking.jsonl``. Without
names nothing that a student chose is shown: not the id, and not the words in flags and reasons
that may hold one, such as the name of a file; what is said instead is the engine's own.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import asdict

import jinja2
from markupsafe import Markup, escape

from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import read_grades
from autograder.classroom.marking_log import agreements, given_so_far
from autograder.course.translation import engine_words
from autograder.files import write_whole
from autograder.report import figures
from autograder.report.numbers import Report, make_report
from autograder.report.points import FEWEST_TO_CORRELATE, percent
from lesson_kit.words import said, speaking, tr, tr_n


def write_report(folder: ClassFolder, *, names: bool = False) -> Report:
    """Write ``report.html`` and ``report.csv`` into the class and return their numbers.

    The page is in the language of the class.

    Raises:
        GradesError: ``grades.json`` is not there or not ours.
        ClassError: the class's settings cannot be read.
    """
    about, entries = read_grades(folder)
    people = {member.id: member.full_name for member in folder.roster.members}
    with speaking(engine_words(folder.language)):
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


_COLUMNS = (
    "assignment",
    "exercise",
    "max_points",
    "submissions",
    "attempted",
    "all_points",
    "some_points",
    "no_points",
    "not_attempted",
    "mean_share",
    "mean_share_attempted",
    "separation",
    "no_separation",
    "timeouts",
    "crashes",
    "misconceptions",
)


def report_csv(report: Report) -> str:
    """One row an exercise. It holds nothing that a student wrote, and no names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for assignment in report.assignments:
        for exercise in assignment.exercises:
            row = {"assignment": assignment.name, "exercise": exercise.name, **asdict(exercise)}
            del row["name"]
            for column, value in row.items():
                if isinstance(value, float):
                    row[column] = f"{value:.4g}"
            row["misconceptions"] = "; ".join(
                f"{mistake.name} ({mistake.submissions})"
                for mistake in report.misconceptions
                if (mistake.assignment, mistake.exercise) == (assignment.name, exercise.name)
            )
            writer.writerow(row)
    return text.getvalue()


#: Misconceptions that the figure shows.
MAX_IN_FIGURE = 15
#: Submissions that need an eye and are not folded away.
MAX_EYES = 25


def _breakable(name: str) -> Markup:
    """A long name that may go on in the next line after an underscore."""
    return Markup(str(escape(name)).replace("_", "_<wbr>"))


def _with_code(sentence: str) -> Markup:
    """A sentence with what stands between backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(sentence))))


_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("autograder", "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_environment.globals |= {"_": tr, "n_": tr_n, "said": said}
_environment.filters["percent"] = percent
_environment.filters["breakable"] = _breakable
_environment.filters["with_code"] = _with_code


def report_page(report: Report) -> str:
    """The HTML of the report: one file, no script, nothing loaded from elsewhere."""
    return _environment.get_template("report.html.j2").render(
        report=report,
        eye_reasons=Counter(reason.words for row in report.need_an_eye for reason in row.reasons),
        by_exercise={
            assignment.name: figures.by_exercise(assignment)
            for assignment in report.assignments
            if assignment.exercises
        },
        in_total={
            assignment.name: figures.in_total(assignment, assignment.median_share)
            for assignment in report.assignments
            if assignment.median_share is not None
        },
        by_frequency=figures.by_frequency(report.misconceptions[:MAX_IN_FIGURE]),
        most_in_figure=MAX_IN_FIGURE,
        most_eyes=MAX_EYES,
        fewest_to_correlate=FEWEST_TO_CORRELATE,
    )
