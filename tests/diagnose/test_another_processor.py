"""What is generated on one processor is generated on another, byte by byte.

Settings of the libraries make them choose the kernels of an old processor; ``make test-long`` tries
all lessons.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import Known, as_before
from lesson_kit.evidence import Evidence

from ..conftest import COURSE, ROOT
from ..other_processors import settings

#: Kernels for processors without AVX.
OLD = settings()[0].environment

#: Digits that the kernels of two processors give in another way.
DIGITS = """
import numpy as np, torch
x = np.random.default_rng(0).normal(size=(60, 60))
y = torch.tensor(x, dtype=torch.float32)
print(repr(np.exp(x @ x / 60).sum()), float(torch.softmax(y @ y, -1).pow(2).sum()))
"""

#: Looks at a lesson's known mistakes anew, and prints where that is not what the lock says: with
#: the lock's numbers as the reference exactly, and from nothing up to rounding.
LOOK = """
import sys
from pathlib import Path
import torch
from autograder.course.lessons import Course
from autograder.diagnose.catalogue import known_in, looked_at
from autograder.diagnose.matrix import Matrix
from lesson_kit.evidence import same
torch.set_num_threads(1)
lesson = Course.load(Path(sys.argv[1])).lesson(sys.argv[2])

def texts(known):
    return [{name: {test: pieces for test, pieces in seen.items() if pieces}
             for name, seen in mistakes.items()} for mistakes in (known.graded, known.at_home)]

with Matrix(lesson) as matrix:
    for exercise, here in known_in(lesson).items():
        if texts(looked_at(matrix, exercise, here)) != texts(here):
            print(exercise, "is written in another way")
        anew = looked_at(matrix, exercise)
        for mine, its in zip(texts(here), texts(anew)):
            for name, seen in mine.items():
                tests = {*seen, *its[name]}
                if not all(same(seen.get(t, ()), its[name].get(t, ())) for t in tests):
                    print(exercise, name, "is not recognised")
"""


def run(code: str, *arguments: object, **settings: str) -> str:
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


@pytest.mark.long
@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_known_mistakes_are_the_same_bytes(
    lesson: Lesson, another: dict[str, str], tmp_path: Path
) -> None:
    assert not run(LOOK, ROOT, lesson.folder, **another, AUTOGRADER_CACHE=str(tmp_path))


def test_a_result_that_no_longer_agrees_is_written_anew() -> None:
    """What the lock says is kept for its last digits only."""
    now = Evidence.of("close", "Twice.", 1.23456789)
    nearly = replace(now, got={**now.got, "values": [1.2345679]})
    other = replace(now, got={**now.got, "values": [1.35]})
    known = Known("", {"kept": {"test": (nearly,)}, "other": {"test": (other,)}}, {})
    assert as_before({"test": (now,)}, known.graded["kept"]) == {"test": (nearly,)}
    assert as_before({"test": (now,)}, known.graded["other"]) == {"test": (now,)}
