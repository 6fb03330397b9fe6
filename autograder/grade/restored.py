"""Cells of a submission that a program renamed or changed in kind, as they were meant."""

from __future__ import annotations

from dataclasses import replace

from autograder.course.bundle import Bundle
from autograder.grade import flags as kinds
from autograder.grade.cells import Cell
from autograder.grade.flags import Flag
from autograder.grade.reader import look
from lesson_kit.notebook_reading import Known, found_names

#: What stands in an answer cell that nobody has filled.
_STUB = "raise NotImplementedError"


def with_names(cells: list[Cell], bundle: Bundle) -> tuple[list[Cell], list[Flag]]:
    """The cells with the names that some of them lost, as far as what they hold tells."""
    names = found_names([_known(cell) for cell in cells], bundle.given, bundle.exercises)
    for at, name in names.items():
        cells[at] = replace(cells[at], grade_id=name)
    return cells, [kinds.NAMES_FOUND.flag(number=len(names))] if names else []


def _known(cell: Cell) -> Known:
    if cell.grade_id or not cell.source.strip():
        return Known(cell.grade_id, "")
    seen = look(cell.source, cell.kind == "code")
    return Known("", seen.digest, seen.binds)


def with_answers_as_code(cells: list[Cell], bundle: Bundle) -> tuple[list[Cell], list[Flag]]:
    """The cells, those of code that were turned into text code again.

    Only where no code cell answers the exercise: an attempt that was put aside as text stays so.
    """
    flags = []
    for name in bundle.exercises:
        code = [cell for cell in cells if cell.kind == "code" and cell.grade_id == name]
        if any(_STUB not in cell.source for cell in code):
            continue
        text = [at for at, cell in enumerate(cells) if cell.kind != "code"]
        places = [at for at in text if cells[at].grade_id == name]
        if not places or (code and not _answers(cells[places[-1]], name)):
            places = [at for at in text if not cells[at].grade_id and _answers(cells[at], name)]
        if not places or (code and _STUB in cells[places[-1]].source):
            continue
        cell = cells[places[-1]]
        source = _code(cell)
        cells[places[-1]] = replace(cell, kind="code", source=source, grade_id=name)
        for at, other in enumerate(cells):
            if other.grade_id == name and at != places[-1]:
                cells[at] = replace(other, grade_id="")
        flags.append(kinds.ANSWER_AS_TEXT.flag(cell=name, kind=cell.kind))
    return cells, flags


def _code(cell: Cell) -> str:
    """The code in a text cell, without the fence that may be around all of it."""
    first, *lines = cell.source.strip().split("\n")
    fence = first[:3]
    fenced = fence in ("```", "~~~") and lines and lines[-1].strip() == fence
    return "\n".join(lines[:-1]) if fenced else cell.source


def _answers(cell: Cell, name: str) -> bool:
    return name in look(_code(cell), True).binds
