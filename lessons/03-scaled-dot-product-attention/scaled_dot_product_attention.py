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

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
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
from lesson_kit.earlier import softmax
from lesson_kit.figures import show, text_table
from lesson_kit.guesses import puzzle, reply
from lesson_kit.progress import note, progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# ## Before you begin: three questions on earlier lessons
#
# Answer from memory, then look it up if you must: what you fetch yourself stays longer than what
# you read again.
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


# %% check="dot_product_variance" points=3
@probe
def measured_variance(d_k, num_pairs, seed):
    return dot_product_variance(d_k, num_pairs, np.random.default_rng(seed))


with check("the value", points=1.5):
    for d_k in (1, 6, 40):
        seed = int(check_rng().integers(2**31)) + d_k
        assert_close(
            measured_variance(d_k, 3000, seed),
            float(d_k),
            f"With d_k = {d_k} and 3000 pairs the variance of q . k should be near {d_k}. Check "
            "first: are the entries standard normal, is each dot product a sum over d_k entries, "
            "and is it the variance (not the standard deviation, nor the variance after scaling)?",
            rtol=0.3,
        )


# Where the numbers come from.
@probe
def three_measurements(seed):
    before = np.random.get_state()[2], torch.get_rng_state()
    seeds = seed, seed, seed + 1
    three = [dot_product_variance(5, 300, np.random.default_rng(one)) for one in seeds]
    return three, before, (np.random.get_state()[2], torch.get_rng_state())


with check("it measures, with every number from rng", points=1.5):
    three, before, after = three_measurements(int(check_rng().integers(2**31)))
    facts = {
        "it measures: not exactly 5 with d_k = 5": three[0] != 5,
        "the same seed, the same value, and not NaN": three[0] == three[1],
        "another seed, another value": three[0] != three[2],
        "NumPy's global random state is left alone": before[0] == after[0],
        "torch's global random state is left alone": torch.equal(before[1], after[1]),
    }
    message = (
        "Two calls with generators of one seed, and one call with another seed (d_k = 5, 300 "
        "pairs): every random number should come from the generator rng, and from nowhere else."
    )
    assert_equal(
        {fact: bool(holds) for fact, holds in facts.items()}, dict.fromkeys(facts, True), message
    )
checks_passed("dot_product_variance")


# %% check="dot_product_variance_new_pairs" points=1
# Hidden checks of dot_product_variance: few pairs, and both vectors new in every pair.
### BEGIN HIDDEN TESTS
@probe
def measured_variance(d_k, num_pairs, seed):
    from_seed = np.random.default_rng(seed)
    return dot_product_variance(d_k, num_pairs, from_seed)


@probe
def measured_or_raised(d_k, num_pairs, seed):
    try:
        return dot_product_variance(d_k, num_pairs, np.random.default_rng(seed)), ""
    except NotImplementedError:
        raise
    except Exception as error:
        return 0.0, type(error).__name__


# Of two queries in another order as keys, half the seeds give q1 q2 twice: no variance at all.
pairs = [measured_or_raised(1, 2, int(s)) for s in check_rng().integers(2**31, size=24)]
raised = sorted({kind for _, kind in pairs if kind})
assert_equal(
    len(raised),
    0,
    "dot_product_variance(1, 2, rng), two pairs of one feature: a number is asked for, and your "
    f"code raised {' and '.join(raised)}. Check first: is every pair drawn, also of few, and where "
    "num_pairs is no multiple of a block's length?",
    name="how many kinds of errors were raised",
)
alike = [float(value) for value, _ in pairs]
assert_equal(
    sum(math.isnan(value) for value in alike),
    0,
    "Two pairs of one feature, 24 seeds: each variance is a number, and not NaN. Check first: is "
    "every pair drawn, also of few, and where num_pairs is no multiple of a block's length?",
    name="how many seeds give NaN",
)
assert_equal(
    sum(not value > 1e-12 for value in alike),
    0,
    "Two pairs of one feature, 24 seeds: each variance is a number above 0. Check first: are there "
    "two products, of two pairs, and are the keys draws of their own, not the queries once more, "
    "in another order?",
    name="how many seeds give something else",
)
for seed in check_rng().integers(2**31, size=12):
    assert_close(
        measured_variance(2, 3000, int(seed)),
        2.0,
        "With d_k = 2 the variance should be near 2 for every seed. Check first: does each pair "
        "have a query and a key of its own? One query for all keys gives the variance |q|^2, which "
        "changes from query to query.",
        rtol=0.25,
    )
### END HIDDEN TESTS


# %% check="dot_product_variance_entries" points=1
# Hidden checks of dot_product_variance: normal entries, and a single pair.
### BEGIN HIDDEN TESTS
@probe
def measured_variances(num_pairs, seeds):
    return [dot_product_variance(1, num_pairs, np.random.default_rng(seed)) for seed in seeds]


@probe
def variance_of_one_pair(seed):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divided by num_pairs - 1 it is 0 / 0
        try:
            found = float(dot_product_variance(6, 1, np.random.default_rng(seed)))
        except (ArithmeticError, ValueError):
            found = math.nan
    return 0.0 if math.isnan(found) else found


# How far the sample variance is from 1 depends on the distribution: on average 0.100 for products
# of normal numbers, 0.053 for uniform ones of variance 1, 0.002 for signs.
# The distance from 1 grows where pairs share vectors: 0.123 where the key of a pair is the query
# of the next one. 900 seeds tell 0.100 from that.
seeds = check_rng().integers(2**31, size=900).tolist()
off = np.mean([abs(float(value) - 1) for value in measured_variances(500, seeds)])
cause = (
    "are the entries normal (not uniform, nor signs), and are there num_pairs pairs, not each query "
    "with each key?"
    if off <= 0.074
    else "are the entries normal, and does each vector belong to one pair?"
)
assert_equal(
    bool(0.074 < off < 0.112),
    True,
    "The sample variance of 500 products of two standard normal numbers should differ from 1 by "
    f"about 0.1 on average, and yours differs by {off:.3f}. Check first: {cause}",
)
assert_close(
    variance_of_one_pair(seeds[0]),
    0.0,
    "A single pair (d_k = 6) has a single dot product, which is its own mean: its variance is 0, "
    "or not defined (NaN, or an error), and no other number, nor inf. Check first: is the mean of "
    "the dot products of these pairs subtracted from each, and are there exactly num_pairs of "
    "them?",
    atol=1e-9,
)
### END HIDDEN TESTS


# %% check="dot_product_variance_generator" points=1
# Hidden checks of dot_product_variance: it draws from rng, and from nothing else.
### BEGIN HIDDEN TESTS
@probe
def measured_twice(seed, other_seed):
    first = dot_product_variance(5, 300, np.random.default_rng(seed))
    np.random.random(3)
    torch.rand(3)
    again = dot_product_variance(5, 300, np.random.default_rng(seed))
    other = dot_product_variance(5, 300, np.random.default_rng(other_seed))
    return first, again, other


@probe
def measured_in_a_row(seed):
    rng = np.random.default_rng(seed)
    return dot_product_variance(5, 300, rng), dot_product_variance(5, 300, rng)


@probe
def global_states():
    before = np.random.get_state()[1:3], torch.get_rng_state()
    dot_product_variance(5, 300, np.random.default_rng(1))
    return before, (np.random.get_state()[1:3], torch.get_rng_state())


seed = int(check_rng().integers(2**31))
first, again, other = measured_twice(seed, seed + 1)
assert_close(
    again,
    float(first),
    "Two generators with the same seed should give the same value, with draws from np.random and "
    "torch in between. Check first: does every number come from rng?",
    against="in the first call",
)
assert_equal(
    bool(abs(first - other) > 1e-9),
    True,
    "Two generators with different seeds should give values that differ (by more than 1e-9). Check "
    "first: is rng used at all?",
    name="'numbers that differ'",
)
first, then = measured_in_a_row(seed)
assert_equal(
    bool(abs(first - then) > 1e-9),
    True,
    "Two calls with one generator, one after the other, have new pairs each: the values should "
    "differ (by more than 1e-9). Check first: are the numbers drawn from rng itself, so that it "
    "moves on?",
    name="'numbers that differ'",
)
before, after = global_states()
assert_equal(
    after,
    before,
    "The global random state was changed. Draw with rng's own methods, not with np.random or "
    "torch functions.",
)
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
axes.loglog(d_ks, d_ks, "--", color="tab:orange", label="the line: variance = $d_k$")
axes.loglog(d_ks, variances, "o", color="tab:blue", label="measured, 4000 pairs each")
axes.set(xlabel="$d_k$, length of query and key", ylabel="variance of $q \\cdot k$")
axes.legend()
assert np.all(np.abs(variances / d_ks - 1) < 0.35)  # at d_k = 1 the chance error is largest
print(f"d_k = 1024: standard deviation {variances[-1] ** 0.5:.0f}")
show(
    figure,
    "Figure 1. The variance of a dot product is its length $d_k$: the points lie on the line. "
    "It is for independent entries of variance 1, as at the start with `nn.Embedding`; trained queries and "
    "keys may behave otherwise.",
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
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6))
left.semilogx(widths, [e.mean() for e, _ in bare], "o-", color="tab:red", label="without scale")
left.semilogx(widths, [e.mean() for e, _ in scaled], "s-", color="tab:blue", label="with scale")
left.axhline(math.log(16), color="grey", ls=":", label="all 16 keys equal")
left.set(xlabel="$d_k$", ylabel="mean entropy of the weights", ylim=(0, 3))
left.legend(fontsize=8)
right.axhline(1, color="lightgrey", lw=0.8)
for rows, colour, name in ((bare, "tab:red", "without"), (scaled, "tab:blue", "with")):
    means, medians = [g.mean() for _, g in rows], [np.median(g) for _, g in rows]
    right.loglog(widths, means, "^--", color=colour, label=f"mean, {name} scale")
    right.loglog(widths, medians, "o-", color=colour, label=f"median, {name} scale")
right.set(xlabel="$d_k$", ylabel="norm of $\\partial w / \\partial q$")
right.legend(fontsize=8)
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
    "Figure 2. Without the scale the softmax saturates as $d_k$ grows: the entropy goes to 0 and "
    "the median gradient vanishes, but the mean gradient does not. With the scale hardly anything "
    "depends on $d_k$. So not 'the gradients vanish': most vanish, a few are huge.",
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


# %% check="scaled_dot_product_attention" points=6
# Three queries and five keys, all sizes different; compared with torch's own function.
rng = check_rng()
Q, K, V = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
with check("each row of weights sums to 1", points=0.5):
    both = scaled_dot_product_attention(Q.copy(), K.copy(), V.copy())
    assert_equal(
        len(both) if isinstance(both, (tuple, list)) else int(both is not None),
        2,
        "Return two things: the output and the weights.",
        name="the number of results",
    )
    output, weights = both
    assert_equal(
        np.shape(weights),
        (3, 5),
        "The second result should be the weights, one row a query, one column a key. Check first: "
        "do you return (output, weights) in this order?",
        name="the shape of the second result",
    )
    assert_close(
        np.sum(weights, axis=-1),
        np.ones(3),
        "Each row of the weights, one row a query, should sum to 1. Check first: is the softmax "
        "over the keys, the last axis?",
        name="the sum of each row",
    )
with check("as torch", points=2):
    output, _ = scaled_dot_product_attention(Q.copy(), K.copy(), V.copy())
    expected = F.scaled_dot_product_attention(*(torch.tensor(x) for x in (Q, K, V))).numpy()
    message = (
        "Three queries, five keys, no mask: the output is that of torch's function. Check first: "
        "are the scores divided by the square root of d_k, and is the output the average of the "
        "values, weighted with the weights?"
    )
    assert_close(output, expected, message, name="output")
with check("the example on paper", points=0.75):
    query = np.array([[2.0, 2.0, 2.0, 0.0]])
    keys = np.array([[0.0, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]])
    output, weights = scaled_dot_product_attention(query, keys, np.eye(3))
    assert_close(
        weights,
        np.array([[1.0, math.e, math.e**2]]) / (1 + math.e + math.e**2),
        "The weights of the example on paper are 0.090, 0.245, 0.665.",
        name="weights",
    )
with check("a batch of two texts: each as alone", points=0.75):
    # (If NumPy complains about shapes here: which axes of K have you swapped?)
    Q2, K2, V2 = (np.stack([x, 2 * x[::-1]]) for x in (Q, K, V))
    pairs = [[x.copy() for x in one] for one in zip(Q2, K2, V2, strict=True)]
    alone = [scaled_dot_product_attention(*one)[0] for one in pairs]
    expected = np.stack([np.asarray(one) for one in alone])
    message = "Two texts, each alone: three queries and values of length 2 give an output (3, 2)."
    assert_equal(np.shape(expected), (2, 3, 2), message, name="the shape of both together")
    message = "Two texts, each alone, have two outputs that differ, and neither holds NaN."
    assert_equal(bool(np.abs(expected[0] - expected[1]).max() > 1e-3), True, message)
    message = (
        "With a batch axis in front, each of two texts should have the output that your function "
        "gives it alone."
    )
    output, _ = scaled_dot_product_attention(Q2.copy(), K2.copy(), V2.copy())
    assert_close(output, expected, message, name="output", against="for each text alone")
with check("leading axes that broadcast: each as alone", points=0.5):
    queries, keys = np.stack([Q, -Q])[:, None], np.stack([K, 2 * K, K[::-1]])
    given = [[(q[0].copy(), k.copy(), V.copy()) for k in keys] for q in queries]
    rows = [[scaled_dot_product_attention(*one)[0] for one in row] for row in given]
    expected = np.array([[np.asarray(one) for one in row] for row in rows])
    message = "The queries Q and -Q have outputs that differ, and none holds NaN."
    assert_equal(bool(np.ptp(expected, axis=0).max() > 1e-3), True, message)
    message = (
        "Leading axes (2, 1) of Q, (3,) of K and none of V should give (2, 3), each output as your "
        "function gives it for these queries, keys and values alone."
    )
    output, _ = scaled_dot_product_attention(queries.copy(), keys.copy(), V.copy())
    assert_close(output, expected, message, name="output", against="for each text alone")


def as_if_not_there(mask):
    """Each query with the keys that it may see, and no others, by your own function."""
    output, weights = np.zeros((3, 2)), np.zeros((3, 5))
    for i, row in enumerate(np.broadcast_to(mask, (3, 5))):
        if row.any():
            given = Q[i : i + 1].copy(), K[row], V[row], np.ones(int(row.sum()), dtype=bool)
            one = scaled_dot_product_attention(*given)
            output[i], weights[i, row] = one[0][0], one[1][0]
    return output, weights


mask = np.array([[True, True, False, True, False], [False, True, True, True, True], [True] * 5])
with check("a mask for each query: as without the forbidden keys", points=0.75):
    expected_output, expected = as_if_not_there(mask)
    output, weights = scaled_dot_product_attention(Q.copy(), K.copy(), V.copy(), mask.copy())
    assert_close(
        weights,
        expected,
        "With a mask the weights should be 0 where it is False, and the others as if the forbidden "
        "keys were not there: they sum to 1. True means: may attend. Check first: does the mask "
        "act before the softmax?",
        name="weights",
        against="without the forbidden keys",
    )
    message = (
        "The weight of a forbidden key is exactly 0, not only small, and that of an allowed one is "
        "above 0."
    )
    assert_equal(bool((weights[~mask] == 0).all() and (weights[mask] > 0).all()), True, message)
    assert_close(
        output,
        expected_output,
        "With a mask the output should be as if the forbidden keys were not there: made of the "
        "masked weights, those that are returned.",
        name="output",
        against="without the forbidden keys",
    )
