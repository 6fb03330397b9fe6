"""nbgrader's own commands and the Formgrader's buttons come to the verdicts of this engine."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions

from autograder.build.stubs import ClearSolutionsAndAnswers
from autograder.classroom.folder import ClassFolder
from autograder.classroom.late import write_timestamp

from ..classes import (
    LESSON,
    dated,
    entries,
    give_by_hand,
    grade_here,
    hand_in,
    new,
    scores_in_gradebook,
    solved,
)
from ..nbgrader_buttons import nbgrader, press
from ..submissions import boxes

pytestmark = pytest.mark.slow

#: Costs all points in a kernel, and none in a box.
NO_KERNEL = (
    "import sys\nif type(get_ipython()).__name__ == 'ZMQInteractiveShell':\n    raise SystemExit\n"
)


def tiny_class(tmp_path: Path) -> ClassFolder:
    """A class in which grading is as confined as this machine allows."""
    folder = new(tmp_path)
    with (folder.root / "nbgrader_config.py").open("a") as config:
        config.write(f'c.EngineExporter.sandbox = "{boxes().backend}"\n')
    return folder


def files(folder: ClassFolder, student: str) -> tuple[Any, str]:
    """The autograded notebook, which nbgrader indents, and the feedback page."""
    autograded = folder.root / "autograded" / student / LESSON / "tiny.ipynb"
    page = folder.root / "feedback" / student / LESSON / "tiny.html"
    return nbformat.read(autograded, as_version=4), page.read_text()


def without_seconds(folder: ClassFolder) -> dict[str, dict[str, Any]]:
    return {who: {**entry, "seconds": 0} for who, entry in entries(folder).items()}


def cheating(folder: ClassFolder) -> Any:
    """Full points in nbgrader as it comes: no test cell is executed."""
    notebook = solved(folder, double="def double(x):\n    return x\n")
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id", "").startswith("test_"):
            cell.metadata["tags"] = ["skip-execution"]
    return notebook


def hand_in_a_class(folder: ClassFolder) -> None:
    right = folder.bundle(LESSON).exercises["double"]
    hand_in(folder, "ada", solved(folder, why="Because <b>it</b> is.", double=NO_KERNEL + right))
    hand_in(folder, "bob", solved(folder, double="def double(x):\n    return x + x\n"))
    hand_in(folder, "cleo", cheating(folder))
    hand_in(folder, "dan", b"{ broken")
    hand_in(folder, "eve", b"notes", name="notes.txt")
    hand_in(folder, "finn", solved(folder), name="my tiny.ipynb")
    stolen = hand_in(folder, "gus", solved(folder)).with_name("stolen.ipynb.txt")
    stolen.symlink_to(folder.root / "source" / LESSON / "tiny.ipynb")
    os.mkfifo(hand_in(folder, "hal", solved(folder)).with_name("pipe"))
    hand_in(folder, "ida", solved(folder)).with_name("timestamp.txt").write_bytes(b"\xff soon")
    hand_in(folder, "jan", solved(folder)).with_name("lesson_kit").write_text("no folder")
    a_day_late(hand_in(folder, "kim", solved(folder)))


def a_day_late(path: Path) -> None:
    write_timestamp(path.parent, datetime(2026, 3, 2, 12, 5, tzinfo=UTC))


def test_nbgrader_autograde_is_autograder_grade(tmp_path: Path) -> None:
    ours = dated(tiny_class(tmp_path / "ours"))
    theirs = dated(tiny_class(tmp_path / "theirs"))
    assert ours.seed == theirs.seed, "new classes of the tests are copies of one"
    for folder in (ours, theirs):
        hand_in_a_class(folder)
    grade_here(ours)

    # One student, then the class: a broken notebook stops nobody.
    ran = nbgrader(theirs, "autograde", LESSON, "--student", "bob")
    assert ran.returncode == 0, ran.stderr
    assert scores_in_gradebook(theirs) == {"bob": 7.0}
    assert set(entries(theirs)) == {"bob"}
    ran = nbgrader(theirs, "autograde", LESSON)
    assert ran.returncode == 0, ran.stderr

    scores = {"ada": 8.0, "bob": 7.0, "cleo": 5.0, "dan": 0.0, "eve": 0.0, "finn": 8.0}
    scores |= dict.fromkeys(("gus", "hal", "ida", "jan", "kim"), 8.0)
    assert scores_in_gradebook(theirs) == scores
    assert scores_in_gradebook(ours) == scores
    assert without_seconds(theirs) == without_seconds(ours)
    assert {one["total"] for one in (entries(theirs)["kim"], entries(ours)["kim"])} == {6.4}
    with Gradebook(theirs.db_url) as gradebook:
        assert gradebook.find_submission(LESSON, "kim").late_submission_penalty == 1.6
    assert (theirs.root / "grades.csv").read_text() == (ours.root / "grades.csv").read_text()
    for student in scores:
        assert files(theirs, student) == files(ours, student), student
    # nbgrader copies what else was handed in, but follows no link.
    copied = theirs.root / "autograded"
    assert (copied / "eve" / LESSON / "notes.txt").read_text() == "notes"
    assert not (copied / "gus" / LESSON / "stolen.ipynb.txt").exists()


def test_a_resubmission_and_what_a_person_gave(tmp_path: Path) -> None:
    folder = tiny_class(tmp_path)
    stamp = hand_in(folder, "ada", solved(folder, why="Because.")).with_name("timestamp.txt")
    stamp.write_text("2026-03-01 10:00:00 UTC")
    assert nbgrader(folder, "autograde", LESSON).returncode == 0
    give_by_hand(folder, "ada", 2.5)
    assert scores_in_gradebook(folder) == {"ada": 10.5}
    with Gradebook(folder.db_url) as gradebook:
        assert gradebook.find_submission(LESSON, "ada").timestamp.month == 3

    # The Formgrader's button always says --force, for which nbgrader removes the notebook.
    less = solved(folder, why="Because.", quadruple="def quadruple(x):\n    return x\n")
    hand_in(folder, "ada", less)
    answer = press(folder, "autograde", "ada")
    assert answer["success"], answer
    assert scores_in_gradebook(folder) == {"ada": 6.5}
    assert "2.5 of 3" in files(folder, "ada")[1]

    # Handed in later: nbgrader grades it again by itself. Another answer has to be read again.
    hand_in(folder, "ada", solved(folder, why="No, because."))
    assert nbgrader(folder, "autograde", LESSON).returncode == 0
    assert scores_in_gradebook(folder) == {"ada": 6.5}, "not later: nbgrader leaves it alone"
    stamp.write_text("2026-04-01 10:00:00 UTC")
    assert nbgrader(folder, "autograde", LESSON).returncode == 0
    assert scores_in_gradebook(folder) == {"ada": 8.0}
    assert entries(folder)["ada"]["needs_manual_grade"] is True

    hand_in(folder, "ada", b"")
    assert press(folder, "autograde", "ada")["success"]
    assert scores_in_gradebook(folder) == {"ada": 0.0}
    nbformat.validate(files(folder, "ada")[0])


def test_generate_feedback_writes_our_pages(tmp_path: Path) -> None:
    folder = dated(tiny_class(tmp_path))
    hand_in(folder, "ada", solved(folder, why="Because."))
    a_day_late(hand_in(folder, "bob", solved(folder, double="def double(x):\n    return x + x\n")))
    grade_here(folder)
    before = {student: files(folder, student)[1] for student in ("ada", "bob")}
    give_by_hand(folder, "ada", 2.5)
    (folder.root / "feedback" / "bob" / LESSON / "tiny.html").unlink()
    hand_in(folder, "bob", b"changed since")
    ran = nbgrader(folder, "generate_feedback", LESSON, "--student", "bob", "--force")
    assert ran.returncode == 1
    assert "autograder grade" in ran.stderr
    hand_in(folder, "bob", solved(folder, double="def double(x):\n    return x + x\n"))
    assert nbgrader(folder, "generate_feedback", LESSON, "--force").returncode == 0
    pages = {student: files(folder, student)[1] for student in ("ada", "bob")}
    assert pages["bob"] == before["bob"]
    assert "Handed in 1 d 5 min late" in pages["bob"]
    assert "2.5 of 3" in pages["ada"]

    # Handed in again and not graded yet: the page is of what was graded.
    hand_in(folder, "ada", b"")
    assert press(folder, "generate_feedback", "ada")["success"]
    assert files(folder, "ada")[1] == pages["ada"]
    for page in pages.values():
        assert "-3.0" not in page and "HIDDEN TESTS" not in page and "<script" not in page


def test_without_a_sandbox_nothing_is_graded_or_removed(tmp_path: Path) -> None:
    folder = tiny_class(tmp_path)
    hand_in(folder, "ada", solved(folder))
    grade_here(folder)
    before = files(folder, "ada")
    config = folder.root / "nbgrader_config.py"
    text = config.read_text()
    config.write_text(
        "import autograder.box.sandbox as sandbox\n"
        'broken = sandbox.Protection("a wall", False, "build one")\n'
        f"sandbox.examine = lambda: [broken]\n{text}"
        'c.EngineExporter.sandbox = "auto"\n'
    )
    ran = nbgrader(folder, "autograde", LESSON, "--force")
    assert ran.returncode == 1
    assert "cannot be confined" in ran.stderr and "c.EngineExporter.sandbox" in ran.stderr
    assert files(folder, "ada") == before

    # Nor does a mistake in class.toml hand students' code over to nbgrader's kernel.
    config.write_text(text)
    (folder.root / "class.toml").write_text("seed =")
    ran = nbgrader(folder, "autograde", LESSON, "--force")
    assert ran.returncode == 1
    assert "is not valid TOML" in ran.stderr
    assert files(folder, "ada") == before


def test_the_release_is_made_as_by_new_class(tmp_path: Path) -> None:
    folder = tiny_class(tmp_path)
    path = folder.root / "release" / LESSON / "tiny.ipynb"
    before = path.read_text()
    assert nbgrader(folder, "generate_assignment", LESSON, "--force").returncode == 0
    assert path.read_text() == before
    names = [
        f"{ClearSolutionsAndAnswers.__module__}.{ClearSolutionsAndAnswers.__name__}"
        if step is ClearSolutions
        else f"nbgrader.preprocessors.{step.__name__}"
        for step in GenerateAssignment.preprocessors.default_args[0]
    ]
    listed = (folder.root / "nbgrader_config.py").read_text()
    listed = listed.split("c.GenerateAssignment.preprocessors = [")[1].split("]")[0]
    assert [line.strip(' ",') for line in listed.strip().splitlines()] == names
