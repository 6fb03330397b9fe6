"""What the inputs of a lesson's tests are, and so what they never are; see ``autograder inputs``.

A wrong answer keeps its points where no test hands it an input on which it is wrong: a batch of one
text, more words than a block, an array that does not lie row by row. Every call of the solved
lesson's functions and methods is looked at while its tests run, argument by argument.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.authors.between import between
from autograder.course.lessons import Lesson
from autograder.diagnose.plain_run import PlainRun
from lesson_kit.checks import assert_close
from lesson_kit.tensors import torch

#: Values of one argument that a line shows.
MAX_VALUES = 12


@dataclass
class Argument:
    """What one argument was in all calls.

    Attributes:
        kinds: of which kind, such as "torch float64", "int" or "None".
        lengths: of each axis, counted from the last (1 is the last).
        axes: how many there were.
        marks: what is true of some arrays: "not contiguous", "a gradient", "-inf or inf".
        values: of what is no array.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    lengths: dict[int, Counter[int]] = field(default_factory=dict)
    axes: Counter[int] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)

    def add(self, value: Any) -> None:
        """Count one more value."""
        if not isinstance(value, (np.ndarray, torch.Tensor)):
            self.kinds[type(value).__name__] += 1
            if value is None or isinstance(value, (bool, int, float, str, np.generic)):
                self.values[str(value)] += 1
            elif isinstance(value, (list, tuple)):
                self.values[f"{len(value)} items"] += 1
            return
        library = "torch" if isinstance(value, torch.Tensor) else "NumPy"
        self.kinds[f"{library} {str(value.dtype).removeprefix('torch.')}"] += 1
        self.axes[value.ndim] += 1
        for axis, length in enumerate(value.shape[::-1], start=1):
            self.lengths.setdefault(axis, Counter())[length] += 1
        self.marks.update(_marks(value))

    def never(self) -> list[str]:
        """What arrays that stand for this argument never were."""
        gaps = [
            f"one along axis -{axis}" for axis, lengths in self.lengths.items() if 1 not in lengths
        ]
        longest = max((max(lengths) for lengths in self.lengths.values()), default=0)
        if self.lengths:
            gaps.append(f"longer than {longest}")
        if self.lengths and not self.marks["not contiguous"]:
            gaps.append("other than contiguous")
        return gaps

    def lines(self, name: str) -> Iterator[str]:
        """As a report shows it."""
        yield f"  {name}: {_counted(self.kinds)}"
        if self.values:
            yield f"      values {_counted(self.values)}"
        if self.axes:
            lengths = " | ".join(
                " ".join(map(str, sorted(self.lengths[axis]))) for axis in sorted(self.lengths)
            )
            axes = " ".join(map(str, sorted(self.axes)))
            yield f"      axes {axes}; lengths, the last axis first: {lengths or 'none'}"
        if self.marks:
            yield f"      some: {', '.join(sorted(self.marks))}"
        if gaps := self.never():
            yield f"      never: {', '.join(gaps)}"


def _marks(value: np.ndarray | torch.Tensor) -> Iterator[str]:
    if isinstance(value, torch.Tensor) and value.requires_grad:
        yield "a gradient"
    array: np.ndarray = value.detach().numpy() if isinstance(value, torch.Tensor) else value
    if not array.flags.c_contiguous:
        yield "not contiguous"
    if array.size == 0:
        yield "empty"
    elif array.dtype == bool:
        if array.all() or not array.any():
            yield "all True or all False"
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        yield "NaN or infinite"


def _counted(counter: Counter[str]) -> str:
    said = [f"{what} ({number})" for what, number in counter.most_common(MAX_VALUES)]
    more = len(counter) - len(said)
    return ", ".join(said) + (f", and {more} more" if more else "")


#: By what is called, such as ``LayerNorm.forward``, the arguments by their names.
Inputs = dict[str, dict[str, Argument]]


def inputs(lesson: Lesson, seed: int) -> Inputs:
    """What the tests of each exercise of a lesson hand to its right answer.

    Args:
        lesson: whose exercises.
        seed: of the random inputs.
    """
    calls: Inputs = {}

    def count(called: str, arguments: dict[str, Any], call: Callable[[], Any]) -> Any:
        for argument, value in arguments.items():
            calls.setdefault(called, {}).setdefault(argument, Argument()).add(value)
        return call()

    with PlainRun(lesson) as run:
        for exercise in lesson.exercises:
            if not exercise.startswith("answer_"):
                watch = functools.partial(between, exercise, count)
                with run.watched(exercise, watch, assert_close):
                    run.errors({}, seed, run.tests_of({exercise}))
    return calls
