"""What of the long tests concerns a change is found by what changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .. import concerned

OF_02 = "lessons/02-query-key-value"


def test_one_change_concerns_one_lesson_or_one_package() -> None:
    for path, unit in (
        (f"{OF_02}/alternatives.py", OF_02),
        ("autograder/box/box.py", "autograder/box"),
        ("lesson_kit/checks.py", "lesson_kit"),
    ):
        found = list(concerned.commands_for([path, "README.md", "course/start.ipynb"]))
        assert found and {of for of, _ in found} == {unit}
    assert list(concerned.commands_for(["README.md", "autograder/lms/moodle.py"])) == []


def test_what_fails_fails_and_what_is_not_run_to_its_end_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = ["autograder/box/box.py", "autograder/grade/task.py"]
    monkeypatch.setattr(concerned, "changed_since", lambda commit: changed)
    came_to = {concerned.ATTACKS: True, concerned.KILLS: False}
    monkeypatch.setattr(concerned, "_holds", lambda command, seconds: came_to[command])
    monkeypatch.setattr("sys.argv", ["concerned", "--run", "1"])
    assert concerned.main() == 1
    said = capsys.readouterr().out
    assert f"== autograder/box, autograder/grade: {concerned.ATTACKS}" in said
    assert "Of 2 commands 1 failed, 0 were left out." in said
    came_to[concerned.KILLS] = None  # still running when the time is over
    assert concerned.main() == 0
    assert f"Left out, for `make test-long`:\nautograder/grade: {concerned.KILLS}" in (
        capsys.readouterr().out
    )
    monkeypatch.setattr("sys.argv", ["concerned"])
    assert concerned.main() == 0
    assert "Of 2 commands 0 failed, 2 were left out." in capsys.readouterr().out


def test_a_commit_that_is_not_there_is_said() -> None:
    with pytest.raises(SystemExit, match="git does not know 'no-such-commit' here"):
        concerned.changed_since("no-such-commit")


def test_where_the_history_begins_nothing_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setattr(concerned, "ROOT", tmp_path)
    assert concerned.changed_since(None) == []
    assert "no commit before this one" in capsys.readouterr().out


def test_every_file_of_tests_that_is_named_is_there() -> None:
    touched = [*(f"{unit}/a.py" for unit in concerned.OF_A_PACKAGE), f"{OF_02}/a.py"]
    named = {word for _, line in concerned.commands_for(touched) for word in line.split()}
    files = [word for word in named if word.startswith("tests/")]
    assert len(files) > 10
    assert all((concerned.ROOT / name).is_file() for name in files)
