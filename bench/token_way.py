"""The numbers of the picture of a token's way, `lessons/token_way.json`, computed anew.

``python -m bench.token_way`` trains a GPT with the course's parts, as lesson 10 has it (the same
sizes, sentences and rate), reads the beginning of one text and writes the vectors that the first
block hands on. It takes some ten seconds; the picture's words stay as they are in the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[1]
FILE = ROOT / "lessons" / "token_way.json"
TEXT = "\nthe b"
SIZES = {"d_model": 32, "num_heads": 4, "d_ff": 64, "num_layers": 2, "max_len": 49}
STEPS = 300


def main() -> None:
    """Write the file."""
    os.chdir(ROOT / "course" / "17-tokens")  # whose parts of earlier lessons have the GPT
    torch.set_num_threads(1)
    model, characters = _trained()
    way = json.loads(FILE.read_text(encoding="utf-8"))
    numbers = _on_the_way(model, torch.tensor([characters.index(c) for c in TEXT]))
    probabilities = numbers.pop("next").softmax(-1)
    best = probabilities.argsort(descending=True)[:4].tolist()
    for station in way["stations"]:
        if (values := numbers.get(station["name"])) is not None:
            station["values"] = _hundredths(values)
            station["shape"] = str(tuple(values.shape))
        elif station["kind"] == "bars":
            pairs = [(characters[i].replace("\n", "⏎"), probabilities[i].item()) for i in best]
            station["values"] = [[sign, round(p, 2)] for sign, p in pairs if p > 0.005]
    compact = {"ensure_ascii": False, "separators": (",", ": ")}
    lines = ",\n  ".join(json.dumps(station, **compact) for station in way.pop("stations"))
    head = json.dumps(way, ensure_ascii=False, indent=1)[:-2]
    FILE.write_text(f'{head},\n "stations": [\n  {lines}\n ]\n}}\n', encoding="utf-8")


def _trained() -> tuple[Any, list[str]]:
    """Lesson 10's model after 300 steps on its sentences, and its characters."""
    from lesson_kit.earlier import GPT, training_step

    sentences = [
        f"the {adjective}{noun}{ending} {verb}"
        for adjective in ("black ", "white ", "old ", "small ", "")
        for noun in ("cat", "dog", "bird", "animal")
        for ending in (" is", "s are")
        for verb in ("sleeping", "running", "singing", "tired")
    ]
    characters = sorted(set("\n".join(sentences)))
    torch.manual_seed(0)
    model = GPT(len(characters), *SIZES.values())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rng = np.random.default_rng(0)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = 1e-2 * min(1.0, 2 * (STEPS - step) / STEPS)
        texts = ["\n" + "\n".join(rng.choice(sentences, size=4)) for _ in range(16)]
        rows = [[characters.index(c) for c in text[: SIZES["max_len"]]] for text in texts]
        training_step(model, optimizer, torch.tensor(rows))
    return model, characters


@torch.no_grad()
def _on_the_way(model: Any, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
    """What stands at each station, by its name; of the first block where there are several."""
    block, n = model.blocks[0], len(tokens)
    attention, num_heads = block.attention, SIZES["num_heads"]
    vectors = model.token_embedding(tokens)
    x = model.position_embedding(vectors)
    normed = block.norm1(x)
    projected = [part(normed) for part in (attention.W_q, attention.W_k, attention.W_v)]
    Q, K, V = (one.unflatten(-1, (num_heads, -1)).transpose(0, 1) for one in projected)
    scores = (Q @ K.mT / Q.shape[-1] ** 0.5).masked_fill(
        torch.ones(n, n).triu(1).bool(), -torch.inf
    )
    weights = scores.softmax(-1)
    heads = weights @ V
    after, given = block(x, mask=torch.ones(n, n, dtype=torch.bool).tril())
    assert torch.allclose(weights, given, atol=1e-6)
    middle = x + attention.W_o(heads.transpose(0, 1).flatten(-2))
    hidden = torch.relu(block.feed_forward.linear1(block.norm2(middle)))
    logits = model(tokens)
    return {
        "vectors": vectors,
        "places": x,
        "norm": normed,
        "Q, K, V": torch.stack(projected),
        "scores": scores,
        "weights": weights,
        "heads": heads,
        "add": middle,
        "feed-forward": hidden,
        "add again": after,
        "logits": logits,
        "next": logits[-1],
    }


def _hundredths(values: torch.Tensor) -> Any:
    """Whole numbers; None for a score that the mask hides."""
    if values.ndim > 1:
        return [_hundredths(row) for row in values]
    return [None if x == -torch.inf else round(100 * x) for x in values.tolist()]


if __name__ == "__main__":
    main()
