"""Right implementations of lesson 18 that look different from its solutions."""

import math

import numpy as np
import torch
from torch import nn

from autograder.course.implementations import alternative


def RMSNorm(d_model, eps=1e-6):
    """Stand in, for the linter, for the class of lesson 11."""


def SwiGLU(d_model, d_ff):
    """Stand in, for the linter, for the class of lesson 11."""


def apply_rotary(x, positions, base=10000.0):
    """Stand in, for the linter, for the function of lesson 11."""


def split_heads(x, num_heads):
    """Stand in, for the linter, for the function of lesson 5."""


def combine_heads(x):
    """Stand in, for the linter, for the function of lesson 5."""


@alternative("dequantise", "a_record_dtype")
def dequantise(blocks):
    if blocks.dtype != np.uint8 or blocks.shape[-1] != 20:
        raise ValueError("expected uint8 blocks of 20 bytes")
    block = np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", (16,))])
    records = np.array(blocks, order="C").view(block)[..., 0]  # (..., n)
    numbers = np.stack([records["q"] & 0x0F, records["q"] >> 4], axis=-2)  # (..., n, 2, 16)
    d, m = (records[name].astype(np.float32)[..., None, None] for name in ("d", "m"))
    weights = numbers * d + m
    return weights.reshape(*weights.shape[:-3], weights.shape[-3] * 32)


