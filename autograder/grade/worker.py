"""A worker: it grades one submission after another and keeps warm what they share."""

from __future__ import annotations

import atexit
import threading
from dataclasses import replace
from functools import cache

from autograder.box.boxes import Boxes
from autograder.course.libraries import ask_for_libraries, libraries_to_import
from autograder.errors import WrongUse
from autograder.grade.engine import under
from autograder.grade.grading import grade
from autograder.grade.limits import MAX_TESTERS
from autograder.grade.result import Result
from autograder.grade.task import Task
from autograder.grade.tester import Tester


class OtherEngine(WrongUse):
    """A worker would come to another verdict; the message says what to do."""


_testers: dict[tuple[str, float], Tester] = {}


def _tester(task: Task) -> Tester:
    key = (task.bundle.digest, task.limits.test)
    if key not in _testers:
        while len(_testers) >= MAX_TESTERS:
            _testers.pop(next(iter(_testers)))
        _testers[key] = Tester(task.bundle, task.limits.test)
    return _testers[key]


@cache
def _boxes(sandbox: str, libraries: tuple[str, ...]) -> Boxes:
    """One fork server for each set of libraries: what a lesson needs, no other's boxes pay for."""
    boxes = Boxes(sandbox, libraries)
    atexit.register(boxes.close)
    return boxes


_one_at_a_time = threading.Lock()


def grade_task(task: Task) -> Result:
    """Grade one submission. Testers and the fork server stay warm for the next.

    A process grades one at a time, also when a Dask worker has several threads.

    Raises:
        LibraryLacking: the lesson needs a library that is not installed here.
        OtherEngine: this is a worker of another version than whoever asks.
    """
    here = under(task.sandbox)
    if here != task.under:
        raise OtherEngine(
            f"a worker does not grade as this machine does: {here} there, {task.under} here. "
            "Install the same versions on both."
        )
    ask_for_libraries(task.bundle.assignment, task.bundle.setup)
    with _one_at_a_time:
        result = grade(
            task.data,
            task.bundle,
            make_box=_boxes(task.sandbox, libraries_to_import(task.bundle.setup)).start,
            seed=task.seed,
            limits=task.limits,
            flags=task.flags,
            tester=_tester(task),
        )
    return replace(result, reached_under=here)
