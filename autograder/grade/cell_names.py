"""What cells of a student's notebook bind and use, by parsing: for :mod:`.reader_process` only.

Where no later cell binds anew what functions of earlier ones use, the notebook's state at its end
serves an earlier exercise as well as the state at its checks, and the box need not be kept there.
"""

from __future__ import annotations

import ast
import dis
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

#: Words with which names change that no reading of the code finds.
_HIDDEN_WAYS = ("exec", "globals", "builtins", "setattr", "import *", "%run", "reset", "del ")


def may_be_rebound(earlier: Sequence[str | None], later: Sequence[str | None]) -> bool:
    """Whether a name that functions of ``earlier`` use, or define, may mean another thing then.

    It compiles what it is given: not to be called where others are graded; see :mod:`.reader`.

    Args:
        earlier: sources of cells; None for one that is too long to be looked at.
        later: of the cells after them. What cannot be read, such as a cell with magics, may do
            anything.
    """
    after = [_names(source) for source in later]
    before = [_names(source) for source in earlier]
    if any(names is None for names in before) or any(n is None or n.hidden for n in after):
        return True
    bound = {name for names in after if names for name in names.bound}
    return any(not bound.isdisjoint(names.kept) for names in before if names)


@dataclass(frozen=True)
class _Names:
    """What a cell binds, what its functions look up, and whether it may change names unseen."""

    bound: frozenset[str]
    kept: frozenset[str]
    hidden: bool


@lru_cache(maxsize=256)  # it is asked at every check of a notebook, of all its cells
def _names(source: str | None) -> _Names | None:
    """None for what cannot be read, or is not to be."""
    if source is None:
        return None
    try:
        code = compile(source, "<cell>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    hidden = any(word in source for word in _HIDDEN_WAYS)
    return _Names(frozenset(_bound(code)), frozenset(_kept(code)), hidden)


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def _bound(code: CodeType) -> Iterator[str]:
    """Names that a cell binds; an import binds what was meant before."""
    imported = False
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_NAME", "DELETE_NAME") and not imported:
            yield step.argval
        imported = step.opname in ("IMPORT_NAME", "IMPORT_FROM")
    for inner in _inner(code):
        for step in dis.get_instructions(inner):
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                yield step.argval


def _kept(code: CodeType) -> Iterator[str]:
    """Names that the functions of a cell look up when they are called, and theirs."""
    for inner in _inner(code):
        yield inner.co_name
        for step in dis.get_instructions(inner):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield step.argval
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME" and step.argval.startswith("answer_"):
            yield step.argval


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
