"""Try implementations on a lesson's tests in one plain namespace, as a notebook would.

No box, no sandbox: for authors, who trust their own catalogue. Grading uses
:mod:`autograder.grade.grading`.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from autograder.build.beside import write_companions
from autograder.course.implementations import alternatives, misconceptions
from autograder.course.lessons import Lesson
from autograder.diagnose.plain_run import PlainRun, told
from autograder.notebooks import exercise_of


def report(lesson: Lesson, seeds: list[int]) -> list[str]:
    """What is wrong with the lesson's tests: an empty list when nothing is.

    The solution and every alternative must pass everything; every misconception must fail
    at least one test of its exercise, and of no exercise that does not build on it.
    """
    with PlainRun(lesson) as run:
        complaints = [f"the solution stops at {cell}: {e}" for cell, e in run.stopped.items()]
        for seed in seeds:
            complaints += _right_ones(run, seed)
            complaints += _wrong_ones(run, seed)
    return complaints


def right_answers_refused(lesson: Lesson, seeds: list[int]) -> list[str]:
    """Where the solution or an alternative loses a check, on the inputs of many seeds.

    The part of :func:`report` that is worth many seeds: every notebook is graded on inputs of its
    own, so that a check which a right answer fails on one in thirty costs one student in thirty.
    """
    with PlainRun(lesson) as run:
        return [complaint for seed in seeds for complaint in _right_ones(run, seed)]


def _right_ones(run: PlainRun, seed: int) -> Iterator[str]:
    for cell, error in run.errors({}, seed).items():
        if error:
            yield f"seed {seed}: the solution fails {cell}: {told(error)}"
    for alternative in alternatives(run.lesson):
        tests = run.tests_of({alternative.exercise} | run.dependents(alternative.exercise))
        for cell, error in run.errors(
            {alternative.exercise: alternative.source}, seed, tests
        ).items():
            if error:
                yield f"seed {seed}: alternative {alternative.name} fails {cell}: {told(error)}"


def _wrong_ones(run: PlainRun, seed: int) -> Iterator[str]:
    for misconception in misconceptions(run.lesson):
        errors = run.errors(
            {misconception.exercise: misconception.source},
            seed,
            run.tests_that_see(misconception.exercise),
        )
        failed = {exercise_of(cell, run.names) for cell, error in errors.items() if error}
        if misconception.exercise not in failed:
            yield f"seed {seed}: misconception {misconception.name} is accepted"
        for other in failed - {misconception.exercise} - run.dependents(misconception.exercise):
            yield f"seed {seed}: misconception {misconception.name} also fails {other}"


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
