"""Formulas are converted in a process of their own, which ends itself when one is too much.

latex2mathml does the work. A formula is a program to it: a few hundred characters of a
student's can keep it busy for ever, or make a page of any size. So each has seconds of
processor time, and the process has so much memory. What the converter makes is rebuilt from a
list of allowed elements before it reaches a page.
"""

from __future__ import annotations

from xml.etree import ElementTree

from autograder.limited_process import LimitedProcess, serve

#: Characters of MathML made of one formula.
MAX_MATHML = 200_000

_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_ELEMENTS = frozenset(
    """math mrow mi mo mn mtext mspace msup msub msubsup mfrac msqrt mroot mover munder
    munderover mtable mtr mtd mstyle mpadded mphantom""".split()  # noqa: SIM905
)
_ATTRIBUTES = frozenset(
    """display mathvariant stretchy fence form separator lspace rspace columnalign displaystyle
    scriptlevel accent movablelimits width minsize maxsize linethickness""".split()  # noqa: SIM905
)


_converter = LimitedProcess("autograder.marking.formula_process")


def converted(latex: str, *, block: bool) -> str | None:
    """A formula as MathML; None where the converter does not understand it.

    Raises:
        TooMuch: it took too much time or memory, or made too much.
    """
    made: str | None = _converter.ask("convert", latex, block)
    return made


def _convert(latex: str, block: bool) -> str | None:
    from latex2mathml.converter import convert  # not in the process that asks

    try:
        known = latex.replace("{aligned}", "{align*}")  # the converter lacks the former
        made = convert(known, display="block" if block else "inline")
        tree = _allowed(ElementTree.fromstring(made))
        return ElementTree.tostring(tree, encoding="unicode")
    except MemoryError:
        raise
    except Exception:  # whatever a converter does with a text it cannot read
        return None


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


if __name__ == "__main__":
    import latex2mathml.converter  # noqa: F401  # its import is not the first formula's time

    serve({"convert": _convert}, most=MAX_MATHML)
