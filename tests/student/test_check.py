"""`autograder check` says what the visible checks say, whatever state a notebook is in."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import nbformat
import pytest

from autograder.cli.main import main
from autograder.notebooks import grade_id
from autograder.student.check import (
    CHANGED,
    ERROR,
    FAILS,
    GONE,
    NOT_WRITTEN,
    PASSES,
    Check,
    Checked,
    CheckError,
    as_lines,
    check_notebook,
    lines_of_check,
    notebooks,
    summary,
)

from ..hand_outs import TINY, cell_named, handed_out, read, type_in
from ..tiny import head

DOUBLE = "def double(x):\n    return 2 * x\n"
QUADRUPLE = "def quadruple(x):\n    return double(double(x))\n"
RIGHT = {"double": DOUBLE, "quadruple": QUADRUPLE, "answer_size": 'answer_size = "b"'}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handed_out(tmp_path_factory.mktemp("release"))


@pytest.fixture
def course(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "course"))


def outcomes(checked: Checked) -> dict[str, str]:
    assert not checked.problem
    return {check.grade_id: check.outcome for check in checked.checks}


def message(checked: Checked, name: str) -> str:
    return next(check.message for check in checked.checks if check.grade_id == name)


def test_the_untouched_notebook_is_not_written_yet(course: Path) -> None:
    before = (course / TINY).read_bytes()
    found = check_notebook(course / TINY, 60)
    assert outcomes(found) == {
        "test_double": NOT_WRITTEN,
        "test_quadruple": NOT_WRITTEN,
        "test_answer_size": NOT_WRITTEN,
    }
    assert "0 of 7 points" in summary([found])
    assert (course / TINY).read_bytes() == before


def test_right_answers_pass_and_the_demonstration_is_not_run(course: Path) -> None:
    type_in(course / TINY, **RIGHT)
    before = (course / TINY).read_bytes()
    found = check_notebook(course / TINY, 60)
    assert set(outcomes(found).values()) == {PASSES} and found.passes
    assert "7 of 7 points" in summary([found])
    assert "More checks run when your work is graded" in summary([found])
    assert (course / TINY).read_bytes() == before


def test_every_way_not_to_pass_is_told_apart(course: Path) -> None:
    type_in(
        course / TINY,
        double="def double(x):\n    return 3 * x\n",
        quadruple="def quadruple(x):\n    return x[10]\n",
        answer_size='answer_size = "a"',
    )
    found = check_notebook(course / TINY, 60)
    assert outcomes(found) == {
        "test_double": FAILS,
        "test_quadruple": ERROR,
        "test_answer_size": FAILS,
    }
    assert "Is it twice x?" in message(found, "test_double")
    assert message(found, "test_quadruple").startswith("IndexError")
    assert "It is larger." in message(found, "test_answer_size")
    text = "\n".join(as_lines(found))
    assert "✗ double" in text and "0/2" in text and "Is it twice x?" in text
    assert max(len(line) for line in as_lines(found)) < 100


def test_what_stops_at_another_exercise_says_so(course: Path) -> None:
    type_in(course / TINY, quadruple=QUADRUPLE)
    found = check_notebook(course / TINY, 60)
    assert outcomes(found)["test_quadruple"] == NOT_WRITTEN
    assert "builds on" in message(found, "test_quadruple")


def test_a_syntax_error_costs_its_own_exercise(course: Path) -> None:
    type_in(course / TINY, **{**RIGHT, "double": "def double(x:\n"})
    type_in(course / TINY, quadruple="def quadruple(x):\n    return 4 * x\n")
    found = check_notebook(course / TINY, 60)
    assert outcomes(found) == {
        "test_double": ERROR,
        "test_quadruple": PASSES,
        "test_answer_size": PASSES,
    }
    assert "The last cell that defines `double` did not run. SyntaxError" in " ".join(
        message(found, "test_double").split()
    )


@pytest.mark.slow
def test_a_cell_that_hangs_or_ends_python_does_not_end_the_rest(course: Path) -> None:
    hangs = (
        "import time\ndef double(x):\n    while True:\n        try:\n            time.sleep(600)\n"
        "        except KeyboardInterrupt:\n            pass\n"
    )
    type_in(
        course / TINY,
        double=hangs,
        quadruple="import os\ndef quadruple(x):\n    os._exit(3)\n",
        answer_size='answer_size = "b"',
    )
    found = check_notebook(course / TINY, 10)
    assert outcomes(found) == {
        "test_double": ERROR,
        "test_quadruple": ERROR,
        "test_answer_size": PASSES,
    }
    assert "did not end within 10 seconds" in message(found, "test_double")
    assert "ended Python" in message(found, "test_quadruple")


def test_a_terminal_without_a_check_mark_is_told_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a pipe on Windows."""
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "cp1252"))
    monkeypatch.setattr("autograder.student.check.notebooks", lambda paths, folder: [])
    monkeypatch.setattr("autograder.student.check.summary", lambda found: "✓ double passes")
    assert main(["check", str(tmp_path)]) == 0
    assert b"? double passes" in written.getvalue()


def test_imports_that_fail_are_named(course: Path) -> None:
    (course / "01-tiny" / "lesson_kit/failures.py").write_text("import not_there\n")
    found = check_notebook(course / TINY, 60)
    assert set(outcomes(found).values()) == {ERROR}
    assert "The cell with the imports did not run. ModuleNotFound" in message(found, "test_double")


