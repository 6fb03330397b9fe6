"""How points become a grade: another maximum, weights, the best n, a pass mark for written parts.

All of it stands in [grade] of class.toml, and the table that `autograder export --to final` writes
shows each step.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.errors import WrongUse


class GradeRuleError(WrongUse):
    """The table [grade] of class.toml cannot be used; the message says what to do."""


@dataclass(frozen=True)
class FinalGrade:
    """The rules of a class.

    Attributes:
        maximum: points that an LMS gives each assignment; None leaves them as they are.
        weights: of assignments; 1 where nothing is said.
        best: how many assignments count, those with the highest shares; None counts all.
        written_at_least: percent of the points for written answers, over all assignments, that
            are needed to pass; None asks for none.
    """

    maximum: float | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    best: int | None = None
    written_at_least: float | None = None

    @classmethod
    def from_table(cls, table: Any, path: Path, assignments: Collection[str]) -> FinalGrade:
        """Read the table [grade].

        Raises:
            GradeRuleError: an unknown name, or a value that cannot be.
        """
        if not isinstance(table, dict):
            raise GradeRuleError(f"{path}: grade should be a table, [grade]")
        for name in table:
            if name not in cls.__dataclass_fields__:
                raise GradeRuleError(
                    f"{path}: grade.{name} is unknown; there are {sorted(cls.__dataclass_fields__)}"
                )
        weights = table.get("weights", {})
        if not isinstance(weights, dict):
            raise GradeRuleError(f'{path}: write grade.weights as {{ "ASSIGNMENT" = 2 }}')
        for name, weight in weights.items():
            if name not in assignments:
                raise GradeRuleError(
                    f"{path}: grade.weights has {name!r}, which is no assignment; there are "
                    f"{', '.join(assignments)}"
                )
            _number(weight, f"{path}: the weight of {name}", 0, 1e6)
        if assignments and all(weights.get(name, 1) == 0 for name in assignments):
            raise GradeRuleError(f"{path}: grade.weights are all 0, so nothing would count")
        if "maximum" in table:
            _number(table["maximum"], f"{path}: grade.maximum", 1e-3, 1e6)
        if "written_at_least" in table:
            _number(table["written_at_least"], f"{path}: grade.written_at_least", 0, 100)
        best = table.get("best")
        if best is not None and (not isinstance(best, int) or isinstance(best, bool) or best < 1):
            raise GradeRuleError(f"{path}: grade.best should be a whole number from 1")
        return cls(**table)

    def scaled(self, points: float, out_of: float) -> float:
        """Points as the LMS counts them: their share of all points, times its maximum."""
        if self.maximum is None or not out_of:
            return points
        return points / out_of * self.maximum

    def counted(self, shares: Mapping[str, float]) -> list[str]:
        """The assignments that count for somebody: those with weight, of them the best.

        Args:
            shares: of the points of each assignment, 0 to 1. Of equal ones the earlier counts.
        """
        weighed = [name for name in shares if self.weight(name) > 0]
        ranked = sorted(weighed, key=lambda name: (-shares[name], name))
        return sorted(ranked[: self.best])

    def weight(self, assignment: str) -> float:
        """What an assignment weighs."""
        return float(self.weights.get(assignment, 1.0))

    def final(self, shares: Mapping[str, float]) -> float:
        """The weighted mean of what counts, in percent."""
        names = self.counted(shares)
        whole = sum(self.weight(name) for name in names)
        if not whole:
            return 0.0
        return 100 * sum(self.weight(name) * shares[name] for name in names) / whole

    def in_words(self) -> str:
        """The rules in one sentence."""
        said = "Final: the mean of each assignment's share of its points, in percent"
        if self.weights:
            named = ", ".join(f"{name} {weight:g}" for name, weight in self.weights.items())
            said += f", weighed ({named}, others 1)"
        if self.best is not None:
            said += f", of the {self.best} assignments with the highest share"
        if self.written_at_least is not None:
            said += (
                f"; to pass, {self.written_at_least:g} percent of the points for written answers "
                "are needed"
            )
        return said + "."


def _number(value: Any, what: str, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise GradeRuleError(f"{what} should be a number")
    if not least <= value <= most:
        raise GradeRuleError(f"{what} should be from {least:g} to {most:g}")
