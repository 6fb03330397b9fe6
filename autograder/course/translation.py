"""A lesson in another language: the catalogues that translators write, read and joined.

The engine's words are in ``autograder/languages/de.po``, and in ``instructors/`` there those that
students never read; a lesson's in ``de.po`` beside its sources, what course.toml says beside that.
A lesson without one keeps its English prose, in boxes of that language. Whatever a catalogue lacks,
or has as fuzzy, stays English.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from nbformat import NotebookNode

import autograder
import lesson_kit
from autograder.course.languages import ENGINE, ENGLISH
from autograder.course.lessons import Course, Lesson
from autograder.course.messages import (
    SHOWN,
    WHEN_GRADED,
    messages_of,
    paragraphs,
    words_in_code,
)
from autograder.errors import WrongUse
from lesson_kit.course_progress import LESSON
from lesson_kit.words import N_, packed

if TYPE_CHECKING:
    from babel.messages import Catalog

__all__ = [
    "course_catalogue",
    "course_in",
    "course_words",
    "engine_catalogues",
    "engine_forms",
    "engine_words",
    "lesson_catalogue",
    "page_in",
    "read_catalogue",
    "sealed_words",
    "text_in",
    "words_of",
]

#: Modules whose sentences are not marked one by one: they go through
#: :func:`lesson_kit.words.said` where they are shown, as those of a lesson's cells do. So do the
#: meanings of exceptions.
_SHOWN_WHOLE = (
    *(f"lesson_kit/{name}.py" for name in ("answer_text", "batteries", "probes", "repair")),
    *(f"lesson_kit/{name}.py" for name in ("absent", "small_changes")),
    *("autograder/grade/flags.py", "autograder/grade/reasons.py", "autograder/grade/submission.py"),
)

#: What else goes through it: how a feedback page begins what a hidden check looks at, of which
#: :func:`.messages.looked_at` is the rest; a part of a result; and what the build knows the last
#: cell of a page by.
_OTHERS = (
    N_("Hidden checks of {name}: {what}."),
    N_(
        "Hidden checks of {name}: {what}. SIDE CONDITION: counts once another check of {name} "
        "passes."
    ),
    N_("item {number} of {name}"),
    N_("it uses `{name}`, which is not defined in the answer's own cell"),
    N_("no cell is known that defines {name}"),
    N_("in your line `{line}`"),
    N_("in what your line `{line}` calls"),
    N_("the gradient of {name} along a direction"),
    N_("**Onward.** "),
    N_(" [All lessons, and how far you are](../start.ipynb)."),
)


def course_in(course: Course, language: str) -> tuple[Course, list[str]]:
    """A course in another language.

    Args:
        course: as its authors wrote it.
        language: one of :func:`.languages.languages`.

    Returns:
        The course, and the folders of its lessons whose prose is not translated.
    """
    if language == ENGLISH:
        return course, []
    lessons = tuple(replace(lesson, language=language) for lesson in course.lessons)
    english = [item.folder for item in lessons if not lesson_catalogue(item).exists()]
    known = _known(course_catalogue(course, language))
    title, package, picture = course.title, course.package, course.picture
    return replace(
        course,
        lessons=lessons,
        title=known.get(title, title),
        package=package and replace(package, about=known.get(package.about, package.about)),
        picture=picture
        and replace(
            picture,
            says=known.get(picture.says, picture.says),
            caption=known.get(picture.caption, picture.caption),
        ),
    ), english


def course_catalogue(course: Course, language: str) -> Path:
    """The file of what course.toml says beside its lessons, which need not be there."""
    return course.root / "lessons" / f"{language}.po"


def course_words(course: Course) -> list[str]:
    """What course.toml says that is translated with no lesson."""
    package, picture = course.package, course.picture
    texts = [course.title, *((picture.says, picture.caption) if picture else ())]
    return [*texts, package.about] if package else texts


def engine_catalogues(language: str) -> tuple[Path, Path]:
    """The files of the engine's words in a language: what students read, which travels with each
    notebook, and what instructors alone do."""
    return ENGINE / f"{language}.po", ENGINE / "instructors" / f"{language}.po"


@cache
def engine_forms() -> tuple[str, ...]:
    """The sentences that are not marked."""
    from lesson_kit.exceptions import RULES  # brings NumPy

    root = Path(autograder.__file__).parent.parent
    kit = Path(str(lesson_kit.__file__)).parent.parent
    whole = [
        text
        for name in _SHOWN_WHOLE
        for text, _ in words_in_code(
            ((kit if name.startswith("lesson_kit") else root) / name).read_text(encoding="utf-8")
        )
    ]
    meanings = (re.sub(r"\\(\d)", r"{_\1}", sentence) for _, _, sentence in RULES)
    return (*whole, *meanings)


def lesson_catalogue(lesson: Lesson) -> Path:
    """The file of a lesson's words in its language, which need not be there."""
    return lesson.path / f"{lesson.language}.po"


