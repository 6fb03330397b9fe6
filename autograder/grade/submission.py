"""Reading what a student handed in, whatever it is."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from autograder.course.bundle import Bundle, TestCell
from autograder.grade import flags as kinds
from autograder.grade import reasons
from autograder.grade.cells import Cell, cell_of
from autograder.grade.flags import Flag
from autograder.grade.limits import (
    MAX_NOTEBOOK_BYTES,
    MAX_NOTEBOOK_CELLS,
    MAX_NOTEBOOK_CONTAINERS,
    MAX_TIMES_READ,
)
from autograder.grade.pictures import with_pictures
from autograder.grade.reader import look, look_at, names_bound
from autograder.grade.restored import with_answers_as_code, with_names
from autograder.grade.without_outputs import TooLarge, read_without_outputs
from autograder.grade.written import find_written_answers, with_text_beside
from autograder.text import plain_line
from lesson_kit import notebook_reading as reading

#: Files that a reason names.
MAX_NAMES = 5
#: Edited copies of a test cell, the last ones, in which names are looked for.
MAX_COPIES = 3


#: What stands in the answer cells of solved notebooks, and of no other.
SOLVED_MARK = "### BEGIN SOLUTION"


class Unreadable(Exception):
    """No notebook could be read; the message is for the student."""


class Missing(Exception):
    """There is no notebook; the message is for the student."""


@dataclass
class Submission:
    """The cells of a submitted notebook, and what was odd about it."""

    cells: list[Cell]
    flags: list[Flag] = field(default_factory=list)

    def to_run(self, bundle: Bundle) -> list[Cell]:
        """The student's code cells in order, without test cells and demonstrations."""
        tests = {test.grade_id for test in bundle.tests}
        return [
            cell
            for cell in self.cells
            if cell.kind == "code"
            and cell.grade_id not in tests
            and cell.source.strip()
            and cell.digest not in bundle.never_run
        ]

    def written_answers(self, bundle: Bundle) -> dict[str, str]:
        """The text of each written answer that is there."""
        wanted = {written.grade_id for written in bundle.written}
        return {cell.grade_id: cell.source for cell in self.cells if cell.grade_id in wanted}


def find_notebook(folder: Path, bundle: Bundle) -> tuple[Path, list[Flag]]:
    """The submitted notebook, also under another name if it is the only one.

    Raises:
        Missing: there is none, or several and none of the right name.
    """
    expected = folder / f"{bundle.notebook_name}.ipynb"
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    others = [path for path in there if path.name.casefold().endswith(".ipynb")]
    if os.path.lexists(expected):
        beside = [plain_line(path.name) for path in others if path.name != expected.name]
        called = ", ".join(beside[:MAX_NAMES]) + (", …" if len(beside) > MAX_NAMES else "")
        flag = kinds.LEFT_OUT.flag(called=called, expected=expected.name)
        return expected, [flag] if beside else []
    if len(others) == 1:
        called = plain_line(others[0].name)
        return others[0], [kinds.RENAMED.flag(called=called, expected=expected.name)]
    if others:
        names = ", ".join(plain_line(path.name) for path in others[:MAX_NAMES])
        names += ", …" if len(others) > MAX_NAMES else ""
        raise Missing(
            f"There are {len(others)} notebooks ({names}) and none is called {expected.name}. "
            "Hand in one, under that name."
        )
    of_another_kind = [path for path in there if path.is_file() and not _left_by_others(path.name)]
    renamed = [path for path in of_another_kind if _is_renamed_notebook(path)]
    if len(renamed) == 1:
        called = plain_line(renamed[0].name)
        return renamed[0], [kinds.RENAMED.flag(called=called, expected=expected.name)]
    if of_another_kind:
        names = ", ".join(plain_line(path.name) for path in of_another_kind[:MAX_NAMES])
        raise Missing(f"{reasons.OTHER_FILES}: {names}. Hand in {expected.name}.")
    raise Missing(f"{reasons.NOT_HANDED_IN}. It should be called {expected.name}.")


def _left_by_others(name: str) -> bool:
    """Whether a file beside the notebook is no student's: nbgrader's time, a system's own."""
    return name == "timestamp.txt" or name.startswith(".")


def _is_renamed_notebook(path: Path) -> bool:
    """Whether a file is a notebook to which a program gave another ending."""
    try:
        return reading.holds_a_notebook(read_file(path))
    except Unreadable:
        return False


