# %% [markdown]
# ## What you will be able to do
#
# - **Design** a two-layer attention model on paper, weight by weight, that does what trained models
#   learned to do.
# - **Find** a head by a score, and **say** what the score does not show.
# - **Split** a logit into what each head adds to it, exactly.
# - **Intervene**: remove a head in three ways, patch one text's activations into another's run, and
#   put a control beside each.
# - **Argue** both sides of "attention is not explanation", each with an experiment.

# %% tags=["setup"]
import copy
import math
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from lesson.earlier import (
    LayerNorm,
    LearnedPositionalEmbedding,
    MultiHeadAttention,
    TransformerBlock,
    combine_heads,
    split_heads,
)
from lesson.progress import progress
from torch import nn

from lesson.checks import (
    assert_close,
    assert_equal,
    assert_raises,
    check,
    check_answer,
    check_rng,
    checks_passed,
    probe,
)
from lesson.figures import draw_heatmap, show, text_table
from lesson.guesses import reply

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `earlier` brings your tools of lessons 5 to 8, as the course solves them. To use your own, paste
# them into a cell below this one.
#
# Three questions from memory first. Say your answer aloud, then unfold.
#
# <details><summary>Lesson 12: you knock a head out by putting zeros in place of its output. What else
# should you try before you say "the model needs this head"?</summary>
#
# Its mean in place of zeros, since the rest of the model may never have seen zeros; and another
# head in its place, since the loss of any head may cost as much.
#
# </details>
#
# <details><summary>Lesson 8: a pre-norm block reads <code>norm(x)</code> and adds its result to
# <code>x</code>. Who may overwrite what an earlier block has written?</summary>
#
# Nobody. Every part only adds. A later part can add the opposite, but the sum of all parts is all
# there is. Section 4 of this lesson takes that sum apart.
#
# </details>
#
# <details><summary>Lesson 5: one attention layer learned repeated texts badly, two learned them to 1.00.
# What did the first layer do for the second?</summary>
#
# It wrote into each position which word stood before it. By that the second layer could search.
#
# </details>
#
# ## 1. From a map to a mechanism
#
# Lesson 5 trained a model on repeated texts, "the black cat is sleeping the black cat is ...", and
# two maps suggested how it works: a head of layer 1 looks one word back, a head of layer 2 looks at
# the word after the earlier copy. Lesson 12 counted what heads look at, and knocked some out. Here
# most visualisations of attention stop. Three questions are left:
#
# 1. **Is the story enough?** Could a model with just these two heads do the task, and nothing else?
#    We build it by hand (section 2).
# 2. **Is the story true?** Does the trained model work that way? We find its heads by a score, take
#    its answer apart, and intervene (sections 3 to 6).
# 3. **When is a map an explanation?** There is an argument about it in the literature; we run an
#    experiment for each side (section 8).
#
# A **circuit** is a set of parts, with what passes between them, that does a task. What passes, passes
# through the **residual stream** (lesson 8): the vector of each position, to which every layer adds.
# Elhage and others (2021) describe attention-only models in this way, and we take over their words.
#
# ## 2. A model designed by hand
#
# In the following model each feature of the stream has a meaning that we choose. For a vocabulary of
# `vocab` words and texts of at most `max_len` words, a position's vector is
#
# | features | number | holds at the start |
# |---|---|---|
# | token | `vocab` | 1 at the number of the word, else 0 |
# | position | `max_len` | 1 at the number of the place, else 0 |
# | free | `2 * vocab` | 0 |
#
# Two layers follow, one head each. No scale, no norm, no feed-forward, no biases. Row vectors times
# matrices, as in lesson 4, and the mask of lesson 6:
#
# $$x \leftarrow x + \operatorname{softmax}\!\big(\text{mask}(x W_q (x W_k)^\top)\big)\, x W_v .$$
#
# All six matrices are `(d_stream, d_stream)` with `d_stream = vocab + max_len + 2 * vocab`. The
# **last** `vocab` features are read as the logits of the next word.
#
# By hand, for a vocabulary of 2 words (a and b) and 3 places, so `d_stream` = 2 + 3 + 4 = 9. The
# text "b a":
#
# | place | word | token | position | free |
# |---|---|---|---|---|
# | 0 | b | 0 1 | 1 0 0 | 0 0 0 0 |
# | 1 | a | 1 0 | 0 1 0 | 0 0 0 0 |
#
# If $W_q$ has a 1 in row 3 (place 1), column 2, and $W_k$ a 1 in row 2 (place 0), column 2, then the
# score of query 1 for key 0 is 1, and all other scores are 0. With 20 in place of one of the ones the
# score is 20, and the softmax puts $e^{20}/(e^{20}+1)$, nearly everything, on place 0. If $W_v$ has a 1
# in row 1 (token b), column 6, then place 1 has after the layer a 1 in feature 6, the second free
# one: "before me stood b".


# %% locked="given_run_designed"
def run_designed(weights, tokens, vocab_size, max_len):
    """The given model: tokens (..., n) to logits (..., n, vocab_size) and its two maps."""
    words = F.one_hot(tokens, vocab_size)  # (..., n, vocab_size)
    places = F.one_hot(torch.arange(tokens.shape[-1]), max_len).expand(*words.shape[:-1], max_len)
    x = torch.cat([words, places, 0 * words, 0 * words], dim=-1).double()  # (..., n, d_stream)
    hidden = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu(1)  # the future
    maps = []
    for layer in (1, 2):
        W_q, W_k, W_v = (weights[f"W_{kind}{layer}"].detach().double() for kind in "qkv")
        scores = (x @ W_q) @ (x @ W_k).transpose(-1, -2)  # no scale
        maps.append(scores.masked_fill(hidden, -math.inf).softmax(dim=-1))
        x = x + maps[-1] @ (x @ W_v)
    return x[..., -vocab_size:], maps


# %% [markdown]
# ### Exercise 1: `design_induction`
#
# Difficulty: ●●●●○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 40-50 minutes on it.
#
# Write the six matrices down. Nothing is trained.
#
# - Returns a dictionary of six torch tensors, `W_q1, W_k1, W_v1, W_q2, W_k2, W_v2`, each
#   `(d_stream, d_stream)` with `d_stream = 3 * vocab_size + max_len`.
# - Texts repeat a piece of 1 to `vocab_size` words, all different, and have at most `max_len` words.
#   From the second appearance of a word on, the largest logit at its place (the single largest, no tie)
#   is that of the word that followed its first appearance. Also in a third round, also for the **first**
#   word of the text, and also in long texts.
# - What is predicted in the first round is free. So are the numbers: any weights that work are right.
# - Only what the given model does with them is graded. Checked when graded: many lengths, pieces and
#   vocabularies.


