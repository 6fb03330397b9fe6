# %% [markdown]
# ## What you will be able to do
#
# - **Write** lesson 3's function as a layer of Keras.
# - **Copy** lesson 5's weights into `keras.layers.MultiHeadAttention`, and **prove** that both layers agree.
# - **Find** a mask that gets lost on its way.
# - For the curious: **write** lesson 5's layer of Keras's `Dense` layers, and **measure** what differs between PyTorch
#   and Keras in names, masks, shapes and defaults.
#
# The 45 minutes are for sections 1, 2 and 4. What is headed "For the curious" (exercise 2, section 3) and the written
# answer, which builds on section 3, take some 45 more; their points count like all others.

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
from lesson_kit.batteries import (
    assert_each_alone,
    assert_refused,
    assert_results,
    assert_unchanged,
)
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


# %% check="KerasAttention" points=5.75 card=["Returns (output (..., n_q, d_v), weights (..., n_q, n_k))", "True = may attend", "A query that may attend to nothing has weights 0 and output 0", "Results have the layer's dtype, float32 if nothing else is said"]
# Two texts of three queries and five keys: without a mask against torch, with a mask against fewer keys.
@probe
def called(query, key, value, mask=None):
    return KerasAttention()(query.clone(), key.clone(), value.clone(), mask)


def results(*given):
    both = called(*given)
    number = len(both) if isinstance(both, (tuple, list)) else int(both is not None)
    assert_equal(number, 2, "Two things come back: the output and the weights.", name="the number of results")
    return both


Q, K, V = torch.tensor(check_rng().normal(size=(2, 13, 8))).float().split([3, 5, 5], dim=1)
V, mask, close = V[..., :6], torch.tensor([[1, 1, 0, 1, 0], [0] * 5, [1] * 5]) > 0, {"rtol": 1e-5, "atol": 1e-5}
with check("the weights", points=1.5):
    expected = F.scaled_dot_product_attention(Q, K, torch.eye(5).expand(2, 5, 5))
    assert_close(results(Q, K, V)[1], expected, "Torch's weights, the second result: over the keys, scores by the root of d_k.", name="weights", **close)
with check("the output: your weights times the values", points=1.5):
    output, weights = results(Q, K, V)
    assert_equal(list(np.shape(weights)), [2, 3, 5], "Weights (2, 3, 5).", name="the weights' shape")
    assert_close(output, torch.as_tensor(weights).float() @ V, "(2, 3, 6).", name="output", against="as your weights times the values", **close)
    assert_equal(bool((output[0] - output[1]).abs().max() > 1e-3), True, "Two texts have different outputs.")
with check("a mask, as without the hidden keys", points=1.5):
    for i in (0, 2):
        alone, (output, weights) = results(Q[:, i : i + 1], K[:, mask[i]], V[:, mask[i]])[0], results(Q, K, V, mask)
        hides = bool(weights[:, 0, [2, 4]].abs().max() == 0 and output[:, i].std() > 1e-3)
        assert_equal(hides, True, "Keys 2 and 4 are hidden from query 0: weights 0.", name="'weights 0, and outputs that differ'")
        message = f"Query {i}. Does the mask act before the softmax?"
        assert_close(output[:, i : i + 1], alone, message, name="the output", against="without the hidden keys", **close)
with check("a query that may attend to nothing: 0; others not", points=1):
    output, weights = results(Q, K, V, mask)
    message = "Query 1 may attend to nothing: weights and output 0, never NaN. The others' weights sum to 1."
    assert_close(torch.cat([weights, output], -1)[:, 1], torch.zeros(2, 11), message, name="its weights and output")
    assert_equal(bool((weights[:, [0, 2]].sum(-1) > 0.5).all()), True, message, name="'the others sum to 1'")
with check("inputs of float64, a layer of float32", points=0.25, side=True):
    kinds = [str(x.dtype) for x in results(Q.double(), K.double(), V.double())]
    assert_equal(kinds, ["torch.float32"] * 2, "Results have the layer's dtype, float32.", name="the dtypes")
checks_passed("KerasAttention")


# %% check="KerasAttention_batches" points=2 card=["any number of leading axes, which broadcast", "boolean, broadcastable to the weights, True = may attend"]
# Hidden checks of KerasAttention: leading axes, equal and different, masks that broadcast.
### BEGIN HIDDEN TESTS
@probe
def attend_to(query, key, value, mask=None):
    return KerasAttention()(query, key, value, mask)


