"""Right implementations of lesson 4 that look different from its solutions."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.implementations import alternative


def scaled_dot_product_attention(Q, K, V, mask=None):
    """Stand in, for the linter, for the function of lesson 3."""
    raise NotImplementedError


@alternative("SelfAttention", "einsum_uniform_draws")
class SelfAttention:
    def __init__(self, d_model, d_k, d_v, rng):
        bound = math.sqrt(6 / (d_model + d_k))
        self.W_q = rng.uniform(-bound, bound, size=(d_model, d_k))
        self.W_k = rng.uniform(-bound, bound, size=(d_model, d_k))
        self.W_v = rng.uniform(-bound, bound, size=(d_model, d_v))

    def forward(self, X, mask=None):
        Q = np.einsum("...nd,dk->...nk", X, self.W_q)
        K = np.einsum("...nd,dk->...nk", X, self.W_k)
        V = np.einsum("...nd,dv->...nv", X, self.W_v)
        scores = np.einsum("...qd,...kd->...qk", Q, K) / math.sqrt(self.W_q.shape[1])
        allowed = np.broadcast_to(True if mask is None else mask, scores.shape)
        top = np.max(scores, axis=-1, keepdims=True, where=allowed, initial=-1e300)
        e = np.where(allowed, np.exp(np.where(allowed, scores - top, 0.0)), 0.0)
        total = e.sum(axis=-1, keepdims=True)
        weights = e / np.where(total == 0, 1.0, total)
        return np.einsum("...qk,...kv->...qv", weights, V), weights


@alternative("SelfAttention", "one_product_scores_through_w_q_w_k")
class SelfAttention:
    def __init__(self, d_model, d_k, d_v, rng):
        everything = rng.normal(0, 0.02, size=(d_model, 2 * d_k + d_v))
        self.W_q, self.W_k, self.W_v = (
            part.copy() for part in np.split(everything, [d_k, 2 * d_k], axis=1)
        )

    def forward(self, X, mask=None):
        # scores = X (W_q W_k^T) X^T; the queries are X, scaled so that lesson 3 divides by sqrt(d_k)
        d_model, d_k = self.W_q.shape
        keys = X @ (self.W_k @ self.W_q.T) * math.sqrt(d_model / d_k)
        _, weights = scaled_dot_product_attention(X, keys, X, mask)
        return weights @ X @ self.W_v, weights


@alternative("SelfAttention", "torch_inside_draws_from_a_child")
class SelfAttention:
    def __init__(self, d_model, d_k, d_v, rng):
        one, two, three = (np.random.default_rng(rng.integers(2**63)) for _ in range(3))
        self.W_q = one.standard_normal((d_model, d_k))
        self.W_k = two.standard_normal((d_model, d_k))
        self.W_v = three.standard_normal((d_model, d_v))

    def forward(self, X, mask=None):
        X = torch.tensor(X, dtype=torch.float64)
        matrices = (torch.tensor(W, dtype=X.dtype) for W in (self.W_q, self.W_k, self.W_v))
        Q, K, V = (X @ W for W in matrices)
        scores = Q @ K.mT / Q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(torch.tensor(~mask), -torch.inf)
        weights = scores.softmax(-1).nan_to_num()
        return (weights @ V).numpy(), weights.numpy()


@alternative("SelfAttention", "joined_matrices_when_called")
class SelfAttention:
    def __init__(self, d_model, d_k, d_v, rng):
        for name, width in (("W_q", d_k), ("W_k", d_k), ("W_v", d_v)):
            setattr(self, name, np.float32(rng.standard_normal((d_model, width))))

    def forward(self, X, mask=None):
        joined = X @ np.concatenate([self.W_q, self.W_k, self.W_v], axis=-1)
        d_k = self.W_k.shape[-1]
        Q, K, V = joined[..., :d_k], joined[..., d_k : 2 * d_k], joined[..., 2 * d_k :]
        return scaled_dot_product_attention(Q, K, V, mask=mask)


@alternative("TorchSelfAttention", "torchs_function_with_an_identity")
class TorchSelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q, self.W_k = (nn.Linear(d_model, d_k, False) for _ in range(2))
        self.W_v = nn.Linear(d_model, d_v, False)

    def forward(self, X, mask=None):
        Q, K, V = self.W_q(X), self.W_k(X), self.W_v(X)
        n = X.shape[-2]
        eye = torch.eye(n, dtype=V.dtype).expand(*V.shape[:-1], n)
        if mask is not None:
            mask = mask.expand(*X.shape[:-1], n)
        both = F.scaled_dot_product_attention(Q, K, torch.cat([V, eye], -1), attn_mask=mask)
        return both[..., : V.shape[-1]], both[..., V.shape[-1] :]


@alternative("TorchSelfAttention", "einsum_and_own_softmax_xavier")
class TorchSelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        widths = {"W_q": d_k, "W_k": d_k, "W_v": d_v}
        for name, width in widths.items():
            self.add_module(name, nn.Linear(d_model, width, bias=False))
            nn.init.xavier_uniform_(self.get_submodule(name).weight)

    def forward(self, X, mask=None):
        Q = torch.einsum("...nd,kd->...nk", X, self.W_q.weight)
        K = torch.einsum("...nd,kd->...nk", X, self.W_k.weight)
        scores = torch.einsum("...qd,...kd->...qk", Q, K) * Q.size(-1) ** -0.5
        if mask is None:
            mask = torch.ones_like(scores, dtype=torch.bool)
        top = scores.detach().masked_fill(~mask, -1e30).amax(-1, keepdim=True)
        e = torch.where(mask, torch.exp(torch.where(mask, scores - top, 0.0)), 0.0)
        total = e.sum(-1, keepdim=True)
        weights = e / torch.where(total == 0, torch.ones_like(total), total)
        return weights @ F.linear(X, self.W_v.weight), weights


@alternative("TorchSelfAttention", "masked_fill_inf_nan_to_num")
class TorchSelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_v = nn.Linear(in_features=d_model, out_features=d_v, bias=False)
        self.W_k = nn.Linear(in_features=d_model, out_features=d_k, bias=False)
        self.W_q = nn.Linear(in_features=d_model, out_features=d_k, bias=False)
        self.scale = d_k**-0.5

    def forward(self, X, mask=None):
        scores = torch.matmul(self.W_q(X) * self.scale, self.W_k(X).transpose(-2, -1))
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -torch.inf)
        weights = F.softmax(scores, dim=-1).nan_to_num(0.0)
        # values projected after the average: the same, since both are linear
        return self.W_v(weights @ X), weights


@alternative("TorchSelfAttention", "joined_weights_and_split")
class TorchSelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.sizes = [d_k, d_k, d_v]
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, X, mask=None):
        joined = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        Q, K, V = F.linear(X, joined).split(self.sizes, dim=-1)
        scores = (Q @ K.mT).div(math.sqrt(self.sizes[0]))
        if mask is None:
            weights = scores.softmax(-1)
        else:
            lowest = torch.finfo(scores.dtype).min
            weights = torch.where(mask, scores, lowest).softmax(-1) * mask
        return weights @ V, weights


@alternative("permutation_error", "take_and_ravel")
def permutation_error(attention, X, permutation):
    order = np.asarray(permutation)
    one, _ = attention(np.take(X, order, axis=-2))
    other, _ = attention(X)
    return max(abs(float(d)) for d in np.ravel(one - np.take(other, order, axis=-2)))


@alternative("permutation_error", "permutation_matrix")
def permutation_error(attention, X, permutation):
    P = np.eye(X.shape[-2], dtype=X.dtype)[list(permutation)]
    difference = attention(P @ X)[0] - P @ attention(X)[0]
    return np.linalg.norm(difference.ravel(), ord=np.inf)  # a float of NumPy's, in X's precision


@alternative("permutation_error", "loop_over_rows")
def permutation_error(attention, X, permutation):
    moved, _ = attention(np.stack([X[..., i, :] for i in permutation], axis=-2))
    kept, _ = attention(X)
    worst = 0.0
    for new, old in enumerate(permutation):
        worst = max(worst, float(np.max(np.abs(moved[..., new, :] - kept[..., old, :]))))
    return worst


@alternative("permutation_error", "undo_the_permutation")
def permutation_error(attention, X, permutation):
    # row permutation[i] of the layer's output stands in row i of the permuted one
    back = np.argsort(permutation)
    difference = attention(X[..., permutation, :])[0][..., back, :] - attention(X)[0]
    return float(max(difference.max(), -difference.min()))


@alternative("attention_cost", "two_products")
def attention_cost(n, d_k, d_v):
    scores = n**2
    return {"score_entries": scores, "multiply_adds": scores * d_k + n * d_v * n}


@alternative("attention_cost", "product_of_shapes")
def attention_cost(n, d_k, d_v):
    first, second = (n, d_k, n), (n, n, d_v)
    multiply_adds = np.prod(first) + np.prod(second)
    return dict(multiply_adds=int(multiply_adds), score_entries=int(np.prod((n, n))))


@alternative("attention_cost", "sum_over_words")
def attention_cost(n, d_k, d_v):
    for_one_word = n * d_k + n * d_v
    return {"multiply_adds": int(n) * int(for_one_word), "score_entries": pow(n, 2)}


@alternative("mended_encoder", "one_sentence_after_the_other")
def mended_encoder(layer, sentences):
    return [layer(sentence)[0] for sentence in sentences]


@alternative("mended_encoder", "padded_by_hand")
def mended_encoder(layer, sentences):
    longest = max(len(sentence) for sentence in sentences)
    batch = sentences[0].new_zeros(len(sentences), longest, sentences[0].shape[-1])
    keep = torch.zeros(len(sentences), longest, longest, dtype=torch.bool)
    for number, sentence in enumerate(sentences):
        batch[number, : len(sentence)] = sentence
        keep[number, : len(sentence), : len(sentence)] = True
    output = layer(batch, keep)[0]
    return [output[number][: len(sentence)] for number, sentence in enumerate(sentences)]
