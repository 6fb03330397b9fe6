"""Right implementations of lesson 9 that look different from its solutions."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.implementations import alternative


class MultiHeadAttention(nn.Module):
    """Stand in, for the linter, for the layer of lesson 5."""


class FeedForward(nn.Module):
    """Stand in, for the linter, for the layer of lesson 8."""


class LayerNorm(nn.Module):
    """Stand in, for the linter, for the layer of lesson 8."""


@alternative("DecoderBlock", "one_helper_for_the_three_steps")
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))
        self.self_attention, self.cross_attention = (
            MultiHeadAttention(d_model, num_heads) for _ in range(2)
        )
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        kept = []

        def attend(attention, *arguments):
            result, weights = attention(*arguments)
            kept.append(weights)
            return result

        steps = [
            (self.norm1, lambda y: attend(self.self_attention, y, y, y, self_mask)),
            (self.norm2, lambda y: attend(self.cross_attention, y, memory, memory, memory_mask)),
            (self.norm3, self.feed_forward),
        ]
        for norm, step in steps:
            x = norm(torch.add(x, step(x)))
        return x, kept[1]


@alternative("DecoderBlock", "norms_and_feed_forward_by_torchs_functions")
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        nn.Module.__init__(self)
        self.add_module("self_attention", MultiHeadAttention(d_model, num_heads))
        self.add_module("norm1", LayerNorm(d_model))
        self.add_module("cross_attention", MultiHeadAttention(d_model, num_heads))
        self.add_module("norm2", LayerNorm(d_model))
        self.add_module("feed_forward", FeedForward(d_model, d_ff))
        self.add_module("norm3", LayerNorm(d_model))

    def normalised(self, norm, y):
        return F.layer_norm(y, y.shape[-1:], norm.gamma, norm.beta, 1e-5)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        y = self.normalised(self.norm1, self.self_attention(x, x, mask=self_mask)[0] + x)
        z, weights = self.cross_attention(y, memory, memory, memory_mask)
        y = self.normalised(self.norm2, z + y)
        first, second = self.feed_forward.linear1, self.feed_forward.linear2
        z = F.linear(F.linear(y, first.weight, first.bias).clamp(min=0), second.weight, second.bias)
        return self.normalised(self.norm3, z + y), weights


@alternative("DecoderBlock", "attention_written_out_head_by_head")
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.num_heads = num_heads
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        for n in (1, 2, 3):
            setattr(self, f"norm{n}", LayerNorm(d_model))

    def attend(self, part, asking, asked, mask):
        Q, K, V = part.W_q(asking), part.W_k(asked), part.W_v(asked)
        width = Q.shape[-1] // self.num_heads
        heads, maps = [], []
        for h in range(self.num_heads):
            piece = slice(h * width, (h + 1) * width)
            scores = torch.einsum("...qd,...kd->...qk", Q[..., piece], K[..., piece])
            scores = scores / math.sqrt(width)
            if mask is None:
                w = torch.softmax(scores, -1)
            else:
                own = mask
                if mask.ndim > asking.ndim:
                    own = mask.select(-3, h if mask.shape[-3] > 1 else 0)
                w = torch.softmax(torch.where(own, scores, -1e30), -1) * own
            heads.append(w @ V[..., piece])
            maps.append(w)
        return part.W_o(torch.cat(heads, -1)), torch.stack(maps, -3)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.attend(self.self_attention, x, x, self_mask)[0])
        found, maps = self.attend(self.cross_attention, x, memory, memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), maps


@alternative("DecoderBlock", "an_all_true_mask_for_none")
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        for name in ("self_attention", "cross_attention"):
            setattr(self, name, MultiHeadAttention(d_model, num_heads))
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm3 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.norm1 = LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        if self_mask is None:
            self_mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool)
        if memory_mask is None:
            memory_mask = torch.tensor(True).expand(x.shape[-2], memory.shape[-2])
        attended = self.self_attention(query=x, key=x, value=x, mask=self_mask)
        after_self = self.norm1(attended[0] + x)
        found = self.cross_attention(query=after_self, key=memory, mask=memory_mask)
        after_cross = self.norm2(found[0] + after_self)
        return self.norm3(self.feed_forward(after_cross) + after_cross), found[1]


@alternative("greedy_decode", "for_loop_that_shares_its_list")
def greedy_decode(step, start_id, end_id, max_len):
    tokens = [start_id]
    for _ in range(max_len):
        token = int(np.argmax(step(tokens)))
        if token == end_id:
            break
        tokens.append(token)
    return tokens[1:]


@alternative("greedy_decode", "torch_topk")
def greedy_decode(step, start_id, end_id, max_len):
    result = []
    while len(result) < max_len:
        logits = torch.as_tensor(step([start_id, *result]))
        token = logits.topk(1).indices.item()
        if token == end_id:
            return result
        result += [token]
    return result


@alternative("greedy_decode", "generator_and_log_softmax")
def greedy_decode(step, start_id, end_id, max_len):
    def tokens():
        prefix = (start_id,)
        for _ in range(max_len):
            logits = torch.tensor(np.asarray(step(list(prefix))), dtype=torch.float64)
            token = torch.log_softmax(logits, dim=-1).argmax(dim=-1).item()
            if token == end_id:
                return
            yield token
            prefix = (*prefix, token)

    return list(tokens())


@alternative("greedy_decode", "end_found_afterwards")
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [int(start_id)]
    while len(prefix) - 1 < max_len and (len(prefix) == 1 or prefix[-1] != end_id):
        scores = np.array(step(prefix.copy()))
        prefix.append(int(np.flatnonzero(scores == scores.max())[0]))
    if len(prefix) > 1 and prefix[-1] == end_id:
        prefix.pop()
    del prefix[0]
    return prefix


@alternative("align", "loops_in_python")
def align(weights, source_tokens):
    heads = weights.tolist()
    words = []
    for q in range(len(heads[0])):
        total = [sum(head[q][k] for head in heads) for k in range(len(source_tokens))]
        words.append(source_tokens[total.index(max(total))])
    return words


@alternative("align", "torch_einsum")
def align(weights, source_tokens):
    with torch.no_grad():
        total = torch.einsum("hqk->qk", torch.as_tensor(weights).double())
        places = total.max(dim=-1).values[:, None].eq(total).int().argmax(dim=-1)
    return [source_tokens[int(place)] for place in places]


@alternative("align", "numpy_strings")
def align(weights, source_tokens):
    if not isinstance(weights, np.ndarray):
        weights = weights.detach().cpu().numpy()
    averaged = np.add.reduce(weights, axis=0) / len(weights)  # (n_q, n_k)
    return list(np.array(source_tokens)[np.argmax(averaged, axis=1)])


@alternative("align", "stable_sort")
def align(weights, source_tokens):
    array = np.asarray(weights.data if isinstance(weights, torch.Tensor) else weights)
    order = np.argsort(-sum(array), axis=-1, kind="stable")
    return [source_tokens[i] for i in order[:, 0].tolist()]


@alternative("mended_batch", "inverse_by_argsort")
def mended_batch(run, sentences):
    order = np.argsort([len(words) for words in sentences], kind="stable")
    texts = run([sentences[i] for i in order])
    return [texts[place] for place in np.argsort(order)]


@alternative("mended_batch", "pairs_sorted_back")
def mended_batch(run, sentences):
    numbered = sorted(enumerate(sentences), key=lambda pair: len(pair[1]))
    texts = run([words for _, words in numbered])
    pairs = sorted((i, place) for place, (i, _) in enumerate(numbered))
    return [texts[place] for _, place in pairs]


@alternative("still_right", "one_text_after_the_other")
def still_right(model, source, mask, reads, says, hidden, where):
    if where not in ("decoder", "encoder"):
        raise ValueError(f"where: {where}")
    count = 0
    for i, gone in enumerate(hidden.tolist()):
        real = mask[i : i + 1]
        part = real.repeat(1, source.shape[1], 1) if where == "encoder" else real.clone()
        part[..., gone] = False
        if where == "encoder":
            part[:, gone, gone] = True
        with torch.no_grad():
            memory = model.encode(source[i : i + 1], part if where == "encoder" else real)
            decoded = model.decode(reads[i : i + 1], memory, part if where == "decoder" else real)
        count += int(decoded[0][0, -1].argmax()) == int(says[i])
    return count / len(source)


@alternative("still_right", "one_hot_and_scatter")
@torch.no_grad()
def still_right(model, source, mask, reads, says, hidden, where):
    gone = F.one_hot(hidden, source.shape[1]).bool()  # (batch, m)
    if where == "decoder":
        masks = (mask, mask.masked_fill(gone[:, None], False))
    elif where == "encoder":
        closed = gone[:, None, :] & ~gone[:, :, None]  # column of the hidden word, other rows
        masks = (mask & ~closed, mask)
    else:
        raise ValueError(f"no such place: {where}")
    logits = model.decode(reads, model.encode(source, masks[0]), masks[1])[0]
    return float((torch.argmax(logits[:, -1, :], 1) == says).float().mean())


@alternative("still_right", "masks_with_a_head_axis")
def still_right(model, source, mask, reads, says, hidden, where):
    places = {"decoder": mask.clone(), "encoder": mask.repeat(1, source.shape[1], 1)}
    if where not in places:
        raise ValueError(f"where should be one of {list(places)}, not {where}")
    rows = torch.arange(len(source))
    places[where][rows, :, hidden] = False
    if where == "encoder":
        places["encoder"][rows, hidden, hidden] = True
    memory = model.encode(source, places["encoder"].unsqueeze(1))
    logits, _ = model.decode(reads, memory, places["decoder"].unsqueeze(1))
    said = logits.detach()[:, -1].max(dim=-1).indices
    return (said == says).sum().item() / says.numel()
