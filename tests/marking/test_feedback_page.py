"""The page that a student reads: the one number first, then what to look at, each cause once."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from autograder.build.build import write_source
from autograder.classroom.gradebook import ManualGrade
from autograder.classroom.grades_file import GradedSubmission
from autograder.classroom.late import Standing
from autograder.course.bundle import Bundle
from autograder.grade.result import (
    MISSING,
    NOT_ATTEMPTED,
    UNREADABLE,
    CellRun,
    Result,
    TestResult,
)
from autograder.marking.feedback import feedback_page, late_line

from ..feedback_result import NO_NAME, a_result
from ..tiny import tiny_course

STOPPED = "NameError: name 'trice' is not defined"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    place = tmp_path_factory.mktemp("source") / "01-tiny"
    write_source(tiny_course(place.parent / "course").lesson("01"), place)
    return Bundle.load(place)


def text_of(page: str) -> str:
    """What a reader sees."""
    words: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            words.append(data)

    Reader().feed(page[page.index("<main>") :])
    return " ".join(" ".join(words).split())


def test_the_summary_comes_first_and_the_failing_exercise_before_the_green(bundle: Bundle) -> None:
    page = feedback_page(GradedSubmission("ada", a_result()), bundle, {}, name="Ada Lovelace")
    table = page[page.index("<table") : page.index("</table>")]
    rows = re.findall('href="#([^"]+)">', table)
    assert rows == ["quadruple", "answer_size", "double", "written_why"]
    assert all(f'id="{name}"' in page for name in rows)
    text = text_of(page)
    assert "Ada Lovelace (ada) 3 of 11 points so far; a person still has to mark 3 of" in text
    assert text.index("Summary") < text.index("Exercises with points to win")
    assert text.index("Exercises with points to win") < text.index("Exercises that pass")
    levels = [int(level) for level in re.findall("<h([1-6])", page)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


def test_one_cause_is_told_once(bundle: Bundle) -> None:
    page = feedback_page(GradedSubmission("ada", a_result()), bundle, {})
    assert page.count(f"<pre>{NO_NAME}</pre>") == 1
    assert 'For the same reason as in <a href="#quadruple">' in page
    same = [
        TestResult(name, "double", 0.0, points, MISSING, f"No double. Its cell stopped: {STOPPED}")
        for name, points in (("test_double", 2.0), ("test_double_errors", 1.0))
    ]
    runs = tuple(CellRun(f"x = {n}\ntrice(2)", "", error=STOPPED) for n in range(3))
    page = feedback_page(
        GradedSubmission("ada", a_result(tests=tuple(same), runs=runs)), bundle, {}
    )
    assert page.count('class="test ') == 1 and "0 of 3." in page
    assert "Cells that stopped" not in page
    others = tuple(CellRun(f"x = {n}", "", error="ValueError: no") for n in range(3))
    page = feedback_page(GradedSubmission("ada", a_result(runs=others)), bundle, {})
    assert page.count("ValueError: no") == 1 and "x = 2" in page


def test_an_unreadable_file_is_one_sentence(bundle: Bundle) -> None:
    why = "The file is empty. Save the notebook and hand it in again."
    tests = tuple(
        TestResult(one.grade_id, one.exercise, 0.0, one.points, MISSING, why)
        for one in bundle.tests
    )
    result = Result("01-tiny", "tiny", UNREADABLE, why, tests=tests, max_score=8.0)
    text = text_of(feedback_page(GradedSubmission("ada", result), bundle, {}))
    assert text.startswith(f"Tiny ada 0 of 11 points {why} Hidden checks") or why in text
    assert text.count(why) == 1 and "written_why" not in text and "Summary" not in text


def test_what_the_marker_says_looks_like_the_markers(bundle: Bundle) -> None:
    given = {"written_why": ManualGrade(2.0, "But $x^2$ <b>why</b>?")}
    page = feedback_page(GradedSubmission("ada", a_result()), bundle, given)
    (said,) = re.findall("<blockquote.*?</blockquote>", page, re.S)
    assert "Your marker says" in said and "<math" in said and "&lt;b&gt;" in said
    assert page.index("Because.") < page.index("<blockquote")
    assert "written_why: 2 of 3" in page


def test_being_late_with_nothing_to_lose_is_left_out() -> None:
    late = Standing(600, 0.0, 0.0, 0.0, 11.0)
    assert late_line(late) == ""
    late = Standing(10, 0.0, 0.0, 8.0, 11.0)
    assert late_line(late) == "Handed in 10 min late, which costs nothing."


def test_what_was_not_attempted_is_said_in_two_words(bundle: Bundle) -> None:
    tests = (TestResult("test_double", "double", 0.0, 2.0, NOT_ATTEMPTED, "Fill it in."),)
    page = feedback_page(GradedSubmission("ada", a_result(tests=tests)), bundle, {})
    assert "<td>not attempted</td>" in page


def test_how_to_ask_stands_on_the_page(bundle: Bundle) -> None:
    page = feedback_page(GradedSubmission("ada", a_result()), bundle, {}, requests="Write to <us>.")
    assert "<p>Write to &lt;us&gt;.</p>" in page
    assert "Is a point wrong?" not in feedback_page(GradedSubmission("ada", a_result()), bundle, {})
