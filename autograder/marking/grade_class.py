"""Grading what a class handed in: every submission gets a verdict, none disturbs another."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from nbformat.v4 import reads_json
from nbgrader.api import Gradebook

from autograder.box.sandbox import NONE, choose
from autograder.classroom.folder import ClassError, ClassFolder, Handin
from autograder.classroom.gradebook import enrol, open_gradebook, record, stops_the_class
from autograder.classroom.grades_file import NOTHING_HANDED_IN, GradedSubmission, write_grades
from autograder.classroom.late import Standing
from autograder.course.bundle import Bundle
from autograder.course.libraries import ask_for_libraries
from autograder.files import write_whole
from autograder.grade.cluster import dask
from autograder.grade.executors import grade_task, local, size
from autograder.grade.result import MISSING, NO_NOTEBOOK, OUR_FAULT, Result, TestResult
from autograder.grade.result_cache import ResultCache
from autograder.grade.task import Task, make_task
from autograder.marking.autograded import autograded_notebook, written_answers
from autograder.marking.exchange import name_for_exchange
from autograder.marking.feedback import feedback_path, settled_page
from autograder.marking.progress import Progress

#: Submissions that are read ahead for each worker.
AHEAD = 3


@dataclass
class ClassResult:
    """What came of grading a class."""

    submissions: list[GradedSubmission] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    sandbox: str = NONE
    summary: str = ""

    @property
    def not_judged(self) -> list[GradedSubmission]:
        """Submissions that failed through no fault of the student's."""
        return [
            submission for submission in self.submissions if submission.result.status == OUR_FAULT
        ]


