"""A lesson's notebook as a student's page: one exercise is one view.

The author writes prose, stubs and checks in the order in which they are thought of. On the page an
exercise is a framed card with its points, its hint and what is checked later; then the stub; then
its check, folded to one line. Checks that hold nothing before grading stand at the end, below a
heading that JupyterLab keeps closed: each stays a cell of its own, which nbgrader asks for. Code
that only draws is folded too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import nbformat
from nbformat import NotebookNode

from autograder.build.demonstrations import (
    answered_apart,
    claims_after_replies,
    figures_opened,
    only_claims,
    parted,
)
from autograder.build.page_comments import say_what_passing_means, saying_how_long
from autograder.course.lessons import Lesson, is_side_condition
from autograder.course.messages import looked_at
from autograder.course.source_rules import LessonError
from autograder.course.translation import page_in, text_in, words_of
from autograder.notebooks import (
    DEMONSTRATION,
    HIDDEN,
    ONWARD,
    SETUP,
    exercise_of,
    grade_id,
    is_answer,
    is_test,
    is_written,
    nbgrader_metadata,
    tags,
)
from lesson_kit.course_progress import has_code
from lesson_kit.words import N_, speaking, tr, tr_n

#: The first lines of the setup cell, for a notebook that was copied without what it imports.
NEEDS_THE_KIT = """\
from importlib.util import find_spec

assert find_spec("lesson_kit"), (
    "lesson_kit is missing: run `pip install .` in the course's repository, or take the folder of "
    "that name from a release of the course and put it beside this notebook"
)

"""

_FOLDED_SETUP = N_("# Setup: Shift+Enter runs it, a click opens it.")
#: The first lines of a folded check. The import is for a check that runs before the setup cell:
#: it then says so in a box.
_FOLDED_CHECK = N_("# Check of {name}: Shift+Enter runs it, a click opens it.")
_KIT = "\nimport lesson_kit.checks\n\n"
_FOLDED_REPLY = N_("# Answers your guess: Shift+Enter runs it, a click opens it.")
_FOLDED_CLAIMS = N_("# What the text says, asserted: Shift+Enter runs it, a click opens it.")
_FOLDED_FIGURE = N_("# Draws {what}: Shift+Enter runs it, a click opens it.")

#: The tag of a demonstration that is run first and read later.
_FOLDED = "folded"

#: Of JupyterLab and Notebook 7: nothing below the heading is shown until it is opened.
_CLOSED = {"jp-MarkdownHeadingCollapsed": True}
_AT_THE_END = N_("""\
## Checks that run when your work is graded

There is nothing to do here. Each card lists what these cells check; they are filled in when your
work is graded.""")
_OWN_CELLS = N_("""\
## Room for your own cells

