"""The class report as a page: one HTML file, no script, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from collections import Counter

import jinja2
from markupsafe import Markup, escape

from autograder.report import figures
from autograder.report.numbers import Report
from autograder.report.points import percent
from autograder.report.separation import FEWEST_TO_CORRELATE

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
