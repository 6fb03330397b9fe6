"""Right implementations of lesson 3 that look different from its solutions."""

import math

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F

from autograder.course.implementations import alternative


def softmax(x, axis=-1):
    """Stand in, for the linter, for the softmax that the lesson gives."""
    raise NotImplementedError


@alternative("dot_product_variance", "loop_over_pairs")
def dot_product_variance(d_k, num_pairs, rng):
    dots = [rng.normal(size=d_k) @ rng.normal(size=d_k) for _ in range(num_pairs)]
    return float(np.var(dots))


@alternative("dot_product_variance", "einsum_numpy_float")
def dot_product_variance(d_k, num_pairs, rng):
    pairs = rng.standard_normal((2, num_pairs, d_k))
    return np.einsum("nd,nd->n", *pairs).var(ddof=1)


@alternative("dot_product_variance", "moments_by_hand")
def dot_product_variance(d_k, num_pairs, rng):
    total = squares = 0.0
    done = 0
    while done < num_pairs:
        size = min(1000, num_pairs - done)
        q, k = rng.normal(0.0, 1.0, (d_k, size)), rng.normal(0.0, 1.0, (d_k, size))
        dots = np.sum(q * k, axis=0)
        total, squares, done = total + dots.sum(), squares + (dots**2).sum(), done + size
    return squares / num_pairs - (total / num_pairs) ** 2


@alternative("dot_product_variance", "torch_generator_seeded_from_rng")
def dot_product_variance(d_k, num_pairs, rng):
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    q, k = torch.randn(2, num_pairs, d_k, generator=generator, dtype=torch.float64)
    return torch.linalg.vecdot(q, k).var().item()


@alternative("scaled_dot_product_attention", "einsum_and_own_softmax")
def scaled_dot_product_attention(Q, K, V, mask=None):
    scores = np.einsum("...qd,...kd->...qk", Q, K) / math.sqrt(Q.shape[-1])
    allowed = np.broadcast_to(True if mask is None else mask, scores.shape)
    top = np.max(scores, axis=-1, keepdims=True, where=allowed, initial=-1e300)
    e = np.where(allowed, np.exp(np.where(allowed, scores - top, 0.0)), 0.0)
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1.0, total)
    return np.einsum("...qk,...kv->...qv", weights, V), weights


@alternative("scaled_dot_product_attention", "lowest_number_then_zero")
def scaled_dot_product_attention(Q, K, V, mask=None):
    Q = np.asarray(Q, dtype=np.float64) * Q.shape[-1] ** -0.5
    scores = np.matmul(Q, np.moveaxis(K, -1, -2))
    if mask is None:
        weights = softmax(scores)
    else:
        weights = softmax(np.where(mask, scores, np.finfo(scores.dtype).min)) * mask
    return np.matmul(weights, V), weights


@alternative("scaled_dot_product_attention", "torch_inside")
def scaled_dot_product_attention(Q, K, V, mask=None):
    Q, K, V = (torch.tensor(x, dtype=torch.float64) for x in (Q, K, V))
    scores = torch.einsum("...qd,...kd->...qk", Q, K) / Q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(torch.tensor(~mask), -torch.inf)
    weights = torch.nan_to_num(torch.softmax(scores, -1))
    return torch.matmul(weights, V).numpy(), weights.numpy()


@alternative("scaled_dot_product_attention", "keeps_float32")
def scaled_dot_product_attention(Q, K, V, mask=None):
    kind = np.result_type(Q, K, V, np.float32)
    scores = (Q.astype(kind) @ np.swapaxes(K, -2, -1)) / math.sqrt(K.shape[-1])
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -np.inf)
    weights = softmax(scores).astype(kind)
    return weights @ V.astype(kind), weights


@alternative("padding_mask", "list_of_lists")
def padding_mask(lengths, n_k):
    for length in lengths:
        if not 0 <= length <= n_k:
            raise ValueError(f"lengths holds {length}, outside 0 to {n_k}")
    return np.array([[[j < length for j in range(n_k)]] for length in lengths], dtype=bool)


