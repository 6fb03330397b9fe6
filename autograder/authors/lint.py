"""The mistakes that authors of exercises make, found before a student does.

Some are seen in the text of a cell or in what it printed, others only when the tests run: on the
untouched stub, on the solution while its calls are recorded, on the catalogue.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from autograder.authors.cards import rare_kinds, unasked, unpromised
from autograder.authors.processor_bound import processor_bound
from autograder.authors.self_consistency import unsaid_own_results
from autograder.authors.translating import remarks as of_translations
from autograder.course.given_names import given_by, taken_from_elsewhere
from autograder.course.implementations import alternatives, misconceptions
from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import catalogue, graded_cells, look_alike
from autograder.diagnose.matrix import Matrix
from autograder.diagnose.plain_run import PlainRun, told
from autograder.notebooks import HIDDEN, SETUP, exercise_of, nbgrader_metadata, tags
from lesson_kit import checks
from lesson_kit.failures import Part, begin_part
from lesson_kit.tensors import torch

#: Of the rows of weights that a lesson's checks compare, this many may be nearly one-hot.
MAX_SATURATED = 0.8

_SOLUTION = re.compile(r"^([ \t]*)[^\n]*### BEGIN SOLUTION.*?### END SOLUTION[^\n]*$", re.S | re.M)
#: An argument that a docstring gives as a square: its two sizes cannot differ.
_SQUARE = re.compile(r"^\s*(\w+): \([^()]*\b(\w+), \2\)", re.M)
_GLOBAL_DRAW = re.compile(
    r"\bnp\.random\.(rand|randn|randint|random|normal|uniform|choice|permutation|shuffle)\b"
    r"|\btorch\.(rand|randn|randint|randperm|normal)\b(?!.*generator=)"
)
#: Such as a test that the global state is left alone.
_SEEDED = re.compile(r"\b(seed|manual_seed|get_state|get_rng_state)\(")
_CLOSE = {"allclose", "isclose", "assert_allclose", "assert_almost_equal", "array_equal"}
_LEAST_WRONG, _LEAST_RIGHT = 4, 2
#: An argument of pictures: a model may be for square ones, as none of their axes is a feature.
_PICTURES = "images"


def lint(lesson: Lesson, exercises: Sequence[str] = (), seed: int = 401) -> list[str]:
    """What is wrong with a lesson's exercises and tests, each with what to do; empty when
    nothing is.

    Args:
        lesson: whose sources are read, and whose tests run.
        exercises: only the tests and catalogues of these run and are looked at; all otherwise.
        seed: of the inputs.
    """
    chosen = [name for name in lesson.exercises if not exercises or name in exercises]
    remarks = [*_texts(lesson), *unpromised(lesson), *processor_bound(lesson)]
    remarks += [*_catalogue(lesson, chosen), *of_translations(lesson)]
    with Matrix(lesson) as matrix:
        stopped = matrix.run.stopped.items()
        remarks += [f"{cell}: the solved lesson stops here: {e}" for cell, e in stopped]
        remarks += _on_stubs(matrix, chosen, seed)
        remarks += _on_solutions(matrix.run, chosen, seed)
    return [f"{lesson.folder}: {text}" for text in remarks]


def _texts(lesson: Lesson) -> Iterator[str]:
    cells = [cell for cell in lesson.notebook.cells if cell.cell_type == "code"]
    known = set(lesson.exercises)
    exercises = {name: ast.parse(source) for name, source in lesson.exercises.items()}
    for cell in cells:
        if SETUP in tags(cell):
            known |= given_by(cell.source).keys()
    for name, cell in lesson.tests.items():
        tree = ast.parse(cell.source)
        unknown = sorted(taken_from_elsewhere(cell.source) - known)
        if unknown:
            yield (
                f"{name}: uses {', '.join(unknown)} of other cells; the grader runs a test cell by "
                "itself, so define it there"
            )
        if HIDDEN.search(cell.source) and "print" in _called(tree):
            yield f"{name}: a hidden test prints; what it prints could show its inputs, remove it"
        if HIDDEN.search(cell.source) and _tells_exceptions(tree):
            yield (
                f"{name}: a hidden test writes an exception's text into its own; student code "
                "chooses that text and could tell the inputs with it: say type(error).__name__"
            )
        for compared in unsaid_own_results(tree, exercises):
            yield (
                f"{name}: compares {compared}: both come of the student's code and either may be "
                'wrong; say of which call the second is: against="for each text alone"'
            )
        loose = sorted(_CLOSE & _called(tree))
        if loose:
            yield (
                f"{name}: {', '.join(loose)} broadcasts or says nothing of shapes; compare with "
                "assert_close or assert_equal"
            )
        if _GLOBAL_DRAW.search(cell.source) and not _SEEDED.search(cell.source):
            yield f"{name}: draws from the global random state; take check_rng() or a generator"
        if "check" in _called(tree) and "checks_passed" not in _called(tree):
            yield f"{name}: named checks are reported by checks_passed(...); end the cell with it"


def _tells_exceptions(tree: ast.AST) -> bool:
    """Whether a text is made of what a caught exception says."""
    return any(
        isinstance(value, ast.FormattedValue) and getattr(value.value, "id", None) == handler.name
        for handler in ast.walk(tree)
        if isinstance(handler, ast.ExceptHandler) and handler.name
        for value in ast.walk(handler)
    )


@contextlib.contextmanager
def _counting() -> Iterator[list[float]]:
    """The points of each named check that runs meanwhile, a loop's each time."""
    worth: list[float] = []

    def count(name: str, points: float, *, side: bool = False) -> Part:
        worth.append(points)
        return begin_part(name, points, side=side)

    with mock.patch("lesson_kit.checks.begin_part", count):
        yield worth


