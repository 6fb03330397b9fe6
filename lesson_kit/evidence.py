"""What failed checks saw: the evidence (failure signature) by which a mistake is recognised.

A value is kept as a fingerprint, enough to recognise it, too little to read a solution from. It is
plain JSON: the kind, shape and precision of a value, and a few weighted sums of its numbers (the
numbers themselves where they are few).
"""

from __future__ import annotations

import hashlib
import math
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .tensors import torch

__all__ = [
    "BY_HAND",
    "Evidence",
    "Seen",
    "agree",
    "evidence_of",
    "fingerprint",
    "raised_by_hand",
    "rounded",
    "same",
]


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


#: What tests saw of an answer, by grade_id; empty where a test passed. A test of named checks
#: has one piece of evidence for each that failed.
Seen = Mapping[str, tuple[Evidence, ...]]


def same(first: tuple[Evidence, ...], second: tuple[Evidence, ...]) -> bool:
    """Whether a test saw the same of two answers."""
    return len(first) == len(second) and all(
        a.is_that_of(b.check, b.got) for a, b in zip(first, second)
    )


def evidence_of(error: BaseException) -> tuple[Evidence, ...]:
    """What an error that ended a test cell tells of the student's code.

    Args:
        error: a failed check, with ``evidence`` or with ``parts`` of its own; or anything else.
    """
    parts = getattr(error, "parts", None)
    if parts is not None:
        return tuple(
            piece for part in parts if part.error is not None for piece in evidence_of(part.error)
        )
    if hasattr(error, "evidence"):
        return (error.evidence,) if error.evidence is not None else ()
    return (Evidence("error", fingerprint(error)),)


#: Stands for the text of an exception that an answer raises itself.
BY_HAND = "by hand"

#: Values with at most this many numbers are kept as they are.
FEW = 6
#: Weighted sums of what is larger.
SUMS = 4
#: Containers deeper or longer than this are cut.
MAX_ITEMS = 32
DEEPEST = 4

#: Two values this close, relative to their size, are the same result: rounding differs with the
#: order of the operations, and that with the processor. A result in double precision may have
#: come through single precision on its way, as torch's initial weights do: hence not 1e-15.
LEAST_TOLERANCE = {8: 1e-6, 4: 2e-5, 2: 1e-2}

#: Decimals that are kept behind the first digit of a result's size. No more than the tolerance
#: compares: what rounding can move is for the most part not in a fingerprint at all.
DECIMALS = {8: 8, 4: 5, 2: 3}
#: Numbers are not looked at closer than results of the size 10 to this.
SMALLEST_EXPONENT = -1


def fingerprint(value: Any, depth: int = 0) -> Any:
    """The fingerprint of a result: JSON that :func:`agree` compares.

    Args:
        value: a number, a NumPy array, a torch tensor, or a container of them; of anything
            else only its type is kept.
    """
    if value is None or isinstance(value, (bool, str)):
        return {"is": type(value).__name__, "value": str(value)[:80]}
    if isinstance(value, (int, float, np.generic, np.ndarray, torch.Tensor)):
        return _of_numbers(value)
    if isinstance(value, (tuple, list)) and depth < DEEPEST:
        items = [fingerprint(item, depth + 1) for item in value[:MAX_ITEMS]]
        return {"is": type(value).__name__, "length": len(value), "items": items}
    if isinstance(value, dict) and depth < DEEPEST:
        chosen = sorted(value.items(), key=lambda pair: str(pair[0]))[:MAX_ITEMS]
        return {
            "is": "dict",
            "length": len(value),
            "items": [[str(key), fingerprint(item, depth + 1)] for key, item in chosen],
        }
    if isinstance(value, BaseException):
        return _of_exception(value)
    return {"is": getattr(value, "type_name", type(value).__name__)}


def _of_exception(error: BaseException) -> Any:
    """Its type, its text, and the line of the test at which it came.

    What a student raises by hand says the same in anybody's words: its text does not count.
    Neither do an object's address in it, and the number of a layer that Keras counted (`dense_7`).
    """
    remote = getattr(error, "box_error", None)  # it was raised in a box
    frames = traceback.extract_tb(error.__traceback__)
    text = re.sub(r"(?<=\b0x)[0-9a-f]+|(?<=[a-z])_\d+\b", "", str(error))[:200]
    test = next((frame for frame in frames if frame.name == "<module>" and _in_a_cell(frame)), None)
    by_hand = remote.by_hand if remote is not None else raised_by_hand(error)
    return {
        "is": remote.types[0] if remote is not None else type(error).__name__,
        "value": BY_HAND if by_hand else text,
        "at": hashlib.sha256((test.line or "").encode()).hexdigest()[:8] if test else "",
    }


def raised_by_hand(error: BaseException) -> bool:
    """Whether a ``raise`` or ``assert`` in a cell gave rise to it, and not a library."""
    frames = traceback.extract_tb(error.__traceback__)
    return (
        bool(frames)
        and _in_a_cell(frames[-1])
        and (frames[-1].line or "").startswith(("raise ", "assert "))
    )


