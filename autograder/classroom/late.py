"""Due dates, when a submission came, and what handing in late costs."""

from __future__ import annotations

import math
import stat
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.parser import parse
from dateutil.tz import gettz

from autograder.errors import WrongUse
from autograder.files import write_whole
from lesson_kit.words import tr

TIMESTAMP = "timestamp.txt"
MINUTES_A_DAY = 24 * 60


class LateError(WrongUse):
    """Due dates or late policy of class.toml cannot be used; the message says what to do."""


@dataclass(frozen=True)
class LatePolicy:
    """What handing in late costs: percent of the points for each day that has begun."""

    per_day: float = 0.0
    grace_minutes: float = 0.0
    latest_days: float = math.inf

    @classmethod
    def from_table(cls, table: Any, path: Path) -> LatePolicy:
        """Read the table [late].

        Raises:
            LateError: an unknown name, or a value that cannot be.
        """
        if not isinstance(table, dict):
            raise LateError(f"{path}: late should be a table, [late]")
        known = cls.__dataclass_fields__
        for name, value in table.items():
            if name not in known:
                raise LateError(f"{path}: late.{name} is unknown; there are {sorted(known)}")
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
                raise LateError(f"{path}: late.{name} should be a number from 0")
        if table.get("per_day", 0) > 100:
            raise LateError(f"{path}: late.per_day is in percent: at most 100")
        return cls(**table)

    def penalty(self, points: float, minutes: float, by_the_clock: float | None = None) -> float:
        """What is taken off ``points`` for a submission that came so many minutes late.

        Args:
            points: of the submission.
            minutes: it came late.
            by_the_clock: minutes between both as a clock on the wall shows them, by which days are
                counted: the day on which the clocks change has 23 hours or 25.
        """
        if minutes <= self.grace_minutes or points <= 0:
            return 0.0
        shown = minutes if by_the_clock is None else max(by_the_clock, 1.0)
        if shown > self.latest_days * MINUTES_A_DAY:
            return points
        days = math.ceil(shown / MINUTES_A_DAY)
        # Two digits, as every table and page shows: so that what is shown adds up.
        return round(points * min(1.0, days * self.per_day / 100), 2)


#: What a new class begins with: nothing is lost, and a quarter of an hour will never count.
TO_BEGIN_WITH = LatePolicy(grace_minutes=15)


def time_zone(name: Any, path: Path) -> ZoneInfo | None:
    """The zone of that name; None where none is named.

    Raises:
        LateError: there is none.
    """
    if name is None:
        return None
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise LateError(
            f"{path}: time_zone is {name!r}, which is no zone that this machine knows; write its "
            'name, such as "Europe/Berlin"'
        ) from None


def by_the_clock(due: datetime, came: datetime, zone: ZoneInfo | None) -> float:
    """Minutes from one time to another as the clocks of a zone show them."""
    first, second = (time.astimezone(zone or UTC).replace(tzinfo=None) for time in (due, came))
    return (second - first).total_seconds() / 60


def due_dates(
    table: Any, path: Path, assignments: list[str], zone: ZoneInfo | None = None
) -> dict[str, datetime]:
    """Read the table [due]; times are in the zone, which a time without an offset needs.

    Raises:
        LateError: an assignment that is none, or a date that is not exact.
    """
    if not isinstance(table, dict):
        raise LateError(f"{path}: due should be a table, [due]")
    due: dict[str, datetime] = {}
    for name, value in table.items():
        if name not in assignments:
            raise LateError(
                f"{path}: due has {name!r}, which is no assignment; there are "
                f"{', '.join(assignments)}"
            )
        if not isinstance(value, datetime) or (value.tzinfo is None and zone is None):
            raise LateError(
                f"{path}: due of {name} should be a date, a time and an offset without quotes, "
                "such as 2026-12-01T23:59:00+01:00; with time_zone it needs no offset"
            )
        exact = value.replace(tzinfo=zone) if value.tzinfo is None else value
        try:
            exact.astimezone(UTC)
            due[name] = exact if zone is None else exact.astimezone(zone)
        except OverflowError:
            raise LateError(f"{path}: due of {name} is no date that can be reckoned with") from None
    return due


def read_timestamp(folder: Path) -> datetime | None:
    """When a submission came: nbgrader's ``timestamp.txt`` in its folder, or None."""
    path = folder / TIMESTAMP
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > 200:  # a pipe would never end
            return None
        # nbgrader's parse_utc takes "+0100" for 100 seconds.
        came = parse(path.read_text(encoding="utf-8").strip(), tzinfos=_zone)
        return came.replace(tzinfo=UTC) if came.tzinfo is None else came.astimezone(UTC)
    except Exception:  # not there, or not a time: dateutil lets several kinds through
        return None


def _zone(name: str, offset: int | None) -> Any:
    return gettz(name) if offset is None else offset


def write_timestamp(folder: Path, came: datetime) -> None:
    """Write ``timestamp.txt`` the way nbgrader reads it."""
    write_whole(folder / TIMESTAMP, as_timestamp(came) + "\n")


def as_timestamp(came: datetime) -> str:
    """A time as nbgrader writes it, to the second."""
    return came.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@dataclass(frozen=True)
class Standing:
    """What one submission counts: machine, person and clock together.

    Attributes:
        late_minutes: since it was due; None where there is no due date.
        manual: points that people gave.
        penalty: what being late costs.
        total: the points of now, the penalty taken off.
        out_of: all points that there are, also those that only a person gives.
        to_mark: how many of those a person still has to decide about.
        needs_manual_grade: whether a person has something left to mark.
        written: points that people gave for written answers.
        extension: how much more time than others the student has.
    """

    late_minutes: int | None
    manual: float
    penalty: float
    total: float
    out_of: float
    to_mark: float = 0.0
    needs_manual_grade: bool = False
    written: float = 0.0
    extension: timedelta = timedelta()

    def entry(self) -> dict[str, Any]:
        """Its part in ``grades.json``."""
        return {
            "late_minutes": self.late_minutes,
            "penalty": self.penalty,
            "total": self.total,
            "out_of": self.out_of,
            "to_mark": self.to_mark,
            "needs_manual_grade": self.needs_manual_grade,
            **({"extension_minutes": in_minutes(self.extension)} if self.extension else {}),
        }


def how_late(minutes: float) -> str:
    """Minutes in words."""
    return tr("in time") if minutes <= 0 else tr("{time} late", time=duration(minutes))


def in_minutes(time: timedelta) -> int:
    """A time in minutes."""
    return round(time.total_seconds() / 60)


def duration(minutes: float) -> str:
    """Minutes as days, hours and minutes."""
    days, rest = divmod(math.floor(minutes), MINUTES_A_DAY)
    hours, left = divmod(rest, 60)
    parts = [
        f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (left, "min")) if number
    ]
    return " ".join(parts or [tr("less than a minute")])
