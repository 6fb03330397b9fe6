# %% [markdown]
# ## What you will be able to do
#
# - **Show** that attention knows no order, and **name** what it can and cannot tell apart.
# - **Build** the sinusoidal encoding, and **find** the most usual mistake in it.
# - **Show** with a matrix that a shift of the position is a rotation.
# - **Compare** sinusoidal, learned and rotary positions on tasks that need order.
# - **Predict** what each of them does on texts longer than those in training, and **measure** it.

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
    MultiHeadAttention,
    causal_mask,
    combine_heads,
    permutation_error,
    split_heads,
)
from lesson_kit.figures import DIVERGING, draw_heatmap, heatmap, show, text_table
from lesson_kit.guesses import puzzle, reply
from lesson_kit.hands_on import slider
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# The parts of earlier lessons are your own where they passed their checks, else the course's. The
# setup cell says which.
#
# ## Three questions first
#
# From memory, without looking back. Every choice has a reply.
#
# ### `answer_recall_mask` (lesson 6)
#
# Somebody sets the weights above the diagonal to 0 *after* the softmax and leaves the rows as they
# are. What is wrong?
#
# - a) Nothing: the future has the weight 0.
# - b) How much weight the past gets still depends on the future.
# - c) The rows now sum to more than 1.

# %% answer="answer_recall_mask"
### BEGIN SOLUTION
answer_recall_mask = "b"
### END SOLUTION

# %% check="answer_recall_mask" points=0.5
check_answer("answer_recall_mask", answer_recall_mask)

# %% [markdown]
# ### `answer_recall_permutation` (lesson 4)
#
# Self-attention without a mask and without positions. The words of a text are shuffled. What happens
# to the outputs?
#
# - a) Every word keeps its output; they are shuffled in the same way.
# - b) Nothing at all: the output is the same matrix.
# - c) All outputs change, since each word now has other neighbours.

# %% answer="answer_recall_permutation"
### BEGIN SOLUTION
answer_recall_permutation = "a"
### END SOLUTION

# %% check="answer_recall_permutation" points=0.5
check_answer("answer_recall_permutation", answer_recall_permutation)

# %% [markdown]
# ### `answer_recall_temperature` (lesson 2)
#
# What does `soft_lookup` do as its temperature goes to 0?
#
# - a) All keys get the same weight.
# - b) The result becomes NaN.
# - c) The best key gets nearly all the weight: a hard look-up.

# %% answer="answer_recall_temperature"
### BEGIN SOLUTION
answer_recall_temperature = "c"
### END SOLUTION

# %% check="answer_recall_temperature" points=0.5
check_answer("answer_recall_temperature", answer_recall_temperature)

# %% [markdown]
# ## 1. Who sees whom?
#
# "The dog sees the cat." "The cat sees the dog." The same five words, and not the same news. A
# reader who is given the words in a bag cannot know which of the two it was.
#
# Attention is such a reader. Look at the formula: each query is compared with each key, and the
# values are averaged. **Where** a word stands appears nowhere. Lesson 4 measured this: if you
# shuffle the words, the outputs are shuffled in the same way, and nothing else happens. To its
# model "The animal didn't cross the street because it was too tired" is one text with the sentence
# in which the animal and the street change places. Its
# `permutation_error` is the largest difference between "shuffle, then attend" and "attend, then
# shuffle": $\max |f(PX) - P f(X)|$, where $P$ shuffles the rows. Here it is for multi-head
# attention, with our sentence. All numbers are random: nothing has been trained.

# %%
sentence = ["the", "black", "cat", "is", "sleeping"]
torch.manual_seed(0)
layer = MultiHeadAttention(d_model=8, num_heads=2).double()


def attend(X):
    """The untrained layer on a NumPy array (..., n, 8)."""
    with torch.no_grad():
        return tuple(part.numpy() for part in layer(torch.tensor(X)))


word_vectors = np.random.default_rng(0).normal(size=(5, 8))  # (n, d_model): one row a word
shuffled = np.array([4, 2, 0, 3, 1])
print("shuffled:", " ".join(sentence[i] for i in shuffled))
print("output of cat, first:  ", attend(word_vectors)[0][2, :4].round(3))
print("output of cat, shuffled:", attend(word_vectors[shuffled])[0][1, :4].round(3))
print("permutation error below 1e-12:", permutation_error(attend, word_vectors, shuffled) < 1e-12)

# %% [markdown]
# "cat" gets the same vector in both texts. A stack of such layers changes nothing about that.
# Neither does a layer that works on each position by itself.
#
# ### Short answer 1: `answer_order`
#
# A model has word vectors, two self-attention layers without a mask, and no positions. Its result
# for a text is the **average** of its outputs over all words. For which of these pairs of texts is
# the result exactly the same (up to rounding)?
#
# - pair I: "the dog sees the cat" and "the cat sees the dog"
# - pair II: "the cat" and "the cat the cat"
# - pair III: "the cat" and "the the cat"
#
# Choose:
#
# - a) only I
# - b) I and II
# - c) I, II and III
# - d) none of them

# %% answer="answer_order"
### BEGIN SOLUTION
answer_order = "b"
### END SOLUTION

# %% check="answer_order" points=1
check_answer("answer_order", answer_order)

# %% [markdown]
# Run it. The model is random; the answer is the same for every such model.

# %% tags=["demonstration"]
torch.manual_seed(1)
two_layers = [MultiHeadAttention(8, 2).double() for _ in range(2)]
vectors = {w: torch.randn(8, dtype=torch.float64) for w in ("the", "dog", "sees", "cat")}


def result(text):
    """Average output of the two layers over all words of a text."""
    X = torch.stack([vectors[w] for w in text.split()])  # (n, 8)
    with torch.no_grad():
        for one in two_layers:
            X = X + one(X)[0]
    return X.mean(dim=0)


for one, other in [
    ("the dog sees the cat", "the cat sees the dog"),
    ("the cat", "the cat the cat"),
    ("the cat", "the the cat"),
]:
    difference = (result(one) - result(other)).abs().max().item()
    print(f"{one:21s} | {other:21s} | same: {difference < 1e-12}")

# %% [markdown]
# ## 2. A task that cannot be solved without order
#
# We want a task where order is everything: **say the text backwards**. The model reads eight words
# and must write, at each position, the word that stands there when the text is reversed:
#
# | position | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# |---|---|---|---|---|---|---|---|---|
# | reads | the | black | cat | is | sleeping | on | the | mat |
# | writes | mat | the | on | sleeping | is | cat | black | the |
#
# The texts are random: eight words drawn from twelve. So the model can only succeed by looking at
# the right place. The model is small: word vectors, **one** multi-head attention from lesson 5
# (its output is added to its input; lesson 8 says why), and a linear layer that guesses a word.

# %% tags=["demonstration"]
vocabulary = ["the", "black", "cat", "is", "sleeping", "on", "mat"]
vocabulary += ["a", "dog", "small", "under", "white"]  # twelve words
width = 64  # d_model


class Reader(nn.Module):
    """Word vectors, positions if any, attention, and a guess for each position."""

    def __init__(self, positions=None, num_layers=1):
        super().__init__()
        self.words = nn.Embedding(len(vocabulary), width)
        self.positions = positions  # a callable (..., n, d_model) -> (..., n, d_model), or None
        attentions = [MultiHeadAttention(width, 4) for _ in range(num_layers)]
        self.attentions = nn.ModuleList(attentions)
        self.guess = nn.Linear(width, len(vocabulary))

    def forward(self, texts, mask=None):
        X = self.words(texts)  # (batch, n) -> (batch, n, d_model)
        if self.positions is not None:
            X = self.positions(X)
        for attention in self.attentions:
            change, weights = attention(X, mask=mask)  # weights (batch, num_heads, n, n)
            X = X + change
        return self.guess(X), weights  # guesses (batch, n, words)


def backwards(texts):
    """What to write: the text from its end to its start."""
    return texts.flip(dims=[-1])


# %% [markdown]
# One function trains every model of this lesson, one function measures. The texts for measuring are
# new ones. `accuracy` gives one number for each position.

# %% tags=["demonstration"]
differs = "This result is not what the text says. Do the checks of your exercises pass?"


