"""From lesson sources to what people open: ``build/source``, ``course/``, ``solutions/``.

jupytext reads the sources, nbgrader's ``generate_assignment`` and ``generate_solution``
write the two versions. A build is deterministic but for the outputs of solved notebooks,
and of a solved notebook runs again only what a change of its cells needs.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.converters import BaseConverter, GenerateAssignment, GenerateSolution
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearSolutions, Execute, SaveCells
from traitlets.config import Config

from autograder.build.alembic import put_alembic_on_path
from autograder.build.beside import write_data
from autograder.build.own_work import keep_own_work
from autograder.build.page import as_page
from autograder.build.save_cells import SaveCellsAtOnce
from autograder.build.solved_outputs import WholeRunNeeded, take_outputs, what_stopped
from autograder.build.start_page import write_start_page
from autograder.build.stubs import ClearSolutionsAndAnswers
from autograder.course.lessons import CATALOGUE_FILE, WORDS_FILE, Course, Lesson
from autograder.course.release import record_release
from autograder.course.standalone import write_kit
from autograder.course.translation import words_of
from autograder.diagnose.catalogue import catalogue, lock, look_at, not_locked
from autograder.diagnose.diagnosis import to_json
from autograder.errors import WrongUse
from autograder.files import LEFT_BY_TOOLS
from lesson_kit.course_progress import LESSON

Say = Callable[[str], None]

#: What nbgrader copies into no version of a lesson: what tools leave, and what gives it away.
NEVER_RELEASED = (
    *LEFT_BY_TOOLS,
    "*.pyc",
    "misconceptions.py",
    "alternatives.py",
    CATALOGUE_FILE,
    WORDS_FILE,
)


class BuildError(WrongUse):
    """A lesson could not be built; the message says which, and what stopped it."""


def write_source(lesson: Lesson, folder: Path, *, kit: bool = True) -> None:
    """Write the lesson's source notebook, what lies beside it, and the grader's catalogue.

    Args:
        lesson: whose they are.
        folder: gets them; it is made.
        kit: whether what is released of it is handed out, and has to work alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(as_page(lesson), folder / f"{lesson.notebook_name}.ipynb")
    write_data(lesson, folder)
    if kit:
        write_kit(folder)
    evidence = to_json(catalogue(lesson))
    (folder / CATALOGUE_FILE).write_text(evidence, encoding="utf-8")
    if spoken := words_of(lesson, graded=True):
        (folder / WORDS_FILE).write_text(spoken, encoding="utf-8")


def nbgrader_config(root: Path, db_url: str) -> Config:
    """Configuration shared by every conversion: folders, stub, what is never copied."""
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = db_url
    config.CourseDirectory.ignore = list(NEVER_RELEASED)
    config.Execute.timeout = 300
    # A notebook is checked once, and not after each of a dozen steps.
    config.Exporter.optimistic_validation = True
    return config


def generate_release(config: Config, assignment: str) -> None:
    """Make the student version of one assignment with nbgrader's GenerateAssignment.

    Raises:
        BuildError: nbgrader refused the notebook.
    """
    config = Config(config)
    ours = {ClearSolutions: ClearSolutionsAndAnswers, SaveCells: SaveCellsAtOnce}
    config.GenerateAssignment.preprocessors = [
        ours.get(step, step) for step in GenerateAssignment.preprocessors.default_args[0]
    ]
    _convert(GenerateAssignment, config, assignment)


def _generate_solution(config: Config, assignment: str, execute: bool) -> None:
    config = Config(config)
    if not execute:
        config.GenerateSolution.preprocessors = [
            step for step in GenerateSolution.preprocessors.default_args[0] if step is not Execute
        ]
    _convert(_SolutionAlone, config, assignment)


