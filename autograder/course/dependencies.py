"""What a piece of a lesson's code depends on: the statements that bind the names it uses.

A changed answer, or an inserted exercise, changes the results of what builds on it and of nothing
else. So the key under which a result is kept is made of the code that can reach it.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import import_module
from pathlib import Path

from autograder.course.lessons import Lesson
from autograder.course.prerequisites import EARLIER, sources_of
from autograder.notebooks import DEMONSTRATION, grade_id, is_answer, is_test, tags

#: Modules of the kit that only the tests which use them come from; all others stand in every key.
FOR_TESTS = ("lesson_kit.batteries", "lesson_kit.drawn_maps")

_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class _Statement:
    """A statement: names it may bind, names it uses, its text, the exercise it answers or ""."""

    binds: frozenset[str]
    uses: frozenset[str]
    text: str
    answer: str = ""


@dataclass(frozen=True, eq=False)
class Dependencies:
    """The code of a lesson that is neither a test nor a demonstration."""

    lesson: Lesson

    def behind(self, sources: Iterable[str], instead: Mapping[str, str]) -> list[str]:
        """Texts of all statements that code can reach, in the notebook's order.

        Too much is no harm, and too little would be: a statement that binds nothing, such as a
        setting, belongs to everything; whatever stores a name anywhere inside it binds that name.

        Args:
            sources: the code.
            instead: sources in place of answers, by exercise; the answers are left out.
        """
        used = self._names_of([*sources, *instead.values()])
        kept = [line for line in self._statements if line.answer not in instead or not line.answer]
        reached = [not line.binds for line in kept]
        growing = True
        while growing:
            growing = False
            for place, line in enumerate(kept):
                reached[place] |= bool(line.binds & used)
                if reached[place] and not line.uses <= used:
                    used |= line.uses
                    growing = True
        return [line.text for line, wanted in zip(kept, reached) if wanted]

    def _names_of(self, sources: Iterable[str]) -> frozenset[str]:
        """Names that code uses; of what statements bind, all. Code that mentions no new one is not
        read as Python: most wrong answers mention what the right one does."""
        bound = frozenset[str]().union(*(line.binds for line in self._statements))
        used = frozenset[str]()
        for source in sources:
            mentioned = bound.intersection(_WORD.findall(unicodedata.normalize("NFKC", source)))
            if not mentioned <= used:
                used |= names_used(source)
        return used

    @cached_property
    def _statements(self) -> list[_Statement]:
        statements: list[_Statement] = []
        for cell in self.lesson.notebook.cells:
            if cell.cell_type != "code" or is_test(cell) or DEMONSTRATION in tags(cell):
                continue
            name = grade_id(cell) if is_answer(cell) else ""
            if name:
                uses = names_used(cell.source)
                statements.append(_Statement(frozenset({name}), uses, cell.source, name))
            else:
                for node in ast.parse(cell.source).body:
                    statements += self._of(node)
        return statements

    def _of(self, node: ast.stmt) -> list[_Statement]:
        """A statement; an import is one for each name, since each comes from elsewhere."""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return [self._imported(node, alias) for alias in node.names]
        inside = list(ast.walk(node))
        imported = [
            self._imported(part, alias)
            for part in inside
            if isinstance(part, (ast.Import, ast.ImportFrom))
            for alias in part.names
        ]
        text = "\n".join([ast.unparse(node), *(line.text for line in imported)])
        binds = _bound(inside).union(*(line.binds for line in imported))
        return [_Statement(binds, _used(inside), text)]

    def _imported(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> _Statement:
        module = alias.name if isinstance(node, ast.Import) else node.module or ""
        name = alias.asname or alias.name.partition(".")[0]
        taken_over = sources_of(self.lesson, [alias.name]) if module == EARLIER else []
        taken_over += [_code_of(module)] if module in FOR_TESTS else []
        text = "\n".join([f"{module} {alias.name} {name}", *taken_over])
        return _Statement(frozenset({name}), frozenset(), text)


@cache
def _code_of(module: str) -> str:
    return without_docstrings(Path(str(import_module(module).__file__)))


def without_docstrings(path: Path) -> str:
    """A module's code as text, without comments and what is only said."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return ast.dump(tree)


def _bound(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Every name that is stored or deleted in a statement, or that it defines."""
    bound = set[str]()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
    return frozenset(bound)


def _used(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


@lru_cache(maxsize=4_096)  # asked for each test of each answer
def names_used(source: str) -> frozenset[str]:
    """The names that a piece of code mentions; none where it is no Python."""
    try:
        return _used(ast.walk(ast.parse(source)))
    except SyntaxError:
        return frozenset()
