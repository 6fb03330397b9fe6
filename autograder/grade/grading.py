"""Grading one submission: a pure function of what was handed in and the test bundle."""

from __future__ import annotations

import time
from dataclasses import replace

from autograder.box.box import BoxFailure
from autograder.course.bundle import Bundle, TestCell
from autograder.grade import flags as kinds
from autograder.grade.failed_exercises import with_known_mistakes, with_places_to_look_at
from autograder.grade.flags import Flag
from autograder.grade.in_box import (
    NOT_FINISHED,
    MakeBox,
    NotebookInBox,
    OutOfTime,
    where_checked,
)
from autograder.grade.limits import Limits
from autograder.grade.result import (
    CRASHED,
    FAILED,
    GRADED,
    MISSING,
    NO_NOTEBOOK,
    NOT_ATTEMPTED,
    PASSED,
    TIMEOUT,
    UNREADABLE,
    Result,
    TestResult,
    line_of_part,
)
from autograder.grade.submission import (
    Missing,
    Submission,
    Unreadable,
    parse,
)
from autograder.grade.tester import Tester, TestRun
from autograder.grade.written import is_stub
from lesson_kit.failures import NOT_YET_COUNTED, lone_side_conditions
from lesson_kit.words import N_, speaking, tr


def grade(
    data: bytes | Missing | Unreadable,
    bundle: Bundle,
    *,
    make_box: MakeBox,
    seed: int,
    limits: Limits | None = None,
    flags: tuple[Flag, ...] = (),
    tester: Tester | None = None,
) -> Result:
    """Grade one submission, in these steps:

    1. :func:`parse`: the bytes become cells, and what is odd about them;
    2. :func:`_run_tests`: every test, in a box with the student's notebook;
    3. :func:`.with_known_mistakes`: the known mistake where failing tests show one;
    4. :func:`_follow_through`: once more, what builds on a failed exercise;
    5. :func:`.with_places_to_look_at`: where a small change would mend an exercise;
    6. :func:`_without_lone_side_conditions`: what counts only beside other points;
    7. :func:`_with_reasons`: why a name is missing.

    Args:
        data: the notebook's bytes, or why there are none.
        bundle: the assignment's tests.
        make_box: starts a box; see :class:`autograder.box.boxes.Boxes`.
        seed: of the random inputs of the tests.
        limits: seconds a cell, a test and the notebook may take.
        flags: what was odd before the bytes were read.
        tester: of this bundle, when it is kept between submissions.

    Returns:
        A verdict, whatever was handed in: points exist only where a test was seen to pass.
    """
    limits = limits or Limits()
    started = time.monotonic()
    nothing = Result(
        bundle.assignment,
        bundle.notebook_name,
        GRADED,
        flags=flags,
        max_score=bundle.max_score,
    )
    try:
        if isinstance(data, (Missing, Unreadable)):
            raise data
        submission = parse(data, bundle)
    except (Missing, Unreadable) as problem:
        lost = _all_lost(nothing, problem, bundle)
        return replace(lost, seconds=time.monotonic() - started)
    tester = tester or Tester(bundle, limits.test)
    cells = submission.to_run(bundle)
    checked = where_checked(submission, cells, bundle)
    notebook = NotebookInBox(bundle, cells, limits, make_box, checked)
    try:
        with speaking(bundle.words):
            results = with_known_mistakes(_run_tests(tester, notebook, seed), tester, notebook)
            results = _follow_through(results, tester, notebook, seed)
            results = with_places_to_look_at(results, tester, notebook, seed)
            results = _without_lone_side_conditions(results, bundle)
            results = _with_reasons(results, notebook)
            out_of_time = _out_of_time(results, notebook)
    finally:
        notebook.lost()
    return replace(
        nothing,
        tests=tuple(results),
        written_to_read=frozenset(_written_to_read(submission, bundle)),
        flags=(*flags, *submission.flags, *notebook.flags, *_not_named(notebook)),
        runs=tuple(run for _, run in sorted(notebook.runs.items())),
        cells=tuple(submission.cells),
        seconds=time.monotonic() - started,
        gave_up=notebook.gave_up,
        out_of_time=out_of_time,
    )


