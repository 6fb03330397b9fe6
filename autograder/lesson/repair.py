"""The nearest repair: one small change of the student's own code that makes every check pass.

Lies beside every notebook as ``lesson/repair.py``. Tried when no known mistake explains a failing
check. What is said is the line and the kind of thing, and never the change itself; and it is
true as it stands, since the change was tried, on two sets of inputs.

After program repair for student code (Singh, Gulwani, Solar-Lezama 2013; Gulwani, Radicek,
Zuleger 2018, "Clara"). Taken over: a fixed set of small corrections, tried on the student's own
program against the tests, and a hint at the place. Not taken over: repairs of several changes,
and the student's program is compared with no other.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from . import setting
from .changed_names import names_in
from .small_changes import LIKELIEST_FIRST, TAKING_AWAY, TWO_LINES, Groups, called

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["in_this_notebook", "nearest_repair"]

#: Seconds of looking on after a first repair was found: is there another, elsewhere?
LOOK_ON = 0.35
#: So many changes elsewhere are tried then, or all there are; with fewer nothing is said. A slow
#: check, or a busy machine, costs the sentence and not its truth.
ENOUGH_ELSEWHERE = 25
#: Seconds that one repair in a notebook may take.
OF_ONE = 0.25
#: Seed of the inputs on which a repair has to pass as well: on one set it may by chance.
OTHER_SEED = 20_171
#: Seconds for what is said where there is no repair: the check runs again for it, and more.
OF_OTHERWISE = 0.4
#: The search in the copy of the process ends by itself so long before it is ended.
GRACE = 0.2
#: Bytes of memory that a changed program may take more than the notebook, and of a sentence.
MORE_MEMORY = 1 << 29
MOST_SAID = 4000
#: Between the sentences that come from the copy.
END = b"\0"
#: Functions that ask what kind of thing something is.
ASKS_FOR_A_KIND = {"isinstance", "issubclass", "issubdtype", "is_tensor", "is_floating_point"}
#: Longer answers are not tried.
MOST_CHARACTERS = 6000
#: Code that does more than compute is not run again.
_TOUCHES = re.compile(r"\b(open|input|exec|eval|os|sys|subprocess|shutil|plt|requests|pathlib)\b")


def nearest_repair(
    source: str,
    passes: Callable[[ast.Module], bool],
    seconds: float,
    *,
    elsewhere: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Where one small change of an answer makes every check pass, in a sentence; or "".

    Said only where all repairs that were found stand in one line. After the first, those that take
    something away come next, then the others from the other end: a change that only covers a
    mistake up is soon met by one that takes it away.

    Args:
        source: of the answer.
        passes: whether the checks pass with an answer like this.
        seconds: that it may take.
        elsewhere: changes that are tried in other lines once one was found; None: all there are.
        clock: of these.
    """
    if len(source) > MOST_CHARACTERS or _TOUCHES.search(source):
        return ""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    end = clock() + seconds
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    exchanges = _two_lines_exchanged(tree)  # the second search goes on where the first one stopped
    tried = 0

    def repairs(groups: Groups, elsewhere_than: int = 0) -> Iterator[tuple[int, str]]:
        nonlocal tried
        for line, kind, taken, changed in itertools.chain(exchanges, _candidates(tree, groups)):
            if line == elsewhere_than:
                continue
            if clock() > end or (elsewhere_than and tried == elsewhere):
                return
            tried += 1
            with changed:
                # An answer that does not look at an argument any more passes by chance, if at all.
                lost = arguments & taken
                mends = not (lost and lost - _names_read(tree)) and passes(tree)
            if mends:
                yield line, kind

    if not (first := next(repairs(LIKELIEST_FIRST), None)):
        return ""
    line, kind = first
    end, tried = min(end, clock() + LOOK_ON), 0
    if next(repairs((TAKING_AWAY, *LIKELIEST_FIRST[::-1]), elsewhere_than=line), None):
        return ""
    if clock() > end and tried < ENOUGH_ELSEWHERE:
        return ""
    code = source.splitlines()[line - 1].strip()
    return (
        f"Look at line {line} of your cell, `{code}`: one small change there makes every check "
        f"pass that was tried. What was changed: {kind}."
    )


def _names_read(tree: ast.AST) -> set[str]:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, ast.Load)}


def _candidates(
    tree: ast.Module, groups: Groups
) -> Iterator[tuple[int, str, set[str], contextlib.AbstractContextManager[None]]]:
    """Line, kind, names that are read there no more, and change of every small repair."""
    names = names_in(tree)
    places = [
        (parent, field, index, node)
        for parent in ast.walk(tree)
        for field, value in ast.iter_fields(parent)
        for index, node in (enumerate(value) if isinstance(value, list) else [(None, value)])
        if isinstance(node, ast.AST)
    ]
    for operators in groups:
        for parent, field, index, node in places:
            if isinstance(node, ast.arguments) or isinstance(parent, ast.arguments):
                continue
            # A change of what kind of thing is asked for only hides one half of an answer.
            if {called(node), called(parent)} & ASKS_FOR_A_KIND:
                continue
            for operator in operators:
                for kind, instead in operator(node, parent, names):
                    line = getattr(node, "lineno", getattr(parent, "lineno", 1))
                    change = _changed(parent, field, index, node, instead)
                    yield line, kind, _names_read(node), change


def _two_lines_exchanged(
    tree: ast.Module,
) -> Iterator[tuple[int, str, set[str], contextlib.AbstractContextManager[None]]]:
    """As :func:`_candidates`: a step and the next one in the other order."""
    steps = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
    for node in ast.walk(tree):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if not isinstance(block, list):
                continue
            for place, (step, following) in enumerate(itertools.pairwise(block)):
                if isinstance(step, steps) and isinstance(following, steps):
                    yield step.lineno, TWO_LINES, set(), _exchanged(block, place)


@contextlib.contextmanager
def _exchanged(block: list[ast.stmt], place: int) -> Iterator[None]:
    pair = block[place : place + 2]
    block[place : place + 2] = pair[::-1]
    try:
        yield
    finally:
        block[place : place + 2] = pair


@contextlib.contextmanager
def _changed(
    parent: ast.AST, field: str, index: int | None, node: ast.AST, instead: ast.AST
) -> Iterator[None]:
    like = node if hasattr(node, "lineno") else parent
    for inner in ast.walk(instead):
        if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
            ast.copy_location(inner, like)

    def put(what: ast.AST) -> None:
        if index is None:
            setattr(parent, field, what)
        else:
            getattr(parent, field)[index] = what

    put(instead)
    try:
        yield
    finally:
        put(node)


# --- in a notebook ----------------------------------------------------------------------


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
        os.write(write, sentence.encode()[:MOST_SAID] + END)


def _last_said(read: int, end: float) -> str:
    """The last whole sentence that is said until then: a search that does not end costs its own."""
    heard = b""
    while (left := end - time.monotonic()) > 0 and select.select([read], [], [], left)[0]:
        more = os.read(read, MOST_SAID)
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
