"""The way of a token through a model as one picture, and where on it a lesson is.

The course says what stands on the way: its stations with their numbers lie in the file beside the
notebook, each with the lessons that are about it; a course without them shows nothing. The picture
is an image with its text in words, because JupyterLab's sanitiser takes ``<svg>`` away.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .images import html_image
from .setting import beside_notebook, unpack

__all__ = ["WAY", "as_image", "show_strip", "show_way", "strip", "whole"]

#: The key in the file beside a notebook.
WAY = "way"

WIDTH = 830
#: Where numbers begin in the whole picture, and how wide all of them are.
LEFT, WIDE = 230, 588
#: From below 0 to above, nine steps; the ends are told apart with any colour vision.
_COLOURS = (
    *("#2166ac", "#5f98c6", "#a3c6df", "#d5e2ea", "#eceef0"),
    *("#f3dcca", "#f0b08f", "#d9705a", "#b2182b"),
)
_INK, _PALE, _MARK, _HIDDEN = "#1f2933", "#52606d", "#8a4b00", "#c4cad0"


def show_way() -> None:
    """The whole way, with this lesson's stations marked; nothing where the course has none."""
    if packed := beside_notebook().get(WAY):
        way = unpack(packed)
        _display(whole(way), way)


def show_strip() -> None:
    """The way in one row, as :func:`show_way`; nothing too where the file is missing or damaged,
    of which checks speak."""
    with suppress(OSError, ValueError):
        if packed := beside_notebook().get(WAY):
            way = unpack(packed)
            _display(strip(way), way)


def as_image(svg: str, words: str) -> str:
    """An SVG as HTML that stays where ``<svg>`` itself is taken away."""
    return html_image(svg.encode(), "svg+xml", words)


def _display(svg: str, way: dict[str, Any]) -> None:
    from IPython.display import display

    words = f"{way['says']} You are here: {', '.join(_here(way))}."
    display({"text/html": as_image(svg, words), "text/plain": words}, raw=True)


def _here(way: dict[str, Any]) -> list[str]:
    return [at["name"] for at in way["stations"] if way["number"] in at["lessons"]]


def whole(way: dict[str, Any]) -> str:
    """All stations below one another with their numbers, as SVG."""
    repeated, here, parts = way["repeated"], _here(way), []
    y, top, ends = 12.0, 0.0, []
    for station in way["stations"]:
        name, noted = station["name"], station.get("note", "")
        if name == repeated["from"]:
            top, y = y, y + 20
        high = {"maps": 88, "strips": 18 * len(station.get("rows", "1")) + 16}
        height = max(high.get(station["kind"], 0), 42) + 16 * bool(noted)
        ends += [y] if station["kind"] == "strips" else []
        if name in here:
            parts.append(_box(8, y, WIDTH - 16, height - 2, "#fff1c9", _MARK))
            parts.append(_text(202, y + 17, "you are here", 11, _MARK, anchor="end", weight="bold"))
        s = "s" * (len(station["lessons"]) > 1)
        lessons = station["lessons"] and f"lesson{s} {', '.join(map(str, station['lessons']))}"
        said = " · ".join(filter(None, [station.get("shape"), lessons]))
        parts += [_text(16, y + 17, name, 14, weight="bold"), _text(16, y + 33, said, 11, _PALE)]
        parts += [_text(LEFT, y + height - 8, noted, 12, _PALE), _numbers(station, y + 6)]
        if station.get("adds"):
            parts.append(f'<circle cx="214" cy="{y + 15}" r="8" fill="#fff" stroke="{_INK}"/>')
            parts.append(_text(214, y + 20, "+", 14, anchor="middle"))
        y += height
        if name == repeated["to"]:
            parts.append(_box(4, top, WIDTH - 8, y - top, "none", f'{_PALE}" stroke-dasharray="5'))
            parts.append(_text(16, top + 14, repeated["name"], 12, _PALE))
            y += 6
    line = f'<path d="M214 {ends[0]}V{ends[-1] + 20}" stroke="{_PALE}" stroke-width="1.5"/>'
    return _svg(y + 4, [line, *parts])


def strip(way: dict[str, Any]) -> str:
    """The stations in one row, each with the numbers of the last token, as SVG."""
    repeated, here, parts = way["repeated"], _here(way), []
    step = (WIDTH - 12) / len(way["stations"])
    places = {at["name"]: 6 + i * step for i, at in enumerate(way["stations"])}
    for station in way["stations"]:
        name, middle = station["name"], places[station["name"]] + step / 2
        if name in here:
            parts.append(_box(middle - step / 2 + 1, 20, step - 2, 96, "#fff1c9", _MARK))
        weight = "bold" if name in here else "normal"
        lines = [name] if "," in name else name.replace("-", "- ").split()
        for i, line in enumerate(lines):
            parts.append(_text(middle, 34 + 12 * i, line, 11, anchor="middle", weight=weight))
        parts.append(_text(middle, 110, station.get("shape", ""), 10, _PALE, anchor="middle"))
        parts.append(_last(station, middle))
    left, right = places[repeated["from"]] + 2, places[repeated["to"]] + step - 2
    parts.append(f'<path d="M{left} 18v-5H{right}v5" fill="none" stroke="{_PALE}"/>')
    parts.append(_text((left + right) / 2, 10, repeated["name"], 10, _PALE, anchor="middle"))
    if here:
        at = min(max((places[here[0]] + places[here[-1]] + step) / 2, 44), WIDTH - 44)
        parts.append(_text(at, 129, "you are here", 11, _MARK, anchor="middle", weight="bold"))
    return _svg(136, parts)


