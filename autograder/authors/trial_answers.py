"""What students read of answers that others wrote.

See ``autograder measure answers DIR``. ``DIR`` holds ``LESSON/EXERCISE/NAME.py``, one answer a
file; its first line may say in a comment what is wrong. Each answer is put into the solved lesson.
In a kernel, beside what lies beside a released notebook, its visible check runs; and the notebook
is graded.
"""

from __future__ import annotations

import contextlib
import copy
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.box.boxes import Boxes
from autograder.box.sandbox import BUBBLEWRAP, NONE, examine
from autograder.build.beside import write_data
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Lesson
from autograder.course.libraries import libraries_to_import
from autograder.grade.grading import grade
from autograder.grade.limits import Limits
from autograder.grade.result import PASSED
from autograder.grade.tester import Tester
from autograder.notebooks import (
    DEMONSTRATION,
    HIDDEN,
    exercise_of,
    grade_id,
    is_answer,
    is_test,
    tags,
)

#: Seed of the inputs when grading.
SEED = 20260


@dataclass
class Read:
    """What came of one answer."""

    lesson: str
    exercise: str
    name: str
    source: str
    seconds: float = 0.0
    box: list[str] = field(default_factory=list)
    points: float = 0.0
    of: float = 0.0
    messages: list[str] = field(default_factory=list)

    def text(self) -> str:
        """For whoever judges it."""
        lines = [
            f"=== {self.lesson[:2]} {self.exercise} {self.name}: {self.source.splitlines()[0]}"
        ]
        lines += [f"  box ({self.seconds:.2f} s):", *(f"    {line}" for line in self.box)]
        lines += [f"  graded {self.points:g} of {self.of:g}:"]
        lines += [f"    {line}" for message in self.messages for line in message.splitlines()]
        return "\n".join(lines)


def answers(folder: Path, lesson: Lesson) -> list[Read]:
    """The answers to a lesson's exercises, in order of their files."""
    return [
        Read(lesson.folder, name, path.stem, path.read_text(encoding="utf-8"))
        for name in lesson.exercises
        for path in sorted((folder / lesson.folder / name).glob("*.py"))
    ]


def in_a_notebook(lesson: Lesson, read: list[Read], folder: Path) -> None:
    """Run each answer's visible check in one kernel, in a folder as a student has it."""
    write_data(lesson, folder)
    cells = [
        nbformat.v4.new_code_cell(cell.source)
        for cell in lesson.notebook.cells
        if cell.cell_type == "code" and DEMONSTRATION not in tags(cell) and not is_test(cell)
    ]
    checks: list[NotebookNode] = []
    for answer in read:
        cells.append(nbformat.v4.new_code_cell(answer.source))
        checks.append(nbformat.v4.new_code_cell(_visible(lesson, answer.exercise)))
        clock = [nbformat.v4.new_code_cell("import time; print(time.time())") for _ in range(2)]
        solved = nbformat.v4.new_code_cell(lesson.exercises[answer.exercise])
        cells += [clock[0], checks[-1], clock[1], solved]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(  # an answer without an end is interrupted, and the next one is tried
        notebook, timeout=120, interrupt_on_timeout=True, allow_errors=True, resources=resources
    ).execute()
    for answer, check in zip(read, checks):
        place = next(n for n, cell in enumerate(cells) if cell is check)
        before, after = (float(cells[n].outputs[0]["text"]) for n in (place - 1, place + 1))
        answer.seconds = after - before
        answer.box = list(_shown(check))


def _visible(lesson: Lesson, exercise: str) -> str:
    names = list(lesson.exercises)
    for name, cell in lesson.tests.items():
        if exercise_of(name, names) == exercise and not HIDDEN.search(cell.source):
            return str(cell.source)
    return ""


def _shown(cell: NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        if output.output_type == "display_data":
            yield from output.data["text/plain"].splitlines()
            return
    for output in cell.outputs:
        yield from (output.get("text") or f"{output.get('ename')}: {output.get('evalue')}").split(
            "\n"
        )


def when_graded(lesson: Lesson, read: list[Read], folder: Path) -> None:
    """Grade a notebook with each answer."""
    write_source(lesson, folder)
    bundle = Bundle.load(folder)
    tester = Tester(bundle, Limits().test)
    works = all(protection.works for protection in examine())
    libraries = libraries_to_import(bundle.setup)
    with contextlib.closing(Boxes(BUBBLEWRAP if works else NONE, libraries)) as boxes:
        for answer in read:
            notebook = copy.deepcopy(bundle.notebook)
            for cell in notebook.cells:
                if is_answer(cell) and grade_id(cell) == answer.exercise:
                    cell.source = answer.source
            started = time.monotonic()
            data = json.dumps(notebook).encode()
            verdict = grade(data, bundle, make_box=boxes.start, seed=SEED, tester=tester)
            for test in verdict.tests:
                if test.exercise == answer.exercise:
                    answer.points += test.points
                    answer.of += test.max_points
                    if test.outcome != PASSED:
                        answer.messages.append(f"{test.grade_id}: {test.says}")
                elif test.outcome != PASSED:
                    answer.messages.append(f"OTHER {test.grade_id}: {test.says}")
            answer.messages.append(f"({time.monotonic() - started:.2f} s)")
