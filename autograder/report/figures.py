"""The figures of a class report, as SVG that stands in the page itself.

Their text stays text, so they are small, sharp at every size and can be searched. Colours
are Okabe and Ito's, which people of any colour vision tell apart; what is counted is also
written into the bars. Each figure carries its alternative text.
"""

from __future__ import annotations

import html
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from autograder.report.findings import Misconception
from autograder.report.points import AssignmentNumbers, percent
from lesson_kit.words import N_, tr, tr_n

#: Parts of a stacked bar: what it counts, its colour, the colour of text on it, its hatch.
PARTS = (
    (N_("all points"), "#0072B2", "white", ""),
    (N_("some points"), "#56B4E9", "black", ""),
    (N_("tried, no points"), "#E69F00", "black", ""),
    (N_("not attempted"), "#E4E4E4", "black", "///"),
)
_WIDTH = 7.2
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
    "text.parse_math": False,
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.5,
    "hatch.color": "#999999",
}
#: Characters of a label that fit on one line.
_LINE = 24
#: And on two lines, of a longer text.
_MAX_OF_A_LABEL = 72


@dataclass(frozen=True)
class Drawn:
    """A figure and the sentence below it, which states what the figure shows."""

    svg: Markup
    caption: str


def by_exercise(numbers: AssignmentNumbers) -> Drawn:
    """Who got all, some or no points, by exercise."""
    rows = numbers.exercises
    of_one = N_(
        "{name}: {all} all points, {some} some, {none} tried and none, {untried} not attempted."
    )
    counted = (dict(zip(("all", "some", "none", "untried"), row.parts)) for row in rows)
    alt = " ".join(
        (
            tr("Stacked bars, one an exercise."),
            *(tr(of_one, name=row.name, **parts) for row, parts in zip(rows, counted)),
        )
    )
    shares = [round(row.mean_share, 2) for row in rows]
    if min(shares) == max(shares):
        same = N_("On average every exercise brings {share} of its points.")
        caption = tr(same, share=percent(shares[0]))
    else:
        lowest, highest = (
            _listed(
                [row.name for row, share in zip(rows, shares) if share == end],
                N_("{number} exercises"),
            )
            for end in (min(shares), max(shares))
        )
        caption = tr(
            "Smallest share of the points on average: {lowest} ({least}). Largest: {highest} "
            "({most}).",
            lowest=lowest,
            least=percent(min(shares)),
            highest=highest,
            most=percent(max(shares)),
        )
    svg = stacked_bars([row.name for row in rows], [row.parts for row in rows], alt)
    return Drawn(Markup(svg), caption)


