"""Whether a lesson's tests do what they should: right answers pass, wrong ones lose their points.

A view of the answer matrix, an exercise at a time. No box and no sandbox: it is for authors, who
trust their own catalogue. What held stands in the lesson's lock as *proved*, under the digest of
all that was tried; nothing of it is tried again until that changes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import nbformat
from nbclient import NotebookClient

from autograder.build.beside import write_data
from autograder.build.page import as_page
from autograder.course.dependencies import Dependencies, names_used
from autograder.course.implementations import Implementation, alternatives, misconceptions
from autograder.course.lessons import Lesson, builds_on
from autograder.diagnose import catalogue, idle
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED, diagnose
from autograder.diagnose.lock import Lock
from autograder.diagnose.matrix import Matrix, Outcome, digest, digest_of_code, makers
from autograder.notebooks import exercise_of, nbgrader_metadata, png_of
from autograder.processes import processes
from lesson_kit.evidence import same
from lesson_kit.tensors import one_thread

Case = TypeVar("Case")

#: The modules that say what is tried, and when it holds.
_DECIDE = (
    __name__,
    "autograder.diagnose.catalogue",
    "autograder.diagnose.diagnosis",
    "autograder.diagnose.idle",
    "lesson_kit.known_mistakes",
)

#: On so many inputs right answers are tried: every notebook is graded on inputs of its own.
RIGHT_ON = 8
#: Seeds of inputs on which known mistakes are looked up as a student's code would be.
FRESH = (201, 202)
#: Of a lesson's known mistakes at least this share gets its own sentence on fresh inputs.
MIN_NAMED = 0.95
#: Of its exercise's points an answer that is right but for one edge keeps at least this share.
EDGE_KEEPS = 0.6
#: Seed of the inputs on which answers that ignore the question are tried.
IDLE_SEED = 301


@dataclass
class Tried:
    """What came of one exercise.

    Attributes:
        exercise: its name.
        complaints: what is wrong with its tests; empty when nothing is.
        wrong: how often a known mistake was looked up on fresh inputs.
        named: how often it got its own sentence.
    """

    exercise: str
    complaints: list[str] = field(default_factory=list)
    wrong: int = 0
    named: int = 0


@dataclass(frozen=True)
class Share:
    """One of some equal parts of what is tried, so that a sample can be proved anew."""

    number: int
    of: int = 16

    def part(self, exercise: str, cases: Sequence[Case]) -> list[Case]:
        """Its part of an exercise's cases; where these are few, some exercises have none in it."""
        start = int(digest(exercise), 16) + self.number
        return list(cases[start % self.of :: self.of])


ALL = Share(0, 1)


def trial(matrix: Matrix, exercise: str, seeds: Sequence[int] = (), share: Share = ALL) -> Tried:
    """Try the tests of one exercise.

    Args:
        matrix: of the lesson that holds it.
        exercise: its name.
        seeds: of the inputs for right answers; the first few otherwise.
        share: only these answers. Whether mistakes are named is no question then. What a matrix
            that is computed anew sees of them has to be what the lock says.
    """
    tried = Tried(exercise)
    tried.complaints += _right(matrix, exercise, seeds or range(1, RIGHT_ON + 1), share)
    wrong = [entry for entry in misconceptions(matrix.lesson) if entry.exercise == exercise]
    wrong = share.part(exercise, wrong)
    if _passes_everything(matrix, exercise, wrong):
        tried.complaints.append(
            f"no check of {exercise} compares anything: each known mistake passes, and whatever "
            "else is given. Use assert_close or assert_equal"
        )
        return tried
    tried.complaints += _wrong(matrix, exercise, wrong)
    if exercise.startswith("answer_"):
        return tried
    if share is ALL:
        _name(matrix, tried)
    if matrix.anew:
        tried.complaints += _unlike_the_lock(matrix, exercise, wrong)
    tried.complaints += _nothing_for_nothing(matrix, exercise, share)
    return tried


def _passes_everything(matrix: Matrix, exercise: str, wrong: Sequence[Implementation]) -> bool:
    """Whether nothing fails: no known mistake, no box that gives nothing or NaN to everything."""
    own = _tests(matrix.lesson, exercise)
    return bool(wrong) and not any(
        _failed(outcomes)
        for outcomes in (
            *(matrix.of(answer, own, DIAGNOSIS_SEED) for answer in wrong),
            *(matrix.outcomes({}, own, IDLE_SEED, box=box) for box in ("nothing", "NaN")),
        )
    )


