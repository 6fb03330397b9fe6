"""Checks for the exercises of the course.

This one file serves three readers of the same test cells:

* the student's notebook, where it lies beside the notebook as ``lesson/checks.py``
  and a failed check prints one readable message instead of a traceback;
* the grader's tester, which imports it as ``autograder.lesson.checks``;
* nbval, which re-runs the solved notebooks.

It needs numpy and torch and nothing else, so that a released lesson folder works
wherever those are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch

from . import setting
from .absent import NotInstalled
from .accidents import too_early
from .cells import not_run, watch
from .failures import (
    CheckFailed,
    ChecksFailed,
    Evidence,
    begin_cell,
    begin_part,
    parts,
    settle,
)
from .raised import show_exceptions_in_boxes
from .short_answers import check_answer
from .shown import show_pass
from .slices import Shown, where_they_differ
from .tolerance import tolerance
from .unwritten import unwritten

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
        raise CheckFailed(stale, "Mend it, run it, and then run this check again.")
    show_pass(f"{exercise}: these checks pass. More of them run when your work is graded.")


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return "a torch tensor"
    if isinstance(value, np.ndarray):
        return "a NumPy array"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    name = getattr(value, "type_name", type(value).__name__)  # a type_name stays in the box
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _to_numpy(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.dtype == torch.bfloat16:
            value = value.float()
        return value.numpy()
    return np.asarray(value)


def assert_close(
    actual: Any,
    expected: Any,
    message: str,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    precise: bool = False,
    name: str = "the result",
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
        rtol, atol: as in ``np.testing.assert_allclose``; see :func:`.tolerance.tolerance`.
        precise: ask for the precision of ``expected`` too, in dtype and in every number.
        name: what the value is called in the message.

    Raises:
        CheckFailed: what differs, and where.
        NotImplementedError: never of its own; a stub's passes through the caller.
    """
    allowed = rtol or 0.0

    def fail(detail: str, shown: Shown = (None, "")) -> None:
        evidence = Evidence.of("close", message, actual, allowed)
        raise CheckFailed(message, detail, evidence=evidence, arrays=shown[0], place=shown[1])

    unfit = _unfit(actual, expected, precise=precise)
    if unfit:
        fail(f"{name} {unfit}")
    got, want = _to_numpy(actual), _to_numpy(expected)
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
    if np.isnan(got).any() and not np.isnan(want).any():
        first = _first(np.isnan(got))
        detail = f"There is NaN in {name}, first at {list(first)}."
        fail(detail, where_they_differ(got, want, first))
    first = _first(~same)
    if got.ndim == 0:
        fail(f"{name} is {got:.6g} and should be {want:.6g}.")
    values = f": {got[first]:.6g}, expected {want[first]:.6g}" if want.dtype != bool else ""
    count = f"{int((~same).sum())} of {same.size} values differ"
    detail = f"{count}; the first at {list(first)}{values}."
    fail(detail, where_they_differ(got, want, first))


def _unfit(actual: Any, expected: Any, *, precise: bool) -> str:
    """Why a result cannot be compared number by number, or ""."""
    if actual is None:
        graph = " If it is a gradient: does every step stay in torch, without detach?"
        hint = graph if isinstance(expected, torch.Tensor) else ""
        return f"is None. Does the function return its result?{hint}"
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            return f"should be a torch tensor and is {_kind(actual)}."
    elif isinstance(expected, np.ndarray) and expected.ndim:
        if not isinstance(actual, np.ndarray):
            return f"should be a NumPy array and is {_kind(actual)}."
    elif not (_is_plain_number(actual) or (isinstance(actual, np.ndarray) and not actual.ndim)):
        return f"should be a number and is {_kind(actual)}."
    got, want = _to_numpy(actual), _to_numpy(expected)
    if got.dtype == object:
        return "holds Python objects, not numbers (dtype object)."
    if got.dtype.kind not in "biuf":
        return f"should hold real numbers and has dtype {got.dtype}."
    if got.shape != want.shape:
        return f"has shape {got.shape} and should have shape {want.shape}."
    if want.dtype == bool and got.dtype != bool:
        return f"should be boolean and has dtype {got.dtype}."
    if want.dtype.kind == "f":
        if got.dtype.kind != "f":
            return f"should be floating and has dtype {got.dtype}."
        # Half precision in place of more is another result, not the same with fewer digits.
        least = want.dtype.itemsize if precise else min(want.dtype.itemsize, 4)
        if want.ndim and got.dtype.itemsize < least:
            return f"has dtype {got.dtype}, less precise than the {want.dtype} it is computed from."
    return ""


def _first(where: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(where)[0])


