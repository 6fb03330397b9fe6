"""From the zips of Moodle, Canvas and Gradescope to submitted/: whose, which, and nothing lost."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.classroom.folder import ClassError, ClassFolder
from autograder.classroom.hand_ins import collected
from autograder.classroom.late import read_timestamp
from autograder.cli.main import main
from autograder.lms import archives, collecting
from autograder.lms.archives import ArchiveError
from autograder.lms.layouts import MOODLE as MOODLE_PATHS
from autograder.lms.layouts import Layout, LayoutError, stem

from ..classes import LESSON, NOON, new, pack

ROSTER = """id,first_name,last_name,email,status,lms_id
ada,Ada,Lovelace,ada@example.org,,501
bob,Bob,Ångström,bob@example.org,,502
zoe,Zoe,Gone,zoe@example.org,withdrawn,503
"""


GRADESCOPE_YML = b"""submission_1:
  :submitters:
  - :name: Ada
    :sid: ada
submission_2:
  :submitters:
  - :name: Bob
    :sid: bob
"""


MOODLE = "Ada L_1_assignsubmission_file_/"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    return new(tmp_path_factory.mktemp("collect"))


@pytest.fixture
def folder(made: ClassFolder, tmp_path: Path) -> ClassFolder:
    """A class without submissions; its lesson is shared between the tests."""
    root = tmp_path / "class"
    root.mkdir()
    (root / "submitted").mkdir()
    (root / "source").symlink_to(made.root / "source")
    (root / "class.toml").write_bytes((made.root / "class.toml").read_bytes())
    return ClassFolder.open(root)


def plan(folder: ClassFolder, *files: Path, assignment: str | None = None) -> collecting.Plan:
    return collecting.plan(ClassFolder.open(folder.root), files, assignment=assignment)


def taken(made: collecting.Plan) -> dict[str, str]:
    return {one.path: one.to for one in made.decisions if one.to}


def left_out(made: collecting.Plan) -> dict[str, str]:
    return {one.path: one.note for one in made.decisions if one.action == collecting.LEFT_OUT}


def to(student: str, name: str = "tiny") -> str:
    return f"submitted/{student}/{LESSON}/{name}.ipynb"


def test_moodle(folder: ClassFolder, tmp_path: Path) -> None:
    path = pack(
        tmp_path / "moodle.zip",
        {
            "Ada Lovelace_1234567_assignsubmission_file_/tiny.ipynb": b"1",
            "Émile Šťastný_1234568_assignsubmission_file/tiny (1).ipynb": b"2",
            "Bob X_1234569_assignsubmission_file_tiny.ipynb": b"3",
            "Cleo Y_1234570_assignsubmission_onlinetext_/onlinetext.html": b"4",
        },
    )
    found = plan(folder, path)
    assert [one.name for one in found.layouts.values()] == ["moodle"]
    assert sorted(taken(found).values()) == [
        to("ada-lovelace"),
        to("bob-x"),
        to("émile-šťastný"),
    ]
    assert list(left_out(found).values()) == ["not a notebook"]
    assert not list((folder.root / "submitted").iterdir())

    collecting.carry_out(folder, found)
    there = folder.root / "submitted" / "ada-lovelace" / LESSON
    assert (there / "tiny.ipynb").read_bytes() == b"1"
    assert read_timestamp(there) == datetime(*NOON).astimezone(UTC)
    known = collected(folder)[f"ada-lovelace/{LESSON}"]
    assert known["folder"] == "Ada Lovelace_1234567_assignsubmission_file_"
    assert known["lms_id"] == "1234567"


def test_canvas(folder: ClassFolder, tmp_path: Path) -> None:
    path = pack(
        tmp_path / "canvas.zip",
        {
            "lovelaceada_501_9001_tiny.ipynb": b"first",
            "lovelaceada_501_9001_tiny-2.ipynb": b"third",
            "lovelaceada_501_9001_tiny-1.ipynb": b"second",
            "xbob_LATE_777_9002_tiny-1.ipynb": b"late",
        },
    )
    found = plan(folder, path)
    assert [one.name for one in found.layouts.values()] == ["canvas"]
    assert [one.late for one in found.decisions if one.student == "xbob"] == ["late, says the LMS"]
    collecting.carry_out(folder, found)
    assert (folder.root / to("lovelaceada")).read_bytes() == b"third"
    older = [one for one in found.decisions if one.action == collecting.OLDER]
    assert len(older) == 2 and all("tiny-2" in one.note for one in older)


GRADESCOPE = """
submission_11:
  :submitters:
  - :name: Ada Lovelace
    :sid: '501x'
    :email: ada@example.org
  - :name: Bob
    :sid: bob
    :email:
  :created_at: 2026-03-01 11:30:00.000000000 Z
  :results: !ruby/object:Thing {a: 1}
