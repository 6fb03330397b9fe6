"""Plain data between the box and the tester.

A frame is a JSON tree and the raw buffers it refers to. The decoder knows an allow-list of
exact types and dtypes, unpickles and evaluates nothing, and turns any bytes into a value
or a :class:`ProtocolError`.

Layout: magic, length of the tree, length of the buffers (two unsigned 64-bit big-endian
integers), the tree as UTF-8 JSON, the buffers one after another.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from autograder.box.dtypes import NUMPY_DTYPES, SCALARS, TORCH_DTYPES, TORCH_NAMES

MAGIC = b"ATN1"
HEADER = struct.Struct(">4sQQ")

#: A frame's tree and buffers together, in bytes.
MOST_BYTES = 64 * 2**20
#: A frame's JSON tree, in bytes.
MOST_TREE_BYTES = 4 * 2**20
#: Containers inside containers.
MOST_DEPTH = 32
#: Values in one frame.
MOST_NODES = 200_000
#: Keys of dicts and items of sets in one frame: their hashes may all be the same, and then
#: the time to put them together grows with the square.
MOST_KEYS = 2_000
#: Values inside one of them, for the same reason: what is equal up to its end is compared long.
MOST_KEY_NODES = 16
#: Decimal digits of an int.
MOST_DIGITS = 1_000
#: Axes of an array.
MOST_AXES = 16


class ProtocolError(Exception):
    """Bytes that are no frame, or a value that no frame can hold."""


@dataclass(frozen=True)
class Foreign:
    """What stands for a value of a type that does not travel: it equals nothing expected."""

    type_name: str


class _Keys:
    """Counts the keys of a frame."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> None:
        self.count += number
        if self.count > MOST_KEYS:
            raise ProtocolError(f"more than {MOST_KEYS} keys of dicts and items of sets")


class _Encoder:
    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.buffers: list[bytes] = []
        self.size = 0
        self.nodes = 0
        self.keys = _Keys()

    def buffer(self, data: bytes) -> int:
        self.size += len(data)
        if self.size > MOST_BYTES:
            raise ProtocolError(f"more than {MOST_BYTES} bytes")
        self.buffers.append(data)
        return len(self.buffers) - 1

    def foreign(self, value: Any, detail: str = "") -> Any:
        kind = type(value)
        name = str(getattr(kind, "__name__", "?"))[:80]
        if self.strict:
            raise ProtocolError(f"a {name} does not travel{detail}; use plain data or a probe")
        return ["foreign", name + detail]

    def encode(self, value: Any, depth: int = 0) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise ProtocolError(f"more than {MOST_NODES} values")
        if depth > MOST_DEPTH:
            raise ProtocolError(f"nested deeper than {MOST_DEPTH}")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str or kind is np.str_:
            return ["str", self.buffer(value.encode("utf-8", "surrogatepass"))]
        if kind is int:
            if value.bit_length() > MOST_DIGITS * 3:
                raise ProtocolError(f"an int of more than {MOST_DIGITS} digits")
            return ["int", str(value)]
        if kind is float:
            return ["float", value.hex()]
        if kind is bytes:
            return ["bytes", self.buffer(value)]
        if kind is list:
            return ["list", [self.encode(item, depth + 1) for item in value]]
        if isinstance(value, tuple):
            return ["tuple", [self.encode(item, depth + 1) for item in tuple.__iter__(value)]]
        if kind in (set, frozenset):
            self.keys.add(len(value))
            return ["set", [self.key(item, depth + 1) for item in value]]
        if isinstance(value, dict):
            pairs = list(dict.items(value))
            self.keys.add(len(pairs))
            return ["dict", [[self.key(k, depth + 1), self.encode(v, depth + 1)] for k, v in pairs]]
        if kind in SCALARS:
            array = np.asarray(value)
            return ["scalar", SCALARS[kind], self.buffer(array.tobytes())]
        if kind is np.ndarray:
            return self.array(value)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            return self.tensor(value)
        return self.foreign(value)

    def key(self, value: Any, depth: int) -> Any:
        """A key of a dict or an item of a set."""
        before = self.nodes
        tree = self.encode(value, depth)
        if self.nodes - before > MOST_KEY_NODES:
            raise ProtocolError(f"a key of more than {MOST_KEY_NODES} values")
        return tree

    def array(self, value: np.ndarray) -> Any:
        name = value.dtype.name
        if name not in NUMPY_DTYPES:
            return self.foreign(value, f" of dtype {name[:40]}")
        if value.nbytes > MOST_BYTES or value.ndim > MOST_AXES:
            raise ProtocolError(f"an array of shape {value.shape} is too large")
        native = value.astype(NUMPY_DTYPES[name], copy=False)
        return ["array", name, list(value.shape), self.buffer(native.tobytes())]

    def tensor(self, value: torch.Tensor) -> Any:
        name = TORCH_NAMES.get(value.dtype, "")
        if not name or value.layout is not torch.strided or value.device.type != "cpu":
            return self.foreign(value, f" ({value.dtype}, {value.layout}, {value.device})")
        if value.numel() * value.element_size() > MOST_BYTES or value.ndim > MOST_AXES:
            raise ProtocolError(f"a tensor of shape {tuple(value.shape)} is too large")
        plain = value.detach().resolve_conj().resolve_neg().contiguous()
        if name == "bfloat16":
            plain = plain.view(torch.int16)
        data = self.buffer(plain.numpy().tobytes())
        return ["tensor", name, list(value.shape), bool(value.requires_grad), data]