def in_batches(query, key, value):
    """One text as a batch of one."""
    if max(query.ndim, key.ndim, value.ndim) > 2:
        return attend_to(query, key, value)
    return [x[0] for x in attend_to(query[None], key[None], value[None])]


def draw(lead_q, lead_k, lead_v):
    shapes = (*lead_q, 4, 3), (*lead_k, 5, 3), (*lead_v, 5, 7)
    return [torch.tensor(rng.normal(size=shape)).float() for shape in shapes]


def masked(lead, *shapes):
    for shape in shapes:
        Q, K, V = draw(lead, lead, lead)
        mask = torch.tensor(rng.random(shape) < 0.6)
        mask[..., 0] = True
        joined = torch.cat([V, torch.eye(5).expand(*lead, 5, 5)], dim=-1)
        expected = F.scaled_dot_product_attention(Q, K, joined, attn_mask=mask.expand(*lead, 4, 5)).split([7, 5], dim=-1)
        message = f"Weights {(*lead, 4, 5)}, a mask {shape}, which is broadcast: as torch's function."
        assert_results(attend_to(Q, K, V, mask), dict(zip(names, expected)), message, **close)


rng = check_rng()
close, names = {"rtol": 1e-5, "atol": 1e-5}, ("output", "weights")
with check("one leading axis: each text comes out as it does alone", points=0.5):
    assert_each_alone(in_batches, [draw((6,), (6,), (6,))], names=names, **close)
with check("two leading axes: each text comes out as it does alone", points=0.25):
    assert_each_alone(in_batches, [draw((2, 3), (2, 3), (2, 3))], names=names, **close)
with check("leading axes that broadcast: each text comes out as it does alone", points=0.25):
    assert_each_alone(in_batches, [draw((2, 1), (3,), ()), draw((), (2, 3), (1, 3))], names=names, **close)
with check("masks for every text", points=0.25):
    masked((2,), (4, 5), (5,), (1, 5))
with check("masks of more axes", points=0.5):
    masked((2, 3), (4, 5), (3, 4, 5), (2, 1, 4, 5), (2, 1, 1, 5))
with check("no leading axis, with a mask and without", points=0.25):
    one = draw((), (), ())
    expected = dict(zip(names, in_batches(*one)))
    assert_equal(bool(expected["output"].std() > 1e-3), True, "A random text: numbers that differ.", name="'they differ'")
    shapes = [list(x.shape) for x in expected.values()]
    assert_equal(shapes, [[4, 7], [4, 5]], "One text: output (4, 7), weights (4, 5).", name="the shapes")
    for mask in (None, torch.ones(4, 5) > 0):
        message = "A text without leading axes, and no mask or one of True: as in a batch of one."
        assert_results(attend_to(*one, mask), expected, message, against="in a batch of one", **close)
checks_passed("KerasAttention")
### END HIDDEN TESTS


# %% check="KerasAttention_nothing" points=1.5 card=["A query that may attend to nothing has weights 0 and output 0, and finite gradients", "Gradients flow through both"]
# Hidden checks of KerasAttention: queries and texts with nothing to attend to; gradients.
### BEGIN HIDDEN TESTS
@probe
def results_and_gradients(query, key, value, mask):
    leaves = [x.clone().requires_grad_() for x in (query, key, value)]
    output, weights = KerasAttention()(*leaves, mask)
    total = output.sin().sum() + weights.sin().sum()
    if total.requires_grad:
        total.backward()
    return output.detach(), weights.detach(), *(leaf.grad for leaf in leaves)


rng = check_rng()
Q, K, V = (torch.tensor(rng.normal(size=shape)).float() for shape in ((2, 4, 3), (2, 5, 3), (2, 5, 7)))
row, names = torch.tensor(rng.random((4, 5)) < 0.6), ("output", "weights", *(f"the gradient of {x}" for x in "QKV"))
row[:, :2], row[2] = True, False
text = torch.tensor([[[True, True, False, True, False]], [[False] * 5]])
masks = {"no mask": torch.ones(4, 5) > 0, "a mask that hides all keys of query 2": row, "a mask that hides the second text": text}
masks["a mask that is False everywhere"] = torch.zeros(4, 5) > 0


