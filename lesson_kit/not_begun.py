"""A cell that waits for an answer which is not written yet: told in a grey box, and no figure.

A cell that calls a stub says so, and makes nothing. What comes below and uses that would raise
whatever an empty list raises, beside empty axes: it says what it waits for instead. It watches the
cells of a notebook's kernel; a cell that runs well is never touched.
"""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any

from .cells import asked_by_a_page, exercise_of_cell, namespace, source_of_cell

__all__ = ["watch"]

#: What cells should have made, by name: the answer that each waited for, and the cell's source.
_waiting: dict[str, tuple[str, str]] = {}
#: What the running cell waits for.
_now = [""]
#: How an exception was shown before.
_given: list[Any] = [None]


def watch() -> None:
    """From now on tell what waits in this kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is not None:
        shell.events.register("pre_run_cell", _before)
        shell.events.register("post_run_cell", _after)


def _before(info: Any) -> None:
    """Stand before what shows exceptions in boxes, which begins with the setup cell."""
    shell = sys.modules["IPython"].get_ipython()
    _now[0] = ""
    if shell.custom_exceptions and shell.CustomTB is not _given[-1]:
        _given[:] = [shell.CustomTB]
        shell.set_custom_exc(shell.custom_exceptions, _show)
        _given.append(shell.CustomTB)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    made = "" if exercise_of_cell() or not isinstance(error, Exception) else _made_above()
    _now[0] = "" if exercise_of_cell() else _stub_in(error)
    if _now[0] or made or isinstance(error, NameError):  # it has run too early
        _close_figures()
    if _now[0] or not made:
        _given[0](kind, error, trace, tb_offset)
        return
    from .shown import NOTHING, as_html, paragraph, show_box
    from .words import tr

    _now[0], _ = _waiting[made]
    said = tr(
        "The cell above that makes `{made}` waits for `{answer}`. Once that is written, run it "
        "again, and then this one.",
        made=made,
        answer=_now[0],
    )
    if show_box(paragraph(as_html(said)), [said], headline=tr("Not yet.")):
        short = [NOTHING] if asked_by_a_page() else [said]
        error._render_traceback_ = lambda: short  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _after(result: Any) -> None:
    source = str(getattr(result.info, "raw_cell", ""))
    for name in _made_by(source):
        if _now[0]:
            _waiting[name] = _now[0], source
        elif result.success:
            _waiting.pop(name, None)


def _made_above() -> str:
    """A name that the running cell uses and that another cell did not make; or ""."""
    source = source_of_cell()
    waiting = [name for name, kind in _names(source) if kind is ast.Load]
    used, known = set[str](), namespace()
    while waiting:
        name = waiting.pop()
        value = known.get(name)
        if name not in used and isinstance(value, FunctionType) and value.__globals__ is known:
            waiting.extend(_looked_up(value.__code__))
        used.add(name)
    others = {name for name, (_, cell) in _waiting.items() if cell != source}
    return min(used & others, default="")


def _looked_up(code: CodeType) -> Iterator[str]:
    """Names outside of it that a function uses, in itself or in functions of it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _looked_up(constant)


def _stub_in(error: BaseException) -> str:
    """The answer whose stub raised, or ""."""
    from .exceptions import in_a_cell, unwritten

    if not unwritten(error):
        return ""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    inside = [code.co_qualname for code in codes if in_a_cell(code.co_filename)]
    return inside[-1].partition(".")[0].strip("<>") if inside[1:] else ""


def _names(source: str) -> Iterator[tuple[str, type]]:
    """The names of a cell, each with whether it is taken or bound; none where it is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, type(node.ctx)


def _made_by(source: str) -> set[str]:
    """What a cell should make: the names that it binds, and those of which it changes a part."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    made = {name for name, kind in _names(source) if kind is ast.Store}
    for node in ast.walk(tree):
        part = node.value if isinstance(node, ast.Expr) else node
        if isinstance(part, ast.Call) and part is not node:  # losses.append(...), alone in its line
            made |= _root(part.func)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            made |= _root(node)
    known = namespace()
    return {name for name in made if not isinstance(known.get(name), ModuleType)}


def _root(node: ast.expr) -> set[str]:
    """The name of the value that a part belongs to."""
    if not isinstance(node, (ast.Attribute, ast.Subscript)):
        return set()
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _close_figures() -> None:
    """Half a figure would be shown below the box."""
    plots = sys.modules.get("matplotlib.pyplot")
    if plots is not None:
        plots.close("all")