keys_only = np.array([True, True, False, True, True])
with check("one mask for all queries or texts: as without forbidden keys", points=0.25):
    _, weights = scaled_dot_product_attention(Q.copy(), K.copy(), V.copy(), keys_only.copy())
    message = (
        "A mask of shape (n_k,) hides the same keys from every query; the weights are as if these "
        "keys were not there."
    )
    assert_close(
        weights,
        as_if_not_there(keys_only)[1],
        message,
        name="weights",
        against="without the forbidden keys",
    )
    message = "A mask of shape (n_k,): every key that it allows has a weight above 0."
    assert_equal(bool((weights[:, keys_only] > 0).all()), True, message)
    _, weights = scaled_dot_product_attention(Q2.copy(), K2.copy(), V2.copy(), mask.copy())
    message = (
        "A mask of shape (n_q, n_k) serves every text of a batch: the weights of the first text "
        "are as if its forbidden keys were not there."
    )
    assert_close(
        weights[0],
        as_if_not_there(mask)[1],
        message,
        name="its weights",
        against="without the forbidden keys",
    )
with check("a query that may attend to nothing", points=0.25):
    mask[1] = False
    output, weights = scaled_dot_product_attention(Q.copy(), K.copy(), V.copy(), mask.copy())
    message = "Query 1 may attend to nothing now: its weights are 0, and its output as well."
    assert_close(weights[1], np.zeros(5), message, name="the weights of query 1")
    assert_close(output[1], np.zeros(2), message, name="the output of query 1")
    message = "The two other queries still have weights above 0, and none is NaN."
    assert_equal(bool((weights[[0, 2]].max(axis=-1) > 0).all()), True, message)
with check("scores of several thousands: each row sums to 1", points=0.25):
    _, weights = scaled_dot_product_attention(10_000 * Q, K.copy(), V.copy())
    message = (
        "Queries times 10000, so that scores are thousands: each row of weights still sums to 1. "
        "Check first: does exp overflow?"
    )
    assert_close(np.sum(weights, axis=-1), np.ones(3), message, name="the sum of each row")
checks_passed("scaled_dot_product_attention")


# %% check="scaled_dot_product_attention_batches" points=1.5
# Hidden checks of scaled_dot_product_attention: one and two batch axes.
### BEGIN HIDDEN TESTS
def by_torch(Q, K, V):
    return F.scaled_dot_product_attention(*(torch.tensor(x) for x in (Q, K, V))).numpy()


rng = check_rng()
texts = {}
for lead in ((6,), (2, 3)):
    Q = rng.normal(size=(*lead, 4, 3))
    texts[lead] = Q, rng.normal(size=(*lead, 5, 3)), rng.normal(size=(*lead, 5, 7))
advice = "Check first: are only the last two axes of K swapped, and is the softmax over the last axis?"
with check("each text as alone; repeated words as once", points=1):
    for lead, (Q, K, V) in texts.items():
        expected, expected_weights = np.empty((*lead, 4, 7)), np.empty((*lead, 4, 5))
        for place in np.ndindex(*lead):  # by your own function
            one = scaled_dot_product_attention(Q[place], K[place], V[place])
            expected[place], expected_weights[place] = one
        message = "Other texts, each alone, have other outputs, and none holds NaN."
        assert_equal(bool(np.ptp(expected, axis=0).max() > 1e-3), True, message)
        output, weights = scaled_dot_product_attention(Q, K, V)
        message = (
            f"With leading axes {lead} each text should have the results that your function gives "
            f"it alone. {advice}"
        )
        assert_close(
            weights, expected_weights, message, name="weights", against="for each text alone"
        )
        assert_close(output, expected, message, name="output", against="for each text alone")
    # Two queries and seven keys, all of one number; then each of them many times, in one call.
    Q, K, V = (rng.normal(size=(n, 1)) for n in (2, 7, 7))
    expected, expected_weights = scaled_dot_product_attention(Q, K, V)
    message = (
        "An output and a row of weights for each query; no query has the mean of the values, and "
        "none has NaN."
    )
    assert_equal([np.shape(expected), np.shape(expected_weights)], [(2, 1), (2, 7)], message)
    assert_equal(bool((np.abs(np.asarray(expected) - V.mean()) > 0).all()), True, message)
    for lead in ((1,), (1, 1)):
        output, weights = scaled_dot_product_attention(
            *(np.tile(x, (*lead, times, 1)) for x, times in ((Q, 35), (K, 43), (V, 43)))
        )
        message = (
            f"Leading axes {lead}, two queries 35 times (70), seven keys and values 43 times (301): "
            "each key has the 43rd part of the weight that your function gives it among the seven, "
            "and each of the 70 the output of its query. Axes of length 1 stay."
        )
        shares = np.tile(np.asarray(expected_weights) / 43, (*lead, 35, 43))
        assert_close(
            weights, shares, message, name="weights", against="from your results for seven keys"
        )
        assert_close(
            output,
            np.tile(expected, (*lead, 35, 1)),
            message,
            name="output",
            against="from your results for seven keys",
        )
with check("as torch", points=0.5):
    for lead, (Q, K, V) in texts.items():
        output, weights = scaled_dot_product_attention(Q, K, V)
        message = f"With leading axes {lead} the results are those of torch's function. {advice}"
        eye = np.broadcast_to(np.eye(5), (*lead, 5, 5))
        assert_close(weights, by_torch(Q, K, eye), message, name="weights")
        assert_close(output, by_torch(Q, K, V), message, name="output")
checks_passed("scaled_dot_product_attention")
### END HIDDEN TESTS


# %% check="scaled_dot_product_attention_broadcasting" points=1
# Hidden checks of scaled_dot_product_attention: leading axes of Q, K and V that differ.
### BEGIN HIDDEN TESTS
rng = check_rng()
cases = [
    ((2, 1), (3,), ()),
    ((6,), (), ()),
    ((), (6,), (6,)),
    ((2, 3), (3,), (2, 1)),
    ((), (2, 3), (1, 3)),
    ((), (), (2, 3)),
]
for lead_q, lead_k, lead_v in cases:
    Q, K = rng.normal(size=(*lead_q, 4, 3)), rng.normal(size=(*lead_k, 5, 3))
    V = rng.normal(size=(*lead_v, 5, 7))
    lead = np.broadcast_shapes(lead_q, lead_k, lead_v)
    full = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (Q, K, V)]
    expected, expected_weights = np.empty((*lead, 4, 7)), np.empty((*lead, 4, 5))
    for place in np.ndindex(*lead):  # each text by itself, by your own function
        one = scaled_dot_product_attention(*(x[place] for x in full))
        expected[place], expected_weights[place] = one
    message = "Other texts, each alone, have other outputs, and none holds NaN."
    assert_equal(bool(np.ptp(expected, axis=0).max() > 1e-3), True, message)
    output, weights = scaled_dot_product_attention(Q, K, V)
    message = (
        f"Leading axes {lead_q} of Q, {lead_k} of K and {lead_v} of V should broadcast against "
        "each other, and each text should have the results that your function gives it alone."
    )
    assert_close(output, expected, message, name="output", against="for each text alone")
    if lead_q or lead_k:
        assert_close(
            weights, expected_weights, message, name="weights", against="for each text alone"
        )
### END HIDDEN TESTS


# %% check="scaled_dot_product_attention_masks" points=2
# Hidden checks of scaled_dot_product_attention: masks of every shape that broadcasts, and no mask.
### BEGIN HIDDEN TESTS
def by_torch(Q, K, V, mask):
    Q, K, V = (torch.tensor(x) for x in (Q, K, V))
    lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    Q, K, V = (x.expand(*lead, *x.shape[-2:]) for x in (Q, K, V))
    whole = torch.tensor(mask).expand(*lead, Q.shape[-2], K.shape[-2])
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=whole).numpy()


rng = check_rng()
one_text = [((), (), shape) for shape in ((5,), (4, 5), (1, 5))]
cases = [
    ((2,), (2,), (4, 5)),
    ((2,), (2,), (2, 1, 5)),
    ((2, 3), (2, 3), (5,)),
    ((2, 3), (2, 3), (4, 5)),
    ((2, 3), (2, 3), (2, 1, 1, 5)),
    ((2, 3), (2, 3), (2, 1, 4, 5)),
    ((2, 3), (2, 3), (2, 3, 4, 5)),
    ((2, 3), (2, 3), (3, 1, 5)),
    ((2, 1), (3,), (2, 3, 1, 5)),
    ((4,), (4,), (4, 5)),  # as many texts (and heads) as queries
    ((4, 4), (4, 4), (4, 5)),
]


def compare(cases):
    for lead_q, lead_k, shape in cases:
        Q, K = rng.normal(size=(*lead_q, 4, 3)), rng.normal(size=(*lead_k, 5, 3))
        V = rng.normal(size=(*lead_k, 5, 7))
        mask = rng.random(shape) < 0.5
        if lead_q[:1] == (4,):
            mask[0, 0], mask[1:, 0] = True, False  # the rows differ
        mask[..., 1] = True  # nobody is left with nothing here
        mask[..., 3] = False
        output, weights = scaled_dot_product_attention(Q, K, V, mask=mask)
        message = (
            f"Q {Q.shape}, K {K.shape}, a mask {shape}: the results should be torch's: weights of 0 "
            "where it is False, and those where it is True sum to 1. Check first: does the mask "
            "broadcast to the weights, from the right, and act before the softmax?"
        )
        assert_close(weights, by_torch(Q, K, np.eye(5), mask), message, name="weights")
        assert_close(output, by_torch(Q, K, V, mask), message, name="output")


with check("one text, masks of one and two axes", points=1):
    compare(one_text)
with check("leading axes, masks of every shape", points=0.5):
    compare(cases)
unmasked = []
with check("masks, some and all True, in many sizes", points=0.25):
    for lead_q, lead_k, (n_q, n_k, d_k, d_v), shape, kind in (
        ((), (), (3, 4, 2, 2), (3, 4), "any"),
        ((), (), (4, 4, 4, 4), (4, 4), "any"),
        ((3,), (3,), (3, 3, 3, 3), (1, 1, 3), "any"),
        ((), (3,), (2, 4, 3, 2), (3, 1, 4), "any"),
        ((2, 1, 2), (2, 1, 2), (2, 3, 4, 2), (2, 1, 1, 1, 3), "any"),
        ((), (), (33, 17, 33, 2), (33, 17), "any"),
        ((), (), (2, 65, 17, 65), (65,), "any"),
        ((2,), (2,), (2, 3, 65, 1), (1, 2, 3), "any"),
        ((), (), (131, 5, 2, 2), (131, 1), "any"),
        ((), (), (2, 130, 130, 3), (2, 130), "any"),
        ((), (), (3, 5, 1, 2), (5,), "any"),
        ((), (), (5, 3, 2, 2), (5, 3), "equal rows"),
        ((), (), (5, 3, 4, 2), (3,), "two equal rows"),
        ((), (), (5, 3, 4, 2), (5, 3), "one row 0"),
        ((), (), (5, 3, 4, 2), (3,), "all rows 0"),
    ):
        Q, K = rng.normal(size=(*lead_q, n_q, d_k)), rng.normal(size=(*lead_k, n_k, d_k))
        V, some = rng.normal(size=(*lead_k, n_k, d_v)), rng.random(shape) < 0.6
        some[..., 0] = True
        if kind == "two equal rows":
            Q[..., 1, :] = Q[..., 0, :]
        elif kind != "any":
            Q[..., 1 if kind == "one row 0" else slice(None), :] = Q[..., :1, :] * (kind == "equal rows")
        for what, mask in (("some True", some), ("all True", some | True)):
            right = by_torch(Q, K, np.eye(n_k), mask), by_torch(Q, K, V, mask)
            message = (
                f"Q {Q.shape} ({kind}), K {K.shape}, V {V.shape}, a mask {shape} ({what}): the results "
                "should be torch's."
            )
            given = (x.copy() for x in (Q, K, V))
            output, weights = scaled_dot_product_attention(*given, mask.copy())
            assert_close(weights, right[0], message, name="weights")
            assert_close(output, right[1], message, name="output")
        unmasked.append((Q, K, V, right, kind))
with check("no mask, in many sizes", points=0.25):
    for Q, K, V, right, kind in unmasked:
        message = f"Q {Q.shape} ({kind}), K {K.shape}, V {V.shape}, no mask: the results are torch's."
        output, weights = scaled_dot_product_attention(Q.copy(), K.copy(), V.copy())
        assert_close(weights, right[0], message, name="weights")  # as with a mask of True alone
        assert_close(output, right[1], message, name="output")
    assert_equal(len(unmasked), 15, "All sizes were looked at.", name="how many")
checks_passed("scaled_dot_product_attention")
### END HIDDEN TESTS


# %% check="scaled_dot_product_attention_nothing" points=2
# Hidden checks of scaled_dot_product_attention: queries that may attend to nothing.
### BEGIN HIDDEN TESTS
def by_torch(Q, K, V, mask):
    Q, K, V = (torch.tensor(x) for x in (Q, K, V))
    Q, K, V = (x.expand(len(Q), *x.shape[-2:]) for x in (Q, K, V))
    whole = torch.tensor(mask).expand(len(Q), Q.shape[-2], K.shape[-2])
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=whole).numpy()


rng = check_rng()
Q, K = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 5, 3))
V = rng.normal(size=(2, 5, 7)) + 3
one_row = rng.random((4, 5)) < 0.6
one_row[:, 0], one_row[2] = True, False
one_text = np.array([[[True, True, False, True, False]], [[False] * 5]])
some_queries = np.array([[True], [False], [True], [False]])
masks = (one_row, one_text, some_queries, np.zeros(5, dtype=bool), one_text[::-1].copy())
said = (
    "A query that may attend to nothing should have weights 0 and output 0, not NaN and not a "
    "uniform average; the other queries are as usual"
)
with check("zeros for these queries, and only for them", points=1):
    for mask in masks:
        output, weights = scaled_dot_product_attention(Q, K, V, mask)
        message = (
            f"Q (2, 4, 3), K (2, 5, 3), V (2, 5, 7) and a mask {mask.shape}: the usual shapes."
        )
        assert_equal(np.shape(weights), (2, 4, 5), message, name="the shape of the weights")
        assert_equal(np.shape(output), (2, 4, 7), message, name="the shape of the output")
        message = f"{said} (mask of shape {mask.shape})."
        some = np.broadcast_to(mask, (2, 4, 5)).any(axis=-1)
        assert_equal((np.abs(weights) > 0).any(axis=-1), some, message, name="a weight above 0")
        assert_equal((np.abs(output) > 0).any(axis=-1), some, message, name="an output above 0")
        assert_equal(bool(np.isfinite(output).all()), True, message, name="every number is finite")
    output, weights = scaled_dot_product_attention(Q[0], K[0, :1], V[0, :1], some_queries)
    message = (
        "One key, four queries, of which two may attend to it: their weight is 1 and their output "
        "the one value; for the two others both are 0."
    )
    assert_close(weights, some_queries * 1.0, message, name="weights")
    assert_close(output, some_queries * V[0, :1], message, name="output")
