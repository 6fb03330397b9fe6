"""A user namespace around the boxes of a grader that is root, with two users in it.

bubblewrap maps one user into one, and boxes need two: root, who prepares them, and the user that
they run as. But it says which process waits for its users, and waits until they are mapped.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path


class UserMaps:
    """The pipes by which bubblewrap says that it waits, and is told to go on."""

    def __init__(self, user: int) -> None:
        """Nothing is started yet.

        Args:
            user: that boxes run as, beside root.
        """
        self.user = user
        self._said, self._says = os.pipe()
        self._waits, self._go = os.pipe()

    @property
    def options(self) -> list[str]:
        """For bubblewrap."""
        waits = ["--userns-block-fd", str(self._waits)]
        return ["--unshare-user", *waits, "--info-fd", str(self._says)]

    @property
    def descriptors(self) -> tuple[int, int]:
        """That bubblewrap inherits."""
        return self._waits, self._says

    def write(self) -> None:
        """Map root and the user each to the same outside, and let bubblewrap go on. Where that
        fails, bubblewrap does, and says why."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        try:
            said = b""
            while more := os.read(self._said, 4096):
                said += more
                if said.rstrip().endswith(b"}"):
                    break
            if said:  # else it has ended
                waiting = Path("/proc") / str(json.loads(said)["child-pid"])
                with contextlib.suppress(OSError):
                    for name in ("uid_map", "gid_map"):
                        (waiting / name).write_text(f"0 0 1\n{self.user} {self.user} 1\n")
        finally:
            os.close(self._said)
            os.close(self._go)  # it goes on


def maps_for(user: int) -> UserMaps | None:
    """Maps for one start of bubblewrap, where this is root and the kernel gives it a namespace."""
    return UserMaps(user) if is_given() else None


@functools.cache
def is_given() -> bool:
    """Whether this is root and the kernel gives it such a namespace: by having one made."""
    program = shutil.which("bwrap")
    if os.getuid() != 0 or program is None:
        return False
    maps = UserMaps(100_000 + os.getpid())
    command = [program, *maps.options, "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc"]
    command += ["--", "/bin/sh", "-c", "exit 0"]
    with contextlib.suppress(OSError):
        trial = subprocess.Popen(
            command,
            env={},
            pass_fds=maps.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        maps.write()
        try:
            return trial.wait(60) == 0
        except subprocess.TimeoutExpired:
            trial.kill()
            trial.wait()
    return False
