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
import html
import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from lesson_fingerprints import agree, fingerprint

__all__ = [
    "CheckFailed",
    "assert_close",
    "assert_equal",
    "assert_raises",
    "check",
    "check_answer",
    "check_rng",
    "checks_passed",
    "probe",
]

Function = TypeVar("Function", bound=Callable[..., Any])

#: Where ``check_answer`` finds the fingerprints of the short answers in a released lesson.
#: The tester gives it its own copy.
ANSWERS_FILE = "lesson_answers.json"

#: Where a failed check finds the fingerprints of known mistakes in a released lesson.
#: The tester looks them up itself.
MISTAKES_FILE = "lesson_mistakes.json"

#: Seed of ``check_rng``. Fixed in the notebook, so that a failure can be looked into;
#: chosen anew by the grader.
_seed = 2017

_answers: dict[str, Any] | None = None

_look_up_mistakes = True


@dataclass(frozen=True)
class Evidence:
    """What a failed check saw, as far as it is needed to recognise a known mistake.

    Attributes:
        check: names the check; the same for everybody.
        got: fingerprint of the student's result.
        tolerance: relative, that the check allows.
    """

    check: str
    got: Any
    tolerance: float = 0.0

    @classmethod
    def of(cls, kind: str, message: str, value: Any, tolerance: float = 0.0) -> Evidence:
        """The evidence of a check of some kind with this message."""
        name = hashlib.sha256(f"{kind}|{message}".encode()).hexdigest()[:12]
        return cls(name, fingerprint(value), tolerance)

    def is_that_of(self, check: str, got: Any) -> bool:
        """Whether it is what a known mistake leaves at that check."""
        return self.check == check and agree(self.got, got, self.tolerance)


