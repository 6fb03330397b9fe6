"""Batteries pass what is right, and fail what is right but for the thing that each looks at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from lesson_kit import checks
from lesson_kit.batteries import (
    assert_as_floats,
    assert_as_reference,
    assert_each_alone,
    assert_refused,
    assert_slopes,
    assert_unchanged,
)

Both = Callable[[Any, Any], Any]
RNG = np.random.default_rng(1)
NUMPY = RNG.normal(size=(2, 1, 4, 3)), RNG.normal(size=(3, 5, 3))
TORCH = tuple(torch.tensor(x) for x in NUMPY)


def products(x: Any, y: Any) -> Any:
    return x @ y.swapaxes(-1, -2), x.sum(-1)


def fails(says: str, battery: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    checks.begin_cell()
    with pytest.raises(checks.CheckFailed, match=says):
        battery(*args, **kwargs)


@pytest.mark.parametrize("given", [NUMPY, TORCH])
def test_each_text_is_compared_with_the_same_text_alone(given: tuple[Any, Any]) -> None:
    names = ("products",)
    assert_each_alone(products, [given, (given[0][0, 0], given[1])], names=names)
    wrong: dict[str, Both] = {
        "Leading axes .2, 1., .3,.": lambda x, y: (products(x, y)[0] + x.ndim, 0),
        "none of them": lambda x, y: (x, y),
        "have different results": lambda x, y: (products(x, y)[0] * 0, 0),
    }
    for says, function in wrong.items():
        fails(says, assert_each_alone, function, [given], names=names)
    fails("Return 2 results", assert_each_alone, lambda x, y: x, [given], names=("a", "b"))


def test_a_case_is_named_where_a_result_is_not_the_references() -> None:
    cases = {"one text": [x[0] for x in NUMPY], "two": NUMPY}
    names = ("products", "sums")
    assert_as_reference(products, products, cases, "So it is.", names=names)
    fails(
        "two: So it is",
        assert_as_reference,
        lambda x, y: (products(x, y)[0] + (y.ndim == 3), x.sum(-1)),
        products,
        cases,
        "So it is.",
        names=names,
    )
    fails(
        "3 results|2 results", assert_as_reference, lambda x, y: x, products, cases, "", names=names
    )


def test_an_answer_that_writes_into_arguments_is_compared_with_what_it_was_given() -> None:
    def in_place(x: Any) -> Any:
        x += 1
        return x

    x = np.zeros(3)
    assert_as_reference(in_place, lambda x: x + 1, {"zeros": [x]}, "One more.")
    assert not x.any()
    assert_unchanged(lambda x: [x], x=x)
    fails("x was changed", assert_unchanged, lambda x: [in_place(x)], x=x)


@pytest.mark.parametrize("x", [np.arange(3), np.arange(3.0, dtype="f4"), torch.arange(3).float()])
def test_other_dtypes_give_the_results_of_float64(x: Any) -> None:
    assert_as_floats(lambda x: x / 2, [x], "Halves.")
    fails(
        "Halves",
        assert_as_floats,
        lambda x: x / 2 + ("float64" not in str(x.dtype)),
        [x],
        "Halves.",
    )


def test_what_is_not_refused_is_named() -> None:
    def at_least_0(x: int) -> int:
        if x < -1:
            raise ValueError("x is negative")
        return x

    assert_refused(at_least_0, {"x = -2": [-2]})
    fails("x = -1 should be refused", assert_refused, at_least_0, {"x = -2": [-2], "x = -1": [-1]})


def gradients_of(function: Any) -> Any:
    def gradients(x: Any, y: Any, *weights: Any) -> Any:
        x, y = x.requires_grad_(), y.requires_grad_()
        sum((w * one).sum() for w, one in zip(weights, function(x, y))).backward()
        return x.grad, y.grad

    return gradients


def test_gradients_are_slopes() -> None:
    given = dict(zip("xy", (x.reshape(-1, 3) for x in TORCH)))
    assert_slopes(products, gradients_of(products), given, "As slopes.")
    wrong = {
        "As slopes": lambda x, y: (products(x.detach() * 2 - x, y)[0], x.sum(-1)),
        "has one": lambda x, y: products(x, y.detach()),
        "NaN in the gradient": lambda x, y: products(x * (1 + 0 * (x - x).sqrt()), y),
        "should change when y": lambda x, y: (x * 2 + 0 * y.sum(), x.sum(-1)),
    }
    for says, function in wrong.items():
        fails(says, assert_slopes, function, gradients_of(function), given, "As slopes.")
