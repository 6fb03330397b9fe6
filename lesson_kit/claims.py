"""What a sentence about a mistake says of the words of an answer.

Two answers may give the very same results, and one of them have no ``np.allclose`` in it, or no
1e9: a sentence that says so is told of an answer only where it stands there.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tokenize
from collections.abc import Iterator, Sequence

__all__ = ["all_stand_in", "claims"]

_CODE = re.compile(r"`([^`]*)`")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_AXES = re.compile(r"\b(?:axis|axes|dim|place) (\d)\b(?: and (\d)\b)?")
_AXIS = "axis "
#: Numbers that also stand in sentences which say nothing of the answer's own.
_EVERYWHERE = frozenset({"0", "1", "2"})


def claims(sentence: str, wrong: str, right: str) -> tuple[str, ...]:
    """The names, numbers and axes that a sentence says an answer has and a right answer has not.

    Axes counted from the end are none: they are how the right answer is described.

    Args:
        sentence: of a known mistake; names count between backticks.
        wrong: source of the mistake.
        right: source of the course's own answer.
    """
    names = {name for code in _CODE.findall(sentence) for name in _NAME.findall(code)}
    numbers = set(_NUMBER.findall(sentence)) - _EVERYWHERE
    axes = {_AXIS + axis for both in _AXES.findall(sentence) for axis in both if axis}
    return tuple(
        word
        for word in sorted(names | numbers | axes)
        if all_stand_in(wrong, [word]) and not all_stand_in(right, [word])
    )


def all_stand_in(source: str, words: Sequence[str]) -> bool:
    """Whether what :func:`claims` gave all stands in a program; numbers however they are written,
    and with any sign if they are no axes."""
    if not words:
        return True
    names, numbers = _names(source), _numbers(source)
    sizes = {abs(number) for number in numbers}

    def stands(word: str) -> bool:
        if word.startswith(_AXIS):
            return float(word.removeprefix(_AXIS)) in numbers
        return float(word) in sizes if _NUMBER.fullmatch(word) else word in names

    return all(map(stands, words))


def _names(source: str) -> set[str]:
    names: set[str] = set()
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME:
                names.add(token.string)
    return names


def _numbers(source: str) -> set[float]:
    """Its numbers, those with a sign with it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    return set(_numbers_in(tree))


def _numbers_in(node: ast.AST) -> Iterator[float]:
    number = _number(node)
    if number is not None:
        yield number
        return
    for inner in ast.iter_child_nodes(node):
        yield from _numbers_in(inner)


def _number(node: ast.AST) -> float | None:
    """A number as a program writes it: 1e4, 10000, -1, 10 ** 4."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return float(node.value)
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = _number(node.left), _number(node.right)
        if base is not None and exponent is not None and base > 0 and abs(exponent) < 100:
            return float(base**exponent)
    return None
