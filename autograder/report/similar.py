"""Submissions whose code is alike, for a person to look at; never a grade.

copydetect's winnowing (Schleimer, Wilkerson and Aiken 2003) compares code without names, comments
and blanks. What was handed out, the course's own answers and what many in the class have is taken
out first: right answers to one exercise look alike.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from autograder.classroom.folder import ClassFolder
from autograder.course.bundle import Bundle
from autograder.errors import WrongUse
from autograder.grade.submission import (
    Missing,
    Unreadable,
    find_notebook,
    parse,
    read_file,
)
from autograder.limited_process import LimitedProcess, TooMuch
from autograder.tables import as_cell, as_csv
from autograder.text import aligned, plain, plain_line

#: Length of what is compared, and of the window of which one is kept, in letters without names.
K_GRAM, WINDOW = 25, 5
#: Stands between cells, so that no piece goes over from one that was handed out to another one.
_BETWEEN = "\n" + "9" * K_GRAM + "\n"
#: What more than this share of a class has (and more than so many) is nobody's own.
COMMON_SHARE, COMMON_LEAST = 0.1, 3
#: Letters without names that two have to share before they are named.
LEAST_TOKENS = 60
#: Characters of code of one submission that are compared: the time grows faster than they do.
MAX_CHARACTERS = 200_000
#: Characters of the first common piece that is shown.
MAX_SHOWN = 300

_reader = LimitedProcess("autograder.report.tokens_process")


class SimilarError(WrongUse):
    """Submissions cannot be compared; the message says what to do."""


@dataclass(frozen=True)
class Pair:
    """Two submissions with code in common that nobody handed out.

    ``shares`` are of what is left of each, 0 to 1; ``piece`` is the longest that both have, as the
    first of the two wrote it.
    """

    students: tuple[str, str]
    tokens: int
    shares: tuple[float, float]
    piece: str


def similar(
    folder: ClassFolder,
    assignment: str,
    least: float = 0.5,
    left_out: Callable[[str], object] = lambda student: None,
) -> list[Pair]:
    """The pairs of submissions that share most of their own code, the most alike first.

    Args:
        folder: the class.
        assignment: whose submissions.
        least: the share of the smaller one's own code that has to be common.
        left_out: is told of each student whose code is too much to be read.

    Raises:
        ClassError: there is no such assignment.
        SimilarError: the extra is not installed.
    """
    bundle = folder.bundle(assignment)
    code = {}
    for handin in folder.handins()[0]:
        if handin.assignment != assignment:
            continue
        try:
            path, _ = find_notebook(handin.folder, bundle)
            cells = parse(read_file(path), bundle).to_run(bundle)
        except (Missing, Unreadable):
            continue
        code[handin.student] = compared([cell.source for cell in cells])
    return alike(code, handed_out(bundle), least, left_out)


def compared(cells: Sequence[str]) -> list[str]:
    """The cells that are compared, in order: of a huge submission the longest are left out, which
    nobody has written by hand."""
    left = MAX_CHARACTERS
    taken = set()
    for number in sorted(range(len(cells)), key=lambda number: len(cells[number])):
        left -= len(cells[number])
        if left < 0:
            break
        taken.add(number)
    return [cell for number, cell in enumerate(cells) if number in taken]


def handed_out(bundle: Bundle) -> list[str]:
    """The code that is nobody's own: the lesson's cells, solved and as stubs, and its tests."""
    cells = [str(cell.source) for cell in bundle.notebook.cells if cell.cell_type == "code"]
    return [*cells, *(text for former in bundle.earlier for text in sorted(former.known))]


def alike(
    code: Mapping[str, Sequence[str]],
    known: Iterable[str],
    least: float = 0.5,
    left_out: Callable[[str], object] = lambda student: None,
) -> list[Pair]:
    """Pairs of students that share code of their own.

    Args:
        code: the cells of each student.
        known: texts that everybody was given.
        least, left_out: see :func:`similar`.

    Raises:
        SimilarError: the extra is not installed.
    """
    taken_out = {mark for text in known for mark in _fingerprint([text], 1).hashes}
    prints = {}
    for student, cells in code.items():
        try:
            prints[student] = _fingerprint(cells, WINDOW)
        except TooMuch:
            left_out(student)
    holders = Counter(mark for fingerprint in prints.values() for mark in fingerprint.hashes)
    most = max(COMMON_LEAST, COMMON_SHARE * len(prints))
    taken_out |= {mark for mark, number in holders.items() if number > most}
    for fingerprint in prints.values():
        _without(fingerprint, taken_out)
    who: dict[int, list[str]] = {}
    for student, fingerprint in sorted(prints.items()):
        for mark in fingerprint.hashes:
            who.setdefault(mark, []).append(student)
    pairs = {pair for students in who.values() for pair in combinations(students, 2)}
    compared = (_pair(pair, prints) for pair in sorted(pairs))
    close = [pair for pair in compared if pair.tokens >= LEAST_TOKENS and max(pair.shares) >= least]
    return sorted(close, key=lambda pair: (-max(pair.shares), -pair.tokens, pair.students))


def _fingerprint(cells: Sequence[str], window: int) -> Any:
    try:
        from copydetect import CodeFingerprint
    except ImportError:
        raise SimilarError(
            "comparing submissions needs copydetect, which is not installed: "
            "pip install 'attention-course-autograder[similar]'"
        ) from None
    text = _BETWEEN + _BETWEEN.join(cells) + _BETWEEN
    code, offsets = _reader.ask("without_names", text)
    fingerprint = CodeFingerprint("cell.py", K_GRAM, window, filter=False, fp=io.StringIO(code))
    fingerprint.raw_code, fingerprint.offsets = text, np.array(offsets)
    return fingerprint


def _without(fingerprint: Any, taken_out: set[int]) -> None:
    """Leave of a fingerprint what is a student's own."""
    from copydetect.utils import get_token_coverage

    fingerprint.hash_idx = {
        mark: at for mark, at in fingerprint.hash_idx.items() if mark not in taken_out
    }
    fingerprint.hashes = set(fingerprint.hash_idx)
    fingerprint.token_coverage = get_token_coverage(
        fingerprint.hash_idx, fingerprint.k, len(fingerprint.filtered_code)
    )


