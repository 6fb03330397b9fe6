"""Where a lesson's checks run: in a student's notebook, or for the grader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass
class Setting:
    """What checks ask of the place where they run.

    Attributes:
        seed: of the inputs. Fixed in the notebook, so that a failure can be looked into.
        answers: what is known of the short answers; None: what lies beside the notebook.
        advice: whether a failed check looks for the mistake; the grader does that itself.
        hasty: whether the first failed check ends its cell.
        drawn: whether inputs were drawn since the grader's turn began.
    """

    seed: int = 2017
    answers: dict[str, Any] | None = None
    advice: bool = True
    hasty: bool = False
    drawn: bool = False


#: Of this process.
now = Setting()


@contextmanager
def as_grader(seed: int, answers: str) -> Iterator[None]:
    """While it is open, checks run for the grader.

    Args:
        seed: of the inputs.
        answers: what is known of the short answers, as JSON.
    """
    before = replace(now)
    now.seed, now.answers, now.advice, now.drawn = seed, json.loads(answers), False, False
    try:
        yield
    finally:
        now.seed, now.answers, now.advice = before.seed, before.answers, before.advice


@contextmanager
def inputs_of(seed: int) -> Iterator[None]:
    """While it is open, the checks' inputs are drawn from this seed."""
    before, now.seed = now.seed, seed
    try:
        yield
    finally:
        now.seed = before


@contextmanager
def without_advice() -> Iterator[None]:
    """While it is open, a failed check looks for nothing: it is being tried."""
    before, now.advice = now.advice, False
    try:
        yield
    finally:
        now.advice = before


@contextmanager
def in_haste() -> Iterator[None]:
    """While it is open, one failed check is enough: a cell of many ends there."""
    before, now.hasty = now.hasty, True
    try:
        yield
    finally:
        now.hasty = before
