"""Written answers of a submission, and text that stands where nobody would read it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from autograder.course.bundle import Bundle
from autograder.grade import flags as kinds
from autograder.grade.cells import Cell
from autograder.grade.flags import Flag
from autograder.grade.limits import MAX_LINE_CHARACTERS, MAX_QUOTED_CHARACTERS
from autograder.grade.reader import look
from autograder.notebooks import HIDDEN, grade_id
from autograder.text import plain_line
from lesson_kit import notebook_reading as reading

#: What nbgrader puts where a written answer goes.
WRITTEN_STUB = "YOUR ANSWER HERE"

#: How a sentence begins and no line of code does: with four words.
_SENTENCE = re.compile(
    r"\s*(?!(?:def|class|for|while|if|with|from|import|return|assert|not|lambda|raise)\b)"
    r"[^\W\d_]+(?:[,;:]? [^\W\d_'’-]+){3}"
)


def find_written_answers(cells: list[Cell], bundle: Bundle) -> tuple[list[Cell], list[Flag]]:
    """The cells with each written answer under its name once, and what is to be said of it.

    A copied cell has the name twice: the last one that is more than the stub counts. A tool
    that drops metadata leaves none: the one nameless text between what stands before the
    answer in the lesson and what stands after it is the answer.
    """
    cells, flags = list(cells), list[Flag]()
    for name in [written.grade_id for written in bundle.written]:
        copies = [number for number, cell in enumerate(cells) if cell.grade_id == name]
        answered = [number for number in copies if not is_stub(cells[number].source)]
        if len(copies) > 1:
            kept = (answered or copies)[-1]
            for number in copies:
                if number != kept:
                    cells[number] = replace(cells[number], grade_id="")
            flags.append(kinds.WRITTEN_COPIED.flag(cell=name, times=len(copies)))
        if copies:
            kept = next(at for at, cell in enumerate(cells) if cell.grade_id == name)
            cells[kept] = replace(cells[kept], kind="markdown")  # whatever it was made
            continue
        place = _place_of(name, cells, bundle)
        if place is None:
            flags.append(kinds.WRITTEN_MISSING.flag(cell=name))
        elif not is_stub(cells[place].source):
            cells[place] = replace(cells[place], grade_id=name, kind="markdown")
            flags.append(kinds.WRITTEN_FOUND.flag(cell=name))
    return cells, flags


def is_stub(text: str) -> bool:
    """Whether nobody wrote anything into a cell for a written answer."""
    return text.strip() in ("", WRITTEN_STUB)


def _place_of(name: str, cells: list[Cell], bundle: Bundle) -> int | None:
    """Where an answer stands that lost its name; None where that is not certain."""
    lesson = bundle.notebook.cells
    here = next(number for number, cell in enumerate(lesson) if grade_id(cell) == name)
    after, before = (
        [number for number, cell in enumerate(cells) if side is not None and _is(cell, side)]
        for side in (
            lesson[here - 1] if here else None,
            lesson[here + 1] if here + 1 < len(lesson) else None,
        )
    )
    if len(after) != 1 or (here + 1 < len(lesson) and len(before) != 1):
        return None
    between = range(after[0] + 1, before[0] if here + 1 < len(lesson) else len(cells))
    known = {grade_id(cell) for cell in lesson} - {""}
    texts = [n for n in between if cells[n].kind != "code" and cells[n].grade_id not in known]
    return texts[0] if len(texts) == 1 else None


def _is(cell: Cell, of_the_lesson: Any) -> bool:
    """Whether a cell is this one of the lesson, by its name or, where that is lost, its text."""
    name = grade_id(of_the_lesson)
    if name and cell.grade_id == name:
        return True
    code = of_the_lesson.cell_type == "code"
    given = reading.digest(HIDDEN.sub("", of_the_lesson.source), code)
    return not cell.grade_id and look(cell.source, code).digest == given


def with_text_beside(cells: list[Cell], bundle: Bundle) -> tuple[list[Cell], list[Flag]]:
    """The cells, with what a student wrote beside a written answer's cell taken into it.

    Beside it is what no release holds, up to the next cell that one does: text, and code cells
    that hold words. Text of the student's elsewhere is named.
    """
    named = {written.grade_id for written in bundle.written}
    places = [at for at, cell in enumerate(cells) if cell.grade_id in named]
    flags, taken = [], set[int]()
    for place in places:
        around = [at for at in _around(place, cells, bundle) if _is_text(cells[at])]
        parts = [at for at in sorted(around) if at not in taken and not is_stub(cells[at].source)]
        if not parts:
            continue
        taken.update(parts)
        whole = sorted(parts if is_stub(cells[place].source) else [*parts, place])
        cells[place] = replace(
            cells[place],
            source="\n\n".join(cells[at].source.strip() for at in whole),
            attachments=tuple(
                file for at in sorted([*parts, place]) for file in cells[at].attachments
            ),
        )
        flags.append(kinds.WRITTEN_BESIDE.flag(cell=cells[place].grade_id, number=len(parts)))
    own = [
        cell
        for at, cell in enumerate(cells)
        if cell.kind != "code" and at not in taken and at not in places and _is_own(cell, bundle)
    ]
    if own:
        first = plain_line(own[0].source.strip().splitlines()[0], MAX_QUOTED_CHARACTERS)
        flags.append(kinds.OWN_TEXT.flag(number=len(own), first=first))
    return [cell for at, cell in enumerate(cells) if at not in taken], flags


def _around(place: int, cells: list[Cell], bundle: Bundle) -> Iterable[int]:
    """The places of a student's own cells next to another cell, on both sides."""
    for way in (-1, 1):
        at = place + way
        while 0 <= at < len(cells) and (is_stub(cells[at].source) or _is_own(cells[at], bundle)):
            yield at
            at += way


def _is_own(cell: Cell, bundle: Bundle) -> bool:
    """Whether no release holds a cell, and it is not empty."""
    names = {test.grade_id for test in bundle.tests} | {w.grade_id for w in bundle.written}
    if cell.grade_id in names or cell.grade_id in bundle.exercises:
        return False
    return not is_stub(cell.source) and cell.digest not in bundle.handed_out


def _is_text(cell: Cell) -> bool:
    """Whether a cell holds words: of code cells, such as have comments alone, or that Python cannot
    read and that are sentences."""
    if cell.kind != "code":
        return True
    lines = cell.source.strip().splitlines()
    if all(line.lstrip().startswith("#") for line in lines):
        return True
    sentence = _SENTENCE.match(lines[0][:MAX_LINE_CHARACTERS])
    return sentence is not None and not look(cell.source, True).is_python
