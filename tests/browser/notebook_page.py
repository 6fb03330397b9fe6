"""What a student does on the page of a notebook: type an answer, run a cell, run its check."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

#: Kind of an output that JupyterLab shows in pink.
PINK = "[data-mime-type='application/vnd.jupyter.stderr']"

#: Pixels of a box on a page of 1280, folded.
MAX_HEIGHT = 300


def wait_for_the_kernel(page: Page) -> None:
    """Until Python has started, and has nothing to do."""
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()


def cell(page: Page, number: int) -> Locator:
    """A cell by its place: the page holds only what can be seen, and what is near."""
    return page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{number}']")


def run(page: Page, one: Locator) -> None:
    """Run a cell by a click on it, which opens it where it is folded."""
    folded = one.locator(".jp-InputPlaceholder")
    if folded.is_visible():
        folded.click()
    one.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


def answer(page: Page, stub: Locator, source: str) -> None:
    """Type an answer in place of what stands in the cell, and run it."""
    stub.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(source.strip())
    page.keyboard.press("Control+Enter")


def answer_and_check(page: Page, stub: Locator, source: str, *, at_the_top: bool = False) -> None:
    """Type an answer, run it and, when it has run, the folded check below it.

    at_the_top: with the answer at the upper end of what is seen, from where JupyterLab scrolls on.
    """
    prompt = stub.locator(".jp-InputPrompt")
    number = re.sub(r"\D", "", prompt.inner_text())
    stub.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(source.strip())
    page.keyboard.press("Shift+Enter")
    # A kernel forgets all cells that wait behind one that raises: the check would show nothing.
    expect(prompt).to_have_text(re.compile(rf"^\[(?!{number}\])\d+\]:$"))
    if at_the_top:
        stub.evaluate("cell => cell.scrollIntoView()")
        page.wait_for_timeout(300)
    page.keyboard.press("Shift+Enter")


def said_below(one: Locator) -> Locator:
    """What a cell shows."""
    return one.locator(".jp-OutputArea")
