"""One solved notebook, run again in this process: what it prints and asserts, compared.

Outputs are compared as nbval compares them, with tests/nbval.cfg. It is for a process that ends
afterwards: the notebook's folder becomes its working folder.
"""

from __future__ import annotations

import ast
import json
import operator
import os
import re
import resource
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat import NotebookNode
from nbval.plugin import (
    coalesce_streams,
    find_comment_markers,
    find_metadata_tags,
    get_sanitize_patterns,
    transform_streams_for_comparison,
)
from traitlets.config import Config

SANITIZE = Path(__file__).with_name("nbval.cfg")

#: What of an output is not compared: pictures and ids, as in nbval without nbdime.
_NOT_COMPARED = {
    *("image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json"),
    *("output_type", "data", "metadata", "execution_count", "ename", "evalue", "traceback"),
}

_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
#: The name under which a notebook's assertions report; no cell uses it.
_REPORT = "__claimed__"


@dataclass
class Claim:
    """An ordering that an assertion of a notebook rests on, where it came nearest to its bound."""

    cell: int
    text: str
    left: float
    right: float

    @property
    def room(self) -> float:
        """How far the two sides are from each other, as a share of the larger one."""
        largest = max(abs(self.left), abs(self.right))
        return abs(self.left - self.right) / largest if largest else 0.0


@dataclass
class Ran:
    """What came of one notebook under one setting.

    Attributes:
        notebook: its path from the repository's root.
        faults: cells that raised, or whose compared output differs, in words.
        compared: cells whose output was compared.
        moved: cells whose output is not compared and did differ.
        claims: what its assertions compared.
        seconds: processor time.
    """

    notebook: str
    faults: list[str] = field(default_factory=list)
    compared: int = 0
    moved: int = 0
    claims: list[Claim] = field(default_factory=list)
    seconds: float = 0.0


class _Asserted(ast.NodeTransformer):
    """Lets every ordering inside an ``assert`` report its sides."""

    inside = False

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.inside = True
        node.test = self.visit(node.test)
        self.inside = False
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        text = ast.unparse(node)
        self.generic_visit(node)
        signs = [_SIGNS.get(type(one)) for one in node.ops]
        if not self.inside or None in signs:
            return node
        # Later sides are evaluated even if an earlier comparison is false: then it fails anyway.
        given = [ast.Constant(text), ast.Constant(" ".join(map(str, signs)))]
        call = ast.Call(ast.Name(_REPORT, ast.Load()), [*given, node.left, *node.comparators], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


class _Claims:
    """The orderings that one notebook's assertions rest on, each where it was nearest."""

    def __init__(self) -> None:
        self.cell = 0
        self.found: dict[tuple[int, str], Claim] = {}

    def __call__(self, text: str, signs: str, *sides: Any) -> Any:
        """The value of the comparison ``text``; its sides are noted."""
        result: Any = True
        for sign, left, right in zip(signs.split(), sides, sides[1:]):
            result = result and _COMPARE[sign](left, right)
            self._note(text, left, right)
        return result

    def _note(self, text: str, left: Any, right: Any) -> None:
        try:
            sides = np.broadcast_arrays(np.asarray(left, float), np.asarray(right, float))
        except (TypeError, ValueError, RuntimeError):
            return  # no numbers
        for one, other in zip(*(side.ravel().tolist() for side in sides)):
            claim = Claim(self.cell, text, one, other)
            kept = self.found.get((self.cell, text))
            if kept is None or claim.room < kept.room:
                self.found[self.cell, text] = claim


def run(path: Path) -> Ran:
    """Run all code cells of a solved notebook, those too whose output is not compared."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    shell.kernel = object()  # a kernel runs it, says the lesson: boxes in place of lines
    claims = _Claims()
    shell.user_ns[_REPORT] = claims
    shell.ast_transformers.append(_Asserted())
    os.chdir(path.parent)
    sys.path.insert(0, str(path.parent))
    ran = Ran(path.stem)
    code = [one for one in nbformat.read(path, as_version=4).cells if one.cell_type == "code"]
    for number, cell in enumerate(code):
        claims.cell = number
        options = dict(find_metadata_tags(cell.metadata)) | dict(find_comment_markers(cell.source))
        outputs, error = _executed(shell, cell.source)
        if error is not None and not options.get("check_exception"):
            ran.faults.append(f"cell {number} raised {error}\n\n{cell.source}")
            break
        before, after = _texts(cell.outputs), _texts(outputs)
        if not options.get("check", True):
            ran.moved += before != after
            continue
        ran.compared += bool(before or after)
        if before != after:
            ran.faults.append(f"cell {number} prints something else:\n{_diff(before, after)}")
    ran.claims = list(claims.found.values())
    used = resource.getrusage(resource.RUSAGE_SELF)
    ran.seconds = used.ru_utime + used.ru_stime
    return ran


def _executed(shell: Any, source: str) -> tuple[list[NotebookNode], str | None]:
    """Run a cell: its outputs as a notebook would hold them, and what it raised."""
    with capture_output() as captured:
        result = shell.run_cell(source, store_history=True)
    outputs = [
        nbformat.v4.new_output("stream", name=name, text=text)
        for name, text in (("stdout", captured.stdout), ("stderr", captured.stderr))
        if text
    ]
    by_name: dict[str, NotebookNode] = {}
    for one in captured.outputs:
        output = nbformat.v4.new_output("display_data", data=one.data)
        name = (one.transient or {}).get("display_id")
        if one.update and name in by_name:
            by_name[name].data = output.data
            continue
        outputs.append(output)
        if name:
            by_name[name] = output
    error = result.error_before_exec or result.error_in_exec
    return outputs, None if error is None else f"{type(error).__name__}: {error}"


def _texts(outputs: list[NotebookNode]) -> dict[str, list[str]]:
    """What is compared of a cell's outputs: the texts of each stream and kind of data."""
    patterns = get_sanitize_patterns(SANITIZE.read_text(encoding="utf-8"))
    found: dict[str, list[str]] = defaultdict(list)
    for output in transform_streams_for_comparison(coalesce_streams(outputs)):
        for kind, value in {**output, **output.get("data", {})}.items():
            if kind in _NOT_COMPARED:
                continue
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            for pattern, replacement in patterns:
                text = re.sub(pattern, replacement, text)
            found[kind].append(text)
    return dict(found)


def _diff(before: dict[str, list[str]], after: dict[str, list[str]]) -> str:
    pair = [
        [line for kind in sorted(one) for text in one[kind] for line in (kind, *text.splitlines())]
        for one in (before, after)
    ]
    return "\n".join(unified_diff(*pair, "stored", "now", lineterm="", n=0))
