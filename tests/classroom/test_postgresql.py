"""A class whose gradebook is in PostgreSQL: the same commands, the same grades."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.folder import ClassFolder

from ..classes import LESSON, give_by_hand, grade_here, hand_in, new, scores_in_gradebook, solved
from ..submissions import boxes


def server_programs() -> Path | None:
    """The folder of initdb and postgres; Debian keeps it off the PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    both = [one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()]
    return both[0] if both else None


PROGRAMS = server_programs()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PROGRAMS is None,
        reason="There is no PostgreSQL server on this machine: apt-get install postgresql.",
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("psycopg") is None,
        reason="PostgreSQL's driver is not installed: pip install --editable '.[postgresql]'.",
    ),
]


@pytest.fixture(scope="module")
def db_url() -> Iterator[str]:
    """A server of our own, on a socket in a folder of its own: nothing listens on the network."""
    assert PROGRAMS is not None
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))  # a socket's path must be short
    who: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        nobody = pwd.getpwnam("nobody")
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    programs: dict[str, Any] = {
        "cwd": folder,
        "env": {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(folder)},
    }
    log = folder / "log"
    server = None
    try:
        subprocess.run(
            [
                PROGRAMS / "initdb",
                "-D",
                folder / "data",
                "-E",
                "UTF8",
                "-A",
                "trust",
                "-U",
                "teacher",
                "-N",
            ],
            check=True,
            capture_output=True,
            **programs,
            **who,
        )
        with log.open("wb") as output:
            server = subprocess.Popen(
                [PROGRAMS / "postgres", "-D", folder / "data", "-k", folder, "-F", "-h", ""],
                stdout=output,
                stderr=output,
                **programs,
                **who,
            )
        until = time.monotonic() + 300
        while "ready to accept connections" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, f"PostgreSQL does not start:\n{log.read_text()}"
            time.sleep(0.1)
        yield f"postgresql+psycopg://teacher@/postgres?host={folder}"
    finally:
        if server is not None:
            server.terminate()
            server.wait(300)
        shutil.rmtree(folder)


def in_class(folder: ClassFolder, *words: str) -> None:
    """Run an nbgrader command in the class's folder."""
    command = [sys.executable, "-m", "nbgrader", *words]
    ran = subprocess.run(
        command, cwd=folder.root, capture_output=True, text=True, timeout=900, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_a_class_whose_gradebook_is_in_postgresql(tmp_path: Path, db_url: str) -> None:
    made = new(tmp_path)
    settings = made.root / "class.toml"
    settings.write_text(f'db_url = "{db_url}"\n{settings.read_text()}')
    (made.root / "gradebook.db").unlink()
    with (made.root / "nbgrader_config.py").open("a") as config:
        config.write(f'c.EngineExporter.sandbox = "{boxes().backend}"\n')
    folder = ClassFolder.open(made.root)
    assert folder.db_url == db_url

    # nbgrader finds the address in class.toml as well.
    in_class(folder, "generate_assignment", LESSON, "--force")
    hand_in(folder, "ada", solved(folder, why="Because."))
    hand_in(folder, "bob", solved(folder, double="def double(x):\n    return x + x\n"))
    hand_in(folder, "dan", b"{ broken")
    first = grade_here(folder)
    assert not first.not_judged, first.not_judged[0].result.reason
    assert scores_in_gradebook(folder) == {"ada": 8.0, "bob": 7.0, "dan": 0.0}

    # A person's points are in it too, and stay; a resubmission replaces what the machine gave.
    give_by_hand(folder, "ada", 2.5)
    less = solved(folder, why="Because.", quadruple="def quadruple(x):\n    return x\n")
    hand_in(folder, "ada", less)
    grade_here(folder, students=["ada"])
    hand_in(folder, "dan", solved(folder))
    in_class(folder, "autograde", LESSON, "--student", "dan", "--force")
    assert scores_in_gradebook(folder) == {"ada": 6.5, "bob": 7.0, "dan": 8.0}
    with Gradebook(db_url) as gradebook:
        grades = gradebook.find_submission(LESSON, "bob").notebooks[0].grades
        assert {grade.name: grade.auto_score for grade in grades}["test_double_errors"] == 0.0
    assert not (folder.root / "gradebook.db").exists()
