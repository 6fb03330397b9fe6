"""The submissions that a person should look at, and why.

A reason has words of the engine's own. What it quotes from a submission, such as the name of
a file, is shown only with names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.classroom.grades_file import RecordedResult
from autograder.grade import flags as kinds
from autograder.grade.flags import Flag
from autograder.grade.reasons import without_quotes
from autograder.grade.result import (
    CRASHED,
    GRADED,
    NO_NOTEBOOK,
    OUR_FAULT,
    TIMEOUT,
    UNREADABLE,
    TestResult,
)
from autograder.text import plain_line
from lesson_kit.words import N_, tr

#: Cells that one reason names.
MAX_CELLS = 4

_STATUSES = {
    OUR_FAULT: N_("not judged, through no fault of the student: grade it again"),
    UNREADABLE: N_("the notebook could not be read"),
    NO_NOTEBOOK: N_("no notebook under the expected name"),
}
#: Flags about a cell of the lesson, and how they are summed up.
_ABOUT_CELLS = {
    kinds.TEST_EDITED.name: N_("test cells were edited (the originals were used)"),
    kinds.TEST_MISSING.name: N_("test cells are missing (the originals were used)"),
    kinds.TEST_COPIED.name: N_("test cells stand repeatedly (used once)"),
    kinds.ANSWER_MISSING.name: N_("answer cells are missing (all cells were run)"),
    kinds.ANSWER_COPIED.name: N_("answer cells stand repeatedly (the last counts)"),
    kinds.ANSWER_AS_TEXT.name: N_("answer cells were no code (they were run as code)"),
    kinds.SOLVED.name: N_("answer cells hold the marks of the course's own solved notebook"),
    kinds.NOT_NAMED.name: N_(
        "what fails could not be looked up (no point lost; tell who maintains the grader)"
    ),
}
#: Flags that may quote what a student chose, and what is said instead.
_QUOTING = {
    kinds.RENAMED.name: N_("the notebook had another name than expected"),
    kinds.LEFT_OUT.name: N_("a second notebook was handed in and not graded"),
    kinds.OLD_FORMAT.name: N_("the notebook has an old format"),
    kinds.CELLS_UNREAD.name: N_("some cells could not be read"),
    kinds.NAMES_FOUND.name: N_("cells had lost their names (they were found by what they hold)"),
    kinds.CHANGED_FOR_ALL.name: N_("a cell changed a setting or a name for all code after it"),
    kinds.OWN_TEXT.name: N_("text in cells of the student's own is read by nobody"),
    kinds.WRITTEN_BESIDE.name: N_("a written answer went on in cells beside its own"),
    kinds.WRITTEN_MISSING.name: N_("a written answer has no cell, so nobody will read one"),
    kinds.WRITTEN_COPIED.name: N_("a written answer stands repeatedly (the last counts)"),
    kinds.WRITTEN_FOUND.name: N_("a written answer's cell had lost its name (it was found)"),
    kinds.PICTURE_UNREAD.name: N_("a picture in a written answer is shown to nobody"),
}
_OTHER = N_("something else was noticed (--names shows what)")


@dataclass(frozen=True)
class Reason:
    """Why a submission needs an eye: words that are the same for all such, and details."""

    words: str
    details: str = ""


@dataclass(frozen=True)
class NeedsAnEye:
    """A submission that a person should look at, and why."""

    submission: str
    assignment: str
    reasons: tuple[Reason, ...]


def need_an_eye(
    entries: Sequence[RecordedResult], called: dict[str, str], names: bool
) -> list[NeedsAnEye]:
    """Those submissions, in the order in which they are to be looked at.

    Args:
        entries: all submissions.
        called: what each student is called in the report.
        names: whether the words of flags and reasons may be shown as they are.
    """
    known = {name for entry in entries for test in entry.tests for name in _names(test)}
    return [
        NeedsAnEye(called[entry.student], entry.assignment, reasons)
        for entry in sorted(entries, key=_urgency)
        if entry.handed_in and (reasons := _reasons(entry, known, names))
    ]


def _names(test: TestResult) -> tuple[str, str]:
    return test.grade_id, test.exercise


def _urgency(entry: RecordedResult) -> int:
    """What is to be looked at first."""
    order = (OUR_FAULT, UNREADABLE, NO_NOTEBOOK)
    return order.index(entry.status) if entry.status in order else len(order)


def _reasons(entry: RecordedResult, known: set[str], names: bool) -> tuple[Reason, ...]:
    """Why a person should look at a submission; nothing where nobody needs to.

    Args:
        entry: the submission.
        known: names of test cells and exercises, from the lessons.
        names: whether the words of flags and reasons may be shown as they are.
    """
    reasons = []
    if entry.status != GRADED:
        reasons.append(_status_reason(entry, names))
    for outcome, words in ((CRASHED, N_("ended its process")), (TIMEOUT, N_("took too long"))):
        where = [name for name, result in entry.exercises.items() if result.has(outcome)]
        if where:
            reasons.append(Reason(words, _listed(where)))
    return (*reasons, *_flag_reasons(entry.flags, known, names))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_CELLS
    return ", ".join(names[:MAX_CELLS]) + (
        tr(" and {number} more", number=more) if more > 0 else ""
    )


def _status_reason(entry: RecordedResult, names: bool) -> Reason:
    words = _STATUSES.get(entry.status, N_("has a status that this version does not know"))
    lines = entry.reason.strip().splitlines()
    if names and lines:  # of a traceback, the last line says what happened
        return Reason(words, plain_line(lines[-1], 300))
    return Reason(words, without_quotes(entry.reason))


def _flag_reasons(flags: Iterable[Flag], known: set[str], names: bool) -> list[Reason]:
    cells: dict[str, list[str]] = {}
    others: dict[Reason, None] = {}  # a set that keeps the order
    for flag in flags:
        if flag.kind == kinds.EARLIER_RELEASE.name:
            continue  # the class mended the lesson: nobody did anything odd
        if flag.kind in _ABOUT_CELLS and flag.cell in known:
            cells.setdefault(_ABOUT_CELLS[flag.kind], []).append(flag.cell)
        else:
            unknown = N_("something else was noticed") if names else _OTHER
            words = _QUOTING.get(flag.kind, unknown)
            others[Reason(words, plain_line(flag.words, 300) if names else "")] = None
    return [*(Reason(words, _listed(cells[words])) for words in cells), *others]
