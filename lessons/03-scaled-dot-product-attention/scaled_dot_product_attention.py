# %% [markdown]
# ## What you will be able to do
#
# - **Compute** scaled dot-product attention on paper, in NumPy and in torch, for one query and for
#   any number of batches.
# - **Explain** why the scores are divided by $\sqrt{d_k}$, and **measure** what happens without it.
# - **Build** a padding mask, and **translate** a mask between libraries that mean opposite things
#   by `True`.
# - **Handle** a query that may attend to nothing: zeros, no NaN, finite gradients.
# - **Draw** weights as a map that can be compared with other maps.
# - **Measure** how time and memory grow with the length of the text.

# %% tags=["setup"]
import math
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.batteries import (
    assert_as_floats,
    assert_as_reference,
    assert_each_alone,
    assert_refused,
    assert_results,
    assert_slopes,
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
from lesson_kit.drawn_maps import drawn_map
from lesson_kit.earlier import softmax
from lesson_kit.figures import show, text_table
from lesson_kit.guesses import puzzle, reply
from lesson_kit.progress import note, progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# ## Before you begin: three questions on earlier lessons
#
# Answer from memory first, and look it up only if you must: you remember something longer if you
# recall it yourself than if you read it again.
#
# (Lesson 2.) What does `softmax` give for the scores 5, 5 and minus infinity?
#
# * `"a"`: 1/3 each
# * `"b"`: 1/2, 1/2 and 0
# * `"c"`: NaN

# %% answer="answer_again_masked"
### BEGIN SOLUTION
answer_again_masked = "b"
### END SOLUTION

# %% check="answer_again_masked" points=0.5
check_answer("answer_again_masked", answer_again_masked)

# %% [markdown]
# (Lesson 2.) The values are tied to the keys, and the model is wide. What happens?
#
# * `"a"`: It can learn the colours too, in more steps.
# * `"b"`: It can never learn them.
# * `"c"`: Nothing changes at all.

# %% answer="answer_again_value"
### BEGIN SOLUTION
answer_again_value = "a"
### END SOLUTION

# %% check="answer_again_value" points=0.5
check_answer("answer_again_value", answer_again_value)

# %% [markdown]
# (Lesson 1.) Which measure is the honest one for copying a phone number?
#
# * `"a"`: Token accuracy
# * `"b"`: Whole-sequence accuracy
# * `"c"`: The loss of the last batch

# %% answer="answer_again_copy"
### BEGIN SOLUTION
answer_again_copy = "b"
### END SOLUTION

# %% check="answer_again_copy" points=0.5
check_answer("answer_again_copy", answer_again_copy)

# %% [markdown]
# ## 1. Why does the formula have a square root in it?
#
# Lesson 2 built a soft look-up: compare a query with every key, turn the scores into weights,
# average the values. The transformer (Vaswani and others, 2017) uses nearly the same thing. It
# adds one small piece: it divides the scores by $\sqrt{d_k}$, where $d_k$ is the number of features
# of a query.
#
# It looks like a detail. In section 7 of this lesson the same model learns the same task with and
# without it, and the difference is large. This lesson finds out why, and also when the square root is
# *not* needed.
#
# ### The smallest example, on paper
#
# We translate "the black cat" into French and are about to write "chat". Three words can be looked
# at. The numbers below are **made by hand**, so that you can follow them with a pencil. The four
# features of a key mean: noun, animal, colour, article.
#
# | feature | noun | animal | colour | article |
# |---|---|---|---|---|
# | query of "chat" | 2 | 2 | 2 | 0 |
# | key of "the" | 0 | 0 | 0 | 1 |
# | key of "black" | 0 | 0 | 1 | 0 |
# | key of "cat" | 1 | 1 | 0 | 0 |
#
# 1. **Scores**: the dot product of the query with each key: $0,\ 2,\ 4$.
# 2. **Scale**: $d_k = 4$, so divide by $\sqrt 4 = 2$: $0,\ 1,\ 2$.
# 3. **Softmax**: $e^0 = 1$, $e^1 = 2.718$, $e^2 = 7.389$; their sum is $11.107$; the weights are
#    $0.090,\ 0.245,\ 0.665$.
# 4. **Average** the values with these weights.
#
# The `softmax` is that of lesson 2: yours, if it passed its check there, else the course's. The setup
# cell says which. (What passes is kept in `my_transformer`, a folder beside the lessons: a package of
# your own, which grows with the course.)

# %%
query_chat = np.array([2.0, 2.0, 2.0, 0.0])  # (d_k,)
word_keys = np.array([[0.0, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]])  # (n_k, d_k): the, black, cat
chat_scores = word_keys @ query_chat  # (n_k,)
print("scores       ", chat_scores)
print("divided by 2 ", chat_scores / 2)
print("weights      ", softmax(chat_scores / 2).round(3))

# %% [markdown]
# Each word brings a value of two features: "is an animal" and "is dark". The output is the weighted
# average of the three values.

# %%
word_values = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # (n_k, d_v): the, black, cat
print("output:", (softmax(chat_scores / 2) @ word_values).round(3), "(animal, dark)")
print("weights without the scale:", softmax(chat_scores).round(3))

# %% [markdown]
# The output says: mostly an animal, a little dark. Without the scale the same scores give "cat"
# 0.867 instead of 0.665. The order is the same, but the choice is **harder**: closer to all or
# nothing. With 4 features the difference is small. What happens with 512?
#
# ## 2. Long vectors make large scores
#
# Take a query $q$ and a key $k$ whose entries are independent, with mean 0 and variance 1. Then
#
# $$q \cdot k = \sum_{i=1}^{d_k} q_i k_i .$$
#
# Each product $q_i k_i$ has mean 0 and variance 1. Variances of independent terms add up. So
#
# $$\operatorname{Var}(q \cdot k) = d_k, \qquad \text{standard deviation} = \sqrt{d_k} .$$
#
# Divide by $\sqrt{d_k}$ and the variance is 1 again, for every $d_k$. Division by $d_k$ would be
# too much: then the variance is $1/d_k$, and all weights become nearly equal.
#
# A formula on paper is a claim. Your first exercise measures it.
#
# ### Exercise 1: `dot_product_variance`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 10 minutes on it.
#
# Draw `num_pairs` pairs of vectors with `d_k` standard normal features: a **new** query and a
# **new** key for each pair. Return the sample variance of their dot products.
#
# - `d_k`, `num_pairs`: integers. `rng`: an `np.random.Generator`, the only source of randomness.
# - Returns one number. Dividing by `num_pairs` or by `num_pairs - 1` are both fine.
# - The entries are normal, and each pair is new: one query for all keys is not enough (both are
#   checked when graded). All numbers come from `rng`: the global random state of NumPy and torch is
#   neither used nor changed.


# %% answer="dot_product_variance"
def dot_product_variance(d_k, num_pairs, rng):
    """Sample variance of q . k for standard normal q and k, a new pair each time.

    Args:
        d_k: length of q and of k.
        num_pairs: how many pairs are drawn.
        rng: np.random.Generator; the global random state is neither used nor changed.

    Returns:
        One float.
    """
    ### BEGIN SOLUTION
    q = rng.standard_normal((num_pairs, d_k))
    k = rng.standard_normal((num_pairs, d_k))
    return float(np.var((q * k).sum(axis=-1), ddof=1))
    ### END SOLUTION


# %% check="dot_product_variance" points=3 means="Measured, not only derived: the variance of q . k is about d_k." card=["Return the sample variance of their dot products", "All numbers come from `rng`: the global random state of NumPy and torch is neither used nor changed"]
@probe
def measured(d_k, num_pairs, seeds):
    """The variances from generators of these seeds, and whether global random states moved."""
    before = np.random.get_state()[2], torch.get_rng_state()
    found = [dot_product_variance(d_k, num_pairs, np.random.default_rng(seed)) for seed in seeds]
    moved = np.random.get_state()[2] != before[0], not torch.equal(torch.get_rng_state(), before[1])
    return found, moved


seed = int(check_rng().integers(2**31))
with check("the value", points=1.5):
    for d_k in (1, 6, 40):
        (value,), _ = measured(d_k, 3000, [seed + d_k])
        message = (
            f"With d_k = {d_k} and 3000 pairs the variance of q . k should be near {d_k}. Check "
            "first: are the entries standard normal, is each dot product a sum over d_k entries, "
            "and is it the variance (not the standard deviation, nor the variance after scaling)?"
        )
        assert_close(value, float(d_k), message, rtol=0.3)
with check("it measures, with every number from rng", points=1.5):
    (first, again, other), (by_numpy, by_torch) = measured(5, 300, [seed, seed, seed + 1])
    facts = {
        "it measures: not exactly 5 with d_k = 5": first != 5,
        "the same seed, the same value, and not NaN": first == again,
        "another seed, another value": first != other,
        "NumPy's global random state is left alone": not by_numpy,
        "torch's global random state is left alone": not by_torch,
    }
    message = "d_k = 5, 300 pairs: every random number should come from the generator rng."
    facts = {fact: bool(holds) for fact, holds in facts.items()}
    assert_equal(facts, dict.fromkeys(facts, True), message)
checks_passed("dot_product_variance")

# %% check="dot_product_variance_new_pairs" points=1 card="a **new** query and a **new** key for each pair"
# Hidden checks of dot_product_variance: both vectors new in every pair.
### BEGIN HIDDEN TESTS
@probe
def measured(d_k, num_pairs, seeds):
    return [dot_product_variance(d_k, num_pairs, np.random.default_rng(seed)) for seed in seeds]


seeds = check_rng().integers(2**31, size=24).tolist()
# Of two queries in another order as keys, half the seeds give q1 q2 twice: no variance at all.
some = sum(value > 1e-12 for value in measured(1, 2, seeds))
message = (
    "Two pairs of one feature, 24 seeds: each variance is above 0. Check first: are the keys draws "
    "of their own, not the queries once more, in another order?"
)
assert_equal(int(some), 24, message, name="how many are above 0")
message = (
    "With d_k = 2 the variance should be near 2 for every seed. Check first: has each pair a query "
    "and a key of its own? One query for all gives |q|^2."
)
assert_close(np.array(measured(2, 3000, seeds[:12])), np.full(12, 2.0), message, rtol=0.25)
### END HIDDEN TESTS


# %% check="dot_product_variance_entries" points=1 card=["The entries are normal, and each pair is new", "Dividing by `num_pairs` or by `num_pairs - 1` are both fine"]
# Hidden checks of dot_product_variance: normal entries, and a single pair.
### BEGIN HIDDEN TESTS
@probe
def measured(num_pairs, seeds):
    return [dot_product_variance(1, num_pairs, np.random.default_rng(seed)) for seed in seeds]


@probe
def variance_of_one_pair(seed):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divided by num_pairs - 1 it is 0 / 0
        try:
            found = float(dot_product_variance(6, 1, np.random.default_rng(seed)))
        except (ArithmeticError, ValueError):
            return 0.0
    return 0.0 if math.isnan(found) else found


# The distance of the variance from 1 is on average 0.100 for products of normal numbers, 0.053 for
# uniform ones of variance 1, 0.123 where the key of a pair is the query of the next one.
seeds = check_rng().integers(2**31, size=900).tolist()
off = np.array([np.abs(np.array(measured(500, seeds)) - 1).mean()])
message = (
    "The variance of 500 products of two standard normal numbers differs from 1 by 0.1 on average, of "
    "900 seeds. Check first: are the entries normal, and does each vector belong to one pair?"
)
assert_close(off, np.array([0.095]), message, atol=0.018, name="the average")
message = (
    "A single pair is its own mean: its variance is 0, or not defined (NaN, or an error). Check "
    "first: is the mean of the dot products subtracted?"
)
assert_close(variance_of_one_pair(seeds[0]), 0.0, message, atol=1e-9)
### END HIDDEN TESTS


# %% check="dot_product_variance_generator" points=1 card="`rng`: an `np.random.Generator`, the only source of randomness"
# Hidden checks of dot_product_variance: it draws from rng, which moves on.
### BEGIN HIDDEN TESTS
@probe
def measured_in_a_row(seed):
    rng = np.random.default_rng(seed)
    return [dot_product_variance(5, 300, rng) for _ in range(2)]


first, then = measured_in_a_row(int(check_rng().integers(2**31)))
message = "Two calls with one generator, one after the other, have new pairs each: values that differ."
assert_equal(bool(abs(first - then) > 1e-9), True, message, name="'numbers that differ'")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# A generator draws many numbers at once when you give it a shape. Draw all queries as one array
# with one row a pair, and all keys as another. You then need the dot product of row $i$ of one
# with row $i$ of the other, and not of every row with every row.
#
# </details>
#
# **Predict, then run.** The check measured up to $d_k = 40$. Write down the *standard deviation* of
# the scores that you expect for $d_k = 1024$.

# %% tags=["demonstration", "guess"]
guess_deviation = 1024  # write the standard deviation at d_k = 1024

# %% tags=["demonstration"]
d_ks = 2 ** np.arange(11)  # 1, 2, 4, ..., 1024
rng = np.random.default_rng(3)
variances = np.array([dot_product_variance(int(d), 4000, rng) for d in d_ks])
figure, axes = plt.subplots(figsize=(5.2, 3.6))
axes.loglog(d_ks, d_ks, "--", color="tab:orange")
axes.loglog(d_ks, variances, "o", color="tab:blue")
axes.annotate("line: variance = $d_k$", (30, 30), (1, 150), arrowprops={"arrowstyle": "->"})
axes.text(40, 5, "dots: measured,\n4000 pairs each")
axes.set(xlabel="$d_k$, length of query and key", ylabel="variance of $q \\cdot k$")
assert np.all(np.abs(variances / d_ks - 1) < 0.35)  # at d_k = 1 the chance error is largest
print(f"d_k = 1024: standard deviation {variances[-1] ** 0.5:.0f}")
show(
    figure,
    "Figure 1. The variance of a dot product is its length $d_k$, for independent entries of variance 1, as "
    "at the start with `nn.Embedding`; trained ones may behave otherwise.",
    "Log-log plot. Eleven measured variances for d_k from 1 to 1024 lie on the diagonal line "
    "variance = d_k; the last one is near 1024.",
)

# %% tags=["demonstration"]
why = "The variance is 1024, and the standard deviation is its root, 32."
reply("guess_deviation", guess_deviation, variances[-1] ** 0.5, why, within=3)

# %% [markdown]
# At $d_k = 1024$ the scores are spread over about $\pm 32$ and more. Now recall softmax: a
# difference of 10 between two scores already means a ratio of $e^{10} \approx 22{,}000$ between two
# weights. So the softmax puts everything on one key. We say that it is **saturated**.
#
# Why does that matter for learning? The gradient of the weights $w$ with respect to the scores $s$
# is
#
# $$\frac{\partial w_i}{\partial s_j} = w_i(\delta_{ij} - w_j),
# \qquad \delta_{ij} = 1 \text{ if } i = j, \text{ else } 0 .$$
#
# If one weight is 1 and the others are 0, every entry is 0. The gradient on the *query*,
# $\partial w / \partial q$, is this matrix times the keys, and the keys get longer with $d_k$. So
# two things pull in opposite directions.

# %% [markdown]
# ### Short answer 1: `answer_gradient`
#
# Predict before you run the next cells. Queries and keys have entries of variance 1, there are 16
# keys, and there is **no scale**. Look at the size of $\partial w / \partial q$ for many random
# queries. What happens to it when $d_k$ grows from 16 to 1024?
#
# - a) It shrinks towards 0 for nearly every query, and the mean over all queries shrinks as well.
# - b) It shrinks towards 0 for most of the queries, but the mean over all queries stays above 1.
# - c) It grows for nearly every query, because of the longer keys, and the mean grows as well.
# - d) It hardly changes, since the weights always sum to 1, and the mean hardly changes either.

# %% answer="answer_gradient"
### BEGIN SOLUTION
answer_gradient = "b"
### END SOLUTION

# %% check="answer_gradient" points=1
check_answer("answer_gradient", answer_gradient)

# %% [markdown]
# Now measure. For each $d_k$ we draw 2000 queries, each with 16 keys of its own. We compute the
# **entropy** of the weights, $-\sum_i w_i \ln w_i$. It is 0 when one key has everything, and
# $\ln 16 \approx 2.77$ when all 16 keys have the same weight. We also compute the size of the
# gradient: the Frobenius norm of $\partial w / \partial q$, the root of the sum of its squared
# entries.


# %% tags=["demonstration"]
def entropy_and_gradient(d_k, scale, rng, repeats=8, queries=250, keys=16):
    """Entropy of the weights and norm of dw/dq, one number for each of the random queries."""
    entropies, norms = [], []
    for _ in range(repeats):
        q = torch.tensor(rng.normal(size=(queries, d_k)))
        k = torch.tensor(rng.normal(size=(queries, keys, d_k)))
        w = torch.softmax(scale * torch.einsum("bd,bnd->bn", q, k), dim=-1)  # (queries, keys)
        dw_ds = torch.diag_embed(w) - w[:, :, None] * w[:, None, :]  # (queries, keys, keys)
        norms.append(torch.linalg.matrix_norm(scale * dw_ds @ k))
        entropies.append(torch.special.entr(w).sum(-1))
    return torch.cat(entropies).numpy(), torch.cat(norms).numpy()


rng = np.random.default_rng(0)
widths = (4, 16, 64, 256, 1024)
bare = [entropy_and_gradient(d, 1.0, rng) for d in widths]
scaled = [entropy_and_gradient(d, d**-0.5, rng) for d in widths]
print("           without the scale                with the scale")
print(" d_k   entropy  median    mean      entropy  median    mean   (of the gradient norm)")
for d, (e0, g0), (e1, g1) in zip(widths, bare, scaled):
    left = f"{e0.mean():8.2f}{np.median(g0):9.4f}{g0.mean():8.2f}"
    print(f"{d:5d}{left}     {e1.mean():8.2f}{np.median(g1):8.2f}{g1.mean():8.2f}")

# %% tags=["demonstration"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.1, 3.5))
left.semilogx(widths, [e.mean() for e, _ in bare], "o-", color="tab:red")
left.semilogx(widths, [e.mean() for e, _ in scaled], "s-", color="tab:blue")
left.axhline(math.log(16), color="grey", ls=":")
left.text(4, 2.82, "all 16 keys equal", color="dimgrey")
left.text(60, 2.1, "with scale", color="tab:blue")
left.text(60, 0.55, "without scale", color="tab:red")
left.set(xlabel="$d_k$", ylabel="mean entropy of the weights", ylim=(0, 3.1))
right.axhline(1, color="lightgrey", lw=0.8)
for rows, colour in ((bare, "tab:red"), (scaled, "tab:blue")):
    means, medians = [g.mean() for _, g in rows], [np.median(g) for _, g in rows]
    right.loglog(widths, means, "^--", color=colour)
    right.loglog(widths, medians, "o-", color=colour)
right.text(30, 2.2, "without scale, mean", color="tab:red")
right.text(4, 0.004, "without scale,\nmedian: most vanish", color="tab:red")
right.text(4, 0.16, "with scale, both", color="tab:blue")
right.set(xlabel="$d_k$", ylabel="norm of $\\partial w / \\partial q$", ylim=(5e-4, 6))
for axes in (left, right):
    axes.set_xticks(widths, widths)
    axes.minorticks_off()
figure.tight_layout()

g16, g1024 = bare[1][1], bare[-1][1]
assert bare[-1][0].mean() < 0.25 and min(e.mean() for e, _ in scaled) > 2.2
assert np.median(g1024) < 0.02 and np.median(g1024) < np.median(g16) / 50
assert np.median(bare[0][1]) < 0.7 and np.median(g16) > 1  # the median first rises
assert all(1 < g.mean() < 2.5 for _, g in bare[2:])  # the mean does not vanish
assert all(0.2 < np.median(g) < 0.4 and 0.2 < g.mean() < 0.4 for _, g in scaled)
tenth = np.sort(g1024)[-200:].sum() / g1024.sum()
evenly = np.sort(scaled[-1][1])[-200:].sum() / scaled[-1][1].sum()
assert tenth > 0.6 and evenly < 0.2
print("d_k = 1024: share of the 10 % largest gradients in the sum of all gradients:")
print(f"{tenth:.0%} without the scale, {evenly:.0%} with it")
show(
    figure,
    "Figure 2. Without the scale the softmax saturates as $d_k$ grows: most gradients vanish (median), a few "
    "are huge (mean). With the scale hardly anything depends on $d_k$.",
    "Left: mean entropy against d_k. Without scale it falls from 1.8 to 0.1, with scale it stays "
    "near 2.4. Right, log-log: with scale, mean and median of the gradient norm stay near 0.3. "
    "Without scale the median rises to above 1 at d_k 16 and then falls below 0.01 at d_k 1024, "
    "while from d_k 16 on the mean stays between 1 and 2.5.",
)

# %% [markdown]
# Without the scale the median first rises, because the keys get longer. Then saturation wins, and
# it falls to nearly 0. The mean rises too, and from $d_k = 64$ on it stays between 1 and 2.5.
# (Outside this notebook we went on to $d_k = 4096$: median $10^{-8}$, mean 1.8.)
#
# So three sentences that one often reads need a correction.
#
# - *"Without the scale the gradients vanish."* For **most** queries they do once $d_k$ is large
#   (here at 1024; at 64 the median is three times that with the scale, and at 256 a third of it). For the few
#   queries whose two best keys have nearly equal scores they are huge, and the **mean** does not
#   vanish.
#   Training then gets hardly any signal from most examples, and very large gradients from a few.
# - *"The scale keeps the weights from being sharp."* It keeps them from being sharp **at the
#   start**. A trained model can make its queries and keys longer, and be as sharp as it needs.
# - *"Without the scale it cannot be learned."* That depends on how large queries and keys are at
#   the start, and on the loss: section 7 shows it.

# %% [markdown]
# ## 3. From one query to any number
#
# One query gives one row of weights. With $n_q$ queries as the rows of $Q$ we want all rows at
# once. Row $i$ of the result must be exactly what query $i$ alone would get:
#
# $$\operatorname{Attention}(Q, K, V) =
# \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V .$$
#
# | symbol | shape | what it is |
# |---|---|---|
# | $Q$ | $(\ldots, n_q, d_k)$ | one row a query: what each position looks for |
# | $K$ | $(\ldots, n_k, d_k)$ | one row a key: what each position offers to be found by |
# | $V$ | $(\ldots, n_k, d_v)$ | one row a value: what each position gives |
# | scores, weights | $(\ldots, n_q, n_k)$ | a row for each query; each row of weights sums to 1 |
# | output | $(\ldots, n_q, d_v)$ | one row a query: a weighted average of the values |
#
# The dots stand for any number of **leading batch axes**: sentences, later also heads. The last two
# axes are always (position, feature). Leading axes *broadcast* as everywhere in NumPy: they are
# compared from the right, and an axis of length 1, or a missing one, is repeated.
#
# | leading axes of `Q` | of `K` | of `V` | of the output |
# |---|---|---|---|
# | none | none | none | none |
# | `(7,)` | `(7,)` | `(7,)` | `(7,)`: one text each |
# | `(7,)` | none | none | `(7,)`: seven sets of queries, one text |
# | `(2, 1)` | `(3,)` | none | `(2, 3)`: every set of queries on every text |
#
# ### Masks: who may attend to what
#
# Sometimes a query must not look at a key. Texts of different lengths are filled up with padding.
# A word that is being predicted must not be seen (lesson 6). A **mask** is a boolean array. In this
# course **`True` = may attend**, `False` = must not. Its shape is broadcastable to the shape of the
# weights, and it never makes them larger:
#
# | shape of the mask, weights `(batch, heads, n_q, n_k)` | what it says |
# |---|---|
# | `(n_k,)` | the same keys are hidden for every query of every text |
# | `(n_q, n_k)` | each query has keys of its own, the same in every text |
# | `(batch, 1, 1, n_k)` | each text has keys of its own, the same for every head and query |
# | `(batch, 1, n_q, n_k)` | each text and query has keys of its own |
#
# The mask acts on the **scores, before the softmax**: a forbidden score becomes $-\infty$, and
# $e^{-\infty} = 0$. The other weights then still sum to 1. To set weights to zero *after* the
# softmax is a mistake: the rest of the row sums to less than 1, and the forbidden key has still
# taken part in the sum.
#
# What if a query may attend to **nothing**? Then there is nothing to average. In this course, and
# in torch's own function (of this version), its weights are 0 and its output is 0. It must never be
# NaN: one NaN in one row of padding would spread through the whole model.

# %% [markdown]
# ### Exercise 2: `scaled_dot_product_attention`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 25 minutes on it.
#
# The formula above in NumPy, with a mask, for any number of leading axes. Return two arrays,
# `(output, weights)`. Lesson 2's `softmax` may be used.
#
# - `Q (..., n_q, d_k)`, `K (..., n_k, d_k)`, `V (..., n_k, d_v)`; leading axes broadcast.
# - `mask`: `None`, or boolean and broadcastable to the weights; `True` = may attend.
# - A forbidden key gets a weight of exactly 0. A query that may attend to nothing has weights 0 and
#   output 0: never NaN, and never an average of what is forbidden.
# - Scores of several thousands must not overflow. (Lesson 2's `softmax` can take them.) Where a key
#   is allowed, a forbidden one takes nothing from it, however low its score is (-1e15 and more).
# - The conventions of lesson 1 hold (checked when graded). No errors are graded here.


# %% answer="scaled_dot_product_attention"
def scaled_dot_product_attention(Q, K, V, mask=None):
    """Scaled dot-product attention in NumPy.

    Args:
        Q: (..., n_q, d_k) queries.
        K: (..., n_k, d_k) keys.
        V: (..., n_k, d_v) values; leading axes of Q, K and V broadcast.
        mask: boolean, broadcastable to the weights; True = may attend. None masks nothing.

    Returns:
        output (..., n_q, d_v) and weights (..., n_q, n_k). A query that may attend to
        nothing has weights 0 and output 0.
    """
    ### BEGIN SOLUTION
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights
    ### END SOLUTION


# %% check="scaled_dot_product_attention" points=6 means="Your output is that of torch's function, and a mask hides what it should." card=["Return two arrays, `(output, weights)`", "for any number of leading axes", "boolean and broadcastable to the weights; `True` = may attend", "A query that may attend to nothing has weights 0 and output 0"]
rng, names = check_rng(), ("output", "weights")  # three queries, five keys, all sizes different
given = Q, K, V = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
attend = lambda *mask: scaled_dot_product_attention(*(x.copy() for x in given), *mask)
with check("each row of weights sums to 1", points=0.5):
    both = attend()
    count = len(both) if isinstance(both, (tuple, list)) else int(both is not None)
    assert_equal(count, 2, "Return two things: the output and the weights.", name="the number of results")
    message = "The second result should be the weights (n_q, n_k). Check first: in this order?"
    assert_equal(np.shape(both[1]), (3, 5), message, name="the shape of the second result")
    message = "Each row of the weights should sum to 1. Check first: is the softmax over the keys?"
    assert_close(np.sum(both[1], axis=-1), np.ones(3), message, name="the sum of each row")
with check("as torch", points=2.25):
    expected = F.scaled_dot_product_attention(*map(torch.tensor, given)).numpy()
    message = "The output is that of torch's function. Check first: the scale, and is it made of V?"
    assert_close(attend()[0], expected, message, name="output")
with check("the example on paper", points=0.75):
    query, keys = np.array([[2.0, 2, 2, 0]]), np.array([[0.0, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]])
    expected = np.array([[1.0, math.e, math.e**2]]) / (1 + math.e + math.e**2)
    message = "The weights of the example on paper are 0.090, 0.245, 0.665."
    assert_close(scaled_dot_product_attention(query, keys, np.eye(3))[1], expected, message, name="weights")
with check("a batch, and leading axes that broadcast: each text comes out as it does alone", points=1.25):
    batch = [np.stack([x, 2 * x[::-1]]) for x in given]
    leading = np.stack([Q, -Q])[:, None], np.stack([K, 2 * K, K[::-1]]), V
    assert_each_alone(scaled_dot_product_attention, [batch, leading], names=names)
some = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]) > 0
for title, points, mask in (
    ("a mask (n_q, n_k)", 0.75, some),
    ("one mask (n_k,) for all queries", 0.25, some[0]),
    ("a query that may attend to nothing", 0.25, some & np.array([[True], [False], [True]])),
):
    with check(f"{title}: from your weights without a mask", points=points):
        shares = np.where(mask, attend()[1], 0.0)
        nothing = ~mask.any(-1, keepdims=True)  # a query that may attend to nothing: 0 / 1
        weights = shares / (shares.sum(-1, keepdims=True) + nothing)
        message = "Weights of 0 where the mask is False, the rest shares 1, and the output is made of these."
        expected, against = {"output": weights @ V, "weights": weights}, "from your weights without a mask"
        assert_results(attend(mask), expected, message, against=against)
