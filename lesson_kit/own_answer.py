"""Of a notebook's cells what an answer is, and what it needs: its definitions and imports.

Of a cell that defines an answer other statements (prints, trials) are left out; of other cells only
definitions come along that the answer uses. A check becomes a function for pytest.
"""

from __future__ import annotations

import ast
import builtins
import dis
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType

__all__ = ["GIVEN", "PROGRAM", "CannotLift", "Lifted", "answer", "test"]

#: Modules of the kit that a package has a copy of, in its folder ``given``; and those of its
#: program, in a course that ends with a published model.
GIVEN = (
    *("batteries", "differences", "drawn_maps", "package_parts", "plain_checks", "tensors"),
    "words",
)
PROGRAM = ("chat_model", "chat_tokenizer", "gguf_file", "package_program")

_KIT = "lesson_kit."

#: Lines of a check that only a notebook needs.
_NOTEBOOKS_OWN = re.compile(
    r"^(?:checks_passed\(.*\)|import lesson_kit\.checks|# .*Shift\+Enter.*) *\n?", re.M
)
_KNOWN = {*vars(builtins), "__name__", "__class__"}


class CannotLift(ValueError):
    """An answer needs something that does not come along; the message says what."""


@dataclass
class Lifted:
    """Code out of a notebook.

    Attributes:
        text: of the definitions.
        imports: what it needs, one statement each.
        parts: names of the course's exercises that it uses.
    """

    text: str = ""
    imports: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Statement:
    """A statement at the top of a cell: its lines, the names that it binds and looks up, what it
    imports, and whether it only defines something, so that it may come along from another cell."""

    text: str
    binds: frozenset[str]
    looks_up: frozenset[str]
    imports: tuple[tuple[str, str], ...] = ()
    defines: bool = False


def answer(name: str, source: str, cells: Sequence[str], parts: Iterable[str]) -> Lifted:
    """An answer, from the cell that defined it.

    Args:
        name: of the exercise.
        source: of that cell.
        cells: sources of all that ran, in order.
        parts: names of the course's exercises, which are imported and not taken along.

    Raises:
        CannotLift: it needs something that cannot come along.
    """
    statements = _statements(source)
    if not any(name in statement.binds for statement in statements):
        raise CannotLift(f"no cell is known that defines {name}")
    others = [s for cell in cells for s in _statements(cell)]
    chosen, lifted = _needed([name], statements, others, set(parts) - {name})
    lifted.text = "\n\n\n".join(statement.text for statement in chosen)
    return lifted


def test(exercise: str, source: str, cells: Sequence[str], parts: Iterable[str]) -> Lifted:
    """A check as a test: ``def test_softmax():`` and the cell's code in it.

    Args:
        exercise: that is checked.
        source: of the check's cell.
        cells: sources of all that ran, in order.
        parts: names of the course's exercises.

    Raises:
        CannotLift: it needs something that cannot come along.
    """
    body = _NOTEBOOKS_OWN.sub("", _plain(source)).strip()
    tree = ast.parse(body)
    inside = _looked_up(compile(tree, "<check>", "exec", dont_inherit=True))
    bound = {name for statement in _statements(body) for name in statement.binds}
    others = [s for cell in cells for s in _statements(cell)]
    chosen, lifted = _needed(sorted(inside - bound), [], others, set(parts))
    lines = body.splitlines()
    fixed = set(_inside_texts(body))
    indented = [
        line if number in fixed or not line else f"    {line}"
        for number, line in enumerate(lines, start=1)
    ]
    own = f"def test_{exercise}():\n" + "\n".join(indented)
    lifted.text = "\n\n\n".join([*(statement.text for statement in chosen), own])
    return lifted


