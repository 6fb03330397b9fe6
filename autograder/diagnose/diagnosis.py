"""Which known mistake a failing exercise shows.

Every misconception of the catalogue has been through the tests of its exercise, on inputs
from one seed; what the tests saw of it is its *evidence*. A student's code whose tests fail
is put through them on the same inputs. Where its evidence is that of a misconception, that
is what the student did.

After conceptual mutation testing: Prasad, Greenman, Nelson, Krishnamurthi 2023.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.lesson.failures import CheckFailed, ChecksFailed, Evidence
from autograder.lesson.fingerprints import fingerprint

#: Seed of the inputs on which mistakes are compared: that of the student's notebook, so that
#: one table serves both.
DIAGNOSIS_SEED = 2017

#: What the tests of an exercise saw, by grade_id; empty where a test passed.
Seen = Mapping[str, tuple[Evidence, ...]]


@dataclass(frozen=True)
class Mistake:
    """A misconception and what the tests of its exercise see of it."""

    exercise: str
    name: str
    sentence: str
    seen: Seen


@dataclass(frozen=True)
class Diagnosis:
    """The mistake an exercise shows, and the tests in which it shows."""

    mistake: Mistake
    tests: frozenset[str]


def evidence_of(error: BaseException) -> tuple[Evidence, ...]:
    """What an error that ended a test cell tells of the student's code."""
    if isinstance(error, ChecksFailed):
        return tuple(
            one for part in error.parts if part.error is not None for one in evidence_of(part.error)
        )
    if isinstance(error, CheckFailed):
        return (error.evidence,) if error.evidence is not None else ()
    return (Evidence("error", fingerprint(error)),)


def same(one: tuple[Evidence, ...], other: tuple[Evidence, ...]) -> bool:
    """Whether a test saw the same of two implementations."""
    return len(one) == len(other) and all(a.is_that_of(b.check, b.got) for a, b in zip(one, other))


def diagnose(seen: Seen, mistakes: Sequence[Mistake]) -> Diagnosis | None:
    """The mistake that explains what the tests of one exercise saw, or None.

    A mistake explains a failing test when the test saw the very same of it. Of several, that
    counts which agrees in the most tests, those that pass included. What many different
    mistakes leave behind (an exception, a missing one, a value without numbers) counts only
    together with agreement in every test, and anything else only where it explains most of
    the tests that fail.

    Args:
        seen: of the student's code, for every test of the exercise.
        mistakes: the catalogue of that exercise.
    """
    best: list[tuple[tuple[bool, int, int], Diagnosis]] = []
    for mistake in mistakes:
        agreeing = {name for name in seen if same(seen[name], mistake.seen.get(name, ()))}
        explained = frozenset(name for name in agreeing if seen[name])
        whole = len(agreeing) == len(seen)
        telling = any(_is_telling(one) for name in explained for one in seen[name])
        failing = sum(bool(evidence) for evidence in seen.values())
        if explained and (whole or (telling and 2 * len(explained) > failing)):
            rank = (whole, len(agreeing), len(explained))
            best.append((rank, Diagnosis(mistake, explained)))
    if not best:
        return None
    highest = max(rank for rank, _ in best)
    first = [found for rank, found in best if rank == highest]
    # Two that agree equally well in a part of the tests: neither is more than a guess.
    return first[0] if len(first) == 1 or highest[0] else None


def _is_telling(evidence: Evidence) -> bool:
    """Whether a result holds enough numbers that no other mistake gives it by chance."""
    return _numbers(evidence.got) >= 3


def _numbers(got: Any) -> int:
    if isinstance(got, list):
        return sum(_numbers(item) for item in got)
    if not isinstance(got, dict):
        return 0
    if "values" in got:
        return len({value for value in got["values"] if value not in (0.0, 1.0)})
    if "sums" in got:
        return len({value for value in got["sums"] if value != 0.0})
    return _numbers(got.get("items", []))


def to_json(mistakes: Sequence[Mistake]) -> str:
    """The catalogue's evidence as text."""
    tree = [
        {
            "exercise": one.exercise,
            "name": one.name,
            "sentence": one.sentence,
            "seen": {
                name: [[e.check, e.got, e.tolerance] for e in evidence]
                for name, evidence in one.seen.items()
            },
        }
        for one in mistakes
    ]
    return json.dumps(tree, ensure_ascii=False) + "\n"


def from_json(text: str) -> list[Mistake]:
    """What :func:`to_json` wrote."""
    return [
        Mistake(
            one["exercise"],
            one["name"],
            one["sentence"],
            {
                name: tuple(Evidence(check, got, tolerance) for check, got, tolerance in evidence)
                for name, evidence in one["seen"].items()
            },
        )
        for one in json.loads(text)
    ]
