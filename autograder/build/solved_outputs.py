"""A solved notebook whose source changed: which of its outputs still hold, and what runs again.

Text, and what a failed check would say, changes nothing that is printed: all outputs hold. A whole
run takes a minute, for it trains what demonstrations show. Where nothing but checks changed, only
setup, answers and these checks run, as when work is graded, and every other cell keeps its outputs.
Where a check needs more than that, or anything else changed, the whole notebook runs.

A check must not change what other cells print, by a name that it leaves or a random number that it
takes. Nothing here looks for that: nbval, which runs everything, finds it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from autograder.notebooks import DEMONSTRATION, grade_id, is_test, tags
from autograder.text import plain_line

#: Seconds that one cell may take; this many until a kernel answers, too.
SECONDS = 300

#: The checks whose message is said when they fail, and its place among their arguments.
MESSAGES = {
    "assert_close": 2,
    "assert_equal": 2,
    "assert_raises": 1,
    "assert_results": 2,
    "assert_as_reference": 3,
    "assert_as_floats": 2,
    "assert_slopes": 3,
}


class WholeRunNeeded(Exception):
    """Running checks would not do; the message says why."""


def take_outputs(new: NotebookNode, solved: NotebookNode, folder: Path) -> list[str]:
    """Give a notebook the outputs of its earlier, solved version; checks that changed run.

    Args:
        new: as it is now, without outputs.
        solved: as it was when it was run, with its outputs.
        folder: where the kernel starts, with what lies beside the notebook.

    Returns:
        The checks that ran, by name.

    Raises:
        WholeRunNeeded: the whole notebook has to run; ``new`` is as it was.
    """
    cells, were = (
        [cell for cell in notebook.cells if cell.cell_type == "code"] for notebook in (new, solved)
    )
    if len(cells) != len(were):
        raise WholeRunNeeded("there are more or fewer cells than before")
    changed = [n for n, pair in enumerate(zip(cells, were)) if len(set(map(_what_runs, pair))) > 1]
    for n in changed:
        if not (is_test(cells[n]) and is_test(were[n]) and tags(cells[n]) == tags(were[n])):
            raise WholeRunNeeded(f"{_name_of(cells[n])} changed, and is no check")
    ran = _ran(cells, changed, new.metadata, folder) if changed else {}
    for n, (cell, was) in enumerate(zip(cells, were)):
        cell["execution_count"] = was["execution_count"]
        cell["outputs"] = ran.get(n, was["outputs"])
        for output in ran.get(n, ()):
            if "execution_count" in output:
                output["execution_count"] = was["execution_count"]
    return [_name_of(cells[n]) for n in changed]


def _ran(
    cells: Sequence[NotebookNode], changed: Sequence[int], metadata: NotebookNode, folder: Path
) -> dict[int, list[NotebookNode]]:
    """What checks print, after what they stand on, by their numbers."""
    running = {
        n: copy.deepcopy(cell)
        for n, cell in enumerate(cells)
        if n in changed or not (is_test(cell) or DEMONSTRATION in tags(cell))
    }
    notebook = nbformat.v4.new_notebook(cells=[*running.values()], metadata=dict(metadata))
    try:
        NotebookClient(
            notebook,
            timeout=SECONDS,
            startup_timeout=SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        ).execute()
    except CellExecutionError as error:
        raise WholeRunNeeded(f"without demonstrations: {error.ename}: {error.evalue}") from None
    except (CellTimeoutError, DeadKernelError) as error:
        raise WholeRunNeeded(f"without demonstrations it does not end ({error})") from None
    return {n: running[n].outputs for n in changed}


def _what_runs(cell: NotebookNode) -> tuple[str, ...]:
    """A code cell without comments and what is said only by a failing check; and its tags."""
    try:
        tree = ast.parse(cell.source)
    except SyntaxError:
        return cell.source, *tags(cell)
    if not is_test(cell):
        return ast.dump(tree), *tags(cell)
    messages = [
        node.args[MESSAGES[node.func.id]]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and len(node.args) > MESSAGES.get(node.func.id, len(node.args))
    ]
    places = {id(message) for message in messages}
    named = {message.id for message in messages if isinstance(message, ast.Name)} - {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in places
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and {ast.unparse(name) for name in node.targets} <= named:
            messages.append(node.value)
    for message in messages:
        _blank(message)
    return ast.dump(tree), *tags(cell)


def _blank(message: ast.expr) -> None:
    """Where it is text, it says nothing any more."""
    if isinstance(message, ast.Constant) and isinstance(message.value, str):
        message.value = ""
    elif isinstance(message, ast.JoinedStr):
        message.values = []


def what_stopped(solved: NotebookNode) -> list[str]:
    """The cells of a notebook that was run and ended with an error, each in one line.

    Args:
        solved: with outputs; a cell that ran for too long has an error among them too.
    """
    return [
        plain_line(
            f"cell {number}, {_name_of(cell)}: {output.ename}: {' '.join(output.evalue.split())}"
        )
        for number, cell in enumerate(solved.cells, start=1)
        if cell.cell_type == "code"
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]


def _name_of(cell: NotebookNode) -> str:
    """As its author finds it: nbgrader's name, or the line that it begins with."""
    lines = cell.source.strip().splitlines()
    return grade_id(cell) or (lines[0] if lines else "empty")
