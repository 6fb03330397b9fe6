"""From the path of a notebook in an archive to its student and its assignment.

What the path says is looked up in the roster; a student who is not there gets an id made of
the name. Two people of one name stay two.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from autograder.classroom.folder import ClassError, ClassFolder
from autograder.classroom.roster import Member, Roster, fit_for_a_folder
from autograder.grade.submission import Unreadable
from autograder.lms.archives import Archive, File
from autograder.lms.layouts import (
    METADATA,
    Layout,
    Named,
    may_be_notebook,
    own_metadata,
    readings,
    stem,
    submitters,
)
from lesson_kit import notebook_reading as reading


@dataclass(frozen=True)
class Candidate:
    """A notebook that could be a student's submission of an assignment.

    Attributes:
        file, named: it, and what its path says.
        student, assignment: whose it is, and of what.
        name: the notebook's, as it will be called, without its ending.
        number: what an LMS or a browser added to the name: a larger one is newer.
        note: what is to be said of the student.
        by_name_only: whether nothing but a name, which others may have, says whose it is.
        group: the file, where it is the work of several; "" of one student's.
    """

    file: File
    named: Named
    student: str
    assignment: str
    name: str
    number: int
    note: str
    by_name_only: bool
    group: str = ""

    @property
    def came(self) -> datetime | None:
        """When it was handed in, as far as the LMS or the archive tells."""
        return self.named.came or self.file.modified

    @property
    def rank(self) -> tuple[datetime, bool, datetime, int]:
        """Grows from the older to the newer; of one minute, a copy counts as older."""
        came = self.came or datetime.min.replace(tzinfo=UTC)
        return came.replace(second=0, microsecond=0), self.number >= 0, came, self.number


def people(archive: Archive, layout: Layout, assignments: list[str]) -> dict[str, list[Named]]:
    """Who handed in which submission of Gradescope's; empty for other layouts.

    Raises:
        ClassError, LayoutError: the archive does not say it.
    """
    if layout.name != "gradescope":
        return {}
    own = own_metadata([file.path for file in archive.files], assignments)
    for file in archive.files:
        if file.path == own:
            try:
                return submitters(file.read())
            except Unreadable as problem:
                raise ClassError(f"{archive.name}: {METADATA}: {problem}") from None
    raise ClassError(
        f"{archive.name} has no {METADATA} of its own above the submissions, which says whose "
        "they are; export the submissions from Gradescope again"
    )


@dataclass(frozen=True)
class Asked:
    """What a file's owner and assignment are looked up in.

    Attributes:
        folder: the class, with its roster and groups.
        layout: how paths are made.
        people: see :func:`people`.
        notebooks: the name of each assignment's.
        only: the one assignment that is meant, if one is.
    """

    folder: ClassFolder
    layout: Layout
    people: dict[str, list[Named]]
    notebooks: dict[str, str]
    only: str | None

    def read(self, path: str) -> list[Named] | str:
        """What a path says, or why that cannot be told."""
        if self.layout.name == "canvas" and (all_of_them := readings(path)):
            return self._of_canvas(all_of_them)
        return self.layout.read(path, self.people)

    def _of_canvas(self, all_of_them: list[Named]) -> list[Named] | str:
        """A name may hold numbers, and so may a file's: the roster says which are Canvas's."""
        if len(all_of_them) == 1:
            return all_of_them
        roster = self.folder.roster
        known = [named for named in all_of_them if roster.find(lms_id=named.lms_id)]
        if len(known) > 1:
            called = [
                named
                for named in known
                if roster.find(lms_id=named.lms_id)[0] in roster.find(name=named.name)
            ]
            if len(called) != 1:
                whose = ", ".join(roster.find(lms_id=named.lms_id)[0].id for named in known)
                return f"its name holds the numbers of several ({whose}): whose is it?"
            return called
        names = {name.casefold() for name in self.notebooks.values()}
        ours = [named for named in all_of_them if stem(named.file)[0].casefold() in names]
        return [(known or ours or all_of_them)[-1]]


def assigned(file: File, asked: Asked) -> list[Candidate] | str:
    """Whose a file is and of which assignment, or why it is left out."""
    ending = file.path.rpartition(".")[2].casefold()
    if ending in ("zip", "gz", "tar", "7z", "rar"):
        return "an archive in the archive: unpack it and collect the folder"
    if ending != "ipynb" and not (may_be_notebook(file.path) and _holds_a_notebook(file)):
        return "not a notebook"
    named = asked.read(file.path)
    if isinstance(named, str):
        return named
    if not named:
        return "the path does not fit the layout, or the LMS does not say whose it is"
    notebooks, only = asked.notebooks, asked.only
    name, number = stem(named[0].file)
    name = name.encode()[:150].decode(errors="ignore").strip(". ") or "notebook"
    belongs = next((a for a, n in notebooks.items() if n.casefold() == name.casefold()), "")
    inside = next((part for part in file.path.split("/")[:-1] if part in notebooks), "")
    assignment = belongs or inside or only or ""
    if not assignment:
        return f"no assignment has a notebook called {name}; say which it is with --assignment"
    if only is not None and assignment != only:
        return f"it belongs to {assignment}"
    if asked.layout.name == "plain" and named[0].assignment != assignment:
        return f"it is a notebook of {assignment} and lies in {named[0].assignment}"
    whose = _all_of(named, assignment, asked)
    if isinstance(whose, str):
        return whose
    called = notebooks[assignment] if belongs else name
    candidates = []
    for owner in whose:
        if not fit_for_a_folder(owner.student):
            return f"{owner.student!r} cannot be a student's id: it could not name a folder"
        candidates.append(
            Candidate(
                file,
                owner.named,
                owner.student,
                assignment,
                called,
                number,
                owner.note,
                owner.by_name_only,
                f"{file.archive}: {file.path}" if len(whose) > 1 else "",
            )
        )
    return candidates


class _Owner(NamedTuple):
    """One of those whose a file is."""

    named: Named
    student: str
    note: str
    by_name_only: bool


def _all_of(named: list[Named], assignment: str, asked: Asked) -> list[_Owner] | str:
    """Everybody whose a file is: one student, or all of a group; or why it is nobody's."""
    if len(named) > 1:  # Gradescope says it all
        return [_Owner(each, *_student(each, asked.folder.roster)) for each in named]
    (only,) = named
    groups, roster = asked.folder.groups, asked.folder.roster
    if only.name and not roster.find(name=only.name):
        together = groups.of(only.name, assignment)
        if together:
            return [_Owner(only, each, f"of the group {only.name}", False) for each in together]
    if asked.layout.name == "moodle" and not only.lms_id:
        alone = groups.alone(roster, assignment) if groups else ()
        if not alone:
            return f"it is the work of {only.name!r}, and no list says who that is: {_GROUPS}"
        return [_Owner(only, each, "in no group, so of Moodle's own", False) for each in alone]
    owner = _Owner(only, *_student(only, roster))
    together = groups.with_student(owner.student, assignment)
    if len(together) > 1:
        return [_Owner(only, each, f"of the group of {owner.student}", False) for each in together]
    if asked.layout.name == "moodle" and owner.note == "not on the roster":
        owner = owner._replace(note=f"{owner.note}; where it is a team, {_GROUPS}")
    member = roster.by_id.get(owner.student)
    told = asked.layout.name == "canvas" and member is not None and not owner.by_name_only
    if told and member and member.full_name and member not in roster.find(name=only.name):
        note = f"its number is {member.full_name}'s, its name says {only.name}; "
        owner = owner._replace(note=f"{note}where that is a group, {_GROUPS}")
    return [owner]


