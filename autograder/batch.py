"""Grading what a class handed in: every submission gets a verdict, none disturbs another."""

from __future__ import annotations

import atexit
import os
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import nbformat

from autograder.autograded import autograded_notebook, written_answers
from autograder.boxes import Boxes
from autograder.bundle import Bundle
from autograder.class_folder import ClassError, ClassFolder, Handin
from autograder.feedback import feedback_page, feedback_path
from autograder.gradebook import manual_grades, open_gradebook, record
from autograder.grades import Verdict, write_grades
from autograder.grading import OUR_FAULT, Graded, Limits, grade
from autograder.sandbox import NONE, choose
from autograder.submission import Missing, Unreadable, find_notebook, read_file
from autograder.tester import Tester

Say = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """One submission to grade. A worker needs nothing else."""

    student: str
    source: Path
    folder: Path
    seed: int
    limits: Limits
    sandbox: str


@dataclass
class ClassResult:
    """What came of grading a class."""

    verdicts: list[Verdict] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    sandbox: str = NONE

    @property
    def not_judged(self) -> list[Verdict]:
        """Submissions that failed through no fault of the student's."""
        return [one for one in self.verdicts if one.graded.status == OUR_FAULT]


@cache
def _bundle(source: Path) -> Bundle:
    return Bundle.load(source)


@cache
def _tester(source: Path, seed: int, seconds: float) -> Tester:
    return Tester(_bundle(source), seed, seconds)


@cache
def _boxes(sandbox: str) -> Boxes:
    boxes = Boxes(sandbox)
    atexit.register(boxes.close)
    return boxes


def judge(task: Task) -> Graded:
    """Grade one submission; runs in a worker."""
    bundle = _bundle(task.source)
    data: bytes | Missing | Unreadable
    flags: list[str] = []
    try:
        if task.folder.is_symlink():
            raise Unreadable("The submission's folder is a link. Hand in the files themselves.")
        path, flags = find_notebook(task.folder, bundle)
        data = read_file(path)
    except (Missing, Unreadable) as problem:
        data = problem
    return grade(
        data,
        bundle,
        make_box=_boxes(task.sandbox).start,
        seed=task.seed,
        limits=task.limits,
        flags=tuple(flags),
        tester=_tester(task.source, task.seed, task.limits.test),
    )


def grade_class(
    folder: ClassFolder,
    *,
    assignments: list[str] | None = None,
    students: list[str] | None = None,
    workers: int | None = None,
    sandbox: str = "auto",
    say: Say = print,
) -> ClassResult:
    """Grade ``submitted/`` of a class and write gradebook, notebooks, pages and files.

    Args:
        folder: the class.
        assignments: only these; all otherwise.
        students: only these; all otherwise.
        workers: how many submissions at a time; as many as there are cores otherwise.
        sandbox: ``auto``, ``bubblewrap`` or ``none``.
        say: is told about progress.

    Raises:
        ClassError: an assignment or a student that the class does not have.
        NoSandbox: student code cannot be confined here and ``none`` was not asked for.
    """
    for name in assignments or []:
        folder.bundle(name)  # complains about a name that is not there
    handins, strangers = folder.handins()
    known = {handin.student for handin in handins}
    for student in students or []:
        if student not in known:
            raise ClassError(
                f"{student!r} has handed nothing in: there is no {folder.root}/submitted/{student}/"
            )
    wanted = [
        handin
        for handin in handins
        if (not assignments or handin.assignment in assignments)
        and (not students or handin.student in students)
    ]
    tier = choose(sandbox)
    result = ClassResult(strangers=strangers, sandbox=tier)
    if not wanted:
        say("Nothing to grade: no submission matches.")
        return result
    bundles = {name: folder.bundle(name) for name in {handin.assignment for handin in wanted}}
    workers = max(1, min(workers or os.cpu_count() or 1, len(wanted)))
    say(f"Grading {len(wanted)} submissions, {workers} at a time.")
    with open_gradebook(folder.db_url) as gradebook:
        for done, (handin, graded) in enumerate(_judged(folder, wanted, workers, tier), start=1):
            verdict = Verdict(handin.student, graded)
            result.verdicts.append(verdict)
            score = f"{graded.score:g} of {graded.max_score:g}"
            name = f"{handin.student} {handin.assignment}"
            say(f"[{done}/{len(wanted)}] {name}: {graded.status}, {score}")
            if graded.status == OUR_FAULT:
                say(graded.reason)
                continue
            bundle = bundles[handin.assignment]
            same = _write_autograded(folder.root, verdict, bundle)
            record(gradebook, handin.student, graded, same)
            manual = manual_grades(gradebook, handin.student, handin.assignment)
            page = feedback_path(folder.root, verdict)
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(feedback_page(verdict, bundle, manual), encoding="utf-8")
    judged = [one for one in result.verdicts if one.graded.status != OUR_FAULT]
    write_grades(folder.root, folder.title, tier, judged)
    return result


def _judged(
    folder: ClassFolder, handins: list[Handin], workers: int, sandbox: str
) -> Iterator[tuple[Handin, Graded]]:
    """The verdicts as they come. What breaks a worker is our fault, and named."""
    pending = list(handins)
    while pending:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            futures: dict[Future[Graded], Handin] = {
                pool.submit(judge, _task(folder, handin, sandbox)): handin for handin in pending
            }
            broken: list[Handin] = []
            for future in as_completed(futures):
                handin = futures[future]
                try:
                    yield handin, future.result()
                except BrokenProcessPool:
                    broken.append(handin)
                except Exception as error:
                    yield handin, _our_fault(handin, error)
        if len(broken) == len(pending) and workers == 1:
            yield broken[0], _our_fault(broken[0], RuntimeError("the worker's process ended"))
            broken = broken[1:]
        pending, workers = broken, 1


def _task(folder: ClassFolder, handin: Handin, sandbox: str) -> Task:
    return Task(
        handin.student,
        folder.root / "source" / handin.assignment,
        handin.folder,
        folder.seed,
        folder.limits(handin.assignment),
        sandbox,
    )


def _our_fault(handin: Handin, error: Exception) -> Graded:
    details = "".join(traceback.format_exception(error))
    return Graded(handin.assignment, "", OUR_FAULT, reason=details[-2000:])


def _write_autograded(root: Path, verdict: Verdict, bundle: Bundle) -> set[str]:
    """Write the autograded notebook; return the written answers that did not change."""
    graded = verdict.graded
    path = root / "autograded" / verdict.student / graded.assignment / f"{graded.notebook}.ipynb"
    before = written_answers(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(autograded_notebook(graded, bundle), path)
    after = written_answers(path)
    return {name for name, text in after.items() if before.get(name) == text}
