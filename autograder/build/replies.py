"""The end of a cell that answers a guess: folded, so that nobody reads it before guessing."""

from __future__ import annotations

import ast

from nbformat import NotebookNode

from autograder.build.drawing import cut_before
from autograder.notebooks import GUESS, is_answer, is_test, tags

__all__ = ["answered_apart", "claims_after_replies"]

#: What the reply is told: the reason, and what came out.
_TOLD = {"why", "came_out"}


def claims_after_replies(cells: list[NotebookNode]) -> None:
    """Put what is asserted between a guess and the reply to it into the cell of the reply.

    An assertion says what came out, and would stand there to be read before the guess.
    """
    for number, cell in enumerate(cells):
        if GUESS not in tags(cell):
            continue
        answer = _reply_to(cell.source, cells[number + 1 :])
        if answer is None:
            continue
        claims = ""
        for between in cells[number + 1 : number + 1 + answer]:
            if between.cell_type == "code" and not is_answer(between) and not is_test(between):
                between.source, claimed = _claims_apart(between.source)
                claims += claimed
        answers = cells[number + 1 + answer]
        shown, reply = answered_apart(answers.source)
        answers.source = "\n\n".join(part for part in (shown, claims + reply) if part)


def _reply_to(guess: str, cells: list[NotebookNode]) -> int | None:
    """Which of the cells answers what a cell takes; None where none does."""
    names = [line.split(" = ")[0] for line in guess.splitlines() if line.startswith("guess_")]
    replies = [
        number
        for number, cell in enumerate(cells)
        if cell.cell_type == "code" and any(f'reply("{name}"' in cell.source for name in names)
    ]
    return max(replies, default=None)


def answered_apart(source: str) -> tuple[str, str]:
    """A cell without its reply, and the reply with what goes with it; "" where there is none.

    What only the reply is told goes with it, and so do the cell's assertions.

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
    shown, reply = cut_before(source, body[begin].lineno)
    shown, claims = _claims_apart(shown)
    return shown, claims + reply


def _claims_apart(source: str) -> tuple[str, str]:
    """A cell without its assertions, and these, each with the comments above it."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a cell with magics
        return source, ""
    taken: list[str] = []
    for node in reversed(body):
        if not isinstance(node, ast.Assert) or node.end_lineno is None:
            continue
        before, claim = cut_before(source, node.lineno)
        lines = claim.splitlines(keepends=True)
        end = node.end_lineno - node.lineno + 1 + _comments(lines)
        taken.insert(0, "".join(lines[:end]).rstrip() + "\n")
        rest = "".join(lines[end:]).lstrip("\n")
        gap = "\n\n\n" if rest.startswith(("def ", "class ")) else "\n\n"
        source = before + gap + rest if rest else before
    return source.strip("\n"), "".join(taken)


def _comments(lines: list[str]) -> int:
    """How many lines of comments come first."""
    return next(n for n, line in enumerate(lines) if not line.lstrip().startswith("#"))


def _replies(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):  # only where an optional library is installed
        return not node.orelse and _replies(node.body[-1])
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
