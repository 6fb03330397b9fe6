"""Right implementations of lesson 14 that look different from its solutions."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from autograder.course.implementations import alternative


def blockwise_attention(Q, K, V, block_size):
    """Stand in, for the linter, for the function of lesson 11."""


def sliding_window_mask(n, window):
    """Stand in, for the linter, for the lesson's function."""


@alternative("sliding_window_mask", "two_triangles")
def sliding_window_mask(n, window):
    if window <= 0:
        raise ValueError("window has to be at least 1, and is " + str(window))
    return np.tri(n, dtype=bool) & ~np.tri(n, k=-window, dtype=bool)


@alternative("sliding_window_mask", "loops")
def sliding_window_mask(n, window):
    if not window >= 1:
        raise ValueError(f"window: {window}")
    mask = np.zeros((n, n), dtype=bool)
    for t in range(n):
        mask[t, max(0, t - window + 1) : t + 1] = True
    return mask


@alternative("sliding_window_mask", "sum_of_diagonals")
def sliding_window_mask(n, window):
    if window < 1:
        raise ValueError(f"window = {window} is less than 1")
    return sum(np.eye(n, k=-back) for back in range(min(window, n))) > 0


@alternative("sliding_window_mask", "torch_inside")
def sliding_window_mask(n, window):
    if window < 1:
        raise ValueError(f"window = {window} is less than 1")
    ones = torch.ones(n, n, dtype=torch.bool)
    return (ones.tril() & ones.triu(1 - window)).numpy()


@alternative("receptive_field", "layer_by_layer")
def receptive_field(num_layers, window):
    positions = window
    for _ in range(num_layers - 1):
        positions += window - 1
    return positions


@alternative("receptive_field", "overlaps_taken_off")
def receptive_field(num_layers, window):
    return num_layers * window - (num_layers - 1)


@alternative("receptive_field", "follows_the_masks")
def receptive_field(num_layers, window):
    n = num_layers * window
    mask = sliding_window_mask(n, window).astype(int)
    paths = np.eye(n, dtype=int)
    for _ in range(num_layers):
        paths = (paths @ mask > 0).astype(int)
    return int(paths[-1].sum())


@alternative("linear_attention", "word_by_word")
def linear_attention(Q, K, V):
    q, k = F.elu(Q) + 1.0, F.elu(K) + 1.0
    S, z, outputs = 0, 0, []
    for t in range(K.shape[-2]):
        S = S + torch.einsum("...d,...e->...de", k[..., t, :], V[..., t, :])
        z = z + k[..., t, :]
        above = torch.einsum("...d,...de->...e", q[..., t, :], S)
        outputs.append(above / torch.einsum("...d,...d->...", q[..., t, :], z)[..., None])
    return torch.stack(outputs, dim=-2)


@alternative("linear_attention", "ones_beside_the_values")
def linear_attention(Q, K, V):
    def features(x):
        return torch.where(x > 0, x + 1, torch.exp(torch.clamp(x, max=0)))

    both = F.pad(V, (0, 1), value=1.0)  # the divisor is what is read of a value 1
    S = torch.cumsum(features(K).unsqueeze(-1) * both.unsqueeze(-2), dim=-3)
    read = torch.matmul(features(Q).unsqueeze(-2), S).squeeze(-2)
    return read[..., :-1] / read[..., -1:]


@alternative("linear_attention", "in_pieces")
def linear_attention(Q, K, V):
    q, k, size, outputs = F.elu(Q) + 1, F.elu(K) + 1, 16, []
    S, z = 0.0, 0.0
    for start in range(0, Q.shape[-2], size):
        piece = slice(start, start + size)
        inside = (q[..., piece, :] @ k[..., piece, :].mT).tril()
        above, below = inside @ V[..., piece, :], inside.sum(-1, keepdim=True)
        if start:
            above = above + q[..., piece, :] @ S
            below = below + q[..., piece, :] @ z
        outputs.append(above / below)
        S = S + k[..., piece, :].mT @ V[..., piece, :]
        z = z + k[..., piece, :].sum(-2)[..., None]
    return torch.cat(outputs, dim=-2)


@alternative("linear_attention", "feature_by_feature")
def linear_attention(Q, K, V):
    q, k = F.elu(Q) + 1, F.elu(K) + 1
    above = sum(
        q[..., i : i + 1] * (k[..., i : i + 1] * V).cumsum(-2) for i in range(k.shape[-1])
    )
    return above / sum((q * k.cumsum(-2)).unbind(-1)).unsqueeze(-1)