submission_12:
  :submitters: []
"""


def test_gradescope(folder: ClassFolder, tmp_path: Path) -> None:
    files = {
        "assignment_1_export/submission_metadata.yml": GRADESCOPE.encode(),
        "assignment_1_export/submission_11/tiny.ipynb": b"1",
        "assignment_1_export/submission_12/tiny.ipynb": b"2",
    }
    found = plan(folder, pack(tmp_path / "scope.zip", files))
    assert {one.student for one in found.decisions if one.to} == {"501x", "bob"}
    assert "whose it is" in "".join(left_out(found).values())
    collecting.carry_out(folder, found)
    there = folder.root / "submitted" / "bob" / LESSON
    assert read_timestamp(there) == datetime(2026, 3, 1, 11, 30, tzinfo=UTC)
    files["assignment_1_export/submission_metadata.yml"] = b"[]"
    with pytest.raises(LayoutError, match="not what Gradescope writes"):
        plan(folder, pack(tmp_path / "wrong.zip", files))


def test_a_name_that_holds_moodles_own_words_is_nobody_elses(
    folder: ClassFolder, tmp_path: Path
) -> None:
    """Of a folder's name the student chose the beginning, of a file's the end."""
    ends = "_assignsubmission_file_"
    for name, lms_id in (
        (f"Ann_111{ends}_222{ends}/tiny.ipynb", "222"),
        (f"Ann_111{ends}/tiny_222{ends}.ipynb", "111"),
        (f"Ann_111{ends}tiny_222{ends}.ipynb", "111"),
    ):
        found = Layout("moodle", MOODLE_PATHS).read(name, {})
        assert [one.lms_id for one in found] == [lms_id], name


def test_the_outermost_folder_names_the_student(folder: ClassFolder, tmp_path: Path) -> None:
    """A student's own folder may hold folders and files called like somebody else's."""
    moodle = pack(
        tmp_path / "moodle.zip",
        {
            "hw/Ann_111_assignsubmission_file_/Bob_222_assignsubmission_file_/tiny.ipynb": b"{}",
            "hw/Cleo_333_assignsubmission_file_/submission_metadata.yml": GRADESCOPE_YML,
            "hw/Cleo_333_assignsubmission_file_/submission_2/tiny.ipynb": b"{ }",
        },
    )
    made = plan(folder, moodle)
    assert {one.to for one in made.decisions if one.to} == {to("ann"), to("cleo")}

    theirs = b":submitters of others"
    gradescope = pack(
        tmp_path / "gradescope.zip",
        {
            "export/submission_1/submission_2/tiny.ipynb": b"{}",
            "export/submission_1/submission_metadata.yml": theirs,
            "export/submission_metadata.yml": GRADESCOPE_YML,
        },
    )
    made = plan(folder, gradescope)
    assert [one.to for one in made.decisions if one.to] == [to("ada")]
    alone = pack(
        tmp_path / "alone.zip",
        {
            "submission_1/submission_metadata.yml": GRADESCOPE_YML,
            "submission_1/submission_2/tiny.ipynb": b"{}",
        },
    )
    with pytest.raises(ClassError, match="of its own"):
        collecting.plan(folder, [alone], layout="gradescope")


@pytest.mark.parametrize(
    ("honest", "odd"),
    [
        (f"ada/{LESSON}/tiny.ipynb", f"bob/{LESSON}/ada/{LESSON}/tiny.ipynb"),
        (f"in/ada/{LESSON}/tiny.ipynb", f"in/bob/ada/{LESSON}/tiny.ipynb"),
        ("ada_501_9_tiny.ipynb", "bob_502_8_work/ada_501_9_tiny-2.ipynb"),
    ],
)
def test_what_lies_deeper_than_the_others_is_left_out_and_named(
    honest: str, odd: str, folder: ClassFolder, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    made = plan(folder, pack(tmp_path / "in" / "some.zip", {honest: b"{}", odd: b"{ }"}))
    assert taken(made) == {honest: to("ada")}
    assert "inside somebody's folder" in left_out(made)[odd]


def test_a_folder_of_another_student_in_a_students_folder_is_nobodys(
    folder: ClassFolder, tmp_path: Path
) -> None:
    """Also where nothing else is there that lies higher."""
    odd = f"eve/{LESSON}/bob/{LESSON}/tiny.ipynb"
    made = plan(folder, pack(tmp_path / "some.zip", {odd: b"{}"}))
    assert taken(made) == {}
    assert "inside somebody's folder" in left_out(made)[odd]


def test_folders_that_would_be_shown_alike_are_nobodys(folder: ClassFolder, tmp_path: Path) -> None:
    """Two names that differ in a control character would become one student's."""
    files = {
        f"ada{sign}/{LESSON}/tiny.ipynb": b"{}" for sign in ("", "\x01", "\x02", "\u202e", "\u200b")
    }
    made = plan(folder, pack(tmp_path / "some.zip", files))
    assert list(taken(made).values()) == [to("ada")]
    assert [why for why in left_out(made).values() if "signs that nobody sees" in why]
    for name in files:
        path = tmp_path / "unpacked" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"{}")
    made = plan(folder, tmp_path / "unpacked")
    assert list(taken(made).values()) == [to("ada")]


