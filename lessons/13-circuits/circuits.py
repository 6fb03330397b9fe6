# %% [markdown]
# ## What you will be able to do
#
# - **Design** a two-layer attention model on paper, weight by weight, that does what trained models
#   learned to do.
# - **Find** a head by a score, and **say** what the score does not show.
# - **Split** a logit into what each head adds to it, exactly.
# - **Intervene**: ablate a head in three ways, patch one text's activations into another's run, and
#   put a control beside each.
# - **Argue** both sides of "attention is not explanation", each with an experiment.

# %% tags=["setup"]
import math
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.attention_view import attention_view
from lesson_kit.batteries import assert_each_alone, assert_refused, assert_unchanged
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
    LayerNorm,
    LearnedPositionalEmbedding,
    MultiHeadAttention,
    TransformerBlock,
    combine_heads,
    split_heads,
)
from lesson_kit.figures import draw_heatmap, show, text_table
from lesson_kit.guesses import reply
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `earlier` brings the tools of lessons 5 to 8: your own where they passed their checks, else the
# course's. The setup cell says which.
#
# Three questions from memory first. Say your answer aloud, then unfold.
#
# <details><summary>Lesson 12: you ablate a head by putting zeros in place of its output. What else
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
# two maps suggested how it works: a head of the first layer looks one word back, a head of the second at
# the word after the earlier copy. Lesson 12 counted what heads look at, and ablated some. Here
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
# Two layers follow, one head each: `W_q1, W_k1, W_v1` are the matrices of the first, `W_q2, W_k2, W_v2` of the
# second. No scale, no norm, no feed-forward, no biases. Row vectors times matrices, as in lesson 4, and the
# mask of lesson 6:
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
# If $W_q$ has a 1 in row 0 (token a), column 0, and $W_k$ a 1 in row 1 (token b), column 0, then each a
# asks for b's: the score of query 1 for key 0 is 1, and all other scores are 0. With 20 in place of one
# of the ones the score is 20, and the softmax puts $e^{20}/(e^{20}+1)$, nearly everything, on place 0. If
# $W_v$ has a 1 in row 2 (place 0), column 5, then place 1 has after the layer a 1 in feature 5, the first
# free one: "the b that I looked at stands at place 0". (So has place 0: it can look only at itself.)


# %% locked="given_run_designed"
def run_designed(tensors, tokens, vocab_size, max_len):
    """The given model: tokens (..., n) to logits (..., n, vocab_size) and its two maps."""
    words = F.one_hot(tokens, vocab_size)  # (..., n, vocab_size)
    places = F.one_hot(torch.arange(tokens.shape[-1]), max_len).expand(*words.shape[:-1], max_len)
    x = torch.cat([words, places, 0 * words, 0 * words], dim=-1).double()  # (..., n, d_stream)
    hidden = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu(1)  # the future
    maps = []
    for layer in (1, 2):
        W_q, W_k, W_v = (tensors[f"W_{kind}{layer}"].detach().double() for kind in "qkv")
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
    tensors = {name: torch.zeros(d_stream, d_stream, dtype=torch.float64) for name in names}
    word = torch.arange(vocab_size)
    place = vocab_size + torch.arange(max_len)
    before = vocab_size + max_len + word  # free features: which word stood before
    logit = before + vocab_size  # free features: the answer
    sharp = 100.0
    # First layer: place t asks for place t - 1, and fetches its word.
    tensors["W_q1"][place[1:], place[:-1]] = sharp
    tensors["W_k1"][place, place] = 1.0
    tensors["W_v1"][word, before] = 1.0
    # Second layer: asks for the own word among "before", and fetches the word that stands there.
    tensors["W_q2"][word, word] = sharp
    tensors["W_k2"][before, word] = 1.0
    tensors["W_k2"][place[0], word] = -1.0  # place 0 saw only itself: nobody stood before it
    tensors["W_v2"][word, logit] = 1.0
    return tensors
    ### END SOLUTION


# %% check="design_induction" points=5 card=["From the second appearance of a word on, the largest logit at its place (the single largest, no tie) is that of the word that followed its first appearance", "Also in a third round, also for the first word of the text, and also in long texts", "Returns a dictionary of six torch tensors"]
# The second round of a short text; the first word; a third round; a long text.
def predictions(tokens, vocab_size, max_len):
    """The word with the single largest logit at each place; -1 where there is no single one."""
    size, n = 3 * vocab_size + max_len, tokens.shape[-1]
    tensors = design_induction(vocab_size, max_len)
    names = [f"W_{kind}{layer}" for layer in (1, 2) for kind in "qkv"]
    message = f"A dictionary of six torch tensors, {', '.join(names)}, each ({size}, {size})."
    assert_equal(type(tensors).__name__, "dict", message, name="the kind of the result")
    shapes = {name: list(x.shape) for name, x in tensors.items() if isinstance(x, torch.Tensor)}
    assert_equal([shapes.get(name) for name in names], [[size, size]] * 6, message, name="the shapes")
    x = torch.zeros(*tokens.shape, size).double()
    x[..., :vocab_size], x[..., vocab_size : vocab_size + n] = F.one_hot(tokens, vocab_size), torch.eye(n)
    for layer in (1, 2):
        W_q, W_k, W_v = (tensors[f"W_{kind}{layer}"].detach().double() for kind in "qkv")
        scores = ((x @ W_q) @ (x @ W_k).mT).masked_fill(torch.ones(n, n).triu(1) > 0, -math.inf)
        x = x + scores.softmax(-1) @ (x @ W_v)
    best, second = x[..., -vocab_size:].topk(2).values.unbind(-1)
    return torch.where(best > second + 1e-6, x[..., -vocab_size:].argmax(-1), -1)


with check("the second round", points=2.5):
    message = "Text 0 1 2 3 4, twice: after the second 1, 2, 3 and 4 come 2, 3, 4 and 0; -1 is a tie. Where does the second layer look?"
    found = predictions(torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3, 4]), 5, 12)[6:]
    assert_equal(found, torch.tensor([2, 3, 4, 0]), message, name="the predictions at places 6 to 9")
with check("the first word of the text", points=1):
    message = "At place 4 the first word comes back, then 5 and 0 follow. What does the first layer fetch at place 0?"
    found = predictions(torch.tensor([[3, 5, 1, 6, 3, 5, 1], [2, 0, 4, 1, 2, 0, 4]]), 7, 12)[:, 4]
    assert_equal(found, torch.tensor([5, 0]), message, name="the predictions at place 4")
with check("a third round", points=0.5):
    message = "Text 3 5 1 6, three times: 1, 6, 3 follow 5, 1, 6. Check first: what if both copies get weight?"
    found = predictions(torch.tensor([3, 5, 1, 6] * 3), 7, 12)[9:]
    assert_equal(found, torch.tensor([1, 6, 3]), message, name="the predictions at places 9 to 11")
with check("a long text", points=1):
    message = "28 different words, twice: the word that followed. Check first: are your scores large enough?"
    piece = torch.tensor(check_rng().permutation(30)[:28])
    found = predictions(torch.cat([piece, piece]), 30, 60)[29:]
    assert_equal(found, torch.cat([piece[2:], piece[:1]]), message, name="the predictions at places 29 to 55")
checks_passed("design_induction")


# %% check="design_induction_lengths" points=5 card=["Texts repeat a piece of 1 to vocab_size words, all different, and have at most max_len words", "Also in a third round, also for the first word of the text, and also in long texts", "many lengths, pieces and vocabularies"]
# Hidden checks of design_induction: many pieces, lengths and vocabularies; the first word of the text, when it comes back.
### BEGIN HIDDEN TESTS
def predictions(tokens, vocab_size, max_len):
    """The word with the single largest logit at each place; -1 where there is no single one."""
    size, n = 3 * vocab_size + max_len, len(tokens)
    tensors = design_induction(vocab_size, max_len)
    message = f"A dictionary of six torch tensors, each ({size}, {size})."
    assert_equal(type(tensors).__name__, "dict", message, name="the kind of the result")
    shapes = [list(x.shape) for x in tensors.values() if isinstance(x, torch.Tensor)]
    assert_equal(shapes, [[size, size]] * 6, message, name="the shapes")
    x = torch.zeros(n, size).double()
    x[:, :vocab_size], x[:, vocab_size : vocab_size + n] = F.one_hot(tokens, vocab_size), torch.eye(n)
    for layer in (1, 2):
        W_q, W_k, W_v = (tensors[f"W_{kind}{layer}"].detach().double() for kind in "qkv")
        scores = ((x @ W_q) @ (x @ W_k).mT).masked_fill(torch.ones(n, n).triu(1) > 0, -math.inf)
        x = x + scores.softmax(-1) @ (x @ W_v)
    best, second = x[:, -vocab_size:].topk(2).values.unbind(-1)
    return torch.where(best > second + 1e-6, x[:, -vocab_size:].argmax(-1), -1)


def compare(*cases, first=False):
    """All places from the second round on, at the first word of the text or at the others."""
    for vocab_size, max_len, period in cases:
        piece, places = torch.tensor(rng.permutation(vocab_size)[:period]), torch.arange(max_len)
        seen = (places >= period) & ((places % period == 0) == first)
        message = (
            f"{period} words of {vocab_size}, again and again, max_len = {max_len}: {'where the first word' if first else 'where another word'} "
            "of the text comes back, the single largest logit is that of the word that followed."
        )
        found = predictions(piece[places % period], vocab_size, max_len)[seen]
        assert_equal(found, piece[(places[seen] + 1) % period], message, name="the predictions")


rng = check_rng()
with check("two rounds, short texts", points=1.5):
    compare((6, 10, 5), (6, 6, 3), (9, 18, 9), (4, 8, 4), (20, 7, 3))
with check("many rounds", points=0.5):
    compare((6, 25, 4), (3, 17, 2), (6, 25, 3))
with check("long texts, up to max_len", points=1):
    compare((40, 80, 40), (25, 70, 20))
with check("the first word, when it comes back", points=2):
    compare((6, 15, 5), (9, 28, 9), (6, 13, 2), (20, 7, 3), (40, 90, 35), (6, 9, 1), first=True)
checks_passed("design_induction")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Say it in words before you write a number. For each layer: what does a place ask for, by which of its own
# features? What does a place offer as its key? What does it hand over, and into which free features? (Give
# those names first.) Section 1 says what the heads of lesson 5 looked at. `W[rows, columns] = 1.0` with
# two index tensors sets one entry a pair. Then look at the `maps` of `run_designed`, and at place 0: it can
# attend only to itself. What does the first layer then write there, and how could the second be kept from
# believing it?
#
# </details>

# %% [markdown]
# Run your design on our sentence. No word of it was ever learned: the numbers 0 to 4 could be any words.

# %% tags=["demonstration"]
words = ["the", "black", "cat", "is", "sleeping"]
labels = words * 2
sentence = torch.tensor([0, 1, 2, 3, 4] * 2)
logits, designed_maps = run_designed(design_induction(5, 12), sentence, 5, 12)
said = [words[i] for i in logits.argmax(-1)[5:].tolist()]
print("said after each word of the second round:", " ".join(said))
assert said == ["black", "cat", "is", "sleeping", "the"]
figure, panels = plt.subplots(1, 2, figsize=(8.3, 4.5))
for axes, weights, title in zip(panels, designed_maps, ("first layer", "second layer"), strict=True):
    draw_heatmap(axes, weights, labels, labels)
    for text in axes.texts:
        text.set(visible=float(text.get_text()) >= 0.1, fontsize=7.5)
    axes.set_title(title)
    axes.tick_params(axis="x", rotation=90)
panels[1].set_ylabel("")
arrow = {"arrowstyle": "->", "color": "#b35806"}
for axes, says, of, place in ((panels[0], "one word back", (3.6, 3.9), (5.2, 1.2)),
                              (panels[1], "the word after\nthe first copy", (3.6, 6.6), (5.2, 1.2))):  # fmt: skip
    axes.annotate(says, of, place, color="#b35806", arrowprops=arrow)
