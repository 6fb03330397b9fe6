"""Grades for Canvas, Moodle and a spreadsheet, and feedback pages to hand back."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import pytest

from autograder.classroom.folder import ClassFolder
from autograder.cli.main import main
from autograder.lms import collecting
from autograder.lms.canvas import CANVAS_COLUMNS, canvas
from autograder.lms.export import ExportError, plain
from autograder.lms.final_table import final
from autograder.lms.moodle import MOODLE_COLUMNS, moodle
from autograder.lms.student_standings import NothingGraded, standings
from autograder.marking.hand_back import write_pages

from ..classes import LESSON, dated, give_by_hand, grade_here, new, pack, solved
from .plugin import BLACKBOARD, install

ROSTER = """id,first_name,last_name,email,status,lms_id
ada,Ada,Lovelace,ada@example.org,,501
bob,Bob,"=2+5",,,502
dan,Dan,Missing,,,504
zoe,Zoe,Gone,,withdrawn,503
"""
MOODLE = "{}_{}_assignsubmission_file_/tiny.ipynb"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    """Ada a day late with 2 points by hand, Bob in time, Dan missing, Zoe withdrawn, one guest."""
    import json

    top = tmp_path_factory.mktemp("export")
    folder = dated(new(top))
    (folder.root / "roster.csv").write_text(ROSTER)
    folder = ClassFolder.open(folder.root)
    who = [("Ada Lovelace", 11, 2), ("Bob =2+5", 12, 1), ("Zoe Gone", 13, 1), ("Guest", 14, 1)]
    for name, number, day in who:
        content = json.dumps(solved(folder, why="Because.")).encode()
        path = pack(
            top / f"{number}.zip", {MOODLE.format(name, number): content}, (2026, 3, day, 1, 0, 0)
        )
        collecting.carry_out(folder, collecting.plan(folder, [path]))
    grade_here(folder)
    give_by_hand(folder, "ada", 2.0)
    return folder


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.slow
def test_a_plain_table(graded: ClassFolder) -> None:
    made = plain(standings(graded))
    found = {row["student"]: row for row in rows(made.text)}
    assert set(found) == {"ada", "bob", "dan", "guest"}  # Zoe withdrew
    ada = found["ada"]
    assert (ada["points"], ada["penalty"], ada["total"], ada["max_points"]) == (
        "10",
        "1",
        "9",
        "11",
    )
    assert (found["bob"]["total"], found["bob"]["to_mark"]) == ("8", "yes")
    assert found["bob"]["last_name"] == "'=2+5"
    assert (found["dan"]["total"], found["dan"]["status"]) == ("0", "missing")
    assert "2 submissions are not marked" in made.notes[0]
    assert made.notes[1] == "not on the roster, and in this file: guest"
    by_final = final(graded, standings(graded))
    assert by_final.notes == made.notes and "guest" in by_final.text


TEMPLATE = """Student,ID,SIS User ID,SIS Login ID,Section,Tiny (77),Essay (78),Final Score
    Points Possible,,,,,10,20,(read only)
