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
from autograder.classroom.grades_file import GradedSubmission
from autograder.classroom.late import Standing, duration, how_late, in_minutes
from autograder.classroom.standing import give_standing
from autograder.course.bundle import Bundle, Written
from autograder.grade.result import GRADED, PARTIAL, PASSED, Result
from autograder.marking.formulas import with_formulas
from autograder.marking.summary import LABELS, exercise_parts, stopped_cells
from autograder.tables import as_points
from lesson_kit.answer_text import AS_KNOWN
from lesson_kit.words import N_, said, speaking, tr

_SYMBOLS = {PASSED: "✓", PARTIAL: "◐"}

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("autograder", "templates"),
    autoescape=True,
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_environment.globals |= {"_": tr, "said": said}
_environment.filters["formulas"] = with_formulas
_environment.filters["points"] = as_points


def feedback_page(
    submission: GradedSubmission,
    bundle: Bundle,
    manual: dict[str, ManualGrade],
    *,
    name: str = "",
    requests: str = "",
) -> str:
    """The HTML of one feedback page.

    Args:
        submission: with its result; its standing is the number that the page shows.
        bundle: the assignment, for its exercises and what its tests look at.
        manual: what people gave for written answers.
        name: of the student, where the roster has it.
        requests: how to ask for another look, as class.toml says; "" where nobody is told.
    """
    with speaking(bundle.words):
        return _page(submission, bundle, manual, name or submission.student, requests)


def _page(
    submission: GradedSubmission,
    bundle: Bundle,
    manual: dict[str, ManualGrade],
    name: str,
    requests: str,
) -> str:
    result = submission.result
    read = result.status == GRADED
    handed_in = {cell.grade_id: cell.source for cell in result.cells if cell.grade_id}
    pictures = {cell.grade_id: cell.attachments for cell in result.cells if cell.attachments}
    words = {
        test.grade_id: said(test.words) if test.hidden else tr("The check in the notebook.")
        for test in bundle.tests
    }
    parts = exercise_parts(result.tests, words, handed_in) if read else []
    written = (
        [
            _written(question, result, handed_in, manual)
            | {"pictures": pictures.get(question.grade_id, ())}
            for question in bundle.written
        ]
        if read
        else []
    )
    standing = submission.standing or _before_it_is_settled(result, bundle)
    return _environment.get_template("feedback.html.j2").render(
        entry=submission.entry(),
        name=name,
        points=points_line(standing),
        late=late_line(standing),
        lesson=bundle.title,
        parts=parts,
        written=written,
        errors=stopped_cells(result.runs, (test.message for test in result.tests)),
        symbols={outcome: _SYMBOLS.get(outcome, "✗") for outcome in LABELS},
        requests=requests,
        as_known=tr(AS_KNOWN),
        engine=autograder.__version__,
    )


def _written(
    question: Written, result: Result, handed_in: dict[str, str], manual: dict[str, ManualGrade]
) -> dict[str, Any]:
    text = (
        handed_in.get(question.grade_id, "") if question.grade_id in result.written_to_read else ""
    )
    given = manual.get(question.grade_id)
    return {
        "name": question.grade_id,
        "max_points": question.points,
        "text": text,
        "score": given.score if given else None,
        "comment": given.comment if given else "",
    }


def _before_it_is_settled(result: Result, bundle: Bundle) -> Standing:
    """What the machine alone says, where no gradebook was asked."""
    waits = sum(
        question.points
        for question in bundle.written
        if question.grade_id in result.written_to_read
    )
    return Standing(None, 0.0, 0.0, result.score, bundle.out_of, waits, bool(waits))


def settled_page(
    submission: GradedSubmission, bundle: Bundle, gradebook: Gradebook, folder: ClassFolder
) -> str:
    """:func:`feedback_page` of now, with the points people gave and what being late costs.

    The submission gets its standing and its notes, and what is in the gradebook is committed.

    Raises:
        MissingEntry: the submission was never graded.
        LateError: class.toml cannot be used.
    """
    manual = manual_grades(gradebook, *submission.key)
    give_standing(submission, gradebook, folder)
    member = folder.roster.by_id.get(submission.student)
    return feedback_page(
        submission,
        bundle,
        manual,
        name=member.full_name if member else "",
        requests=folder.requests,
    )


def points_line(standing: Standing) -> str:
    """The one number: points of now, of all that there are, and what waits for a person."""
    points = {"total": as_points(standing.total), "out_of": as_points(standing.out_of)}
    if not standing.needs_manual_grade:
        return tr("{total} of {out_of} points", **points)
    so_far = N_("{total} of {out_of} points so far; a person still has to mark {rest} of them")
    return tr(so_far, rest=as_points(standing.to_mark), **points)


def late_line(standing: Standing) -> str:
    """What a late submission cost and who had more time, in one line.

    Empty for one in time or with nothing to lose.
    """
    longer = in_minutes(standing.extension)
    more = tr("You had {time} more than the others. ", time=duration(longer)) if longer else ""
    if not standing.late_minutes or not (standing.total or standing.penalty):
        return more.strip()
    when = {"late": how_late(standing.late_minutes)}
    if not standing.penalty:
        return more + tr("Handed in {late}, which costs nothing.", **when)
    when |= {"cost": as_points(standing.penalty), "left": as_points(standing.total)}
    return more + tr("Handed in {late}, which costs {cost} points: {left} are left.", **when)


def feedback_path(root: Path, submission: GradedSubmission) -> Path:
    """Where nbgrader looks for the page."""
    result = submission.result
    folder = root / "feedback" / submission.student / result.assignment
    return folder / f"{result.notebook}.html"
