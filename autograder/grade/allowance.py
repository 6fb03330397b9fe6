"""What judging one test may take on the grader's side: processor time and memory.

What comes out of a box is plain data within the caps of :mod:`autograder.box.wire`, and still a
student chooses how much of it there is. Whoever compares it is given an allowance; what passes
it is a verdict on that test, not the end of the grading.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.grade.limits import MAX_JUDGING_BYTES, MAX_JUDGING_SECONDS

#: Seconds from one look at the clock to the next.
_LOOK_SECONDS = 0.1


class Spent(BaseException):
    """The allowance of processor time is used up.

    Not an ``Exception``: a test that expects an error must not take this for one.
    """


@contextlib.contextmanager
def allowance(
    seconds: float = MAX_JUDGING_SECONDS, memory: int = MAX_JUDGING_BYTES
) -> Iterator[None]:
    """Bound what this thread takes inside the block.

    Args:
        seconds: of processor time. Passing it raises :class:`Spent` between two steps of
            Python; one long step of a library is waited for.
        memory: bytes of addresses. Passing it is a ``MemoryError``, or a ``RuntimeError`` of
            torch.
    """
    with _at_most(memory), _clock(seconds):
        yield


@contextlib.contextmanager
def _at_most(memory: int) -> Iterator[None]:
    taken_pages = Path("/proc/self/statm")
    if not taken_pages.exists():  # another system than Linux: time is bounded, memory is not
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(taken_pages.read_text().split()[0]) * resource.getpagesize()
    limit = taken + memory
    for other in (soft, hard):
        limit = limit if other == resource.RLIM_INFINITY else min(limit, other)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def _clock(seconds: float) -> Iterator[None]:
    thread = threading.get_ident()
    clock = time.pthread_getcpuclockid(thread)
    block = _Block(thread, clock, time.clock_gettime(clock) + seconds)
    _watcher.watch(block)
    try:
        yield
    except Spent:
        block.sent = False
        raise
    finally:
        _watcher.leave(block)
        if block.sent:  # on its way, and it would arrive after the block
            _raise_in(thread, None)
    if block.sent:
        raise Spent


@dataclass(eq=False)
class _Block:
    """A block whose thread may take processor time until ``deadline`` on its own ``clock``."""

    thread: int
    clock: int
    deadline: float
    sent: bool = False


class _Watcher:
    """One thread that looks at the clocks of all blocks, as long as there are any."""

    def __init__(self) -> None:
        self.begin()
        os.register_at_fork(after_in_child=self.begin)  # a fork has this object, not its thread

    def begin(self) -> None:
        """No blocks, and no thread yet."""
        self._blocks: set[_Block] = set()
        self._lock = threading.Lock()  # held while Spent is sent: none comes after its block
        self._some = threading.Event()
        self._looking = False

    def watch(self, block: _Block) -> None:
        """Look at a block's clock from now on."""
        with self._lock:
            if not self._looking:
                self._looking = True
                threading.Thread(target=self._look, daemon=True).start()
            self._blocks.add(block)
        self._some.set()

    def leave(self, block: _Block) -> None:
        """Look at it no more; whether Spent was sent to it is settled then."""
        with self._lock:
            self._blocks.discard(block)

    def _look(self) -> None:
        while True:
            self._some.wait()
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                for block in [*self._blocks]:
                    if time.clock_gettime(block.clock) > block.deadline:
                        block.sent = True
                        _raise_in(block.thread, Spent)
                        self._blocks.discard(block)
                if not self._blocks:
                    self._some.clear()


_watcher = _Watcher()


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have an exception arise in a thread; None takes back one that has not arisen yet."""
    value = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), value)