checks_passed("scaled_dot_product_attention")

# %% check="scaled_dot_product_attention_batches" points=2.5 card=["for any number of leading axes", "leading axes of Q, K and V broadcast"]
# Hidden checks of scaled_dot_product_attention: one and two batch axes, and leading axes that differ.
### BEGIN HIDDEN TESTS
rng, names = check_rng(), ("output", "weights")


def drawn(*leads):
    sizes = (4, 3), (5, 3), (5, 7)
    return [rng.normal(size=(*lead, *size)) for lead, size in zip(leads, sizes, strict=True)]


def by_torch(Q, K, V):
    return F.scaled_dot_product_attention(*(torch.tensor(x) for x in (Q, K, V))).numpy()


with check("one text, of other sizes: as torch", points=0.75):
    Q, K, V = plain = drawn((), (), ())
    output, _ = scaled_dot_product_attention(Q.copy(), K.copy(), V.copy())
    assert_close(output, by_torch(*plain), "One text: the output is torch's.", name="output")
for title, points, texts in (
    ("one batch axis: each text comes out as it does alone", 0.5, [drawn((6,), (6,), (6,)), drawn((1,), (1,), (1,))]),
    ("two batch axes: each text comes out as it does alone", 0.25, [drawn((2, 3), (2, 3), (2, 3))]),
    ("leading axes of some arguments: each text comes out as it does alone", 0.5, [drawn((6,), (), ()), drawn((), (6,), (6,))]),
    ("leading axes that differ: each text comes out as it does alone", 0.5, [drawn((2, 1), (3,), ()), drawn((2, 3), (3,), (2, 1))]),
):
    with check(title, points=points):
        assert_each_alone(scaled_dot_product_attention, texts, names=names)
checks_passed("scaled_dot_product_attention")
### END HIDDEN TESTS

# %% check="scaled_dot_product_attention_masks" points=4 card=["boolean and broadcastable to the weights; `True` = may attend", "A query that may attend to nothing has weights 0 and output 0"]
# Hidden checks of scaled_dot_product_attention: masks of every shape; queries that may attend to nothing.
### BEGIN HIDDEN TESTS
rng, names = check_rng(), ("output", "weights")


def from_unmasked(Q, K, V, mask):
    shares = np.where(mask, scaled_dot_product_attention(Q, K, V)[1], 0.0)
    with np.errstate(all="ignore"):
        weights = np.where(np.any(mask, -1, keepdims=True), shares / shares.sum(-1, keepdims=True), 0.0)
    return weights @ V, weights


