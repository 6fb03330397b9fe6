"""Right implementations of lesson 1 that look different from its solutions."""

import numpy as np
import torch
from torch import nn

from autograder.course.implementations import alternative


@alternative("hard_look", "look_of_booleans")
def hard_look(words, word):
    if word not in words:
        raise ValueError(f"{word} is not one of {words}")
    return np.array([float(other == word) for other in words])


@alternative("hard_look", "look_row_of_the_identity")
def hard_look(words, word):
    return np.eye(len(words))[words.index(word)]


# --- rnn_hidden_states ---------------------------------------------------------------------


@alternative("rnn_hidden_states", "rnn_filling_an_array")
def rnn_hidden_states(X, W_x, W_h, h0=None):
    n, d_h = X.shape[0], W_h.shape[1]
    H = np.empty((n + 1, d_h))
    H[0] = 0.0 if h0 is None else h0
    inputs = X @ W_x
    for t in range(n):
        H[t + 1] = np.tanh(inputs[t] + H[t] @ W_h)
    return H[1:]


@alternative("rnn_hidden_states", "rnn_one_stacked_matrix")
def rnn_hidden_states(X, W_x, W_h, h0=None):
    W = np.concatenate([W_x, W_h])
    h = np.zeros(len(W_h)) if h0 is None else np.array(h0, dtype=float)
    H = []
    for t in range(len(X)):
        h = np.tanh(np.concatenate([X[t], h]) @ W)
        H.append(h)
    return np.vstack(H)


@alternative("rnn_hidden_states", "rnn_of_torch")
def rnn_hidden_states(X, W_x, W_h, h0=None):
    rnn = nn.RNN(W_x.shape[0], W_h.shape[0], bias=False, batch_first=True).double()
    start = None if h0 is None else torch.tensor(h0, dtype=torch.float64)[None, None]
    matrices = {"weight_ih_l0": W_x.T.copy(), "weight_hh_l0": W_h.T.copy()}
    rnn.load_state_dict({name: torch.tensor(matrix) for name, matrix in matrices.items()})
    return rnn(torch.tensor(X, dtype=torch.float64)[None], start)[0][0].detach().numpy()


@alternative("rnn_hidden_states", "rnn_recursion")
def rnn_hidden_states(X, W_x, W_h, h0=None):
    if h0 is None:
        h0 = np.zeros(W_h.shape[1])
    h = np.tanh(np.dot(W_x.T, X[0]) + np.dot(W_h.T, h0))
    if len(X) == 1:
        return h[np.newaxis]
    return np.concatenate([h[np.newaxis], rnn_hidden_states(X[1:], W_x, W_h, h)])


@alternative("rnn_hidden_states", "rnn_precision_of_inputs")
def rnn_hidden_states(X, W_x, W_h, h0=None):
    dtype = np.result_type(X, W_x, W_h, np.float32 if h0 is None else h0)
    dtype = dtype if dtype.kind == "f" else np.float64
    h = np.zeros((1, W_h.shape[0]), dtype=dtype) if h0 is None else h0[None].astype(dtype)
    H = np.zeros((len(X), W_h.shape[0]), dtype=dtype)
    for t in range(len(X)):
        h = np.tanh(X[t : t + 1].astype(dtype) @ W_x.astype(dtype) + h @ W_h.astype(dtype))
        H[t] = h[0]
    return H


# --- position_influence --------------------------------------------------------------------


@alternative("position_influence", "influence_by_autograd")
def position_influence(X, W_x, W_h):
    W_x, W_h = torch.tensor(W_x, dtype=torch.float64), torch.tensor(W_h, dtype=torch.float64)

    def last(x):
        h = torch.zeros(W_h.shape[0], dtype=torch.float64)
        for row in x:
            h = torch.tanh(row @ W_x + h @ W_h)
        return h

    J = torch.autograd.functional.jacobian(last, torch.tensor(X, dtype=torch.float64))
    return torch.linalg.vector_norm(J, dim=(0, 2)).numpy()


