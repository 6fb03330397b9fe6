"""A sentence that speaks of an answer's own words is said where they stand in it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from autograder.diagnose.diagnosis import Mistake, diagnose, from_json, remaining, to_json
from lesson_kit.answer_text import all_stand_in, claims, words_of
from lesson_kit.evidence import Evidence
from lesson_kit.known_mistakes import known_mistake
from lesson_kit.setting import DATA_FILE, pack

RIGHT = "def f(x):\n    return np.exp(x).sum(axis=-1) / x.shape[-1]\n"


@pytest.mark.parametrize(
    ("sentence", "wrong", "claimed"),
    [
        ("`np.allclose` allows too much.", "np.allclose(x, y)", ["allclose"]),
        ("Use `np.exp` and not `tanh`.", "np.tanh(x)", ["tanh"]),
        ("You sum over axis 0. The last one is meant.", "x.sum(0)", ["axis 0"]),
        ("You swap axes 1 and 2.", "x.swapaxes(1, 2)", ["axis 1", "axis 2"]),
        ("The positions are axis -2.", "x.sum(-2)", []),
        ("Forbidden scores become -1e9.", "x - 10.0 ** 9", ["1e9"]),
        ("Your base is 1000. The formula has 10000.", "i / 1e3", ["1000"]),
        ("The rows no longer sum to 1.", "x / 1", []),
        ("Your axis 1 has length 1.", "x.reshape(-1)", []),
        ("`x` is changed.", "x[:] = 0", []),
    ],
)
def test_what_a_sentence_claims(sentence: str, wrong: str, claimed: list[str]) -> None:
    assert list(claims(sentence, wrong, RIGHT)) == claimed


def test_numbers_count_however_they_are_written() -> None:
    for source in ("x - 1e9", "-1e9", "-(10 ** 9)", "1_000_000_000 * x"):
        assert all_stand_in(source, ["1e9"])
    for source in ("x - 1e8", "x9", "'1e9'", "# 1e9", "1e9 +", ""):
        assert not all_stand_in(source, ["1e9"])
    assert all_stand_in("x.sum(1)", ["axis 1"])
    assert not all_stand_in("x.sum(-1)", ["axis 1"])
    assert all_stand_in("anything (", [])


@pytest.mark.parametrize(
    "odd",
    [
        "9" * 400,
        "1e200 ** 99",
        "(9 ** 99) ** 99",
        " + ".join(["1"] * 2000),
        "-" * 3000 + "1",
        "x" + ".a" * 3000,
        "(" * 90 + "1" + ")" * 90,
        "1e999",
    ],
)
def test_an_odd_number_is_read_or_left(odd: str) -> None:
    words = words_of(f"y = 1e9\nx = {odd}")
    assert {"x", "y"} <= words.names
    assert all_stand_in(words, ["1e9"]) or not words.numbers


def known(*claimed: str) -> Mistake:
    evidence = Evidence.of("close", "check", np.array([2.53, 3.71, 4.93]))
    return Mistake("f", "one", "You did one.", {"test_f": (evidence,)}, claimed)


def test_the_grader_says_it_only_of_such_an_answer() -> None:
    (mistake,) = from_json(to_json([known("allclose")]))
    seen = mistake.seen
    has, has_not = "np.allclose(x, y)", "abs(x - y) < 1e-5 * y"
    assert diagnose(seen, remaining(seen, [mistake], has)) is not None
    assert diagnose(seen, remaining(seen, [mistake], has_not)) is None
    assert remaining(seen, [known()], has_not)
    assert not remaining({"test_f": ()}, [known()], has_not)  # it fails a test that passed


def test_so_does_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = known("allclose")
    seen = {"test_f": [[e.check, e.got, e.tolerance] for e in mistake.seen["test_f"]]}
    entry = {"sentence": mistake.sentence, "claims": mistake.claims, "seen": seen}
    tree = {"known_mistakes": {"mistakes": {"f": pack([entry])}}}
    (tmp_path / DATA_FILE).write_text(json.dumps(tree), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    evidence = mistake.seen["test_f"]
    assert known_mistake("f", evidence, "np.allclose(x, y)") == mistake.sentence
    assert known_mistake("f", evidence, "abs(x - y) < 1e-5") == ""
