"""A seccomp filter for student code: only what numerical Python needs is allowed.

Installed on the calling process with ``prctl``; it cannot be taken off again and is
inherited. Refused calls fail with EPERM; some with ENOSYS, so that glibc falls back to an older
one (``clone``, whose flags can be looked at, for ``clone3``). What is refused for a reason of
its own:

* sockets that are not AF_UNIX: others, such as vsock, are not held by a network namespace;
* memory that belongs to no process and to no file system of limited size (memfd, System V
  segments, semaphores and messages, shared anonymous mappings, ``vmsplice``), for the watch on
  a box's memory would not see it: /dev/shm is there instead; and larger socket buffers;
* what tells which pages of a library are in the page cache, or puts them out of it (``preadv2``
  with its flags, ``mincore``, ``cachestat``, ``fadvise64``, ``madvise`` with MADV_COLD and
  MADV_PAGEOUT): one box could leave the next a message there;
* what tells of other processes that have the same file open, as boxes have the libraries: locks
  (``flock``, and of ``fcntl`` all but a few commands), leases, ``inotify``; and to wait on a
  ``futex`` that others may wake, in a page of a library: such a wait ends at once, as if it had
  been woken, and whoever means its own processes asks again.

Source: seccomp(2), bpf(4); system call numbers from the kernel's tables.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct
from collections.abc import Iterator

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

# struct seccomp_data: nr, arch, instruction pointer, six 64-bit arguments.
_NR, _ARCH, _ARG0, _ARG1, _ARG2, _ARG3 = 0, 4, 16, 24, 32, 40

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: Namespaces a clone could make: cgroup, uts, ipc, user, pid, net, mount, time.
_NAMESPACE_FLAGS = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000
_NAMESPACE_FLAGS |= 0x20000000 | 0x40000000 | 0x00020000 | 0x00000080

#: The system calls that a box may make: what numerical Python, its threads, files, pipes and
#: subprocesses use. Whatever the kernel has beside, or will have, is refused.
_ALLOWED = {
    "x86_64": {
        "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6,
        "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "ioctl": 16,
        "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "pipe": 22,
        "select": 23, "sched_yield": 24, "mremap": 25, "msync": 26, "madvise": 28, "dup":
        32, "dup2": 33, "pause": 34, "nanosleep": 35, "getitimer": 36, "alarm": 37,
        "setitimer": 38, "getpid": 39, "sendfile": 40, "socket": 41, "connect": 42,
        "accept": 43, "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47,
        "shutdown": 48, "bind": 49, "listen": 50, "getsockname": 51, "getpeername": 52,
        "socketpair": 53, "setsockopt": 54, "getsockopt": 55, "clone": 56, "fork": 57,
        "vfork": 58, "execve": 59, "exit": 60, "wait4": 61, "kill": 62, "uname": 63,
        "fcntl": 72, "fsync": 74, "fdatasync": 75, "truncate": 76, "ftruncate":
        77, "getdents": 78, "getcwd": 79, "chdir": 80, "fchdir": 81, "rename": 82, "mkdir":
        83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "readlink":
        89, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "umask": 95,
        "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100,
        "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "setpgid": 109,
        "getppid": 110, "getpgrp": 111, "setsid": 112, "getgroups": 115, "getresuid": 118,
        "getresgid": 120, "getpgid": 121, "getsid": 124, "capget": 125, "rt_sigpending":
        127, "rt_sigtimedwait": 128, "rt_sigqueueinfo": 129, "rt_sigsuspend": 130,
        "sigaltstack": 131, "utime": 132, "mknod": 133, "statfs": 137, "fstatfs": 138,
        "getpriority": 140, "setpriority": 141, "sched_setparam": 142, "sched_getparam":
        143, "sched_setscheduler": 144, "sched_getscheduler": 145, "sched_get_priority_max":
        146, "sched_get_priority_min": 147, "sched_rr_get_interval": 148, "mlock": 149,
        "munlock": 150, "prctl": 157, "arch_prctl": 158, "setrlimit": 160, "gettid": 186,
        "getxattr": 191, "lgetxattr": 192, "fgetxattr": 193, "listxattr": 194, "llistxattr":
        195, "flistxattr": 196, "tkill": 200, "time": 201, "futex": 202,
        "sched_setaffinity": 203, "sched_getaffinity": 204, "epoll_create": 213,
        "getdents64": 217, "set_tid_address": 218, "restart_syscall": 219, "timer_create":
        222, "timer_settime": 223, "timer_gettime": 224, "timer_getoverrun": 225,
        "timer_delete": 226, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep":
        230, "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234,
        "utimes": 235, "get_mempolicy": 239, "waitid": 247, "ioprio_get": 252,
        "openat":
        257, "mkdirat": 258, "mknodat": 259, "fchownat": 260, "futimesat": 261,
        "newfstatat": 262, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat":
        266, "readlinkat": 267, "fchmodat": 268, "faccessat": 269, "pselect6": 270, "ppoll":
        271, "set_robust_list": 273, "get_robust_list": 274, "utimensat": 280,
        "epoll_pwait": 281, "signalfd": 282, "timerfd_create": 283, "eventfd": 284,
        "fallocate": 285, "timerfd_settime": 286, "timerfd_gettime": 287, "accept4": 288,
        "signalfd4": 289, "eventfd2": 290, "epoll_create1": 291, "dup3": 292, "pipe2": 293,
        "preadv": 295, "pwritev": 296, "rt_tgsigqueueinfo": 297,
        "recvmmsg": 299, "prlimit64": 302, "sendmmsg": 307, "getcpu": 309, "sched_setattr":
        314, "sched_getattr": 315, "renameat2": 316, "getrandom": 318, "execveat": 322,
        "membarrier": 324, "copy_file_range": 326, "statx": 332, "rseq": 334,
        "close_range": 436, "openat2": 437,
        "faccessat2": 439, "epoll_pwait2": 441, "fchmodat2": 452,
    },
    "aarch64": {
        "getxattr": 8, "lgetxattr": 9, "fgetxattr": 10, "listxattr": 11, "llistxattr": 12,
        "flistxattr": 13, "getcwd": 17, "eventfd2": 19, "epoll_create1": 20, "epoll_ctl":
        21, "epoll_pwait": 22, "dup": 23, "dup3": 24, "fcntl": 25, 
        "ioctl": 29, "ioprio_get": 31,
        "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36,
        "linkat": 37, "renameat": 38, "statfs": 43, "fstatfs": 44, "truncate": 45,
        "ftruncate": 46, "fallocate": 47, "faccessat": 48, "chdir": 49, "fchdir": 50,
        "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "openat": 56, "close":
        57, "pipe2": 59, "getdents64": 61, "lseek": 62, "read": 63, "write": 64, "readv":
        65, "writev": 66, "pread64": 67, "pwrite64": 68, "preadv": 69, "pwritev": 70,
        "sendfile": 71, "pselect6": 72, "ppoll": 73, "signalfd4": 74, "readlinkat": 78,
        "newfstatat": 79, "fstat": 80, "fsync": 82, "fdatasync": 83, "timerfd_create": 85,
        "timerfd_settime": 86, "timerfd_gettime": 87, "utimensat": 88, "capget": 90, "exit":
        93, "exit_group": 94, "waitid": 95, "set_tid_address": 96, "futex": 98,
        "set_robust_list": 99, "get_robust_list": 100, "nanosleep": 101, "getitimer": 102,
        "setitimer": 103, "timer_create": 107, "timer_gettime": 108, "timer_getoverrun":
        109, "timer_settime": 110, "timer_delete": 111, "clock_gettime": 113,
        "clock_getres": 114, "clock_nanosleep": 115, "sched_setparam": 118,
        "sched_setscheduler": 119, "sched_getscheduler": 120, "sched_getparam": 121,
        "sched_setaffinity": 122, "sched_getaffinity": 123, "sched_yield": 124,
        "sched_get_priority_max": 125, "sched_get_priority_min": 126,
        "sched_rr_get_interval": 127, "restart_syscall": 128, "kill": 129, "tkill": 130,
        "tgkill": 131, "sigaltstack": 132, "rt_sigsuspend": 133, "rt_sigaction": 134,
        "rt_sigprocmask": 135, "rt_sigpending": 136, "rt_sigtimedwait": 137,
        "rt_sigqueueinfo": 138, "rt_sigreturn": 139, "setpriority": 140, "getpriority": 141,
        "getresuid": 148, "getresgid": 150, "times": 153, "setpgid": 154, "getpgid": 155,
        "getsid": 156, "setsid": 157, "getgroups": 158, "uname": 160, "getrlimit": 163,
        "setrlimit": 164, "getrusage": 165, "umask": 166, "prctl": 167, "getcpu": 168,
        "gettimeofday": 169, "getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175,
        "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179, "socket": 198,
        "socketpair": 199, "bind": 200, "listen": 201, "accept": 202, "connect": 203,
        "getsockname": 204, "getpeername": 205, "sendto": 206, "recvfrom": 207,
        "setsockopt": 208, "getsockopt": 209, "shutdown": 210, "sendmsg": 211, "recvmsg":
        212, "brk": 214, "munmap": 215, "mremap": 216, "clone": 220, "execve": 221, "mmap":
        222, "mprotect": 226, "msync": 227, "mlock": 228, "munlock": 229, "madvise": 233,
        "get_mempolicy": 236, "rt_tgsigqueueinfo": 240, "accept4": 242, "recvmmsg": 243,
        "wait4": 260, "prlimit64": 261, "sendmmsg": 269, "sched_setattr": 274,
        "sched_getattr": 275, "renameat2": 276, "getrandom": 278, "execveat": 281,
        "membarrier": 283, "copy_file_range": 285, "statx": 291, "rseq": 293,
        "close_range": 436, "openat2": 437,
        "faccessat2": 439, "epoll_pwait2": 441, "fchmodat2": 452,
    },
}  # fmt: skip
#: Their libraries do without them when the kernel is too old to have them.
_UNKNOWN = {
    "x86_64": {"clone3": 435, "preadv2": 327, "pwritev2": 328},
    "aarch64": {"clone3": 435, "preadv2": 286, "pwritev2": 287},
}
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_MADV_COLD, _MADV_PAGEOUT = 20, 21
_SO_SNDBUFFORCE = 32
#: Of ``fcntl``: duplicates, flags of a descriptor and of an open file, the size of a pipe, seals.
_FCNTL = (0, 1, 2, 3, 4, 1030, 1032, 1034)
_FUTEX_WAKE, _FUTEX_PRIVATE = 1, 128
#: On x86_64, numbers from here on are the x32 calls: the same calls past our list.
_X32 = 0x40000000


class SeccompError(Exception):
    """The filter could not be installed; the message says why."""


def supported() -> bool:
    """Whether there is a filter for this kind of machine."""
    return platform.machine() in _AUDIT_ARCH


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


_REFUSE = _step(_RETURN, _ERRNO | errno.EPERM)
_UNHEARD = _step(_RETURN, _ERRNO | errno.ENOSYS)
_AGAIN = _step(_RETURN, _ERRNO | errno.EAGAIN)
_LET = _step(_RETURN, _ALLOW)


def filter_program(machine: str) -> bytes:
    """The BPF program for a kind of machine (``x86_64`` or ``aarch64``)."""
    program = [
        _step(_LOAD, _ARCH),
        _step(_EQUAL, _AUDIT_ARCH[machine], yes=1),
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD, _NR),
    ]
    if machine == "x86_64":
        program += [_step(_AT_LEAST, _X32, no=1), _REFUSE]
    for number in sorted(_UNKNOWN[machine].values()):
        program += [_step(_EQUAL, number, no=1), _UNHEARD]
    for name, checks in _looked_at():
        program += [_step(_EQUAL, _ALLOWED[machine][name], no=len(checks)), *checks]
    for first, last in _ranges(sorted(_ALLOWED[machine].values())):
        program += [_step(_AT_LEAST, first, no=2), _step(_AT_LEAST, last + 1, yes=1), _LET]
    program.append(_REFUSE)
    return b"".join(program)


def _looked_at() -> Iterator[tuple[str, list[bytes]]]:
    """The calls whose arguments are looked at, and how that ends in a decision."""

    def unless(argument: int, code: int, *values: int) -> list[bytes]:
        """Refused where the argument is one of these, or has one of these bits."""
        steps = [_step(code, value, yes=len(values) - place) for place, value in enumerate(values)]
        return [_step(_LOAD, argument), *steps, _LET, _REFUSE]

    def only(argument: int, *values: int) -> list[bytes]:
        steps = [_step(_EQUAL, value, yes=len(values) - at) for at, value in enumerate(values)]
        return [_step(_LOAD, argument), *steps, _REFUSE, _LET]

    yield "socket", only(_ARG0, int(socket.AF_UNIX))
    yield "socketpair", only(_ARG0, int(socket.AF_UNIX))
    yield "setsockopt", unless(_ARG2, _EQUAL, socket.SO_SNDBUF, _SO_SNDBUFFORCE)
    shared = [_step(_ANY_BIT, _MAP_ANONYMOUS, no=2), _step(_ANY_BIT, _MAP_SHARED, no=1)]
    yield "mmap", [_step(_LOAD, _ARG3), *shared, _REFUSE, _LET]
    yield "madvise", unless(_ARG2, _EQUAL, _MADV_COLD, _MADV_PAGEOUT)
    yield "clone", unless(_ARG0, _ANY_BIT, _NAMESPACE_FLAGS)
    yield "fcntl", only(_ARG1, *_FCNTL)
    waits = [_step(_ANY_BIT, _FUTEX_PRIVATE, yes=2), _step(_EQUAL, _FUTEX_WAKE, yes=1)]
    yield "futex", [_step(_LOAD, _ARG1), *waits, _AGAIN, _LET]


def _ranges(numbers: list[int]) -> list[tuple[int, int]]:
    """The first and last of each run of successive numbers."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ranges


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
