"""Where a lesson's checks run, a student's notebook or the grader, and what lies there.

Beside a notebook lies one file: its short answers, known mistakes, and parts of earlier lessons.
The build makes it; nothing in it can be read by accident.
"""

from __future__ import annotations

import bz2
import json
from base64 import b64decode, b85decode, b85encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

__all__ = [
    "DATA_FILE",
    "Setting",
    "as_grader",
    "beside_notebook",
    "in_haste",
    "inputs_of",
    "now",
    "pack",
    "pack_text",
    "unpack",
    "unpack_text",
    "without_advice",
]


@dataclass
class Setting:
    """What checks ask of the place where they run.

    Attributes:
        seed: of the inputs. Fixed in the notebook, so that a failure can be looked into.
        answers: what is known of the short answers; None: what lies beside the notebook.
        advice: whether a failed check looks for the mistake; the grader does that itself.
        hasty: whether the first failed check ends its cell.
        drawn: whether inputs were drawn since the grader's turn began.
    """

    seed: int = 2017
    answers: dict[str, Any] | None = None
    advice: bool = True
    hasty: bool = False
    drawn: bool = False


#: Of this process.
now = Setting()


@contextmanager
def as_grader(seed: int, answers: str) -> Iterator[None]:
    """While it is open, checks run for the grader.

    Args:
        seed: of the inputs.
        answers: what is known of the short answers, as JSON.
    """
    before = replace(now)
    now.seed, now.answers, now.advice, now.drawn = seed, json.loads(answers), False, False
    try:
        yield
    finally:
        now.seed, now.answers, now.advice = before.seed, before.answers, before.advice


@contextmanager
def inputs_of(seed: int) -> Iterator[None]:
    """While it is open, the checks' inputs are drawn from this seed."""
    before, now.seed = now.seed, seed
    try:
        yield
    finally:
        now.seed = before


@contextmanager
def without_advice() -> Iterator[None]:
    """While it is open, a failed check looks for nothing: it is being tried."""
    before, now.advice = now.advice, False
    try:
        yield
    finally:
        now.advice = before


@contextmanager
def in_haste() -> Iterator[None]:
    """While it is open, one failed check is enough: a cell of many ends there."""
    before, now.hasty = now.hasty, True
    try:
        yield
    finally:
        now.hasty = before


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


#: How a text begins that was packed: it is compressed.
_PACKED = b85encode(b"BZh9").decode()


def pack_text(text: str) -> str:
    """A text as a shorter one that nobody reads by accident; the same on every machine."""
    return b85encode(bz2.compress(text.encode())).decode()


def unpack_text(packed: str) -> str:
    """What :func:`pack_text` was given; or what an earlier version packed, in base64.

    Raises:
        ValueError: the text is damaged.
    """
    try:
        octets = b85decode(packed) if packed.startswith(_PACKED) else b64decode(packed)
        return (bz2.decompress(octets) if octets.startswith(b"BZh") else octets).decode()
    except (OSError, EOFError) as error:
        raise ValueError(f"what was packed is damaged ({error})") from None


def pack(tree: Any) -> str:
    """Plain data, packed as a text."""
    return pack_text(json.dumps(tree, ensure_ascii=False, sort_keys=True))


def unpack(packed: Any) -> Any:
    """What :func:`pack` made a text of; what is no text, as an earlier version wrote it, as it is.

    Raises:
        ValueError: the text is damaged.
    """
    return json.loads(unpack_text(packed)) if isinstance(packed, str) else packed


def _place() -> Path:
    """In the working folder, which is the notebook's; a solved notebook leans on the released."""
    solved = Path("..", "..", "course", Path.cwd().name, DATA_FILE)
    return solved if solved.exists() and not Path(DATA_FILE).exists() else Path(DATA_FILE)
