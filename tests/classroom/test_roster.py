"""Who is in a class: the roster, where it comes from, and what grading says of it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import GradedSubmission
from autograder.classroom.late import Standing
from autograder.classroom.roster import WITHDRAWN, Member, Roster, RosterError, import_roster
from autograder.cli.main import main
from autograder.grade.result import GRADED, Result
from autograder.marking.totals import exceptions, totals
from autograder.tables import SpreadsheetError

from ..classes import LESSON, entries, grade_here, hand_in, new, solved
from ..submissions import boxes
from ..tiny import tiny_course

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Tiny (77)
    Points Possible,,,,,11
"Lovelace, Ada",501,u1,ada,A,
"O'Hara, Bob",502,u2,bob,A,
"Student, Test",599,,test,A,
"""
MOODLE = """\ufeffFirst name;Surname;ID number;Email address
Ada;Lovelace;12;ada@example.org
Émile;van 't Hooft;13;e@example.org
"""
WORKSHEET = """Identifier,Full name,Email address,Grade
Participant 1234567,Ada Lovelace,ada@example.org,
"""
SCOPE = """Name,SID,Email,Role
Ada Lovelace,12,ada@example.org,Student
Prof Who,99,who@example.org,Instructor
"""


@pytest.mark.parametrize(
    ("text", "members"),
    [
        (
            CANVAS,
            [
                Member("ada", "Ada", "Lovelace", lms_id="501"),
                Member("bob", "Bob", "O'Hara", lms_id="502"),
            ],
        ),
        (
            MOODLE,
            [
                Member("12", "Ada", "Lovelace", "ada@example.org"),
                Member("13", "Émile", "van 't Hooft", "e@example.org"),
            ],
        ),
        (
            WORKSHEET,
            [Member("ada@example.org", "Ada", "Lovelace", "ada@example.org", lms_id="1234567")],
        ),
        (SCOPE, [Member("12", "Ada", "Lovelace", "ada@example.org")]),
    ],
)
def test_class_lists_of_an_lms(tmp_path: Path, text: str, members: list[Member]) -> None:
    (tmp_path / "list.csv").write_text(text, encoding="utf-8")
    roster, says = import_roster(tmp_path / "list.csv")
    assert list(roster.members) == members
    assert any(line.startswith("id from") for line in says)
    # What is written is read as the same.
    (tmp_path / "roster.csv").write_text(roster.as_csv(), encoding="utf-8")
    assert Roster.read(tmp_path / "roster.csv") == roster


def test_columns_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("Matrikel,Wer\n7,Ada Lovelace\n", encoding="utf-8")
    with pytest.raises(RosterError, match="--column id=NAME"):
        import_roster(tmp_path / "list.csv")
    roster, _ = import_roster(tmp_path / "list.csv", {"id": "Matrikel", "full_name": "Wer"})
    assert roster.members == (Member("7", "Ada", "Lovelace"),)
    for wrong in ({"id": "Nummer"}, {"matrikel": "Matrikel"}):
        with pytest.raises(RosterError, match="no such column"):
            import_roster(tmp_path / "list.csv", wrong)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,first_name\nada,A\nada,B\n", "stands there twice"),
        ("id,first_name\n../x,A\n", "cannot be an id"),
        ("id,first_name\n,Ada\n", "has no id"),
        ("id,status\nada,left\n", "status is 'left'"),
        ("name\nada\n", "no column id"),
    ],
)
def test_mistakes_in_a_roster_are_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "roster.csv").write_text(text)
    with pytest.raises(RosterError, match=says):
        Roster.read(tmp_path / "roster.csv")


def test_a_roster_that_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text("")
    with pytest.raises(SpreadsheetError, match="is empty"):
        Roster.read(path)
    path.write_bytes("id,name\nada,Ångström\n".encode("latin-1"))
    with pytest.raises(SpreadsheetError, match="CSV UTF-8"):
        Roster.read(path)


