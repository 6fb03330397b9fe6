"""Answers that do not look at the question: nothing may be earned with them.

A *box* here answers the same to every call of the student's code; a *body* is what a function, or
each method of a class, does with its arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_kit.tensors import installed, torch

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
    "a tensor": lambda function: lambda *args, **kwargs: torch.zeros(2, 3, dtype=torch.float64),
    "the first argument": _argument(0),
    "all arguments": _all_arguments,
    "ValueError": _raises(ValueError),
    "zeros that fit": _filled(0.0),
    "NaN that fit": _filled(float("nan")),
}

if not installed():
    del BOXES["a tensor"]

#: What a function, or each method of a class, does; ``given`` is what it is given.
BODIES = {
    "nothing": "return None",
    "0": "return 0",
    "True": "return True",
    "False": "return False",
    "an empty list": "return []",
    "NaN": "return float('nan')",
    "the first argument": "return given[0] if given else None",
    "the second argument": "return given[1] if len(given) > 1 else None",
    "the last argument": "return given[-1] if given else None",
    "the first argument twice": "return (given[0], given[0]) if given else None",
    "a copy of the first argument": "return given[0] * 1 if hasattr(given[0], 'shape') else None",
    "zeros like the first argument": "return given[0] * 0 if hasattr(given[0], 'shape') else None",
    "ValueError": "raise ValueError('no')",
    "StopIteration": "raise StopIteration",
}


def idle_answers(name: str, solution: str) -> dict[str, str]:
    """Sources that bind an exercise's name and ignore what is asked, by what they do.

    Args:
        name: of an exercise that is a function or a class.
        solution: its right answer; its constants, and those of its card, are answers too.
    """
    tree = ast.parse(solution)
    constants = {
        repr(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
    }
    bodies = {text: f"return {text}" for text in sorted(constants)} | BODIES
    return {does: _source(name, tree, body) for does, body in bodies.items()}


def _source(name: str, tree: ast.Module, body: str) -> str:
    given = "given = [*args, *kwargs.values()]"
    kinds = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in kinds:
        return f"def {name}(*args, **kwargs):\n    {given}\n    {body}\n"
    bases = ", ".join(map(ast.unparse, kinds[name].bases))
    methods = [node.name for node in kinds[name].body if isinstance(node, ast.FunctionDef)]
    lines = [f"class {name}({bases}):", "    def __init__(self, *args, **kwargs):"]
    lines += ["        super().__init__()", f"        {body if 'raise' in body else 'pass'}"]
    for method in methods:
        if method != "__init__":
            lines += [f"    def {method}(self, *args, **kwargs):"]
            lines += [f"        {given}", f"        {body}"]
    return "\n".join(lines) + "\n"
