"""A gradebook that is begun here is one that nbgrader knows, and its tools go on with."""

from __future__ import annotations

from pathlib import Path

import nbgrader.api
import pytest
from nbgrader.api import BaseCell, Notebook
from nbgrader.dbutil import upgrade
from nbgrader.preprocessors import SaveCells
from sqlalchemy import text

from autograder.build import build
from autograder.build.alembic import put_alembic_on_path
from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import open_gradebook
from autograder.classroom.hand_out import release
from autograder.classroom.new_gradebook import begin_gradebook

from ..classes import new


@pytest.mark.slow
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


def what_it_knows(folder: ClassFolder) -> list[tuple[object, ...]]:
    """The cells of a gradebook's notebooks, without the ids that each gradebook draws."""
    with open_gradebook(folder.db_url) as gradebook:
        notebooks = [
            (one.name, one.assignment.name, one.kernelspec) for one in gradebook.db.query(Notebook)
        ]
        cells = [
            (type(cell).__name__, *sorted({**cell.to_dict(), "id": ""}.items()))
            for cell in gradebook.db.query(BaseCell)
        ]
    return sorted(notebooks) + sorted(cells, key=repr)


@pytest.mark.slow
def test_cells_that_are_saved_at_once_are_those_that_nbgrader_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new(tmp_path)
    at_once = what_it_knows(folder)
    assert len(at_once) > 5
    release(folder, "01-tiny")  # again: what is there is not doubled
    assert what_it_knows(folder) == at_once
    (folder.root / "gradebook.db").unlink()
    monkeypatch.setattr(build, "SaveCellsAtOnce", SaveCells)
    release(folder, "01-tiny")
    assert what_it_knows(folder) == at_once
