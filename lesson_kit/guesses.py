"""What a student predicted before a demonstration ran, and what came out; and puzzles.

A guess earns nothing and costs nothing; that it was written down before is what it is for. Whatever
stands there, the notebook goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from .course_progress import SOLVED
from .shown import show_pass
from .words import N_, said, tr

__all__ = ["puzzle", "reply"]

#: Characters of a guess that are said again.
_LONGEST = 60


def reply(name: str, guess: Any, found: Any, because: str = "", *, within: float = 0.0) -> None:
    """Say whether a guess came true.

    Args:
        name: of the variable that holds the guess.
        guess: as it stands there; None: there is none yet.
        found: what came out: a number, a text, a truth value, a tuple of them in order, or a set.
        because: a sentence on why, for whatever was guessed.
        within: how far a number may be away and still count as guessed.
    """
    if guess is None:
        still = N_(
            "`{name}` is still None. Write your guess first, run its cell and this one again: what "
            "you have predicted stays longer than what you have read."
        )
        show_pass(tr(still, name=name), right=False)
        return
    because = said(because)
    like = _unlike(guess, found)
    if like:
        what = N_("`{name} = {guess}` cannot be compared: {like} is asked for.")
        other = tr(what, name=name, guess=_short(guess), like=like)
        came_out = tr("It came out as {found}.", found=_said(found))
        show_pass(f"{other} {came_out} {because}".rstrip(), right=False)
        return
    both = {"guess": _said(guess), "found": _said(found)}
    if _agree(guess, found, within):
        near = "" if both["guess"] == both["found"] else tr(" Exactly: {found}.", **both)
        text = tr("You predicted {guess}, and that counts as right.", **both) + near
        show_pass(f"{text} {because}".rstrip())
        return
    text = tr("You predicted {guess}; it came out as {found}.", **both)
    show_pass(f"{text} {because}".rstrip(), right=False)


def puzzle(
    name: str,
    answer: Any,
    does: Callable[[Any, Any], Any],
    wanted: Callable[[Any], Any],
    examples: Sequence[Any],
) -> None:
    """Judge a puzzle by what it does, and by nothing else. It is worth no points.

    Args:
        name: of the variable that holds the answer.
        answer: as it stands there; None: there is none yet.
        does: ``does(answer, example)``, what comes of the example with that answer.
        wanted: ``wanted(example)``, what it should make of it; numbers, compared to 0.001.
        examples: what it is tried on, the smallest first.
    """
    if answer is None:
        still = N_("`{name}` is still None. A puzzle is for those who like one.")
        show_pass(tr(still, name=name), right=False)
        return
    for example in examples:
        asked = np.asarray(wanted(example), dtype=float)
        try:
            made = np.asarray(does(answer, example), dtype=float)
        except Exception as error:  # whatever a student wrote
            kind = type(error).__name__
            stops = tr("`{name}` stops with {kind}: {text}", name=name, kind=kind, text=error)
            show_pass(stops, right=False)
            return
        if made.shape != asked.shape or not np.allclose(made, asked, atol=1e-3):
            fields = {"name": name, "example": _short(example)}
            differs = N_("`{name}`, for {example}: asked is {asked}; yours makes {made}.")
            text = tr(differs, **fields, asked=_row(asked), made=_row(made))
            show_pass(text, right=False)
            return
    number = len(examples)
    done = N_("`{name}` {is_solved}, for all {number} examples.")
    show_pass(tr(done, name=name, is_solved=tr(SOLVED), number=number))


def _row(numbers: Any) -> str:
    return " ".join(str(np.round(numbers, 2) + 0.0).split())


def _unlike(guess: Any, found: Any) -> str:
    """The kind of thing that is asked for, where the guess is of another kind; or ""."""
    if isinstance(found, (set, frozenset)):
        fits = isinstance(guess, (set, frozenset, list, tuple)) and all(
            not _unlike(one, next(iter(found))) for one in guess
        )
        return "" if fits else tr("a set such as {found}, of any size,", found=_said(found))
    if isinstance(found, (tuple, list)):
        fits = (
            isinstance(guess, (tuple, list))
            and len(guess) == len(found)
            and not any(_unlike(one, other) for one, other in zip(guess, found))
        )
        return "" if fits else tr("{number} in a row, such as (..., ...),", number=len(found))
    if isinstance(found, (bool, np.bool_)):
        return "" if isinstance(guess, (bool, np.bool_)) else tr("True or False")
    if isinstance(found, str):
        return "" if isinstance(guess, str) else tr("a text between quotes")
    number = isinstance(guess, (int, float, np.number)) and not isinstance(guess, bool)
    return "" if number and math.isfinite(guess) else tr("a number")


def _agree(guess: Any, found: Any, within: float) -> bool:
    if isinstance(found, (set, frozenset)):
        return set(map(_plain, guess)) == set(map(_plain, found))
    if isinstance(found, (tuple, list)):
        return all(_agree(one, other, within) for one, other in zip(guess, found))
    if isinstance(found, (str, bool, np.bool_)):
        return bool(_plain(guess) == _plain(found))
    return bool(abs(guess - found) <= within + 1e-9)


def _plain(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _said(value: Any) -> str:
    """A guess or a result as one writes it in a sentence."""
    if isinstance(value, (set, frozenset)):
        return _several(sorted(value, key=str), "{}")
    if isinstance(value, (tuple, list)):
        return _several(value, "()")
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, str):
        return _short(value.strip())
    number = float(value)
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _several(values: Collection[Any], brackets: str) -> str:
    return f"{brackets[0]}{', '.join(map(_said, values))}{brackets[1]}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
