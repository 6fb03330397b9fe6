"""A student's first exercise, in a real browser: wrong, told why, right, validated."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
from playwright.sync_api import expect

from autograder.course.implementations import misconceptions
from autograder.notebooks import SETUP, grade_id, tags

from ..conftest import COURSE, ROOT
from .notebook_page import (
    MAX_HEIGHT,
    PINK,
    answer_and_check,
    cell,
    run,
    said_below,
    wait_for_the_kernel,
)
from .window import SECONDS, jupyter_lab, needs_chromium, take_picture, window

expect.set_options(timeout=SECONDS * 1000)

LESSON = COURSE.lesson("03-scaled-dot-product-attention")
EXERCISE = "scaled_dot_product_attention"
NOTEBOOK = f"{LESSON.folder}/{LESSON.notebook_name}.ipynb"
MISTAKE = next(
    one for one in misconceptions(LESSON) if one.name == "attention_softmax_over_queries"
)


@needs_chromium
def test_a_student_is_told_the_mistake_mends_it_and_validates(tmp_path: Path) -> None:
    course = tmp_path / "course"
    shutil.copytree(ROOT / "course" / LESSON.folder, course / LESSON.folder)
    cells = nbformat.read(course / NOTEBOOK, as_version=4).cells
    place = {"setup" if SETUP in tags(one) else grade_id(one): n for n, one in enumerate(cells)}
    place["later"] = next(
        number for number, one in enumerate(cells) if one.source.startswith("## Checks that run")
    )
    with jupyter_lab(course, tmp_path) as lab, window() as browser:
        page = browser.open(lab.address(f"lab/tree/{NOTEBOOK}"))
        expect(page.locator(".jp-Notebook mjx-container").first).to_be_visible()
        wait_for_the_kernel(page)
        setup = cell(page, place["setup"])
        run(page, setup)
        expect(setup.locator(".jp-InputPrompt")).to_have_text("[1]:")

        page.get_by_role("tab", name="Table of Contents").click()
        headings = page.locator(".jp-TableOfContents-content")
        headings.get_by_text(f"Exercise 2: {EXERCISE}").click()
        stub, check = cell(page, place[EXERCISE]), cell(page, place[f"test_{EXERCISE}"])
        answer_and_check(page, stub, MISTAKE.source, at_the_top=True)
        box = said_below(check).get_by_role("alert")
        expect(box).to_contain_text(MISTAKE.sentence)
        # One view: below the answer one line, and the box, which alone says it.
        line = check.locator(".jp-InputPlaceholder")
        expect(line).to_contain_text(f"Check of {EXERCISE}")
        places = [one.bounding_box() for one in (stub, line, box)]
        tops, ends = zip(*((one["y"], one["y"] + one["height"]) for one in places if one))
        assert len(tops) == 3
        assert tops[1] - ends[0] < 40 and ends[1] - tops[1] < 40 and tops[2] - ends[1] < 40
        assert not "".join(check.locator(PINK).all_inner_texts()).strip()
        # After Shift+Enter its headline is seen, also where JupyterLab scrolls it out of the view.
        page.wait_for_timeout(1000)
        expect(box.locator("p").first).to_be_in_viewport()
        assert places[2] and places[2]["height"] <= MAX_HEIGHT
        stub.evaluate("cell => cell.scrollIntoView()")  # the picture has the answer too
        take_picture(page, "student-diagnosis")

        answer_and_check(page, stub, LESSON.exercises[EXERCISE])
        passed = said_below(check).get_by_role("status")
        expect(passed).to_contain_text(f"✓ {EXERCISE}: these checks pass")
        expect(passed).to_contain_text("Your output is that of torch's function, and a mask hides")
        expect(passed).to_contain_text("Checked here: ")
        expect(box).to_have_count(0)

        # What runs only when graded is closed away, each cell by itself.
        headings.get_by_text("Checks that run when").click()
        later = sum(grade_id(one).startswith("test_") for one in cells[place["later"] :])
        expect(page.get_by_role("button", name=f"{later} cells hidden")).to_be_visible()
        expect(page.get_by_text("# Hidden checks of").filter(visible=True)).to_have_count(0)

        page.get_by_role("button", name="Validate").click()
        dialog = page.locator(".jp-Dialog")
        expect(dialog).to_contain_text("Validation Results")
        expect(dialog).to_contain_text('checks_passed("dot_product_variance")')
        expect(dialog).to_contain_text('checks_passed("padding_mask")')
        expect(dialog).not_to_contain_text(f'checks_passed("{EXERCISE}")')
        assert not browser.asked_outside
