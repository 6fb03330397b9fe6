"""nbgrader's own commands and the Formgrader's buttons, answered by this engine.

A class's ``nbgrader_config.py`` names what is here. ``nbgrader autograde`` then opens no
submission and starts no kernel: the box and the tester of ``autograder grade`` come to the
verdict. ``nbgrader generate_feedback`` writes our pages, which show no hidden test.
"""

from __future__ import annotations

import glob
import os
import stat
import traceback
import weakref
from concurrent.futures import BrokenExecutor, Executor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import Exporter, NotebookExporter
from nbformat import NotebookNode
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum, default

from autograder.box.sandbox import BUBBLEWRAP, NONE, NoSandbox, choose
from autograder.build.alembic import put_alembic_on_path
from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import open_gradebook
from autograder.classroom.grades_file import GradedSubmission, write_grades
from autograder.classroom.hand_ins import task_in_class
from autograder.course.bundle import Bundle
from autograder.course.libraries import ask_for_libraries
from autograder.errors import WrongUse
from autograder.grade.executors import grade_task, local
from autograder.grade.result import Result
from autograder.grade.result_cache import ResultCache
from autograder.grade.task import Task
from autograder.marking.feedback import settled_page
from autograder.marking.grade_class import publish


class EngineExporter(NotebookExporter):
    """What nbgrader's Autograde reads submissions with: it opens none of them.

    nbgrader converts a submission twice, "sanitizing" and "autograding". The first time it gets
    the autograded notebook of before, since that says for which answers a person gave points and
    nbgrader has just removed it; the second time :class:`AskEngine` puts the verdict in its place.

    It is made after nbgrader has looked for submissions and before it removes or copies
    anything, so whatever could go wrong for a whole class is found here.
    """

    sandbox = Enum(
        ["auto", BUBBLEWRAP, NONE],
        default_value="auto",
        help="How student code is confined; none only for code you trust.",
    ).tag(config=True)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)  # type: ignore[no-untyped-call]
        put_alembic_on_path()
        converter: Any = self.parent
        self._worker: Executor | None = None
        self._bundles: dict[str, Bundle] = {}
        self._former: dict[str, NotebookNode] = {}
        by_folder: dict[str, list[str]] = {}
        try:
            self.folder = ClassFolder.open(Path(converter.coursedir.root))
            self.backend = choose(self.sandbox)
            for path in _handed_in(converter):
                bundle = self._bundle(path.name)
                ask_for_libraries(path.name, bundle.setup)
                self.folder.limits(path.name)
                notebook = str(path / f"{bundle.notebook_name}.ipynb")
                by_folder[str(path)] = [notebook]
                self._former[notebook] = _former(self._autograded(path.parent.name, bundle))
            _ = self.folder.seed
        except NoSandbox as error:
            _refuse(converter, f'{error} Here: c.EngineExporter.sandbox = "none"')
        except WrongUse as error:
            _refuse(converter, str(error))
        for path in [Path(name) for name in by_folder]:
            why = _not_for_nbgrader(path, self._bundle(path.name), converter.coursedir)
            if why:
                del by_folder[str(path)]
                self._grade_alone(path, why, converter.coursedir.db_url)
        # Also submissions without a notebook, or with one of another name, get a verdict.
        converter.assignments = by_folder

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[Any, dict[str, Any]]:
        """The notebook to go on with; never what a student handed in."""
        if filename in self._former:
            former: tuple[Any, dict[str, Any]] = self.from_notebook_node(  # type: ignore[no-untyped-call]
                self._former[filename], resources, **options
            )
            return former
        return super().from_filename(filename, resources, **options)

    def graded(self, student: str, assignment: str, db_url: str) -> NotebookNode:
        """Grade one submission and publish the verdict.

        Returns:
            The autograded notebook.
        """
        bundle = self._bundle(assignment)
        task = task_in_class(self.folder, student, bundle, self.backend)
        result = self._ask(task)
        ResultCache(self.folder.root / ".results").keep(task.key, result)
        submission = GradedSubmission(student, result)
        with open_gradebook(db_url) as gradebook:
            publish(self.folder, submission, bundle, gradebook)
        write_grades(self.folder.root, self.folder.title, self.backend, [submission])
        says = result.reason or f"{result.score:g} of {result.max_score:g} points"
        self.log.info("%s, %s: %s; %s", student, assignment, result.status, says)
        return nbformat.read(self._autograded(student, bundle), as_version=4)

    def _ask(self, task: Task) -> Result:
        if self._worker is None:
            # It stays warm for the next submission and ends with this exporter; the
            # Formgrader's server makes a new one for each press of the button.
            ending = ExitStack()
            self._worker = ending.enter_context(local(1))
            weakref.finalize(self, ending.close)
        try:
            return self._worker.submit(grade_task, task).result()
        except BrokenExecutor:
            self._worker = None
            raise

    def _grade_alone(self, path: Path, why: str, db_url: str) -> None:
        """For a folder that nbgrader must not copy, or could not."""
        student, assignment = path.parent.name, path.name
        self.log.warning("%s: %s; only its notebook is read", path, why)
        try:
            self.graded(student, assignment, db_url)
        except Exception:  # of this submission only: the class goes on
            self.log.error("%s was not judged: %s", path, traceback.format_exc())

    def _bundle(self, assignment: str) -> Bundle:
        if assignment not in self._bundles:
            self._bundles[assignment] = self.folder.bundle(assignment)
        return self._bundles[assignment]

    def _autograded(self, student: str, bundle: Bundle) -> Path:
        folder = self.folder.root / "autograded" / student / bundle.assignment
        return folder / f"{bundle.notebook_name}.ipynb"


