"""Which known mistakes explain what checks saw of an answer.

The grader asks the same questions of more tests. Evidence that says little (an exception, a truth
value, a shape, a small whole number) is what many different mistakes leave behind: it accuses
nobody unless several checks agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .answer_text import all_stand_in
from .evidence import BY_HAND, Evidence, Seen, agree, fingerprint, same
from .setting import beside_notebook, unpack
from .words import N_, tr

__all__ = ["Explanation", "excluded", "exercises_known", "explanations", "known_mistake"]

#: The key in the file beside a notebook of the fingerprints of known mistakes. The tester looks
#: them up itself.
KNOWN_MISTAKES = "known_mistakes"

#: So many tests that agree, by passing too, say enough although only one fails.
MANY_TESTS = 4

#: So many truth values, not all the same, are no chance.
MANY_VERDICTS = 8

#: The name of an exception's evidence; it may have ended a cell before its checks.
RAISED = "error"

#: How the sentence of a misconception begins that is made of two others.
TWO_AT_ONCE = N_("Two mistakes at once.")
#: What is said where two mistakes fail alike.
TWO_ALIKE = N_("{one} Or: {other}")


def is_two_at_once(sentence: str) -> bool:
    """Whether a misconception with this sentence is made of two others."""
    return sentence.startswith((TWO_AT_ONCE, tr(TWO_AT_ONCE)))


#: Whatever stands for a known mistake.
Known = TypeVar("Known")


@dataclass(frozen=True)
class Explanation:
    """How well a known mistake explains what was seen.

    Attributes:
        whole: every test saw the very same of it, those that pass included.
        tests: the failing tests that it explains.
        agreeing: the tests that saw the same of it.
        checks: failed checks that saw the same of it.
        exact: of them, those that saw the same up to rounding, whatever they allow.
        telling: numbers say it, and not only truth values or what says little.
    """

    whole: bool
    tests: frozenset[str]
    agreeing: int
    checks: int
    exact: int
    telling: bool

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """More is better."""
        return self.whole, self.agreeing, self.checks, self.exact


def certain(sentences: Sequence[str], explaining: Sequence[tuple[Known, Explanation]]) -> bool:
    """Whether the sentences of what :func:`explanations` found may be said.

    What says little names one mistake, or none: "this or that" would accuse of one that was
    not made.
    """
    return len(set(sentences)) == 1 or (
        bool(explaining) and all(explanation.telling for _, explanation in explaining)
    )


def explanations(
    seen: Seen, known: Sequence[Known], seen_of: Callable[[Known], Seen]
) -> list[tuple[Known, Explanation]]:
    """The known mistakes that explain best what tests saw of an answer; often none.

    A mistake explains a failed check when that saw the very same of it. What fails with the
    mistake has to fail here: a mistake that a passing check excludes is not named. What says
    little counts only where all tests agree, and at least two of them fail or there are
    :data:`MANY_TESTS`; and anything else only where it explains most of what failed, errors that
    are missing apart.

    Args:
        seen: of the answer.
        known: mistakes of the same exercise.
        seen_of: what the same tests saw of a mistake.
    """
    failed = _spoken(piece for evidence in seen.values() for piece in evidence)
    explaining: list[tuple[Known, Explanation]] = []
    for mistake in known:
        its = seen_of(mistake)
        if any(excluded(seen[name], its.get(name, ())) for name in seen):
            continue
        agreeing = {name for name in seen if same(seen[name], its.get(name, ()))}
        explained = [
            (name, piece, any(_is_exactly(piece, other) for other in its.get(name, ())))
            for name, evidence in seen.items()
            for piece in evidence
            if any(piece.is_that_of(other.check, other.got) for other in its.get(name, ()))
        ]
        if not explained:
            continue
        whole = len(agreeing) == len(seen)
        telling = any(_tells(piece, exact=exact) for _, piece, exact in explained)
        if telling or any(_is_pattern(piece.got) for _, piece, _ in explained):
            enough = whole or 2 * _spoken(piece for _, piece, _ in explained) > failed
        else:
            several = _different(explained) > 1 or len(seen) >= MANY_TESTS
            enough = whole and (several or all(_is_silence(piece) for _, piece, _ in explained))
        if enough:
            tests = frozenset(name for name, _, _ in explained)
            number, exact = len(explained), sum(exact for _, _, exact in explained)
            explaining.append(
                (mistake, Explanation(whole, tests, len(agreeing), number, exact, telling))
            )
    best = max((explanation.rank for _, explanation in explaining), default=None)
    return [
        (mistake, explanation) for mistake, explanation in explaining if explanation.rank == best
    ]


def excluded(seen: tuple[Evidence, ...], its: tuple[Evidence, ...]) -> bool:
    """Whether a check passed that fails with the mistake.

    A cell without named checks ends at the first that fails; so does one that raises. Where
    either left several pieces of evidence, the cell has named checks and ran to its end.
    """
    if not its:
        return False
    if not seen:
        return True
    checks = {piece.check for piece in seen}
    to_its_end = len(seen) > 1 or (len(its) > 1 and RAISED not in checks)
    return to_its_end and not {piece.check for piece in its} <= checks


def _is_exactly(first: Evidence, second: Evidence) -> bool:
    return first.check == second.check and agree(first.got, second.got)


def _tells(evidence: Evidence, *, exact: bool) -> bool:
    """Whether numbers say it; ``exact``: they agree also where the check allows more.

    A number that was drawn at random and agrees up to rounding comes from the same draws.
    """
    numbers = _numbers(evidence.got)
    if any(_is_long(number) for number in numbers) and (exact or evidence.tolerance < 1e-3):
        return True
    floating = "float" in str(evidence.got.get("dtype", ""))
    some = {number for number in numbers if number not in (0.0, 1.0) and (floating or number % 1)}
    return len(some) >= 3


def _different(explained: Sequence[tuple[str, Evidence, bool]]) -> int:
    """How many pieces of evidence say something of their own: what the answer itself refuses,
    it may refuse for one reason throughout a test."""
    by_hand = {name for name, piece, _ in explained if piece.got.get("value") == BY_HAND}
    return len(by_hand) + sum(piece.got.get("value") != BY_HAND for _, piece, _ in explained)


def _is_silence(evidence: Evidence) -> bool:
    """Nothing was raised where an error is asked for: the check itself says what is wrong."""
    return bool(evidence.got == fingerprint(None))


def _spoken(pieces: Iterable[Evidence]) -> int:
    """How many are no :func:`_is_silence`: a missing error hides no mistake beside it."""
    return sum(not _is_silence(piece) for piece in pieces)


def _is_pattern(got: Any) -> bool:
    """Many truth values, not all the same."""
    if isinstance(got, list):
        return any(_is_pattern(item) for item in got)
    if not isinstance(got, dict):
        return False
    if got.get("dtype") == "bool" and "sums" in got:
        return 0.0 < got["size"] < 1.0
    if len(verdicts := _verdicts(got)) >= MANY_VERDICTS:
        return len(set(verdicts)) > 1
    return _is_pattern(got.get("items", []))


def _numbers(got: Any) -> list[float]:
    if isinstance(got, list):
        return [number for item in got for number in _numbers(item)]
    if not isinstance(got, dict):
        return []
    if "values" in got:
        return list(got["values"])
    if "sums" in got:
        # Sums of truth values and of equal numbers have many digits and say little.
        return [] if got.get("dtype") == "bool" else list(got["sums"])
    return _numbers(got.get("items", []))


def _is_long(number: float) -> bool:
    """With digits that nobody hits by chance: not 0.25, not 12, not 1e-5."""
    return number % 1 != 0 and float(f"{number:.4g}") != number


def _verdicts(got: dict[str, Any]) -> list[str]:
    """The truth values of a dictionary of them, such as a verdict on each of many cases."""
    if got.get("is") != "dict":
        return []
    values = [value for _, value in got.get("items", [])]
    return [value["value"] for value in values if value.get("is") == "bool"]


def known_mistake(exercise: str, evidence: Sequence[Evidence], source: str) -> str:
    """The sentence of the known mistake that explains what a visible check saw, or "".

    Looked up beside the notebook. Where two mistakes explain it equally well, both are said.

    Args:
        exercise: whose check it is.
        evidence: of all that failed in its cell.
        source: of the answer; what is said of its words stands there.
    """
    test = f"test_{exercise}"
    if not evidence or not exercise:
        return ""
    try:
        known = [
            entry
            for entry in unpack(_released().get(exercise, []))
            if all_stand_in(source, entry.get("claims", []))
        ]
        explaining = explanations(
            {test: tuple(evidence)},
            known,
            lambda entry: {test: tuple(Evidence(*e) for e in entry["seen"].get(test, []))},
        )
        sentences = list(dict.fromkeys(str(entry["sentence"]) for entry, _ in explaining))
    except Exception:
        return ""  # a damaged file, or an odd answer, costs the diagnosis and not the check
    # One mistake explains as much as two.
    single = [sentence for sentence in sentences if not is_two_at_once(sentence)] or sentences
    if len(single) > 2 or not certain(single, explaining):
        return ""
    if len(single) == 2:
        return tr(TWO_ALIKE, one=single[0], other=single[1])
    return single[0] if single else ""


def exercises_known() -> frozenset[str]:
    """The lesson's exercises of which mistakes are known; none where the file cannot be read."""
    try:
        return frozenset(_released())
    except (OSError, ValueError, TypeError, AttributeError):
        return frozenset()


def _released() -> dict[str, Any]:
    """What is known beside the notebook, packed by exercise; nothing in a box."""
    known: dict[str, Any] = beside_notebook().get(KNOWN_MISTAKES, {}).get("mistakes", {})
    return known
