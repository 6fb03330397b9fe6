"""What a student sees when a cell raises: a box, not a wall of traceback.

An accident of every day is told calmly: no answer is wrong, something just was not run.

IPython is asked to show an exception that ends a cell of checks this way, and an accident in any
cell; everything else looks as always, and ``%tb`` still shows the whole traceback.
"""

from __future__ import annotations

import linecache
import textwrap
import traceback
from types import FrameType, TracebackType
from typing import Any

from .absent import NotInstalled
from .advice import advice
from .cells import (
    asked_by_a_page,
    choice_in,
    defined_in,
    exercise_of_cell,
    in_notebook,
    namespace,
    not_run,
    source_of_cell,
)
from .evidence import evidence_of
from .exceptions import in_a_cell, lines_of, unwritten
from .failures import CheckFailed, begin_cell, parts
from .known_mistakes import exercises_known
from .shown import NOTHING, WIDTH, as_html, paragraph, piece_of, show_box, within_view
from .words import N_, said, tr

__all__ = ["accident", "show_exceptions_in_boxes", "too_early"]


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
        first = _in_a_box(exercise, error)
        if first:
            short = [NOTHING] if asked_by_a_page() else textwrap.wrap(first, WIDTH)
            error._render_traceback_ = lambda: short  # type: ignore[attr-defined]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _in_a_box(exercise: str, error: BaseException) -> str:
    """Show what is to be said of an exception in a box; its first sentence, or "" for none."""
    passed = sum(part.points for part in parts() if part.over and part.error is None)
    headline, advised = accident(error, exercise)
    if headline and (isinstance(error, NameError) or not not_run(exercise)):
        show_box(paragraph(as_html(advised)), [advised], passed, headline=headline)
        return advised
    if not exercise or not isinstance(error, Exception):
        return ""
    lines = what_was_raised(exercise, error)
    pieces = [piece_of(lines[0], strong=True), *map(piece_of, lines[1:])]
    show_box(within_view(pieces), lines, passed)
    return lines[0]


def what_was_raised(exercise: str, error: BaseException) -> list[str]:
    """An exception in a few lines: what is known of it, what it says, and where it arose."""
    if unwritten(error):
        written = str(error) or tr(_NOT_WRITTEN, exercise=exercise)
        return [line for line in (not_run(exercise), written) if line]
    known = advice(exercise, evidence_of(error), begin_cell, parts)
    lines = [known] if known else []
    lines += map(said, lines_of(error))
    return [*lines, tr("%tb in a cell of its own shows the whole traceback.")]


_NOT_WRITTEN = N_("{exercise} is not written yet: it raises NotImplementedError.")
_NO_SETUP = N_(
    "The setup cell has not run since Python was started: it is the first cell with code. Run it, "
    "then the cells above that you need, then this one. (`Run > Run All Above Selected Cell` runs "
    "everything up to here, with what is trained on the way.)"
)
_BEFORE_ITS_CHECK = N_(
    "`{name}` is not there yet: run the cell in which you write it, then this check."
)
_USED_TOO_EARLY = N_(
    "`{name}` is used here and is not there yet: run the cell in which you write it, then this one."
)
_NOT_THERE = N_(
    "`{name}` is not there yet. If a cell further up makes it, run that one first (`Run > Run All "
    "Above Selected Cell` runs everything up to here). If none does, is it a typing error?"
)
_CLAIM = N_(
    "Line {line} claims: `{claim}`. In a cell that came with the course it should hold once every "
    "check above it passes, and every cell above it has run once, in order. In a cell of your own: "
    "the claim, or what it speaks of, is wrong."
)


def accident(error: BaseException, exercise: str) -> tuple[str, str]:
    """A headline and what to do, where an exception says only that a cell ran too early, was
    stopped, or lacks its quotes or a library; else two empty texts.

    Args:
        error: with its traceback.
        exercise: whose checks the running cell holds, or "".
    """
    if isinstance(error, KeyboardInterrupt):
        return tr("Stopped by hand."), _where_it_was(error)
    if isinstance(error, NotInstalled):
        return tr("This cell cannot run here."), said(str(error))
    if unwritten(error):
        return _unwritten(error, exercise)
    if isinstance(error, NameError) and error.name:
        missing = _missing(error, error.name, exercise)
        return (tr("This cell could not run yet."), missing) if missing else ("", "")
    if isinstance(error, AssertionError) and not exercise:
        return _claim(error)
    return "", ""


def too_early(error: BaseException) -> bool:
    """Whether an exercise of the notebook is used whose cell has not run since Python started."""
    if not isinstance(error, NameError) or not in_notebook():
        return False
    return error.name in exercises_known() and error.name not in namespace()


def _missing(error: NameError, name: str, exercise: str) -> str:
    if name in namespace():  # a local name of a function
        return ""
    choice = choice_in(source_of_cell())
    if choice and not exercise:
        return tr(
            'A choice stands between quotes: `{choice} = "{name}"`.', choice=choice, name=name
        )
    if not {"checks_passed", "check_answer"} & set(namespace()):
        return tr(_NO_SETUP)
    if any(made.startswith("guess_") for made in defined_in(source_of_cell())):
        return tr('A word stands between quotes: `"{name}"`.', name=name)
    if name == exercise:
        return not_run(exercise) or tr(_BEFORE_ITS_CHECK, name=name)
    frames = _own_frames(error)
    if name in exercises_known():
        return not_run(name) or tr(_USED_TOO_EARLY, name=name)
    if not frames or frames[-1][0].f_code.co_name != "<module>":
        return ""
    return tr(_NOT_THERE, name=name)


def _unwritten(error: BaseException, exercise: str) -> tuple[str, str]:
    """A stub that was called, in a check or in any other cell."""
    inside = [frame for frame, _ in _own_frames(error) if frame.f_code.co_name != "<module>"]
    name = inside[-1].f_code.co_qualname.partition(".")[0] if inside else exercise
    if exercise.startswith("answer_"):
        return tr("{exercise}: not answered yet.", exercise=exercise), str(error)
    if exercise and (name == exercise or not inside):
        written = tr(_NOT_WRITTEN, exercise=exercise)
        return tr("{exercise}: not written yet.", exercise=exercise), str(error) or written
    if not inside:
        return "", ""
    first = tr("`{name}` is used here and is not written yet: write it first.", name=name)
    return tr("Not yet."), first


def _claim(error: AssertionError) -> tuple[str, str]:
    """A claim that a demonstration asserts and that does not hold now."""
    innermost = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1:]
    frames = _own_frames(error)
    if not frames or frames[-1][0] is not innermost[0]:
        return "", ""  # a library's own assertion: its traceback says more
    frame, line = frames[-1]
    claim = linecache.getline(frame.f_code.co_filename, line).strip()
    its = f"{error} " if str(error) else ""
    return tr("A claim does not hold."), its + tr(_CLAIM, line=line, claim=claim)


def _own_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """Where an exception passed through cells of the notebook, the innermost last."""
    return [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if in_a_cell(frame.f_code.co_filename)
    ]


def _where_it_was(error: BaseException) -> str:
    frames = _own_frames(error)
    if not frames:
        return tr("What was computed before is still there.")
    frame, line = frames[-1]
    source = linecache.getline(frame.f_code.co_filename, line).strip()
    where = N_("It was at line {line}, `{source}`. What was computed before is still there.")
    return tr(where, line=line, source=source)
