"""What stands in a released notebook where the solution was."""

from __future__ import annotations

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions

from autograder.notebooks import grade_id


class ClearSolutionsAndAnswers(ClearSolutions):  # type: ignore[misc]
    """nbgrader's ClearSolutions, with ``answer_x = None`` as the stub of a short answer.

    A student then replaces one value and does not have to delete a raise statement.
    """

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        name = grade_id(cell)
        usual: dict[str, str] = self.code_stub  # type: ignore[has-type]
        if cell.cell_type == "code" and name.startswith("answer_"):
            self.code_stub = {language: f"{name} = None  # YOUR ANSWER HERE"}
        try:
            return bool(super()._replace_solution_region(cell, language))
        finally:
            self.code_stub = usual
