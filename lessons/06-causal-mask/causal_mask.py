# %% [markdown]
# ## What you will be able to do
#
# - **Hide** the future from a text with a mask, and **combine** that mask with padding.
# - **Choose** what a forbidden score becomes ($-\infty$, $-10^9$, ...), also in half precision.
# - **Write** a detector that finds out whether any layer looks ahead, and **find** leaks that no
#   one sees in the code.
# - **Train** a small language model with and without the mask, and **recognise** the one that
#   cheats, although its loss is better.
# - **Explain** why one training pass gives $n$ predictions, and what generation computes again and
#   again.

# %% tags=["setup"]
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.batteries import assert_unchanged
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
    MultiHeadAttention,
    SelfAttention,
    padding_mask,
    scaled_dot_product_attention,
)
from lesson_kit.figures import draw_heatmap, show, text_table
from lesson_kit.guesses import puzzle, reply
from lesson_kit.hands_on import switches
from lesson_kit.progress import progress

torch.set_num_threads(1)  # small models: one thread is faster than two

# %% [markdown]
# Four parts come from earlier lessons: `padding_mask` and `scaled_dot_product_attention` from
# lesson 3, `SelfAttention` from lesson 4, `MultiHeadAttention` from lesson 5. They are your own
# where they passed their checks, else the course's; the setup cell says which.
#
# ## Three questions first
#
# From memory, without looking back. Every choice has a reply.
#
# ### `answer_recall_average` (lesson 5)
#
# Of two heads one looks at the word before, the other at the word after. Somebody draws the average of
# their maps. What does it show?
#
# - a) Half of the weight on each neighbour, which no head does.
# - b) The map of the more important head.
# - c) Nothing: the weights cancel.

# %% answer="answer_recall_average"
### BEGIN SOLUTION
answer_recall_average = "a"
### END SOLUTION

# %% check="answer_recall_average" points=0.5
check_answer("answer_recall_average", answer_recall_average)

# %% [markdown]
# ### `answer_recall_empty` (lesson 3)
#
# A row of the mask is `False` throughout. What does the course's attention give for it?
#
# - a) NaN.
# - b) The average of all values.
# - c) Weights 0 and output 0.

# %% answer="answer_recall_empty"
### BEGIN SOLUTION
answer_recall_empty = "c"
### END SOLUTION

# %% check="answer_recall_empty" points=0.5
check_answer("answer_recall_empty", answer_recall_empty)

# %% [markdown]
# ### `answer_recall_state` (lesson 1)
#
# The copier with one vector of 64 numbers copies 5 digits nearly without a mistake, and of 40 it gets
# most wrong. What did lesson 1 find out about the reason?
#
# - a) More digits in one vector take more training; near 40 no wall was found.
# - b) One vector of 64 numbers has no room for 40 digits.
# - c) What it has read first is forgotten first.

# %% answer="answer_recall_state"
### BEGIN SOLUTION
answer_recall_state = "a"
### END SOLUTION

# %% check="answer_recall_state" points=0.5
check_answer("answer_recall_state", answer_recall_state)

# %% [markdown]
# ## 1. Which of these two models would you rather have?
#
# In section 6 we train two models. Both read a text and guess, at every character, which one comes
# next. They have the same size, the same data and the same training. Only one line differs. This
# is what they do after training (the loss is explained below; smaller is better):
#
# | which | loss on newly drawn texts | what it writes |
# |---|---|---|
# | model A | 0.22 | `the white dogs are sleeping` |
# | model B | **0.005** | `the old dogslslepeepeepireepislep` |
#
# (Both lines were picked from one run; on another machine they may be others. Section 7 counts: of A's
# lines nearly nine in ten are sentences of the language, of B's none.)
#
# By the number that everyone looks at, B is forty times better. And it cannot write a sentence.
# The line that differs is the **causal mask**. Without it, B sees the characters that it is asked
# to guess.
#
# ### The smallest example
#
# A **language model** guesses the next word. One sentence gives several tasks at once:

# %%
words = ["the", "black", "cat", "is", "sleeping"]
for i in range(1, len(words)):
    print(f"{' '.join(words[:i]):18} -> {words[i]}")

# %% [markdown]
# Now let a "model" look at the whole sentence while it guesses. It needs no knowledge at all: at
# position $i$ it looks at position $i + 1$ and reads the answer.


# %%
def cheat(text):
    """At each position the word that comes next: read, not guessed."""
    return [text[i + 1] if i + 1 < len(text) else "(no idea)" for i in range(len(text))]


print("training:", cheat(words))  # four of four are right
print("writing: ", cheat(["the", "black", "cat"]))  # the next word is not there yet

# %% [markdown]
# While it is trained, the next word is always there. When it writes, the next word does not exist
# yet. Self-attention (lesson 4) does exactly this, if nothing stops it: each word sees all words,
# and training finds the shortest way to a small loss.
#
# ## 2. The triangle
#
# The remedy: the word at position $i$ may attend to the positions $0, 1, \ldots, i$ and to no
# later one. A layer is **causal** if its output at position $i$ depends on the inputs up to $i$
# only. In the scores of lesson 3,
#
# $$s_{ij} = \begin{cases} q_i \cdot k_j / \sqrt{d_k} & \text{if } j \le i \\
# -\infty & \text{if } j > i, \end{cases} \qquad
# \text{weights}_i = \operatorname{softmax}(s_i) .$$
#
# | query at position | word | may see |
# |---|---|---|
# | 0 | the | the |
# | 1 | black | the, black |
# | 2 | cat | the, black, cat |
# | 3 | is | the, black, cat, is |
#
# Read the table twice. *A word sees itself*: at "cat" the model already knows "cat"; it has to
# guess "is". And the allowed places form a triangle: the lower left half of the matrix, with its
# diagonal.

# %% [markdown]
# ### Exercise 1: `causal_mask`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 5-10 minutes on it.
#
# Return the mask of the table for a text of `n` words.
#
# - `n`: an integer, at least 1.
# - Returns `(n, n)`, a NumPy array of bool: row = query, column = key, `True` = may attend.
# - A new array each call: somebody may write into it.


# %% answer="causal_mask"
def causal_mask(n):
    """Which positions each position may attend to when the future is hidden.

    Args:
        n: length of the text, an integer of at least 1.

    Returns:
        (n, n) NumPy array of bool, a new one each call: one row a query, one column a key;
        True = may attend.
    """
    ### BEGIN SOLUTION
    return np.tri(n, dtype=bool)
    ### END SOLUTION


# %% check="causal_mask" points=2 means="No word sees a later one; each sees itself and all earlier ones." card=["Returns `(n, n)`, a NumPy array of bool: row = query, column = key, `True` = may attend", "A new array each call: somebody may write into it"]
@probe
def after_writing(n):
    mask = causal_mask(n)
    if not np.asarray(mask).flags.writeable:
        return "a mask that can only be read"
    kept = mask.copy()
    mask[...] = False
    later = causal_mask(n).copy(), causal_mask(n - 1).copy()
    mask[...] = kept
    return later

def allowed():
    """Where the mask of four words says True (or 1), whatever its dtype is."""
    mask = causal_mask(4)
    message = "4 words: one row for each query, one column for each key."
    assert_equal(np.shape(mask), (4, 4), message, name="the shape of the mask")
    found, message = np.asarray(mask) == 1, "Some pairs are allowed (True), and some are not."
    assert_equal(bool(found.any() and not found.all()), True, message, name="'some are'")
    return found

later = np.array([[key > query for key in range(4)] for query in range(4)])
with check("the shape; bool, in NumPy", points=0.25):
    mask, message = causal_mask(4), "The mask is a NumPy array of bool."
    assert_close(mask, np.asarray(mask) == 1, message, name="the mask", against="as asked for")
    allowed()
with check("each word sees itself", points=0.5):
    message = "A word should see itself: query and key are the same position."
    assert_close(np.diag(allowed()), np.array([True] * 4), message, name="the diagonal")
with check("no word sees a later one", points=0.5):
    message = "Right of the diagonal nothing is True. Is each row a query, and True 'may attend'?"
    assert_close(allowed() & later, later & False, message, name="what is right of the diagonal")
with check("each word sees all earlier ones", points=0.5):
    message = "Left of the diagonal all is True. Is each row a query (not each column)?"
    assert_close(allowed() & later.T, later.T, message, name="what is left of the diagonal")
with check("a new array each call, which may be written into", points=0.25, side=True):
    allowed()
    message = "False was written everywhere into an earlier mask. Is a new array made in each call?"
    new = causal_mask(4), causal_mask(3)
    assert_equal(after_writing(4), new, message, name="masks of 4 and 3", against="as they were")
checks_passed("causal_mask")


# %% check="causal_mask_lengths" points=1.5 card=["`n`: an integer, at least 1", "Returns `(n, n)`, a NumPy array of bool"]
# Hidden checks of causal_mask: other lengths, one word, the dtype of the result.
### BEGIN HIDDEN TESTS
def compare(n):
    mask = causal_mask(n)
    assert_equal(np.shape(mask), (n, n), f"n = {n}: one row and one column a word.", name="the shape")
    message = f"n = {n}: True on and below the diagonal, and False above it."
    assert_equal(np.asarray(mask) == 1, torch.ones(n, n).tril().bool().numpy(), message)

with check("seven words: bool, some True and some not", points=0.25):
    mask = causal_mask(7)
    message = "The mask should be a NumPy array of bool, also for 7 words."
    assert_equal(mask, np.asarray(mask) == 1, message, against="in the form asked for")
    message = "For 7 words some pairs of query and key are allowed, and some are not."
    assert_equal(bool(np.any(mask) and not np.all(mask)), True, message)
with check("more words", points=0.75):
    compare(7)
    compare(int(check_rng().integers(8, 20)))
with check("one word and two", points=0.5):
    compare(2)
    compare(1)
checks_passed("causal_mask")
### END HIDDEN TESTS


# %% check="causal_mask_new_array" points=0.5 card="A new array each call: somebody may write into it"
# Hidden checks of causal_mask: a new array each call, which may be written into.
### BEGIN HIDDEN TESTS
@probe
def written_into(n, row, column):
    """A mask in which one entry is changed, and one that was made before."""
    before, mask = causal_mask(n), causal_mask(n)
    if not np.asarray(mask).flags.writeable:
        return mask, before
    mask[row, column] = not mask[row, column]
    return mask, before

mask, before = written_into(5, 1, 3)
again = causal_mask(5)
message = "Of two masks one was written into, and the other one differs now from a new one."
assert_equal(before, again, message, name="the other one", against="from a new call")
message = "After [1, 3] is written into, it alone differs from a new mask. Can it be written into?"
expected = np.array(again) == 1
expected[1, 3] = not expected[1, 3]
found, against = np.asarray(mask) == 1, "a new one, with [1, 3] turned"
assert_equal(found, expected, message, name="the mask", against=against)
### END HIDDEN TESTS


# %% [markdown]
# <details><summary>Hint</summary>
#
# Number the rows and the columns. For which pairs (row, column) is the answer True? Compare a
# column of numbers with a row of numbers, and let them broadcast. (NumPy also has functions for
# triangles; if you use one, check its diagonal on paper.)
#
# </details>
#
# **Predict, then run.** Below, queries, keys and values are **random**. Left: no mask. Right: your
# causal mask, the same scores. One weight on the right, apart from the zeros, can be known without
# any calculation. Which? And do the numbers of the last row change?

# %% tags=["demonstration", "guess"]
guess_known = (4, 4)  # write (row, column) of the weight that can be known, counted from 0
guess_last_row = True  # write whether the numbers of the last row change

