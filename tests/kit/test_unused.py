"""What an answer makes or is given and never uses is said, and nothing else."""

from __future__ import annotations

import textwrap

import pytest

from autograder.course.implementations import alternatives
from autograder.course.lessons import Lesson
from lesson_kit.answer_text import never_used

from ..conftest import COURSE

LAYER = """
class Layer(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.norm1, self.norm2 = Norm(d), Norm(d)
        self.W = nn.Linear(d, d)
        self.eps = eps

    def forward(self, x, mask=None):
        return {0}
"""


@pytest.mark.parametrize(
    ("answer", "unused"),
    [
        ("def f(x, axis=-1):\n    return x.sum(-1)\n", "`axis`"),
        ("def f(x, axis=-1):\n    return x.sum(axis)\n", ""),
        ("def f(x, axis=-1):\n    axis = 0\n    return x.sum(0)\n", "`axis`"),
        ("def f(x, *, scale):\n    return x\n", "`scale`"),
        ("def f(*masks):\n    return None\n", ""),
        ("def f(x, _):\n    return x\n", ""),
        ("def f(x, y):\n    return eval('x + y')\n", ""),
        ("def f(x:\n", ""),
        (LAYER.format("self.W(x) * mask"), ""),
        (LAYER.format("x * mask"), "`self.W`"),
        (LAYER.format("self.W(x)"), "`mask` is an argument of `forward`"),
        (LAYER.format("getattr(self, 'W')(x)"), ""),
    ],
)
def test_only_what_nothing_reads_is_named(answer: str, unused: str) -> None:
    said = never_used(textwrap.dedent(answer))
    assert unused in said if unused else said == ""


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_no_right_answer_has_something_unused(lesson: Lesson) -> None:
    right = {name: lesson.exercises[name] for name in lesson.exercises}
    right |= {f"{one.exercise} {one.name}": one.source for one in alternatives(lesson)}
    assert {name: said for name, source in right.items() if (said := never_used(source))} == {}