def test_a_notebook_beside_a_students_folders_does_not_bury_the_others(
    folder: ClassFolder, tmp_path: Path
) -> None:
    """In a zip with one folder around all, it lies higher than every submission."""
    honest = {f"hw/{student}/{LESSON}/tiny.ipynb": b"{}" for student in ("ada", "bob")}
    made = plan(folder, pack(tmp_path / "some.zip", {**honest, "hw/mal/tiny.ipynb": b"{ }"}))
    assert sorted(taken(made).values()) == [to("ada"), to("bob")]
    assert list(left_out(made)) == ["hw/mal/tiny.ipynb"]


@pytest.mark.parametrize("top", ["", "hw/"])
@pytest.mark.parametrize(
    "like", ["bob_502_{}_tiny.ipynb", "Bob Ångström_{}_assignsubmission_file_/tiny.ipynb"]
)
def test_the_files_of_one_student_do_not_choose_the_layout_for_all(
    top: str, like: str, folder: ClassFolder, tmp_path: Path
) -> None:
    (folder.root / "roster.csv").write_text(ROSTER)
    files = {f"{top}{student}/{LESSON}/tiny.ipynb": b"{}" for student in ("ada", "bob")}
    files |= {f"{top}mal/{LESSON}/work/{like.format(n)}": b"{ }" for n in range(9)}
    made = plan(folder, pack(tmp_path / "some.zip", files))
    assert [one.name for one in made.layouts.values()] == ["plain"]
    assert sorted(taken(made).values()) == [to("ada"), to("bob")]


def test_the_ending_may_be_in_capitals(folder: ClassFolder, tmp_path: Path) -> None:
    made = plan(folder, pack(tmp_path / "some.zip", {f"ada/{LESSON}/TINY (1).IPYNB": b"{}"}))
    assert set(taken(made).values()) == {to("ada")}


def test_plain_folder(folder: ClassFolder, tmp_path: Path) -> None:
    for student in ("ada", "bob"):
        path = tmp_path / "in" / student / LESSON / "tiny.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(student.encode())
    (tmp_path / "in" / "bob" / "99-other").mkdir()
    (tmp_path / "in" / "bob" / "99-other" / "other.ipynb").write_bytes(b"x")
    found = plan(folder, tmp_path / "in")
    assert sorted(taken(found).values()) == [to("ada"), to("bob")]
    assert "no assignment has a notebook called other" in "".join(left_out(found).values())


def test_an_own_pattern(folder: ClassFolder, tmp_path: Path) -> None:
    settings = folder.root / "class.toml"
    text = settings.read_text()
    settings.write_text(
        text.replace("[collect]", "[collect]\npattern = '(?P<student_id>\\w+)--(?P<file_id>.+)$'")
    )
    path = pack(tmp_path / "own.zip", {"ada--tiny.ipynb": b"1"})
    assert list(taken(plan(folder, path)).values()) == [to("ada")]
    settings.write_text(text.replace("[collect]", "[collect]\npattern = '(?P<student_id>\\w+'"))
    with pytest.raises(ClassError, match="no regular expression"):
        plan(folder, path)
    settings.write_text(text.replace("[collect]", "[collect]\npattern = 'x'"))
    with pytest.raises(ClassError, match="should name"):
        plan(folder, path)


