# %% [markdown]
# ## What you will be able to do
#
# * **Compute** the hidden states of a recurrent network by hand and in NumPy.
# * **Measure** how much each input position still moves the last state.
# * **Show** on models you train here that one fixed vector is a **bottleneck** (a narrow place that
#   everything has to pass), and **say** in which sense it is no hard limit.
# * **Build** a weighted average, the operation behind "look everywhere".
# * **Read** the attention map of a small translator (the table of where it looked for each word),
#   and **tell** a map that means something from one that does not.

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
from lesson_kit.figures import heatmap, show
from lesson_kit.guesses import reply

torch.set_num_threads(1)

# %% [markdown]
# ## 1. Read once, then close the book
#
# Read this sentence once, look away, and say it in French:
#
# > the black cat is sleeping
#
# Now do the same with this one:
#
# > the small black cat that ran away from the big dog in the garden is sleeping
#
# The second is harder. You read it once, and everything you need must stay in your memory. You
# would like to **look back** at the page.
#
# The **neural** translators that made the idea known, in 2014, worked like that. They had two
# parts. The **encoder** reads the source sentence word by word and keeps a **state**: a
# vector, that is a row of numbers. The **decoder** writes the target sentence, and all it gets from
# the encoder is the last state. (Whether they had the same trouble was disputed: Cho and others saw long sentences
# fail; Sutskever and others, with larger networks and the source read backwards, wrote that theirs
# "did not have difficulty on long sentences".)
#
# Let us start with real words. A network reads vectors, so each word gets one: four numbers, at
# random for now.

# %%
rng = np.random.default_rng(1)
text = "the black cat is sleeping"
long_text = "the small black cat that ran away from the big dog in the garden is sleeping"
short, long = text.split(), long_text.split()
word_vector = {word: rng.normal(size=4) for word in sorted({*short, *long})}

X_short = np.stack([word_vector[word] for word in short])  # (n, d_in) = (5, 4)
X_long = np.stack([word_vector[word] for word in long])  # (n, d_in) = (16, 4)
print("short:", X_short.shape, "  long:", X_long.shape)

# %% [markdown]
# ### A recurrent network, one word after the other
#
# A **recurrent neural network** (RNN) has one rule and uses it at every position. The new state is
# made from the word and from the old state:
#
# $$h_t = \tanh(x_t W_x + h_{t-1} W_h), \qquad h_0 = 0$$
#
# | symbol | shape | what it is |
# | --- | --- | --- |
# | $x_t$ | `(d_in,)` | the vector of the word at position $t$ |
# | $h_t$ | `(d_h,)` | the **state** after reading words $1$ to $t$ (also called hidden state) |
# | $W_x$ | `(d_in, d_h)` | how a word enters the state |
# | $W_h$ | `(d_h, d_h)` | how the old state enters the new one |
#
# Vectors are rows and matrices stand on the right: $x_t W_x$. The function $\tanh$ squeezes each
# number into the range from $-1$ to $1$.
#
# By hand, with one number per word and a state of one number: $W_x = 1$, $W_h = 0.5$, and the words
# $1$, $0$, $0$. Then $h_1 = \tanh(1) = 0.762$, $h_2 = \tanh(0.5 \cdot 0.762) = 0.363$ and
# $h_3 = \tanh(0.5 \cdot 0.363) = 0.180$. The first word is still there in $h_3$, but it fades.

# %% [markdown]
# ### Conventions of every exercise
#
# They are said here once; later cards only refer to them.
#
# * **Whole numbers** (integer arrays, as `np.array([1, 2])` makes them) are valid input, and the
#   result is floating. Narrow kinds that overflow, such as `int8`, are not given. (In torch only
#   floating tensors are given.)
# * **Precision**: the result is at least as precise as the most precise input.
# * **Arguments are not changed.** Make new arrays.
# * **Errors**: only the errors that a card lists are graded, and of these the kind (`ValueError`),
#   not the words.
#
# Most of this is checked when your work is graded, and earns few points. The cards say what else
# counts, and the check below an exercise tries it.
#
# ### Exercise: `rnn_hidden_states`
#
# **Difficulty** ●○○○○  **Importance** ●●●●○  You should spend up to 10-15 minutes.
#
# Write `rnn_hidden_states(X, W_x, W_h, h0=None)`. It returns every state, $h_1$ to $h_n$, one row
# per position.
#
# * `X (n, d_in)`, `W_x (d_in, d_h)`, `W_h (d_h, d_h)`, `h0 (d_h,)`; the result is `(n, d_h)`.
# * `h0` is the state before the first word. When it is `None`, it is all zeros. It is not a row of
#   the result.
# * Large numbers are valid too: where the sum inside is 1000, the state is 1, not NaN.


# %% answer="rnn_hidden_states"
def rnn_hidden_states(X, W_x, W_h, h0=None):
    """All states of the network h_t = tanh(x_t W_x + h_{t-1} W_h).

    X: (n, d_in), one row per position. W_x: (d_in, d_h). W_h: (d_h, d_h).
    h0: (d_h,), the state before the first position; zeros when it is None.
    Returns: (n, d_h), the states h_1 to h_n. Changes none of its inputs.
    """
    ### BEGIN SOLUTION
    h = np.zeros(W_h.shape[0]) if h0 is None else h0
    states = []
    for x in X:
        h = np.tanh(x @ W_x + h @ W_h)
        states.append(h)
    return np.stack(states)
    ### END SOLUTION


# %% check="rnn_hidden_states" points=3.5
with check("one word alone", points=0.75):
    assert_close(
        rnn_hidden_states(np.array([[1.0, -2.0]]), np.array([[0.5], [0.25]]), np.array([[7.0]])),
        np.array([[0.0]]),
        "One word (1, -2) with W_x = (0.5, 0.25): the sum inside is 0, and so is its state.",
        atol=1e-7,
    )
    assert_close(
        rnn_hidden_states(np.array([[0.5, 1.0]]), np.array([[2.0], [0.5]]), np.array([[7.0]])),
        np.array([[0.90514825]]),
        "One word (0.5, 1) with W_x = (2, 0.5): its state is tanh(1.5) = 0.905.",
        atol=1e-7,
    )
with check("the example by hand, with another last word", points=0.75):
    # The example by hand, but its last word is -2: words 1, 0, -2; W_x = 1; W_h = 0.5.
    words = np.array([[1.0], [0.0], [-2.0]])
    assert_close(
        rnn_hidden_states(words, np.array([[1.0]]), np.array([[0.5]])),
        np.array([[0.76159416], [0.36339948], [-0.94866868]]),
        "The example by hand, with a last word of -2: the states are 0.762, 0.363 and -0.949. Check "
        "first: does each state use the one before it, is tanh taken of the whole sum, and is there "
        "one row for each word?",
        atol=1e-7,
    )

# Two numbers per word and a state of two: square matrices, so a transposed one raises no error.
words = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # (3, 2)
into, onward = np.array([[1.0, -1.0], [0.0, 0.5]]), np.array([[0.5, 0.0], [1.0, 0.5]])
with check("square matrices", points=0.5):
    assert_close(
        rnn_hidden_states(words.copy(), into.copy(), onward.copy()),
        np.array([[0.76159416, -0.76159416], [-0.36339948, 0.11864151], [0.73381399, -0.41420731]]),
        "Three words of two numbers, a state of two, square matrices: each state is tanh of the "
        "whole sum. Check first: do the vectors stand on the left of both matrices, with no matrix "
        "transposed?",
        atol=1e-7,
    )
with check("a start state", points=0.5):
    # The same words from the start state (2, 0). The first new state is tanh(2) and tanh(-1).
    assert_close(
        rnn_hidden_states(words, into, onward, np.array([2.0, 0.0])),
        np.array([[0.96402758, -0.76159416], [-0.27251666, 0.11864151], [0.75409572, -0.41420731]]),
        "The same words with a start state h0 = (2, 0): it takes the place of the zeros before the "
        "first word, and is not a row of the result.",
        atol=1e-7,
    )

# Other shapes, against torch's own network (it stores its matrices transposed).
rng = check_rng()
X, W_x = rng.normal(size=(6, 3)), rng.normal(size=(3, 4)) / 2
W_h = rng.normal(size=(4, 4)) / 2
network = nn.RNN(3, 4, bias=False, dtype=torch.float64)
network.load_state_dict({"weight_ih_l0": torch.tensor(W_x.T), "weight_hh_l0": torch.tensor(W_h.T)})
expected = network(torch.tensor(X))[0].detach().numpy()
with check("as torch's network", points=0.5):
    assert_close(
        rnn_hidden_states(X, W_x, W_h),
        expected,
        "Six words of three numbers, a state of four: the states should be those of torch's "
        "network. Check first: do the vectors stand on the left of the matrices (no transposing), "
        "and is the first state made from zeros?",
    )
with check("large numbers", points=0.5):
    assert_close(
        rnn_hidden_states(np.array([[1000.0], [-2000.0]]), np.array([[1.0]]), np.array([[0.5]])),
        np.array([[1.0], [-1.0]]),
        "Words of 1000 and -2000 give the states 1 and -1. Check first: does a power of e overflow "
        "on the way, or is the sum cut off before tanh?",
    )
checks_passed("rnn_hidden_states")

# %% check="rnn_hidden_states_start" points=1.75
# Hidden checks of rnn_hidden_states: texts with h0 and without, of many kinds.
### BEGIN HIDDEN TESTS
rng = check_rng()
n, d_in, d_h = 5, 4, 4  # square matrices: no rule stops with an error
X = rng.normal(size=(n, d_in))
W_x = rng.normal(size=(d_in, d_h)) * 0.5
W_h = rng.normal(size=(d_h, d_h)) * 0.5
# Whoever reads a text in two halves gets the same states, whatever the rule is.
read = rnn_hidden_states(X, W_x, W_h)
other = rnn_hidden_states(-X, W_x, W_h)
message = "One state for each word, (n, d_h)."
assert_equal(np.shape(other), (n, d_h), message, name="the shape")
message = "The words -X give other states than the words X, and no state is NaN."
differ = np.abs(np.asarray(other) - np.asarray(read)).max() > 1e-3
assert_equal(bool(differ), True, message, name="other states")
message = "The states are not the words themselves."
assert_equal(bool(np.abs(np.asarray(read) - X).max() > 1e-3), True, message, name="other than X")
for cut in (1, 2, 4):
    assert_close(
        rnn_hidden_states(X[cut:], W_x, W_h, h0=read[cut - 1]),
        np.asarray(read)[cut:],
        f"Reading on after word number {cut}, from the state there as h0, has to give the states that "
        "reading all at once gives. h0 takes the place of the zeros before the first word, and is "
        "no row of the result.",
        against="in one reading",
    )
assert_close(
    rnn_hidden_states(X, W_x, W_h, np.zeros(d_h)),
    read,
    "With zeros as h0 the states have to be those without h0.",
    against="without h0",
)
assert_equal(
    bool(np.isfinite(rnn_hidden_states(1e9 * X, W_x, W_h)).all()),
    True,
    "Words of very large numbers (1e9): every state is 1 or -1, and none is NaN or inf. Check "
    "first: does a power of e overflow on the way?",
)
# Two numbers that do not meet, from a start state (s, -s): the first goes on as it went from s.
words = np.array([[1.0, 0.5], [-1.0, 0.5], [0.5, -2.0]])
whole = rnn_hidden_states(words, np.eye(2), 0.9 * np.eye(2))
message = "One state for each word, (n, d_h)."
assert_equal(np.shape(whole), (3, 2), message, name="the shape")
s = float(np.asarray(whole)[0, 0])
later = rnn_hidden_states(words[1:], np.eye(2), 0.9 * np.eye(2), np.array([s, -s]))
assert_equal(np.shape(later), (2, 2), message, name="the shape with h0")
assert_close(
    np.asarray(later)[:, 0],
    np.asarray(whole)[1:, 0],
    "A start state whose numbers sum to 0 counts as any other: only None stands for zeros. "
    "Check first: how do you find out whether h0 is given?",
    name="the first number of each state",
    against="in one reading",
)
words = -np.abs(rng.normal(size=(307, 2)))
whole = rnn_hidden_states(words, np.eye(2), 0.9 * np.eye(2))
assert_equal(np.shape(whole), (307, 2), "One state for each word, (n, d_h).", name="the shape")
for cut in (1, 150):
    assert_close(
        rnn_hidden_states(words[cut:], np.eye(2), 0.9 * np.eye(2), np.asarray(whole)[cut - 1]),
        np.asarray(whole)[cut:],
        f"307 words of negative numbers: reading on after {cut} of them, from the state there as "
        "h0, has to give the states that reading all at once gives. Check first: does every word "
        "have its state, and does a start state of negative numbers count as any other?",
        against="in one reading",
    )
for told in ([0.0, 0.0, 1.0, 2.0], [1000.0, 1000.0, -2000.0, 1.0]):  # state 2 is as state 1
    words = np.array(told)[:, None]
    whole = rnn_hidden_states(words, np.eye(1), 0.5 * np.eye(1))
    message = f"Words {told} give one state each, (4, 1)."
    assert_equal(np.shape(whole), (4, 1), message, name="the shape")
    assert_close(
        rnn_hidden_states(words[2:], np.eye(1), 0.5 * np.eye(1), np.asarray(whole)[1]),
        np.asarray(whole)[2:],
        f"Words {told}, W_x = 1, W_h = 0.5: reading on after two of them, from the state there as "
        "h0, has to give the states that reading all at once gives. Check first: where a state "
        "equals the one before it, do the words behind it still count?",
        against="in one reading",
    )


@probe
def states_of_transposes(X, W_x, W_h, h0):
    return rnn_hidden_states(X.T, W_x.T, W_h.T, h0)


for n, d, kind in (  # square matrices: no rule stops with an error
    (4, 33, "any"),
    (3, 65, "above 0"),
    (3, 130, "any"),
    (3, 3, "any"),
    (4, 17, "any"),
    (65, 1, "any"),
    (4, 2, "equal words"),
    (5, 4, "words of zeros"),
):
    X = rng.normal(size=(n, d))
    if kind != "any":
        X = {"above 0": np.abs(X), "equal words": X[:1] + 0 * X, "words of zeros": 0 * X}[kind]
    W_x, W_h = rng.normal(size=(2, d, d)) / d**0.5
    h0 = rng.uniform(0.3, 0.9, size=d)
    whole = rnn_hidden_states(X=X.copy(), W_x=W_x.copy(), W_h=W_h.copy(), h0=h0.copy())
    given = f"X {(n, d)} ({kind}), W_x and W_h {(d, d)} and a start state h0"
    message = f"{given}: one state for each word, {(n, d)}."
    assert_equal(np.shape(whole), (n, d), message, name="the shape")
    message = (
        f"{given}: reading on after one word, from the state there, has to give the states that "
        "reading all at once gives."
    )
    later = rnn_hidden_states(X[1:].copy(), W_x.copy(), W_h.copy(), np.array(whole)[0])
    assert_close(later, np.asarray(whole)[1:], message, against="in one reading")
    message = f"{given}, arrays that are transposes of others: the states of arrays of their own."
    found = states_of_transposes(X.T.copy(), W_x.T.copy(), W_h.T.copy(), h0.copy())
    assert_close(found, np.asarray(whole), message, against="for arrays of their own")
