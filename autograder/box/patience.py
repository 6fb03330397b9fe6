"""How long a box is waited for: the processor seconds of its processes count, and not the clock.

On a busy machine the same code takes as many processor seconds as ever. What sleeps is bounded by
the clock, generously; time in which the box was ready to work and had no processor is no sleep.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

#: Seconds of sleep for each processor second that is granted.
ASLEEP = 4.0

#: Seconds by the clock for each, whatever the machine says of them.
BY_THE_CLOCK = 100.0

_TICKS = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """What processes took: processor seconds, and seconds in which they waited for a processor."""

    worked: float = 0.0
    queued: float = 0.0


def taken_below(pid: int) -> Taken:
    """What a process and all that it started took.

    The work of those that have ended since is in it. On a kernel that keeps no schedstat nothing is
    known of waiting.
    """
    ticks = nanoseconds = 0
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        with contextlib.suppress(OSError, ValueError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting.extend(int(child) for child in (task / "children").read_text().split())
                with contextlib.suppress(OSError, IndexError):
                    nanoseconds += int((task / "schedstat").read_text().split()[1])
    return Taken(ticks / _TICKS, nanoseconds / 1e9)


class Patience:
    """What a box took so far, and whether one request takes too long.

    Requests that are answered in a moment, before the first look at them, count nothing.

    Attributes:
        worked: processor seconds.
        slept: seconds in which the box neither worked nor waited for a processor.
        gave_up: whether a request was given up since the box slept.
    """

    def __init__(self, taken: Callable[[], Taken]) -> None:
        """Begin; ``taken`` says what the box's processes took."""
        self._taken = taken
        self._last: tuple[float, Taken] | None = None
        self._worked = self._slept = self._most = 0.0
        self.worked = self.slept = 0.0
        self.gave_up = False

    def begin(self, seconds: float) -> None:
        """A request begins that may take so many processor seconds."""
        self._last, self._worked, self._slept, self._most = None, 0.0, 0.0, seconds

    @contextlib.contextmanager
    def waiting(self) -> Iterator[float]:
        """The box is waited for; gives when that ends, by the monotonic clock, whatever happens."""
        self._last = None  # what the grader did meanwhile is not counted
        yield time.monotonic() + BY_THE_CLOCK * self._most
        if self._last is not None:
            self.is_over()

    def is_over(self) -> bool:
        """Look what was taken since the last look; whether the request took more than it may."""
        now, taken = time.monotonic(), self._taken()
        if self._last is not None:
            before, then = self._last
            worked, queued = max(0.0, taken[0] - then[0]), max(0.0, taken[1] - then[1])
            slept = max(0.0, now - before - worked - queued)
            self._worked, self.worked = self._worked + worked, self.worked + worked
            self._slept, self.slept = self._slept + slept, self.slept + slept
        self._last = now, taken
        self.gave_up |= self._slept > ASLEEP * self._most
        return self._worked > self._most or self.gave_up


class Budget:
    """What several requests to one box may take together."""

    def __init__(self, patience: Patience, seconds: float) -> None:
        """Grant so many processor seconds from now on."""
        self._patience, self.seconds = patience, seconds
        self._worked, self._slept = patience.worked, patience.slept

    def left(self) -> float:
        """Processor seconds that a further request may take."""
        worked = self._patience.worked - self._worked
        slept = self._patience.slept - self._slept
        return max(0.0, self.seconds - max(worked, slept / ASLEEP))
