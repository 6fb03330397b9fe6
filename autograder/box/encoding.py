"""From plain data to the tree and the buffers of a frame; see :mod:`autograder.box.wire`."""

from __future__ import annotations

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
from autograder.box.dtypes import NUMPY_DTYPES, SCALARS, TORCH_NAMES
from lesson_kit.tensors import torch

_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}


class Encoder:
    """Encodes one value; ``buffers`` and ``size`` are what its tree refers to."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.buffers: list[bytes] = []
        self.size = 0
        self.nodes = 0
        self.keys = Keys()

    def _buffer(self, data: bytes) -> int:
        self.size += len(data)
        if self.size > MAX_BYTES:
            raise ProtocolError(f"more than {MAX_BYTES} bytes")
        self.buffers.append(data)
        return len(self.buffers) - 1

    def _foreign(self, value: Any, detail: str = "") -> Any:
        kind = type(value)
        name = str(getattr(kind, "__name__", "?"))[:80]
        if self.strict:
            raise ProtocolError(f"a {name} does not travel{detail}; use plain data or a probe")
        return ["foreign", name + detail]

    def encode(self, value: Any, depth: int = 0) -> Any:
        """The tree of a value.

        Raises:
            ProtocolError: it does not travel, or is too large.
        """
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise ProtocolError(f"more than {MAX_NODES} values")
        if depth > MAX_DEPTH:
            raise ProtocolError(f"nested deeper than {MAX_DEPTH}")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str or kind is np.str_:
            if len(value) <= MAX_PLAIN and value.isascii():
                return str(value)
            return ["str", self._buffer(value.encode("utf-8", "surrogatepass"))]
        if kind is int:
            if -MAX_PLAIN_INT <= value <= MAX_PLAIN_INT:
                return value
            if value.bit_length() > MAX_DIGITS * 3:
                raise ProtocolError(f"an int of more than {MAX_DIGITS} digits")
            return ["int", str(value)]
        if kind is float:
            return ["float", value.hex()]
        if kind is bytes:
            return ["bytes", self._buffer(value)]
        if kind is list:
            return ["list", [self.encode(item, depth + 1) for item in value]]
        if isinstance(value, tuple):
            return ["tuple", [self.encode(item, depth + 1) for item in tuple.__iter__(value)]]
        if kind in (set, frozenset):
            self.keys.add(len(value))
            return ["set", [self._key(item, depth + 1) for item in value]]
        if isinstance(value, dict):
            return self._mapping(list(dict.items(value)), depth)
        if kind in SCALARS:
            array = np.asarray(value)
            return ["scalar", SCALARS[kind], self._buffer(array.tobytes())]
        if kind is np.ndarray:
            return self._array(value)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            return self._tensor(value)
        return self._foreign(value)

    def _mapping(self, pairs: list[tuple[Any, Any]], depth: int) -> Any:
        self.keys.add(len(pairs))
        if all(type(k) is str and len(k) <= MAX_PLAIN and k.isascii() for k, _ in pairs):
            return {k: self.encode(v, depth + 1) for k, v in pairs}
        return ["dict", [[self._key(k, depth + 1), self.encode(v, depth + 1)] for k, v in pairs]]

    def _key(self, value: Any, depth: int) -> Any:
        """A key of a dict or an item of a set."""
        before = self.nodes
        tree = self.encode(value, depth)
        if self.nodes - before > MAX_KEY_NODES:
            raise ProtocolError(f"a key of more than {MAX_KEY_NODES} values")
        return tree

    def _array(self, value: np.ndarray) -> Any:
        name = _NAMES.get(value.dtype) or value.dtype.name  # this is slow, and knows byte orders
        if name not in NUMPY_DTYPES:
            return self._foreign(value, f" of dtype {name[:40]}")
        if value.nbytes > MAX_BYTES or value.ndim > MAX_AXES:
            raise ProtocolError(f"an array of shape {value.shape} is too large")
        native = value.astype(NUMPY_DTYPES[name], copy=False)
        return ["array", name, list(value.shape), self._buffer(native.tobytes())]

    def _tensor(self, value: torch.Tensor) -> Any:
        name = TORCH_NAMES.get(value.dtype, "")
        if not name or value.layout is not torch.strided or value.device.type != "cpu":
            return self._foreign(value, f" ({value.dtype}, {value.layout}, {value.device})")
        if value.numel() * value.element_size() > MAX_BYTES or value.ndim > MAX_AXES:
            raise ProtocolError(f"a tensor of shape {tuple(value.shape)} is too large")
        plain = value.detach()
        if plain.is_conj() or plain.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        if name == "bfloat16":
            plain = plain.contiguous().view(torch.int16)
        data = self._buffer(plain.numpy().tobytes())
        return ["tensor", name, list(value.shape), bool(value.requires_grad), data]