with check("one text: all queries as torch", points=0.5):
    for mask in (one_row, some_queries, np.zeros(5, dtype=bool)):
        output, weights = scaled_dot_product_attention(Q[0], K[0], V[0], mask)
        message = (
            f"One text, a mask of shape {mask.shape} that leaves some queries, or all of them, "
            "nothing: 0 for these, and torch's results for any others."
        )
        expected = by_torch(Q[:1], K[:1], np.eye(5), mask)[0], by_torch(Q[:1], K[:1], V[:1], mask)[0]
        assert_close(weights, expected[0], message, name="weights")
        assert_close(output, expected[1], message, name="output")
with check("a batch: all queries as torch", points=0.5):
    for mask in masks:
        output, weights = scaled_dot_product_attention(Q, K, V, mask)
        message = (
            f"A mask of shape {mask.shape} that leaves some queries, or all of them, nothing: 0 "
            "for these, and torch's results for any others, in arrays of the usual shapes."
        )
        assert_close(weights, by_torch(Q, K, np.eye(5), mask), message, name="weights")
        assert_close(output, by_torch(Q, K, V, mask), message, name="output")
checks_passed("scaled_dot_product_attention")
### END HIDDEN TESTS

# %% check="scaled_dot_product_attention_large_scores" points=1
# Hidden checks of scaled_dot_product_attention: scores of several thousands.
### BEGIN HIDDEN TESTS
rng = check_rng()
# Scores after the scale, by hand: rows of 8000, 8001, ... and -8000, ...; d_k = 4.
wanted = np.array([[8000.0, 8001.0, -8000.0], [-8002.0, -8000.0, 9000.0]])
Q = np.zeros((2, 4))
Q[0, 0] = Q[1, 1] = 2.0
K = np.zeros((3, 4))
K[:, :2] = wanted.T
V = rng.normal(size=(3, 5))
message = (
    "Scores of 8000, 8001, 9000, and as far below 0, without a mask: only their differences count. "
    "Check first: does exp overflow, or are scores cut off at a bound?"
)
e1, e2 = math.exp(-1), math.exp(-2)
output, weights = scaled_dot_product_attention(Q, K, V)
assert_close(weights, np.array([[e1, 1, 0], [0, 0, 1 + e1]]) / (1 + e1), message, name="weights")
far_above = np.array([[1.0, 0, 0, 0], [2.0, 0, 0, 0], [5000.0, 0, 0, 0]])  # scores 1, 2 and 5000
_, weights = scaled_dot_product_attention(
    np.array([[2.0, 0, 0, 0]]), far_above, V, np.array([[True, True, False]])
)
said = "The other keys share 1 as if a forbidden one were not there, however large its score."
assert_close(weights, np.array([[e1, 1, 0]]) / (1 + e1), said, name="weights beside a forbidden one")
mask = np.array([[True, True, True], [True, True, False]])
output, weights = scaled_dot_product_attention(Q, K, V, mask)
expected = np.array([[e1 / (1 + e1), 1 / (1 + e1), 0], [e2 / (1 + e2), 1 / (1 + e2), 0]])
message = (
    "Scores of 8000 and -8000 and a key of score 9000 that is forbidden: it gets nothing, and the "
    "others share 1. Check first: does what stands for minus infinity lie below all these scores, "
    "and which score of a row is taken off as the largest?"
)
assert_close(weights, expected, message, name="weights")
assert_close(output, np.einsum("qk,kd->qd", expected, V), message, name="output")
low = np.array([[-1e15, 0, 0, 0], [0.0, 0, 0, 0]])  # scores -1e15 and 0
_, weights = scaled_dot_product_attention(Q[:1], low, V[:2], np.array([[True, False]]))
message = (
    "One key may be attended, with a score of -1e15, and one of score 0 is forbidden: the first has "
    "all the weight. Check first: is what stands for minus infinity lower than any number can be?"
)
assert_close(weights, np.array([[1.0, 0.0]]), message, name="weights")
### END HIDDEN TESTS


# %% check="scaled_dot_product_attention_dtypes" points=1
# Hidden checks of scaled_dot_product_attention: integers, float32, float64.
### BEGIN HIDDEN TESTS
@probe
def attended_or_raised(Q, K, V, mask):
    try:
        return scaled_dot_product_attention(Q, K, V, mask), ""
    except NotImplementedError:
        raise
    except Exception as error:
        return (None, None), type(error).__name__


rng = check_rng()
rough = {"rtol": 1e-4, "atol": 1e-5}
some = np.arange(20).reshape(4, 5) % 3 > 0  # a mask (4, 5), and one that leaves a query nothing
nothing = some & (np.arange(4) != 1)[:, None]
with check("whole numbers in Q, K, V (all or two), masks too: as floats", points=0.5):
    for kinds in ("iii", "dii", "idi", "iid"):
        shapes = (4, 3), (5, 3), (5, 7)
        Q, K, V = (rng.integers(-2, 3, shape) for shape in shapes)
        Q, K, V = (x + 0.25 if kind == "d" else x for x, kind in zip((Q, K, V), kinds, strict=True))
        floating = scaled_dot_product_attention(Q + 0.0, K + 0.0, V + 0.0)
        message = (
            "An output and a row of weights for each query; other values, other outputs; no NaN."
        )
        assert_equal([np.shape(one) for one in floating], [(4, 7), (4, 5)], message, name="the shapes")
        other = scaled_dot_product_attention(Q + 0.0, K + 0.0, -V - 1.0)[0]
        assert_equal(bool(np.abs(np.asarray(other) - floating[0]).max() > 1e-3), True, message)
        message = (
            "Q, K and V of integers, or two of them: the results should be those of the same "
            "numbers in float64, floating, with nothing rounded away."
        )
        output, weights = scaled_dot_product_attention(Q, K, V)
        expected, expected_weights = (np.asarray(one, dtype="f4") for one in floating)
        assert_close(
            weights,
            expected_weights,
            message,
            name="weights",
            against="with the same numbers as floats",
            **rough,
        )
        assert_close(
            output,
            expected,
            message,
            name="output",
            against="with the same numbers as floats",
            **rough,
        )
        kind_of = ", ".join("float64" if kind == "d" else "int64" for kind in kinds)
        for mask, what in ((some, "some True"), (nothing, "row 1 all False")):
            floating, _ = attended_or_raised(Q + 0.0, K + 0.0, V + 0.0, mask)
            found, raised = attended_or_raised(Q, K, V, mask.copy())
            call = f"Q, K, V of {kind_of}, and a mask (4, 5) ({what})"
            message = f"{call}: no error should be raised, and your code raised {raised}."
            assert_equal(raised, "", message, name="the error's kind")
            for name, one, other in zip(("output", "weights"), found, floating, strict=True):
                message = (
                    f"{call}: the {name} should be as for the same numbers in float64 with this "
                    "mask, floating."
                )
                expected = np.asarray(other, dtype="f4")
                same = "with the same numbers as floats"
                assert_close(one, expected, message, name=name, against=same, **rough)
with check("keys in another order, other dtypes: the same, as precise", points=0.5):
    Q, K, V = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 7))
    output, weights = scaled_dot_product_attention(Q, K, V)
    message = "An output (4, 7) and weights (4, 5)."
    assert_equal([np.shape(output), np.shape(weights)], [(4, 7), (4, 5)], message, name="the shapes")
    message = "An output is no constant, and not NaN."
    assert_equal(bool(np.ptp(np.asarray(output)[0]) > 1e-3), True, message)
    # The same keys in another order give the same output. In float32 the last digits would change.
    order = [3, 0, 4, 2, 1]
    again, moved = scaled_dot_product_attention(Q, K[order], V[order])
    message = (
        "The same keys and values in another order, in float64: the results should be the same to "
        "ten digits, and float64. Check first: is something computed in float32 on the way?"
    )
    precise = {"rtol": 1e-10, "atol": 1e-13, "precise": True}
    expected = np.asarray(weights, dtype=float)[:, order]
    assert_close(
        moved,
        expected,
        message,
        name="weights",
        against="with the keys in their first order",
        **precise,
    )
    assert_close(
        again,
        np.asarray(output, dtype=float),
        message,
        name="output",
        against="with the keys in their first order",
        **precise,
    )
    narrow = scaled_dot_product_attention(*(x.astype(np.float32) for x in (Q, K, V)))
    message = (
        "Float32 arrays should give the results of the same numbers in float64, up to rounding, in "
        "float32 or better."
    )
    assert_close(
        narrow[1],
        np.asarray(weights, dtype="f4"),
        message,
        name="weights",
        against="with the same numbers in float64",
        **rough,
    )
    assert_close(
        narrow[0],
        np.asarray(output, dtype="f4"),
        message,
        name="output",
        against="with the same numbers in float64",
        **rough,
    )
    floating = [np.asarray(one, dtype=float) for one in (output, weights)]
    for kinds in ("f8 f4 f4", "f4 f8 f8", "f8 f8 f4", "f4 f4 f8"):
        given = [x.astype(kind) for x, kind in zip((Q, K, V), kinds.split(), strict=True)]
        found = dict(zip(("output", "weights"), scaled_dot_product_attention(*given), strict=True))
        message = (
            f"Q, K and V of {kinds} (f4 is float32, f8 float64): the {{}} should be those of float64 "
            "everywhere, up to rounding, in the widest dtype of what they are made from."
        )
        for name, wanted, made_from in zip(("output", "weights"), floating, (kinds, kinds[:5]), strict=True):
            kind = str(np.asarray(found[name]).dtype)
            said = message.format(name)
            wide = ["float64"] if "f8" in made_from else ["float32", "float64"]
            assert_equal(kind in wide, True, said, name=f"'its dtype is {' or '.join(wide)}'")
            same = "with float64 everywhere"
            assert_close(found[name], wanted.astype(kind), said, name=name, against=same, **rough)
checks_passed("scaled_dot_product_attention")
### END HIDDEN TESTS


# %% check="scaled_dot_product_attention_inputs" points=0.5
# Hidden checks of scaled_dot_product_attention: the arguments are not changed.
### SIDE CONDITION: counts once another check of scaled_dot_product_attention passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(Q, K, V, mask):
    scaled_dot_product_attention(Q, K, V, mask)
    return Q, K, V, mask


rng = check_rng()
Q, K, V = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 7))
mask = rng.random((4, 5)) < 0.5
mask[1] = False
after = arguments_after(Q.copy(), K.copy(), V.copy(), mask.copy())
for name, now, before in zip(("Q", "K", "V", "mask"), after, (Q, K, V, mask), strict=True):
    assert_equal(
        now,
        before,
        f"{name} was changed by the call. Check first: does an operator like /= or an assignment "
        "write into an argument?",
        name=name,
    )
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


# %% check="padding_mask" points=3.25
T, N = True, False
mask = padding_mask(np.array([5, 2, 4]), 5)
with check("the shape", points=0.25, side=True):
    assert_equal(
        np.shape(mask),
        (3, 1, 5),
        "Three texts, five keys: the shape is (batch, 1, n_k), the axis of length 1 in the middle.",
        name="the shape",
    )
rows = np.array([[T, T, T, T, T], [T, T, N, N, N], [T, T, T, T, N]])
with check("as many True as words", points=0.5):
    assert_equal(
        [int(count) for count in np.sum(np.reshape(mask, (3, 5)), axis=-1)],
        [5, 2, 4],
        "Lengths 5, 2, 4 with n_k = 5: a text should have as many True as it has words. If it is "
        "5, 3, 5: does the count of positions start at 0, for one? If it is 0, 3, 1: are True and "
        "False exchanged (True = may attend)?",
        name="the number of True for each text",
    )
with check("the rows", points=0.75):
    message = (
        "Lengths 5, 2, 4 with n_k = 5: a row of booleans for each text, True for the words, which "
        "come first, then False for the padding."
    )
    assert_equal(np.reshape(mask, (3, 5)), rows, message, name="the mask (without its middle axis)")
with check("a boolean array with its middle axis", points=0.5):
    # True where the text of length 5 has True, False where the one of length 2 has not.
    kind = np.asarray(mask).dtype == bool and np.shape(mask) == (3, 1, 5)
    message = "The mask should be a boolean NumPy array of shape (batch, 1, n_k)."
    assert_equal(bool(kind and isinstance(mask, np.ndarray)), True, message)
    message = "The lengths 5 and 2 have rows that differ."
    assert_equal(bool(np.any(mask[0] != mask[1])), True, message)


@probe
def mask_of(lengths, n_k):
    try:
        return padding_mask(lengths, n_k)
    except ValueError:
        return "a ValueError"


with check("an empty text, and more columns than words", points=0.5):
    rows = np.array([[N, N, N], [T, T, N]])
    found = padding_mask(np.array([0, 2]), 3)
    message = (
        "Lengths 0 and 2 with n_k = 3, booleans: a length of 0 is allowed, with a row of False."
    )
    assert_equal(np.reshape(found, (2, 3)), rows, message, name="the mask (without its middle axis)")
with check("lengths 1 and 3: list as array, rows of four that differ", points=0.25):
    found, other = padding_mask([1, 3], 4), padding_mask(np.array([1, 3]), 4)
    assert_equal(
        found,
        other,
        "lengths may be a list or an array; both give the same mask.",
        against="for the same lengths as array",
    )
    message = "Two lengths with n_k = 4: two rows of four."
    assert_equal(np.size(found), 8, message, name="how many entries")
    message = "The lengths 1 and 3 have rows that differ."
    assert_equal(bool(np.any(found[0] != found[1])), True, message)
with check("lengths that do not fit", points=0.5, side=True):
    wrong_lengths = {"6, at the end": [5, 6], "6, in the middle": [5, 6, 2], "-1": [2, -1, 4]}
    assert_equal(
        {what: str(mask_of(lengths, 5)) == "a ValueError" for what, lengths in wrong_lengths.items()},
        dict.fromkeys(wrong_lengths, True),
        "With n_k = 5 a length of 6 should be refused, and one of -1, wherever it stands.",
        name="refused",
    )
checks_passed("padding_mask")


# %% check="padding_mask_arrays" points=0.5
# Hidden checks of padding_mask: lengths as a list and as an array, unchanged afterwards.
### BEGIN HIDDEN TESTS
@probe
def mask_and_lengths(lengths, n_k):
    return padding_mask(lengths, n_k), lengths


rng = check_rng()
for dtype in (np.int64, np.int32):
    lengths = rng.integers(0, 8, size=5).astype(dtype)
    lengths[:2] = 2, 5
    expected, after = mask_and_lengths(lengths.tolist(), 7)
    assert_equal(after, lengths.tolist(), "lengths was changed by the call.", name="lengths")
    message = "Five lengths with n_k = 7: five rows of seven."
    assert_equal(np.size(expected), 35, message, name="how many entries")
    message = "The lengths 2 and 5 have rows that differ."
    assert_equal(bool(np.any(expected[0] != expected[1])), True, message)
    mask, after = mask_and_lengths(lengths.copy(), 7)
    message = f"lengths as an array of {dtype.__name__} have the mask that the same list has."
    assert_equal(mask, expected, message, against="for the same list")
    assert_equal(after, lengths, "lengths was changed by the call.", name="lengths")
