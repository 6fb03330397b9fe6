"""The short answers of a lesson without anything that tells which choice is right.

Light, since the process that grades a class imports it;
:mod:`autograder.lesson.short_answers` is not.
"""

from __future__ import annotations

import json

#: The same as :data:`autograder.lesson.short_answers.ANSWERS_FILE`, which a test holds it to.
ANSWERS_FILE = "lesson/answers.json"


def choices_alone(text: str) -> str:
    """What ``lesson/answers.json`` holds, the fingerprints and sealed replies left out."""
    alone = {name: {"choices": known["choices"]} for name, known in json.loads(text).items()}
    return json.dumps(alone, indent=1, ensure_ascii=False) + "\n"
