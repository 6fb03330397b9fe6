"""A figure reaches whoever cannot see it."""

from __future__ import annotations

import base64
import html
import re
from typing import Any

import matplotlib
import pytest

from autograder.lesson import figures

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
    assert found[2] == bundle["image/png"]
    assert base64.b64decode(found[2]).startswith(b"\x89PNG")
    assert "0.25" in words.data and "Figure 1. Sharp." in words.data
