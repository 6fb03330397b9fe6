"""The tests of the tests: right answers get everything, wrong ones lose what they should.

Graded as a class is: the implementation in a box, the tests outside it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from autograder.authors.trial import ALL, Share, cells_that_see, proof, trial
from autograder.course.bundle import Bundle
from autograder.course.dependencies import Dependencies
from autograder.course.implementations import Implementation, alternatives, misconceptions
from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import fits, graded_cells, made_from, released
from autograder.diagnose.lock import Lock
from autograder.diagnose.matrix import Matrix
from autograder.diagnose.matrix_cache import MatrixCache

from ..conftest import COURSE, SHARD, SHARDS, sampled
from ..submissions import graded, max_points, notebook_with, points
from ..submissions import released as untouched

WRONG = [(lesson, one) for lesson in COURSE.lessons for one in misconceptions(lesson)]
RIGHT = [(lesson, one) for lesson in COURSE.lessons for one in alternatives(lesson)]


def label(value: object) -> str:
    if isinstance(value, Lesson):
        return value.folder
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
    verdict = graded(bundle, untouched(bundle))
    assert verdict.status == "graded"
    assert verdict.score == 0
    assert {test.outcome for test in verdict.tests} == {"not_attempted"}
    assert not verdict.needs_manual_grade
    assert verdict.flags == ()


@pytest.mark.parametrize(("lesson", "one"), sampled(RIGHT, of=96), ids=label)
def test_every_alternative_gets_full_points(
    lesson: Lesson, one: Implementation, bundles: dict[str, Bundle]
) -> None:
    bundle = bundles[lesson.folder]
    verdict = graded(bundle, notebook_with(bundle, {one.exercise: one.source}))
    lost = [(test.grade_id, test.message) for test in verdict.tests if test.outcome != "passed"]
    assert not lost
    assert not any(test.diagnosis for test in verdict.tests)


@pytest.mark.parametrize(("lesson", "one"), sampled(WRONG, of=96), ids=label)
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
def test_the_lock_says_of_every_exercise_that_it_was_proved(lesson: Lesson) -> None:
    """By `autograder trial`: right answers keep all points on eight inputs, wrong ones lose some,
    on their exercise alone, nearly all get their own sentence, and nothing earns nothing."""
    lock = Lock.read(lesson, released(lesson)).exercises
    assert list(lock) == list(lesson.exercises)
    depends = Dependencies(lesson)
    changed = [name for name in lock if lock[name].proved != proof(depends, name)]
    assert not changed, f"run: autograder trial {lesson.folder[:2]}"
    functions = [name for name in lock if not name.startswith("answer_")]
    stale = [name for name in functions if not fits(lock[name], made_from(depends, name))]
    assert not stale, f"run: autograder build --lesson {lesson.folder[:2]}"
    assert sum(lock[name].named[1] for name in functions) > 0


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=label)
def test_a_share_of_what_the_lock_says_holds_when_it_is_proved_anew(
    lesson: Lesson, tmp_path: Path
) -> None:
    share = Share(int(shard), SHARDS) if (shard := os.environ[SHARD]) != "all" else ALL
    with Matrix(lesson, anew=True, results=MatrixCache(tmp_path)) as matrix:
        tried = [trial(matrix, name, seeds=[101], share=share) for name in lesson.exercises]
    assert [complaint for one in tried for complaint in one.complaints] == []


def test_a_cell_that_calls_an_exercise_sees_its_mistakes() -> None:
    lesson = COURSE.lesson("03")
    for name in lesson.exercises:
        seen = cells_that_see(lesson, name)
        assert set(graded_cells(lesson, name)) <= set(seen)
        calls = re.compile(rf"(?<![\w.]){name}\(")
        assert {test for test, cell in lesson.tests.items() if calls.search(cell.source)} <= set(
            seen
        )
    answers = [name for name in lesson.exercises if name.startswith("answer_")]
    assert cells_that_see(lesson, answers[0]) == [f"test_{answers[0]}"]


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
