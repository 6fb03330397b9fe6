"""Sending and receiving frames over a socket, with a deadline."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

from autograder.box import wire

Done = TypeVar("Done")

#: Called at least this often while the other side is waited for, in seconds.
WATCH_SECONDS = 0.2


class Closed(Exception):
    """The other side has hung up."""


class Late(Exception):
    """The deadline passed first."""


Watch = Callable[[], None]


def _patiently(
    channel: socket.socket, step: Callable[[], Done], deadline: float | None, watch: Watch | None
) -> Done:
    """Do one step on the socket as soon as it can be done.

    ``watch`` is called whether the other side is silent or sends byte by byte.
    """
    while True:
        if watch is not None:
            watch()
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise Late
        channel.settimeout(left if left is None else min(left, WATCH_SECONDS))
        try:
            return step()
        except TimeoutError:
            continue
        except OSError:
            raise Closed from None


def send(
    channel: socket.socket,
    value: Any,
    *,
    strict: bool = True,
    deadline: float | None = None,
    watch: Watch | None = None,
) -> None:
    """Send one frame.

    Raises:
        ProtocolError: the value does not travel.
        Late, Closed: it could not be sent.
    """
    frame = memoryview(wire.encode(value, strict=strict))
    while frame:
        part = frame[: 2**20]
        frame = frame[_patiently(channel, lambda: channel.send(part), deadline, watch) :]  # noqa: B023


def receive(
    channel: socket.socket, *, deadline: float | None = None, watch: Watch | None = None
) -> Any:
    """Receive one frame and decode it.

    Args:
        channel: where from.
        deadline: when the whole frame has to be there.
        watch: is called every now and then meanwhile; what it raises goes to the caller.

    Raises:
        ProtocolError: bytes that are no frame.
        Late, Closed: none came.
    """
    frame = bytearray()
    _fill(frame, wire.HEADER.size, channel, deadline, watch)
    _fill(frame, wire.frame_length(bytes(frame)), channel, deadline, watch)
    return wire.decode(frame)


def _fill(
    frame: bytearray,
    size: int,
    channel: socket.socket,
    deadline: float | None,
    watch: Watch | None,
) -> None:
    """Receive ``size`` more bytes."""
    wanted = len(frame) + size
    while len(frame) < wanted:
        most = min(wanted - len(frame), 2**20)
        more = _patiently(channel, lambda: channel.recv(most), deadline, watch)  # noqa: B023
        if not more:
            raise Closed
        frame += more
