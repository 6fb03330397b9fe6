"""An instructor's class: a folder in nbgrader's layout.

``source/`` and ``release/`` hold the assignments, ``submitted/<student>/<assignment>/`` what
came in, ``autograded/`` and ``feedback/`` what grading made of it, ``gradebook.db`` the
grades; ``class.toml`` the settings of this engine.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path

from autograder.classroom.late import LatePolicy, due_dates
from autograder.classroom.roster import Roster
from autograder.course.bundle import Bundle
from autograder.errors import WrongUse
from autograder.grade.limits import Limits
from autograder.text import plain_line

#: What may stand at the top of class.toml.
_SETTINGS = (
    "title",
    "seed",
    "db_url",
    "short_answers",
    "hold_back",
    "limits",
    "due",
    "late",
    "collect",
    "export",
)

#: When students learn whether a short answer is right.
AT_ONCE, WHEN_GRADED = "at_once", "when_graded"


class ClassError(WrongUse):
    """A class folder cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Handin:
    """One folder below ``submitted/``."""

    student: str
    assignment: str
    folder: Path


@dataclass(frozen=True)
class ClassFolder:
    """A class on disk."""

    root: Path

    @classmethod
    def open(cls, root: Path) -> ClassFolder:
        """Open an existing class.

        Raises:
            ClassError: the folder does not exist or is no class.
        """
        if not root.exists():
            raise ClassError(
                f"{root} does not exist; make a class with `autograder new-class {root}`"
            )
        if not (root / "class.toml").is_file() or not (root / "source").is_dir():
            raise ClassError(
                f"{root} is not a class: it has no class.toml and source/; make one with "
                "`autograder new-class DIR` and put the submissions below DIR/submitted/"
            )
        return cls(root.resolve())

    @property
    def set_aside(self) -> Path:
        """Where what gave way to something newer is kept; nothing there is ever deleted."""
        return self.root / "set_aside"

    @property
    def db_url(self) -> str:
        """nbgrader's address of the gradebook."""
        configured = self._settings.get("db_url")
        return str(configured) if configured else f"sqlite:///{self.root / 'gradebook.db'}"

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
        _ = self.collect_pattern, self.export_columns

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
        return due_dates(self._settings.get("due", {}), path, self.assignments)

    @cached_property
    def late_policy(self) -> LatePolicy:
        """What handing in late costs.

        Raises:
            LateError: the table [late] of class.toml cannot be used.
        """
        return LatePolicy.from_table(self._settings.get("late", {}), self.root / "class.toml")

    @cached_property
    def roster(self) -> Roster:
        """Who is in the class; empty where there is no list of them.

        Raises:
            RosterError, SpreadsheetError: roster.csv cannot be used.
        """
        return Roster.read(self.root / "roster.csv")

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
        if not isinstance(table, dict) or not all(isinstance(one, str) for one in table.values()):
            raise ClassError(
                f"{self.root / 'class.toml'}: export should be a table of columns' names, "
                '[export] with "01-..." = "Title in the LMS"'
            )
        return dict(table)

    @property
    def assignments(self) -> list[str]:
        """The assignments of this class, in order."""
        return sorted(path.name for path in (self.root / "source").iterdir() if path.is_dir())

    def bundle(self, assignment: str) -> Bundle:
        """What grading one assignment needs.

        Raises:
            ClassError: the class has no such assignment.
            BundleError: its source is damaged.
        """
        if assignment not in self.assignments:
            raise ClassError(
                f"{assignment!r} is not an assignment of {self.root}; there are "
                f"{', '.join(self.assignments)}"
            )
        return Bundle.load(self.root / "source" / assignment)

    def handins(self) -> tuple[list[Handin], list[str]]:
        """What was handed in, and the folders that are no student's or no assignment.

        A student's name has no control characters and can be written as UTF-8.
        """
        found: list[Handin] = []
        strangers: list[str] = []
        top = self.root / "submitted"
        if not top.is_dir():
            raise ClassError(
                f"{top} does not exist; put submissions at {top}/<student>/<assignment>/"
            )
        for student in sorted(path for path in top.iterdir() if path.is_dir()):
            if plain_line(student.name) != student.name:
                strangers.append(plain_line(student.name))
                continue
            for folder in sorted(path for path in student.iterdir() if path.is_dir()):
                if folder.name in self.assignments:
                    found.append(Handin(student.name, folder.name, folder))
                elif not folder.name.startswith("."):
                    strangers.append(f"{student.name}/{folder.name}")
        return found, strangers