### END HIDDEN TESTS

# %% check="padding_mask_edges" points=1.25
# Hidden checks of padding_mask: empty and full texts, a batch of one, all lengths equal.
### BEGIN HIDDEN TESTS
with check("as many columns as n_k; equal lengths, equal rows", points=0.75):
    rows = {}
    for lengths, n_k in (
        ([2, 1, 2], 4),
        ([1, 1], 3),
        ([0, 3], 3),
        ([0], 2),
        ([1], 1),
        ([1, 1], 5),
        ([1, 1], 2),
    ):
        found = padding_mask(np.array(lengths), n_k)
        message = f"lengths {lengths} with n_k = {n_k}: one row a text, n_k columns."
        assert_equal(np.size(found), len(lengths) * n_k, message, name="how many entries")
        for length, row in zip(lengths, np.reshape(found, (len(lengths), n_k)), strict=True):
            message = f"lengths {lengths} with n_k = {n_k}: texts of one length have the same row."
            assert_equal(
                row,
                rows.setdefault((length, n_k), row),
                message,
                name="a row",
                against="for another text of this length",
            )
    message = "The lengths 2 and 1 with n_k = 4 have rows that differ."
    assert_equal(bool(np.any(rows[2, 4] != rows[1, 4])), True, message)
with check("the rows", points=0.5):
    message = (
        "A boolean array (batch, 1, n_k): a length of 0 gives a row of False, a length of n_k a "
        "row of True; both are allowed."
    )
    T, N = True, False
    assert_equal(padding_mask(np.array([0, 3]), 3), np.array([[[N, N, N]], [[T, T, T]]]), message)
    assert_equal(padding_mask(np.array([1]), 1), np.array([[[T]]]), message)
    message = (
        "Lengths 2, 1, 2 with n_k = 4, a boolean array (3, 1, 4): n_k is the number of columns, "
        "also when every text is shorter."
    )
    short = np.array([[[T, T, N, N]], [[T, N, N, N]], [[T, T, N, N]]])
    assert_equal(padding_mask(np.array([2, 1, 2]), 4), short, message)
    more = (([2], 2), ([3, 1], np.int64(4)), ([33, 0, 17], 33), ([65, 64], 66), ([130], 131))
    for lengths, n_k in more:
        right = np.array([[[place < count for place in range(n_k)]] for count in lengths])
        message = f"lengths {lengths}, n_k = {n_k}: booleans {right.shape}, True for the words."
        if n_k > 64:
            message += (
                " Check first: is a row looked up, or made of something of a fixed size, as an "
                "integer of 64 bits?"
            )
        assert_equal(padding_mask(lengths=np.array(lengths), n_k=n_k), right, message)
    long = [130, 600, 299]
    rows = np.array([[[True] * count + [False] * (600 - count)] for count in long])
    message = (
        "Lengths 130, 600 and 299 with n_k = 600, a boolean array (3, 1, 600): n_k may be any "
        "number."
    )
    assert_equal(padding_mask(np.array(long), 600), rows, message)
checks_passed("padding_mask")
### END HIDDEN TESTS

# %% check="padding_mask_errors" points=1
# Hidden checks of padding_mask: lengths out of range, anywhere in the batch.
### SIDE CONDITION: counts once another check of padding_mask passes.
### BEGIN HIDDEN TESTS
for wrong in ([-1, 2], [2, -1, 3], [4, 1, 2], [1, 2, 4], [3, 40, 3], [-3]):
    said = "with n_k = 3 holds a length outside 0 to n_k: a ValueError"
    with assert_raises(ValueError, f"The list lengths = {wrong} {said}."):
        padding_mask(wrong, 3)
    with assert_raises(ValueError, f"The array lengths = np.array({wrong}) {said}, too."):
        padding_mask(np.array(wrong), 3)
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
# ### Optional reading: minus infinity, or minus a billion?
#
# You may skip this part: nothing later needs it. A lot of published code hides a key with $-10^9$ instead of $-\infty$. Mostly that works:
# $e^{-10^9}$ is 0 in every floating format. It fails in three places.
#
# **Predict, then run.** A query has the scores 2, 1, 0, and all three keys are padding. What are
# its weights when each score is *replaced* by $-10^9$? And when $-10^9$ is *added* to each?

# %%
three = torch.tensor([2.0, 1.0, 0.0])
print("replaced by -1e9:      ", torch.full((3,), -1e9).softmax(-1).numpy().round(3))
print("-1e9 added, float32:   ", (three - 1e9).softmax(-1).numpy().round(3))
print("-1e9 added, float64:   ", (three.double() - 1e9).softmax(-1).numpy().round(3))
print("replaced by -inf:      ", torch.full((3,), -math.inf).softmax(-1).numpy())
nothing = torch.zeros(1, 3, dtype=torch.bool)
by_function = F.scaled_dot_product_attention(three[None, :1], three[:, None], torch.eye(3), nothing)
print("torch's function:      ", by_function[0].numpy())
print("scores below -1e9:     ", torch.tensor([-3e9, -2e9, -1e9]).softmax(-1).numpy())
words = torch.tensor([1, 1, 0]).half()  # 1 = a word, 0 = padding
print("(1 - words) * -1e9, all in float16:", ((1 - words) * torch.tensor(-1e9).half()).tolist())

# %% [markdown]
# 1. **A fully masked row.** With $-10^9$ the query attends to padding: evenly (the number is so
#    large that float32 rounds 2, 1 and 0 away), or, in float64, as if there were no mask at all. No
#    NaN warns you. With $-\infty$ a plain softmax gives $0/0$ = NaN. Neither is right: the row must
#    be set to zero on purpose, as torch's function does it.
# 2. **Scores below $-10^9$.** In that line of the output the third key was hidden, and it wins
#    everything. It takes extreme scores, such as those of a training run that diverges.
# 3. **Half precision.** The largest float16 is 65504, so $-10^9$ turns into $-\infty$ there. The
#    popular `(1 - mask) * -1e9` then computes $0 \cdot (-\infty)$ = NaN for the keys that *may* be
#    attended.
#
# Some libraries take the most negative finite number of the dtype. It mends 2 and 3, but not 1: on
# an empty row it gives an even average of the padding. So: $-\infty$ or that number, and a rule for
# empty rows.

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


# %% check="torch_scaled_dot_product_attention" points=4.5
rng = check_rng()
shapes = (3, 4), (5, 4), (5, 2), (3, 2), (3, 5)
Q, K, V, A, B = (torch.tensor(rng.normal(size=shape)).float() for shape in shapes)
with check("as torch", points=1):
    both = torch_scaled_dot_product_attention(Q.clone(), K.clone(), V.clone())
    assert_equal(
        len(both) if isinstance(both, (tuple, list)) else int(both is not None),
        2,
        "Return two things: the output and the weights.",
        name="the number of results",
    )
    output, weights = both
    message = (
        "Three queries, five keys, no mask: the output is that of torch's "
        "F.scaled_dot_product_attention. Check first: are the scores divided by the square root of "
        "d_k, is the softmax over the keys, and is the output the average of the values?"
    )
    assert_close(output, F.scaled_dot_product_attention(Q, K, V), message, name="output")
    message = "Three queries, five keys: the second result is the weights, of shape (3, 5)."
    assert_equal(tuple(np.shape(weights)), (3, 5), message, name="the shape of the weights")
    message = "Each row of the weights, one row a query, should sum to 1."
    ones = torch.ones(3)
    assert_close(weights.sum(dim=-1), ones, message, name="the sum of each row")
with check("a batch of two texts: each as alone", points=0.75):
    # (If torch complains about shapes here: which axes of K have you swapped?)
    Q2, K2, V2 = (torch.stack([x, 2 * x.flip(0)]) for x in (Q, K, V))
    texts = [[x.clone() for x in one] for one in zip(Q2, K2, V2, strict=True)]
    expected = torch.stack([torch_scaled_dot_product_attention(*one)[0] for one in texts])
    differ = bool((expected[0] - expected[1]).abs().max() > 1e-3)
    message = "Two texts, each alone, have two outputs that differ, and neither holds NaN."
    assert_equal(differ, True, message)
    message = "Two texts, each alone: three queries and values of length 2 give an output (3, 2)."
    assert_equal(tuple(expected.shape), (2, 3, 2), message, name="the shape of both together")
    message = (
        "With a batch axis in front, each of two texts should have the output that your function "
        "gives it alone."
    )
    output, _ = torch_scaled_dot_product_attention(Q2.clone(), K2.clone(), V2.clone())
    assert_close(output, expected, message, name="output", against="for each text alone")
with check("leading axes that broadcast: each as alone", points=0.5):
    queries, keys = torch.stack([Q, -Q])[:, None], torch.stack([K, 2 * K, K.flip(0)])
    given = [[(q[0].clone(), k.clone(), V.clone()) for k in keys] for q in queries]
    rows = [[torch_scaled_dot_product_attention(*one)[0] for one in row] for row in given]
    expected = torch.stack([torch.stack(row) for row in rows])
    differ = bool((expected[0] - expected[1]).abs().max() > 1e-3)
    message = "The queries Q and -Q have outputs that differ, and none holds NaN."
    assert_equal(differ, True, message)
    message = "Six texts, each alone: three queries and values of length 2 give an output (3, 2)."
    assert_equal(tuple(expected.shape), (2, 3, 3, 2), message, name="the shape of all together")
    message = (
        "Leading axes (2, 1) of Q, (3,) of K and none of V should give (2, 3), each output as your "
        "function gives it for these queries, keys and values alone."
    )
    output, _ = torch_scaled_dot_product_attention(queries.clone(), keys.clone(), V.clone())
    assert_close(output, expected, message, name="output", against="for each text alone")

T, N = True, False
mask = torch.tensor([[T, T, N, T, N], [N, N, N, N, N], [T, T, T, T, T]])
with check("a mask: as without the forbidden keys", points=0.75):
    output, weights = torch_scaled_dot_product_attention(*(x.clone() for x in (Q, K, V, mask)))
    expected, expected_weights = torch.zeros(3, 2), torch.zeros(3, 5)
    for i in (0, 2):  # as if forbidden keys were not there, by your own function
        row = mask[i]
        nothing_hidden = torch.ones(1, int(row.sum()), dtype=torch.bool)
        given = Q[i : i + 1].clone(), K[row], V[row], nothing_hidden
        one = torch_scaled_dot_product_attention(*given)
        expected[i], expected_weights[i, row] = one[0][0], one[1][0]
    message = (
        "With a mask the weights should be 0 where it is False, and the others as if the forbidden "
        "keys were not there: they sum to 1. True means: may attend. Check first: does the mask "
        "act before the softmax?"
    )
    assert_close(
        weights[[0, 2]],
        expected_weights[[0, 2]],
        message,
        name="weights of queries 0, 2",
        against="without the forbidden keys",
    )
    message = "Without the forbidden keys, and nothing else hidden, the weights of a query sum to 1."
    sums = bool((expected_weights[[0, 2]].sum(dim=-1) > 0.5).all())
    assert_equal(sums, True, message, name="'more than 0.5'")
    message = (
        "With a mask the output should be as if the forbidden keys were not there: made of the "
        "masked weights."
    )
    assert_close(
        output[[0, 2]],
        expected[[0, 2]],
        message,
        name="output of queries 0, 2",
        against="without the forbidden keys",
    )
with check("a query that may attend to nothing", points=0.5):
    output, weights = torch_scaled_dot_product_attention(*(x.clone() for x in (Q, K, V, mask)))
    message = "Query 1 may attend to nothing: its weights and its output are 0, never NaN."
    assert_close(output[1], torch.zeros(2), message, name="the output of query 1")
    assert_close(weights[1], torch.zeros(5), message, name="the weights of query 1")
    message = "The weights of each of the two other queries sum to 1."
    sums = bool((weights[[0, 2]].sum(dim=-1) > 0.5).all())
    assert_equal(sums, True, message, name="'more than 0.5'")


@probe
def gradients_and_slopes(Q, K, V, mask, of_output, of_weights, step):
    def total(Q, K, V):
        allowed = None if mask is None else mask.clone()
        output, weights = torch_scaled_dot_product_attention(Q, K, V, allowed)
        return (output * of_output).sum() + (weights * of_weights).sum()

    leaves = [x.clone().requires_grad_() for x in (Q, K, V)]
    result = total(*leaves)
    if result.requires_grad:
        result.backward()
    starts, slopes = [x.clone() for x in (Q, K, V)], [torch.zeros_like(x) for x in leaves]
    with torch.no_grad():  # each number a little up and down, by your own function
        for start, slope in zip(starts, slopes, strict=True):
            for place in range(start.numel()):
                old = start.view(-1)[place].item()
                start.view(-1)[place] = old + step
                above = total(*(x.clone() for x in starts))
                start.view(-1)[place] = old - step
                slope.view(-1)[place] = (above - total(*(x.clone() for x in starts))) / (2 * step)
                start.view(-1)[place] = old
    return [leaf.grad for leaf in leaves], slopes


message = (
    "should be the slope of your own results: as much as they change when it is moved a little. "
    "Check first: is something detached, converted to NumPy or to float32 on the way?"
)
no_slope = (
    "The results hold NaN or infinity, so they have no slope. Look at the checks above first."
)
doubles, directions = [x.double() for x in (Q, K, V)], [x.double() for x in (A, B)]
with check("gradients of output and weights: your results' slopes", points=0.5):
    found, slopes = gradients_and_slopes(*doubles, None, *directions, 1e-5)
    assert_equal(all(bool(s.isfinite().all()) for s in slopes), True, no_slope, name="'finite'")
    for name, one, slope in list(zip("QKV", found, slopes, strict=True))[::-1]:
        what = f"the gradient of {name}"
        said = f"Without a mask {what} {message}"
        assert_close(
            one, slope, said, rtol=1e-5, atol=1e-6, name=what, against=f"by small steps in {name}"
        )
        moves = f"The results should change when {name} is moved a little."
        assert_equal(bool(slope.abs().max() > 1e-3), True, moves)
with check("gradients, a query with nothing to see: your results' slopes", points=0.5):
    found, slopes = gradients_and_slopes(*doubles, mask, *directions, 1e-5)
    said = "A NaN that is replaced in the result can live on in the gradient."
    assert_equal(all(bool(s.isfinite().all()) for s in slopes), True, no_slope, name="'finite'")
    for name, one, slope in zip("QKV", found, slopes, strict=True):
        what = f"the gradient of {name}"
        with_mask = f"With a mask {what} {message} {said}"
        assert_close(
            one,
            slope,
            with_mask,
            rtol=1e-5,
            atol=1e-6,
            name=what,
            against=f"by small steps in {name}",
        )
        moves = f"With a mask, too, the results should change when {name} is moved a little."
        assert_equal(bool(slope.abs().max() > 1e-3), True, moves)
checks_passed("torch_scaled_dot_product_attention")


