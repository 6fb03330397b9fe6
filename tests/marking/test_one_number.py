"""One number, the same everywhere: terminal, grades.csv, grades.json, Formgrader, page, export."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from autograder.classroom.folder import ClassFolder
from autograder.classroom.late import LateError, write_timestamp
from autograder.cli.main import main
from autograder.lms.export import plain
from autograder.lms.student_standings import standings
from autograder.marking.hand_back import write_pages

from ..browser.window import SECONDS, jupyter_lab, needs_chromium, open_formgrader, window
from ..classes import LESSON, dated, entries, give_by_hand, grade_here, hand_in, new, solved
from ..nbgrader_buttons import run
from ..submissions import boxes

pytestmark = pytest.mark.slow

expect.set_options(timeout=SECONDS * 1000)

DUE = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = 24 * 60
ROSTER = """id,first_name,last_name,email,status
right,Ada,Lovelace,,
waits,Barbara,Liskov,,
partly,Bob,Half,,
late,Cleo,Late,,
late_marked,Carl,Late,,
extended,Dan,Ill,,
excused,Dora,Moved,,
broken,Eve,File,,
nothing,Finn,Absent,,
later,Gus,Later,,
gone,Zoe,Gone,,withdrawn
"""
#: Points of now, of 11, and how many of them wait for a person.
EXPECTED = {
    "right": (11.0, 0.0),
    "waits": (8.0, 3.0),
    "partly": (7.0, 0.0),
    "late": (6.4, 3.0),
    "late_marked": (8.0, 0.0),
    "extended": (8.0, 0.0),
    "excused": (8.0, 0.0),
    "broken": (0.0, 0.0),
    "nothing": (0.0, 0.0),
    "gone": (8.0, 0.0),
}
WRONG = "def double(x):\n    return x + x\n"

#: What the Formgrader's server lists, for the students of an assignment and for one student.
LISTED = """
import json, sys
from nbgrader.apps import NbGrader
from nbgrader.apps.api import NbGraderAPI

app = NbGrader()
app.initialize([])
api = NbGraderAPI(app.coursedir, parent=app)
found = {one["student"]: [one["score"], one["max_score"]] for one in api.get_submissions("01-tiny")}
for student in found:
    (again,) = api.get_student_submissions(student)
    assert [again["score"], again["max_score"]] == found[student]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    """One student of each kind, the written answers of some of them marked."""
    folder = dated(new(tmp_path_factory.mktemp("numbers")))
    (folder.root / "roster.csv").write_text(ROSTER)
    settings = folder.root / "class.toml"
    moved = f'[extensions]\nextended = {{ "{LESSON}" = 3 }}\nlater = {{ all = 365000000 }}'
    moved = moved.replace("365000000", "3650")
    settings.write_text(settings.read_text().replace("[extensions]", moved))
    (folder.root / "extensions.csv").write_text(
        f"id,assignment,until\nexcused,{LESSON},2026-03-09T12:00:00+00:00\n"
    )
    folder = ClassFolder.open(folder.root)
    minutes = {"late": DAY + 5, "late_marked": DAY + 5, "extended": 2 * DAY, "excused": 7 * DAY}
    for who in EXPECTED:
        if who == "nothing":
            continue
        answers = {"double": WRONG} if who == "partly" else {}
        asked = {"right", "waits", "late", "late_marked"}
        why = {"why": f"Because {who}."} if who in asked else {}
        content = b"{" if who == "broken" else solved(folder, **why, **answers)
        path = hand_in(folder, who, content)
        write_timestamp(path.parent, DUE + timedelta(minutes=minutes.get(who, -5)))
    grade_here(folder)
    give_by_hand(folder, "right", 3.0)
    give_by_hand(folder, "late_marked", 2.0)
    write_pages(folder)
    return folder


def test_grades_json_and_csv(graded: ClassFolder) -> None:
    found = entries(graded)
    assert {who: (one["total"], one["to_mark"]) for who, one in found.items()} == EXPECTED
    assert {one["out_of"] for one in found.values()} == {11.0}
    assert {who for who, one in found.items() if one["needs_manual_grade"]} == {"waits", "late"}
    with (graded.root / "grades.csv").open() as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert {
        who: (float(row["total"]), float(row["to_mark"])) for who, row in rows.items()
    } == EXPECTED


