# %% [markdown]
# ## What you will be able to do
#
# - **Build** multi-head attention from four linear layers and two rearrangements, for any number of
#   batch axes and every shape of mask.
# - **Find** the silent bug that mixes positions, and **show** on which tasks it stays hidden.
# - **Copy** weights between your layer and `nn.MultiheadAttention`, and **prove** that both agree.
# - **Train** heads that do visibly different work, and **measure** what each head is worth by
#   removing it.
# - **Choose** a number of heads, and **say** what that choice costs and what it does not.

# %% tags=["setup"]
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.checks import (
    assert_close,
    assert_equal,
    assert_raises,
    check,
    check_answer,
    check_rng,
    checks_passed,
    probe,
)
from lesson_kit.earlier import (
    TorchSelfAttention,
    permutation_error,
    torch_scaled_dot_product_attention,
)
from lesson_kit.figures import draw_flow, draw_heatmap, show, text_table
from lesson_kit.guesses import puzzle, reply
from lesson_kit.hands_on import switches
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# ## Before you begin: three questions on earlier lessons
#
# Answer from memory, then look it up if you must: what you fetch yourself stays longer than what
# you read again.
#
# (Lesson 4.) You permute the words of a text. What does self-attention without positions give?
#
# * `"a"`: The same output
# * `"b"`: The same rows in the new order
# * `"c"`: Other rows

# %% answer="answer_again_order"
### BEGIN SOLUTION
answer_again_order = "b"
### END SOLUTION

# %% check="answer_again_order" points=0.5
check_answer("answer_again_order", answer_again_order)

# %% [markdown]
# (Lesson 3.) Padding must not be attended to. Where does the mask act?
#
# * `"a"`: On the scores, before the softmax
# * `"b"`: On the weights, after the softmax
# * `"c"`: On the values

# %% answer="answer_again_padding"
### BEGIN SOLUTION
answer_again_padding = "a"
### END SOLUTION

# %% check="answer_again_padding" points=0.5
check_answer("answer_again_padding", answer_again_padding)

# %% [markdown]
# (Lesson 2.) Queries and keys share one matrix. What is lost?
#
# * `"a"`: Every look in one direction
# * `"b"`: Circles, such as each day looking at the next
# * `"c"`: Nothing, at a large width

# %% answer="answer_again_circle"
### BEGIN SOLUTION
answer_again_circle = "b"
### END SOLUTION

# %% check="answer_again_circle" points=0.5
check_answer("answer_again_circle", answer_again_circle)

# %% [markdown]
# `lesson_kit.earlier`, imported above, brings the tools of lessons 3 and 4: your own where they passed
# their checks, else the course's. The setup cell says which.
#
# ## 1. Why is one attention not enough?
#
# Two sentences: "the cat sees the dog" and "the dog sees the cat". The word "sees" needs two things
# from its sentence: **who** sees, and **who** is seen. One attention gives "sees" one row of
# weights and one weighted average. Suppose that it gives half of its weight to each noun:

# %%
nouns = {"cat": np.array([1.0, 0.0]), "dog": np.array([0.0, 1.0])}  # made by hand: one feature each
for before, after in (("cat", "dog"), ("dog", "cat")):
    one_head = 0.5 * nouns[before] + 0.5 * nouns[after]  # (2,)
    two_heads = np.concatenate([nouns[before], nouns[after]])  # (4,): word before, word after
    print(f"the {before} sees the {after}:  one head {one_head}   two heads {two_heads}")

# %% [markdown]
# The average is the same for both sentences: who sees whom is lost. (Weights of 0.7 and 0.3 would
# keep a trace of it. In section 6 you will see how far a trained head gets with that.) Two
# attentions side by side lose nothing: one looks at the word before, the other at the word after,
# and their results are **joined**, not averaged.
#
# Real sentences are full of such words. In "The animal didn't cross the street because it was too
# tired", the word "it" needs its noun ("animal") and also what is said of it ("tired").
#
# Each of these attentions is called a **head**. To keep the number of parameters and of multiply-adds the same, the $d_{model}$ features
# are shared out: with `num_heads` heads each head gets $d_k = d_v = d_{model} /$ `num_heads`
# features for its queries, keys and values. All heads here have that width, `d_head`.
#
# $$\text{head}_h = \operatorname{Attention}(Q W^Q_h,\ K W^K_h,\ V W^V_h), \qquad
# \operatorname{MultiHead}(Q, K, V) = [\text{head}_0, \text{head}_1, \dots]\, W^O$$
#
# That is the formula of Vaswani and others (2017); $h$ counts the heads, here from 0. $Q$, $K$ and
# $V$ are the *inputs* of the layer, three times the same text in self-attention. $[\dots]$ joins
# the heads' features. $W^O$ mixes them. $W^Q, W^K, W^V, W^O$ are `W_q`, `W_k`, `W_v`, `W_o` in code.
#
# ## 2. Splitting and combining
#
# Nobody loops over heads. One matrix $W^Q$ of size $d_{model} \times d_{model}$ projects for all
# heads at once. Then the features are **split**, all heads attend in one batched matrix product,
# and the results are **combined** again:
#
# - split: `(batch, n, d_model)` becomes `(batch, num_heads, n, d_head)`;
# - attend in every head: the shape stays;
# - combine: back to `(batch, n, d_model)`.

# %% tags=["demonstration"]
places = {"x": (0.0, 1.0), "combine": (7.2, 1.0), "W_o": (8.5, 1.0), "output": (9.8, 1.0)}
arrows = [("combine", "W_o"), ("W_o", "output")]
for head in range(2):
    places[f"attention, head {head}"] = (5.2, 1.6 - 1.2 * head)
    arrows.append((f"attention, head {head}", "combine"))
for row, letter in enumerate("qkv"):
    projection, split = f"W_{letter}", f"split#{letter}"
    places |= {projection: (1.5, 2.0 - row), split: (3.0, 2.0 - row)}
    arrows += [("x", projection), (projection, split)]
    arrows += [(split, f"attention, head {head}") for head in range(2)]
figure, axes = plt.subplots(figsize=(10, 3.2))
draw_flow(axes, places, arrows, plain=("x", "output"))
show(
    figure,
    "The layer with two heads: three projections, each split in two; two attentions that do not know "
    "of each other; their results side by side, mixed by one more matrix.",
    "Boxes with arrows. x goes to W_q, W_k and W_v; each of them is split, and both heads get a part "
    "of all three. The two attentions go to combine, that to W_o, and that is the output.",
)

# %% [markdown]
# Our sentence "the black cat is sleeping" with six features and two heads. The numbers are chosen
# so that you can read where they come from: 23 is word 2, feature 3.

# %%
words = ["the", "black", "cat", "is", "sleeping"]
table = 10 * np.arange(5)[:, None] + np.arange(6)  # (n, d_model) = (5, 6)
for word, row in zip(words, table):
    print(f"{word:9s} head 0: {row[:3]}   head 1: {row[3:]}")

# %% [markdown]
# Head 0 should get a matrix `(5, 3)`: features 0 to 2 of **all five words**. Head 1 gets features 3
# to 5 of all five words.
#
# **Predict, then run.** `table.reshape(2, 5, 3)` has exactly the shape that we want. Which words'
# features does its "head 0" hold?

# %% tags=["demonstration", "guess"]
guess_row = (6, 7, 8)  # write the three numbers in row 1 (the second row) of its "head 0"

# %%
print("'head 0' of table.reshape(2, 5, 3):")
print(table.reshape(2, 5, 3)[0])

# %% tags=["demonstration"]
came_out = tuple(table.reshape(2, 5, 3)[0, 1].tolist())
why = "A reshape goes on where the row before it ended: still in the word 'the'."
reply("guess_row", guess_row, came_out, why)

# %% [markdown]
# Only row 0 is right. Row 1 is 3, 4, 5: still the word "the". Row 2 should be "cat" and is "black".
# A reshape never changes the order in which the numbers are read, row after row. It only says where
# rows end. That order must change here, so some axes must be exchanged.

# %% [markdown]
# ### Exercise 1: `split_heads`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 10-15 minutes on it.
#
# - `x`: `(..., n, d_model)`, a NumPy array **or** a torch tensor, any number of leading axes (also
#   none). `num_heads`: an integer.
# - Returns `(..., num_heads, n, d_model / num_heads)`, of the same kind and dtype as `x`. Head `h`
#   holds features `h * d_head` to `(h + 1) * d_head - 1`.
# - Gradients flow (torch). `x` is not changed, and need not lie in memory in the usual order (checked
#   when graded).
# - `d_model` is not a multiple of `num_heads`: a `ValueError` that names both. For NumPy arrays and
#   for torch tensors.


