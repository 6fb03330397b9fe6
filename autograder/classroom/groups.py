"""Who works together: ``groups.csv`` in the class folder, the LMS's own list or one by hand.

A table with a column of groups and one that says who: ``group,student``, a list of participants or
the worksheet of Moodle, Canvas's export of groups. A column ``assignment`` bounds a row to one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.classroom.headings import HEADINGS
from autograder.classroom.roster import Roster, squashed
from autograder.errors import WrongUse
from autograder.tables import Table, read_table
from autograder.text import plain_line

#: In the class folder.
GROUPS_CSV = "groups.csv"


class GroupsError(WrongUse):
    """A list of groups cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Groups:
    """Who is in which group, by assignment, or "" for all, and the group's name."""

    members: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.members)

    def of(self, name: str, assignment: str) -> tuple[str, ...]:
        """The students of a group; empty where there is none of that name."""
        for which in (assignment, ""):
            if (which, squashed(name)) in self.members:
                return self.members[which, squashed(name)]
        return ()

    def with_student(self, student: str, assignment: str) -> tuple[str, ...]:
        """The students of the group that somebody is in for this very assignment."""
        for (which, _), members in self.members.items():
            if which == assignment and student in members:
                return members
        return ()

    def alone(self, roster: Roster, assignment: str) -> tuple[str, ...]:
        """Who of the roster is in no group: Moodle's "default group"."""
        grouped = {
            student
            for (which, _), members in self.members.items()
            for student in members
            if which in ("", assignment)
        }
        return tuple(
            member.id
            for member in roster.members
            if member.id not in grouped and not member.withdrawn
        )

    @classmethod
    def read(cls, path: Path, roster: Roster, assignments: Collection[str]) -> Groups:
        """Read ``groups.csv``; a class without it has no groups.

        Raises:
            GroupsError, SpreadsheetError: something in it cannot be used.
        """
        if not path.exists():
            return cls()
        table = read_table(path)
        group = table.column(*HEADINGS["group"])
        if group is None:
            raise GroupsError(
                f"{path} has no column of groups; its columns should be group and student. It has "
                f"{', '.join(table.columns)}"
            )
        of, by = table.column("assignment"), dict[tuple[str, str], dict[str, None]]()
        for number, row in enumerate(table.rows, start=2):
            which = row[of].strip() if of is not None else ""
            if which and which not in assignments:
                raise GroupsError(
                    f"{path}, line {number}: {which!r} is no assignment; there are "
                    f"{', '.join(assignments)}"
                )
            # A list of participants has all groups of a person in one cell.
            names = [name for name in re.split(r"[,;]", row[group]) if squashed(name)]
            if names:
                student = _student(table, row, roster, f"{path}, line {number}")
                for name in names:
                    by.setdefault((which, squashed(name)), {})[student] = None
        return cls({key: tuple(students) for key, students in by.items()})


def _student(table: Table, row: tuple[str, ...], roster: Roster, where: str) -> str:
    def cell(*names: str) -> str:
        at = table.column(*names)
        return row[at].strip() if at is not None else ""

    said = cell("student", "id")
    ids = (said, *(cell(name) for name in HEADINGS["login"]))
    full = cell(*HEADINGS["full name"]) or " ".join(
        cell(*HEADINGS[part]) for part in ("first name", "last name")
    )
    number = re.sub(r"^\D+", "", cell(*HEADINGS["number"]))
    members = roster.find(
        ids=ids, lms_id=number, name=full or said, email=cell(*HEADINGS["email"]) or said
    )
    if len(members) == 1:
        return members[0].id
    if not roster and said:
        return said
    who = plain_line(" ".join(row))
    many = (
        f"{len(members)} on the roster could be meant by" if members else "nobody on the roster is"
    )
    raise GroupsError(f"{where}: {many} {who!r}; write the id that is in roster.csv")
