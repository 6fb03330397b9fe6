"""A student's place below ``submitted/``, and the record of where its content came from.

A submission that is there is never lost: another one takes its place at once, and the former
is kept below ``set_aside/``.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from autograder.classroom.folder import ClassFolder
from autograder.classroom.late import read_timestamp, write_timestamp
from autograder.course.bundle import Bundle
from autograder.files import untaken, write_whole
from autograder.grade.task import Task, make_task

#: In the class folder: for each submission, how the LMS named it.
COLLECTED = "collected.json"


def place(folder: ClassFolder, student: str, assignment: str) -> Path:
    """The folder of one submission."""
    return folder.root / "submitted" / student / assignment


def put(there: Path, file: str, content: bytes, came: datetime | None, top: Path) -> Path | None:
    """Make a notebook the submission at ``there``.

    Args:
        there: the folder of the submission, see :func:`place`.
        file: the notebook's file name.
        content: what it holds.
        came: when it was handed in, if known.
        top: where a former submission is kept, each in a folder called as its time.

    Returns:
        The folder that the former submission is in now, if there was one.
    """
    fresh = there.with_name(f".{there.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    (fresh / file).write_bytes(content)
    if came is not None:
        write_timestamp(fresh, came)
    kept = None
    if there.exists():
        before = read_timestamp(there) or datetime.now(UTC)
        kept = untaken(top / before.strftime("%Y-%m-%d-%H%M%S"))
        kept.parent.mkdir(parents=True, exist_ok=True)
        os.replace(there, kept)
    os.replace(fresh, there)
    return kept


def collected(folder: ClassFolder) -> dict[str, dict[str, str]]:
    """Where submissions came from, by ``student/assignment``; empty where nothing is known."""
    try:
        tree = json.loads((folder.root / COLLECTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}


def keep_record(folder: ClassFolder, known: dict[str, dict[str, str]]) -> None:
    """Write what :func:`collected` reads."""
    text = json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True)
    write_whole(folder.root / COLLECTED, text + "\n")


def task_in_class(folder: ClassFolder, student: str, bundle: Bundle, sandbox: str) -> Task:
    """The task of grading what a student of a class handed in, with the class's settings."""
    where = folder.root / "submitted" / student / bundle.assignment
    return make_task(where, bundle, folder.seed, folder.limits(bundle.assignment), sandbox)
