"""What one mistake costs of an exercise's points; see ``autograder lost-points``.

Each misconception goes through the tests of its exercise; counted is the share of the
exercise's points that it loses. A teaching assistant gives 40 to 70 % back for one mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from autograder.course.implementations import misconceptions
from autograder.course.lessons import Lesson
from autograder.diagnose.plain_run import PlainRun
from autograder.notebooks import nbgrader_metadata

HEAD = f"{'exercise':40} {'mistakes':>8} {'median lost':>11} {'lose 80 % or more':>15}"


def shares_lost(lesson: Lesson, seed: int) -> dict[str, dict[str, float]]:
    """For each exercise that is no short answer, the share of its points that each mistake
    loses."""
    shares: dict[str, dict[str, float]] = {}
    with PlainRun(lesson) as run:
        for misconception in misconceptions(lesson):
            if misconception.exercise.startswith("answer_") or misconception.two_at_once:
                continue
            tests = run.tests_of({misconception.exercise})
            errors = run.errors(
                {misconception.exercise: misconception.source}, seed, tests, as_graded=True
            )
            worth = sum(float(nbgrader_metadata(lesson.tests[test])["points"]) for test in tests)
            kept = sum(run.points(errors).values())
            shares.setdefault(misconception.exercise, {})[misconception.name] = 1 - kept / worth
    return shares


def row(name: str, shares: Sequence[float]) -> str:
    """A line of the table under :data:`HEAD`."""
    usual = f"{median(shares):11.0%}" if shares else f"{'':11}"
    nearly_all = sum(share >= 0.8 for share in shares)
    return f"{name:40} {len(shares):8} {usual} {nearly_all:15}"
