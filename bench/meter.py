"""The processor seconds and the memory of a command and of everything it starts.

``rusage`` is not enough: a box is ended by the kernel together with its namespace, and what
it used is then added to nobody's account. A control group counts it exactly. Where
none can be made, the processes are looked at many times a second, which misses the last
moment of each.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Seconds between two looks at the processor time, where no control group counts it.
LOOK_SECONDS = 0.02
#: Seconds between two looks at the memory.
MEMORY_SECONDS = 0.2

_SET_CHILD_SUBREAPER = 36
_MIB = 2**20


class CommandFailed(Exception):
    """A command that is measured did not succeed; the message holds what it printed."""


@dataclass(frozen=True)
class Cost:
    """What a command took.

    Attributes:
        processor: seconds, of all processes.
        wall: seconds.
        memory: most bytes at one time; a page that processes share counts once.
        worker: the same for the largest worker: a pool process and what it started.
    """

    processor: float
    wall: float
    memory: int
    worker: int

    @property
    def mib(self) -> float:
        """Most memory of all processes, in MiB."""
        return self.memory / _MIB

    @property
    def worker_mib(self) -> float:
        """Most memory of one worker, in MiB."""
        return self.worker / _MIB


def measure(
    command: list[str], folder: Path, *, environment: dict[str, str] | None = None
) -> tuple[Cost, str]:
    """Run a command in ``folder``; what it took, and what it printed.

    Raises:
        CommandFailed: it ended with another status than 0.
    """
    # What outlives its parent becomes a child of this process and is still found.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, _control_group() as group:
        started = time.monotonic()
        process = subprocess.Popen(
            [*_entering(group), *command],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        watch = _Watch(process.pid, count_processor=group is None)
        watch.start()
        status = process.wait()
        wall = time.monotonic() - started
        watch.end()
        _reap_orphans()
        processor = _used_by(group) if group is not None else watch.processor
        output.seek(0)
        said = output.read()
    if status != 0:
        raise CommandFailed(f"{' '.join(command)} ended with status {status}:\n{said[-3000:]}")
    return Cost(processor, wall, watch.memory, watch.worker), said


def how() -> str:
    """How processor seconds are counted on this machine."""
    with _control_group() as group:
        if group is not None:
            return "by the kernel, in a control group"
    return f"by looking at /proc every {LOOK_SECONDS * 1000:.0f} ms (a little too low)"


@contextlib.contextmanager
def _control_group() -> Iterator[Path | None]:
    """A control group (version 2) of its own, or None where none can be made."""
    group = None
    with contextlib.suppress(OSError, StopIteration):
        mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
        top = next(Path(fields[1]) for fields in mounts if fields[2] == "cgroup2")
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next(line[3:] for line in lines if line.startswith("0::"))
        wanted = top / own.strip("/") / f"bench-{os.getpid()}-{time.monotonic_ns()}"
        wanted.mkdir()
        if _may_enter(wanted):
            group = wanted
        else:
            wanted.rmdir()
    try:
        yield group
    finally:
        if group is not None:
            _remove(group)


def _may_enter(group: Path) -> bool:
    """Whether a process can be put into the group: on some machines only making it is allowed."""
    tried = subprocess.run([*_entering(group), "true"], capture_output=True, check=False)
    return tried.returncode == 0 and _used_by(group) >= 0


def _entering(group: Path | None) -> list[str]:
    """What to put before a command, so that it and all it starts belong to the group."""
    if group is None:
        return []
    script = 'echo $$ > "$0" && exec "$@"'
    return ["sh", "-c", script, str(group / "cgroup.procs")]


def _used_by(group: Path) -> float:
    for line in (group / "cpu.stat").read_text().splitlines():
        name, value = line.split()
        if name == "usage_usec":
            return int(value) / 1e6
    return -1.0


def _remove(group: Path) -> None:
    for _ in range(50):  # its last processes may still be ending
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.1)


def _reap_orphans() -> None:
    """Wait for what was left to this process, so that all of it has been counted."""
    until = time.monotonic() + 5
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.02)


class _Watch(threading.Thread):
    """Looks at a process and its descendants again and again."""

    def __init__(self, pid: int, count_processor: bool) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.count_processor = count_processor
        self.memory = 0
        self.worker = 0
        self._used: dict[tuple[int, int], int] = {}
        self._over = threading.Event()

    @property
    def processor(self) -> float:
        """Processor seconds seen so far."""
        return sum(self._used.values()) / 1e9

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look until it is over."""
        memory_at = 0.0
        pause = LOOK_SECONDS if self.count_processor else MEMORY_SECONDS
        while not self._over.wait(pause):
            if self.count_processor:
                for pid in (one for child in _children(os.getpid()) for one in _tree(child)):
                    self._look_at(pid)
            if time.monotonic() >= memory_at:
                self._weigh()
                memory_at = time.monotonic() + MEMORY_SECONDS

    def _look_at(self, pid: int) -> None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            began = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
            nanoseconds = sum(
                int((task / "schedstat").read_text().split()[0])
                for task in Path(f"/proc/{pid}/task").iterdir()
            )
            self._used[pid, began] = max(nanoseconds, self._used.get((pid, began), 0))

    def _weigh(self) -> None:
        self.memory = max(self.memory, sum(map(_proportional, _tree(self.pid))))
        for child in _children(self.pid):
            with contextlib.suppress(OSError):
                # multiprocessing forks the processes of a pool from this server
                if b"forkserver" in Path(f"/proc/{child}/cmdline").read_bytes():
                    for worker in _children(child):
                        self.worker = max(self.worker, sum(map(_proportional, _tree(worker))))


def _tree(pid: int) -> Iterator[int]:
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += _children(one)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _proportional(pid: int) -> int:
    """Bytes of a process; of a page that several hold, each counts its part.

    A box does not let an ordinary user look that close; then all its pages count.
    """
    for name, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    return 0
