"""Formulas in a page that loads nothing: ``$...$`` becomes MathML, which browsers draw.

latex2mathml does the work. What it makes of a student's text is rebuilt from a list of
allowed elements before it reaches a page.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup, escape

_FORMULA = re.compile(r"\$\$(?P<block>[^$]{1,400})\$\$|\$(?P<inline>[^$\n]{1,400})\$")

#: Formulas of one text; what is beyond stays as it was typed.
MOST_FORMULAS = 100

_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_ELEMENTS = frozenset(
    """math mrow mi mo mn mtext mspace msup msub msubsup mfrac msqrt mroot mover munder
    munderover mtable mtr mtd mstyle mpadded mphantom""".split()  # noqa: SIM905
)
_ATTRIBUTES = frozenset(
    """display mathvariant stretchy fence form separator lspace rspace columnalign displaystyle
    scriptlevel accent movablelimits width minsize maxsize linethickness""".split()  # noqa: SIM905
)


def with_formulas(text: str) -> Markup:
    """A text as HTML, escaped, its formulas as MathML.

    A formula that cannot be converted stays as it was typed.
    """
    parts: list[Markup] = []
    end = 0
    for number, match in enumerate(_FORMULA.finditer(text)):
        if number == MOST_FORMULAS:
            break
        parts += [escape(text[end : match.start()]), _mathml(match)]
        end = match.end()
    parts.append(escape(text[end:]))
    return Markup("").join(parts)


def as_mathml(latex: str, *, block: bool) -> Markup | None:
    """One formula, without its dollars, as MathML; None where it cannot be converted."""
    try:
        known = latex.replace("{aligned}", "{align*}")  # the converter lacks the former
        made = convert(known, display="block" if block else "inline")
        tree = _allowed(ElementTree.fromstring(made))
    except Exception:  # whatever a converter does with a text it cannot read
        return None
    return Markup(ElementTree.tostring(tree, encoding="unicode"))


def _mathml(match: re.Match[str]) -> Markup:
    block = match["block"]
    made = as_mathml(block or match["inline"], block=bool(block))
    return escape(match.group(0)) if made is None else made


def _allowed(node: ElementTree.Element) -> ElementTree.Element:
    """A copy of allowed elements and attributes.

    Raises:
        ValueError: there is another element.
    """
    name = node.tag.removeprefix(_NAMESPACE)
    if name not in _ELEMENTS:
        raise ValueError(f"{name} is not allowed")
    kept = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
    copy = ElementTree.Element(name, kept)
    copy.text, copy.tail = node.text, node.tail
    copy.extend(_allowed(child) for child in node)
    return copy
