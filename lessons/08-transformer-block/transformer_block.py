# %% [markdown]
# ## What you will be able to do
#
# - **Build** layer norm, the feed-forward network and the transformer block, in both orders, and
#   **prove** that they equal PyTorch's.
# - **Count** the parameters of a block by hand.
# - **Train** a stack that sorts digits, and **read** in its attention how it does so.
# - **Remove** each part in turn, and **measure** what breaks: it is not always what is often said.
# - **Decide** from measurements where the norm should stand, and how fast the learning may start.

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
    LearnedPositionalEmbedding,
    MultiHeadAttention,
    causal_mask,
    leaks_future,
)
from lesson_kit.figures import draw_flow, draw_heatmap, show, text_table
from lesson_kit.guesses import puzzle, reply
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `lesson_kit.earlier` brings the tools of lessons 5 to 7: your own where they passed their checks,
# else the course's. The setup cell says which.
#
# ## Three questions first
#
# From memory, without looking back. Every choice has a reply.
#
# ### `answer_recall_positions` (lesson 7)
#
# A model with sinusoidal positions was trained on texts of up to 12 words, and fails at 24. What
# was missing?
#
# - a) The waves repeat, so positions 12 and up look like earlier ones.
# - b) Trained positions: the model learned what to do with the vectors that it met.
# - c) More columns: the vectors of positions 12 and up are not defined.

# %% answer="answer_recall_positions"
### BEGIN SOLUTION
answer_recall_positions = "b"
### END SOLUTION

# %% check="answer_recall_positions" points=0.5
check_answer("answer_recall_positions", answer_recall_positions)

# %% [markdown]
# ### `answer_recall_heads` (lesson 5)
#
# `d_model` stays 64. Which of these do you get with 8 heads instead of 2?
#
# - a) Four times as many parameters.
# - b) Wider queries and keys.
# - c) Attention maps: eight instead of two for each text.

# %% answer="answer_recall_heads"
### BEGIN SOLUTION
answer_recall_heads = "c"
### END SOLUTION

# %% check="answer_recall_heads" points=0.5
check_answer("answer_recall_heads", answer_recall_heads)

# %% [markdown]
# ### `answer_recall_scale` (lesson 3)
#
# Why are the scores divided by $\sqrt{d_k}$?
#
# - a) Their spread grows with $d_k$; undivided, the softmax is saturated for most queries.
# - b) So that the weights of a row sum to 1.
# - c) So that no score is larger than 1.

# %% answer="answer_recall_scale"
### BEGIN SOLUTION
answer_recall_scale = "a"
### END SOLUTION

# %% check="answer_recall_scale" points=0.5
check_answer("answer_recall_scale", answer_recall_scale)

# %% [markdown]
# ## 1. Why is attention alone not enough?
#
# Attention lets a word look at other words. Lesson 5 did it in several heads. So why not put
# twelve attention layers on top of each other, and call it a transformer?
#
# Here is "the black cat is sleeping". Each word gets a random vector and passes through 12
# attention layers. **Nothing is trained here: all numbers are random.** (The biases are set to 0, because a
# bias makes all words more alike by itself.) We compare the five results by their cosine: 1 means
# that two vectors point in the same direction, 0 that they have nothing in common.
#
# **Predict, then run.** After 12 layers, what is the mean cosine of two different words?

# %% tags=["demonstration", "guess"]
guess_cosine = 0.0  # write the mean cosine, between -1 and 1

# %%
words = ["the", "black", "cat", "is", "sleeping"]
only_itself = torch.eye(5, dtype=torch.bool)  # a mask: nobody sees a neighbour


def cosines(x):
    """Cosine of each word with each word: (n, d) -> (n, n)."""
    return F.cosine_similarity(x[:, None], x[None], dim=-1)


@torch.no_grad()
def twelve_layers(seed):
    """Five random words, and what 12 random layers make of them: four times (n, d_model)."""
    torch.manual_seed(seed)
    layers = [MultiHeadAttention(32, 4) for _ in range(12)]
    plain = alone = added = start = torch.randn(5, 32)  # (n, d_model): one random vector a word
    for layer in layers:
        for bias in (p for p in layer.parameters() if p.ndim == 1):
            bias.zero_()
        plain = layer(plain)[0]  # the result replaces the word
        alone = layer(alone, mask=only_itself)[0]  # the same, without neighbours
        added = added + layer(added)[0]  # the result is added to the word
    return {"at the start": start, "12 x replaced": plain, "  without neighbours": alone, "12 x added": added}


draws, means, magnitudes = [twelve_layers(seed) for seed in range(5)], {}, {}
print("cosine of two words in five draws:  mean            mean size (without its sign)")
for name in draws[0]:
    pairs = torch.stack([cosines(one[name])[~only_itself] for one in draws])  # (5, 20)
    means[name], magnitudes[name] = pairs.mean(1), pairs.abs().mean(1)
    ends = [f"{mean.min():5.2f} to {mean.max():5.2f}" for mean in (means[name], magnitudes[name])]
    print(f"{name:35s} {ends[0]}   {ends[1]}")

# %% tags=["demonstration"]
why = "Each layer mixes the words, and what is mixed twelve times is nearly the same."
reply("guess_cosine", guess_cosine, means["12 x replaced"][0].item(), why, within=0.05)

# %% tags=["demonstration"]
figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.8))
maps = {
    "replaced by attention, 12 times": cosines(draws[0]["12 x replaced"]),
    "attention added, 12 times": cosines(draws[0]["12 x added"]),
}
for axes, (title, map_) in zip(panels, maps.items()):
    draw_heatmap(axes, map_, words, words, row_label="", column_label="", signed=True)
    axes.set_title(title)
figure.tight_layout()
corner = "cosine"
show(
    figure,
    "Figure 1. The first draw. Left: after 12 random attention layers all five words point in the same "
    "direction. Right: where each layer adds to the word, they grow alike more slowly.",
    "Two heat maps of cosines between the five words of the sentence. Left: every entry is 1.00. "
    "Right: 1 on the diagonal, about 0.4 elsewhere.",
    "\n\n".join(f"{title}\n\n{text_table(m, words, words, corner=corner)}" for title, m in maps.items()),
)

# %% [markdown]
# Attention averages. Average again and again, and everything becomes the same (Dong, Cordonnier
# and Loukas, 2021). It is the mixing that does it: without neighbours the same layers do not make the
# words equal. (They do bring them near one line, some to one side and some to the other: the *size* of the
# cosines grows to 0.5 and more. Twelve random matrices in a row do that.) What slows it down is one plus
# sign: a **residual connection** (He, Zhang, Ren and Sun, 2016) adds what a part computes to what was there
# before, $x + f(x)$. No more than slows down: added, the words have come, with these
# random layers, a fifth to a half of the way.
#
# The transformer has three things besides attention. Each needs only a few lines:
#
# | part | what it does | mixes words? |
# |---|---|---|
# | residual connection | adds a part's result to its input | no |
# | **layer norm** | keeps the numbers of each word at size 1 | no |
# | **feed-forward** | computes on each word: linear layer, negative numbers to 0, linear layer | no |
#
# One attention, one feed-forward, with their residuals and norms: that is a **transformer block**.
# A **stack** is several blocks, one after another. Both norm and feed-forward work on each word by
# itself. Only attention carries something from word to word.
#
# ## 2. Layer norm
#
# Sums grow. Add twelve results to a vector, and its numbers get larger from block to block.
# **Layer norm** (Ba, Kiros and Hinton, 2016) brings each word back to mean 0 and variance 1. On
# paper, for one word with four features:
#
# | step | 1 | 2 | 3 | 4 | what is computed |
# |---|---|---|---|---|---|
# | features of "cat" | 0 | 2 | 2 | 4 | mean $\mu = 2$ |
# | minus the mean | −2 | 0 | 0 | 2 | variance $\sigma^2 = (4+0+0+4)/4 = 2$ |
# | divided by $\sqrt 2$ | −1.41 | 0 | 0 | 1.41 | mean 0, variance 1 |
#
# Then each feature gets a scale and a shift of its own, which are learned: $\gamma$ and $\beta$
# (gamma and beta), two vectors of length $d_{model}$. And so that nobody divides by 0, a small
# number $\epsilon$ is added to the variance:
#
# $$\operatorname{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta,
# \qquad \mu = \frac1d \sum_{i=1}^{d} x_i, \quad \sigma^2 = \frac1d \sum_{i=1}^{d} (x_i - \mu)^2 ,
# \qquad d = d_{model}$$
#
# ($\odot$ multiplies feature by feature.) The variance divides by $d$: the **biased** variance.
# torch's `var` and `std` divide by $d - 1$ when nothing is said.

# %% [markdown]
# ### Exercise 1: `LayerNorm`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 15-20 minutes on it.
#
# - `LayerNorm(d_model, eps=1e-5)`; its parameters are `gamma` and `beta`, both of shape
#   `(d_model,)`. At the start `gamma` holds ones and `beta` zeros.
# - `forward(x)`: `x` is `(..., n, d_model)`, any number of leading axes. The result has the same
#   shape: $y = \gamma \odot \dfrac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta$, where $\mu$ and
#   $\sigma^2$ are computed for **each word by itself**, over its features.
# - The variance is the **biased** one: divide by `d_model`, not by `d_model - 1`. `eps` stands
#   inside the root.
# - It equals torch's layer with the same numbers, for every `eps` and shape. A word whose features
#   are all equal gives `beta`, with finite gradients. Gradients reach `x`, `gamma` and `beta`.
# - Checked when graded only: nothing is remembered from call to call, training and evaluation mode
#   agree, and the conventions of lesson 1 (precision kept, `x` not changed; `layer.double()`).
#
# `nn.LayerNorm` and `F.layer_norm` would make this one line. Write it with means, squares and a
# root instead: you will need the formula in your head.


# %% answer="LayerNorm"
class LayerNorm(nn.Module):
    """Layer norm: each word's features get mean 0 and variance 1, then a learned scale and shift.

    Parameters gamma and beta, both (d_model,); ones and zeros at the start.
    """

    def __init__(self, d_model, eps=1e-5):
        ### BEGIN SOLUTION
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        ### END SOLUTION

    def forward(self, x):
        """Normalise the last axis.

        Args:
            x: (..., n, d_model).

        Returns:
            (..., n, d_model).
        """
        ### BEGIN SOLUTION
        centred = x - x.mean(dim=-1, keepdim=True)  # (..., n, d_model)
        variance = centred.square().mean(dim=-1, keepdim=True)  # (..., n, 1), biased
        return self.gamma * centred / torch.sqrt(variance + self.eps) + self.beta
        ### END SOLUTION


# %% check="LayerNorm" points=4 means="Your layer norm is torch's, with its two parameters and its eps." card=["At the start `gamma` holds ones and `beta` zeros", "for **each word by itself**, over its features", "The variance is the **biased** one", "`eps` stands inside the root", "A word whose features are all equal gives `beta`"]
# Four words with four features each, by hand; then a batch, compared with torch's own layer.
@probe
def start_values(d_model):
    return {name: parameter.detach() for name, parameter in LayerNorm(d_model).named_parameters()}

@probe
def normalise(gamma, beta, x, *eps):
    layer = LayerNorm(x.shape[-1], *eps)
    with torch.no_grad():
        for name, values in (("gamma", gamma), ("beta", beta)):
            if isinstance(getattr(layer, name, None), torch.Tensor):
                getattr(layer, name).copy_(values)
        return layer(x.clone())

rng = check_rng()
gamma, beta = torch.tensor(rng.normal(size=(2, 6))).float()
with check("two parameters: gamma, ones at the start, and beta, zeros", points=0.5):
    expected = {"gamma": torch.ones(4), "beta": torch.zeros(4)}
    assert_equal(start_values(4), expected, "The two nn.Parameters are gamma and beta.", name="the parameters")
with check("four words by hand, with eps = 2", points=1.5):
    x = torch.tensor([[0.0, 2, 2, 4], [-6, 4, 2, 0], [9, 5, 7, 7], [3, 3, 3, 3]])
    expected = torch.tensor([[-1.0, 0, 0, 1], [-1.5, 1, 0.5, 0], [1, -1, 0, 0], [0, 0, 0, 0]])
    message = "The first word, 0 2 2 4, has mean 2 and variance (4 + 0 + 0 + 4) / 4 = 2; the root is that of 2 + 2."
    assert_close(normalise(torch.ones(4), torch.zeros(4), x, 2.0), expected, message)
