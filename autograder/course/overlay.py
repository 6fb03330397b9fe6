"""A course made of another one: a ``course.toml`` with ``extends``, and no lesson copied.

    extends = "../statistics"
    title = "Statistics in six weeks"
    leave_out = ["02-medians"]

    [change."03-variance"]
    title = "How far apart"
    minutes = 120
    weight = 2
    due = 2027-03-01T23:59:00+01:00
    points = {variance = 5, written_why = 2}

``extends`` is a folder, said from that of the course itself.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from autograder.course.course_toml import (
    PictureText,
    WrongCourseToml,
    picture,
    refuse_others,
    words,
)

if TYPE_CHECKING:
    from autograder.course.lessons import Lesson

_OF_OVERLAY = ("extends", "title", "picture", "leave_out", "change")
_OF_CHANGE = ("title", "about", "minutes", "weight", "due", "points")


@dataclass(frozen=True)
class ClassTerms:
    """What a new class begins with: when a lesson is due, and how much it counts."""

    due: Mapping[str, datetime]
    weights: Mapping[str, float]


@dataclass(frozen=True)
class Overlay:
    """What a course.toml changes of the course that it extends.

    Attributes:
        extends: that course's folder, from this one's.
        title: of this course, or "" for the other's.
        picture: of its start page; None for the other's.
        leave_out: folders of lessons that it has not.
        change: what it says otherwise of a lesson.
    """

    extends: str
    title: str
    picture: PictureText | None
    leave_out: tuple[str, ...]
    change: Mapping[str, Mapping[str, Any]]

    def applied(self, lessons: tuple[Lesson, ...]) -> tuple[Lesson, ...]:
        """The other course's lessons as this one has them; those left out are drafts.

        Raises:
            WrongCourseToml: it names a lesson that the other course has not.
        """
        there = [lesson.folder for lesson in lessons]
        for name in (*self.leave_out, *self.change):
            if name not in there:
                raise WrongCourseToml(
                    f"{name} is no lesson of {self.extends}; it has {', '.join(there)}"
                )
        made: list[Lesson] = []
        for lesson in lessons:
            said = self.change.get(lesson.folder, {})
            fields = {name: said[name] for name in ("title", "about", "minutes") if name in said}
            made.append(
                replace(
                    lesson,
                    draft=lesson.draft or lesson.folder in self.leave_out,
                    needs=tuple(name for name in lesson.needs if name not in self.leave_out),
                    earlier=tuple(made),
                    points=tuple(said.get("points", {}).items()),
                    **fields,
                )
            )
        return tuple(made)

    def builds_on(self, lessons: tuple[Lesson, ...]) -> list[str]:
        """What builds on a lesson left out, in words.

        Args:
            lessons: of the other course.
        """
        return [
            f"{lesson.folder} builds on {name}, which is left out: what it takes from there is "
            "the course's own"
            for lesson in lessons
            if lesson.folder not in self.leave_out
            for name in lesson.needs
            if name in self.leave_out
        ]

    @property
    def terms(self) -> ClassTerms:
        """What a class of this course begins with."""
        due, weights = (
            {name: said[what] for name, said in self.change.items() if what in said}
            for what in ("due", "weight")
        )
        return ClassTerms(due, weights)


def read_overlay(text: str) -> Overlay | None:
    """What a course.toml changes of another course; None where it extends none.

    Raises:
        WrongCourseToml: a field is unknown or of another kind.
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None  # said by who reads it as a course of its own
    if "extends" not in tree:
        return None
    refuse_others("", tree, _OF_OVERLAY)
    leave_out = tree.get("leave_out", [])
    if not isinstance(leave_out, list) or not all(isinstance(name, str) for name in leave_out):
        raise WrongCourseToml("leave_out should be a list of lessons' folders")
    change = tree.get("change", {})
    if not isinstance(change, dict):
        raise WrongCourseToml('each change is a table of its own: [change."03-a-lesson"]')
    for name, said in change.items():
        _check_change(name, said)
    extends = words("", tree, "extends")
    title = words("", tree, "title") if "title" in tree else ""
    shown = picture(tree["picture"]) if "picture" in tree else None
    return Overlay(extends, title, shown, (*leave_out,), change)


def _check_change(name: str, said: object) -> None:
    where = f"change of {name}: "
    if not isinstance(said, dict):
        raise WrongCourseToml(f'{where}it should be a table: [change."{name}"]')
    refuse_others(where, said, _OF_CHANGE)
    for field in ("title", "about"):
        if field in said:
            words(where, said, field)
    minutes, weight, due = said.get("minutes", 1), said.get("weight", 1), said.get("due")
    if type(minutes) is not int or minutes <= 0:
        raise WrongCourseToml(f"{where}minutes should be a whole number, such as 90")
    if type(weight) not in (int, float) or weight < 0:
        raise WrongCourseToml(f"{where}weight should be a number, such as 2")
    points = said.get("points", {})
    if not isinstance(points, dict) or not all(map(_is_worth, points.values())):
        raise WrongCourseToml(f"{where}points should be numbers, such as {{softmax = 3}}")
    if due is not None and (not isinstance(due, datetime) or due.tzinfo is None):
        raise WrongCourseToml(
            f"{where}due should be a time with its offset, such as 2027-03-01T23:59:00+01:00"
        )


def _is_worth(points: object) -> bool:
    return type(points) in (int, float) and points > 0  # type: ignore[operator]
