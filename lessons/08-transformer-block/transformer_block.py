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
# `d_model` stays 64. What does a layer with 8 heads have more of than a layer with 2?
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
torch.manual_seed(0)
layers = [MultiHeadAttention(32, 4) for _ in range(12)]
start = torch.randn(5, 32)  # (n, d_model): one random vector a word


def cosines(x):
    """Cosine of each word with each word: (n, d) -> (n, n)."""
    return F.cosine_similarity(x[:, None], x[None], dim=-1)


only_itself = torch.eye(5, dtype=torch.bool)  # a mask: nobody sees a neighbour
plain = alone = added = start
with torch.no_grad():
    for layer in layers:
        for bias in (p for p in layer.parameters() if p.ndim == 1):
            bias.zero_()
        plain = layer(plain)[0]  # the result replaces the word
        alone = layer(alone, mask=only_itself)[0]  # the same, without neighbours
        added = added + layer(added)[0]  # the result is added to the word
results = {"at the start": start, "12 x replaced": plain, "  without neighbours": alone,
           "12 x added": added}  # fmt: skip
means = {name: cosines(x)[~only_itself].mean().item() for name, x in results.items()}
for name, mean in means.items():
    print(f"{name:21s} mean cosine of two words: {mean:5.2f}")

# %% tags=["demonstration"]
why = "Each layer mixes the words, and what is mixed twelve times is nearly the same."
reply("guess_cosine", guess_cosine, means["12 x replaced"], why, within=0.05)

# %% tags=["demonstration"]
figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.2))
maps = {
    "replaced by attention, 12 times": cosines(plain),
    "attention added, 12 times": cosines(added),
}
for axes, (title, map_) in zip(panels, maps.items()):
    draw_heatmap(axes, map_, words, words, row_label="", column_label="", signed=True)
    axes.set_title(title)
figure.tight_layout()
corner = "cosine"
show(
    figure,
    "Figure 1. Left: after 12 random attention layers all five words point in the same direction. "
    f"Right: if each layer adds to the word instead of replacing it, the words grow alike more "
    f"slowly: a mean cosine of {means['12 x added']:.2f}, from {abs(means['at the start']):.2f} at "
    "the start. These layers are random.",
    "Two heat maps of cosines between the five words of the sentence. Left: every entry is 1.00. "
    "Right: 1 on the diagonal, about 0.4 elsewhere.",
    "\n\n".join(f"{title}\n\n{text_table(m, words, words, corner=corner)}" for title, m in maps.items()),
)

# %% [markdown]
# Attention averages. Average again and again, and everything becomes the same (Dong, Cordonnier
# and Loukas, 2021). It is the mixing that does it: without neighbours the same layers leave the
# words different. What slows it down is one plus sign: a **residual connection** (He, Zhang, Ren and Sun,
# 2016) adds what a part computes to what was there before, $x + f(x)$. (No more than slows down:
# the words on the right have come two fifths of the way.)
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


# %% check="LayerNorm" points=3
# Four words with four features each, then a batch; compared with torch's own layer.
@probe
def start_values(d_model):
    layer = LayerNorm(d_model)
    kinds = {name: type(getattr(layer, name, None)).__name__ for name in ("gamma", "beta")}
    parameters = {name: parameter.detach() for name, parameter in layer.named_parameters()}
    return kinds | {"all parameters": sorted(parameters)}, parameters


@probe
def normalise(gamma, beta, x, eps):
    layer = LayerNorm(x.shape[-1]) if eps is None else LayerNorm(x.shape[-1], eps)
    with torch.no_grad():
        for name, values in (("gamma", gamma), ("beta", beta)):
            if isinstance(getattr(layer, name, None), torch.Tensor):
                getattr(layer, name).copy_(values)
        return layer(x.clone())


kinds, parameters = start_values(4)
with check("two parameters: gamma, ones at the start, and beta, zeros", points=0.5):
    assert_equal(
        kinds,
        kinds | {"gamma": "Parameter", "beta": "Parameter"},
        "gamma and beta should be attributes of these names, each an nn.Parameter.",
        name="the kinds of gamma and beta",
    )
    assert_equal(
        {name: parameters.get(name) for name in ("gamma", "beta")},
        {"gamma": torch.ones(4), "beta": torch.zeros(4)},
        "gamma and beta should have the shape (d_model,), ones and zeros at the start, in float32.",
        name="the parameters",
    )
    assert_equal(
        sorted(parameters),
        ["beta", "gamma"],
        "The layer has other parameters than gamma and beta. Check first: is eps an nn.Parameter "
        "too?",
        name="the names of all parameters",
    )
with check("four words by hand, with eps = 2", points=1):
    x = torch.tensor([[0.0, 2, 2, 4], [-6, 4, 2, 0], [9, 5, 7, 7], [3, 3, 3, 3]])
    assert_close(
        normalise(torch.ones(4), torch.zeros(4), x, 2.0),
        torch.tensor([[-1.0, 0, 0, 1], [-1.5, 1, 0.5, 0], [1, -1, 0, 0], [0, 0, 0, 0]]),
        "The first word, 0 2 2 4, has mean 2 and variance (4 + 0 + 0 + 4) / 4 = 2. With eps = 2 "
        "the root is that of 2 + 2. Each word is normalised by itself, over its features.",
    )
rng = check_rng()
with check("as torch's layer: a batch, other gamma and beta, eps = 0.5", points=0.5):
    gamma, beta = (torch.tensor(rng.normal(size=6), dtype=torch.float32) for _ in range(2))
    x = torch.tensor(3 + 2 * rng.normal(size=(4, 5, 6)), dtype=torch.float32)  # (batch, n, d_model)
    assert_close(
        normalise(gamma, beta, x, 0.5),
        F.layer_norm(x, (6,), gamma, beta, 0.5),
        "Four texts of five words, float32: the result should be that of torch's layer. Mean and "
        "variance run over the last axis; gamma multiplies and beta is added afterwards.",
    )
with check("small features: eps counts; left out, it is 1e-5", points=0.25):
    small = torch.tensor(3e-3 * rng.normal(size=(2, 5, 6)), dtype=torch.float32)
    given = normalise(gamma, beta, small, 1e-5)
    other = bool((given - normalise(gamma, beta, small, 0.1)).abs().max() > 1e-3)
    message = "For features near 0.003, eps = 1e-5 and eps = 0.1 should give other results."
    assert_equal(other, True, message, name="'both are finite, and they differ by over 0.001'")
    assert_close(
        normalise(gamma, beta, small, None),
        given,
        "LayerNorm(6) without eps should give what it gives with eps = 1e-5. These features are so "
        "small that eps counts.",
        against="with eps = 1e-5",
    )
with check("equal features, near 1000", points=0.25):
    equal = torch.tensor(1000 + rng.integers(0, 16, size=(20, 1)) / 16).float().expand(20, 6)
    assert_close(
        normalise(gamma, beta, equal.reshape(4, 5, 6), 1e-3),
        beta.expand(4, 5, 6),
        "Twenty words, in each of them all six features are equal, near 1000: the result is beta, "
        "with eps = 1e-3. If there is NaN, for one: is the variance below 0 by rounding? The mean "
        "of the squares and the square of the mean are two large numbers here.",
        atol=0.05,
    )


@probe
def gradients(x, direction):
    layer = LayerNorm(x.shape[-1], 1e-5)
    x = x.clone().requires_grad_()
    y = layer(x)
    if y.requires_grad:
        (y * direction).sum().backward()
    by_name = dict(layer.named_parameters())
    return x.grad, [getattr(by_name.get(name), "grad", None) for name in ("gamma", "beta")]


with check("gradients, also for equal features", points=0.5):
    x = torch.tensor(rng.normal(size=(1, 4, 6)), dtype=torch.float32)
    x[0, 2] = 3.0  # a word whose features are all equal
    direction = torch.tensor(rng.normal(size=(1, 4, 6)), dtype=torch.float32)
    leaves = [one.clone().requires_grad_() for one in (x, torch.ones(6), torch.zeros(6))]
    (F.layer_norm(leaves[0], (6,), *leaves[1:]) * direction).sum().backward()
    of_x, of_parameters = gradients(x, direction)
    message = (
        "should get the gradient that it gets in torch's layer, a finite one, here where all "
        "features of word 2 are equal. Check first: is something detached?"
    )
    for found, leaf, name in zip([*of_parameters, of_x], (*leaves[1:], leaves[0]),
                                 ("gamma", "beta", "x"), strict=True):  # fmt: skip
        assert_close(found, leaf.grad, f"{name} {message}", name=f"the gradient of {name}",
                     rtol=1e-3, atol=1e-3)  # fmt: skip
checks_passed("LayerNorm")


# %% check="LayerNorm_batches" points=2
# Hidden checks of LayerNorm: none to three leading axes; many widths; large numbers; float64.
### BEGIN HIDDEN TESTS
@probe
def normalise(gamma, beta, x):
    layer = LayerNorm(x.shape[-1]).double()
    with torch.no_grad():
        layer.load_state_dict({"gamma": gamma, "beta": beta}, strict=False)
        return layer(x.clone())


@probe
def one_after_the_other(gamma, beta, texts):
    """What one layer gives for texts of several shapes, whose numbers lie in another order."""
    layer = LayerNorm(gamma.shape[0]).double()
    with torch.no_grad():
        layer.load_state_dict({"gamma": gamma, "beta": beta}, strict=False)
        return [layer(x.mT.contiguous().mT) for x in texts]


rng = check_rng()


def compare(shape):
    """Each word with the same word alone, in a batch of one."""
    gamma, beta = (torch.tensor(rng.normal(size=shape[-1])) for _ in range(2))
    x = torch.tensor(2 * rng.normal(size=shape) - 1)
    found, other = normalise(gamma, beta, x), normalise(gamma, beta, x.square() + x)
    message = f"x of shape {shape}: the result has the shape of x."
    assert_equal(list(np.shape(found)), list(shape), message, name="the shape")
    message = f"x of shape {shape}: other words should give another result, without NaN."
    name = "'both are finite, and they differ by over 0.001'"
    assert_equal(bool((found - other).abs().max() > 1e-3), True, message, name=name)
    message = f"x of shape {shape}: the result should not be x itself, nor hold NaN."
    assert_equal(bool((found - x).abs().max() > 1e-3), True, message, name=name)
    words = x.reshape(-1, 1, 1, shape[-1])
    alone = [normalise(gamma, beta, word).reshape(-1) for word in words]
    assert_close(
        found,
        torch.stack(alone).double().reshape(shape),
        f"x of shape {shape} in float64. Each word should come out as your layer gives it alone; "
        "any number of leading axes is allowed.",
        against="for each word alone",
    )


gamma, beta = (torch.tensor(rng.normal(size=6)) for _ in range(2))
with check("a batch of texts: each word as alone", points=0.75):
    for shape in ((4, 1, 6), (2, 3, 5), (6, 6, 6), (1, 3, 6)):
        compare(shape)
    one = torch.tensor(rng.normal(size=(2, 3, 1)))
    message = (
        "x of shape (2, 3, 1): one feature is its own mean, so that the result is beta, in the "
        "shape of x."
    )
    assert_close(normalise(gamma[:1], beta[:1], one), beta[:1].expand(2, 3, 1), message)
    message = "A text of 303 words, 101 times the same three: as in a text of these three words."
    one_text = torch.tensor(rng.normal(size=(1, 3, 6)))
    alone = normalise(gamma, beta, one_text)
    found = normalise(gamma, beta, one_text.repeat(1, 101, 1))
    assert_close(found, alone.repeat(1, 101, 1), message, against="for the three words once")
with check("no batch axis: each word as alone", points=0.5):
    for shape in ((3, 5), (1, 7)):
        compare(shape)
with check("two batch axes and more: each word as alone", points=0.5):
    for shape in ((2, 4, 3, 6), (5, 1, 2, 3, 4)):
        compare(shape)
