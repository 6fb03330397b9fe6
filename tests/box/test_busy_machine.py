"""A verdict depends on what was handed in, and not on the machine: its load, its devices."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.box.patience import Budget, Patience, Taken
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.grade.limits import Limits
from autograder.grade.result import GRADED, TIMEOUT, Result, TestResult
from autograder.marking import grade_class as grading
from autograder.marking.grade_class import grade_class

from ..classes import LESSON, hand_in, new, solved
from ..conftest import COURSE
from ..submissions import boxes, graded, max_points, notebook_with, points, why_not_confined
from ..tiny import WITH_TORCH, tiny_course

pytestmark = pytest.mark.slow

FULL = {"double": 3.0, "quadruple": 4.0, "answer_size": 1.0}

#: Takes so many processor seconds, by the clock at least as long.
WORKS = "def double(x):\n    import time\n    end = time.process_time() + {}\n"
WORKS += "    while time.process_time() < end:\n        pass\n"
RIGHT = (
    "    if np.any(np.asarray(x) < 0):\n        raise ValueError('negative')\n    return 2 * x\n"
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    place = tmp_path_factory.mktemp("bundle")
    lesson = tiny_course(place / "course").lesson("01")
    lesson.source_path.write_text(WITH_TORCH)
    write_source(lesson, place / "01-tiny")
    return Bundle.load(place / "01-tiny")


def with_first(bundle: Bundle, source: str, **instead: str) -> Any:
    """The right notebook with a cell of its own after the setup."""
    notebook = notebook_with(bundle, instead)
    setup = [cell.cell_type for cell in notebook.cells].index("code")
    notebook.cells.insert(setup + 1, nbformat.v4.new_code_cell(source))
    return notebook


@contextlib.contextmanager
def stuttering(pid: int, share: float) -> Iterator[None]:
    """As on a busy machine: all below a process run for a share of the time only."""
    done = threading.Event()

    def stop_and_go() -> None:
        while not done.is_set():
            _signal(pid, signal.SIGSTOP)
            time.sleep(0.05 * (1 - share) / share)
            _signal(pid, signal.SIGCONT)
            time.sleep(0.05)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: int) -> None:
    """Send a signal to boxes, which are forks of a fork server."""
    for process in [box for fork_server in _below(pid, 2) for box in _below(fork_server, 1)]:
        with contextlib.suppress(OSError):
            os.kill(process, number)


def _below(pid: int, levels: int) -> list[int]:
    """The processes so many levels below another."""
    if not levels:
        return [pid]
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += [int(text) for text in (task / "children").read_text().split()]
    return [below for child in children for below in _below(child, levels - 1)]


@pytest.mark.skipif(bool(why_not_confined()), reason=why_not_confined())
def test_work_that_is_within_its_limit_is_so_on_a_busy_machine(bundle: Bundle) -> None:
    slow = WORKS.format(0.8) + RIGHT
    notebook = notebook_with(bundle, {"double": slow})
    graded(bundle, notebook_with(bundle))  # the fork server is there
    fork_server = boxes()._fork_server
    assert fork_server is not None and fork_server.confined
    limits = Limits(cell=5, test=3, notebook=60)
    started = time.monotonic()
    with stuttering(fork_server.process.pid, 0.35):
        verdict = graded(bundle, notebook, limits=limits)
    assert points(verdict) == FULL and not verdict.out_of_time
    assert time.monotonic() - started > 5  # by the clock it was late


@pytest.mark.skipif(bool(why_not_confined()), reason=why_not_confined())
def test_lesson_10_has_all_its_points_while_seventeen_wait_for_two_processors(
    tmp_path: Path,
) -> None:
    """As it was reported: demonstrations that train longer, and checks that train as well."""
    lesson = COURSE.lesson("10")
    write_source(lesson, tmp_path / lesson.folder)
    whole = Bundle.load(tmp_path / lesson.folder)
    notebook = notebook_with(whole)
    for cell in notebook.cells:
        if "def overfit(" in cell.source:
            cell.source = cell.source.replace("steps=", "steps=10 * ")
    assert "steps=10 * " in str(notebook.cells)
    boxes().start({}).close()
    fork_server = boxes()._fork_server
    assert fork_server is not None
    with stuttering(fork_server.process.pid, 2 / 17):
        verdict = graded(whole, notebook)
    assert points(verdict) == max_points(whole) and not verdict.out_of_time


def test_what_works_too_long_is_late_on_an_idle_machine_too(bundle: Bundle) -> None:
    verdict = graded(
        bundle, notebook_with(bundle, {"double": WORKS.format(60) + RIGHT}), limits=Limits(test=1)
    )
    assert points(verdict)["double"] == 0
    assert (verdict.out_of_time, verdict.gave_up) == (True, False)


def test_what_sleeps_is_ended_by_the_clock_and_said_to_be(bundle: Bundle) -> None:
    sleeps = "def double(x):\n    import time\n    time.sleep(600)\n"
    verdict = graded(bundle, notebook_with(bundle, {"double": sleeps}), limits=Limits(test=0.5))
    (test,) = [test for test in verdict.tests if test.grade_id == "test_double"]
    assert test.message == (
        "Your code did not finish within 0.5 seconds of work: it slept for 4 times as long."
    )
    assert (verdict.out_of_time, verdict.gave_up) == (True, True)


def test_what_the_grader_does_and_what_waits_for_a_processor_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("autograder.box.patience.time.monotonic", lambda: now[0])
    taken = [Taken(7.0, 50.0)]
    patience = Patience(lambda: taken[0])

    def passes(seconds: float, worked: float, queued: float) -> bool:
        now[0] += seconds
        taken[0] = Taken(taken[0].worked + worked, taken[0].queued + queued)
        return patience.is_over()

    budget = Budget(patience, 2.0)
    patience.begin(budget.left())
    with patience.waiting() as end:
        assert end == 100 + 200
        assert not passes(0.2, 0.1, 0.1)  # the first look
        assert not passes(60, 1.0, 59)  # had to wait
        assert budget.left() == 1.0
    now[0] += 1000  # the grader judges
    patience.begin(budget.left())
    with patience.waiting():
        assert not passes(0, 0, 0)
        assert not passes(3, 0, 0) and not patience.gave_up
        assert passes(1.5, 0, 0) and patience.gave_up
    patience = Patience(lambda: taken[0])
    patience.begin(1.0)
    with patience.waiting():
        assert not passes(0, 0, 0) and passes(1.1, 1.1, 0) and not patience.gave_up


class Judge(Executor):
    """Gives verdicts that were written down, and says who asked for them."""

    def __init__(self, verdicts: dict[bytes, list[Result]]) -> None:
        self.verdicts = verdicts

    def submit(self, function: Any, /, task: Any, **_: Any) -> Future[Result]:  # type: ignore[override]
        future: Future[Result] = Future()
        future.set_result(self.verdicts[task.data].pop(0))
        return future


def test_a_time_out_among_others_is_tried_again_alone_and_none_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new(tmp_path)
    tests = folder.bundle(LESSON).tests
    right = Result(
        LESSON,
        "tiny",
        GRADED,
        tests=tuple(
            TestResult(t.grade_id, t.exercise, t.points, t.points, "passed") for t in tests
        ),
    )
    late = Result(
        LESSON,
        "tiny",
        GRADED,
        tests=tuple(TestResult(t.grade_id, t.exercise, 0, t.points, TIMEOUT) for t in tests),
        out_of_time=True,
        gave_up=True,
    )
    verdicts = {}
    for student, given in (("ada", [right]), ("bob", [late, right]), ("cy", [late, late])):
        notebook = solved(folder)
        notebook.metadata["who"] = student
        verdicts[hand_in(folder, student, notebook).read_bytes()] = given
    judge = Judge(verdicts)
    asked: list[int] = []

    @contextlib.contextmanager
    def local(workers: int) -> Iterator[Executor]:
        asked.append(workers)
        yield judge

    monkeypatch.setattr(grading, "local", local)
    grade_class(folder, workers=2, sandbox="none", quiet=True)
    entries = json.loads((folder.root / "grades.json").read_text())["submissions"]
    assert {entry["student"]: entry["score"] for entry in entries} == {"ada": 8, "bob": 8, "cy": 0}
    assert asked == [2, 1, 1]
    kept = [path for path in (folder.root / ".results").glob("*.json")]
    assert len(kept) == 2
    judge.verdicts = {data: [right] for data in verdicts}
    grade_class(folder, workers=2, sandbox="none", quiet=True)
    entries = json.loads((folder.root / "grades.json").read_text())["submissions"]
    assert {entry["score"] for entry in entries} == {8}


CHANGES = {
    "torch.set_default_device('cuda')": "torch's default device",
    "torch.set_default_device('meta')": "torch's default device",
    "torch.set_default_dtype(torch.float64)": "torch's default dtype",
    "np = 7": "the name np",
    "del np": "the name np",
    "torch = np.ones(3)": "the name torch",
    "list = [1, 2]; max = 3; ValueError = 'no'": "the name ValueError, the name list, the name max",
}


@pytest.mark.parametrize("source", CHANGES)
def test_what_a_cell_changes_for_all_code_costs_nothing_and_is_told(
    bundle: Bundle, source: str
) -> None:
    """The answer makes a class, a constant and a tensor where it stands, and more when called."""
    double = (
        "class Twice(torch.nn.Module):\n    rows = list(range(max(2, 1)))\n"
        "    def forward(self, x):\n        return torch.ones(len(x)).float() * 2 * x\n\n"
        "def double(x):\n    import warnings\n    warnings.warn('careful')\n"
        "    x = np.asarray(x)\n    if (x < 0).any():\n        raise ValueError('negative')\n"
        "    assert torch.ones(1).dtype == torch.float32\n"
        "    return Twice()(torch.tensor(x)).double().numpy() if list(x.shape) else 2 * x\n"
    )
    verdict = graded(bundle, with_first(bundle, source, double=double))
    assert points(verdict) == FULL
    (flag,) = [flag.words for flag in verdict.flags]
    assert CHANGES[source] in flag and f"your cell “{source[:60]}” changed" in flag


def test_a_name_of_a_library_that_is_meant_otherwise_is_used(bundle: Bundle) -> None:
    meant = "def double(x):\n    if x.min() < 0:\n        raise ValueError\n    return torch * x\n"
    verdict = graded(bundle, with_first(bundle, "torch = 2", double=meant))
    assert points(verdict) == FULL
