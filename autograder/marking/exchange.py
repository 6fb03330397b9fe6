"""What nbgrader's exchange needs beside a feedback page, so that it finds its student."""

from __future__ import annotations

import re
from pathlib import Path

from autograder.classroom.late import read_timestamp, write_timestamp
from autograder.files import write_whole
from autograder.grade.submission import Unreadable, read_file

#: `nbgrader submit` puts it with the notebook; pages in the exchange are named after it.
SECRET = "submission_secret.txt"


def name_for_exchange(submission: Path, page: Path) -> None:
    """Put the secret and the time of a submission beside its page, or its autograded notebook.

    `nbgrader release_feedback` reads both. What came by another way than the exchange has no
    secret; then none of an earlier submission stays.

    Args:
        submission: the folder of what was handed in; its files are the student's.
        page: the file that stands, or will stand, there.
    """
    secret, came = _secret(submission / SECRET), read_timestamp(submission)
    page.parent.mkdir(parents=True, exist_ok=True)
    if secret and came is not None:
        write_whole(page.with_name(SECRET), secret)
        write_timestamp(page.parent, came)
    else:
        page.with_name(SECRET).unlink(missing_ok=True)


def _secret(path: Path) -> str:
    try:
        text = read_file(path).decode("ascii", "replace")
    except Unreadable:
        return ""
    return text if re.fullmatch("[0-9a-f]{32,256}", text) else ""
