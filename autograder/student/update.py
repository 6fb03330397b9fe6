"""Taking a new release of the course into a student's course folder; no work is lost.

Nothing is deleted. A file that the student changed is copied beside itself before another one
takes its place, and every file is replaced at once, so that an update that is interrupted
leaves each old file in place or beside it, and can be run again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.notebook_file import DamagedNotebook, read_notebook
from autograder.course.release import (
    NOT_MERGED,
    SET_ASIDE,
    Release,
    digest_of_file,
    digests_of,
    read_manifest,
    release_in,
    released_files,
    write_manifest,
)
from autograder.errors import WrongUse
from autograder.files import replacing, write_whole
from autograder.student.merge import CannotMerge, merge
from autograder.text import plain_line
from lesson_kit.course_progress import lesson_notebooks

#: What can happen to a file of the new release.
NEW, REPLACED, MERGED, SET, KEPT = "new", "replaced", "merged", "set aside", "kept"


class UpdateError(WrongUse):
    """An update cannot be made; the message says what to do. Nothing was lost."""


@dataclass(frozen=True)
class Step:
    """What an update does with one file of the new release.

    Attributes:
        what: ``new`` and ``replaced`` (the student never changed it): the new one is written.
            ``merged`` (a notebook) and ``set aside``: the student's is copied to ``beside``
            first. ``kept``: the student's stays, the new one is written to ``beside``.
        name: the file's name in the course folder.
        beside: the name of the other copy, or "".
        says: for the student.
        text: of a merged notebook.
    """

    what: str
    name: str
    beside: str = ""
    says: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True)
class Update:
    """What an update does, found out before anything is written."""

    course: Path
    source: Path
    steps: tuple[Step, ...]
    left: tuple[str, ...]
    release: Release

    @property
    def status(self) -> int:
        """The exit status: 1 where a file of the student's had to stay as it is."""
        return int(any(step.what == KEPT for step in self.steps))

    def tree(self) -> dict[str, Any]:
        """The same for ``--json``."""
        steps = [
            {"what": step.what, "name": step.name, "beside": step.beside, "says": list(step.says)}
            for step in self.steps
        ]
        return {"course": str(self.course), "steps": steps, "left": list(self.left)}

    def last_lines(self, dry_run: bool) -> list[str]:
        """What the terminal says when all steps were said."""
        lines = [f"left       {plain_line(text)} not in the new release" for text in self._left()]
        for what, why in ((REPLACED, "that you never changed"), (NEW, "that you did not have")):
            number = sum(step.what == what for step in self.steps)
            if number:
                lines.append(f"{what:9}  {number} file{'s' * (number > 1)} {why}")
        if not self.steps:
            return [*lines, "Nothing to do: every file is that of the release already."]
        if dry_run:
            return [*lines, "", "Nothing was written. Without --dry-run this is done."]
        lines += ["", f"The release was taken into {self.course}. Nothing was deleted."]
        if self.status:
            lines.append(
                "What was kept has to be brought together by hand: copy your answers into the new "
                "file and give it the old one's name."
            )
        return lines

    def _left(self) -> Iterator[str]:
        """The files that are left, those of one folder together."""
        folders: dict[str, list[str]] = {}
        for name in self.left:
            folders.setdefault(name.rpartition("/")[0], []).append(name)
        for folder, names in folders.items():
            yield f"{names[0]}:" if len(names) == 1 else f"{len(names)} files in {folder}/:"

    def carry_out(self, say: Callable[[Step], None] = lambda step: None) -> None:
        """Do it.

        Args:
            say: is told each step when it is done.

        Raises:
            UpdateError: a file cannot be written.
        """
        try:
            for step in self.steps:
                self._take(step)
                say(step)
            write_manifest(self.course, self.release)
        except OSError as error:
            raise UpdateError(
                f"{error.filename}: {error.strerror}. Nothing is lost: your files are in place, or "
                "beside it as named above; mend this and run the same command again"
            ) from None

    def _take(self, step: Step) -> None:
        old, new = self.course / step.name, self.source / step.name
        if step.what == KEPT:
            _copy_whole(new, self.course / step.beside)
            return
        if step.beside:
            _copy_whole(old, self.course / step.beside)
        if step.text is None:
            _copy_whole(new, old)
        else:
            write_whole(old, step.text)


def course_folder(path: Path) -> Path:
    """The folder with the lesson folders: as given, or ``course`` in it.

    Raises:
        UpdateError: there is none.
    """
    for folder in (path, path / "course"):
        if folder.is_dir() and any(notebook.is_file() for notebook in lesson_notebooks(folder)):
            return folder.resolve()
    raise UpdateError(
        f"{path} is no course folder: it holds no lesson such as 01-NAME/NAME.ipynb; name the "
        "folder that holds the lessons"
    )