# %% tags=["demonstration"]
rng = np.random.default_rng(5)
Q, K, V = rng.normal(size=(3, 5, 4))  # each (n, d_k): random, nothing is trained here
free = scaled_dot_product_attention(Q, K, V)[1]  # (n, n)
causal = scaled_dot_product_attention(Q, K, V, causal_mask(5))[1]  # (n, n)
maps = {"random scores, no mask": free, "the same scores, causal mask": causal}
figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.9))
for axes, (title, weights) in zip(panels, maps.items()):
    draw_heatmap(axes, weights, words, words)
    axes.set_title(title)
figure.tight_layout()
assert causal[0, 0] == 1 and np.allclose(causal[-1], free[-1])
assert (causal[np.arange(5)[:, None] < np.arange(5)] == 0).all()
assert np.allclose(causal.sum(-1), 1)
show(
    figure,
    "Figure 1. The mask empties the upper right triangle and shares the weight among the words that are "
    "left: each row still sums to 1. The map is random: do not read English into it.",
    "Two heat maps, five words by five words. Left all cells have weights. Right the cells above "
    "the diagonal are 0, the first row is 1 on 'the', the last row is as on the left.",
    "\n\n".join(f"{title}\n\n{text_table(w, words, words)}" for title, w in maps.items()),
)

# %% tags=["demonstration"]
why = "The first word sees itself alone, so its weight is 1, whatever the scores."
reply("guess_known", guess_known, (0, 0), why)
came_out = not np.allclose(causal[-1], free[-1])
reply("guess_last_row", guess_last_row, came_out, "The last word saw only its past before.")

# %% [markdown]
# Now make a mask of your own. A row is a word that looks, a switch a word that it may look at.


# %% tags=["demonstration"]
def weights_under(axes, mask):
    mask = np.asarray(mask, dtype=bool)
    draw_heatmap(axes, scaled_dot_product_attention(Q, K, V, mask)[1], words, words)
    ahead = [word for i, word in enumerate(words) if mask[i, i + 1 :].any()]
    blind = [word for i, word in enumerate(words) if not mask[i].any()]
    return (
        f"Words that see the future: {', '.join(ahead) or 'none'}. "
        f"Words that see nothing: {', '.join(blind) or 'none'}."
    )


switches(
    weights_under,
    "may look at",
    words,
    rows=words,
    pictures={
        "your causal mask": causal_mask(5),
        "one diagonal too many": np.tri(5, k=1, dtype=bool),
    },
    caption="Try it. The first mask is yours; the scores stay as they are. Give one word one look "
    "ahead: which rows change, and which numbers in them? Then take everything from a word.",
    size=(4.05, 4.0),
)

# %% [markdown]
# What does the mask cost? Think of "The animal didn't cross the street because it was too tired"
# from lesson 4. What tells you that "it" is the animal, and not the street? The last word. A causal
# layer cannot use it for its output at "it": there, "tired" is still the future. Only at "tired"
# itself can both words come together. A text that is complete, and in which nothing is to be
# guessed, is read better without the mask. A text that is being written has no choice.
#
# The triangle goes wrong in few ways, and none of them raises an error:
#
# | mistake | what a word sees | what happens |
# |---|---|---|
# | one diagonal too many | also the next word | perfect in training, rubbish when it writes |
# | one diagonal too few | the past without itself | the first word sees nothing; the rest is harder than needed |
# | upper triangle | itself and the future | cheats as without a mask, and sees no past |
# | `True` and `False` exchanged | only the future | the last word sees nothing; the others cheat, and see no past |
#
# The last one is common, because libraries disagree. In this course, and in
# `F.scaled_dot_product_attention`, `True` means *may attend*. In `nn.MultiheadAttention`, `True`
# in `attn_mask` means *must not*. Say it aloud once before you pass a mask to a library.
#
# ## 3. Two reasons to hide a key
#
# Texts in a batch have different lengths. The short ones are filled up with **padding**, and
# `padding_mask` of lesson 3 hides it. A language model with batches has both reasons: the key is in
# the future, or it is padding. A key may be attended if **both** masks allow it:
#
# $$\text{may attend}_{bij} = \text{causal}_{ij} \wedge \text{word}_{bj},
# \qquad (n, n) \text{ and } (\text{batch}, 1, n) \to (\text{batch}, n, n) .$$

# %% [markdown]
# ### Exercise 2: `combine_masks`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10-15 minutes on it.
#
# Combine any number of masks: a key is attended only where **every** mask allows it.
#
# - `*masks`: NumPy arrays of bool or torch tensors of bool, all of one kind. Their shapes
#   broadcast.
# - `None` stands for "no mask", as in the attention functions. Entries that are `None` are ignored.
# - Returns a bool array of that kind, of the broadcast shape. No mask at all gives `None`.
# - The masks that are given are not changed.


# %% answer="combine_masks"
def combine_masks(*masks):
    """One mask that allows a key only where every mask allows it.

    Args:
        *masks: bool, True = may attend; NumPy arrays or torch tensors, all of one kind, of
            shapes that broadcast; None stands for "no mask" and is ignored.

    Returns:
        A bool array (or tensor) of the broadcast shape; None if there is no mask at all.
    """
    ### BEGIN SOLUTION
    combined = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else combined & mask
    return combined
    ### END SOLUTION


# %% check="combine_masks" points=2 means="One mask can hide padding and the future: a pair is seen where every mask allows it." card=["a key is attended only where **every** mask allows it", "Their shapes broadcast", "Entries that are `None` are ignored", "No mask at all gives `None`", "The masks that are given are not changed"]
yes, no = True, False
triangle = np.array([[yes, no, no], [yes, yes, no], [yes, yes, yes]])  # (3, 3)
real = np.array([[[yes, yes, yes]], [[yes, yes, no]]])  # (2, 1, 3): the second text has 2 words
expected = np.array([triangle, [[yes, no, no], [yes, yes, no], [yes, yes, no]]])
name = "the combined mask"
with check("one mask beside None, and None alone", points=0.5):
    message = "One mask between two None gives this mask: None is ignored."
    assert_close(combine_masks(None, triangle.copy(), None), triangle, message, name=name)
    message = "With no mask at all, here two None, the result is None."
    assert_equal(combine_masks(None, None), None, message)
    message = "A mask that is True everywhere, beside None, gives this mask, and not None."
    assert_equal(combine_masks(triangle | yes, None), triangle | yes, message)
with check("two masks", points=0.75):
    message = "Allowed is what EVERY mask allows; (3, 3) and (2, 1, 3) broadcast to (2, 3, 3)."
    assert_close(combine_masks(triangle.copy(), real.copy()), expected, message, name=name)
with check("three masks", points=0.25):
    first_hidden = np.array([no, yes, yes])  # (3,): nobody may see the first word
    found = combine_masks(triangle.copy(), real.copy(), first_hidden.copy())
    message = "(3, 3), (2, 1, 3) and (3,): allowed is what all three allow."
    assert_close(found, expected & first_hidden, message, name=name)
with check("torch as NumPy; the masks stay as they are", points=0.5):
    masks = triangle.copy(), real.copy()
    by_numpy = np.asarray(combine_masks(*masks))
    message = "NumPy arrays (3, 3) and (2, 1, 3) broadcast to (2, 3, 3)."
    assert_equal(by_numpy.shape, (2, 3, 3), message, name="the shape")
    some = bool(by_numpy.any() and not by_numpy.all())
    assert_equal(some, True, "They allow some keys and not others.", name="'some are allowed'")
    found = combine_masks(torch.tensor(triangle), torch.tensor(real))
    message = "Tensors give a tensor of bool. Does each step work for tensors too?"
    assert_close(found, torch.tensor(by_numpy), message, name=name, against="for NumPy arrays")
    assert_equal(masks, (triangle, real), "A mask was changed by the call.", name="the two masks")
checks_passed("combine_masks")


# %% check="combine_masks_any_number" points=2.5 card=["Combine any number of masks: a key is attended only where **every** mask allows it", "NumPy arrays of bool or torch tensors of bool, all of one kind. Their shapes broadcast", "Returns a bool array of that kind, of the broadcast shape"]
# Hidden checks of combine_masks: one mask, two and more, of shapes that broadcast; tensors.
### BEGIN HIDDEN TESTS
rng = check_rng()
two = ([(6, 2), (6, 2)], [(3, 1, 5), (4, 5)], [(4, 5), (3, 1, 5)], [(4, 1), (1, 5)])
more = ([(4, 5), (4, 5), (4, 5)], [(5,), (4, 5), (3, 1, 5), (2, 1, 4, 5)])

def drawn(shapes):
    masks = [rng.random(shape) < 0.75 for shape in shapes]
    for mask in masks:
        mask.flat[0], mask.flat[-1] = False, True  # each mask hides something
    return masks

def compare(masks):
    expected = torch.ones((), dtype=torch.bool)
    for mask in masks:
        expected = expected & torch.tensor(mask)
    message = f"Masks {[mask.shape for mask in masks]}: allowed is what all of them allow."
    found = combine_masks(*[mask.copy() for mask in masks])
    assert_close(found, expected.numpy(), message, name="the combined mask")

with check("two masks", points=0.5):
    for shapes in two:
        compare(drawn(shapes))
with check("a mask that is all True, or all False, beside another", points=0.5):
    for value in (True, False):
        masks = [np.full((3, 1, 5), value), *drawn([(4, 5)])]
        compare(masks)
        compare(masks[::-1])
with check("three masks and more", points=0.75):
    for shapes in more:
        compare(drawn(shapes))
    keys = np.arange(12).reshape(3, 4)
    compare([keys != number for number in range(6)])  # each hides one key, each another one
with check("one mask", points=0.25, side=True):
    (mask,) = drawn([(4, 5)])
    assert_equal(combine_masks(mask), mask, "A single mask is its own combination.")
with check("torch as NumPy", points=0.5):
    for shapes in (*two, *more, [(4, 5)]):
        masks = drawn(shapes)
        by_numpy = np.asarray(combine_masks(*masks))
        message = f"NumPy arrays {shapes} have a combined mask of the broadcast shape."
        assert_equal(by_numpy.shape, np.broadcast_shapes(*shapes), message, name="the shape")
        message = "These masks together allow some keys and not others."
        assert_equal(bool(by_numpy.any() and not by_numpy.all()), True, message)
        found = combine_masks(*[torch.tensor(mask) for mask in masks])
        message = f"Tensors {shapes}: a tensor of bool, with the values for NumPy arrays."
        assert_close(found, torch.tensor(by_numpy), message, against="for NumPy arrays")
checks_passed("combine_masks")
### END HIDDEN TESTS


# %% check="combine_masks_none" points=1 card=["Entries that are `None` are ignored", "No mask at all gives `None`"]
# Hidden checks of combine_masks: None at every place, nothing at all, masks that are all one value.
### BEGIN HIDDEN TESTS
rng = check_rng()
a, b = rng.random((4, 5)) < 0.6, rng.random((3, 1, 5)) < 0.6
a[0, :2], a[-1, -1], b[:, :, 0], b[:, :, 1], b[:, :, -1] = [False, True], True, True, False, True

def compare(a, b):
    expected = np.asarray(combine_masks(a, b))
    message = "Masks (4, 5) and (3, 1, 5) broadcast to (3, 4, 5), and allow some keys."
    some = bool(np.any(expected) and not np.all(expected))
    assert_equal((expected.shape, some), ((3, 4, 5), True), message)
    for masks in ((a, b, None), (None, a, b), (a, None, b), (None, a, None, None, b, None)):
        places = ", ".join("None" if mask is None else "mask" for mask in masks)
        message = f"None should be ignored wherever it stands: {places}."
        found = np.asarray(combine_masks(*masks))
        assert_equal(found, expected, message, name="the combined mask", against="without None")

with check("None beside masks: as without it", points=0.25):
    compare(a, b)
with check("None beside tensors: as without it", points=0.25):
    compare(torch.tensor(a), torch.tensor(b))
