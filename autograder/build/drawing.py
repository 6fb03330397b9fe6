"""Which part of a demonstration's code teaches, and which only draws its figure."""

from __future__ import annotations

import ast
import re

__all__ = ["cut_before", "parted"]

#: What shows a figure of :mod:`lesson_kit.figures` or of
#: :mod:`lesson_kit.hands_on`, and what begins one.
_SHOWS = {"show", "heatmap", "slider", "switches"}
_BEGINS = {"subplots", "figure", "subplot_mosaic"}


def parted(source: str, exercises: set[str]) -> tuple[str, str, str]:
    """The part that teaches, the part that draws, and what that draws, in words.

    Where a cell shows no figure, the second is empty; where it does nothing but draw, the first.
    What comes before the drawing teaches when it defines something, uses an answer of the
    student's or is more than two statements long, claims not counted. A function whose first
    argument is ``axes`` only draws.

    Args:
        source: of a cell.
        exercises: names of the student's answers.
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a cell with magics
        return source, "", ""
    if not any(_calls(node) & _SHOWS for node in body):
        return source, "", ""
    draws = [_only_draws(node) or bool(_calls(node) & (_SHOWS | _BEGINS)) for node in body]
    begin = draws.index(True)
    defines = isinstance(body[begin], (ast.FunctionDef, ast.ClassDef))
    if defines and not _only_draws(body[begin]):  # a way to draw figures, defined here
        return source, "", ""
    if not _teaches(body[:begin], exercises):
        return "", source, _what(source)
    return *cut_before(source, _first_line(body[begin])), _what(source)


def cut_before(source: str, line: int) -> tuple[str, str]:
    """A cell in two, the second from a line on (counted from 1) with the comments above it."""
    lines = source.splitlines(keepends=True)
    cut = line - 1
    while cut and lines[cut - 1].lstrip().startswith("#"):
        cut -= 1
    return "".join(lines[:cut]).rstrip(), "".join(lines[cut:])


def _calls(node: ast.AST) -> set[str]:
    """The names of what is called anywhere in a statement."""
    called = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    names = {function.id for function in called if isinstance(function, ast.Name)}
    return names | {
        function.attr
        for function in called
        if isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "plt"
    }


def _teaches(body: list[ast.stmt], exercises: set[str]) -> bool:
    body = [node for node in body if not isinstance(node, ast.Assert)]
    if len(body) > 2 or any(
        isinstance(statement, (ast.FunctionDef, ast.ClassDef)) for statement in body
    ):
        return True
    used = {part.id for node in body for part in ast.walk(node) if isinstance(part, ast.Name)}
    return bool(used & exercises)


def _only_draws(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and [one.arg for one in node.args.args[:1]] == ["axes"]


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _what(source: str) -> str:
    """The figure by its number, where its caption has one."""
    numbers = list(dict.fromkeys(re.findall(r"\bFigure (\d+[a-z]?)\.", source)))
    return f"Figure {' and '.join(numbers)}" if numbers else "a figure"
