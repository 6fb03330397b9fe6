"""An answer as a text, parsed and never run: its words, and its names.

It imports nothing but the standard library: what grades a class has no NumPy, and the process that
reads students' sources has none either.

What a sentence about a mistake says of an answer (:func:`claims`) has to stand there. Two answers
may give the very same results, and one of them have no ``np.allclose`` in it, or no
1e9: a sentence that says so is told of an answer only where it stands there.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .words import N_, tr

__all__ = [
    "AS_KNOWN",
    "Changes",
    "Words",
    "all_stand_in",
    "as_known",
    "claims",
    "names_in",
    "never_used",
    "other_names",
    "unused_names",
    "words_of",
]


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


#: What was seen is that an answer fails like a known mistake, and another one may fail like it too.
AS_KNOWN = N_("This looks like a known mistake:")


def as_known(sentence: str) -> str:
    """The sentence of a known mistake, as it is told of an answer that fails like it."""
    return f"{tr(AS_KNOWN)} {sentence}"


#: Code that reads names by their text may read any of them.
_BY_TEXT = re.compile(
    r"\b(getattr|vars|locals|eval|exec|__dict__|_modules|_parameters)\b|\.(named_)?parameters\("
)
#: Of a class, the methods whose arguments are looked at.
_CALLED = {"__init__", "__call__", "forward"}


def never_used(answer: str) -> str:
    """An argument that is never read, or a part of a layer, in a sentence; or "".

    Args:
        answer: its source.
    """
    try:
        tree = ast.parse(answer)
    except (SyntaxError, ValueError):
        return ""
    if _BY_TEXT.search(answer):
        return ""
    for part in _parts(tree):
        return (
            f"Your code makes `self.{part}`, and nothing in its cell reads it under that name. Is "
            "a step missing?"
        )
    for function, argument in _arguments(tree):
        return (
            f"`{argument}` is an argument of `{function}`, and nothing else there is made with it. "
            "Is a step missing?"
        )
    return ""


def _parts(tree: ast.Module) -> list[str]:
    """Layers and parameters that a class keeps and does not read."""
    made: dict[str, None] = {}
    read: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made |= dict.fromkeys(name for target in node.targets if (name := _of_self(target)))
        if isinstance(getattr(node, "ctx", None), ast.Load):
            read.add(_of_self(node))
    return [name for name in made if name not in read]


def _of_self(node: ast.AST) -> str:
    """The name of an attribute of ``self``, or ""."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "self" else ""
    return ""


def _arguments(tree: ast.Module) -> list[tuple[str, str]]:
    """Functions and their arguments that nothing in them reads."""
    unread: list[tuple[str, str]] = []
    for statement in tree.body:
        in_class = isinstance(statement, ast.ClassDef)
        for function in statement.body if isinstance(statement, ast.ClassDef) else [statement]:
            if not isinstance(function, ast.FunctionDef):
                continue
            if in_class and function.name not in _CALLED:
                continue
            read = {
                node.id
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            }
            named = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
            unread += [
                (function.name, argument.arg)
                for argument in named[in_class:]
                # A bound, as in max_len, is nothing that a right answer has to look at.
                if argument.arg not in read and not argument.arg.startswith(("_", "max_"))
            ]
    return unread


#: A place in the code: a kind of thing, and what would stand there instead.
Changes = Iterator[tuple[str, ast.AST]]

NAME = "which variable stands there"


def names_in(tree: ast.Module) -> dict[str, list[str]]:
    """What a name could have been: the function's own variables, and attributes of ``self``."""
    variables: dict[str, None] = {}
    attributes: dict[str, None] = {}
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg != "self":
            variables[node.arg] = None
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                used.add(node.id)
            else:
                variables[node.id] = None
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            attributes[node.attr] = None
            if isinstance(node.ctx, ast.Load):
                used.add(node.attr)
    unused = [name for name in (*variables, *attributes) if name not in used]
    return {"variables": list(variables), "attributes": list(attributes), "unused": unused}


def unused_names(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """What was made and is used nowhere, where something like it stands."""
    for kind, changed in other_names(node, parent, names):
        name = getattr(changed, "id", "") or getattr(changed, "attr", "")
        if name in names["unused"]:
            yield kind, changed


def other_names(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """Another variable, or another attribute of ``self``."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        if node.id in names["variables"]:
            for variable in names["variables"]:
                if variable != node.id:
                    yield NAME, ast.Name(variable, ast.Load())
        elif not hasattr(builtins, node.id) and not isinstance(parent, (ast.Call, ast.Attribute)):
            for variable in names["variables"]:
                yield NAME, ast.Name(variable, ast.Load())
    elif (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and node.attr in names["attributes"]
    ):
        for attribute in names["attributes"]:
            if attribute != node.attr:
                yield NAME, ast.Attribute(node.value, attribute, ast.Load())
