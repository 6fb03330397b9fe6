"""Parts of earlier lessons: ``from lesson_kit.earlier import softmax``.

As the course solves them they lie packed beside the notebook, so that nobody reads an answer by
accident. In a student's course those that the student's own package has come from there
(:mod:`.own_parts`).
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

from .setting import beside_notebook, unpack_text

#: The key in the file beside a notebook of what :func:`as_module` takes.
EARLIER = "earlier"


def as_module(packed: str) -> ModuleType:
    """A module with the parts that were packed into a text; empty where there are none."""
    module = ModuleType(__name__)
    exec(compile(unpack_text(packed), "<earlier lessons>", "exec"), module.__dict__)
    return module


_of_this_lesson = lru_cache(maxsize=1)(as_module)


def __getattr__(name: str) -> Any:
    """A part, when a notebook imports it."""
    if name.startswith("__"):
        raise AttributeError(name)
    from .own_parts import chosen  # whoever only packs parts needs no NumPy

    course = _of_this_lesson(beside_notebook().get(EARLIER, ""))
    own = chosen(course)
    return own[name] if name in own else getattr(course, name)
