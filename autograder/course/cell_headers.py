"""The short headers of a lesson's cells, and the nbgrader metadata that they stand for.

    # %% answer="softmax"
    # %% check="softmax" points=2 card="each row sums to 1"
    # %% [markdown] written="order" points=3
    # %% locked="given_numbers"
    # %% tags=["demonstration"] seconds=20

nbgrader's own ``nbgrader={...}`` may stand there instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What each short word says of its cell, and what nbgrader's name of the cell begins with.
_WORDS = {
    "answer": ("", {"grade": False, "locked": False, "solution": True}),
    "check": ("test_", {"grade": True, "locked": True, "solution": False}),
    "written": ("written_", {"grade": True, "locked": False, "solution": True}),
    "locked": ("", {"grade": False, "locked": True, "solution": False}),
}
_GRADED = ("check", "written")
#: The phrases of its card that a check holds (:mod:`autograder.authors.cards`), for authors only.
_CARD = "card"
#: About how long a laptop takes, where that is long (see `autograder measure seconds`).
SECONDS = "seconds"
#: What is true once a visible check passes, in a sentence: its box says so.
MEANS = "means"
_KNOWN = {*_WORDS, _CARD, MEANS, SECONDS, "points", "nbgrader", "tags"}
#: What jupytext itself notes of a cell: a title, and ``lines_to_next_cell`` and its like.
_JUPYTEXTS = ("title", "lines_to_")


class WrongHeader(ValueError):
    """A cell's header cannot be understood; the message says what to write."""


def nbgrader_of(header: Mapping[str, Any], cell_type: str) -> dict[str, Any] | None:
    """The nbgrader metadata that a cell's header asks for; None when it asks for none.

    Args:
        header: the keys and values of the cell's ``# %%`` line.
        cell_type: "code" or "markdown".

    Raises:
        WrongHeader: a word is unknown, points are missing or out of place, or the cell is not
            of the right type.
    """
    unknown = [word for word in header if word not in _KNOWN and not word.startswith(_JUPYTEXTS)]
    if unknown:
        raise WrongHeader(f"{unknown[0]!r} is unknown; there are {', '.join(sorted(_KNOWN))}")
    if SECONDS in header and (cell_type == "markdown" or not _is_number(header[SECONDS])):
        raise WrongHeader("seconds= says how long a code cell takes; write it as in seconds=20")
    if MEANS in header and "check" not in header:
        raise WrongHeader("means= says what is true once a check passes, so it belongs to check=")
    words = [word for word in _WORDS if word in header]
    if "nbgrader" in header and not words and "points" not in header:
        metadata = header["nbgrader"]
        return metadata if isinstance(metadata, dict) else None
    if not words and "points" not in header:
        return None
    if len(words) != 1 or "nbgrader" in header:
        raise WrongHeader("a cell with points or nbgrader's metadata is one of " + _forms())
    [word] = words
    name, points = header[word], header.get("points", 0)
    if not isinstance(name, str) or not name.isidentifier():
        raise WrongHeader(f"{word}={name!r} is no name; write it as in {_form(word)}")
    if (word in _GRADED) != ("points" in header) or not _is_number(points):
        raise WrongHeader(f"points belong to check and written cells; write {_form(word)}")
    if _CARD in header and word != "check":
        raise WrongHeader(f"card= names what a check holds, and {word}= is none")
    if (cell_type == "markdown") != (word == "written"):
        raise WrongHeader(f"{word}= on a {cell_type} cell; write {_form(word)}")
    prefix, kind = _WORDS[word]
    return {
        **kind,
        "grade_id": prefix + name,
        "points": points,
        "schema_version": 3,
        "task": False,
        "cell_type": cell_type,
    }


def spellings(grade_id: str) -> list[str]:
    """How nbgrader's name of a cell can stand in its header."""
    texts = [f'"grade_id": "{grade_id}"']
    for word, (prefix, _) in _WORDS.items():
        if grade_id.startswith(prefix):
            texts.append(f'{word}="{grade_id.removeprefix(prefix)}"')
    return texts


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _form(word: str) -> str:
    markdown = "[markdown] " if word == "written" else ""
    return f'# %% {markdown}{word}="<name>"' + (" points=2" if word in _GRADED else "")


def _forms() -> str:
    return ", ".join(map(_form, _WORDS))
