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

from lesson_kit.batteries import (
    assert_as_reference,
    assert_each_alone,
    assert_slopes,
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
# Answer from memory first, and look it up only if you must: you remember something longer if you
# recall it yourself than if you read it again.
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
# Nothing is left for the neighbours: the layer is an expensive way to copy $X$. A word needs
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


# %% check="SelfAttention" points=4 means="A text can attend to itself: queries, keys and values are three projections of the same words." card=["draws three matrices from the `np.random.Generator`", "Three independent random draws", "returns `(output, weights)`", "as they are when it is called", "broadcastable to the weights, `True` = may attend", "A word that may attend to nothing gets weights 0 and output 0", "any number of leading batch axes"]
@probe
def layer_of(sizes, W=None, X=None, mask=True):
    layer = SelfAttention(*sizes, np.random.default_rng(1))
    if W is None:
        return [getattr(layer, name, None) for name in ("W_q", "W_k", "W_v")]
    layer.W_q, layer.W_k, layer.W_v = W
    return layer.forward(X.copy()) if mask is True else layer.forward(X.copy(), mask.copy())

def compare(shape, d_k, d_v, mask, question):
    X, sizes = rng.normal(size=shape), (shape[-1], d_k, d_v)
    W = [rng.normal(size=(shape[-1], d)) / 2 for d in (d_k, d_k, d_v)]
    Q, K, V = (torch.tensor(X @ one) for one in W)
    scores = torch.where(torch.tensor(mask), Q @ K.mT / math.sqrt(d_k), -math.inf)
    weights = torch.softmax(scores, -1).nan_to_num()
    both = layer_of(sizes, W, X, mask)
    assert_equal(isinstance(both, (tuple, list)), True, "forward returns (output, weights).")
    assert_close(both[1], weights.numpy(), f"X {shape}, d_k = {d_k}: {question}", name="weights")
    message = "The weights are right. The output is their average of the rows of X @ W_v."
    assert_close(both[0], (weights @ V).numpy(), f"X {shape}: {message}", name="output")

rng = check_rng()
with check("three random matrices of the right shapes", points=1):
    message = "With d_model 6, d_k 3, d_v 2 the attributes W_q, W_k, W_v have these shapes."
    assert_equal([np.shape(W) for W in layer_of((6, 3, 2))], [(6, 3), (6, 3), (6, 2)], message)
    numbers = np.unique([abs(x) for W in layer_of((40, 20, 30)) for x in np.ravel(W)])
    message = "Three independent draws: hardly two of their 2800 numbers are equal."
    assert_equal(min(numbers.size, 2780), 2780, message, name="how many differ, at most 2780,")
with check("one text", points=0.75):
    compare((5, 4), 4, 4, True, "Are queries made by X @ W_q and keys by X @ W_k, as these are now?")
with check("d_model, d_k and d_v that differ", points=0.75):
    compare((5, 6), 3, 2, True, "Is the scale the square root of d_k?")
with check("two texts, sizes that differ", points=0.5):
    compare((2, 5, 6), 3, 2, True, "Does each text attend to itself?")
with check("a mask for two texts, sizes that differ", points=0.5):
    compare((2, 5, 6), 3, 2, np.arange(5) < 4, "The mask hides the last word, before the softmax.")
with check("two texts, a word that may attend to nothing", points=0.5):
    compare((2, 5, 6), 3, 2, np.arange(5)[:, None] != 2, "That is word 2: its weights are 0.")
checks_passed("SelfAttention")


# %% check="SelfAttention_draws" points=2.5 card=["draws three matrices from the `np.random.Generator`", "NumPy's and torch's global random states are neither used nor changed"]
# Hidden checks of SelfAttention: every number is drawn from rng, and from it alone.
### BEGIN HIDDEN TESTS
@probe
def drawn(seed, state):
    np.random.seed(state)
    torch.manual_seed(state)
    before = np.random.get_state()[1:3], torch.get_rng_state()
    rng = np.random.default_rng(seed)
    layers = [SelfAttention(6, 3, 4, rng) for _ in range(2)]
    after = np.random.get_state()[1:3], torch.get_rng_state()
    return [[one.W_q, one.W_k, one.W_v] for one in layers], before, after

seed = int(check_rng().integers(2**31))
names = ("W_q", "W_k", "W_v")
(first, second), before, after = drawn(seed, 1)
with check("the same seed gives the same matrices", points=1):
    (again, _), _, _ = drawn(seed, 2)
    for name, one, other in zip(names, again, first, strict=True):
        assert_equal(bool(np.ptp(one) > 0), True, f"{name} holds numbers that differ, and no NaN.")
        message = f"{name} of two layers from one seed. Check first: does every number come from rng?"
        assert_close(one, other, message, name=name, against="in the first call")
with check("another seed, or a second layer from one rng: other matrices", points=1.25):
    (others, _), _, _ = drawn(seed + 1, 1)
    for what, matrices in (("another seed", others), ("a second layer from the same rng", second)):
        for name, one, other in zip(names, matrices, first, strict=True):
            message = f"{what}: {name} holds other numbers. Check first: is rng itself asked for them?"
            differs = bool(np.abs(one - other).max() > 1e-9)
            assert_equal(differs, True, message, name=f"'{name} differs' (NaN does not)")
with check("the global random states stay as they are", points=0.25, side=True):
    assert_equal(after, before, "The global random state was changed. Draw with rng's own methods.")
checks_passed("SelfAttention")
### END HIDDEN TESTS


# %% check="SelfAttention_attributes" points=2 card="uses the attributes as they are when it is called"
# Hidden checks of SelfAttention: forward uses the attributes as they are when it is called.
### BEGIN HIDDEN TESTS
@probe
def results(X, steps):
    layer = SelfAttention(6, 3, 4, np.random.default_rng(0))
    made = []
    for step, new in steps:
        if step == "replaced":
            layer.W_q, layer.W_k, layer.W_v = (W.copy() for W in new)
        elif step == "changed in place":
            layer.W_q[...], layer.W_k[...], layer.W_v[...] = new
        used = [layer.W_q.copy(), layer.W_k.copy(), layer.W_v.copy()]
        made.append((used, layer.forward(X.copy())))
    return made

rng = check_rng()
X = rng.normal(size=(2, 5, 6))
new = [[rng.normal(size=(6, d)) / 2 for d in (3, 3, 4)] for _ in range(2)]
made = results(X, [("as drawn", None), ("changed in place", new[0]), ("replaced", new[1])])

def compare(when, both, matrices):
    Q, K, V = (torch.tensor(X @ W) for W in matrices)
    weights = torch.softmax(Q @ K.mT / math.sqrt(3), -1)
    message = f"W_q, W_k and W_v {when}: are the attributes read when forward is called?"
    by = "in torch, with these three"
    assert_close(both[1], weights.numpy(), message, name="weights", against=by)
    assert_close(both[0], (weights @ V).numpy(), message, name="output", against=by)

with check("as drawn", points=0.5):
    compare("as drawn", made[0][1], made[0][0])
with check("changed in place after a call", points=0.75):
    compare("changed in place after a call", made[1][1], new[0])
with check("replaced after a call", points=0.75):
    compare("replaced after a call", made[2][1], new[1])
checks_passed("SelfAttention")
### END HIDDEN TESTS


# %% check="SelfAttention_batches" points=3.5 card=["any number of leading batch axes", "boolean, broadcastable to the weights", "A word that may attend to nothing gets weights 0 and output 0"]
# Hidden checks of SelfAttention: batch axes; masks of all shapes that broadcast; empty rows.
### BEGIN HIDDEN TESTS
@probe
def forward_of(W, X, mask):
    layer = SelfAttention(6, 3, 4, np.random.default_rng(0))
    layer.W_q, layer.W_k, layer.W_v = W
    return layer.forward(X.copy(), mask=mask)

rng = check_rng()

def compare(lead, shape, empty=None):
    """With a mask of this shape, in whose rows `empty` nothing may be attended to."""
    X = rng.normal(size=(*lead, 5, 6))
    W = [rng.normal(size=(6, d)) / 2 for d in (3, 3, 4)]
    mask = None if shape is None else rng.random(shape) < 0.5
    if shape is not None:
        mask[..., 1] = True
    if empty:
        mask[..., empty, :] = False
    Q, K, V = (torch.tensor(X @ one) for one in W)
    keep = torch.tensor(True if mask is None else mask)
    scores = torch.where(keep, Q @ K.mT / math.sqrt(3), -math.inf)
    weights = torch.softmax(scores, -1).nan_to_num()
    output, found = forward_of(W, X, mask)
    case = f"X {X.shape}, mask {shape}"
    message = f"{case}: torch's weights, of shape {tuple(weights.shape)}, 0 where the mask is False."
    assert_close(found, weights.numpy(), message, name="weights")
    message = f"{case}: the weights are right; the output is their average of the rows of X @ W_v."
    assert_close(output, (weights @ V).numpy(), message, name="output")

with check("one text, mask=None", points=0.75):
    compare((), None)
with check("a batch axis, also of length 1", points=0.5):
    compare((7,), None)
    compare((1,), None)
with check("two batch axes", points=0.25):
    compare((2, 3), None)
with check("one text and a mask", points=0.75):
    compare((), (5,))
    compare((), (5, 5))
with check("one text, and words that may attend to nothing", points=0.5):
    compare((), (5, 5), [0, 2])
with check("several texts and one mask", points=0.25):
    compare((2,), (5, 5))
    compare((7,), (5,))
with check("a mask for each text", points=0.25):
    compare((2,), (2, 1, 5))
with check("two batch axes, and a mask for each text, or for each first one", points=0.25):
    compare((2, 3), (2, 3, 5, 5))
    compare((2, 3), (2, 1, 1, 5))
checks_passed("SelfAttention")
### END HIDDEN TESTS


# %% check="SelfAttention_inputs" points=1 card=["The conventions of lesson 1 hold, for the attributes too", "Whole numbers", "the result is at least as precise as the most precise input", "Arguments are not changed"]
# Hidden checks of SelfAttention: whole numbers; all digits of float64; X and the mask afterwards.
### BEGIN HIDDEN TESTS
@probe
def results(W, X):
    layer = SelfAttention(6, 3, 4, np.random.default_rng(0))
    layer.W_q, layer.W_k, layer.W_v = W
    mask = np.arange(5)[:, None] != 2
    return layer.forward(X, mask), X, mask

rng = check_rng()
X, whole = rng.normal(size=(5, 6)), rng.integers(-2, 3, (5, 6))
W = [rng.normal(size=(6, d)) / 2 for d in (3, 3, 4)]
whole_W = [rng.integers(-1, 2, (6, 3)), *W[1:]]
with check("whole numbers in X or W_q, an empty row in the mask: as in float64", points=0.25):
    for what, matrices, words in (("X", W, whole), ("W_q", whole_W, X)):
        found, _, _ = results(matrices, words)
        same, _, _ = results([one.astype(float) for one in matrices], words.astype(float))
        message = "The output differs from word to word, and holds no NaN."
        assert_equal(bool(np.ptp(same[0]) > 1e-3), True, message)
        message = f"Whole numbers in {what} alone. Check first: are fractions cut off?"
        for name, one, other in zip(("output", "weights"), found, same, strict=True):
            close = {"rtol": 1e-4, "atol": 1e-5}
            assert_close(one, other, message, name=name, against="for float64", **close)
with check("float64, an empty row in the mask: all digits", points=0.25):
    (output, weights), _, _ = results(W, X)
    Q, K, V = (torch.tensor(X @ matrix) for matrix in W)
    scores = torch.where(torch.arange(5)[:, None] != 2, Q @ K.mT / math.sqrt(3), -math.inf)
    exact = torch.softmax(scores, -1).nan_to_num()
    message = "X and the matrices are float64: the results are torch's, in every digit of float64."
    assert_close(weights, exact.numpy(), message, name="weights", precise=True)
    assert_close(output, (exact @ V).numpy(), message, name="output", precise=True)
with check("X and the mask stay as they are", points=0.5, side=True):
    _, X_after, mask_after = results(W, X.copy())
    assert_equal(X_after, X, "X was changed by forward.", name="X")
    before = np.arange(5)[:, None] != 2
    assert_equal(mask_after, before, "The mask was changed by forward.", name="mask")
checks_passed("SelfAttention")
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


# %% check="TorchSelfAttention" points=4 means="The same layer as an nn.Module: a model that uses it can be trained." card=["`W_k`, `W_v` are `nn.Linear` layers **without bias**, from `d_model` features to `d_k`, `d_k` and `d_v`", "returns `(output, weights)`; gradients flow through **both**", "Any number of leading batch axes", "Masks, and words that may attend to nothing, as in exercise 1"]
@probe
def attend(W_q, W_k, W_v, X=None, mask=None, flow=False):
    torch.manual_seed(0)
    layer = TorchSelfAttention(W_q.shape[1], len(W_q), len(W_v))
    if X is None:
        return str(layer)
    layer.load_state_dict({"W_q.weight": W_q, "W_k.weight": W_k, "W_v.weight": W_v}, strict=False)
    both = layer(X) if mask is None else layer(X, mask)
    return [one.requires_grad for one in both] if flow else both

def by_torch(W_q, W_k, W_v, X, mask=True):
    scores = F.linear(X, W_q) @ F.linear(X, W_k).mT / math.sqrt(len(W_q))
    weights = torch.where(torch.as_tensor(mask), scores, -math.inf).softmax(-1).nan_to_num()
    return weights @ F.linear(X, W_v), weights

def compare(shape, d_k, d_v, message, *mask):
    sizes = ((d_k, shape[-1]), (d_k, shape[-1]), (d_v, shape[-1]), shape)
    given = [torch.tensor(rng.normal(size=size)).float() / 1.5 for size in sizes]
    case, names = {f"X {shape}, d_k = {d_k}": [*given, *mask]}, ("output", "weights")
    assert_as_reference(attend, by_torch, case, message, names=names)

rng = check_rng()
with check("three projections", points=0.75):
    said, sizes = attend(*(torch.ones(d, 6) for d in (3, 3, 2))), zip("qkv", (3, 3, 2))
    parts = [f"(W_{w}): Linear(in_features=6, out_features={d}, bias=False)" for w, d in sizes]
    missing = [part for part in parts if part not in said]
    assert_equal(missing, [], "Its parts, for d_model 6, d_k 3, d_v 2.", name="what is missing")
with check("two texts", points=1.25):
    compare((2, 5, 4), 4, 4, "Do queries come from W_q, and keys from W_k?")
    compare((2, 5, 6), 3, 2, "Is the scale the square root of d_k?")
with check("one text", points=0.5):
    compare((5, 6), 3, 2, "No axis of texts. Is the softmax along the last axis?")
with check("a mask for two texts", points=0.75):
    compare((2, 5, 6), 3, 2, "The mask hides the last word.", torch.arange(5) < 4)
with check("two texts, a word that may attend to nothing", points=0.5):
    compare((2, 5, 6), 3, 2, "Word 2 has weights 0.", torch.arange(5)[:, None] != 2)
with check("both results have a gradient", points=0.25):
    flows = attend(*[torch.eye(6)] * 3, torch.ones(2, 5, 6), flow=True)
    assert_equal(flows, [True, True], "They require a gradient.", name="whether they do")
checks_passed("TorchSelfAttention")


# %% check="TorchSelfAttention_parameters" points=1.5 card=["is an `nn.Module`", "Its parts `W_q`, `W_k`, `W_v` are `nn.Linear` layers"]
# Hidden checks of TorchSelfAttention: three weights that an optimizer finds and trains.
### BEGIN HIDDEN TESTS
@probe
def parameters():
    layer = TorchSelfAttention(6, 3, 4)
    return [(name, *p.shape, p.requires_grad) for name, p in sorted(layer.named_parameters())]

@probe
def before_and_after(X, new):
    layer, other = TorchSelfAttention(6, 3, 4), TorchSelfAttention(6, 3, 4)
    before = layer(X.clone())
    for one in (layer, other):
        one.load_state_dict(new)
    return before, layer(X.clone()), other(X.clone())

rng = check_rng()
shapes = {"W_k": (3, 6), "W_q": (3, 6), "W_v": (4, 6)}
with check("three weights, all of them trainable", points=1):
    expected = [(f"{name}.weight", *shape, True) for name, shape in shapes.items()]
    message = "The parameters for d_model 6, d_k 3, d_v 4: name, shape, and whether it is trained."
    assert_equal(parameters(), expected, message, name="the parameters")
with check("a step of training, after a first call: as a new layer with these weights", points=0.5):
    new = {f"{name}.weight": torch.tensor(rng.normal(size=s)) for name, s in shapes.items()}
    X = torch.tensor(rng.normal(size=(2, 5, 6))).float()
    before, found, expected = before_and_after(X, {name: W.float() for name, W in new.items()})
    for place, name in enumerate(("output", "weights")):
        message = f"With other weights in its parts the layer should have another {name}."
        moved = bool((found[place] - before[place]).abs().max() > 1e-3)
        assert_equal(moved, True, message, name="'it has' (NaN has not)")
        message = "The layer should use the weights that its parts have when it is called."
        against = "from a new layer with them"
        assert_close(found[place], expected[place].detach(), message, name=name, against=against)
checks_passed("TorchSelfAttention")
### END HIDDEN TESTS


# %% check="TorchSelfAttention_batches" points=2.5 card=["Any number of leading batch axes", "Masks, and words that may attend to nothing, as in exercise 1", "boolean, broadcastable to (..., n, n); True = may attend"]
# Hidden checks of TorchSelfAttention: batch axes; masks of all shapes that broadcast; empty rows.
### BEGIN HIDDEN TESTS
@probe
def attend(W_q, W_k, W_v, X, mask=None):
    torch.manual_seed(0)
    layer = TorchSelfAttention(W_q.shape[1], len(W_q), len(W_v)).double()
    for part, W in ((layer.W_q, W_q), (layer.W_k, W_k), (layer.W_v, W_v)):
        part.weight.data.copy_(W)
    return layer(X, mask=mask)

def masked_by_torch(W_q, W_k, W_v, X, mask):
    scores = F.linear(X, W_q) @ F.linear(X, W_k).mT / math.sqrt(len(W_q))
    weights = torch.where(mask, scores, -math.inf).softmax(-1).nan_to_num()
    return weights @ F.linear(X, W_v), weights

rng = check_rng()
W = [torch.tensor(rng.normal(size=(d, 6)) / 2) for d in (3, 3, 4)]
names = ("output", "weights")

def texts(*lead):
    return torch.tensor(rng.normal(size=(*lead, 5, 6)))

def compare(lead, shape, empty=None):
    """With a mask of this shape, in whose rows `empty` nothing may be attended to."""
    mask = torch.tensor(rng.random(shape) < 0.5)
    mask[..., 1] = True
    if empty:
        mask[..., empty, :] = False
    message = "the results should be torch's, with weights 0 where the mask is False."
    given = {f"X {(*lead, 5, 6)}, mask {shape}": (*W, texts(*lead), mask)}
    assert_as_reference(attend, masked_by_torch, given, message, names=names)

with check("one batch axis, also of length 1: each text comes out as it does alone", points=0.5):
    assert_each_alone(attend, [(*W, texts(3)), (*W, texts(1))], names=names)
with check("two batch axes: each text comes out as it does alone", points=0.5):
    assert_each_alone(attend, [(*W, texts(2, 3))], names=names)
with check("one text and a mask", points=0.5):
    compare((), (5,))
    compare((), (5, 5))
with check("words that may attend to nothing", points=0.25):
    compare((2,), (5, 5), [0, 2])
with check("several texts and one mask", points=0.25):
    compare((2,), (5, 5))
    compare((7,), (5,))
with check("a mask for each text", points=0.25):
    compare((2,), (2, 1, 5))
with check("two batch axes, and a mask for each text, or for each first one", points=0.25):
    compare((2, 3), (2, 3, 5, 5))
    compare((2, 3), (2, 1, 1, 5))
checks_passed("TorchSelfAttention")
### END HIDDEN TESTS


# %% check="TorchSelfAttention_gradients" points=1.5 card=["gradients flow through **both**, to `X` and to all three projections", "All gradients stay finite"]
# Hidden checks of TorchSelfAttention: gradients through output and weights, also with empty rows.
### BEGIN HIDDEN TESTS
@probe
def run(W_q, W_k, W_v, X, mask, sums=None):
    torch.manual_seed(0)
    layer = TorchSelfAttention(6, 3, 4).double()
    for part, W in ((layer.W_q, W_q), (layer.W_k, W_k), (layer.W_v, W_v)):
        part.weight.data.copy_(W)
    leaf = X.clone().requires_grad_()
    both = layer(leaf.clone(), mask)
    if sums is None:
        return [one.detach() for one in both]
    total = sum((one * times).sum() for one, times in zip(both, sums, strict=True))
    if total.requires_grad:
        total.backward()
    return [one.grad for one in (layer.W_q.weight, layer.W_k.weight, layer.W_v.weight, leaf)]

rng = check_rng()
shapes = {"W_q": (3, 6), "W_k": (3, 6), "W_v": (4, 6), "X": (2, 5, 6)}
given = {name: torch.tensor(rng.normal(size=shape)) / 2 for name, shape in shapes.items()}

def compare(mask):
    assert_slopes(
        lambda *tensors: run(*tensors, mask),
        lambda *tensors: run(*tensors[:4], mask, list(tensors[4:])),
        given,
        "The gradient should be the slope of your own results. Check first: is something detached?",
    )

with check("without a mask: the slopes of your results", points=0.75):
    compare(None)
with check("beside a word that may attend to nothing: the slopes of your results", points=0.75):
    compare(torch.arange(5)[:, None] != 2)
checks_passed("TorchSelfAttention")
### END HIDDEN TESTS


# %% check="TorchSelfAttention_inputs" points=0.5 card=["a layer in float64 (`layer.double()`) computes in float64", "Arguments are not changed"]
# Hidden checks of TorchSelfAttention: all digits of float64; X, the mask and the weights afterwards.
### BEGIN HIDDEN TESTS
@probe
def attend(W_q, W_k, W_v, X, mask):
    layer = TorchSelfAttention(6, 3, 4).double()
    parts = layer.W_q.weight, layer.W_k.weight, layer.W_v.weight
    for part, W in zip(parts, (W_q, W_k, W_v), strict=True):
        part.data.copy_(W)
    both = layer(X, mask)
    return both, [*(part.detach() for part in parts), X, mask]

rng = check_rng()
W = [torch.tensor(rng.normal(size=(d, 6)) / 2) for d in (3, 3, 4)]
X, mask = torch.tensor(rng.normal(size=(2, 5, 6))), torch.arange(5)[:, None] != 2
with check("float64, an empty row in the mask: all digits", points=0.25):
    (output, weights), _ = attend(*W, X.clone(), mask.clone())
    scores = F.linear(X, W[0]) @ F.linear(X, W[1]).mT / math.sqrt(3)
    exact = torch.where(mask, scores, -math.inf).softmax(-1).nan_to_num()
    precise = {"rtol": 1e-10, "atol": 1e-13, "precise": True}
    message = "After layer.double() the results are torch's in every digit of float64."
    assert_close(weights, exact, message, name="weights", **precise)
    assert_close(output, exact @ F.linear(X, W[2]), message, name="output", **precise)
with check("X, the mask and the layer's weights stay as they are", points=0.25, side=True):
    assert_unchanged(
        lambda *given: attend(*given)[1], W_q=W[0], W_k=W[1], W_v=W[2], X=X, mask=mask
    )
checks_passed("TorchSelfAttention")
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
# Three seeds each: three projections on the ring, $W_k = W_q$ on the ring, $W_k = W_q$ on the row. The cell
# prints the share of words whose predecessor was named correctly. Guessing gives 0.05.

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

# %% [markdown]
# One word more or less decides. The maps of seed 0 on "the black cat is sleeping" tell how.


# %% tags=["demonstration", "nbval-ignore-output"]
# The weights come from training: they may differ in the last digit on another machine.
def map_of(trained, text=("the", "black", "cat", "is", "sleeping")):
    """Weights of a trained layer on a text: (5, 5)."""
    layer, table, places, *_ = trained
    with torch.no_grad():
        return layer(table[[VOCABULARY.index(word) for word in text]] + places)[1].numpy()


figure, panels = plt.subplots(1, 3, figsize=(8.1, 3.3), layout="constrained")
ring_maps = {name: map_of(trained[0]) for name, trained in ring_runs.items()}
for axes, (name, weights) in zip(panels, ring_maps.items()):
    draw_heatmap(axes, weights, words if axes is panels[0] else [""] * 5, words)
    axes.set(title=name, ylabel="query" if axes is panels[0] else "")
for place in (1, 3):  # the two neighbours of "cat"
    panels[1].add_patch(plt.Rectangle((place, 2), 1, 1, fill=False, edgecolor="tab:red", lw=2))
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
    "Figure 1. Middle: around a ring, symmetric scores cannot prefer the word before; both neighbours get "
    "the same (framed for 'cat'). Right: in the row they can, although the scores are symmetric too.",
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
    caption="Figure 2. After training, 'tired' looks at the animal and 'wide' at the street. What it has "
    "learned is which of 8 adjectives goes with which of 16 nouns.",
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
    caption="Figure 3. The row of 'it' in the second layer, for three models that all solve the task. Do not "
    "conclude from such a map which noun the model has found.",
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


# %% check="permutation_error" points=3 means="Your measure tells a layer that knows the order of its rows from one that does not." card=["the **largest absolute difference** between the two outputs", "Permuting means taking the rows in the order of `permutation`", "Returns one `float`", "any number of leading batch axes"]
@probe
def error_of(kind, X, permutation):
    def attention(X):
        steps = np.arange(X.shape[-2])[:, None]
        if kind == "adds 0, 1, 2, 3 to the rows":
            return X + steps, np.eye(len(steps))  # the weights are not compared
        if kind == "multiplies each column by a number of its own":
            return X * np.arange(1, X.shape[-1] + 1), np.eye(len(steps)) * steps
        return scaled_dot_product_attention(X, X, X)

    return permutation_error(attention, X.copy(), permutation)

X = check_rng().normal(size=(4, 3))
with check("a layer that knows the order", points=1.25):
    for order, moves in (([1, 2, 3, 0], "-1, -1, -1, 3"), ([3, 0, 1, 2], "-3, 1, 1, 1")):
        message = (
            f"A layer adds 0, 1, 2, 3 to the rows. With the permutation {order} the two outputs "
            f"differ by {moves} in their rows: the largest absolute difference is 3."
        )
        assert_close(error_of("adds 0, 1, 2, 3 to the rows", X, order), 3.0, message)
with check("a float; 0 for layers that do not know the order", points=1.25):
    found = error_of("adds 0, 1, 2, 3 to the rows", X, [1, 2, 3, 0])
    message = "The result is one float, and above 0 for a layer that adds 0, 1, 2, 3 to the rows."
    assert_equal(bool(isinstance(found, float) and found > 1e-6), True, message)
    for kind in ("multiplies each column by a number of its own", "attends, Q = K = V = X"):
        message = (
            f"A layer that {kind} is equivariant: its error is 0. Check first: are rows permuted, of "
            "X before one call and of the output after the other, with the same permutation?"
        )
        assert_close(error_of(kind, X, [2, 0, 3, 1]), 0.0, message, atol=1e-12)
with check("two equal texts: the error of one alone", points=0.5):
    message = "The rows of each text are permuted, not the texts."
    kind, order = "adds 0, 1, 2, 3 to the rows", np.array([3, 0, 1, 2])
    alone, both = (error_of(kind, x, order) for x in (X, np.stack([X, X])))
    assert_equal(bool(alone > 1e-3), True, "A layer that adds 0, 1, 2, 3 has an error above 0.")
    assert_close(both, float(alone), message, against="for one text alone")
checks_passed("permutation_error")


# %% check="permutation_error_values" points=1.75 card=["the **largest absolute difference** between the two outputs", "Only the outputs are compared", "any number of leading batch axes"]
# Hidden checks of permutation_error: other layers; batches; small errors.
### BEGIN HIDDEN TESTS
@probe
def error_of(kind, X, permutation):
    def attention(X):
        steps = np.arange(X.shape[-2], dtype=X.dtype)[:, None]
        weights = np.eye(len(steps)) * steps  # far from equivariant, and not compared
        if kind == "adds up the rows so far":
            return np.cumsum(X, axis=-2), weights
        if kind == "takes three times the row number away, and repeats itself":
            return np.concatenate([X, X - 3 * steps], axis=-1), weights
        return X - X.mean(axis=-2, keepdims=True), weights  # equivariant

    return permutation_error(attention, X.copy(), permutation)

def told(X):
    """The error of a layer that adds up the rows, which no constant is."""
    error = error_of(sums, X, order)
    nothing_moves = error_of(sums, X, [0, 1, 2, 3, 4])
    message = f"A layer that {sums} has an error above 0, and of 0 where nothing moves."
    right = bool(error > 1e-3 and abs(nothing_moves) < 1e-9)
    assert_equal(right, True, message, name="'it has' (NaN has not)")
    return error

def wanted(X):
    """The largest difference of the layer that adds up the rows so far."""
    moved = np.stack([X[..., i, :] for i in order], axis=-2)
    sums = np.stack([X[..., : i + 1, :].sum(axis=-2) for i in order], axis=-2)
    return float(np.abs(np.cumsum(moved, axis=-2) - sums).max())

rng = check_rng()
order, sums = [2, 0, 3, 4, 1], "adds up the rows so far"
lines = "takes three times the row number away, and repeats itself"
X = rng.normal(size=(5, 4))
with check("two layers that know the order", points=0.5):
    message = "A layer that {}: the largest absolute difference, over all rows and features."
    assert_close(error_of(sums, X, order), wanted(X), message.format(sums))
    assert_close(error_of(lines, X, order), 9.0, message.format(lines))
with check("a layer that does not know the order", points=0.25):
    told(X)
    message = "A layer that takes the mean of all rows away is equivariant, one that adds up is not."
    assert_close(error_of("mean", X, order), 0.0, message, atol=1e-12)
with check("a small error keeps its digits", points=0.25):
    large, small = told(X), error_of(sums, 1e-6 * X, order)
    message = "With 1e-6 times X the error is 1e-6 times as large. Check first: is it rounded?"
    assert_close(1e6 * small, large, message, name="1e6 times it", against="for X")
with check("one batch axis: the largest of its texts", points=0.5):
    texts = rng.normal(size=(6, 5, 4))
    texts[1] *= 2
    alone = [told(text) for text in texts]
    message = "X (6, 5, 4): the largest of the errors that its six texts have alone."
    assert_close(error_of(sums, texts, order), max(alone), message, against="of the largest")
with check("two batch axes: the largest of all texts", points=0.25):
    message = "X (2, 3, 5, 4): as with the same six texts along one axis."
    largest = max(told(text) for text in texts)
    found = error_of(sums, texts.reshape(2, 3, 5, 4), order)
    assert_close(found, largest, message, against="of the largest text alone")
checks_passed("permutation_error")
### END HIDDEN TESTS


# %% check="permutation_error_result" points=0.75 card=["a list or a 1-D integer array", "Whole numbers", "Returns one `float`"]
# Hidden checks of permutation_error: the permutation as list or array; whole numbers; one float.
### BEGIN HIDDEN TESTS
@probe
def error_of(X, permutation):
    def attention(X):
        return X + 2 * np.arange(len(X), dtype=X.dtype)[:, None], np.eye(len(X))

    error = permutation_error(attention, X, permutation)
    return float(error), isinstance(error, (float, np.floating)), type(error).__name__

rng = check_rng()
X, integers = rng.normal(size=(4, 3)), rng.integers(-9, 10, (4, 3))

def compare(x, permutation, message, against):
    """With the error for float64 and a list."""
    error, nothing_moves = error_of(x.astype(float), [1, 2, 3, 0])[0], error_of(x, [0, 1, 2, 3])[0]
    right = bool(error > 1e-3 and abs(nothing_moves) < 1e-9)
    known = "A layer that adds 0, 2, 4, 6 has an error above 0, and of 0 where nothing moves."
    assert_equal(right, True, known, name="'it has' (NaN has not)")
    assert_close(error_of(x, permutation)[0], error, message, against=against)

with check("the permutation as an array: as the list", points=0.25):
    compare(X, np.array([1, 2, 3, 0]), "[1, 2, 3, 0] as an array.", "with the list")
with check("X of whole numbers: as in float64", points=0.25):
    compare(integers, [1, 2, 3, 0], "X of whole numbers, and so the output.", "in float64")
with check("one float, also for X of whole numbers", points=0.25, side=True):
    for x in (X, integers):
        _, is_float, kind = error_of(x, [1, 2, 3, 0])
        message = f"X of dtype {x.dtype}: one float is asked for, and the type is {kind}."
        assert_equal(is_float, True, message, name="'it is a float'")
checks_passed("permutation_error")
### END HIDDEN TESTS


# %% check="permutation_error_inputs" points=0.5 card="`X` and `permutation` are not changed, also when `attention` returns its own input"
# Hidden checks of permutation_error: X and permutation stay as they are.
### SIDE CONDITION: counts once another check of permutation_error passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(X, permutation, keeps):
    def attention(X):
        return (X if keeps else X * np.arange(X.shape[-2])[:, None]), np.eye(X.shape[-2])

    error = permutation_error(attention, X, permutation)
    return float(error), X, permutation

X = check_rng().normal(size=(2, 4, 3))
for order in ([2, 0, 3, 1], np.array([2, 0, 3, 1])):
    for keeps in (True, False):
        _, X_after, order_after = arguments_after(X.copy(), order.copy(), keeps)
        message = (
            "X was changed by the call. Check first: the layer may return its own input, and an "
            "operator like -= would write into it."
        )
        assert_equal(X_after, X, message, name="X")
        assert_equal(order_after, order, "permutation was changed by the call.", name="permutation")
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
figure, panels = plt.subplots(2, 3, figsize=(8.1, 7.2), layout="constrained")
pattern_maps = {"untrained (random)": untrained}
pattern_maps |= {name: map_of(trained[0]) for name, trained in pattern_runs.items()}
for axes, (name, weights) in zip(panels.flat, pattern_maps.items()):
    first = axes in panels[:, 0]
    draw_heatmap(axes, weights, words if first else [""] * 5, words)
    axes.set(title=name, ylabel="query" if first else "")
panels[1, 2].set_axis_off()
assert 0.02 < untrained.min() < 0.15 and 0.28 < untrained.max() < 0.5  # small scores, not even
far = {name: np.abs(untrained - pattern).max() for name, pattern in expected_maps.items()}
assert min(far, key=far.get) == "uniform" and far["uniform"] < 0.5 * sorted(far.values())[1]
show(
    figure,
    "Figure 4. The same layer before training, and trained on each of four tasks. The maps are so clean "
    "because each layer had one task and nothing else to do.",
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


# %% check="mended_encoder" points=2 means="Each sentence comes out as it does alone, also beside longer ones." card=["a list with one output `(n, d_v)` for each sentence: what the layer gives for that sentence alone", "each with an `n` of its own"]
@probe
def encoded(sentences):
    def layer(X, mask=None):  # self-attention with fixed projections; a boolean mask, as yours
        scores = torch.sin(X) @ torch.cos(X).mT
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -1e9)
        looks = torch.softmax(scores, dim=-1)
        return looks @ X[..., :2] * 3, looks

    return list(mended_encoder(layer, [one.clone() for one in sentences]))

def alone(X):
    """What that layer gives for one sentence."""
    return torch.softmax(torch.sin(X) @ torch.cos(X).T, dim=-1) @ X[:, :2] * 3

def compare(sentences, what):
    wanted = [alone(sentence) for sentence in sentences]
    found = encoded(sentences)
    message = f"{what}: a list with one output for each sentence."
    assert_equal(len(found), len(wanted), message, name="how many outputs")
    for number, expected in enumerate(wanted):
        message = f"{what}: sentence {number} should come out as the layer gives it alone."
        name = f"the output of sentence {number}"
        assert_close(found[number], expected, message, name=name)

rng = check_rng()
sentences = [torch.tensor(rng.normal(size=(4, 5))).float() for _ in range(3)]
with check("equal lengths", points=1):
    compare(sentences, "Three sentences of four words")
with check("different lengths", points=1):
    sentences[1] = sentences[1][:2]
    compare(sentences, "Sentences of 4, 2 and 4 words")
checks_passed("mended_encoder")


# %% check="mended_encoder_batches" points=1 card=["It does not depend on the other sentences", "up to rounding, in the dtype of the sentences", "Arguments are not changed"]
# Hidden checks of mended_encoder: lists of many kinds; a word of zeros; float64; the list afterwards.
### BEGIN HIDDEN TESTS
@probe
def encoded(sentences):
    def layer(X, mask=None):
        scores = torch.tanh(X) @ X.flip(-1).mT
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -1e9)
        weights = torch.softmax(scores, dim=-1)
        return weights @ X[..., 1:], weights

    return list(mended_encoder(layer, sentences)), sentences

