"""Right implementations of lesson 13 that look different from its solutions."""

import numpy as np
import torch

from autograder.course.implementations import alternative


@alternative("design_induction", "minus_the_word_before")
def design_induction(vocab_size, max_len):
    d = 3 * vocab_size + max_len
    W = {f"W_{kind}{layer}": torch.zeros(d, d) for kind in "qkv" for layer in (1, 2)}
    for t in range(max_len):
        W["W_q1"][vocab_size + t, t] = 30.0
        if t + 1 < max_len:
            W["W_k1"][vocab_size + t, t + 1] = 2.0
    for w in range(vocab_size):
        before, logit = vocab_size + max_len + w, 2 * vocab_size + max_len + w
        W["W_v1"][w, before] = 1.0
        W["W_q2"][w, before] = 60.0
        W["W_k2"][before, before] = 1.0
        W["W_v2"][w, logit] = 1.0
        W["W_v2"][before, logit] = -0.5  # at place 0, where both are the same word, half is left
    return W


@alternative("design_induction", "identity_keys")
def design_induction(vocab_size, max_len):
    d = 3 * vocab_size + max_len
    start = torch.arange(d)
    is_place = (start >= vocab_size) & (start < vocab_size + max_len)
    shift = torch.zeros(d, d)
    for row in range(vocab_size + 1, vocab_size + max_len):
        shift[row, row - 1] = 500.0
    copy_word = torch.zeros(d, d)
    copy_word[:vocab_size, vocab_size + max_len : -vocab_size] = torch.eye(vocab_size)
    W_k2 = torch.zeros(d, d)
    W_k2[vocab_size + max_len : -vocab_size, :vocab_size] = torch.eye(vocab_size)
    W_k2[vocab_size, :vocab_size] = -5.0
    answer = torch.zeros(d, d)
    answer[:vocab_size, -vocab_size:] = 3 * torch.eye(vocab_size)
    return {
        "W_q1": shift,
        "W_k1": torch.diag(is_place.float()),
        "W_v1": copy_word,
        "W_q2": 200 * torch.eye(d),
        "W_k2": W_k2,
        "W_v2": answer,
    }


@alternative("design_induction", "numpy_then_torch")
def design_induction(vocab_size, max_len):
    V, L = vocab_size, max_len
    d = V + L + 2 * V
    token, place = np.eye(d)[:V], np.eye(d)[V : V + L]
    before, logit = np.eye(d)[V + L : 2 * V + L], np.eye(d)[2 * V + L :]
    weights = {
        "W_q1": 80 * place[1:].T @ place[:-1],
        "W_k1": place.T @ place,
        "W_v1": token.T @ before,
        "W_q2": 80 * token.T @ before,
        "W_k2": before.T @ before - np.outer(place[0], before.sum(0)),
        "W_v2": token.T @ logit,
    }
    return {name: torch.from_numpy(W).requires_grad_() for name, W in weights.items()}


@alternative("induction_score", "index_arrays")
def induction_score(weights, period):
    n = weights.shape[-1]
    if period < 1 or period > n - 1:
        raise ValueError(f"period {period}")
    t = np.arange(period, n)
    return weights[..., t, t - period + 1].mean(-1)


@alternative("induction_score", "loop")
def induction_score(weights, period):
    n = len(weights[(0,) * (weights.ndim - 2)]) if weights.ndim > 2 else len(weights)
    if period not in range(1, n):
        raise ValueError("period")
    total = 0.0
    for t in range(period, n):
        total = total + weights[..., t, t - period + 1]
    return total / (n - period)


@alternative("induction_score", "mask")
def induction_score(weights, period):
    n = weights.shape[-1]
    if not (0 < period < n):
        raise ValueError("period out of range")
    chosen = np.eye(n, k=1 - period)
    chosen[:period] = 0
    if isinstance(weights, torch.Tensor):
        return (weights * torch.tensor(chosen)).sum((-1, -2)) / (n - period)
    return (weights * chosen).sum((-1, -2)) / (n - period)


@alternative("logit_attribution", "one_vector_of_weights")
def logit_attribution(parts, norm, output):
    whole = parts.sum(dim=0)
    scale = 1 / torch.sqrt(torch.var(whole, -1, unbiased=False, keepdim=True) + norm.eps)
    W = output.weight * norm.gamma  # (vocab, d_model)
    W = W - W.mean(dim=1, keepdim=True)  # the mean of a part then says nothing
    rows = [scale * (part @ W.T) for part in parts]
    rest = output.weight @ norm.beta
    if output.bias is not None:
        rest = rest + output.bias
    rows.append(torch.zeros_like(rows[0]) + rest)
    return torch.stack(rows)


@alternative("logit_attribution", "differences")
def logit_attribution(parts, norm, output):
    whole = parts.sum(0)
    zero = torch.zeros_like(whole)
    sd = (whole.var(-1, correction=0, keepdim=True) + norm.eps) ** 0.5
    base = output(norm.beta + zero)
    found = []
    for part in parts:
        normed = norm.gamma * (part - part.mean(-1, keepdim=True)) / sd + norm.beta
        found.append(output(normed) - base)
    return torch.cat([torch.stack(found), base[None]])