def _worth(run: PlainRun, test: str, named: Sequence[float]) -> Iterator[str]:
    points = nbgrader_metadata(run.lesson.tests[test]).get("points", 0)
    if named and abs(sum(named) - points) > 1e-9:
        yield f"{test}: its named checks are worth {sum(named):g} points, the cell {points:g}"


def _catalogue(lesson: Lesson, chosen: Sequence[str]) -> Iterator[str]:
    wrong, right = misconceptions(lesson), alternatives(lesson)
    names = list(lesson.exercises)
    hidden = {exercise_of(n, names) for n, c in lesson.tests.items() if HIDDEN.search(c.source)}
    for exercise in chosen:
        if exercise.startswith("answer_"):
            continue
        counts = (
            sum(misconception.exercise == exercise for misconception in wrong),
            sum(alternative.exercise == exercise for alternative in right),
        )
        if counts[0] < _LEAST_WRONG:
            yield (
                f"{exercise}: misconceptions.py has {counts[0]} of the {_LEAST_WRONG} known "
                "mistakes that an exercise should have at least"
            )
        if counts[1] < _LEAST_RIGHT:
            yield (
                f"{exercise}: alternatives.py has {counts[1]} of the {_LEAST_RIGHT} right "
                "answers that an exercise should have at least"
            )
        if exercise not in hidden:
            yield f"{exercise}: no hidden test; add a cell test_{exercise}_<aspect>"
    for misconception in wrong:
        if not misconception.sentence or not misconception.seen:
            yield (
                f"{misconception.exercise}: the misconception {misconception.name} lacks its "
                "sentence or where seen"
            )
    known = catalogue(lesson)
    for first, second in (
        pair for name in chosen for pair in look_alike([m for m in known if m.exercise == name])
    ):
        if first.sentence != second.sentence:
            yield (
                f"{first.exercise}: no test tells {first.name} from {second.name}; give both one "
                "sentence, or add a test that does"
            )


def _on_stubs(matrix: Matrix, chosen: Sequence[str], seed: int) -> Iterator[str]:
    lesson = matrix.lesson
    stubs = {
        name: f"{name} = None\n"
        if name.startswith("answer_")
        else _SOLUTION.sub(r"\1raise NotImplementedError()", source)
        for name, source in lesson.exercises.items()
    }
    tests = [test for name in chosen for test in graded_cells(lesson, name)]
    for test, outcome in matrix.outcomes(stubs, tests, seed, as_graded=False).items():
        if outcome.passed:
            yield f"{test}: passes for the untouched stub; it has to call the exercise"
        elif [one.got.get("is") for one in outcome.evidence] != ["NotImplementedError"]:
            why = matrix.run.told(stubs, test, seed, as_graded=False)
            yield (
                f"{test}: the untouched stub stops it with {why}; call the exercise "
                "first, so that the student reads NotImplementedError"
            )


