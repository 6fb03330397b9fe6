"""What would be read of a wrong answer whose sentence had never been written."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from autograder.authors import mutation_score, repairs
from autograder.authors.mutation_score import Counted, _changed_again, _count_mutant, _count_unseen
from autograder.course.implementations import Implementation
from autograder.diagnose.diagnosis import Mistake
from autograder.diagnose.matrix import Matrix
from autograder.diagnose.plain_run import PlainRun
from lesson_kit.evidence import Evidence

from ..tiny import tiny_course

RIGHT = (
    "def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise ValueError\n    return {}\n"
)


def known(name: str, value: float, sentence: str) -> Mistake:
    evidence = Evidence.of("close", "Twice.", value)
    return Mistake("double", name, sentence, {"test_double": (evidence,)})


@pytest.mark.parametrize(
    ("result", "others", "located", "anothers"),
    [
        ("2 + x", [], 1, 0),
        ("3 + x ** x", [], 0, 0),
        ("2 + x", [known("other", 1.23456789, "Another mistake.")], 0, 1),
        # Two entries with one sentence are one: without it, neither is there.
        ("2 + x", [known("twin", 1.23456789, "Mine.")], 1, 0),
    ],
)
def test_an_entry_is_looked_up_without_its_own_sentence(
    result: str, others: list[Mistake], located: int, anothers: int, tmp_path: Path
) -> None:
    own = known("own", 1.23456789, "Mine.")
    one = Implementation("double", "own", RIGHT.format(result))
    counted = Counted("double")
    with PlainRun(tiny_course(tmp_path).lesson("01")) as run:
        _count_unseen(run, counted, one, [own, *others], 101)
    assert (counted.unseen, counted.located, counted.anothers) == (1, located, anothers)


def test_changes_of_wrong_answers_are_of_many_of_them() -> None:
    wrong = [Implementation("double", f"w{n}", RIGHT.format(f"x * {n}")) for n in range(5)]
    found = _changed_again(wrong)
    assert {one.name.split(",")[0] for one in found} == {f"w{n}" for n in range(5)}
    assert len({one.source for one in found}) == len(found) > 10
    assert _changed_again([]) == []


def test_a_changed_answer_that_does_not_end_is_stopped_and_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def within_a_moment(_: float) -> AbstractContextManager[None]:
        return repairs.time_limit(0.2)

    endless = Implementation("double", "own", "def double(x):\n    while True:\n        x + x\n")
    counted = Counted("double")
    with Matrix(tiny_course(tmp_path).lesson("01")) as matrix:
        with monkeypatch.context() as patched:
            patched.setattr(mutation_score, "time_limit", within_a_moment)
            _count_mutant(matrix, counted, endless, {101: [], 102: []})
        assert counted.mutants == 0
        _count_mutant(matrix, counted, Implementation("double", "own", RIGHT.format(3)), {101: []})
    assert (counted.mutants, counted.mutants_rejected) == (1, 1)
