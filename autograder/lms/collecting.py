"""From an LMS's archive to ``submitted/``: whose is which notebook, and where it goes.

First a plan, which can be shown; then it is carried out. A submission that is there is
replaced by a newer one only, and the older is kept below ``set_aside/``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from autograder.classroom.folder import ClassFolder
from autograder.classroom.hand_ins import collected, keep_record, place, put
from autograder.classroom.late import TIMESTAMP, as_timestamp, how_late, read_timestamp
from autograder.grade.limits import MAX_NOTEBOOK_BYTES
from autograder.grade.submission import Unreadable
from autograder.lms.archives import Archive, ArchiveError, look_into
from autograder.lms.layouts import METADATA, PLAIN, Layout, LayoutError, Named, choose, too_deep
from autograder.lms.submission_matching import Asked, Candidate, apart, assigned, first_of, people
from autograder.lms.systems import layouts
from autograder.text import listed

#: What becomes of a file.
TAKE, REPLACE, UNCHANGED, OLDER, LEFT_OUT = "new", "newer", "unchanged", "older", "left out"
#: Bytes of all notebooks that are taken at a time.
MAX_TOTAL = 4 * 2**30
#: Names in one line of a terminal.
MAX_NAMES = 20


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
    #: Late by no more than the minutes that cost nothing.
    in_grace: bool = False


@dataclass
class Plan:
    """What collecting would do."""

    layouts: dict[str, Layout]
    decisions: list[Decision]
    _taken: list[tuple[Decision, Candidate]]

    def count(self, action: str) -> int:
        """How many files have this action."""
        return sum(decision.action == action for decision in self.decisions)

    @property
    def without_notebook(self) -> list[str]:
        """Students of whom every file is left out."""
        left = {decision.student for decision in self.decisions if decision.action == LEFT_OUT}
        taken = {decision.student for decision in self.decisions if decision.action != LEFT_OUT}
        return sorted(left - taken - {""})


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
        layout: ``auto`` or a name in :func:`autograder.lms.systems.layouts`.

    Raises:
        ClassError, ArchiveError, LayoutError: nothing can be collected; the message says why.
    """
    if assignment is not None:
        folder.bundle(assignment)
    notebooks = {name: folder.bundle(name).notebook_name for name in folder.assignments}
    made, known = Plan({}, [], []), layouts()
    if layout not in known and layout != "auto":
        raise LayoutError(f"--layout {layout} is unknown; there are auto, {', '.join(known)}")
    most = int(max(folder.limits(name).size for name in folder.assignments) * 2**20)
    candidates: list[Candidate] = []
    for path in archives:
        archive = look_into(path, most, folder.time_zone)
        chosen = (
            choose(
                [file.path for file in archive.files],
                folder.collect_pattern,
                folder.assignments,
                known,
            )
            if layout == "auto"
            else known[layout]
        )
        made.layouts[archive.name] = chosen
        made.decisions += [Decision(archive.name, *each) for each in _refused(archive)]
        asked = Asked(
            folder,
            chosen,
            people(archive, chosen, folder.assignments),
            notebooks,
            assignment,
        )
        candidates += _of_archive(archive, asked, made)
    _decide(folder, apart(candidates, collected(folder)), notebooks, made)
    made.decisions.sort(
        key=lambda decision: (decision.action == LEFT_OUT, decision.student, decision.assignment)
    )
    return made


def _of_archive(archive: Archive, asked: Asked, made: Plan) -> list[Candidate]:
    """The notebooks of an archive and whose they are; what is left out goes into the plan."""
    candidates: list[Candidate] = []
    deep = too_deep([file.path for file in archive.files], asked.layout, asked.folder.assignments)
    for file in archive.files:
        if file.path in deep:
            inside = "it lies too deep, inside somebody's folder: whose is it?"
            made.decisions.append(Decision(archive.name, file.path, LEFT_OUT, note=inside))
            continue
        theirs = assigned(file, asked)
        if not isinstance(theirs, str):
            candidates += theirs
        elif file.path.rpartition("/")[2] != METADATA:
            whose = _left_by(asked.read(file.path), asked)
            made.decisions.append(
                Decision(archive.name, file.path, LEFT_OUT, student=whose, note=theirs)
            )
    return candidates


def _left_by(named: list[Named] | str, asked: Asked) -> str:
    """Whose a file is that is left out, as far as its path says it."""
    if isinstance(named, str):
        return ""
    plain = asked.layout.pattern is PLAIN
    if plain and named and named[0].assignment not in asked.folder.assignments:
        return ""
    return first_of(named, asked.folder.roster)


def _refused(archive: Archive) -> list[tuple[str, str, str, str, str, str, str, str]]:
    return [(path, LEFT_OUT, "", "", "", "", "", why) for path, why in archive.left_out]


