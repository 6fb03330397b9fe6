"""What translators are given, and what they have left out: catalogues brought up to date."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import autograder
import lesson_kit
from autograder.course.lessons import Course, Lesson
from autograder.course.messages import messages_of
from autograder.course.translation import course_words, engine_forms, read_catalogue
from autograder.files import write_whole

if TYPE_CHECKING:
    from babel.messages import Catalog

__all__ = [
    "course_template",
    "engine_templates",
    "fill_in",
    "lesson_template",
    "not_translated",
    "remarks",
    "unfit",
]

#: How sentences are marked in code, and in how many forms; and how in templates, as Babel says it.
_MARKS = {"tr": 1, "N_": 1, "tr_n": 2, "N_n": 2}
_IN_TEMPLATES = {"_": None, "n_": (1, 2)}
#: Where what is marked is read by instructors, from the package's folder.
_INSTRUCTORS = (
    *("report/", "marking/mark_server.py", "marking/by_question.py"),
    *("templates/mark.html.j2", "templates/report.html.j2"),
)

_FIELDS = re.compile(r"\{(\w*)\}")
_CODE = re.compile(r"`[^`]*`|\$[^$]+\$")
#: Characters of a message that a remark shows.
_SHOWN = 60


def lesson_template(lesson: Lesson) -> Catalog:
    """All messages of a lesson, without translations."""
    return _template(message.text for message in messages_of(lesson))


def course_template(course: Course) -> Catalog:
    """All messages of what course.toml says with no lesson, without translations."""
    return _template(course_words(course))


def _template(texts: Iterable[str | tuple[str, ...]]) -> Catalog:
    from babel.messages import Catalog

    template = Catalog()
    for text in texts:
        template.add(text)
    return template


def engine_templates() -> tuple[Catalog, Catalog]:
    """All messages of the kit and of the engine, without translations: those of students' pages,
    and the others of instructors'."""
    marked: dict[bool, list[str | tuple[str, ...]]] = {False: [], True: []}
    for package in (lesson_kit, autograder):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*.py")):
            its = marked[path.relative_to(root).as_posix().startswith(_INSTRUCTORS)]
            its.extend(_marked(path.read_text(encoding="utf-8")))
    root = Path(autograder.__file__).parent
    for path in sorted(root.glob("templates/**/*.j2")):
        its = marked[path.relative_to(root).as_posix().startswith(_INSTRUCTORS)]
        its.extend(_marked_in_template(path))
    students = [*marked[False], *engine_forms()]
    return _template(students), _template(text for text in marked[True] if text not in students)


def _marked_in_template(path: Path) -> list[str | tuple[str, ...]]:
    from babel.messages.extract import extract

    file = io.BytesIO(path.read_bytes())
    return [said for _, said, *_ in extract("jinja2.ext:babel_extract", file, _IN_TEMPLATES)]


def _marked(source: str) -> Iterator[str | tuple[str, str]]:
    """The marked sentences of a module, also those inside f-strings, which tokens hide."""
    if not any(f"{mark}(" in source for mark in _MARKS):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            forms = _MARKS.get(node.func.id, 0)
            texts = [arg.value for arg in node.args[:forms] if isinstance(arg, ast.Constant)]
            if forms and len(texts) == forms:
                yield str(texts[0]) if forms == 1 else (str(texts[0]), str(texts[1]))


def fill_in(path: Path, template: Catalog) -> None:
    """Bring a catalogue up to date: what came is empty, what resembles a former message fuzzy."""
    from babel.messages.pofile import write_po

    catalogue = read_catalogue(path)
    catalogue.update(template, update_creation_date=False)
    catalogue.fuzzy, catalogue.header_comment = False, f"# What autograder says in {path.stem}."
    for message in catalogue:  # what fields a message has, `unfit` sees by itself
        message.flags &= {"fuzzy"}
    file = io.BytesIO()
    write_po(file, catalogue, width=100, no_location=True, ignore_obsolete=True)
    write_whole(path, file.getvalue().decode())


def not_translated(path: Path, template: Catalog) -> list[str]:
    """The messages that a catalogue lacks, or has as fuzzy, in English."""
    known = {
        _key(message.id): message
        for message in read_catalogue(path)
        if message.id and any(_strings(message.string))
    }
    return [
        _key(message.id)
        for message in template
        if message.id and (_key(message.id) not in known or known[_key(message.id)].fuzzy)
    ]


def unfit(path: Path) -> Iterator[str]:
    """Translations whose fields, or whose words of code, are not those of the message."""
    for message in read_catalogue(path):
        if not message.id or message.fuzzy:
            continue
        originals = _strings(message.id)
        for translated in filter(None, _strings(message.string)):
            for pattern in (_FIELDS, _CODE):
                wanted = [set(pattern.findall(text)) for text in originals]
                if set(pattern.findall(translated)) not in wanted:
                    begins = _key(message.id)[:_SHOWN]
                    yield f"{begins!r} has {sorted(wanted[0])}, its translation not"


def remarks(of: Course | Lesson) -> Iterator[str]:
    """What is left out of the catalogues of a lesson, or of course.toml, and does not fit."""
    if isinstance(of, Lesson):
        folder, template = of.path, lesson_template(of)
        what = f"translate {of.folder.partition('-')[0]}"
    else:
        folder, template, what = of.root / "lessons", course_template(of), "translate"
    for path in sorted(folder.glob("*.po")):
        if left := not_translated(path, template):
            yield (
                f"{path.name}: {len(left)} of {len(template)} messages are not "
                f"translated, such as {left[0][:_SHOWN]!r}; `autograder {what} "
                f"--language {path.stem}` writes them into it"
            )
        yield from (f"{path.name}: {text}" for text in unfit(path))


def _strings(text: object) -> list[str]:
    return [text] if isinstance(text, str) else list(text) if isinstance(text, Iterable) else []


def _key(text: object) -> str:
    return _strings(text)[0]
