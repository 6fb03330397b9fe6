"""Right implementations of lesson 19 that look different from its solutions."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.implementations import alternative


@alternative("heaviest_input", "a_loop_over_units")
def heaviest_input(hidden, weight, feature):
    best, best_size = 0, -1.0
    for j in range(hidden.shape[-1]):
        size = float((hidden[..., j] * weight[feature, j]).abs().max())
        if size > best_size:
            best, best_size = j, size
    return best


@alternative("heaviest_input", "in_numpy")
def heaviest_input(hidden, weight, feature):
    row = weight[feature].detach().numpy()
    sizes = np.abs(hidden.detach().numpy().reshape(-1, len(row)) * row)
    return int(np.argmax(sizes.max(axis=0)))


@alternative("heaviest_input", "place_modulo_width")
def heaviest_input(hidden, weight, feature):
    products = torch.abs(hidden * weight[feature]).flatten()
    places = torch.nonzero(products == torch.max(products)).flatten()
    return min(int(place) % hidden.size(-1) for place in places)


@alternative("evict", "with_where")
def evict(mask, column, start):
    n = mask.shape[-1]
    for name, number in (("column", column), ("start", start)):
        if number < 0 or number >= n:
            raise ValueError(f"{name} = {number} is outside 0..{n - 1}")
    positions = np.arange(n)
    gone = (positions[:, None] >= start) & (positions[None, :] == column)
    return np.where(gone, False, mask)


@alternative("evict", "row_by_row")
def evict(mask, column, start):
    n = mask.shape[-1]
    if column not in range(n) or start not in range(n):
        raise ValueError(f"column {column}, start {start}: 0 to {n - 1}")
    result = np.array(mask)
    for row in range(start, n):
        result[..., row, column] = np.zeros(mask.shape[:-2], dtype=bool)
    return result


@alternative("evict", "and_with_an_outer_product")
def evict(mask, column, start):
    n = mask.shape[-1]
    if min(column, start) < 0 or max(column, start) > n - 1:
        raise ValueError("column and start lie in the text")
    late, it = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    late[start:] = True
    it[column] = True
    return mask & ~np.outer(late, it)


@alternative("sink_window_mask", "band_of_ones")
def sink_window_mask(n, window, sinks):
    if window < 1:
        raise ValueError(f"window {window} is less than 1")
    if sinks < 0:
        raise ValueError(f"sinks {sinks} is less than 0")
    lower = np.tri(n, dtype=bool)
    band = lower & ~np.tri(n, k=-window, dtype=bool)
    band[:, :sinks] = True
    return band & lower


@alternative("sink_window_mask", "pair_by_pair")
def sink_window_mask(n, window, sinks):
    if not (window >= 1 and sinks >= 0):
        raise ValueError("window at least 1, sinks at least 0")

    def seen(t, s):
        return s <= t and (t - s < window or s < sinks)

    return np.array([[seen(t, s) for s in range(n)] for t in range(n)], dtype=bool)


@alternative("sink_window_mask", "row_by_row")
def sink_window_mask(n, window, sinks):
    if window <= 0 or sinks <= -1:
        raise ValueError("out of range")
    rows = np.zeros((n, n), dtype=bool)
    for t, row in enumerate(rows):
        row[max(0, t + 1 - window) : t + 1] = True
        row[: min(sinks, t + 1)] = True
    return rows


@alternative("logit_lens", "layer_by_layer")
def logit_lens(streams, norm, output):
    return torch.stack([output(norm(stream)) for stream in streams])


@alternative("logit_lens", "as_rows_of_one_matrix")
def logit_lens(streams, norm, output):
    rows = streams.reshape(-1, streams.shape[-1])
    return output(norm(rows)).reshape(*streams.shape[:-1], -1)


@alternative("logit_lens", "by_the_weights")
def logit_lens(streams, norm, output):
    logits = F.linear(norm(streams), output.weight)
    return logits if output.bias is None else logits + output.bias


@alternative("token_rank", "count_nonzero")
def token_rank(logits, token):
    own = logits.select(-1, token).unsqueeze(-1)
    return torch.count_nonzero(logits - own > 0, dim=-1)


@alternative("token_rank", "by_a_sorted_copy")
def token_rank(logits, token):
    vocab = logits.shape[-1]
    upwards = logits.sort(dim=-1).values.contiguous()
    own = logits[..., token : token + 1].contiguous()
    return vocab - torch.searchsorted(upwards, own, right=True)[..., 0]


@alternative("token_rank", "position_by_position")
def token_rank(logits, token):
    rows = logits.reshape(-1, logits.shape[-1]).tolist()
    counts = [sum(other > row[token] for other in row) for row in rows]
    return torch.tensor(counts, dtype=torch.int64).reshape(logits.shape[:-1])


@alternative("head_attribution", "einsum")
def head_attribution(heads, W_o, direction):
    by_head = W_o.unflatten(-1, heads.shape[1:])
    return torch.einsum("lhe,lmhe,m->lh", heads, by_head, direction)


@alternative("head_attribution", "head_by_head")
def head_attribution(heads, W_o, direction):
    num_layers, num_heads, d_head = heads.shape
    found = heads.new_zeros(num_layers, num_heads)
    for layer in range(num_layers):
        for head in range(num_heads):
            columns = W_o[layer][:, head * d_head : (head + 1) * d_head]
            found[layer, head] = torch.dot(columns @ heads[layer, head], direction)
    return found


@alternative("head_attribution", "through_the_projection_one_at_a_time")
def head_attribution(heads, W_o, direction):
    num_layers, num_heads, d_head = heads.shape
    alone = torch.zeros(num_layers, num_heads, num_heads, d_head, dtype=heads.dtype)
    which = torch.arange(num_heads)
    alone[:, which, which] = heads
    added = alone.flatten(-2) @ W_o.transpose(-1, -2)  # (num_layers, num_heads, d_model)
    return added @ direction


@alternative("LoRA", "linear_functions")
class LoRA(nn.Module):
    def __init__(self, layer, rank, scale=1.0):
        super().__init__()
        if rank <= 0:
            raise ValueError(f"rank {rank}")
        for parameter in layer.parameters():
            parameter.requires_grad = False
        self.layer, self.scale = layer, scale
        out_features, in_features = layer.weight.shape
        self.A = nn.Parameter(layer.weight.new_empty(rank, in_features))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.B = nn.Parameter(layer.weight.new_zeros(out_features, rank))

    def forward(self, x):
        return self.layer(x) + F.linear(F.linear(x, self.A), self.B) * self.scale


@alternative("LoRA", "one_weight_a_call")
class LoRA(nn.Module):
    def __init__(self, layer, rank, scale=1.0):
        if rank < 1:
            raise ValueError("the rank is at least 1")
        super().__init__()
        self.layer = layer
        self.layer.weight.requires_grad_(False)
        if self.layer.bias is not None:
            self.layer.bias.requires_grad_(False)
        self.scale = scale
        self.A = nn.Parameter(torch.empty_like(layer.weight[:1]).repeat(rank, 1).normal_(std=0.1))
        self.B = nn.Parameter(torch.zeros_like(layer.weight[:, :1]).repeat(1, rank))

    def forward(self, x):
        return F.linear(x, self.layer.weight + self.scale * (self.B @ self.A), self.layer.bias)


@alternative("LoRA", "registered_by_name")
class LoRA(nn.Module):
    def __init__(self, layer, rank, scale=1.0):
        super().__init__()
        assert_rank = int(rank)
        if assert_rank < 1:
            raise ValueError(f"rank = {rank} is below 1")
        layer.requires_grad_(False)
        self.add_module("layer", layer)
        dtype = layer.weight.dtype
        self.register_parameter("A", nn.Parameter(torch.rand(rank, layer.in_features, dtype=dtype) - 0.5))
        self.register_parameter("B", nn.Parameter(torch.zeros(layer.out_features, rank, dtype=dtype)))
        self.scale = scale

    def forward(self, x):
        small = torch.einsum("...i,ri->...r", x, self.A)
        change = torch.einsum("...r,or->...o", small, self.B)
        return torch.add(self.layer(x), change, alpha=self.scale)


@alternative("merge_lora", "a_deep_copy")
def merge_lora(lora):
    import copy

    merged = copy.deepcopy(lora.layer).requires_grad_(True)
    merged.weight.data += lora.scale * (lora.B.detach() @ lora.A.detach())
    return merged


@alternative("merge_lora", "new_parameters")
def merge_lora(lora):
    with torch.no_grad():
        weight = torch.addmm(lora.layer.weight, lora.B, lora.A, alpha=lora.scale).clone()
        bias = None if lora.layer.bias is None else lora.layer.bias.clone()
    merged = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    merged.weight = nn.Parameter(weight)
    if bias is not None:
        merged.bias = nn.Parameter(bias)
    return merged


@alternative("merge_lora", "from_what_it_does_to_unit_vectors")
def merge_lora(lora):
    layer = lora.layer
    one = nn.Linear(layer.in_features, layer.out_features, layer.bias is not None).to(layer.weight.dtype)
    with torch.no_grad():
        zero = lora(torch.zeros(1, layer.in_features, dtype=layer.weight.dtype))
        units = torch.eye(layer.in_features, dtype=layer.weight.dtype)
        one.weight.copy_((lora(units) - zero).T)
        if one.bias is not None:
            one.bias.copy_(zero[0])
    return one
