"""The map of a course: its core path, what goes on from there, and how far a student is on it.

Markdown with links, so that it is there before anything was run, also in a notebook that is not
trusted.
"""

from __future__ import annotations

import re

from .course_progress import Progress
from .words import N_, tr

__all__ = ["as_map", "refresh"]

#: Before a lesson: nothing of it is begun, something is, all that can be seen is done.
_NOT_BEGUN, _BEGUN, _DONE = "○◐●"
_SOLVED = "✓"
#: What does not wrap.
_NARROW = "\N{NO-BREAK SPACE}"


def refresh() -> str:
    """A button that brings the map up to date with one click, in JupyterLab and Notebook 7; without
    a question where the page is trusted, as one is that was run or laid out by
    :mod:`autograder.student.start`."""
    return (
        '<button type="button" data-commandlinker-command="notebook:run-all-cells">'
        f"{tr('Bring this up to date')}</button>\n\n"
    )


def as_map(lessons: list[Progress]) -> str:
    """Where to go on, the lessons on their paths with links, and what is to be mended.

    Args:
        lessons: in the course's order.
    """
    core = [lesson for lesson in lessons if lesson.core] or lessons
    others = [lesson for lesson in lessons if lesson not in core]
    title = tr("The core path") if others else tr("The lessons")
    lines = [*_goal(lessons), "", f"**{title}**", ""]
    lines.append(" → ".join(map(_step, core)))
    for needs in dict.fromkeys(lesson.needs for lesson in others):
        row = [_step(lesson) for lesson in others if lesson.needs == needs]
        after = tr("After {lessons}", lessons=needs)
        lines += ["", f"**{after}**", "", " · ".join(row)]
    lines += [
        "",
        tr(
            "{not_begun} not begun · {begun} begun, with the checks that pass · {done} done",
            not_begun=_NOT_BEGUN,
            begun=_BEGUN,
            done=_DONE,
        ),
    ]
    if any(lesson.puzzle_solved for lesson in lessons):
        lines[-1] += tr(" · {solved} its puzzle is solved", solved=_SOLVED)
    for lesson in lessons:
        lines += _to_mend(lesson)
    lines += ["", *_details(lessons)] if lessons else []
    return "\n".join(lines).strip()


def _goal(lessons: list[Progress]) -> list[str]:
    """The lesson to go on with, as a line of its own."""
    left = [lesson for lesson in lessons if not lesson.done and not lesson.problem]
    begun = [lesson for lesson in left if lesson.begun]
    begun = [lesson for lesson in begun if lesson.core] or begun
    if left:
        goal = next(iter(begun[::-1] or [lesson for lesson in left if lesson.core] or left))
        going_on = len(left) < len(lessons) or begun
        to = N_("**Go on with {lesson}.**") if going_on else N_("**Begin with {lesson}.**")
        return [tr(to, lesson=f"[{_cell(goal.title)}]({goal.link})")]
    done = tr("All visible checks pass. More checks run when your work is graded.")
    return [done] if lessons else []


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
    count = tr("({passing} of {checks})", passing=lesson.passing, checks=lesson.checks)
    return f"{said} {count.replace(' ', _NARROW)}"


def _details(lessons: list[Progress]) -> list[str]:
    rows = [
        f"| [{_cell(lesson.title)}]({lesson.link}) | {_cell(lesson.about)} | {lesson.minutes} | "
        f"{_cell(lesson.needs)} |"
        for lesson in lessons
    ]
    return [
        "<details><summary>"
        + tr("What each lesson is about, its minutes, and what it needs")
        + "</summary>",
        "",
        tr("| lesson | what it is about | minutes | needs |"),
        "| :-- | :-- | --: | :-- |",
        *rows,
        "",
        "</details>",
    ]


def _to_mend(lesson: Progress) -> list[str]:
    """What is begun in a lesson and does not pass, each with a link to its check; where every check
    passes, what is not written yet."""
    unwritten = lesson.untouched if lesson.begun and lesson.passing == lesson.checks else []
    if not lesson.left and not unwritten:
        return []
    lines = ["", tr("**{lesson}**, left to do:", lesson=_cell(lesson.title)), ""]
    lines += [f"- [{name}]({link}): {_cell(why)}" for name, link, why in lesson.left]
    if lesson.untouched:
        lines.append(tr("- not begun: {names}", names=", ".join(lesson.untouched)))
    return lines


def _cell(text: str) -> str:
    return re.sub(r"([|\[\]<>])", r"\\\1", text)
