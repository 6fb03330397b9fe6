"""A failed check: what it tells the student, and the evidence it keeps.

Lies beside every notebook as ``lesson_failures.py``. In a notebook a failed check shows a box
with a plain-text fallback, and no traceback; where its result is that of a known mistake,
the box begins with what the student did.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autograder.lesson.fingerprints import agree, fingerprint

__all__ = ["CheckFailed", "ChecksFailed", "Evidence", "Part", "look_up_mistakes"]

#: Where a failed check finds the fingerprints of known mistakes in a released lesson.
#: The tester looks them up itself.
MISTAKES_FILE = "lesson_mistakes.json"

_look_up_mistakes = True


def look_up_mistakes(yes: bool) -> None:
    """Whether a failed check looks for a known mistake beside the notebook (the grader does
    that itself)."""
    global _look_up_mistakes
    _look_up_mistakes = yes


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
        arrays: the student's array and the expected one where they are small, or None; of arrays
            with more than two axes the first matrix that differs.
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
        self.details = tuple(_sentence(detail) for detail in details if detail)
        self.evidence = evidence
        self.arrays = arrays
        self.diagnosis = known_mistake(evidence)
        self._boxed = False
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
            parts.append(f"<p><strong>{as_html(self.diagnosis)}</strong></p>")
        parts.append(f"<p>{as_html(self.sentence)}</p>")
        parts += [f"<p>{as_html(detail)}</p>" for detail in self.details]
        if self.arrays is not None:
            parts.append(_tables(*self.arrays))
        return "".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback; a notebook also gets a box."""
        width = 88
        text = ["─" * width, _headline(), ""]
        for paragraph in str(self).split("\n"):
            if paragraph.startswith("  "):  # a table or an array: keep its columns
                text.append(paragraph)
            else:
                text.extend(textwrap.wrap(paragraph, width) or [""])
        text.append("─" * width)
        # IPython asks twice: to show the error, and for the reply to the front end.
        self._boxed = self._boxed or show_box(self.html(), "\n".join(text))
        if not self._boxed:
            return text
        # The box says the rest; what validates a notebook reads these lines.
        return textwrap.wrap(self.diagnosis or self.sentence, width)


def _sentence(detail: str) -> str:
    """With a capital, unless it begins with a name from code."""
    return detail[0].upper() + detail[1:] if detail.startswith(("the ", "item ")) else detail


#: Seen on a light and on a dark page.
_RED = "#c9473b"


def as_html(text: str) -> str:
    """A sentence, what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def show_box(body: str, text: str) -> bool:
    """Show a box below the cell; False where there is no notebook to show it in."""
    if not in_notebook():
        return False
    from IPython.display import publish_display_data

    box = (
        f'<div role="alert" style="border:1px solid {_RED};border-left-width:6px;'
        'padding:.2em 1em;margin:.3em 0;max-width:60em;line-height:1.45">'
        f"<p>✗ {html.escape(_headline())}</p>{body}</div>"
    )
    publish_display_data({"text/html": box, "text/plain": text})
    return True


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    return getattr(_shell(), "kernel", None) is not None


def exercise_of_cell() -> str:
    """The exercise whose checks the running cell holds, or ""."""
    cells = getattr(_shell(), "user_ns", {}).get("In", [""])
    found = re.search(r"""checks_passed\(["'](\w+)["']""", cells[-1] if cells else "")
    return found.group(1) if found else ""


def _shell() -> Any:
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


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


def known_mistake(evidence: Evidence | None) -> str:
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
    different = list(dict.fromkeys(found))
    return " Or: ".join(different) if len(different) <= 2 else ""


def known_error(exercise: str, error: BaseException | None) -> str:
    """The sentence of the known mistake that ends the visible check of an exercise so, or ""."""
    return known_mistake(Evidence(f"error:test_{exercise}", fingerprint(error)))


@dataclass
class Part:
    """A named check in a test cell: what it is worth and what came of it."""

    name: str
    points: float
    error: Exception | None = None
    over: bool = False


class ChecksFailed(CheckFailed):
    """Some of a cell's named checks did not hold."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.failed = failed = [part for part in parts if part.error is not None]
        super().__init__(f"{len(failed)} of {len(parts)} checks do not pass yet.")
        self.known = {
            part.name: part.error.diagnosis
            if isinstance(part.error, CheckFailed)
            else known_error(exercise_of_cell(), part.error)
            for part in failed
        }
        self.diagnosis = next((known for known in self.known.values() if known), "")
        self.args = ("\n".join(self.lines()),)

    def lines(self) -> list[str]:
        """The message as plain text."""
        found = [self.sentence]
        for part in self.failed:
            found.append(f"✗ {part.name} ({part.points:g} points):")
            if isinstance(part.error, CheckFailed):
                found += part.error.lines()
            else:
                found += [self.known[part.name]] if self.known[part.name] else []
                found.append(_what_was_raised(part.error))
        return found

    def html(self) -> str:
        """The message as a box for a notebook."""
        parts = [f"<p>{as_html(self.sentence)}</p>"]
        for part in self.failed:
            parts.append(f"<p>✗ <em>{html.escape(part.name)}</em> ({part.points:g} points)</p>")
            if isinstance(part.error, CheckFailed):
                parts.append(part.error.html())
            else:
                if self.known[part.name]:
                    parts.append(f"<p><strong>{as_html(self.known[part.name])}</strong></p>")
                parts.append(f"<p>{as_html(_what_was_raised(part.error))}</p>")
        return "".join(parts)


def _what_was_raised(error: Exception | None) -> str:
    return f"It raised {type(error).__name__}: {error}"


def _short(array: np.ndarray) -> str:
    with np.printoptions(precision=4, suppress=True, threshold=48, edgeitems=2, linewidth=76):
        return textwrap.indent(str(array), "  ")
