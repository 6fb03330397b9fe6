"""What a student sees when their code raises inside a check: a box, not a wall of traceback.

IPython is asked to show an exception that ends a cell of checks this way, and an accident in any
cell; everything else looks as always, and ``%tb`` still shows the whole traceback.
"""

from __future__ import annotations

import textwrap
from types import TracebackType
from typing import Any

from .accidents import accident
from .advice import advice
from .cells import asked_by_a_page, exercise_of_cell, in_notebook, not_run
from .evidence import evidence_of
from .exceptions import lines_of
from .failures import CheckFailed, begin_cell, parts
from .shown import NOTHING, WIDTH, as_html, show_box
from .unwritten import unwritten

__all__ = ["show_exceptions_in_boxes"]


def show_exceptions_in_boxes() -> None:
    """Show exceptions of a notebook's cells of checks as boxes, and accidents in any cell;
    elsewhere change nothing."""
    if not in_notebook():
        return
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((Exception, KeyboardInterrupt), _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    exercise = exercise_of_cell()
    if not isinstance(error, CheckFailed):
        said = _in_a_box(exercise, error)
        if said:
            short = [NOTHING] if asked_by_a_page() else textwrap.wrap(said, WIDTH)
            error._render_traceback_ = lambda: short  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _in_a_box(exercise: str, error: BaseException) -> str:
    """Show what is to be said of an exception in a box; its first sentence, or "" for none."""
    passed = sum(part.points for part in parts() if part.over and part.error is None)
    headline, advised = accident(error, exercise)
    if headline and (isinstance(error, NameError) or not not_run(exercise)):
        show_box(f"<p>{as_html(advised)}</p>", [advised], passed, headline=headline)
        return advised
    if not exercise or not isinstance(error, Exception):
        return ""
    lines = what_was_raised(exercise, error)
    body = "".join(f"<p>{as_html(line)}</p>" for line in lines[1:])
    show_box(f"<p><strong>{as_html(lines[0])}</strong></p>{body}", lines, passed)
    return lines[0]


def what_was_raised(exercise: str, error: BaseException) -> list[str]:
    """An exception in a few lines: what is known of it, what it says, and where it arose."""
    if unwritten(error):
        said = str(error) or f"{exercise} is not written yet: it raises NotImplementedError."
        return [line for line in (not_run(exercise), said) if line]
    known = advice(exercise, evidence_of(error), begin_cell, parts)
    lines = [known] if known else []
    lines += lines_of(error)
    return [*lines, "%tb in a cell of its own shows the whole traceback."]
