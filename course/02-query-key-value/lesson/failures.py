"""A failed check: what it tells the student, and the evidence it keeps.

Lies beside every notebook as ``lesson/failures.py``. In a notebook a failed check shows a box
with a plain-text fallback, and no traceback; what is known of the mistake stands first.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .advice import advice
from .cells import exercise_of_cell, in_notebook
from .evidence import Evidence, evidence_of
from .exceptions import lines_of

__all__ = [
    "CheckFailed",
    "ChecksFailed",
    "Evidence",
    "Part",
    "begin_cell",
    "begin_part",
    "parts",
]

#: In the metadata of a box that a notebook shows: points of the named checks that passed.
POINTS = "lesson_points"

#: A paragraph of a message: what it is (advice, part, said, arrays), and its text.
Block = tuple[str, str]


class CheckFailed(AssertionError):
    """A check did not hold. IPython shows a box and no traceback.

    Attributes:
        sentence: what the author of the check says to the student.
        details: what differs, with values.
        evidence: by which a known mistake is recognised, or None.
        arrays: the student's array and the expected one where they are small, or None; of arrays
            with more than two axes the first matrix that differs.
    """

    def __init__(
        self,
        sentence: str,
        *details: str,
        evidence: Evidence | None = None,
        arrays: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.sentence = sentence
        self.details = tuple(_sentence(detail) for detail in details if detail)
        self.evidence = evidence
        self.arrays = arrays
        self._boxed = False
        super().__init__(sentence, *details)

    @cached_property
    def advice(self) -> str:
        """What is known of the mistake, or "". Asked for when the failure is shown: one that a
        test expects costs nothing."""
        return advice(exercise_of_cell(), evidence_of(self), begin_cell, parts)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def own_blocks(self) -> Iterator[Block]:
        """The message, without the advice above it."""
        yield "said", self.sentence
        for detail in self.details:
            yield "said", detail
        if self.arrays is not None:
            shown = ["Yours:", _short(self.arrays[0]), "Expected:", _short(self.arrays[1])]
            yield "arrays", "\n".join(shown)

    def lines(self) -> list[str]:
        """The message as plain text."""
        found = [self.advice] if self.advice else []
        found += [text for _, text in self.own_blocks()]
        return "\n".join(found).split("\n")

    def html(self) -> str:
        """The message as a box for a notebook."""
        shown = [f"<p><strong>{as_html(self.advice)}</strong></p>"] if self.advice else []
        return "".join([*shown, *self._own_html()])

    def _own_html(self) -> Iterator[str]:
        for kind, text in self.own_blocks():
            if kind == "arrays" and self.arrays is not None:
                yield _tables(*self.arrays)
            else:
                yield f"<p>{as_html(text)}</p>"

    def points(self) -> float:
        """Of the named checks that passed."""
        return 0.0

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback; a notebook also gets a box."""
        text = as_text(self.lines())
        # IPython asks twice: to show the error, and for the reply to the front end.
        self._boxed = self._boxed or show_box(self.html(), self.lines(), self.points())
        if not self._boxed:
            return text
        # The box says the rest; what validates a notebook reads these lines.
        return textwrap.wrap(self.advice or self.sentence, WIDTH)


#: Columns of a message in plain text.
WIDTH = 88


def without_frame(text: Sequence[str]) -> list[str]:
    """The lines of :func:`as_text` between its headline and its end."""
    return list(text[3:-1])


def as_text(lines: Sequence[str]) -> list[str]:
    """A message for a terminal, its headline above it."""
    text = ["─" * WIDTH, _headline(), ""]
    for paragraph in lines:
        if paragraph.startswith("  "):  # a table or an array: keep its columns
            text.append(paragraph)
        else:
            text.extend(textwrap.wrap(paragraph, WIDTH) or [""])
    return [*text, "─" * WIDTH]


def _sentence(detail: str) -> str:
    """With a capital, unless it begins with a name from code."""
    return detail[0].upper() + detail[1:] if detail.startswith(("the ", "item ")) else detail


#: Seen on a light and on a dark page.
_RED = "#c9473b"


