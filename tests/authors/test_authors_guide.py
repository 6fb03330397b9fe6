"""The worked example of the author's guide works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.cli.main import main
from autograder.course.implementations import misconceptions
from autograder.course.lessons import Course

from ..conftest import ROOT
from ..tiny import COURSE_TOML

EXAMPLE = (ROOT / "lessons" / "README.md").read_text("utf-8").partition("## A worked example")[2]
SETUP = (
    '# %% tags=["setup"]\nimport numpy as np\n'
    "from lesson_kit.checks import assert_close, assert_equal, check_rng, checks_passed, probe\n\n"
)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose one exercise is the worked example."""
    folder = tmp_path_factory.mktemp("guide")
    cells, catalogue = re.findall(r"```python\n(.*?)```", EXAMPLE, re.S)
    wrong, *right = catalogue.split("@alternative")
    lesson = folder / "lessons" / "01-tiny"
    lesson.mkdir(parents=True)
    (folder / "lessons" / "course.toml").write_text(COURSE_TOML)
    (lesson / "tiny.py").write_text(SETUP + cells)
    head = "from autograder.course.implementations import alternative, exercise, wrong\n"
    (lesson / "misconceptions.py").write_text(head + wrong)
    (lesson / "alternatives.py").write_text("@alternative".join([head, *right]))
    answers = folder / "DIR" / "01-tiny" / "centre"
    answers.mkdir(parents=True)
    (answers / "mine.py").write_text("# takes all away\ndef centre(x):\n    return x - x\n")
    return folder


def test_the_worked_example_is_an_exercise(course: Path) -> None:
    made = Course.load(course).lesson("01")
    assert list(made.exercises) == ["centre"]
    assert list(made.tests) == ["test_centre", "test_centre_inputs"]
    names = [entry.name for entry in misconceptions(made)]
    assert names == ["mean_of_everything", "mean_of_columns", "median", "in_place"]


COMMANDS = [
    command
    for command in re.findall(r"^\| `autograder (.*?)` \|", EXAMPLE, re.M)
    if not command.startswith("translate ")  # it ends with 1 while messages wait for a translator
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_worked_example_passes_every_command_below_it(
    command: str,
    course: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(course)
    assert main(command.replace("02", "01").split()) == 0, capsys.readouterr().out
    if command.startswith("measure answers"):
        assert "mine" in capsys.readouterr().out


def test_the_table_of_commands_was_read() -> None:
    assert len(COMMANDS) == 10
