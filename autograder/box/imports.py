"""What a notebook imports from the kit, answered by the one that is installed here.

In a student's folder ``from lesson_kit.checks import ...`` finds the copy that was released with
the notebook. Where work is graded that is never looked at: every module of the kit is imported
before there is a submission. Notebooks that were handed out when the kit was a folder ``lesson``
say ``from lesson.checks import ...``, and find the same.
"""

from __future__ import annotations

import pkgutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

import lesson_kit

#: The kit's former name.
FORMER = "lesson"

#: The kit and its modules, by the names that cells import them by.
MODULES: dict[str, ModuleType] = {}
for _module in (
    lesson_kit,
    *(
        import_module(f"{lesson_kit.__name__}.{found.name}")
        for found in pkgutil.iter_modules(lesson_kit.__path__)
    ),
):
    MODULES[_module.__name__] = _module
    MODULES[_module.__name__.replace(lesson_kit.__name__, FORMER, 1)] = _module

_lock = threading.RLock()


def answer_imports() -> None:
    """From now on this process has the kit under both of its names."""
    sys.modules.update(MODULES)


@contextmanager
def imports_answered(earlier: ModuleType) -> Iterator[None]:
    """While it is open, this process answers a lesson's imports so.

    Args:
        earlier: parts of earlier lessons, ``lesson_kit.earlier``.
    """
    names = {name: earlier if name.endswith(".earlier") else MODULES[name] for name in MODULES}
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
