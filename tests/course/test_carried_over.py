"""A lesson uses earlier exercises without typing them again, and without showing them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from autograder.build.beside import data_of
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Course, Lesson
from autograder.course.prerequisites import (
    carried_over,
    names_carried_over,
)
from autograder.course.source_rules import LessonError
from lesson_kit.earlier import EARLIER, as_module
from lesson_kit.setting import unpack_text

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


USES = "    return np.array([statistics.fmean([value] * 4) * 4 for value in np.ravel(x)])\n"


def _with_quadruple(folder: Path, setup: str, body: str, later: str = NEXT) -> Lesson:
    """The second lesson, which takes over a ``quadruple`` of another making."""
    course = two_lessons(folder, later)
    path = folder / "lessons" / "01-tiny" / "tiny.py"
    text = path.read_text().replace("import numpy as np\n", f"import numpy as np\n{setup}", 1)
    path.write_text(text.replace("    return double(double(x))\n", body))
    return course.lesson("02")


def test_a_part_brings_what_its_own_setup_cell_imports(tmp_path: Path) -> None:
    lesson = _with_quadruple(tmp_path, "import statistics\nimport turtle\n", USES)
    module = as_module(carried_over(lesson))
    assert module.quadruple([1, 2]).tolist() == [4, 8]
    assert "torch" not in vars(module) and "turtle" not in vars(module)


def test_a_part_that_needs_what_no_setup_cell_imports_is_named(tmp_path: Path) -> None:
    lesson = _with_quadruple(tmp_path, "", USES)
    with pytest.raises(LessonError, match="'quadruple' of 01-tiny, whose answer uses 'statistics'"):
        carried_over(lesson)


def test_two_things_of_one_name_do_not_come_along(tmp_path: Path) -> None:
    lesson = _with_quadruple(
        tmp_path, "from math import fsum as total\n", "    return total(4 * [x])\n"
    )
    more = "\n[[lesson]]\nfolder = '03-more'\ntitle = 'M'\nminutes = 5\nneeds = []\nabout = 'M.'\n"
    path = tmp_path / "lessons" / "course.toml"
    path.write_text(path.read_text() + more)
    text = NEXT.replace("quadruple\n", "octuple, quadruple\n", 1).replace("octuple(x)", "more(x)")
    for name in ("more.py", "misconceptions.py", "alternatives.py"):
        file = tmp_path / "lessons" / "03-more" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.replace('"octuple"', '"more"').replace("test_octuple", "test_more"))
    path = lesson.source_path
    own = path.read_text().replace(
        "import numpy as np", "import numpy as np\nfrom numpy import sum as total"
    )
    path.write_text(own.replace("quadruple(x) + quadruple(x)", "total([quadruple(x)] * 2)"))
    with pytest.raises(LessonError, match=r"needs `from numpy import sum as total`.*`from math"):
        carried_over(Course.load(tmp_path).lesson("03"))


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
    code = unpack_text(text)
    later = [one for one in COURSE.lessons if one.number >= lesson.number]
    for one in later:
        for name in one.exercises:
            assert not re.search(rf"^(def|class) {name}\b", code, re.M), name