def compare(which, start, end, message):
    for what in which:
        leaves = [x.clone().requires_grad_() for x in (Q, K, V)]
        joined = torch.cat([leaves[2], torch.eye(5).expand(2, 5, 5)], dim=-1)
        both = F.scaled_dot_product_attention(*leaves[:2], joined, attn_mask=masks[what])
        both.sin().sum().backward()
        expected = [*both.detach().split([7, 5], dim=-1), *(leaf.grad for leaf in leaves)]
        found = results_and_gradients(Q, K, V, None if what == "no mask" else masks[what])
        for number in range(start, end):
            said = f"{what}, {names[number]}: {message}"
            assert_close(found[number], expected[number], said, name=names[number], rtol=1e-4, atol=1e-5)


with check("queries with nothing to attend to: 0", points=0.5):
    compare(list(masks)[1:], 0, 2, "as torch's function, 0 for what may attend to nothing.")
with check("gradients without a mask: as of torch's function", points=0.5):
    compare(["no mask"], 2, 5, "as of torch's function. If the results are right: is something detached?")
with check("gradients where some may attend to nothing: as of torch's function", points=0.5):
    compare(list(masks)[1:3], 2, 5, "as of torch's function. If the results are right: is there NaN on the way, or is something detached?")
checks_passed("KerasAttention")
### END HIDDEN TESTS


# %% check="KerasAttention_inputs" points=0.5 card=["inputs stay as they are"]
# Hidden checks of KerasAttention: inputs stay as they are, and one layer may be called several times.
### SIDE CONDITION: counts once another check of KerasAttention passes.
### BEGIN HIDDEN TESTS
@probe
def in_turn(*calls):
    """The outputs of a new layer for each call, those of one layer, and the arguments afterwards."""
    layer = KerasAttention()
    alone = [KerasAttention()(*(x.clone() for x in call))[0] for call in calls]
    return alone, [layer(*call)[0] for call in calls], calls


rng = check_rng()
Q, K, V = (torch.tensor(rng.normal(size=(2, *size))).float() for size in ((4, 3), (5, 3), (5, 7)))
calls = [(Q, K, V, torch.ones(4, 5).tril() > 0), (Q, K, V), (torch.cat([Q, Q], -1), torch.cat([K, K], -1), V)]
alone, found, _ = in_turn(*([x.clone() for x in call] for call in calls))
for what, one, expected in zip(("with a mask", "then without one", "then of another d_k"), found, alone):
    message = f"One layer, called several times, here {what}: as a new layer. Is anything kept of an earlier call?"
    assert_close(one, expected, message, name="output", against="from a new layer")
    assert_equal(bool(torch.as_tensor(expected).std() > 1e-3), True, "Random texts: numbers that differ.", name="'they differ'")
assert_unchanged(lambda *call: in_turn(call)[2][0], **dict(zip(("query", "key", "value", "mask"), calls[0])))
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
# **For the curious.** Sections 2 and 4 do not build on it.
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


# %% check="KerasMultiHeadAttention" points=5 card=["parts W_q, W_k, W_v, W_o, each a keras.layers.Dense(d_model)", "with lesson 5's weights (each kernel the transposed matrix) what lesson 5's layer gives", "key defaults to query, value to key", "it serves every head", "A query that may attend to nothing has weights 0"]
# Three heads, two texts of four queries and five keys, with lesson 5's weights.
@probe
def attend(state, num_heads, calls):
    layer = KerasMultiHeadAttention(len(state["W_q.bias"]), num_heads)
    layer(calls[0][0].clone())  # the first call builds
    parts = [getattr(layer, name, None) for name in ("W_q", "W_k", "W_v", "W_o")]
    kinds = [[type(part).__name__, *(tuple(x.shape) for x in getattr(part, "weights", []))] for part in parts]
    if kinds != [["Dense", (12, 12), (12,)]] * 4:
        return kinds, []
    for part, name in zip(parts, ("W_q", "W_k", "W_v", "W_o")):
        part.set_weights([state[f"{name}.weight"].T.numpy(), state[f"{name}.bias"].numpy()])
    return kinds, [layer(*(x.clone() for x in call)) for call in calls]


