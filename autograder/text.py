"""Text of a student's making, as it may be shown: on a terminal, in a page, in a database.

What is taken out is replaced by U+FFFD: control characters (terminals obey them, PostgreSQL
refuses NUL), halves of surrogate pairs (they cannot be written as UTF-8), and marks that
turn the direction of the text around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, most: int) -> str:
    """At most ``most`` characters of ``text``; line breaks and tabs stay."""
    return _UNFIT.sub("\ufffd", text[:most])


def plain_line(text: str, most: int = 200) -> str:
    """The same on one line: for names of files and people."""
    return re.sub("[\t\n]", "\ufffd", plain(text, most))


def aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Lines of a table for a terminal; all columns but the first ``left`` end in line."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join(
            text.ljust(width) if column < left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
