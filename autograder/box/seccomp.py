"""A seccomp filter for student code: what numerical Python never needs is refused.

Installed on the calling process with ``prctl``; it cannot be taken off again and is
inherited. Refused calls fail with EPERM (``clone3`` with ENOSYS, so that glibc falls back to
``clone``, whose flags can be looked at). Only AF_UNIX sockets can be made: others, such as
vsock, are not held by a network namespace. Memory that belongs to no process and to no
file system of limited size (memfd, System V segments, shared anonymous mappings) is refused,
for the watch on a box's memory would not see it; /dev/shm is there instead.

Source: seccomp(2), bpf(4); system call numbers from the kernel's tables.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

# struct seccomp_data: nr, arch, instruction pointer, six 64-bit arguments.
_NR, _ARCH, _ARG0, _ARG3 = 0, 4, 16, 40

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: Namespaces a clone could make: cgroup, uts, ipc, user, pid, net, mount, time.
_NAMESPACE_FLAGS = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000
_NAMESPACE_FLAGS |= 0x20000000 | 0x40000000 | 0x00020000 | 0x00000080

_REFUSED = {
    "x86_64": {
        "ptrace": 101, "syslog": 103, "pivot_root": 155, "chroot": 161, "acct": 163,
        "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "init_module": 175, "delete_module": 176, "quotactl": 179, "kexec_load": 246,
        "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
        "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320,
        "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426,
        "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430,
        "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438,
        "mount_setattr": 442, "shmget": 29, "memfd_create": 319, "memfd_secret": 447,
    },
    "aarch64": {
        "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60,
        "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "syslog": 116, "ptrace": 117, "reboot": 142, "add_key": 217,
        "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225,
        "perf_event_open": 241, "fanotify_init": 262, "name_to_handle_at": 264,
        "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
        "userfaultfd": 282, "kexec_file_load": 294, "io_uring_setup": 425,
        "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
        "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
        "pidfd_getfd": 438, "mount_setattr": 442, "shmget": 194, "memfd_create": 279,
        "memfd_secret": 447,
    },
}  # fmt: skip
_SOCKET = {"x86_64": 41, "aarch64": 198}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_MMAP = {"x86_64": 9, "aarch64": 222}
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
#: On x86_64, numbers from here on are the x32 calls: the same calls past our list.
_X32 = 0x40000000


class SeccompError(Exception):
    """The filter could not be installed; the message says why."""


def supported() -> bool:
    """Whether there is a filter for this kind of machine."""
    return platform.machine() in _AUDIT_ARCH


def filter_program(machine: str) -> bytes:
    """The BPF program for a kind of machine (``x86_64`` or ``aarch64``)."""

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    refuse = step(_RETURN, _ERRNO | errno.EPERM)
    program = [
        step(_LOAD, _ARCH),
        step(_EQUAL, _AUDIT_ARCH[machine], yes=1),
        step(_RETURN, _KILL_PROCESS),
        step(_LOAD, _NR),
    ]
    if machine == "x86_64":
        program += [step(_AT_LEAST, _X32, no=1), refuse]
    program += [step(_EQUAL, _CLONE3, no=1), step(_RETURN, _ERRNO | errno.ENOSYS)]
    for number in sorted(_REFUSED[machine].values()):
        program += [step(_EQUAL, number, no=1), refuse]
    program += [
        step(_EQUAL, _SOCKET[machine], no=4),
        step(_LOAD, _ARG0),
        step(_EQUAL, int(socket.AF_UNIX), yes=1),
        refuse,
        step(_RETURN, _ALLOW),
        step(_EQUAL, _MMAP[machine], no=5),
        step(_LOAD, _ARG3),
        step(_ANY_BIT, _MAP_ANONYMOUS, no=2),
        step(_ANY_BIT, _MAP_SHARED, no=1),
        refuse,
        step(_RETURN, _ALLOW),
        step(_EQUAL, _CLONE[machine], no=3),
        step(_LOAD, _ARG0),
        step(_ANY_BIT, _NAMESPACE_FLAGS, no=1),
        refuse,
        step(_RETURN, _ALLOW),
    ]
    return b"".join(program)


def install() -> None:
    """Install the filter on this process and all it starts.

    Raises:
        SeccompError: no filter for this machine, or the kernel refuses it.
    """
    machine = platform.machine()
    if machine not in _AUDIT_ARCH:
        raise SeccompError(f"there is no seccomp filter for {machine}")
    program = filter_program(machine)
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    whole = Program(len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise SeccompError(f"no_new_privs: errno {ctypes.get_errno()}")
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(whole), 0, 0) != 0:
        raise SeccompError(f"the kernel refuses the filter: errno {ctypes.get_errno()}")