rng, ours = check_rng(), MultiHeadAttention(12, 3)
state = {name: torch.tensor(0.4 * rng.normal(size=tuple(x.shape))).float() for name, x in ours.state_dict().items()}
ours.load_state_dict(state)
Q, K, V = (torch.tensor(rng.normal(size=(2, n, 12))).float() for n in (4, 5, 5))
keep, close = torch.tensor([True, True, False, True, False]), {"rtol": 1e-5, "atol": 1e-5}
some = torch.stack([keep, keep & False, keep, keep])
kinds, found = attend(state, 3, [(Q, K, V), (Q, K), (Q, K, K), (Q,), (Q, Q, Q), (Q, K, V, some), (Q, K[:, keep], V[:, keep])])
message = "After the first call W_q, W_k, W_v, W_o should be Dense layers with kernel (12, 12) and bias."
assert_equal(kinds, [["Dense", (12, 12), (12,)]] * 4, message, name="the parts, with the shapes of their weights")
with check("the weights of every head", points=1.25):
    message = "Lesson 5's weights (2, 3, 4, 5). Is each head 4 features side by side, the divisor that of a head?"
    assert_close(found[0][1], ours(Q, K, V)[1].detach(), message, name="weights", **close)
with check("the output", points=1.5):
    assert_close(found[0][0], ours(Q, K, V)[0].detach(), "Lesson 5's. Are heads joined as they were cut, W_o last?", name="output", **close)
with check("key is query, and value key, where they are not given", points=1):
    assert_close(found[1][0], found[2][0], "layer(query, key)", name="output", against="of layer(query, key, key)", **close)
    assert_close(found[3][0], found[4][0], "layer(query)", name="output", against="of layer(query, query, query)", **close)
    assert_equal(bool(found[2][0].std() > 1e-3 and found[4][0].std() > 1e-3), True, "Numbers that differ.", name="'they differ'")
with check("a mask, as without the hidden keys", points=1):
    one, other = (found[number][0][:, [0, 2, 3]] for number in (5, 6))
    assert_equal(bool(other.std() > 1e-3), True, "Random texts: numbers that differ.", name="'they differ'")
    assert_close(one, other, "Keys 2 and 4 are hidden from queries 0, 2, 3.", name="output", against="without these keys", **close)
with check("a query that may attend to nothing has weights 0", points=0.25, side=True):
    assert_close(found[5][1][:, :, 1], torch.zeros(2, 3, 5), "All keys are hidden from query 1.", name="its weights")
checks_passed("KerasMultiHeadAttention")


# %% check="KerasMultiHeadAttention_masks" points=2 card=["(n_q, n_k) or (batch, n_q, n_k), or with axes of length 1, such as (batch, 1, n_k): it serves every head", "A query that may attend to nothing has weights 0, so its output is the bias of W_o"]
# Hidden checks of KerasMultiHeadAttention: masks of two and three axes, for each text another; a text of which all is hidden.
### BEGIN HIDDEN TESTS
@probe
def attend(state, num_heads, query, key, value, mask):
    layer = KerasMultiHeadAttention(len(state["W_q.bias"]), num_heads)
    layer(query.clone(), key.clone())
    for name in ("W_q", "W_k", "W_v", "W_o"):
        getattr(layer, name).set_weights([state[f"{name}.weight"].T.numpy(), state[f"{name}.bias"].numpy()])
    return layer(query, key, value, mask)


def compare(*shapes, hidden=None):
    for batch, *shape in shapes:
        texts = [torch.tensor(rng.normal(size=(batch, n, 12))).float() for n in (4, 5, 5)]
        mask = torch.tensor(rng.random(shape) < 0.6)
        mask[..., 0] = True
        if hidden is not None:
            mask[hidden] = False
        expected = dict(zip(("output", "weights"), (x.detach() for x in ours(*texts, mask=mask))))
        message = f"A batch of {batch}, a mask {tuple(shape)}, which serves every head: as lesson 5's layer."
        assert_results(attend(state, 3, *texts, mask), expected, message, rtol=1e-5, atol=1e-5)


rng, ours = check_rng(), MultiHeadAttention(12, 3)
state = {name: torch.tensor(0.4 * rng.normal(size=tuple(x.shape))).float() for name, x in ours.state_dict().items()}
ours.load_state_dict(state)
with check("masks of two axes", points=0.75):
    compare((2, 4, 5), (2, 1, 5), (2, 4, 1))
with check("masks of three axes", points=1):
    compare((2, 2, 4, 5), (2, 2, 1, 5), (3, 3, 4, 5))
