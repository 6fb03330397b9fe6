"""Properties of an answer that are seen without knowing what is right.

Asked when no known mistake explains a failing check. The calls of the check are watched, and those
that belong to what failed are made again in another way: twice, each text alone, with a batch axis
in front. What is said was seen, and fits with what passed and what failed.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from .tensors import torch

__all__ = ["CHANGES_ITS_ARGUMENT", "property_seen"]

NOT_THE_SAME_TWICE = (
    "The very same call gives another result when it is made again. Something in it is random, is "
    "kept from a call before, or was never given a value (as in `np.empty`)."
)
CHANGES_ITS_ARGUMENT = (
    "Your code changes an array that it was given: after the call it holds other numbers, or has "
    "another shape."
)
NOT_TEXT_BY_TEXT = (
    "What fails here has more axes than all that passes, and an item of the batch (a text, for "
    "one) gives another result alone than in the batch, or the batch gives none at all. Check "
    "first: is an axis counted from the front, are all axes exchanged (`.T`), or is something "
    "taken over the whole array?"
)
ONLY_WITH_A_BATCH = (
    "Every input that passes has more axes than an input that fails here, and with a batch axis of "
    "length 1 in front of that one your code gives something else. Check first: is an axis counted "
    "from the front, or a shape taken apart into a fixed number of names?"
)
SAME_WITH_A_BATCH = (
    "Every input that passes has more axes than an input that fails here, and with a batch axis of "
    "length 1 in front of that one your code gives the very same result, with as many axes. Check "
    "first: does an array of your own bring an axis that this input has not?"
)

#: So often the same call is made again: what is random may come out alike once.
TIMES = 4
#: An answer may be called so often by a check; no more calls are looked at.
MAX_CALLS = 100


@dataclass
class _Call:
    """A call of the answer by a check, with its arguments as they were before it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    part: int
    axis: int | None = None
    wrote: bool = False

    @property
    def arrays(self) -> list[Any]:
        """The arrays and tensors among its arguments."""
        return [value for value in (*self.args, *self.kwargs.values()) if _is_array(value)]

    @property
    def axes(self) -> int:
        """The most that one of its arrays has."""
        return max((value.ndim for value in self.arrays), default=0)

    @property
    def asks_for_the_batch_axis(self) -> bool:
        """Whether an argument names an axis that another one in front would make another one."""
        return self.axis is not None and (self.axis >= 0 or -self.axis >= self.axes)

    def again(self, change: Callable[[Any], Any] = lambda array: array) -> Any:
        """What it returns with changed copies of its arrays; an exception where it raises."""
        args, kwargs = copy.deepcopy((self.args, self.kwargs))
        args = tuple(change(value) if _is_array(value) else value for value in args)
        kwargs = {
            key: change(value) if _is_array(value) else value for key, value in kwargs.items()
        }
        try:
            return self.function(*args, **kwargs)
        except Exception as error:
            return error

    @property
    def is_plain(self) -> bool:
        """Whether numbers alone decide what it returns."""
        plain = (int, float, str, type(None))
        return bool(self.arrays) and all(
            _is_array(value) or isinstance(value, plain)
            for value in (*self.args, *self.kwargs.values())
        )


def property_seen(
    exercise: str,
    test: CodeType,
    namespace: dict[str, Any],
    begin_cell: Callable[[], None],
    parts: Callable[[], Sized],
) -> str:
    """What is wrong with an answer whatever the right result is, in a sentence; or "".

    Changes the answer's class where it is one: call it in a copy of the process.

    Args:
        exercise: whose check failed.
        test: the cell of its visible check.
        namespace: the notebook's.
        begin_cell: forgets the named checks of the cell before.
        parts: the named checks of the cell so far.
    """
    calls: list[_Call] = []
    beside = dict(namespace)
    begin_cell()
    try:
        beside[exercise] = _watched(beside[exercise], calls, lambda: len(parts()))
        exec(test, beside)
    except Exception as error:
        named = getattr(error, "parts", None)
        if named is None:
            return next(_seen(calls[-1:], calls[:-1], of_named_checks=False), "")
        wrong = {number for number, part in enumerate(named, 1) if part.error is not None}
        sides = {number for number, part in enumerate(named, 1) if part.side}
        failed = [call for call in calls if call.part in wrong - sides]
        passed = [call for call in calls if call.part not in wrong | sides]
        return next(_seen(failed, passed, of_named_checks=True), "")
    return ""


