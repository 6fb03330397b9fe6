"""Right implementations of lesson 16 that look different from its solutions."""

import math

import numpy as np
import torch

from autograder.course.implementations import alternative


class keras:
    """Stand in, for the linter, for the library: this file is read where it is not installed, too."""

    class layers:
        Layer = object


@alternative("KerasAttention", "minus_infinity_and_two_wheres")
class KerasAttention(keras.layers.Layer):
    def call(self, query, key, value, mask=None):
        ops = keras.ops
        query = ops.cast(query, self.compute_dtype)
        key = ops.cast(key, self.compute_dtype)
        value = ops.cast(value, self.compute_dtype)
        scores = ops.einsum("...id,...jd->...ij", query, key) * key.shape[-1] ** -0.5
        if mask is None:
            mask = ops.ones((1, 1), dtype="bool")
        some = ops.any(ops.broadcast_to(mask, scores.shape), axis=-1, keepdims=True)
        scores = ops.where(ops.logical_or(mask, ops.logical_not(some)), scores, -math.inf)
        weights = ops.softmax(scores, axis=-1) * ops.cast(some, self.compute_dtype)
        return ops.einsum("...ij,...jv->...iv", weights, value), weights


@alternative("KerasAttention", "exponentials_and_their_sum")
class KerasAttention(keras.layers.Layer):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.supports_masking = False

    def call(self, query, key, value, mask=None):
        from keras import ops

        query, key, value = [ops.cast(one, self.compute_dtype) for one in (query, key, value)]
        root = float(query.shape[-1]) ** 0.5
        scores = query @ ops.swapaxes(key, -2, -1) / root
        if mask is not None:  # so that no hidden score is the largest
            scores = ops.where(mask, scores, ops.min(scores, axis=-1, keepdims=True))
        scores = scores - ops.max(scores, axis=-1, keepdims=True)
        powers = ops.exp(scores)
        if mask is not None:
            powers = powers * ops.cast(mask, self.compute_dtype)
        total = ops.sum(powers, axis=-1, keepdims=True)
        weights = powers / ops.where(total == 0, ops.ones_like(total), total)
        return weights @ value, weights


@alternative("KerasAttention", "torch_on_the_backend")
class KerasAttention(keras.layers.Layer):
    def call(self, query, key, value, mask=None):
        kind = getattr(torch, self.compute_dtype)
        query, key, value = (torch.as_tensor(x).to(kind) for x in (query, key, value))
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(kind).min)
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        return weights @ value, weights


@alternative("load_keras_weights", "set_weights_in_order")
def load_keras_weights(keras_attention, attention):
    heads = attention.num_heads
    width = attention.W_q.in_features
    each = width // heads
    arrays = []
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        arrays.append(linear.weight.detach().numpy().T.reshape(width, heads, each))
        arrays.append(linear.bias.detach().numpy().reshape(heads, each))
    arrays.append(attention.W_o.weight.detach().numpy().T.reshape(heads, each, width))
    arrays.append(attention.W_o.bias.detach().numpy())
    parts = ("query_dense", "key_dense", "value_dense", "output_dense")
    there = [one for name in parts for one in getattr(keras_attention, name).weights]
    if [tuple(one.shape) for one in there] != [one.shape for one in arrays]:
        raise ValueError("the two layers have other sizes")
    for one, array in zip(there, arrays):
        one.assign(array.copy())


@alternative("load_keras_weights", "head_by_head")
def load_keras_weights(keras_attention, attention):
    H, d = attention.num_heads, attention.W_q.out_features
    e = d // H
    parts = {
        keras_attention.query_dense: attention.W_q,
        keras_attention.key_dense: attention.W_k,
        keras_attention.value_dense: attention.W_v,
    }
    for part in parts:
        if tuple(part.kernel.shape) != (d, H, e):
            raise ValueError(f"{part.name} has shape {part.kernel.shape}")
    if tuple(keras_attention.output_dense.kernel.shape) != (H, e, d):
        raise ValueError("output_dense has another shape")
    with torch.no_grad():
        for part, linear in parts.items():
            for h in range(H):
                rows = slice(h * e, (h + 1) * e)
                part.kernel.value[:, h] = linear.weight[rows].T
                part.bias.value[h] = linear.bias[rows]
        for h in range(H):
            columns = slice(h * e, (h + 1) * e)
            keras_attention.output_dense.kernel.value[h] = attention.W_o.weight[:, columns].T
        keras_attention.output_dense.bias.value.copy_(attention.W_o.bias)


@alternative("load_keras_weights", "sizes_from_the_settings")
def load_keras_weights(keras_attention, attention):
    d_model, num_heads = attention.W_o.out_features, attention.num_heads
    fits = (
        keras_attention.num_heads == num_heads
        and keras_attention.key_dim * num_heads == d_model
        and keras_attention.value_dim == keras_attention.key_dim
        and keras_attention.output_dense.bias.shape[-1] == d_model
    )
    for name in ("query", "key", "value"):
        fits = fits and getattr(keras_attention, f"{name}_dense").kernel.shape[0] == d_model
    if not fits:
        raise ValueError("keras_attention and attention differ in size")
    for name, linear in zip(
        ("query", "key", "value", "output"),
        (attention.W_q, attention.W_k, attention.W_v, attention.W_o),
    ):
        part = getattr(keras_attention, name + "_dense")
        weight = np.array(linear.weight.tolist())
        part.kernel.assign(weight.transpose().reshape(part.kernel.shape))
        part.bias.assign(np.array(linear.bias.tolist()).reshape(part.bias.shape))