X = rng.normal(size=(n, d))
message = "h0=None gives the states that no h0 gives."
without = np.asarray(rnn_hidden_states(X.copy(), W_x.copy(), W_h.copy()))
found = rnn_hidden_states(X, W_x, W_h, h0=None)
assert_close(found, without, message, against="without h0")
### END HIDDEN TESTS

# %% check="rnn_hidden_states_integers" points=0.25
# Hidden checks of rnn_hidden_states: whole numbers.
### BEGIN HIDDEN TESTS
rng = check_rng()
n, d_in, d_h = 5, 4, 4  # square matrices: no rule stops with an error
X = rng.integers(-2, 3, size=(n, d_in))
X[0] = [1, 0, 0, 1]
h0 = np.array([1, 0, -1, 1])
W_x = rng.normal(size=(d_in, d_h)) * 0.3
W_h = rng.normal(size=(d_h, d_h)) * 0.5
floating = rnn_hidden_states(X + 0.0, W_x, W_h)
other = rnn_hidden_states(-X, W_x, W_h)
message = "One state for each word, (n, d_h)."
assert_equal(np.shape(other), (n, d_h), message, name="the shape")
message = "The words -X give other states than the words X, and no state is NaN."
differ = np.abs(np.asarray(other) - np.asarray(floating)).max() > 1e-3
assert_equal(bool(differ), True, message, name="other states")
assert_close(
    rnn_hidden_states(X, W_x, W_h),
    np.asarray(floating),
    "With whole numbers in X the states should be those of the same numbers in float64. Check "
    "first: which dtype does the array have that collects the states? Among whole numbers a state "
    "of 0.76 becomes 0.",
    against="with the same numbers in float64",
)
assert_close(
    rnn_hidden_states(X, W_x, W_h, h0),
    np.asarray(rnn_hidden_states(X + 0.0, W_x, W_h, h0 + 0.0)),
    "With whole numbers in X and in h0 the states should be those of the same numbers in "
    "float64. Check first: is a state kept in the dtype of h0? The states are no whole numbers.",
    against="with the same numbers in float64",
)
X, W_x, W_h = np.array([[1], [0]]), np.array([[1, -1]]), np.array([[0, 1], [1, 0]])
assert_close(
    rnn_hidden_states(X, W_x, W_h),
    np.asarray(rnn_hidden_states(X + 0.0, W_x + 0.0, W_h + 0.0)),
    "Whole numbers in X, W_x and W_h have to give the states that the same numbers in float64 "
    "give, as floating numbers.",
    against="with the same numbers in float64",
)
X, W_x = np.array([[1, 0], [0, -2], [1, 1]]), np.array([[1, -1, 0], [0, 1, 1]])
W_h, h0 = rng.normal(size=(3, 3)) * 0.5, rng.normal(size=3)
assert_close(
    rnn_hidden_states(X, W_x, W_h, h0),
    np.asarray(rnn_hidden_states(X + 0.0, W_x + 0.0, W_h, h0)),
    "Whole numbers in X and W_x, others in W_h and h0: the states have to be those of float64 "
    "everywhere, with nothing cut to whole numbers on the way.",
    against="with the same numbers in float64",
)
### END HIDDEN TESTS

# %% check="rnn_hidden_states_precision" points=0.25
# Hidden checks of rnn_hidden_states: the precision of the result.
### BEGIN HIDDEN TESTS
rng = check_rng()
n, d_in, d_h = 5, 4, 4  # square matrices: no rule stops with an error
X = rng.normal(size=(n, d_in)).astype(np.float32)
W_x = rng.normal(size=(d_in, d_h)) * 0.5
W_h = rng.normal(size=(d_h, d_h)) * 0.5
X64 = X.astype(np.float64)
expected = np.asarray(rnn_hidden_states(X64, W_x, W_h), dtype=np.float64)
other = rnn_hidden_states(-X, W_x, W_h)
message = "One state for each word, (n, d_h)."
assert_equal(np.shape(other), (n, d_h), message, name="the shape")
message = "The words -X give other states than the words X, and no state is NaN."
differ = np.abs(np.asarray(other) - expected).max() > 1e-3
assert_equal(bool(differ), True, message, name="other states")
assert_close(
    rnn_hidden_states(X, W_x, W_h),
    expected,
    "X in float32 and matrices in float64 have to give states in float64, with all its digits: the "
    "widest input decides.",
    precise=True,
    against="with X in float64",
)
narrow = [X, W_x.astype(np.float32), W_h.astype(np.float32), np.zeros(d_h, dtype=np.float32)]
for position, name in enumerate(["X", "W_x", "W_h", "h0"]):
    mixed = list(narrow)
    mixed[position] = mixed[position].astype(np.float64)
    assert_close(
        rnn_hidden_states(*mixed),
        expected,
        f"{name} in float64 and all else in float32, with zeros as h0: the states have to be those "
        "without h0, up to rounding, and in float64.",
        precise=True,
        rtol=1e-3,
        atol=1e-4,
        against="in float64, without h0",
    )
assert_close(
    rnn_hidden_states(*narrow[:3]),
    expected.astype(np.float32),
    "X, W_x and W_h in float32 have to give the states that they give in float64, up to rounding, "
    "in float32 or better.",
    against="with all inputs in float64",
)
### END HIDDEN TESTS

# %% check="rnn_hidden_states_inputs_unchanged" points=0.25
# Hidden checks of rnn_hidden_states: its inputs afterwards.
### SIDE CONDITION: counts once another check of rnn_hidden_states passes.
### BEGIN HIDDEN TESTS
rng = check_rng()
X = rng.normal(size=(5, 3))
W_x = rng.normal(size=(3, 4)) * 0.5
W_h = rng.normal(size=(4, 4)) * 0.5
h0 = rng.normal(size=4)


@probe
def inputs_after_states(X, W_x, W_h, h0):
    states = rnn_hidden_states(X, W_x, W_h, h0)
    return states, X, W_x, W_h, h0


states, *after = inputs_after_states(X.copy(), W_x.copy(), W_h.copy(), h0.copy())
for name, before_call, after_call in zip(["X", "W_x", "W_h", "h0"], [X, W_x, W_h, h0], after, strict=True):
    assert_equal(
        after_call,
        before_call,
        f"rnn_hidden_states changes its input {name}. What the caller gives stays as it is.",
        name=name,
        against="before the call",
    )
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Keep one variable for the current state and one list for all states. Go through the rows of `X`
# with a `for` loop. Make a **new** array at each step: if you write into the old one, every row in
# your list will be the same array.
#
# </details>

# %% [markdown]
# ### Predict, then run
#
# Here `d_h = 8`. How many numbers describe the short sentence of 5 words when
# it has been read? And the long one of 16 words? Write it down, then run the cells.

# %% tags=["demonstration", "guess"]
guess_numbers = (8, 26)  # write (for 5 words, for 16 words)

# %% tags=["demonstration"]
rng = np.random.default_rng(2)
W_x = rng.normal(size=(4, 8)) * 0.5
W_h = rng.normal(size=(8, 8)) * 0.3
for X, words in [(X_short, short), (X_long, long)]:
    states = rnn_hidden_states(X, W_x, W_h)  # (n, 8)
    print(len(words), "words:", len(states), "states; the last one has shape", states[-1].shape)

# %% tags=["demonstration"]
came_out = tuple(len(rnn_hidden_states(X, W_x, W_h)[-1]) for X in (X_short, X_long))
reply("guess_numbers", guess_numbers, came_out, "The state has the same size after any number of words.")

# %% [markdown]
# Eight and eight. A sentence three times as long gets the same room. The encoder made 5 and 16
# states, but the classic decoder sees only the last one. **Keep the others in mind.** They exist,
# they are thrown away, and this lesson ends by using them.
#
# The order of the words does matter to the state. That is what the recurrence is for:

# %% tags=["demonstration"]
swapped = X_short[[0, 2, 1, 3, 4]]  # the cat black is sleeping
last = rnn_hidden_states(X_short, W_x, W_h)[-1]
last_swapped = rnn_hidden_states(swapped, W_x, W_h)[-1]
print("the black cat is sleeping:", last.round(2))
print("the cat black is sleeping:", last_swapped.round(2))

# %% [markdown]
# ## 2. The bottleneck, measured
#
# It is easy to *say* that the state is a bottleneck. We measure it, on a very simple task:
# **copying**. The encoder reads $n$ symbols (the digits 0 to 9, at random). The decoder must write
# the same $n$ symbols. Nothing needs to be understood; everything must be kept.
#
# The networks are GRUs (Cho et al. 2014): recurrent networks with **gates**. A gate is a number
# between 0 and 1, computed at each step, that says how much of the old state is kept. GRUs can
# learn to remember longer than plain RNNs (not measured here). The **context** is what the decoder gets from the
# encoder at each step. We train the same network with two kinds of context:
#
# 1. `look_everywhere = False`: the context is the encoder's last state, the same at each step;
# 2. `look_everywhere = True`: at each step the context is a *weighted average of all states*, with
#    weights that the network computes at that step. This is called **attention**. How the weights
#    are found is the topic of lessons 2 and 3; here torch's function finds them.
#
# That function is `F.scaled_dot_product_attention(S, H, H, scale=1.0)`. Its first argument holds
# the states that ask (one per symbol to write). The second holds the states they are compared with,
# and the third those that are averaged: here both are the encoder's. `scale` multiplies the results
# of the comparison; 1.0 leaves them as they are.
#
# Both models have the same number of parameters. Only the context differs.


# %% tags=["demonstration"]
class Copier(nn.Module):
    """Reads n symbols with a GRU, writes n symbols with another."""

    def __init__(self, look_everywhere, d_h=64):
        super().__init__()
        self.look_everywhere = look_everywhere
        self.read_vectors = nn.Embedding(10, 32)  # one vector for each digit
        self.write_vectors = nn.Embedding(11, 32)  # digit 10 means "start"
        self.encoder = nn.GRU(32, d_h, batch_first=True)
        self.decoder = nn.GRU(32, d_h, batch_first=True)
        self.readout = nn.Linear(2 * d_h, 10)

    def forward(self, source, previous):
        H, last = self.encoder(self.read_vectors(source))  # (b, n, d_h), (1, b, d_h)
        S, _ = self.decoder(self.write_vectors(previous), last)  # (b, n, d_h)
        if self.look_everywhere:
            context = F.scaled_dot_product_attention(S, H, H, scale=1.0)  # averages of H
        else:
            context = last[0][:, None].expand_as(S)  # h_n at every step
        return self.readout(torch.cat([S, context], -1))  # (b, n, 10)


# %% [markdown]
# While it trains, the decoder gets the *right* previous symbol (this is called teacher forcing),
# and is scored on the next one. The symbols are random, so the previous ones say nothing about the
# next: what the model gets right, beyond one in ten by guessing, it got from the encoder.
#
# In the code, `Adam` is the rule that changes the parameters after each batch. `OneCycleLR` sets
# the size of these changes: small at first, larger, and small again at the end.


# %% tags=["demonstration"]
def copy_batch(n, batch, generator):
    """Random digits (batch, n), and the same moved right by one with a start sign."""
    source = torch.randint(0, 10, (batch, n), generator=generator)
    start = torch.full((batch, 1), 10)
    return source, torch.cat([start, source[:, :-1]], 1)


