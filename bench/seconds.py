"""How long the cells of a lesson take, for the page to say so.

``python -m bench.seconds 05 06`` runs the lessons' cells in one kernel each, and writes
``seconds=`` into the header of each cell that takes 4 s or more, rounded to what a page says;
without a lesson, of all. What is measured are processor seconds of one thread, so that a busy
machine says the same as an idle one. Build the lessons afterwards.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from pathlib import Path

import psutil
from nbclient import NotebookClient

from autograder.build.solved_outputs import SECONDS as LONGEST
from autograder.course.cell_headers import SECONDS
from autograder.course.lessons import Course, Lesson

#: What a page says; the nearest of them, by ratio.
_SAID = (5, 10, 20, 40, 60, 90)
_FEWEST = 4


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lesson", nargs="*", help="such as 02")
    asked = parser.parse_args()
    os.environ |= {"OWN_PACKAGE": "off", "OMP_NUM_THREADS": "1"}
    course = Course.load(Path())
    for lesson in [course.lesson(one) for one in asked.lesson] or course.lessons:
        taken = _measured(lesson)
        _write(lesson.source_path, taken)
        long = ", ".join(f"{one:.1f}" for one in taken if one >= _FEWEST)
        print(f"{lesson.folder}: {sum(taken):.0f} s; cells above {_FEWEST} s: {long or 'none'}")


def _measured(lesson: Lesson) -> list[float]:
    """Processor seconds of each cell of the source, in its order; 0 for text."""
    taken, began = [0.0] * len(lesson.notebook.cells), 0.0
    folder = lesson.root / "solutions" / lesson.folder
    client = NotebookClient(
        lesson.notebook,
        timeout=LONGEST,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )

    def used() -> float:
        return sum(psutil.Process(client.km.provisioner.pid).cpu_times()[:4])

    def begin(**_: object) -> None:
        nonlocal began
        began = used()

    def end(cell_index: int, **_: object) -> None:
        taken[cell_index] = used() - began

    client.on_cell_execute, client.on_cell_executed = begin, end
    client.execute()
    return taken[1:]  # without the heading, which is not in the source


def _write(source: Path, taken: list[float]) -> None:
    """Into the headers of the cells, in their order."""
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    headers = [at for at, line in enumerate(lines) if line.startswith("# %%")]
    for at, seconds in zip(headers, taken, strict=True):
        header = re.sub(rf" {SECONDS}=\d+", "", lines[at].rstrip())
        if seconds >= _FEWEST:
            said = min(_SAID, key=lambda one: abs(math.log(one / seconds)))
            header += f" {SECONDS}={said}"
        lines[at] = header + "\n"
    source.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
