"""What grading one lesson needs: its tests, points and order, from the source notebook.

Points, tests and their order never come from a submission.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.choices_alone import ANSWERS, KNOWN_MISTAKES, choices_alone
from autograder.course.former import Former
from autograder.course.lessons import (
    CATALOGUE_FILE,
    WORDS_FILE,
    builds_on,
    is_side_condition,
)
from autograder.errors import WrongUse
from autograder.notebooks import (
    DEMONSTRATION,
    HIDDEN,
    ONWARD,
    SETUP,
    TO_START,
    exercise_of,
    grade_id,
    is_answer,
    is_test,
    is_written,
    nbgrader_metadata,
    tags,
)
from lesson_kit import notebook_reading as reading
from lesson_kit.earlier import EARLIER
from lesson_kit.setting import DATA_FILE
from lesson_kit.token_way import WAY
from lesson_kit.words import speaking, tr

#: Files of a source folder that no box has as they are.
NOT_BESIDE = (CATALOGUE_FILE, DATA_FILE, WORDS_FILE)


class BundleError(WrongUse):
    """An assignment's source cannot be graded from; the message says what to do."""


@dataclass(frozen=True)
class TestCell:
    """One graded test cell, as its author wrote it."""

    __test__ = False  # not for pytest

    grade_id: str
    exercise: str
    points: float
    source: str

    @property
    def hidden(self) -> bool:
        """Whether students never see what it checks."""
        return "BEGIN HIDDEN TESTS" in self.source

    @property
    def side_condition(self) -> bool:
        """Whether its points count only once another test of the exercise passes."""
        return is_side_condition(self.source)

    @property
    def released(self) -> str:
        """What of it stands in the student's notebook."""
        return HIDDEN.sub("", self.source)

    @property
    def words(self) -> str:
        """Its leading comment: what it checks, in words fit for everybody."""
        lines = []
        for line in self.released.strip().splitlines():
            if not line.startswith("#"):
                break
            lines.append(line.lstrip("# ").strip())
        return " ".join(lines)


@dataclass(frozen=True)
class Written:
    """A question that a person grades."""

    grade_id: str
    points: float
    source: str


@dataclass(frozen=True)
class Bundle:
    """Everything that grading submissions of one assignment needs."""

    assignment: str
    notebook_name: str
    notebook: NotebookNode
    setup: str
    tests: tuple[TestCell, ...]
    written: tuple[Written, ...]
    exercises: dict[str, str]
    demonstrations: frozenset[str]
    #: What lies beside the notebook in a box, from the source: never a submission's version. Of
    #: the short answers it is the choices alone: a box could try them all.
    companions: dict[str, bytes]
    #: Evidence of known mistakes, see :mod:`autograder.diagnose.catalogue`; never in a box.
    catalogue: bytes = b"[]"
    #: The fingerprints of the short answers, as JSON; never in a box.
    answers: str = "{}"
    #: What this class handed out before the lesson was mended.
    earlier: tuple[Former, ...] = ()
    #: What students are told is in this language, see :func:`lesson_kit.words.speaking`; never in
    #: a box, which has the words of the notebook.
    words: str = ""

    @classmethod
    def load(cls, folder: Path) -> Bundle:
        """Read ``source/<assignment>/`` of a class.

        Raises:
            BundleError: no notebook there, or more than one, or one without tests; or what lies
                beside it is damaged.
        """
        notebooks = sorted(folder.glob("*.ipynb"))
        if len(notebooks) != 1:
            raise BundleError(
                f"{folder} should hold one source notebook and holds {len(notebooks)}; make the "
                "class again with `autograder new-class`, or put the lesson's source back"
            )
        try:
            notebook = nbformat.read(notebooks[0], as_version=4)
        except Exception as error:
            raise BundleError(
                f"{notebooks[0]} cannot be read: {error}; put the source notebook back"
            ) from None
        exercises = {grade_id(c): c.source for c in notebook.cells if is_answer(c)}
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        companions = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and _travels(path.relative_to(folder))
        }
        answers, companions[DATA_FILE] = _data(folder)
        bundle = cls(
            assignment=folder.name,
            notebook_name=notebooks[0].stem,
            notebook=notebook,
            setup="\n".join(cell.source for cell in code if SETUP in tags(cell)),
            tests=_by_exercise(
                TestCell(
                    grade_id(cell),
                    exercise_of(grade_id(cell), list(exercises)),
                    float(nbgrader_metadata(cell)["points"]),
                    cell.source,
                )
                for cell in code
                if is_test(cell)
            ),
            written=tuple(
                Written(grade_id(cell), float(nbgrader_metadata(cell)["points"]), cell.source)
                for cell in notebook.cells
                if is_written(cell)
            ),
            exercises=exercises,
            demonstrations=frozenset(c.source.strip() for c in code if DEMONSTRATION in tags(c)),
            companions=companions,
            answers=answers,
            catalogue=_read(folder / CATALOGUE_FILE),
            words=spoken_in(folder),
        )
        if not bundle.tests:
            raise BundleError(f"{notebooks[0]} holds no test cells, so there is nothing to grade")
        return bundle

    @property
    def title(self) -> str:
        """The lesson's heading."""
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown" and cell.source.startswith("# "):
                return str(cell.source.splitlines()[0].removeprefix("# "))
        return self.assignment

    @property
    def max_score(self) -> float:
        """Points that the machine gives."""
        return sum(test.points for test in self.tests)

    @property
    def out_of(self) -> float:
        """All points: those that the machine gives and those that only a person gives."""
        return self.max_score + sum(cell.points for cell in self.written)

    @property
    def packed(self) -> str:
        """Parts of earlier lessons, see :func:`lesson_kit.earlier.as_module`."""
        return str(json.loads(self.companions[DATA_FILE]).get(EARLIER, ""))

    @cached_property
    def given(self) -> dict[str, str]:
        """The names of test cells, by the digests of what may stand in them."""
        names: dict[str, str] = {}
        for test in self.tests:
            texts = {test.source, test.released}
            texts.update(*(former.handed_out(test.grade_id) for former in self.earlier))
            names |= {reading.digest(text, code=True): test.grade_id for text in texts}
        return names

    @cached_property
    def never_run(self) -> frozenset[str]:
        """Digests of the code cells that a submission may hold and that grading does not run."""
        known = {text for former in self.earlier for text in former.known} | self.demonstrations
        return frozenset(self.given) | {reading.digest(text, code=True) for text in known}

    @cached_property
    def handed_out(self) -> frozenset[str]:
        """Digests of all cells that were handed out and that students do not fill."""
        cells = [(cell.source, cell.cell_type == "code") for cell in self.notebook.cells]
        cells += [(text, False) for former in self.earlier for text in former.texts]
        with speaking(self.words):
            onward, to_start = tr(ONWARD), tr(TO_START)
        cells += [(text + to_start, False) for text, _ in cells if text.startswith(onward)]
        return self.never_run | {reading.digest(text, code) for text, code in cells}

    @cached_property
    def digest(self) -> str:
        """Changes with anything that can change a verdict."""
        parts = [self.assignment.encode(), nbformat.writes(self.notebook).encode(), self.catalogue]
        parts += [self.answers.encode(), *([self.words.encode()] if self.words else [])]
        for former in self.earlier:
            parts += [text.encode() for pair in sorted(former.tests.items()) for text in pair]
            parts += sorted(text.encode() for text in former.demonstrations | former.texts)
        parts += [
            part for pair in sorted(self.companions.items()) for part in (pair[0].encode(), pair[1])
        ]
        whole = hashlib.sha256()
        for part in parts:
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.hexdigest()

    def builds_on(self, exercise: str) -> set[str]:
        """The exercises that the course's own solution of ``exercise`` uses."""
        return builds_on(self.exercises, exercise)


