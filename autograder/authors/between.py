"""Stand between a lesson's tests and an exercise's right answer, call by call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

#: Gets what is called, such as ``LayerNorm.forward``, its arguments by their names and the call
#: itself; gives what the caller gets.
Around = Callable[[str, dict[str, Any], Callable[[], Any]], Any]


def between(name: str, around: Around, answer: Any) -> Any:
    """The answer, with ``around`` at each call of it or of its methods.

    Args:
        name: of the exercise.
        around: as said.
        answer: the function, or the class; of a class the methods that it defines itself.
    """
    if not inspect.isclass(answer):
        return _called(name, around, answer, skip=0)
    methods = {
        method: _called(f"{name}.{method}", around, function, skip=1)
        for method, function in vars(answer).items()
        if inspect.isfunction(function) and (method == "__init__" or not method.startswith("_"))
    }
    return type(answer.__name__, (answer,), methods)


def _called(called: str, around: Around, function: Callable[..., Any], skip: int) -> Any:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError:
            bound = {}  # a call that a test expects to fail
        arguments = dict(list(bound.items())[skip:])
        return around(called, arguments, lambda: function(*args, **kwargs))

    call.__signature__ = signature  # type: ignore[attr-defined]  # Keras reads it, past `wraps`
    return call
