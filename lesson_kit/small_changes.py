"""Small changes of a program that may mend it: what would stand in another place, and its kind.

Each function of :data:`LIKELIEST_FIRST` gives, for a node of the program, what could stand there
instead.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from .answer_text import Changes, other_names, unused_names

AXIS = "which axis is meant (or another number that such a function takes, as `repeat` does)"
SHAPE = "the length of which axis is meant"
TRANSPOSE = "whether something is transposed, or which of its axes are exchanged"
ORDER = "the order of two things, or of what an index takes"
OPERATOR = "an operator (another one there, or none)"
COMPARISON = "a comparison"
NUMBER = "a number, a factor 2, or a True or False"
ROOT = "a root or a power"
SIGN = "a sign (or whether it counts), or a `~`"
TWO_LINES = "the order of two lines, this one and the next"
STEP = "a step was left out"
IN_PLACE = "whether an array is written into, or a new one is made"
KEPT = "whether an axis is kept (and, where none was named, which one is meant)"
BOUND = "where something begins or ends, or a step, by one"
LOOP = "what stands inside the loop"
FUNCTION = "which function is meant"

_AXES = (-1, -2, -3, 0, 1, 2)
_REDUCE = {"sum", "mean", "max", "min", "amax", "var", "std", "softmax", "norm", "argmax", "any"}
_REDUCE |= {"all", "prod", "concatenate", "cat", "stack"}
_TAKES_AXES = _REDUCE | {"swapaxes", "transpose", "unsqueeze", "squeeze", "expand_dims", "size"}
_TAKES_AXES |= {"moveaxis", "movedim", "chunk", "split", "array_split", "repeat", "cumsum"}


def _integer(node: ast.AST) -> int | None:
    try:
        value = ast.literal_eval(node) if isinstance(node, (ast.Constant, ast.UnaryOp)) else None
    except (ValueError, TypeError):
        return None
    return value if type(value) is int else None


def called(node: ast.AST) -> str:
    """The name of what a call calls, or ""."""
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            return function.attr
        if isinstance(function, ast.Name):
            return function.id
    return ""


def _call(value: Any, method: str, *arguments: int) -> ast.Call:
    function = ast.Attribute(value, method, ast.Load())
    return ast.Call(function, [_number(number) for number in arguments], [])


def _number(value: float) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


def _of_python(call: ast.AST) -> bool:
    """``max(a, 0)`` takes numbers; ``x.max(0)`` takes an axis."""
    function = getattr(call, "func", None)
    return isinstance(function, ast.Name) and function.id in {"max", "min", "sum", "any", "all"}


def _axes(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    value = _integer(node)
    if value is None:
        return
    named = isinstance(parent, ast.keyword) and parent.arg in ("axis", "dim")
    if named or (called(parent) in _TAKES_AXES and not _of_python(parent)):
        yield from ((AXIS, _number(axis)) for axis in _AXES if axis != value)
    elif (
        isinstance(parent, ast.Subscript)
        and isinstance(parent.value, ast.Attribute)
        and parent.value.attr == "shape"
        and node is parent.slice
    ):
        yield from ((SHAPE, _number(axis)) for axis in _AXES if axis != value)


def _kept_axes(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    if not isinstance(node, ast.Call) or called(node) not in _REDUCE:
        return
    given = {keyword.arg for keyword in node.keywords}
    for word in ("axis", "dim"):
        if not given & {"axis", "dim"} and len(node.args) < 2:
            axis = ast.keyword(word, _number(-1))
            yield AXIS, ast.Call(node.func, node.args, [*node.keywords, axis])
            kept = ast.keyword("keepdims" if word == "axis" else "keepdim", ast.Constant(True))
            yield KEPT, ast.Call(node.func, node.args, [*node.keywords, axis, kept])
    for word in ("keepdims", "keepdim"):
        if not given & {"keepdims", "keepdim"}:
            kept = ast.keyword(word, ast.Constant(True))
            yield KEPT, ast.Call(node.func, node.args, [*node.keywords, kept])


#: Functions that are taken for each other.
_ALIKE: tuple[tuple[str, ...], ...] = (
    ("max", "min", "mean", "sum"),
    ("amax", "amin"),
    ("argmax", "argmin"),
    ("sin", "cos"),
    ("tril", "triu"),
    ("any", "all"),
    ("zeros", "ones"),
)


def _functions(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    name = called(node)
    for alike in _ALIKE:
        if not isinstance(node, ast.Call) or name not in alike:
            continue
        for other in alike:
            function = node.func
            if other != name and isinstance(function, ast.Attribute):
                instead = ast.Attribute(function.value, other, ast.Load())
                yield FUNCTION, ast.Call(instead, node.args, node.keywords)


def _transposes(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield TRANSPOSE, node.value
        yield TRANSPOSE, _call(node.value, "swapaxes", -1, -2)
    elif isinstance(node, ast.Call) and called(node) in ("swapaxes", "transpose"):
        if isinstance(node.func, ast.Attribute):
            yield TRANSPOSE, node.func.value
    elif (
        isinstance(parent, ast.BinOp)
        and isinstance(parent.op, ast.MatMult)
        and isinstance(node, ast.expr)
    ):
        yield TRANSPOSE, _call(node, "swapaxes", -1, -2)


def _orders(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    if isinstance(node, ast.BinOp) and isinstance(
        node.op, (ast.MatMult, ast.Sub, ast.Div, ast.Pow, ast.Mod)
    ):
        yield ORDER, ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        yield ORDER, ast.Call(node.func, node.args[::-1], [])
    elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.ctx, ast.Load):
        yield ORDER, ast.Tuple(node.elts[::-1], ast.Load())


_OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.MatMult, ast.Add),
    ast.Div: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}


def _operators(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    if isinstance(node, ast.operator) and isinstance(parent, (ast.BinOp, ast.AugAssign)):
        yield from ((OPERATOR, operator()) for operator in _OPERATORS.get(type(node), ()))
    elif isinstance(node, ast.And):
        yield OPERATOR, ast.Or()
    elif isinstance(node, ast.Or):
        yield OPERATOR, ast.And()


def _comparisons(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    if isinstance(node, (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)):
        for comparison in (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq):
            if not isinstance(node, comparison):
                yield COMPARISON, comparison()
    elif isinstance(node, ast.Is):
        yield COMPARISON, ast.IsNot()
    elif isinstance(node, ast.IsNot):
        yield COMPARISON, ast.Is()


def _numbers(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield NUMBER, ast.Constant(not value)
    elif isinstance(value, (int, float)):
        for number in (value + 1, value - 1, 2 * value, value / 2, -value, 0, 1, 2):
            if number != value and (isinstance(value, float) or number == int(number)):
                yield NUMBER, _number(int(number) if isinstance(value, int) else float(number))


def _small_numbers(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """0 for a number that was added so that nothing is divided by 0."""
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value < 0.01:
        yield NUMBER, _number(0.0)


def _permutations(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """The inverse of a permutation for a permutation."""
    if isinstance(parent, ast.Subscript) and node is parent.slice and isinstance(node, ast.Name):
        yield ORDER, _call(node, "argsort")


def _twice(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """i for 2 i, and the other way round."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        if isinstance(parent, (ast.BinOp, ast.Subscript, ast.Slice, ast.Tuple)):
            yield NUMBER, ast.BinOp(_number(2), ast.Mult(), node)
    elif (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and 2 in (_integer(node.left), _integer(node.right))
    ):
        yield NUMBER, node.right if _integer(node.left) == 2 else node.left


