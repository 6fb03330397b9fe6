"""The page on which a student begins, in a browser, with the settings that the course brings."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat.sign import NotebookNotary
from playwright.sync_api import Locator, Page, expect

from autograder.build.start_page import SETTINGS_FOLDER, START_FILE

from ..hand_outs import TINY, handed_out, read, type_in
from .notebook_page import cell, wait_for_the_kernel
from .window import SECONDS, jupyter_lab, needs_chromium, take_picture, window

expect.set_options(timeout=SECONDS * 1000)

#: How often the link is clicked before it counts as one that does not lead there, and how long
#: each time. JupyterLab loses the place where it draws a notebook too slowly; a notebook that is
#: open already scrolls there.
CLICKS = 6
A_WHILE = 15_000


def follow(page: Page, link: Locator, target: Locator) -> None:
    """Click a link of the start page until it has led to what it names."""
    for click in range(CLICKS):
        page.get_by_role("tab", name=START_FILE).click()
        link.click()
        try:
            expect(target).to_be_in_viewport(timeout=A_WHILE)
        except AssertionError:
            if click == CLICKS - 1:
                raise
        else:
            return


@pytest.mark.long
@needs_chromium
def test_it_says_where_to_go_on_and_leads_to_what_is_left(tmp_path: Path) -> None:
    course = handed_out(tmp_path)
    type_in(course / TINY, double="def double(x):\n    return 3 * x\n")
    data = tmp_path / "lab" / "data"
    data.mkdir(parents=True)
    NotebookNotary(data_dir=str(data)).sign(read(course / START_FILE))
    cells = read(course / START_FILE).cells
    table = next(number for number, one in enumerate(cells) if one.cell_type == "code")
    with (
        jupyter_lab(course, tmp_path / "lab", settings=course / SETTINGS_FOLDER) as lab,
        window() as browser,
    ):
        page = browser.open(lab.address(f"lab/tree/{START_FILE}"))
        wait_for_the_kernel(page)
        # Nobody is asked about news, and students make no assignments.
        expect(page.get_by_role("tab", name="Property Inspector")).to_be_visible()
        expect(page.get_by_role("tab", name="Create Assignment")).to_have_count(0)
        expect(page.get_by_text("Jupyter news")).to_have_count(0)

        progress = cell(page, table)
        expect(progress.get_by_text("Begin with")).to_be_visible()
        progress.get_by_role("button", name="Bring this up to date").click()
        expect(progress.get_by_text("Go on with")).to_be_visible()
        expect(progress.get_by_text("its check has not run yet")).to_be_visible()
        take_picture(page, "student-start")
        page.set_viewport_size({"width": 1200, "height": 340})  # the check would not be in sight
        link = progress.get_by_role("link", name="double", exact=True)
        check = page.get_by_text("# Check of double")
        follow(page, link, check)
        # It leads there from anywhere in the notebook too.
        page.get_by_role("heading", name="Room for your own cells").scroll_into_view_if_needed()
        expect(check).not_to_be_in_viewport()
        page.get_by_role("tab", name=START_FILE).click()
        link.click()
        expect(check).to_be_in_viewport()
        assert not browser.asked_outside
