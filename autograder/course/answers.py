"""The short answers of a lesson as a released folder may hold them: sealed."""

from __future__ import annotations

import json

from autograder.course.implementations import choices
from autograder.course.lessons import Lesson
from autograder.course.translation import sealed_words
from lesson_kit.short_answers import seal_reply


def sealed_answers(lesson: Lesson) -> str:
    """What a lesson's data file says of them, as JSON: for each short answer its choices, and for
    each choice a fingerprint and a reply that only that choice can open."""
    entries: dict[str, dict[str, object]] = {}
    for choice in choices(lesson):
        entry = entries.setdefault(choice.exercise, {"choices": [], "replies": {}})
        shown = entry["choices"]
        replies = entry["replies"]
        assert isinstance(shown, list) and isinstance(replies, dict)
        shown.append(choice.value)
        reason = sealed_words(lesson, choice.reason)
        fingerprint, sealed = seal_reply(choice.exercise, choice.value, choice.right, reason)
        replies[fingerprint] = sealed
    for entry in entries.values():
        assert isinstance(entry["choices"], list) and isinstance(entry["replies"], dict)
        entry["choices"] = sorted(entry["choices"], key=str)
        entry["replies"] = dict(sorted(entry["replies"].items()))
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
