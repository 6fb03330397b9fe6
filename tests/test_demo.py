"""The demonstration class can be made: its students know only names that the lessons know."""

from __future__ import annotations

import tomllib

import pytest

from autograder.course.lessons import Lesson
from demo.make_class import HERE, implementation

from .conftest import COURSE

STUDENTS = tomllib.loads((HERE / "students.toml").read_text(encoding="utf-8"))["student"]


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: str(lesson.folder)[:2])
def test_every_name_in_the_demonstration_class_exists(lesson: Lesson) -> None:
    for student in STUDENTS:
        work = student.get(lesson.folder, student["otherwise"])
        if isinstance(work, dict):
            for exercise, name in work.get("instead", {}).items():
                assert implementation(lesson, exercise, name).source
            assert set(work.get("blank", [])) <= set(lesson.exercises)


def test_the_demonstration_class_knows_every_lesson_by_its_name() -> None:
    named = {key for student in STUDENTS for key in student} - {"id", "otherwise"}
    assert named <= {lesson.folder for lesson in COURSE.lessons}


def test_somebody_makes_a_known_mistake_in_every_lesson() -> None:
    for lesson in COURSE.lessons:
        works = [student.get(lesson.folder) for student in STUDENTS]
        assert any(isinstance(work, dict) and "instead" in work for work in works), lesson.folder