def test_the_terminal(graded: ClassFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", str(graded.root), "--quiet", "--sandbox", boxes().backend]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = {line[0]: line[1] for line in lines if len(line) == 2}
    for who, (total, to_mark) in EXPECTED.items():
        if who not in ("broken", "nothing"):
            assert shown[who] == f"{total:g}/11{'*' if to_mark else ''}"
    assert (shown["broken"], shown["nothing"]) == ("unreadable", "missing")


def test_the_formgrader(graded: ClassFolder) -> None:
    ran = run(graded, "-c", LISTED)
    assert ran.returncode == 0, ran.stderr
    expected = {who: [total, 11.0] for who, (total, _) in EXPECTED.items() if who != "nothing"}
    assert json.loads(ran.stdout) == expected


@needs_chromium
def test_the_formgrader_and_the_pages_in_a_browser(graded: ClassFolder, tmp_path: Path) -> None:
    with jupyter_lab(graded.root, tmp_path) as lab, window(1500, 800) as browser:
        formgrader = open_formgrader(browser.open(lab.address("lab")))
        formgrader.locator("#main-table .num-submissions a").click()
        for who, (total, to_mark) in EXPECTED.items():
            if who == "nothing":
                continue
            name = formgrader.locator(".student-id", has_text=re.compile(f"^\\s*{who}\\s*$"))
            row = formgrader.locator("#main-table tr").filter(has=name)
            expect(row).to_contain_text(f"{total:g} / 11")
            expect(row.get_by_text("needs manual grading")).to_have_count(int(to_mark > 0))
        page = browser.open((graded.root / "feedback" / "late" / LESSON / "tiny.html").as_uri())
        expect(page.locator(".score")).to_contain_text("6.4 of 11 points")
        assert not browser.asked_outside


def test_the_pages(graded: ClassFolder) -> None:
    for who, (total, to_mark) in EXPECTED.items():
        if who == "nothing":
            continue
        page = (graded.root / "feedback" / who / LESSON / "tiny.html").read_text()
        (said,) = re.findall('<p class="score">(.*)</p>', page)
        waits = f" so far; a person still has to mark {to_mark:g} of them" if to_mark else ""
        assert html.unescape(said) == f"{total:g} of 11 points{waits}"


def test_the_pages_say_why(graded: ClassFolder) -> None:
    pages = {
        who: (graded.root / "feedback" / who / LESSON / "tiny.html").read_text()
        for who in EXPECTED
        if who != "nothing"
    }
    assert "Handed in 1 d 5 min late, which costs 1.6 points: 6.4 are left." in pages["late"]
    assert "costs 2 points: 8 are left." in pages["late_marked"]
    assert "You had 3 d more than the others." in pages["extended"]
    assert "You had 8 d more than the others." in pages["excused"]
    assert "more than the others" not in pages["late"]


def test_the_export(graded: ClassFolder) -> None:
    made = plain(standings(graded))
    rows = {row["student"]: row for row in csv.DictReader(io.StringIO(made.text))}
    expected = {who: total for who, (total, _) in EXPECTED.items() if who != "gone"}
    assert {who: float(row["total"]) for who, row in rows.items()} == expected
    assert {row["max_points"] for row in rows.values()} == {"11"}
    assert {who for who, row in rows.items() if row["to_mark"]} == {"waits", "late"}
    assert rows["extended"]["extension_minutes"] == str(3 * DAY)
    assert rows["late"]["extension_minutes"] == ""


def test_who_has_more_time_is_not_missing_before_it_is_over(graded: ClassFolder) -> None:
    assert "later" not in entries(graded)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (f'nobody = {{ "{LESSON}" = 3 }}', "nobody on the roster"),
        ('right = { "02-none" = 3 }', "is no assignment"),
        (f'right = {{ "{LESSON}" = "soon" }}', "number of days"),
        (f'right = {{ "{LESSON}" = -1 }}', "number of days"),
        ("right = 3", "three days more"),
    ],
)
def test_an_extension_that_cannot_be_is_named(
    graded: ClassFolder, table: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = graded.root / "class.toml"
    before = settings.read_text()
    settings.write_text(before.replace("[extensions]", f"[extensions]\n{table}"))
    try:
        with pytest.raises(LateError, match=says):
            ClassFolder.open(graded.root).check_settings()
        assert main(["grade", str(graded.root)]) == 2
        assert says in capsys.readouterr().err
    finally:
        settings.write_text(before)


def test_a_table_of_extensions_that_cannot_be_read_is_named(graded: ClassFolder) -> None:
    path = graded.root / "extensions.csv"
    before = path.read_text()
    try:
        for text, says in (
            ("id,assignment\nright,all\n", "until or days"),
            ("id,assignment,days\nright,all,soon\n", "line 2"),
            ("id,assignment,days\nright,all,1\nright,,2\n", "twice"),
            ("id,assignment,until\nright,all,2026-03-01T10:00\n", "an offset"),
        ):
            path.write_text(text)
            with pytest.raises(LateError, match=says):
                ClassFolder.open(graded.root).check_settings()
    finally:
        path.write_text(before)
