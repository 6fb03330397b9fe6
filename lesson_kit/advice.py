"""What a student is told first when a check fails: what helps most, if it is certain.

Changed answers are tried in a forked copy of the notebook's process (a forked trial). Nothing
leaves the copy but a sentence: a changed program may not end, or take all memory.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence, Sized
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from . import setting
from .answer_text import as_known, never_used
from .cells import (
    namespace,
    not_run,
    not_yet_right,
    seconds_of_cell,
    source_of,
    source_of_cell,
)
from .evidence import Evidence
from .known_mistakes import RAISED, known_mistake
from .probes import CHANGES_ITS_ARGUMENT, property_seen
from .repair import OTHER_SEED, nearest_repair
from .words import said

__all__ = ["advice", "in_this_notebook"]


#: A failing check answers within so many seconds, as far as that is ours: the search for a repair
#: gets what is left of them, whatever the check and the look-up before it took.
ANSWERS_WITHIN = 1.5
#: Of them, to end the search and to show the answer; on a busy machine that takes a while.
TO_SHOW = 0.3
#: A check that takes longer is not tried again with repairs.
MAX_SECONDS = 0.4


def advice(
    exercise: str,
    evidence: Sequence[Evidence],
    begin_cell: Callable[[], None],
    parts: Callable[[], Sized],
) -> str:
    """The sentence to begin with, or "".

    In this order: the answer's cell did not run; an exercise that it builds on is not right
    yet; the known mistake that leaves this evidence; where one small change would mend it; where
    nothing was raised, what it makes or is given and never uses; a property that no right answer
    has.

    Args:
        exercise: whose check failed.
        evidence: what the check saw.
        begin_cell: forgets the named checks of a cell.
        parts: the named checks of the cell so far.
    """
    if not setting.now.advice or not exercise:
        return ""
    return (
        not_run(exercise)
        or not_yet_right(exercise)
        or _known(exercise, evidence)
        or _repair(exercise, evidence, begin_cell, parts)
    )


def _known(exercise: str, evidence: Sequence[Evidence]) -> str:
    sentence = known_mistake(exercise, evidence, source_of(exercise))
    return as_known(sentence) if sentence else ""


def _repair(
    exercise: str,
    evidence: Sequence[Evidence],
    begin_cell: Callable[[], None],
    parts: Callable[[], Sized],
) -> str:
    raised = any(piece.check == RAISED for piece in evidence)
    answer, check = source_of(exercise), source_of_cell()
    taken = seconds_of_cell()
    if not answer or not check or taken > MAX_SECONDS:
        return ""
    left = ANSWERS_WITHIN - TO_SHOW - taken
    with setting.without_advice():  # the checks that are tried give none of their own
        told = in_this_notebook(
            answer,
            check,
            namespace(),
            begin_cell,
            seconds=left,
            # What was raised says more than what is not used yet.
            otherwise=lambda test: (
                (not raised and never_used(answer))
                or property_seen(exercise, test, namespace(), begin_cell, parts)
            ),
            # A check may compare with what the answer wrote into: a change that mends that is none.
            settled=CHANGES_ITS_ARGUMENT,
        )
    return said(told)


try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


#: Seconds that one repair in a notebook may take.
OF_ONE = 0.25
#: Seconds for what is said where there is no repair: the check runs again for it, and more.
OF_OTHERWISE = 0.4
#: The search in the copy of the process ends by itself so long before it is ended.
GRACE = 0.2
#: Bytes of memory that a changed program may take more than the notebook, and of a sentence.
MORE_MEMORY = 1 << 29
MAX_SAID = 4000
#: Between the sentences that come from the copy.
END = b"\0"


class _TimeIsUp(BaseException):
    """No ``except Exception`` of a student's stops it."""


def in_this_notebook(
    answer: str,
    check: str,
    namespace: dict[str, Any],
    begin_cell: Callable[[], None],
    *,
    seconds: float,
    otherwise: Callable[[CodeType], str] = lambda test: "",
    settled: str = "",
) -> str:
    """:func:`nearest_repair` of an answer whose visible check failed.

    Tried in a copy of this process, which nothing leaves but the sentence: a changed program may
    not end, or take all memory. Where there is no cheap copy (outside Linux) nothing is tried.

    Args:
        answer: its source.
        check: source of the cell of its visible check.
        namespace: the notebook's; it stays as it is.
        begin_cell: forgets the named checks of the cell before.
        seconds: after which it answers, whatever a changed program does.
        otherwise: what to say where there is no repair, asked with the check in the same copy, and
            heard in :data:`OF_OTHERWISE` or not at all.
        settled: no repair is looked for where that is what ``otherwise`` says.
    """
    end = time.monotonic() + seconds
    if sys.platform != "linux":
        return ""
    try:
        test = compile(check, "<repaired check>", "exec")
    except (SyntaxError, ValueError):
        return ""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, which do not go over and are not needed
        child = os.fork()
    if not child:
        try:
            _limit_memory()
            passes = _tried(test, namespace, begin_cell)
            said = ""
            with contextlib.suppress(Exception, _TimeIsUp), _alarm(OF_OTHERWISE):
                said = otherwise(test)
                _say(write, said)
            if not settled or said != settled:
                _say(write, nearest_repair(answer, passes, end - GRACE - time.monotonic()))
        finally:
            os._exit(0)
    os.close(write)
    try:
        return _last_said(read, end)
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _say(write: int, sentence: str) -> None:
    if sentence:
        os.write(write, sentence.encode()[:MAX_SAID] + END)


def _last_said(read: int, end: float) -> str:
    """The last whole sentence that is said until then: a search that does not end costs its own."""
    heard = b""
    while (left := end - time.monotonic()) > 0 and select.select([read], [], [], left)[0]:
        more = os.read(read, MAX_SAID)
        if not more:
            break
        heard += more
    *sentences, _ = heard.split(END)
    return sentences[-1].decode("utf-8", "replace") if sentences else ""


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Stop what is still running then, the student's own code too. In the copy only."""

    def stop(*_: object) -> None:
        raise _TimeIsUp

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _limit_memory() -> None:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    match = re.search(r"VmData:\s*(\d+) kB", status)
    most = (int(match[1]) << 10 if match else 0) + MORE_MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _tried(
    test: CodeType, namespace: dict[str, Any], begin_cell: Callable[[], None]
) -> Callable[[ast.Module], bool]:
    nowhere = open(os.devnull, "w")  # noqa: SIM115 (the process ends with it)
    sys.stdout = sys.stderr = nowhere
    warnings.simplefilter("ignore")

    def passes(tree: ast.Module) -> bool:
        beside = dict(namespace)
        begin_cell()
        try:
            code = compile(tree, "<repaired>", "exec")
            with _until(time.monotonic() + OF_ONE), setting.in_haste():
                exec(code, beside)
                exec(test, beside)
                begin_cell()
                with setting.inputs_of(OTHER_SEED):
                    exec(test, beside)
        except (Exception, _TimeIsUp):
            return False
        return True

    return passes


@contextlib.contextmanager
def _until(end: float) -> Iterator[None]:
    """Stop code of a repair that is still running then: a change can make a loop endless."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if time.monotonic() > end:
            raise _TimeIsUp
        return trace if frame.f_code.co_filename.startswith("<repaired") else None

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)
