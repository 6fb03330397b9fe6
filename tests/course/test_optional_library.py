"""Lesson 16 where Keras is installed, and where it is not; what holds for any such library."""

from __future__ import annotations

import contextlib
import json
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.box.boxes import Boxes
from autograder.box.sandbox import best_backend
from autograder.build.beside import write_data
from autograder.classroom.folder import ClassFolder
from autograder.classroom.new_class import new_class
from autograder.course.lessons import Course
from autograder.course.libraries import (
    LibraryLacking,
    ask_for_libraries,
    optional_libraries,
    setup_of,
)
from autograder.diagnose import catalogue
from autograder.grade.engine import under
from autograder.grade.limits import Limits
from autograder.grade.task import Task
from autograder.grade.worker import grade_task
from autograder.marking.grade_class import grade_class
from autograder.notebooks import grade_id, is_test
from lesson_kit.absent import Absent, NotInstalled
from lesson_kit.known_mistakes import KNOWN_MISTAKES
from lesson_kit.setting import DATA_FILE

from ..classes import LESSON as TINY
from ..classes import hand_in, quiet, solved
from ..conftest import COURSE, ROOT, shown
from ..submissions import protections
from ..tiny import tiny_course

LESSON = COURSE.lesson("16-keras")
SAYS = "Keras is not installed: `pip install keras=={}` installs it; restart Python then."
HIDE = "import sys\nsys.modules['keras'] = None  # what `import keras` then says: there is none"
TRIES = "try:\n    import no_such_library\nexcept ImportError:\n    no_such_library = None\n"


def pinned() -> str:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    (pin,) = [line for line in lines if line.startswith("keras==")]
    return pin.removeprefix("keras==")


def test_the_extra_is_what_the_lesson_tries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert [name.partition(">=")[0] for name in extras["keras"]] == ["keras"]
    assert set(extras["keras"]) <= set(extras["test"]), "CI is to run the lesson"
    assert optional_libraries(setup_of(LESSON.notebook)) == ("keras",)
    others = {
        lesson.folder for lesson in COURSE.lessons if optional_libraries(setup_of(lesson.notebook))
    }
    assert others <= {LESSON.folder}


def test_without_keras_the_lesson_runs_and_says_so_in_one_sentence(tmp_path: Path) -> None:
    """Solved: whatever needs no Keras passes, and a check that needs it stops with the sentence."""
    write_data(LESSON, tmp_path)
    code = [cell for cell in LESSON.notebook.cells if cell.cell_type == "code"]
    cells = [nbformat.v4.new_code_cell(cell.source) for cell in code]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(HIDE), *cells])
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(
        notebook, timeout=300, startup_timeout=300, resources=where, allow_errors=True
    ).execute()
    says = SAYS.format(pinned())
    assert shown(cells[0]).strip() == says
    stopped = []
    for cell, source in zip(cells, code, strict=True):
        for output in cell.outputs:
            if output.output_type == "error":
                assert is_test(source), "only checks may stop"
                assert (output.ename, output.evalue) == ("NotInstalled", says)
                stopped.append(grade_id(source))
    needs = ("test_KerasAttention", "test_KerasMultiHeadAttention", "test_load_keras_weights")
    assert stopped == [name for name in LESSON.tests if name.startswith(needs)]


def test_what_stands_for_a_library_can_be_named_and_not_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    library = Absent("It", "pip install it")
    said = capsys.readouterr().out.strip()
    assert said == "It is not installed: `pip install it` installs it; restart Python then."
    assert not library

    class Mine(library.layers.Layer):  # type: ignore[misc, name-defined]
        pass

    for use in (Mine, library.ops.matmul, lambda: Mine(dtype="float64")):
        with pytest.raises(NotInstalled) as raised:
            use()
        assert str(raised.value) == said


def trying_course(tmp_path: Path) -> Course:
    """The tiny course, whose lesson tries a library that nobody has."""
    root = tiny_course(tmp_path / "course").root
    (source,) = (root / "lessons" / TINY).glob("tiny.py")
    text = source.read_text(encoding="utf-8")
    header = '# %% tags=["setup"]\n'
    assert header in text
    source.write_text(text.replace(header, header + TRIES), encoding="utf-8")
    return Course.load(root)


def test_a_class_is_not_graded_without_the_library_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = new_class(trying_course(tmp_path), tmp_path / "class", say=quiet)
    hand_in(folder, "ada", solved(folder))
    before = sorted(folder.root.rglob("*"))
    with pytest.raises(LibraryLacking) as refused:
        grade_class(ClassFolder.open(folder.root), workers=1, sandbox="none", quiet=True)
    assert "pip install no_such_library" in str(refused.value)
    assert TINY in str(refused.value) and "--assignment" in str(refused.value)
    assert sorted(folder.root.rglob("*")) == before, "nothing was written"


def test_a_worker_of_a_cluster_says_so_too(tmp_path: Path) -> None:
    folder = new_class(trying_course(tmp_path), tmp_path / "class", say=quiet)
    task = Task(b"{}", (), folder.bundle(TINY), 1, Limits(), "none", under("none"))
    with pytest.raises(LibraryLacking):
        grade_task(task)


def test_where_the_library_is_there_nothing_is_refused() -> None:
    ask_for_libraries("01-tiny", "try:\n    import json\nexcept ImportError:\n    json = None\n")
    ask_for_libraries("01-tiny", "import numpy as np")


def test_without_the_library_a_build_keeps_what_is_known_of_mistakes(tmp_path: Path) -> None:
    course = trying_course(tmp_path)
    kept = course.root / "course" / TINY / DATA_FILE
    kept.parent.mkdir(parents=True)
    known: dict[str, object] = {"mistakes": {}}
    kept.write_text(json.dumps({KNOWN_MISTAKES: known}), encoding="utf-8")
    lesson = course.lesson(TINY)
    assert json.loads(catalogue.released_mistakes(lesson)) == known
    assert catalogue.catalogue(lesson) == []


def test_a_fork_server_has_what_its_boxes_need_and_no_other_has_it() -> None:
    look = "import sys\nloaded = 'tabnanny' in sys.modules"
    for libraries in ((), ("tabnanny",)):
        with (
            Boxes(best_backend(protections()), libraries) as boxes,
            contextlib.closing(boxes.start({})) as box,
        ):
            box.run(look, 20)
            assert box.get("loaded", 20).value is bool(libraries)
