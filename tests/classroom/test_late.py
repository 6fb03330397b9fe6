"""Due dates and what handing in late costs, from timestamp.txt to the feedback page."""

from __future__ import annotations

import csv
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.extensions import Extensions
from autograder.classroom.folder import ClassFolder
from autograder.classroom.late import (
    LateError,
    LatePolicy,
    by_the_clock,
    due_dates,
    how_late,
    read_timestamp,
    time_zone,
    write_timestamp,
)
from autograder.classroom.standing import settle

from ..classes import LESSON, dated, entries, give_by_hand, grade_here, hand_in, new, solved

DUE = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = 24 * 60


@pytest.mark.parametrize(
    ("minutes", "penalty"),
    [
        (0, 0.0),
        (15, 0.0),  # in the grace
        (16, 1.0),  # the first day has begun
        (DAY, 1.0),
        (DAY + 1, 2.0),
        (3 * DAY, 3.0),
        (3 * DAY + 1, 10.0),  # after the latest day
    ],
)
def test_the_policy(minutes: float, penalty: float) -> None:
    policy = LatePolicy(per_day=10, grace_minutes=15, latest_days=3)
    assert policy.penalty(10.0, minutes) == penalty


def test_a_penalty_is_never_more_than_the_points() -> None:
    assert LatePolicy(per_day=60).penalty(4.0, 5 * DAY) == 4.0
    assert LatePolicy(per_day=60).penalty(0.0, 5 * DAY) == 0.0
    assert LatePolicy().penalty(4.0, 500 * DAY) == 0.0


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("due", "came", "days"),
    [
        ("2026-10-24T23:59+02:00", "2026-10-25T23:30+01:00", 1),  # 25 hours between two midnights
        ("2026-10-24T23:59+02:00", "2026-10-25T23:59+01:00", 1),
        ("2026-10-24T23:59+02:00", "2026-10-26T00:00+01:00", 2),
        ("2026-03-28T23:59+01:00", "2026-03-29T23:59+02:00", 1),  # 23 hours
        ("2026-03-28T23:59+01:00", "2026-03-30T00:30+02:00", 2),
        ("2026-10-25T02:30+02:00", "2026-10-25T02:50+01:00", 1),  # the hour that comes twice
        ("2026-06-01T12:00+02:00", "2026-06-03T12:00+02:00", 2),
    ],
)
def test_days_are_those_of_the_class_when_the_clocks_change(due: str, came: str, days: int) -> None:
    first, second = datetime.fromisoformat(due), datetime.fromisoformat(came)
    minutes = (second - first).total_seconds() / 60
    shown = by_the_clock(first, second, BERLIN)
    assert LatePolicy(per_day=10).penalty(10.0, minutes, shown) == days


def test_a_due_date_of_the_zone_and_days_more_of_it() -> None:
    table = {LESSON: datetime(2026, 10, 24, 23, 59)}
    due = due_dates(table, Path("class.toml"), [LESSON], BERLIN)[LESSON]
    assert due == datetime(2026, 10, 24, 21, 59, tzinfo=UTC)
    longer = Extensions({("ada", LESSON): timedelta(days=1)}).of("ada", LESSON, due)
    assert longer == timedelta(hours=25)
    with pytest.raises(LateError, match="with time_zone it needs no offset"):
        due_dates(table, Path("class.toml"), [LESSON])
    with pytest.raises(LateError, match="no zone that this machine knows"):
        time_zone("Berlin", Path("class.toml"))


@pytest.mark.slow
def test_a_class_counts_the_days_of_its_zone(graded: ClassFolder) -> None:
    settings = graded.root / "class.toml"
    before = settings.read_text()
    changed = before.replace("2026-03-01T13:00:00+01:00", "2026-10-24T23:59:00")
    settings.write_text('time_zone = "Europe/Berlin"\n' + changed)
    folder = ClassFolder.open(graded.root)
    folder.check_settings()
    there = graded.root / "submitted" / "ada" / LESSON
    stamp = read_timestamp(there)
    write_timestamp(there, datetime.fromisoformat("2026-10-25T23:30:00+01:00"))
    with Gradebook(folder.db_url) as gradebook:
        stands = settle(gradebook, folder, "ada", LESSON)
    assert stands.late_minutes == 1471
    assert stands.penalty == pytest.approx((stands.total + stands.penalty) / 10)
    settings.write_text(before)
    if stamp is None:
        (there / "timestamp.txt").unlink()
    else:
        write_timestamp(there, stamp)
    with Gradebook(folder.db_url) as gradebook:
        settle(gradebook, ClassFolder.open(graded.root), "ada", LESSON)


def test_lateness_in_words() -> None:
    assert how_late(0) == "in time"
    assert how_late(1.5) == "1 min late"
    assert how_late(0.4) == "less than a minute late"
    assert how_late(2 * DAY + 61) == "2 d 1 h 1 min late"


