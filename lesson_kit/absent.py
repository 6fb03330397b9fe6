"""What stands for a library that is not installed, so that a notebook opens and runs without it.

The setup cell of a lesson that can do without a library puts one of these in its place: names in it
are found, classes can be written below its classes, and whatever is called says in one sentence
what to install.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Absent", "NotInstalled"]


class NotInstalled(ModuleNotFoundError):
    """A library is used that is not there; the message says what to install."""


class Absent:
    """Stands for a library that is not installed, and is false: ``if keras:`` asks for it."""

    def __init__(self, library: str, command: str) -> None:
        """Say once what is missing.

        Args:
            library: as people call it.
            command: that installs it.
        """
        self._says = f"{library} is not installed: `{command}` installs it; restart Python then."
        print(self._says)

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Refuse: nothing of the library can be called.

        Raises:
            NotInstalled: always.
        """
        raise NotInstalled(self._says)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """A class may be written below one of the library's; making an object says why not."""
        says = self._says

        class Base:
            def __init__(self, *args: object, **kwargs: object) -> None:
                raise NotInstalled(says)

        return (Base,)
