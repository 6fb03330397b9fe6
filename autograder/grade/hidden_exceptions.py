"""What feedback may say of an exception that student code raised in a hidden test.

An exception's text can be chosen by the code that raises it, and so could carry what a hidden
test gave it. Of a text of a known form a new one is made from what was recognised in it: small
lengths of axes, a few types, names that stand in the student's own notebook. What it can tell at
most is counted in bits, as the length of a code for it; :mod:`.telling` lets so many through for a
submission. See "Not promised" in SECURITY.md.

It matches what a student may have written: for :mod:`.reader_process` only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache

from autograder.grade.exception_forms import FORMS, KINDS, TYPES

#: Lengths of axes are small; of a larger number only "…" is shown.
MAX_LENGTH = 64
#: Most are no larger than this: they cost less.
USUAL_LENGTH = 8
#: Axes of a shape.
MAX_AXES = 6

#: What torch and NumPy call kinds of numbers.
_KIND = (
    "float",
    "double",
    "half",
    "bfloat16",
    "long int",
    "long",
    "int",
    "short",
    "byte",
    "char",
    "bool",
    "Float",
    "Double",
    "Half",
    "BFloat16",
    "Long",
    "Int",
    "Short",
    "Byte",
    "Char",
    "Bool",
)
_DTYPE = tuple(
    f"dtype('{name}')"
    for name in (
        "float16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
    )
)
_UFUNC = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "power",
    "matmul",
    "maximum",
    "minimum",
    "exp",
    "log",
    "sqrt",
    "tanh",
    "sin",
    "cos",
    "negative",
    "invert",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "isnan",
    "isinf",
)
_OPERATOR = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "@",
    "%",
    "**",
    "&",
    "|",
    "+=",
    "-=",
    "*=",
    "/=",
    "@=",
    "&=",
    "<",
    ">",
    "<=",
    ">=",
)
_STEPS = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Mm",
    "Bmm",
    "Softmax",
    "Exp",
    "Sqrt",
    "Tanh",
    "Sigmoid",
    "Relu",
    "CopySlices",
    "AsStrided",
    "Select",
    "Slice",
    "View",
    "Transpose",
)
_BACKWARD = tuple(f"{step}{after}" for step in _STEPS for after in ("Backward0", ""))
_TENSOR = tuple(f"torch.{kind}Tensor" for kind in ("Float", "Double", "Long", "Bool"))

#: A text that is shown for what was recognised, and what it costs in bits.
Shown = tuple[str, float]


@dataclass(frozen=True)
class Sign:
    """What stands for a sign of a form; ``shown`` gives None for what is not to be shown."""

    pattern: str
    shown: Callable[[str, Collection[str]], Shown | None]


def _among(choices: Sequence[str]) -> Sign:
    longest_first = sorted(choices, key=len, reverse=True)
    bits = math.log2(len(choices))
    pattern = "|".join(map(re.escape, longest_first))
    return Sign(pattern, lambda text, names: (text, bits))


def number(text: str) -> Shown:
    """A number printed anew, or "…" for one that is no length; one below zero costs more."""
    value = int(text)
    shown = str(abs(value)) if abs(value) <= MAX_LENGTH else "…"
    usual = abs(value) <= USUAL_LENGTH  # three quarters are
    bits = math.log2((USUAL_LENGTH + 1) / 0.75 if usual else (MAX_LENGTH - USUAL_LENGTH + 1) * 4)
    return (f"-{shown}", bits + 3) if value < 0 else (shown, bits + 0.2)


def _several(
    inner: str, between: str, ends: str, last: str = "", or_newaxis: float = 0.0
) -> Callable[..., Shown | None]:
    """What shows numbers one after another, with ``last`` after a lone one; ``or_newaxis``: bits
    that each costs more where ``newaxis`` may stand in its place."""

    def shown(text: str, names: Collection[str]) -> Shown | None:
        parts = re.findall(inner, text)
        if len(parts) > MAX_AXES:
            return None
        each = [(part, 2.0) if part == "newaxis" else number(part) for part in parts]
        bits = math.log2(MAX_AXES + 1) + sum(bits for _, bits in each)
        listed = between.join(part for part, _ in each) + (last if len(parts) == 1 else "")
        return f"{ends[0]}{listed}{ends[1]}", bits + or_newaxis * len(parts)

    return shown


def _name(text: str, names: Collection[str]) -> Shown | None:
    """One name that is known: of a type, or of the student's; the last one of a dotted one."""
    name = text.strip("'")
    if text not in (name, f"'{name}'"):
        return None
    name = name if name in TYPES else name.rpartition(".")[2]
    if name not in TYPES and name not in names:
        return None
    quote = "'" if text.startswith("'") else ""
    return f"{quote}{name}{quote}", 1 + math.log2(len(TYPES) + len(names))


