"""What authors read of a lesson's tests: trial, measure, inputs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder.authors import seconds
from autograder.authors.inputs import Argument, inputs
from autograder.authors.kinds_of_input import kinds
from autograder.cli.main import main
from autograder.course.lessons import Course

from ..conftest import ROOT
from ..tiny import LESSON, MISCONCEPTIONS, tiny_course

WRONG = """
from autograder.course.implementations import misconception


@misconception("double", "one_more", sentence="You add one.")
def double(x):
    return x + 1
"""
ACCEPTED = """

@misconception("double", "right_after_all", sentence="You double.")
def double(x):
    import numpy as np

    if np.any(np.asarray(x) < 0):
        raise ValueError("x is negative")
    return x + x
"""


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one lesson, where the commands are called; one wrong answer is known."""
    tiny_course(tmp_path)
    lesson = tmp_path / "lessons" / "01-tiny"
    hidden = "### BEGIN HIDDEN TESTS"
    marked = LESSON.replace(hidden, f"### SIDE CONDITION: counts later.\n{hidden}")
    (lesson / "tiny.py").write_text(marked)
    (lesson / "misconceptions.py").write_text(MISCONCEPTIONS + WRONG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def accept_a_wrong_answer(course: Path) -> None:
    with (course / "lessons" / "01-tiny" / "misconceptions.py").open("a") as catalogue:
        catalogue.write(ACCEPTED)


def test_trial(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trial", "01", "--exercise", "double"]) == 0
    said = capsys.readouterr().out.splitlines()
    counts = "1 misconceptions, 2 of 2 named, 0 alternatives"
    assert said[0] == f"01-tiny double: {counts}: as it should be"
    assert said[-1] == "1 exercises: all tests do what they should"
    assert main(["trial", "--changed", "--exercise", "double"]) == 0
    assert capsys.readouterr().out == "0 exercises: all tests do what they should\n"
    accept_a_wrong_answer(course)
    assert main(["trial", "--changed", "--exercise", "double"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "01-tiny double: seed 201: misconception right_after_all is accepted" in said


def test_seconds(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = course / "lessons" / "01-tiny" / "tiny.py"
    raises = 'raise RuntimeError("a demonstration is not run when grading")'
    source.write_text(LESSON.replace(raises, "print(sum(range(10**6)))"))
    assert main(["measure", "seconds", "01"]) == 0
    assert capsys.readouterr().out.endswith("4 s or more: none\n")
    before = source.read_text()
    assert "seconds=" not in before
    monkeypatch.setattr(seconds, "FEWEST", 0.01)
    assert main(["measure", "seconds", "01", "--write"]) == 0
    written = {line for line in source.read_text().splitlines() if " seconds=5" in line}
    assert '# %% tags=["demonstration"] seconds=5' in written
    assert not any("check=" in line for line in written)
    assert re.sub(" seconds=5", "", source.read_text()) == before


def test_an_exercise_that_is_not_there(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("trial", "lint", "measure mutants", "build"):
        assert main([*name.split(), "--exercise", "treble"]) == 2
        assert "no exercise 'treble'; there are double, quadruple" in capsys.readouterr().err


def test_mutants(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "mutants", "01", "--seeds", "2"]) == 0
    table = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert table["double"][1:6] == ["2", "2", "2", "0", "0"]
    assert table["all"][1:6] == table["double"][1:6]
    accept_a_wrong_answer(course)
    assert main(["measure", "mutants", "01", "--seeds", "1"]) == 1
    assert "01-tiny double: seed 101: right_after_all is accepted" in capsys.readouterr().out


def test_lost_points(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accept_a_wrong_answer(course)
    assert main(["measure", "lost-points", "--all"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["double", "2", "50%", "1"]
    assert lines[2:4] == [["100%", "one_more"], ["0%", "right_after_all"]]


def test_spare(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two that are one both are named; a third, whose results are its own, is not."""
    again = WRONG.replace("one_more", "one_more_again").split("\n\n\n")[1]
    other = WRONG.replace("one_more", "half").replace("You add one", "You halve")
    other = other.replace("x + 1", "x / 2").split("\n\n\n")[1]
    with (course / "lessons" / "01-tiny" / "misconceptions.py").open("a") as catalogue:
        catalogue.write(f"\n\n{again}\n\n{other}")
    assert main(["measure", "spare", "01"]) == 0
    why = "another entry tells its answer the same"
    assert capsys.readouterr().out.splitlines() == [
        f"01-tiny double one_more: {why}",
        f"01-tiny double one_more_again: {why}",
    ]


def test_repairs(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`x + 1` that refuses nothing takes two changes; what passes is not looked at."""
    accept_a_wrong_answer(course)
    assert main(["measure", "repairs", "01", "--exercise", "double"]) == 0
    _, row, total = capsys.readouterr().out.splitlines()
    assert row.split()[:4] == ["double", "1", "1", "0"]
    assert total == "in all: 0 of 1 mended; 1 exercises where none ever is"


def test_nothing_was_lost_where_no_mistake_is_known(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "lessons" / "01-tiny" / "misconceptions.py").write_text(MISCONCEPTIONS)
    assert main(["measure", "lost-points"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["all", "0", "0"]


def test_inputs(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inputs"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("double\n  x: ")
    assert "never: " in said


def test_an_argument_tells_what_it_never_was() -> None:
    argument = Argument()
    argument.add(np.ones((3, 1)))
    argument.add(torch.ones(2, 3, 5, requires_grad=True))
    argument.add(None)
    assert argument.kinds == {"NumPy float64": 1, "torch float32": 1, "NoneType": 1}
    never = "one along axis -2, one along axis -3, longer than 5, other than contiguous"
    assert ", ".join(argument.never()) == never
    argument.add(torch.ones(1, 8, 1).mT.expand(1, 1, 8))
    argument.add(np.ones((1, 6, 2))[:, ::-1])
    assert argument.never() == ["longer than 8"]
    assert argument.marks == {"a gradient": 1, "not contiguous": 1}


def test_every_call_of_a_layer_is_counted() -> None:
    lesson = Course.load(ROOT).lesson("04")
    found = inputs(lesson, 1)
    forward = found["TorchSelfAttention.forward"]
    assert set(forward) == {"X", "mask"}
    assert {2, 3} <= set(forward["X"].axes) and forward["mask"].kinds["NoneType"]
    assert found["TorchSelfAttention.__init__"]["d_model"].values["6"]


def test_inputs_whose_results_nobody_looks_at_are_found(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", "spoiled"]) == 0
    said = capsys.readouterr().out
    assert "not looked at" not in said and said.splitlines()[-1].endswith("100.0%")
    lesson = course / "lessons" / "01-tiny" / "tiny.py"
    shape_only = 'assert double(np.ones(2)).shape == (2,), "The shape is kept."'
    lesson.write_text(
        lesson.read_text().replace(
            "double(np.array([-3.0]))", "double(np.array([-3.0]))\n" + shape_only
        )
    )
    assert main(["measure", "spoiled"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "    not looked at: x: last axis 2" in said
    assert not any("x: last axis odd" in line for line in said)


def test_the_kinds_of_inputs() -> None:
    of_mask = kinds({"mask": np.array([[True, False], [False, False]])})
    assert of_mask == {
        "mask: NumPy bool",
        "mask: 2 axes",
        "mask: last axis 2",
        "mask: axis -2 2",
        "mask: axes -2 and -1 equal",
        "mask: some row is all False",
    }
    of_pair = kinds({"x": [torch.zeros(3, 70)], "n": np.int64(7), "y": torch.ones(1, 4, 5).half()})
    assert {"x: list of length 1", "x: last axis longer than 64", "x: all zero"} <= of_pair
    assert {"n: int64", "n: odd", "x and y: fewer rows", "x and y: two dtypes"} <= of_pair
    assert "x and y: another number of axes" in of_pair and "x: last axis longer than 16" in of_pair
    assert kinds({"layer": torch.nn.ReLU().eval()}) == {"layer: in evaluation mode"}
    assert kinds({"t": 0.5, "s": "", "f": float("inf")}) >= {"t: below 1", "s: str of length 0"}


@pytest.mark.slow
def test_answers(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = course / "theirs" / "01-tiny" / "double"
    theirs.mkdir(parents=True)
    (theirs / "ada.py").write_text("# one more\ndef double(x):\n    return x + 1\n")
    assert main(["measure", "answers", "theirs"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("=== 01 double ada: # one more\n")
    assert "You add one." in said.partition("graded")[0]
    assert "graded 0 of 3:" in said
    assert main(["measure", "answers", "theirs", "--only", "box"]) == 0
    assert "graded 0 of 0:" in capsys.readouterr().out
