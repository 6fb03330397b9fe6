# %% [markdown]
# ## What you will be able to do
#
# * **build** a look-up that also answers for a word it has never seen;
# * **write** a softmax that survives scores of 10,000, masked scores and any axis;
# * **choose** a temperature, and say what it does to the weights and to the gradient;
# * **show** by an experiment why attention has queries, keys and values, and not one vector for
#   all three;
# * **find** a bug that raises no error and prints plausible numbers.

# %% tags=["setup"]
# Imports of the lesson.
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.batteries import (
    assert_as_floats,
    assert_as_reference,
    assert_each_alone,
    assert_refused,
    assert_unchanged,
)
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
from lesson_kit.figures import draw_heatmap, heatmap, show, text_table
from lesson_kit.guesses import reply
from lesson_kit.hands_on import slider

torch.set_num_threads(1)  # small models: one thread is faster than two

# %% [markdown]
# ## Before you begin: three questions on earlier lessons
#
# Answer from memory first, and look it up only if you must: you remember something longer if you
# recall it yourself than if you read it again.
#
# The source sentence becomes twice as long. What does the fixed-vector decoder of lesson 1 get?
#
# * `"a"`: Twice as many numbers.
# * `"b"`: As many numbers as before.
# * `"c"`: As many numbers as before, and they have no room for the second half: it is lost.

# %% answer="answer_again_room"
### BEGIN SOLUTION
answer_again_room = "b"
### END SOLUTION

# %% check="answer_again_room" points=0.5
check_answer("answer_again_room", answer_again_room)

# %% [markdown]
# `weighted_average` gets the weights (2, 0, 6) and the values 4, 100 and 8. What comes out?
#
# * `"a"`: 56
# * `"b"`: 7
# * `"c"`: 37.3

# %% answer="answer_again_average"
### BEGIN SOLUTION
answer_again_average = "b"
### END SOLUTION

# %% check="answer_again_average" points=0.5
check_answer("answer_again_average", answer_again_average)

# %% [markdown]
# An untrained translator draws an attention map with darker and lighter cells. What does it say
# about the language?
#
# * `"a"`: Nothing: how random numbers fell.
# * `"b"`: Which words resemble each other.
# * `"c"`: It is a weak form of the trained map.

# %% answer="answer_again_map"
### BEGIN SOLUTION
answer_again_map = "a"
### END SOLUTION

# %% check="answer_again_map" points=0.5
check_answer("answer_again_map", answer_again_map)

# %% [markdown]
# ## 1. A dictionary that knows "cat" and is asked for "kitten"
#
# A Python dictionary is a look-up. You hand over a **query**. The dictionary compares it with its
# **keys**. Where a key is equal to the query, you get the **value** that is stored beside it.
#
# Here is a small one from English to French. Three of its words will follow us through the course:
# "the **black cat** is **sleeping**", in French "le **chat noir dort**".

# %%
french = {
    "cat": "chat",
    "dog": "chien",
    "black": "noir",
    "white": "blanc",
    "sleeping": "dort",
    "running": "court",
}
for word in ("cat", "kitten"):
    try:
        print(word, "->", french[word])
    except KeyError:
        print(word, "-> KeyError: no key is equal to the query")

# %% [markdown]
# The dictionary is **hard**: a key is equal to the query, or it is not. "kitten" is nearly "cat",
# but nearly does not count. A person would answer "chat, more or less".
#
# Our aim is a **soft** dictionary. It compares the query with *every* key, gives each key a weight
# between 0 and 1, and answers with the weighted average of the values. Three steps. You know the
# third as lesson 1's `weighted_average`; here you build the first two, then all three together:
#
# | step | question | exercise |
# | --- | --- | --- |
# | 1. compare | how similar is the query to each key? | `similarity_scores` |
# | 2. weigh | how do scores become weights that sum to 1? | `softmax` |
# | 3. average | what is the answer? | `soft_lookup` |
#
# ## 2. Compare: words as vectors
#
# "Nearly" needs numbers. So each word becomes a vector. Here we write the vectors by hand and give
# every dimension a name, so that you can read them. (In a real model they are learned, and no
# dimension has a name.)

# %%
dimensions = ["animal", "cat-like", "colour", "dark", "action", "rest"]
words = list(french)
word_keys = np.array(
    [
        [1, 1, 0, 0, 0, 0],  # cat: an animal, and cat-like
        [1, -1, 0, 0, 0, 0],  # dog: an animal, and the opposite of cat-like
        [0, 0, 1, 1, 0, 0],  # black: a colour, dark
        [0, 0, 1, -1, 0, 0],  # white: a colour, the opposite of dark
        [0, 0, 0, 0, 1, 1],  # sleeping: an action, restful
        [0, 0, 0, 0, 1, -1],  # running: an action, the opposite of restful
    ],
    dtype=float,
)  # (n, d) = (6, 6)

# %% [markdown]
# The queries are words that are **no key**. A kitten is an animal, rather cat-like, and it rests a
# lot. A panther is cat-like and dark. "navy" is a dark colour, "dozing" a restful action.

# %%
queries = {
    "kitten": np.array([2.0, 1.5, 0.0, 0.0, 0.0, 0.5]),
    "panther": np.array([2.0, 1.5, 0.0, 1.5, 0.0, 0.0]),
    "navy": np.array([0.0, 0.0, 2.0, 1.5, 0.0, 0.0]),
    "dozing": np.array([0.0, 0.0, 0.0, 0.0, 2.0, 1.5]),
}  # each one (d,) = (6,)

# %% [markdown]
# How similar are a query $q$ and a key $k$? We multiply them dimension by dimension and add up.
# This is the **dot product**, and we call it the **score**:
#
# $$\text{score}_i = q \cdot k_i = \sum_{j=1}^{d} q_j \, k_{ij}$$
#
# By hand, for "kitten" and "cat": $2 \cdot 1 + 1.5 \cdot 1 + 0 + 0 + 0 + 0.5 \cdot 0 = 3.5$. For
# "kitten" and "dog": $2 \cdot 1 + 1.5 \cdot (-1) = 0.5$. What both have makes the score larger.
# What one has and the other lacks adds nothing. Opposites make it smaller.
#
# ### Exercise: `similarity_scores`
#
# > Difficulty: ●●○○○ · Importance: ●●●●●
# >
# > You should spend 5-10 minutes on this exercise.
#
# The score of one query against each of $n$ keys.
#
# * `query` has shape `(..., d)`, `keys` has shape `(..., n, d)`, the result `(..., n)`.
# * `...` means any number of leading **batch axes**, also none. Those of `query` and of `keys`
#   broadcast against each other, in both directions. Examples:
#
# | `query` | `keys` | result |
# | --- | --- | --- |
# | `(d,)` | `(n, d)` | `(n,)` |
# | `(3, d)` | `(n, d)` | `(3, n)` |
# | `(d,)` | `(4, n, d)` | `(4, n)` |
# | `(3, 1, d)` | `(4, n, d)` | `(3, 4, n)` |
#
# * The conventions of lesson 1 hold (checked when graded); for integer inputs the scores may stay
#   integers.
# * No scale and no normalisation: the plain dot product.


# %% answer="similarity_scores"
def similarity_scores(query, keys):
    """Dot product of a query with each key.

    query: (..., d), keys: (..., n, d), NumPy arrays; leading axes broadcast.
    Returns the scores (..., n).
    """
    ### BEGIN SOLUTION
    query, keys = query * 1.0, keys * 1.0  # integers become floating, float32 stays
    column = query[..., None]  # (..., d) -> (..., d, 1)
    return (keys @ column)[..., 0]  # (..., n, d) @ (..., d, 1) -> (..., n, 1) -> (..., n)
    ### END SOLUTION


