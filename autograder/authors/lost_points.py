"""What one mistake costs of an exercise's points; see ``autograder measure lost-points``.

Each misconception goes through the tests of its exercise; counted is the share of the
exercise's points that it loses. A teaching assistant gives 40 to 70 % back for one mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from autograder.diagnose.catalogue import entries, graded_cells
from autograder.diagnose.matrix import Matrix
from autograder.notebooks import nbgrader_metadata

HEAD = f"{'exercise':40} {'mistakes':>8} {'median lost':>11} {'lose 80 % or more':>15}"


def shares_lost(matrix: Matrix, exercise: str, seed: int) -> dict[str, float]:
    """The share of an exercise's points that each of its known mistakes loses; a mistake that is
    made of two others is left out."""
    lesson = matrix.lesson
    tests = graded_cells(lesson, exercise)
    worth = sum(float(nbgrader_metadata(lesson.tests[test])["points"]) for test in tests)
    return {
        mistake.name: 1 - sum(matrix.points(matrix.of(mistake, tests, seed)).values()) / worth
        for mistake in entries(lesson).get(exercise, ())
        if not mistake.two_at_once
    }


def row(name: str, shares: Sequence[float]) -> str:
    """A line of the table under :data:`HEAD`."""
    usual = f"{median(shares):11.0%}" if shares else f"{'':11}"
    nearly_all = sum(share >= 0.8 for share in shares)
    return f"{name:40} {len(shares):8} {usual} {nearly_all:15}"
