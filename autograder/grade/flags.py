"""What was odd about a submission, beside its points: data, with words for people.

The words of each kind stand here and nowhere else. ``grades.json`` publishes the words alone;
:func:`flag_of` gives the flag back to who reads that file, by the same forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from string import Formatter


@dataclass(frozen=True)
class Flag:
    """Something odd: of what kind, about which cell of the lesson (or ""), and in words."""

    kind: str
    cell: str
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Kind:
    """A kind of flag; ``form`` is its words, ``{cell}`` in it the cell that it is about."""

    name: str
    form: str

    def flag(self, **values: object) -> Flag:
        """The flag of this kind with these values in its words."""
        return Flag(self.name, str(values.get("cell", "")), self.form.format(**values))

    def read(self, words: str) -> Flag | None:
        """The flag of this kind that has these words; None where they are not of its form."""
        match = self._pattern.fullmatch(words)
        return Flag(self.name, match.groupdict().get("cell", ""), words) if match else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = []
        for text, field, _, _ in Formatter().parse(self.form):
            pieces.append(re.escape(text))
            if field is not None:
                pieces.append(r"(?P<cell>\S+)" if field == "cell" else ".+")
        return re.compile("".join(pieces))


RENAMED = Kind("renamed", "the notebook was called {called}, not {expected}")
LEFT_OUT = Kind("left_out", "{called} was handed in too and not graded; {expected} counts")
SOLVED = Kind(
    "solved", "cell {cell} holds the marks of the course's own solved notebook (`{mark}`)"
)
OLD_FORMAT = Kind(
    "old_format", "the notebook has the old format {version}; it was read as far as possible"
)
CELLS_UNREAD = Kind(
    "cells_unread", "{unread} of {cells} cells could not be read (first: cell {first})"
)
TEST_MISSING = Kind("test_missing", "test cell {cell} is missing; the original was used")
TEST_COPIED = Kind(
    "test_copied", "test cell {cell} stands {times} times; the original was used once"
)
EARLIER_RELEASE = Kind(
    "earlier_release",
    "handed in with an earlier release of the lesson; the tests of now were used",
)
TEST_EDITED = Kind("test_edited", "test cell {cell} was edited; the original was used")
TYPED_INTO_TEST = Kind(
    "typed_into_test",
    "{names} in test cell {cell} was not there when your notebook was graded, since the original "
    "took that cell's place; what your code needs belongs into a cell of its own, above the check",
)
ANSWER_MISSING = Kind(
    "answer_missing", "answer cell {cell} is missing; all cells were run as they are"
)
ANSWER_COPIED = Kind(
    "answer_copied", "answer cell {cell} stands {times} times; the last one counts"
)
NAMES_FOUND = Kind(
    "names_found",
    "{number} cells had lost their names (nbgrader's metadata); they were found by what they hold",
)
CHANGED_FOR_ALL = Kind(
    "changed_for_all",
    "your cell “{called}” changed {names} for all code after it; your answers were tested without "
    "that change",
)
ANSWER_AS_TEXT = Kind(
    "answer_as_text",
    "answer cell {cell} was of the kind {kind}, which never runs; it was run as code",
)
OWN_TEXT = Kind(
    "own_text",
    "nobody reads what stands in {number} text cells of your own (the first begins “{first}”); an "
    "answer is read in the cell that asks for it",
)
WRITTEN_BESIDE = Kind(
    "written_beside",
    "written answer {cell} went on in {number} cells beside its own; a person sees them together",
)
PICTURE_UNREAD = Kind(
    "picture_unread",
    "a picture in written answer {cell} is shown to nobody ({called}): {why}; paste it into the "
    "answer's cell as PNG or JPEG",
)
WRITTEN_MISSING = Kind(
    "written_missing",
    "written answer {cell} is missing: no cell has its name, so nobody will read one; take the "
    "cell from the released notebook and put your answer there",
)
WRITTEN_COPIED = Kind(
    "written_copied",
    "written answer {cell} stands {times} times; the last one with an answer counts; a person "
    "sees all of them",
)
WRITTEN_FOUND = Kind(
    "written_found", "the cell of written answer {cell} had lost its name; it was found"
)
NOT_NAMED = Kind(
    "not_named",
    "what {cell} fails like could not be looked up ({error}); that costs no point, and is for who "
    "maintains the grader",
)

KINDS = (
    RENAMED,
    LEFT_OUT,
    SOLVED,
    OLD_FORMAT,
    CELLS_UNREAD,
    TEST_MISSING,
    TEST_COPIED,
    EARLIER_RELEASE,
    TEST_EDITED,
    TYPED_INTO_TEST,
    ANSWER_MISSING,
    ANSWER_COPIED,
    WRITTEN_MISSING,
    WRITTEN_COPIED,
    WRITTEN_FOUND,
    NOT_NAMED,
    NAMES_FOUND,
    CHANGED_FOR_ALL,
    ANSWER_AS_TEXT,
    OWN_TEXT,
    WRITTEN_BESIDE,
    PICTURE_UNREAD,
)

#: Of kinds about work that nobody reads or runs, what a summary of a class says.
UNREAD = {
    OWN_TEXT.name: "text of their own that nobody reads",
    PICTURE_UNREAD.name: "a picture that nobody sees",
    WRITTEN_MISSING.name: "a written answer without its cell",
    CELLS_UNREAD.name: "cells that could not be read",
    LEFT_OUT.name: "a second notebook that was not graded",
}

#: The kind of a published flag that is none of these, such as a note of the roster.
OTHER = "other"


def flag_of(words: str) -> Flag:
    """The flag that was published with these words."""
    return next((flag for kind in KINDS if (flag := kind.read(words))), Flag(OTHER, "", words))
