"""Where submissions are graded: on this machine's cores, or on a Dask cluster (:mod:`.cluster`).

Both are executors of ``concurrent.futures``; a task needs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from multiprocessing import get_context

from autograder.grade.result import Result
from autograder.grade.task import Task
from autograder.processes import processes


@contextmanager
def local(workers: int) -> Iterator[Executor]:
    """Processes of this machine, each with a fork server of its own.

    They are forked from a server that has imported what grading needs, once for all.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["autograder.grade.worker"])
    with processes(workers, context=context) as pool:
        yield pool


def size(executor: Executor, workers: int) -> int:
    """How many tasks run at a time: ``workers`` here, there as many as the cluster has now."""
    client = getattr(executor, "_client", None)
    return max(1, len(client.nthreads())) if client is not None else workers


def grade_task(task: Task) -> Result:
    """Grade one submission, in a worker: what that needs is imported there."""
    from autograder.grade.worker import grade_task as grade_it_here

    return grade_it_here(task)