# %% check="torch_scaled_dot_product_attention_batches" points=1.5
# Hidden checks of torch_scaled_dot_product_attention: leading axes, equal and different.
### BEGIN HIDDEN TESTS
def by_torch(Q, K, V):
    lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    Q, K, V = (x.expand(*lead, *x.shape[-2:]) for x in (Q, K, V))
    return F.scaled_dot_product_attention(Q, K, V)


rng = check_rng()
cases = [
    ((6,), (6,), (6,)),
    ((2, 3), (2, 3), (2, 3)),
    ((2, 1), (3,), ()),
    ((6,), (), ()),
    ((), (2, 3), (1, 3)),
    ((), (), (2, 3)),
]
texts = []
for leads in cases:
    sizes = (4, 3), (5, 3), (5, 7)
    drawn = [rng.normal(size=(*lead, *size)) for lead, size in zip(leads, sizes, strict=True)]
    texts.append([torch.tensor(x).float() for x in drawn])
# Leading axes of length 1, sizes of 1, sizes that are equal, many keys; memory in another order.
leads_of_odd, odd = [(1,), (1, 1), (2, 1), (4,), (3,)], []
sizes_of_odd = ((4, 5, 3, 7), (3, 5, 4, 2), (1, 1, 1, 1), (4, 4, 4, 4), (2, 300, 1, 1))
for lead, (n_q, n_k, d_k, d_v) in zip(leads_of_odd, sizes_of_odd, strict=True):
    sizes = (d_k, n_q), (d_k, n_k), (d_v, n_k)
    turned = [torch.tensor(rng.normal(size=(*lead, *size))).float() for size in sizes]
    odd.append((turned, [x.mT.contiguous() for x in turned]))


@probe
def of_transposes(Q, K, V):
    return torch_scaled_dot_product_attention(Q.mT, K.mT, V.mT)


said = "they broadcast, and each text should have the results that your function gives it alone."
with check("each text as alone, in many shapes", points=1):
    for leads, (Q, K, V) in zip(cases, texts, strict=True):
        lead = torch.broadcast_shapes(*leads)
        full = [x.expand(*lead, *x.shape[-2:]) for x in (Q, K, V)]
        expected = torch.empty(*lead, 4, 7)
        expected_weights = torch.empty(*lead, 4, 5)
        for place in np.ndindex(*lead):  # by your own function
            one = torch_scaled_dot_product_attention(*(x[place] for x in full))
            expected[place], expected_weights[place] = one
        differ = bool((expected[0] - expected[-1]).abs().max() > 1e-3)
        message = "Other texts, each alone, have other outputs, and none holds NaN."
        assert_equal(differ, True, message)
        output, weights = torch_scaled_dot_product_attention(Q, K, V)
        message = f"Leading axes {leads} of Q, K and V: {said}"
        assert_close(output, expected, message, name="output", against="for each text alone")
        if leads[0] or leads[1]:
            assert_close(
                weights, expected_weights, message, name="weights", against="for each text alone"
            )
    for lead, (turned, given) in zip(leads_of_odd, odd, strict=True):
        n_q, n_k, d_v = given[0].shape[-2], given[1].shape[-2], given[2].shape[-1]
        expected = torch.empty(*lead, n_q, d_v)
        expected_weights = torch.empty(*lead, n_q, n_k)
        for place in np.ndindex(*lead):  # by your own function
            one = torch_scaled_dot_product_attention(*(x[place] for x in given))
            expected[place], expected_weights[place] = one
        message = "The rows of the weights of a text alone are not 0, and hold no NaN."
        some = bool((expected_weights.abs().sum(dim=-1) > 1e-3).all())
        assert_equal(some, True, message)
        message = (
            f"Q, K and V of shapes {', '.join(str(tuple(x.shape)) for x in given)}, transposes of "
            f"other tensors: output {tuple(expected.shape)}, weights {tuple(expected_weights.shape)}, "
            "each text as your function gives it alone. An axis of length 1 is an axis, too."
        )
        output, weights = of_transposes(*turned)
        assert_close(
            weights, expected_weights, message, name="weights", against="for each text alone"
        )
        assert_close(output, expected, message, name="output", against="for each text alone")
with check("as torch", points=0.5):
    for leads, (Q, K, V) in zip(cases, texts, strict=True):
        everything = torch.ones(4, 5, dtype=torch.bool)
        output, _ = torch_scaled_dot_product_attention(Q, K, V, everything)
        message = (
            f"Leading axes {leads} of Q, K and V, a mask (4, 5) that hides nothing: the output should "
            "be that of torch's function."
        )
        assert_close(output, by_torch(Q, K, V), message, name="output")
checks_passed("torch_scaled_dot_product_attention")
### END HIDDEN TESTS


# %% check="torch_scaled_dot_product_attention_masks" points=2
# Hidden checks of torch_scaled_dot_product_attention: masks that broadcast, some rows empty.
### BEGIN HIDDEN TESTS
def by_torch(Q, K, V, mask):
    lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    Q, K, V = (x.expand(*lead, *x.shape[-2:]) for x in (Q, K, V))
    whole = mask.expand(*lead, Q.shape[-2], K.shape[-2])
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=whole)


rng = check_rng()
one_text = [((), (), (5,)), ((), (), (4, 5)), ((), (), (4, 1))]
cases = [
    ((2,), (2,), (4, 5)),
    ((2,), (2,), (2, 1, 5)),
    ((2, 3), (2, 3), (5,)),
    ((2, 3), (2, 3), (2, 1, 1, 5)),
    ((2, 3), (2, 3), (2, 1, 4, 5)),
    ((2, 3), (2, 3), (3, 4, 1)),
    ((2, 1), (3,), (2, 3, 1, 5)),
]
eye = torch.eye(5)


def compare(cases):
    for lead_q, lead_k, shape in cases:
        Q = torch.tensor(rng.normal(size=(*lead_q, 4, 3))).float()
        K = torch.tensor(rng.normal(size=(*lead_k, 5, 3))).float()
        V = torch.tensor(rng.normal(size=(*lead_k, 5, 7))).float() + 3
        mask = torch.tensor(rng.random(shape) < 0.6)
        mask.view(-1)[0] = False
        output, weights = torch_scaled_dot_product_attention(Q, K, V, mask=mask)
        message = (
            f"With a mask of shape {shape} the results should be torch's: weights of 0 where it is "
            "False, and each row sums to 1, or to 0 if it has nothing to attend to."
        )
        assert_close(weights, by_torch(Q, K, eye, mask), message, name="weights")
        assert_close(output, by_torch(Q, K, V, mask), message, name="output")


with check("one text, masks of one and two axes", points=0.75):
    compare(one_text)
unmasked = []
with check("leading axes, masks of every shape", points=0.5):
    compare(cases)
    mask = torch.zeros(2, 1, 5, dtype=torch.bool)
    mask[0, 0, :2] = True
    for lead in ((2,), ()):
        Q = torch.tensor(rng.normal(size=(2, 4, 3))).float()
        K = torch.tensor(rng.normal(size=(*lead, 5, 3))).float()
        V = torch.tensor(rng.normal(size=(*lead, 5, 7))).float()
        output, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
        message = (
            "Two texts, a mask of shape (2, 1, 5): the one of which nothing may be attended should "
            "have weights 0 and output 0, no NaN, and the other torch's results."
        )
        assert_close(weights, by_torch(Q, K, eye, mask), message, name="weights")
        assert_close(output, by_torch(Q, K, V, mask), message, name="output")
    one = torch.tensor([[True], [False], [True], [False]])
    output, weights = torch_scaled_dot_product_attention(Q[0], K[:1], V[:1], one)
    message = (
        "One key, four queries, of which two may attend to it: their weight is 1 and their output "
        "the one value; for the two others both are 0."
    )
    assert_close(weights, one.float(), message, name="weights")
    assert_close(output, one * V[:1], message, name="output")
    for lead, shape, n_k in (((4,), (4, 5), 5), ((4,), (4, 4), 4), ((4,), (4,), 4), ((4,), (4, 1, 4), 4)):
        Q = torch.tensor(rng.normal(size=(*lead, 4, 4))).float()
        K, V = (torch.tensor(rng.normal(size=(*lead, n_k, 4))).float() for _ in range(2))
        mask = torch.tensor(rng.random(shape) < 0.6)
        mask.view(-1)[:2] = torch.tensor([False, True])
        output, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
        message = (
            f"Four texts of four queries and {n_k} keys, a mask of shape {shape}: the results should "
            "be torch's. The mask's last axis are the keys and the one before the queries, "
            "whichever lengths are equal."
        )
        eyes = torch.eye(n_k)
        assert_close(weights, by_torch(Q, K, eyes, mask), message, name="weights")
        assert_close(output, by_torch(Q, K, V, mask), message, name="output")
    for lead_q, lead_k, (n_q, n_k, d_k, d_v), shape, kind in (
        ((), (), (3, 4, 2, 2), (3, 4), "any"),
        ((), (), (4, 4, 4, 4), (4, 4), "any"),
        ((3,), (3,), (3, 3, 3, 3), (1, 1, 3), "any"),
        ((), (3,), (2, 4, 3, 2), (3, 1, 4), "any"),
        ((2, 1, 2), (2, 1, 2), (2, 3, 4, 2), (2, 1, 1, 1, 3), "any"),
        ((), (), (33, 17, 33, 2), (33, 17), "any"),
        ((), (), (2, 65, 17, 65), (65,), "any"),
        ((2,), (2,), (2, 3, 65, 1), (1, 2, 3), "any"),
        ((), (), (131, 5, 2, 2), (131, 1), "any"),
        ((), (), (2, 130, 130, 3), (2, 130), "any"),
        ((), (), (3, 5, 1, 2), (5,), "any"),
        ((), (), (5, 3, 2, 2), (5, 3), "equal rows"),
        ((), (), (5, 3, 4, 2), (3,), "two equal rows"),
        ((), (), (5, 3, 4, 2), (5, 3), "one row 0"),
        ((), (), (5, 3, 4, 2), (3,), "all rows 0"),
    ):
        sizes = (*lead_q, n_q, d_k), (*lead_k, n_k, d_k), (*lead_k, n_k, d_v)
        Q, K, V = (torch.tensor(rng.normal(size=size)).float() for size in sizes)
        some = torch.tensor(rng.random(shape) < 0.6)
        some[..., 0] = True
        if kind == "two equal rows":
            Q[..., 1, :] = Q[..., 0, :]
        elif kind != "any":
            Q[..., 1 if kind == "one row 0" else slice(None), :] = Q[..., :1, :] * (kind == "equal rows")
        shapes = f"Q {tuple(Q.shape)} ({kind}), K {tuple(K.shape)}, V {tuple(V.shape)}"
        for what, mask in (("some True", some), ("all True", some | True), ("all False", some & False)):
            right = by_torch(Q, K, torch.eye(n_k), mask), by_torch(Q, K, V, mask)
            message = (
                f"{shapes}, a mask {shape} ({what}): the results should be torch's."
            )
            given = (x.clone() for x in (Q, K, V))
            output, weights = torch_scaled_dot_product_attention(*given, mask.clone())
            assert_close(weights, right[0], message, name="weights")
            assert_close(output, right[1], message, name="output")
        right = by_torch(Q, K, torch.eye(n_k), some | True), by_torch(Q, K, V, some | True)
        unmasked.append((shapes, (Q, K, V), right))
with check("no mask, in many sizes", points=0.25):
    for shapes, given, right in unmasked:
        message = f"{shapes}, no mask: the results should be torch's."
        output, weights = torch_scaled_dot_product_attention(*(x.clone() for x in given))
        assert_close(weights, right[0], message, name="weights")
        assert_close(output, right[1], message, name="output")
    assert_equal(len(unmasked), 15, "All sizes were looked at.", name="how many")
with check("a forbidden key with the largest score, beside small and large ones", points=0.5):
    Q, K = torch.zeros(1, 4), torch.zeros(3, 4)
    Q[0, 0], K[:, 0] = 2.0, torch.tensor([1.0, 2.0, 24.0])  # their scores are 1, 2 and 24
    mask = torch.tensor([True, True, False])
    _, weights = torch_scaled_dot_product_attention(Q, K, torch.eye(3), mask)
    message = (
        "The other keys share 1 as if a forbidden one were not there, however large its score. "
        "Check first: is a small number added, or a bound set, where you divide?"
    )
    expected = torch.tensor([[math.exp(-1), 1, 0]]) / (1 + math.exp(-1))
    assert_close(weights, expected, message, name="weights")
    # Scores far apart: 1, 2 and 5000 for the first query, -8001, -8000 and 9000 for the second.
    Q = 2 * torch.eye(2, 4)
    K[:, 1], K[2, 0] = torch.tensor([-8001.0, -8000.0, 9000.0]), 5000.0
    _, weights = torch_scaled_dot_product_attention(Q, K, torch.eye(3), mask)
    message = (
        "The other keys share 1 as if a forbidden one were not there, also where scores are "
        "thousands. Check first: what becomes of a forbidden score, and which score of a row does "
        "the softmax take off as the largest?"
    )
    assert_close(weights, expected.repeat(2, 1), message, name="weights")
    low = torch.tensor([[-1e15, 0, 0, 0], [0, 0, 0, 0]])  # scores -1e15 and 0
    first, eye = torch.tensor([[True, False]]), torch.eye(2)
    _, weights = torch_scaled_dot_product_attention(Q[:1], low, eye, first)
    message = (
        "One key may be attended, with a score of -1e15, and one of score 0 is forbidden: the first "
        "has all the weight. Check first: is what stands for minus infinity lower than any number "
        "can be?"
    )
    assert_close(weights, first.float(), message, name="weights")
checks_passed("torch_scaled_dot_product_attention")
### END HIDDEN TESTS


# %% check="torch_scaled_dot_product_attention_gradients" points=1.5
# Hidden checks of torch_scaled_dot_product_attention: gradients through output and weights.
### BEGIN HIDDEN TESTS
@probe
def gradients(Q, K, V, mask, of_output, of_weights):
    Q, K, V = (x.clone().requires_grad_() for x in (Q, K, V))
    allowed = () if mask is None else (mask.clone(),)
    output, weights = torch_scaled_dot_product_attention(Q, K, V, *allowed)
    ((output * of_output).sum() + (weights * of_weights).sum()).backward()
    return Q.grad, K.grad, V.grad


def gradients_by_torch(Q, K, V, mask, of_output, of_weights):
    # The identity, joined to the values, makes torch's function return its weights as well.
    Q, K, V = (x.clone().requires_grad_() for x in (Q, K, V))
    joined = torch.cat([V, torch.eye(5, dtype=V.dtype).expand(*V.shape[:-2], 5, 5)], dim=-1)
    both = F.scaled_dot_product_attention(Q, K, joined, attn_mask=mask)
    (both * torch.cat([of_output, of_weights], dim=-1)).sum().backward()
    return Q.grad, K.grad, V.grad


rng = check_rng()
shapes = ((2, 4, 3), (2, 5, 3), (2, 5, 7), (2, 4, 7), (2, 4, 5))
Q, K, V, A, B = (torch.tensor(rng.normal(size=shape)).float() for shape in shapes)
mask = torch.tensor(rng.random((2, 4, 5)) < 0.6)
mask[..., 2] = True
close = {"rtol": 1e-4, "atol": 1e-5}


