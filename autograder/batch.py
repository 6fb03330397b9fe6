"""Grading what a class handed in: every submission gets a verdict, none disturbs another."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from autograder.autograded import autograded_notebook, written_answers
from autograder.bundle import Bundle
from autograder.class_folder import ClassError, ClassFolder, Handin
from autograder.feedback import feedback_page, feedback_path
from autograder.gradebook import manual_grades, open_gradebook, record
from autograder.grades import Verdict, write_grades
from autograder.grading import OUR_FAULT, Graded
from autograder.results import Results
from autograder.sandbox import NONE, choose
from autograder.task import Task, judge, make_task

Say = Callable[[str], None]

#: Submissions that are read ahead for each worker.
AHEAD = 3


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


def grade_class(
    folder: ClassFolder,
    *,
    assignments: list[str] | None = None,
    students: list[str] | None = None,
    workers: int | None = None,
    sandbox: str = "auto",
    again: bool = False,
    say: Say = print,
) -> ClassResult:
    """Grade ``submitted/`` of a class and write gradebook, notebooks, pages and files.

    Args:
        folder: the class.
        assignments: only these; all otherwise.
        students: only these; all otherwise.
        workers: how many submissions at a time; as many as there are cores otherwise.
        sandbox: ``auto``, ``bubblewrap`` or ``none``.
        again: grade also what has a verdict from an earlier run and did not change.
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
    limits = {name: folder.limits(name) for name in bundles}
    workers = max(1, min(workers or os.cpu_count() or 1, len(wanted)))
    say(f"Grading {len(wanted)} submissions, {workers} at a time.")
    tasks = (
        (
            handin,
            make_task(
                handin.folder,
                bundles[handin.assignment],
                folder.seed,
                limits[handin.assignment],
                tier,
            ),
        )
        for handin in wanted
    )
    judged = _judged(tasks, workers, Results(folder.root / ".results"), again)
    with open_gradebook(folder.db_url) as gradebook:
        for done, (handin, graded) in enumerate(judged, start=1):
            score = f"{graded.score:g} of {graded.max_score:g}"
            name = f"{handin.student} {handin.assignment}"
            say(f"[{done}/{len(wanted)}] {name}: {graded.status}, {score}")
            if graded.status == OUR_FAULT:
                say(graded.reason)
            else:
                verdict = Verdict(handin.student, graded)
                _publish(folder.root, verdict, bundles[handin.assignment], gradebook)
            # What the pages needed is not kept in memory for a whole class.
            result.verdicts.append(Verdict(handin.student, replace(graded, runs=(), cells=())))
    judged_now = [one for one in result.verdicts if one.graded.status != OUR_FAULT]
    write_grades(folder.root, folder.title, tier, judged_now)
    return result


def _judged(
    tasks: Iterator[tuple[Handin, Task]], workers: int, results: Results, again: bool
) -> Iterator[tuple[Handin, Graded]]:
    """The verdicts as they come. What breaks a worker is our fault, and named.

    Tasks are read as they are needed: a class's notebooks are not all in memory at once.
    """
    suspects: list[tuple[Handin, Task]] = []
    with _pool(workers) as pool:
        running: dict[Future[Graded], tuple[Handin, Task]] = {}
        more = True
        while more or running:
            while more and not suspects and len(running) < AHEAD * workers:
                handin, task = next(tasks, (None, None))
                if handin is None or task is None:
                    more = False
                elif not again and (kept := results.find(task.key)) is not None:
                    yield handin, kept
                else:
                    running[pool.submit(judge, task)] = handin, task
            more = more and not suspects
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                handin, task = running.pop(future)
                try:
                    graded = future.result()
                except BrokenProcessPool:
                    suspects.append((handin, task))
                except Exception as error:
                    yield handin, _our_fault(handin, error)
                else:
                    results.keep(task.key, graded)
                    yield handin, graded
    if suspects:  # a worker has ended: each of its tasks again, in a worker of its own
        for handin, task in suspects:
            with _pool(1) as alone:
                try:
                    graded = alone.submit(judge, task).result()
                except Exception as error:
                    yield handin, _our_fault(handin, error)
                else:
                    results.keep(task.key, graded)
                    yield handin, graded
        yield from _judged(tasks, workers, results, again)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _our_fault(handin: Handin, error: Exception) -> Graded:
    details = "".join(traceback.format_exception(error))
    return Graded(handin.assignment, "", OUR_FAULT, reason=details[-2000:])


def _publish(root: Path, verdict: Verdict, bundle: Bundle, gradebook: Gradebook) -> None:
    """Write what one verdict means: autograded notebook, gradebook, feedback page.

    The notebook is replaced last: it says for which answers a person's points were given.
    """
    graded = verdict.graded
    path = root / "autograded" / verdict.student / graded.assignment / f"{graded.notebook}.ipynb"
    notebook = autograded_notebook(graded, bundle)
    before = written_answers(nbformat.read(path, as_version=4)) if path.exists() else {}
    after = written_answers(notebook)
    same = {name for name, text in after.items() if before.get(name) == text}
    record(gradebook, verdict.student, graded, same)
    manual = manual_grades(gradebook, verdict.student, graded.assignment)
    _replace(feedback_path(root, verdict), feedback_page(verdict, bundle, manual))
    _replace(path, nbformat.writes(notebook) + "\n")


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, path)
