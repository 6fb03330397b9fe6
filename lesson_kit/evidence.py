"""What failed checks saw: the evidence by which a mistake is recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .fingerprints import agree, fingerprint

__all__ = ["Evidence", "Seen", "evidence_of", "same"]


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
