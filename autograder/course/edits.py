"""A wrong answer as a change of a right one: texts of its code, each with what replaces it.

What is changed is the *code* of the right answer: its comments and docstrings, nbgrader's
solution markers among them, are left out, so that a text can be found twice only in code.
"""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise


class Unfit(ValueError):
    """A change cannot be made to this code; the message says why and what to do."""


@lru_cache(maxsize=64)  # dozens of changes are made to each right answer
def code_of(source: str) -> str:
    """Source without comments, docstrings and empty lines."""
    lines = textwrap.dedent(source).splitlines()
    text = "\n".join(lines) + "\n"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    # Strings may span lines, and an empty line inside one is part of it.
    inside = {row for first, last in _strings(text) for row in range(first, last)}
    for first, last in _docstrings(text):
        inside -= set(range(first, last))
        lines[first - 1 : last] = [""] * (last - first + 1)
    kept = [
        line if row in inside else line.rstrip()
        for row, line in enumerate(lines, start=1)
        if line.strip() or row in inside
    ]
    return "\n".join(kept) + "\n"


def _strings(text: str) -> Iterable[tuple[int, int]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and token.start[0] < token.end[0]:
            yield token.start[0], token.end[0]


def _docstrings(text: str) -> Iterable[tuple[int, int]]:
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and ast.get_docstring(node) is not None
        ):
            docstring = node.body[0]
            yield docstring.lineno, docstring.end_lineno or docstring.lineno


def edited(code: str, edit: Mapping[str, str]) -> str:
    """Code in which each text of an edit is replaced by what the edit has for it.

    A text may have several lines. Those after its first are indented relative to the line
    that it begins on, in the text and in what replaces it.

    Args:
        code: of the right answer, see :func:`code_of`.
        edit: the texts, each of which stands exactly once in the code.

    Raises:
        Unfit: a text stands there never or twice, two of them overlap, or what comes of it
            is the same code, or no Python.
    """
    changes: list[tuple[int, int, str]] = []
    for old, new in edit.items():
        places = list(_places(code, _unwrapped(old)))
        if len(places) != 1:
            raise Unfit(_not_once(code, old, [start for start, _, _ in places]))
        [(start, end, indent)] = places
        changes.append((start, end, _hung(_unwrapped(new), indent)))
    changes.sort()
    for (_, end, _), (start, _, _) in pairwise(changes):
        if start < end:
            raise Unfit(
                f"two of the replaced texts overlap in {code[start:end]!r}; make one text of them"
            )
    text, at = "", 0
    for start, end, new in changes:
        text += code[at:start] + new
        at = end
    return _checked(code, text + code[at:])


def with_body(code: str, body: str) -> str:
    """A function with another body.

    Raises:
        Unfit: the code is no single function, or what comes of it is no Python.
    """
    tree = ast.parse(code)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise Unfit(
            "a body alone can replace that of a function, and this right answer is something "
            "else; give an edit {old: new}, or all of its source"
        )
    first = tree.body[0].body[0]
    head = "\n".join(code.splitlines()[: first.lineno - 1])
    return _checked(code, f"{head}\n{textwrap.indent(_unwrapped(body), ' ' * first.col_offset)}\n")


def _unwrapped(text: str) -> str:
    """A text in triple quotes that begins on a line of its own is indented as its author likes."""
    if not text.startswith("\n"):
        return text
    return textwrap.dedent(text).strip("\n").rstrip()


def _places(code: str, text: str) -> Iterable[tuple[int, int, str]]:
    """Start and end of each place where a text stands, and the indentation of its first line."""
    if not text:
        return
    first = text.partition("\n")[0]
    start = code.find(first)
    while start >= 0:
        line = code[code.rfind("\n", 0, start) + 1 :]
        indent = line[: len(line) - len(line.lstrip(" "))]
        whole = _hung(text, indent)
        if code.startswith(whole, start):
            yield start, start + len(whole), indent
        start = code.find(first, start + 1)


def _hung(text: str, indent: str) -> str:
    first, *others = text.split("\n")
    return "\n".join([first, *(indent + line if line else line for line in others)])


def _not_once(code: str, text: str, starts: list[int]) -> str:
    if not starts:
        return f"{text!r} stands nowhere in the right answer, which is\n\n{code}"
    rows = " and ".join(str(code.count("\n", 0, start) + 1) for start in starts)
    return (
        f"{text!r} stands {len(starts)} times in the right answer, in the lines {rows} of what "
        f"follows; make it longer, until it stands there once\n\n{code}"
    )


def _checked(code: str, text: str) -> str:
    # A line of which nothing is left; an empty one can be part of a string.
    text = "\n".join(line for line in text.split("\n") if line.strip() or not line)
    try:
        compile(text, "<edited>", "exec")
    except SyntaxError as error:
        where = f"{error.msg}, line {error.lineno}"
        raise Unfit(f"what comes of it is no Python ({where}):\n\n{text}") from None
    if text == code:
        raise Unfit("it changes nothing")
    return text
