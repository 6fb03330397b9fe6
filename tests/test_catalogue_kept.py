"""Evidence of mistakes is made once, and again only where what it comes from changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course.lessons import Course
from autograder.diagnose.catalogue import keep

from .tiny import MISCONCEPTIONS, tiny_course

KNOWN = """
from autograder.course.implementations import exercise, wrong
with exercise("double"):
    wrong("thrice", {"2 * x": "3 * x"}, "It is three times x.")
with exercise("quadruple"):
    wrong("half_of_it", {"double(double(x))": "double(x)"}, "You double once.")
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    lesson = tiny_course(tmp_path).lesson("01")
    (lesson.path / "misconceptions.py").write_text(KNOWN + MISCONCEPTIONS)
    return tmp_path


def made(folder: Path) -> dict[str, str]:
    """What is kept after both kinds of evidence were asked for: file and content."""
    keep(Course.load(folder).lesson("01"))
    return {path.name: path.read_text() for path in (folder / "build" / "mistakes").iterdir()}


def exercises(names: set[str]) -> set[str]:
    return {name.split("-")[2] for name in names}


def change(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / "lessons" / "01-tiny" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_file_for_each_exercise_and_kind(course: Path) -> None:
    kept = made(course)
    assert len(kept) == 4 and exercises(set(kept)) == {"double", "quadruple"}


def test_a_changed_story_or_demonstration_changes_nothing(
    course: Path,
) -> None:
    before = made(course)
    change(course, "tiny.py", "# Because.", "# For this reason.")
    change(course, "tiny.py", "a demonstration is not run", "a picture is not drawn")
    assert made(course) == before


@pytest.mark.parametrize(
    ("name", "old", "new", "anew"),
    [
        ("tiny.py", "Is it four times x?", "Four times?", {"quadruple"}),
        ("tiny.py", "return 2 * x", "return x + x", {"double", "quadruple"}),
        ("misconceptions.py", "You double once.", "It is doubled once.", {"quadruple"}),
        ("misconceptions.py", "3 * x", "x * 3", {"double"}),
    ],
)
def test_only_what_it_comes_from_has_it_made_anew(
    course: Path, name: str, old: str, new: str, anew: set[str]
) -> None:
    before = made(course)
    if old == "return 2 * x":
        change(course, "misconceptions.py", "2 * x", "x + x")
    change(course, name, old, new)
    assert exercises(made(course).keys() - before.keys()) == anew
