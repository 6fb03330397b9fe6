"""Plain data between the box and the tester.

A frame is a JSON tree and the raw buffers it refers to. None, bools, small ints, short ASCII
strings and dicts whose keys are such strings stand in the tree as JSON has them; everything else
is a JSON array of its kind and what belongs to it. The decoder knows an allow-list of exact types
and dtypes, unpickles and evaluates nothing, and turns any bytes into a value or a
:class:`ProtocolError`.

Layout: magic, length of the tree, length of the buffers (two unsigned 64-bit big-endian
integers), the tree as UTF-8 JSON, the buffers one after another.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from autograder.box.caps import MAX_BYTES, MAX_NODES, MAX_TREE_BYTES, ProtocolError
from autograder.box.decoding import Decoder
from autograder.box.encoding import Encoder

MAGIC = b"ATN1"
HEADER = struct.Struct(">4sQQ")

_as_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def encode(value: Any, *, strict: bool = True) -> bytes:
    """One frame holding ``value``.

    Args:
        value: None, bool, int, float, str, bytes; list, tuple, set, dict of such; NumPy
            arrays and scalars and torch CPU tensors of ordinary dtypes.
        strict: refuse other types; otherwise :class:`Foreign` takes their place.

    Raises:
        ProtocolError: a type that does not travel, or a cap is exceeded.
    """
    encoder = Encoder(strict)
    tree = encoder.encode(value)
    sizes = [len(data) for data in encoder.buffers]
    text = _as_json({"tree": tree, "buffers": sizes}).encode()
    if len(text) > MAX_TREE_BYTES:
        raise ProtocolError(f"a tree of more than {MAX_TREE_BYTES} bytes")
    return b"".join([HEADER.pack(MAGIC, len(text), encoder.size), text, *encoder.buffers])


def frame_length(header: bytes) -> int:
    """How many bytes follow a frame's header.

    Raises:
        ProtocolError: no header of ours, or a frame beyond the caps.
    """
    if len(header) != HEADER.size:
        raise ProtocolError("a header that is cut off")
    magic, tree, buffers = HEADER.unpack(header)
    if magic != MAGIC:
        raise ProtocolError("bytes that are no frame")
    if tree > MAX_TREE_BYTES or buffers > MAX_BYTES:
        raise ProtocolError(f"a frame of {tree} and {buffers} bytes is too large")
    return int(tree + buffers)


def decode(frame: bytes | bytearray) -> Any:
    """The value in a frame.

    Raises:
        ProtocolError: whatever is wrong with the bytes.
    """
    length = frame_length(bytes(frame[: HEADER.size]))
    if len(frame) != HEADER.size + length:
        raise ProtocolError("a frame that is cut off or too long")
    tree_length = HEADER.unpack(frame[: HEADER.size])[1]
    body = memoryview(frame)[HEADER.size :]
    try:
        top = json.loads(bytes(body[:tree_length]))
        if type(top) is not dict or type(top.get("buffers")) is not list:
            raise ProtocolError("a frame without buffers")
        if len(top["buffers"]) > MAX_NODES:
            raise ProtocolError(f"more than {MAX_NODES} buffers")
        buffers: list[memoryview] = []
        at = tree_length
        for size in top["buffers"]:
            if type(size) is not int or not 0 <= size <= len(body) - at:
                raise ProtocolError("a buffer beyond its frame")
            buffers.append(body[at : at + size])
            at += size
        if at != len(body):
            raise ProtocolError("bytes that belong to no buffer")
        return Decoder(buffers).decode(top["tree"])
    except ProtocolError:
        raise
    except MemoryError:
        raise ProtocolError("a frame that takes too much memory") from None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, RuntimeError) as error:
        raise ProtocolError(f"a frame that cannot be read: {type(error).__name__}") from None
