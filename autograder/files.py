"""Writing so that nothing is lost: a file is the old one or the new one, never a part, and what
is kept takes nothing's place. And which files are nobody's work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Folders that Jupyter and Python leave anywhere: nobody's work, and never copied.
LEFT_BY_TOOLS = (".ipynb_checkpoints", "__pycache__")


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` at once, also when the process is killed meanwhile.

    Folders on the way are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write beside ``path``, which takes its place at once when the block ends well."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        yield scratch
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def holds_something(path: Path) -> bool:
    """Whether something is there that is no empty folder, so that nothing new may be made there."""
    return path.exists() and (not path.is_dir() or any(path.iterdir()))


def untaken(path: Path) -> Path:
    """``path``, or the first of ``path-2``, ``path-3``... that nothing has yet."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free