def test_the_roster_says_who_is_who(folder: ClassFolder, tmp_path: Path) -> None:
    (folder.root / "roster.csv").write_text(ROSTER)
    path = pack(
        tmp_path / "moodle.zip",
        {
            "Ada Lovelace_1_assignsubmission_file_/tiny.ipynb": b"1",
            "Ångström Bob_2_assignsubmission_file_/tiny.ipynb": b"2",
            "Zoe Gone_3_assignsubmission_file_/tiny.ipynb": b"3",
            "Eve Stranger_4_assignsubmission_file_/tiny.ipynb": b"4",
        },
    )
    found = plan(folder, path)
    assert {one.student: one.note.partition(";")[0] for one in found.decisions} == {
        "ada": "",
        "bob": "",
        "zoe": "withdrawn",
        "eve-stranger": "not on the roster",
    }
    canvas = pack(tmp_path / "canvas.zip", {"someoneelse_502_1_tiny.ipynb": b"5"})
    assert list(taken(plan(folder, canvas)).values()) == [to("bob")]
    # A number of Moodle's is no student number, even where they look alike.
    (folder.root / "roster.csv").write_text(ROSTER.replace("bob,", "4,"))
    eve = [one.student for one in plan(folder, path).decisions if "Eve" in one.path]
    assert eve == ["eve-stranger"]


def test_two_students_of_one_name_stay_two(folder: ClassFolder, tmp_path: Path) -> None:
    names = [f"Jan Novák_{number}_assignsubmission_file_/tiny.ipynb" for number in (1, 2)]
    both = pack(tmp_path / "both.zip", {name: name.encode() for name in names})
    found = plan(folder, both)
    assert sorted(taken(found).values()) == [to("jan-novák-1"), to("jan-novák-2")]
    # The same when the second comes later, in another zip.
    collecting.carry_out(folder, plan(folder, pack(tmp_path / "one.zip", {names[0]: b"one"})))
    later = plan(folder, pack(tmp_path / "two.zip", {names[1]: b"two"}, (2027, 1, 1, 0, 0, 0)))
    assert list(taken(later).values()) == [to("jan-novák-2")]


def test_who_calls_himself_like_an_id_hands_in_for_nobody_else(
    folder: ClassFolder, tmp_path: Path
) -> None:
    (folder.root / "roster.csv").write_text(ROSTER.replace("ada,Ada", "ada@example.org,Ada"))
    for name in ("Bob", "ada@example.org"):
        file = f"{name}_7_assignsubmission_file_/tiny.ipynb"
        (one,) = plan(folder, pack(tmp_path / "some.zip", {file: b"{}"})).decisions
        assert one.student == f"{name.casefold()}-7" and one.note.startswith("not on the roster")


def test_who_takes_anothers_name_does_not_push_him_off_the_roster(
    folder: ClassFolder, tmp_path: Path
) -> None:
    """What is said to do about two of one name, helps: lms_id in roster.csv."""
    (folder.root / "roster.csv").write_text(ROSTER)
    names = [f"Bob Ångström_{number}_assignsubmission_file_/tiny.ipynb" for number in (502, 7)]
    made = plan(folder, pack(tmp_path / "some.zip", {name: b"{}" for name in names}))
    assert taken(made) == {names[0]: to("bob"), names[1]: to("bob-7")}


def test_a_number_of_moodles_tells_only_people_of_one_name_apart(
    folder: ClassFolder, tmp_path: Path
) -> None:
    """Moodle gives another number in each assignment: one of somebody else's proves nothing."""
    (folder.root / "roster.csv").write_text(ROSTER)
    names = ["Ada Lovelace_9_assignsubmission_file_/tiny.ipynb"]
    names.append("Bob Ångström_501_assignsubmission_file_/tiny.ipynb")
    made = plan(folder, pack(tmp_path / "some.zip", {name: b"{}" for name in names}))
    assert taken(made) == {names[0]: to("ada"), names[1]: to("bob")}


