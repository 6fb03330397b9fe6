"""Checks of many exercises in one call each, after scikit-learn's estimator checks.

A battery runs a table of cases; what is expected comes from the cell, or from the answer's own
results on the plain case. Each takes what it calls: an exercise's function, or a probe. Arguments
go over as copies: an answer that writes into them is compared with the numbers it was given.

What a failed case says begins with the case's name: ``{"a batch": (Q, K, V)}``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .checks import assert_close, assert_equal, assert_raises, check_rng
from .tensors import torch

__all__ = [
    "assert_as_floats",
    "assert_as_reference",
    "assert_each_alone",
    "assert_refused",
    "assert_results",
    "assert_slopes",
    "assert_unchanged",
]

#: What is called, of the student's code: a function, or a probe.
Called = Callable[..., Any]
#: Cases by name: the arguments of one call each.
Cases = Mapping[str, Sequence[Any]]

ONE = ("the result",)


def assert_results(returned: Any, expected: Mapping[str, Any], message: str, **close: Any) -> None:
    """Fail with ``message`` unless results are as expected, one after another.

    Args:
        returned: what was returned: a tuple or list where more than one result is expected.
        expected: by name, in their order.
        message: what to tell the student.
        close: further arguments of :func:`.checks.assert_close`.

    Raises:
        CheckFailed: of the first result that differs; of their number first.
    """
    for (name, value), result in zip(expected.items(), _as_many(returned, list(expected))):
        assert_close(result, value, message, name=name, **close)


def assert_as_reference(
    function: Called,
    reference: Called,
    cases: Cases,
    message: str,
    *,
    names: Sequence[str] = ONE,
    **close: Any,
) -> None:
    """Fail at the first case in which a function does not give what another one gives.

    Args:
        function: of the student.
        reference: takes the same arguments and is right: written in the cell, or a library's.
        cases: arguments of both.
        message: what to tell the student, after the case's name.
        names: of the results, in their order.
        close: further arguments of :func:`.checks.assert_close`.

    Raises:
        CheckFailed: what differs, and in which case.
    """
    results = _each(function, list(cases.values()))
    for case, given in cases.items():
        right = reference(*copy.deepcopy(given))
        expected = dict(zip(names, (right,) if len(names) == 1 else right, strict=True))
        returned = next(results)
        assert_results(returned, expected, f"{case}: {message}", **close)


def assert_each_alone(
    function: Called,
    cases: Sequence[Sequence[Any]],
    *,
    names: Sequence[str] = ONE,
    own_axes: Sequence[int] = (),
    **close: Any,
) -> None:
    """Fail unless each text of a batch has the results that the function gives it alone.

    Leading axes of the arguments broadcast, in NumPy and in torch. That the texts, each alone, have
    other first results, no NaN and none of the arguments, is checked too: a constant has them all
    alike, and who gives back what was given has them in each batch.

    Args:
        function: of the student; results have the leading axes in front.
        cases: arguments of one call each. What is no array goes to every call as it is.
        names: of the results, in their order; further ones are not looked at.
        own_axes: how many axes of each argument belong to one text; 2 where nothing is said.
        close: further arguments of :func:`.checks.assert_close`.

    Raises:
        CheckFailed: what differs, and with which leading axes.
    """
    for given in cases:
        own = [*own_axes, *[2] * (len(given) - len(own_axes))]
        leads = [_lead(x, axes) for x, axes in zip(given, own)]
        arrays = [lead for lead in leads if lead is not None]
        lead = np.broadcast_shapes(*arrays)
        said = f"{arrays[0]}" if len(set(arrays)) == 1 else ", ".join(map(str, arrays))
        whole = [_expanded(x, lead, axes) for x, axes in zip(given, own)]
        places = list(np.ndindex(*lead))
        texts = [
            [x if axes is None else x[place] for x, axes in zip(whole, leads)] for place in places
        ]
        alone = []
        for text, returned in zip(texts, _each(function, texts)):
            alone.append(_first(returned, names))
            given_back = any(_is_array(x) and _same(x, alone[-1][0]) for x in text)
            message = (
                f"The {names[0]} of a text alone is made of its arguments, and is none of them."
            )
            assert_equal(given_back, False, message, name="'it is an argument'")
        stacked = [_stacked(results, lead) for results in zip(*alone)]
        message = "Different texts, each alone, have different results, and none holds NaN."
        numbers = np.stack([_as_array(result[0]).ravel() for result in alone])
        differ = len(places) == 1 or bool(np.ptp(numbers, axis=0).max() > 1e-6)
        assert_equal(differ, True, message, name="'numbers that differ'")
        message = (
            f"Leading axes {said}: each text should have the results that your function gives it "
            "alone, at its place."
        )
        returned = _first(function(*copy.deepcopy(given)), names)
        for name, result, expected in zip(names, returned, stacked):
            against = "for each text alone"
            assert_close(result, expected, message, name=name, against=against, **close)


def assert_as_floats(
    function: Called, given: Sequence[Any], message: str, *, names: Sequence[str] = ONE
) -> None:
    """Fail unless whole numbers, or float32, give the results of the same numbers in float64.

    Results are compared in float32 digits; they have to be floating, and at least float32. That
    their numbers differ is checked, too: a constant is the same in any dtype.

    Args:
        function: of the student.
        given: arguments; those of whole numbers or float32 are given in float64, too.
        message: what to tell the student.
        names: of the results, in their order.

    Raises:
        CheckFailed: what differs.
    """
    wide = [_as_double(x) for x in given]
    floating = _as_many(function(*copy.deepcopy(wide)), names)
    returned = _as_many(function(*copy.deepcopy(given)), names)
    for name, result, other in zip(names, returned, floating):
        expected = other.float() if isinstance(other, torch.Tensor) else np.asarray(other, "f4")
        against = "with the same numbers in float64"
        tells = bool(np.ptp(_as_array(other)) > 1e-6)
        said = f"In float64 the {name} has numbers that differ, and no NaN."
        assert_equal(tells, True, said, name="'numbers that differ'")
        assert_close(result, expected, message, rtol=1e-4, atol=1e-5, name=name, against=against)


def assert_unchanged(call: Called, **given: Any) -> None:
    """Fail unless a call leaves its arguments as they are.

    Args:
        call: a probe that takes them, calls the exercise and returns all of them, in their order.
        given: the arguments by their names.

    Raises:
        CheckFailed: which one was changed.
    """
    after = call(*copy.deepcopy(list(given.values())))
    for (name, before), now in zip(given.items(), after, strict=True):
        message = (
            f"{name} was changed by the call. Check first: does an operator like +=, a method that "
            "ends in an underscore, or an assignment write into an argument?"
        )
        assert_equal(now, before, message, name=name)


def assert_refused(function: Called, cases: Cases) -> None:
    """Fail unless each case raises a ValueError.

    Args:
        function: of the student.
        cases: arguments, by what is wrong with them, in words: ``"a length of -1"``.

    Raises:
        CheckFailed: the first case that does not.
    """
    for case, given in cases.items():
        with assert_raises(ValueError, f"{case} should be refused."):
            function(*copy.deepcopy(given))


def assert_slopes(
    results: Called, gradients: Called, given: Mapping[str, Any], message: str, step: float = 1e-5
) -> None:
    """Fail unless gradients are the slopes of the answer's own results.

    The slope of the results' weighted sum is taken along one random direction of each tensor, from
    two more calls; that the results move at all is checked, too.

    Args:
        results: takes the tensors, and gives one tensor or several.
        gradients: a probe: takes the tensors and, for each result, a tensor of its shape with
            weights; gives the gradient of each tensor, of the sum of weights times results.
        given: float64 tensors by name.
        message: what to tell the student.
        step: how far a tensor is moved.

    Raises:
        CheckFailed: of which tensor the gradient is not the slope.
    """
    rng = check_rng()

    def call(tensors: Sequence[Any]) -> list[Any]:
        returned = results(*copy.deepcopy(list(tensors)))
        return list(returned) if isinstance(returned, (tuple, list)) else [returned]

    def drawn(like: Any) -> Any:
        return torch.tensor(rng.normal(size=tuple(like.shape)))

    tensors = list(given.values())
    weights = [drawn(result) for result in call(tensors)]
    returned = _as_many(gradients(*copy.deepcopy(tensors), *weights), [f"{n}.grad" for n in given])
    reached = {name: grad is not None for name, grad in zip(given, returned)}
    said = f"{message} Each of {', '.join(given)} has one. Check first: is every step torch's?"
    assert_equal(reached, dict.fromkeys(given, True), said, name="which have a gradient")
    for place, (name, tensor) in enumerate(given.items()):
        along, sums = drawn(tensor), []
        for moved in (tensor + step * along, tensor - step * along):
            ends = call([*tensors[:place], moved, *tensors[place + 1 :]])
            sums.append(sum(float((w * result).sum()) for w, result in zip(weights, ends)))
        slope = (sums[0] - sums[1]) / (2 * step)
        said = f"The results should change when {name} is moved a little, and hold no NaN."
        assert_equal(bool(abs(slope) > 1e-6), True, said, name="'they change'")
        what = f"the gradient of {name}"
        assert_close(returned[place], torch.zeros_like(tensor), message, atol=np.inf, name=what)
        total = float((returned[place] * along).sum())
        by_steps = f"by small steps in {name}"
        what += " along a direction"
        assert_close(total, slope, message, rtol=1e-5, atol=1e-6, name=what, against=by_steps)


def _each(function: Called, calls: Sequence[Sequence[Any]]) -> Iterator[Any]:
    """The results of calls, each with arguments of its own; in one request where code of the
    student's is asked in a box."""
    at_once = getattr(function, "at_once", None)
    if at_once is not None:
        return at_once(calls)
    return (function(*copy.deepcopy(list(given))) for given in calls)