def cases(leads_and_shapes, some):
    """Random masks in which each query may see key 0; with some=False the last row sees nothing."""
    for lead_q, lead_k, shape in leads_and_shapes:
        Q, K = rng.normal(size=(*lead_q, 4, 3)), rng.normal(size=(*lead_k, 5, 3))
        mask = rng.random(shape) < 0.5
        mask[..., 0], mask[..., 3 % shape[-1]] = True, shape[-1] == 1
        mask.reshape(-1, shape[-1])[-1] &= some
        yield f"Q {Q.shape}, K {K.shape}, a mask {shape}", (Q, K, rng.normal(size=(*lead_k, 5, 7)) + 3, mask)


for title, points, some, shapes in (
    ("a mask (n_q, n_k)", 1.25, True, [((), (), (4, 5))]),
    ("masks with an axis of length 1, or without", 0.5, True, [((), (), (5,)), ((), (), (1, 5)), ((2,), (2,), (2, 1, 5))]),
    ("a mask for all texts of a batch", 0.25, True, [((2,), (2,), (4, 5)), ((4,), (4,), (4, 5)), ((2, 3), (2, 3), (5,))]),
    ("two batch axes, and axes that differ", 0.25, True, [((2, 3), (2, 3), (2, 1, 4, 5)), ((2, 1), (3,), (2, 3, 1, 5)), ((2, 3), (2, 3), (3, 1, 5))]),
    ("a query with nothing", 1, False, [((), (), (4, 5)), ((), (), (4, 1))]),
    ("a text of which nothing may be attended", 0.5, False, [((), (), (5,)), ((2,), (2,), (2, 1, 5))]),
    ("a batch, a query with nothing", 0.25, False, [((2,), (2,), (4, 5)), ((2, 3), (2, 3), (2, 1, 4, 5))]),
):
    with check(f"{title}: from your weights without a mask", points=points):
        message = "weights of 0 where the mask is False, the rest shares 1; 0 with nothing to attend to."
        against = "from your weights without a mask"
        table = dict(cases(shapes, some))
        assert_as_reference(scaled_dot_product_attention, from_unmasked, table, message, names=names, against=against)
checks_passed("scaled_dot_product_attention")
### END HIDDEN TESTS

# %% check="scaled_dot_product_attention_large_scores" points=1 card=["Scores of several thousands must not overflow", "a forbidden one takes nothing from it, however low its score is (-1e15 and more)"]
# Hidden checks of scaled_dot_product_attention: scores of several thousands, allowed and forbidden.
### BEGIN HIDDEN TESTS
half = 1 / (1 + math.exp(-1))
cases = {  # scores after the scale, which keys are allowed, and the weights
    "Scores 8000, 8001, -8000": ([8000, 8001, -8000], None, [1 - half, half, 0]),
    "Scores 1, 2 and a forbidden one of 5000": ([1, 2, 5000], [True, True, False], [1 - half, half, 0]),
    "Scores -8001, -8000 and a forbidden one of 9000": ([-8001, -8000, 9000], [True, True, False], [1 - half, half, 0]),
    "A score of -1e15, and forbidden ones of 0": ([-1e15, 0, 0], [True, False, False], [1, 0, 0]),
}
for case, (scores, allowed, shares) in cases.items():
    K = np.zeros((3, 4))
    K[:, 0] = scores
    mask = () if allowed is None else (np.array([allowed]),)
    output, weights = scaled_dot_product_attention(np.array([[2.0, 0, 0, 0]]), K, 3 * np.eye(3), *mask)
    message = f"{case}: only the differences among allowed scores count. Check first: what stands for minus infinity?"
    assert_close(weights, np.array([shares], dtype=float), message, name="weights")
    assert_close(output, 3 * np.array([shares], dtype=float), message, name="output")
### END HIDDEN TESTS

# %% check="scaled_dot_product_attention_dtypes" points=1 card=["are valid input, and the result is floating", "the result is at least as precise as the most precise input"]
# Hidden checks of scaled_dot_product_attention: whole numbers, float32, float64.
### BEGIN HIDDEN TESTS
rng, names = check_rng(), ("output", "weights")
Q, K, V = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 7))
some = np.arange(20).reshape(4, 5) % 3 > 0
with check("whole numbers: as floats", points=0.5):
    whole = [rng.integers(-2, 3, x.shape) for x in (Q, K, V)]
    message = "Whole numbers give the results of the same numbers as floats, with nothing rounded away."
    for given in (whole, [*whole, some], [Q, *whole[1:]], [*whole[:2], V]):
        assert_as_floats(scaled_dot_product_attention, given, message, names=names)
with check("float32 and float64: the same, as precise", points=0.5):
    message = "Float32 gives the results of the same numbers in float64, in float32 or better."
    assert_as_floats(scaled_dot_product_attention, [x.astype("f4") for x in (Q, K, V)], message, names=names)
    output, weights = (np.asarray(x, dtype=float) for x in scaled_dot_product_attention(Q, K, V))
    order = [3, 0, 4, 2, 1]  # in float32 another order of the keys would change the last digits
    message = "The same keys in another order, in float64: the same to ten digits. Check first: is anything float32?"
    precise = {"precise": True, "rtol": 1e-10, "atol": 1e-13, "against": "with the keys in their first order"}
    again = scaled_dot_product_attention(Q.copy(), K[order], V[order])
    assert_results(again, {"output": output, "weights": weights[:, order]}, message, **precise)
checks_passed("scaled_dot_product_attention")
### END HIDDEN TESTS

# %% check="scaled_dot_product_attention_inputs" points=0.5 card="Arguments are not changed"
# Hidden checks of scaled_dot_product_attention: the arguments are not changed.
### SIDE CONDITION: counts once another check of scaled_dot_product_attention passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(Q, K, V, mask):
    scaled_dot_product_attention(Q, K, V, mask)
    return Q, K, V, mask


rng, mask = check_rng(), np.array([[True, False, True]] * 3 + [[False] * 3])
Q, K, V = (rng.normal(size=size) for size in ((4, 3), (3, 3), (3, 7)))
assert_unchanged(arguments_after, Q=Q, K=K, V=V, mask=mask)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `.T` turns *all* axes around; with batches you want to exchange only the last two. NumPy has
# `swapaxes`, `moveaxis` and `einsum` for it. For the mask, look at `np.where`: it makes a new array
# and broadcasts. Lesson 2's `softmax` already knows what to do with a row of $-\infty$.
#
# </details>
#
# Does the matrix version agree with the single query on paper? The last step is a batch: three
# texts at once, and one text alone must give the same.

# %% tags=["demonstration"]
chat_output, chat_weights = scaled_dot_product_attention(query_chat[None], word_keys, word_values)
print("weights", chat_weights.round(3), " output", chat_output.round(3))

rng = np.random.default_rng(1)
texts = rng.normal(size=(3, 5, 4))  # (batch, n, d): three texts of five words
together, _ = scaled_dot_product_attention(texts, texts, texts)  # (3, 5, 4)
alone, _ = scaled_dot_product_attention(texts[1], texts[1], texts[1])  # (5, 4)
print("text 1 alone and in the batch differ by", np.abs(together[1] - alone).max().round(12))

# %% [markdown]
# ## 4. Padding, and three meanings of a mask
#
# A batch is a rectangle. Texts are not: "the black cat is sleeping" has five words, "the cat" has
# two. The rest of the row is filled with padding. Nobody may attend to it. So each text needs a
# row of `True` for its words and `False` for its padding:
#
# | text | the / the | black / cat | cat / - | is / - | sleeping / - |
# |---|---|---|---|---|---|
# | length 5 | True | True | True | True | True |
# | length 2 | True | True | False | False | False |
#
# The mask gets an axis of length 1 in the middle, so that it serves every query:
# `(batch, 1, n_k)` broadcasts to `(batch, n_q, n_k)`.
#
# ### Exercise 3: `padding_mask`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# - `lengths`: a list of integers or a 1-D integer array, one length for each text.
# - `n_k`: the length to which all texts were filled up.
# - Returns a boolean NumPy array of shape `(batch, 1, n_k)`; `True` = a word, may be attended.
# - A length of 0 is allowed (an empty text), and so is `n_k`.
# - A length below 0 or above `n_k` is a `ValueError` that names `lengths` and the value.
# - The conventions of lesson 1 hold (checked when graded).


# %% answer="padding_mask"
def padding_mask(lengths, n_k):
    """Mask that hides the padding after each text.

    Args:
        lengths: list or 1-D integer array, (batch,); 0 <= length <= n_k.
        n_k: number of keys, padding included.

    Returns:
        Boolean array (batch, 1, n_k), True = may attend.

    Raises:
        ValueError: a length is below 0 or above n_k.
    """
    ### BEGIN SOLUTION
    lengths = np.asarray(lengths)
    wrong = lengths[(lengths < 0) | (lengths > n_k)]
    if wrong.size:
        raise ValueError(f"lengths must be between 0 and n_k = {n_k}; it holds {wrong[0]}")
    return np.arange(n_k) < lengths[:, None, None]
    ### END SOLUTION


# %% check="padding_mask" points=3.25 means="Padding can be hidden: this mask goes into your attention as it is." card=["a boolean NumPy array of shape `(batch, 1, n_k)`; `True` = a word, may be attended", "a list of integers or a 1-D integer array", "A length of 0 is allowed (an empty text), and so is `n_k`", "A length below 0 or above `n_k` is a `ValueError`"]
T, N = True, False
mask = padding_mask(np.array([5, 2, 4]), 5)
with check("the shape", points=0.25, side=True):
    message = "Three texts, five keys: the shape is (batch, 1, n_k), the axis of length 1 in the middle."
    assert_equal(np.shape(mask), (3, 1, 5), message, name="the shape")
with check("as many True as words", points=0.5):
    counts = [int(count) for count in np.sum(np.reshape(mask, (3, 5)), axis=-1)]
    message = (
        "Lengths 5, 2, 4 with n_k = 5: as many True as words. Check first: does the count of "
        "positions start at 0 (5, 3, 5), and may True be attended (0, 3, 1)?"
    )
    assert_equal(counts, [5, 2, 4], message, name="the number of True for each text")
with check("the rows, booleans in NumPy", points=0.75):
    message = "Lengths 5, 2, 4 with n_k = 5: booleans, True for the words, which come first."
    rows = np.array([[T, T, T, T, T], [T, T, N, N, N], [T, T, T, T, N]])
    assert_equal(np.reshape(mask, (3, 5)), rows, message, name="the mask (without its middle axis)")
with check("a boolean array with its middle axis", points=0.5):
    kind = isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == (3, 1, 5)
    message = "The mask should be a boolean NumPy array of shape (batch, 1, n_k), not all of it alike."
    assert_equal(bool(kind and np.ptp(np.sum(mask, axis=-1)) > 0), True, message)
with check("an empty text, and more columns than words, in booleans", points=0.5):
    message = "Lengths 0 and 2 with n_k = 3, booleans: a length of 0 has a row of False."
    short = np.reshape(padding_mask(np.array([0, 2]), 3), (2, 3))
    assert_equal(short, np.array([[N, N, N], [T, T, N]]), message, name="the mask (without its middle axis)")
with check("lengths 1 and 3: list as array, rows of four that differ", points=0.25):
    found, other = padding_mask([1, 3], 4), padding_mask(np.array([1, 3]), 4)
    message = "lengths may be a list or an array; both give the same mask."
    assert_equal(found, other, message, against="for the same lengths as array")
    differ = np.size(found) == 8 and bool(np.any(found[0] != found[1]))
    assert_equal(differ, True, "The lengths 1 and 3 have two rows of four that differ.")
with check("lengths that do not fit", points=0.5, side=True):
    for lengths in ([5, 6], [5, 6, 2], [2, -1, 4]):
        with assert_raises(ValueError, f"n_k = 5, lengths {lengths}: a ValueError is asked for."):
            padding_mask(lengths, 5)
checks_passed("padding_mask")

# %% check="padding_mask_arrays" points=0.5 card=["a list of integers or a 1-D integer array", "Arguments are not changed"]
# Hidden checks of padding_mask: lengths as a list and as an array, unchanged afterwards.
### BEGIN HIDDEN TESTS
@probe
def mask_and_lengths(lengths, n_k):
    return padding_mask(lengths, n_k), lengths


lengths = [2, 5, *check_rng().integers(0, 8, size=3).tolist()]
of_list, after = mask_and_lengths(list(lengths), 7)
assert_equal(after, lengths, "The list lengths was changed by the call.", name="lengths")
differ = np.size(of_list) == 35 and bool(np.any(of_list[0] != of_list[1]))
assert_equal(differ, True, "Five lengths with n_k = 7: five rows, of which those for 2 and 5 differ.")
mask, after = mask_and_lengths(np.array(lengths), 7)
assert_equal(after, np.array(lengths), "The array lengths was changed by the call.", name="lengths")
message = "lengths as an array have the mask that the same list has."
assert_equal(mask, of_list, message, against="for the same list")
### END HIDDEN TESTS

# %% check="padding_mask_edges" points=1.25 card=["A length of 0 is allowed (an empty text), and so is `n_k`", "`n_k`: the length to which all texts were filled up"]
# Hidden checks of padding_mask: empty and full texts, a batch of one, all texts shorter than n_k.
### BEGIN HIDDEN TESTS
cases = {"all shorter than n_k": ([2, 1, 2], 4), "0 and n_k": ([0, 3], 3), "one text": ([2], 3), "one of one word": ([1], 1)}
masks = {case: padding_mask(np.array(lengths), n_k) for case, (lengths, n_k) in cases.items()}
with check("as many columns as n_k; equal lengths, equal rows", points=0.75):
    for case, (lengths, n_k) in cases.items():
        message = f"Lengths {lengths} with n_k = {n_k} ({case}): one row a text, n_k columns."
        assert_equal(np.size(masks[case]), len(lengths) * n_k, message, name="how many entries")
    first, other, last = np.reshape(masks["all shorter than n_k"], (3, 4))
    message = "Texts of one length have the same row."
    assert_equal(first, last, message, name="a row", against="for another text of this length")
    assert_equal(bool(np.any(first != other)), True, "The lengths 2 and 1 have rows that differ.")
with check("the rows, booleans (batch, 1, n_k)", points=0.5):
    for case, (lengths, n_k) in cases.items():
        right = np.array([[[place < length for place in range(n_k)]] for length in lengths])
        message = f"Lengths {lengths} with n_k = {n_k} ({case}): booleans, True for the words."
        assert_equal(masks[case], right, message)
checks_passed("padding_mask")
### END HIDDEN TESTS

# %% check="padding_mask_errors" points=1 card="A length below 0 or above `n_k` is a `ValueError`"
# Hidden checks of padding_mask: lengths out of range, anywhere in the batch.
### SIDE CONDITION: counts once another check of padding_mask passes.
### BEGIN HIDDEN TESTS
for wrong in ([-1, 2], [2, -1, 3], [4, 1, 2], [1, 2, 4], [-3]):
    assert_refused(padding_mask, {f"n_k = 3, the list {wrong}": (wrong, 3), f"n_k = 3, the array {wrong}": (np.array(wrong), 3)})
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Position $j$ of a text is a word when $j$ is smaller than the text's length. Compare all positions
# with all lengths in one broadcast comparison: give the lengths the shape that makes the result
# `(batch, 1, n_k)`. Check the range first; a comparison will not complain about a length of 40.
#
# </details>
#
# Use it on two texts of random vectors. The second text has two words; its last three rows are
# padding, and we put enormous numbers there. They must not matter.

