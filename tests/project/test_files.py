"""A file is the old one or the new one, whatever happens meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.files import replacing, untaken, write_whole


def test_a_writer_that_fails_leaves_the_old_file_and_no_scratch(tmp_path: Path) -> None:
    path = tmp_path / "grades.json"
    write_whole(path, "old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as scratch:
        scratch.write_text("half of the n")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "made" / "on the way" / "grades.json"
    for text in ("old", "new"):
        write_whole(path, text)
        assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


def test_what_is_kept_takes_nothings_place(tmp_path: Path) -> None:
    taken = []
    for _ in range(3):
        taken.append(untaken(tmp_path / "2026-03-01"))
        taken[-1].mkdir()
    assert [path.name for path in taken] == ["2026-03-01", "2026-03-01-2", "2026-03-01-3"]
