"""An instructor's evening in the Formgrader, in a real browser; nothing is loaded from outside."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from playwright.sync_api import FrameLocator, Locator, Page, expect

from autograder.classroom.folder import ClassFolder
from autograder.classroom.new_class import new_class
from autograder.classroom.roster import Member, Roster
from autograder.marking.grade_class import grade_class
from demo.make_class import hand_in

from ..conftest import COURSE
from ..submissions import boxes
from .window import (
    SECONDS,
    jupyter_lab,
    needs_chromium,
    open_formgrader,
    take_picture,
    window,
)

expect.set_options(timeout=SECONDS * 1000)

LESSON = COURSE.lesson("03-scaled-dot-product-attention")
WRITTEN = "written_scale"
ROSTER = Roster((Member("ada", "Ada", "Lovelace"), Member("frances", "Frances", "Allen")))
ANSWER = (
    r"The variance of $q \cdot k$ is $d_k$ if the entries are independent, so we divide by "
    r"$\sqrt{d_k}$, and not by $d_k$."
    "\n\n"
    r"$$\operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$"
    "\n\n![](http://pictures.example/seen.png) <img src='http://pictures.example/seen.gif'>"
)
COMMENT = "Why does a model learn well without it in section 7?"


def quiet(text: str) -> None:
    """Say nothing."""


@pytest.fixture
def folder(tmp_path: Path) -> ClassFolder:
    """A class with one lesson: Ada's work is graded, Frances' came in later."""
    course = dataclasses.replace(COURSE, lessons=(LESSON,))
    made = new_class(course, tmp_path / "class", say=quiet, roster=ROSTER)
    with (made.root / "nbgrader_config.py").open("a") as config:
        config.write(f'c.EngineExporter.sandbox = "{boxes().backend}"\n')
    release = made.root / "release"
    submitted = made.root / "submitted"
    hand_in(LESSON, release, submitted / "ada" / LESSON.folder, {"written": ANSWER})
    grade_class(made, workers=1, sandbox=boxes().backend, quiet=True)
    wrong = {"instead": {"scaled_dot_product_attention": "attention_softmax_over_queries"}}
    hand_in(LESSON, release, submitted / "frances" / LESSON.folder, wrong)
    return made


def row(formgrader: FrameLocator, student: str) -> Locator:
    """The line of a student in the table of submissions."""
    return formgrader.locator("#main-table tr").filter(
        has=formgrader.locator(".student-id", has_text=student)
    )


def points(folder: ClassFolder, student: str) -> tuple[float, float, float]:
    """All points of a submission, those of them that a person gave, and the maximum."""
    with Gradebook(folder.db_url) as gradebook:
        submission = gradebook.find_submission(LESSON.folder, student)
        given = gradebook.find_grade(WRITTEN, LESSON.notebook_name, LESSON.folder, student)
        return submission.score, given.manual_score or 0.0, submission.max_score


def autograde(formgrader: FrameLocator, student: str) -> None:
    """Press the button, and wait for what it says."""
    row(formgrader, student).locator(".autograde a").click()
    dialog = formgrader.locator(".modal-dialog")
    expect(dialog).to_contain_text("Successfully autograded")
    dialog.get_by_role("button", name="Close").last.click()
    expect(dialog).not_to_be_visible()


def mark(page: Page, formgrader: FrameLocator, given: str, comment: str) -> None:
    """Give points and a comment on the page of a submission; its formulas are drawn."""
    field = formgrader.locator(f"#{WRITTEN}")
    written = formgrader.locator(".nbgrader_cell").filter(has=field)
    expect(written.locator("math msqrt")).to_have_count(2)
    expect(written.locator("math[display=block]")).to_be_visible()
    expect(written.locator("img, a")).to_have_count(0)
    expect(formgrader.locator("body")).to_contain_text("Marking scheme")
    typed = formgrader.locator(".text_cell_render").all_inner_texts()
    assert len(typed) > 20
    assert not [text for text in typed if re.search(r"\$[^$\n]*\\[a-z]", text)]
    box = written.locator("textarea.comment")
    # The page listens to a field once it has given it its placeholder.
    expect(formgrader.locator(f"#{WRITTEN}_extra_credit")).to_have_attribute("placeholder", "0")
    expect(box).to_have_attribute("placeholder", re.compile("Type any comments"))
    for place, text, kind in ((field, given, "grade"), (box, comment, "comment")):
        with page.expect_response(re.compile(f"/formgrader/api/{kind}/")) as answer:
            place.fill(text)
            place.blur()
        assert answer.value.ok


@pytest.mark.long
@needs_chromium
def test_autograde_mark_and_generate_feedback(folder: ClassFolder, tmp_path: Path) -> None:
    with jupyter_lab(folder.root, tmp_path) as lab, window(1500, 800) as browser:
        page = browser.open(lab.address("lab"))
        formgrader = open_formgrader(page)
        submissions = formgrader.locator("#main-table .num-submissions a")
        expect(submissions).to_have_text("2")
        expect(page.locator(".jp-FileBrowser").get_by_text("class.toml")).to_be_visible()
        take_picture(page, "instructor-assignments")
        submissions.click()

        # Autograder's points are there, and the button comes to the same engine.
        score, _, most = points(folder, "ada")
        assert 0 < score < most, "the written answer is still to be marked"
        expect(row(formgrader, "ada")).to_contain_text(f"{score:g} / {most:g}")
        expect(row(formgrader, "ada")).to_contain_text("needs manual grading")
        expect(row(formgrader, "frances")).to_contain_text("needs autograding")
        autograde(formgrader, "frances")
        lower, _, _ = points(folder, "frances")
        assert 0 < lower < score, "a mistake costs points, and not all"
        expect(row(formgrader, "frances")).to_contain_text(f"{lower:g} / {most:g}")

        row(formgrader, "ada").get_by_role("link", name="Lovelace, Ada").click()
        formgrader.get_by_role("link", name=LESSON.notebook_name).click()
        mark(page, formgrader, "3", COMMENT)
        take_picture(page, "instructor-marking")
        assert points(folder, "ada") == (score + 3, 3, most)

        # Feedback has what the person gave.
        formgrader.get_by_role("link", name="Manual Grading").click()
        formgrader.get_by_role("link", name="Manage Assignments").click()
        submissions.click()
        row(formgrader, "ada").locator(".generate-feedback a").click()
        expect(formgrader.locator(".modal-dialog")).to_contain_text("Successfully generated")
        written = folder.root / "feedback" / "ada" / LESSON.folder
        feedback = browser.open((written / f"{LESSON.notebook_name}.html").as_uri())
        expect(feedback.locator("body")).to_contain_text("3 of 4")
        expect(feedback.locator("body")).to_contain_text(COMMENT)
        expect(feedback.locator("math msqrt")).to_have_count(2)
        feedback.locator("math[display=block]").scroll_into_view_if_needed()
        take_picture(feedback, "instructor-feedback")
        assert not browser.asked_outside