def test_no_cell_of_a_roster_is_a_formula() -> None:
    member = Member("ada", "=HYPERLINK(1)", "+1", "@x", lms_id="-1")
    cells = next(iter(csv.reader([Roster((member,)).as_csv().splitlines()[1]])))
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.slow
def test_grading_a_class_with_a_roster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = new(tmp_path)
    assert (folder.root / "roster.csv").read_text().startswith("id,first_name")
    assert not folder.roster
    (folder.root / "roster.csv").write_text(
        "id,first_name,last_name,email,status\nada,Ada,Lovelace,ada@example.org,\n"
        "bob,Bob,B,,\nzoe,Zoe,Z,,withdrawn\nyan,Yan,Y,,withdrawn\n"
    )
    for student in ("ada", "zoe", "mallory"):
        hand_in(folder, student, solved(folder))
    assert main(["grade", str(folder.root), "--quiet", "--sandbox", boxes().backend]) == 0
    out = capsys.readouterr().out
    assert "graded, but not on the roster: 1: mallory" in out
    assert "graded, but withdrawn: 1: zoe" in out
    assert "handed in no notebook: 1: bob" in out

    found = entries(folder)
    assert set(found) == {"ada", "bob", "zoe", "mallory"}
    assert (found["bob"]["status"], found["bob"]["score"]) == ("missing", 0.0)
    assert found["bob"]["reason"] == "No notebook was handed in."
    assert found["mallory"]["score"] == found["ada"]["score"] == 8.0
    assert found["mallory"]["flags"] == ["not on the roster"]
    with Gradebook(folder.db_url) as gradebook:
        ada = gradebook.find_student("ada")
        assert (ada.first_name, ada.email) == ("Ada", "ada@example.org")
        submitted = gradebook.assignment_submissions(LESSON)
        assert {one.student.id for one in submitted} == {"ada", "zoe", "mallory"}

    # Bob leaves the roster, Yan comes back: who is missing is looked at again.
    text = (folder.root / "roster.csv").read_text()
    text = text.replace("bob,Bob,B,,\n", "").replace("yan,Yan,Y,,withdrawn", "yan,Yan,Y,,")
    (folder.root / "roster.csv").write_text(text)
    grade_here(ClassFolder.open(folder.root))
    assert set(entries(folder)) == {"ada", "yan", "zoe", "mallory"}


def test_nobody_is_missing_before_the_due_date(tmp_path: Path) -> None:
    folder = new(tmp_path)
    (folder.root / "roster.csv").write_text("id\nada\nbob\n")
    settings = folder.root / "class.toml"
    text = settings.read_text()
    hand_in(folder, "ada", b"")
    for date, missing in (("2999-01-01", set()), ("2020-01-01", {"bob"})):
        settings.write_text(text.replace("[due]", f'[due]\n"{LESSON}" = {date}T00:00:00Z'))
        result = grade_here(ClassFolder.open(folder.root))
        assert {one.student for one in result.submissions} == {"ada"} | missing


def test_new_class_takes_a_class_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_course(tmp_path / "course")
    (tmp_path / "list.csv").write_text(CANVAS)
    command = ["new-class", str(tmp_path / "class"), "--course", str(tmp_path / "course")]
    assert main([*command, "--roster", str(tmp_path / "none.csv")]) == 2
    assert main([*command, "--roster", str(tmp_path / "list.csv"), "--column", "id"]) == 2
    assert not (tmp_path / "class").exists()
    capsys.readouterr()
    assert main([*command, "--roster", str(tmp_path / "list.csv")]) == 0
    assert "2 students" in capsys.readouterr().out
    roster = ClassFolder.open(tmp_path / "class").roster
    assert [one.id for one in roster.members] == ["ada", "bob"]


def test_the_totals_count_what_a_person_will_be_shown() -> None:
    """Marking leaves out who withdrew; who came within the grace is not called late."""
    result = Result(LESSON, "tiny", GRADED)
    waits = Standing(5, manual=0, penalty=0, total=1, out_of=2, needs_manual_grade=True)
    both = [
        GradedSubmission("ada", result, waits),
        GradedSubmission("zoe", result, waits, (WITHDRAWN,)),
    ]
    assert totals(both) == [f"{LESSON}: 2 graded, median 1 of 2, 1 with answers to mark"]
    assert "late: 2: ada, zoe" in exceptions(both, grace_minutes=4)
    assert exceptions(both, grace_minutes=5) == ["graded, but withdrawn: 1: zoe"]