Cells that you add here, or anywhere else, are yours: a new release of the course keeps them.""")

#: A quiet frame on light and on dark pages, of the shape of the box below a check.
_FRAME = (
    '<div style="border:1px solid #8a94a3;border-left-width:6px;padding:.2em 1em;'
    'margin:.3em 0;max-width:60em">'
)

_HINT = re.compile(r"\A\s*(<details><summary>Hint.*?</details>)\s*", re.S)


@dataclass
class _Exercise:
    """What the page says of one exercise, or of one written answer."""

    name: str
    checks: list[NotebookNode] = field(default_factory=list)
    later: list[NotebookNode] = field(default_factory=list)
    written: float = 0.0
    hint: str = ""
    path: str = ""
    opens: list[str] = field(default_factory=list)
    draws: list[str] = field(default_factory=list)


def as_page(lesson: Lesson) -> NotebookNode:
    """A lesson's page for students, in its language; the lesson's own notebook is not changed."""
    with speaking(words_of(lesson)):
        return _laid_out(lesson)


def _laid_out(lesson: Lesson) -> NotebookNode:
    notebook = nbformat.from_dict(lesson.notebook)
    cells = [_copied(cell) for cell in notebook.cells]
    claims_after_replies(cells)
    exercises = _exercises(cells)
    _take_hints(cells, exercises)
    if lesson.language:
        notebook.cells = cells
        page_in(lesson, notebook)
    for name in lesson.core:
        if name not in exercises:
            raise LessonError(
                f"course.toml has {name!r} in the core of {lesson.folder}, which has no such "
                "exercise"
            )
    for name, exercise in exercises.items():
        if lesson.core and name in lesson.exercises and not name.startswith("answer_"):
            exercise.path = tr("Core path.") if name in lesson.core else tr("For the curious.")
    later = [cell for exercise in exercises.values() for cell in exercise.later]
    moved = {id(cell) for cell in later}
    page = [
        part
        for cell in cells
        if id(cell) not in moved and cell.source.strip()
        for part in saying_how_long(_folded(cell, exercises, lesson))
    ]
    drawn = {name: figures_opened(page, name) for name in exercises}
    for number, (name, exercise) in enumerate(exercises.items()):
        # What an answer further down is needed for as well is not open yet.
        others = {figure for other in list(drawn)[number + 1 :] for figure in drawn[other]}
        exercise.opens = [figure for figure in drawn[name] if figure not in others]
        exercise.draws = [figure for figure in drawn[name] if figure in others]
        page = list(_with_card(page, exercise, lesson))
    for exercise in exercises.values():
        for check in exercise.checks:
            say_what_passing_means(lesson, check, _figures(exercise.opens))
    page.append(_onward(lesson))
    if later:
        begins, ends = (_id(lesson.folder, what) for what in ("checks when graded", "own cells"))
        page += [
            nbformat.v4.new_markdown_cell(tr(_AT_THE_END), metadata=_CLOSED, id=begins),
            *later,
        ]
        page.append(nbformat.v4.new_markdown_cell(tr(_OWN_CELLS), id=ends))  # closes what is closed
    notebook.cells = page
    return notebook


def _onward(lesson: Lesson) -> NotebookNode:
    title, link = lesson.following or ("", "")
    text = tr("The next lesson: [{title}]({link}).", title=title, link=link)
    text = text if title else tr("This was the last lesson.")
    return nbformat.v4.new_markdown_cell(tr(ONWARD) + text, id=_id(lesson.folder, "onward"))


def _copied(cell: NotebookNode) -> NotebookNode:
    return nbformat.from_dict(cell)


def _id(folder: str, *key: str) -> str:
    """Of a cell that only the page has; it changes with nothing else."""
    return hashlib.sha256("|".join((folder, "page", *key)).encode()).hexdigest()[:12]


def _exercises(cells: list[NotebookNode]) -> dict[str, _Exercise]:
    names = [grade_id(cell) for cell in cells if is_answer(cell)]
    exercises = {
        grade_id(c): _Exercise(grade_id(c)) for c in cells if is_answer(c) or is_written(c)
    }
    for cell in cells:
        if is_written(cell):
            exercises[grade_id(cell)].written = _points(cell)
        elif is_test(cell):
            exercise = exercises[exercise_of(grade_id(cell), names)]
            (exercise.checks if has_code(HIDDEN.sub("", cell.source)) else exercise.later).append(
                cell
            )
    return exercises


def _points(cell: NotebookNode) -> float:
    return float(nbgrader_metadata(cell)["points"])


def _take_hints(cells: list[NotebookNode], exercises: dict[str, _Exercise]) -> None:
    """A hint that follows an exercise's tests goes into its card."""
    names = [name for name, exercise in exercises.items() if not exercise.written]
    for before, cell in pairwise(cells):
        hint = _HINT.match(cell.source) if cell.cell_type == "markdown" else None
        if hint and is_test(before):
            exercises[exercise_of(grade_id(before), names)].hint = hint.group(1)
            cell.source = cell.source[hint.end() :]


def _folded(
    cell: NotebookNode, exercises: dict[str, _Exercise], lesson: Lesson
) -> Iterator[NotebookNode]:
    """A cell, folded where its code is not to be read; a demonstration that also draws is two."""
    if SETUP in tags(cell):
        cell.source = f"{tr(_FOLDED_SETUP)}\n{NEEDS_THE_KIT}{cell.source}"
        yield _fold(cell)
    elif is_test(cell):
        cell.source = tr(_FOLDED_CHECK, name=_checked(cell, exercises)) + _KIT + cell.source
        yield _fold(cell)
    elif _FOLDED in tags(cell):
        yield _fold(cell)
    elif cell.cell_type == "code" and DEMONSTRATION in tags(cell) and not grade_id(cell):
        cell.source, replies = answered_apart(cell.source)
        if replies:
            reply = _copied(cell)
            reply.source = f"{tr(_FOLDED_REPLY)}\n{replies}"
            if cell.source:
                reply["id"] = _id(lesson.folder, "reply", replies)
                yield from _folded(cell, exercises, lesson)
            yield _fold(reply)
            return
        if only_claims(cell.source):
            cell.source = f"{tr(_FOLDED_CLAIMS)}\n{cell.source}"
            yield _fold(cell)
            return
        teaches, draws, what = parted(cell.source, set(exercises))
        if teaches and draws:
            first = _copied(cell)
            first.source = teaches
            yield first
            cell["id"] = _id(lesson.folder, "drawing", draws)
        if draws:
            number = what.removeprefix("Figure ")
            what = tr("a figure") if number == what else _figures([number])
            cell.source = f"{tr(_FOLDED_FIGURE, what=what)}\n{draws}"
            _fold(cell)
        yield cell
    else:
        yield cell


