"""The published chat model's tokenizer, from its file's metadata: what lessons 17 and 18 build."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

__all__ = ["ChatTokenizer"]

_WORDS = re.compile(r"'(?:s|t|re|ve|m|ll|d)|\d| ?[^\W\d_]+| ?(?:[^\w\s]|_)+|\s+(?![^\s\d])|\s+")
_SEEN = {*range(33, 127), *range(161, 173), *range(174, 256)}


class ChatTokenizer:
    """Text to token ids and back. Exact for ordinary text in ASCII.

    Attributes:
        tokens: the text of each token, a character a byte.
        special: the ids of ``<|im_start|>`` and ``<|im_end|>``.
    """

    def __init__(self, metadata: dict[str, Any]) -> None:
        later = iter(range(256, 512))
        self._characters = [chr(b if b in _SEEN else next(later)) for b in range(256)]
        self._bytes = {character: byte for byte, character in enumerate(self._characters)}
        self.tokens: list[str] = metadata["tokenizer.ggml.tokens"]
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        merges = metadata["tokenizer.ggml.merges"]
        self._rank = {tuple(merge.split(" ")): number for number, merge in enumerate(merges)}
        self.special = {name: self._ids[name] for name in ("<|im_start|>", "<|im_end|>")}

    def encode(self, text: str) -> list[int]:
        """The ids of a text; never a special token, whatever the text spells."""
        ids = []
        for word in _WORDS.findall(text):
            pieces = [self._characters[byte] for byte in word.encode()]
            while len(pieces) > 1:
                ranks = [self._rank.get(pair, math.inf) for pair in pairwise(pieces)]
                place = ranks.index(min(ranks))
                if ranks[place] == math.inf:
                    break
                pieces[place : place + 2] = ["".join(pieces[place : place + 2])]
            ids += [self._ids[piece] for piece in pieces if piece in self._ids]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; special tokens are left out."""
        texts = (self.tokens[number] for number in ids if number not in self.special.values())
        raw = bytes(self._bytes[c] for text in texts for c in text if c in self._bytes)
        return raw.decode("utf-8", "replace")