def train_copier(look_everywhere, steps, longest, seed=0):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Copier(look_everywhere)
    adam = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, 1e-2, total_steps=steps)
    for step in range(1, steps + 1):
        n = int(torch.randint(2, longest + 1, (1,), generator=generator))
        source, previous = copy_batch(n, 32, generator)
        loss = F.cross_entropy(model(source, previous).flatten(0, 1), source.flatten())
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        schedule.step()
        if step % (steps // 4) == 0:
            print(f"step {step:4d}, length {n:2d}: loss {loss.item():.2f}")
    return model


# %% [markdown]
# Two numbers say how well a model copies, both on 200 new sequences. **Token accuracy**: the share
# of symbols that are right. **Whole-sequence accuracy**: the share of sequences without a single
# error. If all next symbols are right, the model also gets it right when it writes on its own.


# %% tags=["demonstration"]
@torch.no_grad()
def copy_accuracy(model, n):
    """Token accuracy and whole-sequence accuracy at length n."""
    source, previous = copy_batch(n, 200, torch.Generator().manual_seed(n))
    right = model(source, previous).argmax(-1) == source  # (200, n)
    return right.float().mean().item(), right.all(1).float().mean().item()


lengths = [2, 5, 10, 15, 20, 30, 40]

# %% [markdown]
# ### Predict, then run
#
# We train the fixed-vector model on lengths from 2 to 40. Guessing gives a token accuracy of 0.10.
# Write down your guess of the token accuracy at length 5, at length 10 and at length 40.

# %% tags=["demonstration", "guess"]
guess_copied = (0.9, 0.9, 0.9)  # write (at length 5, at length 10, at length 40)

# %% tags=["demonstration", "nbval-ignore-output"]
# About ten seconds on a quiet laptop.
# Trained numbers: they differ a little from machine to machine.
fixed = train_copier(look_everywhere=False, steps=1000, longest=40)
fixed_scores = np.array([copy_accuracy(fixed, n) for n in lengths])  # (7, 2)
for n, (token, whole) in zip(lengths, fixed_scores):
    print(f"length {n:2d}: token accuracy {token:.2f}, whole sequences {whole:.2f}")

assert fixed_scores[1, 0] > 0.90  # length 5
assert 0.6 < fixed_scores[2, 0] < 0.92 and fixed_scores[2, 1] < 0.3  # length 10
assert fixed_scores[-1, 0] < 0.5 and fixed_scores[-1, 1] == 0  # length 40

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
came_out = tuple(fixed_scores[[lengths.index(n) for n in (5, 10, 40)], 0])
reply("guess_copied", guess_copied, came_out, "Near is within 0.1.", within=0.1)

# %% [markdown]
# Short sequences are copied well. At length 10 most symbols are right, but hardly any sequence is
# right as a whole. At length 40 about two symbols in three are wrong.
#
# ### Is that a hard limit?
#
# No. Count the room. Forty digits need $40 \log_2 10 \approx 133$ bits. The state has 64 numbers of
# 32 bits each: 2048 bits. On paper the sequence fits fifteen times.
#
# So let us ask for less. We train the same network, with the same vector of 64 numbers, for about
# the same processor time, on lengths 2 to 10 only. Two things change at once. Batches are shorter,
# so there is time for more of them: 2400 in place of 1000. And they are shared by 9 lengths in
# place of 39. So length 10 gets about 270 batches in place of about 26: ten times more.

# %% tags=["demonstration", "nbval-ignore-output"]
# About ten seconds on a quiet laptop; the numbers depend on training.
short_only = train_copier(look_everywhere=False, steps=2400, longest=10)
for n in (5, 10, 40):
    mixed, practised = copy_accuracy(fixed, n), copy_accuracy(short_only, n)
    print(f"length {n}: trained on 2-40: token {mixed[0]:.2f}, whole {mixed[1]:.2f};", end="  ")
    print(f"on 2-10 only: token {practised[0]:.2f}, whole {practised[1]:.2f}")

# By how much depends on the processor: whole sequences from 0.03 to 0.13 on one, to 0.19 on another.
assert copy_accuracy(short_only, 10)[0] > copy_accuracy(fixed, 10)[0]
assert copy_accuracy(short_only, 10)[1] > copy_accuracy(fixed, 10)[1]
assert copy_accuracy(short_only, 40)[0] < 0.5

# %% [markdown]
# With ten times more batches of its own, length 10 improves. (We cannot tell here how much comes
# from more batches, and how much from leaving out the long sequences.) When this lesson was written
# we also trained the first model eight times as long, 8000 steps on lengths 2 to 40 (a minute, so
# not in this notebook). Length 10 rose from 0.79 to 0.98. Length 40 rose from 0.37 to 0.55, and
# still no sequence of length 40 was right as a whole.
#
# So say it carefully. There is a wall, but far away: 2048 bits cannot hold more than 616 digits
# whatever the training. **Near length 40 we found no wall. We found a price**: longer sequences
# need more training. The same eightfold training nearly finished length 10 and left length 40 half
# wrong, so the price seems to grow fast. That rests on two lengths only.

# %% [markdown]
# ## 3. What still moves the last state?
#
# How much does the word at position $t$ move the last state $h_n$? Change $x_t$ a little and watch
# $h_n$. For tiny changes, this is the matrix of derivatives, called the **Jacobian**:
#
# $$J_t = \frac{\partial h_n}{\partial x_t}, \qquad
# (J_t)_{ij} = \frac{\partial (h_n)_i}{\partial (x_t)_j}, \qquad
# \text{shape } (d_h, d_{in})$$
#
# To get one number, take its **Frobenius norm**: square all its entries, add them up, take the
# root. We call it the **influence** of position $t$:
#
# $$\text{influence}_t = \sqrt{\textstyle\sum_{i,j} (J_t)_{ij}^2}$$
#
# The word reaches $h_n$ through a chain: $x_t \to h_t \to h_{t+1} \to \dots \to h_n$. The chain
# rule multiplies one matrix for each link. With $\tanh'(a) = 1 - \tanh^2(a)$ the links are
#
# $$\frac{\partial (h_t)_i}{\partial (x_t)_j} = \bigl(1 - (h_t)_i^2\bigr) (W_x)_{ji}, \qquad
# \frac{\partial (h_t)_i}{\partial (h_{t-1})_j} = \bigl(1 - (h_t)_i^2\bigr) (W_h)_{ji}.$$
#
# Mind the indices: the matrices are transposed ($ji$, not $ij$). Let $D_s$ be the diagonal matrix
# with the slopes $1 - h_s^2$ of state $s$ on its diagonal. Then the links are $D_t W_x^\top$ and
# $D_t W_h^\top$, the later link stands on the left, and the whole product is
#
# $$J_t = D_n W_h^\top \; D_{n-1} W_h^\top \; \cdots \; D_{t+1} W_h^\top \; D_t W_x^\top,
# \qquad D_s = \operatorname{diag}(1 - h_s^2)$$
#
# For the last position nothing but $J_n = D_n W_x^\top$ is left.
#
# By hand, one number per word again, all words zero, so all states are zero and $\tanh' = 1$. With
# $W_x = 2$ and $W_h = 0.5$ the last position has influence $2$, the one before it $2 \cdot 0.5 =
# 1$, then $0.5$ and $0.25$.

# %% [markdown]
# ### Exercise: `position_influence`
#
# **Difficulty** ●●●○○  **Importance** ●●●○○  You should spend up to 20-25 minutes.
#
# Write `position_influence(X, W_x, W_h)`. It returns for each position the Frobenius norm of the
# Jacobian of the last state $h_n$ with respect to $x_t$. The network starts from the zero state.
#
# * `X (n, d_in)`, `W_x (d_in, d_h)`, `W_h (d_h, d_h)`; the result is `(n,)`, the first position
#   first.
# * Use your `rnn_hidden_states` for the states.


# %% answer="position_influence"
def position_influence(X, W_x, W_h):
    """How strongly each position still moves the last state.

    X: (n, d_in). W_x: (d_in, d_h). W_h: (d_h, d_h). The network starts from zeros.
    Returns: (n,), entry t is the Frobenius norm of the (d_h, d_in) Jacobian d h_n / d x_t.
    Changes none of its inputs.
    """
    ### BEGIN SOLUTION
    H = rnn_hidden_states(X, W_x, W_h)
    through = np.eye(H.shape[1])  # d h_n / d h_t, beginning with t = n
    influence = np.empty(len(H))
    for t in reversed(range(len(H))):
        through = through * (1 - H[t] ** 2)
        influence[t] = np.linalg.norm(through @ W_x.T)
        through = through @ W_h.T
    return influence
    ### END SOLUTION


# %% check="position_influence" points=3
with check("by hand, words of zero", points=0.75):
    # The example by hand, but W_x = 3: all words zero, so that tanh has slope 1.
    halving = position_influence(np.zeros((4, 1)), np.array([[3.0]]), np.array([[0.5]]))
    assert_close(
        halving,
        np.array([0.375, 0.75, 1.5, 3.0]),
        "Four words of zero with W_x = 3 and W_h = 0.5: the influence is 0.375, 0.75, 1.5, 3. The "
        "last position comes last and passes through no W_h at all; each step back multiplies by "
        "W_h once more.",
    )

with check("one number per word, none zero", points=0.75):
    # One number per word, three words that are not zero (numbers from a pocket calculator).
    assert_close(
        position_influence(np.array([[0.5], [-1.0], [0.8]]), np.array([[0.9]]), np.array([[0.7]])),
        np.array([0.22886771, 0.39775350, 0.80256293]),
        "Three words that are not zero, one number each, with W_x = 0.9 and W_h = 0.7: the slope "
        "of tanh at a state h is 1 - h**2, and it counts once for each state on the way, the state "
        "of the word included. Five digits are compared. Check first: is a slope that formula, or "
        "a difference over a small step, which is only nearly right?",
        atol=1e-7,
    )

# Matrices and words that are not zero (numbers from torch.autograd). All are square but X, so a
# transposed matrix or another order of the product raises no error; it gives other numbers.
words = np.array([[1.0, -1, 0], [0, 1, 1], [-1, 0, 1], [1, 1, -1]])  # (4, 3)
into = np.array([[0.5, 0, -1], [1, 0.5, 0], [0, 0, 0.5]])
onward = np.array([[0.5, 1, 0], [0, -0.5, 1], [-1, 0, 0.5]])
with check("matrices and words that are not zero", points=0.75):
    assert_close(
        position_influence(words, into, onward),
        np.array([0.33824362, 0.84320197, 0.87180841, 1.25851853]),
        "Four words of three numbers, a state of three, no word zero: the influence is the norm of "
        "the product J_t. Check first: does each matrix stand as it does "
        "there (transposed, the later link on the left), and each D_s at its own place (a diagonal "
        "matrix on the right scales columns, on the left rows)? Where the numbers are nearly "
        "right: is the slope exact, or a difference over a small step?",
        atol=1e-7,
    )

# Two numbers per word, a state of three, all words zero.
rng = check_rng()
W_x, W_h = rng.normal(size=(2, 3)), rng.normal(size=(3, 3)) * 0.5
expected = np.sqrt(np.array([((W_x @ W_h) ** 2).sum(), (W_x**2).sum()]))
with check("matrices and words of zero", points=0.75):
    assert_close(
        position_influence(np.zeros((2, 2)), W_x, W_h),
        expected,
        "Two words of zero, a state of three: the influence is the Frobenius norm (the root of "
        "the sum of all squares) of the matrix from word to last state. Check first: is W_h "
        "transposed as in the formula, and does W_x take part?",
    )
checks_passed("position_influence")

# %% check="position_influence_autograd" points=2.5
# Hidden checks of position_influence: the Jacobians that torch.autograd finds.
### BEGIN HIDDEN TESTS
rng = check_rng()
n, d_in, d_h = 6, 3, 4
X = rng.normal(size=(n, d_in))
W_x = rng.normal(size=(d_in, d_h)) * 0.5
W_h = rng.normal(size=(d_h, d_h)) * 0.6
rnn = nn.RNN(d_in, d_h, bias=False).double()
with torch.no_grad():
    rnn.weight_ih_l0.copy_(torch.tensor(W_x.T))
    rnn.weight_hh_l0.copy_(torch.tensor(W_h.T))
jacobian = torch.autograd.functional.jacobian(lambda x: rnn(x)[1][0], torch.tensor(X))
expected = jacobian.square().sum(dim=(0, 2)).sqrt().numpy()  # jacobian: (d_h, n, d_in)
found = position_influence(X, W_x, W_h)


@probe
def influence_of_transposes(X, W_x, W_h):
    return position_influence(X.T, W_x.T, W_h.T)


with check("the last position, and a word alone", points=0.75):
    message = (
        "The last entry of the result belongs to the last position, which passes one tanh and W_x, "
        "and no W_h."
    )
    assert_close(np.atleast_1d(found)[-1:], expected[-1:], message)
    jacobian = torch.autograd.functional.jacobian(lambda x: rnn(x)[1][0], torch.tensor(X[:1]))
    assert_close(
        position_influence(X[:1], W_x, W_h),
        jacobian.square().sum(dim=(0, 2)).sqrt().numpy(),
        "A sentence of one word has one influence, in an array of shape (1,), and it is that of a "
        "last position: one tanh and W_x, to five digits.",
    )
with check("the last two positions", points=0.75):
    message = (
        "The last two entries: the position before the last passes W_h once, and two slopes. Check "
        "first: which state does each slope belong to?"
    )
    assert_close(np.atleast_1d(found)[-2:], expected[-2:], message)
with check("every position, in texts of many kinds", points=1):
    assert_close(
        found,
        expected,
        "Six words of three numbers, a state of four: the influence is the norm of the Jacobians "
        "that torch.autograd finds. Check first: in which order is the product taken (the later "
        "link on the left), which state does each slope belong to, do all entries of the matrix "
        "enter the norm, and is a slope exact or a difference over a small step?",
    )
    assert_close(
        position_influence(np.zeros((60, 1)), np.array([[3.0]]), np.array([[0.5]])),
        3.0 * 0.5 ** np.arange(59.0, -1.0, -1.0),
        "60 words of zero, W_x = 3 and W_h = 0.5: the influence is 3 at the last word, and each "
        "step back halves it. At the first it is 3 / 2**59: small, and not 0. The digits of each "
        "are compared, however small it is.",
        rtol=1e-4,
        atol=1e-30,
    )
    assert_close(
        position_influence(np.zeros((6, 1)), np.array([[1.0]]), np.array([[2.0]])),
        2.0 ** np.arange(5.0, -1.0, -1.0),
        "6 words of zero, W_x = 1 and W_h = 2: the influence is 1 at the last word, and each step "
        "back doubles it, up to 32 at the first. It grows as the matrices say, with no bound.",
    )
    X, W_x = rng.normal(size=(67, 3)) / 10, rng.normal(size=(3, 2)) * 0.3
    W_h = np.array([[0.6, -0.8], [0.8, 0.6]])
    rnn = nn.RNN(3, 2, bias=False).double()
    rnn.load_state_dict({"weight_ih_l0": torch.tensor(W_x.T), "weight_hh_l0": torch.tensor(W_h.T)})
    jacobian = torch.autograd.functional.jacobian(lambda x: rnn(x)[1][0], torch.tensor(X))
    assert_close(
        position_influence(X, W_x, W_h),
        jacobian.square().sum(dim=(0, 2)).sqrt().numpy(),
        "67 words of three numbers, a state of two: the influence is the norm of the Jacobians that "
        "torch.autograd finds, at every position, however far from the end.",
    )
    for n, d_in, d_h, kind in (
        (3, 33, 4, "any"),
        (2, 65, 2, "below 0"),
        (2, 130, 3, "any"),
        (3, 3, 3, "any"),
        (4, 17, 5, "any"),
        (5, 4, 2, "two equal words"),
        (4, 2, 3, "one word of zeros"),
        (4, 2, 2, "60 in one place"),
        (3, 3, 2, "2000 in one place"),
        (131, 1, 2, "any"),
    ):
        X = rng.normal(size=(n, d_in))
        W_x, W_h = rng.normal(size=(d_in, d_h)) / d_in**0.5, rng.normal(size=(d_h, d_h)) * 0.4
        if kind == "below 0":
            X = -np.abs(X)
        elif kind == "two equal words":
            X[2] = X[1]
        elif kind == "one word of zeros":
            X[1] = 0.0
        elif kind != "any":
            X[1, 0] = float(kind.split()[0])
            W_x[0] /= X[1, 0]  # so that the slope there is not 0
        rnn = nn.RNN(d_in, d_h, bias=False).double()
        matrices = {"weight_ih_l0": torch.tensor(W_x.T), "weight_hh_l0": torch.tensor(W_h.T)}
        rnn.load_state_dict(matrices)
        jacobian = torch.autograd.functional.jacobian(
            lambda x, rnn=rnn: rnn(x)[1][0], torch.tensor(X)
        )
        right = jacobian.square().sum(dim=(0, 2)).sqrt().numpy()
        message = (
            f"X {(n, d_in)} ({kind}), W_x {(d_in, d_h)} and W_h {(d_h, d_h)}: the influence is the "
            "norm of the Jacobians that torch.autograd finds."
        )
        turned = [x.T.copy() for x in (X, W_x, W_h)]
        assert_close(position_influence(X=X, W_x=W_x, W_h=W_h), right, message)
    found = influence_of_transposes(*turned)
    assert_close(found, right, f"{message} Here all three are transposes of other arrays.")
checks_passed("position_influence")
### END HIDDEN TESTS

# %% check="position_influence_integers" points=0.25
# Hidden checks of position_influence: whole numbers, and the precision of the result.
### BEGIN HIDDEN TESTS
rng = check_rng()
n, d_in, d_h = 5, 3, 4
W_x = rng.normal(size=(d_in, d_h)) * 0.4
W_h = rng.normal(size=(d_h, d_h)) * 0.6
for X, message in [
    (
        rng.integers(-2, 3, size=(n, d_in)),
        "With whole numbers in X the influence should be that of the same numbers in float64. "
        "Check first: is the array that collects it floating, with all digits of float64?",
    ),
    (
        rng.normal(size=(n, d_in)).astype(np.float32),
        "X in float32 and matrices in float64 have to give an influence in float64, with all its "
        "digits: the widest input decides.",
    ),
]:
    floating = position_influence(X.astype(np.float64), W_x, W_h)
    expected = np.asarray(floating, dtype=np.float64)
    positive = "One number above 0 for each word: an array (n,), none of it NaN."
    assert_equal(np.shape(floating), (n,), positive, name="the shape")
    assert_equal(bool((expected > 0).all()), True, positive, name="above 0")
    found = position_influence(X, W_x, W_h)
    assert_close(found, expected, message, precise=True, against="with X in float64")
narrow = [X, W_x.astype(np.float32), W_h.astype(np.float32)]  # X is float32 here
for position, name in enumerate(["X", "W_x", "W_h"]):
    mixed = list(narrow)
    mixed[position] = mixed[position].astype(np.float64)
    assert_close(
        position_influence(*mixed),
        expected,
        f"{name} in float64 and all else in float32: the influence has to be that of float64 "
        "everywhere, up to rounding, and in float64.",
        precise=True,
        rtol=1e-3,
        atol=1e-4,
        against="with all inputs in float64",
    )
X, W_x, W_h = np.zeros((2, 1), dtype=int), np.array([[3, 4]]), np.eye(2, dtype=int)
assert_close(
    position_influence(X, W_x, W_h),
    np.asarray(position_influence(X + 0.0, W_x + 0.0, W_h + 0.0)),
    "Whole numbers in X, W_x and W_h have to give the influence that the same numbers in float64 "
    "give, as floating numbers.",
    against="with the same numbers in float64",
)
X, W_x, W_h = (rng.normal(size=size) * 0.5 for size in ((5, 3), (3, 4), (4, 4)))
before = np.asarray(position_influence(X, W_x, W_h))
for name, after in (
    ("W_x", np.asarray(position_influence(X, W_x * (1 + 1e-12), W_h))),
    ("W_h", np.asarray(position_influence(X, W_x, W_h * (1 + 1e-12)))),
):
    message = (
        f"All in float64, and {name} times 1 + 1e-12: the influence changes in its later digits, "
        "of which float64 has 16. Check first: is something on the way computed in float32, with 7?"
    )
    change = float(np.abs(after - before).max())
    assert_equal(bool(change > 1e-15), True, message, name="'it changes, and none of it is NaN'")
### END HIDDEN TESTS

# %% check="position_influence_inputs_unchanged" points=0.25
# Hidden checks of position_influence: its inputs afterwards.
### SIDE CONDITION: counts once another check of position_influence passes.
### BEGIN HIDDEN TESTS
rng = check_rng()
X = rng.normal(size=(5, 3))
W_x = rng.normal(size=(3, 4)) * 0.5
W_h = rng.normal(size=(4, 4)) * 0.5


@probe
def inputs_after_influence(X, W_x, W_h):
    influence = position_influence(X, W_x, W_h)
    return influence, X, W_x, W_h


influence, *after = inputs_after_influence(X.copy(), W_x.copy(), W_h.copy())
for name, before_call, after_call in zip(["X", "W_x", "W_h"], [X, W_x, W_h], after, strict=True):
    message = f"position_influence changes its input {name}."
    assert_equal(after_call, before_call, message, name=name, against="before the call")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Walk from the last position back to the first. Carry one matrix of shape `(d_h, d_h)`: the
# Jacobian of $h_n$ with respect to the state you stand at. At the very end of the sentence it is
# the identity matrix, because $h_n$ moves exactly as $h_n$ does. At each position: first the slope
# of $\tanh$, then multiply by the transposed $W_x$ and take the norm of that (do not carry it on),
# then go one state further back with the transposed $W_h$.
# Multiplying a matrix on the right by a diagonal matrix scales its columns; broadcasting does that
# without building the diagonal matrix.
#
# </details>

# %% [markdown]
# ### Predict, then run
#
# The **spectral radius** of $W_h$ is the largest absolute value of its eigenvalues: roughly, by how
# much $W_h$ stretches a vector in the long run. We take a random $W_h$, scale it to spectral radius
# 0.5, and draw the influence of 40 positions. The vertical axis is **logarithmic**: equal steps up
# are equal factors.
#
# What does the curve look like?
#
# * `"a"`: flat: each position has about the same influence.
# * `"b"`: roughly a straight line that falls towards the first position.
# * `"c"`: a line that falls to exactly zero after `d_h` positions, because the state is then full.
# * `"d"`: it rises towards the first position, because that one has been in the state for longest.

# %% answer="answer_influence"
### BEGIN SOLUTION
answer_influence = "b"
### END SOLUTION

# %% check="answer_influence" points=1
check_answer("answer_influence", answer_influence)

# %% tags=["demonstration"]
rng = np.random.default_rng(0)
n, d_in, d_h = 40, 8, 64
X = rng.normal(size=(n, d_in))
W_x = 0.1 * rng.normal(size=(d_in, d_h)) / math.sqrt(d_in)
W_h = rng.normal(size=(d_h, d_h))
W_h = W_h / np.abs(np.linalg.eigvals(W_h)).max()  # spectral radius 1
influence = {r: position_influence(X, W_x, r * W_h) for r in (0.5, 0.9, 1.1, 2.0)}
for radius, values in influence.items():
    first = values[0] / values[-1]  # of the last position's influence
    told = f"= {first:.1e}" if first > 1e-9 else "is below 1e-9"
    print(f"radius {radius}: first position / last position {told}")

# %% tags=["demonstration"]
ratio = {radius: values[0] / values[-1] for radius, values in influence.items()}
assert ratio[0.5] < 1e-9 and 1e-6 < ratio[0.9] < 0.05
assert 1e-3 < ratio[1.1] < 30 and ratio[2.0] > 30

figure, axes = plt.subplots(figsize=(7, 3.6))
for (radius, values), style in zip(influence.items(), ["-", "--", "-.", ":"]):
    axes.plot(range(1, n + 1), values / values[-1], style, linewidth=2, label=f"radius {radius}")
axes.set_yscale("log")
axes.set_xlabel("position $t$ of the word (40 = read last)")
axes.set_ylabel("influence on $h_{40}$\n(last position = 1)")
axes.legend(loc="lower right")
axes.grid(alpha=0.3)
show(
    figure,
    "Figure 1. In a random RNN with radius 0.5 or 0.9 the influence shrinks by a nearly constant "
    "factor at each step back: a nearly straight line on a logarithmic axis. With radius 2.0 it "
    "grows, unevenly. With radius 1.1 it does not explode in this example: tanh flattens large "
    "values; other random matrices of that radius gave 0.03 to 1.1 at position 1. Nothing is trained "
    "here: do not conclude that a trained network must forget.",
    "Four curves over 40 positions, each 1 at position 40. Towards position 1, radius 0.5 falls in "
    "a nearly straight line to about 3e-13 and radius 0.9 to about 1e-3. Radius 1.1 falls to about "
    "0.3 near position 15 and rises again to about 0.8. Radius 2.0 grows to about 1000.",
)

# %% [markdown]
# The gradient that trains the network goes through the same products. Where the influence
# **vanishes**, the network can hardly learn to keep the word. Where it **explodes**, one training
# step can throw everything away (that is why we clip gradients above). This was found by Hochreiter
# (1991) and by Bengio, Simard and Frasconi (1994). GRUs and LSTMs were made to soften it.
#
# But is forgetting what stopped our trained fixed-vector model? Keep the question. We will look
# into that model's last state in section 5.

# %% [markdown]
# ## 4. Look everywhere: the weighted average
#
# The decoder wants to look back at the page. The states $h_1, \dots, h_n$ are all there. It needs
# one operation that
#
# * takes **any number** of states and gives **one** vector of fixed size;
# * can pick out one state, or mix several;
# * is **smooth**: a small change of the weights changes the result a little, so that gradients
#   can train it. (Picking "number 3" is not smooth.)
#
# A **weighted average** does all three. Each value $v_j$ gets a weight $a_j \ge 0$:
#
# $$\bar v = \sum_{j=1}^{n} \frac{a_j}{\sum_i a_i}\, v_j$$
#
# The division **normalises** the weights: after it they sum to 1. With weights $1, 0, 3$ and the
# values $(2, 0)$, $(9, 9)$, $(6, 4)$ the normalised weights are $0.25, 0, 0.75$, and the average is
# $(0.5 + 0 + 4.5,\ 0 + 0 + 3) = (5, 3)$. The second value has weight 0: it is not looked at.

# %% [markdown]
# ### Exercise: `weighted_average`
#
# **Difficulty** ●●○○○  **Importance** ●●●●●  You should spend up to 15-20 minutes.
#
# Write `weighted_average(weights, values)`. The operation comes back in every lesson that follows,
# mostly under another name: the *output* of attention.
#
# * `weights (..., n)`, `values (..., n, d_v)`; the result is `(..., d_v)`. The dots stand for any
#   number of leading axes (none, one, several), and those of the two arguments **broadcast**:
#   weights `(2, 1, n)` and values `(3, n, d_v)` give `(2, 3, d_v)`.
# * The function normalises the weights itself. Only their ratios count, not
#   their magnitude: weights near 1e-12 or near 1e9 are as good as weights near 1. (You need not
#   care for numbers so huge that a sum of them, or a product with a value, is no longer finite.)
# * `ValueError` when a weight is negative; when a row of weights is all zero (there is nothing to
#   divide by, even if only one row of a batch is); and when `weights` and `values` differ in their
#   length `n`. **Also when one of the two lengths is 1**: NumPy would stretch it without a word,
#   and the result would look fine.


# %% answer="weighted_average"
def weighted_average(weights, values):
    """Average of values along axis -2, with weights that are normalised to sum to 1.

    weights: (..., n), not negative. values: (..., n, d_v). Leading axes broadcast.
    Returns: (..., d_v), floating. Changes none of its inputs.
    Raises ValueError: a negative weight, a row of weights that is all zero, or lengths n that
    differ (a length of 1 is not stretched).
    """
    ### BEGIN SOLUTION
    if weights.shape[-1] != values.shape[-2]:
        raise ValueError(
            f"weights has shape {weights.shape} and values {values.shape}: the lengths "
            f"{weights.shape[-1]} and {values.shape[-2]} differ"
        )
    if (weights < 0).any():
        raise ValueError(f"weights holds {weights.min()}; weights cannot be negative")
    total = weights.sum(axis=-1, keepdims=True)
    if (total == 0).any():
        raise ValueError("weights has a row that is all zero, which cannot be normalised")
    return np.einsum("...n,...nd->...d", weights / total, values)
    ### END SOLUTION


# %% check="weighted_average" points=3.5
values = np.array([[2.0, 0.0], [9.0, 9.0], [6.0, 4.0]])  # (3, 2)
with check("two and three values", points=0.75):
    assert_close(
        weighted_average(np.array([1.0, 3.0]), values[:2].copy()),
        np.array([7.25, 6.75]),
        "Weights 1 and 3: a quarter of the first value and three quarters of the second. Check "
        "first: are the weights divided by their sum, and does the sum run over the positions (not "
        "over the features of a value)?",
    )
    assert_close(
        weighted_average(np.array([1.0, 2.0, 1.0]), values.copy()),
        np.array([6.5, 5.5]),
        "Three values with weights 1, 2, 1: a quarter of the first and of the last, half of the "
        "second. The two values before came out right.",
    )
with check("zeros and tiny weights", points=0.5):
    # The example by hand.
    assert_close(
        weighted_average(np.array([1.0, 0.0, 3.0]), values.copy()),
        np.array([5.0, 3.0]),
        "The example by hand, weights 1, 0, 3, gives (5, 3). A weight of 0 means that this value "
        "is left out.",
    )
    assert_close(
        weighted_average(np.array([1e-30, 0.0, 3e-30]), values.copy()),
        np.array([5.0, 3.0]),
        "The example by hand with weights 1e-30, 0, 3e-30 gives (5, 3), too. Only their ratios "
        "matter.",
    )
    assert_close(
        weighted_average(np.array([0.0, 0.5, 0.0]), values.copy()),
        np.array([9.0, 9.0]),
        "With a single weight that is not zero the average is that value itself, whatever the weight.",
    )

# Three rows of weights for the same three values: each row is normalised on its own.
batch = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 3.0], [0.0, 0.0, 5.0]])  # (3, 3)
with check("three rows of weights", points=0.5):
    assert_close(
        weighted_average(batch.copy(), values.copy()),
        np.array([[5.5, 4.5], [6.75, 5.25], [6.0, 4.0]]),
        "Three rows of weights for the same three values give three averages, a row each. Check "
        "first: is each row divided by its own sum (not by that of a column or of the whole "
        "array)? Sums that keep their axis, with length 1, line up with the rows.",
    )