# %% check="similarity_scores" points=3.25 means="Any batch of queries can be compared with any batch of keys." card=["The score of one query against each of $n$ keys", "No scale and no normalisation: the plain dot product", "broadcast against each other, in both directions", "for integer inputs the scores may stay integers", "Whole numbers"]
rng = check_rng()
query, keys = rng.normal(size=5), rng.normal(size=(4, 5))
two_keys = np.array([[3.0, 0.0, 1.0], [1.0, 2.0, 4.0]])
three_queries = np.array([[2.0, 0.5, -1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
texts = np.stack([two_keys, -two_keys, two_keys[::-1] - 1, two_keys + 1])

def by_hand(query, keys, scores, message):
    assert_close(np.multiply(1.0, similarity_scores(query, keys)), np.array(scores), message)

with check("one score for each key", points=0.25, side=True):
    shapes = [np.shape(similarity_scores(query, some)) for some in (keys, keys[:1])]
    assert_equal(shapes, [(4,), (1,)], "One query, four keys; and one key.", name="the shapes")
with check("by hand", points=1):
    message = "2*3 + 0.5*0 - 1*1 = 5 and 2*1 + 0.5*2 - 1*4 = -1. Multiply, then sum over d."
    found = similarity_scores(three_queries[0].copy(), two_keys.copy())
    assert_close(found, np.array([5.0, -1.0]), message)
with check("as torch", points=0.75):
    message = "One query (5,), four keys (4, 5): a plain dot product for each, as torch's linear."
    expected = F.linear(torch.tensor(query), torch.tensor(keys)).numpy()
    assert_close(similarity_scores(query, keys), expected, message)
with check("three queries", points=0.25):
    message = "Three queries (3, d), keys (n, d): (3, n), one row of scores for each query."
    scores = [[5.0, -1.0], [3.0, 1.0], [2.0, 8.0]]
    assert_close(similarity_scores(three_queries.copy(), two_keys.copy()), np.array(scores), message)
with check("a batch of two", points=0.25):
    message = "Query (2, d), keys (2, n, d): (2, n). Each query meets the keys of its own batch."
    found = similarity_scores(three_queries[:2].copy(), texts[[0, 2]])
    assert_close(found, np.array([[5.0, -1.0], [0.0, 2.0]]), message)
with check("batch axes that broadcast: each comes out as it does alone", points=0.25):
    cases = [(three_queries[:, None], texts), (three_queries[0], texts)]
    assert_each_alone(similarity_scores, cases, own_axes=(1, 2))
with check("whole numbers in query and keys, or in one of them", points=0.5):
    whole, halves, message = np.array([2, -1]), np.array([0.5, 1.5]), "No number is rounded."
    by_hand(whole, np.array([[3, 1], [0, 4]]), [5.0, -4.0], "Whole numbers are valid.")
    by_hand(whole, np.array([halves, -halves]), [-0.5, 0.5], f"Query (2, -1): {message}")
    by_hand(halves, np.array([whole, -whole]), [-0.5, 0.5], f"Keys (2, -1) and (-2, 1): {message}")
checks_passed("similarity_scores")


# %% check="similarity_scores_batches" points=2 card=["means any number of leading **batch axes**, also none", "broadcast against each other, in both directions"]
# Hidden checks of similarity_scores: other sizes; batch axes in query, in keys, in both.
### BEGIN HIDDEN TESTS
rng = check_rng()

def compare(query_batch, keys_batch):
    query, keys = rng.normal(size=(*query_batch, 5)), rng.normal(size=(*keys_batch, 4, 5))
    assert_each_alone(similarity_scores, [(query, keys)], own_axes=(1, 2))

with check("one query, also with one key, or of one number", points=0.75):
    for n, d in ((3, 6), (1, 3), (3, 1)):
        query, keys = rng.normal(size=d), rng.normal(size=(n, d))
        message = f"One query of {d} numbers and {n} keys: each dot product, as torch's linear."
        expected = F.linear(torch.tensor(query), torch.tensor(keys)).numpy()
        assert_close(similarity_scores(query, keys), expected, message)
with check("batch axes in only the query, or only the keys: same result as one at a time", points=0.75):
    for query_batch, keys_batch in (((3,), ()), ((1,), ()), ((), (2,)), ((2, 3), ()), ((), (2, 3))):
        compare(query_batch, keys_batch)
with check("batch axes in both, which broadcast: each comes out as it does alone", points=0.5):
    for query_batch, keys_batch in (((2, 3), (2, 3)), ((6,), (3, 1)), ((3, 2), (2,)), ((4,), (4, 1))):
        compare(query_batch, keys_batch)
checks_passed("similarity_scores")
### END HIDDEN TESTS


# %% check="similarity_scores_kinds" points=0.5 card=["Whole numbers", "for integer inputs the scores may stay integers", "the result is at least as precise as the most precise input"]
# Hidden checks of similarity_scores: integers, precision.
### BEGIN HIDDEN TESTS
rng = check_rng()
whole, keys = rng.integers(1, 6, size=5), rng.normal(size=(4, 5))
whole_keys = whole + np.arange(4)[:, None]
single = rng.permutation([1, -1, 1, -1, 0]).astype(np.float32)

def compare(what, query, some, **close):
    """With the scores of the same numbers in float64."""
    same = np.asarray(similarity_scores(query.astype(float), some.astype(float)), dtype=float)
    assert_equal(same.shape, (len(some),), "One query: a score for each key.", name="the shape")
    message = "In float64 not every score is the same, and none is NaN."
    assert_equal(bool(np.ptp(same) > 1e-6), True, message, name="'scores that differ'")
    found = similarity_scores(query, some)
    found = found if close else np.multiply(1.0, found)  # integers may stay integers
    assert_close(found, same, f"{what}: is a number rounded?", against="in float64", **close)

with check("whole numbers in both: as in float64", points=0.25):
    compare("Whole numbers in query and keys", whole, whole_keys)
with check("one of float64, the other of whole numbers or float32: all digits", points=0.25):
    compare("An integer query, float64 keys", whole, keys, precise=True)
    compare("A float64 query, integer keys", keys[0], whole_keys, precise=True)
    compare("A float32 query, float64 keys", single, keys, precise=True)
    compare("A float64 query, float32 keys", keys[0], np.stack([single, -single]), precise=True)
checks_passed("similarity_scores")
### END HIDDEN TESTS


# %% check="similarity_scores_inputs_unchanged" points=0.25 card="Arguments are not changed"
# Hidden checks of similarity_scores: the inputs stay as they were.
### SIDE CONDITION: counts once another check of similarity_scores passes.
### BEGIN HIDDEN TESTS
@probe
def inputs_afterwards(query, keys):
    similarity_scores(query, keys)
    return query, keys

rng = check_rng()
assert_unchanged(inputs_afterwards, query=rng.normal(size=5), keys=rng.normal(size=(4, 5)))
### END HIDDEN TESTS


# %% [markdown]
# <details><summary>Hint</summary>
#
# First write it for one query and plain keys. Then look at the shapes for batches: matrix
# multiplication of stacked matrices lets leading axes broadcast, but `query` has one axis too few
# to be a matrix. Where can you insert an axis of length 1, and which axis do you take away
# afterwards? An elementwise product and a sum works as well: which axis of `query` must be
# inserted so that it lines up with `n`?
#
# </details>
#
# What passes its check is kept in `my_transformer`, a package of your own; at the end of the course it
# runs a published model.
#
# The scores of our four queries, all at once:

# %%
word_queries = np.stack(list(queries.values()))  # (4, d): one row a query
scores = similarity_scores(word_queries, word_keys)  # (4, d) and (n, d) -> (4, n)
print(" " * 8, *(f"{word:>9}" for word in words))
for name, row in zip(queries, scores):
    print(f"{name:>8}", *(f"{score:9.2f}" for score in row))

# %% [markdown]
# "kitten" fits "cat" best, "navy" fits "black". "panther" fits "cat", and also "black" a little:
# it asks for two things at once.
#
# ### What length does to a dot product
#
# **Predict, then run.** Someone writes BLACK in capitals: the key of "black" becomes three times
# as long. It still points in the same direction. The query is "panther". Which key has the largest
# score now, "cat" or "black"? And which one has the largest **cosine** (the dot product divided by
# both lengths)?

# %% tags=["demonstration", "guess"]
guess_loud = ("cat", "cat")  # write two words, by score and by cosine, such as ("cat", "cat")

# %%
loud_keys = word_keys.copy()
loud_keys[words.index("black")] *= 3
scores = similarity_scores(queries["panther"], loud_keys)
products = np.linalg.norm(loud_keys, axis=1) * np.linalg.norm(queries["panther"])  # |k| |q|
for name, numbers in (("score", scores), ("cosine", scores / products)):
    best = words[numbers.argmax()]
    print(f"{name:>6}: cat {numbers[0]:.2f}, black {numbers[2]:.2f}, largest: {best}")

# %% tags=["demonstration"]
assert words[scores.argmax()] == "black" and words[(scores / products).argmax()] == "cat"
why = "A long key is loud in a dot product; a cosine does not hear how long it is."
reply("guess_loud", guess_loud, ("black", "cat"), why)

# %% [markdown]
# The dot product is $|q|\,|k| \cos(q, k)$. So it measures direction **and** length.
#
# * A long **key** is loud: its score is far from zero (above or below) for many queries.
# * A long **query** multiplies all its scores by one number. The order of the keys stays. What it
#   does to the weights is a question of section 3.
#
# The cosine ignores both. Attention as in this course uses the dot product: it is cheaper, and a
# model can *learn* which keys should be loud. (Not every model wants that. Some newer ones bring
# queries and keys to one length first, which is called QK-norm; in its first form they learn only
# how sharp the choice is.)
#
# With dot products a vector need not even be the best match of itself:

# %%
black = word_keys[words.index("black")]  # (d,)
itself, capitals = similarity_scores(black, np.stack([black, 3 * black]))  # (2, d) -> (2,)
print("the query black with the key black:", itself)
print("the query black with the key BLACK:", capitals)
assert capitals > itself, "BLACK is a longer key than black, so its score is larger"
assert words[scores.argmax()] == "black", "panther: the loud key has the largest score"
assert words[(scores / products).argmax()] == "cat", "panther: the cosine prefers cat"

# %% [markdown]
# ## 3. Weigh: from scores to weights
#
# A hard dictionary takes the key with the largest score: weight 1 for that key, 0 for all others.
# This is the **argmax**, written as weights. We want a soft version: every key gets some weight,
# larger scores get more, and the weights of a query sum to 1. The **softmax** does it:
#
# $$w_i = \frac{e^{x_i}}{\sum_{j=1}^{n} e^{x_j}}$$
#
# The exponential makes every number positive, and the division makes the sum 1. A score that is
# larger by 1 gets $e \approx 2.7$ times the weight. (The name is unlucky. It is a soft arg*max*:
# it says **where** the maximum is. It is not a soft max*imum*.)
#
# In the computer the formula has a trap:

# %%
with np.errstate(over="ignore"):  # silence the warning: the result itself tells enough
    print("e to the power of 3.5: ", np.exp(3.5).round(2))
    print("e to the power of 1000:", np.exp(1000.0))

# %% [markdown]
# inf divided by inf is NaN. But nothing forces us to compute such numbers. Look at the formula
# once more: what happens to the weights if you add the same number to every score?
#
# One more thing will be needed soon. A score of $-\infty$ will mean "this key may not be looked
# at", since $e^{-\infty} = 0$. In lesson 3 masks write such scores. What if *all* keys of a row
# are forbidden? The formula says 0/0. We decide here: such a row gets the weight 0 everywhere. It
# has nothing to look at, and a NaN would spread to every number computed from it. (Lesson 1's
# `weighted_average` refused weights that are all 0; attention has to live with them.)
#
# ### Exercise: `softmax`
#
# > Difficulty: ●●●○○ · Importance: ●●●●●
# >
# > You should spend 10-15 minutes on this exercise.
#
# Softmax of an array along one axis.
#
# * `x` has any shape with at least one axis; `axis` is **one integer**: 0, in the middle,
#   negative, any. The result has the shape of `x`, and along `axis` it sums to 1.
# * Accurate also for scores as large as 1e4 or -1e4, in the same array: no inf, no NaN.
# * `-inf` is allowed: its weight is 0. A row (along `axis`) that is all `-inf` gives zeros.
# * The conventions of lesson 1 hold (checked when graded).


# %% answer="softmax"
def softmax(x, axis=-1):
    """Softmax of x along one axis.

    x: a NumPy array of any shape, may hold -inf; axis: one integer.
    Returns weights of the same shape that sum to 1 along axis; where everything along
    axis is -inf, they are 0.
    """
    ### BEGIN SOLUTION
    x = x * 1.0  # integers become floating; and x is a copy
    largest = x.max(axis=axis, keepdims=True)
    largest = np.where(np.isneginf(largest), 0, largest)  # -inf - (-inf) would be NaN
    powers = np.exp(x - largest)  # at most 1, and the largest of each row is 1
    total = powers.sum(axis=axis, keepdims=True)
    return powers / np.where(total == 0, 1, total)
    ### END SOLUTION


# %% check="softmax" points=3.5 means="Scores of any size become weights, also where a key or all keys may not be looked at." card=["The result has the shape of `x`, and along `axis` it sums to 1", "`axis` is **one integer**: 0, in the middle, negative, any", "Accurate also for scores as large as 1e4 or -1e4", "`-inf` is allowed: its weight is 0", "A row (along `axis`) that is all `-inf` gives zeros"]
rng = check_rng()
with check("a weight for each score; each row sums to 1", points=0.5):
    weights = softmax(rng.normal(size=(4, 4)))
    assert_equal(np.shape(weights), (4, 4), "One weight for each score.", name="the shape")
    message = "Is each row divided by its own sum, over the last axis, with that axis kept?"
    assert_close(weights.sum(axis=-1), np.ones(4), message, name="the sum of each row")
with check("as torch, and by hand", points=0.75):
    x = rng.normal(size=(3, 4))
    message = "An array (3, 4), the last axis: is it exp(x) divided by its sum along that axis?"
    assert_close(softmax(x.copy()), torch.softmax(torch.tensor(x), dim=-1).numpy(), message)
    message = "The powers of e are 1 and 3, so the weights are 1/4 and 3/4."
    assert_close(softmax(np.array([0.0, math.log(3.0)])), np.array([0.25, 0.75]), message)
with check("another axis: as where it is the last one", points=0.75):
    x = rng.normal(size=(2, 3, 4))
    for axis in (0, 1, -2):  # as if that axis were the last one, by your own function
        turned = np.moveaxis(softmax(np.moveaxis(x, axis, -1).copy()), -1, axis)
        above = bool(np.ptp(turned) > 1e-3 and turned.min() > 0)
        assert_equal(above, True, "Weights are above 0, none is NaN, and they are no constant.")
        message = f"axis={axis} of (2, 3, 4): do the largest score and the sum run along this axis?"
        assert_close(softmax(x.copy(), axis=axis), turned, message, against="along the last axis")
with check("scores of 1e4, -1e4 and 400", points=0.75):
    message = "In each row the two largest share the weight. Does exp overflow, or vanish?"
    scores = np.array([[1e4, 1e4, -1e4], [-1e4, -2e4, -1e4], [400.0, 400.0, -400.0]])
    expected = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    assert_close(softmax(scores), expected, message)
with check("scores of -inf beside others", points=0.5):
    message = "A score of -inf gets no weight, and the others share 1."
    scores = np.array([[1.0, -np.inf, 1.0], [-np.inf, 2.0, 2.0]])
    assert_close(softmax(scores), np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]), message)
with check("a row of -inf alone", points=0.25):
    scores = np.array([[1.0, -np.inf, 1.0], [-np.inf, -np.inf, -np.inf]])
    message = "A row that is all -inf has no weight at all."
    assert_close(softmax(scores), np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]), message)
checks_passed("softmax")


# %% check="softmax_stability" points=2 card="Accurate also for scores as large as 1e4 or -1e4, in the same array: no inf, no NaN"
# Hidden checks of softmax: scores near 0, and around 1e4 and -1e4, also in one array.
### BEGIN HIDDEN TESTS
x = check_rng().normal(size=(3, 4))