with check("far features as near; later calls as new layers", points=0.25, side=True):
    far = 3e7 + torch.tensor(rng.normal(size=(2, 4, 6)))
    message = (
        "Features near 30,000,000 that differ by about 1, in float64: the result should be that of "
        "the same features near 0. Check first: does the mean go before the squares are taken, and "
        "does all stay in float64?"
    )
    expected = normalise(gamma, beta, far - 3e7)
    near_0 = "for the features near 0"
    found = normalise(gamma, beta, far)
    assert_close(found, expected, message, rtol=1e-4, atol=1e-4, against=near_0)
    texts = [torch.tensor(rng.normal(size=shape)) for shape in ((2, 4, 6), (1, 3, 6), (2, 5, 6))]
    for x, found in zip(texts, one_after_the_other(gamma, beta, texts), strict=True):
        message = (
            f"Several calls of one layer, here with x of shape {tuple(x.shape)}, whose numbers lie "
            "in memory in another order, as after a transpose: the result should be that of a new "
            "layer with the same gamma and beta, for x in the usual order."
        )
        assert_close(found, normalise(gamma, beta, x), message, against="in a new layer")
checks_passed("LayerNorm")
### END HIDDEN TESTS


# %% check="LayerNorm_eps" points=2
# Hidden checks of LayerNorm: what eps is, and where it stands.
### BEGIN HIDDEN TESTS
@probe
def normalise(gamma, beta, x, eps, training=True):
    layer = (LayerNorm(x.shape[-1]) if eps is None else LayerNorm(x.shape[-1], eps=eps)).double()
    with torch.no_grad():
        layer.load_state_dict({"gamma": gamma, "beta": beta}, strict=False)
        return layer.train(training)(x.clone())


rng = check_rng()
gamma, beta = (torch.tensor(rng.normal(size=6)) for _ in range(2))
noise = torch.tensor(rng.normal(size=(2, 3, 6)))
with check("as torch's layer: several eps, shapes and kinds of features", points=1.5):
    for eps in (0.5, 1e-12):
        assert_close(
            normalise(gamma, beta, noise, eps),
            F.layer_norm(noise, (6,), gamma, beta, eps),
            f"With eps = {eps} the result should be that of torch's layer. Check first: is eps "
            "used as it is given, and added to the variance, inside the root?",
        )
    assert_close(
        normalise(gamma, beta, noise, 0.5, False),
        F.layer_norm(noise, (6,), gamma, beta, 0.5),
        "With eps = 0.5 the result should be that of torch's layer in evaluation mode, too.",
    )
    others = check_rng()
    shapes = [(2, 70, 6), (1, 33, 33), (1, 3, 65), (2, 3, 130), (2, 4, 2), (5, 5, 5), (2, 3, 17)]
    for shape in [*shapes, (1, 130, 2), (2, 3, 1)]:
        scale, shift = (torch.tensor(others.normal(size=shape[-1])) for _ in range(2))
        x = torch.tensor(others.normal(size=shape))
        message = f"x of shape {shape}, eps = 0.25: the result should be that of torch's layer."
        expected = F.layer_norm(x, shape[-1:], scale, shift, 0.25)
        assert_close(normalise(scale, shift, x, 0.25), expected, message)
    some = noise.clone()
    some[0, 1] = some[1, 2, 3] = 0.0
    for what, x in (
        ("only zeros", 0 * noise),
        ("some zeros and a word of zeros", some),
        ("three times the same word", noise[:, :1].repeat(1, 3, 1)),
        ("negative numbers", -noise.abs()),
        ("positive numbers", noise.abs()),
        ("numbers of some thousands", 3000 * noise),
    ):
        message = (
            f"x of shape (2, 3, 6) holds {what}, eps = 0.25: the result should be that of torch's "
            "layer."
        )
        expected = F.layer_norm(x, (6,), gamma, beta, 0.25)
        assert_close(normalise(gamma, beta, x, 0.25), expected, message)
    message = "LayerNorm(6, 1), x of shape (2, 3, 6): the result should be that of torch's layer."
    expected = F.layer_norm(noise, (6,), gamma, beta, 1.0)
    assert_close(normalise(gamma, beta, noise, 1), expected, message)
with check("small features: eps counts; left out as 1e-5, 0 as 1e-12", points=0.5):
    given = normalise(gamma, beta, 3e-3 * noise, 1e-5)
    other = bool((given - normalise(gamma, beta, 3e-3 * noise, 0.1)).abs().max() > 1e-3)
    message = (
        "For inputs near 0.003, eps = 1e-5 and eps = 0.1 should give other results, both without "
        "NaN."
    )
    assert_equal(other, True, message, name="'both are finite, and they differ by over 0.001'")
    assert_close(
        normalise(gamma, beta, 3e-3 * noise, None),
        given,
        "Without eps the layer should give what it gives with eps = 1e-5. The inputs of this check "
        "are so small that eps counts.",
        against="with eps = 1e-5",
    )
    assert_close(
        normalise(gamma, beta, 3e-3 * noise, 0.0),
        normalise(gamma, beta, 3e-3 * noise, 1e-12),
        "eps = 0 is an eps as any other: the result should be that of eps = 1e-12, up to rounding. "
        "Check first: is 0 taken for an eps that is not given?",
        against="with eps = 1e-12",
        rtol=1e-4,
        atol=1e-4,
    )
checks_passed("LayerNorm")
### END HIDDEN TESTS


# %% check="LayerNorm_gradients" points=2
# Hidden checks of LayerNorm: gradients to x, gamma and beta, also for a word of equal features.
### BEGIN HIDDEN TESTS
@probe
def result_and_gradients(gamma, beta, x, direction, training):
    layer = LayerNorm(x.shape[-1], 1e-5).double().train(training)
    layer.load_state_dict({"gamma": gamma, "beta": beta}, strict=False)
    x = x.clone().requires_grad_()
    y = layer(x)
    if y.requires_grad:
        (y * direction).sum().backward()
    grads = {name: parameter.grad for name, parameter in layer.named_parameters()}
    return y.detach(), x.grad, grads.get("gamma"), grads.get("beta")


rng = check_rng()
gamma, beta = (torch.tensor(rng.normal(size=6)) for _ in range(2))
x, direction = (torch.tensor(rng.normal(size=(2, 4, 6))) for _ in range(2))
constant = x.clone()
constant[1, 2] = 3.0  # a word whose features are all equal: variance 0
every = torch.tensor(rng.integers(-3, 4, size=(2, 4, 1))).double().repeat(1, 1, 6)  # all are such
names = ("the result", "the gradient of x", "the gradient of gamma", "the gradient of beta")


def compare(given, what, places, training=True):
    leaves = [one.clone().requires_grad_() for one in (given, gamma, beta)]
    y = F.layer_norm(leaves[0], (6,), *leaves[1:], 1e-5)
    (y * direction).sum().backward()
    expected = (y.detach(), *(leaf.grad for leaf in leaves))
    found = result_and_gradients(gamma, beta, given, direction, training)
    message = ("" if training else "In evaluation mode. ") + (
        f"The inputs hold {what}. The result and all gradients should be those of torch's layer: "
        "finite, to some six digits in float64 (gamma, beta and x are float64 here), and with "
        "nothing detached or treated as a constant."
    )
    for place in places:
        assert_close(
            found[place], expected[place], message, name=names[place], rtol=1e-6, atol=1e-8
        )


with check("ordinary words: the gradient of beta", points=0.5):
    compare(x, "ordinary words", (3,))
with check("ordinary words: the result and all gradients, in both modes", points=0.5):
    compare(x, "ordinary words", (0, 1, 2))
    compare(x, "ordinary words", (0, 1, 2, 3), training=False)
with check("words of equal features: the gradient of beta", points=0.5):
    compare(constant, "a word whose features are all equal", (3,))
    compare(every, "words whose features are all equal, and no others", (3,))
with check("words of equal features: the result, the other gradients", points=0.5):
    compare(constant, "a word whose features are all equal", (0, 1, 2))
    compare(every, "words whose features are all equal, and no others", (0, 1, 2))
checks_passed("LayerNorm")
### END HIDDEN TESTS


# %% check="LayerNorm_state" points=1
# Hidden checks of LayerNorm: x unchanged; nothing remembered; the same in both modes; precision.
### BEGIN HIDDEN TESTS
@probe
def three_calls(x, other):
    layer = LayerNorm(x.shape[-1]).double()
    with torch.no_grad():
        later = [x.clone() for _ in range(2)]
        first = layer(x)
        layer(other)
        again = layer(later[0])
        layer.eval()
        return [x, *later], first, again, layer(later[1])


@probe
def with_parameters(gamma, beta, x, called_before, training):
    layer = LayerNorm(x.shape[-1]).double().train(training)
    with torch.no_grad():
        if called_before:
            given = x.clone()
            layer(x)
            x.copy_(given)  # the same tensor, whatever the first call did to it
        layer.load_state_dict({"gamma": gamma, "beta": beta}, strict=False)
        return layer(x)


@probe
def made_before_they_are_called(x, several):
    layers = [LayerNorm(x.shape[-1], eps).double() for eps in several]
    return [layer(x.clone()).detach() for layer in layers]


@probe
def of_a_copy(x):
    """What is raised, and the results of a layer's copy, made after a call, and of the layer."""
    import copy

    layer = LayerNorm(x.shape[-1]).double()
    result = layer(x.clone().requires_grad_()).detach()
    try:
        return "nothing", copy.deepcopy(layer)(x.clone()).detach(), result
    except NotImplementedError:
        raise
    except RuntimeError as error:
        return type(error).__name__, result, result


rng = check_rng()
x, other = (torch.tensor(rng.normal(size=(3, 4, 6))) for _ in range(2))
with check("each text as alone; x kept; later, copied, both modes: the same", points=0.75):
    each_after, first, again, evaluated = three_calls(x.clone(), 5 * other + 2)
    for x_after in each_after:
        assert_equal(x_after, x, "x is changed by the call.", name="x")
    expected = torch.cat([three_calls(text[None].clone(), text[None])[1] for text in x]).double()
    message = "Three texts, one at a time: each result has the shape of its text."
    assert_equal(expected.shape, x.shape, message, name="the shape")
    message = "A new layer should normalise: give neither x nor 0, and no NaN."
    nothing = [not bool((expected - one).abs().max() >= 1e-3) for one in (x, 0 * x)]
    assert_equal(nothing, [False, False], message, name="'near x, or NaN', 'near 0, or NaN'")
    message = "Three texts at once should give what a new layer gives for each by itself."
    assert_close(first, expected, message, against="for each text alone")
    message = "After a call with other texts the result should be the same as in a new layer."
    assert_close(again, expected, message, against="for each text alone")
    message = "In evaluation mode the result should be that of training mode."
    assert_close(evaluated, expected, message, against="in training mode")
    gamma, beta = (torch.tensor(rng.normal(size=6)) for _ in range(2))
    for training in (True, False):
        found, expected = (with_parameters(gamma, beta, x, one, training) for one in (True, False))
        message = (
            "gamma and beta got other numbers after a first call, as in training "
            f"({'training' if training else 'evaluation'} mode): the next result should be that of "
            "a new layer with these numbers, and hold no NaN."
        )
        name = "the result after the change"
        assert_close(found, expected, message, name=name, against="in a new layer")
    message = (
        "Two layers, the first with eps = 0.5 and the second with eps = 0.01, both made before either "
        "is called: each should give what a layer with its eps gives where no other is made."
    )
    alone = [made_before_they_are_called(x, [eps])[0] for eps in (0.5, 0.01)]
    for found, expected in zip(made_before_they_are_called(x, [0.5, 0.01]), alone, strict=True):
        assert_close(found, expected, message, against="where no other layer is made")
    raised, found, expected = of_a_copy(x)
    message = (
        "A layer is called with an x that requires a gradient, and then copied by copy.deepcopy: the "
        f"copy should give what the layer gives. What is raised: {raised}. Check first: is "
        "something that is computed in a call kept in the layer?"
    )
    assert_equal(raised, "nothing", message, name="what is raised")
    assert_close(found, expected, message, name="the copy's result", against="from the layer")
with check("float64; the same with 100 added to all features", points=0.25, side=True):
    plain, far = (three_calls(one, other)[1] for one in (x.clone(), x + 100))
    message = "After `layer.double()` the result should be float64 and hold no NaN."
    assert_close(plain, plain.double(), message, precise=True, against="in the dtype asked for")
    message = (
        "100 was added to every feature, in float64: the result should stay as it is, to seven "
        "digits. Check first: is anything float32 on the way? A mean near 100 then keeps too few "
        "digits."
    )
    assert_close(far, plain, message, precise=True, against="without the 100")
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


