"""Figures of the lessons: maps of weights that can be seen, printed and read aloud.

Each figure is shown with a caption that states the finding and with alternative text; a heat map
also brings its numbers as a folded text table.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown, display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from PIL import Image  # matplotlib brings it

from .images import html_image
from .words import said, tr

__all__ = [
    "DIVERGING",
    "as_image",
    "draw_flow",
    "draw_heatmap",
    "draw_links",
    "heatmap",
    "show",
    "text_table",
]

#: Sequential, light to dark: readable in print and with any colour vision.
COLOUR_MAP = "Blues"

#: For signed values, the same way: blue below 0, white at 0, red above.
DIVERGING = "RdBu_r"

#: Lines, in this order: told apart with any colour vision, and readable as text on white.
COLOURS = ("#1f77b4", "#e66100", "#009e73", "#b2182b", "#332288", "#cc79a7", "#111111")
plt.rcParams["axes.prop_cycle"] = cycler(color=COLOURS)

#: Maps of at most this many cells carry their numbers.
MAX_ANNOTATED_CELLS = 150

#: Inches across, at most: with its margin some 830 pixels, what a window of 1280 has for an output.
WIDEST = 8.2


def _escaped(text: str) -> str:
    """Text for Markdown in which a token such as <end> is no HTML tag."""
    return text.replace("<", "&lt;")


def as_image(figure: Figure, alt: str) -> str:
    """A figure as an HTML image with its alternative text, for light and dark pages; closes it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100, bbox_inches="tight", pad_inches=0.08)
    plt.close(figure)
    return html_image(in_few_colours(buffer.getvalue()), "png", alt)


def in_few_colours(png: bytes) -> bytes:
    """The same PNG with at most 256 colours: a third of the bytes, and no difference to be seen."""
    full, made = Image.open(io.BytesIO(png)).convert("RGB"), io.BytesIO()
    few = full.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(made, "png", optimize=True)
    return made.getvalue()


def show(figure: Figure, caption: str, alt: str, table: str = "") -> None:
    """Display a figure with its caption, and in words; close it.

    JupyterLab drops the alternative text of an image output, so the image is shown as HTML, which
    keeps it, and as nothing else: a notebook holds it once. What shows no HTML shows the text. The
    words stand below the caption too, folded.

    Args:
        figure: the matplotlib figure.
        caption: one or two sentences: the finding, not the axes.
        alt: what a reader who does not see the figure needs from it.
        table: the numbers as a Markdown table (see :func:`text_table`), if they matter.
    """
    caption, alt = said(caption), said(alt)
    display({"text/html": as_image(figure, alt), "text/plain": alt}, raw=True)
    words = f"{_escaped(alt)}\n\n{table}".strip()
    title = tr("This figure in words and numbers") if table else tr("This figure in words")
    display(
        Markdown(
            f"*{_escaped(caption)}*\n\n<details><summary>{title}</summary>\n\n{words}\n\n</details>"
        )
    )


def draw_heatmap(
    axes: Axes,
    weights: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    row_label: str = "query",
    column_label: str = "key",
    vmin: float | None = 0.0,
    vmax: float | None = 1.0,
    colour_bar: bool = False,
    signed: bool = False,
) -> None:
    """Draw weights ``(len(rows), len(columns))`` into ``axes``; one row a query.

    Values that may be negative are ``signed``: their colours are centred on 0, from -vmax to vmax,
    and have a bar beside them.
    """
    import seaborn as sns  # with pandas: a second, which grading needs in lesson 3 alone

    matrix = np.asarray(weights, dtype=float)
    if matrix.shape != (len(rows), len(columns)):
        raise ValueError(
            f"weights has shape {matrix.shape}; {len(rows)} row labels and "
            f"{len(columns)} column labels need {(len(rows), len(columns))}"
        )
    if signed:
        vmax = float(np.abs(matrix).max()) if vmax is None else vmax
        vmin = -vmax
    sns.heatmap(
        matrix,
        ax=axes,
        cmap=DIVERGING if signed else COLOUR_MAP,
        vmin=vmin,
        vmax=vmax,
        annot=matrix.size <= MAX_ANNOTATED_CELLS,
        fmt=".2f",
        annot_kws={"size": 9},
        cbar=colour_bar or signed,
        cbar_kws={"shrink": 0.8} if colour_bar or signed else None,
        square=True,
        linewidths=0.5,
        linecolor="white",
        xticklabels=list(columns),
        yticklabels=list(rows),
    )
    axes.set_xlabel(column_label)
    axes.set_ylabel(row_label)
    axes.tick_params(axis="x", rotation=45 if max(map(len, columns), default=0) > 3 else 0)
    axes.tick_params(axis="y", rotation=0)


