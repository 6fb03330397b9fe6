"""nbgrader's migration tool, alembic, where nbgrader finds it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def put_alembic_on_path() -> None:
    """nbgrader calls ``alembic`` by name whenever it opens a gradebook; without an
    activated environment it would not be found."""
    if shutil.which("alembic") is None:
        folder = str(Path(sys.executable).parent)
        os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", "")
