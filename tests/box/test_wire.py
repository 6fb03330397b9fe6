"""The wire: every plain value survives, and no bytes do anything but decode or be refused."""

from __future__ import annotations

import contextlib
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.box import wire
from autograder.box.caps import MAX_KEY_NODES, MAX_KEYS, MAX_NODES, ProtocolError
from autograder.box.decoding import Foreign
from autograder.box.wire import decode, encode

ARRAYS = [
    np.arange(6, dtype=np.int64).reshape(2, 3)[:, ::2],
    np.zeros((0, 3), np.float32),
    np.array(2.5),
    np.array([[True, False]]),
    np.array([1 + 2j]),
    np.arange(4, dtype=">i4"),
    np.float16([1.5, np.inf, np.nan]),
]
TENSORS = [
    torch.ones(2, 3, dtype=torch.bfloat16),
    torch.tensor([True, False]),
    torch.arange(6).reshape(2, 3).T,
    torch.tensor(3.0, requires_grad=True),
    torch.zeros(0, 2),
]

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=15,
)


def same(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))  # type: ignore[arg-type]
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))  # type: ignore[arg-type]
    if isinstance(one, dict):
        return list(one) == list(other) and all(  # type: ignore[call-overload]
            same(one[key], other[key])  # type: ignore[index]
            for key in one
        )
    return one == other


@given(plain)
def test_plain_values_come_back_as_they_went(value: object) -> None:
    assert same(decode(encode(value)), value)


@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_arrays_come_back_as_they_went(array: np.ndarray) -> None:
    back = decode(encode(array))
    assert type(back) is np.ndarray
    assert back.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(back, array)
    back[...] = 0  # writable, and a copy


@pytest.mark.parametrize("tensor", TENSORS, ids=str)
def test_tensors_come_back_as_they_went(tensor: torch.Tensor) -> None:
    back = decode(encode(tensor))
    assert type(back) is torch.Tensor
    assert (back.dtype, back.requires_grad) == (tensor.dtype, tensor.requires_grad)
    assert torch.equal(back, tensor)


@pytest.mark.parametrize("value", [np.float32(1.5), np.bool_(True), np.int64(-3)])
def test_scalars_keep_their_type(value: np.generic) -> None:
    assert type(decode(encode(value))) is type(value)
    assert decode(encode(value)) == value


def test_a_string_out_of_an_array_is_a_string() -> None:
    back = decode(encode([np.array(["gato", "el"])[0]]))
    assert back == ["gato"]
    assert type(back[0]) is str


