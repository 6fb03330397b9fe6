"""How a class did in its assignments and their exercises, in points."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.classroom.grades_file import RecordedResult
from autograder.grade.result import CRASHED, GRADED, NO_NOTEBOOK, OUR_FAULT, TIMEOUT, UNREADABLE
from lesson_kit.words import N_

#: Submissions below which a correlation says nothing.
FEWEST_TO_CORRELATE = 10


def separates(shares: Sequence[float], rest: Sequence[float]) -> tuple[float | None, str]:
    """How well an exercise separates strong from weak: the item-rest correlation.

    Args:
        shares: each submission's share of the exercise's points.
        rest: its points in the rest of the assignment; the exercise is not among them,
            or it would be correlated with itself.

    Returns:
        Pearson's correlation, -1 to 1, and ""; or None and why there is none.
    """
    if len(shares) < FEWEST_TO_CORRELATE:
        return None, N_("too few submissions")
    if max(shares) - min(shares) < 1e-9:
        return None, N_("all have the same points here")
    if max(rest) - min(rest) < 1e-9:
        return None, N_("all have the same points elsewhere")
    return statistics.correlation(shares, rest), ""


def in_words(separation: float) -> str:
    """A correlation in words; the steps are those in use for items of examinations."""
    if separation < 0:
        return N_("the wrong way round: look at its checks")
    for least, words in ((0.6, N_("strongly")), (0.4, N_("clearly")), (0.2, N_("somewhat"))):
        if separation >= least:
            return words
    return N_("hardly")


#: Steps of a distribution of points.
STEPS = 10


@dataclass(frozen=True)
class ExerciseNumbers:
    """How a class did in one exercise.

    The counts are of submissions that were graded. ``mean_share`` is the mean share of the
    points, 0 to 1, where who did not attempt the exercise has 0; ``mean_share_attempted``
    leaves those out (None: nobody attempted it). ``separation`` is the correlation of the
    share with the points of the rest of the assignment; where it is None,
    ``no_separation`` says why.
    """

    name: str
    max_points: float
    submissions: int
    attempted: int
    all_points: int
    some_points: int
    no_points: int
    not_attempted: int
    mean_share: float
    mean_share_attempted: float | None
    separation: float | None
    no_separation: str
    timeouts: int
    crashes: int

    @property
    def parts(self) -> tuple[int, int, int, int]:
        """The counts of :data:`autograder.report.figures.PARTS`."""
        return self.all_points, self.some_points, self.no_points, self.not_attempted

    @property
    def separation_words(self) -> str:
        """What the correlation means."""
        return self.no_separation if self.separation is None else in_words(self.separation)


@dataclass(frozen=True)
class AssignmentNumbers:
    """How a class did in one assignment. Shares are of all points, 0 to 1.

    ``steps`` counts graded submissions by tenth of the points; the last holds also those
    with all points.
    """

    name: str
    submissions: int
    nothing: int
    graded: int
    unreadable: int
    without_notebook: int
    not_judged: int
    max_score: float
    mean_share: float | None
    median_share: float | None
    steps: tuple[int, ...]
    to_read: int
    need_an_eye: int
    exercises: tuple[ExerciseNumbers, ...]


def assignment_numbers(
    name: str, entries: list[RecordedResult], need_an_eye: int
) -> AssignmentNumbers:
    """The numbers of one assignment.

    Args:
        name: of the assignment.
        entries: its submissions, at least one.
        need_an_eye: how many of them a person should look at.
    """
    handed_in = [entry for entry in entries if entry.handed_in]
    statuses = Counter(entry.status for entry in handed_in)
    graded = [entry for entry in entries if entry.status == GRADED]
    shares = [entry.score / entry.max_score for entry in graded if entry.max_score > 0]
    steps = [0] * STEPS
    for share in shares:
        steps[min(max(int(share * STEPS + 1e-9), 0), STEPS - 1)] += 1
    exercises = dict.fromkeys(exercise for entry in graded for exercise in entry.exercises)
    return AssignmentNumbers(
        name=name,
        submissions=len(handed_in),
        nothing=len(entries) - len(handed_in),
        graded=len(graded),
        unreadable=statuses[UNREADABLE],
        without_notebook=statuses[NO_NOTEBOOK],
        not_judged=statuses[OUR_FAULT],
        max_score=max(entry.max_score for entry in entries),
        mean_share=statistics.fmean(shares) if shares else None,
        median_share=statistics.median(shares) if shares else None,
        steps=tuple(steps),
        to_read=sum(entry.needs_manual_grade for entry in entries),
        need_an_eye=need_an_eye,
        exercises=tuple(_exercise(exercise, graded) for exercise in exercises),
    )


def _exercise(name: str, graded: list[RecordedResult]) -> ExerciseNumbers:
    having = [entry for entry in graded if name in entry.exercises]
    results = [entry.exercises[name] for entry in having]
    parts = Counter(result.part for result in results)
    attempted = [result.share for result in results if result.attempted]
    shares = [result.share for result in results]
    # Who attempted nothing at all has 0 here and elsewhere, which would look like a correlation.
    tried = [entry for entry in having if not entry.untouched]
    separation, why = separates(
        [entry.exercises[name].share for entry in tried],
        [entry.score - entry.exercises[name].points for entry in tried],
    )
    return ExerciseNumbers(
        name=name,
        max_points=max(result.max_points for result in results),
        submissions=len(results),
        attempted=len(attempted),
        all_points=parts[0],
        some_points=parts[1],
        no_points=parts[2],
        not_attempted=parts[3],
        mean_share=statistics.fmean(shares),
        mean_share_attempted=statistics.fmean(attempted) if attempted else None,
        separation=separation,
        no_separation=why,
        timeouts=sum(result.has(TIMEOUT) for result in results),
        crashes=sum(result.has(CRASHED) for result in results),
    )


def percent(share: float | None) -> str:
    """A share as the page writes it; a dash for None."""
    return "–" if share is None else f"{share:.0%}".replace("%", "\u00a0%")
