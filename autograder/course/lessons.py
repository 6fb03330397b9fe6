"""The course as its authors write it: ``lessons/course.toml`` and one folder a lesson.

A lesson's notebook is a Python file in jupytext's percent format whose cells say in their
headers what they are (:mod:`autograder.course.cell_headers`). Reading one checks everything an
author can get wrong, so that the build, the grader and the tests may rely on it.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder.course.cell_headers import MEANS, SECONDS, WrongHeader, nbgrader_of
from autograder.course.course_toml import (
    LessonText,
    PackageText,
    PictureText,
    WrongCourseToml,
    read_course_toml,
)
from autograder.course.overlay import ClassTerms, Overlay, read_overlay
from autograder.course.points import change_points
from autograder.course.source_rules import LessonError, check_cells, check_regions
from autograder.notebooks import (
    KERNEL,
    grade_id,
    is_answer,
    is_test,
)
from lesson_kit.course_progress import LESSON
from lesson_kit.words import tr

#: Stands in a test cell whose points count only once a test of the exercise passes that has no
#: such line: what holds for a function that does nothing is worth nothing by itself.
SIDE_CONDITION = re.compile(r"^### SIDE CONDITION\b", re.M)

#: What a class's source folder holds for the grader alone: the evidence of known mistakes. nbgrader
#: leaves files of this name out of a release wherever they lie, so no other file may have it.
CATALOGUE_FILE = "catalogue.json"
#: And beside it, of a lesson in another language than English, the words that grading says.
WORDS_FILE = "words.txt"


def is_side_condition(source: str) -> bool:
    """Whether a test cell's points count only once another test of its exercise passes."""
    return bool(SIDE_CONDITION.search(source))


def builds_on(exercises: dict[str, str], name: str) -> set[str]:
    """The exercises that the solution of ``name`` uses, directly or through others."""
    below, waiting = set[str](), [name]
    while waiting:
        new = (_names_in(exercises[waiting.pop()]) & set(exercises)) - below - {name}
        below |= new
        waiting.extend(new)
    return below


@lru_cache(maxsize=1_000)  # asked for each test of each submission
def _names_in(source: str) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))


