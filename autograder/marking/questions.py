"""A question and its answers as somebody who marks sees them, and which answers are whose."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from autograder.course.bundle import Bundle
from autograder.errors import WrongUse
from autograder.notebooks import grade_id

_SHARE = re.compile(r"(\d+)/(\d+)")
_MARKERS = re.compile(r"^#+ (BEGIN|END) SOLUTION$", re.M)


class MarkingError(WrongUse):
    """Something cannot be marked so; the message says what to do."""


class Conflict(Exception):
    """Somebody else gave points, or the student handed in again; ``now`` is what there is."""

    def __init__(self, now: Answer, says: str) -> None:
        super().__init__(says)
        self.now = now


@dataclass(frozen=True)
class Share:
    """A part of the answers: each answer is in exactly one of ``of`` parts, for ever."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str | None, assistants: list[str]) -> Share:
        """Read ``2/10``, or the name of an assistant in class.toml.

        Raises:
            MarkingError: it is neither.
        """
        if text is None:
            return cls()
        if text in assistants:
            return cls(assistants.index(text) + 1, len(assistants))
        match = _SHARE.fullmatch(text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            known = f" or one of {', '.join(assistants)}" if assistants else ""
            raise MarkingError(
                f"--share is {text!r}; it should be like 2/10, the second of ten parts{known}, the "
                "assistants in [marking] of class.toml"
            )
        return cls(int(match[1]), int(match[2]))

    def has(self, token: str) -> bool:
        """Whether an answer is in it."""
        return int(token, 16) % self.of == self.number - 1


@dataclass(frozen=True)
class Question:
    """A question, and how it is to be marked."""

    name: str
    points: float
    asked: str
    scheme: str


@dataclass(frozen=True)
class Answer:
    """One student's answer; ``token`` stands for the student where nobody is to be named."""

    token: str
    student: str
    text: str
    score: float | None
    comment: str
    pictures: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Changes with the text and the pictures."""
        return hashlib.sha256("\n".join([self.text, *self.pictures]).encode()).hexdigest()[:16]


def questions_of(bundle: Bundle) -> dict[str, Question]:
    """The questions that a person marks, in the order of the notebook."""
    return {
        cell.grade_id: Question(
            cell.grade_id,
            cell.points,
            _asked(bundle, cell.grade_id),
            _MARKERS.sub("", cell.source).strip(),
        )
        for cell in bundle.written
    }


def _asked(bundle: Bundle, name: str) -> str:
    """The text above a written answer."""
    asked = ""
    for cell in bundle.notebook.cells:
        if grade_id(cell) == name:
            return asked
        if cell.cell_type == "markdown" and not grade_id(cell):
            asked = str(cell.source)
    return asked
