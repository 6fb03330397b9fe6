"""Grading again after a test was mended, and who changes by it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.build import generate_release, nbgrader_config, write_source
from autograder.bundle import Bundle
from autograder.class_folder import ClassError, ClassFolder
from autograder.course import Course, grade_id
from autograder.plain_text import plain_line

Entries = dict[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True)
class Change:
    """An exercise of a submission whose points are not what they were."""

    student: str
    assignment: str
    exercise: str
    before: float
    after: float


def changes(before: Entries, after: Entries) -> list[Change]:
    """Whose published points changed, exercise by exercise.

    Args:
        before: the verdicts of ``grades.json`` as they were; who has none there is new.
        after: as they are.
    """
    found: list[Change] = []
    for key in sorted(set(before) & set(after)):
        was, now = _by_exercise(before[key]), _by_exercise(after[key])
        for exercise in dict.fromkeys([*was, *now]):
            points = was.get(exercise, 0.0), now.get(exercise, 0.0)
            if abs(points[0] - points[1]) > 1e-9:
                found.append(Change(*key, exercise, *points))
    return found


def _by_exercise(entry: dict[str, Any]) -> dict[str, float]:
    points: dict[str, float] = {}
    for test in entry["tests"]:
        points[test["exercise"]] = points.get(test["exercise"], 0.0) + test["points"]
    return points


def table(found: Iterable[Change]) -> str:
    """Changes for a terminal."""
    rows = [("student", "assignment", "exercise", "before", "after")]
    rows += [
        (plain_line(one.student), one.assignment, one.exercise, f"{one.before:g}", f"{one.after:g}")
        for one in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column < 3 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    )


def refresh(folder: ClassFolder, course: Course, assignment: str) -> Path | None:
    """Take a lesson of the course into a class's ``source/`` and ``release/``.

    What was there is kept below ``set_aside/``. Exercises, tests and their points may have
    other contents; their names stay, since points in the gradebook hang on them.

    Returns:
        The folder that the former source was kept in; None when nothing had changed.

    Raises:
        ClassError: the class has no such assignment, or cells came or went.
    """
    old = folder.bundle(assignment)
    lesson = course.lesson(assignment)
    source = folder.root / "source" / assignment
    fresh = source.with_name(f".{assignment}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        write_source(lesson, fresh)
        new = Bundle.load(fresh)
        if _contents(fresh) == _contents(source):
            return None
        _refuse_other_cells(old, new, assignment)
        kept = _aside(folder, assignment)
        kept.mkdir(parents=True)
        os.replace(source, kept / "source")
        os.replace(fresh, source)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    release = folder.root / "release" / assignment
    try:
        if release.exists():
            shutil.copytree(release, kept / "release")
        generate_release(nbgrader_config(folder.root, folder.db_url), assignment)
    except BaseException:
        os.replace(source, fresh)
        os.replace(kept / "source", source)
        shutil.rmtree(fresh)
        raise
    return kept


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def _refuse_other_cells(old: Bundle, new: Bundle, assignment: str) -> None:
    names = [{grade_id(cell) for cell in one.notebook.cells} - {""} for one in (old, new)]
    if names[0] == names[1] and old.notebook_name == new.notebook_name:
        return
    gone, come = sorted(names[0] - names[1]), sorted(names[1] - names[0])
    raise ClassError(
        f"{assignment}: cells came or went ({', '.join(['-' + one for one in gone])}"
        f"{', ' if gone and come else ''}{', '.join(['+' + one for one in come])}), and points in "
        "the gradebook hang on them; keep the names and mend their contents, or make a new class"
    )


def _aside(folder: ClassFolder, assignment: str) -> Path:
    name = f"{assignment}-{datetime.now().strftime('%Y-%m-%d-%H%M%S')}"
    number = 1
    top = folder.root / "set_aside" / "lessons"
    while (path := top / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return path
