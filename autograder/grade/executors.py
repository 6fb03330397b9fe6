"""Where submissions are graded: on this machine's cores, or on a Dask cluster.

Both are executors of ``concurrent.futures``; a task needs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from multiprocessing import get_context

from autograder.errors import WrongUse
from autograder.grade.result import Result
from autograder.grade.task import Task
from autograder.processes import processes

#: Seconds to wait for a Dask scheduler.
CONNECT_SECONDS = 15


class SchedulerError(WrongUse):
    """A Dask scheduler cannot be used; the message says what to do."""


@contextmanager
def local(workers: int) -> Iterator[Executor]:
    """Processes of this machine, each with a zygote of its own.

    They are forked from a server that has imported what grading needs, once for all.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["autograder.grade.worker"])
    with processes(workers, context=context) as pool:
        yield pool


@contextmanager
def dask(address: str) -> Iterator[Executor]:
    """The workers of an existing Dask cluster.

    They need this package and, for a sandbox, bubblewrap; start them with one thread each:
    ``dask worker ADDRESS --nthreads 1 --no-nanny``.

    Args:
        address: of the scheduler, such as ``tcp://10.0.0.7:8786``.

    Raises:
        SchedulerError: dask is not installed, or nothing answers there.
    """
    try:
        from distributed import Client
    except ImportError:
        raise SchedulerError(
            "--scheduler needs Dask: pip install 'attention-course-autograder[cluster]'"
        ) from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise SchedulerError(
            f"no Dask scheduler answers at {address}: {error}. Start one with `dask scheduler`, "
            "and workers with `dask worker ADDRESS --nthreads 1 --no-nanny`."
        ) from None
    with client, client.get_executor(pure=False, retries=0) as executor:
        yield executor


def size(executor: Executor, workers: int) -> int:
    """How many tasks run at a time: ``workers`` here, there as many as the cluster has now."""
    client = getattr(executor, "_client", None)
    return max(1, len(client.nthreads())) if client is not None else workers


def judge(task: Task) -> Result:
    """Grade one submission, in a worker: what that needs is imported there."""
    from autograder.grade.worker import judge as judge_here

    return judge_here(task)
