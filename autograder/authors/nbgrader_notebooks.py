"""nbgrader's source notebooks as lessons of a course, whose tests run apart from students' code.

Nothing is known of mistakes, and what is asked stays as it is. A test takes along the given cells
above it that make what it reads. One that the notebook's own solution does not pass so (it takes a
function away, or reads what an answer makes beside its function) is left out, and said.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten

import nbformat
from nbformat import NotebookNode

from autograder.authors.new_course import ENTRY
from autograder.box.decoding import Foreign
from autograder.course.course_toml import notebook_of
from autograder.course.given_names import given_by, taken_from_elsewhere
from autograder.course.lessons import Course, Lesson
from autograder.course.source_rules import LessonError
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED
from autograder.diagnose.plain_run import PlainRun, told
from autograder.errors import WrongUse
from autograder.files import holds_something, write_whole
from autograder.notebooks import grade_id, is_answer, is_test, is_written, nbgrader_metadata

#: What only IPython understands. As a comment jupytext would bring it back.
_MAGIC = re.compile(r"^[ \t]*[%!?].*\n?|^[\w.]+\?+[ \t]*\n?", re.M)

#: Characters of what is said of a test that is left out.
MAX_TOLD = 200

#: What stands for the name of a test of an answer that has none.
_UNTESTED = "(none)"


class CannotImport(WrongUse):
    """There is nothing to import, or no place for it; the message says what to do."""


class _Unfit(ValueError):
    """A notebook cannot be graded so; the message says why."""


@dataclass
class _Cell:
    """A cell as it is written.

    Attributes:
        header: behind ``# %%``; of a test it is made of what is below.
        text: of the cell.
        markdown: whether it is none of code.
        exercise: that it answers or tests.
        test: nbgrader's name of a test, or "".
        points: of a test.
    """

    header: str
    text: str
    markdown: bool = False
    exercise: str = ""
    test: str = ""
    points: float = 0.0


@dataclass
class Imported:
    """What became of the notebooks: lessons by folder, and what is to be known of each."""

    lessons: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def import_notebooks(source: Path, root: Path) -> Imported:
    """Make a course of nbgrader's source notebooks, a lesson of each that has tests.

    Args:
        source: a notebook with its solutions and hidden tests, or a folder with such.
        root: the folder to make, or an empty one.

    Raises:
        CannotImport: there is no notebook to import, or ``root`` holds something; nothing is
            written.
    """
    if holds_something(root):
        raise CannotImport(f"{root} exists and is not empty; choose a new folder for the course")
    paths = [source] if source.is_file() else sorted(source.rglob("*.ipynb"))
    paths = [path for path in paths if ".ipynb_checkpoints" not in path.parts]
    if not paths:
        raise CannotImport(f"{source} holds no notebook; name nbgrader's source folder")
    made = Imported()
    entries = [f'title = "{_word(source.resolve().stem)}"\n']
    for path in paths:
        called = path.relative_to(source) if source.is_dir() else path.name
        name = f"{len(made.lessons) + 1:02d}-{_word(path.stem).replace('_', '-')}"
        entry = ENTRY.format(folder=name, title=_word(path.stem), minutes=60)
        write_whole(root / "lessons" / "course.toml", "".join([*entries, entry]))
        try:
            for text in _imported(path, root, name):
                made.remarks.append(f"{called}: {text}")
        except (_Unfit, LessonError) as error:
            shutil.rmtree(root / "lessons" / name, ignore_errors=True)
            made.remarks.append(f"{called}: left out: {error}")
        else:
            made.lessons.append(name)
            entries.append(entry)
    if not made.lessons:
        shutil.rmtree(root)
        raise CannotImport("no notebook could be imported; " + "; ".join(made.remarks))
    write_whole(root / "lessons" / "course.toml", "".join(entries))
    return made


def _imported(path: Path, root: Path, name: str) -> Iterator[str]:
    """Write a notebook as the lesson of that name; what of it had to be left out."""
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:
        raise _Unfit(f"it cannot be read: {error}") from None
    cells, remarks = _converted(notebook)
    yield from remarks
    if not any(cell.test for cell in cells):
        raise _Unfit("it has no tests, so that a person grades it")
    for cell, why in _with_what_they_read(cells):
        cells.remove(cell)
        yield _left_out(cell, why)
    folder = root / "lessons" / name
    _test_the_untested(cells)
    _write(folder, cells)
    lesson = Course.load(root).lesson(name)
    with PlainRun(lesson) as run:
        stopped = run.stopped
        solved = run.errors({}, DIAGNOSIS_SEED, as_graded=True)
        untouched = run.errors(_stubs(lesson), DIAGNOSIS_SEED, as_graded=True)
    for cell in [cell for cell in cells if _called(cell) in stopped and not cell.exercise]:
        cells.remove(cell)
        yield f"{_called(cell)} is left out: it stops with {stopped[_called(cell)]}"
    for test, cell in zip(solved, [cell for cell in cells if cell.test]):
        failed = solved[test]
        if cell.test == _UNTESTED:
            continue
        if failed is not None:
            cells.remove(cell)
            yield _left_out(cell, f"the solution does not pass it: {_in_short(failed)}")
        elif untouched[test] is None:
            cells.remove(cell)
            yield _left_out(cell, "it passes where nothing was written")
    _test_the_untested(cells)
    _write(folder, cells)


def _test_the_untested(cells: list[_Cell]) -> None:
    """Give each answer without a test one that is worth nothing: a lesson's answers have tests.

    Raises:
        _Unfit: there is no other test.
    """
    tested = {cell.exercise for cell in cells if cell.test}
    if not any(cell.test != _UNTESTED for cell in cells if cell.test):
        raise _Unfit("no test could be taken over")
    for cell in [cell for cell in cells if cell.exercise not in {"", *tested}]:
        text = f"# {cell.exercise} has no test of its own.\nassert {cell.exercise} is not None"
        test = _Cell("", text, exercise=cell.exercise, test=_UNTESTED)
        cells.insert(cells.index(cell) + 1, test)


def _called(cell: _Cell) -> str:
    """A cell that is no answer and no test, as :class:`PlainRun` calls it."""
    return f"cell {cell.text.partition(chr(10))[0]}"


def _stubs(lesson: Lesson) -> dict[str, str]:
    """The answers of a notebook in which nothing was written."""
    stub = "def {0}(*args, **kwargs):\n    raise NotImplementedError()\n"
    return {name: stub.format(name) for name in lesson.exercises}


def _left_out(cell: _Cell, why: str) -> str:
    return f"the test {cell.test} ({cell.points:g} points) is left out: {why}"


def _in_short(error: BaseException) -> str:
    """What ended a test, in one line."""
    if isinstance(error, (AttributeError, TypeError)) and f"{Foreign.__name__!r}" in str(error):
        return "what an answer gives is no plain data, and stays with the student's code"
    return shorten(told(error), MAX_TOLD, placeholder=" …")


def _converted(notebook: NotebookNode) -> tuple[list[_Cell], list[str]]:
    """The cells of a notebook as they are written, and what could not be taken over."""
    cells: list[_Cell] = []
    remarks: list[str] = []
    imports: dict[str, str] = {}
    for at, cell in enumerate(notebook.cells):
        name, ours = grade_id(cell), nbgrader_metadata(cell)
        text, markdown = cell.source, cell.cell_type != "code"
        text = text if markdown else _MAGIC.sub("", text)
        if is_answer(cell):
            tests = "\n".join(cell.source for cell in notebook.cells[at:] if is_test(cell))
            exercise = _asked_for(text, name, tests)
            if exercise and exercise not in _answers(cells):
                cells.append(_Cell(f'answer="{exercise}"', text, exercise=exercise))
            else:
                remarks.append(f"the answer {name} is left out: no test below calls what it makes")
        elif not markdown and not _is_python(text):
            remarks.append(f"the cell {text.strip().splitlines()[0]} is left out: no Python")
        elif is_test(cell) and not markdown:
            used = taken_from_elsewhere(text)
            asked = [given for given in _answers(cells) if given in used] or _answers(cells)
            if not asked:
                remarks.append(f"the test {name} is left out: it stands above all answers")
                continue
            points = float(ours.get("points", 0))
            cells.append(_Cell("", text, exercise=asked[-1], test=name, points=points))
        elif is_written(cell) and markdown:
            header = f'written="{_word(name)}" points={ours.get("points", 0)}'
            cells.append(_Cell(header, _as_solution(text), markdown=True))
        elif is_written(cell) or ours.get("task"):
            remarks.append(f"{name} is code or a task that a person grades; it is left out")
        elif text.strip():
            cells.append(_Cell("", text, markdown=markdown))
        if not markdown and _is_python(text):
            imports |= _imports(text)
    setup = "\n".join(dict.fromkeys(imports.values())) or "import math"
    return [_Cell('tags=["setup"]', setup), *cells], remarks


def _answers(cells: list[_Cell]) -> list[str]:
    return [cell.exercise for cell in cells if cell.exercise and not cell.test]


def _asked_for(text: str, name: str, tests: str) -> str:
    """The function, class or value of an answer that the tests below it ask for first, or its last
    function; "" where there is none."""
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise _Unfit(f"the answer {name} is not valid Python: {error}") from None
    defined = [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    bound = [target.id for target in targets if isinstance(target, ast.Name)]
    asked = [given for given in (*defined, *bound) if re.search(rf"\b{given}\b", tests)]
    return (asked or defined[-1:] or [""])[0]


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _imports(text: str) -> dict[str, str]:
    """The imports of a cell, by name; without those of what is not installed here."""
    imports: dict[str, str] = {}
    for name, line in given_by(text).items():
        if line.startswith(("import ", "from ")):
            library = line.split()[1].partition(".")[0]
            imports |= {name: line} if library and find_spec(library) else {}
    return imports


def _as_solution(text: str) -> str:
    """A model answer between the marks of a solution."""
    marked = "### BEGIN SOLUTION" in text
    return text if marked else f"### BEGIN SOLUTION\n{text}\n### END SOLUTION"


def _with_what_they_read(cells: list[_Cell]) -> list[tuple[_Cell, str]]:
    """Give each test the given cells above it that make what it reads.

    Returns:
        the tests for which there is no such cell, or which change what all tests share, and why.
    """
    known = {*given_by(cells[0].text), *_answers(cells)}
    texts = [cell.text for cell in cells]
    unfit: list[tuple[_Cell, str]] = []
    for at, cell in enumerate(cells):
        if not cell.test:
            continue
        wanted, needed = set(taken_from_elsewhere(cell.text) - known), list[str]()
        made = set[str]()
        for above, text in zip(cells[at - 1 : 0 : -1], texts[at - 1 : 0 : -1]):
            given = above.test or not above.exercise
            if given and not above.markdown and wanted & set(given_by(text)):
                needed.insert(0, text)
                made |= set(given_by(text))
                wanted |= taken_from_elsewhere(text) - known
        missing = ", ".join(sorted(wanted - made))
        taken = _taken_away("\n".join([*needed, cell.text]), known)
        if missing:
            unfit.append((cell, f"it reads {missing}, which no given cell above it makes"))
        elif taken:
            unfit.append((cell, f"it changes {taken}, which all tests share"))
        elif needed:
            cell.text = "\n\n".join(["# What the cells above make, once more.", *needed, cell.text])
    return unfit


def _taken_away(text: str, imported: set[str]) -> str:
    """What of a library some code replaces, such as ``np.linalg.solve``, or ""."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            whole = ast.unparse(node)
            if whole.partition(".")[0] in imported:
                return whole
    return ""


def _write(folder: Path, cells: list[_Cell]) -> None:
    """Write a lesson's three files."""
    first: set[str] = set()
    parts: list[str] = []
    for cell in cells:
        header = cell.header
        if cell.test:
            aspect = "" if cell.exercise not in first else f"_{_word(cell.test)}"
            first.add(cell.exercise)
            header = f'check="{cell.exercise}{aspect}" points={cell.points:g}'
        kind = "# %% [markdown] " if cell.markdown else "# %% "
        text = re.sub(r"^", "# ", cell.text, flags=re.M) if cell.markdown else cell.text
        parts.append(f"{kind}{header}".rstrip() + f"\n{text}\n")
    write_whole(folder / f"{notebook_of(folder.name)}.py", "\n".join(parts))
    for empty in ("misconceptions.py", "alternatives.py"):
        write_whole(folder / empty, "")


def _word(text: str) -> str:
    """A text as a name: what is neither letter nor digit is an underscore."""
    word = re.sub(r"\W+", "_", text).strip("_").lower()
    return word if word[:1].isalpha() else f"n{word}"
