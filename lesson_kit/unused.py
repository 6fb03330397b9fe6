"""What an answer is given or makes and never uses: seen in its text, whatever the right answer is.

Said where no known mistake explains a failing check and no small change mends it.
"""

from __future__ import annotations

import ast
import re

__all__ = ["never_used"]

#: Code that reads names by their text may read any of them.
_BY_TEXT = re.compile(
    r"\b(getattr|vars|locals|eval|exec|__dict__|_modules|_parameters)\b|\.(named_)?parameters\("
)
#: Of a class, the methods whose arguments are looked at.
_CALLED = {"__init__", "__call__", "forward"}


def never_used(answer: str) -> str:
    """An argument that is never read, or a part of a layer, in a sentence; or "".

    Args:
        answer: its source.
    """
    try:
        tree = ast.parse(answer)
    except (SyntaxError, ValueError):
        return ""
    if _BY_TEXT.search(answer):
        return ""
    for part in _parts(tree):
        return (
            f"Your code makes `self.{part}`, and nothing in its cell reads it under that name. Is "
            "a step missing?"
        )
    for function, argument in _arguments(tree):
        return (
            f"`{argument}` is an argument of `{function}`, and nothing else there is made with it. "
            "Is a step missing?"
        )
    return ""


def _parts(tree: ast.Module) -> list[str]:
    """Layers and parameters that a class keeps and does not read."""
    made: dict[str, None] = {}
    read: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made |= dict.fromkeys(name for target in node.targets if (name := _of_self(target)))
        if isinstance(getattr(node, "ctx", None), ast.Load):
            read.add(_of_self(node))
    return [name for name in made if name not in read]


def _of_self(node: ast.AST) -> str:
    """The name of an attribute of ``self``, or ""."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "self" else ""
    return ""


def _arguments(tree: ast.Module) -> list[tuple[str, str]]:
    """Functions and their arguments that nothing in them reads."""
    unread: list[tuple[str, str]] = []
    for statement in tree.body:
        in_class = isinstance(statement, ast.ClassDef)
        for function in statement.body if isinstance(statement, ast.ClassDef) else [statement]:
            if not isinstance(function, ast.FunctionDef):
                continue
            if in_class and function.name not in _CALLED:
                continue
            read = {
                node.id
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            }
            named = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
            unread += [
                (function.name, argument.arg)
                for argument in named[in_class:]
                # A bound, as in max_len, is nothing that a right answer has to look at.
                if argument.arg not in read and not argument.arg.startswith(("_", "max_"))
            ]
    return unread
