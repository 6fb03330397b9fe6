"""nbgrader's exchange in a folder: fetched, submitted, collected, graded, handed back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autograder.classroom.folder import ClassFolder
from autograder.cli.main import main
from autograder.marking.exchange import SECRET

from ..classes import LESSON, entries, hand_in, new, solved
from ..submissions import boxes
from .exchange import RIGHT, Term

pytestmark = pytest.mark.slow

WRONG = {"double": "def double(x):\n    return 3 * x\n"}


def test_released_fetched_submitted_collected_graded_and_handed_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    term = Term(tmp_path, monkeypatch)
    term.nbgrader("instructor", "release_assignment", LESSON)
    term.submit("ada", RIGHT)
    term.submit("bob", WRONG)
    released = term.home("bob") / LESSON
    assert (released / "lesson_kit" / "checks.py").exists()
    assert "BEGIN SOLUTION" not in (released / "tiny.ipynb").read_text(encoding="utf-8")

    term.nbgrader("instructor", "collect", LESSON)
    term.grade()
    points = {name: one["score"] for name, one in entries(term.folder).items()}
    assert points["ada"] == 8.0
    assert points["bob"] < 8.0
    assert not any(one["flags"] for one in entries(term.folder).values())

    term.nbgrader("instructor", "release_feedback", LESSON)
    mine = (term.folder.root / "feedback" / "ada" / LESSON / "tiny.html").read_text("utf-8")
    assert term.page("ada") == mine
    assert term.page("bob") != mine


def submission(folder: ClassFolder, secret: bytes | None) -> Path:
    place = hand_in(folder, "ada", solved(folder)).parent
    (place / "timestamp.txt").write_text("2026-03-01 12:00:00.5 UTC")
    if secret is not None:
        (place / SECRET).write_bytes(secret)
    return place


@pytest.mark.parametrize("secret", [None, b"../../etc/passwd", b"\xff" * 40, b"a" * 5000])
def test_only_a_secret_of_nbgraders_form_is_passed_on(tmp_path: Path, secret: bytes | None) -> None:
    folder = new(tmp_path)
    submission(folder, b"0" * 128)
    grade = ["grade", str(folder.root), "--quiet", "--sandbox", boxes().backend]
    assert main(grade) == 0
    page = folder.root / "feedback" / "ada" / LESSON
    assert (page / SECRET).read_text() == "0" * 128
    assert (page / "timestamp.txt").read_text().startswith("2026-03-01 12:00:00")

    (folder.root / "submitted" / "ada" / LESSON / SECRET).unlink()
    submission(folder, secret)
    assert main(grade) == 0
    assert not (page / SECRET).exists()


def test_a_secret_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = new(tmp_path)
    place = submission(folder, None)
    (tmp_path / "others").write_text("0" * 128)
    os.symlink(tmp_path / "others", place / SECRET)
    assert main(["grade", str(folder.root), "--quiet", "--sandbox", boxes().backend]) == 0
    assert not (folder.root / "feedback" / "ada" / LESSON / SECRET).exists()
