"""What lies beside a notebook: the modules its cells import, and the sealed answers.

A released lesson folder works by itself; the grader and the tester use their own copies.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from autograder.course.answers import sealed_answers
from autograder.course.earlier import EARLIER, carried_over
from autograder.course.lessons import Lesson
from autograder.diagnose.catalogue import released_mistakes
from autograder.lesson.beside import MODULES
from autograder.lesson.known_mistakes import MISTAKES_FILE
from autograder.lesson.short_answers import ANSWERS_FILE


def companions(lesson: Lesson) -> dict[str, str]:
    """Name and text of every file that travels with a lesson's notebook."""
    files = {f"{name}.py": _copy_of(module) for name, module in MODULES.items()}
    files[ANSWERS_FILE] = sealed_answers(lesson)
    files[MISTAKES_FILE] = released_mistakes(lesson)
    earlier = carried_over(lesson)
    if earlier:
        files[f"{EARLIER}.py"] = earlier
    return files


def write_companions(lesson: Lesson, folder: Path) -> None:
    """Write :func:`companions` into ``folder``."""
    for name, text in companions(lesson).items():
        (folder / name).write_text(text, encoding="utf-8")


def _copy_of(module: ModuleType) -> str:
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    for name, other in MODULES.items():
        text = text.replace(f"from {other.__name__} import", f"from {name} import")
    origin = module.__name__.replace(".", "/")
    return f"# Generated from {origin}.py by `autograder build`. Do not edit this copy.\n{text}"
