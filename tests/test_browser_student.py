"""A student's first exercise, in a real browser: wrong, told why, right, validated."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
from playwright.sync_api import Locator, Page, expect

from autograder.course.implementations import misconceptions
from autograder.notebooks import SETUP, grade_id, tags

from .browser import SECONDS, jupyter_lab, needs_chromium, take_picture, window
from .conftest import COURSE, ROOT

expect.set_options(timeout=SECONDS * 1000)

LESSON = COURSE.lesson("03-scaled-dot-product-attention")
EXERCISE = "scaled_dot_product_attention"
NOTEBOOK = f"{LESSON.folder}/{LESSON.notebook_name}.ipynb"
MISTAKE = next(
    one for one in misconceptions(LESSON) if one.name == "attention_softmax_over_queries"
)


def cell(page: Page, number: int) -> Locator:
    """A cell by its place: the page holds only what can be seen, and what is near."""
    return page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{number}']")


def run(page: Page, one: Locator) -> None:
    """Click into a cell and run it."""
    one.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


def answer(page: Page, stub: Locator, source: str) -> None:
    """Type an answer in place of what stands in the cell, and run it."""
    stub.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(source.strip())
    page.keyboard.press("Control+Enter")


@needs_chromium
def test_a_student_is_told_the_mistake_mends_it_and_validates(tmp_path: Path) -> None:
    course = tmp_path / "course"
    shutil.copytree(ROOT / "course" / LESSON.folder, course / LESSON.folder)
    cells = nbformat.read(course / NOTEBOOK, as_version=4).cells
    place = {"setup" if SETUP in tags(one) else grade_id(one): n for n, one in enumerate(cells)}
    with jupyter_lab(course, tmp_path) as lab, window() as browser:
        page = browser.open(lab.address(f"lab/tree/{NOTEBOOK}"))
        expect(page.locator(".jp-Notebook mjx-container").first).to_be_visible()
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        setup = cell(page, place["setup"])
        run(page, setup)
        expect(setup.locator(".jp-InputPrompt")).to_have_text("[1]:")

        page.get_by_role("tab", name="Table of Contents").click()
        headings = page.locator(".jp-TableOfContents-content")
        headings.get_by_text(f"Exercise 2: {EXERCISE}").click()
        stub, check = cell(page, place[EXERCISE]), cell(page, place[f"test_{EXERCISE}"])
        answer(page, stub, MISTAKE.source)
        run(page, check)
        expect(check.locator(".jp-OutputArea")).to_contain_text(MISTAKE.sentence)
        check.locator(".jp-OutputArea").scroll_into_view_if_needed()
        take_picture(page, "student-diagnosis")

        answer(page, stub, LESSON.exercises[EXERCISE])
        run(page, check)
        expect(check.locator(".jp-OutputArea")).not_to_contain_text(MISTAKE.sentence)
        expect(check.locator(".jp-OutputArea")).to_contain_text("these checks pass")
        check.locator(".jp-OutputArea").scroll_into_view_if_needed()
        take_picture(page, "student-passes")

        page.get_by_role("button", name="Validate").click()
        dialog = page.locator(".jp-Dialog")
        expect(dialog).to_contain_text("Validation Results")
        expect(dialog).to_contain_text('checks_passed("dot_product_variance")')
        expect(dialog).to_contain_text('checks_passed("padding_mask")')
        expect(dialog).not_to_contain_text(f'checks_passed("{EXERCISE}")')
        take_picture(page, "student-validate")
        assert not browser.asked_outside
