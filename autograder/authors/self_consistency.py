"""Comparisons with what the student's own code gave for another call.

Such a result may be the wrong one of the two. So ``assert_close`` and ``assert_equal`` are told
of which call it is (``against="for each text alone"``), and the message does not call it expected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_COMPARISONS = {"assert_close", "assert_equal"}
_BLOCKS = (ast.For, ast.With, ast.If, ast.While, ast.Try)


def unsaid_own_results(test: ast.Module, exercises: Mapping[str, ast.Module]) -> Iterator[str]:
    """The comparisons of a test cell whose second value is the student's and that do not say so.

    Args:
        test: the cell.
        exercises: of the lesson, by name.

    Yields:
        The first and second argument of each, as source.
    """
    flow = _Flow.of(exercises)
    flow.run(test.body)
    for call in flow.found:
        if not any(word.arg == "against" for word in call.keywords):
            yield f"{ast.unparse(call.args[0])}, {ast.unparse(call.args[1])}"


@dataclass
class _Flow:
    """Which names hold code of the student, and which hold what it gave, as a cell runs.

    Attributes:
        code: names of functions, classes and objects that run it when they are called.
        methods: names that are methods of the student's classes.
        results: names of what came of such calls.
        found: comparisons with such a value as what is expected.
    """

    code: set[str]
    methods: set[str]
    results: set[str] = field(default_factory=set)
    found: list[ast.Call] = field(default_factory=list)

    @classmethod
    def of(cls, exercises: Mapping[str, ast.Module]) -> _Flow:
        methods = {
            method.name
            for exercise in exercises.values()
            for of_class in ast.walk(exercise)
            if isinstance(of_class, ast.ClassDef)
            for method in of_class.body
            if isinstance(method, ast.FunctionDef) and method.name != "__init__"
        }
        return cls(set(exercises), methods)

    def run(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.FunctionDef):
                self._define(statement)
                continue
            if not isinstance(statement, _BLOCKS):
                self._look_for_comparisons(statement)
            if isinstance(statement, ast.Assign):
                self._assign(statement)
            elif isinstance(statement, ast.AugAssign) and self._is_result(statement.value):
                self.results |= _stored(statement.target)
            elif isinstance(statement, ast.For):
                if self._is_result(statement.iter):
                    self.results |= _stored(statement.target)
                self.run(statement.body)
            elif isinstance(statement, (ast.If, ast.While)):
                self.run(statement.body + statement.orelse)
            elif isinstance(statement, (ast.With, ast.Try)):
                self.run(statement.body)

    def _look_for_comparisons(self, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") in _COMPARISONS
                and len(node.args) > 1
                and self._is_result(node.args[1])
            ):
                self.found.append(node)

    def _assign(self, statement: ast.Assign) -> None:
        names = {name for target in statement.targets for name in _stored(target)}
        if self._is_result(statement.value):
            self.results |= names
        elif self._is_code(statement.value):
            self.code |= names
        elif all(not isinstance(target, ast.Subscript) for target in statement.targets):
            self.results -= names  # they hold something else now

    def _define(self, function: ast.FunctionDef) -> None:
        """A function of the test gives results of the student where what it returns is one."""
        called = {
            node.func.id
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        given = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
        inner = _Flow(self.code | (given & called), self.methods, self.results - given)
        inner.run(function.body)
        self.found += [call for call in inner.found if call not in self.found]
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        if any(value is not None and inner._is_result(value) for value in returned):
            self.code.add(function.name)

    def _is_code(self, value: ast.expr) -> bool:
        """An object of a student's class, also as ``layer.double()``; or a function renamed."""
        if isinstance(value, ast.Call):
            value = value.func
            if isinstance(value, ast.Attribute):
                return value.attr not in self.methods and self._is_code(value.value)
        return isinstance(value, ast.Name) and value.id in self.code

    def _is_result(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "fromkeys":
            return False  # facts, all of which should hold
        return any(self._gives_result(node) for node in ast.walk(value))

    def _gives_result(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.results
        if not isinstance(node, ast.Call):
            return False
        called = node.func
        if isinstance(called, ast.Attribute):
            return called.attr in self.methods and self._is_code(called.value)
        if isinstance(called, ast.Call):  # an object is made and called at once
            return self._is_code(called)
        is_class = isinstance(called, ast.Name) and called.id[:1].isupper()
        return isinstance(called, ast.Name) and called.id in self.code and not is_class


def _stored(target: ast.expr) -> set[str]:
    """Names that an assignment gives a value to, or changes an item of."""
    root = target
    while isinstance(root, (ast.Subscript, ast.Attribute)):
        root = root.value
    return {node.id for node in ast.walk(root) if isinstance(node, ast.Name)}