"Lovelace, Ada",501,,x,A,,15,50
"Somebody, Else",502,,,A,,16,51
"Gone, Zoe",503,,zoe,A,1,17,52
"Nobody, Known",900,,nobody,A,,18,53
"""


def test_canvas_by_template(graded: ClassFolder, tmp_path: Path) -> None:
    (tmp_path / "canvas.csv").write_text(TEMPLATE)
    made = canvas(graded, standings(graded), tmp_path / "canvas.csv")
    found = {row["ID"]: row for row in rows(made.text)}
    assert list(found["501"]) == [*CANVAS_COLUMNS, "Tiny (77)"]
    points = {number: row["Tiny (77)"] for number, row in found.items()}
    assert points == {"": "10", "501": "9", "502": "8", "503": "1", "900": ""}
    says = "\n".join(made.notes)
    assert "10 points in Canvas and 11 here" in says
    assert "dan is not in canvas.csv" in says and "guest is not in" in says
    (tmp_path / "canvas.csv").write_text(TEMPLATE.replace("Tiny", "Homework 1"))
    with pytest.raises(ExportError, match=r"\[export\]. It has Homework 1"):
        canvas(graded, standings(graded), tmp_path / "canvas.csv")
    settings = graded.root / "class.toml"
    before = settings.read_text()
    settings.write_text(before.replace("[export]", f'[export]\n"{LESSON}" = "Homework 1"'))
    again = ClassFolder.open(graded.root)
    made = canvas(again, standings(again), tmp_path / "canvas.csv")
    assert "Homework 1 (77)" in made.text
    settings.write_text(before)
    (tmp_path / "canvas.csv").write_text("Name,Points\nAda,1\n")
    with pytest.raises(ExportError, match="no gradebook of Canvas"):
        canvas(graded, standings(graded), tmp_path / "canvas.csv")


def test_a_plugin_fills_its_own(
    graded: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, BLACKBOARD, monkeypatch)
    made = tmp_path / "out.csv"
    main(["export", str(graded.root), "--to", "blackboard", "--output", str(made)])
    assert made.read_text().splitlines() == ["user;points", "ada;9", "bob;8", "dan;0", "guest;8"]


def test_canvas_without_a_template(graded: ClassFolder) -> None:
    made = canvas(graded, standings(graded), None)
    found = {row["SIS Login ID"]: row for row in rows(made.text)}
    assert found["ada"]["Student"] == "Lovelace, Ada" and found["ada"]["ID"] == "501"
    assert found["ada"]["Tiny"] == "9"
    assert found["bob"]["Student"].startswith("'=")
    assert found[""]["Tiny"] == "11"


WORKSHEET = """\ufeffIdentifier,Full name,Email address,Grade,Maximum Grade,\
"Last modified (grade)","Feedback comments"
Participant 11,Ada Lovelace,,,100.00,-,
Participant 12,Bob Other,,,100.00,-,
Participant 99,Nobody,,3.5,100.00,-,kept
"""


def test_moodle_by_template(graded: ClassFolder, tmp_path: Path) -> None:
    (tmp_path / "worksheet.csv").write_text(WORKSHEET, encoding="utf-8")
    made = moodle(graded, standings(graded), tmp_path / "worksheet.csv")
    found = {row["Identifier"]: row for row in rows(made.text)}
    grades = {number: row["Grade"] for number, row in found.items()}
    assert grades == {"Participant 11": "9", "Participant 12": "8", "Participant 99": "3.5"}
    says = found["Participant 11"]["Feedback comments"]
    assert says == "9 of 11 points, after 1 for handing in late"
    assert found["Participant 99"]["Feedback comments"] == "kept"
    assert any("maximum is 100.00 in Moodle and 11" in note for note in made.notes)
    (tmp_path / "worksheet.csv").write_text("Name,Grade\n")
    with pytest.raises(ExportError, match="no grading worksheet"):
        moodle(graded, standings(graded), tmp_path / "worksheet.csv")


def test_moodle_without_a_template(graded: ClassFolder) -> None:
    made = moodle(graded, standings(graded), None)
    found = {row["Full name"]: row for row in rows(made.text)}
    assert found["Ada Lovelace"]["Identifier"] == "Participant 11"
    assert list(found["Ada Lovelace"]) == list(MOODLE_COLUMNS)


def test_nothing_to_export(tmp_path: Path) -> None:
    folder = new(tmp_path)
    with pytest.raises(NothingGraded, match="autograder grade"):
        standings(folder)


def test_pages_again_and_a_zip_for_moodle(
    graded: ClassFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = graded.root / "feedback" / "ada" / LESSON / "tiny.html"
    page.unlink()
    packed = tmp_path / "back.zip"
    assert main(["export", str(graded.root), "--to", "feedback", "--output", str(packed)]) == 0
    assert "2 of 3" in page.read_text() and "costs 1 points" in page.read_text()
    with zipfile.ZipFile(packed) as opened:
        names = opened.namelist()
    assert f"Ada Lovelace_11_assignsubmission_file_/{LESSON}-feedback.html" in names
    assert '"total": 9.0' in (graded.root / "grades.json").read_text()
    assert main(["export", str(graded.root), "--to", "feedback", "--output", str(packed)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_submission_that_changed_keeps_its_page(graded: ClassFolder) -> None:
    path = graded.root / "submitted" / "guest" / LESSON / "tiny.ipynb"
    page = graded.root / "feedback" / "guest" / LESSON / "tiny.html"
    before, content = page.read_text(), path.read_bytes()
    path.write_bytes(b"{}")
    done = write_pages(graded)
    path.write_bytes(content)
    assert done.not_graded == [f"guest/{LESSON}"]
    assert page.read_text() == before


def test_the_command(graded: ClassFolder, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    command = ["export", str(graded.root), "--to", "csv", "--output", str(target)]
    assert main(command) == 1  # written answers are not marked
    assert target.read_text().startswith("student,")
    assert main([*command, "--assignment", "99-none"]) == 2
