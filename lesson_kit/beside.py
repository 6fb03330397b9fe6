"""The one file beside a notebook: its short answers, known mistakes, and parts of earlier lessons.

The build makes it; nothing in it can be read by accident.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["DATA_FILE", "beside_notebook"]

#: Its name. What it holds: ``answers``, ``known_mistakes`` and ``earlier``.
DATA_FILE = "lesson_data.json"

_cached: tuple[str, float, dict[str, Any]] = ("", 0.0, {})


def beside_notebook() -> dict[str, Any]:
    """What :data:`DATA_FILE` says of the lesson whose folder this process is in; read again when
    it is another.

    Raises:
        FileNotFoundError: it is not there; the message says what to do.
        ValueError: it is damaged.
    """
    global _cached
    path = _place()
    if not path.exists():
        raise FileNotFoundError(
            f"{DATA_FILE} is missing. It belongs beside the notebook: copy the whole lesson folder."
        )
    key = str(path.resolve()), path.stat().st_mtime
    if _cached[:2] != key:
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{DATA_FILE} is damaged ({error}): copy it anew.") from None
        _cached = (*key, tree)
    return _cached[2]


def _place() -> Path:
    """In the working folder, which is the notebook's; a solved notebook leans on the released."""
    solved = Path("..", "..", "course", Path.cwd().name, DATA_FILE)
    return solved if solved.exists() and not Path(DATA_FILE).exists() else Path(DATA_FILE)
