"""A notebook file becomes cells, whatever program wrote it: the one reader of all that read one.

Line ends, byte order marks and encodings are made the same once, here. A cell that the course
handed out is known again by its form: code by its syntax tree, text by its words, so that a
formatter, an editor of another system or lost metadata change nobody's cell.

It needs nothing but the standard library: a student's start page reads with it, and what grades a
class has no NumPy.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import inspect
import json
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

#: Characters of a cell of which a syntax tree is made.
MAX_PARSED = 100_000
#: Lists and objects of a file that are looked at to know what it is.
MAX_TRIED = 200_000


def tree_of(data: bytes) -> Any:
    """The JSON of a file: UTF-8, -16 or -32, with or without a byte order mark.

    Raises:
        UnicodeDecodeError: it is no text.
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(decoded(data))


def decoded(data: bytes) -> str:
    """The text of a file that holds JSON.

    Raises:
        UnicodeDecodeError: it is none.
    """
    return data.decode(json.detect_encoding(data))


def plain_source(source: Any) -> str | None:
    """The text of a cell as every reader has it, from a text or a list of lines.

    Line ends are LF, and there is no byte order mark. None where it is no text.
    """
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    return source.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")


def is_notebook(tree: Any) -> bool:
    """Whether JSON is a notebook, of any format."""
    return (
        isinstance(tree, dict)
        and "nbformat" in tree
        and isinstance(tree.get("cells", tree.get("worksheets")), list)
    )


def holds_a_notebook(data: bytes) -> bool:
    """Whether a file of any name is a notebook; what would take much memory to look at may be."""
    if b"nbformat" not in data.replace(b"\0", b""):
        return False
    if data.count(b"{") + data.count(b"[") > MAX_TRIED:
        return True
    try:
        return is_notebook(tree_of(data))
    except (ValueError, RecursionError):
        return False


@lru_cache(maxsize=8192)
def form(text: str, code: bool) -> str:
    """What stays of a cell, however it is laid out; the same for cells that say the same.

    Of code it is the syntax tree, imports sorted, and the words of the comments; of text its words
    and signs without white space, marks of lists and of emphasis.
    """
    text = unicodedata.normalize("NFC", text).strip()
    if not code:
        text = re.sub(r"(?m)^[ \t>]*[-*+][ \t]", "", text)
        return re.sub(r"-{2,}", "-", re.sub(r"[\s*_\\]+", "", text))
    tree = _parsed(text)
    if tree is not None:
        with contextlib.suppress(RecursionError):
            return f"{_of_node(tree)}#{_comments(text)}"
    return re.sub(r"\s+", "", text)


def digest(text: str, code: bool) -> str:
    """A short digest of a cell's form: the same with every version of Python."""
    return hashlib.sha256(form(text, code).encode("utf-8", "replace")).hexdigest()[:16]


def _comments(text: str) -> str:
    """The words of comments, and of what follows a # in a text."""
    return "".join(re.findall(r"\w", "".join(re.findall("#.*", text))))


_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _of_node(node: ast.AST) -> str:
    """A syntax tree as text; fields that are empty, as newer versions of Python add them, and
    what says only how something is spelt are left out."""
    parts = []
    for name, value in ast.iter_fields(node):
        if name in ("ctx", "kind", "type_comment", "type_ignores") or value in (None, []):
            continue
        if isinstance(value, list):
            items = [_of_node(item) if isinstance(item, ast.AST) else repr(item) for item in value]
            if name == "body" and isinstance(node, _DOCUMENTED):
                items = _documented(value, items)
            parts.append(f"{name}=[{','.join(items)}]")
        else:
            parts.append(f"{name}={_of_node(value) if isinstance(value, ast.AST) else repr(value)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _documented(body: list[ast.stmt], items: list[str]) -> list[str]:
    """Statements with the docstring's indentation taken off, and imports side by side sorted."""
    first = body[0]
    constant = first.value if isinstance(first, ast.Expr) else None
    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
        lines = inspect.cleandoc(constant.value).splitlines()
        items = [repr([line.rstrip() for line in lines]), *items[1:]]
    ordered: list[str] = []
    run: list[str] = []
    for statement, item in zip([*body, None], [*items, ""]):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            run += _names_one_by_one(statement)
            continue
        ordered += sorted(run)
        run = []
        if statement is not None:
            ordered.append(item)
    return ordered


def _names_one_by_one(statement: ast.Import | ast.ImportFrom) -> list[str]:
    module = (
        f"{'.' * statement.level}{statement.module}"
        if isinstance(statement, ast.ImportFrom)
        else ""
    )
    return [f"import {module} {name.name} {name.asname}" for name in statement.names]


def _parsed(text: str) -> ast.Module | None:
    """The syntax tree of a text, or None where Python cannot read it."""
    if len(text) > MAX_PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_python(text: str) -> bool:
    """Whether Python can read a text."""
    return _parsed(text) is not None


def binds(text: str) -> set[str]:
    """The names that code binds at its top level by def, class or assignment; none of no code."""
    tree = _parsed(text)
    names = set()
    for statement in tree.body if tree else []:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(statement.name)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


class Known(NamedTuple):
    """What is known of a cell: its name and the digest of its text, each "" where it has none, and
    the names that its code binds."""

    name: str
    digest: str
    binds: Collection[str] = ()


def found_names(
    cells: Sequence[Known], given: Mapping[str, str], answers: Iterable[str]
) -> dict[int, str]:
    """The names of cells that lost theirs, by their place.

    Args:
        cells: in order.
        given: names of the cells that nobody fills, by the digests of their texts.
        answers: names of the cells that students fill with code.

    Returns:
        A given cell is known by its form; an answer by the name that its code binds, where one
        cell alone does. A name that a cell has already is nobody else's.
    """
    there = {cell.name for cell in cells}
    nameless = [(at, cell) for at, cell in enumerate(cells) if not cell.name]
    by_place: dict[int, str] = {}
    for at, cell in nameless:
        name = given.get(cell.digest, "") if cell.digest else ""
        if name and name not in there:
            by_place[at] = name
            there.add(name)
    for name in [name for name in answers if name not in there]:
        places = [at for at, cell in nameless if name in cell.binds and at not in by_place]
        if len(places) == 1:
            by_place[places[0]] = name
    return by_place


def lost_metadata(
    cells: Sequence[tuple[str, str, str]], released: Iterable[tuple[str, str, float]]
) -> dict[int, dict[str, Any]]:
    """What nbgrader says of cells that lost it, by their place.

    Args:
        cells: kind, text and name, or "", of each.
        released: digest of the text, name and points of each named cell as it was handed out.
    """
    known = {name: (text, points) for text, name, points in released if name}
    if known.keys() <= {name for *_, name in cells}:
        return {}  # nothing is lost: no text has to be parsed
    given = {text: name for name, (text, _) in known.items()}
    answers = [name for name in known if not name.startswith(("test_", "written_"))]
    return {
        at: {
            "grade_id": name,
            "grade": name.startswith(("test_", "written_")),
            "solution": not name.startswith("test_"),
            "points": known[name][1],
        }
        for at, name in found_names([_known(*cell) for cell in cells], given, answers).items()
    }


def _known(kind: str, text: str, name: str) -> Known:
    if name or not text.strip():
        return Known(name, "")
    code = kind == "code"
    return Known("", digest(text, code), binds(text) if code else ())
