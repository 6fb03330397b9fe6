# Generated from autograder/checks.py by `autograder build`. Do not edit this copy.
"""Checks for the exercises of the course.

This one file serves three readers of the same test cells:

* the student's notebook, where it lies beside the notebook as ``lesson_checks.py``
  and a failed check prints one readable message instead of a traceback;
* the grader's tester, which imports it as ``autograder.checks``;
* nbval, which re-runs the solved notebooks.

It needs numpy and torch and nothing else, so that a released lesson folder works
wherever those are installed.
"""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

__all__ = [
    "CheckFailed",
    "assert_close",
    "assert_equal",
    "assert_raises",
    "check_answer",
    "check_rng",
    "checks_passed",
    "probe",
]

Function = TypeVar("Function", bound=Callable[..., Any])

#: Where ``check_answer`` finds the fingerprints of the short answers in a released lesson.
#: The tester gives it its own copy.
ANSWERS_FILE = "lesson_answers.json"

#: Seed of ``check_rng``. Fixed in the notebook, so that a failure can be looked into;
#: chosen anew by the grader.
_seed = 2017

_answers: dict[str, Any] | None = None


class CheckFailed(AssertionError):
    """A check did not hold. IPython prints the message without a traceback.

    Attributes:
        sentence: what the author of the check says to the student.
        details: what differs, with values.
    """

    def __init__(self, sentence: str, *details: str) -> None:
        super().__init__("\n".join([sentence, *(detail for detail in details if detail)]))
        self.sentence = sentence
        self.details = details

    def _render_traceback_(self) -> list[str]:
        width = 88
        lines = ["─" * width, "This check does not pass yet.", ""]
        for paragraph in str(self).split("\n"):
            if paragraph.startswith("  "):  # a table or an array: keep its columns
                lines.append(paragraph)
            else:
                lines.extend(textwrap.wrap(paragraph, width) or [""])
        return [*lines, "─" * width]


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
    return np.random.default_rng(_seed)


def set_seed(seed: int) -> None:
    """Choose the seed of :func:`check_rng` (called by the grader)."""
    global _seed
    _seed = seed


def set_answers(text: str | None) -> None:
    """Give the fingerprints of the short answers as JSON (called by the grader)."""
    global _answers
    _answers = None if text is None else json.loads(text)


def checks_passed(exercise: str) -> None:
    """Tell the student that the visible checks of an exercise hold."""
    print(f"{exercise}: these checks pass. More of them run when your work is graded.")


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


def _short(array: np.ndarray) -> str:
    with np.printoptions(precision=4, suppress=True, threshold=48, edgeitems=2, linewidth=76):
        return textwrap.indent(str(array), "  ")


def _fail(message: str, *details: str) -> None:
    raise CheckFailed(message, *details)


def _default_tolerance(expected: np.ndarray) -> tuple[float, float]:
    if expected.dtype == np.float16:
        return 2e-2, 2e-3
    if expected.dtype in (np.float32, np.complex64):
        return 1e-4, 1e-5
    return 1e-7, 1e-9


