"""The catalogue of known mistakes, put through the tests of its exercises.

Two files come of it. ``catalogue.json`` lies beside a class's source notebook and serves the
grader. ``lesson/mistakes.json`` lies beside a released notebook: fingerprints of the results
that the visible checks see, and sentences; no code, and nothing of hidden tests.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.box import wire
from autograder.course.earlier import carried_over
from autograder.course.implementations import Implementation, misconceptions
from autograder.course.lessons import Course, Lesson
from autograder.course.libraries import lacking, setup_of
from autograder.diagnose import diagnosis, plain_run
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED, Mistake, from_json, same, to_json
from autograder.diagnose.plain_run import PlainRun, seen
from autograder.files import write_whole
from autograder.lesson import checks, evidence, failures, fingerprints
from autograder.lesson.claims import claims
from autograder.lesson.fingerprints import agree, rounded
from autograder.lesson.known_mistakes import MISTAKES_FILE
from autograder.notebooks import DEMONSTRATION, HIDDEN, exercise_of, grade_id, is_test, tags

#: The modules that evidence comes from; the others beside a notebook only show it.
_MAKE_EVIDENCE = (checks, diagnosis, evidence, failures, fingerprints, wire, plain_run)


@cache
def catalogue(lesson: Lesson) -> tuple[Mistake, ...]:
    """:func:`mistakes` on the inputs of the student's notebook.

    It takes seconds, and is kept in ``build/mistakes/``, an exercise a file, until what it comes
    from changes.
    """
    return tuple(_kept(lesson, as_graded=True))


def _kept(lesson: Lesson, *, as_graded: bool) -> list[Mistake]:
    if lacking(setup_of(lesson.notebook)):  # nothing of it can be run here
        return []
    entries = _entries(lesson)
    paths = _paths(lesson, as_graded=as_graded)
    kept: dict[str, list[Mistake]] = {}
    for exercise, path in paths.items():
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            kept[exercise] = from_json(path.read_text(encoding="utf-8"))
    missing = [exercise for exercise in entries if exercise not in kept]
    if missing:
        for exercise, made in _made(lesson, missing, as_graded=as_graded):
            kept[exercise] = made
            with contextlib.suppress(OSError):  # a course that may only be read
                write_whole(paths[exercise], to_json(made))
    return [mistake for exercise in entries for mistake in kept[exercise]]


def _paths(lesson: Lesson, *, as_graded: bool) -> dict[str, Path]:
    """By exercise, where the evidence of its mistakes is kept."""
    kind = "graded" if as_graded else "notebook"
    folder = lesson.path.parent.parent / "build" / "mistakes"
    paths = {}
    for exercise, digest in _made_from(lesson).items():
        made_from = f"{digest} {np.__version__} {torch.__version__}"
        name = hashlib.sha256(made_from.encode()).hexdigest()[:16]
        paths[exercise] = folder / f"{lesson.folder}-{exercise}-{name}-{kind}.json"
    return paths


def _entries(lesson: Lesson) -> dict[str, list[Implementation]]:
    """The lesson's misconceptions by exercise, but for wrong choices: these have their reason."""
    entries: dict[str, list[Implementation]] = {}
    for entry in misconceptions(lesson):
        if not entry.exercise.startswith("answer_"):
            entries.setdefault(entry.exercise, []).append(entry)
    return entries


def _made_from(lesson: Lesson) -> dict[str, str]:
    """By exercise, what changes with all that the evidence of its mistakes comes from, and with
    nothing else.

    That is: the cells that stand in its namespace, its tests, its entries, and what makes
    evidence; the libraries' versions are for the caller to add. A changed sentence of the story,
    or another exercise's test, is not.
    """
    names = list(lesson.exercises)
    cells = [
        (cell.source, grade_id(cell) or "", is_test(cell))
        for cell in lesson.notebook.cells
        if cell.cell_type == "code" and DEMONSTRATION not in tags(cell)
    ]
    makers = _makers(lesson)
    made_from: dict[str, str] = {}
    for exercise, implementations in _entries(lesson).items():
        kept = [
            (source, name)
            for source, name, test in cells
            if not test or exercise_of(name, names) == exercise
        ]
        entries = [(one.name, one.sentence, one.source) for one in implementations]
        tree = json.dumps([kept, entries, DIAGNOSIS_SEED])
        made_from[exercise] = hashlib.sha256(tree.encode() + makers).hexdigest()[:16]
    return made_from


def _makers(lesson: Lesson) -> bytes:
    whole = hashlib.sha256(carried_over(lesson).encode())
    for module in _MAKE_EVIDENCE:
        whole.update(hashlib.sha256(Path(str(module.__file__)).read_bytes()).digest())
    return whole.digest()


