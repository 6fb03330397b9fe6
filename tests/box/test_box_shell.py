"""The shell in a box reads cells as IPython does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from autograder.box.shell import is_plain_python

ROOT = Path(__file__).parents[2]

PLAIN = ["", "\n\n", "x = (5\n%x\n)", "text = '''\n%time\n!ls\n'''", "x = 1;"]
ODD = [
    *PLAIN,
    "%matplotlib inline\nx = 1",
    "x = %time 1",
    "!ls",
    "x?",
    "?x",
    "%%time\nx = 1",
    "In [1]: x = 3",
    ">>> x = 3\n>>> y = 4",
    "    x = 1\n    y = 2",
    "def f(:",
    "for x in y:\n    %time x",
    "\x00",
]


@pytest.mark.parametrize("source", ODD)
def test_what_is_taken_as_it_is_would_not_be_changed_by_ipython(source: str) -> None:
    made = TransformerManager().transform_cell(source)
    if is_plain_python(source):
        assert made.strip("\n") == source.strip("\n")
    else:
        assert source not in PLAIN


def test_the_cells_of_a_lesson_are_taken_as_they_are() -> None:
    (path,) = (ROOT / "solutions").glob("07-*/*.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(sources) > 20 and all(is_plain_python(source) for source in sources)
    for source in sources:
        test_what_is_taken_as_it_is_would_not_be_changed_by_ipython(source)