def assert_close(
    actual: Any,
    expected: Any,
    message: str,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    name: str = "the result",
) -> None:
    """Fail with ``message`` unless ``actual`` equals ``expected`` up to rounding.

    Unlike ``np.allclose`` it never broadcasts: the kind (NumPy or torch), the shape and
    the precision are compared first, each with a sentence of its own. ``actual`` must be
    floating when ``expected`` is, and at least as precise.

    Args:
        actual: what the student's code returned.
        expected: a NumPy array, a torch tensor or a number.
        message: what to tell the student; names the likely mistake.
        rtol, atol: as in ``np.testing.assert_allclose``; by default they follow the
            precision of ``expected`` (float64: 1e-7 and 1e-9; float32: 1e-4 and 1e-5).
        name: what the value is called in the message.

    Raises:
        CheckFailed: what differs, and where.
        NotImplementedError: never of its own; a stub's passes through the caller.
    """
    if actual is None:
        graph = " If it is a gradient: does every step stay in torch, without detach?"
        hint = graph if isinstance(expected, torch.Tensor) else ""
        _fail(message, f"{name} is None. Does the function return its result?{hint}")
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            _fail(message, f"{name} should be a torch tensor and is {_kind(actual)}.")
    elif isinstance(expected, np.ndarray) and expected.ndim:
        if not isinstance(actual, np.ndarray):
            _fail(message, f"{name} should be a NumPy array and is {_kind(actual)}.")
    elif not (_is_plain_number(actual) or (isinstance(actual, np.ndarray) and not actual.ndim)):
        _fail(message, f"{name} should be a number and is {_kind(actual)}.")

    got, want = _to_numpy(actual), _to_numpy(expected)
    if got.dtype == object:
        _fail(message, f"{name} holds Python objects, not numbers (dtype object).")
    if got.shape != want.shape:
        _fail(message, f"{name} has shape {got.shape} and should have shape {want.shape}.")
    if want.dtype == bool:
        if got.dtype != bool:
            _fail(message, f"{name} should be boolean and has dtype {got.dtype}.")
    elif want.dtype.kind == "f":
        if got.dtype.kind != "f":
            _fail(message, f"{name} should be floating and has dtype {got.dtype}.")
        if want.ndim and got.dtype.itemsize < want.dtype.itemsize:
            _fail(
                message,
                f"{name} has dtype {got.dtype}, less precise than the {want.dtype} it is "
                "computed from.",
            )
    if got.size == 0:
        return

    default_rtol, default_atol = _default_tolerance(want)
    rtol = default_rtol if rtol is None else rtol
    atol = default_atol if atol is None else atol
    if want.dtype == bool:
        same = got == want
    else:
        with np.errstate(all="ignore"):
            same = np.isclose(got.astype(float), want.astype(float), rtol=rtol, atol=atol)
    if same.all():
        return
    if np.isnan(got).any() and not np.isnan(want).any():
        first = tuple(int(i) for i in np.argwhere(np.isnan(got))[0])
        _fail(message, f"{name} holds NaN, first at {list(first)}.", *_side_by_side(got, want))
    first = tuple(int(i) for i in np.argwhere(~same)[0])
    place = f" at {list(first)}" if first else ""
    _fail(
        message,
        f"{int((~same).sum())} of {same.size} values differ; the first{place}: "
        f"{got[first]:.6g}, expected {want[first]:.6g}."
        if want.dtype != bool
        else f"{int((~same).sum())} of {same.size} values differ; the first{place}.",
        *_side_by_side(got, want),
    )


def _side_by_side(got: np.ndarray, want: np.ndarray) -> list[str]:
    if got.ndim == 0 or got.size > 64 or got.ndim > 2:
        return []
    return ["Yours:", _short(got), "Expected:", _short(want)]


def assert_equal(actual: Any, expected: Any, message: str, *, name: str = "the result") -> None:
    """Fail with ``message`` unless ``actual`` is exactly ``expected``, also in type.

    For arrays and tensors: the same kind, shape, dtype and values. For containers: the
    same type, length and items.

    Raises:
        CheckFailed: what differs.
    """
    if type(actual) is not type(expected):
        kinds = _kind(actual), _kind(expected)
        if kinds[0] == kinds[1]:  # such as Python's bool and NumPy's
            kinds = str(type(actual)), str(type(expected))
        _fail(message, f"{name} is {kinds[0]} and should be {kinds[1]}.")
    if isinstance(expected, (np.ndarray, torch.Tensor)):
        if actual.dtype != expected.dtype:
            _fail(message, f"{name} has dtype {actual.dtype} and should have {expected.dtype}.")
        got, want = _to_numpy(actual), _to_numpy(expected)
        if got.shape != want.shape:
            _fail(message, f"{name} has shape {got.shape} and should have shape {want.shape}.")
        if not np.array_equal(got, want, equal_nan=want.dtype.kind == "f"):
            _fail(message, f"{name} has other values.", *_side_by_side(got, want))
    elif isinstance(expected, (tuple, list)):
        if len(actual) != len(expected):
            _fail(message, f"{name} has {len(actual)} items and should have {len(expected)}.")
        for position, (one, other) in enumerate(zip(actual, expected)):
            assert_equal(one, other, message, name=f"item {position} of {name}")
    elif isinstance(expected, dict):
        if set(actual) != set(expected):
            _fail(message, f"{name} has the keys {list(actual)}, not {list(expected)}.")
        for key, other in expected.items():
            assert_equal(actual[key], other, message, name=f"{name}[{key!r}]")
    elif actual != expected:
        _fail(message, f"{name} is {actual!r} and should be {expected!r}.")