def _by_exercise(tests: Iterable[TestCell]) -> tuple[TestCell, ...]:
    """On the page, what runs only when graded stands at the end; here, with its exercise."""
    listed = list(tests)
    exercises = list(dict.fromkeys(test.exercise for test in listed))
    return tuple(sorted(listed, key=lambda test: exercises.index(test.exercise)))


def spoken_in(folder: Path) -> str:
    """The language of an assignment's source folder, for :func:`lesson_kit.words.speaking`."""
    path = folder / WORDS_FILE
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _read(path: Path) -> bytes:
    """A catalogue; a class made before there was one has none, and no diagnoses."""
    return path.read_bytes() if path.exists() else b"[]"


def _data(folder: Path) -> tuple[str, bytes]:
    """The short answers of a lesson, as JSON, and its data file as a box may have it: of the
    answers the choices alone, no known mistakes, which the grader looks for, and no picture."""
    path = folder / DATA_FILE
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else _of_a_former_class(folder)
        alone = choices_alone(text)
        for name in (KNOWN_MISTAKES, WAY):
            alone.pop(name, None)
        return json.dumps(json.loads(text)[ANSWERS]), json.dumps(alone).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BundleError(
            f"{path} is damaged ({type(error).__name__}: {error}), so that no short answer could "
            "be judged; put back the file that `autograder new-class` wrote, or make the class "
            "again"
        ) from None


def _of_a_former_class(folder: Path) -> str:
    """The same of a class that was made when the data were files of their own."""
    answers, earlier = folder / "lesson" / "answers.json", folder / "lesson" / "earlier.py"
    data: dict[str, Any] = {ANSWERS: {}}
    if answers.exists():
        data[ANSWERS] = json.loads(answers.read_text(encoding="utf-8"))
    if earlier.exists():
        packed = earlier.read_text(encoding="utf-8").split('"""')[-2]
        data[EARLIER] = "".join(packed.split())
    return json.dumps(data)


def _travels(path: Path) -> bool:
    """Whether a file of a source folder goes into the box beside the notebook as it is. The modules
    that cells import are the grader's own there, and so are the lesson's data."""
    kit = path.parts[0] in ("lesson_kit", "lesson")
    return path.suffix != ".ipynb" and not kit and path.name not in NOT_BESIDE