# %% answer="design_induction"
def design_induction(vocab_size, max_len):
    """Weights of the given two-layer model that continues a repeated text.

    Args:
        vocab_size: number of words.
        max_len: largest number of places.

    Returns:
        Dictionary of torch tensors W_q1, W_k1, W_v1, W_q2, W_k2, W_v2, each (d_stream, d_stream).
    """
    ### BEGIN SOLUTION
    d_stream = 3 * vocab_size + max_len
    names = ("W_q1", "W_k1", "W_v1", "W_q2", "W_k2", "W_v2")
    weights = {name: torch.zeros(d_stream, d_stream, dtype=torch.float64) for name in names}
    word = torch.arange(vocab_size)
    place = vocab_size + torch.arange(max_len)
    before = vocab_size + max_len + word  # free features: which word stood before
    logit = before + vocab_size  # free features: the answer
    sharp = 100.0
    # Layer 1: place t asks for place t - 1, and fetches its word.
    weights["W_q1"][place[1:], place[:-1]] = sharp
    weights["W_k1"][place, place] = 1.0
    weights["W_v1"][word, before] = 1.0
    # Layer 2: asks for the own word among "before", and fetches the word that stands there.
    weights["W_q2"][word, word] = sharp
    weights["W_k2"][before, word] = 1.0
    weights["W_k2"][place[0], word] = -1.0  # place 0 saw only itself: nobody stood before it
    weights["W_v2"][word, logit] = 1.0
    return weights
    ### END SOLUTION


# %% check="design_induction" points=5
def predictions(weights, tokens, vocab_size, max_len):
    """The word with the single largest logit at each place; -1 where there is no single one."""
    words = F.one_hot(tokens, vocab_size)
    places = F.one_hot(torch.arange(tokens.shape[-1]), max_len).expand(*words.shape[:-1], max_len)
    x = torch.cat([words, places, 0 * words, 0 * words], dim=-1).double()
    hidden = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu(1)
    for layer in (1, 2):
        W_q, W_k, W_v = (weights[f"W_{kind}{layer}"].detach().double() for kind in "qkv")
        scores = (x @ W_q) @ (x @ W_k).transpose(-1, -2)
        x = x + scores.masked_fill(hidden, -math.inf).softmax(dim=-1) @ (x @ W_v)
    logits = x[..., -vocab_size:]
    best, second = logits.topk(2, dim=-1).values.unbind(-1)
    return torch.where(best > second + 1e-6, logits.argmax(-1), -1)


sizes = [torch.Size([27, 27])] * 6
names = ["W_k1", "W_k2", "W_q1", "W_q2", "W_v1", "W_v2"]
rng = check_rng()
with check("six matrices", points=0.5):
    weights = design_induction(5, 12)
    message = "Six torch tensors by name, each (d_stream, d_stream): 3 * 5 + 12 = 27."
    assert_equal(sorted(weights), names, message, name="the names")
    assert_equal([weights[name].shape for name in names], sizes, message, name="the shapes")
    nonzero = [bool(weights[name].any()) for name in names]
    assert_equal(nonzero, [True] * 6, "No matrix is all zeros.", name="something in it")
with check("the second round", points=2):
    weights = design_induction(5, 12)
    tokens = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3, 4])  # the black cat is sleeping, twice
    found = predictions(weights, tokens, 5, 12)
    assert_equal(
        found[6:],
        torch.tensor([2, 3, 4, 0]),
        "Text 0 1 2 3 4, twice. After the second 1, 2, 3 and 4 come 2, 3, 4 and 0. If you predict the "
        "word itself: where does layer 2 look? If -1: no logit is the single largest.",
        name="the predictions at places 6 to 9",
    )
with check("the first word of the text", points=1):
    weights = design_induction(7, 12)
    tokens = torch.tensor([[3, 5, 1, 6, 3, 5, 1], [2, 0, 4, 1, 2, 0, 4]])
    assert_equal(
        predictions(weights, tokens, 7, 12)[:, 4],
        torch.tensor([5, 0]),
        "Texts 3 5 1 6 3 5 1 and 2 0 4 1 2 0 4. At place 4 the first word comes back, and then 5 and 0 "
        "follow. -1 is a tie. Nobody stands before place 0: what does layer 1 fetch there, and what does "
        "layer 2 make of it?",
        name="the predictions at place 4",
    )
with check("a third round", points=0.5):
    weights = design_induction(7, 12)
    tokens = torch.tensor([3, 5, 1, 6, 3, 5, 1, 6, 3, 5, 1, 6])
    assert_equal(
        predictions(weights, tokens, 7, 12)[9:],
        torch.tensor([1, 6, 3]),
        "Text 3 5 1 6, three times. Two earlier copies say the same.",
        name="the predictions at places 9 to 11",
    )
with check("a long text", points=1):
    weights = design_induction(30, 60)
    piece = torch.tensor(rng.permutation(30)[:28])
    found = predictions(weights, torch.cat([piece, piece]), 30, 60)
    assert_equal(
        found[29:],
        torch.cat([piece[2:], piece[:1]]),
        "28 different words, twice. The softmax spreads over up to 56 places: are your scores large "
        "enough?",
        name="the predictions at places 29 to 55",
    )
checks_passed("design_induction")


# %% check="design_induction_lengths" points=3
# Hidden checks of design_induction: many pieces, lengths and vocabularies, from the second word on.
### BEGIN HIDDEN TESTS
def predictions(weights, tokens, vocab_size, max_len):
    words = F.one_hot(tokens, vocab_size)
    places = F.one_hot(torch.arange(tokens.shape[-1]), max_len).expand(*words.shape[:-1], max_len)
    x = torch.cat([words, places, 0 * words, 0 * words], dim=-1).double()
    hidden = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu(1)
    for layer in (1, 2):
        W_q, W_k, W_v = (weights[f"W_{kind}{layer}"].detach().double() for kind in "qkv")
        scores = (x @ W_q) @ (x @ W_k).transpose(-1, -2)
        x = x + scores.masked_fill(hidden, -math.inf).softmax(dim=-1) @ (x @ W_v)
    logits = x[..., -vocab_size:]
    best, second = logits.topk(2, dim=-1).values.unbind(-1)
    return torch.where(best > second + 1e-6, logits.argmax(-1), -1)


rng = check_rng()
with check("the second round, short texts", points=1):
    for vocab_size, max_len, periods in ((6, 15, (2, 3, 5, 6)), (9, 23, (4, 7, 9)), (4, 9, (2, 4))):
        weights = design_induction(vocab_size, max_len)
        for period in periods:
            pieces = torch.tensor(np.stack([rng.permutation(vocab_size)[:period] for _ in range(3)]))
            texts = pieces[:, torch.arange(2 * period) % period]
            message = f"{period} words of {vocab_size}, twice: what followed the first time?"
            found = predictions(weights, texts, vocab_size, max_len)[:, period + 1 :]
            assert_equal(found, torch.roll(pieces, -1, -1)[:, 1:], message, name="the predictions")
with check("long texts, up to max_len", points=1):
    for vocab_size, max_len in ((40, 80), (25, 70)):
        weights = design_induction(vocab_size, max_len)
        for period in (vocab_size - 5, vocab_size):
            piece = torch.tensor(rng.permutation(vocab_size)[:period])
            text = piece[torch.arange(max_len) % period]
            message = f"{period} words of {vocab_size}, again and again, {max_len} places."
            found = predictions(weights, text, vocab_size, max_len)[period + 1 :]
            expected = piece[torch.arange(period + 2, max_len + 1) % period]
            assert_equal(found, expected, message, name="the predictions")
