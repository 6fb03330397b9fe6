"""Everyday accidents on a student's page: each is told in a calm box, and nothing in pink."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from autograder.notebooks import SETUP, grade_id, tags

from ..hand_outs import TINY, handed_out
from ..tiny import LESSON
from .notebook_page import (
    PINK,
    answer,
    answer_and_check,
    cell,
    run,
    said_below,
    wait_for_the_kernel,
)
from .window import SECONDS, jupyter_lab, needs_chromium, take_picture, window

expect.set_options(timeout=SECONDS * 1000)

TOO_EARLY = "This cell could not run yet."
NO_SETUP = "The setup cell has not run since Python was started"
DOUBLE = (
    "def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise ValueError\n    return 2 * x"
)


class Opened:
    """The tiny lesson in JupyterLab, its cells by name."""

    def __init__(self, page: Page, course: Path) -> None:
        cells = nbformat.read(course / TINY, as_version=4).cells
        self.page = page
        self._places = {
            "setup" if SETUP in tags(one) else grade_id(one) or one.source.strip(): place
            for place, one in enumerate(cells)
        }

    def __getitem__(self, name: str) -> Locator:
        return cell(self.page, self._places[name])

    def check(self, name: str, *sentences: str) -> None:
        """Run the check of an exercise by a click; it says these, and no more than a box."""
        run(self.page, self[f"test_{name}"])
        self.says(f"test_{name}", *sentences)

    def try_out(self, name: str, source: str, *sentences: str) -> None:
        """Type an answer, run it and its check; that says these, and no more than a box."""
        answer_and_check(self.page, self[name], source)
        self.says(f"test_{name}", *sentences)

    def says(self, name: str, *sentences: str) -> None:
        """A cell's output holds these, and nothing in pink."""
        for sentence in sentences:
            expect(said_below(self[name])).to_contain_text(sentence)
        wait_for_the_kernel(self.page)
        assert not "".join(said_below(self[name]).locator(PINK).all_inner_texts()).strip()
        box = said_below(self[name]).locator("[role=alert], [role=status]")
        expect(box).to_have_count(1)
        box.scroll_into_view_if_needed()

    def menu(self, first: str, second: str) -> None:
        """Choose from JupyterLab's menu."""
        self.page.get_by_role("menuitem", name=first, exact=True).click()
        self.page.get_by_role("menuitem", name=second).first.click()


@pytest.fixture
def lesson(tmp_path: Path) -> Iterator[Opened]:
    text = LESSON.replace('raise RuntimeError("a demonstration is not', "print(quadruple(later)) #")
    course = handed_out(tmp_path, text)
    with jupyter_lab(course, tmp_path) as lab, window() as browser:
        page = browser.open(lab.address(f"lab/tree/{TINY}"))
        wait_for_the_kernel(page)
        yield Opened(page, course)
        assert not browser.asked_outside


@pytest.mark.long
@needs_chromium
def test_every_accident_is_told_calmly(lesson: Opened) -> None:
    page = lesson.page

    # Nothing has run: not the imports, then not the answer; then it is not written.
    lesson.check("double", TOO_EARLY, NO_SETUP)
    take_picture(said_below(lesson["test_double"]).get_by_role("alert"), "student-no-setup")
    run(page, lesson["setup"])
    lesson.check("double", TOO_EARLY, "double is not there yet: run the cell")
    run(page, lesson["double"])
    lesson.check("double", "double: not written yet.")

    # A stub that another cell uses, and a name that a later cell would make.
    demonstration = next(name for name in lesson._places if name.startswith("print(quadruple"))
    run(page, lesson[demonstration])
    lesson.says(demonstration, TOO_EARLY, "quadruple is not there yet")
    run(page, lesson["quadruple"])
    run(page, lesson[demonstration])
    lesson.says(demonstration, TOO_EARLY, "later is not there yet", "typing error")

    # A short answer: not given, without quotes, given.
    untouched = "answer_size = None  # YOUR ANSWER HERE"
    lesson.try_out("answer_size", untouched, "answer_size: not answered yet.", "put your choice")
    answer(page, lesson["answer_size"], "answer_size = b")
    lesson.says("answer_size", TOO_EARLY, 'between quotes: answer_size = "b"')
    lesson.try_out("answer_size", 'answer_size = "b"', "✓ answer_size: right.")

    # A right answer, and then one that does not run: no false green.
    lesson.try_out("double", DOUBLE, "✓ double: these checks pass.")
    broken = DOUBLE.replace("2 * x", "2 * (x")
    lesson.try_out("double", broken, "did not run", "SyntaxError", "what you had before")

    # A loop without an end, stopped by hand.
    answer(page, lesson["double"], DOUBLE + "\n\nwhile True:\n    pass")
    expect(page.get_by_text("Python 3 (ipykernel) | Busy")).to_be_visible()
    lesson.menu("Kernel", "Interrupt Kernel")
    lesson.says("double", "Stopped by hand.", "What was computed before is still there.")

    # Python started anew.
    lesson.menu("Kernel", "Restart Kernel…")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    wait_for_the_kernel(page)
    lesson.try_out("double", DOUBLE, TOO_EARLY, NO_SETUP)
