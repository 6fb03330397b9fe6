"""What an exception says, in words for somebody who learns: rules that hold for any exercise.

Lies beside every notebook as ``lesson/exceptions.py``. Each rule says only what follows from the
exception itself; where it arose is said with the student's own line.
"""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from types import FrameType
from typing import Any

from .fingerprints import raised_by_hand

__all__ = ["REFUSED", "in_a_cell", "lines_of", "meaning"]

_MATMUL = (
    "A matrix product multiplies the last axis of the left factor with the second last axis of "
    "the right one: the two must have the same length. Is an axis to be exchanged?"
)
_BROADCAST = (
    "Two shapes do not fit each other. They are compared axis by axis from the right; two "
    "lengths fit when they are equal or one of them is 1. Is an axis missing, or lost by a sum, "
    "a mean or a maximum that does not keep it?"
)
_AXIS = (
    "There is no such axis: the array has fewer axes than the line counts. Counted from the "
    "front, an axis is another one as soon as there are more or fewer batch axes."
)
_PAIR = (
    "Something here is a tuple, a pair of results, where one array is needed: a function that "
    "returns several results gives all of them."
)
_NOTHING = (
    "Something here is None where a value is needed: an argument that was left out, a part that "
    "was not made, or the result of a function without `return`?"
)
_ORDER = (
    "NumPy's `transpose` takes the new order of all axes, one place for each; torch's takes the "
    "two that are exchanged."
)
_DTYPES = "Two tensors have different precision (dtype) here, and torch does not mix them."
_GRAPH = (
    "This tensor is part of a gradient's computation and cannot be turned into a NumPy array "
    "as it is. Stay in torch, or take it out of the computation first."
)
_LEAF = (
    "A parameter that wants a gradient is written into here while torch records what is "
    "computed. Writing into a parameter is done without recording."
)

#: What is to be said of an exception that the student's own code raises with a statement.
REFUSED = "Your own `raise` or `assert` refuses something here: is its condition right?"

