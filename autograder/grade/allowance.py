"""What judging one test may take on the grader's side: processor time and memory.

What comes out of a box is plain data within the caps of :mod:`autograder.box.wire`, and still a
student chooses how much of it there is. Whoever compares it is given an allowance; what passes
it is a verdict on that test, not the end of the grading.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator
from pathlib import Path

#: Processor seconds of the thread that judges; waiting for a box costs none.
MOST_SECONDS = 4.0
#: Bytes of addresses beyond what the process has already.
MOST_MEMORY = 2**30

#: Seconds from one look at the clock to the next.
_LOOK_SECONDS = 0.1


class Spent(BaseException):
    """The allowance of processor time is used up.

    Not an ``Exception``: a test that expects an error must not take this for one.
    """


@contextlib.contextmanager
def allowance(seconds: float = MOST_SECONDS, memory: int = MOST_MEMORY) -> Iterator[None]:
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
    deadline = time.clock_gettime(clock) + seconds
    over = threading.Event()
    ended = threading.Lock()  # held while Spent is sent, so that none is sent to what comes after
    sent = False

    def watch() -> None:
        nonlocal sent
        while not over.wait(_LOOK_SECONDS):
            if time.clock_gettime(clock) > deadline:
                with ended:
                    if not over.is_set():
                        sent = True
                        _raise_in(thread, Spent)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except Spent:
        sent = False
        raise
    finally:
        with ended:
            over.set()
            if sent:  # on its way, and it would arrive after the block
                _raise_in(thread, None)
        watcher.join()
    if sent:
        raise Spent


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have an exception arise in a thread; None takes back one that has not arisen yet."""
    value = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), value)