with check("many rounds", points=1):
    for vocab_size, max_len, periods in ((6, 25, (1, 2, 3, 4)), (3, 17, (2, 3))):
        weights = design_induction(vocab_size, max_len)
        for period in periods:
            piece = torch.tensor(rng.permutation(vocab_size)[:period])
            text = piece[torch.arange(max_len) % period]
            places = torch.arange(max_len)
            seen = (places > period) & (places % period > 0) if period > 1 else places > 1
            message = f"{period} words of {vocab_size}, again and again: also in late rounds."
            found = predictions(weights, text, vocab_size, max_len)[seen]
            assert_equal(found, piece[(places[seen] + 1) % period], message, name="the predictions")
checks_passed("design_induction")
### END HIDDEN TESTS


# %% check="design_induction_first" points=2
# Hidden checks of design_induction: the first word of the text, when it comes back.
### BEGIN HIDDEN TESTS
def predictions(weights, tokens, vocab_size, max_len):
    words = F.one_hot(tokens, vocab_size)
    places = F.one_hot(torch.arange(tokens.shape[-1]), max_len).expand(*words.shape[:-1], max_len)
    x = torch.cat([words, places, 0 * words, 0 * words], dim=-1).double()
    hidden = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu(1)
    for layer in (1, 2):
        W_q, W_k, W_v = (weights[f"W_{kind}{layer}"].detach().double() for kind in "qkv")
        scores = (x @ W_q) @ (x @ W_k).transpose(-1, -2)
        x = x + scores.masked_fill(hidden, -math.inf).softmax(dim=-1) @ (x @ W_v)
    logits = x[..., -vocab_size:]
    best, second = logits.topk(2, dim=-1).values.unbind(-1)
    return torch.where(best > second + 1e-6, logits.argmax(-1), -1)


rng = check_rng()
for vocab_size, max_len, periods in ((6, 15, (2, 3, 5, 6)), (9, 28, (4, 7, 9))):
    weights = design_induction(vocab_size, max_len)
    for period in periods:
        pieces = torch.tensor(np.stack([rng.permutation(vocab_size)[:period] for _ in range(4)]))
        texts = pieces[:, torch.arange(2 * period + 1) % period]
        message = (
            f"{period} words of {vocab_size}, twice and one more: the first word of the text comes back "
            "at the end of round one and of round two. Does place 0 pretend that its own word stood "
            "before it?"
        )
        found = predictions(weights, texts, vocab_size, max_len)[:, [period, 2 * period]]
        assert_equal(found, pieces[:, [1, 1]], message, name="the predictions")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Give the free features names: the first `vocab` for "the word before me", the last are the logits.
# Layer 1: a query made of the place $t$ that meets the key of place $t - 1$; the value is the token,
# written into the first free features. Layer 2: the query is the token; the key is "the word before
# me"; the value is the token, written into the logits. `W[rows, columns] = 1.0` with two index tensors
# sets one entry a pair. Then look at `maps` of `run_designed`, and at place 0: it can attend only to
# itself, so it claims that its own word stood before it. A key can be made smaller by its place.
#
# </details>

# %% [markdown]
# ### Exercise 2: `induction_score`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10-15 minutes on it.
#
# How much does a head behave like an induction head? On a text whose piece of `period` words repeats, an
# induction head at place $t$ looks at place $t - period + 1$: the word after the earlier copy.
#
# - `weights (..., n, n)`, NumPy or torch, rows are queries. `period`: an integer.
# - Returns `(...)`, of the same kind: the mean, over all `t >= period`, of the weight from place `t` to
#   place `t - period + 1`. One number for each map.
# - `period` outside `1..n-1`: a `ValueError`.
# - Checked when graded: any number of leading axes, precision, `weights` unchanged.


# %% answer="induction_score"
def induction_score(weights, period):
    """Mean weight from place t to place t - period + 1, over all t >= period.

    Args:
        weights: (..., n, n), NumPy array or torch tensor; rows are queries.
        period: integer, 1 to n - 1.

    Returns:
        (...), of the same kind.

    Raises:
        ValueError: period is outside 1..n-1.
    """
    ### BEGIN SOLUTION
    n = weights.shape[-1]
    if not 1 <= period < n:
        raise ValueError(f"period = {period} is not in 1..{n - 1}")
    band = weights.diagonal(1 - period, -2, -1)  # entry j: from place period - 1 + j to place j
    return band[..., 1:].mean(-1)
    ### END SOLUTION


# %% check="induction_score" points=3
# Five places by hand; every entry of the map is another number.
by_hand = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.3, 0.7, 0.0, 0.0, 0.0],
        [0.1, 0.5, 0.4, 0.0, 0.0],
        [0.2, 0.35, 0.15, 0.3, 0.0],
        [0.05, 0.22, 0.6, 0.08, 0.05],
    ]
)
with check("by hand, period 3", points=1):
    assert_close(
        induction_score(by_hand, 3),
        0.475,
        "Period 3, five places: place 3 looks back at place 1 (weight 0.35), place 4 at place 2 (0.6). "
        "Their mean is 0.475. Place 2 does not count: t >= period.",
    )
with check("by hand, other periods", points=0.75):
    found = np.array([float(induction_score(by_hand, period)) for period in (1, 2, 4)])
    message = "Period 1: each place at itself, from place 1 on. Period 2: one back. Period 4: 4 to 1."
    assert_close(found, np.array([1.45 / 4, (0.5 + 0.15 + 0.08) / 3, 0.22]), message)
rng = check_rng()
maps = rng.dirichlet(np.ones(6), size=(2, 3, 6))
with check("leading axes", points=0.5):
    alone = np.array([[float(induction_score(one, 4)) for one in text] for text in maps])
    assert_equal(bool(np.ptp(alone) > 1e-3), True, "Other maps have other scores.")
    message = "Two texts, three heads: one number for each map, (2, 3), as for each map alone."
    assert_close(induction_score(maps, 4), alone, message)
with check("torch", points=0.5):
    one = induction_score(maps, 2)
    message = "As many scores as maps."
    assert_equal(np.shape(one), (2, 3), message, name="the shape")
    assert_equal(bool(np.ptp(np.asarray(one)) > 1e-3), True, "Other maps have other scores.")
    message = "A torch tensor gives a torch tensor, with the same numbers."
    assert_close(induction_score(torch.tensor(maps), 2), torch.tensor(one), message)
with check("periods that do not fit", points=0.25, side=True):
    for period in (0, 5, 7, -2):
        with assert_raises(ValueError, f"Five places, period {period}: a ValueError."):
            induction_score(by_hand, period)
checks_passed("induction_score")


# %% check="induction_score_sizes" points=2
# Hidden checks of induction_score: every period, any number of leading axes, both kinds.
### BEGIN HIDDEN TESTS
rng = check_rng()
cases = []
for lead in ((), (4,), (2, 1), (2, 3, 4)):
    for n in (2, 5, 8):
        cases.append(rng.dirichlet(np.ones(n), size=(*lead, n)))
