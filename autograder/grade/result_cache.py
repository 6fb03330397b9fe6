"""Verdicts kept by content, so that a killed run goes on where it was.

One file a verdict in ``<class>/.results/``, named by the task's key: what was handed in, the
tests, the seed and the limits. It holds under what it was reached: by what code, with what
libraries, in what sandbox. A file is complete or not there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from autograder.files import write_whole
from autograder.grade.cells import Cell
from autograder.grade.flags import Flag
from autograder.grade.result import CellRun, Result, TestResult

#: In the same folder: a line for each submission that had a verdict, the key and whose it is.
_WHOSE = "whose.txt"


class ResultCache:
    """The verdicts kept in one folder."""

    def __init__(self, folder: Path) -> None:
        """Use ``folder``; it is made when the first verdict is kept."""
        self.folder = folder

    def find(self, key: str, under: str = "") -> Result | None:
        """The verdict of a task graded before, or None.

        Args:
            key: of the task.
            under: what it has to be reached under; whatever it was, where that is not said.
        """
        try:
            result = from_text(self._path(key).read_text(encoding="utf-8"))
            return result if under in ("", result.reached_under) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or not ours: it is graded again

    def keep(self, key: str, result: Result) -> None:
        """Keep a verdict."""
        write_whole(self._path(key), as_text(result))

    def is_of(self, key: str, name: str) -> bool:
        """Whether this student had this verdict before; equal files share one.

        Args:
            key: of the task.
            name: of the submission, ``student/assignment``.
        """
        return (key, name) in self._had

    def note(self, key: str, name: str) -> None:
        """Remember that a student had this verdict."""
        if (key, name) not in self._had:
            self._had.add((key, name))
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / _WHOSE).open("a", encoding="utf-8") as file:
                file.write(f"{key} {name}\n")

    @cached_property
    def _had(self) -> set[tuple[str, str]]:
        try:
            lines = (self.folder / _WHOSE).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return set()
        return {(key, name) for key, _, name in (line.partition(" ") for line in lines)}

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def as_text(result: Result) -> str:
    """A verdict as JSON."""
    tree = asdict(result)
    tree["written_to_read"] = sorted(result.written_to_read)
    return json.dumps(tree)


def from_text(text: str) -> Result:
    """What :func:`as_text` wrote.

    Raises:
        ValueError, KeyError, TypeError: it is something else.
    """
    tree = json.loads(text)
    cells = [
        {
            **cell,
            "outputs": tuple(cell["outputs"]),
            "attachments": tuple((name, data) for name, data in cell["attachments"]),
        }
        for cell in tree["cells"]
    ]
    tests = [
        {**test, "passed_parts": tuple(map(tuple, test["passed_parts"]))} for test in tree["tests"]
    ]
    parts = {
        "tests": tuple(_made(TestResult, test) for test in tests),
        "flags": tuple(_made(Flag, flag) for flag in tree["flags"]),
        "runs": tuple(_made(CellRun, run) for run in tree["runs"]),
        "cells": tuple(_made(Cell, cell) for cell in cells),
        "written_to_read": frozenset(tree["written_to_read"]),
    }
    return _made(Result, {**tree, **parts})


Kept = TypeVar("Kept")


#: What a field of a type holds, as JSON has it.
_HOLDS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "float": (int, float),
    "bool": bool,
    "int": int,
}


def _made(kind: type[Kept], tree: dict[str, Any]) -> Kept:
    """What was kept, if it has all that it has today: an earlier version may have kept less."""
    types = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    if set(tree) != set(types):
        raise ValueError
    for name, value in tree.items():
        if not isinstance(value, _HOLDS.get(types[name], object)):
            raise ValueError
    return kind(**tree)