def test_gradescopes_accounts_of_one_name_stay_apart(folder: ClassFolder, tmp_path: Path) -> None:
    (folder.root / "roster.csv").write_text(ROSTER)
    people = (
        ("Bob Ångström", "bob@example.org"),
        ("Bob Ångström", "other@example.org"),
        ("Jan Novák", "jan@example.org"),
        ("Jan Novák", "novak@example.org"),
    )
    files = {
        "submission_metadata.yml": "".join(
            f"submission_{n}:\n  :submitters:\n  - :name: {name}\n    :email: {email}\n"
            for n, (name, email) in enumerate(people)
        ).encode()
    }
    files |= {f"submission_{n}/tiny.ipynb": b"{}" for n in range(len(people))}
    made = plan(folder, pack(tmp_path / "some.zip", files))
    assert set(taken(made).values()) == {
        to("bob"),
        to("bob-other@example.org"),
        to("jan-novák-jan@example.org"),
        to("jan-novák-novak@example.org"),
    }


def test_only_a_newer_submission_replaces_and_the_older_is_kept(
    folder: ClassFolder, tmp_path: Path
) -> None:
    name = "Ada Lovelace_1_assignsubmission_file_/tiny.ipynb"

    def handed_in(content: bytes, hour: int) -> tuple[str, list[str]]:
        path = pack(tmp_path / "a.zip", {name: content}, (2026, 3, 1, hour, 0, 0))
        found = plan(folder, path)
        return found.decisions[0].action, collecting.carry_out(folder, found)

    there = folder.root / to("ada-lovelace")
    assert handed_in(b"at noon", 12) == ("new", [])
    assert handed_in(b"at ten", 10) == ("older", [])
    assert handed_in(b"at noon", 14) == ("unchanged", [])
    assert there.read_bytes() == b"at noon"
    action, aside = handed_in(b"at one", 13)
    assert action == "newer" and there.read_bytes() == b"at one"
    assert len(aside) == 1 and aside[0].startswith(f"set_aside/ada-lovelace/{LESSON}/2026-03-01-")
    assert (folder.root / aside[0] / "tiny.ipynb").read_bytes() == b"at noon"
    (there.parent / "timestamp.txt").unlink()
    assert handed_in(b"at five", 17) == ("older", [])
    assert there.read_bytes() == b"at one"


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        ({"tiny.ipynb": 40, "tiny-Copy1.ipynb": 40}, "tiny.ipynb"),
        ({"tiny.ipynb": 40, "tiny-Copy1.ipynb": 58}, "tiny.ipynb"),  # the same minute
        ({"tiny.ipynb": 40, "tiny - Copy.ipynb": 40}, "tiny.ipynb"),
        ({"tiny.ipynb": 40, "tiny (1).ipynb": 40}, "tiny (1).ipynb"),  # a browser's second
        ({"tiny.ipynb": 40, "tiny-Copy1.ipynb": 100}, "tiny-Copy1.ipynb"),
        ({"tiny-Copy1.ipynb": 40, "tiny-Copy2.ipynb": 20}, "tiny-Copy1.ipynb"),
    ],
)
def test_a_copy_of_the_same_minute_is_not_newer(
    folder: ClassFolder, tmp_path: Path, files: dict[str, int], kept: str
) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as packed:
        for name, seconds in files.items():
            when = (2026, 3, 1, 12, seconds // 60, seconds % 60)
            packed.writestr(zipfile.ZipInfo(f"{MOODLE}{name}", when), name)
    for name in (False, True):
        found = plan(folder, tmp_path / "m.zip", assignment=LESSON if name else None)
        (best,) = [one for one in found.decisions if one.action == collecting.TAKE]
        assert best.path == f"{MOODLE}{kept}"


def test_a_notebook_of_another_name_needs_the_assignment(
    folder: ClassFolder, tmp_path: Path
) -> None:
    path = pack(tmp_path / "m.zip", {"Ada L_1_assignsubmission_file_/my work.ipynb": b"1"})
    assert "say which it is with --assignment" in "".join(left_out(plan(folder, path)).values())
    found = plan(folder, path, assignment=LESSON)
    assert list(taken(found).values()) == [to("ada-l", "my work")]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("tiny.ipynb", ("tiny", 0)),
        ("tiny-3.ipynb", ("tiny", 3)),
        ("tiny (2).ipynb", ("tiny", 2)),
        ("tiny-Copy1.ipynb", ("tiny", -1)),
        ("tiny (1)-12.ipynb", ("tiny", 12)),
        ("-1.ipynb", ("-1", 0)),
    ],
)
def test_what_an_lms_adds_to_a_name_is_bestoff(file: str, expected: tuple[str, int]) -> None:
    assert stem(file) == expected


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (f"../../{MOODLE}tiny.ipynb", "leads out"),
        (f"/etc/{MOODLE}tiny.ipynb", "leads out"),
        (f"C:\\{MOODLE}tiny.ipynb", "leads out"),
        (f"{MOODLE}..\\..\\tiny.ipynb", "leads out"),
        (f"{MOODLE}work.zip", "unpack it"),
        (f"{MOODLE}work.tar.gz", "unpack it"),
    ],
)
def test_what_could_do_harm_is_left_out_and_named(
    folder: ClassFolder, tmp_path: Path, name: str, why: str
) -> None:
    good = "Bob X_2_assignsubmission_file_/tiny.ipynb"
    found = plan(folder, pack(tmp_path / "evil.zip", {name: b"evil", good: b"good"}))
    assert list(taken(found)) == [good]
    assert [note for note in left_out(found).values() if why in note]
    collecting.carry_out(folder, found)
    wrote = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert "work.zip" not in wrote
    assert (folder.root / to("bob-x")).read_bytes() == b"good"


