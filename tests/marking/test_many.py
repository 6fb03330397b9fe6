"""Many submissions: in parallel, on a cluster, again after a kill, and with progress told."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import GradedSubmission
from autograder.classroom.hand_ins import task_in_class
from autograder.cli.main import main
from autograder.grade.cluster import SchedulerError, believed
from autograder.grade.result import Result
from autograder.grade.result_cache import ResultCache, as_text
from autograder.grade.task import Task
from autograder.marking.grade_class import grade_class
from autograder.marking.progress import Progress

from ..classes import LESSON, entries, hand_in, new, scores_in_gradebook, solved
from ..submissions import boxes

pytestmark = pytest.mark.slow

STUDENTS = 6


def fill(folder: ClassFolder) -> None:
    """Six submissions: right, partly right, wrong, one that ends its process, one broken."""
    for number in range(STUDENTS - 2):
        wrong = {} if number % 2 else {"double": f"def double(x):\n    return {number} * x\n"}
        hand_in(folder, f"student{number}", solved(folder, why=f"Because {number}.", **wrong))
    ends = "def double(x):\n    import os\n    os._exit(3)\n"
    hand_in(folder, "student4", solved(folder, double=ends))
    hand_in(folder, "student5", b"{")


def everything(folder: ClassFolder) -> dict[str, Any]:
    """What a grading leaves behind, but for how long it took."""
    found: dict[str, Any] = {"gradebook": scores_in_gradebook(folder)}
    for top in ("autograded", "feedback"):
        for path in sorted((folder.root / top).rglob("*")):
            if path.is_file():
                found[str(path.relative_to(folder.root))] = path.read_text()
    tree = json.loads((folder.root / "grades.json").read_text())
    for entry in tree["submissions"]:
        del entry["seconds"]
    found["grades.json"] = tree
    found["grades.csv"] = (folder.root / "grades.csv").read_text()
    return found


def told(progress_text: str) -> list[str]:
    return re.findall(r"student\d", progress_text)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[ClassFolder, dict[str, Any]]:
    folder = new(tmp_path_factory.mktemp("undisturbed"))
    fill(folder)
    grade_class(folder, workers=1, sandbox=boxes().backend, quiet=True)
    return folder, everything(folder)


def test_two_workers_come_to_the_same(
    undisturbed: tuple[ClassFolder, dict[str, Any]],
) -> None:
    folder, expected = undisturbed
    grade_class(folder, workers=2, sandbox=boxes().backend, again=True, quiet=True)
    assert everything(folder) == expected


def test_what_did_not_change_is_not_run_again(
    undisturbed: tuple[ClassFolder, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, expected = undisturbed

    def never(task: Task) -> Result:
        raise AssertionError("graded again")

    monkeypatch.setattr("autograder.marking.grade_class.grade_task", never)
    result = grade_class(folder, sandbox=boxes().backend, quiet=True)
    assert f"{STUDENTS} kept from an earlier run" in result.summary
    assert everything(folder) == expected


def test_a_damaged_kept_verdict_is_made_again(
    undisturbed: tuple[ClassFolder, dict[str, Any]],
) -> None:
    folder, expected = undisturbed
    for number, path in enumerate(sorted((folder.root / ".results").glob("*.json"))):
        path.write_text(["", "{}", "[1", '{"score": 1000}'][number % 4])
    grade_class(folder, workers=1, sandbox=boxes().backend, quiet=True)
    assert everything(folder) == expected


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.long)])
def test_killed_at_any_moment_and_run_again(
    undisturbed: tuple[ClassFolder, dict[str, Any]], kills: int
) -> None:
    """Some times kill -9 at a random moment; then one run to the end."""
    folder, expected = undisturbed
    command = [sys.executable, "-m", "autograder.cli.main", "grade", str(folder.root)]
    command += ["--workers", "1", "--sandbox", boxes().backend]
    rng = random.Random(time.time_ns())
    started = time.monotonic()
    subprocess.run([*command, "--again"], check=True, capture_output=True)
    whole = time.monotonic() - started
    for path in (folder.root / ".results").glob("*"):
        path.unlink()
    mark = f"KILLED_AT_ANY_MOMENT={time.time_ns()}"
    environment = {**os.environ, **dict([mark.split("=")])}
    for moment in range(kills):
        process = subprocess.Popen(
            [*command, *(["--again"] if moment % 3 == 0 else [])],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(rng.uniform(0.2, 1.0) * whole)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        if (folder.root / "grades.json").exists():
            json.loads((folder.root / "grades.json").read_text())
    subprocess.run(command, check=True, capture_output=True)
    assert everything(folder) == expected
    until = time.monotonic() + 120
    while left := processes_with(mark):
        assert time.monotonic() < until, f"workers outlive their grader: {left}"
        time.sleep(0.2)


def processes_with(mark: str) -> list[str]:
    """The processes that have ``mark`` in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


