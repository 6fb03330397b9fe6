"""A lesson, which brings solutions of earlier ones, is handed out when those are due."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autograder.classroom.folder import ClassError, ClassFolder
from autograder.classroom.hand_out import release
from autograder.classroom.held_back import release_due, settle
from autograder.cli.main import main

from ..classes import LESSON, new

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
NAMES = ("01-a", "02-b", "03-c", "04-d")


def class_with(root: Path, due: dict[str, datetime], more: str = "") -> ClassFolder:
    """A class of four lessons, all of them handed out."""
    for name in NAMES:
        (root / "source" / name).mkdir(parents=True, exist_ok=True)
        (root / "release" / name).mkdir(parents=True)
        (root / "release" / name / "lesson.txt").write_text(name)
    (root / "submitted").mkdir()
    dates = "\n".join(f'"{name}" = {when.isoformat()}' for name, when in due.items())
    (root / "class.toml").write_text(f"seed = 1\n{more}\n[due]\n{dates}\n")
    return ClassFolder.open(root)


def handed_out(folder: ClassFolder) -> list[str]:
    return sorted(path.name for path in (folder.root / "release").iterdir())


def held_back(folder: ClassFolder) -> list[str]:
    held = folder.root / "held_back"
    return sorted(path.name for path in held.iterdir()) if held.exists() else []


def days(number: float) -> datetime:
    return NOW + timedelta(days=number)


def test_a_lesson_waits_for_all_earlier_ones(tmp_path: Path) -> None:
    """Also for one that is due later than those between."""
    folder = class_with(tmp_path, {"01-a": days(1), "02-b": days(9), "03-c": days(8)})
    done = settle(folder, NOW)
    assert done.held == {"02-b": "01-a", "03-c": "02-b", "04-d": "02-b"}
    assert (done.released, done.note) == ((), "")
    assert handed_out(folder) == ["01-a"]
    assert held_back(folder) == ["02-b", "03-c", "04-d"]
    assert (tmp_path / "held_back" / "03-c" / "lesson.txt").read_text() == "03-c"

    assert release_due(folder, days(1)) == ("02-b",)
    assert release_due(folder, days(8.5)) == ()
    assert release_due(folder, days(9)) == ("03-c", "04-d")
    assert (handed_out(folder), held_back(folder)) == ([*NAMES], [])


def test_grading_and_collecting_take_nothing_back(tmp_path: Path) -> None:
    folder = class_with(tmp_path, {"01-a": days(1)})
    assert release_due(folder, NOW) == ()
    assert handed_out(folder) == [*NAMES]


def test_a_due_date_that_was_moved(tmp_path: Path) -> None:
    folder = class_with(tmp_path, {"01-a": days(-1)})
    assert settle(folder, NOW).held == {}
    later = class_with(tmp_path / "later", {"01-a": days(3)})
    assert settle(later, NOW).held == {"02-b": "01-a", "03-c": "01-a", "04-d": "01-a"}
    again = settle(later, days(4))
    assert (again.released, again.held) == (("02-b", "03-c", "04-d"), {})


@pytest.mark.parametrize(
    ("due", "more", "says"),
    [({}, "", "no dates in [due]"), ({"01-a": days(1)}, "hold_back = false", "hold_back = false")],
    ids=["no dates", "off"],
)
def test_where_nothing_is_held(
    tmp_path: Path, due: dict[str, datetime], more: str, says: str
) -> None:
    """What had been held before is handed out, and the reason is said."""
    folder = class_with(tmp_path, due, more)
    (tmp_path / "held_back").mkdir()
    (tmp_path / "release" / "02-b").rename(tmp_path / "held_back" / "02-b")
    done = settle(folder, NOW)
    assert (done.released, done.held) == (("02-b",), {})
    assert says in done.note
    assert handed_out(folder) == [*NAMES]


def test_a_lesson_in_both_places_is_not_overwritten(tmp_path: Path) -> None:
    folder = class_with(tmp_path, {"01-a": days(1)})
    both = tmp_path / "held_back" / "03-c"
    both.mkdir(parents=True)
    (both / "mine.txt").write_text("mine")
    for move in (settle, lambda folder, now: release_due(folder, days(2))):
        with pytest.raises(ClassError, match="03-c lies in release/ and in held_back/"):
            move(folder, NOW)
    assert handed_out(folder) == [*NAMES]
    assert (both / "mine.txt").read_text() == "mine"


def test_the_setting_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class_with(tmp_path, {}, 'hold_back = "yes"')
    assert main(["export", str(tmp_path), "--to", "release"]) == 2
    assert "hold_back should be true or false" in capsys.readouterr().err


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`release` holds back and hands out; `grade` hands out what has become due."""
    future = datetime.now(UTC) + timedelta(days=2)
    folder = class_with(tmp_path, {"02-b": future})
    assert main(["export", str(tmp_path), "--to", "release"]) == 0
    said = capsys.readouterr().out
    assert "03-c: held back until 02-b is due" in said and "04-d" in said
    assert held_back(folder) == ["03-c", "04-d"]
    assert main(["export", str(tmp_path), "--to", "release", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["held_back"] == {"03-c": "02-b", "04-d": "02-b"}

    settings = tmp_path / "class.toml"
    past = datetime.now(UTC) - timedelta(days=2)
    settings.write_text(settings.read_text().replace(future.isoformat(), past.isoformat()))
    main(["grade", str(tmp_path), "--sandbox", "none"])
    assert "03-c: what it gives away is due" in capsys.readouterr().out
    assert held_back(folder) == []


def test_a_lesson_that_is_held_back_is_made_anew_where_it_lies(tmp_path: Path) -> None:
    """As after a mended lesson was taken into the class."""
    folder = new(tmp_path)
    (folder.root / "held_back").mkdir()
    held = folder.root / "held_back" / LESSON
    (folder.root / "release" / LESSON).rename(held)
    (held / "tiny.ipynb").unlink()
    release(folder, LESSON)
    assert (held / "tiny.ipynb").exists()
    assert not (folder.root / "release" / LESSON).exists()