with check("two rows of weights", points=0.25):
    # Two rows for three values: the first axes have different lengths.
    assert_close(
        weighted_average(batch[:2].copy(), values.copy()),
        np.array([[5.5, 4.5], [6.75, 5.25]]),
        "Two rows of weights for the same three values: each row has an average of its own, so "
        "two rows come out.",
    )

with check("a batch of two", points=0.25):
    # Two rows of weights, each with values of its own.
    assert_close(
        weighted_average(batch[:2].copy(), np.stack([values, values + 10.0])),  # values: (2, 3, 2)
        np.array([[5.5, 4.5], [16.75, 15.25]]),
        "A batch of two: row i of the weights belongs to values[i] alone. Check first: a plain "
        "matrix product, weights @ values, makes every row meet every element of the batch.",
    )
with check("leading axes that broadcast: each as alone", points=0.5):
    three = np.stack([values, values + 10.0, -values])  # (3, 3, 2): three sets of values
    alone = [[weighted_average(one.copy(), some.copy()) for some in three] for one in batch[:2]]
    expected = np.array([[np.asarray(average) for average in row] for row in alone])
    message = (
        "Two rows of weights and three sets of values: the averages are not all one "
        "number, and none is NaN."
    )
    assert_equal(bool(np.ptp(expected) > 1e-3), True, message)
    assert_close(
        weighted_average(batch[:2, None].copy(), three),  # (2, 1, 3) and (3, 3, 2)
        expected,
        "Leading axes broadcast: weights (2, 1, n) and values (3, n, d_v) give (2, 3, d_v), each "
        "average as your function gives it for this row of weights and these values alone.",
        against="for the pairs one by one",
    )
with check("four errors", points=0.5, side=True):
    with assert_raises(ValueError, "Three weights for one value are a ValueError."):
        weighted_average(np.array([1.0, 2.0, 3.0]), values[:1].copy())
    with assert_raises(ValueError, "A negative weight is a ValueError."):
        weighted_average(np.array([1.0, -0.5, 3.0]), values.copy())
    with assert_raises(ValueError, "A row of the batch that is all zero is a ValueError."):
        weighted_average(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), values.copy())
    with assert_raises(ValueError, "One weight for three values is a ValueError."):
        weighted_average(np.array([2.0]), values.copy())


