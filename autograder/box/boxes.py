"""Starting boxes: one fork server, kept warm, started again when it has ended."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from autograder.box.box import MAX_MEMORY, Box, BoxFailure
from autograder.box.sandbox import ForkServer, NoSandbox


class Boxes:
    """Starts boxes one after another. Use it as a context manager, or call :meth:`close`."""

    def __init__(self, backend: str, libraries: tuple[str, ...] = ()) -> None:
        """Nothing is started yet.

        Args:
            backend: ``bubblewrap`` or ``none``, as :func:`autograder.box.sandbox.choose` gives it.
            libraries: modules to import beside those that every box has.
        """
        self.backend = backend
        self.libraries = libraries
        self._scratch = tempfile.TemporaryDirectory(prefix="boxes-", ignore_cleanup_errors=True)
        self._fork_server: ForkServer | None = None

    def __enter__(self) -> Boxes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, files: dict[str, bytes], most_memory: int = MAX_MEMORY) -> Box:
        """A fresh box with these files beside its notebook.

        Args:
            files: by name.
            most_memory: bytes that its processes may take together.

        Raises:
            NoSandbox: no fork server can be started, or none that gives a box.
        """
        if self._fork_server is not None:
            try:
                return Box(self._fork_server, files, most_memory)
            except (NoSandbox, OSError, BoxFailure):
                self._end_fork_server()
        self._fork_server = ForkServer(self.backend, Path(self._scratch.name), self.libraries)
        try:
            return Box(self._fork_server, files, most_memory)
        except BoxFailure as failure:
            self._end_fork_server()
            raise NoSandbox(f"a box could not be started: {failure}") from None

    def close(self) -> None:
        """End the fork server and remove what boxes left behind."""
        self._end_fork_server()
        self._scratch.cleanup()

    def _end_fork_server(self) -> None:
        if self._fork_server is not None:
            with contextlib.suppress(OSError):
                self._fork_server.close()
            self._fork_server = None