def _not_named(notebook: NotebookInBox) -> list[Flag]:
    return [kinds.NOT_NAMED.flag(cell=name, error=why) for name, why in notebook.unnamed.items()]


def _out_of_time(results: list[TestResult], notebook: NotebookInBox) -> bool:
    late = any(result.outcome == TIMEOUT for result in results)
    return late or any(run.error.startswith(tr(NOT_FINISHED)) for run in notebook.runs.values())


def _all_lost(nothing: Result, problem: Missing | Unreadable, bundle: Bundle) -> Result:
    """What is said of a submission without a notebook that could be graded."""
    return replace(
        nothing,
        status=NO_NOTEBOOK if isinstance(problem, Missing) else UNREADABLE,
        reason=str(problem),
        tests=tuple(_lost(test, MISSING, str(problem)) for test in bundle.tests),
    )


def _lost(test: TestCell, outcome: str, message: str) -> TestResult:
    return TestResult(test.grade_id, test.exercise, 0.0, test.points, outcome, message)


def _run_tests(tester: Tester, notebook: NotebookInBox, seed: int) -> list[TestRun]:
    """Every test of the bundle, once.

    Visible tests first: their messages show values, and code that has been through a hidden
    test could return that test's input there.
    """
    tests = notebook.bundle.tests
    order = sorted(tests, key=lambda test: test.hidden)
    ran = {test.grade_id: _run_test(test, tester, notebook, seed) for test in order}
    for cells, exercises in sorted(notebook.unkept.items()):
        again = [
            test
            for test in order
            if test.exercise in exercises
            and (_is_guess(test) or ran[test.grade_id].result.outcome != PASSED)
        ]
        with notebook.up_to(cells):
            for test in again:
                ran[test.grade_id] = _as_at_its_check(
                    ran[test.grade_id], test, tester, notebook, seed
                )
    return [ran[test.grade_id] for test in tests]


def _is_guess(test: TestCell) -> bool:
    """A short answer is a choice among few: another one would be a second guess."""
    return test.exercise.startswith("answer_")


def _as_at_its_check(
    at_the_end: TestRun, test: TestCell, tester: Tester, notebook: NotebookInBox, seed: int
) -> TestRun:
    """What came of a test where the box could not be kept as it was at its check: once more, in one
    in which the notebook has run up to there. What comes to more counts, and of a short answer
    what stands there."""
    here = _run_once(test, tester, notebook, seed)
    better = here.result.points > at_the_end.result.points
    counts = here.result.outcome in (PASSED, FAILED) if _is_guess(test) else better
    return here if counts else at_the_end


def _run_test(test: TestCell, tester: Tester, notebook: NotebookInBox, seed: int) -> TestRun:
    """Run a test where the visible checks of its exercise stand; failing that, at the end."""
    run = _run_once(test, tester, notebook, seed)
    result = run.result
    placed = test.exercise in notebook.places and test.exercise not in notebook.at_the_end
    if not placed or result.outcome in (PASSED, TIMEOUT, CRASHED):
        return run
    if _is_guess(test) and result.outcome == FAILED:
        return run
    notebook.at_the_end.add(test.exercise)
    again = _run_once(test, tester, notebook, seed)
    better = again.result
    if better.points > result.points:
        why = tr("As your notebook ends this passes; where its check stands it does not.")
        if better.outcome != PASSED:
            why = tr("As your notebook ends more of this passes than where its check stands.")
        return again._replace(result=replace(better, message=f"{why}\n{better.message}".strip()))
    notebook.at_the_end.discard(test.exercise)
    return run


