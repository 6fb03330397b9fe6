"""What a student reads when something goes wrong is true, and speaks of the student's code."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient

from autograder.authors.between import between
from autograder.course.lessons import Lesson
from autograder.diagnose.plain_run import PlainRun
from autograder.notebooks import HIDDEN
from autograder.student.check import as_lines, check_notebook
from lesson_kit import checks
from lesson_kit.exceptions import REFUSED, lines_of
from lesson_kit.failures import CheckFailed, ChecksFailed
from lesson_kit.raised import what_was_raised

from ..conftest import COURSE, sampled
from ..hand_outs import TINY, handed_out, type_in
from ..tiny import head

#: Words of the checks' own insides, which no student knows.
INSIDES = ("ChecksFailed", "CheckFailed", "attribute 'known'", "lesson_", "autograder", "evidence")


def spells(error: BaseException, exercise: str) -> str:
    """All that a student reads of what ended a check."""
    if isinstance(error, CheckFailed):
        return f"{error}\n{error.html()}\n" + "\n".join(error._render_traceback_())
    return "\n".join(what_was_raised(exercise, error))


# --- code that raises inside a check ----------------------------------------------------


ERRORS = [
    NameError("name 'wieghts' is not defined"),
    TypeError("unsupported operand type(s) for +: 'NoneType' and 'float'"),
    RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"),
]


def raising(
    exercise: str, error: Exception, where: str | None, called: list[str]
) -> Callable[[Any], Any]:
    """Makes an exercise note the named check that calls it, and raise in one of them."""

    def around(_: str, arguments: dict[str, Any], call: Callable[[], Any]) -> Any:
        running = [part.name for part in checks.parts() if not part.over]
        called.append(running[-1] if running else "")
        if called[-1] == where:
            raise error
        return call()

    return partial(between, exercise, around)


@pytest.mark.parametrize("lesson", sampled(COURSE.lessons), ids=lambda lesson: lesson.folder)
def test_what_is_raised_in_any_check_is_told_and_costs_that_check(lesson: Lesson) -> None:
    visible = {name for name, cell in lesson.tests.items() if not HIDDEN.search(cell.source)}
    tried = 0
    with PlainRun(lesson) as run:
        for exercise in lesson.exercises:
            test = f"test_{exercise}"
            if exercise.startswith("answer_") or test not in visible:
                continue
            called: list[str] = []
            with run.watched(
                exercise, raising(exercise, ERRORS[0], None, called), checks.assert_close
            ):
                assert run.errors({}, 2017, [test])[test] is None
            for where in dict.fromkeys(called):
                for error in ERRORS:
                    watch = raising(exercise, error, where, [])
                    with run.watched(exercise, watch, checks.assert_close):
                        found = run.errors({}, 2017, [test])[test]
                    assert found is not None
                    text = spells(found, exercise)
                    assert str(error) in text
                    assert not [word for word in INSIDES if word in text], text
                    if where:
                        assert isinstance(found, ChecksFailed)
                        assert [part.name for part in found.failed] == [where]
                        passed = [part.points for part in found.parts if part.name != where]
                        assert found.points() == sum(passed)
                    tried += 1
    assert tried >= 6


def raises_in_torch() -> None:
    torch.nn.Module.__setattr__(torch.nn.Linear.__new__(torch.nn.Linear), "a", torch.nn.ReLU())


def test_what_a_library_raises_is_not_called_the_students_own_refusal() -> None:
    try:
        raises_in_torch()
    except AttributeError as error:
        text = "\n".join(lines_of(error))
    assert REFUSED not in text
    assert "its parent's `__init__` has to run" in text
    namespace: dict[str, Any] = {}
    exec(compile("def f(x):\n    raise ValueError(x)\n", "<cell f>", "exec"), namespace)
    lines = ["def f(x):\n", "    raise ValueError(x)\n"]
    linecache.cache["<cell f>"] = (1, None, lines, "<cell f>")
    try:
        namespace["f"](1)
    except ValueError as error:
        text = "\n".join(lines_of(error))
    assert REFUSED in text


def lines_of_cells(answer: str, check: str, earlier: str = "") -> list[str]:
    """What is said of what a check's cell raises, each cell in a file of its own."""
    namespace: dict[str, Any] = {"np": np, "probe": checks.probe}
    cells = {"<cell earlier>": earlier, "<cell answer>": answer, "<cell check>": check}
    for name, source in cells.items():
        linecache.cache[name] = (1, None, source.splitlines(keepends=True), name)
    try:
        for name, source in cells.items():
            exec(compile(source, name, "exec"), namespace)
    except Exception as error:
        return lines_of(error)
    finally:
        for name in cells:
            del linecache.cache[name]
    return []


