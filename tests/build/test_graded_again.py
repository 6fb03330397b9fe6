"""Of a solved notebook whose checks changed, only what is graded runs; where that is not enough,
all of it."""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.build import build
from autograder.build.solved_outputs import WholeRunNeeded, take_outputs
from autograder.course.lessons import Course

from ..tiny import LESSON, tiny_course

pytestmark = pytest.mark.slow

SETUP = "import random\nfrom pathlib import Path"
ANSWER = "def double(x):\n    return 2 * x"
CHECK = 'y = double(3)\nassert y == 6, "Twice."\nprint("twice", y)\ny'
PLAIN = "print(double(4))"
DEMONSTRATION = 'Path("trained").touch()\nprint("drawn", random.random() < 2)'
HIDDEN = 'assert double(0) == 0\nprint("nothing")'


def cell(source: str, *, name: str = "", test: bool = False, tag: str = "") -> NotebookNode:
    ours = {"grade": test, "solution": not test, "task": False, "grade_id": name}
    metadata = {"nbgrader": ours} if name else {}
    made = nbformat.v4.new_code_cell(source, metadata=metadata)
    made.metadata["tags"] = [tag] if tag else []
    made["id"] = name or tag or "plain"
    return made


def notebook() -> NotebookNode:
    return nbformat.v4.new_notebook(
        cells=[
            cell(SETUP, tag="setup"),
            cell(ANSWER, name="double"),
            cell(CHECK, name="test_double", test=True),
            cell(PLAIN),
            cell(DEMONSTRATION, tag="demonstration"),
            cell(HIDDEN, name="test_double_zero", test=True),
        ]
    )


def run(made: NotebookNode, folder: Path) -> NotebookNode:
    """All of it, as a build does that begins from nothing."""
    NotebookClient(
        made,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return made


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    return run(notebook(), tmp_path_factory.mktemp("solved"))


def changed(*changes: tuple[str, str]) -> NotebookNode:
    made = notebook()
    for before, after in changes:
        assert sum(before in cell.source for cell in made.cells) == 1
        for one in made.cells:
            one.source = one.source.replace(before, after)
    return made


def test_a_check_that_changed_has_what_it_prints_now(solved: NotebookNode, tmp_path: Path) -> None:
    """What it prints, and its value, are those of a run of everything."""
    change = ('print("twice", y)', 'print("two times", y)')
    new = changed(change, ('print("nothing")', 'print("zero")'))
    take_outputs(new, solved, tmp_path)
    assert not (tmp_path / "trained").exists()
    whole = run(changed(change, ('print("nothing")', 'print("zero")')), tmp_path)
    assert (tmp_path / "trained").exists()
    assert new.cells == whole.cells
    assert "two times 6" in str(new.cells[2].outputs)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([('print("drawn",', 'print("painted",')], "changed, and is no check"),
        ([(PLAIN, "print(double(5))")], "changed, and is no check"),
        ([("return 2 * x", "return x + x")], "double changed, and is no check"),
        ([("twice", "both"), ("double(4)", "double(5)")], "changed, and is no check"),
    ],
)
def test_all_runs_where_more_than_a_check_changed(
    solved: NotebookNode, tmp_path: Path, changes: list[tuple[str, str]], why: str
) -> None:
    refused(changed(*changes), solved, tmp_path, why)


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("assert trained", "without demonstrations: NameError: name 'trained' is not defined"),
        ("assert 1 == 2, 'never'", "without demonstrations: AssertionError: never"),
    ],
)
def test_all_runs_where_a_check_needs_more(
    solved: NotebookNode, tmp_path: Path, check: str, why: str
) -> None:
    refused(changed((CHECK, check)), solved, tmp_path, why)


def test_all_runs_where_there_is_another_cell(solved: NotebookNode, tmp_path: Path) -> None:
    new = notebook()
    new.cells.append(cell("print(4)"))
    refused(new, solved, tmp_path, "more or fewer cells")
    new = notebook()
    new.cells[2].metadata["tags"] = ["nbval-ignore-output"]
    refused(new, solved, tmp_path, "changed, and is no check")


def refused(new: NotebookNode, before: NotebookNode, folder: Path, why: str) -> None:
    untouched = copy.deepcopy(new)
    with pytest.raises(WholeRunNeeded) as said:
        take_outputs(new, before, folder)
    assert why in str(said.value)
    assert new == untouched


RAISES = 'raise RuntimeError("a demonstration is not run when grading")'


def test_a_build_after_a_changed_sentence_is_that_from_nothing(tmp_path: Path) -> None:
    """Byte by byte; and a changed demonstration is run."""
    lesson = LESSON.replace(RAISES, 'print("drawn")').replace(
        'assert_close(double(x), x + x, "Is it twice x?")',
        'hint = "Is it twice x?"\nassert_close(double(x), x + x, hint)\nprint(hint)',
    )

    def built(root: Path, text: str) -> tuple[dict[str, bytes], str]:
        (root / "lessons" / "01-tiny" / "tiny.py").write_text(text)
        told: list[str] = []
        build(Course.load(root), root, say=told.append, only="01-tiny")
        places = [root / top / "01-tiny" for top in ("build/source", "course", "solutions")]
        files = [path for place in places for path in sorted(place.rglob("*")) if path.is_file()]
        return {str(path.relative_to(root)): path.read_bytes() for path in files}, told[-1]

    first, other = tmp_path / "first", tmp_path / "other"
    for folder in (first, other):
        tiny_course(folder)
    before, told = built(first, lesson)
    assert "running it" in told
    mended = lesson.replace("Is it twice x?", "Is it x + x?")
    after, told = built(first, mended)
    assert told.endswith("of it ran test_double")
    assert after != before
    whole, told = built(other, mended)
    assert "running it" in told
    assert after == whole
    assert b"Is it x + x?\\n" in after["solutions/01-tiny/tiny.ipynb"]
    assert built(first, mended)[1].endswith("is up to date")

    drawn = mended.replace('print("drawn")', 'print("painted")')
    after, told = built(first, drawn)
    assert "running it" in told and "changed, and is no check" in told
    assert b"painted\\n" in after["solutions/01-tiny/tiny.ipynb"]
