"""What a check asks for, held against what its card promises.

The header of a check cell names the phrases that it holds, word for word:

    # %% check="softmax_batches" points=1 card="any number of leading axes"

They stand in the exercise's docstring or card, or in the conventions of the course. A lesson in
which one check names a phrase names one for all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

import jupytext
import numpy as np

from autograder.course.lessons import Lesson
from autograder.notebooks import exercise_of, grade_id, is_answer
from lesson_kit.tensors import torch

#: Kinds of input that are graded only where a card speaks of them, and the words that do.
_RARE = {
    "narrow whole numbers": r"u?int8|u?int16|narrow kinds? of",
    "half precision": r"b?float16|half precision",
    "complex numbers": r"complex",
    "an empty axis": r"empty|length 0|no (text|key|word|quer|token)",
    "a NumPy scalar": r"NumPy (scalar|number|integer)",
    "numbers above 10^6": r"large|thousands|overflow|1e\d|10\^|infinit|however (low|high)",
}
_NARROW = ("int8", "uint8", "int16", "uint16")

#: Marks that a reader does not read: a phrase is found with and without them.
_MARKS = re.compile(r"[`*]|(?m:^#+ )")
_CONVENTIONS = re.compile(r"^#+ [^\n]*\bConventions\b.*?(?=^#+ |\Z)", re.M | re.S)


def unpromised(lesson: Lesson) -> Iterator[str]:
    """The checks that name no phrase, or one that nothing promises.

    Args:
        lesson: whose sources are read. Choices (``answer_...``) promise nothing.
    """
    named = _named(lesson)
    if not any(named.values()):
        return
    cards, conventions = _cards(lesson), _conventions(lesson)
    for check, phrases in named.items():
        exercise = exercise_of(f"test_{check}", list(lesson.exercises))
        if exercise.startswith("answer_"):
            continue
        if not phrases:
            yield (
                f'test_{check}: names no phrase of its card; write card="..." into its # %% line, '
                "or do not grade what no card promises"
            )
        for phrase in phrases:
            if _plain(phrase) not in cards[exercise] + " " + conventions:
                yield (
                    f"test_{check}: {phrase!r} stands neither on the card of {exercise} nor in the "
                    "conventions; name a phrase word for word"
                )


def unasked(lesson: Lesson, exercise: str, kinds: Iterable[str]) -> Iterator[str]:
    """The kinds of input that checks give to an exercise whose card says nothing of them.

    Args:
        lesson: whose cards are read, if its checks name their phrases.
        exercise: of that lesson.
        kinds: what :func:`rare_kinds` said of the inputs.
    """
    if not any(_named(lesson).values()):
        return
    said = _cards(lesson)[exercise]
    for kind in sorted(set(kinds)):
        if not re.search(_RARE[kind], said):
            yield (
                f"{exercise}: its checks give {kind}, of which its card says nothing; say it on "
                "the card, where a student needs it, or give something else"
            )


def rare_kinds(value: Any) -> Iterator[str]:
    """What is rare in an argument, lists and dicts of arrays included."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from rare_kinds(item)
    if isinstance(value, np.number):
        yield "a NumPy scalar"
    if not isinstance(value, (np.ndarray, torch.Tensor)):
        return
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype in _NARROW:
        yield "narrow whole numbers"
    if dtype in ("float16", "bfloat16"):
        yield "half precision"
    if dtype.startswith("complex"):
        yield "complex numbers"
    if 0 in value.shape:
        yield "an empty axis"
    elif dtype.startswith(("int", "float")):
        numbers = value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
        if (np.abs(numbers[np.isfinite(numbers)]) > 1e6).any():
            yield "numbers above 10^6"


def _named(lesson: Lesson) -> dict[str, list[str]]:
    """The phrases that each check names in its header."""
    cells = jupytext.reads(lesson.source_path.read_text(encoding="utf-8"), fmt="py:percent").cells
    headers = [cell.metadata for cell in cells if "check" in cell.metadata]
    said = {header["check"]: header.get("card", []) for header in headers}
    return {check: [card] if isinstance(card, str) else list(card) for check, card in said.items()}


def _cards(lesson: Lesson) -> dict[str, str]:
    """What the text since the last answer, and the answer's docstrings, say of each exercise."""
    cards, text = {}, ""
    for cell in lesson.notebook.cells:
        if cell.cell_type == "markdown":
            text += "\n" + cell.source
        elif is_answer(cell):
            cards[grade_id(cell)] = _plain(f"{text}\n{_docstrings(cell.source)}")
            text = ""
    return cards


def _docstrings(source: str) -> str:
    documented = (ast.FunctionDef, ast.ClassDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return "\n".join(ast.get_docstring(node) or "" for node in nodes)


def _conventions(lesson: Lesson) -> str:
    """The sections with Conventions in their heading, of this lesson and those before it."""
    texts = [
        cell.source
        for each in (*lesson.earlier, lesson)
        for cell in each.notebook.cells
        if cell.cell_type == "markdown"
    ]
    return _plain("\n".join(section for text in texts for section in _CONVENTIONS.findall(text)))


def _plain(text: str) -> str:
    return " ".join(_MARKS.sub("", text).split())
