"""Try implementations on a lesson's tests in one plain namespace, as a notebook would.

No box, no sandbox: for authors, who trust their own catalogue. Grading uses
:mod:`autograder.grading`.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import io
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from autograder import checks
from autograder.answers import sealed_answers
from autograder.beside_notebook import MODULES
from autograder.carried_over import EARLIER, as_module, carried_over
from autograder.companions import write_companions
from autograder.course import (
    DEMONSTRATION,
    Course,
    Lesson,
    builds_on,
    exercise_of,
    grade_id,
    is_test,
    tags,
)
from autograder.implementations import alternatives, misconceptions


def run_plainly(lesson: Lesson, replaced: dict[str, str], seed: int = 2017) -> dict[str, str]:
    """Run the solved lesson with some answer cells replaced; demonstrations are left out.

    Returns:
        For each test cell its error, or an empty string where it passed. A key
        ``cell ...`` stands for another cell that failed.
    """
    os.environ.setdefault("MPLBACKEND", "agg")
    sys.modules.update(MODULES)
    sys.modules[EARLIER] = as_module(carried_over(lesson))
    checks.set_answers(sealed_answers(lesson))
    checks.set_seed(seed)
    try:
        return _run_cells(lesson, replaced)
    finally:
        checks.set_answers(None)
        checks.set_seed(2017)


def _run_cells(lesson: Lesson, replaced: dict[str, str]) -> dict[str, str]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outcome: dict[str, str] = {}
    for cell in lesson.notebook.cells:
        if cell.cell_type != "code" or DEMONSTRATION in tags(cell):
            continue
        name = grade_id(cell)
        source = replaced.get(name, cell.source)
        error = ""
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                exec(compile(source, f"<{name or cell['id']}>", "exec"), namespace)
            except Exception as caught:
                frames = traceback.extract_tb(caught.__traceback__)
                error = f"{type(caught).__name__}: {caught} (line {frames[-1].lineno})"
        if is_test(cell):
            outcome[name] = error
        elif error:
            outcome[f"cell {name or cell.source.splitlines()[0]}"] = error
    return outcome


def failed_exercises(lesson: Lesson, outcome: dict[str, str]) -> set[str]:
    """The exercises that lost a test in an outcome of :func:`run_plainly`."""
    names = list(lesson.exercises)
    return {
        exercise_of(name, names)
        for name, error in outcome.items()
        if error and name in lesson.tests
    }


def report(lesson: Lesson, seeds: list[int]) -> list[str]:
    """What is wrong with the lesson's tests: an empty list when nothing is.

    The solution and every alternative must pass everything; every misconception must fail
    at least one test of its exercise, and of no exercise that does not build on it.
    """
    complaints: list[str] = []
    for seed in seeds:
        for cell, error in run_plainly(lesson, {}, seed).items():
            if error:
                complaints.append(f"seed {seed}: the solution fails {cell}: {error}")
        for one in alternatives(lesson):
            for cell, error in run_plainly(lesson, {one.exercise: one.source}, seed).items():
                if error:
                    complaints.append(f"seed {seed}: alternative {one.name} fails {cell}: {error}")
        for one in misconceptions(lesson):
            outcome = run_plainly(lesson, {one.exercise: one.source}, seed)
            failed = failed_exercises(lesson, outcome)
            if one.exercise not in failed:
                complaints.append(f"seed {seed}: misconception {one.name} is accepted")
            dependents = {
                n for n in lesson.exercises if one.exercise in builds_on(lesson.exercises, n)
            }
            for other in failed - {one.exercise} - dependents:
                complaints.append(f"seed {seed}: misconception {one.name} also fails {other}")
    return complaints


def execute(lesson: Lesson, folder: Path) -> float:
    """Run the whole solved lesson in a kernel; leave the notebook and its figures in ``folder``.

    Returns:
        The kernel's processor seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_companions(lesson, folder)
    notebook = copy.deepcopy(lesson.notebook)
    clock = nbformat.v4.new_code_cell("import time; print(time.process_time())")
    notebook.cells.append(clock)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute()
    seconds = float(clock.outputs[0]["text"])
    notebook.cells.pop()
    nbformat.write(notebook, folder / f"{lesson.notebook_name}.ipynb")
    count = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                count += 1
                data = base64.b64decode(output["data"]["image/png"])
                (folder / f"figure-{count:02d}.png").write_bytes(data)
    return seconds


def main() -> None:
    """``python -m autograder.trial 02 [--seeds 3] [--execute FOLDER]``"""
    parser = argparse.ArgumentParser(description="Try a lesson's tests while writing it.")
    parser.add_argument("lesson", help="folder name or number, such as 02")
    parser.add_argument("--seeds", type=int, default=3, help="how many random inputs to try")
    parser.add_argument("--execute", type=Path, help="run all of it, figures go to this folder")
    arguments = parser.parse_args()
    lesson = Course.load(Path.cwd()).lesson(arguments.lesson)
    if arguments.execute:
        seconds = execute(lesson, arguments.execute)
        print(f"{lesson.folder}: {seconds:.1f} processor seconds, see {arguments.execute}")
    complaints = report(lesson, list(range(1, arguments.seeds + 1)))
    print("\n".join(complaints) or f"{lesson.folder}: all tests do what they should")
    for name in lesson.exercises:
        wrong = sum(one.exercise == name for one in misconceptions(lesson))
        right = sum(one.exercise == name for one in alternatives(lesson))
        print(f"  {name}: {wrong} misconceptions, {right} alternatives")
    raise SystemExit(1 if complaints else 0)


if __name__ == "__main__":
    main()