def compare(shifts, message):
    """With the weights of the scores near 0."""
    weights = np.asarray(softmax(x.copy()), dtype=float)
    assert_equal(weights.shape, (3, 4), "One weight for each score.", name="the shape")
    rise = bool((np.diff(weights) * np.diff(x) > 0).all())
    assert_equal(rise, True, "In each row a larger score has a larger weight, and none is NaN.")
    assert_close(softmax(x + shifts), weights, message, against="for the scores near 0")

with check("all scores plus 5: as without", points=0.5):
    compare(5.0, "The same number added to all scores does not change the weights.")
with check("all scores plus 1e4, or minus 1e4: as near 0", points=0.75):
    for shift in (1e4, -1e4):
        compare(shift, f"All scores plus {shift:g}. Check first: does exp overflow or vanish?")
with check("rows around 1e4, 0 and -1e4 in one array: as near 0", points=0.5):
    message = "Rows around 1e4, 0 and -1e4. Check first: is the largest score that of each row?"
    compare(np.array([[1e4], [0.0], [-1e4]]), message)
with check("1e4, 1e4 - 1 and -1e4 in one row", points=0.25):
    message = "Weights of 0.731, 0.269 and 0. Does something overflow, or is it cut off at a bound?"
    expected = np.array([1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0.0])
    assert_close(softmax(np.array([1e4, 1e4 - 1, -1e4])), expected, message)
checks_passed("softmax")
### END HIDDEN TESTS


# %% check="softmax_masked" points=2 card=["`-inf` is allowed: its weight is 0", "A row (along `axis`) that is all `-inf` gives zeros"]
# Hidden checks of softmax: rows that hold -inf, rows that are all -inf.
### BEGIN HIDDEN TESTS
x = check_rng().normal(size=(2, 3, 4))
x[0, 0, 1] = x[0, 1, 0] = x[0, 1, 3] = x[1, 2, 2] = -np.inf
with check("-inf among other scores: weight 0, other weights as without it", points=0.75):
    weights = softmax(x.copy())
    assert_equal(np.shape(weights), (2, 3, 4), "One weight for each score.", name="the shape")
    message = "A finite score has a weight above 0; here no weight is a number above 0."
    assert_equal(bool((weights > 0).any()), True, message)
    message = "A score of -inf has the weight 0; the others share 1 as if it were not there."
    for place in np.ndindex(2, 3):
        there = np.isfinite(x[place])
        expected = np.zeros(4)
        expected[there] = softmax(x[place][there])
        assert_close(weights[place], expected, message, against="from the finite scores alone")
    exact = bool((np.asarray(weights)[np.isneginf(x)] == 0).all())
    message = "The weight of -inf is exactly 0. Is an exponent bounded, or a small number added?"
    assert_equal(exact, True, message)
with check("-inf beside scores of 1e4 and of -1e4", points=0.25):
    message = "The others share 1, however low they are. Check first: is -inf made a number?"
    scores = np.array([[1e4, -np.inf, 1e4], [-np.inf, -1e4, -np.inf]])
    assert_close(softmax(scores), np.array([[0.5, 0, 0.5], [0, 1, 0]]), message)
with check("rows of -inf alone: 0, the others as before", points=0.75):
    before = np.array(softmax(x.copy()), dtype=float)
    assert_equal(before.shape, (2, 3, 4), "One weight for each score.", name="the shape")
    assert_equal(bool((before > 0).any()), True, "A finite score has a weight above 0.")
    x[1, 1] = -np.inf
    before[1, 1] = 0.0
    message = "A row that is all -inf gives zeros, not NaN and not 1/n; the others are as before."
    assert_close(softmax(x.copy()), before, message, against="as before, with zeros at [1, 1]")
    assert_close(softmax(x[1, 1:].copy()), before[1, 1:], message, against="as before")
    assert_close(softmax(np.full(3, -np.inf)), np.zeros(3), "One row alone that is all -inf.")
with check("-inf alone along axis 0", points=0.25):
    message = "A column of -inf alone gets zeros, and the others sum to 1."
    scores = np.array([[-np.inf, -np.inf, -np.inf], [2.0, -np.inf, 1.0]])
    assert_close(softmax(scores, axis=0), np.array([[0.0, 0, 0], [1, 0, 1]]), message)
checks_passed("softmax")
### END HIDDEN TESTS


# %% check="softmax_axes" points=2 card=["`x` has any shape with at least one axis", "`axis` is **one integer**: 0, in the middle, negative, any"]
# Hidden checks of softmax: every axis, counted from either end; arrays of one to four axes.
### BEGIN HIDDEN TESTS
rng = check_rng()

def compare(shape, axis):
    """With what the function gives for what stands along this axis, each row alone."""
    x = rng.normal(size=shape)
    rows = np.moveaxis(x, axis, -1)
    alone = np.empty(rows.shape)
    for at in np.ndindex(*rows.shape[:-1]):
        one = np.asarray(softmax(rows[at].copy()))
        assert_equal(one.shape, rows[at].shape, "One row: one weight for each score.")
        alone[at] = one
    above = bool((alone > 0).all() and np.ptp(alone) > 1e-3)
    assert_equal(above, True, "Weights are above 0, and those of rows alone are no constant.")
    message = f"An array {shape}, axis={axis}. Do the largest score and the sum run along it?"
    turned = np.moveaxis(alone, -1, axis)
    assert_close(softmax(x, axis=axis), turned, message, against="for the rows one by one")

with check("one axis, and the last one of two and more: each row comes out as it does alone", points=0.75):
    for shape in ((7,), (3, 4), (4, 4), (2, 3, 5)):
        compare(shape, -1)
with check("the first axis: each row comes out as it does alone", points=0.5):
    for shape in ((7,), (3, 4), (4, 4)):
        compare(shape, 0)
with check("an axis in the middle, counted from either end: each row comes out as it does alone", points=0.5):
    for axis in (1, 2, -2, -3):
        compare((2, 3, 4, 2), axis)
with check("an axis beside one of length 1, and along it", points=0.25):
    compare((2, 1, 4), 2)
    message = "axis=1 of an array (2, 1, 4): every weight is 1."
    assert_close(softmax(rng.normal(size=(2, 1, 4)), 1), np.ones((2, 1, 4)), message)
checks_passed("softmax")
### END HIDDEN TESTS


# %% check="softmax_kinds" points=0.25 card=["Whole numbers", "the result is at least as precise as the most precise input"]
# Hidden checks of softmax: integers, precision.
### BEGIN HIDDEN TESTS
rng = check_rng()
x = rng.integers(-3, 4, size=(3, 4))
weights = np.asarray(softmax(x + 0.0))
assert_equal(bool((weights > 0).all()), True, "Every weight is above 0, and none is NaN.")
for what, kind in (("Integer", np.int64), ("float32", np.float32)):
    message = f"{what} scores have the weights of the same numbers in float64, as floating numbers."
    assert_as_floats(softmax, (x.astype(kind),), message)
first = np.where(np.arange(3)[:, None] == 0, -np.inf, rng.normal(size=(3, 4)))
message = "float64 scores, the first row all -inf: rows 1 and 2 sum to 1 in all digits of float64."
sums = np.asarray(softmax(first))[1:].sum(axis=-1)
assert_close(sums, np.ones(2), message, name="the sums", precise=True)
weights = np.asarray(softmax(first))[1:]
message = "float64 scores: none of your weights has more digits than float32 holds."
assert_equal(bool((weights == weights.astype(np.float32)).all()), False, message, name="'7 digits'")
### END HIDDEN TESTS


# %% check="softmax_inputs_unchanged" points=0.25 card="Arguments are not changed"
# Hidden checks of softmax: the input stays as it was.
### SIDE CONDITION: counts once another check of softmax passes.
### BEGIN HIDDEN TESTS
@probe
def input_afterwards(x):
    softmax(x)
    return [x]

x = check_rng().normal(size=(3, 4))
assert_unchanged(input_afterwards, x=x)
x[0, 1] = -np.inf
x[2] = -np.inf
assert_unchanged(input_afterwards, x=x)
assert_unchanged(input_afterwards, x=x.astype(np.float32))
### END HIDDEN TESTS


# %% [markdown]
# <details><summary>Hint</summary>
#
# $e^{x_i - c} = e^{x_i} / e^{c}$: a number $c$ that is the same along the axis cancels. Choose $c$
# per row so that the largest exponent is exactly 0. Then nothing can overflow and the sum is at
# least 1. Keep the reduced axis, or a square array will broadcast the wrong way without a word.
# For a row that is all `-inf`, ask what $c$ is, and what `-inf - (-inf)` gives. Then ask what you
# divide by.
#
# </details>
#
# ### Temperature
#
# Divide all scores by a positive number $T$ before the softmax: the **temperature**.
#
# $$w_i = \frac{e^{x_i / T}}{\sum_j e^{x_j / T}}$$
#
# ("Temperature" comes from physics: in a cold system only the best state is taken, in a hot one all
# of them.)

# %% [markdown]
# **Predict, then run.** For the query "kitten" at $T = 1$, "cat" has a weight of 0.85. At which
# temperature does it have half of the weight, and the other five words together the other half?

# %% tags=["demonstration", "guess"]
guess_half = 10.0  # write a temperature

# %%
kitten_scores = similarity_scores(queries["kitten"], word_keys)  # (n,)
for temperature in (0.1, 0.5, 1.0, 3.0, 100.0):
    weights = softmax(kitten_scores / temperature)
    row = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, weights))
    print(f"T = {temperature:5}: {row}")

# %% tags=["demonstration"]
hotter = np.geomspace(0.1, 100, 2000)
cat_has = softmax(kitten_scores / hotter[:, None])[:, 0]  # (2000,): falls from 1 to 1/6
half = hotter[np.abs(cat_has - 0.5).argmin()]
reply("guess_half", guess_half, half, "Near is within 0.5.", within=0.5)


# %% [markdown]
# The **entropy** $H = -\sum_i w_i \log w_i$ says in one number how spread the weights are: 0 when one
# key has all the weight, $\log n$ when all $n$ keys have the same.

# %% tags=["demonstration"]
def weights_at(axes, temperature):
    weights = softmax(kitten_scores / temperature)
    axes.bar(words, weights, color="tab:blue")
    axes.axhline(1 / len(words), color="grey", linestyle=":", linewidth=1)
    axes.set(ylim=(0, 1.05), ylabel="weight", title=f"T = {temperature}")
    axes.tick_params(axis="x", rotation=45)
    entropy = torch.special.entr(torch.tensor(weights)).sum().item()
    return f"cat has {weights[0]:.2f}, running {weights[-1]:.2f}; the entropy is {entropy:.2f}."


slider(
    weights_at,
    "temperature",
    (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0),
    pictures=(1.0, 10.0),
    caption="Try it. Only the temperature changes, not the scores. The order of the words stays. From "
    "which temperature on can you no longer see it? (The dotted line: all equal.)",
    size=(4.05, 3.4),
)

# %% [markdown]
# How strongly do the weights react to the scores? That is the **Jacobian**: a table of slopes. Its
# entry $(i, j)$ is the slope of weight $i$ when score $j$ changes. The **norm**, the root of the sum of
# all squared entries, makes one number of it.

# %% tags=["demonstration"]
temperatures = np.geomspace(0.05, 100, 60)
all_weights = softmax(kitten_scores / temperatures[:, None])  # (60, n)
entropies = torch.special.entr(torch.tensor(all_weights)).sum(-1).numpy()  # (60,)
# The Jacobian of a softmax of x / T is (diag(w) - w w^T) / T. torch computes it for us.
slopes = []
for temperature in temperatures:
    tensor_scores = torch.tensor(kitten_scores)
    jacobian = torch.autograd.functional.jacobian(
        lambda s, T=temperature: torch.softmax(s / T, -1), tensor_scores
    )  # (n, n)
    slopes.append(jacobian.norm().item())

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8.1, 3.4), layout="constrained")
groups = {"cat": "-", "dog, sleeping": "--", "black, white": "-.", "running": ":"}  # equal scores
for group, style in groups.items():
    place = words.index(group.split(",")[0])
    left.plot(temperatures, all_weights[:, place], style)
