"""Grading one submission: a pure function of what was handed in and the test bundle."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from autograder.box.box import Box, BoxFailure, BoxTimeout
from autograder.course.bundle import Bundle, TestCell
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED, Seen, diagnose
from autograder.grade.flags import Flag
from autograder.grade.limits import Limits
from autograder.grade.result import (
    FAILED,
    GRADED,
    MISSING,
    NO_NOTEBOOK,
    NOT_ATTEMPTED,
    PARTIAL,
    PASSED,
    TIMEOUT,
    UNREADABLE,
    CellRun,
    Graded,
    TestResult,
)
from autograder.grade.submission import (
    WRITTEN_STUB,
    Cell,
    Missing,
    Submission,
    Unreadable,
    parse,
)
from autograder.grade.tester import Tester
from autograder.lesson.evidence import Evidence
from autograder.lesson.failures import NOT_YET_COUNTED

#: Starts a box with these files beside its notebook and this many bytes of memory.
MakeBox = Callable[[dict[str, bytes], int], Box]


class _OutOfTime(Exception):
    """The notebook has used up its total time."""


@dataclass
class _Notebook:
    """The student's notebook in a box, started again when it dies."""

    bundle: Bundle
    cells: list[Cell]
    limits: Limits
    make_box: MakeBox
    deadline: float
    box: Box | None = None
    runs: dict[int, CellRun] = field(default_factory=dict)
    poisoned: set[int] = field(default_factory=set)

    def ready(self) -> Box:
        """The box with all cells run; cells that ended a box before are left out.

        Raises:
            _OutOfTime: before the notebook was through.
        """
        self._check_time()
        while self.box is None:
            self._check_time()
            box = self.make_box(self.bundle.companions, int(self.limits.memory * 2**20))
            try:
                self._run_cells(box)
                self.box = box
            except BoxFailure:
                box.close()
            except BaseException:
                box.close()
                raise
        return self.box

    def lost(self) -> None:
        """The box is gone; the next request starts another."""
        if self.box is not None:
            self.box.close()
            self.box = None

    def _run_cells(self, box: Box) -> None:
        for number, cell in enumerate(self.cells):
            if number in self.poisoned:
                continue
            self._check_time()
            seconds = min(self.limits.cell, self.deadline - time.monotonic())
            try:
                reply = box.run(cell.source, seconds)
            except BoxFailure as failure:
                self.poisoned.add(number)
                why = (
                    f"The cell did not finish within {seconds:.0f} seconds."
                    if isinstance(failure, BoxTimeout)
                    else f"The cell ended its process: {failure}."
                )
                self.runs[number] = CellRun(cell.source, cell.grade_id, "", why)
                raise
            error = str(reply.error) if reply.error else ""
            unfinished = reply.error is not None and reply.error.types[0] == "NotImplementedError"
            self.runs[number] = CellRun(cell.source, cell.grade_id, reply.output, error, unfinished)

    def _check_time(self) -> None:
        if time.monotonic() >= self.deadline:
            raise _OutOfTime