def compare(what, texts, given):
    for which, out, wei in (("the output", A, 0 * B), ("the weights", 0 * A, B), ("both", A, B)):
        batch = [x[texts] for x in (Q, K, V)], given, out[texts], wei[texts]
        alone = [x[0] for x in batch[0]], None if given is None else given[0], out[0], wei[0]
        inputs, allowed, *directions = batch if what.startswith("a batch") else alone
        got = gradients(*inputs, allowed, *directions)
        wanted = gradients_by_torch(*inputs, allowed, *directions)
        for name, one, other in zip("QKV", got, wanted, strict=True):
            assert_close(
                one,
                other,
                f"The gradient of {name} through {which}, {what}, should be that of torch's "
                "function. Check first: is something detached, or converted to NumPy on the way?",
                name=f"the gradient of {name}",
                **close,
            )


with check("gradients: one text, with a mask", points=0.75):
    compare("one text, with a mask", slice(0, 1), mask[:1])
with check("gradients: one text, without a mask", points=0.25):
    compare("one text, without a mask", slice(0, 1), None)
with check("gradients: a batch, with a mask", points=0.5):
    compare("a batch, with a mask", slice(0, 2), mask)
checks_passed("torch_scaled_dot_product_attention")
### END HIDDEN TESTS


# %% check="torch_scaled_dot_product_attention_finite" points=1.5
# Hidden checks of torch_scaled_dot_product_attention: gradients where a row is fully masked.
### BEGIN HIDDEN TESTS
@probe
def gradients_and_slopes(Q, K, V, mask, of_output, of_weights, step):
    def total(Q, K, V):
        allowed = None if mask is None else mask.clone()
        output, weights = torch_scaled_dot_product_attention(Q, K, V, allowed)
        return (output * of_output).sum() + (weights * of_weights).sum()

    leaves = [x.clone().requires_grad_() for x in (Q, K, V)]
    result = total(*leaves)
    if result.requires_grad:
        result.backward()
    starts, slopes = [x.clone() for x in (Q, K, V)], [torch.zeros_like(x) for x in leaves]
    with torch.no_grad():  # each number a little up and down, by your own function
        for start, slope in zip(starts, slopes, strict=True):
            for place in range(start.numel()):
                old = start.view(-1)[place].item()
                start.view(-1)[place] = old + step
                above = total(*(x.clone() for x in starts))
                start.view(-1)[place] = old - step
                slope.view(-1)[place] = (above - total(*(x.clone() for x in starts))) / (2 * step)
                start.view(-1)[place] = old
    return [leaf.grad for leaf in leaves], slopes


rng = check_rng()
shapes = ((2, 4, 3), (2, 5, 3), (2, 5, 7), (2, 4, 7), (2, 4, 5))
Q, K, V, A, B = (torch.tensor(rng.normal(size=shape)) for shape in shapes)
one_row = torch.tensor(rng.random((4, 5)) < 0.6)
one_row[:, :2], one_row[2] = True, False
one_text = torch.tensor([[[True, True, False, True, False]], [[False] * 5]])
alone = [x[0] for x in (Q, K, V, A, B)]
batch = [Q, K, V, A, B]


def compare(cases):
    for mask, (*inputs, of_output, of_weights) in cases:
        found, slopes = gradients_and_slopes(*inputs, mask, of_output, of_weights, 1e-5)
        for name, one, slope in zip("QKV", found, slopes, strict=True):
            assert_close(
                one,
                slope,
                f"Some queries may attend to nothing. The gradient of {name} should be the slope "
                "of your own results (NaN has no slope), and 0 for what takes no part. Check "
                "first: a NaN that is replaced in the result can live on in the gradient.",
                rtol=1e-5,
                atol=1e-6,
                name=f"the gradient of {name}",
                against=f"by small steps in {name}",
            )
            moves = f"The results should change when {name} is moved a little."
            assert_equal(bool(slope.abs().max() > 1e-3), True, moves)
        blocked = ~mask.expand(*inputs[0].shape[:-2], 4, 5).any(dim=-1)
        message = "A query that may attend to nothing moves nothing: its gradient is 0."
        assert_equal(bool((found[0][blocked] == 0).all()), True, message)
    *inputs, of_output, of_weights = cases[0][1]
    nothing = torch.zeros(5, dtype=torch.bool)
    found, _ = gradients_and_slopes(*inputs, nothing, of_output, of_weights, 1e-5)
    for name, one, given in zip("QKV", found, inputs, strict=True):
        message = f"Nothing may be attended at all: backward runs, and the gradient of {name} is 0."
        assert_close(one, torch.zeros_like(given), message, name=f"the gradient of {name}")


with check("queries with nothing to see, one text: finite, your results' slopes", points=1):
    compare([(one_row, alone)])
with check("queries with nothing to see, a batch: finite, your results' slopes", points=0.5):
    compare([(one_row, batch), (one_text, batch)])
checks_passed("torch_scaled_dot_product_attention")
### END HIDDEN TESTS

# %% check="torch_scaled_dot_product_attention_dtypes" points=0.5
# Hidden checks of torch_scaled_dot_product_attention: float64, also on the way, and float32.
### BEGIN HIDDEN TESTS
rng = check_rng()
Q, K, V = (torch.tensor(rng.normal(size=shape)) for shape in ((4, 3), (5, 3), (5, 7)))
mask = torch.tensor(rng.random((4, 5)) < 0.7)
mask[:, 2] = True
order = [3, 0, 4, 2, 1]
output, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
message = "An output is no constant, and not NaN."
assert_equal(bool((output[0] - output[0, 0]).abs().max() > 1e-3), True, message)
# The same keys in another order give the same output. In float32 the last digits would change.
moved_mask = mask[:, order]
again, moved = torch_scaled_dot_product_attention(Q, K[order], V[order], moved_mask)
message = (
    "The same keys and values in another order, in float64: the results should be the same to "
    "ten digits, and float64. Check first: is something computed in float32 on the way?"
)
precise = {"rtol": 1e-10, "atol": 1e-13, "precise": True}
assert_close(
    again,
    output.double(),
    message,
    name="output",
    against="with the keys in their first order",
    **precise,
)
assert_close(
    moved,
    weights.double()[:, order],
    message,
    name="weights",
    against="with the keys in their first order",
    **precise,
)
exact = F.scaled_dot_product_attention(Q, K, torch.eye(5).double(), attn_mask=mask)
message = (
    "In float64 the weights should be torch's to ten digits. Check first: is something computed in "
    "float32, or is a small number added where you divide?"
)
if bool((weights.double() - exact).abs().max() < 1e-5):  # else it is not the digits
    assert_close(weights, exact, message, name="weights, each of their digits", **precise)
narrow = torch_scaled_dot_product_attention(Q.float(), K.float(), V.float(), mask)
message = (
    "Float32 tensors should give the results of the same numbers in float64, up to rounding, "
    "in float32 or better."
)
assert_close(
    narrow[0],
    output.float(),
    message,
    name="output",
    against="with the same numbers in float64",
)
assert_close(
    narrow[1],
    weights.float(),
    message,
    name="weights",
    against="with the same numbers in float64",
)
### END HIDDEN TESTS


# %% check="torch_scaled_dot_product_attention_inputs" points=0.5
# Hidden checks of torch_scaled_dot_product_attention: the arguments are not changed.
### SIDE CONDITION: counts once another check of torch_scaled_dot_product_attention passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(Q, K, V, mask):
    torch_scaled_dot_product_attention(Q, K, V, mask)
    return Q, K, V, mask


rng = check_rng()
Q, K, V = (torch.tensor(rng.normal(size=shape)) for shape in ((4, 3), (5, 3), (5, 7)))
mask = torch.tensor(rng.random((4, 5)) < 0.5)
mask[1] = False
after = arguments_after(Q.clone(), K.clone(), V.clone(), mask.clone())
for name, now, before in zip(("Q", "K", "V", "mask"), after, (Q, K, V, mask), strict=True):
    assert_equal(
        now,
        before,
        f"{name} was changed by the call. Check first: does a method that ends in an underscore, "
        "or an operator like /=, write into an argument?",
        name=name,
    )
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


# %% check="mended_encode" points=2
rng = check_rng()
counts = [3, 1, 4, 2]  # four texts of up to four words: sizes at which the colleague's code runs
texts = torch.tensor(rng.normal(size=(4, 4, 3))).float()
words = torch.tensor([[int(t < count) for t in range(4)] for count in counts])
with check("each text as if it were alone", points=1):
    encoded = mended_encode(texts.clone(), words.clone())
    for number, count in enumerate(counts):
        alone = texts[number, :count]
        expected = F.scaled_dot_product_attention(alone, alone, alone)
        message = (
            f"Four texts, whole numbers as mask. Text {number} has {count} words: they should come "
            "out as torch's function encodes them alone, without padding."
        )
        what = f"the words of text {number}"
        assert_close(encoded[number, :count], expected, message, name=what)
with check("padding is 0, and words are not", points=0.5):
    rest = mended_encode(texts.clone(), words.clone())[words == 0]
    assert_close(rest, torch.zeros(6, 3), "The rows of padding are 0.", name="the rows of padding")
    message = "The rows of words are not all 0."
    there = mended_encode(texts.clone(), words.clone())[words == 1]
    assert_equal(bool((there != 0).any()), True, message)
with check("three of the four texts, booleans: as among the four", points=0.5, side=True):
    fewer = mended_encode(texts[:3].clone(), words[:3].bool())
    message = (
        "Three texts, with a mask of booleans: not all that comes out is 0, and none of it NaN."
    )
    assert_equal(bool(fewer.abs().max() > 1e-3), True, message)
    message = "Three texts of the four, with a mask of booleans: they come out as among the four."
    assert_close(
        fewer,
        mended_encode(texts.clone(), words.clone())[:3],
        message,
        against="among the four, with whole numbers",
    )
checks_passed("mended_encode")

# %% check="mended_encode_texts" points=1
# Hidden checks of mended_encode: other sizes and dtypes, padding anywhere, a text without words.
### BEGIN HIDDEN TESTS
rng = check_rng()
for batch, n in ((6, 6), (2, 5), (1, 3), (5, 2)):
    texts = torch.tensor(rng.normal(size=(batch, n, 4)))
    words = torch.tensor(rng.integers(0, 2, size=(batch, n)))
    words[0, 0], words[-1, -1] = 1, 1
    if batch > 2:
        words[1] = 0
    expected = torch.zeros_like(texts)
    for number in range(batch):
        there = words[number].bool()
        alone = texts[number, there]
        expected[number, there] = F.scaled_dot_product_attention(alone, alone, alone)
    encoded = mended_encode(texts, words)
    given = f"{batch} texts of {n} places, words and padding in any order"
    shape = f"{given}: the result has the shape of texts, {(batch, n, 4)}."
    assert_equal(tuple(np.shape(encoded)), (batch, n, 4), shape, name="the shape")
    message = (
        f"{given}: each word attends to the words of its own text, as torch's function gives it for "
        "these words alone. attention_mask says place by place what is a word."
    )
    assert_close(encoded[words == 1], expected[words == 1], message, name="the rows of words")
    message = (
        f"{given}{', one text without a word' if batch > 2 else ''}: rows of padding are 0, not NaN."
    )
    assert_close(encoded[words == 0], expected[words == 0], message, name="the rows of padding")
    message = f"{given}, in float64: the result is float64 too, with all its digits."
    assert_close(encoded, expected, message, precise=True)


@probe
def encoded_and_arguments(texts, words):
    return mended_encode(texts, words), texts, words


texts = torch.tensor(rng.normal(size=(2, 4, 3)))
texts[0, 3], texts[1, 2:] = 1000.0, -1000.0
texts[0, 1] = 0.0
words = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
expected = torch.zeros_like(texts)
for number, count in enumerate((3, 2)):
    alone = texts[number, :count]
    expected[number, :count] = F.scaled_dot_product_attention(alone, alone, alone)
encoded, *after = encoded_and_arguments(texts.clone(), words.clone())
message = (
    "Two texts of four places, of 3 and 2 words, so that the last place is padding in both: the "
    "result has the shape of texts, (2, 4, 3)."
)
assert_equal(tuple(np.shape(encoded)), (2, 4, 3), message, name="the shape")
message = (
    "Two texts of 3 and 2 words, padding that holds 1000 and -1000, and one word whose numbers are "
    "all 0 (a word as any other: attention_mask says what is padding): each text as if it were "
    "alone."
)
assert_close(encoded, expected, message, precise=True)
for name, now, before in zip(("texts", "attention_mask"), after, (texts, words), strict=True):
    assert_equal(
        now,
        before,
        f"mended_encode changes {name}, which is the caller's.",
        name=name,
        against="before the call",
    )
for batch, n, d, kind in ((3, 1, 4, "i4"), (4, 4, 4, "u1"), (2, 90, 1, "i4"), (1, 1, 1, "i8"), (2, 3, 2, "?")):
    texts = torch.tensor(rng.normal(size=(batch, n, d)))
    words = rng.integers(0, 2, size=(batch, n))
    words[0, 0], words[-1, -1] = 1, 1
    words *= kind != "?"  # here no text has a word
    words = torch.tensor(words.astype(kind))
    expected = torch.zeros_like(texts)
    for number in range(batch):
        there = words[number].bool()
        alone = texts[number, there]
        expected[number, there] = F.scaled_dot_product_attention(alone, alone, alone)
    message = (
        f"texts of shape {(batch, n, d)}, attention_mask of dtype {words.dtype}, words and padding "
        "in any order, or padding alone: each word attends to the words of its own text, as "
        "torch's function gives it for these words alone, and rows of padding are 0. The result "
        f"has the shape {(batch, n, d)}."
    )
    assert_close(mended_encode(texts, words), expected, message)


@probe
def encoded_without_gradients(texts, words):
    with torch.no_grad():
        return mended_encode(texts=texts.mT, attention_mask=words)


for batch, n, d, kind in (
    (3, 4, 17, "any"),
    (2, 33, 5, "below 0"),
    (5, 3, 33, "any"),
    (2, 3, 65, "above 0"),
    (2, 131, 2, "any"),
    (1, 4, 130, "any"),
    (33, 2, 3, "any"),
    (2, 4, 3, "equal words"),
    (2, 4, 3, "all 0"),
    (2, 4, 3, "2000 in one place"),
):
    texts = torch.tensor(rng.normal(size=(batch, n, d)))
    if kind.endswith(" 0"):
        texts = texts.abs() * {"below 0": -1, "above 0": 1, "all 0": 0}[kind]
    elif kind == "equal words":
        texts = texts[:, :1].repeat(1, n, 1)
    elif kind != "any":
        texts[0, 0, 0] = 2000.0
    words = torch.tensor(rng.random((batch, n)) < 0.6)
    words[:, 0], words[-1] = True, batch == 1
    expected = torch.zeros_like(texts)
    for number in range(batch):
        alone = texts[number, words[number]]
        encoded = F.scaled_dot_product_attention(alone, alone, alone)
        expected[number, words[number]] = encoded
    message = (
        f"texts of shape {(batch, n, d)} ({kind}), attention_mask of booleans, words and padding in "
        f"any order{', the last text without a word' if batch > 1 else ''}: each word attends to "
        "the words of its own text, and rows of padding are 0."
    )
    turned = texts.mT.contiguous().clone()
    assert_close(mended_encode(texts.clone(), words.clone()), expected, message)
    message += " Here texts are a transpose of another tensor, and it is under torch.no_grad()."
    assert_close(encoded_without_gradients(turned, words.clone()), expected, message)
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