def as_html(text: str) -> str:
    """A sentence, what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def show_box(body: str, lines: Sequence[str], points: float = 0.0) -> bool:
    """Show a box below the cell; False where there is no notebook to show it in.

    Args:
        body: as HTML.
        lines: the same as plain text.
        points: of the cell's named checks that passed.
    """
    if not in_notebook():
        return False
    from IPython.display import publish_display_data

    box = (
        f'<div role="alert" style="border:1px solid {_RED};border-left-width:6px;'
        'padding:.2em 1em;margin:.3em 0;max-width:60em;line-height:1.45">'
        f"<p>✗ {html.escape(_headline())}</p>{body}</div>"
    )
    publish_display_data(
        {"text/html": box, "text/plain": "\n".join(as_text(lines))}, metadata={POINTS: points}
    )
    return True


def _headline() -> str:
    exercise = exercise_of_cell()
    return f"{exercise}: this check does not pass yet." if exercise else _NOT_YET


_MARK = '<span style="display:inline-block;width:1.2em">{}</span>'

_NOT_YET = "This check does not pass yet."


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
        mark = _MARK if name == "yours" else ""
        rows = []
        for values, row in zip(array, same):
            cells = []
            for value, fits in zip(values, row):
                framed = name == "yours" and not fits
                style = (
                    "padding:.1em .5em;text-align:right;white-space:nowrap;"
                    "font-variant-numeric:tabular-nums;"
                    f"border:2px solid {_RED if framed else 'transparent'}"
                )
                shown = html.escape(_number(value, (got, want)))
                cells.append(
                    f'<td style="{style}">{shown}{mark.format("≠" if framed else "")}</td>'
                )
            rows.append(f"<tr>{''.join(cells)}</tr>")
        tables.append(
            '<table style="display:inline-table;border-collapse:separate;margin-right:2em;'
            'vertical-align:top">'
            f"<caption>{name}</caption>{''.join(rows)}</table>"
        )
    return f"<div>{''.join(tables)}</div>"


def _number(value: Any, arrays: tuple[np.ndarray, np.ndarray]) -> str:
    """A value as text, all of both arrays with as many decimals."""
    if arrays[1].dtype.kind != "f":
        return str(value)
    sizes = np.abs(np.concatenate([one.astype(float).ravel() for one in arrays]))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    plain = not sizes.size or (sizes.max() < 1e4 and sizes.max() >= 1e-2)
    return f"{value:.4f}" if plain else f"{value:.3e}"


@dataclass
class Part:
    """A named check in a test cell: what it is worth and what came of it.

    Attributes:
        name: what is checked, in words for the student.
        points: what it is worth.
        error: why it failed.
        over: whether it ran to its end.
        side: it is a side condition, see :func:`settle`.
    """

    name: str
    points: float
    error: Exception | None = None
    over: bool = False
    side: bool = False

    @property
    def passed(self) -> bool:
        """Whether it counts."""
        return self.over and self.error is None


#: What a student reads of a side condition that holds while nothing else does.
NOT_YET_COUNTED = "This holds, and it counts as soon as another check of {} passes."


def settle(parts: list[Part], exercise: str) -> list[Part]:
    """The named checks of a cell, with side conditions failed while no other check passes.

    Arguments that stay as they are, errors for wrong use, texts that do not disturb each other:
    a function that does nothing can have these too, and by themselves they are worth nothing.
    """
    if not any(part.passed and not part.side for part in parts):
        for part in parts:
            if part.passed:
                part.error = CheckFailed(NOT_YET_COUNTED.format(exercise or "this exercise"))
    return parts


_parts: list[Part] = []


def begin_cell() -> None:
    """Forget the named checks of an earlier cell."""
    _parts.clear()


def parts() -> list[Part]:
    """The named checks of the cell so far, in order."""
    return list(_parts)


def begin_part(name: str, points: float, *, side: bool = False) -> Part:
    """Another named check of the cell; one of the same name means that the cell runs again."""
    if _parts and _parts[-1].over and any(part.name == name for part in _parts):
        begin_cell()
    _parts.append(Part(name, points, side=side))
    return _parts[-1]


class ChecksFailed(CheckFailed):
    """Some of a cell's named checks did not hold."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.failed = failed = [part for part in parts if part.error is not None]
        super().__init__(f"{len(failed)} of {len(parts)} checks do not pass yet.")

    def points(self) -> float:
        """Of the named checks that passed."""
        return sum((part.points for part in self.parts if part.error is None), 0.0)

    def own_blocks(self) -> Iterator[Block]:
        """The message, without the advice above it; nothing is said twice."""
        yield "said", self.sentence
        for part, blocks in self._by_part():
            yield "part", f"✗ {part.name} ({part.points:g} points):"
            yield from blocks

    def _by_part(self) -> Iterator[tuple[Part, list[Block]]]:
        said = {self.advice}
        for part in self.failed:
            assert part.error is not None
            blocks = (
                list(part.error.own_blocks())
                if isinstance(part.error, CheckFailed)
                else [("said", line) for line in lines_of(part.error)]
            )
            new = [(kind, text) for kind, text in blocks if kind == "arrays" or text not in said]
            said |= {text for _, text in new}
            yield part, new or [("said", "As above.")]

    def _own_html(self) -> Iterator[str]:
        yield f"<p>{as_html(self.sentence)}</p>"
        for part, blocks in self._by_part():
            yield f"<p>✗ <em>{html.escape(part.name)}</em> ({part.points:g} points)</p>"
            for kind, text in blocks:
                if kind == "arrays":
                    assert isinstance(part.error, CheckFailed) and part.error.arrays is not None
                    yield _tables(*part.error.arrays)
                else:
                    yield f"<p>{as_html(text)}</p>"


def _short(array: np.ndarray) -> str:
    with np.printoptions(precision=4, suppress=True, threshold=48, edgeitems=2, linewidth=76):
        return textwrap.indent(str(array), "  ")