def read_file(path: Path, most: int = MAX_NOTEBOOK_BYTES) -> bytes:
    """The bytes of a regular file, without large outputs where it is a notebook.

    Links, pipes and devices are refused.

    Raises:
        Unreadable: it is none, or too large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        failed = f"{reasons.NOT_OPENED}: {error.strerror or 'unknown reason'}"
        why = reasons.A_LINK if path.is_symlink() else failed
        raise Unreadable(f"{why}. Hand in the file.") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{reasons.NOT_REGULAR}. Hand in the .ipynb file itself.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return content_of(file, most)
    finally:
        os.close(descriptor)


def content_of(file: BinaryIO, most: int) -> bytes:
    """What is read of a notebook file, see :mod:`.without_outputs`.

    Raises:
        Unreadable: it is too large.
    """
    try:
        return read_without_outputs(file, most, most * MAX_TIMES_READ)
    except TooLarge:
        raise Unreadable(
            f"The notebook has more than {most // 2**20} MB without its outputs, and no more is "
            "read. Take out what is large, such as pictures, and hand it in again."
        ) from None


#: The steps from cells as they came to cells as they were meant, each with what is said of it.
_MEANT = (with_names, with_answers_as_code, find_written_answers, with_text_beside, with_pictures)


def parse(data: bytes, bundle: Bundle) -> Submission:
    """The cells of a notebook, of any nbformat that can be understood.

    Raises:
        Unreadable: with the reason, for the student.
    """
    if not data.strip():
        raise Unreadable(f"{reasons.EMPTY}. Save the notebook and hand it in again.")
    if data.count(b"{") + data.count(b"[") > MAX_NOTEBOOK_CONTAINERS:
        raise Unreadable(
            f"The notebook holds more than {MAX_NOTEBOOK_CONTAINERS} lists and objects. Clear its "
            "outputs and hand it in again."
        )
    try:
        tree = reading.tree_of(data)
    except (RecursionError, ValueError):
        raise Unreadable(
            f"{reasons.NOT_JSON}. Open it in JupyterLab; if that fails too, hand in an earlier "
            "copy."
        ) from None
    flags: list[Flag] = []
    version = tree.get("nbformat") if isinstance(tree, dict) else None
    if isinstance(version, float) and version.is_integer():
        version = int(version)
    if not isinstance(tree, dict) or not isinstance(version, int) or isinstance(version, bool):
        raise Unreadable(f"{reasons.NO_NOTEBOOK}. Hand in the .ipynb file itself.")
    if version > 4:
        raise Unreadable(f"The notebook has format {version}; formats 1 to 4 can be read.")
    if version < 4:
        flags.append(kinds.OLD_FORMAT.flag(version=version))
    cells = tree.get("cells")
    if not isinstance(cells, list) and isinstance(tree.get("worksheets"), list):
        sheets = [sheet for sheet in tree["worksheets"] if isinstance(sheet, dict)]
        lists = [sheet["cells"] for sheet in sheets if isinstance(sheet.get("cells"), list)]
        cells = [cell for cells in lists for cell in cells]
    if not isinstance(cells, list):
        raise Unreadable("The notebook has no list of cells. Save it in JupyterLab and try again.")
    if len(cells) > MAX_NOTEBOOK_CELLS:
        raise Unreadable(
            f"The notebook has {len(cells)} cells; at most {MAX_NOTEBOOK_CELLS} are read. Remove "
            "what does not belong to the lesson and hand it in again."
        )
    read = [cell_of(raw) for raw in cells]
    known = [cell for cell in read if cell is not None]
    unread = len(read) - len(known)
    if unread:
        first = read.index(None) + 1
        flags.append(kinds.CELLS_UNREAD.flag(unread=unread, cells=len(read), first=first))
    look_at((cell.source, cell.kind == "code") for cell in known)
    for step in _MEANT:
        known, told = step(known, bundle)
        flags += told
    submission = Submission(known, flags)
    flags.extend(_oddities(submission, bundle))
    return submission


def _names_typed_into(copies: list[Cell], test: TestCell) -> list[str]:
    """What a check cell binds and the original does not: a helper that somebody typed there."""
    edited = [cell for cell in copies if not _same(cell.source, test.released)]
    original = names_bound(test.source) if edited else []
    last = edited[-MAX_COPIES:]
    typed = [name for cell in last for name in names_bound(cell.source) if name not in original]
    return [plain_line(name) for name in dict.fromkeys(typed)][:MAX_NAMES]


def _oddities(submission: Submission, bundle: Bundle) -> list[Flag]:
    flags = []
    from_earlier = False
    for test in bundle.tests:
        copies = [cell for cell in submission.cells if cell.grade_id == test.grade_id]
        if not copies:
            flags.append(kinds.TEST_MISSING.flag(cell=test.grade_id))
        elif len(copies) > 1:
            flags.append(kinds.TEST_COPIED.flag(cell=test.grade_id, times=len(copies)))
        elif not _same(copies[0].source, test.released, test.source):
            if _handed_out_before(copies[0], bundle):
                from_earlier = True
                continue
            flags.append(kinds.TEST_EDITED.flag(cell=test.grade_id))
        names = _names_typed_into(copies, test)
        if names:
            flags.append(kinds.TYPED_INTO_TEST.flag(cell=test.grade_id, names=", ".join(names)))
    for name in bundle.exercises:
        copies = [cell for cell in submission.cells if cell.grade_id == name]
        if not copies:
            flags.append(kinds.ANSWER_MISSING.flag(cell=name))
        elif len(copies) > 1:
            flags.append(kinds.ANSWER_COPIED.flag(cell=name, times=len(copies)))
        if any(SOLVED_MARK in cell.source for cell in copies):
            flags.append(kinds.SOLVED.flag(cell=name, mark=SOLVED_MARK))
    return [kinds.EARLIER_RELEASE.flag(), *flags] if from_earlier else flags


def _handed_out_before(cell: Cell, bundle: Bundle) -> bool:
    """Whether a test cell is as an earlier release had it."""
    return any(_same(cell.source, *former.handed_out(cell.grade_id)) for former in bundle.earlier)


def _same(text: str, *given: str) -> bool:
    """Whether code is one of these, however it is laid out."""
    return look(text, True).digest in [reading.digest(known, True) for known in given]