with check("no argument, None alone, and masks of one value, which are masks", points=0.5):
    assert_equal(combine_masks(None, None, None), None, "No mask at all gives None.")
    assert_equal(combine_masks(), None, "No argument at all gives None.")
    for value in (True, False):
        mask = np.full((2, 3), value)
        message = f"A mask that is {value} everywhere, alone, beside None and beside itself."
        for given in ((mask,), (None, mask), (mask, None), (mask, None, mask)):
            assert_equal(combine_masks(*given), mask, message)
checks_passed("combine_masks")
### END HIDDEN TESTS


# %% check="combine_masks_inputs" points=0.5 card="The masks that are given are not changed"
# Hidden checks of combine_masks: the masks it was given are not changed.
### SIDE CONDITION: counts once another check of combine_masks passes.
### BEGIN HIDDEN TESTS
@probe
def masks_afterwards(first, second, third):
    combine_masks(first, second, third)
    return first, second, third

rng = check_rng()
for shapes in (((4, 5), (4, 5), (4, 5)), ((3, 4, 5), (4, 5), (5,)), ((4, 5), (3, 4, 5), (5,))):
    masks = [rng.random(shape) < 0.5 for shape in shapes]
    for place, mask in enumerate(masks):
        mask[...], mask[..., place] = True, False  # each hides a key of its own
    first, second, third = masks
    assert_unchanged(masks_afterwards, first=first, second=second, third=third)
### END HIDDEN TESTS


# %% [markdown]
# <details><summary>Hint</summary>
#
# Throw the `None` entries away first. Then begin with the first mask that is left, and bring in one
# after another. Arrays and tensors share an operator for "and" of booleans that broadcasts and
# makes a new array. Its form that writes into its left side is the wrong one here: the shape of
# that side stays, and the caller's mask is changed.
#
# </details>
#
# ### Short answer 1: `answer_padding`
#
# A batch of texts, filled up with padding **on the right**: "the black cat (pad) (pad)". The causal
# mask is on. Now you add the padding mask with `combine_masks`. What changes in
# the outputs at the **real words**?
#
# - a) Their weights get larger, because the padding no longer takes a share.
# - b) Only the last real word changes, since it stands next to the padding.
# - c) The rows of the real words become zero.
# - d) Nothing at all.

# %% answer="answer_padding"
### BEGIN SOLUTION
answer_padding = "d"
### END SOLUTION

# %% check="answer_padding" points=1
check_answer("answer_padding", answer_padding)

# %% [markdown]
# Two texts, of 3 and of 5 words, padded on the right and padded on the left. **Predict, then run:**
# which rows will be empty?

# %% tags=["demonstration"]
on_the_right = padding_mask([3, 5], 5)  # (batch, 1, n)
on_the_left = on_the_right[..., ::-1]  # the same counts, padding first
masks = {
    "padding on the right": combine_masks(causal_mask(5), on_the_right),  # (batch, n, n)
    "padding on the left": combine_masks(causal_mask(5), on_the_left),
}
maps = {
    title: scaled_dot_product_attention(Q, K, V, mask)[1][0]  # the short text
    for title, mask in masks.items()
}
labels = {
    "padding on the right": ["the", "black", "cat", "(pad 1)", "(pad 2)"],
    "padding on the left": ["(pad 1)", "(pad 2)", "the", "black", "cat"],
}
figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.9))
for axes, (title, weights) in zip(panels, maps.items()):
    draw_heatmap(axes, weights, labels[title], labels[title])
    axes.set_title(title)
figure.tight_layout()
assert (maps["padding on the left"][:2] == 0).all()
assert np.allclose(maps["padding on the left"][2:].sum(-1), 1)
assert np.allclose(maps["padding on the right"].sum(-1), 1)
assert np.allclose(maps["padding on the right"][:3], causal[:3])
show(
    figure,
    "Figure 2. Padding on the right leaves the rows of the real words as they were; on the left two rows are "
    "empty. (The random queries belong to places: 'cat' stands elsewhere in the right map.)",
    "Two heat maps, five positions by five. Left panel: 'the black cat' then two padding "
    "positions; the padding columns are 0, every row sums to 1. Right panel: padding first; the "
    "first two rows are all 0, the others see real words only.",
    "\n\n".join(
        f"{title}\n\n{text_table(w, labels[title], labels[title])}" for title, w in maps.items()
    ),
)

# %% [markdown]
# So why would anyone pad on the left? Because a batch of prompts must end in the same column to be
# continued together: that is what text generation does. Left padding with a causal mask is where
# **empty rows** come from. A row that may attend to nothing needs care.
#
# ## 4. $-\infty$, $-10^9$ and half precision
#
# "Set forbidden scores to minus infinity" is the formula. Much code writes `-1e9` instead. In a row with
# at least one allowed key they nearly always agree, since $e^{-10^9}$ is 0 in every floating type. (Scores
# of a training run that diverges may lie below $-10^9$: then the hidden key wins.) In an **empty row** they
# do not agree. And large models run in **half precision**, that is 16 bits a number: **bfloat16** has the
# range of float32, but the largest number of **float16** is 65504. And libraries differ in what they do
# with a number that does not fit.

# %% [markdown]
# ### Short answer 2: `answer_half`
#
# The scores are float16, a row is empty (left padding), and the code is
#
# ```python
# weights = torch.softmax(torch.where(mask, scores, -1e9), dim=-1)
# ```
#
# In float32 the empty row gets equal weights on all keys, 1/3 each for three keys. What does it
# get in float16?
#
# - a) NaN.
# - b) Equal weights, as in float32.
# - c) Zeros.
# - d) Nothing: torch raises an error, since $-10^9$ does not fit into float16.

# %% answer="answer_half"
### BEGIN SOLUTION
answer_half = "a"
### END SOLUTION

# %% check="answer_half" points=1
check_answer("answer_half", answer_half)

# %% tags=["demonstration"]
three_scores = [0.5, 1.0, 2.0]
types = (torch.float64, torch.float32, torch.float16)


def empty_row(dtype, minus, way):
    """Weights of a row of three scores in which every key is forbidden."""
    scores = torch.tensor(three_scores, dtype=dtype)
    minus = torch.tensor(minus, dtype=torch.float64).to(dtype)
    hidden = minus.expand(3) if way == "put" else scores + minus
    if way == "added twice":
        hidden = hidden + minus
    return " ".join(f"{weight:.2f}" for weight in torch.softmax(hidden, dim=-1).tolist())


rows = [("-inf", "put"), ("-1e9", "put"), ("-1e9", "added")]
rows += [("lowest", "put"), ("lowest", "added twice")]
print(f"{'an empty row gets':24}" + "".join(f"{str(d)[6:]:>17}" for d in types))
for name, way in rows:
    cells = [
        empty_row(d, torch.finfo(d).min if name == "lowest" else float(name), way) for d in types
    ]
    print(f"{name:11}{way:13}" + "".join(f"{cell:>17}" for cell in cells))
no_mask = torch.softmax(torch.tensor(three_scores), dim=-1).tolist()
ours = scaled_dot_product_attention(np.eye(3), np.eye(3), np.eye(3), np.zeros(3, dtype=bool))[1][0]
for name, weights in (("no mask at all", no_mask), ("lesson 3's function", ours)):
    print(f"{name:24}" + " ".join(f"{weight:.2f}" for weight in weights).rjust(17))
is_word = torch.tensor([1, 1, 0]).half()
print("(1 - is_word) * -1e9, all in float16:", ((1 - is_word) * torch.tensor(-1e9).half()).tolist())

# %% [markdown]
# Read it row by row.
#
# - $-\infty$ gives NaN everywhere: $0/0$. It is the honest answer, and it spreads through the whole
#   model. Lesson 3 catches the case and gives zeros.
# - $-10^9$ **put** into the scores hides the problem: the empty row gets equal weights on **all**
#   keys, padding and real words of the future alike. In float16 the number silently becomes
#   $-\infty$, and NaN is back.
# - $-10^9$ **added** to the scores in float64 is the strangest: all three scores are shifted by the
#   same amount, and softmax does not see a shift. The empty row attends as if there were **no
#   mask at all**. In float32 the spacing of numbers near $10^9$ is 64, so that the scores are lost
#   and the weights are equal.
# - The **lowest** number of a type (`torch.finfo(dtype).min`) is finite, and works as $-10^9$ does.
#   But **two** such masks added together, causal and padding, overflow to $-\infty$. That is one
#   more reason to combine masks as booleans, and to touch the scores once.
#
# - The popular `(1 - mask) * -1e9`, in the last line, needs no empty row: in float16 it computes
#   $0 \cdot (-\infty)$ = NaN for the keys that **may** be attended.
#
# (`masked_fill(mask, -1e9)` does raise an error for float16. `torch.where`, and `.half()` on a
# ready-made mask, do not.)
#
# ## 5. A detector for leaks
#
# Is a layer causal? Reading its code is not enough. A triangle can be right, and the future comes
# in by another path: a norm over time, an average over the positions, a convolution with
# padding on both sides. We want to **test** it, from outside, without reading it.
#
# The definition tells us how. Causal means: the output at position $i$ depends on the inputs up to
# $i$ only. So change the input at a **later** position, and compare:
#
# $$\text{if } X'_j = X_j \text{ for all } j \ne t, \quad \text{then} \quad
# \text{layer}(X')_i = \text{layer}(X)_i \ \text{ for all } i < t .$$
#
# The layer **leaks** if this fails for any $t$ and any $X$, $X'$. A test tries a few random ones.
# What it finds is a leak for certain. What it does not find may still leak on other inputs, for
# example behind a ReLU (negative numbers become 0; lesson 8) that gives 0 for all inputs tried.

# %% [markdown]
# ### Exercise 3: `leaks_future`
#
# Difficulty: ●●●●○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 25-30 minutes on it.
#
# Return `True` if the layer lets an earlier output depend on a later input, else `False`.
#
# - `layer`: a callable, `layer(X (n, d_model)) -> (n, d_out)`, NumPy float64 arrays both. It gives
#   the same output for the same input. It may refuse any other length, shape or dtype. It may
#   return a **view** of its input.
# - `n`, `d_model`: integers, at least 1. With `n = 1` there is no future: never a leak.
# - `rng`: an `np.random.Generator`. The global random state is neither used nor changed.
# - Returns a Python `bool`.
# - Changes below $10^{-10}$ are rounding noise, and no leak. The leaks that are graded change some
#   earlier output by more than $10^{-4}$, for inputs of order 1 and of both signs, also where the
#   outputs are near 1,000.
# - Graded on many more layers than the check below shows, correct and broken: attention with masks
#   that are nearly right, leaks through a norm, through the values, from one position to one other.


# %% answer="leaks_future"
def leaks_future(layer, n, d_model, rng):
    """Whether a layer lets an earlier output depend on a later input.

    Args:
        layer: callable, layer(X (n, d_model)) -> (n, d_out), NumPy float64 both. It may refuse
            any other shape or dtype, and it may return a view of its input.
        n: length of the texts, an integer of at least 1.
        d_model: features of a position.
        rng: np.random.Generator; the global random state is neither used nor changed.

    Returns:
        A Python bool. Changes below 1e-10 are rounding noise and no leak.
    """
    ### BEGIN SOLUTION
    X = rng.normal(size=(n, d_model))
    before = np.array(layer(X.copy()))
    for t in range(1, n):
        changed = X.copy()
        changed[t] = rng.normal(size=d_model)
        if np.abs(layer(changed) - before)[:t].max() > 1e-8:
            return True
    return False
    ### END SOLUTION


