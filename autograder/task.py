"""One submission to grade, as a pure function: nothing is read but the task itself.

A worker may be a process of this machine or of another.
"""

from __future__ import annotations

import atexit
import hashlib
import threading
from dataclasses import astuple, dataclass
from functools import cache, cached_property
from pathlib import Path

import autograder
from autograder.boxes import Boxes
from autograder.bundle import Bundle
from autograder.grading import Graded, Limits, grade
from autograder.submission import Missing, Unreadable, find_notebook, read_file
from autograder.tester import Tester


@dataclass(frozen=True)
class Task:
    """What was handed in, and all that grading it needs."""

    data: bytes | Missing | Unreadable
    flags: tuple[str, ...]
    bundle: Bundle
    seed: int
    limits: Limits
    sandbox: str

    @cached_property
    def key(self) -> str:
        """The same for tasks that must come to the same verdict."""
        whole = hashlib.sha256()
        kind = type(self.data).__name__
        data = self.data if isinstance(self.data, bytes) else str(self.data).encode()
        settings = (autograder.__version__, kind, self.flags, self.seed, astuple(self.limits))
        for part in (repr(settings).encode(), self.bundle.digest.encode(), data):
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.hexdigest()


def make_task(folder: Path, bundle: Bundle, seed: int, limits: Limits, sandbox: str) -> Task:
    """The task of grading what lies in ``submitted/<student>/<assignment>/``."""
    data: bytes | Missing | Unreadable
    flags: list[str] = []
    try:
        if folder.is_symlink() or folder.parent.is_symlink():
            raise Unreadable("The submission's folder is a link. Hand in the files themselves.")
        path, flags = find_notebook(folder, bundle)
        data = read_file(path)
    except (Missing, Unreadable) as problem:
        data = problem
    return Task(data, tuple(flags), bundle, _own_seed(seed, data), limits, sandbox)


def _own_seed(seed: int, data: bytes | Missing | Unreadable) -> int:
    """A seed for this very notebook: expected values that its feedback shows are of no use to
    the next one. The same notebook always has the same."""
    content = data if isinstance(data, bytes) else b""
    return int.from_bytes(hashlib.sha256(seed.to_bytes(16, "big") + content).digest()[:4], "big")


#: Testers kept warm: one for each assignment of the course, and some more.
MOST_TESTERS = 16

_testers: dict[tuple[str, float], Tester] = {}


def _tester(task: Task) -> Tester:
    key = (task.bundle.digest, task.limits.test)
    if key not in _testers:
        while len(_testers) >= MOST_TESTERS:
            _testers.pop(next(iter(_testers)))
        _testers[key] = Tester(task.bundle, task.limits.test)
    return _testers[key]


@cache
def _boxes(sandbox: str) -> Boxes:
    boxes = Boxes(sandbox)
    atexit.register(boxes.close)
    return boxes


_one_at_a_time = threading.Lock()


def judge(task: Task) -> Graded:
    """Grade one submission. Testers and the zygote stay warm for the next.

    A process grades one at a time, also when a Dask worker has several threads.
    """
    with _one_at_a_time:
        return grade(
            task.data,
            task.bundle,
            make_box=_boxes(task.sandbox).start,
            seed=task.seed,
            limits=task.limits,
            flags=task.flags,
            tester=_tester(task),
        )