def draw_links(
    axes: Axes, weights: Any, rows: Sequence[str], columns: Sequence[str], *, least: float = 0.1
) -> None:
    """Draw the same weights as lines between two lines of words, so that crossings are seen.

    Args:
        axes: to draw into; they lose their frame.
        weights: ``(len(rows), len(columns))``; the larger, the thicker and darker the line.
        rows: the words below.
        columns: the words above, which are looked at.
        least: smaller weights have no line.
    """
    matrix = np.asarray(weights, dtype=float)
    above, below = (np.linspace(0.0, 1.0, len(words)) for words in (columns, rows))
    for x, row in zip(below, matrix):
        for other, weight in zip(above, row):
            if weight >= least:
                axes.plot(
                    [x, other],
                    [0.0, 1.0],
                    color="#2166ac",
                    linewidth=1 + 3 * min(weight, 1.0),
                    alpha=0.25 + 0.75 * min(weight, 1.0),
                    solid_capstyle="round",
                )
    for words, places, y, side in ((columns, above, 1.06, "bottom"), (rows, below, -0.06, "top")):
        for word, x in zip(words, places):
            axes.text(x, y, word, ha="center", va=side)
    axes.set(xlim=(-0.1, 1.1), ylim=(-0.3, 1.3))
    axes.axis("off")


def draw_flow(
    axes: Axes,
    boxes: Mapping[str, tuple[float, float]],
    arrows: Sequence[Sequence[str | tuple[float, float]]],
    *,
    plain: Collection[str] = (),
) -> None:
    """Draw how data flow: boxes with their names, and arrows between them.

    Args:
        axes: to draw into; they lose their frame, and are as large as what is drawn.
        boxes: the middle of each box, by what stands in it. What stands behind a "#" tells boxes of
            one name apart and is not shown.
        arrows: each the boxes or points that it passes, in order; it ends in the last one.
        plain: names that stand without a box: what goes in and out.
    """
    shown = {
        name: axes.text(
            *place,
            name.partition("#")[0],
            ha="center",
            va="center",
            zorder=3,
            bbox={
                "boxstyle": "round,pad=0.4",
                "facecolor": "white" if name in plain else "#dce9f5",
                "edgecolor": "white" if name in plain else "#2166ac",
            },
        )
        for name, place in boxes.items()
    }
    for path in arrows:
        points = [boxes[one] if isinstance(one, str) else one for one in path]
        for one, other in pairwise(points[:-1]):
            axes.plot(*zip(one, other), color="#333333", linewidth=1.2, zorder=1)
        begin, end = (
            shown[one].get_bbox_patch() if isinstance(one, str) else None for one in path[-2:]
        )
        axes.annotate(
            "",
            points[-1],
            points[-2],
            arrowprops={
                "arrowstyle": "-|>",
                "color": "#333333",
                "shrinkA": 0,
                "shrinkB": 2,
                "patchA": begin,
                "patchB": end,
            },
            zorder=4,  # after the boxes: where those end is known when they are drawn
        )
    corners = [one for path in arrows for one in path if not isinstance(one, str)]
    across, up = zip(*boxes.values(), *corners)
    axes.set(xlim=(min(across) - 0.7, max(across) + 0.7), ylim=(min(up) - 0.5, max(up) + 0.5))
    axes.axis("off")


def text_table(
    weights: Any, rows: Sequence[str], columns: Sequence[str], *, corner: str = "query \\ key"
) -> str:
    """The same weights as a Markdown table with two decimals."""
    matrix = np.asarray(weights, dtype=float)
    head = "| " + " | ".join([corner, *map(_escaped, columns)]) + " |"
    rule = "|" + "---|" * (len(columns) + 1)
    body = [
        "| "
        + " | ".join([f"**{_escaped(row)}**", *(f"{value + 0.0:.2f}" for value in values)])
        + " |"
        for row, values in zip(rows, matrix)
    ]
    return "\n".join([head, rule, *body])


def heatmap(
    weights: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    caption: str,
    alt: str,
    title: str = "",
    row_label: str = "query",
    column_label: str = "key",
    vmin: float | None = 0.0,
    vmax: float | None = 1.0,
    signed: bool = False,
    links: bool = False,
) -> None:
    """Show one map with caption, alternative text and a folded text table.

    Args:
        weights: ``(len(rows), len(columns))``, array or detached tensor.
        rows, columns: the words on the axes.
        caption, alt: as in :func:`show`.
        vmin, vmax: range of the colours; 0 to 1 suits weights.
        signed: whether values may be negative; see :func:`draw_heatmap`.
        links: whether the same weights stand beside it as lines between the two sentences.
    """
    width = max(3.5, 0.62 * len(columns) + 1.5 + signed)
    height = max(2.2, 0.62 * len(rows) + 1.0)
    if links:
        figure, (axes, beside) = plt.subplots(
            1, 2, figsize=(min(2 * width + 0.6, WIDEST), height), layout="constrained"
        )
        draw_links(beside, weights, rows, columns)
    else:
        figure, axes = plt.subplots(figsize=(width, height))
    draw_heatmap(
        axes,
        weights,
        rows,
        columns,
        row_label=row_label,
        column_label=column_label,
        vmin=vmin,
        vmax=vmax,
        signed=signed,
    )
    if title:
        axes.set_title(title)
    table = text_table(weights, rows, columns, corner=f"{row_label} \\ {column_label}")
    show(figure, caption, alt, table)
