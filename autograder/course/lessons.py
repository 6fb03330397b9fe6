"""The course as its authors write it: ``lessons/course.toml`` and one folder a lesson.

A lesson's notebook is a Python file in jupytext's percent format whose cells say in their
headers what they are (:mod:`autograder.course.cell_headers`). Reading one checks everything an
author can get wrong, so that the build, the grader and the tests may rely on it.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder.course.cell_headers import WrongHeader, nbgrader_of, spellings
from autograder.course.course_toml import WrongCourseToml, read_course_toml
from autograder.errors import WrongUse
from autograder.notebooks import (
    KERNEL,
    SETUP,
    exercise_of,
    grade_id,
    is_answer,
    is_test,
    nbgrader_metadata,
    tags,
)
from lesson_kit.course_progress import LESSON

#: Stands in a test cell whose points count only once a test of the exercise passes that has no
#: such line: what holds for a function that does nothing is worth nothing by itself.
SIDE_CONDITION = re.compile(r"^### SIDE CONDITION\b", re.M)

#: What a class's source folder holds for the grader alone: the evidence of known mistakes. nbgrader
#: leaves files of this name out of a release wherever they lie, so no other file may have it.
CATALOGUE_FILE = "catalogue.json"

_REGIONS = {
    "solution": ("### BEGIN SOLUTION", "### END SOLUTION"),
    "hidden tests": ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"),
}


class LessonError(WrongUse):
    """A lesson's source cannot be used; the message names the file and what to do."""


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

    def __getstate__(self) -> dict[str, object]:
        """For another process: a copy, since what is read later may be added meanwhile."""
        return dict(self.__dict__)

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
        _check_regions(self.source_path, text)
        parsed = jupytext.reads(text, fmt="py:percent")
        cells = [_clean(self.source_path, cell) for cell in parsed.cells]
        heading = nbformat.v4.new_markdown_cell(self._heading())
        notebook = nbformat.v4.new_notebook(cells=[heading, *cells])
        notebook.metadata = nbformat.from_dict({**KERNEL, LESSON: self._described()})
        _give_ids(self.folder, notebook)
        _check_cells(self.source_path, text, notebook)
        return notebook

    def _described(self) -> NotebookNode:
        """The lesson in the notebook's metadata, for the table on the start page."""
        needs = ", ".join(f"lesson {int(folder.split('-')[0])}" for folder in self.needs)
        return NotebookNode(
            number=self.number,
            title=self.title,
            about=self.about,
            minutes=self.minutes,
            needs=needs or self.first_needs,
        )

    def _heading(self) -> str:
        return (
            f"# {self.number}. {self.title}\n\n{self.about}\n\n"
            f"*About {self.minutes} minutes. Needs: {self._described().needs}.*"
        )

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
    """All lessons in order."""

    title: str
    lessons: tuple[Lesson, ...]
    root: Path
    drafts: tuple[Lesson, ...] = ()

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
            said = read_course_toml(path.read_text(encoding="utf-8"))
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
            )
            lessons.append(lesson)
        return cls(
            title=said.title,
            lessons=tuple(lesson for lesson in lessons if not lesson.draft),
            root=root,
            drafts=tuple(lesson for lesson in lessons if lesson.draft),
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


def _clean(path: Path, cell: NotebookNode) -> NotebookNode:
    """A cell with the metadata that its header stands for, and no other."""
    try:
        nbgrader = nbgrader_of(cell.metadata, cell.cell_type)
    except WrongHeader as error:
        first = cell.source.strip().partition("\n")[0]
        raise LessonError(f"{path}: the header of the cell beginning {first!r}: {error}") from None
    metadata = NotebookNode() if nbgrader is None else NotebookNode(nbgrader=nbgrader)
    if "tags" in cell.metadata:
        metadata["tags"] = cell.metadata["tags"]
    if cell.cell_type == "code":
        return nbformat.v4.new_code_cell(cell.source, metadata=metadata)
    return nbformat.v4.new_markdown_cell(cell.source, metadata=metadata)


def _give_ids(folder: str, notebook: NotebookNode) -> None:
    """Cell ids that depend on a cell's own name or text, so that a change moves no other."""
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        key = grade_id(cell) or cell.source
        seen[key] = seen.get(key, 0) + 1
        digest = hashlib.sha256(f"{folder}|{key}|{seen[key]}".encode()).hexdigest()
        cell["id"] = digest[:12]


def _check_regions(path: Path, text: str) -> None:
    for what, (begin, end) in _REGIONS.items():
        opened = 0
        for number, line in enumerate(text.splitlines(), start=1):
            stripped = line.strip().removeprefix("# ")
            if line.startswith("# %%") and opened:
                break
            if stripped == begin:
                if opened:
                    raise LessonError(
                        f"{path}:{number}: a second {begin!r} before {end!r}; close the {what} "
                        f"region opened in line {opened} first"
                    )
                opened = number
            elif stripped == end:
                if not opened:
                    raise LessonError(
                        f"{path}:{number}: {end!r} without {begin!r} in this cell; add the opening "
                        "line or remove this one"
                    )
                opened = 0
        if opened:
            raise LessonError(
                f"{path}:{opened}: {begin!r} is not closed in its cell; add a line {end!r}"
            )


def _check_cells(path: Path, text: str, notebook: NotebookNode) -> None:
    lines = text.splitlines()

    def where(needle: str) -> str:
        for number, line in enumerate(lines, start=1):
            if needle and needle in line:
                return f"{path}:{number}"
        return str(path)

    def header_of(name: str) -> str:
        for number, line in enumerate(lines, start=1):
            if line.startswith("# %%") and any(form in line for form in spellings(name)):
                return f"{path}:{number}"
        return str(path)

    names: list[str] = []
    for cell in notebook.cells:
        first = cell.source.strip().splitlines()[0] if cell.source.strip() else ""
        name = grade_id(cell)
        if nbgrader_metadata(cell) and not name:
            raise LessonError(
                f"{where(first)}: the cell beginning {first!r} has nbgrader metadata without a "
                'grade_id; add "grade_id": "<name>" to its # %% line'
            )
        if not name and any(begin in cell.source for begin, _ in _REGIONS.values()):
            raise LessonError(
                f"{where(first)}: the cell beginning {first!r} holds a solution or hidden tests "
                "but no nbgrader grade_id, so it would be released as it is; write what it is on "
                'its # %% line, such as answer="<name>"'
            )
        if name in names and name:
            raise LessonError(
                f"{header_of(name)}: the grade_id {name!r} stands on two cells; rename one"
            )
        names.append(name)

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if not code or SETUP not in tags(code[0]):
        raise LessonError(
            f"{path}: the first code cell must import what the lesson uses and be tagged: "
            f'# %% tags=["{SETUP}"]'
        )
    exercises = [grade_id(cell) for cell in code if is_answer(cell)]
    for cell in code:
        name = grade_id(cell)
        try:
            tree = ast.parse(cell.source)
        except SyntaxError as error:
            first = cell.source.strip().splitlines()[0]
            raise LessonError(f"{where(first)}: not valid Python: {error}") from None
        if is_answer(cell) and name not in _bound_names(tree):
            raise LessonError(
                f"{header_of(name)}: the answer cell {name!r} does not define {name!r}; an answer "
                "cell has the name of what it defines as its grade_id"
            )
        if is_test(cell):
            try:
                exercise_of(name, exercises)
            except LookupError:
                raise LessonError(
                    f"{header_of(name)}: the test cell {name!r} belongs to no answer cell; name "
                    "it test_<exercise> or test_<exercise>_<aspect>"
                ) from None
    for name in exercises:
        if f"test_{name}" not in names:
            raise LessonError(
                f"{header_of(name)}: the exercise {name!r} has no test cell test_{name}; add one "
                "below it"
            )


def _bound_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return names
