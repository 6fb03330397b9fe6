"""Grading one submission: a pure function of what was handed in and the test bundle."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from autograder.box.box import Box, BoxFailure, BoxTimeout
from autograder.course.bundle import Bundle, TestCell
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED, Seen, diagnose
from autograder.grade.flags import Flag
from autograder.grade.limits import Limits
from autograder.grade.rebound import may_be_rebound
from autograder.grade.result import (
    CRASHED,
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
    Result,
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
from autograder.lesson.repair import nearest_repair

#: What an answer raises that is not written yet.
STUB_ERROR = "NotImplementedError"

#: Starts a box with these files beside its notebook and this many bytes of memory.
MakeBox = Callable[[dict[str, bytes], int], Box]


#: Seconds that looking for the nearest repair may take: of one exercise, of all, of one try.
REPAIRS_OF_AN_EXERCISE = 2.0
REPAIRS_OF_A_NOTEBOOK = 4.0
SECONDS_OF_A_REPAIR = 0.5


class _OutOfTime(Exception):
    """The notebook has used up its total time."""


@dataclass
class _Notebook:
    """The student's notebook in a box, started again when it dies.

    The course's setup cell runs first. Where the visible checks of an exercise stand, the box is
    kept as it is then: what a later cell binds anew does not count against an earlier exercise.
    """

    bundle: Bundle
    cells: list[Cell]
    limits: Limits
    make_box: MakeBox
    deadline: float
    #: Exercises by the number of cells before their visible checks.
    checked: dict[int, set[str]] = field(default_factory=dict)
    box: Box | None = None
    places: dict[str, Box] = field(default_factory=dict)
    #: Exercises of which a test counted as the notebook ends.
    at_the_end: set[str] = field(default_factory=set)
    #: Names of answer cells that are as they were handed out.
    unwritten: set[str] = field(default_factory=set)
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

    def place(self, exercise: str) -> Box:
        """The box as it was at the exercise's checks, or as the notebook ends.

        Raises:
            _OutOfTime: before the notebook was through.
        """
        end = self.ready()
        return end if exercise in self.at_the_end else self.places.get(exercise, end)

    def lost(self) -> None:
        """The box is gone; the next request starts another."""
        for place in {id(one): one for one in self.places.values()}.values():
            place.close()
        self.places.clear()
        if self.box is not None:
            self.box.close()
            self.box = None

    def _run_cells(self, box: Box) -> None:
        self.places.clear()
        box.run(self.bundle.setup, self.limits.cell)
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
            # What it said the first time: a box before this one may have seen a hidden test.
            unfinished = reply.error is not None and reply.error.types[0] == STUB_ERROR
            self.runs.setdefault(
                number, CellRun(cell.source, cell.grade_id, reply.output, error, unfinished)
            )
            if reply.error and reply.error.by_hand and reply.error.types[0] == STUB_ERROR:
                self.unwritten.add(cell.grade_id)
            self._keep(box, number + 1)

    def _keep(self, box: Box, cells: int) -> None:
        """Keep the box as it is, for the exercises whose checks stand here."""
        exercises = self.checked.get(cells, set())
        sources = [cell.source for cell in self.cells]
        if exercises and may_be_rebound(sources[:cells], sources[cells:]):
            place = box.snapshot()
            if place is not None:
                self.places.update(dict.fromkeys(exercises, place))

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
) -> Result:
    """Grade one submission, in these steps:

    1. :func:`parse`: the bytes become cells, and what is odd about them;
    2. :func:`_run_tests`: every test, in a box with the student's notebook;
    3. :func:`_diagnosed`: the known mistake where failing tests show one;
    4. :func:`_follow_through`: once more, what builds on a failed exercise;
    5. :func:`_without_lone_side_conditions`: what counts only beside other points;
    6. :func:`_with_reasons`: why a name is missing.

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
    checked = _where_checked(submission, cells, bundle)
    notebook = _Notebook(bundle, cells, limits, make_box, started + limits.notebook, checked)
    try:
        results = _run_tests(tester, notebook, seed)
        results = _diagnosed(results, tester, notebook)
        results = _follow_through(results, tester, notebook, seed)
        results = _without_lone_side_conditions(results, bundle)
        results = _with_reasons(results, notebook)
    finally:
        notebook.lost()
    return replace(
        nothing,
        tests=tuple(results),
        written_to_read=frozenset(_written_to_read(submission, bundle)),
        flags=(*flags, *submission.flags),
        runs=tuple(run for _, run in sorted(notebook.runs.items())),
        cells=tuple(submission.cells),
        seconds=time.monotonic() - started,
    )


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


def _where_checked(
    submission: Submission, cells: list[Cell], bundle: Bundle
) -> dict[int, set[str]]:
    """For each number of cells to run, the exercises whose last visible check follows them."""
    run = {id(cell) for cell in cells}
    tests = {test.grade_id: test for test in bundle.tests if not test.hidden}
    sources = {test.released.strip(): test for test in tests.values()}
    where: dict[str, int] = {}
    count = 0
    for cell in submission.cells:
        count += id(cell) in run
        test = tests.get(cell.grade_id) or sources.get(cell.source.strip())
        if cell.kind == "code" and test is not None:
            where[test.exercise] = count
    found: dict[int, set[str]] = {}
    for exercise, number in where.items():
        found.setdefault(number, set()).add(exercise)
    return found