def _digest(lesson: Lesson) -> str:
    """Changes with everything in this repository that the evidence of mistakes comes from."""
    parts = [f"{exercise} {digest}" for exercise, digest in sorted(_made_from(lesson).items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def mistakes(lesson: Lesson, seed: int, *, as_graded: bool = True) -> list[Mistake]:
    """What the tests of each exercise see of each misconception, on inputs from a seed.

    A wrong choice of a short answer is not among them: it has its reason already.
    """
    made = _made(lesson, list(_entries(lesson)), seed, as_graded=as_graded)
    return [mistake for _, of_exercise in made for mistake in of_exercise]


def _made(
    lesson: Lesson, exercises: Sequence[str], seed: int = DIAGNOSIS_SEED, *, as_graded: bool
) -> Iterator[tuple[str, list[Mistake]]]:
    entries = _entries(lesson)
    with PlainRun(lesson) as run:
        for exercise in exercises:
            yield (
                exercise,
                [mistake_of(run, entry, seed, as_graded=as_graded) for entry in entries[exercise]],
            )


def mistake_of(
    run: PlainRun, implementation: Implementation, seed: int, *, as_graded: bool = True
) -> Mistake:
    """A wrong implementation put through the tests of its exercise."""
    tests = run.tests_of({implementation.exercise})
    errors = run.errors(
        {implementation.exercise: implementation.source}, seed, tests, as_graded=as_graded
    )
    right = run.lesson.exercises[implementation.exercise]
    return Mistake(
        implementation.exercise,
        implementation.name,
        implementation.sentence,
        seen(errors),
        claims(implementation.sentence, implementation.source, right),
    )


@cache
def released_mistakes(lesson: Lesson) -> str:
    """The text of ``lesson/mistakes.json``: of each exercise's mistakes, a sentence and what the
    visible checks see of it. Where a library of the lesson is missing it stays as it is."""
    if lacking(setup_of(lesson.notebook)) and _committed(lesson):
        return _released_path(lesson).read_text(encoding="utf-8")
    return as_released(lesson, _kept(lesson, as_graded=False), _committed(lesson))


def as_released(lesson: Lesson, of_lesson: Sequence[Mistake], committed: Mapping[str, Any]) -> str:
    """What is released of a lesson's mistakes, the same text on every machine.

    Rounding differs between processors, and no way to write a number down is safe from that:
    wherever it is cut off, some result lies on the edge. So the file in ``course/`` is the
    reference. Of a result that agrees with what stands there, what stands there is kept; only
    another result is written anew. Without that file two processors may differ in last digits,
    with which a student's results agree all the same.

    Under ``made_from`` it says of which files it was made.

    Args:
        lesson: with its visible checks.
        of_lesson: the mistakes on the inputs of the student's notebook.
        committed: what ``course/`` holds; empty to begin from nothing.
    """
    visible = {name for name, cell in lesson.tests.items() if not HIDDEN.search(cell.source)}
    before = _by_sentence(committed)
    tree: dict[str, list[dict[str, Any]]] = {}
    for mistake in of_lesson:
        known = before.get((mistake.exercise, mistake.sentence), [])
        seen_by = {
            name: _as_committed([[e.check, e.got, e.tolerance] for e in seen], name, known)
            for name, seen in mistake.seen.items()
            if name in visible and seen
        }
        if seen_by:
            entry: dict[str, Any] = {"sentence": mistake.sentence, "seen": seen_by}
            if mistake.claims:
                entry["claims"] = mistake.claims
            tree.setdefault(mistake.exercise, []).append(entry)
    return _by_lines(_digest(lesson), tree)


def _by_lines(made_from: str, tree: Mapping[str, Sequence[Any]]) -> str:
    """As JSON with one entry a line, so that a changed entry is one changed line."""
    parts = []
    for exercise in sorted(tree):
        lines = [json.dumps(entry, ensure_ascii=False, sort_keys=True) for entry in tree[exercise]]
        parts.append(f"{json.dumps(exercise)}: [\n" + ",\n".join(lines) + "\n]")
    mistakes = "{\n" + ",\n".join(parts) + "\n}"
    return f'{{"made_from": {json.dumps(made_from)}, "mistakes": {mistakes}}}\n'


def _released_path(lesson: Lesson) -> Path:
    return lesson.path.parent.parent / "course" / lesson.folder / MISTAKES_FILE


def _committed(lesson: Lesson) -> dict[str, Any]:
    try:
        tree = json.loads(_released_path(lesson).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _by_sentence(committed: Mapping[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """What checks saw of the committed mistakes, by exercise and sentence."""
    by_sentence: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with contextlib.suppress(KeyError, TypeError, AttributeError):  # damaged: made anew
        for exercise, entries in committed.get("mistakes", {}).items():
            for entry in entries:
                by_sentence.setdefault((exercise, entry["sentence"]), []).append(entry["seen"])
    return by_sentence


def _as_committed(made: list[Any], test: str, known: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What a test saw, each result as it stands in the committed file where it stands there."""
    kept_parts = list(made)
    for before in known:
        there = before.get(test, [])
        if [part[0] for part in there] != [part[0] for part in made]:
            continue
        kept_parts = [
            old if rounded(old) == old and agree(new, old) else kept
            for new, old, kept in zip(made, there, kept_parts)
        ]
    return kept_parts


def not_kept(course: Course) -> list[Lesson]:
    """The lessons of whose mistakes evidence is not in ``build/mistakes/``."""
    kinds = (True, False)
    return [
        lesson
        for lesson in course.lessons
        if not all(path.exists() for k in kinds for path in _paths(lesson, as_graded=k).values())
    ]


def keep_all(course: Course) -> Iterator[Lesson]:
    """Have the evidence of every lesson's mistakes in ``build/mistakes/``, made on all cores."""
    with ProcessPoolExecutor(initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for lesson, _ in zip(course.lessons, pool.map(keep, course.lessons)):
            yield lesson


def keep(lesson: Lesson) -> None:
    """Have the evidence of a lesson's mistakes in ``build/mistakes/``, when graded and at home."""
    for as_graded in (True, False):
        _kept(lesson, as_graded=as_graded)


def look_alike(of_lesson: Sequence[Mistake]) -> list[tuple[Mistake, Mistake]]:
    """Pairs of one exercise that no test can tell apart."""
    pairs = []
    for number, mistake in enumerate(of_lesson):
        for other in of_lesson[:number]:
            if mistake.exercise == other.exercise and all(
                same(mistake.seen[name], other.seen[name]) for name in mistake.seen
            ):
                pairs.append((other, mistake))
    return pairs