with check("a text of which all is hidden, beside another one", points=0.25):
    compare((2, 2, 1, 5), hidden=1)
checks_passed("KerasMultiHeadAttention")
### END HIDDEN TESTS


# %% check="KerasMultiHeadAttention_sizes" points=1 card=["KerasMultiHeadAttention(d_model, num_heads)", "query (batch, n_q, d_model), key and value (batch, n_k, d_model)"]
# Hidden checks of KerasMultiHeadAttention: other numbers of heads, one layer for texts of several lengths.
### BEGIN HIDDEN TESTS
@probe
def attend(state, num_heads, calls):
    layer = KerasMultiHeadAttention(len(state["W_q.bias"]), num_heads)
    layer(calls[0][0].clone())
    for name in ("W_q", "W_k", "W_v", "W_o"):
        getattr(layer, name).set_weights([state[f"{name}.weight"].T.numpy(), state[f"{name}.bias"].numpy()])
    return [layer(*call) for call in calls]


rng = check_rng()
for d_model, num_heads in ((12, 1), (8, 4), (15, 5)):
    ours = MultiHeadAttention(d_model, num_heads)
    state = {name: torch.tensor(0.4 * rng.normal(size=tuple(x.shape))).float() for name, x in ours.state_dict().items()}
    ours.load_state_dict(state)
    sizes = (2, 4, 5, 5), (3, 1, 6, 6), (1, 7, 2, 2)
    calls = [[torch.tensor(rng.normal(size=(batch, n, d_model))).float() for n in lengths] for batch, *lengths in sizes]
    for call, found in zip(calls, attend(state, num_heads, calls), strict=True):
        expected = dict(zip(("output", "weights"), (x.detach() for x in ours(*call))))
        message = f"KerasMultiHeadAttention({d_model}, {num_heads}), called with query {tuple(call[0].shape)}: as lesson 5's."
        assert_results(found, expected, message, rtol=1e-5, atol=1e-5)
### END HIDDEN TESTS


# %% check="KerasMultiHeadAttention_gradients" points=1.5 card=["Gradients flow through both", "A d_model that is not a multiple of num_heads is a ValueError"]
# Hidden checks of KerasMultiHeadAttention: gradients of the parts, through the output and the weights; heads that do not fit.
### BEGIN HIDDEN TESTS
@probe
def gradients(state, num_heads, query, key, of_output, of_weights):
    """Of the inputs, then of kernels and biases; None where there is none."""
    layer = KerasMultiHeadAttention(len(state["W_q.bias"]), num_heads)
    layer(query.clone())
    parts = [getattr(layer, name) for name in ("W_q", "W_k", "W_v", "W_o")]
    for name, part in zip(("W_q", "W_k", "W_v", "W_o"), parts):
        part.set_weights([state[f"{name}.weight"].T.numpy(), state[f"{name}.bias"].numpy()])
    leaves = [x.clone().requires_grad_() for x in (query, key)]
    output, weights = layer(*leaves)
    total = (output * of_output).sum() + (weights * of_weights).sum()
    if total.requires_grad:
        total.backward()
    held = [one.value.grad for part in parts for one in (part.kernel, part.bias)]
    return [*(leaf.grad for leaf in leaves), *(x if x is None else torch.as_tensor(x) for x in held)]


@probe
def made(d_model, num_heads):
    KerasMultiHeadAttention(d_model, num_heads)


def compare(A, B, through):
    leaves = [x.clone().requires_grad_() for x in (Q, K)]
    ours.zero_grad()
    output, weights = ours(*leaves)
    ((output * A).sum() + (weights * B).sum()).backward()
    expected = [*(leaf.grad for leaf in leaves), *(x.grad.mT if x.ndim == 2 else x.grad for x in ours.parameters())]
    for name, one, other in zip(names, gradients(state, 3, Q, K, A, B), expected, strict=True):
        message = f"The gradient of {name} through {through} should be that of lesson 5's layer. If the results are: is something detached?"
        assert_close(one, other, message, rtol=1e-4, atol=1e-4, name=f"the gradient of {name}")