# %% check="leaks_future" points=4 means="You can test any layer for a look ahead without reading its code." card=["Return `True` if the layer lets an earlier output depend on a later input, else `False`", "Changes below $10^{-10}$ are rounding noise, and no leak", "Returns a Python `bool`", "The global random state is neither used nor changed"]
@probe
def verdicts(seed):
    count, rng = np.arange(1, 7)[:, None], np.random.default_rng(seed)
    layers = {
        "itself": lambda X: 2 * X,
        "the one before": lambda X: np.concatenate([0 * X[:1], X[:-1]]),
        "the mean so far": lambda X: np.tri(6) @ X / count,
        "the sum so far, with noise": lambda X: X.sum(0) - (X.sum(0) - X.cumsum(0)),
        "only the last speaks": lambda X: X * (count == 6),
        "the mean of all": lambda X: X + X.mean(axis=0),
        "the centred mean of all": lambda X: X + (X - X.mean(1, keepdims=True)).mean(0),
        "the next one": lambda X: np.concatenate([X[1:], X[-1:]]),
        "the last one": lambda X: X + X[-1],
        "0 sees 1": lambda X: X + (count == 1) * X[1],
        "4 sees 5": lambda X: X + (count == 5) * X[5],
        "a little of the last, beside 1000": lambda X: 1000 + X + 1e-3 * np.tanh(X[-1]),
    }
    return {name: leaks_future(layer, 6, 8, rng) for name, layer in layers.items()}

@probe
def random_states():
    before = np.random.get_state()[1:3], torch.get_rng_state()
    leaks_future(lambda X: X, 5, 6, np.random.default_rng(1))
    return before, (np.random.get_state()[1:3], torch.get_rng_state())

causal = "itself", "the one before", "the mean so far", "the sum so far, with noise"
leaky = "the mean of all", "the centred mean of all", "the next one", "the last one", "0 sees 1"
leaky = (*leaky, "4 sees 5", "a little of the last, beside 1000")
expected = dict.fromkeys((*causal, "only the last speaks"), False) | dict.fromkeys(leaky, True)
found = verdicts(int(check_rng().integers(2**31)))
with check("twelve layers, named after what a position sees", points=3):
    message = "True: an EARLIER output changes when a LATER input changes. Others may change."
    assert_equal({k: bool(v) for k, v in found.items()}, expected, message, name="your verdicts")
with check("a Python bool", points=0.25, side=True):
    kinds = sorted({str(type(one)) for one in found.values()})
    assert_equal(kinds, ["<class 'bool'>"], "bool(...) makes one of NumPy's.", name="the types")
with check("the global random state", points=0.75, side=True):
    before, after = random_states()
    assert_equal(after, before, "It was changed. Draw with rng's own methods.", name="the states")
checks_passed("leaks_future")


# %% check="leaks_future_attention" points=3 card="attention with masks that are nearly right, leaks through a norm, through the values, from one position to one other"
# Hidden checks of leaks_future: attention layers, correct and subtly broken.
### BEGIN HIDDEN TESTS
@probe
def verdicts(n, d_model, seed):
    draw = np.random.default_rng(seed)
    W_q, W_k, W_v = draw.normal(size=(3, d_model, d_model)) / math.sqrt(d_model)
    W_v = W_v[:, : d_model - 1]  # d_out differs from d_model

    def attend(X, mask, low=-np.inf, axis=-1, after=lambda weights: weights):
        scores = np.where(mask, (X @ W_q) @ (X @ W_k).T / math.sqrt(d_model), low)
        powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return after(powers / powers.sum(axis=axis, keepdims=True)) @ (X @ W_v)

    past, every = np.tri(n) > 0, np.ones((n, n)) > 0
    others = (np.tri(n, k=-1) > 0) | (np.arange(n) == 0)
    layers = {
        "causal": lambda X: attend(X, past),
        "causal, -1e9": lambda X: attend(X, past, -1e9),
        "causal, after the softmax with new sums": lambda X: attend(
            X, every, after=lambda w: w * past / (w * past).sum(axis=-1, keepdims=True)
        ),
        "causal, without the word itself": lambda X: attend(X, others),
        "causal twice": lambda X: attend(np.pad(attend(X, past), ((0, 0), (0, 1))), past),
        "no mask": lambda X: attend(X, every),
        "off-by-one triangle": lambda X: attend(X, np.tri(n, k=1) > 0),
        "triangle on its head": lambda X: attend(X, past.T),
        "mask after the softmax": lambda X: attend(X, every, after=lambda w: w * past),
        "softmax over the queries": lambda X: attend(X, past, axis=0),
        "value path": lambda X: attend(X, past) - (X @ W_v).mean(axis=0),
        "0 instead of -inf": lambda X: attend(X, past, 0.0),
        "mask for one head of two": lambda X: np.hstack([attend(X, past), attend(X, every)]),
    }
    rng = np.random.default_rng(seed + 1)
    return {name: leaks_future(layer, n, d_model, rng) for name, layer in layers.items()}

found = verdicts(6, 8, int(check_rng().integers(2**31)))
said = {name: bool(one) for name, one in found.items()}
causal = "causal", "causal, -1e9", "causal, after the softmax with new sums"
causal = (*causal, "causal, without the word itself", "causal twice")
leaky = "no mask", "off-by-one triangle", "triangle on its head", "mask after the softmax"
leaky = (*leaky, "softmax over the queries", "value path", "0 instead of -inf")
leaky = (*leaky, "mask for one head of two")
expected = dict.fromkeys(causal, False) | dict.fromkeys(leaky, True)
message = "Attention layers: those whose name begins with 'causal' do not leak, the others do."
assert_equal(said, expected, message, name="your verdicts")
### END HIDDEN TESTS


# %% check="leaks_future_statistics" points=2 card=["leaks through a norm", "for inputs of order 1 and of both signs"]
# Hidden checks of leaks_future: leaks through a norm, and leaks that a weak change cannot see.
### BEGIN HIDDEN TESTS
@probe
def verdicts(n, d_model, seed):
    def norm(X, axis=-1):
        variance = X.var(axis=axis, keepdims=True)
        return (X - X.mean(axis=axis, keepdims=True)) / np.sqrt(variance + 1e-5)

    def direction(X):  # of each position, whatever its size
        return X / np.maximum(np.linalg.norm(X, axis=-1, keepdims=True), 1e-9)

    def following(X):
        return np.concatenate([X[1:], X[-1:]])

    layers = {
        "layer norm": norm,
        "layer norm, then the mean so far": lambda X: np.cumsum(norm(X), axis=0) / n,
        "norm over time": lambda X: norm(X, 0),
        "norm over the whole text": lambda X: norm(X, (0, 1)),
        "layer norm, then the mean of the whole text": lambda X: X + norm(X).mean(axis=0),
        "directions, then the mean of the whole text": lambda X: X + direction(X).mean(axis=0),
        "the sum of the whole text": lambda X: X - X.sum(axis=0),
        "the difference of the next two": lambda X: X + following(X) - following(following(X)),
        "a product with the next position": lambda X: X * following(X),
        "the sum of all negative features": lambda X: X + np.minimum(X, 0).sum(axis=0),
        "the sum of all positive features": lambda X: X + np.maximum(X, 0).sum(axis=0),
    }
    rng = np.random.default_rng(seed)
    return {name: leaks_future(layer, n, d_model, rng) for name, layer in layers.items()}

found = verdicts(6, 9, int(check_rng().integers(2**31)))
said = {name: bool(one) for name, one in found.items()}
causal = "layer norm", "layer norm, then the mean so far"
leaky = "norm over time", "norm over the whole text", "layer norm, then the mean of the whole text"
leaky = (*leaky, "directions, then the mean of the whole text", "the sum of the whole text")
leaky = (*leaky, "the difference of the next two", "a product with the next position")
leaky = (*leaky, "the sum of all negative features", "the sum of all positive features")
expected = dict.fromkeys(causal, False) | dict.fromkeys(leaky, True)
message = (
    "Layers with a norm, a mean, a sum, a difference or a product: 'layer norm' and 'layer norm, "
    "then the mean so far' do not leak. "
    "Check first: does the layer cancel a part of your change, and have your inputs both signs?"
)
assert_equal(said, expected, message, name="your verdicts")
### END HIDDEN TESTS


# %% check="leaks_future_one_pair" points=3 card="from one position to one other"
# Hidden checks of leaks_future: one position sees one other, for every pair of positions.
### BEGIN HIDDEN TESTS
@probe
def verdicts(n, d_model, seed, features):
    def one_sees_another(i, j):
        def layer(X):
            Y = X.copy()
            Y[i] = 0.0
            Y[i, features] = X[j, features]
            return Y

        return layer

    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(n)]
    return {
        f"{i} sees {j}": leaks_future(one_sees_another(i, j), n, d_model, rng) for i, j in pairs
    }

seed = int(check_rng().integers(2**31))

def compare(n, d_model, features):
    found = verdicts(n, d_model, seed, features)
    said = {name: bool(one) for name, one in found.items()}
    expected = {f"{i} sees {j}": j > i for i in range(n) for j in range(n)}
    message = (
        f"One position reads one other (of {d_model} features {features}). Check first: is every "
        "later position changed, in all its features, and every earlier output compared?"
    )
    assert_equal(said, expected, message, name="your verdicts")

with check("all features", points=2):
    compare(5, 4, [0, 1, 2, 3])
with check("the first features, or the last", points=1):
    compare(4, 6, [0])
    compare(4, 6, [3, 4, 5])
    compare(4, 6, [5])
checks_passed("leaks_future")
### END HIDDEN TESTS


# %% check="leaks_future_tolerance" points=2 card=["Changes below $10^{-10}$ are rounding noise, and no leak", "The leaks that are graded change some earlier output by more than $10^{-4}$", "also where the outputs are near 1,000"]
# Hidden checks of leaks_future: small leaks, and rounding noise.
### BEGIN HIDDEN TESTS
@probe
def verdicts(n, d_model, seed):
    def later(X):  # for each position the sum of all later ones, squashed
        return np.tanh(X.sum(axis=0) - np.cumsum(X, axis=0))

    def so_far_by_subtraction(X):  # right up to rounding: total minus what comes later
        after = np.concatenate([np.cumsum(X[::-1], axis=0)[::-1][1:], np.zeros((1, d_model))])
        return X.sum(axis=0) - after

    def two_numbers(X):  # two features of the last position but one read the last
        Y = X.copy()
        Y[-2, :2] += 1e-3 * np.tanh(X[-1, :2])
        return Y

    layers = {
        "a leak of a few 1e-3": lambda X: X + 4e-3 * later(X),
        "a leak of a few 1e-4": lambda X: X + 4e-4 * later(X),
        "a leak of a few 1e-4 beside 1000": lambda X: 1000 + X + 4e-4 * later(X),
        "a leak of 1e-3 in two numbers": two_numbers,
        "rounding noise of 1e-15": so_far_by_subtraction,
        "noise below 1e-10": lambda X: X + 3e-11 * later(X),
        "each position by itself, beside 1000": lambda X: 1000 + X,
    }
    rng = np.random.default_rng(seed)
    return {name: leaks_future(layer, n, d_model, rng) for name, layer in layers.items()}

found = verdicts(9, 70, int(check_rng().integers(2**31)))
said = {name: bool(one) for name, one in found.items()}
leaky = "a leak of a few 1e-3", "a leak of a few 1e-4", "a leak of a few 1e-4 beside 1000"
noise = "rounding noise of 1e-15", "noise below 1e-10", "each position by itself, beside 1000"
expected = dict.fromkeys((*leaky, "a leak of 1e-3 in two numbers"), True)
expected |= dict.fromkeys(noise, False)
message = (
    "Small leaks, and noise. Check first: is your tolerance between 1e-10 and 1e-4, whatever the "
    "outputs are, and what you compare with it the largest difference, no mean and no square?"
)
assert_equal(said, expected, message, name="your verdicts")
### END HIDDEN TESTS


