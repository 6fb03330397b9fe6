"""What is said of an answer by its properties was seen; and of others nothing is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lesson_kit import checks, setting
from lesson_kit.probes import (
    CHANGES_ITS_ARGUMENT,
    NOT_TEXT_BY_TEXT,
    NOT_THE_SAME_TWICE,
    ONLY_WITH_A_BATCH,
    SAME_WITH_A_BATCH,
    property_seen,
)

CHECK = """
x = np.arange(6.0).reshape(2, 3)
with checks.check("one text", 1):
    checks.assert_close(f(x), x @ x.T, "One text.")
with checks.check("a batch", 1):
    X = np.stack([x + 1, x + 2])
    checks.assert_close(f(X), X @ X.swapaxes(-1, -2), "A batch.")
checks.checks_passed("f")
"""


def seen(answer: str, check: str = CHECK) -> str:
    names: dict[str, Any] = {"np": np, "checks": checks}
    exec(answer, names)
    with setting.without_advice():
        test = compile(check, "<check>", "exec")
        return property_seen("f", test, names, checks.begin_cell, checks.parts)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return x @ x.T", NOT_TEXT_BY_TEXT),
        ("return x @ np.swapaxes(x, 0, 1)", NOT_TEXT_BY_TEXT),
        ("return x @ np.swapaxes(x, 1, 2)", ONLY_WITH_A_BATCH),
        ("batch, n, d = x.shape\n    return x @ x.swapaxes(-1, -2)", ONLY_WITH_A_BATCH),
        ("return x @ x.swapaxes(-1, -2) + np.zeros((1, 1, 1))", SAME_WITH_A_BATCH),
        ("return x @ x.swapaxes(-1, -2) + np.random.rand()", NOT_THE_SAME_TWICE),
        ("x += 1\n    return x @ np.ones_like(x).swapaxes(-1, -2)", CHANGES_ITS_ARGUMENT),
        # Wrong with every number of axes, and text by text: nothing follows from the axes.
        ("return 2 * x @ x.swapaxes(-1, -2)", ""),
        # Wrong in a batch only, but so is each of its texts.
        ("return x @ x.swapaxes(-1, -2) + (x.max() > 5)", ""),
        ("return x @ x.swapaxes(-1, -2)", ""),
    ],
)
def test_a_property_is_said_where_it_is_seen(body: str, said: str) -> None:
    assert seen(f"def f(x):\n    {body}\n") == said


def test_a_cell_without_named_checks_fails_in_its_last_call() -> None:
    check = CHECK.replace('with checks.check("one text", 1):', "if True:")
    check = check.replace('with checks.check("a batch", 1):', "if True:")
    assert seen("def f(x):\n    return x @ x.T\n", check) == NOT_TEXT_BY_TEXT
    # The text alone comes first, and nothing is known of what comes after it.
    assert seen("def f(x):\n    return x @ np.swapaxes(x, 1, 2)\n", check) == ""


def test_of_a_class_the_forward_is_watched() -> None:
    answer = "class f:\n    def forward(self, x):\n        return x @ x.T\n"
    check = CHECK.replace("f(x)", "f().forward(x)").replace("f(X)", "f().forward(X)")
    assert seen(answer, check) == NOT_TEXT_BY_TEXT


def test_random_draws_of_a_given_generator_are_no_fault() -> None:
    check = "x = np.random.default_rng(1)\nchecks.assert_close(f(x), 3.0, 'Three.')\n"
    assert seen("def f(rng):\n    return rng.normal()\n", check) == ""


def test_what_is_random_is_seen_although_two_calls_come_out_alike() -> None:
    # As dropout of a small part does: every second result is the same.
    answer = "calls = []\ndef f(x):\n    calls.append(1)\n    return x + len(calls) // 2 % 2\n"
    check = "x = np.ones(3)\nchecks.assert_close(f(x), 5 * x, 'Five.')\n"
    assert seen(answer, check) == NOT_THE_SAME_TWICE


def test_an_axis_that_is_asked_for_is_no_axis_counted_from_the_front() -> None:
    """A softmax that subtracts the maximum of the last axis, whatever the axis: large numbers."""
    check = """
with checks.check("the last axis", 1):
    checks.assert_close(f(np.array([1.0, 2.0])), softly(np.array([1.0, 2.0]), -1), "The last.")
with checks.check("every axis", 1):
    x = np.array([[1.0, 900.0], [2.0, 3.0]])
    checks.assert_close(f(x, axis=0), softly(x, 0), "The first.")
checks.checks_passed("f")
"""
    softly = (
        "def softly(x, axis):\n    powers = np.exp(x - x.max(axis=axis, keepdims=True))\n"
        "    return powers / powers.sum(axis=axis, keepdims=True)\n"
    )
    answer = (
        "def f(x, axis=-1):\n    powers = np.exp(x - x.max(axis=-1, keepdims=True))\n"
        "    return powers / powers.sum(axis=axis, keepdims=True)\n"
    )
    assert seen(softly + answer, check) == ""
