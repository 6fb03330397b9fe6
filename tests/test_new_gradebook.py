"""A gradebook that is begun here is one that nbgrader knows, and its tools go on with."""

from __future__ import annotations

from pathlib import Path

import nbgrader.api
import pytest
from nbgrader.dbutil import upgrade
from sqlalchemy import text

from autograder.build.alembic import put_alembic_on_path
from autograder.classroom.gradebook import open_gradebook
from autograder.classroom.new_gradebook import begin_gradebook


def test_a_gradebook_has_the_form_that_nbgrader_would_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_alembic_on_path()
    newest = nbgrader.api.get_alembic_version()

    def started() -> str:
        raise AssertionError("the program alembic was started")

    db_url = f"sqlite:///{tmp_path}/gradebook.db"
    begin_gradebook(db_url)
    monkeypatch.setattr(nbgrader.api, "get_alembic_version", started)
    with open_gradebook(db_url) as gradebook:
        noted = gradebook.db.execute(text("SELECT version_num FROM alembic_version")).all()
        gradebook.add_assignment("01-tiny")
    assert noted == [(newest,)]
    begin_gradebook(db_url)
    upgrade(db_url)  # what `nbgrader db upgrade` does
    with open_gradebook(db_url) as gradebook:
        assert [assignment.name for assignment in gradebook.assignments] == ["01-tiny"]
