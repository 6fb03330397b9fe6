"""The student's own package: where it lies, and how it is written.

It lies in the course folder, beside the lessons, under the name that the course gives it. Only the
kernel of a notebook in a lesson folder of a student's course has one: the folder above holds the
release's manifest, which names it. Where work is graded, built or proved there is no such kernel or
no such folder, and in a course that keeps none no such name: nothing of it is read or written.

A file of the package is a row of sections, each below a line that names it and holds a digest of
what was written. A section that is no longer what that digest says was edited by hand: it stays.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

__all__ = [
    "PACKAGE",
    "SWITCH",
    "Place",
    "Section",
    "module_of",
    "place",
    "put",
    "replace",
    "sections",
    "write",
]

#: The environment variable that switches it off.
SWITCH = "OWN_PACKAGE"

#: The key in a manifest of what the course says of the package: its name, and what it is about.
PACKAGE = "package"

_MANIFEST = ".release.json"

_MARK = re.compile(r"^(?:# |<!-- )==== (\S+) \(as kept: (\w{8})\) ====(?: -->)?$")


@dataclass(frozen=True)
class Place:
    """A lesson's folder in a student's course.

    Attributes:
        course: the course folder.
        lesson: the name of the lesson's folder.
    """

    course: Path
    lesson: str

    @property
    def package(self) -> Path:
        """The folder of the package, which may not be there yet."""
        return self.course / self.name

    @property
    def name(self) -> str:
        """The package's; "" in a course that keeps none."""
        return str(self._manifest.get(PACKAGE, {}).get("name", ""))

    @property
    def about(self) -> str:
        """What it is, in a sentence."""
        return str(self._manifest[PACKAGE]["about"])

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.course / _MANIFEST).read_bytes()))

    @cached_property
    def _cells(self) -> dict[str, list[list[Any]]]:
        """The cells of each lesson as they were handed out: id, digest, name, points."""
        cells = self._manifest["cells"]
        return {name.partition("/")[0]: of_lesson for name, of_lesson in cells.items()}

    @cached_property
    def parts(self) -> dict[str, str]:
        """The course's exercises in order, each with the folder of its lesson."""
        parts = {}
        for folder, cells in sorted(self._cells.items()):
            checked = {name for _, _, name, points, *_ in cells if points}
            for _, _, name, *_ in cells:
                if f"test_{name}" in checked and not name.startswith("answer_"):
                    parts[name] = folder
        return parts

    @cached_property
    def checks(self) -> dict[str, str]:
        """This lesson's exercises, by the digest of their check as it was handed out."""
        return {
            digest: name.removeprefix("test_")
            for _, digest, name, points, *_ in self._cells.get(self.lesson, [])
            if points and self.parts.get(name.removeprefix("test_")) == self.lesson
        }


def place() -> Place | None:
    """Where this notebook lies; None where it is no student's, or the package is switched off."""
    from .cells import in_notebook  # the start page needs no NumPy

    here = Path.cwd()
    if not in_notebook() or os.environ.get(SWITCH, "").lower() in ("off", "0", "no"):
        return None
    if not re.match(r"\d+-", here.name) or not (here.parent / _MANIFEST).is_file():
        return None
    lesson = Place(here.parent, here.name)
    try:
        known = bool(lesson.name and (lesson.checks or lesson.parts))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return lesson if known and _switched_on(lesson.package) else None


def _switched_on(package: Path) -> bool:
    """What its settings say; where they cannot be read, that it is on."""
    try:
        tree = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))
        return tree["tool"][package.name]["keep"] is not False
    except (OSError, ValueError, KeyError, TypeError):
        return True


def module_of(folder: str) -> str:
    """The module of a lesson: ``lesson_02_two_means`` of ``02-two-means``."""
    return "lesson_" + re.sub(r"\W", "_", folder)


@dataclass
class Section:
    """A part of a file: its name, the digest of what was written, and what stands there."""

    name: str
    written: str
    text: str

    @property
    def edited(self) -> bool:
        """Whether somebody changed it since."""
        return _digest(self.text) != self.written


def _digest(text: str) -> str:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:8]


def sections(path: Path) -> list[Section]:
    """The sections of a file, in order; what stands above the first has no name. None of a file
    that is not there."""
    row = [Section("", _digest(""), "")]
    text = path.read_text(encoding="utf-8-sig", errors="surrogateescape") if path.exists() else ""
    for line in text.splitlines():
        mark = _MARK.match(line)
        if mark:
            row.append(Section(mark[1], mark[2], ""))
        else:
            row[-1].text += line + "\n"
    return [section for section in row if section.name or section.text.strip()]


def put(path: Path, name: str, text: str, order: Sequence[str] = ()) -> Section | None:
    """Write a section of a file, if nobody edited it.

    Args:
        path: of the file.
        name, text: of the section.
        order: names of sections; it goes before the first that stands behind it here.

    Returns:
        The section as it was edited, which stays as it is; else None.
    """
    row = sections(path)
    old = next((section for section in row if section.name == name), None)
    if old is None and _defines(row, name):
        old = next(section for section in row if _defines([section], name))
        return Section(name, "", old.text)
    if old is not None and _digest(old.text) == _digest(text):
        if not old.edited:
            return None
    elif old is not None and old.edited:
        return old
    if old is None:
        _insert(row, Section(name, _digest(text), text), order)
    else:
        old.text, old.written = text, _digest(text)
    _write(path, row)
    return None


def replace(path: Path, name: str, text: str, order: Sequence[str]) -> None:
    """:func:`put`, also where somebody edited the section."""
    row = [section for section in sections(path) if section.name != name]
    _insert(row, Section(name, _digest(text), text), order)
    _write(path, row)


def _insert(row: list[Section], new: Section, order: Sequence[str]) -> None:
    """Before the first section that stands behind it in the order; else at the end."""
    later = set(order[list(order).index(new.name) + 1 :]) if new.name in order else set()
    at = next((i for i, section in enumerate(row) if section.name in later), len(row))
    row.insert(at, new)


def _defines(row: Sequence[Section], name: str) -> bool:
    defined = re.compile(rf"^(?:def|class) {re.escape(name)}\b", re.M)
    return any(defined.search(section.text) for section in row)


def _write(path: Path, row: Sequence[Section]) -> None:
    """Replace a file at once by its sections; lines end as they did."""
    begin, end = ("<!-- ", " -->") if path.suffix == ".md" else ("# ", "")
    texts = []
    for section in row:
        mark = f"{begin}==== {section.name} (as kept: {section.written}) ===={end}\n"
        texts.append((mark if section.name else "") + section.text.strip("\n") + "\n")
    between = "\n\n" if path.suffix == ".py" else "\n"
    data = between.join(texts).encode("utf-8", "surrogateescape")
    if path.exists() and b"\r\n" in path.read_bytes():
        data = data.replace(b"\n", b"\r\n")
    write(path, data)


def write(path: Path, data: bytes) -> None:
    """Replace a file at once, also when the process is killed meanwhile; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        scratch.write_bytes(data)
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
