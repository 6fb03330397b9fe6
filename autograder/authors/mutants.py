"""How good the tests and the diagnoses are, measured; see ``autograder mutants``.

For each exercise and over fresh random inputs: the known wrong answers that are rejected, and
those that get their own sentence; the right answers that are accepted; and of small
mechanical changes of the solution, which nobody wrote a sentence for, how many get one that
is not true of them.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from autograder.authors.mutation import mutants
from autograder.course.implementations import Implementation, alternatives, misconceptions
from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import mistake_of, mistakes
from autograder.diagnose.diagnosis import Mistake, diagnose, same
from autograder.diagnose.plain_run import PlainRun

#: Seconds that the tests may take on one mutant: a change can make a loop endless.
MOST_SECONDS = 10


HEAD = (
    f"{'exercise':40} {'wrong':>6} {'rejected':>8} {'sentence':>8} {'right':>6} {'accepted':>8} "
    f"{'mutants':>7} {'rejected':>8} {'named':>6} {'falsely':>7}"
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
            f"{self.mutants_named:6} {self.falsely:7}"
        )

    @property
    def good_enough(self) -> bool:
        """Whether all wrong ones are rejected, all right ones accepted, and nearly all named."""
        judged = self.rejected == self.wrong and self.accepted == self.right
        return judged and self.named >= 0.95 * self.wrong


def count(lesson: Lesson, seeds: list[int], *, changes: bool = True) -> list[Counted]:
    """Measure every exercise of a lesson that is no short answer.

    Args:
        lesson: with its catalogue.
        seeds: of the inputs.
        changes: also mechanical changes of the solutions (on the first seed, and what is said
            of them checked on the second).
    """
    found = {name: Counted(name) for name in lesson.exercises if not name.startswith("answer_")}
    by_seed = {seed: mistakes(lesson, seed) for seed in seeds}
    with PlainRun(lesson) as run:
        for seed, known in by_seed.items():
            for one in misconceptions(lesson):
                if one.exercise in found:
                    _count_wrong(found[one.exercise], one.name, known, seed)
            for one in alternatives(lesson):
                _count_right(run, found[one.exercise], one, known, seed)
        if changes:
            two = {seed: by_seed[seed] for seed in seeds[:2]}
            for name, counted in found.items():
                for label, source in mutants(lesson.exercises[name]):
                    _count_mutant(run, counted, Implementation(name, label, source), two)
    return list(found.values())


def _count_wrong(counted: Counted, name: str, known: list[Mistake], seed: int) -> None:
    """Each is looked up as a student's code would be: by what the tests see of it."""
    own = next(one for one in known if (one.exercise, one.name) == (counted.exercise, name))
    counted.wrong += 1
    if not any(own.seen.values()):
        counted.remarks.append(f"seed {seed}: {name} is accepted")
        return
    counted.rejected += 1
    found = diagnose(own.seen, [one for one in known if one.exercise == counted.exercise])
    if found is not None and found.mistake.sentence == own.sentence:
        counted.named += 1
    else:
        got = found.mistake.name if found is not None else "nothing"
        counted.remarks.append(f"seed {seed}: {name} gets {got}")


def _count_right(
    run: PlainRun, counted: Counted, one: Implementation, known: list[Mistake], seed: int
) -> None:
    what = mistake_of(run, one, seed).seen
    counted.right += 1
    accused = diagnose(what, [wrong for wrong in known if wrong.exercise == one.exercise])
    if any(what.values()) or accused is not None:
        counted.remarks.append(f"seed {seed}: the right answer {one.name} is rejected")
    else:
        counted.accepted += 1


def _count_mutant(
    run: PlainRun,
    counted: Counted,
    one: Implementation,
    by_seed: dict[int, list[Mistake]],
) -> None:
    first, *others = by_seed
    try:
        with _time_limit():
            mutant = mistake_of(run, one, first)
            again = {seed: mistake_of(run, one, seed) for seed in others}
    except TimeoutError:
        return
    counted.mutants += 1
    if not any(mutant.seen.values()):
        return
    counted.mutants_rejected += 1
    known = [one for one in by_seed[first] if one.exercise == counted.exercise]
    found = diagnose(mutant.seen, known)
    if found is None:
        return
    counted.mutants_named += 1
    for seed in others:
        named = next(one for one in by_seed[seed] if one.name == found.mistake.name)
        if not all(same(again[seed].seen[test], named.seen[test]) for test in found.tests):
            counted.falsely += 1
            counted.remarks.append(
                f"mutant ({one.name}) gets {found.mistake.name}: not so on other inputs"
            )
            return


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    # Of the processor: a busy machine must not make a difference.
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
