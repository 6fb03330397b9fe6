"""The catalogue of known mistakes: what tests see of each, as graded and at home.

Two things come of it. ``catalogue.json`` lies beside a class's source notebook and serves the
grader. In the data file beside a released notebook are fingerprints of the results that the
visible checks see, and sentences; no code, and nothing of hidden tests. Both are taken from the
lesson's lock (:mod:`.lock`) where that fits, and else from the answer matrix.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.course.dependencies import Dependencies
from autograder.course.implementations import Implementation, misconceptions
from autograder.course.lessons import Lesson
from autograder.course.libraries import lacking, setup_of
from autograder.course.translation import sealed_words
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED, Mistake
from autograder.diagnose.lock import LOCK_FILE, Lock, OfExercise
from autograder.diagnose.matrix import Matrix, Outcome, digest, makers
from autograder.notebooks import HIDDEN, exercise_of, nbgrader_metadata
from autograder.processes import processes
from lesson_kit.answer_text import claims
from lesson_kit.evidence import Evidence, Seen, agree, rounded, same
from lesson_kit.known_mistakes import KNOWN_MISTAKES
from lesson_kit.setting import DATA_FILE, pack, unpack
from lesson_kit.tensors import one_thread


@dataclass(frozen=True)
class Known:
    """What is known of one exercise's mistakes: what tests see of each, as graded and at home; and
    the digests of what that evidence was made from."""

    made_from: Sequence[str]
    graded: Mapping[str, Seen]
    at_home: Mapping[str, Seen]


def catalogue(lesson: Lesson) -> list[Mistake]:
    """The known mistakes of a lesson and what its tests see of them on the inputs of the
    student's notebook, as graded.

    A wrong choice of a short answer is not among them: it has its reason already.
    """
    return [
        _mistake(lesson, entry, known.graded[entry.name])
        for exercise, known in known_in(lesson).items()
        for entry in entries(lesson)[exercise]
    ]


def mistakes(matrix: Matrix, exercise: str, seed: int) -> list[Mistake]:
    """The known mistakes of an exercise, and what its tests see of them on inputs from a seed."""
    tests = graded_cells(matrix.lesson, exercise)
    return [
        _mistake(matrix.lesson, entry, seen(matrix.of(entry, tests, seed)))
        for entry in entries(matrix.lesson).get(exercise, ())
    ]


def _mistake(lesson: Lesson, entry: Implementation, its: Seen) -> Mistake:
    said = claims(entry.sentence, entry.source, lesson.exercises[entry.exercise])
    sentence = sealed_words(lesson, entry.sentence)
    return Mistake(entry.exercise, entry.name, sentence, its, said)


def seen(outcomes: Mapping[str, Outcome]) -> dict[str, tuple[Evidence, ...]]:
    """What tests saw of an answer, for :mod:`autograder.diagnose.diagnosis`."""
    return {test: outcome.evidence for test, outcome in outcomes.items()}


def entries(lesson: Lesson) -> dict[str, list[Implementation]]:
    """The lesson's misconceptions by exercise, but for wrong choices: these have their reason."""
    by_exercise: dict[str, list[Implementation]] = {}
    for entry in misconceptions(lesson):
        if not entry.exercise.startswith("answer_"):
            by_exercise.setdefault(entry.exercise, []).append(entry)
    return by_exercise


def graded_cells(lesson: Lesson, exercise: str) -> list[str]:
    """The test cells of an exercise, in order."""
    names = list(lesson.exercises)
    return [test for test in lesson.tests if exercise_of(test, names) == exercise]


def made_from(depends: Dependencies, exercise: str) -> dict[str, str]:
    """By test of an exercise, a digest that changes with all in this repository that comes into
    what the test sees of the exercise's mistakes.

    That is: the code that the test, the answer and the entries reach, and what makes evidence.
    A changed sentence of the story or of a mistake, or another test, is not.
    """
    lesson = depends.lesson
    wrong = [(entry.name, entry.source) for entry in entries(lesson)[exercise]]
    sources = [lesson.exercises[exercise], *(source for _, source in wrong)]
    digests = {}
    for test in graded_cells(lesson, exercise):
        cell = lesson.tests[test]
        graded = (test, cell.source, nbgrader_metadata(cell)["points"])
        behind = depends.behind([cell.source, *sources], {})
        digests[test] = digest([graded, wrong, behind, DIAGNOSIS_SEED, makers()])[:16]
    return digests


