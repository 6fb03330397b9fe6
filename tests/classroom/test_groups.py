"""The work of several: everybody's points, one verdict, one place to mark it."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.folder import ClassFolder
from autograder.classroom.groups import GroupsError
from autograder.classroom.hand_ins import collected
from autograder.cli.main import main
from autograder.lms.collecting import carry_out, exceptions, plan
from autograder.lms.layouts import readings
from autograder.lms.moodle import moodle
from autograder.lms.student_standings import standings
from autograder.marking.by_question import Marking

from ..classes import LESSON, grade_here, new, pack, solved
from ..submissions import as_bytes

pytestmark = pytest.mark.slow

ROSTER = """id,first_name,last_name,email,status,lms_id
jg1,Jürgen,Groß,jg@example.org,,501
ada,Ada,Lovelace,ada@example.org,,502
bob,Bob,Other,bob@example.org,,503
cy,Cy,Third,cy@example.org,,504
di,Di,Fourth,di@example.org,,505
zoe,Zoe,Gone,,withdrawn,506
"""
#: As the list of each system has them: two teams, and Cy and Di in none.
LISTS = {
    "by hand": "group,student\nTeam Rot,jg1\nTeam Rot,ada\nTeam Blau,bob\n",
    "Moodle's worksheet": 'Identifier,"Full name","Email address",Status,Group,Grade\n'
    "Participant 1,Jürgen Groß,jg@example.org,x,Team Rot,\n"
    "Participant 2,Ada Lovelace,,x,Team Rot,\n"
    "Participant 3,Bob Other,bob@example.org,x,Team Blau,\nParticipant 4,Cy Third,,x,,\n",
    "Moodle's list in German": "Vorname,Nachname,E-Mail-Adresse,Gruppen\n"
    'Jürgen,Groß,jg@example.org,"Übung 1, Team Rot"\nAda,Lovelace,ada@example.org,Team Rot\n'
    "Bob,Other,bob@example.org,Team Blau\n",
    "Canvas's export": "name,canvas_user_id,login_id,sections,group_name\n"
    '"Groß, Jürgen",501,jg1,A,Team Rot\nAda Lovelace,502,x,A,Team Rot\n'
    "Bob Other,503,bob,A,Team Blau\n",
    "by name": "Team;Student\nTEAM ROT;Jürgen Groß\nteam rot;Lovelace, Ada\n"
    "Team Blau;bob@example.org\n",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    return new(tmp_path_factory.mktemp("groups"))


@pytest.fixture
def folder(made: ClassFolder, tmp_path: Path) -> ClassFolder:
    root = tmp_path / "class"
    (root / "submitted").mkdir(parents=True)
    (root / "source").symlink_to(made.root / "source")
    (root / "class.toml").write_bytes((made.root / "class.toml").read_bytes())
    (root / "roster.csv").write_text(ROSTER)
    return ClassFolder.open(root)


def with_groups(folder: ClassFolder, text: str = LISTS["by hand"]) -> ClassFolder:
    (folder.root / "groups.csv").write_text(text)
    return ClassFolder.open(folder.root)


MOODLE = {
    "Team Rot_77_assignsubmission_file_/tiny.ipynb": b"rot",
    "Team Blau_78_assignsubmission_file_/tiny.ipynb": b"blau",
    "Default group_assignsubmission_file_/tiny.ipynb": b"none",
}


@pytest.mark.parametrize("system", LISTS)
def test_a_team_of_moodle_is_everybody_in_it(
    folder: ClassFolder, tmp_path: Path, system: str
) -> None:
    folder = with_groups(folder, LISTS[system])
    found = plan(folder, [pack(tmp_path / "m.zip", MOODLE)])
    assert not [line for line in exceptions(folder, found) if "nothing" in line or "not on" in line]
    carry_out(folder, found)
    there = {
        path.parent.parent.name: path.read_bytes()
        for path in (folder.root / "submitted").glob(f"*/{LESSON}/tiny.ipynb")
    }
    assert there == {"jg1": b"rot", "ada": b"rot", "bob": b"blau", "cy": b"none", "di": b"none"}
    known = collected(folder)
    assert known[f"jg1/{LESSON}"]["group"] == known[f"ada/{LESSON}"]["group"] != ""
    assert known[f"bob/{LESSON}"]["group"] == ""


def test_a_team_that_no_list_knows_is_named_with_what_to_do(
    folder: ClassFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = pack(tmp_path / "m.zip", MOODLE)
    assert main(["collect", str(folder.root), str(path), "--dry-run"]) == 1
    said = capsys.readouterr().out
    assert "it is the work of 'Default group', and no list says who that is" in said
    assert said.count("groups.csv, with the columns group and student") == 3


CANVAS = {
    "teamrot_502_901_tiny.ipynb": b"rot",
    "otherbob_503_902_tiny.ipynb": b"bob",
    "third_cy_504_903_tiny.ipynb": b"cy",
}


def test_a_groups_file_of_canvas_is_everybody_in_it(folder: ClassFolder, tmp_path: Path) -> None:
    path = pack(tmp_path / "c.zip", CANVAS)
    alone = {one.student: one.note for one in plan(folder, [path]).decisions}
    assert set(alone) == {"ada", "bob", "cy"} and alone["bob"] == alone["cy"] == ""
    assert "its number is Ada Lovelace's, its name says teamrot" in alone["ada"]
    found = plan(with_groups(folder), [path])
    assert {one.student for one in found.decisions} == {"ada", "jg1", "bob", "cy"}
    # Where Canvas names a member and not the group, the list says for which assignment it is.
    only = {"lovelaceada_502_901_tiny.ipynb": b"rot"}
    path = pack(tmp_path / "d.zip", only)
    assert [one.student for one in plan(with_groups(folder), [path]).decisions] == ["ada"]
    lists = f"group,student,assignment\nRot,ada,{LESSON}\nRot,jg1,{LESSON}\n"
    found = plan(with_groups(folder, lists), [path])
    assert [one.student for one in found.decisions] == ["ada", "jg1"]


def test_gradescopes_groups_are_remembered(folder: ClassFolder, tmp_path: Path) -> None:
    yml = b"submission_1:\n  :submitters:\n  - :sid: ada\n  - :sid: bob\n"
    files = {"e/submission_metadata.yml": yml, "e/submission_1/tiny.ipynb": b"1"}
    carry_out(folder, plan(folder, [pack(tmp_path / "g.zip", files)]))
    groups = {name: about["group"] for name, about in collected(folder).items()}
    assert len(groups) == 2 and len(set(groups.values())) == 1 and "" not in groups.values()


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("van_der_bergkees_502_902_tiny.ipynb", "ada"),
        ("a_b_c_LATE_502_902_tiny-2.ipynb", "ada"),
        ("x_1_2_502_902_tiny.ipynb", "ada"),  # a name with numbers
        ("lovelaceada_502_902_hw_3_4_tiny.ipynb", "ada"),  # a file's name with numbers
        ("otherbob_503_9_502_902_tiny.ipynb", "bob"),  # both are known, and one is called so
        ("evil_503_9_502_902_tiny.ipynb", ""),
        ("garcíamárquezanamaría_999_904_tiny.ipynb", "garcíamárquezanamaría"),
        ("new_one_7_8_tiny.ipynb", "new_one"),
    ],
)
def test_which_numbers_are_canvas(
    folder: ClassFolder, tmp_path: Path, path: str, student: str
) -> None:
    (found,) = plan(folder, [pack(tmp_path / "c.zip", {path: b"1"})]).decisions
    assert found.student == student
    if not student:
        assert "the numbers of several (bob, ada): whose is it?" in found.note


def test_every_reading_of_a_path_of_canvas() -> None:
    found = readings("x/a_LATE_1_2_3_b_c.ipynb")
    assert [(one.name, one.lms_id, one.late, one.file) for one in found] == [
        ("a", "1", True, "3_b_c.ipynb"),
        ("a_LATE_1", "2", False, "b_c.ipynb"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n", "no column of groups"),
        ("group,student\nRot,nobody\n", "line 2: nobody on the roster is 'Rot nobody'"),
        ("group,student,assignment\nRot,ada,99\n", "'99' is no assignment"),
    ],
)
def test_mistakes_in_groups_are_named(
    folder: ClassFolder, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(GroupsError, match=says):
        with_groups(folder, text).check_settings()


def test_a_group_has_one_verdict_one_marking_and_everybodys_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new(tmp_path)
    (folder.root / "roster.csv").write_text(ROSTER)
    folder = with_groups(folder)
    teams = {
        name: as_bytes(solved(folder, why=f"Because {at}."))
        for at, name in enumerate(("Team Rot_77", "Team Blau_78"))
    }
    files = {f"{name}_assignsubmission_file_/tiny.ipynb": data for name, data in teams.items()}
    carry_out(folder, plan(folder, [pack(tmp_path / "m.zip", files)]))
    result = grade_here(folder)
    scores = {one.student: one.result.score for one in result.submissions}
    assert scores == {"jg1": 8, "ada": 8, "bob": 8, "cy": 0, "di": 0}
    assert len(list((folder.root / ".results").glob("*.json"))) == 2
    with Gradebook(folder.db_url) as gradebook:
        marking = Marking(folder, gradebook, LESSON, marker="anna")
        tokens = marking.tokens("written_why")
        assert len(tokens) == 2
        for token in tokens:
            marking.give("written_why", token, 2.5, "Good.")
    table = (
        "Identifier,Full name,Email address,Status,Group,Grade,Maximum Grade,Feedback comments\n"
    )
    for number, name in ((1, "Jürgen Groß"), (77, "Ada Lovelace"), (3, "Bob Other")):
        table += f"Participant {number},{name},,x,Team,,11.00,\n"
    (tmp_path / "w.csv").write_text(table)
    made = moodle(folder, standings(folder), tmp_path / "w.csv")
    assert [line.split(",")[5] for line in made.text.splitlines()[1:]] == ["10.5"] * 3
    for student in ("jg1", "ada", "bob"):
        assert (folder.root / f"feedback/{student}/{LESSON}/tiny.html").exists()
