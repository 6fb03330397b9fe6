"""nbgrader's SaveCells, which commits each cell by itself: making a class of sixteen lessons would
wait for the disk 1,200 times."""

from __future__ import annotations

import json

from nbformat import NotebookNode
from nbgrader.api import GradeCell, MissingEntry, Notebook, SolutionCell, SourceCell, TaskCell
from nbgrader.preprocessors import SaveCells


class SaveCellsAtOnce(SaveCells):  # type: ignore[misc]
    """Adds a notebook that the gradebook does not have yet in one transaction."""

    def _create_notebook(self, nb: NotebookNode) -> None:
        try:
            self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        except MissingEntry:
            self._add_notebook(nb)
        else:
            super()._create_notebook(nb)

    def _add_notebook(self, nb: NotebookNode) -> None:
        assignment = self.gradebook.find_assignment(self.assignment_id)
        kernelspec = json.dumps(nb.metadata.get("kernelspec", {}))
        notebook = Notebook(name=self.notebook_id, assignment=assignment, kernelspec=kernelspec)
        session = self.gradebook.db
        session.add(notebook)
        for kind, cells in (
            (GradeCell, self.new_grade_cells),
            (SolutionCell, self.new_solution_cells),
            (TaskCell, self.new_task_cells),
            (SourceCell, self.new_source_cells),
        ):
            session.add_all(
                kind(name=name, notebook=notebook, **says) for name, says in cells.items()
            )
        session.commit()