def test_links_and_macos_files(folder: ClassFolder, tmp_path: Path) -> None:
    link = zipfile.ZipInfo(f"{MOODLE}tiny.ipynb", NOON)
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = tmp_path / "links.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(link, "/etc/passwd")
        packed.writestr(f"__MACOSX/{MOODLE}._tiny.ipynb", b"x")
        packed.writestr(f"{MOODLE}.DS_Store", b"x")
    found = plan_layout(folder, path)
    assert left_out(found) == {f"{MOODLE}tiny.ipynb": "it is a link, or not a regular file"}
    unpacked = tmp_path / "unpacked" / MOODLE
    unpacked.mkdir(parents=True)
    (unpacked / "tiny.ipynb").symlink_to("/etc/passwd")
    assert "link" in "".join(left_out(plan_layout(folder, tmp_path / "unpacked")).values())


def plan_layout(folder: ClassFolder, path: Path) -> collecting.Plan:
    return collecting.plan(folder, [path], layout="moodle")


def test_names_that_are_not_marked_as_utf8(folder: ClassFolder, tmp_path: Path) -> None:
    name = "Zoë Ü_1_assignsubmission_file_/tiny.ipynb"
    path = pack(tmp_path / "old.zip", {name: b"1"})
    data = path.read_bytes()
    path.write_bytes(data.replace(b"\x00\x08\x00\x00", b"\x00\x00\x00\x00"))  # the UTF-8 flag
    with zipfile.ZipFile(path) as packed:
        assert packed.infolist()[0].filename != name
    assert list(taken(plan(folder, path)).values()) == [to("zoë-ü")]


def test_too_much_is_refused_and_nothing_is_written(
    folder: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"{MOODLE}{n}.ipynb": b"x" for n in range(12)}
    many["Bob X_2_assignsubmission_file_/tiny.ipynb"] = b"x"
    monkeypatch.setattr(archives, "MAX_NOTEBOOKS", 10)
    with pytest.raises(ArchiveError, match=f"than 10 notebooks.*12 of them in '{MOODLE[:-1]}'"):
        plan(folder, pack(tmp_path / "many.zip", many))
    names = [f"X_{n}_assignsubmission_file_/tiny.ipynb" for n in range(9)]
    monkeypatch.setattr(collecting, "MAX_TOTAL", 8)
    with pytest.raises(ArchiveError, match="more than"):
        plan(folder, pack(tmp_path / "large.zip", dict.fromkeys(names, b"x")))
    monkeypatch.setattr(collecting, "MAX_TOTAL", 2**30)
    settings = folder.root / "class.toml"
    settings.write_text(settings.read_text().replace("size = 25", "size = 0.00001"))
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(f"{MOODLE}tiny.ipynb", b"0" * 10_000)
    assert "MB without its outputs" in "".join(left_out(plan(folder, bomb)).values())


