"""Writing results into nbgrader's gradebook, so that its Formgrader shows them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import Index
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex

from autograder.build.alembic import put_alembic_on_path
from autograder.classroom.roster import Roster
from autograder.errors import WrongUse
from autograder.grade.result import Result
from autograder.text import plain_line

#: nbgrader's tables have no index for what is asked of them for every submission, so that each
#: question would read the rows of the whole class.
_INDEXES = (
    Index("autograder_grade_notebook", Grade.__table__.c.notebook_id),
    Index("autograder_comment_notebook", Comment.__table__.c.notebook_id),
    Index("autograder_notebook_assignment", SubmittedNotebook.__table__.c.assignment_id),
)


class GradebookError(WrongUse):
    """The gradebook cannot be used, or not take a verdict; the message says what to do."""


@contextmanager
def open_gradebook(db_url: str) -> Iterator[Gradebook]:
    """Open nbgrader's gradebook; it is created when it does not exist.

    Raises:
        GradebookError: the database cannot be opened, or refuses what is done with it.
    """
    put_alembic_on_path()
    try:
        opened = Gradebook(db_url)
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        raise _unusable(db_url, error) from error
    try:
        with opened as gradebook:
            with gradebook.engine.begin() as connection:
                for index in _INDEXES:
                    connection.execute(CreateIndex(index, if_not_exists=True))
            yield gradebook
    except SQLAlchemyError as error:
        raise _unusable(db_url, error) from error


#: The system's refusals after which no verdict can be written.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def stops_the_class(error: Exception) -> bool:
    """Whether what went wrong with one submission would go wrong with the next one too.

    It does when it is about the class's settings, the gradebook, or a full disk.
    """
    if isinstance(error, (WrongUse, OperationalError)):
        return True
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def _unusable(db_url: str, error: Exception) -> GradebookError:
    says = plain_line(str(getattr(error, "orig", None) or error).partition("\n")[0])
    return GradebookError(
        f"the gradebook {_shown(db_url)} cannot be used: {says}; mend that, or db_url in "
        "class.toml, and run the same command again: verdicts are kept"
    )


def _shown(db_url: str) -> str:
    try:
        url = make_url(db_url)
    except SQLAlchemyError:
        return "that db_url in class.toml names"
    return str(url.database) if url.drivername == "sqlite" else url.render_as_string()


#: nbgrader writes names into the Formgrader's pages as they are, and a student may choose their own
#: in the LMS: what could begin a tag or end an attribute is a sign that looks like it.
_AS_TEXT = str.maketrans({"<": "\u2039", ">": "\u203a", '"': "\u201d", "\\": "\u2216"})


def enrol(gradebook: Gradebook, roster: Roster) -> None:
    """Put names and addresses into nbgrader's gradebook, where they changed."""
    known: dict[str, Any] = {student.id: student for student in gradebook.db.query(Student)}
    for member in roster.members:
        says = {
            "first_name": member.first_name.translate(_AS_TEXT) or None,
            "last_name": member.last_name.translate(_AS_TEXT) or None,
            "email": member.email or None,
            "lms_user_id": member.lms_id or None,
        }
        there = known.get(member.id)
        if there is None or any(getattr(there, name) != value for name, value in says.items()):
            gradebook.update_or_create_student(member.id, **says)


def record(
    gradebook: Gradebook, student: str, result: Result, same_answers: Callable[[], set[str]]
) -> None:
    """Write the result of one submission; the caller commits, or all of it is undone.

    All earlier machine scores of the submission are replaced, also by lower ones. A score
    that a person gave stays while the answer it was given for is still the same.

    Args:
        gradebook: an open gradebook that knows the assignment.
        student: the student's id; added when new.
        result: of the machine.
        same_answers: gives the grade_ids of written answers that are the same as at the last
            grading; asked only where a person gave points.

    Raises:
        GradebookError: the gradebook does not know the assignment or one of its tests.
    """
    session = gradebook.db
    try:
        submission = _submission(gradebook, student, result.assignment)
        points = {test.grade_id: test.points for test in result.tests}
        messages: dict[str, list[str]] = {}
        for test in result.tests:
            if test.says:
                messages.setdefault(test.exercise, []).append(f"{test.grade_id}: {test.says}")
        for grade, name in _with_names(session, Grade, submission):
            if name.startswith("written_"):
                _record_written(grade, name, result, same_answers)
            elif name in points:
                grade.auto_score = points.pop(name)
                grade.manual_score = None
                grade.needs_manual_grade = False
            else:
                raise GradebookError(
                    f"the gradebook has a test {name} in {result.assignment} that the "
                    "class's source does not; make the class again with `autograder new-class`"
                )
        for comment, name in _with_names(session, Comment, submission):
            comment.auto_comment = "\n".join(messages.get(name, [])) or None
        if points:
            raise GradebookError(
                f"the gradebook does not know {', '.join(sorted(points))} of {result.assignment}; "
                "make the class again with `autograder new-class`"
            )
        session.flush()
        session.expire(submission)  # its sums were read before
    except BaseException:
        session.rollback()
        raise