def _visible(lesson: Lesson, test: str) -> bool:
    return not HIDDEN.search(lesson.tests[test].source)


def fits(locked: OfExercise, digests: Mapping[str, str]) -> bool:
    """Whether a lock's evidence comes from what there is: these digests of tests."""
    return sorted(locked.made_from) == sorted(digests.values())


def known_in(lesson: Lesson) -> dict[str, Known]:
    """By exercise, what is known of a lesson's mistakes: from its lock, or from the matrix."""
    if lacking(setup_of(lesson.notebook)):  # nothing of it can be run here
        return {}
    handed_out = released(lesson)
    lock = Lock.read(lesson, handed_out)
    known: dict[str, Known] = {}
    with Matrix(lesson) as matrix:
        for exercise in entries(lesson):
            locked = lock.exercises.get(exercise, OfExercise())
            there = dict(zip(locked.handed_out, handed_out.get(exercise, ())))
            digests = made_from(matrix.depends, exercise)
            known[exercise] = Known(locked.made_from, locked.seen, there)
            if not (locked.whole and fits(locked, digests)):
                stale = {test for test, digest in digests.items() if digest not in locked.made_from}
                if not locked.whole:
                    stale |= {test for test in digests if _visible(lesson, test)}
                seen_now = looked_at(matrix, exercise, known[exercise], stale)
                known[exercise] = replace(seen_now, made_from=tuple(digests.values()))
    return known


def looked_at(
    matrix: Matrix, exercise: str, before: Known | None = None, stale: Collection[str] | None = None
) -> Known:
    """The evidence of an exercise's mistakes from the matrix.

    Rounding differs between processors, and no way to write a number down is safe from that:
    wherever it is cut off, some result lies on the edge. So what is committed is the reference: of
    a result that agrees with what stands there, what stands there is kept.

    Args:
        matrix: of the lesson.
        exercise: its name.
        before: what was committed; None to begin from nothing.
        stale: the tests that are looked at; of the others, what was committed is kept. All of them
            where nothing is said.
    """
    before = before or Known((), {}, {})
    lesson = matrix.lesson
    tests = graded_cells(lesson, exercise)
    visible = [test for test in tests if _visible(lesson, test)]
    graded: dict[str, Seen] = {}
    at_home: dict[str, Seen] = {}
    for entry in entries(lesson)[exercise]:
        for its, old, cells, as_graded in (
            (graded, before.graded, tests, True),
            (at_home, before.at_home, visible, False),
        ):
            was = old.get(entry.name, {})
            anew = [test for test in cells if stale is None or test in stale]
            outcomes = matrix.of(entry, anew, DIAGNOSIS_SEED, as_graded=as_graded)
            now = as_before(seen(outcomes), was)
            its[entry.name] = {test: now.get(test, was.get(test, ())) for test in cells}
    some = {name: its for name, its in at_home.items() if any(its.values())}
    return Known(before.made_from, graded, some)


def as_before(now: Seen, before: Seen) -> Seen:
    """Evidence with the numbers that were written down before, where it is of the same result."""
    return {test: _pieces(pieces, before.get(test, ())) for test, pieces in now.items()}


