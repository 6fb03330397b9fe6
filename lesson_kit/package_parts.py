"""How a package of parts finds each by its name: in the module of the lesson that defines it.

A part of the course that is not there yet stands in for itself, and says so when it is used. This
file lies in the package as ``given/package_parts.py``; ``given/exercises.json`` names all parts.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

__all__ = ["Missing", "MissingPart", "lacking", "part"]


class MissingPart(NotImplementedError):
    """A part is used that is not in the package yet; the message says what to do."""


class Missing:
    """Stands for a part that is not there yet: it can be imported, and not be used."""

    def __init__(self, name: str, lesson: str) -> None:
        self._name, self._lesson = name, lesson

    def __repr__(self) -> str:
        return f"{self._name} (lesson {self._lesson[:2]}) is not in this package yet"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Refuse.

        Raises:
            MissingPart: always.
        """
        raise MissingPart(f"{self!r}: it comes when its check in {self._lesson} passes.")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self()

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """Nothing can be built on it."""
        self()
        return ()


@lru_cache(maxsize=1)
def _exercises() -> dict[str, str]:
    text = Path(__file__).with_name("exercises.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def part(package: str, name: str) -> Any:
    """A part of a package; the one that stands for it where the course has it and the package not.

    Raises:
        AttributeError: there is no part of that name.
    """
    for path in sorted(Path(__file__).parent.parent.glob("lesson_*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if re.search(rf"^(?:def|class) {re.escape(name)}\b|^{re.escape(name)} *=", text, re.M):
            return getattr(import_module(f"{package}.{path.stem}"), name)
    if name not in _exercises():
        raise AttributeError(f"{package} has no part {name!r}")
    return Missing(name, _exercises()[name])


def lacking(value: Any, been: set[int] | None = None) -> list[Missing]:
    """What is not there yet of what a function or class uses, also through others."""
    been = set() if been is None else been
    if isinstance(value, Missing):
        return [value]
    if id(value) in been or not hasattr(value, "__module__"):
        return []
    been.add(id(value))
    lacks: dict[str, Missing] = {}
    functions = [value, *vars(value).values()] if isinstance(value, type) else [value]
    for function in functions:
        if isinstance(function, FunctionType):
            for name in _names_in(function.__code__):
                used = function.__globals__.get(name)
                ours = isinstance(used, (FunctionType, type, Missing))
                for missing in lacking(used, been) if ours else ():
                    lacks[repr(missing)] = missing
    return list(lacks.values())


def _names_in(code: CodeType) -> set[str]:
    inner = [_names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)
