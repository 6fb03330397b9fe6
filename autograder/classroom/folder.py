"""An instructor's class: a folder in nbgrader's layout.

``source/`` and ``release/`` hold the assignments, ``submitted/<student>/<assignment>/`` what
came in, ``autograded/`` and ``feedback/`` what grading made of it, ``gradebook.db`` the
grades; ``class.toml`` the settings of this engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy.engine import make_url

from autograder.classroom.settings import AT_ONCE, WHEN_GRADED, ClassError, ClassSettings
from autograder.course.bundle import Bundle
from autograder.course.former import read_former
from autograder.text import plain_line

__all__ = ["AT_ONCE", "WHEN_GRADED", "ClassError", "ClassFolder", "Handin"]


@dataclass(frozen=True)
class Handin:
    """One folder below ``submitted/``."""

    student: str
    assignment: str
    folder: Path


@dataclass(frozen=True)
class ClassFolder(ClassSettings):
    """A class on disk."""

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
    def lacks_gradebook(self) -> bool:
        """Whether the gradebook is a file, and that is gone."""
        url = make_url(self.db_url)
        is_file = url.drivername.startswith("sqlite") and bool(url.database)
        return is_file and not Path(str(url.database)).exists()

    @property
    def db_url(self) -> str:
        """nbgrader's address of the gradebook."""
        configured = self._settings.get("db_url")
        return str(configured) if configured else f"sqlite:///{self.root / 'gradebook.db'}"

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
        bundle = Bundle.load(self.root / "source" / assignment)
        kept = sorted((self.set_aside / "lessons").glob(f"{assignment}-*/source"))
        return replace(bundle, earlier=read_former(kept)) if kept else bundle

    def handins(self) -> tuple[list[Handin], list[str]]:
        """What was handed in, and the folders that are no student's or no assignment.

        A student's name has no control characters, can be written as UTF-8, and holds nothing that
        ends a text in a page or in a script: nbgrader writes it into both as it is.
        """
        handins: list[Handin] = []
        strangers: list[str] = []
        top = self.root / "submitted"
        if not top.is_dir():
            raise ClassError(
                f"{top} does not exist; put submissions at {top}/<student>/<assignment>/"
            )
        for student in sorted(path for path in top.iterdir() if path.is_dir()):
            if plain_line(student.name) != student.name or set('<>"\\') & set(student.name):
                strangers.append(plain_line(student.name))
                continue
            for folder in sorted(path for path in student.iterdir() if path.is_dir()):
                if folder.name in self.assignments:
                    handins.append(Handin(student.name, folder.name, folder))
                elif not folder.name.startswith("."):
                    strangers.append(f"{student.name}/{folder.name}")
        return handins, strangers
