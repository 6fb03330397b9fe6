"""Earlier releases of a lesson in a class: what a student may still have in the notebook.

When a lesson is mended while a class works on it, those who have the earlier release hand in its
test cells and demonstrations. They edited nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.course.notebook_file import DamagedNotebook, read_notebook
from autograder.notebooks import (
    DEMONSTRATION,
    HIDDEN,
    grade_id,
    is_test,
    tags,
)


@dataclass(frozen=True)
class Former:
    """One earlier release.

    Attributes:
        tests: the source of each test cell, hidden parts included, by grade_id.
        demonstrations: the sources of cells that are never run when grading.
        texts: the sources of cells that are no code.
    """

    tests: dict[str, str]
    demonstrations: frozenset[str]
    texts: frozenset[str] = frozenset()

    def handed_out(self, name: str) -> tuple[str, ...]:
        """The texts that a test cell may have where nobody edited it."""
        source = self.tests.get(name)
        return () if source is None else (source.strip(), HIDDEN.sub("", source).strip())

    @property
    def known(self) -> frozenset[str]:
        """The texts of all cells that are no work of a student's."""
        tests = {text for name in self.tests for text in self.handed_out(name)}
        return frozenset(tests) | self.demonstrations


def read_former(sources: Iterable[Path]) -> tuple[Former, ...]:
    """The earlier releases whose source notebooks lie in these folders; others are passed over."""
    former = []
    for folder in sources:
        for path in sorted(folder.glob("*.ipynb")):
            try:
                notebook = read_notebook(path)
            except DamagedNotebook:
                continue
            cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
            former.append(
                Former(
                    {grade_id(cell): cell.source for cell in cells if is_test(cell)},
                    frozenset(cell.source.strip() for cell in cells if DEMONSTRATION in tags(cell)),
                    frozenset(c.source for c in notebook.cells if c.cell_type != "code"),
                )
            )
    return tuple(former)