def _decide(
    folder: ClassFolder, candidates: list[Candidate], notebooks: dict[str, str], made: Plan
) -> None:
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault((candidate.student, candidate.assignment), []).append(candidate)
    total = 0
    for (_, assignment), group in sorted(groups.items()):
        right = [
            candidate for candidate in group if candidate.name == notebooks[assignment]
        ] or group
        best = max(reversed(right), key=lambda candidate: candidate.rank)
        total += min(best.file.size, MAX_NOTEBOOK_BYTES)  # what is more is outputs, or refused
        if total > MAX_TOTAL:
            raise ArchiveError(
                f"the notebooks come to more than {MAX_TOTAL / 2**30:.0f} GB, which no class "
                "hands in; collect one assignment at a time, or look at what is so large in them. "
                "Nothing was taken"
            )
        for candidate in group:
            if candidate is best:
                decision = _against_what_is_there(folder, candidate)
                made._taken.append((decision, candidate))
            else:
                decision = replace(
                    _decision(folder, candidate),
                    action=OLDER,
                    note=f"{best.file.path} is the newer one, or has the right name",
                )
            made.decisions.append(decision)


def _decision(folder: ClassFolder, candidate: Candidate) -> Decision:
    due = folder.due_for(candidate.student, candidate.assignment)
    late = "late, says the LMS" if candidate.named.late else ""
    in_grace = False
    if due is not None and candidate.came is not None:
        minutes = (candidate.came - due).total_seconds() / 60
        in_grace = 0 < minutes <= folder.late_policy.grace_minutes
        late = how_late(minutes) + (", which costs nothing" if in_grace else "")
        late += ", but late, says the LMS" if candidate.named.late and minutes <= 0 else ""
    return Decision(
        archive=candidate.file.archive,
        path=candidate.file.path,
        action=TAKE,
        student=candidate.student,
        assignment=candidate.assignment,
        to=f"submitted/{candidate.student}/{candidate.assignment}/{candidate.name}.ipynb",
        late=late,
        came=as_timestamp(candidate.came) if candidate.came else "",
        note=candidate.note,
        in_grace=in_grace,
    )


def _against_what_is_there(folder: ClassFolder, candidate: Candidate) -> Decision:
    decision = _decision(folder, candidate)
    there = place(folder, candidate.student, candidate.assignment)
    try:
        content = candidate.file.read()
    except Unreadable as problem:
        return replace(decision, action=LEFT_OUT, to="", note=str(problem))
    for path in (there.parent, there):
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            return replace(decision, action=LEFT_OUT, note=f"{path} is no folder; move it away")
    present = [path for path in there.iterdir() if path.name != TIMESTAMP] if there.exists() else []
    if not present:
        return decision
    if any(path.name == f"{candidate.name}.ipynb" and _same(path, content) for path in present):
        return replace(decision, action=UNCHANGED)
    before = read_timestamp(there)
    if before is None or candidate.came is None:
        return replace(
            decision,
            action=OLDER,
            note=f"it is not known which is newer; to take this one, move {there} away",
        )
    if candidate.came.replace(microsecond=0) <= before:
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
    for decision, candidate in made._taken:
        if decision.action not in (TAKE, REPLACE, UNCHANGED):
            continue
        there = place(folder, candidate.student, candidate.assignment)
        if decision.action != UNCHANGED:
            top = folder.set_aside / candidate.student / candidate.assignment
            kept = put(there, f"{candidate.name}.ipynb", candidate.file.read(), candidate.came, top)
            if kept is not None:
                aside.append(str(kept.relative_to(folder.root)))
        known[f"{candidate.student}/{candidate.assignment}"] = {
            "archive": candidate.file.archive,
            "path": candidate.file.path,
            # What an LMS calls a group's work is nobody's own number there.
            "folder": "" if candidate.group else candidate.named.folder,
            "lms_id": "" if candidate.group else candidate.named.lms_id,
            "group": candidate.group,
            "email": candidate.named.email,
            "name": candidate.named.name,
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
    brought = [
        decision for decision in made.decisions if decision.student and decision.action != LEFT_OUT
    ]
    late = [
        decision
        for decision in brought
        if decision.late and decision.late != how_late(0) and not decision.in_grace
    ]
    roster = folder.roster.by_id
    by_kind = {
        "late": [decision.student for decision in late],
        "not on the roster": [
            decision.student for decision in brought if roster and decision.student not in roster
        ],
        "withdrawn": [
            decision.student
            for decision in brought
            if decision.student in roster and roster[decision.student].withdrawn
        ],
    }
    for name in sorted({decision.assignment for decision in brought}):
        have = {decision.student for decision in brought if decision.assignment == name}
        by_kind[f"handed in nothing for {name}"] = [
            member.id
            for member in folder.roster.members
            if not member.withdrawn
            and member.id not in have
            and not place(folder, member.id, name).exists()
        ]
    by_kind["handed in files, and none of them a notebook"] = made.without_notebook
    most = len(made.decisions) if details else MAX_NAMES
    lists = {kind: sorted(set(who)) for kind, who in by_kind.items() if who}
    return [f"{kind}: {len(who)}: {listed(who, most)}" for kind, who in lists.items()]


def as_tree(made: Plan) -> dict[str, Any]:
    """A plan as ``--json`` prints it."""
    return {
        "layouts": {
            name: {"layout": layout.name, "pattern": layout.pattern.pattern}
            for name, layout in made.layouts.items()
        },
        "files": [asdict(decision) for decision in made.decisions],
    }