# %% check="FeedForward" points=2
@probe
def parts_of(d_model, d_ff):
    network = FeedForward(d_model, d_ff)
    return {name: list(parameter.shape) for name, parameter in network.named_parameters()}


@probe
def forward(parameters, x, training=False):
    with torch.random.fork_rng():
        torch.manual_seed(0)  # a part under another name keeps its start values, always the same
        network = FeedForward(2, 3)
    with torch.no_grad():
        network.load_state_dict(parameters, strict=False)
        return network.train(training)(x.clone())


shapes = {
    "linear1.weight": [3, 2],
    "linear1.bias": [3],
    "linear2.weight": [2, 3],
    "linear2.bias": [2],
}
found = parts_of(2, 3)
with check("the two layers", points=0.5):
    assert_equal(
        {name: found.get(name) for name in shapes},
        shapes,
        "linear1 should be nn.Linear(d_model, d_ff) and linear2 nn.Linear(d_ff, d_model), with bias.",
        name="the parameters",
    )
parameters = {
    "linear1.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]]),
    "linear1.bias": torch.tensor([0.0, 0.5, -1.0]),
    "linear2.weight": torch.tensor([[1.0, 2.0, -3.0], [0.0, -1.0, 0.0]]),
    "linear2.bias": torch.tensor([0.25, -0.5]),
}
three = torch.tensor([[1.0, -2.0], [-1.0, 1.0], [8.0, 3.0]])
with check("three words by hand", points=0.75):
    assert_close(
        forward(parameters, three),
        torch.tensor([[1.25, -0.5], [-2.75, -2.0], [15.25, -4.0]]),
        "Three words, worked out by hand: for the first, linear1 gives 1, -1.5, -6. ReLU makes 1, 0, 0 "
        "of it, and of the last word's 8, 3.5, -3 it makes 8, 3.5, 0. linear2 gives 1.25, -0.5 for the "
        "first, and these are the result: no second ReLU, no residual.",
    )
with check("two leading axes: each word as alone", points=0.25):
    by_word = torch.stack([forward(parameters, word[None])[0] for word in three])
    varied = [bool((by_word[0] - by_word[1]).abs().max() > 0.1), not torch.equal(by_word, three)]
    message = "The first two words should come out differently, and not all as they went in."
    name = "'both are finite, and they differ by over 0.1', 'not all are as they went in'"
    assert_equal(varied, [True, True], message, name=name)
    batch = torch.stack([three, three.flip(0)])[:, None]  # (2, 1, 3, 2)
    assert_close(
        forward(parameters, batch),
        torch.stack([by_word, by_word.flip(0)])[:, None],
        "x of shape (2, 1, 3, 2): each word should come out as it does alone.",
        against="for each word alone",
    )
with check("training mode as evaluation mode", points=0.25, side=True):
    many = three.repeat(20, 1)
    message = "In training mode the result should be that of evaluation mode: there is no dropout."
    trained, evaluated = forward(parameters, many, True), forward(parameters, many)
    assert_close(trained, evaluated, message, against="in evaluation mode")


@probe
def gradients(x, direction):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = FeedForward(2, 3)
    x = x.clone().requires_grad_()
    y = network(x)
    if y.requires_grad:
        (y * direction).sum().backward()
    return {"x": x.grad} | {name: one.grad for name, one in network.named_parameters()}


with check("which get a gradient; that of linear2's bias", points=0.25):
    found = gradients(10 * three, torch.ones(3, 2))
    message = (
        "x and the four parameters of linear1 and linear2, and no others, should get a gradient. "
        "Check first: is something detached?"
    )
    reached = {name: gradient is not None for name, gradient in found.items()}
    assert_equal(reached, dict.fromkeys(["x", *shapes], True), message, name="which get one")
    message = (
        "The bias of linear2 is the last thing that is added, to each word: for the sum of the "
        "results of three words its gradient is 3."
    )
    name = "the gradient of linear2.bias"
    assert_close(found["linear2.bias"], torch.full((2,), 3.0), message, name=name)
checks_passed("FeedForward")


# %% check="FeedForward_values" points=2
# Hidden checks of FeedForward: several leading axes and widths, a long text, any order in memory,
# float64, both modes, x unchanged.
### BEGIN HIDDEN TESTS
@probe
def forward(parameters, x, d_ff):
    torch.manual_seed(0)
    network = FeedForward(x.shape[-1], d_ff).double()
    with torch.no_grad():
        network.load_state_dict(parameters, strict=False)
        given = [x.clone() for _ in range(2)]
        trained = network(given[0])
        network.eval()
        return trained, network(given[1]), given


@probe
def made_in_other_ways(parameters, x, d_ff):
    """The sizes by name, and as np.int64; with gradients, and without."""
    torch.manual_seed(0)
    network = FeedForward(d_model=x.shape[-1], d_ff=d_ff).double()
    network.load_state_dict(parameters, strict=False)
    by_name = network(x.clone()).detach()
    network = FeedForward(np.int64(x.shape[-1]), np.int64(d_ff)).double()
    network.load_state_dict(parameters, strict=False)
    with torch.no_grad():
        return by_name, network(x.clone())


@probe
def in_other_order(parameters, x, d_ff):
    """The result for the same numbers, which lie in memory column by column."""
    torch.manual_seed(0)
    network = FeedForward(x.shape[-1], d_ff).double()
    with torch.no_grad():
        network.load_state_dict(parameters, strict=False)
        x = x.mT.contiguous().mT
        network(x.clone())  # a clone lies in memory as x does
        network.eval()(x[0, :2].clone())
        return network(x)


@probe
def after_a_change(parameters, x, d_ff, training):
    """The result when the parameters get other numbers after a first call."""
    torch.manual_seed(0)
    network = FeedForward(x.shape[-1], d_ff).double().train(training)
    with torch.no_grad():
        given = x.clone()
        network(x)
        x.copy_(given)  # the same tensor, whatever the first call did to it
        network.load_state_dict(parameters, strict=False)
        return network(x)


rng = check_rng()
cases = [((3, 4), 6), ((1, 6), 6), ((2, 5, 4), 7), ((2, 3, 5, 6), 4), ((2, 1, 3, 5, 3), 16)]
cases_run = []


def a_case(shape, d_ff):
    """Parameters, x, and what torch's layers make of it."""
    d_model = shape[-1]
    sizes = {
        "linear1.weight": (d_ff, d_model),
        "linear1.bias": d_ff,
        "linear2.weight": (d_model, d_ff),
        "linear2.bias": d_model,
    }
    parameters = {name: torch.tensor(rng.normal(size=size)) for name, size in sizes.items()}
    x = torch.tensor(rng.normal(size=shape))
    reference = nn.TransformerEncoderLayer(d_model, 1, d_ff)
    reference = nn.Sequential(reference.linear1, nn.ReLU(), reference.linear2).double()
    reference.load_state_dict(
        {name.replace("linear1", "0").replace("linear2", "2"): p for name, p in parameters.items()}
    )
    with torch.no_grad():
        return parameters, x, reference(x), reference


for shape, d_ff in cases:
    parameters, x, expected, reference = a_case(shape, d_ff)
    # Of one word all hidden units may be off: other words are those that change the most.
    choices = (x.square() + x, -x, 2 - x)
    other = max(choices, key=lambda words: float((reference(words).detach() - expected).abs().max()))
    of_x = forward(parameters, x.clone(), d_ff)
    cases_run.append((shape, d_ff, parameters, x, expected, of_x, other))

with check("each word as alone, in texts of many kinds", points=1):
    for shape, d_ff, parameters, x, _, (_, evaluated, _), other_words in cases_run:
        message = (
            f"x of shape {shape}, d_ff = {d_ff}: the result has the shape of x, and each word "
            "comes out as your network gives it alone."
        )
        assert_equal(list(np.shape(evaluated)), list(shape), message, name="the shape")
        other = forward(parameters, other_words, d_ff)[1]
        start = f"x of shape {shape}, d_ff = {d_ff}: "
        name = "'both are finite, and they differ by over 0.001'"
        differ = start + "other words should give another result, without NaN."
        assert_equal(bool((evaluated - other).abs().max() > 1e-3), True, differ, name=name)
        differ = start + "the result should not be x itself, nor hold NaN."
        assert_equal(bool((evaluated - x).abs().max() > 1e-3), True, differ, name=name)
        alone = [forward(parameters, word[None], d_ff)[1][0] for word in x.reshape(-1, shape[-1])]
        alone = torch.stack(alone).double().reshape(shape)
        assert_close(evaluated, alone, message, against="for each word alone")
    _, d_ff, parameters, x, _, (_, evaluated, _), _ = cases_run[2]  # (2, 5, 4)
    for times in (64, 61):  # 640 words in all, and 610, no multiple of 4
        message = (
            f"Two texts of {5 * times} words, {times} times the same five: as in texts of these "
            "five words, whatever the number of words."
        )
        long = forward(parameters, x.repeat(1, times, 1), d_ff)[1]
        wanted = evaluated.repeat(1, times, 1)
        assert_close(long, wanted, message, against="for the five words once")
    message = (
        "x of shape (2, 5, 4) whose numbers lie in memory in another order, as after a transpose: "
        "the result should be the same."
    )
    found = in_other_order(parameters, x, d_ff)
    assert_close(found, evaluated, message, against="in the usual order in memory")
    message = "x of shape (1, 5, 4), a batch of one text: as the first of two, in the shape of x."
    found = forward(parameters, x[:1].clone(), d_ff)[1]
    assert_close(found, evaluated[:1], message, against="for the first of two")
with check("the values", points=0.5):
    for shape, d_ff, _, _, expected, (_, evaluated, _), _ in cases_run:
        message = f"x of shape {shape}, d_ff = {d_ff}: linear1, ReLU, linear2, to float64's digits."
        assert_close(evaluated, expected, message, precise=True)
    for shape, d_ff in (((2, 70, 6), 33), ((33, 65), 130), ((3, 130), 1), ((4, 1), 3), ((5, 5, 5), 5)):
        parameters, x, expected, _ = a_case(shape, d_ff)
        message = f"x of shape {shape}, d_ff = {d_ff}: linear1, ReLU, linear2, to float64's digits."
        assert_close(forward(parameters, x, d_ff)[1], expected, message, precise=True)
    parameters, x, expected, reference = a_case((2, 5, 4), 6)
    some = x.clone()
    some[0, 1] = some[1, 2, 3] = 0.0
    for what, given in (
        ("only zeros", 0 * x),
        ("some zeros and a word of zeros", some),
        ("five times the same word", x[:, :1].repeat(1, 5, 1)),
        ("numbers of some thousands", 3000 * x),
    ):
        message = f"x of shape (2, 5, 4) holds {what}, d_ff = 6: linear1, ReLU, linear2."
        found = forward(parameters, given, 6)[1]
        assert_close(found, reference(given).detach(), message, precise=True)
    ways = "by their names, outside torch.no_grad()", "as np.int64, under torch.no_grad()"
    for way, found in zip(ways, made_in_other_ways(parameters, x, 6), strict=True):
        message = f"x of shape (2, 5, 4), d_model = 4 and d_ff = 6 given {way}: linear1, ReLU, linear2."
        assert_close(found, expected, message, precise=True)
with check("both modes alike; x kept; new numbers: as in a new network", points=0.5, side=True):
    for _, _, _, x, _, (trained, evaluated, x_after), _ in cases_run:
        message = (
            "In training mode the result should be that of evaluation mode, without NaN: no "
            "dropout."
        )
        assert_close(trained, evaluated, message, against="in evaluation mode")
        for one in x_after:
            assert_equal(one, x, "x is changed by the call.", name="x")
    _, d_ff, parameters, x, _, (_, evaluated, _), _ = cases_run[2]  # (2, 5, 4)
    for training in (True, False):
        message = (
            "The parameters got other numbers after a first call, as in training "
            f"({'training' if training else 'evaluation'} mode): the next result should be that of "
            "a new network with these numbers, and hold no NaN."
        )
        found = after_a_change(parameters, x, d_ff, training)
        assert_close(found, evaluated, message, against="in a new network")