def test_a_worker_that_dies_costs_one_verdict(tmp_path: Path) -> None:
    """Not by a student's doing: the grader's own process is ended while it grades."""
    folder = new(tmp_path)
    for number in range(3):
        hand_in(folder, f"student{number}", solved(folder))
    plugin = tmp_path / "sitecustomize.py"
    plugin.write_text(
        "import autograder.grade.executors as executors, os\n"
        "usual = executors.grade_task\n"
        "def grade_task(one):\n"
        "    if b'end this worker' in one.data:\n"
        "        os._exit(9)\n"
        "    return usual(one)\n"
        "grade_task.__module__ = 'autograder.grade.executors'\n"
        "grade_task.__qualname__ = 'grade_task'\n"
        "executors.grade_task = grade_task\n"
    )
    marked = solved(folder, why="end this worker")
    hand_in(folder, "student1", marked)
    command = [sys.executable, "-m", "autograder.cli.main", "grade", str(folder.root)]
    command += ["--workers", "2", "--sandbox", boxes().backend]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "not judged: student1" in done.stderr
    assert {name: entry["score"] for name, entry in entries(folder).items()} == {
        "student0": 8.0,
        "student2": 8.0,
    }


class Cluster:
    """A real Dask scheduler on loopback, and worker processes that come and go."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder, self._options = folder, options
        self._started: list[subprocess.Popen[bytes]] = []
        where = folder / "scheduler.json"
        self._start("dask_scheduler", "--port", "0", "--scheduler-file", str(where))
        until = time.monotonic() + 300
        while not where.exists():
            assert time.monotonic() < until, "the scheduler did not start"
            time.sleep(0.1)
        self.address = json.loads(where.read_text())["address"]

    def _start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *options]
        command += ["--no-dashboard", "--host", "127.0.0.1", *self._options]
        quiet = subprocess.DEVNULL
        self._started.append(
            subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=self._folder)
        )
        return self._started[-1]

    def join(self) -> subprocess.Popen[bytes]:
        """One worker more."""
        return self._start("dask_worker", self.address, "--no-nanny", "--nthreads", "1")

    def end(self) -> None:
        for process in reversed(self._started):
            process.terminate()
            process.wait(timeout=300)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.end()


def test_a_dask_cluster_comes_to_the_same(
    undisturbed: tuple[ClassFolder, dict[str, Any]], cluster: Cluster
) -> None:
    folder, expected = undisturbed
    cluster.join()
    cluster.join()
    grade_class(folder, scheduler=cluster.address, sandbox=boxes().backend, again=True, quiet=True)
    assert everything(folder) == expected


def test_a_dask_cluster_that_asks_for_certificates(tmp_path: Path) -> None:
    from distributed import Security

    folder = new(tmp_path)
    hand_in(folder, "ada", solved(folder))
    made = Security.temporary()
    pem = {"ca": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    for name, text in pem.items():
        (folder.root / f"{name}.pem").write_text(text)
    options = [f"--tls-{name}={folder.root / name}.pem" for name in ("cert", "key")]
    cluster = Cluster(tmp_path, f"--tls-ca-file={folder.root / 'ca.pem'}", *options)
    try:
        cluster.join()
        assert cluster.address.startswith("tls://")
        how: dict[str, Any] = {"scheduler": cluster.address, "sandbox": "none", "quiet": True}
        with (folder.root / "class.toml").open("a") as file:
            file.write('\n[cluster]\nca = "ca.pem"\ncert = "cert.pem"\nkey = "key.pem"\n')
        grade_class(ClassFolder.open(folder.root), **how)
        assert entries(folder)["ada"]["score"] == 8.0
        (folder.root / "key.pem").unlink()
        with pytest.raises(SchedulerError, match=r"cluster\.key should name a file"):
            grade_class(ClassFolder.open(folder.root), **how, again=True)
    finally:
        cluster.end()


def test_another_machine_is_asked_with_certificates_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new(tmp_path)
    hand_in(folder, "ada", b"{")
    monkeypatch.setattr("autograder.grade.cluster.CONNECT_SECONDS", 1)
    for address in ("tcp://192.0.2.7:8786", "tls://192.0.2.7:8786", "tcp://localhost.example:1"):
        with pytest.raises(SchedulerError, match="another machine, and without certificates"):
            grade_class(folder, scheduler=address, sandbox="none", quiet=True)
    with (folder.root / "class.toml").open("a") as file:
        file.write("\n[cluster]\nin_the_clear = true\n")
    with pytest.raises(SchedulerError, match="no Dask scheduler answers"):
        grade_class(
            ClassFolder.open(folder.root), scheduler="tcp://127.0.0.1:9", sandbox="none", quiet=True
        )


def test_what_a_worker_sends_is_looked_at(
    undisturbed: tuple[ClassFolder, dict[str, Any]],
) -> None:
    folder, _ = undisturbed
    task = task_in_class(folder, "student0", folder.bundle(LESSON), boxes().backend)
    result = ResultCache(folder.root / ".results").find(task.key)
    assert result is not None
    assert believed(as_text(result), task) == result
    first, *others = result.tests
    for tests in (
        others,
        [first, first, *others[1:]],
        [replace(first, points=99.0), *others],
        [replace(first, points=-1.0), *others],
        [replace(first, points=float("nan")), *others],
        [replace(first, max_points=9.0), *others],
        [replace(first, message=["a list"]), *others],  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="no verdict"):
            believed(as_text(replace(result, tests=tuple(tests))), task)
    for text in ("", "{}", "[1]", None, as_text(replace(result, reached_under="elsewhere"))):
        with pytest.raises(ValueError, match="no verdict"):
            believed(text, task)


def test_a_dask_worker_that_is_killed_and_one_that_joins_late(
    undisturbed: tuple[ClassFolder, dict[str, Any]], cluster: Cluster
) -> None:
    """The only worker is killed over its work; the rest is graded by one that comes then."""
    folder, expected = undisturbed
    first = cluster.join()
    command = [sys.executable, "-m", "autograder.cli.main", "grade", str(folder.root), "--again"]
    command += ["--scheduler", cluster.address, "--sandbox", boxes().backend]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as grading:
        assert grading.stderr is not None
        before = next(line for line in grading.stderr if line.startswith("[1/"))
        first.kill()
        first.wait()
        cluster.join()
        after = [before, *(line for line in grading.stderr if line.startswith("["))]
    assert grading.returncode == 0
    assert sorted(name for line in after for name in told(line)) == [
        f"student{number}" for number in range(STUDENTS)
    ]
    assert everything(folder) == expected


class Growing(Executor):
    """Stands for a cluster of one worker, to which seven come once one task is done."""

    def __init__(self) -> None:
        self.asked: list[Future[Result]] = []
        self.workers = 1

    @property
    def _client(self) -> Growing:
        return self

    def nthreads(self) -> dict[int, int]:
        return dict.fromkeys(range(self.workers), 1)

    def submit(self, grade_task: Any, task: Task) -> Future[Result]:  # type: ignore[override]
        self.asked.append(Future())
        return self.asked[-1]

    def end_one(self) -> None:
        self.asked.pop(0).set_exception(RuntimeError("this cluster judges nothing"))
        self.workers = 8


def test_a_dask_worker_that_joins_late_is_given_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new(tmp_path)
    for number in range(12):
        hand_in(folder, f"student{number:02}", b"{" * (number + 1))  # the same is judged once
    cluster = Growing()
    asked_for: list[int] = []

    def wait_for_one(futures: Any, **how: Any) -> Any:
        asked_for.append(len(futures))
        cluster.end_one()
        return wait(futures, **how)

    @contextlib.contextmanager
    def dask(*_: object) -> Iterator[Executor]:
        yield cluster

    monkeypatch.setattr("autograder.marking.grade_class.dask", dask)
    monkeypatch.setattr("autograder.marking.grade_class.wait", wait_for_one)
    grade_class(folder, scheduler="tcp://nowhere", sandbox="none", quiet=True)
    assert asked_for[:2] == [3, 11]


def test_no_scheduler_is_said_and_loses_nothing(
    undisturbed: tuple[ClassFolder, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, expected = undisturbed
    monkeypatch.setattr("autograder.grade.cluster.CONNECT_SECONDS", 1)
    with pytest.raises(SchedulerError, match="no Dask scheduler answers"):
        grade_class(folder, scheduler="tcp://127.0.0.1:9", sandbox="none", again=True, quiet=True)
    assert everything(folder) == expected


def test_progress_elsewhere_is_a_line_each() -> None:
    stream = io.StringIO()
    graded = Result("01-tiny", "tiny", "graded", seconds=2.0, max_score=8.0)
    with Progress(3, stream) as progress:
        progress.tell(GradedSubmission("student0", graded), kept=False)
        progress.tell(GradedSubmission("student1", graded), kept=True)
        progress.tell(
            GradedSubmission("student2", Result("01-tiny", "tiny", "unreadable")), kept=False
        )
    assert told(stream.getvalue()) == ["student0", "student1", "student2"]
    assert "[1/3] " in stream.getvalue() and "as graded before" in stream.getvalue()
    for part in ("3 verdicts", "1 kept", "1 unreadable", "slowest student0 01-tiny, 2.0 s"):
        assert part in progress.summary()


def test_the_time_left_is_of_the_pace_of_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ninety seconds until the first verdict, then one each second."""
    clock = iter([0.0, *(90.0 + second for second in range(40))])
    monkeypatch.setattr("autograder.marking.progress.time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    with Progress(208, stream) as progress:
        for number in range(12):
            graded = Result("01-tiny", "tiny", "graded", max_score=8.0)
            progress.tell(GradedSubmission(f"student{number}", graded), kept=False)
    said = [line.partition("]")[0] for line in stream.getvalue().splitlines()]
    assert said[8] == "[9/208"
    assert said[9:] == ["[10/208, 198 s left", "[11/208, 197 s left", "[12/208, 196 s left"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_shows_rate_time_left_and_the_slowest() -> None:
    stream = Terminal()
    graded = Result("01-tiny", "tiny", "graded", seconds=2.0, max_score=8.0)
    with Progress(2, stream) as progress:
        progress.tell(GradedSubmission("student0", graded), kept=False)
        time.sleep(0.2)
        progress.tell(GradedSubmission("student1", graded), kept=False)
    assert "2/2" in stream.getvalue()
    assert "slowest student0 01-tiny 2.0 s" in stream.getvalue()
    assert "submissions/s" in stream.getvalue() or "s/ submissions" in stream.getvalue()


def test_quiet_is_quiet(
    undisturbed: tuple[ClassFolder, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = undisturbed
    assert main(["grade", str(folder.root), "--quiet", "--sandbox", boxes().backend]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "student0" in captured.out  # the table
    assert LESSON[:2] in captured.out
