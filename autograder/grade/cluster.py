"""A Dask cluster that grades: how it is reached, and what of its answers is believed.

Whoever reaches the port of a Dask scheduler runs code on its workers and on whoever asks it. So it
is asked with certificates, which each side shows the other, or on this machine alone. A verdict
comes back as text, and is looked at before it counts. That is no wall against a worker: Dask itself
unpickles what travels, so every machine that holds the key is trusted as the grader is.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from autograder.errors import WrongUse
from autograder.grade.result import Result
from autograder.grade.result_cache import as_text, from_text
from autograder.grade.task import Task

#: Seconds to wait for a Dask scheduler.
CONNECT_SECONDS = 15
#: What is this machine, whatever else is in its network.
_HERE = ("127.0.0.1", "::1", "localhost")


class SchedulerError(WrongUse):
    """A Dask scheduler cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Certificates:
    """Files of PEM by which the machines of a cluster know each other; ``in_the_clear``: without.

    With ``ca`` its certificate is meant, with ``cert`` and ``key`` this machine's own.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""
    in_the_clear: bool = False


@contextmanager
def dask(address: str, certificates: Certificates = Certificates()) -> Iterator[Executor]:
    """The workers of an existing Dask cluster.

    They need this package and, for a sandbox, bubblewrap; start them with one thread each:
    ``dask worker ADDRESS --nthreads 1 --no-nanny``.

    Args:
        address: of the scheduler, such as ``tls://10.0.0.7:8786``.
        certificates: by which it is known.

    Raises:
        SchedulerError: dask is not installed, nothing answers there, or it is neither this machine
            nor known by a certificate.
    """
    try:
        from distributed import Client
    except ImportError:
        raise SchedulerError(
            "--scheduler needs Dask: pip install 'attention-course-autograder[cluster]'"
        ) from None
    security = _security(address, certificates)
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, TimeoutError, ValueError) as error:
        raise SchedulerError(
            f"no Dask scheduler answers at {address}: {error}. Start one with `dask scheduler`, "
            "and workers with `dask worker ADDRESS --nthreads 1 --no-nanny`."
        ) from None
    with client, client.get_executor(pure=False, retries=0) as executor:
        yield _OfText(executor, client)


def _security(address: str, certificates: Certificates) -> Any:
    """Dask's own, from the certificates; None where none are needed."""
    from distributed import Security

    if certificates.ca or certificates.cert or certificates.key:
        named = {"ca": certificates.ca, "cert": certificates.cert, "key": certificates.key}
        for name, file in named.items():
            if not Path(file).is_file():
                given = file or "nothing"
                raise SchedulerError(
                    f"class.toml: cluster.{name} should name a file of PEM, and {given} is none"
                )
        return Security(
            tls_ca_file=certificates.ca,
            tls_client_cert=certificates.cert,
            tls_client_key=certificates.key,
            require_encryption=True,
        )
    if certificates.in_the_clear or urlsplit(address).hostname in _HERE:
        return None
    raise SchedulerError(
        f"{address} is another machine, and without certificates whoever is in between can read "
        "and change all that is graded, and run code here. Name them in class.toml: [cluster] with "
        "ca, cert and key (see docs/many-machines.md); in a network of your own that nobody else "
        "is in, in_the_clear = true"
    )


class _OfText(Executor):
    """An executor of Dask whose answers come as text, and are looked at."""

    def __init__(self, executor: Executor, client: Any) -> None:
        self._executor, self._client = executor, client

    def submit(self, grade_task: Any, task: Task) -> Future[Result]:  # type: ignore[override]
        """The verdict of a worker on a task; ``grade_task`` is what runs here."""
        mine: Future[Result] = Future()
        theirs = self._executor.submit(graded_as_text, task)
        theirs.add_done_callback(partial(_arrived, task, mine))
        return mine


def graded_as_text(task: Task) -> str:
    """Grade one submission, in a worker: what that needs is imported there."""
    from autograder.grade.worker import grade_task

    return as_text(grade_task(task))


def _arrived(task: Task, mine: Future[Result], theirs: Future[str]) -> None:
    try:
        mine.set_result(believed(theirs.result(), task))
    except BaseException as error:
        mine.set_exception(error)


def believed(text: Any, task: Task) -> Result:
    """A verdict that a worker sent.

    Raises:
        ValueError: it is none on this task.
    """
    try:
        result = from_text(text)
        worth = {test.grade_id: test.points for test in task.bundle.tests}
        same = {test.grade_id: test.max_points for test in result.tests} == worth
        possible = all(0 <= test.points <= worth[test.grade_id] for test in result.tests)
        about = (result.assignment, result.reached_under, len(result.tests))
        if same and possible and about == (task.bundle.assignment, task.under, len(worth)):
            return result
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise ValueError("a worker sent what is no verdict on this submission")
