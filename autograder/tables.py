"""Tables as spreadsheets and learning management systems (LMS) write and read them: CSV."""

from __future__ import annotations

import codecs
import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.errors import WrongUse

#: Bytes of a table. A class of a thousand has a few hundred thousand.
MAX_BYTES = 20 * 2**20
# A cell may be as long: Python's own limit, 131,072 characters, lets one student who writes more
# into a form or an online text spoil the table of all.
csv.field_size_limit(MAX_BYTES)


class SpreadsheetError(WrongUse):
    """A table cannot be read; the message says what to do."""


@dataclass(frozen=True)
class Table:
    """A table with its heading, as it stands in the file.

    ``named`` says of some names which column they mean, whatever its heading is.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    delimiter: str = ","
    named: Mapping[str, int] = field(default_factory=dict)

    def column(self, *names: str) -> int | None:
        """Where the first of these names stands that the table has; case does not matter."""
        there = [_as_heading(name) for name in self.columns]
        for name in names:
            if name in self.named:
                return self.named[name]
        for name in names:
            if _as_heading(name) in there:
                return there.index(_as_heading(name))
        return None


def _as_heading(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).replace("’", "'").casefold().split())


def read_table(path: Path) -> Table:
    """Read a CSV file with commas, semicolons or tabs; short rows are filled up.

    Raises:
        SpreadsheetError: there is no such file, or it is no such table.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SpreadsheetError(f"{path} is too large for a table of a class; name another file")
        data = path.read_bytes()
        utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = data.decode("utf-16" if utf16 else "utf-8-sig")
    except OSError as error:
        raise SpreadsheetError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpreadsheetError(
            f"{path} is not UTF-8 text; save it in the spreadsheet program as “CSV UTF-8”"
        ) from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        lines = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise SpreadsheetError(f"{path} is not a CSV file: {error}; export it again") from None
    if not lines:
        raise SpreadsheetError(f"{path} is empty; its first line should name the columns")
    columns, *rows = lines
    width = len(columns)
    return Table(
        tuple(columns),
        tuple(tuple([*row[:width], *[""] * (width - len(row))]) for row in rows),
        delimiter,
    )


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    """A table as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", delimiter=delimiter)
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def as_cell(value: Any) -> Any:
    """A value that a spreadsheet does not take for a formula."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return "'" + value
    return value


def as_points(points: float, like: str = "") -> str:
    """Points with at most two decimals, as every LMS reads them.

    Args:
        points: the number.
        like: another number of the same table; where it has a decimal comma, this one has.
    """
    text = f"{round(points, 2):g}"
    return text.replace(".", ",") if "," in like and "." not in like else text