class CheckFailed(AssertionError):
    """A check did not hold. IPython shows a box and no traceback.

    Attributes:
        sentence: what the author of the check says to the student.
        details: what differs, with values.
        evidence: by which a known mistake is recognised, or None.
        arrays: the student's array and the expected one where they are small, or None.
        diagnosis: the sentence of the known mistake whose result this is, or "".
    """

    def __init__(
        self,
        sentence: str,
        *details: str,
        evidence: Evidence | None = None,
        arrays: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.sentence = sentence
        self.details = tuple(detail for detail in details if detail)
        self.evidence = evidence
        self.arrays = arrays
        self.diagnosis = _known_mistake(evidence)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """The message as plain text."""
        found = [self.diagnosis] if self.diagnosis else []
        found += [self.sentence, *self.details]
        if self.arrays is not None:
            found += ["Yours:", _short(self.arrays[0]), "Expected:", _short(self.arrays[1])]
        return found

    def html(self) -> str:
        """The message as a box for a notebook."""
        parts = []
        if self.diagnosis:
            parts.append(f"<p><strong>{html.escape(self.diagnosis)}</strong></p>")
        parts.append(f"<p>{html.escape(self.sentence)}</p>")
        parts += [f"<p>{html.escape(detail)}</p>" for detail in self.details]
        if self.arrays is not None:
            parts.append(_tables(*self.arrays))
        return "".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback; a notebook also gets a box."""
        width = 88
        text = ["─" * width, "This check does not pass yet.", ""]
        for paragraph in str(self).split("\n"):
            if paragraph.startswith("  "):  # a table or an array: keep its columns
                text.append(paragraph)
            else:
                text.extend(textwrap.wrap(paragraph, width) or [""])
        text.append("─" * width)
        if not _show_box(self.html(), "\n".join(text)):
            return text
        # The box says the rest; what validates a notebook reads these lines.
        return textwrap.wrap(self.diagnosis or self.sentence, width)


def _show_box(body: str, text: str) -> bool:
    """Show a box below the cell; False where there is no notebook to show it in."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return False
    from IPython.display import publish_display_data

    box = (
        '<div role="alert" style="border:1px solid #b2182b;border-left-width:6px;'
        'padding:.2em 1em;margin:.3em 0;max-width:60em;line-height:1.45">'
        f"<p>✗ This check does not pass yet.</p>{body}</div>"
    )
    publish_display_data({"text/html": box, "text/plain": text})
    return True


def _tables(got: np.ndarray, want: np.ndarray) -> str:
    """Two small arrays side by side; values that differ are framed and marked."""
    got, want = np.atleast_2d(got), np.atleast_2d(want)
    if want.dtype == bool:
        same = got == want
    else:
        with np.errstate(all="ignore"):
            same = np.isclose(got.astype(float), want.astype(float), rtol=1e-4, atol=1e-6)
    tables = []
    for name, array in (("yours", got), ("expected", want)):
        rows = []
        for values, row in zip(array, same):
            cells = []
            for value, fits in zip(values, row):
                shown = html.escape(str(value) if want.dtype == bool else f"{value:.4g}")
                style = "padding:.1em .5em;text-align:right"
                if not fits and name == "yours":
                    style += ";border:2px solid #b2182b"
                    shown += " ≠"
                cells.append(f'<td style="{style}">{shown}</td>')
            rows.append(f"<tr>{''.join(cells)}</tr>")
        tables.append(
            f'<table style="display:inline-table;margin-right:2em"><caption>{name}</caption>'
            f"{''.join(rows)}</table>"
        )
    return f"<div>{''.join(tables)}</div>"


def _known_mistake(evidence: Evidence | None) -> str:
    """The sentence of the known mistake that leaves this evidence, or "".

    Looked up beside the notebook only. Where two mistakes look the same at this check,
    both are said.
    """
    path = Path(MISTAKES_FILE)
    if evidence is None or not _look_up_mistakes or not path.exists():
        return ""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        found = [
            one["sentence"]
            for one in known.get(evidence.check, [])
            if evidence.is_that_of(evidence.check, one["got"])
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""  # a damaged file costs the diagnosis, not the check
    return " Or: ".join(found[:2]) if len(found) <= 2 else ""


@dataclass
class Part:
    """A named check in a test cell: what it is worth and what came of it."""

    name: str
    points: float
    error: Exception | None = None
    over: bool = False


_parts: list[Part] = []


def begin_cell() -> None:
    """Forget the named checks of an earlier cell."""
    _parts.clear()


def parts() -> list[Part]:
    """The named checks of the cell so far, in order."""
    return list(_parts)


@contextmanager
def check(name: str, points: float) -> Iterator[None]:
    """A named check with points of its own: the cell goes on when it fails.

    The cell ends with :func:`checks_passed`, which reports all that failed. The points of
    a cell's named checks add up to the cell's.

    Args:
        name: what is checked, in words for the student.
        points: what it is worth.
    """
    if _parts and _parts[-1].over and any(part.name == name for part in _parts):
        begin_cell()  # the cell is run again in a notebook
    part = Part(name, points)
    _parts.append(part)
    try:
        yield
    except NotImplementedError:
        begin_cell()
        raise
    except Exception as error:
        part.error = error
    part.over = True


class ChecksFailed(CheckFailed):
    """Some of a cell's named checks did not hold."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.failed = failed = [part for part in parts if part.error is not None]
        super().__init__(f"{len(failed)} of {len(parts)} checks do not pass yet.")
        self.diagnosis = next(
            (
                part.error.diagnosis
                for part in failed
                if isinstance(part.error, CheckFailed) and part.error.diagnosis
            ),
            "",
        )
        self.args = ("\n".join(self.lines()),)

    def lines(self) -> list[str]:
        """The message as plain text."""
        found = [self.sentence]
        for part in self.failed:
            found.append(f"✗ {part.name} ({part.points:g} points):")
            if isinstance(part.error, CheckFailed):
                found += part.error.lines()
            else:
                found.append(_what_was_raised(part.error))
        return found

    def html(self) -> str:
        """The message as a box for a notebook."""
        parts = [f"<p>{html.escape(self.sentence)}</p>"]
        for part in self.failed:
            parts.append(f"<p>✗ <em>{html.escape(part.name)}</em> ({part.points:g} points)</p>")
            if isinstance(part.error, CheckFailed):
                parts.append(part.error.html())
            else:
                parts.append(f"<p>{html.escape(_what_was_raised(part.error))}</p>")
        return "".join(parts)


def _what_was_raised(error: Exception | None) -> str:
    return f"It raised {type(error).__name__}: {error}"


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


def look_up_mistakes(yes: bool) -> None:
    """Whether a failed check looks for a known mistake beside the notebook (the grader does
    that itself)."""
    global _look_up_mistakes
    _look_up_mistakes = yes


def checks_passed(exercise: str) -> None:
    """Tell the student that the visible checks of an exercise hold.

    Raises:
        ChecksFailed: some of the cell's named checks did not.
    """
    of_this_cell = parts()
    begin_cell()
    if any(part.error is not None for part in of_this_cell):
        raise ChecksFailed(of_this_cell)
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
    allowed = rtol or 0.0

    def fail(detail: str, arrays: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        evidence = Evidence.of("close", message, actual, allowed)
        raise CheckFailed(message, detail, evidence=evidence, arrays=arrays)

    if actual is None:
        graph = " If it is a gradient: does every step stay in torch, without detach?"
        hint = graph if isinstance(expected, torch.Tensor) else ""
        fail(f"{name} is None. Does the function return its result?{hint}")
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            fail(f"{name} should be a torch tensor and is {_kind(actual)}.")
    elif isinstance(expected, np.ndarray) and expected.ndim:
        if not isinstance(actual, np.ndarray):
            fail(f"{name} should be a NumPy array and is {_kind(actual)}.")
    elif not (_is_plain_number(actual) or (isinstance(actual, np.ndarray) and not actual.ndim)):
        fail(f"{name} should be a number and is {_kind(actual)}.")

    got, want = _to_numpy(actual), _to_numpy(expected)
    if got.dtype == object:
        fail(f"{name} holds Python objects, not numbers (dtype object).")
    if got.shape != want.shape:
        fail(f"{name} has shape {got.shape} and should have shape {want.shape}.")
    if want.dtype == bool:
        if got.dtype != bool:
            fail(f"{name} should be boolean and has dtype {got.dtype}.")
    elif want.dtype.kind == "f":
        if got.dtype.kind != "f":
            fail(f"{name} should be floating and has dtype {got.dtype}.")
        if want.ndim and got.dtype.itemsize < want.dtype.itemsize:
            fail(
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
        fail(f"{name} holds NaN, first at {list(first)}.", arrays=_small(got, want))
    first = tuple(int(i) for i in np.argwhere(~same)[0])
    place = f" at {list(first)}" if first else ""
    fail(
        f"{int((~same).sum())} of {same.size} values differ; the first{place}: "
        f"{got[first]:.6g}, expected {want[first]:.6g}."
        if want.dtype != bool
        else f"{int((~same).sum())} of {same.size} values differ; the first{place}.",
        arrays=_small(got, want),
    )


def _small(got: np.ndarray, want: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The pair where it is small enough to be shown."""
    return None if got.ndim == 0 or got.size > 64 or got.ndim > 2 else (got, want)


def assert_equal(actual: Any, expected: Any, message: str, *, name: str = "the result") -> None:
    """Fail with ``message`` unless ``actual`` is exactly ``expected``, also in type.

    For arrays and tensors: the same kind, shape, dtype and values. For containers: the
    same type, length and items.

    Raises:
        CheckFailed: what differs.
    """
    difference = _difference(actual, expected, name)
    if difference is not None:
        detail, arrays = difference
        evidence = Evidence.of("equal", message, actual)
        raise CheckFailed(message, detail, evidence=evidence, arrays=arrays)


_Difference = tuple[str, "tuple[np.ndarray, np.ndarray] | None"]


def _difference(actual: Any, expected: Any, name: str) -> _Difference | None:
    """What differs first, in words and, where they are small, as a pair of arrays."""
    if type(actual) is not type(expected):
        kinds = _kind(actual), _kind(expected)
        if kinds[0] == kinds[1]:  # such as Python's bool and NumPy's
            kinds = str(type(actual)), str(type(expected))
        return f"{name} is {kinds[0]} and should be {kinds[1]}.", None
    if isinstance(expected, (np.ndarray, torch.Tensor)):
        if actual.dtype != expected.dtype:
            return f"{name} has dtype {actual.dtype} and should have {expected.dtype}.", None
        got, want = _to_numpy(actual), _to_numpy(expected)
        if got.shape != want.shape:
            return f"{name} has shape {got.shape} and should have shape {want.shape}.", None
        if not np.array_equal(got, want, equal_nan=want.dtype.kind == "f"):
            return f"{name} has other values.", _small(got, want)
        return None
    if isinstance(expected, (tuple, list)):
        if len(actual) != len(expected):
            return f"{name} has {len(actual)} items and should have {len(expected)}.", None
        pairs = [(f"item {n} of {name}", *pair) for n, pair in enumerate(zip(actual, expected))]
    elif isinstance(expected, dict):
        if set(actual) != set(expected):
            return f"{name} has the keys {list(actual)}, not {list(expected)}.", None
        pairs = [(f"{name}[{key!r}]", actual[key], other) for key, other in expected.items()]
    else:
        if actual != expected:
            return f"{name} is {actual!r} and should be {expected!r}.", None
        return None
    for part, one, other in pairs:
        difference = _difference(one, other, part)
        if difference is not None:
            return difference
    return None


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
        raise CheckFailed(f"{exercise} = {value!r} is none of the choices: {known['choices']}.")
    right, reason = _open_reply(exercise, value, sealed)
    if not right:
        raise CheckFailed(f"{exercise} = {value!r} is not it. {reason}")
    print(f"{exercise}: right. {reason}")