def _numbers(station: dict[str, Any], y: float) -> str:
    """What a station holds, right of its name in the whole picture."""
    kind, values = station["kind"], station["values"]
    each, parts = WIDE / len(values), []
    if kind == "strips":
        for i, tokens in enumerate(values if "rows" in station else [values]):
            nested = isinstance(tokens[0][0], list)  # by group, then by token
            by_token = [*zip(*tokens)] if nested else [[cells] for cells in tokens]
            each, groups = WIDE / len(by_token), len(by_token[0])
            wide = (each - 8 - 4 * (groups - 1)) / groups
            parts.append(_text(LEFT - 8, y + 14 + 18 * i, station.get("rows", " ")[i], 11, _PALE))
            for token, its_groups in enumerate(by_token):
                for group, cells in enumerate(its_groups):
                    x = LEFT + 4 + token * each + group * (wide + 4)
                    parts.append(_cells([cells], _largest(values), x, y + 3 + 18 * i, wide, 14))
        return "".join(parts)
    for i, value in enumerate(values):
        x = LEFT + i * each
        if kind == "maps":
            parts.append(_cells(value, _largest(values), x, y, 72, 72))
        elif kind == "bars":
            parts.append(_text(x, y + 17, value[0], 14))
            parts.append(_box(x + 20, y + 6, 70 * value[1], 13, _COLOURS[0], "none"))
            parts.append(_text(x + 26 + 70 * value[1], y + 17, f"{value[1]:.2f}", 12, _PALE))
        else:
            parts.append(_box(x, y, each - 8, 22, "#fff", _PALE))
            parts.append(_text(x + each / 2 - 4, y + 16, value, 14, anchor="middle"))
    return "".join(parts)


def _last(station: dict[str, Any], middle: float) -> str:
    """The same of the last token alone, as wide as a strip has room."""
    kind, values = station["kind"], station["values"]
    if kind == "words":
        return _text(middle, 78, values[-1], 14 if len(values) > 1 else 11, anchor="middle")
    if kind == "bars":
        bar = _box(middle - 20, 78, 40 * values[0][1], 8, _COLOURS[0], "none")
        return _text(middle, 72, values[0][0], 14, anchor="middle") + bar
    rows = [part[-1] for part in values] if isinstance(values[0][0], list) else [values[-1]]
    if len(rows) == 1:  # one vector, in four rows
        row, quarter = rows[0], -(-len(rows[0]) // 4)
        rows = [row[i : i + quarter] for i in range(0, len(row), quarter)]
    return _cells(rows, _largest(values), middle - 23, 58, 46, 9 * len(rows))


def _cells(
    rows: Sequence[Sequence[float | None]], limit: float, x: float, y: float, *size: float
) -> str:
    """Numbers as cells in colours from -limit to limit; what may not be seen is grey."""
    wide, marks = len(rows[0]), {_COLOURS[4]: ""}
    for i, row in enumerate(rows):
        marks[_COLOURS[4]] += f"M0 {i}.5h{len(row)}"  # 0 lies below all others
        for j, value in enumerate(row):
            colour = _HIDDEN if value is None else _COLOURS[round(4 + 4 * value / limit)]
            if colour != _COLOURS[4]:
                marks[colour] = marks.get(colour, "") + f"M{j} {i}.5h1"
    scale = f"translate({x:.1f} {y:.1f}) scale({size[0] / wide:.2f} {size[1] / len(rows):.2f})"
    drawn = "".join(f'<path stroke="{colour}" d="{d}"/>' for colour, d in marks.items())
    return f'<g transform="{scale}" stroke-width=".95">{drawn}</g>'


def _largest(values: Any) -> float:
    return max(map(_largest, values)) if isinstance(values, list) else abs(values or 0)


def _box(x: float, y: float, wide: float, high: float, *colours: str) -> str:
    """A rectangle; its colours are those of fill and edge."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="4"'
    return '<rect {} fill="{}" stroke="{}"/>'.format(place, *colours)


def _text(x: float, y: float, text: str, size: int, colour: str = _INK, **look: str) -> str:
    """A line of text; ``look``: anchor and weight."""
    anchor, weight = look.get("anchor", "start"), look.get("weight", "normal")
    kind = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {kind}>{html.escape(text)}</text>'


def _svg(height: float, parts: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height:.0f}" '
        f'font-family="sans-serif"><rect {size} rx="6" fill="#f7f8fa"/>{"".join(parts)}</svg>'
    )
