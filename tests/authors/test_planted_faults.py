"""A fault of each kind is caught: the tests of the tests, tested.

Each is planted in a tiny course or a copy, and found by what `make test` runs on the sample that
holds it, and `make test-long` on all. A leak in the box is planted in `test_attacks.py`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

from autograder.authors.lint import lint
from autograder.authors.trial import trial
from autograder.build.build import build
from autograder.course.lessons import Course, Lesson
from autograder.diagnose.matrix import Matrix

from ..generated import drifted, without_alternative_text
from ..tiny import LESSON, MISCONCEPTIONS, tiny_course

KNOWN = """
from autograder.course.implementations import exercise, wrong
with exercise("double"):
    wrong("thrice", {"2 * x": "3 * x"}, "It is three times x.")
"""


def planted(folder: Path, text: str = LESSON, known: str = KNOWN) -> Lesson:
    hidden = "### BEGIN HIDDEN TESTS"
    marked = text.replace(hidden, f"### SIDE CONDITION: counts later.\n{hidden}")
    path = tiny_course(folder).lesson("01").path
    (path / "tiny.py").write_text(marked)
    (path / "misconceptions.py").write_text(known + MISCONCEPTIONS)
    return Course.load(folder).lesson("01")


def complaints(lesson: Lesson, exercise: str = "double") -> list[str]:
    with Matrix(lesson, anew=True) as matrix:
        return trial(matrix, exercise, seeds=[1]).complaints


def test_without_a_fault_nothing_is_found(tmp_path: Path) -> None:
    assert complaints(planted(tmp_path)) == []


@pytest.mark.parametrize(
    ("text", "known", "says"),
    [
        (
            LESSON.replace("return 2 * x", "return 2 * x + 1e-3"),
            KNOWN.replace("2 * x", "2"),
            "the solution fails",
        ),
        (LESSON, KNOWN.replace("3 * x", "x + x"), "misconception thrice is accepted"),
        (LESSON.replace("assert_close(double(x), x + x", "double(x), (x"), KNOWN, "earn"),
        (LESSON, KNOWN.replace('x.")', 'x.", edge=True)'), "thrice misses one edge and keeps 0"),
    ],
    ids=[
        "a wrong solution",
        "a misconception that passes",
        "a test that pays for nothing",
        "an edge that costs everything",
    ],
)
def test_trial_finds_it(tmp_path: Path, text: str, known: str, says: str) -> None:
    assert any(says in complaint for complaint in complaints(planted(tmp_path, text, known)))


def test_trial_says_once_that_nothing_is_compared(tmp_path: Path) -> None:
    refused = 'with assert_raises(ValueError, "A negative x is to be refused."):\n    double('
    text = LESSON.replace("assert_close(double(x), x + x", "double(x), (x").replace(refused, "(")
    assert text.count("\n") == LESSON.count("\n") - 1
    [said] = complaints(planted(tmp_path, text))
    assert said.startswith("no check of double compares anything")


def test_lint_finds_a_test_that_accepts_the_stub(tmp_path: Path) -> None:
    text = LESSON.replace("assert_close(double(x), x + x", "assert_close(x + x, x + x")
    assert any(
        "passes for the untouched stub" in remark for remark in lint(planted(tmp_path, text))
    )


@pytest.mark.parametrize("top", ["course", "solutions"])
def test_a_drifted_notebook_is_found(tmp_path: Path, top: str) -> None:
    text = LESSON.replace('raise RuntimeError("a demonstration is not run when grading")', "1 + 1")
    planted(tmp_path, text)
    course = Course.load(tmp_path)
    build(course, tmp_path, say=lambda said: None)
    made = Path(shutil.copytree(tmp_path / top, tmp_path / "made"))
    assert drifted(tmp_path / top, made) == []
    (path,) = (tmp_path / top).rglob("tiny.ipynb")
    path.write_text(path.read_text().replace("Twice x", "Three times x"))
    assert drifted(tmp_path / top, made) == [path.relative_to(tmp_path / top).as_posix()]


def test_a_figure_without_alternative_text_is_found() -> None:
    figure = '<figure><img {}src="data:image/png;base64,AAAA"></figure>'
    outputs = [
        nbformat.v4.new_output("display_data", data={"text/html": figure.format(alt)})
        for alt in ('alt="A map." ', 'alt="" ', "")
    ]
    outputs.append(nbformat.v4.new_output("display_data", data={"image/png": "AAAA"}))
    for output, faulty in zip(outputs, (False, True, True, True)):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=[output])])
        assert bool(without_alternative_text(notebook)) is faulty
