# %% [markdown]
# ## What you will be able to do
#
# - **Build** a self-attention layer in NumPy and as an `nn.Module`, and show that both are equal.
# - **Explain** why a word needs three vectors: a query, a key and a value.
# - **Follow** one sentence through a trained layer, and say what its map does *not* prove.
# - **Prove** what a new order of the words changes, and **test** any layer for it.
# - **Count** what the layer costs, and compare it with a recurrent network.

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
    check,
    check_answer,
    check_rng,
    checks_passed,
    probe,
)
from lesson_kit.earlier import (
    rnn_hidden_states,
    scaled_dot_product_attention,
    torch_scaled_dot_product_attention,
)
from lesson_kit.figures import draw_heatmap, heatmap, show, text_table
from lesson_kit.guesses import puzzle, reply
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# ## Before you begin: three questions on earlier lessons
#
# Answer from memory, then look it up if you must: what you fetch yourself stays longer than what
# you read again.
#
# (Lesson 3.) Queries and keys have independent entries of variance 1 and length 64. What is the
# standard deviation of a score, before the scale?
#
# * `"a"`: 1
# * `"b"`: 8
# * `"c"`: 64

# %% answer="answer_again_scale"
### BEGIN SOLUTION
answer_again_scale = "b"
### END SOLUTION

# %% check="answer_again_scale" points=0.5
check_answer("answer_again_scale", answer_again_scale)

# %% [markdown]
# (Lesson 2.) A query becomes twice as long. What happens to its weights?
#
# * `"a"`: Nothing.
# * `"b"`: They get sharper.
# * `"c"`: They double.

# %% answer="answer_again_longer_query"
### BEGIN SOLUTION
answer_again_longer_query = "b"
### END SOLUTION

# %% check="answer_again_longer_query" points=0.5
check_answer("answer_again_longer_query", answer_again_longer_query)

# %% [markdown]
# (Lesson 1.) Somebody changes one early symbol of the text, and the last state of the trained
# fixed-vector encoder moves. What follows?
#
# * `"a"`: It can read that symbol out again.
# * `"b"`: The state depends on the symbol; whether it can be read out is another question.
# * `"c"`: The symbol is forgotten.

# %% answer="answer_again_look_back"
### BEGIN SOLUTION
answer_again_look_back = "b"
### END SOLUTION

# %% check="answer_again_look_back" points=0.5
check_answer("answer_again_look_back", answer_again_look_back)

# %% [markdown]
# `lesson_kit.earlier`, imported above, brings three functions of earlier lessons: your own where they
# passed their checks (they are kept in `my_transformer`, beside the lessons), else the course's.
#
# ## 1. Who was tired?
#
# Read these two sentences. They differ in one word.
#
# - The animal didn't cross the street because it was too **tired**.
# - The animal didn't cross the street because it was too **wide**.
#
# In the first, "it" is the animal. In the second, "it" is the street. You knew that at once. A
# program that translates into French must know it too: *il* for the animal, *elle* for *la rue*.
#
# A table of word vectors gives "it" the same vector in both sentences. Nothing in this vector says
# which sentence it stands in. So each word must look at the **other words of its own text**, and
# take something from them. That is **self-attention**: queries, keys and values all come from one
# sequence.
#
# In section 5 you train a layer on sentences like these two, and see where it looks. The row of "it"
# has a surprise for you.
#
# ### The smallest example: a text looks at itself
#
# Lesson 3 took $Q$, $K$ and $V$ as given. The simplest idea is to take the words themselves for all
# three: $Q = K = V = X$. Here is our running example with four features **made by hand**.

# %%
words = ["the", "black", "cat", "is", "sleeping"]
X_hand = np.array(  # (n, d_model): article, colour, animal, verb
    [[1.0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 2, 0], [0, 0, 0, 1], [0, 0, 1, 2]]
)
output, weights = scaled_dot_product_attention(X_hand, X_hand, X_hand)  # (5, 4) and (5, 5)
print("scores:\n", X_hand @ X_hand.T)
for row in (2, 3):
    print(f"row of '{words[row]}':", weights[row].round(2))

# %% [markdown]
# Two things stand out. They are not accidents of these numbers.
#
# 1. **The scores are symmetric.** "black" scores "cat" exactly as "cat" scores "black", because
#    $x_i \cdot x_j = x_j \cdot x_i$. Lesson 2 showed what that rules out: not every look in one
#    direction, but every circle of three words or more.
# 2. **A word likes itself.** The score of a word with itself is $x_i \cdot x_i$, its squared
#    length. Only a *longer* vector can beat it. "cat" puts half of its weight on "cat". "is"
#    prefers "sleeping", whose vector is longer.
#
# **Predict, then run.** Take 5 random word vectors of length 64 with entries of variance 1, and
# $Q = K = V = X$. How much weight does a word put on itself, on average?

# %% tags=["demonstration", "guess"]
guess_itself = 0.2  # write a number between 0 and 1

# %%
rng = np.random.default_rng(0)
on_itself = []
for _ in range(200):
    X = rng.normal(size=(5, 64))  # (n, d_model)
    _, weights = scaled_dot_product_attention(X, X, X)
    on_itself.append(np.diagonal(weights).mean())
print(f"weight on itself: {np.mean(on_itself):.3f}   (an even share would be {1 / 5})")
print("score with itself, about:", 64 / math.sqrt(64))  # |x|^2 is about 64, and d_k = 64

# %% tags=["demonstration"]
why = "Its score with itself is about 8, with another word about 1 or -1."
reply("guess_itself", guess_itself, np.mean(on_itself), why, within=0.05)

# %% [markdown]
# With itself a word has the score $64/\sqrt{64} = 8$. With another word the score is about $\pm 1$.
# So nothing is left for the neighbours: the layer is an expensive way to copy $X$. A word needs
# **different vectors for different roles**.

# %% [markdown]
# ## 2. Three roles, three matrices
#
# Each word plays three roles, as in the look-up of lesson 2:
#
# | role | question | formula | shape |
# |---|---|---|---|
# | query | what does this word look for? | $Q = X W_q$ | $(n, d_k)$ |
# | key | how can this word be found? | $K = X W_k$ | $(n, d_k)$ |
# | value | what does this word give? | $V = X W_v$ | $(n, d_v)$ |
#
# $X$ has the shape $(n, d_{model})$: one row a word. $W_q$ and $W_k$ have the shape
# $(d_{model}, d_k)$, and $W_v$ the shape $(d_{model}, d_v)$. They are called **projections**. They
# are learned, and the same three serve every word of every text. Then
#
# $$\operatorname{SelfAttention}(X) =
# \operatorname{softmax}\!\left(\frac{(X W_q)(X W_k)^\top}{\sqrt{d_k}}\right) X W_v .$$
#
# A word can now look for something that it is not. In our example: let the query of "black" ask for
# an animal, and let the key say "I am an animal". Here $d_k = 1$, and we write the two matrices by
# hand.

# %%
W_q_hand = np.array([[0.0], [8.0], [-4.0], [0.0]])  # a colour asks for an animal; a noun does not
W_k_hand = np.array([[0.0], [0.0], [1.0], [0.0]])  # "I am an animal"
hand_scores = (X_hand @ W_q_hand) @ (X_hand @ W_k_hand).T  # (n, n)
print("black -> cat:", hand_scores[1, 2], "   cat -> black:", hand_scores[2, 1])

# %% [markdown]
# The scores are no longer symmetric. Now write the layer.
#
# ### Exercise 1: `SelfAttention`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 5-10 minutes on it.
#
# A class in NumPy.
#
# - `SelfAttention(d_model, d_k, d_v, rng)` draws three matrices from the `np.random.Generator` and
#   keeps them as the attributes `W_q`, `W_k` `(d_model, d_k)` and `W_v` `(d_model, d_v)`. Three
#   **independent** random draws; any sensible scale, for example standard deviation
#   $1/\sqrt{d_{model}}$. NumPy's and torch's global random states are neither used nor changed.
# - `forward(X, mask=None)` returns `(output, weights)`. `X (..., n, d_model)` may have any number
#   of leading batch axes: `output (..., n, d_v)`, `weights (..., n, n)`.
# - `forward` uses the attributes **as they are when it is called**: somebody may have put other
#   matrices there.
# - `mask`: boolean, broadcastable to the weights, `True` = may attend. A word that may attend to
#   nothing gets weights 0 and output 0.
# - The conventions of lesson 1 hold, for the attributes too (checked when graded). No errors are
#   graded here. `scaled_dot_product_attention` of lesson 3 may be used.


# %% answer="SelfAttention"
class SelfAttention:
    """Self-attention in NumPy.

    Attributes:
        W_q, W_k: (d_model, d_k) projections to queries and keys.
        W_v: (d_model, d_v) projection to values.
    """

    def __init__(self, d_model, d_k, d_v, rng):
        """Draw the three projections.

        Args:
            d_model: length of a word vector.
            d_k: length of queries and keys.
            d_v: length of values.
            rng: np.random.Generator; the global random state is neither used nor changed.
        """
        ### BEGIN SOLUTION
        scale = d_model**-0.5
        self.W_q = scale * rng.standard_normal((d_model, d_k))
        self.W_k = scale * rng.standard_normal((d_model, d_k))
        self.W_v = scale * rng.standard_normal((d_model, d_v))
        ### END SOLUTION

    def forward(self, X, mask=None):
        """Let every word attend to its own text.

        Args:
            X: (..., n, d_model) word vectors.
            mask: boolean, broadcastable to (..., n, n); True = may attend. None masks nothing.

        Returns:
            output (..., n, d_v) and weights (..., n, n).
        """
        ### BEGIN SOLUTION
        return scaled_dot_product_attention(X @ self.W_q, X @ self.W_k, X @ self.W_v, mask)
        ### END SOLUTION


# %% check="SelfAttention" points=4
@probe
def projections(d_model, d_k, d_v, seed):
    layer = SelfAttention(d_model, d_k, d_v, np.random.default_rng(seed))
    return [getattr(layer, name, None) for name in ("W_q", "W_k", "W_v")]


@probe
def attend(W_q, W_k, W_v, X, mask=None):
    layer = SelfAttention(*W_q.shape, W_v.shape[1], np.random.default_rng(0))
    layer.W_q, layer.W_k, layer.W_v = W_q.copy(), W_k.copy(), W_v.copy()
    return layer.forward(X.copy()) if mask is None else layer.forward(X.copy(), mask.copy())


@probe
def attend_after_writing(W_q, W_k, W_v, X):
    layer = SelfAttention(*W_q.shape, W_v.shape[1], np.random.default_rng(0))
    layer.W_q[:], layer.W_k[:], layer.W_v[:] = W_q, W_k, W_v
    return layer.forward(X.copy())


def compare(both, expected_output, expected_weights, message):
    assert_equal(
        len(both) if isinstance(both, (tuple, list)) else 1,
        2,
        "forward should return two things: the output and the weights.",
        name="the number of results",
    )
    assert_close(both[1], expected_weights, message, name="weights")
    message = (
        "The weights are right; the output should be the average of the rows of X @ W_v, with "
        "these weights and the array that W_v holds when the layer is called (here replaced, or "
        "written into, after the layer was made)."
    )
    assert_close(both[0], expected_output, message, name="output")


drawn, shapes = projections(6, 3, 2, 1), ((6, 3), (6, 3), (6, 2))
large = projections(40, 30, 30, 1)
with check("three random matrices of the right shapes", points=1):
    for name, W, shape in zip(("W_q", "W_k", "W_v"), drawn, shapes, strict=True):
        message = f"{name} should be an attribute of shape {shape} for d_model 6, d_k 3, d_v 2."
        assert_equal(np.shape(W), shape, message, name=f"the shape of {name}")
    assert_equal(
        [min(np.unique(W).size, 500) for W in large],
        [500, 500, 500],
        "Each matrix should hold random numbers: with d_model 40, d_k 30 and d_v 30 each of them "
        "has 500 different values and more.",
        name="the number of different values, at most 500,",
    )
    message = (
        "The correlations of W_q, W_k and W_v, rounded: independent draws have a 1 on the diagonal "
        "alone. Check first: do two of them hold the same numbers, or is rng asked fewer than "
        "three times?"
    )
    related = np.corrcoef([np.ravel(W) for W in large]).round()
    assert_close(related, np.eye(3), message, name="the matrix of correlations")

rng = check_rng()
with check("as torch's layer", points=0.75):
    X = rng.normal(size=(5, 4))
    W_q, W_k, W_v = rng.normal(size=(3, 4, 4))
    theirs = nn.MultiheadAttention(4, num_heads=1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.tensor(np.concatenate([W_q.T, W_k.T, W_v.T])))
        theirs.out_proj.weight.copy_(torch.eye(4))  # a last step that changes nothing here
        expected_output, expected_weights = theirs(*[torch.tensor(X)] * 3)
    message = (
        "One text of five words, d_model = d_k = 4: the weights should be those of torch's layer. "
        "Check first: do they come from X @ W_q and X @ W_k, in this order, with the attributes as "
        "they are now?"
    )
    expected = expected_output.numpy(), expected_weights.numpy()
    follow = "The results follow the arrays that W_q, W_k and W_v hold when the layer is called."
    written = f"{follow} Here the numbers of torch's layer were written into these three arrays."
    compare(attend_after_writing(W_q, W_k, W_v, X), *expected, f"{written} {message}")
    other = f"{follow} Here all three were replaced by other arrays, with torch's numbers."
    compare(attend(W_q, W_k, W_v, X), *expected, f"{other} {message}")
with check("large scores", points=0.25):
    message = (
        "X is 1000 times as large: scores of a million do not overflow, and each word looks at "
        "one word alone. Check first: what does your softmax do before it takes powers of e?"
    )
    expected = torch.softmax(torch.tensor(1e6 * (X @ W_q) @ (X @ W_k).T / 2), -1).numpy()
    assert_close(attend(W_q, W_k, W_v, 1000 * X)[1], expected, message, name="weights", atol=1e-6)

# Two texts; d_model = 6, d_k = 3, d_v = 2. The formula at once, without Q, K and V.
X = rng.normal(size=(2, 5, 6))
W_q, W_k, W_v = (rng.normal(size=(6, d)) / 2 for d in (3, 3, 2))
scores = np.einsum("bid,dk,ek,bje->bij", X, W_q, W_k, X) / math.sqrt(3)
keep = np.array([True, True, True, True, False])


def average(scores):
    weights = torch.softmax(torch.tensor(scores), -1).numpy()
    return np.einsum("bij,bjd,dv->biv", weights, X, W_v), weights


with check("two texts, and sizes that differ", points=0.5):
    message = (
        "Two texts of five words, d_model = 6, d_k = 3: the weights should be those of the "
        "formula. Check first: is the scale the square root of d_k?"
    )
    compare(attend(W_q, W_k, W_v, X), *average(scores), message)
with check("each text as alone", points=0.5):
    both = attend(W_q, W_k, W_v, X)
    alone = [attend(W_q, W_k, W_v, text) for text in X]
    message = "Two texts, each alone, have outputs that differ, and neither holds NaN."
    assert_equal(bool(np.abs(np.asarray(alone[0][0]) - alone[1][0]).max() > 1e-3), True, message)
    message = "A text of five words alone has weights of shape (5, 5)."
    assert_equal(np.shape(alone[0][1]), (5, 5), message, name="the shape of the weights")
    message = "Two texts in one batch should come out as your layer gives each of them alone."
    for place, name in ((1, "weights"), (0, "output")):
        expected = np.stack([np.asarray(one[place]) for one in alone])
        assert_close(both[place], expected, message, name=name, against="for each text alone")
with check("a mask", points=0.5):
    message = (
        "A mask of shape (5,) hides the last word (True = may attend) before the softmax: its "
        "weight is 0, and the weights of the others should be those of the formula."
    )
    both = attend(W_q, W_k, W_v, X, keep)
    compare(both, *average(np.where(keep, scores, -np.inf)), message)
with check("a word that may attend to nothing", points=0.5):
    nothing = np.ones((5, 5), dtype=bool)
    nothing[2] = False
    output, weights = attend(W_q, W_k, W_v, X, nothing)
    message = "Word 2 may attend to nothing: its weights and its output are 0, those of others not."
    others = [True, True, False, True, True]
    shape = "Two texts of five words with a mask: weights of shape (2, 5, 5)."
    assert_equal(np.shape(weights), (2, 5, 5), shape, name="the shape of the weights")
    found = [bool((np.abs(weights[:, word]) > 0).any()) for word in range(5)]
    assert_equal(found, others, message, name="a weight above 0 (NaN is none), word by word")
    found = [bool((np.abs(output[:, word]) > 0).any()) for word in range(5)]
    assert_equal(found, others, message, name="an output above 0 (NaN is none), word by word")
    assert_equal(bool(np.isfinite(output).all()), True, "No number is NaN or infinite.")
checks_passed("SelfAttention")


# %% check="SelfAttention_draws" points=2
# Hidden checks of SelfAttention: three independent random draws, from rng alone.
### BEGIN HIDDEN TESTS
@probe
def projections(d_model, d_k, d_v, seed, call):
    np.random.seed(call)  # the global states: other ones at every call
    torch.manual_seed(call)
    layer = SelfAttention(d_model, d_k, d_v, np.random.default_rng(seed))
    return layer.W_q, layer.W_k, layer.W_v


@probe
def global_states():
    np.random.seed(7)
    torch.manual_seed(7)
    before = np.random.get_state()[1:3], torch.get_rng_state()
    SelfAttention(6, 3, 2, np.random.default_rng(1))
    return before, (np.random.get_state()[1:3], torch.get_rng_state())


@probe
def two_layers_from_one_generator(seed):
    rng = np.random.default_rng(seed)
    return [SelfAttention(6, 3, 2, rng).W_q.copy() for _ in range(2)]


names = ("W_q", "W_k", "W_v")
seed = int(check_rng().integers(2**31))
drawn = dict(zip(names, projections(40, 30, 30, seed, 1), strict=True))
for name, W in drawn.items():
    assert_equal(np.shape(W), (40, 30), f"{name} should have the shape (40, 30).", name="shape")
    message = f"{name} should be a floating NumPy array of finite numbers."
    assert_equal(isinstance(W, np.ndarray) and W.dtype.kind == "f", True, message)
    assert_equal(bool(np.isfinite(W).all()), True, message)
    message = (
        f"{name} should be 40 x 30 random numbers: 500 different values and more, and rank 30."
    )
    assert_equal(min(np.unique(W).size, 500), 500, message, name="the number of different values")
    assert_equal(int(np.linalg.matrix_rank(W - W.mean(), tol=1e-9)), 30, message, name="the rank")
message = "W_q, W_k and W_v should be independent draws. Check first: is one made from another?"
related = np.corrcoef([W.ravel() for W in drawn.values()]).round()
assert_close(related, np.eye(3), message, name="the matrix of correlations")
numbers = [np.abs(W).ravel() for W in drawn.values()]
for first, second in ((0, 1), (0, 2), (1, 2)):  # in another order they are the same draw, too
    shared = np.intersect1d(numbers[first], numbers[second]).size
    name = f"'{names[first]} and {names[second]} share numbers'"
    assert_equal(bool(shared > 100), False, message, name=name)
    some = (
        "W_q, W_k and W_v of shape (40, 30) should be independent draws: no two of them share more "
        "than 20 numbers, up to the sign. Check first: do they overlap in a block that is cut up?"
    )
    assert_equal(bool(shared > 20), False, some, name=name)
again, others = projections(40, 30, 30, seed, 2), projections(40, 30, 30, seed + 1, 3)
for name, same, other in zip(names, again, others, strict=True):
    message = (
        f"The same seed should give the same {name}. Check first: does every number come from rng?"
    )
    assert_close(same, drawn[name], message, name=name, against="in the first call")
    message = f"Another seed should give another {name}, without NaN. Check first: is rng used at all?"
    assert_equal(bool(np.abs(other - drawn[name]).max() > 1e-9), True, message)
