"""Who is who in a class report: numbers instead of names."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping

from autograder.text import plain_line

#: Submissions that are named as examples.
MAX_EXAMPLES = 5


def labels(
    students: Iterable[str], seed: int, names: bool, people: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What each student is called in the report, in the order in which they are listed.

    With ``names`` the name that ``people`` has, the id and the number, by id. Without,
    "student 7": numbered in the order of a keyed hash of the id. The key is the class's seed,
    which students do not know; so the numbers are the same in every report on the same students,
    and neither the order of the ids nor a list of them tells who has which.
    """
    key = str(seed).encode()
    everybody = set(students)

    def place(student: str) -> bytes:
        return hmac.digest(key, student.encode("utf-8", "surrogatepass"), hashlib.sha256)

    hashed = sorted(everybody, key=place)
    numbered = {student: f"student {number}" for number, student in enumerate(hashed, 1)}
    if not names:
        return numbered
    return {
        student: ", ".join(filter(None, [(people or {}).get(student, ""), plain_line(student)]))
        + f" ({numbered[student]})"
        for student in sorted(everybody)
    }


def without_ids(text: str, students: Iterable[str]) -> str:
    """``text`` with "…" where the id of a student stands as a word, in any case."""
    ids = sorted((student for student in students if student), key=len, reverse=True)
    pattern = "|".join(re.escape(student) for student in ids)
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", "…", text, flags=re.I) if ids else text