def assert_equal(actual: Any, expected: Any, message: str, *, name: str = "the result") -> None:
    """Fail with ``message`` unless ``actual`` is exactly ``expected``, also in type.

    For arrays and tensors: the same kind, shape, dtype and values. For containers: the
    same type, length and items.

    Raises:
        CheckFailed: what differs.
    """
    difference = _difference(actual, expected, name)
    if difference is not None:
        detail, (arrays, place) = difference
        evidence = Evidence.of("equal", message + _in_words(expected), actual)
        raise CheckFailed(message, detail, evidence=evidence, arrays=arrays, place=place)


def _in_words(expected: Any) -> str:
    """What was expected, where no processor can change a digit of it; else nothing.

    One message may stand over several inputs: the same wrong result says another thing at each.
    """
    if isinstance(expected, (list, tuple)):
        words = [_in_words(item) for item in expected]
        return f"|{'|'.join(words)}|" if all(words) else ""
    return f" {expected!r}" if isinstance(expected, (str, int, type(None))) else ""


_Difference = tuple[str, Shown]
Facts = Mapping[object, bool]


def _difference(actual: Any, expected: Any, name: str) -> _Difference | None:
    """What differs first, in words and, where they are small, as a pair of arrays."""
    if type(actual) is not type(expected):
        kinds = _kind(actual), _kind(expected)
        if kinds[0] == kinds[1]:  # such as Python's bool and NumPy's
            kinds = str(type(actual)), str(type(expected))
        return f"{name} is {kinds[0]} and should be {kinds[1]}.", (None, "")
    if isinstance(expected, (np.ndarray, torch.Tensor)):
        if actual.dtype != expected.dtype:
            return f"{name} has dtype {actual.dtype} and should have {expected.dtype}.", (None, "")
        got, want = _to_numpy(actual), _to_numpy(expected)
        if got.shape != want.shape:
            return f"{name} has shape {got.shape} and should have shape {want.shape}.", (None, "")
        same = got == want
        if want.dtype.kind == "f":
            same |= np.isnan(got) & np.isnan(want)
        if not np.all(same):
            first = _first(~np.asarray(same))
            place = f", first at {list(first)}" if first else ""
            detail = f"There are other values in {name}{place}."
            return detail, where_they_differ(got, want, first)
        return None
    if isinstance(expected, (tuple, list)):
        if len(actual) != len(expected):
            items = "1 item" if len(actual) == 1 else f"{len(actual)} items"
            counted = f"{name}: {items} in place of {len(expected)}."
            return counted + _lacking(actual, expected), (None, "")
        pairs = [(f"item {n} of {name}", *pair) for n, pair in enumerate(zip(actual, expected))]
    elif isinstance(expected, dict):
        if set(actual) != set(expected):
            return f"the keys of {name} are {list(actual)}, not {list(expected)}.", (None, "")
        if all(type(value) is bool for value in (*actual.values(), *expected.values())):
            return _untrue(actual, expected, name)
        pairs = [(f"{name}[{key!r}]", actual[key], other) for key, other in expected.items()]
    else:
        if actual != expected:
            return f"{name} is {actual!r} and should be {expected!r}.", (None, "")
        return None
    for part, yours, wanted in pairs:
        difference = _difference(yours, wanted, part)
        if difference is not None:
            return difference
    return None


def _untrue(actual: Facts, expected: Facts, name: str) -> _Difference | None:
    """Which facts are not as they should be: the keys say them, the values whether they hold."""
    unmet = [str(fact) for fact in expected if actual[fact] < expected[fact]]
    forbidden = [str(fact) for fact in expected if actual[fact] > expected[fact]]
    of = "" if name == "the result" else f" ({name})"
    words = [
        f"{title}{of}: {'; '.join(facts)}."
        for title, facts in (("Does not hold", unmet), ("Holds and should not", forbidden))
        if facts
    ]
    return (" ".join(words), (None, "")) if words else None


def _lacking(actual: Sequence[Any], expected: Sequence[Any]) -> str:
    """Which names of a list are missing, and which are too many."""
    if not all(isinstance(name, str) for name in (*actual, *expected)):
        return ""
    missing = [name for name in expected if name not in actual]
    surplus = [name for name in actual if name not in expected]
    said = [f"Missing: {', '.join(missing[:8])}."] if missing else []
    said += [f"Too many: {', '.join(surplus[:8])}."] if surplus else []
    return "".join(f" {one}" for one in said)


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
            f"It raised {kind} ({other}) where {error.__name__} is asked for.",
            evidence=Evidence.of("raises", message, other),
        ) from None
    raise CheckFailed(
        message,
        f"Nothing was raised where {error.__name__} is asked for.",
        evidence=Evidence.of("raises", message, None),
    )


watch(begin_cell)
show_exceptions_in_boxes()