first, second = two_layers_from_one_generator(seed)
message = (
    "Two layers are made one after the other with one and the same rng: their W_q should differ. Check "
    "first: are the numbers drawn from rng itself, so that it moves on?"
)
assert_equal(bool(np.abs(first - second).max() > 1e-9), True, message, name="'W_q that differ'")
sizes = ((6, 2), (6, 2), (6, 7))
for name, W, shape in zip(names, projections(6, 2, 7, seed, 4), sizes, strict=True):
    message = f"{name} should have the shape {shape} for d_model = 6, d_k = 2, d_v = 7."
    assert_equal(np.shape(W), shape, message, name=f"the shape of {name}")
before, after = global_states()
assert_equal(after, before, "The global random state was changed. Draw with rng's own methods.")
### END HIDDEN TESTS


# %% check="SelfAttention_attributes" points=2
# Hidden checks of SelfAttention: forward uses the attributes as they are when it is called.
### BEGIN HIDDEN TESTS
def by_torch(X, W_q, W_k, W_v):
    Q, K, V = (torch.tensor(X @ W) for W in (W_q, W_k, W_v))
    n = X.shape[-2]
    weights = F.scaled_dot_product_attention(Q, K, torch.eye(n, dtype=torch.float64))
    return (weights @ V).numpy(), weights.numpy()


@probe
def drawn_and_changed(X, sizes, seed, new):
    layer = SelfAttention(*sizes, np.random.default_rng(seed))
    results = [((layer.W_q.copy(), layer.W_k.copy(), layer.W_v.copy()), layer.forward(X.copy()))]
    layer.W_q[0] += 1
    layer.W_k[1] -= 2
    layer.W_v[2] += 3
    used = layer.W_q.copy(), layer.W_k.copy(), layer.W_v.copy()
    results.append((used, layer.forward(X.copy())))
    layer.W_q, layer.W_k, layer.W_v = (W.copy() for W in new)
    used = layer.W_q.copy(), layer.W_k.copy(), layer.W_v.copy()
    results.append((used, layer.forward(X.copy())))
    return results


rng = check_rng()
X = rng.normal(size=(5, 6))
new = tuple(rng.normal(size=shape) / 2 for shape in ((6, 3), (6, 3), (6, 4)))
results = drawn_and_changed(X, (6, 3, 4), int(rng.integers(2**31)), new)
changed = tuple(W.copy() for W in results[0][0])
changed[0][0] += 1
changed[1][1] -= 2
changed[2][2] += 3
whens = ("as drawn", "changed in place", "replaced by others")
for when, wanted, (used, both) in zip(whens, (results[0][0], changed, new), results, strict=True):
    for name, W, W_wanted in zip(("W_q", "W_k", "W_v"), used, wanted, strict=True):
        message = (
            f"W_q, W_k and W_v {when}: {name} should hold what was put there. Check first: does "
            "forward change it, or do two attributes share one array?"
        )
        assert_close(W, W_wanted, message, name=name, against="in what was put there")
    message = (
        f"With W_q, W_k and W_v {when}, forward should give torch's results with exactly these "
        "three. Check first: are the attributes read when forward is called?"
    )
    output, weights = both
    expected_output, expected_weights = by_torch(X, *wanted)
    by = "in torch, with these three"
    assert_close(weights, expected_weights, message, name="weights", against=by)
    assert_close(output, expected_output, message, name="output", against=by)
