"""What is said of an exercise that fails: its known mistake, or the line that would mend it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from autograder.box.box import BoxFailure
from autograder.course.bundle import TestCell
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED, Diagnosis, Mistake, diagnose, remaining
from autograder.grade.in_box import NotebookInBox, OutOfTime
from autograder.grade.reader import repaired, words_of
from autograder.grade.result import FAILED, PARTIAL, PASSED, TestResult
from autograder.grade.tester import Tester, TestRun
from lesson_kit.evidence import Evidence
from lesson_kit.words import said

#: Seconds that looking for the nearest repair may take: of one exercise, of all, of one try.
REPAIRS_OF_AN_EXERCISE = 2.0
REPAIRS_OF_A_NOTEBOOK = 4.0
SECONDS_OF_A_REPAIR = 0.5


def with_known_mistakes(
    runs: list[TestRun], tester: Tester, notebook: NotebookInBox
) -> list[TestResult]:
    """The results, with the known mistake where an exercise's failing tests show one.

    Args:
        runs: what came of every test.
        tester: of the bundle.
        notebook: the student's.
    """
    better = {run.result.grade_id: run.result for run in runs}
    for exercise, failed in _failed(list(better.values())).items():
        of_exercise = {run.result.grade_id: run for run in runs if run.result.exercise == exercise}
        diagnosis = None
        with _counted(exercise, notebook):
            diagnosis = _diagnosis(exercise, of_exercise, tester, notebook)
        if diagnosis is None:
            continue
        name, sentence = diagnosis.mistake.name, diagnosis.mistake.sentence
        for result in failed:
            if result.grade_id in diagnosis.tests:
                better[result.grade_id] = replace(result, diagnosis=name, sentence=sentence)
    return list(better.values())


def with_places_to_look_at(
    results: list[TestResult], tester: Tester, notebook: NotebookInBox, seed: int
) -> list[TestResult]:
    """The results, with the line where a small change mends an exercise of which nothing is known.

    The last that is asked of a box: changed answers have run in it afterwards, and nothing that it
    says from then on is worth a point.

    Args:
        results: of all tests, on inputs from ``seed``.
        tester: of the bundle.
        notebook: the student's.
        seed: as said.
    """
    better = {result.grade_id: result for result in results}
    wrong = _failed(results)
    end = time.monotonic() + REPAIRS_OF_A_NOTEBOOK
    for exercise, failed in wrong.items():
        if any(result.sentence for result in failed):
            continue
        if notebook.bundle.builds_on(exercise) & set(wrong):
            continue
        names = {result.grade_id for result in failed}
        tests = [test for test in notebook.bundle.tests if test.exercise == exercise]
        # Most changes mend nothing, and a test that failed says so soonest.
        tests.sort(key=lambda test: (test.grade_id not in names, test.hidden))
        seconds = min(REPAIRS_OF_AN_EXERCISE, end - time.monotonic())
        told = ""
        with _counted(exercise, notebook):
            told = said(_repaired(tests, tester, notebook, seed, seconds))
        if told:
            better |= {result.grade_id: replace(result, sentence=told) for result in failed}
    return list(better.values())


@contextlib.contextmanager
def _counted(exercise: str, notebook: NotebookInBox) -> Iterator[None]:
    """A sentence costs no point that was reached: whatever is raised on the way to it is noted."""
    try:
        yield
    except Exception as error:
        notebook.unnamed[exercise] = type(error).__name__


def _failed(results: list[TestResult]) -> dict[str, list[TestResult]]:
    """What failed, in whole or in part, by exercise."""
    failed: dict[str, list[TestResult]] = {}
    for result in results:
        if result.outcome in (FAILED, PARTIAL):
            failed.setdefault(result.exercise, []).append(result)
    return failed


def _diagnosis(
    exercise: str, runs: Mapping[str, TestRun], tester: Tester, notebook: NotebookInBox
) -> Diagnosis | None:
    """The known mistake that an exercise shows.

    Tests that failed run again, on the inputs on which the known mistakes were looked at, unless
    theirs are always the same: the visible ones first, until it is settled.
    A test that passed sees nothing, whatever its inputs.
    """
    if exercise in notebook.endless:
        return None
    words = words_of(_source(exercise, notebook))
    seen: dict[str, tuple[Evidence, ...]] = {
        name: () for name, run in runs.items() if run.result.outcome == PASSED
    }
    mistakes = remaining(seen, tester.mistakes(exercise), words)
    tests = [
        test
        for test in notebook.bundle.tests
        if test.exercise == exercise and test.grade_id not in seen
    ]
    for test in sorted(tests, key=lambda test: test.hidden):
        if not mistakes:
            break
        run = runs[test.grade_id]
        # What it saw on inputs that are always the same, it would see again.
        evidence = _observed(test, tester, notebook) if run.drawn else run.evidence
        if evidence is None:
            return None
        seen[test.grade_id] = evidence
        mistakes = remaining(seen, mistakes, words)
        others = {name: each.evidence for name, each in runs.items() if name not in seen}
        if settled := _settled(seen, others, mistakes):
            return settled
    return diagnose(seen, mistakes) if mistakes else None


def _settled(
    seen: Mapping[str, tuple[Evidence, ...]],
    others: Mapping[str, tuple[Evidence, ...] | None],
    mistakes: list[Mistake],
) -> Diagnosis | None:
    """The mistake of which these tests see the very same numbers, where in every other test the
    same checks fail as with it."""
    diagnosis = diagnose(seen, mistakes, surely=True)
    if diagnosis is None:
        return None
    for name, evidence in others.items():
        its = diagnosis.mistake.seen.get(name, ())
        if evidence is None or [piece.check for piece in evidence] != [
            piece.check for piece in its
        ]:
            return None
    return replace(diagnosis, tests=diagnosis.tests | set(others))


def _observed(
    test: TestCell, tester: Tester, notebook: NotebookInBox
) -> tuple[Evidence, ...] | None:
    """What a test sees on the inputs of the known mistakes; None where it gets no answer."""
    try:
        box = notebook.place(test.exercise)
    except OutOfTime:
        return None
    evidence = tester.observe(test, box, DIAGNOSIS_SEED)
    if box.ended:
        notebook.lost()
    return evidence


def _source(exercise: str, notebook: NotebookInBox) -> str:
    return next((c.source for c in notebook.cells[::-1] if c.grade_id == exercise), "")


def _repaired(
    tests: list[TestCell], tester: Tester, notebook: NotebookInBox, seed: int, seconds: float
) -> str:
    """Where one small change of the student's own code makes every test of an exercise pass."""
    exercise = tests[0].exercise
    source = _source(exercise, notebook)
    if seconds <= 0 or exercise.startswith("answer_"):
        return ""

    def passes(changed: str) -> bool:
        box = notebook.box
        if box is None:  # an earlier change ended it: no more of them
            return False
        try:
            if box.run_plainly(changed, SECONDS_OF_A_REPAIR).error is not None:
                return False
        except BoxFailure:
            notebook.lost()
            return False
        for inputs in (DIAGNOSIS_SEED, seed):  # on one of them it may pass by chance
            for test in tests:
                passed = tester.passes(test, box, inputs, SECONDS_OF_A_REPAIR)
                if passed is None:
                    notebook.lost()
                if not passed:
                    return False
        return True

    try:
        notebook.ready()
        said = repaired(source, passes, seconds)
        if notebook.box is not None:
            notebook.box.run(source, notebook.limits.cell)
    except OutOfTime:
        return ""
    except BoxFailure:
        notebook.lost()
        return ""
    return said
