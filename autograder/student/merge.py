"""A student's notebook and a new release of it become one: the student's texts in its cells.

Three versions are compared, cell by cell: what was released, what the student made of it, and
the new release. A text counts as the student's when no release holds it.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field

from nbformat import NotebookNode
from nbformat.corpus.words import generate_corpus_id

from autograder.course.release import (
    ReleasedCell,
    cells_of,
    digest_of,
    digests_of,
    restore_names,
)
from autograder.notebooks import grade_id, nbgrader_metadata

#: The kit was a folder ``lesson`` once; what a student imports from it goes on working.
_FORMER_KIT = re.compile(r"^(\s*from )lesson(?=\.\w+ import )", re.M)


class CannotMerge(Exception):
    """Something of the student's has no place in the new release; the message says what."""


@dataclass
class Merged:
    """The new release's notebook with the student's work in it.

    Attributes:
        notebook: to be written in the place of the student's.
        carried: names of answers, and how many other cells, in words.
        notes: what the student should look at.
    """

    notebook: NotebookNode
    carried: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(theirs: NotebookNode, new: NotebookNode, base: list[ReleasedCell]) -> Merged:
    """Carry a student's work over into a new release.

    Answers go where the new release has a cell for them, by grade_id. A cell that the student
    changed and the new release did not is taken as it is; any other cell with a text of the
    student's stands below the cell it stood below. Checks and given cells are the new
    release's.

    Args:
        theirs: the student's notebook.
        new: the new release's.
        base: the cells of the release that the student began with.

    Raises:
        CannotMerge: a changed answer has no cell in the new release.
    """
    return _Merging(theirs, new, base).run()


class _Merging:
    def __init__(self, theirs: NotebookNode, new: NotebookNode, base: list[ReleasedCell]) -> None:
        self.theirs = theirs
        restore_names(theirs, [*base, *cells_of(new)])
        self.result = Merged(copy.deepcopy(new))
        self.texts = {cell.text for cell in (*base, *cells_of(new))}
        self.base_by_id = {cell.id: cell for cell in base}
        self.base_by_name = {cell.grade_id: cell for cell in base if cell.grade_id}
        self.cells: list[NotebookNode] = list(self.result.notebook.cells)
        self.by_id = {cell.get("id", ""): cell for cell in self.cells}
        self.by_name = {grade_id(cell): cell for cell in self.cells if grade_id(cell)}
        self.by_text = {digest_of(cell): cell for cell in self.cells}
        self.anchor: NotebookNode | None = None  # the last cell of the release that was passed
        self.added = 0

    def run(self) -> Merged:
        """The merged notebook."""
        counting = {
            grade_id(cell): cell for cell in self.theirs.cells if self._is_students(cell)
        }  # of two answer cells of one name the last one counts
        for cell in self.theirs.cells:
            name = grade_id(cell)
            if name in self.by_name or name in self.base_by_name:
                self._named(cell, counting.get(name))
            else:
                self._nameless(cell)
        if self.added:
            self.result.carried.append(f"{self.added} cell{'s' * (self.added > 1)} of yours")
        self.result.notebook.cells = self.cells
        return self.result

    def _is_students(self, cell: NotebookNode) -> bool:
        return bool(cell.source.strip()) and not digests_of(cell) & self.texts

    def _named(self, cell: NotebookNode, counting: NotebookNode | None) -> None:
        name = grade_id(cell)
        place = self.by_name.get(name)
        was_answer = bool(nbgrader_metadata(cell).get("solution"))
        is_answer = place is not None and bool(nbgrader_metadata(place).get("solution"))
        if place is not None:
            self.anchor = place
        if not self._is_students(cell):
            if place is not None and counting is None:
                _take_outputs(cell, place)
        elif was_answer and not is_answer:
            raise CannotMerge(f"the new release has no cell for your answer {name}")
        elif place is None or not is_answer:
            self.result.notes.append(f"your change of {name} is not taken over: it is a given cell")
        elif cell is not counting:
            self._add(cell)
        else:
            before = self.base_by_name.get(name)
            if before is not None and before.text not in digests_of(place):
                self.result.notes.append(f"{name} starts differently now: read its card again")
            place.source = self._with_the_kit(cell.source)
            if "attachments" in cell:  # pictures pasted into a written answer
                place["attachments"] = cell.attachments
            _take_outputs(cell, place)
            self.result.carried.append(name)

    def _nameless(self, cell: NotebookNode) -> None:
        before = self.base_by_id.get(cell.get("id", ""))
        place = self.by_id.get(cell.get("id", ""))
        if not self._is_students(cell):
            if place is None or digest_of(place) != digest_of(cell):
                place = self.by_text.get(digest_of(cell))
            if place is not None:
                self.anchor = place
                _take_outputs(cell, place)
            return
        if before is not None and place is not None and not grade_id(place):
            self.anchor = place
            if before.text in digests_of(place):  # only the student changed it
                mine = self._copied(cell)
                self.cells[self._index(place)] = self.by_id[mine["id"]] = self.anchor = mine
                self.added += 1
                return
        if before is not None:
            self.result.notes.append(
                f"the new release changed or dropped the cell that you changed to "
                f"{cell.source.strip().splitlines()[0][:50]!r}: yours is a cell of its own"
            )
        self._add(cell)

    def _add(self, cell: NotebookNode) -> None:
        mine = self._copied(cell)
        mine.metadata.pop("nbgrader", None)  # a second cell of one name stops nbgrader
        if mine.get("id") is None or mine["id"] in {cell.get("id") for cell in self.cells}:
            mine["id"] = generate_corpus_id()
        at = 0 if self.anchor is None else self._index(self.anchor) + 1
        self.cells.insert(at, mine)
        self.anchor = mine
        self.added += 1

    def _copied(self, cell: NotebookNode) -> NotebookNode:
        mine = copy.deepcopy(cell)
        mine.source = self._with_the_kit(mine.source)
        return mine

    def _with_the_kit(self, source: str) -> str:
        text = _FORMER_KIT.sub(r"\1lesson_kit", source)
        note = "`from lesson.` is `from lesson_kit.` now: changed in your cells"
        if text != source and note not in self.result.notes:
            self.result.notes.append(note)
        return text

    def _index(self, cell: NotebookNode) -> int:
        return next(at for at, other in enumerate(self.cells) if other is cell)


def _take_outputs(cell: NotebookNode, place: NotebookNode) -> None:
    """What the same code printed before is shown until it is run again."""
    same = cell.cell_type == place.cell_type == "code"
    if same and digest_of(cell) == digest_of(place):
        place["outputs"] = copy.deepcopy(cell.get("outputs", []))
        place["execution_count"] = cell.get("execution_count")
