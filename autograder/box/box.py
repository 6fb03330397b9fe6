"""A box: a separate process that holds one student's notebook.

The grader sends requests and reads plain data; see :mod:`autograder.box.inside` for the
other side. A box that dies or does not answer in time is reported as such, and can be
started again.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.box import channel
from autograder.box.caps import (
    MAX_CALLS,
    MAX_CHANGED,
    MAX_ERROR_CHARACTERS,
    MAX_OUTPUT_CHARACTERS,
    ProtocolError,
)
from autograder.box.confinement import BoxLimits
from autograder.box.patience import Patience
from autograder.box.sandbox import ForkServer, NoSandbox
from autograder.text import plain, plain_line

#: Seconds a fresh box may take until it is ready: a fork, on a busy machine.
START_SECONDS = 60.0

#: Seconds in which a box may say how a snapshot of it ended.
STATUS_SECONDS = 10.0

#: Bytes that the processes of a box may take together.
MAX_MEMORY = BoxLimits().memory


#: Answers what a box asks while it works: plain data from plain data.
Helper = Callable[[Any], dict[str, Any]]


class BoxFailure(BaseException):
    """The box gave no answer.

    Not an ``Exception``: a test that expects an error must not take this for one.
    """


class BoxDied(BoxFailure):
    """The process ended."""


class BoxTimeout(BoxFailure):
    """The answer did not come in time, see :mod:`.patience`; the process was ended."""


def in_line(line: str, below: bool) -> str:
    """Where an exception arose, for a sentence; ``below`` as in :class:`BoxError`."""
    return f"in what your line `{line}` calls" if below else f"in your line `{line}`"


@dataclass(frozen=True)
class BoxError:
    """An exception that the student's code raised; ``by_hand``: with a statement of its own.

    ``line`` is the line of a cell in which it arose, where there is one; ``below``: in what that
    line calls: of the test's, such as a model that the code was given, or of another cell;
    ``means``: what that means in words, as the box says.
    """

    types: tuple[str, ...]
    text: str
    by_hand: bool = False
    line: str = ""
    below: bool = False
    means: str = ""

    @property
    def place(self) -> str:
        """That line, in a sentence; or ""."""
        return in_line(line, self.below) if (line := self.line.strip()) else ""

    def __str__(self) -> str:
        return f"{self.types[0]}: {self.text}" if self.text else self.types[0]


@dataclass(frozen=True)
class Reply:
    """What a box answered.

    ``missing`` means that the name is not defined; otherwise there is an error or a value.
    ``changed``: what a cell changed for all code after it, in words.
    """

    value: Any = None
    error: BoxError | None = None
    missing: bool = False
    output: str = ""
    changed: tuple[str, ...] = ()


class Box:
    """One running box. Use it as a context manager, or call :meth:`close`."""

    def __init__(
        self, fork_server: ForkServer, files: dict[str, bytes], most_memory: int = MAX_MEMORY
    ) -> None:
        """Fork a box; the one before of the same fork server ends.

        Args:
            fork_server: what it is forked from.
            files: what lies beside the notebook.
            most_memory: bytes that its processes may take together.

        Raises:
            BoxFailure: it did not become ready.
        """
        mine, its = socket.socketpair()
        self._begin(fork_server, mine, most_memory)
        fork_server.fork(its.fileno(), most_memory)
        its.close()
        self._ask({"op": "enter", "files": files}, START_SECONDS)

    def _begin(self, fork_server: ForkServer, mine: socket.socket, most_memory: int) -> None:
        self._fork_server = fork_server
        self._channel = mine
        self._most_memory = most_memory
        self._count = 0
        self._next_look = time.monotonic() + channel.WATCH_SECONDS
        self._ended = False
        self._helper: Helper | None = None
        self.patience = Patience(fork_server.taken)
        #: For a snapshot: the box that it was taken of, and the how manieth it is.
        self._taken_of: tuple[Box, int] | None = None
        self._snapshots = 0

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the box and everything in it."""
        if not self._ended:
            self._ended = True
            self._channel.close()
            if self._taken_of is not None:
                return  # it ends with the box that it was taken of
            with contextlib.suppress(NoSandbox, OSError):  # the fork server ended with it
                self._fork_server.end_box()

    @property
    def ended(self) -> bool:
        """Whether it answers no more."""
        return self._ended

    def run(self, source: str, seconds: float) -> Reply:
        """Run a notebook cell."""
        return self._ask({"op": "run", "source": source}, seconds)

    def run_plainly(self, source: str, seconds: float) -> Reply:
        """Run code as Python does, without the notebook's shell around it."""
        return self._ask({"op": "run plainly", "source": source}, seconds)

    def call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], seconds: float
    ) -> Reply:
        """Call one of the student's names with plain data.

        Raises:
            ProtocolError: an argument does not travel (a mistake of the test).
            BoxFailure: no answer.
        """
        return self._ask({"op": "call", "name": name, "args": args, "kwargs": kwargs}, seconds)

    def calls(self, name: str, calls: Sequence[Sequence[Any]], seconds: float) -> Reply:
        """Call one of the student's names several times, until a call raises; the reply to that one
        has as its value what the others returned."""
        return self._ask({"op": "calls", "name": name, "calls": list(calls)}, seconds)

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

    def snapshot(self) -> Box | None:
        """The box as it is now, to be asked later while this one goes on.

        It ends with this one. None where it cannot be had: code that has started threads
        cannot be copied.

        Raises:
            BoxFailure: no answer.
        """
        mine, its = socket.socketpair()
        with its:
            reply = self._ask({"op": "snapshot"}, START_SECONDS, pass_on=its.fileno())
        if reply.value is not True:
            mine.close()
            return None
        taken = Box.__new__(Box)
        taken._begin(self._fork_server, mine, self._most_memory)
        taken._taken_of = self, self._snapshots
        self._snapshots += 1
        return taken

    def put_proxy(self, name: str, kind: str, helper: Helper, seconds: float) -> Reply:
        """Bind one of the student's names to what asks the grader when it is called.

        Args:
            name: of an exercise.
            kind: ``function`` or ``class``.
            helper: answers what the box asks, from now on.
            seconds: for the answer to this request.
        """
        self._helper = helper
        return self._ask({"op": "stand in", "name": name, "kind": kind}, seconds)

    def get(self, name: str, seconds: float) -> Reply:
        """The value of one of the student's names."""
        return self._ask({"op": "get", "name": name}, seconds)

    def _ask(self, request: dict[str, Any], seconds: float, *, pass_on: int | None = None) -> Reply:
        self.patience.begin(seconds)
        self._count += 1
        try:
            answer = self._exchange({"id": self._count, **request}, pass_on=pass_on)
            asked = 0
            while self._helper is not None and isinstance(answer, dict) and "ask" in answer:
                asked += 1
                if asked > MAX_CALLS:
                    raise ProtocolError(f"more than {MAX_CALLS} calls of the course's own code")
                answer = self._exchange(self._helper(answer["ask"]), strict=False)
            # The id may be anything, also an array that has no truth value.
            if not isinstance(answer, dict) or type(number := answer.get("id")) is not int:
                raise ProtocolError("an answer without a number")
            if number != self._count:
                raise ProtocolError("an answer that nobody asked for")
        except channel.Late:
            self.close()
            raise BoxTimeout(f"no answer within {seconds:g} seconds") from None
        except channel.Closed:
            raise BoxDied(self._epitaph()) from None
        except ProtocolError as error:
            self.close()
            raise BoxDied(f"it sent bytes of its own ({error})") from None
        except BaseException:
            self.close()
            raise
        output = answer.get("output", "")
        # The box keeps to this length itself, as long as it is what we started.
        output = plain(output, MAX_OUTPUT_CHARACTERS + 100) if isinstance(output, str) else ""
        if answer.get("missing") is True:
            return Reply(missing=True, output=output)
        raised, changed = answer.get("error"), answer.get("changed")
        changed = changed[:MAX_CHANGED] if isinstance(changed, list) else ()
        told = tuple(plain_line(text, 80) for text in changed if isinstance(text, str))
        if raised is None:
            return Reply(value=answer.get("value"), output=output, changed=told)
        return Reply(answer.get("value"), _box_error(raised), output=output, changed=told)

    def _exchange(self, value: Any, *, strict: bool = True, pass_on: int | None = None) -> Any:
        """Send, and wait for what comes back."""
        with self.patience.waiting() as deadline:
            channel.send(self._channel, value, strict=strict, deadline=deadline, watch=self._watch)
            if pass_on is not None:
                with contextlib.suppress(OSError):  # it has hung up: there is no answer either
                    socket.send_fds(self._channel, [b"S"], [pass_on])
            return channel.receive(self._channel, deadline=deadline, watch=self._watch)

    def _watch(self) -> None:
        """End the box when its processes take too much memory, or processor time; called while it
        works."""
        if time.monotonic() < self._next_look:
            return
        taken = self._fork_server.memory(enough=self._most_memory)
        self._next_look = time.monotonic() + channel.WATCH_SECONDS
        if self.patience.is_over():
            raise channel.Late
        if taken > self._most_memory or self._fork_server.ran_out:
            self.close()
            raise BoxDied(self._too_much())

    def _too_much(self) -> str:
        return f"it took more than {self._most_memory / 2**30:.3g} GiB of memory"

    def _epitaph(self) -> str:
        """How a box ended that hung up by itself."""
        self._ended = True
        self._channel.close()
        status: int | None
        try:
            if self._taken_of is None:
                status = self._fork_server.end_box(hung_up=True)
            else:
                status = self._status()
        except (NoSandbox, OSError, BoxFailure):
            status = None
        with contextlib.suppress(OSError):
            if self._fork_server.ran_out:
                return self._too_much()
        if status is None:
            return "it ended, and all around it"
        if status < 0:
            with contextlib.suppress(ValueError):
                return f"it was ended by {signal.Signals(-status).name}"
        return f"it ended with status {status}"

    def _status(self) -> int:
        """How a snapshot ended, as the box says that it was taken of."""
        assert self._taken_of is not None
        box, number = self._taken_of
        end = time.monotonic() + STATUS_SECONDS  # for all answers together: they are a student's
        while (left := end - time.monotonic()) > 0:
            status = box._ask({"op": "status", "number": number}, left).value
            if type(status) is int:
                return status
            time.sleep(0.05)  # it has hung up and not ended yet
        return 0


def _box_error(error: Any) -> BoxError:
    types = error.get("types") if isinstance(error, dict) else None
    text = error.get("text") if isinstance(error, dict) else None
    if not isinstance(types, list) or not types or not all(isinstance(t, str) for t in types):
        types = ["Exception"]
    kinds = tuple(plain_line(kind, 80) for kind in types[:20])
    by_hand = isinstance(error, dict) and error.get("by_hand") is True
    line = error.get("line") if isinstance(error, dict) else None
    means = error.get("means") if isinstance(error, dict) else None
    return BoxError(
        kinds,
        plain(text, MAX_ERROR_CHARACTERS) if isinstance(text, str) else "",
        by_hand,
        plain_line(line, MAX_ERROR_CHARACTERS) if isinstance(line, str) else "",
        error.get("below") is True if isinstance(error, dict) else False,
        plain_line(means, MAX_ERROR_CHARACTERS) if isinstance(means, str) else "",
    )