left.text(1, 0.9, "cat")
left.text(0.04, 0.2, "the other five")
left.set(xscale="log", xlabel="temperature T", ylabel="weight", title="weights of kitten")
middle.plot(temperatures, entropies)
middle.axhline(math.log(len(words)), color="grey", linestyle=":")
middle.text(0.05, math.log(len(words)) - 0.1, "log n: all equal", color="dimgrey", size=9)
middle.set(xscale="log", xlabel="temperature T", ylabel="entropy", title="how spread they are")
right.plot(temperatures, slopes)
right.text(0.04, 0.03, "too cold:\nno slope")
right.text(100, 0.12, "too hot:\nhardly any", ha="right")
right.set(xscale="log", xlabel="temperature T", title="how much they react")
right.set_ylabel("norm of the Jacobian")

assert np.all(np.diff(entropies) > 0), "hotter is always more spread"
assert entropies[0] < 1e-6, "the coldest has entropy 0"
assert math.log(len(words)) - entropies[-1] < 1e-3, "the hottest has entropy log n"
assert max(slopes) > 0.15 and slopes[0] < 1e-6 and slopes[-1] < 0.01, "flat at both ends"
assert 1 < temperatures[int(np.argmax(slopes))] < 2, "the largest slope is in between"
show(
    figure,
    "Figure 1. From argmax (cold) to plain average (hot). For these scores the weights react most between T = 1 "
    "and T = 2 (right). Scores ten times as far apart would need temperatures ten times as high.",
    "Three line plots against temperature from 0.05 to 100 on a log axis. Left: the weight of "
    "cat falls from 1 to one sixth, the other five rise from 0 to one sixth. Middle: entropy "
    "rises from 0 to log 6 = 1.79. Right: the norm of the Jacobian is 0 at T = 0.05, has "
    "its peak between T = 1 and 2, and falls back towards 0 at T = 100.",
)

# %% [markdown]
# **Predict, then run.** The query "animal" is `[1, 0, 0, 0, 0, 0]`. The argmax of its scores is
# "cat" (NumPy takes the first of equals). What are the weights of "cat" and "dog" at $T = 0.001$?

# %% tags=["demonstration", "guess"]
guess_animal = (1.0, 0.0)  # write (weight of cat, weight of dog)

# %%
animal_scores = similarity_scores(np.array([1, 0, 0, 0, 0, 0]), word_keys)
weights = softmax(animal_scores / 0.001)
print("argmax:", words[animal_scores.argmax()])
print("cat", weights[0].round(3), " dog", weights[1].round(3))

# %% tags=["demonstration"]
why = (
    "Equal scores have equal weights at every temperature. A temperature near 0 gives the argmax only where "
    "one score is the largest."
)
reply("guess_animal", guess_animal, tuple(weights[:2]), why, within=0.02)

# %% [markdown]
# Other temperatures, and then a tiny lead for one of the two:

# %%
for temperature in (1.0, 1e-3, 1e-6):
    weights = softmax(animal_scores / temperature)
    print(f"T = {temperature}: cat {weights[0]:.2f}, dog {weights[1]:.2f}")
    assert abs(weights[0] - weights[1]) < 1e-12, "equal scores have equal weights"

animal_scores = animal_scores + np.array([0.01, 0, 0, 0, 0, 0])  # a tiny lead for "cat"
weights = softmax(animal_scores / 1e-3)
print(f"T = 0.001, cat ahead by 0.01: cat {weights[0]:.2f}, dog {weights[1]:.2f}")
assert weights[0] > 0.99, "near a tie a tiny lead decides"

# %% [markdown]
# So near a tie a cold softmax is not flat. It is steep: the colder it is, the more a tiny change
# of a score does (at an exact tie the slopes grow like $1/T$).

# %% [markdown]
# ### Short answer: `answer_query_length`
#
# You make the **query** twice as long ($q \to 2q$) and leave the keys and the temperature as they
# are. What happens to the weights?
#
# * **"a"**: Nothing. Both have the same direction, and softmax normalises.
# * **"b"**: They change as if the temperature were halved: the best key gets more.
# * **"c"**: They change as if the temperature were doubled: the weights get more even.
# * **"d"**: Every weight doubles.

# %% answer="answer_query_length"
### BEGIN SOLUTION
answer_query_length = "b"
### END SOLUTION

# %% check="answer_query_length" points=1
check_answer("answer_query_length", answer_query_length)

# %% [markdown]
# ## 4. Average: the soft look-up
#
# Now put the steps together. The **answer** is the average of the values $v_i$ (vectors, one a
# key), weighted by the weights:
#
# $$w = \operatorname{softmax}\!\left(\frac{q \cdot k_1}{T}, \dots, \frac{q \cdot k_n}{T}\right),
# \qquad \text{answer} = \sum_{i=1}^{n} w_i \, v_i$$
#
# In the text, a **value** is always one of the stored $v_i$, and what comes out is the **answer**.
# (In the code the answer is called `value`, because for the caller of a dictionary it is one.)
#
# ### Exercise: `soft_lookup`
#
# > Difficulty: ●●●○○ · Importance: ●●●●●
# >
# > You should spend 10-15 minutes on this exercise.
#
# The soft dictionary. Use your two functions.
#
# * `query` `(..., d)`, `keys` `(..., n, d)`, `values` `(..., n, d_v)`. `d_v` may differ from `d`.
# * Returns two things, in this order: the answer `(..., d_v)` and the weights `(..., n)`.
# * Any leading batch axes; those of `query`, `keys` and `values` broadcast. The weights have the
#   leading axes of `query` and `keys`: values play no part in them. Examples:
#
# | `query` | `keys` | `values` | answer | weights |
# | --- | --- | --- | --- | --- |
# | `(d,)` | `(n, d)` | `(n, d_v)` | `(d_v,)` | `(n,)` |
# | `(3, d)` | `(n, d)` | `(n, d_v)` | `(3, d_v)` | `(3, n)` |
# | `(3, d)` | `(3, n, d)` | `(3, n, d_v)` | `(3, d_v)` | `(3, n)` |
# | `(3, 1, d)` | `(4, n, d)` | `(4, n, d_v)` | `(3, 4, d_v)` | `(3, 4, n)` |
# | `(d,)` | `(n, d)` | `(4, n, d_v)` | `(4, d_v)` | `(n,)` |
#
# * Scores are plain dot products, divided by `temperature`. Temperatures from 1e-9 to 1e9 work: no
#   inf, no NaN.
# * `temperature <= 0` is a `ValueError`.
# * The conventions of lesson 1 hold, for both results (checked when graded).


# %% answer="soft_lookup"
def soft_lookup(query, keys, values, temperature=1.0):
    """Weighted average of the values; the weights say how well each key fits the query.

    query: (..., d), keys: (..., n, d), values: (..., n, d_v), NumPy arrays; leading axes
    broadcast. Raises ValueError unless temperature > 0.
    Returns value (..., d_v) and weights (..., n).
    """
    ### BEGIN SOLUTION
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)  # (..., n)
    row = weights[..., None, :]  # (..., n) -> (..., 1, n)
    value = (row @ values)[..., 0, :]  # (..., 1, n) @ (..., n, d_v) -> (..., d_v)
    return value, weights
    ### END SOLUTION


# %% check="soft_lookup" points=3.5 means="Your dictionary answers for words that are no key." card=["Returns two things, in this order: the answer `(..., d_v)` and the weights `(..., n)`", "Scores are plain dot products, divided by `temperature`", "`d_v` may differ from `d`", "Any leading batch axes; those of `query`, `keys` and `values` broadcast", "values play no part in them", "Temperatures from 1e-9 to 1e9 work", "`temperature <= 0` is a `ValueError`"]
rng = check_rng()
two = query, keys, values = [rng.normal(size=s) for s in ((2, 5), (2, 4, 5), (2, 4, 3))]
alone = query[0], keys[0], values[0]

def by_torch(query, keys, values, temperature):
    scores = torch.tensor(keys) @ torch.tensor(query)[..., None] / temperature
    weights = torch.softmax(scores[..., 0], dim=-1)
    return weights.numpy(), (weights[..., None, :] @ torch.tensor(values))[..., 0, :].numpy()

def compare(name, given, T, message):
    weights, answer = by_torch(*given, T)
    found = soft_lookup(*(x.copy() for x in given), T)
    assert_close(found[1], weights, f"{name}: {message}", name="the weights")
    assert_close(found[0], answer, f"{name}: {message}", name="the answer")

with check("one query: two results and their shapes", points=0.5, side=True):
    result = soft_lookup(*alone)
    found = [np.shape(one) for one in result] if isinstance(result, (tuple, list)) else result
    message = "Keys (4, 5), values (4, 3): first the answer (3,), then the weights (4,)."
    assert_equal(found, [(3,), (4,)], message, name="the shapes")
with check("one query: three temperatures", points=1.25):
    for T in (1.0, 0.5, 4.0):
        message = "are the weights the softmax, over the keys, of dot products divided by the temperature?"
        compare(f"temperature {T:g}", alone, T, message)
with check("three queries, and a batch of two", points=0.5):
    message = "Does each query look up in the keys and values of its own text?"
    compare("query (3, 5), one text", (rng.normal(size=(3, 5)), *alone[1:]), 1.0, message)
    compare("query (2, 5), two texts", two, 1.0, message)
with check("very hot and very cold", points=0.5):
    message = "Does something overflow, or is the temperature bounded?"
    for T in (1e9, 1e-9):
        compare(f"temperature {T:g}", alone, T, message)
with check("values with batch axes: each comes out as it does alone; the weights' shape", points=0.5):
    case = query[0], keys[0], values
    assert_each_alone(soft_lookup, [case], own_axes=(1, 2, 2), names=("the answer",))
    message = "The weights have the leading axes of query and keys: values play no part in them."
    assert_equal(np.shape(soft_lookup(*case)[1]), (4,), message, name="the shape of the weights")
with check("no such temperature", points=0.25, side=True), np.errstate(all="ignore"):
    assert_refused(soft_lookup, {f"a temperature of {T}": (*alone, T) for T in (0, -1)})
checks_passed("soft_lookup")


# %% check="soft_lookup_temperature" points=2 card=["Scores are plain dot products, divided by `temperature`", "Temperatures from 1e-9 to 1e9 work: no inf, no NaN"]
# Hidden checks of soft_lookup: temperatures of every size, the default.
### BEGIN HIDDEN TESTS
rng = check_rng()
query, keys, values = (rng.normal(size=shape) for shape in ((3, 5), (4, 5), (4, 2)))

def compare(given, message, query=query):
    """Without a temperature, or with one."""
    try:
        value, weights = soft_lookup(query.copy(), keys, values, **given)
    except ValueError:
        value = weights = "a ValueError"
    scores = torch.tensor(query) @ torch.tensor(keys).T / given.get("temperature", 1.0)
    right = torch.softmax(scores, -1)
    close = {"rtol": 1e-6, "atol": 1e-6}
    assert_close(weights, right.numpy(), message, name="the weights", **close)
    expected = (right @ torch.tensor(values)).numpy()
    assert_close(value, expected, message, name="the answer", **close)

with check("without a temperature, and with others", points=1):
    compare({}, "Without a temperature it is 1: the softmax of the plain dot products.")
    for T in (0.3, 2, 7.5):
        compare({"temperature": T}, f"temperature={T}: the scores are divided by it, once.")
with check("from 1e-9 to 1e9", points=1):
    for T in (1e-3, 1e-9, 1e9):
        message = f"temperature={T:g} is allowed. Does something overflow, or is it bounded?"
        compare({"temperature": T}, message)
        message = f"temperature={T:g}, a query times {min(T, 1):g}. Is it divided by T as it is?"
        compare({"temperature": T}, message, min(T, 1) * query)
checks_passed("soft_lookup")
### END HIDDEN TESTS


# %% check="soft_lookup_batches" points=2 card=["Any leading batch axes; those of `query`, `keys` and `values` broadcast", "leading axes of `query` and `keys`: values play no part in them"]
# Hidden checks of soft_lookup: batch axes in any of the three arguments, or in none.
### BEGIN HIDDEN TESTS
rng = check_rng()

