"""``marking.jsonl``: who gave which points for which written answer, one line each.

The gradebook has the points that count. This keeps that nothing given is lost, and what a second
marker said of the same answers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.classroom.folder import ClassFolder

MARKING_LOG = "marking.jsonl"


@dataclass(frozen=True)
class Given:
    """Points that somebody gave.

    ``second``: they count nowhere and are only compared with ``first``, the points that the
    gradebook had then.
    """

    when: str
    marker: str
    assignment: str
    question: str
    student: str
    points: float
    comment: str = ""
    second: bool = False
    first: float | None = None


@dataclass(frozen=True)
class Agreement:
    """How two markers agree about one question: points of the same answers, side by side."""

    assignment: str
    question: str
    answers: int
    equal: int
    mean_difference: float
    largest_difference: float


def note(folder: ClassFolder, given: Given) -> None:
    """Add a line. Several markers may do so at once: each line is one write."""
    line = json.dumps(asdict(given), ensure_ascii=False) + "\n"
    descriptor = os.open(_path(folder), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def given_so_far(folder: ClassFolder) -> list[Given]:
    """All that was given, the earliest first; a line that is damaged is passed over."""
    try:
        # Not splitlines: a comment may hold line ends of Unicode, copied out of an answer.
        lines = _path(folder).read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    all_given = []
    for line in lines:
        try:
            all_given.append(Given(**json.loads(line)))
        except (ValueError, TypeError):  # half a line: a disk was full, or somebody edited it
            continue
    return all_given


def agreements(given: Iterable[Given]) -> list[Agreement]:
    """How often second marks equal the first ones, by question; the last second mark counts."""
    last = {(mark.assignment, mark.question, mark.student): mark for mark in given if mark.second}
    differences: dict[tuple[str, str], list[float]] = {}
    for (assignment, question, _), mark in last.items():
        if mark.first is not None:
            differences.setdefault((assignment, question), []).append(abs(mark.points - mark.first))
    return [
        Agreement(
            assignment,
            question,
            len(gaps),
            sum(difference < 1e-9 for difference in gaps),
            sum(gaps) / len(gaps),
            max(gaps),
        )
        for (assignment, question), gaps in sorted(differences.items())
    ]


def _path(folder: ClassFolder) -> Path:
    return folder.root / MARKING_LOG