with check("each map by itself", points=1):
    for maps in cases:
        n, lead = maps.shape[-1], maps.shape[:-2]
        for period in {1, 2, n - 2, n - 1} & set(range(1, n)):
            message = f"maps of shape {maps.shape}, period {period}."
            alone = np.empty(lead)
            for place in np.ndindex(*lead):
                alone[place] = float(induction_score(maps[place], period))
            assert_equal(bool(np.all(alone > 0)), True, "A score of positive weights is positive.")
            doubled = float(induction_score(2 * maps[(0,) * len(lead)], period))
            assert_close(doubled, 2 * float(alone[(0,) * len(lead)]), "Twice the weights: twice.")
            assert_close(induction_score(torch.tensor(maps), period), torch.tensor(alone), message)
            if lead:
                assert_close(induction_score(maps, period), alone, message)
with check("every period", points=1):
    maps = rng.dirichlet(np.ones(7), size=(3, 7))
    for period in range(1, 7):
        picked = [maps[:, t, t - period + 1] for t in range(period, 7)]
        message = f"Seven places, period {period}: from t to t - {period - 1}, for t = {period} to 6."
        assert_close(induction_score(maps, period), np.mean(picked, axis=0), message)
checks_passed("induction_score")
### END HIDDEN TESTS


# %% check="induction_score_contract" points=1
# Hidden checks of induction_score: argument unchanged, precision, errors.
### SIDE CONDITION: counts once another check of induction_score passes.
### BEGIN HIDDEN TESTS
@probe
def score_and_argument(weights, period):
    return induction_score(weights, period), weights


rng = check_rng()
maps = rng.dirichlet(np.ones(6), size=(2, 3, 6))
for given in (maps, torch.tensor(maps)):
    copied = given.copy() if isinstance(given, np.ndarray) else given.clone()
    score, after = score_and_argument(copied, 3)
    assert_equal(after, given, "weights were changed by the call.", name="weights")
    flat = np.mean([maps[..., t, t - 2] for t in range(3, 6)], axis=0)
    flat = flat if isinstance(given, np.ndarray) else torch.tensor(flat)
    message = "Float64 should stay float64, also on the way."
    assert_close(score, flat, message, rtol=1e-10, atol=1e-12, precise=True)
for kind in (np.ones, torch.ones):
    for n, period in ((4, 4), (4, 0), (6, -1), (3, 9), (1, 1)):
        with assert_raises(ValueError, f"{n} places, period {period}: a ValueError ({kind.__module__})."):
            induction_score(kind((2, n, n)), period)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# The places $(t, t - period + 1)$ lie on one diagonal. NumPy arrays and torch tensors both have a method
# for it, and both take offset and axes in this order, so give them by place and not by name. Which is
# the first entry of that diagonal, and does its $t$ count?
#
# </details>

# %% [markdown]
# ### Exercise 3: `logit_attribution`
#
# Difficulty: ●●●●○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 25-30 minutes on it.
#
# - `parts (num_parts, ..., d_model)`: torch, the parts of the stream; their sum over the first axis is
#   the stream. `norm`: a `LayerNorm` of lesson 8, with `gamma`, `beta` and `eps`. `output`: an
#   `nn.Linear`, with or without a bias.
# - Returns `(num_parts + 1, ..., vocab)`. Row `p`: what part `p` adds to the logits
#   `output(norm(parts.sum(0)))`, with the divisor of the **whole** stream. The last row: what belongs to
#   no part, from `beta` and the output's bias; it is the same at every position.
# - The rows sum to the logits.
# - Checked when graded: any number of axes in place of `...`, another `eps`, precision, `parts` unchanged.


# %% answer="logit_attribution"
def logit_attribution(parts, norm, output):
    """What each part of the residual stream adds to the logits.

    Args:
        parts: (num_parts, ..., d_model); they sum to the stream.
        norm: LayerNorm with gamma, beta, eps.
        output: nn.Linear(d_model, vocab).

    Returns:
        (num_parts + 1, ..., vocab); the last row belongs to no part. The rows sum to the logits.
    """
    ### BEGIN SOLUTION
    variance = parts.sum(0).var(dim=-1, correction=0, keepdim=True)  # (..., 1), of the whole
    centred = parts - parts.mean(dim=-1, keepdim=True)  # the mean of a sum is the sum of means
    normed = norm.gamma * centred / torch.sqrt(variance + norm.eps)
    by_part = F.linear(normed, output.weight)  # (num_parts, ..., vocab)
    rest = output(norm.beta).expand(1, *by_part.shape[1:])
    return torch.cat([by_part, rest])
    ### END SOLUTION


# %% check="logit_attribution" points=4
@probe
def attributed(parts, gamma, beta, eps, weight, bias):
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.gamma, self.beta, self.eps = nn.Parameter(gamma), nn.Parameter(beta), eps

        def forward(self, x):
            centred = x - x.mean(dim=-1, keepdim=True)
            variance = centred.square().mean(dim=-1, keepdim=True)
            return self.gamma * centred / torch.sqrt(variance + self.eps) + self.beta

    output = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    output.weight = nn.Parameter(weight)
    if bias is not None:
        output.bias = nn.Parameter(bias)
    found = logit_attribution(parts, Norm(), output)
    return found.detach() if isinstance(found, torch.Tensor) else found


parts = torch.tensor([[3.0, 1.0], [1.0, -3.0], [1.0, 3.0]])  # three parts; the stream is 5 1
hand = {"gamma": torch.tensor([3.0, 6.0]), "beta": torch.tensor([1.0, 2.0]), "eps": 5.0}
weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
with check("by hand: the parts", points=1.5):
    found = attributed(parts, **hand, weight=weight, bias=None)
    message = "Three parts and the rest: (4, 3)."
    assert_equal(list(np.shape(found)), [4, 3], message, name="the shape")
    assert_close(
        found[:3],
        torch.tensor([[1.0, -2.0, -1.0], [2.0, -4.0, -2.0], [-1.0, 2.0, 1.0]]),
        "The stream 5 1 has mean 3 and variance 4; with eps = 5 the divisor is 3. Part 3 1, without its "
        "own mean, is 1 -1; times gamma 3 6, divided by 3: 1 -2. W gives 1, -2 and their sum.",
        name="the rows of the parts",
    )
with check("by hand: what belongs to no part", points=1):
    bias = torch.tensor([10.0, 20.0, 30.0])
    found = attributed(parts, **hand, weight=weight, bias=bias)
    assert_close(
        found[-1],
        torch.tensor([11.0, 22.0, 33.0]),
        "beta 1 2 goes through W and gives 1, 2, 3; the output's bias 10, 20, 30 comes on top. Neither "
        "belongs to a part.",
        name="the last row",
    )
    found = attributed(parts, **hand, weight=weight, bias=None)
    message = "nn.Linear(..., bias=False) has no bias: the last row is W times beta."
    assert_close(found[-1], torch.tensor([1.0, 2.0, 3.0]), message, name="the last row")
rng = check_rng()
gamma, beta, bias = (torch.tensor(rng.normal(size=k)) for k in (6, 6, 7))
weight, parts = (torch.tensor(rng.normal(size=s)) for s in ((7, 6), (4, 2, 3, 6)))
with check("the rows sum to the logits", points=1):
    found = attributed(parts, gamma, beta, 0.5, weight, bias)
    stream = F.layer_norm(parts.sum(0), (6,), gamma, beta, 0.5)
    message = "The five rows should sum to output(norm(parts.sum(0)))."
    assert_equal(list(np.shape(found)), [5, 2, 3, 7], "(num_parts + 1, ..., vocab)", name="the shape")
    assert_close(found.sum(0), F.linear(stream, weight, bias), message, name="their sum")