# %% answer="split_heads"
def split_heads(x, num_heads):
    """Cut the features into num_heads pieces and give the pieces an axis of their own.

    Args:
        x: (..., n, d_model), NumPy array or torch tensor.
        num_heads: number of pieces.

    Returns:
        (..., num_heads, n, d_model / num_heads), same kind and dtype as x.

    Raises:
        ValueError: d_model is not a multiple of num_heads.
    """
    ### BEGIN SOLUTION
    *lead, n, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"d_model = {d_model} is not a multiple of num_heads = {num_heads}")
    return x.reshape(*lead, n, num_heads, d_model // num_heads).swapaxes(-3, -2)
    ### END SOLUTION


# %% check="split_heads" points=3.5
# Two positions, six features, three heads: worked out by hand.
x = np.array([[0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]])
expected = np.array([[[0, 1], [10, 11]], [[2, 3], [12, 13]], [[4, 5], [14, 15]]])
message = (
    "For {} (2, 6) and 3 heads {} (num_heads, n, d_head) = (3, 2, 2) is asked for. Head 0 should hold "
    "features 0 and 1 of BOTH positions: 0, 1 and 10, 11. If your head 0 holds 0, 1 and 2, 3: a reshape "
    "reads numbers in storage order and takes the next ones of the same position. If it holds 0 and 3: "
    "your heads take every third feature instead of neighbours."
)
with check("by hand, NumPy", points=1):
    said = message.format("a NumPy array", "a NumPy array")
    assert_equal(split_heads(x * 1.0, 3), expected * 1.0, said)
with check("by hand, torch", points=0.75):
    said = message.format("a torch tensor", "a torch tensor")
    assert_equal(split_heads(torch.tensor(x * 1.0), 3), torch.tensor(expected * 1.0), said)


def either(x, num_heads):
    """Your result for a NumPy array; where that is refused, for the tensor, as an array."""
    try:
        return split_heads(x.copy(), num_heads)
    except Exception:
        return np.asarray(split_heads(torch.tensor(x), num_heads))


def each_alone(texts):
    """Each text by itself, by your own function."""
    alone = np.stack([np.asarray(either(text, 3)) for text in texts])
    message = "Four texts (2, 6), one at a time: each gives (3, 2, 2), heads, positions, features."
    assert_equal(alone.shape, (4, 3, 2, 2), message, name="the shape of the four results")
    message = "Every number of a text has to stand in its heads once, unchanged and as float64."
    assert_equal(np.sort(alone, axis=None), np.sort(texts, axis=None), message)
    return alone


texts = np.stack([x + 100 * text for text in range(4)]) + 0.5
with check("a batch: each text as alone", points=1):
    message = (
        "With a batch axis (4, 2, 6) gives (4, 3, 2, 2), text by text. Each comes out as it does "
        "alone."
    )
    found = either(texts, 3)
    assert_equal(found, each_alone(texts), message, against="for each text alone")
with check("whole numbers: placed as floats are, dtype kept", points=0.25):
    message = (
        "Whole numbers stay whole numbers of the same dtype, and stand where your function puts "
        "the same numbers as float64."
    )
    found = split_heads(x.copy(), 3)
    wanted = each_alone(texts - 0.5)[0].astype(x.dtype)
    dtype = str(getattr(found, "dtype", None))
    assert_equal(dtype, str(x.dtype), message, name="the dtype of the result")
    assert_equal(found, wanted, message, against="for them as float64")


@probe
def gradient_of_squares(x):
    x = x.clone().requires_grad_()
    total = (split_heads(x, 3) ** 2).sum()
    if total.requires_grad:
        total.backward()
    return x.grad


with check("gradients flow", points=0.25, side=True):
    message = (
        "The sum of the squares of all numbers of the result has the gradient 2 x, wherever they "
        "stand. Check first: does every step stay in torch?"
    )
    given = torch.tensor(texts[1])
    assert_close(gradient_of_squares(given), 2 * given, message, name="the gradient")
with (
    check("four heads for six features", points=0.25, side=True),
    assert_raises(ValueError, "Six features do not fill four heads: a ValueError."),
):
    either(np.zeros((2, 6)), 4)
checks_passed("split_heads")


# %% check="split_heads_batches" points=1
# Hidden checks of split_heads: from none to eight leading axes, both kinds.
### BEGIN HIDDEN TESTS
@probe
def what_is_raised(x, num_heads):
    try:
        split_heads(x, num_heads)
    except NotImplementedError:
        raise
    except Exception as error:
        return type(error).__name__
    return "nothing"


rng = check_rng()
cases = []
deep = (1, 2, 1, 1, 2), (1, 1, 2, 1, 1, 1, 2, 1)  # five and eight leading axes
for lead in ((), (7,), (1,), (2, 3), (2, 1, 3), (1, 2, 1, 3), *deep):
    for num_heads in (2, 3, 4):
        x = rng.normal(size=(*lead, 5, 12))
        cases.append((lead, num_heads, x))


def compare(kind):
    for lead, num_heads, x in cases:
        expected = np.empty((*lead, num_heads, 5, 12 // num_heads))
        dtype = "float64"
        for place in np.ndindex(*lead):  # each text by itself, by your own function
            one = np.asarray(split_heads(kind(x[place]), num_heads))
            message = f"A text (5, 12) alone, {num_heads} heads: (heads, positions, features)."
            assert_equal(one.shape, (num_heads, 5, 12 // num_heads), message, name="the shape")
            expected[place] = one
            dtype = str(one.dtype)
        message = "Every number of a text has to stand in its heads once, unchanged (float64)."
        if dtype != "float64":
            message += f" The dtype of your results is {dtype}. Check first: is something made in it?"
        numbers = np.sort(expected.reshape(*lead, 60))
        assert_equal(numbers, np.sort(x.reshape(*lead, 60)), message, name="the sorted numbers")
        message = (
            f"With leading axes {lead} and {num_heads} heads each text should come out as it does "
            "alone, as the kind of array and the dtype that x has: the head axis belongs directly "
            "before the position axis, whatever stands in front. Axes counted from the end fit."
        )
        if len(lead) > 4:
            raised = what_is_raised(kind(x), num_heads)
            many = (
                f"x of shape {x.shape}, with {len(lead)} leading axes: any number is allowed. What your "
                f"function raises: {raised}."
            )
            assert_equal(raised, "nothing", many, name="what is raised")
        found = split_heads(kind(x), num_heads)
        assert_equal(found, kind(expected), message, against="for each text alone")


with check("NumPy: each text as alone", points=0.5):
    compare(np.array)
with check("torch: each text as alone", points=0.5):
    compare(torch.tensor)
checks_passed("split_heads")
### END HIDDEN TESTS


# %% check="split_heads_edges" points=1.25
# Hidden checks of split_heads: one head, one feature a head, one position, many sizes.
### BEGIN HIDDEN TESTS
def either(x, num_heads):
    """Your result for a NumPy array; where that is refused, for the tensor, as an array."""
    try:
        return split_heads(x.copy(), num_heads)
    except Exception:
        return np.asarray(split_heads(torch.tensor(x), num_heads))


rng = check_rng()
cases = []
for n, d_model, num_heads in ((5, 6, 1), (5, 6, 6), (1, 6, 2), (1, 1, 1), (6, 6, 3), (3, 8, 2)):
    x = rng.normal(size=(2, n, d_model))
    expected = np.stack(np.split(x, num_heads, axis=-1), axis=-3)
    message = (
        f"x of shape {x.shape}, num_heads = {num_heads}: this is a valid split, done as any other, "
        "each head with its neighbouring features of all positions. Features a head: "
        f"{d_model // num_heads}."
    )
    cases.append((num_heads, x, expected, message))
for lead, n, d_model, num_heads in ((3, 3, 9, 3), (4, 4, 4, 4), (1, 5, 6, 2), (1, 1, 3, 3), (2, 300, 64, 8)):
    x = rng.normal(size=(lead, n, d_model))
    expected = np.stack(np.split(x, num_heads, axis=-1), axis=-3)
    message = (
        f"x of shape {x.shape}, {num_heads} heads: shape {expected.shape}, each head with its "
        "neighbouring features of all positions, whichever lengths are equal or 1. Features a "
        f"head: {d_model // num_heads}."
    )
    cases.append((num_heads, x, expected, message))
sizes = [(2, 65, 130, 5), (3, 2, 2, 1), (1, 3, 99, 3), (5, 5, 35, 7), (2, 1, 2, 2), (3, 33, 66, 2)]
texts = [("random", rng.normal(size=(lead, n, d)), heads) for lead, n, d, heads in sizes]
x = rng.normal(size=(2, 5, 6))
twin, empty = x.copy(), x.copy()
twin[:, 2], empty[:, 1] = twin[:, 1], 0.0
texts += [
    ("rows 1 and 2 are equal", twin, 3),
    ("row 1 is 0", empty, 2),
    ("all rows are equal", np.repeat(x[:, :1], 5, axis=1), 3),
    ("times 2000", 2000 * x, 3),
    ("all numbers are 0", 0.0 * x, 2),
]
for what, x, num_heads in texts:
    expected = np.stack(np.split(x, num_heads, axis=-1), axis=-3)
    message = (
        f"x of shape {x.shape} ({what}), num_heads = {num_heads}: shape {expected.shape}, each "
        f"head with its neighbouring features of all positions. Features a head: {expected.shape[-1]}."
    )
    cases.append((num_heads, x, expected, message))
with check("one text, in one of the two kinds", points=0.75):
    for num_heads, x, expected, message in cases:
        one_text = message.replace(str(x.shape), str(x.shape[1:]))
        assert_equal(either(x[0], num_heads), expected[0], one_text)
with check("a batch, NumPy", points=0.25):
    for num_heads, x, expected, message in cases:
        assert_equal(split_heads(x.copy(), num_heads), expected, message)
with check("a batch, torch", points=0.25):
    for num_heads, x, expected, message in cases:
        assert_equal(split_heads(torch.tensor(x), num_heads), torch.tensor(expected), message)
checks_passed("split_heads")
### END HIDDEN TESTS


# %% check="split_heads_dtypes" points=0.25
# Hidden checks of split_heads: every dtype is kept, and the kind of array.
### BEGIN HIDDEN TESTS
rng = check_rng()
numbers = rng.integers(-99, 100, size=(4, 6))
numbers[0, :2] = 0
for dtype in (np.float64, np.float32, np.int64, np.int32):
    x = numbers.astype(dtype)
    expected = np.asarray(split_heads(numbers + 0.0, 2))
    message = "One text, two heads, four positions, three features a head."
    assert_equal(expected.shape, (2, 4, 3), message, name="the shape")
    expected = expected.astype(dtype)
    message = "The heads hold the numbers of x, which are not all 0."
    assert_equal(bool(expected.any()), True, message)
    message = (
        f"{dtype.__name__} should stay {dtype.__name__}, NumPy NumPy, and torch torch, with the "
        "numbers that the heads hold for float64."
    )
    floats = "from float64, cast to this dtype"
    assert_equal(split_heads(x.copy(), 2), expected, message, against=floats)
    if dtype in (np.float64, np.float32):
        found = split_heads(torch.tensor(x), 2)
        assert_equal(found, torch.tensor(expected), message, against=floats)
### END HIDDEN TESTS


# %% check="split_heads_inputs" points=0.5
# Hidden checks of split_heads: x afterwards; gradients; any layout; nn.Parameter.
### SIDE CONDITION: counts once another check of split_heads passes.
### BEGIN HIDDEN TESTS
@probe
def argument_after(x, num_heads):
    split_heads(x, num_heads)
    return x


@probe
def gradient(x, direction):
    x = x.clone().requires_grad_()
    heads = split_heads(x, 3)
    if heads.requires_grad:
        (heads * direction).sum().backward()
    return x.grad


@probe
def of_turned_around(x, num_heads):
    return split_heads(x.swapaxes(-1, -2), num_heads)  # not contiguous in memory


@probe
def of_parameter(x, num_heads, learns):
    """What is raised for an nn.Parameter, the kind of the result, and its numbers."""
    try:
        found = split_heads(nn.Parameter(x, requires_grad=learns), num_heads)
    except NotImplementedError:
        raise
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        return type(error).__name__, "nothing", x
    kind = "a torch tensor" if isinstance(found, torch.Tensor) else f"a {type(found).__name__}"
    return "nothing", kind, found.detach().clone() if kind == "a torch tensor" else found


@probe
def of_reversed(x, num_heads):
    """What is raised for the positions from the last to the first, a view, and the result."""
    try:
        return "nothing", split_heads(x[:, ::-1], num_heads)
    except NotImplementedError:
        raise
    except (RuntimeError, ValueError, TypeError) as error:
        return type(error).__name__, x


rng = check_rng()
x = rng.normal(size=(2, 5, 6))


def unchanged_and_turned(given):
    copy = given.copy() if isinstance(given, np.ndarray) else given.clone()
    assert_equal(argument_after(copy, 3), given, "x was changed by the call.", name="x")
    turned = given.swapaxes(-1, -2)
    turned = turned.copy() if isinstance(turned, np.ndarray) else turned.contiguous()
    expected = np.stack(np.split(x, 3, axis=-1), axis=-3)
    expected = expected if isinstance(given, np.ndarray) else torch.tensor(expected)
    for one, wanted in ((turned, expected), (turned[0], expected[0])):
        message = (
            "x may be the transpose of another array, so that its numbers do not lie in memory in "
            "the usual order: it has to be split as any other x "
            f"(shape {(2, 5, 6) if one is turned else (5, 6)}, 3 heads)."
        )
        assert_equal(of_turned_around(one, 3), wanted, message)


with check("NumPy", points=0.25):
    unchanged_and_turned(x)
    raised, found = of_reversed(x.copy(), 3)
    message = (
        "x may be x[:, ::-1] of another NumPy array, here of shape (2, 5, 6): a view in which the "
        "positions stand from the last to the first. Its numbers do not lie in memory in the usual "
        f"order, and it has to be split as any other x (3 heads). What your function raises: {raised}."
    )
    assert_equal(raised, "nothing", message, name="what is raised")
    backwards = np.stack(np.split(x[:, ::-1], 3, axis=-1), axis=-3)
    assert_equal(found, backwards, message)
with check("torch", points=0.25):
    unchanged_and_turned(torch.tensor(x))
    for learns in (True, False):
        raised, kind, found = of_parameter(torch.tensor(x), 3, learns)
        message = (
            "x may be an nn.Parameter, which is a torch tensor, here of shape (2, 5, 6) with "
            f"requires_grad={learns} (3 heads): it has to be split as any other tensor. What your function "
            f"raises: {raised}. What it returns: {kind}."
        )
        assert_equal([raised, kind], ["nothing", "a torch tensor"], message, name="raised, returned")
        wanted = torch.tensor(np.stack(np.split(x, 3, axis=-1), axis=-3))
        assert_equal(found, wanted, message)
    direction = torch.tensor(rng.normal(size=(2, 3, 5, 2)))
    expected = torch.cat(direction.unbind(-3), dim=-1)
    message = (
        "Gradients should flow through split_heads: a sum of all numbers of the heads, each times a "
        "weight, has for each number of x its own weight as gradient. Check first: is something "
        "detached?"
    )
    assert_close(gradient(torch.tensor(x), direction), expected, message, name="the gradient")
checks_passed("split_heads")
### END HIDDEN TESTS


# %% check="split_heads_errors" points=0.5
# Hidden checks of split_heads: d_model that does not divide, NumPy and torch.
### SIDE CONDITION: counts once another check of split_heads passes.
### BEGIN HIDDEN TESTS
def refused(kind):
    for shape, num_heads in (((3, 7), 2), ((2, 4, 6), 4), ((4, 8), 3), ((2, 3, 4), 8), ((5, 12), 5)):
        message = f"x of shape {shape} and num_heads = {num_heads}: a ValueError ({kind.__module__})."
        with assert_raises(ValueError, message):
            split_heads(kind(shape), num_heads)


with check("NumPy", points=0.25):
    refused(np.ones)
with check("torch", points=0.25):
    refused(torch.ones)
checks_passed("split_heads")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two steps. First cut the last axis in two, `(..., n, num_heads, d_head)`: this keeps the order of
# the numbers, so a reshape is right. Then exchange two axes, counted from the end. Look for a
# method that NumPy arrays and torch tensors both have under one name. Reshape alone cannot do the
# second step: it never changes the order of the numbers.
#
# </details>


# %% [markdown]
# ### Exercise 2: `combine_heads`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 10 minutes on it.
#
# The way back: the results of all heads for one position stand side by side again.
#
# - `x`: `(..., num_heads, n, d_head)`, NumPy array or torch tensor, any number of leading axes.
# - Returns `(..., n, num_heads * d_head)`, same kind and dtype: head 0's features first.
# - It is the exact inverse of `split_heads`; the rest is as in exercise 1. No errors are graded here.


# %% answer="combine_heads"
def combine_heads(x):
    """Put the heads' features side by side again: the inverse of split_heads.

    Args:
        x: (..., num_heads, n, d_head), NumPy array or torch tensor.

    Returns:
        (..., n, num_heads * d_head), same kind and dtype as x.
    """
    ### BEGIN SOLUTION
    *lead, num_heads, n, d_head = x.shape
    return x.swapaxes(-3, -2).reshape(*lead, n, num_heads * d_head)
    ### END SOLUTION


# %% check="combine_heads" points=3
# Three heads, two positions, two features a head: worked out by hand.
heads = np.array([[[0, 1], [10, 11]], [[2, 3], [12, 13]], [[4, 5], [14, 15]]])
expected = np.array([[0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]])
message = (
    "Three heads of (2, 2), {0}, give {0} (n, d_model) = (2, 6). Row 0 should hold what the three heads "
    "found for position 0: 0, 1, 2, 3, 4, 5. If your row 0 begins 0, 1, 10, 11: it mixes positions. A "
    "reshape alone reads the numbers in storage order."
)
with check("by hand, NumPy", points=0.75):
    said = message.format("a NumPy array")
    assert_equal(combine_heads(heads * 1.0), expected * 1.0, said)
with check("by hand, torch", points=0.75):
    said = message.format("a torch tensor")
    assert_equal(combine_heads(torch.tensor(heads * 1.0)), torch.tensor(expected * 1.0), said)


def either(x):
    """Your result for a NumPy array; where that is refused, for the tensor, as an array."""
    try:
        return combine_heads(x.copy())
    except Exception:
        return np.asarray(combine_heads(torch.tensor(x)))


def each_alone(texts):
    """Each text by itself, by your own function."""
    alone = np.stack([np.asarray(either(text)) for text in texts])
    message = (
        "Looked at are four texts (3, 2, 2), one at a time, without a batch axis: each gives (2, 6), "
        "positions and features. (What another call gives for them is compared with this.)"
    )
    assert_equal(alone.shape, (4, 2, 6), message, name="the shape of the four results")
    message = "Every number of the heads has to stand in the result once, unchanged and as float64."
    assert_equal(np.sort(alone, axis=None), np.sort(texts, axis=None), message)
    return alone


texts = np.stack([heads + 100 * text for text in range(4)]) + 0.5
with check("a batch of four texts: each as it is alone", points=1):
    message = (
        "Looked at are a batch (4, 3, 2, 2), which gives (4, 2, 6), and each of its four texts "
        "(3, 2, 2) alone, without a batch axis: the two come out alike."
    )
    found = either(texts)
    assert_equal(found, each_alone(texts), message, against="for each text alone")
with check("whole numbers: placed as floats are, dtype kept", points=0.25):
    message = (
        "Whole numbers stay whole numbers of the same dtype, and stand where your function puts "
        "the same numbers as float64."
    )
    wanted = each_alone(texts - 0.5)[0].astype(heads.dtype)
    found = combine_heads(heads.copy())
    dtype = str(getattr(found, "dtype", None))
    assert_equal(dtype, str(heads.dtype), message, name="the dtype of the result")
    assert_equal(found, wanted, message, against="for them as float64")


@probe
def gradient_of_squares(x):
    x = x.clone().requires_grad_()
    total = (combine_heads(x) ** 2).sum()
    if total.requires_grad:
        total.backward()
    return x.grad


with check("gradients flow", points=0.25, side=True):
    message = (
        "The sum of the squares of all numbers of the result has the gradient 2 x, wherever they "
        "stand. Check first: does every step stay in torch?"
    )
    given = torch.tensor(texts[1])
    assert_close(gradient_of_squares(given), 2 * given, message, name="the gradient")
checks_passed("combine_heads")


# %% check="combine_heads_batches" points=1
# Hidden checks of combine_heads: from none to eight leading axes, both kinds.
### BEGIN HIDDEN TESTS
@probe
def raised_by_combining(x):
    try:
        combine_heads(x)
    except NotImplementedError:
        raise
    except Exception as error:
        return type(error).__name__
    return "nothing"


rng = check_rng()
cases = []
deep = (1, 2, 1, 1, 2), (1, 1, 2, 1, 1, 1, 2, 1)  # five and eight leading axes
for lead in ((), (7,), (1,), (2, 3), (2, 1, 3), (1, 2, 1, 3), *deep):
    for num_heads in (2, 3, 4):
        cases.append((lead, num_heads, rng.normal(size=(*lead, num_heads, 5, 6))))


def compare(kind):
    for lead, num_heads, x in cases:
        expected = np.empty((*lead, 5, 6 * num_heads))
        dtype = "float64"
        for place in np.ndindex(*lead):  # each text by itself, by your own function
            one = np.asarray(combine_heads(kind(x[place])))
            message = f"{num_heads} heads (5, 6) of a text alone: (positions, all heads' features)."
            assert_equal(one.shape, (5, 6 * num_heads), message, name="the shape")
            expected[place] = one
            dtype = str(one.dtype)
        message = "Every number of the heads has to stand in the result once, unchanged (float64)."
        if dtype != "float64":
            message += f" The dtype of your results is {dtype}. Check first: is something made in it?"
        numbers = np.sort(expected.reshape(*lead, -1))
        assert_equal(numbers, np.sort(x.reshape(*lead, -1)), message, name="the sorted numbers")
        if len(lead) > 4:
            raised = raised_by_combining(kind(x))
            many = (
                f"x of shape {x.shape}, with {len(lead)} leading axes: any number is allowed. What your "
                f"function raises: {raised}."
            )
            assert_equal(raised, "nothing", many, name="what is raised")
        found = combine_heads(kind(x))
        shape = tuple(np.shape(found))
        wanted = (*lead, 5, 6 * num_heads)
        message = (
            f"x of shape {x.shape}: the result should have the shape {wanted}, the leading axes "
            f"{lead} as x has them, and its shape is {shape}."
        )
        assert_equal(shape, wanted, message, name="the shape")
        message = (
            f"x of shape {x.shape}, leading axes {lead} and {num_heads} heads: each text should "
            "come out as it does alone, as the kind of array and the dtype that x has: only the "
            "heads and the features are merged."
        )
        assert_equal(found, kind(expected), message, against="for each text alone")


with check("NumPy: each text as alone", points=0.5):
    compare(np.array)
with check("torch: each text as alone", points=0.5):
    compare(torch.tensor)
checks_passed("combine_heads")
### END HIDDEN TESTS


# %% check="combine_heads_edges" points=1.25
# Hidden checks of combine_heads: one head, one feature a head, one position, many sizes.
### BEGIN HIDDEN TESTS
def either(x):
    """Your result for a NumPy array; where that is refused, for the tensor, as an array."""
    try:
        return combine_heads(x.copy())
    except Exception:
        return np.asarray(combine_heads(torch.tensor(x)))


rng = check_rng()
cases = []
for num_heads, n, d_head in ((1, 5, 6), (6, 5, 1), (2, 1, 3), (1, 1, 1), (3, 3, 2), (4, 4, 4)):
    x = rng.normal(size=(2, num_heads, n, d_head))
    expected = np.concatenate([x[:, h] for h in range(num_heads)], axis=-1)
    message = (
        f"x of shape {x.shape}, a batch of two texts (heads: {num_heads}, positions: {n}, features "
        f"a head: {d_head}): a valid shape. Each position of each text gets the features of head 0, "
        "then of head 1, and so on."
    )
    cases.append((x, expected, message))
for lead, num_heads, n, d_head in ((3, 3, 3, 3), (1, 2, 5, 3), (1, 1, 1, 3), (5, 1, 5, 1), (2, 8, 300, 8)):
    x = rng.normal(size=(lead, num_heads, n, d_head))
    expected = np.concatenate([x[:, h] for h in range(num_heads)], axis=-1)
    message = (
        f"x of shape {x.shape}, leading axes {(lead,)}: shape {expected.shape}, and each position "
        "of each text gets the features of head 0, then of head 1, and so on, whichever lengths "
        "are equal or 1."
    )
    cases.append((x, expected, message))
sizes = [(2, 3, 5, 70), (1, 5, 33, 130), (3, 5, 65, 2), (5, 5, 1, 5), (2, 1, 3, 17)]
texts = [("random", rng.normal(size=shape)) for shape in sizes]
x = rng.normal(size=(2, 3, 4, 5))
twin, empty = x.copy(), x.copy()
twin[..., 2, :], empty[..., 1, :] = twin[..., 1, :], 0.0
texts += [
    ("rows 1 and 2 of each head are equal", twin),
    ("row 1 of each head is 0", empty),
    ("all rows of a head are equal", np.repeat(x[..., :1, :], 4, axis=-2)),
    ("times 2000", 2000 * x),
    ("all numbers are 0", 0.0 * x),
]
for what, x in texts:
    expected = np.concatenate([x[:, h] for h in range(x.shape[1])], axis=-1)
    message = (
        f"x of shape {x.shape}, leading axes {x.shape[:1]} ({what}): shape {expected.shape}, and "
        "each position of each text gets the features of head 0, then of head 1, and so on."
    )
    cases.append((x, expected, message))


def told(found, expected, x, message):
    """The message; where a dtype is all that is wrong, just that."""
    if type(found) is not type(expected) or found.shape != expected.shape:
        return message
    wanted = np.asarray(expected)
    same = np.abs(np.asarray(found, dtype=float) - wanted) <= 0.01 + 0.01 * np.abs(wanted)
    if found.dtype == expected.dtype or not same.all():
        return message
    return (
        f"x of shape {tuple(x.shape)}: the numbers stand where they should, up to rounding, and the "
        f"result should have the dtype of x, {expected.dtype}. Yours is {found.dtype}."
    )


def compare(found, expected, x, message):
    shape = tuple(np.shape(found))
    wanted = (
        f"x of shape {x.shape}, heads: {x.shape[-3]}. The result should have the shape "
        f"{tuple(expected.shape)}, and its shape is {shape}."
    )
    assert_equal(shape, tuple(expected.shape), wanted, name="the shape")
    assert_equal(found, expected, told(found, expected, x, message))


with check("one text, in one of the two kinds", points=0.75):
    for x, expected, message in cases:
        one_text = message.replace(str(x.shape), str(x.shape[1:]))
        compare(either(x[0]), expected[0], x[0], one_text)
with check("a batch, NumPy", points=0.25):
    for x, expected, message in cases:
        compare(combine_heads(x), expected, x, message)
with check("a batch, torch", points=0.25):
    for x, expected, message in cases:
        compare(combine_heads(torch.tensor(x)), torch.tensor(expected), x, message)
checks_passed("combine_heads")
### END HIDDEN TESTS


# %% check="combine_heads_dtypes" points=0.25
# Hidden checks of combine_heads: every dtype is kept, and the kind of array.
### BEGIN HIDDEN TESTS
rng = check_rng()
numbers = rng.integers(-99, 100, size=(2, 4, 5))
numbers[0, :2] = 0
for dtype in (np.float64, np.float32, np.int64, np.int32):
    x = numbers.astype(dtype)
    expected = np.asarray(combine_heads(numbers + 0.0))
    message = "One text, four positions, the features of two heads of five."
    assert_equal(expected.shape, (4, 10), message, name="the shape")
    expected = expected.astype(dtype)
    message = "The result holds the numbers of the heads, which are not all 0."
    assert_equal(bool(expected.any()), True, message)
    message = (
        f"{dtype.__name__} should stay {dtype.__name__}, NumPy NumPy, and torch torch, with the "
        "numbers that the result holds for float64."
    )
    floats = "from float64, cast to this dtype"
    assert_equal(combine_heads(x), expected, message, against=floats)
    if dtype in (np.float64, np.float32):
        found = combine_heads(torch.tensor(x))
        assert_equal(found, torch.tensor(expected), message, against=floats)
### END HIDDEN TESTS


# %% check="combine_heads_inputs" points=0.5
# Hidden checks of combine_heads: the argument keeps values and shape; gradients flow; any layout.
### SIDE CONDITION: counts once another check of combine_heads passes.
### BEGIN HIDDEN TESTS
@probe
def heads_after(x):
    combine_heads(x)
    return x


@probe
def gradient(x, direction):
    x = x.clone().requires_grad_()
    combined = combine_heads(x)
    if combined.requires_grad:
        (combined * direction).sum().backward()
    return x.grad


def in_plain_words(found, expected, x, message):
    """The message; where a dtype is all that is wrong, just that."""
    if type(found) is not type(expected) or found.shape != expected.shape:
        return message
    wanted = np.asarray(expected)
    same = np.abs(np.asarray(found, dtype=float) - wanted) <= 0.01 + 0.01 * np.abs(wanted)
    if found.dtype == expected.dtype or not same.all():
        return message
    return (
        f"x of shape {tuple(x.shape)}: the numbers stand where they should, up to rounding, and the "
        f"result should have the dtype of x, {expected.dtype}. Yours is {found.dtype}."
    )


@probe
def of_turned_heads(x):
    return combine_heads(x.swapaxes(-1, -3))  # not contiguous in memory


@probe
def of_reversed_heads(x):
    """What is raised for the positions from the last to the first, a view, and the result."""
    try:
        return "nothing", combine_heads(x[:, :, ::-1])
    except NotImplementedError:
        raise
    except (RuntimeError, ValueError, TypeError) as error:
        return type(error).__name__, x


rng = check_rng()
x = rng.normal(size=(2, 3, 5, 4))
expected = np.concatenate([x[:, h] for h in range(3)], axis=-1)


def heads_unchanged_and_turned(given):
    copy = given.copy() if isinstance(given, np.ndarray) else given.clone()
    assert_equal(heads_after(copy), given, "x was changed by the call.", name="x")
    turned = given.swapaxes(-1, -3)
    turned = turned.copy() if isinstance(turned, np.ndarray) else turned.contiguous()
    want = expected if isinstance(given, np.ndarray) else torch.tensor(expected)
    message = (
        "x of shape (2, 3, 5, 4), in the usual order in memory, leading axes (2,) and 3 heads: each "
        "position of each text gets the features of head 0, then of head 1, then of head 2."
    )
    found = combine_heads(given)
    assert_equal(found, want, in_plain_words(found, want, given, message))
    message = (
        "x may be the transpose of another array, so that its numbers do not lie in memory in the "
        "usual order: its heads have to be combined as those of any other x (shape (2, 3, 5, 4))."
    )
    found = of_turned_heads(turned)
    assert_equal(found, want, in_plain_words(found, want, given, message))


with check("NumPy", points=0.25):
    heads_unchanged_and_turned(x)
    raised, found = of_reversed_heads(x.copy())
    message = (
        "x may be x[:, :, ::-1] of another NumPy array, here of shape (2, 3, 5, 4): a view in which "
        "the positions stand from the last to the first. Its numbers do not lie in memory in the usual "
        f"order, and its heads have to be combined as those of any other x. What your function raises: "
        f"{raised}."
    )
    assert_equal(raised, "nothing", message, name="what is raised")
    assert_equal(found, expected[:, ::-1], message)
with check("torch", points=0.25):
    heads_unchanged_and_turned(torch.tensor(x))
    direction = torch.tensor(rng.normal(size=(2, 5, 12)))
    message = (
        "Gradients should flow through combine_heads: a sum of all numbers of the result, each times a "
        "weight, has for each number of x its own weight as gradient. Check first: is something "
        "detached?"
    )
    got = gradient(torch.tensor(x), direction)
    assert_close(got, torch.stack(direction.chunk(3, -1), 1), message, name="the gradient")
checks_passed("combine_heads")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Do the two steps of `split_heads` backwards, in the other order. (If torch refuses a `.view` here:
# after axes were exchanged the numbers no longer lie in order. `.reshape` copies when it must.)
#
# </details>

# %% [markdown]
# Before you go on, one warning about testing. The obvious test of a pair "split, combine" is the
# round trip: combine what you have split, and compare. **Predict, then run:** the pair below is
# wrong in both halves. Does the round trip find it?

# %%
wrong_split = table.reshape(2, 5, 3)  # (num_heads, n, d_head), with mixed positions
round_trip = wrong_split.reshape(5, 6)
print("round trip gives the table back:", np.array_equal(round_trip, table))

# %% [markdown]
# It does not: the two errors cancel. A round trip shows that nothing was lost. It does not show
# that anything is at its place. Your test of exercise 1 therefore compares with numbers made by
# hand.

# %% [markdown]
# ## 3. The layer
#
# Now the whole layer. In torch, a projection is an `nn.Linear`: it holds a weight `(out, in)` and a
# bias, and works on the last axis, whatever stands in front.
#
# 1. Project: `W_q(query)`, `W_k(key)`, `W_v(value)`.
# 2. Split each into heads.
# 3. Attend, with lesson 3's `torch_scaled_dot_product_attention(Q, K, V, mask=None)`. It returns
#    `(output, weights)`. It takes any number of leading axes, so it does not notice that one of
#    them counts heads. It scales by the width of the vectors it gets: $\sqrt{d_{head}}$, and not
#    $\sqrt{d_{model}}$. Its mask is boolean, True = may attend, and broadcasts to the weights; a
#    query that may attend to nothing gets weights 0 and output 0.
# 4. Combine.
# 5. Project with `W_o`.
#
# Only the mask needs thought. The weights have a head axis that `query` does not have. A mask for
# each text has shape `(batch, n_q, n_k)`, and the weights `(batch, num_heads, n_q, n_k)`.
# Broadcasting compares axes from the right: `batch` of the mask would meet `num_heads`. With other
# sizes this is an error. With as many texts as heads it is silent: head 0 of *every* text gets the
# mask of text 0.

# %% [markdown]
# ### Exercise 3: `MultiHeadAttention`
#
# Difficulty: ●●●●○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 30-40 minutes on it.
#
# The layer of the paper, with biases as in torch. Lessons 6 to 9 are built from it.
#
# - `MultiHeadAttention(d_model, num_heads)`: parts `W_q`, `W_k`, `W_v`, `W_o`, each
#   `nn.Linear(d_model, d_model)` with bias. Graded error: a `ValueError` if `d_model` is not a
#   multiple of `num_heads`.
# - `forward(query, key=None, value=None, mask=None)`: `query (..., n_q, d_model)`; `key`, `value`
#   `(..., n_k, d_model)`, with the same leading axes. `key` defaults to `query`, `value` to `key`.
# - Returns `(output (..., n_q, d_model), weights (..., num_heads, n_q, n_k))`, the weights of every
#   head. Head `h` works on features `h * d_head` to `(h + 1) * d_head - 1` of the projections.
# - `mask`: `None` or boolean, `True` = may attend. It has a head axis exactly when it has **more
#   axes than `query`**. Otherwise it serves every head: give it an axis of length 1 before its last
#   two. A mask with one axis simply broadcasts. With `num_heads = 8`:
#
# | `query` | `mask` | meaning |
# |---|---|---|
# | `(n_q, d_model)` | `(n_q, n_k)` | one mask for all heads |
# | `(n_q, d_model)` | `(8, n_q, n_k)` | a mask for each head |
# | `(batch, n_q, d_model)` | `(n_k,)` or `(n_q, n_k)` | one mask for all texts and heads |
# | `(batch, n_q, d_model)` | `(batch, n_q, n_k)` or `(batch, 1, n_k)` | a mask for each text |
# | `(batch, n_q, d_model)` | `(batch, 8, n_q, n_k)` | a mask for each text and head |
#
# A query that may attend to nothing has weights 0, the bias of `W_o` as output, and finite gradients.
# Gradients flow through both results, to inputs and parameters. The conventions of lesson 1 hold
# (checked when graded).


# %% answer="MultiHeadAttention"
class MultiHeadAttention(nn.Module):
    """Multi-head attention: num_heads attentions side by side, then one projection.

    Parts W_q, W_k, W_v, W_o: nn.Linear(d_model, d_model).

    Raises:
        ValueError: d_model is not a multiple of num_heads.
    """

    def __init__(self, d_model, num_heads):
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not a multiple of num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        ### END SOLUTION

    def forward(self, query, key=None, value=None, mask=None):
        """Attend in every head.

        Args:
            query: (..., n_q, d_model).
            key: (..., n_k, d_model); None means query.
            value: (..., n_k, d_model); None means key.
            mask: boolean, True = may attend; with a head axis exactly when it has more axes
                than query, otherwise it serves every head.

        Returns:
            output (..., n_q, d_model) and weights (..., num_heads, n_q, n_k).
        """
        ### BEGIN SOLUTION
        key = query if key is None else key
        value = key if value is None else value
        if mask is not None and 2 <= mask.ndim <= query.ndim:
            mask = mask.unsqueeze(-3)  # (..., 1, n_q, n_k): the same for every head
        Q = split_heads(self.W_q(query), self.num_heads)  # (..., num_heads, n_q, d_head)
        K = split_heads(self.W_k(key), self.num_heads)  # (..., num_heads, n_k, d_head)
        V = split_heads(self.W_v(value), self.num_heads)  # (..., num_heads, n_k, d_head)
        heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
        return self.W_o(combine_heads(heads)), weights
        ### END SOLUTION


# %% check="MultiHeadAttention" points=6.75
# Twelve features, three heads, four queries, five keys; compared with torch's own function.
@probe
def attend(parts, num_heads, seed, query, key, value, mask):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layer = MultiHeadAttention(query.shape[-1], num_heads)
        with torch.no_grad():
            for name, (weight, bias) in parts.items():
                getattr(layer, name).weight.copy_(weight)
                if getattr(layer, name).bias is not None:  # "four parts" asks for it
                    getattr(layer, name).bias.copy_(bias)
            torch.manual_seed(seed)
            given = (x if x is None else x.clone() for x in (query, key, value, mask))
            return layer(*given)


@probe
def make(d_model, num_heads):
    MultiHeadAttention(d_model, num_heads)


def by_torch(parts, query, key, value):
    output, weights = F.multi_head_attention_forward(
        *(x.transpose(0, 1) for x in (query, key, value)),  # this function wants (n, batch, d)
        12,
        3,
        None,
        torch.cat([parts[name][1] for name in ("W_q", "W_k", "W_v")]),
        None,
        None,
        False,
        0.0,
        *parts["W_o"],
        use_separate_proj_weight=True,
        q_proj_weight=parts["W_q"][0],
        k_proj_weight=parts["W_k"][0],
        v_proj_weight=parts["W_v"][0],
        average_attn_weights=False,
    )
    return output.transpose(0, 1), weights


@probe
def kinds_of_parts(d_model, num_heads):
    layer = MultiHeadAttention(d_model, num_heads)
    parts = [getattr(layer, name, None) for name in ("W_q", "W_k", "W_v", "W_o")]
    linear = [part for part in parts if isinstance(part, nn.Linear) and part.bias is not None]
    return [tuple(part.weight.shape) for part in linear]


rng = check_rng()
seed = int(rng.integers(2**31))
parts = {
    name: tuple(torch.tensor(0.4 * rng.normal(size=s)).float() for s in ((12, 12), (12,)))
    for name in ("W_q", "W_k", "W_v", "W_o")
}
texts = [torch.tensor(rng.normal(size=(3, n, 12))).float() for n in (4, 5, 5)]
T, N = True, False

expected, expected_weights = by_torch(parts, *texts)
everything = torch.ones(4, 5, dtype=torch.bool)


def pair():
    """What forward returns without a mask, where it is two things."""
    both = attend(parts, 3, seed, *texts, None)
    if not isinstance(both, (tuple, list)) or len(both) != 2:
        message = "forward returns two things, (output, weights)."
        assert_equal(both, (expected, expected_weights), message, name="what forward returns")
    return both


with check("the weights without a mask", points=1.25):
    output, weights = pair()
    message = (
        "The weights of the heads should be torch's (float32, three texts, three heads, no mask). "
        "Check first: is each head scaled by the square root of its own width, d_model / "
        "num_heads? Do the keys come from `key`?"
    )
    if np.shape(weights) != (3, 3, 4, 5):
        message = (
            "The second result should be the weights of every head, (batch, num_heads, n_q, n_k) = "
            "(3, 3, 4, 5). Check first: are they averaged over the heads?"
        )
    elif abs(np.sum(np.asarray(weights), axis=-1) - 1).max() > 1e-3:
        message = (
            "In every head each row of the weights has to sum to 1. Check first: is the softmax "
            "over the keys?"
        )
    assert_close(weights, expected_weights, message, name="weights")
with check("the output without a mask", points=1):
    message = (
        "The output should be torch's (float32, three texts, three heads, no mask). If the weights "
        "are right, for one: do the values come from `value`? Are the heads combined position by "
        "position? Is W_o applied last?"
    )
    assert_close(pair()[0], expected, message, name="output")
with check("four parts", points=0.5):
    message = "W_q, W_k, W_v and W_o should be four nn.Linear(12, 12) with bias."
    assert_equal(kinds_of_parts(12, 3), [(12, 12)] * 4, message, name="the shapes of the weights")


def compare(found, wanted, message, against):
    """With results of your own layer, called in another way."""
    for place, name in ((1, "weights"), (0, "output")):
        assert_close(found[place], wanted[place], message, name=name, against=against)
    message = "The outputs of random texts are not all (within 0.001) the same number."
    assert_equal(bool(np.ptp(np.asarray(wanted[0])) > 1e-3), True, message)


with check("leading axes, none, one or two: each text as alone", points=0.5):
    alone = [attend(parts, 3, seed, *(x[i] for x in texts), everything) for i in range(2)]
    message = "Texts in a batch, or with two leading axes, come out as each of them alone."
    wanted = [torch.stack([one[place] for one in alone]) for place in (0, 1)]
    found = attend(parts, 3, seed, *(x[:2] for x in texts), everything)
    compare(found, wanted, message, "for each text alone")
    found = attend(parts, 3, seed, *(x[:2, None] for x in texts), everything)
    compare(found, [one[:, None] for one in wanted], message, "for each text alone")
with check("key, value left out: as with query, or key, in their place", points=0.5):
    query, key, _ = texts
    message = "Without `key` and `value` the layer does what it does with `query` for both."
    square = torch.ones(4, 4, dtype=torch.bool)
    wanted = attend(parts, 3, seed, query, query, query, square)
    found = attend(parts, 3, seed, query, None, None, square)
    compare(found, wanted, message, "with `query` for all three")
    message = "Without `value` the layer does what it does with `key` as `value`."
    wanted = attend(parts, 3, seed, query, key, key, everything)
    found = attend(parts, 3, seed, query, key, None, everything)
    compare(found, wanted, message, "with `key` as `value`")
with check("one mask for all texts and heads: as without the hidden keys", points=0.5):
    message = (
        "A mask (n_q, n_k) hides keys 1 and 3 from all queries (True = may attend): all comes out "
        "as if these keys were not there."
    )
    hides = torch.tensor([T, N, T, N, T])
    output, weights = attend(parts, 3, seed, *texts, hides.expand(4, 5))
    left = texts[0], texts[1][:, hides], texts[2][:, hides], everything[:, hides]
    left = attend(parts, 3, seed, *left)
    compare((output, weights[..., hides]), left, message, "without these keys")
    message = "In every head a hidden key, here 1 and 3, has the weight 0."
    assert_equal(bool((weights[..., ~hides] == 0).all()), True, message)
with check("a mask for each text: as alone, without its hidden keys", points=0.75):
    # Three texts and three heads: an axis at the wrong place is silent.
    mask = torch.tensor([[[T, N, T, T, N]], [[N, T, T, N, T]], [[T, T, N, N, T]]])
    alone = []
    for number, row in enumerate(mask[:, 0]):
        own = [x[number : number + 1] for x in texts]
        own = own[0], own[1][:, row], own[2][:, row], everything[:, row]
        alone.append(attend(parts, 3, seed, *own))
    output, weights = attend(parts, 3, seed, *texts, mask)
    message = (
        "A mask (batch, 1, n_k) is one for each text, and serves all its heads: each text comes "
        "out as it does alone, without its hidden keys."
    )
    left = torch.stack([weights[number][..., row] for number, row in enumerate(mask[:, 0])])
    wanted = [torch.cat([one[place] for one in alone]) for place in (0, 1)]
    compare((output, left), wanted, message, "for each text alone")
with check("a mask for each head: its weights as with it for all heads", points=0.5):
    by_head = torch.tensor([[[T, N, T, T, N]], [[N, T, T, N, T]], [[T, T, N, N, T]]])[None]
    _, weights = attend(parts, 3, seed, *(x[:2] for x in texts), by_head)
    message = (
        "A mask (1, num_heads, 1, n_k) has a head axis: head h gets the mask of head h. Its "
        "weights are those that it has where this mask is given for all heads, (n_q, n_k)."
    )
    for head in range(3):
        one = by_head[0, head].expand(4, 5)
        _, wanted = attend(parts, 3, seed, *(x[:2] for x in texts), one)
        name, others = f"weights of head {head}", "with this mask for all"
        assert_close(weights[:, head], wanted[:, head], message, name=name, against=others)
        some = "Each query may attend to three keys: not all weights of a head are 0."
        assert_equal(bool(wanted[:, head].max() > 0), True, some)
with check("a query that may attend to nothing", points=0.5):
    nothing = torch.ones(4, 5, dtype=torch.bool)
    nothing[2] = False
    output, weights = attend(parts, 3, seed, *texts, nothing)
    message = (
        "Query 2 may attend to nothing and the others to all keys. In each of the three heads the "
        "weights of query 2, and only these, are 0; the output of query 2 is the bias of W_o."
    )
    some = (weights.abs() > 0).any(dim=-1)[0].tolist()
    name = "a weight above 0 (NaN is none), head by head"
    assert_equal(some, [[T, T, N, T]] * 3, message, name=name)
    bias = parts["W_o"][1].expand(3, 12)
    assert_close(output[:, 2], bias, message, name="the output of query 2")


@probe
def gradients_and_slopes(parts, seed, inputs, mask, of_output, of_weights, directions, step):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(6, 2).double()
    leaves = [x.clone().requires_grad_() for x in inputs]
    with torch.no_grad():
        for name, pair in parts.items():
            for what, value in zip(("weight", "bias"), pair, strict=True):
                getattr(getattr(layer, name), what).copy_(value)
    for name in parts:
        leaves += [getattr(layer, name).weight, getattr(layer, name).bias]

    def total():
        texts = [leaf.clone() for leaf in leaves[:3]]
        output, weights = layer(*texts, mask.clone())
        return (output * of_output).sum() + (weights * of_weights).sum()

    result = total()
    calls = [result.item(), total().item()]
    if result.requires_grad:
        result.backward()
    found, slopes = [], []
    with torch.no_grad():  # a little along a direction and back, by your own layer
        for leaf, direction in zip(leaves, directions, strict=True):
            leaf.add_(step * direction)
            above = total()
            leaf.sub_(2 * step * direction)
            slopes.append(((above - total()) / (2 * step)).item())
            leaf.add_(step * direction)
            found.append(None if leaf.grad is None else (leaf.grad * direction).sum().item())
    return found, slopes, calls


with check("gradients, a batch of one, also with an empty row: results' slopes", points=0.5):
    small = {
        name: tuple(torch.tensor(0.5 * rng.normal(size=s)) for s in ((6, 6), (6,)))
        for name in ("W_q", "W_k", "W_v", "W_o")
    }
    inputs = [torch.tensor(rng.normal(size=(1, n, 6))) for n in (4, 5, 5)]
    shapes = [x.shape for x in inputs] + [x.shape for pair in small.values() for x in pair]
    directions = [torch.tensor(rng.normal(size=tuple(shape))) for shape in shapes]
    A, B = torch.tensor(rng.normal(size=(1, 4, 6))), torch.tensor(rng.normal(size=(1, 2, 4, 5)))
    names = ["query", "key", "value"]
    names += [f"{part}.{what}" for part in small for what in ("weight", "bias")]
    for mask in (everything, nothing):
        given = small, seed, inputs, mask, A, B, directions, 1e-5
        *pairs, calls = gradients_and_slopes(*given)
        where = "nothing is hidden" if mask is everything else "query 2 may attend to nothing"
        message = (
            f"Two calls with the same arguments ({where}) differ, so that the results have no "
            "slope. Check first: is something random, or kept from a call before?"
        )
        if not np.isnan(calls).all():
            close, name = {"rtol": 1e-9, "atol": 1e-9}, "a weighted sum of the results"
            before = "in the first call"
            assert_close(calls[1], calls[0], message, name=name, against=before, **close)
        for name, one, slope in zip(names, *pairs, strict=True):
            message = (
                f"The gradient of {name} ({where}), along a random direction, should be finite and "
                "the slope of your own results: how much they change with a small step that way. "
                "(None: no gradient arrives.) Check first: is something detached, or changed in "
                "place?"
            )
            what = f"the gradient of {name}, along a direction,"
            close, by = {"rtol": 1e-5, "atol": 1e-6}, "by small steps that way"
            assert_close(one, slope, message, name=what, against=by, **close)
            moves = name == "W_k.bias" or abs(slope) > 1e-6  # a bias of all keys changes no weight
            message = f"A small change of {name} should change the results ({where})."
            assert_equal(bool(moves), True, message)
with (
    check("12 features do not fill 5 heads", points=0.25, side=True),
    assert_raises(ValueError, "MultiHeadAttention(12, 5) should raise a ValueError."),
):
    make(12, 5)
checks_passed("MultiHeadAttention")


# %% check="MultiHeadAttention_parts" points=0.5
# Hidden checks of MultiHeadAttention: the four nn.Linear and their shapes.
### BEGIN HIDDEN TESTS
@probe
def describe(d_model, num_heads):
    layer = MultiHeadAttention(d_model, num_heads)
    described = {}
    for name in ("W_q", "W_k", "W_v", "W_o"):
        part = getattr(layer, name)
        kinds = [one.__name__ for one in type(part).__mro__]
        bias = None if part.bias is None else list(part.bias.shape)
        described[name] = kinds, list(part.weight.shape), bias
    return described, [name for name, _ in layer.named_parameters()]


for d_model, num_heads in ((12, 3), (8, 8), (6, 1)):
    described, names = describe(d_model, num_heads)
    for name in ("W_q", "W_k", "W_v", "W_o"):
        kinds, weight, bias = described[name]
        message = f"{name} should be nn.Linear({d_model}, {d_model}), with a bias."
        assert_equal("Linear" in kinds, True, message)
        assert_equal(weight, [d_model, d_model], message, name=f"the shape of {name}.weight")
        assert_equal(bias, [d_model], message, name=f"the shape of {name}.bias")
        for what in ("weight", "bias"):
            message = (
                f"named_parameters() of the layer should tell of {name}.{what}, a parameter of its "
                "own. Check first: do two parts share one?"
            )
            assert_equal(f"{name}.{what}" in names, True, message)
### END HIDDEN TESTS


# %% check="MultiHeadAttention_batches" points=1.5
# Hidden checks of MultiHeadAttention: any number of leading axes; many sizes; several numbers of heads.
### BEGIN HIDDEN TESTS
@probe
def attend_all(seed, layers, cases, hides_nothing):
    """Both results for each case, which has a new layer; up to one that raises, if not the first."""
    torch.manual_seed(seed)
    start, found = torch.get_rng_state(), []
    with torch.no_grad():
        for number, *texts in cases:
            num_heads, parts = layers[number]
            try:
                torch.set_rng_state(start)
                layer = MultiHeadAttention(texts[0].shape[-1], num_heads)
                for name, (weight, bias) in parts.items():
                    getattr(layer, name).weight.copy_(weight)
                    if getattr(layer, name).bias is not None:  # "four parts" asks for it
                        getattr(layer, name).bias.copy_(bias)
                torch.set_rng_state(start)
                everything = torch.ones(texts[0].shape[-2], texts[1].shape[-2]).bool()
                masks = [everything] if hides_nothing else []
                found.append(layer(*(x.float() for x in texts), *masks))
            except Exception:
                if not found:
                    raise
                break
    return found


def attend(layers, cases, hides_nothing=True):
    """One pair of results after another. What raised in a list is called again, by itself."""
    found = attend_all(seed, layers, cases, hides_nothing)
    for place, case in enumerate(cases):
        again = place >= len(found)
        yield attend_all(seed, layers, [case], hides_nothing)[0] if again else found[place]


def by_torch(parts, num_heads, query, key, value):
    given = (("W_q", query), ("W_k", key), ("W_v", value))
    Q, K, V = (torch.stack(F.linear(x, *parts[p]).chunk(num_heads, -1), -3) for p, x in given)
    V = torch.cat([V, torch.eye(V.shape[-2], dtype=V.dtype).expand(*V.shape[:-1], -1)], -1)
    lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    Q, K, V = (x.expand(*lead, *x.shape[-2:]) for x in (Q, K, V))
    both = F.scaled_dot_product_attention(Q, K, V)
    heads, weights = both[..., : Q.shape[-1]], both[..., Q.shape[-1] :]
    return F.linear(torch.cat(heads.unbind(-3), -1), *parts["W_o"]), weights


rng = check_rng()
seed = int(rng.integers(2**31))
cases = [
    ((), (), (), 3),
    ((6,), (6,), (6,), 3),
    ((1,), (1,), (1,), 4),
    ((2, 3), (2, 3), (2, 3), 2),
    ((5,), (5,), (5,), 1),
    ((5,), (5,), (5,), 12),
]
drawn = []
for lead_q, lead_k, lead_v, num_heads in cases:
    parts = {
        name: (torch.tensor(0.4 * rng.normal(size=(12, 12))), torch.tensor(rng.normal(size=12)))
        for name in ("W_q", "W_k", "W_v", "W_o")
    }
    query = torch.tensor(rng.normal(size=(*lead_q, 4, 12)))
    key = torch.tensor(rng.normal(size=(*lead_k, 5, 12)))
    value = torch.tensor(rng.normal(size=(*lead_v, 5, 12)))
    drawn.append((lead_q, num_heads, parts, (query, key, value)))
for n_q, n_k in ((1, 5), (4, 1), (1, 1)):  # one query, one key, and both
    query, key, value = (torch.tensor(rng.normal(size=(2, n, 12))) for n in (n_q, n_k, n_k))
    drawn.append(((2,), 3, parts, (query, key, value)))
for lead, n_q, n_k, d_model, num_heads in (
    ((1, 1), 4, 5, 12, 3),
    ((2, 1, 3), 4, 5, 12, 3),
    ((4,), 4, 4, 4, 4),  # all lengths are equal
    ((3,), 2, 5, 1, 1),
    ((2,), 3, 2, 15, 5),
    ((1,), 2, 300, 6, 2),
):
    shapes = (d_model, d_model), (d_model,)
    parts = {
        name: tuple(torch.tensor(0.4 * rng.normal(size=shape)) for shape in shapes)
        for name in ("W_q", "W_k", "W_v", "W_o")
    }
    texts = [torch.tensor(rng.normal(size=(*lead, n, d_model))) for n in (n_q, n_k, n_k)]
    drawn.append((lead, num_heads, parts, texts))
more = []  # for torch alone
for lead, n_q, n_k, d_model, num_heads in (
    ((2,), 70, 5, 6, 3),
    ((2,), 3, 65, 70, 5),
    ((), 4, 33, 33, 1),
    ((1,), 130, 130, 2, 1),
    ((2,), 2, 3, 2, 2),
    ((3,), 5, 3, 130, 2),
    ((5,), 5, 5, 15, 5),
):
    shapes = (d_model, d_model), (d_model,)
    parts = {
        name: tuple(torch.tensor(rng.normal(size=shape) / d_model**0.5) for shape in shapes)
        for name in ("W_q", "W_k", "W_v", "W_o")
    }
    texts = [torch.tensor(rng.normal(size=(*lead, n, d_model))) for n in (n_q, n_k, n_k)]
    more.append((lead, num_heads, parts, texts))
shapes = (12, 12), (12,)
parts = {
    name: tuple(torch.tensor(rng.normal(size=shape) / 4) for shape in shapes)
    for name in ("W_q", "W_k", "W_v", "W_o")
}
plain = [torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5, 5)]
for change in (
    lambda x: x.index_fill(1, torch.tensor([1]), 0.0),  # word 1 is 0
    lambda x: x[:, [0, 1, 1, *range(3, x.shape[1])]],  # words 1 and 2 are equal
    lambda x: x[:, [0] * x.shape[1]],  # all words of a text are equal
    lambda x: x.abs() + 0.1,
    lambda x: -x.abs() - 0.1,
    lambda x: 0 * x,
):
    more.append(((2,), 3, parts, [change(x) for x in plain]))
said = "any number of leading axes, of queries and of keys is allowed, also one."
apart = "in a batch of one"
given_alone = "Each text should come out as your layer gives it alone."
layers = [(num_heads, parts) for _, num_heads, parts, _ in drawn + more]
together = [(number, *texts) for number, (*_, texts) in enumerate(drawn + more)]


def each_as_alone(with_one_axis):
    """Each text as in a batch of one, by your own layer, called with a mask that hides nothing."""
    chosen = [number for number, (lead, *_) in enumerate(drawn) if (len(lead) == 1) == with_one_axis]
    calls = []
    for number in chosen:
        lead, *_, texts = drawn[number]
        calls += [(number, *(x[place][None] for x in texts)) for place in np.ndindex(*lead)]
        calls.append(together[number])
    of_your_layer = attend(layers, calls)
    for number in chosen:
        lead, num_heads, _, texts = drawn[number]
        alone = {place: next(of_your_layer) for place in np.ndindex(*lead)}
        output, weights = next(of_your_layer)
        message = "For random texts the output is finite, and not the same number everywhere."
        found = [one[0].flatten() for one in alone.values()]
        assert_equal(bool(torch.cat(found).std() > 1e-6), True, message)
        message = (
            f"query of shape {tuple(texts[0].shape)}, key and value of shape "
            f"{tuple(texts[1].shape)}, {num_heads} heads: {said} {given_alone}"
        )
        for place, (one, its_weights) in alone.items():
            assert_close(weights[place], its_weights[0], message, name="weights", against=apart)
            assert_close(output[place], one[0], message, name="output", against=apart)
        shape = tuple(texts[0].shape)
        assert_equal(tuple(output.shape), shape, message, name="the shape of the output")


def as_torch(numbers, hides_nothing):
    of_your_layer = attend(layers, [together[number] for number in numbers], hides_nothing)
    for number in numbers:
        num_heads, parts = layers[number]
        texts = together[number][1:]
        output, weights = next(of_your_layer)
        expected, expected_weights = by_torch(parts, num_heads, *texts)
        mask = "a mask that hides nothing" if hides_nothing else "no mask"
        message = (
            f"query of shape {tuple(texts[0].shape)}, key and value of shape "
            f"{tuple(texts[1].shape)}, {num_heads} heads, {mask}: {said} The results should be torch's."
        )
        close = {"rtol": 1e-4, "atol": 1e-4 * max(1.0, float(expected.abs().max()))}
        assert_close(weights, expected_weights, message, name="weights", rtol=1e-4, atol=1e-4)
        assert_close(output, expected, message, name="output", **close)


one_axis = [number for number, *texts in together if texts[0].ndim == 3]
with check("one leading axis: each text as alone", points=0.5):
    each_as_alone(True)
with check("one leading axis: as torch", points=0.5):
    as_torch(one_axis, True)
with check("no leading axis, or several: each as in a batch of one", points=0.25):
    each_as_alone(False)
with check("no mask, any number of leading axes: as torch", points=0.25):
    as_torch([number for number, *_ in together if number not in one_axis][:4] + one_axis[:4], False)
checks_passed("MultiHeadAttention")
### END HIDDEN TESTS


# %% check="MultiHeadAttention_defaults" points=0.5
# Hidden checks of MultiHeadAttention: what key and value are when they are left out.
### BEGIN HIDDEN TESTS
@probe
def attend(seed, parts, given, by_place=False):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(12, 3)
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            if getattr(layer, name).bias is not None:  # "four parts" asks for it
                getattr(layer, name).bias.copy_(bias)
        torch.manual_seed(seed)
        given = {name: x if name == "mask" else x.float() for name, x in given.items()}
        if by_place:
            names = ("query", "key", "value", "mask")
            return layer(*(given[name] for name in names if name in given))
        return layer(**given)


rng = check_rng()
seed = int(rng.integers(2**31))
parts = {
    name: (torch.tensor(0.4 * rng.normal(size=(12, 12))), torch.tensor(rng.normal(size=12)))
    for name in ("W_q", "W_k", "W_v", "W_o")
}
query, key, value, other = (torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5, 5, 4))
cases = [
    ({"query": query}, (query, query, query)),
    ({"query": query, "key": key}, (query, key, key)),
    ({"query": query, "key": other}, (query, other, other)),
    ({"query": query, "value": other}, (query, query, other)),
    ({"query": query, "key": key, "value": value}, (query, key, value)),
]
by_name = "with all three given"
for given, (q, k, v) in cases:
    message = (
        f"Called with {', '.join(given)}: key should default to query, and value to key (not to "
        "query), so that all comes out as in a call of your layer with all three."
    )
    output, weights = attend(seed, parts, given)
    same, its_weights = attend(seed, parts, {"query": q, "key": k, "value": v}, True)
    assert_close(output, same, message, name="output", against=by_name)
    assert_close(weights, its_weights, message, name="weights", against=by_name)
    other, _ = attend(seed, parts, {"query": q, "key": k, "value": -v})
    message = "With -value in place of value the output should be another one, without NaN."
    assert_equal(bool((other - same).abs().max() > 1e-3), True, message)
square = torch.tensor([[True, False, True, True], [False, True, False, True]] * 2)
square[3] = torch.tensor([True, True, False, False])
wide = torch.tensor(rng.random((4, 5)) < 0.6)
wide[:, 2] = True
cases = [
    ({"query": query, "mask": square}, (query, query, query)),
    ({"query": query, "key": key, "mask": wide}, (query, key, key)),
]
by_name = "with all four given"
for given, (q, k, v) in cases:
    message = (
        f"Called with {', '.join(given)}, a mask of shape {tuple(given['mask'].shape)}: key should "
        "default to query, value to key, and the mask should count, so that all comes out as in a "
        "call of your layer with all four."
    )
    output, weights = attend(seed, parts, given)
    whole = {"query": q, "key": k, "value": v, "mask": given["mask"]}
    same, its_weights = attend(seed, parts, whole, True)
    assert_close(output, same, message, name="output", against=by_name)
    assert_close(weights, its_weights, message, name="weights", against=by_name)
### END HIDDEN TESTS


# %% check="MultiHeadAttention_masks" points=2
# Hidden checks of MultiHeadAttention: masks without a head axis serve every head.
### BEGIN HIDDEN TESTS
@probe
def attend_masked(seed, layers, cases):
    """Both results for each case, which has a new layer; up to one that raises, if not the first."""
    torch.manual_seed(seed)
    start, found = torch.get_rng_state(), []
    with torch.no_grad():
        for number, query, key, mask in cases:
            num_heads, parts = layers[number]
            try:
                torch.set_rng_state(start)
                layer = MultiHeadAttention(query.shape[-1], num_heads)
                for name, (weight, bias) in parts.items():
                    getattr(layer, name).weight.copy_(weight)
                    if getattr(layer, name).bias is not None:  # "four parts" asks for it
                        getattr(layer, name).bias.copy_(bias)
                torch.set_rng_state(start)
                found.append(layer(query.float(), key.float(), None, mask))
            except Exception:
                if not found:
                    raise
                break
    return found


def attend(layers, cases):
    """One pair of results after another. What raised in a list is called again, by itself."""
    found = attend_masked(seed, layers, cases)
    for place, case in enumerate(cases):
        yield found[place] if place < len(found) else attend_masked(seed, layers, [case])[0]


@probe
def attend_or_error(seed, parts, num_heads, query, key, mask):
    """What is raised, the output and the weights."""
    torch.manual_seed(seed)
    layer = MultiHeadAttention(query.shape[-1], num_heads)
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            if getattr(layer, name).bias is not None:  # "four parts" asks for it
                getattr(layer, name).bias.copy_(bias)
        try:
            return "nothing", *layer(query.float(), key.float(), None, mask)
        except NotImplementedError:
            raise
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            return type(error).__name__, query, query


def by_torch(parts, num_heads, query, key, mask):
    given = (("W_q", query), ("W_k", key), ("W_v", key))
    Q, K, V = (torch.stack(F.linear(x, *parts[p]).chunk(num_heads, -1), -3) for p, x in given)
    V = torch.cat([V, torch.eye(V.shape[-2], dtype=V.dtype).expand(*V.shape[:-1], -1)], -1)
    lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    Q, K, V = (x.expand(*lead, *x.shape[-2:]) for x in (Q, K, V))
    mask = mask.expand(*lead, Q.shape[-2], K.shape[-2])
    both = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    heads, weights = both[..., : Q.shape[-1]], both[..., Q.shape[-1] :]
    return F.linear(torch.cat(heads.unbind(-3), -1), *parts["W_o"]), weights


close = {"rtol": 1e-4, "atol": 1e-4}
rng = check_rng()
seed = int(rng.integers(2**31))
cases = [  # leading axes of query and of key, number of heads, shape of the mask
    ((), (), 3, (5,)),
    ((), (), 3, (4, 5)),
    ((), (), 3, (1, 5)),
    ((6,), (6,), 3, (5,)),
    ((6,), (6,), 3, (4, 5)),
    ((6,), (6,), 3, (6, 4, 5)),
    ((6,), (6,), 3, (6, 1, 5)),
    ((6,), (6,), 3, (1, 4, 5)),
    ((3,), (3,), 3, (3, 4, 5)),  # as many texts as heads: a mask for each text all the same
    ((4,), (4,), 2, (4, 5)),  # as many texts as queries
    ((2, 3), (2, 3), 3, (5,)),
    ((2, 3), (2, 3), 3, (4, 5)),
    ((2, 3), (2, 3), 3, (3, 4, 5)),
    ((2, 3), (2, 3), 3, (2, 3, 4, 5)),
    ((2, 3), (2, 3), 4, (2, 3, 1, 5)),
    ((2, 3), (2, 3), 4, (2, 1, 1, 5)),
]
drawn = []
for lead_q, lead_k, num_heads, shape in cases:
    parts = {
        name: (torch.tensor(0.4 * rng.normal(size=(12, 12))), torch.tensor(rng.normal(size=12)))
        for name in ("W_q", "W_k", "W_v", "W_o")
    }
    query = torch.tensor(rng.normal(size=(*lead_q, 4, 12)))
    key = torch.tensor(rng.normal(size=(*lead_k, 5, 12)))
    mask = torch.tensor(rng.random(shape) < 0.5)
    mask[..., 1], mask[..., 3] = True, False
    message = (
        f"query of shape {tuple(query.shape)}, {num_heads} heads, mask of shape {shape}: this mask "
        "has no head axis and serves every head. {} Check first: where is a new axis inserted in "
        "the mask, and when?"
    )
    drawn.append((parts, num_heads, query, key, mask, message))
cases = [  # equal lengths, and more leading axes; n_q = n_k = 4
    ((4,), 4, (4,)),
    ((4,), 4, (4, 4)),
    ((4,), 4, (4, 4, 4)),
    ((4,), 4, (4, 1, 4)),
    ((4,), 4, (1, 4, 4)),
    ((1,), 4, (1, 4, 4)),
    ((2, 1, 3), 3, (4, 4)),
    ((2, 1, 3), 3, (3, 4, 4)),
    ((2, 1, 3), 3, (2, 1, 1, 1, 4)),
]
for lead, num_heads, shape in cases:
    parts = {
        name: (torch.tensor(0.4 * rng.normal(size=(12, 12))), torch.tensor(rng.normal(size=12)))
        for name in ("W_q", "W_k", "W_v", "W_o")
    }
    query, key = (torch.tensor(rng.normal(size=(*lead, 4, 12))) for _ in range(2))
    mask = torch.tensor(rng.random(shape) < 0.5)
    mask[..., 1], mask[..., 3] = True, False
    message = (
        f"query and key of shape {tuple(query.shape)}, {num_heads} heads, mask of shape {shape}: "
        "this mask has no more axes than query, so it has no head axis, whichever lengths are "
        "equal, and serves every head. {}"
    )
    drawn.append((parts, num_heads, query, key, mask, message))
for lead, num_heads, shape in (((), 1, (4, 5)), ((3,), 3, (5,)), ((2,), 6, (2, 4, 5))):
    query, key = (torch.tensor(rng.normal(size=(*lead, n, 12))) for n in (4, 5))
    message = (
        f"query of shape {tuple(query.shape)}, {num_heads} heads, mask of shape {shape}, True "
        "everywhere: nothing is hidden. {}"
    )
    everything = torch.ones(shape, dtype=torch.bool)
    drawn.append((parts, num_heads, query, key, everything, message))
long = []  # many queries, for torch alone
for lead, n_q, num_heads, shape in (((2,), 130, 3, (1, 5)), ((2,), 300, 2, (5,))):
    query, key = (torch.tensor(rng.normal(size=(*lead, n, 12))) for n in (n_q, 5))
    mask = torch.tensor(rng.random(shape) < 0.5)
    mask[..., 1], mask[..., 3] = True, False
    long.append((parts, num_heads, query, key, mask))
layers = [(num_heads, parts) for parts, num_heads, *_ in drawn]
together = [(number, *given) for number, (_, _, *given, _) in enumerate(drawn)]


def each_as_alone(chosen):
    """Each text as in a batch of one with its own mask (n_q, n_k), by your own layer."""
    calls = []
    for number in chosen:
        _, _, query, key, mask, _ = drawn[number]
        whole = mask.expand(*query.shape[:-2], 4, key.shape[-2])
        calls.append(together[number])
        for place in np.ndindex(*query.shape[:-2]):
            calls.append((number, query[place][None], key[place][None], whole[place]))
    of_your_layer = attend(layers, calls)
    for number in chosen:
        *_, query, key, mask, about = drawn[number]
        message = about.format("Each text should come out as in a batch of one with its own mask.")
        lead = query.shape[:-2]
        whole = mask.expand(*lead, 4, key.shape[-2])
        output, weights = next(of_your_layer)
        for place in np.ndindex(*lead):
            one = [x[0] for x in next(of_your_layer)]
            apart = "for this text alone"
            assert_close(weights[place], one[1], message, name="weights", against=apart)
            assert_close(output[place], one[0], message, name="output", against=apart)
            zero = "One text, mask (n_q, n_k): a key with False has the weight 0 in every head."
            assert_equal(bool((one[1][:, ~whole[place]] == 0).all()), True, zero)
            seen = bool((one[1].sum(dim=-1) > 0.5).all() and one[0].std() > 1e-3)
            some = (
                "One text, mask (n_q, n_k), each query may attend to some key: its weights sum to "
                "1 in every head, and the output is not the same number everywhere."
            )
            assert_equal(seen, True, some)


one_axis = [number for number, (_, _, query, *_) in enumerate(drawn) if query.ndim == 3]
of_texts = [number for number in one_axis if drawn[number][4].ndim == 3]
of_all = [number for number in one_axis if number not in of_texts]
with check("one leading axis, one mask for all texts: each as alone", points=0.5):
    each_as_alone(of_all)
with check("one leading axis, a mask of three axes: each as alone", points=0.5):
    each_as_alone(of_texts)
with check("no leading axis, or several: each as in a batch of one", points=0.5):
    each_as_alone([number for number in range(len(drawn)) if number not in one_axis])
with check("as torch, masks of one and two axes", points=0.5):
    of_your_layer = attend(layers, [together[number] for number in of_all])
    for number in of_all:
        parts, num_heads, query, key, mask, about = drawn[number]
        message = about.format("The results should be torch's.")
        with_heads = mask if mask.ndim < 2 else mask.unsqueeze(-3)
        expected, expected_weights = by_torch(parts, num_heads, query, key, with_heads)
        output, weights = next(of_your_layer)
        assert_close(weights, expected_weights, message, name="weights", **close)
        assert_close(output, expected, message, name="output", **close)
    for parts, num_heads, query, key, mask in long:
        raised, output, weights = attend_or_error(seed, parts, num_heads, query, key, mask)
        message = (
            f"query of shape {tuple(query.shape)}, {num_heads} heads, mask of shape "
            f"{tuple(mask.shape)}: this mask serves every head and every query, however many there "
            f"are. The results should be torch's. What your layer raises: {raised}."
        )
        assert_equal(raised, "nothing", message, name="what is raised")
        expected, expected_weights = by_torch(parts, num_heads, query, key, mask)
        assert_close(weights, expected_weights, message, name="weights", **close)
        assert_close(output, expected, message, name="output", **close)
checks_passed("MultiHeadAttention")
### END HIDDEN TESTS


# %% check="MultiHeadAttention_head_masks" points=1.5
# Hidden checks of MultiHeadAttention: masks with a head axis, which have more axes than query.
### BEGIN HIDDEN TESTS
@probe
def attend(seed, parts, num_heads, query, key, mask):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(query.shape[-1], num_heads)
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            if getattr(layer, name).bias is not None:  # "four parts" asks for it
                getattr(layer, name).bias.copy_(bias)
        torch.manual_seed(seed)
        return layer(query.float(), key.float(), None, mask)


def by_torch(parts, num_heads, query, key, mask):
    given = (("W_q", query), ("W_k", key), ("W_v", key))
    Q, K, V = (torch.stack(F.linear(x, *parts[p]).chunk(num_heads, -1), -3) for p, x in given)
    V = torch.cat([V, torch.eye(V.shape[-2], dtype=V.dtype).expand(*V.shape[:-1], -1)], -1)
    lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    Q, K, V = (x.expand(*lead, *x.shape[-2:]) for x in (Q, K, V))
    mask = mask.expand(*lead, Q.shape[-2], K.shape[-2])
    both = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    heads, weights = both[..., : Q.shape[-1]], both[..., Q.shape[-1] :]
    return F.linear(torch.cat(heads.unbind(-3), -1), *parts["W_o"]), weights


rng = check_rng()
seed = int(rng.integers(2**31))
one_axis = [  # leading axes, shape of the mask, number of heads, keys
    ((6,), (6, 3, 4, 5), 3, 5),
    ((6,), (6, 1, 1, 5), 3, 5),
    ((6,), (1, 3, 4, 5), 3, 5),
    ((3,), (3, 3, 4, 5), 3, 5),
    ((4,), (4, 4, 4, 4), 4, 4),
    ((1,), (1, 4, 1, 4), 4, 4),
]
others = [
    ((), (3, 4, 5), 3, 5),
    ((), (1, 4, 5), 3, 5),
    ((), (3, 1, 5), 3, 5),
    ((), (4, 4, 4), 4, 4),
    ((2, 3), (2, 3, 3, 4, 5), 3, 5),
    ((2, 3), (1, 1, 3, 4, 5), 3, 5),
    ((2, 1, 3), (1, 1, 3, 4, 4, 4), 4, 4),
]


def compare(cases):
    for lead, shape, num_heads, n_k in cases:
        parts = {
            name: (torch.tensor(0.4 * rng.normal(size=(12, 12))), torch.tensor(rng.normal(size=12)))
            for name in ("W_q", "W_k", "W_v", "W_o")
        }
        query, key = (torch.tensor(rng.normal(size=(*lead, n, 12))) for n in (4, n_k))
        mask = torch.tensor(rng.random(shape) < 0.5)
        mask[..., 1], mask[..., 3] = True, False
        expected, expected_weights = by_torch(parts, num_heads, query, key, mask)
        output, weights = attend(seed, parts, num_heads, query, key, mask)
        message = (
            f"query of shape {tuple(query.shape)}, {num_heads} heads, mask of shape {shape}: it has "
            "more axes than query, so its third axis from the end is the head axis, whichever lengths "
            "are equal, and it is used as it is. The results should be torch's with this mask."
        )
        close = {"rtol": 1e-4, "atol": 1e-4}
        assert_close(weights, expected_weights, message, name="weights", **close)
        assert_close(output, expected, message, name="output", **close)


with check("one leading axis", points=1):
    compare(one_axis)
with check("no leading axis, or several", points=0.5):
    compare(others)
checks_passed("MultiHeadAttention")
### END HIDDEN TESTS


# %% check="MultiHeadAttention_nothing" points=1.5
# Hidden checks of MultiHeadAttention: queries that may attend to nothing.
### BEGIN HIDDEN TESTS
@probe
def attend(seed, parts, query, key, mask):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(12, 3)
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            if getattr(layer, name).bias is not None:  # "four parts" asks for it
                getattr(layer, name).bias.copy_(bias)
        torch.manual_seed(seed)
        return layer(query.float(), key.float(), None, mask)


def by_torch(parts, query, key, mask):
    given = (("W_q", query), ("W_k", key), ("W_v", key))
    Q, K, V = (torch.stack(F.linear(x, *parts[p]).chunk(3, -1), -3) for p, x in given)
    V = torch.cat([V, torch.eye(5, dtype=V.dtype).expand(*V.shape[:-1], -1)], -1)
    both = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask.expand(2, 3, 4, 5))
    return F.linear(torch.cat(both[..., :4].unbind(-3), -1), *parts["W_o"]), both[..., 4:]


rng = check_rng()
seed = int(rng.integers(2**31))
parts = {
    name: (torch.tensor(0.4 * rng.normal(size=(12, 12))), torch.tensor(3 + rng.normal(size=12)))
    for name in ("W_q", "W_k", "W_v", "W_o")
}
query, key = (torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5))
some_queries = torch.tensor(rng.random((4, 5)) < 0.6)
some_queries[:, 0], some_queries[2] = True, False
one_text = torch.tensor([[[True, True, False, True, False]], [[False] * 5]])
one_head = torch.ones(2, 3, 4, 5, dtype=torch.bool)
one_head[0, 1, 2] = one_head[1, 0] = False
by_query = torch.tensor([[True], [False], [True], [False]])
for_all = some_queries, by_query, torch.zeros(5, dtype=torch.bool)
close = {"rtol": 1e-4, "atol": 1e-4}
said = (
    "A query that may attend to nothing should have weights 0 (no NaN, no even average), and every "
    "other query some weight above 0, head by head. Where all heads of a query may attend to "
    "nothing they give 0, so that its output is the bias of W_o. All outputs are finite"
)


def zeros_and_bias(masks):
    for mask in masks:
        message = f"{said} (mask of shape {tuple(mask.shape)})."
        with_heads = mask.unsqueeze(-3) if 2 <= mask.ndim <= 3 else mask
        output, weights = attend(seed, parts, query, key, mask)
        some = with_heads.expand(2, 3, 4, 5).any(dim=-1)
        assert_equal((weights.abs() > 0).any(dim=-1), some, message, name="a weight above 0")
        blocked = ~some.any(dim=1)  # in every head
        bias = parts["W_o"][1].expand(int(blocked.sum()), 12)
        assert_close(output[blocked], bias, message, name="output", **close)
        assert_equal(bool(output.isfinite().all()), True, message)


def as_torch(masks):
    for mask in masks:
        message = (
            f"A mask of shape {tuple(mask.shape)} that leaves some queries nothing, in some heads "
            "or in all: weights and output should be torch's, for these queries and for the others."
        )
        with_heads = mask.unsqueeze(-3) if 2 <= mask.ndim <= 3 else mask
        output, weights = attend(seed, parts, query, key, mask)
        expected, expected_weights = by_torch(parts, query, key, with_heads)
        assert_close(weights, expected_weights, message, name="weights", **close)
        assert_close(output, expected, message, name="output", **close)


with check("one mask for all: weights 0, and the bias as output", points=0.5):
    zeros_and_bias(for_all)
with check("one mask for all: all queries as torch", points=0.5):
    as_torch(for_all)
with check("a mask for each text: 0 and the bias; others as torch", points=0.25):
    zeros_and_bias([one_text])
    as_torch([one_text])
with check("a mask for each head: 0; others as torch", points=0.25):
    zeros_and_bias([one_head])
    as_torch([one_head])
checks_passed("MultiHeadAttention")
### END HIDDEN TESTS


# %% check="MultiHeadAttention_gradients" points=2
# Hidden checks of MultiHeadAttention: gradients through output and weights, also where a row of
# the mask is empty; to the inputs and to all parameters.
### BEGIN HIDDEN TESTS
@probe
def slopes_of(seed, parts, inputs, mask, of_output, of_weights):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(12, 3)
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            if getattr(layer, name).bias is not None:  # "four parts" asks for it
                getattr(layer, name).bias.copy_(bias)
    leaves = [x.float().requires_grad_() for x in inputs]
    torch.manual_seed(seed)
    output, weights = layer(*leaves, *([] if mask is None else [mask]))
    ((output * of_output.float()).sum() + (weights * of_weights.float()).sum()).backward()
    found = [x.grad for x in leaves]
    for name in parts:
        found += [getattr(layer, name).weight.grad, getattr(layer, name).bias.grad]
    return found


def gradients_by_torch(parts, inputs, mask, of_output, of_weights):
    leaves = [x.clone().requires_grad_() for x in inputs]
    parts = {name: [x.clone().requires_grad_() for x in pair] for name, pair in parts.items()}
    given = zip(("W_q", "W_k", "W_v"), leaves, strict=True)
    Q, K, V = (torch.stack(F.linear(x, *parts[p]).chunk(3, -1), -3) for p, x in given)
    V = torch.cat([V, torch.eye(5, dtype=V.dtype).expand(*V.shape[:-1], -1)], -1)
    whole = None if mask is None else mask.expand(2, 3, 4, 5)
    both = F.scaled_dot_product_attention(Q, K, V, attn_mask=whole)
    output = F.linear(torch.cat(both[..., :4].unbind(-3), -1), *parts["W_o"])
    ((output * of_output).sum() + (both[..., 4:] * of_weights).sum()).backward()
    tensors = leaves + [x for pair in parts.values() for x in pair]
    return [torch.zeros_like(x) if x.grad is None else x.grad for x in tensors]


rng = check_rng()
seed = int(rng.integers(2**31))
parts = {
    name: (torch.tensor(0.4 * rng.normal(size=(12, 12))), torch.tensor(rng.normal(size=12)))
    for name in ("W_q", "W_k", "W_v", "W_o")
}
inputs = [torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5, 5)]
A, B = (torch.tensor(rng.normal(size=shape)) for shape in ((2, 4, 12), (2, 3, 4, 5)))
mask = torch.tensor(rng.random((4, 5)) < 0.6)
mask[..., 2] = True
empty = mask.clone()
empty[1] = False
names = ["query", "key", "value"]
names += [f"{part}.{what}" for part in parts for what in ("weight", "bias")]


def compare(which, given, out, wei):
    expected = gradients_by_torch(parts, inputs, given, out, wei)
    found = slopes_of(seed, parts, inputs, given, out, wei)
    for name, one, other in zip(names, found, expected, strict=True):
        if one is None and not other.any():
            continue  # a parameter that takes no part may have no gradient at all
        assert_close(
            one,
            other,
            f"The gradient of {name} through {which}, should be that of torch's attention with "
            "the same numbers, and finite. Check first: is something detached?",
            name=f"the gradient of {name}",
            rtol=1e-4,
            atol=1e-4,
        )


with check("gradients through both results, with a mask", points=0.75):
    compare("both results, with a mask", mask, A, B)
with check("gradients through the output, with a mask", points=0.25):
    compare("the output, with a mask", mask, A, 0 * B)
with check("gradients through the weights, with a mask", points=0.25):
    compare("the weights, with a mask", mask, 0 * A, B)
with check("gradients through both results, with an empty row in the mask", points=0.5):
    compare("both results, with an empty row in the mask", empty, A, B)
with check("gradients through both results, without a mask", points=0.25):
    compare("both results, without a mask", None, A, B)
checks_passed("MultiHeadAttention")
### END HIDDEN TESTS


# %% check="MultiHeadAttention_inputs" points=0.5
# Hidden checks of MultiHeadAttention: arguments unchanged, the same result twice and after other
# calls, in both modes and in any order in memory, float64 precise.
### SIDE CONDITION: counts once another check of MultiHeadAttention passes.
### BEGIN HIDDEN TESTS
@probe
def attend_twice(seed, parts, query, key, value, mask):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(12, 3).double()
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            if getattr(layer, name).bias is not None:  # "four parts" asks for it
                getattr(layer, name).bias.copy_(bias)
        torch.manual_seed(seed)
        unmasked = layer(query, key, value)
        first = layer(query, key, value, mask)
        second = layer(query, key, value, mask)
        again = layer(query, key, value)
    return first, second, (query, key, value, mask), (unmasked[0], again[0])


@probe
def in_turn(seed, parts, calls, how):
    """What one layer gives for several calls, one after the other."""
    torch.manual_seed(seed)
    layer = MultiHeadAttention(12, 3).double().train(how != "in evaluation mode")
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            if getattr(layer, name).bias is not None:  # "four parts" asks for it
                getattr(layer, name).bias.copy_(bias)
        if how == "in another order in memory":
            calls = [
                [None if x is None else x.mT.contiguous().mT for x in call] for call in calls
            ]
        torch.manual_seed(seed)
        return [layer(*call) for call in calls]


rng = check_rng()
seed = int(rng.integers(2**31))
parts = {
    name: (torch.tensor(0.4 * rng.normal(size=(12, 12))), torch.tensor(rng.normal(size=12)))
    for name in ("W_q", "W_k", "W_v", "W_o")
}
given = [torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5, 5)]
given.append(torch.tensor(rng.random((4, 5)) < 0.6))
given[-1][1] = False
first, second, after, unmasked = attend_twice(seed, parts, *(x.clone() for x in given))
for name, now, before in zip(("query", "key", "value", "mask"), after, given, strict=True):
    message = f"{name} was changed by the call."
    assert_equal(now, before, message, name=name, against="before the call")
