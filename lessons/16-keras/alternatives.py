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


@alternative("KerasAttention", "matmul_and_nothing_cast")
class KerasAttention(keras.layers.Layer):
    def call(self, query, key, value, mask=None):
        scores = keras.ops.matmul(query, keras.ops.swapaxes(key, -2, -1))
        scores = scores / keras.ops.sqrt(float(key.shape[-1]))
        if mask is None:
            weights = keras.ops.softmax(scores)
        else:
            weights = keras.ops.softmax(keras.ops.where(mask, scores, float("-inf")))
            weights = keras.ops.where(mask, weights, 0)
        return keras.ops.matmul(weights, value), weights


@alternative("KerasAttention", "a_low_number_then_zeros")
class KerasAttention(keras.layers.Layer):
    def call(self, query, key, value, mask=None):
        ops = keras.ops
        scores = ops.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
        if mask is None:
            weights = ops.softmax(scores, axis=-1)
            return ops.einsum("...qk,...kv->...qv", weights, value), weights
        weights = ops.softmax(ops.where(mask, scores, -1e9), axis=-1)
        weights = weights * ops.cast(mask, weights.dtype)
        return ops.einsum("...qk,...kv->...qv", weights, value), weights


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


@alternative("KerasMultiHeadAttention", "einsum")
class KerasMultiHeadAttention(keras.layers.Layer):
    def __init__(self, d_model, num_heads, **settings):
        super().__init__(**settings)
        if d_model % num_heads != 0:
            raise ValueError(f"{d_model} features cannot be shared out to {num_heads} heads")
        self.h, self.d = num_heads, d_model // num_heads
        dense = keras.layers.Dense
        self.W_q, self.W_k, self.W_v, self.W_o = [dense(d_model, name=f"W_{x}") for x in "qkvo"]

    def call(self, query, key=None, value=None, mask=None):
        ops = keras.ops
        key = key if key is not None else query
        value = value if value is not None else key
        cut = ((-1, x.shape[1], self.h, self.d) for x in (query, key, value))
        layers = self.W_q(query), self.W_k(key), self.W_v(value)
        Q, K, V = (ops.reshape(x, shape) for x, shape in zip(layers, cut))
        scores = ops.einsum("bqhd,bkhd->bhqk", Q, K) / self.d**0.5
        if mask is None:
            weights = ops.softmax(scores)
        else:
            mask = ops.reshape(mask, (-1, 1, *mask.shape[-2:]))
            weights = ops.softmax(ops.where(mask, scores, -1e30)) * ops.cast(mask, scores.dtype)
        joined = ops.einsum("bhqk,bkhd->bqhd", weights, V)
        return self.W_o(ops.reshape(joined, (-1, query.shape[1], self.h * self.d))), weights


@alternative("KerasMultiHeadAttention", "head_by_head")
class KerasMultiHeadAttention(keras.layers.Layer):
    def __init__(self, d_model, num_heads):
        if d_model % num_heads:
            raise ValueError("d_model is not a multiple of num_heads")
        super().__init__()
        self.num_heads = num_heads
        self.W_q = keras.layers.Dense(d_model)
        self.W_k = keras.layers.Dense(d_model)
        self.W_v = keras.layers.Dense(d_model)
        self.W_o = keras.layers.Dense(d_model)

    def call(self, query, key=None, value=None, mask=None):
        ops = keras.ops
        if key is None:
            key = query
        if value is None:
            value = key
        Qs = ops.split(self.W_q(query), self.num_heads, axis=-1)
        Ks = ops.split(self.W_k(key), self.num_heads, axis=-1)
        Vs = ops.split(self.W_v(value), self.num_heads, axis=-1)
        outputs, maps = [], []
        for Q, K, V in zip(Qs, Ks, Vs):
            scores = ops.matmul(Q, ops.transpose(K, (0, 2, 1))) / ops.sqrt(float(Q.shape[-1]))
            if mask is not None:
                scores = ops.where(mask, scores, -1e30)
            powers = ops.exp(scores - ops.max(scores, axis=-1, keepdims=True))
            if mask is not None:
                powers = ops.where(mask, powers, 0.0)
            weights = powers / ops.maximum(ops.sum(powers, axis=-1, keepdims=True), 1e-30)
            maps.append(weights)
            outputs.append(ops.matmul(weights, V))
        return self.W_o(ops.concatenate(outputs, axis=-1)), ops.stack(maps, axis=1)


@alternative("KerasMultiHeadAttention", "heads_in_the_batch")
class KerasMultiHeadAttention(keras.layers.Layer):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model // num_heads * num_heads != d_model:
            raise ValueError(f"num_heads = {num_heads} does not divide d_model = {d_model}")
        self.num_heads = num_heads
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self, name, keras.layers.Dense(d_model))

    def call(self, query, key=None, value=None, mask=None):
        ops, heads = keras.ops, self.num_heads
        key = query if key is None else key
        value = key if value is None else value
        batch, n_q, d_model = query.shape
        n_k, d_head = key.shape[1], d_model // heads

        def folded(x, n):
            x = ops.transpose(ops.reshape(x, (batch, n, heads, d_head)), (0, 2, 1, 3))
            return ops.reshape(x, (batch * heads, n, d_head))

        Q, K, V = folded(self.W_q(query), n_q), folded(self.W_k(key), n_k), folded(self.W_v(value), n_k)
        scores = ops.matmul(Q, ops.swapaxes(K, 1, 2)) * d_head**-0.5
        if mask is not None:
            mask = ops.broadcast_to(mask, (batch, n_q, n_k))
            mask = ops.repeat(mask, heads, axis=0)
            scores = ops.where(mask, scores, float("-inf"))
        weights = ops.nan_to_num(ops.softmax(scores, axis=-1))
        joined = ops.reshape(ops.matmul(weights, V), (batch, heads, n_q, d_head))
        joined = ops.reshape(ops.transpose(joined, (0, 2, 1, 3)), (batch, n_q, d_model))
        return self.W_o(joined), ops.reshape(weights, (batch, heads, n_q, n_k))