with check("the same rest at every position", points=0.5):
    found = attributed(parts, gamma, beta, 0.5, weight, bias)
    message = "The last row depends on no part: the same at each position of each text."
    assert_close(found[-1], found[-1, :1, :1].expand(2, 3, 7).clone(), message, name="the last row")
    varied = found[:4].std(dim=0)
    assert_equal(bool(varied.min() > 1e-6), True, "Other parts add other numbers.", name="'differ'")
checks_passed("logit_attribution")


# %% check="logit_attribution_batches" points=2
# Hidden checks of logit_attribution: any number of axes; each part and each position by itself.
### BEGIN HIDDEN TESTS
@probe
def attributed(parts, gamma, beta, eps, weight, bias):
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.gamma, self.beta, self.eps = nn.Parameter(gamma), nn.Parameter(beta), eps

        def forward(self, x):
            centred = x - x.mean(dim=-1, keepdim=True)
            variance = centred.square().mean(dim=-1, keepdim=True)
            return self.gamma * centred / torch.sqrt(variance + self.eps) + self.beta

    output = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    output.weight = nn.Parameter(weight)
    if bias is not None:
        output.bias = nn.Parameter(bias)
    found = logit_attribution(parts, Norm(), output)
    return found.detach() if isinstance(found, torch.Tensor) else found


rng = check_rng()
gamma, beta, bias = (torch.tensor(rng.normal(size=k)) for k in (6, 6, 5))
weight = torch.tensor(rng.normal(size=(5, 6)))
for lead in ((), (4,), (1, 3), (2, 3, 4)):
    for num_parts in (1, 3, 6):
        parts = torch.tensor(rng.normal(size=(num_parts, *lead, 6)))
        found = attributed(parts, gamma, beta, 0.1, weight, bias)
        message = f"parts of shape {tuple(parts.shape)}: (num_parts + 1, ..., vocab)."
        assert_equal(list(np.shape(found)), [num_parts + 1, *lead, 5], message, name="the shape")
        message = f"parts of shape {tuple(parts.shape)}: each position comes out as if it were alone."
        alone = torch.empty(num_parts + 1, *lead, 5, dtype=torch.float64)
        for place in np.ndindex(*lead):
            where = (slice(None), *place)
            alone[where] = attributed(parts[where].clone(), gamma, beta, 0.1, weight, bias)
        assert_close(found, alone, message)
        assert_equal(bool(alone[0].std() > 1e-3), True, "The logits differ.", name="'differ'")
### END HIDDEN TESTS


# %% check="logit_attribution_formula" points=2
# Hidden checks of logit_attribution: eps large and small, streams far from 0, random numbers.
### BEGIN HIDDEN TESTS
@probe
def attributed(parts, gamma, beta, eps, weight, bias):
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.gamma, self.beta, self.eps = nn.Parameter(gamma), nn.Parameter(beta), eps

        def forward(self, x):
            centred = x - x.mean(dim=-1, keepdim=True)
            variance = centred.square().mean(dim=-1, keepdim=True)
            return self.gamma * centred / torch.sqrt(variance + self.eps) + self.beta

    output = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    output.weight = nn.Parameter(weight)
    if bias is not None:
        output.bias = nn.Parameter(bias)
    found = logit_attribution(parts, Norm(), output)
    return found.detach() if isinstance(found, torch.Tensor) else found


rng = check_rng()
gamma, beta, bias = (torch.tensor(rng.normal(size=k)) for k in (6, 6, 5))
weight = torch.tensor(rng.normal(size=(5, 6)))
with check("eps as it is given", points=1):
    for eps, size in ((2.0, 1.0), (1e-9, 1e-3)):
        parts = torch.tensor(size * rng.normal(size=(3, 4, 6)))
        found = attributed(parts, gamma, beta, eps, weight, None)
        stream = F.layer_norm(parts.sum(0), (6,), gamma, beta, eps)
        message = f"eps = {eps}, a stream of size {size}: the rows should sum to the logits."
        assert_equal(list(np.shape(found)), [4, 4, 5], message, name="the shape")
        assert_close(found.sum(0), F.linear(stream, weight), message, name="their sum")
with check("each part by its own numbers", points=1):
    parts = torch.tensor(rng.normal(size=(4, 3, 6)) + 5)
    found = attributed(parts, gamma, beta, 0.1, weight, bias)
    divisor = torch.sqrt(parts.sum(0).var(-1, correction=0, keepdim=True) + 0.1)
    normed = (parts - parts.mean(-1, keepdim=True)) / divisor * gamma
    message = "A part adds W (gamma * (part - its mean) / the divisor of the whole stream)."
    assert_equal(list(np.shape(found)), [5, 3, 5], message, name="the shape")
    assert_close(found[:4], normed @ weight.T, message, name="the rows of the parts")
checks_passed("logit_attribution")
### END HIDDEN TESTS


# %% check="logit_attribution_contract" points=1
# Hidden checks of logit_attribution: parts unchanged, float64 precise.
### SIDE CONDITION: counts once another check of logit_attribution passes.
### BEGIN HIDDEN TESTS
@probe
def attributed(parts, gamma, beta, weight, bias):
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.gamma, self.beta, self.eps = nn.Parameter(gamma), nn.Parameter(beta), 0.1

        def forward(self, x):
            centred = x - x.mean(dim=-1, keepdim=True)
            variance = centred.square().mean(dim=-1, keepdim=True)
            return self.gamma * centred / torch.sqrt(variance + self.eps) + self.beta

    output = nn.Linear(6, 5)
    output.weight, output.bias = nn.Parameter(weight), nn.Parameter(bias)
    return logit_attribution(parts, Norm(), output).detach(), parts


rng = check_rng()
gamma, beta, bias = (torch.tensor(rng.normal(size=k)) for k in (6, 6, 5))
weight, parts = (torch.tensor(rng.normal(size=s)) for s in ((5, 6), (3, 4, 6)))
found, after = attributed(parts.clone(), gamma, beta, weight, bias)
assert_equal(after, parts, "parts were changed by the call.", name="parts")
message = "Float64 should stay float64, also on the way."
order = [2, 0, 1]
moved, _ = attributed(parts[order].clone(), gamma, beta, weight, bias)
precise = {"rtol": 1e-10, "atol": 1e-12, "precise": True}
assert_close(moved[:3], found[:3].double()[order], message, **precise)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Layer norm is: take off the mean, divide, times gamma, plus beta. All but the dividing and the beta is
# linear, so it may be done part by part. The divisor is one number for each position, computed once from
# the sum. What does `output` do to a sum? And what would go wrong if you called `output(...)` on each
# part?
#
# </details>

# %% [markdown]
# ### Exercise 4: `ablate_head`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 10-15 minutes on it.
#
# - `outputs (batch, num_heads, n, d_head)`: torch, what all heads of a layer say. `head`: its number.
# - Returns a **new** tensor with that head's output replaced, and all others unchanged:
#   - `how = "zero"`: zeros;
#   - `how = "mean"`: its mean over batch and positions, one vector of `d_head` features everywhere;
#   - `how = "resample"`: what it says for the next text of the batch; the last text takes the first's.
# - A `head` outside `0..num_heads-1` (also a negative one), or another `how`: a `ValueError`.
# - Checked when graded: other sizes, precision.


