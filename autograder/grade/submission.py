"""Reading what a student handed in, whatever it is."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.course.bundle import Bundle
from autograder.text import plain_line

#: A notebook file, in bytes. One with many figures has a few million.
MOST_BYTES = 25 * 2**20
#: Its cells. A lesson has a few dozen.
MOST_CELLS = 2_000
#: Outputs of a cell.
MOST_OUTPUTS = 200
#: Files that a reason names.
MOST_NAMES = 5


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
    flags: list[str] = field(default_factory=list)

    def to_run(self, bundle: Bundle) -> list[Cell]:
        """The student's code cells in order, without test cells and demonstrations."""
        tests = {test.grade_id for test in bundle.tests}
        known = {test.released.strip() for test in bundle.tests}
        known |= {test.source.strip() for test in bundle.tests} | bundle.demonstrations
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


def find_notebook(folder: Path, bundle: Bundle) -> tuple[Path, list[str]]:
    """The submitted notebook, also under another name if it is the only one.

    Raises:
        Missing: there is none, or several and none of the right name.
    """
    expected = folder / f"{bundle.notebook_name}.ipynb"
    if os.path.lexists(expected):
        return expected, []
    others = sorted(folder.glob("*.ipynb")) if folder.is_dir() else []
    if len(others) == 1:
        called = plain_line(others[0].name)
        return others[0], [f"the notebook was called {called}, not {expected.name}"]
    if others:
        names = ", ".join(plain_line(path.name) for path in others[:MOST_NAMES])
        names += ", …" if len(others) > MOST_NAMES else ""
        raise Missing(
            f"There are {len(others)} notebooks ({names}) and none is called {expected.name}. "
            "Hand in one, under that name."
        )
    raise Missing(f"No notebook was handed in. It should be called {expected.name}.")


def read_file(path: Path) -> bytes:
    """The bytes of a regular file; links, pipes and devices are refused.

    Raises:
        Unreadable: it is none, or too large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        why = "it is a link" if path.is_symlink() else (error.strerror or "unknown reason")
        raise Unreadable(f"The notebook could not be opened: {why}. Hand in the file.") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("The notebook is not a regular file. Hand in the .ipynb file itself.")
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
        raise Unreadable("The file is empty. Save the notebook and hand it in again.")
    try:
        tree = json.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, ValueError):
        raise Unreadable(
            "The file is not a notebook: it is not JSON. Open it in JupyterLab; if that fails too, "
            "hand in an earlier copy."
        ) from None
    flags: list[str] = []
    version = tree.get("nbformat") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or not isinstance(version, int) or isinstance(version, bool):
        raise Unreadable("The file is JSON but not a notebook. Hand in the .ipynb file itself.")
    if version > 4:
        raise Unreadable(f"The notebook has format {version}; formats 1 to 4 can be read.")
    if version < 4:
        flags.append(f"the notebook has the old format {version}; it was read as far as possible")
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
    submission = Submission([cell for cell in read if cell is not None], flags)
    unread = len(read) - len(submission.cells)
    if unread:
        first = read.index(None) + 1
        flags.append(f"{unread} of {len(read)} cells could not be read (first: cell {first})")
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
        **{part: _joined(raw.get(part)) for part in ("output_type", "text", "ename", "evalue")},
        "data": {part: _joined(data[part]) for part in ("text/plain", "image/png") if part in data},
    }


def _joined(value: Any) -> str:
    if isinstance(value, list):
        value = "".join(part for part in value if isinstance(part, str))
    return _writable(value) if isinstance(value, str) else ""


def _writable(text: str) -> str:
    """Without halves of surrogate pairs: JSON can spell them, no file can hold them."""
    return text.encode("utf-8", "replace").decode()


def _oddities(submission: Submission, bundle: Bundle) -> list[str]:
    flags = []
    for test in bundle.tests:
        copies = [cell for cell in submission.cells if cell.grade_id == test.grade_id]
        if not copies:
            flags.append(f"test cell {test.grade_id} is missing; the original was used")
        elif len(copies) > 1:
            flags.append(
                f"test cell {test.grade_id} stands {len(copies)} times; the original was used once"
            )
        elif copies[0].source.strip() not in (test.released.strip(), test.source.strip()):
            flags.append(f"test cell {test.grade_id} was edited; the original was used")
    for name in bundle.exercises:
        copies = [cell for cell in submission.cells if cell.grade_id == name]
        if not copies:
            flags.append(f"answer cell {name} is missing; all cells were run as they are")
        elif len(copies) > 1:
            flags.append(f"answer cell {name} stands {len(copies)} times; the last one counts")
    return flags
