"""What every command owes its user: an example, exit statuses, one line for wrong use, JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import click
import pytest

from autograder.classroom.folder import ClassFolder
from autograder.classroom.new_gradebook import begin_gradebook
from autograder.cli.main import FORMER, cli, main

from ..classes import LESSON, grade_here, hand_in, new, solved, without_workers
from ..submissions import boxes


def commands() -> dict[str, click.Command]:
    """All commands, by what is typed; of a command that has kinds, each of them."""
    typed: dict[str, click.Command] = {}
    for name, made in cli.commands.items():
        if isinstance(made, click.Group):
            typed |= {f"{name} {kind}": its_kind for kind, its_kind in made.commands.items()}
        else:
            typed[name] = made
    assert typed, "there are no commands"
    return typed


@pytest.mark.parametrize("name", commands())
def test_help_has_an_example_and_the_exit_statuses(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as asked:
        main([*name.split(), "--help"])
    assert asked.value.code == 0
    said = capsys.readouterr().out
    example = re.search(rf"^example: autograder ({name}\b.*)$", said, re.M)
    assert example, said
    words = shlex.split(example[1].removeprefix(name))
    commands()[name].make_context(name, words)  # it is right use
    statuses = re.findall(r"^  (\d)  (\S.*)$", said.partition("\nexit status:\n")[2], re.M)
    assert len({means for _, means in statuses}) == len(statuses)
    assert {"0", "2"} <= {number for number, _ in statuses}


@pytest.mark.parametrize("name", commands())
def test_every_argument_is_explained(name: str) -> None:
    made = commands()[name]
    explained = [one.get_help_record(click.Context(made)) for one in made.params]
    assert not [record for record in explained if record is None or not record[1]]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    """A class of two, graded."""
    folder = new(tmp_path_factory.mktemp("commands"))
    hand_in(folder, "ada", solved(folder))
    hand_in(folder, "bob", solved(folder, double="def double(x):\n    return x\n"))
    grade_here(folder)
    return folder


@pytest.fixture
def here(graded: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with things to use wrongly; the class is ``class``, the course ``course``."""
    (tmp_path / "class").symlink_to(graded.root)
    (tmp_path / "course").symlink_to(graded.root.parent / "course")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("text\n")
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as packed:
        packed.writestr("homework.ipynb", "{}")
    (tmp_path / "names.csv").write_text("Nickname\nAda\n")
    (tmp_path / "twice.csv").write_text("id\nada\nada\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder but the gradebook, which nbgrader opens for writing."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "gradebook.db"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def refused(
    command: str, says: str, here: Path, capsys: pytest.CaptureFixture[str], status: int = 2
) -> None:
    """Run a command that is wrong use: one line that helps, and nothing is changed."""
    before = contents(here), contents(here / "class")
    assert main(shlex.split(command)) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("autograder: ") and err.count("\n") == 1, err
    assert says in err
    assert (contents(here), contents(here / "class")) == before


IN_A_CLASS = (
    "collect {} odd.zip",
    "export {} --to feedback",
    "export {} --to csv",
    "report {}",
    "grade {}",
    f"grade {{}} --mended {LESSON}",
)


@pytest.mark.parametrize("command", IN_A_CLASS)
def test_a_class_that_is_none(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(command.format("nowhere"), "make a class with `autograder new-class", here, capsys)
    refused(command.format("empty"), "is not a class", here, capsys)
    refused(command.format("file"), "is not a class", here, capsys)


@pytest.mark.parametrize("command", IN_A_CLASS)
def test_a_slip_in_class_toml_stops_every_command(
    command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = here / "class" / "class.toml"
    before = settings.read_text()
    settings.write_text(before.replace("[late]", "[lates]"))
    try:
        refused(command.format("class"), "lates is unknown; there are title, seed", here, capsys)
    finally:
        settings.write_text(before)


@pytest.mark.parametrize(
    ("old", "slip", "says"),
    [
        ("seed = ", "sed = ", "sed is unknown"),
        ("[due]", "[due]\n01-tiny = tomorrow", "is not valid TOML"),
        ("[due]", '[due]\n"01-tiny" = "tomorrow"', "an offset without quotes"),
        ("[due]", '[due]\n"1-tiny" = 2030-01-01T00:00:00Z', "no assignment; there are 01-tiny"),
        ("per_day = 0", "perday = 0", "late.perday is unknown"),
        ("cell = 30", 'cell = "30"', "limits.cell should be a positive number"),
        ("[limits]", '[limits]\ndb_url = "sqlite:///x.db"', "limits.db_url is unknown"),
        ("[due]", '[limits."1-tiny"]\ncell = 1\n[due]', "limits.1-tiny is unknown"),
        ("[collect]", "[collect]\npatern = 'x'", "collect.patern is unknown"),
        ("[collect]", "[collect]\npattern = '('", "no regular expression"),
        ("[export]", '[export]\n"1-tiny" = "Homework"', "export.1-tiny is unknown"),
        ("[export]", '[export]\n"01-tiny" = 1', "table of columns' names"),
        ("[due]", '[due]\n"01-tiny" = 2026-03-01T12:00:00', "an offset"),
        ("per_day = 0", "per_day = 110", "at most 100"),
        ("per_day = 0", "per_day = -1", "a number from 0"),
        ("cell = 30", "cell = -1", "positive number"),
        ("seed = ", "seed = -", "whole number"),
        ("[collect]", "", "pattern"),
    ],
)
def test_slips_in_class_toml(
    old: str, slip: str, says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = here / "class" / "class.toml"
    before = settings.read_text()
    if not slip:
        slip, old, says = "collect = 'x'\nseed = ", "seed = ", "collect should be a table"
        settings.write_text(before.replace("[collect]", "").replace(old, slip))
    else:
        settings.write_text(before.replace(old, slip, 1))
    try:
        refused("grade class", says, here, capsys)
    finally:
        settings.write_text(before)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("collect class odd.zip --assignment 99-none", "there are 01-tiny"),
        ("export class --to feedback --assignment 99-none", "there are 01-tiny"),
        ("export class --to csv --assignment 99-none", "there are 01-tiny"),
        ("grade class --assignment 99-none", "there are 01-tiny"),
        ("grade class --mended 99-none", "there are 01-tiny"),
        ("grade class --student nobody", "'nobody' has handed nothing in"),
        ("new-class class --course course", "choose a new folder"),
        ("new-class file --course course", "choose a new folder"),
        ("new-class file/class --course course", "file/class"),
        ("new-class fresh --course empty", "run this in the course's own folder"),
        ("new-class fresh --course course --lesson 99", "there are 01-tiny"),
        ("new-class fresh --course course --core", "leave --core out"),
        ("new-class fresh --roster none.csv", "none.csv cannot be read"),
        ("new-class fresh --roster empty", "empty cannot be read"),
        ("new-class fresh --roster names.csv", "say which one is: --column id=NAME"),
        ("new-class fresh --roster names.csv --column id=Matrikel", "no such column: id=Matrikel"),
        ("new-class fresh --roster names.csv --column nick=Nickname", "ours are id, first_name"),
        ("new-class fresh --roster names.csv --column id", "OURS=THEIRS"),
        ("new-class fresh --column id=Nickname", "name that too"),
        ("new-class fresh --roster twice.csv", "stands there twice"),
        ("collect class none.zip", "name the zip that your LMS gave"),
        ("collect class file", "download the submissions again"),
        ("collect class broken.zip", "download the submissions again"),
        ("collect class odd.zip", "[collect] pattern in class.toml"),
        ("collect class empty", "[collect] pattern in class.toml"),
        ("collect class odd.zip --layout gradescope", "export the submissions from Gradescope"),
        ("export class --to canvas --template none.csv", "none.csv cannot be read"),
        ("export class --to canvas --template names.csv", "in Canvas, open Grades, then Export"),
        ("export class --to moodle --template names.csv", "Download grading worksheet"),
        ("export class --to csv --template names.csv", "leave --template out"),
        ("export class --to csv --output file", "file exists already; name another"),
        ("export class --to csv --output empty", "empty exists already; name another"),
        ("export class --to csv --output file/out.csv", "name another place"),
        ("export class --to terms --output store", "and --term NAME"),
        ("export class --to feedback --term x", "--to feedback takes no --term; leave it out"),
        ("export class --to release --output x", "--to release takes no --output"),
        ("report class --about similar", "name it with --assignment"),
        ("report class --about requests --names", "--about requests takes no --names"),
        ("grade class --mended 01-tiny --student ada", "--mended takes no --student"),
        ("grade class --mended 01-tiny --course empty", "in the course's own folder"),
        ("check none.ipynb", "none.ipynb does not exist"),
        ("check empty", "empty"),
        ("update none --from course", "none is no course folder"),
        ("update course --from empty", "no course folder"),
        ("lint 99 --course course", "no lesson '99' in the course; there are 01-tiny"),
        ("lint --course empty", "run this in the course's own folder"),
        ("build --lesson 99 --course course", "no lesson '99' in the course; there are 01-tiny"),
        ("trial 99 --course course", "no lesson '99' in the course; there are 01-tiny"),
        ("measure mutants 99 --course course", "no lesson '99' in the course; there are 01-tiny"),
        ("measure repairs 99 --course course", "no lesson '99' in the course; there are 01-tiny"),
        (
            "measure lost-points 99 --course course",
            "no lesson '99' in the course; there are 01-tiny",
        ),
        (
            "measure answers empty 99 --course course",
            "no lesson '99' in the course; there are 01-tiny",
        ),
        (
            "measure answers nowhere --course course",
            "nowhere is no folder; name the one that holds",
        ),
    ],
)
def test_wrong_use(command: str, says: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(command, says, here, capsys)


@pytest.mark.parametrize("name", FORMER)
def test_a_name_that_a_command_had_once_says_what_to_type(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(
        f"{name} class", f"`autograder {name}` is `autograder {FORMER[name]}` now", here, capsys
    )
    assert any(FORMER[name].startswith(typed) for typed in commands())


def test_a_zip_of_feedback_that_cannot_be_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for target, says in (("file", "name another file"), ("none/pages.zip", "cannot be written")):
        assert main(["export", "class", "--to", "feedback", "--output", target]) == 2
        assert says in capsys.readouterr().err
    assert (here / "file").read_text() == "text\n"


@pytest.mark.parametrize(
    "command",
    [
        "grade class --quiet --sandbox BACKEND",
        "export class --to feedback",
        "export class --to csv",
    ],
)
def test_a_gradebook_that_is_none(
    command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gradebook = here / "class" / "gradebook.db"
    before = gradebook.read_bytes()
    gradebook.write_bytes(b"this is no database, but long enough to be looked at" * 20)
    try:
        refused(
            command.replace("BACKEND", boxes().backend),
            "gradebook.db cannot be used: file is not a database",
            here,
            capsys,
        )
    finally:
        gradebook.write_bytes(before)


def test_a_gradebook_that_lost_a_submission(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gradebook = here / "class" / "gradebook.db"
    before = gradebook.read_bytes()
    gradebook.unlink()
    begin_gradebook(f"sqlite:///{gradebook}")
    try:
        assert main(["export", "class", "--to", "csv"]) == 2
        assert "does not know ada/01-tiny" in capsys.readouterr().err
    finally:
        gradebook.write_bytes(before)


@pytest.mark.parametrize(
    ("db_url", "says"),
    [
        ("nonsense", "that db_url in class.toml names cannot be used"),
        ("postgresql+none://me:secret@localhost/x", "cannot be used"),
    ],
)
def test_a_db_url_that_is_none(
    db_url: str, says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = here / "class" / "class.toml"
    before = settings.read_text()
    settings.write_text(before.replace("[limits]", f'db_url = "{db_url}"\n[limits]', 1))
    try:
        assert main(["export", "class", "--to", "csv"]) == 2
        said = capsys.readouterr().err
        assert says in said and "secret" not in said
    finally:
        settings.write_text(before)


def test_what_the_system_refuses_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("autograder.files.write_whole", full)
    refused("export class --to csv", "No space left on device; make room", here, capsys)


def test_stopped_by_the_user(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.marking.grade_class.grade_class", stop)
    refused("grade class", "the same command goes on from here", here, capsys, status=130)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_nobody_reads_what_is_said(unbuffered: str) -> None:
    """As in ``autograder doctor | true``."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "autograder.cli.main", "doctor", "--json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("report class", "assignments"),
        ("grade class --sandbox BACKEND", "submissions sandbox changes not_judged not_graded"),
        ("grade class --mended 01-tiny --course course --sandbox BACKEND", "submissions"),
        ("export class --to feedback", "pages not_graded problems zip"),
        ("export class --to csv", "file rows notes rule"),
        ("collect class odd.zip --layout moodle", "files layouts set_aside"),
        ("doctor", "backend protections"),
        ("lint --course course", "lessons found"),
    ],
)
def test_json_is_all_that_stands_on_standard_output(
    command: str, names: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with without_workers():
        assert main([*shlex.split(command.replace("BACKEND", boxes().backend)), "--json"]) in (0, 1)
    tree = json.loads(capfd.readouterr().out)
    assert set(names.split()) <= set(tree)
