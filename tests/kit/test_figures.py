"""A figure reaches whoever cannot see it."""

from __future__ import annotations

import base64
import html
import re
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from autograder.notebooks import png_of
from lesson_kit import figures

matplotlib.use("agg")

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
        r'<img alt="([^"]*)" src="data:image/png;base64,([^"]*)">', bundle["text/html"]
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