message = (
    "The same call with a mask, twice in a row, should give the same result. Check first: is there "
    "dropout, or a stored state?"
)
assert_equal(second[0], first[0], message, name="output", against="in the first call")
assert_equal(second[1], first[1], message, name="weights", against="in the first call")
message = (
    "A call without a mask should give the same before and after calls with a mask. Check first: "
    "is anything kept?"
)
assert_equal(unmasked[1], unmasked[0], message, name="output", against="before those calls")
message = (
    "The same keys, values and columns of the mask in another order should give the same, in "
    "float64 to ten digits. Check first: is something computed in float32 on the way?"
)
# The same keys in another order give the same output. In float32 the last digits would change.
order = [3, 0, 4, 2, 1]
query, key, value, mask = given
moved, *_ = attend_twice(seed, parts, query, key[:, order], value[:, order], mask[:, order])
precise = {"rtol": 1e-10, "atol": 1e-12, "precise": True}
first_order = "in the first order"
wanted = first[0].double()
assert_close(moved[0], wanted, message, name="output", against=first_order, **precise)
wanted = first[1].double()[..., order]
assert_close(moved[1], wanted, message, name="weights", against=first_order, **precise)
longer = [torch.tensor(rng.normal(size=(3, n, 12))) for n in (2, 7, 7)]
calls = [given, [*given[:3], ~given[3]], [*longer, torch.tensor(rng.random((2, 7)) < 0.6)]]
calls += [given, given[:3], [*given[:3], torch.ones(4, 5, dtype=torch.bool)], [*longer, None]]


