"""A lesson uses earlier exercises without typing them again, and without showing them."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from autograder.build.beside import data_of
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Lesson, LessonError
from autograder.course.prerequisites import (
    carried_over,
    names_carried_over,
)
from lesson_kit.earlier import EARLIER, as_module

from ..conftest import COURSE
from ..submissions import graded, notebook_with, points
from ..tiny import NEXT, two_lessons


def test_a_part_brings_what_it_builds_on(tmp_path: Path) -> None:
    lesson = two_lessons(tmp_path).lesson("02")
    module = as_module(carried_over(lesson))
    assert module.quadruple(3) == 12
    assert module.__dict__["__all__"] == ["quadruple"]


def test_a_part_can_be_used_without_being_read(tmp_path: Path) -> None:
    lesson = two_lessons(tmp_path).lesson("02")
    text = data_of(lesson)
    assert "double(double(x))" not in text
    assert EARLIER in json.loads(text)
    assert EARLIER not in json.loads(data_of(two_lessons(tmp_path / "b").lesson("01")))


def test_a_lesson_is_graded_with_the_course_s_own_parts(tmp_path: Path) -> None:
    lesson = two_lessons(tmp_path).lesson("02")
    write_source(lesson, tmp_path / "source" / lesson.folder)
    bundle = Bundle.load(tmp_path / "source" / lesson.folder)
    assert points(graded(bundle, notebook_with(bundle))) == {"octuple": 2.0}
    wrong = {"octuple": "def octuple(x):\n    return quadruple(x)\n"}
    assert points(graded(bundle, notebook_with(bundle, wrong))) == {"octuple": 0.0}


def test_a_part_that_no_earlier_lesson_has_is_named(tmp_path: Path) -> None:
    lesson = two_lessons(tmp_path, NEXT.replace("import quadruple", "import triple")).lesson("02")
    with pytest.raises(LessonError, match=r"'triple'.*no earlier lesson"):
        carried_over(lesson)


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_what_is_packed_answers_only_earlier_lessons(lesson: Lesson) -> None:
    text = carried_over(lesson)
    assert bool(text) == bool(names_carried_over(lesson))
    if not text:
        return
    code = base64.b64decode(text).decode()
    later = [one for one in COURSE.lessons if one.number >= lesson.number]
    for one in later:
        for name in one.exercises:
            assert not re.search(rf"^(def|class) {name}\b", code, re.M), name
