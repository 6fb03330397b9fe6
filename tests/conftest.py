"""What the tests share: the course, and one class of it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import nbformat
import pytest
from hypothesis import settings
from nbclient import NotebookClient
from nbformat import NotebookNode
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from autograder.build.beside import write_data
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Course
from autograder.course.standalone import write_kit

from .tiny import tiny_course

# No example has a deadline: on a busy machine any of them takes long.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

ROOT = Path(__file__).resolve().parent.parent
COURSE = Course.load(ROOT)

#: Which of the shards of what is too much for every change runs: a number, or "all".
SHARD = "AUTOGRADER_TEST_SHARD"
SHARDS = 16

#: In a file whose tests ask something of the lessons themselves.
_ABOUT_LESSONS = "from ..conftest import COURSE"

Case = TypeVar("Case")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the commit's shard, before processes of pytest-xdist start and inherit it."""
    config.option.loadscopereorder = False  # the order is that of pytest_collection_modifyitems
    os.environ.setdefault(SHARD, str(int(_commit()[:8], 16) % SHARDS))


def _commit() -> str:
    """The commit that is tried, as a hexadecimal number: the same shard whenever it is tried."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        return "0"


def pytest_report_header() -> str:
    chosen = os.environ[SHARD]
    return f"sampled: shard {chosen} of {SHARDS} (again with {SHARD}={chosen}; all: {SHARD}=all)"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files about the lessons where nothing of them is wanted: as soon as such a file is
    imported it reads all lessons, in each process, and its tests are not chosen then."""
    if "not course" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return _ABOUT_LESSONS in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks something of the lessons themselves; begin with what takes longest."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item.module, "COURSE"):
            item.add_marker("course")
    items.sort(key=_last)


def _last(item: pytest.Item) -> int:
    """Its place: slow tests, solved notebooks, what is asked of lessons, and the many small ones,
    which keep all processes busy to the end."""
    if not isinstance(item, pytest.Function):
        return 1
    if item.get_closest_marker("slow"):
        return 0
    return 2 if item.get_closest_marker("course") else 3


class TogetherScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """One process runs the tests of a lesson, which share its bundle; those of a file, which share
    fixtures; the cells of a notebook."""

    def _split_scope(self, nodeid: str) -> str:
        lesson = re.search(r"\[(\d\d-[a-z-]+)", nodeid)
        return lesson[1] if lesson else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer | None
) -> TogetherScheduling | None:
    """How pytest-xdist hands out tests where nothing else was asked for."""
    return TogetherScheduling(config, log) if config.getoption("dist") == "load" else None


def sampled(cases: Sequence[Case], of: int = SHARDS) -> list[Case]:
    """The cases of this shard, every ``of``-th, and at least one; all if all are asked for."""
    chosen = os.environ[SHARD]
    if chosen == "all":
        return list(cases)
    if chosen not in map(str, range(SHARDS)):
        raise pytest.UsageError(f"{SHARD} is {chosen!r}; give a number below {SHARDS}, or all")
    return list(cases[int(chosen) :: of]) or [cases[int(chosen) % len(cases)]]


class Bundles(dict[str, Bundle]):
    """The test bundle of each lesson, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Bundle:
        lesson = COURSE.lesson(name)
        write_source(lesson, self.folder / lesson.folder)
        self[name] = Bundle.load(self.folder / lesson.folder)
        return self[name]


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Bundles:
    """The test bundles of the lessons, as a class would hold them."""
    return Bundles(tmp_path_factory.mktemp("source"))


@pytest.fixture
def student(tmp_path: Path) -> Callable[..., list[str]]:
    """Runs cells in a kernel beside what lies beside the tiny notebook; what each one showed."""
    course = tiny_course(tmp_path / "course")
    folder = tmp_path / "student"
    folder.mkdir()
    return lambda *sources: shown_by(course, folder, sources)


def shown_by(course: Course, folder: Path, sources: tuple[str, ...]) -> list[str]:
    lesson = course.lesson("01")
    write_data(lesson, folder)
    write_kit(folder)
    setup = next(cell.source for cell in lesson.notebook.cells if cell.cell_type == "code")
    setup += "\nfrom lesson_kit.checks import check"
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