def compare(batches, names=("the answer", "the weights"), d_v=3):
    """Answers and weights with your own for each query, keys and values alone."""
    ends = (5,), (4, 5), (4, d_v)
    given = [rng.normal(size=(*lead, *end)) for lead, end in zip(batches, ends, strict=True)]
    assert_each_alone(soft_lookup, [[*given, 0.8]], own_axes=(1, 2, 2), names=names)

with check("several queries for one text: each comes out as it does alone", points=0.5):
    compare(((3,), (), ()))
    compare(((1,), (), ()), d_v=1)
with check("a text for each query: each comes out as it does alone", points=0.5):
    compare(((4,), (4,), (4,)))
    compare(((2, 3), (2, 3), (2, 3)))
with check("leading axes that broadcast: each comes out as it does alone", points=0.5):
    for batches in (((2, 1), (3,), (3,)), ((3,), (2, 1), (2, 1)), ((), (2,), ()), ((2, 3), (3,), ())):
        compare(batches)
with check("values with axes of their own: each comes out as it does alone", points=0.5):
    for batches in (((), (), (2,)), ((3,), (), (2, 1)), ((2, 3), (3,), (4, 2, 1))):
        compare(batches, ("the answer",))
checks_passed("soft_lookup")
### END HIDDEN TESTS


# %% check="soft_lookup_errors" points=0.5 card="`temperature <= 0` is a `ValueError`"
# Hidden checks of soft_lookup: temperatures that make no sense, and ones that do.
### SIDE CONDITION: counts once another check of soft_lookup passes.
### BEGIN HIDDEN TESTS
rng = check_rng()
query, keys, values = rng.normal(size=5), rng.normal(size=(4, 5)), rng.normal(size=(4, 2))
for T in (0, 0.0, -1, -0.5):
    with assert_raises(ValueError, f"temperature={T} is a ValueError."):
        soft_lookup(query, keys, values, temperature=T)
for T in (1e-9, 1, 1e9):
    try:
        total = np.sum(soft_lookup(query, keys, values, temperature=T)[1])
    except ValueError:
        total = "a ValueError"
    message = f"temperature={T} is allowed, as is every number above 0: four weights that sum to 1."
    assert_close(total, 1.0, message, name="the sum")
### END HIDDEN TESTS


# %% check="soft_lookup_kinds" points=0.5 card=["The conventions of lesson 1 hold, for both results", "Whole numbers", "the result is at least as precise as the most precise input"]
# Hidden checks of soft_lookup: integers, precision.
### BEGIN HIDDEN TESTS
rng = check_rng()
shapes, names = ((3, 5), (4, 5), (4, 2)), ("the answer", "the weights")
whole = [rng.integers(-1, 2, size=shape) for shape in shapes]
floats = [rng.normal(size=shape) for shape in shapes]
with check("whole numbers: as in float64", points=0.25):
    weights = np.asarray(soft_lookup(*(x + 0.0 for x in whole))[1])
    assert_equal(bool((weights > 0).all()), True, "Every weight is above 0, and none is NaN.")
    for T in (1.0, 2):
        message = f"Whole numbers in all three, temperature {T}: what they give in float64."
        assert_as_floats(lambda *x: soft_lookup(*x, T), whole, message, names=names)  # noqa: B023
with check("one of float64, the others of whole numbers or float32: all digits", points=0.25):
    cases = {
        "keys and values of float64": (whole[0], *floats[1:]),
        "a query of float64": (floats[0], *whole[1:]),
        "keys of float64, the others float32": (whole[0].astype("f4"), floats[1], whole[2].astype("f4")),
    }
    for what, given in cases.items():
        same = soft_lookup(*(x.astype(float) for x in given))
        for name, one, other in zip(names, soft_lookup(*given), same, strict=True):
            expected = np.asarray(other, dtype=float)
            differ = bool(np.ptp(expected) > 1e-6)
            assert_equal(differ, True, "In float64 there are numbers that differ, and no NaN.")
            message = f"{what}: the results are those of the same numbers in float64, in all digits."
            assert_close(one, expected, message, precise=True, name=name, against="in float64")
checks_passed("soft_lookup")
### END HIDDEN TESTS


# %% check="soft_lookup_inputs_unchanged" points=0.5 card="Arguments are not changed"
# Hidden checks of soft_lookup: the inputs stay as they were.
### SIDE CONDITION: counts once another check of soft_lookup passes.
### BEGIN HIDDEN TESTS
@probe
def inputs_afterwards(query, keys, values):
    soft_lookup(query, keys, values, 0.7)
    return query, keys, values

rng = check_rng()
query, keys, values = (rng.normal(size=shape) for shape in ((2, 5), (2, 4, 5), (2, 4, 3)))
assert_unchanged(inputs_afterwards, query=query, keys=keys, values=values)
### END HIDDEN TESTS


# %% [markdown]
# <details><summary>Hint</summary>
#
# The weights are your softmax of your scores, over the last axis. For the average it helps to
# think of the weights of one query as a matrix with a single row. What must its shape be, so that
# a matrix product with `values` sums over the keys? The same trick as for the scores, from the
# other side. Check the temperature before anything else. `0` needs the same care as `-1`.
#
# </details>
#
# ### Ask for words that are no key
#
# The values are the French words. To average them they must be vectors. We take the simplest ones:
# each French word is a **one-hot** vector: a single 1, at the place of that word, and 0 elsewhere.
# So the answer says how much of each French word is in it.

# %%
french_words = list(french.values())
french_values = np.eye(len(french_words))  # (n, d_v): row i is the French word i
value, weights = soft_lookup(word_queries, word_keys, french_values)  # -> (4, d_v), (4, n)
for name, mixture in zip(queries, value):
    order = np.argsort(-mixture.round(9), kind="stable")[:3]  # of equal ones the first
    terms = [f"{mixture[i]:.2f} {french_words[i]}" for i in order]
    print(f"{name:>8} ->", " + ".join(terms), "+ ...")
assert np.allclose(value, weights), "with one-hot values the answer *is* the weights"

# %% tags=["demonstration"]
heatmap(
    weights,
    list(queries),
    words,
    title="vectors made by hand",
    caption="Figure 2. The soft dictionary answers for words it does not hold. Rows sum to 1. "
    "panther asks for two things and gets both: we wrote these vectors so that it comes out like "
    "this.",
    alt="Heat map of weights, four queries by six keys. kitten: cat 0.85. panther: cat 0.80 and "
    "black 0.11. navy: black 0.85. dozing: sleeping 0.85. All other weights are below 0.05.",
)
assert min(weights[0, 0], weights[2, 2], weights[3, 4]) > 0.8, "each finds its neighbour"
assert weights[1, 0] > 0.7 and 0.09 < weights[1, 2] < 0.15, "panther: cat, and some black"

# %% [markdown]
# Remember the trick with one-hot values: **with the identity as values, a look-up returns its
# weights.** It lets us see the weights of functions that do not return them.
#
# **Other values, same keys.** What do we get if the values are not words but parts of speech?
# Nothing in the keys changes. We match on one thing and get another:

# %%
parts = ["noun", "adjective", "verb"]
part_values = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])
part, _ = soft_lookup(word_queries, word_keys, part_values)  # (4, 3): d_v = 3 is not d = 6
for name, row in zip(queries, part):
    print(f"{name:>8} ->", ", ".join(f"{p} {x:.2f}" for p, x in zip(parts, row)))
assert part.argmax(axis=1).tolist() == [0, 0, 1, 2], "noun, noun, adjective, verb"

# %% [markdown]
# <details><summary>Three pictures of query, key and value, and where each breaks</summary>
#
# | picture | query | key | value | where it breaks |
# | --- | --- | --- | --- | --- |
# | a library | what you ask the librarian | the words on the catalogue card | the book | you get one book; attention gives a mixture of all of them |
# | a restaurant | what you feel like | the line on the menu | the dish | guests do not write the menu; in attention all three are learned together |
# | a database | the search condition | the indexed column | the row | a row fits or does not; attention has no "no match": unless every key is forbidden, the weights sum to 1 |
#
# </details>
#
# ## 5. Why soft? Because one can learn through it
#
# A hard look-up also gives an answer for "kitten", if it takes the largest score. So why average?
# Because of **gradients**. A network learns by asking: if I change the query a little, how does
# the answer change? Walk slowly from the query "dog" to the query "cat" and watch the weight of
# "cat".

# %% tags=["demonstration"]
steps = np.linspace(0, 1, 201)
path = (1 - steps[:, None]) * word_keys[1] + steps[:, None] * word_keys[0]  # (201, d)
figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
for temperature, style, place in ((1.0, "-", (0.8, 0.4)), (0.2, "--", (0.62, 0.72)), (0.02, ":", (0.32, 0.85))):
    _, weights = soft_lookup(path, word_keys, french_values, temperature)
    axes.plot(steps, weights[:, 0], style, color="C0")
    axes.text(*place, f"T = {temperature}", color="C0")
    assert np.all(np.diff(weights[:, 0]) >= 0), "the weight of cat never falls on the way"
    if temperature > 0.1:
        assert np.diff(weights[:, 0]).min() > 0, f"T = {temperature} has a slope everywhere"
hard = similarity_scores(path, word_keys).argmax(axis=1) == 0
axes.plot(steps, hard, color="black", linewidth=0.8)
axes.annotate("hard: no slope here", (0.25, 0.0), (0.02, 0.35), arrowprops={"arrowstyle": "->"})
assert np.abs(np.diff(hard.astype(int))).sum() == 1, "hard: one step, and flat elsewhere"
axes.set(xlabel="way from the query dog (0) to the query cat (1)", ylabel="weight of cat")
show(
    figure,
    "Figure 3. The hard look-up is flat but for one jump, and tells a learner nothing. The soft one has a "
    "slope; at T = 0.02 it is nearly as flat, except near the tie in the middle.",
    "The weight of cat along the way from dog to cat. Hard: 0, then a jump to 1 in the middle. "
    "Soft at T = 1: a gentle slope from 0.08 to 0.60. At T = 0.2: an S from 0 to 1. At T = 0.02: "
    "almost the jump.",
)

# %% [markdown]
# torch says the same. Its ready-made soft look-up is `F.scaled_dot_product_attention`; with
# `scale=1.0` it does what your `soft_lookup` does at $T = 1$. (Why it has a scale is the question
# of lesson 3.)

# %%
torch_keys = torch.tensor(word_keys, dtype=torch.float64, requires_grad=True)
torch_values = torch.tensor(french_values, requires_grad=True)
query = torch.zeros(1, 6, dtype=torch.float64, requires_grad=True)  # (1, d)

best = F.linear(query, torch_keys).argmax()  # an index: an integer has no gradient
hard_value = torch_values[best]
soft_value = F.scaled_dot_product_attention(query, torch_keys, torch_values, scale=1.0)
for name, result in (("hard", hard_value), ("soft", soft_value[0])):
    # The gradient of the first feature of the answer; None: nothing depends on it.
    inputs = {"values": torch_values, "keys": torch_keys, "query": query}
    gradients = torch.autograd.grad(result[0], list(inputs.values()), allow_unused=True)
    reached = [word for word, gradient in zip(inputs, gradients) if gradient is not None]
    print(f"{name}: a gradient reaches", ", ".join(reached))
    assert len(reached) == (1 if name == "hard" else 3), "hard: the values only; soft: all"

# %% [markdown]
# Through a hard look-up the values can learn. The query cannot, and the keys cannot either: nobody
# tells the query where to look, or the keys by what to be found. So let us **learn** a query
# softly. It starts at zero: it asks for nothing. We want the answer "chat". Nobody says that the
# query should be an animal or cat-like.

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
for step in range(300):
    answer = F.scaled_dot_product_attention(query, torch_keys, torch_values, scale=1.0)[0]
    loss = -answer[french_words.index("chat")].log()  # small when the answer is mostly "chat"
    if step in (0, 10, 299):
        print(f"step {step:3}: weight of chat {answer[0].item():.2f}")
    (gradient,) = torch.autograd.grad(loss, query)
    with torch.no_grad():
        query -= 0.5 * gradient