# %% tags=["demonstration"]
rng = np.random.default_rng(2)
texts = rng.normal(size=(2, 5, 4))  # (batch, n_k, d): lengths 5 and 2
other = texts.copy()
other[1, 2:] = 1000.0  # what stands in the padding
keep = padding_mask([5, 2], 5)  # (2, 1, 5)
first, weights_first = scaled_dot_product_attention(texts[:, :3], texts, texts, keep)
second, _ = scaled_dot_product_attention(texts[:, :3], other, other, keep)
print("weights of the short text (its third query is padding, so nobody uses row 3):")
print(weights_first[1].round(2))
print("padding changes the output by", np.abs(first - second).max())

# %% [markdown]
# ### `True` does not mean the same everywhere
#
# This is a well-known trap. Even inside torch two functions mean opposite things.
#
# | where | argument | `True` or 1 |
# |---|---|---|
# | this course | `mask` | may attend |
# | `F.scaled_dot_product_attention` | `attn_mask` | may attend |
# | `nn.MultiheadAttention` | `attn_mask`, `key_padding_mask` | **is hidden** |
# | `nn.TransformerEncoder`, `nn.TransformerDecoder` | all masks | **is hidden** |
# | Keras `MultiHeadAttention` | `attention_mask` | may attend |
# | Hugging Face tokenizers and models | `attention_mask` | 1 = a word, 0 = padding |
#
# The torch functions also take **float** masks. These are *added* to the scores: 0 keeps a key and
# $-\infty$ hides it.
#
# **Predict, then run.** The mask below says in our convention: query 0 sees keys 0 and 1, query 1
# sees only key 0, query 2 sees everything. It goes to both torch functions. Which weights
# will be larger than zero? What happens in the last row of `nn.MultiheadAttention`?

# %%
keep = torch.tensor([[True, True, False], [True, False, False], [True, True, True]])
torch.manual_seed(0)
x = torch.randn(1, 3, 4)  # (batch, n, d)
layer = nn.MultiheadAttention(4, num_heads=1, batch_first=True)
by_function = F.scaled_dot_product_attention(x, x, torch.eye(3)[None], attn_mask=keep)
with torch.no_grad():
    _, same_mask = layer(x, x, x, attn_mask=keep)
    _, inverted = layer(x, x, x, attn_mask=~keep)
for name, w in (("function", by_function), ("layer", same_mask), ("layer, ~mask", inverted)):
    print(f"{name:13s}", end="")
    for i, row in enumerate(w[0].tolist()):
        seen = ["NaN" if math.isnan(v) else "sees" if v > 0 else "-" for v in row]
        print(f"query {i}: {' '.join(seen):18s}", end="")
    print()

# %% [markdown]
# The same mask gives opposite attention. In the layer, the query that "sees everything" is the
# one that sees nothing, and the layer answers with NaN. Nothing raises an error. Two habits help:
# give a mask a name that says what `True` means (`keep`, `may_attend`, `is_padding`), and print
# the zeros of one weight matrix.
#
# A float mask is a third meaning: it is *added* to the scores. If 1.0 and 0.0 are passed instead of
# `True` and `False`, nothing is hidden at all.

# %%
q_k_eye = x, x, torch.eye(3)[None]
print("boolean:", F.scaled_dot_product_attention(*q_k_eye, attn_mask=keep)[0, 1].numpy().round(2))
as_float = F.scaled_dot_product_attention(*q_k_eye, attn_mask=keep.float())
print("1.0/0.0:", as_float[0, 1].numpy().round(2), "<- the hidden keys are back")

# %% [markdown]
# ### Short answer 2: `answer_mask`
#
# `keep` is a boolean tensor `(batch, n_k)`, `True` for words, `False` for padding. You call
# `nn.MultiheadAttention` as `layer(x, x, x, key_padding_mask=...)`. What do you pass?
#
# - a) `keep`
# - b) `~keep`
# - c) `keep.float()`
# - d) `keep[:, None, :]`

# %% answer="answer_mask"
### BEGIN SOLUTION
answer_mask = "b"
### END SOLUTION

# %% check="answer_mask" points=1
check_answer("answer_mask", answer_mask)

# %% [markdown]
# ### Minus infinity, or minus a billion?
#
# A lot of published code hides a key with $-10^9$ instead of $-\infty$. With an allowed key in the row
# that mostly works: $e^{-10^9}$ is 0 in every floating format. It fails where scores are lower still, in
# half precision, and in a row without any allowed key; lesson 6 measures it. A plain softmax of $-\infty$
# throughout is no remedy for that row: it computes $0/0$ = NaN. The row must be set to zero on purpose, as
# torch's function does it. (Some libraries put in the most negative finite number of the dtype: then the
# row is an even average of what is forbidden.)

# %% [markdown]
# ## 5. The same in torch, with gradients
#
# In NumPy nobody learns. In torch, gradients must flow through the weights to `Q`, `K` and `V`.
# That brings one new difficulty: a number can be right and its **gradient** NaN.
#
# ### Exercise 4: `torch_scaled_dot_product_attention`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 20 minutes on it.
#
# The same function for torch tensors. Return `(output, weights)`, both connected to the inputs, so
# that gradients flow through both.
#
# - Shapes, broadcasting and masks as in exercise 2; `mask` is a boolean tensor or `None`.
# - A query that may attend to nothing has weights 0 and output 0, and **all gradients stay
#   finite**, as with torch's own function (of this version).
# - The conventions of lesson 1 hold (checked when graded). No errors are graded here.


# %% answer="torch_scaled_dot_product_attention"
def torch_scaled_dot_product_attention(Q, K, V, mask=None):
    """Scaled dot-product attention in torch; gradients flow to Q, K and V.

    Args:
        Q: (..., n_q, d_k) queries.
        K: (..., n_k, d_k) keys.
        V: (..., n_k, d_v) values; leading axes of Q, K and V broadcast.
        mask: boolean, broadcastable to the weights; True = may attend. None masks nothing.

    Returns:
        output (..., n_q, d_v) and weights (..., n_q, n_k). A query that may attend to
        nothing has weights 0, output 0 and finite gradients.
    """
    ### BEGIN SOLUTION
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        # The most negative finite number, not -inf: an empty row is then finite all the way, and
        # the second line sets it to zero. In other rows exp() of it is 0 anyway.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)
    return weights @ V, weights
    ### END SOLUTION


# %% check="torch_scaled_dot_product_attention" points=4.5 means="Gradients flow through your attention, so a model that uses it can be trained." card=["Return `(output, weights)`, both connected to the inputs, so that gradients flow through both", "Shapes, broadcasting and masks as in exercise 2", "A query that may attend to nothing has weights 0 and output 0, and **all gradients stay finite**"]
@probe
def gradients(mask, Q, K, V, of_output, of_weights):
    leaves = [x.clone().requires_grad_() for x in (Q, K, V)]
    output, weights = torch_scaled_dot_product_attention(*leaves, mask)
    total = (output * of_output).sum() + (weights * of_weights).sum()
    if total.requires_grad:
        total.backward()
    return [leaf.grad for leaf in leaves]


rng, names = check_rng(), ("output", "weights")
given = Q, K, V = [torch.tensor(rng.normal(size=size)) for size in ((3, 4), (5, 4), (5, 2))]
attend = lambda *mask: torch_scaled_dot_product_attention(*(x.clone() for x in given), *mask)
some = torch.tensor([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]) > 0
nothing = some & torch.tensor([[True], [False], [True]])
with check("as torch", points=1):
    message = "No mask: as torch's function. Check first: the root of d_k, is the softmax over the keys, is V used?"
    weights = F.scaled_dot_product_attention(Q, K, torch.eye(5).double())
    assert_results(attend(), {"output": weights @ V, "weights": weights}, message)
with check("a batch, and leading axes that broadcast: each text comes out as it does alone", points=1.25):
    batch = [torch.stack([x, 2 * x.flip(0)]) for x in given]
    leading = torch.stack([Q, -Q])[:, None], torch.stack([K, 2 * K, K.flip(0)]), V
    assert_each_alone(torch_scaled_dot_product_attention, [batch, leading], names=names)
for title, points, mask in (
    ("a mask (n_q, n_k)", 0.75, some),
    ("a query with nothing to see", 0.5, nothing),
):
    with check(f"{title}: from your weights without a mask", points=points):
        shares = attend()[1].detach() * mask
        weights = torch.where(mask.any(-1, keepdim=True), shares / shares.sum(-1, keepdim=True), 0.0)
        message = "Weights of 0 where the mask is False, the rest shares 1, and the output is made of these."
        expected, against = {"output": weights @ V, "weights": weights}, "from your weights without a mask"
        assert_results(attend(mask), expected, message, against=against)
for title, mask in (("without a mask", None), ("a query with nothing to see", nothing)):
    with check(f"gradients, {title}: your results' slopes", points=0.5):
        message = f"{title.capitalize()}: gradients are your results' slopes."
        results = partial(torch_scaled_dot_product_attention, mask=mask)
        assert_slopes(results, partial(gradients, mask), dict(zip("QKV", given)), message)
checks_passed("torch_scaled_dot_product_attention")

# %% check="torch_scaled_dot_product_attention_batches" points=1.5 card="Shapes, broadcasting and masks as in exercise 2"
# Hidden checks of torch_scaled_dot_product_attention: leading axes, equal and different.
### BEGIN HIDDEN TESTS
rng, names = check_rng(), ("output", "weights")


def drawn(*leads):
    sizes = (4, 3), (5, 3), (5, 7)
    return [torch.tensor(rng.normal(size=(*lead, *size))).float() for lead, size in zip(leads, sizes, strict=True)]


with check("one text, of other sizes: as torch", points=0.5):
    plain = drawn((), (), ())
    output, _ = torch_scaled_dot_product_attention(*(x.clone() for x in plain))
    assert_close(output, F.scaled_dot_product_attention(*plain), "One text: the output is torch's.", name="output")
for title, points, texts in (
    ("one batch axis: each text comes out as it does alone", 0.5, [drawn((6,), (6,), (6,)), drawn((1,), (1,), (1,))]),
    ("two batch axes: each text comes out as it does alone", 0.25, [drawn((2, 3), (2, 3), (2, 3))]),
    ("leading axes that differ: each text comes out as it does alone", 0.25, [drawn((6,), (), ()), drawn((), (2, 3), (1, 3)), drawn((2, 1), (3,), ())]),
):
    with check(title, points=points):
        assert_each_alone(torch_scaled_dot_product_attention, texts, names=names)
checks_passed("torch_scaled_dot_product_attention")
### END HIDDEN TESTS

# %% check="torch_scaled_dot_product_attention_masks" points=2 card=["Shapes, broadcasting and masks as in exercise 2", "A query that may attend to nothing has weights 0 and output 0"]
# Hidden checks of torch_scaled_dot_product_attention: masks that broadcast, some rows empty; large scores.
### BEGIN HIDDEN TESTS
rng, names = check_rng(), ("output", "weights")


def from_unmasked(Q, K, V, mask):
    shares = torch_scaled_dot_product_attention(Q, K, V)[1].detach() * mask
    weights = torch.where(mask.any(-1, keepdim=True), shares / shares.sum(-1, keepdim=True), 0.0)
    return weights @ V, weights


for title, points, shapes in (
    ("a mask (n_q, n_k)", 0.75, [((), (), (4, 5))]),
    ("masks with an axis of length 1, or without", 0.25, [((), (), (5,)), ((), (), (4, 1)), ((2,), (2,), (2, 1, 5))]),
    ("a mask for all texts of a batch", 0.25, [((2,), (2,), (4, 5)), ((4,), (4,), (4, 5)), ((2, 3), (2, 3), (5,))]),
    ("two batch axes, and axes that differ", 0.25, [((2, 3), (2, 3), (2, 1, 4, 5)), ((2, 3), (2, 3), (3, 4, 1)), ((2, 1), (3,), (2, 3, 1, 5))]),
):
    with check(f"{title}, an empty row: from your weights without a mask", points=points):
        for lead_q, lead_k, shape in shapes:
            sizes = (*lead_q, 4, 3), (*lead_k, 5, 3), (*lead_k, 5, 7)
            Q, K, V = (torch.tensor(rng.normal(size=size)).float() for size in sizes)
            mask = torch.tensor(rng.random(shape) < 0.5)
            mask[..., 0] = True
            mask.view(-1, shape[-1])[-1] = False  # the last row sees nothing
            if len(shape) == 1:
                mask[0] = True
            message = "weights of 0 where the mask is False, the rest shares 1; 0 with nothing to attend to."
            table = {f"Q {tuple(Q.shape)}, K {tuple(K.shape)}, a mask {shape}": (Q, K, V, mask)}
            against = "from your weights without a mask"
            assert_as_reference(torch_scaled_dot_product_attention, from_unmasked, table, message, names=names, against=against)
with check("a forbidden key with the largest score, beside small and large ones", points=0.5):
    half = 1 / (1 + math.exp(-1))
    for first, second, forbidden in ((1, 2, 24), (1, 2, 5000), (-2001, -2000, 9000), (-20001, -20000, 9000)):
        K = torch.zeros(3, 4)
        K[:, 0] = torch.tensor([first, second, forbidden])
        mask = torch.tensor([[True, True, False]])
        _, weights = torch_scaled_dot_product_attention(torch.tensor([[2.0, 0, 0, 0]]), K, torch.eye(3), mask)
        message = (
            f"Scores {first}, {second} and a forbidden one of {forbidden}: the others share 1 as if it "
            "were not there. Check first: what becomes of a forbidden score, and of the sum?"
        )
        assert_close(weights, torch.tensor([[1 - half, half, 0]]), message, name="weights")
checks_passed("torch_scaled_dot_product_attention")
### END HIDDEN TESTS

# %% check="torch_scaled_dot_product_attention_gradients" points=3 card=["both connected to the inputs, so that gradients flow through both", "**all gradients stay finite**, as with torch's own function"]
# Hidden checks of torch_scaled_dot_product_attention: gradients through output and weights; fully masked rows.
### BEGIN HIDDEN TESTS
@probe
def gradients_of(mask, Q, K, V, of_output, of_weights):
    leaves = [x.clone().requires_grad_() for x in (Q, K, V)]
    allowed = () if mask is None else (mask.clone(),)
    output, weights = torch_scaled_dot_product_attention(*leaves, *allowed)
    total = (output * of_output).sum() + (weights * of_weights).sum()
    if total.requires_grad:
        total.backward()
    return [leaf.grad for leaf in leaves]


rng = check_rng()
batch = {name: torch.tensor(rng.normal(size=size)) for name, size in zip("QKV", ((2, 4, 3), (2, 5, 3), (2, 5, 7)))}
text = {name: x[0] for name, x in batch.items()}
some = torch.tensor(rng.random((4, 5)) < 0.6)
some[:, :2] = True
nothing = some & torch.tensor([[True], [True], [False], [True]])
one_text = torch.stack([some[:1], some[:1] & False])
for title, points, given, mask in (
    ("one text, without a mask", 0.5, text, None),
    ("one text, with a mask", 0.75, text, some),
    ("a batch, with a mask", 0.25, batch, some),
    ("one text, a query with nothing to see", 1, text, nothing),
    ("a batch, queries with nothing to see", 0.5, batch, one_text),
):
    with check(f"gradients: {title}: finite, your results' slopes", points=points):
        message = f"{title}: each gradient is the slope of your results. A NaN replaced in the result lives on there."
        allowed = () if mask is None else (mask,)
        attend = partial(lambda allowed, *x: torch_scaled_dot_product_attention(*x, *allowed), allowed)
        assert_slopes(attend, partial(gradients_of, mask), given, message)
checks_passed("torch_scaled_dot_product_attention")
### END HIDDEN TESTS