def _seen(failed: list[_Call], passed: list[_Call], *, of_named_checks: bool) -> Iterator[str]:
    if any(call.wrote for call in failed):
        yield CHANGES_ITS_ARGUMENT
    plain = [call for call in failed if call.is_plain]
    for call in plain[:3]:
        first, *others = (call.again() for _ in range(TIMES))
        if not all(_agree(first, other) for other in others):
            yield NOT_THE_SAME_TWICE
    if not plain or not passed or len(plain) < len(failed):
        return
    most, least = max(call.axes for call in passed), min(call.axes for call in passed)
    if all(call.axes > most for call in failed) and any(map(_differs_in_a_batch, plain)):
        yield NOT_TEXT_BY_TEXT
    if of_named_checks and all(call.axes < least for call in failed):
        said = {_with_a_batch_axis(call) for call in plain}
        yield from (one for one in (SAME_WITH_A_BATCH, ONLY_WITH_A_BATCH) if one in said)


def _differs_in_a_batch(call: _Call) -> bool:
    """Whether a batch gives another result than its texts, each of which gives one."""
    lengths = {one.shape[0] if one.ndim else 0 for one in call.arrays}
    if len(lengths) != 1 or _has_mask(call) or call.asks_for_the_batch_axis:
        return False
    texts = range(lengths.pop())
    alone = [call.again(lambda array, n=n: array[n]) for n in texts]  # type: ignore[misc]
    if len(alone) < 2 or any(isinstance(result, Exception) for result in alone):
        return False
    together = call.again()
    return isinstance(together, Exception) or not all(
        _agree(_item(together, n), result) for n, result in enumerate(alone)
    )


def _with_a_batch_axis(call: _Call) -> str:
    """What is odd about the result with an axis of length 1 in front of the input, or ""."""
    if _has_mask(call) or call.asks_for_the_batch_axis:
        return ""
    alone, batch = call.again(), call.again(lambda array: array[None])
    if isinstance(batch, Exception):
        return ""
    if getattr(alone, "ndim", 0) and _agree(alone, batch):
        return SAME_WITH_A_BATCH
    return "" if _agree(alone, _item(batch, 0)) else ONLY_WITH_A_BATCH


def _has_mask(call: _Call) -> bool:
    return any(str(array.dtype) in ("bool", "torch.bool") for array in call.arrays)


def _item(result: Any, n: int) -> Any:
    if isinstance(result, tuple):
        return tuple(_item(part, n) for part in result)
    try:
        return result[n]
    except (TypeError, IndexError) as error:
        return error


def _agree(first: Any, second: Any) -> bool:
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_agree, first, second))
    if isinstance(first, Exception) or isinstance(second, Exception):
        return type(first) is type(second)
    try:
        a, b = (
            np.asarray(x.detach() if isinstance(x, torch.Tensor) else x) for x in (first, second)
        )
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True))
    except TypeError:
        return True  # nothing that can be compared


def _axis(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> int | None:
    """The axis that a call asks for by an argument of that name."""
    try:
        arguments = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    arguments.apply_defaults()
    named = (arguments.arguments.get(name) for name in ("axis", "dim"))
    return next((value for value in named if isinstance(value, int)), None)


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, torch.Tensor))


def _watched(answer: Any, calls: list[_Call], part: Callable[[], int]) -> Any:
    """An answer whose calls are noted; of a class, those of what makes an output."""

    def watch(function: Callable[..., Any], first: int) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(calls) >= MAX_CALLS:
                return function(*args, **kwargs)
            before, given = copy.deepcopy((args[first:], kwargs))
            again = functools.partial(function, *args[:first])
            made = _Call(again, before, given, part(), _axis(function, args, kwargs))
            calls.append(made)
            result = function(*args, **kwargs)
            now = (*args[first:], *kwargs.values())
            were = (*before, *given.values())
            made.wrote = any(_is_array(a) and not _agree(a, b) for a, b in zip(now, were))
            return result

        return call

    if not isinstance(answer, type):
        return watch(answer, 0)
    for name in ("forward", "__call__"):
        if name in vars(answer):
            setattr(answer, name, watch(vars(answer)[name], 1))
            break
    return answer
