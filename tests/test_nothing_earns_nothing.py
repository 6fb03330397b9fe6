"""Whoever does nothing gets nothing: neither code that ignores the question nor a box that
answers the same to everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Lesson
from autograder.diagnose.plain_run import PlainRun
from autograder.lesson.checks import assert_equal, begin_cell, check, checks_passed
from autograder.lesson.failures import NOT_YET_COUNTED, ChecksFailed
from autograder.notebooks import exercise_of

from .conftest import COURSE
from .submissions import graded, notebook_with
from .tiny import LESSON, tiny_course

Called = Callable[..., Any]


def label(lesson: Lesson) -> str:
    return lesson.folder[:2]


def always(value: Any) -> Callable[[Called], Called]:
    return lambda function: lambda *args, **kwargs: value


def first_argument(function: Called) -> Called:
    return lambda *args, **kwargs: next(iter([*args, *kwargs.values()]), None)


def all_arguments(function: Called) -> Called:
    return lambda *args, **kwargs: args


def raises(error: type[Exception]) -> Callable[[Called], Called]:
    def answer(function: Called) -> Called:
        def call(*args: Any, **kwargs: Any) -> Any:
            raise error("no")

        return call

    return answer


def filled(number: float) -> Callable[[Called], Called]:
    """The right kinds, shapes and lengths, and one number everywhere."""

    def answer(function: Called) -> Called:
        return lambda *args, **kwargs: _filled(function(*args, **kwargs), number)

    return answer


def _filled(value: Any, number: float) -> Any:
    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point:
            return torch.full_like(value, number, requires_grad=False)
        return torch.full_like(value, 0)
    if isinstance(value, np.ndarray):
        return np.full_like(value, number if value.dtype.kind == "f" else 0)
    if isinstance(value, (tuple, list)):
        return type(value)(_filled(one, number) for one in value)
    if isinstance(value, dict):
        return {key: _filled(one, number) for key, one in value.items()}
    if isinstance(value, float):
        return number
    return type(value)() if isinstance(value, (bool, int, str)) else value


BOXES = {
    "nothing": always(None),
    "0": always(0),
    "1": always(1),
    "True": always(True),
    "False": always(False),
    "an empty list": always([]),
    "an empty dict": always({}),
    "a pair of None": always((None, None)),
    "an empty array": always(np.zeros(0)),
    "a huge list": always(list(range(10_000))),
    "NaN": always(float("nan")),
    "a tensor": always(torch.zeros(2, 3, dtype=torch.float64)),
    "the first argument": first_argument,
    "all arguments": all_arguments,
    "ValueError": raises(ValueError),
    "zeros that fit": filled(0.0),
    "NaN that fit": filled(float("nan")),
}


@pytest.fixture(scope="module", params=COURSE.lessons, ids=label)
def run(request: pytest.FixtureRequest) -> Iterator[PlainRun]:
    with PlainRun(request.param) as opened:
        yield opened


def earned(run: PlainRun, replaced: dict[str, str], *, as_graded: bool) -> dict[str, float]:
    tests = [
        test for test in run.lesson.tests if not exercise_of(test, run.names).startswith("answer_")
    ]
    errors = run.errors(replaced, 301, tests, as_graded=as_graded)
    return {test: points for test, points in run.points(errors).items() if points}


@pytest.mark.parametrize("box", BOXES)
def test_a_box_that_answers_the_same_to_everything_earns_nothing(run: PlainRun, box: str) -> None:
    with run.answering(BOXES[box]):
        assert earned(run, {}, as_graded=True) == {}


#: What a function, or each method of a class, does with its arguments.
BODIES = {
    "nothing": "return None",
    "0": "return 0",
    "an empty list": "return []",
    "NaN": "return float('nan')",
    "the first argument": "return args[0] if args else None",
    "a copy of it": "return args[0] * 1 if args and hasattr(args[0], 'shape') else None",
    "it twice": "return (args[0], args[0]) if args else None",
    "zeros like it": "return args[0] * 0 if args and hasattr(args[0], 'shape') else None",
    "ValueError": "raise ValueError('no')",
    "True": "return True",
    "False": "return False",
}


def idle(name: str, solution: str, body: str) -> str:
    """Source that binds an exercise's name and ignores what is asked."""
    if f"class {name}" not in solution:
        return f"def {name}(*args, **kwargs):\n    {body}\n"
    base = "nn.Module" if "(nn.Module)" in solution else "object"
    start = body if body.startswith("raise") else "pass"
    return (
        f"class {name}({base}):\n"
        "    def __init__(self, *args, **kwargs):\n"
        "        super().__init__()\n"
        f"        {start}\n"
        f"    def forward(self, *args, **kwargs):\n        {body}\n"
    )