@alternative("LinearAttentionState", "einsum")
class LinearAttentionState:
    def __init__(self):
        self.memory = None
        self.total = None

    def step(self, q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        new = torch.einsum("...i,...j->...ij", k, v)
        self.memory = new if self.memory is None else self.memory + new
        self.total = k if self.total is None else self.total + k
        above = torch.einsum("...i,...ij->...j", q, self.memory)
        return above / torch.einsum("...i,...i->...", q, self.total).unsqueeze(-1)


@alternative("LinearAttentionState", "one_matrix")
class LinearAttentionState:
    def __init__(self):
        self.state = torch.zeros(())

    def step(self, q, k, v):
        q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
        both = F.pad(v, (0, 1), value=1.0)[..., None, :]
        self.state = self.state.to(both.dtype) + k[..., :, None] * both
        read = (q[..., None, :] @ self.state)[..., 0, :]
        return read[..., :-1] / read[..., -1:]


@alternative("LinearAttentionState", "values_in_rows")
class LinearAttentionState:
    def __init__(self):
        self.kept = {"S": 0, "z": 0}

    def step(self, q, k, v):
        features = F.elu(k) + 1
        self.kept = {
            "S": self.kept["S"] + v.unsqueeze(-1) * features.unsqueeze(-2),  # (..., d_v, d_k)
            "z": self.kept["z"] + features,
        }
        asked = (F.elu(q) + 1).unsqueeze(-1)
        return (self.kept["S"] @ asked).squeeze(-1) / (self.kept["z"].unsqueeze(-2) @ asked).squeeze(-1)


@alternative("mended_keys", "key_by_key")
def mended_keys(K):
    smaller = torch.empty_like(K)
    longest = torch.zeros_like(K[..., 0, 0])
    for t in range(K.shape[-2]):
        longest = longest.maximum(torch.linalg.vector_norm(K[..., t, :], dim=-1))
        smaller[..., t, :] = K[..., t, :] / longest.unsqueeze(-1)
    return smaller


@alternative("mended_keys", "prefix_by_prefix")
def mended_keys(K):
    lengths = (K * K).sum(dim=-1, keepdim=True).sqrt()
    ends = range(1, K.shape[-2] + 1)
    return K / torch.cat([lengths[..., :end, :].amax(dim=-2, keepdim=True) for end in ends], dim=-2)


@alternative("mended_keys", "masked_largest")
def mended_keys(K):
    n = K.shape[-2]
    lengths = K.pow(2).sum(-1).sqrt()[..., None, :].expand(*K.shape[:-2], n, n)
    return K / lengths.tril().amax(dim=-1, keepdim=True)


@alternative("delta_rule_step", "einsum")
def delta_rule_step(S, k, v, beta):
    missing = v - torch.einsum("...vk,...k->...v", S, k)
    return S + beta * torch.einsum("...v,...k->...vk", missing, k)


@alternative("delta_rule_step", "erase_then_write")
def delta_rule_step(S, k, v, beta):
    column = k.unsqueeze(-1)
    erased = S - beta * (S @ column) @ column.mT
    return erased + beta * v.unsqueeze(-1) @ column.mT


@alternative("delta_rule_step", "one_matrix")
def delta_rule_step(S, k, v, beta):
    outer = k[..., :, None] * k[..., None, :]
    keep = torch.eye(k.shape[-1], dtype=k.dtype) - beta * outer
    return torch.matmul(S, keep) + (beta * v)[..., :, None] * k[..., None, :]


@alternative("delta_rule_step", "a_copy_is_changed")
def delta_rule_step(S, k, v, beta):
    lead = torch.broadcast_shapes(S.shape[:-2], k.shape[:-1], v.shape[:-1])
    new = S.expand(*lead, *S.shape[-2:]).clone()
    new += beta * (v - (S @ k[..., None])[..., 0])[..., None] * k[..., None, :]
    return new


@alternative("RecomputedAttention", "autograd_inside_each_block")
class RecomputedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, block_size):
        output, log_sum = None, None
        for i in range(0, K.shape[-2], block_size):
            S = torch.einsum("...qd,...kd->...qk", Q, K[..., i : i + block_size, :]) / math.sqrt(Q.shape[-1])
            one = S.logsumexp(dim=-1, keepdim=True)
            value = torch.exp(S - one) @ V[..., i : i + block_size, :]
            if output is None:
                output, log_sum = value, one
            else:
                both = torch.logaddexp(log_sum, one)
                output = output * (log_sum - both).exp() + value * (one - both).exp()
                log_sum = both
        ctx.save_for_backward(Q, K, V, output, log_sum)
        ctx.block_size = block_size
        return output

    @staticmethod
    def backward(ctx, dO):
        Q, K, V, output, log_sum = ctx.saved_tensors
        delta = torch.einsum("...qd,...qd->...q", dO, output)[..., None]
        totals = [torch.zeros_like(x) for x in (Q, K, V)]
        for i in range(0, K.shape[-2], ctx.block_size):
            rows = slice(i, i + ctx.block_size)
            parts = [x.detach().requires_grad_() for x in (Q, K[..., rows, :], V[..., rows, :])]
            with torch.enable_grad():
                q, k, v = parts
                weights = torch.exp(q @ k.mT / math.sqrt(Q.shape[-1]) - log_sum)
                loss = (weights * (dO @ v.mT - delta)).sum()
            q_part, k_part, v_part = torch.autograd.grad(loss, parts)
            totals[0] += q_part
            totals[1][..., rows, :] = k_part
            totals[2][..., rows, :] = v_part
        return *totals, None


