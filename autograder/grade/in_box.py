"""The student's notebook in a box: its cells in order, started again when they end it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from autograder.box.box import Box, BoxFailure, BoxTimeout
from autograder.box.patience import ASLEEP
from autograder.course.bundle import Bundle
from autograder.grade import flags as kinds
from autograder.grade.cells import Cell
from autograder.grade.flags import Flag
from autograder.grade.limits import Limits
from autograder.grade.reader import rebound_at
from autograder.grade.result import CellRun
from autograder.grade.submission import Submission
from autograder.grade.telling import Telling
from autograder.text import plain_line
from lesson_kit.words import N_, tr

#: What an answer raises that is not written yet.
STUB_ERROR = "NotImplementedError"

#: How it begins what is said of a cell that took too long.
NOT_FINISHED = N_("The cell did not finish within")

#: Seconds for a further test of an exercise of which one has taken too long.
AFTER_A_TIME_OUT = 2.0

#: Seconds for a further cell of a notebook in which one has taken too long: it is likely to be
#: caught in the same loop. One that was through before may take as long as ever.
CELL_AFTER_A_TIME_OUT = 5.0

#: Starts a box with these files beside its notebook and this many bytes of memory.
MakeBox = Callable[[dict[str, bytes], int], Box]


class OutOfTime(Exception):
    """The notebook has used up its total time."""


@dataclass
class NotebookInBox:
    """The student's notebook in a box, started again when it dies.

    The course's setup cell runs first. Where the visible checks of an exercise stand, the box is
    kept as it is then: what a later cell binds anew does not count against an earlier exercise.
    """

    bundle: Bundle
    cells: list[Cell]
    limits: Limits
    make_box: MakeBox
    #: Exercises by the number of cells before their visible checks.
    checked: dict[int, set[str]] = field(default_factory=dict)
    box: Box | None = None
    places: dict[str, Box] = field(default_factory=dict)
    #: Exercises by the number of cells before their checks, where the box could not be kept: code
    #: that has started threads cannot be copied.
    unkept: dict[int, set[str]] = field(default_factory=dict)
    #: Only so many cells run, or all.
    only: int | None = None
    #: Exercises of which a test counted as the notebook ends.
    at_the_end: set[str] = field(default_factory=set)
    #: Names of answer cells that are as they were handed out.
    unwritten: set[str] = field(default_factory=set)
    runs: dict[int, CellRun] = field(default_factory=dict)
    poisoned: set[int] = field(default_factory=set)
    #: Exercises of which a test took too long.
    endless: set[str] = field(default_factory=set)
    #: Exercises of which no sentence could be looked for, and the kind of error.
    unnamed: dict[str, str] = field(default_factory=dict)
    #: Whether a cell took too long.
    overdue: bool = False
    #: Whether something was given up that slept, which on a busy machine may be nobody's fault.
    gave_up: bool = False
    flags: list[Flag] = field(default_factory=list)
    _boxes: list[Box] = field(default_factory=list)

    def patience(self, exercise: str) -> float:
        """Seconds that a test of an exercise may take.

        After a time-out of the exercise, or of one that it builds on, a loop is likely to be
        without end, and a test that is not caught in it is through at once.
        """
        caught = self.endless & {exercise, *self.bundle.builds_on(exercise)}
        return min(self.limits.test, AFTER_A_TIME_OUT) if caught else self.limits.test

    def ready(self) -> Box:
        """The box with all cells run; cells that ended a box before are left out.

        Raises:
            OutOfTime: before the notebook was through.
        """
        self._check_time()
        while self.box is None:
            self._check_time()
            box = self.make_box(self.bundle.companions, int(self.limits.memory * 2**20))
            self._boxes.append(box)
            try:
                self._run_cells(box)
                self.box = box
            except BoxFailure:
                box.close()
            except BaseException:
                box.close()
                raise
        return self.box

    def place(self, exercise: str) -> Box:
        """The box as it was at the exercise's checks, or as the notebook ends.

        Raises:
            OutOfTime: before the notebook was through.
        """
        end = self.ready()
        return end if exercise in self.at_the_end else self.places.get(exercise, end)

    def lost(self) -> None:
        """The box is gone; the next request starts another."""
        for place in {id(place): place for place in self.places.values()}.values():
            place.close()
        self.places.clear()
        if self.box is not None:
            self.box.close()
            self.box = None

    def _run_cells(self, box: Box) -> None:
        self.places.clear()
        box.run(self.bundle.setup, self.limits.cell)
        for number, cell in enumerate(self.cells[: self.only]):
            if number in self.poisoned:
                continue
            self._check_time()
            seconds = min(self._patience_for(number), self._left())
            try:
                reply = box.run(cell.source, seconds)
            except BoxFailure as failure:
                self.poisoned.add(number)
                self.gave_up |= box.patience.gave_up
                self.overdue |= isinstance(failure, BoxTimeout)
                why = tr("The cell ended its process: {why}.", why=failure)
                if isinstance(failure, BoxTimeout):
                    why = f"{tr(NOT_FINISHED)} {tr('{n} seconds.', n=f'{seconds:.0f}')}"
                self.runs[number] = CellRun(cell.source, cell.grade_id, "", why)
                raise
            if reply.changed and number not in self.runs:
                first = plain_line(next(iter(cell.source.strip().splitlines()), ""), 60)
                what = ", ".join(reply.changed)
                self.flags.append(kinds.CHANGED_FOR_ALL.flag(called=first, names=what))
            error = str(reply.error) if reply.error else ""
            # What it said the first time: a box before this one may have seen a hidden test.
            unfinished = reply.error is not None and reply.error.types[0] == STUB_ERROR
            self.runs.setdefault(
                number, CellRun(cell.source, cell.grade_id, reply.output, error, unfinished)
            )
            if reply.error and reply.error.by_hand and reply.error.types[0] == STUB_ERROR:
                self.unwritten.add(cell.grade_id)
            self._keep(box, number + 1)

    def _patience_for(self, number: int) -> float:
        """Seconds that a cell may take."""
        shorter = self.overdue and number not in self.runs
        return min(self.limits.cell, CELL_AFTER_A_TIME_OUT) if shorter else self.limits.cell

    def _keep(self, box: Box, cells: int) -> None:
        """Keep the box as it is, for the exercises whose checks stand here."""
        if cells not in self._rebound:
            return
        place = box.snapshot()
        if place is not None:
            self.places.update(dict.fromkeys(self.checked[cells], place))
            self._boxes.append(place)
        else:
            self.unkept[cells] = self.checked[cells]

    @contextlib.contextmanager
    def up_to(self, cells: int) -> Iterator[None]:
        """Inside the block there is another box, in which only so many cells have run."""
        self.lost()
        self.only = cells
        try:
            yield
        finally:
            self.lost()
            self.only = None

    @cached_property
    def telling(self) -> Telling:
        """What its hidden tests may tell of exceptions."""
        return Telling([cell.source for cell in self.cells], len(self.bundle.tests))

    @cached_property
    def _rebound(self) -> frozenset[int]:
        """The numbers of cells after which later ones may change what their exercises mean."""
        return rebound_at([cell.source for cell in self.cells], self.checked)

    def _check_time(self) -> None:
        if self._left() <= 0:
            raise OutOfTime

    def _left(self) -> float:
        """Processor seconds that are left of the notebook's."""
        worked = sum(box.patience.worked for box in self._boxes)
        slept = sum(box.patience.slept for box in self._boxes) / ASLEEP
        self.gave_up |= worked < self.limits.notebook <= slept
        return self.limits.notebook - max(worked, slept)


def where_checked(submission: Submission, cells: list[Cell], bundle: Bundle) -> dict[int, set[str]]:
    """For each number of cells to run, the exercises whose last visible check follows them."""
    run = {id(cell) for cell in cells}
    tests = {test.grade_id: test for test in bundle.tests if not test.hidden}
    where: dict[str, int] = {}
    count = 0
    for cell in submission.cells:
        count += id(cell) in run
        test = tests.get(cell.grade_id) or tests.get(bundle.given.get(cell.digest, ""))
        if cell.kind == "code" and test is not None:
            where[test.exercise] = count
    places: dict[int, set[str]] = {}
    for exercise, number in where.items():
        places.setdefault(number, set()).add(exercise)
    return places
