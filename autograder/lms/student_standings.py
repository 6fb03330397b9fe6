"""What everybody has for each assignment, as nbgrader's gradebook says.

Points given by hand count, and late penalties are taken off. Students who withdrew are left
out; who is on the roster and handed in nothing has 0 where others were graded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nbgrader.api import MissingEntry

from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import open_gradebook
from autograder.classroom.grades_file import NOTHING_HANDED_IN, handed_in_nothing, read_entries
from autograder.classroom.late import duration, in_minutes
from autograder.classroom.roster import Member
from autograder.classroom.standing import settle
from autograder.errors import WrongUse
from autograder.tables import as_points
from autograder.text import plain_line


class NothingGraded(WrongUse):
    """There are no points yet; the message says what to do."""


@dataclass(frozen=True)
class StudentStanding:
    """What one student has for one assignment."""

    member: Member
    assignment: str
    total: float
    max_points: float
    penalty: float = 0.0
    late_minutes: int | None = None
    to_mark: bool = False
    missing: bool = False
    extension_minutes: int = 0
    written: float = 0.0
    max_written: float = 0.0
    on_roster: bool = True

    def scaled_to(self, maximum: float | None) -> StudentStanding:
        """The same with other points: each is the same share of another maximum."""
        if maximum is None or not self.max_points:
            return self
        times = maximum / self.max_points
        return replace(
            self,
            total=self.total * times,
            penalty=self.penalty * times,
            max_points=maximum,
            written=self.written * times,
            max_written=self.max_written * times,
        )

    @property
    def words(self) -> str:
        """How the points came about, in one line."""
        if self.missing:
            return NOTHING_HANDED_IN
        says = f"{as_points(self.total)} of {as_points(self.max_points)} points"
        if self.penalty:
            says += f", after {as_points(self.penalty)} for handing in late"
        if self.extension_minutes:
            says += f", with {duration(self.extension_minutes)} more time"
        return says + (", written answers are not marked yet" if self.to_mark else "")


def standings(
    folder: ClassFolder, assignments: Sequence[str] | None = None
) -> list[StudentStanding]:
    """Everybody's points in the gradebook, with late penalties brought up to date.

    Raises:
        NothingGraded: nothing was graded.
        ClassError: there is no such assignment.
    """
    wanted = assignments or folder.assignments
    bundles = {name: folder.bundle(name) for name in wanted}
    entries = read_entries(folder.root / "grades.json")
    of_class: list[StudentStanding] = []
    with open_gradebook(folder.db_url) as gradebook:
        for student, name in sorted(entries):
            member = folder.roster.by_id.get(student, Member(student))
            if name not in wanted or member.withdrawn:
                continue
            bundle = bundles[name]
            most, written = bundle.out_of, bundle.out_of - bundle.max_score
            if handed_in_nothing(entries[student, name]):
                of_class.append(
                    StudentStanding(member, name, 0.0, most, missing=True, max_written=written)
                )
                continue
            try:
                stands = settle(gradebook, folder, student, name)
            except MissingEntry:
                raise NothingGraded(
                    f"the gradebook does not know {student}/{name}, which grades.json does; run "
                    f"`autograder grade {folder.root}` again"
                ) from None
            of_class.append(
                StudentStanding(
                    member,
                    name,
                    stands.total,
                    most,
                    stands.penalty,
                    stands.late_minutes,
                    stands.needs_manual_grade,
                    extension_minutes=in_minutes(stands.extension),
                    written=stands.written,
                    max_written=written,
                    on_roster=not folder.roster or student in folder.roster.by_id,
                )
            )
    if not of_class:
        raise NothingGraded(f"nothing to export yet; run `autograder grade {folder.root}` first")
    return of_class


def to_mark(of_class: Iterable[StudentStanding]) -> list[str]:
    """What is to be said of written answers that nobody has read yet."""
    number = sum(standing.to_mark for standing in of_class)
    if not number:
        return []
    return [
        f"written answers of {number} submissions are not marked yet and count 0; mark them with "
        "`autograder mark` and export again"
    ]


def strangers(of_class: Iterable[StudentStanding]) -> list[str]:
    """What is to be said of students in a file who are not on the roster."""
    names = sorted({standing.member.id for standing in of_class if not standing.on_roster})
    if not names:
        return []
    return [f"not on the roster, and in this file: {', '.join(map(plain_line, names))}"]