@probe
def weights_after_the_call(weights, values):
    weighted_average(weights, values)
    return weights


with check("the caller's weights", points=0.25, side=True):
    weights = np.array([1.0, 0.0, 3.0])
    after = weights_after_the_call(weights.copy(), values)
    assert_equal(after, weights, "The caller's weights are other ones after the call.", name="weights")
checks_passed("weighted_average")

# %% check="weighted_average_batches" points=2.5
# Hidden checks of weighted_average: values of many kinds; leading axes, one, several, and others.
### BEGIN HIDDEN TESTS
@probe
def average_of_transposes(weights, values):
    return weighted_average(weights.T, np.swapaxes(values, -1, -2))


rng = check_rng()


def draw(batch_weights, batch_values, n, d_v, kind="any"):
    """Weights and values of some kind."""
    weights = rng.uniform(0.1, 1.0, size=(*batch_weights, n))
    values = rng.normal(size=(*batch_values, n, d_v))
    if kind == "two equal values":
        values[..., 2, :] = values[..., 1, :]
    elif kind == "one value of zeros":
        values[..., 1, :] = 0.0
    elif kind != "any":
        equal = values[..., :1, :] + 0 * values
        values = {"below 0": -np.abs(values), "equal values": equal, "all 0": 0 * values}[kind]
    return weights, values


def compare(weights, values):
    """The averages with your own for each row alone."""
    n, d_v = values.shape[-2:]
    shape = np.broadcast_shapes(weights.shape[:-1], values.shape[:-2])
    rows = np.broadcast_to(weights, (*shape, n))
    many = np.broadcast_to(values, (*shape, n, d_v))
    shapes = f"weights of shape {weights.shape} and values of shape {values.shape}"
    average = weighted_average(weights.copy(), values.copy())
    message = (
        f"{shapes} give an average of shape {(*shape, d_v)}: the leading axes broadcast, and all "
        "of them stay, also one of length 1."
    )
    assert_equal(np.shape(average), (*shape, d_v), message, name="the shape of the average")
    expected, known = np.empty((*shape, d_v)), {}
    for at in np.ndindex(*shape):  # rows that repeat are not asked for again
        pair = rows[at].tobytes(), many[at].tobytes()
        if pair not in known:
            known[pair] = np.asarray(weighted_average(rows[at].copy(), many[at].copy()))
            message = "One row of weights and n values: one average, of the length of a value."
            assert_equal(known[pair].shape, (d_v,), message, name="the shape")
        expected[at] = known[pair]
    message = f"{shapes}: the values -values - 1 have another average, and none of it is NaN."
    other = weighted_average(weights.copy(), -values - 1)
    assert_equal(bool(np.abs(np.asarray(average) - other).max() > 1e-3), True, message)
    message = (
        f"{shapes}: each average has to be the one that your function gives for its row of weights "
        "and its values alone."
    )
    assert_close(average, expected, message, against="for the rows one by one")
    if len(weights.shape) == 2:
        turned = weights.T.copy(), values.swapaxes(-1, -2).copy()
        message += " weights and values are here transposes of other arrays."
        found = average_of_transposes(*turned)
        assert_close(found, expected, message, against="for the rows one by one")


with check("one row of weights: values of many kinds", points=1):
    for n, d_v, kind in (
        (4, 5, "any"),
        (3, 3, "any"),
        (1, 4, "any"),
        (65, 33, "any"),
        (130, 2, "any"),
        (2, 130, "below 0"),
        (5, 3, "equal values"),
        (4, 3, "two equal values"),
        (4, 3, "one value of zeros"),
        (3, 2, "all 0"),
    ):
        weights, values = draw((), (), n, d_v, kind)
        more = rng.normal(size=(n, d_v))
        message = (
            f"{n} weights, values {values.shape} ({kind}): an average is a sum over the values. So the "
            "average of values + u, less that of u, is the average of the values; here u holds "
            "random numbers."
        )
        pair = [np.asarray(weighted_average(weights, some)) for some in (values + more, more)]
        shape = "One row of weights and n values: one average, of the length of a value."
        assert_equal([one.shape for one in pair], [(d_v,)] * 2, shape, name="the shapes")
        message_of_u = "The average of random numbers is not 0, and not NaN."
        assert_equal(bool(np.abs(pair[1]).max() > 1e-6), True, message_of_u)
        found = weighted_average(weights, values)
        phrase = "from values + u and u, by your function"
        assert_close(found, pair[0] - pair[1], message, against=phrase)
    weights, values = draw((), (), 7, 1)
    message = (
        "301 weights and values, seven of each 43 times: the average of the seven. Check first: "
        "does every position enter?"
    )
    alone = np.asarray(weighted_average(weights, values))
    found = weighted_average(np.tile(weights, 43), np.tile(values, (43, 1)))
    assert_close(found, alone, message, against="for the seven alone")
with check("a batch of rows, each with its values: each as alone", points=0.5):
    for lead, n, d_v in (((2,), 4, 5), ((1,), 4, 5), ((3,), 3, 3), ((2,), 130, 2), ((3,), 1, 4)):
        compare(*draw(lead, lead, n, d_v))
    weights, values = draw((2,), (2,), 4, 4)
    compare(weights, values)
with check("several rows of weights for one text: each as alone", points=0.5):
    for lead, n, d_v in (((33,), 17, 2), ((3,), 1, 2), ((4,), 4, 1), ((1,), 4, 5), ((2,), 5, 3)):
        compare(*draw(lead, (), n, d_v))
    refused = False
    try:
        weighted_average(np.array([[2.0], [0.5], [1.0]]), rng.normal(size=(1, 2)))
    except ValueError:
        refused = True
    message = (
        "weights (3, 1) and values (1, 2), one weight for one value: the two lengths n are equal, so "
        "it is no ValueError."
    )
    assert_equal(refused, False, message, name="'a ValueError is raised'")
with check("leading axes that broadcast, two and more: each as alone", points=0.5):
    for batch_weights, batch_values, n in (
        ((2, 3), (2, 3), 4),
        ((), (2, 3), 4),
        ((2, 3), (), 4),
        ((2, 1), (3,), 4),
        ((3,), (2, 3), 4),
        ((2, 3), (2, 1), 4),
        ((1, 2), (), 4),
        ((2, 1, 3), (4, 1), 4),
        ((3, 1), (2,), 1),
        ((3, 3), (3,), 3),
        ((2, 1, 1, 3), (2, 1, 1), 4),
    ):
        compare(*draw(batch_weights, batch_values, n, 2))
checks_passed("weighted_average")
### END HIDDEN TESTS

# %% check="weighted_average_scale" points=2
# Hidden checks of weighted_average: the size of the weights does not matter; zeros are weights.
### BEGIN HIDDEN TESTS
rng = check_rng()
weights = rng.uniform(0.1, 1.0, size=(2, 4))
weights[0, 1] = weights[1, 3] = 0.0
values = rng.normal(size=(2, 4, 3))
as_were = "with the weights as they were"


def compare(weights, values, factors, what):
    """The averages with those of the weights as they were."""
    expected = np.asarray(weighted_average(weights, values))
    message = "One average for each row of weights, with as many numbers as a value."
    assert_equal(expected.shape, (*values.shape[:-2], 3), message, name="the shape")
    other = np.asarray(weighted_average(weights, -values))
    message = "The values with the other sign have another average, and none of it is NaN."
    assert_equal(bool(np.abs(expected - other).max() > 1e-3), True, message)
    for factor in factors:
        refused = False
        try:
            found = weighted_average(weights * factor, values)
        except ValueError:
            refused = True
        message = (
            f"{what}: none of the weights is negative, no row is all zero, so it is no ValueError. "
            "Only the ratios in a row count."
        )
        assert_equal(refused, False, message, name="'a ValueError is raised'")
        message = (
            f"{what}: the averages have to be those of the weights as they were. Check first: is "
            "something added to the sum that divides, or compared with a small number?"
        )
        assert_close(found, expected, message, against=as_were)


with check("one row, times 1e-12 and 1e9: the same average", points=1.5):
    for row, its_values in zip(weights, values, strict=True):
        what = "Four weights, one of them 0, all times 1e-12 or times 1e9"
        compare(row, its_values, (1e-12, 1e9), what)
with check("two rows, each times another number: the same averages", points=0.5):
    factors = np.array([[1e-12], [1e9]]), np.array([[1e9], [1e-12]])
    what = "Two rows of weights, of which one is near 1e-12 and the other near 1e9"
    compare(weights, values, factors, what)
checks_passed("weighted_average")
### END HIDDEN TESTS

# %% check="weighted_average_integers" points=0.25
# Hidden checks of weighted_average: whole numbers, and the precision of the result.
### BEGIN HIDDEN TESTS
rng = check_rng()
weights = np.array([[1, 2, 0, 4], [3, 0, 1, 1]])
values = rng.integers(-9, 10, size=(2, 4, 3))
expected = np.asarray(weighted_average(weights + 0.0, values + 0.0), dtype=float)
message = "One average for each row of weights, with as many numbers as a value."
assert_equal(expected.shape, (2, 3), message, name="the shape")
message = "The averages are not all 0, and none is NaN."
assert_equal(bool(np.abs(expected).max() > 1e-3), True, message)
assert_close(
    weighted_average(weights, values),
    expected,
    "Whole numbers in weights and values have to give the averages that the same numbers in "
    "float64 give, as floating numbers.",
    against="with the same numbers in float64",
)
assert_close(
    weighted_average(weights.astype(np.float32), values.astype(float)),
    expected,
    "weights in float32 and values in float64 have to give the averages of float64 everywhere, in "
    "float64: the widest input decides.",
    precise=True,
    rtol=1e-5,
    atol=1e-5,
    against="with both in float64",
)
assert_close(
    weighted_average(weights.astype(float), values.astype(np.float32)),
    expected,
    "weights in float64 and values in float32 have to give the averages of float64 everywhere, in "
    "float64 and with all its digits.",
    precise=True,
    against="with both in float64",
)
assert_close(
    weighted_average(weights / 2, values),
    np.asarray(weighted_average(weights / 2, values + 0.0), dtype=float),
    "Weights of halves (0.5, 1.5) and values of whole numbers have to give the averages that the "
    "same numbers in float64 give, in float64 and with all its digits.",
    precise=True,
    against="with the values in float64",
)
values = rng.normal(size=(2, 4, 3))
expected = np.asarray(weighted_average(weights + 0.0, values + 0.0), dtype=float)
message = "One average for each row of weights, with as many numbers as a value."
assert_equal(expected.shape, (2, 3), message, name="the shape")
message = "The averages are not all 0, and none is NaN."
assert_equal(bool(np.abs(expected).max() > 1e-3), True, message)
assert_close(
    weighted_average(weights, values),
    expected,
    "Weights of whole numbers and values in float64 have to give the averages of float64 "
    "everywhere, in float64 and with all its digits.",
    precise=True,
    against="with both in float64",
)
### END HIDDEN TESTS

# %% check="weighted_average_inputs_unchanged" points=0.25
# Hidden checks of weighted_average: its inputs afterwards.
### SIDE CONDITION: counts once another check of weighted_average passes.
### BEGIN HIDDEN TESTS
rng = check_rng()
weights = rng.uniform(0.1, 1.0, size=(2, 4))
values = rng.normal(size=(2, 4, 3))


@probe
def inputs_after_average(weights, values):
    average = weighted_average(weights, values)
    return average, weights, values


average, weights_after, values_after = inputs_after_average(weights.copy(), values.copy())
message = "weighted_average changes its inputs; what the caller gives stays as it is."
assert_equal(weights_after, weights, message, name="weights")
assert_equal(values_after, values, message, name="values")
### END HIDDEN TESTS

# %% check="weighted_average_errors" points=0.5
# Hidden checks of weighted_average: misuse is a ValueError.
### SIDE CONDITION: counts once another check of weighted_average passes.
### BEGIN HIDDEN TESTS
rng = check_rng()
weights = rng.uniform(0.5, 1.0, size=(2, 4))
values = rng.normal(size=(2, 4, 3))
negative = weights.copy()
negative[1, 2] = -0.1
with assert_raises(ValueError, "A row of nothing but negative weights is a ValueError, too."):
    weighted_average(-weights[0], values[0])
with assert_raises(ValueError, "A negative weight in a row with a positive sum is a ValueError."):
    weighted_average(negative, values)
small = np.array([1.0, 2.0, -1e-9, 1.0])
for factor in (1.0, 1e-12):
    message = "Weights 1, 2, -1e-9 and 1, and these times 1e-12: the negative one is a ValueError."
    with assert_raises(ValueError, message):
        weighted_average(factor * small, values[0])
message = "Weights (2, 1, 4), of which one is negative: a ValueError, with any number of axes."
with assert_raises(ValueError, message):
    weighted_average(negative[:, None], values)
with assert_raises(ValueError, "A negative whole number among the weights is a ValueError."):
    weighted_average(np.array([2, -1, 1, 1]), values[0])
zero_row = weights.copy()
zero_row[1] = 0.0
with assert_raises(ValueError, "One row of the batch is all zero: a ValueError."):
    weighted_average(zero_row, values)
message = "The first of two rows is all zero, the last is not: a ValueError. Every row counts."
with assert_raises(ValueError, message):
    weighted_average(zero_row[::-1].copy(), values)
message = "Weights (3, 4), of which the row in the middle is all zero: a ValueError."
with assert_raises(ValueError, message):
    weighted_average(zero_row[[0, 1, 0]], values[0])
message = "A negative weight in the first of two rows, none in the last: a ValueError."
with assert_raises(ValueError, message):
    weighted_average(negative[::-1].copy(), values)
message = "Weights (2, 1, 4), of which one row is all zero: a ValueError, with any number of axes."
with assert_raises(ValueError, message):
    weighted_average(zero_row[:, None], values)
with assert_raises(ValueError, "A single row that is all zero is a ValueError."):
    weighted_average(np.zeros(4), values[0])
with assert_raises(ValueError, "Whole numbers that are all zero are a ValueError."):
    weighted_average(np.zeros(4, dtype=int), values[0])
with assert_raises(ValueError, "One weight for one value, and it is 0: a ValueError, too."):
    weighted_average(np.zeros((2, 1)), values[0, :1])
with assert_raises(ValueError, "One weight for four values is a ValueError; do not stretch it."):
    weighted_average(weights[:, :1], values)
with assert_raises(ValueError, "One weight for four values is a ValueError, without a batch too."):
    weighted_average(weights[0, :1], values[0])
with assert_raises(ValueError, "Four weights for one value are a ValueError; do not stretch it."):
    weighted_average(weights, values[:, :1])
with assert_raises(ValueError, "Four weights for three values are a ValueError."):
    weighted_average(weights, values[:, :3])
