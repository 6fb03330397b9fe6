"""The map of a course: its core path, what goes on from there, and how far a student is on it.

Markdown with links, so that it is there before anything was run, also in a notebook that is not
trusted.
"""

from __future__ import annotations

import re

from .course_progress import Progress

__all__ = ["as_map"]

#: Before a lesson: nothing of it is begun, something is, all that can be seen is done.
_NOT_BEGUN, _BEGUN, _DONE = "○◐●"
_SOLVED = "✓"
#: What does not wrap.
_NARROW = "\N{NO-BREAK SPACE}"


def as_map(lessons: list[Progress]) -> str:
    """Where to go on, the lessons on their paths with links, and what is to be mended.

    Args:
        lessons: in the course's order.
    """
    core = [lesson for lesson in lessons if lesson.core] or lessons
    others = [lesson for lesson in lessons if lesson not in core]
    lines = [*_goal(lessons), "", f"**{'The core path' if others else 'The lessons'}**", ""]
    lines.append(" → ".join(map(_step, core)))
    for needs in dict.fromkeys(lesson.needs for lesson in others):
        row = [_step(lesson) for lesson in others if lesson.needs == needs]
        lines += ["", f"**After {needs}**", "", " · ".join(row)]
    lines += [
        "",
        f"{_NOT_BEGUN} not begun · {_BEGUN} begun, with the checks that pass · {_DONE} done",
    ]
    if any(lesson.puzzle_solved for lesson in lessons):
        lines[-1] += f" · {_SOLVED} its puzzle is solved"
    for lesson in lessons:
        lines += _to_mend(lesson)
    lines += ["", *_details(lessons)] if lessons else []
    return "\n".join(lines).strip()


def _goal(lessons: list[Progress]) -> list[str]:
    """The lesson to go on with, as a line of its own."""
    left = [lesson for lesson in lessons if not lesson.done and not lesson.problem]
    begun = [lesson for lesson in left if lesson.begun]
    if left:
        goal = next(iter(begun[::-1] or [lesson for lesson in left if lesson.core] or left))
        words = "Go on with" if len(left) < len(lessons) or begun else "Begin with"
        return [f"**{words} [{_cell(goal.title)}]({goal.link}).**"]
    return ["All visible checks pass. More checks run when your work is graded."] if lessons else []


def _step(lesson: Progress) -> str:
    """A lesson on the map: how far it is, and its link."""
    mark = _DONE if lesson.done else _BEGUN if lesson.begun or lesson.passing else _NOT_BEGUN
    said = f"{mark}{_NARROW}[{_cell(lesson.title)}]({lesson.link})"
    if lesson.puzzle_solved:
        said += f"{_NARROW}{_SOLVED}"
    if lesson.problem:
        return f"{said} ({lesson.problem})"
    if mark != _BEGUN:
        return said
    count = f"({lesson.passing} of {lesson.checks})"
    return f"{said} {count.replace(' ', _NARROW)}"


def _details(lessons: list[Progress]) -> list[str]:
    rows = [
        f"| [{_cell(lesson.title)}]({lesson.link}) | {_cell(lesson.about)} | {lesson.minutes} | "
        f"{_cell(lesson.needs)} |"
        for lesson in lessons
    ]
    return [
        "<details><summary>What each lesson is about, its minutes, and what it needs</summary>",
        "",
        "| lesson | what it is about | minutes | needs |",
        "| :-- | :-- | --: | :-- |",
        *rows,
        "",
        "</details>",
    ]


def _to_mend(lesson: Progress) -> list[str]:
    """What is begun in a lesson and does not pass, each with a link to its check."""
    if not lesson.left:
        return []
    lines = ["", f"**{_cell(lesson.title)}**, left to do:", ""]
    lines += [f"- [{name}]({link}): {_cell(why)}" for name, link, why in lesson.left]
    if lesson.untouched:
        lines.append(f"- not begun: {', '.join(lesson.untouched)}")
    return lines


def _cell(text: str) -> str:
    return re.sub(r"([|\[\]<>])", r"\\\1", text)