def encode(value: Any, *, strict: bool = True) -> bytes:
    """One frame holding ``value``.

    Args:
        value: None, bool, int, float, str, bytes; list, tuple, set, dict of such; NumPy
            arrays and scalars and torch CPU tensors of ordinary dtypes.
        strict: refuse other types; otherwise :class:`Foreign` takes their place.

    Raises:
        ProtocolError: a type that does not travel, or a cap is exceeded.
    """
    encoder = _Encoder(strict)
    tree = encoder.encode(value)
    sizes = [len(data) for data in encoder.buffers]
    text = json.dumps({"tree": tree, "buffers": sizes}, separators=(",", ":")).encode()
    if len(text) > MOST_TREE_BYTES:
        raise ProtocolError(f"a tree of more than {MOST_TREE_BYTES} bytes")
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
    if tree > MOST_TREE_BYTES or buffers > MOST_BYTES:
        raise ProtocolError(f"a frame of {tree} and {buffers} bytes is too large")
    return int(tree + buffers)


class _Decoder:
    def __init__(self, buffers: list[memoryview]) -> None:
        self.buffers = buffers
        self.taken = [False] * len(buffers)
        self.nodes = 0
        self.keys = _Keys()
        self.kinds: dict[str, Callable[..., Any]] = {
            "str": self.string,
            "int": self.integer,
            "float": self.floating,
            "bytes": lambda index, depth: bytes(self.take(index)),
            "list": self.items,
            "tuple": lambda items, depth: tuple(self.items(items, depth)),
            "set": self.unordered,
            "dict": self.mapping,
            "scalar": self.scalar,
            "array": self.array,
            "tensor": self.tensor,
            "foreign": self.foreign,
        }

    def decode(self, tree: Any, depth: int = 0) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES or depth > MOST_DEPTH:
            raise ProtocolError("too many values or too deep")
        if tree is None or tree is True or tree is False:
            return tree
        if type(tree) is not list or not tree or type(tree[0]) is not str:
            raise ProtocolError("a value without its kind")
        make = self.kinds.get(tree[0])
        if make is None:
            raise ProtocolError(f"an unknown kind {tree[0][:20]!r}")
        return make(*tree[1:], depth=depth)

    def take(self, index: Any) -> memoryview:
        if type(index) is not int or not 0 <= index < len(self.buffers):
            raise ProtocolError("a buffer that is not there")
        if self.taken[index]:  # else a small frame could become any size
            raise ProtocolError("a buffer that is used twice")
        self.taken[index] = True
        return self.buffers[index]

    def key(self, tree: Any, depth: int) -> Any:
        """A key of a dict or an item of a set."""
        before = self.nodes
        value = self.decode(tree, depth)
        if self.nodes - before > MOST_KEY_NODES:
            raise ProtocolError(f"a key of more than {MOST_KEY_NODES} values")
        return value

    def string(self, index: Any, depth: int) -> str:
        return bytes(self.take(index)).decode("utf-8", "replace")

    def integer(self, digits: Any, depth: int) -> int:
        if type(digits) is not str or not 0 < len(digits) <= MOST_DIGITS:
            raise ProtocolError("an int without digits")
        return int(digits)

    def floating(self, text: Any, depth: int) -> float:
        if type(text) is not str or len(text) > 64:
            raise ProtocolError("a float without digits")
        return float.fromhex(text)

    def items(self, items: Any, depth: int) -> list[Any]:
        if type(items) is not list:
            raise ProtocolError("a container without items")
        return [self.decode(item, depth + 1) for item in items]

    def unordered(self, items: Any, depth: int) -> set[Any]:
        if type(items) is not list:
            raise ProtocolError("a container without items")
        self.keys.add(len(items))
        return {self.key(item, depth + 1) for item in items}

    def mapping(self, pairs: Any, depth: int) -> dict[Any, Any]:
        if type(pairs) is not list or not all(type(p) is list and len(p) == 2 for p in pairs):
            raise ProtocolError("a dict without pairs")
        self.keys.add(len(pairs))
        return {self.key(k, depth + 1): self.decode(v, depth + 1) for k, v in pairs}

    def values(self, dtype: np.dtype[Any], shape: Any, index: Any) -> np.ndarray:
        if type(shape) is not list or len(shape) > MOST_AXES:
            raise ProtocolError("an array without a shape")
        if not all(type(n) is int and 0 <= n <= MOST_BYTES for n in shape):
            raise ProtocolError("an array of an impossible shape")
        data = self.take(index)
        if math.prod(shape) * dtype.itemsize != len(data):
            raise ProtocolError("an array whose data do not fill its shape")
        if dtype == np.bool_:  # any byte but 0 and 1 would be no boolean
            return np.frombuffer(data, np.uint8).reshape(shape) != 0
        return np.frombuffer(data, dtype).reshape(shape).copy()

    def scalar(self, name: Any, index: Any, depth: int) -> Any:
        return self.array(name, [], index, depth)[()]

    def array(self, name: Any, shape: Any, index: Any, depth: int) -> np.ndarray:
        if type(name) is not str or name not in NUMPY_DTYPES:
            raise ProtocolError("an array of an unknown dtype")
        return np.asarray(self.values(NUMPY_DTYPES[name], shape, index))

    def tensor(self, name: Any, shape: Any, requires_grad: Any, index: Any, depth: int) -> Any:
        if type(name) is not str or name not in TORCH_DTYPES:
            raise ProtocolError("a tensor of an unknown dtype")
        dtype, storage = TORCH_DTYPES[name]
        tensor = torch.from_numpy(np.ascontiguousarray(self.values(storage, shape, index)))
        tensor = tensor.reshape(shape)
        if name == "bfloat16":
            tensor = tensor.view(torch.bfloat16)
        differentiable = dtype.is_floating_point or dtype.is_complex
        return tensor.requires_grad_(requires_grad is True and differentiable)

    def foreign(self, name: Any, depth: int) -> Foreign:
        if type(name) is not str:
            raise ProtocolError("a foreign value without a type")
        return Foreign(name[:200])


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
        if len(top["buffers"]) > MOST_NODES:
            raise ProtocolError(f"more than {MOST_NODES} buffers")
        buffers: list[memoryview] = []
        at = tree_length
        for size in top["buffers"]:
            if type(size) is not int or not 0 <= size <= len(body) - at:
                raise ProtocolError("a buffer beyond its frame")
            buffers.append(body[at : at + size])
            at += size
        if at != len(body):
            raise ProtocolError("bytes that belong to no buffer")
        return _Decoder(buffers).decode(top["tree"])
    except ProtocolError:
        raise
    except MemoryError:
        raise ProtocolError("a frame that takes too much memory") from None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, RuntimeError) as error:
        raise ProtocolError(f"a frame that cannot be read: {type(error).__name__}") from None