def grade_class(
    folder: ClassFolder,
    *,
    assignments: Sequence[str] | None = None,
    students: Sequence[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    sandbox: str = "auto",
    again: bool = False,
    quiet: bool = False,
) -> ClassResult:
    """Grade ``submitted/`` of a class and write gradebook, notebooks, pages and files.

    Args:
        folder: the class.
        assignments: only these; all otherwise.
        students: only these; all otherwise.
        workers: how many submissions at a time; as many as there are cores otherwise.
        scheduler: address of a Dask scheduler whose workers grade instead.
        sandbox: ``auto``, ``bubblewrap`` or ``none``.
        again: grade also what has a verdict from an earlier run and did not change.
        quiet: say nothing about progress.

    Raises:
        ClassError: an assignment or a student that the class does not have.
        NoSandbox: student code cannot be confined here and ``none`` was not asked for.
        SchedulerError: there is no such scheduler.
        LibraryLacking: an assignment needs a library that is not installed here.
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
    _ = (
        folder.due,
        folder.late_policy,
        folder.roster,
        folder.extensions,
    )  # complains before anything is written
    backend = choose(sandbox)
    result = ClassResult(strangers=strangers, sandbox=backend)
    absent = [] if students else _absent(folder, handins, assignments)
    if not wanted and not absent:
        return result
    bundles = {name: folder.bundle(name) for name in {handin.assignment for handin in wanted}}
    if scheduler is None:  # workers of a cluster say for themselves what they lack
        for name, bundle in bundles.items():
            ask_for_libraries(name, bundle.setup)
    limits = {name: folder.limits(name) for name in bundles}
    workers = max(1, min(workers or os.cpu_count() or 1, len(wanted)))
    tasks = (
        (
            handin,
            partial(make_task, handin.folder, bundles[name], folder.seed, limits[name], backend),
        )
        for handin in wanted
        for name in [handin.assignment]
    )
    where = (
        partial(local, workers) if scheduler is None else partial(dask, scheduler, folder.cluster)
    )
    verdicts = _as_they_come(tasks, where, workers, ResultCache(folder.root / ".results"), again)
    progress = Progress(len(wanted), quiet=quiet)
    with progress, open_gradebook(folder.db_url) as gradebook:
        enrol(gradebook, folder.roster)
        for handin, graded, kept in verdicts:
            submission = GradedSubmission(handin.student, graded)
            if graded.status != OUR_FAULT:
                try:
                    publish(folder, submission, bundles[handin.assignment], gradebook)
                except Exception as error:
                    gradebook.db.rollback()
                    submission = GradedSubmission(handin.student, _our_fault(handin, error))
            progress.tell(submission, kept)
            # What the pages needed is not kept in memory for a whole class.
            submission.result = replace(submission.result, runs=(), cells=())
            result.submissions.append(submission)
    result.summary = progress.summary()
    result.submissions += absent
    graded_now = [
        submission for submission in result.submissions if submission.result.status != OUR_FAULT
    ]
    whole = [] if students else (assignments or folder.assignments)
    write_grades(folder.root, folder.title, backend, graded_now, whole)
    return result


def _absent(
    folder: ClassFolder, handins: list[Handin], only: Sequence[str] | None
) -> list[GradedSubmission]:
    """A graded submission for each student on the roster who handed in nothing that is due.

    Something is due when its date has passed, or, where it has none, when anybody on the
    roster has handed it in.
    """
    here = [member for member in folder.roster.members if not member.withdrawn]
    there = {(handin.student, handin.assignment) for handin in handins}
    now = datetime.now(UTC)
    absent = []
    for name in only or folder.assignments:
        begun = any((member.id, name) in there for member in here)
        lacking = [
            member
            for member in here
            if (member.id, name) not in there
            and (begun if (due := folder.due_for(member.id, name)) is None else due <= now)
        ]
        if not lacking:
            continue
        bundle = folder.bundle(name)
        lost = tuple(
            TestResult(test.grade_id, test.exercise, 0.0, test.points, MISSING, NOTHING_HANDED_IN)
            for test in bundle.tests
        )
        graded = Result(
            name,
            bundle.notebook_name,
            NO_NOTEBOOK,
            NOTHING_HANDED_IN,
            lost,
            max_score=bundle.max_score,
        )
        nothing = Standing(None, manual=0.0, penalty=0.0, total=0.0, out_of=bundle.out_of)
        absent += [GradedSubmission(member.id, graded, nothing) for member in lacking]
    return absent


Where = Callable[[], AbstractContextManager[Executor]]


Verdict = tuple[Handin, Result, bool]


@dataclass
class _Verdicts:
    """What comes of tasks: kept, and given to everybody whose work it is."""

    results: ResultCache
    #: By the key of a task that runs: others whose task is the same, such as those of a group.
    twins: dict[str, list[Handin]] = field(default_factory=dict)

    def of(self, handin: Handin, task: Task, future: Future[Result]) -> Iterator[Verdict]:
        """The verdict that a worker came to, for each whose it is."""
        for student in (handin, *self.twins.pop(task.key, ())):
            yield student, self._outcome(student, task, future), False

    def _outcome(self, handin: Handin, task: Task, future: Future[Result]) -> Result:
        try:
            graded = future.result()
            if not graded.out_of_time:  # another time it may be in time
                self.results.keep(task.key, graded)
            self.results.note(task.key, _name(handin))
        except Exception as error:
            return _our_fault(handin, error)
        return graded

    def kept(self, handin: Handin, task: Task) -> Verdict | None:
        """One of an earlier run, and whether this student had it then."""
        kept = self.results.find(task.key, task.under)
        if kept is None:
            return None
        before = self.results.is_of(task.key, _name(handin))
        self.results.note(task.key, _name(handin))
        return handin, kept, before


def _as_they_come(
    tasks: Iterator[tuple[Handin, Callable[[], Task]]],
    where: Where,
    workers: int,
    results: ResultCache,
    again: bool,
) -> Iterator[Verdict]:
    """The verdicts as they come, and whether each was kept from an earlier run.

    Tasks are read as they are needed: a class's notebooks are not all in memory at once. What
    goes wrong with one submission, also what breaks a worker, is named, and the others go on.
    """
    verdicts = _Verdicts(results)
    suspects: list[tuple[Handin, Task]] = []
    asleep: list[tuple[Handin, Task]] = []
    with where() as executor:
        running: dict[Future[Result], tuple[Handin, Task]] = {}
        more = True
        while more or running:
            ahead = AHEAD * size(executor, workers)  # workers of a cluster come and go
            while more and len(running) < ahead:
                handin, read = next(tasks, (None, None))
                if handin is None or read is None:
                    more = False
                    continue
                try:
                    task = read()
                except Exception as error:
                    yield handin, _our_fault(handin, error), False
                    continue
                if not again and (kept := verdicts.kept(handin, task)) is not None:
                    yield kept
                elif task.key in verdicts.twins:
                    verdicts.twins[task.key].append(handin)
                else:
                    verdicts.twins[task.key] = []
                    running[executor.submit(grade_task, task)] = handin, task
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                handin, task = running.pop(future)
                if isinstance(future.exception(), BrokenExecutor):
                    suspects.append((handin, task))
                    more = False
                elif _gave_up(future) and not is_quiet(workers):
                    asleep.append((handin, task))
                else:
                    yield from verdicts.of(handin, task, future)
    # A worker has ended, or was too busy: each of its tasks again, with nothing of ours beside it.
    for handin, task in (*asleep, *suspects):
        with local(1) as alone:
            yield from verdicts.of(handin, task, alone.submit(grade_task, task))
    if suspects:
        yield from _as_they_come(tasks, where, workers, results, again)


def _gave_up(future: Future[Result]) -> bool:
    return future.exception() is None and future.result().gave_up


def is_quiet(workers: int) -> bool:
    """Whether a submission that was graded here had a processor for itself."""
    return workers == 1 and os.getloadavg()[0] <= (os.cpu_count() or 1)


def _name(handin: Handin) -> str:
    return f"{handin.student}/{handin.assignment}"


def _our_fault(handin: Handin, error: Exception) -> Result:
    """What is said of a submission that could not be judged.

    Raises:
        Exception: the error itself, where it stops the whole class.
    """
    if stops_the_class(error):
        raise error
    details = "".join(traceback.format_exception(error))
    return Result(handin.assignment, "", OUR_FAULT, reason=details[-2000:])


def publish(
    folder: ClassFolder, submission: GradedSubmission, bundle: Bundle, gradebook: Gradebook
) -> None:
    """Write what came of one submission: autograded notebook, gradebook, feedback page.

    It gets its standing and its notes. The notebook is replaced last: it says for
    which answers a person's points were given.
    """
    graded = submission.result
    place = folder.root / "autograded" / submission.student / graded.assignment
    path = place / f"{graded.notebook}.ipynb"
    notebook = autograded_notebook(graded, bundle)

    def same_answers() -> set[str]:
        if not path.exists():
            return set()
        before = written_answers(reads_json(path.read_text(encoding="utf-8")))
        after = written_answers(notebook)
        return {name for name, text in after.items() if before.get(name) == text}

    record(gradebook, submission.student, graded, same_answers)
    page = settled_page(submission, bundle, gradebook, folder)
    page_path = feedback_path(folder.root, submission)
    write_whole(page_path, page)
    handed_in = folder.root / "submitted" / submission.student / graded.assignment
    for made in (page_path, path):  # the Formgrader makes the folder of the page from the other
        name_for_exchange(handed_in, made)
    write_whole(path, json.dumps(notebook, ensure_ascii=False) + "\n")
