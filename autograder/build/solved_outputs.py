"""A solved notebook whose source changed: which of its outputs still hold, and what runs again.

Text, and what a failed check would say, changes nothing that is printed: all outputs hold. Where
other parts of checks changed, only what is graded runs again. The whole takes a minute, for it
trains what its demonstrations show. Setup, answers and checks take seconds. So where nothing but
checks changed since a notebook was run, they run without the demonstrations, as they do when work
is graded. A check that changed gets what it printed in that run, with what it really runs into; all
others keep the outputs that they had.

That is sound where no other cell can tell the difference, and this is what is asked for:

* Code cells are the same, in number, order, tags and source, but for sources of checks; so is what
  the notebook takes over from earlier lessons.
* A check that changed looks up what the setup cell and the answers bind, and nothing else: so it
  sees nothing that a demonstration made, and can change no part of it.
* No cell but checks looks up a name that a changed check leaves, as it was or as it is.
* The check, as it was and as it is, takes from no generator of random numbers that others use and
  changes no setting (:mod:`autograder.build.process_state`).
* The other cells that ran printed what stands there: so libraries print what they printed.

Otherwise the whole notebook runs. What this does not see, such as an answer that counts its own
calls, or figures that another version of a library draws, nbval finds, which runs everything.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from autograder.build.names_left import Names, names_of
from autograder.notebooks import DEMONSTRATION, SETUP, grade_id, is_answer, is_test, tags
from autograder.text import plain_line

#: Seconds that one cell may take; this many until a kernel answers, too.
SECONDS = 300

_STATE = 'print(__import__("autograder.build.process_state", fromlist=["state"]).state())'


class WholeRunNeeded(Exception):
    """Running what is graded would not do; the message says why."""


@dataclass
class _Cell:
    """A code cell, and what stood in its place when the notebook was run."""

    now: NotebookNode
    before: NotebookNode

    @property
    def changed(self) -> bool:
        return bool(self.now.source != self.before.source)

    @property
    def graded(self) -> bool:
        return DEMONSTRATION not in tags(self.now)

    @property
    def name(self) -> str:
        lines = self.now.source.strip().splitlines()
        return grade_id(self.now) or (lines[0] if lines else "an empty cell")


def run_graded(new: NotebookNode, solved: NotebookNode, folder: Path) -> None:
    """Give a notebook whose checks changed its outputs, without running demonstrations.

    Args:
        new: as it is now, without outputs.
        solved: as it was when it was run, with its outputs.
        folder: where the kernel starts, with what lies beside the notebook.

    Raises:
        WholeRunNeeded: the whole notebook has to run; ``new`` is as it was.
    """
    cells = _paired(new, solved)
    _refuse_ties([cell for cell in cells if cell is not None])
    ran = _run(cells, new.metadata, folder)
    for cell, outputs in zip(cells, ran):
        if (
            outputs is not None
            and not cell.changed
            and _said(outputs) != _said(cell.before.outputs)
        ):
            raise WholeRunNeeded(f"{cell.name} prints something else than it did")
    for cell, outputs in zip(cells, ran):
        cell.now["execution_count"] = cell.before["execution_count"]
        cell.now["outputs"] = cell.before["outputs"]
        if cell.changed and outputs is not None:
            cell.now["outputs"] = outputs
            for output in outputs:
                if "execution_count" in output:
                    output["execution_count"] = cell.before["execution_count"]


def _paired(new: NotebookNode, solved: NotebookNode) -> list[_Cell]:
    """The code cells as they are and as they were."""
    now, before = (
        [cell for cell in notebook.cells if cell.cell_type == "code"] for notebook in (new, solved)
    )
    if len(now) != len(before):
        raise WholeRunNeeded("there are more or fewer cells than before")
    cells = [_Cell(*pair) for pair in zip(now, before)]
    for cell in cells:
        if tags(cell.now) != tags(cell.before) or is_test(cell.now) != is_test(cell.before):
            raise WholeRunNeeded(f"{cell.name} is another kind of cell than before")
        if cell.changed and not (is_test(cell.now) and cell.graded):
            raise WholeRunNeeded(f"{cell.name} changed, and is no check")
    return cells


def _refuse_ties(cells: Sequence[_Cell]) -> None:
    """Refuse checks that changed and have to do with other cells than setup and answers."""
    try:
        names = [names_of(cell.now.source) for cell in cells]
        were = [names_of(cell.before.source) if cell.changed else None for cell in cells]
    except SyntaxError as error:
        raise WholeRunNeeded(f"a cell is not plain Python ({error})") from None
    given = set(vars(builtins)) | {"__name__"}
    for cell, its in zip(cells, names):
        if SETUP in tags(cell.now) or is_answer(cell.now):
            given |= its.left
    left: dict[str, str] = {}
    later: set[str] = set()
    for cell, is_now, was in zip(cells, names, were):
        if was is not None:
            for version in (was, is_now):
                _refuse_foreign(cell.name, version, given)
                left |= dict.fromkeys(version.left, cell.name)
            continue
        if is_test(cell.now):
            if left.keys() & is_now.found:
                left |= dict.fromkeys(is_now.left, cell.name)
        else:
            for name in sorted(left.keys() & (is_now.found | later)):
                raise WholeRunNeeded(f"{left[name]} leaves `{name}`, which {cell.name} may look up")
            later |= is_now.looked_up_later
        for name in is_now.bound:
            left.pop(name, None)


def _refuse_foreign(check: str, names: Names, given: set[str]) -> None:
    for name in sorted(names.found - given):
        raise WholeRunNeeded(f"{check} looks up `{name}`, which neither setup nor answers bind")
    for name in sorted(names.left & given):
        raise WholeRunNeeded(f"{check} changes `{name}`")


def _run(cells: Sequence[_Cell], metadata: Any, folder: Path) -> list[list[NotebookNode] | None]:
    """What each cell printed now; None for demonstrations, which do not run."""
    running: list[NotebookNode] = []
    watched: list[tuple[str, int]] = []
    placed: list[NotebookNode | None] = []

    def watch(check: str, cell: NotebookNode) -> None:
        watched.append((check, len(running)))
        running.extend([nbformat.v4.new_code_cell(_STATE), cell])
        running.append(nbformat.v4.new_code_cell(_STATE))

    for cell in cells:
        own = copy.deepcopy(cell.now) if cell.graded else None
        placed.append(own)
        if own is not None and cell.changed:
            watch(cell.name, own)
        elif own is not None:
            running.append(own)
    for cell in cells:
        if cell.changed:
            code = f'exec(compile({cell.before.source!r}, "<check>", "exec"), dict(globals()))'
            watch(cell.name, nbformat.v4.new_code_cell(code))
    notebook = nbformat.v4.new_notebook(cells=running, metadata=copy.deepcopy(metadata))
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
    for check, place in watched:
        if running[place].outputs != running[place + 2].outputs:
            raise WholeRunNeeded(f"{check} takes random numbers of others, or changes a setting")
    return [None if own is None else own.outputs for own in placed]


def _said(outputs: Sequence[NotebookNode]) -> list[Any]:
    """Outputs to be compared: pieces of one stream together, and without numbers of cells."""
    said: list[Any] = []
    for output in outputs:
        kind = output.output_type, output.get("name", "")
        if output.output_type == "stream" and said and said[-1][0] == kind:
            said[-1] = kind, said[-1][1] + output.text
        elif output.output_type == "stream":
            said.append((kind, output.text))
        else:
            said.append((kind, {**output, "execution_count": None}))
    return said


#: The checks whose message is said when they fail, and its place among their arguments.
_MESSAGES = {"assert_close": 2, "assert_equal": 2, "assert_raises": 1}


def take_outputs(new: NotebookNode, solved: NotebookNode) -> bool:
    """Give a notebook that was not run the outputs of its earlier, solved version.

    Returns:
        False where running it could print something else; then ``new`` is as it was.
    """
    pairs = [
        [cell for cell in notebook.cells if cell.cell_type == "code"] for notebook in (new, solved)
    ]
    if [_what_runs(cell) for cell in pairs[0]] != [_what_runs(cell) for cell in pairs[1]]:
        return False
    for cell, ran in zip(*pairs):
        cell["outputs"], cell["execution_count"] = ran["outputs"], ran["execution_count"]
    return True


def _what_runs(cell: NotebookNode) -> tuple[str, list[str]]:
    """A code cell without comments and what is said only by a failing check; and its tags."""
    tags = list(cell.metadata.get("tags", []))
    try:
        tree = ast.parse(cell.source)
    except SyntaxError:
        return cell.source, tags
    if not is_test(cell):
        return ast.dump(tree), tags
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            place = _MESSAGES.get(node.func.id)
            if place is not None and len(node.args) > place and _is_text(node.args[place]):
                node.args[place] = ast.Constant("")
    return ast.dump(tree), tags


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def what_stopped(solved: NotebookNode) -> list[str]:
    """The cells of a notebook that was run and ended with an error, each in one line.

    Args:
        solved: with outputs; a cell that ran for too long has an error among them too.
    """
    return [
        plain_line(f"{_name_of(cell, number)}: {output.ename}: {' '.join(output.evalue.split())}")
        for number, cell in enumerate(solved.cells, start=1)
        if cell.cell_type == "code"
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]


def _name_of(cell: NotebookNode, number: int) -> str:
    """As its author finds it: nbgrader's name, or the line that it begins with."""
    lines = cell.source.strip().splitlines()
    return f"cell {number}, {grade_id(cell) or (lines[0] if lines else 'empty')}"
