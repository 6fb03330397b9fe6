"""What ``python -m my_transformer`` does: a published model, on the parts of a package.

This file lies in the package as ``given/package_program.py``. The model's numbers are read from
its package; its layers, norms, cache and the loop that writes are the package's parts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .chat_model import ChatModel, open_chat_model
from .chat_tokenizer import ChatTokenizer
from .gguf_file import eight_bit_numbers
from .package_parts import lacking
from .tensors import torch

__all__ = ["Model", "main"]

#: Parts of the package that the model is put together from, and what these use.
NEEDED = ("dequantise", "LlamaBlock", "load_layer", "RMSNorm", "KVCache", "generate")
NEEDED_TO_CHAT = ("chat_tokens", "sampling_distribution")

_SHADES = " ·░▒▓█"


class Model:
    """The published chat model, put together from the parts of a package.

    Attributes:
        tokenizer: text to tokens and back.
        blocks: its layers.
    """

    def __init__(self, parts: ModuleType, opened: ChatModel) -> None:
        """Read all layers, which takes some seconds."""
        self.parts, self._tensors = parts, opened.tensors
        says = {name.removeprefix("llama."): value for name, value in opened.metadata.items()}
        self.tokenizer = ChatTokenizer(opened.metadata)
        d_model, eps = says["embedding_length"], says["attention.layer_norm_rms_epsilon"]
        heads = says["attention.head_count"], says["attention.head_count_kv"]
        self._vectors = self._numbers("token_embd.weight")
        self._norm = parts.RMSNorm(d_model, eps).requires_grad_(False)
        self._norm.gamma.copy_(self._numbers("output_norm.weight"))
        self.blocks = []
        for layer in range(says["block_count"]):
            _progress(f"layer {layer + 1} of {says['block_count']}")
            block = parts.LlamaBlock(
                d_model, *heads, says["feed_forward_length"], says["rope.freq_base"], eps
            )
            names = [name for name in self._tensors if name.startswith(f"blk.{layer}.")]
            parts.load_layer(block, {name: self._numbers(name) for name in names}, layer)
            self.blocks.append(block.requires_grad_(False))
        _progress("")

    def _numbers(self, name: str) -> torch.Tensor:
        raw = self._tensors[name]
        if raw.dtype == np.float32:
            return torch.tensor(raw)
        eight_bits = raw.shape[-1] == 34
        return torch.tensor(eight_bit_numbers(raw) if eight_bits else self.parts.dequantise(raw))

    def read(
        self, tokens: Sequence[int], caches: Sequence[Any] | None = None, start: int = 0
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The logits behind the last token, and each layer's weights ``(num_heads, n, n_k)``."""
        positions, maps = torch.arange(start, start + len(tokens)), []
        with torch.no_grad():
            x = self._vectors[torch.as_tensor(tokens)]
            for layer, block in enumerate(self.blocks):
                x, weights = block(x, positions, None if caches is None else caches[layer])
                maps.append(weights)
            return torch.nn.functional.linear(self._norm(x[-1]), self._vectors), maps

    def write(
        self,
        prompt: Sequence[int],
        most: int,
        pick: Callable[[torch.Tensor], int],
        say: Callable[[str], object],
    ) -> str:
        """Go on with a prompt; ``say`` is told each new piece of text as it comes."""
        caches, read = [self.parts.KVCache() for _ in self.blocks], 0
        end, written, told = self.tokenizer.special["<|im_end|>"], list[int](), ""

        def step(tokens: list[int]) -> torch.Tensor:
            nonlocal read
            logits, _ = self.read(tokens, caches, read)
            read += len(tokens)
            return logits

        def pick_and_say(logits: torch.Tensor) -> int:
            nonlocal told
            written.append(pick(logits))
            text = self.tokenizer.decode(written)
            if written[-1] != end and not text.endswith("\ufffd"):  # a character is whole
                say(text[len(told) :])
                told = text
            return written[-1]

        tokens = self.parts.generate(step, list(prompt), most, end, pick_and_say)
        return self.tokenizer.decode(tokens)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:30s}", end="\r" if not text else "", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    print(text, end="", flush=True)


def _greedy(logits: torch.Tensor) -> int:
    return int(logits.argmax())


