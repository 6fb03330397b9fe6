"""What lies in a folder or a zip from an LMS. Nothing in it is trusted, and nothing unpacked.

Files are listed, and read one at a time. A path that leads elsewhere, a link, an archive
inside is left out and named; more than a class can hold refuses the whole. What nobody reads,
such as data beside a notebook, counts little: one student may have much of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from autograder.errors import WrongUse
from autograder.files import LEFT_BY_TOOLS
from autograder.grade.limits import MAX_NOTEBOOK_BYTES
from autograder.grade.submission import Unreadable, content_of, read_file
from autograder.lms.layouts import is_notebook
from autograder.text import plain_line

#: Notebooks in one archive. A class of a thousand with three each has 3000.
MAX_NOTEBOOKS = 20_000
#: Files of any kind in it: of each there is a path in memory.
MAX_FILES = 500_000

_JUNK = re.compile(
    r"(?:^|/)(?:\._|\.DS_Store$|Thumbs\.db$|desktop\.ini$"
    + "".join(f"|{re.escape(name)}/" for name in ("__MACOSX", *LEFT_BY_TOOLS))
    + ")"
)
#: Signs without width that no name needs; joiners, which Persian needs, are none.
_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]")
_EXTENDED_TIMESTAMP = 0x5455


class ArchiveError(WrongUse):
    """An archive cannot be used at all; the message says what to do."""


@dataclass(frozen=True)
class File:
    """One file of an archive.

    ``path`` has slashes and no control characters; ``size`` is in bytes, as far as the archive
    says it; ``read`` gives the content, or raises
    :class:`autograder.grade.submission.Unreadable` with the reason.
    """

    archive: str
    path: str
    modified: datetime | None
    size: int
    read: Callable[[], bytes] = field(repr=False, compare=False)


@dataclass
class Archive:
    """What is in an archive: files, and what was left out with the reason."""

    name: str
    files: list[File] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def look_into(path: Path, most: int = MAX_NOTEBOOK_BYTES, zone: tzinfo | None = None) -> Archive:
    """List the files of a folder or a zip.

    Args:
        path: of it.
        most: bytes of a notebook that are read, large outputs left out.
        zone: of times in a zip that says none; this machine's otherwise.

    Raises:
        ArchiveError: it is neither, is damaged, or holds too much.
    """
    if path.is_dir():
        return _folder(path, most)
    if not path.exists():
        raise ArchiveError(f"{path} does not exist; name the zip that your LMS gave, or a folder")
    if not zipfile.is_zipfile(path):
        raise ArchiveError(
            f"{path} is neither a zip nor a folder; download the submissions again as a zip"
        )
    return _zip(path, most, zone)


def _folder(top: Path, most: int) -> Archive:
    archive = Archive(top.name)
    for here, folders, names in os.walk(top):
        folders.sort()
        for name in [folder for folder in folders if Path(here, folder).is_symlink()]:
            archive.left_out.append((_shown(Path(here, name), top), "it is a link"))
        for name in sorted(names):
            path = Path(here, name)
            shown = _shown(path, top)
            if _JUNK.search(shown):
                continue
            status = path.lstat()
            why = "" if stat.S_ISREG(status.st_mode) else "it is a link, or not a regular file"
            if why := why or _not_one(path.relative_to(top).as_posix()):
                archive.left_out.append((shown, why))
                continue
            when = datetime.fromtimestamp(status.st_mtime, UTC)
            read = partial(read_file, path, most)
            archive.files.append(File(archive.name, shown, when, status.st_size, read))
            if len(archive.files) > MAX_FILES:
                _refuse_too_many(archive, top)
    _refuse_too_many(archive, top)
    return archive


def _shown(path: Path, top: Path) -> str:
    return plain_line(path.relative_to(top).as_posix(), 1000)


def _not_one(path: str) -> str:
    """Why the folders of a path cannot be told from others', as they would be shown; or ""."""
    folder = path.rpartition("/")[0]
    same = plain_line(folder, 1000) == folder and not _UNSEEN.search(folder)
    return "" if same else "its folder's name has signs that nobody sees, or too many; whose is it?"


def _refuse_too_many(archive: Archive, path: Path) -> None:
    everything = [file.path for file in archive.files]
    notebooks = [path for path in everything if is_notebook(path)]
    for paths, most, kind in (
        (everything, MAX_FILES, "files"),
        (notebooks, MAX_NOTEBOOKS, "notebooks"),
    ):
        if len(paths) > most:
            fullest, holds = _fullest(paths)
            raise ArchiveError(
                f"{path} holds more than {most} {kind}, {holds} of them in {fullest!r}; if it is "
                "the LMS's zip of one class, unpack it, move that folder away and collect what is "
                "left. Nothing was taken from it"
            )


def _fullest(paths: list[str]) -> tuple[str, int]:
    """The outermost folder that holds most of ``paths``, below those that hold all of them."""
    level = 1
    while True:
        folders = Counter("/".join(path.split("/")[:-1][:level]) for path in paths)
        ((fullest, holds),) = folders.most_common(1)
        if len(folders) > 1 or fullest.count("/") < level - 1 or not fullest:
            return fullest, holds
        level += 1


def _zip(path: Path, most: int, zone: tzinfo | None) -> Archive:
    archive = Archive(path.name)
    try:
        with zipfile.ZipFile(path) as opened:
            entries = opened.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ArchiveError(f"{path} is a damaged zip ({error}); download it again") from None
    for info in entries:
        raw = _name(info)
        shown = plain_line(raw, 1000)
        if info.is_dir() or _JUNK.search(shown):
            continue
        why = _not_taken(info, raw) or _not_one(raw)
        if why:
            archive.left_out.append((shown, why))
            continue
        when, read = _modified(info, zone), _reader(path, info, most)
        archive.files.append(File(archive.name, shown, when, info.file_size, read))
    _refuse_too_many(archive, path)
    return archive


def _name(info: zipfile.ZipInfo) -> str:
    name = info.filename
    if not info.flag_bits & 0x800:  # not marked as UTF-8: zipfile took it for cp437
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _not_taken(info: zipfile.ZipInfo, name: str) -> str:
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name):
        return "its path leads out of the archive"
    mode = info.external_attr >> 16
    if info.create_system == 3 and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "it is a link, or not a regular file"
    if info.flag_bits & 0x1:
        return "it is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "it is packed in an unusual way; unpack the zip and collect the folder"
    return ""


def _reader(path: Path, info: zipfile.ZipInfo, most: int) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            with zipfile.ZipFile(path) as opened, opened.open(info) as file:
                return content_of(cast(BinaryIO, file), most)
        except (
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            raise Unreadable(f"it is damaged in the zip: {plain_line(str(error))}") from None

    return read


def _modified(info: zipfile.ZipInfo, zone: tzinfo | None) -> datetime | None:
    """When the entry was written, as far as the zip tells: exact, else in a zone."""
    extra = info.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == _EXTENDED_TIMESTAMP and size >= 5 and len(extra) >= 9 and extra[4] & 1:
            return datetime.fromtimestamp(struct.unpack_from("<i", extra, 5)[0], UTC)
        extra = extra[4 + size :]
    if info.date_time[0] <= 1980:
        return None
    try:
        return datetime(*info.date_time, tzinfo=zone).astimezone(UTC)
    except ValueError:
        return None
