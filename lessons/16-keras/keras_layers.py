# %% [markdown]
# ## What you will be able to do
#
# - **Write** lesson 3's function as a layer of Keras.
# - **Write** lesson 5's layer of Keras's `Dense` layers.
# - **Copy** lesson 5's weights into `keras.layers.MultiHeadAttention`, and **prove** that both layers agree.
# - **Say** what differs between PyTorch and Keras in names, masks, shapes and defaults, and **measure** it.
# - **Find** a mask that gets lost on its way.

# %% tags=["setup"]
import contextlib
import math
import os

os.environ["KERAS_BACKEND"] = "torch"  # before keras is imported: it looks once

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.absent import Absent
from lesson_kit.checks import (
    assert_close,
    assert_equal,
    check,
    check_answer,
    check_rng,
    checks_passed,
    probe,
)
from lesson_kit.earlier import MultiHeadAttention, torch_scaled_dot_product_attention
from lesson_kit.figures import draw_heatmap, show, text_table
from lesson_kit.guesses import reply

try:
    import keras
except ImportError:
    keras = Absent("Keras", "pip install keras==3.15.1")

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `lesson_kit.earlier` brings the parts of lessons 3 and 5: your own where they passed their checks, else
# the course's. Without Keras the setup cell says what to install, the cells that
# need it show nothing, and the short answers and the written one can be done all the same.
#
# ## 1. The same layers under other names
#
# Three questions first, from earlier lessons. Answer each on paper before you unfold it.
#
# <details><summary>Lesson 3: a query may attend to nothing. What does the course's function return for it,
# and what does a plain softmax over scores of minus infinity give?</summary>
#
# Weights 0 and output 0. The softmax gives 0/0, which is NaN.
#
# </details>
#
# <details><summary>Lesson 5: with <code>d_model = 12</code> and three heads, which features of
# <code>W_q(x)</code> belong to head 1?</summary>
#
# Features 4 to 7: head $h$ holds features $4h$ to $4h + 3$.
#
# </details>
#
# <details><summary>Lesson 8: what does layer norm add to the variance before it takes the root, and
# why?</summary>
#
# A small $\varepsilon$, so that a row of equal numbers is not divided by 0. PyTorch takes
# $10^{-5}$.
#
# </details>
#
# **Keras** (Chollet and others, 2015) is a library of layers. Since version 3 it computes nothing
# itself: a **backend** does, JAX, TensorFlow or PyTorch. The line with `KERAS_BACKEND` above chooses PyTorch.
# So tensors here are torch tensors, and gradients are torch's. `keras.ops` has the operations that every
# backend has, under NumPy's names.

# %% tags=["demonstration"]
if keras:
    x = torch.ones(2, 4)
    dense = keras.layers.Dense(3)  # no width of the input: it is not built yet
    print("parts before the first call:", len(dense.weights))
    y = dense(x)
    print("after it:", {one.name: tuple(one.shape) for one in dense.weights})
    print("the result is a torch tensor:", isinstance(y, torch.Tensor), " the layer an nn.Module:", isinstance(dense, nn.Module))
    print("nn.Linear(4, 3) has a weight of shape", tuple(nn.Linear(4, 3).weight.shape))

# %% [markdown]
# Two things to remember. A layer of Keras is **built** when it first sees an input: only then it knows its
# widths, and has weights. And its `kernel` is `(in, out)`, as the NumPy matrices of lesson 4 were;
# `nn.Linear` keeps the transpose, `(out, in)`.

# %% [markdown]
# ### Exercise 1: `KerasAttention`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 15 minutes on it.
#
# Lesson 3's function as a layer. It has no weights, so `call` is all that you write.
#
# - `call(query, key, value, mask=None)`: `query (..., n_q, d_k)`, `key (..., n_k, d_k)`,
#   `value (..., n_k, d_v)`, any number of leading axes, which broadcast.
# - Returns `(output (..., n_q, d_v), weights (..., n_q, n_k))`. Gradients flow through both.
# - `mask`: `None` or boolean, broadcastable to the weights, `True` = may attend. A query that may attend to
#   nothing has weights 0 and output 0, and finite gradients.
# - The mask is handed over by position, `layer(query, key, value, mask)`: a keyword `mask=` Keras takes for the
#   mask that travels with a text (section 4), and warns.
# - Write it with `keras.ops`. Useful: `swapaxes(x, -1, -2)`, `matmul`, `einsum`, `softmax`, `where`.
# - Results have the layer's dtype, float32 if nothing else is said: Keras casts floating inputs to it before
#   `call`. Checked when graded: inputs stay as they are.


# %% answer="KerasAttention"
class KerasAttention(keras.layers.Layer):
    """Scaled dot-product attention as a layer of Keras."""

    def call(self, query, key, value, mask=None):
        """Attend.

        Args:
            query: (..., n_q, d_k).
            key: (..., n_k, d_k).
            value: (..., n_k, d_v).
            mask: boolean, broadcastable to the weights; True = may attend.

        Returns:
            output (..., n_q, d_v) and weights (..., n_q, n_k). A query that may attend to
            nothing has weights 0 and output 0.
        """
        ### BEGIN SOLUTION
        ops = keras.ops
        query, key, value = (ops.cast(x, self.compute_dtype) for x in (query, key, value))
        scores = query @ ops.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
        if mask is None:
            weights = ops.softmax(scores, axis=-1)
        else:
            # A row without any key is NaN for one line. where() passes no gradient to what it leaves out.
            weights = ops.softmax(ops.where(mask, scores, -math.inf), axis=-1)
            weights = ops.where(mask, weights, 0.0)
        return weights @ value, weights
        ### END SOLUTION


# %% check="KerasAttention" points=5.75
@probe
def attend(query, key, value, mask=None):
    mask = None if mask is None else mask.clone()
    return KerasAttention()(query.clone(), key.clone(), value.clone(), mask)


def by_torch(query, key, value, mask=None):
    """torch's own function; with the identity as values it gives the weights."""
    eye = torch.eye(key.shape[-2], dtype=query.dtype).expand(*key.shape[:-2], -1, -1)
    return [F.scaled_dot_product_attention(query, key, x, attn_mask=mask) for x in (value, eye)]


rng = check_rng()
Q, K, V = (torch.tensor(rng.normal(size=(2, *size))).float() for size in ((3, 8), (5, 8), (5, 6)))
both = attend(Q, K, V)
assert_equal(
    len(both) if isinstance(both, (tuple, list)) else int(both is not None),
    2,
    "Two things come back: the output and the weights.",
    name="the number of results",
)
output, weights = both
expected, expected_weights = by_torch(Q, K, V)
with check("the weights", points=1.5):
    message = (
        "The second result is compared with torch's weights, (2, 3, 5): scores divided by the "
        "square root of d_k, then a softmax over the keys, the last axis. Check first: do output "
        "and weights stand in this order?"
    )
    assert_close(weights, expected_weights, message, rtol=1e-5, atol=1e-6, name="weights")
with check("the output: your weights, in float32, times the values", points=1.25):
    message = (
        "Five keys, a layer of float32: the last axis of the weights is 5, and their dtype is "
        "float32."
    )
    seen = [
        list(np.shape(weights))[-1:],
        str(getattr(weights, "dtype", None)).removeprefix("torch."),
    ]
    assert_equal(seen, [[5], "float32"], message, name="the weights' last axis and dtype")
    message = (
        "The first result, (2, 3, 6), is your own weights, the second result, times the values."
    )
    assert_close(
        output,
        torch.as_tensor(weights) @ V,
        message,
        rtol=1e-5,
        atol=1e-6,
        name="output",
        against="as your weights times the values",
    )
    message = "Two different texts have different outputs."
    assert_equal(bool((output[0] - output[1]).abs().max() > 1e-3), True, message)
T, N = True, False
mask = torch.tensor([[T, T, N, T, N], [N, N, N, N, N], [T, T, T, T, T]])
with check("a mask, as without the hidden keys", points=1.25):
    output, weights = attend(Q, K, V, mask)
    alone = [attend(Q[:, i : i + 1], K[:, mask[i]], V[:, mask[i]]) for i in (0, 2)]
    message = (
        "Where the mask is False the weights are 0, and the output is the one that your own layer "
        "gives without these keys. True means: may attend. Check first: does the mask act before "
        "the softmax?"
    )
    shown = torch.stack([torch.as_tensor(output)[:, i] for i in (0, 2)], dim=1)
    assert_close(
        shown,
        torch.cat([one[0] for one in alone], dim=1),
        message,
        rtol=1e-5,
        atol=1e-6,
        name="output of queries 0, 2",
        against="without the hidden keys",
    )
    hidden = (weights * ~mask)[:, [0, 2]].abs().max()
    known = "'hidden keys have weight 0, and none has NaN'"
    assert_equal(bool(hidden == 0), True, message, name=known)
    assert_equal(
        bool(shown.std() > 1e-3), True, "A mask, random texts: the outputs are numbers that differ."
    )
with check("a query that may attend to nothing: 0; others not, no NaN", points=0.75):
    message = "Query 1 may attend to nothing: its weights and its output are 0, never NaN."
    output, weights = attend(Q, K, V, mask)
    assert_close(weights[:, 1], torch.zeros(2, 5), message, name="the weights of query 1")
    assert_close(output[:, 1], torch.zeros(2, 6), message, name="the output of query 1")
    message = "Queries 0 and 2 may attend to some keys: their weights sum to 1, and none is NaN."
    assert_equal(bool((weights[:, [0, 2]].sum(-1) > 0.5).all()), True, message)


@probe
def gradients(query, key, value, mask, of_output, of_weights):
    leaves = [x.clone().requires_grad_() for x in (query, key, value)]
    output, weights = KerasAttention(dtype="float64")(*leaves, mask)
    total = (output * of_output).sum() + (weights * of_weights).sum()
    if total.requires_grad:
        total.backward()
    return [leaf.grad for leaf in leaves]


with check("gradients in float64, with a mask that hides some keys, or all", points=0.75):
    doubles = [x.double() for x in (Q, K, V)]
    A, B = (torch.tensor(rng.normal(size=(2, 3, n))) for n in (6, 5))
    leaves = [x.clone().requires_grad_() for x in doubles]
    expected = by_torch(*leaves, mask)
    ((expected[0] * A).sum() + (expected[1] * B).sum()).backward()
    message = (
        "should be that of torch's function: float64, a mask that hides keys 2 and 4 of query 0 and "
        "all keys of query 1. Check first: is something detached, or NaN on the way?"
    )
    for name, one, leaf in list(zip("QKV", gradients(*doubles, mask, A, B), leaves, strict=True))[::-1]:
        assert_close(one, leaf.grad, f"The gradient of {name} {message}", name=f"the gradient of {name}")

with check("inputs of float64, a layer of float32", points=0.25, side=True):
    output, weights = attend(*doubles)
    message = "Inputs of float64, a layer of float32: its results have the layer's dtype."
    assert_equal(str(output.dtype), "torch.float32", message, name="the output's dtype")
    assert_equal(str(weights.dtype), "torch.float32", message, name="the weights' dtype")
checks_passed("KerasAttention")


# %% check="KerasAttention_batches" points=2
# Hidden checks of KerasAttention: leading axes, equal and different, masks that broadcast.
### BEGIN HIDDEN TESTS
@probe
def attend(query, key, value, mask=None):
    return KerasAttention(dtype="float64")(query, key, value, mask)


@probe
def attend_to_views(query, key, value):
    """The same numbers in transposed views, as split_heads gives them."""
    return KerasAttention(dtype="float64")(*(x.mT.contiguous().mT for x in (query, key, value)))


@probe
def attend_with_a_view(query, key, value, mask):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a softmax over one key
        return KerasAttention(dtype="float64")(query, key, value, mask.mT.contiguous().mT)


@probe
def attend_to_itself(text, mask, dtype):
    """Self-attention: one tensor for all three, under no_grad."""
    with torch.no_grad():
        return KerasAttention(dtype=dtype)(text, text, text, mask)


def each_alone(texts, lead):
    """Each text by itself, by the student's own layer."""
    output, weights = torch.empty(*lead, 4, 7).double(), torch.empty(*lead, 4, 5).double()
    for place in np.ndindex(*lead):
        one = attend(*(x.expand(*lead, *x.shape[-2:])[place][None] for x in texts))
        output[place], weights[place] = one[0][0], one[1][0]
    message = "Random texts, each alone: different texts have different outputs, and none has NaN."
    assert_equal(bool((output[0] - output[-1]).abs().max() > 1e-3), True, message)
    return output, weights


