"""A notebook is read whatever program wrote it: what tools do to files costs nobody anything."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.grade.submission import parse
from autograder.notebooks import is_test
from autograder.student.check import PASSES, check_notebook
from autograder.student.update import REPLACED, plan
from lesson_kit import notebook_reading as reading
from lesson_kit.course_progress import progress_of

from ..hand_outs import TINY, handed_out, read, type_in
from ..submissions import as_bytes, notebook_with
from ..tiny import LESSON, tiny_course

TEXT = "\n# %% [markdown]\n# ### Why *this*?\n#\n# - Say it in a sentence, naïvely.\n"
RIGHT = {
    "double": "def double(x):\n    return 2 * x\n",
    "quadruple": "def quadruple(x):\n    return double(double(x))\n",
    "answer_size": 'answer_size = "b"',
}


def every_source(change: Callable[[str], Any], code: bool | None = None) -> Callable[[Any], Any]:
    def changed(notebook: Any) -> Any:
        for cell in notebook["cells"]:
            if code in (None, cell["cell_type"] == "code"):
                cell["source"] = change(cell["source"])
        return notebook

    return changed


def without_metadata(notebook: Any) -> Any:
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        cell.pop("id", None)
    return notebook | {"metadata": {}}


def colab(notebook: Any) -> Any:
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] = {"id": f"x{number}", "colab": {"base_uri": "https://example.org"}}
        cell.pop("id", None)
        cell["source"] = cell["source"].splitlines(keepends=True)
    return notebook | {"nbformat_minor": 0}


def formatted(source: str) -> str:
    """As `black` and `isort` lay code out, as far as the tiny lesson shows it."""
    source = source.replace("numpy as np\nimport math\n", "math\nimport numpy as np\n")
    if "'" not in source:
        source = source.replace('"', "'").replace("'''", '"""')
    source = source.replace("import numpy", "import   numpy").replace("2 * x", "(2*x)")
    return source.replace("#", "#  ").replace("(", "(\n        ", 1) + "\n\n"


#: What a tool did to a file: to its JSON, then to its bytes.
TOOLS: dict[str, tuple[Callable[[Any], Any], Callable[[bytes], bytes]]] = {
    "CRLF in every cell": (every_source(lambda text: text.replace("\n", "\r\n")), bytes),
    "CR of an old Mac": (every_source(lambda text: text.replace("\n", "\r")), bytes),
    "a list of CRLF lines": (
        every_source(lambda text: text.replace("\n", "\r\n").splitlines(keepends=True)),
        bytes,
    ),
    "a file of CRLF lines with a BOM": (
        lambda notebook: notebook,
        lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    ),
    "UTF-16 of a Windows editor": (
        lambda notebook: notebook,
        lambda data: data.decode().encode("utf-16"),
    ),
    "a BOM in each cell": (every_source(lambda text: "\ufeff" + text), bytes),
    "decomposed letters": (every_source(lambda text: unicodedata.normalize("NFD", text)), bytes),
    "a formatter": (every_source(formatted, code=True), bytes),
    "a formatter of Markdown": (
        every_source(
            lambda text: text.replace("*this*", "_this_").replace("- ", "* ") + "\n", False
        ),
        bytes,
    ),
    "no metadata": (without_metadata, bytes),
    "Colab": (colab, bytes),
    "no metadata, a formatter and CRLF": (
        lambda notebook: every_source(lambda text: formatted(text).replace("\n", "\r\n"), True)(
            without_metadata(notebook)
        ),
        bytes,
    ),
}