with check("as torch's layer: a batch, other gamma and beta, eps = 0.5", points=1):
    x = torch.tensor(3 + 2 * rng.normal(size=(4, 5, 6))).float()  # (batch, n, d_model)
    message = "Mean and variance run over the last axis; gamma multiplies, and beta is added afterwards."
    assert_close(normalise(gamma, beta, x, 0.5), F.layer_norm(x, (6,), gamma, beta, 0.5), message)
with check("eps: left out, it is 1e-5", points=0.5):
    small = 1e-3 * x  # features so small that eps counts
    given, other = normalise(gamma, beta, small, 1e-5), normalise(gamma, beta, small, 0.1)
    message = "Of features near 0.003, LayerNorm(6) should make what LayerNorm(6, 1e-5) makes."
    assert_equal(bool((given - other).abs().max() > 1e-3), True, "It depends on eps.", name="'it does'")
    assert_close(normalise(gamma, beta, small), given, message, against="with eps = 1e-5")
with check("equal features, near 1000", points=0.5):
    equal = torch.tensor(1000 + rng.integers(0, 16, size=(4, 5, 1)) / 16).float().expand(4, 5, 6)
    message = "All features of a word are equal: the result is beta. Check first: is the variance below 0 by rounding?"
    assert_close(normalise(gamma, beta, equal, 1e-3), beta.expand(4, 5, 6), message, atol=0.05)
checks_passed("LayerNorm")


# %% check="LayerNorm_batches" points=2 card="any number of leading axes"
# Hidden checks of LayerNorm: one, none and two leading axes.
### BEGIN HIDDEN TESTS
@probe
def normalise(gamma, beta, x):
    layer = LayerNorm(x.shape[-1]).double()
    with torch.no_grad():
        layer.load_state_dict({"gamma": gamma, "beta": beta}, strict=False)
        return layer(x.clone())


rng = check_rng()
for title, points, shape in (
    ("a batch of texts", 1, (4, 3, 6)),
    ("no batch axis", 0.5, (3, 5)),
    ("two batch axes", 0.25, (2, 4, 3, 6)),
    ("a batch of one", 0.25, (1, 3, 6)),
):
    with check(f"{title}: each word comes out as it does alone", points=points):
        gamma, beta = torch.tensor(rng.normal(size=(2, shape[-1])))
        x = torch.tensor(2 * rng.normal(size=shape) - 1)
        found = normalise(gamma, beta, x)
        words = x.reshape(-1, 1, 1, shape[-1])
        alone = torch.stack([normalise(gamma, beta, word).reshape(-1) for word in words]).double()
        message = f"x of shape {shape}: each word should come out as your layer gives it alone, in a batch of one."
        differ = [bool(alone.std(0).max() > 1e-3), bool((alone - words[:, 0, 0]).abs().max() > 1e-3)]
        assert_equal(differ, [True, True], message, name="'the words differ', 'and are not as they were'")
        assert_close(found, alone.reshape(shape), message, against="for each word alone")
checks_passed("LayerNorm")
### END HIDDEN TESTS


# %% check="LayerNorm_eps" points=1.5 card="It equals torch's layer with the same numbers, for every `eps` and shape"
# Hidden checks of LayerNorm: what eps is, and where it stands.
### BEGIN HIDDEN TESTS
@probe
def normalise(gamma, beta, x, *eps):
    layer = LayerNorm(x.shape[-1], *eps).double()
    with torch.no_grad():
        layer.load_state_dict({"gamma": gamma, "beta": beta}, strict=False)
        return layer(x.clone())


rng = check_rng()
gamma, beta = torch.tensor(rng.normal(size=(2, 6)))
noise = torch.tensor(rng.normal(size=(2, 3, 6)))
for title, points, x, given in (
    ("eps = 0.5", 0.5, noise, (0.5,)),
    ("eps = 1e-12", 0.25, 1e-2 * noise, (1e-12,)),
    ("eps = 0", 0.25, 1e-2 * noise, (0.0,)),
    ("small features, eps left out", 0.5, 3e-3 * noise, ()),
):
    with check(title, points=points):
        expected = F.layer_norm(x, (6,), gamma, beta, *(given or (1e-5,)))
        message = f"{title}: the result should be that of torch's layer. Is eps added to the variance, as it is given?"
        assert_close(normalise(gamma, beta, x, *given), expected, message)
checks_passed("LayerNorm")
### END HIDDEN TESTS


# %% check="LayerNorm_gradients" points=1.5 card=["Gradients reach `x`, `gamma` and `beta`", "with finite gradients"]
# Hidden checks of LayerNorm: gradients to x, gamma and beta, also for a word of equal features.
### BEGIN HIDDEN TESTS
@probe
def gradients(gamma, beta, x, direction):
    layer = LayerNorm(x.shape[-1], 1e-5).double()
    layer.load_state_dict({"gamma": gamma, "beta": beta}, strict=False)
    x = x.clone().requires_grad_()
    y = layer(x)
    if y.requires_grad:
        (y * direction).sum().backward()
    found = {name: parameter.grad for name, parameter in layer.named_parameters()}
    return found.get("gamma"), found.get("beta"), x.grad


rng = check_rng()
gamma, beta = torch.tensor(rng.normal(size=(2, 6)))
x, direction = torch.tensor(rng.normal(size=(2, 2, 4, 6)))
equal = x.clone()
equal[1, 2] = 3.0  # a word whose features are all equal: variance 0
for what, given in (("ordinary words", x), ("a word of equal features", equal)):
    leaves = [one.clone().requires_grad_() for one in (gamma, beta, given)]
    (F.layer_norm(leaves[2], (6,), *leaves[:2], 1e-5) * direction).sum().backward()
    for place, name in enumerate(("gamma", "beta", "x")):
        with check(f"{what}: the gradient of {name}, as of torch's layer", points=0.25):
            found = gradients(gamma, beta, given, direction)[place]
            message = f"{what}: the gradient of {name} should be that of torch's layer. If the results are: is something detached?"
            assert_close(found, leaves[place].grad, message, name=f"the gradient of {name}", rtol=1e-4, atol=1e-6)
checks_passed("LayerNorm")
### END HIDDEN TESTS


# %% check="LayerNorm_state" points=1 card=["nothing is remembered from call to call", "training and evaluation mode agree", "precision kept, `x` not changed"]
# Hidden checks of LayerNorm: nothing remembered; the same in both modes; precision; x unchanged.
### BEGIN HIDDEN TESTS
@probe
def calls(x, *between):
    """The result after some other calls, and in evaluation mode; x after the call."""
    layer = LayerNorm(x.shape[-1]).double()
    with torch.no_grad():
        for other in between:
            layer(other.clone())
        return layer(x), layer.eval()(x.clone()), x


rng = check_rng()
x, other = torch.tensor(rng.normal(size=(2, 3, 4, 6)))
expected = F.layer_norm(x, (6,))
with check("after other calls, and in evaluation mode", points=0.5):
    first, (later, evaluated, _) = calls(x.clone())[0], calls(x.clone(), 5 * other + 2)
    differ = bool(first.std() > 0.1) and not torch.equal(first, x)
    assert_equal(differ, True, "The layer should normalise.", name="'the result is another than x'")
    message = "The same x should give the same result"
    assert_close(later, first, f"{message} after a call with other texts.", against="in the first call")
    assert_close(evaluated, later, f"{message} in evaluation mode.", against="in training mode")
with check("float64: as torch's layer, to all digits", points=0.25):
    message = "After `layer.double()` the result should have all digits of float64."
    assert_close(calls(x.clone())[0], expected, message, precise=True)
with check("x is not changed", points=0.25, side=True):
    assert_equal(calls(x.clone())[2], x, "x should be as before after the call.", name="x")
checks_passed("LayerNorm")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# A mean over the last axis loses that axis, and then it cannot be subtracted from `x` any more.
# Look for the argument of `mean` that keeps it with length 1. The variance is the mean of the
# squared differences; you have these differences already. `nn.Parameter(...)` around a tensor, set
# as an attribute, makes it trainable.
#
# </details>

# %% [markdown]
# ### Short answer 1: `answer_norm`
#
# A new `LayerNorm` (gamma ones, beta zeros) works on "the black cat is sleeping", with 64 random
# features of size 1 for each word. Which of these changes has a large effect on the result for
# "cat"?
#
# - a) All features of "cat" are multiplied by 10.
# - b) 3 is added to all features of "cat".
# - c) "black" is replaced by another word.
# - d) One of the features of "cat" is set to 100.

# %% answer="answer_norm"
### BEGIN SOLUTION
answer_norm = "d"
### END SOLUTION

# %% check="answer_norm" points=1
check_answer("answer_norm", answer_norm)

# %% tags=["demonstration"]
x = torch.randn(5, 64, generator=torch.Generator().manual_seed(1))  # the black cat is sleeping
cases = {name: x.clone() for name in ("times 10", "plus 3", "other neighbour", "one feature 100")}
cases["times 10"][2] *= 10
cases["plus 3"][2] += 3
cases["other neighbour"][1] = 5.0
cases["one feature 100"][2, 0] = 100.0
with torch.no_grad():
    before = LayerNorm(64)(x)[2]
    changes = {name: (LayerNorm(64)(y)[2] - before).abs() for name, y in cases.items()}
for name, change in changes.items():
    print(f"{name:16s} largest change of cat: {change.max():.4f}   median: {change.median():.4f}")
assert changes["one feature 100"].max() > 5 and changes["one feature 100"].median() > 0.3
assert max(change.max() for name, change in changes.items() if name != "one feature 100") < 1e-3

# %% tags=["demonstration"]
sizes, shifts = torch.tensor([[0.3], [1.0], [2.0], [1.0], [0.5]]), torch.tensor([[0.0], [0.0], [0.0], [3.0], [-2.0]])
rows = sizes * torch.randn(5, 6, generator=torch.Generator().manual_seed(2)) + shifts
with torch.no_grad():
    both = {"before": rows, "after: each row by itself": LayerNorm(6)(rows)}
assert rows.std(-1).max() > 4 * rows.std(-1).min() and LayerNorm(6)(rows).std(-1).diff().abs().max() < 0.01
figure, panels = plt.subplots(1, 2, figsize=(8.1, 2.9), layout="constrained")
for axes, (title, numbers) in zip(panels, both.items()):
    draw_heatmap(axes, numbers, words, [str(feature) for feature in range(6)], row_label="", column_label="feature", vmax=4, signed=True)
    axes.set_title(title)
show(
    figure,
    "Five vectors, and what your layer norm makes of them. Small, large and shifted rows become alike in size; which "
    "feature of a word is its largest stays.",
    "Two tables of five words by six features. Before: 'the' is near 0 throughout, 'cat' is large, 'is' lies around 3, "
    "'sleeping' around -2. After: every row lies around 0, between -2.3 and 2.3.",
    "\n\n".join(f"{title}\n\n{text_table(numbers, words, list('012345'), corner='feature')}" for title, numbers in both.items()),
)

# %% [markdown]
# Layer norm forgets how large a word's numbers are and what their mean is. It keeps their pattern.
# One huge feature makes all others small. And no word sees its neighbours.
#
# Batch norm (lesson 6), common in models that read pictures, is the same formula with the axes
# changed: while training it takes mean and variance of one feature over all positions of all texts
# of the batch. Then a text's result depends on which other texts are in the batch. In evaluation it
# uses a second set of numbers, averages kept from training. Layer norm needs neither.
#
# ## 3. The feed-forward network
#
# "The animal didn't cross the street because it was too tired." Attention can bring "animal" to
# "it". But it brings only an average of values. What follows from that (it is alive, it can be
# tired) must be computed. The **feed-forward network** does this, for each word by itself: make
# the vector wider (from $d_{model}$ to $d_{ff}$, often four times as wide), make negative numbers
# 0, come back.
#
# $$\operatorname{FFN}(x) = \operatorname{ReLU}(x W_1 + b_1)\, W_2 + b_2,
# \qquad \operatorname{ReLU}(z) = \max(0, z)$$

