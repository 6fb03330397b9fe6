"""What a notebook imports from the folder beside it, answered by this package.

In a student's folder ``from lesson.checks import ...`` finds the copies that were released with the
notebook. Where work is graded it finds :mod:`autograder.lesson` itself: a copy that came with a
submission is never looked at. Two names hold for both, so that one test cell serves all.
"""

from __future__ import annotations

import pkgutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from autograder import lesson

#: The package beside a notebook.
LESSON = "lesson"

#: Its modules, by the names that cells import them by.
MODULES: dict[str, ModuleType] = {
    f"{LESSON}.{found.name}": import_module(f"{lesson.__name__}.{found.name}")
    for found in pkgutil.iter_modules(lesson.__path__)
}

_lock = threading.RLock()


def answer_imports(folder: str) -> None:
    """From now on this process's ``lesson`` is this package's; what is not in it (parts of
    earlier lessons) is looked for in ``folder``."""
    package = ModuleType(LESSON)
    package.__path__ = [folder]
    sys.modules[LESSON] = package
    for name, module in MODULES.items():
        sys.modules[name] = module
        setattr(package, name.rpartition(".")[2], module)


@contextmanager
def imports_answered(earlier: ModuleType) -> Iterator[None]:
    """While it is open, this process answers a lesson's imports so.

    Args:
        earlier: parts of earlier lessons, ``lesson.earlier``.
    """
    package = ModuleType(LESSON)
    package.__path__ = []
    names = {LESSON: package, **MODULES, f"{LESSON}.earlier": earlier}
    with _lock:
        kept = {name: sys.modules.get(name) for name in names}
        sys.modules.update(names)
        try:
            yield
        finally:
            for name, module in kept.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module
