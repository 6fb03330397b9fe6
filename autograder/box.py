"""A box: a separate process that holds one student's notebook.

The grader sends requests and reads plain data; see :mod:`autograder.inside_box` for the
other side. A box that dies or does not answer in time is reported as such, and can be
started again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder import channel
from autograder.wire import ProtocolError

#: Seconds a fresh box may take until it is ready: mostly the import of torch.
START_SECONDS = 120.0


class BoxFailure(BaseException):
    """The box gave no answer.

    Not an ``Exception``: a test that expects an error must not take this for one.
    """


class BoxDied(BoxFailure):
    """The process ended."""


class BoxTimeout(BoxFailure):
    """The answer did not come in time; the process was ended."""


@dataclass(frozen=True)
class BoxError:
    """An exception that the student's code raised."""

    types: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.types[0]}: {self.text}" if self.text else self.types[0]


@dataclass(frozen=True)
class Reply:
    """What a box answered.

    ``missing`` means that the name is not defined; otherwise there is an error or a value.
    """

    value: Any = None
    error: BoxError | None = None
    missing: bool = False
    output: str = ""


class Box:
    """One running box. Use it as a context manager, or call :meth:`close`."""

    def __init__(self, folder: Path) -> None:
        """Start a process whose working folder is ``folder``.

        Raises:
            BoxFailure: it did not become ready.
        """
        mine, its = socket.socketpair()
        self._channel = mine
        self._count = 0
        environment = {
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "MPLBACKEND": "agg",
            "MPLCONFIGDIR": str(folder),
            "OMP_NUM_THREADS": "1",
            "PATH": os.defpath,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "autograder.inside_box", str(its.fileno())],
            cwd=folder,
            env=environment,
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        its.close()
        self._receive(0, time.monotonic() + START_SECONDS)

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and all it started in its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._channel.close()

    def run(self, source: str, seconds: float) -> Reply:
        """Run a notebook cell."""
        return self._ask({"op": "run", "source": source}, seconds)

    def call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], seconds: float
    ) -> Reply:
        """Call one of the student's names with plain data.

        Raises:
            ProtocolError: an argument does not travel (a mistake of the test).
            BoxFailure: no answer.
        """
        return self._ask({"op": "call", "name": name, "args": args, "kwargs": kwargs}, seconds)

    def probe(
        self,
        source: str,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        seconds: float,
    ) -> Reply:
        """Define the function ``name`` by ``source`` beside the student's names and call it."""
        request = {"op": "probe", "source": source, "name": name, "args": args, "kwargs": kwargs}
        return self._ask(request, seconds)

    def get(self, name: str, seconds: float) -> Reply:
        """The value of one of the student's names."""
        return self._ask({"op": "get", "name": name}, seconds)

    def _ask(self, request: dict[str, Any], seconds: float) -> Reply:
        deadline = time.monotonic() + seconds
        self._count += 1
        try:
            channel.send(self._channel, {"id": self._count, **request}, deadline=deadline)
        except channel.Late:
            raise self._ended(BoxTimeout(f"no answer within {seconds:g} seconds")) from None
        except channel.Closed:
            raise self._ended(BoxDied(self._epitaph())) from None
        answer = self._receive(self._count, deadline)
        output = answer.get("output", "")
        output = output if isinstance(output, str) else ""
        if answer.get("missing") is True:
            return Reply(missing=True, output=output)
        error = answer.get("error")
        if error is None:
            return Reply(value=answer.get("value"), output=output)
        return Reply(error=_box_error(error), output=output)

    def _receive(self, number: int, deadline: float) -> dict[str, Any]:
        seconds = max(0.0, deadline - time.monotonic())
        try:
            answer = channel.receive(self._channel, deadline=deadline)
        except channel.Late:
            raise self._ended(BoxTimeout(f"no answer within {seconds:g} seconds")) from None
        except channel.Closed:
            raise self._ended(BoxDied(self._epitaph())) from None
        except ProtocolError as error:
            raise self._ended(BoxDied(f"the process sent bytes of its own ({error})")) from None
        if not isinstance(answer, dict) or answer.get("id") != number:
            raise self._ended(BoxDied("the process sent an answer nobody asked for"))
        return answer

    def _epitaph(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(timeout=2)
            if status < 0:
                with contextlib.suppress(ValueError):
                    return f"the process was ended by {signal.Signals(-status).name}"
            return f"the process ended itself with status {status}"
        return "the process hung up"

    def _ended(self, failure: BoxFailure) -> BoxFailure:
        self.close()
        return failure


def _box_error(error: Any) -> BoxError:
    types = error.get("types") if isinstance(error, dict) else None
    text = error.get("text") if isinstance(error, dict) else None
    if not isinstance(types, list) or not types or not all(isinstance(t, str) for t in types):
        types = ["Exception"]
    return BoxError(tuple(t[:80] for t in types[:20]), text[:2000] if isinstance(text, str) else "")