@contextmanager
def assert_raises(error: type[Exception], message: str) -> Iterator[None]:
    """Fail with ``message`` unless the body raises ``error`` (or a subclass of it)."""
    try:
        yield
    except error:
        return
    except NotImplementedError:
        raise
    except Exception as other:
        kind = type(other).__name__
        _fail(message, f"It raised {kind} ({other}) where {error.__name__} is asked for.")
    _fail(message, f"Nothing was raised where {error.__name__} is asked for.")


def _canonical_answer(value: Any) -> str:
    """One spelling for all answers that mean the same."""
    if isinstance(value, str):
        return value.strip().lower()
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, float, np.number)):
        return f"{float(value):.6g}"
    if isinstance(value, (set, frozenset, list, tuple)):
        return ",".join(sorted(str(item).strip().lower() for item in value))
    return f"?{type(value).__name__}"


def _sealing_bytes(purpose: str, exercise: str, value: Any, length: int) -> bytes:
    text = f"{purpose}|{exercise}|{_canonical_answer(value)}"
    return hashlib.shake_256(text.encode()).digest(length)


def seal_reply(exercise: str, value: Any, right: bool, reason: str) -> tuple[str, str]:
    """What a released lesson holds about one choice: a fingerprint and a sealed reply.

    The reply can be read by whoever gives that answer, and not by looking at the file.
    """
    reply = ("+" if right else "-").encode() + reason.encode()
    stream = _sealing_bytes("reply", exercise, value, len(reply))
    sealed = bytes(one ^ other for one, other in zip(reply, stream)).hex()
    return _sealing_bytes("fingerprint", exercise, value, 10).hex(), sealed


def _open_reply(exercise: str, value: Any, sealed: str) -> tuple[bool, str]:
    data = bytes.fromhex(sealed)
    stream = _sealing_bytes("reply", exercise, value, len(data))
    reply = bytes(one ^ other for one, other in zip(data, stream)).decode()
    return reply[0] == "+", reply[1:]


def check_answer(exercise: str, value: Any) -> None:
    """Check a short answer; a wrong choice is answered with the reason it is wrong.

    Raises:
        NotImplementedError: the answer is still ``None``.
        CheckFailed: with the reason.
    """
    if value is None:
        raise NotImplementedError(f"{exercise} is still None: put your choice there.")
    answers = _answers
    if answers is None:
        path = Path(ANSWERS_FILE)
        if not path.exists():
            raise FileNotFoundError(
                f"{path} is missing. It belongs beside the notebook: copy the whole lesson folder."
            )
        answers = json.loads(path.read_text(encoding="utf-8"))
    known: dict[str, Any] = answers[exercise]
    sealed = known["replies"].get(_sealing_bytes("fingerprint", exercise, value, 10).hex())
    if sealed is None:
        _fail(f"{exercise} = {value!r} is none of the choices: {known['choices']}.")
    right, reason = _open_reply(exercise, value, sealed)
    if not right:
        _fail(f"{exercise} = {value!r} is not it. {reason}")
    print(f"{exercise}: right. {reason}")