def _with_names(
    session: Any, kind: type[Grade] | type[Comment], submission: SubmittedAssignment
) -> list[tuple[Any, str]]:
    """The grades or comments of a submission, each with its cell's name, in one query."""
    rows = (
        session.query(kind, BaseCell.name)
        .join(BaseCell, kind.cell_id == BaseCell.id)
        .join(SubmittedNotebook, kind.notebook_id == SubmittedNotebook.id)
        .filter(SubmittedNotebook.assignment_id == submission.id)
    )
    return [(row, name) for row, name in rows]


def _record_written(
    grade: Grade, name: str, result: Result, same_answers: Callable[[], set[str]]
) -> None:
    attempted = name in result.written_to_read
    grade.auto_score = None if attempted else 0.0
    marked = grade.manual_score is not None or grade.extra_credit is not None
    if marked and name not in same_answers():
        grade.manual_score = None
        grade.extra_credit = None
    grade.needs_manual_grade = attempted and grade.manual_score is None


def _submission(gradebook: Gradebook, student: str, assignment: str) -> SubmittedAssignment:
    session = gradebook.db
    known = session.query(Assignment).filter(Assignment.name == assignment).one_or_none()
    if known is None:
        raise GradebookError(
            f"the gradebook has no assignment {assignment}; make the class again with "
            "`autograder new-class`"
        )
    person = session.get(Student, student)
    if person is None:
        person = Student(id=student)
        session.add(person)
    submission = (
        session.query(SubmittedAssignment)
        .filter_by(assignment_id=known.id, student_id=student)
        .one_or_none()
    )
    if submission is not None:
        return submission
    with session.no_autoflush:
        submission = SubmittedAssignment(assignment=known, student=person)
        session.add(submission)
        for notebook in known.notebooks:
            submitted = SubmittedNotebook(notebook=notebook, assignment=submission)
            session.add(submitted)
            for cell in notebook.grade_cells:
                session.add(Grade(cell_id=cell.id, notebook=submitted))
            for cell in notebook.solution_cells:
                session.add(Comment(cell_id=cell.id, notebook=submitted))
    session.flush()
    return submission


@dataclass(frozen=True)
class ManualGrade:
    """What a person gave for a written answer."""

    score: float | None
    comment: str


def manual_grades(gradebook: Gradebook, student: str, assignment: str) -> dict[str, ManualGrade]:
    """The scores and comments that people gave in the Formgrader, by grade_id."""
    comments = dict(_by_name(gradebook, Comment, Comment.manual_comment, student, assignment))
    scores = dict(_by_name(gradebook, Grade, Grade.manual_score, student, assignment))
    return {
        name: ManualGrade(scores[name], comments.get(name) or "")
        for name in scores
        if scores[name] is not None or comments.get(name)
    }


def written_points(gradebook: Gradebook, student: str, assignment: str) -> dict[str, float]:
    """The points of a submission's written answers, by grade_id; 0 where nobody has read one."""
    scores = _by_name(gradebook, Grade, Grade.manual_score, student, assignment)
    return {name: float(score or 0) for name, score in scores if name.startswith("written_")}


def _by_name(
    gradebook: Gradebook,
    kind: type[Grade] | type[Comment],
    what: Any,
    student: str,
    assignment: str,
) -> list[tuple[str, Any]]:
    """One column of a submission's grades or comments, by the names of their cells."""
    return [
        (name, value)
        for name, value in gradebook.db.query(BaseCell.name, what)
        .join(kind, kind.cell_id == BaseCell.id)
        .join(SubmittedNotebook, kind.notebook_id == SubmittedNotebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .filter(Assignment.name == assignment, SubmittedAssignment.student_id == student)
    ]
