"""The bytes of a notebook file without large outputs: they are dropped while the file is read.

Outputs are never graded. A cell that printed for an hour makes a file of many megabytes, of which
what the student wrote is a small part; no more than that is ever in memory.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from autograder.grade.limits import MAX_OUTPUT_BYTES, MAX_OUTPUT_CONTAINERS

#: Bytes that are read at a time; they grow where one text is longer.
_CHUNK = 2**20

#: A text, which may go on behind what was read, or a sign that opens or closes something.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:(?P<end>")|\\?\Z)|[\[\]{}]', re.S)
_KEY = re.compile(rb"\s*:\s*\[")
#: Bytes behind a key in which its value begins.
_BEHIND = 64

#: How deep the outputs of a cell lie: in cells, or in worksheets and cells as format 3 has it.
_DEPTHS = (3, 5)


class TooLarge(Exception):
    """There is more than is read, also without outputs."""


def read_without_outputs(file: BinaryIO, most: int, most_read: int) -> bytes:
    """The content of a file, large outputs of cells taken out.

    Args:
        file: a notebook, or anything else, which stays as it is.
        most: bytes that may be left.
        most_read: bytes that are read at all.

    Raises:
        TooLarge: one of them is passed.
    """
    reader = _Reader(file, most_read)
    begun = reader.more()
    if not begun.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):  # no JSON in UTF-8
        rest = begun
        while len(rest) <= most and (chunk := reader.more()):
            rest += chunk
        if len(rest) > most:
            raise TooLarge
        return rest
    return _Filter(reader, most).run(begun)


class _Reader:
    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._left = file, most

    def more(self, size: int = _CHUNK) -> bytes:
        chunk = self._file.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLarge
        return chunk


class _Filter:
    """Copies JSON, and leaves out the outputs that are large."""

    def __init__(self, reader: _Reader, most: int) -> None:
        self.reader, self.most = reader, most
        self.kept = bytearray()
        self.depth = 0
        #: Where outputs began in what is kept, how deep, and what is in them so far.
        self.start: int | None = None
        self.outside = self.containers = 0

    def run(self, text: bytes) -> bytes:
        size = _CHUNK
        while True:
            text = text[self._take(text) :]
            if len(text) > self.most:  # one text
                if self.start is None:
                    raise TooLarge
                self.containers = MAX_OUTPUT_CONTAINERS + 1  # these outputs are dropped
                backslashes = len(text) - len(text.rstrip(b"\\"))
                text = b'"' + b"\\" * (backslashes % 2)  # two of them are one of the text
            # One that does not end here is looked at again with twice as much behind it.
            size = min(2 * size, self.most) if text else _CHUNK
            more = self.reader.more(size)
            if not more:
                self._keep(text)
                return bytes(self.kept)
            text += more

    def _take(self, text: bytes) -> int:
        """Copy as far as whole tokens go; where the rest begins."""
        done = 0
        for token in _TOKEN.finditer(text):
            whole = token["end"] or token[0][:1] != b'"'
            key = token[0] == b'"outputs"'
            if not whole or (key and token.end() + _BEHIND > len(text)):
                self._keep(text[done : token.start()])
                return token.start()
            self._keep(text[done : token.end()])
            done = token.end()
            self._note(token[0], key and _KEY.match(text, done) is not None)
        self._keep(text[done:])
        return len(text)

    def _note(self, token: bytes, begins_outputs: bool) -> None:
        """Know where in the tree one is."""
        if token in (b"[", b"{"):
            self.depth += 1
            self.containers += 1
        elif token in (b"]", b"}"):
            self.depth -= 1
            if self.start is not None and self.depth == self.outside:
                size = len(self.kept) - self.start
                if size > MAX_OUTPUT_BYTES or self.containers > MAX_OUTPUT_CONTAINERS:
                    del self.kept[self.start :]
                    self.kept += b": []"
                self.start = None
        elif begins_outputs and self.depth in _DEPTHS and self.start is None:
            self.start, self.outside, self.containers = len(self.kept), self.depth, 0

    def _keep(self, text: bytes) -> None:
        self.kept += text
        if self.start is None:
            if len(self.kept) > self.most:
                raise TooLarge
        elif len(self.kept) - self.start > 2 * MAX_OUTPUT_BYTES:
            # These will be dropped: no more of them than says so is held.
            del self.kept[self.start + MAX_OUTPUT_BYTES + 1 :]
