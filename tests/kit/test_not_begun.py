"""A cell that waits for an answer which is not written yet says so, whatever it raises."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..hand_outs import TINY, handed_out, read
from ..played import Notebook, run

pytestmark = pytest.mark.slow

STUB = "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()\n"
DOUBLE = "def double(x):\n    return 2 * x\n"
RUNS = "runs = []\nfor n in range(2):\n    runs.append(double(n))"
MORE = "losses.append(double(3))\nfirst = losses[0]"
DRAWS = (
    "import matplotlib.pyplot as plt\n\n\ndef smallest():\n    return min(losses)\n\n\n"
    "plt.subplots()\nprint(runs[0], smallest())"
)
FIGURES = "print(plt.get_fignums())"


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handed_out(tmp_path_factory.mktemp("release"))


def said(lesson: Path, *cells: str) -> list[str]:
    """What cells say below the setup cell; with the exception of those that raise."""
    course = shutil.copytree(lesson, lesson.parent / "course-1", dirs_exist_ok=True)
    setup = next(
        c.source for c in read(course / TINY).cells if "setup" in c.metadata.get("tags", [])
    )
    named = [(str(number), source) for number, source in enumerate([setup, *cells])]
    (all_said,) = run(Notebook(course / "01-tiny", named))
    return [all_said[name] + all_said.get(f"failed {name}", "") for name, _ in named][1:]


def test_what_a_stub_leaves_unmade_is_waited_for_and_no_figure_stays(lesson: Path) -> None:
    begun = ["losses = []", STUB, RUNS, MORE, DRAWS, FIGURES, "last = first + 1", "print(last)"]
    _, _, runs, more, draws, figures, last, printed = said(lesson, *begun)
    for text in (runs, more):
        assert "`double` is used here and is not written yet: write it first." in text
    assert "The cell above that makes `losses` waits for `double`." in draws
    assert figures.strip() == "[]"
    assert "The cell above that makes `first` waits for `double`." in last
    assert "The cell above that makes `last` waits for `double`." in printed


def test_no_figure_stays_where_an_answers_cell_has_not_run(lesson: Path) -> None:
    draws = "import matplotlib.pyplot as plt\n\nplt.subplots()\nprint(double(1))"
    early, figures = said(lesson, draws, FIGURES)
    assert "This cell could not run yet" in early
    assert figures.strip() == "[]"


def test_once_it_is_written_and_run_nothing_waits(lesson: Path) -> None:
    cells = ["losses = []", STUB, RUNS, DOUBLE, RUNS, MORE, DRAWS, FIGURES, "runs[5]", "min([])"]
    *_, draws, figures, wrong, other = said(lesson, *cells)
    assert draws.strip() == "0 6"
    assert figures.strip() == "[1]"
    assert "waits" not in wrong and "IndexError" in wrong
    assert "waits" not in other and "ValueError" in other


def test_a_check_says_what_it_said(lesson: Path) -> None:
    check = next(
        cell.source
        for cell in read(lesson / TINY).cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "test_double"
    )
    _, _, _, fails = said(lesson, STUB, "x = double(1)", DOUBLE.replace("2 * x", "3 * x"), check)
    assert "double: this check does not pass yet." in fails and "waits" not in fails


def test_a_cell_does_not_wait_for_what_it_makes_itself(lesson: Path) -> None:
    check = "result = double(2)\nassert result == 4, 'Is it twice x?'"
    *_, again = said(lesson, STUB, check, DOUBLE.replace("2", "3"), check)
    assert "waits" not in again and "Is it twice x?" in again
