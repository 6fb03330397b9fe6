"""Which names a cell binds, by parsing it: for :mod:`.reader_process` only."""

from __future__ import annotations

import ast
import warnings


def names_bound(source: str) -> list[str]:
    """The functions, classes and variables that a cell binds at its top level, in order.

    Empty for what is no Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a student's "\\d" is no concern of the grader's
            body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return []
    names: list[str] = []
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [
                part.id for to in targets for part in _parts(to) if isinstance(part, ast.Name)
            ]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    return list(dict.fromkeys(names))


def _parts(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
