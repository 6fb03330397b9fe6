"""What a feedback page says of each exercise: in one sentence, and each cause once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.grade.result import (
    CRASHED,
    FAILED,
    MISSING,
    NOT_ATTEMPTED,
    PARTIAL,
    PASSED,
    TIMEOUT,
    CellRun,
    ExerciseResult,
    TestResult,
)
from autograder.text import first_sentence
from lesson_kit.words import N_, tr

LABELS = {
    PASSED: N_("passes"),
    PARTIAL: N_("passes in part"),
    FAILED: N_("does not pass"),
    NOT_ATTEMPTED: N_("not attempted"),
    TIMEOUT: N_("took too long"),
    CRASHED: N_("ended the process"),
    MISSING: N_("nothing to check"),
}


@dataclass
class Box:
    """Tests of an exercise that came out the same and say the same: one box of the page.

    Attributes:
        outcome: of each of them.
        message: what they say.
        points: of all of them.
        max_points: of all of them.
        words: what each looks at.
        as_in: the exercise that told this already; the message is not told again.
    """

    outcome: str
    message: str
    points: float = 0.0
    max_points: float = 0.0
    words: list[str] = field(default_factory=list)
    as_in: str = ""

    @property
    def label(self) -> str:
        """The outcome in words."""
        return tr(LABELS[self.outcome])


@dataclass(frozen=True)
class ExercisePart:
    """An exercise as its page shows it."""

    name: str
    result: ExerciseResult
    sentence: str
    diagnoses: tuple[str, ...]
    boxes: tuple[Box, ...]
    source: str

    @property
    def passes(self) -> bool:
        """Whether it has all its points."""
        return self.result.part == 0


def exercise_parts(
    tests: Sequence[TestResult],
    words: Mapping[str, str],
    handed_in: Mapping[str, str],
) -> list[ExercisePart]:
    """The exercises of one submission, those first that have points to win.

    Args:
        tests: in the order of the notebook.
        words: what each test looks at, by grade_id.
        handed_in: the source of each answer cell.
    """
    names = dict.fromkeys(test.exercise for test in tests)
    results = {
        name: ExerciseResult(tuple(test for test in tests if test.exercise == name))
        for name in names
    }
    told: dict[str, str] = {}
    parts = []
    for name in sorted(names, key=lambda name: results[name].part == 0):
        result = results[name]
        parts.append(
            ExercisePart(
                name=name,
                result=result,
                sentence=in_one_sentence(result),
                diagnoses=tuple(
                    dict.fromkeys(test.sentence for test in result.tests if test.diagnosis)
                ),
                boxes=tuple(_boxes(result, words, told)),
                source=handed_in.get(name, ""),
            )
        )
    return parts


def _boxes(result: ExerciseResult, words: Mapping[str, str], told: dict[str, str]) -> list[Box]:
    """One box for tests of the same outcome and message, the failing ones first.

    Args:
        result: the tests of one exercise.
        words: what each test looks at.
        told: the exercise that told each message first; new ones are added.
    """
    boxes: dict[tuple[str, str], Box] = {}
    for test in sorted(result.tests, key=lambda test: test.outcome == PASSED):
        # A known mistake stands above all tests of its exercise.
        message = test.message if test.diagnosis else test.says
        # Tests that say nothing are told apart by what they look at.
        key = (test.outcome, message) if message else (test.grade_id, "")
        box = boxes.setdefault(key, Box(test.outcome, message))
        box.points += test.points
        box.max_points += test.max_points
        box.words.append(words[test.grade_id])
        if message and told.setdefault(message, test.exercise) != test.exercise:
            box.as_in = told[message]
    return list(boxes.values())


def in_one_sentence(result: ExerciseResult) -> str:
    """What is to be said of an exercise in the summary."""
    if result.part == 0:
        return tr(LABELS[PASSED])
    if not result.attempted:
        return tr(LABELS[NOT_ATTEMPTED])
    lost = [test for test in result.tests if test.outcome != PASSED]
    known = [test.says for test in lost if test.diagnosis]
    said = known or [test.says for test in lost if test.says]
    if said:
        return first_sentence(said[0])
    return tr(LABELS[lost[0].outcome] if lost else LABELS[PASSED])


def stopped_cells(runs: Iterable[CellRun], told: Iterable[str]) -> dict[str, list[str]]:
    """The errors of cells that stopped, each with the cells' sources.

    One whose words stand in the message of a check was told there.
    """
    said = "\n".join(told)
    by_error: dict[str, list[str]] = {}
    for run in runs:
        if run.error and not run.unfinished and run.error not in said:
            by_error.setdefault(run.error, []).append(run.source)
    return by_error
