"""What is done with the cells of demonstrations: figures are folded apart, and replies to guesses.

A right answer opens the figures further down that are drawn with it; the end of a cell that answers
a guess is folded, so that nobody reads it before guessing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from nbformat import NotebookNode

from autograder.notebooks import GUESS, grade_id, is_answer, is_test, tags


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
    return list(dict.fromkeys(figures))


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


def only_claims(source: str) -> bool:
    """Whether a cell does little but assert: at least half of its lines do, more than once, and it
    defines, draws and prints nothing."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a cell with magics
        return False
    claims = [node for node in body if isinstance(node, ast.Assert)]
    others = [node for node in body if not isinstance(node, ast.Assert)]
    if any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in others):
        return False
    if any(_calls(node) & {"print", *_SHOWS, *_BEGINS} for node in others):
        return False
    return len(claims) > 1 and _lines(claims) >= _lines(others)


def _lines(nodes: Sequence[ast.stmt]) -> int:
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


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
