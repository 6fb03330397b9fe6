"""Compared outputs that belong to the processor they were made on.

nbval compares what a solved notebook prints with what is stored, on any machine. Rounding noise
and what came out of training differ there, so an author prints the truth of a bound instead, or
lets the output be ignored. Two signs of a cell that does neither are found here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import nbformat
from nbformat import NotebookNode

from autograder.course.lessons import Lesson
from autograder.notebooks import grade_id, is_test, tags

#: Cells with this tag run, and nbval does not compare what they print.
IGNORED = "nbval-ignore-output"

#: A smaller number, other than 0, is most often what rounding left over.
NOISE = 1e-6

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w])")

#: What these say of a trained model does not depend on its weights' digits.
_SETTLED_ATTRIBUTES = {"shape", "ndim", "dtype", "numel"}
_SETTLED_CALLS = {"len", "bool", "allclose", "isfinite", "isnan", "array_equal", "equal"}
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_SHOWING = {"print", "display", "show", "heatmap"}
_CHANGING = {"append", "extend", "insert", "update", "add", "setdefault", "load_state_dict"}
_STEPS = {"step", "sub_", "add_", "copy_"}


def processor_bound(lesson: Lesson) -> Iterator[str]:
    """What a lesson prints, compares, and could not print on another processor."""
    yield from _noise(lesson)
    yield from _from_training(lesson)


def _compared(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and IGNORED not in tags(cell)


def _called_as(cell: NotebookNode) -> str:
    """A cell's name in a sentence."""
    first = next((line for line in cell.source.splitlines() if not line.startswith("#")), "")
    return grade_id(cell) or f"the cell beginning {first.strip()!r}"


def _noise(lesson: Lesson) -> Iterator[str]:
    """Numbers below :data:`NOISE` that the solved notebook shows and its source does not."""
    folder = lesson.path.parent.parent / "solutions" / lesson.folder
    path = folder / f"{lesson.notebook_name}.ipynb"
    if not path.exists():  # not built yet: nothing is compared
        return
    sources = {cell.id: cell.source for cell in lesson.notebook.cells}
    for cell in nbformat.read(path, as_version=4).cells:
        if not _compared(cell) or is_test(cell) or sources.get(cell.id) != cell.source:
            continue
        for number in chain.from_iterable(map(_NUMBER.findall, _texts(cell))):
            if 0 < float(number) < NOISE and number not in cell.source:
                yield (
                    f"{_called_as(cell)}: its compared output holds {number}, which is rounding "
                    "noise on most processors; print whether it is below a bound, or tag the cell "
                    f"{IGNORED} and say why"
                )
                break


def _texts(cell: NotebookNode) -> Iterator[str]:
    for output in cell.get("outputs", []):
        yield output.get("text", "")
        data = output.get("data", {})
        yield from (data[kind] for kind in data if kind.startswith("text/"))


def _from_training(lesson: Lesson) -> Iterator[str]:
    """Compared cells that show a value which comes out of training."""
    known = _Trained()
    for earlier in lesson.earlier:
        for source in earlier.exercises.values():
            known.learn(ast.parse(source))
    for cell in lesson.notebook.cells:
        if cell.cell_type != "code" or is_test(cell):
            continue
        tree = ast.parse(cell.source)
        shown = known.learn(tree)
        if shown and _compared(cell):
            yield (
                f"{_called_as(cell)}: its compared output shows {', '.join(sorted(shown))}, which "
                "comes out of training; print whether it keeps to a bound, or assert the bound, "
                f"tag the cell {IGNORED} and say why"
            )


@dataclass
class _Function:
    """What is known of a function of the notebook.

    Attributes:
        parameters: in order.
        trains: whether what it returns comes out of training.
        trained: those of its parameters that it trains.
        shows: whether it prints or displays.
        settled: whether it returns nothing but truths of bounds.
    """

    parameters: list[str]
    settled: bool = False
    trains: bool = False
    trained: set[str] = field(default_factory=set)
    shows: bool = False