@alternative("logit_attribution", "the_rest_is_what_is_left")
def logit_attribution(parts, norm, output):
    x = parts.sum(0)
    centred = x - x.mean(-1, keepdim=True)
    divisor = torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + norm.eps)
    each = torch.einsum(
        "p...d,d,vd->p...v", (parts - parts.mean(-1, keepdim=True)) / divisor, norm.gamma, output.weight
    )
    return torch.cat([each, (output(norm(x)) - each.sum(0)).unsqueeze(0)])


@alternative("ablate_head", "where")
def ablate_head(outputs, head, how):
    num_heads = outputs.shape[1]
    if head not in range(num_heads):
        raise ValueError(f"head {head} of {num_heads}")
    others = {
        "zero": outputs * 0,
        "mean": outputs.mean(dim=(0, 2), keepdim=True),
        "resample": torch.roll(outputs, shifts=-1, dims=0),
    }
    if how not in others:
        raise ValueError(f"how {how}")
    chosen = (torch.arange(num_heads) == head)[None, :, None, None]
    return torch.where(chosen, others[how], outputs)


@alternative("ablate_head", "stacked")
def ablate_head(outputs, head, how):
    heads = list(outputs.unbind(dim=1))
    if head < 0 or head >= len(heads):
        raise ValueError("no such head")
    own = heads[head]
    match how:
        case "zero":
            heads[head] = torch.zeros(own.shape, dtype=own.dtype)
        case "mean":
            heads[head] = torch.ones_like(own) * own.flatten(0, 1).mean(0)
        case "resample":
            heads[head] = torch.cat([own[1:], own[:1]])
        case _:
            raise ValueError("no such way")
    return torch.stack(heads, dim=1)


@alternative("ablate_head", "indices")
def ablate_head(outputs, head, how):
    if how not in ("zero", "mean", "resample") or not 0 <= head <= outputs.shape[1] - 1:
        raise ValueError(f"{how}, {head}")
    result = torch.empty_like(outputs)
    result[:] = outputs
    if how == "zero":
        result[:, head] = 0
    elif how == "mean":
        result[:, head] = outputs[:, head].sum((0, 1)) / (outputs.shape[0] * outputs.shape[2])
    else:
        following = [(text + 1) % len(outputs) for text in range(len(outputs))]
        result[:, head] = outputs[following, head]
    return result


@alternative("patched_logits", "with_statement")
def patched_logits(model, tokens, module, replacement, position):
    from contextlib import closing

    def hook(module, args, output):
        is_tuple = isinstance(output, tuple)
        old = output[0] if is_tuple else output
        here = (torch.arange(old.shape[-2]) == position)[:, None]
        new = torch.where(here, replacement, old)
        return (new, *output[1:]) if is_tuple else new

    handle = module.register_forward_hook(hook)
    handle.close = handle.remove
    with closing(handle):
        return model(tokens)


@alternative("patched_logits", "another_forward")
def patched_logits(model, tokens, module, replacement, position):
    original = module.forward

    def forward(*args, **kwargs):
        output = original(*args, **kwargs)
        first, *rest = output if isinstance(output, tuple) else (output,)
        pieces = [first[..., :position, :], replacement[..., position : position + 1, :], first[..., position + 1 :, :]]
        first = torch.cat(pieces, dim=-2)
        return (first, *rest) if isinstance(output, tuple) else first

    module.forward = forward
    try:
        return model(tokens)
    finally:
        del module.forward


@alternative("patched_logits", "context_manager")
def patched_logits(model, tokens, module, replacement, position):
    import contextlib

    @contextlib.contextmanager
    def patch():
        def swap(_module, _inputs, output):
            if isinstance(output, tuple):
                return swap(_module, _inputs, output[0]), *output[1:]
            result = output.detach().clone() if not output.requires_grad else output.clone()
            result.select(-2, position).copy_(replacement.select(-2, position))
            return result

        handle = module.register_forward_hook(swap)
        try:
            yield
        finally:
            handle.remove()

    with patch():
        logits = model(tokens)
    return logits


@alternative("mended_control", "lists")
def mended_control(scores, rng):
    heads = [(i, j) for i in range(scores.shape[0]) for j in range(scores.shape[1])]
    best = max(heads, key=lambda place: scores[place])
    heads.remove(best)
    return best, heads[int(rng.integers(len(heads)))]


@alternative("mended_control", "draws_again")
def mended_control(scores, rng):
    layers, heads = scores.shape
    best = tuple(int(i) for i in np.unravel_index(scores.argmax(), scores.shape))
    other = best
    while other == best:
        other = int(rng.integers(layers)), int(rng.integers(heads))
    return best, other


@alternative("mended_control", "permutation")
def mended_control(scores, rng):
    best, *rest = np.argsort(-scores, axis=None).tolist()
    other = rng.permutation(rest)[0]
    width = scores.shape[1]
    return (best // width, best % width), (int(other) // width, int(other) % width)
