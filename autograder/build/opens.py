"""What a right answer opens: the figures further down that are drawn with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from nbformat import NotebookNode

from autograder.notebooks import grade_id, is_answer, is_test

__all__ = ["figures_opened"]


def figures_opened(page: list[NotebookNode], name: str) -> list[str]:
    """The figures that the notebook's own cells draw with an exercise's answer, by their numbers.

    Directly, or with what other cells made of it. Answers of the student's are not followed:
    what they build on is for the student to find.

    Args:
        page: the cells, in order.
        name: the exercise.
    """
    made_of_it, figures = {name}, list[str]()
    begun = False
    for cell in page:
        begun |= grade_id(cell) == name
        if not begun or cell.cell_type != "code" or is_answer(cell) or is_test(cell):
            continue
        if _follow(cell.source, made_of_it):
            figures += re.findall(r"""["']Figure (\d+)\.""", cell.source)
    numbers = list(dict.fromkeys(figures))
    if not numbers:
        return []
    return [f"Figure{'s' * (len(numbers) > 1)} {numbers[0]}", *numbers[1:]]


def _follow(source: str, made_of_it: set[str]) -> bool:
    """Whether a cell uses what an answer made; what it makes of that is added to the names."""
    uses = False
    for used, bound in _statements(source):
        if used & made_of_it:
            uses = True
            made_of_it |= bound
        else:
            made_of_it -= bound
    return uses


@lru_cache(maxsize=1024)  # each exercise of a lesson asks for the same cells
def _statements(source: str) -> tuple[tuple[set[str], set[str]], ...]:
    """:func:`_names` of a cell's statements; of none in a cell with magics."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ()
    return tuple(map(_names, _in_order(body)))


def _in_order(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements; in place of an ``if``, what stands below it: there, too, names are bound anew."""
    for node in body:
        if isinstance(node, ast.If):
            yield ast.Expr(node.test)
            yield from _in_order([*node.body, *node.orelse])
        else:
            yield node


def _names(node: ast.stmt) -> tuple[set[str], set[str]]:
    """Names that a statement takes from before it, and names that it binds."""
    local = {
        target.id
        for part in ast.walk(node)
        if isinstance(part, ast.comprehension)
        for target in ast.walk(part.target)
        if isinstance(target, ast.Name)
    }
    inside = [
        name for name in ast.walk(node) if isinstance(name, ast.Name) and name.id not in local
    ]
    used = {name.id for name in inside if isinstance(name.ctx, ast.Load)}
    bound = {name.id for name in inside if isinstance(name.ctx, ast.Store)}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        arguments = {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
        return used - bound - arguments, {node.name}
    if isinstance(node, (ast.For, ast.With)):
        return used - bound, bound
    return used, bound