learned = query.detach()[0]
print({name: round(x, 1) for name, x in zip(dimensions, learned.tolist())})
assert answer[0] > 0.95, "the answer is mostly chat"
assert learned[1] == learned.max() and learned[0] > 0, "learned: cat-like, and animal"

# %% [markdown]
# The gradient found "animal" and "cat-like" by itself, and pushed "colour" and "action" below
# zero. With the hard look-up there is no gradient to follow. (Hard choices can be trained by other
# means, for example by rewarding random tries, as in "hard attention" of Xu and others, 2015. It
# is slower and noisier.)
#
# ## 6. Optional reading: the same idea is older (kernel regression)
#
# You may skip this section: nothing later needs it.
#
# In 1964 Nadaraya and Watson, independently, estimated a curve from noisy points like this: to
# guess the value at a new place $x$, average the values $y_i$ of **all** known points, and give
# near points more weight, for example $e^{-(x - x_i)^2 / 2h^2}$. That *is* a soft look-up: the
# query is $x$, the keys are the $x_i$, the values are the $y_i$. (The function that says how much
# a near point weighs is called the **kernel**, hence the name.) Only the similarity differs: a
# distance in place of a dot product.
#
# Even that difference can be removed:
#
# $$-\frac{(x - x_i)^2}{2} = x \cdot x_i - \frac{x_i^2}{2} - \frac{x^2}{2}
# = (x, 1) \cdot \left(x_i, -\frac{x_i^2}{2}\right) - \frac{x^2}{2}$$
#
# The last term is the same for every key, so softmax ignores it. The rest is the dot product of a
# query with two features and a key with two features. Divide by $T = h^2$, and your function does
# kernel regression:

# %%
rng = np.random.default_rng(7)
known_x = np.sort(rng.uniform(0, 2 * np.pi, size=60))
known_y = np.sin(known_x) + rng.normal(scale=0.3, size=60)  # the true curve is a sine
curve_keys = np.stack([known_x, -(known_x**2) / 2], axis=-1)  # (60, 2)
new_x = np.linspace(0, 2 * np.pi, 200)
curve_queries = np.stack([new_x, np.ones(200)], axis=-1)  # (200, 2)

guess, _ = soft_lookup(curve_queries, curve_keys, known_y[:, None], temperature=0.1)
by_the_book = [
    np.average(known_y, weights=np.exp(-((x - known_x) ** 2) / (2 * 0.1))) for x in new_x
]
difference = np.abs(guess[:, 0] - by_the_book).max()
print("largest difference to Nadaraya-Watson:", round(float(difference), 9))
assert np.allclose(guess[:, 0], by_the_book), "your soft_lookup is kernel regression"

# %% tags=["demonstration"]
figure, panels = plt.subplots(1, 3, figsize=(8.1, 3.0), layout="constrained", sharey=True)
mistakes = []
for axes, temperature, told in zip(panels, (0.0005, 0.1, 10.0), ("repeats the noise", "", "nearly flat")):
    guess, _ = soft_lookup(curve_queries, curve_keys, known_y[:, None], temperature)
    mistakes.append(float(np.sqrt(np.mean((guess[:, 0] - np.sin(new_x)) ** 2))))
    axes.scatter(known_x, known_y, s=12, color="grey")
    axes.plot(new_x, np.sin(new_x), ":", color="black")
    axes.plot(new_x, guess[:, 0])
    axes.text(6.3, 1.1, told, color="C0", ha="right")
    axes.set(title=f"T = {temperature}, error {mistakes[-1]:.2f}", xlabel="query x")
panels[0].set_ylabel("value y")
assert mistakes[1] < 0.15, "T = 0.1 is close to the true curve"
assert min(mistakes[0], mistakes[2]) > 1.5 * mistakes[1], "colder and hotter are further off"
show(
    figure,
    "Figure 4. Dots are keys and values, dotted is the true curve, blue the soft look-up. Between too cold "
    "and too hot the average removes noise. (error: root mean square distance to the true curve)",
    "Three panels with the same 60 noisy points of a sine. T = 0.0005: the curve jumps from "
    "point to point. T = 0.1: it follows the sine. T = 10: nearly flat. The errors (rms) are "
    f"{mistakes[0]:.2f}, {mistakes[1]:.2f} and {mistakes[2]:.2f}.",
)

# %% [markdown]
# What attention adds to 1964: it does not only average with given keys. It **learns** what the
# queries, the keys and the values are.
#
# ## 7. Why values are not the keys
#
# In section 4 we matched on meaning and got French. There, two tables were given. In a network
# there is one vector for each item, and the model has to make the key and the value from it. Could
# it save one table and use the key as the value?
#
# Look at the naive version first. Ask our dictionary for "kitten" with the keys as values:

# %%
echo, _ = soft_lookup(queries["kitten"], word_keys, word_keys)
print({name: round(float(x), 2) for name, x in zip(dimensions, echo)})
assert echo[0] > 0.8 and np.abs(echo[2:]).max() < 0.1, "animal comes back, and little else"

# %% [markdown]
# We asked for something like an animal, cat-like, and we learn that it is an animal, cat-like. An
# echo. A useful look-up matches on what you know and returns what you do **not** know.
#
# So train one. A shelf holds six toy animals in random colours: "black cat, white dog, ...". The
# question: *what colour is the cat?* One must **match on the animal** and **get the colour**.
# The colours are drawn anew for every shelf, so nothing can be learned by heart.
#
# Each item is one vector: the animal one-hot, then the colour one-hot.

# %%
animals = ["cat", "dog", "horse", "cow", "sheep", "goat", "hen", "duck"]
colours = ["black", "white", "brown", "grey", "red", "blue", "green", "gold"]


def shelves(size, generator):
    """Random shelves: question (size, 8), items (size, 6, 16), place and colour of the answer."""
    animal = torch.rand(size, 8, generator=generator).argsort(-1)[:, :6]  # all different
    colour = torch.randint(8, (size, 6), generator=generator)
    items = torch.cat([F.one_hot(animal, 8), F.one_hot(colour, 8)], dim=-1).float()
    place = torch.randint(6, (size, 1), generator=generator)  # which item is asked for
    question = F.one_hot(animal.gather(1, place)[:, 0], 8).float()
    return question, items, place[:, 0], colour.gather(1, place)[:, 0]


# %% [markdown]
# The model is a soft look-up with learned matrices. One makes the query from the question, one
# makes the keys from the items, one makes the values from the items, and one reads the colour from
# the answer. With `tied=True` the values **are** the keys. `width` is the number of features of
# query, key and value.


# %%
class ColourLookup(nn.Module):
    def __init__(self, width, tied):
        super().__init__()
        self.make_query = nn.Linear(8, width, bias=False)
        self.make_key = nn.Linear(16, width, bias=False)
        self.make_value = self.make_key if tied else nn.Linear(16, width, bias=False)
        self.read_colour = nn.Linear(width, 8, bias=False)

    def forward(self, question, items):
        return self.read_colour(self.look_up(question, items, self.make_value(items)))

    def look_up(self, question, items, values):  # (size, 8), (size, 6, 16), (size, 6, d_v)
        query = self.make_query(question)[:, None]  # (size, 1, width)
        found = F.scaled_dot_product_attention(query, self.make_key(items), values, scale=1.0)
        return found[:, 0]  # (size, d_v)


