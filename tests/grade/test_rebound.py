"""Where a later cell may change what an earlier exercise means, the box is kept."""

from __future__ import annotations

import pytest

from autograder.grade.cell_names import may_be_rebound

EARLIER = ["scale = 2", "def half(x):\n    rest = x / scale\n    return rest", "answer_a = 3"]


@pytest.mark.parametrize(
    "later",
    [
        "scale = 3",
        "def half(x):\n    return x",
        "answer_a = 4",
        "def change():\n    global scale\n    scale = 1\nchange()",
        "for scale in range(3): pass",
        "del scale",
        "globals()['scale'] = 3",
        "%matplotlib inline",
        "no python",
    ],
)
def test_it_may(later: str) -> None:
    assert may_be_rebound(EARLIER, ["print(1)", later])


@pytest.mark.parametrize(
    "later",
    ["", "x = 3\nrest = half(x)", "import numpy as scale", "def other(scale):\n    return scale"],
)
def test_it_does_not(later: str) -> None:
    assert not may_be_rebound(EARLIER, [later])


def test_what_python_brings_is_used_as_well() -> None:
    assert may_be_rebound(["def f(x):\n    return list(x)"], ["list = [1, 2]"])
