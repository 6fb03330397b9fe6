"""The file beside a notebook: sealed short answers, fingerprints of known mistakes, parts of
earlier lessons, and the way through the course's subject with the lesson's place on it.

Where a notebook is handed out, the kit lies there too (:mod:`autograder.course.standalone`): a copy
of :mod:`lesson_kit`, as it is, which the notebook's cells import, so that a released lesson folder
works by itself. Where the kit is installed no copy is needed, so ``course/`` and ``solutions/``
have none. The grader and the tester use their own data and kit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autograder.course.answers import sealed_answers
from autograder.course.lessons import Lesson
from autograder.course.prerequisites import carried_over
from autograder.course.source_rules import LessonError
from autograder.course.translation import words_of
from autograder.diagnose.catalogue import released_mistakes
from lesson_kit.earlier import EARLIER
from lesson_kit.known_mistakes import KNOWN_MISTAKES
from lesson_kit.setting import DATA_FILE, pack
from lesson_kit.short_answers import ANSWERS
from lesson_kit.token_way import WAY
from lesson_kit.words import WORDS


def data_of(lesson: Lesson) -> str:
    """The text of the file beside a lesson's notebook, by lines, so that a changed part is one."""
    parts = {ANSWERS: sealed_answers(lesson), KNOWN_MISTAKES: released_mistakes(lesson)}
    if earlier := carried_over(lesson):
        parts[EARLIER] = json.dumps(earlier)
    if spoken := words_of(lesson):
        parts[WORDS] = json.dumps(spoken)
    if lesson.way:
        parts[WAY] = json.dumps(pack(way_of(lesson.way, lesson.number)))
    lines = [f"{json.dumps(name)}: {text.strip()}" for name, text in sorted(parts.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def way_of(path: Path, number: int) -> dict[str, Any]:
    """The course's way, as its file says it, with the number of the lesson that shows it.

    Raises:
        LessonError: the file is missing, or no JSON with stations.
    """
    try:
        way = json.loads(path.read_text(encoding="utf-8"))
        return {**way, "stations": [*way["stations"]], "number": number}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LessonError(
            f"course.toml names {path} as its way, which should be JSON with stations: {error!r}"
        ) from None


def write_data(lesson: Lesson, folder: Path) -> None:
    """Write :func:`data_of` a lesson into the folder of its notebook."""
    (folder / DATA_FILE).write_text(data_of(lesson), encoding="utf-8")
