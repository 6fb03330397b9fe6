"""Answers that do not look at the question: nothing may be earned with them.

A *box* here answers the same to every call of the student's code; a *body* is what a function, or
each method of a class, does with its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

__all__ = ["BODIES", "BOXES", "idle"]

_Called = Callable[..., Any]


def _always(value: Any) -> Callable[[_Called], _Called]:
    return lambda function: lambda *args, **kwargs: value


def _argument(number: int) -> Callable[[_Called], _Called]:
    def answer(function: _Called) -> _Called:
        def call(*args: Any, **kwargs: Any) -> Any:
            given = [*args, *kwargs.values()]
            return given[number] if len(given) > abs(number) - (number < 0) else None

        return call

    return answer


def _all_arguments(function: _Called) -> _Called:
    return lambda *args, **kwargs: args


def _raises(error: type[Exception]) -> Callable[[_Called], _Called]:
    def answer(function: _Called) -> _Called:
        def call(*args: Any, **kwargs: Any) -> Any:
            raise error("no")

        return call

    return answer


def _filled(number: float) -> Callable[[_Called], _Called]:
    """The right kinds, shapes and lengths, and one number everywhere."""
    return lambda function: lambda *args, **kwargs: _with(function(*args, **kwargs), number)


def _with(value: Any, number: float) -> Any:
    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point:
            return torch.full_like(value, number, requires_grad=False)
        return torch.full_like(value, 0)
    if isinstance(value, np.ndarray):
        return np.full_like(value, number if value.dtype.kind == "f" else 0)
    if isinstance(value, (tuple, list)):
        return type(value)(_with(item, number) for item in value)
    if isinstance(value, dict):
        return {key: _with(item, number) for key, item in value.items()}
    if isinstance(value, float):
        return number
    return type(value)() if isinstance(value, (bool, int, str)) else value


#: What stands for the student's code, by what it answers to everything.
BOXES: dict[str, Callable[[_Called], _Called]] = {
    "nothing": _always(None),
    "0": _always(0),
    "1": _always(1),
    "True": _always(True),
    "False": _always(False),
    "an empty list": _always([]),
    "an empty dict": _always({}),
    "a pair of None": _always((None, None)),
    "an empty array": _always(np.zeros(0)),
    "a huge list": _always(list(range(10_000))),
    "NaN": _always(float("nan")),
    "a tensor": _always(torch.zeros(2, 3, dtype=torch.float64)),
    "the first argument": _argument(0),
    "all arguments": _all_arguments,
    "ValueError": _raises(ValueError),
    "zeros that fit": _filled(0.0),
    "NaN that fit": _filled(float("nan")),
}

#: What a function, or each method of a class, does with its arguments.
BODIES = {
    "nothing": "return None",
    "0": "return 0",
    "an empty list": "return []",
    "NaN": "return float('nan')",
    "the first argument": "return args[0] if args else None",
    "a copy of it": "return args[0] * 1 if args and hasattr(args[0], 'shape') else None",
    "it twice": "return (args[0], args[0]) if args else None",
    "zeros like it": "return args[0] * 0 if args and hasattr(args[0], 'shape') else None",
    "ValueError": "raise ValueError('no')",
    "True": "return True",
    "False": "return False",
}


def idle(name: str, solution: str, body: str) -> str:
    """Source that binds an exercise's name and ignores what is asked.

    Args:
        name: of the exercise.
        solution: its right answer, which says whether it is a function or a class.
        body: one of :data:`BODIES`.
    """
    if f"class {name}" not in solution:
        return f"def {name}(*args, **kwargs):\n    {body}\n"
    base = "nn.Module" if "(nn.Module)" in solution else "object"
    start = body if body.startswith("raise") else "pass"
    return (
        f"class {name}({base}):\n"
        "    def __init__(self, *args, **kwargs):\n"
        "        super().__init__()\n"
        f"        {start}\n"
        f"    def forward(self, *args, **kwargs):\n        {body}\n"
    )