with assert_raises(ValueError, "Three weights for four values with three features: a ValueError."):
    weighted_average(weights[:, :3], values)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Check the lengths first: compare the last axis of one argument with the second to last of the
# other.
# For each row of weights you need its own sum, kept as an axis of length 1, so that the division
# lines up. Then multiply and add along axis $-2$. Either give the weights a new last axis so that
# they broadcast against the values, or name the axes in one `np.einsum`. A plain `weights @ values`
# is right for one row, but does something else for a batch.
#
# </details>

# %% [markdown]
# ### Three ways to look
#
# The weights decide where we look. The same five states, three settings of the weights:

# %% tags=["demonstration"]
rng = np.random.default_rng(3)
H = rng.normal(size=(5, 3)).round(1)  # five states of three numbers: the, black, cat, is, sleeping
looks = np.array(
    [
        [1, 1, 1, 1, 1],  # everywhere alike
        [0, 0, 1, 0, 0],  # only at "cat"
        [0, 1, 3, 0, 0],  # mostly at "cat", a little at "black"
    ]
)
print("states:\n", H)
print("averages:\n", weighted_average(looks, H).round(2))  # weights (3, 5), values (5, 3)

# %% [markdown]
# The second row of the result is the state of "cat" itself: with all weight on one position a
# weighted average is a **look-up**. The first is the plain mean. Everything between them is
# allowed.
#
# ### Check yourself: what does an average forget?
#
# Take `weights (5,)` and `values (5, 3)`. Now put the five values into another order, and put the
# five weights into the *same* other order. What happens to `weighted_average`?
#
# * `"a"`: it changes, because position 1 counts first.
# * `"b"`: its numbers come out in another order.
# * `"c"`: it stays the same.
# * `"d"`: it stays the same only if all weights are equal.

# %% answer="answer_order"
### BEGIN SOLUTION
answer_order = "c"
### END SOLUTION

# %% check="answer_order" points=1
check_answer("answer_order", answer_order)

# %% [markdown]
# ## 5. The same task, looking everywhere
#
# Back to copying. Everything is as in section 2: same network, same number of parameters, same
# steps, same data. Only the context is now a weighted average of all encoder states, with new
# weights for each symbol that is written.

# %% tags=["demonstration", "nbval-ignore-output"]
# About ten seconds on a quiet laptop; the numbers depend on training.
looking = train_copier(look_everywhere=True, steps=1000, longest=40)
looking_scores = np.array([copy_accuracy(looking, n) for n in lengths])  # (7, 2)
for n, (token, whole) in zip(lengths, looking_scores):
    print(f"length {n:2d}: token accuracy {token:.2f}, whole sequences {whole:.2f}")

count = [sum(p.numel() for p in model.parameters()) for model in (fixed, looking)]
print("parameters:", count)
assert count[0] == count[1]

# %% tags=["demonstration", "nbval-ignore-output"]
# The claim of Figure 2, in numbers.
assert looking_scores[:, 0].min() > 0.95 and fixed_scores[-1, 0] < 0.5
assert looking_scores[4, 1] > 0.8 and fixed_scores[4, 1] < 0.05  # whole sequences, length 20

figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
for column, (axes, title) in enumerate(zip(panels, ["token accuracy", "whole-sequence accuracy"])):
    axes.plot(lengths, looking_scores[:, column], "o-", label="looks everywhere")
    axes.plot(lengths, fixed_scores[:, column], "s--", label="fixed vector")
    axes.set_title(title)
    axes.set_xlabel("length of the sequence")
    axes.set_ylim(-0.03, 1.05)
    axes.grid(alpha=0.3)
panels[0].axhline(0.1, color="grey", linestyle=":", label="guessing")
panels[0].set_ylabel("accuracy on new sequences")
panels[0].legend(loc="lower left")
show(
    figure,
    "Figure 2. Same number of parameters, same training, another context: with a fixed vector "
    "the accuracy falls with the length. With a weighted average of all states the token accuracy "
    "hardly does (whole sequences: from 1.00 to about 0.86). Do not conclude that a fixed vector "
    "of 64 numbers cannot hold more: more training lifts the dashed curve.",
    "Two panels over lengths 2 to 40. Looking everywhere stays above 0.98 in token accuracy and "
    "above 0.85 in whole sequences. The fixed vector falls from 1.0 to about 0.37 in token "
    "accuracy, and to 0 in whole sequences from length 15 on.",
)

# %% [markdown]
# Look at both panels. A token accuracy of 0.8 sounds fine, and not one sequence in ten is right as
# a whole. Which measure is the honest one depends on what you need: for copying a phone number it
# is the right panel.
#
# ### Where does the copier look?
#
# It should look at position 1, then 2, then 3. Does it, and how does it find its place? Nobody gave
# it position numbers.
#
# To *see* its weights we use a trick: we give it the identity matrix as values. Row $t$ of that is
# 1 at place $t$ and 0 elsewhere. So the weighted average of the rows has the weight of position $t$
# at place $t$: it *is* the row of (normalised) weights.
#
# **Predict, then run**: the sequence is 7 7 7 7 7 7 7 7, one digit eight times. If the decoder finds
# its place by *what* stands there, all weights of a row are equal. Will they be?

# %% tags=["demonstration", "nbval-ignore-output"]
# The weights come from training.
@torch.no_grad()
def copier_looks(model, source):
    """Where the copier looks for each symbol that it writes: (b, n, n)."""
    previous = torch.cat([torch.full((len(source), 1), 10), source[:, :-1]], 1)
    H, last = model.encoder(model.read_vectors(source))  # (b, n, d_h)
    S, _ = model.decoder(model.write_vectors(previous), last)  # (b, n, d_h)
    identity = torch.eye(source.shape[1]).expand(len(source), -1, -1)
    return F.scaled_dot_product_attention(S, H, identity, scale=1.0)


source, _ = copy_batch(8, 500, torch.Generator().manual_seed(11))
looks_at = copier_looks(looking, source)
mean_map = looks_at.mean(0).numpy()  # (8, 8)
sevens = copier_looks(looking, torch.full((1, 8), 7))[0].numpy()
print("largest weight at its own position:")
print("  random digits: ", round(float((looks_at.argmax(-1) == torch.arange(8)).float().mean()), 2))
print("  eight sevens:  ", float((sevens.argmax(-1) == np.arange(8)).mean()))
print("looks, written symbol 1 to 8, at position:", (mean_map.argmax(-1) + 1).tolist())
# The average below is your function's: weights (8, 8), values (8, 64).
H, _ = looking.encoder(looking.read_vectors(source[:1]))
states = H[0].detach().numpy()  # (8, 64)
contexts = weighted_average(looks_at[0].numpy(), states)
by_torch = (looks_at[0] @ H[0]).detach().numpy()
print("your weighted_average gives the copier's contexts:", np.allclose(contexts, by_torch, atol=1e-5))
assert np.allclose(contexts, by_torch, atol=1e-5)
positions = [str(t) for t in range(1, 9)]
heatmap(
    mean_map,
    positions,
    positions,
    row_label="symbol to be written",
    column_label="position looked at",
    title="trained copier, mean of 500 sequences",
    caption="The copier's map, mean of 500 random sequences: for symbol 1 it looks at position 1, "
    "then 2, then 3.",
    alt="Attention map of the trained copier, eight symbols by eight positions: the largest weight "
    "of each row lies on the diagonal.",
)
assert (looks_at.argmax(-1) == torch.arange(8)).float().mean() > 0.9
assert (mean_map.argmax(-1) == np.arange(8)).all()
assert (sevens.argmax(-1) == np.arange(8)).mean() > 0.4  # guessing: 0.125

# %% [markdown]
# With random digits it practically always looks at its own position. And with eight sevens? In each row the largest weight is looked at. When
# this was written, six of the eight looks were still right, where guessing gives one. (Outside this
# notebook we trained five more copiers and gave each all ten digits so: with sevens 7 or 8 looks were
# right, with the worst digit of each 4 to 6.) What stands there cannot have told it: all eight digits
# are the same. What differs is how many sevens were read before. So the two GRUs keep something like a count in their states, and the look finds the
# state with the right count. (In lesson 7 attention gets position numbers and need not count.)
#
# ### What did the last state have to carry?
#
# Now open the two trained models. We change one symbol, at position $t$, and measure how far the
# **last encoder state** moves. It is the influence of section 3, with a real change in place of a
# tiny one.
#
# **Predict, then run**: in which of the three encoders does a change of the *first* symbol move the
# last state most: the untrained one, the one trained with the fixed vector, or the one trained to
# look everywhere? Write it down first (this is not graded):

# %% tags=["demonstration", "guess"]
guess_moves = "looks everywhere"  # write "untrained", "fixed vector" or "looks everywhere"


# %% tags=["demonstration", "nbval-ignore-output"]
@torch.no_grad()
def effect_of_a_change(model, n=40):
    """How far the last state moves when the symbol at one position changes: (n,)."""
    generator = torch.Generator().manual_seed(7)
    source, _ = copy_batch(n, 100, generator)
    model.double()  # float32 would round the smallest movements away
    _, last = model.encoder(model.read_vectors(source))
    distance = []
    for place in range(n):
        changed = source.clone()
        changed[:, place] = (
            source[:, place] + torch.randint(1, 10, (100,), generator=generator)
        ) % 10
        _, moved = model.encoder(model.read_vectors(changed))
        distance.append((moved - last)[0].norm(dim=-1).mean().item())
    model.float()
    return np.array(distance)


torch.manual_seed(0)
effect = {
    "untrained": effect_of_a_change(Copier(False)),
    "trained, fixed vector": effect_of_a_change(fixed),
    "trained, looks everywhere": effect_of_a_change(looking),
}
for name, distance in effect.items():
    print(f"{name:26s} position 1: {distance[0]:.1e}   position 40: {distance[-1]:.1e}")

# %% tags=["demonstration"]
most = max(effect, key=lambda name: effect[name][0]).removeprefix("trained, ")
why = "It has nothing but the last state, so it learned to keep the first symbol in it."
reply("guess_moves", guess_moves, most, why)

# %% [markdown]
# That a change moves the state does not mean that the symbol can be read out of it. So we also
# measure which positions the models copy right, at length 40.


# %% tags=["demonstration", "nbval-ignore-output"]
@torch.no_grad()
def accuracy_by_position(model, n=40):
    """Share of right symbols at each position of 1000 new sequences: (n,)."""
    source, previous = copy_batch(n, 1000, torch.Generator().manual_seed(9))
    return (model(source, previous).argmax(-1) == source).float().mean(0).numpy()


copied = {
    "trained, fixed vector": accuracy_by_position(fixed),
    "trained, looks everywhere": accuracy_by_position(looking),
}
for name, right in copied.items():
    print(f"{name:26s} position 1: {right[0]:.2f}   10: {right[9]:.2f}   40: {right[-1]:.2f}")

# %% tags=["demonstration", "nbval-ignore-output"]
assert effect["untrained"][0] < 1e-6 * effect["untrained"][-1]
assert effect["trained, fixed vector"].min() > 0.02 * effect["trained, fixed vector"].max()
assert effect["trained, fixed vector"][0] > effect["trained, fixed vector"][-1]
assert effect["trained, looks everywhere"][0] < 1e-2 * effect["trained, looks everywhere"][-1]
assert effect["trained, looks everywhere"][0] > 1e2 * effect["untrained"][0]
assert copied["trained, fixed vector"][0] > copied["trained, fixed vector"][-1] + 0.3
assert copied["trained, looks everywhere"].min() > 0.9

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
styles = {
    "untrained": ("grey", ":"),
    "trained, fixed vector": ("C1", "--"),
    "trained, looks everywhere": ("C0", "-"),
}
for axes, curves in [(left, effect), (right, copied)]:
    for name, curve in curves.items():
        colour, style = styles[name]
        axes.plot(range(1, 41), curve, style, color=colour, linewidth=2, label=name)
    axes.grid(alpha=0.3)
left.set_yscale("log")
left.set_xlabel("position of the changed symbol (40 = read last)")
left.set_ylabel("how far the last state moves")
left.legend(loc="lower right")
right.axhline(0.1, color="black", linewidth=1, label="guessing")
right.set_ylim(-0.03, 1.05)
right.set_xlabel("position of the copied symbol")
right.set_ylabel("share copied right")
right.legend(loc="center right")
figure.tight_layout()
show(
    figure,
    "Figure 3. Left: in the encoder that must put everything into one vector, a change at any of "
    "the 40 positions moves that vector, most of all at the first ones. In the encoder of the "
    "model that looks everywhere early positions hardly move the last state; still less in the "
    "untrained one. Right: with the fixed vector only the first positions are copied well; looking "
    "everywhere, all are. Do not conclude from the left panel what can be read out: position 40 "
    "moves the fixed vector, and three out of four times it is copied wrong.",
    "Two panels over 40 positions. Left, logarithmic axis: untrained rises in a nearly straight "
    "line from about 3e-8 at position 1 to about 2 at position 40; trained with the fixed vector "
    "falls from about 2.5 at position 1 to 0.2 at position 40; trained to look everywhere rises "
    "from about 1e-3 to about 5. Right: with the fixed vector the share copied right falls from "
    "0.95 at position 1 to about 0.4 at position 10 and about 0.25 from position 20 on; looking "
    "everywhere stays above 0.98.",
)

# %% [markdown]
# This is the surprise of the lesson. "RNNs forget, so we need attention" is half the story. In the
# trained fixed-vector model every one of the 40 positions moves the last state, the **first** ones
# most. The first ones are also copied best (0.95 right at position 1, about 0.26 at position 40).
# So it is not true that the beginning is forgotten; yet the model cannot read all 40 symbols back
# from the one vector they share. (The right panel measures keeping and reading out together: we
# cannot say which of the two fails.) Looking everywhere takes away the need. Each state has to
# describe only its own symbol and place, and the last state is free to forget.

# %% [markdown]
# ## 6. A translator you can look into
#
# In copying the order of reading is the order of writing. In translation it can change. In French,
# colours stand **after** the noun:
#
# | French word | comes from the English word |
# | --- | --- |
# | 1 le | 1 the |
# | 2 chat | **3** cat |
# | 3 noir | **2** black |
# | 4 dort | **5** sleeping |
#
# ("is" has no French word of its own.)
#
# Which source word each target word comes from is called the **alignment**. Here it is not 1, 2, 3:
# the numbers 3 and 2 change places. If you draw lines from word to word, two of them **cross**. A
# decoder that may look everywhere should show it.
#
# Here is the whole language: a tiny grammar that makes 3000 sentence pairs. Qualities (small, big,
# pretty, bad) stand before the French noun, colours after it, and articles and adjectives follow
# the noun's gender.

