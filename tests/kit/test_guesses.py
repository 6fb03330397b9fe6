"""A prediction is asked for, kept, and answered to; it never stops a notebook."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import numpy as np
import pytest
from nbformat import v4

from autograder.build.page import as_page
from autograder.build.stubs import ClearSolutionsAndAnswers
from autograder.course.lessons import Lesson
from autograder.notebooks import DEMONSTRATION, GUESS, tags
from lesson_kit.guesses import puzzle, reply

from ..conftest import COURSE

#: The lessons that ask for predictions and keep them.
FIRST = [
    lesson for lesson in COURSE.lessons if lesson.folder < "11" or lesson.folder.startswith("15")
]


def said(capsys: pytest.CaptureFixture[str], guess: Any, found: Any, **more: Any) -> str:
    reply("guess_x", guess, found, "For a reason.", **more)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("guess", "found", "within"),
    [
        (0.5, 0.52, 0.05),
        (np.float64(32), 33, 3),
        (8, 8, 0),
        (" Black ", "black", 0),
        (("black", "cat"), ("black", "cat"), 0),
        ([0.9, 0.2], (0.95, 0.15), 0.1),
        ({1, 4, 6}, {1, 4, 6}, 0),
        ([6, 4, 1], {1, 4, 6}, 0),
        (set(), set(), 0),
        (True, np.True_, 0),
    ],
)
def test_a_prediction_that_comes_true(
    capsys: pytest.CaptureFixture[str], guess: Any, found: Any, within: float
) -> None:
    text = said(capsys, guess, found, within=within)
    assert text.startswith("You predicted") and "counts as right" in text
    assert "For a reason." in text


@pytest.mark.parametrize(
    ("guess", "found"),
    [(0.6, 0.5), ("cat", "black"), ((1, 2), (1, 3)), ({1}, {1, 4}), (False, True), (set(), {"a"})],
)
def test_one_that_does_not(capsys: pytest.CaptureFixture[str], guess: Any, found: Any) -> None:
    text = said(capsys, guess, found)
    assert "it came out as" in text and "so it is" not in text and "For a reason." in text


@pytest.mark.parametrize(
    ("guess", "found", "asks"),
    [
        ("half", 0.5, "a number"),
        (math.nan, 0.5, "a number"),
        (True, 1, "a number"),
        (0.5, "black", "a text"),
        (0.5, (0.5, 0.5), "2 in a row"),
        ((0.5,), (0.5, 0.5), "2 in a row"),
        (1, {1}, "a set"),
        ({"one"}, {1}, "a set"),
        ("yes", True, "True or False"),
        ("x" * 500, 1.0, "a number"),
    ],
)
def test_one_that_cannot_be_compared(
    capsys: pytest.CaptureFixture[str], guess: Any, found: Any, asks: str
) -> None:
    text = said(capsys, guess, found)
    assert "cannot be compared" in text and asks in text and "came out as" in text
    assert len(text) < 250


def test_a_large_number_is_said_as_it_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert "You predicted 1024; it came out as 32.5." in said(capsys, 1024, 32.51)


def test_none_yet(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, None, 0.123)
    assert "guess_x" in text and "Write your guess first" in text and "0.123" not in text


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "`puzzle_x` is still None"),
        (lambda n: np.eye(n)[::-1], "`puzzle_x` is solved, for all 2 examples"),
        (np.eye, "for 2: asked is [1. 0.]; yours makes [0. 1.]"),
        (lambda n: np.eye(n + 1), "stops with ValueError"),
        (lambda n: np.eye(n)[:1], "for 2: asked is [1. 0.]; yours makes [0.]"),
    ],
)
def test_a_puzzle_is_judged_by_what_it_does(
    capsys: pytest.CaptureFixture[str], answer: Any, says: str
) -> None:
    does = lambda weights, n: weights(n) @ np.arange(n)  # noqa: E731
    puzzle("puzzle_x", answer, does, lambda n: range(n - 1, -1, -1), [2, 5])
    assert says in capsys.readouterr().out


def test_students_get_none_in_place_of_the_authors_guess() -> None:
    source = '# Which?\nguess_a = ("x", 1)  # write (a text, a number)\npuzzle_b = {1, 2}\nx = 3'
    cell = v4.new_code_cell(source, metadata={"tags": [DEMONSTRATION, GUESS]})
    released, _ = ClearSolutionsAndAnswers().preprocess_cell(cell, {"language": "python"}, 0)
    assert released.source == (
        "# Which?\nguess_a = None  # write (a text, a number)\npuzzle_b = None\nx = 3"
    )


@pytest.mark.parametrize("lesson", FIRST, ids=lambda lesson: lesson.folder)
def test_every_guess_is_asked_for_once_and_answered_later(lesson: Lesson) -> None:
    cells = [cell for cell in as_page(lesson).cells if cell.cell_type == "code"]
    asked, answered = list[str](), list[str]()
    for cell in cells:
        answered += re.findall(r'\breply\(\s*"(guess_\w+)", (?=guess_\w+)', cell.source)
        names = re.findall(r"^(guess_\w+) = ", cell.source, re.M)
        assert not names or {GUESS, DEMONSTRATION} <= set(tags(cell)), "students would see it"
        assert len(names) == len(re.findall(r"^guess_\w+ = .*#", cell.source, re.M)) or (
            cell.source.startswith("# ")
        ), "a comment says what to write"
        asked += names
        if names:
            clear, how = ClearSolutionsAndAnswers(), {"language": "python"}
            released, _ = clear.preprocess_cell(cell, how, 0)
            assert {ast.unparse(one) for one in ast.parse(released.source).body} == {
                f"{name} = None" for name in names
            }
        assert set(answered) <= set(asked), "asked for first"
    assert len(asked) >= 2
    assert asked == answered