def _right(matrix: Matrix, exercise: str, seeds: Sequence[int], share: Share) -> Iterator[str]:
    lesson = matrix.lesson
    own = catalogue.graded_cells(lesson, exercise)
    above = [test for name in _dependents(lesson, exercise) for test in _tests(lesson, name)]
    rights: list[tuple[str, dict[str, str], list[str]]] = [("the solution", {}, own)]
    rights += [
        (f"alternative {answer.name}", {exercise: answer.source}, [*own, *above])
        for answer in alternatives(lesson)
        if answer.exercise == exercise
    ]
    cases = [(DIAGNOSIS_SEED, False), *((seed, True) for seed in seeds)]
    for who, answer, tests in share.part(exercise, rights):
        for seed, as_graded in cases:
            for test in _failed(matrix.outcomes(answer, tests, seed, as_graded=as_graded)):
                why = _why(matrix, answer, test, seed)
                yield f"seed {seed}: {who} fails {test}: {why}"


def _why(matrix: Matrix, answers: dict[str, str], test: str, seed: int) -> str:
    """What ends a test, which only somebody who reads it needs."""
    told = matrix.run.told(answers, test, seed)
    stopped = [f"; {cell} stops with {error}" for cell, error in matrix.run.stopped.items()]
    return told + "".join(stopped)


def _wrong(matrix: Matrix, exercise: str, wrong: Sequence[Implementation]) -> Iterator[str]:
    lesson = matrix.lesson
    names = list(lesson.exercises)
    seeing = cells_that_see(lesson, exercise)
    own = _tests(lesson, exercise)
    may_fail = {exercise} | _dependents(lesson, exercise)
    for answer in wrong:
        failed = {exercise_of(t, names) for t in _failed(matrix.of(answer, seeing, DIAGNOSIS_SEED))}
        for other in sorted(failed - may_fail):
            yield f"misconception {answer.name} also fails {other}"
        accepted = [seed for seed in FRESH if not _failed(matrix.of(answer, own, seed))]
        accepted += [] if exercise in failed else [DIAGNOSIS_SEED]
        for seed in accepted:
            yield f"seed {seed}: misconception {answer.name} is accepted"
        if answer.edge:
            kept = sum(matrix.points(matrix.of(answer, own, DIAGNOSIS_SEED)).values())
            of = sum(nbgrader_metadata(lesson.tests[test])["points"] for test in own)
            if kept < EDGE_KEEPS * of:
                yield f"misconception {answer.name} misses one edge and keeps {kept:g} of {of:g}"


def _unlike_the_lock(
    matrix: Matrix, exercise: str, wrong: Sequence[Implementation]
) -> Iterator[str]:
    known = {m.name: m.seen for m in catalogue.catalogue(matrix.lesson) if m.exercise == exercise}
    for answer in wrong:
        for test, outcome in matrix.of(
            answer, _tests(matrix.lesson, exercise), DIAGNOSIS_SEED
        ).items():
            if not same(outcome.evidence, known[answer.name].get(test, ())):
                yield f"misconception {answer.name}: {test} sees something else than the lock says"


def _name(matrix: Matrix, tried: Tried) -> None:
    """Each known mistake is looked up as a student's code would be: by what the tests see of it."""
    for seed in FRESH:
        known = catalogue.mistakes(matrix, tried.exercise, seed)
        for own in known:
            tried.wrong += 1
            diagnosis = diagnose(own.seen, known)
            if diagnosis is not None and diagnosis.mistake.sentence == own.sentence:
                tried.named += 1


def _nothing_for_nothing(matrix: Matrix, exercise: str, share: Share) -> Iterator[str]:
    lesson = matrix.lesson
    tests = _tests(lesson, exercise)
    for box in share.part(exercise, list(idle.BOXES)):
        outcomes = matrix.outcomes({}, tests, IDLE_SEED, box=box)
        if earned := _earned(matrix, outcomes):
            yield f"a box that answers {box} to everything earns {earned}"
    functions = {
        name: source for name, source in lesson.exercises.items() if not name.startswith("answer_")
    }
    answers = {name: idle.idle_answers(name, source) for name, source in functions.items()}
    for does, answer in share.part(exercise, list(answers[exercise].items())):
        together = {name: others[does] for name, others in answers.items() if does in others}
        for tried, who in (({exercise: answer}, "this answer"), (together, "all answers")):
            if earned := _earned(matrix, matrix.outcomes(tried, tests, IDLE_SEED)):
                yield f"{who}, made to give {does}: earns {earned}"


def _earned(matrix: Matrix, outcomes: dict[str, Outcome]) -> dict[str, float]:
    return {test: points for test, points in matrix.points(outcomes).items() if points}


def _failed(outcomes: dict[str, Outcome]) -> list[str]:
    return [test for test, outcome in outcomes.items() if not outcome.passed]


def _tests(lesson: Lesson, exercise: str) -> list[str]:
    return catalogue.graded_cells(lesson, exercise)


def _dependents(lesson: Lesson, exercise: str) -> set[str]:
    """The exercises whose solution builds on it."""
    solved = lesson.exercises
    return {name for name in solved if exercise in builds_on(solved, name)}


