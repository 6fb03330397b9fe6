"""What differs between a result and what it should be, in words; how much may; what is shown of it.

A formula that was computed in single precision where double is asked for is the right formula with
fewer digits: that costs the points of the checks that ask for precision, and no others. Of two
arrays that differ the part to look at is small enough to be shown, with its index.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .tensors import torch

__all__ = [
    "Difference",
    "Shown",
    "as_numpy",
    "difference",
    "first_place",
    "in_place_of",
    "kind_of",
    "tolerance",
    "where_they_differ",
    "with_verb",
]


#: A matrix of so many numbers is shown whole; of a row that is longer than this, a stretch.
MOST = 64
LONGEST = 8
#: Numbers of that stretch.
STRETCH = 8

#: The student's part and the expected one, or None; and its index where it is not everything.
Shown = tuple[tuple[np.ndarray, np.ndarray] | None, str]


def where_they_differ(got: np.ndarray, want: np.ndarray, first: tuple[int, ...]) -> Shown:
    """The smallest part of two arrays around a difference that still can be read.

    A small matrix, the first of several that differs; of a large one the row; of a long row the
    numbers around the difference.

    Args:
        got, want: of one shape.
        first: the place of the first difference.
    """
    if not got.ndim:
        return None, ""
    length = got.shape[-1]
    index: tuple[int | slice, ...] = first[:-2]
    if got[index].size > MOST or length > LONGEST:
        index = first[:-1]
    if length > LONGEST:
        begin = max(0, min(first[-1] - STRETCH // 2, length - STRETCH))
        index = (*index, slice(begin, begin + STRETCH))
    return (got[index], want[index]), _as_index(index) if index else ""


def _as_index(index: tuple[int | slice, ...]) -> str:
    parts = [
        f"{part.start}:{part.stop}" if isinstance(part, slice) else f"{part}" for part in index
    ]
    return f" [{', '.join(parts)}]"


#: In words, and a pair of arrays with the place of the slice that is shown.
Difference = tuple[str, Shown]

#: What a value is called that a check gives no name.
NAMELESS = "the result"
#: A part of a part is "item 0, 2 of the result".
_ITEM = re.compile(r"item ([\d, ]+) of (.*)", re.S)
#: Names that are listed of those that are missing, or too many.
MAX_NAMES = 8

#: Whether each of some sentences holds.
Facts = Mapping[object, bool]


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    if value is None:
        return "None"
    if isinstance(value, str) and _is_an_error(getattr(builtins, value, None)):
        return f"no result: {value} was raised"  # a check gives the name of an error that it caught
    if isinstance(value, torch.Tensor):
        return "a torch tensor"
    if isinstance(value, np.ndarray):
        return "a NumPy array"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    name = getattr(value, "type_name", type(value).__name__)  # a type_name stays in the box
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def _is_an_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def as_numpy(value: Any) -> np.ndarray:
    """A tensor, array or number as an array, with the digits that it has."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.dtype == torch.bfloat16:
            value = value.float()
        return value.numpy()
    return np.asarray(value)


def first_place(where: np.ndarray) -> tuple[int, ...]:
    """The index of the first True."""
    return tuple(int(i) for i in np.argwhere(where)[0])


def in_place_of(does: str, yours: object, wanted: object, against: str = "") -> str:
    """What a result does, and what it should do or what another result of the same code does.

    Args:
        does: such as "is" or "has shape", in the third person.
        yours, wanted: what follows it.
        against: where the other comes of the same code, when: "for each text alone". That one may
            be the wrong one, so nothing is said to be as it should be.
    """
    if against:
        return f"{does} {yours}, and {wanted} {against}."
    verb, *noun = does.split()
    should = " ".join([{"is": "be", "has": "have"}[verb], *noun])
    return f"{does} {yours} and should {should} {wanted}."


def with_verb(name: str, said: str) -> str:
    """A value's name and what is said of it: the numbers have, the result has."""
    head = re.split(r" of |,", name)[0]
    if re.fullmatch(r"(?!how |what )[A-Za-z' ]*[a-z](?<![siua])s", head):
        for one, many in (("is ", "are "), ("has ", "have "), ("holds ", "hold ")):
            if said.startswith(one):
                said = many + said.removeprefix(one)
                break
    return f"{name} {said}"