class AskEngine(NbGraderPreprocessor):  # type: ignore[misc]
    """The step of nbgrader's Autograde that takes the place of running the notebook."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """The autograded notebook, whatever came before; the verdict is then published."""
        exporter = self.parent
        if not isinstance(exporter, EngineExporter):
            raise NbGraderException(
                "AskEngine works together with c.Autograde.exporter_class = "
                '"autograder.marking.nbgrader_engine.EngineExporter"; set it in nbgrader_config.py'
            )
        names = resources["nbgrader"]
        return exporter.graded(names["student"], names["assignment"], names["db_url"]), resources


class FeedbackExporter(Exporter):
    """What nbgrader's GenerateFeedback makes pages with: the pages of ``autograder grade``.

    nbgrader's own page is the autograded notebook, hidden tests included.
    """

    @default("file_extension")
    def _html(self) -> str:
        return ".html"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)  # type: ignore[no-untyped-call]
        put_alembic_on_path()
        converter: Any = self.parent
        try:
            self.folder = ClassFolder.open(Path(converter.coursedir.root))
        except WrongUse as error:
            _refuse(converter, str(error))
        # With --force nbgrader removes the pages before it asks for new ones.
        self._former: dict[tuple[str, str], str] = {}
        for path in [Path(name) for name in converter.assignments]:
            names = path.parent.name, path.name
            for page in self.folder.root.joinpath("feedback", *names).glob("*.html"):
                self._former[names] = page.read_text(encoding="utf-8")

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[Any, dict[str, Any]]:
        """The page of one submission, with the points that a person gave since.

        Raises:
            NbGraderException: it was not graded by this engine.
        """
        resources = dict(resources or {}, output_extension=".html")
        names = resources["nbgrader"]
        return self._page(names["student"], names["assignment"], names["db_url"]), resources

    def _page(self, student: str, assignment: str, db_url: str) -> str:
        bundle = self.folder.bundle(assignment)
        task = task_in_class(self.folder, student, bundle, NONE)
        result = ResultCache(self.folder.root / ".results").find(task.key)
        if result is None:
            again = f"grade it first: autograder grade . --assignment {assignment}"
            if (student, assignment) not in self._former:
                raise NbGraderException(f"{student}'s {assignment} has no verdict; {again}")
            self.log.warning(
                "%s's %s changed since it was graded; the page stays as it was; %s",
                student,
                assignment,
                f"{again} --student {student}",
            )
            return self._former[student, assignment]
        with open_gradebook(db_url) as gradebook:
            return settled_page(GradedSubmission(student, result), bundle, gradebook, self.folder)


def _refuse(converter: Any, message: str) -> None:
    converter.log.error(message)  # nbgrader's command ends without printing the exception
    raise NbGraderException(message)


def _handed_in(converter: Any) -> list[Path]:
    """The folders that nbgrader was asked for, also those in which it saw no notebook."""
    coursedir = converter.coursedir
    pattern = coursedir.format_path(
        coursedir.submitted_directory, coursedir.student_id, coursedir.assignment_id
    )
    return sorted(Path(name) for name in glob.glob(pattern) if os.path.isdir(name))


def _former(path: Path) -> NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except Exception:  # not there, or damaged: then nothing is known of before
        return nbformat.v4.new_notebook()


def _not_for_nbgrader(folder: Path, bundle: Bundle, coursedir: Any) -> str:
    """Why nbgrader must not copy the files of a submission, or could not; empty if it may.

    It follows links, also one to a source notebook, and stops at the first file that it cannot
    copy, without a verdict.
    """
    if folder.is_symlink():
        return "the folder is a link"
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(top, name)
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                return f"{name!r} in it is a link, a pipe or a device"
            if not os.access(path, os.R_OK):
                return f"{name!r} in it cannot be read"
    source = Path(coursedir.format_path(coursedir.source_directory, ".", bundle.assignment))
    for ours in source.rglob("*"):
        theirs = folder / ours.relative_to(source)
        if theirs.exists() and theirs.is_dir() != ours.is_dir():
            kind = "file" if ours.is_file() else "folder"
            return f"{theirs.name!r} in it should be a {kind} and is none"
    try:
        coursedir.get_existing_timestamp(str(folder))
    except Exception:  # nbgrader lets several kinds through
        return "its timestamp.txt cannot be read"
    return ""