# %% check="torch_scaled_dot_product_attention_dtypes" points=0.5 card="the result is at least as precise as the most precise input"
# Hidden checks of torch_scaled_dot_product_attention: float64, also on the way, and float32.
### BEGIN HIDDEN TESTS
rng, names = check_rng(), ("output", "weights")
Q, K, V = (torch.tensor(rng.normal(size=size)) for size in ((4, 3), (5, 3), (5, 7)))
message = "Float32 gives the results of the same numbers in float64, in float32 or better."
assert_as_floats(torch_scaled_dot_product_attention, [x.float() for x in (Q, K, V)], message, names=names)
output, weights = torch_scaled_dot_product_attention(Q, K, V)
order = [3, 0, 4, 2, 1]  # in float32 another order of the keys would change the last digits
message = "The same keys in another order, in float64: the same to ten digits. Check first: is anything float32?"
precise = {"precise": True, "rtol": 1e-10, "atol": 1e-13}
again = torch_scaled_dot_product_attention(Q, K[order], V[order])
expected = {"output": output.double(), "weights": weights.double()[:, order]}
assert_results(again, expected, message, against="with the keys in their first order", **precise)
exact = F.scaled_dot_product_attention(Q, K, torch.eye(5).double())
if bool((weights.double() - exact).abs().max() < 1e-5):  # else it is not the digits
    message = "In float64 the weights are torch's to ten digits. Check first: is anything float32, or added?"
    assert_close(weights, exact, message, name="weights, each of their digits", **precise)
### END HIDDEN TESTS

# %% check="torch_scaled_dot_product_attention_inputs" points=0.5 card="Arguments are not changed"
# Hidden checks of torch_scaled_dot_product_attention: the arguments are not changed.
### SIDE CONDITION: counts once another check of torch_scaled_dot_product_attention passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(Q, K, V, mask):
    torch_scaled_dot_product_attention(Q, K, V, mask)
    return Q, K, V, mask


rng, mask = check_rng(), torch.tensor([[True, False, True]] * 3 + [[False] * 3])
Q, K, V = (torch.tensor(rng.normal(size=size)) for size in ((4, 3), (3, 3), (3, 7)))
assert_unchanged(arguments_after, Q=Q, K=K, V=V, mask=mask)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `transpose(-2, -1)` swaps the last two axes of a tensor. `masked_fill` makes a new tensor and
# broadcasts its mask; note that it fills where its mask is **True**. For a row without any allowed
# key you have two ways: avoid that a NaN arises, or remove it so that no gradient passes through
# it. Test yours on a fully masked row with `.backward()`.
#
# </details>
#
# Three implementations of one formula, one answer: yours in NumPy, yours in torch, and torch's.

# %% tags=["demonstration"]
rng = np.random.default_rng(4)
Q, K = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4))
V = rng.normal(size=(2, 5, 6))
keep = padding_mask([5, 2], 5)  # (2, 1, 5)
mine, _ = scaled_dot_product_attention(Q, K, V, keep)  # (2, 3, 6)
tensors = [torch.tensor(array) for array in (Q, K, V, keep)]
mine_torch, _ = torch_scaled_dot_product_attention(*tensors)
theirs = F.scaled_dot_product_attention(*tensors)
print("NumPy against torch's function:", np.abs(mine - theirs.numpy()).max().round(12))
print("torch against torch's function:", (mine_torch - theirs).abs().max().numpy().round(12))

# %% [markdown]
# ### Optional reading: a NaN that hides in the gradient
#
# You may skip this part: nothing later needs it. A common repair for an empty row is: let the softmax give NaN, and replace the NaN by 0
# afterwards. Many texts say that this always gives NaN gradients. Others say that it is fine.
# **Predict, then run:** which one is it? Look at a single row of scores with all three keys
# forbidden. The three ways put the $-\infty$ into the row differently.

# %%
blocked = torch.tensor([True, True, True])
ways = {
    "added        ": lambda s: s + torch.zeros(3).masked_fill(blocked, -math.inf),
    "masked_fill  ": lambda s: s.masked_fill(blocked, -math.inf),
    "torch.where  ": lambda s: torch.where(blocked, torch.tensor(-math.inf), s),
}
for name, put_in in ways.items():
    row = torch.tensor([2.0, 1.0, 0.0], requires_grad=True)
    repaired = put_in(row).softmax(-1).nan_to_num()
    (repaired * torch.arange(3.0)).sum().backward()
    print(name, "row", repaired.tolist(), " gradient", row.grad.tolist())

# %% [markdown]
# Both are right, each for a different way. In the backward pass the softmax gives NaN in all three
# cases: its gradient is computed from its own output, and that was NaN. An addition passes the NaN
# on to the scores, and from there it reaches every weight that helped to make the scores.
# `masked_fill` and `torch.where` pass on 0 at the places that they have overwritten, so the NaN
# ends there. A float mask is an addition, so with it this repair fails. And even where the gradient
# is finite in the end, `torch.autograd.set_detect_anomaly(True)`, the usual tool to look for NaN,
# stops at it:

# %%
import warnings

row = torch.tensor([2.0, 1.0, 0.0], requires_grad=True)
try:
    with warnings.catch_warnings(action="ignore"), torch.autograd.set_detect_anomaly(True):
        ways["masked_fill  "](row).softmax(-1).nan_to_num().sum().backward()
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## 6. Find the silent bug
#
# A colleague lets texts attend to themselves, each text to itself. The batch has five texts, filled
# up to five words. The mask comes from a Hugging Face tokenizer: 1 = a word, 0 = padding. The code
# calls torch's own function, it runs, and the first checks look good. **It has one mistake**, and
# most of its output is wrong. Read it, and use the empty cell to find out what happens.

# %% locked="given_colleague"
attention_mask = torch.tensor(
    [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 0, 0, 0, 0]]
)  # (batch, n): the texts have 5, 2, 3, 4 and 1 words


def encode(texts, attention_mask):
    """A colleague's self-attention: texts (batch, n, d), attention_mask (batch, n)."""
    is_word = attention_mask.bool()
    output = F.scaled_dot_product_attention(texts, texts, texts, attn_mask=is_word)
    return torch.where(is_word[:, :, None], output, 0.0)  # padding itself gets 0


texts = torch.randn(5, 5, 8, generator=torch.Generator().manual_seed(0))  # (batch, n, d)
encoded = encode(texts, attention_mask)
unmasked = F.scaled_dot_product_attention(texts, texts, texts)
print("shape", tuple(encoded.shape), " NaN:", bool(encoded.isnan().any()))
print("padding is 0:", bool((encoded[attention_mask == 0] == 0).all()))
print("the mask does something:", not torch.allclose(encoded, unmasked))
print("text 0 has no padding; its first word:", torch.allclose(encoded[0, 0], unmasked[0, 0]))

# %%
# Your experiments. For example: put 1000 into the padding of one text. Whose output may change?

# %% [markdown]
# ### Short answer 3: `answer_silent_bug`
#
# Find the mistake; then say what it does. Which words of the batch get the right output? (Texts and
# words are counted from 0; we mean words, not padding.)
#
# - a) All words of text 0, which has no padding, and no word of the other texts.
# - b) Word $t$ of text $t$, where there is such a word, and no other word.
# - c) The first word of every text, and no other word.
# - d) No word at all: words and padding are exchanged.

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "b"
### END SOLUTION

# %% check="answer_silent_bug" points=1
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# ### Exercise 5: `mended_encode`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# Copy `encode` into this cell and mend it.
#
# - `texts (batch, n, d)` and `attention_mask (batch, n)`, torch tensors; 1 = a word, 0 = padding.
#   Returns `(batch, n, d)`.
# - Each word attends to all words of its own text and to nothing else. The rows of padding are 0.
# - Any batch size and any length; a text may have no word at all. `attention_mask` holds whole
#   numbers (as from a tokenizer) or booleans.
# - No errors are graded here.


# %% answer="mended_encode"
def mended_encode(texts, attention_mask):
    """Self-attention in which each word attends to the words of its own text.

    Args:
        texts: (batch, n, d).
        attention_mask: (batch, n); 1 or True = a word, 0 or False = padding.

    Returns:
        (batch, n, d); rows of padding are 0.
    """
    ### BEGIN SOLUTION
    is_word = attention_mask.bool()
    keep = is_word[:, None, :]  # (batch, 1, n): the keys of each text, for all its queries
    output = F.scaled_dot_product_attention(texts, texts, texts, attn_mask=keep)
    return torch.where(is_word[:, :, None], output, 0.0)
    ### END SOLUTION


# %% check="mended_encode" points=2 means="Each text comes out as it does alone, whatever padding stands beside it." card=["Each word attends to all words of its own text and to nothing else. The rows of padding are 0", "Any batch size and any length", "`attention_mask` holds whole numbers (as from a tokenizer) or booleans"]
rng, counts = check_rng(), [3, 1, 4, 2]  # at these sizes the colleague's code runs
texts = torch.tensor(rng.normal(size=(4, 4, 3))).float()
words = torch.tensor([[int(t < count) for t in range(4)] for count in counts])
with check("each text as if it were alone", points=1):
    encoded = mended_encode(texts.clone(), words.clone())
    for number, count in enumerate(counts):
        alone = texts[number, :count]
        expected = F.scaled_dot_product_attention(alone, alone, alone)
        message = f"Text {number} has {count} words: they come out as torch's function encodes them alone."
        assert_close(encoded[number, :count], expected, message, name=f"the words of text {number}")
with check("padding is 0, and words are not", points=0.5):
    encoded = mended_encode(texts.clone(), words.clone())
    assert_close(encoded[words == 0], torch.zeros(6, 3), "The rows of padding are 0.", name="the rows of padding")
    there = bool((encoded[words == 1] != 0).any())
    assert_equal(there, True, "The rows of words are not all 0.")
with check("three of the four texts, booleans: as among the four", points=0.5, side=True):
    fewer = mended_encode(texts[:3].clone(), words[:3].bool())
    message = "Three texts, with a mask of booleans: not all that comes out is 0, and none of it NaN."
    assert_equal(bool(fewer.abs().max() > 1e-3), True, message)
    message = "Three texts of the four, with a mask of booleans: they come out as among the four."
    among = mended_encode(texts.clone(), words.clone())[:3]
    assert_close(fewer, among, message, against="among the four, with whole numbers")
checks_passed("mended_encode")

# %% check="mended_encode_texts" points=1 card=["Any batch size and any length; a text may have no word at all", "the result is at least as precise as the most precise input", "Arguments are not changed"]
# Hidden checks of mended_encode: other sizes, padding anywhere, a text without words, float64.
### BEGIN HIDDEN TESTS
@probe
def encoded_and_arguments(texts, words):
    return mended_encode(texts, words), texts, words


def text_by_text(texts, words):
    encoded = torch.zeros_like(texts)
    for number, there in enumerate(words.bool()):
        alone = texts[number, there]
        encoded[number, there] = F.scaled_dot_product_attention(alone, alone, alone)
    return encoded


rng, none = check_rng(), [0, 0, 0, 0]
for case, rows in {
    "two texts, padding at the end": [[1, 1, 1, 0], [1, 1, 0, 0]],
    "one text": [[1, 1, 1, 0]],
    "texts of one place": [[1], [1]],
    "padding anywhere": [[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1]],
    "the second text has no word": [[1, 1, 0, 0], none, [0, 1, 1, 1], none],
}.items():
    words = torch.tensor(rows)
    texts = torch.tensor(rng.normal(size=(*words.shape, 3)))
    texts[words == 0] = 100.0  # padding holds anything
    texts[0, 0] = 0.0  # a word as any other
    encoded, *after = encoded_and_arguments(texts.clone(), words.clone())
    message = (
        f"Float64, {case}, one word of zeros: each word attends to the words of its own text, as torch's "
        "function gives it for these words alone; rows of padding are 0."
    )
    assert_close(encoded, text_by_text(texts, words), message)
    assert_close(encoded, text_by_text(texts, words), message + " All digits count.", precise=True)
    assert_equal(after, [texts, words], "mended_encode changes its arguments.", name="texts and mask")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>What would have found it</summary>
#
# Not the shape of the result, not the missing NaN, and not one lucky word. Three habits find it:
# test with a batch size and a length that **differ**; compare one text alone with the same text
# in the batch; change what stands in the padding, and see that nothing else changes.
#
# </details>

# %% [markdown]
# ## 7. Trained with and without the scale
#
# You have seen training loops since lesson 1. Before the next one, type one yourself: without an
# optimiser, so that nothing in it is hidden.
#
# ### Exercise 6: `gradient_descent`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 15 minutes on it.
#
# In each step, compute the loss and its gradient, and move every parameter by `lr` times its
# gradient, downhill.
#
# - `loss_of`: a callable without arguments. It computes the loss from the parameters as they are when
#   it is called: a torch scalar.
# - `parameters`: a list of tensors that require a gradient. The loss uses all of them. They are changed
#   **in place** and stay the tensors that they are, ready to be trained further.
# - `steps`: how often; `lr`: the learning rate.
# - All parameters of a step move by the gradient at the same point. What lies in their `.grad` when
#   the function is called has no influence.
# - Returns a list of `steps` Python floats: the loss **before** each step. Checked when graded only:
#   `steps = 0` gives `[]` and moves nothing.


# %% answer="gradient_descent"
def gradient_descent(loss_of, parameters, steps, lr):
    """Move the parameters downhill, `steps` times.

    Args:
        loss_of: callable without arguments; the loss at the present parameters, a torch scalar.
        parameters: list of tensors that require a gradient; changed in place.
        steps: number of steps.
        lr: learning rate.

    Returns:
        List of Python floats, the loss before each step.
    """
    ### BEGIN SOLUTION
    losses = []
    for _ in range(steps):
        for tensor in parameters:
            tensor.grad = None
        loss = loss_of()
        loss.backward()
        with torch.no_grad():
            for tensor in parameters:
                tensor.sub_(lr * tensor.grad)
        losses.append(float(loss.detach()))
    return losses
    ### END SOLUTION


# %% check="gradient_descent" points=3 means="Each step of your loop goes downhill, and an old gradient does not disturb it." card=["move every parameter by `lr` times its gradient, downhill", "All parameters of a step move by the gradient at the same point", "What lies in their `.grad` when the function is called has no influence", "the loss **before** each step"]
@probe
def descended(problem, start, steps, lr, old=None):
    """The parameters after gradient_descent, and what it returned, as floats."""
    parameters = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in start]
    for parameter in parameters:
        parameter.grad = None if old is None else torch.full_like(parameter, old)

    def loss_of():
        square = problem == "p squared"
        return parameters[0] ** 2 if square else (parameters[0] * parameters[1] - 1.0) ** 2

    with torch.enable_grad():  # afterwards it is as before, whatever the call does
        losses = gradient_descent(loss_of, parameters, steps, lr)
    found = [float(loss) for loss in losses] if isinstance(losses, (list, tuple)) else losses
    return np.array([parameter.item() for parameter in parameters]), found


with check("downhill", points=0.75):
    after = [np.abs(descended("p squared", [4.0], steps, 0.25)[0]).max() for steps in (3, 1)]
    message = "The loss is p squared. From p = 4 each step with lr = 0.25 brings p nearer to 0."
    assert_equal(bool(0 < after[0] < after[1] < 4.0), True, message, name="'nearer with every step'")
with check("how far", points=0.75):
    for steps, expected in ((1, 2.0), (2, 1.0), (3, 0.5)):
        message = f"From p = 4, {steps} steps with lr = 0.25 on p squared: each takes away 0.25 times 2 p."
        assert_close(descended("p squared", [4.0], steps, 0.25)[0], np.array([expected]), message, name="p")
with check("a loss a step: p squared where your own steps led", points=0.75, side=True):
    places = np.array([4.0] + [descended("p squared", [4.0], steps, 0.25)[0][0] for steps in (1, 2)])
    message = "Three steps from p = 4: one loss a step, p squared before that step (16, 4 and 1 if right)."
    losses = np.array(descended("p squared", [4.0], 3, 0.25)[1])
    assert_close(losses, places**2, message, name="the losses", against="as p squared, from shorter runs")