# %% [markdown]
# ### Exercise 2: `FeedForward`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# - `FeedForward(d_model, d_ff)`: `linear1` is `nn.Linear(d_model, d_ff)` and `linear2` is
#   `nn.Linear(d_ff, d_model)`, both with bias.
# - `forward(x)`: `(..., n, d_model)` to `(..., n, d_model)`: `linear1`, ReLU, `linear2`.
# - Any number of leading axes. Gradients reach `x` and all four parameters. Training and evaluation
#   mode give the same: there is no dropout.
# - Checked when graded only: the conventions of lesson 1 (precision kept, `x` not changed).


# %% answer="FeedForward"
class FeedForward(nn.Module):
    """Two linear layers with ReLU between them, for each word by itself.

    Parts linear1: nn.Linear(d_model, d_ff), linear2: nn.Linear(d_ff, d_model).
    """

    def __init__(self, d_model, d_ff):
        ### BEGIN SOLUTION
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        ### END SOLUTION

    def forward(self, x):
        """Work on each word.

        Args:
            x: (..., n, d_model).

        Returns:
            (..., n, d_model).
        """
        ### BEGIN SOLUTION
        return self.linear2(torch.relu(self.linear1(x)))
        ### END SOLUTION


# %% check="FeedForward" points=2.5 means="Two linear layers with a ReLU between them, for each word by itself." card=["both with bias", "`linear1`, ReLU, `linear2`", "Training and evaluation mode give the same"]
@probe
def sizes_of(d_model, d_ff):
    return {name: list(one.shape) for name, one in FeedForward(d_model, d_ff).named_parameters()}

@probe
def forward(parameters, x, training=False):
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)  # a part under another name keeps its start values, always the same
        network = FeedForward(2, 3).train(training)
        network.load_state_dict(parameters, strict=False)
        return network(x.clone())

given = {
    "linear1.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]]),
    "linear1.bias": torch.tensor([0.0, 0.5, -1.0]),
    "linear2.weight": torch.tensor([[1.0, 2.0, -3.0], [0.0, -1.0, 0.0]]),
    "linear2.bias": torch.tensor([0.25, -0.5]),
}
three = torch.tensor([[1.0, -2.0], [-1.0, 1.0], [8.0, 3.0]])
with check("the two layers", points=0.5):
    found, expected = sizes_of(2, 3), {name: list(one.shape) for name, one in given.items()}
    message = "linear1 should be nn.Linear(d_model, d_ff), and linear2 nn.Linear(d_ff, d_model)."
    assert_equal({name: found.get(name) for name in expected}, expected, message, name="the parameters")
with check("three words by hand", points=1.75):
    message = (
        "For the first word linear1 gives 1, -1.5, -6, ReLU makes 1, 0, 0 of it, and linear2 1.25, -0.5: "
        "this is the result, without a second ReLU or a residual."
    )
    expected = torch.tensor([[1.25, -0.5], [-2.75, -2.0], [15.25, -4.0]])
    assert_close(forward(given, three), expected, message)
with check("training mode as evaluation mode", points=0.25, side=True):
    many = three.repeat(20, 1)
    trained, evaluated = forward(given, many, True), forward(given, many)
    assert_close(trained, evaluated, "There is no dropout.", against="in evaluation mode")
checks_passed("FeedForward")


# %% check="FeedForward_values" points=1.5 card=["Any number of leading axes", "precision kept, `x` not changed"]
# Hidden checks of FeedForward: one, none and two leading axes; float64; x unchanged.
### BEGIN HIDDEN TESTS
@probe
def forward(parameters, x, d_ff):
    torch.manual_seed(0)
    network = FeedForward(x.shape[-1], d_ff).double()
    with torch.no_grad():
        network.load_state_dict(parameters, strict=False)
        return network(x)


@probe
def x_after(x):
    with torch.no_grad():
        FeedForward(x.shape[-1], 6).double()(x)
    return [x]


rng = check_rng()
sizes = {"linear1.weight": (6, 4), "linear1.bias": 6, "linear2.weight": (4, 6), "linear2.bias": 4}
given = {name: torch.tensor(rng.normal(size=size)) for name, size in sizes.items()}
for title, shape in (
    ("a batch of texts", (2, 5, 4)),
    ("no batch axis", (3, 4)),
    ("two batch axes", (2, 3, 5, 4)),
    ("a batch of one", (1, 5, 4)),
):
    with check(f"{title}: each word comes out as it does alone", points=0.25):
        x = torch.tensor(2 * rng.normal(size=shape))
        alone = torch.stack([forward(given, word[None, None], 6).reshape(-1) for word in x.reshape(-1, 4)]).double()
        message = f"x of shape {shape}: each word should come out as your network gives it alone, in a batch of one."
        differ = [bool(alone.std(0).max() > 1e-3), bool((alone - x.reshape(-1, 4)).abs().max() > 1e-3)]
        assert_equal(differ, [True, True], message, name="'the words differ', 'and are not as they were'")
        assert_close(forward(given, x, 6), alone.reshape(shape), message, against="for each word alone")
with check("float64: by the formula, to all digits", points=0.25):
    hidden = F.linear(x, given["linear1.weight"], given["linear1.bias"]).clamp(min=0)
    expected = F.linear(hidden, given["linear2.weight"], given["linear2.bias"])
    assert_close(forward(given, x, 6), expected, "After `network.double()` all digits count.", precise=True)
with check("x is not changed", points=0.25, side=True):
    assert_unchanged(x_after, x=x)
checks_passed("FeedForward")
### END HIDDEN TESTS


# %% check="FeedForward_gradients" points=1 card="Gradients reach `x` and all four parameters"
# Hidden checks of FeedForward: gradients to x and to all four parameters.
### BEGIN HIDDEN TESTS
@probe
def gradients(parameters, x, direction, training):
    torch.manual_seed(0)
    network = FeedForward(4, 6).double().train(training)
    network.load_state_dict(parameters, strict=False)
    x = x.clone().requires_grad_()
    y = network(x)
    if y.requires_grad:
        (y * direction).sum().backward()
    found = {name: parameter.grad for name, parameter in network.named_parameters()}
    return {"x": x.grad} | {name: found.get(name) for name in parameters}


rng = check_rng()
sizes = {"linear1.weight": (6, 4), "linear1.bias": 6, "linear2.weight": (4, 6), "linear2.bias": 4}
parameters = {name: torch.tensor(rng.normal(size=size)) for name, size in sizes.items()}
x, direction = torch.tensor(rng.normal(size=(2, 2, 5, 4)))
leaves = {name: one.clone().requires_grad_() for name, one in [("x", x), *parameters.items()]}
w1, b1, w2, b2 = (leaves[name] for name in sizes)
(F.linear(F.linear(leaves["x"], w1, b1).clamp(min=0), w2, b2) * direction).sum().backward()
for training in (True, False):
    found = gradients(parameters, x, direction, training)
    for name, leaf in leaves.items():
        message = (
            f"The gradient of {name}{'' if training else ', in evaluation mode,'} should be that of torch's "
            "linear layers and ReLU, whose slope is 0 or 1. Check first: is something detached?"
        )
        assert_close(found[name], leaf.grad, message, name=f"the gradient of {name}")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# The class has two lines in its constructor, after `super().__init__()`, and one in `forward`. An
# `nn.Linear` works on the last axis and leaves all others alone, so nothing must be reshaped.
#
# </details>

# %% [markdown]
# A check of what section 1 said, that a feed-forward network works on each word by itself: the words of
# a sentence are shuffled before they go into a `FeedForward`, and then one of them is replaced.

# %%
torch.manual_seed(0)
network = FeedForward(16, 64)
x = torch.randn(5, 16)  # the black cat is sleeping
shuffled = torch.tensor([4, 2, 0, 3, 1])
with torch.no_grad():
    same = torch.allclose(network(x)[shuffled], network(x[shuffled]), atol=1e-6)
    replaced = x.clone()
    replaced[1] = torch.randn(16)  # another word instead of "black"
    changed = (network(replaced) - network(x)).abs().amax(-1) > 1e-6
print("shuffling only changes the order:", same)
print("results that change:", [word for word, yes in zip(words, changed) if yes])

# %% [markdown]
# ## 4. The block, and two orders for it
#
# Now put the parts together. The paper of 2017 adds first and normalises afterwards. This is
# called **post-norm**. $\operatorname{MHA}$ is the multi-head attention of lesson 5:
#
# $$h = \operatorname{LN}_1(x + \operatorname{MHA}(x)), \qquad
# y = \operatorname{LN}_2(h + \operatorname{FFN}(h)) \qquad \text{(post-norm)}$$
#
# Most large models since GPT-2 normalise what goes **into** a part, and leave the sum alone. This is
# called **pre-norm**:
#
# $$h = x + \operatorname{MHA}(\operatorname{LN}_1(x)), \qquad
# y = h + \operatorname{FFN}(\operatorname{LN}_2(h)) \qquad \text{(pre-norm)}$$

# %% tags=["demonstration"]
figure, panels = plt.subplots(2, 1, figsize=(8.3, 3.4))
for axes, order in zip(panels, ("post-norm", "pre-norm")):
    places = {"x": (0.0, 0.0), "h": (4.8, 0.0), "y": (9.6, 0.0)}
    arrows = []
    for number, (part, begin, end) in enumerate((("MHA", "x", "h"), ("FFN", "h", "y")), start=1):
        names = [part, "+", f"LN{number}"] if order == "post-norm" else [f"LN{number}", part, "+"]
        names = [f"{name}#{number}" for name in names]
        left = places[begin][0]
        places |= {name: (left + 1.2 + 1.2 * step, 0.0) for step, name in enumerate(names)}
        arrows += zip([begin, *names], [*names, end])
        branch, add = left + 0.5, f"+#{number}"
        arrows.append(((branch, 0.0), (branch, 0.8), (places[add][0], 0.8), add))
    draw_flow(axes, places, arrows, plain=("x", "h", "y"))
    axes.set_title(order, loc="left")
figure.tight_layout()
show(
    figure,
    "The block in both orders, from left to right. The line above the parts carries what is added "
    "again.",
    "Two rows of boxes with arrows. Post-norm: x, MHA, plus, LN1, h, FFN, plus, LN2, y. Pre-norm: x, "
    "LN1, MHA, plus, h, LN2, FFN, plus, y. In both a line leads from x past the parts to the first "
    "plus, and one from h to the second.",
)

# %% [markdown]
# Follow the line from plus to plus, the **residual path**. In pre-norm $x$ comes through to the end of the
# stack with nothing in its way but plus signs. In post-norm it passes a norm at each step.
# Remember this for section 8. (There are other places. OLMo 2 normalises what comes **out of** a
# part, before it is added; Gemma 2 normalises both what goes in and what comes out.)

# %% [markdown]
# ### Exercise 3: `TransformerBlock`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 20-30 minutes on it.
#
# - `TransformerBlock(d_model, num_heads, d_ff, norm_first=False)`. Its parts are `attention`
#   (`MultiHeadAttention(d_model, num_heads)` of lesson 5), `norm1` and `norm2` (two `LayerNorm`s of
#   your own), `feed_forward` (your `FeedForward`). One object each. Each time it is called,
#   `forward` uses the parts that these attributes hold at that moment, because section 7 replaces
#   parts.
# - Lesson 5's `forward(query, key=None, value=None, mask=None)` returns `(output, weights)`.
# - `forward(x, mask=None)`: `x` is `(..., n, d_model)`. Returns `(output, weights)`: the output
#   `(..., n, d_model)` and the weights of all heads `(..., num_heads, n, n)`.
# - `norm_first=False`: post-norm, as in the paper. `norm_first=True`: pre-norm. Nothing else is
#   added: no dropout (random zeros while training), and no further norm at the end.
# - `mask`: boolean, `True` = may attend, all shapes that lesson 5's layer takes. A word that may
#   attend to nothing gets the weights 0, and no NaN.
# - Both orders equal `nn.TransformerEncoderLayer` (dropout 0) with the same weights. Gradients flow
#   through both results to `x` and to every parameter, and are finite.
# - Checked when graded only: the conventions of lesson 1 (precision kept; `x` and `mask` not
#   changed).


