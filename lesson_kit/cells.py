"""What ran in this notebook so far, as far as a check has to know it.

A check that passes says nothing of a cell that did not run, and a check that fails may fail because
of another exercise; both are known only to whoever watched the cells.
"""

from __future__ import annotations

import ast
import re
import sys
import time
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from .exceptions import unwritten
from .words import N_, N_n, tr, tr_n

__all__ = [
    "asked_by_a_page",
    "choice_in",
    "exercise_of_cell",
    "in_notebook",
    "not_run",
    "not_yet_right",
    "source_of",
    "watch",
]

_DEFINES = re.compile(r"^(?:(?:async\s+)?def|class)\s+(\w+)|^(\w+)\s*=(?!=)", re.M)
_CHECKS = re.compile(r"""(?:checks_passed|check_answer)\(["'](\w+)["']""")


class _Cells:
    """What is known of the cells that ran, by the name that a cell defines or checks."""

    def __init__(self) -> None:
        self.running = ""
        self.began = 0.0
        self.before: dict[str, Any] = {}
        #: Why the last cell that should define a name did not.
        self.not_run: dict[str, str] = {}
        #: The last source that defined a name.
        self.sources: dict[str, str] = {}
        #: What an exercise's check looked at when it last failed.
        self.wrong: dict[str, Any] = {}


_cells = _Cells()
_nothing = object()


def _shell() -> Any:
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    return getattr(_shell(), "kernel", None) is not None


def choice_in(source: str) -> str:
    """The short answer that a cell gives, such as ``answer_mask``, or ""."""
    return next((name for name in defined_in(source) if name.startswith("answer_")), "")


def asked_by_a_page() -> bool:
    """Whether a person's page asked for the running cell: JupyterLab, Notebook and VS Code say
    which cell it is; what runs a notebook without showing it (nbclient, nbgrader) does not."""
    kernel = getattr(_shell(), "kernel", None)
    if kernel is None:
        return False
    try:
        return bool(kernel.get_parent("shell").get("metadata", {}).get("cellId"))
    except (AttributeError, TypeError):  # a kernel of another making
        return False


def namespace() -> dict[str, Any]:
    """The notebook's names; empty where there is none."""
    return getattr(_shell(), "user_ns", {})


def source_of_cell() -> str:
    """The source of the running cell, or ""."""
    if _cells.running:
        return _cells.running
    cells = namespace().get("In", [""])
    return cells[-1] if cells else ""


def seconds_of_cell() -> float:
    """Since the running cell began."""
    return time.monotonic() - _cells.began if _cells.running else 0.0


def exercise_of_cell() -> str:
    """The exercise whose checks the running cell holds, or ""."""
    checked = _CHECKS.findall(source_of_cell())
    return checked[-1] if checked else ""


def watch(begin: Callable[[], None]) -> None:
    """Watch the cells of this notebook from now on; in a plain interpreter do nothing.

    Args:
        begin: called before every cell.
    """
    shell = _shell()
    if shell is None:
        return

    def before(info: Any) -> None:
        begin()
        _before(str(info.raw_cell))

    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", _after)


def _before(source: str) -> None:
    _cells.running = source
    _cells.began = time.monotonic()
    _cells.before = {name: namespace().get(name, _nothing) for name in defined_in(source)}


def _after(result: Any) -> None:
    info = getattr(result, "info", None)
    source = str(getattr(info, "raw_cell", ""))
    error = result.error_before_exec or result.error_in_exec
    if source != _cells.running:  # the cell that began the watch, or one of another kernel
        _before(source)
        _cells.before = {}
    checked = exercise_of_cell()
    _cells.running = ""
    if checked:
        _note_check(checked, error)
        return
    for name in defined_in(source):
        now = namespace().get(name, _nothing)
        if error is None or (name in _cells.before and now is not _cells.before[name]):
            _cells.not_run.pop(name, None)
            _cells.sources[name] = source
        else:
            _cells.not_run[name] = _told(error)


def _note_check(exercise: str, error: BaseException | None) -> None:
    if error is None or unwritten(error):
        _cells.wrong.pop(exercise, None)
    elif isinstance(error, Exception):  # and not stopped by hand
        _cells.wrong[exercise] = namespace().get(exercise, _nothing)


def _told(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        line = tr("line {number}", number=error.lineno)
        return f"{type(error).__name__}: {error.msg} ({line})"
    return f"{type(error).__name__}: {str(error)[:300]}"


def defined_in(source: str) -> list[str]:
    """The names that a cell defines at its top, also where it is not valid Python."""
    return list(
        dict.fromkeys(defined or assigned for defined, assigned in _DEFINES.findall(source))
    )


def not_run(exercise: str) -> str:
    """That the cell of an exercise did not run the last time, in a sentence; or ""."""
    why = _cells.not_run.get(exercise, "")
    if not why:
        return ""
    earlier = exercise in namespace()
    what = tr(" What is checked here is what you had before.") if earlier else ""
    stopped = N_("The last cell that defines `{exercise}` did not run. {why}.{what}")
    return tr(stopped, exercise=exercise, why=why, what=what)


def source_of(name: str) -> str:
    """The source of the cell that defined a name last, or ""."""
    return _cells.sources.get(name, "")


def not_yet_right(exercise: str) -> str:
    """That an exercise builds on others whose checks do not pass, in a sentence; or "".

    Only what is certain: their check failed on the very function that is used now, by the
    answer itself or by the check.
    """
    used = {*_used_by(namespace().get(exercise), set()), *_names(source_of_cell())}
    wrong = [
        name
        for name, looked_at in _cells.wrong.items()
        if name != exercise and name in used and namespace().get(name) is looked_at
    ]
    if not wrong:
        return ""
    names = tr(" and ").join(f"`{name}`" for name in wrong)
    singular, plural = N_n(
        "{names} does not pass yet: mend that first.", "{names} do not pass yet: mend that first."
    )
    return tr_n(singular, plural, len(wrong), names=names)


def _names(source: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()


def _used_by(value: Any, been: set[int]) -> set[str]:
    """The names of the notebook that a function or class uses, also through others."""
    used: set[str] = set()
    if id(value) in been:
        return used
    been.add(id(value))
    for function in _functions(value):
        for name in _names_in(function.__code__):
            used.add(name)
            if function.__globals__ is namespace():
                used |= _used_by(namespace().get(name), been)
    return used


def _functions(value: Any) -> Iterator[FunctionType]:
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, type) and value.__module__ == "__main__":
        yield from (
            attribute for attribute in vars(value).values() if isinstance(attribute, FunctionType)
        )


def _names_in(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names