checks_passed("FeedForward")
### END HIDDEN TESTS


# %% check="FeedForward_gradients" points=1
# Hidden checks of FeedForward: gradients to x and to all four parameters.
### BEGIN HIDDEN TESTS
@probe
def gradients(parameters, x, direction, training, of_x=True):
    torch.manual_seed(0)
    network = FeedForward(4, 6).double().train(training)
    network.load_state_dict(parameters, strict=False)
    x = x.clone().requires_grad_(of_x)
    y = network(x)
    if y.requires_grad:
        (y * direction).sum().backward()
    found = {name: parameter.grad for name, parameter in network.named_parameters()}
    return {"x": x.grad} | {name: found.get(name) for name in parameters}


rng = check_rng()
sizes = {
    "linear1.weight": (6, 4),
    "linear1.bias": 6,
    "linear2.weight": (4, 6),
    "linear2.bias": 4,
}
parameters = {name: torch.tensor(rng.normal(size=size)) for name, size in sizes.items()}
x, direction = (torch.tensor(rng.normal(size=(2, 5, 4))) for _ in range(2))
leaves = {name: one.clone().requires_grad_() for name, one in [("x", x), *parameters.items()]}
w1, b1, w2, b2 = (leaves[name] for name in sizes)
(F.linear(F.linear(leaves["x"], w1, b1).clamp(min=0), w2, b2) * direction).sum().backward()
for training in (True, False):
    found = gradients(parameters, x, direction, training)
    for name, leaf in leaves.items():
        message = (
            f"The gradient of {name}{'' if training else ', in evaluation mode,'} should be the "
            "one that torch's linear layers and ReLU give. Check first: is something detached, or "
            "is a slope another than ReLU's, which is 0 or 1?"
        )
        assert_close(found[name], leaf.grad, message, name=f"the gradient of {name}")
found = gradients(parameters, x, direction, True, False)
for name in parameters:
    message = (
        f"x itself requires no gradient here, as vectors that are not trained: the gradient of {name} "
        "should be the one that it has where x requires one. Check first: does what records the "
        "gradients depend on x?"
    )
    assert_close(found[name], leaves[name].grad, message, name=f"the gradient of {name}")
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
figure, panels = plt.subplots(2, 1, figsize=(9.6, 3.6))
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
#   your own), `feed_forward` (your `FeedForward`). One object each. `forward` uses what stands under
#   these names when it is called: section 7 replaces parts.
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


# %% check="TransformerBlock" points=4
# Two texts of five words, twelve features, three heads; compared with torch's own block.
@probe
def parts_of(d_model, num_heads, d_ff):
    block = TransformerBlock(d_model, num_heads, d_ff)
    return {name: list(parameter.shape) for name, parameter in block.named_parameters()}


@probe
def forward(parameters, norm_first, x, mask, training=False):
    with torch.random.fork_rng():
        torch.manual_seed(0)  # a part under another name keeps its start values, always the same
        block = TransformerBlock(12, 3, 20, norm_first)
    with torch.no_grad():
        block.load_state_dict(parameters, strict=False)
        return block.train(training)(x.clone(), None if mask is None else mask.clone())


linear = {
    "attention.W_q": "q",
    "attention.W_k": "k",
    "attention.W_v": "v",
    "attention.W_o": "self_attn.out_proj",
    "feed_forward.linear1": "linear1",
    "feed_forward.linear2": "linear2",
}
shapes = {f"{name}.weight": [12, 12] for name in list(linear)[:4]}
shapes |= {f"{name}.bias": [12] for name in list(linear)[:4]}
shapes |= {"feed_forward.linear1.weight": [20, 12], "feed_forward.linear1.bias": [20]}
shapes |= {"feed_forward.linear2.weight": [12, 20], "feed_forward.linear2.bias": [12]}
shapes |= {f"norm{i}.{name}": [12] for i in (1, 2) for name in ("gamma", "beta")}
found = parts_of(12, 3, 20)
with check("the four parts", points=0.5):
    assert_equal(
        {name: found.get(name) for name in shapes},
        shapes,
        "The parts should be attention, norm1, feed_forward and norm2, each an object of its own: "
        "your LayerNorm and FeedForward, and lesson 5's MultiHeadAttention.",
        name="the parameters",
    )
rng = check_rng()
parameters = {
    name: torch.tensor((0.4 if name.endswith("weight") else 1) * rng.normal(size=shape)).float()
    for name, shape in shapes.items()
}
x = torch.tensor(rng.normal(size=(2, 5, 12))).float()
mask = torch.ones(2, 5, 5, dtype=torch.bool).tril()  # no word sees a later one,
mask[1, :, 1] = False  # and in the second text nobody sees word 1


def of_torchs_block(norm_first, mask=None):
    """Output and weights of torch's block with these parameters."""
    theirs = nn.TransformerEncoderLayer(12, 3, 20, 0.0, batch_first=True, norm_first=norm_first)
    state = {f"{other}.{p}": parameters[f"{one}.{p}"] for one, other in linear.items()
             for p in ("weight", "bias")}  # fmt: skip
    for p in ("weight", "bias"):  # torch keeps the three projections in one matrix
        state[f"self_attn.in_proj_{p}"] = torch.cat([state.pop(f"{i}.{p}") for i in "qkv"])
    for i in (1, 2):
        state[f"norm{i}.weight"] = parameters[f"norm{i}.gamma"]
        state[f"norm{i}.bias"] = parameters[f"norm{i}.beta"]
    theirs.load_state_dict(state)
    hidden = None if mask is None else ~mask.repeat_interleave(3, 0)  # torch's True means hidden
    with torch.no_grad():
        y = theirs.norm1(x) if norm_first else x
        weights = theirs.self_attn(y, y, y, attn_mask=hidden, average_attn_weights=False)[1]
        return theirs(x, src_mask=hidden), weights


def of_yours(norm_first, mask=None, text=x, training=False):
    """Output and weights of the exercise's block."""
    both = forward(parameters, norm_first, text, mask, training)
    return both if isinstance(both, (tuple, list)) and len(both) == 2 else (both, None)


def check_output(norm_first, kind):
    found, expected = (of(norm_first)[0] for of in (of_yours, of_torchs_block))
    other = of_torchs_block(not norm_first)[0]
    alike = isinstance(found, torch.Tensor) and found.shape == other.shape
    if alike and (found - other).abs().max() < 1e-4:
        assert_equal(
            {first: of_yours(first)[0] for first in (False, True)},
            {first: of_torchs_block(first)[0] for first in (False, True)},
            f"With norm_first={norm_first} you get the output of the other order.",
            name="the output, by norm_first,",
        )
    assert_close(
        found,
        expected,
        f"{kind}: the output should be that of torch's block, and of the formula above. Check "
        "first: are LayerNorm and FeedForward right, have the norms an eps of 1e-5, what goes into "
        "each part, what is added to what, and where do the norms stand?",
        name="the output",
    )


with check("Post-norm: the output", points=1):
    check_output(False, "Post-norm")
with check("Pre-norm: the output", points=0.75):
    check_output(True, "Pre-norm")
with check("Post-norm: the weights of every head", points=0.5):
    assert_close(
        of_yours(False)[1],
        of_torchs_block(False)[1],
        "Post-norm: forward returns (output, weights), and the weights are those of every head, "
        "(batch, num_heads, n, n), as the attention gives them for x.",
        name="the weights",
    )


def differ(found, plain, what):
    """Without this a block that ignores everything would pass what is compared with itself."""
    found, plain = (torch.as_tensor(one) for one in (found, plain))
    moved = found.shape == plain.shape and bool((found - plain).abs().max() > 1e-3)
    name = "'both are finite, of one shape, and differ by over 0.001'"
    assert_equal(moved, True, what, name=name)


with check("causal mask: as in shorter texts; nothing to see: weights 0", points=0.5):
    # With a triangle as mask, each word comes out as the last word of a text that ends there.
    for norm_first in (False, True):
        output, weights = of_yours(norm_first, mask[:1])
        message = (
            f"norm_first={norm_first}: a mask should change the output, and not its shape; neither "
            "output should hold NaN."
        )
        differ(output, of_yours(norm_first)[0], message)
        for length in (1, 2, 4):
            short = of_yours(norm_first, None, x[:, :length])[0]
            assert_close(
                output[:, length - 1],
                short[:, -1],
                f"norm_first={norm_first}: a word that may not see the later ones should come out "
                "as the last word of a text that ends with it. Check first: does the attention get "
                "the mask?",
                name=f"the output of word {length - 1}",
                against="in the text that ends there",
            )
        nothing = mask.clone()
        nothing[:, 2] = False
        output, weights = of_yours(norm_first, nothing)
        message = (
            f"norm_first={norm_first}, word 2 may attend to nothing: its weights are 0 in every "
            "head, and no number of the output is NaN or infinite."
        )
        finite = bool(torch.as_tensor(output).isfinite().all())
        assert_equal(finite, True, message, name="'the output is finite'")
        assert_equal(weights[:, :, 2], torch.zeros(2, 3, 5), message, name="the weights of word 2")
with check("leading axes, none or two: each text as alone", points=0.25):
    for norm_first in (False, True):
        alone = torch.stack([torch.as_tensor(of_yours(norm_first, None, one)[0]) for one in x])
        other = torch.stack([torch.as_tensor(of_yours(norm_first, None, -one)[0]) for one in x])
        message = "Texts (5, 12): the output should have the shape of x, not be x, and hold no NaN."
        differ(alone, x, message)
        differ(alone, other, "Texts (5, 12): -x should give another output than x, without NaN.")
        message = "x of shape (2, 1, 5, 12): each text should come out as it does alone."
        found = of_yours(norm_first, None, x[:, None])[0]
        assert_close(found, alone[:, None], message, against="for each text alone")
with check("training mode as evaluation mode", points=0.25, side=True):
    message = "In training mode the output should be that of evaluation mode: there is no dropout."
    found, evaluated = of_yours(False, training=True)[0], of_yours(False)[0]
    assert_close(found, evaluated, message, name="the output", against="in evaluation mode")


