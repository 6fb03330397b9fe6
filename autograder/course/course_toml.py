"""``lessons/course.toml``, read and checked: a slip in it is answered with what to write."""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


class WrongCourseToml(ValueError):
    """It cannot be used; the message says what to write."""


@dataclass(frozen=True)
class LessonText:
    """What course.toml says of a lesson; see :class:`autograder.course.lessons.Lesson`."""

    folder: str
    title: str
    minutes: int
    needs: tuple[str, ...]
    about: str
    draft: bool
    notebook: str
    core: tuple[str, ...]
    core_minutes: int


@dataclass(frozen=True)
class PackageText:
    """What course.toml says of the package that a student's answers become.

    Attributes:
        name: that Python imports it by.
        about: what it is, in a sentence.
    """

    name: str
    about: str


@dataclass(frozen=True)
class PictureText:
    """What course.toml says of the picture with which the start page opens.

    Attributes:
        file: a PNG, from the course's own folder.
        says: the same for whoever does not see it.
        caption: below it.
    """

    file: str
    says: str
    caption: str


@dataclass(frozen=True)
class CourseText:
    """What course.toml says: of the course, and of each lesson in order.

    Attributes:
        title: of the course.
        needs: what lessons ask for that need no other, in words.
        lessons: all of them, drafts too.
        package: where answers that pass are kept; None where they are not.
        picture: of the start page, if it has one.
        way: a file as :mod:`lesson_kit.token_way` draws it, from the course's own folder; "" where
            there is none.
    """

    title: str
    needs: str
    lessons: tuple[LessonText, ...]
    package: PackageText | None = None
    picture: PictureText | None = None
    way: str = ""


_OF_COURSE = ("title", "needs", "package", "picture", "way", "lesson")
_OF_PICTURE = ("file", "says", "caption")
_OF_PACKAGE = ("name", "about")
_OF_LESSON = (
    *("folder", "title", "minutes", "needs", "about", "draft", "notebook"),
    *("core", "core_minutes"),
)


def read_course_toml(text: str) -> CourseText:
    """What the text of a course.toml says.

    Raises:
        WrongCourseToml: it is not TOML, lacks a field, has one that is unknown or of another
            kind, or names a lesson that is not above.
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WrongCourseToml(f"it is not valid TOML: {error}") from None
    refuse_others("", tree, _OF_COURSE)
    entries = _field("", tree, "lesson")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise WrongCourseToml("each lesson is a table of its own: [[lesson]], in double brackets")
    lessons: list[LessonText] = []
    for entry in entries:
        lessons.append(_lesson(entry, [lesson.folder for lesson in lessons]))
    return CourseText(
        words("", tree, "title"),
        words("", tree, "needs", "Python"),
        (*lessons,),
        _package(tree["package"]) if "package" in tree else None,
        picture(tree["picture"]) if "picture" in tree else None,
        words("", tree, "way") if "way" in tree else "",
    )


def notebook_of(folder: str) -> str:
    """What a lesson's notebook is called unless the file says another name."""
    return re.sub(r"^\d+-", "", folder).replace("-", "_")


def _package(entry: object) -> PackageText:
    if not isinstance(entry, dict):
        raise WrongCourseToml("package is a table of its own, [package], with name and about")
    refuse_others("package: ", entry, _OF_PACKAGE)
    name, about = (words("package: ", entry, field) for field in _OF_PACKAGE)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise WrongCourseToml(f"package: the name {name!r} is no name; write it as my_statistics")
    if re.search(r'["\\\n{}]', about):
        raise WrongCourseToml("package: about is one line, without quotes, braces or backslashes")
    return PackageText(name, about)


def picture(entry: object) -> PictureText:
    """What a course.toml says of its picture.

    Raises:
        WrongCourseToml: a field is missing, unknown or of another kind.
    """
    if not isinstance(entry, dict):
        raise WrongCourseToml("picture is a table of its own: [picture], with file, says, caption")
    refuse_others("picture: ", entry, _OF_PICTURE)
    file, says, caption = (words("picture: ", entry, field) for field in _OF_PICTURE)
    if not file.endswith(".png"):
        raise WrongCourseToml(
            f"picture: the file {file!r} should be a PNG, such as docs/course.png"
        )
    return PictureText(file, says, caption)


def _lesson(entry: dict[str, Any], above: list[str]) -> LessonText:
    folder = words("a lesson: ", entry, "folder")
    where = f"{folder}: "
    refuse_others(where, entry, _OF_LESSON)
    if not re.fullmatch(r"\d+-[\w-]*\w", folder):
        raise WrongCourseToml(
            f"the folder {folder!r} should begin with its number, such as "
            f"{len(above) + 1:02d}-{folder.strip('-0123456789') or 'name'}"
        )
    if int(folder.partition("-")[0]) in [int(name.partition("-")[0]) for name in above]:
        raise WrongCourseToml(f"{where}a lesson above has the same number; give it another")
    minutes = _field(where, entry, "minutes")
    if type(minutes) is not int or minutes <= 0:
        raise WrongCourseToml(f"{where}minutes should be a whole number, such as 90")
    draft = entry.get("draft", False)
    if not isinstance(draft, bool):
        raise WrongCourseToml(f"{where}draft should be true or false, without quotes")
    needs = _field(where, entry, "needs")
    if not isinstance(needs, list):
        raise WrongCourseToml(f"{where}needs should be a list of folders, such as [] or {[folder]}")
    for name in needs:
        if name not in above:
            there = ", ".join(above) or "none, so that it is []"
            raise WrongCourseToml(f"{where}needs {name!r}, no lesson above it; there are {there}")
    notebook = words(where, entry, "notebook", notebook_of(folder))
    if not notebook.isidentifier() or notebook in ("misconceptions", "alternatives"):
        raise WrongCourseToml(f"{where}notebook {notebook!r} is no name; write it as my_notebook")
    title, about = words(where, entry, "title"), words(where, entry, "about")
    core, core_minutes = _core(where, entry, minutes)
    return LessonText(
        folder, title, minutes, tuple(needs), about, draft, notebook, core, core_minutes
    )


def _core(where: str, entry: dict[str, Any], minutes: int) -> tuple[tuple[str, ...], int]:
    """The exercises of the core path and its minutes; none where the lesson is not on it."""
    names, spent = entry.get("core", []), entry.get("core_minutes", 0)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise WrongCourseToml(f'{where}core should be a list of exercises, such as ["softmax"]')
    if type(spent) is not int or not 0 <= spent <= minutes or bool(spent) != bool(names):
        raise WrongCourseToml(
            f"{where}core and core_minutes belong together: exercises, and a whole number of "
            f"minutes up to {minutes}"
        )
    return tuple(names), spent


def refuse_others(where: str, table: dict[str, Any], known: Iterable[str]) -> None:
    """Refuse a table with a field that is unknown.

    Raises:
        WrongCourseToml: it has one; the message begins with ``where``.
    """
    for name in table:
        if name not in known:
            raise WrongCourseToml(f"{where}{name} is unknown; there are {', '.join(known)}")


def _field(where: str, table: dict[str, Any], name: str) -> Any:
    if name not in table:
        raise WrongCourseToml(f"{where}the field {name} is missing")
    return table[name]


def words(where: str, table: dict[str, Any], name: str, usual: str = "") -> str:
    """A field of words; ``usual`` where it is left out, if it may be.

    Raises:
        WrongCourseToml: it is missing or something else; the message begins with ``where``.
    """
    value = table.get(name, usual) if usual else _field(where, table, name)
    if not isinstance(value, str) or not value.strip():
        raise WrongCourseToml(f"{where}{name} should be words in quotes")
    return value
