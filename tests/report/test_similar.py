"""Code that two have in common and nobody handed out: found under other names, and nothing else."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.folder import ClassFolder
from autograder.cli.main import main
from autograder.limited_process import TooMuch
from autograder.report import similar as similar_module
from autograder.report.similar import MAX_CHARACTERS, SimilarError, alike, compared

from ..classes import LESSON, hand_in, new, solved

GIVEN = """
def softmax(x, axis=-1):
    shifted = x - x.max(axis=axis, keepdims=True)
    weights = np.exp(shifted)
    return weights / weights.sum(axis=axis, keepdims=True)
"""
OWN = """
def double(numbers):
    found = []
    for index, one in enumerate(numbers.ravel().tolist()):
        if one < 0 or one != one:
            raise ValueError(f"number {index} is negative")
        found.append(one + one if one else 0.0 * one)
    while len(found) < numbers.size and numbers.ndim:
        found = found + [found[-1]]
    return np.array(found).reshape(numbers.shape)
"""
RENAMED = """
# my own idea
def double(x):
    result   = []
    for i, value in enumerate(x.ravel().tolist()):
        if value < 0 or value != value:   # no negatives
            raise ValueError(f"number {i} is negative")
        result.append(value + value if value else 0.0 * value)
    while len(result) < x.size and x.ndim:
        result = result + [result[-1]]
    return np.array(result).reshape(x.shape)
"""
OTHER = """
def double(x):
    x = np.asarray(x)
    assert x.dtype.kind in "if", "numbers only"
    mask = x < 0
    if mask.any():
        raise ValueError("negative: " + ", ".join(map(str, x[mask])))
    return np.multiply(x, 2, dtype=x.dtype)
"""


def test_a_copy_under_other_names_is_found_and_its_piece_shown() -> None:
    code = {"ada": [GIVEN, OWN], "bob": [GIVEN, RENAMED], "cleo": [GIVEN, OTHER], "dan": [GIVEN]}
    (pair,) = alike(code, [GIVEN])
    assert pair.students == ("ada", "bob")
    assert min(pair.shares) > 0.9
    assert "numbers.ravel()" in pair.piece


def test_what_was_handed_out_and_what_many_have_is_nobodys_own() -> None:
    same = {f"s{number}": [GIVEN] for number in range(3)}
    assert alike(same, [GIVEN]) == []
    assert len(alike(same, [])) == 3
    # Half of the class writes it like this: it is how one writes it.
    many = {f"s{number}": [OWN] for number in range(10)} | {f"t{n}": [OTHER] for n in range(2)}
    assert [pair.students for pair in alike(many, [])] == [("t0", "t1")]


def test_a_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder: ClassFolder = new(tmp_path)
    hand_in(folder, "ada", solved(folder, double=OWN))
    hand_in(folder, "bob", solved(folder, double=RENAMED))
    hand_in(folder, "cleo", solved(folder, double=OTHER))
    for who in ("dan", "eve"):
        hand_in(folder, who, solved(folder))
    hand_in(folder, "finn", b"{")
    assert main(["report", str(folder.root), "--about", "similar", "--assignment", LESSON]) == 0
    assert "1 pairs with 50 % or more" in capsys.readouterr().out
    with (folder.root / f"similar-{LESSON}.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["first"], row["second"]) == ("ada", "bob")
    assert (
        main(["report", str(folder.root), "--about", "similar", "--assignment", LESSON, "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)[0]["students"] == ["ada", "bob"]
    assert not (folder.root / "grades.json").exists()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "copydetect", None)
    with pytest.raises(SimilarError, match="pip install"):
        alike({"ada": [OWN]}, [])


def test_a_huge_submission_is_compared_in_what_somebody_wrote_by_hand() -> None:
    """Comparing it whole would take hours, and nobody else's code would be looked at."""
    huge = "x = 1\n" * MAX_CHARACTERS
    assert compared([GIVEN, huge, OWN]) == [GIVEN, OWN]
    assert compared([GIVEN, OWN]) == [GIVEN, OWN]
    many = ["y = 2\n" * 1000] * 2000
    assert sum(map(len, compared(many))) <= MAX_CHARACTERS


def test_code_that_is_too_much_to_read_costs_its_own_place_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = similar_module._reader.ask

    def ask(function: str, text: str) -> Any:
        if "too much" in text:
            raise TooMuch
        return read(function, text)

    monkeypatch.setattr(similar_module._reader, "ask", ask)
    told: list[str] = []
    code = {"eve": ["too much"], "ada": [OWN], "bob": [RENAMED]}
    (pair,) = alike(code, [], left_out=told.append)
    assert (pair.students, told) == (("ada", "bob"), ["eve"])
