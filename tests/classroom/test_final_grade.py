"""Another maximum, weights, the best n and a pass mark: rules in class.toml, a table that shows."""

from __future__ import annotations

import csv
import io
import tomllib
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.final_grade import FinalGrade, GradeRuleError
from autograder.classroom.folder import ClassFolder
from autograder.classroom.roster import Member
from autograder.lms.export import plain
from autograder.lms.final_table import final
from autograder.lms.student_standings import StudentStanding

NAMES = ["01-a", "02-b", "03-c"]


def rules(text: str) -> FinalGrade:
    table = tomllib.loads(text).get("grade", {})
    return FinalGrade.from_table(table, Path("class.toml"), NAMES)


def a_class(root: Path, grade: str = "") -> ClassFolder:
    for name in NAMES:
        (root / "source" / name).mkdir(parents=True)
    (root / "class.toml").write_text(f"seed = 7\n[grade]\n{grade}\n")
    return ClassFolder.open(root)


def standing(
    student: str, name: str, total: float, written: float = 0.0, **more: Any
) -> StudentStanding:
    about = {"max_points": 20.0, "written": written, "max_written": 4.0, **more}
    return StudentStanding(Member(student), name, total, **about)


STANDINGS = [
    standing("ada", "01-a", 20, 4),
    standing("ada", "02-b", 10, 2),
    standing("ada", "03-c", 15, 3),
    standing("bob", "01-a", 10, 1),
    standing("bob", "02-b", 10, 1),
    standing("bob", "03-c", 0, 0, missing=True),
]


def table_of(
    folder: ClassFolder, found: list[StudentStanding] = STANDINGS
) -> dict[str, dict[str, str]]:
    text = final(folder, found).text
    return {row["student"]: row for row in csv.DictReader(io.StringIO(text))}


def test_without_rules_it_is_the_mean(tmp_path: Path) -> None:
    rows = table_of(a_class(tmp_path))
    assert (rows["ada"]["final"], rows["bob"]["final"]) == ("75", "33.33")
    assert (rows["ada"]["written"], rows["ada"]["written_passed"]) == ("75", "")
    assert rows["bob"]["03-c"] == "0"


def test_weights_and_the_best_and_what_written_parts_need(tmp_path: Path) -> None:
    folder = a_class(tmp_path, 'weights = { "01-a" = 3 }\nbest = 2\nwritten_at_least = 50')
    rows = table_of(folder)
    # Ada: 3 times 100 and once 75. Bob: 50 in both that count.
    assert (rows["ada"]["final"], rows["bob"]["final"]) == ("93.75", "50")
    assert (rows["ada"]["02-b"], rows["bob"]["03-c"]) == ("50*", "0*")
    assert (rows["ada"]["written_passed"], rows["bob"]["written_passed"]) == ("yes", "no")
    said = final(folder, STANDINGS).rule
    assert "weighed (01-a 3, others 1)" in said and "the 2 assignments" in said
    assert "50 percent of the points for written answers" in said


def test_a_weight_of_nothing_does_not_count(tmp_path: Path) -> None:
    rows = table_of(a_class(tmp_path, 'weights = { "03-c" = 0 }\nbest = 3'))
    assert (rows["ada"]["03-c"], rows["ada"]["final"]) == ("75*", "75")


def test_another_maximum_keeps_the_share() -> None:
    given = StudentStanding(Member("ada"), "01-a", 33.6, 46.0, penalty=8.4)
    made = [given.scaled_to(100)]
    (row,) = csv.DictReader(io.StringIO(plain(made).text))
    assert (row["total"], row["max_points"], row["penalty"]) == ("73.04", "100", "18.26")
    assert given.scaled_to(None) is given
    assert rules("[grade]\nmaximum = 10").scaled(23, 46) == 5.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("grade = 3", "a table"),
        ("[grade]\nmaxima = 3", "maxima is unknown"),
        ("[grade]\nmaximum = 0", "from 0.001"),
        ('[grade]\nmaximum = "100"', "a number"),
        ("[grade]\nbest = 0", "from 1"),
        ("[grade]\nbest = true", "from 1"),
        ('[grade]\nweights = { "09-z" = 1 }', "no assignment"),
        ('[grade]\nweights = { "01-a" = -1 }', "from 0"),
        ('[grade]\nweights = { "01-a" = 0, "02-b" = 0, "03-c" = 0 }', "nothing would count"),
        ("[grade]\nweights = 3", "write grade.weights"),
        ("[grade]\nwritten_at_least = 101", "from 0 to 100"),
    ],
)
def test_rules_that_cannot_be_are_named(text: str, says: str) -> None:
    with pytest.raises(GradeRuleError, match=says):
        rules(text)