def train(make, task, label, steps=250, lengths=(8, 8), mask=None, seed=0):
    """Train make() on random texts whose length is between the two lengths; return the model."""
    torch.manual_seed(seed)
    model, draw = make(), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def warm_up_and_down(step):
        return min(1.0, (step + 1) / 30) * (1 - 0.9 * step / steps)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warm_up_and_down)
    for _ in progress(steps, label):
        n = int(torch.randint(lengths[0], lengths[1] + 1, (), generator=draw))
        texts = torch.randint(len(vocabulary), (64, n), generator=draw)  # (batch, n)
        guesses, _ = model(texts, None if mask is None else mask[:n, :n])
        loss = F.cross_entropy(guesses.flatten(0, 1), task(texts).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def accuracy(model, task, n, mask=None, seed=1000):
    """Share of right words at each position of 400 new texts of length n: an array (n,)."""
    texts = torch.randint(len(vocabulary), (400, n), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        guesses, _ = model(texts, mask)
    return (guesses.argmax(dim=-1) == task(texts)).float().mean(dim=0).numpy()


# %% [markdown]
# **Predict, then run.** What share of the words will the model without positions get right? It is
# more than 1 in 12. Why?

# %% tags=["demonstration", "guess"]
guess_bag = 0.1  # write a share between 0 and 1

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
no_order = train(Reader, backwards, "backwards, no positions")
no_order_score = accuracy(no_order, backwards, 8).mean()
print(f"right words without positions: {no_order_score:.2f}")
assert 0.2 < no_order_score < 0.4, differs

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
why = "It knows which words there are, and nothing of where."
reply("guess_bag", guess_bag, no_order_score, why, within=0.1)

# %% [markdown]
# It sees which words are in the bag, and how often, and so it guesses one that occurs. More
# training cannot help: each word gets the same guess in both of two orders of the same bag, and they
# need different answers.
#
# ## 3. Waves: the sinusoidal encoding
#
# The remedy: give each position a vector of its own, and **add** it to the word's vector. The
# transformer of Vaswani and others (2017) uses fixed vectors made of waves.
#
# Think of a clock. Its second hand tells near moments apart, but it repeats every minute. The
# hour hand tells two o'clock from eight o'clock, but a second hardly moves it. Together the hands
# name every second of half a day. The encoding is a clock with $d_{model}/2$ hands. Hand $i$
# turns with its own speed, its **frequency** $\omega_i$:
#
# $$\omega_i = \frac{1}{10000^{2i/d_{model}}}, \qquad i = 0, 1, 2, \ldots$$
#
# At position $pos$ the hand stands at the angle $pos \cdot \omega_i$ (in radians). Two columns hold
# the tip of the hand:
#
# $$PE[pos, 2i] = \sin\!\left(\frac{pos}{10000^{2i/d_{model}}}\right), \qquad
# PE[pos, 2i+1] = \cos\!\left(\frac{pos}{10000^{2i/d_{model}}}\right).$$
#
# With $d_{model} = 4$ there are two hands. Hand 0 has the frequency $1/10000^0 = 1$. Hand 1 has
# $1/10000^{2/4} = 1/100$. On paper:
#
# | position | 0: $\sin pos$ | 1: $\cos pos$ | 2: $\sin (pos/100)$ | 3: $\cos (pos/100)$ |
# |---|---|---|---|---|
# | 0 | 0 | 1 | 0 | 1 |
# | 1 | 0.8415 | 0.5403 | 0.0100 | 1.0000 |
# | 2 | 0.9093 | −0.4161 | 0.0200 | 0.9998 |

# %% [markdown]
# ### Exercise 1: `sinusoidal_positional_encoding`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 15-20 minutes on it.
#
# Build the matrix of the formula above: one row a position, one column a dimension.
#
# - `seq_len`: number of positions, at least 1; the first position is 0. `d_model`: number of
#   columns, at least 1, **even or odd**. With an odd `d_model` the last column is a sine that has
#   no cosine beside it.
# - Returns a NumPy float64 array `(seq_len, d_model)`, a new one each call: somebody may write into it.
# - The values are right to 9 digits, in long texts too.


# %% answer="sinusoidal_positional_encoding"
def sinusoidal_positional_encoding(seq_len, d_model):
    """Sinusoidal positional encoding.

    Args:
        seq_len: number of positions; the first one is 0.
        d_model: number of columns, even or odd.

    Returns:
        (seq_len, d_model) float64: sin in even columns, cos in odd ones. The pair of columns
        2i, 2i+1 has the angle pos / 10000**(2i/d_model).
    """
    ### BEGIN SOLUTION
    even = np.arange(0, d_model, 2)  # 0, 2, 4, ...: the 2i of the formula
    angles = np.arange(seq_len)[:, None] / 10000 ** (even / d_model)  # (seq_len, pairs)
    encoding = np.empty((seq_len, d_model))
    encoding[:, 0::2] = np.sin(angles)
    encoding[:, 1::2] = np.cos(angles)[:, : d_model // 2]
    return encoding
    ### END SOLUTION


# %% check="sinusoidal_positional_encoding" points=2.5 means="Each position has a row of its own by the formula, also in long texts; nothing of it is trained." card=["sin in even columns, cos in odd ones", "even or odd", "The pair of columns 2i, 2i+1 has the angle pos / 10000**(2i/d_model)", "The values are right to 9 digits", "a NumPy float64 array"]
second, third = 10000 ** (-2 / 5), 10000 ** (-4 / 5)
angle = 3000 / 10000 ** (2 / 6)
for title, points, (seq_len, d_model), row, first, expected, message in (
    ("row 0: sines and cosines take turns", 0.5, (3, 4), 0, 0, [0, 1, 0, 1], "Row 0 is position 0: sin 0 and cos 0 in turns."),
    ("the first pair of columns", 0.25, (3, 4), 1, 0, [math.sin(1), math.cos(1)], "Sine and cosine of the position itself."),
    ("the second pair of columns", 0.75, (51, 4), 50, 2, [math.sin(0.5), math.cos(0.5)], "With d_model = 4 the exponent is 2/4, and the angle pos / 100. Is it of the pair, not of the column?"),
    ("five columns: row 0", 0.25, (2, 5), 0, 0, [0, 1, 0, 1, 0], "Three sines and two cosines in turns."),
    ("five columns: row 1", 0.25, (2, 5), 1, 0, [math.sin(1), math.cos(1), math.sin(second), math.cos(second), math.sin(third)], "The exponents are 0, 2/5 and 4/5."),
    ("position 3000", 0.25, (3001, 6), 3000, 2, [math.sin(angle), math.cos(angle)], "The formula holds in long texts too."),
):
    with check(title, points=points):
        encoding = np.asarray(sinusoidal_positional_encoding(seq_len, d_model), dtype=float)
        shape = f"{seq_len} positions, {d_model} dimensions: one row a position, one column a dimension."
        assert_equal(encoding.shape, (seq_len, d_model), shape, name="the shape")
        found, name = encoding[row, first : first + len(expected)], f"row {row}, from column {first} on"
        assert_close(found, np.array(expected, dtype=float), message, name=name, rtol=1e-4, atol=1e-4)
with check("all digits, in a NumPy array", points=0.25):
    found = sinusoidal_positional_encoding(3001, 6)[3000, 2:4]
    message = "Position 3000 should be right to 9 digits: is something float32 on the way?"
    assert_close(found, np.array([math.sin(angle), math.cos(angle)]), message, rtol=1e-9, atol=1e-9, precise=True)
checks_passed("sinusoidal_positional_encoding")


# %% check="sinusoidal_positional_encoding_values" points=2.25 card="one row a position, one column a dimension"
# Hidden checks of sinusoidal_positional_encoding: all values, for several even sizes.
### BEGIN HIDDEN TESTS
def formula(seq_len, d_model):
    angles = np.outer(np.arange(seq_len), [1e4 ** (-(c - c % 2) / d_model) for c in range(d_model)])
    return np.where(np.arange(d_model) % 2 == 0, np.sin(angles), np.cos(angles))


rng, near = check_rng(), {"rtol": 1e-4, "atol": 1e-4}
for title, points, kept in (
    ("position 0", 0.25, lambda encoding: encoding[0]),
    ("the first pair of columns", 0.5, lambda encoding: encoding[:, :2]),
    ("the numbers of each row, in any order", 0.75, lambda encoding: np.sort(encoding, axis=1)),
    ("all values", 0.75, lambda encoding: encoding),
):
    with check(title, points=points):
        for d_model in (2, 6, 10, 64):
            seq_len = int(rng.integers(12, 40))
            encoding = np.asarray(sinusoidal_positional_encoding(seq_len, d_model), dtype=float)
            message = f"sinusoidal_positional_encoding({seq_len}, {d_model}): {title} should be those of the formula."
            assert_equal(encoding.shape, (seq_len, d_model), message, name="the shape")
            assert_close(kept(encoding), kept(formula(seq_len, d_model)), message, name=title, **near)
checks_passed("sinusoidal_positional_encoding")
### END HIDDEN TESTS


# %% check="sinusoidal_positional_encoding_odd" points=0.75 card="With an odd `d_model` the last column is a sine that has no cosine beside it"
# Hidden checks of sinusoidal_positional_encoding: an odd number of columns.
### BEGIN HIDDEN TESTS
def formula(seq_len, d_model):
    angles = np.outer(np.arange(seq_len), [1e4 ** (-(c - c % 2) / d_model) for c in range(d_model)])
    return np.where(np.arange(d_model) % 2 == 0, np.sin(angles), np.cos(angles))


for title, points, columns in (("odd: column 0", 0.25, slice(1)), ("odd: all values", 0.5, slice(None))):
    with check(title, points=points):
        for seq_len, d_model in ((17, 1), (12, 3), (30, 9)):
            encoding = np.asarray(sinusoidal_positional_encoding(seq_len, d_model), dtype=float)
            message = f"d_model = {d_model} is odd: the exponents are still 2i / {d_model}, and the last column is a sine."
            assert_equal(encoding.shape, (seq_len, d_model), message, name="the shape")
            expected = formula(seq_len, d_model)[:, columns]
            assert_close(encoding[:, columns], expected, message, name=title, rtol=1e-4, atol=1e-4)
checks_passed("sinusoidal_positional_encoding")
### END HIDDEN TESTS


# %% check="sinusoidal_positional_encoding_precision" points=0.5 card=["a new one each call", "The values are right to 9 digits, in long texts too"]
# Hidden checks of sinusoidal_positional_encoding: float64 all the way; a new array each call.
### BEGIN HIDDEN TESTS
@probe
def around_writing(seq_len, d_model):
    """A result, and the next one after 7 was written everywhere into the first."""
    first = sinusoidal_positional_encoding(seq_len, d_model)
    kept = np.array(first)
    first[...] = 7.0
    return kept, np.array(sinusoidal_positional_encoding(seq_len, d_model))


with check("9 digits, in a NumPy array", points=0.25):
    seq_len = int(check_rng().integers(3000, 5000))
    encoding = sinusoidal_positional_encoding(seq_len, 8)
    message = "It should be a NumPy float64 array, right to 9 digits: is something float32 on the way?"
    angles = np.outer(np.arange(seq_len), 1e4 ** (-np.arange(4) / 4))
    assert_close(encoding[:, 0::2], np.sin(angles), message, name="the sines", rtol=1e-9, atol=1e-9, precise=True)
with check("a new array each call", points=0.25, side=True):
    before, after = around_writing(9, 12)
    message = "Somebody wrote into the first result: the second call should give the same numbers as the first."
    assert_close(after, before, message, name="the second result", against="in the first call")
checks_passed("sinusoidal_positional_encoding")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Make the even column numbers first: 0, 2, 4, ... They *are* the $2i$ of the formula, so do not
# multiply them by 2 again. Then build one matrix of angles, positions down and pairs across, by
# broadcasting. Fill every second column of an empty array with sines and the others with cosines.
# When `d_model` is odd, count how many columns each of the two kinds has.
#
# </details>

# %% [markdown]
# Look at your matrix for the running example: one row a word, eight columns, four hands.

# %% tags=["demonstration"]
encoding = sinusoidal_positional_encoding(5, 8)  # (n, d_model)
heatmap(
    encoding,
    [f"{position} {word}" for position, word in enumerate(sentence)],
    [f"{kind} {hand}" for hand in range(4) for kind in ("sin", "cos")],
    row_label="position and word",
    column_label="wave and number of its hand",
    signed=True,
    caption="Figure 1. What is added to the five word vectors. The fast hand 0 differs clearly "
    "from row to row, the slow hands 2 and 3 hardly move within five words: they tell far "
    "positions apart.",
    alt="Heat map, five positions by eight columns. The first two columns change strongly from row "
    "to row, the third and fourth slowly, the last four stay near 0, 1, 0, 1.",
)

# %% tags=["demonstration"]
positions = np.arange(100)
encoding = sinusoidal_positional_encoding(100, 64)  # (100, 64)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), width_ratios=(1, 1.3))
seen = left.imshow(
    encoding, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
)
figure.colorbar(seen, ax=left)
left.set(xlabel="column", ylabel="position", title="all 64 columns")
for column, style in ((6, "-"), (12, "-"), (13, ":"), (24, "-"), (40, "--")):
    kind, hand = ("sin", "cos")[column % 2], column // 2
    (line,) = right.plot(positions, encoding[:, column], style)
    height = encoding[99, column] + {6: 0.03, 13: 0.1, 24: 0.12, 40: -0.02}.get(column, 0)
    name = f"{column}: {kind}, hand {hand}"
    right.text(102, height, name, color=line.get_color(), va="center", fontsize=8)
right.set(xlabel="position", ylabel="value", title="five of them", xlim=(-3, 140), xticks=range(0, 101, 25))
figure.tight_layout()
spread = encoding.std(axis=0)
some_rows, some_columns = (0, 1, 2, 10, 99), (0, 1, 12, 13, 24, 25, 40, 41, 62, 63)
assert spread[0] > 0.6 and spread[62] < 0.01, differs
show(
    figure,
    "Figure 2. Left: fast waves in the left columns, slow ones to the right. Right: sine and cosine of one hand "
    "are the same wave, a quarter turn apart. Section 4 has a wrong matrix whose picture looks as good.",
    "Left: a heat map of 100 positions by 64 columns, stripes on the left that widen to the right, "
    "the last columns constant. Right: waves of columns 6, 12, 13, 24 and 40 over the position; "
    "the later the column the longer the wave.",
    text_table(
        encoding[np.ix_(some_rows, some_columns)],
        [str(row) for row in some_rows],
        [str(column) for column in some_columns],
        corner="position \\ column",
    ),
)

# %% [markdown]
# Does every position have a vector of its own? The distance of two vectors depends only on how far
# apart their positions are (section 5 says why), so it is enough to compare position 0 with all
# others. **Predict, then run:** a clock of one hand, and one of 32 hands. Which of them shows nearly
# the same time twice, within 20,000 positions?

# %% tags=["demonstration", "guess"]
guess_twice = "both"  # write "one hand", "32 hands", "both" or "none"

# %% tags=["demonstration"]
for d_model in (2, 64):
    table = sinusoidal_positional_encoding(20_000, d_model)
    distance = np.sqrt(((table[1:] - table[0]) ** 2).sum(axis=1))
    nearest = int(distance.argmin()) + 1
    print(f"d_model {d_model:2d}: nearest to position 0 is {nearest}, {distance.min():.4f} away")
assert distance.min() > 0.5, differs

# %% tags=["demonstration"]
came_out = []
for name, d_model in (("one hand", 2), ("32 hands", 64)):
    table = sinusoidal_positional_encoding(20_000, d_model)
    if np.sqrt(((table[1:] - table[0]) ** 2).sum(axis=1)).min() < 0.01:
        came_out.append(name)
came_out = "both" if len(came_out) == 2 else came_out[0] if came_out else "none"
why = "The hands come back one by one, each after a time of its own, and never all at once."
reply("guess_twice", guess_twice, came_out, why)


# %% tags=["demonstration"]
def hands_after(axes, distance):
    here, there = sinusoidal_positional_encoding(distance + 1, 8)[[0, distance]]  # each (8,)
    for hand, length in enumerate((1.0, 0.8, 0.6, 0.4)):  # the fast hand is the longest
        sine, cosine = there[2 * hand : 2 * hand + 2]
        angle = math.atan2(sine, cosine)
        axes.plot([0, angle], [0, length], color=f"C{hand}", linewidth=3)
        axes.plot(angle, length, "o", color=f"C{hand}", markersize=13)
        axes.text(angle, length, str(hand), color="white", size=9, ha="center", va="center")
    axes.plot([0, 0], [0, 1], color="grey", linestyle=":")
    axes.set(theta_zero_location="N", theta_direction=-1, yticks=[], ylim=(0, 1.15), xticks=[])
    axes.set_title(f"{distance} words further")
    cosine = (here @ there) / 4  # both have the length 2
    turns = distance / (2 * math.pi)
    return f"Hand 0 has made {turns:.1f} turns. The cosine of the two vectors is {cosine:.2f}."


slider(
    hands_after,
    "words further",
    (0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 16, 19, 25, 31, 44, 63, 126, 314, 628, 710),
    pictures=(0, 6, 628),
    caption="Try it. The four hands of a clock of 8 columns, a number of words after the dotted line, "
    "where all of them began. At which distances is hand 0 back, and which hand then tells the two "
    "places apart?",
    size=(2.7, 3.2),
    polar=True,
)

# %% [markdown]
# One hand nearly comes back (710 radians are 113 turns, but for 0.00006); 32 hands together do not,
# in 20,000 positions: the nearest vector is that of the next position.
#
# ### Does it solve the task?
#
# **Predict, then run.** Same model, same training, but the encoding is added to the word vectors.


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
def add_waves(X):
    """X (..., n, d_model) + your encoding of its n positions."""
    waves = sinusoidal_positional_encoding(*X.shape[-2:])
    return X + torch.tensor(waves, dtype=X.dtype)


with_waves = train(lambda: Reader(add_waves), backwards, "backwards, sinusoidal")
waves_score = accuracy(with_waves, backwards, 8).mean()
print(f"right words: without positions {no_order_score:.2f}, sinusoidal {waves_score:.3f}")
assert waves_score > 0.97, differs

# %% [markdown]
# Now look at where each position looks. These are **trained** maps, averaged over the four heads.
# The text holds "the" twice.

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained weights: they differ a little from machine to machine.
eight = ["the", "black", "cat", "is", "sleeping", "on", "the", "mat"]
text = torch.tensor([[vocabulary.index(word) for word in eight]])  # (1, 8)
labels = [f"{position} {word}" for position, word in enumerate(eight)]
maps = {}
for name, model in (("without positions", no_order), ("sinusoidal", with_waves)):
    with torch.no_grad():
        maps[name] = model(text)[1][0].mean(dim=0).numpy()  # (num_heads, 8, 8) -> (8, 8)
figure, panels = plt.subplots(1, 2, figsize=(8.4, 4.2))
findings = ("both rows of 'the' are equal", "each 'the' looks at its mirror image")
for axes, (name, weights), finding in zip(panels, maps.items(), findings):
    draw_heatmap(axes, weights, labels, labels)
    axes.set_title(f"{name}:\n{finding}")
    axes.tick_params(labelsize=8)
    for text in axes.texts:
        text.set_fontsize(7)
figure.tight_layout()
mirror = maps["sinusoidal"][range(8), range(7, -1, -1)]
assert (maps["sinusoidal"].argmax(axis=-1) == np.arange(7, -1, -1)).all(), differs
assert mirror.min() > 0.4, differs
assert np.allclose(maps["without positions"][0], maps["without positions"][6], atol=1e-6), differs
show(
    figure,
    "Figure 3. Left: without positions the two rows of 'the' are equal, and so are its two columns. Right: with "
    "positions every row looks most at its mirror image, and the two 'the' look at different places.",
    "Two heat maps, eight words by eight words. Left: no clear pattern; rows 0 and 6, both the, "
    "are the same. Right: large weights on the anti-diagonal, smaller ones beside it, nearly none "
    "further away.",
    "\n\n".join(f"{name}\n\n{text_table(w, labels, labels)}" for name, w in maps.items()),
)

# %% [markdown]
# ## 4. A doubled exponent
#
# In code the even columns often come from a loop `for i in range(0, d_model, 2)`. Then `i` is
# already the $2i$ of the formula. A lot of published code still multiplies it by 2. So every
# exponent is **doubled**, and every frequency is *squared*: $\omega_i^2$ instead of $\omega_i$.
#
# What does that do? The first half of the hands now runs through the whole range from 1 to
# 1/10000. The second half goes on to 1/100,000,000: over a text such a hand does not move. In
# short: **the wrong matrix with 64 columns is the right one with 32 columns, and 32 columns that
# stay at 0 and 1** (to within 0.01, up to 100 positions). That lets us build it from your function:


# %% tags=["demonstration"]
def wrong_waves(n, d_model):
    """The encoding with doubled exponents, to within 0.01 for up to 100 positions."""
    still = np.tile([0.0, 1.0], (n, d_model // 4))  # hands that do not move: sin 0, cos 0
    return np.hstack([sinusoidal_positional_encoding(n, d_model // 2), still])


right_one, wrong_one = sinusoidal_positional_encoding(100, 64), wrong_waves(100, 64)
figure, panels = plt.subplots(1, 2, figsize=(8.2, 3.4), sharey=True, layout="constrained")
for axes, (title, matrix) in zip(panels, {"right": right_one, "doubled": wrong_one}.items()):
    seen = axes.imshow(
        matrix, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
    )
    axes.set(xlabel="column", title=title)
panels[0].set_ylabel("position")
figure.colorbar(seen, ax=panels)
quiet = [(m.std(axis=0) < 0.05).sum() for m in (right_one, wrong_one)]
assert quiet[1] > quiet[0] + 15, differs
show(
    figure,
    f"Figure 4. Of 64 columns {quiet[0]} hardly move over 100 positions in the right matrix (standard deviation below "
    f"0.05), {quiet[1]} in the wrong one. Alone, the right-hand picture has all that one looks for.",
    "Two heat maps of 100 positions by 64 columns. Both have stripes that widen to the right. In "
    "the wrong one the stripes fill only the left third and the rest is constant.",
    "\n\n".join(
        f"{title}\n\n"
        + text_table(
            matrix[np.ix_(some_rows, some_columns)],
            [str(row) for row in some_rows],
            [str(column) for column in some_columns],
            corner="position \\ column",
        )
        for title, matrix in (("right", right_one), ("doubled", wrong_one))
    ),
)

# %% [markdown]
# **Predict, then run.** A model is trained with the wrong matrix. How well does it say eight words
# backwards?


# %% tags=["demonstration", "guess"]
guess_doubled = 0.3  # write the share of right words, between 0 and 1

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
def add_wrong_waves(X):
    return X + torch.tensor(wrong_waves(*X.shape[-2:]), dtype=X.dtype)


with_wrong_waves = train(lambda: Reader(add_wrong_waves), backwards, "backwards, doubled exponent")
wrong_score = accuracy(with_wrong_waves, backwards, 8).mean()
print(f"right words: right encoding {waves_score:.3f}, doubled exponent {wrong_score:.3f}")
assert wrong_score > 0.9, differs
with_waves.positions = add_wrong_waves  # the good model of section 3, given the wrong matrix
swapped_score = accuracy(with_waves, backwards, 8).mean()
with_waves.positions = add_waves
print(f"trained with the right one, used with the doubled one: {swapped_score:.2f}")
assert swapped_score < 0.8, differs

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
why = "The columns that are left are enough for eight words."
reply("guess_doubled", guess_doubled, wrong_score, why, within=0.1)

# %% [markdown]
# So training does not find the mistake: eight words need few columns. Half of them are wasted, and
# even that does no harm here. (Outside this notebook we tried texts of 24, 48 and 96 words: right
# everywhere, with both.) What it costs shows later: whoever loads your trained weights beside the
# encoding of the paper gets a broken model, without an error.
#
# ### Short answer 2: `answer_doubled`
#
# You review a colleague's encoding with `d_model = 64` and suspect the doubled exponent. Which
# check would surely find it?
#
# - a) Draw the heat map: stripes that get wider to the right, all values between −1 and 1.
# - b) Train a small model with it on a task that needs order: nearly all answers are right.
# - c) Compare column 2 at position 1 with $\sin(1/10000^{2/64}) = 0.6816$.
# - d) Check that $\sin^2 + \cos^2 = 1$ for each pair, and that position 0 is 0, 1, 0, 1, ...

# %% answer="answer_doubled"
### BEGIN SOLUTION
answer_doubled = "c"
### END SOLUTION

# %% check="answer_doubled" points=1
check_answer("answer_doubled", answer_doubled)

# %% tags=["demonstration"]
# The same for d_model = 4: position 1, column 2.
print(f"right: {sinusoidal_positional_encoding(2, 4)[1, 2]:.7f}, doubled: {math.sin(1e-4):.7f}")

# %% [markdown]
# ## 5. A shift is a rotation
#
# Why sine **and** cosine? Because of what happens when you walk on by $k$ positions. Each hand
# turns by the angle $k\,\omega_i$, wherever it stood before. The school formulas say it:
#
# $$\sin(a + b) = \sin a \cos b + \cos a \sin b, \qquad
# \cos(a + b) = \cos a \cos b - \sin a \sin b,$$
#
# with $a = pos \cdot \omega_i$ and $b = k\,\omega_i$. The new pair is a mixture of the old pair,
# and the four numbers of the mixture contain $k$ but **not** $pos$. So one matrix moves *every*
# position by $k$. A sine alone could not do it.
#
# The next figure shows three hands of a clock with $d_{model} = 8$.

# %% tags=["demonstration"]
clock = sinusoidal_positional_encoding(8, 8)  # (positions, columns); frequencies 1, 1/10, ...
figure, panels = plt.subplots(1, 3, figsize=(8.4, 3.2))
for hand, axes in enumerate(panels):
    across, up = clock[:, 2 * hand + 1], clock[:, 2 * hand]  # cosine to the right, sine upwards
    axes.add_patch(plt.Circle((0, 0), 1, fill=False, color="lightgrey"))
    axes.plot([0, across[3]], [0, up[3]], color="tab:orange")
    axes.scatter(across, up, color="tab:blue", zorder=3)
    for position in range(8) if hand == 0 else (0, 7):  # apart from each other on the slow hands
        side = "center" if hand == 0 else "top" if position == 0 else "bottom"
        axes.text(1.18 * across[position], 1.18 * up[position], str(position), ha="center", va=side)
    axes.set(xlim=(-1.35, 1.45), ylim=(-1.35, 1.35), aspect="equal", title=f"hand {hand}")
    axes.set(xlabel="cosine", ylabel="sine" if hand == 0 else "")
figure.tight_layout()
assert np.allclose(clock[:, 0::2] ** 2 + clock[:, 1::2] ** 2, 1), differs
show(
    figure,
    "Figure 5. Positions 0 to 7 on three hands of the clock (orange: position 3). From one position to the next each "
    "hand turns by its own angle, and always by the same: 1, 1/10 and 1/100 of a radian.",
    "Three circles. On hand 0 the eight positions are spread around the whole circle, on hand 1 "
    "they cover a short arc, on hand 2 they nearly coincide.",
)

# %% [markdown]
# ### Exercise 2: `shift_matrix`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 20-25 minutes on it.
#
# Build the matrix $M$ that moves every position by `offset`: with $PE$ the encoding of exercise 1
# and its rows written as column vectors,
#
# $$PE[pos + offset] = M \, PE[pos] \qquad \text{for every } pos .$$
#
# - `offset`: any integer, also 0 or negative. `d_model`: even.
# - Returns a NumPy float64 array `(d_model, d_model)` that depends on `offset` and `d_model` alone.
# - An odd `d_model` is a `ValueError`: the last sine has no cosine, and cannot be turned.
# - The equation holds to 9 digits, also for large offsets and positions (up to 5000).


# %% answer="shift_matrix"
def shift_matrix(offset, d_model):
    """The matrix M with PE[pos + offset] = M @ PE[pos] for every position.

    Args:
        offset: any integer, also 0 or negative.
        d_model: even number of columns of the sinusoidal encoding PE.

    Returns:
        (d_model, d_model) float64.

    Raises:
        ValueError: d_model is odd.
    """
    ### BEGIN SOLUTION
    if d_model % 2:
        raise ValueError(f"d_model must be even; it is {d_model}")
    matrix = np.zeros((d_model, d_model))
    for column in range(0, d_model, 2):
        turn = offset / 10000 ** (column / d_model)
        matrix[column, column : column + 2] = np.cos(turn), np.sin(turn)
        matrix[column + 1, column : column + 2] = -np.sin(turn), np.cos(turn)
    return matrix
    ### END SOLUTION


# %% check="shift_matrix" points=2.5 means="A step from any position to one further on is one matrix, the same at every position." card=["`offset`: any integer, also 0 or negative", "The equation holds to 9 digits", "a NumPy float64 array", "An odd `d_model` is a `ValueError`"]
def at(position, pairs):
    """The row of the encoding, as a vector of so many pairs; of two, the second has pos / 100."""
    angles = [position, position / 100][:pairs]
    return np.array([function(angle) for angle in angles for function in (math.sin, math.cos)])

for title, points, offset, start, pairs, message in (
    ("two columns", 0.75, 3, 2, 1, "Position 2 (sin 2, cos 2) should move to 5; -1 would be the other way round."),
    ("four columns", 0.5, 5, 2, 2, "Does each pair have a turn of its own, and are its sine and cosine neighbours?"),
    ("a negative offset", 0.25, -5, 7, 2, "Position 7 should move back to position 2."),
    ("a large offset", 0.25, 900, 4000, 1, "Position 4000 should move to position 4900."),
    ("an offset of 0", 0.25, 0, 2, 2, "An offset of 0 moves nothing: the matrix is the identity."),
):
    with check(title, points=points):
        size = 2 * pairs
        matrix = shift_matrix(offset, size)
        shape = f"shift_matrix({offset}, {size}) should have the shape (d_model, d_model)."
        assert_equal(tuple(np.shape(matrix)), (size, size), shape, name="the shape")
        name = f"shift_matrix({offset}, {size}) @ PE[{start}]"
        found = np.asarray(matrix, dtype=float) @ at(start, pairs)
        assert_close(found, at(start + offset, pairs), message, name=name, rtol=1e-4, atol=1e-4)
with check("all digits of float64", points=0.25):
    matrix = shift_matrix(900, 2)
    expected = np.array([[math.cos(900), math.sin(900)], [-math.sin(900), math.cos(900)]])
    message = "Is something float32, or a whole number, on the way?"
    assert_close(np.sort(matrix, axis=None), np.sort(expected, axis=None), message, precise=True, rtol=1e-9, atol=1e-9)
refused = "An odd d_model should be refused with a ValueError."
with check("an odd d_model", points=0.25, side=True), assert_raises(ValueError, refused):
    shift_matrix(1, 5)
checks_passed("shift_matrix")


# %% check="shift_matrix_every_position" points=2 card=["for every position", "also for large offsets and positions (up to 5000)"]
# Hidden checks of shift_matrix: one matrix serves every position.
### BEGIN HIDDEN TESTS
def encoding_at(positions, d_model):
    angles = np.outer(positions, [1e4 ** (-(c - c % 2) / d_model) for c in range(d_model)])
    return np.where(np.arange(d_model) % 2 == 0, np.sin(angles), np.cos(angles))


rng = check_rng()
positions = np.concatenate([np.arange(60), rng.integers(60, 5000, size=60)])
for d_model, points in ((2, 0.5), (6, 0.75), (32, 0.5)):
    with check(f"{d_model // 2} pairs of columns", points=points):
        for offset in (1, int(rng.integers(2, 40)), int(rng.integers(100, 5000))):
            matrix = np.asarray(shift_matrix(offset, d_model), dtype=float)
            message = f"shift_matrix({offset}, {d_model}): M @ PE[pos] should be PE[pos + offset] for every position."
            assert_equal(matrix.shape, (d_model, d_model), message, name="the shape")
            moved = encoding_at(positions, d_model) @ matrix.T
            expected = encoding_at(positions + offset, d_model)
            assert_close(moved, expected, message, name="M @ PE[pos]", rtol=1e-4, atol=1e-4)
with check("9 digits", points=0.25):
    matrix = shift_matrix(4321, 6)
    moved = np.array([matrix @ row for row in encoding_at(positions, 6)])
    message = "offset = 4321, d_model = 6: M @ PE[pos] should be PE[pos + offset], to 9 digits."
    expected = encoding_at(positions + 4321, 6)
    assert_close(moved, expected, message, name="M @ PE[pos]", rtol=1e-9, atol=1e-9, precise=True)
checks_passed("shift_matrix")
### END HIDDEN TESTS


# %% check="shift_matrix_back" points=1 card="`offset`: any integer, also 0 or negative"
# Hidden checks of shift_matrix: there and back, and an offset of 0.
### BEGIN HIDDEN TESTS
rng = check_rng()
for d_model in (4, 6, 16):
    start = rng.normal(size=d_model)
    for offset in (1, int(rng.integers(2, 40)), int(rng.integers(100, 300))):
        there = shift_matrix(offset, d_model) @ start
        message = f"d_model = {d_model}: a shift by {offset} and one by {-offset} should give a vector again."
        assert_equal(bool(np.abs(there - start).max() > 1e-3), True, message, name="'the first moves it'")
        assert_close(shift_matrix(-offset, d_model) @ there, start, message, name="there and back")
    message = "An offset of 0 moves nothing: the matrix is the identity."
    assert_close(shift_matrix(0, d_model) @ start, start, message, name="M @ x")
### END HIDDEN TESTS


# %% check="shift_matrix_errors" points=0.5 card="An odd `d_model` is a `ValueError`"
# Hidden checks of shift_matrix: an odd number of columns.
### SIDE CONDITION: counts once another check of shift_matrix passes.
### BEGIN HIDDEN TESTS
for offset, d_model in ((1, 1), (0, 3), (-2, 7)):
    with assert_raises(ValueError, f"d_model = {d_model} is odd: a ValueError, whatever the offset is."):
        shift_matrix(offset, d_model)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Write the two equations above as a 2×2 matrix that stands left of the column $(\sin, \cos)$. Then
# put one such block on the diagonal for every pair of columns, each with its own frequency, and
# zeros elsewhere. Check the direction with a sine of 0: which position must it become?
#
# </details>

# %% [markdown]
# Check it on a whole text: the matrix moves all rows at once. Each row is a vector that lies on its
# side, so the product is written the other way round, with $M^\top$ on the right. **Predict, then
# run:** is the error for a shift by 1000 larger than for a shift by 1?

# %% tags=["demonstration"]
encoding = sinusoidal_positional_encoding(1200, 64)
for offset in (1, 7, 100, 1000, -3):
    moved = encoding @ shift_matrix(offset, 64).T  # (1200, 64): row pos should be PE[pos + offset]
    start, end = max(0, -offset), min(1200, 1200 - offset)
    error = np.abs(moved[start:end] - encoding[start + offset : end + offset]).max()
    assert error < 1e-8, differs
    print(f"shift by {offset:5d}: error below 1e-8: {error < 1e-8}")
M = shift_matrix(7, 64)
print("a rotation (M^T M = 1):", np.allclose(M.T @ M, np.eye(64)))
twice = shift_matrix(3, 64) @ shift_matrix(4, 64)
print("shift by 4, then by 3, is shift by 7:", np.allclose(twice, M))

# %% [markdown]
# This is an exact property, and a reason that the authors gave for their choice: a model *could*
# learn to look "three words back" with one matrix. Three warnings:
#
# - It is a possibility, not a promise. Nothing forces training to find that matrix. Section 8 tests
#   what a model does with it.
# - It does not prove that the frequencies are right. Section 4's wrong matrix has this property
#   too, with rotations of its own.
# - It holds for the position vectors. The model sees their **sum** with the word vectors.
#
# ### What a dot product sees
#
# Rotations keep dot products. So $PE[p] \cdot PE[q]$ depends only on the distance $q - p$:
#
# $$PE[p] \cdot PE[q] = \sum_i \cos\big(\omega_i\,(q - p)\big).$$
#
# People often say: "so near words get large scores and far words small ones". Two questions. Does
# the dot product really fall with the distance? And does the model see this dot product at all? It
# compares $x W_q$ with $x W_k$, not $x$ with $x$. **Predict, then run.**

# %% tags=["demonstration"]
encoding = sinusoidal_positional_encoding(200, 64)
distances = np.arange(-40, 41)
plain = np.array([[encoding[p] @ encoding[p + d] for d in distances] for p in (60, 90, 120)])
torch.manual_seed(0)
fresh = MultiHeadAttention(64, 1)  # its W_q and W_k have torch's usual random start
with torch.no_grad():
    waves = torch.tensor(encoding, dtype=torch.float32)
    queries, keys = fresh.W_q(waves).numpy(), fresh.W_k(waves).numpy()  # (200, 64)
projected = np.array([[queries[p] @ keys[p + d] for d in distances] for p in (60, 90, 120)])
figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.3))
for row, p, style in ((0, 60, "-"), (1, 90, "--"), (2, 120, ":")):
    panels[0].plot(distances, plain[row], style)
    (line,) = panels[1].plot(distances, projected[row], style)
    panels[1].text(-42, projected[row][0], f"p = {p}", color=line.get_color(), ha="right", va="center")
panels[0].annotate("one curve\nfor all three", (2, 30), (9, 29), arrowprops={"arrowstyle": "->"})
panels[0].set(title="$PE[p] \\cdot PE[q]$", xlabel="distance $q - p$", ylabel="dot product")
panels[1].set(title="through a random $W_q$ and $W_k$", xlabel="distance $q - p$", xlim=(-66, 43))
figure.tight_layout()
assert np.allclose(plain[0], plain[1:]), differs  # only the distance
assert np.allclose(plain[0], plain[0][::-1]), differs  # the same to the left and to the right
assert (np.diff(plain[0][40:]) > 0.1).sum() > 5, differs  # it rises again and again
assert np.abs(projected[0] - projected[1]).max() > 0.3, differs  # depends on p too
show(
    figure,
    "Figure 6. Left: the three curves are one, the same to the left and to the right, and not always falling. Right: "
    "after a random query and key matrix nothing of this is left: what attention prefers, it must learn.",
    "Left: one curve, highest at distance 0 with the value 32, falling on both sides in waves. "
    "Right: three different curves without a peak at 0.",
)

# %% [markdown]
# Note also what the left curve cannot do: it is symmetric. "Three words before" and "three words
# after" have the same dot product. To tell them apart, the model needs its matrices.
#
# ## 6. Learned positions
#
# The simplest idea needs no formula: one **trainable** vector for each position, as there is one
# for each word. GPT-2 and BERT do this. Gradients find good vectors. The price: the table has a
# last row. A text that is longer has positions without a vector.

# %% [markdown]
# ### Exercise 3: `LearnedPositionalEmbedding`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10-15 minutes on it.
#
# A module with one trainable vector for each position. `forward` adds the vectors of the first
# positions to its input, and does nothing else.
#
# - `LearnedPositionalEmbedding(max_len, d_model)`. Its only parameter has the shape
#   `(max_len, d_model)` and random start values (any usual distribution and size).
# - `forward(X)`: `X (..., n, d_model)` with any number of leading axes, also none. Returns
#   `X` + the first `n` position vectors: the same vectors for every text of a batch.
# - "Nothing else": no scale, no dropout, no normalisation; training and evaluation mode agree.
# - Gradients reach `X` and the position vectors.
# - `n = max_len` is allowed. `n > max_len` is a `ValueError`; a good message names both numbers. (An
#   index that is out of range raises other errors, and a slice raises none.)
# - Checked when graded only: the conventions of lesson 1 (precision kept, `X` not changed).


# %% answer="LearnedPositionalEmbedding"
class LearnedPositionalEmbedding(nn.Module):
    """One trainable vector a position, added to the input.

    Args of the constructor:
        max_len: number of positions that have a vector.
        d_model: length of a vector.
    """

    def __init__(self, max_len, d_model):
        """Make the parameter (max_len, d_model), with random start values."""
        super().__init__()
        ### BEGIN SOLUTION
        self.positions = nn.Embedding(max_len, d_model)
        ### END SOLUTION

    def forward(self, X):
        """Add the first n position vectors to X (..., n, d_model).

        Returns:
            (..., n, d_model).

        Raises:
            ValueError: n > max_len.
        """
        ### BEGIN SOLUTION
        n, max_len = X.shape[-2], self.positions.num_embeddings
        if n > max_len:
            raise ValueError(f"X has {n} positions, shape {tuple(X.shape)}; max_len is {max_len}")
        return X + self.positions.weight[:n]
        ### END SOLUTION


# %% check="LearnedPositionalEmbedding" points=4 means="Positions can be learnt: one row of parameters each, and none beyond max_len." card=["Its only parameter has the shape `(max_len, d_model)` and random start values", "`X` + the first `n` position vectors: the same vectors for every text of a batch", "with any number of leading axes, also none", "`n = max_len` is allowed. `n > max_len` is a `ValueError`"]
@probe
def of_two_modules(max_len, d_model):
    with torch.random.fork_rng():
        layers = [LearnedPositionalEmbedding(max_len, d_model) for _ in range(2)]
    return [[p.detach().clone() for p in layer.parameters()] for layer in layers]

@probe
def output_of(vectors, X, training=True):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = LearnedPositionalEmbedding(*vectors.shape).train(training)
        for parameter in layer.requires_grad_(False).parameters():
            if parameter.numel() == vectors.numel():
                parameter.copy_(vectors.reshape(parameter.shape))
        return layer(X.clone())

rng = check_rng()
vectors, X = torch.tensor(rng.normal(size=(7, 4))).float(), torch.tensor(rng.normal(size=(3, 5, 4))).float()
with check("one parameter", points=0.5, side=True):
    shapes = [tuple(one.shape) for one in of_two_modules(7, 4)[0]]
    message = "There should be one parameter, (max_len, d_model): one row a position, no batch axis."
    assert_equal(shapes, [(7, 4)], message, name="the shapes of the parameters")
for title, points, given in (("a text in a batch of one", 1, X[:1]), ("three texts", 0.75, X), ("no leading axis", 0.5, X[0])):
    with check(f"{title}: X and the first position vectors are added", points=points):
        message = f"X of shape {tuple(given.shape)}: word t should get row t, the same in every text, and nothing else."
        added = output_of(vectors, given) - given
        assert_close(added, vectors[:5].expand(given.shape), message, name="the output minus X", atol=1e-5)
with check("random start values", points=0.5):
    first, second = (torch.cat([one.flatten() for one in each]) for each in of_two_modules(7, 4))
    message = "Nearly all start values should differ, from each other and from those of another module."
    random = [torch.unique(first[first.isfinite()]).numel() > 20, bool((first == second).any())]
    assert_equal(random, [True, False], message, name="'they differ', and 'some are those of another module'")
with check("exactly max_len positions are allowed", points=0.25, side=True):
    found = tuple(output_of(vectors[:5], X).shape)
    assert_equal(found, (3, 5, 4), "Five positions with max_len = 5 are allowed.", name="the shape of the output")
refused = "Six positions with max_len = 5 should be a ValueError."
with check("too many positions", points=0.5, side=True), assert_raises(ValueError, refused):
    output_of(vectors[:5], torch.zeros(2, 6, 4))
checks_passed("LearnedPositionalEmbedding")


# %% check="LearnedPositionalEmbedding_batches" points=2.5 card="with any number of leading axes, also none"
# Hidden checks of LearnedPositionalEmbedding: one leading axis, none, two and more.
### BEGIN HIDDEN TESTS
@probe
def output_of(vectors, X):
    torch.manual_seed(0)
    layer = LearnedPositionalEmbedding(*vectors.shape)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(vectors)
        return layer(X)


rng = check_rng()
vectors = torch.tensor(rng.normal(size=(9, 4))).float()
for title, points, shape in (
    ("one leading axis", 1, (2, 6, 4)),
    ("as many texts as max_len, all positions", 0.25, (9, 9, 4)),
    ("texts of one word", 0.25, (7, 1, 4)),
    ("no leading axis", 0.5, (6, 4)),
    ("two leading axes", 0.25, (3, 2, 6, 4)),
    ("three leading axes", 0.25, (2, 1, 3, 5, 4)),
):
    with check(title, points=points):
        X = torch.tensor(rng.normal(size=shape)).float()
        message = f"X of shape {shape}, max_len = 9: the output is X plus row t at position t. Positions are axis -2."
        assert_close(output_of(vectors, X), X + vectors[: shape[-2]], message, name="the output")
checks_passed("LearnedPositionalEmbedding")
### END HIDDEN TESTS


# %% check="LearnedPositionalEmbedding_start" points=0.5 card="random start values"
# Hidden checks of LearnedPositionalEmbedding: random start values, in each row.
### BEGIN HIDDEN TESTS
@probe
def start_values(max_len, d_model):
    layers = [LearnedPositionalEmbedding(max_len, d_model) for _ in range(2)]
    return [[p.detach().clone() for p in layer.parameters()] for layer in layers]


(first, *_), (second, *_) = start_values(6, 8)
each = [torch.unique(row[row.isfinite()]).numel() > 4 and not bool((row == other).any()) for row, other in zip(first, second)]
message = "Each row should start with random numbers, other ones in another module."
assert_equal(each, [True] * 6, message, name="'its numbers are random', for each row,")
### END HIDDEN TESTS


# %% check="LearnedPositionalEmbedding_gradients" points=1.5 card="Gradients reach `X` and the position vectors"
# Hidden checks of LearnedPositionalEmbedding: what learns, and how much.
### BEGIN HIDDEN TESTS
@probe
def gradients(max_len, X, upstream):
    layer = LearnedPositionalEmbedding(max_len, X.shape[-1])
    X = X.clone().requires_grad_()
    output = layer(X)
    if output.requires_grad:
        (output * upstream).sum().backward()
    return X.grad, *[p.grad if p.grad is None else p.grad.to_dense() for p in layer.parameters()]


X, upstream = torch.tensor(check_rng().normal(size=(2, 6, 5, 4))).float()
with check("the gradient of X", points=0.5, side=True):
    message = "The gradient of the output should pass to X unchanged."
    assert_close(gradients(8, X, upstream)[0], upstream, message, name="the gradient of X")
with check("the gradient of the position vectors", points=1):
    found, expected = gradients(8, X, upstream)[1:], torch.cat([upstream.sum(dim=0), torch.zeros(3, 4)])
    assert_equal(len(found), 1, "There should be one parameter.", name="the number of parameters")
    message = "Each row collects the gradients of its position from all texts, as a sum; unused rows get 0."
    assert_close(found[0], expected, message, name="the gradient of the parameter")
checks_passed("LearnedPositionalEmbedding")
### END HIDDEN TESTS


# %% check="LearnedPositionalEmbedding_nothing_else" points=1 card=["no scale, no dropout, no normalisation; training and evaluation mode agree", "precision kept, `X` not changed"]
# Hidden checks of LearnedPositionalEmbedding: the same in both modes and in each call; float64; X unchanged.
### BEGIN HIDDEN TESTS
@probe
def outputs(vectors, X):
    """In training mode, again, and in evaluation mode; X after the call."""
    torch.manual_seed(0)
    layer = LearnedPositionalEmbedding(*vectors.shape)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(vectors)
        given = X.clone()
        return layer(given), layer(X.clone()), layer.eval()(X.clone()), given


rng = check_rng()
vectors, X = torch.tensor(rng.normal(size=(9, 30))).float(), torch.tensor(rng.normal(size=(2, 6, 30)))
with check("both modes, each call", points=0.5):
    for place, which in enumerate(("a first call", "a second call", "evaluation mode")):
        message = f"In {which} the output should be X + the first position vectors, and nothing else."
        assert_close(outputs(vectors, X)[place], X + vectors[:6], message, name="the output")
with check("float64", points=0.25):
    message = "X is float64: the output should have all digits of X."
    assert_close(outputs(vectors, X)[2], X + vectors[:6], message, name="the output", precise=True)
with check("X is not changed", points=0.25, side=True):
    assert_equal(outputs(vectors, X)[3], X, "X was changed by the call. Make a new tensor.", name="X")
checks_passed("LearnedPositionalEmbedding")
### END HIDDEN TESTS


# %% check="LearnedPositionalEmbedding_errors" points=0.5 card="`n = max_len` is allowed. `n > max_len` is a `ValueError`"
# Hidden checks of LearnedPositionalEmbedding: texts that are too long, and none that is not.
### SIDE CONDITION: counts once another check of LearnedPositionalEmbedding passes.
### BEGIN HIDDEN TESTS
@probe
def output_shape(max_len, shape, training=True):
    return tuple(LearnedPositionalEmbedding(max_len, shape[-1]).train(training)(torch.zeros(shape)).shape)


for max_len, shape in ((5, (2, 6, 4)), (4, (3, 21, 8)), (1, (2, 2, 8)), (6, (1, 7, 9))):
    for training in (True, False):
        with assert_raises(ValueError, f"X of shape {shape}, max_len = {max_len}: a ValueError."):
            output_shape(max_len, shape, training)
for max_len, shape in ((5, (1, 5, 4)), (5, (9, 5, 4)), (1, (3, 1, 8))):
    message = f"X of shape {shape} and max_len = {max_len}: that fits, and X keeps its shape."
    assert_equal(output_shape(max_len, shape), shape, message, name="the output's shape")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `nn.Embedding` is a table of trainable vectors, and looking up 0, 1, ..., $n-1$ in it gives its
# first $n$ rows. How many positions has `X`? Count the axes from the end, so that batch axes do not
# matter. Compare that number with `max_len` yourself: a slice that is too long complains nowhere.
#
# </details>

# %% [markdown]
# On the task: replace the waves by your module. Nothing else changes. Your start values may have
# any size; the demonstrations set them to standard deviation 1.


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
def learned_positions(max_len, start=1.0):
    """Your module, with start values of standard deviation `start`."""
    with torch.random.fork_rng():  # the numbers that you draw change nothing below
        positions = LearnedPositionalEmbedding(max_len, width)
    (vectors,) = positions.parameters()
    vectors.register_hook(torch.Tensor.to_dense)  # Adam takes no sparse gradients
    with torch.no_grad():
        vectors.normal_(std=start)
    return positions


with_learned = train(lambda: Reader(learned_positions(8)), backwards, "backwards, learned")
learned_score = accuracy(with_learned, backwards, 8).mean()
print(f"right words: sinusoidal {waves_score:.3f}, learned {learned_score:.3f}")
assert learned_score > 0.97, differs

# %% [markdown]
# ### How loud is a position?
#
# Word and position are added, so their sizes matter. Our words and learned positions start with
# standard deviation 1; the waves have about the same size (0.7). Two habits from well-known models
# change the balance:
#
# - Small start values: GPT-2 starts its tables with standard deviation 0.02 or less.
# - The paper multiplies **word vectors** by $\sqrt{d_{model}}$, here 8. There it makes sense:
#   word vectors that start with standard deviation $1/\sqrt{d_{model}}$ are then of size 1. With
#   `nn.Embedding`'s own start they are of size 8.
#
# The factor 8 does two things at once: the words are larger than the waves, **and** the sum is larger,
# so that the scores are. To see which of the two matters, change one at a time: waves divided by 8 (the
# balance, without the size), and words and waves both times 8 (the size, without the balance).
#
# **Predict, then run.** Which of the two habits hurts, with the same 250 steps? And which half of
# the second?


# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Trained numbers: they differ a little from machine to machine.
def quiet_positions():
    """Learned positions that start small; words start with standard deviation 1."""
    return Reader(learned_positions(8, start=0.02))


def loud_words(X):
    """The words times sqrt(d_model), although they have the size 1 already; then the waves."""
    return add_waves(math.sqrt(width) * X)


def quiet_waves(X):
    """The words as they are, and an eighth of the waves."""
    return X + (add_waves(X) - X) / math.sqrt(width)


def loud_sum(X):
    """Words and waves, both times sqrt(d_model)."""
    return math.sqrt(width) * add_waves(X)


quiet_score = accuracy(train(quiet_positions, backwards, "small start"), backwards, 8).mean()
print(f"learned, start 1: {learned_score:.2f}; learned, start 0.02: {quiet_score:.2f}")
variants = {"words times 8": loud_words, "waves / 8": quiet_waves, "both times 8": loud_sum}
loud_scores = {}
for name, add in variants.items():
    found = [train(lambda add=add: Reader(add), backwards, name, seed=s) for s in (0, 1)]
    loud_scores[name] = [accuracy(one, backwards, 8).mean() for one in found]
    print(f"{name:14s} seeds 0 and 1:", *(f"{score:.2f}" for score in loud_scores[name]))
print(f"waves as they are: {waves_score:.2f}; no positions: {no_order_score:.2f}")
assert quiet_score > 0.9 and max(loud_scores["words times 8"]) < no_order_score, differs
assert max(loud_scores["both times 8"]) < no_order_score - 0.03, differs  # observed: 0.21, 0.30
assert max(max(found) for found in loud_scores.values()) < 0.45, differs  # observed: 0.31
assert min(loud_scores["waves / 8"]) > max(loud_scores["words times 8"]) + 0.04, differs

# %% [markdown]
# In this task the small start does no harm: Adam moves every number by about the learning rate
# (here up to 0.01) in each step, so within some tens of steps the vectors are no longer small. A
# harder task, or fewer steps, may be less kind. The factor 8 does harm, and **each half of it alone
# is enough**. With quiet waves and words of ordinary size the model learns what one without positions
# learns, and no more. With the balance kept and everything eight times as large it does not learn
# either. Scores grow with the *square* of the size, so at the start the softmax is saturated (lesson
# 3). That is not the whole reason: with $W_q$ and $W_k$ divided by 8 at the start, which makes the
# scores ordinary, it fails too (tried outside this notebook: 0.2 to 0.3). Everything times 8 is
# worse than no positions at all, with loud words or with the balance kept. When you take over a line
# from a paper, take over its start values too.
#
# ## 7. A preview: turn, do not add
#
# Your `shift_matrix` can do more. Do not add anything to the words. Instead
# **turn** each query and each key by its position: with $R_t$ = `shift_matrix(t, d_k)`,
#
# $$(R_p\, q) \cdot (R_s\, k) = q^\top R_p^\top R_s\, k = q^\top R_{s-p}\, k .$$
#
# Two rotations one after the other are one rotation by the difference, so the score depends on the
# words and on their **distance**, and on nothing else. This is **rotary** position embedding (Su
# and others, 2021). Most large language models of today use it; lesson 11 is about it.
# Here it is a preview, with your matrices, slow and clear:


# %% tags=["demonstration"]
class Turn(nn.Module):
    """Turn the vector at position t by t steps, in each head; after W_q and after W_k."""

    def __init__(self, num_heads, max_len):
        super().__init__()
        self.num_heads = num_heads
        matrices = [shift_matrix(t, width // num_heads) for t in range(max_len)]
        self.register_buffer("R", torch.tensor(np.stack(matrices), dtype=torch.float32))

    def forward(self, x):
        heads = split_heads(x, self.num_heads)  # (batch, num_heads, n, d_k)
        R = self.R[: x.shape[-2]]  # (n, d_k, d_k)
        return combine_heads(torch.einsum("nij,bhnj->bhni", R, heads))


def rotary_reader():
    """A reader without added positions, whose queries and keys are turned; up to 24 words."""
    reader = Reader()
    (attention,) = reader.attentions
    attention.W_q = nn.Sequential(attention.W_q, Turn(4, 24))
    attention.W_k = nn.Sequential(attention.W_k, Turn(4, 24))
    return reader


q, k = np.random.default_rng(1).normal(size=(2, 16))
for p, s in ((2, 5), (10, 13), (500, 503)):
    score = (shift_matrix(p, 16) @ q) @ (shift_matrix(s, 16) @ k)
    print(f"query at {p}, key at {s}: score {score:.6f}")

# %% [markdown]
# **Predict, then run.** Does the rotary model say eight words backwards as well as the others?
# Think of the distance between a position and its mirror image.

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
with_turns = train(rotary_reader, backwards, "backwards, rotary")
turns = accuracy(with_turns, backwards, 8)  # one number for each position
print(f"right words: learned {learned_score:.2f}, rotary {turns.mean():.2f}")
print("rotary, by position:", turns.round(2))
assert turns[[0, 7]].min() > 0.9 and turns[1:7].max() < 0.6, differs

# %% [markdown]
# It does badly, and in a strange way: both **ends** are right, and between them it is no better
# than the bag. For the reversed text, position 0 must look 7 to the right, position 1 must look 5
# to the right, position 6 must look 5 to the left. A layer that knows **only distances** cannot
# know which of these is its own. The ends are special: "7 to the right" exists for position 0 and
# for no other, so the model can always prefer it. There is no best encoding for every task: this
# task asks "where am I?". The next one asks "how far away?".
#
# ## 8. Longer than in training
#
# New task: at each position, write the word that stands **one place before**. (At position 0, the
# word itself.) The texts in training have 4 to **12** words. Then we test with **24** words.
#
# ### Short answer 3: `answer_longer`
#
# A reader with your **sinusoidal** encoding learns this task; up to 12 words it is nearly perfect.
# Commit yourself before you run on: on texts of 24 words, where does it give the right word?
#
# - a) At nearly every position, since the waves are defined everywhere and a shift is the same
#   rotation everywhere.
# - b) At nearly no position, since every attention row now has 24 keys.
# - c) At nearly every position from 0 to 11; one or two positions further on, little better than by
#   guessing.
# - d) At nearly every position from 0 to 11, and then slowly worse: at position 20 still more than
#   half are right.

# %% answer="answer_longer"
### BEGIN SOLUTION
answer_longer = "c"
### END SOLUTION

# %% check="answer_longer" points=1
check_answer("answer_longer", answer_longer)

# %% [markdown]
# We train that reader and three others:
#
# - **learned**: your module with 24 rows, so that it does not refuse the long texts. Rows 12 to 23
#   are never trained.
# - **learned, random start**: each training text begins at a random row of a longer table (Kiyono
#   and others, 2021). So all its rows are trained, with texts of at most 12 words.
# - **rotary**: queries and keys are turned, as in section 7.


# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Trained numbers: they differ a little from machine to machine.
def one_before(texts):
    """What to write: the word to the left; at position 0 the word itself."""
    return torch.cat([texts[:, :1], texts[:, :-1]], dim=1)


class AnywhereInTheTable(nn.Module):
    """Learned positions; in training the text begins at a random row."""

    def __init__(self, max_len, longest):
        super().__init__()
        self.table, self.latest = learned_positions(max_len), max_len - longest

    def forward(self, X):
        start = int(torch.randint(self.latest + 1, ())) if self.training else 0
        later = F.pad(X, (0, 0, start, 0))  # (..., start + n, d_model): empty rows in front
        return self.table(later)[..., start:, :]


makers = {
    "sinusoidal": lambda: Reader(add_waves),
    "learned": lambda: Reader(learned_positions(24)),
    "rotary": rotary_reader,
    "learned, random start": lambda: Reader(AnywhereInTheTable(32, 12)),
}
short = {
    name: train(make, one_before, f"one before, {name}", steps=400, lengths=(4, 12)).eval()
    for name, make in makers.items()
}
for name, model in short.items():
    scores = [accuracy(model, one_before, n).mean() for n in (8, 12, 13, 16, 24)]
    print(f"{name:22s}", *(f"{n}: {score:.2f}  " for n, score in zip((8, 12, 13, 16, 24), scores)))

# %% tags=["demonstration"]
long_scores = {name: accuracy(model, one_before, 24) for name, model in short.items()}
figure, axes = plt.subplots(figsize=(8.4, 3.8))
heights = {"sinusoidal": 0.24, "learned": 0.08, "rotary": 0.7, "learned, random start": 0.97}
for (name, scores), style in zip(long_scores.items(), ("o-", "s--", "^-", "x:")):
    (line,) = axes.plot(scores, style, markersize=5)
    axes.text(23.5, heights[name], name.replace(", ", ",\n"), color=line.get_color(), va="center", fontsize=9)
axes.axvspan(-0.5, 11.5, color="grey", alpha=0.12)
axes.text(8.5, 0.35, "trained", ha="center")
axes.text(17.5, 0.35, "beyond", ha="center")
axes.set(xlabel="position in a text of 24 words", ylabel="share of right words", xlim=(-0.5, 28), ylim=(0, 1.05))
axes.set_xticks(range(0, 24, 4))
figure.tight_layout()
assert all(accuracy(model, one_before, 12).mean() > 0.97 for model in short.values()), differs
for name in ("sinusoidal", "learned"):
    assert long_scores[name][:9].mean() > 0.9 and long_scores[name][14:].mean() < 0.35, differs
turned = long_scores["rotary"]
assert turned[7:18].min() > 0.9 and turned[20:].mean() < 0.9, differs
assert turned[0] < 0.2 and 0.3 < turned[1:6].mean() < 0.7, differs
assert turned[20:].mean() > 0.5 and 0.2 < long_scores["sinusoidal"][12] < 0.8, differs
assert long_scores["learned, random start"].mean() > 0.8, differs
show(
    figure,
    "Figure 7. Beyond 12 words the learned table breaks at once, and the waves soon after. Rotary is perfect in the "
    "middle, and not at both ends. A learned table whose rows were all trained has little trouble.",
    "Share of right words over the position 0 to 23. Sinusoidal and learned are near 1 up to "
    "position 11; at position 12 sinusoidal is at about 0.5; after that both are at 0.1 to 0.2. "
    "Rotary is 1 in the middle and lower at positions 0 to 5 and from 20 on. Learned with random "
    "start stays near 1.",
)

# %% [markdown]
# - **Learned**: rows that were never trained are random vectors. With `max_len = 12` you get your
#   `ValueError` instead, which is the better outcome.
# - **Sinusoidal**: the vector of position 13 exists, and the rotation from 12 to 13 is the known
#   one. The model fails all the same. It has learned what to do with the vectors it has met, not
#   the rotation. The paper only hoped that waves "may allow the model to extrapolate"; this is
#   often quoted as a fact.
# - **Random starts** mend the learned table. So what was missing is *trained positions*, not a
#   better formula. (Outside this notebook we tried the waves with random starts, 0 to 20, too: 1.00
#   at 24 words.)
# - **Rotary** never sees a position, only distances. It carries on further, except at both ends.
#
# ## 9. Why does rotary fail just there?
#
# The model looks for the distance $-1$. To a single hand, distances that lie a full turn apart look
# the same. Hand 0 turns by 1 radian a word, so by a full turn in about 6.3 words; two turns take
# 12.6 and three 18.8. Hand 1 is slower: 0.316 radians a word, a full turn in 19.9. How near does
# each come back to where it stands at $-1$? The table gives the cosine of the angle between:
#
# | words away from $-1$ | the distances are | hand 0 | hand 1 | met in training |
# |---|---|---|---|---|
# | 6 | −7 and 5 | 0.96 | −0.32 | yes |
# | 13 | −14 and 12 | 0.91 | −0.57 | no |
# | 19 | −20 and 18 | 0.99 | 0.96 | no |
#
# **Predict, then run:** training had distances up to 11 only. In a text of 24 words, at which
# distances does the attention lie?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
generator = torch.Generator().manual_seed(5)
texts = torch.randint(len(vocabulary), (400, 24), generator=generator)
with torch.no_grad():
    weights = short["rotary"](texts)[1].mean(dim=(0, 1)).numpy()  # (24, 24): texts, heads averaged
distances = np.arange(-23, 24)
by_distance = np.array([np.diagonal(weights, offset=d).mean() for d in distances])
figure, axes = plt.subplots(figsize=(8.3, 3.2))
colours = ["tab:blue" if abs(d) <= 11 else "tab:orange" for d in distances]
axes.bar(distances, by_distance, color=colours)
axes.set(xlabel="distance: place of the key minus place of the query", ylabel="mean weight")
axes.set_xticks([-20, -14, -7, -1, 5, 12, 18])
for distance in (-20, 18):
    axes.annotate("both fast hands are back", (distance, by_distance[distance + 23]), (2 if distance > 0 else -4, 0.9 * by_distance.max()),
                  ha="left" if distance > 0 else "right", arrowprops={"arrowstyle": "->"})  # fmt: skip
weight_at = dict(zip(distances.tolist(), by_distance))
near = (17, 18, 19, -19, -20, -21)  # where both fast hands are back, and the neighbours
unseen = [weight_at[d] for d in distances if abs(d) > 11 and d not in near]
assert weight_at[-7] < 0.2, differs  # one turn of hand 0 away
assert weight_at[-1] > 0.4 and min(weight_at[18], weight_at[-20]) > 3 * np.max(unseen), differs
print("mean weight at", *(f"{d}: {weight_at[d]:.2f}  " for d in (-1, 18, -20)))
show(
    figure,
    "Figure 8. Rotary model, texts of 24 words (orange: distances that training never showed). Each bar is the mean "
    "over all pairs at that distance; far distances have few pairs, so the bars do not sum to 1.",
    "Bar chart of the mean attention weight over the distance -23 to 23. A high bar at -1, and "
    "smaller bars at 18 and at -20; nearly nothing elsewhere.",
)

# %% [markdown]
# At −20 and 18 both fast hands are back (the last row of the table). Training had distances up to 11
# only, so nothing ever punished the model for liking them. In a text of 24 words, positions 0 to 5 have a key at distance 18, and positions 20 to 23 have one
# at −20. These are the positions that went wrong in figure 7. Position 0 suffers most: it has no
# word before it, so nothing at −1 competes with the key at 18.
#
# A head of 16 numbers has 8 hands. With more hands, or with hands of other speeds, fewer are back at once, and the
# model carries on further: lesson 11 measures it, with five runs each.
#
# ## 10. Order through the back door
#
# "Without positional encoding a transformer knows no order." Lesson 6 showed that the causal mask and
# one word known to stand first write down $1/(i+1)$ at position $i$. Here any word may stand first. Can
# a model make use of the mask all the same? Train the reader of section 2
# **without** any encoding, but with the causal mask, with one layer and with two. The task is again
# "one before", on eight words.
#
# **Predict, then run.** Chance, a little better, or nearly solved? Does one layer do?

# %% tags=["demonstration", "guess"]
guess_depth = (0.1, 0.3)  # write the share of right words of (one layer, two layers)

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Trained numbers: they differ a little from machine to machine.
look_back = torch.tensor(causal_mask(8))  # (8, 8): True = may attend


def reader_of(num_layers):
    return lambda: Reader(num_layers=num_layers)


unmasked = train(reader_of(2), one_before, "no positions, no mask")
unmasked_score = accuracy(unmasked, one_before, 8).mean()
print(f"one before, no encoding, no mask, two layers: {unmasked_score:.2f}")
by_depth = {1: [], 2: []}
for layers, seed in ((1, 0), (1, 1), (2, 0), (2, 1)):
    label = f"no positions, causal mask, layers: {layers}, seed {seed}"
    masked = train(reader_of(layers), one_before, label, mask=look_back, seed=seed)
    by_depth[layers].append(accuracy(masked, one_before, 8, mask=look_back))
for layers, found in by_depth.items():
    for seed, scores in enumerate(found):
        print(f"causal mask, layers: {layers}, seed {seed}: {scores.mean():.2f}", scores.round(2))
assert unmasked_score < 0.45 and min(scores.mean() for scores in by_depth[2]) > 0.8, differs
assert max(scores.mean() for scores in by_depth[1]) < 0.7, differs  # observed: 0.54
assert min(scores[:2].min() for scores in by_depth[1]) > 0.9, differs
assert max(scores[3:].max() for scores in by_depth[1]) < 0.65, differs  # observed: 0.44

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
came_out = tuple(np.mean([scores.mean() for scores in by_depth[layers]]) for layers in (1, 2))
why = "What the first layer finds of the place, only a second one could use."
reply("guess_depth", guess_depth, came_out, why, within=0.1)

# %% [markdown]
# A causal mask breaks the symmetry. The first word sees 1 key, the second 2, the third 3. So
# the average over the keys is made of 1, 2, 3, ... words, and a layer can find out how many there
# are, roughly. A second layer could use it; we have not looked whether it does. One layer cannot: it is
# right where there is no choice, at positions 0 and 1, and further on it does no better than guessing
# one of the other words that it has seen so far (of two about one half, of three 0.41, of seven 0.30).
# Language models without any encoding do work (Haviv and others, 2022). The exact
# sentence is: **without a mask and without an encoding** attention knows no order. Your old
# instrument shows it too:


# %%
def attend_causally(X):
    """The untrained layer of section 1, with a causal mask."""
    with torch.no_grad():
        output, weights = layer(torch.tensor(X), mask=torch.tensor(causal_mask(X.shape[-2])))
    return output.numpy(), weights.numpy()


error = permutation_error(attend, word_vectors, shuffled)
print("permutation error, no mask:    ", round(error, 6))
causal_error = permutation_error(attend_causally, word_vectors, shuffled)
print("permutation error, causal mask:", round(causal_error, 3))

# %% [markdown]
# ## 11. Find the silent bug
#
# This cell runs without an error and returns the right shape. It follows a well-known tutorial. A
# reader that is trained with it learns nothing of the order. Nothing is wrong with the encoding itself:
# the cell calls yours.


# %% locked="given_add_positions"
def add_positions(X, max_len=512):
    """Given, and wrong: X (batch, n, d_model) plus the sinusoidal encoding."""
    table = sinusoidal_positional_encoding(max_len, X.shape[-1])  # (max_len, d_model)
    table = torch.tensor(table, dtype=X.dtype).unsqueeze(1)  # (max_len, 1, d_model)
    return X + table[: X.size(0)]


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
silent = train(lambda: Reader(add_positions), backwards, "backwards, given code")
silent_score = accuracy(silent, backwards, 8).mean()
print(f"right words: no positions {no_order_score:.2f}, given {silent_score:.2f}")
assert silent_score < 0.45, differs

# %% [markdown]
# Experiment in a cell of your own. Good instruments: a batch that holds the **same** sentence
# twice; the difference `add_positions(X) - X`, row by row.
#
# ### Short answer 4: `answer_bug`
#
# What does the code do?
#
# - a) The conversion to `X.dtype` cuts the encoding to float32, and neighbouring positions become
#   equal.
# - b) Every word of a text gets the same vector; which one depends on the place of the text in the
#   batch.
# - c) The encoding has 512 rows and the texts have 8, so the waves are stretched over 512 rows.
# - d) The words are not multiplied by $\sqrt{d_{model}}$ first, so the waves drown them.

# %% answer="answer_bug"
### BEGIN SOLUTION
answer_bug = "b"
### END SOLUTION

# %% check="answer_bug" points=1
check_answer("answer_bug", answer_bug)

# %% [markdown]
# Two habits catch this kind of mistake. Check that the same sentence gets the same result anywhere
# in a batch. And measure the permutation error of section 1: with positions that work, it is
# clearly not 0. Give it a batch, `word_vectors[None]` of shape (1, 5, 8): to an array without a
# batch axis the wrong code adds an axis by broadcasting, without an error.


# %% tags=["demonstration"]
def error_with(add):
    """Permutation error of the untrained layer of section 1, after add, for a batch of one text."""

    def attend_after(X):
        return attend(add(torch.tensor(X)).numpy())

    return permutation_error(attend_after, word_vectors[None], shuffled)


print("permutation error, add_waves:    ", round(error_with(add_waves), 2))
print("permutation error, add_positions:", round(error_with(add_positions), 6))

# %% [markdown]
# ### Exercise 4: `mended_positions`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# Copy `add_positions` and mend it.
#
# - `X (..., n, d_model)`: any number of leading axes, also none; $n$ is at most `max_len`.
# - Returns `X` plus the sinusoidal encoding of its $n$ positions, the same for every text.
#   Gradients reach `X`.
# - Checked when graded only: the conventions of lesson 1 (precision kept, `X` not changed).


# %% answer="mended_positions"
def mended_positions(X, max_len=512):
    """add_positions, mended: X (..., n, d_model) plus the sinusoidal encoding of its n positions.

    Returns:
        (..., n, d_model), as precise as X.
    """
    ### BEGIN SOLUTION
    table = sinusoidal_positional_encoding(max_len, X.shape[-1])  # (max_len, d_model)
    table = torch.tensor(table, dtype=X.dtype)
    return X + table[: X.shape[-2]]
    ### END SOLUTION


# %% check="mended_positions" points=2 means="Word t gets row t of the encoding, in one text and in a batch." card=["any number of leading axes, also none", "`X` plus the sinusoidal encoding of its $n$ positions, the same for every text"]
def waves_of(n, d_model):
    """The encoding, from the formula."""
    columns = torch.arange(d_model, dtype=torch.float64)
    angles = torch.arange(n)[:, None] / 10000 ** ((columns - columns % 2) / d_model)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())

for title, points, shape in (
    ("one text", 1, (1, 5, 6)), ("a batch of three texts", 0.5, (3, 5, 6)),
    ("no leading axis", 0.25, (5, 6)), ("two leading axes", 0.25, (2, 3, 5, 6)),
):
    with check(title, points=points):
        X = torch.tensor(check_rng().normal(size=shape))
        message = f"X of shape {shape}: word t should get row t of the encoding. Which axis of X holds the positions?"
        assert_close(mended_positions(X.clone()) - X, waves_of(5, 6).expand(shape), message, name="what is added")
checks_passed("mended_positions")


# %% check="mended_positions_batches" points=1 card=["$n$ is at most `max_len`", "Gradients reach `X`", "precision kept, `X` not changed"]
# Hidden checks of mended_positions: other shapes, as many positions as the table has, precision, gradients.
### BEGIN HIDDEN TESTS
def waves_of(n, d_model):
    columns = torch.arange(d_model, dtype=torch.float64)
    angles = torch.arange(n)[:, None] / 10000 ** ((columns - columns % 2) / d_model)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


@probe
def result_and_input(X, max_len):
    return mended_positions(X, max_len), X


@probe
def gradient_of(X, upstream):
    X = X.clone().requires_grad_()
    found = mended_positions(X)
    if found.requires_grad:
        (found * upstream).sum().backward()
    return X.grad


rng = check_rng()
for title, points, shape, max_len in (
    ("one leading axis", 0.25, (4, 9, 8), 512),
    ("as many positions as max_len", 0.125, (9, 4, 8), 4),
    ("more than 512", 0.125, (2, 530, 4), 600),
    ("a text of one word", 0.125, (1, 1, 6), 9),
):
    with check(title, points=points):
        X = torch.tensor(rng.normal(size=shape)).float()
        message = f"X of shape {shape}, float32, max_len = {max_len}: the result is X plus row t at position t."
        expected = X + waves_of(*shape[-2:]).float()
        assert_close(result_and_input(X.clone(), max_len)[0], expected, message, rtol=1e-3, atol=1e-3)
X, upstream = torch.tensor(rng.normal(size=(2, 2, 5, 6)))
with check("gradients", points=0.125, side=True):
    message = "The gradient of the result should pass to X unchanged: X is only added to."
    assert_close(gradient_of(X, upstream), upstream, message, name="the gradient of X")
with check("float64", points=0.125):
    message = "X in float64: the result should have all its digits."
    assert_close(result_and_input(X.clone(), 512)[0], X + waves_of(5, 6), message, precise=True)
with check("X is not changed", points=0.125, side=True):
    assert_equal(result_and_input(X.clone(), 512)[1], X, "X was changed by the call.", name="X")
checks_passed("mended_positions")
### END HIDDEN TESTS

# %% [markdown]
# ### Written answer: `written_longer`
#
# In 6 to 8 sentences, for a colleague who says: "We trained with 512 words. We use sinusoidal
# positions, so 2048 words at run time are no problem." (4 points, up to 10-15 minutes)
#
# 1. What exactly is true about shifts of the sinusoidal encoding?
# 2. Why does it not follow that the model works on longer texts? Use a measurement of this lesson.
# 3. What would happen with learned positions, and with rotary ones?
# 4. Name one thing you would do or measure before you believe the claim.

# %% [markdown] written="longer" points=4
# ### BEGIN SOLUTION
# For every offset there is one rotation that turns the encoding of any position into that of the
# position offset places further, exactly, because each pair of columns is a sine and a cosine of
# one frequency. But that is a property of the encoding, not of the model. The model's matrices were
# fitted to the position vectors that occurred in training, added to words; nothing forces them to
# use the rotation. In our measurement, training with up to 12 words gave nearly perfect results up
# to 12 words and little better than guessing from position 14 on. A learned table has no rows for
# new positions (ValueError), or rows that were never trained, which gave results near chance at
# once. Rotary attention sees only distances, so it carried on at most positions of 24 words, but
# distances that training never showed gave false matches. I would measure accuracy by position on
# long texts, or train with longer texts, or with random starting positions so that every position
# is trained.
#
# **Marking scheme** (4 points). 1 point: a shift is one exact linear map (rotation), the same for
# every position. 1 point: a property of the vectors is no property of the trained model (unseen
# vectors, only trained positions), with the numbers or figure 7. 1 point: learned (no row, or
# untrained row) and rotary (distances; further, but not without limit), both. 1 point: a sensible
# measure or remedy: accuracy by position, training on longer texts, random starts. No point for
# "use rotary" alone.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > I would plot the accuracy against the position, on texts of 2048 words, and look where it leaves the
# > level of the first 512. One number for whole texts would hide that place.
#
# Good: it says what to draw, what to compare, and what a weaker measurement would miss.
#
# > Since a shift is the same rotation everywhere, the model has learned this rotation and can use it
# > beyond word 512 as well.
#
# Plausible, and bad: the encoding *allows* a rotation. Whether training found one is what Figure 7
# measures, and there it had not.
#
# </details>

# %% [markdown]
# ### Puzzle: the last of its kind
#
# Some words of the text are equal. Write down **scores** with which each word looks at the **last** word of the text
# that is equal to it (itself, if no other is). `puzzle_last` takes the words as whole numbers `(n,)` and returns the
# scores `(n, n)`. What the words are is not enough, and where they stand is not enough.
#
# *Nothing is trained here, and nothing is graded: you write the numbers down, and the cell below says what they do.*

# %% tags=["demonstration", "guess"]
puzzle_last = lambda w: 100.0 * (w[:, None] == w) * len(w) + 30.0 * np.arange(len(w))  # write lambda w: scores


# %% tags=["demonstration", "puzzle"]
def softmaxed(scores, values):
    scores = np.asarray(scores, dtype=float)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ values


def last_of_its_kind(w):
    return [max(i for i, other in enumerate(w) if other == word) for word in w]


texts = [np.array([3, 3]), np.array([1, 2, 1, 3, 2, 1]), np.random.default_rng(0).integers(5, size=20)]
does = lambda answer, w: softmaxed(answer(w), np.arange(len(w)))
puzzle("puzzle_last", puzzle_last, does, last_of_its_kind, texts)

# %% [markdown]
# ## What is often said
#
# | often said | what this lesson shows |
# |---|---|
# | "Sinusoids extrapolate." | The vectors do, the trained model does not (figure 7). |
# | "Without encoding, no order." | True without a mask. With a causal mask, two layers find order (section 10). |
# | "It trains well, so it is right." | The doubled exponent trains well too (section 4). |
# | "A shift is a rotation, so it is right." | So it is with the doubled exponent (section 5). |
# | "Near words have large dot products." | Roughly; and random $W_q$, $W_k$ undo it (figure 6). |
# | "Rotary works for any length." | Further. Unseen distances can be mistaken (figure 8). |
# | "Multiply words by $\sqrt{d_{model}}$." | Only if they start small enough (section 6). |
#
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | no order | $f(PX) = P f(X)$, $P$ shuffles | `permutation_error` | attention sees a bag |
# | frequency | $\omega_i = 10000^{-2i/d_{model}}$ | one a pair of columns | fast and slow hands |
# | sinusoidal | $\sin(pos\,\omega_i), \cos(pos\,\omega_i)$ | exercise 1 | fixed vectors |
# | shift | $PE[pos + k] = M_k\, PE[pos]$ | `shift_matrix` | relative position is a rotation |
# | learned | row $t$ of a trained table | exercise 3 | no formula, but a last row |
# | rotary | $(R_p q) \cdot (R_s k)$ | turn queries and keys | scores see only distances |
# | causal mask | position $t$ sees $t + 1$ keys | `causal_mask` | lets order in by itself |
#
# ## Check yourself
#
# <details><summary>1. With d_model = 8, which frequencies are there, and how many positions does
# the slowest hand need for a full turn?</summary>
#
# $1, 1/10, 1/100, 1/1000$. A full turn is $2\pi$, so about 6283 positions.
#
# </details>
#
# <details><summary>2. What is `shift_matrix(5, d) @ shift_matrix(-5, d)`, and why?</summary>
#
# The identity: five steps forward and five back. A rotation's inverse is its transpose, so
# `shift_matrix(-5, d)` is the transpose of `shift_matrix(5, d)`.
#
# </details>
#
# <details><summary>3. A model with learned positions, max_len = 512, was trained on texts of at
# most 100 words. It accepts 400 words. Can you trust it?</summary>
#
# No. Rows 100 to 511 have never had a gradient: they are still the random start values.
#
# </details>
#
# <details><summary>4. Why did the rotary model say only the two ends of a text right when it
# had to say it backwards?</summary>
#
# Its scores depend on distances, and the right distance differs from position to position. It
# would have to know where it stands. Only at the ends does the right distance exist nowhere else.
#
# </details>
#
# <details><summary>5. Somebody adds the same vector to all positions. Which measurement of
# this lesson finds that at once?</summary>
#
# The permutation error: it is still 0 (up to rounding).
#
# </details>
#
# ## References
#
# - Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin (2017), *Attention Is All
#   You Need*: the formula and the hope about longer texts are in section 3.5.
# - Gehring, Auli, Grangier, Yarats, Dauphin (2017), *Convolutional Sequence to Sequence Learning*:
#   learned positions.
# - Yan, Deng, Li, Qiu (2019), *TENER: Adapting Transformer Encoder for Named Entity Recognition*:
#   dot products of the encoding, before and after projection.
# - Kiyono, Kobayashi, Suzuki, Inui (2021), *SHAPE: Shifted Absolute Position Embedding for
#   Transformers*: random starts.
# - Su, Lu, Pan, Murtadha, Wen, Liu (2021), *RoFormer: Enhanced Transformer with Rotary Position
#   Embedding*.
# - Press, Smith, Lewis (2022), *Train Short, Test Long: Attention with Linear Biases Enables Input
#   Length Extrapolation*: measures how badly sinusoids extrapolate.
# - Haviv, Ram, Press, Izsak, Levy (2022), *Transformer Language Models without Positional Encodings
#   Still Learn Positional Information*.
#
# ## What comes next
#
# You have attention, heads, masks and positions. Lesson 8 puts them together with a feed-forward
# network, residual connections and layer norm: the **transformer block**, and a stack of them.
