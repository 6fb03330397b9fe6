"""Small mechanical changes of a right answer: wrong answers that nobody thought of.

What mutation testing does to a program is done here to the course's own solutions, to learn
whether the tests notice and whether a diagnosis accuses the innocent.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Name and source of every mutant of a piece of code, each with one change.

    Operators and comparisons become others, numbers and truth values change, a keyword
    argument, a call around its argument or a statement is left out, a condition is negated.
    """
    seen = {ast.unparse(ast.parse(source))}
    size = sum(1 for _ in ast.walk(ast.parse(source)))
    for place in range(size):
        for change in _CHANGES:
            tree = copy.deepcopy(ast.parse(source))
            node = list(ast.walk(tree))[place]
            if not change(tree, node):
                continue
            text = ast.unparse(ast.fix_missing_locations(tree))
            if text not in seen:
                seen.add(text)
                line = getattr(node, "lineno", 0)
                yield f"{change.__name__.strip('_')}, line {line}", text + "\n"


def _other_operator(tree: ast.AST, node: ast.AST) -> bool:
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _OPERATORS:
        node.op = _OPERATORS[type(node.op)]()
        return True
    return False


def _other_comparison(tree: ast.AST, node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        node.ops[0] = _COMPARISONS[type(node.ops[0])]()
        return True
    return False


def _other_constant(tree: ast.AST, node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
        return True
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        node.value += 1
        return True
    return False


def _without_sign(tree: ast.AST, node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and _replace(tree, node, node.operand)


def _without_keyword(tree: ast.AST, node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and node.keywords:
        node.keywords = node.keywords[1:]
        return True
    return False


def _without_call(tree: ast.AST, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(node.args) and _replace(tree, node, node.args[0])


def _without_statement(tree: ast.AST, node: ast.AST) -> bool:
    wanted = (ast.Assign, ast.AugAssign, ast.Raise, ast.Expr)
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, wanted) and not docstring and _replace(tree, node, ast.Pass())


def _negated_condition(tree: ast.AST, node: ast.AST) -> bool:
    if isinstance(node, (ast.If, ast.IfExp)):
        node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
        return True
    return False


_CHANGES = (
    _other_operator,
    _other_comparison,
    _other_constant,
    _without_sign,
    _without_keyword,
    _without_call,
    _without_statement,
    _negated_condition,
)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> bool:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return True
            if isinstance(value, list):
                for place, item in enumerate(value):
                    if item is old:
                        value[place] = new
                        return True
    return False