def _in_a_cell(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith("<") or "ipykernel" in frame.filename


def _of_numbers(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        kind = "tensor"
        tensor = value.detach().cpu()
        name = str(tensor.dtype).removeprefix("torch.")
        array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    else:
        kind = "array" if isinstance(value, np.ndarray) and value.ndim else "number"
        array = np.asarray(value)
        name = array.dtype.name
    numbers: dict[str, Any] = {"is": kind, "shape": list(array.shape)}
    if kind != "number":
        numbers["dtype"] = name
    if array.dtype.kind not in "biuf":
        return numbers
    flat = array.astype(np.float64).ravel()
    finite = np.isfinite(flat)
    if not finite.all():
        # Where a value is not finite, and how, is part of it.
        holes = np.where(finite, 0.0, np.where(np.isnan(flat), 1.0, np.where(flat > 0, 2.0, 3.0)))
        numbers["holes"] = _sums(holes)
        flat = np.where(finite, flat, 0.0)
    if array.dtype.kind == "f" and _precision(numbers) == 8 and _came_from_single(flat):
        numbers["single"] = True
    if flat.size <= FEW:
        numbers["values"] = flat.tolist()
    else:
        numbers["sums"] = _sums(flat)
        numbers["size"] = _size(flat)
    return rounded(numbers)


def _came_from_single(flat: np.ndarray) -> bool:
    """Whether doubles are all numbers of single precision, and not just short ones such as 0.5.

    That shows a computation in single precision exactly, whatever its rounding was.
    """
    with np.errstate(over="ignore"):
        short = np.array_equal(flat, flat.astype(np.float16))
        return not short and bool(np.array_equal(flat, flat.astype(np.float32)))


def _size(flat: np.ndarray) -> float:
    """The root of the mean of the squares, also where these are beyond the largest number."""
    with np.errstate(over="ignore"):
        size = float(np.sqrt(np.mean(flat**2)))
    if math.isfinite(size):
        return size
    largest = float(np.max(np.abs(flat)))
    return largest * float(np.sqrt(np.mean((flat / largest) ** 2)))


def _sums(flat: np.ndarray) -> list[float]:
    """Sums of the numbers, weighted with cosines of incommensurable frequencies."""
    place = np.arange(flat.size) + 1.0
    scale = np.sqrt(flat.size)
    return [float(flat @ np.cos(np.sqrt(k + 2.0) * place) / scale) for k in range(SUMS)]


def rounded(part: Any) -> Any:
    """A fingerprint with the decimals that count in results of its size and precision."""
    if isinstance(part, list):
        return [rounded(item) for item in part]
    if not isinstance(part, dict):
        return part
    if "shape" not in part:
        return {key: rounded(value) for key, value in part.items()}
    precision, made = _precision(part), dict(part)
    if "holes" in part:
        made["holes"] = [_rounded(hole, 1.0, 8) for hole in part["holes"]]
    if "values" in part:
        largest = min(1.0, max((abs(value) for value in part["values"]), default=0.0))
        made["values"] = [
            _rounded(value, max(abs(value), largest), precision) for value in part["values"]
        ]
    if "sums" in part:
        # By the rounded size: what is rounded once more stays as it is.
        size = made["size"] = _rounded(part["size"], part["size"], precision)
        made["sums"] = [_rounded(total, size, precision) for total in part["sums"]]
    return made


def _rounded(number: float, size: float, precision: int) -> float:
    if not math.isfinite(number) or not math.isfinite(size):
        return number
    exponent = math.floor(math.log10(size)) if size > 0 else SMALLEST_EXPONENT
    decimals = DECIMALS[precision] - max(exponent, SMALLEST_EXPONENT)
    return round(float(number), decimals) + 0.0  # no negative zero


def agree(first: Any, second: Any, tolerance: float = 0.0) -> bool:
    """Whether two fingerprints are of the same result, up to rounding.

    Args:
        first, second: made by :func:`fingerprint`.
        tolerance: relative, of a check that allows more than rounding.
    """
    if isinstance(first, dict) and isinstance(second, dict):
        if first.get("is") != second.get("is"):
            return False
        if "shape" in first or "shape" in second:
            return _same_numbers(first, second, tolerance)
        return first.keys() == second.keys() and all(
            agree(first[key], second[key], tolerance) for key in first
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(
            agree(a, b, tolerance) for a, b in zip(first, second)
        )
    return bool(first == second)


def _same_numbers(first: dict[str, Any], second: dict[str, Any], tolerance: float) -> bool:
    if any(first.get(key) != second.get(key) for key in ("shape", "dtype", "single")):
        return False
    if first.keys() != second.keys():
        return False
    precision = _precision(first)
    least = LEAST_TOLERANCE[precision]
    tolerance = max(tolerance, least)
    quantum = 10.0 ** (SMALLEST_EXPONENT - DECIMALS[precision])
    if "holes" in first and not np.allclose(first["holes"], second["holes"], rtol=0, atol=1e-6):
        return False
    if "values" in first:
        largest = max((abs(value) for value in first["values"] + second["values"]), default=0.0)
        near = max(least * min(1.0, largest), 2 * quantum)
        return bool(np.allclose(first["values"], second["values"], rtol=tolerance, atol=near))
    if "sums" in first:
        size = max(first["size"], second["size"])
        if not math.isfinite(size):  # as it was once written down
            return bool(first == second)
        if abs(first["size"] - second["size"]) > tolerance * size + 2 * quantum:
            return False
        near = 4 * tolerance * size + 2 * quantum
        return bool(np.allclose(first["sums"], second["sums"], rtol=0, atol=near))
    return True


def _precision(numbers: dict[str, Any]) -> int:
    """Bytes of the numbers that a result was computed in."""
    dtype = numbers.get("dtype", "float64")
    if dtype.endswith("16"):
        return 2
    return 4 if dtype.endswith("32") or "single" in numbers else 8
