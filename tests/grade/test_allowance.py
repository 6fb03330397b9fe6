"""What judging takes is bounded, and what passes the bound is a verdict on that test."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.grade.allowance import Spent, allowance
from autograder.grade.result import Result

from ..submissions import graded, notebook_with, points
from ..tiny import tiny_course


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("tiny")
    lesson = tiny_course(folder).lesson("01")
    write_source(lesson, folder / "source" / lesson.folder)
    return Bundle.load(folder / "source" / lesson.folder)


def message(verdict: Result, name: str) -> str:
    return next(test.message for test in verdict.tests if test.grade_id == name)


def test_what_takes_long_is_ended_and_the_next_is_not() -> None:
    with pytest.raises(Spent), allowance(seconds=0.2):
        while True:
            pass
    with allowance(seconds=0.2):
        time.sleep(0.5)  # waiting costs nothing
    for _ in range(3):
        with allowance(seconds=5):
            sum(range(1000))


def test_a_test_that_expects_an_error_does_not_take_it_for_one() -> None:
    with pytest.raises(Spent), allowance(seconds=0.2):
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue


def test_memory_is_bounded_inside_and_not_afterwards() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(MemoryError), allowance(memory=2**28):
        bytearray(2**29)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert len(bytearray(2**29)) == 2**29


ABUNDANT = {
    "many small arrays": "answer_size = [[np.zeros(7) for _ in range(30)] for _ in range(30)]\n"
    "answer_size = [[answer_size] * 7] * 1\n",
    "colliding keys": "answer_size = {n * (2**61 - 1): None for n in range(10_000)}\n",
    "many booleans": "answer_size = [np.zeros(4 * 2**20, bool) for _ in range(8)]\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ABUNDANT)
def test_an_abundant_answer_is_a_verdict_and_costs_nobody_else(name: str, bundle: Bundle) -> None:
    verdict = graded(bundle, notebook_with(bundle, {"answer_size": ABUNDANT[name]}))
    assert points(verdict) == {"double": 3.0, "quadruple": 4.0, "answer_size": 0.0}
    assert message(verdict, "test_answer_size")


@pytest.mark.slow
def test_what_passes_the_allowance_is_named(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def endless(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr("autograder.grade.tester.allowance", lambda: allowance(seconds=0.3))
    monkeypatch.setattr("autograder.grade.tester.evidence_of", endless)
    wrong = {"double": "def double(x):\n    return 3 * x\n"}
    verdict = graded(bundle, notebook_with(bundle, wrong))
    assert points(verdict) == {"double": 0.0, "quadruple": 4.0, "answer_size": 1.0}
    assert "takes too long" in message(verdict, "test_double")
