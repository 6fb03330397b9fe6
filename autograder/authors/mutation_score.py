"""How good the tests and the diagnoses are, measured; see ``autograder measure mutants``.

For each exercise and over fresh random inputs: the known wrong answers that are rejected, and
those that get their own sentence; the right answers that are accepted; and of small
mechanical changes of the solution, which nobody wrote a sentence for, how many get one that
is not true of them.

And what would be read of an answer that is in no catalogue: each known wrong answer is looked
up in the catalogue without its own sentence. It gets the place of a small change that mends it,
or the part that it never uses (*located*), the sentence of *another* entry, or what the failing
checks themselves say. The same is asked of mechanical changes of known wrong answers, which hold
two mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from autograder.authors.mutation import mutants
from autograder.authors.repairs import OutOfTime, by_another, is_mended, time_limit
from autograder.course.implementations import Implementation, alternatives
from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import entries, graded_cells, mistakes, seen
from autograder.diagnose.diagnosis import Mistake, diagnose, remaining
from autograder.diagnose.matrix import Matrix
from autograder.diagnose.plain_run import PlainRun
from lesson_kit.answer_text import never_used
from lesson_kit.evidence import Seen

#: Seconds that the tests may take on one mutant: a change can make a loop endless.
MAX_SECONDS = 10
#: Of the changes of an exercise's known wrong answers, so many are tried.
MAX_TWICE_WRONG = 20


HEAD = (
    f"{'exercise':40} {'wrong':>6} {'rejected':>8} {'sentence':>8} {'right':>6} {'accepted':>8} "
    f"{'mutants':>7} {'rejected':>8} {'named':>6} {'falsely':>7} "
    f"{'unseen':>6} {'located':>7} {'anothers':>8}"
)


@dataclass
class Counted:
    """What came of one exercise; counts are over all seeds."""

    exercise: str
    wrong: int = 0
    rejected: int = 0
    named: int = 0
    right: int = 0
    accepted: int = 0
    mutants: int = 0
    mutants_rejected: int = 0
    mutants_named: int = 0
    falsely: int = 0
    unseen: int = 0
    located: int = 0
    anothers: int = 0
    remarks: list[str] = field(default_factory=list)

    def add(self, other: Counted) -> None:
        """Count another exercise's numbers too."""
        for name, value in vars(other).items():
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)

    def row(self) -> str:
        """A line of the table under :data:`HEAD`."""
        return (
            f"{self.exercise:40} {self.wrong:6} {self.rejected:8} {self.named:8} {self.right:6} "
            f"{self.accepted:8} {self.mutants:7} {self.mutants_rejected:8} "
            f"{self.mutants_named:6} {self.falsely:7} {self.unseen:6} {self.located:7} "
            f"{self.anothers:8}"
        )

    @property
    def good_enough(self) -> bool:
        """Whether all wrong ones are rejected, all right ones accepted, and nearly all named."""
        judged = self.rejected == self.wrong and self.accepted == self.right
        return judged and self.named >= 0.95 * self.wrong


def count(lesson: Lesson, exercise: str, seeds: Sequence[int], *, unseen: bool = False) -> Counted:
    """Measure one exercise that is no short answer.

    Args:
        lesson: with its catalogue.
        exercise: its name.
        seeds: of the inputs; mechanical changes of the solution are put on the first, and what is
            said of them is checked on the second.
        unseen: also, which takes minutes, each known wrong answer without its own sentence, and
            mechanical changes of known wrong answers.
    """
    counted = Counted(exercise)
    with Matrix(lesson) as matrix:
        known = {seed: mistakes(matrix, exercise, seed) for seed in seeds}
        wrong = entries(lesson).get(exercise, [])
        for seed in seeds:
            for misconception in wrong:
                _count_wrong(counted, misconception.name, known[seed], seed)
            for alternative in alternatives(lesson):
                if alternative.exercise == exercise:
                    _count_right(matrix, counted, alternative, known[seed], seed)
        two = {seed: known[seed] for seed in seeds[:2]}
        for label, source in mutants(lesson.exercises[exercise]):
            _count_mutant(matrix, counted, Implementation(exercise, label, source), two)
        if unseen:
            for misconception in _changed_again(wrong):
                _count_mutant(matrix, counted, misconception, two)
            for misconception in wrong:
                _count_unseen(matrix.run, counted, misconception, known[seeds[0]], seeds[0])
    return counted


