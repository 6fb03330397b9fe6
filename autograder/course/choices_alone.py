"""What lies beside a notebook, without anything that tells which choice of a short answer is right.

Light, since the process that grades a class imports it;
:mod:`lesson_kit.short_answers` is not.
"""

from __future__ import annotations

import json
from typing import Any

#: The same as in :mod:`lesson_kit.short_answers` and :mod:`lesson_kit.known_mistakes`, which a
#: test holds them to.
ANSWERS = "answers"
KNOWN_MISTAKES = "known_mistakes"


def choices_alone(data: str) -> dict[str, Any]:
    """What a lesson's data file holds, the fingerprints and sealed replies left out."""
    tree: dict[str, Any] = json.loads(data)
    tree[ANSWERS] = {name: {"choices": known["choices"]} for name, known in tree[ANSWERS].items()}
    return tree
