"""Names that a piece of code takes from elsewhere, and the statements that give them to it.

An answer that is moved (into a later lesson, or out of ``alternatives.py``) takes along what its
file imports, or is refused.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache


def given_by(source: str, besides: Container[str | None] = ()) -> dict[str, str]:
    """The names that the statements at the top of some code bind, each with its statement.

    Of an import it is the name's own: ``import numpy as np``.

    Args:
        source: such as a setup cell.
        besides: modules whose imports do not count.
    """
    given: dict[str, str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                given[name] = ast.unparse(ast.Import([alias]))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names if node.module not in besides else ():
                line = ast.ImportFrom(node.module, [alias], node.level)
                given[alias.asname or alias.name] = ast.unparse(line)
        else:
            text = ast.unparse(node)
            given |= dict.fromkeys(_bound(text), text)
    return given


def needed_of(given: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """The statements that give some names, with those that these need, in their order."""
    wanted, waiting = set[str](), [name for name in names if name in given]
    while waiting:
        wanted.add(name := waiting.pop())
        waiting += [name for name in taken_from_elsewhere(given[name]) if name in given]
        waiting = [name for name in waiting if name not in wanted]
    return list(dict.fromkeys(text for name, text in given.items() if name in wanted))


@lru_cache(maxsize=4_096)
def taken_from_elsewhere(source: str) -> frozenset[str]:
    """The names that code uses and neither binds nor finds in Python itself."""
    top = symtable.symtable(source, "<code>", "exec")
    used, waiting = set[str](), [top]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        used |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (table is top or symbol.is_global())
        }
    return frozenset(used - _bound(source) - set(dir(builtins)))


def _bound(source: str) -> set[str]:
    symbols = symtable.symtable(source, "<code>", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
