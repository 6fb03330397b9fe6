"""Known mistakes that can be spared; see ``autograder measure spare``.

Each is left out once, and its answer looked up among the others, as graded and as in the notebook.
It can be spared where the answer is told the same sentence by another entry, or none with its own,
and every check that it fails fails for another. From the lock where that fits: nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import catalogue, known_in
from autograder.diagnose.diagnosis import Mistake, diagnose


def spare(lesson: Lesson) -> Iterator[str]:
    """The known mistakes of a lesson that can be spared, one at a time: of two that say the same
    both are named, and one has to stay.

    Yields:
        Exercise and name of each, and why.
    """
    graded = catalogue(lesson)
    at_home = [
        replace(each, seen=known.at_home.get(each.name, {}))
        for exercise, known in known_in(lesson).items()
        for each in graded
        if each.exercise == exercise
    ]
    for own, own_at_home in zip(graded, at_home, strict=True):
        others = [each for each in graded if _is_other(each, own)]
        if not _fails(own) <= set().union(*map(_fails, others)):
            continue
        others_at_home = [each for each in at_home if _is_other(each, own)]
        pairs = ((own, others), (own_at_home, others_at_home))
        named = [_told(each, [each, *rest]) == own.sentence for each, rest in pairs]
        still = [_told(each, rest) == own.sentence for each, rest in pairs]
        if not any(named):
            yield f"{own.exercise} {own.name}: its answer is never told its sentence"
        elif named == still:
            yield f"{own.exercise} {own.name}: another entry tells its answer the same"


def _is_other(each: Mistake, own: Mistake) -> bool:
    return each.exercise == own.exercise and each.name != own.name


def _told(own: Mistake, known: Iterable[Mistake]) -> str:
    """What an answer with this evidence is told, or ""."""
    diagnosis = diagnose(own.seen, list(known))
    return diagnosis.mistake.sentence if diagnosis else ""


def _fails(mistake: Mistake) -> set[tuple[str, str]]:
    """The checks that fail, by test."""
    return {(test, piece.check) for test, pieces in mistake.seen.items() for piece in pieces}