figure.tight_layout()
show(
    figure,
    "Figure 1. The maps of a model that nobody trained. In the first round nothing matches, and the second layer "
    "spreads its weight.",
    "Two lower triangular heat maps for 'the black cat is sleeping', twice. First layer: weight 1.00 just "
    "below the diagonal. Second layer: in the second round weight 1.00 four places back; in the first round "
    "even rows.",
    "\n\n".join(
        f"{name} layer\n\n{text_table(weights, labels, labels)}"
        for name, weights in zip(("first", "second"), designed_maps, strict=True)
    ),
)

# %% [markdown]
# So the story is **enough**: two such heads do the task, for every length of the piece and every text whose
# piece holds no word twice. (Your own design may give other maps in the first round.) Two questions about it,
# with 28 different words, twice:
#
# **Predict, then run.** (a) How sharp must the maps be? The cell divides `W_q1` and `W_q2`, and with them all
# scores, by 1.2, again and again, until an answer goes wrong. How large is then, one step before, the
# largest weight of a row of the second layer, on average? (b) In a second text **one** word stands twice in the piece, as
# "the" in "the black cat and the dog". For such texts the card promises nothing. How many of the 28 places
# of the second round go wrong?

# %% tags=["demonstration", "guess"]
guess_blurred = 0.2  # write a weight from 0 to 1
guess_twice = 1  # write how many of the 28 places go wrong


# %% tags=["demonstration"]
def second_round(tensors, piece, vocab_size, max_len):
    """In the second round: places without the right word; the mean of the second layer's largest weights."""
    logits, maps = run_designed(tensors, torch.cat([piece, piece]), vocab_size, max_len)
    best, second = logits[len(piece) :].topk(2, dim=-1).values.unbind(-1)
    said = torch.where(best > second + 1e-6, logits[len(piece) :].argmax(-1), -1)
    largest = maps[1][len(piece) :].max(-1).values.mean().item()
    return int((said != piece.roll(-1)).sum()), largest


design = design_induction(30, 60)
piece = torch.tensor(np.random.default_rng(0).permutation(30)[:28])
blurred = []  # the largest weights, as long as all answers are right
for step in range(500):
    softer = {name: W / 1.2**step if "q" in name else W for name, W in design.items()}
    gone_wrong, largest = second_round(softer, piece, 30, 60)
    if gone_wrong:
        break
    blurred.append(largest)
print(f"divided up to {len(blurred) - 1} times: no place wrong; once more: {gone_wrong} of 28")
print(f"mean of the largest weights: at first {blurred[0]:.2f}, at last {blurred[-1]:.2f}")
ambiguous = piece.clone()
ambiguous[17] = piece[5]
two_wrong, _ = second_round(design, ambiguous, 30, 60)
print(f"one word twice in the piece: {two_wrong} of 28 places wrong")
assert 0 < len(blurred) < 500 and blurred[-1] < 0.5 and 0 < two_wrong < 4

# %% tags=["demonstration"]
why = "The right word's logit need not be large, only the largest."
reply("guess_blurred", guess_blurred, blurred[-1], why, within=0.05)

# %% tags=["demonstration"]
why = "Only after that word: two places follow it, and the search knows one word of the past."
reply("guess_twice", guess_twice, two_wrong, why)

# %% [markdown]
# The heads need not be sharp: the maps may be a blur, and every answer is right, since the logit of the
# right word only has to be the largest. Divide the scores once more, and answers go wrong. (The numbers
# are your design's; others may come to another blur.) And a model that cannot do a whole class of cases
# is right at 26 places of 28: an average over places hardly shows it. Look at the cases.
#
# ### Short answer 1: `answer_exchanged`
#
# You exchange the layers of your design: the matrices of the second come first, those of the first second.
# What does it do now?
#
# - a) The same: both layers only add to the stream, and sums have no order.
# - b) It predicts the word before, since the layers work backwards.
# - c) It raises an error, since the features of the second layer do not exist yet.
# - d) The search finds nothing: nobody has yet written which word stood before.

# %% answer="answer_exchanged"
### BEGIN SOLUTION
answer_exchanged = "d"
### END SOLUTION

# %% check="answer_exchanged" points=1
check_answer("answer_exchanged", answer_exchanged)

# %% tags=["demonstration"]
exchanged = {f"W_{kind}{layer}": design[f"W_{kind}{3 - layer}"] for kind in "qkv" for layer in (1, 2)}
gone_wrong, _ = second_round(exchanged, piece, 30, 60)
print(f"layers exchanged: {gone_wrong} of 28 places wrong")
assert gone_wrong > 20

# %% [markdown]
# ## 3. Found by a score
#
# Now the trained model. It is lesson 5's, trained for fewer steps, with two changes: four heads a layer in place of one, so that
# there is something to find; and a layer norm before the read-out, as language models have it. Which of
# the eight heads does what? (Layers and heads count from 0, as in lesson 12: L1H0 is the first head of the second
# layer.) Reading eight maps of 32 by 32 is no method. A **score** is: one number for what the designed head does.

# %% [markdown]
# ### Exercise 2: `induction_score`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10-15 minutes on it.
#
# How much does a head behave like an induction head (Olsson and others, 2022)? On a text whose piece of `period` words repeats, an
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


# %% check="induction_score" points=3 card=["the mean, over all t >= period, of the weight from place t to place t - period + 1", "One number for each map", "of the same kind", "period outside 1..n-1: a ValueError"]
# Five places by hand; every entry of the map is another number.
by_hand = np.zeros((5, 5))
by_hand[np.tril_indices(5)] = [1.0, 0.3, 0.7, 0.1, 0.5, 0.4, 0.2, 0.35, 0.15, 0.3, 0.05, 0.22, 0.6, 0.08, 0.05]
with check("by hand, period 3", points=1):
    message = "Place 3 looks back at place 1 (0.35), place 4 at place 2 (0.6): the mean is 0.475. Place 2 does not count."
    assert_close(induction_score(by_hand.copy(), 3), 0.475, message)
with check("by hand, other periods", points=0.75):
    for period, expected in ((2, 0.73 / 3), (1, 1.45 / 4), (4, 0.22)):
        message = f"Period {period}: the mean of the weights from t to t - {period - 1}, for t = {period} to 4."
        assert_close(induction_score(by_hand.copy(), period), expected, message)
maps = check_rng().dirichlet(np.ones(6), size=(2, 3, 6))
with check("leading axes: each map comes out as it does alone", points=0.5):
    assert_each_alone(induction_score, [(maps, 4)])
with check("torch: a tensor, as in NumPy", points=0.5):
    known = induction_score(by_hand.copy(), 2)
    positive = isinstance(known, (float, np.ndarray)) and bool(np.all(known > 0))
    assert_equal(positive, True, "The score of positive weights is a number above 0.", name="'above 0'")
    message = "A map in torch: the score that your function gives in NumPy, as a tensor."
    assert_close(induction_score(torch.tensor(by_hand), 2), torch.tensor(known), message, against="in NumPy")
with check("periods that do not fit", points=0.25, side=True):
    assert_refused(induction_score, {f"Five places, period {period}": (by_hand, period) for period in (0, 5, 7, -2)})
checks_passed("induction_score")


# %% check="induction_score_sizes" points=1 card="the mean, over all t >= period, of the weight from place t to place t - period + 1"
# Hidden checks of induction_score: other maps, every period.
### BEGIN HIDDEN TESTS
rng = check_rng()
some_zeros = np.tril(rng.dirichlet(np.ones(6), size=6), -1)
some_zeros[4, 2] = 0
for weights in (rng.dirichlet(np.ones(5), size=5), rng.dirichlet(np.ones(9), size=9), some_zeros, np.eye(2)):
    n = len(weights)
    for period in range(1, n):
        expected = sum(float(weights[t, t - period + 1]) for t in range(period, n)) / (n - period)
        message = f"{n} places, period {period}: the mean of all weights from t to t - {period - 1}, t >= {period}, zeros too."
        assert_close(induction_score(weights.copy(), period), expected, message)
### END HIDDEN TESTS


# %% check="induction_score_axes" points=1.5 card="any number of leading axes"
# Hidden checks of induction_score: leading axes in NumPy and torch, each map comes out as it does alone.
### BEGIN HIDDEN TESTS
def each_as_alone(kind, *leads):
    for lead in leads:
        assert_each_alone(induction_score, [(kind(rng.dirichlet(np.ones(5), size=(*lead, 5))), 2)])


rng = check_rng()
with check("one leading axis: each map comes out as it does alone", points=0.5):
    each_as_alone(np.array, (4,), (1,))
with check("two and three leading axes: each map comes out as it does alone", points=0.5):
    each_as_alone(np.array, (2, 3), (2, 1, 4))
with check("leading axes in torch: each map comes out as it does alone", points=0.5):
    each_as_alone(torch.tensor, (4,), (2, 3))
checks_passed("induction_score")
### END HIDDEN TESTS


# %% check="induction_score_contract" points=0.5 card=["precision, weights unchanged", "period outside 1..n-1: a ValueError"]
# Hidden checks of induction_score: precision, weights unchanged, errors in torch too.
### SIDE CONDITION: counts once another check of induction_score passes.
### BEGIN HIDDEN TESTS
@probe
def argument_after(weights):
    induction_score(weights, 3)
    return [weights]


rng = check_rng()
for maps in (rng.dirichlet(np.ones(6), size=(2, 6)), torch.tensor(rng.dirichlet(np.ones(6), size=(2, 6)))):
    assert_unchanged(argument_after, weights=maps)
    expected = sum(maps[:, t, t - 2] for t in range(3, 6)) / 3
    message = "float64: all digits. Check first: is something rounded to float32?"
    assert_close(induction_score(maps, 3), expected, message, precise=True)
assert_refused(induction_score, {f"torch, four places, period {period}": (torch.ones(4, 4), period) for period in (4, 0, -1)})
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
# Train the model from five seeds. Everything that follows is measured on all five.


# %% tags=["demonstration"]
LENGTH, NUM_WORDS, PERIOD, HEADS = 32, 26, 16, 4
SEEDS = range(5)


class TwoLayers(nn.Module):
    """Lesson 5's model: vectors, two attention layers with residual connections, a norm, a read-out."""

    def __init__(self, seed, d_model=64):
        super().__init__()
        self.words = nn.Embedding(NUM_WORDS, d_model)
        self.places = nn.Embedding(LENGTH, d_model)
        self.layers = nn.ModuleList([MultiHeadAttention(d_model, HEADS) for _ in range(2)])
        self.norm = LayerNorm(d_model)
        self.read = nn.Linear(d_model, NUM_WORDS)
        torch.manual_seed(seed)  # the same random start, however your classes make their parts
        for layer in (self.words, self.places, *self.projections(), self.read):
            layer.reset_parameters()

    def projections(self):
        return [getattr(one, f"W_{kind}") for one in self.layers for kind in "qkvo"]

    def start(self, ids):  # ids (batch, n)
        return self.words(ids) + self.places.weight[: ids.shape[-1]]

    def forward(self, ids):
        x = self.start(ids)
        for layer in self.layers:
            x = x + layer(x, mask=up_to_now(ids))[0]
        return self.read(self.norm(x))  # next-word logits (batch, n, NUM_WORDS)


def up_to_now(ids):
    n = ids.shape[-1]
    return torch.ones(n, n, dtype=torch.bool).tril()


def step_by_step(model, ids, new_weights=None, new_heads=None):
    """The same computation, head by head: logits, maps, and what the heads say.

    Maps (2, batch, HEADS, n, n), heads (2, batch, HEADS, n, d_head). new_weights(number, weights) and
    new_heads(number, said) may put others in their place; number is 0 or 1, the layer.
    """
    x, maps, heads = model.start(ids), [], []
    for number, layer in enumerate(model.layers):
        _, weights = layer(x, mask=up_to_now(ids))
        if new_weights is not None:
            weights = new_weights(number, weights)
        said = weights @ split_heads(layer.W_v(x), HEADS)
        if new_heads is not None:
            said = new_heads(number, said)
        x = x + layer.W_o(combine_heads(said))
        maps.append(weights)
        heads.append(said)
    return model.read(model.norm(x)), torch.stack(maps), torch.stack(heads)


def random_words(batch, generator):
    """Texts (batch, NUM_WORDS): every word once, in random order."""
    return torch.rand(batch, NUM_WORDS, generator=generator).argsort(-1)


def repeated(batch, period, seed):
    """Texts (batch, LENGTH) of one piece of `period` different words, repeated."""
    piece = random_words(batch, torch.Generator().manual_seed(seed))
    return piece[:, torch.arange(LENGTH) % period]


