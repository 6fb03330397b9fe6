"""Which names a cell leaves to the cells after it, and which it finds: by reading its code."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType

_STORED, _DELETED = {"STORE_NAME"}, {"DELETE_NAME"}
_OF_THE_WHOLE = {"STORE_GLOBAL", "DELETE_GLOBAL"}
_LOOKED_UP = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}

#: What Python calls code of its own that runs where it stands (a function's has its part in that).
_AT_ONCE = {"<listcomp>", "<setcomp>", "<dictcomp>"}

#: In the head of a ``with``: its body may end before its end, and the cell goes on.
_ENDS_EARLY = {"suppress", "assert_raises"}

#: Statements that may leave out what stands in them.
_PERHAPS = (ast.If, ast.While, ast.Try, ast.TryStar, ast.Match)


@dataclass
class Names:
    """What a cell does with the notebook's names.

    Attributes:
        found: looked up where the cell has not bound them for certain before.
        looked_up_later: those that its functions look up, whenever these are called.
        bound: for certain.
        left: those that it may bind or delete, or part of whose value it may set.
    """

    found: set[str] = field(default_factory=set)
    looked_up_later: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)


def names_of(source: str) -> Names:
    """What a cell does with the notebook's names.

    Raises:
        SyntaxError: it is not plain Python, such as a cell with magics.
    """
    tree = ast.parse(source)
    names = Names()
    whole, *inner = _codes(_compiled(tree.body))
    names.left = _named(whole, _STORED | _DELETED)
    looked_up = _named(whole, _LOOKED_UP)
    for code in inner:
        names.left |= _named(code, _OF_THE_WHOLE)
        looked_up |= _named(code, _LOOKED_UP)
        if code.co_name not in _AT_ONCE:
            names.looked_up_later |= _named(code, _LOOKED_UP)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            names.left |= _root(node) & looked_up
    names.found = _found(tree.body, names.bound)
    return names


def _root(node: ast.expr) -> set[str]:
    """The name of the value that a part belongs to, where it has one."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _found(body: Iterable[ast.stmt], bound: set[str]) -> set[str]:
    """What statements look up, in order; what they bind for certain is put into ``bound``."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.With):
            heads: list[ast.stmt] = [
                ast.Expr(item.context_expr)
                if item.optional_vars is None
                else ast.Assign([item.optional_vars], item.context_expr)
                for item in statement.items
            ]
            found |= _found(heads, bound)
            left_early = any(_ENDS_EARLY & set(_all_names(head)) for head in heads)
            found |= _found(statement.body, set(bound) if left_early else bound)
        elif isinstance(statement, ast.For):
            inside = bound if _goes_through(statement) else set(bound)
            found |= _found([ast.Assign([statement.target], statement.iter)], inside)
            found |= _found(statement.body, inside)
            found |= _found(statement.orelse, set(bound))
        else:
            # Where it stands in a loop it may say `continue`.
            around = ast.While(ast.Constant(True), [statement], [])
            whole, *inner = _codes(_compiled([around]))
            found |= _named(whole, _LOOKED_UP) - bound
            own = {getattr(statement, "name", "")}  # a function that calls itself is there by then
            for code in inner:
                found |= _named(code, _LOOKED_UP) - bound - own
            if isinstance(statement, ast.Delete):
                found |= _named(whole, _DELETED) - bound
            if not isinstance(statement, _PERHAPS):
                bound |= _named(whole, _STORED) - set(_perhaps_bound(statement))
                bound -= _named(whole, _DELETED)
    return found


def _goes_through(loop: ast.For) -> bool:
    """Whether a loop's body runs to its end at least once, for certain."""
    early = any(isinstance(part, (ast.Continue, ast.Break)) for part in ast.walk(loop))
    return isinstance(loop.iter, (ast.List, ast.Tuple)) and bool(loop.iter.elts) and not early


def _perhaps_bound(statement: ast.stmt) -> Iterator[str]:
    """Names that an expression binds on its way, if it gets there."""
    for part in ast.walk(statement):
        if isinstance(part, ast.NamedExpr):
            yield part.target.id


def _all_names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        yield getattr(part, "id", "") or getattr(part, "attr", "")


def _compiled(body: list[ast.stmt]) -> CodeType:
    tree = ast.fix_missing_locations(ast.Module(body, []))
    return compile(tree, "<cell>", "exec", dont_inherit=True)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _named(code: CodeType, steps: set[str]) -> set[str]:
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname in steps}
