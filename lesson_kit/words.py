"""What a student reads, in the language of the class.

The sentences of the kit and of the grader are written in English where they are said, with
:func:`tr` around them; those of a lesson's checks and replies stand in its cells and go through
:func:`said`. A catalogue of gettext's has them in another language. It travels in the data file
beside the notebook, so that a student's folder needs nothing else; without one all stays English.
No check compares words, so the language changes no verdict.
"""

from __future__ import annotations

import bz2
import gettext
import io
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["N_", "WORDS", "N_n", "packed", "said", "speaking", "tr", "tr_n", "words_in"]

#: The key in the data file beside a notebook of what :func:`packed` made.
WORDS = "words"

#: The same as in :mod:`.setting`, which a student's own package lacks.
_DATA_FILE = "lesson_data.json"

#: Characters, and colons, of a text that is looked for by its form: no sentence of ours has more,
#: and a student may choose what is said in one.
_LONGEST, _COLONS = 1_000, 8

_FIELD = re.compile(r"\{(\w+)\}")
_ENGLISH = gettext.NullTranslations()

#: The catalogues of the ``with`` that this process is in; outside of one, the notebook's counts.
_spoken: list[str] = []


def N_(text: str) -> str:
    """Mark a text that :func:`tr` is given later: as it is."""
    return text


def N_n(singular: str, plural: str) -> tuple[str, str]:
    """Mark the two forms that :func:`tr_n` is given later: as they are."""
    return singular, plural


def tr(text: str, /, **fields: object) -> str:
    """A sentence of the kit in the language of the class, with its fields filled in."""
    translated = _now()[0].gettext(text)
    return translated.format(**fields) if fields else translated


def tr_n(singular: str, plural: str, number: float, /, **fields: object) -> str:
    """:func:`tr` of the sentence that fits a number, which is the field ``n``."""
    whole = int(number) if number == int(number) else 2  # half a point takes the plural
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return _now()[0].ngettext(singular, plural, whole).format(n=shown, **fields)


def said(text: str) -> str:
    """A sentence of a lesson in the language of the class.

    What a cell made with an f-string is found by its form, and what stood in its fields is
    translated too, where it is known; "this: that" is, where its halves are. Anything else stays.
    """
    catalogue, forms = _now()
    if catalogue is _ENGLISH or not text:
        return text
    translated = catalogue.gettext(text)
    if translated != text or len(text) > _LONGEST:
        return translated
    for form in forms:
        literals, names = _FIELD.split(form)[::2], _FIELD.findall(form)
        if (values := _between(literals, text)) is not None:
            fields = {name: said(value) for name, value in zip(names, values)}
            parts = _FIELD.split(catalogue.gettext(form))
            parts[1::2] = [fields.get(name, "") for name in parts[1::2]]
            return "".join(parts)
    head, _, rest = text.partition(": ")
    return f"{said(head)}: {said(rest)}" if 0 < text.count(": ") <= _COLONS else text


@contextmanager
def speaking(catalogue: str) -> Iterator[None]:
    """While it is open, this process speaks that language.

    Args:
        catalogue: what :func:`packed` made; "" is English.
    """
    _spoken.append(catalogue)
    try:
        yield
    finally:
        _spoken.pop()


def packed(catalogue: bytes, forms: Iterable[str]) -> str:
    """A catalogue as a text for :func:`speaking`; the same on every machine.

    Args:
        catalogue: as the file of gettext, ``.mo``.
        forms: its messages with fields in braces, of f-strings.
    """
    tree = {"catalogue": b64encode(catalogue).decode(), "forms": sorted(forms)}
    return b64encode(bz2.compress(json.dumps(tree, sort_keys=True).encode())).decode()


def words_in(folder: Path) -> str:
    """The language of the notebook in a folder, for :func:`speaking`; "" where it is English, or
    not to be read."""
    try:
        tree = json.loads((folder / _DATA_FILE).read_text(encoding="utf-8"))
        return str(tree.get(WORDS, ""))
    except (OSError, ValueError, AttributeError):
        return ""


_Read = tuple[gettext.NullTranslations, list[str]]
_NONE: _Read = (_ENGLISH, [])


def _now() -> _Read:
    catalogue = _spoken[-1] if _spoken else _beside()
    return _unpacked(catalogue) if catalogue else _NONE


def _beside() -> Any:
    try:
        from .setting import beside_notebook  # not in a student's own package, which has no data

        return beside_notebook().get(WORDS, "")
    except (ImportError, OSError, ValueError, AttributeError):
        return ""


@lru_cache(maxsize=32)
def _unpacked(catalogue: str) -> _Read:
    try:
        tree = json.loads(bz2.decompress(b64decode(catalogue)))
        read = gettext.GNUTranslations(io.BytesIO(b64decode(tree["catalogue"])))
        # The longest first: it says most, and leaves least to its fields.
        return read, sorted(tree["forms"], key=lambda form: -len(_FIELD.sub("", form)))
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return _NONE  # a damaged file costs the translation and nothing else


def _between(literals: list[str], text: str) -> list[str] | None:
    """What stands between pieces of a text. Each is looked for once: students choose some texts."""
    first, *middle, last = literals
    at, end = len(first), len(text) - len(last)
    if at > end or not (text.startswith(first) and text.endswith(last)):
        return None
    values = []
    for literal in middle:
        place = text.find(literal, at, end)
        if place < 0:
            return None
        values.append(text[at:place])
        at = place + len(literal)
    values.append(text[at:end])
    return values
