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
from typing import NamedTuple

__all__ = ["Words", "all_stand_in", "claims", "words_of"]

_CODE = re.compile(r"`([^`]*)`")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_AXES = re.compile(r"\b(?:axis|axes|dim|place) (\d)\b(?: and (\d)\b)?")
_AXIS = "axis "
#: Numbers that also stand in sentences which say nothing of the answer's own.
_EVERYWHERE = frozenset({"0", "1", "2"})
#: Signs and powers in a number.
_DEEPEST = 8


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


class Words(NamedTuple):
    """The names of a program, and its numbers: those with a sign with it."""

    names: frozenset[str] = frozenset()
    numbers: frozenset[float] = frozenset()


def all_stand_in(program: str | Words, words: Sequence[str]) -> bool:
    """Whether what :func:`claims` gave all stands in a program; numbers however they are written,
    and with any sign if they are no axes."""
    if not words:
        return True
    names, numbers = words_of(program) if isinstance(program, str) else program
    sizes = {abs(number) for number in numbers}

    def stands(word: str) -> bool:
        if word.startswith(_AXIS):
            return float(word.removeprefix(_AXIS)) in numbers
        return float(word) in sizes if _NUMBER.fullmatch(word) else word in names

    return all(map(stands, words))


def words_of(source: str) -> Words:
    """The words of a program; of what is no Python those that can be read."""
    names: set[str] = set()
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME:
                names.add(token.string)
    try:
        numbers = frozenset(_numbers(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        numbers = frozenset()
    return Words(frozenset(names), numbers)


def _numbers(tree: ast.AST) -> Iterator[float]:
    waiting = [tree]  # and no function that calls itself: a sum may have a thousand terms
    while waiting:
        node = waiting.pop()
        number = _number(node)
        if number is None:
            waiting += ast.iter_child_nodes(node)
        else:
            yield number


def _number(node: ast.AST, depth: int = 0) -> float | None:
    """A number as a program writes it: 1e4, 10000, -1, 10 ** 4. What is beyond all floats, or
    deeper than anybody writes it, is none."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            with contextlib.suppress(OverflowError):
                return float(node.value)
    elif depth > _DEEPEST:
        return None
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand, depth + 1)
        return None if number is None else -number
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = _number(node.left, depth + 1), _number(node.right, depth + 1)
        if base is not None and exponent is not None and base > 0 and abs(exponent) < 100:
            with contextlib.suppress(OverflowError):
                return float(base**exponent)
    return None
