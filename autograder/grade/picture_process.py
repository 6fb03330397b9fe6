"""Where pictures of submissions are looked at: ``python -m autograder.grade.picture_process``.

Started by :mod:`.pictures`. What a student pasted is decoded as PNG or JPEG, whatever it calls
itself, and written again: what comes out holds pixels, no metadata, and nothing that a browser
could run. What this falls over costs one answer its pictures.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Sequence
from urllib.parse import unquote

from PIL import Image, ImageOps

from autograder.grade.limits import MAX_ANSWER_PICTURES, MAX_PICTURE_BYTES, MAX_PICTURE_PIXELS
from autograder.limited_process import serve

#: Pixels of a side that are shown.
LONGEST_SIDE = 2_000

#: What is shown: what was pasted, or an address.
_TARGET = r"(?:data:[\w/+.-]{1,40};base64,[A-Za-z0-9+/=]*+|[^)\s>\"']{1,500})"

#: A picture in Markdown, or in HTML as some editors write it.
_SHOWN = re.compile(
    rf"!\[[^\]\n]{{0,500}}\]\([ \t]{{0,9}}<?(?P<markdown>{_TARGET})[^)\n]{{0,500}}\)"
    rf"|<img\b[^>]{{0,500}}?\bsrc[ ]?=[ ]?[\"']?(?P<html>{_TARGET})[^>]{{0,500}}>",
    re.I,
)


class Unfit(Exception):
    """It is not shown; the message says why."""


def of_an_answer(
    source: str, attachments: Sequence[tuple[str, str]]
) -> tuple[str, list[tuple[str, str]], list[tuple[str, str]]]:
    """The text of an answer with marks in place of pictures; these as data addresses, by the marks;
    and of each that is not shown what it was called, and why."""
    attached, left = dict(attachments), dict(attachments)
    pictures: dict[str, str] = {}
    unfit: list[tuple[str, str]] = []

    def take(called: str, data: str | None) -> str:
        try:
            picture = _made_anew(data)
            if len(pictures) >= MAX_ANSWER_PICTURES and picture not in pictures:
                raise Unfit(f"of one answer {MAX_ANSWER_PICTURES} are shown")
        except Unfit as why:
            unfit.append((called[:200], str(why)))
            return "[a picture that is not shown]"
        return f"[{pictures.setdefault(picture, f'picture {len(pictures) + 1}')}]"

    def shown(match: re.Match[str]) -> str:
        target = match["markdown"] or match["html"]
        kind, _, rest = target.partition(":")
        if kind.casefold() == "attachment":
            name = rest if rest in attached else unquote(rest)
            left.pop(name, None)
            return take(name, attached.get(name))
        if kind.casefold() == "data":
            return take("pasted into the text", rest.partition(",")[2])
        return take(target, None)

    source = _SHOWN.sub(shown, source)
    for name, data in left.items():  # pasted, and its mark in the text is gone
        source += f"\n\n{take(name, data)}"
    return source.strip(), [(name, picture) for picture, name in pictures.items()], unfit


def _made_anew(data: str | None) -> str:
    """A picture as a data address, from base64; None is one that is not there.

    Raises:
        Unfit: it is no PNG or JPEG, or too large.
    """
    if data is None:
        raise Unfit("it is not in the notebook")
    try:
        content = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Unfit("it is damaged") from None
    if len(content) > MAX_PICTURE_BYTES:
        raise Unfit(f"it has more than {MAX_PICTURE_BYTES // 2**20} MB")
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
            if picture.width * picture.height > MAX_PICTURE_PIXELS:
                raise Unfit(f"it has more than {MAX_PICTURE_PIXELS // 10**6} million pixels")
            kind = picture.format or "PNG"
            picture.draft(None, (LONGEST_SIDE, LONGEST_SIDE))
            upright = ImageOps.exif_transpose(picture)
            upright.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            pixels = upright.convert("RGB" if kind == "JPEG" else "RGBA")
            pixels.info = {}
            written = io.BytesIO()
            pixels.save(written, kind)
    except Unfit:
        raise
    except Exception:  # a decoder of untrusted bytes raises anything
        raise Unfit("it is no PNG or JPEG that can be read") from None
    text = base64.b64encode(written.getvalue()).decode()
    return f"data:image/{kind.lower()};base64,{text}"


if __name__ == "__main__":
    serve({"of_an_answer": of_an_answer}, seconds=10.0, memory=2**30, most=40_000_000)
