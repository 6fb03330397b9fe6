"""A file of implementations as text: which sources it defines, and what of it has to run."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

from autograder.course.source_rules import LessonError

_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


def decorated_sources(path: Path, text: str) -> dict[tuple[str, str], str]:
    """The source of each decorated definition, without its decorators.

    Read from the text: of several classes with one name, ``inspect`` finds only one.
    """
    lines = text.splitlines()
    sources: dict[tuple[str, str], str] = {}
    for node in _definitions(ast.parse(text)):
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call):
                continue
            names = [
                argument.value for argument in decorator.args if isinstance(argument, ast.Constant)
            ]
            if len(names) == 2:
                key = str(names[0]), str(names[1])
                if key in sources:
                    raise LessonError(f"{path}:{node.lineno}: {key[1]!r} stands there twice")
                source = "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n"
                sources[key] = textwrap.dedent(source)
    return sources


def _definitions(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    """Those at the top, and inside a ``with exercise(...)`` there."""
    inside = [inner for node in tree.body if isinstance(node, ast.With) for inner in node.body]
    everything = (*tree.body, *inside)
    return [node for node in everything if isinstance(node, (ast.FunctionDef, ast.ClassDef))]


def registering(text: str) -> ast.Module:
    """What of a file registers its entries. What its functions do is left out, and with it imports
    and stand-ins that only they use: torch alone takes seconds."""
    tree = ast.parse(text)
    for node in filter(_registers, _definitions(tree)):
        node.body = [ast.Pass()]
        node.decorator_list = list(filter(_names_two, node.decorator_list))
        if isinstance(node, ast.ClassDef):
            node.bases, node.keywords = [], []
        else:
            node.args, node.returns = _NO_ARGUMENTS, None
    waiting = [node for node in tree.body if _only_for_others(node)]
    used = _names([node for node in tree.body if node not in waiting])
    while more := [node for node in waiting if _bound(node) & (used | {"*"})]:
        used |= _names(more)
        waiting = [node for node in waiting if node not in more]
    tree.body = [node for node in tree.body if node not in waiting]
    return ast.fix_missing_locations(tree)


def _registers(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(map(_names_two, node.decorator_list))


def _names_two(decorator: ast.expr) -> bool:
    """Whether it names an exercise and an entry: ``@alternative("softmax", "with_exp")``."""
    return isinstance(decorator, ast.Call) and len(decorator.args) == 2


def _only_for_others(node: ast.stmt) -> bool:
    """An import or a definition that registers nothing."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return not node.decorator_list
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return {str(getattr(node, "name", ""))}


def _names(nodes: list[ast.stmt]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def line_in(path: Path, error: BaseException) -> str:
    """``:12`` where the file's line 12 gave rise to an error."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    lines, at = [], error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == str(path):
            lines.append(at.tb_lineno)
        at = at.tb_next
    return f":{lines[-1]}" if lines else ""