def test_a_timestamp_of_any_kind(tmp_path: Path) -> None:
    assert read_timestamp(tmp_path) is None
    came = datetime(2026, 3, 1, 13, 0, 5, tzinfo=UTC)
    write_timestamp(tmp_path, came.astimezone())
    assert read_timestamp(tmp_path) == came
    for text in ("2026-03-01 14:00:05 +0100", "2026-03-01T13:00:05+00:00"):
        (tmp_path / "timestamp.txt").write_text(text)
        assert read_timestamp(tmp_path) == came
    for beyond in ("2026-01-01 10:00 +2400", "0001-01-01 00:00:00 +1400", "9999-12-31 23:00 -1400"):
        (tmp_path / "timestamp.txt").write_text(beyond)
        assert read_timestamp(tmp_path) is None
    for wrong in ("", "yesterday", "9" * 50, "\x00", "x" * 5000):
        (tmp_path / "timestamp.txt").write_text(wrong)
        assert read_timestamp(tmp_path) is None


def test_a_timestamp_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "timestamp.txt"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("2026-03-01 14:00:05 UTC",))
    writer.start()  # whoever reads the pipe gets a time from it
    try:
        assert read_timestamp(tmp_path) is None
    finally:
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer.join()
        os.close(reader)


@pytest.mark.slow
def test_a_timestamp_that_is_none_costs_nobody_a_verdict(tmp_path: Path) -> None:
    folder = dated(new(tmp_path))
    hand_in_at(folder, "ada", -5)
    for who, text in (("bob", "2026-01-01 10:00 +2400"), ("cleo", "0001-01-01 00:00:00 +1400")):
        path = hand_in(folder, who, solved(folder))
        (path.parent / "timestamp.txt").write_text(text)
    hand_in_at(folder, "zoe", 2 * DAY)
    result = grade_here(folder)
    assert not result.not_judged
    assert {who: one["total"] for who, one in entries(folder).items()} == {
        "ada": 8.0,
        "bob": 8.0,
        "cleo": 8.0,
        "zoe": 6.4,
    }


def hand_in_at(folder: ClassFolder, student: str, minutes: float, **what: str) -> None:
    path = hand_in(folder, student, solved(folder, **what))
    write_timestamp(path.parent, DUE + timedelta(minutes=minutes))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    folder = dated(new(tmp_path_factory.mktemp("late")))
    hand_in_at(folder, "ada", -5)
    hand_in_at(folder, "bob", 10)
    hand_in_at(folder, "cleo", DAY + 5, why="Because.")
    hand_in(folder, "dan", solved(folder))  # nobody knows when
    grade_here(folder)
    return folder


def test_grades_say_what_being_late_costs(graded: ClassFolder) -> None:
    found = {
        who: (one["score"], one["late_minutes"], one["penalty"], one["total"])
        for who, one in entries(graded).items()
    }
    assert found == {
        "ada": (8.0, 0, 0.0, 8.0),
        "bob": (8.0, 10, 0.0, 8.0),
        "cleo": (8.0, DAY + 5, 1.6, 6.4),
        "dan": (8.0, 0, 0.0, 8.0),
    }
    with (graded.root / "grades.csv").open() as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert (rows["cleo"]["penalty"], rows["cleo"]["total"]) == ("1.6", "6.4")
    assert rows["cleo"]["score"] == "8.0"


def test_nbgraders_gradebook_has_the_penalty(graded: ClassFolder) -> None:
    with Gradebook(graded.db_url) as gradebook:
        cleo = gradebook.find_submission(LESSON, "cleo")
        assert cleo.late_submission_penalty == 1.6
        assert cleo.total_seconds_late == (DAY + 5) * 60
        assert gradebook.find_submission(LESSON, "bob").late_submission_penalty == 0


def test_the_page_says_it_in_a_line(graded: ClassFolder) -> None:
    pages = {
        who: (graded.root / "feedback" / who / LESSON / "tiny.html").read_text()
        for who in ("ada", "bob", "cleo")
    }
    assert "Handed in 1 d 5 min late, which costs 1.6 points: 6.4 are left." in pages["cleo"]
    assert "Handed in 10 min late, which costs nothing." in pages["bob"]
    assert "Handed in" not in pages["ada"]


def test_points_by_hand_count_and_an_extension_too(graded: ClassFolder) -> None:
    give_by_hand(graded, "cleo", 2.0)
    with Gradebook(graded.db_url) as gradebook:
        stands = settle(gradebook, graded, "cleo", LESSON)
        assert (stands.manual, stands.penalty, stands.total) == (2.0, 2.0, 8.0)
        gradebook.find_submission(LESSON, "cleo").extension = timedelta(days=1)
        gradebook.db.commit()
        stands = settle(gradebook, graded, "cleo", LESSON)
        assert (stands.late_minutes, stands.penalty, stands.total) == (5, 0.0, 10.0)


def test_without_due_dates_nobody_is_late(tmp_path: Path) -> None:
    folder = new(tmp_path)
    hand_in(folder, "ada", b"")
    grade_here(folder)
    (found,) = entries(folder).values()
    assert (found["late_minutes"], found["penalty"], found["total"]) == (None, 0.0, 0.0)