class _Trained:
    """The names of a notebook that hold something trained, cell by cell."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.functions: dict[str, _Function] = {}
        self.shown: set[str] = set()

    def learn(self, cell: ast.Module) -> set[str]:
        """Take over what a cell binds; the trained names that it shows."""
        self.shown = set()
        self._block(cell.body)
        last = cell.body[-1] if cell.body else None
        if isinstance(last, ast.Expr) and not _shows(last.value):
            called = last.value.func if isinstance(last.value, ast.Call) else last.value
            self.shown |= self._sources(called) - set(self.functions)
        return self.shown

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self._define(node)
            return
        # What stands in a body has its turn when names are bound as they are there.
        for part in ast.iter_child_nodes(node):
            for inner in ast.walk(part) if not isinstance(part, ast.stmt) else ():
                if isinstance(inner, ast.Call):
                    self._call(inner)
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, bool(self._sources(value)))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, bool(self._sources(value)))
            case ast.AugAssign(target=target, value=value) if self._sources(value):
                self._bind(target, True)
            case ast.For(target=target, iter=over):
                self._bind_each(target, over)
                self.names |= _by_hand(node)
                self._block(node.body + node.body)  # what its end binds, its beginning uses
            case ast.While() | ast.If():
                self._block(node.body + node.orelse)
            case ast.With():
                self._block(node.body)

    def _define(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        given = node.args.args + node.args.kwonlyargs if isinstance(node, ast.FunctionDef) else []
        function = _Function([argument.arg for argument in given])
        for loop in (part for part in ast.walk(node) if isinstance(part, ast.For)):
            function.trains |= bool(_by_hand(loop))
        own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _stored(n)}
        for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
            function.shows |= _shows(call) or self._function(call).shows
            called = self._function(call)
            function.trains |= called.trains
            function.trained |= self._trained_by(call) & set(function.parameters)
        function.trains |= bool(self._sources(node) - own - set(function.parameters))
        self.names.discard(node.name)
        returned = [part.value for part in ast.walk(node) if isinstance(part, ast.Return)]
        function.settled = bool(returned) and all(map(_truth, returned))
        if isinstance(node, ast.FunctionDef):
            self.functions[node.name] = function

    def _function(self, call: ast.Call) -> _Function:
        return self.functions.get(_name(call.func), _Function([]))

    def _trained_by(self, call: ast.Call) -> set[str]:
        """The names whose values a call trains: an optimizer's, a training function's."""
        given: list[ast.expr] = []
        if "optim." in ast.unparse(call.func) and "lr_scheduler" not in ast.unparse(call.func):
            given = call.args
        elif function := self._function(call):
            pairs = [*zip(function.parameters, call.args)]
            pairs += [(word.arg or "", word.value) for word in call.keywords]
            given = [value for name, value in pairs if name in function.trained]
        return {_base(name) for argument in given for name in ast.walk(argument) if _base(name)}

    def _call(self, call: ast.Call) -> None:
        self.names |= self._trained_by(call)
        given = [*call.args, *(word.value for word in call.keywords)]
        sources = set().union(*map(self._sources, given))
        if isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGING and sources:
            self.names.add(_base(call.func))
        function = self._function(call)
        if _shows(call):
            self.shown |= sources
        elif function.shows:
            self.shown |= sources | ({_name(call.func)} if function.trains else set())

    def _bind(self, target: ast.AST, trained: bool) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._bind(part, trained)
        elif trained:
            self.names.add(_base(target))
        elif isinstance(target, ast.Name):
            self.names.discard(target.id)

    def _bind_each(self, target: ast.AST, over: ast.expr) -> None:
        """Bind what a loop over ``over`` binds; a key or a number is nothing trained."""
        if not isinstance(target, ast.Tuple):
            self._bind(target, bool(self._sources(over)))
            return
        values: list[ast.expr] | None = None
        if isinstance(over, ast.Call):
            match _name(over.func):
                case "items" if isinstance(over.func, ast.Attribute):
                    values = [ast.Constant(0), over.func.value]
                case "enumerate":
                    self._bind(target.elts[0], False)
                    self._bind_each(target.elts[1], over.args[0])
                    return
                case "zip":
                    for part, value in zip(target.elts, over.args):
                        self._bind_each(part, value)
                    return
        elif isinstance(over, ast.Tuple | ast.List):
            # Several in one place: it is trained if one of them is.
            rows = [row.elts for row in over.elts if isinstance(row, ast.Tuple)]
            if rows and len(rows) == len(over.elts):
                values = [ast.Tuple(list(column), ast.Load()) for column in zip(*rows)]
        if values is None:
            self._bind(target, bool(self._sources(over)))
            return
        for part, value in zip(target.elts, values):
            self._bind(part, bool(self._sources(value)))

    def _sources(self, node: ast.AST) -> set[str]:
        """The trained names that the value of an expression depends on."""
        if isinstance(node, ast.Compare):  # a bound's truth
            return set()
        if isinstance(node, ast.Attribute) and node.attr in _SETTLED_ATTRIBUTES:
            return set()
        if isinstance(node, ast.Call) and self._settles(node):
            return set()
        if isinstance(node, _COMPREHENSIONS):
            return self._of_comprehension(node)
        sources = {node.id} & self.names if isinstance(node, ast.Name) else set()
        if isinstance(node, ast.Call) and self._function(node).trains:
            sources.add(_name(node.func))
        return sources.union(*map(self._sources, ast.iter_child_nodes(node)))

    def _settles(self, call: ast.Call) -> bool:
        return _name(call.func) in _SETTLED_CALLS or self._function(call).settled

    def _of_comprehension(self, node: ast.AST) -> set[str]:
        before = set(self.names)
        within: set[str] = set()
        over: set[str] = set()
        for loop in getattr(node, "generators", []):
            over |= self._sources(loop.iter)
            self._bind_each(loop.target, loop.iter)
            within |= {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        parts = [getattr(node, part) for part in ("elt", "key", "value") if hasattr(node, part)]
        sources = set().union(*map(self._sources, parts))
        self.names = before
        return (sources - within) | (over if sources & within else set())


def _truth(node: ast.AST | None) -> bool:
    """Whether an expression is a truth by its form, so that rounding moves it only at a bound."""
    match node:
        case ast.Compare() | ast.Constant(value=bool()):
            return True
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=values):
            return all(map(_truth, values))
        case ast.Call(func=function):
            return _name(function) in _SETTLED_CALLS
    return False


def _by_hand(loop: ast.For) -> set[str]:
    """The names that a loop which follows gradients changes; empty for another loop."""
    calls = {_name(node.func) for node in ast.walk(loop) if isinstance(node, ast.Call)}
    changed = {_base(node.target) for node in ast.walk(loop) if isinstance(node, ast.AugAssign)}
    if not calls & {"backward", "grad"} or not (calls & _STEPS or changed):
        return set()
    return changed | {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and _stored(n)}


def _shows(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in _SHOWING


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _name(function: ast.AST) -> str:
    """The last part of what is called: ``exp`` of ``np.exp``."""
    return getattr(function, "attr", getattr(function, "id", ""))


def _base(node: ast.AST) -> str:
    """The first name of ``name.attribute[index]``; empty if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
