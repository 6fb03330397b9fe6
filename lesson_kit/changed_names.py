"""Small changes of a program that may mend it: another name.

Lies beside every notebook as ``lesson_kit/changed_names.py``; see ``lesson/small_changes.py``.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

__all__ = ["Changes", "names_in", "other_names", "unused_names"]

#: A place in the code: a kind of thing, and what would stand there instead.
Changes = Iterator[tuple[str, ast.AST]]

NAME = "which variable stands there"


def names_in(tree: ast.Module) -> dict[str, list[str]]:
    """What a name could have been: the function's own variables, and attributes of ``self``."""
    variables: dict[str, None] = {}
    attributes: dict[str, None] = {}
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg != "self":
            variables[node.arg] = None
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                used.add(node.id)
            else:
                variables[node.id] = None
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            attributes[node.attr] = None
            if isinstance(node.ctx, ast.Load):
                used.add(node.attr)
    unused = [name for name in (*variables, *attributes) if name not in used]
    return {"variables": list(variables), "attributes": list(attributes), "unused": unused}


def unused_names(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """What was made and is used nowhere, where something like it stands."""
    for kind, changed in other_names(node, parent, names):
        name = getattr(changed, "id", "") or getattr(changed, "attr", "")
        if name in names["unused"]:
            yield kind, changed


def other_names(node: ast.AST, parent: ast.AST, names: dict[str, list[str]]) -> Changes:
    """Another variable, or another attribute of ``self``."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        if node.id in names["variables"]:
            for variable in names["variables"]:
                if variable != node.id:
                    yield NAME, ast.Name(variable, ast.Load())
        elif not hasattr(builtins, node.id) and not isinstance(parent, (ast.Call, ast.Attribute)):
            for variable in names["variables"]:
                yield NAME, ast.Name(variable, ast.Load())
    elif (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and node.attr in names["attributes"]
    ):
        for attribute in names["attributes"]:
            if attribute != node.attr:
                yield NAME, ast.Attribute(node.value, attribute, ast.Load())