def clones(call):
    return [None if x is None else x.clone() for x in call]


alone = [in_turn(seed, parts, [clones(call)], "in training mode")[0] for call in calls]
for how in ("in training mode", "in evaluation mode", "in another order in memory"):
    found = in_turn(seed, parts, [clones(call) for call in calls], how)
    for call, one, other in zip(calls, found, alone, strict=True):
        message = (
            "Several calls of one layer, with other masks, other lengths, and the first ones again "
            f"({how}; here query {tuple(call[0].shape)}, key {tuple(call[1].shape)}): each should "
            "give what a new layer with the same parameters gives, in training mode and with "
            "numbers in the usual order in memory."
        )
        for place, name in ((1, "weights"), (0, "output")):
            assert_close(one[place], other[place], message, name=name, against="from a new layer")


@probe
def after_new_parameters(seed, query, mask):
    """One layer and others made anew, each time its parameters have changed."""
    torch.manual_seed(seed)
    layer, pairs = MultiHeadAttention(12, 3), {}

    def compare(when, *given):
        new = MultiHeadAttention(12, 3).to(layer.W_q.weight.dtype)
        new.load_state_dict(layer.state_dict())
        pairs[when] = layer(*given), new(*given)

    with torch.no_grad():
        layer(query.float(), None, None, mask)
        for part in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
            part.weight.mul_(-1.5)
            part.bias.add_(0.5)
    compare("after its parameters were changed in place", query.float(), None, None, mask)
    other = MultiHeadAttention(12, 3)
    layer.load_state_dict(other.state_dict())
    compare("after load_state_dict", query.float(), None, None, mask)
    layer.double()
    compare("after double()", query, None, None, mask)
    flow = [one.requires_grad for one in layer(query, None, None, mask)]
    return pairs, [torch.is_grad_enabled(), *flow]


square = torch.tensor(rng.random((4, 4)) < 0.6)
square[:, 0] = True
pairs, flow = after_new_parameters(seed, query.clone(), square.clone())
for when, (found, fresh) in pairs.items():
    message = (
        f"A layer {when} should give what a new layer with the same parameters gives. Check first: "
        "is something kept from an earlier call?"
    )
    for place, name in ((1, "weights"), (0, "output")):
        wanted = fresh[place].detach()
        assert_close(found[place], wanted, message, name=name, against="from a new layer")
message = (
    "After a call under no_grad, and outside of it again: torch records gradients, and output and "
    "weights require one."
)
assert_equal(flow, [True] * 3, message, name="whether it records, and they require one")
### END HIDDEN TESTS


# %% check="MultiHeadAttention_errors" points=0.25
# Hidden checks of MultiHeadAttention: the constructor refuses what does not divide, and only that.
### SIDE CONDITION: counts once another check of MultiHeadAttention passes.
### BEGIN HIDDEN TESTS
@probe
def make(d_model, num_heads):
    MultiHeadAttention(d_model, num_heads)
    return "made"


for d_model, num_heads in ((12, 5), (7, 2), (4, 8), (10, 3), (9, 6), (8, 3)):
    message = f"MultiHeadAttention({d_model}, {num_heads}) should be refused with a ValueError."
    with assert_raises(ValueError, message):
        make(d_model, num_heads)
for d_model, num_heads in ((7, 7), (7, 1), (9, 3), (1, 1), (10, 5)):
    message = f"MultiHeadAttention({d_model}, {num_heads}) is valid."
    assert_equal(make(d_model, num_heads), "made", message)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# You have all the parts: four linear layers, `split_heads`, the attention of lesson 3 (it takes any
# number of leading axes, so the head axis is just one more), `combine_heads`. Nothing needs a loop.
# For the mask, compare its number of axes with that of `query` **before** you split anything. What
# happens to a mask with one axis if nothing is inserted?
#
# </details>

# %% [markdown]
# ### Side by side, literally
#
# Is it really several self-attentions side by side? Lesson 4's `TorchSelfAttention` can tell. We
# cut our three large matrices into one small layer for each head, run the small layers one by one,
# and join their results.
#
# **Predict, then run.** By how much will the results differ? And will one *fused* projection, with
# all three large matrices stacked into one of $3\,d_{model}$ rows, differ from three separate ones?

# %% tags=["demonstration"]
torch.manual_seed(0)
layer = MultiHeadAttention(6, 2)
for part in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
    nn.init.zeros_(part.bias)  # lesson 4's layer has no bias
text = torch.randn(5, 6)  # five random vectors, in place of the five words

small_results = []
for h in range(2):
    rows = slice(3 * h, 3 * h + 3)  # nn.Linear holds (out, in): a head's features are rows
    small = TorchSelfAttention(6, 3, 3)
    for part in ("W_q", "W_k", "W_v"):
        getattr(small, part).weight.data = getattr(layer, part).weight.data[rows]
    small_results.append(small(text)[0])  # (5, 3)
one_by_one = layer.W_o(torch.cat(small_results, dim=-1))
together, _ = layer(text)

stacked = torch.cat([layer.W_q.weight, layer.W_k.weight, layer.W_v.weight])  # (18, 6)
fused = text @ stacked.T  # (5, 18): one matrix product
separate = torch.cat([layer.W_q(text), layer.W_k(text), layer.W_v(text)], dim=-1)
small_error = (one_by_one - together).abs().max().item()
fused_error = (fused - separate).abs().max().item()
print(f"largest differences below 1e-5: heads {small_error < 1e-5}, fused {fused_error < 1e-5}")
assert small_error < 1e-5 and fused_error < 1e-5

# %% [markdown]
# <details><summary>And once without torch: the whole layer in plain NumPy</summary>
#
# The next cell is your layer again, with a loop over the heads and not a single function of torch
# or of the course. In float64 both agree to $10^{-10}$.
#
# </details>

# %% tags=["demonstration"]
def in_plain_numpy(x, W, b, num_heads):
    """Self-attention of one text x (n, d_model) with the matrices of an nn.Linear, (out, in)."""
    Q, K, V = (x @ W[name].T + b[name] for name in ("W_q", "W_k", "W_v"))  # (n, d_model) each
    d_head = x.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        mine = slice(h * d_head, (h + 1) * d_head)
        scores = Q[:, mine] @ K[:, mine].T / np.sqrt(d_head)  # (n, n)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        heads.append(powers / powers.sum(axis=-1, keepdims=True) @ V[:, mine])  # (n, d_head)
    return np.concatenate(heads, axis=-1) @ W["W_o"].T + b["W_o"]


double = MultiHeadAttention(12, 3).double()
numbers = {name: value.detach().numpy() for name, value in double.state_dict().items()}
W, b = ({n: numbers[f"{n}.{what}"] for n in ("W_q", "W_k", "W_v", "W_o")} for what in ("weight", "bias"))
x = np.random.default_rng(4).normal(size=(7, 12))
with torch.no_grad():
    by_torch, _ = double(torch.tensor(x))
difference = np.abs(in_plain_numpy(x, W, b, 3) - by_torch.numpy()).max()
print("plain NumPy and yours agree to 1e-10:", difference < 1e-10)
assert difference < 1e-10