# %% answer="ablate_head"
def ablate_head(outputs, head, how):
    """The heads' outputs with one of them replaced.

    Args:
        outputs: (batch, num_heads, n, d_head).
        head: 0 to num_heads - 1.
        how: "zero", "mean" (over batch and positions) or "resample" (the next text's).

    Returns:
        A new tensor of the same shape.

    Raises:
        ValueError: no such head, or another how.
    """
    ### BEGIN SOLUTION
    num_heads = outputs.shape[1]
    if not 0 <= head < num_heads:
        raise ValueError(f"head = {head} is not in 0..{num_heads - 1}")
    own = outputs[:, head]  # (batch, n, d_head)
    if how == "zero":
        other = torch.zeros_like(own)
    elif how == "mean":
        other = own.mean(dim=(0, 1), keepdim=True).expand_as(own)
    elif how == "resample":
        other = own.roll(-1, dims=0)
    else:
        raise ValueError(f"how = {how!r} is not 'zero', 'mean' or 'resample'")
    replaced = outputs.clone()
    replaced[:, head] = other
    return replaced
    ### END SOLUTION


# %% check="ablate_head" points=3
rng = check_rng()
outputs = torch.tensor(rng.normal(size=(3, 4, 5, 2)))
own = outputs[:, 1]
kept = [0, 2, 3]
with check("zero", points=0.5):
    found = ablate_head(outputs.clone(), 1, "zero")
    message = "Head 1 says zeros, and the other three what they said."
    assert_close(found, torch.stack([outputs[:, 0], 0 * own, *outputs[:, 2:].unbind(1)], 1), message)
with check("mean", points=0.75):
    found = ablate_head(outputs.clone(), 1, "mean")
    assert_equal(tuple(np.shape(found)), (3, 4, 5, 2), "The shape stays.", name="the shape")
    assert_close(
        found[:, 1],
        own.reshape(15, 2).mean(0).expand(3, 5, 2).clone(),
        "Three texts of five places: one mean vector of two features, over all 15, everywhere.",
        name="head 1",
    )
with check("resample", points=0.75):
    found = ablate_head(outputs.clone(), 1, "resample")
    assert_equal(tuple(np.shape(found)), (3, 4, 5, 2), "The shape stays.", name="the shape")
    message = "Text 0 gets what head 1 says of text 1, text 1 that of text 2, text 2 that of text 0."
    assert_close(found[:, 1], own[[1, 2, 0]], message, name="head 1")
with check("the other heads", points=0.5):
    for how in ("mean", "resample"):
        found = ablate_head(outputs.clone(), 1, how)
        message = f"{how}: heads 0, 2 and 3 stay as they are, in their texts."
        assert_close(found[:, kept], outputs[:, kept], message, name="heads 0, 2, 3")
        assert_equal(bool((found[:, 1] - own).abs().max() > 1e-3), True, "Head 1 is replaced.")


@probe
def argument_after(outputs, how):
    ablate_head(outputs, 1, how)
    return outputs


with check("a new tensor", points=0.25, side=True):
    for how in ("zero", "mean", "resample"):
        message = f"{how}: outputs itself was changed by the call. Return a new tensor."
        assert_equal(argument_after(outputs.clone(), how), outputs, message, name="outputs")
with check("no such head, no such way", points=0.25, side=True):
    for head, how in ((4, "zero"), (-1, "mean"), (1, "median")):
        with assert_raises(ValueError, f"Four heads, head {head}, {how!r}: a ValueError."):
            ablate_head(outputs.clone(), head, how)
checks_passed("ablate_head")


# %% check="ablate_head_sizes" points=2
# Hidden checks of ablate_head: other sizes, every head.
### BEGIN HIDDEN TESTS
rng = check_rng()
with check("zero and resample", points=1):
    for shape in ((2, 3, 4, 5), (1, 2, 3, 4), (5, 1, 2, 3), (4, 4, 4, 4), (3, 2, 1, 1)):
        outputs = torch.tensor(rng.normal(size=shape))
        for head in range(shape[1]):
            for how in ("zero", "resample"):
                own = outputs[:, head]
                other = 0 * own if how == "zero" else torch.cat([own[1:], own[:1]])
                expected = outputs.unbind(1)
                expected = torch.stack([*expected[:head], other, *expected[head + 1 :]], 1)
                message = f"outputs of shape {shape}, head {head}, {how}."
                assert_close(ablate_head(outputs.clone(), head, how), expected, message)
with check("mean", points=1):
    for shape in ((2, 3, 4, 5), (1, 2, 3, 4), (5, 1, 2, 3), (4, 4, 4, 4)):
        outputs = torch.tensor(rng.normal(size=shape) + np.arange(shape[-1]))
        for head in range(shape[1]):
            other = outputs[:, head].flatten(0, 1).mean(0).expand(shape[0], *shape[2:])
            expected = outputs.unbind(1)
            expected = torch.stack([*expected[:head], other, *expected[head + 1 :]], 1)
            message = f"outputs of shape {shape}, head {head}: the mean over batch and positions."
            assert_close(ablate_head(outputs.clone(), head, "mean"), expected, message)
checks_passed("ablate_head")
### END HIDDEN TESTS


# %% check="ablate_head_contract" points=1
# Hidden checks of ablate_head: argument unchanged, precision kept, errors.
### SIDE CONDITION: counts once another check of ablate_head passes.
### BEGIN HIDDEN TESTS
@probe
def result_and_argument(outputs, head, how):
    return ablate_head(outputs, head, how), outputs


rng = check_rng()
outputs = torch.tensor(rng.normal(size=(3, 2, 4, 5)))
for how in ("zero", "mean", "resample"):
    found, after = result_and_argument(outputs.clone(), 0, how)
    assert_equal(after, outputs, f"{how}: outputs was changed by the call.", name="outputs")
    message = f"{how}: float64 stays float64, and head 1 stays as it is, to the last digit."
    assert_equal(found[:, 1], outputs[:, 1], message, name="head 1")
for head, how in ((2, "zero"), (-1, "zero"), (-2, "mean"), (7, "resample"), (0, "Zero"), (0, "max"), (1, "")):
    with assert_raises(ValueError, f"Two heads, head {head}, how {how!r}: a ValueError."):
        ablate_head(outputs.clone(), head, how)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Copy, then write into the copy. Over which two axes of the head's own `(batch, n, d_head)` is the mean?
# For `"resample"` look for a torch function that turns a tensor around in a circle, and try on which side
# it puts the first one.
#
# </details>

# %% [markdown]
# ### Find and mend the silent bug
#
# A friend picks the head with the largest score, and another head at random as its control. The code
# runs, its figures look fine, and both of its results are wrong: sometimes the one, sometimes the other.


# %% locked="given_friends_control"
def friends_control(scores, rng):
    """The best head and a random other one, each as (layer, head); scores (num_layers, num_heads)."""
    num_layers, num_heads = scores.shape
    best = int(scores.argmax())
    other = int(rng.integers(scores.size))
    return divmod(best, num_layers), divmod(other, num_layers)