@probe
def reached(norm_first, x):
    """Through which result a gradient comes back to x, and which parameters get one."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        block = TransformerBlock(12, 3, 20, norm_first)
    found = []
    for place in (0, 1):
        leaf = x.clone().requires_grad_()
        result = block(leaf)[place]
        if result.requires_grad:
            result.square().sum().backward()
        found.append(leaf.grad)
    return found, [name for name, p in block.named_parameters() if p.grad is not None]


with check("gradients reach x and all parameters, through both results", points=0.25):
    for norm_first in (False, True):
        of_x, names = reached(norm_first, x)
        message = (
            f"norm_first={norm_first}: a gradient, not 0, should flow back to x through the output "
            "and through the weights. Check first: is something detached?"
        )
        flows = [isinstance(one, torch.Tensor) and bool(one.abs().max() > 0) for one in of_x]
        name = "'x gets one without NaN, not 0', from the output and from the weights,"
        assert_equal(flows, [True, True], message, name=name)
        message = (
            f"norm_first={norm_first}: all parameters of the four parts, and no others, should get "
            "a gradient through output or weights."
        )
        assert_equal(sorted(names), sorted(shapes), message, name="the parameters that get one")
checks_passed("TransformerBlock")


# %% check="TransformerBlock_batches" points=2
# Hidden checks of TransformerBlock: leading axes, sizes, float64, both modes, norm_first.
### BEGIN HIDDEN TESTS
@probe
def forward_all(blocks, calls):
    """What a new block gives in both modes, for each call; up to one that raises, if not the first."""
    torch.manual_seed(0)
    start, found = torch.get_rng_state(), []
    with torch.no_grad():
        for number, norm_first, x in calls:
            sizes, parameters = blocks[number]
            how = {} if norm_first is None else {"norm_first": norm_first}
            try:
                torch.set_rng_state(start)
                block = TransformerBlock(*sizes, **how).double()
                block.load_state_dict(parameters, strict=False)
                trained = block(x.clone())
                block.eval()
                found.append((trained, block(x.clone())))
            except Exception:
                if not found:
                    raise
                break
    return found


@probe
def made_in_other_ways(parameters, sizes, x):
    """The sizes by name, and as np.int64; with gradients, and without."""
    torch.manual_seed(0)
    d_model, num_heads, d_ff = sizes
    block = TransformerBlock(d_model=d_model, num_heads=num_heads, d_ff=d_ff, norm_first=True)
    block.double().load_state_dict(parameters, strict=False)
    by_name = block(x.clone())[0].detach()
    block = TransformerBlock(np.int64(d_model), np.int64(num_heads), np.int64(d_ff), True)
    block.double().load_state_dict(parameters, strict=False)
    with torch.no_grad():
        return by_name, block(x.clone())[0]


@probe
def with_a_part_of_another(parameters, others, sizes, norm_first, part, x):
    """The output of a block that got one part of another block after it was made."""
    torch.manual_seed(0)
    block, other = (TransformerBlock(*sizes, norm_first).double().eval() for _ in range(2))
    with torch.no_grad():
        block.load_state_dict(parameters, strict=False)
        other.load_state_dict(others, strict=False)
        setattr(block, part, getattr(other, part))
        return block(x.clone())[0]


def parameters_for(rng, d_model, d_ff):
    sizes = {f"attention.W_{name}": (d_model, d_model) for name in "qkvo"}
    sizes |= {"feed_forward.linear1": (d_ff, d_model), "feed_forward.linear2": (d_model, d_ff)}
    made = {}
    for name, size in sizes.items():
        made[f"{name}.weight"] = torch.tensor(rng.normal(size=size) / math.sqrt(size[1]))
        made[f"{name}.bias"] = torch.tensor(rng.normal(size=size[0]))
    for name in ("norm1.gamma", "norm1.beta", "norm2.gamma", "norm2.beta"):
        made[name] = torch.tensor(rng.normal(size=d_model))
    return made


def torchs_values(p, num_heads, norm_first, x):
    """Output and weights, from torch's functions."""
    d_model = x.shape[-1]

    def attend(y):
        Q, K, V = (
            F.linear(y, p[f"attention.W_{i}.weight"], p[f"attention.W_{i}.bias"])
            .unflatten(-1, (num_heads, -1))
            .transpose(-2, -3)
            for i in "qkv"
        )
        weights = torch.softmax(Q @ K.mT / (d_model // num_heads) ** 0.5, -1)
        joined = (weights @ V).transpose(-2, -3).flatten(-2)
        return F.linear(joined, p["attention.W_o.weight"], p["attention.W_o.bias"]), weights

    def feed(y):
        one, two = (f"feed_forward.linear{i}" for i in (1, 2))
        hidden = F.linear(y, p[f"{one}.weight"], p[f"{one}.bias"]).relu()
        return F.linear(hidden, p[f"{two}.weight"], p[f"{two}.bias"])

    def norm(i, y):
        return F.layer_norm(y, (d_model,), p[f"norm{i}.gamma"], p[f"norm{i}.beta"], 1e-5)

    if norm_first:
        change, weights = attend(norm(1, x))
        middle = x + change
        return middle + feed(norm(2, middle)), weights
    change, weights = attend(x)
    middle = norm(1, x + change)
    return norm(2, middle + feed(middle)), weights


rng = check_rng()
cases = []
for lead, n, sizes in (
    ((), 5, (12, 3, 7)),
    ((4,), 3, (8, 8, 20)),
    ((1,), 6, (6, 1, 6)),
    ((2, 3), 4, (12, 4, 30)),
    ((2, 1, 3), 2, (4, 2, 5)),
    ((3,), 3, (6, 2, 9)),
    ((2,), 1, (6, 3, 8)),
):
    x = torch.tensor(rng.normal(size=(*lead, n, sizes[0])))
    parameters = parameters_for(rng, sizes[0], sizes[2])
    message = f"TransformerBlock{(*sizes,)} and x of shape {tuple(x.shape)}: "
    cases.append((lead, sizes, x, parameters, message))
more = []  # for the values alone: longer, wider, equal and small sizes
for lead, n, sizes in (
    ((2,), 70, (6, 3, 5)),
    ((), 33, (33, 3, 8)),
    ((3,), 4, (130, 5, 33)),
    ((5,), 3, (5, 5, 5)),
    ((2,), 3, (2, 1, 65)),
    ((3,), 4, (1, 1, 3)),
):
    x = torch.tensor(rng.normal(size=(*lead, n, sizes[0])))
    message = f"TransformerBlock{(*sizes,)} and x of shape {tuple(x.shape)}: "
    more.append((lead, sizes, x, parameters_for(rng, sizes[0], sizes[2]), message))
x, parameters = torch.tensor(rng.normal(size=(2, 5, 6))), parameters_for(rng, 6, 8)
some = x.clone()
some[0, 1] = some[1, 2, 3] = 0.0
for what, given in (
    ("only zeros", 0 * x),
    ("some zeros and a word of zeros", some),
    ("five times the same word", x[:, :1].repeat(1, 5, 1)),
    ("negative numbers", -x.abs()),
    ("positive numbers", x.abs()),
    ("numbers of some thousands", 3000 * x),
):
    message = f"TransformerBlock(6, 3, 8) and x of shape (2, 5, 6) that holds {what}: "
    more.append(((2,), (6, 3, 8), given, parameters, message))
large = more.pop()  # for pre-norm: without a norm before it, a softmax of such scores says little


blocks = [(sizes, parameters) for _, sizes, _, parameters, _ in [*cases, *more, large]]


def forward(blocks, calls):
    """What one call after another gives. One that raised in a list is made again, by itself."""
    found = forward_all(blocks, calls)
    for place, call in enumerate(calls):
        yield found[place] if place < len(found) else forward_all(blocks, [call])[0]


def evaluated(blocks, calls):
    """Output and weights in evaluation mode, whatever their precision."""
    for _, (output, weights) in forward(blocks, calls):
        yield output.double(), weights.double()


def values(norm_first):
    compared = [*cases, *more, *([large] if norm_first else [])]
    calls = [(place, norm_first, case[2]) for place, case in enumerate(compared)]
    of_block = evaluated(blocks, calls)
    for _, sizes, x, parameters, start in compared:
        output, weights = next(of_block)
        expected, expected_weights = torchs_values(parameters, sizes[1], norm_first, x)
        near = {"rtol": 1e-4, "atol": 1e-5}
        message = f"{start}norm_first={norm_first}: the output should be torch's."
        assert_close(output, expected, message, name="the output", **near)
        message = (
            f"{start}norm_first={norm_first}: the output is torch's, and the weights should be too: "
            "those with which the attention made this output."
        )
        _, of_x = torchs_values(parameters, sizes[1], False, x)
        of_x_itself = weights.shape == of_x.shape and bool((weights - of_x).abs().max() < 1e-5)
        if norm_first and of_x_itself:
            message += " Yours are those that the attention gives for x, not for norm1(x)."
        assert_close(weights, expected_weights, message, name="the weights", **near)


with check("the values, post-norm", points=0.75):
    values(norm_first=False)
with check("the values, pre-norm", points=0.75):
    values(norm_first=True)
    _, sizes, x, parameters, _ = cases[1]
    expected, _ = torchs_values(parameters, sizes[1], True, x)
    ways = "by their names, outside torch.no_grad()", "as np.int64, under torch.no_grad()"
    for way, found in zip(ways, made_in_other_ways(parameters, sizes, x), strict=True):
        message = (
            f"d_model, num_heads, d_ff = {sizes}, given {way}, x of shape {tuple(x.shape)}, "
            "norm_first=True: the output should be torch's."
        )
        assert_close(found, expected, message, name="the output", rtol=1e-4, atol=1e-5)
with check("each text as alone", points=0.25):
    calls = []
    for place, (lead, _, x, _, _) in enumerate(cases):
        for norm_first in (False, True):
            texts = x, x.square() - 1, *(x[one] for one in np.ndindex(*lead))
            calls += [(place, norm_first, text) for text in texts]
    of_block = evaluated(blocks[: len(cases)], calls)
    for lead, _, x, _, message in cases:
        for _ in (False, True):
            output, _ = next(of_block)
            shape = message + "the output has the shape of x."
            assert_equal(list(output.shape), list(x.shape), shape)
            other, _ = next(of_block)
            moved = [bool((one - output).abs().max() > 1e-3) for one in (other, x)]
            differ = message + (
                "other words should give another output, and none should be x itself or hold NaN."
            )
            assert_equal(moved, [True, True], differ, name="another than that, another than x")
            for one in np.ndindex(*lead):
                alone, _ = next(of_block)
                near = {"rtol": 1e-4, "atol": 1e-5}
                same = message + "each text should come out as your block gives it alone."
                assert_close(output[one], alone, same, **near, against="for this text alone")
with check("post-norm is the default; both modes; precision; other parts", points=0.25, side=True):
    orders = None, False, True
    calls = [(place, first, case[2]) for place, case in enumerate(cases) for first in orders]
    of_block = forward(blocks[: len(cases)], calls)
    for _, sizes, x, parameters, message in cases:
        _, (output, _) = next(of_block)
        trained, after = next(of_block)
        near = {"rtol": 1e-4, "atol": 1e-5}
        default = message + (
            "without norm_first as with norm_first=False, and no NaN: post-norm is the default."
        )
        output, expected = output.double(), after[0].double()
        assert_close(output, expected, default, **near, against="with norm_first=False")
        for found, again in zip(*next(of_block), strict=True):
            modes = message + "norm_first=True: in training mode as in evaluation mode, and no NaN."
            assert_close(found, again, modes, against="in evaluation mode")
        for found, again in zip(trained, after, strict=True):
            modes = message + "in training mode as in evaluation mode, and no NaN."
            assert_close(found, again, modes, against="in evaluation mode")
            assert_equal(str(found.dtype), "torch.float64", message + "float64 stays float64.")
        expected, _ = torchs_values(parameters, sizes[1], False, x)
        digits = message + (
            "the output should be torch's, in float64 digit by digit. Check first: is eps 1e-5, "
            "and nothing float32?"
        )
        assert_close(trained[0], expected, digits, precise=True)
    _, sizes, x, parameters, message = cases[1]
    others = parameters_for(rng, sizes[0], sizes[2])
    parts = "attention", "norm1", "feed_forward", "norm2"
    mixed = []
    for part in parts:
        of_other = {name: one for name, one in others.items() if name.startswith(f"{part}.")}
        mixed.append((sizes, parameters | of_other))
    calls = [(place, first, x) for place in range(4) for first in (False, True)]
    of_block = evaluated(mixed, calls)
    for part in parts:
        for norm_first in (False, True):
            expected, _ = next(of_block)
            replaced = message + (
                f"norm_first={norm_first}, after the block was made its {part} is replaced by that of "
                "another block: the output should be that of a block with these parameters. Check "
                "first: does forward use the part that stands under this name when it is called?"
            )
            output = with_a_part_of_another(parameters, others, sizes, norm_first, part, x)
            new = "in a new block"
            assert_close(output, expected, replaced, rtol=1e-4, atol=1e-5, against=new)
checks_passed("TransformerBlock")
### END HIDDEN TESTS


# %% check="TransformerBlock_masks" points=3
# Hidden checks of TransformerBlock: masks of every shape, and words that may attend to nothing.
### BEGIN HIDDEN TESTS
@probe
def forward(parameters, norm_first, x, mask):
    torch.manual_seed(0)
    block = TransformerBlock(12, 3, 7, norm_first).double().eval()
    with torch.no_grad():
        block.load_state_dict(parameters, strict=False)
        given = [x.clone() for _ in range(2)]
        masks = [None if mask is None else mask.clone() for _ in range(2)]
        return block(given[0], mask=masks[0]), block(given[1], masks[1]), given, masks


@probe
def forward_masked(parameters, norm_first, calls):
    """What a new block gives for each text and mask; up to one that raises, if not the first."""
    torch.manual_seed(0)
    start, found = torch.get_rng_state(), []
    with torch.no_grad():
        for x, mask in calls:
            try:
                torch.set_rng_state(start)
                block = TransformerBlock(12, 3, 7, norm_first).double().eval()
                block.load_state_dict(parameters, strict=False)
                found.append(block(x.clone(), mask=None if mask is None else mask.clone()))
            except Exception:
                if not found:
                    raise
                break
    return found


@probe
def output_or_error(parameters, norm_first, x, mask):
    torch.manual_seed(0)
    block = TransformerBlock(12, 3, 7, norm_first).double().eval()
    with torch.no_grad():
        block.load_state_dict(parameters, strict=False)
        try:
            return "nothing", block(x, mask)[0]
        except NotImplementedError:
            raise
        except (RuntimeError, ValueError, IndexError) as error:
            return type(error).__name__, x


@probe
def in_turn(parameters, norm_first, x, masks, how):
    """What one block gives with one mask after the other."""
    torch.manual_seed(0)
    block = TransformerBlock(12, 3, 7, norm_first).double().train(how == "in training mode")
    with torch.no_grad():
        block.load_state_dict(parameters, strict=False)
        if how == "in another order in memory":
            x = x.mT.contiguous().mT
            masks = [mask if mask is None else mask.mT.contiguous().mT for mask in masks]
        masks = [mask if mask is None else mask.clone() for mask in masks]
        return [block(x.clone(), mask) for mask in masks]


def torchs_masked(p, norm_first, x, mask):
    """Output and weights; mask (..., 3 or 1, n, n) with a head axis."""

    def attend(y):
        Q, K, V = (
            torch.stack(
                F.linear(y, p[f"attention.W_{i}.weight"], p[f"attention.W_{i}.bias"]).chunk(3, -1),
                dim=-3,
            )
            for i in "qkv"
        )
        words = V.shape[-2]
        V = torch.cat([V, torch.eye(words, dtype=V.dtype).expand(*V.shape[:-1], -1)], -1)
        both = F.scaled_dot_product_attention(Q, K, V, mask.expand(*Q.shape[:-1], words))
        heads, weights = both[..., :4], both[..., 4:]
        joined = torch.cat(heads.unbind(-3), -1)
        return F.linear(joined, p["attention.W_o.weight"], p["attention.W_o.bias"]), weights

    def feed(y):
        one, two = (f"feed_forward.linear{i}" for i in (1, 2))
        hidden = F.linear(y, p[f"{one}.weight"], p[f"{one}.bias"]).relu()
        return F.linear(hidden, p[f"{two}.weight"], p[f"{two}.bias"])

    def norm(i, y):
        return F.layer_norm(y, (12,), p[f"norm{i}.gamma"], p[f"norm{i}.beta"], 1e-5)

    if norm_first:
        change, weights = attend(norm(1, x))
        middle = x + change
        return middle + feed(norm(2, middle)), weights
    change, weights = attend(x)
    middle = norm(1, x + change)
    return norm(2, middle + feed(middle)), weights


rng = check_rng()
sizes = {f"attention.W_{name}": (12, 12) for name in "qkvo"}
sizes |= {"feed_forward.linear1": (7, 12), "feed_forward.linear2": (12, 7)}
p = {}
for name, size in sizes.items():
    p[f"{name}.weight"] = torch.tensor(rng.normal(size=size) / math.sqrt(size[1]))
    p[f"{name}.bias"] = torch.tensor(rng.normal(size=size[0]))
for name in ("norm1.gamma", "norm1.beta", "norm2.gamma", "norm2.beta"):
    p[name] = torch.tensor(rng.normal(size=12))
n = 5
x = torch.tensor(rng.normal(size=(2, n, 12)))
causal = torch.ones(n, n, dtype=torch.bool).tril()
lengths = torch.arange(n) < torch.tensor([3, 4])[:, None, None]  # (batch, 1, n)
per_head = torch.tensor(rng.random((2, 3, n, n)) < 0.5)
per_head |= torch.eye(n, dtype=torch.bool).roll(1, 0)  # each word may look at least at one
everywhere = torch.zeros(n, n, dtype=torch.bool)  # no word may attend to anything
one_text = torch.stack([torch.zeros(1, n, dtype=torch.bool), lengths[1]])  # text 0: nothing at all


near = {"rtol": 1e-4, "atol": 1e-5}


def by_block(norm_first, calls, parameters=p):
    """Both results of one call after another, whatever their precision.

    What raised in a list is called again, by itself.
    """
    found = forward_masked(parameters, norm_first, calls)
    for place, call in enumerate(calls):
        both = found[place:] or forward_masked(parameters, norm_first, [call])
        output, weights = both[0]
        yield output.double(), weights.double()


long = torch.tensor(rng.normal(size=(2, 70, 12)))
seen = torch.tensor(rng.random((70, 70)) < 0.5) | torch.eye(70, dtype=torch.bool)
masked = [(x, causal), (x, per_head), (x, torch.ones(n, n, dtype=torch.bool)), (long, seen)]
masked += [(x[:, :1], torch.ones(1, 1, dtype=torch.bool)), (long[:, :33], seen[:33, :33].tril())]
masked.append((-x.abs(), causal))


def values(norm_first):
    of_block = by_block(norm_first, masked)
    for text, mask in masked:
        output, weights = next(of_block)
        expected, expected_weights = torchs_masked(p, norm_first, text, mask)
        start = (
            f"x of shape {tuple(text.shape)}, a mask of shape {tuple(mask.shape)}, "
            f"norm_first={norm_first}: the "
        )
        message = start + (
            "weights should be torch's, those with which the attention makes the output. Check "
            "first: what does the attention get, x or a norm of it, and is its mask the one given?"
        )
        assert_close(weights, expected_weights, message, name="the weights", **near)
        message = start + "output should be torch's."
        assert_close(output, expected, message, name="the output", **near)


def with_mask(norm_first, text, mask):
    """What is raised, and the output."""
    raised, output = output_or_error(p, norm_first, text, mask)
    return raised, output.double()


def shapes(norm_first):
    one_word = torch.tensor([True, False, True, True, False])
    cases = [(x, mask) for mask in (causal, one_word, lengths, lengths & causal)]
    cases += [(x[0], causal), (x[:, None], causal), (x[:, None], lengths[:, None])]
    three = torch.cat([x, -x[:1]])[:, :3]  # as many texts as words as heads
    triangle = causal[:3, :3]
    cases += [(three, triangle), (three, torch.stack([triangle, triangle.T, triangle.flip(0)]))]
    cases += [(x[:1], lengths[:1]), (x[:1, None], lengths[:1, None])]  # one text, and (1, 1)
    in_full, calls = [], []
    for text, mask in cases:  # also one text without a batch axis, and two such axes
        words = text.shape[-2]
        full = mask.unsqueeze(-3) if mask.ndim > 2 else mask.expand(words, words)
        in_full.append(full.expand(*text.shape[:-2], 3, words, words).clone())
        calls += [(text, in_full[-1]), (text, None)]
    of_block = by_block(norm_first, calls)
    for (text, mask), full in zip(cases, in_full, strict=True):
        message = (
            f"x of shape {tuple(text.shape)}, a mask of shape {tuple(mask.shape)}, "
            f"norm_first={norm_first}: the output should be that of your block with the same mask "
            f"written with all its axes, {tuple(full.shape)}. Check first: is the mask passed on "
            "to the attention as it is?"
        )
        expected, _ = next(of_block)
        refused, output = with_mask(norm_first, text, mask)
        allowed = (
            f"x of shape {tuple(text.shape)}, a mask of shape {tuple(mask.shape)}, "
            f"norm_first={norm_first}: this mask is allowed, as in the attention of lesson 5. Your "
            f"block raises {refused} here, and takes the same mask with all its axes written, "
            f"{tuple(full.shape)}. Check first: is the mask passed on to the attention as it is?"
        )
        assert_equal(refused, "nothing", allowed, name="what is raised")
        plain, _ = next(of_block)
        moved = bool((expected - plain).abs().max() > 1e-3)
        effect = (
            f"norm_first={norm_first}: a mask of shape {tuple(full.shape)} should change the "
            "output, and neither output should hold NaN."
        )
        name = "'the mask changes the output, and all is finite'"
        assert_equal(moved, True, effect, name=name)
        all_axes = "with all axes written"
        assert_close(output, expected, message, name="the output", against=all_axes, **near)


def nothing_to_see(norm_first):
    # An attention that finds nothing gives its output bias. So does one whose W_o.weight is 0.
    blind = p | {"attention.W_o.weight": torch.zeros(12, 12, dtype=torch.float64)}
    mask = torch.ones(2, n, n, dtype=torch.bool)
    mask[1, 2] = False  # word 2 of the second text
    unseen = (x, everywhere), (x[0], everywhere), (x, one_text)
    of_block = by_block(norm_first, [(x, None), (x, mask), *unseen])
    expected = next(of_block)[0].clone()
    alone, _ = next(by_block(norm_first, [(x, None)], blind))
    moved = bool((expected - alone).abs().max() > 1e-3)
    message = (
        "Without a mask: another W_o.weight, 0 everywhere, should change the output, and neither "
        "output should hold NaN."
    )
    assert_equal(moved, True, message, name="'the output changes, and all is finite'")
    expected[1, 2] = alone[1, 2]
    output, weights = next(of_block)
    message = (
        f"norm_first={norm_first}, word 2 of the second text may attend to nothing: its weights "
        "are 0, those of every other word sum to 1, and the attention gives the bias of W_o for "
        "it. The residual and the feed-forward go on as usual, and other words come out as without "
        "a mask."
    )
    sums = torch.ones(2, 3, n, dtype=torch.float64)
    sums[1, :, 2] = 0.0
    assert_close(weights.sum(-1), sums, message, name="the sums of the weights", **near)
    plain = "from your outputs without a mask"
    assert_close(output, expected, message, name="the output", against=plain, **near)
    for text, mask in unseen:
        output, weights = next(of_block)
        which = "text 0" if mask is one_text else "all words"
        message = (
            f"norm_first={norm_first}, x of shape {tuple(text.shape)}, a mask of shape "
            f"{tuple(mask.shape)} that is False for {which}: no word there may attend to anything. "
            "All their weights are 0, and the attention gives the bias of W_o for each of them. A "
            "mask that forbids everything is still a mask."
        )
        if text is x:
            output, weights = output[0], weights[0]
        zeros = torch.zeros(3, n, n, dtype=torch.float64)
        assert_equal(weights, zeros, message, name="the weights of text 0")
        bias = "from your outputs with W_o.weight = 0"
        assert_close(output, alone[0], message, name="the output of text 0", against=bias, **near)


with check("the values, post-norm", points=0.5):
    values(norm_first=False)
with check("masks of all shapes, post-norm: as with all their axes", points=0.5):
    shapes(norm_first=False)
with check("nothing to see, post-norm: weights 0, as with W_o.weight 0", points=0.25):
    nothing_to_see(norm_first=False)
with check("the values, pre-norm", points=0.5):
    values(norm_first=True)
with check("masks of all shapes, pre-norm: as with all their axes", points=0.5):
    shapes(norm_first=True)
with check("nothing to see, pre-norm: weights 0, as with W_o.weight 0", points=0.25):
    nothing_to_see(norm_first=True)
with check("mask by name as by place; x, mask kept; later calls as alone", points=0.5, side=True):
    by_name, by_place, each_x, each_mask = forward(p, False, x.clone(), per_head.clone())
    message = (
        "The mask as mask=mask and as the second argument should give the same output, and no NaN."
    )
    assert_close(by_name[0], by_place[0], message, against="as the second argument")
    for x_after, mask_after in zip(each_x, each_mask, strict=True):
        assert_equal(x_after, x, "x is changed by the call.", name="x")
        assert_equal(mask_after, per_head, "The mask is changed by the call.", name="the mask")
    masks = causal, per_head, None
    for norm_first in (False, True):
        alone = [in_turn(p, norm_first, x, [mask], "in evaluation mode")[0] for mask in masks]
        for how in ("in evaluation mode", "in training mode", "in another order in memory"):
            found = in_turn(p, norm_first, x, masks, how)
            for mask, one, other in zip(masks, found, alone, strict=True):
                given = "no mask" if mask is None else f"a mask of shape {tuple(mask.shape)}"
                message = (
                    f"norm_first={norm_first}, three calls of one block with other masks ({how}; "
                    f"here {given}): each should give what a new block with the same parameters "
                    "gives in evaluation mode, with x and mask in the usual order in memory, and "
                    "no NaN."
                )
                new = "in a new block"
                assert_close(one[0], other[0], message, name="the output", against=new)
                assert_close(one[1], other[1], message, name="the weights", against=new)
checks_passed("TransformerBlock")
### END HIDDEN TESTS


# %% check="TransformerBlock_gradients" points=2
# Hidden checks of TransformerBlock: gradients to x and all parameters, through both results, also
# where a word may attend to nothing.
### BEGIN HIDDEN TESTS
@probe
def gradients(parameters, norm_first, x, mask, toward_output, toward_weights):
    torch.manual_seed(0)
    block = TransformerBlock(6, 2, 7, norm_first).double().eval()
    block.load_state_dict(parameters, strict=False)
    x = x.clone().requires_grad_()
    output, weights = block(x, mask)
    total = (output * toward_output).sum() + (weights * toward_weights).sum()
    if total.requires_grad:
        total.backward()
    found = {name: parameter.grad for name, parameter in block.named_parameters()}
    return {"x": x.grad} | {name: found.get(name) for name in parameters}


@probe
def quotients(given, norm_first, mask, toward_output, toward_weights, directions):
    """How the block's own results change when x, or a parameter, moves a little each way."""
    torch.manual_seed(0)
    block = TransformerBlock(6, 2, 7, norm_first).double().eval()

    def total(values):
        block.load_state_dict({n: v for n, v in values.items() if n != "x"}, strict=False)
        with torch.no_grad():
            output, weights = block(values["x"].clone(), mask.clone())
        return float((output * toward_output).sum() + (weights * toward_weights).sum())

    found = []
    for name, direction in directions.items():
        there, back = (total(given | {name: given[name] + h * direction}) for h in (1e-5, -1e-5))
        found.append((there - back) / 2e-5)
    return found


def by_torch(p, norm_first, x, mask, toward_output, toward_weights):
    def attend(y):
        Q, K, V = (
            F.linear(y, p[f"attention.W_{i}.weight"], p[f"attention.W_{i}.bias"])
            .unflatten(-1, (2, 3))
            .transpose(-2, -3)
            for i in "qkv"
        )
        V = torch.cat([V, torch.eye(4, dtype=V.dtype).expand(2, 2, 4, 4)], -1)
        both = F.scaled_dot_product_attention(Q, K, V, mask.expand(2, 2, 4, 4))
        joined = both[..., :3].transpose(-2, -3).flatten(-2)
        change = F.linear(joined, p["attention.W_o.weight"], p["attention.W_o.bias"])
        return change, both[..., 3:]

    def feed(y):
        one, two = (f"feed_forward.linear{i}" for i in (1, 2))
        hidden = F.linear(y, p[f"{one}.weight"], p[f"{one}.bias"]).relu()
        return F.linear(hidden, p[f"{two}.weight"], p[f"{two}.bias"])

    def norm(i, y):
        return F.layer_norm(y, (6,), p[f"norm{i}.gamma"], p[f"norm{i}.beta"], 1e-5)

    change, weights = attend(norm(1, x) if norm_first else x)
    middle = x + change if norm_first else norm(1, x + change)
    output = middle + feed(norm(2, middle) if norm_first else middle)
    output = output if norm_first else norm(2, output)
    ((output * toward_output).sum() + (weights * toward_weights).sum()).backward()


rng = check_rng()
sizes = {f"attention.W_{name}": (6, 6) for name in "qkvo"}
sizes |= {"feed_forward.linear1": (7, 6), "feed_forward.linear2": (6, 7)}
p = {}
for name, size in sizes.items():
    p[f"{name}.weight"] = torch.tensor(rng.normal(size=size) / math.sqrt(size[1]))
    p[f"{name}.bias"] = torch.tensor(rng.normal(size=size[0]))
for name in ("norm1.gamma", "norm1.beta", "norm2.gamma", "norm2.beta"):
    p[name] = torch.tensor(rng.normal(size=6))
x, toward_output = (torch.tensor(rng.normal(size=(2, 4, 6))) for _ in range(2))
toward_weights = torch.tensor(rng.normal(size=(2, 2, 4, 4)))
everything = torch.ones(4, 4, dtype=torch.bool)
nothing = everything.tril()
nothing[1] = False
directions = {name: torch.tensor(rng.normal(size=one.shape)) for name, one in {"x": x, **p}.items()}


def as_it_changes(norm_first, mask, what):
    """Each gradient, along one direction, against the change of the block's own results."""
    found = gradients(p, norm_first, x, mask, toward_output, toward_weights)
    slopes = quotients({"x": x, **p}, norm_first, mask, toward_output, toward_weights, directions)
    moves = bool(np.abs(slopes).max() > 1e-2)
    message = (
        f"norm_first={norm_first}, {what}: the results should depend on x or on a parameter, and "
        "hold no NaN."
    )
    assert_equal(moves, True, message, name="'something changes, and all is finite'")
    along = [
        0.0 if found[name] is None else float((found[name] * direction).sum())
        for name, direction in directions.items()
    ]
    assert_close(
        np.array(along),
        np.array(slopes),
        f"norm_first={norm_first}, {what}: the gradients should say how your own results change "
        "when x or a parameter moves a little. They should flow from output and weights to x and "
        "to every parameter, and be finite. Check first: is something detached?",
        name="the gradients, along one direction each",
        against="by small steps",
        rtol=1e-3,
        atol=1e-4,
    )


with check("a mask that allows all: your results' slopes", points=1):
    for norm_first in (False, True):
        as_it_changes(norm_first, everything, "all allowed")
with check("causal mask, a word with nothing to see: results' slopes", points=0.5):
    for norm_first in (False, True):
        as_it_changes(norm_first, nothing, "one word with nothing to see")
with check("as torch's, and one word with nothing to see", points=0.5):
    for norm_first in (False, True):
        leaves = {name: one.clone().requires_grad_() for name, one in [("x", x), *p.items()]}
        by_torch(leaves, norm_first, leaves["x"], nothing, toward_output, toward_weights)
        found = gradients(p, norm_first, x, nothing, toward_output, toward_weights)
        for name, leaf in leaves.items():
            message = (
                f"norm_first={norm_first}, one word with nothing to see: the gradient of {name} "
                "should be that of torch's functions. It is that of one number, in which all of "
                "the output and all of the weights are summed up, each times a factor of its own. Check "
                "first: are output and weights torch's themselves?"
            )
            assert_close(found[name], leaf.grad, message, name=f"the gradient of {name}",
                         rtol=1e-6, atol=1e-8)  # fmt: skip
checks_passed("TransformerBlock")
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
# attention. In most transformers, most of the parameters are there and not in the attention.
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
figure, panels = plt.subplots(1, 2, figsize=(12, 5.6))
draw_heatmap(panels[0], by_place, places, places, row_label="output position", vmax=0.5,
             column_label="input position")  # fmt: skip
draw_heatmap(panels[1], by_digit, places, places, row_label="output position", vmax=0.5,
             column_label="digit, wherever it stands")  # fmt: skip
panels[0].set_title("second block, by place")
panels[1].set_title("second block, by digit")
figure.tight_layout()
centre = by_digit @ torch.arange(10.0)  # the mean digit that each output position looks at
print("mean digit looked at, by output position:", centre.numpy().round(1))
show(
    figure,
    "Figure 2. The same weights, averaged in two ways. Left: where a digit stands hardly matters. "
    "Right: output position 0 looks for small digits, position 9 for large ones, and those between "
    "for the digits that are usual there. A band of several digits does not say which one to "
    "write.",
    "Two heat maps of 10 by 10. Left, output by input position: all entries near 0.1. Right, "
    "output position by digit: a band from small digits at position 0 to large digits at "
    "position 9.",
    "by place\n\n" + text_table(by_place, places, places, corner="output \\ input")
    + "\n\nby digit\n\n" + text_table(by_digit, places, places, corner="output \\ digit"),
)  # fmt: skip

# %% [markdown]
# The method begins to show. Each output position $p$ asks: "who holds a digit of about the size
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

# %% tags=["demonstration", "nbval-ignore-output"]
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


hiding_leaves = hiding(sorter)
for name, right in hiding_leaves.items():
    print(f"hidden: {name:31s} digits right {right:.2f}")

# %% tags=["demonstration"]
called = {"far digits": "far", "as many at random": "random", "the right digit": "right"}
by_harm = sorted(called, key=hiding_leaves.get)
reply("guess_harm", guess_harm, (called[by_harm[0]], called[by_harm[-1]]))

# %% [markdown]
# Hiding the right digit, or as many at random as there are far ones, does great harm; hiding the far
# digits does nearly none. It is tempting to conclude that the second block uses all the digits of
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

# %% tags=["demonstration", "nbval-ignore-output"]
parts = ("residuals", "norms", "feed-forward", "second block")
two_blocks |= {part: sorts_without(part) for part in parts}
for part, (digits, whole) in two_blocks.items():
    print(f"missing: {part:13s} digits right {digits:.2f}   whole texts right {whole:.2f}")

# %% tags=["demonstration"]
came_out = {part for part, (digits, _) in two_blocks.items() if digits > 0.8} - {"nothing"}
reply("guess_spared", guess_spared, came_out, "Only attention and positions cannot be spared.")

# %% [markdown]
# Only attention and positions cannot be spared. (The 0.40 without attention is what a digit's own
# value and its place tell.) Each of the others can be, and still more than nine digits of ten are
# right. Whole texts tell more: without norms or the second block nearly all are right, without
# residuals or the feed-forward only two thirds to three quarters. So what are these two good for? The
# feed-forward can **store facts**, and residuals are needed in **deep** stacks. We measure both
# below.
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
for part, right in facts.items():
    print(f"facts, missing: {part:13s} right {right:.3f}")

# %% [markdown]
# The whole block knows nearly the whole table. Without the feed-forward, or without its ReLU, half
# of it or more is wrong. The ReLU is what makes the wide layer worth its parameters: without it,
# two linear layers are one linear layer, $(xW_1)W_2 = x(W_1W_2)$. Geva, Schuster, Berant and Levy
# (2021) looked into a trained language model and describe its feed-forward layers as memories.
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
started = {k: np.mean([at_the_start(k, s) for s in range(3)], axis=0) for k in kinds}  # (2, 12)
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.8))
for (kind, (sizes, alike)), style in zip(started.items(), ("o-", "s--", "^-.", "x:", "v:")):
    left.semilogy(range(1, 13), sizes, style, label=kind)
    right.plot(range(1, 13), alike, style, label=kind)
    print(f"{kind:22s} gradient, block 1 / block 12: {sizes[0] / sizes[-1]:7.1e}   "
          f"cosine of two words after block 12: {alike[-1]:.2f}")  # fmt: skip
