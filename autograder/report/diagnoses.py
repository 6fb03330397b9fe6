"""The known mistakes that were recognised in a class, by frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.classroom.grades_file import RecordedResult
from autograder.report.labels import MAX_EXAMPLES, without_ids
from autograder.text import first_sentence, plain_line


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