# %% [markdown]
# No difference beyond rounding. Separate or fused, small or large: it is the same layer, stored
# differently. Published code uses all of these forms. Fused is often a little faster, since one
# large matrix product uses the processor better than three small ones.
#
# There is one more way to read $W^O$. Joining the heads and multiplying by $W^O$ is the same as
# this: each head has its own piece of $W^O$, and the results are **added**, $\sum_h \text{head}_h
# W^O_h$. So every head adds its own part to the output. We will use that to remove a head: set its
# piece of $W^O$ to 0. In the formula the piece $W^O_h$ is rows of $W^O$. `nn.Linear` stores the
# transpose, `(out, in)`: there the piece is columns of `W_o.weight`.
#
# ### Short answer 1: `answer_cost`
#
# You change `num_heads` from 4 to 8 and leave $d_{model} = 64$ as it is. What changes? ("The
# weights" are those of attention, as everywhere here, and not the parameters.)
#
# - a) There are twice as many parameters, because every head has its own matrices.
# - b) The parameters and the memory for the weights stay as they are: every head is half as wide.
# - c) Nothing at all: the number of heads is only a way to store the matrices.
# - d) The parameters stay as they are, and the weights need twice the memory.

# %% answer="answer_cost"
### BEGIN SOLUTION
answer_cost = "d"
### END SOLUTION

# %% check="answer_cost" points=1
check_answer("answer_cost", answer_cost)

