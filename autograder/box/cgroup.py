"""A memory cgroup around a fork server and its box, where this machine grants one.

The watch (:mod:`autograder.box.memory`) looks every fifth of a second and sees what ``/proc``
shows. A memory cgroup is kept by the kernel, and counts all that it gives: pages, page tables,
socket buffers, scratch. One can be had where this process may make one below its own: as root with
version 1, or in a unit to which systemd delegated the controller with version 2
(``systemd-run --user --scope -p Delegate=yes autograder grade ...``).

Sources: the kernel's ``admin-guide/cgroup-v2`` and ``cgroup-v1/memory``; systemd's
``CGROUP_DELEGATION``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

#: Folders of ours are named so, with the number of the process that made them.
_PREFIX = "autograder-"

#: Where version 2 wants the processes of a unit that has groups below it: in a leaf.
_LEAF = "autograder"

#: Seconds that the processes of an ended fork server may take to leave its group.
_PATIENCE = 2.0


@dataclass(frozen=True)
class _Version:
    """What the files of a version are called, and what in ``memory.stat`` cannot be given back."""

    limit: str
    swap: str
    held: tuple[str, ...]
    ended: str


_ONE = _Version(
    "memory.limit_in_bytes",
    "memory.memsw.limit_in_bytes",
    ("rss", "shmem"),
    "memory.oom_control",
)
_TWO = _Version("memory.max", "memory.swap.max", ("anon", "shmem", "kernel"), "memory.events")


class MemoryGroup:
    """One memory cgroup of ours. Make it with :meth:`make`, join it with :meth:`joining`."""

    def __init__(self, folder: Path, version: _Version) -> None:
        self.folder = folder
        self._version = version

    @classmethod
    def make(
        cls, mounts: Path = Path("/proc/self/mountinfo"), own: Path = Path("/proc/self/cgroup")
    ) -> MemoryGroup | None:
        """A new group below that of this process; None where the machine grants none."""
        place = _place(mounts, own)
        if place is None:
            return None
        parent, version = place
        _sweep(parent)
        folder = parent / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        group = cls(folder, version)
        with contextlib.suppress(OSError):
            folder.mkdir()
            if os.access(folder / version.limit, os.W_OK):
                return group
        group.remove()
        return None

    def joining(self, command: list[str]) -> list[str]:
        """The command that runs ``command`` in this group."""
        join = 'echo $$ > "$0"; exec "$@"'  # whether it did is looked at afterwards
        return ["/bin/sh", "-c", join, str(self.folder / "cgroup.procs"), *command]

    def has(self, pid: int) -> bool:
        """Whether a process is in it."""
        with contextlib.suppress(OSError):
            return str(pid) in (self.folder / "cgroup.procs").read_text().split()
        return False

    def held(self) -> int:
        """Bytes that its processes hold and that the kernel cannot take back."""
        return self.taken(scratch=0)

    def taken(self, scratch: int) -> int:
        """The same, but for up to ``scratch`` bytes of what lies in file systems in memory."""
        numbers = self._numbers("memory.stat")
        held = sum(numbers.get(name, 0) for name in self._version.held)
        return held - min(numbers.get("shmem", 0), scratch)

    def allow(self, memory: int) -> None:
        """From now on its processes hold at most ``memory`` bytes together, without swap.

        Raises:
            OSError: the kernel does not take the limit.
        """
        swap = self.folder / self._version.swap
        accounted = swap.exists()  # a kernel that does not account swap has no such file
        if accounted and self._version is _ONE:  # memory and swap together, never below memory
            swap.write_text("-1")
        (self.folder / self._version.limit).write_text(str(memory))
        if accounted:
            swap.write_text(str(memory) if self._version is _ONE else "0")

    def ended_some(self) -> int:
        """How many of its processes the kernel ended since they wanted more."""
        return self._numbers(self._version.ended).get("oom_kill", 0)

    def _numbers(self, name: str) -> dict[str, int]:
        """A file of the kernel's with a name and a number in each line."""
        lines = (self.folder / name).read_text().splitlines()
        return {key: int(number) for key, number in (line.split() for line in lines)}

    def remove(self) -> None:
        """Take it away once its processes have ended; what does not go is swept later."""
        until = time.monotonic() + _PATIENCE
        while self.folder.exists():
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            if time.monotonic() > until:
                return
            time.sleep(0.02)


def how_memory_is_held() -> str:
    """One sentence for ``autograder doctor``: who keeps a box's memory within its limit."""
    group = MemoryGroup.make()
    if group is None:
        return (
            "memory is watched, not reserved: no memory cgroup can be made here; for one, grade "
            "as root, or with systemd-run --user --scope -p Delegate=yes autograder grade ..."
        )
    group.remove()
    return "memory is held by the kernel: each box is in a memory cgroup of its own"


def _place(mounts: Path, own: Path) -> tuple[Path, _Version] | None:
    """The folder below which groups can be made."""
    try:
        hierarchies = [line.split(":", 2) for line in own.read_text().splitlines()]
        mounted = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return None
    for _, controllers, path in hierarchies:
        if "memory" in controllers.split(","):
            parent = _folder(mounted, "cgroup", "memory", path)
            return (parent, _ONE) if parent and os.access(parent, os.W_OK) else None
    for number, controllers, path in hierarchies:
        if number == "0" and not controllers:
            parent = _folder(mounted, "cgroup2", "", path)
            parent = parent and _prepared(parent)
            return (parent, _TWO) if parent else None
    return None


def _folder(mounted: list[list[str]], kind: str, option: str, path: str) -> Path | None:
    """Where a hierarchy is mounted, and in it the group of this process."""
    for words in mounted:
        tail = words[words.index("-") + 1 :] if "-" in words else []
        if len(tail) >= 3 and tail[0] == kind and (not option or option in tail[2].split(",")):
            root, point = words[3], Path(words[4])
            inside = os.path.relpath(path, root) if path.startswith(root) else "."
            folder = point / inside
            return folder if folder.is_dir() else None
    return None


def _prepared(folder: Path) -> Path | None:
    """Below which group others can be made that have the controller; version 2.

    There a group holds processes or gives controllers to groups below it, not both: so the
    processes of a unit that was delegated to us go into a leaf first. Nobody else's unit is
    touched.
    """
    if folder.name == _LEAF:  # a worker, whose parent has done this
        return folder.parent if _gives_memory(folder.parent) else None
    if not _delegated(folder):
        return None
    try:
        leaf = folder / _LEAF
        leaf.mkdir(exist_ok=True)
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(pid)
        (folder / "cgroup.subtree_control").write_text("+memory")
    except OSError:
        return None
    return folder if _gives_memory(folder) else None


def _gives_memory(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        given = (folder / "cgroup.subtree_control").read_text().split()
        return "memory" in given and os.access(folder, os.W_OK)
    return False


def _delegated(folder: Path) -> bool:
    """Whether systemd says that what is below this group is ours."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _sweep(parent: Path) -> None:
    """Remove groups whose maker has ended without doing so."""
    for folder in parent.glob(f"{_PREFIX}*-*"):
        maker = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if maker.isdecimal() and not Path(f"/proc/{maker}").exists():
            with contextlib.suppress(OSError):  # it still holds processes
                folder.rmdir()
