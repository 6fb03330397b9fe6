"""Of which kinds the arguments of a call are: sizes, dtypes, masks, values, numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lesson_kit.tensors import torch

#: Longer axes than these are a kind of their own: what is done in blocks ends there.
LONG = (16, 64)


def kinds(arguments: Mapping[str, Any]) -> set[str]:
    """The kinds of one call's inputs, such as "mask: all True" or "x: last axis odd".

    Args:
        arguments: by their names; arrays may stand in lists, tuples and dicts.
    """
    arrays = {name: _arrays(value) for name, value in arguments.items()}
    all_kinds = set[str]()
    for name, value in arguments.items():
        all_kinds |= {f"{name}: {kind}" for kind in _of_plain(value)}
        all_kinds |= {f"{name}: {kind}" for array in arrays[name] for kind in _of_array(array)}
    numbers = {name: of[0] for name, of in arrays.items() if of and not _is_bool(of[0])}
    for (first, a), (second, b) in itertools.combinations(numbers.items(), 2):
        all_kinds |= {f"{first} and {second}: {kind}" for kind in _of_pair(a, b)}
    return all_kinds


def _arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return [(value.double() if value.dtype == torch.bfloat16 else value).numpy()]
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _arrays(item)]
    return []


def _is_bool(array: np.ndarray) -> bool:
    return array.dtype == bool


def _of_plain(value: Any) -> Iterator[str]:
    if isinstance(value, torch.Tensor):
        yield f"torch {value.dtype}".replace("torch.", "")
        yield "recorded for a gradient" if value.requires_grad else "not recorded for a gradient"
    elif isinstance(value, np.ndarray):
        yield f"NumPy {value.dtype}"
    elif isinstance(value, torch.nn.Module):
        yield "in training mode" if value.training else "in evaluation mode"
    elif isinstance(value, (bool, np.bool_)) or value is None:
        yield str(value)
    elif isinstance(value, (int, float, np.number)):
        yield type(value).__name__
        yield _size(value)
    elif isinstance(value, (str, list, tuple, dict)):
        yield f"{type(value).__name__} of length {_size(len(value))}"


def _size(number: Any) -> str:
    if number in (0, 1, 2):
        return str(int(number))
    if number < 0:
        return "below 0"
    if not np.isfinite(number) or number != int(number):
        return "below 1" if number < 1 else "no whole number"
    return "odd" if number % 2 else "even"


def _of_array(array: np.ndarray) -> Iterator[str]:
    yield f"{array.ndim} axes"
    for back, length in enumerate(array.shape[::-1], start=1):
        axis = "last axis" if back == 1 else f"axis {-back}"
        yield f"{axis} {_size(length)}"
        yield from (f"{axis} longer than {long}" for long in LONG if length > long)
    for a, b in itertools.combinations(range(1, array.ndim + 1), 2):
        if array.shape[-a] == array.shape[-b]:
            yield f"axes {-b} and {-a} equal"
    if array.size and array.dtype == bool:
        yield from _of_mask(array)
    elif array.size and array.dtype.kind == "f":
        yield from _of_numbers(array)


def _of_mask(mask: np.ndarray) -> Iterator[str]:
    if mask.all() or not mask.any():
        yield "all True" if mask.all() else "all False"
    elif mask.ndim:
        yield "each row has a True" if mask.any(-1).all() else "some row is all False"


def _of_numbers(array: np.ndarray) -> Iterator[str]:
    finite = np.abs(array[np.isfinite(array)])
    if finite.size < array.size:
        yield "NaN or infinite"
    largest = float(finite.max(initial=0))
    if largest == 0:
        yield "all zero"
    elif largest > 50:
        yield "beyond 50"
    elif largest < 1e-3:
        yield "all within 0.001"
    if array.ndim > 1 and array.shape[-1]:
        if largest and (array == 0).all(-1).any():
            yield "some row is zero"
        if (array[..., 1:, :] == array[..., :-1, :]).all(-1).any():
            yield "two neighbouring rows equal"


def _of_pair(a: np.ndarray, b: np.ndarray) -> Iterator[str]:
    if a.ndim > 1 and b.ndim > 1:
        rows = int(np.sign(a.shape[-2] - b.shape[-2]))
        yield ("as many rows", "more rows", "fewer rows")[rows]
    if a.ndim != b.ndim:
        yield "another number of axes"
    elif a.shape[:-2] != b.shape[:-2]:
        yield "other leading axes"
    if a.dtype != b.dtype:
        yield "two dtypes"
    if a.shape == b.shape and a.size and np.shares_memory(a, b):
        yield "the same array"
