"""What a notebook shows below a check: a box, and the same as plain text."""

from __future__ import annotations

import html
import re
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import setting
from .cells import asked_by_a_page, exercise_of_cell, in_notebook, source_of_cell
from .words import N_, said, tr

__all__ = [
    "IF_IT_PASSES",
    "NOTHING",
    "OPENS",
    "POINTS",
    "WIDTH",
    "Piece",
    "as_html",
    "as_tables",
    "as_text",
    "decimals",
    "folded",
    "in_columns",
    "lines_high",
    "paragraph",
    "piece_of",
    "show_box",
    "show_pass",
    "what_it_means",
    "within_view",
    "without_frame",
]

#: In the metadata of a box that a notebook shows: points of the named checks that passed.
POINTS = "lesson_points"

#: Comments in a check that the page puts there: what is true once it passes, and the figures that
#: a right answer opens.
IF_IT_PASSES = N_("# If it passes: {means}")
OPENS = N_("# A right answer opens {figures}.")

#: A traceback that shows nothing below a box. JupyterLab shows an empty one as kind and text.
NOTHING = "\x1b[0m"

#: Columns of a message in plain text.
WIDTH = 88

#: A box of at most 300 pixels, on a page of 1280: characters of a line, lines below its headline,
#: and the gap between two paragraphs in lines.
COLUMNS, ROOM, GAP = 85, 12.5, 0.35

#: Decimals of a number in an array: so many, or more where a difference would not be seen.
FEWEST, MOST = 4, 20


def without_frame(text: Sequence[str]) -> list[str]:
    """The lines of :func:`as_text` between its headline and its end."""
    return list(text[3:-1])


def as_text(lines: Sequence[str], headline: str = "") -> list[str]:
    """A message for a terminal, its headline above it."""
    text = ["─" * WIDTH, headline or _headline(), ""]
    for paragraph in lines:
        if paragraph.startswith("  "):  # a table or an array: keep its columns
            text.append(paragraph)
        else:
            text.extend(textwrap.wrap(paragraph, WIDTH) or [""])
    return [*text, "─" * WIDTH]


#: Seen on a light and on a dark page.
_RED = "#c9473b"
_GREEN = "#3d8b52"
_GREY = "#8a94a3"


