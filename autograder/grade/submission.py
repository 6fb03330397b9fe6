"""Reading what a student handed in, whatever it is."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autograder.course.bundle import Bundle, TestCell
from autograder.grade import flags as kinds
from autograder.grade import reasons
from autograder.grade.flags import Flag
from autograder.grade.reader import names_bound
from autograder.notebooks import HIDDEN, grade_id, joined, png_of
from autograder.text import plain_line

#: A notebook file, in bytes. One with many figures has a few million.
MOST_BYTES = 25 * 2**20
#: Lists and objects in it: read, each takes up to a hundred times its place in the file.
MOST_CONTAINERS = 1_000_000
#: Its cells. A lesson has a few dozen.
MOST_CELLS = 2_000
#: Outputs of a cell.
MOST_OUTPUTS = 200
#: Files that a reason names.
MOST_NAMES = 5


#: What stands in the answer cells of solved notebooks, and of no other.
SOLVED_MARK = "### BEGIN SOLUTION"

#: What nbgrader puts where a written answer goes.
WRITTEN_STUB = "YOUR ANSWER HERE"


class Unreadable(Exception):
    """No notebook could be read; the message is for the student."""


class Missing(Exception):
    """There is no notebook; the message is for the student."""


@dataclass(frozen=True)
class Cell:
    """One cell of a submission; nothing in it is believed."""

    kind: str
    source: str
    grade_id: str = ""
    outputs: tuple[dict[str, Any], ...] = ()


@dataclass
class Submission:
    """The cells of a submitted notebook, and what was odd about it."""

    cells: list[Cell]
    flags: list[Flag] = field(default_factory=list)

    def to_run(self, bundle: Bundle) -> list[Cell]:
        """The student's code cells in order, without test cells and demonstrations."""
        tests = {test.grade_id for test in bundle.tests}
        known = {test.released.strip() for test in bundle.tests}
        known |= {test.source.strip() for test in bundle.tests} | bundle.demonstrations
        known |= {text for former in bundle.earlier for text in former.known}
        return [
            cell
            for cell in self.cells
            if cell.kind == "code"
            and cell.grade_id not in tests
            and cell.source.strip()
            and cell.source.strip() not in known
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
        called = ", ".join(beside[:MOST_NAMES]) + (", …" if len(beside) > MOST_NAMES else "")
        flag = kinds.LEFT_OUT.flag(called=called, expected=expected.name)
        return expected, [flag] if beside else []
    if len(others) == 1:
        called = plain_line(others[0].name)
        return others[0], [kinds.RENAMED.flag(called=called, expected=expected.name)]
    if others:
        names = ", ".join(plain_line(path.name) for path in others[:MOST_NAMES])
        names += ", …" if len(others) > MOST_NAMES else ""
        raise Missing(
            f"There are {len(others)} notebooks ({names}) and none is called {expected.name}. "
            "Hand in one, under that name."
        )
    of_another_kind = [path for path in there if path.is_file() and not _left_by_others(path.name)]
    if of_another_kind:
        names = ", ".join(plain_line(path.name) for path in of_another_kind[:MOST_NAMES])
        raise Missing(f"{reasons.OTHER_FILES}: {names}. Hand in {expected.name}.")
    raise Missing(f"{reasons.NOT_HANDED_IN}. It should be called {expected.name}.")


def _left_by_others(name: str) -> bool:
    """Whether a file beside the notebook is no student's: nbgrader's time, a system's own."""
    return name == "timestamp.txt" or name.startswith(".")


def read_file(path: Path) -> bytes:
    """The bytes of a regular file; links, pipes and devices are refused.

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
        if status.st_size > MOST_BYTES:
            raise Unreadable(
                f"The notebook has {status.st_size / 2**20:.0f} MB; at most "
                f"{MOST_BYTES // 2**20} MB are read. Clear its outputs and hand it in again."
            )
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES)
    finally:
        os.close(descriptor)


def parse(data: bytes, bundle: Bundle) -> Submission:
    """The cells of a notebook, of any nbformat that can be understood.

    Raises:
        Unreadable: with the reason, for the student.
    """
    if not data.strip():
        raise Unreadable(f"{reasons.EMPTY}. Save the notebook and hand it in again.")
    if data.count(b"{") + data.count(b"[") > MOST_CONTAINERS:
        raise Unreadable(
            f"The notebook holds more than {MOST_CONTAINERS} lists and objects. Clear its outputs "
            "and hand it in again."
        )
    try:
        tree = json.loads(data.decode(json.detect_encoding(data)))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, ValueError):
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
    if len(cells) > MOST_CELLS:
        raise Unreadable(
            f"The notebook has {len(cells)} cells; at most {MOST_CELLS} are read. Remove what "
            "does not belong to the lesson and hand it in again."
        )
    read = [_cell(raw) for raw in cells]
    known = [cell for cell in read if cell is not None]
    known, told = find_written_answers(known, bundle)
    flags += told
    submission = Submission(known, flags)
    unread = len(read) - len(submission.cells)
    if unread:
        first = read.index(None) + 1
        flags.append(kinds.CELLS_UNREAD.flag(unread=unread, cells=len(read), first=first))
    flags.extend(_oddities(submission, bundle))
    return submission


def _cell(raw: Any) -> Cell | None:
    if not isinstance(raw, dict):
        return None
    source = raw.get("source", raw.get("input", ""))  # input: nbformat 2 and 3
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    kind = raw.get("cell_type")
    if not isinstance(source, str) or kind not in ("code", "markdown", "raw"):
        return None
    metadata = raw.get("metadata")
    ours = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = ours.get("grade_id") if isinstance(ours, dict) else None
    outputs = raw.get("outputs")
    outputs = outputs if isinstance(outputs, list) else []
    return Cell(
        kind,
        _writable(source),
        _writable(name) if isinstance(name, str) else "",
        tuple(_output(output) for output in outputs[:MOST_OUTPUTS] if isinstance(output, dict)),
    )


def _output(raw: dict[str, Any]) -> dict[str, Any]:
    """What of an output may be shown: a few strings, never a tree of a student's making."""
    data = raw.get("data")
    data = data if isinstance(data, dict) else {}
    return {
        **{part: _text(raw.get(part)) for part in ("output_type", "text", "ename", "evalue")},
        "data": {"text/plain": _text(data.get("text/plain")), "image/png": _writable(png_of(data))},
    }


def _text(value: Any) -> str:
    return _writable(joined(value))


def _writable(text: str) -> str:
    """Without halves of surrogate pairs: JSON can spell them, no file can hold them."""
    return text.encode("utf-8", "replace").decode()


def find_written_answers(cells: list[Cell], bundle: Bundle) -> tuple[list[Cell], list[Flag]]:
    """The cells with each written answer under its name once, and what is to be said of it.

    A copied cell has the name twice: the last one that is more than the stub counts. A tool
    that drops metadata leaves none: the one nameless text between what stands before the
    answer in the lesson and what stands after it is the answer.
    """
    cells, flags = list(cells), list[Flag]()
    for name in [written.grade_id for written in bundle.written]:
        copies = [number for number, cell in enumerate(cells) if cell.grade_id == name]
        answered = [number for number in copies if not _is_stub(cells[number].source)]
        if len(copies) > 1:
            kept = (answered or copies)[-1]
            for number in copies:
                if number != kept:
                    cells[number] = replace(cells[number], grade_id="")
            flags.append(kinds.WRITTEN_COPIED.flag(cell=name, times=len(copies)))
        if copies:
            continue
        place = _place_of(name, cells, bundle)
        if place is None:
            flags.append(kinds.WRITTEN_MISSING.flag(cell=name))
        elif not _is_stub(cells[place].source):
            cells[place] = replace(cells[place], grade_id=name, kind="markdown")
            flags.append(kinds.WRITTEN_FOUND.flag(cell=name))
    return cells, flags


def _is_stub(text: str) -> bool:
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
    return not cell.grade_id and cell.source.strip() == HIDDEN.sub("", of_the_lesson.source).strip()


def _names_typed_into(copies: list[Cell], test: TestCell) -> list[str]:
    """What a check cell binds and the original does not: a helper that somebody typed there."""
    as_released = test.released.strip()
    edited = [cell for cell in copies if cell.source.strip() != as_released]
    original = names_bound(test.source) if edited else []
    typed = [name for cell in edited for name in names_bound(cell.source) if name not in original]
    return [plain_line(name) for name in dict.fromkeys(typed)][:MOST_NAMES]


def _oddities(submission: Submission, bundle: Bundle) -> list[Flag]:
    flags = []
    from_earlier = False
    for test in bundle.tests:
        copies = [cell for cell in submission.cells if cell.grade_id == test.grade_id]
        if not copies:
            flags.append(kinds.TEST_MISSING.flag(cell=test.grade_id))
        elif len(copies) > 1:
            flags.append(kinds.TEST_COPIED.flag(cell=test.grade_id, times=len(copies)))
        elif copies[0].source.strip() not in (test.released.strip(), test.source.strip()):
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
    text = cell.source.strip()
    return any(text in former.handed_out(cell.grade_id) for former in bundle.earlier)