@dataclass(frozen=True)
class Lesson:
    """One lesson: what course.toml says of it and where its sources are."""

    folder: str
    title: str
    minutes: int
    needs: tuple[str, ...]
    about: str
    path: Path
    number: int
    #: Every lesson with a smaller number, drafts too: what this one may take over from.
    earlier: tuple[Lesson, ...] = field(default=(), repr=False)
    #: Not finished: can be tried by its author, and is in no build, class or test.
    draft: bool = False
    #: What the notebook is called: its folder's name in snake case without the number, unless
    #: course.toml says another.
    notebook_name: str = ""
    #: What a lesson asks for that needs no other, in words.
    first_needs: str = ""
    #: Title of the lesson after it, and where its notebook is from this one's folder.
    following: tuple[str, str] | None = field(default=None, compare=False)
    #: The exercises on the core path; none: the lesson is not on it.
    core: tuple[str, ...] = ()
    core_minutes: int = 0
    #: Of its page and boxes, where that is not English; see :mod:`autograder.course.translation`.
    language: str = ""
    #: What another course that has this lesson gives for an exercise, by its name.
    points: tuple[tuple[str, float], ...] = ()
    #: The file of the course's way, if it has one.
    way: Path | None = None

    def __getstate__(self) -> dict[str, object]:
        """For another process: a copy, since what is read later may be added meanwhile."""
        return dict(self.__dict__)

    @property
    def root(self) -> Path:
        """The folder of the course whose lesson it is, which another course may extend."""
        return self.path.parent.parent

    @property
    def source_path(self) -> Path:
        """The jupytext file authors write."""
        return self.path / f"{self.notebook_name}.py"

    @cached_property
    def notebook(self) -> NotebookNode:
        """The source notebook, checked, with its heading and stable cell ids.

        Raises:
            LessonError: the file is missing or breaks a rule of lessons/README.md.
        """
        if not self.source_path.exists():
            raise LessonError(
                f"{self.source_path} is missing: course.toml lists {self.folder}, so its "
                "notebook is expected there"
            )
        text = self.source_path.read_text(encoding="utf-8")
        check_regions(self.source_path, text)
        parsed = jupytext.reads(text, fmt="py:percent")
        cells = [_clean(self.source_path, cell) for cell in parsed.cells]
        heading = nbformat.v4.new_markdown_cell(self.heading())
        notebook = nbformat.v4.new_notebook(cells=[heading, *cells])
        notebook.metadata = nbformat.from_dict({**KERNEL, LESSON: self.described()})
        _give_ids(self.folder, notebook)
        check_cells(self.source_path, text, notebook)
        change_points(self.source_path, notebook, dict(self.points))
        return notebook

    def described(self) -> NotebookNode:
        """The lesson in the notebook's metadata, for the table on the start page."""
        needs = ", ".join(
            tr("lesson {number}", number=int(folder.split("-")[0])) for folder in self.needs
        )
        return NotebookNode(
            number=self.number,
            title=self.title,
            about=self.about,
            minutes=self.minutes,
            needs=needs or self.first_needs,
            **({"core_minutes": self.core_minutes} if self.core else {}),
        )

    def heading(self) -> str:
        """The first cell of the page, as Markdown."""
        core = tr(", {number} of them on the core path", number=self.core_minutes)
        time = tr(
            "About {minutes} minutes{on_core_path}. Needs: {needs}.",
            minutes=self.minutes,
            on_core_path=core if self.core else "",
            needs=self.described().needs,
        )
        return f"# {self.number}. {self.title}\n\n{self.about}\n\n*{time}*"

    @cached_property
    def exercises(self) -> dict[str, str]:
        """Name and solved source of every answer cell, in order."""
        return {grade_id(cell): cell.source for cell in self.notebook.cells if is_answer(cell)}

    @cached_property
    def tests(self) -> dict[str, NotebookNode]:
        """The test cells by their grade_id, in order."""
        return {grade_id(cell): cell for cell in self.notebook.cells if is_test(cell)}