# %% check="gradient_descent" points=3
@probe
def descended(problem, start, steps, lr, old=None):
    """The parameters after gradient_descent, and what it returned, as floats."""
    parameters = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in start]
    if old is not None:
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, old)

    def loss_of():
        if problem == "p squared":
            return parameters[0] ** 2
        return (parameters[0] * parameters[1] - 1.0) ** 2  # "a times b should be 1"

    with torch.enable_grad():  # afterwards it is as before, whatever the call does
        losses = gradient_descent(loss_of, parameters, steps, lr)
    found = [float(loss) for loss in losses] if isinstance(losses, (list, tuple)) else losses
    return [parameter.item() for parameter in parameters], found


with check("downhill", points=0.75):
    after = [np.abs(descended("p squared", [4.0], steps, 0.25)[0]).max() for steps in (3, 1)]
    message = "The loss is p squared. From p = 4 each step with lr = 0.25 brings p nearer to 0."
    assert_equal(bool(0 < after[0] < after[1] < 4.0), True, message, name="'nearer with every step'")
with check("how far", points=0.75):
    for steps, expected in ((1, 2.0), (2, 1.0), (3, 0.5)):
        after, _ = descended("p squared", [4.0], steps, 0.25)
        message = (
            f"The loss is p squared, its slope 2 p. From p = 4, {steps} steps with lr = 0.25: each "
            f"takes away 0.25 times 2 p, the half of p, so it ends at {expected}."
        )
        assert_close(np.array(after), np.array([expected]), message, name="p")
with check("a loss a step: p squared where your own steps led", points=0.75):
    places = [4.0] + [descended("p squared", [4.0], steps, 0.25)[0][0] for steps in (1, 2)]
    message = "The first step moves p, by less than 4."
    assert_equal(
        bool(0 < abs(places[1] - 4.0) < 4.0), True, message, name="'p has moved, by less than 4'"
    )
    _, losses = descended("p squared", [4.0], 3, 0.25)
    message = (
        "Three steps from p = 4: one loss a step, p squared as it was before that step. With right "
        "steps these are 16, 4 and 1."
    )
    assert_close(
        np.array(losses),
        np.array(places) ** 2,
        message,
        name="the losses",
        against="as p squared, from shorter runs",
    )
with check("two parameters", points=0.5):
    after, _ = descended("a times b", [2.0, 1.0], 1, 0.125)
    message = (
        "The loss is (a b - 1) squared, at a = 2 and b = 1. Its slopes are 2 (a b - 1) b = 2 and "
        "2 (a b - 1) a = 4, so one step with lr = 0.125 gives a = 1.75 and b = 0.5. Both slopes "
        "belong to the same point."
    )
    assert_close(np.array(after), np.array([1.75, 0.5]), message, name="a and b")
with check("an old gradient changes nothing", points=0.25):
    after, _ = descended("p squared", [4.0], 1, 0.25, old=100.0)
    fresh, _ = descended("p squared", [4.0], 1, 0.25)
    message = "One step from p = 4 moves p towards 0."
    assert_equal(bool(0 < fresh[0] < 4.0), True, message, name="'p is between 0 and 4'")
    message = "p.grad was 100 when the function was called. That should change nothing."
    assert_close(
        np.array(after), np.array(fresh), message, name="p", against="without an old gradient"
    )
checks_passed("gradient_descent")


# %% check="gradient_descent_problems" points=2
# Hidden checks of gradient_descent: another loss, with parameters of several shapes.
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


def by_hand(X, y, W, b, steps, lr):
    losses = []
    for _ in range(steps):
        error = X @ W + b - y
        losses.append(float(np.mean(error.numpy() ** 2)))
        slope = 2.0 * error / error.numel()
        W, b = W - lr * X.T @ slope, b - lr * slope.sum(0)
    return W, b, losses


rng = check_rng()
cases = []
for n, d, k, steps, lr, old in ((9, 3, 2, 1, 0.1, False), (7, 2, 4, 6, 0.3, True), (12, 5, 1, 25, 0.05, True)):
    given = [torch.tensor(rng.normal(size=size)) for size in ((n, d), (n, k), (d, k), (k,))]
    cases.append((given, steps, lr, old))
steep = [100.0 * torch.tensor(rng.normal(size=size)) for size in ((8, 3), (8, 2), (3, 2), (2,))]
cases.append((steep, 4, 1e-5, False))  # gradients in the tens of thousands


@probe
def climbed(starts, steps, lr):
    """Three parameters of which one is a transpose; the loss rises and is negative at first."""
    W, s, T = (torch.tensor(start, dtype=torch.float32) for start in starts)
    parameters = [W.T.requires_grad_(), s.requires_grad_(), T.requires_grad_()]

    def loss_of():
        return sum((one**2).sum() for one in parameters) - 50.0

    with torch.enable_grad():  # afterwards it is as before, whatever the call does
        gradient_descent(loss_of=loss_of, parameters=parameters, steps=steps, lr=lr)
    return [one.detach().clone() for one in parameters]


@probe
def summed(starts, steps, lr):
    a, b = (torch.tensor(start).requires_grad_() for start in starts)

    def loss_of():
        return ((a + b) ** 2).sum()

    with torch.enable_grad():  # afterwards it is as before, whatever the call does
        gradient_descent(loss_of, [a, b], steps, lr)
    return a.detach(), b.detach()


starts = [rng.uniform(0.5, 1.5, size=shape) for shape in ((2, 3), (), (2, 1, 2))]
for d, k, steps, lr, kind in (
    (3, 3, 2, 0.1, "any"),
    (33, 2, 33, 0.02, "any"),
    (2, 17, np.int64(3), 1, "any"),
    (2, 130, 2, 0.5, "above 0"),
    (65, 5, 1, 0.01, "below 0"),
    (1, 3, 2, 0.1, "all 0"),
    (4, 1, 3, 0.1, "two equal rows"),
):
    given = [torch.tensor(rng.normal(size=size)) for size in ((7, d), (7, k), (d, k), (k,))]
    if kind == "two equal rows":
        given[2][1] = given[2][0]
    elif kind != "any":
        given[2] = given[2].abs() * {"above 0": 1, "below 0": -1, "all 0": 0}[kind]
    cases.append((given, steps, lr, False))
with check("where it ends", points=1):
    for given, steps, lr, old in cases:
        W, b, _ = fitted(*given, steps, lr, old)
        W_right, b_right, _ = by_hand(*given, steps, lr)
        message = (
            f"A linear model, W {tuple(W_right.shape)} and b, lr = {lr}, steps: {steps}. Each step "
            "takes lr times their gradients from both, as large as they are, at the same point; "
            "what lay in .grad has no part."
        )
        assert_close(W, W_right, message, name="W")
        assert_close(b, b_right, message, name="b")
    for lr, factor in ((1.25, -1.5), (1, -1.0), (0.25, 0.5), (0.0, 1.0)):
        message = (
            f"The sum of the squares of three parameters, less 50, float32, lr = {lr}, 5 steps: "
            f"each step takes lr times 2 p from p, so it multiplies every number by {factor}, "
            "whether the loss rises or falls, and whatever its sign."
        )
        for one, start in zip(climbed(starts, 5, lr), starts, strict=True):
            right = torch.tensor(start.T if start.ndim == 2 else start).float() * factor**5
            assert_close(one, right, message, name=f"the parameter of shape {tuple(right.shape)}")
    twins = rng.normal(size=(2, 3))
    message = (
        "The loss is ((a + b) ** 2).sum(), 3 steps with lr = 0.1. Both gradients are 2 (a + b), and "
        "a and b move by the same amount in each step. Check first: is a gradient changed in "
        "place? What torch hands out for a and for b may be one and the same tensor."
    )
    for name, one, start in zip("ab", summed(twins, 3, 0.1), twins, strict=True):
        right = torch.tensor(start - twins.sum(axis=0) * (1 - 0.6**3) / 2)  # a + b: times 0.6
        assert_close(one, right, message, name=name)
with check("a loss a step: at the W and b where your own steps led", points=1):
    for (X, y, W, b), steps, lr, old in cases:
        losses = fitted(X, y, W, b, steps, lr, old)[2]
        W_last, b_last, _ = fitted(X, y, W, b, steps - 1, lr, old)
        first, last = (
            float((X @ weight + bias - y).square().mean())
            for weight, bias in ((W, b), (W_last, b_last))
        )
        message = f"A linear model, {steps} steps of {lr}: a loss a step, each from before it."
        assert_equal(len(losses), int(steps), message, name="the number of losses")
        assert_close(
            losses[0], first, message, name="the first loss", against="at the W and b given"
        )
        assert_close(losses[-1], last, message, name="the last loss", against="after one step less")
        moved = bool((fitted(X, y, W, b, steps, lr, old)[0] - W).abs().max() > 1e-4)
        assert_equal(moved, True, "The steps move W.", name="'W has moved, and holds no NaN'")
    given, steps, _, _ = cases[1]
    message = "A learning rate so small that nothing seems to move: still a loss for each step."
    losses = fitted(*given, steps, 1e-12, False)[2]
    assert_equal(len(losses), steps, message, name="the number of losses")
    X, y, _, _ = given
    places = [fitted(*given, before, 50.0, False)[:2] for before in range(steps)]
    expected = [float((X @ weight + bias - y).square().mean()) for weight, bias in places]
    message = "A rate so large that the loss grows: a loss for each step, each from before it."
    losses = fitted(*given, steps, 50.0, False)[2]
    assert_close(
        np.array(losses),
        np.array(expected),
        message,
        name="the list of losses",
        against="from runs with fewer steps",
    )
checks_passed("gradient_descent")
### END HIDDEN TESTS


# %% check="gradient_descent_tensors" points=1
# Hidden checks of gradient_descent: the same tensors, floats, no step, further calls, small numbers.
### SIDE CONDITION: counts once another check of gradient_descent passes.
### BEGIN HIDDEN TESTS
@probe
def kinds(start, steps):
    parameter = torch.tensor(start, requires_grad=True)
    parameters = [parameter]

    def loss_of():
        return (parameter**2).sum()

    with torch.enable_grad():  # afterwards it is as before, whatever the calls do
        losses = gradient_descent(loss_of, parameters, steps, 0.1)
        again = gradient_descent(loss_of, parameters, steps, 0.1)
        records = torch.is_grad_enabled()
    same = parameters[0] is parameter and parameter.is_leaf and parameter.requires_grad
    return same, records, [type(loss).__name__ for loss in [*losses, *again]], parameter.detach()


start = check_rng().normal(size=4)
for steps in (0, 1, 5, 40):
    same, records, names, after = kinds(start, steps)
    message = f"{steps} steps, twice: a list of {steps} Python floats each time."
    assert_equal(names, ["float"] * (2 * steps), message, name="the types of the losses")
    message = "The list holds the same tensors as before, which still require a gradient."
    assert_equal(same, True, message, name="'the same tensors, ready to be trained further'")
    message = (
        "After the call torch records gradients as it did before it (torch.is_grad_enabled()): the "
        "caller may train the parameters further."
    )
    assert_equal(records, True, message, name="'gradients are recorded after the call'")
    message = f"Twice {steps} steps on the sum of squares: each takes away a fifth."
    assert_close(after, torch.tensor(start * 0.8 ** (2 * steps)), message, name="the parameter")
for small in (1e-7, 0.0):
    _, _, names, after = kinds(small * start, 3)
    message = (
        f"A start of numbers times {small:g}, twice 3 steps on the sum of squares: three losses "
        "each time, and each step takes away a fifth, however small loss and gradient are."
    )
    assert_equal(names, ["float"] * 6, message, name="the types of the losses")
    assert_close(after, torch.tensor(small * start * 0.8**6), message, name="the parameter")
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
def loss_after(factor, seed, steps=200):
    """Squared distance of the weights from "all on key 0", after training the query alone."""
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(16, 512, generator=generator)
    query = torch.randn(1, 512, generator=generator).requires_grad_()

    def loss_of():
        _, weights = torch_scaled_dot_product_attention(factor * query, keys, keys)
        return (weights - F.one_hot(torch.tensor([0]), 16)).square().sum()

    return gradient_descent(loss_of, [query], steps, lr=1.0)[-1]


learned = {}
for name, factor in (("with the scale", 1.0), ("without", math.sqrt(512))):
    ends = [loss_after(factor, seed) for seed in range(8)]
    learned[name] = sum(end < 0.05 for end in ends), sum(end > 1.5 for end in ends)
    print(f"{name:15s} learned {learned[name][0]} of 8, stuck {learned[name][1]} of 8")

# %% [markdown]
# Without the scale most softmax rows have decided before the first step, for a wrong key. The loss is
# 2, as large as it can be, and its slope is nearly 0: there is no downhill. A start from which the
# query learns all the same is luck.

# %% tags=["demonstration"]
assert learned["with the scale"][0] == 8
assert learned["without"][0] <= 2 and learned["without"][1] >= 5

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


