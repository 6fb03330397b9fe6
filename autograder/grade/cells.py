"""One cell of a submission, from its JSON; nothing in it is believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autograder.grade.limits import MAX_CELL_OUTPUTS
from autograder.grade.reader import look
from autograder.notebooks import joined, png_of
from lesson_kit import notebook_reading as reading


@dataclass(frozen=True)
class Cell:
    """One cell: its kind, its text, nbgrader's name of it, and what may be shown of the rest."""

    kind: str
    source: str
    grade_id: str = ""
    outputs: tuple[dict[str, Any], ...] = ()
    #: Names and content of what was pasted into it; of written answers, what pictures came of it.
    attachments: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """Of its form, see :mod:`lesson_kit.notebook_reading`."""
        return look(self.source, self.kind == "code").digest


def cell_of(raw: Any) -> Cell | None:
    """A cell of a notebook's JSON; None where it cannot be read."""
    if not isinstance(raw, dict):
        return None
    source = reading.plain_source(raw.get("source", raw.get("input", "")))  # input: nbformat 2, 3
    kind = raw.get("cell_type")
    if source is None or kind not in ("code", "markdown", "raw"):
        return None
    metadata = raw.get("metadata")
    ours = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = ours.get("grade_id") if isinstance(ours, dict) else None
    outputs = raw.get("outputs")
    outputs = outputs if isinstance(outputs, list) else []
    return Cell(
        kind,
        _writable(source),
        _writable(name) if isinstance(name, str) else "",
        tuple(_output(output) for output in outputs[:MAX_CELL_OUTPUTS] if isinstance(output, dict)),
        _attachments(raw.get("attachments")),
    )


def _attachments(raw: Any) -> tuple[tuple[str, str], ...]:
    """Names of attached files, and what they hold as the student's program encoded it."""
    files = raw.items() if isinstance(raw, dict) else ()
    return tuple(
        (_writable(name), _text(data))
        for name, by_kind in files
        if isinstance(name, str) and isinstance(by_kind, dict)
        for data in by_kind.values()
    )[:MAX_CELL_OUTPUTS]


def _output(raw: dict[str, Any]) -> dict[str, Any]:
    """What of an output may be shown: a few strings, never a tree of a student's making."""
    data = raw.get("data")
    data = data if isinstance(data, dict) else {}
    return {
        **{part: _text(raw.get(part)) for part in ("output_type", "text", "ename", "evalue")},
        "data": {"text/plain": _text(data.get("text/plain")), "image/png": _writable(png_of(data))},
    }


def _text(value: Any) -> str:
    return _writable(joined(value))


def _writable(text: str) -> str:
    """Without halves of surrogate pairs: JSON can spell them, no file can hold them."""
    return text.encode("utf-8", "replace").decode()