@alternative("position_influence", "influence_carried_forward")
def position_influence(X, W_x, W_h):
    n, d_in = X.shape
    h = np.zeros(len(W_h))
    J = np.zeros((n, d_in, len(h)))  # d h / d x_t, transposed
    for t in range(n):
        h = np.tanh(X[t] @ W_x + h @ W_h)
        J = np.einsum("tik,kj->tij", J, W_h)
        J[t] += W_x
        J *= 1 - h**2
    return np.sqrt((J**2).sum(axis=(1, 2)))


@alternative("position_influence", "influence_with_diagonal_matrices")
def position_influence(X, W_x, W_h):
    H = rnn_hidden_states(X, W_x, W_h)
    result = []
    for t in range(len(X)):
        J = np.diag(1 - H[t] ** 2) @ W_x.T
        for s in range(t + 1, len(X)):
            J = np.diag(1 - H[s] ** 2) @ W_h.T @ J
        result.append(np.linalg.norm(J, "fro"))
    return np.array(result)


@alternative("position_influence", "influence_by_central_differences")
def position_influence(X, W_x, W_h):
    squares, step = np.zeros(X.shape), 1e-5
    for index in np.ndindex(*X.shape):
        up, down = X.astype(float), X.astype(float)
        up[index] += step
        down[index] -= step
        ahead, behind = rnn_hidden_states(up, W_x, W_h), rnn_hidden_states(down, W_x, W_h)
        squares[index] = (((ahead[-1] - behind[-1]) / (2 * step)) ** 2).sum()
    return np.sqrt(squares.sum(axis=1))


# --- weighted_average ----------------------------------------------------------------------


@alternative("weighted_average", "average_by_multiplying")
def weighted_average(weights, values):
    if weights.shape[-1] != values.shape[-2]:
        raise ValueError("lengths differ")
    if np.any(weights < 0) or np.any(weights.sum(-1) == 0):
        raise ValueError("weights")
    return (weights[..., None] * values).sum(-2) / weights.sum(-1)[..., None]


@alternative("weighted_average", "average_by_matmul")
def weighted_average(weights, values):
    *_, n = weights.shape
    if values.shape[-2] != n or weights.min() < 0 or (weights.max(-1) == 0).any():
        raise ValueError("weights do not fit")
    share = weights / np.sum(weights, axis=-1, keepdims=True)
    return np.matmul(share[..., np.newaxis, :], values).squeeze(-2)


@alternative("weighted_average", "average_position_by_position")
def weighted_average(weights, values):
    n = values.shape[-2]
    if weights.shape[-1] != n:
        raise ValueError("lengths differ")
    if not (weights >= 0).all() or not (weights > 0).any(-1).all():
        raise ValueError("weights")
    total = sum(weights[..., j] * 1.0 for j in range(n))
    return sum((weights[..., j] / total)[..., None] * values[..., j, :] for j in range(n))


@alternative("weighted_average", "average_by_torch")
def weighted_average(weights, values):
    if weights.shape[-1] != values.shape[-2]:
        raise ValueError("lengths differ")
    w, v = torch.tensor(weights, dtype=torch.float64), torch.tensor(values, dtype=torch.float64)
    if bool((w < 0).any()) or bool((w == 0).all(-1).any()):
        raise ValueError("weights")
    return torch.einsum("...n,...nd->...d", w / w.sum(-1, keepdim=True), v).numpy()


@alternative("mended_last_states", "zeros_inside_the_loop")
def mended_last_states(sentences, W_x, W_h):
    last = []
    for X in sentences:
        h = np.zeros(W_h.shape[0])
        h = rnn_hidden_states(X, W_x, W_h, h0=h)[-1]
        last.append(h)
    return np.stack(last)


@alternative("mended_last_states", "word_by_word")
def mended_last_states(sentences, W_x, W_h):
    last = np.zeros((len(sentences), W_h.shape[0]))
    for i, X in enumerate(sentences):
        for x in X:
            last[i] = np.tanh(x @ W_x + last[i] @ W_h)
    return last