# %% tags=["demonstration"]
print("d_model = 64, a text of 10 words")
for num_heads in (1, 4, 8):
    layer = MultiHeadAttention(64, num_heads)
    parameters = sum(p.numel() for p in layer.parameters())
    num_weights = layer(torch.zeros(10, 64))[1].numel()
    multiply_adds = num_heads * 10 * 10 * (64 // num_heads)  # of the scores: d_head for each one
    print(f"{num_heads} heads: {parameters} parameters, {multiply_adds} multiply-adds", end="")
    print(f" in the scores, {num_weights} weights")

# %% [markdown]
# ## 4. The same weights in PyTorch's layer
#
# PyTorch has this layer: `nn.MultiheadAttention`. If yours is right, both must give the same output
# for the same weights. To see it, copy the weights. Look at what there is first.

# %%
builtin = nn.MultiheadAttention(12, num_heads=3, batch_first=True)
for name, parameter in builtin.named_parameters():
    print(f"{name:16s} {tuple(parameter.shape)}")

# %% [markdown]
# - `in_proj_weight` is the fused projection: the rows of $W_q$, then those of $W_k$, then those of
#   $W_v$. `in_proj_bias` likewise. `out_proj` is $W_o$.
# - With `bias=False` there are no biases at all, also none in `out_proj`.
# - With `batch_first=False`, the default, the layer wants `(n, batch, d_model)`.
# - With `kdim` or `vdim` (keys or values of another width) there is no `in_proj_weight`. Our layer
#   does not have that option.
# - It returns weights **averaged over the heads**, unless you say `average_attn_weights=False`.
# - In its `attn_mask`, `True` means **is hidden**: the opposite of ours.
# - A query that may attend to nothing gives NaN there when weights are returned (the default), and the
#   bias of `W_o` here. (With `need_weights=False` torch 2.13 gives the bias, too.)

# %% [markdown]
# ### Exercise 4: `load_builtin_weights`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 20-25 minutes on it.
#
# Copy the weights of an `nn.MultiheadAttention` into your `MultiHeadAttention`, so that both give
# the same output.
#
# - `attention`: a `MultiHeadAttention`, changed in place. `builtin`: an `nn.MultiheadAttention`
#   without extra options. Returns nothing.
# - A builtin made with `bias=False` has no biases: yours become 0. One made with
#   `batch_first=False` expects its inputs in another order, but its weights are the same.
# - `builtin` is not changed, no memory is shared afterwards, and your parameters stay trainable.
# - Graded errors, each a `ValueError`: another `embed_dim` than your `d_model` (also
#   `embed_dim = 1`: an in-place copy would fill your whole matrix with one number, silently);
#   another `num_heads`; a `kdim` or `vdim` different from `embed_dim`.
# - How many heads has `attention`? Read your own attribute, or call the layer on zeros: its weights
#   have shape `(..., num_heads, n_q, n_k)`.


# %% answer="load_builtin_weights"
def load_builtin_weights(attention, builtin):
    """Copy the weights of torch's layer, so that both give the same output.

    Args:
        attention: MultiHeadAttention, changed in place.
        builtin: nn.MultiheadAttention; not changed, shares no memory afterwards.

    Raises:
        ValueError: embed_dim or num_heads differ, or builtin has a kdim or vdim of its own.
    """

    ### BEGIN SOLUTION
    def number_of_heads(layer: MultiHeadAttention):
        """Read off the weights, whatever the layer calls it inside."""
        return layer(torch.zeros_like(layer.W_q.weight))[1].shape[-3]

    d_model, num_heads = attention.W_q.in_features, number_of_heads(attention)
    if builtin.embed_dim != d_model:
        raise ValueError(f"builtin has embed_dim = {builtin.embed_dim}, attention {d_model}")
    if builtin.num_heads != num_heads:
        raise ValueError(f"builtin has num_heads = {builtin.num_heads}, attention {num_heads}")
    if builtin.kdim != d_model or builtin.vdim != d_model:
        raise ValueError(f"builtin has kdim = {builtin.kdim} and vdim = {builtin.vdim}")
    weights = [*builtin.in_proj_weight.chunk(3), builtin.out_proj.weight]
    biases = [torch.zeros(d_model)] * 4
    if builtin.in_proj_bias is not None:
        biases = [*builtin.in_proj_bias.chunk(3), builtin.out_proj.bias]
    layers = attention.W_q, attention.W_k, attention.W_v, attention.W_o
    with torch.no_grad():
        for layer, weight, bias in zip(layers, weights, biases):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    ### END SOLUTION


# %% check="load_builtin_weights" points=4.5
@probe
def attend_with_builtin_weights(state, settings, seed, query, key, value, masks):
    with torch.random.fork_rng():
        builtin = nn.MultiheadAttention(**settings)
        builtin.load_state_dict(state)
        torch.manual_seed(seed)
        attention = MultiHeadAttention(settings["embed_dim"], settings["num_heads"])
        with torch.no_grad():
            torch.manual_seed(seed)
            for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
                part.weight.normal_(std=0.4)  # what your function should replace
                part.bias.normal_(std=0.4)
        load_builtin_weights(attention, builtin)
        with torch.no_grad():
            return [attention(query, key, value, mask) for mask in masks]


rng = check_rng()
seed = int(rng.integers(2**31))
settings = {"embed_dim": 12, "num_heads": 3, "batch_first": True}
builtin = nn.MultiheadAttention(**settings)
with torch.no_grad():
    for parameter in builtin.parameters():  # torch starts its biases at 0: that hides mistakes
        parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
texts = [torch.tensor(rng.normal(size=(2, n, 12))).float() for n in (4, 5, 5)]
mask = torch.tensor(rng.random((4, 5)) < 0.6)
mask[:, 2] = True
state = dict(builtin.state_dict())
with torch.no_grad():  # in torch's layer True means: is hidden
    expected = [
        builtin(*texts, attn_mask=hidden, average_attn_weights=False) for hidden in (None, ~mask)
    ]
results = attend_with_builtin_weights(state, settings, seed, *texts, [None, mask])
precise = {"rtol": 1e-5, "atol": 1e-5}
with check("the same weights, without and with a mask", points=1):
    message = (
        "After loading, your layer should give the weights that builtin gives. If your layer is "
        "right by itself, for one: which third of in_proj_weight belongs to the queries, and which "
        "to the keys? Were the biases copied?"
    )
    for call in (0, 1):
        assert_close(results[call][1], expected[call][1], message, name="weights", **precise)
with check("the same output, without and with a mask", points=1.5):
    message = (
        "After loading, your layer should give the output that builtin gives. If the weights "
        "agree, for one: were the values' third, its bias, and both parts of out_proj copied?"
    )
    for call in (0, 1):
        assert_close(results[call][0], expected[call][0], message, name="output", **precise)


@probe
def afterwards(state, settings, seed, query, training_step):
    with torch.random.fork_rng():
        builtin = nn.MultiheadAttention(**settings)
        builtin.load_state_dict(state)
        torch.manual_seed(seed)
        attention = MultiHeadAttention(settings["embed_dim"], settings["num_heads"])
        with torch.no_grad():
            for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
                part.weight.normal_(std=0.4)
                part.bias.normal_(std=0.4)
        load_builtin_weights(attention, builtin)
        with torch.no_grad():
            first = attention(query)[0]
        kept = [builtin.state_dict()[name].clone() for name in sorted(state)]
        biases = [getattr(attention, name).bias.detach().clone() for name in ("W_q", "W_k", "W_v", "W_o")]
        with torch.no_grad():
            for parameter in builtin.parameters():
                parameter.zero_()
            second = attention(query)[0]
        trainable = [parameter.requires_grad for parameter in attention.parameters()]
        return first, second, kept, trainable, torch.stack(biases)


with check("builtin unchanged, and no memory shared", points=0.5, side=True):
    first, second, kept, _, _ = afterwards(state, settings, seed, texts[0], False)
    given = [state[name] for name in sorted(state)]
    assert_equal(kept, given, "builtin was changed. Its weights are read, not written.")
    message = (
        "Your layer should give the same before and after builtin's parameters become 0. "
        "Check first: were the numbers copied, or are they shared?"
    )
    assert_close(second, first, message, name="the output", against="before they became 0")
    message = "The output of your loaded layer is not the same number everywhere."
    assert_equal(bool(first.std() > 1e-3), True, message)
with check("still trainable; builtin's bias numbers, in any order", points=0.5):
    _, _, _, trainable, biases = afterwards(state, settings, seed, texts[0], True)
    message = "Your layer should still have eight parameters, and all should require a gradient."
    assert_equal(trainable, [True] * 8, message, name="requires_grad of them")
    wanted = torch.cat([builtin.in_proj_bias.detach(), builtin.out_proj.bias.detach()])
    loaded = bool((torch.sort(biases.flatten())[0] - torch.sort(wanted)[0]).abs().max() < 1e-6)
    message = "The numbers of builtin's four biases should stand in the biases of your layer."
    assert_equal(loaded, True, message)
with check("bias=False: the biases become 0", points=0.5):
    plain = {"embed_dim": 12, "num_heads": 3, "batch_first": True, "bias": False}
    other = nn.MultiheadAttention(**plain)
    found = afterwards(dict(other.state_dict()), plain, seed, texts[0], False)
    message = "A builtin with bias=False has no biases: all four of yours should become 0."
    assert_equal(found[-1], torch.zeros(4, 12), message, name="the biases")
    message = "The output of your loaded layer is finite, and not the same number everywhere."
    assert_equal(bool(found[0].std() > 1e-4), True, message)


@probe
def refused(d_model, num_heads, settings):
    try:
        load_builtin_weights(
            MultiHeadAttention(d_model, num_heads), nn.MultiheadAttention(**settings)
        )
    except ValueError:
        return "a ValueError"
    return "no error"


with check("layers that do not fit", points=0.5, side=True):
    wrong = {
        "embed_dim 1": (12, 1, {"embed_dim": 1, "num_heads": 1}),
        "embed_dim 24": (12, 3, {"embed_dim": 24, "num_heads": 3}),
        "num_heads 2": (12, 3, {"embed_dim": 12, "num_heads": 2}),
        "kdim 8": (12, 3, {"embed_dim": 12, "num_heads": 3, "kdim": 8}),
        "vdim 8": (12, 3, {"embed_dim": 12, "num_heads": 3, "vdim": 8}),
    }
    found = {what: refused(*layers) for what, layers in wrong.items()}
    message = "A builtin with this should be refused by MultiHeadAttention(12, ...): a ValueError."
    assert_equal(found, dict.fromkeys(wrong, "a ValueError"), message, name="what it raises")
checks_passed("load_builtin_weights")


# %% check="load_builtin_weights_no_bias" points=1
# Hidden checks of load_builtin_weights: a builtin without biases.
### BEGIN HIDDEN TESTS
@probe
def loaded(seed, state, settings, query, key):
    builtin = nn.MultiheadAttention(**settings)
    builtin.load_state_dict(state)
    torch.manual_seed(seed)
    attention = MultiHeadAttention(settings["embed_dim"], settings["num_heads"])
    with torch.no_grad():
        torch.manual_seed(seed)
        for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
            part.weight.normal_(std=0.4)
            part.bias.normal_(std=0.4)
    torch.set_grad_enabled(True)  # as it is when Python starts
    load_builtin_weights(attention, builtin)
    recording = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    names = ("W_q", "W_k", "W_v", "W_o")
    biases = [getattr(attention, name).bias.detach().clone() for name in names]
    with torch.no_grad():
        return attention(query, key), biases, recording


rng = check_rng()
seed = int(rng.integers(2**31))
for num_heads in (1, 2, 4):
    settings = {"embed_dim": 8, "num_heads": num_heads, "bias": False, "batch_first": True}
    builtin = nn.MultiheadAttention(**settings)
    with torch.no_grad():
        for parameter in builtin.parameters():
            parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
        query, key = (torch.tensor(rng.normal(size=(2, n, 8))).float() for n in (4, 5))
        expected, _ = builtin(query, key, key)
    found = loaded(seed, dict(builtin.state_dict()), settings, query, key)
    (output, _), biases, recording = found
    message = "A builtin with bias=False has no biases: all four of yours should become 0."
    for name, bias in zip(("W_q", "W_k", "W_v", "W_o"), biases, strict=True):
        assert_equal(bias, torch.zeros(8), message, name=f"{name}.bias")
    message = "Loaded from a builtin with bias=False, your layer should give the output of builtin."
    assert_close(output, expected, message, name="output")
    message = (
        "After the call, with a builtin made with bias=False, torch should record gradients as it "
        "did before, or nothing can be trained from here on. What is switched off for the copying "
        "is on again, on every way out of the function."
    )
    assert_equal(recording, True, message, name="torch.is_grad_enabled()")
### END HIDDEN TESTS


# %% check="load_builtin_weights_settings" points=1
# Hidden checks of load_builtin_weights: batch_first=False, kdim and vdim equal to embed_dim,
# several numbers of heads, float64, frozen weights, a layer loaded twice.
### BEGIN HIDDEN TESTS
@probe
def loaded(seed, states, settings, frozen, query, key):
    torch.manual_seed(seed)
    attention = MultiHeadAttention(settings["embed_dim"], settings["num_heads"]).double()
    attention.train(not frozen)
    with torch.no_grad():
        torch.manual_seed(seed)
        for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
            part.weight.normal_(std=0.4)
            part.bias.normal_(std=0.4)
    for state in states:
        builtin = nn.MultiheadAttention(**settings).double()
        builtin.load_state_dict(state)
        builtin.requires_grad_(not frozen)
        try:
            load_builtin_weights(attention, builtin)
        except NotImplementedError:
            raise
        except (RuntimeError, TypeError, ValueError) as error:
            return type(error).__name__, f" ({str(error)[:200]})", query, key
    with torch.no_grad():
        return "nothing", "", *attention(query, key)


rng = check_rng()
seed = int(rng.integers(2**31))
cases = [
    {"embed_dim": 12, "num_heads": 3, "batch_first": False},
    {"embed_dim": 12, "num_heads": 1},
    {"embed_dim": 12, "num_heads": 12, "batch_first": True},
    {"embed_dim": 12, "num_heads": 2, "kdim": 12, "vdim": 12, "batch_first": True},
    {"embed_dim": 15, "num_heads": 5, "batch_first": True},
    {"embed_dim": 1, "num_heads": 1, "batch_first": True},
    {"embed_dim": 70, "num_heads": 5, "batch_first": True},
    {"embed_dim": 33, "num_heads": 3},
    {"embed_dim": 2, "num_heads": 2, "batch_first": True},
]
for settings in cases:
    states = []
    for _ in range(2):
        builtin = nn.MultiheadAttention(**settings).double()
        with torch.no_grad():
            for parameter in builtin.parameters():
                parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
        states.append(dict(builtin.state_dict()))
    d_model = settings["embed_dim"]
    query, key = (torch.tensor(rng.normal(size=(2, n, d_model))) for n in (4, 5))
    order = (0, 1, 2) if settings.get("batch_first") else (1, 0, 2)  # where the texts stand
    with torch.no_grad():
        expected, expected_weights = builtin(
            query.permute(order),
            key.permute(order),
            key.permute(order),
            average_attn_weights=False,
        )
    expected = expected.permute(order)
    for frozen in (False, True):
        raised, words, output, weights = loaded(seed, states, settings, frozen, query, key)
        message = (
            f"load_builtin_weights(attention, nn.MultiheadAttention with {settings}), both float64: "
            f"no error is asked for. Yours raises: {raised}{words}"
        )
        assert_equal(raised, "nothing", message, name="what is raised")
        message = (
            f"nn.MultiheadAttention with {settings}, float64{', frozen' if frozen else ''}, loaded "
            f"into a layer in {'evaluation' if frozen else 'training'} mode that was loaded from "
            "another before: both should give the same, to ten "
            "digits. (batch_first changes the order of the inputs' axes, not the weights.)"
        )
        assert_close(weights, expected_weights, message, name="weights")
        assert_close(output, expected, message, name="output", rtol=1e-10, atol=1e-11)
### END HIDDEN TESTS


# %% check="load_builtin_weights_memory" points=1.5
# Hidden checks of load_builtin_weights: builtin unchanged, no memory shared, nothing returned.
### BEGIN HIDDEN TESTS
@probe
def builtin_after(seed, state, settings, training):
    builtin = nn.MultiheadAttention(**settings).train(training)
    builtin.load_state_dict(state)
    torch.manual_seed(seed)
    attention = MultiHeadAttention(settings["embed_dim"], settings["num_heads"])
    with torch.no_grad():
        torch.manual_seed(seed)
        for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
            part.weight.normal_(std=0.4)
            part.bias.normal_(std=0.4)
    result = load_builtin_weights(attention, builtin)
    after = {name: tensor.clone() for name, tensor in builtin.state_dict().items()}
    learns = [p.requires_grad for p in builtin.parameters()]
    return result is None, after, learns, builtin.training


@probe
def after_changing_the_other(seed, state, settings, query):
    builtin = nn.MultiheadAttention(**settings)
    builtin.load_state_dict(state)
    torch.manual_seed(seed)
    attention = MultiHeadAttention(settings["embed_dim"], settings["num_heads"])
    with torch.no_grad():
        torch.manual_seed(seed)
        for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
            part.weight.normal_(std=0.4)
            part.bias.normal_(std=0.4)
    load_builtin_weights(attention, builtin)
    with torch.no_grad():
        before, _ = attention(query)
        for parameter in builtin.parameters():
            parameter.zero_()
        output, _ = attention(query)
        builtin.load_state_dict(state)
        for parameter in attention.parameters():
            parameter.zero_()
    after = {name: tensor.clone() for name, tensor in builtin.state_dict().items()}
    return before, output, after


rng = check_rng()
seed = int(rng.integers(2**31))
for bias in (True, False):
    settings = {"embed_dim": 12, "num_heads": 3, "batch_first": True, "bias": bias}
    builtin = nn.MultiheadAttention(**settings)
    with torch.no_grad():
        for parameter in builtin.parameters():
            parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
        query = torch.tensor(rng.normal(size=(2, 4, 12))).float()
        expected, _ = builtin(query, query, query)
    state = dict(builtin.state_dict())
    for training in (True, False):
        nothing, after, learns, mode = builtin_after(seed, state, settings, training)
        message = "builtin was changed. Its weights are read, not written; its mode stays as it is."
        assert_equal(after, state, message, name="builtin's weights")
        assert_equal(learns, [True] * len(state), message, name="its requires_grad")
        assert_equal(mode, training, message, name="builtin.training")
        assert_equal(nothing, True, "Change attention in place and return nothing.")
    before, output, after = after_changing_the_other(seed, state, settings, query)
    message = (
        "Your layer should give the same before and after builtin's parameters become 0. Check "
        "first: were the numbers copied, or are they shared?"
    )
    assert_close(output, before, message, name="output", against="before they became 0")
    message = "After loading, and whatever becomes of builtin then, your layer gives what builtin gave."
    assert_close(output, expected, message, name="output")
    message = (
        "builtin should keep its numbers when those of your layer become 0. Check first: were they "
        "copied, or are they shared?"
    )
    assert_equal(after, state, message, name="builtin's weights")
### END HIDDEN TESTS


# %% check="load_builtin_weights_trainable" points=1
# Hidden checks of load_builtin_weights: the parameters can still be trained.
### BEGIN HIDDEN TESTS
@probe
def train_once(seed, state, settings, frozen, query, direction):
    builtin = nn.MultiheadAttention(**settings).double()
    builtin.load_state_dict(state)
    builtin.requires_grad_(not frozen)
    torch.manual_seed(seed)
    attention = MultiHeadAttention(settings["embed_dim"], settings["num_heads"]).double()
    with torch.no_grad():
        torch.manual_seed(seed)
        for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
            part.weight.normal_(std=0.4)
            part.bias.normal_(std=0.4)
    torch.set_grad_enabled(True)  # as it is when Python starts
    try:
        load_builtin_weights(attention, builtin)
    except NotImplementedError:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, f" ({str(error)[:200]})"
    recording = torch.is_grad_enabled()
    known = [name for name, _ in attention.named_parameters()]
    parts = ("W_q", "W_k", "W_v", "W_o")
    names = [f"{part}.{what}" for part in parts for what in ("weight", "bias")]
    tensors = [attention.get_parameter(name) for name in names]
    trainable = [(t.requires_grad, t.is_leaf, n in known) for t, n in zip(tensors, names, strict=True)]
    total = (attention(query)[0] * direction).sum()
    if total.requires_grad:
        total.backward()
    gradients = [t.grad for t in tensors]
    with torch.no_grad():
        for parameter in attention.parameters():  # a step of SGD
            if parameter.grad is not None:
                parameter.sub_(0.01 * parameter.grad)
        return trainable, gradients, attention(query)[0], recording


rng = check_rng()
seed = int(rng.integers(2**31))
settings = {"embed_dim": 12, "num_heads": 3, "batch_first": True}
torch.set_grad_enabled(True)  # a call in another check may have left it off
builtin = nn.MultiheadAttention(**settings).double()
with torch.no_grad():
    for parameter in builtin.parameters():
        parameter.copy_(torch.tensor(0.4 * rng.normal(size=tuple(parameter.shape))))
query, direction = (torch.tensor(rng.normal(size=(2, 4, 12))) for _ in range(2))
state = {name: tensor.clone() for name, tensor in builtin.state_dict().items()}
(builtin(query, query, query)[0] * direction).sum().backward()
expected = []
for weight, bias in zip(builtin.in_proj_weight.grad.chunk(3), builtin.in_proj_bias.grad.chunk(3), strict=True):
    expected += [weight, bias]
expected += [builtin.out_proj.weight.grad, builtin.out_proj.bias.grad]
with torch.no_grad():
    for parameter in builtin.parameters():
        parameter.sub_(0.01 * parameter.grad)
    after_step, _ = builtin(query, query, query)
for frozen in (False, True):
    found = train_once(seed, state, settings, frozen, query, direction)
    if isinstance(found[0], str):
        message = (
            f"load_builtin_weights(attention, nn.MultiheadAttention with {settings}), both float64: "
            f"no error is asked for. Yours raises: {found[0]}{found[1]}"
        )
        assert_equal(found[0], "nothing", message, name="what is raised")
    trainable, gradients, output, recording = found
    message = (
        "After the call torch should record gradients as it did before: what is switched off for "
        "the copying is on again."
    )
    assert_equal(recording, True, message, name="torch.is_grad_enabled()")
    message = (
        f"After loading from {'a frozen' if frozen else 'an ordinary'} builtin, all eight "
        "parameters should still be trainable: they require a gradient, belong to the layer, get "
        "the same gradient as the builtin's, and one step of SGD leads to the same output."
    )
    assert_equal(trainable, [(True, True, True)] * 8, message, name="what the parameters are")
    for place, wanted in enumerate(expected):
        assert_close(gradients[place], wanted, message, name="a gradient")
    assert_close(output, after_step, message, name="the output after one step")
### END HIDDEN TESTS


# %% check="load_builtin_weights_errors" points=1
# Hidden checks of load_builtin_weights: layers that do not fit.
### SIDE CONDITION: counts once another check of load_builtin_weights passes.
### BEGIN HIDDEN TESTS
@probe
def load(d_model, num_heads, settings):
    load_builtin_weights(MultiHeadAttention(d_model, num_heads), nn.MultiheadAttention(**settings))


def refuses(what, layers):
    for d_model, num_heads, settings in layers:
        message = (
            f"MultiHeadAttention({d_model}, {num_heads}) and nn.MultiheadAttention with "
            f"{settings}: {what}. This should be a ValueError."
        )
        with assert_raises(ValueError, message):
            load(d_model, num_heads, settings)


with check("another embed_dim", points=0.25):
    layers = [
        (12, 3, {"embed_dim": 24, "num_heads": 3}),
        (12, 3, {"embed_dim": 6, "num_heads": 3}),
        (12, 3, {"embed_dim": 6, "num_heads": 3, "bias": False}),
        (12, 3, {"embed_dim": 36, "num_heads": 3}),
        (12, 1, {"embed_dim": 1, "num_heads": 1}),
    ]
    refuses("another embed_dim", layers)
with check("another num_heads", points=0.25):
    layers = [
        (12, 3, {"embed_dim": 12, "num_heads": 2}),
        (12, 3, {"embed_dim": 12, "num_heads": 1}),
        (12, 1, {"embed_dim": 12, "num_heads": 12}),
        (12, 3, {"embed_dim": 12, "num_heads": 6, "bias": False}),
    ]
    refuses("another num_heads", layers)
with check("a kdim of its own, with a vdim or without", points=0.25):
    layers = [
        (12, 3, {"embed_dim": 12, "num_heads": 3, "kdim": 8}),
        (12, 3, {"embed_dim": 12, "num_heads": 3, "kdim": 1, "bias": False}),
        (12, 3, {"embed_dim": 12, "num_heads": 3, "kdim": 8, "vdim": 10}),
        (12, 3, {"embed_dim": 12, "num_heads": 3, "kdim": 8, "vdim": 8}),
    ]
    refuses("a kdim of its own", layers)
with check("a vdim of its own", points=0.25):
    refuses("a vdim of its own", [(12, 3, {"embed_dim": 12, "num_heads": 3, "vdim": 8})])
checks_passed("load_builtin_weights")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Print the names and shapes in `builtin.named_parameters()`, for `bias=True` and for `bias=False`.
# Three projections lie on top of each other in one matrix; the section above says in which order.
# To write into a parameter without recording a gradient, work under `torch.no_grad()`. To write
# into it, and not replace it by a view of the other layer, use an in-place copy.
#
# </details>

# %% [markdown]
# **Predict, then run.** Both layers now have the same weights, and a mask hides the future. First
# the builtin gets `~keep`, then `keep` by mistake. What happens in each case?

# %% tags=["demonstration"]
torch.manual_seed(1)
builtin = nn.MultiheadAttention(12, num_heads=3, batch_first=True)
ours = MultiHeadAttention(12, 3)
load_builtin_weights(ours, builtin)
text = torch.randn(2, 5, 12)  # two random texts of five words
order = torch.arange(5)
keep = order <= order[:, None]  # (n_q, n_k): a word sees itself and the words before it
with torch.no_grad():
    our_output, our_weights = ours(text, mask=keep)
    for name, mask in (("~keep", ~keep), ("keep", keep)):
        output, weights = builtin(text, text, text, attn_mask=mask, average_attn_weights=False)
        same = (output - our_output).abs().max().item() < 1e-5  # False for NaN, too
        print(f"attn_mask={name:5s} equal to 1e-5: {same!s:5s}  NaN: {output.isnan().any().item()}")
    output, _ = builtin(text, text, text, attn_mask=~keep)
    assert (output - our_output).abs().max() < 1e-5

# %% [markdown]
# ### Three products in one
#
# Why does torch keep the three matrices in one? Queries, keys and values of a text come from the same
# words, so one product with a matrix of three times as many rows gives all of them. The multiplications
# are the same, but there is one call instead of three. Many published models store their `qkv` so, and
# whoever loads them must know the order.
#
# ### Exercise 5: `fuse_projections`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 10 minutes on it.
#
# Make one `nn.Linear` of the three projections of a layer.
#
# - `attention`: a `MultiHeadAttention`. It is not changed.
# - Returns an `nn.Linear(d_model, 3 * d_model)`. Its output, cut into three equal parts along the last
#   axis, is `W_q(x)`, `W_k(x)` and `W_v(x)`, in that order.
# - It has the dtype of `attention` and shares no memory with it.
# - It is trainable, also where `attention` is frozen (its parameters require no gradient).


# %% answer="fuse_projections"
def fuse_projections(attention):
    """One linear layer that gives queries, keys and values.

    Args:
        attention: MultiHeadAttention; not changed, shares no memory afterwards.

    Returns:
        A trainable nn.Linear(d_model, 3 * d_model) of the same dtype, whose output is W_q(x), W_k(x)
        and W_v(x) side by side.
    """
    ### BEGIN SOLUTION
    given: MultiHeadAttention = attention
    parts = given.W_q, given.W_k, given.W_v
    d_model = given.W_q.in_features
    fused = nn.Linear(d_model, 3 * d_model, dtype=given.W_q.weight.dtype)
    with torch.no_grad():
        fused.weight.copy_(torch.cat([part.weight for part in parts]))
        fused.bias.copy_(torch.cat([part.bias for part in parts]))
    return fused
    ### END SOLUTION


# %% check="fuse_projections" points=3
@probe
def fused(weights, biases, x):
    """The fused layer's kind, output, and what becomes of it when attention's parameters are 0."""
    attention = MultiHeadAttention(12, 3)
    parts = attention.W_q, attention.W_k, attention.W_v
    with torch.no_grad():
        for part, weight, bias in zip(parts, weights, biases, strict=True):
            part.weight.copy_(weight)
            part.bias.copy_(bias)
    layer = fuse_projections(attention)
    if not isinstance(layer, nn.Linear):
        return type(layer).__name__, None, None, None, None
    with torch.no_grad():
        before = layer(x)
        for part in parts:
            part.weight.zero_(), part.bias.zero_()
        learns = [one.requires_grad for one in layer.parameters()]
        return "Linear", (layer.in_features, layer.out_features), before, layer(x), learns


rng = check_rng()
weights = [torch.tensor(0.3 * rng.normal(size=(12, 12))).float() for _ in range(3)]
biases = [torch.tensor(rng.normal(size=12)).float() for _ in range(3)]
x = torch.tensor(rng.normal(size=(2, 5, 12))).float()
kind, sizes, output, afterwards, learns = fused(weights, biases, x)
assert_equal(kind, "Linear", "One nn.Linear comes back.", name="what comes back")
assert_equal(sizes, (12, 36), "d_model = 12: an nn.Linear(12, 36).", name="in and out features")
expected = [F.linear(x, weight, bias) for weight, bias in zip(weights, biases, strict=True)]
message = (
    "The output is cut into three along the last axis: part {} should be {}(x), with its weights and its "
    "bias. Check first: in which order do the three lie?"
)
near = {"rtol": 1e-5, "atol": 1e-5}
with check("part 0 of the output is W_q(x)", points=0.75):
    assert_close(output[..., :12], expected[0], message.format(0, "W_q"), name="part 0", **near)
with check("part 1 of the output is W_k(x)", points=0.75):
    assert_close(output[..., 12:24], expected[1], message.format(1, "W_k"), name="part 1", **near)
with check("part 2 of the output is W_v(x)", points=0.75):
    assert_close(output[..., 24:], expected[2], message.format(2, "W_v"), name="part 2", **near)
with check("in memory of its own", points=0.5):
    message = "After attention's parameters have become 0, the fused layer should give the same."
    assert_close(afterwards, output, message, name="the output", against="before they became 0")
    message = "The output of the fused layer is not the same number everywhere."
    assert_equal(bool(output.std() > 1e-3), True, message)
with check("it can be trained", points=0.25, side=True):
    message = "The weight and the bias of the fused layer should require a gradient."
    assert_equal(learns, [True, True], message, name="requires_grad of its two parameters")
checks_passed("fuse_projections")

# %% check="fuse_projections_layers" points=1.25
# Hidden checks of fuse_projections: other sizes, float64, frozen layers.
### BEGIN HIDDEN TESTS
@probe
def of_layer(sizes, weights, biases, x, frozen):
    """The fused output, W_q(x), W_k(x), W_v(x) side by side, the dtype, and what got a gradient."""
    attention = MultiHeadAttention(*sizes).to(x.dtype)
    parts = attention.W_q, attention.W_k, attention.W_v
    with torch.no_grad():
        for part, weight, bias in zip(parts, weights, biases, strict=True):
            part.weight.copy_(weight)
            part.bias.copy_(bias)
    attention.requires_grad_(not frozen)
    layer = fuse_projections(attention)
    output = layer(x.to(layer.weight.dtype))
    if output.requires_grad:
        output.sum().backward()
    learns = [one.grad is not None for one in (layer.weight, layer.bias)]
    wanted = torch.cat([part(x).detach() for part in parts], dim=-1)
    return output.detach(), wanted, str(layer.weight.dtype), learns


def layer_and_text(rng, d_model, kind):
    shapes = (3, d_model, d_model), (3, d_model), (2, 3, d_model)
    return [torch.tensor(0.5 * rng.normal(size=shape)).to(kind) for shape in shapes]


rng = check_rng()
near = {"rtol": 1e-5, "atol": 1e-5}
with check("other sizes", points=0.5):
    for sizes in ((8, 2), (15, 5), (6, 1)):
        output, wanted, _, _ = of_layer(sizes, *layer_and_text(rng, sizes[0], torch.float32), False)
        message = f"MultiHeadAttention{sizes}: the output is W_q(x), W_k(x) and W_v(x) side by side."
        against = "by the layer's own projections"
        assert_close(output, wanted, message, name="output", against=against, **near)
        message = "The layer's own projections give numbers that differ."
        assert_equal(bool(wanted.std() > 1e-3), True, message)
with check("a layer of float64", points=0.25):
    output, wanted, dtype, _ = of_layer((12, 3), *layer_and_text(rng, 12, torch.float64), False)
    message = "attention in float64: the fused layer should be in float64, too."
    assert_equal(dtype, "torch.float64", message, name="its dtype")
    message = "attention in float64: the output is W_q(x), W_k(x) and W_v(x), to ten digits."
    against = "by the layer's own projections"
    tight = {"rtol": 1e-10, "atol": 1e-11, "precise": True}
    assert_close(output, wanted, message, name="output", against=against, **tight)
with check("a frozen layer: the fused one can be trained", points=0.5):
    _, _, _, learns = of_layer((12, 3), *layer_and_text(rng, 12, torch.float32), True)
    message = (
        "attention is frozen: all the same, backward should give the fused layer's weight and bias a "
        "gradient."
    )
    assert_equal(learns, [True, True], message, name="weight, bias: have a gradient")
checks_passed("fuse_projections")
### END HIDDEN TESTS

# %% check="fuse_projections_attention" points=0.75
# Hidden checks of fuse_projections: attention stays as it is, also when the new layer is trained.
### SIDE CONDITION: counts once another check of fuse_projections passes.
### BEGIN HIDDEN TESTS
@probe
def attention_before_and_after(frozen):
    """Of attention's parameters: values before, after the call, after a step; what they require."""
    attention = MultiHeadAttention(12, 3).requires_grad_(not frozen)

    def values():
        return [one.detach().clone() for one in attention.parameters()]

    before = values()
    layer = fuse_projections(attention)
    after = values()
    output = layer(torch.ones(2, 12))
    if output.requires_grad:
        output.sum().backward()
    with torch.no_grad():
        for one in layer.parameters():
            one.add_(1.0)
    required = [one.requires_grad for one in attention.parameters()]
    reached = sum(one.grad is not None for one in attention.parameters())
    return before, after, values(), required, reached


for frozen in (False, True):
    before, after, trained, required, reached = attention_before_and_after(frozen)
    kind = "a frozen attention" if frozen else "attention"
    message = f"The eight parameters of {kind} should be as before the call."
    assert_equal(after, before, message, name="its parameters", against="before the call")
    message = f"The fused layer is changed. The parameters of {kind} should stay as they are."
    assert_equal(trained, before, message, name="its parameters", against="before the call")
    message = "A layer that was frozen should be frozen afterwards, and one that was not should not."
    assert_equal(required, [not frozen] * 8, message, name="requires_grad of its parameters")
    message = "backward from the fused layer should give the parameters of attention no gradient."
    assert_equal(reached, 0, message, name="how many got one")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `nn.Linear` keeps its weight as `(out, in)`: three layers side by side in the output lie on top of each
# other in the weight. `torch.cat` joins along its `dim`. Make a new `nn.Linear` of the right size and
# dtype, and copy into it under `torch.no_grad()`, as you did above.
#
# </details>
#
# **Predict, then run.** What does one product instead of three save for a text of one word, and what for
# a text of 512?

# %% tags=["demonstration", "nbval-ignore-output"]
# Times depend on the machine and on its load.
import time


def milliseconds(layer, x, repeats=20):
    """Smallest processor time of many calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        with torch.no_grad():
            layer(x)
        times.append(1000 * (time.process_time() - start))
    return min(times)


layer = MultiHeadAttention(64, 4)
in_one = fuse_projections(layer)
for words in (1, 512):
    x = torch.randn(1, words, 64)
    three = sum(milliseconds(part, x) for part in (layer.W_q, layer.W_k, layer.W_v))
    one = milliseconds(in_one, x)
    print(f"{words:3d} words: three products {three:.3f} ms, one product {one:.3f} ms")

# %% [markdown]
# With one word most of the time goes into the calls, and two of three are saved. With 512 words it goes
# into the multiplications, and of these none is saved. (On a graphics card, where a call costs more
# beside a multiplication, the gain reaches further; not measured here.)
#
# And does torch's layer take it? The other direction, from your layer into torch's, lets you train with
# your layer and go on with torch's.

# %% tags=["demonstration"]
torch.manual_seed(2)
ours, builtin = MultiHeadAttention(12, 3), nn.MultiheadAttention(12, 3, batch_first=True)
in_one = fuse_projections(ours)
builtin.load_state_dict(
    {
        "in_proj_weight": in_one.weight,  # (36, 12)
        "in_proj_bias": in_one.bias,  # (36,)
        "out_proj.weight": ours.W_o.weight,
        "out_proj.bias": ours.W_o.bias,
    }
)
with torch.no_grad():
    difference = (builtin(text, text, text)[0] - ours(text)[0]).abs().max().item()
print("largest difference below 1e-5:", difference < 1e-5)
assert difference < 1e-5

# %% [markdown]
# ## 5. Find the silent bug
#
# A colleague has written this layer. It runs, its shapes are right, its weights are right, and it
# can be trained. Read it. In which line is the mistake?


# %% locked="given_suspicious" tags=["demonstration"]
class Suspicious(MultiHeadAttention):
    """Given: self-attention with heads. Something in it is wrong."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.heads = num_heads

    def forward(self, x):
        batch, n, d_model = x.shape
        Q, K, V = (split_heads(part(x), self.heads) for part in (self.W_q, self.W_k, self.W_v))
        result, weights = torch_scaled_dot_product_attention(Q, K, V)
        result = result.reshape(batch, n, d_model)
        return self.W_o(result), weights


# %% [markdown]
# ### Short answer 2: `answer_silent_bug`
#
# - a) `torch_scaled_dot_product_attention(Q, K, V)`: the scale should be that of $d_{model}$.
# - b) `result.reshape(batch, n, d_model)`: its rows are not the positions.
# - c) `split_heads(part(x), self.heads)`: `x` should be split first, then projected.
# - d) `self.W_o(result)`: each head should have a projection of its own.

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "b"
### END SOLUTION

# %% check="answer_silent_bug" points=1
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# ### Short answer 3: `answer_mixed_row`
#
# Be exact. With 2 heads and 4 positions, counted from 0: what does **row 1** of its `result` hold,
# before `W_o`?
#
# - a) What head 0 and head 1 found for position 1.
# - b) What head 0 found for positions 1 and 2.
# - c) What head 0 found for positions 2 and 3.
# - d) What head 1 found for positions 0 and 1.

# %% answer="answer_mixed_row"
### BEGIN SOLUTION
answer_mixed_row = "c"
### END SOLUTION

# %% check="answer_mixed_row" points=1
check_answer("answer_mixed_row", answer_mixed_row)

# %% [markdown]
# Now train both layers, the right one and the suspicious one, on two tasks. All texts have 12
# words.
#
# - **Neighbours.** The text is 12 random words. At each position, name three words: the previous
#   one, the next one and the first one of the text. (The text is a circle: before the first word
#   comes the last one.) *Where* to look depends on the position only.
# - **Partners.** The text holds 6 pairs of words, such as "black"/"noir", in random order. At each
#   position, say where the partner of this word stands. *Where* to look depends on the word.
#
# The model is as small as can be: word vectors plus learned position vectors, one attention layer,
# one linear layer that reads the answer. (Lesson 7 is about positions. Here we only add them.)
#
# **Predict, then run.** On which task will the bug show, tested as it was trained?

# %% tags=["demonstration", "guess"]
guess_bug = "both"  # write "neighbours", "partners", "both" or "none"

# %% tags=["demonstration"]
POSITIONS, D_MODEL = 12, 48  # words in a text; features


def with_fixed_start(kind, d_model, num_heads):
    """An attention layer whose random start does not depend on how your class makes its parts."""
    state = torch.get_rng_state()
    layer = kind(d_model, num_heads)
    torch.set_rng_state(state)
    for part in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
        part.reset_parameters()
    return layer


class OneLayer(nn.Module):
    """Word and position vectors, one attention layer, one linear layer to read the answers."""

    def __init__(self, vocabulary, num_answers, num_classes, num_heads, kind):
        super().__init__()
        self.words = nn.Embedding(vocabulary, D_MODEL)
        self.positions = nn.Embedding(POSITIONS, D_MODEL)  # standard normal: as large as the words
        self.attention = with_fixed_start(kind, D_MODEL, num_heads)
        self.read = nn.Linear(D_MODEL, num_answers * num_classes)
        self.num_answers = num_answers

    def forward(self, ids):  # ids (batch, n)
        x = self.words(ids) + self.positions.weight[: ids.shape[-1]]  # (batch, n, d_model)
        output, weights = self.attention(x)
        answers = self.read(output)  # (batch, n, num_answers * num_classes)
        return answers.unflatten(-1, (self.num_answers, -1)), weights


def neighbours(batch, generator, n=POSITIONS, vocabulary=12):
    """Random words (batch, n); previous, next and first word (batch, n, 3)."""
    ids = torch.randint(vocabulary, (batch, n), generator=generator)
    first = ids[:, :1].expand_as(ids)
    return ids, torch.stack([ids.roll(1, -1), ids.roll(-1, -1), first], dim=-1)


def partners(batch, generator):
    """Six pairs of 18, shuffled (batch, 12); where the partner stands (batch, 12, 1)."""
    pairs = torch.rand(batch, 18, generator=generator).argsort(-1)[:, : POSITIONS // 2]
    ids = torch.cat([2 * pairs, 2 * pairs + 1], dim=-1)  # words 2k and 2k + 1 are partners
    ids = ids.gather(1, torch.rand(batch, POSITIONS, generator=generator).argsort(-1))
    is_partner = ids[:, None, :] == (ids ^ 1)[:, :, None]  # (batch, query, key)
    return ids, is_partner.float().argmax(-1, keepdim=True)


TASKS = {  # texts; vocabulary, answers for a word, classes of an answer; steps and learning rate
    "neighbours": (neighbours, (12, 3, 12), (600, 3e-3)),
    "partners": (partners, (36, 1, POSITIONS), (300, 5e-3)),
}


def train(task, num_heads, seed, kind=MultiHeadAttention):
    """A model of one attention layer, trained on batches of 64 new texts."""
    make, sizes, (steps, lr) = TASKS[task]
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = OneLayer(*sizes, num_heads, kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for _ in progress(steps, f"{task}, {kind.__name__}, {num_heads} heads"):
        ids, wanted = make(64, generator)
        answers, _ = model(ids)
        loss = F.cross_entropy(answers.flatten(0, 2), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def accuracy(model, task, **options):
    """Share of right answers on 500 new texts, one number for each question."""
    ids, wanted = TASKS[task][0](500, torch.Generator().manual_seed(99), **options)
    with torch.no_grad():
        right = model(ids)[0].argmax(-1) == wanted  # (batch, n, num_answers)
    # Inner positions: where the circle closes depends on the length of the text.
    return right[:, 1:-1].float().mean((0, 1)).numpy()


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
trained = {
    (task, kind.__name__): train(task, 3, seed=1, kind=kind)
    for task in TASKS
    for kind in (MultiHeadAttention, Suspicious)
}

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
scores = {}
print("                         trained at 12 words            shorter text: 9 words")
print("                         previous  next  first          previous  next  first")
for kind in ("MultiHeadAttention", "Suspicious"):
    at_12 = accuracy(trained["neighbours", kind], "neighbours")
    at_9 = accuracy(trained["neighbours", kind], "neighbours", n=9)
    scores[kind] = at_12, at_9, accuracy(trained["partners", kind], "partners")[0]
    left, right = ("  ".join(f"{v:6.2f}" for v in row) for row in (at_12, at_9))
    print(f"neighbours {kind:19s} {left}          {right}")
for kind, (_, _, found) in scores.items():
    print(f"partners   {kind:19s} {found:6.2f}   (guessing: {1 / 11:.2f})")
right_12, right_9, right_partner = scores["MultiHeadAttention"]
wrong_12, wrong_9, wrong_partner = scores["Suspicious"]
assert right_12.min() > 0.99 and right_9.min() > 0.95 and right_partner > 0.98
assert wrong_12.min() > 0.9 and wrong_9[:2].max() < 0.7 and wrong_partner < 0.6

# %% tags=["demonstration"]
shows = {"neighbours": wrong_12.min() < 0.9, "partners": wrong_partner < 0.9}
came_out = [task for task, yes in shows.items() if yes]
came_out = "both" if len(came_out) == 2 else came_out[0] if came_out else "none"
why = "Where only the position matters, the model learns around it."
reply("guess_bug", guess_bug, came_out, why)

# %% [markdown]
# On "neighbours" with 12 words the bug does not show. The model has **learned around it**. The
# reshape puts what a head found for one position into another row of the output, always the same
# one. Where to look depends on the position only, so each position learns to fetch the word that
# this other row will need. The loss falls, the accuracy is near 1. Two things break it.
#
# - **Another length.** With 9 words the rows are mixed in another way, and what was learned no
#   longer fits. (Only "first" survives: every row needs the same word, so mixing rows does no
#   harm.)
# - **Content.** For "partners", a row needs what *its own word* asks for. But nearly all of what
#   fills it was asked from other positions (four rows of the 12 keep one head's own result).
#
# With a mask that hides the future (lesson 6), rows would also get results of later positions. How
# do you find the bug without training? Lesson 4 has the tool: attention without positions must not
# care about the order of the words. **Predict, then run:** which of the two has a large
# `permutation_error`?

# %% tags=["demonstration"]
text = torch.randn(4, 6, 12, generator=torch.Generator().manual_seed(0))
permutation = [2, 0, 1, 5, 3, 4]
for kind in (MultiHeadAttention, Suspicious):
    torch.manual_seed(0)
    with torch.no_grad():
        error = permutation_error(kind(12, 3), text, permutation)
    print(f"{kind.__name__:19s} permutation error below 1e-5: {error < 1e-5}")
    assert (error < 1e-5) == (kind is MultiHeadAttention)

# %% [markdown]
# A short test, no training. Now write your own, for any layer.
#
# ### Exercise 6: `mixes_rows`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 15 minutes on it.
#
# You write the **test** this time: it is graded by whether it tells right layers from broken ones.
#
# - `layer`: a callable that should be self-attention without a mask and without positions:
#   `layer(x (batch, n, d_model)) -> (output (batch, n, d_model), weights)`, torch tensors, any
#   `batch` and `n`. `d_model`: an integer. You choose the texts.
# - Returns a Python `bool`. `True` when the layer **mixes rows**: a word's output depends on the place
#   where the word stands, or on another text of the batch. `False` when it does not.
# - Rounding is no mixing: right layers differ by up to 1e-5 for inputs of order 1, broken ones by
#   more than 1e-3.
# - Graded with right layers of several numbers of heads, and with broken ones: a reshape at the
#   wrong place, texts that attend to each other, positions or an order inside.


# %% answer="mixes_rows"
def mixes_rows(layer, d_model):
    """Tell a layer that mixes rows from a right one.

    Args:
        layer: callable; layer(x (batch, n, d_model)) returns (output, weights).
        d_model: number of features.

    Returns:
        True when a word's output depends on the place where the word stands or on another text.
    """
    ### BEGIN SOLUTION
    x = torch.randn(3, 5, d_model, generator=torch.Generator().manual_seed(0))
    order = torch.tensor([2, 0, 4, 1, 3])
    with torch.no_grad():
        output = layer(x)[0]
        moved = layer(x[:, order])[0]
        alone = torch.cat([layer(text[None])[0] for text in x])
    by_place = (moved - output[:, order]).abs().max()
    by_texts = (alone - output).abs().max()
    return bool(max(by_place, by_texts) > 1e-4)
    ### END SOLUTION


# %% check="mixes_rows" points=2
@probe
def judged(kind, d_model, num_heads, seed):
    W_q, W_k, W_v = torch.randn(3, d_model, d_model, generator=torch.Generator().manual_seed(seed))

    def layer(x):
        batch, n, _ = x.shape
        Q, K, V = (x @ W / d_model**0.5 for W in (W_q, W_k, W_v))
        if kind in ("texts that attend to each other", "both"):
            Q, K, V = (one.reshape(1, batch * n, d_model) for one in (Q, K, V))
        Q, K, V = (torch.stack(one.chunk(num_heads, -1), -3) for one in (Q, K, V))
        weights = torch.softmax(Q @ K.transpose(-1, -2) / (d_model / num_heads) ** 0.5, dim=-1)
        result = weights @ V
        if kind in ("a reshape for combine_heads", "both"):
            return result.reshape(batch, n, d_model), weights
        return torch.cat(result.unbind(-3), -1).reshape(batch, n, d_model), weights

    return mixes_rows(layer, d_model)


seed = int(check_rng().integers(2**31))
with check("a right layer, and one with the colleague's reshape", points=1):
    found = {"right": judged("right", 12, 3, seed)}
    found["a reshape"] = judged("a reshape for combine_heads", 12, 3, seed)
    message = (
        "A right layer of three heads mixes nothing: False. One with the colleague's reshape does: "
        "True. Each verdict is a Python bool."
    )
    assert_equal(found, {"right": False, "a reshape": True}, message, name="your verdicts")
with check("right layers, and texts that attend to each other", points=1):
    found, expected = {}, {}
    for d_model, num_heads in ((8, 2), (12, 3), (12, 4), (6, 1)):
        right, as_one = f"right, heads: {num_heads}", f"all texts as one, heads: {num_heads}"
        found[right] = judged("right", d_model, num_heads, seed)
        found[as_one] = judged("texts that attend to each other", d_model, num_heads, seed)
        expected |= {right: False, as_one: True}
    found["all texts as one, and a reshape"] = judged("both", 12, 3, seed)
    expected["all texts as one, and a reshape"] = True
    message = (
        "A right layer keeps the texts of a batch apart: False. The others make one long text of "
        "them: True. Each verdict is a Python bool. Check first: what does a layer give for a text "
        "when it is alone, and would it give this beside other texts than its own copies?"
    )
    assert_equal(found, expected, message, name="your verdicts")
checks_passed("mixes_rows")

# %% check="mixes_rows_layers" points=2
# Hidden checks of mixes_rows: more layers, right and broken.
### BEGIN HIDDEN TESTS
@probe
def verdict_on(number, d_model, num_heads, seed):
    W_q, W_k, W_v = torch.randn(3, d_model, d_model, generator=torch.Generator().manual_seed(seed))
    if number == 15:  # as the weights of an nn.Linear
        W_q, W_k, W_v = (W.requires_grad_() for W in (W_q, W_k, W_v))

    def layer(x):
        batch, n, _ = x.shape
        if number == 5:
            x = x + torch.arange(n)[:, None] / 10
        Q, K, V = (x @ W / d_model**0.5 for W in (W_q, W_k, W_v))
        if number == 2:
            Q, K, V = (one.reshape(batch, num_heads, n, -1) for one in (Q, K, V))
        elif number == 4:
            Q, K, V = (torch.stack(one.swapaxes(0, 1).chunk(num_heads, -1), -3) for one in (Q, K, V))
        else:
            Q, K, V = (torch.stack(one.chunk(num_heads, -1), -3) for one in (Q, K, V))
        scores = Q @ K.transpose(-1, -2) / (d_model / num_heads) ** 0.5
        if number == 1:
            scores = scores.masked_fill(torch.ones(n, n).tril() == 0, -math.inf)
        if number == 8:
            scores = scores - 0.3 * (torch.arange(n)[:, None] - torch.arange(n)).abs()
        weights = torch.softmax(scores, dim=-1)
        result = weights @ V
        if number == 4:
            return torch.cat(result.unbind(-3), -1).swapaxes(0, 1), weights
        if number == 6:
            result = result + 0.1 * V.mean(dim=0)[None]
        if number == 9:
            result = result + 0.1 * (V.cumsum(dim=0) - V)
        if number == 10:
            result = result + 0.1 * (V.sum(dim=0) - V.cumsum(dim=0))
        if number == 16:
            result = result + 0.1 * V.roll(-1, dims=0)
        if number == 11:  # rounding, not more
            result = result + 8e-6 * (torch.arange(n)[:, None] % 2)
        if number == 12:
            result = result + 2e-3 * torch.arange(n)[:, None]
        if number == 7:
            result = result + 0.1 * V.roll(1, dims=-2)
        if number in (13, 14):
            special = torch.arange(n) == (0 if number == 13 else n - 1)
            result = result * (1 + special / 2)[:, None]
        if number == 2:
            return result.reshape(batch, n, d_model), weights
        joined = torch.cat(result.unbind(-3), -1)
        return joined, weights

    return mixes_rows(layer, d_model)


#: What is right is known here and not beside the student's code, which could look at its caller.
numbers = {
    "no look at the future": 1,
    "a reshape for split_heads": 2,
    "right": 3,
    "words attend across texts": 4,
    "positions are added": 5,
    "a little of all texts": 6,
    "the word before, the last word before the first": 7,
    "far words count less, on either side": 8,
    "each text gets a little of the texts before it in the batch": 9,
    "each text gets a little of the texts behind it in the batch": 10,
    "right, with rounding near 1e-5": 11,
    "0.002 times the number of the position is added": 12,
    "the first position is treated otherwise": 13,
    "the last position is treated otherwise": 14,
    "right, with trainable matrices": 15,
    "each text gets a little of the next text, the last one of the first": 16,
}


def judged(kind, *sizes_and_seed):
    return verdict_on(numbers[kind], *sizes_and_seed)


seeds = iter(check_rng().integers(2**31, size=40).tolist())
more_seed = int(check_rng().integers(2**31))


def more_layers(which):
    """The verdicts on some layers, all at once."""
    expected = {name: number not in (3, 11, 15) for name, number in numbers.items() if number in which}
    found = {name: judged(name, 12, 3, more_seed) for name in expected}
    wrong = [name for name in expected if found[name] is not expected[name]]
    message = (
        "Layers of three heads. Those named 'right' mix nothing: False, also where rounding makes "
        "a difference of up to 1e-5, and where the output requires a gradient. The others mix: "
        f"True. Each verdict is a Python bool. Judged otherwise: {'; '.join(wrong)}."
    )
    assert_equal(found, expected, message, name="your verdicts")


with check("right layers, and layers broken in the order", points=1):
    for kind in [name for name, number in numbers.items() if number in (1, 2, 5, 7, 8)]:
        for d_model, num_heads in ((12, 3), (8, 4)):
            message = (
                f"{num_heads} heads, {kind}: this layer mixes rows, and the Python bool True is "
                "asked for. Check first: in which orders do you show it the words?"
            )
            assert_equal(judged(kind, d_model, num_heads, next(seeds)), True, message, name="the verdict")
    message = (
        "A right layer mixes nothing: the Python bool False is asked for, whatever its sizes. Check "
        "first: does rounding count?"
    )
    for d_model, num_heads in ((12, 3), (12, 1), (8, 4), (6, 2)):
        assert_equal(judged("right", d_model, num_heads, next(seeds)), False, message, name="the verdict")
    more_layers((3, 11, 15, 1, 2, 5, 7, 8, 12, 13, 14))
with check("right layers and broken ones, of many sizes", points=1):
    for kind in ("words attend across texts", "a little of all texts"):
        for d_model, num_heads in ((12, 3), (8, 4)):
            message = (
                f"{num_heads} heads, {kind}: a word's output depends on other texts, and the "
                "Python bool True is asked for."
            )
            assert_equal(judged(kind, d_model, num_heads, next(seeds)), True, message, name="the verdict")
    message = (
        "A right layer mixes nothing: the Python bool False is asked for, whatever its sizes. Check "
        "first: does rounding count?"
    )
    for d_model, num_heads in ((12, 2), (4, 4), (6, 3)):
        assert_equal(judged("right", d_model, num_heads, next(seeds)), False, message, name="the verdict")
    more_layers((3, 11, 15, 4, 6, 9, 10, 16))
    for kind in ("right", "words attend across texts", "a little of all texts"):
        for d_model, num_heads in ((15, 5), (7, 7), (3, 1), (64, 8)):
            message = (
                f"d_model = {d_model}, {num_heads} heads, {kind}: a Python bool is asked for, False "
                "for a right layer and True for one in which a word's output depends on other "
                "texts, whatever the sizes."
            )
            verdict = judged(kind, d_model, num_heads, next(seeds))
            assert_equal(verdict, kind != "right", message, name="the verdict")
    for d_model, num_heads in ((70, 5), (130, 1), (33, 3), (5, 5), (1, 1), (np.int64(12), 3)):
        message = (
            f"A right layer, d_model = {d_model}, {num_heads} heads: the Python bool False is "
            "asked for."
        )
        assert_equal(judged("right", d_model, num_heads, more_seed), False, message, name="the verdict")
    for kind in ("words attend across texts", "positions are added", "a little of all texts"):
        for d_model, num_heads in ((70, 5), (33, 1), (5, 5)):
            message = (
                f"d_model = {d_model}, {num_heads} heads, {kind}: this layer mixes rows, and the "
                "Python bool True is asked for."
            )
            assert_equal(judged(kind, d_model, num_heads, more_seed), True, message, name="the verdict")
checks_passed("mixes_rows")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two questions to a layer, and no right answer is needed for either. Put the words of a text into
# another order: what should happen to the rows of the output? Take one text out of the batch: what
# should happen to its output? Use sizes that all differ, more than one text, and an order in which
# no word stays at its place.
#
# </details>
#
# Keep it for every attention layer that you write, and use more than one head: with one head the
# right layer and the suspicious one are the same.
#
# ## 6. Three relations, three heads
#
# "Neighbours" asks for three words at once. One head gives one mixture. Train it with one, two and
# three heads. (The three-headed model you already have.) For the figure, the 12 numbers of the
# vocabulary get the names of 12 words. The model only ever sees the numbers.
#
# **Predict, then run.** Which accuracy do you expect with one head, on each of the three questions?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
by_heads = {3: trained["neighbours", "MultiHeadAttention"]}
for num_heads in (1, 2):
    by_heads[num_heads] = train("neighbours", num_heads, seed=1)
print("heads   previous  next  first")
for num_heads in (1, 2, 3):
    found = accuracy(by_heads[num_heads], "neighbours")
    print(f"{num_heads:5d}   " + "  ".join(f"{v:6.2f}" for v in found))
    assert (found.min() > 0.99) == (num_heads == 3)
    if num_heads == 1:
        assert found.min() > 0.15 and found.max() < 0.97
    if num_heads == 2:
        assert sorted(found)[0] < 0.7 and sorted(found)[1] > 0.9

# %% [markdown]
# With one head every answer is better than guessing (0.08), and none is reliable. With two heads
# one relation is still bad. With three everything is right. All that after 600 steps: **in this run
# more heads learned it sooner**, and it does not follow that fewer cannot. Outside this notebook we
# trained two heads for 4,000 steps, on three seeds and two machines: in five of the six runs every
# relation was right in 0.99 to 1.00 of the cases. One head, after as many steps, still had one
# relation at 0.21 (one seed).
#
# Why does one head fail? With unequal weights its mixture still *holds* all three words, as in
# section 1. But all three went through the same value matrix and were added, and the read-out is
# linear: it can only add up what the words say, each times its weight. It can favour the word with
# the largest weight, but it cannot tell all three apart reliably. (A read-out that is not linear,
# as in lesson 8, could get more from the mixture.) Three heads deliver their words side by side.
# What do they look at?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
labels = ["the", "black", "cat", "is", "sleeping", "a", "white", "dog", "was", "running"]
labels += ["here", "now"]
ids = torch.arange(12)[None]  # (1, 12): every word of the vocabulary once, as a text
with torch.no_grad():
    three_maps = by_heads[3](ids)[1][0].numpy()  # (num_heads, n, n)
here = np.arange(POSITIONS)
keys_of = {"previous": (here - 1) % POSITIONS, "next": (here + 1) % POSITIONS, "first": 0 * here}
share = np.array([[m[here, k].mean() for k in keys_of.values()] for m in three_maps])
figure, panels = plt.subplots(1, 3, figsize=(12.6, 4.9))
for h, axes in enumerate(panels):
    draw_heatmap(axes, three_maps[h], labels if h == 0 else [""] * POSITIONS, labels)
    for number in axes.texts:  # print only the numbers that matter, with one digit
        weight = float(number.get_text())
        number.set(visible=weight >= 0.1, text=f"{weight:.1f}")
    axes.set(title=f"head {h}", ylabel="query" if h == 0 else "")
    axes.tick_params(axis="x", rotation=90)
figure.tight_layout()
print("mean weight on     " + "  ".join(f"{name:>8s}" for name in keys_of))
for h, row in enumerate(share):
    print(f"head {h}             " + "  ".join(f"{v:8.2f}" for v in row))
assert sorted(share.argmax(1)) == [0, 1, 2] and share.max(1).min() > 0.45  # a relation each
took = [list(keys_of)[which] for which in share.argmax(1)]
show(
    figure,
    f"Figure 1. Each of the three heads took one relation, from left to right: {took[0]}, "
    f"{took[1]} and {took[2]} word. Previous and next are diagonals with one cell in a corner, "
    "where the circle closes; first is a column. Do not conclude that heads always divide the work "
    "so neatly: here there are exactly as many relations as heads.",
    f"Three heat maps of 12 by 12 words: weight on the {took[0]}, the {took[1]} and the {took[2]} "
    "word of the text.",
    "\n\n".join(f"head {h}\n\n{text_table(m, labels, labels)}" for h, m in enumerate(three_maps)),
)

# %% [markdown]
# The shares of a head can add up to more than 1, since the relations overlap: for the second word
# "previous" *is* "first", for the last word "next" is.
#
# Not every training run is as tidy. We ran this with four seeds, each with an accuracy of 1.00. In
# two of them the "previous" head put about 0.4 of its weight on the **next** word. The answers stay
# right: another head knows the next word exactly, so the last layer can subtract it. A blurred map
# is no sign of a bad model.
#
# A map shows where a head *looks*. It does not show what that is *good for*. To know this, take the
# head away and measure, in a copy of the model. There are two ways, and a claim should hold for both.
# **Zero ablation** sets the head's piece of `W_o` to zero. But 0 may be something that the rest of the
# model has never seen. **Mean ablation** puts the head's mean over many texts there: the head still
# says what it always says, and nothing about this text.
#
# ### Exercise 7: `leave_one_head_out`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 20 minutes on it.
#
# Take away one head after the other, and measure each time.
#
# - `attention`: a layer with the parts `W_q`, `W_k`, `W_v`, `W_o` of your `MultiHeadAttention`. It
#   may stand anywhere inside a model. `num_heads`: how many heads it has.
# - `measure`: a callable without arguments. It asks the model, in which `attention` stands, and
#   returns anything (a number, a pair of numbers, a tensor).
# - `means`: `None`, or `(d_model,)`, the mean of each feature of the joined heads, as `W_o` gets them.
# - Returns the list of what `measure()` returns, one entry a head: entry `h` while head `h`, and no
#   other, contributes 0 (`means` is `None`), or what its own part of `means` contributes. The bias of
#   `W_o` belongs to no head.
# - `measure` asks *this* layer, so a changed copy is of no use. Afterwards `attention` is what it was,
#   with the same parameters. Checked when graded only: also where `measure` raises an error.


# %% answer="leave_one_head_out"
def leave_one_head_out(attention, num_heads, measure, means=None):
    """What measure() returns without head 0, without head 1, and so on.

    Args:
        attention: a layer with parts W_q, W_k, W_v, W_o; afterwards as it was.
        num_heads: how many heads it has.
        measure: callable without arguments.
        means: None, or (d_model,), what the joined heads are on average: the removed head then
            says its mean in place of 0.

    Returns:
        List of num_heads results.
    """
    ### BEGIN SOLUTION
    W_o = attention.W_o
    weight, bias = W_o.weight.detach().clone(), W_o.bias.detach().clone()
    width = weight.shape[1] // num_heads
    found = []
    for h in range(num_heads):
        mine = slice(h * width, (h + 1) * width)  # columns: what this head contributes
        try:
            with torch.no_grad():
                W_o.weight[:, mine] = 0.0
                if means is not None:
                    W_o.bias += weight[:, mine] @ means[mine]
            found.append(measure())
        finally:
            with torch.no_grad():
                W_o.weight.copy_(weight)
                W_o.bias.copy_(bias)
    return found
    ### END SOLUTION


# %% check="leave_one_head_out" points=3
@probe
def removed(numbers, num_heads, x, means):
    """What leave_one_head_out returns where measure() is the layer's output, and the layer after."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            d_model = x.shape[-1]
            self.W_q, self.W_k, self.W_v, self.W_o = (
                nn.Linear(d_model, d_model, dtype=torch.float64) for _ in range(4)
            )

        def forward(self, x):
            parts = (part(x).unflatten(-1, (num_heads, -1)) for part in (self.W_q, self.W_k, self.W_v))
            Q, K, V = (part.transpose(-2, -3) for part in parts)
            result = F.scaled_dot_product_attention(Q, K, V)
            return self.W_o(result.transpose(-2, -3).flatten(-2))

    layer = Layer()
    with torch.no_grad():
        for name, value in layer.named_parameters():
            value.copy_(numbers[name])

    def measure():
        with torch.no_grad():
            return layer(x)

    own = None if means is None else means.clone()
    found = leave_one_head_out(layer, num_heads, measure, own)
    return found, {name: value.detach() for name, value in layer.named_parameters()}


def joined(numbers, num_heads, x):
    """The heads' results side by side, before W_o: (batch, n, d_model)."""
    Q, K, V = (
        (x @ numbers[f"W_{one}.weight"].T + numbers[f"W_{one}.bias"]).chunk(num_heads, -1)
        for one in "qkv"
    )
    return torch.cat([F.scaled_dot_product_attention(*head) for head in zip(Q, K, V)], -1)


rng = check_rng()
numbers = {}
for one in "qkvo":
    numbers[f"W_{one}.weight"] = torch.tensor(rng.normal(size=(12, 12)) / 3)
    numbers[f"W_{one}.bias"] = torch.tensor(rng.normal(size=12))
x = torch.tensor(rng.normal(size=(2, 5, 12)))
means = torch.tensor(rng.normal(size=12))


def zero_is_right(h):
    """The output while head h contributes 0."""
    found, _ = removed(numbers, 3, x, None)
    assert_equal(len(found), 3, "One result for each of the three heads.", name="the length")
    heads = joined(numbers, 3, x)
    heads[..., 4 * h : 4 * h + 4] = 0.0
    expected = heads @ numbers["W_o.weight"].T + numbers["W_o.bias"]
    message = (
        f"12 features, 3 heads: while head {h} is away, features {4 * h} to {4 * h + 3} of the "
        "joined heads contribute nothing to the output, and all others, and the bias of W_o, what "
        "they always do. Check first: which part of W_o is multiplied by them?"
    )
    assert_close(found[h], expected, message, name=f"the output without head {h}")


def mean_is_right(h):
    """What changes when head h says its mean in place of 0."""
    by_zero, by_mean = removed(numbers, 3, x, None)[0], removed(numbers, 3, x, means)[0]
    assert_equal([len(by_zero), len(by_mean)], [3, 3], "One result for each head.", name="lengths")
    mine = slice(4 * h, 4 * h + 4)
    expected = (numbers["W_o.weight"][:, mine] @ means[mine]).expand(2, 5, 12)
    message = (
        f"Head {h}: with `means` the output differs from that with 0 by one vector, the same for "
        "all words: what the weights of W_o make of this head's four features of `means`. "
        "(Compared is your result with `means` minus your result without.)"
    )
    assert_close(by_mean[h] - by_zero[h], expected, message, name=f"mean minus zero, head {h}")


with check("the first head contributes 0", points=0.75):
    zero_is_right(0)
with check("the others contribute 0, one at a time", points=0.5):
    zero_is_right(1)
    zero_is_right(2)
with check("the first head's mean: what it changes beside 0", points=0.75):
    mean_is_right(0)
with check("the others' means, one at a time: what they change beside 0", points=0.5):
    mean_is_right(1)
    mean_is_right(2)
with check("the layer is as before", points=0.5, side=True):
    for given in (None, means):
        _, after = removed(numbers, 3, x, given)
        message = "After the call the layer has its old numbers, all of them."
        assert_equal(after, numbers, message, name="the layer's parameters")
checks_passed("leave_one_head_out")


# %% check="leave_one_head_out_sizes" points=2
# Hidden checks of leave_one_head_out: other sizes, one head, results that are no tensors.
### BEGIN HIDDEN TESTS
@probe
def removed_in(numbers, num_heads, x, means, how):
    seen = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool)
    seen[0] = how != "tensor, word 0 sees nothing"
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            d_model = x.shape[-1]
            self.W_q, self.W_k, self.W_v, self.W_o = (
                nn.Linear(d_model, d_model, dtype=x.dtype) for _ in range(4)
            )

        def forward(self, x):
            parts = (part(x).unflatten(-1, (num_heads, -1)) for part in (self.W_q, self.W_k, self.W_v))
            Q, K, V = (part.transpose(-2, -3) for part in parts)
            result = F.scaled_dot_product_attention(Q, K, V, seen)
            return self.W_o(result.transpose(-2, -3).flatten(-2))

    layer = Layer()
    with torch.no_grad():
        for name, value in layer.named_parameters():
            value.copy_(numbers[name])
    model = nn.Sequential(nn.Identity(), layer, nn.Tanh())

    def measure():
        with torch.no_grad():
            output = model(x)
        if how in ("pair", "nothing"):
            return (0, "words") if how == "pair" else None
        return output if "tensor" in how else {"mean": output.mean().item(), "of": "words"}

    own = None if means is None else means.clone()
    if how != "tensor, frozen":
        return leave_one_head_out(layer, num_heads, measure, own)
    model.eval().requires_grad_(False)
    with torch.no_grad():
        if own is None:
            return leave_one_head_out(layer, np.int64(num_heads), measure)
        return leave_one_head_out(layer, np.int64(num_heads), measure, means=own)


def expected_of(numbers, num_heads, x, means):
    parts = [
        (x @ numbers[f"W_{one}.weight"].T + numbers[f"W_{one}.bias"]).chunk(num_heads, -1)
        for one in "qkv"
    ]
    results = [F.scaled_dot_product_attention(*head) for head in zip(*parts)]
    outputs = []
    for h in range(num_heads):
        said = [one.clone() for one in results]
        said[h] = (
            torch.zeros_like(said[h])
            if means is None
            else means.chunk(num_heads)[h].expand_as(said[h])
        )
        outputs.append(torch.cat(said, -1) @ numbers["W_o.weight"].T + numbers["W_o.bias"])
    return [torch.tanh(output) for output in outputs]


rng = check_rng()
cases = []
sizes = [(1, 6, 2, 4), (2, 8, 3, 5), (4, 8, 1, 3), (6, 18, 2, 7)]
sizes += [(5, 5, 2, 4), (3, 9, 1, 1), (2, 4, 4, 4)]  # one feature a head; as many as heads; float32
for num_heads, d_model, batch, n in sizes:
    numbers = {}
    for one in "qkvo":
        numbers[f"W_{one}.weight"] = torch.tensor(rng.normal(size=(d_model, d_model)) / 4)
        numbers[f"W_{one}.bias"] = torch.tensor(0.5 * rng.normal(size=d_model))
    x = torch.tensor(rng.normal(size=(batch, n, d_model)))
    means = torch.tensor(rng.normal(size=d_model))
    if len(cases) == 6:
        numbers = {name: value.float() for name, value in numbers.items()}
        x, means = x.float(), means.float()
    cases.append((numbers, num_heads, x, means))
for num_heads, d_model, batch, n in ((5, 70, 2, 3), (3, 6, 1, 65), (1, 33, 2, 2), (3, 15, 3, 3)):
    numbers = {}
    for one in "qkvo":
        shape = (d_model, d_model)
        numbers[f"W_{one}.weight"] = torch.tensor(rng.normal(size=shape) / (2 * d_model**0.5))
        numbers[f"W_{one}.bias"] = torch.tensor(0.5 * rng.normal(size=d_model))
    x = torch.tensor(rng.normal(size=(batch, n, d_model)))
    means = torch.tensor(rng.normal(size=d_model)).abs() * (0.0 if num_heads == 1 else 0.5)
    cases.append((numbers, num_heads, x, means))


def outputs_are_right(case, heads, how="tensor"):
    """Each of these heads by 0 and, compared with that, by its part of `means`."""
    numbers, num_heads, x, means = case
    by_zero = removed_in(numbers, num_heads, x, None, how)
    by_mean = removed_in(numbers, num_heads, x, means, how)
    width = x.shape[-1] // num_heads
    size = f"{num_heads} heads, {x.shape[-1]} features, {x.dtype}, the layer in a model: "
    if how == "tensor, frozen":
        size = f"In evaluation mode, frozen, under no_grad, means by name or left out: {size}"
    close = 1e-5 if x.dtype == torch.float64 else 1e-3
    for h in heads:
        expected = expected_of(numbers, num_heads, x, None)[h]
        name = f"the output without head {h}"
        message = size + "while one head contributes 0, all others do what they always do."
        assert_close(by_zero[h], expected, message, name=name)
        mine = slice(h * width, (h + 1) * width)
        moved = torch.atanh(by_zero[h]) + numbers["W_o.weight"][:, mine] @ means[mine]
        message = size + "a head contributes what W_o makes of its part of `means`, in place of 0."
        name, wanted = f"the output, head {h}", torch.tanh(moved)
        by = "computed from that with 0"
        assert_close(by_mean[h], wanted, message, name=name, rtol=close, against=by)


with check("the first head", points=1):
    for case in cases:
        outputs_are_right(case, [0])
    outputs_are_right(cases[0], [0], "tensor, frozen")
def where_a_word_sees_nothing(case):
    """Each head by its part of `means`, compared with that by 0, also where nothing is attended to."""
    numbers, num_heads, x, means = case
    how = "tensor, word 0 sees nothing"
    by_zero, by_mean = (removed_in(numbers, num_heads, x, one, how) for one in (None, means))
    width = x.shape[-1] // num_heads
    for h in range(num_heads):
        mine = slice(h * width, (h + 1) * width)
        moved = torch.atanh(by_zero[h]) + numbers["W_o.weight"][:, mine] @ means[mine]
        message = (
            f"{num_heads} heads, {x.shape[-1]} features, {x.dtype}, the layer in a model, where word 0 "
            "may attend to nothing, and every other word to all: for all words a head contributes "
            "what W_o makes of its part of `means`, in place of 0."
        )
        name, by = f"the output, head {h}", "computed from that with 0"
        assert_close(by_mean[h], torch.tanh(moved), message, name=name, rtol=1e-5, against=by)


with check("other heads; a word with nothing to see; results of any kind", points=1):
    for case in cases[1:7]:
        numbers, num_heads, x, _ = case
        outputs_are_right(case, range(1, num_heads))
        found = removed_in(numbers, num_heads, x, None, "dict")
        kinds = [one.get("of") if isinstance(one, dict) else one for one in found]
        message = "measure() may return anything, here a dict: it stands in the list as it is."
        assert_equal(kinds, ["words"] * num_heads, message)
        for how, one in (("pair", (0, "words")), ("nothing", None)):
            message = f"measure() returns {one} each time, here: so that is what the list holds."
            found = removed_in(numbers, num_heads, x, None, how)
            assert_equal(list(found), [one] * num_heads, message, name="the list")
    for case in cases[7:]:
        outputs_are_right(case, range(1, case[1]))
    outputs_are_right(cases[1], [1], "tensor, frozen")
    where_a_word_sees_nothing(cases[1])
checks_passed("leave_one_head_out")
### END HIDDEN TESTS


# %% check="leave_one_head_out_after" points=1
# Hidden checks of leave_one_head_out: the same trainable parameters, also when measure raises.
### SIDE CONDITION: counts once another check of leave_one_head_out passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(numbers, means, fails_at, training, frozen):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.W_q, self.W_k, self.W_v, self.W_o = (
                nn.Linear(6, 6, dtype=torch.float64) for _ in range(4)
            )

    layer = Layer()
    with torch.no_grad():
        for name, value in layer.named_parameters():
            value.copy_(numbers[name])
    layer.train(training).requires_grad_(not frozen)
    before, calls = dict(layer.named_parameters()), []
    means = None if means is None else means.clone()

    def measure():
        calls.append(None)
        if len(calls) == fails_at:
            raise KeyError("what measure says")
        return len(calls)

    raised = "nothing"
    try:
        leave_one_head_out(layer, 3, measure, means)
    except KeyError:
        raised = "KeyError"
    after = dict(layer.named_parameters())
    same = {name: after.get(name) is value for name, value in before.items()}
    trainable = {name: value.requires_grad == (not frozen) and value.is_leaf for name, value in after.items()}
    with torch.no_grad():
        says = layer.W_o(torch.ones(2, 6, dtype=torch.float64)), layer.training, means
    return {name: value.detach() for name, value in after.items()}, same, trainable, raised, says


rng = check_rng()
numbers = {}
for one in "qkvo":
    numbers[f"W_{one}.weight"] = torch.tensor(rng.normal(size=(6, 6)))
    numbers[f"W_{one}.bias"] = torch.tensor(rng.normal(size=6))
own = torch.tensor(rng.normal(size=6))
modes = [(None, True), (own, True), (None, False), (own, False)]


def has_numbers(found, wanted):
    """Whether a parameter has these numbers, whatever its dtype."""
    if not isinstance(found, torch.Tensor) or found.shape != wanted.shape:
        return False
    return bool((found == wanted).all())


for (means, training), frozen in [(mode, how) for how in (False, True) for mode in modes]:
    for fails_at in (None, 1, 3):
        found = afterwards(numbers, means, fails_at, training, frozen)
        after, same, trainable, raised, says = found
        call = (
            f"{'Without' if means is None else 'With'} `means`, measure raises "
            f"{'no error' if fails_at is None else f'an error at its call number {fails_at}'}: "
        )
        other = [name for name in numbers if not has_numbers(after.get(name), numbers[name])]
        message = call + (
            "after the call each parameter should have its old numbers again. Those that do not "
            f"have them: {', '.join(other)}."
        )
        assert_equal(other, [], message, name="the parameters without their old numbers")
        message = call + (
            "after the call the layer has its old parameters, which "
            f"{'require no gradient, as before' if frozen else 'can be trained'}."
        )
        assert_equal(after, numbers, message, name="the layer's parameters")
        assert_equal(same, dict.fromkeys(numbers, True), message, name="'the same parameters'")
        assert_equal(trainable, dict.fromkeys(numbers, True), message, name="'as trainable as before'")
        output, mode, means_after = says
        kept = (
            "After the call the layer works as before"
            f"{'' if fails_at is None else ', also when measure raises an error'}: "
        )
        expected = numbers["W_o.weight"].sum(dim=1) + numbers["W_o.bias"]
        message = kept + "W_o gives the output that its weight and bias make. Check first: is a hook left?"
        assert_close(output, expected.expand(2, 6), message, name="the output of W_o")
        message = kept + f"it should be in {'training' if training else 'evaluation'} mode, as it was."
        assert_equal(mode, training, message, name="layer.training")
        assert_equal(means_after, means, "`means` was changed by the call.", name="means")
        wanted = "nothing" if fails_at is None else "KeyError"
        message = (
            "No error is raised where measure raises none."
            if fails_at is None
            else f"measure raises a KeyError at its call number {fails_at} (three heads): the "
            "error is the caller's, let it through."
        )
        assert_equal(raised, wanted, message, name="what is raised")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Head `h` meets `W_o` only. `nn.Linear` computes `x @ weight.T + bias`: which rows or columns of its
# weight are multiplied by the features of head `h`? What does a head add that always says the same?
# That is one vector, and there is a place in `W_o` for a vector that is always added. Keep copies of
# what you change, and put them back before the next head: `finally` does so even after an error.
#
# </details>
#
# The means are taken where the heads stand side by side, at the entry of `W_o`:


# %% tags=["demonstration"]
def means_of_heads(model, attention, ids):
    """The mean of each feature of the joined heads over all words of some texts: (d_model,)."""
    heard = []
    hook = attention.W_o.register_forward_pre_hook(lambda _, given: heard.append(given[0]))
    with torch.no_grad():
        model(ids)
    hook.remove()
    return heard[0].flatten(0, -2).mean(0)


# %% [markdown]
# **Predict, then run.** You remove the head that looks at the first word. Which of the three
# accuracies fall far (below 0.6)?


# %% tags=["demonstration", "guess"]
guess_fall = {"previous", "next", "first"}  # write a set of these three, from none to all

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
some_texts, _ = neighbours(500, torch.Generator().manual_seed(5))
rows, lines = ["all three heads"], [accuracy(by_heads[3], "neighbours")]
layer = by_heads[3].attention
for how, means in (("zero", None), ("mean", means_of_heads(by_heads[3], layer, some_texts))):
    rows += [f"head {h} ({took[h]}): {how}" for h in range(3)]
    lines += leave_one_head_out(layer, 3, lambda: accuracy(by_heads[3], "neighbours"), means)
figure, axes = plt.subplots(figsize=(5.4, 4.4))
draw_heatmap(axes, np.array(lines), rows, list(keys_of), row_label="", column_label="accuracy on")
own, others = {}, {}
for how, first in (("zero", 1), ("mean", 4)):
    own[how] = [lines[first + h][share[h].argmax()] for h in range(3)]
    others[how] = [np.delete(lines[first + h], share[h].argmax()) for h in range(3)]
    print(f"{how}: own relation", np.round(own[how], 2), " others", np.round(others[how], 2).tolist())
assert min(lines[0]) > 0.99
for how in own:
    assert max(own[how]) < 0.35 and np.mean(others[how]) > 0.75
    assert all(one < rest.min() for one, rest in zip(own[how], others[how]))
show(
    figure,
    "Figure 2. Removing a head destroys the answer to its own relation and, mostly, leaves the "
    "others alone, whether its part becomes 0 or its mean. That is evidence for what a head is for. "
    "The map alone is not.",
    "Table of accuracies as a heat map: seven rows (all heads, each head set to zero, each head set "
    "to its mean) by three relations. With all heads 1.00 everywhere; without a head its own "
    "relation falls far, to at most about twice chance (0.08).",
    text_table(np.array(lines), rows, list(keys_of), corner="model \\ relation"),
)

# %% tags=["demonstration"]
gone = lines[1 + took.index("first")]  # its part set to zero
came_out = {name for name, right in zip(keys_of, gone) if right < 0.6}
why = "The others hardly notice: their words come from other heads."
reply("guess_fall", guess_fall, came_out, why)

# %% [markdown]
# Now remove any of them, also two or all three.


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
def accuracy_with(axes, on):
    speak = torch.tensor(on).float().repeat_interleave(D_MODEL // 3)  # 0 where a head is off
    hook = layer.W_o.register_forward_pre_hook(lambda _, given: given[0] * speak)
    right = accuracy(by_heads[3], "neighbours")
    hook.remove()
    axes.bar(list(keys_of), right, color="tab:blue")
    axes.axhline(1 / 12, color="grey", linestyle=":", linewidth=1)
    axes.set(ylim=(0, 1.05), xlabel="accuracy on", ylabel="share of right answers")
    return "Right: " + ", ".join(f"{name} {share:.2f}" for name, share in zip(keys_of, right)) + "."


switches(
    accuracy_with,
    "heads that speak",
    [f"head {h} ({name})" for h, name in enumerate(took)],
    pictures={
        "all heads": (True, True, True),
        f"without head 0 ({took[0]})": (False, True, True),
        f"head 0 ({took[0]}) alone": (True, False, False),
    },
    caption="Try it. A head that is switched off adds 0 to the output. Which answers need one head, "
    "and does any of them need two? (The dotted line: guessing.)",
)

# %% [markdown]
# ## 7. Many narrow heads or few wide ones?
#
# With $d_{model} = 48$ fixed, more heads are narrower heads. Three heads learned "neighbours" within
# 600 steps, two needed many more. What does "partners" need? A head must pick one word out of 12 by its content. How
# narrow may heads be, when there are the more of them? We train "partners" with 1 head of 48 features, with 16 heads of 3,
# and with 48 heads of **one** feature. (The model with 3 heads of 16 is there already.)
#
# **Predict, then run.** Where will the accuracy fall?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
found = {3: accuracy(trained["partners", "MultiHeadAttention"], "partners")[0]}
for num_heads in (1, 16, 48):
    found[num_heads] = accuracy(train("partners", num_heads, seed=1), "partners")[0]
print("heads  d_head   partners   neighbours (mean)")
for num_heads in (1, 3, 16, 48):
    others = ""
    if num_heads in by_heads:
        others = f"{accuracy(by_heads[num_heads], 'neighbours').mean():12.2f}"
    print(f"{num_heads:5d}{48 // num_heads:8d}{found[num_heads]:11.2f}{others}")
assert min(found[1], found[3]) > 0.98 and 0.5 < found[48] < found[16] - 0.05

# %% [markdown]
# - Too **few** heads: several relations are hard to keep apart, and take far longer to learn
#   (section 6).
# - Too **narrow** heads: with $d_{head} = 1$ a score is a product of two numbers. Such a query can
#   only prefer the largest key or the smallest one. In general the scores $QK^\top$ of a head are a
#   matrix of rank at most $d_{head}$: that limits which patterns of weights it can make.
#   Bhojanapalli and others (2020) call this the low-rank bottleneck. Our 48 heads are still far
#   better than guessing (0.09): each sorts the keys in its own way, and `W_o` adds up what they
#   find. And this is one seed and 300 steps: a part of the gap may be slower learning.
# - Between the two it hardly matters here: 1, 3 and 16 heads all find the partner. Do not expect
#   "more heads are better". The usual choice, $d_{head}$ of 64 or 128, is a habit that works.
#
# ## 8. Heads that work together: induction
#
# The most famous division of labour needs **two layers**. Take a text that repeats itself:
# "the black cat is sleeping the black cat is ...". What comes next? Look where the same word stood
# before, and take the word after it. One attention layer cannot do this for all periods with one
# set of weights: the word after "is" does not know, at its own position, that "is" stood before it.
# Two layers can:
#
# 1. In layer 1 a **previous-token head** looks one position back. Now the vector of "sleeping" also
#    says: "before me stood *is*".
# 2. In layer 2 an **induction head** asks with the present word "is": who says that *is* stood
#    before them? It finds "sleeping", and that is the answer.
#
# Elhage and others (2021) and Olsson and others (2022) found such pairs in trained language models.
# We train a model of two attention layers, one head each, from nothing. A word may look only at
# itself and at what stands before it: that mask is the topic of lesson 6. Each text has 32 places: a
# random piece of 4 to 20 different words, out of 26, repeated to the end. The period varies, so that
# no fixed distance serves all texts.


# %% tags=["demonstration"]
LENGTH, NUM_WORDS = 32, 26


class TwoLayers(nn.Module):
    """Attention only: vectors, attention layers with residual connections, one read-out."""

    def __init__(self, num_layers, num_heads=1, d_model=64):
        super().__init__()
        self.words = nn.Embedding(NUM_WORDS, d_model)
        self.positions = nn.Embedding(LENGTH, d_model)
        kind = MultiHeadAttention
        layers = [with_fixed_start(kind, d_model, num_heads) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.read = nn.Linear(d_model, NUM_WORDS)

    def forward(self, ids):  # ids (batch, n)
        n = ids.shape[-1]
        keep = torch.arange(n) <= torch.arange(n)[:, None]  # (n, n): no look at the future
        x = self.words(ids) + self.positions.weight[:n]
        maps = []
        for layer in self.layers:
            output, weights = layer(x, mask=keep)
            x = x + output  # each layer adds to what is there (more in lesson 8)
            maps.append(weights)
        return self.read(x), maps  # next-word scores (batch, n, NUM_WORDS)


def repeated_texts(batch, generator):
    """Texts (batch, LENGTH) of a repeated piece; True where the next word can be known."""
    period = torch.randint(4, 21, (batch, 1), generator=generator)
    piece = torch.rand(batch, NUM_WORDS, generator=generator).argsort(-1)  # different words
    ids = piece.gather(1, torch.arange(LENGTH) % period)
    return ids, torch.arange(LENGTH - 1) >= period  # the present word has been there before


def train_repeats(num_layers, seed, steps=400, lr=6e-3):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = TwoLayers(num_layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for _ in progress(steps, f"repeated texts, {num_layers} layers"):
        ids, known = repeated_texts(48, generator)
        answers, _ = model(ids)
        loss = F.cross_entropy(answers[:, :-1][known], ids[:, 1:][known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def loss_and_accuracy(model):
    """On 400 new texts, at the places where the next word can be known."""
    ids, known = repeated_texts(400, torch.Generator().manual_seed(7))
    with torch.no_grad():
        answers, wanted = model(ids)[0][:, :-1][known], ids[:, 1:][known]
    right = (answers.argmax(-1) == wanted).float().mean().item()
    return F.cross_entropy(answers, wanted).item(), right


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
one_layer, two_layers = (train_repeats(num_layers, seed=0) for num_layers in (1, 2))

# %% [markdown]
# **Predict, then run.** Six lines follow: one layer, two layers, and the two-layer model without
# its first or its second head, by zero and by mean. Which removal costs more, and where does guessing lie?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
cases = {
    "one layer": one_layer,
    "two layers": two_layers,
}
measured = {name: loss_and_accuracy(model) for name, model in cases.items()}
some_texts, _ = repeated_texts(400, torch.Generator().manual_seed(8))
for number, layer in enumerate(two_layers.layers, start=1):
    for how, means in (("zero", None), ("mean", means_of_heads(two_layers, layer, some_texts))):
        [without] = leave_one_head_out(layer, 1, lambda: loss_and_accuracy(two_layers), means)
        measured[f"head of layer {number}: {how}"] = without
print(f"guessing among 26 words:     loss {math.log(26):5.2f}   accuracy {1 / 26:.2f}")
for name, (loss, right) in measured.items():
    print(f"{name:28s} loss {loss:5.2f}   accuracy {right:.2f}")
assert measured["one layer"][1] < 0.5 and measured["two layers"][1] > 0.97
for layer in (1, 2):
    loss, right = measured[f"head of layer {layer}: zero"]
    assert right < 0.4 and loss > math.log(26)
    loss, right = measured[f"head of layer {layer}: mean"]
    assert right < 0.4 and loss > math.log(26)
assert 1.6 < measured["one layer"][0] < 2.05 and measured["one layer"][1] > 0.2
assert measured["head of layer 1: zero"][0] > measured["head of layer 2: zero"][0] + 1

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
ids = torch.tensor([[0, 1, 2, 3, 4] * 2 + [0, 1]])  # the black cat is sleeping, again and again
labels = ["the", "black", "cat", "is", "sleeping"] * 2 + ["the", "black"]
with torch.no_grad():
    answers, maps = two_layers(ids)
maps = [m[0, 0].numpy() for m in maps]  # (12, 12) each
figure, panels = plt.subplots(1, 2, figsize=(12.5, 6.2))
for layer, axes in enumerate(panels):
    draw_heatmap(axes, maps[layer], labels, labels)
    for number in axes.texts:
        number.set_visible(float(number.get_text()) >= 0.1)
    axes.set_title(f"layer {layer + 1}")
figure.tight_layout()
guessed = [labels[i] if i < 5 else "?" for i in answers[0, 5:].argmax(-1).tolist()]
print("said after each word from the second 'the' on:", " ".join(guessed))
assert guessed == [*labels[6:11], "black", "cat"]

ids, known = repeated_texts(400, torch.Generator().manual_seed(7))
with torch.no_grad():
    _, (first_map, second_map) = two_layers(ids)
before = ids.roll(1, -1)
is_key = torch.arange(LENGTH)[None, :] <= torch.arange(LENGTH)[:, None]
follows = (before[:, None, :] == ids[:, :, None]) & is_key & (torch.arange(LENGTH) > 0)
induction = (second_map[:, 0] * follows).sum(-1)[:, :-1][known].mean().item()
new = torch.arange(1, LENGTH) < known.int().argmax(-1, keepdim=True)  # inside the first piece
one_back = first_map[:, 0].diagonal(-1, -2, -1)[new].mean().item()
print(f"layer 1, weight on the previous word, 400 texts, first time through: {one_back:.2f}")
print(f"layer 2, weight on words that follow an earlier copy, 400 texts:     {induction:.2f}")
assert one_back > 0.85 and induction > 0.9
show(
    figure,
    "Figure 3. Left: the head of layer 1 looks one word back. Right: in the second round the head "
    "of layer 2 looks at the word *after* the earlier copy: from 'the' to 'black', from 'black' "
    "to 'cat'. Rows of the first round mean nothing: there is nothing to find yet, and weights "
    "must go somewhere. In the third round either earlier copy will do.",
    "Two lower triangular heat maps for 'the black cat is sleeping' repeated. Layer 1: weight "
    "just below the diagonal. Layer 2: in the second round weight four places back, on the word "
    "that followed the same word in the first round; in the third round four or nine places back.",
    "\n\n".join(f"layer {i + 1}\n\n{text_table(m, labels, labels)}" for i, m in enumerate(maps)),
)

# %% [markdown]
# Both heads are needed. And the model works on our sentence, which it has never seen in training:
# what it has learned is not a list of words but a procedure. One layer alone is better than
# guessing, since it sees which words the piece has, and which of them stands here (it does not
# follow itself). That alone would give a loss of about 2.1 and
# an accuracy of 0.14. It gets about 1.9 and 0.3, so it uses more, probably where the words stood
# (not tested). A loss of 1.9 is like guessing among 6 or 7 words in place of 26.
#
# Without one of the two heads, by zero or by mean, the loss is even larger than that of guessing:
# clearly so without the head of layer 1, slightly without that of layer 2. A loss above guessing
# means **too much probability on wrong words**: the rest was trained for an input that it no longer
# gets. So a large loss after a removal shows that other parts rely on a head. It does not show that
# no other head could learn the job.
#
# ### What is often said, and what is right
#
# | often said | what is right | where shown |
# |---|---|---|
# | "More heads are more parameters." | The same number; only the weights grow. | section 3 |
# | "Each head has its own small matrices." | The same as rows of one large matrix. | section 3 |
# | "If it trains, the reshape is right." | It can learn around it, for one length. | section 5 |
# | "A round trip test finds the bug." | Two wrong halves cancel. | section 2 |
# | "More heads are better." | Enough to learn the relations soon, and not too narrow. | sections 6, 7 |
# | "Three relations need three heads." | Two usually learn them too, in many more steps. | reported in section 6 |
# | "Every head has a clear meaning." | Here, since the task was built so. See below. | section 6 |
# | "The map says what a head does." | Where it looks. Remove it and measure. | sections 6, 8 |
#
# In large trained models many heads can be removed with little loss, and a few cannot (Michel and
# others, 2019; Voita and others, 2019).
#
# ### Written answer: `written_heads`
#
# In 5 to 8 sentences, for a friend who knows lesson 4 (4 points):
#
# 1. Why could one head with a linear read-out not do what three heads did in section 6, although
#    its vectors are wider?
# 2. Explain why the suspicious layer of section 5 solves "neighbours" with 12 words, and why it
#    fails for "partners".
# 3. A friend shows you an attention map and says: "This head finds the subject of the verb." What
#    would you measure before you believe it?

# %% [markdown] written="heads" points=4
# ### BEGIN SOLUTION
# A head has one row of weights for each query, so it returns one mixture: all three words go through
# the same value matrix and are added. A linear read-out can favour the word with the largest weight,
# but not tell all three apart; wider vectors change nothing in this. Three heads have three rows of
# weights, and their results are joined, so they stay apart. The suspicious layer reads the axes
# (head, position) in storage order, so a row of its output holds results that were computed for
# other positions. In "neighbours" with 12 words this rearrangement is always the same, and where to look depends on the
# position only: each position can learn to fetch what another row needs. In "partners" where to look
# depends on the word itself, and nearly all of a row was asked by queries of other words. Before I
# believe in a subject head I would remove it (set its piece of $W^O$ to zero) and measure whether
# sentences that need the subject get worse, and others do not; and measure its weights on many new
# sentences, against a simple rule such as "the previous word".
#
# **Marking scheme** (4 points). 1 point: one row of weights gives one mixture, which a linear
# read-out does not take apart; results of several heads are joined. 1 point: the bug moves results
# to other positions. 1 point: fixed rearrangement can be learned if the place to look depends on
# the position only, not if it depends on the content. 1 point: remove the head and measure the loss on cases that need it (or: many sentences
# and a simple rule to compare with); no point for "look at more maps" alone.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > I would compare the head with a rule that knows no grammar, such as "the word before the verb", on
# > sentences where the two differ ("the dogs near the house bark").
#
# Good: it looks for cases in which the claim could turn out false, and names what to compare with.
#
# > I would look at the maps of many more sentences. If the head looks at the subject in all of them, it
# > finds the subject, and the model needs it for the verb.
#
# Plausible, and bad: in most sentences the subject also stands just before the verb, so more maps do
# not separate the two. And no map says what the model *needs*.
#
# </details>

# %% [markdown]
# ### Puzzle: two keys
#
# A shelf holds things, each with a colour and a shape, two numbers from 0 to 3: (2, 1) is one of them. Colours
# come back, shapes come back, no pair does. A look-up by **both** is wanted: asked for a pair, attention finds the
# thing that has this colour **and** this shape. `puzzle_two_keys` turns pairs `(n, 2)` into vectors `(n, d_k)`, and
# serves for the queries and the keys alike.
#
# *Nothing is trained here, and nothing is graded: you write the numbers down, and the cell below says what they do.*

# %% tags=["demonstration", "guess"]
puzzle_two_keys = lambda pairs: 30 * np.eye(4)[pairs].reshape(len(pairs), 8)  # write lambda pairs: vectors


# %% tags=["demonstration", "puzzle"]
def by_two_keys(answer, n):
    pairs = np.random.default_rng(n).permutation([(i, j) for i in range(4) for j in range(4)])[:n]
    x = torch.tensor(np.asarray(answer(pairs), dtype=float))
    things = torch.arange(1.0, n + 1, dtype=torch.float64)[:, None]
    return torch_scaled_dot_product_attention(x, x, things)[0][:, 0]


puzzle("puzzle_two_keys", puzzle_two_keys, by_two_keys, lambda n: range(1, n + 1), [3, 9, 16])

# %% [markdown]
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | head | $\text{head}_h$: attention on its own features | one place of the head axis | one look |
# | split | `(n, d_model)` to `(num_heads, n, d_head)` | `split_heads` | all heads in one product |
# | combine | the inverse | `combine_heads` | results side by side, by position |
# | scale | $1/\sqrt{d_{head}}$ | the width of one head | scores of order 1 |
# | output | $[\dots]\,W^O = \sum_h \text{head}_h W^O_h$ | `W_o` | mixes heads; each adds its part |
# | mask | head axis if more axes than `query` | `True` = may attend | serves all heads or each |
# | removal | $W^O_h = 0$, or its mean | `leave_one_head_out` | what is a head worth? |
#
# ## Check yourself
#
# <details><summary>1. d_model = 512 and 8 heads, 10 queries, 20 keys, batch of 4. Which shapes have
# Q after the split, the weights, the combined result? What is the divisor?</summary>
#
# `(4, 8, 10, 64)`, `(4, 8, 10, 20)`, `(4, 10, 512)`. The divisor is $\sqrt{64} = 8$.
#
# </details>
#
# <details><summary>2. A mask has shape (4, 10, 20) for the query above. Which axis is missing, and
# what would happen without it if there were 8 texts?</summary>
#
# The head axis: it becomes `(4, 1, 10, 20)`. With 8 texts and 8 heads `(8, 10, 20)` would broadcast
# silently, and head $h$ of every text would get the mask of text $h$.
#
# </details>
#
# <details><summary>3. With one head, is combine_heads after split_heads still needed?</summary>
#
# They only add and remove an axis of length 1. The reshape bug cannot show with one head: test with
# several.
#
# </details>
#
# <details><summary>4. Your copy of torch's weights agrees before training, and not afterwards, when
# only torch's layer was trained. What did you forget?</summary>
#
# Nothing: that is right. If yours had changed as well, both would share memory.
#
# </details>
#
# <details><summary>5. Why must the previous-token head be in the first layer and the induction
# head in the second?</summary>
#
# The induction head searches with its keys for "before me stood *is*". That is not in the word
# vectors. A layer below must have written it there.
#
# </details>
#
# ## References
#
# - Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin (2017), *Attention Is All
#   You Need*: section 3.2.2.
# - Michel, Levy, Neubig (2019), *Are Sixteen Heads Really Better than One?*
# - Voita, Talbot, Moiseev, Sennrich, Titov (2019), *Analyzing Multi-Head Self-Attention:
#   Specialized Heads Do the Heavy Lifting, the Rest Can Be Pruned*.
# - Bhojanapalli, Yun, Rawat, Reddi, Kumar (2020), *Low-Rank Bottleneck in Multi-head Attention
#   Models*.
# - Elhage and others (2021), *A Mathematical Framework for Transformer Circuits*.
# - Olsson and others (2022), *In-context Learning and Induction Heads*.
#
# ## What comes next
#
# Section 8 used a mask that hides the future, and did not explain it. Lesson 6 does. It also shows
# what a language model learns when the mask is missing.
