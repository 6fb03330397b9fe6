"""nbgrader's source notebooks become lessons that are graded at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import nbgrader
import pytest
from nbformat import NotebookNode

from autograder.authors.nbgrader_notebooks import CannotImport, import_notebooks
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Course

from ..submissions import graded, notebook_with, points

EXAMPLES = Path(nbgrader.__file__).parent / "docs" / "source" / "user_guide" / "source"


def cell(name: str, text: str, worth: float | None = None, **more: Any) -> NotebookNode:
    """A cell as nbgrader's toolbar makes it: an answer, or a test that is worth something."""
    kind = {"grade": worth is not None, "locked": False, "solution": worth is None, **more}
    made = nbformat.v4.new_code_cell(text)
    metadata = {**kind, "grade_id": name, "points": worth or 0, "schema_version": 3, "task": False}
    made.metadata["nbgrader"] = NotebookNode(metadata)
    return made


def solution(text: str) -> str:
    return f"    ### BEGIN SOLUTION\n    {text}\n    ### END SOLUTION\n"


CELLS = (
    nbformat.v4.new_markdown_cell("# Averages"),
    nbformat.v4.new_code_cell("%matplotlib inline\nimport numpy as np\nfactor = 2"),
    cell("q1", "def mean(x):\n" + solution("return np.sum(x) / len(x)")),
    cell("test-mean", "assert mean([1.0, 3.0]) == 2", 2),
    cell(
        "cell-1a",
        "x = np.arange(5.0)\n### BEGIN HIDDEN TESTS\n"
        'assert mean(x) == 2, "Not of an array."\n### END HIDDEN TESTS',
        3,
    ),
    cell("reads", "assert mean([factor]) == 2", 1),
    cell("takes", "np.linalg.norm = None\nassert mean([1]) == 1", 1),
    cell("nothing", "import math\nassert math", 1),
    nbformat.v4.new_code_cell("not_there"),
    nbformat.v4.new_code_cell("# help:\n?mean"),
    nbformat.v4.new_code_cell("a b"),
    cell("q2", "def doubled(x):\n" + solution("return 2 * mean([x])") + "\nhalf = 0.5"),
    cell("beside", "assert doubled(half) == 1", 1),
    cell("test-doubled", "from math import isclose\nassert isclose(doubled(4), 8)", 1),
    cell("test-half", "assert isclose(doubled(0.5), 1)", 1),
    cell("q3", "def alone():\n" + solution("return 1")),
    cell("plots", solution("print(3)").replace("    ", "")),
    cell("by hand", "print(mean([1]))", 4, solution=True),
)


def notebook_at(path: Path, *cells: NotebookNode) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), path)
    return path


def bundle_of(root: Path, into: Path) -> Bundle:
    [lesson] = Course.load(root).lessons
    write_source(lesson, into / lesson.folder)
    return Bundle.load(into / lesson.folder)


@pytest.mark.slow
def test_a_notebook_is_graded_at_once(tmp_path: Path) -> None:
    path = notebook_at(tmp_path / "source" / "ps1" / "Problem 1.ipynb", *CELLS)
    made = import_notebooks(path.parent.parent, tmp_path / "mine")
    assert made.lessons == ["01-problem-1"]
    told = "\n".join(made.remarks)
    assert told.count("\n") == 6
    assert "the cell a b is left out: no Python" in told
    assert "ps1/Problem 1.ipynb: by hand is code or a task that a person grades" in told
    assert "the test takes (1 points) is left out: it changes np.linalg.norm, which" in told
    assert "the test beside (1 points) is left out: it reads half, which no given cell" in told
    assert "the answer plots is left out: no test below calls what it makes" in told
    assert "the test nothing (1 points) is left out: it passes where nothing was written" in told
    assert "cell not_there is left out: it stops with NameError" in told
    bundle = bundle_of(tmp_path / "mine", tmp_path / "bundle")
    assert points(graded(bundle, notebook_with(bundle))) == {
        "mean": 6.0,
        "doubled": 2.0,
        "alone": 0.0,
    }
    wrong = {"mean": "def mean(x):\n    return sum(x) / 2\n"}
    half = points(graded(bundle, notebook_with(bundle, wrong)))
    assert half == {"mean": 2.0, "doubled": 2.0, "alone": 0.0}
    unwritten = {
        name: f"def {name}(x):\n    raise NotImplementedError()\n" for name in bundle.exercises
    }
    assert set(points(graded(bundle, notebook_with(bundle, unwritten))).values()) == {0.0}


def test_nbgraders_own_example(tmp_path: Path) -> None:
    made = import_notebooks(EXAMPLES / "ps1" / "problem1.ipynb", tmp_path / "mine")
    [left_out] = [text for text in made.remarks if "the test" in text]
    assert "sum_of_squares_uses_squares (0.5 points)" in left_out
    assert "the solution does not pass it: AssertionError" in left_out
    bundle = bundle_of(tmp_path / "mine", tmp_path / "bundle")
    solved = points(graded(bundle, notebook_with(bundle)))
    assert solved == {"squares": 2.0, "sum_of_squares": 0.5}
    assert [(one.grade_id, one.points) for one in bundle.written] == [
        ("written_sum_of_squares_equation", 1.0)
    ]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ((), "p.ipynb: left out: it has no tests"),
        ((cell("t", "assert f()", 1),), "the test t is left out: it stands above all"),
        ((cell("q", "1 + 1"), cell("t", "assert True", 1)), "the answer q is left out: no test"),
        ((cell("q", "def f(:"), cell("t", "assert f()", 1)), "the answer q is not valid Python"),
        (
            (cell("q", "def f(): pass"), cell("t", "assert f(:", 1)),
            r"the cell assert f\(: is left out: no Python",
        ),
        (
            (cell("q", "def f(): pass"), cell("t", "assert f() == 3", 1)),
            "no test could be taken over",
        ),
    ],
)
def test_a_notebook_that_cannot_be_graded_so(
    cells: tuple[NotebookNode, ...], says: str, tmp_path: Path
) -> None:
    path = notebook_at(tmp_path / "p.ipynb", *cells)
    with pytest.raises(CannotImport, match=says):
        import_notebooks(path, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_nothing_is_overwritten_and_nothing_made_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(CannotImport, match="holds no notebook; name nbgrader's source folder"):
        import_notebooks(tmp_path, tmp_path / "mine")
    path = notebook_at(tmp_path / "p.ipynb", *CELLS)
    with pytest.raises(CannotImport, match="choose a new folder"):
        import_notebooks(path, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["p.ipynb"]
