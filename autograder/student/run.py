"""Running a student's notebook on the student's own machine, in a fresh kernel; no sandbox.

A cell that does not end, or that ends the kernel, is left out: the kernel starts again and the
cells before it run once more, so that the rest of the notebook is still looked at.
"""

from __future__ import annotations

import copy
import logging
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from autograder.notebooks import DEMONSTRATION, SETUP, tags
from lesson_kit.own_package import SWITCH
from lesson_kit.shown import POINTS, without_frame

#: Seconds that a lesson's imports may take at least: on a cold disk torch is slow to load.
IMPORTS = 120

#: Seconds until a kernel answers: on a busy machine Python itself is slow to start.
START_SECONDS = 300


@dataclass
class Ran:
    """What came of a notebook's code cells, by their place in it.

    Attributes:
        errors: kind and text of what a cell raised; cells that raised nothing are not there.
        boxes: what a failed check shows, line by line, and the points of what passed in it.
        stopped: why a cell was left out, for the student.
        done: cells that ran to their end, with or without an error.
    """

    errors: dict[int, tuple[str, str]] = field(default_factory=dict)
    boxes: dict[int, tuple[list[str], float]] = field(default_factory=dict)
    stopped: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)


def run(
    notebook: NotebookNode,
    folder: Path,
    seconds: int,
    after: Callable[[Ran, int], None] = lambda ran, number: None,
) -> Ran:
    """Run a notebook's code cells in order, without its demonstrations.

    The kernel is that of the Python that runs this, whatever the notebook's metadata name.

    Args:
        notebook: as read; it is not changed.
        folder: where the kernel starts: the notebook's own.
        seconds: a cell may take.
        after: is called with what is known after each cell, and the cell's number; with cells
            that ran before a kernel was lost, again.
    """
    ran = Ran()
    while not _run_to_the_end(copy.deepcopy(notebook), folder, seconds, ran, after):
        ran.errors.clear()
        ran.boxes.clear()
        ran.done.clear()
    return ran


def _run_to_the_end(
    notebook: NotebookNode,
    folder: Path,
    seconds: int,
    ran: Ran,
    after: Callable[[Ran, int], None],
) -> bool:
    """Whether the kernel lived to the end; the cell that stopped it is put down otherwise."""
    client = NotebookClient(
        notebook,
        allow_errors=True,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        shutdown_kernel="immediate",
        startup_timeout=START_SECONDS,
    )
    client.log = logging.getLogger(f"{__name__}.quiet")
    client.log.propagate = False
    client.log.addHandler(logging.NullHandler())
    # As where work is graded, earlier parts are the course's, and no answer is kept.
    environment = {**os.environ, SWITCH: "off"}
    # What the kernel itself has to say is not for the student's terminal.
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with client.setup_kernel(env=environment, **quiet):
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or DEMONSTRATION in tags(cell) or number in ran.stopped:
                continue
            client.timeout = max(seconds, IMPORTS) if SETUP in tags(cell) else seconds
            # nbclient obeys tags such as skip-execution; a check runs whatever its tags say.
            cell.metadata.pop("tags", None)
            try:
                client.execute_cell(cell, number)
            except CellTimeoutError:
                ran.stopped[number] = f"it did not end within {client.timeout} seconds"
                return False
            except DeadKernelError:
                ran.stopped[number] = "it ended Python (too much memory, or a call of exit?)"
                return False
            ran.done.add(number)
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    ran.errors[number] = (output.ename, output.evalue)
                elif output.output_type == "display_data" and POINTS in output.metadata:
                    lines = output.data["text/plain"].splitlines()
                    ran.boxes[number] = without_frame(lines), float(output.metadata[POINTS])
            after(ran, number)
    return True
