"""A verdict that was kept counts as long as all that it was reached under is the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.classroom.hand_ins import task_in_class
from autograder.grade.engine import digest, sources, under
from autograder.grade.worker import OtherEngine, grade_task

from ..classes import LESSON, entries, hand_in, new, solved
from ..conftest import ROOT


def copied(tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(
        shutil.copytree(ROOT / "autograder", tmp_path / "copy" / "autograder", ignore=ignore)
    )


def test_a_line_of_whatever_grades_changes_what_it_is_reached_under(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    before = digest(sources(copy))
    assert before == digest(sources())
    for name in ("grade/grading.py", "box/inside.py", "text.py"):
        path = copy / name
        text = path.read_text()
        path.write_text(f"{text}# another line\n")
        assert digest(sources(copy)) != before
        path.write_text(text)
    (copy / "marking" / "feedback.py").write_text("")
    assert digest(sources(copy)) == before, "a page is no verdict"
    assert ROOT / "lesson_kit" / "checks.py" in sources()


@pytest.mark.slow
def test_a_mended_engine_grades_anew_and_the_same_one_does_not(tmp_path: Path) -> None:
    folder = new(tmp_path)
    hand_in(folder, "ada", solved(folder))
    copy = copied(tmp_path)
    command = [sys.executable, "-m", "autograder.cli.main", "grade", str(folder.root)]
    command += ["--sandbox", "none", "--workers", "1"]
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}

    def graded() -> tuple[bool, str]:
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True
        )
        said = done.stdout + done.stderr
        return "kept from an earlier run" in said, str(entries(folder)["ada"]["reached_under"])

    kept, first = graded()
    assert not kept and first.startswith("none, engine ")
    assert graded() == (True, first)
    path = copy / "grade" / "grading.py"
    path.write_text(path.read_text() + "# another line\n")
    kept, then = graded()
    assert not kept and then != first


def test_another_sandbox_or_library_is_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert under("none") != under("bubblewrap")
    here = under("none")
    under.cache_clear()
    monkeypatch.setattr("autograder.grade.engine.version", lambda name: "0.0")
    assert under("none") != here
    under.cache_clear()


def test_a_worker_of_another_version_refuses(tmp_path: Path) -> None:
    folder = new(tmp_path)
    hand_in(folder, "ada", solved(folder))
    task = task_in_class(folder, "ada", folder.bundle(LESSON), "none")
    with pytest.raises(OtherEngine, match="Install the same versions on both"):
        grade_task(replace(task, under="none, engine of last year"))