def _pairs_of_axes(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """Two axes that are exchanged, both counted from the end."""
    if not isinstance(node, ast.Call) or called(node) not in ("swapaxes", "transpose"):
        return
    if len(node.args) >= 2 and all(_integer(argument) is not None for argument in node.args[-2:]):
        for pair in ((-1, -2), (-2, -3), (-1, -3)):
            axes = [_number(axis) for axis in pair]
            yield AXIS, ast.Call(node.func, [*node.args[:-2], *axes], node.keywords)


def _twice_in_an_index(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """i for 2 i in all of an index, such as ``M[i:i + 2, i:i + 2]``."""
    if not isinstance(node, ast.Subscript):
        return
    indices = [name.id for name in ast.walk(node.slice) if isinstance(name, ast.Name)]
    for name in dict.fromkeys(index for index in indices if indices.count(index) > 1):
        changed = _Twice(name).visit(copy.deepcopy(node.slice))
        yield NUMBER, ast.Subscript(node.value, changed, node.ctx)


class _Twice(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Twice the name."""
        return ast.BinOp(_number(2), ast.Mult(), node) if node.id == self.name else node


def _roots(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    if isinstance(node, ast.Call) and called(node) == "sqrt" and len(node.args) == 1:
        yield ROOT, node.args[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        yield ROOT, node.left
    elif (
        isinstance(parent, ast.BinOp)
        and isinstance(parent.op, ast.Div)
        and isinstance(node, ast.expr)
        and node is parent.right
    ):
        yield ROOT, ast.BinOp(node, ast.Pow(), _number(0.5))


def _signs(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    # No ``not``: a condition that may be turned round unseen is one that no check looks at.
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        if _integer(node) is None:
            yield SIGN, node.operand
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        if isinstance(parent, ast.Call):
            yield SIGN, ast.Call(ast.Name("abs", ast.Load()), [node], [])
    elif isinstance(node, (ast.Name, ast.Compare)) and isinstance(parent, (ast.Call, ast.BinOp)):
        yield SIGN, ast.UnaryOp(ast.Invert(), node)
        yield SIGN, ast.UnaryOp(ast.USub(), node)


def _steps(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    if isinstance(node, ast.Call):
        if len(node.args) >= 1 and not isinstance(node.args[0], ast.Starred):
            yield STEP, node.args[0]
        if isinstance(node.func, ast.Attribute):
            yield STEP, node.func.value
    elif isinstance(node, ast.BinOp):
        yield STEP, node.left
        yield STEP, node.right


def _statements(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    plain = isinstance(node, (ast.Assign, ast.AugAssign)) or (
        isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
    )
    if plain and isinstance(node, ast.stmt):
        yield STEP, ast.Pass()
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        yield IN_PLACE, ast.Assign([node.target], value)
    if isinstance(node, ast.For) and isinstance(node.body[-1], ast.Return) and len(node.body) > 1:
        after = [ast.For(node.target, node.iter, node.body[:-1], []), node.body[-1]]
        yield LOOP, ast.If(ast.Constant(True), after, [])


def _bounds(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    in_range = isinstance(parent, ast.Call) and called(parent) in ("range", "arange")
    compared = isinstance(parent, ast.Compare) and isinstance(
        parent.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    )
    if (in_range or compared or isinstance(parent, ast.Slice)) and isinstance(node, ast.expr):
        if isinstance(node, ast.Constant):
            return
        yield BOUND, ast.BinOp(node, ast.Add(), _number(1))
        yield BOUND, ast.BinOp(node, ast.Sub(), _number(1))


_Operator = Callable[[ast.AST, ast.AST, "dict[str, list[str]]"], Changes]
_HINTED: tuple[_Operator, ...] = (unused_names, _pairs_of_axes, _twice_in_an_index)
_LIKELY: tuple[_Operator, ...] = (_axes, _transposes, _kept_axes, _orders, _twice, _roots, _signs)
_POSSIBLE: tuple[_Operator, ...] = (
    _operators,
    _functions,
    other_names,
    _statements,
    _permutations,
)

#: Operators in an order.
Groups = tuple[tuple[_Operator, ...], ...]

#: Changes that take away what an answer adds, of which there are few in any answer.
TAKING_AWAY: tuple[_Operator, ...] = (_small_numbers,)

#: Groups of operators, the likelier first.
LIKELIEST_FIRST: Groups = (
    _HINTED,
    _LIKELY,
    (_comparisons, _bounds),
    _POSSIBLE,
    (_numbers,),
    (_steps,),
)