# %% tags=["demonstration"]
articles = {"the": ("le", "la"), "a": ("un", "une")}
nouns = {"cat": ("chat", 0), "dog": ("chien", 0), "horse": ("cheval", 0), "rabbit": ("lapin", 0)}
nouns |= {"wolf": ("loup", 0), "cow": ("vache", 1), "mouse": ("souris", 1), "goat": ("chèvre", 1)}
nouns |= {"hen": ("poule", 1), "frog": ("grenouille", 1)}  # 0 masculine, 1 feminine
qualities = {"small": ("petit", "petite"), "big": ("grand", "grande")}
qualities |= {"pretty": ("joli", "jolie"), "bad": ("mauvais", "mauvaise")}
colours = {"black": ("noir", "noire"), "white": ("blanc", "blanche")}
colours |= {"green": ("vert", "verte"), "grey": ("gris", "grise")}
verbs = {"sleeping": "dort", "eating": "mange", "running": "court", "drinking": "boit"}
verbs |= {"singing": "chante", "playing": "joue"}


# %% tags=["demonstration"]
def sentence_pair(article, quality, colour, noun, verb):
    """English words, French words, and for each French word the position of its English word."""
    french_noun, gender = nouns[noun]
    english = [article, quality, colour, noun, "is", verb]
    french = [
        (articles[article][gender], article),
        (qualities[quality][gender] if quality else None, quality),
        (french_noun, noun),
        (colours[colour][gender] if colour else None, colour),
        (verbs[verb], verb),
    ]
    english = [word for word in english if word]
    french = [(word, origin) for word, origin in french if word]
    gold = [english.index(origin) for _, origin in french]
    return english, [word for word, _ in french], gold


example = sentence_pair("the", None, "black", "cat", "sleeping")
print(*example, sep="\n")

# %% [markdown]
# The third list is the grammar's own answer to "which English word does each French word come
# from?" It counts from 0, as Python does: 0, 2, 1, 4 are the words 1, 3, 2, 5 of the table above.
# It is never shown to the model. We use it to judge the map.
#
# We also **hide every sentence with both "black" and "cat"** from training. The model will meet
# black dogs and white cats, but never a black cat.

# %% tags=["demonstration"]
pairs = [
    sentence_pair(article, quality, colour, noun, verb)
    for article in articles
    for quality in [None, *qualities]
    for colour in [None, *colours]
    for noun in nouns
    for verb in verbs
]
held_out = [pair for pair in pairs if {"black", "cat"} <= set(pair[0])]
training = [pair for pair in pairs if pair not in held_out]
english_words = sorted({word for english, _, _ in pairs for word in english})
french_words = ["<start>", "<end>", *sorted({word for _, french, _ in pairs for word in french})]
print(len(training), "pairs to train,", len(held_out), "held out:", " ".join(held_out[0][0]), "...")

# %% [markdown]
# The translator is the copier with two changes. The encoder reads in both directions (as in
# Bahdanau, Cho and Bengio 2015), so that the state at "the" can know the noun's gender. And the
# decoder **starts from zeros**: all it learns about the English sentence comes through the weighted
# average (and from the French words so far).
#
# To *see* the weights we use the trick of section 5 again: the identity matrix as values.


# %% tags=["demonstration"]
class Translator(nn.Module):
    """Reads English in both directions; writes French, looking at all encoder states."""

    def __init__(self, d_h=64):
        super().__init__()
        self.read_vectors = nn.Embedding(len(english_words), 32)
        self.write_vectors = nn.Embedding(len(french_words), 32)
        self.encoder = nn.GRU(32, d_h // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(32, d_h, batch_first=True)
        self.readout = nn.Linear(2 * d_h, len(french_words))

    def forward(self, source, previous):
        H, _ = self.encoder(self.read_vectors(source))  # (b, n, d_h)
        S, _ = self.decoder(self.write_vectors(previous))  # (b, m, d_h), starts from zeros
        identity = torch.eye(H.shape[1]).expand(len(H), -1, -1)  # (b, n, n)
        look = F.scaled_dot_product_attention(S, H, identity, scale=1.0)  # (b, m, n)
        return self.readout(torch.cat([S, look @ H], -1)), look


# %% tags=["demonstration"]
def as_numbers(some_pairs):
    """English, French so far, and French to come, for pairs of one length."""
    source = [[english_words.index(word) for word in english] for english, _, _ in some_pairs]
    target = [
        [french_words.index(word) for word in ["<start>", *french, "<end>"]]
        for _, french, _ in some_pairs
    ]
    source, target = torch.tensor(source), torch.tensor(target)
    return source, target[:, :-1], target[:, 1:]


def train_translator(seed, steps=500):
    torch.manual_seed(seed)
    model = Translator()
    groups = [as_numbers([pair for pair in training if len(pair[0]) == n]) for n in (4, 5, 6)]
    adam = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, 1e-2, total_steps=steps)
    for step in range(1, steps + 1):
        source, previous, following = groups[step % 3]  # sentences of one length: no padding
        chosen = torch.randint(len(source), (64,))
        logits, _ = model(source[chosen], previous[chosen])
        loss = F.cross_entropy(logits.flatten(0, 1), following[chosen].flatten())
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        schedule.step()
        if step % 125 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    return model


# %% [markdown]
# ### Which row is the word?
#
# The decoder works step by step. It reads `<start>` and writes "le". It reads "le" and writes
# "chat". It reads "chat" and writes "noir". At each step it makes one row of weights, takes the
# average, and writes.
#
# The **second** row is made when the decoder has read "le" and not yet written "chat". After
# training you will see that this row looks at "cat". **Which French word is the row about?** Commit
# yourself:
#
# * `"a"`: "le": it is the word the decoder has just read.
# * `"b"`: "chat": it is the word the decoder writes in this step.
# * `"c"`: both alike: one may label the rows either way.
# * `"d"`: "noir": adjective and noun belong together.

# %% answer="answer_row"
### BEGIN SOLUTION
answer_row = "b"
### END SOLUTION

# %% check="answer_row" points=1
check_answer("answer_row", answer_row)

# %% [markdown]
# ### First the map that means nothing
#
# Before training, all numbers in the network are random. Its attention map already looks like a
# map. Remember this picture when somebody shows you one.


# %% tags=["demonstration"]
@torch.no_grad()
def attention_map(model, pair):
    """One row for each French word to be written and <end>, one column for each English word."""
    source, previous, _ = as_numbers([pair])
    return model(source, previous)[1][0].numpy()  # (m + 1, n)


torch.manual_seed(3)
random_map = attention_map(Translator(), example)
rows = [*example[1], "<end>"]
heatmap(
    random_map,
    rows,
    example[0],
    row_label="French word to be predicted",
    column_label="English word looked at",
    title="random weights, not trained",
    caption="Figure 4. The map of an untrained network: every row sums to 1, some cells are darker "
    "than others, and it means nothing. It shows no more than how random numbers fell.",
    alt="Attention map of an untrained network: five rows, five columns, weights between 0.07 and "
    "0.44, spread over each row without any order.",
)
assert np.allclose(random_map.sum(-1), 1, atol=1e-5) and random_map.max() < 0.6

# %% [markdown]
# ### Now train it

# %% tags=["demonstration", "nbval-ignore-output"]
# A few seconds on a quiet laptop; the losses depend on training.
translator = train_translator(seed=0)
source, previous, _ = as_numbers([example])
predicted = translator(source, previous)[0].argmax(-1)[0]
print(" ".join(example[0]), "->", " ".join(french_words[i] for i in predicted))
assert [french_words[i] for i in predicted] == [*example[1], "<end>"]

# %% tags=["demonstration", "nbval-ignore-output"]
trained_map = attention_map(translator, example)
assert trained_map[1, 2] > 0.7 and trained_map[2, 1] > 0.7  # chat: cat; noir: black
assert trained_map[1, 1] < 0.3 and trained_map[2, 2] < 0.3  # and not straight ahead

heatmap(
    trained_map,
    rows,
    example[0],
    row_label="French word to be predicted",
    column_label="English word looked at",
    title="trained in this notebook",
    links=True,
    caption='Figure 5. The crossing: to predict "chat" the trained decoder looks at "cat", to '
    'predict "noir" it looks at "black". It has never seen these two words together. Do not '
    'conclude that every row is an alignment: a row must sum to 1, so "<end>" has to look at '
    "something too.",
    alt="Attention map of the trained translator. Rows le, chat, noir, dort, end; columns the, "
    "black, cat, is, sleeping. The weight is near 1 for chat at cat and for noir at black; le "
    "looks at the, dort at sleeping. Beside it both sentences, with a line for each large weight: "
    "the lines of chat and noir cross, and so do those of dort and end, which means nothing.",
)

# %% [markdown]
# ### One picture is an anecdote
#
# Does it hold for other sentences, and for another training run? We train a second model from
# another seed. Both are tested on the 60 held-out sentences with a black cat: is the whole French
# sentence right? And how often does each kind of word have its largest weight where the grammar
# says?

# %% tags=["demonstration", "nbval-ignore-output"]
# A few seconds on a quiet laptop; the numbers depend on training.
kinds = {"article": articles, "quality": qualities, "noun": nouns}
kinds |= {"colour": colours, "verb": verbs}


@torch.no_grad()
def judge(model):
    """Whole sentences right, and for each kind of word the share looked at as in the grammar."""
    right, hits = [], {kind: [] for kind in kinds}
    for english, french, gold in held_out:
        source, previous, following = as_numbers([(english, french, gold)])
        logits, look = model(source, previous)
        right.append(bool((logits.argmax(-1) == following).all()))
        for row, origin in enumerate(gold):
            (kind,) = [kind for kind, words in kinds.items() if english[origin] in words]
            hits[kind].append(look[0, row].argmax().item() == origin)
    return np.mean(right), {kind: np.mean(found) for kind, found in hits.items()}


for model in (translator, train_translator(seed=8)):
    exact, aligned = judge(model)
    print("sentences right:", round(exact, 2), {k: round(float(v), 2) for k, v in aligned.items()})
    assert exact > 0.95
    assert min(aligned["quality"], aligned["noun"], aligned["colour"]) > 0.85
    le = attention_map(model, example)[0]
    print("    the row of 'le':", dict(zip(example[0], [round(float(v), 2) for v in le])))

# %% [markdown]
# Both models translate all 60 held-out sentences. In both, nouns and adjectives look at their
# English words. But in our second run half of the articles do not: "le" looks at "is". (Your second
# run may differ.) When this lesson was written we trained ten models from ten seeds. All ten got at
# least 59 of the 60 sentences right and showed the crossing. In three or four of them a part of
# the articles looked elsewhere, and now and then a part of the verbs or of the nouns. How can "le" be right without looking at
# "the"? The encoder reads in both directions, so the state at "is" has heard of "the" and of the
# noun as well.
#
# **Attention shows where the model looked. It is a hint at an alignment, not a proof of one.**
#
# ### The row trap
#
# What if you label the rows by the word that was *read* in place of the word that is *predicted*?
# Nothing crashes. The map is the same, only the labels move by one:

# %% tags=["demonstration", "nbval-ignore-output"]
for label, names in [("predicted", rows), ("read", ["<start>", *example[1]])]:
    best = [example[0][column] for column in trained_map.argmax(-1)]
    print(f"labelled by the word {label}: ", [f"{name}: {word}" for name, word in zip(names, best)])

# %% [markdown]
# With the wrong labels "le" looks at "cat" and "chat" at "black". One could even make up a story
# for it. Check in the code which row is which, before you tell the story.

# %% [markdown]
# ## 7. Find the silent bug
#
# Someone encodes several sentences and wants the last state of each. The code runs, the shapes are
# right, the numbers look like states. **The result is wrong.** Find out why before you read the
# choices. You may add cells and call the function with lists of your own.


# %% tags=["demonstration"]
def last_states(sentences, W_x, W_h):
    """The last state of each sentence: (number of sentences, d_h)."""
    h = np.zeros(W_h.shape[0])  # line 1
    last = []
    for X in sentences:  # line 2
        h = rnn_hidden_states(X, W_x, W_h, h0=h)[-1]  # line 3
        last.append(h)
    return np.stack(last)  # line 4


rng = np.random.default_rng(6)
W_x, W_h = rng.normal(size=(4, 3)) * 0.5, rng.normal(size=(3, 3))
print(last_states([X_short, X_long], W_x, W_h).round(2))

# %% [markdown]
# What is wrong?
#
# * `"a"`: line 1 stands outside the loop, so a sentence begins with what is left of the one
#   before.
# * `"b"`: line 2 goes through the sentences; it should go through the words.
# * `"c"`: `[-1]` in line 3 takes the last word only; the state of a sentence is the mean of all
#   rows.
# * `"d"`: line 4 should join the states into one long vector.

# %% answer="answer_bug"
### BEGIN SOLUTION
answer_bug = "a"
### END SOLUTION

# %% check="answer_bug" points=1
check_answer("answer_bug", answer_bug)

# %% [markdown]
# ### Exercise: `mended_last_states`
#
# **Difficulty** ●○○○○  **Importance** ●●●○○  You should spend up to 5-10 minutes.
#
# Copy `last_states` into this cell and mend it.
#
# * `sentences`: a list of arrays `(n, d_in)`, each with an `n` of its own; `W_x (d_in, d_h)`,
#   `W_h (d_h, d_h)`. The result is `(number of sentences, d_h)`: row $i$ is the last state of sentence
#   $i$, read from the zero state.
# * Neither the order of the sentences nor what else stands in the list may change a sentence's state.


# %% answer="mended_last_states"
def mended_last_states(sentences, W_x, W_h):
    """The last state of each sentence, each read from the zero state.

    sentences: list of (n, d_in) arrays; n may differ. W_x: (d_in, d_h). W_h: (d_h, d_h).
    Returns: (number of sentences, d_h).
    """
    ### BEGIN SOLUTION
    return np.stack([rnn_hidden_states(X, W_x, W_h)[-1] for X in sentences])
    ### END SOLUTION


# %% check="mended_last_states" points=2
rng = check_rng()
sentences = [rng.normal(size=(n, 3)) for n in (4, 2, 5)]
W_x, W_h = rng.normal(size=(3, 4)) * 0.5, rng.normal(size=(4, 4)) * 0.5
network = nn.RNN(3, 4, bias=False, dtype=torch.float64)
network.load_state_dict({"weight_ih_l0": torch.tensor(W_x.T), "weight_hh_l0": torch.tensor(W_h.T)})
with torch.no_grad():
    expected = np.stack([network(torch.tensor(X))[1][0].numpy() for X in sentences])
with check("the first sentence", points=0.5):
    message = "Row 0 is the last state of the first sentence (4 words), read from the zero state."
    found = mended_last_states([X.copy() for X in sentences], W_x.copy(), W_h.copy())
    first = found[0] if hasattr(found, "__len__") else found
    assert_close(first, expected[0], message)
with check("all sentences", points=1):
    message = (
        "Sentences of 4, 2 and 5 words: row i is the last state of sentence i, read from the zero "
        "state, whatever stood before it."
    )
    found = mended_last_states([X.copy() for X in sentences], W_x.copy(), W_h.copy())
    assert_close(found, expected, message)
