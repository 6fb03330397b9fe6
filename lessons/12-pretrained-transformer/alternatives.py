"""Right implementations of lesson 12 that look different from its solutions."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.implementations import alternative


@alternative("wordpiece", "recursive")
def wordpiece(word, vocabulary):
    import sys

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))

    def cut(rest, mark):
        if not rest:
            return []
        for size in reversed(range(1, len(rest) + 1)):
            if mark + rest[:size] in vocabulary:
                more = cut(rest[size:], "##")
                return None if more is None else [mark + rest[:size], *more]
        return None

    found = cut(word, "")
    return ["[UNK]"] if found is None else found


@alternative("wordpiece", "shrinks_the_end")
def wordpiece(word, vocabulary):
    found, begin, end = [], 0, len(word)
    while begin < len(word):
        candidate = ("##" if found else "") + word[begin:end]
        if candidate in vocabulary:
            found.append(candidate)
            begin, end = end, len(word)
        elif end == begin + 1:
            return ["[UNK]"]
        else:
            end -= 1
    return found


@alternative("wordpiece", "next_over_candidates")
def wordpiece(word, vocabulary):
    rest, result, mark = word, [], ""
    while rest != "":
        ends = range(len(rest), 0, -1)
        end = next((end for end in ends if f"{mark}{rest[:end]}" in vocabulary), None)
        if end is None:
            return ["[UNK]"]
        result += [f"{mark}{rest[:end]}"]
        rest, mark = rest[end:], "##"
    return result


@alternative("embed", "with_functional_embedding")
def embed(weights, ids):
    def table(kind):
        return weights[f"embeddings.{kind}_embeddings.weight"]

    places = torch.arange(ids.shape[-1], device=ids.device).expand(ids.shape)
    x = F.embedding(ids, table("word")) + F.embedding(places, table("position"))
    x = x + F.embedding(torch.zeros_like(ids), table("token_type"))
    norm = {kind: weights[f"embeddings.LayerNorm.{kind}"] for kind in ("weight", "bias")}
    return F.layer_norm(x, (x.size(-1),), eps=1e-12, **norm)


@alternative("embed", "norm_by_hand")
def embed(weights, ids):
    x = weights["embeddings.position_embeddings.weight"][torch.arange(ids.shape[-1])]
    x = x + weights["embeddings.token_type_embeddings.weight"][0:1]
    x = x + weights["embeddings.word_embeddings.weight"].index_select(0, ids.flatten()).reshape(
        *ids.shape, -1
    )
    x = x - x.mean(dim=-1, keepdim=True)
    x = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-12)
    return x * weights["embeddings.LayerNorm.weight"] + weights["embeddings.LayerNorm.bias"]


@alternative("embed", "with_modules")
def embed(weights, ids):
    words, places, kinds = (
        torch.nn.Embedding.from_pretrained(weights[f"embeddings.{name}_embeddings.weight"])
        for name in ("word", "position", "token_type")
    )
    norm = torch.nn.LayerNorm(words.embedding_dim, eps=1e-12, dtype=words.weight.dtype)
    norm.load_state_dict(
        {name: weights[f"embeddings.LayerNorm.{name}"] for name in ("weight", "bias")}
    )
    where = torch.arange(ids.shape[-1])
    with torch.no_grad():
        return norm(words(ids) + places(where) + kinds(torch.zeros_like(where)))


@alternative("load_block", "pairs_in_two_loops")
def load_block(block, weights, layer):
    names = [
        ("attention.self.query", block.attention.W_q, "weight", "bias"),
        ("attention.self.key", block.attention.W_k, "weight", "bias"),
        ("attention.self.value", block.attention.W_v, "weight", "bias"),
        ("attention.output.dense", block.attention.W_o, "weight", "bias"),
        ("attention.output.LayerNorm", block.norm1, "gamma", "beta"),
        ("intermediate.dense", block.feed_forward.linear1, "weight", "bias"),
        ("output.dense", block.feed_forward.linear2, "weight", "bias"),
        ("output.LayerNorm", block.norm2, "gamma", "beta"),
    ]
    pairs = []
    for name, part, *ours in names:
        for theirs, mine in zip(("weight", "bias"), ours):
            full = f"encoder.layer.{layer}.{name}.{theirs}"
            source, target = weights[full], getattr(part, mine)  # a KeyError of the dictionary's own
            if list(source.shape) != list(target.shape):
                raise ValueError(f"{full}: {list(source.shape)} instead of {list(target.shape)}")
            pairs.append((target, source))
    for target, source in pairs:
        target.data.copy_(source)


@alternative("load_block", "by_state_dict")
def load_block(block, weights, layer):
    theirs = {
        "attention.W_q": "attention.self.query",
        "attention.W_k": "attention.self.key",
        "attention.W_v": "attention.self.value",
        "attention.W_o": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "feed_forward.linear1": "intermediate.dense",
        "feed_forward.linear2": "output.dense",
        "norm2": "output.LayerNorm",
    }
    state = {}
    for name, current in block.state_dict().items():
        part, _, kind = name.rpartition(".")
        if part not in theirs:
            continue
        kind = {"gamma": "weight", "beta": "bias"}.get(kind, kind)
        full = "encoder.layer." + str(layer) + "." + theirs[part] + "." + kind
        if full not in weights.keys():
            raise KeyError(full)
        if weights[full].shape != current.shape:
            raise ValueError(f"{full} is {weights[full].shape}, not {current.shape}")
        state[name] = weights[full]
    block.load_state_dict(state, strict=False)


@alternative("load_block", "new_parameters")
def load_block(block, weights, layer):
    parts = {
        "attention.self.query": block.attention.W_q,
        "attention.self.key": block.attention.W_k,
        "attention.self.value": block.attention.W_v,
        "attention.output.dense": block.attention.W_o,
        "attention.output.LayerNorm": block.norm1,
        "intermediate.dense": block.feed_forward.linear1,
        "output.dense": block.feed_forward.linear2,
        "output.LayerNorm": block.norm2,
    }
    found = []
    for name, part in parts.items():
        ours = ("gamma", "beta") if name.endswith("LayerNorm") else ("weight", "bias")
        for own, kind in zip(ours, ("weight", "bias"), strict=True):
            full = f"encoder.layer.{layer}.{name}.{kind}"
            if full not in weights:
                raise KeyError(f"missing: {full}")
            given, needed = tuple(weights[full].shape), tuple(getattr(part, own).shape)
            if given != needed:
                raise ValueError(f"{full}: shape {given}, needed is {needed}")
            found.append((part, own, weights[full]))
    for part, own, tensor in found:
        dtype = getattr(part, own).dtype
        setattr(part, own, nn.Parameter(tensor.detach().clone().to(dtype)))


@alternative("sentence_embedding", "by_matrix_product")
def sentence_embedding(hidden, keep):
    inside = torch.where(keep.unsqueeze(-1), hidden, torch.zeros_like(hidden))
    share = keep.to(hidden.dtype) / keep.sum(-1, keepdim=True).clamp(min=1).to(hidden.dtype)
    mean = (share.unsqueeze(-2) @ inside).squeeze(-2)
    length = mean.square().sum(-1, keepdim=True).sqrt()
    return mean / torch.where(length > 0, length, torch.ones_like(length))


@alternative("sentence_embedding", "the_sum_is_enough")
def sentence_embedding(hidden, keep):
    total = torch.einsum("...nd,...n->...d", hidden, keep.to(hidden.dtype))
    return total / torch.linalg.vector_norm(total, dim=-1, keepdim=True).clamp_min(1e-9)


@alternative("sentence_embedding", "as_in_the_model_card")
def sentence_embedding(hidden, keep):
    mask = keep.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
    mean = torch.sum(hidden * mask, -2) / torch.clamp(mask.sum(-2), min=1e-9)
    return F.normalize(mean, p=2, dim=-1)


@alternative("attention_share", "by_einsum")
def attention_share(weights, columns, keep=None):
    keep = torch.ones(columns.shape, dtype=torch.bool) if keep is None else keep
    marked, kept = columns.to(weights.dtype), keep.to(weights.dtype)
    n, heads = columns.shape[-1], weights.shape[-3]
    total = torch.einsum(
        "bhqk,bk,bq->h", weights.reshape(-1, heads, n, n), marked.reshape(-1, n), kept.reshape(-1, n)
    )
    return total / kept.sum()


@alternative("attention_share", "by_boolean_index")
def attention_share(weights, columns, keep=None):
    if keep is None:
        keep = torch.full_like(columns, True)
    to_columns = torch.where(columns.unsqueeze(-2).unsqueeze(-2), weights, 0.0).sum(-1)
    return to_columns.transpose(-1, -2)[keep].mean(0)


@alternative("attention_share", "as_a_matrix_product")
def attention_share(weights, columns, keep=None):
    per_query = weights @ columns.to(weights.dtype)[..., None, :, None]  # (..., heads, n, 1)
    per_query = per_query.squeeze(-1)
    queries = torch.ones_like(columns) if keep is None else keep
    per_text = (per_query * queries.unsqueeze(-2)).sum(-1)
    return per_text.reshape(-1, weights.shape[-3]).sum(0) / queries.sum()