# Whole numbers and float32 in the attributes, as W_q_hand of section 2 could be written.
whole = [rng.integers(-1, 2, shape) for shape in ((6, 3), (6, 3), (6, 4))]
kept = [matrix.astype("f8") for matrix in new]
mixtures = {
    "whole numbers in all three": whole,
    "whole numbers in W_q alone": (whole[0], *kept[1:]),
    "whole numbers in W_v alone": (*kept[:2], whole[2]),
    "float32 in W_q and W_k": (*(matrix.astype("f4") for matrix in kept[:2]), kept[2]),
}
for what, matrices in mixtures.items():
    _, _, (_, (output, weights)) = drawn_and_changed(X, (6, 3, 4), 0, tuple(matrices))
    expected_output, expected_weights = by_torch(X, *(matrix.astype("f8") for matrix in matrices))
    message = (
        f"X is float64, and somebody has put {what} there: forward should give torch's results for "
        "X as it is, with these matrices, in float64. Check first: what becomes of the fractions "
        "of X?"
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")
### END HIDDEN TESTS


# %% check="SelfAttention_batches" points=2
# Hidden checks of SelfAttention: no, one, two and three batch axes; sizes and texts of many kinds.
### BEGIN HIDDEN TESTS
def by_torch(X, W_q, W_k, W_v):
    Q, K, V = (torch.tensor(X @ W) for W in (W_q, W_k, W_v))
    eye = torch.eye(X.shape[-2], dtype=torch.float64).expand(*X.shape[:-2], -1, -1)
    weights = F.scaled_dot_product_attention(Q, K, eye)
    return (weights @ V).numpy(), weights.numpy()


@probe
def attend(W_q, W_k, W_v, X, numpys=False):
    sizes = *W_q.shape, W_v.shape[1]
    sizes = [np.int64(size) if numpys else size for size in sizes]
    layer = SelfAttention(*sizes, np.random.default_rng(0))
    layer.W_q, layer.W_k, layer.W_v = W_q, W_k, W_v
    return layer.forward(X)


rng = check_rng()
for lead, n, d_k, d_v in (
    ((), 5, 3, 4),
    ((7,), 5, 3, 4),
    ((2, 7), 5, 3, 4),
    ((2, 1, 3), 4, 8, 5),
    ((), 1, 2, 9),
    ((5,), 5, 2, 7),
):
    X = rng.normal(size=(*lead, n, 6))
    W_q, W_k, W_v = (rng.normal(size=(6, d)) / 2 for d in (d_k, d_k, d_v))
    expected_output, expected_weights = by_torch(X, W_q, W_k, W_v)
    output, weights = attend(W_q, W_k, W_v, X)
    message = (
        f"X of shape {X.shape}, d_k = {d_k}, d_v = {d_v}: the results should be torch's, each text "
        "attending to itself, with the scale of d_k."
    )
    shapes = f"X of shape {X.shape}, d_k = {d_k}, d_v = {d_v}: weights of shape {(*lead, n, n)}."
    assert_equal(np.shape(weights), expected_weights.shape, shapes, name="the shape of the weights")
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")
# Leading axes of length 1, sizes of 1, sizes that are equal, a long text; memory in any order.
for lead, n, d_model, d_k, d_v in (
    ((1,), 4, 6, 3, 2),
    ((1, 1), 5, 6, 3, 4),
    ((2, 1), 3, 6, 2, 5),
    ((5,), 5, 5, 5, 5),
    ((3,), 4, 1, 1, 1),
    ((1,), 300, 6, 3, 1),
):
    X = rng.normal(size=(*lead, n, d_model))
    W_q, W_k, W_v = (rng.normal(size=(d_model, d)) / 2 for d in (d_k, d_k, d_v))
    expected_output, expected_weights = by_torch(X, W_q, W_k, W_v)
    output, weights = attend(W_q, W_k, W_v, X)
    message = (
        f"X of shape {X.shape}, d_k = {d_k}, d_v = {d_v}: the results should be torch's, output "
        f"{(*lead, n, d_v)} and weights {(*lead, n, n)}. An axis of length 1 is an axis, too."
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")


@probe
def attend_turned(W_q, W_k, W_v, X):
    layer = SelfAttention(*W_q.shape, W_v.shape[1], np.random.default_rng(0))
    layer.W_q, layer.W_k, layer.W_v = (np.asfortranarray(W) for W in (W_q, W_k, W_v))
    return layer.forward(np.asfortranarray(X))


X, W_q, W_k, W_v = (rng.normal(size=shape) / 2 for shape in ((2, 5, 6), (6, 3), (6, 3), (6, 4)))
message = (
    "X (2, 5, 6) and the matrices lie in memory column by column (np.asfortranarray): the results "
    "should be torch's for the same numbers, as for any other X."
)
expected = by_torch(X, W_q, W_k, W_v)
found = attend_turned(W_q, W_k, W_v, X)
for place, name in enumerate(("output", "weights")):
    assert_close(found[place], expected[place], message, name=name)
# Wide words, long texts, NumPy's integers for sizes; texts with special numbers.
given = [((2,), 5, 70, 33, 17), ((), 65, 2, 1, 3), ((3,), 3, 130, 3, 65), ((2,), 4, 5, 4, 5)]
texts = [("random numbers", rng.normal(size=(*lead, n, d)), *more) for lead, n, d, *more in given]
X = rng.normal(size=(2, 5, 6))
twin, empty = X.copy(), X.copy()
twin[:, 2], empty[:, 1] = twin[:, 1], 0.0
texts += [
    ("words 1 and 2 are equal", twin, 3, 4),
    ("word 1 holds zeros alone", empty, 3, 4),
    ("all words are equal", np.repeat(X[:, :1], 5, axis=1), 3, 4),
    ("all numbers are negative", -np.abs(X) - 0.1, 3, 4),
    ("all numbers are 0", 0.0 * X, 3, 4),
]
for what, X, d_k, d_v in texts:
    shapes = ((X.shape[-1], d) for d in (d_k, d_k, d_v))
    W_q, W_k, W_v = (rng.normal(size=shape) / shape[0] ** 0.5 for shape in shapes)
    expected_output, expected_weights = by_torch(X, W_q, W_k, W_v)
    output, weights = attend(W_q, W_k, W_v, X, X.shape[-1] == 70)
    sizes = " (the layer's sizes in np.int64)" if X.shape[-1] == 70 else ""
    message = (
        f"X of shape {X.shape} ({what}), d_k = {d_k}, d_v = {d_v}{sizes}: the results should be "
        "torch's."
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")
### END HIDDEN TESTS


# %% check="SelfAttention_masks" points=2
# Hidden checks of SelfAttention: masks that broadcast, words that may attend to nothing, no mask.
### BEGIN HIDDEN TESTS
def by_torch(X, W_q, W_k, W_v, mask):
    lead, n = X.shape[:-2], X.shape[-2]
    Q, K, V = (torch.tensor(X @ W) for W in (W_q, W_k, W_v))
    eye = torch.eye(n, dtype=torch.float64).expand(*lead, n, n)
    whole = torch.tensor(mask).expand(*lead, n, n)
    weights = F.scaled_dot_product_attention(Q, K, eye, attn_mask=whole)
    return (weights @ V).numpy(), weights.numpy()


@probe
def attend(W_q, W_k, W_v, X, mask):
    layer = SelfAttention(*W_q.shape, W_v.shape[1], np.random.default_rng(0))
    layer.W_q, layer.W_k, layer.W_v = W_q, W_k, W_v
    return layer.forward(X, mask=mask)


rng = check_rng()
cases = (
    ((), (5,)),
    ((), (5, 5)),
    ((), (5, 1)),
    ((2,), (5, 5)),
    ((2,), (2, 1, 5)),
    ((2, 3), (5,)),
    ((2, 3), (2, 1, 1, 5)),
    ((2, 3), (3, 5, 5)),
    ((2, 3), (2, 3, 5, 5)),
)
for lead, shape in cases:
    X = rng.normal(size=(*lead, 5, 6))
    W_q, W_k, W_v = (rng.normal(size=(6, d)) / 2 for d in (3, 3, 4))
    mask = rng.random(shape) < 0.5
    mask.reshape(-1)[:3] = False, True, False
    expected_output, expected_weights = by_torch(X, W_q, W_k, W_v, mask)
    output, weights = attend(W_q, W_k, W_v, X, mask)
    message = (
        f"X of shape {X.shape} with a mask of shape {shape}: the results should be torch's, "
        f"weights of shape {(*lead, 5, 5)}, 0 where it is False, and each row sums to 1, or to 0 "
        "where nothing is left."
    )
    assert_close(weights, expected_weights, message, name="weights")
    message = (
        f"X of shape {X.shape} with a mask of shape {shape}: the weights are torch's, and the "
        f"output {(*lead, 5, 4)} should be the average of the rows of X @ W_v, with these weights."
    )
    assert_close(output, expected_output, message, name="output")

X = rng.normal(size=(2, 5, 6)) + 1
W_q, W_k, W_v = (rng.normal(size=(6, d)) / 2 for d in (3, 3, 4))
one_row = np.ones((5, 5), dtype=bool)
one_row[2] = False
one_text = np.array([[[True, False, True, True, False]], [[False] * 5]])
for mask in (one_row, one_text, np.zeros((1, 1), dtype=bool)):
    expected_output, expected_weights = by_torch(X, W_q, W_k, W_v, mask)
    output, weights = attend(W_q, W_k, W_v, X, mask)
    message = (
        "A word that may attend to nothing has weights 0 and output 0, never NaN (mask of shape "
        f"{mask.shape}). The other words have torch's results."
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")
one_row[2] = True
one_row[:, 0] = False
for scale in (30.0, 300.0):
    expected_output, expected_weights = by_torch(scale * X, W_q, W_k, W_v, one_row)
    output, weights = attend(W_q, W_k, W_v, scale * X, one_row)
    message = (
        f"Words times {scale:g}, for large scores, and a mask that hides word 0: the results "
        "should be torch's. Check first: does exp overflow?"
    )
    assert_close(weights, expected_weights, message, name="weights", atol=1e-6)
    assert_close(output, expected_output, message, name="output", rtol=1e-6, atol=1e-4)
# Every query of the first text has the scores 1, 2 and 5000, of the second -8001, -8000 and 9000.
words = np.zeros((2, 3, 4))
words[..., 0], words[..., 1] = 2.0, [[1.0, 2.0, 5000.0], [-8001.0, -8000.0, 9000.0]]
exchanged, second = np.zeros((4, 4)), np.diag([0.0, 1.0, 0.0, 0.0])
exchanged[0, 1] = exchanged[1, 0] = 1.0
weights = attend(exchanged, second, np.eye(4), words, np.array([True, True, False]))[1]
message = (
    "The other words share 1 as if a forbidden one were not there, also where scores are "
    "thousands. Check first: does the mask act before the softmax, and does it put there what is "
    "low enough?"
)
expected = np.array([math.exp(-1), 1.0, 0.0]) / (1 + math.exp(-1))
assert_close(weights, np.tile(expected, (2, 3, 1)), message, name="weights")
# The scores of word 0 are -1e15, those of word 1 are 0; nobody may attend to word 1.
words = np.zeros((2, 4))
words[:, 0], words[0, 1] = 2.0, -1e15
weights = attend(exchanged, second, np.eye(4), words, np.array([True, False]))[1]
message = (
    "Two words, of which the first may be attended, with a score of -1e15, and the second, with a "
    "score of 0, may not: the first has all the weight. Check first: is what stands for minus "
    "infinity lower than any number can be?"
)
assert_close(weights, np.array([[1.0, 0.0], [1.0, 0.0]]), message, name="weights")
X = rng.normal(size=(2, 1, 6)) + 1
mask = np.array([[[True]], [[False]]])
expected_output, expected_weights = by_torch(X, W_q, W_k, W_v, mask)
output, weights = attend(W_q, W_k, W_v, X, mask)
message = (
    "Two texts of one word each. The first word may attend to itself: its weight is 1. The second "
    "may attend to nothing: its weight and its output are 0."
)
assert_close(weights, expected_weights, message, name="weights")
assert_close(output, expected_output, message, name="output")
# Sizes that are equal: a mask belongs to the last axes of the weights.
cases = (
    ((5,), (5, 5)),
    ((5,), (5,)),
    ((5,), (5, 1, 5)),
    ((5, 1), (5, 5)),
)
for lead, shape in cases:
    X = rng.normal(size=(*lead, 5, 5))
    W_q, W_k, W_v = (rng.normal(size=(5, 5)) / 2 for _ in range(3))
    mask = rng.random(shape) < 0.5
    mask.reshape(-1)[:3] = False, True, False
    expected_output, expected_weights = by_torch(X, W_q, W_k, W_v, mask)
    output, weights = attend(W_q, W_k, W_v, X, mask)
    message = (
        f"X of shape {X.shape} with a mask of shape {shape}, d_k = d_v = 5: the results should be "
        f"torch's, weights of shape {(*lead, 5, 5)}. The mask's last axis are the words that are "
        "looked at, the one before the words that look, whichever lengths are equal."
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")
# An axis of length 1 in front, masks that hide nothing, a long text, one word in each text.
cases = (
    ((2,), 5, (1, 5, 5), 0.5),
    ((2, 3), 5, (1, 1, 1, 5), 0.5),
    ((2,), 5, (5, 5), 1.0),
    ((3,), 4, (4,), 1.0),
    ((2,), 70, (2, 1, 70), 0.5),
    ((3,), 1, (1, 1), 1.0),
    ((2,), 5, None, 1.0),
)
for lead, n, shape, share in cases:
    X = rng.normal(size=(*lead, n, 33))
    W_q, W_k, W_v = (rng.normal(size=(33, d)) / 6 for d in (3, 3, 5))
    mask = rng.random(shape or (n, n)) < share
    expected_output, expected_weights = by_torch(X, W_q, W_k, W_v, mask)
    output, weights = attend(W_q, W_k, W_v, X, mask if shape else None)
    masked = f"with a mask of shape {shape}, {mask.mean():.0%} of it True"
    message = (
        f"X of shape {X.shape} {masked if shape else 'with mask=None'}: the results should be "
        f"torch's, weights of shape {(*lead, n, n)}."
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")
### END HIDDEN TESTS


# %% check="SelfAttention_dtypes" points=0.5
# Hidden checks of SelfAttention: integer, float32 and float64 word vectors.
### BEGIN HIDDEN TESTS
def by_torch(X, W_q, W_k, W_v, mask=None):
    Q, K, V = (torch.tensor(X @ W) for W in (W_q, W_k, W_v))
    one_hot = torch.eye(X.shape[-2], dtype=torch.float64)
    whole = None if mask is None else torch.tensor(mask)
    weights = F.scaled_dot_product_attention(Q, K, one_hot, attn_mask=whole)
    return (weights @ V).numpy(), weights.numpy()


@probe
def attend(W_q, W_k, W_v, X):
    layer = SelfAttention(*W_q.shape, W_v.shape[1], np.random.default_rng(0))
    layer.W_q, layer.W_k, layer.W_v = W_q, W_k, W_v
    return layer.forward(X)


@probe
def attend_with_mask(W_q, W_k, W_v, X, mask):
    layer = SelfAttention(*W_q.shape, W_v.shape[1], np.random.default_rng(0))
    layer.W_q, layer.W_k, layer.W_v = W_q, W_k, W_v
    try:
        return layer.forward(X, mask), ""
    except NotImplementedError:
        raise
    except Exception as error:
        return (None, None), type(error).__name__


rng = check_rng()
W_q, W_k, W_v = (rng.normal(size=(6, d)) / 4 for d in (3, 3, 4))
mask = np.arange(25).reshape(5, 5) % 3 > 0
mask[1] = False  # the second word may attend to nothing
integers = rng.integers(-3, 4, (5, 6))
precise = {"rtol": 1e-10, "atol": 1e-13, "precise": True}
rough = {"rtol": 1e-4, "atol": 1e-5}
for X, kind, tolerance in (
    (integers, "f4", rough),
    (integers.astype("i4"), "f4", rough),
    (rng.normal(size=(5, 6)), "f8", precise),
    (rng.normal(size=(5, 6)).astype("f4"), "f8", precise),
):
    expected_output, expected_weights = by_torch(X.astype("f8"), W_q, W_k, W_v)
    output, weights = attend(W_q, W_k, W_v, X)
    message = (
        f"X of dtype {X.dtype}, W_q, W_k and W_v in float64: the results should be torch's in "
        "float64, floating, and as precise as the matrices."
    )
    assert_close(weights, expected_weights.astype(kind), message, name="weights", **tolerance)
    assert_close(output, expected_output.astype(kind), message, name="output", **tolerance)
    (output, weights), raised = attend_with_mask(W_q, W_k, W_v, X, mask.copy())
    message = (
        f"X {X.shape} of dtype {X.dtype} with a mask (5, 5): no error should be raised, and your "
        f"code raised {raised}."
    )
    assert_equal(raised, "", message, name="the error's kind")
    expected_output, expected_weights = by_torch(X.astype("f8"), W_q, W_k, W_v, mask)
    message = (
        f"X {X.shape} of dtype {X.dtype}, the matrices in float64, a mask (5, 5) whose second row is "
        "all False: the results should be torch's in float64."
    )
    assert_close(weights, expected_weights.astype(kind), message, name="weights", **tolerance)
    assert_close(output, expected_output.astype(kind), message, name="output", **tolerance)
whole = [rng.integers(-2, 3, shape) for shape in ((6, 3), (6, 3), (6, 4))]
(output, weights), raised = attend_with_mask(*whole, integers, mask.copy())
message = (
    "X of whole numbers, whole numbers in W_q, W_k and W_v, and a mask (5, 5): no error should be "
    f"raised, and your code raised {raised}."
)
assert_equal(raised, "", message, name="the error's kind")
expected = by_torch(integers.astype("f8"), *(matrix.astype("f8") for matrix in whole), mask)
message = (
    "X of whole numbers, whole numbers in W_q, W_k and W_v, and a mask (5, 5) whose second row is "
    "all False: the results should be torch's for the same numbers in float64, floating."
)
assert_close(weights, expected[1].astype("f4"), message, name="weights", **rough)
assert_close(output, expected[0].astype("f4"), message, name="output", **rough)
### END HIDDEN TESTS


# %% check="SelfAttention_inputs" points=0.5
# Hidden checks of SelfAttention: X and the mask are not changed; no call changes a later one.
### SIDE CONDITION: counts once another check of SelfAttention passes.
### BEGIN HIDDEN TESTS
@probe
def called_twice(X, mask, seed):
    layer = SelfAttention(6, 3, 4, np.random.default_rng(seed))
    unmasked = layer.forward(X)
    first = layer.forward(X, mask)
    second = layer.forward(X, mask)
    return first, second, X, mask, unmasked, layer.forward(X)


@probe
def another_mask(X, mask, seed):
    layer = SelfAttention(6, 3, 4, np.random.default_rng(seed))
    W_q = layer.W_q.copy()
    layer.forward(X, mask)
    found = layer.forward(X, ~mask)
    fresh = SelfAttention(6, 3, 4, np.random.default_rng(seed)).forward(X, ~mask)
    other = SelfAttention(6, 3, 4, np.random.default_rng(seed + 1))
    return found, fresh, (W_q, layer.W_q.copy(), other.W_q.copy())


@probe
def one_after_the_other(calls, seed):
    layer = SelfAttention(6, 3, 4, np.random.default_rng(seed))
    fresh = [SelfAttention(6, 3, 4, np.random.default_rng(seed)).forward(*call) for call in calls]
    return [layer.forward(*call) for call in calls], fresh


rng = check_rng()
X, mask = rng.normal(size=(2, 5, 6)), rng.random((5, 5)) < 0.5
mask[1] = False
first, second, X_after, mask_after, unmasked, again = called_twice(
    X.copy(), mask.copy(), int(rng.integers(999))
)
assert_equal(X_after, X, "X was changed by forward.", name="X")
assert_equal(mask_after, mask, "The mask was changed by forward.", name="mask")
for name, one, other in zip(("output", "weights"), first, second, strict=True):
    message = (
        "Two calls with the same X and mask should give the same, without NaN. Check first: does "
        "forward draw or change something?"
    )
    assert_close(other, one, message, name=name, against="in the first call")
message = (
    "Calls without a mask should give the same before and after one with a mask, without NaN. Check "
    "first: is the mask kept?"
)
assert_close(again[0], unmasked[0], message, name="output", against="before the call with a mask")
found, fresh, (W_q, W_q_after, _) = another_mask(X.copy(), mask.copy(), int(rng.integers(999)))
message = (
    "A call with another mask of the same shape should give what a new layer, made from the same "
    "seed, gives for that mask. Check first: is the mask of the first call kept, or does a number "
    "not come from rng?"
)
for name, one, other in zip(("output", "weights"), found, fresh, strict=True):
    assert_close(one, np.asarray(other), message, name=name, against="from a new layer")
message = (
    "forward was called twice, with two masks, and two other layers were made, of which one from "
    "another seed: W_q of the first layer should be as before. Check first: do the matrices belong "
    "to the object, self, or to the class?"
)
assert_close(W_q_after, W_q, message, name="W_q", against="before all that")
longer = rng.normal(size=(3, 7, 6)), rng.random((7, 7)) < 0.6
calls = [(X,), (-X,), (X, mask), longer, longer[:1], (X[:1, :2],)]
calls += [(X.astype(np.float32),), (X,), (X, np.ones((5, 5), dtype=bool)), (X, None)]
found, fresh = one_after_the_other(calls, int(rng.integers(999)))
for call, one, other in zip(calls, found, fresh, strict=True):
    message = (
        f"Calls with other words and other lengths, one after the other, here X {call[0].shape} "
        f"{'with' if call[1:] else 'without'} a mask: each should give what a new layer with the "
        "same matrices gives for it."
    )
    for name, now, alone in zip(("output", "weights"), one, other, strict=True):
        assert_close(now, np.asarray(alone), message, name=name, against="from a new layer")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `forward` has two steps: make three arrays from `X` with the three attributes, then call the
# function of lesson 3. Leading axes need no work: `@` multiplies the last two axes and repeats the
# rest. For the draws, ask `rng` three times: one draw that is used twice is not independent.
#
# </details>
#
# The layer on random word vectors. Its weights are random too: this map is **untrained** and means
# nothing. Look only at what has changed since section 1: on average no word prefers itself.

# %% tags=["demonstration"]
rng = np.random.default_rng(0)
diagonals = []
for _ in range(200):
    layer = SelfAttention(64, 16, 16, rng)
    X = rng.normal(size=(5, 64))  # (n, d_model)
    output, weights = layer.forward(X)  # (5, 16) and (5, 5)
    diagonals.append(np.diagonal(weights).mean())
assert 0.15 < np.mean(diagonals) < 0.25
print(f"weight on itself: {np.mean(diagonals):.2f}   (an even share is 0.20)")

# %% [markdown]
# ### What "the query of a word" is not
#
# Many texts say what a query "means". Be careful. The scores depend on $W_q$ and $W_k$ only through
# one product:
#
# $$(X W_q)(X W_k)^\top = X \, (W_q W_k^\top) \, X^\top .$$
#
# Take any invertible matrix $M$ of size $d_k \times d_k$. The pair $W_q M$ and $W_k (M^{-1})^\top$
# looks different. **Predict, then run:** all queries and keys become other numbers. By how
# much do the weights change? (Put the new pair into the formula, if you like.)

# %% tags=["demonstration", "guess"]
guess_change = 0.1  # write the largest change of a weight

# %% tags=["demonstration"]
rng = np.random.default_rng(5)
layer = SelfAttention(8, 3, 3, rng)
X, M = rng.normal(size=(5, 8)), rng.normal(size=(3, 3))
_, before = layer.forward(X)
first_query = X[0] @ layer.W_q  # (d_k,)
layer.W_q, layer.W_k = layer.W_q @ M, layer.W_k @ np.linalg.inv(M).T
_, after = layer.forward(X)
print("a query before", first_query.round(2), " after", (X[0] @ layer.W_q).round(2))
print("largest change of a weight:", np.abs(after - before).max().round(9))  # rounding only
assert np.abs(after - before).max() < 1e-9

# %% tags=["demonstration"]
came_out = np.abs(after - before).max().round(9)
why = "Only the product of the two matrices is ever used."
reply("guess_change", guess_change, came_out, why)

# %% [markdown]
# So a query alone says nothing; only its products with keys do. Why then two matrices and not one
# of size $d_{model} \times d_{model}$? Two thin ones are cheaper: with $d_{model} = 512$ and
# $d_k = 64$ they have 65,536 numbers instead of 262,144. The price: words are compared in at most
# $d_k$ directions, and not in all $d_{model}$.

# %% [markdown]
# ## 3. The same as an `nn.Module`
#
# NumPy does not learn. In torch a projection is an `nn.Linear`. One trap lies here. `nn.Linear`
# keeps its matrix **transposed**: `weight` has the shape `(d_out, d_in)`, and the layer computes
# $x \cdot \text{weight}^\top$. Our $W$ has the shape `(d_in, d_out)`. When $d_{in} = d_{out}$, a
# copy without the transposition raises no error, and all numbers are wrong.
#
# ### Exercise 2: `TorchSelfAttention`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 10-15 minutes on it.
#
# - `TorchSelfAttention(d_model, d_k, d_v)` is an `nn.Module`. Its parts `W_q`, `W_k`, `W_v` are
#   `nn.Linear` layers **without bias**, from `d_model` features to `d_k`, `d_k` and `d_v`.
# - `forward(X, mask=None)` returns `(output, weights)`; gradients flow through **both**, to `X` and
#   to all three projections. Any number of leading batch axes.
# - Masks, and words that may attend to nothing, as in exercise 1. All gradients stay finite.
# - The conventions of lesson 1 hold: a layer in float64 (`layer.double()`) computes in float64
#   (checked when graded). No errors are graded here. `torch_scaled_dot_product_attention` of lesson
#   3 may be used.


# %% answer="TorchSelfAttention"
class TorchSelfAttention(nn.Module):
    """Self-attention in torch.

    Attributes:
        W_q, W_k: nn.Linear without bias, d_model to d_k.
        W_v: nn.Linear without bias, d_model to d_v.
    """

    def __init__(self, d_model, d_k, d_v):
        """Make the three projections.

        Args:
            d_model: length of a word vector.
            d_k: length of queries and keys.
            d_v: length of values.
        """
        super().__init__()
        ### BEGIN SOLUTION
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)
        ### END SOLUTION

    def forward(self, X, mask=None):
        """Let every word attend to its own text.

        Args:
            X: (..., n, d_model) word vectors.
            mask: boolean, broadcastable to (..., n, n); True = may attend. None masks nothing.

        Returns:
            output (..., n, d_v) and weights (..., n, n); gradients flow through both.
        """
        ### BEGIN SOLUTION
        return torch_scaled_dot_product_attention(self.W_q(X), self.W_k(X), self.W_v(X), mask)
        ### END SOLUTION


# %% check="TorchSelfAttention" points=4
@probe
def what_it_is():
    layer = TorchSelfAttention(6, 3, 2)
    parts = [getattr(layer, name, None) for name in ("W_q", "W_k", "W_v")]
    linear = [isinstance(part, nn.Linear) for part in parts]
    return (
        isinstance(layer, nn.Module),
        ["Linear" if yes else type(part).__name__ for yes, part in zip(linear, parts, strict=True)],
        [tuple(part.weight.shape) for part in parts if isinstance(part, nn.Linear)],
        [part.bias is not None for part in parts if isinstance(part, nn.Linear)],
        len({id(part) for part in parts}),
    )


@probe
def attend(W_q, W_k, W_v, X, mask=None):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = TorchSelfAttention(W_q.shape[1], W_q.shape[0], W_v.shape[0])
        with torch.no_grad():
            layer.W_q.weight.copy_(W_q)
            layer.W_k.weight.copy_(W_k)
            layer.W_v.weight.copy_(W_v)
        return layer(X.clone()) if mask is None else layer(X.clone(), mask.clone())


def compare(both, expected_output, expected_weights, message):
    assert_equal(
        len(both) if isinstance(both, (tuple, list)) else 1,
        2,
        "forward should return two things: the output and the weights.",
        name="the number of results",
    )
    assert_close(both[1], expected_weights, message, name="weights")
    message = (
        "The weights are right; the output should be the average of what W_v gives, with them."
    )
    assert_close(both[0], expected_output, message, name="output")


is_module, kinds, shapes, biases, number = what_it_is()
with check("three projections", points=0.75):
    assert_equal(is_module, True, "TorchSelfAttention should be an nn.Module.")
    message = "W_q, W_k and W_v should be attributes, each an nn.Linear."
    assert_equal(kinds, ["Linear"] * 3, message, name="the kinds of W_q, W_k and W_v")
    message = (
        "W_q, W_k and W_v should lead from 6 features to 3, 3 and 2: their weights have the shapes "
        "(3, 6), (3, 6) and (2, 6). Check first: nn.Linear takes the number of inputs first."
    )
    assert_equal(shapes, [(3, 6), (3, 6), (2, 6)], message, name="the shapes of the weights")
    message = "The projections should have no bias."
    assert_equal(biases, [False] * 3, message, name="whether there is a bias")
    message = (
        "W_q, W_k and W_v should be three layers. Check first: is one of them another one's second "
        "name?"
    )
    assert_equal(number, 3, message, name="the number of layers")

rng = check_rng()
X = torch.tensor(rng.normal(size=(2, 5, 4))).float()
W_q, W_k, W_v = torch.tensor(rng.normal(size=(3, 4, 4))).float()
theirs = nn.MultiheadAttention(4, num_heads=1, bias=False, batch_first=True)
with torch.no_grad():
    theirs.in_proj_weight.copy_(torch.cat([W_q, W_k, W_v]))
    theirs.out_proj.weight.copy_(torch.eye(4))  # a last step that changes nothing here
    expected = theirs(X, X, X)
with check("as torch's layer", points=0.75):
    message = (
        "Two texts of five words, d_model = d_k = 4: the weights should be those of torch's layer. "
        "Check first: do queries come from W_q and keys from W_k, and is the softmax over the last "
        "axis?"
    )
    compare(attend(W_q, W_k, W_v, X), *expected, message)
with check("each text as alone", points=0.5):
    output, weights = attend(W_q, W_k, W_v, X)
    alone = [attend(W_q, W_k, W_v, text) for text in X]
    message = "A text of five words alone has an output of shape (5, 4) and weights of shape (5, 5)."
    shapes = [tuple(np.shape(one)) for one in alone[0]]
    assert_equal(shapes, [(5, 4), (5, 5)], message, name="the shapes of output and weights")
    message = "Two texts, each alone, have outputs that differ, and neither holds NaN."
    assert_equal(bool((alone[0][0] - alone[1][0]).abs().max() > 1e-3), True, message)
    message = "Two texts in one batch should come out as your layer gives each of them alone."
    for place, name, both in ((1, "weights", weights), (0, "output", output)):
        each = torch.stack([one[place] for one in alone])
        assert_close(both, each, message, name=name, against="for each text alone")
with check("a mask: as without the hidden words", points=0.5):
    hides = torch.tensor([True, True, False, True, False])
    output, weights = attend(W_q, W_k, W_v, X[0], hides)
    left = attend(W_q, W_k, W_v, X[0, hides])
    message = (
        "Words 2 and 4 are hidden from all, and may themselves attend to the others: the weights "
        "of each of the five words sum to 1."
    )
    assert_close(weights.sum(dim=-1), torch.ones(5), message, name="the sums of the weights")
    message = (
        "Words 2 and 4 are hidden from all (True = may attend, before the softmax). For the other "
        "words that is as if those two were not there."
    )
    seen, name = weights[hides][:, hides], "weights of words 0, 1 and 3"
    assert_close(seen, left[1], message, name=name, against="without those two words")
    seen, name = output[hides], "output of words 0, 1 and 3"
    assert_close(seen, left[0], message, name=name, against="without those two words")
    assert_equal(bool((weights[:, ~hides] == 0).all()), True, "A hidden word has the weight 0.")
    message = "Three words without a mask: their output is not 0 everywhere, and holds no NaN."
    assert_equal(bool(left[0].abs().max() > 1e-3), True, message)
with check("a word that may attend to nothing", points=0.25):
    nothing = torch.ones(5, 5, dtype=torch.bool)
    nothing[2] = False
    output, weights = attend(W_q, W_k, W_v, X, nothing)
    message = "Word 2 may attend to nothing: its weights and its output are 0, those of others not."
    others = [True, True, False, True, True]
    found = [bool((weights[:, word].abs() > 0).any()) for word in range(5)]
    assert_equal(found, others, message, name="a weight above 0 (NaN is none), word by word")
    found = [bool((output[:, word].abs() > 0).any()) for word in range(5)]
    assert_equal(found, others, message, name="an output above 0 (NaN is none), word by word")
    assert_equal(bool(output.isfinite().all()), True, "No number is NaN or infinite.")
with check("sizes that differ", points=0.25):  # the formula at once, without Q, K and V
    X = torch.tensor(rng.normal(size=(5, 6))).float()
    W_q, W_k, W_v = (torch.tensor(rng.normal(size=(d, 6)) / 2).float() for d in (3, 3, 2))
    scores = torch.einsum("id,kd,ke,je->ij", X, W_q, W_k, X)
    expected_weights = torch.softmax(scores / math.sqrt(3), -1)
    expected_output = torch.einsum("ij,jd,vd->iv", expected_weights, X, W_v)
    message = (
        "A text of five words, d_model = 6, d_k = 3: the weights should be those of the formula. "
        "Check first: is the scale the square root of d_k?"
    )
    compare(attend(W_q, W_k, W_v, X), expected_output, expected_weights, message)


@probe
def gradients_and_slopes(W_q, W_k, W_v, X, mask, of_output, of_weights, step):
    torch.manual_seed(0)
    layer = TorchSelfAttention(W_q.shape[1], W_q.shape[0], W_v.shape[0]).double()
    leaves = [layer.W_q.weight, layer.W_k.weight, layer.W_v.weight, X.clone().requires_grad_()]

    def total():
        output, weights = layer(leaves[3].clone(), None if mask is None else mask.clone())
        return (output * of_output).sum() + (weights * of_weights).sum()

    with torch.no_grad():
        for leaf, value in zip(leaves[:3], (W_q, W_k, W_v), strict=True):
            leaf.copy_(value)
    result = total()
    calls = [result.item(), total().item()]
    if result.requires_grad:
        result.backward()
    slopes = [torch.zeros_like(leaf) for leaf in leaves]
    with torch.no_grad():  # each number a little up and down, by your own layer
        for leaf, slope in zip(leaves, slopes, strict=True):
            for place in range(leaf.numel()):
                old = leaf.view(-1)[place].item()
                leaf.view(-1)[place] = old + step
                above = total()
                leaf.view(-1)[place] = old - step
                slope.view(-1)[place] = (above - total()) / (2 * step)
                leaf.view(-1)[place] = old
    return [leaf.grad for leaf in leaves], [slope.detach() for slope in slopes], calls


shapes = ((3, 6), (3, 6), (2, 6), (4, 6), (4, 2), (4, 4))
given = [torch.tensor(rng.normal(size=shape)) / 2 for shape in shapes]
nothing = torch.ones(4, 4, dtype=torch.bool)
nothing[2], nothing[0, 1] = False, False


def compare_gradients(mask):
    found, slopes, calls = gradients_and_slopes(*given[:4], mask, *given[4:], 1e-5)
    when = "Without a mask" if mask is None else "With a mask that leaves word 2 nothing,"
    message = (
        f"{when} two calls with the same X and weights differ, so that the results have no slope. "
        "Check first: is something random, or kept from a call before?"
    )
    if not np.isnan(calls).all():
        name, first = "a weighted sum of the results", "in the first call"
        assert_close(calls[1], calls[0], message, rtol=1e-9, atol=1e-9, name=name, against=first)
    for name, one, slope in zip(("W_q", "W_k", "W_v", "X"), found, slopes, strict=True):
        message = (
            f"{when} the gradient of {name} should be the slope of your own results: as much as "
            "they change when it is moved a little (NaN has no slope). Check first: is something "
            "detached, NaN or float32 on the way, or is X changed in place?"
        )
        what = f"the gradient of {name}"
        steps = f"by small steps in {name}"
        assert_close(one, slope, message, rtol=1e-5, atol=1e-6, name=what, against=steps)
        message = f"{when} the results should change when {name} is moved a little."
        assert_equal(bool(slope.abs().max() > 1e-4), True, message)


with check("gradients of output and weights: your results' slopes", points=0.5):
    compare_gradients(None)
with check("gradients, a word with nothing to see: your results' slopes", points=0.5):
    compare_gradients(nothing)
checks_passed("TorchSelfAttention")


# %% check="TorchSelfAttention_parameters" points=1.5
# Hidden checks of TorchSelfAttention: three trainable projections of its own; used when called.
### BEGIN HIDDEN TESTS
@probe
def parameters_of(d_model, d_k, d_v):
    layer = TorchSelfAttention(d_model, d_k, d_v)
    names = [name for name, _ in layer.named_parameters(remove_duplicate=False)]
    weights = (layer.W_q.weight, layer.W_k.weight, layer.W_v.weight)
    return names, [w.requires_grad for w in weights], [w.detach().clone() for w in weights]


@probe
def before_and_after(X, changes):
    torch.manual_seed(0)
    layer = TorchSelfAttention(6, 3, 4)
    results = []
    for change in changes:
        layer(X.clone())
        new = TorchSelfAttention(6, 3, 4)
        for one in (layer, new):
            with torch.no_grad():
                one.W_q.weight.copy_(change[0])
                one.W_k.weight.copy_(change[1])
                one.W_v.weight.copy_(change[2])
        results.append((layer(X.clone()), new(X.clone())))
    return results


names, trainable, weights = parameters_of(20, 15, 15)
wanted = ["W_q.weight", "W_k.weight", "W_v.weight"]
message = "W_q, W_k and W_v should be parts of the module, with their weights as parameters."
assert_equal([name for name in wanted if name in names], wanted, message)
message = "All three projections should be trainable."
assert_equal(trainable, [True] * 3, message, name="requires_grad of them")
shapes = [tuple(w.shape) for w in weights]
message = "For d_model = 20 and d_k = d_v = 15 the three weights have shape (15, 20)."
assert_equal(shapes, [(15, 20)] * 3, message, name="the shapes")
for i, j in ((0, 1), (0, 2), (1, 2)):
    message = (
        f"{wanted[i]} and {wanted[j]} should hold other random numbers, and neither NaN. Check "
        "first: has each a layer of its own?"
    )
    assert_equal(bool((weights[i] - weights[j]).abs().max() > 1e-6), True, message)
rng = check_rng()
X = torch.tensor(rng.normal(size=(5, 6)), dtype=torch.float32)
changes = [
    [torch.tensor(rng.normal(size=s) / 2, dtype=torch.float32) for s in ((3, 6), (3, 6), (4, 6))]
    for _ in range(2)
]
results = before_and_after(X, changes)
message = (
    "After new weights are copied into W_q, W_k and W_v, the layer should use them and no other "
    "numbers, such as a bias: as a new layer with these weights does."
)
for (output, weights), (expected_output, expected_weights) in results:
    new = "from a new layer"
    assert_close(weights, expected_weights.detach(), message, name="weights", against=new)
    assert_close(output, expected_output.detach(), message, name="output", against=new)
for place, name in enumerate(("output", "weights")):
    moved = bool((results[0][0][place] - results[1][0][place]).abs().max() > 1e-3)
    assert_equal(moved, True, f"With other weights in W_q, W_k and W_v the {name} should change.")
### END HIDDEN TESTS


# %% check="TorchSelfAttention_batches" points=1
# Hidden checks of TorchSelfAttention: no, one, two and three batch axes; many sizes; both dtypes.
### BEGIN HIDDEN TESTS
@probe
def attend(W_q, W_k, W_v, X, turned=False):
    torch.manual_seed(0)
    layer = TorchSelfAttention(W_q.shape[1], W_q.shape[0], W_v.shape[0]).to(X.dtype)
    with torch.no_grad():
        layer.W_q.weight.copy_(W_q)
        layer.W_k.weight.copy_(W_k)
        layer.W_v.weight.copy_(W_v)
    return layer(X.mT if turned else X)


rng = check_rng()
for lead, n, d_k, d_v in (
    ((), 5, 3, 4),
    ((7,), 5, 3, 4),
    ((2, 7), 5, 3, 4),
    ((2, 1, 3), 4, 8, 5),
    ((), 1, 2, 9),
    ((5,), 5, 2, 7),
):
    precise = {"rtol": 1e-10, "atol": 1e-13, "precise": True}
    for dtype, tolerance in ((torch.float64, precise), (torch.float32, {})):
        X = torch.tensor(rng.normal(size=(*lead, n, 6)), dtype=dtype)
        matrices = [
            torch.tensor(rng.normal(size=(d, 6)) / 2, dtype=dtype) for d in (d_k, d_k, d_v)
        ]
        output, weights = attend(*matrices, X)
        expected_output = torch.empty(*lead, n, d_v, dtype=dtype)
        expected_weights = torch.empty(*lead, n, n, dtype=dtype)
        for place in np.ndindex(*lead):  # each text by itself, by your own layer
            expected_output[place], expected_weights[place] = attend(*matrices, X[place])
        message = (
            f"X of shape {tuple(X.shape)}, d_k = {d_k}, d_v = {d_v}, {dtype}: each text should "
            "have the results that your layer gives it alone, in that dtype and with its digits."
        )
        apart = "for each text alone"
        assert_close(weights, expected_weights, message, name="weights", against=apart, **tolerance)
        assert_close(output, expected_output, message, name="output", against=apart, **tolerance)
        other, _ = attend(*matrices, -2 * X)
        if dtype == torch.float64:
            Q, K, V = (F.linear(X, W) for W in matrices)
            eye = torch.eye(n, dtype=dtype).expand(*lead, n, n)
            exact = F.scaled_dot_product_attention(Q, K, eye)
            message = (
                "A layer in float64: the weights should be torch's to ten digits. Check first: is "
                "something, as the scale, computed or kept in float32?"
            )
            if bool((weights.double() - exact).abs().max() < 1e-5):  # else it is not the digits
                assert_close(weights, exact, message, name="weights, to ten digits", **precise)
        moved = bool((other - expected_output).abs().max() > 1e-3)
        message = "Words times -2 should have another output, and without NaN."
        assert_equal(moved, True, message)
# Leading axes of length 1, sizes of 1, sizes that are equal, a long text; memory in any order.
for lead, n, d_model, d_k, d_v in (
    ((1,), 4, 6, 3, 2),
    ((1, 1), 5, 6, 3, 4),
    ((2, 1), 3, 6, 2, 5),
    ((5,), 5, 5, 5, 5),
    ((3,), 4, 1, 1, 1),
    ((1,), 300, 6, 3, 1),
):
    matrices = [torch.tensor(rng.normal(size=(d, d_model)) / 2) for d in (d_k, d_k, d_v)]
    X = torch.tensor(rng.normal(size=(*lead, n, d_model)))
    output, weights = attend(*matrices, X.mT.contiguous(), True)
    expected_output = torch.empty(*lead, n, d_v, dtype=X.dtype)
    expected_weights = torch.empty(*lead, n, n, dtype=X.dtype)
    for place in np.ndindex(*lead):  # each text by itself, by your own layer
        expected_output[place], expected_weights[place] = attend(*matrices, X[place])
    message = "The rows of the weights of a text alone are not 0, and hold no NaN."
    assert_equal(bool((expected_weights.abs().sum(dim=-1) > 1e-3).all()), True, message)
    message = (
        f"X of shape {tuple(X.shape)}, the transpose of another tensor, d_k = {d_k}, d_v = {d_v}: "
        f"output {(*lead, n, d_v)} and weights {(*lead, n, n)}, each text as your layer gives it "
        "alone. An axis of length 1 is an axis, too."
    )
    apart = "for each text alone"
    assert_close(weights, expected_weights, message, name="weights", against=apart)
    assert_close(output, expected_output, message, name="output", against=apart)
### END HIDDEN TESTS


# %% check="TorchSelfAttention_masks" points=1.5
# Hidden checks of TorchSelfAttention: masks that broadcast or are None; texts of many kinds.
### BEGIN HIDDEN TESTS
@probe
def attend(W_q, W_k, W_v, X, mask):
    torch.manual_seed(0)
    layer = TorchSelfAttention(W_q.shape[1], W_q.shape[0], W_v.shape[0]).double()
    with torch.no_grad():
        layer.W_q.weight.copy_(W_q)
        layer.W_k.weight.copy_(W_k)
        layer.W_v.weight.copy_(W_v)
    try:
        return layer(X, mask=mask)
    except NotImplementedError:
        raise
    except RuntimeError as error:
        return type(error).__name__, None


def by_torch(X, W_q, W_k, W_v, mask):
    lead, n = X.shape[:-2], X.shape[-2]
    Q, K, V = (F.linear(X, W) for W in (W_q, W_k, W_v))
    eye = torch.eye(n, dtype=X.dtype).expand(*lead, n, n)
    whole = mask.expand(*lead, n, n)
    weights = F.scaled_dot_product_attention(Q, K, eye, attn_mask=whole)
    return weights @ V, weights


rng = check_rng()
cases = [
    ((), (5,)),
    ((), (5, 5)),
    ((), (5, 1)),
    ((2,), (5, 5)),
    ((2,), (2, 1, 5)),
    ((2, 3), (5,)),
    ((2, 3), (2, 1, 1, 5)),
    ((2, 3), (3, 5, 5)),
    ((2, 3), (2, 3, 5, 5)),
]
for lead, shape in cases:
    X = torch.tensor(rng.normal(size=(*lead, 5, 6)))
    matrices = [torch.tensor(rng.normal(size=(d, 6)) / 2) for d in (3, 3, 4)]
    mask = rng.random(shape) < 0.5
    mask.reshape(-1)[:3] = False, True, False
    mask = torch.tensor(mask)
    output, weights = attend(*matrices, X, mask)
    message = (
        f"X of shape {tuple(X.shape)} with a mask of shape {shape}, which broadcasts to the "
        f"weights {(*lead, 5, 5)}: no error should be raised. Check first: are batch axes joined "
        "or moved in X, and not in the mask?"
    )
    assert_equal(isinstance(output, str), False, message, name="whether an error is raised")
    expected_output, expected_weights = by_torch(X, *matrices, mask)
    message = (
        f"X of shape {tuple(X.shape)} with a mask of shape {shape}: the results should be torch's, "
        f"weights of shape {(*lead, 5, 5)}, 0 where it is False, and each row sums to 1, or to 0 "
        "where nothing is left."
    )
    assert_close(weights, expected_weights, message, name="weights")
    message = (
        f"X of shape {tuple(X.shape)} with a mask of shape {shape}: the weights are torch's, and "
        f"the output {(*lead, 5, 4)} should be, for each word, the average with these weights of the "
        "rows of X times the weight of W_v, without a bias. The mask says which words are looked at, "
        "not which ones look."
    )
    assert_close(output, expected_output, message, name="output")

X = torch.tensor(rng.normal(size=(2, 5, 6)) + 1)
matrices = [torch.tensor(rng.normal(size=(d, 6)) / 2) for d in (3, 3, 4)]
one_row = torch.ones(5, 5, dtype=torch.bool)
one_row[2] = False
one_text = torch.tensor([[[True, False, True, True, False]], [[False] * 5]])
for mask in (one_row, one_text, torch.zeros(1, 1, dtype=torch.bool)):
    expected_output, expected_weights = by_torch(X, *matrices, mask)
    output, weights = attend(*matrices, X, mask)
    message = (
        "A word that may attend to nothing has weights 0 and output 0, never NaN (mask of shape "
        f"{tuple(mask.shape)}). The other words have torch's results."
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")
# Sizes that are equal: a mask belongs to the last axes of the weights.
cases = [
    ((5,), (5, 5)),
    ((5,), (5,)),
    ((5,), (5, 1, 5)),
    ((5, 1), (5, 5)),
]
for lead, shape in cases:
    X = torch.tensor(rng.normal(size=(*lead, 5, 5)))
    matrices = [torch.tensor(rng.normal(size=(5, 5)) / 2) for _ in range(3)]
    mask = rng.random(shape) < 0.5
    mask.reshape(-1)[:3] = False, True, False
    mask = torch.tensor(mask)
    expected_output, expected_weights = by_torch(X, *matrices, mask)
    output, weights = attend(*matrices, X, mask)
    message = (
        f"X of shape {tuple(X.shape)} with a mask of shape {shape}, d_k = d_v = 5: the results "
        f"should be torch's, weights of shape {(*lead, 5, 5)}. The mask's last axis are the words "
        "that are looked at, the one before the words that look, whichever lengths are equal."
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected_output, message, name="output")
# Masks that hide nothing, and none at all; wide words, long texts; texts with special numbers.
sizes = [
    ((2,), 5, 6, 3, 4, (1, 5, 5)),
    ((2, 3), 5, 6, 3, 4, (1, 1, 1, 5)),
    ((2,), 5, 70, 33, 17, (5, 5)),
    ((), 65, 2, 1, 3, (65,)),
    ((3,), 1, 6, 3, 4, (1, 1)),
    ((1,), 130, 3, 2, 5, None),
    ((2,), 3, 130, 3, 65, None),
    ((2,), 4, 1, 1, 1, None),
]
texts = [("random", rng.normal(size=(*lead, n, d)), *more) for lead, n, d, *more in sizes]
X = rng.normal(size=(2, 5, 6))
twin, empty = X.copy(), X.copy()
twin[:, 2], empty[:, 1] = twin[:, 1], 0.0
special = {
    "words 1 and 2 are equal": twin,
    "word 1 is 0": empty,
    "all words are equal": np.repeat(X[:, :1], 5, axis=1),
    "all negative": -np.abs(X) - 0.1,
    "all positive": np.abs(X) + 0.1,
    "all 0": 0.0 * X,
    "times 60": 60 * X,
    "times 2000": 2000 * X,
}
texts += [(what, one, 3, 4, None) for what, one in special.items()]
for what, words, d_k, d_v, shape in texts:
    X, n = torch.tensor(words), words.shape[-2]
    matrices = [torch.tensor(rng.normal(size=(d, X.shape[-1]))) for d in (d_k, d_k, d_v)]
    matrices = [W / X.shape[-1] ** 0.5 for W in matrices]
    whole = torch.ones(shape or (n, n), dtype=torch.bool)
    if shape in ((1, 5, 5), (1, 1, 1, 5)):
        whole[..., 1] = False
    expected_output, expected_weights = by_torch(X, *matrices, whole)
    output, weights = attend(*matrices, X, whole if shape else None)
    masked = f"a mask of shape {shape}, {'' if whole.all() else 'not '}True everywhere"
    message = (
        f"X of shape {tuple(X.shape)} ({what}), d_k = {d_k}, d_v = {d_v}, "
        f"{masked if shape else 'mask None'}: the results should be torch's."
    )
    close = {"rtol": 1e-6, "atol": 1e-4} if "times" in what else {}
    assert_close(weights, expected_weights, message, name="weights", **close)
    assert_close(output, expected_output, message, name="output", **close)
exchanged, second = torch.zeros(4, 4).double(), torch.zeros(4, 4).double()
exchanged[0, 1] = exchanged[1, 0] = second[1, 1] = 1.0
# The scores of word 0 are -1e15, those of word 1 are 0; nobody may attend to word 1.
words = torch.zeros(2, 4).double()
words[:, 0], words[0, 1] = 2.0, -1e15
weights = attend(exchanged, second, torch.eye(4), words, torch.tensor([True, False]))[1]
message = (
    "Two words, of which the first may be attended, with a score of -1e15, and the second, with a "
    "score of 0, may not: the first has all the weight. Check first: is what stands for minus "
    "infinity lower than any number can be?"
)
assert_close(weights, torch.tensor([[1.0, 0.0]] * 2).double(), message, name="weights")
### END HIDDEN TESTS


# %% check="TorchSelfAttention_gradients" points=1.5
# Hidden checks of TorchSelfAttention: gradients through output and weights, also with empty rows.
### BEGIN HIDDEN TESTS
@probe
def gradients(W_q, W_k, W_v, X, mask, of_output, of_weights):
    torch.manual_seed(0)
    layer = TorchSelfAttention(W_q.shape[1], W_q.shape[0], W_v.shape[0]).double()
    with torch.no_grad():
        layer.W_q.weight.copy_(W_q)
        layer.W_k.weight.copy_(W_k)
        layer.W_v.weight.copy_(W_v)
    X = X.clone().requires_grad_()
    output, weights = layer(X, mask)
    ((output * of_output).sum() + (weights * of_weights).sum()).backward()
    found = (layer.W_q.weight.grad, layer.W_k.weight.grad, layer.W_v.weight.grad, X.grad)
    return [g if g is not None else torch.zeros(1) for g in found]


def gradients_by_torch(W_q, W_k, W_v, X, mask, of_output, of_weights):
    leaves = [x.clone().requires_grad_() for x in (W_q, W_k, W_v, X)]
    W_q, W_k, W_v, X = leaves
    Q, K, V = (F.linear(X, W) for W in (W_q, W_k, W_v))
    whole = None if mask is None else mask.expand(2, 5, 5)
    # The identity, joined to the values, makes torch's function return its weights as well.
    joined = torch.cat([V, torch.eye(5, dtype=V.dtype).expand(2, 5, 5)], dim=-1)
    both = F.scaled_dot_product_attention(Q, K, joined, attn_mask=whole)
    (both * torch.cat([of_output, of_weights], dim=-1)).sum().backward()
    return [x.grad if x.grad is not None else torch.zeros_like(x) for x in leaves]


rng = check_rng()
shapes = ((3, 6), (3, 6), (4, 6), (2, 5, 6), (2, 5, 4), (2, 5, 5))
W_q, W_k, W_v, X, A, B = (torch.tensor(rng.normal(size=s)) for s in shapes)
W_q, W_k = W_q / 2, W_k / 2
some = torch.tensor(rng.random((5, 5)) < 0.6)
some[:, 1] = True
one_row = some.clone()
one_row[2] = False
one_text = torch.tensor([[[True, False, True, True, False]], [[False] * 5]])
nothing = torch.zeros(5, dtype=torch.bool)
for which, out, wei in (("the output", A, 0 * B), ("the weights", 0 * A, B), ("both", A, B)):
    for mask in (None, some, one_row, one_text, nothing):
        got = gradients(W_q, W_k, W_v, X, mask, out, wei)
        wanted = gradients_by_torch(W_q, W_k, W_v, X, mask, out, wei)
        masked = "without a mask" if mask is None else f"with a mask of shape {tuple(mask.shape)}"
        for name, one, other in zip(("W_q", "W_k", "W_v", "X"), got, wanted, strict=True):
            took_no_part = isinstance(one, torch.Tensor) and one.shape == (1,)
            assert_close(
                torch.zeros_like(other) if took_no_part else one,
                other,
                f"The gradient of {name} through {which}, {masked}, should be that of torch's "
                "function, finite also where a word may attend to nothing. Check first: is "
                "something detached?",
                name=f"the gradient of {name}",
            )
### END HIDDEN TESTS


# %% check="TorchSelfAttention_inputs" points=0.5
# Hidden checks of TorchSelfAttention: a call changes no argument, no weight and no later call.
### SIDE CONDITION: counts once another check of TorchSelfAttention passes.
### BEGIN HIDDEN TESTS
@probe
def called_twice(X, mask):
    torch.manual_seed(0)
    layer = TorchSelfAttention(6, 3, 4)
    kept = [p.detach().clone() for p in layer.parameters()]
    unmasked = layer(X)
    first = layer(X, mask)
    second = layer(X, mask)
    kept_after = [p.detach().clone() for p in layer.parameters()]
    return first, second, X, mask, kept, kept_after, unmasked, layer(X)


@probe
def further_calls(X, mask):
    torch.manual_seed(0)
    layer = TorchSelfAttention(6, 3, 4)
    new = TorchSelfAttention(6, 3, 4)
    new.load_state_dict(layer.state_dict())
    layer(X, mask)
    pairs = {"after a call with other masks": (layer(X, ~mask), new(X, ~mask))}
    layer.eval()
    pairs["after eval(), which changes nothing here"] = layer(X, ~mask), new(X, ~mask)
    flow = [one.requires_grad for one in layer(X, mask)]
    shorter, longer = X[:, :3], torch.cat([X, -2 * X], dim=-2)
    pairs["after calls with more words"] = layer(shorter), new(shorter)
    pairs["after calls with fewer words"] = layer(longer), new(longer)
    with torch.no_grad():
        layer(longer, torch.ones(10, dtype=torch.bool))
        for part in (layer.W_q, layer.W_k, layer.W_v):
            part.weight.mul_(-1.5)
    other = TorchSelfAttention(6, 3, 4)
    other.load_state_dict(layer.state_dict())
    pairs["after its weights were changed in place"] = layer(X, mask), other(X, mask)
    layer.double()
    newest = TorchSelfAttention(6, 3, 4).double()
    newest.load_state_dict(layer.state_dict())
    pairs["after double()"] = layer(X.double(), mask), newest(X.double(), mask)
    recording = torch.is_grad_enabled()
    return pairs, [*flow, recording, *(one.requires_grad for one in layer(X.double(), mask))]


rng = check_rng()
X = torch.tensor(rng.normal(size=(2, 5, 6)), dtype=torch.float32)
mask = torch.tensor(rng.random((5, 5)) < 0.5)
mask[1] = False
result = called_twice(X.clone(), mask.clone())
first, second, X_after, mask_after, kept, kept_after, unmasked, again = result
assert_equal(X_after, X, "X was changed by forward.", name="X")
assert_equal(mask_after, mask, "The mask was changed by forward.", name="mask")
message = "The weights of the layer were changed by forward."
assert_equal(kept_after, kept, message, name="the weights", against="before the calls")
for name, one, other in zip(("output", "weights"), first, second, strict=True):
    message = (
        "Two calls with the same X and mask should give the same, without NaN. Check first: does "
        "forward draw or change something?"
    )
    assert_close(other, one.detach(), message, name=name, against="in the first call")
message = (
    "Calls without a mask should give the same before and after one with a mask, without NaN. Check "
    "first: is the mask kept?"
)
before = "before the call with a mask"
assert_close(again[0], unmasked[0].detach(), message, name="output", against=before)
pairs, flow = further_calls(X.clone(), mask.clone())
for when, (found, fresh) in pairs.items():
    message = (
        f"A layer {when} should give what a new layer with the same weights gives for that X and "
        "mask."
    )
    for name, one, other in zip(("output", "weights"), found, fresh, strict=True):
        assert_close(one, other.detach(), message, name=name, against="from a new layer")
message = "After eval(), too, gradients flow through output and weights: both require a gradient."
assert_equal(flow[:2], [True, True], message, name="whether they require one")
message = (
    "Also after calls under no_grad: torch records gradients as before the call, and output and "
    "weights require one."
)
assert_equal(flow[2:], [True] * 3, message, name="whether it records, and they require one")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `nn.Linear(a, b)` maps `a` features to `b`, on the last axis, whatever stands before it. It has an
# argument that switches the bias off. `forward` is as short as that of exercise 1, with the torch
# function of lesson 3.
#
# </details>
#
# Are the two classes equal? We copy NumPy's matrices into torch. First wrongly, without `.T`. All
# sizes are 8 here, so torch does not complain.

# %% tags=["demonstration"]
rng = np.random.default_rng(1)
numpy_layer = SelfAttention(8, 8, 8, rng)
X = rng.normal(size=(3, 5, 8))  # (batch, n, d_model)
numpy_output, numpy_weights = numpy_layer.forward(X)
torch_layer = TorchSelfAttention(8, 8, 8).double()
for copy_name, turn in (("without .T", lambda W: W), ("with .T", lambda W: W.T)):
    with torch.no_grad():
        for part in ("W_q", "W_k", "W_v"):
            getattr(torch_layer, part).weight.copy_(torch.tensor(turn(getattr(numpy_layer, part))))
        torch_output, torch_weights = torch_layer(torch.tensor(X))
    difference = np.abs(torch_output.numpy() - numpy_output).max()
    print(f"{copy_name:11s} rows sum to {torch_weights.sum(-1).mean():.3f}, ", end="")
    print(f"output std {torch_output.std():.2f}, largest difference {difference:.6f}")
assert difference < 1e-12

# %% [markdown]
# Shapes, row sums and the size of the numbers look equally healthy in both lines. Only the
# comparison with a second implementation shows the mistake. Choose $d_{model} \ne d_k$ in tests,
# and torch complains by itself.

# %% [markdown]
# ## 4. Why not one projection less?
#
# Lesson 2 proved that one set of vectors for queries and keys cannot look around a circle. Now in a
# layer: suppose that queries and keys **share** one projection, $W_k = W_q$. It would save a third
# of the numbers. How much of the damage is the circle?
#
# Two tasks to find out. A text has five words, drawn at random from 20; each word must name the word
# *before* it. In the **ring** word 0 must name the last word. In the **row** word 0 names itself:
# the only difference is one word of five. To make this possible, the layer must know the places. So
# we add to each word vector a **position vector**, one for each of the five places. Here both are
# fixed random vectors; lesson 7 is about better ones.
#
# ### Short answer 1: `answer_shared`
#
# With a shared projection the score of word $i$ with word $j$ is $x_i W_q W_q^\top x_j^\top$. What about
# the row, can it be learned so?
#
# - a) It cannot be learned: the scores are symmetric, so each word looks as much at the next
#   word as at the one before it.
# - b) It can be learned: the score of neighbours may get smaller from place to place.
# - c) It cannot be learned: each word must give its largest weight to itself.
# - d) Word 0 can be learned, the four others cannot.

# %% answer="answer_shared"
### BEGIN SOLUTION
answer_shared = "b"
### END SOLUTION

# %% check="answer_shared" points=1
check_answer("answer_shared", answer_shared)

# %% [markdown]
# **Predict, then run.** Three seeds each: three projections on the ring, $W_k = W_q$ on the ring,
# $W_k = W_q$ on the row. The cell prints the share of words whose predecessor was named correctly.
# Guessing gives 0.05.

# %% tags=["demonstration", "guess"]
guess_named = (0.9, 0.5, 0.5)  # write (three projections, shared on the ring, shared on the row)

# %% tags=["demonstration"]
twenty_words = (
    "the black cat is sleeping a white dog was eating one old horse and two new birds sang in it"
)
VOCABULARY = twenty_words.split()
N_WORDS, D_MODEL, D_K = 5, 32, 16
TARGETS = {  # which word each of the five should name
    "previous, in a ring": lambda ids: ids.roll(1, -1),
    "previous, in a row": lambda ids: torch.cat([ids[:, :1], ids[:, :-1]], -1),
    "itself": lambda ids: ids,
    "the first word": lambda ids: ids[:, :1].expand_as(ids),
}


def wanted_words(task, ids):
    """What each place should give, one-hot or a mean of one-hots: (batch, n, 20)."""
    if task == "all words evenly":
        return F.one_hot(ids, 20).float().mean(-2, keepdim=True).expand(-1, N_WORDS, -1)
    return F.one_hot(TARGETS[task](ids), 20).float()


def random_texts(number, generator):
    """Texts of five different words: (number, 5)."""
    return torch.rand(number, 20, generator=generator).argsort(-1)[:, :N_WORDS]


def train_pattern(task, seed, share=lambda layer: None, steps=400):
    """Train one layer on a task; returns layer, word vectors, positions, loss and accuracy."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    table, places = torch.randn(20, D_MODEL), torch.randn(N_WORDS, D_MODEL)
    layer = TorchSelfAttention(D_MODEL, D_K, 20)  # d_v = 20: one feature a word
    share(layer)
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
    for _ in range(steps):
        ids = random_texts(64, generator)
        output, _ = layer(table[ids] + places)  # (64, 5, 20)
        loss = (output - wanted_words(task, ids)).square().sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        ids = random_texts(500, generator)
        output, _ = layer(table[ids] + places)
        wanted = wanted_words(task, ids)
        accuracy = (output.argmax(-1) == wanted.argmax(-1)).float().mean().item()
        return layer, table, places, (output - wanted).square().sum(-1).mean().item(), accuracy


# %% tags=["demonstration", "nbval-ignore-output"]
# Printed numbers come from training: they may differ in the last digit on another machine.
def one_projection(layer):
    """Queries and keys share one projection."""
    layer.W_k = layer.W_q


RING, ROW = "previous, in a ring", "previous, in a row"
SHARED_RING, SHARED_ROW = "W_k = W_q, ring", "W_k = W_q, row"
changes = {
    "three projections, ring": (RING, lambda layer: None),
    SHARED_RING: (RING, one_projection),
    SHARED_ROW: (ROW, one_projection),
}
ring_runs = {name: [] for name in changes}
for run in progress(9, "nine layers"):
    name = list(changes)[run // 3]
    task, share = changes[name]
    ring_runs[name].append(train_pattern(task, run % 3, share))
for name, trained in ring_runs.items():
    print(f"{name:24s} accuracy", *(f"{accuracy:.2f}" for *_, accuracy in trained))
assert min(accuracy for *_, accuracy in ring_runs["three projections, ring"]) > 0.97
assert max(accuracy for *_, accuracy in ring_runs[SHARED_RING]) < 0.4
assert min(accuracy for *_, accuracy in ring_runs[SHARED_ROW]) > 0.9

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
came_out = tuple(np.mean([accuracy for *_, accuracy in trained]) for trained in ring_runs.values())
reply("guess_named", guess_named, came_out, "One word more or less decides.", within=0.15)

# %% [markdown]
# One word more or less decides. The maps of seed 0 on "the black cat is sleeping" tell how.


# %% tags=["demonstration", "nbval-ignore-output"]
# The weights come from training: they may differ in the last digit on another machine.
def map_of(trained, text=("the", "black", "cat", "is", "sleeping")):
    """Weights of a trained layer on a text: (5, 5)."""
    layer, table, places, *_ = trained
    with torch.no_grad():
        return layer(table[[VOCABULARY.index(word) for word in text]] + places)[1].numpy()


figure, panels = plt.subplots(1, 3, figsize=(13.2, 3.9))
ring_maps = {name: map_of(trained[0]) for name, trained in ring_runs.items()}
for axes, (name, weights) in zip(panels, ring_maps.items()):
    draw_heatmap(axes, weights, words, words)
    axes.set_title(name)
figure.tight_layout()
before_me, after_me = [4, 0, 1, 2, 3], [1, 2, 3, 4, 0]
for seed in range(3):
    assert map_of(ring_runs["three projections, ring"][seed])[range(5), before_me].min() > 0.9
    assert map_of(ring_runs[SHARED_RING][seed]).max() < 0.5
    assert (map_of(ring_runs[SHARED_ROW][seed]).argmax(axis=1) == [0, 0, 1, 2, 3]).all()
middle = ring_maps[SHARED_RING]
assert np.abs(middle[range(5), before_me] - middle[range(5), after_me]).max() < 0.05
assert 0.1 < middle.min() < middle.max() < 0.3 and (middle.argmax(axis=1) == np.arange(5)).all()
show(
    figure,
    "Figure 1. Left: with three projections every word finds the word before it, and 'the' finds "
    "'sleeping'. Middle: with a shared projection, in the ring, a word gives the word before it and "
    "the word after it the same weight (about 0.2): around a ring, symmetric scores cannot always prefer "
    "the word before. Right: the same shared "
    "projection, in the row. Each word finds the word before it, although the scores are symmetric.",
    "Three heat maps, five words by five words. Left: weight above 0.9 just left of the diagonal "
    "and in the upper right corner. Middle: all weights between 0.1 and 0.3. Right: the largest "
    "weight of each row is just left of the diagonal, that of the first row on the diagonal.",
    "\n\n".join(f"{name}\n\n{text_table(w, words, words)}" for name, w in ring_maps.items()),
)

# %% [markdown]
# Why? Call the scores $s_{ij}$; a shared projection makes $s_{ij} = s_{ji}$. To prefer the word
# before it, word $i$ needs $s_{i,i-1} > s_{i,i+1} = s_{i+1,i}$: the score of neighbours must get
# smaller at every step. In the row it can. Around the ring it would have to be smaller than itself.
# So say: **symmetric scores rule out circles of three words or more**. With one shared projection
# two words cannot prefer each other either: the longer of their two queries scores itself higher.
# So the word with the longest query can prefer nobody else. In the row that is word 0.
#
# On the ring the shared layer can even be *below* guessing. The largest weight in the middle map is
# each word's own (about 0.26), so the layer mostly names the word itself, and that is never right.
#
# And the values? If $W_v$ were the key projection, a word could only *give* the features by which
# it is *found*. A noun should be found as "an animal", and give "cat".

# %% [markdown]
# ## 5. One sentence followed through
#
# Back to the question of section 1. We make sentences of one frame:
#
# > the **animal** didn't cross the **street** because it was too **tired**
#
# There are 8 animals, 8 places, and 8 adjectives: four that fit an animal (tired, scared, hungry,
# ill) and four that fit a place (wide, steep, icy, flooded). That makes 512 sentences. Nobody gives
# the model a list of animals or places; it is told the right noun of each training sentence.
#
# Each word has a fixed random vector. The task: in *one* row, the output must become the vector of
# the right noun. The loss is the squared distance. A quarter of the pairs (animal, place) is **held
# out**: the model never sees them in training. There are no position vectors here.

# %% tags=["demonstration"]
ANIMALS = ["animal", "dog", "horse", "cat", "cow", "mouse", "turtle", "bee"]
PLACES = ["bridge", "field", "path", "garden", "street", "road", "river", "square"]
ADJECTIVES = ["tired", "scared", "hungry", "ill", "wide", "steep", "icy", "flooded"]
FRAME = ["the", "didn't", "cross", "because", "it", "was", "too"]
ALL_WORDS = FRAME + ANIMALS + PLACES + ADJECTIVES
IT, LAST = 7, 10  # the rows of "it" and of the adjective


def sentence(animal, place, adjective):
    """The eleven words of one sentence."""
    return f"the {animal} didn't cross the {place} because it was too {adjective}".split()


def ids_of(text):
    """The numbers of the words of a text: (n,)."""
    return torch.tensor([ALL_WORDS.index(word) for word in text])


facts = [(a, s, j) for a in range(8) for s in range(8) for j in range(8)]
sentences = torch.stack(  # (512, 11)
    [ids_of(sentence(ANIMALS[a], PLACES[s], ADJECTIVES[j])) for a, s, j in facts]
)
right_place = torch.tensor([1 if j < 4 else 5 for _, _, j in facts])  # where the right noun stands
right_noun = sentences[torch.arange(512), right_place]  # (512,)
held_out = torch.tensor([(a + s) % 4 == 0 for a, s, _ in facts])
print(sentences.shape, " held out:", int(held_out.sum()))
print(" ".join(sentence("animal", "street", "wide")))

# %% [markdown]
# The model is one layer, or two. With two layers, the second gets $X$ plus the output of the
# first. (This sum is a *residual connection*; lesson 8 returns to it.)


# %% tags=["demonstration"]
def follow(layers, X):
    """Output of the last layer and the weights of each: every layer but the last adds to X."""
    maps = []
    for layer in layers[:-1]:
        change, weights = layer(X)
        X = X + change  # (batch, n, d_model)
        maps.append(weights)
    output, weights = layers[-1](X)
    return output, [*maps, weights]


def train_reader(row, seed, depth=1, steps=400):
    """Train `depth` layers so that one row of the output becomes the right noun's vector."""
    torch.manual_seed(seed)
    table = torch.randn(len(ALL_WORDS), 32)  # fixed word vectors, d_model = 32
    layers = nn.ModuleList(TorchSelfAttention(32, 16, 32) for _ in range(depth))
    # AdamW is Adam that also shrinks all weights a little at each step: less is learned by heart.
    optimizer = torch.optim.AdamW(layers.parameters(), lr=5e-3, weight_decay=0.5)
    known = torch.nonzero(~held_out)[:, 0]
    for _ in range(steps):
        batch = known[torch.randint(len(known), (64,))]
        output, _ = follow(layers, table[sentences[batch]])  # (64, 11, 32)
        loss = (output[:, row] - table[right_noun[batch]]).square().sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layers, table


def test_reader(layers, table, row):
    """Squared error and accuracy (nearest noun) on held-out sentences, and all maps."""
    nouns = ids_of(ANIMALS + PLACES)
    with torch.no_grad():
        output, maps = follow(layers, table[sentences])
    error = (output[:, row] - table[right_noun]).square().sum(-1)[held_out].mean().item()
    named = nouns[torch.cdist(output[:, row], table[nouns]).argmin(-1)]
    accuracy = (named == right_noun)[held_out].float().mean().item()
    return error, accuracy, [weights[:, row] for weights in maps]  # each (512, 11)


# %% [markdown]
# First, one layer, and the row of the **adjective** is trained: "tired" must find out who was
# tired. The layer is compared with itself before training.

# %% tags=["demonstration", "nbval-ignore-output"]
# Printed numbers come from training: they may differ in the last digit on another machine.
by_adjective = []
for seed in progress(3, "the adjective looks"):
    by_adjective.append(train_reader(LAST, seed))
untrained = train_reader(LAST, 0, steps=0)
for name, (layers, table) in zip(("untrained", *["trained"] * 3), (untrained, *by_adjective)):
    error, accuracy, (weights,) = test_reader(layers, table, LAST)
    on_right = weights.gather(1, right_place[:, None])[held_out].mean().item()
    print(f"{name:10s} error {error:6.2f}  accuracy {accuracy:.2f}  right noun {on_right:.2f}")
    assert (accuracy > 0.97 and error < 1 and on_right > 0.7) == (name == "trained")

# %% tags=["demonstration", "nbval-ignore-output"]
# The weights come from training: they may differ in the last digit on another machine.
pair = torch.stack([ids_of(sentence("animal", "street", word)) for word in ("tired", "wide")])
labels = [*sentence("animal", "street", "tired/wide")]
rows, names = [], []
for name, (layers, table) in (("untrained", untrained), ("trained", by_adjective[0])):
    with torch.no_grad():
        _, (weights,) = follow(layers, table[pair])  # (2, 11, 11)
    rows += list(weights[:, LAST].numpy())
    names += [f"tired, {name}", f"wide, {name}"]
for layers, table in by_adjective:
    with torch.no_grad():
        _, (weights,) = follow(layers, table[pair])
    assert weights[0, LAST, 1] > 0.8 and weights[1, LAST, 5] > 0.8
assert max(row.max() for row in rows[:2]) < 0.3  # untrained
heatmap(
    np.array(rows),
    names,
    labels,
    caption="Figure 2. After training, 'tired' looks at the animal and 'wide' looks at the "
    "street, in sentences that are otherwise the same. This row was trained to find the noun; "
    "before training its weights mean nothing. What it has learned is which of 8 adjectives goes "
    "with which of 16 nouns.",
    alt="Heat map with four rows over the eleven words. Untrained tired and untrained wide: "
    "weights scattered over many words. Trained tired: above 0.8 on animal. Trained wide: above "
    "0.8 on street.",
    row_label="query",
)

# %% [markdown]
# The pair (animal, street) was held out: the layer has never seen the two nouns together. It has
# not learned sentences by heart. It has learned what each adjective looks for.
#
# Is the map then the explanation? All 128 held-out sentences are answered correctly. **Predict,
# then run:** are there nouns that get hardly any weight when they are the right ones?

# %% tags=["demonstration", "nbval-ignore-output"]
# Which nouns they are depends on training: they may be others on another machine.
nouns = ids_of(ANIMALS + PLACES)
for seed, (layers, table) in enumerate(by_adjective):
    _, _, (weights,) = test_reader(layers, table, LAST)
    on_right = weights.gather(1, right_place[:, None])[:, 0]  # (512,)
    by_noun = torch.stack([on_right[right_noun == noun].mean() for noun in nouns])  # (16,)
    assert by_noun.min() < 0.3
    for missing in nouns[by_noun < 0.3]:
        rows = weights[right_noun == missing]  # (32, 11)
        instead = sentences[0, rows.mean(0).argmax()]  # the word that gets most of the weight
        with torch.no_grad():
            value = layers[0].W_v(table[instead])  # (d_model,)
        given = nouns[torch.cdist(value[None], table[nouns]).argmin()]
        share = on_right[right_noun == missing].mean()
        print(f"seed {seed}: '{ALL_WORDS[missing]}' gets {share:.2f}; most goes to ", end="")
        print(f"'{ALL_WORDS[instead]}', and its value is near '{ALL_WORDS[given]}'")
        assert given == missing

# %% [markdown]
# One or two nouns are not looked at, and the answer is still right. A row sums to 1, so the weight
# must go *somewhere* when no other noun is found. It goes to a word that stands in every sentence,
# and training has made the **value** of that word the missing noun: an answer by default. (Two
# defaults fit too: one when no animal is found, one when no place is.) The map does not show it. A
# map is one half of the computation; the other half, $W_v$, is not in the picture.
#
# ### The surprise: can "it" do the same?
#
# The famous picture of this sentence shows the row of **"it"**. So train the row of "it" instead,
# with the same single layer.
#
# ### Short answer 2: `answer_it`
#
# Take the two sentences with "animal" and "street" that end in "tired" and in "wide". What must be
# the same in both, whatever the layer has learned? Think of the query of "it": what is it made
# from?
#
# - a) Nothing: "it" can look at the animal in one sentence, and at the street in the other.
# - b) The ratio of the weights that "it" gives to "animal" and to "street".
# - c) Each of these two weights by itself.
# - d) The whole output in the row of "it".

# %% answer="answer_it"
### BEGIN SOLUTION
answer_it = "b"
### END SOLUTION

# %% check="answer_it" points=1
check_answer("answer_it", answer_it)

# %% tags=["demonstration", "nbval-ignore-output"]
# Printed numbers come from training: they may differ in the last digit on another machine.
by_it = []
for seed in progress(3, "it looks, one layer"):
    by_it.append(train_reader(IT, seed))
for layers, table in by_it:
    error, accuracy, _ = test_reader(layers, table, IT)
    with torch.no_grad():
        _, (weights,) = follow(layers, table[pair])
    to_animal, to_street = weights[:, IT, 1], weights[:, IT, 5]  # (2,): tired, wide
    ratio = (to_animal / to_street).tolist()
    print(f"error {error:4.1f}  accuracy {accuracy:.2f}  animal : street  ", end="")
    print(f"tired {ratio[0]:.4f}  wide {ratio[1]:.4f}")
    assert error > 5 and 0.5 < accuracy < 0.8 and abs(ratio[0] / ratio[1] - 1) < 1e-3

# %% [markdown]
# "it" does not look at the right noun, and it cannot. The word vector of "it" is the same in both
# sentences, so its query is the same. The keys of "animal" and "street" are the same too. So the
# two scores are the same, and
#
# $$\frac{w_{\text{it, animal}}}{w_{\text{it, street}}} =
# e^{\,s_{\text{it, animal}} - s_{\text{it, street}}}$$
#
# does not depend on the adjective. The adjective can only take weight away from both. **In one
# layer, the ratio of the weights on two words depends on these two words and on the query's own
# word, and on nothing else in the text.** (That holds for any trained numbers, as long as no
# positions are added to the words. It is a property of the formula.)
#
# Why is the accuracy above 0.5, then? The adjective gives a *value* too, and that can move the
# output towards all animals or all places. One layer may so *name* the right noun, but it cannot
# look at it, and cannot give exactly its vector.
#
# For that, "it" must first learn what kind of thing was "too ...", and then look for the noun. We give it a second
# layer. **Predict, then run:** will you see "it" look at the right noun there?

# %% tags=["demonstration", "nbval-ignore-output"]
# Printed numbers come from training: they may differ in the last digit on another machine.
by_two = []
for seed in progress(3, "it looks, two layers"):
    by_two.append(train_reader(IT, seed, depth=2))
shares = []
for layers, table in by_two:
    error, accuracy, (_, second) = test_reader(layers, table, IT)
    shares.append(second.gather(1, right_place[:, None])[held_out].mean().item())
    print(f"error {error:5.2f}   accuracy {accuracy:.2f}   on the right noun {shares[-1]:.2f}")
    assert error < 2 and accuracy > 0.95

# %% tags=["demonstration", "nbval-ignore-output"]
# The weights come from training: after two layers whole rows may differ on another machine.
rows, names = [], []
for seed, (layers, table) in enumerate(by_two):
    with torch.no_grad():
        _, (_, second) = follow(layers, table[pair])
    rows += list(second[:, IT].numpy())
    names += [f"it (tired), seed {seed}", f"it (wide), seed {seed}"]
on_right = [row[place] for row, place in zip(rows, (1, 5) * 3)]
assert min(shares) < 0.9  # solved in all three, but not by looking at the noun in all three
assert min(on_right) < 0.3 and max(on_right) > 0.7  # the maps differ, the answers do not
assert len({row.argmax() in (1, 5) for row in rows}) == 2
heatmap(
    np.array(rows),
    names,
    labels,
    caption="Figure 3. The row of 'it' in the second layer, for three models that all solve the "
    "task. The maps differ from seed to seed, and many weights do not lie on the right noun. Do "
    "not conclude from such a map which noun the model has found: after one layer, a place no "
    "longer holds only its own word.",
    alt="Heat map, six rows over the eleven words: for seeds 0, 1 and 2 the row of it in the "
    "tired and in the wide sentence. The largest weight lies on a noun in some rows and on "
    "another word in others.",
)

# %% [markdown]
# All three models are right, and their maps disagree. In the first layer *every* word has looked
# around. The adjective may already have fetched its noun. Then "it" can look at the adjective and
# receives the noun from there. **From the second layer on, a column of a map is a place, not a
# word.** An attention map shows from where a layer reads. It does not show what is written there.

# %% [markdown]
# ## 6. Does the order matter?
#
# ### Short answer 3: `answer_order`
#
# A layer without position vectors (and without a mask) reads "the cat sees the dog", and then "the
# dog sees the cat". What about its output in the row of the word "cat"?
#
# - a) It is different: in one sentence the cat sees, in the other it is seen.
# - b) It is the same vector, at another place in the output.
# - c) It is the same vector, at the same place in the output.
# - d) It is the same vector as in all other rows of the output.

# %% answer="answer_order"
### BEGIN SOLUTION
answer_order = "b"
### END SOLUTION

# %% check="answer_order" points=1
check_answer("answer_order", answer_order)

# %% [markdown]
# Nothing in the formula uses the number of a position. Exchange two words, and each word still sees
# the same *set* of words. Two words describe what may happen when the input is **permuted** (put
# into another order), and they are often confused:
#
# | property | meaning | example |
# |---|---|---|
# | **invariant** | permute the input: the output stays *the same* | the mean of all rows |
# | **equivariant** | permute the input: the output is permuted *in the same way* | self-attention |
#
# With rows: let $P$ be a permutation matrix, so that $PX$ has the rows of $X$ in another order.
# Invariant means $f(PX) = f(X)$. Equivariant means $f(PX) = P f(X)$. You read *"self-attention is
# permutation invariant"* in many places. It is not, and this section shows it.
#
# ### Exercise 3: `permutation_error`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 10 minutes on it.
#
# How far is a layer from equivariant? Go two ways, "permute, then attend" and "attend, then
# permute", and compare the two outputs.
#
# - `attention`: any callable; `attention(X)` returns `(output, weights)`, NumPy arrays. Only the
#   outputs are compared.
# - `X (..., n, d)`: any number of leading batch axes. `permutation`: a list or a 1-D integer array
#   of length `n`. Permuting means taking the rows in the order of `permutation`:
#   `X[..., permutation, :]`.
# - Returns one `float`: the **largest absolute difference** between the two outputs.
# - The conventions of lesson 1 hold: `X` and `permutation` are not changed, also when `attention`
#   returns its own input (checked when graded). No errors are graded here.


# %% answer="permutation_error"
def permutation_error(attention, X, permutation):
    """How far a layer is from permutation equivariance.

    Args:
        attention: callable; attention(X) returns (output, weights).
        X: (..., n, d) input.
        permutation: list or 1-D integer array (n,), the new order of the rows.

    Returns:
        One float: the largest absolute difference between "permute, then attend" and
        "attend, then permute". Only outputs are compared.
    """
    ### BEGIN SOLUTION
    permuted_first = attention(X[..., permutation, :])[0]
    permuted_last = attention(X)[0][..., permutation, :]
    return float(abs(permuted_first - permuted_last).max())
    ### END SOLUTION


# %% check="permutation_error" points=3
@probe
def error_of(kind, X, permutation):
    def attention(X):
        n = X.shape[-2]
        weights = np.full((n, n), 1 / n)  # not compared
        if kind == "columns":  # column c times c + 1
            return X * np.arange(1, X.shape[-1] + 1), weights
        if kind == "rows":  # adds 0 to the first row, 1 to the second, ...
            return X + np.arange(n)[:, None], weights
        if kind == "rows, a little":
            return X + 1e-8 * np.arange(n)[:, None], weights
        return scaled_dot_product_attention(X, X, X)

    return permutation_error(attention, X.copy(), permutation)


X = check_rng().normal(size=(4, 3))
with check("a layer that knows the order", points=1.25):
    for order, moves in (([1, 2, 3, 0], "-1, -1, -1, 3"), ([3, 0, 1, 2], "-3, 1, 1, 1")):
        message = (
            f"This layer adds 0, 1, 2, 3 to the rows. With the permutation {order} the two outputs "
            f"differ by {moves} in their rows: the largest absolute difference is 3."
        )
        assert_close(error_of("rows", X, order), 3.0, message)
with check("a layer's steps times 1e-8: its error times 1e-8", points=0.25):
    message = (
        "A layer that adds 0, 1e-8, 2e-8, 3e-8 to the rows has the error that your function gives "
        "for 0, 1, 2, 3, times 1e-8."
    )
    large, small = (error_of(kind, X, [1, 2, 3, 0]) for kind in ("rows", "rows, a little"))
    assert_close(1e8 * small, large, message, name="1e8 times the result", against="for 0, 1, 2, 3")
    message = "A layer that adds 0, 1, 2, 3 to the rows has an error above 0."
    assert_equal(bool(large > 1e-3), True, message)
with check("two equal texts: the error of one alone", points=0.5):
    message = (
        "A batch of two equal texts should have the error that your function gives for one of "
        "them: the rows of each text are permuted, not the texts."
    )
    for order in ([1, 2, 3, 0], np.array([3, 0, 1, 2])):
        alone, both = error_of("rows", X, order), error_of("rows", np.stack([X, X]), order)
        assert_close(both, float(alone), message, against="for one text alone")
        known = "A layer that adds 0, 1, 2, 3 to the rows has an error above 0."
        assert_equal(bool(alone > 1e-3), True, known)
with check("a float; 0 for layers that do not know the order", points=1):
    found = error_of("rows", X, [1, 2, 3, 0])
    message = "The result is one float, and for a layer that adds 0, 1, 2, 3 to the rows above 0."
    assert_equal(bool(isinstance(found, float) and found > 1e-6), True, message)
    message = (
        "A layer that multiplies each column by a number of its own is equivariant: its error is "
        "0. Check first: do you permute rows, those of X before one call and those of the output "
        "after the other call, both with the same permutation?"
    )
    assert_close(error_of("columns", X, [2, 0, 3, 1]), 0.0, message, atol=1e-12)
    message = "The function of lesson 3 with Q = K = V = X is equivariant: its error is 0."
    assert_close(error_of("lesson 3", X, [1, 2, 3, 0]), 0.0, message, atol=1e-12)
checks_passed("permutation_error")


# %% check="permutation_error_values" points=1.5
# Hidden checks of permutation_error: layers that know the order and layers that do not; batches.
### BEGIN HIDDEN TESTS
@probe
def error_of(kind, X, permutation):
    def attention(X):
        n = X.shape[-2]
        steps = np.arange(n)[:, None]
        weights = np.eye(n) * np.arange(n)  # far from equivariant, and not compared
        if kind == "sum so far":
            return np.cumsum(X, axis=-2), weights
        if kind == "times row number":
            return X * steps, weights
        if kind == "minus row number, twice as wide":
            return np.concatenate([X, X - 3 * steps], axis=-1), weights
        return X - X.mean(axis=-2, keepdims=True), weights  # equivariant

    return permutation_error(attention, X, permutation)


rng = check_rng()
found, wanted = [], []
sizes = [(lead, 5, 4) for lead in ((), (6,), (2, 3), (2, 1, 3))]
sizes += [((1,), 5, 4), ((1, 1), 4, 1), ((5,), 5, 5), ((), 60, 3), ((3,), 2, 2)]
sizes += [((2,), 1, 3), ((2,), 70, 6), ((4,), 3, 130), ((), 130, 2), ((2,), 33, 33)]
kinds_of_text = ["random"] * len(sizes)
kinds_of_text += ["equal words", "a word of zeros", "negative", "positive", "zeros", "times 2000"]
sizes += [((2,), 5, 4)] * 6
for (lead, n, d), what in zip(sizes, kinds_of_text, strict=True):
    X = rng.normal(size=(*lead, n, d))
    if what == "equal words":
        X[..., 2, :] = X[..., 1, :]
    elif what == "a word of zeros":
        X[..., 1, :] = 0.0
    elif what in ("negative", "positive"):
        X = np.abs(X) * (-1.0 if what == "negative" else 1.0)
    elif what in ("zeros", "times 2000"):
        X = X * (0.0 if what == "zeros" else 2000.0)
    cycle = [2, 0, 3, 4, 1] if n == 5 else [*range(1, n), 0]
    drawn = rng.permutation(n)
    for order in (cycle, drawn):
        moved = np.stack([X[..., i, :] for i in order], axis=-2)
        steps = np.arange(float(n))[:, None]
        sums = [X[..., : i + 1, :].sum(axis=-2) for i in order]
        so_far = np.abs(np.cumsum(moved, axis=-2) - np.stack(sums, axis=-2)).max()
        times = np.abs(moved * steps - moved * np.array(order, dtype=float)[:, None]).max()
        minus = 3.0 * np.abs(np.arange(n) - np.array(order)).max()
        kinds = ("sum so far", "times row number", "minus row number, twice as wide", "minus mean")
        case = f"X of shape {X.shape} ({what}), order {str(list(map(int, order)))[:40]}: "
        found.append((case, [error_of(kind, X, order) for kind in kinds]))
        wanted.append([so_far, times, minus])
with check("the largest absolute difference", points=0.75):
    for (case, errors), expected in zip(found, wanted, strict=True):
        message = (
            f"{case}the largest absolute difference, over all rows (also of a word that keeps its "
            "place), features and texts."
        )
        name = "the errors of three layers"
        assert_close(np.array(errors[:3]), np.array(expected), message, atol=1e-9, name=name)
with check("0 for equivariant layers, more for others", points=0.75):
    for case, errors in found:
        message = (
            f"{case}a layer that takes the mean of all rows away is equivariant: its error is 0. "
            "The rows are axis -2."
        )
        assert_close(errors[3], 0.0, message, atol=1e-9)
        assert_equal(bool(errors[0] >= 0), True, "An error is not negative, and not NaN.")
    message = "A layer that adds up the rows so far has an error above 0."
    assert_equal(bool(max(errors[0] for _, errors in found) > 1e-6), True, message)
checks_passed("permutation_error")
### END HIDDEN TESTS


# %% check="permutation_error_result" points=1
# Hidden checks of permutation_error: the permutation as list or array; whole numbers, float32; one
# float.
### BEGIN HIDDEN TESTS
@probe
def error_of(X, permutation):
    def attention(X):
        return X + 2 * np.arange(X.shape[-2], dtype=X.dtype)[:, None], np.eye(X.shape[-2])

    error = permutation_error(attention, X, permutation)
    return float(error), isinstance(error, (float, np.floating)), type(error).__name__


rng = check_rng()
X = rng.normal(size=(2, 4, 3))
integers = rng.integers(-9, 10, (4, 3))
ORDERS = [1, 2, 3, 0], np.array([1, 2, 3, 0]), np.array([1, 2, 3, 0], dtype=np.int32)


def compare(x, given):
    """The error with that of the permutation as a list and the numbers in float64."""
    message = (
        f"The permutation as a {type(given).__name__}, X of dtype {x.dtype}: the error should be "
        "that of the permutation as a list and the same numbers in float64."
    )
    error, listed = error_of(x, given)[0], error_of(x.astype(float), [1, 2, 3, 0])[0]
    rtol = 1e-5 if x.dtype == np.float32 else None
    assert_close(error, listed, message, rtol=rtol, against="for the list and float64")
    message = "A layer that adds 0, 2, 4, 6 to the rows has an error above 0."
    assert_equal(bool(error > 1e-3), True, message)


with check("the permutation as a list and as an array", points=0.5):
    for given in ORDERS:
        compare(X, given)
    error, *_ = error_of(X, [0, 1, 2, 3])
    assert_close(error, 0.0, "If nothing moves, the error is 0.", atol=1e-12)
with check("X of whole numbers, of float32: as in float64", points=0.25):
    for x in (integers, X.astype(np.float32)):
        for given in ORDERS:
            compare(x, given)
        error = error_of(x, [0, 1, 2, 3])[0]
        assert_close(error, 0.0, "If nothing moves, the error is 0.", atol=1e-12)
with check("a float, also for X of whole numbers", points=0.25, side=True):
    for x in (X, integers):
        _, is_float, kind = error_of(x, [1, 2, 3, 0])
        message = (
            f"X of dtype {x.dtype}, and so is what the layer returns: the result should be one "
            f"float, and is of type {kind}."
        )
        assert_equal(is_float, True, message, name="'it is a float'")
checks_passed("permutation_error")
### END HIDDEN TESTS


# %% check="permutation_error_inputs" points=0.5
# Hidden checks of permutation_error: X and permutation stay as they are.
### SIDE CONDITION: counts once another check of permutation_error passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(X, permutation, keeps):
    def attention(X):
        output = X if keeps else X * np.arange(X.shape[-2])[:, None]
        return output, np.eye(X.shape[-2])

    error = permutation_error(attention, X, permutation)
    return float(error), X, permutation


rng = check_rng()
X = rng.normal(size=(2, 4, 3))
for keeps in (True, False):
    for order in ([2, 0, 3, 1], np.array([2, 0, 3, 1])):
        error, X_after, order_after = arguments_after(X.copy(), order.copy(), keeps)
        message = (
            "X was changed by the call. Check first: the layer may return its own input, and an "
            "operator like -= would write into it."
        )
        assert_equal(X_after, X, message, name="X")
        assert_equal(order_after, order, "permutation was changed by the call.", name="permutation")
        if keeps:
            message = "A layer that returns its input is equivariant: the error is 0."
            assert_close(error, 0.0, message, atol=1e-12)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Call the layer twice: once on the rows in their old order, once in the new one. Both results have
# the same rows, in different orders, until you permute one of them. Which one? The absolute value
# comes before the maximum.
#
# </details>
#
# **Predict, then run.** Which of these four have an error of 0? Your layer of section 2; the same
# layer with position vectors added to its input; your recurrent network of lesson 1; and the layer
# with a mask that hides the last place from everybody.

# %% tags=["demonstration"]
rng = np.random.default_rng(2)
layer = SelfAttention(8, 6, 6, rng)
X, places = rng.normal(size=(5, 8)), rng.normal(size=(5, 8))
W_x, W_h = rng.normal(size=(8, 6)) / 3, rng.normal(size=(6, 6)) / 3
not_last = np.array([True, True, True, True, False])  # True = may attend
four = {
    "self-attention": layer.forward,
    "with position vectors": lambda X: layer.forward(X + places),
    "recurrent network": lambda X: (rnn_hidden_states(X, W_x, W_h), None),
    "with a mask of places": lambda X: layer.forward(X, not_last),
}
errors = {name: permutation_error(f, X, [4, 0, 3, 1, 2]) for name, f in four.items()}
for name, error in errors.items():
    print(f"{name:22s} {error:.6f}")
assert errors["self-attention"] < 1e-12 and min(list(errors.values())[1:]) > 0.05
means = [layer.forward(x)[0].mean(axis=-2) for x in (X, X[::-1])]  # one vector for the whole text
change = np.abs(means[0] - means[1]).max().round(9)
print("mean of all output rows, words reversed: changes by", change)

# %% [markdown]
# The last line is the other word: the *mean* of all output rows is **invariant**. The rows
# themselves are equivariant.
#
# Position vectors break the symmetry: that is their purpose. The recurrent network reads in order,
# so order matters. A mask of places breaks it too: it says something about *places*, and not about
# words. (If the mask moved with the words, as a padding mask must, the symmetry would hold.)
#
# Now with words. The model of section 5 that solved "Who was tired?" has no position vectors. What
# does it say when the sentence is shuffled?

# %% tags=["demonstration", "nbval-ignore-output"]
# What a trained layer says.
layers, table = by_adjective[0]
noun_words = ANIMALS + PLACES
for text in (
    "the animal didn't cross the street because it was too tired",
    "the street didn't cross the animal because it was too tired",
    "tired too was it because street the cross didn't animal the",
):
    shuffled = text.split()
    with torch.no_grad():
        output, _ = follow(layers, table[ids_of(shuffled)])
    found = output[shuffled.index("tired")]  # (d_model,): the row moves with its word
    nearest = torch.cdist(found[None], table[ids_of(noun_words)]).argmin()
    print(f"{noun_words[nearest]:7s} <- {text}")
    assert noun_words[nearest] == "animal"

# %% [markdown]
# To this model the three texts are one text. Here that helps. But who crosses and who is crossed
# is lost. Lesson 7 gives the words their places back.
#
# ### Written answer: `written_equivariance`
#
# Prove that self-attention without a mask is permutation equivariant (5 points). Let $P$ be an $n
# \times n$ permutation matrix, so $P^\top P = I$. Write $A(X)$ for the weights and $f(X)$ for the
# output.
#
# 1. Show what happens to queries, keys and values, and to the scores, when $X$ becomes $PX$.
# 2. Show what the softmax does to it. Say which property of the softmax you use.
# 3. Finish: $f(PX) = P f(X)$.
# 4. Is $f$ invariant? Say in one sentence with "cat" what the difference is. How would you make an
#    invariant function from $f$?

# %% [markdown] written="equivariance" points=5
# ### BEGIN SOLUTION
# A projection works on each row by itself: $(PX)W_q = P(XW_q) = PQ$, and likewise $PK$ and $PV$.
# The scores become $(PQ)(PK)^\top/\sqrt{d_k} = P\,(QK^\top/\sqrt{d_k})\,P^\top$: the same numbers
# with rows and columns permuted in the same way. The softmax of a row depends only on which numbers
# the row holds: it takes each number's exponential and divides by the sum over the row. If the
# columns are permuted, the sum is the same and the weights are permuted with them; if the rows are
# permuted, the results are permuted with them. So $A(PX) = P A(X) P^\top$. The output is
# $f(PX) = P A(X) P^\top P V = P A(X) V = P f(X)$, because $P^\top P = I$. So $f$ is equivariant and
# not invariant: when "cat" moves from place 2 to place 4, its output vector moves to place 4, and
# is itself unchanged. The mean (or sum, or maximum) over all rows of $f(X)$ is invariant.
#
# **Marking scheme** (5 points). 1 point: $PQ$, $PK$, $PV$ because projections act on rows. 1 point:
# scores $P S P^\top$. 1 point: softmax row by row, the sum does not depend on the order. 1 point:
# $P^\top P = I$ used, and the conclusion. 1 point: not invariant, with the difference in words, and
# a mean or another symmetric summary that makes it invariant.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > Row $i$ of $XW_q$ is made from row $i$ of $X$ and from nothing else. So it makes no difference
# > whether I exchange rows before I multiply by $W_q$ or afterwards.
#
# Good: it says *why* $P$ may be moved to the front, instead of moving it without a word.
#
# > Attention contains no positions. So the order of the words cannot matter, and $f(PX) = f(X)$.
#
# Plausible, and bad: it repeats what should be proved, and what it ends with is another property. The
# rows do move.
#
# </details>

# %% [markdown]
# ## 7. What one layer can learn to look at
#
# The weights are not programmed. They follow from the task. Here is the *same* layer, trained on
# four tasks. The texts are five random words, and each place has a position vector, as in section
# 4.
#
# | pattern | task: each word must give ... | what the scores need |
# |---|---|---|
# | copying | itself | a word (or place) fits itself best |
# | uniform | the mean of all words | all scores equal |
# | local | the word before it, in the ring | place $i$ fits place $i-1$, place 0 the last |
# | positional | the first word | every query fits place 0 |
#
# The fifth kind, by **content**, was section 5: "tired" looks for an animal wherever it stands.
#
# **Predict, then run.** To which of the four is the map *before* training nearest?

# %% tags=["demonstration", "nbval-ignore-output"]
# Printed numbers come from training: they may differ in the last digit on another machine.
TASKS = {
    "copying": "itself",
    "uniform": "all words evenly",
    "local": RING,
    "positional": "the first word",
}
pattern_runs = {name: [] for name in TASKS}
for run in progress(12, "four patterns, three seeds"):
    name = list(TASKS)[run // 3]
    pattern_runs[name].append(train_pattern(TASKS[name], run % 3))
expected_maps = {
    "copying": np.eye(5),
    "uniform": np.full((5, 5), 0.2),
    "local": np.roll(np.eye(5), -1, axis=1),
    "positional": np.eye(5)[[0] * 5],
}
for name, trained in pattern_runs.items():
    worst = max(np.abs(map_of(one) - expected_maps[name]).max() for one in trained)
    errors = " ".join(f"{error:.4f}" for *_, error, _ in trained)
    print(f"{name:11s} squared error {errors}   largest distance from the pattern {worst:.3f}")
    assert worst < 0.1 and max(error for *_, error, _ in trained) < 0.05
untrained = map_of(train_pattern("itself", 0, steps=0))

# %% tags=["demonstration", "nbval-ignore-output"]
# The weights come from training: they may differ in the last digit on another machine.
figure, panels = plt.subplots(2, 3, figsize=(13.2, 7.8))
pattern_maps = {"untrained (random)": untrained}
pattern_maps |= {name: map_of(trained[0]) for name, trained in pattern_runs.items()}
for axes, (name, weights) in zip(panels.flat, pattern_maps.items()):
    draw_heatmap(axes, weights, words, words)
    axes.set_title(name)
panels[1, 2].set_axis_off()
figure.tight_layout()
assert 0.02 < untrained.min() < 0.15 and 0.28 < untrained.max() < 0.5  # small scores, not even
far = {name: np.abs(untrained - pattern).max() for name, pattern in expected_maps.items()}
assert min(far, key=far.get) == "uniform" and far["uniform"] < 0.5 * sorted(far.values())[1]
show(
    figure,
    "Figure 4. One layer, five maps. First: before training, random. Then the same layer trained "
    "on four tasks: each word finds itself, all words, the word before it (in a ring), or the "
    "first word. The maps are so clean because each layer had one task and nothing else to do.",
    "Five heat maps, five words by five words. Untrained: irregular weights. Copying: 1 on the "
    "diagonal. Uniform: 0.2 everywhere. Local: 1 left of the diagonal and in the upper right "
    "corner. Positional: 1 in the first column.",
    "\n\n".join(f"{name}\n\n{text_table(w, words, words)}" for name, w in pattern_maps.items()),
)

# %% [markdown]
# Before training no pattern was there. The uniform one was nearest, since the default start of
# `nn.Linear` makes small scores; but in place of 0.20 everywhere the weights lay between about 0.09
# and 0.38. **One map at a time** is what one layer gives. A word that needs the word before it *and* the
# first word must mix both in one average. Lesson 5 solves this: several heads, one pattern each.

# %% [markdown]
# ## 8. Find the silent bug
#
# A colleague encodes three sentences of five words with your `TorchSelfAttention`. All have the
# same length, so no mask is needed. The list of sentences becomes one tensor with `pad_sequence`.
# The code runs, and every check looks good. **It has one mistake**, and nearly every output is
# wrong.

# %% locked="given_colleague"
def encode(layer, sentences):
    """A colleague's encoder: a list of (5, d_model) tensors; returns one output for each."""
    batch = nn.utils.rnn.pad_sequence(sentences)  # one tensor from the list
    output, weights = layer(batch)
    return [output[:, number] for number in range(len(sentences))], weights


# %% tags=["demonstration"]
torch.manual_seed(0)
colleague_layer = TorchSelfAttention(8, 8, 8)
texts = ["the black cat is sleeping", "a white dog was eating", "two new birds sang loudly"]
vectors = [torch.randn(5, 8) for _ in texts]  # each (n, d_model)
with torch.no_grad():
    encoded, weights = encode(colleague_layer, vectors)
    again, _ = encode(colleague_layer, [v.flip(0) for v in vectors])
print("one output a sentence:", [tuple(e.shape) for e in encoded])
print("rows of weights sum to 1:", torch.allclose(weights.sum(-1), torch.tensor(1.0)))
print("NaN:", any(bool(e.isnan().any()) for e in encoded))
print("equivariant (words reversed):", torch.allclose(again[0], encoded[0].flip(0), atol=1e-6))

# %%
# Your experiments. For example: change one word, and see which outputs change.

# %% [markdown]
# ### Short answer 4: `answer_silent_bug`
#
# Look at the output of "cat" (word 2 of sentence 0). Which words can change it?
#
# - a) All five words of sentence 0, as it should be.
# - b) Word 2 of each of the three sentences ("cat", "dog", "birds"), and no other word.
# - c) All fifteen words of the three sentences.
# - d) Only "cat" itself.

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "b"
### END SOLUTION

# %% check="answer_silent_bug" points=1
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# ### Exercise 4: `mended_encoder`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10-15 minutes on it.
#
# Copy `encode` into this cell and mend it. Then let it serve sentences of **different lengths**: you
# made the mask for that in lesson 3.
#
# - `layer`: a callable as your `TorchSelfAttention`: `layer(X, mask=None)` returns `(output,
#   weights)`. `sentences`: a list of tensors `(n, d_model)`, each with an `n` of its own.
# - Returns a list with one output `(n, d_v)` for each sentence: what the layer gives for that
#   sentence alone, up to rounding, in the dtype of the sentences. It does not depend on the other
#   sentences.
# - No errors are graded here.


# %% answer="mended_encoder"
def mended_encoder(layer, sentences):
    """Encode several sentences, each as if it were alone.

    Args:
        layer: callable; layer(X, mask=None) returns (output, weights).
        sentences: list of (n, d_model) tensors; n may differ.

    Returns:
        List of (n, d_v) tensors, one for each sentence.
    """
    ### BEGIN SOLUTION
    batch = nn.utils.rnn.pad_sequence(sentences, batch_first=True)  # (batch, longest, d_model)
    lengths = torch.tensor([len(one) for one in sentences])
    keep = torch.arange(batch.shape[1]) < lengths[:, None, None]  # (batch, 1, longest)
    output, _ = layer(batch, keep)
    return [one[:length] for one, length in zip(output, lengths)]
    ### END SOLUTION


# %% check="mended_encoder" points=2
@probe
def encoded(sentences):
    def layer(X, mask=None):  # self-attention with fixed projections, as yours
        Q, K, V = torch.sin(X), torch.cos(X), X[..., :2] * 3
        joined = torch.cat([V, torch.eye(X.shape[-2]).expand(*X.shape[:-1], -1)], -1)
        both = F.scaled_dot_product_attention(Q, K, joined, attn_mask=mask)
        return both[..., :2], both[..., 2:]

    return list(mended_encoder(layer, sentences))


def alone(X):
    """What that layer gives for one sentence."""
    return F.scaled_dot_product_attention(torch.sin(X), torch.cos(X), X[:, :2] * 3)


rng = check_rng()
equal = [torch.tensor(rng.normal(size=(4, 5))).float() for _ in range(3)]
different = [one[:n] for one, n in zip(equal, (4, 2, 4), strict=True)]


def equals(one, other):
    """Whether a result is, up to rounding, what the layer gives for some sentence."""
    if not isinstance(one, torch.Tensor) or one.shape != other.shape:
        return False
    return bool((one.double() - other.double()).abs().max() < 1e-4)


def compare(sentences, what):
    found = encoded([sentence.clone() for sentence in sentences])
    message = f"{what}: a list with one output for each sentence."
    assert_equal(len(found), 3, message, name="how many outputs")
    wanted = [alone(sentence) for sentence in sentences]
    for number, expected in enumerate(wanted):
        message = f"{what}: sentence {number} should come out as the layer gives it alone."
        known = [equals(found[number], other) for other in wanted]
        if any(known) and not known[number]:
            message += " Yours is what another one gives. Check first: are they in the list's order?"
        assert_close(found[number], expected, message, name=f"the output of sentence {number}")


with check("equal lengths", points=1):
    compare(equal, "Three sentences of four words")
with check("different lengths", points=1):
    compare(different, "Sentences of 4, 2 and 4 words")
checks_passed("mended_encoder")

# %% check="mended_encoder_batches" points=1
# Hidden checks of mended_encoder: lists of many kinds, words of zeros, float64, the list afterwards.
### BEGIN HIDDEN TESTS
@probe
def encoded(sentences):
    def layer(X, mask=None):
        Q, K, V = torch.tanh(X), X.flip(-1), X[..., 1:] * 2
        joined = torch.cat([V, torch.eye(X.shape[-2]).expand(*X.shape[:-1], -1)], -1)
        both = F.scaled_dot_product_attention(Q, K, joined, attn_mask=mask)
        return both[..., :3], both[..., 3:]

    return list(mended_encoder(layer, sentences))


def alone(X):
    """What that layer gives for one sentence."""
    return F.scaled_dot_product_attention(torch.tanh(X), X.flip(-1), X[:, 1:] * 2)


def is_that(one, other):
    """Whether a result is, up to rounding, what the layer gives for some sentence."""
    if not isinstance(one, torch.Tensor) or one.shape != other.shape:
        return False
    return bool((one.double() - other.double()).abs().max() < 1e-4)


def compare(found, wanted, message):
    for one, expected in zip(found, wanted, strict=True):
        said = message
        if any(is_that(one, other) for other in wanted) and not is_that(one, expected):
            said += (
                " One of yours is what another sentence of the list gives. Check first: do they "
                "stand in the order of the list?"
            )
        assert_close(one, expected, said, name="an output")


rng = check_rng()
for lengths in ((3,), (5, 5), (1, 6, 2, 4, 2), (2, 2, 2), (7, 1), (3, 5, 3)):
    sentences = [torch.tensor(rng.normal(size=(n, 4))).float() for n in lengths]
    found = encoded(sentences)
    message = (
        f"Sentences of {lengths} words: each comes out as if it were alone, as a tensor (n, d_v) "
        "with one row for each word; a sentence of one word gives (1, d_v)."
    )
    assert_equal(len(found), len(lengths), message, name="how many outputs")
    compare(found, [alone(X) for X in sentences], message)
sentences = [one.clone() for one in sentences[:2]]
sentences[0][1] = torch.tensor([1.0, -1.0, 0.5, -0.5])
sentences[1][4] = torch.tensor([0.0, 2.0, 0.0, -2.0])
message = (
    "Sentences of 3 and 5 words, in each a word whose numbers add up to 0 and are not all 0: each "
    "comes out as if it were alone. Such a word is a word; what is padding, the lengths say."
)
compare(encoded(sentences), [alone(X) for X in sentences], message)
sentences = [torch.tensor(rng.normal(size=(n, 4))).float() for n in (4, 2)]
sentences[0][3], sentences[1][0] = 0.0, 0.0
message = (
    "Sentences of 4 and 2 words, in each a word whose numbers are all 0: each comes out as if it "
    "were alone. Such a word is a word; what is padding, the lengths say."
)
compare(encoded(sentences), [alone(X) for X in sentences], message)


@probe
def sentences_afterwards(sentences):
    mended_encoder(lambda X, mask=None: (X * 2.0, None), sentences)
    return sentences


X = torch.tensor(rng.normal(size=(3, 4)))
first, last = X.clone(), X.clone()
first[1:], last[:-1] = torch.tensor(rng.normal(size=(2, 2, 4)))
sentences = [one.float() for one in (X, first, last, X[:1])]
found = encoded([one.clone() for one in sentences])
message = (
    "Four sentences, of which some begin or end with the same word: each comes out as if it were "
    "alone. What one sentence gives says nothing of another."
)
assert_equal(len(found), 4, message, name="how many outputs")
compare(found, [alone(X) for X in sentences], message)


@probe
def encoded_with_boolean_masks(sentences, recording=True):
    def layer(X, mask=None):  # fills where the mask is not True, as your TorchSelfAttention does
        scores = torch.tanh(X) @ X.flip(-1).mT / math.sqrt(X.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        return weights @ X * 2, weights

    with torch.set_grad_enabled(recording):
        return list(mended_encoder(layer, [one.mT for one in sentences]))


for d_model, lengths in ((4, (4, 4, 4, 4)), (4, (2, 4, 1, 4)), (1, (3, 1, 2)), (3, (90, 4))):
    given = [torch.tensor(rng.normal(size=(d_model, n))).float() for n in lengths]
    found = encoded_with_boolean_masks(given)
    message = (
        f"Sentences of {lengths} words, d_model = {d_model}, transposes of other tensors; the layer "
        "takes a boolean mask, True = may attend: each comes out as if it were alone, (n, d_v)."
    )
    assert_equal(len(found), len(lengths), message, name="how many outputs")
    texts = [one.mT.contiguous() for one in given]
    parts = [(torch.tanh(X), X.flip(-1), X * 2) for X in texts]
    compare(found, [F.scaled_dot_product_attention(*QKV) for QKV in parts], message)
after = sentences_afterwards([one.clone() for one in sentences])
message = "The caller's list of sentences, and the sentences in it, are as before after the call."
assert_equal(after, sentences, message, name="sentences", against="before the call")
sentences = [torch.tensor(rng.normal(size=(n, 4))) for n in (2, 4, 3)]
message = (
    "Sentences of float64: each should come out as the layer gives it alone, in float64 and with "
    "its digits. Check first: is the padded batch made in the dtype of the sentences?"
)
found = encoded(sentences)
assert_equal(len(found), 3, message, name="how many outputs")
for place, X in enumerate(sentences):
    assert_close(found[place], alone(X), message, precise=True, name="an output")
# Wide and long sentences, as many as words or features; sentences with special numbers; no_grad.
several = [(70, (3, 5)), (2, (2, 1)), (3, (130, 33)), (5, (5, 5, 5, 5, 5)), (130, (1, 2, 65))]
several += [(4, (3, 5)), (4, (5, 3)), (4, (3, 5))]
texts = [("random", [rng.normal(size=(n, d)) for n in lengths]) for d, lengths in several]
three = [rng.normal(size=(n, 4)) for n in (2, 5, 3)]
texts += [
    ("all negative", [-np.abs(one) - 0.1 for one in three]),
    ("all positive", [np.abs(one) + 0.1 for one in three]),
    ("times 60", [60 * one for one in three]),
    ("times 2000", [2000 * one for one in three]),
    ("all words equal", [np.repeat(one[:1], len(one), axis=0) for one in three]),
    ("the last two words equal", [one[[*range(len(one)), -1]] for one in three]),
    ("the first one 0", [0.0 * three[0], *three[1:]]),
]
for recording, some in ((True, texts), (False, texts[:2])):
    for what, arrays in some:
        given = [torch.tensor(one) for one in arrays]
        found = encoded_with_boolean_masks([one.mT.contiguous() for one in given], recording)
        message = (
            f"Sentences of {tuple(map(len, given))} words, d_model = {given[0].shape[-1]}, float64 "
            f"({what}){'' if recording else ', under torch.no_grad()'}: each comes out as if it "
            "were alone, (n, d_v)."
        )
        assert_equal(len(found), len(given), message, name="how many outputs")
        parts = [(torch.tanh(X), X.flip(-1), X * 2) for X in given]
        compare(found, [F.scaled_dot_product_attention(*QKV) for QKV in parts], message)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>What would have found it</summary>
#
# Print the shape of the *weights*, and give the batch another size than the sentence. Encode one
# sentence alone: its output must be the same as in the batch. Change a word of *another* sentence:
# nothing of yours may change. Note that the test for equivariance passed. A test that passes says
# only what it tests.
#
# </details>

# %% [markdown]
# ## 9. What it costs
#
# Each of the $n$ words has a score with each of the $n$ words. A **multiply-add** is one product
# and its addition to a sum: $a \leftarrow a + b \cdot c$. A product of matrices of shapes $(a,
# b)$ and $(b, c)$ takes $a \cdot b \cdot c$ of them.
#
# ### Exercise 5: `attention_cost`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 5 minutes on it.
#
# - `n`, `d_k`, `d_v`: Python integers. One text of `n` words.
# - Returns a dictionary with exactly two keys. `"multiply_adds"`: those of the two products
#   $QK^\top$ and weights times $V$ together. `"score_entries"`: how many scores there are.
# - One multiply-add counts once. Softmax, scale and projections are not counted.
# - Both values are Python `int`.
# - No errors are graded here.


# %% answer="attention_cost"
def attention_cost(n, d_k, d_v):
    """What attention of n words to themselves costs, without projections and softmax.

    Args:
        n: number of words.
        d_k: length of queries and keys.
        d_v: length of values.

    Returns:
        {"multiply_adds": int, "score_entries": int}: the multiply-adds of both matrix
        products together, and the number of scores.
    """
    ### BEGIN SOLUTION
    return {"multiply_adds": n * n * (d_k + d_v), "score_entries": n * n}
    ### END SOLUTION


# %% check="attention_cost" points=1.5
cost = attention_cost(4, 7, 5)
assert_equal(
    sorted(cost) if isinstance(cost, dict) else [],
    ["multiply_adds", "score_entries"],
    "Return a dictionary with these two keys.",
    name="the keys",
)
with check("score_entries", points=0.5):
    message = "4 words: each of them has a score with each."
    assert_close(float(cost["score_entries"]), 16.0, message, name="score_entries")
with check("multiply_adds", points=0.75):
    message = (
        "n = 4, d_k = 7, d_v = 5: the multiply-adds of both products together. How many numbers "
        "has the result of each product, and how many multiply-adds does one of them take? One "
        "multiply-add counts once, not as two operations."
    )
    assert_close(float(cost["multiply_adds"]), 192.0, message, name="multiply_adds")
with check("both are Python int", points=0.25, side=True):
    kinds = [type(cost[name]).__name__ for name in ("multiply_adds", "score_entries")]
    message = "Both values are Python int. (In quotes stand the names of their types.)"
    assert_equal(kinds, ["int", "int"], message, name="the types of both values")
checks_passed("attention_cost")


# %% check="attention_cost_sizes" points=1.5
# Hidden checks of attention_cost: other sizes, each counted one product at a time.
### BEGIN HIDDEN TESTS
rng = check_rng()
sizes = [(1, 1, 1), (3, 2, 7), (7, 5, 2), *rng.integers(2, 12, (3, 3)).tolist()]
sizes += [(6, 6, 6), (2, 300, 1), (40, 1, 16)]
said = ", ".join(map(str, map(tuple, sizes)))
with check("score_entries", points=0.5):
    entries = [sum(1 for _ in range(n) for _ in range(n)) for n, _, _ in sizes]
    found = [float(attention_cost(*size)["score_entries"]) for size in sizes]
    message = f"(n, d_k, d_v) is {said}: each word has a score with each of the words."
    assert_close(np.array(found), np.array(entries, dtype=float), message, name="score_entries")
with check("multiply_adds", points=0.75):
    products = []
    for n, d_k, d_v in sizes:
        scores = sum(1 for _ in range(n) for _ in range(n) for _ in range(d_k))
        products.append(scores + sum(1 for _ in range(n) for _ in range(d_v) for _ in range(n)))
    found = [float(attention_cost(*size)["multiply_adds"]) for size in sizes]
    message = (
        f"(n, d_k, d_v) is {said}: the multiply-adds of both products together, first Q K^T with "
        "all its scores, and after the softmax the weights times V."
    )
    assert_close(np.array(found), np.array(products, dtype=float), message, name="multiply_adds")
with check("both are Python int", points=0.25, side=True):
    message = "Both values are Python int. (In quotes stand the names of their types.)"
    for size in sizes:
        kinds = [type(value).__name__ for value in attention_cost(*size).values()]
        assert_equal(kinds, ["int", "int"], message, name="the types of both values")
checks_passed("attention_cost")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# How many numbers does the result of each product have, and how many multiply-adds does one of
# these numbers take? Count with $n = 4$, $d_k = 7$, $d_v = 5$ on paper first.
#
# </details>
#
# ### Against a recurrent network
#
# Take all widths equal to $d$. Now the projections count too: three products of shape $(n, d)
# \cdot (d, d)$. A recurrent network (lesson 1) has two products with a $d \times d$ matrix at
# each of its $n$ steps.
#
# | layer | multiply-adds | steps that must wait for each other | from the first word to the last |
# |---|---|---|---|
# | self-attention | your `attention_cost(n, d, d)` $+\ 3nd^2$, and $n^2$ exponentials | 4, whatever $n$ is | 1 layer |
# | recurrent network | $2nd^2$ | $n$ | $n$ steps |
# | convolution over $w$ words | $wnd^2$ | 1, whatever $n$ is | $(n - 1)/(w - 1)$ layers (one-sided; a centred one needs twice as many) |
#
# The four are projections, scores, softmax and average; within each, all words can be done at the
# same time. The softmax's $n^2$ exponentials, one a score, stand against $2n^2d$ multiply-adds of the
# two products: with $d = 64$ less than a hundredth in number, though one exponential costs more than
# one multiply-add.
#
# * **A convolution does not wait either.** It is cheap for long texts, but one layer of it sees
#   only $w$ words. So "no recurrence *and no convolution*" buys two things: no waiting, and one
#   layer from any word to any other.
# * **The waiting comes from tanh**, not from recurrence. Lesson 1's network needs the old state
#   before it can bend the new one. A *linear* recurrence, $h_t = a_t h_{t-1} + x_t$, can be added up
#   in about $\log_2 n$ rounds that do all words at once. Newer models use that.
#
# Both, run:

# %% tags=["demonstration"]
rng = np.random.default_rng(3)
a, x = rng.uniform(0.5, 1, size=256), rng.normal(size=256)
one_by_one, h = [], 0.0
for a_t, x_t in zip(a, x):
    h = a_t * h + x_t
    one_by_one.append(h)
factor, state, rounds = a.copy(), x.copy(), 0
while 2**rounds < 256:  # each round joins what 2**rounds words have added up, all words at once
    earlier = np.concatenate([np.zeros(2**rounds), state[: -(2**rounds)]])
    state = state + factor * earlier
    factor = factor * np.concatenate([np.ones(2**rounds), factor[: -(2**rounds)]])
    rounds += 1
print("linear recurrence of 256 steps in", rounds, "rounds:", np.allclose(state, one_by_one))
assert np.allclose(state, one_by_one) and rounds == 8

signal = torch.zeros(1, 1, 33, dtype=torch.float64)
signal[0, 0, 0] = 1.0  # only the first word says something
layers = 0
while signal[0, 0, -1] == 0:  # until the last word hears of it
    signal = F.conv1d(F.pad(signal, (2, 0)), torch.ones(1, 1, 3, dtype=torch.float64))
    layers += 1
print("convolutions over 3 words, from the first of 33 words to the last:", layers, "layers")
assert layers == (33 - 1) // (3 - 1)

# %% [markdown]
# **Predict, then run.** With $d = 512$: at which length $n$ do the two products of attention become
# more expensive than the three projections? And from which $n$ on does the *whole* layer take more
# multiply-adds than the recurrent network?

# %% tags=["demonstration"]
d = 512
print("     n     attention   projections     recurrent   scores, MiB (4 bytes)")
for n in (16, 128, 512, 768, 2048, 8192, 65536):
    cost = attention_cost(n, d, d)
    mebibytes = cost["score_entries"] * 4 / 2**20
    counts = (cost["multiply_adds"], 3 * n * d * d, 2 * n * d * d)
    print(f"{n:6d}", *(f"{count:13.2e}" for count in counts), f"{mebibytes:14.3f}")
assert attention_cost(768, d, d)["multiply_adds"] == 3 * 768 * d * d

# %% [markdown]
# - The two products overtake the projections at $n = 1.5\,d$, here 768. *"Attention is slow because
#   of $n^2$"* is a sentence about **long** texts. In a short text the projections cost more.
# - The whole layer takes more multiply-adds than the recurrent network at **every** $n$:
#   $3nd^2 > 2nd^2$ already. So *"self-attention does less work"* is wrong, if you count its
#   projections. What it saves is **waiting**.
#
# Is the count right? torch can count too: its counter adds up the operations of every product, two
# for a multiply-add. And the weights are an array whose size can be read. **Predict, then run:**
# with $n = 256$ and $d = 64$, which numbers will the two lines print?

# %% tags=["demonstration"]
from torch.utils.flop_counter import FlopCounterMode

counted_layer, n, d = TorchSelfAttention(64, 64, 64), 256, 64
counter = FlopCounterMode(display=False)
with counter, torch.no_grad():
    _, weights = counted_layer(torch.randn(n, d))
yours = attention_cost(n, d, d)
print("multiply-adds:", counter.get_total_flops() // 2, "=", yours["multiply_adds"] + 3 * n * d * d)
print("bytes of the weights:", weights.untyped_storage().nbytes(), "=", 4 * yours["score_entries"])
assert counter.get_total_flops() == 2 * (yours["multiply_adds"] + 3 * n * d * d)
assert weights.numel() == yours["score_entries"]

# %% [markdown]
# Now measure the time. Both have $d = 64$. We take the processor time of one forward pass on one
# core: no second processor helps.

# %% tags=["demonstration", "nbval-ignore-output"]
# Times depend on the machine and on its load: look at the shape of the curves, not at the numbers.
import time


def seconds(function, X, repeats=5):
    """Smallest processor time of a few calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        with torch.no_grad():
            function(X)
        times.append(time.process_time() - start)
    return min(times)


torch.manual_seed(0)
attention_layer, recurrent = TorchSelfAttention(64, 64, 64), nn.RNN(64, 64, batch_first=True)
lengths = (64, 128, 256, 512, 1024, 2048, 4096)
measured = {"self-attention": [], "recurrent network": []}
for n in lengths:
    X = torch.randn(1, n, 64)  # (batch, n, d_model)
    measured["self-attention"].append(seconds(attention_layer, X))
    measured["recurrent network"].append(seconds(recurrent, X))
    print(f"n {n:5d}", *(f"  {name} {1e3 * t[-1]:8.2f} ms" for name, t in measured.items()))

# %% tags=["demonstration", "nbval-ignore-output"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7))
for (name, times), marker in zip(measured.items(), ("o-", "s--")):
    left.loglog(lengths, [1e3 * t for t in times], marker, label=name)
x = np.array(lengths[4:])
last = 1e3 * measured["self-attention"][-1]
left.loglog(x, last * (x / 4096) ** 2, ":", color="grey", label="grows like $n^2$")
last = 1e3 * measured["recurrent network"][-1]
left.loglog(x, last * x / 4096, "-.", color="grey", label="grows like $n$")
left.set(xlabel="number of words $n$", ylabel="processor time, ms")
right.loglog(lengths, [4] * len(lengths), "o-", label="self-attention")
right.loglog(lengths, lengths, "s--", label="recurrent network")
right.set(xlabel="number of words $n$", ylabel="steps that wait for each other")
for axes in (left, right):
    axes.set_xticks(lengths[::2], lengths[::2])
    axes.minorticks_off()
    axes.legend(fontsize=8)
figure.tight_layout()
growth = [times[-1] / times[-3] for times in measured.values()]  # from n = 1024 to 4096
assert growth[0] > 7 and growth[1] < 8  # about 16 for n^2, about 4 for n
show(
    figure,
    "Figure 5. Left, measured on one core: for long texts the time of self-attention grows about "
    "like $n^2$ or faster, unevenly (memory may play a part; not measured here), that of "
    "the recurrent network like $n$. At a few hundred words self-attention is the faster one, "
    "probably because it works in a few large products. Right, counted: the recurrent network must do its "
    "steps one after another. Do not read the crossing as a law: it moves with $d$, "
    "the machine and the program. What many processors side by side gain is not measured here.",
    "Two log-log plots against n from 64 to 4096. Left, time: self-attention starts lower, bends "
    "upwards to a slope of 2 or more and crosses the recurrent network, which has slope 1. Right, "
    "steps that wait: always 4 for self-attention, n for the recurrent network.",
)

# %% [markdown]
# ### Puzzle: backwards
#
# The words are numbered, $x_t$ is a row of the identity matrix. Write down `W_q` and `W_k`, both `(n, n)`, with which
# your `SelfAttention` turns a text of `n` words **round**: the first row of the output is the last word.
# `puzzle_backwards` takes `n` and returns both; `W_v` is the identity.
#
# *Nothing is trained here, and nothing is graded: you write the numbers down, and the cell below says what they do.*

# %% tags=["demonstration", "guess"]
puzzle_backwards = lambda n: (1000 * np.eye(n)[::-1], np.eye(n))  # write lambda n: (W_q, W_k)


# %% tags=["demonstration", "puzzle"]
def backwards(answer, n):
    attention = SelfAttention(n, n, n, np.random.default_rng(0))
    attention.W_q, attention.W_k = answer(n)
    attention.W_v = np.eye(n)
    return attention.forward(np.eye(n))[0] @ np.arange(1.0, n + 1)


puzzle("puzzle_backwards", puzzle_backwards, backwards, lambda n: range(n, 0, -1), [2, 5, 8])

# %% [markdown]
# ## Folklore: sentences to correct
#
# | what one reads | what is right | where you saw it |
# |---|---|---|
# | "Self-attention is permutation invariant." | It is equivariant: outputs move with their words. | section 6 |
# | "In one layer 'it' looks at the animal if the sentence says 'tired'." | The ratio of its weights on two nouns cannot depend on a third word. That takes two layers. | section 5 |
# | "The attention map shows which word the model found." | It shows a place. From the second layer on a place holds more than its own word. | Figure 3 |
# | "A word attends mostly to itself." | With $Q = K = X$ and vectors of about equal length, and long (section 1: a score of 8 with itself); a longer one can win ("is" prefers "sleeping"). With projections only if the task asks for it. | sections 1, 2 |
# | "The query of a word means ..." | Only the product $W_q W_k^\top$ counts; single queries can be changed at will. | section 2 |
# | "Queries and keys could share a matrix." | Then scores are symmetric. The row can still be learned, the ring cannot. | section 4 |
# | "Self-attention does less work than a recurrent network." | It does more, but no word waits for another. | section 9 |
# | "A recurrent network must wait." | One with tanh must. A linear recurrence need not. | section 9 |
#
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | query | $Q = X W_q$ | `W_q (d_model, d_k)` | what a word looks for |
# | key | $K = X W_k$ | `W_k (d_model, d_k)` | how a word is found |
# | value | $V = X W_v$ | `W_v (d_model, d_v)` | what a word gives |
# | self-attention | $\operatorname{softmax}(QK^\top/\sqrt{d_k})\,V$ | `SelfAttention`, `TorchSelfAttention` | each word reads its own text |
# | `nn.Linear` | $x \cdot \text{weight}^\top$ | weight `(d_out, d_in)`, transposed | the same in torch |
# | equivariance | $f(PX) = P f(X)$ | `permutation_error` | the order is not known |
# | cost | grows like $n^2$ | `attention_cost` | quadratic, but no waiting |
#
# ## Check yourself
#
# <details><summary>1. $d_{model} = 512$, $d_k = 64$, $d_v = 128$, a text of 10 words. Which shapes
# have $W_q$, $W_v$, the weights and the output? How many numbers does the layer learn?</summary>
#
# $W_q$ is `(512, 64)`, $W_v$ is `(512, 128)`, the weights are `(10, 10)`, the output is `(10,
# 128)`. It learns $512 \cdot (64 + 64 + 128) = 131{,}072$ numbers, whatever the length of the
# text.
#
# </details>
#
# <details><summary>2. A text contains the same word twice, and there are no position vectors. What
# do the two rows of the output look like?</summary>
#
# They are equal: both have the same query, and see the same keys and values. In section 5 that
# holds for the two "the".
#
# </details>
#
# <details><summary>3. Why can "tired" look at its noun in one layer, but "it" cannot?</summary>
#
# The query of "tired" is made from "tired", so it can ask for an animal. The query of "it" is made
# from "it" alone. It must first take something from the adjective, and that takes a layer.
#
# </details>
#
# <details><summary>4. Your friend's layer gives good results for a batch with one sentence and
# other results for the same sentence in a batch of three. What do you look at first?</summary>
#
# The shape of the weights. They should be `(batch, n, n)`. If they are `(n, batch, batch)`, the
# batch stands on the axis of the words.
#
# </details>
#
# <details><summary>5. Is a layer with a padding mask still equivariant?</summary>
#
# If the mask moves with the words, yes. If it stays where it was while the words move, no: then it
# hides other words.
#
# </details>
#
# ## References
#
# - Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin (2017), *Attention Is All
#   You Need*: self-attention in every layer; its Table 1 compares it with recurrent layers.
# - Uszkoreit (2017), *Transformer: A Novel Neural Network Architecture for Language Understanding*,
#   a blog post: the sentence about the animal, with a map from a deep model.
# - Levesque, Davis, Morgenstern (2012), *The Winograd Schema Challenge*: pairs of sentences
#   in which one word decides what the pronoun means.
# - Lee, Lee, Kim, Kosiorek, Choi, Teh (2019), *Set Transformer*: attention for sets, where not
#   knowing the order is wanted.
# - Jain, Wallace (2019), *Attention is not Explanation*, and Wiegreffe, Pinter (2019), *Attention
#   is not not Explanation*: what a map shows and what it does not.
#
# ## What comes next
#
# One layer gives one map: one average for each word. A word often needs several things at once,
# such as the word before it *and* the noun it belongs to. Lesson 5 lets several attentions work
# side by side: multi-head attention.