def as_html(text: str) -> str:
    """A sentence, what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


#: A page that runs what a cell shows scrolls to a new box, whose headline may have left the view;
#: one that is opened later, with the box in it, stays where it is. JupyterLab's strip for a
#: traceback goes, where there is none below the box.
_IN_VIEW = (
    "<script>(function (box, shown) {{ if (!box) return; setTimeout(function () {{ "
    "var one = box.closest('.jp-OutputArea-child'), next = one && one.nextElementSibling; "
    "if (next && !next.innerText.trim() && next.querySelector('[data-mime-type$=\"stderr\"]')) "
    "next.style.display = 'none'; "
    "if (Date.now() / 1000 - shown < 60) box.scrollIntoView({{block: 'nearest'}}); }}, 150); }})"
    "(document.currentScript && document.currentScript.parentElement, {:.0f});</script>"
)


def paragraph(text: str) -> str:
    """HTML as a paragraph of a box, near the next one: the box is to be seen at once."""
    return f'<p style="margin:.35em 0">{text}</p>'


def folded(title: str, body: str) -> str:
    """What a click unfolds; title and body as HTML."""
    return f"<details><summary>{title}</summary>{body}</details>"


@dataclass(frozen=True)
class Piece:
    """A part of a box.

    Attributes:
        html: what it shows.
        lines: how high that is.
        title: above it where it is folded, as HTML; "" where it never is.
    """

    html: str
    lines: float
    title: str = ""


def piece_of(text: str, title: str = "", *, strong: bool = False) -> Piece:
    """A paragraph as a piece; a long one can be folded below its beginning, without a title."""
    shown = as_html(text)
    if strong:
        return Piece(paragraph(f"<strong>{shown}</strong>"), lines_high(text))
    if not title and len(text) > 2 * COLUMNS:
        title = html.escape(textwrap.shorten(text.replace("`", ""), COLUMNS, placeholder=" …"))
    return Piece(paragraph(shown), lines_high(text), title)


def lines_high(text: str) -> float:
    """How many lines a paragraph of plain text takes in a box, with the gap below it."""
    return -(-len(text) // COLUMNS) + GAP


def within_view(pieces: Sequence[Piece]) -> str:
    """Pieces one below the other, the highest folded as far as a box would be too high."""
    over = sum(piece.lines for piece in pieces) - ROOM
    shown = [piece.html for piece in pieces]
    for at, piece in sorted(enumerate(pieces), key=lambda one: -one[1].lines):
        if over > 0 and piece.title:
            shown[at] = folded(piece.title, piece.html)
            over -= piece.lines - 1
    return "".join(shown)


def show_box(body: str, lines: Sequence[str], points: float = 0.0, *, headline: str = "") -> bool:
    """Show a box below the cell; False where there is no notebook to show it in.

    Args:
        body: as HTML.
        lines: the same as plain text.
        points: of the cell's named checks that passed.
        headline: of a box that finds no mistake, which is grey; else it says that the check of
            the running cell does not pass.
    """
    if not in_notebook():
        return False
    from IPython.display import publish_display_data

    mark, colour = ("○", _GREY) if headline else ("✗", _RED)
    box = (
        f'<div role="alert" style="border:1px solid {colour};border-left-width:6px;'
        'padding:.2em 1em;margin:.3em 0;max-width:60em;line-height:1.45">'
        f"{paragraph(f'{mark} {html.escape(headline or _headline())}')}{body}"
        f"{_IN_VIEW.format(time.time())}</div>"
    )
    text = "\n".join(as_text(lines, headline))
    publish_display_data({"text/html": box, "text/plain": text}, metadata={POINTS: points})
    return True


def show_pass(text: str, *, right: bool = True) -> None:
    """Say that a check passes: a quiet box in a notebook, a line elsewhere.

    Args:
        text: one sentence or two.
        right: False for what is only noted: it gets no tick.
    """
    if not in_notebook():
        print(text)
        return
    if not setting.now.advice:  # the check is tried with a repair: nobody is to see it
        return
    from IPython.display import publish_display_data

    mark, colour = ("✓ ", _GREEN) if right else ("", _GREY)
    if right and asked_by_a_page():
        text = " ".join([text, *what_it_means(source_of_cell())])
    box = (
        f'<div role="status" style="border-left:6px solid {colour};padding:.1em 1em;'
        f'margin:.3em 0;max-width:60em;line-height:1.45">{mark}{as_html(text)}</div>'
    )
    publish_display_data({"text/html": box, "text/plain": text})


def what_it_means(check: str) -> list[str]:
    """What is true now that a check passed, which figures are drawn with the answer, and what it
    looked at.

    Args:
        check: its source: its named checks, and the comments that the page puts into it.
    """
    true_now = re.search(tr(IF_IT_PASSES, means="(.*)"), check, re.M)
    looked_at = re.findall(r"""^with check\(\s*(["'])(.*?)\1""", check, re.M)
    opens = re.search(tr(OPENS, figures="(.*)"), check, re.M)
    means = [true_now[1]] if true_now else []
    means += [tr("Now open {figures}.", figures=opens[1])] if opens else []
    titles = "; ".join(said(title) for _, title in looked_at)
    return [*means, tr("Checked here: {titles}.", titles=titles)] if looked_at else means


def _headline() -> str:
    exercise = exercise_of_cell()
    if not exercise:
        return tr("This check does not pass yet.")
    return tr("{exercise}: this check does not pass yet.", exercise=exercise)


_MARK = '<span style="display:inline-block;width:1.2em">{}</span>'


def as_tables(got: np.ndarray, want: np.ndarray, place: str = "", against: str = "") -> str:
    """Two small arrays side by side; values that differ are framed and marked.

    Args:
        got: the student's.
        want: what it should be, or the student's for another call.
        place: which part of larger arrays they are, as an index; or "".
        against: which other call that is; or "".
    """
    got, want = np.atleast_2d(got), np.atleast_2d(want)
    if want.dtype == bool:
        same = got == want
    else:
        with np.errstate(all="ignore"):
            same = np.isclose(got.astype(float), want.astype(float), rtol=1e-4, atol=1e-6)
    form = _form(got, want)
    texts = [[[form.format(value) for value in row] for row in array] for array in (got, want)]
    if same.all():  # a matter of digits: those whose digits differ
        same = np.array(texts[0]) == np.array(texts[1])
    tables = []
    captions = tr("yours"), said(against) or tr("expected")
    for name, rows_of_text in zip(captions, texts):
        mark = _MARK if name == captions[0] else ""
        rows = []
        for values, row in zip(rows_of_text, same):
            cells = []
            for value, fits in zip(values, row):
                framed = name == captions[0] and not fits
                style = (
                    "padding:.1em .5em;text-align:right;white-space:nowrap;"
                    "font-variant-numeric:tabular-nums;"
                    f"border:2px solid {_RED if framed else 'transparent'}"
                )
                shown = html.escape(value)
                cells.append(
                    f'<td style="{style}">{shown}{mark.format("≠" if framed else "")}</td>'
                )
            rows.append(f"<tr>{''.join(cells)}</tr>")
        tables.append(
            '<table style="display:inline-table;border-collapse:separate;margin-right:2em;'
            'vertical-align:top">'
            f"<caption>{html.escape(name + place)}</caption>{''.join(rows)}</table>"
        )
    return f'<div style="overflow-x:auto">{"".join(tables)}</div>'


def decimals(got: np.ndarray, want: np.ndarray) -> int:
    """So many that the largest difference of two arrays is seen."""
    return min(MOST, max(FEWEST, _needed(got, want)))


def _needed(got: np.ndarray, want: np.ndarray) -> int:
    """Two digits of the largest difference; below 0 where that is far above 1."""
    if want.dtype.kind != "f":
        return 0
    with np.errstate(all="ignore"):
        gaps = np.abs(got.astype(float) - want.astype(float))
    gaps = gaps[np.isfinite(gaps) & (gaps > 0)]
    return 1 - int(np.floor(np.log10(gaps.max()))) if gaps.size else 0


def _form(got: np.ndarray, want: np.ndarray) -> str:
    """How a value of two arrays is written: all with as many decimals."""
    if want.dtype.kind != "f":
        return "{!s}"
    sizes = np.abs(np.concatenate([array.astype(float).ravel() for array in (got, want)]))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not sizes.size or (sizes.max() < 1e4 and sizes.max() >= 1e-2):
        return f"{{:.{decimals(got, want)}f}}"
    of_the_mantissa = _needed(got, want) + int(np.floor(np.log10(sizes.max())))
    return f"{{:.{min(MOST, max(3, of_the_mantissa))}e}}"


def in_columns(array: np.ndarray, places: int) -> str:
    """A small array as plain text, with so many decimals."""
    with np.printoptions(precision=places, suppress=True, threshold=100, linewidth=76):
        return textwrap.indent(str(array), "  ")