def _as_many(returned: Any, names: Sequence[str]) -> list[Any]:
    """Results as a list of so many, or a failed check that says what to return."""
    if len(names) == 1 and not (isinstance(returned, (tuple, list)) and len(returned) == 1):
        return [returned]
    count = len(returned) if isinstance(returned, (tuple, list)) else int(returned is not None)
    message = f"Return {len(names)} results in this order: {', '.join(names)}."
    assert_equal(count, len(names), message, name="the number of results")
    return list(returned)


def _first(returned: Any, names: Sequence[str]) -> list[Any]:
    """As many results as there are names, of a function that may return more."""
    many = isinstance(returned, (tuple, list))
    return _as_many(returned[: len(names)] if many else returned, names)


def _is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, torch.Tensor))


def _lead(x: Any, own: int) -> tuple[int, ...] | None:
    return tuple(x.shape[: max(x.ndim - own, 0)]) if _is_array(x) else None


def _expanded(x: Any, lead: tuple[int, ...], own: int) -> Any:
    """A view with all leading axes."""
    if not _is_array(x):
        return x
    shape = (*lead, *x.shape[max(x.ndim - own, 0) :])
    return np.broadcast_to(x, shape) if isinstance(x, np.ndarray) else x.expand(shape)


def _stacked(results: Sequence[Any], lead: tuple[int, ...]) -> Any:
    """Results of single texts as one array or tensor with leading axes."""
    if all(isinstance(result, torch.Tensor) for result in results):
        return torch.stack(list(results)).reshape(*lead, *results[0].shape)
    arrays = [np.asarray(result) for result in results]
    return np.stack(arrays).reshape(*lead, *arrays[0].shape)


def _as_array(x: Any) -> np.ndarray:
    return np.asarray(x.detach() if isinstance(x, torch.Tensor) else x, dtype=float)


def _same(x: Any, y: Any) -> bool:
    """Whether two values have the same numbers."""
    return _is_array(y) and np.array_equal(_as_array(x), _as_array(y))


def _as_double(x: Any) -> Any:
    if not _is_array(x) or "bool" in str(x.dtype):
        return x
    return x.double() if isinstance(x, torch.Tensor) else x.astype(float)
