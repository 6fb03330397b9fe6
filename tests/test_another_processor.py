"""What is generated on one processor is generated on another, byte by byte.

Settings of the libraries make them choose the kernels of an old processor. The suite takes two
lessons that are rich in single precision; ``make test-long`` takes all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import _kept, as_released, released_mistakes
from autograder.lesson.fingerprints import agree

from .conftest import COURSE, ROOT
from .other_processors import settings

#: Kernels for processors without AVX.
OLD = settings()[0].environment

#: Digits that the kernels of two processors give in another way.
DIGITS = """
import numpy as np, torch
x = np.random.default_rng(0).normal(size=(60, 60))
y = torch.tensor(x, dtype=torch.float32)
print(repr(np.exp(x @ x / 60).sum()), float(torch.softmax(y @ y, -1).pow(2).sum()))
"""

#: Reads a folder with a file for each lesson, and makes them anew beside these.
MAKE = """
import json, sys
from pathlib import Path
import torch
from autograder.course.lessons import Course
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED
from autograder.diagnose.catalogue import as_released, mistakes
torch.set_num_threads(1)
course, folder = Course.load(Path(sys.argv[1])), Path(sys.argv[2])
for path in folder.glob("*.json"):
    lesson = course.lesson(path.stem)
    found = mistakes(lesson, DIAGNOSIS_SEED, as_graded=False)
    for name, known in (("again", json.loads(path.read_text("utf-8"))), ("anew", {})):
        path.with_suffix(f".{name}").write_text(as_released(lesson, found, known), "utf-8")
"""


def run(code: str, *arguments: Path, **settings: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in OLD}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        env={**kept, **settings},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def another() -> dict[str, str]:
    """Settings of another processor, that do choose other kernels here."""
    if run(DIGITS) == run(DIGITS, **OLD):
        pytest.skip("No setting makes the libraries of this processor round in another way.")
    return OLD


@pytest.mark.parametrize(
    "lessons",
    [
        [COURSE.lesson("03"), COURSE.lesson("04")],
        pytest.param(list(COURSE.lessons), marks=pytest.mark.long),
    ],
    ids=["two", "all"],
)
def test_the_released_mistakes_are_the_same_bytes(
    lessons: list[Lesson], another: dict[str, str], tmp_path: Path
) -> None:
    for lesson in lessons:
        text = released_mistakes(lesson)
        (tmp_path / f"{lesson.folder}.json").write_text(text, "utf-8")
    run(MAKE, ROOT, tmp_path, **another)
    for lesson in lessons:
        here = (tmp_path / f"{lesson.folder}.json").read_text("utf-8")
        assert (tmp_path / f"{lesson.folder}.again").read_text("utf-8") == here, lesson.folder
        # Made there from nothing, it recognises here what it recognises there.
        there = json.loads((tmp_path / f"{lesson.folder}.anew").read_text("utf-8"))
        assert agree(json.loads(here)["mistakes"], there["mistakes"]), lesson.folder


def test_a_result_that_no_longer_agrees_is_written_anew() -> None:
    """What stands in course/ is kept for its last digits only."""
    lesson = COURSE.lesson("01")
    text = released_mistakes(lesson)
    tree = json.loads(text)
    kept, other = [got for got in results(tree) if len(got.get("values", [])) == 1][:2]
    kept["values"][0] = round(kept["values"][0] + 1e-8, 8)
    other["values"][0] += 0.123
    found = results(json.loads(as_released(lesson, _kept(lesson, as_graded=False), tree)))
    assert kept in found
    assert other not in found


def results(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """What checks saw of the mistakes of a released file."""
    return [
        got
        for entries in tree["mistakes"].values()
        for entry in entries
        for seen in entry["seen"].values()
        for _, got, _ in seen
    ]
