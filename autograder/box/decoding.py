"""From the tree and the buffers of a frame to plain data; see :mod:`autograder.box.wire`.

The bytes are a student's: whatever they are, what comes out is a value or a ``ProtocolError``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.box.caps import (
    MAX_AXES,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_KEY_NODES,
    MAX_NODES,
    MAX_PLAIN,
    MAX_PLAIN_INT,
    Keys,
    ProtocolError,
)
from autograder.box.dtypes import NUMPY_DTYPES, TORCH_DTYPES
from lesson_kit.tensors import torch


@dataclass(frozen=True)
class Foreign:
    """What stands for a value of a type that does not travel: it equals nothing expected."""

    type_name: str


class Decoder:
    """Decodes one frame; each of its buffers is used once."""

    def __init__(self, buffers: list[memoryview]) -> None:
        self.buffers = buffers
        self.taken = [False] * len(buffers)
        self.nodes = 0
        self.keys = Keys()

    def decode(self, tree: Any, depth: int = 0) -> Any:
        """The value of a tree.

        Raises:
            ProtocolError: it is no tree, or too large.
        """
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise ProtocolError("too many values or too deep")
        if tree is None or tree is True or tree is False:
            return tree
        kind = type(tree)
        if kind is str:
            return _plain_string(tree)
        if kind is int:
            if not -MAX_PLAIN_INT <= tree <= MAX_PLAIN_INT:
                raise ProtocolError("an int that is too large for its place")
            return tree
        if kind is dict:
            self.keys.add(len(tree))
            return {_plain_string(k): self.decode(v, depth + 1) for k, v in tree.items()}
        if kind is not list or not tree or type(tree[0]) is not str:
            raise ProtocolError("a value without its kind")
        make = _KINDS.get(tree[0])
        if make is None:
            raise ProtocolError(f"an unknown kind {tree[0][:20]!r}")
        return make(self, *tree[1:], depth=depth)

    def _take(self, index: Any) -> memoryview:
        if type(index) is not int or not 0 <= index < len(self.buffers):
            raise ProtocolError("a buffer that is not there")
        if self.taken[index]:  # else a small frame could become any size
            raise ProtocolError("a buffer that is used twice")
        self.taken[index] = True
        return self.buffers[index]

    def _key(self, tree: Any, depth: int) -> Any:
        """A key of a dict or an item of a set."""
        before = self.nodes
        value = self.decode(tree, depth)
        if self.nodes - before > MAX_KEY_NODES:
            raise ProtocolError(f"a key of more than {MAX_KEY_NODES} values")
        return value

    def _string(self, index: Any, depth: int) -> str:
        return bytes(self._take(index)).decode("utf-8", "replace")

    def _octets(self, index: Any, depth: int) -> bytes:
        return bytes(self._take(index))

    def _integer(self, digits: Any, depth: int) -> int:
        if type(digits) is not str or not 0 < len(digits) <= MAX_DIGITS:
            raise ProtocolError("an int without digits")
        return int(digits)

    def _floating(self, text: Any, depth: int) -> float:
        if type(text) is not str or len(text) > 64:
            raise ProtocolError("a float without digits")
        return float.fromhex(text)

    def _items(self, items: Any, depth: int) -> list[Any]:
        if type(items) is not list:
            raise ProtocolError("a container without items")
        return [self.decode(item, depth + 1) for item in items]

    def _fixed(self, items: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self._items(items, depth))

    def _unordered(self, items: Any, depth: int) -> set[Any]:
        if type(items) is not list:
            raise ProtocolError("a container without items")
        self.keys.add(len(items))
        return {self._key(item, depth + 1) for item in items}

    def _mapping(self, pairs: Any, depth: int) -> dict[Any, Any]:
        if type(pairs) is not list or not all(type(p) is list and len(p) == 2 for p in pairs):
            raise ProtocolError("a dict without pairs")
        self.keys.add(len(pairs))
        return {self._key(k, depth + 1): self.decode(v, depth + 1) for k, v in pairs}

    def _values(self, dtype: np.dtype[Any], shape: Any, index: Any) -> np.ndarray:
        if type(shape) is not list or len(shape) > MAX_AXES:
            raise ProtocolError("an array without a shape")
        if not all(type(n) is int and 0 <= n <= MAX_BYTES for n in shape):
            raise ProtocolError("an array of an impossible shape")
        data = self._take(index)
        if math.prod(shape) * dtype.itemsize != len(data):
            raise ProtocolError("an array whose data do not fill its shape")
        if dtype == np.bool_:  # any byte but 0 and 1 would be no boolean
            return np.frombuffer(data, np.uint8).reshape(shape) != 0
        return np.frombuffer(data, dtype).copy().reshape(shape)

    def _scalar(self, name: Any, index: Any, depth: int) -> Any:
        return self._array(name, [], index, depth)[()]

    def _array(self, name: Any, shape: Any, index: Any, depth: int) -> np.ndarray:
        if type(name) is not str or name not in NUMPY_DTYPES:
            raise ProtocolError("an array of an unknown dtype")
        return np.asarray(self._values(NUMPY_DTYPES[name], shape, index))

    def _tensor(self, name: Any, shape: Any, requires_grad: Any, index: Any, depth: int) -> Any:
        if type(name) is not str or name not in TORCH_DTYPES:
            raise ProtocolError("a tensor of an unknown dtype")
        dtype, storage = TORCH_DTYPES[name]
        tensor = torch.from_numpy(np.asarray(self._values(storage, shape, index)))
        if name == "bfloat16":
            tensor = tensor.view(torch.bfloat16)
        if requires_grad is True and (dtype.is_floating_point or dtype.is_complex):
            tensor.requires_grad_()
        return tensor

    def _foreign(self, name: Any, depth: int) -> Foreign:
        if type(name) is not str:
            raise ProtocolError("a foreign value without a type")
        return Foreign(name[:200])


_KINDS: dict[str, Callable[..., Any]] = {
    "str": Decoder._string,
    "int": Decoder._integer,
    "float": Decoder._floating,
    "bytes": Decoder._octets,
    "list": Decoder._items,
    "tuple": Decoder._fixed,
    "set": Decoder._unordered,
    "dict": Decoder._mapping,
    "scalar": Decoder._scalar,
    "array": Decoder._array,
    "tensor": Decoder._tensor,
    "foreign": Decoder._foreign,
}


def _plain_string(text: str) -> str:
    """A string that stands in the tree: nothing of it is beyond ASCII, a lone surrogate neither."""
    if len(text) > MAX_PLAIN or not text.isascii():
        raise ProtocolError("a string that is none of those that stand in the tree")
    return text
