"""The modules that lie beside every notebook, by the names its cells import them by."""

from __future__ import annotations

from types import ModuleType

from autograder.lesson import (
    checks,
    failures,
    figures,
    fingerprints,
    progress,
    raised,
    short_answers,
)

#: Name beside a notebook, and the module of this package that it is a copy of.
MODULES: dict[str, ModuleType] = {
    "lesson_checks": checks,
    "lesson_failures": failures,
    "lesson_figures": figures,
    "lesson_fingerprints": fingerprints,
    "lesson_short_answers": short_answers,
    "lesson_raised": raised,
    "lesson_progress": progress,
}
