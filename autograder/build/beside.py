"""What lies beside a notebook: one folder, ``lesson/``, and nothing else.

It holds a copy of :mod:`autograder.lesson`, as it is, which the notebook's cells import; the sealed
short answers; fingerprints of known mistakes; parts of earlier lessons. A released lesson folder
works by itself; the grader and the tester use their own copies.
"""

from __future__ import annotations

from pathlib import Path

import autograder.lesson
from autograder.course.answers import sealed_answers
from autograder.course.earlier import EARLIER_FILE, carried_over
from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import released_mistakes
from autograder.lesson.known_mistakes import MISTAKES_FILE
from autograder.lesson.short_answers import ANSWERS_FILE

_READ_ME = """\
What the notebook in the folder above needs: its checks, its figures, and what it takes over from
earlier lessons. Keep this folder beside the notebook when you copy or move it; there is nothing
in it to edit.
"""


def companions(lesson: Lesson) -> dict[str, str]:
    """Name and text of every file that travels with a lesson's notebook."""
    package = Path(str(autograder.lesson.__file__)).parent
    files = {
        f"lesson/{path.name}": path.read_text(encoding="utf-8")
        for path in sorted(package.glob("*.py"))
    }
    files["lesson/README.txt"] = _READ_ME
    files[ANSWERS_FILE] = sealed_answers(lesson)
    files[MISTAKES_FILE] = released_mistakes(lesson)
    earlier = carried_over(lesson)
    if earlier:
        files[EARLIER_FILE] = earlier
    return files


def write_companions(lesson: Lesson, folder: Path) -> None:
    """Write :func:`companions` into ``folder``."""
    (folder / "lesson").mkdir(exist_ok=True)
    for name, text in companions(lesson).items():
        (folder / name).write_text(text, encoding="utf-8")