@alternative("padding_mask", "fill_row_by_row")
def padding_mask(lengths, n_k):
    mask = np.zeros((len(lengths), 1, n_k), dtype=bool)
    for i, length in enumerate(lengths):
        if length < 0 or length > n_k:
            raise ValueError(f"lengths[{i}] = {length} is not between 0 and {n_k}")
        mask[i, 0, :length] = True
    return mask


@alternative("padding_mask", "rows_of_a_triangle")
def padding_mask(lengths, n_k):
    lengths = np.array(lengths)
    if lengths.min() < 0 or lengths.max() > n_k:
        raise ValueError(f"lengths = {lengths} does not fit n_k = {n_k}")
    return np.tri(n_k + 1, n_k, k=-1, dtype=bool)[lengths][:, np.newaxis]


@alternative("torch_scaled_dot_product_attention", "masked_fill_inf_nan_to_num")
def torch_scaled_dot_product_attention(Q, K, V, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", Q, K) * Q.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = F.softmax(scores, dim=-1).nan_to_num(0.0)
    return torch.einsum("...qk,...kv->...qv", weights, V), weights


@alternative("torch_scaled_dot_product_attention", "where_and_own_softmax")
def torch_scaled_dot_product_attention(Q, K, V, mask=None):
    scores = torch.matmul(Q / math.sqrt(Q.shape[-1]), K.mT)
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    lowest = scores.detach().masked_fill(~mask, -1e30).amax(-1, keepdim=True)
    e = torch.where(mask, torch.exp(torch.where(mask, scores - lowest, 0.0)), 0.0)
    total = e.sum(-1, keepdim=True)
    weights = e / torch.where(total == 0, torch.ones_like(total), total)
    return torch.matmul(weights, V), weights


@alternative("torch_scaled_dot_product_attention", "lowest_number_times_mask")
def torch_scaled_dot_product_attention(Q, K, V, mask=None):
    scores = (Q @ K.swapaxes(-1, -2)).div(K.shape[-1] ** 0.5)
    if mask is None:
        return scores.softmax(-1) @ V, scores.softmax(-1)
    weights = torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(-1) * mask
    return weights @ V, weights


@alternative("torch_scaled_dot_product_attention", "torchs_function_with_an_identity")
def torch_scaled_dot_product_attention(Q, K, V, mask=None):
    lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    eye = torch.eye(K.shape[-2], dtype=V.dtype)
    Q, K, V, eye = (x.expand(*lead, *x.shape[-2:]) for x in (Q, K, V, eye))
    if mask is not None:
        mask = mask.expand(*lead, Q.shape[-2], K.shape[-2])
    both = F.scaled_dot_product_attention(Q, K, torch.cat([V, eye], dim=-1), attn_mask=mask)
    return both[..., : V.shape[-1]], both[..., V.shape[-1] :]


@alternative("mended_encode", "words_at_both_ends")
def mended_encode(texts, attention_mask):
    is_word = attention_mask > 0
    keep = is_word.unsqueeze(1) & is_word.unsqueeze(2)
    output = F.scaled_dot_product_attention(texts, texts, texts, attn_mask=keep)
    return output.masked_fill(~is_word.unsqueeze(-1), 0.0)


@alternative("mended_encode", "one_text_after_the_other")
def mended_encode(texts, attention_mask):
    encoded = torch.zeros_like(texts)
    for number, words in enumerate(attention_mask.bool()):
        alone = texts[number][words]
        weights = torch.softmax(alone @ alone.T / math.sqrt(texts.shape[-1]), dim=-1)
        encoded[number, words] = weights @ alone
    return encoded


@alternative("gradient_descent", "slopes_from_autograd")
def gradient_descent(loss_of, parameters, steps, lr):
    history = []
    while len(history) < steps:
        value = loss_of()
        slopes = torch.autograd.grad(value, parameters)
        with torch.no_grad():
            for one, slope in zip(parameters, slopes, strict=True):
                one.copy_(one - lr * slope)
        history.append(float(value))
    return history


@alternative("gradient_descent", "the_optimiser_itself")
def gradient_descent(loss_of, parameters, steps, lr):
    optimizer, losses = torch.optim.SGD(parameters, lr=lr), []
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


@alternative("gradient_descent", "through_data")
def gradient_descent(loss_of, parameters, steps, lr):
    def one_step():
        for p in parameters:
            if p.grad is not None:
                p.grad.zero_()
        loss = loss_of()
        loss.backward()
        for p in parameters:
            p.data = p.data - lr * p.grad
        return loss.tolist()

    return [one_step() for _ in range(steps)]


@alternative("attention_heatmap", "imshow")
def attention_heatmap(weights, query_words, key_words, ax=None):
    if ax is None:
        _, ax = plt.subplots()
    image = ax.imshow(torch.as_tensor(weights).detach().tolist(), vmin=0.0, vmax=1.0)
    ax.figure.colorbar(image, ax=ax)
    if image.get_size() != (len(query_words), len(key_words)):
        raise ValueError("words and weights do not fit")
    ax.set_xticks(range(len(key_words)))
    ax.set_xticklabels(key_words, rotation=45)
    ax.set_yticks(range(len(query_words)))
    ax.set_yticklabels(query_words)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    return ax


@alternative("attention_heatmap", "pcolor_from_below")
def attention_heatmap(weights, query_words, key_words, ax=None):
    if len(weights) != len(query_words) or len(weights[0]) != len(key_words):
        raise ValueError("words and weights do not fit")
    ax = ax or plt.figure(figsize=(5, 4)).add_subplot(111)
    if torch.is_tensor(weights):
        weights = weights.detach().cpu().numpy()
    ax.pcolor(weights[::-1], norm=plt.Normalize(0, 1), cmap="viridis", edgecolors="w")
    for side, words in (("x", key_words), ("y", query_words[::-1])):
        places = [place + 0.5 for place in range(len(words))]
        ax.set(**{f"{side}ticks": places, f"{side}ticklabels": words})
    ax.set(xlabel="key", ylabel="query", title="attention")
    return ax


@alternative("attention_heatmap", "matshow_with_numbers")
def attention_heatmap(weights, query_words, key_words, ax=None):
    numbers = np.array(weights.tolist())
    if numbers.shape != (len(query_words), len(key_words)):
        raise ValueError(f"weights {numbers.shape}, {len(query_words)} and {len(key_words)} words")
    if ax is None:
        ax = plt.subplots()[1]
    ax.matshow(numbers, cmap="Greys", vmin=0, vmax=1)
    for (row, column), number in np.ndenumerate(numbers):
        ax.text(column, row, f"{number:.2f}", ha="center", va="center")
    ax.xaxis.set_major_locator(plt.FixedLocator(range(len(key_words))))
    ax.xaxis.set_major_formatter(plt.FixedFormatter(key_words))
    ax.set_yticks(range(len(query_words)), query_words)
    ax.set_xticks(np.arange(len(key_words) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(query_words) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white")
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    return ax


@alternative("attention_heatmap", "seaborn_with_its_labels")
def attention_heatmap(weights, query_words, key_words, ax=None):
    if weights.shape != (len(query_words), len(key_words)):
        raise ValueError("words and weights do not fit")
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 5), layout="constrained")
    numbers = weights.detach() if torch.is_tensor(weights) else weights
    ax = sns.heatmap(
        np.asarray(numbers),
        ax=ax,
        vmin=0,
        vmax=1,
        annot=True,
        fmt=".2f",
        cmap="mako",
        xticklabels=key_words,
        yticklabels=query_words,
    )
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    return ax


@alternative("scaled_dot_product_attention", "scale_shared_out_between_q_and_k")
def scaled_dot_product_attention(Q, K, V, mask=None):
    root = Q.shape[-1] ** 0.25
    scores = (Q / root) @ np.swapaxes(K / root, -1, -2)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores, axis=-1)
    return np.matmul(weights, V), weights
