"""axe-core finds nothing wrong with what is ours on the pages of students and instructors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from autograder.build.build import write_source
from autograder.build.start_page import SETTINGS_FOLDER, START_FILE
from autograder.classroom.grades_file import GradedSubmission
from autograder.course.bundle import Bundle
from autograder.marking.feedback import feedback_page
from autograder.report.class_report import write_report

from ..conftest import COURSE, ROOT
from ..feedback_result import a_result
from ..hand_outs import TINY, handed_out
from ..report_class import CLASS, a_class
from ..tiny import tiny_course
from .accessible import violations
from .notebook_page import wait_for_the_kernel
from .window import SECONDS, jupyter_lab, needs_chromium, window

expect.set_options(timeout=SECONDS * 1000)

#: What a notebook's page shows that is ours: texts and outputs, not JupyterLab around them.
OURS = (".jp-RenderedMarkdown", ".jp-OutputArea-output.jp-RenderedHTMLCommon")
LESSON = COURSE.lesson("03-scaled-dot-product-attention")


def nothing_wrong(page: Page, *selectors: str) -> None:
    found = violations(page, *selectors)
    assert not found, "\n".join(["", *found])


@needs_chromium
def test_a_broken_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<main><h1>A page</h1><img src='x.png'></main>")
    with window() as browser:
        page = browser.open((tmp_path / "page.html").as_uri())
        found = violations(page)
        assert any(one.startswith("image-alt (critical)") for one in found)
        assert violations(page, "h1") == []
        with pytest.raises(AssertionError, match="no h2"):
            violations(page, "h2")


@needs_chromium
def test_feedback(tmp_path: Path) -> None:
    place = tmp_path / "source" / "01-tiny"
    write_source(tiny_course(tmp_path / "course").lesson("01"), place)
    text = feedback_page(
        GradedSubmission("ada", a_result()), Bundle.load(place), {}, name="Ada Lovelace"
    )
    (tmp_path / "feedback.html").write_text(text)
    with window() as browser:
        page = browser.open((tmp_path / "feedback.html").as_uri())
        for closed in page.locator("details:not([open]) > summary").all():
            closed.click()
        nothing_wrong(page)


@needs_chromium
def test_report(tmp_path: Path) -> None:
    folder = a_class(tmp_path / "class", CLASS)
    write_report(folder, names=True)
    with window() as browser:
        page = browser.open((folder.root / "report.html").as_uri())
        for closed in page.locator("details:not([open]) > summary").all():
            closed.click()
        nothing_wrong(page)


@pytest.mark.long
@needs_chromium
def test_start_page_and_a_lesson(tmp_path: Path) -> None:
    course = handed_out(tmp_path)
    (tmp_path / "lab").mkdir()
    shutil.copytree(ROOT / "solutions" / LESSON.folder, course / LESSON.folder)
    # All cells of a notebook are on the page at once, not only those in sight.
    tracker = course / SETTINGS_FOLDER / "overrides.json"
    own = json.loads(tracker.read_text()) if tracker.exists() else {}
    own["@jupyterlab/notebook-extension:tracker"] = {"windowingMode": "none"}
    tracker.write_text(json.dumps(own))
    with (
        jupyter_lab(course, tmp_path / "lab", settings=course / SETTINGS_FOLDER) as lab,
        window() as browser,
    ):
        start = browser.open(lab.address(f"lab/tree/{START_FILE}"))
        wait_for_the_kernel(start)
        expect(start.locator(".jp-RenderedMarkdown").first).to_be_visible()
        nothing_wrong(start, *OURS)
        start.close()

        lesson = browser.open(lab.address(f"lab/tree/{LESSON.folder}/{LESSON.notebook_name}.ipynb"))
        wait_for_the_kernel(lesson)
        expect(lesson.locator("img[alt]").first).to_be_visible()
        expect(lesson.locator(".jp-Notebook mjx-container").first).to_be_visible()
        assert lesson.locator("img").count() > 5
        nothing_wrong(lesson, *OURS)
        lesson.close()

        tiny = browser.open(lab.address(f"lab/tree/{TINY}"))
        wait_for_the_kernel(tiny)
        nothing_wrong(tiny, ".jp-RenderedMarkdown")
