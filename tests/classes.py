"""Classes of the tiny course: made, handed in to, and looked at."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from nbgrader.api import Gradebook

from autograder.classroom.folder import ClassFolder
from autograder.classroom.new_class import new_class
from autograder.marking import grade_class as grading
from autograder.marking.grade_class import ClassResult
from autograder.notebooks import grade_id

from .submissions import boxes, notebook_with
from .tiny import tiny_course

LESSON = "01-tiny"
NOON = (2026, 3, 1, 12, 0, 0)


def quiet(text: str) -> None:
    """Say nothing."""


@cache
def _made() -> Path:
    """The course and a new class of it; made once in a process."""
    top = Path(tempfile.mkdtemp(prefix="tiny-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    new_class(tiny_course(top / "course"), top / "class", say=quiet)
    return top


def new(tmp_path: Path) -> ClassFolder:
    """A new class, ``tmp_path/class``, of the tiny course, ``tmp_path/course``."""
    shutil.copytree(_made(), tmp_path, dirs_exist_ok=True)
    return ClassFolder.open(tmp_path / "class")


class AtOnce(Executor):
    """Grades in this process, which has a fork server, after something else has happened."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.before = before

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # type: ignore[override]
        self.before()
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@contextmanager
def without_workers(executor: Executor | None = None) -> Iterator[None]:
    """Classes are graded in this process: workers take seconds to start."""
    with patch.object(grading, "local", lambda workers: nullcontext(executor or AtOnce())):
        yield


def grade_here(folder: ClassFolder, executor: Executor | None = None, **what: Any) -> ClassResult:
    """Grade a class without workers."""
    with without_workers(executor):
        return grading.grade_class(folder, sandbox=boxes().backend, quiet=True, **what)


def dated(folder: ClassFolder, late: str = "per_day = 10\ngrace_minutes = 15") -> ClassFolder:
    path = folder.root / "class.toml"
    text = path.read_text()
    text = text.replace("[due]", f'[due]\n"{LESSON}" = 2026-03-01T13:00:00+01:00')
    path.write_text(text.replace("per_day = 0\ngrace_minutes = 15", late))
    return ClassFolder.open(folder.root)


def solved(folder: ClassFolder, why: str = "YOUR ANSWER HERE", **instead: str) -> Any:
    notebook = notebook_with(folder.bundle(LESSON), instead)
    for cell in notebook.cells:
        if grade_id(cell) == "written_why":
            cell.source = why
    return notebook


def hand_in(folder: ClassFolder, student: str, content: Any, name: str = "tiny.ipynb") -> Path:
    path = folder.root / "submitted" / student / LESSON / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def pack(path: Path, files: dict[str, bytes], when: tuple[int, ...] = NOON) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, when)  # type: ignore[arg-type]
            packed.writestr(info, content)
    return path


def entries(folder: ClassFolder) -> dict[str, dict[str, Any]]:
    tree = json.loads((folder.root / "grades.json").read_text())
    return {entry["student"]: entry for entry in tree["submissions"]}


def scores_in_gradebook(folder: ClassFolder) -> dict[str, float]:
    with Gradebook(folder.db_url) as gradebook:
        found = gradebook.assignment_submissions(LESSON)
        return {one.student.id: one.score for one in found}


def give_by_hand(folder: ClassFolder, student: str, points: float) -> None:
    with Gradebook(folder.db_url) as gradebook:
        grade = gradebook.find_grade("written_why", "tiny", LESSON, student)
        grade.manual_score = points
        grade.needs_manual_grade = False
        gradebook.db.commit()
