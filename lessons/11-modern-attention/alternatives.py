"""Right implementations of lesson 11 that look different from its solutions."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.implementations import alternative


def torch_scaled_dot_product_attention(Q, K, V, mask=None):
    """Stand in, for the linter, for the function of lesson 3."""


class SwiGLU(nn.Module):
    """Stand in, for the linter, for the lesson's class."""


def split_heads(x, num_heads):
    """Stand in, for the linter, for the function of lesson 5."""


def combine_heads(x):
    """Stand in, for the linter, for the function of lesson 5."""


@alternative("RMSNorm", "torchs_function")
class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(d_model).fill_(1.0))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.gamma.shape, self.gamma, self.eps)


@alternative("RMSNorm", "rsqrt")
class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return self.gamma * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


@alternative("RMSNorm", "dot_product")
class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        nn.Module.__init__(self)
        self.register_parameter("gamma", nn.Parameter(torch.ones(d_model)))
        self.d_model, self.eps = d_model, eps

    def forward(self, x):
        size = torch.einsum("...i,...i->...", x, x) / self.d_model
        return torch.einsum("...i,...,i->...i", x, (size + self.eps) ** -0.5, self.gamma)


@alternative("RMSNorm", "word_by_word")
class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        words = [
            word / (torch.dot(word, word) / len(word) + self.eps).sqrt() * self.gamma
            for word in x.reshape(-1, x.shape[-1])
        ]
        return torch.stack(words).reshape(x.shape)