rng, ours = check_rng(), MultiHeadAttention(12, 3)
state = {name: torch.tensor(0.4 * rng.normal(size=tuple(x.shape))).float() for name, x in ours.state_dict().items()}
ours.load_state_dict(state)
Q, K, A, B = (torch.tensor(rng.normal(size=s)).float() for s in ((2, 4, 12), (2, 5, 12), (2, 4, 12), (2, 3, 4, 5)))
names = ["query", "key", *(f"{part}.{what}" for part in ("W_q", "W_k", "W_v", "W_o") for what in ("kernel", "bias"))]
with check("gradients through the output: as of lesson 5's layer", points=0.5):
    compare(A, 0 * B, "the output")
with check("gradients through output and weights: as of lesson 5's layer", points=0.5):
    compare(A, B, "both")
with check("heads that do not fit", points=0.5, side=True):
    assert_refused(made, {f"d_model = {d}, num_heads = {h}": (d, h) for d, h in ((12, 5), (10, 4), (3, 6))})
checks_passed("KerasMultiHeadAttention")
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
figure, panels = plt.subplots(1, 3, figsize=(8.3, 2.8), gridspec_kw={"width_ratios": [4, 3, 3]})
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


# %% check="load_keras_weights" points=5 card=["so that both give the same output", "Afterwards no memory is shared", "Sizes that differ are a ValueError, and then nothing has been copied"]
# Three heads, with a mask; then sizes that differ.
@probe
def loaded(state, query, key, value, mask):
    attention, theirs = MultiHeadAttention(12, 3), keras.layers.MultiHeadAttention(3, 4)
    attention.load_state_dict(state)
    theirs.build(query.shape, value.shape, key.shape)
    load_keras_weights(theirs, attention)
    both = theirs(query, value, key, attention_mask=mask, return_attention_scores=True)
    attention.requires_grad_(False).apply(lambda part: [x.zero_() for x in part.parameters()])
    return *both, theirs(query, value, key, attention_mask=mask)


@probe
def refused(num_heads, key_dim, value_dim, width):
    theirs = keras.layers.MultiHeadAttention(num_heads, key_dim, value_dim)
    theirs.build(*[(None, None, width)] * 3)
    theirs.set_weights([np.full_like(one, 0.1) for one in theirs.get_weights()])
    try:
        load_keras_weights(theirs, MultiHeadAttention(12, 3))
    except ValueError:
        return all(bool((one == np.float32(0.1)).all()) for one in theirs.get_weights())


rng, ours, close = check_rng(), MultiHeadAttention(12, 3), {"rtol": 1e-5, "atol": 1e-5}
state = {name: torch.tensor(0.4 * rng.normal(size=tuple(x.shape))).float() for name, x in ours.state_dict().items()}
ours.load_state_dict(state)
texts, mask = [torch.tensor(rng.normal(size=(2, n, 12))).float() for n in (4, 5, 5)], torch.ones(4, 5).tril(1) > 0
(output, weights, later), expected = loaded(state, *texts, mask), [x.detach() for x in ours(*texts, mask=mask)]
with check("the weights of the heads", points=1.75):
    message = "Lesson 5's. W_q.weight is (out, in), kernel (in, head, feature), a head's features side by side."
    assert_close(weights, expected[1], message, name="weights", **close)
with check("the output", points=2.25):
    assert_close(output, expected[0], "Lesson 5's. Are W_v and W_o at their places?", name="output", **close)
with check("no memory is shared", points=0.5, side=True):
    assert_close(later, output, "attention's parameters were set to 0.", name="the output", against="before that")
with check("sizes that differ", points=0.5, side=True):
    for sizes in ((3, 12, None, 12), (2, 6, None, 12), (3, 4, 5, 12), (3, 4, None, 8)):
        assert_equal(refused(*sizes), True, f"num_heads, key_dim, value_dim, width = {sizes}: a ValueError.", name="'nothing copied'")
checks_passed("load_keras_weights")


