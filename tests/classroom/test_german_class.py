"""A class of 40 from a German Moodle, from its zip to its worksheet: every number is the same."""

from __future__ import annotations

import base64
import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook
from PIL import Image

from autograder.classroom.folder import ClassFolder
from autograder.classroom.groups import GROUPS_CSV
from autograder.classroom.roster import import_roster
from autograder.cli.main import main
from autograder.marking.by_question import Marking
from autograder.notebooks import grade_id
from autograder.tables import read_table

from ..classes import LESSON, entries, new, solved

pytestmark = pytest.mark.slow

#: Points that the machine gives: all of 8, or without `quadruple`.
RIGHT, WRONG = 8.0, 4.0
PEOPLE = [(f"m{number}", f"Vor{number}", f"Groß-Nach{number}") for number in range(40)]
TEAMS = {"Team Rot": range(4), "Team Blau": range(4, 7), "Team Grün": range(7, 12)}
DUE = (2026, 10, 24, 23, 58, 0)
#: The clocks are set back in between: 24 hours and 30 minutes, and not yet a second day.
LATE = (2026, 10, 25, 23, 28, 0)
TWO_DAYS = (2026, 10, 26, 8, 0, 0)


def picture() -> str:
    made = io.BytesIO()
    Image.new("RGB", (4, 4), (0, 90, 160)).save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


def the_notebook(folder: ClassFolder, number: int) -> bytes:
    """What they hand in: one wrong, one CRLF, one with a BOM, one with a picture."""
    wrong = {"quadruple": "def quadruple(x):\n    return x\n"} if number % 3 == 0 else {}
    why = "![b](attachment:b.png)" if number == 20 else f"Weil {number}."
    notebook: Any = solved(folder, why=why, **wrong)
    for cell in notebook.cells:
        if number == 20 and grade_id(cell) == "written_why":
            cell["attachments"] = {"b.png": {"image/png": picture()}}
        if number == 21:
            cell.source = cell.source.replace("\n", "\r\n")
    data = json.dumps(notebook).encode()
    return b"\xef\xbb\xbf" + data if number == 22 else data


def when(number: int) -> tuple[int, ...]:
    return {30: LATE, 31: TWO_DAYS, 8: LATE}.get(number, DUE)


def zipped(path: Path, folder: ClassFolder) -> Path:
    """As Moodle packs them: a folder a team, and one for each who is alone; the last has none."""
    grouped = {number: team for team, numbers in TEAMS.items() for number in numbers}
    with zipfile.ZipFile(path, "w") as packed:
        for number, (_, first, last) in enumerate(PEOPLE[:39]):
            team = grouped.get(number)
            if team and number != max(TEAMS[team]):
                continue
            who = f"{team}_{900 + number}" if team else f"{first} {last}_{1000 + number}"
            name = f"{who}_assignsubmission_file_/tiny.ipynb"
            stamp = LATE if team == "Team Grün" else when(number)
            packed.writestr(zipfile.ZipInfo(name, stamp), the_notebook(folder, number))  # type: ignore[arg-type]
    return path


def points_of(number: int) -> tuple[float, float]:
    """What the machine gives and what being late costs: 10 % a day, of the 2 by hand too."""
    stands_for = next((max(team) for team in TEAMS.values() if number in team), number)
    machine = WRONG if stands_for % 3 == 0 else RIGHT
    days = {30: 1, 31: 2}.get(number, 1 if number in TEAMS["Team Grün"] else 0)
    return machine, round((machine + 2) * days / 10, 2)


