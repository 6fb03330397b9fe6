"""What an author can get wrong is refused with the file and what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.build.page import as_page
from autograder.classroom.folder import ClassError
from autograder.classroom.new_class import new_class
from autograder.course.implementations import alternatives
from autograder.course.lessons import Course
from autograder.course.source_rules import LessonError
from autograder.diagnose.matrix import Matrix
from autograder.diagnose.matrix_cache import MatrixCache
from autograder.notebooks import exercise_of

from ..tiny import tiny_course

COURSE_TOML = """
title = "T"
[[lesson]]
folder = "01-a"
title = "A"
minutes = 5
needs = []
about = "About."
"""


def metadata(name: str, **more: object) -> str:
    base = {"grade": False, "grade_id": name, "locked": False, "points": 0}
    kind = {"schema_version": 3, "solution": True, "task": False, "cell_type": "code"}
    return f"# %% nbgrader={json.dumps({**base, **kind, **more})}\n"


SETUP = '# %% tags=["setup"]\nfrom lesson_checks import assert_equal\n\n'
ANSWER = (
    metadata("double") + "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n"
    "    ### END SOLUTION\n\n"
)
TEST = (
    metadata("test_double", grade=True, solution=False, points=1, locked=True)
    + 'assert_equal(double(2), 4, "Is it twice x?")\n\n'
)


def course(folder: Path, text: str) -> Course:
    lesson = folder / "lessons" / "01-a"
    lesson.mkdir(parents=True)
    (folder / "lessons" / "course.toml").write_text(COURSE_TOML)
    (lesson / "a.py").write_text(text)
    return Course.load(folder)


def test_a_core_path_names_exercises_that_are_there(tmp_path: Path) -> None:
    card = "# %% [markdown]\n# ### Exercise: `double`\n#\n# Twice x.\n\n"
    made = course(tmp_path, SETUP + card + ANSWER + TEST)
    on_path = replace(made.lesson("01"), core=("double",), core_minutes=3)
    assert "5 minutes, 3 of them on the core path" in on_path.notebook.cells[0].source
    assert "Core path." in as_page(on_path).cells[2].source
    with pytest.raises(LessonError, match="'halve' in the core of 01-a"):
        as_page(replace(on_path, core=("halve",)))


def test_a_sound_lesson_is_read(tmp_path: Path) -> None:
    lesson = course(tmp_path, SETUP + ANSWER + TEST).lesson("01")
    assert list(lesson.exercises) == ["double"]
    assert list(lesson.tests) == ["test_double"]
    assert lesson.notebook.cells[0].source.startswith("# 1. A")


WRONG = {
    "an open solution": (ANSWER.replace("    ### END SOLUTION\n", "") + TEST, "is not closed"),
    "a closed solution": (ANSWER.replace("    ### BEGIN SOLUTION\n", "") + TEST, "without"),
    "a nested solution": (
        ANSWER.replace("    return", "    ### BEGIN SOLUTION\n    return") + TEST,
        "a second",
    ),
    "an open markdown solution": (
        ANSWER + TEST + "# %% [markdown]\n# ### BEGIN SOLUTION\n# text\n",
        "is not closed",
    ),
    "no grade_id": (ANSWER.replace('"grade_id": "double", ', "") + TEST, "without a grade_id"),
    "no metadata": ("# %%\n" + ANSWER.split("\n", 1)[1] + TEST, "no nbgrader grade_id"),
    "the same grade_id twice": (ANSWER + ANSWER + TEST, "stands on two cells"),
    "an answer of another name": (ANSWER.replace("def double", "def twice") + TEST, "not define"),
    "a test of nothing": (ANSWER + TEST + TEST.replace("test_double", "test_x"), "no answer cell"),
    "an exercise without test": (ANSWER, "has no test cell"),
    "no Python": (ANSWER.replace("def double(x):", "def double(x:") + TEST, "not valid Python"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_are_named(tmp_path: Path, wrong: str) -> None:
    text, says = WRONG[wrong]
    with pytest.raises(LessonError, match=says) as caught:
        _ = course(tmp_path, SETUP + text).lesson("01").notebook
    assert "a.py" in str(caught.value)


def test_the_setup_cell_comes_first(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="first code cell"):
        _ = course(tmp_path, ANSWER + TEST).lesson("01").notebook


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    made = course(tmp_path, SETUP)
    (tmp_path / "lessons" / "01-a" / "a.py").unlink()
    with pytest.raises(LessonError, match=r"a\.py is missing"):
        _ = made.lesson("01").notebook


def test_an_unknown_lesson_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="there are 01-a"):
        course(tmp_path, SETUP).lesson("02")


def test_course_toml_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="is missing"):
        Course.load(tmp_path)
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "course.toml").write_text("title = ")
    with pytest.raises(LessonError, match="not valid TOML"):
        Course.load(tmp_path)
    one_table = COURSE_TOML.replace("[[lesson]]", "[lesson]")
    (tmp_path / "lessons" / "course.toml").write_text(one_table)
    with pytest.raises(LessonError, match=r"\[\[lesson\]\], in double brackets"):
        Course.load(tmp_path)


SECOND = COURSE_TOML.partition("[[lesson]]")[2].replace("01-a", "02-b").replace("[]", '["01-a"]')


@pytest.mark.parametrize(
    ("old", "slip", "says"),
    [
        (
            "title",
            "titel",
            "titel is unknown; there are title, needs, package, picture, way, lesson",
        ),
        ("[[lesson]]", "[[lessons]]", "lessons is unknown"),
        ('title = "T"\n', "", "the field title is missing"),
        ('title = "T"', "title = 1", "title should be words in quotes"),
        ("minutes = 5\n", "", "01-a: the field minutes is missing"),
        ("minutes = 5", 'minutes = "5"', "minutes should be a whole number"),
        ("needs = []", 'needs = []\ncore = ["double"]', "core and core_minutes belong together"),
        ("needs = []", "needs = []\ncore = 3", "core should be a list of exercises"),
        ("minutes = 5", "minute = 5", "01-a: minute is unknown; there are folder, title, minutes"),
        ('folder = "01-a"\n', "", "the field folder is missing"),
        ("01-a", "means", "'means' should begin with its number, such as 01-means"),
        ("02-b", "01-b", "01-b: a lesson above has the same number"),
        ('["01-a"]', '["01-b"]', "02-b: needs '01-b', no lesson above it; there are 01-a"),
        ('["01-a"]', '["02-b"]', "02-b: needs '02-b', no lesson above it"),
        (
            "needs = []",
            'needs = ["00-z"]',
            r"no lesson above it; there are none, so that it is \[\]",
        ),
        ("needs = []", 'needs = ""', "needs should be a list of folders"),
        ('"About."', '"About."\ndraft = "no"', "draft should be true or false, without quotes"),
        ("[[lesson]]", 'package = "p"\n[[lesson]]', r"package is a table of its own, \[package\]"),
        ("[[lesson]]", '[package]\nname = "p"\n[[lesson]]', "package: the field about is missing"),
        (
            "[[lesson]]",
            '[package]\nname = "my-p"\nabout = "A."\n[[lesson]]',
            "'my-p' is no name; write it as my_statistics",
        ),
        (
            "[[lesson]]",
            '[package]\nname = "p"\nabout = \'The "best".\'\n[[lesson]]',
            "about is one line, without quotes",
        ),
        (
            "[[lesson]]",
            '[picture]\nfile = "a.jpg"\nsays = "A."\ncaption = "A."\n[[lesson]]',
            "'a.jpg' should be a PNG",
        ),
        ('"About."', '"About."\nnotebook = "a.ipynb"', "notebook 'a.ipynb' is no name"),
        ('"About."', '"About."\nnotebook = "alternatives"', "notebook 'alternatives' is no name"),
    ],
)
def test_slips_in_course_toml(old: str, slip: str, says: str, tmp_path: Path) -> None:
    text = COURSE_TOML + "[[lesson]]" + SECOND
    assert old in text
    (tmp_path / "lessons").mkdir()
    path = tmp_path / "lessons" / "course.toml"
    path.write_text(text)
    assert [lesson.folder for lesson in Course.load(tmp_path).lessons] == ["01-a", "02-b"]
    path.write_text(text.replace(old, slip, 1))
    with pytest.raises(LessonError, match=says) as caught:
        Course.load(tmp_path)
    assert str(path) in str(caught.value)


def test_a_lesson_that_needs_no_other_says_what_the_course_needs(tmp_path: Path) -> None:
    made = course(tmp_path, SETUP + ANSWER + TEST)
    assert "Needs: Python.*" in made.lesson("01").notebook.cells[0].source
    path = tmp_path / "lessons" / "course.toml"
    path.write_text('needs = "a calculator"' + path.read_text())
    heading = Course.load(tmp_path).lesson("01").notebook.cells[0].source
    assert "Needs: a calculator.*" in heading


def test_the_longest_exercise_name_owns_a_test() -> None:
    names = ["attention", "attention_cost"]
    assert exercise_of("test_attention_cost", names) == "attention_cost"
    assert exercise_of("test_attention_masks", names) == "attention"


def test_a_draft_can_be_tried_and_is_in_no_build(tmp_path: Path) -> None:
    tiny_course(tmp_path)
    path = tmp_path / "lessons" / "course.toml"
    path.write_text(path.read_text() + "draft = true\n")
    course = Course.load(tmp_path)
    assert course.lessons == ()
    assert course.lesson("01").folder == "01-tiny"
    with pytest.raises(ClassError, match="no lesson that is finished"):
        new_class(course, tmp_path / "class")
    assert not (tmp_path / "class").exists()


def test_classes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """A catalogue defines the same class again and again."""
    course = tiny_course(tmp_path)
    path = tmp_path / "lessons" / "01-tiny" / "alternatives.py"
    one = '@alternative("double", "{name}")\nclass Double:\n    value = {value}\n\n\n'
    head = "from autograder.course.implementations import alternative\n\n\n"
    path.write_text(head + one.format(name="a", value=1) + one.format(name="b", value=2))
    found = alternatives(course.lesson("01"))
    assert [one.source for one in found] == [
        "class Double:\n    value = 1\n",
        "class Double:\n    value = 2\n",
    ]
    path.write_text(head + one.format(name="a", value=1) * 2)
    with pytest.raises(LessonError, match="'a' stands there twice"):
        alternatives(course.lesson("01"))


ALTERNATIVE = """
import statistics as st
import numpy as np
from fractions import Fraction

from autograder.course.implementations import alternative


@alternative("double", "as_a_mean")
def double(x):
    if np.any(x < 0):
        raise ValueError("x is negative")
    return np.array([2 * st.mean([value, value]) for value in x.tolist()])
"""


def test_an_alternative_brings_what_its_file_imports(tmp_path: Path) -> None:
    made = tiny_course(tmp_path)
    (tmp_path / "lessons" / "01-tiny" / "alternatives.py").write_text(ALTERNATIVE)
    [alternative] = alternatives(made.lesson("01"))
    assert alternative.source.startswith("import statistics as st\ndef double(x):")
    with Matrix(made.lesson("01"), results=MatrixCache(tmp_path)) as matrix:
        outcomes = matrix.of(alternative, ["test_double", "test_double_errors"], 1)
    assert all(outcome.passed for outcome in outcomes.values())


def test_a_lesson_can_be_sent_while_it_is_read(tmp_path: Path) -> None:
    """Another thread pickles it for a worker while this one reads its notebook."""
    lesson = tiny_course(tmp_path).lesson("01")
    sent = lesson.__getstate__()
    assert lesson.notebook.cells
    assert "notebook" not in sent