def difference(actual: Any, expected: Any, name: str, against: str = "") -> Difference | None:
    """What differs first, in words and, where they are small, as a pair of arrays.

    Args:
        actual, expected: of any kind.
        name: what the first is called.
        against: as in :func:`in_place_of`.
    """
    if type(actual) is not type(expected):
        return _of_other_kinds(actual, expected, name, against), (None, "")
    if isinstance(expected, (np.ndarray, torch.Tensor)):
        if actual.dtype != expected.dtype:
            said = in_place_of("has dtype", actual.dtype, expected.dtype, against)
            return with_verb(name, said), (None, "")
        got, want = as_numpy(actual), as_numpy(expected)
        if got.shape != want.shape:
            said = in_place_of("has shape", got.shape, want.shape, against)
            return with_verb(name, said), (None, "")
        same = got == want
        if want.dtype.kind == "f":
            same |= np.isnan(got) & np.isnan(want)
        if not np.all(same):
            first = first_place(~np.asarray(same))
            place = f", first at {list(first)}" if first else ""
            detail = f"There are other values in {name}{place}."
            return detail, where_they_differ(got, want, first)
        return None
    if isinstance(expected, (tuple, list)):
        if len(actual) != len(expected):
            items = "1 item" if len(actual) == 1 else f"{len(actual)} items"
            other = (
                f", and {len(expected)} {against}" if against else f" in place of {len(expected)}"
            )
            counted = f"{name}: {items}{other}."
            names = all(isinstance(item, str) for item in (*actual, *expected))
            return counted + (_alone(actual, expected, against) if names else ""), (None, "")
        pairs = [(_part(n, name), *pair) for n, pair in enumerate(zip(actual, expected))]
    elif isinstance(expected, dict):
        if set(actual) != set(expected):
            other = f"are others {against}" if against else "should be others"
            said = f"the keys of {name} {other}." + _alone(actual, expected, against)
            return said, (None, "")
        if all(type(value) is bool for value in (*actual.values(), *expected.values())):
            return _untrue(actual, expected, name)
        pairs = [(f"{name}[{key!r}]", actual[key], other) for key, other in expected.items()]
    elif actual != expected:
        if type(expected) is bool and name == NAMELESS and not against:
            # A truth value without a name is the check's own, and no result of anybody's.
            return ("This does not hold here." if expected else "This holds here."), (None, "")
        said = in_place_of("is", repr(actual), repr(expected), against)
        return with_verb(name, said), (None, "")
    else:
        return None
    for part, yours, wanted in pairs:
        found = difference(yours, wanted, part, against)
        if found is not None:
            return found
    return None


def _part(number: int, name: str) -> str:
    whole = _ITEM.match(name)
    return f"item {whole[1]}, {number} of {whole[2]}" if whole else f"item {number} of {name}"


def _of_other_kinds(actual: Any, expected: Any, name: str, against: str) -> str:
    """Which two kinds of thing they are."""
    kinds = kind_of(actual), kind_of(expected)
    if kinds[0] == kinds[1]:  # such as Python's bool and NumPy's
        kinds = str(type(actual)), str(type(expected))
    arrays = (np.ndarray, torch.Tensor)
    if against and isinstance(actual, arrays) and isinstance(expected, arrays):
        # A check may have put together what came there, in an array of its own.
        return f"{with_verb(name, f'is {kinds[0]}')}; {against} it is compared as {kinds[1]}."
    return with_verb(name, in_place_of("is", *kinds, against))


def _untrue(actual: Facts, expected: Facts, name: str) -> Difference | None:
    """Which facts are not as they should be: the keys say them, the values whether they hold."""
    unmet = [str(fact) for fact in expected if actual[fact] < expected[fact]]
    forbidden = [str(fact) for fact in expected if actual[fact] > expected[fact]]
    of = "" if name == NAMELESS else f" ({name})"
    words = [
        f"{title}{of}: {'; '.join(facts)}."
        for title, facts in (("Does not hold", unmet), ("True and should be False", forbidden))
        if facts
    ]
    return (" ".join(words), (None, "")) if words else None


def _alone(actual: Iterable[Any], expected: Iterable[Any], against: str) -> str:
    """A sentence each for the names that only one of two collections holds."""
    said = ""
    titles = ("Only there", "Only here") if against else ("Missing", "Too many")
    for title, these, others in zip(titles, (expected, actual), (actual, expected)):
        names = [str(name) for name in these if name not in others]
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        said += f" {title}: {', '.join(names[:MAX_NAMES])}{more}." if names else ""
    return said


#: Relative and absolute, of results of that precision.
HALF, SINGLE, DOUBLE = (2e-2, 2e-3), (1e-4, 1e-5), (1e-7, 1e-9)
#: Of doubles that may have been single precision on their way.
ON_THE_WAY = (1e-5, 1e-6)


def tolerance(
    got: np.ndarray, want: np.ndarray, given: tuple[float | None, ...], *, precise: bool
) -> list[float]:
    """The relative and the absolute tolerance of a comparison.

    What is given holds, and for results in single precision no less than these have. By default
    the absolute one is relative to the largest value where that is below 1: a small number does
    not pass for being small.

    Args:
        got: a result.
        want: what is expected.
        given: what the check allows; None for what follows from the precision.
        precise: the check asks for the precision of ``want``.
    """
    if want.dtype != np.float64 or precise:
        default = {np.float16: HALF, np.float32: SINGLE}.get(want.dtype.type, DOUBLE)
        least = 0
    else:
        least = int(got.dtype == np.float32)
        relative, absolute = SINGLE if least else ON_THE_WAY
        largest = float(np.max(np.abs(want), initial=0.0, where=np.isfinite(want)))
        default = relative, max(DOUBLE[1], absolute * min(1.0, largest))
    return [usual if it is None else max(it, least * usual) for it, usual in zip(given, default)]