@pytest.mark.parametrize("body", BODIES)
def test_functions_that_ignore_the_question_earn_nothing(run: PlainRun, body: str) -> None:
    solved = {
        name: source
        for name, source in run.lesson.exercises.items()
        if not name.startswith("answer_")
    }
    replaced = {name: idle(name, source, BODIES[body]) for name, source in solved.items()}
    for as_graded in (True, False):
        assert earned(run, replaced, as_graded=as_graded) == {}


#: Says what its caller, or what it is given, calls the thing that is to be judged.
READS_ITS_CALLER = """
def {name}(judged, *more):
    import sys
    inside = [cell.cell_contents for cell in judged.__closure__ or ()]
    seen = [judged.__name__, *inside, *sys._getframe(1).f_locals.values()]
    return any(str(one).startswith("right") for one in seen) is {right}
"""


@pytest.mark.parametrize(("number", "name"), [("05", "mixes_rows"), ("10", "judges_step")])
def test_hidden_checks_tell_a_judge_no_verdict(number: str, name: str) -> None:
    """What is right is known to the tester alone: not by a name beside the student's code."""
    with PlainRun(COURSE.lesson(number)) as run:
        hidden = [test for test in run.tests_of({name}) if test not in (name, f"test_{name}")]
        assert hidden
        for right in (True, False):
            judge = READS_ITS_CALLER.format(name=name, right=right)
            errors = run.errors({name: judge}, 301, hidden, as_graded=True)
            assert sum(run.points(errors).values()) == 0.0
        assert not any(run.errors({}, 301, hidden, as_graded=True).values())


def test_a_graded_student_reads_why_a_side_condition_does_not_count(tmp_path: Path) -> None:
    course = tiny_course(tmp_path)
    hidden = "### BEGIN HIDDEN TESTS"
    marked = LESSON.replace(hidden, f"### SIDE CONDITION: counts later.\n{hidden}")
    (tmp_path / "lessons" / "01-tiny" / "tiny.py").write_text(marked)
    write_source(course.lesson("01"), tmp_path / "source" / "01-tiny")
    bundle = Bundle.load(tmp_path / "source" / "01-tiny")
    refuses = "if x.min() < 0:\n        raise ValueError"
    bodies = {f"{refuses}\n    return 3 * x": 0, f"{refuses}\n    return 2 * x": 1}
    for body, points in bodies.items():
        answer = f"def double(x):\n    {body}\n"
        verdict = graded(bundle, notebook_with(bundle, {"double": answer}))
        (errors,) = [one for one in verdict.tests if one.grade_id == "test_double_errors"]
        assert errors.points == points
        assert (errors.message == NOT_YET_COUNTED.format("`double`")) is (points == 0)
        assert errors.outcome == ("passed" if points else "failed")


def test_of_a_side_condition_that_holds_in_part_each_part_says_what_came_of_it(
    tmp_path: Path,
) -> None:
    course = tiny_course(tmp_path)
    whole = """with assert_raises(ValueError, "A negative x is to be refused."):
    double(np.array([-3.0]))
"""
    parts = """with check("a negative x", points=0.5):
    with assert_raises(ValueError, "A negative x is to be refused."):
        double(np.array([-3.0]))
with check("x stays as it is", points=0.5):
    x = np.ones(2)
    double(x)
    assert_equal(x, np.ones(2), "x is changed in place.")
checks_passed("double")
"""
    marked = LESSON.replace(whole, parts).replace("import assert", "import check, assert", 1)
    hidden = "### BEGIN HIDDEN TESTS"
    marked = marked.replace(hidden, f"### SIDE CONDITION: counts later.\n{hidden}")
    (tmp_path / "lessons" / "01-tiny" / "tiny.py").write_text(marked)
    write_source(course.lesson("01"), tmp_path / "source" / "01-tiny")
    bundle = Bundle.load(tmp_path / "source" / "01-tiny")
    waits = NOT_YET_COUNTED.format("`double`")
    for factor, points, says in ((3, 0.0, f"○ x stays as it is: 0 of 0.5. {waits}"), (2, 0.5, "")):
        answer = f"def double(x):\n    return {factor} * x\n"
        verdict = graded(bundle, notebook_with(bundle, {"double": answer}))
        (errors,) = [one for one in verdict.tests if one.grade_id == "test_double_errors"]
        assert errors.points == points
        assert errors.message.splitlines() == [
            "✗ a negative x: 0 of 0.5. A negative x is to be refused.",
            says or "✓ x stays as it is: 0.5 of 0.5",
        ]


def test_a_side_condition_counts_beside_one_other_check_that_passes() -> None:
    begin_cell()
    for works in (False, True):
        with check("the formula", points=1):
            assert_equal(works, True, "The formula.")
        with check("the other formula", points=1):
            assert_equal(0, 1, "The other formula.")
        with check("arguments stay as they are", points=1, side=True):
            pass
        with pytest.raises(ChecksFailed) as failed:
            checks_passed("softmax")
        assert [part.passed for part in failed.value.parts] == [works, False, works]
        assert (NOT_YET_COUNTED.format("softmax") in str(failed.value)) is not works
