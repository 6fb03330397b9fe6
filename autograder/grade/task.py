"""One submission to grade, as a pure function: nothing is read but the task itself.

A worker may be a process of this machine or of another.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path

from autograder.course.bundle import Bundle
from autograder.grade import reasons
from autograder.grade.engine import under
from autograder.grade.flags import Flag
from autograder.grade.limits import Limits
from autograder.grade.submission import Missing, Unreadable, find_notebook, read_file


@dataclass(frozen=True)
class Task:
    """What was handed in, and all that grading it needs."""

    data: bytes | Missing | Unreadable
    flags: tuple[Flag, ...]
    bundle: Bundle
    seed: int
    limits: Limits
    sandbox: str
    #: What it is to be reached under; see :mod:`.engine`.
    under: str

    @cached_property
    def key(self) -> str:
        """The same for tasks that must come to the same verdict, if reached under the same."""
        whole = hashlib.sha256()
        kind = type(self.data).__name__
        data = self.data if isinstance(self.data, bytes) else str(self.data).encode()
        settings = (kind, self.flags, self.seed, astuple(self.limits))
        for part in (repr(settings).encode(), self.bundle.digest.encode(), data):
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.hexdigest()


def make_task(folder: Path, bundle: Bundle, seed: int, limits: Limits, sandbox: str) -> Task:
    """The task of grading what lies in ``submitted/<student>/<assignment>/``."""
    data: bytes | Missing | Unreadable
    flags: list[Flag] = []
    try:
        if folder.is_symlink() or folder.parent.is_symlink():
            raise Unreadable(f"{reasons.FOLDER_A_LINK}. Hand in the files themselves.")
        path, flags = find_notebook(folder, bundle)
        data = read_file(path, int(limits.size * 2**20))
    except (Missing, Unreadable) as problem:
        data = problem
    own = _own_seed(seed, data)
    return Task(data, tuple(flags), bundle, own, limits, sandbox, under(sandbox))


def _own_seed(seed: int, data: bytes | Missing | Unreadable) -> int:
    """A seed for this very notebook: expected values that its feedback shows are of no use to
    the next one. The same notebook always has the same."""
    content = data if isinstance(data, bytes) else b""
    return int.from_bytes(hashlib.sha256(seed.to_bytes(16, "big") + content).digest()[:4], "big")
