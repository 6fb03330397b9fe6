"""Formulas are drawn without the internet, and a student's text brings nothing else along."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from autograder.limited_process import TooMuch
from autograder.marking.formgrader import markdown_with_formulas
from autograder.marking.formula_process import converted
from autograder.marking.formulas import MAX_FORMULAS, as_mathml, with_formulas


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
        "$x$" * (MAX_FORMULAS + 50),
        r"$\unknowncommand{x}$",
        "<b>bold</b>",
    ],
)
def test_nothing_but_mathml_and_text_comes_out(text: str) -> None:
    made = with_formulas(text)
    for bad in ("<script", "<img", "<a ", "<b>", "href", 'javascript:alert(1)"'):
        assert bad not in made
    assert made.count("<math") <= MAX_FORMULAS


def test_lines_are_aligned_at_their_equals_signs() -> None:
    made = as_mathml(r"\begin{aligned} a &= b \\ c + d &= e \end{aligned}", block=True)
    assert made is not None
    assert made.count("<mtr>") == 2
    assert made.count("<mtd") == 4
    assert as_mathml(r"a &= b", block=True) is None, "a sign that belongs into a table"


def explosive(levels: int = 19) -> str:
    """A formula of macros, each three times the one before: 393 characters, a billion letters."""
    names = "abcdefghijklmnopqrstuvwxyz"[: levels + 1]
    steps = [rf"\def\{one}{{{{\{of}}}{{\{of}}}{{\{of}}}}}" for one, of in pairwise(names)]
    return "".join(reversed([*steps, rf"\def\{names[-1]}{{x}}"])) + r"\a"


@pytest.mark.parametrize("page", [with_formulas, markdown_with_formulas])
@pytest.mark.parametrize(
    "macro", [explosive(), r"\newcommand{\a}{x}\a", r"\DeclareMathOperator{\a}{x}\a"]
)
def test_a_formula_that_defines_a_command_is_shown_as_typed(page: Any, macro: str) -> None:
    assert len(macro) < 400
    made = page(f"so ${macro}$")
    assert "<math" not in made
    assert macro[:10] in made


@pytest.mark.slow
def test_a_formula_that_never_ends_is_ended_and_the_next_is_converted() -> None:
    """Past the refusal of macros: a converter has other ways to be slow."""
    with pytest.raises(TooMuch):
        converted(explosive(), block=False)
    assert "<msqrt>" in str(converted(r"\sqrt{2}", block=False))


def test_after_a_formula_that_is_too_much_the_text_stays_as_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def too_much(latex: str, *, block: bool) -> str:
        asked.append(latex)
        if latex == "y":
            raise TooMuch
        return "<math/>"

    monkeypatch.setattr("autograder.marking.formulas.converted", too_much)
    assert with_formulas("$x$ $y$ $z$") == "<math/> $y$ $z$"
    assert asked == ["x", "y"]