@alternative("RecomputedAttention", "tiles_of_queries_and_keys")
class RecomputedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, block_size):
        ctx.size = block_size
        outputs, largest, sums = [], [], []
        for q in Q.split(block_size, dim=-2):
            m = q.new_full((*q.shape[:-1], 1), -math.inf)
            s = torch.zeros_like(m)
            a = q.new_zeros(*q.shape[:-1], V.shape[-1])
            for k, v in zip(K.split(block_size, dim=-2), V.split(block_size, dim=-2)):
                S = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
                new = torch.max(m, S.max(dim=-1, keepdim=True).values)
                e = (S - new).exp()
                s = s * (m - new).exp() + e.sum(dim=-1, keepdim=True)
                a = a * (m - new).exp() + e @ v
                m = new
            outputs.append(a / s)
            largest.append(m)
            sums.append(s)
        output, m, s = (torch.cat(parts, dim=-2) for parts in (outputs, largest, sums))
        ctx.save_for_backward(Q, K, V, output, m, s)
        return output

    @staticmethod
    def backward(ctx, dO):
        Q, K, V, output, m, s = ctx.saved_tensors
        d = Q.shape[-1] ** 0.5
        delta = (dO * output).sum(-1)
        gradients = [torch.zeros_like(x) for x in (Q, K, V)]
        for i in range(0, Q.shape[-2], ctx.size):
            for j in range(0, K.shape[-2], ctx.size):
                a, b = slice(i, i + ctx.size), slice(j, j + ctx.size)
                q, do, k, v = Q[..., a, :], dO[..., a, :], K[..., b, :], V[..., b, :]
                P = (q @ k.mT / d - m[..., a, :]).exp() / s[..., a, :]
                dS = P * (do @ v.mT - delta[..., a, None]) / d
                gradients[0][..., a, :] += dS @ k
                gradients[1][..., b, :] += dS.mT @ q
                gradients[2][..., b, :] += P.mT @ do
        return (*gradients, None)


@alternative("RecomputedAttention", "delta_by_a_pass_of_its_own")
class RecomputedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, block_size):
        ctx.cuts = [slice(i, i + block_size) for i in range(0, K.shape[-2], block_size)]
        Q = Q / math.sqrt(Q.shape[-1])
        L = Q.new_full((*Q.shape[:-1], 1), -math.inf)
        for c in ctx.cuts:
            L = torch.logaddexp(L, (Q @ K[..., c, :].mT).logsumexp(-1, keepdim=True))
        ctx.save_for_backward(Q, K, V, L)
        return sum(torch.exp(Q @ K[..., c, :].mT - L) @ V[..., c, :] for c in ctx.cuts)

    @staticmethod
    def backward(ctx, dO):
        Q, K, V, L = ctx.saved_tensors  # Q divided already
        delta = 0
        for c in ctx.cuts:
            delta = delta + (torch.exp(Q @ K[..., c, :].mT - L) * (dO @ V[..., c, :].mT)).sum(-1, keepdim=True)
        dQ = dK = dV = None
        if ctx.needs_input_grad[2]:
            dV = torch.cat([torch.exp(Q @ K[..., c, :].mT - L).mT @ dO for c in ctx.cuts], -2)
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            dQ, dK = 0, torch.empty_like(K)
            for c in ctx.cuts:
                dS = torch.exp(Q @ K[..., c, :].mT - L) * (dO @ V[..., c, :].mT - delta)
                dQ = dQ + dS @ K[..., c, :] / math.sqrt(Q.shape[-1])
                dK[..., c, :] = dS.mT @ Q
        return dQ, dK, dV, None


@alternative("RecomputedAttention", "forward_of_lesson_11")
class RecomputedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, block_size):
        ctx.inputs, ctx.block_size = (Q, K, V), block_size
        ctx.output = blockwise_attention(Q, K, V, block_size)
        log_sums = -math.inf
        for k in torch.split(K, block_size, -2):
            one = torch.logsumexp(Q @ k.mT / math.sqrt(Q.size(-1)), -1, keepdim=True)
            log_sums = torch.logaddexp(one, torch.as_tensor(log_sums, dtype=one.dtype))
        ctx.log_sums = log_sums
        return ctx.output

    @staticmethod
    def backward(ctx, dO):
        Q, K, V = ctx.inputs
        root = math.sqrt(Q.size(-1))
        delta = (dO * ctx.output).sum(-1, keepdim=True)
        dQ, rest = torch.zeros_like(Q), []
        for k, v in zip(K.split(ctx.block_size, -2), V.split(ctx.block_size, -2)):
            P = (Q @ k.mT / root - ctx.log_sums).exp()
            dS = P * (dO @ v.mT - delta) / root
            dQ.add_(dS @ k)
            rest.append((dS.mT @ Q, P.mT @ dO))
        dK, dV = (torch.cat(parts, -2) for parts in zip(*rest))
        return dQ, dK, dV, None
