"""The answer matrix: what each answer does to each test, computed once and kept.

A row is an answer (the solution, a known mistake, an alternative, a function that does nothing), a
column a test cell on inputs from a seed. A cell is pure: the answer is defined anew for each test,
and random numbers begin from the seed. So it is kept under a digest of all that can change it, in
the user's cache folder (:mod:`.matrix_cache`), and everything that is asked about a lesson's tests
is a view of the same cells: the catalogue of known mistakes, what authors measure, and the tests
of the tests.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import threadpoolctl

from autograder.course.answers import sealed_answers
from autograder.course.dependencies import Dependencies, without_docstrings
from autograder.course.implementations import Implementation
from autograder.course.lessons import Lesson, is_side_condition
from autograder.course.libraries import imported, setup_of
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED
from autograder.diagnose.idle import BOXES
from autograder.diagnose.matrix_cache import MatrixCache
from autograder.notebooks import exercise_of, nbgrader_metadata
from lesson_kit.evidence import Evidence, evidence_of
from lesson_kit.failures import lone_side_conditions
from lesson_kit.tensors import installed, torch

if TYPE_CHECKING:
    from autograder.diagnose.plain_run import PlainRun

#: Libraries that are imported when a test first uses them: few draw with seaborn, whose import
#: takes nearly as long as all else of a run.
WHEN_USED = ("seaborn",)

#: The modules whose code takes part in making a value; a test watches which ones run.
MAKE_VALUES = (
    "autograder.box.caps",
    "autograder.box.decoding",
    "autograder.box.dtypes",
    "autograder.box.encoding",
    "autograder.box.imports",
    "autograder.box.leaves",
    "autograder.box.wire",
    "autograder.diagnose.idle",
    "autograder.diagnose.plain_run",
    "lesson_kit.absent",
    "lesson_kit.cells",
    "lesson_kit.checks",
    "lesson_kit.differences",
    "lesson_kit.evidence",
    "lesson_kit.exceptions",
    "lesson_kit.failures",
    "lesson_kit.raised",
    "lesson_kit.setting",
    "lesson_kit.short_answers",
    "lesson_kit.tensors",
    "lesson_kit.words",
)


@dataclass(frozen=True)
class Outcome:
    """What a test makes of an answer.

    Attributes:
        passed: whether it ran to its end.
        points: what it is worth, side conditions not yet looked at.
        evidence: what its failed checks saw.
    """

    passed: bool
    points: float
    evidence: tuple[Evidence, ...] = ()

    def as_json(self) -> str:
        """As it is kept."""
        seen = [[piece.check, piece.got, piece.tolerance] for piece in self.evidence]
        return json.dumps([self.passed, self.points, seen], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        """What :meth:`as_json` wrote."""
        passed, points, seen = json.loads(text)
        return cls(passed, points, tuple(Evidence(*piece) for piece in seen))


class Matrix:
    """The cells of one lesson. Use it as a context manager.

    ``anew`` computes every cell, whatever is kept, and keeps what comes out.
    """

    def __init__(
        self, lesson: Lesson, *, anew: bool = False, results: MatrixCache | None = None
    ) -> None:
        """Nothing is run yet."""
        self.lesson = lesson
        self.anew = anew
        #: How many cells were computed, and not taken from what is kept.
        self.computed = 0
        self._results = results if results is not None else MatrixCache()
        self._own = results is None
        self.depends = Dependencies(lesson)
        self._stack = contextlib.ExitStack()
        self._run: PlainRun | None = None

    def __enter__(self) -> Matrix:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._run = None
        if self._own:
            self._results.close()

    @property
    def run(self) -> PlainRun:
        """The solved lesson, run when it is first asked for."""
        if self._run is None:
            from autograder.diagnose.plain_run import PlainRun  # brings all that notebooks import

            for name in WHEN_USED:
                _import_when_used(name)
            self._run = self._stack.enter_context(PlainRun(self.lesson))
        return self._run

    def outcomes(
        self,
        answers: Mapping[str, str],
        tests: Iterable[str],
        seed: int,
        *,
        as_graded: bool = True,
        box: str = "",
    ) -> dict[str, Outcome]:
        """What each test makes of the lesson with some answers replaced.

        Args:
            answers: source instead of an exercise's solution, by exercise.
            tests: test cells, by grade_id.
            seed: of the inputs.
            as_graded: as on the way to a box and back, see :meth:`PlainRun.errors`.
            box: a name of :data:`.idle.BOXES`, whose answers stand for those of the student's code.
        """
        keys = {test: self.key(answers, test, seed, as_graded=as_graded, box=box) for test in tests}
        whole = {
            test: digest([key, machine(setup_of(self.lesson.notebook))])
            for test, key in keys.items()
        }
        kept = {} if self.anew else self._results.get(whole.values())
        outcomes: dict[str, Outcome] = {}
        made: dict[str, str] = {}
        for test, key in whole.items():
            with contextlib.suppress(KeyError, ValueError, TypeError):
                outcomes[test] = Outcome.from_json(kept[key])
                continue
            outcomes[test] = self._computed(answers, test, seed, as_graded, box)
            made[key] = outcomes[test].as_json()
        self.computed += len(made)
        if made:
            self._results.put(made)
        return {test: outcomes[test] for test in whole}

    def of(
        self, answer: Implementation, tests: Iterable[str], seed: int, *, as_graded: bool = True
    ) -> dict[str, Outcome]:
        """:meth:`outcomes` of an implementation."""
        return self.outcomes({answer.exercise: answer.source}, tests, seed, as_graded=as_graded)

    def points(self, outcomes: Mapping[str, Outcome]) -> dict[str, float]:
        """What each test is worth where these are all: a side condition counts beside another."""
        names = list(self.lesson.exercises)
        exercise = {test: exercise_of(test, names) for test in outcomes}
        side = {t for t in outcomes if is_side_condition(self.lesson.tests[t].source)}
        lone = lone_side_conditions(
            (test, exercise[test], bool(outcome.points), test in side)
            for test, outcome in outcomes.items()
        )
        return {test: 0.0 if test in lone else out.points for test, out in outcomes.items()}

    def key(
        self, answers: Mapping[str, str], test: str, seed: int, *, as_graded: bool, box: str = ""
    ) -> str:
        """The digest of all that a cell comes from, but for the machine."""
        cell = self.lesson.tests[test]
        worth = nbgrader_metadata(cell)["points"]
        answer = sealed_answers(self.lesson) if "check_answer(" in cell.source else ""
        how = [test, cell.source, worth, seed, as_graded, box, answer, makers()]
        behind = self.depends.behind([cell.source], answers)
        return digest([how, sorted(answers.items()), behind])

    def _computed(
        self, answers: Mapping[str, str], test: str, seed: int, as_graded: bool, box: str
    ) -> Outcome:
        with self.run.answering(BOXES[box]) if box else contextlib.nullcontext():
            error = self.run.errors(dict(answers), seed, [test], as_graded=as_graded)[test]
        evidence = evidence_of(error) if error else ()
        return Outcome(error is None, self.run.points(test, error), evidence)


def _import_when_used(name: str) -> None:
    spec = None if name in sys.modules else find_spec(name)
    if spec is None:  # or a course has no use for it
        return
    stand_in = ModuleType(name)

    def load(attribute: str) -> Any:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    stand_in.__getattr__ = load  # type: ignore[method-assign]
    stand_in.__spec__ = spec
    sys.modules[name] = stand_in


def makers() -> str:
    """The digest of the code that makes values."""
    return digest_of_code(MAKE_VALUES)


@cache
def digest_of_code(modules: tuple[str, ...]) -> str:
    """Of some modules by name, without comments and what is only said. None of them is run."""
    trees = [without_docstrings(Path(str(_found(name).origin))) for name in modules]
    return digest([DIAGNOSIS_SEED, *trees])


def _found(name: str) -> ModuleSpec:
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"{name} is part of this program, and is not there", name=name)
    return spec


@cache
def machine(setup: str) -> str:
    """What changes a value beside the code: versions of what the lesson imports, and the kernels.

    Args:
        setup: source of the lesson's setup cell.
    """
    return digest([sys.version_info[:2], _versions(setup), _kernels(), _numpy_features()])


def _kernels() -> list[str]:
    """The kinds of processor for which libraries chose their code, and what was asked of them."""
    libraries = threadpoolctl.threadpool_info()
    chosen = sorted(str(library.get("architecture", "")) for library in libraries)
    asked = [os.environ.get(name, "") for name in ("ONEDNN_MAX_CPU_ISA", "MKL_CBWR")]
    capability = torch.backends.cpu.get_cpu_capability() if installed() else ""
    return [*chosen, *asked, capability]


def _numpy_features() -> list[str]:
    """The processor's instructions that NumPy uses here."""
    core = "numpy._core" if "numpy._core" in sys.modules else "numpy.core"
    features = import_module(f"{core}._multiarray_umath").__cpu_features__
    return [name for name, on in features.items() if on]


def _versions(setup: str) -> list[str]:
    """Of NumPy, torch and every library that a setup cell imports, as they are installed."""
    tops = {"numpy", "torch"} | imported(setup)
    owners = metadata.packages_distributions()
    outcomes = {owner for top in tops for owner in owners.get(top, ())}
    return sorted(f"{owner} {metadata.version(owner)}" for owner in outcomes)


def digest(parts: Any) -> str:
    """A short name for plain data, another one for any other data."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:32]