def alone(X):
    """What that layer gives for one sentence."""
    return torch.softmax(torch.tanh(X) @ X.flip(-1).T, dim=-1) @ X[:, 1:]

rng = check_rng()

def compare(lengths, what, precise=False, zeros=False):
    sentences = [torch.tensor(rng.normal(size=(n, 4))) for n in lengths]
    if zeros:
        sentences[0][-1] = 0.0
    given = sentences if precise else [one.float() for one in sentences]
    found, _ = encoded([one.clone() for one in given])
    message = f"Sentences of {lengths} words{what}: each comes out as if it were alone."
    assert_equal(len(found), len(lengths), message, name="how many outputs")
    for number, one in enumerate(given):
        name = f"the output of sentence {number}"
        assert_close(found[number], alone(one), message, name=name, precise=precise)

with check("sentences of other lengths, also of one word", points=0.25):
    compare((3,), "")
    compare((1, 6, 2, 4, 2), "")
with check("a word of zeros", points=0.25):
    compare((3, 5), ", the last word of the first all zeros, which is a word, too", zeros=True)
with check("sentences in float64: all their digits", points=0.25):
    compare((2, 4, 3), " in float64, and so are the outputs", precise=True)
with check("the list and its sentences stay as they are", points=0.25, side=True):
    sentences = [torch.tensor(rng.normal(size=(n, 4))).float() for n in (3, 5)]
    _, after = encoded([one.clone() for one in sentences])
    assert_equal(after, sentences, "The list was changed.", name="it", against="before the call")
