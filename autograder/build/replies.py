"""The end of a cell that answers a guess: folded, so that nobody reads it before guessing."""

from __future__ import annotations

import ast

from autograder.build.drawing import cut_before

__all__ = ["answered_apart"]

#: What the reply is told: the reason, and what came out.
_TOLD = {"why", "came_out"}


def answered_apart(source: str) -> tuple[str, str]:
    """A cell without its reply, and the reply with what only it uses; "" where there is none.

    Args:
        source: of a cell; the reply is its last statement.
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a cell with magics
        return source, ""
    if not body or not _replies(body[-1]):
        return source, ""
    begin = len(body) - 1
    while begin and (_replies(body[begin - 1]) or _tells(body[begin - 1])):
        begin -= 1
    return cut_before(source, body[begin].lineno)


def _replies(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "reply"
    )


def _tells(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Name) and target.id in _TOLD for target in node.targets
    )
