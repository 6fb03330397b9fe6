"""Whether a ``NotImplementedError`` says that an answer is not written yet.

torch raises the same class where it knows no way for a kind of numbers, and where a module has no
``forward``: then something is written, and wrong.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from .exceptions import in_a_cell

__all__ = ["unwritten"]


def unwritten(error: BaseException | None) -> bool:
    """Whether a stub raised it with a statement, or a short answer that is still None.

    Args:
        error: with its traceback; one from a box says itself whether a statement raised it.
    """
    if not isinstance(error, NotImplementedError):
        return False
    from_a_box = getattr(error, "box_error", None)
    if from_a_box is not None:
        return bool(from_a_box.by_hand)
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not re.search(r"\braise\b", frames[-1].line or ""):
        return False
    filename = frames[-1].filename
    return in_a_cell(filename) or Path(filename).parent == Path(__file__).parent
