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
from .words import N_, N_n, said, tr, tr_n

__all__ = [
    "HAS_DTYPE",
    "HAS_SHAPE",
    "IS",
    "Difference",
    "Says",
    "Shown",
    "as_numpy",
    "difference",
    "first_place",
    "in_place_of",
    "kind_of",
    "told_apart",
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
NAMELESS = N_("the result")
#: A part of a part is "item 0, 2 of the result".
ITEM = N_("item {number} of {name}")
_ITEM = re.compile(r"item ([\d, ]+) of (.*)", re.S)
#: Names that are listed of those that are missing, or too many.
MAX_NAMES = 8

#: Whether each of some sentences holds.
Facts = Mapping[object, bool]

#: What is said of a value, of one thing and of several, and its fields.
Says = tuple[tuple[str, str], dict[str, object]]

#: What a value is and should be; and what two are that come of the same code.
IS = (
    N_n("is {yours} and should be {wanted}.", "are {yours} and should be {wanted}."),
    N_n("is {yours}, and {wanted} {against}.", "are {yours}, and {wanted} {against}."),
)
HAS_SHAPE = (
    N_n(
        "has shape {yours} and should have shape {wanted}.",
        "have shape {yours} and should have shape {wanted}.",
    ),
    N_n(
        "has shape {yours}, and {wanted} {against}.",
        "have shape {yours}, and {wanted} {against}.",
    ),
)
HAS_DTYPE = (
    N_n(
        "has dtype {yours} and should have dtype {wanted}.",
        "have dtype {yours} and should have dtype {wanted}.",
    ),
    N_n(
        "has dtype {yours}, and {wanted} {against}.",
        "have dtype {yours}, and {wanted} {against}.",
    ),
)
_COMPARED_AS = N_n(
    "is {yours}; {against} it is compared as {wanted}.",
    "are {yours}; {against} it is compared as {wanted}.",
)


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    if value is None:
        return "None"
    if isinstance(value, str) and _is_an_error(getattr(builtins, value, None)):
        # A check gives the name of an error that it caught.
        return tr("no result: {error} was raised", error=value)
    if isinstance(value, torch.Tensor):
        return tr("a torch tensor")
    if isinstance(value, np.ndarray):
        return tr("a NumPy array")
    if isinstance(value, (tuple, list)):
        return tr("a {kind} of {length}", kind=type(value).__name__, length=len(value))
    name = getattr(value, "type_name", type(value).__name__)  # a type_name stays in the box
    return tr("an {kind}", kind=name) if name[:1] in "aeiou" else tr("a {kind}", kind=name)


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


def in_place_of(
    does: tuple[tuple[str, str], tuple[str, str]], yours: object, wanted: object, against: str = ""
) -> Says:
    """What a result does, and what it should do or what another result of the same code does.

    Args:
        does: :data:`IS`, :data:`HAS_SHAPE` or :data:`HAS_DTYPE`.
        yours, wanted: what follows it.
        against: where the other comes of the same code, when: "for each text alone". That one may
            be the wrong one, so nothing is said to be as it should be.
    """
    fields = {"yours": yours, "wanted": wanted, "against": said(against)}
    return does[bool(against)], fields


def with_verb(name: str, says: Says) -> str:
    """A value's name and what is said of it: the numbers have, the result has."""
    head = re.split(r" of |,", name)[0]
    several = re.fullmatch(r"(?!how |what )[A-Za-z' ]*[a-z](?<![siua])s", head)
    (singular, plural), fields = says
    return f"{said(name)} {tr_n(singular, plural, 2 if several else 1, **fields)}"


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
        return _of_arrays(actual, expected, name, against)
    if isinstance(expected, (tuple, list)):
        if len(actual) != len(expected):
            items = tr_n("{n} item", "{n} items", len(actual))
            there = {"number": len(expected), "against": said(against)}
            other = tr(", and {number} {against}", **there) if against else ""
            other = other or tr(" in place of {number}", **there)
            counted = f"{said(name)}: {items}{other}."
            names = all(isinstance(item, str) for item in (*actual, *expected))
            return counted + (_alone(actual, expected, against) if names else ""), (None, "")
        pairs = [(_part(n, name), *pair) for n, pair in enumerate(zip(actual, expected))]
    elif isinstance(expected, dict):
        if set(actual) != set(expected):
            named = {"name": said(name), "against": said(against)}
            if against:
                others = tr("the keys of {name} are others {against}.", **named)
            else:
                others = tr("the keys of {name} should be others.", **named)
            return others + _alone(actual, expected, against), (None, "")
        if all(type(value) is bool for value in (*actual.values(), *expected.values())):
            return _untrue(actual, expected, name)
        pairs = [(f"{name}[{key!r}]", actual[key], other) for key, other in expected.items()]
    elif actual != expected:
        if type(expected) is bool and name == NAMELESS and not against:
            # A truth value without a name is the check's own, and no result of anybody's.
            holds = tr("This does not hold here.") if expected else tr("This holds here.")
            return holds, (None, "")
        says = in_place_of(IS, repr(actual), repr(expected), against)
        return with_verb(name, says), (None, "")
    else:
        return None
    for part, yours, wanted in pairs:
        found = difference(yours, wanted, part, against)
        if found is not None:
            return found
    return None


def _of_arrays(actual: Any, expected: Any, name: str, against: str) -> Difference | None:
    if actual.dtype != expected.dtype:
        says = in_place_of(HAS_DTYPE, actual.dtype, expected.dtype, against)
        return with_verb(name, says), (None, "")
    got, want = as_numpy(actual), as_numpy(expected)
    if got.shape != want.shape:
        says = in_place_of(HAS_SHAPE, got.shape, want.shape, against)
        return with_verb(name, says), (None, "")
    same = got == want
    if want.dtype.kind == "f":
        same |= np.isnan(got) & np.isnan(want)
    if np.all(same):
        return None
    first = first_place(~np.asarray(same))
    place = tr(", first at {place}", place=list(first)) if first else ""
    detail = tr("There are other values in {name}{place}.", name=said(name), place=place)
    return detail, where_they_differ(got, want, first)


def told_apart(got: Any, want: Any) -> tuple[str, str]:
    """Two numbers as text, with as many digits as it takes to see that they differ."""
    for digits in (6, 10, 17):
        texts = f"{got:.{digits}g}", f"{want:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def _part(number: int, name: str) -> str:
    whole = _ITEM.match(name)
    if whole:
        return ITEM.format(number=f"{whole[1]}, {number}", name=whole[2])
    return ITEM.format(number=number, name=name)


def _of_other_kinds(actual: Any, expected: Any, name: str, against: str) -> str:
    """Which two kinds of thing they are."""
    kinds = kind_of(actual), kind_of(expected)
    if kinds[0] == kinds[1]:  # such as Python's bool and NumPy's
        kinds = str(type(actual)), str(type(expected))
    arrays = (np.ndarray, torch.Tensor)
    if against and isinstance(actual, arrays) and isinstance(expected, arrays):
        # A check may have put together what came there, in an array of its own.
        fields: dict[str, object] = {
            "yours": kinds[0],
            "wanted": kinds[1],
            "against": said(against),
        }
        return with_verb(name, (_COMPARED_AS, fields))
    return with_verb(name, in_place_of(IS, *kinds, against))


def _untrue(actual: Facts, expected: Facts, name: str) -> Difference | None:
    """Which facts are not as they should be: the keys say them, the values whether they hold."""
    unmet = [str(fact) for fact in expected if actual[fact] < expected[fact]]
    forbidden = [str(fact) for fact in expected if actual[fact] > expected[fact]]
    of = "" if name == NAMELESS else f" ({said(name)})"
    titles = tr("Does not hold"), tr("True and should be False")
    words = [
        f"{title}{of}: {'; '.join(map(said, facts))}."
        for title, facts in zip(titles, (unmet, forbidden))
        if facts
    ]
    return (" ".join(words), (None, "")) if words else None


def _alone(actual: Iterable[Any], expected: Iterable[Any], against: str) -> str:
    """A sentence each for the names that only one of two collections holds."""
    told = ""
    titles = (tr("Only there"), tr("Only here")) if against else (tr("Missing"), tr("Too many"))
    for title, these, others in zip(titles, (expected, actual), (actual, expected)):
        names = [str(name) for name in these if name not in others]
        left = len(names) - MAX_NAMES
        more = tr(" and {number} more", number=left) if left > 0 else ""
        told += f" {title}: {', '.join(names[:MAX_NAMES])}{more}." if names else ""
    return told


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
