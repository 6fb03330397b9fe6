"""The sandbox around student code: bubblewrap, namespaces, limits, a system call filter.

:func:`examine` says what this machine can do by doing it. Nothing is assumed from a
version or a setting.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import autograder
from autograder.box import seccomp
from autograder.box.bubblewrap import (
    BUBBLEWRAP,
    NONE,
    box_environment,
    bubblewrap,
    fork_server_command,
    user_of_boxes,
)
from autograder.box.cgroup import MemoryGroup
from autograder.box.confinement import BoxLimits
from autograder.box.memory import memory_below
from autograder.box.patience import Taken, taken_below
from autograder.box.user_namespace import maps_for

#: Seconds until a fork server is ready: it imports torch.
START_SECONDS = 300.0

#: Seconds that a trial of a protection may take, and may take when it is tried once more.
TRIAL_SECONDS = (60.0, 240.0)

_RAN_OUT = (
    "the trial did not end in time, also when it was tried again with more time: the machine is "
    "too busy to tell; run the same command again when it is less so"
)


__all__ = [
    "BUBBLEWRAP",
    "NONE",
    "ForkServer",
    "NoSandbox",
    "Protection",
    "best_backend",
    "choose",
    "examine",
    "lacking",
]


class NoSandbox(Exception):
    """Student code cannot be confined here; the message says what to install or allow."""


@dataclass(frozen=True)
class Protection:
    """One thing the sandbox relies on, and whether this machine gives it.

    ``tried`` is false where the trial did not end: then nothing is known, and ``advice`` says so.
    """

    name: str
    works: bool
    advice: str = ""
    tried: bool = True

    def __str__(self) -> str:
        """What is lacking and what to do, for a message."""
        return f"{'not so' if self.tried else 'not known'}: {self.name} ({self.advice})"


def examine() -> list[Protection]:
    """Try each protection on this machine."""
    protections = [
        Protection(
            "bubblewrap is installed",
            shutil.which("bwrap") is not None,
            "install it: apt-get install bubblewrap, or dnf install bubblewrap",
        ),
        Protection(
            "a system call filter exists for this processor",
            seccomp.supported(),
            "x86_64 and aarch64 have one; grade on such a machine",
        ),
    ]
    for trial in (_try_import, _try_confinement):  # each needs what stands before it
        if all(protection.works for protection in protections):
            protections.append(trial())
    return protections


def _try_import() -> Protection:
    """Whether a box, which knows this environment only, would run the code that runs here."""
    name = "the code that runs is the code that is installed"
    code = "import autograder; print(autograder.__file__)"
    done = _ended([sys.executable, "-I", "-c", code])
    if done is None:
        return Protection(name, False, _RAN_OUT, tried=False)
    here = Path(autograder.__file__).resolve().parent
    says = done.stdout.strip()
    there = Path(says).resolve().parent if done.returncode == 0 and says else None
    would = f"a box would run {there}" if there else "a box would find none"
    return Protection(
        name,
        there == here,
        f"{here} runs, and {would}, since {sys.prefix} has that installed; use the environment "
        f"of this copy (make setup), or install this copy there: {sys.executable} -m pip install "
        f"--no-deps --editable {here.parent}",
    )


def _try_confinement() -> Protection:
    """Start bubblewrap as a fork server is started, and confine a process in it as a box is."""
    name = "a box can be confined (namespaces, mounts, limits, user, filter)"
    code = (
        "import os, sys\n"
        "from autograder.box.confinement import *\n"
        "pid = fork_into_a_pid_namespace()\n"
        "if pid == 0:\n"
        "    try:\n"
        "        own_namespaces()\n"
        "        limits = BoxLimits()\n"
        "        own_file_systems(limits); os.chdir(WORK)\n"
        "        limit_resources(limits); drop_privileges(100_000)\n"
        "        open('probe', 'w').close()\n"
        "    except BaseException as error:\n"
        "        print(error, file=sys.stderr, flush=True); os._exit(1)\n"
        "    os._exit(0)\n"
        "os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    try:
        done = _ended([*bubblewrap(), "--", sys.executable, "-I", "-c", code])
    except OSError as error:
        return Protection(name, False, f"bwrap cannot be started: {error}; install it again")
    if done is None:
        return Protection(name, False, _RAN_OUT, tried=False)
    said = done.stderr.strip()[-300:] or f"it ended with status {done.returncode} and no word"
    return Protection(
        name,
        done.returncode == 0,
        f"{said}; allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, on "
        "Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), in a container run it with "
        "the privileges that bubblewrap needs",
    )


def _ended(command: list[str]) -> subprocess.CompletedProcess[str] | None:
    """A command that was run to its end; None if it ran out of time each time it was tried."""
    for seconds in TRIAL_SECONDS:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                command, env={}, capture_output=True, text=True, timeout=seconds, check=False
            )
    return None


def lacking(protections: list[Protection]) -> str:
    """What this machine does not give, and what to do; an empty string when it gives all."""
    return "; ".join(str(protection) for protection in protections if not protection.works)


def best_backend(protections: list[Protection]) -> str:
    """``bubblewrap`` where every protection works, ``none`` where one is known to be lacking.

    Raises:
        NoSandbox: it is not known, since a trial did not end.
    """
    if all(protection.works for protection in protections):
        return BUBBLEWRAP
    if any(protection.tried and not protection.works for protection in protections):
        return NONE
    raise NoSandbox(
        "whether student code can be confined on this machine could not be tried: "
        f"{lacking(protections)}"
    )


def choose(wanted: str) -> str:
    """The backend for ``auto``, ``bubblewrap`` or ``none``.

    Raises:
        NoSandbox: the sandbox is wanted and does not work here.
    """
    if wanted == NONE:
        return NONE
    protections = examine()
    if best_backend(protections) == NONE:
        raise NoSandbox(
            f"student code cannot be confined on this machine: {lacking(protections)}. "
            "To grade without a sandbox, with submissions you trust, say --sandbox none."
        )
    return BUBBLEWRAP


class ForkServer:
    """A running fork server: starts boxes in milliseconds, one at a time."""

    def __init__(self, backend: str, scratch: Path, libraries: tuple[str, ...] = ()) -> None:
        """Start it and wait until it is ready.

        Args:
            backend: ``bubblewrap`` or ``none``.
            scratch: the working folder of boxes that are not confined.
            libraries: modules to import beside those that every box has.

        Raises:
            NoSandbox: it did not start; the message holds what it printed.
        """
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        confined = backend == BUBBLEWRAP
        environment = {} if confined else box_environment(str(scratch))
        self.confined = confined
        self.scratch = scratch
        self._group = MemoryGroup.make() if confined else None
        maps = maps_for(user_of_boxes()) if confined else None
        command = fork_server_command(backend, its.fileno(), libraries, maps)
        with contextlib.ExitStack() as stack:
            stack.callback(its.close)
            self.process = subprocess.Popen(
                self._group.joining(command) if self._group else command,
                env=environment,
                cwd=None if confined else scratch,
                pass_fds=[its.fileno(), *(maps.descriptors if maps else ())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            if maps is not None:
                maps.write()
        self.control = mine
        self._asleep = 0
        self._ended_before = 0
        self._next_exact = 0.0
        mine.settimeout(START_SECONDS)
        late = ""
        try:
            ready = mine.recv(1)
        except TimeoutError:
            ready, late = b"", f"it was not ready within {START_SECONDS:g} seconds; "
        except OSError:
            ready = b""
        if ready != b"R":
            self.process.kill()
            said = self.process.communicate()[1].decode("utf-8", "replace")
            self._leave_group()
            raise NoSandbox(f"the sandbox did not start: {late}{said.strip()[-500:]}")
        self._asleep = memory_below(self.process.pid)
        if self._group is not None and not self._group.has(self.process.pid):
            self._leave_group()  # the machine let us make it and not use it: memory is watched
        self._held_asleep = self._group.held() if self._group else 0

    def fork(self, descriptor: int, most_memory: int) -> None:
        """Fork a box that serves on ``descriptor``.

        Args:
            descriptor: of its channel.
            most_memory: bytes that its processes may take together, beside its scratch; held by
                the kernel where there is a memory cgroup.
        """
        if self._group is not None:
            limits = BoxLimits()
            self._group.allow(self._held_asleep + most_memory + limits.scratch + limits.kernel)
            self._ended_before = self._group.ended_some()
        socket.send_fds(self.control, [b"F"], [descriptor])

    def end_box(self, *, hung_up: bool = False) -> int:
        """End the box; its exit code, negative for a signal.

        Args:
            hung_up: it is about to end by itself, so that its own status can be had.
        """
        from autograder.box.fork_server import STATUS

        self.control.sendall(b"W" if hung_up else b"K")
        words = b""
        while len(words) < STATUS.size:
            more = self.control.recv(STATUS.size - len(words))
            if not more:
                raise NoSandbox("the fork server ended")
            words += more
        return int(STATUS.unpack(words)[0])

    def memory(self, enough: int = 0) -> int:
        """Bytes that the box's processes hold, less what the fork server holds.

        Args:
            enough: a rough figure will do while it is below this; the exact one costs the
                kernel a walk through all pages. Where there is a memory cgroup, the kernel
                has counted.
        """
        if self._group is not None:
            with contextlib.suppress(OSError, ValueError):
                return max(0, self._group.taken(BoxLimits().scratch) - self._held_asleep)
        rough = memory_below(self.process.pid, exact=False) - self._asleep
        if rough < enough:
            return max(0, rough)
        # Processes of a box that were forked from each other hold the libraries together. What
        # each has beyond them is looked at always, the exact figure a tenth of the time.
        likely = memory_below(self.process.pid, exact=False, each_less=self._asleep)
        if likely < enough and time.monotonic() < self._next_exact:
            return likely
        started = time.monotonic()
        exact = memory_below(self.process.pid) - self._asleep
        ended = time.monotonic()
        self._next_exact = ended + 9 * (ended - started)
        return max(0, exact)

    def taken(self) -> Taken:
        """What it and the boxes that it forked took of the processor."""
        return taken_below(self.process.pid)

    @property
    def ran_out(self) -> bool:
        """Whether the kernel ended a process of the latest box, which wanted more memory."""
        return self._group is not None and self._group.ended_some() > self._ended_before

    def close(self) -> None:
        """End the fork server and whatever it started."""
        self.control.close()
        self.process.kill()
        self.process.communicate()
        self._leave_group()

    def _leave_group(self) -> None:
        if self._group is not None:
            self._group.remove()
            self._group = None
