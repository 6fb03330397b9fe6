"""A line that shows how far a training loop is.

It needs nothing but the standard library and IPython, so that a released lesson folder works
wherever its notebook does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from IPython.display import display

from .words import tr

__all__ = ["note", "progress"]

#: Characters of the bar, and seconds between two drawings of it.
WIDTH = 30
PAUSE = 0.5


#: What the line of the running loop says beside its numbers.
_noted: list[str] = []


def note(text: str) -> None:
    """Say something on the line of the loop that is running, such as the loss of its last step.

    It goes when the loop ends: the line that stays is the same each time.
    """
    _noted[:] = [text]


class _Line:
    """Plain text as a display shows it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def progress(steps: int, label: str) -> Iterator[int]:
    """Yield 0 to ``steps - 1`` and show how many are done and the seconds that are left.

    The line that stays says nothing of time, so that a notebook run twice has the same
    outputs.

    Args:
        steps: how many there are.
        label: what is being trained, in a few words.
    """
    _noted.clear()
    started = drawn = time.monotonic()
    handle = display(_Line(_bar(label, 0, steps, "")), display_id=True)
    for step in range(steps):
        yield step
        now = time.monotonic()
        if handle is not None and now - drawn >= PAUSE:
            left = (now - started) / (step + 1) * (steps - step - 1)
            more = ", ".join(["", *_noted, tr("{seconds} s left", seconds=f"{left:.0f}")])
            handle.update(_Line(_bar(label, step + 1, steps, more)))
            drawn = now
    if handle is not None:
        handle.update(_Line(tr("{label}: {steps} steps done", label=label, steps=steps)))


def _bar(label: str, done: int, steps: int, more: str) -> str:
    full = WIDTH * done // max(steps, 1)
    return f"{label}: {'█' * full}{'░' * (WIDTH - full)} {done}/{steps}{more}"