@alternative("SwiGLU", "silu_written_out")
class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.down = nn.Linear(d_ff, d_model, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.gate = nn.Linear(d_model, d_ff, bias=False)

    def forward(self, x):
        z = self.gate(x)
        return self.down(z * torch.sigmoid(z) * self.up(x))


@alternative("SwiGLU", "matrix_products")
class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        for name, sizes in {"gate": (d_model, d_ff), "up": (d_model, d_ff), "down": (d_ff, d_model)}.items():
            self.add_module(name, nn.Linear(*sizes, bias=False))

    def forward(self, x):
        gate = torch.einsum("...i,oi->...o", x, self.gate.weight)
        up = torch.einsum("...i,oi->...o", x, self.up.weight)
        return (gate / (1 + torch.exp(-gate)) * up) @ self.down.weight.T


@alternative("SwiGLU", "module_for_silu")
class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate, self.up = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.down = nn.Linear(d_ff, d_model, bias=False)
        self.activation = nn.SiLU()

    def forward(self, x):
        hidden = self.activation(self.gate(x))
        hidden = torch.mul(self.up(x), hidden)
        return self.down(hidden)


@alternative("design_product", "the_second_up_is_negative")
def design_product():
    network = SwiGLU(d_model=2, d_ff=2)
    network.load_state_dict({
        "gate.weight": torch.tensor([[0.0, 1], [0, -1]]),
        "up.weight": torch.tensor([[1.0, 0], [-1, 0]]),
        "down.weight": torch.tensor([[1.0, 1], [1, 1]]),
    })
    return network


@alternative("design_product", "one_small_gate")
def design_product():
    network = SwiGLU(2, 2)
    for layer in (network.gate, network.up, network.down):
        nn.init.zeros_(layer.weight)
    tiny = 2.0**-24  # silu(z) is z / 2 for so small a z
    network.gate.weight.data[0, 0] = tiny
    network.up.weight.data[0, 1] = 1.0
    network.down.weight.data[0, 0] = 2 / tiny
    return network


@alternative("design_product", "large_gates")
def design_product():
    net, large = SwiGLU(2, 2), 4096.0
    gate = torch.tensor([[large, 0.0], [-large, 0.0]])
    up = torch.tensor([[0.0, 1.0], [0.0, -1.0]])
    down = torch.full((2, 2), 1 / large)
    for layer, weight in ((net.gate, gate), (net.up, up), (net.down, down)):
        layer.weight = nn.Parameter(weight)
    return net


@alternative("design_product", "second_feature_free")
def design_product():
    network = SwiGLU(2, 2)
    with torch.no_grad():
        network.gate.weight[:] = torch.tensor([[-2.0, 0.0], [2.0, 0.0]])
        network.up.weight[:] = torch.tensor([[0.0, -0.5], [0.0, 0.5]])
        network.down.weight[0] = 1.0
    return network


@alternative("apply_rotary", "complex_numbers")
def apply_rotary(x, positions, base=10000.0):
    if x.shape[-1] % 2 == 1:
        raise ValueError(f"odd width {x.shape[-1]}")
    half = x.shape[-1] // 2
    speeds = torch.exp(-math.log(base) * torch.arange(half, dtype=x.dtype) / half)
    angles = positions.to(x.dtype)[:, None] * speeds
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.unflatten(-1, (half, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


@alternative("apply_rotary", "rotate_neighbours")
def apply_rotary(x, positions, base=10000.0):
    d_k = x.shape[-1]
    if d_k % 2:
        raise ValueError("d_k must be even")
    speeds = 1.0 / base ** (torch.arange(0, d_k, 2).to(x.dtype) / d_k)
    angles = torch.outer(positions.to(x.dtype), speeds).repeat_interleave(2, dim=-1)  # (n, d_k)
    quarter = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape(x.shape)
    return x * angles.cos() + quarter * angles.sin()


@alternative("apply_rotary", "matrices")
def apply_rotary(x, positions, base=10000.0):
    n, d_k = x.shape[-2:]
    if d_k % 2 != 0:
        raise ValueError(f"{d_k} features make no pairs")
    R = torch.zeros(n, d_k, d_k, dtype=x.dtype)
    for row, position in enumerate(positions.tolist()):
        for i in range(d_k // 2):
            angle = position * base ** (-2 * i / d_k)
            R[row, 2 * i, 2 * i] = R[row, 2 * i + 1, 2 * i + 1] = math.cos(angle)
            R[row, 2 * i, 2 * i + 1] = -math.sin(angle)
            R[row, 2 * i + 1, 2 * i] = math.sin(angle)
    return torch.einsum("nij,...nj->...ni", R, x)


@alternative("apply_rotary", "empty_and_filled")
def apply_rotary(x, positions, base=10000.0):
    d_k = x.size(-1)
    if d_k & 1:
        raise ValueError("odd")
    exponents = -2 * torch.arange(d_k // 2, dtype=torch.float64) / d_k
    angles = positions.double().unsqueeze(-1) * torch.pow(torch.tensor(base).double(), exponents)
    cos, sin = torch.cos(angles).type_as(x), torch.sin(angles).type_as(x)
    turned = torch.empty_like(x)
    turned[..., ::2] = x[..., ::2] * cos - x[..., 1::2] * sin
    turned[..., 1::2] = x[..., 1::2] * cos + x[..., ::2] * sin
    return turned


@alternative("GroupedQueryAttention", "group_axis")
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__()
        if d_model % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError(f"{d_model}, {num_heads}, {num_kv_heads} do not divide")
        self.heads, self.kv = num_heads, num_kv_heads
        self.d_head = d_model // num_heads
        self.W_o, self.W_q = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, num_kv_heads * self.d_head)
        self.W_k = nn.Linear(d_model, num_kv_heads * self.d_head)

    def forward(self, query, key=None, value=None, mask=None):
        key = key if key is not None else query
        value = value if value is not None else key
        group = self.heads // self.kv
        q = self.W_q(query).unflatten(-1, (self.kv, group, self.d_head))
        k = self.W_k(key).unflatten(-1, (self.kv, self.d_head))
        v = self.W_v(value).unflatten(-1, (self.kv, self.d_head))
        scores = torch.einsum("...qgrd,...kgd->...grqk", q, k) / math.sqrt(self.d_head)
        scores = scores.flatten(-4, -3)  # (..., heads, n_q, n_k)
        if mask is None:
            weights = scores.softmax(-1)
        else:
            if 2 <= mask.ndim <= query.ndim:
                mask = mask[..., None, :, :]
            mask = mask.expand(scores.shape)
            some = mask.any(-1, keepdim=True)
            scores = scores.masked_fill(~mask & some, -math.inf)
            weights = scores.softmax(-1) * some
        maps = weights.unflatten(-3, (self.kv, group))
        heads = torch.einsum("...grqk,...kgd->...qgrd", maps, v)
        return self.W_o(heads.flatten(-3)), weights


@alternative("GroupedQueryAttention", "head_by_head")
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__()
        for large, small in ((d_model, num_heads), (num_heads, num_kv_heads)):
            if large % small:
                raise ValueError(f"{large} is not a multiple of {small}")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model // num_heads * num_kv_heads)
        self.W_v = nn.Linear(d_model, d_model // num_heads * num_kv_heads)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        Q = self.W_q(query).chunk(self.num_heads, -1)
        K = self.W_k(key).chunk(self.num_kv_heads, -1)
        V = self.W_v(value).chunk(self.num_kv_heads, -1)
        outputs, maps = [], []
        for h, q in enumerate(Q):
            g = h // (self.num_heads // self.num_kv_heads)
            its_mask = mask
            if mask is not None and mask.ndim > query.ndim:
                its_mask = mask[..., min(h, mask.shape[-3] - 1), :, :]
            output, weights = torch_scaled_dot_product_attention(q, K[g], V[g], its_mask)
            outputs.append(output)
            maps.append(weights)
        return self.W_o(torch.cat(outputs, -1)), torch.stack(maps, -3)


@alternative("GroupedQueryAttention", "index_of_the_head")
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__()
        if d_model % num_heads or num_heads % num_kv_heads:
            raise ValueError("head counts do not divide")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        kv_width = d_model * num_kv_heads // num_heads
        self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, kv_width)
        self.W_v, self.W_o = nn.Linear(d_model, kv_width), nn.Linear(d_model, d_model)

    def forward(self, query, key=None, value=None, mask=None):
        if key is None:
            key = query
        if value is None:
            value = key
        shares = torch.arange(self.num_heads) // (self.num_heads // self.num_kv_heads)
        q = split_heads(self.W_q(query), self.num_heads)
        k = split_heads(self.W_k(key), self.num_kv_heads).index_select(-3, shares)
        v = split_heads(self.W_v(value), self.num_kv_heads).index_select(-3, shares)
        if mask is not None and mask.ndim > 1 and mask.ndim <= query.ndim:
            mask = mask.unsqueeze(dim=-3)
        o, w = torch_scaled_dot_product_attention(q, k, v, mask=mask)
        return self.W_o(combine_heads(o)), w


@alternative("KVCache", "lists")
class KVCache:
    def __init__(self):
        self.keys = []
        self.values = []

    def append(self, k, v):
        self.keys.append(k)
        self.values.append(v)
        return torch.cat(self.keys, dim=-2), torch.cat(self.values, dim=-2)


@alternative("KVCache", "growing_store")
class KVCache:
    def __init__(self):
        self.n = 0
        self.store = None

    def append(self, k, v):
        n_new = k.size(-2)
        if self.store is None or self.n + n_new > self.store[0].size(-2):
            room = 2 * (self.n + n_new)
            larger = [x.new_zeros(*x.shape[:-2], room, x.size(-1)) for x in (k, v)]
            for new, old in zip(larger, self.store or []):
                new[..., : self.n, :] = old[..., : self.n, :]
            self.store = larger
        for kept, new in zip(self.store, (k, v)):
            kept[..., self.n : self.n + n_new, :] = new
        self.n += n_new
        return self.store[0][..., : self.n, :], self.store[1][..., : self.n, :]


@alternative("KVCache", "empty_first")
class KVCache:
    def __init__(self):
        self.pair = None

    def append(self, k, v):
        old = self.pair or (k[..., :0, :], v[..., :0, :])
        self.pair = tuple(torch.cat(both, -2) for both in zip(old, (k, v)))
        return self.pair


@alternative("blockwise_attention", "log_sum_exp")
def blockwise_attention(Q, K, V, block_size):
    output, collected = None, None  # the attention so far, and the log of its sum
    for i in range(0, K.shape[-2], block_size):
        scores = Q @ K[..., i : i + block_size, :].transpose(-1, -2) / math.sqrt(Q.shape[-1])
        log_sum = scores.logsumexp(-1, keepdim=True)
        new = torch.exp(scores - log_sum) @ V[..., i : i + block_size, :]
        if output is None:
            output, collected = new, log_sum
        else:
            both = torch.logaddexp(collected, log_sum)
            output = output * torch.exp(collected - both) + new * torch.exp(log_sum - both)
            collected = both
    return output


@alternative("blockwise_attention", "kept_divided")
def blockwise_attention(Q, K, V, block_size):
    lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    n_q = Q.shape[-2]
    largest = Q.new_full((*lead, n_q, 1), -float("inf"))
    total = Q.new_zeros(*lead, n_q, 1)
    output = Q.new_zeros(*lead, n_q, V.shape[-1])
    for k, v in zip(torch.split(K, block_size, dim=-2), torch.split(V, block_size, dim=-2)):
        s = torch.einsum("...qd,...kd->...qk", Q, k) * Q.shape[-1] ** -0.5
        new = torch.max(largest, s.max(dim=-1, keepdim=True).values)
        w, old = (s - new).exp(), total * (largest - new).exp()
        total = old + w.sum(-1, keepdim=True)
        output = output * (old / total) + (w @ v) / total
        largest = new
    return output


@alternative("blockwise_attention", "ones_beside_the_values")
def blockwise_attention(Q, K, V, block_size):
    n_k, start = K.shape[-2], 0
    m = torch.tensor(-math.inf, dtype=Q.dtype)
    both = torch.zeros((), dtype=Q.dtype)  # values collected, and the sum in the last column
    while start < n_k:
        end = min(start + block_size, n_k)
        values = F.pad(V[..., start:end, :], (0, 1), value=1.0)
        scores = torch.matmul(Q, K[..., start:end, :].mT).div(math.sqrt(Q.shape[-1]))
        new = torch.maximum(m, scores.amax(-1, keepdim=True))
        both = both * (m - new).exp() + (scores - new).exp() @ values
        m, start = new, end
    return both[..., :-1] / both[..., -1:]


@alternative("blockwise_attention", "tiles_of_queries_and_keys")
def blockwise_attention(Q, K, V, block_size):
    rows = []
    for i in range(0, Q.shape[-2], block_size):
        q = Q[..., i : i + block_size, :] / math.sqrt(Q.shape[-1])
        m, s, a = -math.inf, 0, 0
        for j in range(0, K.shape[-2], block_size):
            scores = q @ K[..., j : j + block_size, :].transpose(-2, -1)
            new = scores.amax(-1, keepdim=True).clamp(min=m) if isinstance(m, float) else torch.maximum(
                m, scores.amax(-1, keepdim=True)
            )
            factor = torch.exp(m - new)
            e = torch.exp(scores - new)
            s = s * factor + e.sum(-1, keepdim=True)
            a = a * factor + e @ V[..., j : j + block_size, :]
            m = new
        rows.append(a / s)
    return torch.cat(rows, -2)