class Liar(np.ndarray):
    """An array that equals everything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:  # type: ignore[override]
        return True


@pytest.mark.parametrize(
    "value",
    [
        object(),
        lambda: None,
        np.array([object()]),
        np.zeros(2).view(Liar),
        np.matrix([[1.0]]),
        torch.nn.Linear(2, 2),
        torch.ones(2).to_sparse(),
        torch.ones(2, device="meta"),
        type("Number", (int,), {})(3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_types_do_not_travel(value: object) -> None:
    with pytest.raises(ProtocolError, match="does not travel"):
        encode(value)
    assert isinstance(decode(encode(value, strict=False)), Foreign)


def test_caps_are_kept() -> None:
    endless: list[object] = []
    endless.append(endless)
    for value in (endless, [None] * (MAX_NODES + 1), 10**5000):
        with pytest.raises(ProtocolError):
            encode(value)


@given(st.binary(max_size=300))
@settings(max_examples=500)
def test_any_bytes_are_a_value_or_a_protocol_error(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode(data)


FRAME = encode([1, 2.5, "text", np.arange(6.0).reshape(2, 3), torch.ones(3), {"a": (None, True)}])


@given(st.lists(st.tuples(st.integers(0, len(FRAME) - 1), st.integers(0, 255)), max_size=8))
@settings(max_examples=1500)
def test_damaged_frames_are_a_value_or_a_protocol_error(damage: list[tuple[int, int]]) -> None:
    frame = bytearray(FRAME)
    for position, value in damage:
        frame[position] = value
    with contextlib.suppress(ProtocolError):
        decode(frame)


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["array", "tensor", "int", "float", "str", "dict", "list", "float64", "bool", "1e999"]
    ),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(json_like, st.binary(max_size=32))
@settings(max_examples=1500)
def test_any_tree_is_a_value_or_a_protocol_error(tree: object, body: bytes) -> None:
    text = json.dumps({"tree": tree, "buffers": [len(body)]}).encode()
    frame = wire.HEADER.pack(wire.MAGIC, len(text), len(body)) + text + body
    with contextlib.suppress(ProtocolError):
        decode(frame)


def test_a_boolean_array_holds_booleans_whatever_its_bytes() -> None:
    frame = encode(np.array([True, False])).replace(b"\x01\x00", b"\x07\x00")
    assert decode(frame).tolist() == [True, False]


def frame_of(tree: object, *buffers: bytes) -> bytes:
    """A frame as no encoder makes it."""
    text = json.dumps({"tree": tree, "buffers": [len(data) for data in buffers]}).encode()
    body = b"".join(buffers)
    return wire.HEADER.pack(wire.MAGIC, len(text), len(body)) + text + body


def test_a_small_frame_stays_small() -> None:
    """One buffer that many values refer to would be copied for each of them."""
    one = ["array", "uint8", [2**20], 0]
    assert decode(frame_of(one, bytes(2**20))).nbytes == 2**20
    for tree in (["list", [one, one]], ["list", [["bytes", 0], ["str", 0]]]):
        with pytest.raises(ProtocolError, match="used twice"):
            decode(frame_of(tree, bytes(2**20)))


@pytest.mark.parametrize(
    "value",
    [
        "",
        "é",
        "\ud800",
        "x" * 101,
        np.str_("text"),
        2**53 + 1,
        -(2**53),
        10**900,
        {"é": 1},
        {"x" * 101: 1},
        {1: "a", "1": "b"},
        {},
        {"a": {"b": [1, True, None]}},
        True,
    ],
)
def test_what_stands_in_the_tree_and_what_does_not_arrives_alike(value: object) -> None:
    arrived = decode(encode(value))
    expected = "\ufffd" * 3 if value == "\ud800" else value
    assert arrived == expected and type(arrived) in (type(expected), str)


def test_only_short_ascii_strings_and_small_ints_stand_in_the_tree() -> None:
    """Half of a surrogate pair could not be printed, nor written to a database."""
    for tree in ("é", "\ud800", "x" * 101, {"\udc00": None}, {"x" * 101: 1}, ["list", ["ü"]]):
        with pytest.raises(ProtocolError, match="stand in the tree"):
            decode(frame_of(tree))
    for number in (2**53 + 1, -(2**60), 10**400):
        with pytest.raises(ProtocolError, match="too large for its place"):
            decode(frame_of(number))
    many = {str(number): None for number in range(MAX_KEYS + 1)}
    with pytest.raises(ProtocolError, match="keys"):
        decode(frame_of(many))


def test_keys_that_all_have_one_hash_are_few_and_short() -> None:
    """To put them together each is compared with all before it, up to where they differ."""
    many = [["int", str(number * (2**61 - 1))] for number in range(MAX_KEYS + 1)]
    with pytest.raises(ProtocolError, match="keys"):
        decode(frame_of(["set", many]))
    assert len(decode(frame_of(["set", many[:-1]]))) == MAX_KEYS
    long = ["tuple", [None] * MAX_KEY_NODES]
    for tree in (["set", [long]], ["dict", [[long, None]]]):
        with pytest.raises(ProtocolError, match="a key of more than"):
            decode(frame_of(tree))
    with pytest.raises(ProtocolError, match="a key of more than"):
        encode({(None,) * MAX_KEY_NODES: None})


def test_a_frame_for_which_there_is_no_memory_is_a_protocol_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(wire.json, "loads", no_memory)
    with pytest.raises(ProtocolError, match="memory"):
        decode(FRAME)
