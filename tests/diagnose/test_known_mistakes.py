"""Evidence that says little accuses nobody, and what is excluded is not said."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.diagnose.diagnosis import Mistake, diagnose
from lesson_kit.checks import CheckFailed, assert_equal
from lesson_kit.evidence import BY_HAND, Evidence, Seen, evidence_of, same
from lesson_kit.known_mistakes import certain, explanations

NUMBERS = np.array([[0.123456, 7.654321], [1.23, 4.56]])


def close(message: str, value: object, tolerance: float = 0.0) -> Evidence:
    return Evidence.of("close", message, value, tolerance)


def mistake(name: str, *evidence: Evidence) -> Mistake:
    return Mistake("f", name, f"You did {name}.", {"test_f": evidence})


def names(known: list[Mistake], *evidence: Evidence) -> list[str]:
    seen: Seen = {"test_f": evidence}
    found = explanations(seen, known, lambda one: one.seen)
    sentences = [one.sentence for one, _ in found]
    return [one.name for one, _ in found] if certain(sentences, found) else []


def test_a_mistake_that_fails_a_check_which_passed_here_is_not_named() -> None:
    both = mistake("both", close("one text", NUMBERS), close("a batch", 2 * NUMBERS))
    assert names([both], close("one text", NUMBERS)) == []
    assert names([both], *both.seen["test_f"]) == ["both"]
    one = mistake("one", close("one text", NUMBERS))
    assert names([both, one], close("one text", NUMBERS)) == ["one"]


def test_an_exception_may_hide_the_checks_after_it() -> None:
    both = mistake("both", close("one text", NUMBERS), close("a batch", 2 * NUMBERS))
    raised = Evidence.of("x", "y", None)
    error = Evidence("error", raised.got)
    assert names([mistake("stops", error)], error) == ["stops"]
    assert names([both], error) == []


def test_of_two_mistakes_that_say_little_none_is_named() -> None:
    nothing = Evidence.of("raises", "None is no mask", None)
    first, second = mistake("first", nothing), mistake("second", nothing)
    assert names([first], nothing) == ["first"]
    assert names([first, second], nothing) == []
    assert diagnose({"test_f": (nothing,)}, [first, second]) is None
    telling = close("one text", NUMBERS)
    two = [mistake("first", telling), mistake("second", telling)]
    assert names(two, telling) == ["first", "second"]


def test_a_random_number_tells_where_it_comes_from_the_same_draws() -> None:
    wide = 0.3
    known = [mistake("uniform", close("variance", 0.0483333, wide))]
    assert names(known, close("variance", 0.0483333, wide)) == ["uniform"]
    assert names(known, close("variance", 0.0491234, wide)) == []


def test_many_verdicts_tell_and_few_do_not() -> None:
    def verdicts(number: int) -> Evidence:
        return Evidence.of("equal", "it leaks", {str(n): n % 3 == 0 for n in range(number)})

    assert names([mistake("last", verdicts(12))], verdicts(12)) == ["last"]
    assert names([mistake("last", verdicts(3))], verdicts(3)) == []
    two = [mistake("last", verdicts(12)), mistake("first", verdicts(12))]
    assert names(two, verdicts(12)) == []


def test_what_an_answer_refuses_throughout_a_test_says_one_thing() -> None:
    one, other = (
        Evidence("error", {"is": "ValueError", "value": BY_HAND, "at": at}) for at in ("a", "b")
    )
    assert names([mistake("refuses too much", one, other)], one, other) == []
    elsewhere = close("whole numbers", None)
    both = mistake("refuses too much", one, elsewhere)
    assert names([both], one, elsewhere) == ["refuses too much"]


@pytest.mark.parametrize("other", [["cat", "##ness"], "cat", 3, None])
def test_the_same_wrong_result_at_another_input_is_other_evidence(other: object) -> None:
    seen = []
    for expected in (["cat", "##s"], other):
        with pytest.raises(CheckFailed) as failed:
            assert_equal(["[UNK]"], expected, "The longest beginning first.")
        seen.append(evidence_of(failed.value))
    assert same(seen[0], seen[0]) and not same(*seen)


@pytest.mark.parametrize(
    ("text", "other", "alike"),
    [
        ("layer 'dense_7' has 0 weights", "layer 'dense_648' has 0 weights", True),
        ("<Linear at 0x7f00>", "<Linear at 0x7fa5>", True),
        ("layer 'dense_7' has 0 weights", "layer 'dense_7' has 1 weights", False),
        ("size of tensor a (3)", "size of tensor a (4)", False),
    ],
)
def test_what_an_object_is_called_by_chance_is_not_in_the_evidence(
    text: str, other: str, alike: bool
) -> None:
    seen = [(Evidence.of("x", "y", ValueError(said)),) for said in (text, other)]
    assert same(*seen) is alike
