"""The tester: runs an author's test cells against a box.

This side is trusted, and the verdict is reached here. In a test cell the student's
functions are remote: plain data go over, plain data come back. The same cell runs
unchanged in a notebook, where they are simply the student's functions.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
from functools import cached_property
from types import CodeType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from autograder.box.box import Box, BoxDied, BoxError, BoxFailure, BoxTimeout
from autograder.box.imports import imports_answered
from autograder.box.patience import ASLEEP, Budget
from autograder.course.bundle import Bundle, TestCell
from autograder.diagnose.diagnosis import Mistake, from_json
from autograder.grade.allowance import Spent, allowance
from autograder.grade.course_code import CourseCode
from autograder.grade.limits import MAX_MESSAGE_CHARACTERS
from autograder.grade.remote_names import NameMissing, RemoteNames
from autograder.grade.result import (
    CRASHED,
    FAILED,
    MISSING,
    NOT_ATTEMPTED,
    PARTIAL,
    PASSED,
    TIMEOUT,
    TestResult,
    line_of_part,
)
from autograder.grade.telling import Telling
from autograder.text import plain
from lesson_kit import checks, failures, setting
from lesson_kit.earlier import as_module
from lesson_kit.evidence import Evidence, evidence_of
from lesson_kit.exceptions import REFUSED, meaning, unwritten
from lesson_kit.failures import CheckFailed, ChecksFailed, Part
from lesson_kit.setting import as_grader, in_haste
from lesson_kit.words import N_, said, tr

_ASLEEP = N_(
    "Your code did not finish within {seconds} seconds of work: it slept for {times} times as long."
)


class TestRun(NamedTuple):
    """What came of a test.

    Attributes:
        result: the verdict.
        evidence: what it saw; None where that cannot be said, since the code ended its process or
            took too long.
        drawn: whether its inputs were drawn: on those of another seed it may see something else.
    """

    result: TestResult
    evidence: tuple[Evidence, ...] | None
    drawn: bool = True


class Tester:
    """Runs the test cells of one bundle."""

    def __init__(self, bundle: Bundle, seconds: float) -> None:
        """Prepare the names of the setup cell.

        Args:
            bundle: the lesson's tests.
            seconds: processor seconds that the box may take for one test.
        """
        self.bundle = bundle
        self.seconds = seconds
        self._telling: Telling | None = None
        self._prepared: dict[str, tuple[CodeType, frozenset[str]]] = {}
        self._catalogue = from_json(bundle.catalogue.decode())
        self._proxied: WeakKeyDictionary[Box, set[str]] = WeakKeyDictionary()
        self._earlier = as_module(bundle.packed)
        with imports_answered(self._earlier):
            self._namespace: dict[str, Any] = {"__name__": "__main__"}
            exec(compile(bundle.setup, "<setup>", "exec"), self._namespace)

    def run(
        self,
        test: TestCell,
        box: Box,
        seed: int,
        telling: Telling | None = None,
        seconds: float | None = None,
    ) -> TestRun:
        """Run one test cell against the student's names in ``box``, on inputs from ``seed``.

        Never raises for anything that the student's code does. The message of a hidden test
        holds next to nothing that the student's code could choose, so that it cannot tell what
        the test gave it: see :mod:`autograder.grade.telling`.

        Args:
            test: to run.
            box: with the student's notebook.
            seed: of the inputs.
            telling: what hidden tests of that notebook may still tell of exceptions.
            seconds: how long the box may take, if not as long as usual.
        """
        self._telling = telling
        usual, self.seconds = self.seconds, self.seconds if seconds is None else seconds
        try:
            return self._attempt(test, box, seed)
        finally:
            self.seconds = usual

    def put_proxy(self, name: str, box: Box) -> bool:
        """Let the student's code call the course's own version of an exercise.

        It runs here, on plain data; nothing of it enters the box.

        Returns:
            False where it is no function and no torch module.

        Raises:
            BoxFailure: no answer.
        """
        kind = self._course_code.kind(name)
        if not kind:
            return False
        proxied = self._proxied.setdefault(box, set())
        proxied.add(name)

        def helper(request: Any) -> dict[str, Any]:
            try:
                with allowance():  # a box asks when it likes, also while no test is judged
                    return self._course_code.answer(frozenset(proxied), request)
            except Spent:
                return CourseCode.refused(TimeoutError("this takes the course's own code too long"))

        return box.put_proxy(name, kind, helper, self.seconds).error is None

    @cached_property
    def _course_code(self) -> CourseCode:
        with imports_answered(self._earlier):
            return CourseCode(self._namespace, self.bundle.exercises)

    def mistakes(self, exercise: str) -> list[Mistake]:
        """The known mistakes of an exercise."""
        return [mistake for mistake in self._catalogue if mistake.exercise == exercise]

    def observe(self, test: TestCell, box: Box, seed: int) -> tuple[Evidence, ...] | None:
        """What one test cell sees of the student's code; empty where it passes.

        None: it cannot be said, since the code ended its process or took too long.
        """
        return self._attempt(test, box, seed).evidence

    def passes(self, test: TestCell, box: Box, seed: int, seconds: float) -> bool | None:
        """Whether all checks of a test cell pass within some seconds; None: it ended the box."""
        self._budget = Budget(box.patience, seconds)
        try:
            with in_haste(), allowance(), as_grader(seed, self.bundle.answers):
                self._execute(test, box, seed)
        except BoxFailure:
            return None
        except (NameMissing, Spent, Exception):
            return False
        return True

    def _attempt(self, test: TestCell, box: Box, seed: int) -> TestRun:
        """Run one test cell within what judging it may take."""
        try:
            with allowance(), as_grader(seed, self.bundle.answers):
                return self._run_cell(test, box, seed)
        except (Spent, MemoryError):
            message = tr(
                "What {exercise} returned takes too long or too much memory to look at. Does it "
                "return what the card says, and no more?",
                exercise=test.exercise,
            )
            result = TestResult(test.grade_id, test.exercise, 0.0, test.points, FAILED, message)
            return TestRun(result, None)

    def _run_cell(self, test: TestCell, box: Box, seed: int) -> TestRun:
        outcome, message = PASSED, ""
        evidence: tuple[Evidence, ...] = ()
        parts: list[Part] = []
        self._budget = Budget(box.patience, self.seconds)
        try:
            self._execute(test, box, seed)
        except NameMissing as missing:
            outcome, message = MISSING, str(missing)
        except BoxTimeout:
            outcome = TIMEOUT
            message = tr("Your code did not finish within {seconds} seconds.", **self._limit)
            if box.patience.gave_up:
                message = tr(_ASLEEP, **self._limit, times=f"{ASLEEP:g}")
            parts = checks.parts()
        except BoxDied as died:
            outcome, message = CRASHED, tr("Your code ended its process.")
            if not test.hidden:
                message = tr("Your code ended its process: {why}.", why=died)
            parts = checks.parts()
        except ChecksFailed as failed:
            outcome, parts = FAILED, failed.parts
            message = "\n".join(self._explain_part(part, test) for part in parts)
            evidence = evidence_of(failed)
        except CheckFailed as failed:
            outcome = FAILED
            message = failed.sentence if test.hidden else str(failed)
            evidence = evidence_of(failed)
        except Exception as error:
            outcome, message = self._explain(error, test)
            evidence = evidence_of(error)
            parts = checks.parts()
        points = test.points
        if outcome != PASSED:
            settled = failures.settle(parts, test.exercise)
            points = sum((part.points for part in settled if part.passed), 0.0)
        if outcome == FAILED and points:
            outcome = PARTIAL
        message = plain(message, MAX_MESSAGE_CHARACTERS)
        result = TestResult(
            test.grade_id,
            test.exercise,
            min(points, test.points),
            test.points,
            outcome,
            message,
            passed_parts=tuple((part.name, part.points) for part in parts if part.error is None),
        )
        seen = None if outcome in (TIMEOUT, CRASHED) else evidence
        return TestRun(result, seen, setting.now.drawn)

    @property
    def _limit(self) -> dict[str, str]:
        return {"seconds": f"{self.seconds:g}"}

    def _explain(self, error: Exception, test: TestCell) -> tuple[str, str]:
        remote: BoxError | None = getattr(error, "box_error", None)
        whose = {"exercise": test.exercise}
        if unwritten(error):
            unfinished = N_("{exercise} still raises NotImplementedError.")
            return NOT_ATTEMPTED, tr(unfinished, **whose) if remote else str(error)
        if remote and test.hidden:
            return FAILED, self._explain_hidden(remote)
        kind = remote.types[0] if remote else type(error).__name__
        text = "" if test.hidden else f" ({str(error)[:500]})"
        if remote:
            text += f" {said(remote.place)}" if remote.place else ""
            means = said(REFUSED if remote.by_hand else remote.means)
            return FAILED, _ended(f"{_who(remote)} {kind}{text}" + (f". {means}" if means else ""))
        stopped = N_(
            "The check could not go on with what {exercise} gave: {error}. Is it of the kind that "
            "the card asks for, with all its parts?"
        )
        return FAILED, tr(stopped, **whose, error=f"{kind}{text}")

    def _explain_hidden(self, error: BoxError) -> str:
        """What is said of an exception in a hidden test: its text where that can hold no input,
        once in a test; else not even its kind, which the code may choose by what it was given."""
        text, place = self._telling.of(error) if self._telling else ("", "")
        if not text:
            if error.by_hand:
                return f"{tr('Your code raised an error.')} {said(REFUSED)}"
            return tr("Your code, or what uses its result, raised an error.")
        self._telling = None
        kind = error.types[0]
        raised = f"{_who(error)} {kind} ({text}) {said(place)}".rstrip()
        means = said(meaning((kind,), text))
        return _ended(f"{raised}. {means}" if means else raised)

    def _explain_part(self, part: Part, test: TestCell) -> str:
        """One line or more about a named check of a cell."""
        if part.error is None:
            return line_of_part("✓", part.name, part.points, part.points)
        if isinstance(part.error, CheckFailed):
            told = part.error.sentence if test.hidden else str(part.error)
        else:
            told = self._explain(part.error, test)[1]
        return f"{line_of_part(part.mark, part.name, 0, part.points)}. {told}"

    def _execute(self, test: TestCell, box: Box, seed: int) -> None:
        namespace = dict(self._namespace)
        code, used = self._prepare(test)
        names = RemoteNames(box, self._budget.left)
        for name in self.bundle.exercises:
            if name.startswith("answer_"):
                if name in used:
                    namespace[name] = names.value(name)
            else:
                namespace[name] = names.function(name)
        namespace["probe"] = names.probe
        checks.begin_cell()
        with imports_answered(self._earlier), contextlib.redirect_stdout(io.StringIO()):
            exec(code, namespace)

    def _prepare(self, test: TestCell) -> tuple[CodeType, frozenset[str]]:
        """The compiled cell and the names it uses; a probe's source is found by its lines."""
        if test.grade_id not in self._prepared:
            filename = f"<{self.bundle.assignment} {test.grade_id}>"
            lines = test.source.splitlines(keepends=True)
            linecache.cache[filename] = (len(test.source), None, lines, filename)
            tree = ast.parse(test.source)
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            self._prepared[test.grade_id] = compile(tree, filename, "exec"), frozenset(used)
        return self._prepared[test.grade_id]


def _who(error: BoxError) -> str:
    """How what is said of an exception begins: it may arise where a probe uses what was made."""
    return tr("Your code raised") if error.line else tr("What your code made could not be used:")


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."
