"""The lessons' checks as plain assertions, for the tests of a package.

They are named as in :mod:`lesson_kit.checks` and allow for rounding as much; the first that does
not hold ends a test. This file lies in the package as ``given/plain_checks.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from .differences import as_numpy, difference, kind_of, tolerance
from .tensors import torch

__all__ = [
    "assert_close",
    "assert_equal",
    "assert_raises",
    "check",
    "check_rng",
    "inputs_of",
    "probe",
]

Function = TypeVar("Function", bound=Callable[..., Any])

_seeds = [2017]


@contextmanager
def inputs_of(seed: int) -> Iterator[None]:
    """While it is open, inputs are drawn from this seed."""
    _seeds.append(seed)
    try:
        yield
    finally:
        _seeds.pop()


@contextmanager
def check(name: str, points: float, *, side: bool = False) -> Iterator[None]:
    """A named part of a test."""
    yield


def probe(function: Function) -> Function:
    """A function that calls the part; here it is one like others."""
    return function


def check_rng() -> np.random.Generator:
    """A fresh generator for the inputs of a test."""
    return np.random.default_rng(_seeds[-1])


def assert_close(
    actual: Any,
    expected: Any,
    message: str,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    precise: bool = False,
    name: str = "the result",
    against: str = "",
) -> None:
    """Fail with ``message`` unless ``actual`` equals ``expected`` up to rounding.

    The kind (NumPy or torch) and the shape are compared first, so that nothing broadcasts.

    Raises:
        AssertionError: it does not.
    """
    for kind in (torch.Tensor, np.ndarray):
        if isinstance(expected, kind) and as_numpy(expected).ndim:
            assert isinstance(actual, kind), f"{message} {name} is {kind_of(actual)}."
    assert actual is not None, f"{message} {name} is None."
    got, want = as_numpy(actual), as_numpy(expected)
    assert got.shape == want.shape, f"{message} {name}: shape {got.shape}, not {want.shape}."
    enough = not precise or got.dtype.itemsize >= want.dtype.itemsize
    assert enough, f"{message} {name}: dtype {got.dtype}."
    if not got.size:
        return
    rtol, atol = tolerance(got, want, (rtol, atol), precise=precise)
    if want.dtype != bool:
        got, want = got.astype(float), want.astype(float)
    with np.errstate(all="ignore"):
        wrong = int((~np.isclose(got, want, rtol, atol)).sum())
    assert not wrong, f"{message} {wrong} of {got.size} values of {name} differ."


def assert_equal(
    actual: Any, expected: Any, message: str, *, name: str = "the result", against: str = ""
) -> None:
    """Fail with ``message`` unless ``actual`` is exactly ``expected``, also in type.

    Raises:
        AssertionError: it is not.
    """
    differs = difference(actual, expected, name, against)
    assert differs is None, f"{message} {differs[0] if differs else ''}"


@contextmanager
def assert_raises(error: type[Exception], message: str) -> Iterator[None]:
    """Fail with ``message`` unless the body raises ``error``.

    Raises:
        AssertionError: it does not.
    """
    try:
        yield
    except error:
        return
    raise AssertionError(message)