def _count_wrong(counted: Counted, name: str, known: list[Mistake], seed: int) -> None:
    """Each is looked up as a student's code would be: by what the tests see of it."""
    own = next(mistake for mistake in known if mistake.name == name)
    counted.wrong += 1
    if not any(own.seen.values()):
        counted.remarks.append(f"seed {seed}: {name} is accepted")
        return
    counted.rejected += 1
    diagnosis = diagnose(own.seen, known)
    if diagnosis is not None and diagnosis.mistake.sentence == own.sentence:
        counted.named += 1
    else:
        got = diagnosis.mistake.name if diagnosis is not None else "nothing"
        counted.remarks.append(f"seed {seed}: {name} gets {got}")


def _seen(matrix: Matrix, one: Implementation, seed: int) -> Seen:
    return seen(matrix.of(one, graded_cells(matrix.lesson, one.exercise), seed))


def _count_right(
    matrix: Matrix, counted: Counted, alternative: Implementation, known: list[Mistake], seed: int
) -> None:
    what = _seen(matrix, alternative, seed)
    counted.right += 1
    accused = diagnose(what, remaining(what, known, alternative.source))
    if any(what.values()) or accused is not None:
        counted.remarks.append(f"seed {seed}: the right answer {alternative.name} is rejected")
    else:
        counted.accepted += 1


def _count_mutant(
    matrix: Matrix,
    counted: Counted,
    implementation: Implementation,
    by_seed: dict[int, list[Mistake]],
) -> None:
    first, *others = by_seed
    try:
        with time_limit(MAX_SECONDS):
            mutant = _seen(matrix, implementation, first)
            again = {seed: _seen(matrix, implementation, seed) for seed in others}
    except OutOfTime:
        return
    counted.mutants += 1
    if not any(mutant.values()):
        return
    counted.mutants_rejected += 1
    diagnosis = diagnose(mutant, remaining(mutant, by_seed[first], implementation.source))
    if diagnosis is None:
        return
    counted.mutants_named += 1
    for seed in others:
        # The mistake is in the code if it explains what other inputs show, too.
        confirmed = diagnose(again[seed], by_seed[seed])
        if confirmed is None or confirmed.mistake.sentence != diagnosis.mistake.sentence:
            counted.falsely += 1
            counted.remarks.append(
                f"mutant ({implementation.name}) gets {diagnosis.mistake.name}: "
                "not so on other inputs"
            )
            return


def _changed_again(wrong: list[Implementation]) -> list[Implementation]:
    """Mechanical changes of known wrong answers: a few of each, from all over its code."""
    if not wrong:
        return []
    of_each = -(-MAX_TWICE_WRONG // len(wrong))
    twice_wrong: list[Implementation] = []
    for misconception in wrong:
        changes = list(mutants(misconception.source))
        step = max(1, len(changes) // of_each)
        twice_wrong += [
            replace(misconception, name=f"{misconception.name}, {label}", source=source)
            for label, source in changes[step // 2 :: step][:of_each]
        ]
    return twice_wrong[:: max(1, len(twice_wrong) // MAX_TWICE_WRONG)]


def _count_unseen(
    run: PlainRun, counted: Counted, misconception: Implementation, known: list[Mistake], seed: int
) -> None:
    """What is read of a wrong answer as if its sentence had never been written."""
    own = next(
        m for m in known if (m.exercise, m.name) == (misconception.exercise, misconception.name)
    )
    if not any(own.seen.values()):
        return
    counted.unseen += 1
    diagnosis = by_another(own, known, misconception.source)
    if diagnosis is not None:
        counted.anothers += 1
        counted.remarks.append(f"unseen {misconception.name} would get {diagnosis.mistake.name}")
    elif never_used(misconception.source) or is_mended(run, misconception, seed):
        counted.located += 1


def told_of_unseen(total: Counted) -> str:
    """What would be read of answers that no catalogue holds, in one sentence."""
    return (
        f"Of {total.unseen} wrong answers, each looked up without its own sentence, "
        f"{total.located / total.unseen:.0%} are shown the line or what is never used, and "
        f"{total.anothers / total.unseen:.1%} get the sentence of another entry."
    )
