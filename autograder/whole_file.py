"""Writing a file so that whoever reads it finds the old one or the new one, never a part."""

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