checks_passed("mended_encoder")
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


# %% check="attention_cost" points=1.5 means="Both numbers come from the sizes alone: twice the words cost four times as much." card=["Returns a dictionary with exactly two keys", "those of the two products", "how many scores there are", "One multiply-add counts once", "Both values are Python `int`"]
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
        "n = 4, d_k = 7, d_v = 5: both products together. Check first: how many numbers has the "
        "result of each, and how many multiply-adds does one of them take?"
    )
    assert_close(float(cost["multiply_adds"]), 192.0, message, name="multiply_adds")
with check("both are Python int", points=0.25, side=True):
    kinds = [type(cost[name]).__name__ for name in ("multiply_adds", "score_entries")]
    assert_equal(kinds, ["int", "int"], "Both values are Python int.", name="their types")
checks_passed("attention_cost")


# %% check="attention_cost_sizes" points=1.5 card=["those of the two products", "how many scores there are", "Softmax, scale and projections are not counted"]
# Hidden checks of attention_cost: other sizes, each counted one product at a time.
### BEGIN HIDDEN TESTS
sizes = [(3, 2, 7), (7, 5, 2), *check_rng().integers(2, 9, (3, 3)).tolist()]
found = [attention_cost(*size) for size in sizes]
entries = [sum(1 for _ in range(n) for _ in range(n)) for n, _, _ in sizes]
products = [n * sum(1 for _ in range(n) for _ in range(d_k + d_v)) for n, d_k, d_v in sizes]
said = f"(n, d_k, d_v) is {', '.join(str(tuple(size)) for size in sizes)}:"

