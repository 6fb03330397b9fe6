"""A picture that moves where a page shows it, and stands still everywhere else."""

from __future__ import annotations

import html
import sys
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes

from lesson_kit import figures, hands_on

matplotlib.use("agg")

SETTINGS = (1, 2, 5)


def bar(axes: Axes, setting: int) -> str:
    axes.bar([0], [setting])
    if setting == 2:
        raise ValueError("not <2>")
    return f"The bar is {setting} high."


def on_off(axes: Axes, on: np.ndarray) -> str:
    return f"On: {np.asarray(on).astype(int).tolist()}."


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    for module in (figures, hands_on):
        monkeypatch.setattr(module, "display", lambda one, **_: found.append(one))
    return found


def with_a_page(monkeypatch: pytest.MonkeyPatch, asked: bool = True) -> None:
    monkeypatch.setattr(hands_on, "asked_by_a_page", lambda: asked)


def show_slider() -> None:
    hands_on.slider(bar, "height", SETTINGS, pictures=(1, 5), caption="Try it.")


def is_still(shown: list[Any]) -> None:
    picture, words = shown
    assert set(picture) == {"text/html", "text/plain"}
    assert picture["text/plain"] == ("height: 1. The bar is 1 high. height: 5. The bar is 5 high.")
    assert "Try it." in words.data


def test_without_a_page_there_is_a_picture_the_same_each_time(shown: list[Any]) -> None:
    show_slider()  # pytest is no page
    is_still(shown)
    show_slider()
    assert shown[0] == shown[2]


def test_without_ipywidgets_there_is_a_picture(
    monkeypatch: pytest.MonkeyPatch, shown: list[Any]
) -> None:
    with_a_page(monkeypatch)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    show_slider()
    is_still(shown)


def test_a_page_gets_a_slider_and_the_pictures_below_it(
    monkeypatch: pytest.MonkeyPatch, shown: list[Any]
) -> None:
    with_a_page(monkeypatch)
    show_slider()
    box, caption, folded = shown
    control, picture = box.children
    assert control.description == "height" and [value for _, value in control.options] == [1, 2, 5]
    assert 'alt="height: 1"' in picture.value and "The bar is 1 high." in picture.value
    control.value = 5
    assert 'alt="height: 5"' in picture.value and "The bar is 5 high." in picture.value
    control.value = 2  # the function raises: a widget would say that to nobody
    assert "height: 2 could not be drawn" in picture.value
    assert html.escape("not <2>") in picture.value
    assert caption.data == "*Try it.*"
    assert "<details>" in folded["text/html"] and "The bar is 5 high." in folded["text/html"]


@pytest.mark.parametrize("rows", [(), ("p", "q")])
def test_switches_hand_over_what_is_on(
    monkeypatch: pytest.MonkeyPatch, shown: list[Any], rows: tuple[str, ...]
) -> None:
    begin = [[True, False], [False, False]] if rows else [True, False]
    more = {"rows": rows, "pictures": {"the first one": begin}}
    hands_on.switches(on_off, "on", ["a", "b"], caption="Try it.", **more)  # type: ignore[arg-type]
    assert shown[0]["text/plain"].startswith(
        f"the first one. On: {np.array(begin).astype(int)}"[:20]
    )
    shown.clear()
    with_a_page(monkeypatch)
    hands_on.switches(on_off, "on", ["a", "b"], caption="Try it.", **more)  # type: ignore[arg-type]
    switches, picture = shown[0].children
    line = switches.children[-1]
    last = line.children[-1]
    assert last.description == "b" and last.value is False
    last.value = True
    expected = [[1, 0], [0, 1]] if rows else [1, 1]
    assert f"On: {expected}." in picture.value
    said = "p: a; q: b" if rows else "on: a, b"
    assert f'alt="{said}"' in picture.value


@pytest.mark.parametrize(("cell", "asked"), [("abc", True), ("", False)])
def test_a_page_says_which_cell_it_asks_for_and_a_program_does_not(
    monkeypatch: pytest.MonkeyPatch, cell: str, asked: bool
) -> None:
    from lesson_kit import cells

    parent = {"metadata": {"cellId": cell} if cell else {}}
    kernel = SimpleNamespace(get_parent=lambda _: parent)
    monkeypatch.setattr(cells, "_shell", lambda: SimpleNamespace(kernel=kernel))
    assert cells.asked_by_a_page() is asked
