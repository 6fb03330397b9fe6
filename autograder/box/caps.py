"""What a frame may hold at most, and the error of one that holds more."""

from __future__ import annotations

#: A frame's tree and buffers together, in bytes.
MAX_BYTES = 64 * 2**20
#: A frame's JSON tree, in bytes.
MAX_TREE_BYTES = 4 * 2**20
#: Containers inside containers.
MAX_DEPTH = 32
#: Values in one frame.
MAX_NODES = 200_000
#: Keys of dicts and items of sets in one frame: their hashes may all be the same, and then
#: the time to put them together grows with the square.
MAX_KEYS = 2_000
#: Values inside one of them, for the same reason: what is equal up to its end is compared long.
MAX_KEY_NODES = 16
#: Decimal digits of an int.
MAX_DIGITS = 1_000
#: Axes of an array.
MAX_AXES = 16
#: Characters of a string that stands in the tree; a longer one is a buffer.
MAX_PLAIN = 100
#: Ints up to here, and down to less than zero by as much, stand in the tree.
MAX_PLAIN_INT = 2**53

#: Characters of what one cell prints that are kept, and of an error's text.
MAX_OUTPUT_CHARACTERS = 20_000
MAX_ERROR_CHARACTERS = 2_000
#: Things that one cell is told to have changed.
MAX_CHANGED = 5
#: Questions that a box may ask while it works on one request.
MAX_CALLS = 5_000


class ProtocolError(Exception):
    """Bytes that are no frame, or a value that no frame can hold."""


class Keys:
    """Counts the keys of a frame."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> None:
        """Count ``number`` more.

        Raises:
            ProtocolError: these are too many.
        """
        self.count += number
        if self.count > MAX_KEYS:
            raise ProtocolError(f"more than {MAX_KEYS} keys of dicts and items of sets")
