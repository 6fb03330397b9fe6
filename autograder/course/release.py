"""What a release of the course held: ``course/.release.json``, written by the build.

It is how an update knows what a student changed: a digest of every file, and of every cell of
every notebook. It says also which visible checks a notebook came with, so that a deleted one is
missed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from autograder.course.course_toml import PackageText
from autograder.course.notebook_file import read_notebook
from autograder.errors import WrongUse
from autograder.files import LEFT_BY_TOOLS, write_whole
from autograder.notebooks import (
    TAGS,
    grade_id,
    is_test,
    nbgrader_metadata,
    tags,
)
from lesson_kit import notebook_reading as reading
from lesson_kit.course_progress import has_code
from lesson_kit.own_package import PACKAGE

MANIFEST_FILE = ".release.json"

#: Marks in the names of files that an update writes beside a notebook.
SET_ASIDE = ".before-update-"
NOT_MERGED = ".new-release-"


class ManifestError(WrongUse):
    """A ``.release.json`` cannot be read; the message says what to do."""


@dataclass(frozen=True)
class ReleasedCell:
    """A cell as it was released.

    Attributes:
        id: the notebook's own name of the cell.
        text: digest of its form; in releases of before, of its text.
        grade_id: nbgrader's name, or "".
        points: of a visible check; 0 for all else.
        tag: one of :data:`autograder.notebooks.TAGS`, or "".
    """

    id: str
    text: str
    grade_id: str = ""
    points: float = 0.0
    tag: str = ""


@dataclass
class Release:
    """What a release held: digests of its files by name, and the cells of its notebooks; and the
    package that a student's answers become, if any."""

    files: dict[str, str] = field(default_factory=dict)
    cells: dict[str, list[ReleasedCell]] = field(default_factory=dict)
    package: PackageText | None = None


def digest_of(cell: NotebookNode) -> str:
    """The digest of a cell in a manifest; how the cell is laid out does not count."""
    return reading.digest(cell.source, cell.cell_type == "code")


def digests_of(cell: NotebookNode) -> set[str]:
    """What a manifest may hold of a cell: this digest, or that of the text, as releases of before
    have it."""
    text = cell.source.rstrip().encode("utf-8", "replace")
    return {digest_of(cell), hashlib.sha256(text).hexdigest()[:16]}


def digest_of_file(path: Path) -> str:
    """A digest of a file; how its lines end does not count."""
    data = path.read_bytes().replace(b"\r\n", b"\n")
    return hashlib.sha256(data).hexdigest()[:16]


def package_of(folder: Path) -> PackageText | None:
    """What the manifest of a course folder says of students' packages, if it says anything."""
    try:
        said = json.loads((folder / MANIFEST_FILE).read_bytes()).get(PACKAGE)
        return PackageText(**said) if said else None
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def released_files(folder: Path, package: PackageText | None = None) -> Iterator[str]:
    """The files of a course folder by their names in it, in order, without what Jupyter, Python and
    an update leave there, and without a student's package."""
    package = package or package_of(folder)
    own = {package.name} if package else set()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        left = {*LEFT_BY_TOOLS, MANIFEST_FILE, *own} & set(name.parts)
        if path.is_file() and not left and not is_beside(path):
            yield name.as_posix()


def is_beside(path: Path) -> bool:
    """Whether an update wrote this file beside a student's."""
    return SET_ASIDE in path.name or NOT_MERGED in path.name


def cells_of(notebook: NotebookNode) -> list[ReleasedCell]:
    """The cells of a released notebook, as the manifest holds them."""
    return [
        ReleasedCell(
            cell.get("id", ""),
            digest_of(cell),
            grade_id(cell),
            float(nbgrader_metadata(cell)["points"])
            if is_test(cell) and has_code(cell.source)
            else 0.0,
            next((tag for tag in tags(cell) if tag in TAGS), ""),
        )
        for cell in notebook.cells
    ]


def restore_names(notebook: NotebookNode, released: Iterable[ReleasedCell]) -> int:
    """Give cells that lost nbgrader's metadata their names again, by what they hold.

    Args:
        notebook: as it was read; its metadata are changed.
        released: the cells of the release that it came from.

    Returns:
        How many were found.
    """
    known = {cell.text: cell for cell in released}
    cells = [(cell.cell_type, cell.source, grade_id(cell)) for cell in notebook.cells]
    given = [(cell.text, cell.grade_id, cell.points) for cell in known.values()]
    lost = reading.lost_metadata(cells, given)
    for at, ours in lost.items():
        notebook.cells[at].metadata["nbgrader"] = NotebookNode(ours)
    for cell in notebook.cells:
        before = known.get(digest_of(cell))
        if before is not None and before.tag and not tags(cell):
            cell.metadata["tags"] = [before.tag]
    return len(lost)


def release_in(folder: Path) -> Release:
    """The manifest of an untouched release, from its files."""
    return _with_files(Release(package=package_of(folder)), folder, released_files(folder))


def _with_files(release: Release, folder: Path, names: Iterable[str]) -> Release:
    for name in names:
        release.files[name] = digest_of_file(folder / name)
        if name.endswith(".ipynb"):
            release.cells[name] = cells_of(read_notebook(folder / name))
    return release


def record_release(
    folder: Path, package: PackageText | None = None, lesson: str | None = None
) -> None:
    """Write the manifest of a course folder that was just made.

    Args:
        folder: the course folder.
        package: where students' answers are kept, if they are.
        lesson: the only lesson folder that was made now; what is known of others stays, and they
            are not read.
    """
    known = (read_manifest(folder) if lesson is not None else None) or Release()
    release, made = Release(package=package), []
    for name in released_files(folder, package):
        if name in known.files and "/" in name and not name.startswith(f"{lesson}/"):
            release.files[name] = known.files[name]
            if name in known.cells:
                release.cells[name] = known.cells[name]
        else:
            made.append(name)
    write_manifest(folder, _with_files(release, folder, made))


def write_manifest(folder: Path, release: Release) -> None:
    """Write ``.release.json`` into a course folder."""
    tree = {
        "files": dict(sorted(release.files.items())),
        "cells": {
            name: [_as_list(cell) for cell in cells]
            for name, cells in sorted(release.cells.items())
        },
        **({PACKAGE: asdict(release.package)} if release.package else {}),
    }
    text = json.dumps(tree, indent=0, ensure_ascii=False)
    write_whole(folder / MANIFEST_FILE, re.sub(r"\[\n(\"[^\[\]]*)\n\]", _on_one_line, text) + "\n")


def _as_list(cell: ReleasedCell) -> list[Any]:
    return [cell.id, cell.text, cell.grade_id, cell.points, *filter(None, [cell.tag])]


def _on_one_line(match: re.Match[str]) -> str:
    return "[" + match.group(1).replace("\n", " ") + "]"


def read_manifest(folder: Path) -> Release | None:
    """The manifest of a course folder; None where there is none.

    Raises:
        ManifestError: it is damaged.
    """
    path = folder / MANIFEST_FILE
    if not path.exists():
        return None
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        return Release(
            {str(name): str(digest) for name, digest in tree["files"].items()},
            {
                str(name): [
                    ReleasedCell(str(cell), str(text), str(name), float(points), *map(str, tag))
                    for cell, text, name, points, *tag in cells
                ]
                for name, cells in tree["cells"].items()
            },
            package_of(folder),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ManifestError(
            f"{path} is damaged; get the one of your release again, or remove it: an update then "
            "keeps every notebook that you changed as it is"
        ) from None
