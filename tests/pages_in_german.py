"""What a page in German still says in English."""

from __future__ import annotations

import html
import re

_CODE = re.compile(r"<(style|script|code)\b[^>]*>.*?</\1>", re.S)
_SAID = re.compile(r'>([^<>]+)<|(?:alt|aria-label|title)="([^"]*)"')
_WORD = re.compile(r"[^\W\d_]{3,}")


def left_in_english(english: str, german: str, same: str = "$^") -> set[str]:
    """The texts that both pages have.

    Args:
        english, german: HTML of the same page in the two languages.
        same: a pattern of those that they should both have, of names and of what was handed in.
    """
    return {text for text in _texts(english) & _texts(german) if not re.search(same, text)}


def _texts(page: str) -> set[str]:
    found = (html.unescape("".join(pair)).strip() for pair in _SAID.findall(_CODE.sub("", page)))
    return {text for text in found if _WORD.search(text)}