def _pieces(now: tuple[Evidence, ...], before: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    if [piece.check for piece in now] != [piece.check for piece in before]:
        return now
    return tuple(
        replace(new, got=old.got)
        if rounded(old.got) == old.got and agree(new.got, old.got)
        else new
        for new, old in zip(now, before)
    )


def released_mistakes(lesson: Lesson) -> str:
    """What a lesson's data file says of them, as JSON: of each exercise's mistakes, a sentence and
    what the visible checks see of it, packed. Where a library of the lesson is missing, what stands
    there stays."""
    if lacking(setup_of(lesson.notebook)):
        return _by_lines(_committed(lesson))
    tree: dict[str, list[dict[str, Any]]] = {}
    for exercise, known in known_in(lesson).items():
        right = lesson.exercises[exercise]
        for mistake in entries(lesson)[exercise]:
            if mistake.name not in known.at_home:
                continue
            seen_by = {
                test: [[piece.check, piece.got, piece.tolerance] for piece in pieces]
                for test, pieces in known.at_home[mistake.name].items()
                if pieces
            }
            sentence = sealed_words(lesson, mistake.sentence)
            entry: dict[str, Any] = {"sentence": sentence, "seen": seen_by}
            if said := claims(mistake.sentence, mistake.source, right):
                entry["claims"] = said
            tree.setdefault(exercise, []).append(entry)
    return _by_lines(tree)


def _by_lines(tree: Mapping[str, Sequence[Any]]) -> str:
    """As JSON with one exercise a line, so that a changed exercise is one changed line."""
    parts = [f"{json.dumps(name)}: {json.dumps(pack(tree[name]))}" for name in sorted(tree)]
    return '{"mistakes": {\n' + ",\n".join(parts) + "\n}}\n"


def released_path(lesson: Lesson) -> Path:
    """Where the committed release of a lesson has its fingerprints."""
    return lesson.path.parent.parent / "course" / lesson.folder / DATA_FILE


def _committed(lesson: Lesson) -> dict[str, Any]:
    """The mistakes in the committed release, by exercise; empty where they cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        tree = json.loads(released_path(lesson).read_text(encoding="utf-8"))
        packed = tree[KNOWN_MISTAKES]["mistakes"]
        return {exercise: unpack(mistakes) for exercise, mistakes in packed.items()}
    return {}


def released(lesson: Lesson) -> dict[str, list[Seen]]:
    """What visible checks see of the mistakes in the committed release, by exercise, in order."""
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        return {
            exercise: [
                {
                    test: tuple(Evidence(*piece) for piece in pieces)
                    for test, pieces in entry["seen"].items()
                }
                for entry in of_exercise
            ]
            for exercise, of_exercise in _committed(lesson).items()
        }
    return {}


def lock(lesson: Lesson) -> None:
    """Write the lesson's lock beside its sources, once what it refers to is released."""
    handed_out = released(lesson)
    before = Lock.read(lesson, handed_out).exercises
    known = known_in(lesson)
    after = Lock(lesson.path / LOCK_FILE)
    for exercise in lesson.exercises:
        after.exercises[exercise] = before.get(exercise, OfExercise())
        order = [entry.name for entry in entries(lesson).get(exercise, ())]
        if exercise in known or not order:
            its = known.get(exercise, Known((), {}, {}))
            after.exercises[exercise] = replace(
                after.exercises[exercise],
                made_from=list(its.made_from),
                seen=dict(its.graded),
                handed_out=[name for name in order if name in its.at_home],
            )
    after.write(handed_out)


def record(lesson: Lesson, proved: Mapping[str, tuple[str, tuple[int, int]]]) -> None:
    """Write into the lesson's lock what was proved, and nothing else.

    Args:
        lesson: whose lock.
        proved: by exercise, the digest of what was tried, and of the known mistakes on fresh
            inputs how many were named of how many.
    """
    handed_out = released(lesson)
    kept = Lock.read(lesson, handed_out)
    for exercise, (digest_of_proof, named) in proved.items():
        before = kept.exercises.get(exercise, OfExercise())
        kept.exercises[exercise] = replace(before, proved=digest_of_proof, named=named)
    kept.write(handed_out)


def not_locked(lessons: Iterable[Lesson]) -> list[Lesson]:
    """The lessons of whose mistakes evidence has to be looked at: their lock does not fit."""
    return [
        lesson for lesson in lessons if not lacking(setup_of(lesson.notebook)) and not _fits(lesson)
    ]


def _fits(lesson: Lesson) -> bool:
    kept = Lock.read(lesson, released(lesson)).exercises
    depends = Dependencies(lesson)
    return all(
        name in kept and fits(kept[name], made_from(depends, name)) for name in entries(lesson)
    )


def look_at(lessons: Sequence[Lesson]) -> Iterable[Lesson]:
    """Have the evidence of some lessons' mistakes in the cache, made on all cores."""
    with processes(begin=one_thread) as pool:
        for lesson, _ in zip(lessons, pool.map(_looked_at_all, lessons)):
            yield lesson


def _looked_at_all(lesson: Lesson) -> None:
    known_in(lesson)


def look_alike(of_exercise: Sequence[Mistake]) -> list[tuple[Mistake, Mistake]]:
    """Pairs of one exercise that no test can tell apart."""
    return [
        (other, mistake)
        for number, mistake in enumerate(of_exercise)
        for other in of_exercise[:number]
        if all(
            same(mistake.seen.get(name, ()), other.seen.get(name, ()))
            for name in mistake.seen.keys() | other.seen.keys()
        )
    ]
