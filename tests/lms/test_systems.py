"""Another LMS comes as an entry point of another distribution."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.cli.main import main
from autograder.errors import WrongUse
from autograder.lms.systems import systems

from ..classes import new, pack
from .plugin import BLACKBOARD, install


def test_those_that_come_with_it_are_entry_points_too() -> None:
    assert set(systems()) == {"moodle", "canvas", "gradescope"}


def test_a_plugin_collects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = new(tmp_path)
    path = pack(tmp_path / "bb.zip", {"01-tiny_ada_attempt_tiny.ipynb": b"1"})
    where = str(folder.root)
    assert main(["collect", where, str(path), "--layout", "blackboard"]) == 2
    assert "--layout blackboard is unknown; there are auto, " in capsys.readouterr().err
    assert main(["export", where, "--to", "blackboard"]) == 2
    assert "--to blackboard is unknown; there are " in capsys.readouterr().err

    install(tmp_path, BLACKBOARD, monkeypatch)
    assert main(["collect", where, str(path)]) == 0  # found out
    assert (folder.root / "submitted/ada/01-tiny/tiny.ipynb").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 / 0", "the plugin blackboard .*ZeroDivisionError.*; mend or uninstall it"),
        ("SYSTEM = 'blackboard'", "names no autograder.lms.systems.System"),
        (BLACKBOARD.replace('"blackboard"', '"canvas"'), "brings a second canvas"),
    ],
)
def test_a_plugin_that_does_not_fit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    install(tmp_path, text, monkeypatch)
    with pytest.raises(WrongUse, match=says):
        systems()
