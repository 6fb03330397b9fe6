"""Which tests run a second time, on the inputs of the known mistakes, so that one can be named."""

from __future__ import annotations

import pytest

from autograder.box.box import Box
from autograder.course.bundle import Bundle, TestCell
from autograder.course.implementations import misconceptions
from autograder.grade.result import FAILED, PARTIAL, Result
from autograder.grade.tester import Evidence, Tester

from ..conftest import COURSE
from ..submissions import graded, notebook_with

EXERCISE = "soft_lookup"


@pytest.fixture
def bundle(bundles: dict[str, Bundle]) -> Bundle:
    return bundles[COURSE.lesson("02").folder]


@pytest.fixture
def wrong() -> str:
    known = misconceptions(COURSE.lesson("02"))
    name = (EXERCISE, "temperature_after_the_softmax")
    return next(one.source for one in known if (one.exercise, one.name) == name)


@pytest.fixture
def all_observed(monkeypatch: pytest.MonkeyPatch) -> list[TestCell]:
    tests: list[TestCell] = []
    observe = Tester.observe

    def noted(self: Tester, test: TestCell, box: Box, seed: int) -> tuple[Evidence, ...] | None:
        tests.append(test)
        return observe(self, test, box, seed)

    monkeypatch.setattr(Tester, "observe", noted)
    return tests


def failing(verdict: Result) -> dict[str, str]:
    """The diagnosis of each test of the exercise that failed."""
    return {
        test.grade_id: test.diagnosis
        for test in verdict.tests
        if test.exercise == EXERCISE and test.outcome in (FAILED, PARTIAL)
    }


def of_the_exercise(tests: list[TestCell]) -> list[str]:
    return [test.grade_id for test in tests if test.exercise == EXERCISE]


def test_the_visible_test_settles_it_where_the_others_fail_alike(
    bundle: Bundle, wrong: str, all_observed: list[TestCell]
) -> None:
    found = failing(graded(bundle, notebook_with(bundle, {EXERCISE: wrong})))
    assert len(found) > 1
    assert set(found.values()) == {"temperature_after_the_softmax"}
    assert of_the_exercise(all_observed) == [f"test_{EXERCISE}"]


def test_where_another_test_fails_than_with_the_mistake_all_that_fail_are_looked_at(
    bundle: Bundle, wrong: str, all_observed: list[TestCell]
) -> None:
    refuses = wrong.replace(
        "    weights =", '    if keys.dtype.kind == "i":\n        keys[0] / []\n    weights ='
    )
    assert refuses != wrong
    found = failing(graded(bundle, notebook_with(bundle, {EXERCISE: refuses})))
    assert f"test_{EXERCISE}_kinds" in found
    assert set(of_the_exercise(all_observed)) == set(found)
    assert found[f"test_{EXERCISE}_kinds"] != "temperature_after_the_softmax"


def test_what_passed_is_not_run_again(bundle: Bundle, all_observed: list[TestCell]) -> None:
    graded(bundle, notebook_with(bundle))
    assert all_observed == []


def test_a_test_whose_inputs_are_always_the_same_is_not_run_again(
    bundles: dict[str, Bundle], all_observed: list[TestCell]
) -> None:
    """Only what draws its inputs can see something else on those of another seed."""
    lesson = COURSE.lesson("03")
    bundle = bundles[lesson.folder]
    wrong = {one.exercise: one.source for one in misconceptions(lesson)}
    verdict = graded(bundle, notebook_with(bundle, wrong))
    drawn = {test.grade_id: "check_rng" in test.source for test in bundle.tests}
    assert all_observed and all(drawn[test.grade_id] for test in all_observed)
    assert [one for one in verdict.tests if one.diagnosis and not drawn[one.grade_id]]