@alternative("dequantise", "block_by_block")
def dequantise(blocks):
    if blocks.shape[-1] != 20:
        raise ValueError(f"the last axis should be 20, not {blocks.shape[-1]}")
    if blocks.dtype != np.dtype("uint8"):
        raise ValueError(f"the dtype should be uint8, not {blocks.dtype}")
    import struct

    rows = []
    for row in blocks.reshape(-1, blocks.shape[-2], 20):
        numbers = []
        for block in row:
            d, m = struct.unpack("<2e", block[:4].tobytes())
            values = [byte % 16 for byte in block[4:].tolist()] + [byte // 16 for byte in block[4:].tolist()]
            numbers.extend(np.float32(d) * np.float32(value) + np.float32(m) for value in values)
        rows.append(numbers)
    return np.array(rows, dtype=np.float32).reshape((*blocks.shape[:-2], -1))


@alternative("dequantise", "into_an_empty_array")
def dequantise(blocks):
    *lead, n, size = blocks.shape
    if (size, blocks.dtype) != (20, np.dtype(np.uint8)):
        raise ValueError(f"{blocks.dtype} {blocks.shape} is not Q4_1")
    out = np.empty((*lead, n, 32), dtype=np.float32)
    head = np.frombuffer(blocks[..., :4].tobytes(), dtype="<f2").reshape(*lead, n, 2).astype("f4")
    out[..., :16] = np.bitwise_and(blocks[..., 4:], 15)
    out[..., 16:] = np.right_shift(blocks[..., 4:], 4)
    out *= head[..., :1]
    out += head[..., 1:]
    return out.reshape(*lead, 32 * n)


@alternative("dequantise", "with_torch_bits_of_float16")
def dequantise(blocks):
    if blocks.dtype != np.uint8 or blocks.shape[-1] != 20:
        raise ValueError("not Q4_1")
    raw = torch.from_numpy(np.array(blocks))
    words = raw[..., 0:4:2].int() + 256 * raw[..., 1:4:2].int()  # the bits of two float16
    head = torch.from_numpy(words.numpy().astype(np.uint16).view(np.float16)).float()
    levels = torch.cat([raw[..., 4:] % 16, raw[..., 4:].div(16, rounding_mode="floor")], dim=-1)
    return (levels.float() * head[..., :1] + head[..., 1:]).flatten(-2).numpy()


@alternative("LlamaBlock", "groups_as_an_axis")
class LlamaBlock(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-5):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"d_model {d_model} is not a multiple of num_heads {num_heads}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"num_heads {num_heads} is not a multiple of {num_kv_heads}")
        self.heads, self.kv, self.d_head = num_heads, num_kv_heads, d_model // num_heads
        self.rotary_base = base
        self.W_q = nn.Linear(d_model, self.heads * self.d_head, False)
        self.W_k, self.W_v = (nn.Linear(d_model, self.kv * self.d_head, False) for _ in range(2))
        self.W_o = nn.Linear(self.heads * self.d_head, d_model, False)
        self.attention_norm, self.feed_forward_norm = RMSNorm(d_model, eps), RMSNorm(d_model, eps)
        self.feed_forward = SwiGLU(d_model, d_ff)

    def attend(self, x, positions, cache, mask):
        *lead, n, _ = x.shape
        group = self.heads // self.kv
        q = self.W_q(x).view(*lead, n, self.heads, self.d_head).transpose(-3, -2)
        k = self.W_k(x).view(*lead, n, self.kv, self.d_head).transpose(-3, -2)
        v = self.W_v(x).view(*lead, n, self.kv, self.d_head).transpose(-3, -2)
        q = apply_rotary(q, positions, base=self.rotary_base)
        k = apply_rotary(k, positions, base=self.rotary_base)
        if cache is not None:
            k, v = cache.append(k, v)
        q = q.reshape(*lead, self.kv, group, n, self.d_head)
        scores = torch.einsum("...gqd,...kd->...gqk", q, k).flatten(-4, -3) / self.d_head**0.5
        if mask is None:
            n_k = k.shape[-2]
            mask = torch.arange(n_k) <= torch.arange(n_k - n, n_k)[:, None]
        scores = torch.where(mask, scores, -torch.inf)
        weights = torch.nan_to_num(torch.softmax(scores, -1), nan=0.0)
        out = weights.reshape(*lead, self.kv, group, n, -1) @ v[..., None, :, :]
        return self.W_o(out.flatten(-4, -3).transpose(-3, -2).flatten(-2)), weights

    def forward(self, x, positions, cache=None, mask=None):
        update, weights = self.attend(self.attention_norm(x), positions, cache, mask)
        middle = x + update
        return middle + self.feed_forward(self.feed_forward_norm(middle)), weights


@alternative("LlamaBlock", "head_by_head")
class LlamaBlock(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-5):
        if d_model % num_heads or num_heads % num_kv_heads:
            raise ValueError("head counts that do not divide")
        super().__init__()
        self.sizes = num_heads, num_kv_heads, d_model // num_heads
        self.base = base
        for name, norm in (("attention_norm", RMSNorm), ("feed_forward_norm", RMSNorm)):
            setattr(self, name, norm(d_model, eps=eps))
        for name in ("W_q", "W_k", "W_v", "W_o"):
            width = d_model if name in ("W_q", "W_o") else num_kv_heads * (d_model // num_heads)
            setattr(self, name, nn.Linear(d_model, width, bias=False))
        self.feed_forward = SwiGLU(d_model, d_ff)

    def forward(self, x, positions, cache=None, mask=None):
        num_heads, num_kv_heads, d_head = self.sizes
        normed = self.attention_norm(x)
        keys = self.W_k(normed).split(d_head, dim=-1)
        keys = torch.stack([apply_rotary(k, positions, self.base) for k in keys], dim=-3)
        values = torch.stack(self.W_v(normed).split(d_head, dim=-1), dim=-3)
        if cache is not None:
            keys, values = cache.append(keys, values)
        n, n_k = x.size(-2), keys.size(-2)
        hidden = ~torch.tril(torch.ones(n_k, n_k, dtype=bool))[n_k - n :] if mask is None else ~mask
        hidden = hidden.expand(*keys.shape[:-3], num_heads, n, n_k)
        results, weights = [], []
        for h, query in enumerate(self.W_q(normed).split(d_head, dim=-1)):
            kv = h // (num_heads // num_kv_heads)
            turned = apply_rotary(query, positions, self.base)
            scores = turned @ keys[..., kv, :, :].mT / math.sqrt(d_head)
            scores = scores.masked_fill(hidden[..., h, :, :], -1e30)
            row = torch.softmax(scores, dim=-1).masked_fill(hidden[..., h, :, :], 0.0)
            weights.append(row)
            results.append(row @ values[..., kv, :, :])
        x = x + self.W_o(torch.cat(results, dim=-1))
        return x + self.feed_forward(self.feed_forward_norm(x)), torch.stack(weights, dim=-3)


@alternative("LlamaBlock", "torchs_attention")
class LlamaBlock(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-5):
        super().__init__()
        if d_model % num_heads or num_heads % num_kv_heads:
            raise ValueError(f"{d_model}, {num_heads}, {num_kv_heads} do not divide")
        d_head = d_model // num_heads
        self.attention_norm = RMSNorm(d_model, eps)
        self.feed_forward_norm = RMSNorm(d_model, eps)
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_head * num_kv_heads, bias=False)
        self.W_v = nn.Linear(d_model, d_head * num_kv_heads, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.num_heads, self.num_kv_heads, self.base = num_heads, num_kv_heads, base
        self.register_buffer("head_of", torch.arange(num_heads) // (num_heads // num_kv_heads))

    def forward(self, x, positions, cache=None, mask=None):
        normed = self.attention_norm(x)
        q, k, v = (
            split_heads(project(normed), heads)
            for project, heads in (
                (self.W_q, self.num_heads),
                (self.W_k, self.num_kv_heads),
                (self.W_v, self.num_kv_heads),
            )
        )
        q, k = (apply_rotary(y, positions, self.base) for y in (q, k))
        k, v = (k, v) if cache is None else cache.append(k, v)
        if mask is None:
            earlier = k.shape[-2] - x.shape[-2]
            rows = torch.arange(x.shape[-2]).unsqueeze(1) + earlier
            mask = torch.arange(k.shape[-2]).unsqueeze(0) <= rows
        k, v = k.index_select(-3, self.head_of), v.index_select(-3, self.head_of)
        allowed = mask.broadcast_to(*q.shape[:-1], k.shape[-2])
        ones = torch.eye(k.shape[-2], dtype=v.dtype).expand(*v.shape[:-1], -1)
        bias = torch.zeros(allowed.shape, dtype=x.dtype).masked_fill(~allowed, torch.finfo(x.dtype).min)
        weights = nn.functional.scaled_dot_product_attention(q, k, ones, attn_mask=bias)
        weights = weights * allowed
        x = self.W_o(combine_heads(weights @ v)) + x
        return self.feed_forward(self.feed_forward_norm(x)).add(x), weights


@alternative("load_layer", "a_loop_over_attributes")
def load_layer(block, tensors, layer):
    places = (
        "attn_norm attention_norm.gamma, attn_q W_q.weight, attn_k W_k.weight, attn_v W_v.weight, "
        "attn_output W_o.weight, ffn_norm feed_forward_norm.gamma, ffn_gate feed_forward.gate.weight, "
        "ffn_up feed_forward.up.weight, ffn_down feed_forward.down.weight"
    )
    found = {}
    for place in places.split(", "):
        published, own = place.split()
        name = "blk." + str(layer) + "." + published + ".weight"
        if name not in tensors:
            raise KeyError(name)
        expected = block.get_parameter(own).shape
        if list(tensors[name].shape) != list(expected):
            raise ValueError(f"{name}: {list(tensors[name].shape)} given, {list(expected)} needed")
        found[own] = tensors[name]
    for own, tensor in found.items():
        block.get_parameter(own).data.copy_(tensor)


@alternative("load_layer", "load_state_dict")
def load_layer(block, tensors, layer):
    names = {
        "attention_norm.gamma": "attn_norm",
        "feed_forward_norm.gamma": "ffn_norm",
        "W_q.weight": "attn_q",
        "W_k.weight": "attn_k",
        "W_v.weight": "attn_v",
        "W_o.weight": "attn_output",
        "feed_forward.gate.weight": "ffn_gate",
        "feed_forward.up.weight": "ffn_up",
        "feed_forward.down.weight": "ffn_down",
    }
    names = {own: f"blk.{layer}.{published}.weight" for own, published in names.items()}
    state = {own: tensors[name] for own, name in names.items()}  # a KeyError names what is missing
    parameters = dict(block.named_parameters())
    for own, tensor in state.items():
        if tensor.shape != parameters[own].shape:
            shapes = f"{tuple(tensor.shape)}, but {own} has {tuple(parameters[own].shape)}"
            raise ValueError(f"{names[own]} has shape {shapes}")
    block.load_state_dict(state, strict=False)


@alternative("load_layer", "copies_first_then_undoes")
def load_layer(block, tensors, layer):
    before = {key: value.detach().clone() for key, value in block.named_parameters()}
    pairs = [
        ("attn_norm", block.attention_norm.gamma),
        ("ffn_norm", block.feed_forward_norm.gamma),
        *((f"attn_{p}", getattr(block, f"W_{p}").weight) for p in "qkv"),
        ("attn_output", block.W_o.weight),
        *((f"ffn_{p}", getattr(block.feed_forward, p).weight) for p in ("gate", "up", "down")),
    ]
    try:
        for part, parameter in pairs:
            name = f"blk.{layer}.{part}.weight"
            if name not in tensors:
                raise KeyError(f"missing: {name}")
            if parameter.shape != tensors[name].shape:
                raise ValueError(f"{name}: {tuple(tensors[name].shape)} != {tuple(parameter.shape)}")
            with torch.no_grad():
                parameter[...] = tensors[name]
    except (KeyError, ValueError):
        with torch.no_grad():
            for name, parameter in block.named_parameters():
                parameter.copy_(before[name])
        raise


@alternative("chat_tokens", "one_expression")
def chat_tokens(messages, encode, special):
    if len(messages) == 0:
        raise ValueError("no message")
    for message in messages:
        if message["role"] not in {"system", "user", "assistant"}:
            raise ValueError(f"unknown role {message['role']}")
    begin, end = (special[f"<|im_{name}|>"] for name in ("start", "end"))
    told = [
        token
        for message in messages
        for token in (begin, *encode(f"{message['role']}\n{message['content']}"), end, *encode("\n"))
    ]
    told.append(begin)
    return told + list(encode("assistant\n"))


@alternative("chat_tokens", "append_and_extend")
def chat_tokens(messages, encode, special):
    known = ["system", "user", "assistant"]
    ids = []
    for number, message in enumerate(messages):
        if message["role"] in known:
            ids.append(special["<|im_start|>"])
            ids.extend(encode("\n".join([message["role"], message["content"]])))
            ids.append(special["<|im_end|>"])
            ids.extend(encode("\n"))
        else:
            raise ValueError(f"message {number} has the role {message['role']!r}")
    if not ids:
        raise ValueError("there is no message")
    ids.append(special["<|im_start|>"])
    ids.extend(encode("assistant\n"))
    return ids


@alternative("chat_tokens", "a_generator_inside")
def chat_tokens(messages, encode, special):
    def pieces():
        newline = tuple(encode("\n"))
        for message in messages:
            match message:
                case {"role": "system" | "user" | "assistant" as role, "content": content}:
                    yield (special["<|im_start|>"],)
                    yield encode(role + "\n" + content)
                    yield (special["<|im_end|>"],)
                    yield newline
                case _:
                    raise ValueError(f"not a message: {message}")
        yield (special["<|im_start|>"],)
        yield encode("assistant\n")

    if not messages:
        raise ValueError("messages is empty")
    return [token for piece in pieces() for token in piece]


@alternative("generate", "a_for_loop")
def generate(step, prompt, max_new, stop, pick):
    if len(prompt) == 0:
        raise ValueError("the prompt is empty")
    written = []
    for number in range(max_new):
        logits = step(prompt.copy() if number == 0 else written[-1:])
        written.append(pick(logits))
        if written[-1] == stop:
            return written[:-1]
    return written


@alternative("generate", "reads_ahead")
def generate(step, prompt, max_new, stop, pick):
    if not prompt:
        raise ValueError("nothing to continue")
    if max_new == 0:
        return []
    result = []
    token = pick(step([*prompt]))
    while token != stop:
        result += [token]
        if len(result) == max_new:
            break
        token = pick(step([token]))
    return result


@alternative("generate", "iter_with_a_sentinel")
def generate(step, prompt, max_new, stop, pick):
    from itertools import islice

    if not prompt:
        raise ValueError("prompt is empty")
    unread = list(prompt)

    def one_more():
        unread[:] = [pick(step(list(unread)))]
        return unread[0]

    return list(islice(iter(one_more, stop), max_new))


@alternative("generate", "recursive")
def generate(step, prompt, max_new, stop, pick):
    if prompt == []:
        raise ValueError("prompt must not be empty")

    def more(tokens, left):
        if left == 0:
            return []
        token = pick(step(tokens))
        return [] if token == stop else [token, *more([token], left - 1)]

    return more(prompt[:], max_new)