def set_up(folder: ClassFolder, listed: Path) -> None:
    """Due dates of Berlin, and everybody and their groups from Moodle's list of participants."""
    settings = folder.root / "class.toml"
    text = settings.read_text().replace("per_day = 0", "per_day = 10")
    text = text.replace("[due]", f'[due]\n"{LESSON}" = 2026-10-24T23:59:00')
    settings.write_text('time_zone = "Europe/Berlin"\n' + text)
    people = io.StringIO()
    rows = csv.writer(people, delimiter=";")
    rows.writerow(["Vorname", "Nachname", "Matrikelnummer", "E-Mail-Adresse", "Gruppen"])
    for number, (student, first, last) in enumerate(PEOPLE):
        team = next((name for name, numbers in TEAMS.items() if number in numbers), "")
        rows.writerow([first, last, student, f"{student}@example.org", team])
    listed.write_text(people.getvalue(), encoding="utf-8-sig")
    roster, said = import_roster(listed, {"id": "Matrikelnummer"})
    assert said[-1] == "not read: Gruppen"
    (folder.root / "roster.csv").write_text(roster.as_csv(), encoding="utf-8")
    (folder.root / GROUPS_CSV).write_bytes(listed.read_bytes())


def worksheet(path: Path) -> Path:
    """Moodle's, with nothing filled in."""
    sheet = io.StringIO()
    rows = csv.writer(sheet)
    heading = ["ID", "Vollständiger Name", "E-Mail-Adresse", "Status", "Gruppe", "Bewertung"]
    rows.writerow([*heading, "Bestwertung", "Feedback als Kommentar"])
    for number, (student, first, last) in enumerate(PEOPLE):
        who = [f"Teilnehmer/in{2000 + number}", f"{first} {last}", f"{student}@example.org"]
        rows.writerow([*who, "", "", "", "11,00", ""])
    path.write_text(sheet.getvalue(), encoding="utf-8-sig")
    return path


def test_a_class_of_40_from_a_german_moodle(tmp_path: Path, capsys: Any) -> None:
    folder = new(tmp_path)
    set_up(folder, tmp_path / "teilnehmer.csv")
    root = str(folder.root)
    assert main(["collect", root, str(zipped(tmp_path / "abgaben.zip", folder))]) == 0
    said = capsys.readouterr().out
    assert "39 new" in said and f"handed in nothing for {LESSON}: 1: m39" in said
    assert main(["grade", root, "--quiet"]) == 0
    folder = ClassFolder.open(folder.root)
    with Gradebook(folder.db_url) as gradebook:
        marking = Marking(folder, gradebook, LESSON, marker="anna")
        tokens = marking.tokens("written_why")
        assert len(tokens) == 3 + 27  # teams, and who is alone
        shown = [marking.answer("written_why", token) for token in tokens]
        assert sum(len(answer.pictures) for answer in shown) == 1
        for token in tokens:
            marking.give("written_why", token, 2.0, "Gut.")
    assert main(["export", root, "--to", "feedback", "--assignment", LESSON]) == 0

    capsys.readouterr()
    options = [
        "--to",
        "moodle",
        "--assignment",
        LESSON,
        "--template",
        str(worksheet(tmp_path / "worksheet.csv")),
    ]
    assert main(["export", root, *options]) == 0
    assert "40 rows with points" in capsys.readouterr().out

    exported = read_table(folder.root / "export-moodle.csv")
    total = {row[2].partition("@")[0]: float(row[5].replace(",", ".")) for row in exported.rows}
    in_json = entries(folder)
    for number, (student, _, _) in enumerate(PEOPLE[:39]):
        machine, penalty = points_of(number)
        entry = in_json[student]
        assert (entry["score"], entry["penalty"]) == (machine, penalty), student
        assert entry["total"] == total[student] == machine + 2 - penalty
        page = (folder.root / f"feedback/{student}/{LESSON}/tiny.html").read_text()
        assert f"{total[student]:g} of 11 points" in page
        assert not [flag for flag in entry["flags"] if "edited" in flag or "missing" in flag]
    assert total["m39"] == 0 and in_json["m39"]["status"] == "missing"
    assert (
        "data:image/png;base64," in (folder.root / f"feedback/m20/{LESSON}/tiny.html").read_text()
    )
    drawn = nbformat.read(folder.root / f"autograded/m20/{LESSON}/tiny.ipynb", as_version=4)
    assert [cell for cell in drawn.cells if cell.get("attachments")]