class _SolutionAlone(GenerateSolution):  # type: ignore[misc]
    """nbgrader's GenerateSolution, which asks no gradebook whether it knows the assignment."""

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Copy what lies beside the notebook."""
        BaseConverter.init_assignment(self, assignment_id, student_id)


def _convert(converter: type, config: Config, assignment: str) -> None:
    config.CourseDirectory.assignment_id = assignment
    put_alembic_on_path()
    log = logging.getLogger(f"autograder.build.build.{assignment}")
    log.propagate = False
    messages: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    log.handlers = [handler]
    coursedir = CourseDirectory(config=config, log=log)
    running = converter(coursedir=coursedir, config=config, log=log)
    running.force = True
    try:
        running.start()
    except Exception as error:
        details = "\n".join(messages)
        raise BuildError(
            f"{assignment}: nbgrader's {converter.__name__} failed: {error}\n{details}"
        ) from error


def build(course: Course, into: Path, say: Say = print, only: str | None = None) -> None:
    """Write build/source, course/ and solutions/ below ``into``.

    Args:
        course: the lessons.
        into: the folder that gets the three; the repository itself, or a scratch folder.
        say: is told what is being done.
        only: one lesson's folder name; all lessons otherwise.

    Raises:
        LessonError: a source cannot be read; nothing is written.
        BuildError: some lessons cannot be built, which are left as they were; the others are built.
    """
    lessons = [course.lesson(only)] if only else list(course.lessons)
    for note in course.notes:
        say(note)
    for lesson in lessons:
        _ = lesson.notebook  # every source is checked before anything is written
    folder = lessons[0].folder if only else None
    kept_in, kept_work = keep_own_work(into / "course", folder, datetime.now())
    if kept_work:
        say(f"course/ was worked in; a copy of that is in {kept_in}: {', '.join(kept_work)}")
    waiting = not_locked(lessons)
    if len(waiting) > 1:
        say(f"known mistakes of {len(waiting)} lessons are looked at, on all cores")
        for looked_at in look_at(waiting):
            say(f"{looked_at.folder}: its known mistakes")
    built: list[str] = []
    refused: list[str] = []
    for lesson in lessons:
        try:
            _build_one(lesson, into, say)
        except BuildError as error:
            refused.append(str(error))
        else:
            built.append(lesson.folder)
    if built:
        if only is None:
            own = {course.package.name} if course.package else set()
            _remove_strangers(into, {lesson.folder for lesson in lessons} | own)
        write_start_page(into / "course", course)
        if only is None and not refused:
            record_release(into / "course", course.package)
        else:
            for name in built:
                record_release(into / "course", course.package, name)
    if refused:
        raise BuildError("\n".join(refused))


def _build_one(lesson: Lesson, into: Path, say: Say) -> None:
    """Make all of a lesson elsewhere, and put it into its places when it is whole."""
    name, notebook = lesson.folder, f"{lesson.notebook_name}.ipynb"
    solved = into / "solutions" / name
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        config = nbgrader_config(scratch, "")
        # Nobody's points: nbgrader would make a gradebook, which takes seconds.
        config.GenerateAssignment.no_database = True
        config.SaveCells.enabled = False
        config.CourseDirectory.source_directory = "source"
        config.CourseDirectory.release_directory = "release"
        config.CourseDirectory.solution_directory = "solutions"
        write_source(lesson, scratch / "source" / name, kit=False)
        say(f"{name}: student version")
        generate_release(config, name)
        _generate_solution(config, name, execute=False)
        plain = scratch / "solutions" / name
        new = nbformat.read(plain / notebook, as_version=4)
        was = into
        if not (solved / notebook).exists() and lesson.root != into:
            was = lesson.root  # the course that this one extends has run it
        kept = _that_ran_through(was / "solutions" / name / notebook)
        up_to_date = _same_cells(new, kept)
        if up_to_date:
            say(f"{name}: solved version is up to date")
        else:
            new = _ran(lesson, config, new, kept, plain=plain, say=say)
        if not up_to_date or was != into:
            _tidy(new)
            nbformat.write(new, plain / notebook)
            _replace(solved, plain)
        _replace(into / "build" / "source" / name, scratch / "source" / name)
        _replace(into / "course" / name, scratch / "release" / name)
    _lean_on_course(solved)
    if into.resolve() == lesson.root.resolve():
        lock(lesson)


def _that_ran_through(path: Path) -> NotebookNode | None:
    """A solved notebook of an earlier build; None where there is none, or one that stopped."""
    if not path.exists():
        return None
    kept = nbformat.read(path, as_version=4)
    return None if what_stopped(kept) else kept


def _ran(
    lesson: Lesson,
    config: Config,
    new: NotebookNode,
    kept: NotebookNode | None,
    *,
    plain: Path,
    say: Say,
) -> NotebookNode:
    """The solved notebook with its outputs, of which no more is run than what needs it.

    Args:
        lesson: whose notebook it is.
        config: for nbgrader.
        new: the notebook without outputs.
        kept: the notebook as it was run last; None if it never ran through.
        plain: the folder of ``new``, with what lies beside it.
        say: is told what is being done.

    Raises:
        BuildError: a cell raised an error.
    """
    try:
        if kept is None:
            raise WholeRunNeeded("it has not run through before")
        ran = take_outputs(new, kept, plain)
        say(f"{lesson.folder}: solved version; of it ran {', '.join(ran) or 'nothing'}")
    except WholeRunNeeded as why:
        say(f"{lesson.folder}: solved version, running it (a minute): {why}")
        _generate_solution(config, lesson.folder, execute=True)
        new = nbformat.read(plain / f"{lesson.notebook_name}.ipynb", as_version=4)
        _refuse_errors(lesson, new)
    return new


def _refuse_errors(lesson: Lesson, solved: NotebookNode) -> None:
    """Raise a BuildError where a cell of a solved notebook did."""
    stopped = what_stopped(solved)
    if stopped:
        said = "\n".join(f"  {one}" for one in stopped)
        raise BuildError(
            f"{lesson.folder}: the solved notebook does not run through; nothing of it was "
            f"written. Mend lessons/{lesson.folder}/{lesson.notebook_name}.py and build it "
            f"again.\n{said}"
        )


def _replace(place: Path, made: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(made, place)


def _lean_on_course(solved: Path) -> None:
    """A solved lesson has its notebook alone, and finds in ``course/`` what lies beside that."""
    for path in solved.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.suffix != ".ipynb":
            path.unlink()


def without_outputs(notebook: NotebookNode) -> NotebookNode:
    """A copy of a notebook without what running it left behind."""
    copy = nbformat.from_dict(notebook)
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
        cell.metadata.pop("execution", None)
    return copy


def _same_cells(first: NotebookNode, other: NotebookNode | None) -> bool:
    if other is None:
        return False
    pair = [without_outputs(notebook) for notebook in (first, other)]
    one_says, other_says = (notebook.metadata.get(LESSON) for notebook in pair)
    return bool(pair[0].cells == pair[1].cells and one_says == other_says)


def _tidy(notebook: NotebookNode) -> None:
    """Drop the times of execution: they would differ in every build."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata["language_info"] = {"name": "python"}


def _remove_strangers(into: Path, folders: set[str]) -> None:
    for top in ("build/source", "course", "solutions"):
        for path in (into / top).iterdir():
            if path.is_dir() and path.name not in folders:
                shutil.rmtree(path)
