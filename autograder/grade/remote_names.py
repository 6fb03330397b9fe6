"""The student's names as a test uses them: they live in a box, and are asked there."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from autograder.box.box import Box, BoxDied, BoxError, Reply
from autograder.box.decoding import Foreign
from lesson_kit.failures import CheckFailed
from lesson_kit.words import N_, tr


class NameMissing(BaseException):
    """The student's notebook defines no such name."""


class RemoteNames:
    """What stands for the names of one box in a test cell."""

    def __init__(self, box: Box, left: Callable[[], float]) -> None:
        """Ask ``box``, which has ``left()`` seconds for each answer."""
        self._box = box
        self._left = left

    def function(self, name: str) -> Callable[..., Any]:
        """A function or class of the student's; its ``at_once`` makes several calls in one request,
        and gives what they return, or raise, in their order."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return _result(name, self._box.call(name, args, kwargs, self._left()))

        def at_once(calls: Sequence[Sequence[Any]]) -> Iterator[Any]:
            reply = self._box.calls(name, calls, self._left())
            results = reply.value if isinstance(reply.value, list) else []
            stopped = reply.missing or reply.error is not None
            if len(results) != len(calls) and not (stopped and len(results) < len(calls)):
                self._box.close()
                raise BoxDied("it did not answer each call")
            yield from results
            if len(results) < len(calls):
                _result(name, reply)

        call.__name__ = name
        call.at_once = at_once  # type: ignore[attr-defined]
        return call

    def value(self, name: str) -> Any:
        """A short answer.

        Raises:
            NameMissing: there is no such name.
            CheckFailed: what it stands for is no plain data.
        """
        value = _result(name, self._box.get(name, self._left()))
        if isinstance(value, Foreign):
            none = N_("{name} is a {kind}, which is none of the choices.")
            raise CheckFailed(tr(none, name=name, kind=value.type_name))
        return value

    def probe(self, function: FunctionType) -> Callable[..., Any]:
        """Have a function of the test cell run beside the student's code."""
        source = _source_of(function.__code__)
        name = function.__name__

        def call(*args: Any, **kwargs: Any) -> Any:
            return _result(name, self._box.probe(source, name, args, kwargs, self._left()))

        return call


def _result(name: str, reply: Reply) -> Any:
    if reply.missing:
        raise NameMissing(tr("{name} is not defined in your notebook.", name=name))
    if reply.error is not None:
        raise _as_exception(reply.error)
    return reply.value


def _as_exception(error: BoxError) -> Exception:
    """The student's exception as the nearest built-in one, so that tests can expect it."""
    for name in error.types:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                exception = kind(error.text)
            except TypeError:  # such as UnicodeDecodeError, which wants more
                continue
            exception.box_error = error  # type: ignore[attr-defined]
            return exception
    fallback = Exception(error.text)
    fallback.box_error = error  # type: ignore[attr-defined]
    return fallback


@cache
def _source_of(code: CodeType) -> str:
    """The source of a probe. Its cell is compiled once, and so the code is the same each time."""
    return _without_decorators(textwrap.dedent(inspect.getsource(code)))


def _without_decorators(source: str) -> str:
    node = ast.parse(source).body[0]
    return "".join(source.splitlines(keepends=True)[node.lineno - 1 :])