def in_total(numbers: AssignmentNumbers, median: float) -> Drawn:
    """How the points of an assignment are distributed; ``median`` is a share, 0 to 1."""
    counts = numbers.steps
    total, low = sum(counts), sum(counts[: len(counts) // 2])
    steps = ", ".join(
        tr("{begin} to {end} percent: {count}", begin=begin, end=end, count=count)
        for number, count in enumerate(counts)
        for begin, end in [(100 * at // len(counts) for at in (number, number + 1))]
        if count
    )
    bars = N_("Bars: submissions by share of the points. Median {median}. {steps}.")
    alt = tr(bars, median=f"{median:.0%}", steps=steps)
    about = {"share": percent(median), "points": f"{numbers.max_score:g}", "total": total}
    if total == 1:
        caption = tr("The one graded submission has {share} of the {points} points.", **about)
    else:
        caption = tr(_HALF_HAVE_ALL if median >= 1 else _HALF_HAVE, **about)
        few = tr_n("{n} has less than half of them.", "{n} have less than half of them.", low)
        caption += " " + (few if low else tr("None has less than half of them."))
    return Drawn(Markup(distribution(counts, median, alt)), caption)


_HALF_HAVE_ALL = N_("At least half of the {total} graded submissions have all {points} points.")
_HALF_HAVE = N_(
    "At least half of the {total} graded submissions have {share} of the {points} points or more."
)


def by_frequency(shown: Sequence[Misconception]) -> Drawn | None:
    """The misconceptions, the most frequent first; None where none was seen twice."""
    if not shown or shown[0].submissions < 2:
        return None
    described = "; ".join(
        tr("{says} In {name}: {number}", says=one.says, name=one.exercise, number=one.submissions)
        for one in shown
    )
    bars = N_("Bars, one a misconception: submissions in which it was recognised. {described}.")
    alt = tr(bars, described=described)
    most = shown[0].submissions
    first = _listed(
        [
            tr("“{says}” in {name}", says=mistake.says, name=mistake.exercise)
            for mistake in shown
            if mistake.submissions == most
        ],
        N_("{number} misconceptions"),
    )
    caption = tr("Most frequent: {first} (in {number} submissions).", first=first, number=most)
    svg = frequency_bars(
        [
            _shortened(f"{mistake.assignment.split('-')[0]} {mistake.exercise}: {mistake.says}")
            for mistake in shown
        ],
        [mistake.submissions for mistake in shown],
        alt,
    )
    return Drawn(Markup(svg), caption)


def _listed(names: Sequence[str], counted: str) -> str:
    """Names with the same value: up to three, or how many there are."""
    return ", ".join(names) if len(names) <= 3 else tr(counted, number=len(names))


def stacked_bars(labels: Sequence[str], counts: Sequence[Sequence[int]], alt: str) -> str:
    """One bar a label, from top to bottom, cut into the four :data:`PARTS`.

    Args:
        labels: names of the bars.
        counts: for each bar, how many submissions fall into each part.
        alt: the figure in words.

    Returns:
        An ``<svg>`` element.
    """
    with matplotlib.rc_context(_STYLE):
        figure, axes = _canvas(0.46 * len(labels) + 1.35)
        left = [0.0] * len(labels)
        for part, (words, colour, ink, hatch) in enumerate(PARTS):
            shares = [row[part] / (sum(row) or 1) for row in counts]
            axes.barh(
                range(len(labels)),
                shares,
                left=left,
                color=colour,
                hatch=hatch,
                edgecolor="white" if not hatch else "#999999",
                linewidth=0.8,
                height=0.72,
                label=tr(words),
            )
            for row, share in enumerate(shares):
                if share >= 0.045:
                    number = axes.text(
                        left[row] + share / 2,
                        row,
                        str(counts[row][part]),
                        color=ink,
                        ha="center",
                        va="center",
                    )
                    if hatch:
                        number.set_bbox({"facecolor": colour, "edgecolor": "none", "pad": 1.5})
            left = [start + share for start, share in zip(left, shares)]
        _name_rows(axes, labels)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel(tr("share of the submissions; the numbers in the bars count them"))
        figure.legend(loc="outside upper center", ncols=len(PARTS), frameon=False, fontsize=10)
        return _svg(figure, alt)


def frequency_bars(labels: Sequence[str], counts: Sequence[int], alt: str) -> str:
    """One bar a label, from top to bottom, as long as its count.

    Returns:
        An ``<svg>`` element.
    """
    with matplotlib.rc_context(_STYLE):
        figure, axes = _canvas(0.46 * len(labels) + 0.95)
        bars = axes.barh(range(len(labels)), counts, color="#0072B2", height=0.72)
        axes.bar_label(bars, padding=3)
        _name_rows(axes, labels)
        axes.set_xlim(0, max([*counts, 1]) * 1.08)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(tr("submissions"))
        return _svg(figure, alt)


def distribution(counts: Sequence[int], median: float, alt: str) -> str:
    """How many submissions reached which share of the points.

    Args:
        counts: of equally wide steps from 0 to 100 percent.
        median: share of the points, 0 to 1.
        alt: the figure in words.

    Returns:
        An ``<svg>`` element.
    """
    with matplotlib.rc_context(_STYLE):
        figure, axes = _canvas(2.9)
        step = 1 / len(counts)
        places = [(number + 0.5) * step for number in range(len(counts))]
        bars = axes.bar(places, counts, width=0.94 * step, color="#56B4E9")
        numbers = axes.bar_label(bars, [str(count or "") for count in counts], padding=2, zorder=3)
        for number in numbers:
            if number.get_text():  # readable also where the line of the median passes
                number.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
        axes.axvline(median, color="#B23A00", linestyle="--", linewidth=1.5)
        # Above the bars, and on the side where there is room for it.
        right = median > 0.5
        axes.annotate(
            tr("median {median}", median=f"{median:.0%}"),
            (median, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-5 if right else 5, -2),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top",
            color="#8A2D00",
        )
        axes.set_xlim(0, 1)
        axes.set_ylim(0, max([*counts, 1]) * 1.3)
        axes.set_xticks([tick / 10 for tick in range(0, 11, 2)])
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.set_xlabel(tr("share of the points"))
        axes.set_ylabel(tr("submissions"))
        return _svg(figure, alt)


def _canvas(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _name_rows(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), [_folded(label) for label in labels])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(labels) - 0.5, -0.5)


def _folded(label: str) -> str:
    """A long name on two lines, broken after an underscore or a blank near its middle."""
    if len(label) <= _LINE:
        return label
    breaks = [place.end() for place in re.finditer("[_ ]", label)]
    if not breaks:
        return label
    middle = min(breaks, key=lambda place: abs(place - len(label) / 2))
    return f"{label[:middle].rstrip()}\n{label[middle:]}"


def _shortened(label: str) -> str:
    """What fits on two lines, cut at a blank."""
    if len(label) <= _MAX_OF_A_LABEL:
        return label
    return label[:_MAX_OF_A_LABEL].rsplit(" ", 1)[0] + " …"


def _svg(figure: Figure, alt: str) -> str:
    """The figure as an element of a page: no addresses, ids that no other figure has."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text, count=2)
    own = zlib.crc32(text.encode())
    used = dict.fromkeys(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    names = {name: f"figure{own}-{number}" for number, name in enumerate(used)}
    text = re.sub(
        r'\sid="([^"]*)"',
        lambda match: f' id="{names[match[1]]}"' if match[1] in names else "",
        text,
    )
    text = re.sub(r'(url\(#|href="#)([^")]+)', lambda match: match[1] + names[match[2]], text)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(alt)}"', 1).strip()
