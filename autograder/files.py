"""Writing so that nothing is lost: a file is the old one or the new one, never a part, and what
is kept takes nothing's place."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` at once, also when the process is killed meanwhile.

    Folders on the way are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, path)


def untaken(path: Path) -> Path:
    """``path``, or the first of ``path-2``, ``path-3``... that nothing has yet."""
    found, number = path, 1
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found
