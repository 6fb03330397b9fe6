"""Whoever does nothing gets nothing: `autograder trial` tries code that ignores the question and
boxes that answer the same to everything (test_the_tests); here is how side conditions count."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.diagnose.catalogue import graded_cells
from autograder.diagnose.matrix import Matrix
from lesson_kit.checks import assert_equal, begin_cell, check, checks_passed
from lesson_kit.failures import NOT_YET_COUNTED, ChecksFailed

from ..conftest import COURSE
from ..submissions import graded, notebook_with
from ..tiny import LESSON, tiny_course

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
    lesson = COURSE.lesson(number)
    hidden = [test for test in graded_cells(lesson, name) if test not in (name, f"test_{name}")]
    assert hidden
    with Matrix(lesson) as matrix:
        for right in (True, False):
            judge = READS_ITS_CALLER.format(name=name, right=right)
            outcomes = matrix.outcomes({name: judge}, hidden, 301)
            assert sum(matrix.points(outcomes).values()) == 0.0
        assert all(outcome.passed for outcome in matrix.outcomes({}, hidden, 301).values())


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
