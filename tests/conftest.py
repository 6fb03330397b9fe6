"""What the tests share: the course, and one class of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import nbformat
import pytest
from hypothesis import settings
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.beside import write_companions
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Course

from .tiny import tiny_course

# No example has a deadline: on a busy machine any of them takes long.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

ROOT = Path(__file__).resolve().parent.parent
COURSE = Course.load(ROOT)

#: Which eighth of what is too much for every day runs: a number from 0 to 7, or "all".
EIGHTH = "AUTOGRADER_TEST_EIGHTH"

Case = TypeVar("Case")


def pytest_configure() -> None:
    """Choose the day's eighth, before processes of pytest-xdist start and inherit it."""
    os.environ.setdefault(EIGHTH, str(datetime.now(UTC).toordinal() % 8))


def pytest_report_header() -> str:
    chosen = os.environ[EIGHTH]
    return f"misconceptions in boxes: eighth {chosen} (again with {EIGHTH}={chosen}; all: =all)"


def in_this_eighth(cases: Sequence[Case]) -> list[Case]:
    """Every eighth case, others on each of eight days in a row; all if all are asked for."""
    chosen = os.environ[EIGHTH]
    if chosen == "all":
        return list(cases)
    if chosen not in set("01234567"):
        raise pytest.UsageError(f"{EIGHTH} is {chosen!r}; give a number from 0 to 7, or all")
    return list(cases[int(chosen) :: 8])


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """The test bundle of every lesson, as a class would hold it."""
    source = tmp_path_factory.mktemp("source")
    for lesson in COURSE.lessons:
        write_source(lesson, source / lesson.folder)
    return {lesson.folder: Bundle.load(source / lesson.folder) for lesson in COURSE.lessons}


@pytest.fixture
def student(tmp_path: Path) -> Callable[..., list[str]]:
    """Runs cells in a kernel beside what lies beside the tiny notebook; what each one showed."""
    course = tiny_course(tmp_path / "course")
    folder = tmp_path / "student"
    folder.mkdir()
    return lambda *sources: shown_by(course, folder, sources)


def shown_by(course: Course, folder: Path, sources: tuple[str, ...]) -> list[str]:
    lesson = course.lesson("01")
    write_companions(lesson, folder)
    setup = next(cell.source for cell in lesson.notebook.cells if cell.cell_type == "code")
    setup += "\nfrom lesson.checks import check"
    hide = "import sys; sys.modules['autograder'] = None"
    cells = [nbformat.v4.new_code_cell(source) for source in (hide, setup, *sources)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(
        notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return [shown(cell) for cell in cells[2:]]


def shown(cell: NotebookNode) -> str:
    found = [
        output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue", "")
        for output in cell.outputs
    ]
    return " ".join("\n".join(found).split())