def through(tool: str, data: bytes) -> bytes:
    """A notebook's bytes after a tool had them; what it made is not what was there."""
    change, encoded = TOOLS[tool]
    tree = json.loads(data)
    for cell in tree["cells"]:
        cell["source"] = "".join(cell["source"])
    changed = encoded(json.dumps(change(tree), indent=1, ensure_ascii=False).encode())
    assert changed != data
    return changed


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    place = tmp_path_factory.mktemp("bundle")
    course = tiny_course(place / "course")
    (place / "course/lessons/01-tiny/tiny.py").write_text(LESSON + TEXT)
    write_source(type(course).load(place / "course").lesson("01"), place / "01-tiny")
    return Bundle.load(place / "01-tiny")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handed_out(tmp_path_factory.mktemp("release"), LESSON + TEXT)


@pytest.fixture
def course(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "course"))


@pytest.mark.parametrize("tool", TOOLS)
def test_grading_flags_nothing_and_runs_what_it_would_run(bundle: Bundle, tool: str) -> None:
    notebook = notebook_with(bundle, RIGHT)
    for cell in notebook.cells:
        if is_test(cell):
            cell.source = nbformat.v4.new_code_cell(cell.source).source
    before = parse(as_bytes(notebook), bundle)
    after = parse(through(tool, as_bytes(notebook)), bundle)
    assert {flag.kind for flag in after.flags} <= {"names_found", "written_found"}
    assert [cell.digest for cell in after.to_run(bundle)] == [
        cell.digest for cell in before.to_run(bundle)
    ]
    assert [cell.grade_id for cell in after.to_run(bundle)] == [
        cell.grade_id for cell in before.to_run(bundle)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_an_untouched_notebook_is_nobodys_work(course: Path, release: Path, tool: str) -> None:
    """For `update` and for the start page."""
    path = course / TINY
    path.write_bytes(through(tool, path.read_bytes()))
    told = progress_of(path)
    assert (told.exercises, told.begun, told.checks, told.problem) == (4, 0, 3, "")
    (step,) = [
        step for step in plan(course, release, datetime(2026, 1, 2)).steps if step.name == TINY
    ]
    assert step.what == REPLACED or step.says == ("carried over: what it printed",)


@pytest.mark.parametrize(
    "tool", ["CRLF in every cell", "a file of CRLF lines with a BOM", "a formatter", "Colab"]
)
def test_check_says_of_right_answers_that_they_pass(course: Path, tool: str) -> None:
    path = course / TINY
    type_in(path, **RIGHT)
    path.write_bytes(through(tool, path.read_bytes()))
    checked = check_notebook(path, 60)
    assert not checked.problem
    assert [(check.grade_id, check.outcome, check.max_points) for check in checked.checks] == [
        ("test_double", PASSES, 2.0),
        ("test_quadruple", PASSES, 4.0),
        ("test_answer_size", PASSES, 1.0),
    ]


def test_an_answer_is_carried_over_from_a_notebook_without_metadata(
    course: Path, release: Path
) -> None:
    path = course / TINY
    type_in(path, **RIGHT)
    path.write_bytes(through("Colab", path.read_bytes()))
    plan(course, release, datetime(2026, 1, 2)).carry_out()
    sources = [cell.source for cell in read(path).cells]
    assert sources.count(RIGHT["double"].strip()) + sources.count(RIGHT["double"]) == 1
    assert len(sources) == len(read(release / TINY).cells)


@pytest.mark.parametrize(
    ("mine", "code"),
    [
        ("x = 1  # my plan", True),
        ("def f(a, b):\n    return b - a\n", True),
        ("1 + 1 = 2 is what I say", False),
        ("x = 'a b'", True),
        ("if a:\n    b\n    c", True),
    ],
)
def test_what_says_something_else_has_another_form(mine: str, code: bool) -> None:
    others = ["x = 1", "def f(a, b):\n    return a - b\n", "1 + 1 = 3 is what I say", "x = 'ab'"]
    others.append("if a:\n    b\nc")
    assert reading.form(mine, code) not in [reading.form(other, code) for other in others]


def test_the_reader_needs_nothing_but_the_standard_library(course: Path) -> None:
    code = "from lesson_kit import course_progress; print(course_progress.reading.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=course,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(course / "lesson_kit" / "notebook_reading.py")
