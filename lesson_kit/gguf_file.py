"""A file of named numbers in the format GGUF, version 3, read as a memory map."""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["eight_bit_numbers", "read_gguf"]

#: Of each type of tensor that such a file has, by its number: numbers and bytes of a block.
F32, Q4_1, Q8_0 = 0, 3, 8
BLOCKS = {F32: (1, 4), Q4_1: (32, 20), Q8_0: (32, 34)}
#: Of each type of metadata: its letter for :mod:`struct`; 8 is a text and 9 a list.
LETTERS = "BbHhIif?__Qqd"


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The metadata and the tensors of a file, each by name. Nothing is copied: the tensors are
    read-only views of a memory map, float32 of the shape ``(out, in)`` or, where they are
    quantised, uint8 of the shape ``(out, blocks, bytes of a block)``, 32 numbers a block.

    Raises:
        ValueError: in one sentence, for a file that is cut off or is no GGUF file of version 3.
    """
    with path.open("rb") as opened:
        if opened.read(8) != b"GGUF\x03\x00\x00\x00":
            raise ValueError(f"{path.name} is no GGUF file of version 3.")
        file = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    header = _Header(file)
    tensors = {}
    try:
        num_tensors, num_entries = header.number("Q"), header.number("Q")
        metadata = {header.text(): header.value(header.number("I")) for _ in range(num_entries)}
        entries = [header.tensor() for _ in range(num_tensors)]
        data = header.at + -header.at % metadata.get("general.alignment", 32)
        for name, shape, kind, offset in entries:
            numbers, size = BLOCKS[kind]
            count = math.prod(shape) // numbers * size
            raw = np.frombuffer(file, np.uint8, count, data + offset)
            blocks = (*shape[:-1], shape[-1] // numbers, size)
            tensors[name] = raw.view("<f4").reshape(shape) if kind == F32 else raw.reshape(blocks)
    except (struct.error, ValueError, LookupError) as error:
        raise ValueError(f"{path.name} is cut off, or damaged: {error}.") from None
    return metadata, tensors


class _Header:
    """The beginning of a file, read from front to back."""

    def __init__(self, file: memoryview) -> None:
        self.file, self.at = file, 8

    def number(self, letter: str) -> Any:
        self.at += struct.calcsize(letter)
        return struct.unpack_from(f"<{letter}", self.file, self.at - struct.calcsize(letter))[0]

    def text(self) -> str:
        length = self.number("Q")
        self.at += length
        return str(self.file[self.at - length : self.at], "utf-8")

    def value(self, kind: int) -> Any:
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, length = self.number("I"), self.number("Q")
            return [self.value(kind) for _ in range(length)]
        return self.number(LETTERS[kind])

    def tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name, axes = self.text(), self.number("I")
        shape = tuple(self.number("Q") for _ in range(axes))[::-1]  # the file has `in` first
        return name, shape, self.number("I"), self.number("Q")


def eight_bit_numbers(blocks: np.ndarray) -> np.ndarray:
    """The numbers of blocks ``(..., n, 34)`` of the format Q8_0 as float32 ``(..., 32 * n)``: a
    float16 scale, and 32 whole numbers from -128 to 127 that it multiplies."""
    scale = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    return (scale * blocks[..., 2:].view(np.int8)).reshape(*blocks.shape[:-2], -1)