with check("two parameters", points=0.5):
    message = "Loss (a b - 1)^2 at a = 2, b = 1: its slopes at this point are 2 and 4. One step, lr = 0.125."
    assert_close(descended("ab", [2.0, 1.0], 1, 0.125)[0], np.array([1.75, 0.5]), message, name="a and b")
with check("an old gradient changes nothing", points=0.25):
    fresh, _ = descended("p squared", [4.0], 1, 0.25)
    assert_equal(bool(0 < fresh[0] < 4.0), True, "A step from p = 4 ends between 0 and 4.", name="'it does'")
    after, _ = descended("p squared", [4.0], 1, 0.25, old=100.0)
    message = "p.grad was 100 when the function was called. That should change nothing."
    assert_close(after, fresh, message, name="p", against="without an old gradient")
checks_passed("gradient_descent")

# %% check="gradient_descent_problems" points=2 card=["move every parameter by `lr` times its gradient, downhill", "All parameters of a step move by the gradient at the same point", "a list of `steps` Python floats: the loss **before** each step"]
# Hidden checks of gradient_descent: a linear model, steep and flat; a loss that grows; shared gradients.
### BEGIN HIDDEN TESTS
@probe
def fitted(X, y, W, b, steps, lr, old):
    W, b = W.clone().requires_grad_(), b.clone().requires_grad_()
    if old:
        W.grad, b.grad = torch.ones_like(W), torch.ones_like(b)

    def loss_of():
        return ((X @ W + b - y) ** 2).mean()

    with torch.enable_grad():  # afterwards it is as before, whatever the call does
        losses = gradient_descent(loss_of, [W, b], steps, lr)
    return W.detach(), b.detach(), [float(loss) for loss in losses]


@probe
def summed(starts, steps, lr):
    a, b = (torch.tensor(start).requires_grad_() for start in starts)

    def loss_of():
        return ((a + b) ** 2).sum()

    with torch.enable_grad():
        gradient_descent(loss_of, [a, b], steps, lr)
    return torch.stack([a.detach(), b.detach()])


def by_hand(X, y, W, b, steps, lr):
    for _ in range(steps):
        slope = 2.0 * (X @ W + b - y) / y.numel()
        W, b = W - lr * X.T @ slope, b - lr * slope.sum(0)
    return W, b


rng, cases = check_rng(), {}
for case, scale, steps, lr, old in (
    ("one step", 1, 1, 0.1, False),
    ("six steps, old gradients", 1, 6, 0.3, True),
    ("gradients in the tens of thousands", 100, 4, 1e-5, False),
    ("a rate so large that the loss grows", 1, 3, 5.0, False),
    ("a rate so small that nothing seems to move", 1, 3, 1e-12, False),
):
    given = [scale * torch.tensor(rng.normal(size=size)) for size in ((9, 3), (9, 2), (3, 2), (2,))]
    cases[f"A linear model, {case}"] = (*given, steps, lr, old)
with check("where it ends", points=1):
    for case, (*given, old) in cases.items():
        message = f"{case}: each step takes lr times their gradients from W and b, as large as they are."
        expected = dict(zip("Wb", by_hand(*given)))
        assert_results(fitted(*given, old)[:2], expected, message)
    start = rng.normal(size=(2, 3))
    message = "Loss ((a + b) ** 2).sum(): a and b move alike. Check first: is a gradient changed in place?"
    right = torch.tensor(start - start.sum(axis=0) * (1 - 0.6**3) / 2)  # a + b: times 0.6
    assert_close(summed(start, 3, 0.1), right, message, name="a and b")
with check("a loss a step: at the W and b where your own steps led", points=1):
    for case, (X, y, *start, steps, lr, old) in cases.items():
        places = [start] + [fitted(X, y, *start, fewer, lr, old)[:2] for fewer in range(1, steps)]
        before = np.array([float((X @ W + b - y).square().mean()) for W, b in places])
        losses = np.array(fitted(X, y, *start, steps, lr, old)[2])
        message = f"{case}, {steps} steps: a loss a step, each from before it."
        assert_close(losses, before, message, name="the losses", against="from runs with fewer steps")
        moved = steps != 6 or bool((places[1][0] - start[0]).abs().max() > 1e-4)
        assert_equal(moved, True, "The steps move W.", name="'W has moved, and holds no NaN'")
checks_passed("gradient_descent")
### END HIDDEN TESTS

# %% check="gradient_descent_tensors" points=1 card=["They are changed **in place** and stay the tensors that they are, ready to be trained further", "a list of `steps` Python floats", "`steps = 0` gives `[]` and moves nothing"]
# Hidden checks of gradient_descent: the same tensors, floats, no step, further calls, a loss of 0.
### SIDE CONDITION: counts once another check of gradient_descent passes.
### BEGIN HIDDEN TESTS
@probe
def kinds(start, steps):
    parameter = torch.tensor(start, requires_grad=True)
    parameters = [parameter]

    def loss_of():
        return (parameter**2).sum()

    with torch.enable_grad():  # afterwards it is as before, whatever the calls do
        first, then = (gradient_descent(loss_of, parameters, steps, 0.1) for _ in range(2))
        records = torch.is_grad_enabled()
    same = parameters[0] is parameter and parameter.is_leaf and parameter.requires_grad
    return [same, records], [type(loss).__name__ for loss in [*first, *then]], parameter.detach()


start = check_rng().normal(size=4)
for scale, steps in ((1, 0), (1, 1), (1, 5), (0, 3)):
    facts, names, after = kinds(scale * start, steps)
    message = f"From a start times {scale}, {steps} steps, twice: a list of {steps} Python floats each time."
    assert_equal(names, ["float"] * (2 * steps), message, name="the types of the losses")
    message = "The same tensors as before, which require a gradient; and torch records as before the call."
    assert_equal(facts, [True, True], message, name="'the same tensors', 'gradients are recorded'")
    message = f"Twice {steps} steps on the sum of squares: each takes away a fifth."
    assert_close(after, torch.tensor(scale * start * 0.8 ** (2 * steps)), message, name="the parameter")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Four things happen in each round: old gradients go, the loss is computed anew, backward, the step.
# In which order? Which of them must autograd not record? `p = p - ...` gives the name `p` to a new
# tensor, and the caller keeps the old one. `torch.optim.SGD` does the same; compare with it if you
# like.
#
# </details>
#
# **Predict, then run.** One query of 512 features should learn to look at key 0 of 16, all drawn with
# variance 1. Your loop trains the query, with the scale and without it, from eight random starts.
# How many of the eight learn it?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ on another machine.
def losses_of(factor, seed, steps=200):
    """Squared distance of the weights from "all on key 0", before each step on the query alone."""
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(16, 512, generator=generator)
    query = torch.randn(1, 512, generator=generator).requires_grad_()

    def loss_of():
        _, weights = torch_scaled_dot_product_attention(factor * query, keys, keys)
        return (weights - F.one_hot(torch.tensor([0]), 16)).square().sum()

    return gradient_descent(loss_of, [query], steps, lr=1.0)


learned, descents = {}, {}
for name, factor in (("with the scale", 1.0), ("without", math.sqrt(512))):
    descents[name] = [losses_of(factor, seed) for seed in range(8)]
    ends = [losses[-1] for losses in descents[name]]
    learned[name] = sum(end < 0.05 for end in ends), sum(end > 1.5 for end in ends)
    print(f"{name:15s} learned {learned[name][0]} of 8, stuck {learned[name][1]} of 8")

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ on another machine.
assert learned["with the scale"][0] == 8
assert learned["without"][0] <= 2 and learned["without"][1] >= 5
figure, axes = plt.subplots(figsize=(6.4, 3.2))
for losses, colour in zip(descents.values(), ("tab:blue", "tab:red")):
    axes.semilogx(np.arange(1, 201), np.transpose(losses), color=colour, alpha=0.7)
axes.annotate("without: loss 2, no downhill", (10, 2), (1.5, 1.55), color="tab:red", arrowprops={"arrowstyle": "->"})
axes.text(230, 0.9, "with the scale", color="tab:blue", ha="right")
axes.text(2.1, 0.08, "luck", color="tab:red")
axes.set(xlabel="step", ylabel="loss")
show(
    figure,
    "Your loop, eight random starts each. Without the scale most softmax rows have decided before the "
    "first step, for a wrong key: a start that learns all the same is luck.",
    "Loss against step. With the scale all eight curves fall from about 1 to 0. Without it most lie at 2 "
    "throughout.",
)

# %% [markdown]
# Now the promise of section 1. The loop below is like yours, with `torch.optim.Adam` for the step (it
# gives each number a step size of its own). A small **dictionary**: 64 French words, each with an English
# partner. The first five pairs are le/the, noir/black, chat/cat, est/is, dort/sleeping; the other
# 59 are only numbers. Each French word has a query vector and each English word a key vector, with
# $d_k = 512$. All are random at first, with variance 1: the default start of `nn.Embedding`.
#
# One question of the task: 16 English words, each holding a digit. A French word is asked. The
# model must return the digit that its English partner holds. Nobody tells the model which words
# are partners. It is told only the right digit, and must find the pairs through the gradient of
# attention.
#
# The model is nothing but your `torch_scaled_dot_product_attention`: one query, 16 keys, and the
# digits as values. A digit is written as a **one-hot** vector: ten zeros, with a 1 at the digit's
# place. The output is an average of such vectors, and the loss is the squared error between it and
# the right digit's vector. "Without the scale" needs no second function: queries multiplied by
# $\sqrt{d_k}$ undo the division.
#
# **Predict, then run.** Three runs each, 300 steps, entries of standard deviation 1 at the start.
# What share of fresh questions will a model with the scale answer correctly? And one without?

# %% tags=["demonstration", "guess"]
guess_trained = (1.0, 0.8)  # write (with the scale, without the scale)

# %% tags=["demonstration"]
WORDS, STORE, D_K = 64, 16, 512


def questions(number, generator):
    """Keys (number, 16) and their digits; the word asked for is the partner of key 0."""
    # The order of the keys means nothing to attention, so "always key 0" gives nothing away.
    keys = torch.rand(number, WORDS, generator=generator).argsort(dim=-1)[:, :STORE]
    return keys, torch.randint(0, 10, (number, STORE), generator=generator)


def answer(tables, keys, digits, factor):
    """Average of the digits, one-hot, weighted by attention: (number, 10)."""
    query = factor * tables["query"][keys[:, :1]]  # (number, 1, d_k)
    one_hot = F.one_hot(digits, 10).float()  # (number, 16, 10)
    return torch_scaled_dot_product_attention(query, tables["key"][keys], one_hot)[0][:, 0]


def squared_error(tables, keys, digits, factor):
    """Squared distance between the output and the right digit, for each question."""
    difference = answer(tables, keys, digits, factor) - F.one_hot(digits[:, 0], 10)
    return difference.square().sum(-1)


def train(factor, start, seed, lr=3e-3, loss_of=squared_error, steps=300):
    """Train from entries of standard deviation `start`: tables, losses, accuracy."""
    generator = torch.Generator().manual_seed(seed)
    tables = {
        name: (start * torch.randn(WORDS, D_K, generator=generator)).requires_grad_()
        for name in ("query", "key")
    }
    optimizer = torch.optim.Adam(tables.values(), lr=lr)
    losses = []
    for _ in range(steps):
        keys, digits = questions(32, generator)
        loss = loss_of(tables, keys, digits, factor).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        keys, digits = questions(2000, generator)
        right = answer(tables, keys, digits, factor).argmax(-1) == digits[:, 0]
    return {name: t.detach() for name, t in tables.items()}, losses, right.float().mean().item()


