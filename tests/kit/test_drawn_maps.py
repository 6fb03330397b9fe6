"""A map is read as a reader sees it, whatever drew it."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

from lesson_kit.drawn_maps import drawn_map

NUMBERS = np.arange(6).reshape(2, 3) / 6


@pytest.fixture
def axes() -> Iterator[Axes]:
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.mark.parametrize("how", ["mesh", "image", "image from below", "mesh upside down"])
def test_rows_are_read_from_the_top_and_columns_from_the_left(axes: Axes, how: str) -> None:
    middle = 0.5 if "mesh" in how else 0.0
    if "mesh" in how:
        axes.pcolormesh(NUMBERS, vmin=0, vmax=1)
        if how == "mesh":
            axes.invert_yaxis()
    else:
        axes.imshow(NUMBERS, vmin=0, vmax=1, origin="lower" if "below" in how else "upper")
    axes.set_xticks(np.arange(3) + middle, ["the", "cat", "the"])
    axes.set_yticks(np.arange(2) + middle, ["a", "b"])
    axes.set(xlabel="key", ylabel="query")
    seen = drawn_map(axes)
    order = slice(None, None, -1 if how in ("image from below", "mesh upside down") else 1)
    np.testing.assert_allclose(seen["numbers"], NUMBERS[order])
    assert (seen["rows"], seen["columns"]) == (["a", "b"][order], ["the", "cat", "the"])
    assert (seen["maps"], seen["labels"]) == (1, ["query", "key"])
    np.testing.assert_allclose(seen["colours"], [0, 0.25, 0.5, 1])


def test_what_is_no_axes_is_named() -> None:
    assert drawn_map(None) == {"returned": "NoneType"}