def test_checks_that_are_gone_or_changed_are_named(course: Path) -> None:
    type_in(course / TINY, **RIGHT, test_double='checks_passed("double")\n')
    notebook = read(course / TINY)
    notebook.cells = [
        cell for cell in notebook.cells if grade_id(cell) not in ("test_quadruple", "quadruple")
    ]
    nbformat.write(notebook, course / TINY)
    found = check_notebook(course / TINY, 60)
    assert outcomes(found) == {
        "test_double": CHANGED,
        "test_quadruple": GONE,
        "test_answer_size": PASSES,
    }
    assert not found.passes
    assert "2 of 7" not in summary([found]) and "1 of 7 points" in summary([found])


def test_a_lost_check_is_missed_also_where_the_release_is_not_known(course: Path) -> None:
    (course / ".release.json").unlink()
    notebook = read(course / TINY)
    notebook.cells.remove(cell_named(notebook, "test_double"))
    nbformat.write(notebook, course / TINY)
    assert outcomes(check_notebook(course / TINY, 60))["test_double"] == GONE


def test_tags_and_kernel_names_do_not_turn_a_check_off(course: Path) -> None:
    notebook = read(course / TINY)
    notebook.metadata["kernelspec"] = {"name": "no-such-kernel", "display_name": "None"}
    cell_named(notebook, "test_double").metadata["tags"] = ["skip-execution"]
    nbformat.write(notebook, course / TINY)
    assert outcomes(check_notebook(course / TINY, 60))["test_double"] == NOT_WRITTEN


@pytest.mark.slow
def test_named_checks_in_a_cell_keep_their_own_points(tmp_path: Path) -> None:
    text = (
        '# %% tags=["setup"]\n'
        "from lesson_kit.checks import assert_equal, check, checks_passed\n\n"
        + head("double")
        + "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION\n\n"
        + head("test_double", test=True, points=3)
        + 'with check("of two", points=1):\n    assert_equal(double(2), 4, "Two.")\n'
        'with check("of three", points=2):\n    assert_equal(double(3), 6, "Three.")\n'
        'checks_passed("double")\n'
    )
    course = handed_out(tmp_path, text)
    type_in(course / TINY, double="def double(x):\n    return x * x\n")
    (check,) = check_notebook(course / TINY, 60).checks
    assert (check.outcome, check.points, check.max_points) == (FAILS, 1.0, 3.0)
    assert "Three." in check.message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b'{"cells": [', "not JSON (line 1)"),
        (b'<<<<<<< HEAD\n{"cells": []}\n>>>>>>> theirs\n', "conflict marks"),
        (b"[1, 2]", "not a notebook"),
        (b"\xff\xfe\x00", "not text"),
    ],
)
def test_a_file_that_is_no_notebook_is_said_and_left(
    course: Path, capsys: pytest.CaptureFixture[str], content: bytes, says: str
) -> None:
    (course / TINY).write_bytes(content)
    assert main(["check", str(course)]) == 1
    assert says in capsys.readouterr().out
    assert (course / TINY).read_bytes() == content


def test_which_notebooks_are_meant(course: Path) -> None:
    beside = course / "01-tiny" / "tiny.before-update-20260101-000000.ipynb"
    shutil.copy(course / TINY, beside)
    nbformat.write(nbformat.v4.new_notebook(), course / "01-tiny" / "scratch.ipynb")
    tiny = course / TINY
    assert notebooks([], course) == [tiny]
    assert notebooks([], course.parent) == [tiny]
    assert notebooks([], course / "01-tiny") == [tiny]
    assert notebooks([course, tiny], Path()) == [tiny]
    assert notebooks([beside], Path()) == [beside]
    for given in ([course / "nowhere"], [course / "01-tiny" / "nowhere.ipynb"]):
        with pytest.raises(CheckError, match="does not exist"):
            notebooks(given, Path())
    (course.parent / "empty").mkdir()
    with pytest.raises(CheckError, match="course folder"):
        notebooks([], course.parent / "empty")


def test_exit_status_and_json(
    course: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(course)
    type_in(course / TINY, **RIGHT)
    assert main(["check", "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["passes"] is True
    (notebook,) = tree["notebooks"]
    assert {check["outcome"] for check in notebook["checks"]} == {PASSES}
    type_in(course / TINY, double="def double(x):\n    return '\\x1b[2J'\n")
    assert main(["check"]) == 1
    out = capsys.readouterr().out
    assert "01-tiny/tiny.ipynb" in out and "\x1b" not in out
    assert main(["check", "nowhere.ipynb"]) == 2
    assert "autograder: " in capsys.readouterr().err


def test_each_check_is_told_once_and_as_it_comes(course: Path) -> None:
    type_in(course / TINY, double="def double(x):\n    return 2 * x\n", answer_size="answer_size =")
    told: list[tuple[str, int, int]] = []
    found = check_notebook(
        course / TINY, 60, lambda check, known, most: told.append((check.grade_id, known, most))
    )
    assert told == [("test_double", 1, 3), ("test_quadruple", 2, 3), ("test_answer_size", 3, 3)]
    assert [check.grade_id for check in found.checks] == [name for name, _, _ in told]


def test_a_long_message_is_wrapped_for_the_terminals_width() -> None:
    words = "A sentence of some length that a narrow terminal cannot hold on one line. " * 3
    check = Check("test_x", "x", 0.0, 1.0, FAILS, f"{words}\n  1.0  2.0  3.0")
    first, *more = lines_of_check(check, 50)
    assert first.startswith("  ✗ x  0/1")
    assert len(more) > 5 and max(map(len, more)) <= 50
    assert more[-1].endswith("  1.0  2.0  3.0")