def plan(course: Path, source: Path, now: datetime) -> Update:
    """What taking the release in ``source`` into ``course`` would do. Nothing is written.

    Args:
        course: a student's course folder.
        source: a new release, untouched.
        now: goes into the names of files that are set aside.

    Raises:
        UpdateError: one of them is no course folder, or they are the same.
        ManifestError: a manifest is damaged.
    """
    course, source = course_folder(course), course_folder(source)
    if course == source or course in source.parents or source in course.parents:
        raise UpdateError(
            f"{course} and {source} are one folder, or one lies in the other; unpack the new "
            "release elsewhere"
        )
    base = read_manifest(course)
    try:
        release = release_in(source)
    except DamagedNotebook as error:
        raise UpdateError(f"{source} is no whole release: {error}") from None
    shipped = read_manifest(source)
    if shipped is not None and shipped.files != release.files:
        changed = [
            name for name, digest in release.files.items() if shipped.files.get(name) != digest
        ]
        changed += sorted(shipped.files.keys() - release.files.keys())
        raise UpdateError(
            f"{source} is not as it was released ({changed[0]} was changed): unpack the new "
            "release again, and give it before it is worked in"
        )
    stamp = now.strftime("%Y%m%d-%H%M%S")
    steps = tuple(_steps(course, source, base or Release(), release, stamp))
    for step in steps:
        if step.what == KEPT:  # it goes on being what an older release made of it
            for table in (release.files, release.cells):
                table.pop(step.name, None)
            if base is not None and step.name in base.cells:
                release.files[step.name] = base.files[step.name]
                release.cells[step.name] = base.cells[step.name]
    known = set() if base is None else set(base.files)
    left = tuple(
        name for name in sorted(known - set(released_files(source))) if (course / name).exists()
    )
    return Update(course, source, steps, left, release)


def _steps(
    course: Path, source: Path, base: Release, release: Release, stamp: str
) -> Iterator[Step]:
    for name in released_files(source):
        old, new = course / name, source / name
        if not old.exists():
            yield Step(NEW, name)
        elif not old.is_file():
            yield Step(KEPT, name, _beside(course, name, NOT_MERGED, stamp), ("it is a folder",))
        elif old.read_bytes() == new.read_bytes():
            continue
        elif digest_of_file(old) in (base.files.get(name), release.files[name]):
            yield Step(REPLACED, name)
        elif name.endswith(".ipynb"):
            step = _merge(course, source, name, base, stamp)
            if step is not None:
                yield step
        else:
            yield Step(SET, name, _beside(course, name, SET_ASIDE, stamp), ("you changed it",))


def _merge(course: Path, source: Path, name: str, base: Release, stamp: str) -> Step | None:
    new = read_notebook(source / name)
    try:
        if name not in base.cells:
            raise CannotMerge("what it was when you got it is not known")
        theirs = read_notebook(course / name)
        if _nothing_to_keep(theirs, new, base, name):
            return Step(REPLACED, name)
        merged = merge(theirs, new, base.cells[name])
        text = nbformat.writes(merged.notebook) + "\n"
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        reason = "it holds characters that no file can hold"
    except (CannotMerge, DamagedNotebook) as error:
        reason = str(error)
    else:
        if data == (course / name).read_bytes():
            return None  # an update that was interrupted has been here
        carried = f"carried over: {', '.join(merged.carried) or 'what it printed'}"
        beside = _beside(course, name, SET_ASIDE, stamp)
        return Step(MERGED, name, beside, (carried, *merged.notes), text)
    return Step(KEPT, name, _beside(course, name, NOT_MERGED, stamp), (reason,))


def _nothing_to_keep(theirs: NotebookNode, new: NotebookNode, base: Release, name: str) -> bool:
    """Whether it has no exercise and no text of the student's, as the start page that was run."""
    released = {cell.text for cell in base.cells[name]}
    same = all(digests_of(cell) & released for cell in theirs.cells)
    return same and not any(cell.metadata.get("nbgrader") for cell in new.cells)


def _beside(course: Path, name: str, mark: str, stamp: str) -> str:
    """A name beside a file that nothing has yet."""
    path = Path(name)
    for more in ("", *(f"-{number}" for number in range(2, 1000))):
        beside = path.with_name(f"{path.stem}{mark}{stamp}{more}{path.suffix}").as_posix()
        if not (course / beside).exists():
            return beside
    raise UpdateError(f"too many copies of {name} lie beside it; move them away")


def _copy_whole(source: Path, target: Path) -> None:
    """Copy a file so that ``target`` is the old one or the new one, never a part."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as scratch:
        shutil.copyfile(source, scratch)


def as_lines(step: Step) -> list[str]:
    """A step for the terminal; files that are not the student's work are only counted."""
    if step.what in (NEW, REPLACED):
        return []
    name, beside = plain_line(step.name), plain_line(step.beside)
    lines = [f"{step.what:9}  {name}"]
    lines += [f"{'':11}{plain_line(text)}" for text in step.says]
    if step.what == KEPT:
        lines.append(f"{'':11}yours stays as it is; the new release's: {beside}")
    elif beside:
        lines.append(f"{'':11}yours as it was: {beside}")
    return lines
