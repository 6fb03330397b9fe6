"""What is compared with another result of the student's own code is never called expected."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np
import pytest
import torch

from autograder.authors.self_consistency import unsaid_own_results
from lesson_kit.checks import assert_close, assert_equal
from lesson_kit.failures import CheckFailed

ALONE = "for each text alone"
EXERCISES = {
    "double": "def double(x):\n    return 2 * x\n",
    "Layer": "class Layer(nn.Module):\n    def forward(self, x):\n        return x\n\n"
    "    def steps(self, x):\n        return [x]\n",
}


@pytest.mark.parametrize(
    "compare",
    [
        lambda against: assert_close(np.arange(6.0), np.ones(6), "Says.", against=against),
        lambda against: assert_close(np.ones((2, 3)), np.ones((3, 2)), "Says.", against=against),
        lambda against: assert_close(1.0, 2.0, "Says.", against=against),
        lambda against: assert_close(
            torch.ones(2, 2), torch.eye(2), "Says.", name="output", against=against
        ),
        lambda against: assert_equal(3, 4, "Says.", against=against),
        lambda against: assert_equal((1, 2), (1, 3), "Says.", against=against),
        lambda against: assert_equal([1, 2], [1, 2, 3], "Says.", against=against),
        lambda against: assert_equal(np.ones(2), np.ones(3), "Says.", against=against),
        lambda against: assert_equal(np.ones(2), np.ones(2, "f4"), "Says.", against=against),
        lambda against: assert_equal(np.ones(2), np.zeros(2), "Says.", against=against),
        lambda against: assert_equal(1, "1", "Says.", against=against),
        lambda against: assert_equal({"a": 1}, {"b": 1}, "Says.", against=against),
    ],
)
def test_it_is_not_called_right(compare: Callable[[str], None]) -> None:
    with pytest.raises(CheckFailed) as reference:
        compare("")
    with pytest.raises(CheckFailed) as own:
        compare(ALONE)
    said, html = "\n".join(own.value.lines()), own.value.html()
    for word in ("should", "xpected", "in place of"):
        assert word not in said and word not in html, said
    assert any(
        word in str(reference.value) for word in ("should", "xpected", "in place of", "other")
    )
    assert ALONE in said.lower()
    assert own.value.evidence == reference.value.evidence


def test_an_array_of_the_checks_own_is_not_called_the_answers() -> None:
    with pytest.raises(CheckFailed) as failed:
        assert_equal(torch.ones(2), np.ones(2), "Says.", against=ALONE)
    assert str(failed.value).endswith(
        "The result is a torch tensor; for each text alone it is compared as a NumPy array."
    )


def test_keys_that_are_missing_or_too_many_are_named() -> None:
    yours = dict.fromkeys(["b", "a", *range(40)])
    with pytest.raises(CheckFailed) as failed:
        assert_equal(yours, dict.fromkeys(["a", "c"]), "Says.", name="state")
    assert str(failed.value).endswith(
        "keys of state should be others. Missing: c. Too many: b, 0, 1, 2, 3, 4, 5, 6 and 33 more."
    )


def test_the_name_of_an_error_is_no_result() -> None:
    with pytest.raises(CheckFailed, match="is no result: RuntimeError was raised"):
        assert_close("RuntimeError", torch.ones(2), "Says.")
    with pytest.raises(CheckFailed, match="should be a NumPy array and is a str"):
        assert_close("print", np.ones(2), "Says.")


def test_a_table_says_which_call_it_is() -> None:
    with pytest.raises(CheckFailed) as failed:
        assert_close(np.ones((2, 2)), np.eye(2), "Says.", against=ALONE)
    assert "For each text alone:" in failed.value.lines()
    assert "<caption>for each text alone</caption>" in failed.value.html()
    assert "the first at [0, 1]: 1, and 0 for each text alone." in str(failed.value)


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("alone = double(x[0])\nassert_close(double(x)[0], alone, 'm')", "double(x)[0], alone"),
        ("alone = [double(one) for one in x]\nassert_close(y, np.stack(alone), 'm')", "y, np.st"),
        ("assert_equal(y, double(x), 'm')", "y, double(x)"),
        ("twice = double\nassert_close(y, twice(x), 'm')", "y, twice(x)"),
        ("layer = Layer().double()\nassert_close(y, layer(x), 'm')", "y, layer(x)"),
        ("assert_close(y, Layer()(x), 'm')", "y, Layer()(x)"),
        ("layer = Layer()\nassert_close(y, layer.steps(x), 'm')", "y, layer.steps(x)"),
        ("def run(x):\n    return double(x)\nassert_close(y, run(x), 'm')", "y, run(x)"),
        ("def run(f, x):\n    return f(x)\nassert_close(y, run(double, x), 'm')", "y, run(d"),
        ("def same(y, x):\n    assert_close(y, double(x), 'm')", "y, double(x)"),
        ("rows = {}\nrows[0] = double(x)\nassert_close(y, rows[0], 'm')", "y, rows[0]"),
        ("total = 0\ntotal += double(x)\nassert_close(y, total, 'm')", "y, total"),
        ("for one in double(x):\n    assert_close(y, one, 'm')", "y, one"),
        ("with check('n', points=1):\n    assert_close(y, double(x), 'm')", "y, double(x)"),
        ("if x:\n    pass\nelse:\n    assert_close(y, double(x), 'm')", "y, double(x)"),
        ("assert_close(double(x), 2 * x, 'm')", ""),
        ("assert_close(y, double(x), 'm', against='in one batch')", ""),
        ("alone = double(x)\nalone = 2 * x\nassert_close(y, alone, 'm')", ""),
        ("layer = Layer()\nassert_close(y, x @ layer.weight, 'm')", ""),
        ("def by_torch(layer, x):\n    return x @ layer.weight\nlayer = Layer()\n"
         "assert_close(y, by_torch(layer, x), 'm')", ""),
        ("facts = {1: double(1) == 2}\nassert_equal(facts, dict.fromkeys(facts, True), 'm')", ""),
    ],
)  # fmt: skip
def test_a_comparison_that_does_not_say_so_is_found(test: str, found: str) -> None:
    exercises = {name: ast.parse(source) for name, source in EXERCISES.items()}
    texts = list(unsaid_own_results(ast.parse(test), exercises))
    assert len(texts) == bool(found) and all(text.startswith(found) for text in texts), texts
