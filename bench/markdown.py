"""Tables for a README."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    """A Markdown table: the first column is text, the others are numbers."""
    lines = [head, ["---", *(["---:"] * (len(head) - 1))]]
    lines += [[_text(value) for value in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
