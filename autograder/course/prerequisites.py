"""What a lesson takes over from earlier ones: lifted from their answer cells, never retyped.

A lesson's setup cell says what it needs, ``from lesson_kit.earlier import softmax``. The build
puts it into the file beside the notebook: the course's own answers and what they build on.
The code is packed: it can be used without being read, so that a lesson handed out early does
not show the answer to an earlier one. It is no secret from somebody who sets out to read it.
"""

from __future__ import annotations

import ast
import base64
import re

from autograder.course.lessons import Lesson, LessonError
from autograder.notebooks import SETUP, tags

#: The module that a setup cell imports them from.
EARLIER = "lesson_kit.earlier"

_MARKERS = re.compile(r"^[^\n]*### (BEGIN|END) SOLUTION[^\n]*\n?", re.M)

_IMPORTS = """\
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""


def names_carried_over(lesson: Lesson) -> list[str]:
    """The names that the lesson's setup cell imports from earlier lessons."""
    names: list[str] = []
    for cell in lesson.notebook.cells:
        if cell.cell_type == "code" and SETUP in tags(cell):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.ImportFrom) and node.module == EARLIER:
                    names.extend(alias.name for alias in node.names)
    return names


def carried_over(lesson: Lesson) -> str:
    """What a lesson needs of earlier ones, packed, see :func:`lesson_kit.earlier.as_module`; empty
    when it needs nothing.

    Raises:
        LessonError: no earlier lesson has an exercise of that name.
    """
    names = names_carried_over(lesson)
    if not names:
        return ""
    code = "\n\n".join([_IMPORTS, *sources_of(lesson, names), f"__all__ = {names!r}\n"])
    return base64.b64encode(code.encode()).decode()


def sources_of(lesson: Lesson, names: list[str]) -> list[str]:
    """The answers of earlier lessons that bind some names, with all that these build on.

    Raises:
        LessonError: no earlier lesson has an exercise of that name.
    """
    sources = {
        name: source for earlier in lesson.earlier for name, source in earlier.exercises.items()
    }
    for name in names:
        if name not in sources:
            raise LessonError(
                f"{lesson.source_path}: the setup cell imports {name!r} from {EARLIER}, and no "
                "earlier lesson has an exercise of that name"
            )
    wanted = set(names)
    waiting = list(names)
    while waiting:
        used = {
            node.id
            for node in ast.walk(ast.parse(sources[waiting.pop()]))
            if isinstance(node, ast.Name)
        }
        new = (used & set(sources)) - wanted
        wanted |= new
        waiting.extend(new)
    return [_MARKERS.sub("", source) for name, source in sources.items() if name in wanted]
