"""A course of one's own, as docs/own-course.md makes it, in an environment without torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from autograder.authors.new_course import NewCourseError, new_course, new_lesson
from autograder.course.implementations import alternatives, misconceptions
from autograder.course.lessons import Course

from ..conftest import ROOT

PAGE = (ROOT / "docs" / "own-course.md").read_text(encoding="utf-8")
#: Commands, and Python with the name of the file that the text before it says.
STEPS = re.compile(
    r"```sh\n(?P<commands>.*?)```|`(?P<file>lessons/\S+\.py)`:\n\n```python\n(.*?)```", re.S
)

LESSON = "02-weighted-mean"

#: A line of a .pth file: torch is not found. (None in sys.modules would do for us, not for SciPy.)
NO_TORCH = (
    "import importlib.machinery as m; f = m.PathFinder.find_spec; m.PathFinder.find_spec = "
    "classmethod(lambda cls, name, *more, f=f: None if name == 'torch' else f(name, *more))"
)


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a shell finds in an environment that lacks torch: its `autograder` is this one."""
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = home.glob("lib/*/site-packages")
    there = [str(ROOT), sysconfig.get_paths()["purelib"], NO_TORCH]
    (packages / "needs.pth").write_text("\n".join(there) + "\n")
    command = home / "bin" / "autograder"
    command.write_text(f'#!/bin/sh\nexec {home}/bin/python -m autograder.cli.main "$@"\n')
    command.chmod(0o755)
    path = f"{home}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path}


def followed(folder: Path, environment: dict[str, str]) -> str:
    """What the page's commands print, with its files written in between."""
    script = ["set -e"]
    for number, step in enumerate(STEPS.finditer(PAGE)):
        if step["commands"]:
            script.append(step["commands"])
        else:
            kept = folder / f"{number}.py"
            kept.write_text(step[3])
            script.append(f'cp {kept} "{step["file"]}"')
    assert len(script) > 6
    # The box sees no packages but those of its own environment, which here are elsewhere.
    text = "\n".join(script).replace("autograder grade .", "autograder grade . --sandbox none")
    shell = ["bash", "-c", text]
    done = subprocess.run(
        shell, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_the_page_on_a_course_of_ones_own_works_without_torch(
    without_torch: dict[str, str], tmp_path: Path
) -> None:
    check = [Path(without_torch["PATH"].partition(":")[0]) / "python", "-c", "import torch"]
    assert b"ModuleNotFoundError" in subprocess.run(check, capture_output=True, check=False).stderr
    said = followed(tmp_path, without_torch)
    for tried in (
        "standard_scores: 5 misconceptions, 10 of 10 named, 2 alternatives: as it should be",
        "weighted_mean: 4 misconceptions, 8 of 8 named, 2 alternatives: as it should be",
    ):
        assert tried in said
    assert said.count("nothing to mend") == 2
    graded = json.loads((tmp_path / "my-class" / "grades.json").read_text())["submissions"]
    assert {one["student"]: one["score"] for one in graded} == {"ada": 3, "bob": 0, "cyd": 0}
    assert diagnoses(graded, "bob") == {"divided_by_n"} and not diagnoses(graded, "ada")
    page = tmp_path / "my-class" / "feedback" / "bob" / LESSON / "weighted_mean.html"
    assert "What was counted twice is there twice" in page.read_text()


def diagnoses(graded: list[dict[str, Any]], student: str) -> set[str]:
    [tests] = [one["tests"] for one in graded if one["student"] == student]
    return {test["diagnosis"] for test in tests} - {""}


def test_a_new_lesson_is_called_as_it_is_named_everywhere(tmp_path: Path) -> None:
    course = new_course(tmp_path / "mine")
    made = new_lesson(course, "weighted-mean")
    assert made.name == LESSON
    first, second = Course.load(tmp_path / "mine").lessons
    assert list(first.exercises) == ["standard_scores"]
    assert list(second.exercises) == ["weighted_mean"]
    assert (second.title, second.notebook_name) == ("Weighted mean", "weighted_mean")
    for lesson in (first, second):
        assert len(misconceptions(lesson)) >= 4 and len(alternatives(lesson)) >= 2
    again = new_lesson(Course.load(tmp_path / "mine"), "third2")
    assert again.name == "03-third2"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Weighted mean", "is no name for a lesson"),
        ("02-weighted", "without its number, such as weighted-mean"),
        ("lambda", "is no name for a lesson"),
        ("alternatives", "is no name for a lesson"),
        ("standard-scores", "the course has a lesson 'standard-scores'"),
        ("left-over", "is there and not in course.toml"),
    ],
)
def test_a_lesson_that_cannot_be_added(name: str, says: str, tmp_path: Path) -> None:
    course = new_course(tmp_path / "mine")
    (tmp_path / "mine" / "lessons" / "02-left-over").mkdir()
    listed = (tmp_path / "mine" / "lessons" / "course.toml").read_text()
    with pytest.raises(NewCourseError, match=says):
        new_lesson(course, name)
    assert (tmp_path / "mine" / "lessons" / "course.toml").read_text() == listed


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(NewCourseError, match="choose a new folder"):
        new_course(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
