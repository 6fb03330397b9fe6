"""Formulas are converted in a process of their own, which ends itself when one is too much.

latex2mathml does the work. A formula is a program to it: a few hundred characters of a
student's can keep it busy for ever, or make a page of any size. So each has seconds of
processor time, and the process has so much memory. What the converter makes is rebuilt from a
list of allowed elements before it reaches a page.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from xml.etree import ElementTree

#: Seconds of processor time for one formula. An honest one takes milliseconds.
SECONDS = 2
#: Bytes of memory for the process.
MEMORY = 2**29
#: Characters of MathML made of one formula.
MOST_MATHML = 200_000

_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_ELEMENTS = frozenset(
    """math mrow mi mo mn mtext mspace msup msub msubsup mfrac msqrt mroot mover munder
    munderover mtable mtr mtd mstyle mpadded mphantom""".split()  # noqa: SIM905
)
_ATTRIBUTES = frozenset(
    """display mathvariant stretchy fence form separator lspace rspace columnalign displaystyle
    scriptlevel accent movablelimits width minsize maxsize linethickness""".split()  # noqa: SIM905
)


class TooMuch(Exception):
    """A formula took more time or memory than one may."""


class _Converter:
    """The process, started when it is needed; after one that was too much, another."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, latex: str, *, block: bool) -> str | None:
        with self._lock:
            process = self._process = self._process or _start()
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(json.dumps([latex, block]) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except OSError:
                answer = ""
            except BaseException:  # such as Ctrl-C: the answer would be taken for the next one's
                self._end()
                raise
            if not answer.endswith("\n"):
                self._end()
                raise TooMuch
        made: str | None = json.loads(answer)
        return made

    def end(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(OSError):  # what was not sent yet
                process.communicate()


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "autograder.marking.formula_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )


_converter = _Converter()
atexit.register(_converter.end)


def converted(latex: str, *, block: bool) -> str | None:
    """A formula as MathML; None where the converter does not understand it.

    Raises:
        TooMuch: it took too much time or memory, or made too much.
    """
    return _converter.ask(latex, block=block)


def _serve() -> None:
    """In the process: a line of JSON for each line of JSON."""
    import latex2mathml.converter  # noqa: F401  # its import is not the first formula's time

    limit = _limits()
    for line in sys.stdin:
        latex, block = json.loads(line)
        limit(SECONDS)
        made = _convert(latex, block=block)
        limit(0)
        if made is not None and len(made) > MOST_MATHML:
            return
        print(json.dumps(made), flush=True)


def _limits() -> Callable[[float], object]:
    """Limit the memory of this process; what is returned ends it after so many seconds of work."""
    try:
        import resource
        import signal
    except ImportError:  # Windows, where nothing is graded
        return lambda seconds: None
    with contextlib.suppress(OSError, ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    return lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)


def _convert(latex: str, *, block: bool) -> str | None:
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
    _serve()
