"""When a class hands a lesson out: it brings solutions of earlier ones.

Until those are due it can lie in ``held_back/`` in place of ``release/``. Light, since the process
that grades a class imports it; :mod:`autograder.classroom.hand_out` is not.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from autograder.classroom.folder import ClassError, ClassFolder

#: Where lessons lie that are handed out, and those that are not yet.
RELEASE, HELD_BACK = "release", "held_back"


@dataclass(frozen=True)
class HandOut:
    """What became of the lessons of a class.

    Attributes:
        released: names of those that were moved to ``release/``.
        held: those that are held back, and the assignment that each waits for.
        note: why none is ever held back in this class; else empty.
    """

    released: tuple[str, ...] = ()
    held: dict[str, str] = field(default_factory=dict)
    note: str = ""


def lies_in(folder: ClassFolder, assignment: str) -> Path:
    """Where the student version of an assignment is, or would be made."""
    held = folder.root / HELD_BACK / assignment
    return held if held.exists() else folder.root / RELEASE / assignment


def waits_for(folder: ClassFolder, now: datetime) -> dict[str, str]:
    """The assignments to be held back, each with the earlier one that is due last.

    Args:
        folder: the class.
        now: with an offset.

    Raises:
        ClassError, LateError: hold_back or [due] in class.toml cannot be used.
    """
    held: dict[str, str] = {}
    last: str | None = None
    for name in folder.assignments:
        if last is not None and folder.hold_back and folder.due[last] > now:
            held[name] = last
        if name in folder.due and (last is None or folder.due[name] > folder.due[last]):
            last = name
    return held


def release_due(folder: ClassFolder, now: datetime | None = None) -> tuple[str, ...]:
    """Move to ``release/`` what was held back and need not be any more; nothing is taken back.

    Args:
        folder: the class.
        now: with an offset; the clock's otherwise.

    Returns:
        The names of what was moved.

    Raises:
        ClassError, LateError: see :func:`settle`.
    """
    waiting = waits_for(folder, now or datetime.now(UTC))
    ready = [
        name
        for name in folder.assignments
        if (folder.root / HELD_BACK / name).exists() and name not in waiting
    ]
    _refuse_two(folder, ready)
    for name in ready:
        _move(folder, name, HELD_BACK, RELEASE)
    return tuple(ready)


def settle(folder: ClassFolder, now: datetime | None = None) -> HandOut:
    """Move each lesson to where it belongs, into ``release/`` or ``held_back/``.

    Args:
        folder: the class.
        now: with an offset; the clock's otherwise.

    Raises:
        ClassError: hold_back cannot be used, or a lesson lies in both folders; nothing is moved.
        LateError: [due] in class.toml cannot be used.
    """
    now = now or datetime.now(UTC)
    waiting = waits_for(folder, now)
    _refuse_two(folder, folder.assignments)
    released = release_due(folder, now)
    for name in waiting:
        if (folder.root / RELEASE / name).exists():
            _move(folder, name, RELEASE, HELD_BACK)
    held = {
        name: other for name, other in waiting.items() if (folder.root / HELD_BACK / name).exists()
    }
    return HandOut(released, held, _why_none(folder))


def _why_none(folder: ClassFolder) -> str:
    settings = folder.root / "class.toml"
    if not folder.hold_back:
        return f"{settings} says hold_back = false: every lesson is handed out"
    if not folder.due:
        return f"{settings} has no dates in [due], so every lesson is handed out"
    return ""


def _refuse_two(folder: ClassFolder, names: list[str]) -> None:
    for name in names:
        places = [folder.root / where / name for where in (RELEASE, HELD_BACK)]
        if all(place.exists() for place in places):
            raise ClassError(
                f"{name} lies in {RELEASE}/ and in {HELD_BACK}/ of {folder.root}; remove the one "
                "that is not to be handed out"
            )


def _move(folder: ClassFolder, name: str, out_of: str, into: str) -> None:
    (folder.root / into).mkdir(exist_ok=True)
    os.replace(folder.root / out_of / name, folder.root / into / name)