rng = check_rng()
with check("leading axes or none, a mask or none: each as alone, in float64", points=1):
    for leads in (((6,),) * 3, ((2, 3),) * 3, ((2, 1), (3,), ()), ((), (2, 3), (1, 3))):
        sizes = (4, 3), (5, 3), (5, 7)
        texts = [torch.tensor(rng.normal(size=(*a, *b))) for a, b in zip(leads, sizes, strict=True)]
        lead = torch.broadcast_shapes(*leads)
        expected, expected_weights = each_alone(texts, lead)
        message = (
            f"Leading axes {leads} of query, key and value, which broadcast: each text comes out "
            "as in your own results for that text alone."
        )
        output, weights = attend(*texts)
        assert_close(output, expected, message, name="output", against="for each text alone")
        weights = torch.as_tensor(weights).expand(expected_weights.shape)
        assert_close(
            weights, expected_weights, message, name="weights", against="for each text alone"
        )
        message = (
            f"Leading axes {leads} of query, key and value, transposed views: the same as for the "
            "same numbers in new tensors."
        )
        output, weights = attend_to_views(*texts)
        assert_close(
            output, expected, message, name="output", against="for each text alone, in new tensors"
        )
        weights = torch.as_tensor(weights).expand(expected_weights.shape)
        assert_close(
            weights,
            expected_weights,
            message,
            name="weights",
            against="for each text alone, in new tensors",
        )
    more = check_rng()
    one = [torch.tensor(more.normal(size=size)) for size in ((4, 3), (5, 3), (5, 7))]
    for lead in ((), (1, 1)):
        for shape in (None, (5,), (1, 5), (4, 5)):
            mask = None if shape is None else torch.tensor(more.random(shape) < 0.6)
            if mask is not None:
                mask[..., 1] = True  # no query without a key
            in_a_batch = attend(*(x[None] for x in one), None if mask is None else mask.clone())
            with_mask = "no mask" if mask is None else f"a mask of shape {shape}"
            message = (
                f"Query, key and value of shapes {(*lead, 4, 3)}, {(*lead, 5, 3)} and "
                f"{(*lead, 5, 7)}, {with_mask}: output {(*lead, 4, 7)} and weights "
                f"{(*lead, 4, 5)}, with your own numbers for this text in a batch of one. Check "
                "first: does the mask, or anything else, get an axis more?"
            )
            single = (
                f"One text in a batch of one, query (1, 4, 3), key (1, 5, 3) and value (1, 5, 7), "
                f"{with_mask}: output (1, 4, 7) and weights (1, 4, 5), finite."
            )
            of_batch = dict(zip(("output", "weights"), in_a_batch, strict=True))
            for name, last in (("output", 7), ("weights", 5)):
                now = of_batch[name]
                assert_equal(list(np.shape(now)), [1, 4, last], single, name=f"the shape of {name}")
                finite = bool(torch.as_tensor(now).isfinite().all())
                assert_equal(finite, True, single, name=f"'{name} is finite'")
            found = attend(*(x.expand(*lead, *x.shape) for x in one), mask)
            of_this = dict(zip(("output", "weights"), found, strict=True))
            for name, last in (("output", 7), ("weights", 5)):
                now, before = of_this[name], of_batch[name]
                meant = (*lead, 4, last)
                assert_equal(tuple(np.shape(now)), meant, message, name=f"the shape of {name}")
                assert_close(
                    now,
                    torch.as_tensor(before).reshape(meant),
                    message,
                    name=name,
                    against="in a batch of one",
                )
with check("masks of many shapes, and none; many sizes and scores", points=1):
    sizes = (3, 3, 4, 3), (3, 3, 5, 3), (3, 3, 5, 7)
    Q, K, V = (torch.arange(math.prod(size)).double().sin().reshape(size) for size in sizes)
    mask = torch.arange(60).reshape(3, 4, 5) % 7 > 1
    message = (
        "Weights of shape (3, 3, 4, 5), a mask of shape (3, 4, 5), float64: it is broadcast as "
        "one of shape (1, 3, 4, 5). Weights and output are those of torch's function."
    )
    output, weights = attend(Q, K, V, mask)
    eye = torch.eye(5).double().expand(3, 3, 5, 5)
    for name, found, x in (("weights", weights, eye), ("output", output, V)):
        expected = F.scaled_dot_product_attention(Q, K, x, attn_mask=mask[None])
        assert_close(found, expected, message, name=name, against="by torch's function")
    Q, K, V = (torch.tensor(rng.normal(size=(2, 3, *size))) for size in ((4, 3), (5, 3), (5, 7)))
    for shape in ((5,), (4, 5), (4, 1), (2, 1, 1, 5), (3, 4, 5), (2, 1, 4, 5)):
        mask = torch.tensor(rng.random(shape) < 0.6)
        mask.view(-1)[0] = False
        message = (
            f"A mask of shape {shape}, broadcast to weights of shape (2, 3, 4, 5), float64: "
            "weights and output are those of torch's function; a query without keys has zeros."
        )
        whole = mask.expand(2, 3, 4, 5)
        eye = torch.eye(5).double().expand(2, 3, 5, 5)
        output, weights = attend(Q, K, V, mask)
        for name, found, x in (("weights", weights, eye), ("output", output, V)):
            expected = F.scaled_dot_product_attention(Q, K, x, attn_mask=whole)
            assert_close(found, expected, message, name=name, against="by torch's function")
    Q, K = (torch.tensor(rng.integers(-2, 3, size=(2, n, 4)) / 2) for n in (4, 5))
    Q[..., 0], K[..., 0] = 160.0, -200.0  # every score is near -16000; float32 holds them all
    V = torch.tensor(rng.normal(size=(2, 5, 7)))
    mask = torch.tensor(rng.random((4, 5)) < 0.6)
    mask[:, 0], mask[:, 1] = True, False
    message = (
        "Scores near -16000, of hidden keys too: the keys that are not hidden share the weight. "
        "Check first: is what stands for a hidden score below every other one?"
    )
    output, weights = attend(Q, K, V, mask)
    eye = torch.eye(5).double().expand(2, 5, 5)
    for name, found, x in (("weights", weights, eye), ("output", output, V)):
        expected = F.scaled_dot_product_attention(Q, K, x, attn_mask=mask)
        assert_close(found, expected, message, name=name, against="by torch's function")
    Q, K, V = (torch.tensor(check_rng().normal(size=(2, *s))) for s in ((4, 4), (5, 4), (5, 7)))
    Q[..., 0], K[..., 0], K[:, 1, 0] = 80.0, 0.0, 50.0  # key 1: 80 * 50 / 2
    message = (
        "A key whose score lies some 2000 above all others is hidden from every query, and so are "
        "other keys, drawn at random; key 0 is not: the keys that are not hidden share the weight. "
        "Check first: if a largest score is taken off, is it that of a key that is not hidden?"
    )
    output, weights = attend(Q, K, V, mask)
    for name, found, x in (("weights", weights, eye), ("output", output, V)):
        expected = F.scaled_dot_product_attention(Q, K, x, attn_mask=mask)
        assert_close(found, expected, message, name=name, against="by torch's function")
    # Lengths that are equal, of length 1, and long; a mask that is a transposed view.
    lengths = (4, 4, 5, 3, 3), (4, 4, 4, 4, 4), (2, 3, 300, 1, 1), (1, 2, 1, 6, 2)
    for texts, n_q, n_k, d_k, d_v in lengths:
        sizes = (texts, n_q, d_k), (texts, n_k, d_k), (texts, n_k, d_v)
        Q, K, V = (torch.tensor(rng.normal(size=size)) for size in sizes)
        mask = torch.tensor(rng.random((n_q, n_k)) < 0.5)
        mask[0] = True
        eye = torch.eye(n_k).double().expand(texts, n_k, n_k)
        message = (
            f"Query, key and value of shapes {sizes}, a mask of shape {(n_q, n_k)}, which serves "
            "every text: row i says which keys query i may attend to. Weights and output are "
            "those of torch's function, float64."
        )
        expected = [F.scaled_dot_product_attention(Q, K, x, attn_mask=mask) for x in (V, eye)]
        found = attend_with_a_view(Q, K, V, mask)
        for name, one, other in list(zip(("output", "weights"), found, expected, strict=True))[::-1]:
            assert_close(one, other, message, name=name, against="by torch's function")
    # Self-attention; sizes just above a power of two, equal ones, and the first again; float32.
    shapes = (2, 33, 5), (5, 5, 5), (2, 1, 3, 65, 2), (2, 70), (2, 33, 5)
    for number, shape in enumerate(shapes):
        dtype = ("float32", "float64")[number % 2]
        n, kind = shape[-2], getattr(torch, dtype)
        text = torch.tensor(rng.normal(size=shape)).to(kind)
        text[..., 1, :] = 0.0
        eye = torch.eye(n).to(kind).expand(*shape[:-1], n)
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        masks = {"no mask": None, "a mask of True": causal | True, "a causal mask": causal}
        for what, mask in masks.items():
            expected = [
                F.scaled_dot_product_attention(text, text, x, attn_mask=mask) for x in (text, eye)
            ]
            found = attend_to_itself(text.clone(), None if mask is None else mask.clone(), dtype)
            message = (
                "Self-attention, layer(x, x, x) or layer(x, x, x, mask), under no_grad: x of "
                f"shape {shape}, a row of it 0, {dtype}, {what}. Weights and output are those of "
                "torch's function."
            )
            pairs = zip(("output", "weights"), found, expected, strict=True)
            for name, one, wanted in list(pairs)[::-1]:
                assert_close(one, wanted, message, name=name, against="by torch's function")
checks_passed("KerasAttention")
### END HIDDEN TESTS


# %% check="KerasAttention_nothing" points=1.5
# Hidden checks of KerasAttention: queries and texts with nothing to attend to, and their gradients.
### BEGIN HIDDEN TESTS
@probe
def results_and_gradients(query, key, value, mask, of_output, of_weights):
    leaves = [x.clone().requires_grad_() for x in (query, key, value)]
    output, weights = KerasAttention(dtype="float64")(*leaves, mask)
    total = (output * of_output).sum() + (weights * of_weights).sum()
    if total.requires_grad:
        total.backward()
    return output, weights, [leaf.grad for leaf in leaves]



rng = check_rng()
shapes = ((2, 4, 3), (2, 5, 3), (2, 5, 7), (2, 4, 7), (2, 4, 5))
Q, K, V, A, B = (torch.tensor(rng.normal(size=shape)) for shape in shapes)
row = torch.tensor(rng.random((4, 5)) < 0.6)
row[:, :2], row[2] = True, False
text = torch.tensor([[[True, True, False, True, False]], [[False] * 5]])
found = {name: results_and_gradients(Q, K, V, mask, A, B) for name, mask in (("row", row), ("text", text))}
with check("queries with nothing to attend to: 0; others not", points=0.75):
    for name, mask in (("row", row), ("text", text)):
        output, weights, _ = found[name]
        nothing = ~mask.expand(2, 4, 5).any(-1)
        hides = "all keys of query 2" if name == "row" else "all keys of the second text"
        message = (
            f"A mask that hides {hides}: the other queries have weights that sum to 1, none of "
            "them NaN."
        )
        assert_equal(bool((weights.sum(-1)[~nothing] > 0.5).all()), True, message)
        message = (
            f"A mask that hides {hides}: a query that may attend to nothing has weights 0 and "
            "output 0."
        )
        count = int(nothing.sum())
        assert_close(weights[nothing], torch.zeros(count, 5).double(), message, name="weights")
        assert_close(output[nothing], torch.zeros(count, 7).double(), message, name="output")
    for shape in ((4, 5), (5,), (2, 1, 5)):
        mask = torch.zeros(shape, dtype=torch.bool)
        output, weights, _ = results_and_gradients(Q, K, V, mask, A, B)
        message = (
            f"A mask of shape {shape} that is False everywhere: no query may attend to anything: "
            "all weights, (2, 4, 5), and the output, (2, 4, 7), are 0."
        )
        assert_close(weights, torch.zeros(2, 4, 5).double(), message, name="weights")
        assert_close(output, torch.zeros(2, 4, 7).double(), message, name="output")
