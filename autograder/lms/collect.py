"""From an LMS's archive to ``submitted/``: whose is which notebook, and where it goes.

First a plan, which can be shown; then it is carried out. A submission that is there is
replaced by a newer one only, and the older is kept below ``set_aside/``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from autograder.classroom.folder import ClassFolder
from autograder.classroom.hand_ins import collected, keep_record, place, put
from autograder.classroom.late import TIMESTAMP, as_timestamp, how_late, read_timestamp
from autograder.grade.submission import Unreadable
from autograder.lms.archives import Archive, look_into
from autograder.lms.layouts import LAYOUTS, METADATA, Layout, choose, too_deep
from autograder.lms.whose import Candidate, apart, assigned, people
from autograder.text import listed

#: What becomes of a file.
TAKE, REPLACE, UNCHANGED, OLDER, LEFT_OUT = "new", "newer", "unchanged", "older", "left out"
#: Names in one line of a terminal.
MOST_NAMES = 20


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


@dataclass
class Plan:
    """What collecting would do."""

    layouts: dict[str, Layout]
    decisions: list[Decision]
    _taken: list[tuple[Decision, Candidate]]

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
        layout: ``auto`` or a name in :data:`autograder.lms.layouts.LAYOUTS`.

    Raises:
        ClassError, ArchiveError, LayoutError: nothing can be collected; the message says why.
    """
    if assignment is not None:
        folder.bundle(assignment)
    notebooks = {name: folder.bundle(name).notebook_name for name in folder.assignments}
    made = Plan({}, [], [])
    candidates: list[Candidate] = []
    for path in archives:
        archive = look_into(path)
        chosen = (
            choose([one.path for one in archive.files], folder.collect_pattern, folder.assignments)
            if layout == "auto"
            else LAYOUTS[layout]
        )
        made.layouts[archive.name] = chosen
        made.decisions += [Decision(archive.name, *each) for each in _refused(archive)]
        handed_in_by = people(archive, chosen, folder.assignments)
        deep = too_deep([one.path for one in archive.files], chosen)
        for file in archive.files:
            if file.path in deep:
                inside = "it lies deeper than the others, inside somebody's folder: whose is it?"
                made.decisions.append(Decision(archive.name, file.path, LEFT_OUT, note=inside))
                continue
            found = assigned(
                file,
                partial(chosen.read, people=handed_in_by),
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
    _decide(folder, apart(candidates, collected(folder)), notebooks, made)
    made.decisions.sort(key=lambda one: (one.action == LEFT_OUT, one.student, one.assignment))
    return made


def _refused(archive: Archive) -> list[tuple[str, str, str, str, str, str, str, str]]:
    return [(path, LEFT_OUT, "", "", "", "", "", why) for path, why in archive.left_out]


def _decide(
    folder: ClassFolder, candidates: list[Candidate], notebooks: dict[str, str], made: Plan
) -> None:
    groups: dict[tuple[str, str], list[Candidate]] = {}
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


def _decision(folder: ClassFolder, one: Candidate) -> Decision:
    due = folder.due_for(one.student, one.assignment)
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


def _against_what_is_there(folder: ClassFolder, one: Candidate) -> Decision:
    decision = _decision(folder, one)
    there = place(folder, one.student, one.assignment)
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
        there = place(folder, one.student, one.assignment)
        if decision.action != UNCHANGED:
            top = folder.set_aside / one.student / one.assignment
            kept = put(there, f"{one.name}.ipynb", one.file.read(), one.came, top)
            if kept is not None:
                aside.append(str(kept.relative_to(folder.root)))
        known[f"{one.student}/{one.assignment}"] = {
            "archive": one.file.archive,
            "path": one.file.path,
            "folder": one.named.folder,
            "lms_id": one.named.lms_id,
            "name": one.named.name,
        }
    if made._taken:
        keep_record(folder, known)
    return aside


def exceptions(folder: ClassFolder, made: Plan, *, details: bool = False) -> list[str]:
    """Who is late, unknown, withdrawn or missing among what a plan brings, by name.

    Args:
        folder: the class.
        made: the plan.
        details: name everybody, however many.
    """
    brought = [one for one in made.decisions if one.student and one.action != LEFT_OUT]
    late = [one for one in brought if one.late and one.late != how_late(0)]
    roster = folder.roster.by_id
    found = {
        "late": [one.student for one in late],
        "not on the roster": [
            one.student for one in brought if roster and one.student not in roster
        ],
        "withdrawn": [
            one.student
            for one in brought
            if one.student in roster and roster[one.student].withdrawn
        ],
    }
    for name in sorted({one.assignment for one in brought}):
        have = {one.student for one in brought if one.assignment == name}
        found[f"handed in nothing for {name}"] = [
            one.id
            for one in folder.roster.members
            if not one.withdrawn and one.id not in have and not place(folder, one.id, name).exists()
        ]
    most = len(made.decisions) if details else MOST_NAMES
    lists = {kind: sorted(set(who)) for kind, who in found.items() if who}
    return [f"{kind}: {len(who)}: {listed(who, most)}" for kind, who in lists.items()]


def as_tree(made: Plan) -> dict[str, Any]:
    """A plan as ``--json`` prints it."""
    return {
        "layouts": {
            name: {"layout": one.name, "pattern": one.pattern.pattern}
            for name, one in made.layouts.items()
        },
        "files": [asdict(one) for one in made.decisions],
    }