def read_catalogue(path: Path) -> Catalog:
    """A catalogue as gettext's translators write them; an empty one where there is no file.

    Raises:
        WrongUse: it cannot be read; the message says where.
    """
    from babel.messages.pofile import PoFileError, read_po

    text = path.read_text(encoding="utf-8") if path.exists() else ""
    try:
        catalogue = read_po(io.StringIO(text), locale=path.stem, abort_invalid=True)
    except PoFileError as error:
        raise WrongUse(f"{path}: {error}") from None
    catalogue.project, catalogue.version = path.parent.name, ""
    catalogue.msgid_bugs_address = catalogue.last_translator = catalogue.language_team = ""
    return catalogue


@lru_cache(maxsize=64)
def _messages(path: Path, changed: float) -> dict[str, str]:
    """What a catalogue translates, in English and translated."""
    return {
        str(message.id): str(message.string)
        for message in read_catalogue(path)
        if message.id and message.string and not message.fuzzy
    }


def _known(path: Path) -> dict[str, str]:
    return _messages(path, path.stat().st_mtime) if path.exists() else {}


def _of_lesson(lesson: Lesson) -> dict[str, str]:
    return _known(lesson_catalogue(lesson)) if lesson.language else {}


def text_in(lesson: Lesson, text: str) -> str:
    """A text of a lesson's page in its language, paragraph by paragraph."""
    known = _of_lesson(lesson)
    return "".join(known.get(part, part) for part in paragraphs(text)) if known else text


def page_in(lesson: Lesson, notebook: NotebookNode) -> None:
    """Turn a lesson's notebook into its language: its heading and its text; code stays."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = text_in(lesson, cell.source)
    title, about = text_in(lesson, lesson.title), text_in(lesson, lesson.about)
    shown = replace(lesson, title=title, about=about)
    notebook.cells[0].source = shown.heading()
    notebook.metadata[LESSON] = shown.described()


def sealed_words(lesson: Lesson, text: str) -> str:
    """A reply or the sentence of a known mistake in the lesson's language."""
    return _of_lesson(lesson).get(text, text)


def engine_words(language: str) -> str:
    """What an instructor's page says, for :func:`lesson_kit.words.speaking`; "" in English."""
    if language == ENGLISH:
        return ""
    catalogue, of_instructors = map(read_catalogue, engine_catalogues(language))
    for message in of_instructors:
        if message.id:
            catalogue[message.id] = message
    forms = [text for text in (*_OTHERS, *engine_forms()) if "{" in text]
    return packed(_compiled(catalogue), forms)


def words_of(lesson: Lesson, *, graded: bool = False) -> str:
    """What a lesson's boxes and pages say, for :func:`lesson_kit.words.speaking`; "" in English.

    Args:
        lesson: in its language.
        graded: with what hidden checks say, which is never handed out.
    """
    if not lesson.language:
        return ""
    known = _of_lesson(lesson)
    needed = (SHOWN, WHEN_GRADED) if graded else (SHOWN,)
    messages = [
        said for said in messages_of(lesson) if said.needed in needed and said.text in known
    ]
    forms = [said.text for said in messages if said.has_fields]
    forms += [text for text in (*_OTHERS, *engine_forms()) if "{" in text]
    catalogue = read_catalogue(engine_catalogues(lesson.language)[0])
    for message in messages:
        catalogue.add(message.text, known[message.text])
    return packed(_compiled(catalogue), forms)


def _compiled(catalogue: Catalog) -> bytes:
    from babel.messages.mofile import write_mo

    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()
