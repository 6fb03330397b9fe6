"""A student's course, played through: each lesson's setup, answers and checks in a shell that is
a notebook's kernel as far as the kit can tell.

``python -m tests.played FOLDER PLAN`` plays what a JSON file says, lesson by lesson, and prints
what each cell said, one JSON object a lesson; a lesson is a process of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat

from autograder.course.implementations import alternatives
from autograder.course.lessons import Lesson
from autograder.course.prerequisites import _MARKERS
from autograder.notebooks import DEMONSTRATION, SETUP, grade_id, is_answer, tags

from .conftest import ROOT


def solutions(lesson: Lesson) -> dict[str, str]:
    """The course's own answers to a lesson, as somebody would write them."""
    return {name: _MARKERS.sub("", source) for name, source in lesson.exercises.items()}


def first_alternatives(lesson: Lesson) -> dict[str, str]:
    """The first right answer that is written otherwise, where there is one."""
    found = solutions(lesson)
    for other in reversed(list(alternatives(lesson))):
        found[other.exercise] = other.source
    return found


def play(
    course: Path,
    lessons: Iterable[Lesson],
    answers: Mapping[str, Mapping[str, str]],
    *,
    demonstrations: bool = False,
    environment: Mapping[str, str] | None = None,
) -> dict[str, dict[str, str]]:
    """Write answers into the notebooks of a student's course, and run these.

    Args:
        course: the student's folder.
        lessons: which to play.
        answers: of each lesson, by its folder: source by exercise; others are left as they are.
        demonstrations: whether they run too.
        environment: more variables.

    Returns:
        Of each lesson what its cells said, by grade_id, by "setup" or by their place.
    """
    plan = {lesson.folder: dict(answers.get(lesson.folder, {})) for lesson in lessons}
    for lesson in lessons:
        path = course / lesson.folder / f"{lesson.notebook_name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if is_answer(cell) and cell.cell_type == "code":
                cell.source = plan[lesson.folder].get(grade_id(cell), cell.source)
        nbformat.write(notebook, path)
    command = [
        sys.executable,
        "-m",
        "tests.played",
        str(course.resolve()),
        json.dumps(sorted(plan)),
    ]
    command.append("demonstrations" if demonstrations else "")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "MPLBACKEND": "agg", **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: said for name, said in map(json.loads, done.stdout.splitlines())}


def _play_lesson(folder: Path, demonstrations: bool) -> dict[str, str]:
    """Run the cells of the notebook in a lesson's folder, in this process."""
    from IPython.core.interactiveshell import InteractiveShell

    os.chdir(folder)
    sys.path.insert(0, str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == "lesson_kit"]:
        del sys.modules[name]  # the copy beside the notebook is used, as in a kernel
    shell = InteractiveShell.instance()
    shell.kernel = object()
    said: dict[str, str] = {}
    (path,) = folder.glob("*.ipynb")
    for place, cell in enumerate(nbformat.read(path, as_version=4).cells):
        shown = DEMONSTRATION in tags(cell)
        if cell.cell_type != "code" or (shown and not demonstrations):
            continue
        name = "setup" if SETUP in tags(cell) else grade_id(cell) or f"cell {place}"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            result = shell.run_cell(cell.source, store_history=True)
        said[name] = out.getvalue()
        if shown and result.error_in_exec is not None:
            said[f"failed {name}"] = repr(result.error_in_exec)
    return said


def _main(course: Path, folders: list[str], demonstrations: bool) -> None:
    import ipykernel.ipkernel  # noqa: F401  # so the kit sees a kernel's process
    import matplotlib.pyplot  # noqa: F401
    import seaborn  # noqa: F401
    import torch

    torch.set_num_threads(1)
    for folder in folders:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            status = 1
            try:
                line: Any = folder, _play_lesson(course / folder, demonstrations)
                print(json.dumps(line), flush=True)
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, folder


if __name__ == "__main__":
    _main(Path(sys.argv[1]), json.loads(sys.argv[2]), bool(sys.argv[3]))