left.set(xlabel="block (12 is next to the answer)", ylabel="size of the gradient")
right.set(xlabel="after block", ylabel="mean cosine of two words", ylim=(0, 1.05))
right.legend(loc="lower left", bbox_to_anchor=(0.12, 0.48))
figure.tight_layout()
blocks = [1, 2, 4, 8, 12]
rows = [[math.log10(sizes[b - 1]) for b in blocks] for sizes, _ in started.values()]
cosine_rows = [[alike[b - 1] for b in blocks] for _, alike in started.values()]
show(
    figure,
    "Figure 3. Before training, random weights, mean of three seeds. Left: with residuals the "
    "gradients of all blocks are about equal. Without them that of the first is less than a tenth "
    "of the last; without residuals and norms there is practically none. Right: without residuals "
    "all words of a text point in the same direction after two blocks, with norms or without. Do "
    "not conclude from the left panel alone who will learn.",
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


# %% tags=["demonstration", "nbval-ignore-output"]
names = ("post-norm, rate 0.003", "post-norm, rate 0.01", "post-norm, rate 0.01, warm-up")
deep = {name: train_deep(name) for name in names}

# %% tags=["demonstration", "nbval-ignore-output"]
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
figure, axes = plt.subplots(figsize=(7.4, 4.2))
for (name, right), style in zip(deep.items(), ("-", "--", "-.", "-", ":", "-.", "--")):
    smooth = np.convolve(right, np.ones(10) / 10, "valid")  # mean over ten steps
    axes.plot(np.arange(len(smooth)) + 10, smooth, style, label=name, linewidth=2)
axes.set(xlabel="step", ylabel="share of digits right", ylim=(0, 1))
axes.axhline(blind, color="grey", linewidth=1, label="most frequent digit of each place")
axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1))
steps = range(20, 81, 20)
rows = [[right[step - 20 : step].mean() for step in steps] for right in deep.values()]
show(
    figure,
    "Figure 4. Twelve blocks. Four stacks learn, three stay below the grey line: who always writes "
    "the most frequent digit of each place, without looking at the text, does better. Do not "
    "conclude anything about models that train for months: this is one task, 80 steps and one seed.",
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
# In numbers, all from one seed:
#
# - At 0.01 post-norm is not slow, it is **stuck**: 0.1 to 0.2, below the grey line (0.30). Warm-up
#   helps, but not fully: about 0.7, and when the full rate is reached it falls back for some twenty
#   steps. At 0.003 it is 0.9.
# - Pre-norm learns at 0.01 from the first step: 0.9. A stack without norms also learns: 0.75.
#
# So here **where the norm stands** decides how large the first steps may be. Xiong and others (2020)
# explain it with the gradients of a new post-norm stack. In figure 3 the post-norm curve looks
# harmless, so here the start alone does not tell the story: the failure comes in the first steps.

# %% tags=["demonstration", "nbval-ignore-output"]
# What sections 1 to 8 say about the measurements, once more, for your machine. No need to read it.
assert means["12 x added"] > 0.3
assert means["12 x replaced"] > 0.999
assert means["  without neighbours"] < 0.7 and means["12 x added"] < 0.7
assert by_place.max() < 0.25 and centre[9] - centre[0] > 3 and (centre.diff() > -0.3).all()
assert hiding_leaves["far digits"] > 0.96 and hiding_leaves["as many at random"] < 0.9
assert hiding_leaves["the right digit"] < 0.85
assert hiding_leaves["at random, the right one spared"] > 0.95  # observed: 0.99
assert hiding_leaves["all but the right digit"] > 0.95  # observed: 0.99
assert two_blocks["attention"][0] < 0.55 and two_blocks["positions"][0] < 0.4
assert min(two_blocks[part][0] for part in ("nothing", *parts)) > 0.9
assert min(two_blocks[part][1] for part in ("nothing", "norms", "second block")) > 0.88
assert max(two_blocks[part][1] for part in ("residuals", "feed-forward")) < 0.86
assert facts["nothing"] > 0.85 and facts["feed-forward"] < 0.65 and facts["ReLU"] < 0.65
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
# one counts. Digits stayed right, but fewer whole texts were; and of a table of random facts much
# was wrong without the feed-forward or without its ReLU. One task on which a part
# is not needed does not show that it is never needed.
#
# **Marking scheme** (4 points). 1 point: adds instead of replaces (words stay different, or a
# path for the gradient), with one measurement. 1 point: where the norm stands on the residual
# path. 1 point: the measured results **with** learning rates; no point for "post-norm does not
# train" without a rate. 1 point: needed for another task (facts), so one task does not settle it.
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
# Which parts of a block may carry something from one word to another? Count the axes that each
# line works on. Lesson 6 has a function that finds such a bug without looking at the code; it wants
# a function of arrays, and `causal`, below the friend's block, makes one of a block and its mask.
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
# Copy `friends_block` and mend it: change what is wrong, and leave the rest of the friend's choices
# as it is.
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


# %% check="mended_block" points=2
@probe
def run_block(n, texts):
    """The block's parameters, its mask, and what it makes of texts of any length."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        block, mask = mended_block(n)
    parameters = {name: value.detach().clone() for name, value in block.named_parameters()}
    with torch.no_grad():
        results = [block(X.clone(), mask[: len(X), : len(X)])[0] for X in texts]
    return parameters, mask, results


@probe
def classes_of_block(n):
    return [one.__name__ for one in type(mended_block(n)[0]).__mro__]


def expected_result(parameters, X, eps1):
    """The same, from lesson 5's attention and torch's functions; mask and norms as they should be."""
    attention = MultiHeadAttention(16, 2).double()
    start = "attention."
    attention.load_state_dict(
        {name[len(start) :]: v for name, v in parameters.items() if name.startswith(start)}
    )
    triangle = torch.ones(len(X), len(X), dtype=torch.bool).tril()
    with torch.no_grad():
        seen = attention(F.layer_norm(X, (16,), eps=eps1), mask=triangle)[0]
    hidden = F.layer_norm(X, (16,), eps=1e-3)
    for name in ("linear1", "linear2"):
        weight, bias = (parameters[f"feed_forward.{name}.{kind}"] for kind in ("weight", "bias"))
        hidden = F.linear(hidden.relu() if name == "linear2" else hidden, weight, bias)
    return X + seen + hidden


rng = check_rng()
text = torch.tensor(rng.normal(size=(6, 16)))
other = text.clone()
other[-1] = torch.tensor(rng.normal(size=16))  # another last word
with check("no word feels a later one", points=0.75):
    parameters, mask, (found, changed) = run_block(6, [text, other])
    message = "Another last word should give another result for this word."
    name = "'both are finite, and they differ by over 0.001'"
    assert_equal(bool((found[-1] - changed[-1]).abs().max() > 1e-3), True, message, name=name)
    message = "Words 0 and 1, which differ, should give different results."
    assert_equal(bool((found[0] - found[1]).abs().max() > 1e-3), True, message, name=name)
    assert_close(
        changed[:-1],
        found[:-1],
        "The last word was exchanged: the results of all words before it should stay as they are. "
        "Check first: over which axes does each norm take its mean, and what does the mask allow?",
        name="the results before the last word",
        against="with the old last word",
    )
with check("the friend's mask", points=0.25):
    parameters, mask, (found,) = run_block(6, [0.05 * text])
    expected = torch.ones(6, 6, dtype=torch.bool).tril()
    message = "The mask, second of the pair, is causal_mask(n) as a torch tensor of bool."
    assert_equal(mask, expected, message, name="the mask")
with check("the friend's wide feed-forward", points=0.25, side=True):
    parameters, mask, (found,) = run_block(6, [0.05 * text])
    weight = parameters.get("feed_forward.linear1.weight")
    width = None if weight is None else list(weight.shape)
    message = "The block's part feed_forward is a FeedForward(16, 128): 128 wide."
    assert_equal(width, [128, 16], message, name="the shape of feed_forward.linear1.weight")
with check("both norms, norm2's eps of 1e-3, and SideBySide", points=0.75):
    parameters, mask, (found,) = run_block(6, [0.05 * text])
    assert_close(
        found,
        expected_result(parameters, 0.05 * text, 1e-5),
        "A small text (features near 0.05, so that eps counts). Looked at is what all parts give "
        "together: attention and feed-forward side by side, as the friend had it; norm1, an ordinary "
        "layer norm over the 16 features of a word, with an eps of 1e-5; norm2, the same with an eps "
        "of 1e-3; the mask as the friend had it. Check first: has each norm its own eps, norm2 the "
        "friend's?",
        name="the result",
        against="in torch, with your block's parameters",
    )
    message = "The block, first of the pair, is a SideBySide, as the friend's is."
    assert_equal("SideBySide" in classes_of_block(6), True, message, name="'it is a SideBySide'")
    for part in ("norm1", "norm2"):
        of_part = [list(one.shape) for name, one in parameters.items() if name.startswith(part)]
        message = (
            f"{part} is an ordinary layer norm over the 16 features of a word, with two parameters "
            "of 16 numbers, a scale and a shift, as the friend's norm had a scale and a shift."
        )
        assert_equal(of_part, [[16], [16]], message, name=f"the shapes of {part}'s parameters")
checks_passed("mended_block")


# %% check="mended_block_lengths" points=1
# Hidden checks of mended_block: shorter texts, every position, other lengths, the mask of each, a
# batch.
### BEGIN HIDDEN TESTS
@probe
def run_block(n, texts):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        block, mask = mended_block(n)
    with torch.no_grad():
        return [block(X.clone(), mask[: len(X), : len(X)].clone())[0] for X in texts]


@probe
def mask_of(n):
    return mended_block(n)[1]


@probe
def others_than_float64(n):
    parameters = mended_block(n)[0].named_parameters()
    return {name: str(one.dtype) for name, one in parameters if one.dtype != torch.float64}


@probe
def masks_in_other_ways(n):
    return mended_block(n=n)[1], mended_block(np.int64(n))[1]


@probe
def batch_and_each(n, texts):
    """What one block makes of a batch, and of each of its texts."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        block, mask = mended_block(n)
    with torch.no_grad():
        alone = [block(text.clone(), mask.clone())[0] for text in texts]
        try:
            return "nothing", block(texts.clone(), mask.clone())[0], alone
        except NotImplementedError:
            raise
        except (RuntimeError, ValueError, IndexError) as error:
            return type(error).__name__, texts, alone


for n in (1, 4, 9, 2, 33, 70, 4):
    message = f"n = {n}: the mask is causal_mask({n}) as a torch tensor of bool."
    triangle = torch.ones(n, n, dtype=torch.bool).tril()
    assert_equal(mask_of(n), triangle, message, name="the mask")
for way, found in zip(("n=6", "np.int64(6)"), masks_in_other_ways(6), strict=True):
    message = f"mended_block({way}): the mask is causal_mask(6) as a torch tensor of bool."
    triangle = torch.ones(6, 6, dtype=torch.bool).tril()
    assert_equal(found, triangle, message, name="the mask")
rng = check_rng()
for n in (4, 9):
    text = torch.tensor(rng.normal(size=(n, 16)))
    message = f"n = {n}: a text that ends earlier should give the same results up to there."
    whole, *shorter = run_block(n, [text, *(text[:length] for length in range(1, n))])
    differ = f"n = {n}: words of a text, which differ, should give different results, and no NaN."
    name = "'both are finite, and they differ by over 0.001'"
    assert_equal(bool((whole[1:] - whole[:1]).abs().max() > 1e-3), True, differ, name=name)
    differ = f"n = {n}: the block should give another result than its input, and no NaN."
    assert_equal(bool((whole - text).abs().max() > 1e-3), True, differ, name=name)
    for length, short in enumerate(shorter, start=1):
        name = f"the results of {length} words"
        assert_close(short, whole[:length], message, name=name, against="in the whole text")
for batch, n in ((2, 16), (1, 3), (16, 16), (2, 33), (3, 1), (5, 2)):
    raised, found, alone = batch_and_each(n, torch.tensor(rng.normal(size=(batch, n, 16))))
    message = (
        f"x of shape {(batch, n, 16)} with the mask of shape {(n, n)}: your block takes each of "
        f"these texts alone, {(n, 16)}, with this mask, and raises {raised} for the batch. Check "
        "first: which axis of x is counted from the front?"
    )
    assert_equal(raised, "nothing", message, name="what is raised")
    message = (
        f"A batch of shape {(batch, n, 16)}: each text should come out as the same block gives it "
        "alone, without NaN. Check first: over which axis does each norm take its mean?"
    )
    name = "the results of the batch"
    assert_close(found, torch.stack(alone), message, name=name, against="for each text alone")
not_float64 = others_than_float64(6)
listed = ", ".join(f"{name} is {dtype}" for name, dtype in not_float64.items())
message = f"Every parameter of the block is float64. In yours {listed}."
assert_equal(not_float64, {}, message, name="the parameters that are not float64")
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
# | "Without residuals gradients vanish." | In 12 blocks only if the norms are missing, too. What is lost is the difference between the words. | section 8 |
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
# | feed-forward | $\operatorname{ReLU}(xW_1 + b_1)W_2 + b_2$ | `FeedForward` | computes, stores facts, word by word |
# | post-norm | $\operatorname{LN}(x + f(x))$ | `norm_first=False` | the paper's order |
# | pre-norm | $x + f(\operatorname{LN}(x))$ | `norm_first=True` | stands larger learning rates |
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
# Your stack reads one text. A translator reads one text and writes another. Lesson 9 gives the
# block a second attention that looks at **another** sequence: cross-attention.
