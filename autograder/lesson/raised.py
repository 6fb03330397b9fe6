"""What a student sees when their code raises inside a check: a box, not a wall of traceback.

Lies beside every notebook as ``lesson_raised.py``. IPython is asked to show an exception that
ends a cell of checks this way; everything else looks as always, and ``%tb`` still shows the
whole traceback.
"""

from __future__ import annotations

import textwrap
import traceback
from types import TracebackType
from typing import Any

from autograder.lesson.failures import (
    CheckFailed,
    as_html,
    exercise_of_cell,
    in_notebook,
    known_error,
    show_box,
)

__all__ = ["show_exceptions_in_boxes"]


def show_exceptions_in_boxes() -> None:
    """Show exceptions of a notebook's cells of checks as boxes; elsewhere change nothing."""
    if not in_notebook():
        return
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((Exception,), _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    exercise = exercise_of_cell()
    if exercise and not isinstance(error, CheckFailed):
        lines = what_was_raised(exercise, error, trace)
        body = "".join(f"<p>{as_html(line)}</p>" for line in lines[1:])
        show_box(f"<p><strong>{as_html(lines[0])}</strong></p>{body}", "\n".join(lines))
        short = textwrap.wrap(lines[0], 88)
        error._render_traceback_ = lambda: short  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def what_was_raised(exercise: str, error: BaseException, trace: TracebackType | None) -> list[str]:
    """An exception in a few lines: what is known of it, what it says, and where it arose."""
    if isinstance(error, NotImplementedError):
        return [str(error) or f"{exercise} is not written yet: it raises NotImplementedError."]
    lines = []
    known = known_error(exercise, error)
    if known:
        lines.append(known)
    lines.append(f"It raised {type(error).__name__}: {str(error)[:500]}")
    frames = [one for one in traceback.extract_tb(trace) if one.name != "<module>"]
    cells = [one for one in frames if "ipykernel" in one.filename or "<ipython" in one.filename]
    if cells:
        last = cells[-1]
        lines.append(f"This was in {last.name}, line {last.lineno} of its cell: {last.line}")
    else:
        lines.append(
            "This was in the check itself, with what your code returned. Does it return what the "
            "card says?"
        )
    lines.append("%tb in a cell of its own shows the whole traceback.")
    return lines
