"""From an LMS's archive to ``submitted/``: whose is which notebook, and where it goes.

First a plan, which can be shown; then it is carried out. A submission that is there is
replaced by a newer one only, and the older is kept below ``set_aside/``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from autograder.archives import Archive, File, look_into
from autograder.class_folder import ClassError, ClassFolder
from autograder.late import TIMESTAMP, as_timestamp, how_late, read_timestamp, write_timestamp
from autograder.layouts import LAYOUTS, METADATA, Layout, Named, choose, stem, submitters
from autograder.roster import fit_for_a_folder
from autograder.submission import Unreadable
from autograder.whole_file import write_whole

#: What becomes of a file.
TAKE, REPLACE, UNCHANGED, OLDER, LEFT_OUT = "new", "newer", "unchanged", "older", "left out"

COLLECTED = "collected.json"


@dataclass(frozen=True)
class Decision:
    """What becomes of one file, and why."""

    archive: str
    path: str
    action: str
    student: str = ""
    assignment: str = ""
    to: str = ""
    late: str = ""
    came: str = ""
    note: str = ""


@dataclass(frozen=True)
class _Candidate:
    file: File
    named: Named
    student: str
    assignment: str
    name: str
    number: int
    note: str

    @property
    def came(self) -> datetime | None:
        return self.named.came or self.file.modified

    @property
    def rank(self) -> tuple[datetime, int]:
        return self.came or datetime.min.replace(tzinfo=UTC), self.number


@dataclass
class Plan:
    """What collecting would do."""

    layouts: dict[str, Layout]
    decisions: list[Decision]
    _taken: list[tuple[Decision, _Candidate]]

    def count(self, action: str) -> int:
        """How many files have this action."""
        return sum(one.action == action for one in self.decisions)


def plan(
    folder: ClassFolder,
    archives: Iterable[Path],
    *,
    assignment: str | None = None,
    layout: str = "auto",
) -> Plan:
    """Say what would be collected; nothing is written.

    Args:
        folder: the class.
        archives: zips and folders.
        assignment: only this one, which then also takes notebooks of any other name.
        layout: ``auto`` or a name in :data:`autograder.layouts.LAYOUTS`.

    Raises:
        ClassError, ArchiveError, LayoutError: nothing can be collected; the message says why.
    """
    if assignment is not None:
        folder.bundle(assignment)
    notebooks = {name: folder.bundle(name).notebook_name for name in folder.assignments}
    made = Plan({}, [], [])
    candidates: list[_Candidate] = []
    for path in archives:
        archive = look_into(path)
        chosen = (
            choose([one.path for one in archive.files], folder.collect_pattern, folder.assignments)
            if layout == "auto"
            else LAYOUTS[layout]
        )
        made.layouts[archive.name] = chosen
        made.decisions += [Decision(archive.name, *each) for each in _refused(archive)]
        people = _people(archive, chosen)
        for file in archive.files:
            found = _assigned(
                file,
                partial(chosen.read, people=people),
                plain=chosen is LAYOUTS["plain"],
                folder=folder,
                notebooks=notebooks,
                only=assignment,
            )
            if isinstance(found, str):
                if file.path.rpartition("/")[2] != METADATA:
                    made.decisions.append(Decision(archive.name, file.path, LEFT_OUT, note=found))
            else:
                candidates += found
    _decide(folder, _apart(candidates, collected(folder)), notebooks, made)
    made.decisions.sort(key=lambda one: (one.action == LEFT_OUT, one.student, one.assignment))
    return made


def _refused(archive: Archive) -> list[tuple[str, str, str, str, str, str, str, str]]:
    return [(path, LEFT_OUT, "", "", "", "", "", why) for path, why in archive.left_out]


def _people(archive: Archive, layout: Layout) -> dict[str, list[Named]]:
    if layout.name != "gradescope":
        return {}
    for file in archive.files:
        if file.path.rpartition("/")[2] == METADATA:
            try:
                return submitters(file.read())
            except Unreadable as problem:
                raise ClassError(f"{archive.name}: {METADATA}: {problem}") from None
    raise ClassError(
        f"{archive.name} has no {METADATA}, which says whose submissions these are; export the "
        "submissions from Gradescope again"
    )


def _assigned(
    file: File,
    read: Callable[[str], list[Named]],
    *,
    plain: bool,
    folder: ClassFolder,
    notebooks: dict[str, str],
    only: str | None,
) -> list[_Candidate] | str:
    """Whose a file is and of which assignment, or why it is left out."""
    ending = file.path.rpartition(".")[2].casefold()
    if ending in ("zip", "gz", "tar", "7z", "rar"):
        return "an archive in the archive: unpack it and collect the folder"
    if ending != "ipynb":
        return "not a notebook"
    named = read(file.path)
    if not named:
        return "the path does not fit the layout, or the LMS does not say whose it is"
    name, number = stem(named[0].file)
    name = name.encode()[:150].decode(errors="ignore").strip(". ") or "notebook"
    belongs = next((a for a, n in notebooks.items() if n.casefold() == name.casefold()), "")
    inside = next((part for part in file.path.split("/")[:-1] if part in notebooks), "")
    assignment = belongs or inside or only or ""
    if not assignment:
        return f"no assignment has a notebook called {name}; say which it is with --assignment"
    if only is not None and assignment != only:
        return f"it belongs to {assignment}"
    if plain and named[0].assignment != assignment:
        return f"it is a notebook of {assignment} and lies in {named[0].assignment}"
    found = []
    for one in named:
        student, note = _student(one, folder)
        if not fit_for_a_folder(student):
            return f"{student!r} cannot be a student's id: it could not name a folder"
        found.append(
            _Candidate(
                file,
                one,
                student,
                assignment,
                notebooks[assignment] if belongs else name,
                number,
                note,
            )
        )
    return found


def _student(named: Named, folder: ClassFolder) -> tuple[str, str]:
    """A student's id, and what is to be said of it."""
    roster = folder.roster
    found = roster.find(
        ids=(named.student,), lms_id=named.lms_id, name=named.name, email=named.email
    )
    if len(found) == 1:
        return found[0].id, "withdrawn" if found[0].withdrawn else ""
    made = named.student or _slug(named.name) or _slug(named.email) or named.lms_id
    if len(found) > 1:
        who = ", ".join(one.id for one in found)
        return f"{made}-{named.lms_id}", f"{who} have this name: fill in lms_id in roster.csv"
    return made, "not on the roster" if roster else ""


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFC", name.strip()).casefold()
    return re.sub(r"[^\w.@-]+", "-", plain).strip("-.")


