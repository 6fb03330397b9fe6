"""The tests of the tests: right answers get everything, wrong ones lose what they should.

Graded as a class is: the implementation in a box, the tests outside it.
"""

from __future__ import annotations

import re

import pytest

from autograder.authors.mutants import Counted, count
from autograder.authors.trial import report, right_answers_refused
from autograder.course.bundle import Bundle
from autograder.course.implementations import Implementation, alternatives, misconceptions
from autograder.course.lessons import Lesson
from autograder.diagnose.plain_run import PlainRun

from .conftest import COURSE, in_this_eighth
from .submissions import graded, max_points, notebook_with, points, released

WRONG = [(lesson, one) for lesson in COURSE.lessons for one in misconceptions(lesson)]
#: Every one of them goes through the same tests in a plain namespace, see below.
IN_BOXES = in_this_eighth(WRONG)
RIGHT = [(lesson, one) for lesson in COURSE.lessons for one in alternatives(lesson)]


def label(value: object) -> str:
    if isinstance(value, Lesson):
        return value.folder[:2]
    assert isinstance(value, Implementation)
    return f"{value.exercise}-{value.name}"


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=label)
def test_the_solution_gets_full_points(lesson: Lesson, bundles: dict[str, Bundle]) -> None:
    bundle = bundles[lesson.folder]
    verdict = graded(bundle, notebook_with(bundle))
    lost = [(test.grade_id, test.message) for test in verdict.tests if test.outcome != "passed"]
    assert not lost
    assert verdict.score == bundle.max_score > 0
    assert verdict.flags == ()


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=label)
def test_the_untouched_notebook_gets_nothing(lesson: Lesson, bundles: dict[str, Bundle]) -> None:
    bundle = bundles[lesson.folder]
    verdict = graded(bundle, released(bundle))
    assert verdict.status == "graded"
    assert verdict.score == 0
    assert {test.outcome for test in verdict.tests} == {"not_attempted"}
    assert not verdict.needs_manual_grade
    assert verdict.flags == ()


@pytest.mark.parametrize(("lesson", "one"), RIGHT, ids=label)
def test_every_alternative_gets_full_points(
    lesson: Lesson, one: Implementation, bundles: dict[str, Bundle]
) -> None:
    bundle = bundles[lesson.folder]
    verdict = graded(bundle, notebook_with(bundle, {one.exercise: one.source}))
    lost = [(test.grade_id, test.message) for test in verdict.tests if test.outcome != "passed"]
    assert not lost
    assert not any(test.diagnosis for test in verdict.tests)


@pytest.mark.parametrize(("lesson", "one"), IN_BOXES, ids=label)
def test_every_misconception_loses_points_on_its_exercise_and_on_no_other(
    lesson: Lesson, one: Implementation, bundles: dict[str, Bundle]
) -> None:
    bundle = bundles[lesson.folder]
    verdict = graded(bundle, notebook_with(bundle, {one.exercise: one.source}))
    full = max_points(bundle)
    got = points(verdict)
    assert got[one.exercise] < full[one.exercise]
    others = {name: (got[name], full[name]) for name in full if name != one.exercise}
    assert all(has == of for has, of in others.values()), others
    assert one.sentence and one.seen
    if not one.exercise.startswith("answer_"):
        said = {(test.exercise, test.diagnosis) for test in verdict.tests if test.diagnosis}
        sentences = {(w.exercise, w.name): w.sentence for w in misconceptions(lesson)}
        # Nobody is told another's mistake; how many are told theirs is counted below.
        assert {sentences[name] for name in said} <= {one.sentence}


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=label)
def test_the_tests_hold_for_other_inputs(lesson: Lesson) -> None:
    """The same in one plain namespace, as the notebook runs them."""
    assert report(lesson, [11]) == []


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=label)
def test_right_answers_keep_their_points_on_many_inputs(lesson: Lesson) -> None:
    """Every notebook is graded on inputs of its own: others on each of eight days in a row."""
    assert right_answers_refused(lesson, in_this_eighth(range(1001, 1065))) == []


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=label)
def test_diagnoses_are_right_on_fresh_inputs(lesson: Lesson) -> None:
    """Over 2 seeds, and 5 in `make mutants`; and of small changes of the solution, which are in
    no catalogue, at most 2 in 100 get a sentence that is not true of them."""
    counted = count(lesson, [201, 202])
    total = Counted("all")
    for one in counted:
        total.add(one)
    remarks = [remark for one in counted for remark in one.remarks]
    assert total.rejected == total.wrong > 0, remarks
    assert total.accepted == total.right > 0, remarks
    assert total.named >= 0.95 * total.wrong, remarks
    assert total.mutants_rejected > 0
    assert total.falsely <= 0.02 * total.mutants_rejected, remarks


def test_a_cell_that_calls_an_exercise_sees_its_mistakes() -> None:
    lesson = COURSE.lesson("03")
    run = PlainRun(lesson)
    for name in lesson.exercises:
        seen = run.tests_that_see(name)
        assert set(run.tests_of({name} | run.dependents(name))) <= set(seen)
        calls = re.compile(rf"(?<![\w.]){name}\(")
        assert {test for test, cell in lesson.tests.items() if calls.search(cell.source)} <= set(
            seen
        )
    answers = [name for name in lesson.exercises if name.startswith("answer_")]
    assert run.tests_that_see(answers[0]) == [f"test_{answers[0]}"]


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=label)
def test_every_exercise_has_its_catalogue(lesson: Lesson) -> None:
    for name in lesson.exercises:
        wrong = [one for one in misconceptions(lesson) if one.exercise == name]
        right = [one for one in alternatives(lesson) if one.exercise == name]
        if name.startswith("answer_"):
            assert len(wrong) >= 2
        else:
            assert len(wrong) >= 4, f"{name} has {len(wrong)} misconceptions"
            assert len(right) >= 2, f"{name} has {len(right)} alternatives"
        assert len({one.name for one in wrong}) == len(wrong)


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=label)
def test_every_lesson_asks_for_writing_and_for_short_answers(
    lesson: Lesson, bundles: dict[str, Bundle]
) -> None:
    bundle = bundles[lesson.folder]
    assert bundle.written
    assert all("arking scheme" in one.source for one in bundle.written)
    assert any(name.startswith("answer_") for name in lesson.exercises)
    hidden = {test.exercise for test in bundle.tests if test.hidden}
    functions = {name for name in lesson.exercises if not name.startswith("answer_")}
    assert functions <= hidden, f"no hidden test: {functions - hidden}"
