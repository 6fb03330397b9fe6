"""What an exception says, in words for somebody who learns: rules that hold for any exercise.

Each rule says only what follows from the exception itself; where it arose is said with the
student's own line.
"""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from . import call_errors, dtype_errors, shape_errors
from .evidence import raised_by_hand
from .words import N_, tr

__all__ = ["REFUSED", "in_a_cell", "lines_of", "meaning", "unwritten"]


#: What is to be said of an exception that the student's own code raises with a statement.
REFUSED = N_(
    "Your own `raise` or `assert` refuses something here: is its condition right, and the kind of "
    "error?"
)

#: How a terminal is told of colours: Keras writes them into the text of its errors.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

#: Before what Keras adds to an exception: kinds of numbers, and None, that have no part in it.
_WHAT_KERAS_WAS_GIVEN = "Arguments received by"

#: The first that fits is told.
RULES = [*shape_errors.RULES, *call_errors.RULES, *dtype_errors.RULES]


def meaning(kinds: tuple[str, ...], text: str) -> str:
    """What an exception means, in a sentence that holds wherever it comes from; or "".

    Args:
        kinds: names of its class and of those above it.
        text: its own.
    """
    text = text.partition(_WHAT_KERAS_WAS_GIVEN)[0]
    for kind, pattern, sentence in RULES:
        if not set(kind.split()) & set(kinds):
            continue
        match = re.search(pattern, text)
        if match:
            return _filled_in(sentence, [group for group in match.groups() if group])
    return ""


def _filled_in(sentence: str, named: list[str]) -> str:
    return re.sub(r"\\(\d)", lambda mark: named[int(mark[1]) - 1], sentence)


def lines_of(error: BaseException) -> list[str]:
    """An exception of a student's code in a few lines: what it means, what it says, where it was.

    Args:
        error: with its traceback.
    """
    kinds = tuple(kind.__name__ for kind in type(error).__mro__)
    text = _COLOURS.sub("", str(error))
    by_hand = raised_by_hand(error)
    lines = [REFUSED if by_hand else meaning(kinds, text)]
    lines.append(
        tr("It raised {kind}: {text}", kind=type(error).__name__, text=text[:500])
        if text
        else tr("It raised {kind}.", kind=type(error).__name__)
    )
    lines.append(_where(error, kinds))
    return [line for line in lines if line]


def in_a_cell(filename: str) -> bool:
    """Whether a file's name is that of a notebook's cell."""
    return filename.startswith("<") or "ipykernel" in filename


def _where(error: BaseException, kinds: tuple[str, ...]) -> str:
    """The student's line in which an exception arose, with the shapes that met there."""
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if in_a_cell(frame.f_code.co_filename)
        and linecache.getline(frame.f_code.co_filename, line).strip()
    ]
    # What runs in the check's own cell, a probe's body too, is not the student's.
    outermost = frames[0][0].f_code if frames else None
    check = outermost.co_filename if outermost and outermost.co_name == "<module>" else ""
    inside = [(frame, line) for frame, line in frames if frame.f_code.co_filename != check]
    if inside:
        frame, line = inside[-1]
        source = linecache.getline(frame.f_code.co_filename, line).strip()
        place = {"name": frame.f_code.co_name, "line": line, "source": source}
        where = tr("This was in `{name}`, line {line} of its cell: `{source}`", **place)
        return f"{where} {_shapes(source, frame)}".strip() + _called_in(inside)
    if frames:
        frame, line = frames[-1]
        source = linecache.getline(frame.f_code.co_filename, line).strip()
        if "NameError" in kinds:
            return tr("This was in the line `{source}`", source=source)
        if frame.f_code is not outermost:
            return tr(
                "This was in a line of the check, `{source}`: what your code made is not what it "
                "counts on. Has it the parts that the card asks for?",
                source=source,
            )
        return tr(
            "The check could not go on in `{source}` with what your code gave. Is it of the kind "
            "that the card asks for, with all its parts?",
            source=source,
        )
    return ""


def _called_in(frames: list[tuple[FrameType, int]]) -> str:
    """The line of the exercise that called the code of another cell, which may be right itself."""
    first = frames[0][0].f_code.co_filename
    if frames[-1][0].f_code.co_filename == first:
        return ""
    frame, line = [(frame, line) for frame, line in frames if frame.f_code.co_filename == first][-1]
    source = linecache.getline(frame.f_code.co_filename, line).strip()
    called = N_(" It was called in `{name}`, line {line} of its cell: `{source}`")
    return tr(called, name=frame.f_code.co_name, line=line, source=source)


def _shapes(source: str, frame: FrameType) -> str:
    """The shapes of the arrays that a line names, and what is None."""
    try:
        tree = ast.parse(_whole(source))
    except SyntaxError:
        return ""
    described: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        value: Any = frame.f_locals.get(node.id, _shapes)
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and shape and not isinstance(value, np.dtype):
            lengths = tuple(int(length) for length in shape)
            described[node.id] = tr("has shape {shape}", shape=lengths)
        elif value is None:
            described[node.id] = tr("is None")
    if not 0 < len(described) <= 4:
        return ""
    told = ", ".join(f"`{name}` {what}" for name, what in described.items())
    return tr("There {told}.", told=told)


def _whole(line: str) -> str:
    """A line that begins a block, as a statement of its own."""
    return f"{line} pass" if line.endswith(":") and not line.startswith("el") else line


def unwritten(error: BaseException | None) -> bool:
    """Whether a stub raised it with a statement, or a short answer that is still None.

    Args:
        error: with its traceback; one from a box says itself whether a statement raised it.
    """
    if not isinstance(error, NotImplementedError):
        return False
    from_a_box = getattr(error, "box_error", None)
    if from_a_box is not None:
        return bool(from_a_box.by_hand)
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not re.search(r"\braise\b", frames[-1].line or ""):
        return False
    filename = frames[-1].filename
    return in_a_cell(filename) or Path(filename).parent == Path(__file__).parent
