"""A student's course, played through: cells run in a shell that is a notebook's kernel as far as
the kit can tell, each notebook in a process of its own, with the kit that lies beside it.

``python -m tests.played`` reads what to run, a line of JSON, and prints what the cells said.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from autograder.course.implementations import alternatives
from autograder.course.lessons import Lesson
from autograder.course.prerequisites import _MARKERS
from autograder.notebooks import DEMONSTRATION, SETUP, grade_id, is_answer, tags

from .conftest import ROOT


class Notebook(NamedTuple):
    """A kernel's folder, its cells, each with a name, and more environment variables."""

    folder: Path
    cells: Sequence[tuple[str, str]]
    environment: Mapping[str, str] = {}


def solutions(lesson: Lesson) -> dict[str, str]:
    """The course's own answers to a lesson, as somebody would write them."""
    return {name: _MARKERS.sub("", source) for name, source in lesson.exercises.items()}


def first_alternatives(lesson: Lesson) -> dict[str, str]:
    """The first right answer that is written otherwise, where there is one."""
    answers = solutions(lesson)
    for other in reversed(list(alternatives(lesson))):
        answers[other.exercise] = other.source
    return answers


@cache
def _server() -> subprocess.Popen[str]:
    """The process that has imported all that notebooks import, and forks them."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.played"],
        cwd=ROOT,
        env={**os.environ, "MPLBACKEND": "agg"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.kill)
    return server


def run(*notebooks: Notebook) -> list[dict[str, str]]:
    """What the cells of notebooks that run at once said, by their names.

    A cell that raises has its exception as ``failed NAME`` too.
    """
    books = [(str(book.folder), book.cells, book.environment) for book in notebooks]
    pipes = _server().stdin, _server().stdout
    assert pipes[0] is not None
    assert pipes[1] is not None
    print(json.dumps(books), file=pipes[0], flush=True)
    return list(json.loads(pipes[1].readline()))


def play(
    course: Path,
    answers: Mapping[Lesson, Mapping[str, str]],
    *,
    demonstrations: Sequence[str] = (),
) -> dict[str, dict[str, str]]:
    """Write answers into the notebooks of a student's course, in order, and run these.

    Args:
        course: the student's folder.
        answers: source by exercise; others are left as they are.
        demonstrations: numbers of lessons whose demonstrations run too.

    Returns:
        Of each lesson what its cells said, by grade_id, by "setup" or by their place.
    """
    said = {}
    for lesson, written in answers.items():
        path = course / lesson.folder / f"{lesson.notebook_name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        cells = []
        for place, cell in enumerate(notebook.cells):
            if is_answer(cell) and cell.cell_type == "code":
                cell.source = written.get(grade_id(cell), cell.source)
            shown = DEMONSTRATION in tags(cell) and lesson.folder[:2] not in demonstrations
            if cell.cell_type == "code" and not shown:
                name = "setup" if SETUP in tags(cell) else grade_id(cell) or f"cell {place}"
                cells.append((name, cell.source))
        nbformat.write(notebook, path)
        (said[lesson.folder],) = run(Notebook(path.parent, cells))
    return said


def _run(folder: str, cells: Sequence[tuple[str, str]]) -> dict[str, str]:
    from IPython.core.interactiveshell import InteractiveShell

    os.chdir(folder)
    sys.path.insert(0, folder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "lesson_kit"]:
        del sys.modules[name]
    shell = InteractiveShell.instance()
    shell.kernel = object()
    said: dict[str, str] = {}
    for name, source in cells:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            result = shell.run_cell(source, store_history=True)
        said[name] = out.getvalue()
        error = result.error_in_exec or result.error_before_exec
        if error is not None:
            said[f"failed {name}"] = repr(error)
    return said


def _main() -> None:
    import ipykernel.ipkernel  # noqa: F401  # so the kit sees a kernel's process
    import matplotlib.pyplot  # noqa: F401
    import seaborn  # noqa: F401
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        children: list[tuple[int, int]] = []
        for folder, cells, environment in json.loads(line):
            readable, writable = os.pipe()
            child = os.fork()
            if not child:
                status = 1
                try:
                    os.environ.update(environment)
                    said: Any = _run(folder, cells)
                    with open(writable, "w") as pipe:
                        json.dump(said, pipe)
                    status = 0
                finally:
                    os._exit(status)
            os.close(writable)
            children.append((child, readable))
        said = []
        for child, readable in children:
            with open(readable) as pipe:
                said.append(json.load(pipe))
            os.waitpid(child, 0)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    _main()
