"""Right implementations of lesson 6 that look different from its solutions."""

import numpy as np
import torch

from autograder.course.implementations import alternative


@alternative("causal_mask", "compare_positions")
def causal_mask(n):
    positions = np.arange(n)
    return positions <= positions[:, None]


@alternative("causal_mask", "lower_triangle_of_ones")
def causal_mask(n):
    return np.tril(np.ones((n, n))).astype(bool)


@alternative("causal_mask", "not_the_future")
def causal_mask(n):
    return ~np.triu(np.full((n, n), True), k=1)


@alternative("causal_mask", "list_of_lists")
def causal_mask(n):
    return np.array([[key <= query for key in range(n)] for query in range(n)])


@alternative("causal_mask", "torch_inside")
def causal_mask(n):
    return torch.ones(n, n).tril().bool().numpy()


@alternative("combine_masks", "list_then_loop")
def combine_masks(*masks):
    there = [mask for mask in masks if mask is not None]
    if not there:
        return None
    result = there[0]
    for mask in there[1:]:
        result = result * mask
    return result


@alternative("combine_masks", "broadcast_and_stack")
def combine_masks(*masks):
    masks = [mask for mask in masks if mask is not None]
    if len(masks) == 0:
        return None
    if isinstance(masks[0], torch.Tensor):
        return torch.stack(torch.broadcast_tensors(*masks)).all(dim=0)
    return np.all(np.stack(np.broadcast_arrays(*masks)), axis=0)


@alternative("combine_masks", "nobody_forbids")
def combine_masks(*masks):
    forbidden = None
    for mask in masks:
        if mask is None:
            continue
        forbidden = ~mask if forbidden is None else forbidden | ~mask
    return None if forbidden is None else ~forbidden


@alternative("combine_masks", "fills_a_copy")
def combine_masks(*masks):
    masks = [mask for mask in masks if mask is not None]
    if not masks:
        return None
    shape = np.broadcast_shapes(*[tuple(mask.shape) for mask in masks])
    if isinstance(masks[0], torch.Tensor):
        result = torch.ones(shape, dtype=torch.bool)
    else:
        result = np.ones(shape, dtype=bool)
    for mask in masks:
        result &= mask
    return result


@alternative("leaks_future", "all_later_positions_anew")
def leaks_future(layer, n, d_model, rng):
    first, second = rng.normal(size=(2, n, d_model))
    expected = layer(first.copy()).copy()
    for cut in range(1, n):
        spliced = np.concatenate([first[:cut], second[cut:]])
        if not np.allclose(layer(spliced)[:cut], expected[:cut], rtol=0, atol=1e-6):
            return True
    return False


@alternative("leaks_future", "later_positions_to_zero")
def leaks_future(layer, n, d_model, rng):
    X = rng.uniform(-2, 2, size=(n, d_model))
    whole = np.copy(layer(np.copy(X)))
    worst = 0.0
    for length in range(1, n):
        padded = np.zeros((n, d_model))
        padded[:length] = X[:length]
        worst = max(worst, float(np.max(np.abs(layer(padded)[:length] - whole[:length]))))
    return worst > 1e-9


@alternative("leaks_future", "numerical_jacobian")
def leaks_future(layer, n, d_model, rng):
    X, step = rng.normal(size=(n, d_model)), 0.05
    influence = np.zeros((n, n))  # of the input j on the output i
    for j in range(n):
        for feature in range(d_model):
            up, down = X.copy(), X.copy()
            up[j, feature] += step
            down[j, feature] -= step
            change = np.array(layer(up)) - np.array(layer(down))
            influence[:, j] += np.abs(change).sum(axis=1)
    return bool(np.triu(influence, k=1).max() > 1e-7)


@alternative("leaks_future", "many_trials")
def leaks_future(layer, n, d_model, rng):
    found = [False]
    for _ in range(4):
        base = rng.normal(size=(n, d_model))
        clean = [row.copy() for row in layer(base.copy())]
        for t in range(1, n):
            other = base.copy()
            other[t:] = rng.normal(size=(n - t, d_model))
            rows = layer(other)
            found += [bool(np.any(np.abs(rows[i] - clean[i]) > 1e-4)) for i in range(t)]
    return any(found)


@alternative("leaks_future", "one_change_for_all_later_positions")
def leaks_future(layer, n, d_model, rng):
    X, shift = rng.normal(size=(n, d_model)), rng.normal(size=d_model)
    known = layer(X.copy()).tolist()
    for t in range(1, n):
        later = np.where(np.arange(n)[:, None] >= t, X + shift, X)
        if np.abs(np.subtract(layer(later).tolist(), known)[:t]).max() > 1e-7:
            return True
    return False


@alternative("leaks_future", "allclose_with_a_small_share")
def leaks_future(layer, n, d_model, rng):
    X = rng.standard_normal((n, d_model))
    expected = np.array(layer(X))
    for t in range(1, n):
        future = X.copy()
        future[t] = rng.standard_normal(d_model)
        if not np.allclose(layer(future)[:t], expected[:t], rtol=1e-8, atol=1e-8):
            return True
    return False


@alternative("mended_tasks", "roll_then_cut")
def mended_tasks(texts):
    return texts[:, :-1], torch.roll(texts, -1, dims=-1)[:, :-1]


@alternative("mended_tasks", "narrow")
def mended_tasks(texts):
    n = texts.shape[1] - 1
    return texts.narrow(1, 0, n).clone(), texts.narrow(1, 1, n).clone()