# %% check="leaks_future_contract" points=2 card=["It may refuse any other length, shape or dtype. It may return a **view** of its input", "integers, at least 1. With `n = 1` there is no future: never a leak", "Returns a Python `bool`"]
# Hidden checks of leaks_future: strict layers, views, one position, one feature.
### BEGIN HIDDEN TESTS
@probe
def strict(n, d_model, seed):
    def taken(X):
        if not isinstance(X, np.ndarray) or X.shape != (n, d_model) or X.dtype != np.float64:
            raise TypeError("this layer takes NumPy float64 of shape (n, d_model) and nothing else")
        return X

    layers = [lambda X: taken(X) * 3, lambda X: taken(X) - X.mean(axis=0)]
    layers += [lambda X: taken(X).cumsum(axis=0).sum(axis=-1, keepdims=True)]
    rng = np.random.default_rng(seed)
    return [leaks_future(layer, n, d_model, rng) for layer in layers]

@probe
def views(seed):
    layers = [lambda X: X, lambda X: X[:, ::-1], lambda X: X[::-1], lambda X: np.flip(X)[:, 1:]]
    rng = np.random.default_rng(seed)
    return [leaks_future(layer, 5, 8, rng) for layer in layers]

@probe
def smallest(n, d_model, seed):
    rng = np.random.default_rng(seed)
    layers = [lambda X: np.cumsum(X, axis=0), lambda X: np.cumsum(X[::-1], axis=0)[::-1]]
    return [leaks_future(layer, n, d_model, rng) for layer in layers]

seed = int(check_rng().integers(2**31))

def compare(found, expected, message):
    assert_equal([bool(one) for one in found], expected, message, name="your verdicts")

with check("strict layers", points=0.5):
    message = "Layers that take float64 (6, 7) alone; the second, minus the mean of the text, leaks."
    compare(strict(6, 7, seed), [False, True, False], message)
with check("views", points=0.5):
    message = "Layers that return a view of their input; two leak. Did you write into what you keep?"
    compare(views(seed), [False, False, True, True], message)
with check("two positions; one feature", points=0.5):
    message = "Sums of what came before (False), and of what comes later (True)."
    compare(smallest(2, 6, seed), [False, True], f"n = 2, six features. {message}")
    compare(smallest(5, 1, seed), [False, True], f"n = 5, one feature. {message}")
with check("one position", points=0.25, side=True):
    message = "A text of one position has no future, whatever the layer does."
    compare(smallest(1, 5, seed), [False, False], message)
with check("Python's bool", points=0.25, side=True):
    kinds = sorted({str(type(one)) for one in smallest(5, 6, seed)})
    assert_equal(kinds, ["<class 'bool'>"], "Each verdict is a Python bool.", name="the types")
checks_passed("leaks_future")
### END HIDDEN TESTS


# %% [markdown]
# <details><summary>Hint</summary>
#
# One random text, one output to compare with. Then one round for each position from 1 on: a copy
# of the text in which only that position is new. Which rows of the two outputs must agree? What
# must be a copy, so that a layer that returns a view of its input cannot fool you?
#
# How you change a position matters. Think of a layer that first takes away the mean of the
# features, or divides by their size: does your change survive it? And choose a tolerance between
# the two numbers of the card.
#
# </details>
#
# Now put real layers to the test. Two kinds are not attention. A **norm** takes away a mean and
# divides by a size. *Layer norm* takes both over the features of one position. *Batch norm* takes
# both for each feature: while training, over all positions of all texts of the batch; in evaluation
# mode it uses averages that it kept from training. A **convolution** of width 3 computes each output from a position
# and its two neighbours; `padding=1` adds one position of zeros at each end.
#
# **Predict, then run:** which of these nine leak?

# %% tags=["demonstration", "guess"]
guess_leaks = {2, 4, 7}  # write their numbers

# %%
d_model, rng = 8, np.random.default_rng(1)
one_head = SelfAttention(d_model, d_model, d_model, rng)
attend, W_v = one_head.forward, one_head.W_v  # attend(X, mask) gives the output and the weights


def mask_after_softmax(X):
    return (attend(X, None)[1] * causal_mask(len(X))) @ (X @ W_v)


def mask_after_softmax_new_sums(X):
    weights = attend(X, None)[1] * causal_mask(len(X))
    return weights / weights.sum(axis=-1, keepdims=True) @ (X @ W_v)


def in_torch(module):
    """A module for (batch, features, n), as a layer for NumPy (n, features)."""
    return lambda X: module.double()(torch.tensor(X.T)[None])[0].T.detach().numpy()


torch.manual_seed(0)
candidates = {
    "1 causal attention": lambda X: attend(X, causal_mask(len(X)))[0],
    "2 mask after the softmax": mask_after_softmax,
    "3 the same, rows divided by their sums": mask_after_softmax_new_sums,
    "4 causal attention, transposed mask": lambda X: attend(X, causal_mask(len(X)).T)[0],
    "5 layer norm (over the features)": lambda X: F.layer_norm(torch.tensor(X), (8,)).numpy(),
    "6 batch norm, training mode": in_torch(nn.BatchNorm1d(8)),
    "7 convolution, 3 wide, padding=1": in_torch(nn.Conv1d(8, 8, 3, padding=1)),
    "8 causal attention of centred values": lambda X: (
        attend(X, causal_mask(len(X)))[1] @ (X - X.mean(axis=0))
    ),
    "9 batch norm, evaluation mode": in_torch(nn.BatchNorm1d(8).eval()),
}

# %% tags=["demonstration"]
verdicts = {
    name: leaks_future(layer, 10, d_model, np.random.default_rng(0))
    for name, layer in candidates.items()
}
for name, verdict in verdicts.items():
    print(f"{name:42}{'LEAKS' if verdict else 'causal'}")
assert [name[0] for name, verdict in verdicts.items() if verdict] == ["2", "4", "6", "7", "8"]

# %% tags=["demonstration"]
came_out = {int(name[0]) for name, verdict in verdicts.items() if verdict}
reply("guess_leaks", guess_leaks, came_out)

# %% tags=["demonstration"]
old, new = np.random.default_rng(2).normal(size=(2, 10, d_model))
figure, panels = plt.subplots(1, 4, figsize=(8.1, 2.7), layout="constrained", sharey=True)
for axes, number in zip(panels, "1276"):
    [name] = [name for name in candidates if name[0] == number]
    mixed = np.where(np.eye(10)[:, :, None] == 1, new, old)  # text t has a new input at place t
    moved = np.array([np.abs(candidates[name](text) - candidates[name](old)).max(-1) > 1e-8 for text in mixed])
    axes.imshow(moved * (1 + np.tri(10, k=-1)), vmin=0, vmax=3, cmap="Blues")
    axes.set(xlabel="output at place", xticks=[0, 9])
    axes.set_title(name.split(",")[0], fontsize=10)
    assert (moved & np.tri(10, k=-1, dtype=bool)).any() == verdicts[name]
panels[0].set(ylabel="new input at place", yticks=[0, 9])
panels[2].annotate("leak: an earlier\noutput moves", (3, 4), (-0.3, 8.7), size=8, arrowprops={"arrowstyle": "->"})
show(
    figure,
    "What your detector goes by. Blue: this output moves with that input. Below the diagonal (strong blue) the "
    "output is earlier than the input: a leak.",
    "Four squares of ten inputs by ten outputs. Causal attention: on and above the diagonal only. Mask "
    "after the softmax and batch norm: all cells. Convolution: three diagonals, one of them below.",
)

# %% [markdown]
# - Layer 2 sets the forbidden weights to 0, but they have already been in the sum of the softmax:
#   how much is left for the past depends on the future. Layer 3 divides that sum away again, and is
#   the same as layer 1. (Only on paper: if the future has a score of 1000, all past weights are
#   rounded to 0, and $0/0$ is NaN. Mask before the softmax.)
# - Layers 6 and 8 have a perfect triangle, or no attention at all. The future comes in through a
#   **mean over the positions**. Layer norm averages over the features of one position: no leak.
#   Batch norm leaks in training mode only (9 does not): there the model learns to read the future,
#   and in evaluation it is gone.
# - A convolution of width 3 with `padding=1` sees one position ahead. With two zeros on the left
#   and none on the right it would be causal.
#
# Is a leak of $10^{-3}$ harmless? What training makes of one is not measured here. But gradients
# follow every path from the answer to the loss, also a thin one: no size is safe without a test.

# %% [markdown]
# ## 6. A small language model, with and without the mask
#
# ### The text
#
# Our language has 160 sentences: an adjective or none, a noun in the singular or plural, and
# what it is doing, or "tired". All are equally likely. A text is one sentence after the other, each
# begins on a new line. The model reads **characters**: 20 letters and signs, and the line break.

# %%
adjectives = ["black ", "white ", "old ", "small ", ""]
nouns = ["cat", "dog", "bird", "animal"]
verbs = ["sleeping", "running", "singing", "tired"]
sentences = [
    f"the {adjective}{noun}{ending} {verb}"
    for adjective in adjectives
    for noun in nouns
    for ending in (" is", "s are")  # singular or plural: the verb must agree with the noun
    for verb in verbs
]
characters = sorted(set("\n".join(sentences)))
number_of = {character: i for i, character in enumerate(characters)}
print(len(sentences), "sentences,", len(characters), "characters; the beginning of a text:")

n = 48  # characters that the model reads at once


def draw_texts(rng, batch):
    """Texts of n + 1 characters that begin with a line break, as numbers: (batch, n + 1)."""
    texts = ["\n" + "\n".join(rng.choice(sentences, size=4)) for _ in range(batch)]
    return torch.tensor([[number_of[c] for c in text[: n + 1]] for text in texts])


def as_text(ids):
    return "".join(characters[i] for i in ids)


print(as_text(draw_texts(np.random.default_rng(0), 1)[0].tolist()))

# %% [markdown]
# ### What is the best that an honest model can do?
#
# The **loss** is the average of $-\ln p$, where $p$ is the probability that the model gave to the
# character that came next:
#
# $$\text{loss} = -\frac1n \sum_{t=1}^{n} \ln p(x_t \mid x_0, \ldots, x_{t-1}) .$$
#
# For most texts nobody knows the best value. For ours we do, because we made it. The
# probabilities of a sentence's characters multiply to the probability of the sentence, $1/160$. So
# a sentence costs at least $\ln 160 = 5.08$ on average, however clever the model is. It costs
# this much at a few places: after "the black c" the rest of "cat" is certain, but after "the
# black " four nouns are equally likely.
#
# With the line break a sentence has 25 characters on average: about 0.20 a character. Our texts are
# cut off after 48 characters. To be exact we count: how many sentences begin with "the black ", and
# how many of those go on with "c"? That fraction is the probability of the next character, and
# nobody can know a better one.

# %%
beginnings = {}  # how many of the sentences begin so
for one in sentences:
    line = one + "\n"
    for k in range(len(line) + 1):
        beginnings[line[:k]] = beginnings.get(line[:k], 0) + 1


def smallest_losses(text):
    """-ln of the true probability of each character after the first: (n,)."""
    losses, so_far = [], ""
    for character in text[1:]:
        losses.append(math.log(beginnings[so_far] / beginnings[so_far + character]))
        so_far = "" if character == "\n" else so_far + character
    return np.array(losses)


fresh_texts = draw_texts(np.random.default_rng(999), 200)  # (200, n + 1): for testing
floors = np.mean([smallest_losses(as_text(ids)) for ids in fresh_texts.tolist()], axis=0)  # (n,)
floor = floors.mean()
print(f"the floor: {floor:.3f} a character")

# %% [markdown]
# Call it the **floor**; its name in information theory is the *entropy* of the text. (A loss on 200
# texts is an estimate, and may lie a hair below it.) A model **clearly** below the floor does not
# understand more. It **cheats**: it has information that it cannot have.
#
# ### $n$ tasks in one pass
#
# A text of $n + 1$ characters holds $n$ tasks: guess the 2nd from the 1st, the 3rd from the first
# two, and so on. The inputs are the characters 0 to $n - 1$. The targets are the same text, **one
# step further**: 1 to $n$.
#
# ```
# input     t  h  e     c  a  t
# target    h  e     c  a  t
# ```
#
# The output at position $i$ is the guess for the character at position $i + 1$. The causal mask
# makes all these guesses honest **at the same time**: position $i$ computes exactly what it would
# compute if the text ended there. Without the mask an honest training would need $n$ passes, one
# for each beginning of the text.
#
# The model has two layers of your `MultiHeadAttention`. A vector for each position tells it the
# order (lesson 7). Norm and feed-forward are parts that work on each position alone (lesson 8).


