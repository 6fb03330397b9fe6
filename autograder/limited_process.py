"""A process of ours that reads what a student wrote, within limits, and may be ended at any time.

A few kilobytes of source can keep a compiler busy for minutes, or take gigabytes; so can a formula
or a text for a regular expression. Whoever grades, grades others too: it asks such a process, which
ends itself when one question takes too much, and starts another for the next one. Questions and
answers are lines of JSON: nothing is unpickled.

A module that serves ends with ``if __name__ == "__main__": serve({...})``.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

#: Processor seconds for one question. An honest one takes milliseconds.
SECONDS = 2.0
#: Bytes of memory for the process.
MEMORY = 2**29


class TooMuch(Exception):
    """A question took more time or memory than one may."""


class LimitedProcess:
    """The process, started when it is needed; after a question that was too much, another."""

    def __init__(self, module: str) -> None:
        """Nothing is started yet.

        Args:
            module: which ends with :func:`serve`.
        """
        self._module = module
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.end)

    def ask(
        self, function: str, *arguments: Any, answer: Callable[[Any], Any] = lambda asked: None
    ) -> Any:
        """What a function of the module gives, in terms of JSON.

        Args:
            function: its name there.
            arguments: its arguments.
            answer: answers what the function asks back.

        Raises:
            TooMuch: it took too much time or memory, or fell over what it read.
        """
        with self._lock:
            process = self._process = self._process or self._start()
            try:
                words = self._said(process, [function, *arguments])
                while "ask" in words:
                    words = self._said(process, answer(words["ask"]))
            except OSError:
                words = {}
            except BaseException:  # the answer would be taken for the next one's
                self._end()
                raise
            if "answer" not in words:
                self._end()
                raise TooMuch
        return words["answer"]

    @staticmethod
    def _said(process: subprocess.Popen[str], what: Any) -> dict[str, Any]:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else {}

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="ascii",
        )

    def end(self) -> None:
        """End it, if it runs."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(OSError):  # what was not sent yet
                process.communicate()

    def _forget(self) -> None:
        """In a fork: the process is the other's."""
        self._process, self._lock = None, threading.Lock()


def serve(
    functions: Mapping[str, Callable[..., Any]],
    *,
    seconds: float = SECONDS,
    memory: int = MEMORY,
    most: int = 10_000_000,
) -> None:
    """In the process: a line of JSON for each line of JSON, until nobody asks any more.

    Args:
        functions: by name; each may ask back with what :func:`ask_back` gives.
        seconds: of processor time for one question.
        memory: bytes of addresses for the process.
        most: characters of an answer.
    """
    limit = _limits(memory)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        limit(seconds)
        said = json.dumps({"answer": functions[name](*arguments)})
        limit(0)
        if len(said) > most:
            return
        print(said, flush=True)


def ask_back(question: Any) -> Any:
    """In the process, while it answers: what the other side says to this. Waiting costs no time."""
    print(json.dumps({"ask": question}), flush=True)
    return json.loads(sys.stdin.readline())


def _limits(memory: int) -> Callable[[float], object]:
    """Limit the memory of this process; what is returned ends it after so many seconds of work."""
    try:
        import resource
        import signal
    except ImportError:  # Windows, where nothing is graded
        return lambda seconds: None
    with contextlib.suppress(OSError, ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    return lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)
