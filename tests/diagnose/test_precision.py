"""Single precision in place of double costs the points of precision, and nothing else passes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from autograder.course.implementations import Implementation, misconceptions
from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import graded_cells
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED
from autograder.diagnose.matrix import Matrix
from autograder.notebooks import nbgrader_metadata
from lesson_kit.checks import assert_close
from lesson_kit.failures import CheckFailed

from ..conftest import COURSE, sampled

WANT = np.random.default_rng(3).normal(size=(4, 5))


def refused(actual: Any, expected: Any = WANT, **how: Any) -> str:
    """What is said of a result, or "" where it is let through."""
    try:
        assert_close(actual, expected, "Is it right?", **how)
    except CheckFailed as failed:
        return str(failed)
    return ""


def in_single_precision(x: np.ndarray) -> np.ndarray:
    """With the rounding of a few steps in single precision."""
    noise = np.sin(np.arange(x.size)).reshape(x.shape)
    return (x * (1 + 5e-7 * noise)).astype(np.float32)


@pytest.mark.parametrize("back", [np.float32, np.float64])
def test_a_formula_in_single_precision_passes_unless_precision_is_asked_for(back: type) -> None:
    got = in_single_precision(WANT).astype(back)
    assert not refused(got)
    assert refused(got, precise=True)
    assert not refused(torch.tensor(got), torch.tensor(WANT))
    assert refused(torch.tensor(got), torch.tensor(WANT), precise=True)
    assert not refused(WANT * (1 + 1e-12), precise=True)


def test_single_precision_is_named_where_precision_is_asked_for() -> None:
    assert "less precise than the float64" in refused(WANT.astype(np.float32), precise=True)


def test_a_tolerance_of_the_check_holds_for_doubles_and_asks_nothing_of_the_dtype() -> None:
    assert not refused(in_single_precision(WANT), rtol=1e-10, atol=1e-13)
    assert refused(WANT * (1 + 1e-8), rtol=1e-10, atol=1e-13)
    assert refused(in_single_precision(WANT), rtol=1e-3, atol=1e-3, precise=True)


@pytest.mark.parametrize("error", [1.001, 1.0002])
def test_another_formula_is_not_taken_for_rounding(error: float) -> None:
    for kind in (np.float32, np.float64):
        assert refused((WANT * error).astype(kind))
        # Small numbers are not let through for being small.
        assert refused((1e-3 * WANT * error).astype(kind), 1e-3 * WANT)


def test_noise_around_zero_is_rounding() -> None:
    assert not refused(np.full(3, 1e-17), np.zeros(3))
    assert refused(np.full(3, 1e-7), np.zeros(3))


def test_half_precision_is_not_the_same_with_fewer_digits() -> None:
    assert "float16" in refused(WANT.astype(np.float16))


def test_what_is_expected_in_single_precision_is_compared_as_before() -> None:
    want = WANT.astype(np.float32)
    assert not refused(in_single_precision(WANT), want)
    assert not refused(WANT, want)
    assert refused(WANT.astype(np.float16), want)


# --- in the course ----------------------------------------------------------------------

#: Known wrong answers that are right but for their precision. Not the heads, which give back the
#: very numbers they get.
SINGLE = re.compile(r"float32|single_precision")
ELSEWHERE = {"split_heads", "combine_heads", "leaks_future"}
#: The share of an exercise's points that precision may cost.
MOST = 0.4

SINGLES = [
    (lesson, one)
    for lesson in COURSE.lessons
    for one in misconceptions(lesson)
    if SINGLE.search(one.name) and one.exercise not in ELSEWHERE
]


@pytest.mark.parametrize(
    ("lesson", "one"), sampled(SINGLES), ids=lambda value: getattr(value, "name", "")
)
def test_single_precision_costs_the_points_of_precision(
    lesson: Lesson, one: Implementation
) -> None:
    tests = graded_cells(lesson, one.exercise)
    with Matrix(lesson) as matrix:
        kept = sum(matrix.points(matrix.of(one, tests, DIAGNOSIS_SEED)).values())
    worth = sum(float(nbgrader_metadata(lesson.tests[test])["points"]) for test in tests)
    assert 0 < worth - kept <= MOST * worth


def test_there_are_such_answers_in_most_lessons() -> None:
    assert len({lesson.folder for lesson, _ in SINGLES}) >= 7