# %% tags=["demonstration", "nbval-ignore-output"]
# Printed accuracies come from training: they may differ in the last digit on another machine.
UNDO = math.sqrt(D_K)  # queries times this factor: the scale is undone
settings = {
    "scale, start 1": (1.0, 1.0),
    "no scale, start 1": (UNDO, 1.0),
    "no scale, start 0.58": (UNDO, 3**-0.5),
    "no scale, start 0.21": (UNDO, D_K**-0.25),
}
runs = {name: [] for name in settings}
for run in progress(12, "four settings, three seeds each"):
    name = list(settings)[run // 3]
    runs[name].append(train(*settings[name], seed=run % 3))
    note(f"loss {runs[name][-1][1][-1]:.3f}")
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


figure, axes = plt.subplots(figsize=(6.4, 3.8))
styles = (("tab:blue", "-"), ("tab:red", "-"), ("tab:orange", "--"), ("tab:green", ":"))
for (name, trained), (colour, line) in zip(runs.items(), styles):
    for index, (_, losses, _) in enumerate(trained):
        label = name if index == 0 else None
        axes.semilogy(smooth(losses), line, color=colour, lw=1.6, label=label)
axes.set(xlabel="training step", ylabel="squared error (mean of 10 steps)", ylim=(1e-3, 3))
axes.legend(
    fontsize=8,
    title="start: standard deviation\nof the entries",
    title_fontsize=8,
    loc="upper left",
    bbox_to_anchor=(1.0, 1.0),
)

final = {name: np.mean([loss[-20:] for _, loss, _ in trained]) for name, trained in runs.items()}
assert final["scale, start 1"] < 0.1 and 0.8 < final["no scale, start 1"] < 1.6
assert 0.6 < final["no scale, start 0.58"] < 1.3 and final["no scale, start 0.21"] < 1e-3
show(
    figure,
    "Figure 3. Entries of variance 1: with the scale the dictionary is learned, without it the "
    "error stays high. Small enough starting vectors repair it without any scale. Do not conclude "
    "that attention cannot be trained without the scale: what counts is how large the scores are "
    "when training begins.",
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
# and a table of weights is best seen as a picture: one row a query, one column a key, the darker the
# more weight. Every later lesson reads such **maps**, so you write the function that draws them.
# [seaborn](https://seaborn.pydata.org) draws one in a line. **Predict, then run:** the weights below
# lie between 0.19 and 0.21. Which of the two pictures will show that?

# %% tags=["demonstration"]
nearly_even = 0.2 + 0.01 * np.array([[1, 0, -1, 0, 0], [0, -1, 0, 1, 0], [-1, 0, 1, 0, 0]])
figure, panels = plt.subplots(1, 2, figsize=(9.6, 2.6))
sns.heatmap(nearly_even, ax=panels[0], cmap="Blues")  # the colours go from the least to the most
sns.heatmap(nearly_even, ax=panels[1], cmap="Blues", vmin=0, vmax=1)
for axes, title in zip(panels, ("colours from 0.19 to 0.21", "colours from 0 to 1")):
    axes.set_title(title)
figure.tight_layout()
show(
    figure,
    "Figure 4. The same numbers twice. seaborn and matplotlib stretch the colours over what a map "
    "holds, and then an even map looks as sharp as a trained one. Maps that are compared need one "
    "scale: for weights, 0 to 1.",
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


# %% check="attention_heatmap" points=4
@probe
def drawn(weights, query_words, key_words, given):
    """What is on the axes, as plain data: rows from the top, columns from the left."""
    import matplotlib.pyplot as plt

    before = set(plt.get_fignums())
    try:
        ax = plt.subplots(1, 2)[1][0]  # the other one is the current axes
        opened = set(plt.get_fignums())
        axes = attention_heatmap(weights, query_words, key_words, **({"ax": ax} if given else {}))
        figures = len(set(plt.get_fignums()) - opened)
        if not isinstance(axes, plt.Axes):
            return {"returned": type(axes).__name__}
        axes.figure.draw_without_rendering()
        maps = [one for one in (*axes.images, *axes.collections) if one.get_array() is not None]
        place = {"on ax": axes is ax, "opened": figures, "new": axes.figure is not ax.figure}
        seen = {"returned": "Axes", "maps": len(maps), "place": place}
        seen["labels"] = [axes.get_ylabel(), axes.get_xlabel()]
        for one in maps[:1]:
            numbers = np.ma.filled(np.ma.asarray(one.get_array()).astype(float), np.nan)
            if hasattr(one, "get_extent"):
                left, right, *ends = one.get_extent()
                across = np.linspace(left, right, numbers.shape[1] + 1)
                down = np.linspace(*ends[:: -1 if one.origin == "upper" else 1], len(numbers) + 1)
            else:
                across, down = one.get_coordinates()[0, :, 0], one.get_coordinates()[:, 0, 1]
            for name, edges, axis in (("rows", down, axes.yaxis), ("columns", across, axes.xaxis)):
                middles, (first, last) = (edges[1:] + edges[:-1]) / 2, axis.get_view_interval()
                order = np.argsort(middles if (last > first) == (name == "columns") else -middles)
                numbers = numbers[order] if name == "rows" else numbers[:, order]
                labels = [*axis.get_majorticklabels(), *axis.get_minorticklabels()]
                ticks = [(one.get_position()[name == "rows"], one.get_text()) for one in labels]
                near = 0.05 * abs(edges[1] - edges[0])
                words = [[word for at, word in ticks if abs(at - m) < near] for m in middles[order]]
                seen[name] = ["".join(dict.fromkeys(one)) for one in words]
            seen["numbers"] = numbers
            seen["colours"] = np.array([float(one.norm(x)) for x in (0, 0.25, 0.5, 1)])
        return seen
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


weights = check_rng().dirichlet(np.ones(4), size=3)
query_words, key_words = ["le", "chat", "dort"], ["the", "black", "cat", "sleeps"]
seen = drawn(weights, query_words, key_words, given=False)
assert_equal(seen["returned"], "Axes", "A matplotlib Axes comes back.", name="what comes back")
assert_equal(seen["maps"], 1, "One mesh or image should hold the numbers.", name="how many do")
with check("the numbers, first query on top, first key at the left", points=1.25):
    message = (
        "Three queries, four keys: the numbers, from top to bottom and from left to right, should be "
        "those of weights. Check first: which row is on top, and are rows and columns exchanged?"
    )
    assert_close(seen["numbers"], weights, message, name="the numbers")
with check("each row and each column has its word", points=1):
    message = (
        "A tick in the middle of each row and column should carry its word. Check first: are there "
        "as many ticks as words, and do they stand in the middle of the cells?"
    )
    upside_down = seen["numbers"].shape == (3, 4) and abs(seen["numbers"][::-1] - weights).max() < 0.01
    seen["rows"] = seen["rows"][:: -1 if upside_down else 1]  # that is told above
    words = [seen["rows"], seen["columns"]]
    assert_equal(words, [query_words, key_words], message, name="the words of rows and columns")
with check("the labels query and key", points=0.5):
    message = "The rows' axis should have the label query, the columns' axis the label key."
    assert_equal(seen["labels"], ["query", "key"], message, name="the labels of rows and columns")
with check("colours from 0 to 1", points=0.75):
    message = (
        "The colours should be linear from 0 to 1: the weights 0, 0.25, 0.5 and 1 stand at 0, 0.25, "
        "0.5 and 1 of the colour map. Check first: what is the range where you name none?"
    )
    expected = np.array([0, 0.25, 0.5, 1])
    assert_close(seen["colours"], expected, message, name="where these weights stand")
with check("on the axes that are given", points=0.5):
    found = drawn(weights, query_words, key_words, given=True)
    message = "With ax the map should be on ax, which comes back, and no figure be opened."
    where = [found["place"]["on ax"], found["maps"], found["place"]["opened"]]
    assert_equal(where, [True, 1, 0], message, name="ax comes back, maps on it, figures opened")
checks_passed("attention_heatmap")

# %% check="attention_heatmap_maps" points=3
# Hidden checks of attention_heatmap: tensors, words that repeat, one row, a figure of its own.
### BEGIN HIDDEN TESTS
@probe
def drawn(weights, query_words, key_words, given):
    """What is on the axes, as plain data: rows from the top, columns from the left."""
    import matplotlib.pyplot as plt

    before = set(plt.get_fignums())
    try:
        ax = plt.subplots(1, 2)[1][0]  # the other one is the current axes
        opened = set(plt.get_fignums())
        axes = attention_heatmap(weights, query_words, key_words, **({"ax": ax} if given else {}))
        figures = len(set(plt.get_fignums()) - opened)
        if not isinstance(axes, plt.Axes):
            return {"returned": type(axes).__name__}
        axes.figure.draw_without_rendering()
        maps = [one for one in (*axes.images, *axes.collections) if one.get_array() is not None]
        place = {"on ax": axes is ax, "opened": figures, "new": axes.figure is not ax.figure}
        seen = {"returned": "Axes", "maps": len(maps), "place": place}
        seen["labels"] = [axes.get_ylabel(), axes.get_xlabel()]
        for one in maps[:1]:
            numbers = np.ma.filled(np.ma.asarray(one.get_array()).astype(float), np.nan)
            if hasattr(one, "get_extent"):
                left, right, *ends = one.get_extent()
                across = np.linspace(left, right, numbers.shape[1] + 1)
                down = np.linspace(*ends[:: -1 if one.origin == "upper" else 1], len(numbers) + 1)
            else:
                across, down = one.get_coordinates()[0, :, 0], one.get_coordinates()[:, 0, 1]
            for name, edges, axis in (("rows", down, axes.yaxis), ("columns", across, axes.xaxis)):
                middles, (first, last) = (edges[1:] + edges[:-1]) / 2, axis.get_view_interval()
                order = np.argsort(middles if (last > first) == (name == "columns") else -middles)
                numbers = numbers[order] if name == "rows" else numbers[:, order]
                labels = [*axis.get_majorticklabels(), *axis.get_minorticklabels()]
                ticks = [(one.get_position()[name == "rows"], one.get_text()) for one in labels]
                near = 0.05 * abs(edges[1] - edges[0])
                words = [[word for at, word in ticks if abs(at - m) < near] for m in middles[order]]
                seen[name] = ["".join(dict.fromkeys(one)) for one in words]
            seen["numbers"] = numbers
            seen["colours"] = np.array([float(one.norm(x)) for x in (0, 0.25, 0.5, 1)])
        return seen
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


@probe
def maps_with_gradient(weights, query_words, key_words):
    """The numbers of each mesh or image, sorted."""
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    try:
        attention_heatmap(weights.clone().requires_grad_(), query_words, key_words, ax=ax)
        maps = [one.get_array() for one in (*ax.images, *ax.collections)]
        return [np.sort(np.asarray(one, dtype=float), axis=None) for one in maps if one is not None]
    finally:
        plt.close(ax.figure)


def rows_in_order(seen, weights):
    """The map with the first query on top, also where it is drawn the other way round."""
    numbers = seen["numbers"]
    upside_down = numbers.shape == weights.shape and abs(numbers[::-1] - weights).max() < 0.01
    return numbers[:: -1 if upside_down else 1], seen["rows"][:: -1 if upside_down else 1]


rng = check_rng()
words = ["le", "chat", "noir", "dort"], ["the", "cat", "is", "the", "cat"]
weights = rng.dirichlet(np.ones(5), size=4)
with check("unrounded numbers, of a tensor too", points=0.75):
    for kind, given in (("NumPy array", weights), ("torch tensor", torch.tensor(weights))):
        numbers, _ = rows_in_order(drawn(given, *words, given=True), weights)
        message = f"weights as a {kind}: the map should hold its numbers with all their digits."
        assert_close(numbers, weights, message, name="the numbers")
with check("a tensor that requires a gradient", points=0.5):

    found = maps_with_gradient(torch.tensor(weights), *words)
    message = "weights may require a gradient, as a model's own do: one map should be on ax."
    assert_equal(len(found), 1, message, name="how many maps are on ax")
    message = "weights that require a gradient: the map should hold its numbers."
    assert_close(found[0], np.sort(weights, axis=None), message, name="its numbers, sorted")
with check("words that repeat", points=0.5):
    seen = drawn(weights, *words, given=True)
    message = "Two words stand twice among the keys: each column still has a tick with its word."
    assert_equal(seen["columns"], words[1], message, name="the words of the columns")
with check("the colours of another map are the same", points=0.5):
    even = drawn(np.full((4, 5), 0.2), *words, given=True)["colours"]
    expected = np.array([0, 0.25, 0.5, 1])
    message = "All weights are 0.2: still the colours should be linear from 0 to 1."
    assert_close(even, expected, message, name="where 0, 0.25, 0.5 and 1 stand")
with check("a row or a column alone: its words", points=0.25):
    for n_q, n_k in ((1, 5), (4, 1)):
        some = words[0][:n_q], words[1][:n_k]
        seen = drawn(weights[:n_q, :n_k], *some, given=True)
        _, rows = rows_in_order(seen, weights[:n_q, :n_k])
        message = f"weights of shape {(n_q, n_k)}: a tick with its word for each row and column."
        found = [rows, seen["columns"]]
        assert_equal(found, list(some), message, name="the words of rows and columns")
with check("without ax: a new figure", points=0.5):
    place = drawn(weights, *words, given=False)["place"]
    message = (
        "Without ax the map should have a new pyplot figure, also where another figure is open. Check "
        "first: plt.gca and plt.imshow take the axes that were used last."
    )
    assert_equal([place["new"], place["opened"]], [True, 1], message, name="new, and how many")
checks_passed("attention_heatmap")
### END HIDDEN TESTS

# %% check="attention_heatmap_misuse" points=1
# Hidden checks of attention_heatmap: too many or too few words, and weights that stay as they are.
### SIDE CONDITION: counts once another check of attention_heatmap passes.
### BEGIN HIDDEN TESTS
@probe
def weights_after_or_refused(weights, query_words, key_words):
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    try:
        attention_heatmap(weights, query_words, key_words, ax=ax)
    except ValueError:
        return "refused"
    finally:
        plt.close(ax.figure)
    return weights


weights = check_rng().dirichlet(np.ones(4), size=3)
for more, what in ((weights, "an array"), (torch.tensor(weights), "a tensor")):
    after = weights_after_or_refused(more + 0, ["le", "chat", "dort"], ["the", "black", "cat", "is"])
    message = f"weights, {what}, should be as before the call."
    assert_equal(after, more, message, name="weights after the call")
words = ["the", "black", "cat", "is", "sleeping"]
for n_q, n_k in ((2, 4), (4, 4), (3, 3), (3, 5), (4, 3)):
    found = weights_after_or_refused(weights, words[:n_q], words[:n_k])
    message = f"weights (3, 4), {n_q} query_words and {n_k} key_words: a ValueError should come."
    assert_equal(str(found) == "refused", True, message, name="'a ValueError came'")
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
figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.6))
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
figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.6))
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
    "Figure 6. Without a mask, words that have no partner here give a part of their weight to the "
    "padding: 'noir' most of it, 'dort' a smaller part. With the mask the padding gets exactly 0. "
    "But the rows of 'noir' and 'dort' still sum to 1: softmax cannot say 'nowhere'. Do "
    "not read such a row as a finding.",
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
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6))
for name, marker in (("yours", "o-"), ("torch's", "s--")):
    times, memory = zip(*cost[name])
    left.loglog(lengths, [1e3 * t for t in times], marker, label=name)
    right.loglog(lengths, memory, marker, label=name)
x = np.array(lengths[1:])
# The guides lie below the curves, so that neither hides the other.
left.loglog(x, 400 * cost["torch's"][-1][0] * (x / 4096) ** 2, ":", color="grey", label="$n^2$")
right.loglog(x, 0.4 * cost["yours"][-1][1] * (x / 4096) ** 2, ":", color="grey", label="$n^2$")
right.loglog(x, 0.4 * cost["torch's"][-1][1] * x / 4096, "-.", color="grey", label="$n$")
left.set(xlabel="number of words $n$", ylabel="processor time, ms")
right.set(xlabel="number of words $n$", ylabel="kept for the backward pass, MiB")
for axes in (left, right):
    axes.set_xticks(lengths, lengths)
    axes.minorticks_off()
    axes.legend()
figure.tight_layout()
yours, theirs = ([m for _, m in cost[name]] for name in ("yours", "torch's"))
assert yours[-1] > 64 and 3.5 < yours[-1] / yours[-2] < 4.1  # at least one whole n x n matrix
assert theirs[-1] < 5 and 1.9 < theirs[-1] / theirs[-2] < 2.1
print(f"memory, n from 2048 to 4096: yours x {yours[-1] / yours[-2]:.2f}, torch's x 2")
show(
    figure,
    "Figure 7. Time grows about like $n^2$ for both, sometimes faster (the processor's caches and other "
    "programs may play a part; not measured here). Memory grows like "
    "$n^2$ for the plain formula, but only like $n$ for torch's function, which saves memory, "
    "not multiplications.",
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
