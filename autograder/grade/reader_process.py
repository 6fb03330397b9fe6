"""Where the sources of submissions are read: ``python -m autograder.grade.reader_process``.

Started by :mod:`.reader`. It runs none of them, and what it falls over costs one answer.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from autograder.grade.cell_names import may_be_rebound, names_bound
from autograder.grade.hidden_exceptions import let_through
from autograder.limited_process import ask_back, serve
from lesson_kit.answer_text import words_of
from lesson_kit.notebook_reading import binds, digest, form, is_python
from lesson_kit.repair import nearest_repair

#: Changes that are tried in other lines once one was found that mends an answer.
TRIED_ELSEWHERE = 50


def _rebound(cells: Sequence[str | None], places: Sequence[int]) -> list[int]:
    return [place for place in places if may_be_rebound(cells[:place], cells[place:])]


def _look(cells: Sequence[tuple[str, bool]]) -> list[tuple[str, list[str], bool]]:
    seen = [
        (digest(source, code), sorted(binds(source)) if code else [], code and is_python(source))
        for source, code in cells
    ]
    form.cache_clear()  # it would fill the memory that the next submission's cells need
    return seen


def _words(source: str) -> tuple[list[str], list[float]]:
    names, numbers = words_of(source)
    return list(names), list(numbers)


def _repair(source: str, seconds: float) -> str:
    tried: set[str] = set()

    def passes(tree: ast.Module) -> bool:
        changed = ast.unparse(tree)
        if changed in tried:
            return False
        tried.add(changed)
        return bool(ask_back(changed))

    return nearest_repair(source, passes, seconds, elsewhere=TRIED_ELSEWHERE)


if __name__ == "__main__":
    serve(
        {
            "let_through": let_through,
            "look": _look,
            "names_bound": names_bound,
            "rebound": _rebound,
            "repair": _repair,
            "words": _words,
        }
    )
