"""Written answers, question by question: what is to be marked, and giving points for it.

The points go into nbgrader's gradebook, where the Formgrader shows them. Whoever gives points
says which ones they saw: where somebody else has given others meanwhile, nothing is overwritten.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from nbformat.v4 import reads_json
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from autograder.classroom.folder import ClassFolder
from autograder.classroom.hand_ins import collected
from autograder.classroom.marking_log import Given, given_so_far, note
from autograder.classroom.standing import settle
from autograder.marking.autograded import pictures_of_answer, text_of_answer
from autograder.marking.questions import (
    Answer,
    Conflict,
    MarkingError,
    Question,
    Share,
    questions_of,
)
from autograder.notebooks import grade_id
from autograder.text import plain
from lesson_kit.words import N_, tr

#: Characters of a comment.
LONGEST_COMMENT = 5000
#: Comments that are offered to be used again.
MAX_COMMENTS = 9


class Marking:
    """One person marking one assignment of a class."""

    def __init__(
        self,
        folder: ClassFolder,
        gradebook: Gradebook,
        assignment: str,
        *,
        marker: str,
        share: Share | None = None,
        second: int = 0,
    ) -> None:
        """Begin.

        Args:
            folder: the class.
            gradebook: opened.
            assignment: whose answers.
            marker: who marks, for the log.
            share: the part of the answers that this person marks.
            second: mark so many answers that were marked already once more, not seeing the points;
                what is given is compared and counts nowhere.

        Raises:
            ClassError: there is no such assignment.
            MarkingError: it has no written answers.
        """
        self.folder, self.gradebook, self.assignment = folder, gradebook, assignment
        self.marker, self.share, self.second = marker, share or Share(), second
        self.bundle = folder.bundle(assignment)
        if not self.bundle.written:
            raise MarkingError(f"{assignment} has no written answers: the machine marks all of it")

    @cached_property
    def questions(self) -> dict[str, Question]:
        """The questions, in the order of the notebook."""
        return questions_of(self.bundle)

    @cached_property
    def _groups(self) -> dict[str, list[str]]:
        """Who handed in one notebook together, by the first of them, who stands for all."""
        by_group: dict[str, list[str]] = {}
        for place, about in sorted(collected(self.folder).items()):
            student, _, assignment = place.partition("/")
            if assignment == self.assignment and about.get("group"):
                by_group.setdefault(about["group"], []).append(student)
        return {students[0]: students for students in by_group.values()}

    def tokens(self, question: str) -> dict[str, bool]:
        """The answers of this share, and whether each is done, in an order that tells nothing."""
        return {
            token: done
            for token, (_, done) in sorted(self._listed(question).items())
            if self.share.has(token)
        }

    def answer(self, question: str, token: str) -> Answer:
        """One answer, with the points of now.

        Raises:
            MarkingError: there is none.
        """
        listed = self._listed(question)
        if token not in listed:
            gone = N_("this answer is not there any more: it was handed in again, or empty")
            raise MarkingError(tr(gone))
        student = listed[token][0]
        path = self.folder.root / "autograded" / student / self.assignment
        try:
            text = (path / f"{self.bundle.notebook_name}.ipynb").read_text(encoding="utf-8")
        except OSError:
            unread = N_("{path} cannot be read; run `autograder grade {root}` again")
            raise MarkingError(tr(unread, path=path, root=self.folder.root)) from None
        grade, comment = self._rows(question, student)
        cells = [cell for cell in reads_json(text).cells if grade_id(cell) == question]
        answer = Answer(
            token,
            student,
            "".join(text_of_answer(cell) for cell in cells),
            grade.manual_score,
            (comment.manual_comment if comment is not None else None) or "",
            tuple(picture for cell in cells for picture in pictures_of_answer(cell)),
        )
        return self._unseen(question, answer) if self.second else answer

    def give(
        self, question: str, token: str, points: Any, comment: str, *, seen: Answer | None = None
    ) -> Answer:
        """Give points and a comment.

        Args:
            question: which.
            token: whose.
            points: from 0 to those of the question.
            comment: for the student.
            seen: the answer as it was shown.

        Returns:
            The answer as it is now.

        Raises:
            MarkingError: the points cannot be.
            Conflict: it is not any more as it was seen; nothing was written.
        """
        most = self.questions[question].points
        if isinstance(points, bool) or not isinstance(points, (int, float)):
            number = N_("points should be a number from 0 to {most}")
            raise MarkingError(tr(number, most=f"{most:g}"))
        if not 0 <= points <= most:  # also what is no number at all
            many = N_("so many points are not possible; there are 0 to {most}")
            raise MarkingError(tr(many, most=f"{most:g}"))
        before = self.answer(question, token)
        seen = seen or before
        if seen.text != before.text:
            again = tr("The student handed in again; this is the answer of now.")
            raise Conflict(before, again)
        comment = plain(comment, LONGEST_COMMENT).strip()
        given = Given(
            datetime.now(UTC).isoformat(timespec="seconds"),
            self.marker,
            self.assignment,
            question,
            before.student,
            float(points),
            comment,
        )
        if self.second:
            first = self._rows(question, before.student)[0].manual_score
            note(self.folder, Given(**{**vars(given), "second": True, "first": first}))
            return self.answer(question, token)
        self._write(question, before, given, seen)
        note(self.folder, given)
        for mate in self._groups.get(before.student, [before.student])[1:]:
            theirs = replace(given, student=mate)
            self._write_of_a_group(question, theirs)
            note(self.folder, theirs)
        for student in self._groups.get(before.student, [before.student]):
            try:
                settle(self.gradebook, self.folder, student, self.assignment)
            except OperationalError:  # busy: the points are saved, feedback and export settle too
                self.gradebook.db.rollback()
        return self.answer(question, token)

    def comments(self, question: str) -> list[str]:
        """Comments that were given for a question, the most used first."""
        used = Counter(
            given.comment
            for given in given_so_far(self.folder)
            if (given.assignment, given.question) == (self.assignment, question) and given.comment
        )
        return [text for text, _ in used.most_common(MAX_COMMENTS)]

    def _write(self, question: str, before: Answer, given: Given, seen: Answer) -> None:
        """One statement looks and writes: of two at once, the second finds other points."""
        session = self.gradebook.db
        grade, comment = self._rows(question, before.student)
        same = (
            Grade.manual_score.is_(None)
            if seen.score is None
            else (Grade.manual_score == seen.score)
        )
        try:
            written = session.execute(
                update(Grade)
                .where(Grade.id == grade.id, same)
                .values(manual_score=given.points, needs_manual_grade=False)
                .execution_options(synchronize_session=False)
            )
            if comment is not None:
                session.refresh(comment)
            said = (comment.manual_comment if comment is not None else None) or ""
            if written.rowcount != 1 or said != seen.comment:
                session.rollback()
                now = self.answer(question, before.token)
                other = tr("Somebody else has marked this meanwhile; nothing was saved.")
                raise Conflict(now, other)
            if comment is not None:
                comment.manual_comment = given.comment or None
            session.commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            session.expire_all()

    def _write_of_a_group(self, question: str, given: Given) -> None:
        """Give the points of an answer to one of the others whose it is too."""
        session = self.gradebook.db
        grade, comment = self._rows(question, given.student)
        try:
            grade.manual_score, grade.needs_manual_grade = given.points, False
            if comment is not None:
                comment.manual_comment = given.comment or None
            session.commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            session.expire_all()

    def _listed(self, question: str) -> dict[str, tuple[str, bool]]:
        """By token: the student, and whether it is done."""
        if question not in self.questions:
            raise MarkingError(f"{question!r} is no question; there are {list(self.questions)}")
        self.gradebook.db.rollback()  # what others saved since is to be seen
        rows = (
            self.gradebook.db.query(
                SubmittedAssignment.student_id, Grade.manual_score, Grade.needs_manual_grade
            )
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
            .join(BaseCell, Grade.cell_id == BaseCell.id)
            .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
            .filter(Assignment.name == self.assignment, BaseCell.name == question)
        )
        members = self.folder.roster.by_id
        others = {mate for students in self._groups.values() for mate in students[1:]}
        by_token = {
            self._token(student): (student, score is not None)
            for student, score, waits in rows
            if (waits or score is not None)
            and student not in others
            and not (student in members and members[student].withdrawn)
        }
        if not self.second:
            return by_token
        told = {
            given.student
            for given in given_so_far(self.folder)
            if given.second and (given.assignment, given.question) == (self.assignment, question)
        }
        marked = sorted(token for token, (_, done) in by_token.items() if done)[: self.second]
        return {token: (by_token[token][0], by_token[token][0] in told) for token in marked}

    def _unseen(self, question: str, answer: Answer) -> Answer:
        """As a second marker sees it: their own points, and not the first ones."""
        own = [
            given
            for given in given_so_far(self.folder)
            if given.second
            and (given.assignment, given.question, given.student)
            == (self.assignment, question, answer.student)
        ]
        score, comment = (own[-1].points, own[-1].comment) if own else (None, "")
        return replace(answer, score=score, comment=comment)

    def _token(self, student: str) -> str:
        """What stands for a student: the class's seed, which nobody else knows, is in it."""
        said = json.dumps([self.assignment, student]).encode("utf-8", "surrogatepass")
        return hmac.digest(str(self.folder.seed).encode(), said, hashlib.sha256).hex()[:16]

    def _rows(self, question: str, student: str) -> tuple[Grade, Comment | None]:
        rows = []
        for kind in (Grade, Comment):
            rows.append(
                self.gradebook.db.query(kind)
                .join(BaseCell, kind.cell_id == BaseCell.id)
                .join(SubmittedNotebook, kind.notebook_id == SubmittedNotebook.id)
                .join(
                    SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id
                )
                .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
                .filter(
                    Assignment.name == self.assignment,
                    SubmittedAssignment.student_id == student,
                    BaseCell.name == question,
                )
                .one_or_none()
            )
        return rows[0], rows[1]
