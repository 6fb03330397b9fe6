"""Formulas are drawn without the internet, and a student's text brings nothing else along."""

from __future__ import annotations

import pytest

from autograder.marking.formulas import MOST_FORMULAS, as_mathml, with_formulas


def test_a_formula_becomes_mathml() -> None:
    made = with_formulas(r"divide by $\sqrt{d_k}$ & go on")
    assert made.startswith("divide by <math")
    assert "<msqrt>" in made
    assert made.endswith("</math> &amp; go on")


def test_a_displayed_formula_is_a_block() -> None:
    assert 'display="block"' in with_formulas(r"$$\frac{a}{b}$$")


@pytest.mark.parametrize(
    "text",
    [
        "it costs 5$ and no more",
        "$<script>alert(1)</script>$",
        r"$\href{javascript:alert(1)}{x}$",
        r"$\text{<img src=x onerror=alert(1)>}$",
        r"$\frac{$",
        "$" * 1000,
        "$x$" * (MOST_FORMULAS + 50),
        r"$\unknowncommand{x}$",
        "<b>bold</b>",
    ],
)
def test_nothing_but_mathml_and_text_comes_out(text: str) -> None:
    made = with_formulas(text)
    for bad in ("<script", "<img", "<a ", "<b>", "href", 'javascript:alert(1)"'):
        assert bad not in made
    assert made.count("<math") <= MOST_FORMULAS


def test_lines_are_aligned_at_their_equals_signs() -> None:
    made = as_mathml(r"\begin{aligned} a &= b \\ c + d &= e \end{aligned}", block=True)
    assert made is not None
    assert made.count("<mtr>") == 2
    assert made.count("<mtd") == 4
    assert as_mathml(r"a &= b", block=True) is None, "a sign that belongs into a table"
