"""What differs between a result and what it should be exactly, in words."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from .slices import Shown, where_they_differ

__all__ = ["Difference", "as_numpy", "difference", "first_place", "in_place_of", "kind_of"]

#: In words, and a pair of arrays with the place of the slice that is shown.
Difference = tuple[str, Shown]

#: What a value is called that a check gives no name.
NAMELESS = "the result"
#: Names that are listed of those that are missing, or too many.
MOST_NAMES = 8

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
            return f"{name} {said}", (None, "")
        got, want = as_numpy(actual), as_numpy(expected)
        if got.shape != want.shape:
            return f"{name} {in_place_of('has shape', got.shape, want.shape, against)}", (None, "")
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
        pairs = [(f"item {n} of {name}", *pair) for n, pair in enumerate(zip(actual, expected))]
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
        return f"{name} {said}", (None, "")
    else:
        return None
    for part, yours, wanted in pairs:
        found = difference(yours, wanted, part, against)
        if found is not None:
            return found
    return None


def _of_other_kinds(actual: Any, expected: Any, name: str, against: str) -> str:
    """Which two kinds of thing they are."""
    kinds = kind_of(actual), kind_of(expected)
    if kinds[0] == kinds[1]:  # such as Python's bool and NumPy's
        kinds = str(type(actual)), str(type(expected))
    arrays = (np.ndarray, torch.Tensor)
    if against and isinstance(actual, arrays) and isinstance(expected, arrays):
        # A check may have put together what came there, in an array of its own.
        return f"{name} is {kinds[0]}; {against} it is compared as {kinds[1]}."
    return f"{name} {in_place_of('is', *kinds, against)}"


def _untrue(actual: Facts, expected: Facts, name: str) -> Difference | None:
    """Which facts are not as they should be: the keys say them, the values whether they hold."""
    unmet = [str(fact) for fact in expected if actual[fact] < expected[fact]]
    forbidden = [str(fact) for fact in expected if actual[fact] > expected[fact]]
    of = "" if name == NAMELESS else f" ({name})"
    words = [
        f"{title}{of}: {'; '.join(facts)}."
        for title, facts in (("Does not hold", unmet), ("Holds and should not", forbidden))
        if facts
    ]
    return (" ".join(words), (None, "")) if words else None


def _alone(actual: Iterable[Any], expected: Iterable[Any], against: str) -> str:
    """A sentence each for the names that only one of two collections holds."""
    said = ""
    titles = ("Only there", "Only here") if against else ("Missing", "Too many")
    for title, these, others in zip(titles, (expected, actual), (actual, expected)):
        names = [str(name) for name in these if name not in others]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        said += f" {title}: {', '.join(names[:MOST_NAMES])}{more}." if names else ""
    return said
