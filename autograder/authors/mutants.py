"""How good the tests and the diagnoses are, measured: ``python -m autograder.authors.mutants``.

For each exercise and over fresh random inputs: the known wrong answers that are rejected, and
those that get their own sentence; the right answers that are accepted; and of small
mechanical changes of the solution, which nobody wrote a sentence for, how many get one that
is not true of them.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from autograder.authors.mutation import mutants
from autograder.course.implementations import Implementation, alternatives, misconceptions
from autograder.course.lessons import Course, Lesson
from autograder.diagnose.catalogue import mistake_of, mistakes
from autograder.diagnose.diagnosis import Mistake, diagnose, same
from autograder.diagnose.plain_run import PlainRun

#: Seconds that the tests may take on one mutant: a change can make a loop endless.
MOST_SECONDS = 10


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


_HEAD = (
    f"{'exercise':40} {'wrong':>6} {'rejected':>8} {'sentence':>8} {'right':>6} {'accepted':>8} "
    f"{'mutants':>7} {'rejected':>8} {'named':>6} {'falsely':>7}"
)


def _row(one: Counted) -> str:
    return (
        f"{one.exercise:40} {one.wrong:6} {one.rejected:8} {one.named:8} {one.right:6} "
        f"{one.accepted:8} {one.mutants:7} {one.mutants_rejected:8} {one.mutants_named:6} "
        f"{one.falsely:7}"
    )


def main() -> int:
    """``python -m autograder.authors.mutants [LESSON...] [--seeds 5]``"""
    parser = argparse.ArgumentParser(
        description="Measure the tests and the diagnoses of the course.",
        epilog="example: python -m autograder.authors.mutants 02 --seeds 5",
    )
    parser.add_argument("lesson", nargs="*", help="such as 02; all when none is given")
    parser.add_argument("--seeds", type=int, default=5, help="how many random inputs to try")
    asked = parser.parse_args()
    course = Course.load(Path.cwd())
    lessons = [course.lesson(name) for name in asked.lesson] or list(course.lessons)
    total = Counted("all")
    remarks: list[str] = []
    print("Counts are over all seeds; mutants are small changes of the solution.\n" + _HEAD)
    for lesson in lessons:
        for one in count(lesson, list(range(101, 101 + asked.seeds))):
            print(_row(one), flush=True)
            total.add(one)
            remarks += [f"{lesson.folder} {one.exercise}: {remark}" for remark in one.remarks]
    print(_row(total))
    print("\n".join(remarks))
    perfect = total.rejected == total.wrong and total.accepted == total.right
    return 0 if perfect and total.named >= 0.95 * total.wrong else 1


if __name__ == "__main__":
    sys.exit(main())
