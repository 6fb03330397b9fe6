"""The worked example of the author's guide works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

from autograder.authors.trial import trial
from autograder.course.lessons import Course
from autograder.diagnose.catalogue import mistakes
from autograder.diagnose.matrix import Matrix

from ..conftest import ROOT
from ..tiny import COURSE_TOML

SETUP = (
    '# %% tags=["setup"]\nimport numpy as np\n'
    "from lesson_kit.checks import assert_close, assert_equal, check_rng, checks_passed, probe\n\n"
)


def test_the_worked_example_is_an_exercise(tmp_path: Path) -> None:
    guide = (ROOT / "lessons" / "README.md").read_text(encoding="utf-8")
    example = guide.partition("## A worked example")[2]
    cells, catalogue = re.findall(r"```python\n(.*?)```", example, re.S)
    wrong, right = catalogue.split("@alternative")
    lesson = tmp_path / "lessons" / "01-tiny"
    lesson.mkdir(parents=True)
    (tmp_path / "lessons" / "course.toml").write_text(COURSE_TOML)
    (lesson / "tiny.py").write_text(SETUP + cells)
    head = "import numpy as np\nfrom autograder.course.implementations import "
    head += "alternative, exercise, wrong\n"
    (lesson / "misconceptions.py").write_text(head + wrong)
    (lesson / "alternatives.py").write_text(head + "@alternative" + right)
    made = Course.load(tmp_path).lesson("01")
    assert list(made.exercises) == ["centre"]
    assert list(made.tests) == ["test_centre", "test_centre_inputs"]
    with Matrix(made) as matrix:
        assert trial(matrix, "centre").complaints == []
        known = mistakes(matrix, "centre", 1)
    assert [one.name for one in known if any(one.seen.values())] == ["mean_of_everything"]
