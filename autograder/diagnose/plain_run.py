"""A lesson's tests in one plain namespace, as a notebook runs them.

No box and no sandbox: for the course's own implementations, which are trusted. Grading uses
:mod:`autograder.grade.grading`.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import random
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from autograder.box import wire
from autograder.box.imports import imports_answered
from autograder.course.answers import sealed_answers
from autograder.course.lessons import Lesson
from autograder.course.prerequisites import carried_over
from autograder.notebooks import (
    DEMONSTRATION,
    exercise_of,
    grade_id,
    is_test,
    nbgrader_metadata,
    tags,
)
from lesson_kit import checks, failures, setting
from lesson_kit.earlier import as_module
from lesson_kit.setting import as_grader
from lesson_kit.tensors import installed, torch


class PlainRun:
    """The solved lesson without its demonstrations, run once; its answers can be replaced.

    Use it as a context manager: while it is open, this process has the modules that lie
    beside the lesson's notebook.
    """

    def __init__(self, lesson: Lesson) -> None:
        """Nothing is run yet."""
        self.lesson = lesson
        self.names = list(lesson.exercises)
        self._stack = contextlib.ExitStack()
        self._namespace: dict[str, Any] = {}
        self._wrapped: dict[str, Callable[[Any], Any]] = {}
        self._answer: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
        #: What stopped a cell of the solved lesson that is no test: there should be nothing.
        self.stopped: dict[str, str] = {}
        #: The named checks of each test cell that ran last.
        self.named_checks: dict[str, list[failures.Part]] = {}

    def __enter__(self) -> PlainRun:
        os.environ.setdefault("MPLBACKEND", "agg")
        earlier = as_module(carried_over(self.lesson))
        self._stack.enter_context(imports_answered(earlier))
        self._stack.enter_context(as_grader(setting.now.seed, sealed_answers(self.lesson)))
        self._namespace = {"__name__": "__main__"}
        for cell in self.lesson.notebook.cells:
            if cell.cell_type != "code" or DEMONSTRATION in tags(cell) or is_test(cell):
                continue
            error = self._run(cell.source, grade_id(cell) or cell["id"], self._namespace)
            if error is not None:
                first = cell.source.splitlines()[0]
                self.stopped[f"cell {grade_id(cell) or first}"] = told(error)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def exercise(self, test: str) -> str:
        """The exercise that a test cell belongs to."""
        return exercise_of(test, self.names)

    def tests_of(self, exercises: set[str]) -> list[str]:
        """The test cells of some exercises, in order."""
        return [name for name in self.lesson.tests if self.exercise(name) in exercises]

    def errors(
        self,
        replaced: dict[str, str],
        seed: int,
        tests: list[str] | None = None,
        *,
        as_graded: bool = False,
    ) -> dict[str, BaseException | None]:
        """What ends each test cell when some answers are replaced; None where it passes.

        Args:
            replaced: source instead of an exercise's solution, by the exercise's name.
            seed: of the inputs.
            tests: only these; all otherwise.
            as_graded: arguments and results are copied as on their way to a box and back, so
                that an argument changed in place shows as it does there. In a notebook
                they are not.
        """
        setting.now.seed = seed
        return {
            test: self._error(replaced, seed, test, as_graded=as_graded)
            for test in (self.lesson.tests if tests is None else tests)
        }

    def _error(
        self, replaced: dict[str, str], seed: int, test: str, *, as_graded: bool
    ) -> BaseException | None:
        """What ends one test cell. All is defined anew for it: what it comes to does not depend
        on the tests before it."""
        _begin_anew(seed)
        namespace = dict(self._namespace)
        for name, source in replaced.items():
            namespace.pop(name, None)
            self._run(source, name, namespace)
        # Answers look up each other in the namespace they were defined in.
        for name in self.names:
            if name not in replaced and not name.startswith("answer_"):
                self._run(self.lesson.exercises[name], name, namespace)
        for name, watch in self._wrapped.items():
            namespace[name] = watch(namespace[name])
        if as_graded:
            namespace = {**namespace, **self._remote(namespace)}
        error = self._run(self.lesson.tests[test].source, test, dict(namespace))
        self.named_checks[test] = getattr(error, "parts", checks.parts())
        return error

    def told(
        self, replaced: dict[str, str], test: str, seed: int, *, as_graded: bool = True
    ) -> str:
        """What ends a test cell, in one line for its author."""
        error = self.errors(replaced, seed, [test], as_graded=as_graded)[test]
        return told(error) if error else "it passes when it is run again"

    def points(self, test: str, error: BaseException | None) -> float:
        """What the last run of a test is worth, side conditions of other cells not looked at."""
        if error is None:
            return float(nbgrader_metadata(self.lesson.tests[test])["points"])
        parts = failures.settle(self.named_checks[test], self.exercise(test))
        return sum((part.points for part in parts if part.passed), 0.0)

    @contextlib.contextmanager
    def answering(
        self, answer: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> Iterator[None]:
        """While it is open, a box gives ``answer(function)`` for each function and each probe.

        Args:
            answer: takes what the solved lesson would call; gives what is called instead.
        """
        self._answer = answer
        try:
            yield
        finally:
            self._answer = None

    def _remote(self, namespace: dict[str, Any]) -> dict[str, Any]:
        """The exercises, and ``probe``, as a test cell meets them when it is graded."""

        def probe(function: FunctionType) -> Callable[..., Any]:
            beside = FunctionType(function.__code__, namespace, function.__name__)
            beside.__defaults__ = function.__defaults__
            beside.__kwdefaults__ = function.__kwdefaults__
            return _remotely(self._answer(beside) if self._answer else beside)

        remote: dict[str, Any] = {
            name: _remotely(self._answer(namespace[name]) if self._answer else namespace[name])
            for name in self.names
            if not name.startswith("answer_") and name in namespace
        }
        return {**remote, "probe": probe}

    @contextlib.contextmanager
    def watched(
        self, exercise: str, watch: Callable[[Any], Any], assert_close: Callable[..., None]
    ) -> Iterator[None]:
        """While it is open, tests meet an exercise and ``assert_close`` through observers.

        Args:
            exercise: whose function or class ``watch`` gets; it gives what is called instead.
            watch: as said.
            assert_close: stands for that of the checks.
        """
        kept = self._namespace.get("assert_close")
        self._wrapped = {exercise: watch}
        self._namespace["assert_close"] = assert_close
        try:
            yield
        finally:
            self._wrapped = {}
            self._namespace["assert_close"] = kept

    def _run(self, source: str, name: str, namespace: dict[str, Any]) -> BaseException | None:
        filename = f"<{self.lesson.folder} {name}>"
        lines = source.splitlines(keepends=True)
        linecache.cache[filename] = (len(source), None, lines, filename)
        checks.begin_cell()
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # wrong implementations overflow and divide by zero
            try:
                exec(compile(source, filename, "exec"), namespace)
            except Exception as error:
                return error
        return None


def _begin_anew(seed: int) -> None:
    """Undo what answers change for others, and draw random numbers from a seed."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if not installed():
        return
    torch.manual_seed(seed)
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)


def _remotely(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = wire.decode(wire.encode((args, kwargs)))
        return wire.decode(wire.encode(function(*args, **kwargs), strict=False))

    return call


def told(error: BaseException) -> str:
    """An error in one line, with the line of the cell in which it arose."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} (line {frames[-1].lineno})"