# %% answer="TransformerBlock"
class TransformerBlock(nn.Module):
    """Attention and feed-forward, each with a residual connection and a layer norm.

    Parts attention, norm1, feed_forward, norm2. Post-norm; pre-norm when norm_first.
    """

    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        ### BEGIN SOLUTION
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm2 = LayerNorm(d_model)
        self.norm_first = norm_first
        ### END SOLUTION

    def forward(self, x, mask=None):
        """One block.

        Args:
            x: (..., n, d_model).
            mask: boolean, True = may attend, as in MultiHeadAttention.

        Returns:
            output (..., n, d_model) and weights (..., num_heads, n, n).
        """
        ### BEGIN SOLUTION
        if self.norm_first:
            change, weights = self.attention(self.norm1(x), mask=mask)
            x = x + change
            return x + self.feed_forward(self.norm2(x)), weights
        change, weights = self.attention(x, mask=mask)
        x = self.norm1(x + change)
        return self.norm2(x + self.feed_forward(x)), weights
        ### END SOLUTION


# %% check="TransformerBlock" points=5.5 means="With the same parameters your block gives what torch's gives, post-norm and pre-norm." card=["Its parts are `attention`", "`norm_first=False`: post-norm, as in the paper. `norm_first=True`: pre-norm", "the weights of all heads", "`mask`: boolean, `True` = may attend", "Both orders equal `nn.TransformerEncoderLayer` (dropout 0) with the same weights"]
# Two texts of five words, twelve features, three heads, float64; compared with torch's own block.
@probe
def forward(given, norm_first, *arguments):
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)  # a part under another name keeps its start values, always the same
        block = TransformerBlock(12, 3, 20, *norm_first).double().eval()
        block.load_state_dict(given, strict=False)
        return block(*arguments), {name: list(one.shape) for name, one in block.named_parameters()}

rng, theirs, given = check_rng(), {}, {}
for first in (False, True):
    theirs[first] = nn.TransformerEncoderLayer(12, 3, 20, 0.0, batch_first=True, norm_first=first).double().requires_grad_(False)
for key, value in theirs[False].state_dict().items():  # the parameters, under the names of the card
    value.copy_(torch.tensor(rng.normal(float(value.ndim == 1), 0.4, value.shape)))
    name = key.replace("self_attn", "attention").replace("out_proj", "W_o").replace("linear", "feed_forward.linear")
    name = name.replace("weight", "gamma").replace("bias", "beta") if "norm" in key else name
    names = [name.replace("in_proj_", f"W_{letter}.") for letter in "qkv"[: 3 if "in_" in name else 1]]
    given |= dict(zip(names, value.chunk(len(names))))
theirs[True].load_state_dict(theirs[False].state_dict())
x, hides = torch.tensor(rng.normal(size=(2, 5, 12))), torch.tensor([[True, True, True, True, False]] * 5)
with check("the four parts", points=0.5):
    found = forward(given, (), x)[1]
    expected, message = {name: list(one.shape) for name, one in given.items()}, "The card names four parts, one object each."
    assert_equal({name: found.get(name) for name in expected}, expected, message, name="the parameters")
for first, order in (((), "Post-norm"), ((True,), "Pre-norm")):
    with check(f"{order}: the output", points=1.5):
        message = f"{order}, compared with torch's block. Check first: what goes into each part, and where are the norms?"
        assert_close(forward(given, first, x)[0][0], theirs[bool(first)](x), message, name="the output")
with check("the weights of every head", points=0.75):
    maps = theirs[False].self_attn(x, x, x, average_attn_weights=False)[1]
    message = "forward returns (output, weights); the weights are those of every head, (batch, num_heads, n, n)."
    assert_close(forward(given, (False,), x)[0][1], maps, message, name="the weights")
for first, order in (((), "Post-norm"), ((True,), "Pre-norm")):
    with check(f"{order}, a mask: as without the hidden word", points=0.625):
        found, plain, without = (forward(given, first, *one)[0][0] for one in ((x, hides), (x,), (x[:, :4],)))
        message = "The mask hides the last word. Check first: does the attention get it, and True mean: may attend?"
        assert_equal(torch.equal(found, plain), False, message, name="'it makes no difference'")
        assert_close(found[:, :4], without, message, name="the output", against="without that word")
checks_passed("TransformerBlock")


# %% check="TransformerBlock_batches" points=1.5 card=["`x` is `(..., n, d_model)`", "precision kept"]
# Hidden checks of TransformerBlock: one, no and two leading axes; float64.
### BEGIN HIDDEN TESTS
@probe
def together_and_alone(x, norm_first):
    """Output and weights of a batch, then those of its texts, each in a batch of one."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        block = TransformerBlock(12, 3, 7, norm_first).double().eval()
        return block(x), [block(text) for text in x.reshape(-1, 1, *x.shape[-2:])]


rng = check_rng()
for title, lead in (("one leading axis", (6,)), ("two leading axes", (2, 3)), ("no leading axis", ())):
    with check(f"{title}: each text as in a batch of one", points=0.5):
        for norm_first in (False, True):
            x = torch.tensor(rng.normal(size=(*lead, 4, 12)))
            both, alone = together_and_alone(x, norm_first)
            message = f"x of shape {tuple(x.shape)}, norm_first={norm_first}: each text should come out as it does alone, in float64."
            differ = [bool(alone[0][0].std() > 0.1), torch.equal(both[0], x)]
            assert_equal(differ, [True, False], message, name="'there are outputs', and 'they are x'")
            for place, name in enumerate(("output", "weights")):
                expected = torch.cat([one[place] for one in alone]).reshape(*lead, *alone[0][place].shape[1:])
                assert_close(both[place], expected, message, name=name, against="in batches of one")
checks_passed("TransformerBlock")
### END HIDDEN TESTS


# %% check="TransformerBlock_masks" points=2 card=["all shapes that lesson 5's layer takes", "A word that may attend to nothing gets the weights 0, and no NaN"]
# Hidden checks of TransformerBlock: masks for all texts, each text, each head; words that see nothing.
### BEGIN HIDDEN TESTS
@probe
def forward(norm_first, x, *masks):
    """Output and weights with each of some masks."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        block = TransformerBlock(12, 3, 7, norm_first).double().eval()
        return [block(x, mask) for mask in masks]


rng = check_rng()
for title, lead, shape in (
    ("one for all texts", (2,), (4, 4)),
    ("one for each text", (2,), (2, 4, 4)),
    ("one for each head", (2,), (2, 3, 4, 4)),
    ("padding, two leading axes", (2, 3), (2, 3, 1, 4)),
    ("no leading axes", (), (4, 4)),
):
    with check(f"{title}: as the same mask in full", points=0.25):
        for norm_first in (False, True):
            x, mask = torch.tensor(rng.normal(size=(*lead, 4, 12))), torch.tensor(rng.random(shape) < 0.5)
            mask[..., 1], mask[..., 3] = True, False  # something is seen, something is hidden
            full = (mask if mask.ndim > x.ndim else mask.unsqueeze(-3)).expand(*lead, 3, 4, 4)
            found, expected, plain = (one[0] for one in forward(norm_first, x, mask, full, None))
            message = f"x of shape {tuple(x.shape)}, a mask of shape {shape}, norm_first={norm_first}."
            text = f"{message} The mask should make a difference."
            assert_equal(bool((expected - plain).abs().max() > 1e-6), True, text, name="'it does'")
            text = f"{message} It should mean the same as with all axes written out."
            assert_close(found, expected, text, name="output", against="with the mask in full")
x = torch.tensor(rng.normal(size=(2, 4, 12)))
mask = torch.ones(2, 4, 4, dtype=torch.bool)
mask[1, 2] = False
for title, one in (("one word may attend to nothing", mask), ("no word may attend to anything", mask & False)):
    with check(title, points=0.375):
        for norm_first in (False, True):
            ((output, weights),) = forward(norm_first, x, one)
            sums = one.any(-1).double()[:, None].expand(2, 3, 4)
            message = f"{title}, norm_first={norm_first}: its weights are 0, those of others sum to 1."
            assert_close(weights.sum(-1), sums, message, name="the sums of the weights")
            found = [bool(output.isfinite().all()), bool((output.abs().amax(-1) > 1e-6).all())]
            message = f"{title}, norm_first={norm_first}: the residual goes on, without NaN."
            assert_equal(found, [True, True], message, name="'the output is finite', 'and not 0'")
checks_passed("TransformerBlock")
### END HIDDEN TESTS


