"""The page a student gets back: points and what went wrong, test by test.

One self-contained HTML file: no script, nothing loaded from elsewhere, everything that
comes from a student escaped. Of hidden tests it shows what they look at and what their
author says, never code, inputs or values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from nbgrader.api import Gradebook

import autograder
from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import ManualGrade, manual_grades
from autograder.classroom.grades_file import Verdict
from autograder.classroom.late import Standing, how_late
from autograder.classroom.standing import give_standing
from autograder.course.bundle import Bundle
from autograder.grade.result import TestResult
from autograder.marking.formulas import with_formulas
from autograder.tables import as_points

_LABELS = {
    "passed": "passes",
    "partial": "passes in part",
    "failed": "does not pass",
    "not_attempted": "not attempted",
    "timeout": "took too long",
    "crashed": "ended the process",
    "missing": "nothing to check",
}
_SYMBOLS = {"passed": "✓", "partial": "◐"}

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("autograder", "templates"),
    autoescape=True,
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_environment.filters["formulas"] = with_formulas


def feedback_page(verdict: Verdict, bundle: Bundle, manual: dict[str, ManualGrade]) -> str:
    """The HTML of one feedback page.

    Args:
        verdict: of the machine.
        bundle: the assignment, for its exercises and what its tests look at.
        manual: what people gave for written answers.
    """
    result = verdict.result
    handed_in = {cell.grade_id: cell.source for cell in result.cells if cell.grade_id}
    words = {
        test.grade_id: test.words if test.hidden else "The check in the notebook."
        for test in bundle.tests
    }
    exercises = []
    for name in bundle.exercises:
        tests = [test for test in result.tests if test.exercise == name]
        if tests:
            shown = [_shown(test, words[test.grade_id]) for test in tests]
            exercises.append(
                {
                    "name": name,
                    "diagnoses": list(
                        dict.fromkeys(test.sentence for test in tests if test.diagnosis)
                    ),
                    "points": sum(test.points for test in tests),
                    "max_points": sum(test.max_points for test in tests),
                    "source": handed_in.get(name, ""),
                    "tests": shown,
                }
            )
    written = [
        {
            "name": one.grade_id,
            "max_points": one.points,
            "text": handed_in.get(one.grade_id, "")
            if one.grade_id in result.written_to_read
            else "",
            "score": manual[one.grade_id].score if one.grade_id in manual else None,
            "comment": manual[one.grade_id].comment if one.grade_id in manual else "",
        }
        for one in bundle.written
    ]
    stopped: list[dict[str, Any]] = [
        {"error": run.error, "source": run.source}
        for run in result.runs
        if run.error and not run.unfinished
    ]
    standing = verdict.standing
    return _environment.get_template("feedback.html.j2").render(
        entry=verdict.entry(),
        late=late_line(standing) if standing is not None else "",
        lesson=bundle.title,
        exercises=exercises,
        written=written,
        errors=stopped,
        labels=_LABELS,
        symbols={name: _SYMBOLS.get(name, "✗") for name in _LABELS},
        engine=autograder.__version__,
    )


def settled_page(
    verdict: Verdict, bundle: Bundle, gradebook: Gradebook, folder: ClassFolder
) -> str:
    """:func:`feedback_page` of now, with the points people gave and what being late costs.

    The verdict gets its standing and its notes, and what is in the gradebook is committed.

    Raises:
        MissingEntry: the submission was never graded.
        LateError: class.toml cannot be used.
    """
    manual = manual_grades(gradebook, *verdict.key)
    give_standing(verdict, gradebook, folder)
    return feedback_page(verdict, bundle, manual)


def late_line(standing: Standing) -> str:
    """What a late submission cost, in one line; empty for one in time."""
    if not standing.late_minutes:
        return ""
    when = f"Handed in {how_late(standing.late_minutes)}"
    if not standing.penalty:
        return f"{when}, which costs nothing."
    return f"{when}, which costs {as_points(standing.penalty)} points."


def _shown(test: TestResult, words: str) -> dict[str, Any]:
    """What the page says of one test; a known mistake stands above all tests of its exercise."""
    return {**vars(test), "words": words, "message": test.message if test.diagnosis else test.says}


def feedback_path(root: Path, verdict: Verdict) -> Path:
    """Where nbgrader looks for the page."""
    result = verdict.result
    folder = root / "feedback" / verdict.student / result.assignment
    return folder / f"{result.notebook}.html"
