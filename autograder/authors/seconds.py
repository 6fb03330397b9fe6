"""How long the cells of a lesson take, for its page to say so; see ``autograder measure seconds``.

The lesson's cells run in one kernel. What is measured are processor seconds of one thread, so that
a busy machine says the same as an idle one.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from autograder.build.beside import write_data
from autograder.build.solved_outputs import SECONDS as LONGEST
from autograder.course.cell_headers import SECONDS
from autograder.course.lessons import Lesson
from autograder.notebooks import HIDDEN, is_test

#: What a page says; the nearest of them, by ratio.
_SAID = (5, 10, 20, 40, 60, 90)
#: A cell that takes less says nothing.
FEWEST = 4
_CLOCK = "print(__import__('time').process_time())"


def seconds_of(lesson: Lesson) -> list[float]:
    """Processor seconds of each cell of a lesson's source, in its order.

    0 for text, and for hidden tests, which no student runs.
    """
    cells = lesson.notebook.cells
    run = [
        cell
        for cell in cells
        if cell.cell_type == "code" and not (is_test(cell) and HIDDEN.search(cell.source))
    ]
    clocks = [nbformat.v4.new_code_cell(_CLOCK) for _ in ("begin", *run)]
    page = [clocks[0], *(part for pair in zip(run, clocks[1:], strict=True) for part in pair)]
    alone = {**os.environ, "OWN_PACKAGE": "off", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        write_data(lesson, Path(folder))
        NotebookClient(
            nbformat.v4.new_notebook(cells=page),
            timeout=LONGEST,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        ).execute(env=alone)
    times = [float(clock.outputs[0]["text"]) for clock in clocks]
    taken = {cell["id"]: end - begin for cell, begin, end in zip(run, times, times[1:])}
    # Without the heading, which is not in the source.
    return [taken.get(cell["id"], 0.0) for cell in cells[1:]]


def write_seconds(source: Path, taken: Sequence[float]) -> None:
    """Write :func:`seconds_of` a lesson into the headers of its source's cells, rounded to what a
    page says, where it is :data:`FEWEST` or more."""
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    headers = [at for at, line in enumerate(lines) if line.startswith("# %%")]
    for at, seconds in zip(headers, taken, strict=True):
        header = re.sub(rf" {SECONDS}=\d+", "", lines[at].rstrip())
        if seconds >= FEWEST:
            said = min(_SAID, key=lambda one: abs(math.log(one / seconds)))
            header += f" {SECONDS}={said}"
        lines[at] = header + "\n"
    source.write_text("".join(lines), encoding="utf-8")
