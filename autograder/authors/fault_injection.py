"""Whether tests look at what they call for; see ``autograder measure spoiled``.

A wrong answer is often wrong on inputs of one kind only: where an axis has length 1, a mask hides
everything, a batch is larger than a block. So the right answer's result is spoiled for inputs of
one kind, kind by kind, and the tests run: where they all pass, they call the answer with such
inputs and never look at what comes out of it. It is mutation analysis (DeMillo, Lipton and Sayward
1978) of inputs in place of code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.authors.between import between
from autograder.authors.kinds_of_input import kinds
from autograder.course.lessons import Lesson
from autograder.diagnose.plain_run import PlainRun
from lesson_kit.checks import assert_close
from lesson_kit.tensors import torch


@dataclass
class Spoiled:
    """What the tests of one exercise saw.

    Attributes:
        exercise: its name.
        met: kinds of inputs that the tests hand to it.
        unnoticed: those of them for which a spoiled result passes all tests.
    """

    exercise: str
    met: set[str] = field(default_factory=set)
    unnoticed: list[str] = field(default_factory=list)

    def text(self) -> str:
        """As the command prints it."""
        noticed = len(self.met) - len(self.unnoticed)
        lines = [f"{self.exercise}: {noticed} of {len(self.met)} kinds of inputs"]
        return "\n".join([*lines, *(f"    not looked at: {kind}" for kind in self.unnoticed)])


def spoiled(lesson: Lesson, seed: int) -> list[Spoiled]:
    """For each exercise of a lesson, the kinds of inputs whose results its tests look at.

    Args:
        lesson: whose exercises.
        seed: of the random inputs.
    """
    with PlainRun(lesson) as run:
        names = [name for name in run.names if not name.startswith("answer_")]
        return [_of_exercise(run, name, seed) for name in names]


def _of_exercise(run: PlainRun, exercise: str, seed: int) -> Spoiled:
    it = Spoiled(exercise)

    def passes(around: Callable[..., Any]) -> bool:
        with run.watched(exercise, functools.partial(between, exercise, around), assert_close):
            errors = run.errors({}, seed, run.tests_of({exercise}), as_graded=True)
        return not any(errors.values())

    def look(called: str, arguments: dict[str, Any], call: Callable[[], Any]) -> Any:
        of_call = _kinds(called, arguments)
        result = call()
        it.met |= of_call  # not of a call that raises: there is no result to look at
        return result

    passes(look)
    it.unnoticed = [kind for kind in sorted(it.met) if passes(functools.partial(_spoiling, kind))]
    return it


def _kinds(called: str, arguments: dict[str, Any]) -> set[str]:
    method = called.partition(".")[2]
    if method == "__init__":
        return set()  # it gives nothing that could be spoiled
    before = f"{method}, " if method not in ("", "forward", "call") else ""
    return {before + kind for kind in kinds(arguments)}


def _spoiling(
    spoiled_kind: str, called: str, arguments: dict[str, Any], call: Callable[[], Any]
) -> Any:
    # Before the call: an answer may change what it gets.
    spoil = spoiled_kind in _kinds(called, arguments)
    result = call()
    return _other(result) if spoil else result


def _other(result: Any) -> Any:
    """Another result of the same shape and dtype, with another gradient; None becomes an error."""
    if isinstance(result, torch.Tensor):
        if result.dtype == torch.bool:
            return ~result
        return result * 1.3 + 0.37 if result.is_floating_point() else result + 1
    if isinstance(result, np.ndarray):
        if result.dtype == bool:
            return ~result
        return (
            (result * 1.3 + 0.37).astype(result.dtype) if result.dtype.kind == "f" else result + 1
        )
    if isinstance(result, (bool, np.bool_)):
        return not result
    if isinstance(result, (int, float, np.number)):
        return result + 1
    if isinstance(result, (list, tuple)) and type(result) in (list, tuple) and result:
        return type(result)(map(_other, result))
    if isinstance(result, str):
        return result + "x"
    raise RuntimeError("spoiled")
