"""How the reasons begin for which a submission has no notebook to grade.

What begins like this quotes nothing that a student chose; what to do follows in each reason.
"""

from __future__ import annotations

EMPTY = "The file is empty"
NOT_JSON = "The file is not a notebook: it is not JSON"
NO_NOTEBOOK = "The file is JSON but not a notebook"
NOT_REGULAR = "The notebook is not a regular file"
NOT_OPENED = "The notebook could not be opened"
A_LINK = f"{NOT_OPENED}: it is a link"
FOLDER_A_LINK = "The submission's folder is a link"
NOT_HANDED_IN = "No notebook was handed in"
OTHER_FILES = "No notebook was handed in, but a file of another kind"

_QUOTE_NOTHING = (
    EMPTY,
    NOT_JSON,
    NO_NOTEBOOK,
    NOT_REGULAR,
    A_LINK,
    FOLDER_A_LINK,
    OTHER_FILES,  # before what it begins with
    NOT_HANDED_IN,
)


def without_quotes(reason: str) -> str:
    """The beginning of a published reason that quotes nothing of a submission, or ""."""
    return next((opening for opening in _QUOTE_NOTHING if reason.startswith(opening)), "")