# %% [markdown]
# ### Exercise 6: `mended_control`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# Copy `friends_control` and mend it. There are two bugs.
#
# - `scores (num_layers, num_heads)`: NumPy; no two are equal. `rng`: a NumPy generator.
# - Returns two pairs `(layer, head)` of Python integers: the head with the largest score, and a random
#   control: any head of the table but that one, each with the same chance.
# - All randomness comes from `rng` (checked when graded).


# %% answer="mended_control"
def mended_control(scores, rng):
    """friends_control, mended: the best head, and a random control that is another head.

    Args:
        scores: (num_layers, num_heads), NumPy, no two equal.
        rng: np.random.Generator.

    Returns:
        Two pairs (layer, head) of Python integers.
    """
    ### BEGIN SOLUTION
    num_layers, num_heads = scores.shape
    best = int(scores.argmax())
    other = int(rng.integers(scores.size - 1))
    other += other >= best  # the best one is left out
    return divmod(best, num_heads), divmod(other, num_heads)
    ### END SOLUTION


# %% check="mended_control" points=2
@probe
def drawn(scores, seed, times):
    rng = np.random.default_rng(seed)
    pairs = [mended_control(scores, rng) for _ in range(times)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


rng = check_rng()
seed = int(rng.integers(2**31))
with check("the best head", points=0.75):
    for shape in ((2, 4), (3, 2)):
        scores = rng.permutation(shape[0] * shape[1]).reshape(shape) / 10
        found, _ = drawn(scores, seed, 1)
        layer, head = np.argwhere(scores == scores.max())[0].tolist()
        message = f"scores {scores.tolist()}: the largest stands in layer {layer}, head {head}."
        assert_equal(found[0], (layer, head), message, name="the best head")
scores = rng.permutation(6).reshape(2, 3) / 10
layer, head = np.argwhere(scores == scores.max())[0].tolist()
others = sorted({(i, j) for i in range(2) for j in range(3)} - {(layer, head)})
with check("the control is another head, and any other", points=1.25):
    _, controls = drawn(scores, seed, 200)
    message = (
        f"scores {scores.tolist()}, 200 draws: the control should be each of the five heads that are not "
        "the best one, and no other."
    )
    assert_equal(sorted(set(controls)), others, message, name="the heads that were drawn")
checks_passed("mended_control")


# %% check="mended_control_chances" points=1
# Hidden checks of mended_control: each other head with the same chance, from the given generator.
### BEGIN HIDDEN TESTS
@probe
def drawn(scores, seed, times):
    rng = np.random.default_rng(seed)
    return [mended_control(scores, rng)[1] for _ in range(times)]


rng = check_rng()
seed = int(rng.integers(2**31))
for shape in ((2, 3), (3, 2), (1, 4)):
    scores = rng.permutation(shape[0] * shape[1]).reshape(shape) / 10
    controls = drawn(scores, seed, 1200)
    message = f"scores {scores.tolist()}, 1200 draws, the best one left out."
    counts = {}
    for control in controls:
        counts[control] = counts.get(control, 0) + 1
    best = tuple(np.argwhere(scores == scores.max())[0].tolist())
    others = sorted({(i, j) for i in range(shape[0]) for j in range(shape[1])} - {best})
    assert_equal(sorted(counts), others, message, name="the heads that were drawn")
    fair = 1200 / len(others)
    even = all(0.7 * fair < count < 1.35 * fair for count in counts.values())
    assert_equal(even, True, f"{message} Each should come about {fair:.0f} times: {counts}.")
    assert_equal(drawn(scores, seed, 50), controls[:50], "The same generator, the same draws.")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Number the heads of a table of 2 layers with 4 heads from 0 to 7, row after row. In which layer is
# number 5? And can a control be the thing that it controls?
#
# </details>

# %% [markdown]
# ### Exercise 5: `patched_logits`
#
# Difficulty: ●●●●○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 25-30 minutes on it.
#
# - `model`: any module; `tokens (..., n)`. `module`: one of the model's submodules, the object itself, that
#   the model calls once. It returns a tensor `(..., n, d)`, or a tuple whose first entry is one.
# - `replacement`: of the shape of that output. `position`: an integer, at least 0.
# - Returns `model(tokens)`, computed with the module's output at `position` (axis -2) replaced by
#   `replacement[..., position, :]`. All other positions, and the tuple's other entries, stay.
# - Afterwards nothing is left on the model: it computes what it computed before, without a hook. Checked
#   when graded: also when it raises.
# - Checked when graded: what the module returned is not written into (a module may return its own
#   input, which the model uses elsewhere); `replacement` is unchanged; any number of leading axes.


# %% answer="patched_logits"
def patched_logits(model, tokens, module, replacement, position):
    """model(tokens) with one module's output replaced at one position.

    Args:
        model: a module from tokens (..., n) to anything.
        tokens: (..., n).
        module: a submodule of model that is called once; returns (..., n, d), or a tuple of it first.
        replacement: (..., n, d); only its row `position` is used.
        position: at least 0.

    Returns:
        What model(tokens) returns then.
    """

    ### BEGIN SOLUTION
    def replace(_, inputs, output):
        first = output[0] if isinstance(output, tuple) else output
        patched = first.clone()
        patched[..., position, :] = replacement[..., position, :]
        return (patched, *output[1:]) if isinstance(output, tuple) else patched

    hook = module.register_forward_hook(replace)
    try:
        return model(tokens)
    finally:
        hook.remove()
    ### END SOLUTION


# %% check="patched_logits" points=4
@probe
def patched(numbers, tokens, name, replacement, position):
    """Patched logits; the logits afterwards; how many hooks are left."""

    class Mix(nn.Module):
        def forward(self, x):
            mixed = torch.tanh(x.cumsum(-2) @ numbers["A"])  # each place sees those before it
            return mixed, mixed.mean(-1, keepdim=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding.from_pretrained(numbers["E"])
            self.mix = Mix()
            self.read = nn.Linear(6, 4, bias=False)
            self.read.weight = nn.Parameter(numbers["C"])

        def forward(self, tokens):
            x = self.embed(tokens)
            mixed, level = self.mix(x)
            return self.read(x + mixed) + level

    model = Model()
    with torch.no_grad():
        found = patched_logits(model, tokens, getattr(model, name), replacement, position)
        after = model(tokens)
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    return found, after, hooks


def by_formula(numbers, tokens, name, replacement, position):
    """The same, written out."""

    def place(x, which):
        if which == name:
            x = x.clone()
            x[..., position, :] = replacement[..., position, :]
        return x

    x = place(numbers["E"][tokens], "embed")
    mixed = torch.tanh(x.cumsum(-2) @ numbers["A"])
    level = mixed.mean(-1, keepdim=True)
    return place((x + place(mixed, "mix")) @ numbers["C"].T, "read") + level


rng = check_rng()
numbers = {"E": (9, 6), "A": (6, 6), "C": (4, 6)}
numbers = {key: torch.tensor(rng.normal(size=shape)) for key, shape in numbers.items()}
tokens = torch.tensor(rng.integers(0, 9, size=(3, 5)))
plain = by_formula(numbers, tokens, "nothing", None, 0)
new, logits = (torch.tensor(rng.normal(size=(3, 5, width))) for width in (6, 4))
with check("a module that returns a tensor", points=1.5):
    for position in (0, 2, 4):
        found, _, _ = patched(numbers, tokens, "embed", new, position)
        message = (
            f"The embedding's output is replaced at position {position} (axis -2) of each text; later "
            "places see the new one."
        )
        assert_close(found, by_formula(numbers, tokens, "embed", new, position), message)
with check("a module that returns a tuple", points=1):
    for position in (1, 4):
        found, _, _ = patched(numbers, tokens, "mix", new, position)
        message = f"mix returns a tuple: its first entry is replaced at position {position}, the rest stays."
        assert_close(found, by_formula(numbers, tokens, "mix", new, position), message)
with check("the other positions", points=0.5):
    found, _, _ = patched(numbers, tokens, "read", logits, 3)
    others = [0, 1, 2, 4]
    message = "The last module is replaced at position 3: the other positions keep their logits."
    assert_equal(tuple(np.shape(found)), (3, 5, 4), message, name="the shape")
    assert_close(found[:, others], plain[:, others], message, name="positions 0, 1, 2, 4")
    assert_equal(bool((found[:, 3] - plain[:, 3]).abs().max() > 1e-3), True, "Position 3 changes.")
with check("nothing is left behind", points=1):
    for name in ("embed", "mix"):
        found, after, hooks = patched(numbers, tokens, name, new, 2)
        message = "Position 2 should change."
        assert_equal(bool((found - plain)[:, 2].abs().max() > 1e-3), True, message, name="'changes'")
        assert_close(after, plain, "Afterwards the model computes what it computed before.")
        assert_equal(hooks, 0, "No hook is left on any module.", name="hooks left")
checks_passed("patched_logits")


# %% check="patched_logits_shapes" points=2
# Hidden checks of patched_logits: no, one and two leading axes; every position; another way to return.
### BEGIN HIDDEN TESTS
@probe
def patched(numbers, tokens, name, replacement, position):
    class Mix(nn.Module):
        def forward(self, x):
            mixed = torch.tanh(x.cumsum(-2) @ numbers["A"])
            return mixed, mixed.mean(-1, keepdim=True), None

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = Mix()

        def forward(self, x):
            mixed, level, _ = self.mix(x)
            return x + mixed + level

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding.from_pretrained(numbers["E"])
            self.block = Block()

        def forward(self, tokens):
            return self.block(self.embed(tokens)) @ numbers["C"].T

    model = Model()
    module = model.block.mix if name == "mix" else getattr(model, name)
    with torch.no_grad():
        return patched_logits(model, tokens, module, replacement, position)


def by_formula(numbers, tokens, name, replacement, position):
    def place(x, which):
        if which == name:
            x = x.clone()
            x[..., position, :] = replacement[..., position, :]
        return x

    x = place(numbers["E"][tokens], "embed")
    mixed = torch.tanh(x.cumsum(-2) @ numbers["A"])
    level = mixed.mean(-1, keepdim=True)
    return place(x + place(mixed, "mix") + level, "block") @ numbers["C"].T


rng = check_rng()
numbers = {"E": (9, 6), "A": (6, 6), "C": (4, 6)}
numbers = {key: torch.tensor(rng.normal(size=shape)) for key, shape in numbers.items()}
for lead in ((), (3,), (2, 3), (1, 1)):
    tokens = torch.tensor(rng.integers(0, 9, size=(*lead, 5)))
    new = torch.tensor(rng.normal(size=(*lead, 5, 6)))
    for name in ("embed", "mix", "block"):
        for position in (0, 3, 4):
            found = patched(numbers, tokens, name, new, position)
            message = f"tokens of shape {tuple(tokens.shape)}, module {name}, position {position}."
            assert_close(found, by_formula(numbers, tokens, name, new, position), message)
### END HIDDEN TESTS


# %% check="patched_logits_in_place" points=1
# Hidden checks of patched_logits: what the module returned is not written into.
### BEGIN HIDDEN TESTS
@probe
def patched(numbers, tokens, replacement, position):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.point = nn.Identity()  # gives its input back, and the model uses that input again

        def forward(self, tokens):
            x = numbers["E"][tokens]
            return 3 * x - torch.tanh(self.point(x).cumsum(-2) @ numbers["A"])

    model = Model()
    with torch.no_grad():
        return patched_logits(model, tokens, model.point, replacement, position)


rng = check_rng()
numbers = {key: torch.tensor(rng.normal(size=shape)) for key, shape in (("E", (9, 6)), ("A", (6, 6)))}
tokens = torch.tensor(rng.integers(0, 9, size=(3, 5)))
new = torch.tensor(rng.normal(size=(3, 5, 6)))
for position in (1, 4):
    x = numbers["E"][tokens]
    point = x.clone()
    point[:, position] = new[:, position]
    assert_close(
        patched(numbers, tokens, new, position),
        3 * x - torch.tanh(point.cumsum(-2) @ numbers["A"]),
        "The module returns its own input, and the model uses that input elsewhere too. Only the "
        "module's result should be another one: write into a copy.",
    )
### END HIDDEN TESTS


# %% check="patched_logits_after" points=1
# Hidden checks of patched_logits: nothing stays, also when the model raises; replacement unchanged.
### SIDE CONDITION: counts once another check of patched_logits passes.
### BEGIN HIDDEN TESTS
@probe
def left_behind(E, A, tokens, replacement, fails):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding.from_pretrained(E)
            self.fails = fails

        def forward(self, tokens):
            x = self.embed(tokens)
            if self.fails:
                raise RuntimeError("the model fails after its module")
            return x @ A

    model = Model()
    own = []
    model.embed.register_forward_hook(lambda *_: own.append(1))  # another's hook stays
    before = [(sorted(vars(m)), len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    raised = False
    try:
        patched_logits(model, tokens, model.embed, replacement, 1)
    except RuntimeError:
        raised = True
    after = [(sorted(vars(m)), len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    model.fails = False
    return raised, before == after, model(tokens).detach(), replacement


rng = check_rng()
E, A = (torch.tensor(rng.normal(size=s)) for s in ((9, 6), (6, 6)))
tokens = torch.tensor(rng.integers(0, 9, size=(3, 5)))
new = torch.tensor(rng.normal(size=(3, 5, 6)))
for fails in (False, True):
    raised, same, logits, after = left_behind(E, A, tokens, new.clone(), fails)
    message = "An error of the model should come through."
    assert_equal(raised, fails, message, name="an error came")
    where = "the model raised an error in between: " if fails else ""
    assert_close(logits, E[tokens] @ A, f"{where}Afterwards the model computes what it did before.")
    assert_equal(same, True, f"{where}hooks and attributes of all modules are as before.")
    assert_equal(after, new, "replacement was changed by the call.", name="replacement")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `module.register_forward_hook(f)` has torch call `f(module, inputs, output)` after the module's forward;
# if `f` returns something, it takes the place of the output. What the call returns has a method
# `remove()`. Python has a statement for what has to happen also when an error comes.
#
# </details>

