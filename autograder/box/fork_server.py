"""The fork server: a process that has imported everything and forks a box for each submission.

It runs inside the sandbox and never runs student code itself; each box is a child with
namespaces, files and limits of its own. One box at a time: starting the next ends the
one before.

Control, over an inherited socket: ``F`` with a file descriptor of the box's channel forks a
box; ``K`` ends the box at once, ``W`` waits a moment for it to end by itself; both are
answered with its exit code (four bytes, negative for a signal). When the other
side hangs up, everything ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

STATUS = struct.Struct(">i")

#: Seconds that a box which has hung up may take to end.
PATIENCE = 5.0

#: Seconds from one look whether it has ended to the next.
LOOK = 0.005

#: The status of a box that was still running when it was to end.
ENDED_BY_US = -signal.SIGKILL


@dataclass
class _Child:
    """A box as the fork server sees it."""

    pid: int
    confined: bool

    def end(self, patience: float) -> int:
        """End the box and everything in it; its exit code, negative for a signal.

        A box that has hung up is given ``patience`` seconds to end by itself.
        """
        until = time.monotonic() + patience
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        while not ended and time.monotonic() < until:
            time.sleep(LOOK)
            ended, status = os.waitpid(self.pid, os.WNOHANG)
        # Confined, the process takes its whole namespace with it. Otherwise it leads a process
        # group; whatever has left that group survives.
        if not (ended and self.confined):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        if ended:
            return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return ENDED_BY_US


def serve(control: socket.socket, user: int | None, libraries: Sequence[str] = ()) -> None:
    """Fork boxes until the other side hangs up.

    Args:
        control: orders come from here.
        user: who confined boxes run as when this is root; None: boxes are not confined.
        libraries: modules that the boxes need beside those that every box has.
    """
    from autograder.box.inside import Inside

    inside = Inside()
    for library in libraries:
        importlib.import_module(library)
    gc.collect()
    gc.freeze()  # a collection in a box would touch, and so copy, every page of the libraries
    control.send(b"R")
    child: _Child | None = None
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if order == b"F":
            if child is not None:
                child.end(0)
            child = _fork(control, descriptors[0], user, inside)
            os.close(descriptors[0])
        elif order in (b"K", b"W"):
            status = child.end(PATIENCE if order == b"W" else 0) if child else ENDED_BY_US
            child = None
            control.send(STATUS.pack(status))
        else:
            if child is not None:
                child.end(0)
            return


def _fork(control: socket.socket, descriptor: int, user: int | None, inside: object) -> _Child:
    """Fork a box that serves on ``descriptor``."""
    from autograder.box.confinement import fork_into_a_pid_namespace

    confined = user is not None
    pid = fork_into_a_pid_namespace() if confined else os.fork()
    if pid == 0:
        status = 70
        with contextlib.suppress(BaseException):
            control.close()
            _box(descriptor, user, inside)
            status = 0
        os._exit(status)
    return _Child(pid, confined)


def _box(descriptor: int, user: int | None, student: object) -> None:
    """Where student code runs: when this process ends, the kernel ends all that is left in its pid
    namespace."""
    from autograder.box import inside
    from autograder.box.confinement import (
        WORK,
        BoxLimits,
        drop_privileges,
        limit_resources,
        own_file_systems,
        own_namespaces,
    )

    assert isinstance(student, inside.Inside)
    limits = BoxLimits()
    if user is None:
        os.setsid()
    else:
        # Where a memory cgroup runs out, the kernel is to end the box and not the fork server.
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
        own_namespaces()
        own_file_systems(limits)
    _keep_only(descriptor)
    channel = socket.socket(fileno=descriptor)
    if user is None:
        os.chdir(tempfile.mkdtemp(dir="."))
    else:
        os.chdir(WORK)
        limit_resources(limits)
        drop_privileges(user)
    inside.serve(channel, student)


def _keep_only(descriptor: int) -> None:
    """Close every other file: a pipe that boxes share would carry words between them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    for number in {int(name) for name in os.listdir("/dev/fd")} - {0, 1, 2, descriptor}:
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            os.close(number)


def main() -> None:
    """``python -m autograder.box.fork_server FD confined|free USER LIBRARY...``.

    It serves on an inherited socket.
    """
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    user = int(sys.argv[3]) if sys.argv[2] == "confined" else None
    libraries = sys.argv[4:]
    sys.argv = ["notebook"]
    serve(control, user, libraries)


if __name__ == "__main__":
    main()