_GROUPS = "say who is in it in groups.csv, with the columns group and student"


def _holds_a_notebook(file: File) -> bool:
    try:
        return reading.holds_a_notebook(file.read())
    except Unreadable:
        return False


def first_of(named: list[Named], roster: Roster) -> str:
    """The first of those who handed in a file that is left out; "" where nobody is known."""
    return _student(named[0], roster)[0] if named else ""


def _student(named: Named, roster: Roster) -> tuple[str, str, bool]:
    """A student's id, what is to be said of it, and whether nothing but a name led to it."""
    members = _members(named, roster)
    if len(members) == 1:
        (member,) = members
        told = named.student == member.id or any(
            theirs and theirs.casefold() == said.casefold()
            for theirs, said in ((member.lms_id, named.lms_id), (member.email, named.email))
        )
        return member.id, "withdrawn" if member.withdrawn else "", not told
    made = named.student or _slug(named.name) or _slug(named.email) or named.lms_id
    if len(members) > 1:
        who = ", ".join(member.id for member in members)
        note = f"{who} have this name: fill in lms_id in roster.csv"
        return f"{made}-{_slug(account(named))}", note, True
    if not named.student and made in roster.by_id:  # somebody is called like another's id
        made = f"{made}-{_slug(account(named)) or 'by-name'}"
    return made, "not on the roster" if roster else "", not named.student


def _members(named: Named, roster: Roster) -> list[Member]:
    """Who of the roster is meant.

    Moodle gives everybody another number in each assignment, so there a number tells people of
    one name apart and nobody else.
    """
    if not named.folder:
        return roster.find(
            ids=(named.student,), lms_id=named.lms_id, name=named.name, email=named.email
        )
    called = roster.find(name=named.name)
    return [member for member in called if member.lms_id == named.lms_id] or called


def account(named: Named) -> str:
    """What tells an LMS's users of one name apart: a number, or Gradescope's e-mail address."""
    return named.lms_id or named.email


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFC", name.strip()).casefold()
    return re.sub(r"[^\w.@-]+", "-", plain).strip("-.")


def apart(candidates: list[Candidate], known: dict[str, dict[str, str]]) -> list[Candidate]:
    """Two people of one name, with different accounts at the LMS, get different ids.

    Whom something else than the name tells, such as a number in the roster, keeps the id.
    """
    accounts: dict[tuple[str, ...], set[str]] = {}
    for place, about in known.items():
        student, _, assignment = place.partition("/")
        before = Named(
            "",
            folder=about.get("folder", ""),
            lms_id=about.get("lms_id", ""),
            email=about.get("email", ""),
        )
        if account(before):
            accounts[_scope(student, assignment, before)] = {account(before)}
    holders = {scope: next(iter(theirs)) for scope, theirs in accounts.items()}
    scopes = [
        _scope(candidate.student, candidate.assignment, candidate.named) for candidate in candidates
    ]
    for candidate, scope in zip(candidates, scopes):
        accounts.setdefault(scope, set()).add(account(candidate.named))
    return [
        replace(
            candidate,
            student=f"{candidate.student}-{_slug(account(candidate.named))}",
            note=f"two students are called {candidate.named.name}; "
            "lms_id in roster.csv tells them apart",
        )
        if len(accounts[scope]) > 1
        and candidate.by_name_only
        and account(candidate.named)
        and account(candidate.named) != holders.get(scope)
        else candidate
        for candidate, scope in zip(candidates, scopes)
    ]


def _scope(student: str, assignment: str, named: Named) -> tuple[str, ...]:
    """Where a person has one account: Moodle gives another number in each assignment."""
    kind = "number" if named.lms_id else "address"
    return student, assignment if named.folder else "", kind
