"""How far grading a class has come: a bar on a terminal, one line a submission elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from typing import TextIO

from tqdm import tqdm

from autograder.classroom.grades_file import GradedSubmission
from autograder.grade.result import CRASHED, TIMEOUT
from autograder.text import plain_line

#: Verdicts before the time left is said, and the last ones that it is reckoned from.
FEWEST, LAST = 10, 30


class Progress:
    """Told of every verdict. Use it as a context manager around the grading."""

    def __init__(self, total: int, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        """Say nothing yet.

        Args:
            total: how many verdicts there will be.
            stream: where to; standard error otherwise.
            quiet: say nothing at all.
        """
        self.total = total
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.done = 0
        self.kept = 0
        self.started = time.monotonic()
        self.slowest = ("", 0.0)
        self.outcomes: Counter[str] = Counter()
        self.flagged = 0
        self._bar: tqdm[object] | None = None
        self._graded_at: deque[float] = deque(maxlen=LAST)

    def __enter__(self) -> Progress:
        if not self.quiet and self.stream.isatty():
            self._bar = tqdm(total=self.total, unit=" submissions", file=self.stream)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def tell(self, submission: GradedSubmission, kept: bool) -> None:
        """One more verdict; ``kept``: from an earlier run."""
        result = submission.result
        self.done += 1
        self.kept += kept
        name = plain_line(f"{submission.student} {result.assignment}")
        if not kept and result.seconds > self.slowest[1]:
            self.slowest = (name, result.seconds)
        self.outcomes[result.status] += 1
        self.outcomes.update({test.outcome for test in result.tests} & {TIMEOUT, CRASHED})
        self.flagged += bool(result.flags)
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.set_postfix_str(f"slowest {self.slowest[0]} {self.slowest[1]:.1f} s")
            self._bar.update()
            return
        stands = submission.standing
        score = "not judged" if stands is None else f"{stands.total:g} of {stands.out_of:g}"
        earlier = ", as graded before" if kept else ""
        counted = f"[{self.done}/{self.total}{self._time_left()}]"
        print(f"{counted} {name}: {result.status}, {score}{earlier}", file=self.stream, flush=True)

    def _time_left(self) -> str:
        """What is left at the pace of the last ones; nothing while that would be a guess.

        The first verdicts wait for workers to start and would promise hours.
        """
        self._graded_at.append(time.monotonic())
        if len(self._graded_at) < FEWEST:
            return ""
        each = (self._graded_at[-1] - self._graded_at[0]) / (len(self._graded_at) - 1)
        return f", {each * (self.total - self.done):.0f} s left"

    def summary(self) -> str:
        """What happened, in a few words."""
        seconds = time.monotonic() - self.started
        parts = [f"{self.done} verdicts in {seconds:.0f} s"]
        if self.kept:
            parts.append(f"{self.kept} kept from an earlier run")
        for outcome, says in (
            (TIMEOUT, "with a check that took too long"),
            (CRASHED, "with a check that ended its process"),
            ("unreadable", "unreadable"),
            ("missing", "without a notebook"),
            ("failed", "not judged"),
        ):
            if self.outcomes[outcome]:
                parts.append(f"{self.outcomes[outcome]} {says}")
        if self.flagged:
            parts.append(f"{self.flagged} with something noticed (flags in grades.json)")
        if self.slowest[0]:
            parts.append(f"slowest {self.slowest[0]}, {self.slowest[1]:.1f} s")
        return "; ".join(parts) + "."
