"""The demonstration class can be made, and shows what it says: `make demo`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from autograder.course.lessons import Lesson
from demo.make_class import CLASS, implementation

from ..conftest import COURSE, ROOT

LESSONS = [COURSE.lesson(name) for name in CLASS["lessons"]]
STUDENTS = {student["id"]: student for student in CLASS["student"]}


def works(lesson: Lesson) -> list[Any]:
    return [student.get(lesson.folder, student["otherwise"]) for student in CLASS["student"]]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: str(lesson.folder))
def test_every_name_in_the_demonstration_class_exists(lesson: Lesson) -> None:
    mistakes = 0
    for work in works(lesson):
        if isinstance(work, dict):
            for exercise, name in work.get("instead", {}).items():
                mistakes += not implementation(lesson, exercise, name).right
            blank = work.get("blank", [])
            assert blank == "all" or set(blank) <= set(lesson.exercises)
    assert mistakes, "somebody makes a known mistake in every lesson"


def test_the_demonstration_class_names_no_other_lesson() -> None:
    named = {key for student in CLASS["student"] for key in student}
    assert named - {"id", "name", "late_days", "otherwise"} <= set(CLASS["lessons"])


def test_the_pages_that_it_names_at_its_end_are_those_of_its_class() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo:")[2]
    pages = re.findall(r"demo-class/(\S+\.html)", recipe.partition("\n\n")[0])
    assert len(pages) == 3 and pages[0] == "report.html"
    for page in pages[1:]:
        top, student, lesson, name = Path(page).parts
        assert top == "feedback" and student in STUDENTS and lesson in CLASS["lessons"]
        assert name == f"{COURSE.lesson(lesson).notebook_name}.html"
