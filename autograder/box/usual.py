"""The state in which a student's code is called: what a cell of the student's changed for all of
Python, such as torch's default device, does not count against an answer, and is told.

A cell may as well take a name from a library: ``nn = 7``. Whoever means that may use the name;
where code stops, it is tried once more with the lesson's own.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from lesson_kit.tensors import installed, torch

#: Reads a setting; what it raises is a value too.
Read = Callable[[], Any]


class Usual:
    """The settings and names as they were before the student's first cell."""

    def __init__(self) -> None:
        """Remember the settings of now."""
        self._settings = _settings_of_torch() if installed() else {}
        self._usual = self._now()
        self._names: dict[str, Any] | None = None
        self._told: set[str] = set()

    def _now(self) -> dict[str, Any]:
        return {name: _value(read) for name, (read, _) in self._settings.items()}

    def note_names(self, namespace: dict[str, Any]) -> None:
        """After the lesson's own setup: the names of libraries are these."""
        if self._names is None:
            self._names = {
                name: value for name, value in namespace.items() if isinstance(value, ModuleType)
            }

    def taken(self, namespace: dict[str, Any]) -> dict[str, Any]:
        """Names of libraries that are something else now, and names of Python's own that cannot be
        called; each with what it should be."""
        names = {
            name: module
            for name, module in (self._names or {}).items()
            if not isinstance(namespace.get(name), ModuleType)
        }
        for name in namespace.keys() & vars(builtins).keys():
            own = getattr(builtins, name)
            if not name.startswith("_") and callable(own) and not callable(namespace[name]):
                names[name] = own
        return names

    def changed(self, namespace: dict[str, Any]) -> list[str]:
        """What is not as usual and was not told yet; a device that is not here is set back."""
        now = self._now()
        odd = {name for name, value in now.items() if value != self._usual[name]}
        if isinstance(now.get("torch's default device"), _Raised):
            self.restore()
        odd |= {f"the name {name}" for name in self.taken(namespace)}
        new, self._told = sorted(odd - self._told), odd | self._told
        return new

    def restore(self) -> None:
        """Set the settings back."""
        for name, (read, write) in self._settings.items():
            if _value(read) != self._usual[name]:
                write(self._usual[name])

    def again(
        self, namespace: dict[str, Any], source: str, attempt: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """What an attempt comes to; where it stops, and names that it could use are taken, what it
        comes to with the lesson's own.

        Args:
            namespace: of the student's code.
            source: of the attempt, where it matters which names that is; "" where any may be.
            attempt: gives a reply, with what was raised as ``error``.
        """
        reply = attempt()
        if not reply.get("error"):
            return reply
        names = {
            name: value
            for name, value in self.taken(namespace).items()
            if not source or re.search(rf"\b{re.escape(name)}\b", source)
        }
        if not names:
            return reply
        with _bound(namespace, names):
            return attempt()


def _settings_of_torch() -> dict[str, tuple[Read, Callable[[Any], object]]]:
    return {
        "torch's default device": (
            lambda: torch.get_default_device().type,
            lambda device: torch.set_default_device(None),
        ),
        "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "torch's choice of algorithms": (
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
        ),
    }


@contextlib.contextmanager
def _bound(namespace: dict[str, Any], names: dict[str, Any]) -> Iterator[None]:
    """Bind names, and bind what they were afterwards, unless the code inside bound them anew."""
    before = {name: namespace[name] for name in names if name in namespace}
    namespace.update(names)
    try:
        yield
    finally:
        for name, value in names.items():
            if namespace.get(name) is value:
                namespace.pop(name)
                namespace.update({name: before[name]} if name in before else {})


def own_copy(values: Any) -> Any:
    """Arguments for one attempt of several; what cannot be copied is handed over itself."""
    try:
        return copy.deepcopy(values)
    except Exception:
        return values


class _Raised:
    """The value of a setting that cannot be read."""


def _value(read: Read) -> Any:
    try:
        return read()
    except Exception:
        return _Raised()
