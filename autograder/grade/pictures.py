"""Pictures in written answers: the ones that may be shown, made anew from their pixels.

They are decoded in :mod:`.picture_process`, within limits.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from autograder.course.bundle import Bundle
from autograder.grade import flags as kinds
from autograder.grade.cells import Cell
from autograder.grade.flags import Flag
from autograder.limited_process import LimitedProcess, TooMuch
from autograder.text import plain_line

_process = LimitedProcess("autograder.grade.picture_process")

#: What a text may hold that shows a picture.
_SIGNS = ("![", "<img", "<IMG")


def with_pictures(cells: list[Cell], bundle: Bundle) -> tuple[list[Cell], list[Flag]]:
    """The cells, with the pictures of written answers as data addresses in ``attachments``.

    In the text ``[picture 1]`` stands for each. Attachments of other cells are left out.
    """
    named = {written.grade_id for written in bundle.written}
    flags: list[Flag] = []
    shown = []
    for cell in cells:
        if cell.grade_id in named and (cell.attachments or any(s in cell.source for s in _SIGNS)):
            made, told = _of_an_answer(cell)
            flags += told
        else:
            made = replace(cell, attachments=())
        shown.append(made)
    return shown, flags


def _of_an_answer(cell: Cell) -> tuple[Cell, list[Flag]]:
    try:
        source, pictures, unfit = _process.ask("of_an_answer", cell.source, cell.attachments)
    except TooMuch:
        source, pictures = cell.source, []
        unfit = [("all of them", "they are too large to look at")]
    told = [
        kinds.PICTURE_UNREAD.flag(
            cell=cell.grade_id, called=plain_line(str(called), 60), why=plain_line(str(why))
        )
        for called, why in unfit
    ]
    kept = tuple((str(name), str(address)) for name, address in pictures)
    return replace(cell, source=str(source), attachments=kept), told


def digest(picture: str) -> str:
    """Changes with the picture."""
    return hashlib.sha256(picture.encode()).hexdigest()[:8]
