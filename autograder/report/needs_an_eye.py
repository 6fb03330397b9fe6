"""The submissions that a person should look at, and why.

A reason has words of the engine's own. What it quotes from a submission, such as the name of
a file, is shown only with names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.grade.result import (
    CRASHED,
    GRADED,
    NO_NOTEBOOK,
    OUR_FAULT,
    TIMEOUT,
    UNREADABLE,
    TestResult,
)
from autograder.report.entries import Entry
from autograder.text import plain_line

#: Cells that one reason names.
MOST_CELLS = 4

_STATUSES = {
    OUR_FAULT: "not judged, through no fault of the student: grade it again",
    UNREADABLE: "the notebook could not be read",
    NO_NOTEBOOK: "no notebook under the expected name",
}
#: Beginnings of reasons that quote nothing from a submission.
_OWN_WORDS = (
    "The file is empty",
    "The file is not a notebook: it is not JSON",
    "The file is JSON but not a notebook",
    "The notebook is not a regular file",
    "The notebook could not be opened: it is a link",
    "The submission's folder is a link",
    "No notebook was handed in",
)
#: Flags about a cell of the lesson, and how they are summed up.
_ABOUT_CELLS = {
    r"test cell (\S+) was edited; .*": "test cells were edited (the originals were used)",
    r"test cell (\S+) is missing; .*": "test cells are missing (the originals were used)",
    r"test cell (\S+) stands \d+ times; .*": "test cells stand repeatedly (used once)",
    r"answer cell (\S+) is missing; .*": "answer cells are missing (all cells were run)",
    r"answer cell (\S+) stands \d+ times; .*": "answer cells stand repeatedly (the last counts)",
}
#: Flags that may quote what a student chose, and what is said instead.
_QUOTING = {
    r"the notebook was called .*": "the notebook had another name than expected",
    r"the notebook has the old format .*": "the notebook has an old format",
    r"\d+ of \d+ cells could not be read .*": "some cells could not be read",
}
_OTHER = "something else was noticed (--names shows what)"


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


def need_an_eye(entries: Sequence[Entry], called: dict[str, str], names: bool) -> list[NeedsAnEye]:
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
        if (reasons := _reasons(entry, known, names))
    ]


def _names(test: TestResult) -> tuple[str, str]:
    return test.grade_id, test.exercise


def _urgency(entry: Entry) -> int:
    """What is to be looked at first."""
    order = (OUR_FAULT, UNREADABLE, NO_NOTEBOOK)
    return order.index(entry.status) if entry.status in order else len(order)


def _reasons(entry: Entry, known: set[str], names: bool) -> tuple[Reason, ...]:
    """Why a person should look at a submission; nothing where nobody needs to.

    Args:
        entry: the submission.
        known: names of test cells and exercises, from the lessons.
        names: whether the words of flags and reasons may be shown as they are.
    """
    reasons = []
    if entry.status != GRADED:
        reasons.append(_status_reason(entry, names))
    for outcome, words in ((CRASHED, "ended its process"), (TIMEOUT, "took too long")):
        where = [name for name, result in entry.exercises.items() if result.has(outcome)]
        if where:
            reasons.append(Reason(words, _listed(where)))
    return (*reasons, *_flag_reasons(entry.flags, known, names))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_CELLS
    return ", ".join(names[:MOST_CELLS]) + (f" and {more} more" if more > 0 else "")


def _status_reason(entry: Entry, names: bool) -> Reason:
    words = _STATUSES.get(entry.status, "has a status that this version does not know")
    lines = entry.reason.strip().splitlines()
    if names and lines:  # of a traceback, the last line says what happened
        return Reason(words, plain_line(lines[-1], 300))
    return Reason(words, next((own for own in _OWN_WORDS if entry.reason.startswith(own)), ""))


def _flag_reasons(flags: Iterable[str], known: set[str], names: bool) -> list[Reason]:
    cells: dict[str, list[str]] = {}
    others: dict[Reason, None] = {}  # a set that keeps the order
    for flag in flags:
        for pattern, words in _ABOUT_CELLS.items():
            found = re.fullmatch(pattern, flag)
            if found and found[1] in known:
                cells.setdefault(words, []).append(found[1])
                break
        else:
            said = (words for pattern, words in _QUOTING.items() if re.fullmatch(pattern, flag))
            words = next(said, "something else was noticed" if names else _OTHER)
            others[Reason(words, plain_line(flag, 300) if names else "")] = None
    return [*(Reason(words, _listed(cells[words])) for words in cells), *others]