# %% tags=["demonstration"]
class CharacterModel(nn.Module):
    """Two layers of attention; with causal=True it uses your causal_mask."""

    def __init__(self, causal, d_model=64, num_heads=4, layers=2):
        super().__init__()
        self.causal = causal
        self.character = nn.Embedding(len(characters), d_model)
        self.position = nn.Embedding(n, d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(layers))
        self.attentions = nn.ModuleList(
            MultiHeadAttention(d_model, num_heads) for _ in range(layers)
        )
        self.feed_forwards = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(d_model), nn.Linear(d_model, 128), nn.ReLU(), nn.Linear(128, d_model)
            )
            for _ in range(layers)
        )
        self.to_logits = nn.Linear(d_model, len(characters))  # scores, before the softmax

    def read(self, x):
        """(..., n, d_model) -> the same shape, and the weights of each layer."""
        mask = torch.tensor(causal_mask(x.shape[-2]).copy()) if self.causal else None  # THE line
        maps = []
        for norm, attention, feed_forward in zip(self.norms, self.attentions, self.feed_forwards):
            seen, weights = attention(norm(x), mask=mask)
            x = x + seen
            x = x + feed_forward(x)
            maps.append(weights)  # (..., num_heads, n, n)
        return x, maps

    def embed(self, ids):
        return self.character(ids) + self.position(torch.arange(ids.shape[-1]))

    def forward(self, ids):
        return self.to_logits(self.read(self.embed(ids))[0])  # (batch, n) -> (batch, n, characters)


# %% [markdown]
# First the claim: one pass gives the same $n$ guesses as $n$ passes. **Predict, then run:** does it
# hold for a model that is not trained? And without the mask?

# %% tags=["demonstration"]
one_text = draw_texts(np.random.default_rng(1), 1)[:, :-1]  # (1, n)
for with_mask in (True, False):
    torch.manual_seed(0)
    model = CharacterModel(causal=with_mask)
    with torch.no_grad():
        at_once = model(one_text)[0]  # (n, characters): one pass
        one_by_one = torch.stack([model(one_text[:, : i + 1])[0, -1] for i in range(n)])  # n passes
    difference = (at_once - one_by_one).abs().max().item()
    print(
        f"{'with' if with_mask else 'without'} the mask: largest difference below 1e-4: "
        f"{difference < 1e-4}"
    )
    assert difference < 1e-4 if with_mask else difference > 0.1

# %% [markdown]
# ### Training
#
# The two models have the same start, see the same texts in the same order, and differ in one line.
# After training both are tested on fresh texts. Each training of this lesson takes 10 to 20 s.


# %% tags=["demonstration"]
def next_character(texts):
    """Inputs and targets (batch, n): the target is the character that comes next."""
    return texts[:, :-1], texts[:, 1:]


def train(model, label, tasks=next_character, steps=300, seed=0):
    rng = np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in progress(steps, label):
        inputs, targets = tasks(draw_texts(rng, 32))  # (32, n) each
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def losses_by_position(model):
    """Loss on fresh texts for each position: (n,)."""
    inputs, targets = next_character(fresh_texts)
    logits = model(inputs).transpose(1, 2)  # (batch, characters, n)
    return F.cross_entropy(logits, targets, reduction="none").mean(dim=0).numpy()


# %% tags=["demonstration", "nbval-ignore-output"] seconds=10
# The losses depend a little on the machine: training rounds differently elsewhere.
model_seed = 0
models, curves = {}, {}
torch.manual_seed(model_seed)
models["with the mask"] = CharacterModel(causal=True)
curves["with the mask"] = train(models["with the mask"], "with the mask", seed=model_seed)

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# As above.
torch.manual_seed(model_seed)
models["without the mask"] = CharacterModel(causal=False)
curves["without the mask"] = train(models["without the mask"], "without the mask", seed=model_seed)

# %% tags=["demonstration", "nbval-ignore-output"]
# As above.
by_position = {name: losses_by_position(model) for name, model in models.items()}
for name, losses in by_position.items():
    print(
        f"{name:17} loss in training {np.mean(curves[name][-20:]):.3f}, "
        f"on fresh texts {losses.mean():.3f}   (floor {floor:.3f})"
    )
honest, cheating = by_position["with the mask"], by_position["without the mask"]
assert floor - 0.005 < honest.mean() < floor + 0.05
assert np.abs(honest - floors).max() < 0.3
assert cheating.mean() < 0.03

# %% [markdown]
# The model with the mask comes near the floor and stays above it. The one without is far below: it
# cheats, and **fresh texts do not reveal it**. In a fresh text the answer stands at the same place.
# A validation loss finds a model that has learned its texts by heart; it does not find one that
# reads the answer. (Here it could find learning by heart only in part: about a third of the fresh
# texts were drawn in training too.)
#
# Is there a position that cannot cheat? **Predict, then run:** where in the text is the loss of the
# cheating model large?

# %% tags=["demonstration", "guess"]
guess_honest = "first"  # write "first", "middle", "last" or "nowhere"

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained on this machine: the curves differ a little elsewhere.
figure, (left, right) = plt.subplots(1, 2, figsize=(8.1, 3.5))
for name, colour in (("with the mask", "tab:blue"), ("without the mask", "tab:red")):
    left.semilogy(curves[name], color=colour)
    right.plot(by_position[name], ".-", color=colour)
left.axhline(floor, color="black", ls=":")
left.text(2, floor * 0.9, "floor of an\nhonest model", va="top")
left.text(180, 0.32, "with the mask", color="tab:blue")
left.text(10, 0.003, "without the mask", color="tab:red")
left.set(xlabel="training step", ylabel="loss (logarithmic)")
right.plot(floors, color="black", ls=":")
right.text(6, 1.7, "with the mask", color="tab:blue")
right.annotate(
    f"without: {cheating[-1]:.2f} here,\nnear 0 elsewhere",
    (n - 1, cheating[-1]),
    (n - 1, 1.1),
    color="tab:red",
    ha="right",
    arrowprops={"arrowstyle": "->", "color": "tab:red"},
)
right.set(xlabel="position", ylabel="loss on fresh texts")
figure.tight_layout()
assert cheating[:-1].max() < 0.1 and cheating[-1] > max(honest[-1], floors[-1] - 0.03)
assert cheating[-1] > n * cheating[:-1].mean() and honest.argmax() == 4
assert np.mean(curves["without the mask"][130:150]) < floor
print(
    f"without the mask: {cheating[:-1].mean():.4f} on average, at the last position "
    f"{cheating[-1]:.2f}; with the mask there: {honest[-1]:.2f}"
)
show(
    figure,
    "Figure 3. Left: without the mask the loss falls through the floor, which no honest model can pass. "
    "Right: only at the last position it has to guess, worse than the honest model, which has practised.",
    "Left, loss against training step on a logarithmic axis: with the mask it falls to the dotted "
    "floor near 0.21 and stays there; without, it crosses the floor before step 150 and ends "
    "near 0.005. Right, loss against position: with the mask the curve follows the dotted floor, "
    "with a peak of about 1.8 at position 4; without the mask it is 0 everywhere but at the "
    "last position, where it rises above the honest curve.",
)

# %% tags=["demonstration"]
worst = int(cheating.argmax())
came_out = "first" if worst == 0 else "last" if worst == n - 1 else "middle"
why = "There the answer stands outside the text, and nothing is left to copy."
reply("guess_honest", guess_honest, came_out, why)

# %% [markdown]
# ### Where does it read the answer?
#
# The text goes "the black ..." and then one of four nouns follows. We look at one guess: the first
# letter of the noun, asked right after "the black ". An honest model gives 1/4 to each of c, d, b
# and a. We show both models four texts that differ only in what comes **afterwards**.

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained on this machine: the numbers differ a little elsewhere.
beginning = "\nthe black "
letters = [noun[0] for noun in nouns]
columns = [number_of[letter] for letter in letters]
guesses = {}
for name, model in models.items():
    texts = [f"{beginning}{noun}s are singing" for noun in nouns]
    rows = []
    for text in texts:
        with torch.no_grad():
            logits = model(torch.tensor([[number_of[c] for c in text]]))[0, len(beginning) - 1]
        rows.append(torch.softmax(logits, dim=-1)[columns].numpy())
    guesses[name] = np.array(rows)  # (which noun follows, which letter is guessed)
figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.6))
for axes, (name, probabilities) in zip(panels, guesses.items()):
    draw_heatmap(
        axes,
        probabilities,
        nouns,
        letters,
        row_label="what comes afterwards",
        column_label="probability of the letter",
    )
    axes.set_title(name)
figure.tight_layout()
assert np.allclose(guesses["with the mask"], guesses["with the mask"][0], atol=1e-5)
assert np.abs(guesses["with the mask"] - 0.25).max() < 0.2
assert np.diag(guesses["without the mask"]).min() > 0.8
show(
    figure,
    "Figure 4. Left: with the mask the four rows are equal, whatever follows. Exact would be 1/4 for "
    f"each letter; the model gives {guesses['with the mask'].min():.2f} to "
    f"{guesses['with the mask'].max():.2f}. Right: without it the guess is whatever follows: "
    "that model copies.",
    "Two heat maps, four nouns that follow by four letters. With the mask all rows are the same, "
    "values between 0.1 and 0.45. Without the mask the diagonal is near 1 and the rest near 0.",
    "\n\n".join(
        f"{name}\n\n{text_table(p, nouns, letters, corner='follows')}"
        for name, p in guesses.items()
    ),
)

# %% [markdown]
# Now the attention maps of one sentence, from both trained models. The line break is written as ↵,
# the blank as ␣. Without the mask we pick the head with the most weight on the **next** character.
# With the mask there is no such head; we take the one with the most weight on the character
# **before**.

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained on this machine: the maps differ a little elsewhere.
sentence = "\nthe cat is tired"
labels = [{"\n": "↵", " ": "␣"}.get(c, c) for c in sentence]
ids = torch.tensor([[number_of[c] for c in sentence]])
picked = {}
for name, offset in (("without the mask", 1), ("with the mask", -1)):
    with torch.no_grad():
        heads = torch.cat(models[name].read(models[name].embed(ids))[1], dim=1)[0]  # (8, n, n)
    share = heads.diagonal(offset, -2, -1).mean(-1)  # mean weight on that neighbour, each head
    picked[name] = heads[share.argmax()].numpy()
    print(
        f"{name:17} L{share.argmax() // 4}H{share.argmax() % 4}: "
        f"{share.max():.2f} on the character {'after' if offset == 1 else 'before'}"
    )
chosen = picked
figure, panels = plt.subplots(1, 2, figsize=(8.1, 4.3))
for axes, (name, weights) in zip(panels, chosen.items()):
    draw_heatmap(axes, weights, labels, labels)
    axes.set_title(f"trained {name}")
panels[0].annotate("␣ before 'cat' looks at 'c'", (5.9, 4.4), (7, 1.5), arrowprops={"arrowstyle": "->"})
panels[1].text(6, 3, "the future: empty")
figure.tight_layout()
bidirectional, honest_map = chosen["without the mask"], chosen["with the mask"]
assert np.triu(honest_map, k=1).max() == 0
assert np.diagonal(bidirectional, 1).mean() > 0.2  # evenly spread it would be 0.06
assert bidirectional[4, 5] > 0.4
print("weight of the blank before 'cat' on 'c':", bidirectional[4, 5].round(2))
show(
    figure,
    "Figure 5. Two trained maps. Left, no mask: strong cells one place right of the diagonal, which is the "
    "answer. Right, causal. These two heads were picked.",
    "Two heat maps, 17 characters by 17. Left: several rows have most of their weight one place "
    "right of the diagonal, such as the blank before 'cat', on 'c'. Right: the upper right "
    "triangle is empty, the weight lies on the diagonal and left of it.",
    "\n\n".join(f"trained {name}\n\n{text_table(w, labels, labels)}" for name, w in chosen.items()),
)

