"""What stands in a released notebook where the solution was."""

from __future__ import annotations

import re
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions

from autograder.notebooks import GUESS, ONWARD, SETUP, TO_START, grade_id, tags
from lesson_kit.words import tr

#: Jupyter's tag of a cell whose exception does not end Run All.
GOES_ON = "raises-exception"

#: The first line of an assignment at a cell's top, up to its value, and a comment behind that.
_GUESSED = re.compile(r"^((?:guess|puzzle)_\w+(?:, guess_\w+)*) = .*?(\s+#.*)?$", re.M)


class ClearSolutionsAndAnswers(ClearSolutions):  # type: ignore[misc]
    """nbgrader's ClearSolutions, with ``answer_x = None`` as the stub of a short answer.

    A student then replaces one value and does not have to delete a raise statement. Where a
    prediction is asked for, None stands in place of the author's. Run All goes on below what is not
    written yet; without the setup cell nothing would work, so that one ends it.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """One cell, as students get it."""
        if GUESS in tags(cell):
            cell.source = _GUESSED.sub(_not_yet, cell.source)
        if cell.cell_type == "markdown" and cell.source.startswith(tr(ONWARD)):
            cell.source += tr(TO_START)
        if cell.cell_type == "code" and SETUP not in tags(cell):
            cell.metadata["tags"] = [*tags(cell), GOES_ON]
        done: tuple[NotebookNode, dict[str, Any]]
        done = super().preprocess_cell(cell, resources, cell_index)
        return done

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        name = grade_id(cell)
        usual: dict[str, str] = self.code_stub  # type: ignore[has-type]
        if cell.cell_type == "code" and name.startswith("answer_"):
            self.code_stub = {language: f"{name} = None  # YOUR ANSWER HERE"}
        try:
            return bool(super()._replace_solution_region(cell, language))
        finally:
            self.code_stub = usual


def _not_yet(guessed: re.Match[str]) -> str:
    names, comment = guessed[1], guessed[2] or ""
    return f"{names} = {', '.join(['None'] * len(names.split(', ')))}{comment}"
