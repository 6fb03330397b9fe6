"""``class.toml``: what an instructor sets, each with what is said when it cannot be used."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.classroom.extensions import Extensions
from autograder.classroom.final_grade import FinalGrade
from autograder.classroom.groups import GROUPS_CSV, Groups
from autograder.classroom.late import LatePolicy, due_dates, time_zone
from autograder.classroom.roster import Roster
from autograder.course.languages import ENGLISH, ask_for_language
from autograder.errors import WrongUse
from autograder.grade.cluster import Certificates
from autograder.grade.limits import Limits

#: What may stand at the top of class.toml.
_SETTINGS = (
    "title",
    "seed",
    "language",
    "db_url",
    "time_zone",
    "short_answers",
    "hold_back",
    "limits",
    "due",
    "late",
    "extensions",
    "marking",
    "requests",
    "grade",
    "collect",
    "export",
    "cluster",
)

#: When students learn whether a short answer is right.
AT_ONCE, WHEN_GRADED = "at_once", "when_graded"


class ClassError(WrongUse):
    """A class folder cannot be used; the message says what to do."""


@dataclass(frozen=True)
class ClassSettings:
    """The settings of a class, and who is in it."""

    root: Path

    @property
    def assignments(self) -> list[str]:
        """The assignments of this class, in order."""
        return sorted(path.name for path in (self.root / "source").iterdir() if path.is_dir())

    @cached_property
    def _settings(self) -> dict[str, object]:
        path = self.root / "class.toml"
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ClassError(f"{path} is not valid TOML: {error}") from None

    def check_settings(self) -> None:
        """Complain of any mistake in class.toml or roster.csv, before a command does anything.

        Raises:
            ClassError, LateError, RosterError, SpreadsheetError: the first that was found.
        """
        path = self.root / "class.toml"
        self._refuse_others("", self._settings, _SETTINGS)
        for name in ("collect", "export", "limits"):
            if not isinstance(self._settings.get(name, {}), dict):
                raise ClassError(f"{path}: {name} should be a table, [{name}]")
        self._refuse_others("collect.", self._settings.get("collect", {}), ("pattern",))
        self._refuse_others("export.", self._settings.get("export", {}), self.assignments)
        limits = self._settings.get("limits", {})
        assert isinstance(limits, dict)
        own = {key: value for key, value in limits.items() if isinstance(value, dict)}
        self._refuse_others("limits.", own, self.assignments)
        for assignment in self.assignments:
            self.limits(assignment)
        _ = self.seed, self.short_answers, self.hold_back, self.due, self.late_policy, self.roster
        _ = self.language, self.assistants, self.requests, self.final_grade, self.cluster
        _ = self.extensions, self.collect_pattern, self.export_columns, self.groups

    def _refuse_others(self, where: str, table: object, known: Iterable[str]) -> None:
        for name in table if isinstance(table, dict) else ():
            if name not in known:
                raise ClassError(
                    f"{self.root / 'class.toml'}: {where}{name} is unknown; there are "
                    f"{', '.join(known)}"
                )

    @property
    def title(self) -> str:
        """What the course is called."""
        return str(self._settings.get("title", self.root.name))

    @property
    def seed(self) -> int:
        """Seed of the random inputs of the tests.

        Raises:
            ClassError: it is no whole number.
        """
        seed = self._settings.get("seed")
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise ClassError(f"{self.root / 'class.toml'}: seed should be a whole number from 0")
        return seed

    @property
    def language(self) -> str:
        """What lessons are made in when they come into the class, and their pages then.

        Raises:
            WrongUse: there is no such language; the message says which there are.
        """
        wanted = self._settings.get("language", ENGLISH)
        return ask_for_language(wanted, f"{self.root / 'class.toml'}: language")

    @property
    def short_answers(self) -> str:
        """When students learn whether a short answer is right: at once, or when it is graded.

        Raises:
            ClassError: it is neither.
        """
        when = self._settings.get("short_answers", AT_ONCE)
        if when not in (AT_ONCE, WHEN_GRADED):
            raise ClassError(
                f'{self.root / "class.toml"}: short_answers should be "{AT_ONCE}" or '
                f'"{WHEN_GRADED}"'
            )
        return str(when)

    @property
    def hold_back(self) -> bool:
        """Whether a lesson is handed out only once all earlier ones are due.

        Raises:
            ClassError: it is neither true nor false.
        """
        wanted = self._settings.get("hold_back", True)
        if not isinstance(wanted, bool):
            raise ClassError(f"{self.root / 'class.toml'}: hold_back should be true or false")
        return wanted

    def limits(self, assignment: str) -> Limits:
        """The limits of one assignment.

        Raises:
            ClassError: an unknown name or a value that is no positive number.
        """
        path = self.root / "class.toml"
        table = self._settings.get("limits", {})
        if not isinstance(table, dict):
            raise ClassError(f"{path}: limits should be a table, [limits]")
        values = {key: value for key, value in table.items() if not isinstance(value, dict)}
        own = table.get(assignment, {})
        values |= own if isinstance(own, dict) else {}
        known = {field.name for field in fields(Limits)}
        for key, value in values.items():
            if key not in known:
                raise ClassError(f"{path}: limits.{key} is unknown; there are {sorted(known)}")
            if not isinstance(value, (int, float)) or isinstance(value, bool) or value <= 0:
                raise ClassError(f"{path}: limits.{key} should be a positive number")
        return Limits(**{key: float(value) for key, value in values.items()})

    @cached_property
    def due(self) -> dict[str, datetime]:
        """When assignments are due, with an offset; not all need to be there.

        Raises:
            LateError: the table [due] of class.toml cannot be used.
        """
        path = self.root / "class.toml"
        return due_dates(self._settings.get("due", {}), path, self.assignments, self.time_zone)

    @cached_property
    def time_zone(self) -> ZoneInfo | None:
        """Where the class is: its days begin at midnight there.

        Raises:
            LateError: there is no such zone.
        """
        return time_zone(self._settings.get("time_zone"), self.root / "class.toml")

    @cached_property
    def late_policy(self) -> LatePolicy:
        """What handing in late costs.

        Raises:
            LateError: the table [late] of class.toml cannot be used.
        """
        return LatePolicy.from_table(self._settings.get("late", {}), self.root / "class.toml")

    @cached_property
    def extensions(self) -> Extensions:
        """Who has more time.

        Raises:
            LateError, SpreadsheetError: [extensions] or extensions.csv cannot be used.
        """
        table = self._settings.get("extensions", {})
        return Extensions.read(table, self.root / "class.toml", self.assignments, self.roster.by_id)

    def due_for(self, student: str, assignment: str) -> datetime | None:
        """When an assignment is due for one student, their extension counted."""
        due = self.due.get(assignment)
        longer = self.extensions.of(student, assignment, due)
        if due is None or longer is None:
            return due
        return (due.astimezone(UTC) + longer).astimezone(due.tzinfo)

    @property
    def assistants(self) -> list[str]:
        """Who marks written answers, each an equal share.

        Raises:
            ClassError: assistants in [marking] is no list of different names.
        """
        names = self._table("marking", ("assistants",)).get("assistants", [])
        if (
            not isinstance(names, list)
            or not all(isinstance(name, str) and name for name in names)
            or len(set(names)) < len(names)
        ):
            raise ClassError(
                f"{self.root / 'class.toml'}: marking.assistants should be a list of different "
                'names, such as ["anna", "ben"]'
            )
        return names

    @cached_property
    def final_grade(self) -> FinalGrade:
        """How points become a grade.

        Raises:
            GradeRuleError: the table [grade] of class.toml cannot be used.
        """
        table = self._settings.get("grade", {})
        return FinalGrade.from_table(table, self.root / "class.toml", self.assignments)

    @property
    def requests(self) -> str:
        """How a student asks for another look at points, for the feedback page; "" for none.

        Raises:
            ClassError: how in [requests] is no text.
        """
        how = self._table("requests", ("how",)).get("how", "")
        if not isinstance(how, str):
            raise ClassError(f"{self.root / 'class.toml'}: requests.how should be a text")
        return how

    @property
    def cluster(self) -> Certificates:
        """By what the machines of a Dask cluster know each other; paths are from the class.

        Raises:
            ClassError: [cluster] cannot be used.
        """
        table = self._table("cluster", ("ca", "cert", "key", "in_the_clear"))
        clear = table.get("in_the_clear", False)
        files = {name: file for name, file in table.items() if name != "in_the_clear"}
        if not isinstance(clear, bool) or not all(isinstance(f, str) for f in files.values()):
            raise ClassError(
                f"{self.root / 'class.toml'}: [cluster] takes files, ca, cert and key, or "
                "in_the_clear = true"
            )
        return Certificates(
            **{n: str(self.root / str(f)) for n, f in files.items()}, in_the_clear=clear
        )

    def _table(self, name: str, known: Iterable[str]) -> dict[str, object]:
        """A table of class.toml in which nothing else may stand."""
        table = self._settings.get(name, {})
        if not isinstance(table, dict):
            raise ClassError(f"{self.root / 'class.toml'}: {name} should be a table, [{name}]")
        self._refuse_others(f"{name}.", table, known)
        return table

    @cached_property
    def roster(self) -> Roster:
        """Who is in the class; empty where there is no list of them.

        Raises:
            RosterError, SpreadsheetError: roster.csv cannot be used.
        """
        return Roster.read(self.root / "roster.csv")

    @cached_property
    def groups(self) -> Groups:
        """Who works together.

        Raises:
            GroupsError, SpreadsheetError: groups.csv cannot be used.
        """
        return Groups.read(self.root / GROUPS_CSV, self.roster, self.assignments)

    @property
    def collect_pattern(self) -> re.Pattern[str] | None:
        """The instructor's own pattern of submitted files' paths, from [collect] in class.toml.

        Raises:
            ClassError: it is no pattern, or names no student.
        """
        path = self.root / "class.toml"
        table = self._settings.get("collect", {})
        pattern = table.get("pattern") if isinstance(table, dict) else table
        if pattern is None:
            return None
        try:
            made = re.compile(str(pattern))
        except re.error as error:
            raise ClassError(
                f"{path}: collect.pattern is no regular expression: {error}; write it in single "
                "quotes, so that backslashes stay"
            ) from None
        if not {"student_id", "file_id"} <= set(made.groupindex):
            raise ClassError(
                f"{path}: collect.pattern should name (?P<student_id>...) and (?P<file_id>...)"
            )
        return made

    @property
    def export_columns(self) -> dict[str, str]:
        """The column of the LMS's gradebook for each assignment, where [export] names one."""
        table = self._settings.get("export", {})
        if not isinstance(table, dict) or not all(
            isinstance(title, str) for title in table.values()
        ):
            raise ClassError(
                f"{self.root / 'class.toml'}: export should be a table of columns' names, "
                '[export] with "01-..." = "Title in the LMS"'
            )
        return dict(table)
