"""What a box's process does to itself before any student code runs in it.

Called in a child of the fork server, inside bubblewrap: namespaces and file systems of its own,
limits, no capabilities, and the seccomp filter. Each step raises when it fails; a box
that is not confined is not used.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass

from autograder.box import seccomp

_NEWNS, _NEWIPC, _NEWPID = 0x00020000, 0x08000000, 0x20000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522

WORK = "/box"

_MIB = 2**20


@dataclass(frozen=True)
class BoxLimits:
    """What one process of a box may take; ``memory`` is for all of them together.

    ``kernel`` is for page tables and the like, where a memory cgroup counts them. Bytes, but for
    ``processes`` and ``processor_seconds``.
    """

    address_space: int = 4096 * _MIB
    data: int = 2048 * _MIB
    file: int = 64 * _MIB
    scratch: int = 128 * _MIB
    processes: int = 64
    processor_seconds: int = 600
    memory: int = 2048 * _MIB
    kernel: int = 64 * _MIB


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def fork_into_a_pid_namespace() -> int:
    """As ``os.fork``, and the child is the first process of a pid namespace of its own."""
    libc = _libc()
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        _check(libc.unshare(_NEWPID), "unshare")
        pid = os.fork()
        if pid:  # back: the kernel refuses a second namespace, and a child in an ended one
            _check(libc.setns(own, _NEWPID), "setns")
        return pid
    finally:
        os.close(own)


def own_namespaces() -> None:
    """New ipc and mount namespaces."""
    _check(_libc().unshare(_NEWNS | _NEWIPC), "unshare")


def own_file_systems(limits: BoxLimits) -> None:
    """Fresh /proc and scratch folders that nobody else sees; first process of a namespace.

    The scratch folders are parts of one file system: its limit is that of all together.
    """
    libc = _libc()
    _check(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "make / private")
    flags = _MS_NOSUID | _MS_NODEV
    # Of processes only, and read-only: the rest counts what other boxes do, and what is written to
    # a process's own, such as how soon the kernel ends it, is not the student's to choose.
    quiet = flags | _MS_NOEXEC | _MS_RDONLY
    if libc.mount(b"proc", b"/proc", b"proc", quiet, b"subset=pid") != 0:  # before Linux 5.8
        _check(libc.mount(b"proc", b"/proc", b"proc", quiet, None), "mount /proc")
    options = f"size={limits.scratch},nr_inodes=10000,mode=1777".encode()
    mounted = libc.mount(b"tmpfs", WORK.encode(), b"tmpfs", flags, options)
    _check(mounted, f"mount {WORK}")
    folders = {"shm": "/dev/shm"}
    if not any(path.startswith("/tmp/") for path in (sys.prefix, sys.base_prefix, __file__)):
        folders["tmp"] = "/tmp"  # else it holds the interpreter, and is read-only
    folders["work"] = WORK  # last: it covers the folder that all three are parts of
    for name, folder in folders.items():
        part = f"{WORK}/{name}"
        os.mkdir(part)
        os.chmod(part, 0o1777)
        bound = libc.mount(part.encode(), folder.encode(), None, _MS_BIND, None)
        _check(bound, f"mount {folder}")


def limit_resources(limits: BoxLimits) -> None:
    """The limits that the kernel keeps for each process."""
    import resource  # not on Windows, where students check their notebooks

    for kind, value in (
        (resource.RLIMIT_AS, limits.address_space),
        (resource.RLIMIT_DATA, limits.data),
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_CPU, limits.processor_seconds),
        (resource.RLIMIT_NOFILE, 512),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, _MIB),
    ):
        resource.setrlimit(kind, (value, value))


def drop_privileges(user: int) -> None:
    """Give up all capabilities and put the filter on; root becomes ``user``, who owns nothing."""
    libc = _libc()
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _check(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient capabilities")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(libc.capset(header, nothing), "capset")
    seccomp.install()