def _run_tests(tester: Tester, notebook: _Notebook, seed: int) -> list[TestResult]:
    """Every test of the bundle, once.

    Visible tests first: their messages show values, and code that has been through a hidden
    test could return that test's input there.
    """
    tests = notebook.bundle.tests
    order = sorted(tests, key=lambda test: test.hidden)
    ran = {test.grade_id: _run_test(test, tester, notebook, seed) for test in order}
    return [ran[test.grade_id] for test in tests]


def _run_test(test: TestCell, tester: Tester, notebook: _Notebook, seed: int) -> TestResult:
    """Run a test where the visible checks of its exercise stand; failing that, at the end."""
    result = _run_once(test, tester, notebook, seed)
    placed = test.exercise in notebook.places and test.exercise not in notebook.at_the_end
    if not placed or result.outcome in (PASSED, TIMEOUT, CRASHED):
        return result
    notebook.at_the_end.add(test.exercise)
    again = _run_once(test, tester, notebook, seed)
    if again.points > result.points:
        why = "As your notebook ends this passes; where its check stands it does not."
        if again.outcome != PASSED:
            why = "As your notebook ends more of this passes than where its check stands."
        return replace(again, message=f"{why}\n{again.message}".strip())
    notebook.at_the_end.discard(test.exercise)
    return result


def _run_once(test: TestCell, tester: Tester, notebook: _Notebook, seed: int) -> TestResult:
    try:
        box = notebook.place(test.exercise)
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
    wrong = {result.exercise for result in failed}
    end = time.monotonic() + REPAIRS_OF_A_NOTEBOOK
    for exercise in dict.fromkeys(result.exercise for result in failed):
        mistakes = tester.mistakes(exercise)
        seen = _seen(exercise, tester, notebook) if mistakes else None
        diagnosis = diagnose(seen, mistakes) if seen is not None else None
        if diagnosis is not None:
            told, tests, name = diagnosis.mistake.sentence, diagnosis.tests, diagnosis.mistake.name
        elif not notebook.bundle.builds_on(exercise) & wrong:
            seconds = min(REPAIRS_OF_AN_EXERCISE, end - time.monotonic())
            told, name = _repaired(exercise, tester, notebook, seconds), ""
            tests = frozenset(one.grade_id for one in failed if told and one.exercise == exercise)
        else:
            continue
        for result in failed:
            if result.grade_id in tests:
                better[result.grade_id] = replace(result, diagnosis=name, sentence=told)
    return [better[result.grade_id] for result in results]


def _repaired(exercise: str, tester: Tester, notebook: _Notebook, seconds: float) -> str:
    """Where one small change of the student's own code makes every test of an exercise pass."""
    source = next((c.source for c in notebook.cells[::-1] if c.grade_id == exercise), "")
    tests = [test for test in notebook.bundle.tests if test.exercise == exercise]
    tests.sort(key=lambda test: test.hidden)
    if seconds <= 0 or exercise.startswith("answer_"):
        return ""

    def passes(tree: ast.Module) -> bool:
        box = notebook.box
        if box is None:  # an earlier change ended it: no more of them
            return False
        try:
            if box.run(ast.unparse(tree), SECONDS_OF_A_REPAIR).error is not None:
                return False
        except BoxFailure:
            notebook.lost()
            return False
        for test in tests:
            passed = tester.passes(test, box, DIAGNOSIS_SEED, SECONDS_OF_A_REPAIR)
            if passed is None:
                notebook.lost()
            if not passed:
                return False
        return True

    try:
        notebook.ready()
        said = nearest_repair(source, passes, seconds)
        if notebook.box is not None:
            notebook.box.run(source, notebook.limits.cell)
    except _OutOfTime:
        return ""
    except BoxFailure:
        notebook.lost()
        return ""
    return said


def _seen(exercise: str, tester: Tester, notebook: _Notebook) -> Seen | None:
    """What each test of an exercise sees; None where one gets no answer."""
    seen: dict[str, tuple[Evidence, ...]] = {}
    tests = [test for test in notebook.bundle.tests if test.exercise == exercise]
    for test in sorted(tests, key=lambda test: test.hidden):
        try:
            box = notebook.place(exercise)
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
        replaced = _lent(exercise, replaced, tester, notebook)
        for test in lost if replaced else ():
            if notebook.box is None:
                break
            again = _run_once(test, tester, notebook, seed)
            names = " and ".join(replaced)
            if again.outcome == PASSED:
                message = f"Passes with the course's own {names}; with yours it does not."
                better[test.grade_id] = replace(again, message=message)
            elif again.outcome != better[test.grade_id].outcome:
                # No values here: this run held the course's solution of another exercise.
                message = f"Tried with the course's own {names}, since yours is not right yet."
                better[test.grade_id] = replace(again, message=message)
    return [better[result.grade_id] for result in results]


def _lent(exercise: str, names: list[str], tester: Tester, notebook: _Notebook) -> list[str]:
    """Those of the names that the exercise now calls in the course's own version."""
    try:
        box = notebook.place(exercise)
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


def _with_reasons(results: list[TestResult], notebook: _Notebook) -> list[TestResult]:
    """For each name that is missing: what happened to the cell that should define it."""
    return [_with_reason(result, notebook) for result in results]


def _with_reason(result: TestResult, notebook: _Notebook) -> TestResult:
    if result.outcome != MISSING:
        return result
    for run in notebook.runs.values():
        if run.grade_id == result.exercise and run.error:
            if run.grade_id in notebook.unwritten:
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
