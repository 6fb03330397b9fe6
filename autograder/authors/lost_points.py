"""What one mistake costs: ``python -m autograder.authors.lost_points [LESSON...]``.

Each misconception goes through the tests of its exercise; counted is the share of the
exercise's points that it loses. A teaching assistant gives 40 to 70 % back for one mistake.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from autograder.course.implementations import misconceptions
from autograder.course.lessons import Course, Lesson
from autograder.diagnose.plain_run import PlainRun
from autograder.notebooks import nbgrader_metadata


def shares_lost(lesson: Lesson, seed: int) -> dict[str, dict[str, float]]:
    """For each exercise that is no short answer, the share of its points that each mistake
    loses."""
    found: dict[str, dict[str, float]] = {}
    with PlainRun(lesson) as run:
        for one in misconceptions(lesson):
            if one.exercise.startswith("answer_") or one.two_at_once:
                continue
            tests = run.tests_of({one.exercise})
            errors = run.errors({one.exercise: one.source}, seed, tests, as_graded=True)
            worth = sum(float(nbgrader_metadata(lesson.tests[test])["points"]) for test in tests)
            kept = sum(run.points(errors).values())
            found.setdefault(one.exercise, {})[one.name] = 1 - kept / worth
    return found


def _row(name: str, shares: Iterable[float]) -> str:
    known = list(shares)
    nearly_all = sum(share >= 0.8 for share in known)
    return f"{name:40} {len(known):8} {median(known):11.0%} {nearly_all:15}"


def main() -> None:
    """``python -m autograder.authors.lost_points 02 --all``"""
    parser = argparse.ArgumentParser(description="What one mistake costs of an exercise's points.")
    parser.add_argument("lesson", nargs="*", help="such as 02; all when none is given")
    parser.add_argument("--seed", type=int, default=101, help="of the inputs")
    parser.add_argument("--all", action="store_true", help="each mistake too, the dearest first")
    asked = parser.parse_args()
    course = Course.load(Path.cwd())
    every: list[float] = []
    print(f"{'exercise':40} {'mistakes':>8} {'median lost':>11} {'lose 80 % or more':>15}")
    for lesson in [course.lesson(name) for name in asked.lesson] or list(course.lessons):
        for exercise, shares in shares_lost(lesson, asked.seed).items():
            print(_row(exercise, shares.values()), flush=True)
            every += shares.values()
            if asked.all:
                for name, share in sorted(shares.items(), key=lambda pair: -pair[1]):
                    print(f"    {share:4.0%}  {name}")
    print(_row("all", every))


if __name__ == "__main__":
    main()
