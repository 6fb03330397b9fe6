"""Checks for the exercises of the course.

This one file serves three readers of the same test cells:

* the student's notebook, where it lies beside the notebook as ``lesson_kit/checks.py``
  and a failed check prints one readable message instead of a traceback;
* the grader's tester, which imports it as ``lesson_kit.checks``;
* nbval, which re-runs the solved notebooks.

It needs numpy, and torch where results are tensors, so that a released lesson folder works
wherever those are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from . import setting
from .absent import NotInstalled
from .cells import not_run, watch
from .differences import (
    HAS_SHAPE,
    IS,
    NAMELESS,
    Says,
    Shown,
    as_numpy,
    difference,
    first_place,
    in_place_of,
    kind_of,
    told_apart,
    tolerance,
    where_they_differ,
    with_verb,
)
from .exceptions import unwritten
from .failures import (
    CheckFailed,
    ChecksFailed,
    Evidence,
    begin_cell,
    begin_part,
    parts,
    settle,
)
from .raised import show_exceptions_in_boxes, too_early
from .short_answers import check_answer
from .shown import show_pass
from .tensors import torch
from .words import N_, N_n, said, tr

__all__ = [
    "CheckFailed",
    "assert_close",
    "assert_equal",
    "assert_raises",
    "begin_cell",
    "check",
    "check_answer",
    "check_rng",
    "checks_passed",
    "parts",
    "probe",
]

Function = TypeVar("Function", bound=Callable[..., Any])


@contextmanager
def check(name: str, points: float, *, side: bool = False) -> Iterator[None]:
    """A named check with points of its own: the cell goes on when it fails.

    The cell ends with :func:`checks_passed`, which reports all that failed. The points of
    a cell's named checks add up to the cell's.

    Args:
        name: what is checked, in words for the student.
        points: what it is worth.
        side: a side condition, which counts once another check of the cell passes that is none.
    """
    part = begin_part(name, points, side=side)
    try:
        yield
    except Exception as error:
        if unwritten(error) or too_early(error) or isinstance(error, NotInstalled):
            begin_cell()
            raise
        part.fail(error)
    part.over = True


def probe(function: Function) -> Function:
    """Mark a function of a test cell as one that runs beside the student's code.

    In a notebook it changes nothing. The grader runs the body in the student's box,
    with plain data as arguments and result, and compares the result outside. The body
    may use its arguments, the names of the exercises, and ``np``, ``torch``, ``nn``, ``F``
    and ``math``; nothing else of the test cell.
    """
    return function


def check_rng() -> np.random.Generator:
    """A fresh generator for the inputs of a check; the grader chooses another seed."""
    setting.now.drawn = True
    return np.random.default_rng(setting.now.seed)


def checks_passed(exercise: str) -> None:
    """Tell the student that the visible checks of an exercise hold.

    Raises:
        ChecksFailed: some of the cell's named checks did not.
    """
    of_this_cell = settle(parts(), exercise)
    begin_cell()
    if any(part.error is not None for part in of_this_cell):
        raise ChecksFailed(of_this_cell)
    stale = not_run(exercise)
    if stale:
        raise CheckFailed(stale, tr("Mend it, run it, and then run this check again."))
    passed = N_("{exercise}: these checks pass. More of them run when your work is graded.")
    show_pass(tr(passed, exercise=exercise))


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def assert_close(
    actual: Any,
    expected: Any,
    message: str,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    precise: bool = False,
    name: str = "the result",
    against: str = "",
) -> None:
    """Fail with ``message`` unless ``actual`` equals ``expected`` up to rounding.

    Unlike ``np.allclose`` it never broadcasts: the kind (NumPy or torch) and the shape are
    compared first, each with a sentence of its own. ``actual`` must be floating when
    ``expected`` is. Where the formula is right and something is computed in single precision in
    place of double, only the checks that ask for precision fail.

    Args:
        actual: what the student's code returned.
        expected: a NumPy array, a torch tensor or a number.
        message: what to tell the student; names the likely mistake.
        rtol, atol: as in ``np.testing.assert_allclose``; see :func:`.differences.tolerance`.
        precise: ask for the precision of ``expected`` too, in dtype and in every number.
        name: what the value is called in the message.
        against: where ``expected`` comes of the student's code too, when: "for each text alone".
            It may be the wrong one, so the message does not say that it is expected.

    Raises:
        CheckFailed: what differs, and where.
        NotImplementedError: never of its own; a stub's passes through the caller.
    """
    allowed = rtol or 0.0

    def fail(detail: str, shown: Shown = (None, "")) -> None:
        evidence = Evidence.of("close", message, actual, allowed)
        raise CheckFailed(message, detail, evidence=evidence, shown=shown, against=against)

    unfit = _unfit(actual, expected, name, against, precise=precise)
    if unfit is not None:
        fail(with_verb(name, unfit))
    got, want = as_numpy(actual), as_numpy(expected)
    if got.size == 0:
        return
    rtol, atol = tolerance(got, want, (rtol, atol), precise=precise)
    if want.dtype == bool:
        same = got == want
    else:
        with np.errstate(all="ignore"):
            same = np.isclose(got.astype(float), want.astype(float), rtol=rtol, atol=atol)
    if same.all():
        return
    wrong = np.isnan(got) if np.isnan(got).any() else ~same
    first = first_place(wrong)
    shown = where_they_differ(got, want, first) if got.ndim else (None, "")
    fail(_how_they_differ(got, want, wrong, (name, against)), shown)


def _how_they_differ(
    got: np.ndarray, want: np.ndarray, wrong: np.ndarray, names: tuple[str, str]
) -> str:
    name, against = names
    if got.ndim == 0:
        return with_verb(name, in_place_of(IS, *told_apart(got, want), against))
    first = first_place(wrong)
    place: dict[str, object] = {"place": list(first)}
    if np.isnan(got).any():
        if np.isnan(want).any():
            both = N_("There is NaN in {name}, first at {place}, and in what it is compared with.")
            return tr(both, name=said(name), **place)
        return tr("There is NaN in {name}, first at {place}.", name=said(name), **place)
    number = int(wrong.sum())
    of = "" if name == NAMELESS else f" ({said(name)})"
    if want.dtype == bool:
        differ = N_("{number} of {size} values{of} differ; the first at {place}.")
        return tr(differ, number=number, size=wrong.size, of=of, **place)
    yours, right = told_apart(got[first], want[first])
    if against:
        differ = N_(
            "{number} of {size} values{of} differ by more than the check allows for rounding; the "
            "first at {place}: {yours}, and {right} {against}."
        )
    else:
        differ = N_(
            "{number} of {size} values{of} differ by more than the check allows for rounding; the "
            "first at {place}: {yours}, expected {right}."
        )
    shown = {"of": of, "yours": yours, "right": right, "against": said(against)}
    return tr(differ, number=number, size=wrong.size, **shown, **place)


_NO_GRADIENT = N_n(
    "is None: as far as torch knows, what was computed does not depend on it. Does every step stay "
    "in torch, without detach?",
    "are None: as far as torch knows, what was computed does not depend on it. Does every step "
    "stay in torch, without detach?",
)
_NONE = N_n(
    "is None. Does the function return its result?",
    "are None. Does the function return its result?",
)
_NO_TENSOR = N_n(
    "should be a torch tensor and is {kind}.", "should be a torch tensor and is {kind}."
)
_NO_ARRAY = N_n("should be a NumPy array and is {kind}.", "should be a NumPy array and is {kind}.")
_NO_NUMBER = N_n("should be a number and is {kind}.", "should be a number and is {kind}.")
_OBJECTS = N_n(
    "holds Python objects, not numbers (dtype object).",
    "hold Python objects, not numbers (dtype object).",
)
_NOT_REAL = N_n(
    "should hold real numbers and has dtype {dtype}.",
    "should hold real numbers and has dtype {dtype}.",
)
_NOT_BOOLEAN = N_n(
    "should be boolean and has dtype {dtype}.", "should be boolean and has dtype {dtype}."
)
_NOT_FLOATING = N_n(
    "should be floating and has dtype {dtype}.", "should be floating and has dtype {dtype}."
)
_LESS_PRECISE = N_n(
    "has dtype {dtype}, less precise than the {other} it is computed from.",
    "have dtype {dtype}, less precise than the {other} it is computed from.",
)


def _unfit(actual: Any, expected: Any, name: str, against: str, *, precise: bool) -> Says | None:
    """Why a result cannot be compared number by number, or None."""
    if actual is None:
        return (_NO_GRADIENT if "gradient" in name else _NONE), {}
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            return _NO_TENSOR, {"kind": kind_of(actual)}
    elif isinstance(expected, np.ndarray) and expected.ndim:
        if not isinstance(actual, np.ndarray):
            return _NO_ARRAY, {"kind": kind_of(actual)}
    elif not (_is_plain_number(actual) or (isinstance(actual, np.ndarray) and not actual.ndim)):
        return _NO_NUMBER, {"kind": kind_of(actual)}
    got, want = as_numpy(actual), as_numpy(expected)
    if got.dtype == object:
        return _OBJECTS, {}
    if got.dtype.kind not in "biuf":
        return _NOT_REAL, {"dtype": got.dtype}
    if got.shape != want.shape:
        return in_place_of(HAS_SHAPE, got.shape, want.shape, against)
    if want.dtype == bool and got.dtype != bool:
        return _NOT_BOOLEAN, {"dtype": got.dtype}
    if want.dtype.kind == "f":
        if got.dtype.kind != "f":
            return _NOT_FLOATING, {"dtype": got.dtype}
        # Half precision in place of more is another result, not the same with fewer digits.
        least = want.dtype.itemsize if precise else min(want.dtype.itemsize, 4)
        if want.ndim and got.dtype.itemsize < least:
            return _LESS_PRECISE, {"dtype": got.dtype, "other": want.dtype}
    return None


def assert_equal(
    actual: Any, expected: Any, message: str, *, name: str = "the result", against: str = ""
) -> None:
    """Fail with ``message`` unless ``actual`` is exactly ``expected``, also in type.

    For arrays and tensors: the same kind, shape, dtype and values. For containers: the
    same type, length and items. ``against`` is as in :func:`assert_close`.

    Raises:
        CheckFailed: what differs.
    """
    differs = difference(actual, expected, name, against)
    if differs is not None:
        evidence = Evidence.of("equal", message + _in_words(expected), actual)
        raise CheckFailed(message, differs[0], evidence=evidence, shown=differs[1], against=against)


def _in_words(expected: Any) -> str:
    """What was expected, where no processor can change a digit of it; else nothing.

    One message may stand over several inputs: the same wrong result says another thing at each.
    """
    if isinstance(expected, (list, tuple)):
        words = [_in_words(item) for item in expected]
        return f"|{'|'.join(words)}|" if all(words) else ""
    return f" {expected!r}" if isinstance(expected, (str, int, type(None))) else ""


@contextmanager
def assert_raises(error: type[Exception], message: str) -> Iterator[None]:
    """Fail with ``message`` unless the body raises ``error`` (or a subclass of it)."""
    try:
        yield
    except error:
        return
    except Exception as other:
        if unwritten(other):
            raise
        kind = type(other).__name__
        raise CheckFailed(
            message,
            tr(
                "It raised {kind} ({text}) where {wanted} is asked for.",
                kind=kind,
                text=other,
                wanted=error.__name__,
            ),
            evidence=Evidence.of("raises", message, other),
        ) from None
    raise CheckFailed(
        message,
        tr("Nothing was raised where {wanted} is asked for.", wanted=error.__name__),
        evidence=Evidence.of("raises", message, None),
    )


watch(begin_cell)
show_exceptions_in_boxes()