def main(parts: ModuleType, given: Sequence[str] | None = None) -> int:
    """The program.

    Args:
        parts: the package.
        given: what was typed behind its name.

    Returns:
        0 where it did what was asked; 1 where something is missing, which is said.
    """
    name = parts.__name__
    parser = argparse.ArgumentParser(
        f"python -m {name}", description="A published model on your own parts."
    )
    parser.add_argument("text", nargs="?", help="that the model goes on with")
    parser.add_argument("--chat", action="store_true", help="talk with it")
    parser.add_argument("--look", metavar="SENTENCE", help="which token looks at which")
    parser.add_argument("--layer", type=int, default=13, help="of --look, from 1 (default: 13)")
    parser.add_argument("--most", type=int, default=12, help="tokens to write (default: 12)")
    parser.add_argument("--zip", action="store_true", help="put the package into one file")
    asked = parser.parse_args(given)
    if asked.zip:
        print(_zipped(Path(str(parts.__file__)).parent))
        return 0
    if not (asked.text or asked.chat or asked.look):
        parser.print_help()
        return 0
    names = [*NEEDED, *(NEEDED_TO_CHAT if asked.chat else ())]
    missing = {repr(part) for name in names for part in lacking(getattr(parts, name))}
    if missing:
        print("The model cannot be put together yet.", *sorted(missing), sep="\n  ")
        return 1
    opened = open_chat_model()
    if not opened.published:
        print(opened.sentence.replace("restart the kernel", "run this again"))
        return 1
    model = Model(parts, opened)
    if asked.chat:
        _chat(model)
    elif asked.look:
        _look(model, asked.look, asked.layer)
    else:
        _say(asked.text)
        model.write(model.tokenizer.encode(asked.text), asked.most, _greedy, _say)
        print()
    return 0


def _chat(model: Model) -> None:
    """Talk until an empty line."""
    messages: list[dict[str, str]] = []
    print("Type, and press Enter; an empty line ends it.")

    def drawn(logits: torch.Tensor) -> int:
        chances = model.parts.sampling_distribution(logits, temperature=0.7, top_p=0.9)
        return int(torch.multinomial(chances, 1))

    while True:
        try:
            typed = input("You: ").strip()
        except EOFError:
            typed = ""
        if not typed:
            return
        messages.append({"role": "user", "content": typed})
        tokens = model.parts.chat_tokens(messages, model.tokenizer.encode, model.tokenizer.special)
        _say("The model: ")
        try:
            answer = model.write(tokens, 200, drawn, _say)
        except KeyboardInterrupt:
            answer = "..."
        print()
        messages.append({"role": "assistant", "content": answer})


def _look(model: Model, sentence: str, layer: int) -> None:
    """A row a token: how much it looks at each token before it and at itself, heads averaged."""
    tokens = model.tokenizer.encode(sentence)
    layer = min(max(layer, 1), len(model.blocks))
    if not tokens:
        print("There is no token in it.")
        return
    weights = model.read(tokens)[1][layer - 1].mean(dim=0)
    words = [model.tokenizer.decode([token]).strip() or "·" for token in tokens]
    print(f"Layer {layer} of {len(model.blocks)}, heads averaged. Each row sums to 1;")
    print("most models look much at the first token, which then means: at nothing.")
    wide = max(map(len, words))
    for number, row in enumerate(weights.tolist()):
        shades = "".join(2 * _SHADES[min(int(w * 2 * len(_SHADES)), 5)] for w in row[: number + 1])
        others = sorted(range(number + 1), key=lambda at: -row[at])[:3]
        most = ", ".join(f"{words[at]} {row[at]:.2f}" for at in others)
        print(f"{words[number]:>{wide}s} |{shades:{2 * len(tokens)}s}| {most}")


def _zipped(folder: Path) -> Path:
    """The package as a zip file beside it, without what tools leave."""
    leave = shutil.ignore_patterns("__pycache__", ".*", "*.pyc", "*.egg-info")
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(folder, Path(scratch, folder.name), ignore=leave)
        made = shutil.make_archive(str(Path(scratch, "made")), "zip", scratch, folder.name)
        target = folder.parent / f"{folder.name}.zip"
        os.replace(shutil.move(made, f"{target}.new"), target)
    return target