def _apart(candidates: list[_Candidate], known: dict[str, dict[str, str]]) -> list[_Candidate]:
    """Two people of one name, with different numbers of the LMS, get different ids."""
    numbers: dict[tuple[str, str], set[str]] = {}
    for place, about in known.items():
        student, _, assignment = place.partition("/")
        if about.get("lms_id"):
            numbers[_scope(student, assignment, about.get("folder", ""))] = {about["lms_id"]}
    holders = {scope: next(iter(found)) for scope, found in numbers.items()}
    scopes = [_scope(one.student, one.assignment, one.named.folder) for one in candidates]
    for one, scope in zip(candidates, scopes):
        numbers.setdefault(scope, set()).add(one.named.lms_id)
    return [
        replace(
            one,
            student=f"{one.student}-{_slug(one.named.lms_id)}",
            note=f"two students are called {one.named.name}; lms_id in roster.csv tells them apart",
        )
        if len(numbers[scope]) > 1
        and not one.named.student
        and one.named.lms_id != holders.get(scope)
        else one
        for one, scope in zip(candidates, scopes)
    ]


def _scope(student: str, assignment: str, folder: str) -> tuple[str, str]:
    """Where a person has one number: Moodle gives another one in each assignment."""
    return student, assignment if folder else ""


def _decide(
    folder: ClassFolder, candidates: list[_Candidate], notebooks: dict[str, str], made: Plan
) -> None:
    groups: dict[tuple[str, str], list[_Candidate]] = {}
    for one in candidates:
        groups.setdefault((one.student, one.assignment), []).append(one)
    for (_, assignment), group in sorted(groups.items()):
        right = [one for one in group if one.name == notebooks[assignment]] or group
        best = max(reversed(right), key=lambda one: one.rank)
        for one in group:
            if one is best:
                decision = _against_what_is_there(folder, one)
                made._taken.append((decision, one))
            else:
                decision = replace(
                    _decision(folder, one),
                    action=OLDER,
                    note=f"{best.file.path} is the newer one, or has the right name",
                )
            made.decisions.append(decision)