def cells_that_see(lesson: Lesson, exercise: str) -> list[str]:
    """The test cells whose result can depend on an exercise, in order.

    A cell of another exercise that neither names this one nor an exercise that builds on it runs
    the same code whatever this one is.
    """
    reached = {exercise} | _dependents(lesson, exercise)
    names = list(lesson.exercises)
    return [
        test
        for test, cell in lesson.tests.items()
        if exercise_of(test, names) in reached or names_used(cell.source) & reached
    ]


def proof(depends: Dependencies, exercise: str) -> str:
    """Changes with all in this repository that :func:`trial` depends on for an exercise."""
    lesson = depends.lesson
    tests = {test: lesson.tests[test] for test in cells_that_see(lesson, exercise)}
    tried: list[Implementation] = [
        answer
        for answer in (*misconceptions(lesson), *alternatives(lesson))
        if answer.exercise == exercise
    ]
    sources = [cell.source for cell in tests.values()] + [answer.source for answer in tried]
    behind = depends.behind([lesson.exercises[exercise], *sources], {})
    shown = [(each.name, each.source, each.sentence, each.right, each.edge) for each in tried]
    return digest([list(tests), sources, shown, behind, digest_of_code(_DECIDE), makers()])


def unproved(lesson: Lesson) -> list[str]:
    """The exercises of which the lesson's lock does not say that all of this held."""
    lock = Lock.read(lesson, catalogue.released(lesson)).exercises
    depends = Dependencies(lesson)
    return [
        name
        for name in lesson.exercises
        if name not in lock or lock[name].proved != proof(depends, name)
    ]


def try_all(
    wanted: Sequence[tuple[Lesson, str]], seeds: Sequence[int] = (), *, anew: bool = False
) -> Iterator[tuple[Lesson, Tried]]:
    """:func:`trial` of some exercises, on all cores; what held is written into the locks.

    Args:
        wanted: lessons with the names of their exercises, a lesson's one after another.
        seeds: see :func:`trial`; with seeds of your own nothing is written.
        anew: compute all of it, whatever is kept.
    """
    with processes(begin=one_thread) as pool:
        tasks = [pool.submit(_tried, lesson, name, seeds, anew) for lesson, name in wanted]
        held: dict[str, tuple[str, tuple[int, int]]] = {}
        for place, (task, (lesson, name)) in enumerate(zip(tasks, wanted)):
            tried = task.result()
            if not tried.complaints and not seeds:
                held[name] = proof(Dependencies(lesson), name), (tried.named, tried.wrong)
            last = place + 1 == len(wanted) or wanted[place + 1][0] is not lesson
            if last and held:
                catalogue.record(lesson, held)
                held = {}
            yield lesson, tried


def _tried(lesson: Lesson, exercise: str, seeds: Sequence[int], anew: bool) -> Tried:
    with Matrix(lesson, anew=anew) as matrix:
        return trial(matrix, exercise, seeds)


def row(lesson: Lesson, tried: Tried) -> str:
    """What was tried of an exercise, and whether it held, in one line."""
    wrong = sum(answer.exercise == tried.exercise for answer in misconceptions(lesson))
    right = sum(answer.exercise == tried.exercise for answer in alternatives(lesson))
    held = f"{len(tried.complaints)} complaints" if tried.complaints else "as it should be"
    named = f", {tried.named} of {tried.wrong} named" if tried.wrong else ""
    counts = f"{wrong} misconceptions{named}, {right} alternatives"
    return f"{lesson.folder} {tried.exercise}: {counts}: {held}"


def complaints(lesson: Lesson, tried: Sequence[Tried]) -> list[str]:
    """What is wrong with the tests of a lesson of which some exercises were just tried."""
    said = [f"{answer.exercise}: {text}" for answer in tried for text in answer.complaints]
    lock = Lock.read(lesson, catalogue.released(lesson)).exercises
    wrong = sum(answer.named[1] for answer in lock.values())
    named = sum(answer.named[0] for answer in lock.values())
    if named < MIN_NAMED * wrong:
        said.append(f"{named} of {wrong} known mistakes get their own sentence on fresh inputs")
    return said


def execute(lesson: Lesson, folder: Path) -> float:
    """Run the whole solved page in a kernel; leave the notebook and its figures in ``folder``.

    Returns:
        The kernel's processor seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_data(lesson, folder)
    notebook = as_page(lesson)
    clock = nbformat.v4.new_code_cell("import time; print(time.process_time())")
    notebook.cells.append(clock)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute()
    seconds = float(clock.outputs[0]["text"])
    notebook.cells.pop()
    nbformat.write(notebook, folder / f"{lesson.notebook_name}.ipynb")
    count = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if png := png_of(output.get("data", {})):
                count += 1
                (folder / f"figure-{count:02d}.png").write_bytes(base64.b64decode(png))
    return seconds