# %% check="TransformerBlock_gradients" points=1.5 card="Gradients flow through both results to `x` and to every parameter, and are finite"
# Hidden checks of TransformerBlock: gradients through both results, to x and to all parameters.
### BEGIN HIDDEN TESTS
@probe
def slopes(norm_first, x, steps, place, direction):
    """How a result changes along a step, by its gradient and by two calls; the same of x alone."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        block = TransformerBlock(12, 3, 7, norm_first).double().eval()
    leaves = [x.clone().requires_grad_(), *block.parameters()]
    steps = [steps[i % len(steps)][: leaf.numel()].view(leaf.shape) for i, leaf in enumerate(leaves)]
    loss = (block(leaves[0])[place] * direction).sum()
    gradients = torch.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else []
    each = [0.0 if one is None else float((one * step).sum()) for one, step in zip(gradients, steps)]
    with torch.no_grad():
        losses = []
        for size in (1e-5, -2e-5):
            for leaf, step in zip(leaves, steps):
                leaf.add_(size * step)
            losses.append(float((block(leaves[0])[place] * direction).sum()))
    return sum(each), (losses[0] - losses[1]) / 2e-5, (sum(each[:1]), sum(each[1:]))


rng = check_rng()
x, steps = torch.tensor(rng.normal(size=(2, 4, 12))), torch.tensor(rng.normal(size=(5, 144)))
for place, name, shape in ((0, "the output", (2, 4, 12)), (1, "the weights", (2, 3, 4, 4))):
    for norm_first in (False, True):
        with check(f"through {name}, norm_first={norm_first}", points=0.375):
            found, by_calls, reached = slopes(norm_first, x, steps, place, torch.tensor(rng.normal(size=shape)))
            message = (
                f"A gradient should flow through {name} to x and to every parameter: what it says of a small "
                "step is compared with two calls. Check first: is something detached?"
            )
            reached = [abs(one) > 1e-9 for one in reached]
            assert_equal(reached, [True, True], message, name="'it reaches x', 'it reaches parameters'")
            assert_close(found, by_calls, message, name="the slope", rtol=1e-4, atol=1e-7, against="by two calls")
checks_passed("TransformerBlock")
### END HIDDEN TESTS

# %% check="TransformerBlock_inputs" points=0.5 card=["no dropout", "`x` and `mask` not changed"]
# Hidden checks of TransformerBlock: the arguments keep their values; no dropout in training mode.
### SIDE CONDITION: counts once another check of TransformerBlock passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(norm_first, x, mask):
    with torch.no_grad():
        TransformerBlock(12, 3, 7, norm_first).double()(x, mask)
    return norm_first, x, mask


@probe
def in_both_modes(norm_first, x):
    with torch.no_grad():
        block = TransformerBlock(12, 3, 7, norm_first).double()
        return [block.train(mode)(x.clone())[0] for mode in (True, False)]


rng = check_rng()
x, mask = torch.tensor(rng.normal(size=(2, 4, 12))), torch.tensor(rng.random((2, 4, 4)) < 0.9)
for norm_first in (False, True):
    assert_unchanged(arguments_after, norm_first=norm_first, x=x, mask=mask)
    trained, evaluated = in_both_modes(norm_first, x)
    message = f"norm_first={norm_first}: training mode should give what evaluation mode gives."
    assert_close(trained, evaluated, message, name="the output", against="in evaluation mode")
### END HIDDEN TESTS


# %% [markdown]
# <details><summary>Hint</summary>
#
# Write the pre-norm branch and the post-norm branch as two separate pieces of `forward`. Each has
# two steps, one a part. In the second step the residual starts from the result of the **first**
# step. The attention returns two things; keep both. Draw the arrows of the formula on paper if
# you lose the thread.
#
# </details>
#
# The check above put the same numbers into `nn.TransformerEncoderLayer`, in both orders, and got
# the same results. So your block **is** torch's block (without its dropout). One thing to
# remember when you use torch's: in its `src_mask` a boolean `True` means **hidden**, the opposite
# of this course.
#
# ### Once without torch
#
# Nothing in the block needs torch but training. Here is the whole of it, multi-head attention, layer
# norm and feed-forward, in plain NumPy, with the weights of `nn.TransformerEncoderLayer`:


# %% tags=["demonstration"]
def norm_in_numpy(x, gamma, beta, eps=1e-5):  # (n, d_model) -> (n, d_model)
    centred = x - x.mean(-1, keepdims=True)
    return gamma * centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) + beta


def heads_in_numpy(x, W_in, b_in, W_o, b_o, num_heads):  # (n, d_model) -> (n, d_model)
    n, d_model = x.shape
    Q, K, V = (x @ W_in.T + b_in).reshape(n, 3, num_heads, -1).transpose(1, 2, 0, 3)
    scores = Q @ K.transpose(0, 2, 1) / np.sqrt(d_model // num_heads)  # (num_heads, n, n)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    joined = (e / e.sum(-1, keepdims=True) @ V).transpose(1, 0, 2).reshape(n, d_model)
    return joined @ W_o.T + b_o


def block_in_numpy(x, p, num_heads):  # pre-norm; p: the parameters of torch's block
    y = norm_in_numpy(x, p["norm1.weight"], p["norm1.bias"])
    attention = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    x = x + heads_in_numpy(y, *(p["self_attn." + name] for name in attention), num_heads)
    y = norm_in_numpy(x, p["norm2.weight"], p["norm2.bias"])
    hidden = np.maximum(0, y @ p["linear1.weight"].T + p["linear1.bias"])
    return x + hidden @ p["linear2.weight"].T + p["linear2.bias"]


torch.manual_seed(0)
theirs = nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True, norm_first=True).double()
numbers = {name: value.detach().numpy() for name, value in theirs.named_parameters()}
x = np.random.default_rng(0).normal(size=(5, 16))
difference = block_in_numpy(x, numbers, 4) - theirs(torch.tensor(x)[None])[0].detach().numpy()
assert np.abs(difference).max() < 1e-10
print("NumPy and torch differ by less than 1e-10:", np.abs(difference).max() < 1e-10)

# %% [markdown]
# ### Short answer 2: `answer_parameters`
#
# How many parameters does `TransformerBlock(64, 8, 256)` have? Count on paper: four linear layers
# with bias in the attention, two linear layers with bias in the feed-forward, and the norms.
#
# - a) 49,152
# - b) 49,856
# - c) 49,984
# - d) 166,464

# %% answer="answer_parameters"
### BEGIN SOLUTION
answer_parameters = "c"
### END SOLUTION

# %% check="answer_parameters" points=1
check_answer("answer_parameters", answer_parameters)

# %% tags=["demonstration"]
block = TransformerBlock(64, 8, 256)
for name, part in block.named_children():
    print(f"{name:13s}{sum(p.numel() for p in part.parameters()):8,d}")
total = sum(p.numel() for p in block.parameters())
theirs = sum(p.numel() for p in nn.TransformerEncoderLayer(64, 8, 256).parameters())
print(f"{'together':13s}{total:8,d}   torch's block: {theirs:,d}")
assert total == theirs

# %% [markdown]
# With $d_{ff} = 4\, d_{model}$ the feed-forward has about twice as many parameters as the
# attention, and in most transformers it has more.
#
# ## 5. A stack learns to sort
#
# Now build something from your blocks. The task: **read ten digits, write them in order.**
#
# | position | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |
# |---|---|---|---|---|---|---|---|---|---|---|
# | reads | 7 | 2 | 2 | 9 | 0 | 5 | 1 | 5 | 8 | 3 |
# | writes | 0 | 1 | 2 | 2 | 3 | 5 | 5 | 7 | 8 | 9 |
#
# All ten answers are given at once, there is no loop. There are $10^{10}$ such texts and training
# shows about 10,000 of them. So the model cannot learn them by heart. It must find a method.
#
# The stack: a vector for each digit, plus a learned vector for each position (lesson 7), then the
# blocks, then a linear layer that gives a score to each digit. A pre-norm stack gets one more norm
# after its last block, because nothing else keeps its sum small.


# %% tags=["demonstration"]
class Stack(nn.Module):
    """Vectors for symbols and positions, blocks, and a score for each symbol."""

    def __init__(self, depth=2, norm_first=False, d_model=64, n=10, symbols=10, d_ff=None):
        super().__init__()
        self.n = n
        self.symbols = nn.Embedding(symbols, d_model)
        self.positions = LearnedPositionalEmbedding(n, d_model)  # lesson 7
        sizes = d_model, 4, d_ff or 2 * d_model  # four heads
        self.blocks = nn.ModuleList([TransformerBlock(*sizes, norm_first) for _ in range(depth)])
        self.last_norm = LayerNorm(d_model) if norm_first else nn.Identity()
        self.read = nn.Linear(d_model, symbols)

    def forward(self, texts, masks=None):  # texts (batch, n); masks: one for each block, or None
        x = self.positions(self.symbols(texts))  # (batch, n, d_model)
        maps = []
        for number, block in enumerate(self.blocks):
            x, weights = block(x, None if masks is None else masks[number])
            maps.append(weights)  # (batch, 4, n, n)
        return self.read(self.last_norm(x)), maps  # scores (batch, n, symbols)


def in_order(texts):
    """The right answer: each text sorted."""
    return texts.sort(-1).values


# %% [markdown]
# One function trains all models of this lesson, one function measures them on texts that they
# have never seen. The learning rate can rise from 0 over the first steps. This is called
# **warm-up**. It can also fall to 0 at the end. Its highest value is 0.01 unless something else is
# said: two blocks stand that. Section 8 tries it on twelve.


# %% tags=["demonstration"]
def train(model, task, label, steps, lr=1e-2, warm_up=0, fall=False, batch=64, seed=0):
    """Train on random texts; return the model and its accuracy on every batch, before the step."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)  # fused: less time a step

    def rate(step):
        rising = min(1.0, (step + 1) / warm_up) if warm_up else 1.0
        return min(rising, (steps - step) / (steps - warm_up)) if fall else rising

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    n, symbols = model.n, model.symbols.num_embeddings
    right = []
    for _ in progress(steps, label):
        texts = torch.randint(symbols, (batch, n), generator=generator)
        scores, _ = model(texts)
        loss = F.cross_entropy(scores.flatten(0, 1), task(texts).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        right.append((scores.argmax(-1) == task(texts)).float().mean().item())
    return model, np.array(right)


def accuracy(model, task, masks=None):
    """On 2000 new texts: share of right symbols, and share of texts without any mistake."""
    n, symbols = model.n, model.symbols.num_embeddings
    texts = torch.randint(symbols, (2000, n), generator=torch.Generator().manual_seed(9999))
    with torch.no_grad():
        right = model(texts, masks)[0].argmax(-1) == task(texts)
    return right.float().mean().item(), right.all(-1).float().mean().item()


def new_stack(seed=0, **how):
    """A new stack with random weights from a seed."""
    torch.manual_seed(seed)
    return Stack(**how)


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
sorter, _ = train(new_stack(), in_order, "sort, two blocks", 160, warm_up=40, fall=True)
symbols_right, texts_right = accuracy(sorter, in_order)
print(f"new texts: digits right {symbols_right:.4f}, whole texts right {texts_right:.3f}")
sample = torch.tensor([[7, 2, 2, 9, 0, 5, 1, 5, 8, 3]])
with torch.no_grad():
    print("reads ", *sample[0].tolist(), "\nwrites", *sorter(sample)[0].argmax(-1)[0].tolist())
assert texts_right > 0.98

# %% [markdown]
# Nearly every text is sorted without a mistake. Two blocks, without any loop or comparison in the
# code. **How does it do that?**
#
# ## 6. Reading the method
#
# Attention maps can be read. But what should stand on the axes? For one text one could draw ten
# positions by ten positions. The sorted order is different in each text, so we average over 2000
# texts, in two ways:
#
# - **by place**: how much weight goes from output position $p$ to input position $k$?
# - **by digit**: how much weight does output position $p$ give to a 0, to a 1, ..., to a 9,
#   wherever it stands? (Weight for each occurrence, scaled so that a row sums to 1.)
#
# **Predict, then run.** One of the two maps is nearly flat. Which one? And where in the other one
# is the weight?


# %% tags=["demonstration", "nbval-ignore-output"]
def by_place_and_digit(model, number):
    """Two maps of one block's attention, heads averaged: (n, n) and (n, 10)."""
    texts = torch.randint(10, (2000, 10), generator=torch.Generator().manual_seed(9999))
    with torch.no_grad():
        weights = model(texts)[1][number].mean(1)  # (batch, n, n), heads averaged
    is_digit = F.one_hot(texts, 10).float()  # (batch, n, 10)
    digits = (weights @ is_digit).sum(0) / is_digit.sum((0, 1))  # (n, 10), for each occurrence
    return weights.mean(0), digits / digits.sum(-1, keepdim=True)


by_place, by_digit = by_place_and_digit(sorter, 1)
places = [str(p) for p in range(10)]
figure, panels = plt.subplots(1, 2, figsize=(8.5, 4.2))
draw_heatmap(panels[0], by_place, places, places, row_label="output position", vmax=0.5,
             column_label="input position")  # fmt: skip
draw_heatmap(panels[1], by_digit, places, places, row_label="output position", vmax=0.5,
             column_label="digit, wherever it stands")  # fmt: skip
panels[0].set_title("second block, by place")
panels[1].set_title("second block, by digit")
for text in [*panels[0].texts, *panels[1].texts]:
    text.set_fontsize(7)
figure.tight_layout()
centre = by_digit @ torch.arange(10.0)  # the mean digit that each output position looks at
print("mean digit looked at, by output position:", centre.numpy().round(1))
show(
    figure,
    "Figure 2. The same weights, averaged in two ways. Where a digit stands hardly matters. Output position 0 "
    "looks for small digits, position 9 for large ones: a band, which does not say which one to write.",
    "Two heat maps of 10 by 10. Left, output by input position: all entries near 0.1. Right, "
    "output position by digit: a band from small digits at position 0 to large digits at "
    "position 9.",
    "by place\n\n" + text_table(by_place, places, places, corner="output \\ input")
    + "\n\nby digit\n\n" + text_table(by_digit, places, places, corner="output \\ digit"),
)  # fmt: skip

# %% [markdown]
# The method of this stack begins to show. Each output position $p$ asks: "who holds a digit of about the size
# that usually comes at place $p$?" It asks for **content**, not for places. What comes back is an
# average over several digits near the right one. Does the answer need all of them?
#
# A map is a hint. An experiment is better. We take the trained model and **hide** some digits from
# the second block, with a mask that depends on the right answer:
#
# - hide all digits that differ from the right digit by more than 2
# - hide as many digits at random as there are far ones
# - hide the right digit itself, wherever it stands
#
# **Predict, then run.** Which of these does the most harm, and which the least? Call them "far",
# "random" and "right".


# %% tags=["demonstration", "guess"]
guess_harm = ("right", "random")  # write (most harm, least harm)

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
def hiding(model):
    """Share of right digits when the second block may not look at certain digits."""
    texts = torch.randint(10, (2000, 10), generator=torch.Generator().manual_seed(9999))
    distance = (texts[:, None, :] - in_order(texts)[:, :, None]).abs()  # (batch, n_q, n_k)
    far = distance > 2
    order = torch.rand(far.shape, generator=torch.Generator().manual_seed(1)).argsort(-1)
    as_many = order < far.sum(-1, keepdim=True)  # as many as in `far`, at random places
    hidden = {"nothing": far & False, "far digits": far, "as many at random": as_many}
    hidden["the right digit"] = distance == 0
    hidden["at random, the right one spared"] = as_many & (distance > 0)
    hidden["all but the right digit"] = distance > 0
    return {name: accuracy(model, in_order, [None, ~one])[0] for name, one in hidden.items()}


sorters = [sorter]
for seed in range(1, 5):
    label = f"sort, seed {seed}"
    one, _ = train(new_stack(seed), in_order, label, 100, warm_up=30, fall=True, seed=seed)
    sorters.append(one)
in_all = [hiding(one) for one in sorters]
hiding_leaves = in_all[0]
for name in hiding_leaves:
    five = [leaves[name] for leaves in in_all]
    print(f"hidden: {name:31s} digits right {five[0]:.2f}   five stacks: {min(five):.2f} to {max(five):.2f}")

# %% tags=["demonstration"]
called = {"far digits": "far", "as many at random": "random", "the right digit": "right"}
by_harm = sorted(called, key=hiding_leaves.get)
reply("guess_harm", guess_harm, (called[by_harm[0]], called[by_harm[-1]]))

# %% [markdown]
# In all five stacks (four of them trained for 100 steps): hiding the right digit, or as many at random as there are far ones, does great harm;
# hiding the far digits does little or none. It is tempting to conclude that the second block uses all the digits of
# the band in figure 2. The last two lines are against it: where the right digit is spared, hiding
# at random does hardly any harm, and neither does hiding **all but** the right digit. The second block
# needs the **right** digit, and its neighbours in the band hardly at all.
#
# But be careful with the lines that leave the answer whole: their masks were made from the right
# answer. Whoever may see only the right digit is also told something. What an experiment breaks says
# more than what it leaves whole.
#
# To sort, one must also **count**: two 3s in the text, two 3s in the answer. "Block 1 counts, block 2
# fetches" is the story that suggests itself. It takes more tools, and more models than one, to find out
# whether it is true: lesson 13 does it.
#
# ## 7. For the curious: take one part away
#
# Every textbook says what each part is good for. Let us measure it: remove one part **before**
# training, in every block, and train the rest in the same way. How does one remove a part without
# touching the block's code? We put something else in its place:
#
# | removed | how |
# |---|---|
# | attention, feed-forward | a part that gives 0 |
# | norms, positions | `nn.Identity()`, which gives back its input |
# | residual connections | a part that gives $f(x) - x$. In post-norm the block adds $x$, and $f(x)$ is left |


# %% tags=["demonstration"]
def first_of(given, named):
    """The word vectors that a part was called with, by place or by name."""
    return given[0] if given else named["query" if "query" in named else "x"]


class Zero(nn.Module):
    """Instead of a part: gives 0."""

    def __init__(self, with_weights):
        super().__init__()
        self.with_weights = with_weights

    def forward(self, *given, **named):
        zero = torch.zeros_like(first_of(given, named))
        return (zero, None) if self.with_weights else zero


class MinusInput(nn.Module):
    """Around a part f: gives f(x) - x, so that a post-norm block has no residual."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, *given, **named):
        result, x = self.part(*given, **named), first_of(given, named)
        return (result[0] - x, result[1]) if isinstance(result, tuple) else result - x


def without(model, part):
    """Remove a part from every block of a post-norm stack that has not been trained."""
    for block in model.blocks:
        if part == "attention":
            block.attention = Zero(with_weights=True)
        elif part == "feed-forward":
            block.feed_forward = Zero(with_weights=False)
        elif part == "ReLU":
            first, second = block.feed_forward.linear1, block.feed_forward.linear2
            block.feed_forward = nn.Sequential(first, second)
        elif part == "norms":
            block.norm1, block.norm2 = nn.Identity(), nn.Identity()
        elif part == "residuals":
            block.attention = MinusInput(block.attention)
            block.feed_forward = MinusInput(block.feed_forward)
        elif part == "positions":
            model.positions = nn.Identity()
    return model


# %% [markdown]
# **Predict, then run.** Seven stacks learn to sort, 120 steps each. One is whole. Four lack
# attention, residuals, norms or the feed-forward in both blocks. One has no positions, one has only
# one block. Which of the six put more than eight digits of ten in the right place?


# %% tags=["demonstration", "guess"]
# Write a set of these: "attention", "residuals", "norms", "feed-forward", "positions", "second block".
guess_spared = {"norms", "second block"}

# %% tags=["demonstration", "nbval-ignore-output"]
def sorts_without(part):
    """Shares of digits and of texts right after 120 steps of a stack without this part."""
    model = without(new_stack(depth=1 if part == "second block" else 2), part)
    train(model, in_order, "missing: " + part, 120, warm_up=30, fall=True)
    return accuracy(model, in_order)


two_blocks = {part: sorts_without(part) for part in ("nothing", "attention", "positions")}

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
parts = ("residuals", "norms", "feed-forward", "second block")
two_blocks |= {part: sorts_without(part) for part in parts}
for part, (digits, whole) in two_blocks.items():
    print(f"missing: {part:13s} digits right {digits:.2f}   whole texts right {whole:.2f}")

# %% tags=["demonstration"]
came_out = {part for part, (digits, _) in two_blocks.items() if digits > 0.8} - {"nothing"}
reply("guess_spared", guess_spared, came_out, "Only attention and positions cannot be spared.")

# %% [markdown]
# Only attention and positions cannot be spared. (The 0.40 without attention is what a digit's own
# value and its place tell: nobody who sees no more can do better.) Each of the others can be, and still more
# than nine digits of ten are right. Whole texts tell more: without norms or the second block nearly all are
# right, without residuals or the feed-forward clearly fewer after these 120 steps. These are single runs. Four other seeds, outside
# this notebook, say the same: at most 0.40 of the digits without the first two, at least 0.92 without any of the
# others; whole texts 0.96 or more, but 0.46 to 0.82 without residuals and 0.54 to 0.73 without the
# feed-forward. So what are these two good for? Residuals are needed in **deep** stacks, and the feed-forward
# helps to **store facts**. We measure both below.
#
# (All this is asked **before** training. What a trained model uses a part for is another question, with
# other controls: lesson 5 leaves heads out, lesson 13 asks by what a part should be replaced.)
#
# ### What the feed-forward is good for
#
# Sorting needs comparing, and attention compares. Now a task that needs **memory**. There are
# 24 symbols. Somebody has filled a table of $24 \times 24$ with random symbols: 576 facts, without
# any rule. For each symbol of a text the model must say what the table holds for it and the next
# symbol. Finding the next symbol is easy for attention (lesson 5). The facts must be stored.
#
# We take one narrow block ($d_{model} = 32$, $d_{ff} = 128$), once whole, once without the
# feed-forward, and once with the feed-forward but without its ReLU: as many parameters as the
# whole block.

# %% tags=["demonstration", "nbval-ignore-output"]
table = torch.randint(24, (24, 24), generator=torch.Generator().manual_seed(5))


def look_up(texts):
    """The fact about each symbol and the next one (the last one's next is the first)."""
    return table[texts, texts.roll(-1, -1)]


facts = {}
for part in ("nothing", "feed-forward", "ReLU"):
    model = new_stack(depth=1, d_model=32, d_ff=128, n=8, symbols=24)
    label = f"facts, missing: {part}"
    model, _ = train(without(model, part), look_up, label, 240, warm_up=50, fall=True)
    facts[part] = accuracy(model, look_up)[0]
model = without(new_stack(depth=1, d_model=32, d_ff=128, n=8, symbols=24), "feed-forward")
model, _ = train(model, look_up, "the same, twice the steps", 480, warm_up=50, fall=True)
facts["feed-forward, twice the steps"] = accuracy(model, look_up)[0]
for part, right in facts.items():
    print(f"facts, missing: {part:29s} right {right:.3f}")

# %% [markdown]
# After 240 steps the whole block knows the whole table. Without the feed-forward, or without its ReLU, half of it
# or more is still wrong. (Four other seeds, outside this notebook: 1.00 against 0.32 to 0.47.) The ReLU is what
# makes the wide layer worth its parameters: without it, two linear layers are one linear layer,
# $(xW_1)W_2 = x(W_1W_2)$. Geva, Schuster, Berant and Levy (2021) looked into a trained language model and describe
# its feed-forward layers as memories.
#
# Are they the *only* place for facts? The last line says no: with twice the steps the block without a
# feed-forward knows nine tenths of the table (with four times the steps all of it: outside this notebook). Softmax
# and norms are no straight lines either. So a table of this size is **faster to learn** with a feed-forward, and
# can be stored without. (A larger one, 48 by 48, one run outside this notebook: the whole block knows all of it
# after 960 steps; without the feed-forward half is still wrong after 1,920.)
#
# ## 8. For the curious: twelve blocks
#
# Now go deep: twelve blocks. Before any training we measure two things, with random weights:
#
# - How large is the gradient in each block? We take that of `linear1` in its feed-forward (the
#   root of the sum of the squared entries).
# - Are the words of a text still different after each block? We take the mean cosine between two
#   different words of a text, as in figure 1.
#
# It is often said that without residual connections "gradients vanish". **Predict, then run:** by
# which factor is the gradient of block 1 smaller than that of block 12, without residuals: 10,
# 10,000, a million or more? And when the norms are missing, too?


# %% tags=["demonstration", "nbval-ignore-output"]
# Very small gradients: they differ a little from machine to machine.
def at_the_start(kind, seed):
    """Before training, for each of 12 blocks: size of the gradient, mean cosine of two words."""
    model = new_stack(seed, depth=12, norm_first=kind == "pre-norm", d_model=32, n=6)
    for part in ("norms", "residuals"):
        if part in kind:
            without(model, part)
    texts = torch.randint(10, (64, 6), generator=torch.Generator().manual_seed(seed))
    loss = F.cross_entropy(model(texts)[0].flatten(0, 1), in_order(texts).flatten())
    loss.backward()
    inner = [p for name, p in model.named_parameters() if name.endswith("linear1.weight")]
    x, alike = model.positions(model.symbols(texts)), []
    for block in model.blocks:
        x, _ = block(x)
        cosine = F.cosine_similarity(x[:, :, None], x[:, None], dim=-1)  # (batch, n, n)
        alike.append((cosine.sum((-2, -1)).mean().item() - 6) / 30)  # without the diagonal
    return [p.grad.norm().item() for p in inner], alike


kinds = ("pre-norm", "post-norm", "no norms", "no residuals", "no residuals, no norms")
started = {k: np.mean([at_the_start(k, s) for s in range(5)], axis=0) for k in kinds}  # (2, 12)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6))
heights = (0.28, 0.62, 0.47, 1.03, 0.93)  # of the names, so that none lies on another
for (kind, (sizes, alike)), style, height in zip(started.items(), ("o-", "s--", "^-.", "x:", "v:"), heights):
    (line,) = left.semilogy(range(1, 13), sizes, style)
    right.plot(range(1, 13), alike, style)
    right.text(12.9, height, kind.replace(", ", ",\n"), color=line.get_color(), va="center", fontsize=9)
    print(f"{kind:22s} gradient, block 1 / block 12: {sizes[0] / sizes[-1]:7.1e}   "
          f"cosine of two words after block 12: {alike[-1]:.2f}")  # fmt: skip
left.set(xlabel="block (12 is next to the answer)", ylabel="size of the gradient")
left.annotate("without residuals and norms\nthere is practically none", (1.5, 1e-13), (4, 2e-13), va="center", fontsize=9,
              arrowprops={"arrowstyle": "->"})  # fmt: skip
right.set(xlabel="after block", ylabel="mean cosine of two words", ylim=(0, 1.08))
figure.tight_layout()
blocks = [1, 2, 4, 8, 12]
rows = [[math.log10(sizes[b - 1]) for b in blocks] for sizes, _ in started.values()]
cosine_rows = [[alike[b - 1] for b in blocks] for _, alike in started.values()]
show(
    figure,
    "Figure 3. Before training, mean of five seeds. With residuals the gradients of all blocks are about equal. "
    "Without, all words of a text point in one direction after two blocks, with norms or without.",
    "Two plots over 12 blocks. Left, gradient sizes on a log scale: nearly flat for pre-norm, "
    "post-norm and no norms; rising about tenfold for no residuals; rising from 1e-14 to 1e-2 "
    "without residuals and norms. Right, mean cosine of two words: without residuals it reaches 1 "
    "at the second block, the others stay clearly below.",
    "log10 of the gradient's size\n\n"
    + text_table(rows, kinds, [f"block {b}" for b in blocks], corner="stack")
    + "\n\nmean cosine of two words\n\n"
    + text_table(cosine_rows, kinds, [f"after block {b}" for b in blocks], corner="stack"),
)

# %% [markdown]
# At this depth gradients vanish only if residuals **and** norms are missing. With norms the first
# block still gets a gradient. But without residuals all words have become alike: attention alone makes
# words alike doubly exponentially with depth (Dong and others, 2021). Two blocks without residuals could
# find their way out of that (section 7). Can twelve?
#
# Now train: seven stacks of 12 blocks learn to sort 6 digits, 80 steps each. Four use the rate 0.01
# of section 5: post-norm, post-norm with warm-up over the first 40 steps, pre-norm, and a stack
# without norms. One is post-norm at 0.003. Two are post-norm without residuals, one at each rate.
#
# **Predict, then run.** Which of the seven learn?


# %% tags=["demonstration"]
def train_deep(name, seed=0):
    """A stack of 12 blocks; its accuracy on each training batch, all of them new texts."""
    model = new_stack(seed, depth=12, norm_first="pre-norm" in name, d_model=32, n=6)
    for part in ("norms", "residuals"):
        if part in name:
            without(model, part)
    how = {"lr": 3e-3 if "0.003" in name else 1e-2, "warm_up": 40 if "warm-up" in name else 0}
    return train(model, in_order, name, 80, batch=32, seed=seed, **how)[1]


# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
names = ("post-norm, rate 0.003", "post-norm, rate 0.01", "post-norm, rate 0.01, warm-up")
deep = {name: train_deep(name) for name in names}

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
names = ("pre-norm, rate 0.01", "no norms, rate 0.01", "no residuals, rate 0.003",
         "no residuals, rate 0.01")  # fmt: skip
deep |= {name: train_deep(name) for name in names}

# %% tags=["demonstration", "nbval-ignore-output"]
texts = in_order(torch.randint(10, (20000, 6), generator=torch.Generator().manual_seed(1)))
blind = F.one_hot(texts, 10).float().mean(0).amax(-1).mean().item()  # best without looking
final = {name: right[-20:].mean() for name, right in deep.items()}
for name, right in final.items():
    print(f"{name:31s} digits right, last 20 steps: {right:.2f}")
print(f"{'most frequent digit of a place':31s} digits right: {blind:.2f}")
figure, axes = plt.subplots(figsize=(8.4, 4.2))
ends = {"most frequent digit of each place": (blind, "grey")}  # each line's height at the end, and colour
for (name, right), style in zip(deep.items(), ("-", "--", "-.", "-", ":", "-.", "--")):
    smooth = np.convolve(right, np.ones(10) / 10, "valid")  # mean over ten steps
    (line,) = axes.plot(np.arange(len(smooth)) + 10, smooth, style, linewidth=2)
    ends[name] = smooth[-1], line.get_color()
axes.plot([10, 80], [blind, blind], color="grey", linewidth=1)
lowest = 0.0
for name, (height, colour) in sorted(ends.items(), key=lambda one: one[1][0]):  # the names, none on another
    lowest = max(height, lowest + 0.065)
    axes.text(81, lowest, name, color=colour, va="center", fontsize=9)
axes.set(xlabel="step", ylabel="share of digits right", xlim=(8, 125), ylim=(0, 1), xticks=range(10, 81, 10))
steps = range(20, 81, 20)
rows = [[right[step - 20 : step].mean() for step in steps] for right in deep.values()]
show(
    figure,
    "Figure 4. Twelve blocks, one run each. Four stacks learn, three stay below the grey line: who always writes the "
    "most frequent digit of each place, without looking, does better. One task, 80 steps: no word on larger models.",
    "Accuracy over 80 steps for seven stacks of 12 blocks, and a grey line at 0.3. The table has "
    "the numbers.",
    text_table(rows, list(deep), [f"steps {s - 19} to {s}" for s in steps], corner="stack"),
)

# %% [markdown]
# ### Short answer 3: `answer_depth`
#
# Which sentence do figures 3 and 4 and their numbers support?
#
# - a) A deep post-norm stack needs warm-up in order to learn.
# - b) Of the stacks that have residuals, post-norm is the most sensitive to a high learning rate.
# - c) A deep stack needs norms in order to learn.
# - d) Without residuals the stack fails because the rate 0.01 is too high for it.

# %% answer="answer_depth"
### BEGIN SOLUTION
answer_depth = "b"
### END SOLUTION

# %% check="answer_depth" points=1
check_answer("answer_depth", answer_depth)

# %% [markdown]
# In numbers, of this run, and in brackets of four other seeds outside this notebook:
#
# - At 0.01 post-norm is not slow, it is **stuck**: about 0.1 (0.09 to 0.19), below the grey line (0.30). Warm-up
#   helps, but not fully: 0.7 (0.60 to 0.70); when the full rate is reached the curve falls back or stands still for
#   some twenty steps. At 0.003 it is 0.9 (0.86 to 0.90).
# - Pre-norm learns at 0.01 from the first step: 0.9 (0.82 to 0.88). A stack without norms also learns: 0.75 (0.74 to
#   0.80).
# - Without residuals nothing is learned, at either rate (nor in any other run, nor in 320 steps at 0.001).
#
# So here **where the norm stands** decides whether the first steps may be as large as 0.01. Xiong and others (2020)
# explain it with the gradients of a new post-norm stack. In figure 3 the post-norm curve looks
# harmless, so here the start alone does not tell the story: the failure comes in the first steps.

# %% tags=["demonstration", "nbval-ignore-output"]
# What sections 1 to 8 say about the measurements, once more, for your machine. No need to read it.
assert means["12 x replaced"].min() > 0.999 and means["  without neighbours"].max() < 0.5
assert magnitudes["  without neighbours"].min() > 0.4 and magnitudes["at the start"].max() < 0.25
assert means["at the start"].max() < 0.1 < means["12 x added"].min() and means["12 x added"].max() < 0.6
assert by_place.max() < 0.25 and centre[9] - centre[0] > 3 and (centre.diff() > -0.3).all()
for leaves in in_all:  # five stacks; observed at the edge: 0.95, 0.79, 0.57, 0.97
    assert leaves["far digits"] > 0.92 and leaves["as many at random"] < 0.85
    assert leaves["the right digit"] < 0.7 and leaves["the right digit"] < leaves["as many at random"] - 0.1
    assert min(leaves["at random, the right one spared"], leaves["all but the right digit"]) > 0.94
assert two_blocks["attention"][0] < 0.55 and two_blocks["positions"][0] < 0.4
assert min(two_blocks[part][0] for part in ("nothing", *parts)) > 0.9
assert min(two_blocks[part][1] for part in ("nothing", "norms", "second block")) > 0.88
assert max(two_blocks[part][1] for part in ("residuals", "feed-forward")) < 0.86
assert facts["nothing"] > 0.95 and max(facts["feed-forward"], facts["ReLU"]) < 0.65
assert facts["feed-forward, twice the steps"] > 0.8  # observed: 0.94, 0.90
ratio = {kind: sizes[0] / sizes[-1] for kind, (sizes, _) in started.items()}
assert 0.02 < ratio["no residuals"] < 0.3 and ratio["no residuals, no norms"] < 1e-9
assert all(0.3 < ratio[kind] < 4 and started[kind][1][-1] < 0.9 for kind in kinds[:3])
assert all(started[kind][1][1] > 0.98 for kind in kinds[3:])
stuck = ("post-norm, rate 0.01", "no residuals, rate 0.003", "no residuals, rate 0.01")
assert max(final[name] for name in stuck) < blind
assert min(final[name] for name in deep if name not in stuck) > blind + 0.15
assert final["pre-norm, rate 0.01"] > final["no norms, rate 0.01"]
assert final["post-norm, rate 0.003"] > final["post-norm, rate 0.01, warm-up"] + 0.1

# %% [markdown]
# ### Written answer: `written_block`
#
# In 5 to 8 sentences, for a friend who has read only the formula of the block (4 points):
#
# 1. What does the residual connection do, and which measurement of this lesson shows it?
# 2. Post-norm or pre-norm: what is the difference on the residual path, and what did you measure
#    with 12 blocks? Say at which learning rates.
# 3. A friend writes: "I removed the feed-forward and nine digits of ten are still right. So
#    transformers do not need it." What do you answer?

# %% [markdown] written="block" points=4
# ### BEGIN SOLUTION
# A residual connection adds a part's result to its input instead of replacing it. So a word stays
# itself while it collects, and the gradient has a path through plus signs to the first block.
# Twelve random attention layers without it made all words equal (figure 1), a new stack of 12
# blocks without it does the same (figure 3), and such a stack learned nothing at either rate. In
# post-norm the residual path passes through a norm after every part; in pre-norm only the input
# of a part is normalised and the path itself has only sums. With 12 blocks post-norm learned at a
# rate of 0.003 without warm-up, failed at 0.01, and learned at 0.01 with 40 steps of warm-up, but
# less; pre-norm learned at 0.01 without warm-up. To the friend: it depends on the task, and on what
# one counts. Digits stayed right, but fewer whole texts were; and of a table of random facts half was
# still wrong without the feed-forward after the training that the whole block needed. One task on which a part
# is not needed does not show that it is never needed.
#
# **Marking scheme** (4 points). 1 point: adds instead of replaces (words stay different, or a
# path for the gradient), with one measurement. 1 point: where the norm stands on the residual
# path. 1 point: the measured results **with** learning rates; no point for "post-norm does not
# train" without a rate. 1 point: it helps in another task (facts), so one task does not settle it.
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > I would ask: nine digits of ten, or nine texts of ten? If the mistakes fell at random, nine right
# > digits of ten would leave about a third of the texts whole. And sorting only moves what is there;
# > I would try a task in which something must be known.
#
# Good: it questions the measure with a short calculation, and then the choice of the task.
#
# > The residual connection lets the gradient flow. Without it deep networks suffer from vanishing
# > gradients and cannot be trained.
#
# Plausible, and bad: it fits every network and names no measurement. It leaves out what happens on the
# way forward, to the words.
#
# </details>

# %% [markdown]
# ## 9. Find the silent bug
#
# A friend builds a causal block for a language model: no word may see a later one (lesson 6). As in
# GPT-NeoX-20B, attention and feed-forward work side by side on the same $x$:
#
# $$y = x + \operatorname{MHA}(\operatorname{LN}_1(x)) + \operatorname{FFN}(\operatorname{LN}_2(x))$$
#
# That is a choice, and no bug. The block runs, and it trains. Four lines are marked. One of them
# makes all its results worthless.


# %% locked="given_friends_block"
class SideBySide(nn.Module):
    """A block of the parts that it is given; attention and feed-forward both work on x."""

    def __init__(self, norm1, norm2, feed_forward):
        super().__init__()
        self.attention = MultiHeadAttention(16, 2)
        self.norm1 = norm1
        self.norm2 = norm2
        self.feed_forward = feed_forward

    def forward(self, x, mask=None):
        seen, weights = self.attention(self.norm1(x), mask=mask)
        return x + seen + self.feed_forward(self.norm2(x)), weights


def friends_block(n):
    """A causal block for texts of n words, and its mask."""
    mask = torch.tensor(causal_mask(n))  # line a: the mask of lesson 6, as it is
    norm1 = nn.LayerNorm([n, 16])  # line b: torch's layer norm, "it is faster"
    norm2 = LayerNorm(16, eps=1e-3)  # line c: a larger eps
    feed_forward = FeedForward(16, 128)  # line d: a wider feed-forward
    return SideBySide(norm1, norm2, feed_forward).double(), mask


def causal(block, mask):
    """The block as a function of NumPy arrays (n, 16), as leaks_future of lesson 6 wants it."""

    def layer(X):
        with torch.no_grad():
            return block(torch.tensor(X), mask)[0].numpy()

    return layer


# %% [markdown]
# ### Short answer 4: `answer_silent_bug`
#
# Which line is it?
#
# - a) line a: the mask is not turned around
# - b) line b: this norm is not the norm of this lesson
# - c) line c: with this eps the variance is not exactly 1
# - d) line d: the feed-forward is eight times as wide as a word, not four times

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "b"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Which parts of a block may carry something from one word to another? Count the axes that each line
# works on. Lesson 6 has a function that finds such a bug without looking at the code; it expects a
# function of arrays, and `causal`, below the friend's block, turns a block and its mask into such a
# function.
#
# </details>
#
# When you have answered, run the cell. It asks `leaks_future` of lesson 6, and then it changes the
# last word of "the black cat is sleeping" and looks at the result for the first word, "the".

# %% tags=["demonstration"]
torch.manual_seed(3)
block, mask = friends_block(5)
yours = TransformerBlock(16, 2, 32, norm_first=True).double()
sentence = np.random.default_rng(0).normal(size=(5, 16))  # the black cat is sleeping
other = sentence.copy()
other[4] = 3.0  # another last word
for name, layer in (
    ("the friend's block", causal(block, mask)),
    ("your block", causal(yours, mask)),
):
    leaks = leaks_future(layer, 5, 16, np.random.default_rng(1))
    moved = np.abs(layer(other)[0] - layer(sentence)[0]).max()
    print(f"{name:19s} leaks the future: {leaks!s:5s}  change of 'the': {moved:.4f}")
    assert leaks == (name == "the friend's block")

# %% [markdown]
# The attention obeys the mask. But the friend's norm takes one mean and one variance for the
# whole text, so every word feels every other word through them. The same norm also ties the block
# to texts of exactly `n` words, and padding would change all results. No error, no NaN, no
# strange shape, and a validation loss that may well look **better**.
#
# ### Exercise 4: `mended_block`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 5-10 minutes on it.
#
# Copy `friends_block` and fix it: change what is wrong, and keep the friend's other choices.
#
# - `mended_block(n)` returns a pair, block and mask. The mask is that of `causal_mask(n)`, as a
#   torch tensor.
# - The block is a `SideBySide` in float64, for 16 features. Its `feed_forward` is 128 wide, its
#   `norm2` has an `eps` of 1e-3.
# - With the mask no word's result depends on a later word, and a shorter text (with its own causal
#   mask) may go through the same block. So may a batch of texts, `(batch, n, 16)`.


# %% answer="mended_block"
def mended_block(n):
    """friends_block, mended: a causal block for texts of n words, and its mask.

    Returns:
        The block, a SideBySide in float64, and the mask, an (n, n) tensor of bool.
    """
    ### BEGIN SOLUTION
    mask = torch.tensor(causal_mask(n))
    norm1 = LayerNorm(16)
    norm2 = LayerNorm(16, eps=1e-3)
    feed_forward = FeedForward(16, 128)
    return SideBySide(norm1, norm2, feed_forward).double(), mask
    ### END SOLUTION


# %% check="mended_block" points=2 means="No word is affected by a later one, and the friend's own settings are kept." card=["The mask is that of `causal_mask(n)`, as a torch tensor", "The block is a `SideBySide` in float64", "Its `feed_forward` is 128 wide, its `norm2` has an `eps` of 1e-3", "no word's result depends on a later word"]
@probe
def run_block(n, *texts):
    """The block's parameters and classes, its mask, and what it makes of texts of any length."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        block, mask = mended_block(n)
        results = [block(X.clone(), mask[: len(X), : len(X)])[0] for X in texts]
    parameters = {name: value.detach().clone() for name, value in block.named_parameters()}
    return parameters, [one.__name__ for one in type(block).__mro__], mask, results

text = 0.05 * torch.tensor(check_rng().normal(size=(6, 16)))  # so small that eps counts
other, triangle = torch.cat([text[:-1], -text[-1:]]), torch.ones(6, 6, dtype=torch.bool).tril()
with check("no word is affected by a later word", points=0.75):
    *_, (found, changed) = run_block(6, text, other)
    message = "The last word was exchanged: only its own result changes. Check first: over which axes is each mean?"
    assert_equal(bool((found[-1] - changed[-1]).abs().max() > 1e-3), True, message, name="'the last one changes'")
    assert_close(changed[:-1], found[:-1], message, name="the results before it", against="with the old last word")
with check("the friend's mask", points=0.25):
    message = "The mask, second of the pair, is causal_mask(n) as a torch tensor of bool."
    assert_equal(run_block(6)[2], triangle, message, name="the mask")
with check("the friend's wide feed-forward, and SideBySide", points=0.25, side=True):
    parameters, classes, *_ = run_block(6)
    assert_equal("SideBySide" in classes, True, "The block is a SideBySide.", name="'it is one'")
    sizes = [list(parameters[name].shape) for name in parameters if name.startswith("feed_forward.linear1.w")]
    assert_equal(sizes, [[128, 16]], "feed_forward is 128 wide.", name="the sizes of feed_forward.linear1.weight")
with check("norm1, and norm2 with an eps of 1e-3", points=0.75):
    p, *_, (found,) = run_block(6, text)
    attention = MultiHeadAttention(16, 2).double()
    attention.load_state_dict({name[10:]: one for name, one in p.items() if name.startswith("attention.")})
    first, second = (F.layer_norm(text, (16,), eps=eps) for eps in (1e-5, 1e-3))
    for i in (1, 2):
        weight, bias = (p.get(f"feed_forward.linear{i}.{kind}", torch.zeros(1)) for kind in ("weight", "bias"))
        second = F.linear(second.relu() if i == 2 else second, weight, bias)
    message = "Compared with the friend's block, but norm1 an ordinary layer norm. Check first: has norm2 the friend's eps?"
    right = (text + attention(first, mask=triangle)[0] + second).detach()
    assert_close(found, right, message, against="in torch, with your block's parameters")
    sizes = {name: list(p[name].shape) for name in p if name.startswith("norm")}
    assert_equal(list(sizes.values()), [[16]] * 4, "Each norm has a scale and a shift, of 16 numbers.", name="their sizes")
checks_passed("mended_block")


# %% check="mended_block_lengths" points=1 card=["a shorter text (with its own causal mask) may go through the same block. So may a batch of texts", "in float64"]
# Hidden checks of mended_block: shorter texts, the masks of other lengths, a batch.
### BEGIN HIDDEN TESTS
@probe
def run_block(n, *texts):
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        block, mask = mended_block(n)
        kinds = sorted({str(one.dtype) for one in block.parameters()})
        return mask, kinds, [block(X.clone(), mask[: X.shape[-2], : X.shape[-2]].clone())[0] for X in texts]


rng = check_rng()
texts = torch.tensor(rng.normal(size=(3, 9, 16)))
with check("the mask of each length, float64", points=0.25):
    for n in (1, 4, 9):
        mask, kinds, _ = run_block(n)
        triangle = torch.ones(n, n, dtype=torch.bool).tril()
        assert_equal(mask, triangle, f"n = {n}: the mask is causal_mask({n}) as a torch tensor.", name="the mask")
        assert_equal(kinds, ["torch.float64"], "Every parameter is float64.", name="their kinds")
*_, (whole, *shorter) = run_block(9, texts[0], *(texts[0, :length] for length in range(1, 9)))
message = "Different words should have different results, which are not the words."
differ = [bool((whole[1:] - whole[:1]).abs().max() > 1e-3), bool((whole - texts[0]).abs().max() > 1e-3)]
with check("shorter texts", points=0.5):
    assert_equal(differ, [True, True], message, name="'they do', 'they are not'")
    for length, short in enumerate(shorter, start=1):
        message = f"A text that ends after {length} words should give the same results up to there."
        assert_close(short, whole[:length], message, against="in the whole text")
with check("a batch", points=0.25):
    assert_equal(differ, [True, True], message, name="'they do', 'they are not'")
    *_, (batch, *alone) = run_block(9, texts, *texts)
    assert_close(batch, torch.stack(alone), "Each text of a batch should come out as it does alone.", against="for each text alone")
checks_passed("mended_block")
### END HIDDEN TESTS

# %% [markdown]
# ### Puzzle: sort
#
# One layer of attention, and the text comes out **in order**, smallest first. `puzzle_sort` takes `n` different numbers
# and returns scores `(n, n)`: row $p$ is to look at the number that belongs to place $p$. (It may compare all
# numbers with one another, as a layer before this one could.)
#
# *Nothing is trained here, and nothing is graded: you write the numbers down, and the cell below says what they do.*

# %% tags=["demonstration", "guess"]
puzzle_sort = lambda x: -99.0 * np.abs(np.arange(len(x))[:, None] - (x[:, None] > x).sum(1))  # write lambda x: scores


# %% tags=["demonstration", "puzzle"]
def puzzle_output(answer, x):
    return torch.tensor(np.asarray(answer(x), dtype=float)).softmax(-1).numpy() @ x


texts = [np.array([2.0, 1.0]), np.array([5.0, 9, 1, 7]), np.random.default_rng(0).permutation(12) * 1.0]
puzzle("puzzle_sort", puzzle_sort, puzzle_output, np.sort, texts)

# %% [markdown]
# ### What is often said, and what is right
#
# | often said | what is right | where shown |
# |---|---|---|
# | "Deep post-norm stacks need warm-up." | At 0.01 it helped. At 0.003 it was not needed. | section 8 |
# | "Without norms nothing trains." | 12 blocks without norms learned; without residuals they did not, at 0.01 or 0.003. | section 8 |
# | "Without residuals gradients vanish." | In 12 blocks only if the norms are missing, too. What is lost at the start is the difference between the words. | section 8 |
# | "Every part is needed." | It depends on the task: two blocks sort without norms, and nine digits of ten without residuals or feed-forward. | section 7 |
# | "Attention is where the parameters are." | With $d_{ff} = 4 d_{model}$ two thirds are in the feed-forward. | section 4 |
# | "The feed-forward mixes words." | Each word by itself. Only attention mixes. | section 3 |
# | "Layer norm makes features normal." | Mean 0 and variance 1, for one word; the shape of the distribution stays, and gamma and beta change it again. | section 2 |
# | "The attention map is the method." | It is a hint. Hide something and measure. | section 6 |
#
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | residual | $x + f(x)$ | a plus sign | words stay themselves, gradients get through |
# | layer norm | $\gamma \odot (x - \mu)/\sqrt{\sigma^2 + \epsilon} + \beta$ | `LayerNorm` | numbers of size 1, word by word |
# | feed-forward | $\operatorname{ReLU}(xW_1 + b_1)W_2 + b_2$ | `FeedForward` | computes, word by word |
# | post-norm | $\operatorname{LN}(x + f(x))$ | `norm_first=False` | the paper's order |
# | pre-norm | $x + f(\operatorname{LN}(x))$ | `norm_first=True` | learnt at a rate at which post-norm did not (one task, section 8) |
# | parameters | $4(d^2 + d) + 2 d\, d_{ff} + d_{ff} + d + 4d$ | the number of heads plays no part | count before you build |
# | warm-up | the rate rises from 0 | `train(..., warm_up=40)` | small first steps |
#
# ## Check yourself
#
# <details><summary>1. Someone writes `[TransformerBlock(64, 4, 256)] * 6` for a stack of six blocks.
# What do they get?</summary>
#
# Six times the **same** object: one block, applied six times, with the parameters of one. It runs
# and trains. A list comprehension makes six different blocks.
#
# </details>
#
# <details><summary>2. And what happens if the six blocks stand in a plain Python list instead of an
# `nn.ModuleList`?</summary>
#
# `model.parameters()` does not find them. They are never trained and keep their random weights,
# and only the word vectors and the last layer learn. The loss still falls.
#
# </details>
#
# <details><summary>3. The features of a word are all equal to 7. What does your layer norm give?
# </summary>
#
# The difference from the mean is 0, the variance is 0, and thanks to eps the quotient is 0. The
# result is beta.
#
# </details>
#
# <details><summary>4. Double the number of heads, then double the length of the text. Which of these
# changes the number of parameters of a block?</summary>
#
# Neither. The heads share out the same features, and no parameter belongs to a position. (Learned
# positions do, but they are not part of the block.)
#
# </details>
#
# <details><summary>5. Where does a pre-norm stack need one more norm, and why there?</summary>
#
# After the last block. The residual path is a sum that no norm has touched, so its size depends
# on the depth. One norm before the last linear layer brings it to size 1.
#
# </details>
#
# ## References
#
# - Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin (2017), *Attention Is All
#   You Need*: the block is in sections 3.1 and 3.3.
# - Ba, Kiros, Hinton (2016), *Layer Normalization*.
# - He, Zhang, Ren, Sun (2016), *Deep Residual Learning for Image Recognition*.
# - Xiong and others (2020), *On Layer Normalization in the Transformer Architecture*: post-norm,
#   pre-norm and warm-up.
# - Dong, Cordonnier, Loukas (2021), *Attention is Not All You Need: Pure Attention Loses Rank
#   Doubly Exponentially with Depth*.
# - Black and others (2022), *GPT-NeoX-20B: An Open-Source Autoregressive Language Model*: attention
#   and feed-forward side by side.
# - Geva, Schuster, Berant, Levy (2021), *Transformer Feed-Forward Layers Are Key-Value Memories*.
#
# ## What comes next
#
# Lesson 10 makes a language model of your blocks: that is the core path. A translator reads one text and writes
# another: lesson 9 gives the block a second attention that looks at **another** sequence, cross-attention.
