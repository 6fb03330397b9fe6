"""What the search for a repair is worth, by exercise; see ``autograder measure repairs``.

Each known wrong answer is looked up as if its sentence had never been written. Where no other
sentence fits it, and it leaves nothing unused, a small change that mends it is searched, as when
grading. Where that never finds anything, its time is better spent otherwise.
"""

from __future__ import annotations

import ast
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass

from autograder.course.implementations import Implementation
from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import entries, mistakes
from autograder.diagnose.diagnosis import Diagnosis, Mistake, diagnose, remaining
from autograder.diagnose.matrix import Matrix
from autograder.diagnose.plain_run import PlainRun
from autograder.grade.failed_exercises import REPAIRS_OF_AN_EXERCISE, SECONDS_OF_A_REPAIR
from autograder.processes import processes
from lesson_kit.answer_text import never_used
from lesson_kit.repair import OTHER_SEED, nearest_repair
from lesson_kit.setting import in_haste
from lesson_kit.tensors import one_thread

HEAD = f"{'exercise':40} {'wrong':>6} {'searched':>8} {'mended':>6} {'seconds':>8}"


@dataclass(frozen=True)
class Searches:
    """What the search came to.

    Attributes:
        exercise: of which.
        wrong: known wrong answers that its tests reject.
        searched: of these, those that nothing else explains.
        mended: of these, those that one small change mends.
        seconds: of the processor, that all searches took.
    """

    exercise: str
    wrong: int
    searched: int
    mended: int
    seconds: float

    def row(self) -> str:
        """A line of the table under :data:`HEAD`."""
        name, wrong, searched, mended, seconds = astuple(self)
        return f"{name:40} {wrong:6} {searched:8} {mended:6} {seconds:8.1f}"


def searches(wanted: Sequence[tuple[Lesson, str]], seed: int) -> Iterator[Searches]:
    """The searches of some exercises, on all cores.

    Args:
        wanted: lessons with the names of their exercises.
        seed: of the inputs.
    """
    with processes(begin=one_thread) as pool:
        tasks = [pool.submit(_searches_of, lesson, name, seed) for lesson, name in wanted]
        for task in tasks:
            yield task.result()


def _searches_of(lesson: Lesson, exercise: str, seed: int) -> Searches:
    wrong = searched = mended = 0
    took = 0.0
    with Matrix(lesson) as matrix:
        known = mistakes(matrix, exercise, seed)
        for entry, own in zip(entries(lesson).get(exercise, ()), known):
            if not any(own.seen.values()):
                continue
            wrong += 1
            if by_another(own, known, entry.source) is not None or never_used(entry.source):
                continue
            searched += 1
            begun = time.process_time()
            mended += is_mended(matrix.run, entry, seed)
            took += time.process_time() - begun
    return Searches(exercise, wrong, searched, mended, took)


def by_another(own: Mistake, known: Sequence[Mistake], source: str) -> Diagnosis | None:
    """What a known wrong answer would be taken for if its own sentence had never been written."""
    others = [mistake for mistake in known if mistake.sentence != own.sentence]
    return diagnose(own.seen, remaining(own.seen, others, source))


def is_mended(run: PlainRun, wrong: Implementation, seed: int) -> bool:
    """Whether the search finds one small change that mends an answer."""
    tests = run.tests_of({wrong.exercise})

    def passes(tree: ast.Module) -> bool:
        changed = {wrong.exercise: ast.unparse(tree)}
        try:
            return all(
                _passes(run, changed, test, inputs)
                for inputs in (seed, OTHER_SEED)
                for test in tests
            )
        except OutOfTime:
            return False

    # Of the processor: a busy machine must not make a difference.
    return bool(
        nearest_repair(wrong.source, passes, REPAIRS_OF_AN_EXERCISE, clock=time.process_time)
    )


def _passes(run: PlainRun, changed: dict[str, str], test: str, inputs: int) -> bool:
    with time_limit(SECONDS_OF_A_REPAIR), in_haste():
        return run.errors(changed, inputs, [test], as_graded=True)[test] is None


class OutOfTime(BaseException):
    """No ``Exception``: a named check would count it as the answer's own, and go on untimed."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTime` inside after so many seconds of the processor."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