# %% [markdown]
# Your detector can be put to a trained model as well. The layer is everything between the vectors
# of the characters and the last vectors.


# %% tags=["demonstration"]
def as_layer(model):
    """The model's layers, for NumPy float64 (n, d_model)."""
    copy = CharacterModel(model.causal).double()
    copy.load_state_dict(model.state_dict())
    return lambda X: copy.read(torch.tensor(X))[0].detach().numpy()


for name, model in models.items():
    verdict = leaks_future(as_layer(model), 12, 64, np.random.default_rng(0))
    print(f"{name:17}", "LEAKS" if verdict else "causal")
    assert verdict == (name == "without the mask")

# %% [markdown]
# ## 7. It speaks, one character at a time
#
# To write, the model guesses a character, puts it at the end, and reads the whole text again. That
# is called **autoregressive** generation. Only the guess at the **last** position is used.


# %% tags=["demonstration"]
@torch.no_grad()
def write(model, count, seed=0):
    """Let a model write texts of n characters; it begins with a line break."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.full((count, 1), number_of["\n"])
    while ids.shape[1] < n:
        probabilities = torch.softmax(model(ids)[:, -1], dim=-1)  # (count, characters)
        drawn = torch.multinomial(probabilities, 1, generator=generator)
        ids = torch.cat([ids, drawn], dim=1)
    return [as_text(row)[1:] for row in ids.tolist()]


def share_of_sentences(texts):
    """Finished lines that are sentences of the language, in per cent, of all finished lines."""
    lines = [line for text in texts for line in text.split("\n")[:-1]]
    return 100 * np.mean([line in sentences for line in lines]) if lines else 0.0


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained on this machine: the texts differ elsewhere.
written = {name: write(model, 40, seed=model_seed) for name, model in models.items()}
for name, texts in written.items():
    finished = sum(text.count("\n") for text in texts)
    print(
        f"--- {name}: loss {by_position[name].mean():.3f}, "
        f"{share_of_sentences(texts):.0f} % of its {finished} finished lines are sentences"
    )
    print("\n\n".join(texts[:2]), "\n")
assert share_of_sentences(written["with the mask"]) > 70
assert share_of_sentences(written["without the mask"]) < 10

# %% [markdown]
# Such lines stood in section 1, of models A and B. A line that counts as a sentence has the
# agreement right as well: *is* after one animal, *are* after several. (The model has read all 160
# sentences in training, so this is no proof of invention. It is a proof that what it learned can be
# used.)
#
# ### What is computed again, each time
#
# To write the 30th character the model reads 29 characters. To write the 31st it reads 30, and 29
# of them were there before. Is that work needed? **Predict, then run:** how much does the vector of
# each old position change when one more character is read, in the model with the mask, and in the
# one without?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained on this machine: the sizes differ a little elsewhere.
changes = {}
for name, model in models.items():
    moved = np.full((len(sentence) - 1, len(sentence) - 1), np.nan)  # (step, old position)
    with torch.no_grad():
        for step in range(1, len(sentence)):
            old = model.read(model.embed(ids[:, :step]))[0][0]  # (step, d_model)
            new = model.read(model.embed(ids[:, : step + 1]))[0][0, :step]
            moved[step - 1, :step] = ((new - old).norm(dim=-1) / old.norm(dim=-1)).numpy()
    changes[name] = moved
largest = np.nanmax(list(changes.values()))
figure, panels = plt.subplots(1, 2, figsize=(8.1, 4.0))
for axes, (name, moved) in zip(panels, changes.items()):
    draw_heatmap(
        axes,
        moved,
        labels[1:],
        labels[:-1],
        row_label="character that is read next",
        column_label="old position",
        vmax=largest,
        colour_bar=True,
    )
    axes.set_title(name)
figure.tight_layout()
there = ~np.isnan(changes["with the mask"])
assert changes["with the mask"][there].max() < 1e-4
assert changes["without the mask"][there].mean() > 0.05
computed, needed = sum(range(1, n)), n - 1
print(
    f"to write {n - 1} characters: 1 + 2 + ... + {n - 1} = {computed} vectors in each layer, "
    f"{needed} are new"
)
print(
    f"mean change of an old vector: with the mask {changes['with the mask'][there].mean():.3f}, "
    f"without {changes['without the mask'][there].mean():.3f}"
)
show(
    figure,
    "Figure 6. Relative change of each old vector when one more character is read. With the mask: none, the "
    "work is done again for nothing. Without it nothing could be kept.",
    "Two triangles of cells, steps by old positions. With the mask all cells are 0. Without the "
    "mask most cells are clearly above 0, often the newest positions the most.",
    "\n\n".join(
        f"{name}\n\n{text_table(moved, labels[1:], labels[:-1], corner='next')}".replace("nan", "")
        for name, moved in changes.items()
    ),
)

# %% [markdown]
# With the causal mask the past is **finished**: its keys and values in each layer never change.
# So they can be kept. That is the **KV cache**, a topic of lesson 11: the new character computes its own
# query, key and value, and attends to the kept keys and values. For $n$ characters the positions to be
# computed in each layer fall from $1 + 2 + \cdots + n$ to $n$. The scores do not fall as far: each new
# query still meets every kept key, so it is $1 + 2 + \cdots + n$ of them instead of
# $1 + 4 + 9 + \cdots + n^2$. The mask that makes training honest is also the mask
# that makes writing cheap.
#
# A trap on the way. torch's own function draws the triangle for you: `is_causal=True`. With a cache
# there is **one** new query and $n$ keys. **Predict, then run:** which keys does that query see?
# The values are one-hot, so that the output shows the weights.

# %% tags=["demonstration"]
new_query = torch.zeros(1, 1, 1, 5)  # (batch, heads, n_q, d_k): all scores are 0
kept = torch.eye(5)[None, None]  # (batch, heads, n_k, d_k): five keys, and values
for is_causal in (True, False):
    weights = F.scaled_dot_product_attention(new_query, kept, kept, is_causal=is_causal)
    print(f"is_causal={is_causal}:", weights[0, 0, 0].numpy().round(2))
assert F.scaled_dot_product_attention(new_query, kept, kept, is_causal=True)[..., 0] == 1

# %% [markdown]
# The triangle begins in the upper left corner. It takes the only query for position 0, and shows it
# the first key alone. The query stands at the **last** position and may see all keys: the right
# mask is the last row of `causal_mask(5)`, which is no mask at all.
#
# | what | training | writing |
# |---|---|---|
# | the text | known | grows by one character each time |
# | passes for $n$ characters | 1 | $n$ |
# | positions computed in each layer | $n$ | $1 + 2 + \cdots + n$, with a cache $n$ |
# | scores computed in each head | $n^2$ | $1 + 4 + \cdots + n^2$, with a cache $1 + 2 + \cdots + n$ |
# | what the mask is for | no guess sees its answer | the past stays what it was in training |
#
# ### Short answer 3: `answer_parallel`
#
# A batch of 32 texts of 49 characters each: the first 48 are the inputs. Somebody computes the loss
# at the **last** of the 48 positions only, in each text. What is true?
#
# - a) The model learns from 32 · 48 = 1536 guesses in a pass, as before, with the mask or without
#   it.
# - b) It learns from 32 guesses in a pass, and would be honest without the mask too.
# - c) It learns from 32 guesses in a pass; without the mask it cheats, since the last position then
#   sees all others.
# - d) It learns from 48 guesses in a pass, one for each position, averaged over the texts.

# %% answer="answer_parallel"
### BEGIN SOLUTION
answer_parallel = "b"
### END SOLUTION

# %% check="answer_parallel" points=1
check_answer("answer_parallel", answer_parallel)

# %% [markdown]
# ## 8. Find the silent bug
#
# A friend trains the same model **with** the causal mask. The mask is right, no error is raised,
# and the loss is wonderful. The friend has written this (the cell is read-only):


# %% locked="given_friends_tasks" tags=["demonstration"]
def friends_tasks(texts):
    """Inputs and targets (batch, n): the target is the character next to each input."""
    inputs = texts[:, :-1]  # (batch, n)
    targets = torch.roll(inputs, 1, dims=-1)  # (batch, n)
    return inputs, targets


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained on this machine: the loss differs a little elsewhere.
torch.manual_seed(model_seed)
friends_model = CharacterModel(causal=True)
friends_curve = train(friends_model, "the friend's model", friends_tasks, 150, model_seed)
friends_texts = write(friends_model, 20, seed=model_seed)
verdict = leaks_future(as_layer(friends_model), 12, 64, np.random.default_rng(0))
print(f"loss in training {np.mean(friends_curve[-20:]):.3f} (floor {floor:.3f})")
print("the layers:", "LEAK" if verdict else "causal")
finished = sum(text.count("\n") for text in friends_texts)
share = share_of_sentences(friends_texts)
print(f"{share:.0f} % of its {finished} finished lines are sentences; it writes:")
print("\n".join(repr(text) for text in friends_texts[:3]))
assert np.mean(friends_curve[-20:]) < 0.12 and not verdict
assert share_of_sentences(friends_texts) < 10

# %% [markdown]
# ### Short answer 4: `answer_silent_bug`
#
# The loss is far below the floor, so somebody cheats. Your detector says that the layers are
# causal. What makes the loss so small?
#
# - a) `causal_mask` is one diagonal too large, and each character sees the next one.
# - b) `torch.roll` is a circle: one target of each text comes from its other end.
# - c) The targets are rolled in the wrong direction.
# - d) There are only 160 sentences, and the model knows them by heart.
#
# Try `friends_tasks` on one text. `as_text(row).replace("\n", "↵")` makes a row of numbers
# readable: print inputs and targets below each other.

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "c"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# ### Exercise 4: `mended_tasks`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 5-10 minutes on it.
#
# Copy `friends_tasks` and mend it. Then look at **every** target of a text, the last one too.
#
# - `texts`: a torch tensor of integers, (batch, n + 1), with $n$ at least 1.
# - Returns a pair, `inputs` and `targets`, both (batch, n): the inputs are all characters but the
#   last, and each target is the character that comes after its input in the text.


# %% answer="mended_tasks"
def mended_tasks(texts):
    """friends_tasks, mended: inputs and targets, both (batch, n), of texts (batch, n + 1)."""
    ### BEGIN SOLUTION
    return texts[:, :-1], texts[:, 1:]
    ### END SOLUTION


# %% check="mended_tasks" points=2 means="Each target is the character that comes after its input, the last one too." card=["the inputs are all characters but the last, and each target is the character that comes after its input", "Arguments are not changed"]
texts = torch.tensor(check_rng().permutation(36).reshape(4, 9))  # no number twice

@probe
def texts_afterwards(texts):
    mended_tasks(texts)
    return [texts]

with check("each target but the last", points=1):
    inputs, targets = mended_tasks(texts.clone())
    message = "The target of position 0 is what stands at position 1 of the text."
    assert_equal(targets[:, :-1], texts[:, 1:-1], message, name="all targets but the last one")
with check("the last target", points=0.5):
    inputs, targets = mended_tasks(texts.clone())
    message = "As many targets as inputs: one fewer than the text has characters, 8 of 9."
    assert_equal(tuple(targets.shape), (4, 8), message, name="the shape of the targets")
    message = "After the last input comes the last character of its own text. (A circle has another.)"
    assert_equal(targets[:, -1], texts[:, -1], message, name="the last target of each text")
with check("the inputs, and texts after the call", points=0.5, side=True):
    inputs, targets = mended_tasks(texts.clone())
    message = "The inputs, first of the pair, are all characters but the last: right as they were."
    assert_equal(inputs, texts[:, :-1], message, name="the inputs")
    assert_unchanged(texts_afterwards, texts=texts)
checks_passed("mended_tasks")


# %% check="mended_tasks_sizes" points=1 card=["`inputs` and `targets`, both (batch, n)", "with $n$ at least 1"]
# Hidden checks of mended_tasks: other sizes, texts of two characters.
### BEGIN HIDDEN TESTS
rng = check_rng()

def compare(batch, length):
    texts = torch.tensor(rng.integers(0, 4, size=(batch, length)))
    texts[:, 0], texts[:, -1] = 5, 7 + torch.arange(batch)  # each text has an end of its own
    inputs, targets = mended_tasks(texts.clone())
    shapes = tuple(np.shape(inputs)), tuple(np.shape(targets))
    message = f"texts {(batch, length)}: a column for each pair of neighbours."
    assert_equal(shapes, 2 * ((batch, length - 1),), message, name="the two shapes")
    message = f"texts {(batch, length)}: the inputs are all characters but the last."
    assert_equal(inputs, texts.narrow(1, 0, length - 1), message, name="the inputs")
    message = f"texts {(batch, length)}: each target is the next one of its own text, where it stands."
    assert_equal(targets, texts.narrow(1, 1, length - 1), message, name="the targets")

with check("characters that repeat", points=0.5):
    compare(3, 12)
    compare(12, 5)
with check("two characters, one text", points=0.5):
    compare(5, 2)
    compare(1, 2)
checks_passed("mended_tasks")
### END HIDDEN TESTS


# %% [markdown]
# A leak is not only in the layers. It can be anywhere between the text and the loss. So use more
# than one test: compare the loss with a **floor** if you know one, put the **detector** to the
# layers, and **let the model write**.
#
# ## 9. What one often reads
#
# One more model, before the table: without the mask, as model B, but its position vectors are ten
# times smaller at the start. **Predict, then run:** when will its loss be below the floor? And can
# it write? Then the honest model once more, now **writing without its mask**.

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Trained on this machine: the numbers differ a little elsewhere.
torch.manual_seed(model_seed)
late = CharacterModel(causal=False)
with torch.no_grad():
    late.position.weight.mul_(0.1)
late_curve = train(late, "without the mask, small positions", seed=model_seed)
for step in (150, 250, 300):
    small, usual = (np.mean(c[step - 20 : step]) for c in (late_curve, curves["without the mask"]))
    print(
        f"no mask, loss after {step} steps: small positions {small:.3f}, usual ones {usual:.3f} "
        f"(floor {floor:.3f})"
    )
late_share = share_of_sentences(write(late, 20, seed=model_seed))
print(f"no mask, small positions: {late_share:.0f} % sentences")

unmasked_twin = CharacterModel(causal=False)
unmasked_twin.load_state_dict(models["with the mask"].state_dict())
twin_share = share_of_sentences(write(unmasked_twin, 20, seed=model_seed))
print(
    f"trained with the mask, writes without it: {twin_share:.0f} % sentences "
    f"({share_of_sentences(written['with the mask']):.0f} % with it)"
)
assert np.mean(late_curve[130:150]) > floor + 0.1 and late_share < 10
assert np.mean(late_curve[-20:]) < floor  # and it passes the floor in the end
assert twin_share < share_of_sentences(written["with the mask"]) - 20

# %% [markdown]
# And a small calculation, without any training. No positions, all scores equal to 0; the value of
# "the" is 1, that of all other words is 0:

# %% tags=["demonstration"]
is_first = np.array([[1.0], [0.0], [0.0], [0.0], [0.0]])  # (n, 1): one value a word
zeros = np.zeros((5, 3))  # queries and keys: nothing to tell words apart
print("no mask:    ", scaled_dot_product_attention(zeros, zeros, is_first)[0][:, 0].round(2))
print(
    "causal mask:",
    scaled_dot_product_attention(zeros, zeros, is_first, causal_mask(5))[0][:, 0].round(2),
)

# %% [markdown]
# The output $1/(i+1)$ is the position, written down by the mask and one word known to stand first.
#
# | one often reads | what is right | shown in |
# |---|---|---|
# | "A loss that is not below the floor is honest." | A cheater may need time. With small position vectors the attention must first learn to tell positions apart; on its way down the loss passes the floor and looks innocent there. The model cannot write all the same. | the first cell of this section |
# | "The validation loss will show it." | It falls as well: the answer stands in the validation text too. | Figure 3 |
# | "The loss goes to exactly 0." | The last position cannot cheat; it makes up most of what is left. | Figure 3 |
# | "The mask is only needed in training." | A model of two layers that writes without it reads a past that looks different from training, and makes mistakes. | the first cell of this section |
# | "Attention knows no order without positions." | True without a mask. A causal mask treats positions differently: the first word sees one word, the last sees all. Causal language models trained without positions learn where they are (Haviv and others, 2022). | $1/(i+1)$ above |
# | "The mask halves the work." | Not in the plain formula: all $n^2$ scores are computed, half of them are thrown away. Faster code skips blocks in which everything is hidden. | not here |
# | "-1e9 is minus infinity." | For rows with an allowed key. In an empty row it gives equal weights; in float16 it becomes minus infinity itself, and the empty row NaN. | section 4 |
# | "Zero weights after the softmax do the same." | Only if the rows are divided by their new sums; else the future is in the denominator. | section 5 |

# %% [markdown]
# ### Written answer: `written_cheating`
#
# A colleague shows you a character model: "Validation loss 0.01, far better than everybody's. We
# only have to build the part that writes." In 6 to 9 sentences (5 points):
#
# 1. Why does a validation set not reveal a leak, although it reveals learning by heart?
# 2. Name two different tests that would reveal it, and say what each one compares.
# 3. Why does a causal model learn from $n$ guesses in one pass, but need $n$ passes to write $n$
#    characters?
# 4. What is computed again in these passes, and why may it be kept in a causal model only?

# %% [markdown] written="cheating" points=5
# ### BEGIN SOLUTION
# Learning by heart works only for texts that were in the training set, so that the loss on other
# texts stays high. A leak works on every text: in the validation text too, the next character
# stands one place further on, and the model reads it. One test is to let the model write: there the
# next character does not exist yet, so that a cheating model produces rubbish. Another is a leak
# detector: change the input at one position and compare the outputs at all earlier positions, which
# must not change. (A third: compare the loss with a floor, the entropy of the text; a loss clearly
# below it proves cheating.) In training the whole text is known. The mask lets each position see
# only its past, so that all $n$ positions make an honest guess in the same pass. When the model
# writes, the input of the next guess is the result of the last one, so that the guesses have to
# come one after another. Each pass computes the vectors, keys and values of all old positions
# again. In a causal model they depend on the past only and come out the same, so that they can be
# kept; without the mask they change with each new character.
#
# **Marking scheme** (5 points). 1 point: the answer stands in the validation text too (as opposed
# to learning by heart). 1 point for each of two different tests, with what is compared (writing;
# perturbing a later input and comparing earlier outputs; floor; a text of random characters that
# nobody can guess). 1 point: $n$ guesses at once because the text is known and each position sees
# only its past, one at a time because each guess is the next input. 1 point: keys and values (or
# vectors) of old positions are computed again; they may be kept because they do not depend on later
# positions.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > I let it guess the tenth character of a text. Then I exchange the eleventh and let it guess the tenth
# > again. An honest model cannot notice.
#
# Good: one clear comparison, and what an honest model does.
#
# > I would take validation texts from another source. A model that cheats has only learned its own
# > texts, so its loss there will be high.
#
# Plausible, and bad: that finds learning by heart. A leak works on every text, since each brings its
# answers along.
#
# </details>

# %% [markdown]
# ### Puzzle: a sliding mean
#
# All scores are 0. Write down a **mask** with which attention gives every word the mean of its own value and the two
# before it (at the beginning of the text there are fewer). `puzzle_sliding` takes `n` and returns the mask `(n, n)`.
#
# *Nothing is trained here, and nothing is graded: you write the numbers down, and the cell below says what they do.*

# %% tags=["demonstration", "guess"]
puzzle_sliding = lambda n: np.tri(n, dtype=bool) & ~np.tri(n, k=-3, dtype=bool)  # write lambda n: mask


# %% tags=["demonstration", "puzzle"]
def sliding(answer, n):
    zero = np.zeros((n, 1))
    return scaled_dot_product_attention(zero, zero, np.arange(n)[:, None] ** 2.0, answer(n))[0][:, 0]


def three_means(n):
    return [np.mean([i**2 for i in range(max(0, t - 2), t + 1)]) for t in range(n)]


puzzle("puzzle_sliding", puzzle_sliding, sliding, three_means, [2, 4, 9])

# %% [markdown]
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | causal mask | $j \le i$ | `causal_mask(n)`, `(n, n)`, `True` = may attend | no position sees the future |
# | masked scores | $s_{ij} = -\infty$ for $j > i$ | before the softmax | each row still sums to 1 |
# | several masks | and | `combine_masks(...)`, booleans | padding and future at once |
# | empty row | weights 0, output 0 | `-inf`, then caught; not `-1e9` | no NaN, no average over forbidden keys |
# | leak | output $i$ moves with input $t > i$ | `leaks_future(layer, ...)` | tests any layer from outside |
# | next-character task | target at $i$ is $x_{i+1}$ | `texts[:, :-1]`, `texts[:, 1:]` | $n$ guesses in one pass |
# | floor | entropy of the text | $\ln 160$ a sentence | a loss clearly below it proves cheating |
# | writing | one guess a pass | last position only | the past can be kept (lesson 11) |
#
# ## Check yourself
#
# <details><summary>1. Why does the first row of a causal map say nothing about the
# model?</summary>
#
# The first word can see itself only, so its weight is 1 whatever the scores are.
#
# </details>
#
# <details><summary>2. You see <code>scores = scores * mask</code> before the softmax, with the
# triangle of ones and zeros. What happens?</summary>
#
# Forbidden scores become 0, not $-\infty$, and $e^0 = 1$: the future keeps a share of the weight,
# sometimes a large one. No error, and a leak.
#
# </details>
#
# <details><summary>3. Must a model that classifies whole texts (happy or sad review) be
# causal?</summary>
#
# No. The text is complete when the question is asked, and nothing in it is to be guessed. Models
# that only read, such as BERT, attend in both directions. The mask is for models that predict the
# next position.
#
# </details>
#
# <details><summary>4. A layer passes the detector with n = 10. Is it causal?</summary>
#
# Not for certain. It may leak at other lengths, such as those beyond a mask built for 256
# positions, or on other inputs than those that were drawn. Test the lengths that you use, with
# several seeds.
#
# </details>
#
# <details><summary>5. A causal language model is trained on batches padded on the right. Its
# padding mask is forgotten. What is wrong, and where?</summary>
#
# The outputs at real words are right: padding is in their future. What is wrong is the loss, if it
# also counts the guesses at padding positions. They are easy, and make the loss look better.
#
# </details>
#
# ## References
#
# - Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin (2017), *Attention Is All
#   You Need*: masking in the decoder, by $-\infty$ before the softmax.
# - Radford, Narasimhan, Salimans, Sutskever (2018), *Improving Language Understanding by Generative
#   Pre-Training*: a language model of causal blocks only.
# - Devlin, Chang, Lee, Toutanova (2019), *BERT: Pre-training of Deep Bidirectional Transformers for
#   Language Understanding*: no causal mask, and therefore another task.
# - Haviv, Ram, Press, Izsak, Levy (2022), *Transformer Language Models without Positional Encodings
#   Still Learn Positional Information*.
# - Shannon (1951), *Prediction and Entropy of Printed English*: the floor for real English.
#
# ## What comes next
#
# We gave each position a vector of its own and did not say why. Lesson 7 asks what attention knows
# about order without it, and compares three ways to tell it.
