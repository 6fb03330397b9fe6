"""Formulas in a page that loads nothing: ``$...$`` becomes MathML, which browsers draw.

A student's formula is converted in a process that can be ended (see
:mod:`autograder.marking.formula_process`), and only as much of a text as :class:`Formulas` allows.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from autograder.limited_process import TooMuch
from autograder.marking.formula_process import converted

_FORMULA = re.compile(r"\$\$(?P<block>[^$]{1,400})\$\$|\$(?P<inline>[^$\n]{1,400})\$")

#: A formula that defines a command for itself: nineteen of them make a page that never ends.
_DEFINES = re.compile(
    r"\\(?:[egx]?def|(?:future)?let|(?:re)?newcommand|providecommand"
    r"|(?:re)?newenvironment|DeclareMathOperator)(?![A-Za-z])"
)

#: Formulas of one text; what is beyond stays as it was typed.
MAX_FORMULAS = 100
#: Characters of one formula; what is longer stays as it was typed.
LONGEST_FORMULA = 2000


class Formulas:
    """The formulas of one text: so many are converted, until one takes too much."""

    def __init__(self) -> None:
        """Begin a text."""
        self._left = MAX_FORMULAS

    def mathml(self, latex: str, *, block: bool) -> Markup | None:
        """One formula, without its dollars; None where it is to stay as it was typed."""
        self._left -= 1
        if self._left < 0:
            return None
        try:
            return _converted(latex, block=block)
        except TooMuch:
            self._left = 0
            return None


def with_formulas(text: str) -> Markup:
    """A text as HTML, escaped, its formulas as MathML.

    A formula that cannot be converted stays as it was typed.
    """
    formulas = Formulas()
    parts: list[Markup] = []
    end = 0
    for match in _FORMULA.finditer(text):
        block = match["block"]
        made = formulas.mathml(block or match["inline"], block=bool(block))
        if made is None:
            continue
        parts += [escape(text[end : match.start()]), made]
        end = match.end()
    parts.append(escape(text[end:]))
    return Markup("").join(parts)


def as_mathml(latex: str, *, block: bool) -> Markup | None:
    """One formula, without its dollars, as MathML; None where it cannot be converted."""
    return Formulas().mathml(latex, block=block)


def _converted(latex: str, *, block: bool) -> Markup | None:
    if len(latex) > LONGEST_FORMULA or _DEFINES.search(latex):
        return None
    made = converted(latex, block=block)
    return None if made is None else Markup(made)
