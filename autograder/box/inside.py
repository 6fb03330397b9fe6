"""What runs inside a box: it holds one student's notebook and answers requests.

Nothing in this process is believed. It runs the student's cells, calls a name with plain
data, or runs a probe, and sends back plain data; whether that is right is decided
elsewhere. It never sees expected values or tests.

Requests (dicts over :mod:`autograder.box.wire`, each with an ``id`` the reply repeats):

* ``enter``: begin a notebook with ``files`` beside it.
* ``run``: run ``source`` as a notebook cell; the reply has ``output``, ``error``, and ``changed``:
  what the cell changed for all code (see :mod:`.usual`).
* ``run plainly``: as Python runs it, without the notebook's shell: no magics, no history.
* ``call``: call the student's ``name`` with ``args`` and ``kwargs``.
* ``calls``: the same with one list of arguments after another, until a call raises.
* ``probe``: define the function in ``source``, call it with ``args`` and ``kwargs``.
* ``stand in``: bind ``name`` to what asks the grader when it is called (``{"ask": ...}`` goes
  out and its answer comes in before the reply): the course's own version of an exercise.
* ``snapshot``: fork a process that answers on a channel of its own, which follows in the next
  byte, while this one goes on; ``status``: how a snapshot ended.
* ``get``: the value of the student's ``name``.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import math
import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

from autograder.box.caps import MAX_ERROR_CHARACTERS
from autograder.box.channel import Closed, receive, send
from autograder.box.output import CappedText, taken_from
from autograder.box.usual import own_copy
from lesson_kit.evidence import raised_by_hand
from lesson_kit.exceptions import in_a_cell, meaning
from lesson_kit.tensors import installed, one_thread

#: What a probe's code is filed under.
PROBE = "<probe>"


class Inside:
    """The student's namespace and the requests on it."""

    def __init__(self) -> None:
        import random

        import matplotlib.pyplot as plt
        import numpy as np
        import tqdm
        from traitlets.config import Config

        from autograder.box.imports import answer_imports
        from autograder.box.reference_proxy import class_proxy, function_proxy
        from autograder.box.shell import shell
        from autograder.box.usual import Usual

        self.proxies = {"class": class_proxy, "function": function_proxy}
        tqdm.tqdm.monitor_interval = 0  # its thread would keep the box from being copied
        plt.close("all")
        with contextlib.suppress(ImportError):  # a course can do without it
            import seaborn  # noqa: F401
        answer_imports()
        self.usual_errors = partial(np.errstate, **np.geterr())
        self.usual_gradients: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
        self.usual = Usual()
        self.builtins = {
            name: value for name, value in vars(builtins).items() if not name.startswith("_")
        }
        self.builtins |= {"__build_class__": __build_class__, "__import__": __import__}
        self.probe_names = {"np": np, "math": math}
        if installed():
            self.bring_torch()
        self.reseed: list[Callable[[], object]] = [random.seed, np.random.seed]
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "nocolor"
        config.InteractiveShell.xmode = "Plain"
        self.shell = shell(config)
        self.output = CappedText()
        self.ask: Callable[[dict[str, Any]], dict[str, Any]] = _nobody_to_ask

    def bring_torch(self) -> None:
        """Have torch ready before there is a submission, as lessons that use it find it."""
        import torch
        import torch._dynamo  # the first optimizer would import it: a second
        import torch.nn.functional as F
        from torch import nn

        one_thread()
        half = torch.ones(1, 1).half()
        half @ half  # has torch read /proc/cpuinfo, which a box has not
        self.usual_gradients = torch.enable_grad
        self.probe_names |= {"torch": torch, "nn": nn, "F": F}

    def enter(self, files: dict[str, bytes]) -> None:
        """Begin a notebook: its files into the working folder, random numbers of its own."""
        for name, data in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)
        sys.path.append(str(Path.cwd()))
        for seed in self.reseed:
            seed()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request; what the student's code raises is part of it."""
        with self.captured():
            if request["op"] == "enter":
                self.enter(request["files"])
                reply: dict[str, Any] = {"value": None}
            elif request["op"] == "run":
                reply = self.run(request["source"])
            elif request["op"] == "run plainly":
                reply = self.run_plainly(request["source"])
            elif request["op"] == "stand in":
                make = self.proxies[request["kind"]]
                self.shell.user_ns[request["name"]] = make(request["name"], self.ask)
                reply = {"value": None}
            elif request["op"] == "calls":
                reply = self.evaluate_each(request["name"], request["calls"])
            else:
                reply = self.evaluate(request)
        reply["output"] = self.output.take()
        return reply

    def listen(self) -> None:
        """Have what is printed below Python go to a file of this process, and of no other."""
        with tempfile.TemporaryFile() as file:
            for number in (1, 2):
                os.dup2(file.fileno(), number)

    @contextlib.contextmanager
    def captured(self) -> Iterator[None]:
        """Collect what is printed, by Python or below it."""
        streams = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self.output
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams
            with contextlib.suppress(OSError):  # the student's code has closed it
                self.output.write(taken_from(1).decode("utf-8", "replace"))

    def run(self, source: str) -> dict[str, Any]:
        """Run a notebook cell with IPython's shell."""

        def attempt() -> dict[str, Any]:
            result = self.shell.run_cell(source, store_history=True)
            error = result.error_before_exec or result.error_in_exec
            return {"error": describe(error) if error is not None else None}

        reply = self.usual.again(self.shell.user_ns, source, attempt)
        self.usual.note_names(self.shell.user_ns)
        return {**reply, "changed": self.usual.changed(self.shell.user_ns)}

    def run_plainly(self, source: str) -> dict[str, Any]:
        """Run a changed answer, which is only tried: the shell would take longer than its test."""
        try:
            exec(compile(source, "<tried>", "exec"), self.shell.user_ns)
        except BaseException as error:
            return {"error": describe(error)}
        return {"error": None}

    def evaluate(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call a name, run a probe, or get a value, in the usual state."""
        self.usual.restore()
        if not self.usual.taken(self.shell.user_ns):
            return self.evaluate_once(request)
        given = {name: request.get(name) for name in ("args", "kwargs")}
        return self.usual.again(
            self.shell.user_ns, "", lambda: self.evaluate_once({**request, **own_copy(given)})
        )

    def evaluate_each(self, name: str, calls: list[list[Any]]) -> dict[str, Any]:
        """Call a name with each of several lists of arguments, until a call raises."""
        values: list[Any] = []
        for args in calls:
            reply = self.evaluate({"op": "call", "name": name, "args": args, "kwargs": {}})
            if "value" not in reply:
                return {**reply, "value": values}
            values.append(reply["value"])
        return {"value": values}

    def evaluate_once(self, request: dict[str, Any]) -> dict[str, Any]:
        """The same as the names are now."""
        try:
            if request["op"] == "probe":
                function = self.define(request["source"], request["name"])
            else:
                if request["name"] not in self.shell.user_ns:
                    return {"missing": True}
                function = self.shell.user_ns[request["name"]]
                if request["op"] == "get":
                    return {"value": function}
            # What a cell, or another exercise's answer, set them to is its own affair.
            with self.usual_errors(), self.usual_gradients():
                return {"value": function(*request["args"], **request["kwargs"])}
        except BaseException as error:  # also an interrupt that the student's code raises
            return {"error": describe(error)}

    def define(self, source: str, name: str) -> Any:
        """Define a probe beside the student's names, without binding it among them."""
        # The student's cells may have bound `type` or `list`; a probe means Python's.
        beside = {**self.shell.user_ns, **self.builtins, **self.probe_names}
        beside["__builtins__"] = self.builtins
        exec(_compiled(source), beside)
        return beside[name]


@lru_cache(maxsize=200)  # a test calls the same probe with one input after another
def _compiled(source: str) -> CodeType:
    return compile(source, PROBE, "exec")


def _nobody_to_ask(request: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError("there is no grader to ask")


def describe(error: BaseException) -> dict[str, Any]:
    """Type, base types, text and meaning of an exception, whether a cell raised it, in which line
    of a cell it arose, and whether in what that line calls of a probe's, as plain data."""
    try:
        text = str(error)[:MAX_ERROR_CHARACTERS]
    except Exception:
        text = "(its text could not be read)"
    try:
        by_hand = raised_by_hand(error)
    except Exception:
        by_hand = False
    try:
        line, below = _line_of(error)
    except Exception:
        line, below = "", False
    types = [kind.__name__ for kind in type(error).__mro__]
    try:
        means = meaning(tuple(types), text)
    except Exception:
        means = ""
    said = {"types": types, "text": str(text), "means": means, "by_hand": by_hand}
    return {**said, "line": line, "below": below}


def _line_of(error: BaseException) -> tuple[str, bool]:
    """The line, and whether the error arose below it: in what a probe handed over, or in another
    cell, whose code may be right where this line calls it wrongly."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if in_a_cell(one.filename)]
    # Code of earlier lessons, which a line of this notebook calls, has no lines here.
    cells = [frame for frame in frames if frame.filename != PROBE and frame.line]
    own = [frame for frame in cells if frame.filename == cells[0].filename]
    line = (own[-1].line or "")[:MAX_ERROR_CHARACTERS] if own else ""
    return line, bool(own) and (frames[-1].filename == PROBE or len(own) < len(cells))


def _snapshot() -> int:
    """Fork; the child's number, 0 in the child, -1 where that cannot be done."""
    # Of several threads only this one would be there, and whatever another has locked stays so.
    if len(os.listdir("/proc/self/task")) > 1:
        return -1
    gc.freeze()  # a collection would touch, and so copy, every page
    try:
        return os.fork()
    except OSError:
        return -1


def _status(number: int) -> int | None:
    """How a snapshot ended, negative for a signal; None where it has not."""
    with contextlib.suppress(OSError):
        ended, status = os.waitpid(number, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
    return None


def serve(channel: socket.socket, inside: Inside) -> None:
    """Answer requests until the other side hangs up."""

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        send(channel, {"ask": request})
        answer: dict[str, Any] = receive(channel)
        return answer

    inside.ask = ask
    inside.listen()
    snapshots: list[int] = []
    while True:
        try:
            request = receive(channel)
        except Closed:
            return
        if request["op"] == "snapshot":
            _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
            number = _snapshot()
            if number == 0:  # from here on, this process answers on a channel of its own
                channel.close()
                channel = socket.socket(fileno=descriptors[0])
                inside.listen()
                continue
            os.close(descriptors[0])
            snapshots.append(number)
            send(channel, {"id": request["id"], "value": number > 0})
            continue
        if request["op"] == "status":
            status = _status(snapshots[request["number"]])
            send(channel, {"id": request["id"], "value": status})
            continue
        reply = {"id": request["id"], **inside.answer(request)}
        try:
            send(channel, reply, strict=False)
        except Closed:
            return
        except Exception as error:  # ProtocolError, or anything out of an object of the student's
            text = f"the result cannot be handed over: {error}"
            reply = {"error": {"types": ["ProtocolError", "Exception"], "text": text}}
            send(channel, {"id": request["id"], "output": "", **reply})