with check("gradients, finite and right, with a mask that hides some keys, or all", points=0.75):
    for name, mask in (("row", row), ("text", text)):
        leaves = [x.clone().requires_grad_() for x in (Q, K, V)]
        eye = torch.eye(5).double().expand(2, 5, 5)
        joined = torch.cat([leaves[2], eye], dim=-1)  # torch's function then gives its weights, too
        both = F.scaled_dot_product_attention(leaves[0], leaves[1], joined, attn_mask=mask)
        (both * torch.cat([A, B], dim=-1)).sum().backward()
        hides = (
            "of shape (4, 5) that hides all keys of query 2, and of the other queries some keys, "
            "drawn at random, but not keys 0 and 1"
            if name == "row"
            else "of shape (2, 1, 5) that hides keys 2 and 4 of the first text and all of the second"
        )
        _, weights, slopes = found[name]
        lost = [letter for letter, one in zip("QKV", slopes, strict=True) if one is None]
        message = (
            f"A mask {hides}: after backward Q, K and V have gradients. Here there is none (None) "
            f"for {', '.join(lost)}. Check first: is something detached?"
        )
        assert_equal(lost, [], message, name="what has no gradient")
        message = (
            f"A mask {hides}: all gradients are finite, also where a query may attend to nothing. "
            "Check first: is there NaN on the way?"
        )
        for number, x in enumerate((Q, K, V)):
            finite = torch.as_tensor(slopes[number]).isfinite()
            known = f"where the gradient of {'QKV'[number]} is finite"
            assert_equal(finite, torch.ones(x.shape, dtype=torch.bool), message, name=known)
        message = (
            f"A mask {hides}: where it is False the weights are 0. (What this check looks at beside "
            "it are the gradients.)"
        )
        hidden = torch.as_tensor(weights).masked_fill(mask, 0.0)
        assert_close(hidden, torch.zeros(2, 4, 5).double(), message, name="the weights where False")
        message = (
            f"A mask {hides}: the gradients are those of torch's function, and 0 for what may "
            "attend to nothing. Check first: is something detached, or is a hidden key in a sum?"
        )
        for letter, one, leaf in zip("QKV", slopes, leaves, strict=True):
            assert_close(
                one,
                leaf.grad,
                message,
                name=f"the gradient of {letter}",
                against="by torch's function",
            )
    for shape in ((4, 5), (5,), (2, 1, 5)):
        slopes = results_and_gradients(Q, K, V, torch.zeros(shape, dtype=torch.bool), A, B)[2]
        lost = [letter for letter, one in zip("QKV", slopes, strict=True) if one is None]
        message = (
            f"A mask of shape {shape} that is False everywhere, inputs that require gradients: "
            "after backward Q, K and V have gradients, and these are finite. There is none (None) "
            f"for: {', '.join(lost) or 'nothing'}. Check first: do the output and the weights "
            "still hang on the inputs?"
        )
        assert_equal(lost, [], message, name="what has no gradient")
        for number, x in enumerate((Q, K, V)):
            finite = torch.as_tensor(slopes[number]).isfinite()
            known = f"where the gradient of {'QKV'[number]} is finite"
            assert_equal(finite, torch.ones(x.shape, dtype=torch.bool), message, name=known)
checks_passed("KerasAttention")
### END HIDDEN TESTS


# %% check="KerasAttention_inputs" points=0.5
# Hidden checks of KerasAttention: the inputs stay as they are, and a second call gives the same.
### SIDE CONDITION: counts once another check of KerasAttention passes.
### BEGIN HIDDEN TESTS
@probe
def one_layer_and_new_ones(calls):
    """The outputs of a new layer for each call, and those of one layer for all calls in turn."""
    alone = [KerasAttention()(*(x.clone() for x in call))[0] for call in calls]
    layer, in_turn = KerasAttention(), []
    for call in calls:
        try:
            in_turn.append(layer(*call)[0])
        except (IndexError, RuntimeError, TypeError, ValueError):
            in_turn.append(None)
    return alone, in_turn


@probe
def called_twice(query, key, value, mask):
    layer = KerasAttention()
    first, _ = layer(query, key, value, mask)
    layer(key, key, value)
    second, _ = layer(query, key, value, mask)
    return query, key, value, mask, first, second


rng = check_rng()
given = [torch.tensor(rng.normal(size=(2, *size))).float() for size in ((4, 3), (5, 3), (5, 7))]
given.append(torch.tensor(rng.random((4, 5)) < 0.5))
others = [torch.tensor(rng.normal(size=size)).float() for size in ((3, 2, 6), (3, 7, 6), (3, 7, 4))]
sure = given[3].clone()
sure[:, 1] = True  # no query without a key
calls = {
    "with a mask": [*given[:3], sure],
    "without a mask, after one with a mask": given[:3],
    "with other sizes, d_k = 6 after d_k = 3": others,
    "with the first sizes again": [*given[:3], sure],
    "without leading axes": [*(x[0] for x in given[:3]), sure],
    "with the first sizes and another mask": [*given[:3], sure.flip(0)],
    "with the first sizes and other numbers": [*(x.flip(0) for x in given[:3]), sure],
}
alone, in_turn = one_layer_and_new_ones([[x.clone() for x in call] for call in calls.values()])
for what, expected, found in zip(calls, alone, in_turn, strict=True):
    message = (
        f"One layer, called several times, here {what}: its output is the one that your layer "
        "gives when it is new, and no error comes. Check first: is anything of an earlier call "
        "kept, such as a scale, a mask or a size in self?"
    )
    assert_equal(found is None, False, message, name="'an error came'")
    assert_close(found, expected, message, name="output", against="from a new layer")
*after, first, second = called_twice(*(x.clone() for x in given))
for name, now, before in zip(("query", "key", "value", "mask"), after, given, strict=True):
    assert_equal(
        now, before, f"{name} was changed by a call.", name=name, against="before the calls"
    )
message = (
    "One layer, a random mask: called again with the same inputs, after a call without a mask, it "
    "gives its first output again, in numbers, not NaN."
)
assert_close(second, first, message, name="output", against="in the first call")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `keras.ops.where(mask, scores, number)` puts a number wherever the mask is False, and broadcasts. After the
# softmax a row without any key is NaN (with minus infinity) or an even average (with a very low number). A
# second `where` makes zeros of either, in the gradient too. This is lesson 3's function line by line.
#
# </details>
#
# Lesson 3's function and the layer, the same inputs:

# %% tags=["demonstration"]
if keras:
    draw = torch.Generator().manual_seed(3)
    Q, K, V = (torch.randn(2, n, d, generator=draw) for n, d in ((3, 4), (5, 4), (5, 6)))
    keep = torch.arange(5) < torch.tensor([5, 2])[:, None, None]  # (2, 1, 5): the second text has two words
    layer = KerasAttention()
    for mine, theirs in zip(layer(Q, K, V, keep), torch_scaled_dot_product_attention(Q, K, V, keep)):
        print("equal to 1e-6:", bool((mine - theirs).abs().max() < 1e-6))
        assert (mine - theirs).abs().max() < 1e-6

# %% [markdown]
# ### Exercise 2: `KerasMultiHeadAttention`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 25 minutes on it.
#
# Lesson 5's layer, of Keras's parts. `nn.Linear(d_model, d_model)` is `keras.layers.Dense(d_model)` here: it says
# how wide its output is, and learns the width of its input from the first call.
#
# - `KerasMultiHeadAttention(d_model, num_heads)`: parts `W_q`, `W_k`, `W_v`, `W_o`, each a
#   `keras.layers.Dense(d_model)`. A `d_model` that is not a multiple of `num_heads` is a `ValueError`.
# - `call(query, key=None, value=None, mask=None)`: `query (batch, n_q, d_model)`, `key` and `value`
#   `(batch, n_k, d_model)`; `key` defaults to `query`, `value` to `key`.
# - Returns `(output (batch, n_q, d_model), weights (batch, num_heads, n_q, n_k))`, with lesson 5's weights (each
#   kernel the transposed matrix) what lesson 5's layer gives. Gradients flow through both.
# - `mask`: `None` or boolean, True = may attend, handed over by position. `(n_q, n_k)` or
#   `(batch, n_q, n_k)`, or with axes of length 1, such as `(batch, 1, n_k)`: it serves every head.
# - A query that may attend to nothing has weights 0, so its output is the bias of `W_o`.
# - Write it with `keras.ops`; your `KerasAttention` may be used. The layer's dtype is float32.


