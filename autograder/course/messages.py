"""What a lesson says in words, piece by piece: what a translator is given.

Code is never translated, nor what it prints. Of a page's text each paragraph is a message; of a
cell's code the strings that the kit shows: titles and messages of checks, replies, captions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from autograder.course.cell_headers import MEANS
from autograder.course.implementations import choices, misconceptions
from autograder.course.lessons import Lesson
from autograder.notebooks import HIDDEN, is_answer, is_test, nbgrader_metadata

__all__ = [
    "PAGE",
    "SEALED",
    "SHOWN",
    "WHEN_GRADED",
    "Message",
    "looked_at",
    "messages_of",
    "paragraphs",
    "words_in_code",
]

#: Where a message is needed: in the text of the page; in a box below a cell of the notebook; in
#: what only grading says; in what the build seals, which is replies and known mistakes.
PAGE, SHOWN, WHEN_GRADED, SEALED = "page", "shown", "when graded", "sealed"

#: Functions of the kit that show the words which a cell gives them.
_SHOW = frozenset({"heatmap", "reply", "puzzle", "show", "slider", "switches"})

_SOLUTION = re.compile(r"^[^\n]*### BEGIN SOLUTION.*?### END SOLUTION[^\n]*$", re.S | re.M)
_NO_WORDS = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|<[^>]*>|https?://\S+", re.S)
#: No words: patterns, annotations in quotes, and nbgrader's marks.
_CODE_ALONE = re.compile(r"\\|\w\[\w+, |^### ")
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class Message:
    """A piece of text.

    Attributes:
        text: in English; what an f-string fills in stands there as ``{name}``.
        needed: one of the four above.
        has_fields: whether its braces are those of an f-string.
    """

    text: str
    needed: str
    has_fields: bool = False


def messages_of(lesson: Lesson) -> list[Message]:
    """All that is to be translated of a lesson, in the order of its page, nothing twice for the
    same need."""
    messages = [Message(lesson.title, PAGE), Message(lesson.about, PAGE)]
    for cell in lesson.notebook.cells[1:]:  # the first is made of the two above
        messages += _of_cell(cell)
    for choice in choices(lesson):
        messages.append(Message(choice.reason, SEALED))
    for mistake in misconceptions(lesson):
        if not mistake.exercise.startswith("answer_"):
            messages.append(Message(mistake.sentence, SEALED))
    latest = {(message.text, message.needed): message for message in reversed(messages)}
    return list(latest.values())[::-1]


def paragraphs(text: str) -> list[str]:
    """A text in paragraphs, each followed by what parts it from the next."""
    return re.split(r"(\n[ \t]*\n+)", text)


def _of_cell(cell: NotebookNode) -> Iterator[Message]:
    if cell.cell_type == "markdown":
        if not nbgrader_metadata(cell).get("solution"):  # the model answer is for who marks
            for part in paragraphs(cell.source)[::2]:
                if _WORD.search(_NO_WORDS.sub(" ", part)):
                    yield Message(part, PAGE)
    elif is_test(cell):
        later = bool(HIDDEN.search(cell.source))
        if MEANS in cell.metadata:
            yield Message(cell.metadata[MEANS], PAGE)
        if later:
            yield Message(looked_at(cell.source), PAGE)
            yield Message(looked_at(cell.source), WHEN_GRADED)
        for text, has_fields in _strings(ast.parse(cell.source)):
            yield Message(text, WHEN_GRADED if later else SHOWN, has_fields)
    elif not is_answer(cell):
        for text, has_fields in _shown(ast.parse(cell.source)):
            yield Message(text, SHOWN, has_fields)


def looked_at(source: str) -> str:
    """What a hidden check looks at: its comment, without the name of its exercise."""
    lines = [line.lstrip("# ") for line in HIDDEN.sub("", source).strip().splitlines()]
    said = " ".join(line for line in lines if not line.startswith("SIDE CONDITION"))
    said = re.sub(r"^Hidden checks of [^:]*: ", "", said)
    return re.sub(r"\s*They run when your work is graded\.?\s*$", "", said).rstrip(". ")


def words_in_code(source: str) -> list[tuple[str, bool]]:
    """The sentences in Python code, as :class:`Message` has them, each with whether it has
    fields."""
    return list(dict.fromkeys(_strings(ast.parse(source))))


def _strings(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The words in code, each with whether it has fields; no docstrings, and nothing printed."""
    if isinstance(tree, ast.Call) and getattr(tree.func, "id", "") == "print":
        return
    if isinstance(tree, ast.JoinedStr):
        yield from _with_words([(_form(tree), True)])
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield from _with_words([(tree.value, False)])
    for child in ast.iter_child_nodes(tree):
        if child in (getattr(tree, "annotation", None), getattr(tree, "returns", None)):
            continue
        inside_form = isinstance(tree, ast.JoinedStr) and isinstance(child, ast.Constant)
        docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not inside_form and not docstring:
            yield from _strings(child)


def _with_words(texts: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    for text, has_fields in texts:
        bare = re.sub(r"\{\w+\}", "", text) if has_fields else text
        if (
            " " in bare.strip()
            and not _CODE_ALONE.search(bare)
            and _WORD.search(_NO_WORDS.sub(" ", bare))
        ):
            yield text, has_fields


def _form(text: ast.JoinedStr) -> str:
    """An f-string with the names of its fields, or their numbers where they are no names."""
    parts = []
    for at, part in enumerate(text.values):
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        else:
            assert isinstance(part, ast.FormattedValue)
            name = part.value.id if isinstance(part.value, ast.Name) else f"_{at}"
            parts.append(f"{{{name}}}")
    return "".join(parts)


def _shown(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """The words that a cell hands to the kit, or that its functions give back to be shown."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _SHOW
    ]
    names = {node.id for call in calls for node in ast.walk(call) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        given = isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id in names for target in node.targets
        )
        if node in calls or isinstance(node, ast.Return) or given:
            yield from _strings(node)