def _checked(cell: NotebookNode, exercises: dict[str, _Exercise]) -> str:
    return exercise_of(grade_id(cell), [name for name in exercises if not exercises[name].written])


def _fold(cell: NotebookNode) -> NotebookNode:
    cell.metadata["jupyter"] = {"source_hidden": True}
    return cell


def _with_card(
    page: list[NotebookNode], exercise: _Exercise, lesson: Lesson
) -> Iterator[NotebookNode]:
    """The page with the card of one exercise: the text from its heading on."""
    place, at = _heading(page, exercise.name)
    for number, cell in enumerate(page):
        if number != place:
            yield cell
            continue
        before, text = cell.source[:at].rstrip(), cell.source[at:]
        heading = text.partition("\n")[0] if text.startswith("#") else ""
        says = _card(lesson, exercise, text.removeprefix(heading).strip())
        card = "\n\n".join(part for part in (heading, _FRAME, *says, "</div>") if part)
        if before:
            cell.source = before
            yield cell
            key = _id(lesson.folder, "card", exercise.name)
            yield nbformat.v4.new_markdown_cell(card, id=key)
        else:
            cell.source = card
            yield cell


def _heading(page: list[NotebookNode], name: str) -> tuple[int, int]:
    """The Markdown cell whose heading names an exercise, and where that begins there; else the
    last heading of the text right above the answer, or all of that text."""
    for number, cell in enumerate(page):
        if cell.cell_type == "markdown":
            heading = re.search(rf"^#{{2,6}} [^\n]*`{re.escape(name)}`", cell.source, re.M)
            if heading:
                return number, heading.start()
    above = [grade_id(cell) for cell in page].index(name) - 1
    if page[above].cell_type != "markdown":
        return -1, 0
    headings = [match.start() for match in re.finditer(r"^#{2,6} ", page[above].source, re.M)]
    return above, headings[-1] if headings else 0


def _card(lesson: Lesson, exercise: _Exercise, body: str) -> Iterator[str]:
    yield _worth(exercise)
    yield body
    yield text_in(lesson, exercise.hint)
    if exercise.later:
        points = sum(map(_points, exercise.later))
        more = tr_n("{n} more check", "{n} more checks", len(exercise.later))
        when = tr("When graded: {checks}, {points}", checks=more, points=_counted(points))
        yield (
            f"<details><summary>{when}</summary>\n\n"
            + "\n".join(f"- {_what(lesson, cell)}" for cell in exercise.later)
            + "\n\n</details>"
        )


def _worth(exercise: _Exercise) -> str:
    """Points, and what a right answer opens or is needed for, on one line."""
    if exercise.written:
        points = _counted(exercise.written)
        return tr("**{points}**, given by a person who reads it.", points=points)
    now, then = (sum(map(_points, cells)) for cells in (exercise.checks, exercise.later))
    text = f"**{_counted(now + then)}.** {exercise.path}".rstrip()
    if now and then:
        both = {"now": f"{now:g}", "later": f"{then:g}"}
        text += tr(" {now} in the check below, {later} when your work is graded.", **both)
    if exercise.opens:
        text += tr(" A right answer opens {figures}.", figures=_figures(exercise.opens))
    if exercise.draws:
        text += tr(" {figures} will use your answer.", figures=_figures(exercise.draws))
    return text


def _what(lesson: Lesson, cell: NotebookNode) -> str:
    """What a hidden check looks at, and what it is worth."""
    side = tr(", once another check passes") if is_side_condition(cell.source) else ""
    return f"{text_in(lesson, looked_at(cell.source))} ({_counted(_points(cell))}{side})"


def _counted(points: float) -> str:
    return tr_n("{n} point", "{n} points", points)


def _figures(numbers: list[str]) -> str:
    if len(numbers) < 2:
        return tr("Figure {number}", number=numbers[0]) if numbers else ""
    return tr("Figures {some} and {last}", some=", ".join(numbers[:-1]), last=numbers[-1])
