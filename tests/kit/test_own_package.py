"""What passed is kept as the student's package: whatever happens, nothing of theirs is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from autograder.build.build import _remove_strangers
from autograder.course.release import MANIFEST_FILE, read_manifest, release_in
from autograder.student.check import PASSES, check_notebook
from lesson_kit.own_frame import as_markdown
from lesson_kit.own_package import SWITCH, place, sections

from ..conftest import ROOT
from ..hand_outs import TINY, cell_named, handed_out, read, type_in
from ..played import Notebook, run

pytestmark = pytest.mark.slow

NAME = "my_transformer"
DOUBLE = 'def double(x: np.ndarray):\n    """Twice x."""\n    return 2 * x\n'
QUADRUPLE = "def quadruple(x):\n    return double(double(x))\n"
KEPT = f"Kept: `double` is in {NAME}/lesson_01_tiny.py (3 lines)."
Cells = list[tuple[str, str]]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handed_out(tmp_path_factory.mktemp("release"))


@pytest.fixture
def course(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "course"))


def checked(course: Path, *, quadruple: str = "", **answers: str) -> Cells:
    """Setup, then answers as they are given, each with the check of its exercise."""
    book = read(course / TINY)
    cells = [("setup", next(c.source for c in book.cells if "setup" in c.metadata.get("tags", [])))]
    for name, source in [*answers.items(), *([("quadruple", quadruple)] if quadruple else [])]:
        exercise = name.partition("_")[0]
        cells += [(name, source), (f"check {name}", cell_named(book, f"test_{exercise}").source)]
    return cells


def said(course: Path, cells: Cells, **environment: str) -> dict[str, str]:
    (all_said,) = run(Notebook(course / "01-tiny", cells, environment))
    return all_said


def module(course: Path) -> Path:
    return course / NAME / "lesson_01_tiny.py"


def texts(course: Path) -> dict[str, str]:
    return {section.name: section.text.strip() for section in sections(module(course))}


def run_its_tests(course: Path, name: str = NAME) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
    done = subprocess.run(command, cwd=course, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_answer_is_kept_with_what_it_needs_and_nothing_else(course: Path) -> None:
    answer = f"import math\nFACTOR = 2\nprint('a trial')\n\n# By hand.\n{DOUBLE}\ndouble(3)\n"
    answer = answer.replace("2 * x", "FACTOR * x * given(math.e) / given(math.e)")
    cells = checked(course, double=answer, quadruple=QUADRUPLE)
    given = "%time\nloss = print('training')\ndef given(x):\n    return np.float64(x)\n"
    cells.insert(1, ("a cell of the lesson", given))
    all_said = said(course, cells)
    assert f"Kept: `double` is in {NAME}/lesson_01_tiny.py" in all_said["check double"]
    assert f"{NAME} is a package of your own" in all_said["check double"]  # said once
    assert f"{NAME} is" not in all_said["check quadruple"]
    about, imports, double, quadruple = sections(module(course))
    assert about.name == "about"
    assert imports.text.split("\n")[:2] == ["import math", "import numpy as np"]
    assert quadruple.text.strip() == QUADRUPLE.strip()
    assert "FACTOR = 2" in double.text
    assert "# By hand.\ndef double" in double.text
    assert "def given" in double.text
    assert "print" not in module(course).read_text()
    page = as_markdown(course)
    assert "2 of 2 parts, " in page
    assert "■■" in page
    assert release_in(course) == read_manifest(course)  # it is no part of what was handed out
    run_its_tests(course)


def test_a_later_answer_takes_its_place_and_one_that_fails_takes_nothing(course: Path) -> None:
    cells = checked(
        course,
        double=DOUBLE,
        double_again=DOUBLE,
        double_otherwise=DOUBLE.replace("2 * x", "x + x"),
        double_wrong=DOUBLE.replace("2 * x", "3 * x"),
        double_broken=DOUBLE.replace("2 * x", "2 * * x"),
    )
    all_said = said(course, cells)
    assert KEPT in all_said["check double"]
    assert NAME not in all_said["check double_again"]
    assert KEPT in all_said["check double_otherwise"]
    assert "failed check double_wrong" in all_said
    assert "SyntaxError" in all_said["check double_broken"]
    stays = f"The version of `double` that passed before stays in {NAME}/lesson_01_tiny.py."
    for name in ("wrong", "broken"):
        assert all_said[f"check double_{name}"].strip().endswith(stays)
    assert texts(course)["double"] == DOUBLE.replace("2 * x", "x + x").strip()


def test_two_notebooks_at_once_and_one_that_was_renamed(course: Path) -> None:
    (course / TINY).rename(course / "01-tiny" / "mine.ipynb")
    shutil.copy(course / "01-tiny" / "mine.ipynb", course / TINY)
    versions = {f"double_{n}": DOUBLE.replace("2 * x", f"2 * x  # version {n}") for n in range(12)}
    others = {f"quadruple_{n}": QUADRUPLE.replace("\n", f"  # version {n}\n", 1) for n in range(12)}
    plans = [checked(course, **versions), checked(course, double=DOUBLE, **others)]
    both = run(*(Notebook(course / "01-tiny", cells) for cells in plans))
    assert not [name for all_said in both for name in all_said if name.startswith("failed")]
    assert sorted(texts(course)) == ["about", "double", "imports", "quadruple"]
    assert not any(section.edited for section in sections(module(course)))
    assert "# version 11" in texts(course)["quadruple"]
    assert not list((course / NAME).rglob("*.new"))
    run_its_tests(course)


def test_edits_by_hand_stay_and_the_check_says_what_differs(course: Path) -> None:
    said(course, checked(course, double=DOUBLE))
    text = module(course).read_text().replace("2 * x", "x + x  # nicer")
    mine = text.replace("import numpy", "import os\nimport numpy") + "\n\ndef my_own():\n    pass\n"
    module(course).write_text(mine)
    readme = course / NAME / "README.md"
    readme.write_text(readme.read_text() + "\nMy words.\n")
    all_said = said(course, checked(course, double=DOUBLE, quadruple=QUADRUPLE))
    assert "has edits of yours and stays as it is" in all_said["check double"]
    assert "first `return 2 * x`" in all_said["check double"]
    assert "Kept: `quadruple`" in all_said["check quadruple"]
    kept = module(course).read_text()
    for line in ("x + x  # nicer", "def my_own", "import os", "def quadruple"):
        assert line in kept
    assert readme.read_text().endswith("My words.\n")
    without = texts(course)["double"]
    module(course).write_text(kept.replace(without, ""))
    lines = module(course).read_text().splitlines()
    mark = next(line for line in lines if line.startswith("# ==== double"))
    module(course).write_text("\n".join(line for line in lines if line != mark))
    assert KEPT in said(course, checked(course, double=DOUBLE))["check double"]
    run_its_tests(course)


def test_windows_line_ends(course: Path) -> None:
    said(course, checked(course, double=DOUBLE))
    for path in (course / NAME).rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    written = QUADRUPLE.replace("\n", "\r\n")
    all_said = said(course, checked(course, double=DOUBLE, quadruple=written))
    assert NAME not in all_said["check double"]
    assert "Kept: `quadruple`" in all_said["check quadruple"]
    data = module(course).read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n")
    assert not any(section.edited for section in sections(module(course)))
    run_its_tests(course)


def test_a_folder_that_cannot_be_written(course: Path) -> None:
    (course / NAME).write_text("a file of that name")
    all_said = said(course, checked(course, double=DOUBLE))
    assert "double: these checks pass" in all_said["check double"]
    assert (
        f"`double` passes, and cannot be kept: {NAME} cannot be written" in all_said["check double"]
    )
    assert (course / NAME).read_text() == "a file of that name"


def test_what_cannot_come_along_and_a_check_that_was_changed(course: Path) -> None:
    answer = "def double(x):\n    return x * factor\n"
    cells = [("factor", "factor = int('2')"), *checked(course, double=answer)]
    book = read(course / TINY)
    easier = cell_named(book, "test_double").source.replace("x + x", "x * 2")
    cells += [("double right", DOUBLE), ("easier", easier)]
    all_said = said(course, [cells[1], cells[0], *cells[2:]])
    assert (
        "is not kept in my_transformer: it uses `factor`, which is not" in all_said["check double"]
    )
    assert "this check is not as it was handed out" in all_said["easier"]
    assert not module(course).exists()


def test_it_can_be_switched_off(course: Path) -> None:
    assert (
        NAME not in said(course, checked(course, double=DOUBLE), **{SWITCH: "off"})["check double"]
    )
    assert not (course / NAME).exists()
    said(course, checked(course, double=DOUBLE))
    settings = course / NAME / "pyproject.toml"
    settings.write_text(settings.read_text().replace("keep = true", "keep = false"))
    all_said = said(course, checked(course, double=DOUBLE.replace("2 *", "2.0 *")))
    assert NAME not in all_said["check double"]
    assert "2.0" not in texts(course)["double"]


@pytest.fixture
def in_folder(course: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(course / "01-tiny")
    yield course
    InteractiveShell.clear_instance()


def test_where_work_is_graded_nothing_of_it_is_read_or_written(in_folder: Path) -> None:
    assert place() is None  # the tester, plain runs
    shell = InteractiveShell.instance()
    assert place() is None  # a box, which has a shell and no kernel
    shell.kernel = object()
    assert place() is not None
    os.chdir(ROOT / "solutions" / "02-query-key-value")
    assert place() is None  # a solved notebook, built or run by nbval


def test_a_check_on_the_terminal_neither_keeps_nor_reads(course: Path) -> None:
    type_in(course / TINY, double=DOUBLE, quadruple=QUADRUPLE)
    outcomes = {check.grade_id: check.outcome for check in check_notebook(course / TINY, 60).checks}
    assert outcomes["test_double"] == outcomes["test_quadruple"] == PASSES
    assert not (course / NAME).exists()


def test_a_course_that_names_no_package_keeps_nothing(course: Path) -> None:
    manifest = course / MANIFEST_FILE
    tree = json.loads(manifest.read_text())
    assert tree.pop("package") == {"name": NAME, "about": "What doubles."}
    manifest.write_text(json.dumps(tree))
    right, wrong = DOUBLE, DOUBLE.replace("2 * x", "3 * x")
    all_said = said(course, checked(course, double=right, double_wrong=wrong))
    assert "these checks pass" in all_said["check double"]
    assert not [name for name, text in all_said.items() if NAME in text]
    assert not (course / NAME).exists()
    assert as_markdown(course) == ""


def test_a_package_of_another_name_and_its_own_words(course: Path) -> None:
    manifest = course / MANIFEST_FILE
    text = manifest.read_text().replace(NAME, "my_statistics")
    manifest.write_text(text)
    assert read_manifest(course) == release_in(course)
    all_said = said(course, checked(course, double=DOUBLE))
    assert "Kept: `double` is in my_statistics/lesson_01_tiny.py" in all_said["check double"]
    made = [path for path in (course / "my_statistics").rglob("*.*") if path.is_file()]
    assert "package_program.py" not in [path.name for path in made]  # it has no such parts
    assert not [path for path in made if "transformer" in path.read_text().lower()]
    assert "What doubles. I wrote its parts" in (course / "my_statistics/README.md").read_text()
    run_its_tests(course, "my_statistics")


def test_a_build_leaves_it_alone(tmp_path: Path) -> None:
    for folder in ("build/source", f"course/{NAME}", "course/99-gone", "solutions"):
        (tmp_path / folder).mkdir(parents=True)
    _remove_strangers(tmp_path, {NAME})
    assert [path.name for path in (tmp_path / "course").iterdir()] == [NAME]
