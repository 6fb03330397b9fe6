"""A course made of another one by a course.toml with ``extends``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from autograder.authors.new_course import new_course, new_lesson
from autograder.build.build import build
from autograder.build.start_page import START_FILE
from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import open_gradebook
from autograder.classroom.held_back import lies_in
from autograder.classroom.new_class import new_class
from autograder.cli.main import main
from autograder.course.lessons import Course, Lesson
from autograder.course.source_rules import LessonError

from ..conftest import COURSE

OVERLAY = """
extends = "../whole"
title = "Statistics in two weeks"
leave_out = ["01-standard-scores"]

[picture]
file = "logo.png"
says = "A logo."
caption = "Ours."

[change."02-weighted-mean"]
title = "Means with weights"
minutes = 30
weight = 2
due = 2027-03-01T23:59:00+01:00
points = {weighted_mean = 9}
"""


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of two lessons, built, and one that extends it."""
    top = tmp_path_factory.mktemp("overlay")
    new_course(top / "whole")
    new_lesson(Course.load(top / "whole"), "weighted-mean")
    listed = top / "whole/lessons/course.toml"
    text = listed.read_text()
    first, _, second = text.rpartition("needs = []")
    listed.write_text(f'{first}needs = ["01-standard-scores"]{second}')
    build(Course.load(top / "whole"), top / "whole", say=lambda line: None)
    (top / "short/lessons").mkdir(parents=True)
    (top / "short/lessons/course.toml").write_text(OVERLAY)
    (top / "short/logo.png").write_bytes(b"PNG")
    return top


def test_it_leaves_out_and_changes(top: Path) -> None:
    course = Course.load(top / "short")
    [lesson] = course.lessons
    assert (lesson.folder, lesson.title, lesson.minutes) == (
        "02-weighted-mean",
        "Means with weights",
        30,
    )
    assert lesson.needs == () and [one.folder for one in lesson.earlier] == ["01-standard-scores"]
    assert course.notes == (
        "02-weighted-mean builds on 01-standard-scores, which is left out: what it takes from "
        "there is the course's own",
    )


def test_it_builds_without_running_what_was_run(top: Path) -> None:
    said: list[str] = []
    course = Course.load(top / "short")
    build(course, course.root, say=said.append)
    assert said[0] == course.notes[0]
    assert "02-weighted-mean: solved version; of it ran nothing" in said
    made = nbformat.read(top / "short/course/02-weighted-mean/weighted_mean.ipynb", as_version=4)
    assert made.cells[0].source.startswith("# 2. Means with weights")
    start = nbformat.read(top / "short/course" / START_FILE, as_version=4)
    assert "Statistics in two weeks" in start.cells[0].source
    assert list(start.cells[0].attachments["picture"].values()) == ["UE5H"]
    assert not (top / "short/course/01-standard-scores").exists()


def worth(lesson: Lesson, exercise: str) -> tuple[list[float], list[float]]:
    """Points of an exercise's checks, and of the named checks in them."""
    cells = [cell for name, cell in lesson.tests.items() if name.startswith(f"test_{exercise}")]
    named = re.findall(r"^with check\(.*points=([\d.]+)", "\n".join(c.source for c in cells), re.M)
    return [cell.metadata["nbgrader"]["points"] for cell in cells], [float(one) for one in named]


def test_an_exercise_has_other_points(top: Path) -> None:
    [lesson] = Course.load(top / "short").lessons
    assert sum(worth(lesson, "weighted_mean")[0]) == 9
    was = COURSE.lesson("03")
    name = "dot_product_variance"
    twice = replace(was, points=((name, 2 * sum(worth(was, name)[0])),))
    assert worth(twice, name) == tuple([2 * one for one in part] for part in worth(was, name))
    assert worth(was, name)[1]
    other = replace(was, points=(("median", 2),))
    with pytest.raises(LessonError, match="no exercise 'median' with points; there are"):
        _ = other.notebook


def test_a_class_begins_with_its_dates_and_weights(top: Path) -> None:
    made = new_class(Course.load(top / "short"), top / "class", say=lambda line: None)
    assert made.assignments == ["02-weighted-mean"]
    settings = tomllib.loads((top / "class/class.toml").read_text())
    assert settings["due"]["02-weighted-mean"].isoformat() == "2027-03-01T23:59:00+01:00"
    assert settings["grade"]["weights"] == {"02-weighted-mean": 2}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["01-standard-scores"]', '["01-scores"]', "01-scores is no lesson of ../whole; it has"),
        ("minutes = 30", "minuts = 30", "change of 02-weighted-mean: minuts is unknown"),
        ("weight = 2", 'weight = "2"', "weight should be a number"),
        ("23:59:00+01:00", "23:59:00", "due should be a time with its offset"),
        ("_mean = 9", "_mean = 0", "points should be numbers, such as"),
        ("../whole", "../other", "course.toml is missing"),
        ("logo.png", "logo.svg", "should be a PNG"),
        ('title = "Statistics', 'lesson = "Statistics', "lesson is unknown; there are extends"),
    ],
)
def test_a_slip_is_answered(top: Path, tmp_path: Path, old: str, new: str, says: str) -> None:
    listed = top / "slip/lessons/course.toml"
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text(OVERLAY.replace(old, new))
    with pytest.raises(LessonError, match=says):
        Course.load(top / "slip")


def test_a_class_takes_a_lesson_that_came_later(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, where = str(top / "whole"), str(top / "later")
    first = ["new-class", where, "--course", whole, "--lesson"]
    assert main([*first, "01"]) == 0
    before = (top / "later/class.toml").read_bytes()
    assert main([*first, "01", "--add"]) == 2
    assert "has 01-standard-scores already; name others" in capsys.readouterr().err
    assert main([*first[:-1], "--add"]) == 2
    assert "--add needs --lesson NAME" in capsys.readouterr().err

    assert main([*first, "02", "--add"]) == 0
    assert "02-weighted-mean: released" in capsys.readouterr().out
    made = ClassFolder.open(top / "later")
    assert made.assignments == ["01-standard-scores", "02-weighted-mean"]
    assert (top / "later/class.toml").read_bytes() == before
    for name in made.assignments:
        assert lies_in(made, name).is_dir()
    with open_gradebook(made.db_url) as gradebook:
        assert [one.name for one in gradebook.assignments] == made.assignments