def compare(name, wanted, message):
    numbers = np.array([float(one[name]) for one in found])
    assert_close(numbers, np.array(wanted, dtype=float), f"{said} {message}", name=name)

with check("score_entries", points=0.5):
    compare("score_entries", entries, "each word has a score with each of the words.")
with check("multiply_adds", points=0.75):
    compare("multiply_adds", products, "first Q K^T with all its scores, then weights times V.")
with check("both are Python int", points=0.25, side=True):
    kinds = [[type(value).__name__ for value in one.values()] for one in found]
    assert_equal(kinds, [["int", "int"]] * 5, "Both values are Python int.", name="their types")
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
figure, (left, right) = plt.subplots(1, 2, figsize=(8.1, 3.5))
for times, marker in zip(measured.values(), ("o-", "s--")):
    left.loglog(lengths, [1e3 * t for t in times], marker)
left.text(230, 0.09, "self-attention", color="C0")
left.text(64, 2, "recurrent network", color="C1")
x = np.array(lengths[4:])
for times, power in zip(measured.values(), (2, 1)):
    left.loglog(x, 1e3 * times[-1] * (x / 4096) ** power, ":", color="grey")
    left.text(4500, 1e3 * times[-1], "like $n^2$" if power == 2 else "like $n$", color="dimgrey")
left.set(xlabel="number of words $n$", ylabel="processor time, ms", xlim=(50, 20000))
right.loglog(lengths, [4] * len(lengths), "o-")
right.loglog(lengths, lengths, "s--")
right.text(64, 5, "self-attention: 4, whatever $n$ is", color="C0")
right.text(64, 900, "recurrent network", color="C1")
right.set(xlabel="number of words $n$", ylabel="steps that wait for each other")
for axes in (left, right):
    axes.set_xticks(lengths[::2], lengths[::2])
    axes.minorticks_off()
figure.tight_layout()
growth = [times[-1] / times[-3] for times in measured.values()]  # from n = 1024 to 4096
assert growth[0] > 7 and growth[1] < 8  # about 16 for n^2, about 4 for n
show(
    figure,
    "Figure 5. Left, measured on one core; right, counted. Do not read the crossing as a law: it moves with "
    "$d$, the machine and the program. What many processors gain is not measured here.",
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