# %% tags=["demonstration", "folded"]
# Trains the look-up, and examines it on new shelves: Shift+Enter runs it. Section 7 reads it.
def train_colour_lookup(width, tied, seed, steps=200, more_steps=()):
    """Train and examine; with more_steps=(600,) train on to 600 steps and examine again."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = ColourLookup(width, tied)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    results = {}
    for step in range(1, max(steps, *more_steps, 0) + 1):
        question, items, _, colour = shelves(64, generator)
        loss = F.cross_entropy(model(question, items), colour)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (steps, *more_steps):
            results[step] = examine(model)
    return model, results


@torch.no_grad()
def examine(model):
    """Share of right colours, and mean weight on the right item, on 2,000 new shelves."""
    question, items, place, colour = shelves(2000, torch.Generator().manual_seed(123456))
    right = (model(question, items).argmax(-1) == colour).float().mean().item()
    one_hot_values = torch.eye(6).expand(2000, 6, 6)  # so the answer is the weights
    weights = model.look_up(question, items, one_hot_values)  # (size, 6)
    return right, weights.gather(1, place[:, None]).mean().item()


# %% [markdown]
# We train every model for 200 steps, and the tied ones also for 600: what looks impossible may
# only be slow.
#
# **Predict, then run.** With values tied to the keys: will the model fail at every width, at small
# widths only, or at no width?

# %% tags=["demonstration", "guess"]
guess_tied = "every"  # write "every", "small" or "none"

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Trained numbers: they differ a little from machine to machine.
widths, seeds = (2, 3, 4, 6), (0, 1, 2)
names = ("separate, 200 steps", "tied, 200 steps", "tied, 600 steps")
accuracy = {name: [] for name in names}  # each one becomes (widths, seeds)
on_item = {name: [] for name in names}
print("share right", *(f"{name:>19}" for name in names))
for width in widths:
    runs = {name: [] for name in names}
    for seed in seeds:
        runs[names[0]].append(train_colour_lookup(width, False, seed)[1][200])
        _, results = train_colour_lookup(width, True, seed, more_steps=(600,))
        runs[names[1]].append(results[200])
        runs[names[2]].append(results[600])
    for name in names:
        accuracy[name].append([right for right, _ in runs[name]])
        on_item[name].append([weight for _, weight in runs[name]])
    print(f"width {width}:", *(f"{np.mean(accuracy[name][-1]):20.2f}" for name in names))

# %% tags=["demonstration"]
learned = [np.mean(right) > 0.9 for right in accuracy["tied, 600 steps"]]  # one for each width
found = "none" if all(learned) else "small" if learned[-1] else "every"
reply("guess_tied", guess_tied, found, "In few dimensions one vector did not learn both jobs.")

# %% tags=["demonstration", "nbval-ignore-output"]
separate, early, late = (np.array(accuracy[name]) for name in names)  # each (widths, seeds)
figure, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
for numbers, style, colour in zip((separate, early, late), ("o-", "s--", "^:"), ("C0", "C1", "black")):
    axes.plot(widths, numbers.mean(axis=1), style[1:], color=colour)
    axes.plot(widths, numbers, style[0], color=colour, markersize=4)
axes.axhline(1 / 8, color="grey", linewidth=0.8)
axes.text(6, 1 / 8 + 0.02, "chance", color="dimgrey", ha="right")
axes.text(2, 0.93, "separate, 200 steps", color="C0")
axes.text(4.1, 0.65, "tied, 200 steps", color="C1")
axes.text(3.4, 0.85, "tied, 600 steps", ha="right")
axes.annotate("600 steps are\nnot enough here", (3, 0.5), (2.0, 0.62), arrowprops={"arrowstyle": "->"})
axes.set(xlabel="width (features of query, key and value)", ylabel="share of right colours")
axes.set(ylim=(0, 1.05), xticks=widths)

assert separate.min() > 0.95, "separate values: solved at every width, on every seed"
assert early[:3].max() < 0.9, "tied, 200 steps: not solved at widths 2, 3 and 4"
assert late[:2].max() < 0.65, "tied, 600 steps: still not solved at widths 2 and 3"
assert late[2:].min() > 0.95, "tied, 600 steps: solved at widths 4 and 6"
means = np.stack([numbers.mean(axis=1) for numbers in (separate, early, late)])  # (3, widths)
spoken = [", ".join(f"{number:.2f}" for number in row) for row in means]
show(
    figure,
    "Figure 5. Tied values cost width and training time. Do not conclude that tying makes the task "
    "impossible: from width 4 on time is enough. (One dot a seed, lines are means.)",
    "Share of right colours against width 2, 3, 4, 6, means of three seeds. Separate values after "
    f"200 steps: {spoken[0]}. Tied after 200 steps: {spoken[1]}. Tied after 600 steps: "
    f"{spoken[2]}. Chance is 0.125.",
    text_table(means, list(names), [str(width) for width in widths], corner="mean \\ width"),
)

# %% [markdown]
# Is it simply that the separate model has one matrix more? It has $48 \cdot \text{width}$
# parameters, the tied one $32 \cdot \text{width}$. So compare separate values at width 2 with tied
# values at width 3: 96 parameters each. The separate ones solve the task, the tied ones do not. And
# with more time? Outside this notebook we trained the tied model at width 3 for 4,000 steps: on
# three seeds it was right in 54 to 57 % of the cases. So at width 3 neither the parameters nor, as
# far as we tried, the time is what is missing. What is left is room: that is our explanation, not a
# proof.
#
# Why can a wider tied model do it? The matrix that makes the query is still free. It can look at
# those features of the key that hold the animal, and ignore those that hold the colour. So one
# vector carries both, side by side, if it has room for both. To arrange them so takes longer to
# learn. When there is too little room, the two jobs fight. We can see the fight in the weights at
# width 3, after 600 steps:

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
shelf = ["black cat", "white dog", "brown horse", "red cow", "black sheep", "blue goat"]
which_colour = [colours.index(item.split()[0]) for item in shelf]
items = torch.cat([torch.eye(8)[:6], torch.eye(8)[which_colour]], dim=-1)  # (6, 16)
all_items = items.expand(6, 6, 16)  # the same shelf for each of the six questions
figure, panels = plt.subplots(1, 2, figsize=(8.1, 3.9), layout="constrained")
tables = ""
diagonals = []
for axes, tied in zip(panels, (False, True)):
    model, _ = train_colour_lookup(width=3, tied=tied, seed=0, steps=600)
    with torch.no_grad():
        weights = model.look_up(torch.eye(8)[:6], all_items, torch.eye(6).expand(6, 6, 6))
    name = "values = keys" if tied else "separate values"
    draw_heatmap(axes, weights, animals[:6], shelf, row_label="question", column_label="item")
    axes.set_title(f"{name}, width 3")
    tables += f"{name}\n\n{text_table(weights, animals[:6], shelf)}\n\n"
    diagonals.append(weights.diagonal())
    print(f"{name}: mean weight on the item asked for {weights.diagonal().mean():.2f}")
assert np.min(on_item[names[0]][1]) > 0.9, "separate, width 3: finds the item (3 seeds)"
assert np.max(on_item[names[2]][1]) < 0.7, "tied, width 3: does not (3 seeds)"
kept = ", ".join(f"{weight:.2f}" for weight in diagonals[1])
show(
    figure,
    "Figure 6. Left, each question finds its animal. Right, the same width has to hold the colour as well: "
    "some do, others do not. (Another seed gives another right map.)",
    "Two heat maps, six questions by six items. Left, separate values: all of the diagonal is at "
    f"least {diagonals[0].min():.2f}. Right, values tied to keys: the diagonal is {kept}; where it "
    "is small, the weight lies on other items.",
    tables,
)

# %% [markdown]
# So the honest sentence is: **without separate values this model needs more width and more steps.** A key
# says what an item can be found by, a value says what it gives. Two vectors let a model choose each
# freely. (Some models do share parts of them, to save memory. They may pay with width, with training
# time or with accuracy; lesson 11 has one that does not seem to.)
#
# ## 8. Why queries are not the keys
#
# In the toy shop the question and the items were different things. In a sentence they are not:
# every word asks, and every word is asked. Each word has one vector $x_i$. Do we need two
# matrices, one for queries and one for keys? Suppose we share one: $q_i = k_i$. Then
#
# $$\text{score}_{ij} = k_i \cdot k_j = k_j \cdot k_i = \text{score}_{ji}$$
#
# The score matrix is **symmetric**. Does that forbid relations in one direction? Not all of them: *black*
# can look at *cat* while *cat* looks at itself. A long key for *cat* does that, because softmax divides each
# row by a sum of its own: symmetric scores need not give symmetric weights. But what of a **circle**, where
# every day of the week shall look at the **next** day?
#
# **Predict, then run.** We train both versions on it. How much weight will the shared one put on the next
# day, on average?

# %% tags=["demonstration", "guess"]
guess_next = 1.0  # write a number between 0 and 1

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
next_day = torch.tensor([1, 2, 3, 4, 5, 6, 0])


def train_days(shared, seed, width=4, steps=400):
    """Learn one query and one key vector a day; return the weights (7, 7) and the loss."""
    generator = torch.Generator().manual_seed(seed)
    day_queries = (0.5 * torch.randn(7, width, generator=generator)).requires_grad_()
    day_keys = (0.5 * torch.randn(7, width, generator=generator)).requires_grad_()
    if shared:
        day_keys = day_queries
    optimizer = torch.optim.Adam([day_queries] if shared else [day_queries, day_keys], lr=0.05)
    for _ in range(steps):
        loss = F.cross_entropy(F.linear(day_queries, day_keys), next_day)  # scores (7, 7)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.softmax(F.linear(day_queries, day_keys), -1).detach(), loss.item()


today = torch.arange(7)
outcomes = {True: [], False: []}
for shared in (False, True):
    for seed in (0, 1, 2):
        weights, loss = train_days(shared, seed)
        ahead, back, itself = (weights[today, (today + k) % 7].mean().item() for k in (1, -1, 0))
        print(
            f"{'shared' if shared else 'separate':>8}, seed {seed}: loss {loss:.3f}, weight on "
            f"next {ahead:.2f}, previous {back:.2f}, itself {itself:.2f}"
        )
        outcomes[shared].append((loss, ahead, back, itself))

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
came_out = np.mean([ahead for _, ahead, _, _ in outcomes[True]])
reply("guess_next", guess_next, came_out, "As much as on the day before, and most on itself.", within=0.1)

# %% [markdown]
# With shared vectors a circle is impossible, and the proof is short. Look at the largest score between
# two different days, say A and B. Since score(A, B) = score(B, A), it is the largest for A *and* for
# B, among the other days. So A and B look at each other (and the one with the longer key at itself
# at least as much). But in a circle of seven no two days are each other's next.

# %% tags=["demonstration", "nbval-ignore-output"]
figure, panels = plt.subplots(1, 2, figsize=(8.1, 4.2), layout="constrained")
tables = ""
for axes, shared in zip(panels, (False, True)):
    weights, _ = train_days(shared, seed=0)
    name = "queries = keys" if shared else "separate queries and keys"
    draw_heatmap(axes, weights, days, days)
    axes.set_title(name)
    tables += f"{name}\n\n{text_table(weights, days, days)}\n\n"
    if shared:  # next and previous, for Wednesday
        for place in (1, 3):
            axes.add_patch(plt.Rectangle((place, 2), 1, 1, fill=False, edgecolor="tab:red", lw=2))
    best = weights.argmax(-1)
    assert torch.equal(best, today if shared else next_day), f"{name}: another largest weight"

for loss, ahead, back, itself in outcomes[True]:  # three seeds
    assert loss > math.log(3), "shared: the loss stays above log 3"
    assert abs(ahead - back) < 0.01 and itself > ahead, "shared: next = previous < itself"
for loss, ahead, _, _ in outcomes[False]:
    assert loss < 0.01 and ahead > 0.99, "separate: looks at the next day"
show(
    figure,
    "Figure 7. Trained to look at the next day. Right, shared vectors: next and previous get the same weight "
    "(framed for Wednesday), and each day looks most at itself. No training mends that: see the proof.",
    "Two heat maps, seven days by seven days. Left: 1.00 on the next day in each row. Right: 0.41 "
    "on the day itself, 0.22 on the next and on the previous day, little elsewhere.",
    tables,
)

# %% [markdown]
# <details><summary>Optional proof: the shared loss can never be below log 3 = 1.0986</summary>
#
# The loss of day $i$ is $\log \sum_j e^{s_{ij} - s_{i,i+1}}$. Keep only three terms of the sum:
# next, itself, previous:
#
# $$\text{loss}_i \ge \log\left(1 + e^{s_{ii} - s_{i,i+1}} + e^{s_{i,i-1} - s_{i,i+1}}\right)$$
#
# This function is convex in the two exponents. So the mean loss is at least its value at the
# *mean* exponents. Going once around the circle, the mean of $s_{i,i-1} - s_{i,i+1}$ is 0, because
# $s_{i,i-1} = s_{i-1,i}$ is the next-score of the day before. And the mean of $s_{ii} - s_{i,i+1}$
# is half the mean of $|k_i - k_{i+1}|^2$, so it is at least 0. What remains is $\log(1 + 1 + 1)$.
# Our training reached 1.508 on every seed. The bound is not sharp, but it is a wall. (Equality
# would need all keys equal, and then the loss is $\log 7$.)
# Nor is it a matter of width: change `width` and run again. Widths from 2 to 32 all ended at 1.508.
#
# </details>
#
# ### Short answer: `answer_shared`
#
# A layer makes queries and keys with one shared matrix ($q_i = k_i$). Exactly one of these
# attention patterns is **impossible** for it, even approximately, at any width. Which one?
#
# * **"a"**: Every word looks at itself.
# * **"b"**: Every word, the verb included, looks at the verb.
# * **"c"**: Animals look at the animals, colours look at the colours (each with equal weights).
# * **"d"**: Each of rock, paper and scissors looks at the one that beats it.

# %% answer="answer_shared"
### BEGIN SOLUTION
answer_shared = "d"
### END SOLUTION

# %% check="answer_shared" points=1
check_answer("answer_shared", answer_shared)

# %% [markdown]
# Do not learn too much from this. The **scores** are symmetric, the **weights** are not. What is lost are
# circles, and that all words look away from themselves: the word with the longest key gives itself at
# least as much weight as any other word. Sharing queries and keys can work in a large model: the Reformer
# (Kitaev and others, 2020) normalises the keys and lets a word look at itself only if nothing else is
# left. That is the trouble you see on the diagonal of Figure 7.

# %% [markdown]
# ## 9. Find the silent bug
#
# The next cell serves a whole batch: three sentences with three words each, every word is a query.
# Once it served a single sentence, with `n_q` queries, `n` keys and `scores` of shape `(n_q, n)`.
# Then someone added the batch axis.
#
# It runs. The shapes are right. Every weight is between 0 and 1, and nine queries have a total
# weight of nine, as it should be. Still **one** of the lines A to D is wrong. Experiment in the
# empty cell below before you answer. Print something that *must* hold for a look-up.


# %% locked="silent_bug" tags=["demonstration"]
def look_up_sentences(queries, keys, values, temperature):
    """queries (batch, n_q, d), keys (batch, n, d), values (batch, n, d_v)"""
    scores = similarity_scores(queries, keys[:, None])  # line A: (batch, n_q, n)
    scores = scores / temperature  # line B: (batch, n_q, n)
    weights = softmax(scores, axis=1)  # line C: (batch, n_q, n)
    answers = weights @ values  # line D: (batch, n_q, d_v)
    return answers, weights


sentences = ["black cat sleeping", "white dog running", "black dog sleeping"]
places = [[words.index(word) for word in sentence.split()] for sentence in sentences]
X = word_keys[places]  # (batch, n, d) = (3, 3, 6)
X = X + np.array([2, 0, 0, 0, 0, 0])  # all words of a story about animals
answer, weights = look_up_sentences(X, X, X, temperature=2.0)
print("answer", answer.shape, " weights", weights.shape, " NaN:", bool(np.isnan(weights).any()))
print("weights from", weights.min().round(2), "to", weights.max().round(2))
print("total weight of the nine queries:", weights.sum().round(6))

# %%
# Your experiments with look_up_sentences.

# %% [markdown]
# ### Short answer: `answer_silent_bug`
#
# * **"a"**: Line A. Some queries are compared with keys of another sentence.
# * **"b"**: Line B. A high temperature makes the weights more extreme, not more even.
# * **"c"**: Line C. The weights of a query are not its shares among the keys.
# * **"d"**: Line D. Values of one sentence get into the answers of another.

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "c"
### END SOLUTION

# %% check="answer_silent_bug" points=1
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# ### Exercise: `mended_look_up`
#
# > Difficulty: ●●○○○ · Importance: ●●●●○
# >
# > You should spend 5-10 minutes on this exercise.
#
# Copy `look_up_sentences` into this cell and fix it.
#
# * `queries` `(batch, n_q, d)`, `keys` `(batch, n, d)`, `values` `(batch, n, d_v)`: all these sizes
#   may differ.
# * Returns the answers `(batch, n_q, d_v)` and the weights `(batch, n_q, n)`. Each query looks up in
#   the keys and values of its own sentence, with the scores divided by `temperature`.
# * No errors are graded here.


# %% answer="mended_look_up"
def mended_look_up(queries, keys, values, temperature):
    """Soft look-up of many queries in each of several sentences.

    queries: (batch, n_q, d), keys: (batch, n, d), values: (batch, n, d_v).
    Returns answers (batch, n_q, d_v) and weights (batch, n_q, n).
    """
    ### BEGIN SOLUTION
    scores = similarity_scores(queries, keys[:, None])
    weights = softmax(scores / temperature)
    return weights @ values, weights
    ### END SOLUTION


# %% check="mended_look_up" points=2 means="Each query looks up in its own sentence, also where all sizes differ." card=["Each query looks up in the keys and values of its own sentence, with the scores divided by `temperature`", "Returns the answers `(batch, n_q, d_v)` and the weights `(batch, n_q, n)`"]
rng = check_rng()
queries, keys = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 5, 4))
values = rng.normal(size=(3, 5, 6))
tensors = [torch.tensor(array) for array in (queries, keys, values)]
expected = F.scaled_dot_product_attention(*tensors, scale=1 / 0.7).numpy()
answers, weights = mended_look_up(queries.copy(), keys.copy(), values.copy(), 0.7)
with check("each query's weights sum to 1", points=0.5):
    message = "Three sentences, two queries each: the weights of each query sum to 1 (the last axis)."
    assert_close(np.sum(weights, axis=-1), np.ones((3, 2)), message, name="the sums")
with check("as torch, with sizes that all differ", points=1):
    message = "Does each query look up in its own sentence, with the softmax over the keys?"
    assert_close(answers, expected, message, name="the answers")
with check("one query in each of two sentences: as among the others", points=0.5, side=True):
    message = "The weights are no constant, and none is NaN."
    assert_equal(bool(np.ptp(np.asarray(weights)) > 1e-3), True, message)
    message = "One query in each of two sentences. Where the two differ, at least one is wrong."
    alone = mended_look_up(queries[:2, :1], keys[:2], values[:2], 0.7)
    for name, one, all_of_them in zip(("the answers", "the weights"), alone, (answers, weights)):
        others = np.asarray(all_of_them)[:2, :1]
        assert_close(one, others, message, name=name, against="with the others")
checks_passed("mended_look_up")


# %% check="mended_look_up_sizes" points=1 card=["all these sizes may differ", "Returns the answers `(batch, n_q, d_v)` and the weights `(batch, n_q, n)`", "Whole numbers", "Arguments are not changed"]
# Hidden checks of mended_look_up: sizes that differ, whole numbers, the inputs afterwards.
### BEGIN HIDDEN TESTS
@probe
def inputs_afterwards(queries, keys, values):
    mended_look_up(queries, keys, values, 2.0)
    return queries, keys, values

def torch_looks_up(queries, keys, values, temperature):
    queries, keys, values = (torch.tensor(x) for x in (queries, keys, values))
    weights = torch.softmax(queries @ keys.mT / temperature, dim=-1)
    return (weights @ values).numpy(), weights.numpy()

rng = check_rng()
names = ("the answers", "the weights")

def drawn(batch, n_q, n, d, d_v):
    return [rng.normal(size=(batch, *size)) for size in ((n_q, d), (n, d), (n, d_v))]

def compare(sizes, temperature):
    message = f"temperature {temperature}: as torch, for the keys and values of its own sentence."
    cases = {f"(batch, n_q, n, d, d_v) = {sizes}": (*drawn(*sizes), temperature)}
    assert_as_reference(mended_look_up, torch_looks_up, cases, message, names=names)

with check("sizes that differ", points=0.5):
    for sizes, temperature in (((2, 3, 4, 5, 6), 2.0), ((5, 2, 3, 4, 1), 0.4), ((1, 4, 2, 3, 5), 1)):
        compare(sizes, temperature)
with check("queries of whole numbers: as in float64", points=0.25):
    _, keys, values = drawn(2, 3, 4, 5, 6)
    given = rng.integers(-1, 2, size=(2, 3, 5)), keys, values
    answers, _ = mended_look_up(*given, 3.0)
    assert_equal(bool(np.ptp(answers) > 1e-3), True, "The answers differ, and none is NaN.")
    message = "Queries of whole numbers beside other keys. Check first: are fractions cut off?"
    assert_as_floats(lambda *x: mended_look_up(*x, 3.0), given, message, names=names)
with check("the arguments stay as they are", points=0.25, side=True):
    queries, keys, values = drawn(2, 3, 4, 5, 6)
    assert_unchanged(inputs_afterwards, queries=queries, keys=keys, values=values)
checks_passed("mended_look_up")
### END HIDDEN TESTS


# %% [markdown]
# Keep the lesson of this bug: **square shapes hide mistakes.** Test with sizes that all differ
# (`n_q`, `n`, `d`, `d_v`, batch), and check the sum over the axis you mean, not the sum of
# everything.
#
# ## 10. Sentences you will read elsewhere
#
# | you will read | what is right | seen in |
# | --- | --- | --- |
# | "The dot product measures similarity." | Direction **and** length: long keys are loud. | BLACK |
# | "Softmax is a soft maximum." | A soft *arg*max: it says where the maximum is. | section 3 |
# | "Temperature to zero gives the argmax." | Only without ties: equals share for ever. | "animal" |
# | "Soft weights always have a gradient." | Cold: nearly 0, except near a tie. | Figures 1, 3 |
# | "Values must not be the keys." | They may, given room and time to train. | Figure 5 |
# | "Shared Q and K: symmetric attention." | Symmetric *scores*; weights need not be. | section 8 |
# | "They sum to 1, so they are right." | Only a sum *along the keys* says something. | section 9 |
#
# ## 11. In your own words
#
# ### Written answer: `written_three_roles` (3 points)
#
# A friend says: "A word has one vector. Attention makes three out of it: query, key and value.
# That is wasteful, one would do." Answer in 6 to 10 sentences. Say what each of the three is for,
# using one sentence of your own as an example. Say what is lost if the value is tied to the key,
# and what is lost if the query is tied to the key. Use a number or an argument of this lesson for
# each, and say how far it carries.

# %% [markdown] written="three_roles" points=3
# ### BEGIN SOLUTION
# In "the black cat is sleeping", the word *black* asks: which noun do I describe? Its query is
# made so that it fits keys that say "I am a noun". The key of *cat* says by what *cat* can be
# found, and the value of *cat* says what it gives to the word that found it, for example its
# gender, which decides the form of *noir*. So one matches on one thing and gets another.
#
# If the value is tied to the key, one vector must hold both. In the toy shop the tied model
# answered about half at width 3 after 600 steps, where separate values reached 100 % after 200. At
# width 6 both were at 100 %. So tying is not impossible, it costs room and training time. If the
# query is tied to the key, the scores are symmetric. The largest score between two words is then
# mutual, so a circle such as "every day looks at the next day" cannot be represented: training gave
# 0.22 to the next and 0.22 to the previous day on all seeds. That is a proof, no question of width.
# But it does not forbid every relation in one direction: weights are normalised per row, and a long
# key can be looked at without looking back.
#
# **Marking scheme** (3 points). 1 point: the three roles are told apart with an example (what is
# sought, what it is found by, what is given). 1 point: tied values: the two jobs share the room,
# with a number or argument, and the limit (a wide tied model succeeds). 1 point: tied queries:
# symmetric scores, with the argument or the number, and a relation that becomes impossible. Half a
# point is lost if it is claimed that tying always fails or that the weights are symmetric.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > In "we sat on the bank of the river", *bank* asks what kind of place it is. *river* is found because
# > it is a thing beside which something can lie; what it gives is "water". Found by one thing, giving
# > another.
#
# Good: one example carries all three roles, and the last line says why key and value differ.
#
# > The query is what a word looks for, the key is what the word is, and the value says how important
# > it is.
#
# Plausible, and bad: how much a word counts is its *weight*, made of query and key. The value is what
# it hands on.
#
# </details>

# %% [markdown]
# ## 12. Summary
#
# | concept | formula | code | purpose |
# | --- | --- | --- | --- |
# | score | $q \cdot k_i$ | `similarity_scores(query, keys)` | how well a key fits the query |
# | softmax | $e^{x_i} / \sum_j e^{x_j}$ | `softmax(x, axis)` | weights that sum to 1 |
# | temperature | $x_i / T$ | `temperature=T` | cold: one key; hot: average of all |
# | soft look-up | $\sum_i w_i v_i$ | `soft_lookup(query, keys, values)` | answers any query |
# | query | what is sought | `make_query(question)` | says what is looked for; separate from the key, so that one-way circles are possible |
# | key | what it is found by | `make_key(items)` | compared with the query |
# | value | what it gives | `make_value(items)` | averaged, never compared |
#
# ## Questions to check yourself
#
# <details><summary>1. You add 100 to every score, or multiply every score by 100.
# What happens to the weights?</summary>
#
# Adding changes nothing: the factor $e^{100}$ cancels. Multiplying is a temperature of 1/100: if
# the largest score leads by 0.1 or more, nearly all the weight goes to it (a lead of 0.1 becomes
# 10, a ratio of $e^{10} \approx 22{,}000$). Equal scores go on sharing, and tiny leads stay small.
#
# </details>
#
# <details><summary>2. Can a soft look-up return more than the largest stored value?</summary>
#
# No. The weights are not negative and sum to 1. So in every feature the answer lies between the
# smallest and the largest stored value. (A row that may look at nothing gives 0.)
#
# </details>
#
# <details><summary>3. Keys (8, 5, 16), values (8, 5, 3), one query (16,): which shapes come
# out?</summary>
#
# The query serves all 8 batches: the answer is (8, 3), the weights are (8, 5).
#
# </details>
#
# <details><summary>4. All keys are the same vector. What is the answer to any query?</summary>
#
# All scores are equal, so all weights are $1/n$: the plain average of the values.
#
# </details>
#
# <details><summary>5. Why is a row of scores that is all -inf given zeros, and not 1/n?</summary>
#
# -inf means "may not be looked at". Weights of $1/n$ would let the query look at everything it
# must not see, for example at padding or at the future.
#
# </details>
#
# ## Where it comes from
#
# * Nadaraya (1964), Watson (1964): regression by a weighted average of all known values.
# * Bridle (1990): the name softmax, for the outputs of a network.
# * Graves, Wayne and Danihelka (2014), *Neural Turing Machines*: look-up by content in a learned
#   memory; cosine times a "key strength", which is $1/T$.
# * Bahdanau, Cho and Bengio (2015): soft alignment in translation (lesson 1).
# * Xu and others (2015), *Show, Attend and Tell*: soft and hard attention compared.
# * Miller and others (2016), *Key-Value Memory Networks*; Daniluk and others (2017),
#   *Frustratingly Short Attention Spans in Neural Language Modeling*: keys and values told apart.
# * Vaswani and others (2017), *Attention Is All You Need*: queries, keys and values, all learned.
# * Kitaev, Kaiser and Levskaya (2020), *Reformer*: shared queries and keys.
# * Zhang, Lipton, Li and Smola, *Dive into Deep Learning*: attention told from kernel regression.
#
# ## What comes next
#
# Lesson 3 asks all queries at once, divides the scores by $\sqrt{d_k}$, and adds masks. You now
# know every part of its formula but one: why exactly that temperature.