_N = "-?[0-9]{1,9}"
#: What each sign of a form stands for.
SIGNS = {
    "NxN": Sign(f"{_N}x{_N}", lambda text, names: _product(text)),
    "N": Sign(_N, lambda text, names: number(text)),
    "S": Sign(r"\((?:[0-9]{1,9}(?:, ?[0-9]{1,9}){0,9},?)?\)", _several("[0-9]+", ",", "()", ",")),
    "R": Sign(
        r"\((?:[0-9]{1,9}|newaxis)(?:,(?:[0-9]{1,9}|newaxis)){0,9},?\)",
        _several("[0-9]+|newaxis", ",", "()", ",", 0.42),
    ),
    "L": Sign(rf"\[(?:{_N}(?:, {_N}){{0,9}})?\]", _several(_N, ", ", "[]")),
    "D": _among(_KIND),
    "DTYPE": _among(_DTYPE),
    "AXES": _among([f"{n}{dash}D" for n in range(10) for dash in ("", "-")]),
    "UFUNC": _among(_UFUNC),
    "OP": _among(_OPERATOR),
    "LETTER": _among("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "BACKWARD": _among(_BACKWARD),
    "TENSOR": _among(_TENSOR),
    "ID": Sign("'?[A-Za-z_][A-Za-z_0-9.]{0,80}'?", _name),
}


def _product(text: str) -> Shown:
    (rows, first), (columns, second) = map(number, text.split("x"))
    return f"{rows}x{columns}", first + second


_SIGN = re.compile(
    "|".join(rf"(?<![A-Za-z]){sign}(?![a-z_A-Z])" for sign in sorted(SIGNS, key=len, reverse=True))
)


@dataclass(frozen=True)
class _Form:
    """A form: the texts around its signs, the signs, and what a text of it matches."""

    around: list[str]
    signs: list[str]
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, form: str) -> _Form:
        around, signs = _SIGN.split(form), _SIGN.findall(form)
        pattern = re.escape(around[0])
        for sign, text in zip(signs, around[1:]):
            pattern += f"({SIGNS[sign].pattern}){re.escape(text)}"
        return cls(around, signs, re.compile(pattern))

    def shown(self, text: str, names: Collection[str]) -> Shown | None:
        """A text of this form, made anew; None where it is none, or not to be shown."""
        match = self.pattern.fullmatch(text)
        if match is None:
            return None
        made, bits = self.around[0], 0.0
        for sign, said, after in zip(self.signs, match.groups(), self.around[1:]):
            part = SIGNS[sign].shown(said, names)
            if part is None:
                return None
            made, bits = made + part[0] + after, bits + part[1]
        return made.strip(), bits


@cache  # most submissions raise nothing
def forms() -> list[_Form]:
    """All forms that there are."""
    return [_Form.of(form) for form in FORMS]


#: What Keras says around the text of an exception: its layer before it, all arguments after it.
_IN_KERAS = re.compile(
    r"Exception encountered when calling [\w.]{1,80}\(\)\.\n\n(?:\x1b\[1m)?"
    r"([^\n\x1b]{1,500})(?:\x1b\[0m)?\n\nArguments received by (?s:.*)"
)


def let_through(kind: str, text: str, cells: Sequence[str]) -> tuple[str, float]:
    """What feedback on a hidden test says of an exception's text, and the bits it costs; or "".

    All but ``cells`` is what a box says, which nobody believes.

    Args:
        kind: name of the exception's class.
        text: its own.
        cells: sources of the student's notebook.
    """
    if in_keras := _IN_KERAS.fullmatch(text):
        text = in_keras[1]
    if kind not in KINDS:
        return "", 0.0
    names = {name for cell in cells for name in re.findall("[A-Za-z_][A-Za-z_0-9]*", cell)}
    shown = next((shown for form in forms() if (shown := form.shown(text, names))), None)
    if shown is None:
        return "", 0.0
    return shown[0], shown[1] + math.log2(len(FORMS)) + math.log2(len(KINDS))
