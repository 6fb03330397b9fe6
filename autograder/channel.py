"""Sending and receiving frames over a socket, with a deadline."""

from __future__ import annotations

import socket
import time
from typing import Any

from autograder import wire


class Closed(Exception):
    """The other side has hung up."""


class Late(Exception):
    """The deadline passed first."""


class NothingYet(Exception):
    """No frame has begun; the deadline has not passed."""


def _until(channel: socket.socket, deadline: float | None) -> None:
    if deadline is None:
        channel.settimeout(None)
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise Late
    channel.settimeout(left)


def send(
    channel: socket.socket, value: Any, *, strict: bool = True, deadline: float | None = None
) -> None:
    """Send one frame.

    Raises:
        ProtocolError: the value does not travel.
        Late, Closed: it could not be sent.
    """
    frame = memoryview(wire.encode(value, strict=strict))
    try:
        while frame:
            _until(channel, deadline)
            frame = frame[channel.send(frame[: 2**20]) :]
    except TimeoutError:
        raise Late from None
    except OSError:
        raise Closed from None


def receive(
    channel: socket.socket, *, deadline: float | None = None, first_byte: float | None = None
) -> Any:
    """Receive one frame and decode it.

    Args:
        channel: where from.
        deadline: when the whole frame has to be there.
        first_byte: when its beginning has to be there, else :class:`NothingYet`.

    Raises:
        ProtocolError: bytes that are no frame.
        Late, Closed, NothingYet: none came.
    """
    try:
        first = _exactly(channel, 1, deadline if first_byte is None else first_byte)
    except Late:
        if deadline is not None and time.monotonic() < deadline:
            raise NothingYet from None
        raise
    header = first + _exactly(channel, wire.HEADER.size - 1, deadline)
    body = _exactly(channel, wire.frame_length(bytes(header)), deadline)
    return wire.decode(header + body)


def _exactly(channel: socket.socket, size: int, deadline: float | None) -> bytearray:
    data = bytearray()
    try:
        while len(data) < size:
            _until(channel, deadline)
            more = channel.recv(min(size - len(data), 2**20))
            if not more:
                raise Closed
            data += more
    except TimeoutError:
        raise Late from None
    except OSError:
        raise Closed from None
    return data
