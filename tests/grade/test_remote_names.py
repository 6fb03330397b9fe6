"""What a test cell asks of a box by a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from autograder.box.box import Box, BoxDied, Reply
from autograder.grade.remote_names import NameMissing, RemoteNames

from ..submissions import boxes

CELL = """
calls = []
def half(x):
    calls.append(x)
    return x // 2 if x > 0 else int("zero")
"""


@pytest.fixture
def box() -> Iterator[Box]:
    with boxes().start({}) as one:
        one.run(CELL, 60)
        yield one


def test_several_calls_in_one_request_are_as_calls_one_by_one(box: Box) -> None:
    names = RemoteNames(box, lambda: 60.0)
    results = names.function("half").at_once([[8], [6], [0], [4]])
    assert [next(results), next(results)] == [4, 3]
    with pytest.raises(ValueError, match="zero"):
        next(results)
    assert names.value("calls") == [8, 6, 0], "none after the one that raises"
    with pytest.raises(NameMissing):
        next(names.function("third").at_once([[8]]))


@pytest.mark.parametrize("value", [None, [], [1, 2, 3], {"0": 1, "1": 2}])
def test_a_box_that_does_not_answer_each_call_is_ended(
    box: Box, monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    monkeypatch.setattr(Box, "calls", lambda *_: Reply(value=value))
    with pytest.raises(BoxDied, match="each call"):
        next(RemoteNames(box, lambda: 60.0).function("half").at_once([[8], [6]]))
    assert box.ended
