"""The modules that lie beside every notebook, by the names its cells import them by."""

from __future__ import annotations

from types import ModuleType

from autograder.lesson import (
    advice,
    cells,
    checks,
    evidence,
    exceptions,
    failures,
    figures,
    fingerprints,
    known_mistakes,
    progress,
    raised,
    repair,
    short_answers,
)

#: Name beside a notebook, and the module of this package that it is a copy of.
MODULES: dict[str, ModuleType] = {
    "lesson_advice": advice,
    "lesson_cells": cells,
    "lesson_checks": checks,
    "lesson_evidence": evidence,
    "lesson_exceptions": exceptions,
    "lesson_failures": failures,
    "lesson_figures": figures,
    "lesson_fingerprints": fingerprints,
    "lesson_known_mistakes": known_mistakes,
    "lesson_short_answers": short_answers,
    "lesson_raised": raised,
    "lesson_repair": repair,
    "lesson_progress": progress,
}
