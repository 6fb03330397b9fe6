"""Flags are data; their words are published, and read back only by the forms they came from."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from autograder.build.build import write_source
from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import GradedSubmission, read_grades
from autograder.course.bundle import Bundle
from autograder.grade import flags
from autograder.grade.flags import KINDS, Flag, Kind, flag_of
from autograder.grade.result import FAILED, GRADED, CellRun, Result, TestResult
from autograder.grade.result_cache import ResultCache
from autograder.marking.feedback import feedback_page

from ..tiny import tiny_course

VALUES = {
    "cell": "test_softmax",
    "called": "my (best) {x}.ipynb",
    "expected": "tiny.ipynb",
    "version": 3,
    "unread": 2,
    "cells": 40,
    "first": 7,
    "times": 3,
    "names": "twice, half",
    "error": "OverflowError",
    "mark": "### BEGIN SOLUTION",
    "number": 2,
    "kind": "raw",
    "why": "it is a GIF",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_flag_is_read_back_from_its_words(kind: Kind) -> None:
    flag = kind.flag(**{name: one for name, one in VALUES.items() if f"{{{name}}}" in kind.form})
    assert flag.cell == ("test_softmax" if "{cell}" in kind.form else "")
    assert flag_of(flag.words) == flag
    assert [one.name for one in KINDS if one.read(flag.words)] == [kind.name]


def test_other_words_are_no_flag_of_ours() -> None:
    for words in ("not on the roster", "test cell a b was edited; the original was used", ""):
        assert flag_of(words) == Flag(flags.OTHER, "", words)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    place = tmp_path_factory.mktemp("source") / "01-tiny"
    write_source(tiny_course(place.parent / "course").lesson("01"), place)
    return Bundle.load(place)


def a_result() -> Result:
    mistake = TestResult(
        "test_softmax",
        "softmax",
        0.0,
        2.0,
        FAILED,
        message="Do rows sum to 1?\nYours: 2",
        diagnosis="last_axis",
        sentence="You sum over the last axis.",
    )
    other = TestResult("test_lookup", "lookup", 0.0, 2.0, FAILED, message="Is it\nthe mean?")
    return Result(
        "02-query-key-value",
        "query_key_value",
        GRADED,
        tests=(mistake, other),
        flags=(flags.TEST_EDITED.flag(cell="test_softmax"),),
        runs=(CellRun("1/0", "", error="ZeroDivisionError"),),
        max_score=4.0,
    )


def test_what_is_published_is_what_it_was_before_flags_and_sentences_were_data() -> None:
    entry = GradedSubmission("ada", a_result(), notes=("not on the roster",)).entry()
    assert entry == {
        "student": "ada",
        "assignment": "02-query-key-value",
        "notebook": "query_key_value",
        "status": "graded",
        "reason": "",
        "score": 0.0,
        "max_score": 4.0,
        "needs_manual_grade": False,
        "tests": [
            {
                "grade_id": "test_softmax",
                "exercise": "softmax",
                "points": 0.0,
                "max_points": 2.0,
                "outcome": "failed",
                "message": "You sum over the last axis.\nDo rows sum to 1?\nYours: 2",
                "diagnosis": "last_axis",
            },
            {
                "grade_id": "test_lookup",
                "exercise": "lookup",
                "points": 0.0,
                "max_points": 2.0,
                "outcome": "failed",
                "message": "Is it\nthe mean?",
                "diagnosis": "",
            },
        ],
        "flags": ["test cell test_softmax was edited; the original was used", "not on the roster"],
        "seconds": 0.0,
        "reached_under": "",
    }


def test_a_sentence_without_a_known_mistake_is_part_of_the_message(bundle: Bundle) -> None:
    """Where one small change would help: said with the test, and no mistake has its name."""
    repair = TestResult(
        "test_double", "double", 0.0, 2.0, FAILED, message="Is it\nx + x?", sentence="Try line 2."
    )
    verdict = GradedSubmission("ada", Result("01-tiny", "tiny", GRADED, tests=(repair,)))
    (test,) = verdict.entry()["tests"]
    assert (test["message"], test["diagnosis"]) == ("Try line 2.\nIs it\nx + x?", "")
    page = feedback_page(verdict, bundle, {})
    assert "<pre>Try line 2.\nIs it\nx + x?</pre>" in page and 'class="diagnosis"' not in page
    mistake = replace(repair, diagnosis="thrice")
    verdict = GradedSubmission("ada", Result("01-tiny", "tiny", GRADED, tests=(mistake,)))
    page = feedback_page(verdict, bundle, {})
    assert "<pre>Is it\nx + x?</pre>" in page and page.count("<pre>Try line 2.") == 0


def test_what_is_published_is_read_back_as_data(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "class.toml").write_text("seed = 7\n")
    entry = GradedSubmission("ada", a_result(), notes=("not on the roster",)).entry()
    tree = {"engine": "1", "sandbox": "none", "course": "A", "submissions": [entry]}
    (tmp_path / "grades.json").write_text(json.dumps(tree))
    about, (read,) = read_grades(ClassFolder.open(tmp_path))
    assert about["sandbox"] == "none"
    assert read.tests == a_result().tests
    assert read.flags == (*a_result().flags, Flag(flags.OTHER, "", "not on the roster"))


def test_a_kept_result_is_the_same_and_one_of_an_earlier_form_is_graded_again(
    tmp_path: Path,
) -> None:
    results = ResultCache(tmp_path)
    results.keep("key", a_result())
    assert results.find("key") == a_result()
    tree = json.loads((tmp_path / "key.json").read_text())
    assert tree["flags"] == [asdict(a_result().flags[0])]
    for test in tree["tests"]:
        test["message"] = f"{test.pop('sentence')}\n{test['message']}"
    (tmp_path / "key.json").write_text(json.dumps(tree))
    assert results.find("key") is None