#: Kind of exception, pattern of its text, and what it means; \1 and so on from the text.
_RULES: list[tuple[str, str, str]] = [
    (
        "ValueError RuntimeError",
        r"truth value of an (?:array|empty)|Boolean value of Tensor with (?:more|no)",
        "Python needs one True or False here and gets a whole array (in `if`, `and`, `or`, `not`, "
        "`in`, or a comparison with None by `==`). Decide for the array as a whole or entry by "
        "entry; whether it is None is asked with `is`.",
    ),
    ("ValueError", r"^matmul: .*(?:mismatch|does not have enough)", _MATMUL),
    ("ValueError", r"^shapes \(.*\) and \(.*\) not aligned", _MATMUL),
    (
        "RuntimeError",
        r"shapes cannot be multiplied|size mismatch|inconsistent tensor size",
        _MATMUL,
    ),
    ("RuntimeError", r"Expected size for first two dimensions of batch2", _MATMUL),
    ("ValueError", r"operands could not be broadcast|could not broadcast input", _BROADCAST),
    ("ValueError", r"non-broadcastable output operand|shape mismatch: ", _BROADCAST),
    (
        "RuntimeError",
        r"must match the size of tensor b|not broadcastable|expanded size of the tensor|"
        r"output with shape .* doesn't match|shape mismatch: ",
        _BROADCAST,
    ),
    ("AxisError ValueError IndexError", r"axis -?\d+ is out of bounds", _AXIS),
    ("IndexError", r"Dimension out of range", _AXIS),
    ("IndexError", r"tuple index out of range", _AXIS),
    ("ValueError", r"axes don't match array", _ORDER),
    ("ValueError", r"repeated axis", "The same axis is named twice here."),
    (
        "IndexError",
        r"too many indices",
        "More axes are indexed here than the array has. Does it have the batch axes that the "
        "line counts on?",
    ),
    (
        "IndexError",
        r"boolean index did not match|shape of the mask",
        "An array is indexed with a mask of another shape. Indexing with a mask does not "
        "broadcast.",
    ),
    ("IndexError", r"out of bounds|out of range", "An index is larger than the axis is long."),
    (
        "ValueError RuntimeError",
        r"cannot reshape array of size|is invalid for input of size",
        "The new shape does not hold as many numbers as the array has. Which lengths are read "
        "from which axis?",
    ),
    (
        "RuntimeError",
        r"view size is not compatible",
        "The numbers no longer lie in memory in the order of the axes (that is so after an "
        "exchange of axes), and a view cannot be made of them.",
    ),
    ("RuntimeError", r"leaf Variable that requires grad|view of a leaf", _LEAF),
    ("RuntimeError", r"Can't call numpy\(\) on Tensor that requires grad", _GRAPH),
    (
        "RuntimeError",
        r"does not require grad and does not have a grad_fn",
        "The result does not "
        "depend on a parameter any more as far as torch knows: somewhere on the way it was "
        "taken out of the computation.",
    ),
    ("TypeError AttributeError", r"^tuple indices must be|'tuple' object has no attribute", _PAIR),
    ("TypeError", r"unsupported operand.*'tuple'|must be Tensor, not tuple", _PAIR),
    (
        "TypeError",
        r"cannot unpack non-iterable NoneType",
        "The function returns None where two results or more are expected. Is there a `return`?",
    ),
    (
        "ValueError",
        r"not enough values to unpack|too many values to unpack",
        "There are not as many names on the left as there are things on the right: the axes of "
        "a shape, or the results of a function. How many axes may the array have?",
    ),
    ("TypeError AttributeError", r"'NoneType'", _NOTHING),
    (
        "NameError UnboundLocalError",
        r"local variable '(\w+)'.*|name '(\w+)' is not defined",
        "The name `\\1` has no value here. Is it misspelt, or defined in a part that did not run?",
    ),
    (
        "AttributeError",
        r"cannot assign (?:module|parameter)s? before",
        "The class does not begin as a torch module has to: its parent's `__init__` has to run "
        "before anything is kept in it.",
    ),
    (
        "AttributeError",
        r"module '(\w+)[\w.]*' has no attribute '(\w+)'",
        "`\\1` has nothing called `\\2`. Is it misspelt, or from another library?",
    ),
    (
        "AttributeError",
        r"'numpy\.ndarray' object has no attribute '(\w+)'",
        "A NumPy array has no `\\1`. Is it misspelt, or what a torch tensor has?",
    ),
    (
        "AttributeError",
        r"'Tensor' object has no attribute '(\w+)'",
        "A torch tensor has no `\\1`. Is it misspelt, or what a NumPy array has?",
    ),
    (
        "AttributeError",
        r"'(\w+)' object has no attribute '(\w+)'",
        "A `\\1` has no `\\2`. Is it misspelt, or never given a value?",
    ),
    (
        "TypeError",
        r"(\w+)\(\) missing \d+ required .*arguments?: (.*)",
        "`\\1` is called without \\2.",
    ),
    (
        "TypeError",
        r"(\w+)\(\) got an unexpected keyword argument '(\w+)'",
        "`\\1` takes no argument called `\\2`. Which library is it from, and what is it called "
        "there?",
    ),
    (
        "TypeError",
        r"(\w+)\(\) takes (?:from )?\d+.* positional arguments? but \d+",
        "`\\1` is called with more arguments than it takes.",
    ),
    (
        "TypeError UFuncTypeError _UFuncOutputCastingError UFuncOutputCastingError",
        r"Cannot cast ufunc '(\w+)' output",
        "A result with decimals is written into an array of whole numbers, which changes an array "
        "in place. Make a new array.",
    ),
    (
        "RuntimeError",
        r"result type \w+ can't be cast to the desired output type",
        "A result of another kind is written into a tensor in place. Make a new one.",
    ),
    (
        "ValueError",
        r"assignment destination is read-only|output array is read-only",
        "An array is "
        "written into that may only be read: one that was handed in, or a broadcast one.",
    ),
    ("TypeError", r"^list indices must be integers", "A list is indexed as if it were an array."),
    (
        "TypeError",
        r"must be Tensor, not (?:numpy|float|int|list)|got \(?numpy\.ndarray",
        "A function of torch gets something that is no tensor.",
    ),
    (
        "TypeError",
        r"expected np\.ndarray|can't convert .* to numpy",
        "A function of NumPy gets something that it cannot turn into an array.",
    ),
    ("RuntimeError", r"expected (?:m1 and m2|scalar type|both|mat1)|same dtype|dtype", _DTYPES),
    (
        "TypeError",
        r"'(\w+)' object is not callable",
        "Something that is a `\\1` is called here "
        "like a function. Does a name hide a function, or is an operator missing?",
    ),
    (
        "TypeError",
        r"'(\w+)' object is not subscriptable",
        "Something that is a `\\1` is indexed here.",
    ),
    (
        "TypeError",
        r"unsupported operand type\(s\) for (.{1,4}): '([\w.]+)' and '([\w.]+)'",
        "`\\1` is used between a `\\2` and a `\\3`.",
    ),
    ("RecursionError", r"", "The function calls itself without an end."),
    ("ZeroDivisionError", r"", "Something is divided by zero here."),
]


def meaning(kinds: tuple[str, ...], text: str) -> str:
    """What an exception means, in a sentence that holds wherever it comes from; or "".

    Args:
        kinds: names of its class and of those above it.
        text: its own.
    """
    for kind, pattern, sentence in _RULES:
        if not set(kind.split()) & set(kinds):
            continue
        match = re.search(pattern, text, re.S)
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
    text = str(error)
    by_hand = raised_by_hand(error)
    lines = [REFUSED if by_hand else meaning(kinds, text)]
    lines.append(
        f"It raised {type(error).__name__}: {text[:500]}"
        if text
        else f"It raised {type(error).__name__}."
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
        said = f"This was in `{frame.f_code.co_name}`, line {line} of its cell: `{source}`"
        shapes = _shapes(source, frame)
        return f"{said} {shapes}".strip()
    if frames:
        frame, line = frames[-1]
        source = linecache.getline(frame.f_code.co_filename, line).strip()
        if "NameError" in kinds:
            return f"This was in the line `{source}`"
        if frame.f_code is not outermost:
            return (
                f"This was in a line of the check, `{source}`: what your code made is not what "
                "it counts on. Has it the parts that the card asks for?"
            )
        return (
            f"What your code returned could not be used in `{source}`. Does it return what the "
            "card says?"
        )
    return ""


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
        if isinstance(shape, tuple):
            described[node.id] = f"has shape {tuple(int(length) for length in shape)}"
        elif value is None:
            described[node.id] = "is None"
    if not 0 < len(described) <= 4:
        return ""
    told = ", ".join(f"`{name}` {what}" for name, what in described.items())
    return f"There {told}."


def _whole(line: str) -> str:
    """A line that begins a block, as a statement of its own."""
    return f"{line} pass" if line.endswith(":") and not line.startswith("el") else line