def test_where_another_exercise_raises_the_line_that_called_it_is_told_too() -> None:
    earlier = "def scores(q, k):\n    return k @ q\n"
    answer = "def look_up(q, k):\n    found = scores(q, k.T)\n    return found\n"
    check = "look_up(np.ones(3), np.ones((2, 3)))\n"
    *_, where = lines_of_cells(answer, check, earlier)
    assert "This was in `scores`, line 2 of its cell: `return k @ q`" in where
    assert where.endswith("called in `look_up`, line 2 of its cell: `found = scores(q, k.T)`")
    *_, where = lines_of_cells(answer, "scores(np.ones(3), np.ones((3, 2)))\n", earlier)
    assert "called in" not in where


def test_the_shapes_of_arrays_are_told_and_no_others() -> None:
    answer = "def f(x, kind=np.dtype(float)):\n    return x.astype(kind) @ np.ones(2)\n"
    *_, where = lines_of_cells(answer, "f(np.ones(3))\n")
    assert where.endswith("There `x` has shape (3,).")


def test_what_is_none_in_a_line_is_named_and_no_return_is_called_missing() -> None:
    answer = "def both(a, b):\n    return a & b\n"
    first, _, where = lines_of_cells(answer, "both(None, np.ones(3, dtype=bool))\n")
    assert "an argument that was left out" in first
    assert "There `a` is None, `b` has shape (3,)." in where


def test_a_line_of_the_check_is_not_called_the_students() -> None:
    answer = "class Layer:\n    bias = None\n"
    body = "    layer = Layer()\n    layer.bias.copy_(bias)\n    return layer\n"
    check = "@probe\ndef outputs(bias):\n" + body + "\noutputs(np.ones(3))\n"
    first, _, where = lines_of_cells(answer, check)
    assert "a part that was not made" in first
    assert "in a line of the check, `layer.bias.copy_(bias)`" in where
    assert "its cell" not in where
    inside = "class Layer:\n    def __init__(self):\n        self.bias = None + 1\n"
    assert "line 3 of its cell: `self.bias = None + 1`" in lines_of_cells(inside, check)[-1]


def test_numpys_transpose_is_not_said_to_name_an_axis_that_is_not_there() -> None:
    answer = "def f(x):\n    return x.transpose(-2, -3)\n"
    first, *_ = lines_of_cells(answer, "f(np.ones((2, 3, 4)))\n")
    assert "the new order of all axes" in first and "no such axis" not in first


# --- one kernel -------------------------------------------------------------------------


RIGHT = "def double(x):\n    return x + x\n"
CHECK = (
    'with check("of two", points=1):\n    assert_equal(double(2), 4, "Two.")\n'
    'with check("of three", points=2):\n    assert_equal(double(3), 6, "Three.")\n'
    'checks_passed("double")\n'
)


def test_named_checks_of_a_cell_that_raised_do_not_count_in_the_next(
    student: Callable[..., list[str]],
) -> None:
    raises = CHECK.replace("checks_passed", "double('a')[7]\nchecks_passed").replace("4,", "5,")
    other = CHECK.replace("double", "twice").replace("of t", "twice of t")
    first, *_, last = student(RIGHT, raises, RIGHT.replace("double", "twice"), other)
    assert first == ""
    assert last.startswith("twice: these checks pass.")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("def double(x:\n    return x + x\n", "SyntaxError"),
        ("x = undefined_name\ndef double(x):\n    return x\n", "undefined_name"),
        ("@no_such_thing\ndef double(x):\n    return x\n", "no_such_thing"),
    ],
)
def test_a_cell_that_did_not_run_is_never_green(
    student: Callable[..., list[str]], broken: str, why: str
) -> None:
    *_, before, _, after, _, again = student(RIGHT, CHECK, broken, CHECK, RIGHT, CHECK)
    assert before.startswith("double: these checks pass.")
    assert "these checks pass" not in after
    assert "did not run" in after.split("double: this check does not pass yet.")[1][:100]
    assert why in after and "what you had before" in after
    assert again.startswith("double: these checks pass.")


