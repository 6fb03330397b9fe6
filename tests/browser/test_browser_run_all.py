"""Run All on a student's second day: it goes through every cell, whatever is written."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from autograder.build.start_page import SETTINGS_FOLDER

from ..hand_outs import TINY, handed_out, read, type_in
from ..tiny import LESSON
from .notebook_page import PINK, wait_for_the_kernel
from .window import SECONDS, jupyter_lab, needs_chromium, window

expect.set_options(timeout=SECONDS * 1000)

HALF = {
    "double": "def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise ValueError\n"
    "    return 2 * x\n",
    "quadruple": "def quadruple(x):\n    return 3 * double(x)\n",
}
ALL = {
    **HALF,
    "quadruple": "def quadruple(x):\n    return double(double(x))\n",
    "answer_size": 'answer_size = "b"\n',
}
#: Of each state: what is written, how many boxes are grey and red, and how many checks pass.
STATES = [({}, (4, 0, 0)), (HALF, (1, 1, 1)), (ALL, (0, 0, 2))]


@pytest.mark.long
@needs_chromium
def test_it_goes_through_an_untouched_a_half_done_and_a_finished_notebook(tmp_path: Path) -> None:
    uses = LESSON.replace('raise RuntimeError("a demonstration is not', "print(quadruple(3)) #")
    course = handed_out(tmp_path, uses)
    notebook = course / TINY
    settings = course / SETTINGS_FOLDER / "overrides.json"
    own = json.loads(settings.read_text())
    # All cells are on the page at once, not only those in sight.
    own["@jupyterlab/notebook-extension:tracker"] = {"windowingMode": "none"}
    settings.write_text(json.dumps(own))
    untouched = read(notebook)
    (tmp_path / "lab").mkdir()
    with (
        jupyter_lab(course, tmp_path / "lab", settings=course / SETTINGS_FOLDER) as lab,
        window() as browser,
    ):
        for written, (grey, red, passing) in STATES:
            nbformat.write(untouched, notebook)
            type_in(notebook, **written)
            page = browser.open(lab.address(f"lab/tree/{TINY}"))
            wait_for_the_kernel(page)
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            # The check of the short answer is the last cell that says something.
            expect(page.get_by_role("alert").filter(has_text="○")).to_have_count(grey)
            expect(page.get_by_role("alert").filter(has_text="✗")).to_have_count(red)
            expect(page.get_by_role("status").filter(has_text="✓")).to_have_count(passing)
            assert not "".join(page.locator(PINK).all_inner_texts()).strip()
            page.close()
        assert not browser.asked_outside
