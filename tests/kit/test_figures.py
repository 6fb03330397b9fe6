"""A figure reaches whoever cannot see it."""

from __future__ import annotations

import base64
import html
import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from autograder.notebooks import joined, png_of
from lesson_kit import figures, images

matplotlib.use("agg")

SOLVED = sorted(Path(__file__).parents[2].glob("solutions/*/*.ipynb"))

#: What a notebook shows at 1280: pixels across, and characters in two lines of a caption.
WIDEST, LONGEST = 830, 250

#: What those see who lack the cones for green or for red, of linear RGB (Machado and others, 2009).
COLOUR_BLIND = (
    [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
)

#: From linear RGB to XYZ, as shares of white.
TO_XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1094, 0.8727]])

ALT = 'Weights <1 & "sharp": one row of two.'


def test_the_alternative_text_is_on_the_image_that_a_page_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(figures, "display", lambda one, **more: shown.append((one, more)))
    figures.heatmap([[0.25, 0.75]], ["q"], ["a", "b"], caption="Figure 1. Sharp.", alt=ALT)
    (bundle, how), (words, _) = shown
    assert how == {"raw": True}
    found = re.fullmatch(
        r'<style>.*</style><img class="drawn" alt="([^"]*)" src="data:image/png;base64,([^"]*)">',
        bundle["text/html"],
    )
    assert found is not None
    assert html.unescape(found[1]) == ALT == bundle["text/plain"]
    assert bundle.keys() == {"text/html", "text/plain"}, "it is stored once"
    assert png_of(bundle) == png_of({"text/html": [bundle["text/html"]]}) == found[2]
    assert base64.b64decode(found[2]).startswith(b"\x89PNG")
    assert "0.25" in words.data and "Figure 1. Sharp." in words.data


def test_signed_values_are_centred_on_zero_and_have_a_bar() -> None:
    figure, axes = plt.subplots()
    figures.draw_heatmap(axes, [[0.2, -0.9]], ["q"], ["a", "b"], signed=True)
    mesh = axes.collections[0]
    assert mesh.get_cmap() is not None and mesh.get_cmap().name == figures.DIVERGING
    assert mesh.get_clim() == (-1.0, 1.0)
    assert len(figure.axes) == 2, "a colour bar"
    plt.close(figure)


def test_links_leave_small_weights_out_and_show_a_crossing() -> None:
    figure, axes = plt.subplots()
    figures.draw_links(axes, [[0.05, 0.95], [0.9, 0.1]], ["chat", "noir"], ["black", "cat"])
    lines = [tuple(np.asarray(one.get_xdata())) for one in axes.lines]
    assert lines == [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]  # below, above
    assert axes.lines[0].get_linewidth() > axes.lines[2].get_linewidth()
    assert {text.get_text() for text in axes.texts} == {"chat", "noir", "black", "cat"}
    plt.close(figure)


def test_a_flow_has_its_boxes_and_an_arrow_for_each_way() -> None:
    figure, axes = plt.subplots()
    boxes = {"x": (0.0, 0.0), "part#1": (1.0, 0.0), "part#2": (2.0, 0.0)}
    ways = [("x", "part#1"), ("part#1", "part#2"), ((0.5, 0.0), (0.5, 1.0), (2.0, 1.0), "part#2")]
    figures.draw_flow(axes, boxes, ways, plain=("x",))  # type: ignore[arg-type]
    heads = [one for one in axes.texts if getattr(one, "arrow_patch", None)]
    words = [one.get_text() for one in axes.texts if one not in heads]
    assert words == ["x", "part", "part"] and len(heads) == 3
    assert len(axes.lines) == 2, "the corners of the third"
    assert axes.get_ylim()[1] > 1.0, "all of it is in sight"
    plt.close(figure)


def lab(colour: str, sight: Any) -> np.ndarray:
    """A colour as CIE Lab, whose distances are those that are seen."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    x, y, z = np.cbrt(TO_XYZ @ np.clip(np.array(sight) @ linear, 0.0, 1.0))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", [np.eye(3), *COLOUR_BLIND], ids=["all", "no green", "no red"])
def test_lines_are_told_apart_with_any_colour_vision(sight: Any) -> None:
    """Those of matplotlib are 4.6 apart at the nearest; above some 10 nobody has to look twice."""
    seen = [lab(colour, sight) for colour in figures.COLOURS]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 15


@pytest.mark.parametrize("solved", SOLVED, ids=lambda path: path.parent.name)
def test_a_lesson_s_figures_fit_a_page_light_or_dark(solved: Path) -> None:
    wrong, found = [], 0
    for number, cell in enumerate(json.loads(solved.read_text("utf-8"))["cells"]):
        outputs = cell.get("outputs", [])
        for output, below in zip(outputs, [*outputs[1:], {}]):
            data = output.get("data", {})
            if not (picture := png_of(data)):
                continue
            found += 1
            width = int.from_bytes(base64.b64decode(picture)[16:20], "big")
            caption = joined(below.get("data", {}).get("text/markdown")).partition("\n")[0]
            if not re.match(
                re.escape(images.STYLE) + '<img class="drawn" alt="[^"]',
                joined(data.get("text/html")),
            ):
                wrong.append(
                    f"cell {number}: not shown by lesson_kit.figures, or without its words"
                )
            if width > WIDEST:
                wrong.append(f"cell {number}: {width} pixels wide, at most {WIDEST}")
            if not 0 < len(caption) <= LONGEST:
                wrong.append(
                    f"cell {number}: a caption of {len(caption)} characters, at most {LONGEST}"
                )
    assert not wrong and found
