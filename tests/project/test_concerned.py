"""What of the long tests concerns a change is found by what changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .. import concerned


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("lessons", "solutions", "autograder", "lesson_kit"):
        shutil.copytree(concerned.ROOT / name, tmp_path / name)
    monkeypatch.setattr(concerned, "ROOT", tmp_path)
    return tmp_path


def test_one_change_concerns_one_lesson_or_one_package(copy: Path) -> None:
    held = {unit: concerned.digest(unit) for unit, _ in concerned.units()}
    assert concerned.concerned(held) == []
    for path, unit in (
        ("lessons/02-query-key-value/alternatives.py", "lessons/02-query-key-value"),
        ("autograder/box/box.py", "autograder/box"),
    ):
        with (copy / path).open("a") as source:
            source.write("\n# Another line.\n")
        ((changed, commands),) = concerned.concerned(held)
        assert changed == unit and commands
        held[unit] = concerned.digest(unit)


def test_what_fails_is_not_held_and_what_is_left_out_is_said(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(concerned, "HELD", copy / "held.json")
    monkeypatch.setattr(concerned, "_holds", lambda command: command != concerned.KILLS)
    monkeypatch.setattr("sys.argv", ["concerned", "--run", "1"])
    assert concerned.main() == 1
    held = (copy / "held.json").read_text()
    assert "autograder/box" in held and "autograder/grade" not in held
    monkeypatch.setattr("sys.argv", ["concerned"])
    assert concerned.main() == 0
    said = capsys.readouterr().out
    assert f"autograder/grade: {concerned.KILLS}" in said
    assert "autograder/box" not in said.partition("Left out")[2]


def test_every_file_of_tests_that_is_named_is_there() -> None:
    named = {
        word for _, commands in concerned.units() for line in commands for word in line.split()
    }
    files = [word for word in named if word.startswith("tests/")]
    assert len(files) > 10
    assert all((concerned.ROOT / name).is_file() for name in files)
