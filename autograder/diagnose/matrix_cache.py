"""Values kept by the digest of all that they come from, for every clone of one user.

One SQLite file in the user's cache folder; the variable ``AUTOGRADER_CACHE`` names another folder.
A value that is not there is computed anew, so nothing is lost with the file, and what is wrong with
it (no place to write, a damaged file) costs time alone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from platformdirs import user_cache_path

#: Above this many bytes the file is begun anew.
MAX_BYTES = 1 << 30
#: Keys that one question to the database may hold.
MAX_KEYS = 500
#: Seconds to wait for another process that writes.
BUSY_SECONDS = 60.0


def cache_folder() -> Path:
    """Where this user's results are kept."""
    named = os.environ.get("AUTOGRADER_CACHE")
    return Path(named) if named else user_cache_path("attention-course-autograder")


class MatrixCache:
    """Texts by key; several processes and threads may use one file at once."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open the file, or begin it; without a place to write, keep texts for this process."""
        self._lock = threading.Lock()
        path = (folder or cache_folder()) / "answers.sqlite3"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > MAX_BYTES:
                path.unlink()
            self._connection = _opened(path)
        except sqlite3.DatabaseError:
            with contextlib.suppress(OSError):
                path.unlink()  # damaged: it can be made anew
            self._connection = _opened(path, or_in_memory=True)
        except OSError:
            self._connection = _opened(Path(":memory:"))

    def get(self, keys: Iterable[str]) -> dict[str, str]:
        """The texts that are kept, of some keys."""
        wanted, texts = list(keys), dict[str, str]()
        with self._lock, contextlib.suppress(sqlite3.Error):
            for start in range(0, len(wanted), MAX_KEYS):
                part = wanted[start : start + MAX_KEYS]
                marks = ",".join("?" * len(part))
                asked = f"select key, text from results where key in ({marks})"
                texts.update(self._connection.execute(asked, part).fetchall())
        return texts

    def put(self, texts: Mapping[str, str]) -> None:
        """Keep texts, each in place of what its key had."""
        with self._lock, contextlib.suppress(sqlite3.Error), self._connection:
            self._connection.executemany(
                "insert or replace into results values (?, ?)", list(texts.items())
            )

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()


def _opened(path: Path, *, or_in_memory: bool = False) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = off")
        connection.execute("create table if not exists results (key text primary key, text text)")
        connection.commit()
    except sqlite3.Error:
        if not or_in_memory:
            raise
        return _opened(Path(":memory:"))
    return connection