@dataclass(frozen=True)
class Course:
    """All lessons in order, and what else course.toml says."""

    title: str
    lessons: tuple[Lesson, ...]
    root: Path
    drafts: tuple[Lesson, ...] = ()
    #: What it changes of another course's lessons; None where its lessons are its own.
    overlay: Overlay | None = None
    #: What an author has to know of it.
    notes: tuple[str, ...] = ()
    #: Where a student's answers that pass are kept; None where they are not.
    package: PackageText | None = None
    #: With which the start page opens, if it has one; its file with the whole path.
    picture: PictureText | None = None

    @classmethod
    def load(cls, root: Path) -> Course:
        """Read ``root/lessons/course.toml``.

        Raises:
            LessonError: it is missing, or has a slip in it.
        """
        path = root / "lessons" / "course.toml"
        if not path.exists():
            raise LessonError(f"{path} is missing: run this in the course's own folder")
        try:
            text = path.read_text(encoding="utf-8")
            if (overlay := read_overlay(text)) is not None:
                return cls._extending(cls.load(root / overlay.extends), overlay, root)
            said = read_course_toml(text)
        except (WrongCourseToml, UnicodeDecodeError) as error:
            raise LessonError(f"{path}: {error}") from None
        lessons: list[Lesson] = []
        for entry in said.lessons:
            lesson = Lesson(
                folder=entry.folder,
                title=entry.title,
                minutes=entry.minutes,
                needs=entry.needs,
                about=entry.about,
                path=root / "lessons" / entry.folder,
                number=int(entry.folder.partition("-")[0]),
                earlier=tuple(lessons),
                draft=entry.draft,
                notebook_name=entry.notebook,
                first_needs=said.needs,
                following=_led_on(entry, said.lessons[len(lessons) + 1 :]),
                core=entry.core,
                core_minutes=entry.core_minutes,
                way=root / said.way if said.way else None,
            )
            lessons.append(lesson)
        return cls(
            title=said.title,
            lessons=tuple(lesson for lesson in lessons if not lesson.draft),
            root=root,
            drafts=tuple(lesson for lesson in lessons if lesson.draft),
            package=said.package,
            picture=_found(said.picture, root),
        )

    @property
    def terms(self) -> ClassTerms:
        """What a class of this course begins with."""
        return ClassTerms({}, {}) if self.overlay is None else self.overlay.terms

    @classmethod
    def _extending(cls, other: Course, overlay: Overlay, root: Path) -> Course:
        theirs = tuple(sorted((*other.lessons, *other.drafts), key=lambda lesson: lesson.number))
        applied = overlay.applied(theirs)
        lessons = [
            replace(lesson, following=_led_on(lesson, applied[at + 1 :]))
            for at, lesson in enumerate(applied)
        ]
        return cls(
            title=overlay.title or other.title,
            lessons=tuple(lesson for lesson in lessons if not lesson.draft),
            root=root,
            drafts=tuple(lesson for lesson in lessons if lesson.draft),
            overlay=overlay,
            package=other.package,
            picture=_found(overlay.picture, root) or other.picture,
            notes=(*other.notes, *overlay.builds_on(theirs)),
        )

    def lesson(self, folder: str) -> Lesson:
        """The lesson, or draft, with that folder name, or whose name begins so (``03``).

        Raises:
            LessonError: there is none; the message lists what there is.
        """
        for lesson in (*self.lessons, *self.drafts):
            if lesson.folder == folder or lesson.folder.startswith(f"{folder}-"):
                return lesson
        there = ", ".join(lesson.folder for lesson in self.lessons)
        raise LessonError(f"no lesson {folder!r} in the course; there are {there}")


def _led_on(
    this: LessonText | Lesson, others: Sequence[LessonText | Lesson]
) -> tuple[str, str] | None:
    """Title of the lesson after another, and its place from that one's folder: the next that is no
    draft, and on the core path the next on that path."""
    finished = [lesson for lesson in others if not lesson.draft]
    on_path = [lesson for lesson in finished if this.core and lesson.core]
    for lesson in on_path or finished:
        name = lesson.notebook_name if isinstance(lesson, Lesson) else lesson.notebook
        number = int(lesson.folder.partition("-")[0])
        return f"{number}. {lesson.title}", f"../{lesson.folder}/{name}.ipynb"
    return None


def _found(picture: PictureText | None, root: Path) -> PictureText | None:
    """A picture with where its file is."""
    return picture and replace(picture, file=str(root / picture.file))


def _clean(path: Path, cell: NotebookNode) -> NotebookNode:
    """A cell with the metadata that its header stands for, and no other."""
    try:
        nbgrader = nbgrader_of(cell.metadata, cell.cell_type)
    except WrongHeader as error:
        first = cell.source.strip().partition("\n")[0]
        raise LessonError(f"{path}: the header of the cell beginning {first!r}: {error}") from None
    metadata = NotebookNode() if nbgrader is None else NotebookNode(nbgrader=nbgrader)
    for word in ("tags", SECONDS, MEANS):
        if word in cell.metadata:
            metadata[word] = cell.metadata[word]
    cell["metadata"] = metadata
    return cell


def _give_ids(folder: str, notebook: NotebookNode) -> None:
    """Cell ids that depend on a cell's own name or text, so that a change moves no other."""
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        key = grade_id(cell) or cell.source
        seen[key] = seen.get(key, 0) + 1
        digest = hashlib.sha256(f"{folder}|{key}|{seen[key]}".encode()).hexdigest()
        cell["id"] = digest[:12]
