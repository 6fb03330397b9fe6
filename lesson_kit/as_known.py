"""How a known mistake is told.

Imports nothing: what grades a class has no NumPy.
"""

from __future__ import annotations

__all__ = ["AS_KNOWN", "as_known"]

#: What was seen is that an answer fails like a known mistake, and another one may fail like it too.
AS_KNOWN = "It fails as with this known mistake, or with one like it:"


def as_known(sentence: str) -> str:
    """The sentence of a known mistake, as it is told of an answer that fails like it."""
    return f"{AS_KNOWN} {sentence}"
