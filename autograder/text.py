"""Text of a student's making, as it may be shown: on a terminal, in a page, in a database.

What is taken out is replaced by U+FFFD: control characters (terminals obey them, PostgreSQL
refuses NUL), halves of surrogate pairs (they cannot be written as UTF-8), and marks that
turn the direction of the text around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: How a terminal is told of colours: Keras writes them into the text of its errors.
_COLOURS = re.compile("\x1b\\[[0-9;]{0,20}m")

_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, most: int) -> str:
    """At most ``most`` characters of ``text``; line breaks and tabs stay."""
    if not text:
        return text
    return _UNFIT.sub("\ufffd", _COLOURS.sub("", text[:most]))


def plain_line(text: str, most: int = 200) -> str:
    """The same on one line: for names of files and people."""
    return re.sub("[\t\n]", "\ufffd", plain(text, most))


def listed(names: Sequence[str], most: int) -> str:
    """Names for one line of a terminal: at most so many, and how many more there are."""
    shown = ", ".join(plain_line(name) for name in names[:most])
    more = len(names) - most
    return f"{shown} and {more} more (--details)" if more > 0 else shown


def first_sentence(text: str, most: int = 160) -> str:
    """The first sentence of the first line, formulas and code in it whole; "" of nothing.

    Args:
        text: in Markdown.
        most: characters of a line without an end of a sentence.
    """
    line = next(iter(text.strip().splitlines()), "")
    for end in re.finditer(r"[.?!](?=\s)", line):
        first = line[: end.end()]
        if first.count("$") % 2 == 0 and first.count("`") % 2 == 0:
            return first
    if len(line) <= most or "$" in line:
        return line
    return line[:most].rsplit(" ", 1)[0] + " …"


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
