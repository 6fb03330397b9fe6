"""A class from new-class to gradebook, csv, json and pages; nobody disturbs anybody."""

from __future__ import annotations

import csv
import errno
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook
from sqlalchemy import text

from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import enrol, open_gradebook
from autograder.classroom.grades_file import GradesError
from autograder.classroom.late import TO_BEGIN_WITH
from autograder.classroom.new_class import new_class
from autograder.classroom.roster import Member, Roster
from autograder.cli.main import main
from autograder.course import choices_alone
from autograder.course.bundle import Bundle
from autograder.grade.limits import Limits
from autograder.grade.result import Result
from autograder.grade.task import make_task
from autograder.marking.autograded import autograded_notebook
from autograder.marking.grade_class import ClassResult
from autograder.notebooks import grade_id
from lesson_kit import short_answers
from lesson_kit.failures import CheckFailed
from lesson_kit.known_mistakes import KNOWN_MISTAKES
from lesson_kit.setting import DATA_FILE, as_grader
from lesson_kit.short_answers import check_answer

from ..classes import (
    LESSON,
    entries,
    give_by_hand,
    grade_here,
    hand_in,
    new,
    quiet,
    scores_in_gradebook,
    solved,
)
from ..submissions import boxes
from ..tiny import tiny_course

SCHEMA = {
    "student": str,
    "assignment": str,
    "notebook": str,
    "status": str,
    "reason": str,
    "score": float,
    "max_score": float,
    "needs_manual_grade": bool,
    "tests": list,
    "flags": list,
    "seconds": float,
    "reached_under": str,
    "late_minutes": type(None),
    "penalty": float,
    "total": float,
    "out_of": float,
    "to_mark": float,
}
TEST_SCHEMA = {
    "grade_id": str,
    "exercise": str,
    "points": float,
    "max_points": float,
    "outcome": str,
    "message": str,
    "diagnosis": str,
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[ClassFolder, ClassResult]:
    """A class with a right, a partly right, an untouched, a broken and a missing notebook."""
    folder = new(tmp_path_factory.mktemp("graded"))
    hand_in(folder, "ada", solved(folder, why="Because <b>it</b> is."))
    hand_in(folder, "bob", solved(folder, double="def double(x):\n    return x + x\n"))
    released = folder.root / "release" / LESSON / "tiny.ipynb"
    hand_in(folder, "cleo", released.read_bytes())
    hand_in(folder, "dan", b"{ broken")
    hand_in(folder, "eve", b"notes", name="notes.txt")
    hand_in(folder, "finn", solved(folder), name="my tiny.ipynb")
    evil = hand_in(folder, "gus", b"x")
    evil.unlink()
    evil.symlink_to(folder.root / "source" / LESSON / "tiny.ipynb")
    (folder.root / "submitted" / "ada" / "99-unknown").mkdir()
    return folder, grade_here(folder)


@pytest.mark.slow
def test_everybody_gets_a_verdict(graded: tuple[ClassFolder, ClassResult]) -> None:
    folder, result = graded
    status = {one.student: (one.result.status, one.result.score) for one in result.submissions}
    assert status == {
        "ada": ("graded", 8.0),
        "bob": ("graded", 7.0),
        "cleo": ("graded", 0.0),
        "dan": ("unreadable", 0.0),
        "eve": ("missing", 0.0),
        "finn": ("graded", 8.0),
        "gus": ("unreadable", 0.0),
    }
    assert result.strangers == ["ada/99-unknown"]
    said = {one.student: one.result.reason for one in result.submissions}
    assert said["eve"] == (
        "No notebook was handed in, but a file of another kind: notes.txt. Hand in tiny.ipynb."
    )
    assert scores_in_gradebook(folder) == {name: score for name, (_, score) in status.items()}


def test_grades_json_has_the_published_schema(graded: tuple[ClassFolder, ClassResult]) -> None:
    folder, _ = graded
    tree = json.loads((folder.root / "grades.json").read_text())
    assert set(tree) == {"engine", "sandbox", "course", "submissions"}
    for entry in tree["submissions"]:
        assert {key: type(value) for key, value in entry.items()} == SCHEMA
        for test in entry["tests"]:
            assert {key: type(value) for key, value in test.items()} == TEST_SCHEMA
        assert entry["max_score"] == 8.0
        assert entry["score"] == sum(test["points"] for test in entry["tests"])
    assert entries(folder)["ada"]["needs_manual_grade"] is True
    assert "my tiny.ipynb" in entries(folder)["finn"]["flags"][0]


def test_grades_csv_says_the_same(graded: tuple[ClassFolder, ClassResult]) -> None:
    folder, _ = graded
    with (folder.root / "grades.csv").open() as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    for student, entry in entries(folder).items():
        assert float(rows[student]["score"]) == entry["score"]
        assert rows[student]["status"] == entry["status"]


def test_feedback_says_what_went_wrong_and_hides_what_is_hidden(
    graded: tuple[ClassFolder, ClassResult],
) -> None:
    folder, _ = graded
    pages = {
        one: (folder.root / "feedback" / one / LESSON / "tiny.html").read_text()
        for one in ("ada", "bob", "dan")
    }
    assert "A negative x is to be refused." in pages["bob"]
    assert "Hidden checks of double: negative numbers." in pages["bob"]
    assert "not a notebook" in pages["dan"]
    for page in pages.values():
        assert "-3.0" not in page and "HIDDEN TESTS" not in page
        assert "<script" not in page and "<b>" not in page
        assert "http" not in page.replace("http-equiv", "")
    assert "to be graded by a person" in pages["ada"]


def test_the_autograded_notebook_is_what_the_formgrader_expects(
    graded: tuple[ClassFolder, ClassResult],
) -> None:
    folder, _ = graded
    for student in ("ada", "bob", "cleo", "dan", "finn"):
        path = folder.root / "autograded" / student / LESSON / "tiny.ipynb"
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        names = [grade_id(cell) for cell in notebook.cells if grade_id(cell)]
        source = folder.bundle(LESSON).notebook
        assert sorted(names) == sorted(grade_id(c) for c in source.cells if grade_id(c))
        tests = {grade_id(cell): cell for cell in notebook.cells}
        assert "BEGIN HIDDEN TESTS" in tests["test_double_errors"].source
    assert any("Marking scheme" in cell.source for cell in notebook.cells)


def test_the_gradebook_is_whole(graded: tuple[ClassFolder, ClassResult]) -> None:
    folder, _ = graded
    with Gradebook(folder.db_url) as gradebook:
        submission = gradebook.find_submission(LESSON, "ada")
        grades = {grade.name: grade for grade in submission.notebooks[0].grades}
        assert submission.max_score == 11.0
        assert grades["written_why"].needs_manual_grade
        assert grades["written_why"].auto_score is None
        assert not grades["test_double"].needs_manual_grade
        untouched = gradebook.find_submission(LESSON, "cleo")
        assert not untouched.needs_manual_grade
        comments = {
            c.name: c.comment
            for c in gradebook.find_submission(LESSON, "bob").notebooks[0].comments
        }
        assert "A negative x is to be refused." in comments["double"]


@pytest.mark.slow
def test_a_later_grading_replaces_an_earlier_one(tmp_path: Path) -> None:
    folder = new(tmp_path)
    hand_in(folder, "ada", solved(folder, why="Because."))
    hand_in(folder, "bob", solved(folder))
    grade_here(folder)
    give_by_hand(folder, "ada", 2.5)
    assert scores_in_gradebook(folder) == {"ada": 10.5, "bob": 8.0}

    # The same answer again, with less code: the person's points stay, the others go.
    less = solved(folder, why="Because.", quadruple="def quadruple(x):\n    return x\n")
    hand_in(folder, "ada", less)
    grade_here(folder, students=["ada"])
    assert scores_in_gradebook(folder) == {"ada": 6.5, "bob": 8.0}
    page = (folder.root / "feedback" / "ada" / LESSON / "tiny.html").read_text()
    assert "2.5 of 3" in page
    assert set(entries(folder)) == {"ada", "bob"}

    # Another answer: it has to be read again. Then a file that is nothing.
    hand_in(folder, "ada", solved(folder, why="No, because."))
    grade_here(folder, students=["ada"])
    assert scores_in_gradebook(folder)["ada"] == 8.0
    assert entries(folder)["ada"]["needs_manual_grade"] is True
    hand_in(folder, "ada", b"")
    grade_here(folder, students=["ada"])
    assert scores_in_gradebook(folder) == {"ada": 0.0, "bob": 8.0}


def test_grades_that_cannot_be_read_are_not_written_over(tmp_path: Path) -> None:
    folder = new(tmp_path)
    (folder.root / "grades.json").write_text("{")
    hand_in(folder, "ada", b"")
    with pytest.raises(GradesError, match="move it away"):
        grade_here(folder)


def test_a_new_class_says_the_limits_and_the_policy_that_hold(tmp_path: Path) -> None:
    folder = new(tmp_path)
    settings = tomllib.loads((folder.root / "class.toml").read_text())
    assert settings["limits"] == vars(Limits())
    assert settings["late"] == {"per_day": 0, "grace_minutes": 15}
    assert folder.late_policy == TO_BEGIN_WITH


def test_an_assignment_may_have_limits_of_its_own(tmp_path: Path) -> None:
    folder = new(tmp_path)
    path = folder.root / "class.toml"
    path.write_text(path.read_text() + f'\n[limits."{LESSON}"]\ntest = 1.5\n')
    limits = ClassFolder.open(folder.root).limits(LESSON)
    assert (limits.cell, limits.test, limits.notebook) == (30.0, 1.5, 240.0)


def test_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = new(tmp_path)
    hand_in(folder, "ada", b"")
    assert main(["grade", str(folder.root), "--quiet", "--sandbox", boxes().backend]) == 0
    assert "unreadable" in capsys.readouterr().out
    (folder.root / "submitted" / "ada" / "03-typo").mkdir()
    assert main(["grade", str(folder.root), "--quiet", "--sandbox", boxes().backend]) == 1
    assert "03-typo is no student's assignment" in capsys.readouterr().err
    assert main(["grade", str(tmp_path / "nowhere")]) == 2
    assert "autograder new-class" in capsys.readouterr().err
    with pytest.raises(SystemExit) as usage:
        main(["grade", str(folder.root), "--workers", "0"])
    assert usage.value.code == 2


@pytest.mark.slow
def test_a_gradebook_that_is_gone_is_made_anew_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = new(tmp_path)
    hand_in(folder, "ada", solved(folder))
    (folder.root / "gradebook.db").unlink()
    assert main(["grade", str(folder.root), "--quiet"]) == 0
    said = capsys.readouterr().err
    assert "gradebook.db was missing and is made anew" in said and "marking.jsonl" in said
    assert scores_in_gradebook(folder) == {"ada": 8.0}


@pytest.mark.slow
def test_the_command_works_without_an_activated_environment(tmp_path: Path) -> None:
    """nbgrader calls alembic by name; our commands find it beside the interpreter."""
    tiny_course(tmp_path)
    command = [sys.executable, "-m", "autograder.cli.main", "new-class", "class", "--course", "."]
    environment = {**os.environ, "PATH": os.defpath}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    gradebook = tmp_path / "class" / "gradebook.db"
    assert gradebook.exists()

    gradebook.unlink()  # one that nbgrader has to make by itself
    code = (
        "import sys\nfrom autograder.classroom.gradebook import open_gradebook\n"
        "with open_gradebook(sys.argv[1]):\n    pass\n"
    )
    command = [sys.executable, "-c", code, f"sqlite:///{gradebook}"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert gradebook.exists()


def test_the_process_that_grades_imports_no_torch(tmp_path: Path) -> None:
    """Its workers do; it would cost every run seconds."""
    folder = new(tmp_path)
    code = (
        "import sys\n"
        "from autograder.cli.main import main\n"
        "main(['grade', sys.argv[1], '--sandbox', 'none'])\n"
        "print(sorted({'torch', 'numpy', 'matplotlib'} & set(sys.modules)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(folder.root)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_gradebook_finds_a_submission_without_reading_the_class(tmp_path: Path) -> None:
    folder = new(tmp_path)
    with open_gradebook(folder.db_url) as gradebook, gradebook.engine.connect() as connection:
        for table, column in (
            ("grade", "notebook_id"),
            ("comment", "notebook_id"),
            ("submitted_notebook", "assignment_id"),
        ):
            asked = f"EXPLAIN QUERY PLAN SELECT * FROM {table} WHERE {column} = 'x'"
            (row,) = connection.execute(text(asked))
            assert "USING INDEX autograder_" in row[-1]


@pytest.mark.slow
def test_what_goes_wrong_with_one_submission_is_named_and_the_others_are_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is read, kept or published: whatever it is."""
    folder = new(tmp_path)
    for who in ("ada", "bob", "cleo", "dan", "zoe"):
        hand_in(folder, who, solved(folder, why=f"Because {who} says so."))
    (folder.root / "feedback").mkdir()
    (folder.root / "feedback" / "bob").write_text("no folder\n")

    def broken(where: Path, *more: Any) -> Any:
        if where.parent.name == "cleo":
            raise RuntimeError("not to be read")
        return make_task(where, *more)

    def notebook(graded: Result, bundle: Bundle) -> Any:
        if any(cell.source == "Because dan says so." for cell in graded.cells):
            raise RecursionError("too deep")
        return autograded_notebook(graded, bundle)

    monkeypatch.setattr("autograder.marking.grade_class.make_task", broken)
    monkeypatch.setattr("autograder.marking.grade_class.autograded_notebook", notebook)
    result = grade_here(folder)
    named = {one.student: one.result.reason.splitlines()[-1] for one in result.not_judged}
    assert set(named) == {"bob", "cleo", "dan"}
    assert "feedback/bob" in named["bob"]
    assert (named["cleo"], named["dan"]) == (
        "RuntimeError: not to be read",
        "RecursionError: too deep",
    )
    assert {who: one["score"] for who, one in entries(folder).items()} == {"ada": 8.0, "zoe": 8.0}
    for who in ("ada", "zoe"):
        assert (folder.root / "feedback" / who / LESSON / "tiny.html").exists()
        assert scores_in_gradebook(folder)[who] == 8.0


@pytest.mark.slow
def test_a_full_disk_ends_grading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is nobody's fault, and the same command goes on when there is room."""
    folder = new(tmp_path)
    hand_in(folder, "ada", solved(folder))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("autograder.marking.grade_class.write_whole", full)
    with pytest.raises(OSError, match="No space"):
        grade_here(folder)


def test_a_release_holds_all_that_its_notebook_needs(tmp_path: Path) -> None:
    """The grader's catalogue stays behind, and nothing else but that."""
    folder = new(tmp_path)
    source, release = (
        {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()}
        for top in (folder.root / "source" / LESSON, folder.root / "release" / LESSON)
    )
    assert source - release == {"catalogue.json"}
    assert {DATA_FILE, "lesson_kit/checks.py"} <= release
    assert set(folder.bundle(LESSON).companions) == {DATA_FILE}
    assert b"known_mistakes" not in folder.bundle(LESSON).companions[DATA_FILE]
    assert KNOWN_MISTAKES in json.loads((folder.root / "release" / LESSON / DATA_FILE).read_text())


@pytest.mark.slow
def test_short_answers_may_be_told_when_graded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that is handed out or put into a box tells the right one; its points stay."""
    course = tiny_course(tmp_path / "course")
    folder = new_class(course, tmp_path / "class", say=quiet, short_answers="when_graded")
    assert folder.short_answers == "when_graded"
    handed_out = json.loads((folder.root / "release" / LESSON / DATA_FILE).read_text())
    assert choices_alone.ANSWERS == short_answers.ANSWERS
    assert choices_alone.KNOWN_MISTAKES == KNOWN_MISTAKES
    alone = {"answer_size": {"choices": ["a", "b"]}}
    assert handed_out["answers"] == alone
    bundle = folder.bundle(LESSON)
    assert json.loads(bundle.companions[DATA_FILE]) == {"answers": alone}
    assert "replies" in json.loads(bundle.answers)["answer_size"]

    with as_grader(2017, json.dumps(handed_out["answers"])):
        for choice in ("a", "b", "(b)", "B.", "a)"):
            check_answer("answer_size", choice)
            assert "noted" in capsys.readouterr().out
        with pytest.raises(CheckFailed, match="none of the choices"):
            check_answer("answer_size", "c")

    tries = """import json
known = json.load(open("lesson_data.json"))["answers"]["answer_size"]
answer_size = "b" if "replies" in known else "a"
"""
    hand_in(folder, "ada", solved(folder))
    hand_in(folder, "bob", solved(folder, answer_size=tries))
    grade_here(folder)
    assert {who: one["score"] for who, one in entries(folder).items()} == {"ada": 8.0, "bob": 7.0}


def test_a_name_that_a_student_chose_in_the_lms_is_no_script_in_the_formgrader(
    tmp_path: Path,
) -> None:
    """nbgrader writes names into its pages as they are."""
    folder = new(tmp_path)
    evil = Member("evil", "<img src=x onerror=alert(1)>", 'O"<script>', "e@x.example")
    with open_gradebook(folder.db_url) as gradebook:
        enrol(gradebook, Roster((evil,)))
        enrol(gradebook, Roster((evil,)))
        student = gradebook.find_student("evil")
        assert not set('<>"') & set(student.first_name + student.last_name)
        assert "img src=x" in student.first_name
