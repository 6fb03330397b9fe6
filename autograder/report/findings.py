"""What was found in a class: known mistakes, by frequency, and exercises whose checks were stopped.

Without names, students are numbered.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.classroom.grades_file import RecordedResult
from autograder.grade.result import CRASHED, TIMEOUT, ExerciseResult
from autograder.text import first_sentence, plain_line
from lesson_kit.words import tr

#: Submissions that are named as examples.
MAX_EXAMPLES = 5


def labels(
    students: Iterable[str], seed: int, names: bool, people: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What each student is called in the report, in the order in which they are listed.

    With ``names`` the name that ``people`` has, the id and the number, by id. Without,
    "student 7": numbered in the order of a keyed hash of the id. The key is the class's seed,
    which students do not know; so the numbers are the same in every report on the same students,
    and neither the order of the ids nor a list of them tells who has which.
    """
    key = str(seed).encode()
    everybody = set(students)

    def place(student: str) -> bytes:
        return hmac.digest(key, student.encode("utf-8", "surrogatepass"), hashlib.sha256)

    hashed = sorted(everybody, key=place)
    numbered = {
        student: tr("student {number}", number=number) for number, student in enumerate(hashed, 1)
    }
    if not names:
        return numbered
    return {
        student: ", ".join(filter(None, [(people or {}).get(student, ""), plain_line(student)]))
        + f" ({numbered[student]})"
        for student in sorted(everybody)
    }


def without_ids(text: str, students: Iterable[str]) -> str:
    """``text`` with "…" where the id of a student stands as a word, in any case."""
    ids = sorted((student for student in students if student), key=len, reverse=True)
    pattern = "|".join(re.escape(student) for student in ids)
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", "…", text, flags=re.I) if ids else text


@dataclass(frozen=True)
class Misconception:
    """A known mistake and in how many submissions it was recognised."""

    name: str
    assignment: str
    exercise: str
    submissions: int
    sentence: str
    examples: tuple[str, ...]

    @property
    def says(self) -> str:
        """What it is called for people: its first sentence, or its name where it has none."""
        return first_sentence(self.sentence) or self.name


def misconceptions(
    entries: Iterable[RecordedResult], called: dict[str, str], names: bool
) -> list[Misconception]:
    """The mistakes that were recognised, the most frequent first.

    The example sentence is the most frequent of those that students read. Without names, an id
    that happens to stand in it as a word is left out.
    """
    seen: dict[tuple[str, str, str], dict[str, str]] = {}
    for entry in entries:
        for test in entry.tests:
            if test.diagnosis:
                who = seen.setdefault((entry.assignment, test.exercise, test.diagnosis), {})
                who[entry.student] = who.get(entry.student) or plain_line(test.sentence, 400)
    mistakes = []
    for (assignment, exercise, name), who in seen.items():
        said = Counter(sorted(filter(None, who.values()))).most_common(1)
        sentence = said[0][0] if said else ""
        mistakes.append(
            Misconception(
                name=name,
                assignment=assignment,
                exercise=exercise,
                submissions=len(who),
                sentence=sentence if names else without_ids(sentence, called),
                examples=tuple(called[student] for student in list(who)[:MAX_EXAMPLES]),
            )
        )
    return sorted(
        mistakes,
        key=lambda mistake: (
            -mistake.submissions,
            mistake.assignment,
            mistake.exercise,
            mistake.name,
        ),
    )


@dataclass(frozen=True)
class Stopped:
    """An exercise whose checks took too long or ended the process, and in which submissions."""

    assignment: str
    exercise: str
    submissions: int
    timeouts: int
    crashes: int
    examples: tuple[str, ...]


def stopped(entries: Iterable[RecordedResult], called: dict[str, str]) -> list[Stopped]:
    """The exercises in which that happened, by assignment, the most frequent first."""
    seen: dict[tuple[str, str], list[tuple[str, ExerciseResult]]] = {}
    for entry in entries:
        for exercise, result in entry.exercises.items():
            if result.has(TIMEOUT) or result.has(CRASHED):
                place = seen.setdefault((entry.assignment, exercise), [])
                place.append((called[entry.student], result))
    rows = [
        Stopped(
            assignment=assignment,
            exercise=exercise,
            submissions=len(who),
            timeouts=sum(result.has(TIMEOUT) for _, result in who),
            crashes=sum(result.has(CRASHED) for _, result in who),
            examples=tuple(label for label, _ in who[:MAX_EXAMPLES]),
        )
        for (assignment, exercise), who in seen.items()
    ]
    return sorted(rows, key=lambda row: (row.assignment, -row.submissions))
