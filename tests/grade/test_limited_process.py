"""What reads a student's text ends itself when that is too much, and with the one that asks."""

from __future__ import annotations

import json

import pytest

from autograder.limited_process import LimitedProcess, TooMuch


def test_after_a_question_that_was_too_much_there_is_another_process() -> None:
    process = LimitedProcess("autograder.grade.reader_process")
    with pytest.raises(TooMuch):
        process.ask("no such function")
    assert process.ask("names_bound", "x = 1") == ["x"]
    process.end()


def test_the_process_ends_with_the_one_that_asks() -> None:
    """Its lines end, and so does it."""
    process = LimitedProcess("autograder.grade.reader_process")._start()
    out, _ = process.communicate('["names_bound", "x = 1"]\n')
    assert json.loads(out) == {"answer": ["x"]}
    assert process.returncode == 0
