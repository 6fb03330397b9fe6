"""What code in a box prints: so much of it is kept."""

from __future__ import annotations

import io
import os

from autograder.box.caps import MAX_OUTPUT_CHARACTERS


class CappedText(io.TextIOBase):
    """A text stream that keeps the first ``limit`` characters and forgets the rest."""

    def __init__(self, limit: int = MAX_OUTPUT_CHARACTERS) -> None:
        self.limit = limit
        self.parts: list[str] = []
        self.size = 0

    def writable(self) -> bool:
        """True: it is written to."""
        return True

    def write(self, text: str) -> int:
        """Keep ``text`` while there is room."""
        if self.size < self.limit:
            self.parts.append(text[: self.limit - self.size])
            self.size += len(self.parts[-1])
            if self.size >= self.limit:
                self.parts.append("\n[output cut here]\n")
        return len(text)

    def take(self) -> str:
        """What was kept; the stream is empty afterwards."""
        text = "".join(self.parts)
        self.parts, self.size = [], 0
        return text


def taken_from(descriptor: int) -> bytes:
    """What was written to an open file, up to a limit; the file is empty afterwards."""
    if not os.fstat(descriptor).st_size:
        return b""
    os.lseek(descriptor, 0, os.SEEK_SET)
    words = os.read(descriptor, MAX_OUTPUT_CHARACTERS)
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return words
