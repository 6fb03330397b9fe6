"""Which known mistake a failing exercise shows.

Every misconception of the catalogue has been through the tests of its exercise, on inputs
from one seed; what the tests saw of it is its *evidence*. A student's code whose tests fail
is put through them on the same inputs. Where its evidence is that of a misconception, that
is what the student did.

After conceptual mutation testing: Prasad, Greenman, Nelson, Krishnamurthi 2023.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from lesson_kit.answer_text import Words, all_stand_in
from lesson_kit.evidence import Evidence, Seen
from lesson_kit.known_mistakes import certain, excluded, explanations

#: Seed of the inputs on which mistakes are compared: that of the student's notebook, so that
#: one table serves both.
DIAGNOSIS_SEED = 2017


@dataclass(frozen=True)
class Mistake:
    """A misconception, what the tests of its exercise see of it, and what its sentence says of the
    words of an answer (see :mod:`lesson_kit.answer_text`)."""

    exercise: str
    name: str
    sentence: str
    seen: Seen
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """The mistake an exercise shows, and the tests in which it shows."""

    mistake: Mistake
    tests: frozenset[str]


def remaining(seen: Seen, mistakes: Sequence[Mistake], answer: str | Words) -> list[Mistake]:
    """The mistakes that an answer may show.

    Args:
        seen: of the answer, by tests that ran so far.
        mistakes: of its exercise.
        answer: its source, or the words of that.
    """
    return [
        mistake
        for mistake in mistakes
        if all_stand_in(answer, mistake.claims)
        and not any(excluded(seen[name], mistake.seen.get(name, ())) for name in seen)
    ]


def diagnose(seen: Seen, mistakes: Sequence[Mistake], *, surely: bool = False) -> Diagnosis | None:
    """The mistake that explains what the tests of one exercise saw, or None.

    Args:
        seen: of the student's code, by tests of the exercise.
        mistakes: the catalogue of that exercise.
        surely: only where every test saw the very same, numbers say it, and of no other mistake.
    """
    best = explanations(seen, mistakes, lambda mistake: mistake.seen)
    if not best:
        return None
    if surely and not (
        all(how.whole and how.telling for _, how in best)
        and len({mistake.sentence for mistake, _ in best}) == 1
    ):
        return None
    # Two that agree equally well in a part of the tests: neither is more than a guess.
    if len(best) > 1 and not best[0][1].whole:
        return None
    if not certain([mistake.sentence for mistake, _ in best], best):
        return None
    mistake, explanation = best[0]
    return Diagnosis(mistake, explanation.tests)


def to_json(mistakes: Sequence[Mistake]) -> str:
    """The catalogue's evidence as text."""
    tree = [
        {
            "exercise": mistake.exercise,
            "name": mistake.name,
            "sentence": mistake.sentence,
            "claims": mistake.claims,
            "seen": {
                name: [[e.check, e.got, e.tolerance] for e in evidence]
                for name, evidence in mistake.seen.items()
            },
        }
        for mistake in mistakes
    ]
    return json.dumps(tree, ensure_ascii=False) + "\n"


def from_json(text: str) -> list[Mistake]:
    """What :func:`to_json` wrote."""
    return [
        Mistake(
            entry["exercise"],
            entry["name"],
            entry["sentence"],
            {
                name: tuple(Evidence(check, got, tolerance) for check, got, tolerance in evidence)
                for name, evidence in entry["seen"].items()
            },
            tuple(entry["claims"]),
        )
        for entry in json.loads(text)
    ]