# %% check="load_keras_weights_sizes" points=3.25 card=["Copy the weights of lesson 5's layer into Keras's, so that both give the same output", "attention.num_heads is the number of heads", "Both layers may be of float64 (attention.double(), dtype=\"float64\"): then all digits are copied"]
# Hidden checks of load_keras_weights: other widths and numbers of heads, a layer loaded twice; every number; float64.
### BEGIN HIDDEN TESTS
@probe
def loaded(states, d_model, num_heads, texts, dtype):
    """Output and weights, and all numbers, of a layer that is loaded once with each of the states."""
    theirs = keras.layers.MultiHeadAttention(num_heads, d_model // num_heads, dtype=dtype)
    theirs.build(texts[0].shape, texts[2].shape, texts[1].shape)
    for state in states:
        attention = MultiHeadAttention(d_model, num_heads).to(state["W_q.weight"].dtype)
        attention.load_state_dict(state)
        load_keras_weights(theirs, attention)
    dense = theirs.query_dense, theirs.key_dense, theirs.value_dense, theirs.output_dense
    numbers = [torch.tensor(one).flatten() for part in dense for one in part.get_weights()]
    return *theirs(texts[0], texts[2], texts[1], return_attention_scores=True), numbers


def states_of(d_model, num_heads, dtype):
    shapes = {name: tuple(x.shape) for name, x in MultiHeadAttention(d_model, num_heads).state_dict().items()}
    return [{name: torch.tensor(0.4 * rng.normal(size=s)).to(dtype) for name, s in shapes.items()} for _ in range(2)]


def compare(number, *sizes):
    for d_model, num_heads in sizes:
        states, ours = states_of(d_model, num_heads, torch.float32), MultiHeadAttention(d_model, num_heads)
        ours.load_state_dict(states[1])
        texts = [torch.tensor(rng.normal(size=(2, n, d_model))).float() for n in (3, 6, 6)]
        message = f"MultiHeadAttention({d_model}, {num_heads}), the Keras layer loaded twice: as the second of lesson 5's layers."
        found = loaded(states, d_model, num_heads, texts, "float32")[number]
        assert_close(found, ours(*texts)[number].detach(), message, name=("output", "weights")[number], rtol=1e-5, atol=1e-5)


rng = check_rng()
sizes = (12, 4), (15, 5), (8, 2), (12, 1), (6, 6)
with check("the weights of the heads", points=1.25):
    compare(1, *sizes)
with check("the output", points=1.25):
    compare(0, *sizes)


def every_number(dtype, kind):
    states = states_of(12, 3, dtype)
    texts = [torch.tensor(rng.normal(size=(2, n, 12))).to(dtype) for n in (3, 6, 6)]
    for (name, numbers), one in zip(states[1].items(), loaded(states, 12, 3, texts, kind)[2], strict=True):
        message = f"Both of {kind}: the numbers of {name} arrive, with all digits, in whatever order."
        assert_equal(one.sort()[0], numbers.flatten().sort()[0], message, name="the sorted numbers")


with check("every number, in whatever order", points=0.5, side=True):
    every_number(torch.float32, "float32")
with check("every number of float64, with all digits", points=0.25, side=True):
    every_number(torch.float64, "float64")
checks_passed("load_keras_weights")
### END HIDDEN TESTS


# %% check="load_keras_weights_memory" points=1.25 card=["Afterwards no memory is shared, and attention is as it was, whether it was training or not", "Returns nothing"]
# Hidden checks of load_keras_weights: attention is left alone, nothing is returned, and the Keras layer still learns.
### BEGIN HIDDEN TESTS
@probe
def afterwards(state, query):
    """What is returned, attention before and after, and the gradients of the Keras layer."""
    attention, theirs = MultiHeadAttention(12, 3), keras.layers.MultiHeadAttention(3, 4)
    attention.load_state_dict(state)
    attention(query)[0].square().sum().backward()
    attention.eval()
    attention.W_v.train()
    attention.W_k.requires_grad_(False)

    def seen():
        modes = [module.training for module in attention.modules()]
        parameters = [[x.requires_grad, x.grad is not None, x.detach().clone()] for x in attention.parameters()]
        return [modes, parameters]

    before = seen()
    theirs.build(query.shape, query.shape)
    returned = load_keras_weights(theirs, attention)
    theirs(query, query).square().sum().backward()
    slopes = [torch.as_tensor(one.value.grad).flatten() for one in theirs.trainable_weights if one.value.grad is not None]
    theirs.set_weights([np.ones_like(one) for one in theirs.get_weights()])
    return returned is None, before, seen(), slopes


rng, ours = check_rng(), MultiHeadAttention(12, 3)
state = {name: torch.tensor(0.4 * rng.normal(size=tuple(x.shape))).float() for name, x in ours.state_dict().items()}
ours.load_state_dict(state)
query = torch.tensor(rng.normal(size=(2, 4, 12))).float()
nothing, before, after, slopes = afterwards(state, query)
with check("gradients of the Keras layer, in whatever order", points=0.75):
    assert_equal(len(slopes), 8, "After backward each of its eight variables has a gradient.", name="how many have one")
    ours(query)[0].square().sum().backward()
    wanted = torch.cat([parameter.grad.flatten() for parameter in ours.parameters()]).sort()[0]
    message = "The gradients that attention's parameters would get, in whatever order."
    assert_close(torch.cat(slopes).sort()[0], wanted, message, name="all gradients, sorted", rtol=1e-3, atol=1e-3)
with check("attention is left alone, nothing is returned", points=0.5, side=True):
    message = "attention was in evaluation mode but for W_v, held gradients, W_k was frozen, and ones were written into the Keras layer later."
    assert_equal(after[0], before[0], message, name="which parts are in training mode", against="before the call")
    assert_equal(after[1], before[1], message, name="of each parameter: learns, gradient, numbers", against="before the call")
    assert_equal(nothing, True, "keras_attention is changed in place, and None is returned.", name="'nothing is returned'")
checks_passed("load_keras_weights")
### END HIDDEN TESTS


# %% check="load_keras_weights_errors" points=0.5 card=["Sizes that differ are a ValueError, and then nothing has been copied: another number of heads, another key_dim, a value_dim that is not key_dim, or a layer that was built for inputs or outputs of another width"]
# Hidden checks of load_keras_weights: sizes that differ, after which nothing has been copied.
### SIDE CONDITION: counts once another check of load_keras_weights passes.
### BEGIN HIDDEN TESTS
@probe
def refused(num_heads, key_dim, output_shape, widths):
    """Whether nothing was copied; None without a ValueError."""
    theirs = keras.layers.MultiHeadAttention(num_heads, key_dim, output_shape=output_shape)
    theirs.build(*((None, None, width) for width in widths))
    theirs.set_weights([np.full_like(one, 0.1) for one in theirs.get_weights()])
    try:
        load_keras_weights(theirs, MultiHeadAttention(12, 3))
    except ValueError:
        return max(float(np.abs(one - 0.1).max()) for one in theirs.get_weights()) < 1e-6
    return None


for what, *sizes in (
    ("four heads of 3", 4, 3, 12, (12, 12, 12)),
    ("six heads of 4", 6, 4, 12, (12, 12, 12)),
    ("outputs of width 7", 3, 4, 7, (12, 12, 12)),
    ("queries of width 24", 3, 4, 12, (24, 12, 12)),
    ("values of width 10", 3, 4, 12, (12, 10, 12)),
    ("keys of width 10", 3, 4, 12, (12, 12, 10)),
):
    message = f"MultiHeadAttention(12, 3), and a Keras layer of {what}: a ValueError, and nothing has been copied."
    assert_equal(refused(*sizes), True, message, name="'refused, and nothing copied' (None: no ValueError)")
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
# ## 3. For the curious: what differs, row by row
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
    figure, panels = plt.subplots(1, 2, figsize=(8.3, 3.2))
    for axes, weights in zip(panels, maps):
        draw_heatmap(axes, weights[:5], names[:5], names, vmax=0.25)
        for number in axes.texts:
            number.set_fontsize(7)
    lost = [float(weights[:5, 5:].sum(-1).mean()) for weights in maps]
    for axes, share, title in zip(panels, lost, ("the friend's encoder", "mended")):
        axes.set_title(f"{title}: {share:.2f} of a row\nlies on padding", fontsize=10)
        axes.add_patch(plt.Rectangle((5, 0), 3, 5, fill=False, edgecolor="#b35806", linewidth=2, clip_on=False))
    panels[1].set_ylabel("")
    figure.tight_layout()
    show(
        figure,
        "Figure 2. Head 0 on a text of five words and three of padding (framed). The maps say nothing about words: nothing "
        "was trained.",
        "Two maps of five words by eight places. Left, all numbers are about an eighth, also those of the three places of "
        "padding. Right, the three last columns are 0, and the others are about a fifth.",
        text_table(torch.cat([maps[0][:5], maps[1][:5]]), [f"{name} ({which})" for which in ("friend", "mended") for name in names[:5]], names),
    )  # fmt: skip
    assert lost[0] > 0.3 and lost[1] == 0

# %% [markdown]
# Training need not have told: a model may learn to live with padding, if there is always about as much of it.
# (Nothing was trained here.) The test is lesson 12's: the same text, alone and in other company.
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
