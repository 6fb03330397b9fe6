"""Pictures in written answers: the ones that may be shown, made anew from their pixels.

What a student pasted is decoded as PNG or JPEG, whatever it calls itself, and written again: what
comes out holds pixels, no metadata, and nothing that a browser could run.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import re
from dataclasses import replace
from urllib.parse import unquote

from PIL import Image, ImageOps

from autograder.course.bundle import Bundle
from autograder.grade import flags as kinds
from autograder.grade.cells import Cell
from autograder.grade.flags import Flag
from autograder.text import plain_line

#: Pictures of one answer, bytes of one, its pixels, and the pixels of a side that are shown.
MOST_PICTURES = 12
MOST_BYTES = 15 * 2**20
MOST_PIXELS = 50_000_000
LONGEST_SIDE = 2_000

#: A picture in Markdown, or in HTML as some editors write it.
_SHOWN = re.compile(
    r"!\[[^\]\n]*\]\(\s*<?(?P<markdown>[^)\s>]+)[^)\n]*\)"
    r"|<img\b[^>]*?\bsrc\s*=\s*[\"']?(?P<html>[^\"'\s>]+)[^>]*>",
    re.I,
)


class Unfit(Exception):
    """It is not shown; the message says why."""


def with_pictures(cells: list[Cell], bundle: Bundle) -> tuple[list[Cell], list[Flag]]:
    """The cells, with the pictures of written answers as data addresses in ``attachments``.

    In the text ``[picture 1]`` stands for each. Attachments of other cells are left out.
    """
    named = {written.grade_id for written in bundle.written}
    flags: list[Flag] = []
    shown = []
    for cell in cells:
        if cell.grade_id in named:
            made, told = _of_an_answer(cell)
            flags += told
        else:
            made = replace(cell, attachments=())
        shown.append(made)
    return shown, flags


def _of_an_answer(cell: Cell) -> tuple[Cell, list[Flag]]:
    attached, left = dict(cell.attachments), dict(cell.attachments)
    pictures: dict[str, str] = {}
    flags: list[Flag] = []

    def take(called: str, data: str | None) -> str:
        try:
            picture = made_anew(data)
            if len(pictures) >= MOST_PICTURES and picture not in pictures:
                raise Unfit(f"of one answer {MOST_PICTURES} are shown")
        except Unfit as why:
            shown = plain_line(called, 60)
            flags.append(kinds.PICTURE_UNREAD.flag(cell=cell.grade_id, called=shown, why=str(why)))
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

    source = _SHOWN.sub(shown, cell.source)
    for name, data in left.items():  # pasted, and its mark in the text is gone
        source += f"\n\n{take(name, data)}"
    kept = tuple((name, picture) for picture, name in pictures.items())
    return replace(cell, source=source.strip(), attachments=kept), flags


def made_anew(data: str | None) -> str:
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
    if len(content) > MOST_BYTES:
        raise Unfit(f"it has more than {MOST_BYTES // 2**20} MB")
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise Unfit(f"it has more than {MOST_PIXELS // 10**6} million pixels")
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


def digest(picture: str) -> str:
    """Changes with the picture."""
    return hashlib.sha256(picture.encode()).hexdigest()[:8]
