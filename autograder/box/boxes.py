"""Starting boxes: one zygote, kept warm, started again when it has ended."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from autograder.box.box import MOST_MEMORY, Box, BoxFailure
from autograder.box.sandbox import NoSandbox, Zygote


class Boxes:
    """Starts boxes one after another. Use it as a context manager, or call :meth:`close`."""

    def __init__(self, tier: str, libraries: tuple[str, ...] = ()) -> None:
        """Nothing is started yet.

        Args:
            tier: ``bubblewrap`` or ``none``, as :func:`autograder.box.sandbox.choose` gives it.
            libraries: modules to import beside those that every box has.
        """
        self.tier = tier
        self.libraries = libraries
        self._scratch = tempfile.TemporaryDirectory(prefix="boxes-", ignore_cleanup_errors=True)
        self._zygote: Zygote | None = None

    def __enter__(self) -> Boxes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, files: dict[str, bytes], most_memory: int = MOST_MEMORY) -> Box:
        """A fresh box with these files beside its notebook.

        Args:
            files: by name.
            most_memory: bytes that its processes may take together.

        Raises:
            NoSandbox: no zygote can be started, or none that gives a box.
        """
        if self._zygote is not None:
            try:
                return Box(self._zygote, files, most_memory)
            except (NoSandbox, OSError, BoxFailure):
                self._end_zygote()
        self._zygote = Zygote(self.tier, Path(self._scratch.name), self.libraries)
        try:
            return Box(self._zygote, files, most_memory)
        except BoxFailure as failure:
            self._end_zygote()
            raise NoSandbox(f"a box could not be started: {failure}") from None

    def close(self) -> None:
        """End the zygote and remove what boxes left behind."""
        self._end_zygote()
        self._scratch.cleanup()

    def _end_zygote(self) -> None:
        if self._zygote is not None:
            with contextlib.suppress(OSError):
                self._zygote.close()
            self._zygote = None