def _needed(
    wanted: Sequence[str], own: list[_Statement], others: list[_Statement], parts: set[str]
) -> tuple[list[_Statement], Lifted]:
    """The statements that bind some names and what these look up, and what is to be imported."""
    chosen: list[_Statement] = []
    needs = Lifted()
    waiting, been = list(wanted), set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in been:
            continue
        been.add(name)
        here = [statement for statement in own if name in statement.binds]
        if not here and name in parts:
            needs.parts.append(name)
            continue
        if not here and name in _KNOWN:
            continue
        here = here or [s for s in others if name in s.binds and s.defines][-1:]
        if not here:
            raise CannotLift(f"it uses `{name}`, which is not defined in the answer's own cell")
        for statement in here:
            imported = dict(statement.imports).get(name)
            if imported is not None:
                needs.imports.append(_of_the_package(name, imported))
            elif not statement.imports and statement not in chosen:
                chosen.append(statement)
                waiting.extend(sorted(statement.looks_up))
    order = [*others, *own]
    return sorted(chosen, key=order.index), needs


def _of_the_package(name: str, statement: str) -> str:
    if _KIT not in statement:
        return statement
    module = statement.split()[1].removeprefix(_KIT)
    if module == "checks":
        module = "plain_checks"
    if module not in (*GIVEN, *PROGRAM) or statement.startswith("import"):
        raise CannotLift(f"it uses `{name}` of the course's own {_KIT}{module}")
    return statement.replace(statement.split()[1], f".given.{module}")


def _plain(source: str) -> str:
    """A cell's source as Python: without lines that only IPython understands."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join("" if re.match(r"\s*[%!]", line) else line for line in lines)


def _statements(source: str) -> list[_Statement]:
    """The statements at the top of a cell; none of one that is not valid Python."""
    text = _plain(source)
    try:
        tree = ast.parse(text)
        return list(_each(tree.body, text.splitlines()))
    except (SyntaxError, ValueError, RecursionError):
        return []


def _each(body: list[ast.stmt], lines: list[str]) -> Iterator[_Statement]:
    for node in body:
        decorators = [d.lineno for d in getattr(node, "decorator_list", [])]
        first = min([node.lineno, *decorators])
        while first > 1 and lines[first - 2].startswith("#") and lines[first - 2][:4] != "# %%":
            first -= 1
        code = compile(ast.Module([node], []), "<cell>", "exec", dont_inherit=True)
        yield _Statement(
            "\n".join(lines[first - 1 : node.end_lineno]),
            frozenset(_names(code, "STORE_NAME")),
            frozenset(_looked_up(code)),
            imports := tuple(_imports(node)),
            bool(imports) or _defines(node),
        )


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(inner, (ast.Call, ast.Await)) for inner in ast.walk(node))
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def _imports(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Names that a statement imports, also in a ``try``, each with an import of its own."""
    for inner in ast.walk(node) if isinstance(node, (ast.Try, ast.If)) else [node]:
        if isinstance(inner, ast.Import):
            for alias in inner.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield bound, ast.unparse(ast.Import([alias]))
        elif isinstance(inner, ast.ImportFrom) and not inner.level:
            for alias in inner.names:
                statement = ast.ImportFrom(inner.module, [alias], 0)
                yield alias.asname or alias.name, ast.unparse(statement)


def _names(code: CodeType, *kinds: str) -> set[str]:
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname in kinds}


def _looked_up(code: CodeType) -> set[str]:
    """Names of the notebook that code looks up, in itself or in functions of it."""
    names = _names(code, "LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
    if code.co_name != "<module>":
        names -= _names(code, "STORE_NAME")  # a class's own
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _looked_up(constant)
    return names


def _inside_texts(source: str) -> Iterator[int]:
    """Lines that begin inside a text of several lines, which are not to be moved."""
    begun: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":  # since Python 3.12 an f-string is several tokens
            begun.append(token.start[0])
        elif kind in ("STRING", "FSTRING_END"):
            first = begun.pop() if kind == "FSTRING_END" else token.start[0]
            yield from range(first + 1, token.end[0] + 1)