with check("another order, and one twice: each as alone", points=0.5):
    found = mended_last_states([sentences[i].copy() for i in (2, 2, 0)], W_x.copy(), W_h.copy())
    given = [([sentences[i].copy()], W_x.copy(), W_h.copy()) for i in (2, 2, 0)]
    alone = [mended_last_states(*one) for one in given]
    alone = [np.asarray(one[0] if hasattr(one, "__len__") else one) for one in alone]
    message = (
        "The third sentence twice, then the first: each has the state that your function gives it "
        "in a list of its own, and none is NaN."
    )
    assert_close(found, np.stack(alone), message, against="for the sentences one by one")
    message = "Two sentences that differ have states that differ, and none is NaN."
    assert_equal(bool(np.abs(np.asarray(found)[0] - found[2]).max() > 1e-3), True, message)
checks_passed("mended_last_states")

# %% check="mended_last_states_lists" points=1
# Hidden checks of mended_last_states: lists of many kinds, dtypes, a second call, the list afterwards.
### BEGIN HIDDEN TESTS
rng = check_rng()
for lengths in ((1,), (3, 1, 1, 6), (2, 2, 2, 2, 2)):
    sentences = [rng.normal(size=(n, 3)) for n in lengths]
    W_x, W_h = rng.normal(size=(3, 3)) * 0.5, rng.normal(size=(3, 3)) * 0.5
    network = nn.RNN(3, 3, bias=False, dtype=torch.float64)
    weights = {"weight_ih_l0": torch.tensor(W_x.T), "weight_hh_l0": torch.tensor(W_h.T)}
    network.load_state_dict(weights)
    with torch.no_grad():
        expected = np.stack([network(torch.tensor(X))[1][0].numpy() for X in sentences])
    message = (
        f"Sentences of {lengths} words: each is read by itself, from the zero state. What else stands "
        "in the list does not change its last state, and sentences of one length have states of "
        "their own."
    )
    assert_close(mended_last_states(sentences, W_x, W_h), expected, message)


@probe
def states_and_sentences(sentences, W_x, W_h):
    return mended_last_states(sentences, W_x, W_h), sentences


X = rng.normal(size=(3, 2))
other_first, other_last = X.copy(), X.copy()
other_first[0], other_last[-1] = rng.normal(size=2), rng.normal(size=2)
zero_last = np.concatenate([X, np.zeros((1, 2))])
whole = np.array([[1, -1], [0, 2]])
told = {
    "one begins, one ends otherwise than the first": [X, other_first, other_last],
    "the second is the first with a word of zeros behind it, a word as any other": [X, zero_last],
    "whole numbers in the first, others in the second": [whole, X],
    "float32 in the first, float64 in the second": [whole.astype(np.float32), X],
    "of 3, 2 and 3 words": [other_first, X[1:], X],
}
for call, d_h in enumerate((3, 3, 1)):
    W_x, W_h = rng.normal(size=(2, d_h)) * 0.5, rng.normal(size=(d_h, d_h)) * 0.5
    network = nn.RNN(2, d_h, bias=False, dtype=torch.float64)
    weights = {"weight_ih_l0": torch.tensor(W_x.T), "weight_hh_l0": torch.tensor(W_h.T)}
    network.load_state_dict(weights)
    for what, sentences in told.items():
        with torch.no_grad():
            states = [network(torch.tensor(one + 0.0).double())[1][0].numpy() for one in sentences]
        found, after = states_and_sentences([one.copy() for one in sentences], W_x, W_h)
        message = (
            f"{len(sentences)} sentences ({what}), states of {d_h}: an array "
            f"{(len(sentences), d_h)} in float64, row i the last state of sentence i read alone."
        )
        if call == 1:
            message = (
                f"{message} The same sentences were given in an earlier call, with other W_x and "
                "W_h: the states are those of the matrices that are given with them."
            )
        assert_close(found, np.stack(states), message, precise=True)
        message = "After the call the caller's list holds as many sentences as before."
        assert_equal(len(after), len(sentences), message)
        message = (
            "After the call the caller's list holds the same sentences in the same order, with the "
            "same numbers."
        )
        for now, before in zip(after, sentences, strict=True):
            assert_equal(now, before, message, against="before the call")
into, onward = np.array([[1, 0, -1], [0, 1, 1]]), np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
expected = np.asarray(mended_last_states([X.copy(), other_last.copy()], into + 0.0, onward + 0.0))
assert_equal(np.shape(expected), (2, 3), "Two sentences, a state of three.", name="the shape")
message = "Not all states are one number, and none is NaN."
assert_equal(bool(np.ptp(expected.astype(float)) > 1e-3), True, message)
for kind in (int, np.float32):
    message = (
        f"Words in float64, W_x and W_h in {np.dtype(kind)}: the last states are those of the same "
        "matrices in float64, and in float64."
    )
    found = mended_last_states([X.copy(), other_last.copy()], into.astype(kind), onward.astype(kind))
    in_float64 = expected.astype(float)
    phrase = "with the matrices in float64"
    assert_close(found, in_float64, message, precise=True, against=phrase)


@probe
def states_of_transposes(sentences, W_x, W_h):
    return mended_last_states([X.T for X in sentences], W_x.T, W_h.T)


for d_in, d_h, lengths, kind in (
    (1, 2, (3, 1), "any"),
    (4, 4, (4, 4, 4, 4), "any"),
    (6, 3, (2, 33), "any"),
    (17, 2, (3, 65), "below 0"),
    (33, 5, (3, 131), "any"),
    (65, 3, (2, 4), "equal words"),
    (130, 2, (3, 2), "any"),
    (2, 3, (4, 1, 3), "words of zeros"),
    (3, 2, (4, 3), "the last two words equal"),
    (3, 3, (3, 3, 2), "60 in one place"),
    (3, 4, (3, 2), "2000 in one place"),
    (2, 2, (1, 2, 3) * 11, "any"),
):
    sentences = [rng.normal(size=(n, d_in)) for n in lengths]
    W_x, W_h = rng.normal(size=(d_in, d_h)) / d_in**0.5, rng.normal(size=(d_h, d_h)) / d_h**0.5
    if kind == "below 0":
        sentences = [-np.abs(X) for X in sentences]
    elif kind == "equal words":
        sentences = [X[:1] + 0 * X for X in sentences]
    elif kind == "words of zeros":
        sentences[0] *= 0.0
    elif kind == "the last two words equal":
        sentences[0][-2] = sentences[0][-1]
    elif kind != "any":
        sentences[0][-1, 0] = float(kind.split()[0])
        W_x[0] /= sentences[0][-1, 0]  # so that a state is not 1 or -1
    network = nn.RNN(d_in, d_h, bias=False, dtype=torch.float64)
    weights = {"weight_ih_l0": torch.tensor(W_x.T), "weight_hh_l0": torch.tensor(W_h.T)}
    network.load_state_dict(weights)
    with torch.no_grad():
        expected = np.stack([network(torch.tensor(X))[1][0].numpy() for X in sentences])
    message = (
        f"{len(lengths)} sentences of up to {max(lengths)} words ({kind}), d_in = {d_in}, d_h = "
        f"{d_h}: row i is the last state of sentence i, read from the zero state."
    )
    turned = [x.T.copy() for x in (*sentences, W_x, W_h)]
    found = mended_last_states(sentences=sentences, W_x=W_x, W_h=W_h)
    assert_close(found, expected, message)
    found = states_of_transposes(turned[:-2], *turned[-2:])
    assert_close(found, expected, f"{message} Here all arrays are transposes of other arrays.")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>How to catch such a bug</summary>
#
# A check on one sentence alone cannot see it. Two other checks do. The same sentence twice must
# give the same state twice. And another order of the sentences must give the same states in
# another order. Tests of this kind (repeat, reorder) need no known right answer; you will use them
# in every lesson of this course.
#
# </details>

# %% [markdown]
# ## 8. Your turn to explain
#
# A friend says: *"A vector of 64 numbers cannot hold 40 symbols. That is why the fixed-vector model
# fails, and attention helps because it gives the model a bigger vector."*
#
# Say what is right and what is wrong in it, in five to eight sentences. Use at least two numbers
# that you measured in this notebook. (4 points)

# %% [markdown] written="bottleneck" points=4
# ### BEGIN SOLUTION
# The first sentence is wrong as it stands: 40 digits need about 133 bits, and 64 numbers in float32
# have 2048. It is right that the fixed-vector model fails on long sequences: its token accuracy
# falls from about 0.96 at length 5 to about 0.37 at length 40, and no sequence of length 40 is
# right as a whole. But no hard limit is near: trained on lengths 2 to 10 only, for the same time,
# with about ten times more batches of length 10, the same network copies length 10 better (token
# accuracy about 0.86 in place of 0.79, whole sequences about 0.15 in place of 0.03). Nor has the vector simply
# forgotten: changing any of the 40 symbols still moves it (Figure 3). What is hard is to learn a
# code in which one vector serves all positions at once. Attention does not give a bigger vector:
# the context has 64 numbers as before, and both models have the same number of parameters. It gives
# a *new* vector at each step, a weighted average of all states with weights of that step, so that
# no single vector has to hold everything.
#
# **Marking scheme** (4 points). 1 point: it is no hard limit, with a reason (bits, or more
# training). 1 point: at least two numbers of the notebook, rightly used. 1 point: the context with
# attention has the same size (or: the models have the same parameters). 1 point: the context is
# made anew at each step from all states, so that no single vector must hold everything.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > I would ask the friend to count. What the decoder gets at a step has as many numbers with attention
# > as without. What differs is when it is made: once for the whole text, or again for each symbol.
#
# Good: it gives the friend something to check, and then the difference in place of the wrong word.
#
# > A vector of 64 numbers must drop the first symbols to make room for the last ones. With attention
# > nothing is dropped, and so the accuracy at length 40 rises far above 0.37.
#
# Plausible, and bad: Figure 3 shows the opposite of "drops the first symbols". A measured number
# beside a claim is no evidence for it.
#
# </details>

# %% [markdown]
# ## 9. Folklore and facts
#
# | often said | what we saw |
# | --- | --- |
# | "A fixed vector cannot hold a long sequence." | It has room for 2048 bits, that is 616 digits; 40 digits need 133 bits. It is hard to *learn*: eight times the training nearly finished length 10 and left length 40 half wrong (section 2). |
# | "RNNs forget the first words; that is why they need attention." | A random RNN of small radius does (Figure 1). In the trained fixed-vector GRU all 40 positions move the last state, the first ones are copied best, and still most symbols cannot be read back (Figure 3). |
# | "With attention the encoder remembers more." | Early symbols move its last state *less* (Figure 3). It need not remember them: the decoder looks. |
# | "A spectral radius above 1 explodes." | In this example it does not at 1.1: tanh flattens large values (Figure 1). |
# | "An attention map shows what the model understood." | An untrained network draws one too (Figure 4). A trained one can look elsewhere and be right (section 6). |
# | "Fixed-vector translators of 2014 failed on long sentences." | Those of Cho and others did; Sutskever, Vinyals and Le (2014) report none for theirs. Nothing here decides it for translation: our task is copying. |
# | "Attention made the first alignment maps." | Statistical translators aligned words around 1990 (Brown and others). Maps of *attention weights* came to translation with Bahdanau and others (2014). |
# | "Token accuracy 0.8 is good." | At length 10 it goes with less than one whole sequence in ten (Figure 2). |

# %% [markdown]
# ## Summary
#
# | concept | formula | code | purpose |
# | --- | --- | --- | --- |
# | recurrent state | $h_t = \tanh(x_t W_x + h_{t-1} W_h)$ | `rnn_hidden_states(X, W_x, W_h)` | reads any length into `d_h` numbers |
# | fixed context | $c = h_n$ | last row of the states | the bottleneck: the same `d_h` numbers for every length |
# | influence | $\lVert \partial h_n / \partial x_t \rVert_F$ | `position_influence(X, W_x, W_h)` | how strongly position $t$ still moves the last state |
# | weighted average | $\sum_j \frac{a_j}{\sum_i a_i} v_j$ | `weighted_average(weights, values)` | any number of states to one vector, smooth |
# | context that looks everywhere | $c_t = \sum_j a_{tj} h_j$, weights new at each step $t$ | torch's function, for now | no single vector must hold all |
#
# ## Questions to check yourself
#
# <details><summary>1. The source sentence becomes twice as long. What grows: the fixed context, the
# encoder's list of states, or the number of parameters?</summary>
#
# Only the list of states. The fixed context stays `(d_h,)`, and the parameters are the same
# matrices at every position.
#
# </details>
#
# <details><summary>2. Why does <code>weighted_average</code> refuse weights of length 1 for five
# values, although NumPy could multiply them?</summary>
#
# NumPy would stretch the one weight over all five values. The result would have the right shape and
# look fine, but it would be a sum or a mean that nobody asked for. An error is better than a silent
# wrong answer.
#
# </details>
#
# <details><summary>3. In some RNN every position but the last two has influence 0.001 or less. What
# does that say about training it to remember the first word?</summary>
#
# The gradient from the last state to the first word passes through the same product, so it is tiny
# as well. The network gets almost no signal that would teach it to keep that word.
#
# </details>
#
# <details><summary>4. Why do the weights for "le chat noir dort" come as a table and not as one
# row?</summary>
#
# Each French word needs its own look at the English sentence. One row of weights for each word to
# be predicted, one column for each English word.
#
# </details>
#
# <details><summary>5. What would the translator's map look like if French had the word order of
# English?</summary>
#
# The large weights would lie on the diagonal (apart from "is", which has no French word of its
# own). A diagonal alone proves little: a model could learn it from the positions, without the
# words.
#
# </details>
#
# ## Where it comes from
#
# * Hochreiter (1991) and Bengio, Simard and Frasconi (1994): why gradients vanish in recurrent
#   networks.
# * Cho et al. (2014): the GRU and the encoder-decoder; Sutskever, Vinyals and Le (2014):
#   translation through one fixed vector.
# * Brown and others (1990): statistical translation, with word alignments.
# * Bahdanau, Cho and Bengio (2015): the decoder that looks at all encoder states, and the first
#   alignment maps made of attention weights, for English and French.
# * Luong, Pham and Manning (2015): dot products as scores, as torch's function used them here.
# * Jain and Wallace (2019), Wiegreffe and Pinter (2019): against and for attention as explanation.
#
# ## What comes next
#
# We can average once we have weights. Where do the weights come from? To look everywhere, the
# decoder needs three steps:
#
# 1. a **score** for each position: how well does this state fit what I need now?
# 2. **weights** made from the scores: not negative, with sum 1;
# 3. the **weighted average** of the values with these weights.
#
# You have built step 3. Lesson 2 builds the first two, and all three together, beginning with
# something you know well: the look-up in a dictionary.