# %% answer="KerasMultiHeadAttention"
class KerasMultiHeadAttention(keras.layers.Layer):
    """Lesson 5's multi-head attention, of four Dense layers W_q, W_k, W_v, W_o.

    Raises:
        ValueError: d_model is not a multiple of num_heads.
    """

    def __init__(self, d_model, num_heads):
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not a multiple of num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_q = keras.layers.Dense(d_model)
        self.W_k = keras.layers.Dense(d_model)
        self.W_v = keras.layers.Dense(d_model)
        self.W_o = keras.layers.Dense(d_model)
        self.attend = KerasAttention()
        ### END SOLUTION

    def call(self, query, key=None, value=None, mask=None):
        """Attend in every head.

        Args:
            query: (batch, n_q, d_model).
            key: (batch, n_k, d_model); None means query.
            value: (batch, n_k, d_model); None means key.
            mask: boolean (n_q, n_k) or (batch, n_q, n_k), or with axes of length 1; True = may
                attend; serves every head.

        Returns:
            output (batch, n_q, d_model) and weights (batch, num_heads, n_q, n_k).
        """
        ### BEGIN SOLUTION
        ops = keras.ops
        key = query if key is None else key
        value = key if value is None else value

        def heads(x):
            """(batch, n, d_model) -> (batch, num_heads, n, d_head)"""
            batch, n, d_model = x.shape
            return ops.swapaxes(ops.reshape(x, (batch, n, self.num_heads, d_model // self.num_heads)), 1, 2)

        if mask is not None:
            mask = ops.expand_dims(mask, -3)  # (1, n_q, n_k) or (batch, 1, n_q, n_k)
        Q, K, V = heads(self.W_q(query)), heads(self.W_k(key)), heads(self.W_v(value))
        joined, weights = self.attend(Q, K, V, mask)  # (batch, num_heads, n_q, d_head)
        return self.W_o(ops.reshape(ops.swapaxes(joined, 1, 2), query.shape)), weights
        ### END SOLUTION


# %% check="KerasMultiHeadAttention" points=5
@probe
def attend(state, num_heads, calls):
    """What the four parts are, and the results of each call with these weights."""
    d_model = len(state["W_q.bias"])
    layer, parts = KerasMultiHeadAttention(d_model, num_heads), []
    layer(calls[0][0].clone())  # the first call builds
    for name in ("W_q", "W_k", "W_v", "W_o"):
        part = getattr(layer, name, None)
        shapes = [tuple(one.shape) for one in getattr(part, "weights", [])]
        parts.append([name, type(part).__name__, *shapes])
        if parts[-1] != [name, "Dense", (d_model, d_model), (d_model,)]:
            return parts, []
        part.kernel.assign(state[f"{name}.weight"].T)
        part.bias.assign(state[f"{name}.bias"])
    return parts, [layer(*(x if x is None else x.clone() for x in call)) for call in calls]


rng = check_rng()
ours = MultiHeadAttention(12, 3)
with torch.no_grad():
    for parameter in ours.parameters():
        parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
state = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
query, key, value = (torch.tensor(rng.normal(size=(2, n, 12))).float() for n in (4, 5, 5))
keep = torch.tensor([True, True, False, True, False])
some = keep.repeat(4, 1)
row = some.clone()
row[1] = False
texts = torch.stack([some, ~some])
calls = {
    "plain": (query, key, value),
    "key": (query, key),
    "key twice": (query, key, key),
    "query": (query,),
    "query thrice": (query, query, query),
    "some": (query, key, value, some),
    "without the hidden": (query, key[:, keep], value[:, keep]),
    "row": (query, key, value, row),
    "texts": (query, key, value, texts),
    "first": (query[:1], key[:1], value[:1], texts[:1]),
    "second": (query[1:], key[1:], value[1:], texts[1:]),
}
parts, results = attend(state, 3, list(calls.values()))
expected = [[name, "Dense", (12, 12), (12,)] for name in ("W_q", "W_k", "W_v", "W_o")]
message = "After the first call the four parts should be Dense layers with kernel (12, 12) and bias."
assert_equal(parts, expected, message, name="the parts, with the shapes of their weights")
found = dict(zip(calls, results, strict=True))
output, weights = found["plain"]
close = {"rtol": 1e-5, "atol": 1e-5}
with torch.no_grad():
    expected, expected_weights = ours(query, key, value)
with check("the weights of every head", points=1.25):
    message = (
        "Three heads, query, key and value that differ: the weights (2, 3, 4, 5) should be lesson 5's. "
        "Check first: is each head 4 features that stand side by side, and is the divisor that of "
        "a head?"
    )
    assert_close(weights, expected_weights, message, name="weights", **close)
with check("the output", points=1.25):
    message = (
        "The output (2, 4, 12) should be lesson 5's. Check first: are the heads joined as they "
        "were cut, and does W_o come last?"
    )
    assert_close(output, expected, message, name="output", **close)
message = "Random texts have outputs with numbers that differ."
with check("key is query, and value key, where they are not given", points=0.75):
    for one, other in (("key", "key twice"), ("query", "query thrice")):
        what = f"layer({', '.join(['query', 'key'][: len(calls[one])])}) should be"
        full = f"{what} layer({other.split()[0]}, ...) with all three given."
        against = "with all three given"
        assert_close(found[one][0], found[other][0], full, name="output", against=against, **close)
        assert_equal(bool(found[other][0].std() > 1e-3), True, message)
with check("a mask, as without the hidden keys", points=1):
    against = "without the hidden keys"
    said = "A mask (4, 5) hides keys 2 and 4 from every query: the output is as without these keys."
    one, other = found["some"][0], found["without the hidden"][0]
    assert_close(one, other, said, name="output", against=against, **close)
    assert_equal(bool(other.std() > 1e-3), True, message)
with check("a query that may attend to nothing has weights 0", points=0.25):
    said = "A mask (4, 5) hides all keys from query 1: its weights are 0, in every head, not NaN."
    assert_close(found["row"][1][:, :, 1], torch.zeros(2, 3, 5), said, name="weights of query 1")
    said = "A query that may attend to some keys has weights above 0."
    assert_equal(bool((found["row"][1][:, :, 0].sum(-1) > 0.5).all()), True, said)
with check("a mask for each text: each as alone", points=0.5):
    said = "A mask (2, 4, 5) hides other keys in each of two texts: each is as alone with its mask."
    alone = torch.cat([found["first"][0], found["second"][0]])
    assert_close(found["texts"][0], alone, said, name="output", against="for each text alone", **close)
    assert_equal(bool(alone.std() > 1e-3), True, message)
checks_passed("KerasMultiHeadAttention")


# %% check="KerasMultiHeadAttention_masks" points=2
# Hidden checks of KerasMultiHeadAttention: masks of all shapes, also where batch, heads and lengths are equal.
### BEGIN HIDDEN TESTS
@probe
def attend(state, num_heads, query, key, value, masks):
    layer = KerasMultiHeadAttention(len(state["W_q.bias"]), num_heads)
    layer(query.clone(), key.clone())
    for name in ("W_q", "W_k", "W_v", "W_o"):
        getattr(layer, name).kernel.assign(state[f"{name}.weight"].T)
        getattr(layer, name).bias.assign(state[f"{name}.bias"])
    return [layer(query, key, value, None if mask is None else mask.clone()) for mask in masks]


rng = check_rng()
ours = MultiHeadAttention(12, 3)
with torch.no_grad():
    for parameter in ours.parameters():
        parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
state = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
close, same = {"rtol": 1e-5, "atol": 1e-5}, "by lesson 5's layer"
found = {}
for sizes, shapes in (
    ((2, 4, 5), ((4, 5), (2, 4, 5), (2, 1, 5), (1, 5), (2, 4, 1))),
    ((3, 3, 3), ((3, 3), (3, 3, 3), (3, 1, 3))),  # as many texts as heads, queries and keys
    ((1, 1, 2), ((1, 2), (1, 1, 2))),
):
    batch, n_q, n_k = sizes
    texts = [torch.tensor(rng.normal(size=(batch, n, 12))).float() for n in (n_q, n_k, n_k)]
    masks = [torch.tensor(rng.random(shape) < 0.6) for shape in shapes]
    for mask in masks:
        mask[..., 0] = True
    with torch.no_grad():
        expected = [ours(*texts, mask=mask) for mask in masks]
    for shape, one, other in zip(shapes, attend(state, 3, *texts, masks), expected, strict=True):
        found[sizes, shape] = one, other
with check("masks of two axes", points=0.75):
    for (sizes, shape), (one, other) in found.items():
        if len(shape) == 2:
            message = f"batch, n_q, n_k = {sizes}, a mask {shape}: the results should be lesson 5's."
            assert_close(one[1], other[1], message, name="weights", against=same, **close)
            assert_close(one[0], other[0], message, name="output", against=same, **close)
with check("masks of three axes", points=1):
    for (sizes, shape), (one, other) in found.items():
        if len(shape) == 3:
            message = (
                f"batch, n_q, n_k = {sizes}, a mask {shape}: its first axis are the texts, and it serves "
                "every head. The results should be lesson 5's."
            )
            assert_close(one[1], other[1], message, name="weights", against=same, **close)
            assert_close(one[0], other[0], message, name="output", against=same, **close)
with check("an empty text beside another one", points=0.25):
    texts = [torch.tensor(rng.normal(size=(2, n, 12))).float() for n in (4, 5, 5)]
    mask = torch.tensor([True, False])[:, None, None].repeat(1, 1, 5)
    output, weights = attend(state, 3, *texts, [mask])[0]
    message = "A mask (2, 1, 5) hides all of the second text: its weights are 0."
    assert_close(weights[1], torch.zeros(3, 4, 5), message, name="the weights of the second text")
    message = "A mask (2, 1, 5) hides all of the second text: its output is the bias of W_o."
    bias = state["W_o.bias"].expand(4, 12)
    assert_close(output[1], bias, message, name="the output of the second text", **close)
    message = "The first text, of which nothing is hidden, has weights that sum to 1."
    assert_equal(bool((weights[0].sum(-1) > 0.5).all()), True, message)
checks_passed("KerasMultiHeadAttention")
### END HIDDEN TESTS


# %% check="KerasMultiHeadAttention_sizes" points=1
# Hidden checks of KerasMultiHeadAttention: other numbers of heads, one layer for texts of several lengths.
### BEGIN HIDDEN TESTS
@probe
def attend(state, num_heads, calls):
    layer = KerasMultiHeadAttention(len(state["W_q.bias"]), num_heads)
    layer(calls[0][0].clone())
    for name in ("W_q", "W_k", "W_v", "W_o"):
        getattr(layer, name).kernel.assign(state[f"{name}.weight"].T)
        getattr(layer, name).bias.assign(state[f"{name}.bias"])
    return [layer(*call) for call in calls]


rng = check_rng()
close, same = {"rtol": 1e-5, "atol": 1e-5}, "by lesson 5's layer"
for d_model, num_heads in ((12, 1), (8, 4), (15, 5)):
    ours = MultiHeadAttention(d_model, num_heads)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
    state = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
    calls = [
        [torch.tensor(rng.normal(size=(batch, n, d_model))).float() for n in lengths]
        for batch, *lengths in ((2, 4, 5, 5), (3, 1, 6, 6), (1, 7, 2, 2))
    ]
    for call, (output, weights) in zip(calls, attend(state, num_heads, calls), strict=True):
        with torch.no_grad():
            expected, expected_weights = ours(*call)
        shapes = ", ".join(str(tuple(x.shape)) for x in call)
        message = (
            f"KerasMultiHeadAttention({d_model}, {num_heads}), one layer for several calls, here of "
            f"{shapes}: the results should be lesson 5's."
        )
        assert_close(weights, expected_weights, message, name="weights", against=same, **close)
        assert_close(output, expected, message, name="output", against=same, **close)
### END HIDDEN TESTS


# %% check="KerasMultiHeadAttention_gradients" points=1
# Hidden checks of KerasMultiHeadAttention: gradients of the parts, through the output and the weights.
### BEGIN HIDDEN TESTS
@probe
def gradients(state, num_heads, query, key, of_output, of_weights):
    """Of the inputs, then of kernels and biases; None where there is none."""
    layer = KerasMultiHeadAttention(len(state["W_q.bias"]), num_heads)
    layer(query.clone())
    parts = [getattr(layer, name) for name in ("W_q", "W_k", "W_v", "W_o")]
    for name, part in zip(("W_q", "W_k", "W_v", "W_o"), parts, strict=True):
        part.kernel.assign(state[f"{name}.weight"].T)
        part.bias.assign(state[f"{name}.bias"])
    leaves = [x.clone().requires_grad_() for x in (query, key)]
    output, weights = layer(*leaves)
    total = (output * of_output).sum() + (weights * of_weights).sum()
    if total.requires_grad:
        total.backward()
    held = [one.value.grad for part in parts for one in (part.kernel, part.bias)]
    return [*(leaf.grad for leaf in leaves), *(x if x is None else torch.as_tensor(x) for x in held)]


rng = check_rng()
ours = MultiHeadAttention(12, 3)
with torch.no_grad():
    for parameter in ours.parameters():
        parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
state = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
shapes = (2, 4, 12), (2, 5, 12), (2, 4, 12), (2, 3, 4, 5)
query, key, A, B = (torch.tensor(rng.normal(size=shape)).float() for shape in shapes)
names = ["query", "key", *(f"{part}.{what}" for part in ("W_q", "W_k", "W_v", "W_o") for what in ("kernel", "bias"))]
for through, out, wei in (("the output", A, 0 * B), ("both", A, B)):
    leaves = [x.clone().requires_grad_() for x in (query, key)]
    ours.zero_grad()
    output, weights = ours(*leaves)
    ((output * out).sum() + (weights * wei).sum()).backward()
    expected = [*(leaf.grad for leaf in leaves), *(one.grad.mT if one.ndim == 2 else one.grad for one in ours.parameters())]
    found = gradients(state, 3, query, key, out, wei)
    lost = [name for name, one in zip(names, found, strict=True) if one is None]
    message = f"After backward through {through} there is no gradient for: {', '.join(lost)}."
    assert_equal(lost, [], message, name="what has no gradient")
    for name, one, other in zip(names, found, expected, strict=True):
        message = f"The gradient of {name} through {through} should be that of lesson 5's layer."
        assert_close(one, other, message, rtol=1e-4, atol=1e-4, name=f"the gradient of {name}")
### END HIDDEN TESTS


# %% check="KerasMultiHeadAttention_misuse" points=0.5
# Hidden checks of KerasMultiHeadAttention: heads that do not fit, and arguments that stay as they are.
### SIDE CONDITION: counts once another check of KerasMultiHeadAttention passes.
### BEGIN HIDDEN TESTS
@probe
def made(d_model, num_heads):
    try:
        KerasMultiHeadAttention(d_model, num_heads)
    except ValueError:
        return "a ValueError"
    return "a layer"


@probe
def after_the_call(query, key, value, mask):
    KerasMultiHeadAttention(12, 3)(query, key, value, mask)
    return query, key, value, mask


for d_model, num_heads in ((12, 5), (10, 4), (3, 6)):
    message = f"d_model = {d_model} is no multiple of num_heads = {num_heads}: a ValueError."
    assert_equal(made(d_model, num_heads), "a ValueError", message, name="what comes")
message = "d_model = 12 is a multiple of num_heads = 3: no error."
assert_equal(made(12, 3), "a layer", message, name="what comes")
rng = check_rng()
given = [torch.tensor(rng.normal(size=(2, n, 12))).float() for n in (4, 5, 5)]
given.append(torch.tensor(rng.random((4, 5)) < 0.6))
after = after_the_call(*(x.clone() for x in given))
for name, now, before in zip(("query", "key", "value", "mask"), after, given, strict=True):
    assert_equal(now, before, f"{name} was changed by a call.", name=name, against="before it")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Make the four `Dense` layers in `__init__`, after `super().__init__()`. To cut `(batch, n, d_model)` into heads,
# `reshape` to `(batch, n, num_heads, d_head)` first and swap axes then, as in lesson 5; back in the opposite order.
# A mask of three axes meets weights of four: it needs an axis of length 1 for the heads, third from the end.
#
# </details>
#
# The same text and the same numbers in lesson 5's layer and in yours:

# %% tags=["demonstration"]
if keras:
    torch.manual_seed(4)
    ours, yours = MultiHeadAttention(12, 3), KerasMultiHeadAttention(12, 3)
    x, keep = torch.randn(2, 5, 12), torch.ones(5, 5).tril().bool()
    yours(x)  # the first call builds the parts
    for name in ("W_q", "W_k", "W_v", "W_o"):
        linear, dense = getattr(ours, name), getattr(yours, name)
        dense.kernel.assign(linear.weight.T.detach())
        dense.bias.assign(linear.bias.detach())
    with torch.no_grad():
        for one, other in zip(ours(x, mask=keep), yours(x, None, None, keep)):
            print("equal to 1e-6:", bool((one - other).abs().max() < 1e-6))
            assert (one - other).abs().max() < 1e-5

# %% [markdown]
# ## 2. Keras's own layer
#
# `keras.layers.MultiHeadAttention(num_heads, key_dim)` is lesson 5's layer. A **predict, then run** first.
# We want a layer as wide as lesson 5's `MultiHeadAttention(12, 3)`, and write
# `keras.layers.MultiHeadAttention(num_heads=3, key_dim=12)`. How many features have the queries of all heads
# together?

# %% tags=["demonstration", "guess"]
guess_width = 12  # write a number

# %% tags=["demonstration"]
if keras:
    wide = keras.layers.MultiHeadAttention(num_heads=3, key_dim=12)
    wide.build((None, None, 12), (None, None, 12))
    width = math.prod(wide.query_dense.kernel.shape[1:])
    print("shape of its output:", tuple(wide(torch.zeros(1, 5, 12), torch.zeros(1, 5, 12)).shape))

if keras:
    reply("guess_width", guess_width, width, "key_dim is the width of one head, not of all together.")

# %% [markdown]
# No error, and the output has the right shape: the layer is three times as wide inside, and three times as
# large. PyTorch's `embed_dim` is the width of all heads together; Keras's `key_dim` is that of
# **one head**.
#
# ### Short answer 1: `answer_key_dim`
#
# Which layer has the sizes of lesson 5's `MultiHeadAttention(64, 8)`, built for inputs of width 64?
#
# - a) `keras.layers.MultiHeadAttention(num_heads=8, key_dim=64)`
# - b) `keras.layers.MultiHeadAttention(num_heads=8, key_dim=8)`
# - c) `keras.layers.MultiHeadAttention(num_heads=64, key_dim=8)`
# - d) `keras.layers.MultiHeadAttention(num_heads=8, key_dim=8, value_dim=64)`

# %% answer="answer_key_dim"
### BEGIN SOLUTION
answer_key_dim = "b"
### END SOLUTION

# %% check="answer_key_dim" points=1
check_answer("answer_key_dim", answer_key_dim)

# %% [markdown]
# Now its weights, beside those of lesson 5's layer:

# %% tags=["demonstration"]
ours = MultiHeadAttention(12, 3)
for name, parameter in ours.named_parameters():
    print(f"{name:12s} {tuple(parameter.shape)}")
if keras:
    theirs = keras.layers.MultiHeadAttention(num_heads=3, key_dim=4)
    theirs.build((None, None, 12), (None, None, 12))
    for part in (theirs.query_dense, theirs.key_dense, theirs.value_dense, theirs.output_dense):
        print(f"{part.name:17s}", *(f"{one.name} {tuple(one.shape)}" for one in part.weights))

# %% [markdown]
# Each part is an `EinsumDense`, with a `kernel` and a `bias`. The heads have an axis of their own: `kernel` of
# `query_dense` is `(d_model, num_heads, key_dim)`, and of `output_dense` `(num_heads, value_dim, d_model)`.
# The numbers are the same, transposed and cut. Here is where each number goes, for a small layer:
# `d_model = 4`, two heads.

# %% tags=["demonstration"]
table = 10 * np.arange(4)[:, None] + np.arange(4)  # entry (out, in) of W_q.weight: 10 * out + in
heads = np.array([[0, 10], [1, 11], [2, 12], [3, 13]]), np.array([[20, 30], [21, 31], [22, 32], [23, 33]])
figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), gridspec_kw={"width_ratios": [4, 3, 3]})
for axes, numbers, title, rows, columns in (
    (panels[0], table, "W_q.weight (out, in)", "out", "in"),
    (panels[1], heads[0], "kernel[:, 0], head 0", "in", "feature"),
    (panels[2], heads[1], "kernel[:, 1], head 1", "in", "feature"),
):
    head = np.asarray(numbers) // 20  # outputs 0 and 1 are head 0, outputs 2 and 3 head 1
    axes.imshow(head, cmap="Pastel1", vmin=0, vmax=8)
    for (i, j), number in np.ndenumerate(numbers):
        axes.text(j, i, f"{number:02d}", ha="center", va="center")
    axes.set_xticks(range(numbers.shape[1]))
    axes.set_yticks(range(4))
    axes.set_title(title)
    axes.set_ylabel(rows)
    axes.set_xlabel(columns)
figure.tight_layout()
show(
    figure,
    "Figure 1. Where the numbers of W_q.weight go. Each stands for its own place: 31 is row 3, column 1. A "
    "head's rows in PyTorch become its columns in Keras.",
    "Three tables. Left, four rows and four columns; the upper two rows are coloured as head 0, the lower two "
    "as head 1. Right, two tables of four rows and two columns: that of head 0 holds the first two rows of "
    "the left table as its columns, that of head 1 the other two.",
    text_table(table, [f"out {i}" for i in range(4)], [f"in {i}" for i in range(4)], corner="out \\ in"),
)  # fmt: skip

# %% [markdown]
# ### Exercise 3: `load_keras_weights`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 15 minutes on it.
#
# Copy the weights of lesson 5's layer into Keras's, so that both give the same output.
#
# - `keras_attention`: a `keras.layers.MultiHeadAttention` that is built, changed in place. It has
#   `use_bias=True`. `attention`: a `MultiHeadAttention`. Returns nothing.
# - `attention.num_heads` is the number of heads.
# - Keras's parts are `query_dense`, `key_dense`, `value_dense`, `output_dense`, each with `kernel` and `bias`.
#   `kernel.assign(numbers)` copies numbers into it; it takes torch tensors and NumPy arrays.
# - Both layers may be of float64 (`attention.double()`, `dtype="float64"`): then all digits are copied.
# - Afterwards no memory is shared, and `attention` is as it was, whether it was training or not.
# - Sizes that differ are a `ValueError`, and then **nothing has been copied**: another number of heads, another
#   `key_dim`, a `value_dim` that is not `key_dim`, or a layer that was built for inputs or outputs of
#   another width.


# %% answer="load_keras_weights"
def load_keras_weights(keras_attention, attention):
    """Copy the weights of lesson 5's layer into Keras's, so that both give the same output.

    Args:
        keras_attention: a built keras.layers.MultiHeadAttention, changed in place.
        attention: MultiHeadAttention; not changed, shares no memory afterwards.

    Raises:
        ValueError: sizes differ; then nothing has been copied.
    """
    ### BEGIN SOLUTION
    d_model, heads = attention.W_q.in_features, attention.num_heads
    d_head = d_model // heads
    inward, outward = (d_model, heads, d_head), (heads, d_head, d_model)
    moves = []
    for name, linear, shape in (
        ("query", attention.W_q, inward),
        ("key", attention.W_k, inward),
        ("value", attention.W_v, inward),
        ("output", attention.W_o, outward),
    ):
        part = getattr(keras_attention, f"{name}_dense")
        if tuple(part.kernel.shape) != shape:
            raise ValueError(f"the {name} kernel has shape {tuple(part.kernel.shape)}, not {shape}")
        moves.append((part.kernel, linear.weight.T.reshape(shape)))
        moves.append((part.bias, linear.bias.reshape(part.bias.shape)))
    for variable, numbers in moves:
        variable.assign(numbers.detach())
    ### END SOLUTION


# %% check="load_keras_weights" points=5
@probe
def loaded(state, d_model, num_heads, query, key, value, mask):
    attention = MultiHeadAttention(d_model, num_heads)
    attention.load_state_dict(state)
    theirs = keras.layers.MultiHeadAttention(num_heads, d_model // num_heads)
    theirs.build(query.shape, value.shape, key.shape)
    theirs.set_weights([np.full_like(one, 0.1) for one in theirs.get_weights()])  # drawn anew at each start
    load_keras_weights(theirs, attention)
    both = theirs(query, value, key, attention_mask=mask, return_attention_scores=True)
    before = theirs(query, value, key)
    dense = theirs.query_dense, theirs.key_dense, theirs.value_dense, theirs.output_dense
    copied = [torch.tensor(one).flatten().sort()[0] for part in dense for one in part.get_weights()]
    after = {name: tensor.detach().clone() for name, tensor in attention.state_dict().items()}
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.zero_()
    return *both, before, theirs(query, value, key), after, copied


rng = check_rng()
ours = MultiHeadAttention(12, 3)
with torch.no_grad():
    for parameter in ours.parameters():
        parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
state = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
texts = [torch.tensor(rng.normal(size=(2, n, 12))).float() for n in (4, 5, 5)]
mask = torch.tensor(rng.random((2, 4, 5)) < 0.6)
mask[..., 2] = True
output, weights, before, later, after, copied = loaded(state, 12, 3, *texts, mask)
with torch.no_grad():
    expected, expected_weights = ours(*texts, mask=mask)
    unmasked, _ = ours(*texts)
close = {"rtol": 1e-5, "atol": 1e-5}
with check("the weights of the heads", points=1.5):
    message = (
        "With a mask, Keras's layer should give the heads' weights of lesson 5's. W_q.weight is "
        "(out, in), kernel is (in, head, feature), and the features of a head stand side by side. "
        "Check first: do the biases of queries and keys arrive, too?"
    )
    assert_close(weights, expected_weights, message, name="weights", **close)
with check("the output", points=2):
    message = (
        "Keras's layer should give the output of lesson 5's, {}. Check first: do the kernels and "
        "biases of value_dense and output_dense hold the numbers of W_v and W_o, each at its place?"
    )
    assert_close(
        output, expected, message.format("with a mask"), name="output with a mask", **close
    )
    message = message.format("without a mask")
    assert_close(before, unmasked, message, name="output without a mask", **close)
with check("no memory is shared; the numbers of W_q arrive", points=0.5):
    message = (
        "attention's parameters are set to zero afterwards: the Keras layer should give its own "
        "output as before. Check first: do the two share memory?"
    )
    assert_close(later, before, message, name="the output", against="before they were set to zero")
    assert_equal(
        bool(torch.as_tensor(before).std() > 1e-3),
        True,
        "Random texts: the outputs are numbers that differ.",
    )
    numbers = ours.W_q.weight.detach().flatten().sort()[0]
    message = "The kernel of query_dense should hold the numbers of W_q.weight, in whatever order."
    assert_close(copied[0], numbers, message, name="the sorted numbers", **close)
with check("every number, in whatever order", points=0.25):
    places = [f"{part}_dense.{kind}" for part in ("query", "key", "value", "output") for kind in ("kernel", "bias")]
    assert_equal(
        len(copied), 8, "Keras's layer holds four kernels and four biases.", name="how many arrays"
    )
    for place, found, (name, parameter) in zip(places, copied, ours.named_parameters(), strict=True):
        numbers = parameter.detach().flatten().sort()[0]
        message = f"{place} should hold the numbers of {name}."
        assert_close(found, numbers, message, name="its sorted numbers", **close)
with check("attention stays as it is", points=0.25, side=True):
    message = (
        "After loading, attention's parameters should be what they were before: the same numbers, "
        "of the same dtype."
    )
    assert_equal(after, state, message, name="attention.state_dict()")


@probe
def refused(state, d_model, num_heads, settings, widths):
    attention = MultiHeadAttention(d_model, num_heads)
    attention.load_state_dict(state)
    theirs = keras.layers.MultiHeadAttention(**settings)
    theirs.build(*((None, None, width) for width in widths))
    theirs.set_weights([np.full_like(one, 0.1) for one in theirs.get_weights()])  # drawn anew at each start
    before = [np.array(one) for one in theirs.get_weights()]
    try:
        load_keras_weights(theirs, attention)
    except ValueError:
        return before, theirs.get_weights()
    return None


with check("sizes that differ", points=0.5, side=True):
    for settings, widths in (
        ({"num_heads": 3, "key_dim": 12}, (12, 12, 12)),
        ({"num_heads": 2, "key_dim": 6}, (12, 12, 12)),
        ({"num_heads": 3, "key_dim": 4, "value_dim": 5}, (12, 12, 12)),
        ({"num_heads": 3, "key_dim": 4}, (8, 8, 8)),
    ):
        found = refused(state, 12, 3, settings, widths)
        message = (
            f"MultiHeadAttention(12, 3) does not fit into a layer of {settings}, built for width "
            f"{widths[0]}."
        )
        assert_equal(found is not None, True, f"{message} This should be a ValueError.", name="'refused'")
        message = (
            f"{message} After the ValueError the Keras layer should hold what it held before. Check "
            "first: are all sizes looked at first? (To put numbers back takes copies of them.)"
        )
        assert_equal(found[1], found[0], message, name="the Keras layer's weights")
checks_passed("load_keras_weights")


# %% check="load_keras_weights_sizes" points=3
# Hidden checks of load_keras_weights: other widths and numbers of heads, a layer loaded twice.
### BEGIN HIDDEN TESTS
@probe
def loaded(states, d_model, num_heads, query, key, value, training, settings):
    theirs = keras.layers.MultiHeadAttention(num_heads, d_model // num_heads, **settings)
    theirs.build(query.shape, value.shape, key.shape)
    theirs.set_weights([np.full_like(one, 0.1) for one in theirs.get_weights()])  # drawn anew at each start
    for state in states:
        attention = MultiHeadAttention(d_model, num_heads)
        attention.load_state_dict(state)
        attention.train(training).requires_grad_(training)
        try:
            load_keras_weights(keras_attention=theirs, attention=attention)
        except ValueError:  # its text is the answer's own, and may say what it was given
            return "a ValueError", None
    return "nothing", theirs(query, value, key, return_attention_scores=True)


@probe
def numbers_of_float64(state, d_model, num_heads):
    attention = MultiHeadAttention(d_model, num_heads).double()
    attention.load_state_dict(state)
    theirs = keras.layers.MultiHeadAttention(num_heads, d_model // num_heads, dtype="float64")
    theirs.build(*[(2, 5, d_model)] * 3)
    theirs.set_weights([np.full_like(one, 0.1) for one in theirs.get_weights()])  # drawn anew at each start
    load_keras_weights(theirs, attention)
    dense = theirs.query_dense, theirs.key_dense, theirs.value_dense, theirs.output_dense
    return [torch.tensor(one).flatten().sort()[0] for part in dense for one in part.get_weights()]


rng, more = check_rng(), check_rng()
found = []
widths = (12, 1), (12, 12), (8, 2), (15, 5), (9, 3), (1, 1), (35, 5), (66, 2)
for d_model, num_heads in widths:
    states, draw = [], rng if d_model < 16 else more
    scale = 0.4 if d_model < 32 else 0.1  # wide sums: no more rounding than in narrow ones
    for _ in range(2):
        ours = MultiHeadAttention(d_model, num_heads)
        with torch.no_grad():
            for parameter in ours.parameters():
                parameter.copy_(torch.tensor(scale * draw.normal(size=tuple(parameter.shape))))
        if states and d_model == 9:  # numbers into which the second layer's are written: no zeros
            for part in (ours.W_q, ours.W_k, ours.W_v, ours.W_o):
                nn.init.zeros_(part.bias)
        states.append(dict(ours.state_dict()))
    texts = [torch.tensor(draw.normal(size=(2, n, d_model))).float() for n in (3, 6, 6)]
    with torch.no_grad():
        training = d_model % 2 == 0
        raised, both = loaded(states, d_model, num_heads, *texts, training, {})
        mode = "training mode" if training else "evaluation mode, frozen,"
        message = (
            f"MultiHeadAttention({d_model}, {num_heads}) in {mode} and a Keras layer with "
            f"num_heads = {num_heads}, key_dim = {d_model // num_heads}, built for width "
            f"{d_model}: the sizes fit, and no ValueError is asked for. Check first: do axes of "
            "length 1 stay, where there are some?"
        )
        assert_equal(raised, "nothing", message, name="what is raised")
        found.append((d_model, num_heads, both, ours(*texts)))
close = {"rtol": 1e-5, "atol": 1e-5}
with check("the weights of the heads", points=1.5):
    for d_model, num_heads, (_, weights), (_, expected) in found:
        message = (
            f"d_model = {d_model}, num_heads = {num_heads}, a Keras layer that is loaded twice: "
            "it should give the heads' weights of the second of lesson 5's layers."
        )
        if d_model == 9:  # biases of 0: in the outputs below
            continue
        assert_close(weights, expected, message, name="weights", **close)
with check("the output; float64 with all digits", points=1.5):
    for d_model, num_heads, (output, _), (expected, _) in found:
        zeros = ", whose biases are 0" * (d_model == 9)
        message = (
            f"d_model = {d_model}, num_heads = {num_heads}, a Keras layer that is loaded twice: "
            f"it should give the output of the second of lesson 5's layers{zeros}."
        )
        assert_close(output, expected, message, name="output", **close)
    ours = MultiHeadAttention(12, 3)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(torch.tensor(0.4 * more.normal(size=tuple(parameter.shape))))
        texts = [torch.tensor(more.normal(size=(2, n, 12))).float() for n in (3, 6, 6)]
        expected, _ = ours(*texts)
    for width in (12, (12,)):
        given = dict(ours.state_dict())
        raised, both = loaded([given], 12, 3, *texts, True, {"output_shape": width})
        message = (
            "MultiHeadAttention(12, 3) and a Keras layer with num_heads = 3, key_dim = 4, "
            f"output_shape = {width}, built for width 12: the sizes fit, so no ValueError, and the "
            "output of lesson 5's layer."
        )
        assert_equal(raised, "nothing", message, name="what is raised")
        assert_close(both[0], expected, message, name="output", **close)
    state = {
        name: torch.tensor(rng.normal(size=tuple(value.shape)))
        for name, value in MultiHeadAttention(12, 3).state_dict().items()
    }
    for number, name in enumerate(name for name in state if name.endswith("bias")):
        state[name] *= 10.0 ** (3 + number)
    message = (
        "Both layers are of float64, attention after .double(): all digits of attention's "
        "parameters are copied, in whatever order. The biases have the sizes 1e3 to 1e6."
    )
    copied = numbers_of_float64(state, 12, 3)
    assert_equal(len(copied), 8, message, name="how many arrays")
    for one, (name, value) in zip(copied, state.items(), strict=True):
        if name == "W_k.bias":  # whether that is copied at all the visible checks say
            continue
        numbers = value.flatten().sort()[0]
        where = f"{message} Here: {name}."
        assert_close(one, numbers, where, rtol=1e-12, precise=True, name="sorted numbers")
        assert_equal(one, numbers, f"{where} To the last digit.", name="sorted numbers")
checks_passed("load_keras_weights")
### END HIDDEN TESTS


# %% check="load_keras_weights_memory" points=1.5
# Hidden checks of load_keras_weights: what is changed afterwards, in either layer, changes that layer alone,
# and both can still be trained.
### BEGIN HIDDEN TESTS
@probe
def afterwards(state, d_model, num_heads, query, direction):
    attention = MultiHeadAttention(d_model, num_heads)
    attention.load_state_dict(state)
    theirs = keras.layers.MultiHeadAttention(num_heads, d_model // num_heads)
    theirs.build(query.shape, query.shape)
    theirs.set_weights([np.full_like(one, 0.1) for one in theirs.get_weights()])  # drawn anew at each start
    nothing = load_keras_weights(theirs, attention)
    total = (theirs(query, query) * direction).sum()
    if total.requires_grad:
        total.backward()
    slopes = [torch.as_tensor(one.value.grad) for one in theirs.trainable_weights if one.value.grad is not None]
    learns = [parameter.requires_grad for parameter in attention.parameters()]
    modes = [module.training for module in attention.modules()]
    no_gradient = [parameter.grad is None for parameter in attention.parameters()]
    for one in theirs.weights:
        one.assign(np.ones(one.shape))
    kept = {name: tensor.detach().clone() for name, tensor in attention.state_dict().items()}
    return nothing is None, slopes, learns, modes, no_gradient, kept


@probe
def left_alone(d_model, num_heads, words):
    """An attention in evaluation mode, with gradients, a part of it frozen: before and after."""
    attention = MultiHeadAttention(d_model, num_heads)
    attention(words)[0].square().sum().backward()
    attention.eval()
    attention.W_v.train()
    attention.W_k.requires_grad_(False)

    def state():
        modes = [module.training for module in attention.modules()]
        learns = [parameter.requires_grad for parameter in attention.parameters()]
        slopes = [parameter.grad is not None for parameter in attention.parameters()]
        return modes, learns, slopes, torch.is_grad_enabled()

    before = state()
    theirs = keras.layers.MultiHeadAttention(num_heads, d_model // num_heads)
    theirs.build(words.shape, words.shape)
    load_keras_weights(theirs, attention)
    after = state()
    torch.set_grad_enabled(before[-1])
    return before, after


rng = check_rng()
ours = MultiHeadAttention(12, 3)
with torch.no_grad():
    for parameter in ours.parameters():
        parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
state = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
query, direction = (torch.tensor(rng.normal(size=(2, 4, 12))).float() for _ in range(2))
(ours(query)[0] * direction).sum().backward()
nothing, slopes, learns, modes, no_gradient, kept = afterwards(state, 12, 3, query, direction)
with check("gradients of the Keras layer, in whatever order", points=1):
    message = (
        "After loading and backward, each of the eight variables of the Keras layer has a "
        "gradient."
    )
    assert_equal(len(slopes), 8, message, name="how many have one")
    message = (
        "After loading, the Keras layer's variables get the gradients that attention's would get, "
        "in whatever order."
    )
    wanted = torch.cat([parameter.grad.flatten() for parameter in ours.parameters()]).sort()[0]
    slopes = torch.cat([one.flatten() for one in slopes]).sort()[0]
    assert_close(slopes, wanted, message, name="all gradients, sorted", rtol=1e-4, atol=1e-4)
with check("attention is left alone, nothing is returned", points=0.5, side=True):
    assert_equal(
        kept,
        state,
        "After loading, and with ones written into the Keras layer, attention should hold the "
        "numbers that it held before, of the same dtype.",
        name="attention.state_dict()",
    )
    assert_equal(
        learns,
        [True] * 8,
        "After loading, attention's eight parameters should still require gradients.",
        name="requires_grad of them",
    )
    message = "After loading, attention and its parts should be in training mode, as before."
    assert_equal(all(modes), True, message, name="'in training mode'")
    assert_equal(
        no_gradient,
        [True] * 8,
        "After backward through the Keras layer, attention's eight parameters should have no "
        "gradients.",
        name="'has no gradient' of them",
    )
    assert_equal(
        nothing, True, "keras_attention is changed in place, and nothing (None) is returned."
    )
    befores, afters = left_alone(12, 3, query)
    for what, one, other in zip(
        (
            "which of its parts are in training mode",
            "which of its parameters require gradients",
            "which of its parameters hold gradients",
            "torch.is_grad_enabled()",
        ),
        befores,
        afters,
        strict=True,
    ):
        message = (
            "An attention in evaluation mode, but for W_v, with gradients from an earlier "
            f"backward, W_k frozen: after loading {what} should be as before."
        )
        assert_equal(other, one, message, name="what is found")
checks_passed("load_keras_weights")
### END HIDDEN TESTS


# %% check="load_keras_weights_errors" points=0.5
# Hidden checks of load_keras_weights: sizes that differ, after which nothing has been copied.
### SIDE CONDITION: counts once another check of load_keras_weights passes.
### BEGIN HIDDEN TESTS
@probe
def refused(d_model, num_heads, settings, widths):
    attention = MultiHeadAttention(d_model, num_heads)
    for parameter in attention.parameters():
        parameter.grad = torch.ones_like(parameter)
    attention.eval()
    attention.W_v.train()
    attention.W_k.requires_grad_(False)

    def state():
        modes = [module.training for module in attention.modules()]
        learns = [parameter.requires_grad for parameter in attention.parameters()]
        slopes = [parameter.grad is not None for parameter in attention.parameters()]
        held = [parameter.detach().clone() for parameter in attention.parameters()]
        return modes, learns, slopes, torch.is_grad_enabled(), held

    first = state()
    theirs = keras.layers.MultiHeadAttention(**settings)
    theirs.build(*((None, None, width) for width in widths))
    theirs.set_weights([np.full_like(one, 0.1) for one in theirs.get_weights()])  # drawn anew at each start
    before = [np.array(one) for one in theirs.get_weights()]
    try:
        load_keras_weights(theirs, attention)
    except ValueError:
        then = state()
        torch.set_grad_enabled(first[3])
        return before, theirs.get_weights(), first, then
    return None


for d_model, num_heads, settings, widths in (
    (12, 3, {"num_heads": 4, "key_dim": 3}, (12, 12, 12)),
    (12, 3, {"num_heads": 6, "key_dim": 4}, (12, 12, 12)),
    (12, 3, {"num_heads": 3, "key_dim": 5}, (12, 12, 12)),
    (12, 3, {"num_heads": 3, "key_dim": 4, "value_dim": 12}, (12, 12, 12)),
    (12, 3, {"num_heads": 3, "key_dim": 4, "output_shape": 7}, (12, 12, 12)),
    (12, 3, {"num_heads": 3, "key_dim": 4}, (12, 10, 12)),
    (12, 3, {"num_heads": 3, "key_dim": 4}, (12, 12, 10)),
    (12, 3, {"num_heads": 3, "key_dim": 4}, (24, 12, 12)),
    (4, 1, {"num_heads": 2, "key_dim": 2}, (4, 4, 4)),
    (12, 3, {"num_heads": 3, "key_dim": 4, "output_shape": 12}, (10, 12, 12)),
):
    found = refused(d_model, num_heads, settings, widths)
    message = (
        f"MultiHeadAttention({d_model}, {num_heads}) and a Keras layer of {settings}, built for "
        f"queries of width {widths[0]}, values of {widths[1]} and keys of {widths[2]}."
    )
    assert_equal(
        found is not None, True, f"{message} They do not fit: a ValueError.", name="'refused'"
    )
    assert_equal(
        found[1],
        found[0],
        f"{message} After the ValueError the Keras layer should hold what it held before. Check "
        "first: are the sizes of all eight arrays looked at before the first is copied? (To put "
        "numbers back takes copies of them.)",
        name="the Keras layer's weights",
    )
    for what, one, other in zip(
        (
            "which of its parts are in training mode",
            "which of its parameters require gradients",
            "which of its parameters hold gradients",
            "torch.is_grad_enabled()",
            "the numbers of its parameters, and their dtype,",
        ),
        found[2],
        found[3],
        strict=True,
    ):
        beside = (
            f"{message} attention is in evaluation mode, but for W_v, holds gradients, and W_k is "
            f"frozen: after the ValueError {what} should be as before. Check first: is something "
            "changed for reading, and put back at the end alone?"
        )
        assert_equal(other, one, beside, name="what is found", against="before the call")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# The eight new arrays first, the assignments last: then an error comes before anything is copied. For queries,
# keys and values: transpose, `(in, out)`, then cut `out` into heads with `reshape`; figure 1 shows it. `W_o`
# reads the joined heads: after the transpose its **first** axis is the one to cut.
#
# </details>
#
# **Predict, then run.** Both layers get the same three texts, for query, key and value. Yours is called with
# `(query, key, value)`, and so is Keras's. Are the outputs equal?

# %% tags=["demonstration", "guess"]
guess_order = True  # write True or False

# %% tags=["demonstration"]
if keras:
    torch.manual_seed(5)
    ours = MultiHeadAttention(12, 3)
    theirs = keras.layers.MultiHeadAttention(num_heads=3, key_dim=4)
    query, key, value = (torch.randn(2, n, 12) for n in (4, 5, 5))
    theirs.build(query.shape, value.shape)
    load_keras_weights(theirs, ours)
    with torch.no_grad():
        wanted, _ = ours(query, key, value)
        same_order = bool((theirs(query, key, value) - wanted).abs().max() < 1e-5)
        by_name = bool((theirs(query=query, value=value, key=key) - wanted).abs().max() < 1e-5)
    print("called with (query, key, value):", same_order)
    print("called with names:              ", by_name)

if keras:
    assert by_name and not same_order
    reply("guess_order", guess_order, same_order, "Keras's second argument is the value, its third the key.")

# %% [markdown]
# The shapes of keys and values are the same, so nothing complains. In self-attention, where all three are
# one text, it makes no difference, and so the mistake waits for the first cross-attention. Call it with
# names.
#
# ## 3. What differs, row by row
#
# Each row of the table is checked by the cell below it, with the versions that are installed here.
#
# | what | PyTorch | Keras 3 | row |
# |---|---|---|---|
# | second argument | `key` | `value` | 1 |
# | width | `embed_dim`, of all heads | `key_dim`, of one | 2 |
# | weights | `weight (out, in)` | `kernel (in, out)`, with heads `(in, heads, key_dim)` | 3 |
# | built | when it is made | at the first call | 4 |
# | returns | output and the **mean** of the heads' weights | output; weights of each head if asked | 5 |
# | mask: `True` | `attn_mask`, `key_padding_mask`: **may not** attend | `attention_mask`: may attend | 6 |
# | nothing to attend to | NaN; if you do not ask for the weights, 0 before the last layer | the question below | 7 |
# | first axis | the position, unless `batch_first=True` | the text | 8 |
# | floating inputs of another dtype | an error | are cast to the layer's | 9 |
# | a picture `(batch, h, w, d)` | an error | attends over all places, unless `attention_axes` says otherwise | 10 |
# | dropout | on, until `.eval()` | off, unless `training=True` | 11 |
# | `LayerNorm`, $\varepsilon$ | $10^{-5}$ | $10^{-3}$ | 12 |
# | a new `Linear` or `Dense` | weights and biases within $\pm 1/\sqrt{d_{in}}$ | Glorot: within $\pm\sqrt{6/(d_{in} + d_{out})}$, biases 0 | 13 |
# | product of float64 | `torch.matmul`: float64 | `keras.ops.matmul`: float32, unless `keras.config.set_floatx` says otherwise | 14 |
#
# Row 7 first. **Predict, then run.** The second text of a batch is empty: none of its five keys may be
# attended. The same layer is asked for the output alone, and for the output with the weights. Are
# the two outputs equal?

# %% tags=["demonstration", "guess"]
guess_empty = True  # write True or False

# %% tags=["demonstration"]
if keras:
    keras.utils.set_random_seed(7)
    torch.manual_seed(7)
    theirs = keras.layers.MultiHeadAttention(num_heads=3, key_dim=4)
    texts = torch.randn(2, 5, 12)
    keep = torch.tensor([True, False])[:, None, None].expand(2, 5, 5)  # the second text may attend to nothing
    alone = theirs(texts, texts, attention_mask=keep)
    beside, weights = theirs(texts, texts, attention_mask=keep, return_attention_scores=True)
    everything = theirs(texts, texts)
    values = theirs.value_dense(texts)[1].mean(0, keepdim=True).expand(1, 5, 3, 4)  # (1, n, heads, features)
    even = theirs.output_dense(values)[0]  # all five keys, evenly
    same = [bool((alone[i] - beside[i]).abs().max() < 1e-5) for i in (0, 1)]
    print("first text, nothing hidden: the two outputs are equal:", same[0])
    print("second text, all hidden:    the two outputs are equal:", same[1])
    print("  with the weights:    weights 0, and the output is the bias of output_dense:",
          bool((weights[1] == 0).all() and (beside[1] - theirs.output_dense.bias.value).abs().max() < 1e-6))  # fmt: skip
    print("  without the weights: the even average of all five hidden keys:",
          bool((alone[1] - even).abs().max() < 1e-5))  # fmt: skip

if keras:
    assert same == [True, False] and (alone[1] - even).abs().max() < 1e-5 and (weights[1] == 0).all()
    assert (alone[1] - everything[1]).abs().max() > 1e-3  # even, and not what it gives without a mask
    reply("guess_empty", guess_empty, same[1], "Asked for the output alone, the layer takes another way through the backend.")

# %% [markdown]
# With the weights, Keras does what this course does. Without them it hands the work to a function of
# the backend, and there a hidden score is a very low number, the same for all keys: an even average of everything
# that was to be hidden, and no NaN warns you. So a layer that you **look at** in one way and **train**
# in the other is not one layer, for rows without keys. Who relies on such rows sets them to zero.
#
# Now all rows.

# %% tags=["demonstration"]
if keras:
    torch.manual_seed(8)
    theirs = keras.layers.MultiHeadAttention(num_heads=3, key_dim=4)
    before_building = len(theirs.weights)
    ours, builtin = MultiHeadAttention(12, 3), nn.MultiheadAttention(12, 3, batch_first=True)
    x, y = torch.randn(2, 4, 12), torch.randn(2, 5, 12)  # queries; keys and values
    theirs.build(x.shape, y.shape)
    load_keras_weights(theirs, ours)
    with torch.no_grad():
        builtin.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]))
        builtin.in_proj_bias.copy_(torch.cat([ours.W_q.bias, ours.W_k.bias, ours.W_v.bias]))
        builtin.out_proj.load_state_dict(ours.W_o.state_dict())

    def equal(one, other):
        return one.shape == other.shape and bool((one - other).abs().max() < 1e-5)

    def refuses(call):
        with contextlib.suppress(Exception):
            call()
            return False
        return True

    hide = torch.rand(2, 4, 5) < 0.4
    hide[..., 0] = False
    for_heads = hide.repeat_interleave(3, dim=0)  # nn.MultiheadAttention: a mask for each text and head
    nothing = torch.ones(4, 5).bool()
    output, weights = theirs(query=x, value=y, key=y, return_attention_scores=True)
    picture = torch.randn(2, 3, 4, 12)
    rows = theirs(picture[:, 0], picture[:, 0])
    over_all, by_row = (keras.layers.MultiHeadAttention(3, 4, attention_axes=axes) for axes in (None, 2))
    many, linear, dense = torch.ones(1000), nn.Linear(100, 30), keras.layers.Dense(30)
    dense.build((None, 100))
    half, half_off = keras.layers.Dropout(0.5), nn.Dropout(0.5)
    with torch.no_grad():
        checked = {
            1: equal(theirs(x, y, 2 * y), ours(x, 2 * y, y)[0]) and equal(builtin(x, 2 * y, y)[0], ours(x, 2 * y, y)[0]),
            2: builtin.embed_dim == 12 and math.prod(theirs.query_dense.kernel.shape[1:]) == 3 * theirs.key_dim,
            3: linear.weight.shape == (30, 100) and dense.kernel.shape == (100, 30)
            and theirs.query_dense.kernel.shape == (12, 3, 4),
            4: before_building == 0 and len(theirs.weights) == 8 == len(list(ours.parameters())),
            5: isinstance(theirs(x, y), torch.Tensor) and equal(weights, ours(x, y)[1])
            and equal(builtin(x, y, y)[1], weights.mean(1)),
            6: equal(theirs(x, y, attention_mask=~hide), builtin(x, y, y, attn_mask=for_heads)[0])
            and equal(builtin(x, y, y, key_padding_mask=hide[:, 0])[0], theirs(x, y, attention_mask=~hide[:, :1])),
            7: bool(builtin(x, y, y, attn_mask=nothing)[0].isnan().all())
            and equal(builtin(x, y, y, attn_mask=nothing, need_weights=False)[0], builtin.out_proj.bias.expand(x.shape))
            and bool(theirs(x, y, attention_mask=~nothing[None]).isfinite().all()),
            8: nn.MultiheadAttention(12, 3).batch_first is False and equal(theirs(x, y)[:1], theirs(x[:1], y[:1])),
            9: refuses(lambda: builtin(x.double(), y.double(), y.double()))
            and theirs(x.double(), y.double()).dtype == torch.float32,
            10: refuses(lambda: builtin(picture, picture, picture))
            and over_all(picture, picture, return_attention_scores=True)[1].shape == (2, 3, 3, 4, 3, 4)
            and by_row(picture, picture, return_attention_scores=True)[1].shape == (2, 3, 3, 4, 4),
            11: bool((half_off(many) == 0).any()) and bool((half(many) == 1).all())
            and bool((half(many, training=True) == 0).any()),
            12: nn.LayerNorm(4).eps == 1e-5 and keras.layers.LayerNormalization().epsilon == 1e-3,
            13: 0.09 < min(linear.weight.abs().max(), linear.bias.abs().max()) <= 100**-0.5 + 1e-6
            and 0.19 < dense.kernel.value.abs().max() <= (6 / 130) ** 0.5 + 1e-6
            and bool((dense.bias.value == 0).all()),
            14: torch.matmul(x.double(), y.double().mT).dtype == torch.float64
            and keras.ops.matmul(x.double(), y.double().mT).dtype == torch.float32,
        }  # fmt: skip
    for row, holds in checked.items():
        print(f"row {row:2d} holds: {bool(holds)}")
    assert all(checked.values()) and len(checked) == 14

# %% [markdown]
# Row 12 looks like nothing. Where it bites: rows with a small variance. A row with a standard deviation of 0.01 has
# a variance of $10^{-4}$. What are its standard deviations after the two norms?

# %% tags=["demonstration"]
if keras:
    small = torch.tensor([[0.01, -0.01, 0.01, -0.01]])
    both = {"PyTorch": nn.LayerNorm(4)(small), "Keras": keras.layers.LayerNormalization()(small)}
    for name, result in both.items():
        print(f"{name:8s} {result.detach().std(correction=0).item():.2f}")

# %% [markdown]
# So a model that was trained with one $\varepsilon$ and loaded into the other is another model, by a
# factor of three in such a row. Give `epsilon=1e-5` when you port.
#
# ### Short answer 2: `answer_mask`
#
# A batch of texts comes with `padding (batch, n)`, which is True where there is padding. You called
# `nn.MultiheadAttention(..., key_padding_mask=padding)`. What is the same in Keras?
#
# - a) `layer(x, x, attention_mask=padding)`
# - b) `layer(x, x, attention_mask=padding[:, None, :])`
# - c) `layer(x, x, attention_mask=~padding[:, None, :])`
# - d) `layer(x, x, attention_mask=~padding[:, :, None])`

# %% answer="answer_mask"
### BEGIN SOLUTION
answer_mask = "c"
### END SOLUTION

# %% check="answer_mask" points=1
check_answer("answer_mask", answer_mask)

# %% [markdown]
# ## 4. Find the silent bug
#
# Keras can do without that argument: `Embedding(mask_zero=True)` takes word 0 for padding, and hangs a mask on
# its result. Attention reads the mask that hangs on its input. A friend's encoder counts on it:


# %% locked="given_encoder"
class Encoder(keras.layers.Layer):
    """Words (batch, n), 0 is padding, to vectors (batch, n, 16)."""

    def __init__(self):
        super().__init__()
        self.words = keras.layers.Embedding(50, 16, mask_zero=True)  # line a
        self.places = keras.layers.Embedding(12, 16)
        self.attention = keras.layers.MultiHeadAttention(num_heads=4, key_dim=4)  # line b
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5)

    def call(self, words):
        x = self.words(words)
        x = x + self.places(torch.arange(words.shape[1]))  # line c
        return self.norm(x + self.attention(x, x))  # line d


# %% [markdown]
# A text of five words, alone, and with three, five and seven words of padding behind it. The vectors of its
# five words should not change. Five encoders with random weights:

# %% tags=["demonstration", "nbval-ignore-output"]
# Random weights: the printed sizes differ a little from machine to machine.
sentence = torch.tensor([[11, 23, 5, 42, 17]])
seeds = range(5)


def moved(encoder):
    """How far padding moves the vectors of the words, at most."""
    with torch.no_grad():
        padded = [encoder(F.pad(sentence, (0, more)))[:, :5] for more in (0, 3, 5, 7)]
    return max((one - padded[0]).abs().max().item() for one in padded)


if keras:
    changes = []
    for seed in seeds:
        keras.utils.set_random_seed(seed)
        changes.append(moved(Encoder()))
    print("largest change by padding:", np.round(changes, 3))
    assert min(changes) > 0.02

# %% [markdown]
# ### Short answer 3: `answer_silent_bug`
#
# Which line is it?
#
# - a) line a: `mask_zero` makes zeros of the vectors of word 0, and does not hide them
# - b) line b: `key_dim` should be 16
# - c) line c: the sum of two tensors is a new tensor, without the mask
# - d) line d: in Keras no mask reaches attention unless it is handed over as `attention_mask`

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "c"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Ask each tensor: `getattr(x, "_keras_mask", None)`, after each line of `call`.
#
# </details>
#
# When you have answered, run the cells. They ask that, and mend it.

# %% tags=["demonstration"]
if keras:
    embedding = keras.layers.Embedding(50, 16, mask_zero=True)
    words = F.pad(sentence, (0, 3))
    norm = keras.layers.LayerNormalization()
    results = {
        "embedding(words)": embedding(words),
        "norm(embedding(words))": norm(embedding(words)),
        "embedding(words) + 0.0": embedding(words) + 0.0,
        "keras.ops.add(embedding(words), 0.0)": keras.ops.add(embedding(words), 0.0),
        "KerasAttention()(x, x, x)[0]": None,
    }
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        results["KerasAttention()(x, x, x)[0]"] = KerasAttention()(*[embedding(words)] * 3)[0]
    for name, x in results.items():
        print(f"{name:37s} a mask hangs on it: {getattr(x, '_keras_mask', None) is not None}")
    hang = [getattr(x, "_keras_mask", None) is not None for x in results.values()]
    print("warnings at the last:", len(said))
    assert hang == [True, True, False, False, False] and said

# %% [markdown]
# A mask is an attribute of a tensor. Layers of Keras that do not mix positions pass it on. A plus sign makes a
# new tensor, which has none, and nobody says so. (Your own layer drops it too, and Keras warns: a layer
# says `self.supports_masking = True` if it wants to pass it on.) The friend's encoder, mended:


# %% tags=["demonstration", "nbval-ignore-output"]
# Random weights: the printed sizes differ a little from machine to machine.
if keras:

    class Mended(Encoder):
        def call(self, words):
            x = self.words(words) + self.places(torch.arange(words.shape[1]))
            keep = (words != 0)[:, None, :]  # (batch, 1, n_k): every word may attend to the words
            return self.norm(x + self.attention(x, x, attention_mask=keep))

    after = []
    for seed in seeds:
        keras.utils.set_random_seed(seed)
        after.append(moved(Mended()))
    print("largest change by padding, mended:", np.round(after, 6))
    assert max(after) < 1e-4

# %% tags=["demonstration"]
if keras:
    keras.utils.set_random_seed(0)
    encoder = Encoder()
    words = F.pad(sentence, (0, 3))
    encoder(words)
    with torch.no_grad():
        x = encoder.words(words) + encoder.places(torch.arange(8))
        keep = (words != 0)[:, None, :]
        maps = [
            encoder.attention(x, x, attention_mask=mask, return_attention_scores=True)[1][0, 0]
            for mask in (None, keep)
        ]
    names = ["the", "black", "cat", "is", "sleeping", "(pad)", "(pad)", "(pad)"]
    figure, panels = plt.subplots(1, 2, figsize=(12, 3.6))
    for axes, weights, title in zip(panels, maps, ("the friend's encoder", "mended")):
        draw_heatmap(axes, weights[:5], names[:5], names, vmax=0.25)
        axes.set_title(title)
    figure.tight_layout()
    lost = [float(weights[:5, 5:].sum(-1).mean()) for weights in maps]
    show(
        figure,
        f"Figure 2. Weights of head 0, random, for a text of five words and three of padding. In the friend's encoder "
        f"{lost[0]:.2f} of a word's weight lies on padding, in the mended one {lost[1]:.2f}. The maps say nothing about "
        "words: nothing was trained.",
        "Two maps of five words by eight places. Left, all numbers are about an eighth, also those of the three places of "
        "padding. Right, the three last columns are 0, and the others are about a fifth.",
        text_table(torch.cat([maps[0][:5], maps[1][:5]]), [f"{name} ({which})" for which in ("friend", "mended") for name in names[:5]], names),
    )  # fmt: skip
    assert lost[0] > 0.3 and lost[1] == 0

# %% [markdown]
# Training would not have told. A model learns to live with padding, as long as there is always about as
# much of it. The test is the one of lesson 15, in another dress: the same text, alone and in other
# company.
#
# ### What is often said, and what is right
#
# | often said | what is right | where shown |
# |---|---|---|
# | "The libraries compute the same, so a layer can be exchanged for its namesake." | The same formula; other defaults, order of arguments and masks. After weights and arguments are put in order: equal. | section 2 |
# | "A wrong size gives an error." | `key_dim=12` in place of 4 gives a layer three times as wide, without a word. | section 2 |
# | "The output does not depend on whether I ask for the weights." | For rows with nothing to attend to it does. | section 3 |
# | "Keras takes care of padding by itself." | As long as every step between embedding and attention passes the mask on. `+` does not. | section 4 |
#
# ### Written answer: `written_port`
#
# A colleague has trained a translator (lesson 9) with PyTorch's layers, moves its weights into Keras's layers,
# and reports: "Every shape fits, no errors. On the test set the translations are a little worse, probably rounding."
# Answer in 5 to 8 sentences (3 points):
#
# 1. Why is rounding not a likely reason? Say how large a difference of rounding is, as you measured it here.
# 2. Name three differences of the table that could be the reason and give no error, and for each a test
#    that would show it.

# %% [markdown] written="port" points=3
# ### BEGIN SOLUTION
# With the same weights the two layers agreed to 1e-5 here, in float32, and a change of that size turns over an
# argmax next to never; worse translations need something larger. First the order of arguments: the translator has
# cross-attention, where key and value are not the query, and a call with (query, key, value) exchanges them if
# they differ. Test: one call with key and value that differ, by position and by name. Second the mask, where True
# says the opposite, or where it is lost behind a plus sign. Test: the same sentence alone and padded. Third the
# epsilon of the layer norms, 1e-3 in place of 1e-5. Test: feed one input to both models and compare after each
# layer; the first layer where they differ by more than 1e-4 is the one. That last test finds the others, too.
#
# **Marking scheme** (3 points). 1 point: rounding is of the order of 1e-6 to 1e-5, and too small to change
# translations. 1 point: three differences that are silent (order of arguments, `key_dim` if the weights were cut
# accordingly, mask's meaning, a lost mask, rows with nothing, epsilon, transposed square weights); two of them give
# half a point. 1 point: a test for each that would tell (equal inputs to both, layer by layer; alone and padded; key
# and value that differ). No point for "compare the loss" alone.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# | concept | in Keras | purpose |
# |---|---|---|
# | a layer of your own | `keras.layers.Layer`, `call` | `KerasAttention`: lesson 3's function |
# | operations | `keras.ops`, NumPy's names | the same code on every backend |
# | lesson 5's layer, your own | four `Dense` layers | `KerasMultiHeadAttention` |
# | lesson 5's layer, Keras's | `MultiHeadAttention(num_heads, key_dim)`, `key_dim` of **one** head | equal to yours, after copying |
# | weights | `kernel (in, heads, key_dim)`, `(heads, value_dim, out)` | `load_keras_weights` |
# | masks | `attention_mask`: True = may attend | as in the course, the opposite of `nn.MultiheadAttention` |
# | a mask that travels | `_keras_mask`, from `mask_zero=True` | gone after `+` |
#
# ## Check yourself
#
# <details><summary>1. Why does <code>len(layer.weights)</code> give 0 for a new
# <code>keras.layers.MultiHeadAttention(3, 4)</code>?</summary>
#
# It is not built: how wide its inputs are, it learns from the first one.
#
# </details>
#
# <details><summary>2. You want to hide the future in Keras. Which way needs no mask of your own?</summary>
#
# `layer(x, x, use_causal_mask=True)`. An `attention_mask` beside it is combined with it: both must allow.
#
# </details>
#
# <details><summary>3. Your weights came over transposed. Why was there no error, and how do you see it?</summary>
#
# The matrices are square. Compare one output with that of the layer they came from.
#
# </details>
#
# <details><summary>4. A score map that you draw is right, and yet the model treats an empty text oddly. Where
# do you look?</summary>
#
# You drew it with `return_attention_scores=True`, and the model computes without: row 7.
#
# </details>
#
# Questions to ask of every library: *Which way round is True? What is the second argument? Which defaults differ?
# And is the output the same, alone and in company?*
#
# ## References
#
# - Chollet and others (2015), *Keras*; its documentation of version 3, `keras.layers.MultiHeadAttention` and
#   "Understanding masking and padding".
# - Paszke and others (2019), *PyTorch: An Imperative Style, High-Performance Deep Learning Library*.
# - Vaswani and others (2017), *Attention Is All You Need*.
# - Glorot, Bengio (2010), *Understanding the Difficulty of Training Deep Feedforward Neural Networks*: row 13.
# - Ba, Kiros, Hinton (2016), *Layer Normalization*.
#
# ## What comes next
#
# This was an appendix. You have written attention in NumPy, in PyTorch and in Keras, and have compared each with the
# others. The course goes on with lesson 17: from characters to tokens, and then to a model that talks.