def _pair(students: tuple[str, str], prints: Mapping[str, Any]) -> Pair:
    from copydetect import compare_files

    first, second = (prints[student] for student in students)
    tokens, shares, (places, _) = compare_files(first, second)
    lengths = [end - start for start, end in zip(*places)] if len(places) else []
    piece = ""
    if lengths:
        at = lengths.index(max(lengths))
        common = first.raw_code[int(places[0][at]) : int(places[1][at])]
        piece = max(common.split(_BETWEEN.strip()), key=len).strip()
    return Pair(
        students,
        int(tokens),
        (min(1.0, float(shares[0])), min(1.0, float(shares[1]))),
        plain(piece, MAX_SHOWN),
    )


def as_table(pairs: Iterable[Pair]) -> str:
    """Pairs as CSV, for a spreadsheet."""
    columns = ("first", "second", "share_of_first", "share_of_second", "tokens", "piece")
    rows = [
        [
            *(as_cell(student) for student in pair.students),
            *(f"{share:.2f}" for share in pair.shares),
            pair.tokens,
            as_cell(pair.piece),
        ]
        for pair in pairs
    ]
    return as_csv(columns, rows)


def in_lines(pairs: Iterable[Pair]) -> str:
    """Pairs for a terminal."""
    rows: list[tuple[str, ...]] = [("first", "second", "of first", "of second")]
    rows += [
        (
            *(plain_line(student) for student in pair.students),
            *(f"{share:.0%}" for share in pair.shares),
        )
        for pair in pairs
    ]
    return "\n".join(aligned(rows, left=2))