def _decision(folder: ClassFolder, one: _Candidate) -> Decision:
    due = folder.due.get(one.assignment)
    late = "late, says the LMS" if one.named.late else ""
    if due is not None and one.came is not None:
        minutes = (one.came - due).total_seconds() / 60
        late = how_late(minutes) + (
            ", but late, says the LMS" if one.named.late and minutes <= 0 else ""
        )
    return Decision(
        archive=one.file.archive,
        path=one.file.path,
        action=TAKE,
        student=one.student,
        assignment=one.assignment,
        to=f"submitted/{one.student}/{one.assignment}/{one.name}.ipynb",
        late=late,
        came=as_timestamp(one.came) if one.came else "",
        note=one.note,
    )


def _against_what_is_there(folder: ClassFolder, one: _Candidate) -> Decision:
    decision = _decision(folder, one)
    there = folder.root / "submitted" / one.student / one.assignment
    try:
        content = one.file.read()
    except Unreadable as problem:
        return replace(decision, action=LEFT_OUT, to="", note=str(problem))
    for path in (there.parent, there):
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            return replace(decision, action=LEFT_OUT, note=f"{path} is no folder; move it away")
    present = [path for path in there.iterdir() if path.name != TIMESTAMP] if there.exists() else []
    if not present:
        return decision
    if any(path.name == f"{one.name}.ipynb" and _same(path, content) for path in present):
        return replace(decision, action=UNCHANGED)
    before = read_timestamp(there)
    if before is None or one.came is None:
        return replace(
            decision,
            action=OLDER,
            note=f"it is not known which is newer; to take this one, move {there} away",
        )
    if one.came.replace(microsecond=0) <= before:
        return replace(decision, action=OLDER, note="what is in submitted/ is not older")
    return replace(decision, action=REPLACE)


def _same(path: Path, content: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def carry_out(folder: ClassFolder, made: Plan) -> list[str]:
    """Do what a plan says.

    Returns:
        The folders that older submissions were kept in.
    """
    aside: list[str] = []
    known = collected(folder)
    for decision, one in made._taken:
        if decision.action not in (TAKE, REPLACE, UNCHANGED):
            continue
        there = folder.root / "submitted" / one.student / one.assignment
        if decision.action != UNCHANGED:
            fresh = there.with_name(f".{there.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            (fresh / f"{one.name}.ipynb").write_bytes(one.file.read())
            if one.came is not None:
                write_timestamp(fresh, one.came)
            if there.exists():
                kept = _place_aside(folder, one)
                kept.parent.mkdir(parents=True, exist_ok=True)
                os.replace(there, kept)
                aside.append(str(kept.relative_to(folder.root)))
            os.replace(fresh, there)
        known[f"{one.student}/{one.assignment}"] = {
            "archive": one.file.archive,
            "path": one.file.path,
            "folder": one.named.folder,
            "lms_id": one.named.lms_id,
            "name": one.named.name,
        }
    if made._taken:
        text = json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True)
        write_whole(folder.root / COLLECTED, text + "\n")
    return aside


def _place_aside(folder: ClassFolder, one: _Candidate) -> Path:
    there = folder.root / "submitted" / one.student / one.assignment
    before = read_timestamp(there) or datetime.now(UTC)
    top = folder.root / "set_aside" / one.student / one.assignment
    name = before.strftime("%Y-%m-%d-%H%M%S")
    number = 1
    while (path := top / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return path


def collected(folder: ClassFolder) -> dict[str, dict[str, str]]:
    """Where submissions came from, by ``student/assignment``; empty where nothing is known."""
    try:
        tree = json.loads((folder.root / COLLECTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}


def as_tree(made: Plan) -> dict[str, Any]:
    """A plan as ``--json`` prints it."""
    return {
        "layouts": {
            name: {"layout": one.name, "pattern": one.pattern.pattern}
            for name, one in made.layouts.items()
        },
        "files": [asdict(one) for one in made.decisions],
    }
