"""An answer stays in its place on a page: it paints over nothing that others say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.build.build import write_source
from autograder.classroom.grades_file import GradedSubmission
from autograder.course.bundle import Bundle
from autograder.grade.cells import Cell
from autograder.marking.feedback import feedback_page
from autograder.marking.formulas import with_formulas

from ..conftest import ROOT
from ..feedback_result import a_result
from ..tiny import tiny_course
from .window import needs_chromium, window

#: A browser breaks no line in a formula, and stacks as many accents as there are.
LONG = "$$" + "+".join(f"x_{{{n}}}" for n in range(40)) + "$$"
TALL = "Z" + "\u0301" * 400


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize(("answer", "beside"), [(LONG, "aside"), (TALL, "section h2")])
def test_the_page_of_mark(answer: str, beside: str, tmp_path: Path) -> None:
    template = (ROOT / "autograder" / "templates" / "mark.html.j2").read_text()
    style = re.search(r"<style>.*?</style>", template, re.DOTALL)
    assert style is not None
    with window() as browser:
        seen = []
        for text in (answer, "x"):
            path = tmp_path / "mark.html"
            path.write_text(
                f"<!DOCTYPE html><meta charset=utf-8>{style[0]}<main><section><h2>Answer</h2>"
                f'<div id="answer" class="text">{with_formulas(text)}</div></section>'
                f"<aside>{'<h2>The question</h2>' * 5}</aside>"
                "</main>"
            )
            page = browser.open(path.as_uri())
            assert page.locator("#answer").inner_text().strip()
            seen.append(page.locator(beside).screenshot())
        assert seen[0] == seen[1]


@pytest.mark.long
@needs_chromium
def test_a_page_of_feedback(tmp_path: Path) -> None:
    place = tmp_path / "source" / "01-tiny"
    write_source(tiny_course(tmp_path / "course").lesson("01"), place)
    bundle = Bundle.load(place)
    with window() as browser:
        seen = []
        for text in (TALL, "x"):
            result = a_result(cells=(Cell("markdown", text, "written_why"),))
            path = tmp_path / "feedback.html"
            path.write_text(feedback_page(GradedSubmission("ada", result), bundle, {}, name="Ada"))
            page = browser.open(path.as_uri())
            assert page.locator(".written").inner_text().startswith(text[0])
            seen.append(page.locator("#written_why").screenshot())
        assert seen[0] == seen[1]