def test_what_nobody_reads_stops_no_class(
    folder: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A student may hand in folders full of other files, data, and notebooks that are too large."""
    monkeypatch.setattr(archives, "MAX_NOTEBOOKS", 4)
    monkeypatch.setattr(archives, "MAX_NOTEBOOK_BYTES", 10)
    monkeypatch.setattr(collecting, "MAX_TOTAL", 20)
    files = {f"{MOODLE}modules/{n}.js": b"0123456789abcdef" for n in range(12)}
    files |= {f"{MOODLE}old/{n}/tiny.ipynb": b"0123456789abcdef" for n in range(2)}
    files |= {
        f"{MOODLE}tiny.ipynb": b"9876543210",
        "Bob X_2_assignsubmission_file_/tiny.ipynb": b"1",
    }
    found = plan(folder, pack(tmp_path / "much.zip", files))
    assert set(taken(found).values()) >= {to("bob-x")}


def test_damaged_and_wrong_archives(folder: ClassFolder, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="does not exist"):
        plan(folder, tmp_path / "none.zip")
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(ArchiveError, match="neither a zip nor a folder"):
        plan(folder, tmp_path / "text.zip")
    with pytest.raises(LayoutError, match="no path is one"):
        plan(folder, pack(tmp_path / "odd.zip", {"a.ipynb": b"1"}))
    damaged = pack(tmp_path / "cut.zip", {f"{MOODLE}tiny.ipynb": b"content to be spoilt"})
    damaged.write_bytes(damaged.read_bytes().replace(b"spoilt", b"SPOILT"))
    assert "damaged" in "".join(left_out(plan(folder, damaged)).values())


def test_a_submitted_folder_that_is_a_link_is_not_written_through(
    folder: ClassFolder, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder.root / "submitted" / "ada-l").symlink_to(tmp_path / "elsewhere")
    found = plan(folder, pack(tmp_path / "a.zip", {f"{MOODLE}tiny.ipynb": b"1"}))
    collecting.carry_out(folder, found)
    assert not os.listdir(tmp_path / "elsewhere")
    assert "is no folder" in found.decisions[0].note


def test_many_exceptions_are_totals_and_names_come_on_request(
    folder: ClassFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sixty files, half of them of people whom the roster does not have, and one who is missing."""
    ids = [f"s{number:02}" for number in range(60)]
    rows = "".join(f"{one},First,Last{one},,\n" for one in [*ids[:30], "absent"])
    rows += "gone,First,Gone,,withdrawn\n"
    (folder.root / "roster.csv").write_text(f"id,first_name,last_name,email,status\n{rows}")
    files = {f"{one}/{LESSON}/tiny.ipynb": b"1" for one in [*ids, "gone"]}
    path = pack(tmp_path / "a.zip", {**files, f"s01/{LESSON}/notes.txt": b"x"})
    assert main(["collect", str(folder.root), str(path), "--layout", "plain"]) == 0
    out = capsys.readouterr().out
    assert "and 10 more (--details)" in out and "and 12 more files like these" in out
    assert "not on the roster: 30: s30, s31" in out
    assert f"handed in nothing for {LESSON}: 1: absent" in out and "withdrawn: 1: gone" in out
    assert "61 new" in out
    assert out.count("  new: ") == 19  # and what was left out
    assert main(["collect", str(folder.root), str(path), "--layout", "plain", "--details"]) == 0
    assert capsys.readouterr().out.count("  unchanged: ") == 61


def test_the_command(
    folder: ClassFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = pack(tmp_path / "a.zip", {f"{MOODLE}tiny.ipynb": b"1"})
    settings = folder.root / "class.toml"
    dated = settings.read_text().replace("[due]", f'[due]\n"{LESSON}" = 2026-02-27T12:00:00+00:00')
    settings.write_text(dated)
    assert main(["collect", str(folder.root), str(path), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "late: 1: ada-l" in out and to("ada-l") not in out
    assert main(["collect", str(folder.root), str(path), "--dry-run", "--details"]) == 0
    out = capsys.readouterr().out
    assert "layout moodle" in out and "_assignsubmission_" in out
    assert to("ada-l") in out and "late" in out and "Nothing was written" in out
    assert not list((folder.root / "submitted").iterdir())
    settings.write_text(dated.replace("grace_minutes = 15", "grace_minutes = 10_000"))
    assert main(["collect", str(folder.root), str(path), "--dry-run", "--details"]) == 0
    out = capsys.readouterr().out
    assert "late: " not in out and "late, which costs nothing" in out
    settings.write_text(dated)
    assert main(["collect", str(folder.root), str(path), "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [(one["student"], one["action"]) for one in files] == [("ada-l", "new")]
    pack(path, {f"{MOODLE}tiny.ipynb": b"1", f"{MOODLE}other.ipynb": b"2"})
    assert main(["collect", str(folder.root), str(path)]) == 1
    assert main(["collect", str(folder.root), str(tmp_path / "none.zip")]) == 2