def grade(
    data: bytes | Missing | Unreadable,
    bundle: Bundle,
    *,
    make_box: MakeBox,
    seed: int,
    limits: Limits | None = None,
    flags: tuple[Flag, ...] = (),
    tester: Tester | None = None,
) -> Graded:
    """Grade one submission.

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
    nothing = Graded(
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
        missing = isinstance(problem, Missing)
        return replace(
            nothing,
            status=NO_NOTEBOOK if missing else UNREADABLE,
            reason=str(problem),
            tests=tuple(_lost(test, MISSING, str(problem)) for test in bundle.tests),
            seconds=time.monotonic() - started,
        )
    tester = tester or Tester(bundle, limits.test)
    notebook = _Notebook(
        bundle, submission.to_run(bundle), limits, make_box, started + limits.notebook
    )
    try:
        # Visible tests first: their messages show values, and code that has been through a
        # hidden test could return that test's input there.
        order = sorted(bundle.tests, key=lambda test: test.hidden)
        ran = {test.grade_id: _run_test(test, tester, notebook, seed) for test in order}
        results = [ran[test.grade_id] for test in bundle.tests]
        results = _diagnosed(results, tester, notebook)
        results = _follow_through(results, tester, notebook, seed)
        results = _without_lone_side_conditions(results, bundle)
    finally:
        notebook.lost()
    return replace(
        nothing,
        tests=tuple(_with_reason(result, notebook) for result in results),
        written_to_read=frozenset(_written_to_read(submission, bundle)),
        flags=(*flags, *submission.flags),
        runs=tuple(run for _, run in sorted(notebook.runs.items())),
        cells=tuple(submission.cells),
        seconds=time.monotonic() - started,
    )


def _lost(test: TestCell, outcome: str, message: str) -> TestResult:
    return TestResult(test.grade_id, test.exercise, 0.0, test.points, outcome, message)


def _run_test(test: TestCell, tester: Tester, notebook: _Notebook, seed: int) -> TestResult:
    try:
        box = notebook.ready()
    except _OutOfTime:
        total = notebook.limits.notebook
        message = f"The notebook as a whole used up its {total:g} seconds before this check."
        return _lost(test, TIMEOUT, message)
    own = "\n".join(cell.source for cell in notebook.cells)
    result = tester.run(test, box, seed, own)
    if box.ended:
        notebook.lost()
    return result


def _diagnosed(results: list[TestResult], tester: Tester, notebook: _Notebook) -> list[TestResult]:
    """Name the known mistake where an exercise's failing tests show one.

    The tests run again, on the inputs on which the known mistakes were looked at.
    """
    better = {result.grade_id: result for result in results}
    failed = [result for result in results if result.outcome in (FAILED, PARTIAL)]
    for exercise in dict.fromkeys(result.exercise for result in failed):
        mistakes = tester.mistakes(exercise)
        seen = _seen(exercise, tester, notebook) if mistakes else None
        diagnosis = diagnose(seen, mistakes) if seen is not None else None
        for result in failed if diagnosis is not None else ():
            if diagnosis is not None and result.grade_id in diagnosis.tests:
                mistake = diagnosis.mistake
                better[result.grade_id] = replace(
                    result,
                    diagnosis=mistake.name,
                    sentence=mistake.sentence,
                )
    return [better[result.grade_id] for result in results]


def _seen(exercise: str, tester: Tester, notebook: _Notebook) -> Seen | None:
    """What each test of an exercise sees; None where one gets no answer."""
    seen: dict[str, tuple[Evidence, ...]] = {}
    tests = [test for test in notebook.bundle.tests if test.exercise == exercise]
    for test in sorted(tests, key=lambda test: test.hidden):
        try:
            box = notebook.ready()
        except _OutOfTime:
            return None
        evidence = tester.observe(test, box, DIAGNOSIS_SEED)
        if box.ended:
            notebook.lost()
        if evidence is None:
            return None
        seen[test.grade_id] = evidence
    return seen


def _follow_through(
    results: list[TestResult], tester: Tester, notebook: _Notebook, seed: int
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
        replaced = _lent(replaced, tester, notebook)
        for test in lost if replaced else ():
            if notebook.box is None:
                break
            again = _run_test(test, tester, notebook, seed)
            names = " and ".join(replaced)
            if again.outcome == PASSED:
                message = f"Passes with the course's own {names}; with yours it does not."
                better[test.grade_id] = replace(again, message=message)
            elif again.outcome != better[test.grade_id].outcome:
                # No values here: this run held the course's solution of another exercise.
                message = f"Tried with the course's own {names}, since yours is not right yet."
                better[test.grade_id] = replace(again, message=message)
    return [better[result.grade_id] for result in results]


def _lent(names: list[str], tester: Tester, notebook: _Notebook) -> list[str]:
    """Those of the names that the student's code now calls in the course's own version."""
    try:
        box = notebook.ready()
        return [name for name in names if tester.lend(name, box)]
    except _OutOfTime:
        return []
    except BoxFailure:
        notebook.lost()
        return []


def _without_lone_side_conditions(results: list[TestResult], bundle: Bundle) -> list[TestResult]:
    """Side conditions count once another test of their exercise got points."""
    side = {test.grade_id for test in bundle.tests if test.side_condition}
    works = {one.exercise for one in results if one.points and one.grade_id not in side}
    return [
        replace(
            one, points=0.0, outcome=FAILED, message=NOT_YET_COUNTED.format(f"`{one.exercise}`")
        )
        if one.points and one.grade_id in side and one.exercise not in works
        else one
        for one in results
    ]


def _with_reason(result: TestResult, notebook: _Notebook) -> TestResult:
    """For a name that is missing: what happened to the cell that should define it."""
    if result.outcome != MISSING:
        return result
    for run in notebook.runs.values():
        if run.grade_id == result.exercise and run.error:
            if run.unfinished:
                return replace(result, outcome=NOT_ATTEMPTED)
            return replace(result, message=f"{result.message} Its cell stopped: {run.error}")
    return result


def _written_to_read(submission: Submission, bundle: Bundle) -> set[str]:
    """The written answers that are more than the stub: a person has to grade them."""
    return {
        name
        for name, text in submission.written_answers(bundle).items()
        if text.strip() and text.strip() != WRITTEN_STUB
    }
