"""Lessons 18 and 19 with the published chat model, and without it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.beside import write_data
from autograder.course.lessons import Lesson
from lesson_kit.chat_model import PACKAGE, VERSION

from ..conftest import COURSE, ROOT, shown

TALKS, INSIDE = map(COURSE.lesson, ("18-talking-model", "19-inside-a-talking-model"))
WITH_IT, WITHOUT_IT = "The published model SmolLM2-135M-Instruct.", "Small random weights: to see"
HIDE = "from lesson_kit import chat_model\nchat_model.find_spec = lambda name: None"


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("lesson", [TALKS, INSIDE], ids=lambda lesson: lesson.folder)
def test_the_solved_notebook_shows_the_published_model(lesson: Lesson) -> None:
    """Who builds without the package would commit numbers that mean nothing."""
    path = ROOT / "solutions" / lesson.folder / f"{lesson.notebook_name}.ipynb"
    printed = " ".join(map(shown, code_cells(nbformat.read(path, as_version=4))))
    assert WITH_IT in printed
    assert WITHOUT_IT not in printed
    # The chat was not run.
    assert ("Run this cell in JupyterLab" in printed) == (lesson is TALKS)


@pytest.mark.parametrize("lesson", [TALKS, INSIDE], ids=lambda lesson: lesson.folder)
def test_without_the_package_everything_runs_and_one_sentence_says_what_to_install(
    lesson: Lesson,
    tmp_path: Path,
) -> None:
    write_data(lesson, tmp_path)
    cells = [nbformat.v4.new_code_cell(HIDE)]
    cells += [nbformat.v4.new_code_cell(cell.source) for cell in code_cells(lesson.notebook)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, startup_timeout=300, resources=where).execute()
    printed = " ".join(map(shown, cells))
    assert WITH_IT not in printed
    assert printed.count(WITHOUT_IT) == 1
    assert f"`pip install --no-deps {PACKAGE}=={VERSION}`" in printed