@dataclass
class _Calls:
    """What the tests hand to one exercise."""

    shapes: list[dict[str, tuple[int, ...]]] = field(default_factory=list)
    rare: set[str] = field(default_factory=set)


def _on_solutions(run: PlainRun, chosen: Sequence[str], seed: int) -> Iterator[str]:
    for exercise in chosen:
        if exercise.startswith("answer_"):
            continue
        calls = _Calls()
        weights: list[np.ndarray] = []

        def assert_close(
            actual: Any, *args: Any, kept: list[np.ndarray] = weights, **kwargs: Any
        ) -> None:
            kept.extend(_rows_of_weights(actual))
            checks.assert_close(actual, *args, **kwargs)

        for test in run.tests_of({exercise}):
            watched = run.watched(exercise, partial(_recorded, calls=calls), assert_close)
            with watched, _counting() as named:
                error = run.errors({}, seed, [test])[test]
            if error is not None:
                yield f"{test}: the solution fails it: {told(error)}"
            yield from _worth(run, test, named)
        yield from _equal_sizes(exercise, run.lesson.exercises[exercise], calls)
        yield from unasked(run.lesson, exercise, calls.rare)
        rows = [row for array in weights for row in array if not np.isin(row, (0.0, 1.0)).all()]
        saturated = sum(float(np.max(row)) > 0.99 for row in rows)
        if rows and saturated > MAX_SATURATED * len(rows):
            yield (
                f"{exercise}: {saturated} of {len(rows)} rows of weights in its checks are nearly "
                "one-hot; a wrong scale or axis would pass, so use scores of order 1"
            )


def _equal_sizes(exercise: str, source: str, calls: _Calls) -> Iterator[str]:
    arrays = [{n: s for n, s in shapes.items() if n != _PICTURES} for shapes in calls.shapes]
    square = [shapes for shapes in arrays if any(len(shape) >= 2 for shape in shapes.values())]
    if square and all(
        len({size for shape in shapes.values() for size in shape[-2:]}) == 1 for shapes in square
    ):
        yield (
            f"{exercise}: in every test all sizes are equal; a transposed or wrongly reduced axis "
            "would pass, so make them distinct"
        )
    for query, key in (("Q", "K"), ("query", "key")):
        if all(re.search(rf"\b{name}: \(\.\.\., n, ", source) for name in (query, key)):
            continue  # the docstring says `n` of both: a text that looks at itself
        both = [s for s in calls.shapes if len(s.get(query, ())) >= 2 and len(s.get(key, ())) >= 2]
        if both and all(shapes[query][-2] == shapes[key][-2] for shapes in both):
            yield f"{exercise}: {query} and {key} have the same length in every test; vary it"


def _recorded(thing: Any, calls: _Calls) -> Any:
    """A function or class that works as before and records the shapes it is given."""
    if not inspect.isclass(thing):
        return _recorded_call(thing, calls)
    if hasattr(thing, "forward"):
        thing.forward = _recorded_call(thing.forward, calls)
    return thing


def _recorded_call(function: Callable[..., Any], calls: _Calls) -> Callable[..., Any]:
    signature = inspect.signature(function)
    square = {name for name, _ in _SQUARE.findall(inspect.getdoc(function) or "")}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(TypeError):
            bound = signature.bind(*args, **kwargs).arguments
            calls.rare.update(kind for value in bound.values() for kind in rare_kinds(value))
            shapes = {
                name: tuple(value.shape)
                for name, value in bound.items()
                if isinstance(value, (np.ndarray, torch.Tensor))
                and value.ndim
                and name not in square
            }
            if shapes:
                calls.shapes.append(shapes)
        return function(*args, **kwargs)

    return call


def _rows_of_weights(value: Any) -> list[np.ndarray]:
    """The rows of an array whose rows are weights: not negative, sum 1, of at least three."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy() if value.dtype != torch.bfloat16 else None
    if not isinstance(value, np.ndarray) or value.ndim == 0 or value.dtype.kind != "f":
        return []
    rows = value.reshape(-1, value.shape[-1])
    fits = rows.shape[-1] >= 3 and rows.size and np.isfinite(rows).all() and (rows >= 0).all()
    if not fits or not np.allclose(rows.sum(axis=-1), 1, atol=1e-4):
        return []
    return [rows]


def _called(tree: ast.AST) -> set[str]:
    return {
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