def _run_once(test: TestCell, tester: Tester, notebook: NotebookInBox, seed: int) -> TestRun:
    try:
        box = notebook.place(test.exercise)
    except OutOfTime:
        total = notebook.limits.notebook
        used_up = N_("The notebook as a whole used up its {seconds} seconds before this check.")
        return TestRun(_lost(test, TIMEOUT, tr(used_up, seconds=f"{total:g}")), None)
    run = tester.run(test, box, seed, notebook.telling, notebook.patience(test.exercise))
    notebook.gave_up |= box.patience.gave_up
    if run.result.outcome == TIMEOUT:
        notebook.endless.add(test.exercise)
    if box.ended:
        notebook.lost()
    return run


def _follow_through(
    results: list[TestResult], tester: Tester, notebook: NotebookInBox, seed: int
) -> list[TestResult]:
    """Grade an exercise that builds on a failed one again, on the course's own version of that.

    A wrong softmax costs the points of softmax, and not those of everything that calls it.
    """
    bundle = notebook.bundle
    failed = {result.exercise for result in results if result.outcome != PASSED}
    better = {result.grade_id: result for result in results}
    for exercise in [name for name in bundle.exercises if name in failed]:
        replaced = [
            name for name in bundle.exercises if name in bundle.builds_on(exercise) & failed
        ]
        lost = [
            test
            for test in bundle.tests
            if test.exercise == exercise and better[test.grade_id].outcome != PASSED
        ]
        if not replaced or not lost:
            continue
        replaced = _proxied(exercise, replaced, tester, notebook)
        for test in lost if replaced else ():
            if notebook.box is None:
                break
            again = _run_once(test, tester, notebook, seed).result
            if again.points > better[test.grade_id].points:
                # No values here: this run held the course's solution of another exercise.
                if again.outcome == PASSED:
                    passes = N_("Passes with the course's own {names}; with yours it does not.")
                else:
                    passes = N_(
                        "Passes in part with the course's own {names}; with yours it does not."
                    )
                message = tr(passes, names=tr(" and ").join(replaced))
                better[test.grade_id] = replace(again, message=message)
    return [better[result.grade_id] for result in results]


def _proxied(exercise: str, names: list[str], tester: Tester, notebook: NotebookInBox) -> list[str]:
    """Those of the names that the exercise now calls in the course's own version."""
    try:
        box = notebook.place(exercise)
        return [name for name in names if tester.put_proxy(name, box)]
    except OutOfTime:
        return []
    except BoxFailure:
        notebook.lost()
        return []


def _without_lone_side_conditions(results: list[TestResult], bundle: Bundle) -> list[TestResult]:
    """Side conditions count once another test of their exercise got points."""
    side = {test.grade_id for test in bundle.tests if test.side_condition}
    lone = lone_side_conditions(
        (result.grade_id, result.exercise, bool(result.points), result.grade_id in side)
        for result in results
    )
    return [_not_counted(result) if result.grade_id in lone else result for result in results]


def _not_counted(result: TestResult) -> TestResult:
    waits = tr(NOT_YET_COUNTED).format(f"`{result.exercise}`")
    instead = {
        line_of_part("✓", name, points, points): f"{line_of_part('○', name, 0, points)}. {waits}"
        for name, points in result.passed_parts
    }
    message = "\n".join(instead.get(line, line) for line in result.message.split("\n"))
    return replace(result, points=0.0, outcome=FAILED, message=message or waits)


def _with_reasons(results: list[TestResult], notebook: NotebookInBox) -> list[TestResult]:
    """For each name that is missing: what happened to the cell that should define it."""
    return [_with_reason(result, notebook) for result in results]


def _with_reason(result: TestResult, notebook: NotebookInBox) -> TestResult:
    if result.outcome != MISSING:
        return result
    for run in notebook.runs.values():
        if run.grade_id == result.exercise and run.error:
            if run.grade_id in notebook.unwritten:
                return replace(result, outcome=NOT_ATTEMPTED)
            stopped = tr("Its cell stopped: {error}", error=run.error)
            return replace(result, message=f"{result.message} {stopped}")
    return result


def _written_to_read(submission: Submission, bundle: Bundle) -> set[str]:
    """The written answers that are more than the stub: a person has to grade them."""
    return {name for name, text in submission.written_answers(bundle).items() if not is_stub(text)}
