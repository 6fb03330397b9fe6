"""Who asks for another look, out of an LMS's table, and what became of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import open_gradebook
from autograder.classroom.requests import RequestError, look_at
from autograder.cli.main import main

from ..classes import hand_in, new, solved

LESSON = "01-tiny"


def entry(student: str, points: float) -> dict[str, Any]:
    test = {"exercise": "double", "points": points}
    return {"student": student, "assignment": LESSON, "tests": [test], "total": points + 3}


@pytest.fixture
def folder(tmp_path: Path) -> ClassFolder:
    root = tmp_path / "class"
    (root / "source" / LESSON).mkdir(parents=True)
    (root / "class.toml").write_text("seed = 7\n")
    (root / "roster.csv").write_text(
        "id,first_name,last_name,email\nada,Ada,Lovelace,ada@example.org\nbob,Bob,Half,\n"
    )
    graded(root, ada=2.0, bob=1.0)
    return ClassFolder.open(root)


def graded(root: Path, **points: float) -> None:
    tree = {"submissions": [entry(who, value) for who, value in points.items()]}
    (root / "grades.json").write_text(json.dumps(tree))


def test_requests_are_listed_with_what_changed(
    folder: ClassFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.root / "requests.csv").write_text(
        "Email address,assignment,exercise,text\nada@example.org,1,double,It is twice x.\n"
    )
    (folder.root / "requests").mkdir()
    (folder.root / "requests" / "form.csv").write_text(
        f'id,assignment,exercise,text\nbob,{LESSON},,"All\nof it."\n'
    )
    found, problems = look_at(folder)
    assert not problems
    assert [(one.student, one.exercise, one.before, one.now) for one in found] == [
        ("ada", "double", 2.0, 2.0),
        ("bob", "", 4.0, 4.0),
    ]
    graded(folder.root, ada=3.0, bob=1.0)
    assert main(["report", str(folder.root), "--about", "requests"]) == 0
    out = capsys.readouterr().out
    assert "2 requests, 1 with other points since" in out
    (line,) = [line for line in out.splitlines() if line.startswith("ada")]
    assert line.split()[:5] == ["ada", LESSON, "double", "2", "3"]
    assert "All of it." in out


def test_who_asks_may_stand_in_the_column_of_ids(folder: ClassFolder) -> None:
    (folder.root / "roster.csv").write_text(
        "id,first_name,last_name,email\nada,Ada,Lovelace,ada@example.org\nbob,Bob,Half,\n"
        "bob2,Bob,Half,b@example.org\n"
    )
    rows = ["ada@example.org", "Lovelace Ada", "Bob Half"]
    (folder.root / "requests.csv").write_text(
        "id,assignment,exercise,text\n" + "".join(f"{who},{LESSON},double,x\n" for who in rows)
    )
    found, problems = look_at(ClassFolder.open(folder.root))
    assert [one.student for one in found] == ["ada", "ada"]
    assert problems == ["requests.csv, line 4: several students have this name; give the id"]


@pytest.mark.slow
def test_a_written_answer_can_be_asked_about(tmp_path: Path) -> None:
    school = new(tmp_path)
    hand_in(school, "ada", solved(school, why="Because."))
    assert main(["grade", str(school.root), "--quiet"]) == 0
    (school.root / "requests.csv").write_text(
        "id,assignment,exercise,text\n"
        f"ada,{LESSON},written_why,Read it\nada,{LESSON},written_no,x\n"
    )
    found, problems = look_at(school)
    assert [(one.exercise, one.before, one.now) for one in found] == [("written_why", 0.0, 0.0)]
    assert len(problems) == 1 and "written_no" in problems[0]
    with open_gradebook(school.db_url) as gradebook:
        for grade in gradebook.find_submission(LESSON, "ada").notebooks[0].grades:
            if grade.name == "written_why":
                grade.manual_score = 2.0
        gradebook.db.commit()
    found, _ = look_at(school)
    assert [(one.before, one.now) for one in found] == [(0.0, 2.0)]


def test_a_request_about_nothing_is_named(
    folder: ClassFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.root / "requests.csv").write_text(
        f"id,assignment,exercise,text\nada,{LESSON},halve,x\nnobody,{LESSON},double,x\n"
    )
    assert main(["report", str(folder.root), "--about", "requests"]) == 1
    said = capsys.readouterr().err
    assert "line 2" in said and "halve" in said and "line 3" in said and "nobody" in said


def test_a_long_text_of_one_does_not_take_the_others_requests(folder: ClassFolder) -> None:
    rows = f"ada,{LESSON},double,{'x' * 200_000}\nbob,{LESSON},double,short\n"
    (folder.root / "requests.csv").write_text(f"id,assignment,exercise,text\n{rows}")
    found, problems = look_at(folder)
    assert not problems
    assert [one.student for one in found] == ["ada", "bob"]


def test_tables_that_are_none_are_refused(folder: ClassFolder) -> None:
    with pytest.raises(RequestError, match=r"requests\.csv"):
        look_at(folder)
    (folder.root / "requests.csv").write_text("id,what\nada,x\n")
    with pytest.raises(RequestError, match="no column assignment"):
        look_at(folder)
    (folder.root / "requests.csv").write_text(f"id,assignment\nada,{LESSON}\n")
    (folder.root / "requests-seen.json").write_text("[")
    with pytest.raises(RequestError, match="damaged"):
        look_at(folder)