def test_a_cell_that_failed_at_its_first_run_is_said_and_not_only_a_missing_name(
    student: Callable[..., list[str]],
) -> None:
    *_, after = student("def double(x:\n    return 0\n", CHECK)
    assert "did not run" in after and "SyntaxError" in after


def test_a_cell_that_raised_after_its_definition_was_taken_counts(
    student: Callable[..., list[str]],
) -> None:
    *_, after = student(RIGHT + "print(double(tow))\n", CHECK)
    assert after.startswith("double: these checks pass.")


BUILDS_ON = "def quadruple(x):\n    return double(double(x))\n"
CHECK_BOTH = 'assert_equal(quadruple(3), 12, "Four times three.")\nchecks_passed("quadruple")\n'


def test_an_exercise_that_builds_on_a_wrong_one_is_not_accused(
    student: Callable[..., list[str]],
) -> None:
    wrong = "def double(x):\n    return x * x\n"
    *_, after, _, _, right = student(wrong, CHECK, BUILDS_ON, CHECK_BOTH, RIGHT, CHECK, CHECK_BOTH)
    assert "`double` does not pass yet: mend that first." in after
    assert right.startswith("quadruple: these checks pass.")


def test_an_exercise_that_does_not_use_the_wrong_one_is_not_excused(
    student: Callable[..., list[str]],
) -> None:
    wrong = "def double(x):\n    return x * x\n"
    alone = "def quadruple(x):\n    return x**4\n"
    *_, after = student(wrong, CHECK, alone, CHECK_BOTH)
    assert "Four times three." in after
    assert "mend that first" not in after


# --- the terminal -----------------------------------------------------------------------


def test_the_terminal_says_what_the_box_says_line_for_line(tmp_path: Path) -> None:
    text = (
        '# %% tags=["setup"]\nimport numpy as np\n'
        "from lesson_kit.checks import assert_close, assert_equal, check, checks_passed\n\n"
        + head("double")
        + "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION\n\n"
        + head("test_double", test=True, points=3)
        + CHECK
        + "\n"
        + head("halve")
        + "def halve(x):\n    ### BEGIN SOLUTION\n    return x / 2\n    ### END SOLUTION\n\n"
        + head("test_halve", test=True, points=3)
        + 'assert_close(halve(np.eye(5)), np.eye(5) / 2, "Half of all.")\nchecks_passed("halve")\n'
    )
    course = handed_out(tmp_path, text)
    for wrong in (
        "def double(x):\n    if x == 3:\n        return x @ x\n    return x + x\n",
        "def double(x):\n    return x\n",
        "def double(x:\n    return x\n",
        "def double(x):\n    raise ValueError('x')\n",
    ):
        halve = "def halve(x):\n    return x\n"
        type_in(course / TINY, double=wrong, halve=halve)
        notebook = nbformat.read(course / TINY, as_version=4)
        resources = {"metadata": {"path": str((course / TINY).parent)}}
        NotebookClient(notebook, timeout=120, allow_errors=True, resources=resources).execute()
        boxes = [
            output.data["text/plain"].splitlines()
            for cell in notebook.cells
            for output in cell.get("outputs", [])
            if output.output_type == "display_data"
        ]
        assert len(boxes) == 2
        checked = check_notebook(course / TINY, 60)
        terminal = [line.strip() for line in as_lines(checked)]
        for box in boxes:
            said = [line.strip() for line in box[3:-1]]
            start = terminal.index(said[0])
            assert terminal[start : start + len(said)] == said
        assert checked.checks[0].points == (1.0 if "@" in wrong else 0.0)