# %% tags=["demonstration", "nbval-ignore-output"] seconds=10
# Printed accuracies come from training: they may differ in the last digit on another machine.
UNDO = math.sqrt(D_K)  # queries times this factor: the scale is undone
settings = {
    "scale, start 1": (1.0, 1.0),
    "no scale, start 1": (UNDO, 1.0),
    "no scale, start 0.58": (UNDO, 3**-0.5),
    "no scale, start 0.21": (UNDO, D_K**-0.25),
}
trained_so_far = {name: [] for name in settings}
for run in progress(12, "four settings, three seeds each"):
    name = list(settings)[run // 3]
    trained_so_far[name].append(train(*settings[name], seed=run % 3))
    note(f"loss {trained_so_far[name][-1][1][-1]:.3f}")
runs = trained_so_far  # only when all are there: what follows averages over them
for name, trained in runs.items():
    accuracies = [accuracy for _, _, accuracy in trained]
    print(f"{name:22s} accuracy", *(f"{a:.2f}" for a in accuracies))

assert min(a for _, _, a in runs["scale, start 1"]) > 0.95
assert max(a for _, _, a in runs["no scale, start 1"]) < 0.5
assert min(a for _, _, a in runs["no scale, start 0.58"]) > 0.4
assert max(a for _, _, a in runs["no scale, start 0.58"]) < 0.75
assert min(a for _, _, a in runs["no scale, start 0.21"]) > 0.99

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
came_out = tuple(
    np.mean([accuracy for _, _, accuracy in runs[name]])
    for name in ("scale, start 1", "no scale, start 1")
)
why = "The next picture shows that the start is a part of it."
reply("guess_trained", guess_trained, came_out, why, within=0.1)

# %% tags=["demonstration"]
def smooth(losses, width=10):
    """Mean of the last `width` losses."""
    return np.convolve(losses, np.ones(width) / width, mode="valid")


final = {name: np.mean([loss[-20:] for _, loss, _ in trained]) for name, trained in runs.items()}
figure, axes = plt.subplots(figsize=(6.2, 3.8))
styles = (("tab:blue", "-"), ("tab:red", "-"), ("tab:orange", "--"), ("black", ":"))
heights = {"scale, start 1": final["scale, start 1"], "no scale, start 1": 1.6, "no scale, start 0.58": 0.65}
for (name, trained), (colour, line) in zip(runs.items(), styles):
    for _, losses, _ in trained:
        axes.semilogy(smooth(losses), line, color=colour, lw=1.6)
    if name in heights:
        axes.text(294, heights[name], name, color=colour, va="center")
axes.set(xlabel="training step", ylabel="squared error (mean of 10 steps)", ylim=(1e-3, 3))
axes.annotate("no scale, start 0.21:\nlearned without it", (65, 2e-2), (95, 2e-3), arrowprops={"arrowstyle": "->"})

assert final["scale, start 1"] < 0.1 and 0.8 < final["no scale, start 1"] < 1.6
assert 0.6 < final["no scale, start 0.58"] < 1.3 and final["no scale, start 0.21"] < 1e-3
show(
    figure,
    "Figure 3. (start: standard deviation of the entries.) Do not conclude that attention cannot be trained "
    "without the scale: what counts is how large the scores are when training begins.",
    "Squared error against step, three runs each. With scale: from about 1 to below 0.1. Without "
    "scale at start 1: falls slowly from 1.6 and stays above 0.8. At start 0.58: somewhat "
    "lower, near 0.9. Without scale at start 0.21: fastest, below 0.001 at the end.",
)

# %% [markdown]
# Read the four results together. Most texts tell only the first two.
#
# - **Entries of variance 1** (start 1, as from `nn.Embedding`): with the scale 0.98 or more is
#   right, without it 0.3 to 0.4. Outside this notebook we also tried 1,500 steps (0.39 to 0.56) and
#   learning rates from 0.0003 to 0.3 (at most 0.51 in 200 steps). It learns, but very slowly: most
#   queries are saturated and get no gradient.
# - **Entries of variance 1/3** (start 0.58): this is what PyTorch's default `nn.Linear` makes of
#   inputs of variance 1. The scores are three times smaller, and about half is right. PyTorch's
#   default softens the effect, but it is not enough here.
# - **Scores of variance 1 by smaller vectors** (start 0.21, which is $512^{-1/4}$): no scale at
#   all, and everything is right.
#
# The last one is also the fastest of the four. That is *not* an advantage of "no scale". A step of
# Adam has about the size of the learning rate, whatever the size of the vectors. So the same step
# is five times larger for vectors that are five times smaller. Make the step as large for the model
# with the scale, and the two are the same model in other units:

# %% tags=["demonstration", "nbval-ignore-output"]
# The last digits come from training: they may differ on another machine.
_, same_losses, same_accuracy = train(1.0, 1.0, seed=0, lr=3e-3 / D_K**-0.25)
_, green_losses, green_accuracy = runs["no scale, start 0.21"][0]
difference = np.abs(np.subtract(same_losses, green_losses)).max()
print(f"scale, start 1, learning rate 0.003 / 0.21: accuracy {same_accuracy:.2f}")
print(f"largest difference to the losses of 'no scale, start 0.21': {difference:.5f}")
assert difference < 0.01 and same_accuracy > 0.99

# %% [markdown]
# So the square root is not magic. It makes the scores of order 1 at the start **for every $d_k$
# and an ordinary initialisation**, so that nobody has to think about it again.
#
# ### The loss can hide the problem
#
# In a network other layers follow, and the gradient comes back *through* the attention weights. The
# squared error above stands for that. Some models take the log of a weight itself as their loss:
# models that point at a place in the text do. Let $w_r$ be the sum of the weights on keys with the
# right digit. The loss $-\ln w_r$ has a gradient that is easy to write down:
#
# $$\frac{\partial (-\ln w_r)}{\partial s_j} = w_j - \begin{cases} w_j / w_r & \text{key } j
# \text{ holds the right digit} \\ 0 & \text{otherwise.} \end{cases}$$
#
# If all weight lies on one wrong key, the gradient there is 1, the largest there can be. The log
# undoes the saturation of the softmax.
#
# **Predict, then run.** No scale, start 1, the log loss: what is the accuracy now? And what does it
# become with the small "safety" number of many programs, $-\ln(w_r + 10^{-9})$?


# %% tags=["demonstration"]
def log_loss(tables, keys, digits, factor):
    """-log of the weight on the keys with the right digit, computed from the scores."""
    query = factor * tables["query"][keys[:, 0]] / UNDO
    scores = torch.einsum("bd,bnd->bn", query, tables["key"][keys])  # (number, 16)
    right = scores.masked_fill(digits != digits[:, :1], -math.inf)
    return scores.logsumexp(-1) - right.logsumexp(-1)


def log_loss_with_safety(tables, keys, digits, factor):
    """The same, from the output, with 1e-9 against log(0)."""
    output = answer(tables, keys, digits, factor)
    return -(output.gather(1, digits[:, :1])[:, 0] + 1e-9).log()


# %% tags=["demonstration", "nbval-ignore-output"]
# Printed accuracies come from training: they may differ in the last digit on another machine.
by_loss = {"squared_error": [accuracy for _, _, accuracy in runs["no scale, start 1"]]}
by_loss |= {loss_of.__name__: [] for loss_of in (log_loss, log_loss_with_safety)}
for run in progress(6, "two losses, three seeds each"):
    loss_of = (log_loss, log_loss_with_safety)[run // 3]
    by_loss[loss_of.__name__].append(train(UNDO, 1.0, run % 3, loss_of=loss_of)[2])
for name, accuracies in by_loss.items():
    print(f"no scale, start 1, {name:21s} accuracy", *(f"{a:.2f}" for a in accuracies))
assert min(by_loss["log_loss"]) > 0.95
assert max(by_loss["log_loss_with_safety"]) < 0.8

untrained = {name: torch.randn(WORDS, D_K) for name in ("query", "key")}
tiny = log_loss(untrained, *questions(2000, torch.Generator()), UNDO) > -math.log(1e-9)
print(f"before training: w_r < 1e-9 in {tiny.float().mean():.0%} of the questions")
assert 0.45 < tiny.float().mean() < 0.65

# %% [markdown]
# With the log loss the model without the scale learns everything. The safety number spoils it
# again: only about 0.6 is right. In more than half of the questions $w_r$ is below $10^{-9}$ before
# training. There the sum is nearly $10^{-9}$ whatever the weight does, and the gradient is nearly
# gone. So before you say "attention needs the scale" or "it does not", look at the loss. A log that
# is safe *and* keeps its gradient is computed from the scores (`log_softmax`, `logsumexp`).
#
# ### What they have learned
#
# Back to the squared error. What have the two models of variance 1 learned? Their weights are a table,
# and a table of weights is best seen as a picture: one row a query, one column a key, the
# stronger the colour, the more weight. Every later lesson reads such **maps**, so you write the function that draws them.
# [seaborn](https://seaborn.pydata.org) draws one in a line. **Predict, then run:** the weights below
# lie between 0.19 and 0.21. Which of the two pictures will show that?

# %% tags=["demonstration"]
nearly_even = 0.2 + 0.01 * np.array([[1, 0, -1, 0, 0], [0, -1, 0, 1, 0], [-1, 0, 1, 0, 0]])
figure, panels = plt.subplots(1, 2, figsize=(8.1, 2.6))
sns.heatmap(nearly_even, ax=panels[0], cmap="Blues")  # the colours go from the least to the most
sns.heatmap(nearly_even, ax=panels[1], cmap="Blues", vmin=0, vmax=1)
for axes, title in zip(panels, ("colours from 0.19 to 0.21", "colours from 0 to 1")):
    axes.set_title(title)
figure.tight_layout()
show(
    figure,
    "Figure 4. The same numbers twice. Stretched colours, the default, make an even map look as sharp as a "
    "trained one. Maps that are compared need one scale: for weights, 0 to 1.",
    "Two heat maps of three rows and five columns with the same numbers, 0.19 to 0.21. Left, colours "
    "from the least to the most: some cells nearly white, some dark. Right, colours from 0 to 1: all "
    "cells the same light blue.",
    text_table(nearly_even, "012", "01234"),
)

# %% [markdown]
# ### Exercise 7: `attention_heatmap`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 20 minutes on it.
#
# Draw weights with seaborn or matplotlib, as you like, and return the matplotlib `Axes`.
#
# - `weights`: `(n_q, n_k)`, a NumPy array or a torch tensor, also one that requires a gradient; it is
#   not changed. `query_words`, `key_words`: lists of `n_q` and `n_k` words.
# - `ax`: the axes to draw on; then no figure is opened. `None`: the axes of a new pyplot figure.
# - One mesh or image holds the numbers, unrounded: one row a query, the first on top; one column a key,
#   the first at the left. Its colours are linear from 0 to 1 whatever the weights are.
# - In the middle of each row and each column a tick carries its word, also where words repeat.
# - The labels of the axes are exactly `query` (for the rows) and `key` (for the columns).
# - Words that do not fit their axis in number are a `ValueError`.
# - Colour map, colour bar, numbers in the cells and size are free.


# %% answer="attention_heatmap"
def attention_heatmap(weights, query_words, key_words, ax=None):
    """Draw weights as a map: one row a query, one column a key.

    Args:
        weights: (n_q, n_k), NumPy array or torch tensor; not changed.
        query_words: list of n_q words, for the rows.
        key_words: list of n_k words, for the columns.
        ax: matplotlib Axes to draw on; None opens a new figure.

    Returns:
        The matplotlib Axes with the map.

    Raises:
        ValueError: the words do not fit the weights in number.
    """
    ### BEGIN SOLUTION
    if isinstance(weights, torch.Tensor):
        weights = weights.detach().numpy()
    if weights.shape != (len(query_words), len(key_words)):
        raise ValueError(
            f"weights has shape {weights.shape}, but there are {len(query_words)} query_words and "
            f"{len(key_words)} key_words"
        )
    if ax is None:
        ax = plt.figure().add_subplot()
    sns.heatmap(weights, ax=ax, cmap="Blues", vmin=0, vmax=1, annot=True, fmt=".2f", cbar=False)
    ax.set_xticks(np.arange(len(key_words)) + 0.5, key_words)
    ax.set_yticks(np.arange(len(query_words)) + 0.5, query_words, rotation=0)
    ax.set(xlabel="key", ylabel="query")
    return ax
    ### END SOLUTION


# %% check="attention_heatmap" points=4 means="Your map has a row for each query and a column for each key, each with its word." card=["one row a query, the first on top; one column a key, the first at the left. Its colours are linear from 0 to 1", "In the middle of each row and each column a tick carries its word", "The labels of the axes are exactly `query` (for the rows) and `key` (for the columns)", "the axes to draw on; then no figure is opened", "return the matplotlib `Axes`"]
@probe
def drawn(weights, query_words, key_words, given):
    """What is on the axes, as plain data: rows from the top, columns from the left."""
    import matplotlib.pyplot as plt

    before = set(plt.get_fignums())
    try:
        ax = plt.subplots(1, 2)[1][0]  # the other one is the current axes
        opened = set(plt.get_fignums())
        axes = attention_heatmap(weights, query_words, key_words, **({"ax": ax} if given else {}))
        return {**drawn_map(axes), "on ax": axes is ax, "opened": len(set(plt.get_fignums()) - opened)}
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


weights = check_rng().dirichlet(np.ones(4), size=3)
query_words, key_words = ["le", "chat", "dort"], ["the", "black", "cat", "sleeps"]
seen = drawn(weights, query_words, key_words, given=False)
assert_equal(seen["returned"], "Axes", "A matplotlib Axes comes back.", name="what comes back")
assert_equal(seen["maps"], 1, "One mesh or image should hold the numbers.", name="how many do")
with check("the numbers, first query on top, first key at the left", points=1.25):
    message = "The numbers of weights, read from the top and from the left. Check first: which row is on top?"
    assert_close(seen["numbers"], weights, message, name="the numbers")
with check("each row and each column has its word", points=1):
    message = "A tick in the middle of each row and column carries its word. Check first: is it in the middle?"
    upside_down = seen["numbers"].shape == (3, 4) and abs(seen["numbers"][::-1] - weights).max() < 0.01
    words = [seen["rows"][:: -1 if upside_down else 1], seen["columns"]]  # that is told above
    assert_equal(words, [query_words, key_words], message, name="the words of rows and columns")
with check("the labels query and key", points=0.5):
    assert_equal(seen["labels"], ["query", "key"], "Rows are labelled query, columns key.", name="the labels")
with check("colours from 0 to 1", points=0.75):
    message = "The weights 0, 0.25, 0.5 and 1 stand at 0, 0.25, 0.5 and 1 of the colour map."
    assert_close(seen["colours"], np.array([0, 0.25, 0.5, 1]), message, name="where these weights stand")
with check("on the axes that are given", points=0.5):
    found = drawn(weights, query_words, key_words, given=True)
    message = "With ax the map should be on ax, which comes back, and no figure be opened."
    name = "ax comes back, maps on it, figures opened"
    assert_equal([found[of] for of in ("on ax", "maps", "opened")], [True, 1, 0], message, name=name)
checks_passed("attention_heatmap")

# %% check="attention_heatmap_maps" points=3 card=["One mesh or image holds the numbers, unrounded", "a NumPy array or a torch tensor, also one that requires a gradient", "also where words repeat", "Its colours are linear from 0 to 1 whatever the weights are", "`None`: the axes of a new pyplot figure"]
# Hidden checks of attention_heatmap: tensors, words that repeat, one row, a figure of its own.
### BEGIN HIDDEN TESTS
@probe
def drawn(weights, query_words, key_words, given=True, with_gradient=False):
    import matplotlib.pyplot as plt

    before = set(plt.get_fignums())
    try:
        ax = plt.subplots(1, 2)[1][0]  # the other one is the current axes
        opened = set(plt.get_fignums())
        weights = weights.clone().requires_grad_() if with_gradient else weights
        axes = attention_heatmap(weights, query_words, key_words, **({"ax": ax} if given else {}))
        new = [axes.figure is not ax.figure, len(set(plt.get_fignums()) - opened)]
        return {**drawn_map(axes), "new": new}
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


def sorted_numbers(seen):  # which row is on top is told elsewhere
    return np.sort(seen["numbers"], axis=None)


rng = check_rng()
words = ["le", "chat", "noir", "dort"], ["the", "cat", "is", "the", "cat"]
weights = rng.dirichlet(np.ones(5), size=4)
in_order = np.sort(weights, axis=None)
with check("unrounded numbers, of a tensor too", points=0.75):
    for kind, given in (("NumPy array", weights), ("torch tensor", torch.tensor(weights))):
        message = f"weights as a {kind}: the map should hold its numbers with all their digits."
        assert_close(sorted_numbers(drawn(given, *words)), in_order, message, name="the numbers, sorted")
with check("a tensor that requires a gradient", points=0.5):
    seen = drawn(torch.tensor(weights), *words, with_gradient=True)
    message = "weights may require a gradient, as a model's own do: the map holds its numbers."
    assert_close(sorted_numbers(seen), in_order, message, name="its numbers, sorted")
with check("words that repeat", points=0.5):
    message = "Two words stand twice among the keys: each column still has a tick with its word."
    assert_equal(drawn(weights, *words)["columns"], words[1], message, name="the words of the columns")
with check("the colours of another map are the same", points=0.5):
    even = drawn(np.full((4, 5), 0.2), *words)["colours"]
    message = "All weights are 0.2: still the colours should be linear from 0 to 1."
    assert_close(even, np.array([0, 0.25, 0.5, 1]), message, name="where 0, 0.25, 0.5 and 1 stand")
with check("a row or a column alone: its words", points=0.25):
    for n_q, n_k in ((1, 5), (4, 1)):
        seen = drawn(weights[:n_q, :n_k], words[0][:n_q], words[1][:n_k])
        message = f"weights of shape {(n_q, n_k)}: a tick with its word for each row and column."
        found = [sorted(seen["rows"]), seen["columns"]]
        assert_equal(found, [sorted(words[0][:n_q]), words[1][:n_k]], message, name="the words")
with check("without ax: a new figure", points=0.5):
    message = (
        "Without ax the map should have a new pyplot figure, also where another figure is open. Check "
        "first: plt.gca and plt.imshow take the axes that were used last."
    )
    assert_equal(drawn(weights, *words, given=False)["new"], [True, 1], message, name="new, and how many")
checks_passed("attention_heatmap")
### END HIDDEN TESTS

# %% check="attention_heatmap_misuse" points=1 card=["Words that do not fit their axis in number are a `ValueError`", "it is not changed"]
# Hidden checks of attention_heatmap: too many or too few words, and weights that stay as they are.
### SIDE CONDITION: counts once another check of attention_heatmap passes.
### BEGIN HIDDEN TESTS
@probe
def weights_after(weights, query_words, key_words):
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    try:
        attention_heatmap(weights, query_words, key_words, ax=ax)
    finally:
        plt.close(ax.figure)
    return weights, query_words, key_words


weights, words = check_rng().dirichlet(np.ones(4), size=3), ["the", "black", "cat", "is", "sleeping"]
for given in (weights, torch.tensor(weights)):
    assert_unchanged(weights_after, weights=given, query_words=words[:3], key_words=words[:4])
for n_q, n_k in ((2, 4), (4, 4), (3, 3), (3, 5), (4, 3)):
    case = f"weights (3, 4), {n_q} query_words and {n_k} key_words"
    assert_refused(weights_after, {case: (weights, words[:n_q], words[:n_k])})
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `sns.heatmap(..., ax=ax, vmin=..., vmax=...)`, `ax.imshow` and `ax.pcolormesh` all draw numbers as
# coloured cells. They differ in where the cells lie (`pcolormesh` and seaborn put the first one from 0
# to 1, `imshow` around 0) and in which row is on top (`pcolormesh` begins below). `ax.set_xticks(places,
# words)` sets ticks and words together. A tensor that requires a gradient becomes an array with
# `.detach().numpy()`.
#
# </details>
#
# Now ask the two models for "le chat noir dort". These are trained maps, of seed 0, drawn by your
# function.

# %% tags=["demonstration", "nbval-ignore-output"]
# The maps come from training: single weights differ a little from machine to machine.
english = ["the", "black", "cat", "is", "sleeping"]
french, ids = ["le", "chat", "noir", "dort"], [0, 2, 1, 4]  # their partners' numbers


def trained_map(name, factor, key_ids, mask=None, seed=0):
    """Weights of the four French words on some English words, by your NumPy function."""
    tables = {part: table.numpy() for part, table in runs[name][seed][0].items()}
    keys = tables["key"][key_ids]
    return scaled_dot_product_attention(factor * tables["query"][ids], keys, keys, mask)[1]


maps = {
    "trained with the scale": trained_map("scale, start 1", 1.0, range(5)),
    "trained without": trained_map("no scale, start 1", UNDO, range(5)),
}
figure, panels = plt.subplots(1, 2, figsize=(8.1, 3.2))
for axes, (title, weights) in zip(panels, maps.items()):
    attention_heatmap(weights, french, english, ax=axes)
    axes.set_title(title)
figure.tight_layout()
for seed in range(3):
    assert trained_map("scale, start 1", 1.0, range(5), seed=seed)[range(4), ids].min() > 0.8
hardness = [trained_map("no scale, start 1", UNDO, range(5), seed=s).max(-1) for s in range(3)]
assert np.mean(hardness) > 0.85  # sure of itself...
found = [trained_map("no scale, start 1", UNDO, range(5), seed=s).argmax(-1) for s in range(3)]
assert np.mean(np.array(found) == ids) < 0.75  # ...and often wrong
show(
    figure,
    "Figure 5. Left: with the scale every French word finds its partner. Right: without it most "
    "rows are as sure of themselves, but several are wrong.",
    "Two heat maps, four French words by five English words. Left: nearly 1 at le/the, chat/cat, "
    "noir/black, dort/sleeping. Right: most rows have one weight near 1, several at a wrong word.",
    "\n\n".join(f"{title}\n\n{text_table(w, french, english)}" for title, w in maps.items()),
)

# %% [markdown]
# One more look at the trained model, now with padding. The text is "the cat", filled up with
# three padding positions; what stands there are vectors of other words, as left-overs in memory
# would be. "noir" and "dort" have no partner in this text. **Predict, then run:** where will their
# weight go, without and with the mask?

# %% tags=["demonstration", "nbval-ignore-output"]
# As above: trained weights.
short_text, labels = [0, 2, 60, 61, 62], ["the", "cat", "(pad)", "(pad)", "(pad)"]
maps = {
    "no mask": trained_map("scale, start 1", 1.0, short_text),
    "padding_mask([2], 5)": trained_map("scale, start 1", 1.0, short_text, padding_mask([2], 5)[0]),
}
figure, panels = plt.subplots(1, 2, figsize=(8.1, 3.2))
for axes, (title, weights) in zip(panels, maps.items()):
    attention_heatmap(weights, french, labels, ax=axes)
    axes.set_title(title)
figure.tight_layout()
masked, unmasked = maps["padding_mask([2], 5)"], maps["no mask"]
assert (masked[:, 2:] == 0).all() and np.allclose(masked.sum(-1), 1)
assert masked[0, 0] > 0.9 and masked[1, 1] > 0.9  # le/the and chat/cat
assert unmasked[2, 2:].sum() > 0.5  # 'noir' has no partner: most of its weight goes to padding
assert 0.15 < unmasked[3, 2:].sum() < unmasked[2, 2:].sum()  # nor has 'dort': a smaller part
assert unmasked[:2, 2:].sum(-1).max() < 0.1  # words with a partner: nearly nothing
show(
    figure,
    "Figure 6. Without a mask, words that have no partner here look at the padding. With it they do not, but "
    "their rows still sum to 1: softmax cannot say 'nowhere'. Such a row is no finding.",
    "Two heat maps, four French words by the, cat and three padding positions. Without mask noir "
    "gives more than half of its weight to padding and dort a smaller part; le and chat nearly "
    "nothing. With mask the padding columns are 0 and noir and dort share their weight between the "
    "and cat.",
    "\n\n".join(f"{title}\n\n{text_table(w, french, labels)}" for title, w in maps.items()),
)

# %% [markdown]
# ### Written answer: `written_scale`
#
# In 5 to 8 sentences, for a friend who has read only the formula (4 points):
#
# 1. Why is the divisor $\sqrt{d_k}$, and not $d_k$? Which assumption does the argument make?
# 2. What happens to the softmax and to its gradient without the scale, when $d_k$ is large? Be
#    exact about "the gradient vanishes".
# 3. Name one situation, shown in this lesson, in which a model learns well without the scale, and
#    say why.

# %% [markdown] written="scale" points=4
# ### BEGIN SOLUTION
# The score $q \cdot k$ is a sum of $d_k$ products. If the entries of $q$ and $k$ are independent
# with mean 0 and variance 1, each product has variance 1, and the sum has variance $d_k$, so its
# standard deviation is $\sqrt{d_k}$. Division by $\sqrt{d_k}$ gives scores of variance 1 for every
# $d_k$; division by $d_k$ would give variance $1/d_k$, so that all weights become nearly equal.
# Without the scale the scores of long vectors differ by tens, and the softmax puts nearly all
# weight on one key: its entropy goes to 0. The gradient of a saturated softmax is nearly 0, so
# for most queries (the median) it vanishes; but for the few queries whose best two scores are close
# it is huge, and the mean does not vanish. A model learns well without the scale if its queries and
# keys are small at the start, for example with standard deviation $d_k^{-1/4}$: the scores then
# have variance 1 from the beginning.
#
# **Marking scheme** (4 points). 1 point: variance $d_k$ (standard deviation $\sqrt{d_k}$) from a
# sum of $d_k$ terms, with the assumption of independent entries of mean 0 and variance 1. 1 point:
# why not $d_k$ (scores too small, weights nearly equal). 1 point: saturation, and "most gradients
# vanish, a few are huge" or "the median, not the mean"; no point for "all gradients vanish". 1
# point: small starting vectors, with the reason that the scores are already of order 1; or a log
# loss on the weights, with the reason that its gradient does not vanish when the softmax saturates.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > Take $d_k = 64$. Typical scores are then about 8. Divided by 8 they are about 1, and a softmax can
# > prefer one key and still doubt. Divided by 64 they are about 1/8: six keys get nearly a sixth each.
#
# Good: it computes both cases for one size, so that the friend sees what "too small" does.
#
# > Without the scale the scores grow with $d_k$, the softmax saturates, and its gradient vanishes. So a
# > model cannot learn without it.
#
# Plausible, and bad: the first half is what everybody writes, and is not exact about the gradient; the
# second half is refuted by a curve of Figure 3.
#
# </details>

# %% [markdown]
# ## 8. What it costs
#
# The weights have $n_q \times n_k$ entries. A text of $n$ words that looks at itself has $n^2$ of
# them, for each head and each layer. With 4 bytes an entry, one matrix takes
# $4 \cdot 4096^2$ bytes = 64 MiB for a text of 4096 words.
#
# For inputs as below (four axes, no mask) torch's function computes the same result without ever
# holding the whole matrix: it works on blocks of keys, one after another. In other cases it may
# fall back on the plain formula. Dao and others (2022) call the work in blocks **FlashAttention**,
# a topic of lesson 11.
#
# We measure two things: the processor time of one call, and the memory that the forward pass keeps
# for the backward pass. **Predict, then run:** when $n$ doubles, by what factor does the memory of
# your function grow? And that of torch's?

# %% tags=["demonstration", "guess"]
guess_memory = (4, 4)  # write (factor of your memory, factor of torch's memory) when n doubles

# %% tags=["demonstration", "nbval-ignore-output"]
# Times depend on the machine and on its load: look at the factors, not at the numbers.
import time


def seconds(function, inputs, repeats=3):
    """Smallest processor time of a few calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        with torch.no_grad():
            function(*inputs)
        times.append(time.process_time() - start)
    return min(times)


def kept_mebibytes(function, inputs):
    """Memory of all tensors that autograd keeps for the backward pass, each counted once."""
    kept = {}

    def remember(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
        result = function(*inputs)
    del result
    return sum(kept.values()) / 2**20


lengths = (256, 512, 1024, 2048, 4096)
functions = {"yours": torch_scaled_dot_product_attention, "torch's": F.scaled_dot_product_attention}
rows = []
print("    n   yours: ms     MiB   torch's: ms     MiB")
for n in lengths:
    generator = torch.Generator().manual_seed(n)
    inputs = [torch.randn(1, 1, n, 64, generator=generator, requires_grad=True) for _ in range(3)]
    row = {name: (seconds(f, inputs), kept_mebibytes(f, inputs)) for name, f in functions.items()}
    (t0, m0), (t1, m1) = row["yours"], row["torch's"]
    print(f"{n:5d}{t0 * 1e3:12.1f}{m0:8.1f}{t1 * 1e3:14.1f}{m1:8.1f}")
    rows.append(row)
cost = {name: [row[name] for row in rows] for name in functions}

# %% tags=["demonstration", "nbval-ignore-output"]
# The factors of the memory differ a little from one version of torch to the next.
came_out = tuple(cost[name][-1][1] / cost[name][-2][1] for name in functions)
why = "Both take about four times the time or more: they compute all scores. Only yours keeps them."
reply("guess_memory", guess_memory, came_out, why, within=0.3)

# %% tags=["demonstration", "nbval-ignore-output"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.1, 3.5))
for name, marker in (("yours", "o-"), ("torch's", "s--")):
    times, memory = zip(*cost[name])
    for axes, numbers in ((left, [1e3 * t for t in times]), (right, memory)):
        (line,) = axes.loglog(lengths, numbers, marker)
        axes.text(1.15 * lengths[-1], numbers[-1], name, color=line.get_color(), va="center")
x = np.array(lengths[1:])
# The guides lie below the curves, so that neither hides the other.
for axes, last, power in (
    (left, 400 * cost["torch's"][-1][0], 2),
    (right, 0.4 * cost["yours"][-1][1], 2),
    (right, 0.4 * cost["torch's"][-1][1], 1),
):
    axes.loglog(x, last * (x / 4096) ** power, ":", color="grey")
    axes.text(4096, last, " $n^2$" if power == 2 else " $n$", color="dimgrey", va="center")
left.set(xlabel="number of words $n$", ylabel="processor time, ms")
right.set(xlabel="number of words $n$", ylabel="kept for the backward pass, MiB")
for axes in (left, right):
    axes.set_xticks(lengths, lengths)
    axes.minorticks_off()
    axes.set_xlim(200, 9000)
figure.tight_layout()
yours, theirs = ([m for _, m in cost[name]] for name in ("yours", "torch's"))
assert yours[-1] > 64 and 3.5 < yours[-1] / yours[-2] < 4.1  # at least one whole n x n matrix
assert theirs[-1] < 5 and 1.9 < theirs[-1] / theirs[-2] < 2.1
print(f"memory, n from 2048 to 4096: yours x {yours[-1] / yours[-2]:.2f}, torch's x 2")
show(
    figure,
    "Figure 7. Time grows about like $n^2$ for both, sometimes faster (not explained here). Memory grows like "
    "$n^2$ for the plain formula, and like $n$ for torch's: it saves memory, not multiplications.",
    "Two log-log plots against n from 256 to 4096. Left, time: both curves rise about as n "
    "squared, torch's lies lower. Right, memory kept: yours follows n squared up to more "
    "than 64 MiB, torch's follows n and ends near 4 MiB.",
)

# %% [markdown]
# - *"FlashAttention makes attention linear."* Linear in **memory**. The number of multiplications
#   is still quadratic in $n$.
# - *"It is faster because it computes less."* It computes more. Forward its products are the same;
#   backward it must compute the scores once again, since it did not keep them (not measured here:
#   we timed the forward pass). What it saves is writing the big matrices to memory and reading them
#   again, and that takes longer.

# %% [markdown]
# ### Puzzle: the word before
#
# Write down queries and keys with which attention hands every word the value of **the word before** it; the first
# word keeps its own. `puzzle_before` takes the length `n` and returns `Q (n, d_k)` and `K (n, d_k)`, with any
# `d_k`. The values are given.
#
# *Nothing is trained here, and nothing is graded: you write the numbers down, and the cell below says what they do.*

# %% tags=["demonstration", "guess"]
puzzle_before = lambda n: (1000 * np.eye(n)[[0, *range(n - 1)]], np.eye(n))  # write lambda n: (Q, K)


# %% tags=["demonstration", "puzzle"]
def before(answer, n):
    Q, K = answer(n)
    return scaled_dot_product_attention(Q, K, np.arange(1.0, n + 1)[:, None])[0][:, 0]


puzzle("puzzle_before", puzzle_before, before, lambda n: [1, *range(1, n)], [2, 5, 9])

# %% [markdown]
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | scores | $QK^\top$ | `Q @` (K, last two axes swapped) | how well each key fits each query |
# | scale | $1/\sqrt{d_k}$ | $d_k$, not $n_k$ or $d_v$ | scores of order 1 |
# | weights | softmax of each row | over the last axis, the keys | each query spreads 1 |
# | output | weights $\cdot\, V$ | `(..., n_q, d_v)` | average of the values |
# | mask | forbidden score $\to -\infty$ | before the softmax | padding, later the future |
# | nothing to attend to | weights 0, output 0 | on purpose, forward and backward | no NaN |
# | map | one row a query, colours from 0 to 1 | `attention_heatmap` | maps that can be compared |
# | cost | $n_q \cdot n_k$ scores | torch's function | quadratic time, linear memory |
#
# ## Check yourself
#
# <details><summary>1. Queries and keys of length 64, values of length 128, 10 queries and
# 20 keys. What is the divisor, and which shapes have weights and output?</summary>
#
# The divisor is $\sqrt{64} = 8$. Weights `(10, 20)`, output `(10, 128)`.
#
# </details>
#
# <details><summary>2. All keys of a text are the same vector. What are the weights, with and
# without the scale?</summary>
#
# All scores of a query are equal, so the weights are uniform, $1/n_k$ each. The scale changes
# nothing.
#
# </details>
#
# <details><summary>3. A model was trained without the scale. You add it afterwards. What
# happens?</summary>
#
# All scores shrink by $\sqrt{d_k}$, so its weights become much softer, and the model gets worse.
# The scale is a part of the model. (Multiply all queries by $\sqrt{d_k}$ to make up for it.)
#
# </details>
#
# <details><summary>4. Your loss is NaN, but only for some batches. Which line of attention do you
# suspect?</summary>
#
# The mask: some text in that batch has length 0, or some query has nothing to attend to, and the
# softmax of a row of $-\infty$ is $0/0$.
#
# </details>
#
# <details><summary>5. After the softmax the weights are multiplied by the mask, so padding gets
# 0. What is wrong?</summary>
#
# The padding took part in the sum of the softmax. The rest of the row sums to less than 1, and by
# how much depends on what stands in the padding.
#
# </details>
#
# ## References
#
# - Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin (2017), *Attention Is All
#   You Need*: the formula; the variance argument is a footnote of section 3.2.1.
# - Luong, Pham, Manning (2015), *Effective Approaches to Attention-based Neural Machine
#   Translation*: dot-product scores, without a scale.
# - Dao, Fu, Ermon, Rudra, Ré (2022), *FlashAttention: Fast and Memory-Efficient Exact Attention
#   with IO-Awareness*.
# - Rabe, Staats (2021), *Self-attention Does Not Need $O(n^2)$ Memory*.
#
# ## What comes next
#
# Here queries, keys and values were given. In lesson 4 they come from **one** text: three
# learned matrices turn each word into its own query, key and value. That is self-attention.