def train(seed, run=TwoLayers.forward, steps=320, batch=32, lr=6e-3):
    """Lesson 5's recipe, shorter: pieces of 4 to 20 words; run(model, ids) gives the logits."""
    model = TwoLayers(seed)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for _ in progress(steps, f"repeated texts, seed {seed}"):
        period = torch.randint(4, 21, (batch, 1), generator=generator)
        ids = random_words(batch, generator).gather(1, torch.arange(LENGTH) % period)
        known = torch.arange(LENGTH - 1) >= period  # the present word has been there before
        loss = F.cross_entropy(run(model, ids)[:, :-1][known], ids[:, 1:][known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def maps_and_heads(model, ids):
    """Weights of both layers (2, batch, HEADS, n, n), and what the heads say (2, batch, HEADS, n, d_head)."""
    with torch.no_grad():
        return step_by_step(model, ids)[1:]


def share_right(logits, ids):
    """Right answers in the second round of 16 words."""
    said = logits[:, PERIOD:-1].argmax(-1)
    return (said == ids[:, PERIOD + 1 :]).float().mean().item()


# %% tags=["demonstration", "nbval-ignore-output"] seconds=20
# Trained numbers: they may differ in the last digits on another machine.
models = [train(seed) for seed in SEEDS]
tests = repeated(120, PERIOD, seed=7)  # 120 new texts: 16 different words, twice
with torch.no_grad():
    outputs = [model(tests) for model in models]
    apart = [(step_by_step(model, tests)[0] - out).abs().max() for model, out in zip(models, outputs)]
whole = [share_right(out, tests) for out in outputs]
print("right in the second round, five seeds:", *(f"{share:.3f}" for share in whole))
print("step by step the logits are the same to 1e-4:", max(apart).item() < 1e-4)
assert min(whole) > 0.9 and max(apart) < 1e-4

# %% [markdown]
# **Predict, then run.** The designed model has one induction head. How many of the trained model's eight
# heads have a score above 0.5?

# %% tags=["demonstration", "guess"]
guess_heads = 1  # write a number from 0 to 8

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
found = [maps_and_heads(model, tests)[0] for model in models]
induction = np.array([induction_score(maps, PERIOD).mean(1).flatten().numpy() for maps in found])
first_round = [maps[..., :PERIOD, :PERIOD] for maps in found]  # later there is a choice
one_back = np.array([induction_score(maps, 2).mean(1).flatten().numpy() for maps in first_round])
fresh = random_words(200, torch.Generator().manual_seed(3))  # control 1: nothing is repeated
no_copy = [induction_score(maps_and_heads(model, fresh)[0], PERIOD).mean(1).flatten() for model in models]
blank = [maps_and_heads(TwoLayers(seed), tests)[0] for seed in SEEDS]  # control 2: nothing is learned
untrained = max(induction_score(maps, PERIOD).mean(1).max().item() for maps in blank)
names = [f"L{layer}H{head}" for layer in (0, 1) for head in range(HEADS)]
seeds = [f"seed {seed}" for seed in SEEDS]
print("largest score of a head of the first layer:", f"{induction[:, :4].max():.2f}")
print("smallest score of a head of the second:    ", f"{induction[:, 4:].min():.2f}")
print("largest on texts without a repetition:     ", f"{max(row.max().item() for row in no_copy):.2f}")
print("largest of five untrained models:          ", f"{untrained:.2f}")
assert induction[:, 4:].min() > 0.7 and induction[:, :4].max() < 0.3
assert max(row.max().item() for row in no_copy) < 0.2 and untrained < 0.2
assert one_back[:, :4].max(1).min() > 0.8 and one_back[:, 4:].max() < 0.5
figure, panels = plt.subplots(1, 2, figsize=(8.3, 3.3))
for axes, table, title, begin in ((panels[0], induction, "induction score:\nall heads of the second layer", 4),
                                  (panels[1], one_back, "weight on the word before:\nsome heads of the first", 0)):  # fmt: skip
    draw_heatmap(axes, table, seeds, names, row_label="", column_label="")
    axes.add_patch(plt.Rectangle((begin, 0), 4, 5, fill=False, edgecolor="#b35806", linewidth=2, clip_on=False))
    axes.set_title(title, color="#b35806")
    for text in axes.texts:
        text.set_fontsize(9)
panels[1].set_yticks([])
figure.tight_layout()
show(
    figure,
    "Figure 2. Five models, eight heads each. How many heads of the first layer look one word back, and which, "
    "differs from seed to seed.",
    "Two tables of five seeds by eight heads. Induction score: near 0.9 for L1H0 to L1H3, below 0.15 for L0H0 to "
    "L0H3. Word before, in the first round: mostly 0.8 to 1.0 in the first layer with some heads lower, low in the "
    "second.",
    "induction score\n\n" + text_table(induction, seeds, names, corner="seed \\ head")
    + "\n\nweight on the word before\n\n" + text_table(one_back, seeds, names, corner="seed \\ head"),
)  # fmt: skip

# %% tags=["demonstration"]
why = "Training had four heads a layer to share out, and no reason to give the job to one alone."
reply("guess_heads", guess_heads, int((induction > 0.5).sum(1).min()), why)

# %% [markdown]
# The story of section 2 is found again, with every seed: the first layer looks one back, the second looks after
# the copy. On texts without repetition the score falls to that of any row of weights, and an untrained model
# has none: so it is no accident of the score.
#
# What a score does **not** say: that the head is needed, that it says anything when it looks, or that no
# other head does the same. Here four do. For that we must intervene.
#
# All eight heads of seed 0, on one text of six words (here letters), twice. Point at a letter of the second round,
# and walk through the heads.

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
short = repeated(1, 6, seed=2)[:, :12]
letters = [chr(ord("a") + word) for word in short[0].tolist()]
all_eight = maps_and_heads(models[0], short)[0][:, 0]  # (2, HEADS, 12, 12)
attention_view(
    letters,
    all_eight,
    first=(1, 0),
    caption="Seed 0. In the second round each head of the second layer looks at the letter after the first copy.",
    alt=f"L1H0: a lower triangular map of 12 letters. In the second round the largest weights lie 5 places back, "
    f"{induction_score(all_eight[1, 0], 6):.2f} on average.",
)
assert induction_score(all_eight[1], 6).min() > 0.5

# %% [markdown]
# Now take the answer apart.
#
# ## 4. Taken apart: what each part adds to a logit
#
# The stream at a place is a sum: word vector, place vector, four heads of each layer (each through its own
# piece of `W_o`, lesson 5), and the layers' biases. The logits are linear in the
# normed stream. So each logit is a sum too, and every summand has an owner. This is **direct logit
# attribution** (Elhage and others, 2021).
#
# One thing is in the way: the norm. Its mean is linear: the mean of a sum is the sum of the means. Its
# divisor is not. But it is *one number* for each place. We take the divisor of the whole stream and
# divide each part by it. That is exact, and it answers "what does this part add, given all others?".
#
# By hand: the stream is (5, 1) = (3, 1) + (1, -3) + (1, 3). Its mean is 3, its variance 4; with
# $\epsilon = 5$ the divisor is $\sqrt{4 + 5} = 3$. Without their own means the parts are (1, -1), (2, -2) and
# (-1, 1), and their sum is (2, -2), the stream without its mean. Divide each by 3, and the sum is what
# the norm gives (before `gamma` and `beta`).

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
# - Checked when graded: any number of axes in place of `...`, another `eps`, precision; `parts`,
#   `norm` and `output` unchanged.


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


# %% check="logit_attribution" points=4 card=["Row p: what part p adds to the logits output(norm(parts.sum(0))), with the divisor of the whole stream", "The last row: what belongs to no part, from beta and the output's bias", "The rows sum to the logits", "with or without a bias"]
# The stream (5, 1) of the text; then random parts, whose rows sum to the logits.
@probe
def attributed(parts, gamma, beta, eps, weight, bias):
    class Norm(nn.Module):
        def forward(self, x):
            return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.eps)

    norm, output = Norm(), nn.Linear(*weight.T.shape, bias=bias is not None)
    norm.gamma, norm.beta, norm.eps, output.weight = nn.Parameter(gamma), nn.Parameter(beta), eps, nn.Parameter(weight)
    output.bias = None if bias is None else nn.Parameter(bias)
    found = logit_attribution(parts, norm, output)
    return found.detach() if isinstance(found, torch.Tensor) else found


def by_hand(bias, rows, expected, message, name):
    given = [[3.0, 1.0], [1.0, -3.0], [1.0, 3.0]], [3.0, 6.0], [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    parts, gamma, beta, weight = map(torch.tensor, given)
    found = attributed(parts, gamma, beta, 5.0, weight, bias)
    shape = "Three parts, a vocabulary of three: one tensor (num_parts + 1, vocab), (4, 3)."
    assert_equal(list(getattr(found, "shape", ())), [4, 3], shape, name="the shape")
    assert_close(found[rows], torch.tensor(expected), message, name=name)


with check("by hand: the parts", points=1.75):
    message = "eps = 5, the divisor is 3. Part 3 1, without its own mean 1 -1, times gamma 3 6, over 3: 1 -2; W gives 1 -2 -1."
    by_hand(None, slice(3), [[1.0, -2.0, -1.0], [2.0, -4.0, -2.0], [-1.0, 2.0, 1.0]], message, "the rows of the parts")
with check("by hand: what belongs to no part", points=1.25):
    message = "The last row: beta 1 2 goes through W and gives 1, 2, 3; a bias 10, 20, 30 comes on top."
    by_hand(torch.tensor([10.0, 20.0, 30.0]), -1, [11.0, 22.0, 33.0], message, "the last row")
    by_hand(None, -1, [1.0, 2.0, 3.0], "Without a bias the last row is W times beta: 1, 2, 3.", "the last row")
with check("the rows sum to the logits", points=1):
    parts, gamma, beta, weight, bias = (torch.tensor(check_rng().normal(size=s)) for s in ((4, 2, 3, 6), 6, 6, (7, 6), 7))
    expected = F.linear(F.layer_norm(parts.sum(0), (6,), gamma, beta, 0.5), weight, bias)
    found = attributed(*(x.clone() for x in (parts, gamma, beta)), 0.5, weight.clone(), bias.clone())
    message = "parts (4, 2, 3, 6), a vocabulary of 7: five rows (2, 3, 7), whose sum is output(norm(parts.sum(0)))."
    assert_equal(list(getattr(found, "shape", ())), [5, 2, 3, 7], message, name="the shape")
    assert_close(found.sum(0), expected, message, name="their sum")
checks_passed("logit_attribution")


# %% check="logit_attribution_formula" points=5 card=["with the divisor of the whole stream", "any number of axes in place of ..., another eps, precision; parts, norm and output unchanged", "it is the same at every position"]
# Hidden checks of logit_attribution: random parts; another eps; any number of axes; precision; parts, norm and output unchanged.
### BEGIN HIDDEN TESTS
@probe
def attributed(parts, gamma, beta, weight, bias, eps=0.1):
    """The rows; then all that was given, as it is afterwards."""

    class Norm(nn.Module):
        def forward(self, x):
            return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.eps)

    norm, output = Norm(), nn.Linear(*weight.T.shape, bias=bias is not None)
    norm.gamma, norm.beta, norm.eps, output.weight = nn.Parameter(gamma), nn.Parameter(beta), eps, nn.Parameter(weight)
    output.bias = None if bias is None else nn.Parameter(bias)
    found = logit_attribution(parts, norm, output)
    after = parts, norm.gamma, norm.beta, output.weight, output.bias
    return (found, *after) if found is None else tuple(x.detach() for x in (found, *after))


def by_formula(parts, gamma, beta, weight, bias, eps=0.1):
    divisor = torch.sqrt(parts.sum(0).var(-1, correction=0, keepdim=True) + eps)
    rows = F.linear((parts - parts.mean(-1, keepdim=True)) / divisor * gamma, weight)
    return torch.cat([rows, F.linear(beta, weight, bias).expand(1, *rows.shape[1:])])


def draw(*shape, size=1.0):
    d = shape[-1]
    return [torch.tensor(size * rng.normal(size=shape)), *(torch.tensor(rng.normal(size=s)) for s in (d, d, (5, d), 5))]


def each_as_alone(*leads):
    for lead in leads:
        parts, *rest = draw(3, *lead, 6)
        found, *_ = attributed(parts, *rest)
        message = f"parts {tuple(parts.shape)}, a vocabulary of 5: rows {(4, *lead, 5)}, each position as it comes out alone."
        assert_equal(list(getattr(found, "shape", ())), [4, *lead, 5], message, name="the shape")
        alone = torch.empty(4, *lead, 5).double()
        for place in np.ndindex(*lead):
            alone[:, *place] = attributed(parts[:, *place].clone(), *rest)[0]
        assert_equal(bool(alone[0].std() > 1e-3), True, "A random part adds numbers that differ.", name="'they differ'")
        assert_close(found, alone, message, against="for each position alone")


rng = check_rng()
with check("random parts", points=1.5):
    for shape in ((4, 3, 6), (2, 2, 3, 7), (1, 4, 3)):
        given = draw(*shape)
        message = f"parts {shape}, eps = 0.1: W (gamma * (part - its mean) / the divisor of the whole stream); beta and bias last."
        assert_close(attributed(*(x.clone() for x in given))[0], by_formula(*given), message, name="the rows")
with check("another eps", points=0.75):
    for eps, size in ((2.0, 1.0), (1e-9, 1e-3)):
        given = draw(3, 4, 6, size=size)
        message = f"norm.eps = {eps}, parts of size {size}: eps is added to the variance, under the root."
        assert_close(attributed(*(x.clone() for x in given), eps)[0], by_formula(*given, eps), message, name="the rows")
with check("one axis: each position comes out as it does alone", points=0.75):
    each_as_alone((4,), (1,))
with check("two and three axes: each position comes out as it does alone", points=1):
    each_as_alone((2, 3), (2, 1, 4))
given, names = draw(3, 4, 6), ("parts", "norm.gamma", "norm.beta", "output.weight", "output.bias")
with check("parts, norm and output unchanged", points=0.5, side=True):
    assert_unchanged(lambda *given: attributed(*given)[1:], **dict(zip(names, given)))
with check("float64 in all digits", points=0.5, side=True):
    message = "float64: all digits. Check first: is something rounded to float32?"
    assert_close(attributed(*(x.clone() for x in given))[0], by_formula(*given), message, name="the rows", precise=True)
checks_passed("logit_attribution")
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
# Now the trained models. The question at each place of the second round: what does each part add to the
# logit of the **right** word, more than to the words on average?
#
# **Predict, then run.** Without its first layer the model is lost (lesson 5). What share of the right logit do
# that layer's four heads add together: about half, about a third, or less than a tenth?

# %% tags=["demonstration", "guess"]
guess_share = "a third"  # write "half", "a third" or "less than a tenth"


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
def stream_parts(model, ids):
    """The parts of the last stream by name: (12, batch, n, d_model)."""
    _, heads = maps_and_heads(model, ids)
    parts = {"word": model.words(ids), "place": model.places.weight[: ids.shape[-1]].expand(*ids.shape, -1)}
    for number, (layer, said) in enumerate(zip(model.layers, heads, strict=True)):
        pieces = layer.W_o.weight.chunk(HEADS, dim=1)  # each head's own columns
        for head in range(HEADS):
            parts[f"L{number}H{head}"] = said[:, head] @ pieces[head].T
        parts[f"bias {number}"] = layer.W_o.bias.expand_as(parts["word"])
    return list(parts), torch.stack(list(parts.values())).detach()


shares, errors = [], []
for model in models:
    part_names, parts = stream_parts(model, tests)
    with torch.no_grad():
        by_part = logit_attribution(parts, model.norm, model.read)  # (12 + 1, batch, n, NUM_WORDS)
        error = (by_part.sum(0) - model(tests)).abs().max().item()
    errors.append(error)
    against_mean = by_part - by_part.mean(-1, keepdim=True)
    right_word = tests[:, PERIOD + 1 :].expand(len(by_part), -1, -1)[..., None]
    right = against_mean[:, :, PERIOD:-1].gather(-1, right_word)[..., 0]  # (13, batch, 15)
    shares.append(right.mean((1, 2)).numpy())
shares = np.array(shares)
columns = [*part_names, "rest"]
print("the rows sum to the logits to 1e-4, five seeds:", max(errors) < 1e-4)
assert max(errors) < 1e-4  # logits of about 10, in float32
first, second = shares[:, 2:6].sum(1), shares[:, 7:11].sum(1)
print("first layer, four heads together: ", *(f"{value:5.2f}" for value in first))
print("second layer, four heads together:", *(f"{value:5.2f}" for value in second))
assert (np.abs(first) < 0.1 * shares.sum(1)).all() and (second > 0.9 * shares.sum(1)).all()
assert (shares[:, 7:11] > 0.08 * shares.sum(1, keepdims=True)).all()
figure, axes = plt.subplots(figsize=(8.3, 3.2))
draw_heatmap(axes, shares.round(2) + 0.0, seeds, columns, row_label="", column_label="", vmax=3.0, signed=True)
for begin, says in ((2, "first layer: 0"), (7, "second layer: all of it")):
    axes.add_patch(plt.Rectangle((begin, 0), 4, 5, fill=False, edgecolor="black", linewidth=2, clip_on=False))
    axes.text(begin + 2, -0.2, says, ha="center", va="bottom")
for text in axes.texts[:-2]:
    text.set_fontsize(8)
figure.tight_layout()
show(
    figure,
    "Figure 3. What each part adds to the right word's logit, above the mean of all words. This is the *direct* "
    "part only.",
    "A table of five seeds by 13 parts: 2 to 3 for L1H0 to L1H3, within 0.1 of 0 for all others.",
    text_table(shares.round(2), seeds, columns, corner="seed \\ part"),
)

# %% tags=["demonstration"]
why = "The first layer writes for the second, not for the read-out."
part = float(first.sum() / shares.sum())
came_out = "less than a tenth" if part < 0.1 else "a third" if part < 0.42 else "half"
reply("guess_share", guess_share, came_out, why)

# %% [markdown]
# ### Short answer 2: `answer_direct`
#
# L0H2 adds 0.02 to a right logit of 10. What follows?
#
# - a) The model does not need L0H2.
# - b) L0H2 looks at nothing in particular.
# - c) Hardly anything that it writes is read by the output directly; what others read of it is not in this number.
# - d) The divisor of the norm has hidden its part.

# %% answer="answer_direct"
### BEGIN SOLUTION
answer_direct = "c"
### END SOLUTION

# %% check="answer_direct" points=1
check_answer("answer_direct", answer_direct)

# %% [markdown]
# ## 5. Three ways to ablate a head
#
# Attribution describes what happened. It does not say what would happen without a part. For that, ablate
# it. Lesson 5 did so by zero and by mean; here is a third way, and the question that each one asks:
#
# | way | the head says | question |
# |---|---|---|
# | zero | nothing | does the rest work without this head? |
# | mean | what it says on average | does the rest need what the head says of **this** text? |
# | resample | what it says of **another text** | can the rest stand a wrong message? |
#
# By hand, one head, one feature, two texts of two places: it says 1, 3 for text 0 and 5, 7 for text 1. Zero:
# 0, 0 and 0, 0. Mean: 4, 4 and 4, 4. Resample: 5, 7 and 1, 3.

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


# %% check="ablate_head" points=3 card=["Returns a new tensor with that head's output replaced, and all others unchanged", "its mean over batch and positions, one vector of d_head features everywhere", "what it says for the next text of the batch; the last text takes the first's", "a ValueError"]
# Three texts, four heads, five places, two features.
@probe
def argument_after(outputs, how):
    ablate_head(outputs, 1, how)
    return [outputs]


def replaced(how):
    found = ablate_head(outputs.clone(), 1, how)
    assert_equal(list(getattr(found, "shape", ())), [3, 4, 5, 2], "A tensor of the shape of outputs.", name="the shape")
    return found


outputs = torch.tensor(check_rng().normal(size=(3, 4, 5, 2)))
own = outputs[:, 1]
with check("zero", points=0.5):
    expected = outputs * torch.tensor([1.0, 0, 1, 1])[:, None, None]
    assert_close(replaced("zero"), expected, "Head 1 says zeros, and the others what they said.")
with check("mean", points=0.75):
    message = "Three texts of five places: one mean vector of two features, over all 15, everywhere."
    assert_close(replaced("mean")[:, 1], own.mean((0, 1)) + 0 * own, message, name="head 1")
with check("resample", points=0.75):
    message = "Text 0 gets what head 1 says of text 1, text 1 that of text 2, text 2 that of text 0."
    assert_close(replaced("resample")[:, 1], own[[1, 2, 0]], message, name="head 1")
with check("mean and resample: the other heads stay, head 1 changes", points=0.5):
    for how in ("mean", "resample"):
        found = replaced(how)
        message = f"{how}, head 1: what heads 0, 2 and 3 say stays as it is; head 1 says other numbers."
        assert_close(found[:, [0, 2, 3]], outputs[:, [0, 2, 3]], message, name="heads 0, 2, 3")
        assert_equal(bool((found[:, 1] - own).abs().max() > 1e-3), True, message, name="'head 1 changes'")
with check("outputs itself stays as it is", points=0.25, side=True):
    for how in ("zero", "mean", "resample"):
        message = f"{how}: outputs itself was changed by the call. A new tensor is asked for."
        assert_equal(argument_after(outputs.clone(), how), [outputs], message, name="outputs")
with check("no such head, no such way", points=0.25, side=True):
    for head, how in ((4, "zero"), (-1, "mean"), (1, "median"), (-1, "resample"), (1, "")):
        with assert_raises(ValueError, f"Four heads, head {head}, {how!r}: a ValueError is asked for."):
            ablate_head(outputs.clone(), head, how)
checks_passed("ablate_head")


# %% check="ablate_head_sizes" points=3 card=["Returns a new tensor with that head's output replaced, and all others unchanged", "its mean over batch and positions", "what it says for the next text of the batch", "other sizes, precision"]
# Hidden checks of ablate_head: other sizes, every head; precision.
### BEGIN HIDDEN TESTS
def compare(how, *shapes, **near):
    for shape in shapes:
        outputs = torch.tensor(rng.normal(size=shape) + np.arange(shape[-1]))
        for head in range(shape[1]):
            own, expected = outputs[:, head], outputs.clone()
            mean = own.sum((0, 1)) / (shape[0] * shape[2])
            expected[:, head] = {"zero": 0 * own, "mean": mean + 0 * own, "resample": torch.cat([own[1:], own[:1]])}[how]
            message = f"outputs {shape}, head {head}, {how}: that head is replaced, and every other head says what it said."
            assert_close(ablate_head(outputs.clone(), head, how), expected, message, **near)


rng = check_rng()
sizes = (3, 2, 4, 5), (2, 3, 5, 4), (5, 1, 2, 3), (1, 2, 3, 4)
with check("zero", points=0.5):
    compare("zero", *sizes)
with check("resample", points=1):
    compare("resample", *sizes)
with check("mean", points=1):
    compare("mean", *sizes)
with check("float64 in all digits, float32 stays", points=0.5, side=True):
    for how in ("zero", "mean", "resample"):
        compare(how, (3, 2, 4, 5), precise=True)
        found = ablate_head(torch.ones(3, 2, 4, 5), 1, how)
        assert_equal(str(getattr(found, "dtype", None)), "torch.float32", f"{how}, float32: stays.", name="the dtype")
checks_passed("ablate_head")
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
    size = len(scores)
    best = int(scores.argmax())
    other = int(rng.integers(scores.size))
    return divmod(best, size), divmod(other, size)


# %% [markdown]
# ### Exercise 5: `mended_control`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# Copy `friends_control` and mend it. There are two bugs.
#
# - `scores (num_layers, num_heads)`: NumPy; no two are equal. `rng`: a NumPy generator.
# - Returns two tuples `(layer, head)` of Python integers: the head with the largest score, and a random
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
    num_heads = scores.shape[1]
    best = int(scores.argmax())
    other = int(rng.integers(scores.size - 1))
    other += other >= best  # the best one is left out
    return divmod(best, num_heads), divmod(other, num_heads)
    ### END SOLUTION


# %% check="mended_control" points=2 card=["the head with the largest score, and a random control: any head of the table but that one", "Returns two tuples (layer, head) of Python integers"]
# The best head of several tables; then 200 controls.
@probe
def drawn(scores, seed, times):
    """The best heads, and the controls, of so many draws."""
    rng = np.random.default_rng(seed)
    return list(zip(*(mended_control(scores, rng) for _ in range(times))))


rng = check_rng()
seed = int(rng.integers(2**31))
with check("the best head", points=0.75):
    for shape in ((2, 4), (3, 2)):
        for less in (0, 2):  # the second ones are all negative
            scores = rng.permutation(shape[0] * shape[1]).reshape(shape) / 10 - less
            best = tuple(np.argwhere(scores == scores.max())[0].tolist())
            message = f"scores {scores.round(1).tolist()}: the largest stands in (layer, head) {best}, a tuple of integers."
            assert_equal(drawn(scores, seed, 1)[0][0], best, message, name="the best head")
scores = rng.permutation(6).reshape(2, 3) / 10
heads = [(layer, head) for layer in range(2) for head in range(3)]
with check("200 draws: each other head as control, the best one never", points=0.75):
    bests, controls = drawn(scores, seed, 200)
    message = f"scores {scores.tolist()}, 200 draws: the best is always the same, the control never it, but each of the others."
    assert_equal(len(set(map(str, bests))), 1, message, name="so many best heads")
    assert_equal(bests[0] in controls, False, message, name="the best one was drawn")
    assert_equal(len(set(map(str, controls)) - {str(bests[0])}), 5, message, name="so many other heads")
with check("the control: a head of the table, drawn at random", points=0.5):
    controls = drawn(scores, seed, 200)[1]
    message = f"scores {scores.tolist()}: tuples of Python integers from (0, 0) to (1, 2), not always the same."
    assert_equal([one for one in controls if one not in heads][:1], [], message, name="no such head")
    assert_equal(sorted({type(one).__name__ for one in controls}), ["tuple"], message, name="the kinds")
    assert_equal(len(set(controls)) > 1, True, message, name="several controls")
checks_passed("mended_control")


# %% check="mended_control_chances" points=0.5 card="any head of the table but that one, each with the same chance"
# Hidden checks of mended_control: each other head with the same chance.
### BEGIN HIDDEN TESTS
@probe
def drawn(scores, seed, times):
    rng = np.random.default_rng(seed)
    return [tuple(map(int, mended_control(scores, rng)[1])) for _ in range(times)]


rng = check_rng()
for shape in ((2, 3), (3, 2), (1, 4)):
    scores = rng.permutation(shape[0] * shape[1]).reshape(shape) / 10
    best = tuple(np.argwhere(scores == scores.max())[0].tolist())
    others = [(layer, head) for layer in range(shape[0]) for head in range(shape[1]) if (layer, head) != best]
    controls = drawn(scores, int(rng.integers(2**31)), 1200)
    fair = 1200 / len(others)
    counts = {one: controls.count(one) for one in sorted(set(controls))}
    message = f"scores {scores.tolist()}, 1200 draws: each of the others about {fair:.0f} times. Drawn: {counts}."
    assert_equal(list(counts), others, message, name="the heads that were drawn")
    even = all(0.7 * fair < count < 1.35 * fair for count in counts.values())
    assert_equal(even, True, message, name="'about as often'")
### END HIDDEN TESTS


# %% check="mended_control_tables" points=0.25 card=["the head with the largest score", "Returns two tuples (layer, head) of Python integers"]
# Hidden checks of mended_control: other tables, with negative scores too; Python integers.
### BEGIN HIDDEN TESTS
@probe
def of_tables(tables):
    return [mended_control(scores, np.random.default_rng(0)) for scores in tables]


rng = check_rng()
tables = [rng.permutation(a * b).reshape(a, b) / 10 - less for a, b in ((2, 5), (5, 2), (1, 3), (4, 4)) for less in (0, 5)]
expected = [tuple(np.argwhere(scores == scores.max())[0].tolist()) for scores in tables]
found = of_tables(tables)
message = "Eight tables, half of them negative: the first of the two results is the head with the largest score."
assert_equal([pair[0] for pair in found], expected, message, name="the best heads")
kinds = sorted({type(number).__name__ for pair in found for number in pair[1]})
assert_equal(kinds, ["int"], "The control's layer and head are Python integers.", name="their kinds")
### END HIDDEN TESTS


# %% check="mended_control_randomness" points=0.25 card="All randomness comes from rng"
# Hidden checks of mended_control: the same generator gives the same controls.
### BEGIN HIDDEN TESTS
@probe
def drawn(scores, seed, times):
    rng = np.random.default_rng(seed)
    return [mended_control(scores, rng)[1] for _ in range(times)]


scores = check_rng().permutation(12).reshape(3, 4) / 10
first, again, other = (drawn(scores, seed, 40) for seed in (1, 1, 2))
assert_equal(len(set(map(str, first))) > 3, True, "Forty draws give several controls.", name="'several'")
message = "A new generator with the same seed should give the same controls, another seed others."
assert_equal(again, first, message, name="the controls", against="in the draws before")
assert_equal(first == other, False, message, name="'the same with another seed'")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Number the heads of a table of 2 layers with 4 heads from 0 to 7, row after row. In which layer is
# number 5? And can a control be the thing that it controls?
#
# </details>

# %% [markdown]
# How often did the friend's control control nothing? Count it, for the scores of seed 0. (The model has layers
# 0 and 1. Look at which layer the friend names.)

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained scores: which head is the best differs from machine to machine.
table = induction[0].reshape(2, HEADS)
rng = np.random.default_rng(0)
drawn = [friends_control(table, rng) for _ in range(800)]
itself = np.mean([one == other for one, other in drawn])
best, _ = mended_control(table, rng)
print("(layer, head) of the largest score:", best, "and the friend says", drawn[0][0])
print(f"share of the draws in which the control is the 'best' head itself: {itself:.2f}")
assert best == (1, int(table[1].argmax())) and 0.05 < itself < 0.2

# %% [markdown]
# Now ablate. For each of the five models: the head with the best induction score; another of its layer (mean of
# the three); a random other head of both layers (mean of five draws); all of the second layer but the best; all
# four; in the first layer the two heads that look one word back most, and as their control the other two.
#
# **Predict, then run.** The best induction head is set to zero. How large is the share of right answers
# then (0.04 is guessing)? And how large when all but the best one of its layer are set to zero?

# %% tags=["demonstration", "guess"]
guess_without_best = 0.3  # write a number from 0 to 1
guess_only_best = 0.5  # write a number from 0 to 1


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
def accuracy(model, ids, ablated, how):
    """Right answers, while the heads `ablated`, each (layer, head), are so by your function."""

    def without(number, said):
        for layer, head in ablated:
            said = ablate_head(said, head, how) if layer == number else said
        return said

    with torch.no_grad():
        return share_right(step_by_step(model, ids, new_heads=without)[0], ids)


def groups_of(number):
    """Which heads to ablate in model `number`: name of the experiment to a list of head lists."""
    draw = np.random.default_rng(number)
    pairs = [mended_control(induction[number].reshape(2, HEADS), draw) for _ in range(5)]
    best = pairs[0][0]
    by_one_back = np.argsort(-one_back[number][:HEADS]).tolist()
    return {
        "the best induction head": [[best]],
        "another head of its layer": [[(1, head)] for head in range(HEADS) if (1, head) != best],
        "a random other head": [[control] for _, control in pairs],
        "all of L1 but the best": [[(1, head) for head in range(HEADS) if (1, head) != best]],
        "all four of L1": [[(1, head) for head in range(HEADS)]],
        "L0: two best one-back heads": [[(0, head) for head in by_one_back[:2]]],
        "L0: the other two": [[(0, head) for head in by_one_back[2:]]],
    }


ways = ("zero", "mean", "resample")
groups = list(groups_of(0))
left = [
    [
        [np.mean([accuracy(model, tests, one, how) for one in lists]) for how in ways]
        for lists in groups_of(number).values()
    ]
    for number, model in enumerate(models)
]
left = np.array(left).transpose(1, 2, 0)  # share of right answers: (experiment, way, seed)
for name, rows in zip(groups, left, strict=True):
    print(name)
    for how, values in zip(ways, rows, strict=True):
        print(f"   {how:9s}", *(f"{value:5.2f}" for value in values))
by_name = dict(zip(groups, left, strict=True))  # name: (way, seed)
said = [maps_and_heads(model, tests)[1] for model in models]  # (2, batch, HEADS, n, d_head) each
sizes = [one.mean((1, 3)).square().sum(-1) / one.square().sum(-1).mean((1, 3)) for one in said]
largest_mean = max(one.sqrt().max().item() for one in sizes)
print(f"largest mean of a head, as a share of what it says of one text: {largest_mean:.2f}")
assert largest_mean < 0.5
assert by_name["the best induction head"].min() > 0.85
for other in ("a random other head", "another head of its layer"):
    assert (by_name["the best induction head"] > by_name[other] - 0.05).all()
assert by_name["all four of L1"].max() < 0.2
assert by_name["all of L1 but the best"][:2].min() > 0.7
assert by_name["all of L1 but the best"][2].max() < 0.2
gap = by_name["L0: the other two"] - by_name["L0: two best one-back heads"]
assert gap[2].min() > 0.2 and gap[0].min() > 0
pair = by_name["L0: two best one-back heads"][0]
assert pair.min() < 0.25 and pair.max() > 0.5  # the seeds differ
assert np.abs(left[:, 0] - left[:, 1]).max() < 0.1
figure, axes = plt.subplots(figsize=(8.2, 4.4))
for column, (how, marker, colour) in enumerate(zip(ways, "os^", ("#08306b", "#4292c6", "#b35806"), strict=True)):
    for row in range(len(groups)):
        height = row + 0.25 * (column - 1)
        axes.plot(left[row, column], np.full(len(models), height), marker, color=colour, markersize=5)
    axes.text(0.93, 0.25 * (column - 1), how, color=colour, ha="right", va="center")
axes.axvline(1 / NUM_WORDS, color="grey", linestyle=":")
axes.text(0.06, -0.2, "guessing", color="grey", va="center")
arrow = {"arrowstyle": "->", "color": "black"}
axes.annotate("the same heads: silent ...", (0.86, 2.88), (0.42, 2.7), va="center", arrowprops=arrow)
axes.annotate("... or with another text's words", (0.1, 3.25), (0.25, 3.4), va="center", arrowprops=arrow)
axes.set_yticks(range(len(groups)), groups)
axes.invert_yaxis()
axes.set_xlabel("share of right answers")
figure.tight_layout()
show(
    figure,
    "Figure 4. What is left when heads are ablated, one point a seed. The best induction head is no more needed "
    "than another one.",
    "Rows: seven ablations; symbols: zero, mean, resample; one point a seed. Best head, another of its layer: near "
    "1; random head: 0.8 to 1. All but the best: zero and mean 0.8 to 1, resample 0.05. All four: near guessing. Two "
    "best one-back heads: zero and mean spread from 0.1 to 0.7, resample 0.1 to 0.25; the other two 0.9 to 1.",
    text_table(left.mean(2), groups, ways, corner="mean of five seeds"),
)

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
without_best = float(by_name["the best induction head"][0].mean())
only_best = float(by_name["all of L1 but the best"][0].mean())
reply("guess_without_best", guess_without_best, without_best, "Three others do the same.", within=0.05)
reply("guess_only_best", guess_only_best, only_best, "One of the four nearly suffices.", within=0.1)

# %% [markdown]
# Read it row by row.
#
# - **The best head by score is not needed**, with any seed, in any of the three ways. Another head of its layer
#   costs about as much; a random head of both layers costs on average as much or more, since it may be one that
#   looks one word back. So the score found who does the work, and not who is needed for it.
# - **But the four together are needed**: without them the model guesses.
# - **One of them nearly suffices, or does not help at all: it depends on the way.** When the other three
#   are silent, the remaining head gives nine in ten of the answers. When they speak of another text, it
#   gives 0.05. Both numbers are right. They answer two questions of the table above: short answer 3.
# - **Zero and mean agree here** (to 0.1 everywhere). That is no law: what these heads say on average is
#   small beside what they say of one text (the last line of the output).
# - **What did not replicate**: how much depends on the two best one-back heads. Set to zero, they leave less
#   than a quarter with one seed and more than half with others. What holds with every seed is the order: the found
#   pair counts more than the other pair of its layer.
#
# ### Short answer 3: `answer_resample`
#
# "Resampling shows that each induction head needs the three others: with them resampled it is right in
# 0.05 of the cases." What is wrong with this sentence?
#
# - a) Three heads that carry a wrong message win against one that is right: nothing is needed, something is in the way.
# - b) Resampling is unfair, since the outputs of another text are of an unusual size.
# - c) Nothing is wrong with it.
# - d) Five seeds are too few for it.

# %% answer="answer_resample"
### BEGIN SOLUTION
answer_resample = "a"
### END SOLUTION

# %% check="answer_resample" points=1
check_answer("answer_resample", answer_resample)

# %% [markdown]
# ## 6. Patching: where is it, and when?
#
# Ablating says that something is needed. **Patching** says where it is (Vig and others, 2020; Meng and
# others, 2022; the method is old in causal inference). Take two texts that differ in **one** word and have
# different answers, a clean one and a corrupted one. Run the corrupted text, and put at one place, at the
# output of one module, what the clean run had there. Does the clean answer come back? If so, what makes
# the difference passes through that place of that module.
#
# The control is built in: nearly all places of nearly all modules should change nothing.
#
# By hand, with the designed model and the text "the black cat is sleeping the": the answer "black" is
# fetched at place 5 from place 1. Corrupt place 1 into "dog", and the model says "dog". What should be
# patched back to get "black"? The word vector at place 1; or the output of the second layer at place 5. Not the
# output of the first anywhere: it wrote at place 1 that *the* stood before, and this is as it was.

# %% [markdown]
# ### Exercise 6: `patched_logits`
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

    patching = module.register_forward_hook(replace)
    try:
        result = model(tokens)
    finally:
        patching.remove()
    return result
    ### END SOLUTION


# %% check="patched_logits" points=4 card=["the module's output at position (axis -2) replaced by replacement[..., position, :]", "a tuple whose first entry is one", "All other positions, and the tuple's other entries, stay", "Afterwards nothing is left on the model"]
# A model of an embedding and a module that returns a tuple; three texts of five words.
@probe
def patched(E, tokens, name, replacement, position):
    class Mix(nn.Module):
        def forward(self, x):
            return torch.tanh(x.cumsum(-2)), x.mean(-1, keepdim=True)  # each place sees those before it

    class Model(nn.Module):
        def forward(self, tokens):
            x = self.embed(tokens)
            mixed, level = self.mix(x)
            return x + mixed + level

    model = Model()
    model.embed, model.mix = nn.Embedding.from_pretrained(E.clone()), Mix()
    return patched_logits(model, tokens, getattr(model, name), replacement, position), model(tokens)


def by_formula(name, position):
    here = (torch.arange(5) == position)[:, None]
    x = torch.where(here & (name == "embed"), new, E[tokens])
    return x + torch.where(here & (name == "mix"), new, torch.tanh(x.cumsum(-2))) + x.mean(-1, keepdim=True)


E, new = (torch.tensor(check_rng().normal(size=s)) for s in ((9, 6), (3, 5, 6)))
tokens = torch.tensor(check_rng().integers(0, 9, (3, 5)))
with check("a module that returns a tensor", points=1.75):
    for position in (2, 0, 4):
        message = f"The embedding's output is replaced at position {position} (axis -2); later places see the new one."
        assert_close(patched(E, tokens, "embed", new.clone(), position)[0], by_formula("embed", position), message)
with check("a module that returns a tuple", points=1.25):
    for position in (1, 4):
        message = f"mix returns a tuple of two: its first entry is replaced at position {position}, the rest stays."
        assert_close(patched(E, tokens, "mix", new.clone(), position)[0], by_formula("mix", position), message)
with check("nothing is left behind", points=1, side=True):
    for name in ("embed", "mix"):
        message = f"{name} was patched. Now model(tokens) should give what it gave before."
        assert_close(patched(E, tokens, name, new.clone(), 2)[1], by_formula("", 2), message)
checks_passed("patched_logits")


# %% check="patched_logits_shapes" points=2 card=["Returns model(tokens)", "a tuple whose first entry is one", "any number of leading axes"]
# Hidden checks of patched_logits: a tuple of three, a model that returns a pair; no, one and two leading axes.
### BEGIN HIDDEN TESTS
@probe
def patched(E, tokens, name, replacement, position):
    class Mix(nn.Module):
        def forward(self, x):
            return torch.tanh(x.cumsum(-2)), x.mean(-1, keepdim=True), None

    class Model(nn.Module):
        def forward(self, tokens):
            x = self.embed(tokens)
            entries = self.mix(x)
            entries = entries if isinstance(entries, tuple) else (entries, 0)
            return x + entries[0] + entries[1], len(entries)

    model = Model()
    model.embed, model.mix = nn.Embedding.from_pretrained(E.clone()), Mix()
    return patched_logits(model, tokens, getattr(model, name), replacement, position)


def compare(name, *lead):
    E, new = (torch.tensor(rng.normal(size=s)) for s in ((9, 6), (*lead, 5, 6)))
    tokens = torch.tensor(rng.integers(0, 9, (*lead, 5)))
    for position in (1, 4):
        here = (torch.arange(5) == position)[:, None]
        x = torch.where(here & (name == "embed"), new, E[tokens])
        expected = x + torch.where(here & (name == "mix"), new, torch.tanh(x.cumsum(-2))) + x.mean(-1, keepdim=True)
        found = patched(E, tokens, name, new.clone(), position)
        kinds = [type(found).__name__, *(found[1:] if isinstance(found, tuple) else [])]
        message = "model(tokens) returns a pair, which comes back as it is; mix gives the model a tuple of three."
        assert_equal(kinds, ["tuple", 3], message, name="the kind of result, and the number of entries")
        message = f"tokens {(*lead, 5)}: the output of {name} is replaced at position {position} (axis -2), and nowhere else."
        assert_close(found[0], expected, message)


rng = check_rng()
with check("one leading axis", points=1):
    compare("embed", 3)
    compare("mix", 3)
with check("no leading axis", points=0.5):
    compare("embed")
    compare("mix")
with check("two leading axes", points=0.5):
    compare("embed", 2, 3)
    compare("mix", 2, 3)
checks_passed("patched_logits")
### END HIDDEN TESTS


# %% check="patched_logits_in_place" points=1 card=["what the module returned is not written into (a module may return its own input, which the model uses elsewhere)", "the object itself"]
# Hidden checks of patched_logits: what the module returned is not written into.
### BEGIN HIDDEN TESTS
@probe
def patched(x, replacement, position):
    class Model(nn.Module):
        def forward(self, x):
            seen = torch.tanh(self.point(x).cumsum(-2))
            return x + 2 * self.first(x) - seen

    model = Model()
    model.first, model.point = nn.Identity(), nn.Identity()  # both give their input back
    return patched_logits(model, x, model.point, replacement, position)


rng = check_rng()
x, new = (torch.tensor(rng.normal(size=(3, 5, 6))) for _ in range(2))
for position in (1, 4):
    point = torch.where((torch.arange(5) == position)[:, None], new, x)
    message = "The second nn.Identity() of the model: only its result is another one. Check first: is a copy written into?"
    assert_close(patched(x.clone(), new.clone(), position), 3 * x - torch.tanh(point.cumsum(-2)), message)
### END HIDDEN TESTS


# %% check="patched_logits_after" points=1 card=["Afterwards nothing is left on the model: it computes what it computed before, without a hook", "also when it raises", "replacement is unchanged"]
# Hidden checks of patched_logits: nothing stays, also when the model raises; replacement unchanged.
### SIDE CONDITION: counts once another check of patched_logits passes.
### BEGIN HIDDEN TESTS
@probe
def left_behind(E, tokens, replacement, fails):
    """Whether an error came through, each module before and after, what the model gives then, and replacement."""

    class Model(nn.Module):
        def forward(self, tokens):
            if fails == "before":
                raise ArithmeticError
            x = self.embed(tokens)
            if fails == "after":
                raise ArithmeticError
            return 2 * x

    model = Model()
    model.embed = nn.Embedding.from_pretrained(E.clone())
    model.embed.register_forward_hook(lambda *_: None)  # another's hook

    def state():
        return [[sorted(vars(m)), len(m._forward_hooks), len(m._forward_pre_hooks), m.training] for m in model.modules()]

    before, raised = state(), False
    try:
        patched_logits(model, tokens, model.embed, replacement, 1)
    except ArithmeticError:
        raised = True
    return raised, before, state(), model.embed(tokens).detach(), replacement


rng = check_rng()
E, new, tokens = *(torch.tensor(rng.normal(size=s)) for s in ((9, 6), (3, 5, 6))), torch.tensor(rng.integers(0, 9, (3, 5)))
for fails in ("", "after", "before"):
    raised, before, after, later, used = left_behind(E, tokens, new.clone(), fails)
    where = f"The model raised an error, {fails} its module was called. " if fails else ""
    assert_equal(raised, bool(fails), f"{where}The error comes through.", name="'an error came'")
    assert_close(later, E[tokens], f"{where}The module gives what it gave before.")
    message = f"{where}Of each module attributes, hooks, hooks before forward and mode are as before."
    assert_equal(after, before, message, name="these of each module", against="before the call")
    assert_equal(used, new, "replacement was changed by the call.", name="replacement")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `module.register_forward_hook(f)` has torch call `f(module, inputs, output)` after the module's forward;
# if `f` returns something, it takes the place of the output. What the call returns has a method
# `remove()`. Python has a statement for what has to happen also when an error comes.
#
# </details>

# %% [markdown]
# Two ways to corrupt a text of 16 words, repeated, at whose place 21 (the second copy of word 5) the model has
# to name word 6:
#
# - **the answer**: word 6 of the first round becomes another word;
# - **the search**: word 5 of the first round becomes another word, so that the present word has no copy.
#
# **Predict, then run.** For each corruption: at which places, in which modules, does the clean answer
# come back? Write for "the search" the place at which a patch of the **first layer** brings it back.

# %% tags=["demonstration", "guess"]
guess_place = 5  # write a place from 0 to 21


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
def outputs_of(model, ids):
    """What the word vectors and both layers give when the model reads ids: a list of three."""
    _, heads = maps_and_heads(model, ids)
    return [model.words(ids), *(layer.W_o(combine_heads(said)) for layer, said in zip(model.layers, heads))]


def brought_back(model, clean, corrupted):
    """Share of the clean answer's probability at the last place that each patch brings back: (3, n)."""
    answer = clean[:, ASKED - PERIOD + 1, None]

    def probability(logits):
        return logits[:, -1].softmax(-1).gather(-1, answer).mean().item()

    with torch.no_grad():
        top, bottom = probability(model(clean)), probability(model(corrupted))
        rows = []
        for module, new in zip((model.words, *model.layers), outputs_of(model, clean), strict=True):
            patched = [patched_logits(model, corrupted, module, new, place) for place in range(ASKED + 1)]
            rows.append([(probability(one) - bottom) / (top - bottom) for one in patched])
    return np.array(rows), top, bottom


ASKED = 21  # the second copy of word 5
clean = repeated(40, PERIOD, seed=11)[:, : ASKED + 1]
absent = random_words(40, torch.Generator().manual_seed(11))[:, PERIOD]  # stands nowhere in the text
place, other = torch.arange(ASKED + 1), absent[:, None]
corrupted = {
    "the answer": torch.where(place == 6, other, clean),
    "the search": torch.where(place == 5, other, clean),
}
returned = {
    name: [brought_back(model, clean, text) for model in models] for name, text in corrupted.items()
}
for name in corrupted:
    tops, bottoms = ([one[k] for one in returned[name]] for k in (1, 2))
    print(f"{name}: clean {min(tops):.2f} or more, corrupted {max(bottoms):.2f} or less")
for name, runs in returned.items():
    for seed, (rows, _, _) in enumerate(runs):
        print(f"{name}, seed {seed}: where it is not most of it, at most {np.abs(rows[rows <= 0.5]).max():.2f}")
assert min(top for runs in returned.values() for _, top, _ in runs) > 0.9
assert max(bottom for runs in returned.values() for _, _, bottom in runs) < 0.3
assert all(np.abs(rows[rows <= 0.5]).max() < 0.25 for runs in returned.values() for rows, _, _ in runs)
# Where it is most of it, (module, place), with every seed:
most = {name: [set(zip(*np.nonzero(rows > 0.5))) for rows, _, _ in runs] for name, runs in returned.items()}
assert all(one == {(0, 6), (2, ASKED)} for one in most["the answer"])
assert all(one == {(0, 5), (1, 6), (2, ASKED)} for one in most["the search"])
figure, panels = plt.subplots(2, 1, figsize=(8.3, 3.9))
modules = ["words", "first layer", "second layer"]
places = [str(place) for place in range(ASKED + 1)]
paths = {"the answer": [(6, 0), (ASKED, 2)], "the search": [(5, 0), (6, 1), (ASKED, 2)]}  # (place, module)
for axes, (name, path) in zip(panels, paths.items(), strict=True):
    draw_heatmap(axes, returned[name][0][0], modules, places, row_label="", column_label="")
    for number in axes.texts:
        number.set(visible=float(number.get_text()) >= 0.1, fontsize=7)
    for (x, y), (to_x, to_y) in pairwise(path):
        axes.annotate("", (to_x + 0.1, to_y + 0.4), (x + 0.9, y + 0.6), arrowprops={"arrowstyle": "->", "color": "#b35806"})
    axes.set_title(f"corrupted: {name}", fontsize=10)
panels[1].set_xlabel("patched place")
figure.tight_layout()
show(
    figure,
    "Figure 5. Seed 0: how much of the clean answer a patch brings back. No other place brings any back, in the "
    "other four seeds too; the arrows are our reading.",
    "Two tables of three modules by 22 places. Corrupted answer: 1.00 at words, place 6, and second layer, place "
    "21. Corrupted search: 1.00 at words, place 5; first layer, place 6; second layer, place 21. All else 0.",
    "\n\n".join(
        f"{name}\n\n{text_table(rows[0][0], modules, places, corner='module, place')}" for name, rows in returned.items()
    ),
)

# %% tags=["demonstration"]
large = np.argwhere(returned["the search"][0][0][1] > 0.5).flatten().tolist()
why = "There the first layer writes 'before me stood word 5', and the second finds the place by that."
reply("guess_place", guess_place, large[0], why)

# %% [markdown]
# This is the designed circuit, read off five trained models, and no other path shows: word 5 goes at place 6
# into "before me stood word 5"; place 21 finds it and fetches word 6. Patching found this **in spite of** the
# four heads a layer that can stand in for each other, because it moved a whole layer's output. One head at
# a time is another experiment, which we did not do.
#
# Its limits: it shows what makes the difference between **these two** texts. What both have in common, such
# as that the text is repeated at all, is patched by nothing and seen by nobody.
#
# ### Short answer 4: `answer_last`
#
# In figure 5 a patch of the second layer at place 21 brings the whole answer back, with both corruptions. "So the
# second layer at place 21 is where the work is done." What is wrong with this?
#
# - a) The second layer at place 21 was never corrupted, so the patch does nothing.
# - b) After it comes only the read-out, and what goes round this layer adds next to nothing (section 4): so the answer passes there, wherever it was made.
# - c) The probabilities should be logits.
# - d) It is right: the patch brings back 1.00.

# %% answer="answer_last"
### BEGIN SOLUTION
answer_last = "b"
### END SOLUTION

# %% check="answer_last" points=1
check_answer("answer_last", answer_last)

# %% [markdown]
# ## 7. Lesson 8's sorter, with its controls
#
# Lesson 8 hid digits from the second block of a model that sorts, and left a story open: "the first block counts,
# the second fetches". You now have the tools to ask. Take a text in which a digit stands
# **twice**. Exchange one copy for a digit that the text does not have: the answer loses a copy. Then patch the
# output of the **first block**, which is all that the second gets to see:
#
# - at the exchanged **place itself**: "a 3 stands here" is brought back;
# - at **all other places**: whatever the first block told them about the count is brought back, and the place
#   itself still holds the wrong digit.
#
# Controls: a digit that stands only **once**, where there are no copies to add up; and **one** other place.
#
# **Predict, then run.** If the first block counts and the second fetches: what comes back by which patch, for the digit
# that stands twice, and for the one that stands once? Write for the control, the digit that stands once:
# what share of it do all other places bring back (the median of five seeds)?

# %% tags=["demonstration", "guess"]
guess_only_copy = 0.9  # write a number from 0 to 1


# %% tags=["demonstration"]
class Sorter(nn.Module):
    """Lesson 8's stack of two post-norm blocks: ten digits in, ten scores for digits out."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.symbols = nn.Embedding(10, 64)
        self.positions = LearnedPositionalEmbedding(10, 64)
        self.blocks = nn.ModuleList([TransformerBlock(64, 4, 128) for _ in range(2)])
        self.read = nn.Linear(64, 10)

    def block_1(self, texts):
        return self.blocks[0](self.positions(self.symbols(texts)))[0]

    def block_2(self, x):  # and the read-out
        return self.read(self.blocks[1](x)[0])

    def forward(self, texts):
        return self.block_2(self.block_1(texts))


def train_sorter(seed, steps=160, warm_up=40):
    """Lesson 8's recipe: the rate rises for 40 steps and falls to 0."""
    model = Sorter(seed)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    rate = lambda step: min((step + 1) / warm_up, 1.0, (steps - step) / (steps - warm_up))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for _ in progress(steps, f"sort, seed {seed}"):
        texts = torch.randint(10, (64, 10), generator=generator)
        loss = F.cross_entropy(model(texts).flatten(0, 1), texts.sort(-1).values.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


# %% tags=["demonstration", "nbval-ignore-output"] seconds=10
# Trained numbers: they differ a little from machine to machine.
sorters = [train_sorter(seed) for seed in SEEDS]
texts = torch.randint(10, (2000, 10), generator=torch.Generator().manual_seed(99))
with torch.no_grad():
    sorted_right = [
        (one(texts).argmax(-1) == texts.sort(-1).values).all(-1).float().mean().item() for one in sorters
    ]
print("whole texts sorted, five seeds:", *(f"{share:.3f}" for share in sorted_right))
assert min(sorted_right) > 0.95


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
def exchanged_pairs(times):
    """Texts with a digit that stands `times` times; the same with one copy exchanged; digit; place."""
    texts = torch.randint(10, (800, 10), generator=torch.Generator().manual_seed(9))
    counts = F.one_hot(texts, 10).sum(1)
    fit = (counts == times).any(-1) & (counts == 0).any(-1)
    texts, counts = texts[fit], counts[fit]
    digit = (counts == times).int().argmax(-1)
    place = (texts == digit[:, None]).int().argmax(-1)
    other = texts.clone()
    other[torch.arange(len(texts)), place] = (counts == 0).int().argmax(-1)
    return texts, other, digit, place


def brought_back_copies(model, times):
    """Share of the lost copy that comes back: place itself, all other places, one other place."""
    texts, other, digit, place = exchanged_pairs(times)
    here = F.one_hot(place, 10).bool()
    one_other = F.one_hot((place + 1 + torch.arange(len(place)) % 9) % 10, 10).bool()
    with torch.no_grad():
        clean, corrupted = model.block_1(texts), model.block_1(other)

        def copies(x):
            return (model.block_2(x).argmax(-1) == digit[:, None]).sum(-1).float().mean().item()

        top, bottom = copies(clean), copies(corrupted)
        mixed = [torch.where(where[..., None], clean, corrupted) for where in (here, ~here, one_other)]
        return [(copies(one) - bottom) / (top - bottom) for one in mixed]


back = np.array([[brought_back_copies(one, times) for one in sorters] for times in (2, 1)])
patches = ["the place itself", "all other places", "one other place"]
for times, rows in zip(("twice", "once"), back, strict=True):
    for column, name in enumerate(patches):
        print(f"digit stands {times:5s} {name:17s}", *(f"{value:5.2f}" for value in rows[:, column]))
assert back[..., 2].max() < 0.2
assert (back[..., :2].sum(-1) > 0.7).all()
assert (back[0, :, 1] > back[1, :, 1]).all() and np.median(back[0, :, 1] - back[1, :, 1]) > 0.15
assert (back[0, :, :2] > 0.15).all() and back[1, :, 1].min() > 0.05 and back[0, :, 1].min() > 0.4
assert np.sort(back[1, :, 0] - back[1, :, 1])[1] > 0

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
figure, panels = plt.subplots(1, 2, figsize=(8.2, 3.6), sharey=True)
for axes, rows, times in zip(panels, back, ("twice", "once"), strict=True):
    axes.plot(range(3), rows.T, "o-", color="#2166ac", linewidth=1, markersize=4, alpha=0.7)
    axes.set_xticks(range(3), ["place\nitself", "all other\nplaces", "one other\nplace"])
    axes.set(title=f"the digit stands {times}", xlim=(-0.3, 2.3), ylim=(-0.05, 1.05))
for axes, says in zip(panels, ("the others hold\nhalf or more of it", "the place itself holds most,\nwith four of five seeds")):
    axes.text(0.6, 0.95, says, color="#b35806", va="top")
panels[0].set_ylabel("share of the lost copy\nthat comes back")
figure.tight_layout()
show(
    figure,
    "Figure 6. One line a seed. Right, the control: of an only copy the other places bring back less than of a second "
    "one, but not nothing.",
    "Two panels with a line for each of five seeds. Twice: place itself 0.3 to 0.5, all others 0.55 to 0.7, one "
    "other near 0. Once: place itself 0.4 to 0.8, all others 0.15 to 0.6, one other near 0.",
    "twice\n\n" + text_table(back[0], seeds, patches, corner="seed \\ patched")
    + "\n\nonce\n\n" + text_table(back[1], seeds, patches, corner="seed \\ patched"),
)  # fmt: skip

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
why = "The places tell each other more than counts."
reply("guess_only_copy", guess_only_copy, float(np.median(back[1, :, 1])), why, within=0.1)

# %% [markdown]
# What is shown, with five seeds out of five: after the first block the **other** places carry more of a second
# copy than of an only copy, clearly with four seeds and by a little with the fifth. So the other places carry
# something about counts. What is not shown: "the first block counts,
# the second fetches". The others bring back a part of an only copy too, and how much differs from seed to
# seed. Without the control on the right, the left panel would have passed for a proof. And the other places
# carry it **together**: a single one brings back next to nothing.
#
# ### Can one place tell the count?
#
# But is an only copy really a case without counting? "None or one" is a count as well. A **linear probe**
# asks whether a place holds it: take the output of the first block at place 0, where no 3 stands, and fit one
# weighted sum of its 64 numbers that tells whether a 3 stands **anywhere else**, on texts with none or one;
# and likewise one or two. Half of the texts are for the fit, half for the score, and guessing gets 0.5.
# Controls: the same probe before that block, and on the same model **before any training**.


# %% tags=["demonstration"]
def probed(vectors, low, digit=3):
    """Share of texts in which a linear probe at place 0 tells `low` copies elsewhere from one more."""
    generator = torch.Generator().manual_seed(5)
    texts = torch.randint(10, (12000, 10), generator=generator)
    copies = (texts == digit).sum(-1)
    fit = (texts[:, 0] != digit) & ((copies == low) | (copies == low + 1))
    texts, more = texts[fit], copies[fit] > low
    fewest = min(more.sum(), (~more).sum())
    both = torch.cat([torch.where(more)[0][:fewest], torch.where(~more)[0][:fewest]])  # half and half
    both = both[torch.randperm(len(both), generator=generator)]
    with torch.no_grad():
        x = vectors(texts[both])[:, 0].double()  # (texts, 64)
    x, half = torch.cat([x, torch.ones(len(x), 1)], 1), len(x) // 2
    sign = more[both].double()[:, None] * 2 - 1
    fitted = torch.linalg.lstsq(x[:half], sign[:half], driver="gelsd").solution
    return ((x[half:] @ fitted) * sign[half:] > 0).double().mean().item()


# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Trained numbers: they differ a little from machine to machine.
rows = {
    "before the block": [probed(lambda t, one=one: one.positions(one.symbols(t)), 0) for one in sorters],
    "none or one": [probed(one.block_1, 0) for one in sorters],
    "one or two": [probed(one.block_1, 1) for one in sorters],
    "none or one, untrained": [probed(Sorter(seed).block_1, 0) for seed in SEEDS],
    "one or two, untrained": [probed(Sorter(seed).block_1, 1) for seed in SEEDS],
}
for name, shares in rows.items():
    print(f"{name:24s}", *(f"{share:.2f}" for share in shares))
assert max(rows["before the block"]) < 0.6
assert min(rows["none or one"]) > 0.9 and min(rows["one or two"]) > 0.8
assert min(rows["none or one, untrained"]) > 0.9 and min(rows["one or two, untrained"]) > 0.8

# %% [markdown]
# So an only digit is counted, too, as far as a probe can say: one other place tells in more than nine cases of
# ten whether a 3 stands somewhere. "There is nothing to count" was wrong.
#
# And the last two rows take half of that back. A model that has learnt **nothing** holds it just as well:
# an average over the text, of any random vectors, can be read by a straight line. The probe says what
# **can** be read, not what the model reads: patching one other place brought back next to nothing. (Hewitt
# and Liang, 2019, ask for a control of every probe; theirs is another one: labels drawn at random.)
#
# ## 8. Attention is not explanation. Is it?
#
# Lesson 9 told of two papers of 2019. Jain and Wallace: quite different weights can give the same prediction.
# Wiegreffe and Pinter: weights that are made up for one text are no model; ask whether a model needs weights of its
# own at all, for instance against **uniform** ones. Here is an experiment for each side, on our five models.
#
# We replace the weights of the **second layer**, at the places of the third round of a text of 10 words, and leave
# everything else as it is. There the model can look at two earlier copies:
#
# - all weight on the word after the **first** copy, or all on that after the **second**;
# - one place **later** than that, or **uniform** over all places.
#
# **Predict, then run.** Which of the four changes leave the answers as they are?

# %% tags=["demonstration", "guess"]
guess_same = {"later"}  # write a set of "first", "second", "later", "uniform"


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
def in_second_layer(change):
    """For step_by_step: the second layer attends with change(weights) in place of its weights."""
    return lambda number, weights: change(weights) if number == 1 else weights


def looking_back(distance):
    """All weight of places 20 to 30 goes `distance` places back."""

    def change(weights):
        weights = weights.clone()
        weights[:, :, THIRD] = 0.0
        weights[:, :, THIRD, THIRD - distance] = 1.0
        return weights

    return change


def uniform(weights):
    even = torch.ones_like(weights).tril()
    return even / even.sum(-1, keepdim=True)


THIRD = torch.arange(20, 31)  # the third round of a text of 10 words; its last answer is not in the text
three_rounds = repeated(120, 10, seed=21)
answers = three_rounds[:, THIRD + 1]
changes = {"first": looking_back(19), "second": looking_back(9), "later": looking_back(8), "uniform": uniform}
share, moved_map, moved_answer = (np.zeros((len(models), len(changes))) for _ in range(3))
for row, model in enumerate(models):
    with torch.no_grad():
        weights = maps_and_heads(model, three_rounds)[0][1]  # second layer: (batch, HEADS, n, n)
        before = model(three_rounds)[:, THIRD].softmax(-1)
        for column, change in enumerate(changes.values()):
            after = step_by_step(model, three_rounds, in_second_layer(change))[0][:, THIRD].softmax(-1)
            share[row, column] = (after.argmax(-1) == answers).float().mean()
            moved_answer[row, column] = (after - before).abs().sum(-1).mean() / 2
            moved_map[row, column] = (change(weights) - weights)[:, :, THIRD].abs().sum(-1).mean() / 2
print("five seeds           weights moved   probabilities moved   right answers")
for column, name in enumerate(changes):
    spans = [f"{one[:, column].min():.2f} to {one[:, column].max():.2f}" for one in (moved_map, moved_answer, share)]
    print(f"{name:22s}{spans[0]:16s}{spans[1]:22s}{spans[2]}")
assert share[:, :2].min() > 0.95 and moved_answer[:, :2].max() < 0.1
assert moved_map[:, 1].min() > 0.5  # so far from the model's own weights, and the same answer
assert share[:, 2:].max() < 0.3

# %% tags=["demonstration"]
same = {name for column, name in enumerate(changes) if share[:, column].min() > 0.9}
why = "What counts is which WORD is looked at, not which of its copies."
reply("guess_same", guess_same, same, why)

# %% [markdown]
# "Moved" is half the sum of all absolute differences: 0 for the same, 1 for no overlap.
#
# **For Jain and Wallace**: the row "second". Most of the weight now lies where the model had put hardly any,
# and the answers are the same, with every seed. So "it answers *black* **because** it looked at the first copy"
# does not follow from the map: with another map it answers the same. A map is not the only map.
#
# **For Wiegreffe and Pinter**: the rows "later" and "uniform". Not any weights will do. The maps that keep the
# answer agree in something that a map of *places* does not show: they look at the same **word**. And
# "uniform" says that this model needs its weights. But perhaps a model *trained* with uniform weights
# would do as well? Then the learned weights would explain nothing. That is their test; we run it.

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Trained numbers: they may differ in the last digits on another machine.
def with_uniform(model, ids):
    return step_by_step(model, ids, in_second_layer(uniform))[0]


learned = {}
for name, run in (("uniform", with_uniform), ("its own", TwoLayers.forward)):  # the second is the control
    trained = [train(seed, run, steps=200) for seed in (0, 1)]
    with torch.no_grad():
        learned[name] = [share_right(run(one, tests), tests) for one in trained]
    print(f"trained with {name} weights in the second layer, two seeds:", *(f"{one:.2f}" for one in learned[name]))
assert max(learned["uniform"]) < 0.6 and min(learned["its own"]) > 0.8

# %% [markdown]
# With uniform weights in the second layer, in training too, the model does not learn the task, while the first
# attends as it likes; with its own weights the same 200 steps suffice. (Two seeds. With 400 steps and uniform
# weights, outside this notebook: 0.20 and 0.21.) So here the weights matter. Both sides are right, about
# different sentences:
#
# | sentence | here |
# |---|---|
# | "These weights are the only ones that give this answer." | false: the row "second" |
# | "Any weights give this answer." | false: "later", "uniform" |
# | "The model could do without attention weights of its own." | false for the second layer: trained uniform, two seeds |
# | "The place with the largest weight is what the answer depends on." | not from the map: patch it (section 6) |
# | "This head is important, since its map is so clear." | false: section 5 |
#
# Our task is made so that the weights must matter. In the classifiers of the two papers uniform weights
# often did as well, and in those a map explains little.
#
# ### What is often said, and what is right
#
# | often said | what is right | where shown |
# |---|---|---|
# | "The induction head" | Here four did it at once, with every seed. | section 3 |
# | "A high score means the head is needed." | The best one was needed no more than a random head. | section 5 |
# | "Small attribution, small importance." | The first layer adds nearly 0 to the logit, and the search goes through it. | sections 4, 6 |
# | "Zero, mean, resample: details." | 0.7 and more against 0.05 for the same heads. | section 5 |
# | "Patching shows where the work is done." | It shows where the difference between two texts passes. | section 6 |
# | "The sorter counts in its first block and fetches in its second." | Counts pass more through the other places; so does some of the rest. | section 7 |
# | "Attention is (not) explanation." | Depends on the sentence that it is to explain. | section 8 |
#
# ### Written answer: `written_circuit`
#
# A friend trains a model that adds numbers, and writes: "L1H3 has the highest carry score.
# Setting it to zero costs 1 % of the accuracy. So carrying is not done by attention." In 5 to 8 sentences
# (4 points):
#
# 1. Why does the second sentence not give the third? Name what the friend has not ruled out.
# 2. Which two further ablations would you make, and which control belongs to each?
# 3. Describe one patching experiment: the two texts, what is patched, and what you would expect if carrying
#    *is* done by heads of the second layer.

# %% [markdown] written="circuit" points=4
# ### BEGIN SOLUTION
# Other heads may do the same work, as the four induction heads did: then ablating one costs nothing, though
# all together are needed. Zero also leaves the head silent; the rest may do without it. I would ablate all
# heads with a high carry score at once, and as a control as many random other heads of the same layer;
# and I would resample the head, so that it carries a wrong message, beside a random head that is resampled.
# Both over several seeds. For patching I take two sums that differ in one digit, so that one has a carry
# and the other has not, for instance 27 + 15 and 27 + 12, and ask at the place of the tens. I run the
# second and put the output of the second layer from the first at the place of the tens. If its heads bring
# the carry, the answer with the carry comes back, and patches at other places and of layers that come
# before the digit is read bring back nothing. Since a late layer may bring everything back wherever the work
# was done, I would also patch single heads, or the layer before.
#
# **Marking scheme** (4 points). 1 point: other heads can stand in (or: one seed, one way of ablation).
# 1 point: two ablations, among them a joint one or another way than zero. 1 point: a fitting control for them
# (random heads, as many). 1 point: a pair of texts that differ in the carry alone, what is patched where, and
# what would come back.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > I would zero all heads whose carry score is above 0.5 together, and compare with as many random heads of
# > the second layer, drawn ten times.
#
# Good: it ablates what may stand in for the head, and its control is of the same size and layer.
#
# > I would look at the maps of all heads of the second layer and see whether another one also looks at the digit to
# > the right.
#
# Plausible, and bad: a map says where a head looks, not what the model needs; and without a control many
# heads will seem to look there.
#
# </details>

# %% [markdown]
# ## Summary
#
# | concept | how | code | what it answers |
# |---|---|---|---|
# | design | weights by hand | `design_induction` | is the story enough? |
# | score | mean weight where the designed head looks | `induction_score` | who behaves like it? |
# | attribution | parts of the stream over the whole's divisor | `logit_attribution` | who adds to the logit directly? |
# | ablation | zero, mean, resample | `ablate_head` | what would be without it, or with a wrong one? |
# | control | another head, at random | `mended_control` | is that more than any head does? |
# | patching | one activation of another run | `patched_logits` | where does the difference pass? |
#
# ## Check yourself
#
# <details><summary>1. A text has 20 places and a piece of 7 words. Which weights does the induction score
# average?</summary>
#
# Those from place $t$ to place $t - 6$, for $t = 7$ to 19: 13 of them.
#
# </details>
#
# <details><summary>2. All four heads of a layer have a score near 0.9. What do you not know yet?</summary>
#
# Whether any one of them is needed: the three others may do the same.
#
# </details>
#
# <details><summary>3. In attribution, why not give each part its own norm?</summary>
#
# Then the rows do not sum to the logits, and a tiny part is blown up to the size of a large one.
#
# </details>
#
# <details><summary>4. A head's mean over many texts is near zero. Which two ways of ablation agree?</summary>
#
# Zero and mean. Resample still says what belongs to another text.
#
# </details>
#
# <details><summary>5. Two texts differ in two words. What can patching not tell you then?</summary>
#
# Which of the two words a patch has brought back. Change one thing at a time.
#
# </details>
#
# ## Questions to ask yourself about a claim on a mechanism
#
# - What would the result be for a random part of the same kind and size?
# - Which of the three ablations was it, and do the others agree?
# - Could another part stand in? Were they ablated together?
# - Is the effect direct, or through another part?
# - In how many seeds, and what differed between them?
#
# ## References
#
# - Elhage and others (2021), *A Mathematical Framework for Transformer Circuits*.
# - Olsson and others (2022), *In-context Learning and Induction Heads*.
# - Vig, Gehrmann, Belinkov, Qian, Nevo, Singer, Shieber (2020), *Investigating Gender Bias in Language Models
#   Using Causal Mediation Analysis*.
# - Meng, Bau, Andonian, Belinkov (2022), *Locating and Editing Factual Associations in GPT*.
# - Jain and Wallace (2019), *Attention is not Explanation*.
# - Wiegreffe and Pinter (2019), *Attention is not not Explanation*.
# - Hewitt and Liang (2019), *Designing and Interpreting Probes with Control Tasks*.
#
# ## What comes next
#
# All attention so far looks at everything, and pays for it. Lesson 14 is about attention that is cheaper,
# and about what it can no longer find.
