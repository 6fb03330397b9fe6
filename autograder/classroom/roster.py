"""Who is in a class: ``roster.csv``, and how it comes from an LMS's table.

A class without one, or with one that is only a heading, takes everybody who hands in.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autograder.classroom.headings import HEADINGS, POINTS_POSSIBLE
from autograder.errors import WrongUse
from autograder.tables import Table, as_cell, as_csv, read_table
from autograder.text import plain_line
from lesson_kit.words import N_

COLUMNS = ("id", "first_name", "last_name", "email", "status", "lms_id")
WITHDRAWN = "withdrawn"

#: Names of columns in the tables of Moodle, Canvas and Gradescope; the first that is there counts.
NAMES: dict[str, tuple[str, ...]] = {
    "id": (*HEADINGS["login"], "id"),
    "first_name": HEADINGS["first name"],
    "last_name": HEADINGS["last name"],
    "full_name": HEADINGS["full name"],
    "email": HEADINGS["email"],
    "status": ("status",),
    "lms_id": HEADINGS["number"],
}


_BEFORE_FORMULA = re.compile(r"^'(?=[=+\-@])")  # see tables.as_cell


class RosterError(WrongUse):
    """A roster cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Member:
    """One student of a class. ``lms_id`` is the number that an LMS gives, if known."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    status: str = ""
    lms_id: str = ""

    @property
    def withdrawn(self) -> bool:
        """Whether the student left the class: graded, but not exported."""
        return self.status.strip().casefold() == WITHDRAWN

    @property
    def full_name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}".strip()


def fit_for_a_folder(student: str) -> bool:
    """Whether an id can name a folder, and be shown and written anywhere."""
    return (
        0 < len(student.encode("utf-8", "replace")) <= 120
        and student == student.strip()
        and not student.startswith(".")
        and not set('/\\:*?"<>|') & set(student)
        and plain_line(student) == student
    )


def squashed(name: str) -> str:
    """A name for comparing: lower case letters and digits, without accents."""
    plain = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in plain.casefold() if letter.isalnum())


@dataclass(frozen=True)
class Roster:
    """The students of a class."""

    members: tuple[Member, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.members)

    @cached_property
    def by_id(self) -> Mapping[str, Member]:
        """The students, by id."""
        return {member.id: member for member in self.members}

    def find(
        self, *, ids: tuple[str, ...] = (), lms_id: str = "", name: str = "", email: str = ""
    ) -> list[Member]:
        """Who is meant: by the first of id, LMS's number, e-mail address and name that fits.

        A name may be "First Last", "Last, First" or Canvas's "lastfirst". Two of one name
        are both returned.
        """
        for student_id in ids:
            if student_id in self.by_id:
                return [self.by_id[student_id]]
        members = [each for each in self.members if lms_id and lms_id == each.lms_id]
        if members:
            return members
        wanted = email.strip().casefold()
        members = [each for each in self.members if wanted and each.email.casefold() == wanted]
        if members or not squashed(name):
            return members
        return self._by_name.get(squashed(name), [])

    @cached_property
    def _by_name(self) -> dict[str, list[Member]]:
        by_name: dict[str, list[Member]] = {}
        for member in self.members:
            orders = (member.first_name + member.last_name, member.last_name + member.first_name)
            for order in {squashed(text) for text in orders} - {""}:
                by_name.setdefault(order, []).append(member)
        return by_name

    def notes(self, student: str) -> tuple[str, ...]:
        """What is to be said of somebody who handed in."""
        if not self or (student in self.by_id and not self.by_id[student].withdrawn):
            return ()
        return (N_("withdrawn"),) if student in self.by_id else (N_("not on the roster"),)

    def as_csv(self) -> str:
        """The text of ``roster.csv``."""
        return as_csv(
            COLUMNS,
            [[as_cell(getattr(member, name)) for name in COLUMNS] for member in self.members],
        )

    @classmethod
    def read(cls, path: Path) -> Roster:
        """Read ``roster.csv``; a class made before there was one has none.

        Raises:
            RosterError, SpreadsheetError: it cannot be used.
        """
        if not path.exists():
            return cls()
        table = read_table(path)
        if table.column("id") is None:
            raise RosterError(f"{path} has no column id; its columns are {', '.join(COLUMNS)}")
        return cls(_members(table, {name: table.column(name) for name in COLUMNS}, path))


def import_roster(path: Path, columns: Mapping[str, str] | None = None) -> tuple[Roster, list[str]]:
    """Read a class list of Moodle, Canvas or Gradescope, or any table with named columns.

    Args:
        path: the CSV file.
        columns: which of our columns comes from which of the file's, where that is not plain.

    Returns:
        The roster, and for each column where it comes from, and which are not read.

    Raises:
        RosterError, SpreadsheetError: a column is not there, or what is in it cannot be used.
    """
    table = read_table(path)
    given = dict(columns or {})
    places: dict[str, int | None] = {}
    for name, names in NAMES.items():
        places[name] = table.column(*([given.pop(name)] if name in given else names))
    asked = {name: column for name, column in (columns or {}).items() if places.get(name) is None}
    if given or asked:
        raise RosterError(
            f"no such column: {', '.join(f'{a}={b}' for a, b in (given | asked).items())}; "
            f"ours are {', '.join(NAMES)}, and {path} has {', '.join(table.columns)}"
        )
    at = places["id"]
    if at is not None and places["lms_id"] is None and _is_moodles_number(table, at):
        places["lms_id"], places["id"] = at, None
    if places["id"] is None:
        places["id"] = places["email"]
    if table.column("SIS Login ID", "SIS User ID") is not None and places["lms_id"] is None:
        places["lms_id"] = table.column("ID")  # Canvas's own number
    if places["id"] is None:
        raise RosterError(
            f"{path} has no column that could be an id; say which one is: --column id=NAME. "
            f"It has {', '.join(table.columns)}"
        )
    role = table.column("role")
    if role is not None:
        only = tuple(row for row in table.rows if row[role].casefold() in ("student", ""))
        table = Table(table.columns, only)
    says = [f"{name} from {table.columns[at]!r}" for name, at in places.items() if at is not None]
    unread = [name for at, name in enumerate(table.columns) if at not in places.values()]
    if unread:
        says.append(f"not read: {', '.join(map(plain_line, unread))}")
    return Roster(_members(table, places, path)), says


def _members(table: Table, places: Mapping[str, int | None], path: Path) -> tuple[Member, ...]:
    members: list[Member] = []
    seen: set[str] = set()
    for number, row in enumerate(table.rows, start=2):
        cells = {
            name: plain_line(_BEFORE_FORMULA.sub("", row[at].strip())) if at is not None else ""
            for name, at in places.items()
        }
        full = cells.pop("full_name", "")
        if full and not (cells["first_name"] or cells["last_name"]):
            cells["first_name"], cells["last_name"] = _in_two(full)
        numbers = re.findall(r"\d+$", cells["lms_id"])  # Moodle's "Participant 123"
        cells["lms_id"] = numbers[0] if numbers else cells["lms_id"]
        if full in (*POINTS_POSSIBLE, "Student, Test") or not any(cells.values()):
            continue
        where = f"{path}, line {number}"
        if not cells["id"]:
            if full or cells["first_name"] or cells["last_name"]:
                raise RosterError(f"{where}: {plain_line(' '.join(row))!r} has no id; fill it in")
            continue
        if not fit_for_a_folder(cells["id"]):
            raise RosterError(
                f"{where}: {cells['id']!r} cannot be an id: it names a folder, so it has no "
                "slash, colon or other sign of paths and does not begin with a dot"
            )
        if cells["id"] in seen:
            raise RosterError(f"{where}: {cells['id']!r} stands there twice; ids must differ")
        if cells["status"].casefold() not in ("", WITHDRAWN) and "status" in table.columns:
            raise RosterError(
                f"{where}: status is {cells['status']!r}; it is empty or {WITHDRAWN!r}"
            )
        seen.add(cells["id"])
        members.append(Member(**cells))
    return tuple(members)


def _is_moodles_number(table: Table, at: int) -> bool:
    """Whether a column of ids holds a word and everybody's number: "Teilnehmer/in1001"."""
    cells = [row[at].strip() for row in table.rows]
    return bool(cells) and all(re.fullmatch(r"\D{3,}\d+", cell) for cell in cells)


def _in_two(full: str) -> tuple[str, str]:
    if "," in full:
        last, _, first = full.partition(",")
    else:
        first, _, last = full.rpartition(" ")
    return first.strip(), last.strip()
