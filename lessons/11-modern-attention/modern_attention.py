# %% [markdown]
# ## What you will be able to do
#
# - **Build** the six parts that today's language models have and the paper of 2017 has not.
# - **Prove** that a new part equals the old one where it should: with as many key-value heads as
#   heads, with a cache, in blocks.
# - **Count** what each part saves: parameters, multiply-adds, numbers kept.
# - **Find** the mistake in a decoder that reads its prompt perfectly and writes nonsense.
# - **Read** the attention of a published model's source, and know every part of it.

# %% tags=["setup"]
import copy
import functools
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

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
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    causal_mask,
    combine_heads,
    scaled_dot_product_attention,
    shift_matrix,
    sinusoidal_positional_encoding,
    split_heads,
    torch_scaled_dot_product_attention,
)
from lesson_kit.figures import show, text_table
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `lesson_kit.earlier` brings the tools of lessons 3 to 8: your own where they passed their checks, else the
# course's. The setup cell says which.
#
# Three questions from memory first. Say your answer aloud, then unfold.
#
# <details><summary>Lesson 8: which two numbers of a word does layer norm make equal for all words?
# </summary>
#
# The mean of its features (0) and their variance (1), before the learned `gamma` and `beta`. This
# lesson asks whether both are needed.
#
# </details>
#
# <details><summary>Lesson 7: why did the model with sinusoids fail at texts longer than in training?
# </summary>
#
# Its vectors exist at every position, but the model had learned what to do with the vectors that
# it had met. A vector that it never met is a stranger, also when a formula makes it.
#
# </details>
#
# <details><summary>Lesson 4: a text gets twice as long. What happens to the number of scores?
# </summary>
#
# Four times as many: $n^2$. Here we keep the $n^2$ multiplications and get rid of most of the
# memory.
#
# </details>
#
# ## 1. What has changed since 2017?
#
# The formula of lesson 3 is still there, unchanged, in the models of today. But open the source of
# one of them, and nearly every part around it has another name:
#
# | part | the paper, 2017 | Llama 3 (2024), Qwen3 (2025) and many others | why | section |
# |---|---|---|---|---|
# | norm | layer norm | **RMS norm** | less to compute, works as well | 2 |
# | feed-forward | two matrices and ReLU | **SwiGLU**: three matrices and a gate | a little better at the same size | 3 |
# | positions | added to the words | **rotary**: queries and keys are turned | only distances count | 4 |
# | heads | each has its own keys and values | **grouped**: several share them | a smaller cache | 5 |
# | generation | word by word; how is not said | **key-value cache** | nothing is computed twice | 6 |
# | softmax | all scores at once | **block by block**, exact | no $n \times n$ scores in memory | 7 |
#
# You will build these six. Two more are shown at the end: norms on queries and keys, and keys that
# are kept as something smaller (sections 8 and 9). For each part the question is the same:
# **equal, better, or only cheaper?**
#
# ## 2. A norm without a mean
#
# Layer norm does two things to a word: it subtracts the mean, and it divides by the standard
# deviation. Zhang and Sennrich (2019) left out the first and divided by the **root of the mean
# square**:
#
# $$\operatorname{RMSNorm}(x) = \frac{x}{\sqrt{\frac1d \sum_{i=1}^{d} x_i^2 + \epsilon}} \odot \gamma ,
# \qquad d = d_{model}$$
#
# No $\mu$, no $\beta$. By hand, for "cat" with four features, and $\epsilon = 2$ so that the numbers
# come out even:
#
# | step | 1 | 2 | 3 | 4 | what is computed |
# |---|---|---|---|---|---|
# | features of "cat" | 1 | 3 | 3 | 3 | squares 1, 9, 9, 9; their mean is 28 / 4 = 7 |
# | divided by $\sqrt{7 + 2} = 3$ | 0.33 | 1 | 1 | 1 | the mean is not 0, and nobody minds |

# %% [markdown]
# ### Exercise 1: `RMSNorm`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# - `RMSNorm(d_model, eps=1e-6)`; its only parameter is `gamma`, shape `(d_model,)`, ones at the
#   start.
# - `forward(x)`: `x (..., d_model)` gives `x / sqrt(mean(x**2) + eps) * gamma`, of the same shape.
#   The mean runs over the last axis, for each word by itself. `eps` stands inside the root.
# - No mean is subtracted, and there is no bias.
# - Checked when graded: the default of `eps`, any number of leading axes, gradients, float64 (after
#   `layer.double()`) computed in float64, `x` unchanged. No errors are graded.
#
# `nn.RMSNorm` would make this one line. Write it with a square, a mean and a root.


# %% answer="RMSNorm"
class RMSNorm(nn.Module):
    """RMS norm: each word divided by the root of its mean square, then a learned scale.

    Parameter gamma (d_model,), ones at the start.
    """

    def __init__(self, d_model, eps=1e-6):
        ### BEGIN SOLUTION
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        ### END SOLUTION

    def forward(self, x):
        """Normalise the last axis.

        Args:
            x: (..., d_model).

        Returns:
            (..., d_model), in the precision of x.
        """
        ### BEGIN SOLUTION
        mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
        return x / torch.sqrt(mean_square + self.eps) * self.gamma
        ### END SOLUTION


# %% check="RMSNorm" points=3
# Four words with four features each, then a batch; compared with torch's own function.
@probe
def start_values(d_model):
    layer = RMSNorm(d_model)
    kind = type(getattr(layer, "gamma", None)).__name__
    return kind, {name: parameter.detach() for name, parameter in layer.named_parameters()}


@probe
def normalise(gamma, x, eps):
    layer = RMSNorm(x.shape[-1], eps)
    with torch.no_grad():
        if isinstance(getattr(layer, "gamma", None), torch.Tensor):
            layer.gamma.copy_(gamma)
        return layer(x.clone())


with check("gamma is the only parameter, and starts with ones", points=0.5):
    kind, parameters = start_values(4)
    assert_equal(kind, "Parameter", "gamma should be an attribute, and an nn.Parameter.", name="gamma")
    assert_equal(
        parameters,
        {"gamma": torch.ones(4)},
        "gamma, of shape (d_model,), should be the only parameter, ones at the start.",
        name="the parameters",
    )
with check("four words by hand, with eps = 2", points=1):
    x = torch.tensor([[1.0, 3, 3, 3], [-2, 4, 2, 2], [0, 0, 0, 0], [0, 1, 0, 0]])
    assert_close(
        normalise(torch.ones(4), x, 2.0),
        x / torch.tensor([[3.0], [3], [3], [1.5]]),
        "The first word, 1 3 3 3, has the mean square (1 + 9 + 9 + 9) / 4 = 7. With eps = 2 the root "
        "is that of 9. No mean is subtracted. Is each word normalised by itself?",
    )
rng = check_rng()
with check("four texts, a random gamma, eps = 0.5, as torch's function", points=1.5):
    gamma = torch.tensor(rng.normal(size=6), dtype=torch.float32)
    x = torch.tensor(1 + 2 * rng.normal(size=(4, 5, 6)), dtype=torch.float32)  # (batch, n, d_model)
    assert_close(
        normalise(gamma, x, 0.5),
        F.rms_norm(x, (6,), gamma, 0.5),
        "Four texts of five words, float32, eps = 0.5: the result should be that of torch's "
        "rms_norm. The mean square runs over the last axis, eps is added inside the root, and "
        "gamma multiplies at the end.",
    )
checks_passed("RMSNorm")


# %% check="RMSNorm_batches" points=2
# Hidden checks of RMSNorm: no, one, two and three leading axes; several widths; float64.
### BEGIN HIDDEN TESTS
@probe
def normalise(gamma, x):
    layer = RMSNorm(x.shape[-1]).double()
    with torch.no_grad():
        layer.load_state_dict({"gamma": gamma}, strict=False)
        return layer(x)


rng = check_rng()
for shape in ((5,), (3, 5), (1, 7), (4, 1, 6), (2, 3, 5), (2, 4, 3, 6), (5, 1, 2, 3, 4), (6, 6, 6)):
    gamma = torch.tensor(rng.normal(size=shape[-1]))
    x = torch.tensor(2 * rng.normal(size=shape) - 1)
    found, other = normalise(gamma, x.clone()), normalise(gamma, x.square() + x)
    message = f"x of shape {shape}: the result should have the same shape."
    assert_equal(list(np.shape(found)), list(shape), message, name="the shape")
    message = f"x of shape {shape}: another x should give another result, without NaN."
    differs = bool((found - other).abs().max() > 1e-3)
    assert_equal(differs, True, message, name="'numbers that differ'")
    message = f"x of shape {shape}, random gamma: the result should not be x itself, nor NaN."
    differs = bool((found - x).abs().max() > 1e-3)
    assert_equal(differs, True, message, name="'numbers that differ from x'")
    words = [normalise(gamma, word[None].clone())[0] for word in x.reshape(-1, shape[-1])]
    assert_close(
        found,
        torch.stack(words).double().reshape(shape),
        f"x of shape {shape} in float64, and each of its words alone, as x of shape (1, {shape[-1]}):"
        " both should give the same, in float64. Any number of leading axes is allowed.",
        against="for each word alone",
    )
gamma, three = torch.tensor(rng.normal(size=1)), torch.tensor(rng.normal(size=(3, 1)))
words = [normalise(gamma, word[None]) for word in three]
for word in words:
    message = "x of shape (1, 1) in float64, d_model = 1: the result should have the same shape."
    assert_equal(list(np.shape(word)), [1, 1], message, name="the shape")
    message = "x of shape (1, 1) in float64, d_model = 1, no x is 0: finite numbers, not NaN."
    finite = bool(torch.as_tensor(word).isfinite().all())
    assert_equal(finite, True, message, name="'the result is finite'")
assert_close(
    normalise(gamma, three.repeat(100, 1)[None]),
    torch.cat([torch.as_tensor(word) for word in words]).double().repeat(100, 1)[None],
    "x of shape (1, 300, 1) in float64, a batch of one text, d_model = 1, the same three words "
    "again and again: the result should have the same shape, leading axes of length 1 included, "
    "and each word come out as x of shape (1, 1) gives it.",
    against="for each word alone",
)
### END HIDDEN TESTS


# %% check="RMSNorm_eps" points=2
# Hidden checks of RMSNorm: what eps is, and that everything is computed in float64.
### BEGIN HIDDEN TESTS
@probe
def normalise(gamma, x, eps):
    layer = (RMSNorm(x.shape[-1]) if eps is None else RMSNorm(x.shape[-1], eps=eps)).double()
    with torch.no_grad():
        layer.load_state_dict({"gamma": gamma}, strict=False)
        return layer(x)


@probe
def with_gradients(gamma, x, eps):
    """Float32 or float64 as x, in evaluation mode, where x and gamma require gradients."""
    layer = RMSNorm(x.shape[-1], eps).to(x.dtype).eval()
    layer.load_state_dict({"gamma": gamma}, strict=False)
    found = layer(x.clone().requires_grad_())
    return found.detach() if isinstance(found, torch.Tensor) else found


rng = check_rng()
gamma, ones = torch.tensor(rng.normal(size=6)), torch.ones(6, dtype=torch.float64)
noise = torch.tensor(rng.normal(size=(2, 3, 6)))
with check("eps as it is given; x of many shapes and sizes, float32 and float64", points=1):
    for eps in (0.5, 1e-12):
        expected = F.rms_norm(noise, (6,), gamma, eps)
        assert_close(
            normalise(gamma, noise.clone(), eps),
            expected,
            f"x of shape (2, 3, 6) in float64, eps = {eps}: the result should be that of torch's "
            "rms_norm. Check first: is this eps added to the mean square, inside the root? Is "
            "something computed in float32?",
        )
    small = 1e-6 * noise
    small[1, 0] = 0.0
    for eps in (1e-12, 1e-60):
        expected = F.rms_norm(small, (6,), gamma, eps)
        found = normalise(gamma, small.clone(), eps)
        message = (
            "x of shape (2, 3, 6) in float64, numbers of size 1e-6, one word all zeros, "
            f"eps = {eps}: the result should be that of torch's rms_norm. Check first: is eps, or "
            "something else, kept in float32, where 1e-60 is 0?"
        )
        assert_close(found, expected, message)
        message = (
            "x of shape (2, 3, 6) in float64, numbers of size 1e-6, one word all zeros, "
            f"eps = {eps}: the result is right to at least five digits, and should be that of "
            "torch's rms_norm to ten. Check first: is eps, or something else, rounded to float32?"
        )
        assert_close(found, expected, message, rtol=1e-10, atol=1e-12, precise=True)
    assert_close(
        normalise(gamma, 1e-3 * noise, 0.0),
        F.rms_norm(1e-3 * noise, (6,), gamma, 0.0),
        "x of shape (2, 3, 6) in float64, numbers of size 1e-3, eps = 0.0: the result should be "
        "that of torch's rms_norm, with nothing added to the mean square.",
    )
    for shape, eps, dtype, size in (
        ((2,), 0.5, torch.float64, 1),
        ((3, 33), 1, torch.float32, 1),
        ((3, 33), 1, torch.float64, 1),
        ((2, 130), 0.1, torch.float64, 1),
        ((70, 65), 2, torch.float32, 50),
        ((4, 1), 0.3, torch.float64, 1),
        ((1, 2, 1, 5), 7.0, torch.float32, 1),
        ((2, 3, 7), 0.01, torch.float64, 1e4),
        ((3, 3, 3), 3, torch.float64, 0),
    ):
        scale = torch.tensor(rng.normal(size=shape[-1])).to(dtype)
        x = torch.tensor(size * rng.normal(size=shape)).to(dtype)
        if size > 1:
            x[..., 1, :] = x[..., 0, :]
        message = (
            f"x of shape {shape} in {str(dtype)[6:]}, numbers of size {size:g}, eps = {eps}: the "
            "result should be that of torch's rms_norm, as a call {} gives it."
        )
        expected = F.rms_norm(x, shape[-1:], scale, eps)
        found = with_gradients(scale, x, eps)
        way = "in evaluation mode, where gradients are asked for,"
        assert_close(found, expected, message.format(way))
        if dtype == torch.float64:
            way = "in training mode under torch.no_grad()"
            assert_close(normalise(scale, x.clone(), eps), expected, message.format(way))
with check("small numbers: eps left out as eps=1e-6", points=1):
    given = normalise(ones, 1e-3 * noise, 1e-6)
    message = "x of shape (2, 3, 6) in float64: the result should be a torch tensor."
    assert_equal(isinstance(given, torch.Tensor), True, message, name="'it is a tensor'")
    other = bool((given - normalise(ones, 1e-3 * noise, 0.1)).abs().max() > 1e-3)
    message = (
        "Inputs of size 1e-3: eps = 0.1 should give another result than eps = 1e-6, and no NaN."
    )
    assert_equal(other, True, message, name="'numbers that differ'")
    assert_close(
        normalise(ones, 1e-3 * noise, None),
        given,
        "RMSNorm(6) should give what RMSNorm(6, eps=1e-6) gives. The inputs of this check, of size "
        "1e-3, are so small that eps counts.",
        rtol=1e-5,
        against="with eps=1e-6 given",
    )
checks_passed("RMSNorm")
### END HIDDEN TESTS


# %% check="RMSNorm_gradients" points=2
# Hidden checks of RMSNorm: gradients to x and gamma, measured against the layer's own results at
# two points nearby; a word of zeros has finite ones.
### BEGIN HIDDEN TESTS
@probe
def value_and_gradients(gamma, x, direction):
    layer = RMSNorm(x.shape[-1], 0.1).double()
    layer.load_state_dict({"gamma": gamma}, strict=False)
    x = x.clone().requires_grad_()
    value = (layer(x) * direction).sum()
    if value.requires_grad:
        value.backward()
    return value.item(), x.grad, {name: p.grad for name, p in layer.named_parameters()}.get("gamma")


rng = check_rng()
gamma = torch.tensor(rng.normal(size=6))
x, direction = (torch.tensor(rng.normal(size=(2, 4, 6))) for _ in range(2))
zeros = x.clone()
zeros[1, 2] = 0.0
for given, which in ((x, ""), (zeros, " where one word is all zeros")):
    _, *gradients = value_and_gradients(gamma, given, direction)
    for name, gradient in zip(("x", "gamma"), gradients, strict=True):
        way = torch.tensor(rng.normal(size=(2, 4, 6) if name == "x" else 6))
        ends = [
            value_and_gradients(
                gamma if name == "x" else gamma + step * way,
                given + step * way if name == "x" else given,
                direction,
            )[0]
            for step in (1e-5, -1e-5)
        ]
        slope = (ends[0] - ends[1]) / 2e-5
        message = f"Another {name} should give another result, in float64."
        assert_equal(abs(slope) > 1e-6, True, message, name="'a number that changes'")
        message = (
            f"float64. The gradient of {name}{which} should fit how the result changes when {name} "
            "is moved a little. Check first: is something detached, not finite or in float32?"
        )
        along = 0.0 if gradient is None else (gradient * way).sum().item()
        assert_close(
            along,
            slope,
            message,
            name=f"the slope along {name}",
            rtol=1e-4,
            atol=1e-7,
            against=f"by small steps in {name}",
        )
### END HIDDEN TESTS


# %% check="RMSNorm_inputs" points=1
# Hidden checks of RMSNorm: x stays as it is; nothing is remembered; both modes give the same.
### SIDE CONDITION: counts once another check of RMSNorm passes.
### BEGIN HIDDEN TESTS
@probe
def three_calls(x, other):
    layer = RMSNorm(x.shape[-1])
    with torch.no_grad():
        first = layer(x)
        layer(other)
        RMSNorm(x.shape[-1], 7.0)
        again = layer(x)
        layer.eval()
        evaluated = layer(x)
        layer.train()
        try:
            turned = layer(x.transpose(0, 1)).transpose(0, 1)
        except RuntimeError as error:
            turned = type(error).__name__
        return x, first, again, evaluated, turned


rng = check_rng()
x, other = (torch.tensor(rng.normal(size=(3, 4, 6))).float() for _ in range(2))
x_after, first, again, evaluated, turned = three_calls(x.clone(), 5 * other + 2)
message = "x should be as before after the call."
assert_equal(x_after, x, message, name="x")
message = (
    "The same x should give the same result again, after a call with another text, and after "
    "another layer was made, with eps = 7."
)
assert_close(again, first, message, against="in the first call")
message = (
    "x.transpose(0, 1), whose words do not lie one after the other in memory: each word should "
    "come out as it does from x."
)
assert_close(turned, first, message, against="without the transpose")
message = "layer.eval() should give the result that the layer gives in training mode."
assert_close(evaluated, first, message, against="in training mode")
message = "x is float32: the result should be float32."
assert_equal(str(getattr(first, "dtype", None)), "torch.float32", message, name="the dtype")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Take your layer norm of lesson 8 and cross out the mean and beta. A mean over the last axis loses
# that axis, unless `mean` is told to keep it. The order is: square, mean, plus eps, root, divide,
# multiply.
#
# </details>

# %% [markdown]
# ### Short answer 1: `answer_rms`
#
# A new `RMSNorm` works on "the black cat is sleeping", 64 random features of standard deviation 1 for each word.
# In lesson 8 these changes left layer norm's result for "cat" as it was. Which one does RMS norm
# notice?
#
# - a) All features of "cat" are multiplied by 10.
# - b) 3 is added to all features of "cat".
# - c) "black" is replaced by another word.
# - d) None of them: RMS norm forgets the same things as layer norm.

# %% answer="answer_rms"
### BEGIN SOLUTION
answer_rms = "b"
### END SOLUTION

# %% check="answer_rms" points=1
check_answer("answer_rms", answer_rms)

# %% tags=["demonstration"]
x = torch.randn(5, 64, generator=torch.Generator().manual_seed(1))  # the black cat is sleeping
cases = {name: x.clone() for name in ("times 10", "plus 3", "other neighbour")}
cases["times 10"][2] *= 10
cases["plus 3"][2] += 3
cases["other neighbour"][1] = 5.0
with torch.no_grad():
    changes = {
        name: [(norm(64)(y)[2] - norm(64)(x)[2]).abs().max().item() for norm in (LayerNorm, RMSNorm)]
        for name, y in cases.items()
    }
    difference = (RMSNorm(64, 1e-5)(x - x.mean(-1, keepdim=True)) - LayerNorm(64)(x)).abs().max()
for name, (layer_norm, rms_norm) in changes.items():
    print(f"{name:16s} change of cat: layer norm {layer_norm:.3f}   RMS norm {rms_norm:.3f}")
assert max(change[0] for change in changes.values()) < 1e-3
assert changes["plus 3"][1] > 0.5 and max(changes[c][1] for c in cases if c != "plus 3") < 1e-3
print("layer norm = RMS norm of the centred word:", difference.item() < 1e-5)
assert difference < 1e-5

# %% [markdown]
# So the two are relatives: **layer norm is RMS norm after the mean is taken off**. RMS norm still
# sees a shift that is common to all features. Published comparisons found no loss in quality from
# leaving the mean in (Zhang and Sennrich, 2019; Narang and others, 2021). This course does not
# show that at its size; what is certain is what is saved: one parameter vector of two, and one
# of two means.
#
# ## 3. A feed-forward with a gate
#
# Lesson 8's feed-forward decides by ReLU which of its $d_{ff}$ numbers pass. **SwiGLU** (Shazeer,
# 2020) computes the numbers and the decision with two different matrices and multiplies them:
#
# $$\operatorname{SwiGLU}(x) = \bigl(\operatorname{silu}(x W_{gate}) \odot x W_{up}\bigr) W_{down},
# \qquad \operatorname{silu}(z) = \frac{z}{1 + e^{-z}}$$
#
# silu is a soft ReLU: near 0 for very negative numbers, near $z$ for large ones. By hand, for one of
# the $d_{ff}$ numbers:
#
# | gate $z$ | silu | up | product |
# |---|---|---|---|
# | −4 | −0.07 | 10 | −0.72: nearly shut |
# | 0 | 0 | 10 | 0: shut |
# | 4 | 3.93 | 10 | 39.3: open, and louder the larger $z$ |

# %% [markdown]
# ### Exercise 2: `SwiGLU`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 10 minutes on it.
#
# - `SwiGLU(d_model, d_ff)`: `gate` and `up` are `nn.Linear(d_model, d_ff)`, `down` is
#   `nn.Linear(d_ff, d_model)`; none has a bias.
# - `forward(x)`: `(..., d_model)` to `(..., d_model)`: `down(silu(gate(x)) * up(x))`.
# - Checked when graded: any number of leading axes, gradients to all three matrices, float64, the
#   same in both modes, `x` unchanged. No errors are graded.
#
# `F.silu` is allowed.


# %% answer="SwiGLU"
class SwiGLU(nn.Module):
    """Feed-forward with a gate, for each word by itself.

    Parts gate, up: nn.Linear(d_model, d_ff), down: nn.Linear(d_ff, d_model), all without bias.
    """

    def __init__(self, d_model, d_ff):
        ### BEGIN SOLUTION
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)
        ### END SOLUTION

    def forward(self, x):
        """Work on each word.

        Args:
            x: (..., d_model).

        Returns:
            (..., d_model).
        """
        ### BEGIN SOLUTION
        return self.down(F.silu(self.gate(x)) * self.up(x))
        ### END SOLUTION


# %% check="SwiGLU" points=2
@probe
def parts_of(d_model, d_ff):
    network = SwiGLU(d_model, d_ff)
    return {name: list(parameter.shape) for name, parameter in network.named_parameters()}


@probe
def forward(parameters, x):
    network = SwiGLU(2, 3)
    with torch.no_grad():
        network.load_state_dict(parameters, strict=False)
        for name, parameter in network.named_parameters():
            if name not in parameters:
                parameter.fill_(0.5)
        return network(x)


with check("the three layers", points=0.5):
    assert_equal(
        parts_of(2, 3),
        {"gate.weight": [3, 2], "up.weight": [3, 2], "down.weight": [2, 3]},
        "gate and up should be nn.Linear(d_model, d_ff), down nn.Linear(d_ff, d_model), all without "
        "a bias and nothing else.",
        name="the parameters",
    )
parameters = {
    "gate.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]]),
    "up.weight": torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, -1.0]]),
    "down.weight": torch.tensor([[1.0, 2.0, -3.0], [0.0, -1.0, 0.5]]),
}
with check("three words by hand", points=1.5):
    a, b, c = (z / (1 + math.exp(-z)) for z in (1.0, -2.0, -5.0))  # silu(gate) of the first word
    d, e, f = (z / (1 + math.exp(-z)) for z in (2.0, 3.0, 4.0))  # of the third
    assert_close(
        forward(parameters, torch.tensor([[1.0, -2.0], [0.0, 0.0], [2.0, 3.0]])),
        torch.tensor(
            [
                [2 * a - 2 * b - 6 * c, b + c],
                [0.0, 0.0],
                [4 * d + 10 * e + 9 * f, -5 * e - 1.5 * f],
            ]
        ),
        "Three words, worked out by hand. For the first, gate gives 1, -2, -5 and up gives 2, -1, 2. "
        "silu stands on the gate only; the products 2 silu(1), -silu(-2), 2 silu(-5) go through "
        "down. A word of zeros stays 0: there is no bias.",
    )
checks_passed("SwiGLU")


# %% check="SwiGLU_values" points=2
# Hidden checks of SwiGLU: several leading axes and widths, float64, both modes, x unchanged.
### BEGIN HIDDEN TESTS
@probe
def forward(parameters, x, d_ff):
    network = SwiGLU(x.shape[-1], d_ff).double()
    with torch.no_grad():
        network.load_state_dict(parameters, strict=False)
        for name, parameter in network.named_parameters():
            if name not in parameters:
                parameter.zero_()
        given = x.clone()
        trained = network(given)
        network.eval()
        evaluated = network(x.clone())
        try:  # another shape, of which both parts lie at one place in memory
            twice = network(x.expand(2, *x.shape))
        except RuntimeError as error:
            twice = type(error).__name__
        return trained, evaluated, given, twice


rng = check_rng()
cases_run = []
sizes = [((4,), 3), ((3, 4), 6), ((1, 6), 6), ((2, 5, 4), 7), ((2, 1, 3, 5, 3), 8), ((1, 3, 1), 8)]
for shape, d_ff in sizes:
    d_model = shape[-1]
    parameters = {
        "gate.weight": torch.tensor(rng.normal(size=(d_ff, d_model))),
        "up.weight": torch.tensor(rng.normal(size=(d_ff, d_model))),
        "down.weight": torch.tensor(rng.normal(size=(d_model, d_ff))),
    }
    x = torch.tensor(rng.normal(size=shape))
    gate, up, down = parameters.values()
    z = x @ gate.T
    expected = (z * torch.sigmoid(z) * (x @ up.T)) @ down.T
    cases_run.append((shape, d_ff, parameters, x, expected, forward(parameters, x.clone(), d_ff)))

with check("each word as alone; then x.expand as x alone", points=1):
    for shape, d_ff, parameters, x, _, (_, evaluated, _, twice) in cases_run:
        given = f"x of shape {shape}, d_ff = {d_ff}"
        message = f"{given}: the result should have the shape of x, axes of length 1 included."
        assert_equal(list(np.shape(evaluated)), list(shape), message, name="the shape")
        other = forward(parameters, x.square() + x, d_ff)[1]
        message = f"{given}: another x should give another result, without NaN."
        differs = bool((evaluated - other).abs().max() > 1e-3)
        assert_equal(differs, True, message, name="'numbers that differ'")
        message = f"{given}: the result should not be x itself, nor NaN."
        differs = bool((evaluated - x).abs().max() > 1e-3)
        assert_equal(differs, True, message, name="'numbers that differ from x'")
        message = f"{given}: each word should come out as the network gives it alone."
        words = [forward(parameters, word[None], d_ff)[1] for word in x.reshape(-1, shape[-1])]
        single = str((1, shape[-1]))
        sentence = (
            f"A word of x, as x of shape {single}, d_ff = {d_ff}: the result should have "
            "the shape of x, axes of length 1 included."
        )
        for word in words:
            assert_equal(str(tuple(np.shape(word))), single, sentence, name="the shape")
        alone = torch.stack([word[0] for word in words]).double().reshape(shape)
        assert_close(evaluated, alone, message, against="for each word alone")
        message = (
            f"{given}, and then, for the same network, x.expand(2, ...), which is x twice, with "
            "one axis more, and does not lie one after the other in memory: both should come out "
            "as x does alone, without an error."
        )
        assert_close(twice, torch.stack([evaluated, evaluated]), message, against="for x alone")
with check("the values in float64, in both modes", points=0.5):
    for shape, d_ff, _, _, expected, (_, evaluated, _, _) in cases_run[:-1]:
        message = (
            f"x of shape {shape}, d_ff = {d_ff}: the result should be down(silu(gate(x)) * up(x))."
        )
        assert_close(evaluated, expected, message)
        message += " It should be computed in float64, and is compared to ten digits."
        assert_close(evaluated, expected, message, precise=True)
    for shape, d_ff, size in (
        ((2, 70, 6), 33, 1),
        ((3, 3, 2), 65, 1),
        ((4, 1), 5, 1),
        ((33, 65), 1, 1),
        ((2, 130), 3, 1),
        ((4, 3, 17), 2, 3000),
        ((5, 5), 5, 0),
    ):
        matrices = [
            torch.tensor(rng.normal(size=rows_and_columns))
            for rows_and_columns in ((d_ff, shape[-1]), (d_ff, shape[-1]), (shape[-1], d_ff))
        ]
        x = torch.tensor(size * rng.normal(size=shape))
        if size > 1:
            x[:, 1] = x[:, 0]
        z = x @ matrices[0].T
        expected = (z * torch.sigmoid(z) * (x @ matrices[1].T)) @ matrices[2].T
        names = ("gate.weight", "up.weight", "down.weight")
        trained, evaluated, *_ = forward(dict(zip(names, matrices, strict=True)), x, d_ff)
        message = (
            f"x of shape {shape}, numbers of size {size}, d_ff = {d_ff}: the result should be "
            "down(silu(gate(x)) * up(x)), in both modes."
        )
        message += " Check first: is a large gate cut off?" if size > 1 else ""
        for found in (evaluated, trained):
            assert_close(found, expected, message)
        message += " It should be computed in float64, and is compared to ten digits."
        for found in (evaluated, trained):
            assert_close(found, expected, message, precise=True)
with check("training mode as evaluation mode; x stays as it is", points=0.5, side=True):
    for _, _, _, x, _, (trained, evaluated, x_after, _) in cases_run:
        message = (
            "The same x in training mode and then in evaluation mode: the result should be the "
            "same. Check first: is there dropout?"
        )
        assert_close(trained, evaluated, message, against="in evaluation mode")
        message = "x should be as before after the calls."
        assert_equal(x_after, x, message, name="x")
checks_passed("SwiGLU")
### END HIDDEN TESTS


# %% check="SwiGLU_gradients" points=1
# Hidden checks of SwiGLU: gradients to x and to all three matrices.
### BEGIN HIDDEN TESTS
@probe
def gradients(parameters, x, direction):
    network = SwiGLU(4, 6).double()
    network.load_state_dict(parameters, strict=False)
    x = x.clone().requires_grad_()
    y = network(x)
    if y.requires_grad:
        (y * direction).sum().backward()
    found = {name: parameter.grad for name, parameter in network.named_parameters()}
    return [x.grad] + [found.get(name) for name in parameters]


rng = check_rng()
parameters = {
    "gate.weight": torch.tensor(rng.normal(size=(6, 4))),
    "up.weight": torch.tensor(rng.normal(size=(6, 4))),
    "down.weight": torch.tensor(rng.normal(size=(4, 6))),
}
x, direction = (torch.tensor(rng.normal(size=(2, 5, 4))) for _ in range(2))
leaves = [one.clone().requires_grad_() for one in (x, *parameters.values())]
z = leaves[0] @ leaves[1].T
((z * torch.sigmoid(z) * (leaves[0] @ leaves[2].T)) @ leaves[3].T * direction).sum().backward()
found = gradients(parameters, x, direction)
for name, one, leaf in zip(("x", *parameters), found, leaves, strict=True):
    message = (
        f"float64. The gradient of {name} should be that of down(silu(gate(x)) * up(x)). Where the "
        "values are others, the gradients are too. Where they are right: is something detached?"
    )
    assert_close(one, leaf.grad, message, name=f"the gradient of {name}")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# One line in `forward`, three in the constructor after `super().__init__()`. `gate` and `up` both
# read `x`; only one of the two results goes through silu.
#
# </details>

# %% [markdown]
# Three matrices instead of two: at the same $d_{ff}$ the network would be half as large again. So
# $d_{ff}$ is made smaller, to about $\frac{8}{3} d_{model}$ instead of $4\, d_{model}$. **Predict,
# then run:** how do the parameters compare at $d_{model} = 96$?

# %% tags=["demonstration"]
sizes = {
    "feed-forward of 2017, d_ff = 4 x 96": FeedForward(96, 384),
    "SwiGLU, the same d_ff": SwiGLU(96, 384),
    "SwiGLU, d_ff = 8/3 x 96": SwiGLU(96, 256),
}
counts = {name: sum(p.numel() for p in layer.parameters()) for name, layer in sizes.items()}
for name, count in counts.items():
    print(f"{name:36s} {count:7d} parameters")
assert list(counts.values()) == [2 * 96 * 384 + 384 + 96, 3 * 96 * 384, 3 * 96 * 256]
assert counts["SwiGLU, d_ff = 8/3 x 96"] == 2 * 96 * 384

# %% [markdown]
# The difference of the first and the last line are the biases. Is the gate better? Shazeer (2020)
# compared such networks at equal size; the gated ones had the lower loss, by a small margin. He ends
# his paper: "We offer no explanation as to why these architectures seem to work; we attribute their
# success, as all else, to divine benevolence." This lesson has not measured it, and claims nothing.

# %% [markdown]
# ### What a gate can do: multiply
#
# One thing can be said without training. A ReLU network without biases answers to twice the input with exactly
# twice the output: it is made of straight pieces. A product of two features answers with four times as much. So
# it is out of reach for ReLU, however many numbers are hidden, and can only be approached. A gate multiplies.
# **Before you read on:** how many hidden numbers does SwiGLU need to multiply two features *exactly*?

# %% [markdown]
# ### Exercise 3: `design_product`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 15-20 minutes on it.
#
# - `design_product()` returns a `SwiGLU(2, 2)`, the class as it is, in float32, whose three matrices you have
#   written down: two hidden numbers, nothing trained.
# - For each word $(x_0, x_1)$ the **first** feature of the output is the product $x_0 x_1$. The second is free.
# - Checked when graded: features of either sign, from 0.01 to 100 in size, with a relative error below 3e-5. It is
#   judged by what the three matrices do. No errors are graded.
#
# `nn.Linear` holds its matrix as `(out, in)`: one row for each number that comes out. Weights are written under
# `torch.no_grad()`, for example `network.gate.weight.copy_(torch.tensor(...))`.


# %% answer="design_product"
def design_product():
    """A SwiGLU(2, 2) that multiplies: the first feature of its output is x_0 * x_1."""
    ### BEGIN SOLUTION
    network = SwiGLU(2, 2)
    with torch.no_grad():  # silu(x_0) x_1 - silu(-x_0) x_1, and silu(z) - silu(-z) = z
        network.gate.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        network.up.weight.copy_(torch.tensor([[0.0, 1.0], [0.0, 1.0]]))
        network.down.weight.copy_(torch.tensor([[1.0, -1.0], [0.0, 0.0]]))
    return network
    ### END SOLUTION


# %% check="design_product" points=3
# The three matrices, and what they make of words with positive and negative features.
@probe
def matrices():
    network = design_product()
    return type(network).__name__, {name: x.detach() for name, x in network.named_parameters()}


def first_feature(words):
    """The first output feature (n,) of words (n, 2), by the three matrices."""
    _, weights = matrices()
    gate, up, down = (weights[f"{name}.weight"] for name in ("gate", "up", "down"))
    return (F.silu(words @ gate.T) * (words @ up.T) @ down.T)[:, 0]


message = "The first feature of the output should be the product of the two features of the input."
with check("a word of two positive features", points=0.75):
    words = torch.tensor([[3.0, 4.0], [1.0, 1.0], [0.5, 6.0]])
    assert_close(first_feature(words), words[:, 0] * words[:, 1], message, rtol=3e-5, name="the products")
with check("negative features", points=0.75):
    words = torch.tensor([[-3.0, 4.0], [2.0, -1.5], [-0.5, -6.0]])
    assert_close(first_feature(words), words[:, 0] * words[:, 1], message, rtol=3e-5, name="the products")
with check("random words", points=1):
    words = torch.tensor(check_rng().normal(size=(6, 2))).float()
    expected = words[:, 0] * words[:, 1]
    assert_close(first_feature(words), expected, message, rtol=3e-5, atol=1e-6, name="the products")
with check("an unchanged SwiGLU(2, 2) in float32", points=0.5, side=True):
    kind, weights = matrices()
    assert_equal(kind, "SwiGLU", "design_product() should return a SwiGLU(2, 2).", name="the class")
    found = {name: [str(x.dtype), *x.shape] for name, x in weights.items()}
    expected = {f"{name}.weight": ["torch.float32", 2, 2] for name in ("gate", "up", "down")}
    message = "Its parameters should be three matrices (2, 2) in float32, and nothing else."
    assert_equal(found, expected, message, name="the parameters")
checks_passed("design_product")


# %% check="design_product_sizes" points=2
# Hidden checks of design_product: features from 0.01 to 100 in size, of all signs.
### BEGIN HIDDEN TESTS
@probe
def matrices():
    return {name: x.detach() for name, x in design_product().named_parameters()}


def first_feature(words):
    gate, up, down = (matrices()[f"{name}.weight"] for name in ("gate", "up", "down"))
    return (F.silu(words @ gate.T) * (words @ up.T) @ down.T)[:, 0]


rng = check_rng()


def compare(low, high):
    sizes = 10 ** rng.uniform(low, high, size=(40, 2))
    words = torch.tensor(sizes * rng.choice([-1, 1], size=(40, 2))).float()
    words[:2] = torch.tensor([[10.0**high, -(10.0**low)], [-(10.0**low), -(10.0**high)]])
    message = (
        f"Features from {10.0**low:.2g} to {10.0**high:.3g} in size, of all signs: the first feature of the output "
        "should be their product, with a relative error below 3e-5."
    )
    found = first_feature(words) / (words[:, 0] * words[:, 1])
    assert_close(found, torch.ones(40), message, rtol=3e-5, atol=0, name="output / product")


with check("features from 0.3 to 3 in size", points=1):
    compare(-0.5, 0.5)
with check("features from 0.01 to 100 in size", points=1):
    compare(-2, 2)
checks_passed("design_product")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# With one hidden number you get $\operatorname{silu}(x_0)\, x_1$: right for large $x_0$, wrong for small ones, and
# nearly 0 for negative ones. What is missing? Work out $z - \operatorname{silu}(z)$, and look for a silu in it.
#
# </details>

# %% tags=["demonstration"]
product = design_product()
torch.manual_seed(1)
relu = nn.Sequential(nn.Linear(2, 8, bias=False), nn.ReLU(), nn.Linear(8, 2, bias=False))
words = torch.tensor([[3.0, 4.0], [-0.5, 8.0], [0.01, 100.0]])
with torch.no_grad():
    for word, out in zip(words, product(words)[:, 0]):
        print(f"{word[0]:5.2f} x {word[1]:6.2f}   network: {out:6.2f}")
    for name, network in (("product", product), ("ReLU without biases", relu)):
        times = network(2 * words)[:, 0] / network(words)[:, 0]
        print(f"{name}: twice the input gives", *(f"{one:.2f}" for one in times), "times the output")
        assert (times - (4 if network is product else 2)).abs().max() < 1e-3

# %% [markdown]
# Two hidden numbers, and it is exact: $\operatorname{silu}(z) - \operatorname{silu}(-z) = z$ for every $z$. A product
# of features is also an "and": large only where both are. That a gate *can* do this does not show that trained
# networks use it so, and not that they are better for it.

# %% [markdown]
# ## 4. Rotary positions: turn, do not add
#
# Lesson 7 had a preview: do not add anything to the words, turn queries and keys. There you
# multiplied by a whole matrix for each position. Models do it without a matrix. Take two
# neighbouring features as the two coordinates of a hand on a clock, and turn the hand by an angle:
#
# $$(x_{2i},\ x_{2i+1}) \;\mapsto\; (x_{2i} \cos\theta - x_{2i+1} \sin\theta,
# x_{2i} \sin\theta + x_{2i+1} \cos\theta), \qquad \theta = t \cdot base^{-2i/d_k}$$
#
# $t$ is the position of the word, $i = 0, 1, \dots$ numbers the pairs, and $base = 10000$. The first
# pair turns by 1 radian a word, the later ones more and more slowly. By hand, $d_k = 4$, the vector
# (1, 0, 1, 0), two hands that point to the right:
#
# | position $t$ | angle of pair 0 | pair 0 | angle of pair 1 | pair 1 |
# |---|---|---|---|---|
# | 0 | 0 | (1, 0) | 0 | (1, 0) |
# | 1 | 1 | (0.540, 0.841) | 0.01 | (1.000, 0.010) |
# | 2 | 2 | (−0.416, 0.909) | 0.02 | (1.000, 0.020) |

# %% [markdown]
# ### Exercise 4: `apply_rotary`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 20-25 minutes on it.
#
# - `apply_rotary(x, positions, base=10000.0)`: torch `x (..., n, d_k)`; `positions` is a 1-D integer
#   tensor of length `n`: the position of each row. They need not begin at 0, and may be negative.
# - The pair `(x[2i], x[2i + 1])`, **neighbours**, turns by `positions[t] * base**(-2i / d_k)`, in the
#   direction of the formula above. The result has the shape of `x`.
# - An odd `d_k` is a `ValueError`.
# - Checked when graded: any number of leading axes; positions in any order, also twice the same, and
#   large ones; another `base`; gradients to `x`; the precision of `x` (float32 stays float32, float64
#   is computed in float64); `x` and `positions` unchanged.


# %% answer="apply_rotary"
def apply_rotary(x, positions, base=10000.0):
    """Rotary position embedding: each pair of neighbouring features is turned.

    Args:
        x: (..., n, d_k), torch.
        positions: (n,), integers: where each row stands.
        base: the larger it is, the slower the later pairs turn.

    Returns:
        (..., n, d_k), in the precision of x.

    Raises:
        ValueError: d_k is odd.
    """
    ### BEGIN SOLUTION
    d_k = x.shape[-1]
    if d_k % 2:
        raise ValueError(f"d_k = {d_k} is odd: the features are turned in pairs")
    speeds = base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)  # (d_k / 2,)
    angles = positions[:, None] * speeds  # (n, d_k / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., 0::2], x[..., 1::2]  # (..., n, d_k / 2)
    turned = (first * cos - second * sin, first * sin + second * cos)
    return torch.stack(turned, dim=-1).flatten(-2)
    ### END SOLUTION


# %% check="apply_rotary" points=3
# Three rows of four features at the positions 1, 2 and 5: two pairs each.
x = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 2], [3, 4, 0, 0]])
positions = torch.tensor([1, 2, 5])
found = apply_rotary(x.clone(), positions.clone())
expected = [
    [math.cos(1), math.sin(1), math.cos(0.01), math.sin(0.01)],
    [-math.sin(2), math.cos(2), -2 * math.sin(0.02), 2 * math.cos(0.02)],
    [
        3 * math.cos(5) - 4 * math.sin(5),
        3 * math.sin(5) + 4 * math.cos(5),
        0.0,
        0.0,
    ],
]
expected = torch.tensor(expected)
with check("as many numbers as in x", points=0.25, side=True):
    message = "The result should have the shape of x, (3, 4)."
    assert_equal(list(np.shape(found)), [3, 4], message, name="the shape")
with check("the first pair", points=1.25):
    assert_close(
        found[..., :2] if isinstance(found, torch.Tensor) else found,
        expected[..., :2],
        "The features 0 and 1 of the rows at the positions 1, 2 and 5 turn by 1, 2 and 5 radians: "
        "(1, 0) becomes (cos 1, sin 1). Are the pairs neighbours? Is the sign on the sine of the "
        "first of the two? Are the positions those that were given?",
        name="the features 0 and 1",
    )
with check("the second pair", points=1):
    assert_close(
        found[..., 2:] if isinstance(found, torch.Tensor) else found,
        expected[..., 2:],
        "The features 2 and 3 of the rows at the positions 1, 2 and 5 turn 100 times as slowly as "
        "the first pair: 10000 ** (-2 / 4) = 0.01 radians a word.",
        name="the features 2 and 3",
    )
with (
    check("an odd d_k", points=0.5, side=True),
    assert_raises(ValueError, "Five features cannot be paired: this should be a ValueError."),
):
    apply_rotary(torch.ones(2, 5), torch.tensor([0, 1]))
checks_passed("apply_rotary")


# %% check="apply_rotary_positions" points=2
# Hidden checks of apply_rotary: positions in any order, twice the same, large; several widths.
### BEGIN HIDDEN TESTS
def turned(x, positions, base=10000.0):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    speeds = torch.exp(-torch.arange(x.shape[-1] // 2).double() * 2 / x.shape[-1] * math.log(base))
    angles = positions.double()[:, None] * speeds
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@probe
def strided(x, positions, base, gradients):
    """The same numbers in another order in memory, with gradients and without."""
    x = x.transpose(-1, -2).contiguous().transpose(-1, -2).requires_grad_(gradients)
    positions = torch.stack([positions, positions + 1], dim=-1)[:, 0]
    with torch.set_grad_enabled(gradients):
        try:
            found = apply_rotary(x, positions, base=base)
        except NotImplementedError:
            raise
        except RuntimeError as error:
            return type(error).__name__
    return found.detach() if isinstance(found, torch.Tensor) else found


rng = check_rng()
with check("one pair", points=0.5):
    for places in ([0, 1, 2, 3], [7, 0, 7, 2], [100, 101, 5, 40]):
        x, positions = torch.tensor(rng.normal(size=(4, 2))), torch.tensor(places)
        message = (
            f"Two features, positions {places}: row t stands at positions[t], and its pair should "
            "turn by as many radians."
        )
        expected = turned(x, positions)
        assert_close(apply_rotary(x.clone(), positions.clone()), expected, message)
with check("other widths, bases and leading axes, in any order in memory", points=1):
    for d_k in (4, 6, 10, 16):
        x, positions = torch.tensor(rng.normal(size=(5, d_k))), torch.tensor([3, 4, 5, 6, 7])
        message = (
            f"d_k = {d_k}, positions 3 to 7: the pair of the features 2i and 2i + 1 should turn by "
            "positions[t] * base ** (-2i / d_k) radians."
        )
        expected = turned(x, positions)
        assert_close(apply_rotary(x.clone(), positions.clone()), expected, message)
        positions = torch.tensor([3, 6, 5, 4, 7])
        message = f"d_k = {d_k}, and then positions 3, 6, 5, 4, 7: the pairs should turn by these."
        expected = turned(x, positions)
        assert_close(apply_rotary(x.clone(), positions.clone()), expected, message)
    for shape, base, size in (
        ((1, 4), 10000, 1),
        ((4, 4), 100, 1),
        ((33, 2), 10000, 1),
        ((5, 66), 10000.0, 1),
        ((2, 3, 130), 500, 1),
        ((3, 1, 2, 34), 10000, 1),
        ((2, 70, 6), np.float64(1000), 1),
        ((6, 3, 6), 20, 5000),
        ((1, 2, 2, 3, 8), 10000, 0),
    ):
        x = torch.tensor(size * rng.normal(size=shape))
        if size > 1:
            x = -x.abs() - 1
            x[..., 0, :] = x[..., 1, :]
        positions = torch.tensor(rng.integers(1, 40, size=shape[-2]))
        message = (
            f"x of shape {shape}, numbers of size {size}, base {base:g}: the pair of the features "
            "2i and 2i + 1 should turn by positions[t] * base ** (-2i / d_k) radians"
        )
        expected = turned(x, positions, float(base))
        assert_close(apply_rotary(x, positions, base), expected, f"{message}.")
        for gradients in (True, False):
            more = f"{message}, also where the numbers do not lie side by side in memory, "
            more += "and x requires gradients." if gradients else "under torch.no_grad()."
            assert_close(strided(x, positions, base, gradients), expected, more)
with check("positions far away and negative; float64 after float32", points=0.5):
    x, positions = torch.tensor(rng.normal(size=(3, 8))), torch.tensor([131071, 1000, 50000])
    expected = turned(x, positions)
    assert_close(
        apply_rotary(x.clone(), positions.clone()),
        expected,
        "Eight features in float64, positions 131071, 1000, 50000: the pairs should turn by the "
        "same formula. Check first: in float32 such angles have two decimals only.",
        rtol=1e-6,
        atol=1e-7,
    )
    x, positions = torch.cat([x, x], dim=-1)[..., :14], torch.tensor([40, 3, 900])
    expected = turned(x, positions)
    apply_rotary(x.float(), positions.clone())
    message = (
        "Fourteen features, positions 40, 3, 900, first in float32 and then in float64: the second "
        "result should be computed in float64, whatever came before, and is compared to nine "
        "digits."
    )
    near = {"rtol": 1e-9, "atol": 1e-9, "precise": True}
    assert_close(apply_rotary(x.clone(), positions.clone()), expected, message, **near)
    x, positions = torch.tensor(rng.normal(size=(300, 6))), torch.arange(150, -150, -1)
    message = (
        "300 rows of six features in float64, positions 150, 149 and so on down to -149, in int32: "
        "the pairs should turn by the same formula, at a negative position by a negative angle."
    )
    expected = turned(x, positions)
    assert_close(apply_rotary(x.clone(), positions.int()), expected, message)
checks_passed("apply_rotary")
### END HIDDEN TESTS


# %% check="apply_rotary_base" points=1
# Hidden checks of apply_rotary: another base, given by place and by name.
### BEGIN HIDDEN TESTS
rng = check_rng()
x, positions = torch.tensor(rng.normal(size=(4, 6))), torch.arange(4)
for base in (100.0, 500000.0):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    speeds = torch.exp(-torch.arange(3).double() / 3 * math.log(base))
    angles = positions.double()[:, None] * speeds
    expected = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
    message = (
        f"Six features, positions 0 to 3, base = {base:g}: pair i should turn by base ** (-2i / "
        "d_k) radians a word."
    )
    found = apply_rotary(x.clone(), positions.clone(), base)
    assert_close(found, expected, f"{message} Here base is the third argument.")
    found = apply_rotary(x.clone(), positions.clone(), base=base)
    assert_close(found, expected, f"{message} Here base is given by its name.")
### END HIDDEN TESTS


# %% check="apply_rotary_batches" points=2
# Hidden checks of apply_rotary: any number of leading axes, each text as if it were alone.
### BEGIN HIDDEN TESTS
@probe
def strided(x, positions):
    """The same numbers, in another order in memory, and twice."""
    x = x.transpose(-1, -2).contiguous().transpose(-1, -2)
    try:
        return apply_rotary(x.expand(2, *x.shape), positions)[1]
    except RuntimeError as error:
        return type(error).__name__


rng = check_rng()
shapes = ((1, 4), (2, 3, 6), (3, 3, 6), (2, 4, 3, 8), (2, 1, 5, 3, 4), (4, 4, 4), (1, 1, 3, 2))
for shape in shapes:
    x = torch.tensor(rng.normal(size=shape))
    positions = torch.tensor(rng.permutation(np.arange(1, 30))[: shape[-2]])
    found = apply_rotary(x, positions)
    message = f"x of shape {shape}: the result should have the same shape."
    assert_equal(list(np.shape(found)), list(shape), message, name="the shape")
    message = f"x of shape {shape}, no position 0: the result should not be x itself, nor NaN."
    differs = bool((found - x).abs().max() > 1e-3)
    assert_equal(differs, True, message, name="'numbers that differ from x'")
    alone = [apply_rotary(text, positions) for text in x.reshape(-1, *shape[-2:])]
    expected = torch.stack(alone).double().reshape(shape)
    message = f"Each text of shape {shape[-2:]} alone: the results should not all be one number."
    assert_equal(bool(expected.std() > 1e-3), True, message, name="'numbers that differ'")
    message = (
        f"x of shape {shape}: any number of leading axes is allowed, the rows are the last axis "
        "but one. Each text should come out as apply_rotary gives it alone."
    )
    assert_close(found, expected, message, against="for each text alone")
    message = (
        f"x of shape {(2, *shape)}, made by transpose and expand, so that neighbours are not side "
        "by side in memory: the result should be that of the same numbers side by side."
    )
    assert_close(strided(x, positions), found, message, against="with the numbers side by side")
### END HIDDEN TESTS


# %% check="apply_rotary_gradients" points=1
# Hidden checks of apply_rotary: the gradient of x, against the results at two points nearby.
### BEGIN HIDDEN TESTS
@probe
def value_and_gradient(x, positions, direction):
    x = x.clone().requires_grad_()
    turned = apply_rotary(x, positions)
    value = (turned * direction).sum()
    if value.requires_grad:
        value.backward()
    return value.item(), x.grad, turned.detach()


rng = check_rng()
x, direction, way = (torch.tensor(rng.normal(size=(2, 4, 6))) for _ in range(3))
positions = torch.tensor([4, 5, 6, 11])
with_zeros = x.clone()
with_zeros[1, 2, 2:4] = 0.0
cause = "Check first: is x detached, or made anew?"
for given, which, more in (
    (x, "", cause),
    (with_zeros, " where one pair is (0, 0)", "Check first: is it finite there?"),
):
    _, gradient, turned = value_and_gradient(given, positions, direction)
    message = (
        "x of shape (2, 4, 6), positions 4, 5, 6, 11: the result should not be x itself, nor NaN."
    )
    differs = bool((turned - given).abs().max() > 1e-3)
    assert_equal(differs, True, message, name="'numbers that differ from x'")
    steps = (1e-3, -1e-3)
    ends = [value_and_gradient(given + step * way, positions, direction)[0] for step in steps]
    slope = (ends[0] - ends[1]) / 2e-3
    message = "Another x should give another result."
    assert_equal(abs(slope) > 1e-6, True, message, name="'a number that changes'")
    message = (
        f"float64. The gradient of x{which} should fit how the result changes when x is moved a "
        f"little. {more}"
    )
    along = 0.0 if gradient is None else (gradient * way).sum().item()
    assert_close(
        along,
        slope,
        message,
        name="the slope along x",
        rtol=1e-4,
        atol=1e-6,
        against="by small steps in x",
    )
### END HIDDEN TESTS


# %% check="apply_rotary_inputs" points=1
# Hidden checks of apply_rotary: arguments unchanged, precision kept, odd widths refused.
### SIDE CONDITION: counts once another check of apply_rotary passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(x, positions):
    apply_rotary(x, positions)
    return x, positions


rng = check_rng()
x, positions = torch.tensor(rng.normal(size=(2, 3, 6))), torch.tensor([4, 0, 9])
x_after, positions_after = arguments_after(x.clone(), positions.clone())
message = "x should be as before after the call."
assert_equal(x_after, x, message, name="x")
message = "positions should be as before after the call."
assert_equal(positions_after, positions, message, name="positions")
for dtype in (torch.float32, torch.float64):
    found = apply_rotary(x.to(dtype), positions)
    message = f"x is {str(dtype)[6:]}, and so should the result be."
    assert_equal(str(getattr(found, "dtype", None)), str(dtype), message, name="the dtype")
for d_k in (1, 3, 7):
    with assert_raises(ValueError, f"d_k = {d_k} is odd: this should be a ValueError."):
        apply_rotary(torch.ones(2, 2, d_k), torch.tensor([0, 1]))
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Three steps. The speeds, one a pair: a power of `base` with the exponents $0, -2/d_k, -4/d_k,
# \dots$. The angles: positions times speeds, shape `(n, d_k / 2)`. Then the first of each pair is
# `x[..., 0::2]` and the second `x[..., 1::2]`. To put two tensors of `d_k / 2` columns back into
# alternating columns, stack them along a new last axis and flatten the last two.
#
# </details>

# %% [markdown]
# ### Equal to lesson 7, and a function of distance
#
# Two proofs by measurement, in float64. First: turning at position $t$ is your `shift_matrix` of
# lesson 7. (That one carried waves $(\sin, \cos)$ forward, which turns the plane the other way; so
# the matrix is that of $-t$. The scores are other numbers, and depend on the distance all the same:
# a model trained with either is as good.) Second:
# the score of a turned query and a turned key depends on how far apart they stand, and on nothing
# else.

# %% tags=["demonstration"]
generator = torch.Generator().manual_seed(0)
q, k = torch.randn(2, 1, 16, generator=generator, dtype=torch.float64)
by_matrix = torch.stack([torch.tensor(shift_matrix(-t, 16)) @ q[0] for t in range(50)])
by_pairs = apply_rotary(q.expand(50, 16), torch.arange(50))
same_as_lesson_7 = (by_matrix - by_pairs).abs().max().item() < 1e-12
print("the same as 50 matrices of lesson 7:", same_as_lesson_7)


def turned_score(p, s):
    """The score of query q at position p with key k at position s."""
    one, other = apply_rotary(q, torch.tensor([p])), apply_rotary(k, torch.tensor([s]))
    return (one @ other.mT).item()


for p, s in ((2, 5), (10, 13), (500, 503), (5, 2)):
    print(f"query at {p:3d}, key at {s:3d}: score {turned_score(p, s):.6f}")
assert same_as_lesson_7 and abs(turned_score(2, 5) - turned_score(500, 503)) < 1e-9
assert abs(turned_score(2, 5) - turned_score(5, 2)) > 0.1

# %% [markdown]
# ### Two layouts of the same thing
#
# Your pairs are neighbours, as in the paper (Su and others, 2021) and in the code that Meta
# published with Llama. The popular library *transformers* pairs feature $i$ with feature
# $i + d_k/2$ instead: the first half with the second. Its function `rotate_half` tells the layout
# by its name. Are these two different models? No: they are the **same turning behind a permutation of the
# features**. If the rows of `W_q` and `W_k` (weight and bias, head by head) are put in another order, once,
# when the weights are loaded, then every score is the same.


# %% tags=["demonstration"]
def rotary_in_halves(x, positions, base=10000.0):
    """The other layout: feature i is paired with feature i + d_k / 2."""
    half = x.shape[-1] // 2
    speeds = base ** (-torch.arange(half, dtype=x.dtype) / half)
    cos, sin = (positions[:, None] * speeds).cos(), (positions[:, None] * speeds).sin()
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


d_k, positions = 8, torch.arange(3, 12)
order = torch.cat([torch.arange(0, d_k, 2), torch.arange(1, d_k, 2)])  # 0 2 4 6 1 3 5 7
Q, K = torch.randn(2, 2, 9, d_k, generator=generator, dtype=torch.float64)  # (2, n, d_k) each
pairs = apply_rotary(Q, positions) @ apply_rotary(K, positions).mT
halves = rotary_in_halves(Q[..., order], positions) @ rotary_in_halves(K[..., order], positions).mT
mixed = rotary_in_halves(Q, positions) @ rotary_in_halves(K, positions).mT
print("permuted features, the other layout: scores equal:", (pairs - halves).abs().max().item() < 1e-12)
print("turned, then permuted = permuted, then turned:",
      torch.allclose(apply_rotary(Q, positions)[..., order], rotary_in_halves(Q[..., order], positions)))  # fmt: skip
print(f"without the permutation the scores differ by up to {(pairs - mixed).abs().max():.1f}")
assert (pairs - halves).abs().max() < 1e-12 and (pairs - mixed).abs().max() > 0.5

# %% [markdown]
# The last line is a bug that people meet: weights made for one layout, loaded into code with the
# other. Every shape fits, no error is raised, and a text of one word is even right.
#
# ### Short answer 2: `answer_far`
#
# A model with rotary positions is trained on texts whose words stand at the positions 0 to 11. We
# then give it a text of 12 words, but call the positions 1000 to 1011. It has never seen a position
# above 11. What happens to its accuracy?
#
# - a) It falls to about the level of guessing, as with the learned positions of lesson 7.
# - b) It falls somewhat: the fast pairs are fine, the slow pairs stand at new angles.
# - c) Nothing, up to rounding.
# - d) It cannot be computed: the table of angles ends.

# %% answer="answer_far"
### BEGIN SOLUTION
answer_far = "c"
### END SOLUTION

# %% check="answer_far" points=1
check_answer("answer_far", answer_far)

# %% [markdown]
# ### Longer than in training
#
# Lesson 7's task: write the word that stands **one place before**. Trained with 4 to 12 words,
# tested with more. There, beyond 12 words waves fell and rotary did better; each was one run. Now five runs
# each, with your function, and a comparison: the same rotary model with its width cut into four
# heads of 16, or kept as one head of 64. And the four heads once more with another `base`: their eight pairs
# stay, only the speeds are others.
#
# **Predict, then run.** Rotary scores see only distances. Will both rotary models be perfect at 24
# words?

# %% tags=["demonstration"]
WIDTH, VOCABULARY = 64, 12
differs = "This result is not what the text says. Do the checks of your exercises pass?"


class Reader(nn.Module):
    """Word vectors, one attention with its residual, a guess for each position."""

    def __init__(self, kind, num_heads, base=10000.0):
        super().__init__()
        self.kind, self.num_heads, self.base = kind, num_heads, base
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.guess = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, texts, first=0):
        """texts (batch, n), whose first word stands at position `first`."""
        positions = torch.arange(first, first + texts.shape[-1])
        x = self.words(texts)
        if self.kind == "waves":
            waves = sinusoidal_positional_encoding(first + len(positions), WIDTH)[first:]
            x = x + torch.tensor(waves, dtype=x.dtype)
        Q, K, V = (split_heads(part(x), self.num_heads) for part in (self.W_q, self.W_k, self.W_v))
        if self.kind == "rotary":
            Q, K = (apply_rotary(part, positions, self.base) for part in (Q, K))
        heads, _ = torch_scaled_dot_product_attention(Q, K, V)
        return self.guess(x + self.W_o(combine_heads(heads)))


def one_before(texts):
    """What to write: the word to the left; at position 0 the word itself."""
    return torch.cat([texts[:, :1], texts[:, :-1]], dim=1)


def train_reader(kind, num_heads, base, seed, steps=200):
    """A reader, trained on batches of 32 new texts of 4 to 12 words."""
    torch.manual_seed(seed)
    model, generator = Reader(kind, num_heads, base), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    slower = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 30) * (1 - 0.9 * step / steps)
    )
    for _ in range(steps):
        n = int(torch.randint(4, 13, (), generator=generator))
        texts = torch.randint(VOCABULARY, (32, n), generator=generator)
        loss = F.cross_entropy(model(texts).flatten(0, 1), one_before(texts).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        slower.step()
    return model


def right_words(model, n, first=0):
    """Share of right words in 200 new texts of n words."""
    texts = torch.randint(VOCABULARY, (200, n), generator=torch.Generator().manual_seed(1000))
    with torch.no_grad():
        return (model(texts, first).argmax(-1) == one_before(texts)).float().mean().item()


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers may differ a little on other machines, so this output is not compared.
kinds = {
    "waves, 4 heads of 16": ("waves", 4, 0.0),
    "rotary, 4 heads of 16": ("rotary", 4, 10_000.0),
    "rotary, 1 head of 64": ("rotary", 1, 10_000.0),
    "4 heads, base 10": ("rotary", 4, 10.0),
    "4 heads, base 500,000": ("rotary", 4, 500_000.0),
}
runs = [(name, seed) for name in kinds for seed in range(5)]
readers = {
    run: train_reader(*kinds[run[0]], run[1])
    for _, run in zip(progress(len(runs), "25 readers"), runs)
}
lengths = (8, 12, 13, 16, 24, 48)
carried = {
    name: np.array([[right_words(readers[name, seed], n) for n in lengths] for seed in range(5)])
    for name in kinds
}
far = {name: [right_words(readers[name, s], 12, first=1000) for s in range(5)] for name in kinds}
print("share of right words, worst and best of five runs")
print(" " * 24, *(f"{n:3d} words   " for n in lengths), "12 words from position 1000")
for name, scores in carried.items():
    ends = (f"{low:.2f} to {high:.2f}" for low, high in zip(scores.min(0), scores.max(0)))
    print(f"{name:24s}", *ends, f" {min(far[name]):.2f} to {max(far[name]):.2f}")
waves, four, one, faster, slower = carried.values()
assert min(waves[:, :2].min(), four[:, :4].min(), one[:, :4].min()) > 0.9, differs
assert waves[:, 4].max() < 0.7 and four[:, 4].min() > 0.7 and four[:, 4].max() < 0.95, differs
assert one[:, 4].min() > 0.97 and one[:, 5].min() > 0.9 and four[:, 5].max() < 0.75, differs
assert faster[:, 4].min() > 0.97 and slower[:, 4].min() > 0.97, differs
assert faster[:, 5].min() > 0.85 and slower[:, 5].min() > 0.65 and slower[:, 5].max() < 0.95, differs
for name in list(kinds)[1:]:
    assert np.abs(np.array(far[name]) - carried[name][:, 1]).max() < 0.01, differs
assert max(far["waves, 4 heads of 16"]) < 0.8, differs

# %% tags=["demonstration", "nbval-ignore-output"]
figure, axes = plt.subplots(figsize=(7.5, 3.4))
for (name, scores), style in zip(carried.items(), ("s--", "^-.", "o-", "v:", "d:")):
    axes.fill_between(lengths, scores.min(0), scores.max(0), alpha=0.2)
    axes.plot(lengths, scores.mean(0), style, label=name)
axes.axvspan(4, 12, color="grey", alpha=0.15)
axes.text(8, 0.15, "trained", ha="center")
axes.set(xlabel="words in the text", ylabel="share of right words", ylim=(0, 1.05))
axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
show(
    figure,
    "Figure 1. Mean of five runs; the shade reaches from the worst run to the best. Rotary carries on "
    "beyond the trained lengths, but how far differs: with four heads of eight pairs a fifth of the "
    "words is wrong at 24 words, with one head of 32 pairs hardly any, and with the same four heads and "
    "another base hardly any, too.",
    "Share of right words over the length of the text. Waves fall from 1 at 8 words to under 0.6 at "
    "24. Rotary with four heads stays at 1 up to 16 words and falls to 0.8 at 24 and 0.55 at 48. "
    "Rotary with one wide head stays at 1 up to 24 words and above 0.95 at 48, as do four heads with base 10; "
    "with base 500,000 they are at 1 up to 24 and above 0.8 at 48.",
    text_table([s.mean(0) for s in carried.values()], list(kinds), list(map(str, lengths)), corner="mean"),
)

# %% [markdown]
# - Position 1000 is no trouble at all for rotary: the score never sees a position. Waves lose a
#   third of the words or more.
# - Longer texts are another matter: they bring **distances** that training never showed. Lesson 7
#   explained one thing that happens then: pairs come back to where they stood. That a few pairs are
#   back at the same distance happens rather often; that many are, hardly ever. Another: slow pairs
#   reach angles that training never showed. So neither model is perfect for ever; at 24 words the one with 32 pairs nearly is.
# - Is it the number of pairs, or the one head? Neither, as the last two lines show: the same four heads of eight
#   pairs carry on to 24 words with a base of 10 *and* with one of 500,000, and to 48 with one of 10 nearly as
#   well as the wide head. It is the **speeds**, as lesson 7 found. There is no simple rule in it, such as "slower is
#   better": 10 turns all pairs faster, 500,000 all but the first more slowly, and both beat 10,000 in this task.
#
# Models that are to read long texts are trained on long texts at the end, and take a larger `base`
# (Llama 3: 500,000): at a new distance the angles lie nearer to those that were trained. That is the reason that
# is usually given, and it cannot be all, or a base of 10 would be the worst here. "Rotary extrapolates" is half
# true: it was measured here at up to four times the trained length, with one task.

# %% [markdown]
# ## 5. Heads that share their keys and values
#
# A model that writes must keep the keys and values of all words so far; section 6 says why. With 32
# heads that is 32 sets. Shazeer (2019) kept one set for all heads (**multi-query**), and it was
# often enough. Ainslie and others (2023) took the middle way, which Llama 3 and Qwen3 use:
# **grouped queries**. There are `num_heads` query heads, and fewer key-value heads, each of which
# serves a group of neighbours. With 6 heads and 2 key-value heads:
#
# | query head | 0 | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|---|
# | uses key-value head | 0 | 0 | 0 | 1 | 1 | 1 |
#
# Query head $h$ uses key-value head $h \,//\, (6 \,//\, 2)$. Only two matrices of the layer
# shrink, $W^K$ and $W^V$. The scores are as many as before.

# %% [markdown]
# ### Exercise 5: `GroupedQueryAttention`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 25-30 minutes on it.
#
# - `GroupedQueryAttention(d_model, num_heads, num_kv_heads)`: `W_q` and `W_o` are
#   `nn.Linear(d_model, d_model)`; `W_k` and `W_v` are
#   `nn.Linear(d_model, num_kv_heads * d_model // num_heads)`; all with bias.
# - Graded error: a `ValueError` if `d_model` is not a multiple of `num_heads`, or `num_heads` not a
#   multiple of `num_kv_heads`.
# - `forward(query, key=None, value=None, mask=None)` as in lesson 5: returns
#   `(output (..., n_q, d_model), weights (..., num_heads, n_q, n_k))`.
# - Query head `h` uses key-value head `h // (num_heads // num_kv_heads)`.
# - Masks as in lesson 5: boolean, `True` = may attend. A mask with more axes than `query` has a head
#   axis (of `num_heads`); any other serves every head, with a new axis before its last two; one with
#   a single axis simply broadcasts.
# - Checked when graded: `key` defaults to `query` and `value` to `key`; any number of leading axes;
#   a query that may attend to nothing has weights 0 and the bias of `W_o` as output, with finite
#   gradients; gradients through both results; float64; arguments unchanged.
#
# `split_heads`, `combine_heads` and `torch_scaled_dot_product_attention` are at hand.


# %% answer="GroupedQueryAttention"
class GroupedQueryAttention(nn.Module):
    """Multi-head attention in which groups of query heads share keys and values.

    Parts W_q, W_o: nn.Linear(d_model, d_model);
    W_k, W_v: nn.Linear(d_model, num_kv_heads * d_model // num_heads).

    Raises:
        ValueError: d_model is not a multiple of num_heads, or num_heads of num_kv_heads.
    """

    def __init__(self, d_model, num_heads, num_kv_heads):
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not a multiple of num_heads = {num_heads}")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_heads = {num_heads}: no multiple of num_kv_heads = {num_kv_heads}")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        width = num_kv_heads * d_model // num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, width)
        self.W_v = nn.Linear(d_model, width)
        self.W_o = nn.Linear(d_model, d_model)
        ### END SOLUTION

    def forward(self, query, key=None, value=None, mask=None):
        """Attend in every head.

        Args:
            query: (..., n_q, d_model).
            key: (..., n_k, d_model); None means query.
            value: (..., n_k, d_model); None means key.
            mask: boolean, True = may attend; with a head axis exactly when it has more axes
                than query, otherwise it serves every head.

        Returns:
            output (..., n_q, d_model) and weights (..., num_heads, n_q, n_k).
        """
        ### BEGIN SOLUTION
        key = query if key is None else key
        value = key if value is None else value
        if mask is not None and 2 <= mask.ndim <= query.ndim:
            mask = mask.unsqueeze(-3)  # (..., 1, n_q, n_k): the same for every head
        group = self.num_heads // self.num_kv_heads
        Q = split_heads(self.W_q(query), self.num_heads)  # (..., num_heads, n_q, d_head)
        K = split_heads(self.W_k(key), self.num_kv_heads)  # (..., num_kv_heads, n_k, d_head)
        V = split_heads(self.W_v(value), self.num_kv_heads)
        K = K.repeat_interleave(group, dim=-3)  # (..., num_heads, n_k, d_head): 0 0 0 1 1 1
        V = V.repeat_interleave(group, dim=-3)
        heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
        return self.W_o(combine_heads(heads)), weights
        ### END SOLUTION


# %% check="GroupedQueryAttention" points=3
# Twelve features, six heads, two key-value heads, four queries, five keys.
@probe
def attend(parts, heads, seed, query, key, value, mask):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layer = GroupedQueryAttention(query.shape[-1], *heads)
        with torch.no_grad():
            for name, (weight, bias) in parts.items():
                getattr(layer, name).weight.copy_(weight)
                getattr(layer, name).bias.copy_(bias)
            torch.manual_seed(seed)
            given = [None if x is None else x.clone() for x in (query, key, value, mask)]
            return layer(*given)


@probe
def make(d_model, num_heads, num_kv_heads):
    layer = GroupedQueryAttention(d_model, num_heads, num_kv_heads)
    return {name: list(parameter.shape) for name, parameter in layer.named_parameters()}


def random_parts(rng, d_model, num_heads, num_kv_heads):
    narrow = num_kv_heads * d_model // num_heads
    widths = {"W_q": d_model, "W_k": narrow, "W_v": narrow, "W_o": d_model}
    return {
        name: tuple(torch.tensor(0.5 * rng.normal(size=s)).float() for s in ((w, d_model), (w,)))
        for name, w in widths.items()
    }


def by_torch(parts, num_heads, query, key, value, mask):
    d_head, head_of = query.shape[-1] // num_heads, []
    Q, K, V = (F.linear(x, *parts[p]) for p, x in zip(("W_q", "W_k", "W_v"), (query, key, value)))
    group = Q.shape[-1] // K.shape[-1]
    for h in range(num_heads):  # head by head; an identity beside the values brings the weights
        q, g = Q[..., h * d_head : (h + 1) * d_head], h // group
        k, v = (x[..., g * d_head : (g + 1) * d_head] for x in (K, V))
        v = torch.cat([v, torch.eye(v.shape[-2]).to(v).expand(*v.shape[:-1], -1)], dim=-1)
        head_of.append(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    heads = torch.cat([one[..., :d_head] for one in head_of], dim=-1)
    weights = torch.stack([one[..., d_head:] for one in head_of], dim=-3)
    return F.linear(heads, *parts["W_o"]), weights


def pair(both):
    """The two results of forward."""
    two = isinstance(both, (tuple, list)) and len(both) == 2
    message = "forward should return a pair, (output, weights)."
    assert_equal(two, True, message, name="'it is a pair'")
    return both


rng = check_rng()
seed = int(rng.integers(2**31))
with check("the four layers", points=0.5):
    found = make(12, 6, 2)
    expected = {"W_q": [12, 12], "W_k": [4, 12], "W_v": [4, 12], "W_o": [12, 12]}
    assert_equal(
        {name: found.get(f"{name}.weight") for name in expected},
        expected,
        "d_model = 12, 6 heads, 2 key-value heads: each head has 2 features, so W_k and W_v give "
        "2 * 2 = 4, and W_q and W_o 12.",
        name="the shapes of the weights",
    )
    biases = {name: found.get(f"{name}.bias") for name in expected}
    message = "d_model = 12, 6 heads, 2 key-value heads: all four should have a bias."
    assert_equal(biases, {"W_q": [12], "W_k": [4], "W_v": [4], "W_o": [12]}, message, name="the biases")
parts = random_parts(rng, 12, 6, 2)
texts = [torch.tensor(rng.normal(size=(3, n, 12))).float() for n in (4, 5, 5)]
expected, expected_weights = by_torch(parts, 6, *texts, None)
both = attend(parts, (6, 2), seed, *texts, None)
with check("the weights of six heads", points=0.75):
    if not isinstance(both, (tuple, list)) or len(both) != 2:
        message = "forward should return a pair, (output, weights)."
        assert_equal(both, (expected, expected_weights), message)
    output, weights = both
    message = (
        "No mask: the weights should be those of torch's attention, head by head. The query heads "
        "0, 1, 2 use key-value head 0, and 3, 4, 5 use head 1. Are the keys repeated as 0 0 0 1 1 "
        "1, and along the axis of the heads? Are the scores divided by the root of a head's width, "
        "2?"
    )
    if np.shape(weights) != (3, 6, 4, 5):
        message = "The second result should be the weights of every query head, (3, 6, 4, 5)."
    assert_close(weights, expected_weights, message, name="weights")
with check("the output of six heads", points=0.5):
    output, weights = pair(both)
    message = (
        "No mask: the output should be that of torch's attention, head by head, and then W_o. If "
        "the weights are right: are the values repeated as the keys are? Are they from `value`?"
    )
    assert_close(output, expected, message, name="output")
with check("as many key-value heads as heads", points=0.25):
    full = random_parts(rng, 12, 3, 3)
    output, weights = pair(attend(full, (3, 3), seed, *texts, None))
    expected, expected_weights = by_torch(full, 3, *texts, None)
    message = (
        "Three heads and three key-value heads: both results should be those of the layer of "
        "lesson 5, where each head has keys and values of its own."
    )
    assert_close(weights, expected_weights, message, name="weights")
    assert_close(output, expected, message, name="output")
with check("masks for texts or heads: weights as without, hidden keys 0", points=0.5):
    masks = torch.tensor(rng.random((3, 4, 5)) < 0.5)
    masks[..., 1], masks[..., 3] = True, False
    six = torch.tensor(rng.random((1, 6, 4, 5)) < 0.5)
    six[..., 0], six[..., 3] = True, False
    free = attend(parts, (6, 2), seed, *texts, None)
    several = isinstance(free, (tuple, list)) and len(free) > 1
    message = "forward should return a pair, (output, weights)."
    assert_equal(several, True, message, name="'it is a pair'")
    message = "No mask: the weights should be those of every query head, (3, 6, 4, 5)."
    free = free[1]
    assert_equal(list(np.shape(free)), [3, 6, 4, 5], message, name="the shape of weights")
    for mask, with_heads, what in (
        (masks, masks.unsqueeze(1), "(batch, n_q, n_k) serves every head: as many axes as query"),
        (six, six, "(1, 6, n_q, n_k) has a head axis: more axes than query"),
    ):
        expected = torch.where(with_heads, free, 0.0)
        message = (
            f"A mask {what}. Hidden keys (False) have weight 0; the others share the weight as they "
            "do in your layer without a mask."
        )
        found = attend(parts, (6, 2), seed, *texts, mask)[1]
        assert_close(
            found,
            expected / expected.sum(-1, keepdim=True),
            message,
            name="weights",
            against="from the weights without a mask",
        )
with check("head counts that do not divide", points=0.5, side=True):
    for counts in ((12, 5, 1), (12, 6, 4)):
        with assert_raises(ValueError, f"GroupedQueryAttention{counts} should raise a ValueError."):
            make(*counts)
checks_passed("GroupedQueryAttention")


# %% check="GroupedQueryAttention_groups" points=3
# Hidden checks of GroupedQueryAttention: which head uses which; several counts of heads, float64.
### BEGIN HIDDEN TESTS
@probe
def attend(seed, parts, heads, query, key, value):
    torch.manual_seed(seed)
    layer = GroupedQueryAttention(query.shape[-1], *heads).double()
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            getattr(layer, name).bias.copy_(bias)
        torch.manual_seed(seed)
        return layer(query, key, value)


@probe
def attend_as(parts, sizes, given, train):
    """In the dtype of query, in this mode; with gradients in training mode."""
    layer = GroupedQueryAttention(*sizes).to(given["query"].dtype).train(train)
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            getattr(layer, name).bias.copy_(bias)
    with torch.set_grad_enabled(train):
        found = layer(**{
            name: x if name == "mask" else x.clone().requires_grad_(train)
            for name, x in given.items()
        })  # fmt: skip
    if not isinstance(found, (tuple, list)):
        return found
    return [x.detach() if isinstance(x, torch.Tensor) else x for x in found]


def by_torch(parts, num_heads, query, key, value):
    d_head, head_of = query.shape[-1] // num_heads, []
    Q, K, V = (F.linear(x, *parts[p]) for p, x in zip(("W_q", "W_k", "W_v"), (query, key, value)))
    group = Q.shape[-1] // K.shape[-1]
    for h in range(num_heads):
        q, g = Q[..., h * d_head : (h + 1) * d_head], h // group
        k, v = (x[..., g * d_head : (g + 1) * d_head] for x in (K, V))
        v = torch.cat([v, torch.eye(v.shape[-2]).to(v).expand(*v.shape[:-1], -1)], dim=-1)
        head_of.append(F.scaled_dot_product_attention(q, k, v))
    heads = torch.cat([one[..., :d_head] for one in head_of], dim=-1)
    weights = torch.stack([one[..., d_head:] for one in head_of], dim=-3)
    return F.linear(heads, *parts["W_o"]), weights


def pair(both):
    """The two results of forward."""
    two = isinstance(both, (tuple, list)) and len(both) == 2
    message = "forward should return a pair, (output, weights)."
    assert_equal(two, True, message, name="'it is a pair'")
    return both


rng = check_rng()
seed = int(rng.integers(2**31))
found, wanted = {}, {}
for counts in ((6, 2), (6, 3), (4, 2), (12, 4), (6, 1), (4, 4)):
    narrow = counts[1] * 12 // counts[0]
    widths = {"W_q": 12, "W_k": narrow, "W_v": narrow, "W_o": 12}
    parts = {
        name: (torch.tensor(0.4 * rng.normal(size=(w, 12))), torch.tensor(rng.normal(size=w)))
        for name, w in widths.items()
    }
    given = [torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5, 5)]
    wanted[counts] = by_torch(parts, counts[0], *given)
    found[counts] = attend(seed, parts, counts, *given)
for counts, d_model, n in (((1, 1), 5, 5), ((8, 2), 32, 4)):
    narrow = counts[1] * d_model // counts[0]
    widths = {"W_q": d_model, "W_k": narrow, "W_v": narrow, "W_o": d_model}
    parts = {
        name: (torch.tensor(0.2 * rng.normal(size=(w, d_model))), torch.tensor(rng.normal(size=w)))
        for name, w in widths.items()
    }
    given = [torch.tensor(rng.normal(size=(2, k, d_model))) for k in (n, 5, 5)]
    wanted[counts] = by_torch(parts, counts[0], *given)
    found[counts] = attend(seed, parts, counts, *given)
with check("as many key-value heads as heads, and a single one", points=1):
    for counts in ((4, 4), (6, 1), (1, 1)):
        output, weights = pair(found[counts])
        expected, expected_weights = wanted[counts]
        message = (
            f"(num_heads, num_kv_heads) = {counts}, d_model {5 if counts == (1, 1) else 12}, "
            "float64: both results should be those of torch's attention, head by head. The weights "
            "have an axis of the heads, also where there is one head."
        )
        assert_close(weights, expected_weights, message, name="weights")
        assert_close(output, expected, message, name="output")
with check("groups; sizes, leading axes, a mask of True, both modes, by name", points=2):
    for counts in ((6, 2), (6, 3), (4, 2), (12, 4), (8, 2)):
        output, weights = pair(found[counts])
        expected, expected_weights = wanted[counts]
        message = (
            f"(num_heads, num_kv_heads) = {counts}, d_model {32 if counts == (8, 2) else 12}, "
            "float64: both results should be those of torch's attention, head by head. Query head "
            "h uses key-value head h // (num_heads // num_kv_heads), for keys and values."
        )
        assert_close(weights, expected_weights, message, name="weights")
        assert_close(output, expected, message, name="output")
    for sizes, lead, n_q, n_k, dtype, masked in (
        ((10, 5, 1), (2,), 3, 3, torch.float32, False),
        ((10, 5, 1), (2,), 3, 3, torch.float64, True),
        ((66, 3, 1), (2,), 7, 3, torch.float64, False),
        ((6, 3, 3), (6,), 6, 6, torch.float64, True),
        ((2, 2, 1), (3,), 33, 5, torch.float64, False),
        ((1, 1, 1), (2, 1), 4, 1, torch.float64, True),
        ((12, 4, 2), (), 2, 70, torch.float32, True),
        ((130, 10, 5), (1,), 2, 3, torch.float64, False),
        ((2, 1, 1), (2,), 5, 2, torch.float32, False),
    ):
        d_model, heads, kv_heads = sizes
        narrow = kv_heads * d_model // heads
        widths = {"W_q": d_model, "W_k": narrow, "W_v": narrow, "W_o": d_model}
        parts = {
            name: tuple(torch.tensor(0.3 * rng.normal(size=s)).to(dtype) for s in ((w, d_model), w))
            for name, w in widths.items()
        }
        lengths = (n_q, n_k, n_k)
        given = [torch.tensor(rng.normal(size=(*lead, n, d_model))).to(dtype) for n in lengths]
        expected, expected_weights = by_torch(parts, heads, *given)
        named = dict(zip(("query", "key", "value"), given, strict=True))
        if masked:
            named["mask"] = torch.ones(n_q, n_k, dtype=torch.bool)
        for train in (True, False):
            message = (
                f"(d_model, num_heads, num_kv_heads) = {sizes}, leading axes {lead}, n_q = {n_q}, "
                f"n_k = {n_k}, {str(dtype)[6:]}, {'a mask of True' if masked else 'no mask'}, in "
                f"{'training' if train else 'evaluation'} mode, arguments given by name: both "
                "results should be those of torch's attention, head by head."
            )
            output, weights = pair(attend_as(parts, sizes, named, train))
            assert_close(weights, expected_weights, message, name="weights")
            assert_close(output, expected, message, name="output")
checks_passed("GroupedQueryAttention")
### END HIDDEN TESTS


# %% check="GroupedQueryAttention_batches" points=2
# Hidden checks of GroupedQueryAttention: leading axes and defaults, against one text by itself.
### BEGIN HIDDEN TESTS
@probe
def attend(seed, heads, given):
    torch.manual_seed(seed)
    layer = GroupedQueryAttention(12, *heads).double()
    with torch.no_grad():
        torch.manual_seed(seed)
        return layer(**given)


def pair(both):
    """The two results of forward."""
    two = isinstance(both, (tuple, list)) and len(both) == 2
    message = "forward should return a pair, (output, weights)."
    assert_equal(two, True, message, name="'it is a pair'")
    return both


rng = check_rng()
seed = int(rng.integers(2**31))
later = rng.spawn(1)[0]
with check("each text as if it were alone", points=1):
    cases = [(lead, 4, 5, rng) for lead in ((), (1,), (6,), (3,), (2, 3), (2, 1, 3))]
    for lead, n_q, n_k, draw in [*cases, ((1, 1), 1, 5, later), ((4,), 4, 4, later)]:
        lengths = (n_q, n_k, n_k)
        query, key, value = (torch.tensor(draw.normal(size=(*lead, n, 12))) for n in lengths)
        output, weights = pair(attend(seed, (6, 3), {"query": query, "key": key, "value": value}))
        message = (
            f"Leading axes {lead} of query, key and value, n_q = {n_q}, n_k = {n_k}: any number is "
            "allowed."
        )
        assert_equal(list(np.shape(output)), [*lead, n_q, 12], message, name="the shape of output")
        shape = [*lead, 6, n_q, n_k]
        assert_equal(list(np.shape(weights)), shape, message, name="the shape of weights")
        other = attend(seed, (6, 3), {"query": query + 1, "key": key, "value": 1 - value})[0]
        differs = bool((output - other).abs().max() > 1e-4)
        sentence = (
            f"Leading axes {lead}: another query and value should give another output, without NaN."
        )
        assert_equal(differs, True, sentence, name="'numbers that differ'")
        message = f"{message} Each text should come out as your layer gives it alone."
        texts = zip(*(x.reshape(-1, *x.shape[-2:]) for x in (query, key, value)), strict=True)
        alone = [attend(seed, (6, 3), {"query": q, "key": k, "value": v}) for q, k, v in texts]
        expected = torch.stack([one[1] for one in alone]).reshape(*lead, 6, n_q, n_k).double()
        assert_close(weights, expected, message, name="weights", against="for each text alone")
        expected = torch.stack([one[0] for one in alone]).reshape(*lead, n_q, 12).double()
        assert_close(output, expected, message, name="output", against="for each text alone")
with check("key and value left out: as written out", points=1):
    query, key, other = (torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5, 4))
    for given, whole in (
        ({"query": query}, (query, query, query)),
        ({"query": query, "key": key}, (query, key, key)),
        ({"query": query, "value": other}, (query, query, other)),
    ):
        message = (
            f"Called with {', '.join(given)} alone: key defaults to query, and value to key. The "
            "results should be those of your layer with all three written out."
        )
        output, weights = pair(attend(seed, (6, 2), given))
        full = dict(zip(("query", "key", "value"), whole, strict=True))
        expected, expected_weights = pair(attend(seed, (6, 2), full))
        moved = attend(seed, (6, 2), full | {"value": whole[2] + 1})[0]
        differs = bool((expected - moved).abs().max() > 1e-4)
        sentence = "query, key and value written out: another value should give another output."
        assert_equal(differs, True, sentence, name="'numbers that differ'")
        own = "with all three written out"
        assert_close(weights, expected_weights, message, name="weights", against=own)
        assert_close(output, expected, message, name="output", against=own)
checks_passed("GroupedQueryAttention")
### END HIDDEN TESTS


# %% check="GroupedQueryAttention_masks" points=3
# Hidden checks of GroupedQueryAttention: masks of every form, and queries that see nothing.
### BEGIN HIDDEN TESTS
@probe
def attend(seed, bias, query, key, mask):
    torch.manual_seed(seed)
    layer = GroupedQueryAttention(12, 6, 2).double()
    with torch.no_grad():
        layer.W_o.bias.copy_(bias)
        torch.manual_seed(seed)
        if mask is None:
            return layer(query, key)
        try:
            return layer(query, key, mask=mask)
        except NotImplementedError:
            raise
        except Exception as error:
            return type(error).__name__


rng = check_rng()
seed = int(rng.integers(2**31))
bias = torch.tensor(2 + rng.normal(size=12))


def pair(both, given=""):
    """The two results of forward."""
    raised = both if isinstance(both, str) else "nothing"
    message = (
        f"{given}: forward stops with an error. Check first: does a shape or a mask count on "
        "exactly one leading axis? Where a mask has no head axis, does it get one before its last "
        "two?"
    )
    assert_equal(raised, "nothing", message, name="the error")
    two = isinstance(both, (tuple, list)) and len(both) == 2
    message = "forward should return a pair, (output, weights)."
    assert_equal(two, True, message, name="'it is a pair'")
    return both


later = rng.spawn(1)[0]


def compare(cases, n_q=4, n_k=5, draw=rng):
    """With a mask the weights are those without, where it is True, made to sum to 1 again."""
    for lead, shape in cases:
        query = torch.tensor(draw.normal(size=(*lead, n_q, 12)))
        key = None if n_k is None else torch.tensor(draw.normal(size=(*lead, n_k, 12)))
        mask = torch.tensor(draw.random(shape) < 0.5)
        mask[..., 1], mask[..., 3] = True, False
        whole = mask if mask.ndim < 2 or mask.ndim > query.ndim else mask.unsqueeze(-3)
        free = pair(attend(seed, bias, query, key, None))[1]
        message = "Without a mask the weights should not all be equal, nor NaN."
        assert_equal(bool(free.std() > 1e-3), True, message, name="'numbers that differ'")
        if draw is later:
            message = f"query of shape {tuple(query.shape)}, no mask: weights (..., 6, n_q, n_k)."
            size = [*lead, 6, n_q, n_k or n_q]
            assert_equal(list(np.shape(free)), size, message, name="the shape of weights")
        expected = torch.where(whole, free, 0.0)
        expected = expected / expected.sum(-1, keepdim=True)
        message = (
            f"query of shape {tuple(query.shape)}, {'no key' if key is None else f'{n_k} keys'}, 6 "
            f"heads, mask of shape {tuple(shape)}: it has a head axis exactly when it has more "
            "axes than query; otherwise it serves every head: the last two axes are queries and "
            "keys, the others line up with query's leading axes. Hidden keys (False) have weight "
            "0, the others share it as in your layer without a mask."
        )
        called = (
            f"query of shape {tuple(query.shape)}, {'no key' if key is None else f'{n_k} keys'}, 6 "
            f"heads, mask of shape {tuple(shape)}"
        )
        weights = pair(attend(seed, bias, query, key, mask), called)[1]
        own = "from the weights without a mask"
        assert_close(weights, expected, message, name="weights", against=own)


with check("a mask for all heads: as without it, hidden keys 0, however large", points=1):
    compare(
        [
            ((), (5,)),
            ((), (4, 5)),
            ((3,), (1, 5)),
            ((6,), (6, 4, 5)),
            ((6,), (6, 1, 5)),
            ((2,), (2, 4, 5)),
            ((2, 6), (6, 4, 5)),
            ((2, 3), (2, 3, 4, 5)),
            ((2, 3), (2, 1, 1, 5)),
            ((6,), (5,)),
            ((2, 3), (5,)),
        ]
    )
    # Three axes and more, and fewer than query has; drawn by a generator of their own.
    compare([((2, 2, 6), (2, 6, 4, 5)), ((2, 1, 2, 6), (6, 4, 5))], draw=rng.spawn(1)[0])
    compare([((6,), (6, 6)), ((6,), (6, 6, 6))], 6, 6, later)
    compare([((1, 1), (1, 1, 1, 5))], 1, 5, later)
    compare([((3,), (4, 4))], 4, None, later)
    query, key = (torch.tensor(later.normal(size=(2, n, 12))) for n in (4, 5))
    mask, huge = torch.tensor([True, True, True, False, True]).expand(4, 5), key.clone()
    huge[:, 3] *= 1e4
    called = "query of shape (2, 4, 12), 5 keys, 6 heads, mask of shape (4, 5)"
    for found, expected, name in zip(
        pair(attend(seed, bias, query, huge, mask), called),
        pair(attend(seed, bias, query, key, mask), called),
        ("output", "weights"),
        strict=True,
    ):
        message = (
            "Two texts, four queries, five keys, of which all queries see 0, 1, 2 and 4: both "
            "results should be the same where the hidden key is 10,000 times as large. What is "
            "hidden has no influence on the others."
        )
        plain, own = torch.as_tensor(expected).double(), "without enlarging the hidden key"
        assert_close(found, plain, message, name=name, against=own)
    query, key = (torch.tensor(later.normal(size=(2, n, 12))) for n in (4, 2))
    key[:, 1] *= 1e15
    mask = torch.tensor([False, True])
    weights = pair(attend(seed, bias, query, key, mask), "query (2, 4, 12), 2 keys, a mask (2,)")[1]
    message = (
        "Two keys, of which the second may be attended: it has all the weight, in every head, also "
        "where its score is near -1e15. Check first: is what stands for minus infinity lower than "
        "any number can be?"
    )
    assert_close(weights, mask.double().expand(2, 6, 4, 2), message, name="weights")
with check("a mask for each head: weights as without it, hidden keys 0", points=1):
    compare([((), (6, 4, 5)), ((), (6, 1, 5)), ((3,), (3, 6, 4, 5)), ((2,), (1, 6, 1, 5)), ((2, 3), (2, 3, 6, 4, 5))])  # fmt: skip
    compare([((6,), (6, 6, 6, 6))], 6, 6, later)
with check("nothing to attend to: weights 0, output W_o's bias; others' sum 1", points=1):
    query, key = (torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5))
    rows = torch.tensor(rng.random((4, 5)) < 0.6)
    rows[:, 0], rows[2] = True, False
    text = torch.tensor([[[True, True, False, True, False]], [[False] * 5]])
    nothing = torch.zeros(4, 5, dtype=torch.bool)
    for mask, output_rows in ((rows, (slice(None), 2)), (text, (1,)), (nothing, (slice(None),))):
        called = f"query of shape (2, 4, 12), 5 keys, 6 heads, mask of shape {tuple(mask.shape)}"
        output, weights = pair(attend(seed, bias, query, key, mask), called)
        blocked = ~mask.expand(2, 4, 5).any(-1)[:, None].expand(2, 6, 4)
        shape = f"mask of shape {tuple(mask.shape)}"
        message = (
            f"A {shape}: a query that may attend to nothing should have weights 0 in every head, "
            "no NaN, no even average."
        )
        none = torch.zeros_like(weights[blocked])
        own = "with weight 0 everywhere"
        assert_equal(weights[blocked], none, message, name="weights", against=own)
        message = f"A {shape}: the weights of every other query should sum to 1, without NaN."
        sums = bool(((weights[~blocked].sum(-1) - 1).abs() < 1e-6).all())
        assert_equal(sums, True, message, name="'they sum to 1'")
        message = (
            f"A {shape}: the heads of a query that may attend to nothing give 0, so its output "
            "should be W_o's bias."
        )
        found = output[output_rows]
        own = "in W_o's bias"
        assert_close(found, bias.expand(found.shape), message, name="output", against=own)
checks_passed("GroupedQueryAttention")
### END HIDDEN TESTS


# %% check="GroupedQueryAttention_gradients" points=2
# Hidden checks of GroupedQueryAttention: gradients through both results, to inputs and parameters,
# measured against the layer's own results at two points nearby.
### BEGIN HIDDEN TESTS
@probe
def run(seed, parts, inputs, mask, of_output, of_weights):
    torch.manual_seed(seed)
    layer = GroupedQueryAttention(12, 4, 2).double()
    with torch.no_grad():
        for name, (weight, bias) in parts.items():
            getattr(layer, name).weight.copy_(weight)
            getattr(layer, name).bias.copy_(bias)
    leaves = [x.clone().requires_grad_() for x in inputs]
    torch.manual_seed(seed)
    output, weights = layer(*leaves, mask)
    value = (output * of_output).sum() + (weights * of_weights).sum()
    if value.requires_grad:
        value.backward()
    found = [x.grad for x in leaves]
    for name in parts:
        found += [getattr(layer, name).weight.grad, getattr(layer, name).bias.grad]
    return value.item(), found


rng = check_rng()
seed = int(rng.integers(2**31))
widths = {"W_q": 12, "W_k": 6, "W_v": 6, "W_o": 12}
tensors = [torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5, 5)]
for width in widths.values():
    tensors += [torch.tensor(0.4 * rng.normal(size=(width, 12))), torch.tensor(rng.normal(size=width))]
names = ["query", "key", "value", *(f"{p}.{what}" for p in widths for what in ("weight", "bias"))]
A, B = (torch.tensor(rng.normal(size=shape)) for shape in ((2, 4, 12), (2, 4, 4, 5)))
empty = torch.tensor(rng.random((2, 1, 4, 5)) < 0.6)
empty[..., 2] = True
empty[0, :, 1] = empty[1, :, 2] = False
empty = empty.repeat(1, 4, 1, 1)  # the same for each of the four heads


def value_and_gradients(given, mask, out, wei):
    pairs = zip(given[3::2], given[4::2], strict=True)
    return run(seed, dict(zip(widths, pairs, strict=True)), given[:3], mask, out, wei)


for what, mask, out, wei in (
    ("the output", None, A, 0 * B),
    ("the weights", None, 0 * A, B),
    ("both, with empty rows in the mask,", empty, A, B),
):
    _, gradients = value_and_gradients(tensors, mask, out, wei)
    for number, name in enumerate(names):
        way = torch.tensor(rng.normal(size=tuple(tensors[number].shape)))
        way = way / way.norm()
        moved = [
            value_and_gradients(
                [x + step * way if i == number else x for i, x in enumerate(tensors)], mask, out, wei
            )[0]
            for step in (1e-5, -1e-5)
        ]
        slope = (moved[0] - moved[1]) / 2e-5
        message = (
            f"The gradient of {name} through {what} should fit how the results change when {name} "
            "is moved a little (float64). Check first: is something detached, or not finite? "
            "Gradients should be finite with empty rows too."
        )
        found = gradients[number]
        along = 0.0 if found is None else (found * way).sum().item()
        assert_close(
            along,
            slope,
            message,
            name=f"the slope along {name}",
            rtol=1e-4,
            atol=1e-6,
            against=f"by small steps in {name}",
        )
        if name == "W_o.bias" and what == "the output":
            message = "Another bias of W_o should give another output."
            assert_equal(abs(slope) > 1e-8, True, message, name="'a number that changes'")
### END HIDDEN TESTS


# %% check="GroupedQueryAttention_inputs" points=1
# Hidden checks of GroupedQueryAttention: arguments unchanged, the same twice; what is refused.
### SIDE CONDITION: counts once another check of GroupedQueryAttention passes.
### BEGIN HIDDEN TESTS
@probe
def attend_twice(seed, query, key, value, mask):
    torch.manual_seed(seed)
    layer = GroupedQueryAttention(12, 6, 2).double()
    with torch.no_grad():
        unmasked = layer(query, key, value)
        first = layer(query, key, value, mask)
        try:
            layer(query[:, :2], key[:, :3])  # other lengths in between
            second = layer(query, key, value, mask)
            again = layer(query, key, value)
        except RuntimeError as error:
            second = again = [type(error).__name__]
    return first, second, (query, key, value, mask), (unmasked[0], again[0])


@probe
def make(d_model, num_heads, num_kv_heads):
    GroupedQueryAttention(d_model, num_heads, num_kv_heads)
    return "made"


rng = check_rng()
given = [torch.tensor(rng.normal(size=(2, n, 12))) for n in (4, 5, 5)]
given.append(torch.tensor(rng.random((4, 5)) < 0.6))
first, second, after, unmasked = attend_twice(
    int(rng.integers(2**31)), *(x.clone() for x in given)
)
for name, now, before in zip(("query", "key", "value", "mask"), after, given, strict=True):
    message = f"{name} should be as before after calls with and without a mask."
    assert_equal(now, before, message, name=name, against="before the calls")
message = (
    "The same call twice, with a mask, and one with other lengths and no mask in between: none "
    "should fail, and the output be the same. Check first: is there dropout, or a stored state?"
)
assert_equal(second[0], first[0], message, name="output", against="in the first call")
message = (
    "A call without a mask should give the same output before and after calls with a mask, and "
    "with other lengths. Check first: is a mask kept?"
)
own = "before the calls with a mask"
assert_equal(unmasked[1], unmasked[0], message, name="output", against=own)
message = "A layer and inputs of float64: the output should be float64."
assert_equal(str(first[0].dtype), "torch.float64", message, name="the dtype")
for counts in ((12, 5, 1), (7, 2, 1), (12, 4, 3), (12, 6, 4), (12, 2, 4), (8, 4, 8)):
    d_model, heads, kv_heads = counts
    reason = f"{heads} is no multiple of {kv_heads}"
    if d_model % heads:
        reason = f"{d_model} is no multiple of {heads}"
    with assert_raises(ValueError, f"GroupedQueryAttention{counts}: {reason}, a ValueError."):
        make(*counts)
for counts in ((7, 7, 1), (7, 1, 1), (12, 6, 6), (10, 5, 5), (9, 3, 1)):
    message = f"GroupedQueryAttention{counts} is valid: no error should be raised."
    try:
        made = make(*counts)
    except ValueError as error:
        made = type(error).__name__
    assert_equal(made, "made", message, name="what happens")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Start from lesson 5's `forward`. After `split_heads`, keys and values have `num_kv_heads` heads;
# each must come `num_heads // num_kv_heads` times, copies next to each other. torch has a function
# that repeats elements in this order, and another one that repeats the whole sequence: 0 1 0 1 0 1.
# You want 0 0 0 1 1 1. The mask needs the same care as in lesson 5.
#
# </details>

# %% [markdown]
# ### With as many key-value heads as heads, nothing has changed
#
# The first equivalence. Copy the weights of lesson 5's layer into yours. **Predict, then run:** how
# large is the difference? And what does a model with *fewer* key-value heads equal?

# %% tags=["demonstration"]
torch.manual_seed(0)
full, same = MultiHeadAttention(48, 4).double(), GroupedQueryAttention(48, 4, 4).double()
same.load_state_dict(full.state_dict(), strict=False)
shared = GroupedQueryAttention(48, 4, 2).double()
repeated = MultiHeadAttention(48, 4).double()
repeated.load_state_dict(shared.state_dict() | {k: full.state_dict()[k] for k in
    ("W_k.weight", "W_k.bias", "W_v.weight", "W_v.bias")}, strict=False)  # fmt: skip
x = torch.randn(2, 7, 48, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
mask = torch.tensor(causal_mask(7))
with torch.no_grad():
    for name in ("W_k", "W_v"):  # each head's rows, as often as they serve
        old, new = getattr(shared, name), getattr(repeated, name)
        new.weight.copy_(old.weight.unflatten(0, (2, 12)).repeat_interleave(2, 0).flatten(0, 1))
        new.bias.copy_(old.bias.unflatten(0, (2, 12)).repeat_interleave(2, 0).flatten())
    pairs = {"kv heads = heads, and lesson 5": (full, same), "2 of 4, and copied rows": (shared, repeated)}
    for name, (one, other) in pairs.items():
        gap = max((a - b).abs().max().item() for a, b in zip(one(x, mask=mask), other(x, mask=mask)))
        print(f"{name:31s} equal to 1e-12: {gap < 1e-12}")
        assert gap < 1e-12

# %% [markdown]
# So grouped queries are a **restriction** of multi-head attention: heads of a group have equal columns
# in $W^K$ and $W^V$ (rows, as `nn.Linear` stores them). What a grouped layer can do, a full layer can do. Not the other way round.
#
# ### Can a trained model be made to share?
#
# Ainslie and others (2023) took trained multi-head models, **averaged** the key and value matrices
# of each group ("mean pooling"), and trained on for 5 % of the original steps. Here is that
# experiment with lesson 5's task "partners": six pairs of words in random order, say where your
# partner stands. Four heads are trained, and then pooled: to two, and (from the four again) to one.
#
# **Predict, then run.** (1) How much of the accuracy is left right after pooling? (2) After 30 more
# steps? (3) What does a *new* one-head model reach in 30 steps? (4) In 300?

# %% tags=["demonstration"]
POSITIONS, D_MODEL = 12, 48  # words in a text; features


class Finder(nn.Module):
    """Word and position vectors, one grouped attention, one linear layer to read the answer."""

    def __init__(self, num_heads, num_kv_heads):
        super().__init__()
        self.words, self.positions = nn.Embedding(36, D_MODEL), nn.Embedding(POSITIONS, D_MODEL)
        self.attention = GroupedQueryAttention(D_MODEL, num_heads, num_kv_heads)
        self.read = nn.Linear(D_MODEL, POSITIONS)

    def forward(self, texts):
        return self.read(self.attention(self.words(texts) + self.positions.weight)[0])


def partners(batch, generator):
    """Six pairs of 18, shuffled (batch, 12); where the partner stands (batch, 12)."""
    pairs = torch.rand(batch, 18, generator=generator).argsort(-1)[:, :6]
    texts = torch.cat([2 * pairs, 2 * pairs + 1], dim=-1)  # words 2k and 2k + 1 are partners
    texts = texts.gather(1, torch.rand(batch, POSITIONS, generator=generator).argsort(-1))
    return texts, (texts[:, None, :] == (texts ^ 1)[:, :, None]).float().argmax(-1)


def train_finder(model, steps, seed, lr=5e-3):
    """Train on batches of 64 new texts; returns the model."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for _ in range(steps):
        texts, places = partners(64, generator)
        loss = F.cross_entropy(model(texts).flatten(0, 1), places.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def found_partners(model):
    """Share of right answers on 500 new texts."""
    texts, places = partners(500, torch.Generator().manual_seed(99))
    with torch.no_grad():
        return (model(texts).argmax(-1) == places).float().mean().item()


def new_finder(num_kv_heads, seed):
    torch.manual_seed(seed)
    return Finder(4, num_kv_heads)


def pooled(model, num_kv_heads):
    """The same model with the key and value rows of each group of heads averaged."""
    attention, new = model.attention, copy.deepcopy(model)
    d_head, group = D_MODEL // 4, 4 // num_kv_heads
    new.attention = GroupedQueryAttention(D_MODEL, 4, num_kv_heads)
    with torch.no_grad():
        for name in ("W_q", "W_k", "W_v", "W_o"):
            old, copied = getattr(attention, name), getattr(new.attention, name)
            weight, bias = old.weight, old.bias
            if name in ("W_k", "W_v"):
                weight = weight.unflatten(0, (num_kv_heads, group, d_head)).mean(1).flatten(0, 1)
                bias = bias.unflatten(0, (num_kv_heads, group, d_head)).mean(1).flatten()
            copied.weight.copy_(weight)
            copied.bias.copy_(bias)
    return new


def renewed(model, num_kv_heads):
    """The same trained model with new random key and value matrices: the control."""
    new = pooled(model, num_kv_heads)
    random = GroupedQueryAttention(D_MODEL, 4, num_kv_heads)
    new.attention.W_k, new.attention.W_v = random.W_k, random.W_v
    return new


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers may differ a little on other machines, so this output is not compared.
shares = {name: [] for name in ("4 kv heads, trained", "pooled to 2", "  30 steps later", "pooled to 1",
          "  30 more steps later", "1 kv head, new, 30 steps", "1 kv head, new, 300 steps",
          "2 new kv heads in the trained, 30", "1 new kv head in the trained, 30")}  # fmt: skip
for seed in progress(5, "five runs of pooling"):
    trained = train_finder(new_finder(4, seed), 300, seed)
    two, one = pooled(trained, 2), pooled(trained, 1)
    results = [found_partners(trained), found_partners(two)]
    results += [found_partners(train_finder(two, 30, 50 + seed)), found_partners(one)]
    results += [found_partners(train_finder(one, 30, 50 + seed))]
    results += [found_partners(train_finder(new_finder(1, seed), n, 50 + seed)) for n in (30, 300)]
    for num_kv_heads in (2, 1):  # all else stays trained: only the keys and values are new
        results.append(found_partners(train_finder(renewed(trained, num_kv_heads), 30, 50 + seed)))
    for name, result in zip(shares, results, strict=True):
        shares[name].append(result)
for name, results in shares.items():
    print(f"{name:34s} right: {min(results):.2f} to {max(results):.2f}")
full, two, two_later, one, one_later, new, new_long, renewed_2, renewed_1 = map(np.array, shares.values())
assert full.min() > 0.98 and new_long.min() > 0.95, differs
assert two.min() > 0.5 and two.max() < 0.97 and one.max() < 0.6 and (one < two).all(), differs
assert two_later.min() > 0.95 and one_later.min() > 0.9 and new.max() < 0.3, differs
assert max(renewed_2.max(), renewed_1.max()) < 0.5, differs

# %% [markdown]
# Pooling hurts, the more the fewer heads stay; and 30 steps mend it, which teach a new model next to
# nothing. But most of that model is trained already: could it be the rest that is mended so quickly? The last two
# lines are the control: the same trained model with *new* keys and values learns next to nothing in 30 steps. So
# the averaged matrices were a good start, though a bad end. And one control more: trained from the start with one key-value head, the model is as good as with four. On
# this task. Ainslie and others found multi-query a little worse than multi-head, and grouped queries
# in between and near the full layer.

# %% [markdown]
# ## 6. A cache for keys and values
#
# A causal model writes one word at a time. For the next word it needs the query of the **last** word
# only, but the keys and values of **all** words. Those of earlier words do not change: no word sees
# a later one (lesson 6), and with rotary a key depends on its own position only. So they are
# computed once and kept. That store is the **key-value cache**. Queries of the past are never asked
# again, which is why nobody keeps them.

# %% [markdown]
# ### Exercise 6: `KVCache`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# - `KVCache()` is empty.
# - `append(k, v)`: torch `k (..., n_new, d_k)` and `v (..., n_new, d_v)` of the next word or words.
#   Returns `(K, V)`: everything so far, these included, oldest first, joined along the axis of the
#   words, the last but one.
# - Two caches know nothing of each other.
# - Checked when graded: any number of leading axes and any `n_new >= 1`, another one at each call;
#   `d_v` other than `d_k`; decoding step by step gives what decoding at once gives; `k`, `v` and what
#   was returned before stay as they are; the precision is kept. No errors are graded.


# %% answer="KVCache"
class KVCache:
    """Keys and values of all words so far."""

    def __init__(self):
        ### BEGIN SOLUTION
        self.K = self.V = None
        ### END SOLUTION

    def append(self, k, v):
        """Keep the keys and values of the next words.

        Args:
            k: (..., n_new, d_k), torch.
            v: (..., n_new, d_v), torch.

        Returns:
            K (..., n, d_k) and V (..., n, d_v): all n words so far, oldest first.
        """
        ### BEGIN SOLUTION
        self.K = k if self.K is None else torch.cat([self.K, k], dim=-2)
        self.V = v if self.V is None else torch.cat([self.V, v], dim=-2)
        return self.K, self.V
        ### END SOLUTION


# %% check="KVCache" points=2
# Keys of two features, values of one; then two texts with three heads.
@probe
def appended(pieces):
    cache = KVCache()
    return [cache.append(k.clone(), v.clone()) for k, v in pieces]


@probe
def two_caches(pieces, others):
    one, other = KVCache(), KVCache()
    both = [
        (one.append(p[0].clone(), p[1].clone()), other.append(o[0].clone(), o[1].clone()))
        for p, o in zip(pieces, others)
    ]
    return [result for result, _ in both], [result for _, result in both]


def pair(found):
    """The two results of append."""
    two = isinstance(found, (tuple, list)) and len(found) == 2
    assert_equal(two, True, "append should return a pair, (K, V).", name="'it is a pair'")
    return found


with check("three words, one by one", points=1):
    pieces = [(torch.tensor([[1.0 * t, 0.5]]), torch.tensor([[10.0 * t]])) for t in (1, 2, 3)]
    K, V = pair(appended(pieces)[-1])
    assert_close(
        K,
        torch.tensor([[1.0, 0.5], [2, 0.5], [3, 0.5]]),
        "Three calls with one word each: K should have three rows, those of k, the oldest first. "
        "append returns (K, V).",
        name="K",
    )
    message = (
        "Three calls with one word each: V should have three rows, those of v, the oldest first."
    )
    assert_close(V, torch.tensor([[10.0], [20], [30]]), message, name="V")
rng = check_rng()
pieces = [
    tuple(torch.tensor(rng.normal(size=(2, 3, n, d))).float() for d in (5, 6)) for n in (4, 1, 3)
]
with check("two texts: four words at once, then one, then three", points=0.5):
    for number, both, _ in zip(range(3), appended(pieces), pieces, strict=True):
        K, V = pair(both)
        for found, which, what in ((K, 0, "K"), (V, 1, "V")):
            expected = torch.cat([piece[which] for piece in pieces[: number + 1]], dim=-2)
            message = (
                f"Two texts, three heads, a new cache, call {number + 1}: everything so far should "
                "be returned, what was just appended included, joined along the last axis but one."
            )
            assert_close(found, expected, message, name=what, against="in what was appended")
with check("two caches, each as a cache alone", points=0.5):
    others = [(k + 1, v - 1) for k, v in pieces]
    for kept, given in zip(two_caches(pieces, others), (pieces, others), strict=True):
        expected = torch.as_tensor(pair(appended(given)[-1])[0])
        message = "One cache, three calls with four, one and three words: K should have eight rows."
        assert_equal(list(expected.shape), [2, 3, 8, 5], message, name="the shape of K")
        message = "One cache, three calls: K should not hold one number only, nor NaN."
        assert_equal(bool(expected.std() > 1e-3), True, message, name="'numbers that differ'")
        message = (
            "Two caches that are filled in turn, in three calls each: K should be what a cache "
            "that is filled alone returns, with its own words only."
        )
        assert_close(kept[-1][0], expected, message, name="K", against="in a cache filled alone")
checks_passed("KVCache")


# %% check="KVCache_pieces" points=2
# Hidden checks of KVCache: any number of leading axes, pieces of any length, many calls.
### BEGIN HIDDEN TESTS
@probe
def appended(pieces):
    cache = KVCache()
    return [cache.append(k, v) for k, v in pieces][-1]


def pair(found):
    """The two results of append."""
    two = isinstance(found, (tuple, list)) and len(found) == 2
    assert_equal(two, True, "append should return a pair, (K, V).", name="'it is a pair'")
    return found


def random_pieces(rng, lead, lengths):
    return [tuple(torch.tensor(rng.normal(size=(*lead, n, d))) for d in (4, 6)) for n in lengths]


rng = check_rng()
later = rng.spawn(1)[0]
with check("each text as if it were alone", points=1):
    cases = (((3,), (2, 1)), ((1, 4), (1, 1, 3)), ((2, 3), (3, 3)), ((2, 1, 3), (2, 5)))
    for lead, lengths in (*cases, ((1, 1), (2, 1))):
        pieces = random_pieces(later if lead == (1, 1) else rng, lead, lengths)
        for number, found in zip((0, 1), pair(appended(pieces)), strict=True):
            message = (
                f"Leading axes {lead}, pieces of {lengths} words: each text should have the rows "
                "that a cache for it alone returns, and leading axes of length 1 stay."
            )
            texts = [
                [(k.reshape(-1, *k.shape[-2:])[i], v.reshape(-1, *v.shape[-2:])[i]) for k, v in pieces]
                for i in range(math.prod(lead))
            ]
            alone = torch.stack([torch.as_tensor(appended(text)[number]) for text in texts]).double()
            rows = f"One text alone, pieces of {lengths} words: a row for each word."
            assert_equal(alone.shape[1], sum(lengths), rows, name="the rows")
            constant = "One text alone: what is returned should not be one number only, nor NaN."
            assert_equal(bool(alone.std() > 1e-3), True, constant, name="'numbers that differ'")
            expected = alone.reshape(*lead, *alone.shape[1:])
            own = "for each text alone"
            assert_close(found, expected, message, name="KV"[number], against=own)


def last(pieces, what):
    """What append returns for the last of these pieces; none of them should be an error."""
    error = "none"
    try:
        found = appended(pieces)
    except NotImplementedError:
        raise
    except Exception as raised:
        error = type(raised).__name__
    message = (
        f"A new cache, k of shape (3, n, 4), v of shape (3, n, 6), {what}: any number of words may "
        "come at each call, and no call should raise an error."
    )
    assert_equal(error, "none", message, name="the error")
    return found


with check("in pieces as one by one", points=1):
    for lengths in ((5, 2), (2, 1, 4), (1, 30), (1,) * 20, (1100,), (1, 2, 300)):
        pieces = random_pieces(rng, (3,), lengths)
        whole = [torch.cat([piece[i] for piece in pieces], dim=-2) for i in (0, 1)]
        message = (
            f"Pieces of {lengths if len(lengths) < 10 else '1, 1, 1, ... (20 times)'} words: the "
            "cache should return what it returns for these words one by one, with none missing."
        )
        one_by_one = list(zip(whole[0].split(1, -2), whole[1].split(1, -2), strict=True))
        each = pair(last(one_by_one, f"{sum(lengths)} calls with n = 1"))
        for number in (0, 1):
            expected = torch.as_tensor(each[number]).double()
            constant = "Words one by one: what is returned should not be one number only, nor NaN."
            assert_equal(bool(expected.std() > 1e-3), True, constant, name="'numbers that differ'")
            asked = list(whole[number].shape)
            shape = (
                f"{asked[-2]} words one by one, keys of {whole[0].shape[-1]} features and values of "
                f"{whole[1].shape[-1]}: what is returned has a row for each word. Here "
                f"{'KV'[number]} should have the shape {asked}."
            )
            assert_equal(
                list(expected.shape),
                asked,
                shape,
                name=f"the shape of {'KV'[number]}",
                against="of what was appended",
            )
        calls = f"calls with n = {', '.join(map(str, lengths))}, in this order"
        if len(lengths) == 1:
            calls = f"one call with n = {lengths[0]}"
        for number, found in zip((0, 1), pair(last(pieces, calls)), strict=True):
            expected = torch.as_tensor(each[number]).double()
            own = "for these words one by one"
            assert_close(found, expected, message, name="KV"[number], against=own)
checks_passed("KVCache")
### END HIDDEN TESTS


# %% check="KVCache_decoding" points=2
# Hidden checks of KVCache: attention on the cache, step by step and in chunks, is attention at once.
### BEGIN HIDDEN TESTS
@probe
def attend_in_pieces(Q, K, V, lengths):
    K, V = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (K, V))  # as from split_heads
    cache, outputs, start = KVCache(), [], 0
    for n in lengths:
        new = slice(start, start + n)
        keys, values = cache.append(K[..., new, :], V[..., new, :])
        start += n
        seen = torch.ones(start, start, dtype=torch.bool).tril()[start - n :]
        outputs.append(F.scaled_dot_product_attention(Q[..., new, :], keys, values, attn_mask=seen))
    return torch.cat(outputs, dim=-2)


@probe
def appended(pieces):
    cache = KVCache()
    return [cache.append(k=k, v=v) for k, v in pieces][-1]


rng = check_rng()
for lengths in ((1,) * 7, (4, 1, 1, 1), (3, 4), (7,)):
    Q, K, V = (torch.tensor(rng.normal(size=(2, 3, 7, d))) for d in (4, 4, 6))
    expected = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
    assert_close(
        attend_in_pieces(Q, K, V, lengths),
        expected,
        f"Seven words in pieces of {lengths}, float64: causal attention on what the cache returns "
        "should be what causal attention on the whole text is.",
        name="the outputs",
        rtol=1e-9,
        atol=1e-11,
    )
single, double = torch.float32, torch.float64
for lead, d_k, d_v, lengths, kinds in (
    ((), 2, 2, (1, 1), (single, single)),
    ((2,), 70, 1, (33, 2), (double, double)),
    ((4,), 1, 130, (4, 4), (single, double)),
    ((1, 2, 1), 3, 3, (3, 1, 2), (double, single)),
    ((3,), 33, 17, (65, 1, 70), (single, single)),
    ((5, 5), 5, 5, (5,), (double, double)),
):
    pieces = [
        tuple(
            torch.tensor(rng.normal(size=(*lead, n, d))).to(kind)
            for d, kind in zip((d_k, d_v), kinds, strict=True)
        )
        for n in lengths
    ]
    found = appended(pieces)
    two = isinstance(found, (tuple, list)) and len(found) == 2
    assert_equal(two, True, "append should return a pair, (K, V).", name="'it is a pair'")
    for number in (0, 1):
        message = (
            f"k of shape {(*lead, 'n', d_k)} in {str(kinds[0])[6:]}, v of shape "
            f"{(*lead, 'n', d_v)} in {str(kinds[1])[6:]}, given by name, {len(lengths)} calls with "
            f"n = {', '.join(map(str, lengths))}: the last should return all of them, oldest first."
        )
        expected = torch.cat([piece[number] for piece in pieces], dim=-2)
        assert_close(found[number], expected, message, name="KV"[number])
### END HIDDEN TESTS


# %% check="KVCache_independent" points=1
# Hidden checks of KVCache: several caches, also one that is made when another is full.
### BEGIN HIDDEN TESTS
@probe
def filled(first, late):
    one = KVCache()
    one.append(*first[0])
    other = KVCache()
    other_result = [other.append(*piece) for piece in late][-1]
    return [one.append(*piece) for piece in first[1:]][-1], other_result


@probe
def alone(pieces):
    cache = KVCache()
    return [cache.append(*piece) for piece in pieces][-1]


rng = check_rng()
pieces = [tuple(torch.tensor(rng.normal(size=(3, n, d))) for d in (4, 6)) for n in (2, 1, 3, 1)]
with check("a cache that is made later, each as a cache alone", points=1):
    first, late = [pieces[0], pieces[1]], [pieces[2], pieces[3]]
    both, by_themselves = filled(first, late), [alone(first), alone(late)]
    for found in (*both, *by_themselves):
        two = isinstance(found, (tuple, list)) and len(found) == 2
        assert_equal(two, True, "append should return a pair, (K, V).", name="'it is a pair'")
    for found, expected, words in zip(both, by_themselves, (3, 4), strict=True):
        message = f"One cache, two calls, {words} words: K should have {words} rows."
        rows = list(np.shape(expected[0]))[-2:-1]
        assert_equal(rows == [words], True, message, name="'that many rows'")
        message = "One cache, two calls: K should not hold one number only, nor NaN."
        differ = bool(torch.as_tensor(expected[0]).std() > 1e-3)
        assert_equal(differ, True, message, name="'numbers that differ'")
        message = (
            "One cache is filled, another is made and filled, then the first goes on: each should "
            "return what a cache that is filled alone returns."
        )
        for one, other, what in zip(found, expected, "KV", strict=True):
            alone_in = torch.as_tensor(other).double()
            assert_close(one, alone_in, message, name=what, against="in a cache filled alone")
checks_passed("KVCache")
### END HIDDEN TESTS


# %% check="KVCache_kept" points=1
# Hidden checks of KVCache: arguments and earlier results stay as they are; precision.
### SIDE CONDITION: counts once another check of KVCache passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(pieces):
    cache = KVCache()
    first = cache.append(*pieces[0])
    before = [x.clone() for x in first]
    for piece in pieces[1:]:
        last = cache.append(*piece)
    return [x.clone() for x in first], before, pieces, [str(x.dtype) for x in last]


rng = check_rng()
for kind_k, kind_v in (
    (torch.float32, torch.float32),
    (torch.float64, torch.float64),
    (torch.float32, torch.float64),
):
    pieces = [
        tuple(
            torch.tensor(rng.normal(size=(3, n, d))).to(kind)
            for d, kind in ((4, kind_k), (6, kind_v))
        )
        for n in (2, 1, 3)
    ]
    copies = [(k.clone(), v.clone()) for k, v in pieces]
    first, before, pieces_after, kinds = afterwards(copies)
    message = "What append returned at the first call should stay as it is at later calls."
    for now, then in zip(first, before, strict=True):
        assert_equal(now, then, message, name="an earlier result", against="at the first call")
    for now, then in zip(pieces_after, pieces, strict=True):
        for one, other in zip(now, then, strict=True):
            message = "k and v should be as before after the calls of append."
            assert_equal(one, other, message, name="an argument", against="before the calls")
    message = f"k of {kind_k}, v of {kind_v}: K should have the dtype of k, and V that of v."
    assert_equal(kinds, [str(kind_k), str(kind_v)], message, name="the dtypes")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two attributes, made in `__init__` (not on the class: that would be one store for all caches), and
# `torch.cat` along the last axis but one. The first call has nothing to join to.
#
# </details>

# %% [markdown]
# ### The second equivalence: with a cache, in pieces, at once
#
# Here is a small model from your own parts, two pre-norm blocks, with random weights: **equality
# does not need training**. `step` reads the next words, any number of them. Given the whole text, it
# is the whole pass. Two of its lines make that right, and nothing else in it knows of the cache: find
# them before you run it.


# %% tags=["demonstration"]
class Writer(nn.Module):
    """A causal model with RMS norm, rotary grouped queries, SwiGLU and a cache for each block."""

    def __init__(self, vocabulary=30, d_model=32, num_heads=4, num_kv_heads=2, blocks=2):
        super().__init__()
        self.words = nn.Embedding(vocabulary, d_model)
        self.attentions = nn.ModuleList(
            GroupedQueryAttention(d_model, num_heads, num_kv_heads) for _ in range(blocks)
        )
        self.feed_forwards = nn.ModuleList(SwiGLU(d_model, 3 * d_model) for _ in range(blocks))
        self.norms = nn.ModuleList(RMSNorm(d_model) for _ in range(2 * blocks + 1))
        self.read = nn.Linear(d_model, vocabulary, bias=False)
        self.heads = num_heads, num_kv_heads

    def attend(self, layer, x, cache, first):
        """One attention: x (..., n_new, d_model), whose first word has the position `first`."""
        n, (h, h_kv) = first + x.shape[-2], self.heads
        positions = torch.arange(first, n)  # the new words stand behind those in the cache
        Q = apply_rotary(split_heads(layer.W_q(x), h), positions)
        K = apply_rotary(split_heads(layer.W_k(x), h_kv), positions)
        K, V = cache.append(K, split_heads(layer.W_v(x), h_kv))
        K, V = (kept.repeat_interleave(h // h_kv, dim=-3) for kept in (K, V))
        mask = torch.tensor(causal_mask(n)[first:])  # the last rows: (n_new, n)
        return layer.W_o(combine_heads(torch_scaled_dot_product_attention(Q, K, V, mask)[0]))

    def step(self, tokens, caches, first):
        """The next words' logits: tokens (..., n_new), after `first` words in the caches."""
        x, norms = self.words(tokens), iter(self.norms)
        for layer, feed_forward, cache in zip(self.attentions, self.feed_forwards, caches):
            x = x + self.attend(layer, next(norms)(x), cache, first)
            x = x + feed_forward(next(norms)(x))
        return self.read(next(norms)(x))

    def whole(self, tokens):
        return self.step(tokens, [KVCache() for _ in self.attentions], 0)


torch.manual_seed(0)
writer = Writer().double()
text = torch.randint(30, (2, 24), generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    whole = writer.whole(text)
    for pieces in ([1] * 24, [10, 1, 1, 1, 1, 10], [7, 9, 8], [23, 1]):
        caches, logits, first = [KVCache() for _ in range(2)], [], 0
        for n in pieces:
            logits.append(writer.step(text[:, first : first + n], caches, first))
            first += n
        gap = (torch.cat(logits, dim=-2) - whole).abs().max().item()
        print(f"in {len(pieces):2d} pieces, the whole pass to 1e-10: {gap < 1e-10}")
        assert gap < 1e-10

# %% [markdown]
# ### What it saves, counted
#
# Seconds depend on the machine; multiply-adds do not. torch has a counter for those of matrix
# products. We write 8, 32 and 128 words, each the most likely next one, after a prompt of 16: once
# by reading the whole text again for each word, once with the cache.
#
# **Predict, then run.** How many times fewer multiply-adds at 8 words? At 128?

# %% tags=["demonstration"]
def write(model, prompt, count, with_cache):
    """The next `count` words after prompt (n,), the multiply-adds, and the numbers kept."""
    tokens, caches = prompt[None], [KVCache() for _ in model.attentions]
    kept = []
    for cache in caches:  # remember what the cache returned last
        cache.append = lambda k, v, inner=cache.append: kept.append(inner(k, v)) or kept[-1]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        logits = model.step(tokens, caches, 0) if with_cache else model.whole(tokens)
        for _ in range(count - 1):
            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=-1)
            if with_cache:
                logits = model.step(tokens[:, -1:], caches, tokens.shape[-1] - 1)
            else:
                logits = model.whole(tokens)
    tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=-1)
    numbers = sum(x.numel() for pair in kept[-len(caches) :] for x in pair)
    return tokens[0, len(prompt) :].tolist(), counter.get_total_flops() // 2, numbers


saved = {}
for count in (8, 32, 128):
    slow, slow_cost, _ = write(writer, text[0, :16], count, with_cache=False)
    fast, fast_cost, numbers = write(writer, text[0, :16], count, with_cache=True)
    saved[count] = slow_cost / fast_cost
    print(f"{count:3d} words: multiply-adds {slow_cost:10,d} without, {fast_cost:9,d} with: "
          f"{saved[count]:5.1f} times fewer; numbers kept {numbers:6,d}; same words: {slow == fast}")  # fmt: skip
    assert slow == fast and numbers == 2 * 2 * 2 * 8 * (16 + count - 1)
assert saved[8] < 10 and saved[128] > 30

# %% [markdown]
# The same words, and the saving grows with the length: without a cache every word costs a whole
# text. It is paid for in memory. For each word the cache keeps
#
# $$2 \cdot \text{layers} \cdot \text{key-value heads} \cdot d_{head} \quad \text{numbers.}$$
#
# Note what is *not* in it: the number of query heads. All of it is read for each new word. With many
# texts at once, or long ones, that is what makes generation slow on large machines: not arithmetic,
# but fetching keys and values from memory (Shazeer, 2019); the weights are fetched once for all texts.
# That is the reason for section 5.
#
# ### Short answer 3: `answer_cache`
#
# Llama 3 with 8 billion parameters has 32 layers, $d_{model} = 4096$, 32 heads and 8 key-value
# heads (Grattafiori and others, 2024). A number takes 2 bytes. How large is its cache for one text
# of 8,192 words (tokens)?
#
# - a) 4 GiB
# - b) 1 GiB
# - c) 0.5 GiB
# - d) 32 MiB

# %% answer="answer_cache"
### BEGIN SOLUTION
answer_cache = "b"
### END SOLUTION

# %% check="answer_cache" points=1
check_answer("answer_cache", answer_cache)

# %% tags=["demonstration"]
d_head = 4096 // 32
for kv_heads, name in ((32, "one for each head"), (8, "grouped, as published"), (1, "multi-query")):
    a_word = 2 * 32 * kv_heads * d_head * 2  # keys and values, layers, heads, features, bytes
    print(f"{name:22s} {a_word / 2**10:5.0f} KiB a word, {a_word * 8192 / 2**30:6.3f} GiB for 8,192 words")
assert 2 * 32 * 8 * d_head * 2 * 8192 == 2**30

# %% [markdown]
# ### Find the silent bug
#
# A friend adds a cache to an attention with rotary positions. Four lines are marked. One of them is
# wrong. The friend has tested it on many prompts, and every output was right to the last digit. Then
# the model wrote, and wrote nonsense.


# %% locked="given_friends_step"
def friends_step(layer, num_heads, x, cache):
    """The next words x (n_new, d_model) through one attention, with a cache."""
    n_new = x.shape[-2]
    positions = torch.arange(n_new)  # line a: where the words stand
    Q = apply_rotary(split_heads(layer.W_q(x), num_heads), positions)
    K = apply_rotary(split_heads(layer.W_k(x), num_heads), positions)  # line b: turned, then kept
    V = split_heads(layer.W_v(x), num_heads)  # line c: values are not turned
    K, V = cache.append(K, V)
    n = K.shape[-2]
    mask = torch.tensor(causal_mask(n)[n - n_new :])  # line d: the last rows of the mask
    return layer.W_o(combine_heads(torch_scaled_dot_product_attention(Q, K, V, mask)[0]))


# %% [markdown]
# ### Short answer 4: `answer_silent_bug`
#
# Which line is it?
#
# - a) line a: the positions
# - b) line b: keys should be kept as they are, and turned when they are used
# - c) line c: values need their position, too
# - d) line d: one new word needs no mask, and several need the whole one

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "a"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# <details><summary>Hint</summary>
#
# What differs between the first call, which reads the prompt, and the second, which reads one word?
# Work out each marked line for both calls by hand, with a prompt of three words.
#
# </details>
#
# When you have answered, run the cell. It gives 9 words to the friend's layer: at once, and as a
# prompt of 6 with 3 single words behind it.

# %% tags=["demonstration"]
torch.manual_seed(2)
layer = MultiHeadAttention(32, 4).double()
words = torch.randn(9, 32, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
with torch.no_grad():
    at_once = friends_step(layer, 4, words, KVCache())
    cache = KVCache()
    pieces = [friends_step(layer, 4, piece, cache) for piece in words.split([6, 1, 1, 1])]
errors = (torch.cat(pieces) - at_once).abs().amax(-1)
print("error below 1e-10, word by word:", *(error.item() < 1e-10 for error in errors))
assert (errors[:6] < 1e-10).all() and (errors[6:] > 1e-3).all()

# %% [markdown]
# The prompt is right; from the first word that is read alone, everything is wrong. Each single word
# believes that it stands at position 0. Shapes fit, the loss in training is right (training reads
# whole texts), a test on prompts is right. The test that finds it is the one of section 6: **in
# pieces = at once**. Keeping turned keys (line b) is what most models do: a word's position never
# changes, so it is turned once.

# %% [markdown]
# ## 7. Softmax in blocks
#
# In lesson 3 the scores of $n$ words took $n^2$ numbers. Are they needed all at once? The softmax
# seems to say so: it divides by a sum over all keys. But a sum can be collected. Go through the keys
# **block by block** and keep three things for each query: the largest score so far $m$, the sum so
# far $s$, and the weighted sum of values so far $a$. When a block brings a larger score, what was
# collected is too large by a known factor, $e^{m_{old} - m_{new}}$: multiply it by that, and go on.
# This is the **online softmax** (Milakov and Gimelshein, 2018), and with it FlashAttention (Dao and
# others, 2022) computes **exact** attention.
#
# By hand: one query, the scores 0, ln 3 | ln 9, 0 in two blocks of two, the values 8, 4 | 2, 16.
#
# | after | largest $m$ | sum $s$ | $a$ | $a / s$ |
# |---|---|---|---|---|
# | block 1 | ln 3 | 1/3 + 1 = 4/3 | 8/3 + 4 = 20/3 | 5 |
# | the factor for block 2 is $e^{\ln 3 - \ln 9}$ = 1/3 | ln 9 | 4/9 | 20/9 | 5 |
# | block 2 | ln 9 | 4/9 + 1 + 1/9 = 14/9 | 20/9 + 2 + 16/9 = 54/9 | 54/14 = 3.857 |
#
# Softmax at once: the weights are as 1 : 3 : 9 : 1, so (8 + 12 + 18 + 16) / 14 = 54/14. The same.

# %% [markdown]
# ### Exercise 7: `blockwise_attention`
#
# Difficulty: ●●●●○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 30 minutes on it.
#
# - `blockwise_attention(Q, K, V, block_size)`: torch, `Q (..., n_q, d_k)`, `K (..., n_k, d_k)`,
#   `V (..., n_k, d_v)`. Returns the output `(..., n_q, d_v)` **alone**: the weights never exist.
# - It is lesson 3's scaled dot-product attention, exactly; no mask.
# - `block_size` need not divide `n_k`: the last block is then shorter. It may exceed `n_k`.
# - Large scores are no trouble, neither in the first block nor in a later one.
# - Checked when graded: leading axes broadcast; float64 is computed in float64; one pass, so each
#   score is computed once; never more than a few times `n_q * (block_size + d_v)` numbers in memory
#   besides the inputs, for each text, also where several texts share their keys by broadcasting;
#   arguments unchanged. No errors are graded.
#
# Write it from matrix products, `exp` and maxima; torch's own attention function is not allowed here.


# %% answer="blockwise_attention"
def blockwise_attention(Q, K, V, block_size):
    """Scaled dot-product attention, exact, in one pass over blocks of keys.

    Args:
        Q: (..., n_q, d_k).
        K: (..., n_k, d_k).
        V: (..., n_k, d_v).
        block_size: how many keys are looked at together.

    Returns:
        The output (..., n_q, d_v).
    """
    ### BEGIN SOLUTION
    Q = Q / math.sqrt(Q.shape[-1])
    largest = torch.full_like(Q[..., :1], -math.inf)  # (..., n_q, 1): of the scores so far
    total, collected = 0.0, 0.0
    for start in range(0, K.shape[-2], block_size):
        block = slice(start, start + block_size)
        scores = Q @ K[..., block, :].mT  # (..., n_q, block_size)
        new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        smaller = torch.exp(largest - new)  # what was collected is too large by 1 / this
        weights = torch.exp(scores - new)
        total = total * smaller + weights.sum(dim=-1, keepdim=True)  # (..., n_q, 1)
        collected = collected * smaller + weights @ V[..., block, :]  # (..., n_q, d_v)
        largest = new
    return collected / total
    ### END SOLUTION


# %% check="blockwise_attention" points=3
# The table above, then random numbers against torch's own function.
Q = torch.ones(1, 1)
K = torch.log(torch.tensor([[1.0], [3.0], [9.0], [1.0]]))
V = torch.tensor([[8.0], [4.0], [2.0], [16.0]])
with check("the table, in one block", points=0.25):
    found = blockwise_attention(Q.clone(), K.clone(), V.clone(), 4)
    message = "One query, four keys, block_size = 4: the output, returned alone, should be 54/14."
    assert_close(found, torch.tensor([[54 / 14]]), message, name="the output")
with check("the table, in two blocks", points=0.5):
    found = blockwise_attention(Q.clone(), K.clone(), V.clone(), 2)
    message = (
        "One query, two blocks of two keys: the output should be 54/14. Check first: is what the "
        "first block gave (sum 4/3, values 20/3) made smaller by exp(ln 3 - ln 9) = 1/3 when the "
        "second brings a larger score?"
    )
    assert_close(found, torch.tensor([[54 / 14]]), message, name="the output")
rng = check_rng()
Q, K, V = (torch.tensor(rng.normal(size=s)).float() for s in ((4, 6), (10, 6), (10, 3)))
expected = F.scaled_dot_product_attention(Q[None], K[None], V[None])[0]
with check("blocks that fill the keys", points=0.5):
    for block_size in (10, 5, 1):
        found = blockwise_attention(Q.clone(), K.clone(), V.clone(), block_size)
        message = (
            f"Four queries, ten keys of six features, block_size = {block_size}: the output should "
            "be that of lesson 3, with scores that are divided by the square root of 6. Check "
            "first: has each query a largest score, a sum and collected values of its own?"
        )
        assert_close(found, expected, message, name="the output")
with check("blocks that do not fill the keys", points=0.25):
    for block_size in (3, 4, 7, 25):
        found = blockwise_attention(Q.clone(), K.clone(), V.clone(), block_size)
        message = (
            f"Four queries, ten keys, block_size = {block_size}: the last block is shorter. The "
            "output should be that of lesson 3, with no key lost or counted twice."
        )
        assert_close(found, expected, message, name="the output")
# In float64: in float32 a score of several hundred has four decimals, and right answers differ.
Q, K, V = Q.double(), K.double(), V.double()
with check("float64, all scores far below 0", points=0.5):
    low = K - 2000 * Q[:1].sign()
    expected = F.scaled_dot_product_attention(Q[None, :1], low[None], V[None])[0]
    found = blockwise_attention(Q[:1].clone(), low.clone(), V.clone(), 4)
    message = (
        "One query, ten keys, block_size = 4, float64: all scores are several thousand below 0. "
        "The output should be that of lesson 3. Check first: with which number does the largest "
        "score so far begin?"
    )
    assert_close(found, expected, message, rtol=1e-6, atol=1e-8, name="the output")
ramp = 200 * torch.arange(10)[:, None] * Q[:1].sign()
message = (
    "One query, ten keys, block_size = 2, float64, scores of several thousand, the largest in the "
    "{} block: the output should be that of lesson 3. exp of such a number is too large, for "
    "float64 too. Check first: is the largest score so far subtracted first, and what earlier "
    "blocks gave corrected?"
)
with check("float64, large scores, the largest in the first block", points=0.5):
    expected = F.scaled_dot_product_attention(Q[None, :1], (K + ramp.flip(0))[None], V[None])[0]
    found = blockwise_attention(Q[:1].clone(), K + ramp.flip(0), V.clone(), 2)
    sentence = message.format("first")
    assert_close(found, expected, sentence, rtol=1e-6, atol=1e-8, name="the output")
with check("float64, large scores, the largest in the last block", points=0.5):
    expected = F.scaled_dot_product_attention(Q[None, :1], (K + ramp)[None], V[None])[0]
    found = blockwise_attention(Q[:1].clone(), K + ramp, V.clone(), 2)
    sentence = message.format("last")
    assert_close(found, expected, sentence, rtol=1e-6, atol=1e-8, name="the output")
checks_passed("blockwise_attention")


# %% check="blockwise_attention_values" points=4
# Hidden checks of blockwise_attention: sizes and block sizes, float64; scores of 1e4.
### BEGIN HIDDEN TESTS
@probe
def with_gradients(Q, K, V, block_size):
    """As a layer that learns calls it: outside torch.no_grad(), block_size by name."""
    Q, K, V = (x.clone().requires_grad_() for x in (Q, K, V))
    found = blockwise_attention(Q, K, V, block_size=block_size)
    return found.detach() if isinstance(found, torch.Tensor) else found


@probe
def without_gradients(Q, K, V, block_size):
    with torch.no_grad():
        return blockwise_attention(Q, K, V, block_size)


rng = check_rng()
later = rng.spawn(1)[0]
with check("one block for all keys", points=1):
    for n_q, n_k, d_k, d_v, size in ((3, 5, 4, 2, 5), (4, 1, 6, 3, 1), (2, 7, 3, 5, 100)):
        Q, K, V = (torch.tensor(rng.normal(size=s)) for s in ((n_q, d_k), (n_k, d_k), (n_k, d_v)))
        expected = F.scaled_dot_product_attention(Q[None], K[None], V[None])[0]
        message = (
            f"{n_q} queries, {n_k} keys of {d_k} features, block_size = {size}, float64: all keys "
            "are in one block. The output should be that of lesson 3."
        )
        assert_close(blockwise_attention(Q, K, V, size), expected, message)
with check("blocks of many sizes; leading axes, float32 and float64", points=1):
    cases = ((3, 6, 4, 2, 2), (1, 8, 5, 3, 1), (5, 9, 4, 7, 4), (4, 64, 3, 2, 7))
    more = ((5, 5, 5, 5, 2), (1, 1100, 4, 1, 1))
    for n_q, n_k, d_k, d_v, size in cases + more:
        draw = rng if n_k not in (5, 1100) else later
        Q, K, V = (torch.tensor(draw.normal(size=s)) for s in ((n_q, d_k), (n_k, d_k), (n_k, d_v)))
        expected = F.scaled_dot_product_attention(Q[None], K[None], V[None])[0]
        message = (
            f"{n_q} queries, {n_k} keys of {d_k} features, block_size = {size}, float64: several "
            "blocks. The output should be that of lesson 3."
        )
        found = blockwise_attention(Q, K, V, size)
        assert_close(found, expected, message)
        message += " It should be computed in float64 throughout: it is compared to ten digits."
        near = {"rtol": 1e-10, "atol": 1e-12, "precise": True}
        assert_close(found, expected, message, **near)
    sizes = (  # leading axes, n_q, n_k, d_k, d_v, block_size, dtype, what numbers
        ((), 33, 33, 2, 1, 32, torch.float32, "random"),
        ((), 33, 33, 2, 1, 32, torch.float64, "random"),
        ((2,), 1, 65, 65, 3, 64, torch.float64, "random"),
        ((1, 2, 1), 3, 130, 130, 2, 64, torch.float64, "random"),
        ((3,), 130, 5, 2, 33, 2, torch.float32, "random"),
        ((4,), 4, 4, 4, 4, 4, torch.float64, "negative"),
        ((2, 3), 2, 6, 17, 5, 5, torch.float64, "zero"),
        ((2,), 3, 70, 1, 1, 65, torch.float64, "neighbours equal"),
    )
    for lead, n_q, n_k, d_k, d_v, size, dtype, what in sizes:
        shapes = ((*lead, n_q, d_k), (*lead, n_k, d_k), (*lead, n_k, d_v))
        Q, K, V = (torch.tensor(later.normal(size=s)).to(dtype) for s in shapes)
        if what == "negative":
            Q, K, V = (-x.abs() - 0.1 for x in (Q, K, V))
        elif what == "zero":
            Q = 0 * Q
        elif what == "neighbours equal":
            K = K[..., ::2, :].repeat_interleave(2, dim=-2)
        flat = (x.reshape(-1, *x.shape[-2:]) for x in (Q, K, V))
        expected = F.scaled_dot_product_attention(*flat).reshape(*lead, n_q, d_v)
        message = (
            f"Q, K, V of shapes {shapes[0]}, {shapes[1]}, {shapes[2]}, {str(dtype)[6:]}, "
            f"block_size = {size}: the output should be that of lesson 3"
        )
        found = with_gradients(Q, K, V, size)
        assert_close(found, expected, f"{message}, with block_size by name.")
        found = without_gradients(Q, K, V, size)
        assert_close(found, expected, f"{message}, under torch.no_grad().")
# The largest scores of two queries are thousands apart: each needs a maximum of its own.
Q = torch.tensor([[0.4], [0.6], [0.8], [1.0]]) * torch.tensor(1 + 0.2 * rng.random(size=(4, 3)))
noise, V = torch.tensor(rng.normal(size=(11, 3))), torch.tensor(rng.normal(size=(11, 2)))
ramp = torch.linspace(-6000, 6000, 11).double()[:, None]
message = (
    "Four queries, eleven keys, block_size = {}, float64, scores up to 10,000 in size, the largest "
    "in the {} block: the output should be that of lesson 3, with no overflow and nothing lost."
)
with check("scores of 10,000, the largest last", points=1):
    for size in (1, 3, 4, 20):
        expected = F.scaled_dot_product_attention(Q[None], (noise + ramp)[None], V[None])[0]
        found = blockwise_attention(Q, noise + ramp, V, size)
        assert_close(found, expected, message.format(size, "last"), rtol=1e-6, atol=1e-8)
with check("scores of 10,000, the largest first; all scores far below 0", points=1):
    K = noise - ramp
    K[5:7] = K[0] - torch.tensor([[0.2], [0.5]])  # nearly as large, in a later block
    for size in (1, 3, 4, 20):
        expected = F.scaled_dot_product_attention(Q[None], K[None], V[None])[0]
        found = blockwise_attention(Q, K, V, size)
        assert_close(found, expected, message.format(size, "first"), rtol=1e-6, atol=1e-8)
    ones, low = torch.ones(2, 4, dtype=torch.float64), torch.zeros(7, 4, dtype=torch.float64)
    low[:, 0] = torch.tensor([6.0, 0, 2, -4, 4, 2, 0]) - 2e10  # the scores are half of that
    V = torch.arange(14, dtype=torch.float64).reshape(7, 2)
    expected = torch.softmax(low[:, 0] / 2 + 1e10, -1) @ V
    for size in (1, 3, 7):
        found = blockwise_attention(ones, low, V, size)
        sentence = (
            f"Two queries, seven keys, block_size = {size}, float64, all scores 1e10 below 0, and "
            "a few units apart: the output should be that of lesson 3, no NaN. Check first: from "
            "what does the largest score so far start?"
        )
        assert_close(found, expected.expand(2, 2), sentence, rtol=1e-6, atol=1e-8)
checks_passed("blockwise_attention")
### END HIDDEN TESTS


# %% check="blockwise_attention_batches" points=2
# Hidden checks of blockwise_attention: leading axes, which broadcast; against each text by itself.
### BEGIN HIDDEN TESTS
@probe
def strided(Q, K, V):
    """The same numbers, in another order in memory."""
    Q, K, V = (x.transpose(-1, -2).contiguous().transpose(-1, -2) for x in (Q, K, V))
    try:
        return blockwise_attention(Q, K, V, 2)
    except RuntimeError as error:
        return type(error).__name__


@probe
def result_or_error(Q, K, V):
    try:
        return blockwise_attention(Q, K, V, 2), "nothing"
    except NotImplementedError:
        raise
    except Exception as error:
        return None, type(error).__name__


rng = check_rng()
for lead_q, lead_k, lead_v in (
    ((2,), (2,), (2,)),
    ((3, 4), (3, 4), (3, 4)),
    ((), (3,), (3,)),
    ((3,), (), ()),
    ((2, 1), (3,), (2, 3)),
    ((2, 3), (1, 3), (1,)),
    ((), (), (2,)),
    ((1, 1), (1, 1), (1, 1)),
):
    n_q = 1 if lead_q == (1, 1) else 4
    Q = torch.tensor(rng.normal(size=(*lead_q, n_q, 6)))
    K = torch.tensor(rng.normal(size=(*lead_k, 5, 6)))
    V = torch.tensor(rng.normal(size=(*lead_v, 5, 3)))
    lead = torch.broadcast_shapes(lead_q, lead_k, lead_v)
    message = (
        f"Leading axes {lead_q} of Q, {lead_k} of K and {lead_v} of V, n_q = {n_q}, block_size = "
        f"2: they broadcast to {tuple(lead)}."
    )
    found, raised = result_or_error(Q, K, V)
    stops = (
        f"{message} Q ends in ({n_q}, 6), K in (5, 6), V in (5, 3): blockwise_attention should not "
        "raise an error. Check first: are keys and values cut into blocks along the last axis but "
        "one?"
    )
    assert_equal(raised, "nothing", stops, name="the error")
    assert_equal(list(np.shape(found)), [*lead, n_q, 3], message, name="the shape")
    texts = [x.expand(*lead, *x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (Q, K, V)]
    alone = [blockwise_attention(q, k, v, 2) for q, k, v in zip(*texts, strict=True)]
    expected = torch.stack(alone).double().reshape(*lead, n_q, 3)
    constant = "The outputs of the texts, each alone, should not all be one number, nor NaN."
    assert_equal(bool(expected.std() > 1e-3), True, constant, name="'numbers that differ'")
    message = f"{message} Each text should come out as blockwise_attention gives it alone."
    assert_close(found, expected, message, against="for each text alone")
    message = (
        f"Leading axes {lead_q}, {lead_k}, {lead_v}, and Q, K and V with their numbers in another "
        "order in memory, as after a transpose: the output should be that of the same numbers side "
        "by side."
    )
    assert_close(strided(Q, K, V), found, message, against="with the numbers side by side")
### END HIDDEN TESTS


# %% check="blockwise_attention_memory" points=6
# Hidden checks of blockwise_attention: how many numbers are held at once, and what is computed.
### SIDE CONDITION: counts once another check of blockwise_attention passes.
### BEGIN HIDDEN TESTS
@probe
def watched(Q, K, V, block_size):
    held, given = {}, {x.untyped_storage().data_ptr() for x in (Q, K, V)}
    seen = {"most numbers": 0, "multiply-adds": 0, "torch's attention": 0}

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            name = str(function)
            seen["torch's attention"] += "scaled_dot_product" in name
            if name.startswith(("aten.mm", "aten.bmm")):
                seen["multiply-adds"] += result.numel() * args[0].shape[-1]
            for x in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() not in given:
                    storage = x.untyped_storage()
                    reference = torch.multiprocessing.reductions.StorageWeakRef(storage)
                    held[storage.data_ptr()] = reference, storage.nbytes() // x.element_size()
            for place in [p for p, (reference, _) in held.items() if reference.expired()]:
                del held[place]
            seen["most numbers"] = max(seen["most numbers"], sum(n for _, n in held.values()))
            return result

    with torch.no_grad(), Watch():
        blockwise_attention(Q, K, V, block_size)
    return seen


rng = check_rng()
n_q, n_k, d_k, d_v, block_size = 64, 512, 2, 1, 8
Q, K, V = (torch.tensor(rng.normal(size=s)).float() for s in ((n_q, d_k), (n_k, d_k), (n_k, d_v)))
seen = watched(Q, K, V, block_size)
with check("torch's own attention is not called", points=2.5):
    message = (
        "torch's own attention function should not be called, also not through a layer of torch: "
        "here you write the loop over blocks."
    )
    assert_equal(seen["torch's attention"], 0, message, name="calls of torch's attention")
with check("what is held at once", points=1.5):
    most = (n_q + n_k) * (d_k + d_v) + 16 * n_q * block_size
    message = (
        f"{n_q} queries, {n_k} keys, block_size = 8: at one time {seen['most numbers']:,} numbers are "
        f"held besides the inputs; asked are fewer than {most:,}. A few times n_q * block_size = "
        f"{n_q * block_size:,} should do; all scores are {n_q * n_k:,}. Check first: are blocks "
        "kept in a list, or computed all at once?"
    )
    assert_equal(seen["most numbers"] < most, True, message, name="few numbers")
with check("what is held where keys are shared", points=1):
    shapes = ((3, 5, 4, d_k), (3, 1, 1024, d_k), (3, 1, 1024, d_v))
    shared = watched(*(torch.tensor(rng.normal(size=s)).float() for s in shapes), block_size)
    most = (15 * 4 + 3 * 1024) * (d_k + d_v) + 16 * 15 * 4 * block_size
    message = (
        f"Q, K, V of shapes {shapes[0]}, {shapes[1]}, {shapes[2]}, block_size = 8: at one time "
        f"{shared['most numbers']:,} numbers are held besides the inputs; asked are fewer than "
        f"{most:,}. Five texts share their keys and values here. Check first: are these written "
        "out for each text, as by a reshape after expand?"
    )
    few = shared["most numbers"] < most
    assert_equal(few, True, message, name="few numbers where keys are shared")
with check("matrix products: not much more than one pass needs", points=1):
    once = n_q * n_k * (d_k + d_v)
    message = (
        f"Matrix products with {seen['multiply-adds']:,} multiply-adds; one pass needs {once:,}, "
        "and half as much again is allowed. Check first: is a score computed twice, in one pass or "
        "in two?"
    )
    assert_equal(seen["multiply-adds"] < 1.5 * once, True, message, name="one pass")
checks_passed("blockwise_attention")
### END HIDDEN TESTS


# %% check="blockwise_attention_inputs" points=1
# Hidden checks of blockwise_attention: arguments unchanged, precision kept.
### SIDE CONDITION: counts once another check of blockwise_attention passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(Q, K, V):
    blockwise_attention(Q, K, V, 2)
    return Q, K, V


rng = check_rng()
given = [torch.tensor(rng.normal(size=s)) for s in ((4, 6), (5, 6), (5, 3))]
for name, now, before in zip("QKV", arguments_after(*(x.clone() for x in given)), given, strict=True):
    assert_equal(now, before, f"{name} should be as before after the call.", name=name)
for dtype in (torch.float32, torch.float64):
    found = blockwise_attention(*(x.to(dtype) for x in given), 2)
    message = f"The inputs are {str(dtype)[6:]}, and so should the output be."
    assert_equal(str(getattr(found, "dtype", None)), str(dtype), message, name="the dtype")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Begin with $m = -\infty$, $s = 0$, $a = 0$ for each query; keep the last axis of $m$ and $s$ with
# length 1. In the loop: the scores of this block; the new largest; the factor
# $e^{m_{old} - m_{new}}$, which is 0 in the first block since $e^{-\infty} = 0$; then $s$ and $a$.
# Divide once, at the end. A slice that goes beyond the end of a tensor is simply shorter.
#
# </details>

# %% [markdown]
# ### The third equivalence, also with rows of nothing
#
# Your function against lesson 3's, for many block sizes. Then with a mask, written in another way:
# each block is attended to by itself, and two blocks are *joined*. Since joining may be done in any
# order, a machine with many processors can do all blocks side by side. The mask needs one more
# thought: a query whose keys so far are all hidden has $m = -\infty$, and
# $e^{-\infty - (-\infty)}$ is NaN. The remedy is to subtract 0 instead of $-\infty$ there, and to
# divide by 1 where nothing was collected: the output is 0, as in lesson 3.


# %% tags=["demonstration"]
def attended(Q, K, V, mask):
    """One block of keys: the largest score, the sum of exponentials, the values weighted by them."""
    scores = (Q @ K.mT / math.sqrt(Q.shape[-1])).masked_fill(~mask, -math.inf)
    m = scores.amax(dim=-1, keepdim=True)
    e = torch.exp(scores - m.masked_fill(m == -math.inf, 0.0))  # nothing seen: subtract 0
    return m, e.sum(dim=-1, keepdim=True), e @ V


def joined(one, other):
    """Two blocks become one; in which order they are joined makes no difference."""
    m = torch.maximum(one[0], other[0])
    shift = m.masked_fill(m == -math.inf, 0.0)
    f, g = torch.exp(one[0] - shift), torch.exp(other[0] - shift)
    return m, f * one[1] + g * other[1], f * one[2] + g * other[2]


def blockwise_with_mask(Q, K, V, block_size, mask):
    """Blockwise with a boolean mask (n_q, n_k); a query that may attend to nothing gets 0."""
    cuts = [slice(j, j + block_size) for j in range(0, K.shape[-2], block_size)]
    blocks = [attended(Q, K[..., cut, :], V[..., cut, :], mask[..., cut]) for cut in cuts]
    _, sums, weighted = functools.reduce(joined, blocks)
    return weighted / torch.where(sums > 0, sums, 1.0)


generator = torch.Generator().manual_seed(4)
Q, K, V = (torch.randn(2, n, d, generator=generator, dtype=torch.float64) for n, d in ((20, 8), (33, 8), (33, 5)))  # fmt: skip
mask = torch.rand(20, 33, generator=generator) < 0.3
mask[3] = mask[17] = False  # two queries may attend to nothing
mask[5, :30] = False  # and one only to the last keys
by_lesson_3 = scaled_dot_product_attention(Q.numpy(), K.numpy(), V.numpy())[0]
masked_by_lesson_3 = scaled_dot_product_attention(Q.numpy(), K.numpy(), V.numpy(), mask.numpy())[0]
sizes = (1, 2, 3, 5, 8, 16, 32, 33, 34, 1000)
gaps = [np.abs(blockwise_attention(Q, K, V, size).numpy() - by_lesson_3).max() for size in sizes]
masked = [np.abs(blockwise_with_mask(Q, K, V, size, mask).numpy() - masked_by_lesson_3).max() for size in sizes]  # fmt: skip
print("block sizes", *sizes)
print("equal to lesson 3, to 1e-12:", max(gaps) < 1e-12, "  with a mask:", max(masked) < 1e-12)
rows = blockwise_with_mask(Q, K, V, 4, mask)[:, [3, 17]]
print("rows of nothing are 0:", bool((rows == 0).all()))
assert max(gaps) < 1e-12 and max(masked) < 1e-12 and (rows == 0).all()

# %% [markdown]
# ### What it saves, counted; and the backward pass, told truly
#
# `Watch` looks at every operation of torch and adds up the numbers that are alive at that time,
# besides the inputs. **Predict, then run.** The length doubles. What happens to the multiply-adds, to
# the numbers held at once, and, when gradients are wanted, to the numbers kept for the way back?


# %% tags=["demonstration"]
class Watch(TorchDispatchMode):
    """The largest number of numbers that are alive at one time, besides the inputs."""

    def __init__(self, *inputs):
        super().__init__()
        self.inputs, self.alive, self.most = {x.untyped_storage().data_ptr() for x in inputs}, {}, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for x in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() not in self.inputs:
                storage = x.untyped_storage()
                size = storage.nbytes() // x.element_size()
                self.alive[storage.data_ptr()] = StorageWeakRef(storage), size
        self.alive = {p: one for p, one in self.alive.items() if not one[0].expired()}
        self.most = max(self.most, sum(size for _, size in self.alive.values()))
        return made


def kept_for_the_way_back(function, *inputs):
    """How many numbers a call keeps for its gradients, besides the inputs."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    own, kept = {x.untyped_storage().data_ptr() for x in inputs}, {}

    def note(x):
        storage = x.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes() // x.element_size()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        result = function(*inputs)  # held until the count is done, so that no place is used twice
    assert result.requires_grad, "no gradient flows: is something detached?"
    return sum(kept.values())


ways = {
    "all at once (lesson 3)": lambda *x: torch_scaled_dot_product_attention(*x)[0],
    "your blocks of 32": lambda *x: blockwise_attention(*x, 32),
    "torch's own function": F.scaled_dot_product_attention,
}
costs = {name: [] for name in ways}
print(f"{'':24s} {'n':>5s} {'multiply-adds':>14s} {'held at once':>13s} {'kept for gradients':>19s}")
for name, way in ways.items():
    for n in (512, 1024, 2048):
        Q, K, V = (torch.randn(1, 1, n, 16, generator=generator) for _ in range(3))
        with torch.no_grad():
            with FlopCounterMode(display=False) as counter:
                way(Q, K, V)
            with Watch(Q, K, V) as watch:
                way(Q, K, V)
        kept = kept_for_the_way_back(way, Q, K, V)
        costs[name].append((counter.get_total_flops() // 2, watch.most, kept))
        products = f"{costs[name][-1][0]:,d}" if costs[name][-1][0] else "not seen"
        print(f"{name:24s} {n:5d} {products:>14s} {watch.most:13,d} {kept:19,d}")
at_once, blocks, torchs = (np.array(cost) for cost in costs.values())
assert (at_once[:, 0] == blocks[:, 0]).all() and at_once[2, 0] == 2048 * 2048 * 32
assert at_once[2, 1] >= 2048**2 and blocks[2, 1] < 2048**2 / 8
assert blocks[2, 1] < 2.2 * blocks[1, 1] and at_once[2, 1] > 3.5 * at_once[1, 1]
assert blocks[2, 2] >= 2048**2 and torchs[2, 2] < 2048**2 / 8, differs

# %% [markdown]
# - **Multiply-adds**: the same, and four times as many at twice the length. Blocks save no arithmetic.
#   (torch's own function is one operation, and the counter does not look into it.)
# - **Held at once**: all at once grows with $n^2$, blocks grow with $n$.
# - **Kept for the way back**: your blocks keep *more* than lesson 3! torch remembers what every block
#   computed, since the gradient needs it. So as it stands, your function saves memory only when
#   nothing is learned. torch's own function keeps little: like FlashAttention it keeps the output and one
#   number a query (two in the paper of 2022, one since FlashAttention-2 of 2023), and **computes the scores
#   again** on the way back. That costs arithmetic and saves memory. In lesson 14 you write it.
#
# Why is it faster on large machines if the arithmetic is the same? Because there the time goes into
# carrying $n^2$ numbers to the memory and back. This notebook counts numbers, not seconds.

# %% [markdown]
# ## 8. Norms on queries and keys
#
# Nothing in training bounds the scores. If queries and keys grow, every softmax ends at 0 and 1, and
# its gradient at 0 (lesson 3). In very large models this has happened, and a remedy that several
# models now have is a norm on each query and each key, head by head (Henry and others, 2020; Dehghani
# and others, 2023; Qwen3, 2025). With your RMS norm and gamma = 1 every query and key has length
# $\sqrt{d_k}$, so no score exceeds $\sqrt{d_k} \cdot \sqrt{d_k} / \sqrt{d_k} = \sqrt{d_k}$.
#
# **Predict, then run.** The task "partners" again, with a learning rate 20 times that of section 5
# (0.1), and with 60 times (0.3), five runs each. How large do the scores become? And who learns the task?


# %% tags=["demonstration"]
class NormedFinder(Finder):
    """The finder of section 5, with or without a norm on queries and keys."""

    def __init__(self, with_norm):
        super().__init__(4, 4)
        self.norm_q, self.norm_k = (RMSNorm(D_MODEL // 4) if with_norm else nn.Identity() for _ in "qk")

    def scores(self, x):
        Q = self.norm_q(split_heads(self.attention.W_q(x), 4))
        K = self.norm_k(split_heads(self.attention.W_k(x), 4))
        return Q @ K.mT / math.sqrt(Q.shape[-1])

    def forward(self, texts):
        x = self.words(texts) + self.positions.weight
        weights = self.scores(x).softmax(-1)
        heads = weights @ split_heads(self.attention.W_v(x), 4)
        return self.read(self.attention.W_o(combine_heads(heads)))


def largest_score(model):
    texts, _ = partners(500, torch.Generator().manual_seed(99))
    with torch.no_grad():
        return model.scores(model.words(texts) + model.positions.weight).abs().max().item()


torch.manual_seed(0)
for with_norm in (False, True):
    new = NormedFinder(with_norm)
    before = largest_score(new)
    with torch.no_grad():
        new.attention.W_q.weight.mul_(100)
        new.attention.W_q.bias.mul_(100)
    print(f"norm: {with_norm!s:5s}  queries made 100 times larger: largest score "
          f"{before:.1f} -> {largest_score(new):.1f}")  # fmt: skip
    if with_norm:
        assert abs(largest_score(new) - before) < 0.1 and before <= math.sqrt(12) + 1e-4

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers may differ a little on other machines, so this output is not compared.
fast = {(rate, with_norm): [] for rate in (0.1, 0.3) for with_norm in (False, True)}
runs = [(*run, seed) for run in fast for seed in range(5)]
for _, (rate, with_norm, seed) in zip(progress(len(runs), "rates of 0.1 and 0.3"), runs):
    torch.manual_seed(seed)
    model = train_finder(NormedFinder(with_norm), 120, seed, lr=rate)
    fast[rate, with_norm].append((largest_score(model), found_partners(model)))
for (rate, with_norm), results in fast.items():
    scores, right = zip(*results)
    print(f"rate {rate}  norm: {with_norm!s:5s}  largest score {min(scores):7.0f} to {max(scores):7.0f}   "
          f"right {min(right):.2f} to {max(right):.2f}")  # fmt: skip
assert min(score for score, _ in fast[0.1, False]) > 1000, differs
assert max(score for rate in (0.1, 0.3) for score, _ in fast[rate, True]) < 100, differs
assert min(right for rate in (0.1, 0.3) for _, right in fast[rate, True]) > 0.8, differs
assert min(right for _, right in fast[0.1, False]) > 0.6, differs
assert max(right for _, right in fast[0.3, False]) < 0.4, differs

# %% [markdown]
# Without the norm the scores run into the thousands at a rate of 0.1, and this small model learns the task all the
# same, or nearly so. At 0.3 they run into the hundred thousands, and no run learns anything; chance is 1/12. With
# the norm the scores stay below 100 (gamma is learned, and moves the bound of $\sqrt{12}$ several times over), and
# every run learns the task at both rates. So **the disease alone was not enough, and more of it was**; the norm
# buys a rate at which training would break down, as it did in large models at ordinary rates (Dehghani and others,
# 2023). At lesson 5's own rate this model needs no norm.
#
# ## 9. Keep less: keys from a latent
#
# Grouped queries make the cache smaller by sharing. **Multi-head latent attention** (DeepSeek-V2,
# 2024) goes another way: keep one short vector $c = x W^{down}$ for each word, and make the keys of
# *all* heads from it, $k_h = c\, W^{up}_h$. Is that not slow, to make all old keys again for each new
# word? No, because
#
# $$q_h \cdot k_h = q_h \cdot (c\, W^{up}_h) = (q_h {W^{up}_h}^{\!\top}) \cdot c .$$
#
# The matrix goes to the **query**: it is absorbed once for each new word, and the old keys never
# come into being. (With the values and $W^O$ the same is done.)
#
# **Predict, then run.** (1) Are the scores equal? (2) Now turn queries and keys with `apply_rotary`.
# Can the matrix still move to the query?

# %% tags=["demonstration"]
generator = torch.Generator().manual_seed(5)
n, num_heads, d_k, d_latent = 10, 8, 16, 24
c = torch.randn(n, d_latent, generator=generator, dtype=torch.float64)  # all that is kept of the text
up = torch.randn(num_heads, d_latent, d_k, generator=generator, dtype=torch.float64) / math.sqrt(d_latent)
q = torch.randn(num_heads, 1, d_k, generator=generator, dtype=torch.float64)  # the new word's queries
keys = c @ up  # (num_heads, n, d_k)
by_keys, absorbed = q @ keys.mT, (q @ up.mT) @ c.mT
print("without positions, equal to 1e-13:", (by_keys - absorbed).abs().max().item() < 1e-13)

where, here = torch.arange(n), torch.tensor([n - 1])
turned = apply_rotary(q, here) @ apply_rotary(keys, where).mT
tried = (apply_rotary(q, here) @ up.mT) @ c.mT  # the keys' turning is lost
print(f"with rotary positions: scores of size {turned.std():.1f}, wrong by up to {(turned - tried).abs().max():.1f}")
one_for_each = torch.cat(
    [
        # R_s stands between: a matrix of its own for each distance, so nothing to absorb once
        apply_rotary(apply_rotary(q, here), -where[s : s + 1]) @ up.mT @ c[s : s + 1].mT
        for s in range(n)
    ],
    dim=-1,
)
print("with another absorbed query for each old word, equal:", (turned - one_for_each).abs().max().item() < 1e-12)
assert (by_keys - absorbed).abs().max() < 1e-13 and (turned - tried).abs().max() > 1
assert (turned - one_for_each).abs().max() < 1e-12
kept = {"multi-head": 2 * num_heads * d_k, "2 key-value heads": 2 * 2 * d_k, "latent": d_latent}
print("numbers kept for a word and layer:", *(f"{name} {count}," for name, count in kept.items()))

# %% [markdown]
# The turning $R_s$ stands **between** the query and $W^{up}$, and it is another one for each old
# word: $q_h^\top R_{t}^\top R_{s} {W^{up}_h}^{\!\top} c_s$ (with $q_h$ and $c_s$ as columns; the order is
# what matters). There is no single matrix to absorb. DeepSeek's way out: a few extra features of each
# query and **one shared** extra key a word carry the rotary positions, and are kept beside the latent;
# all the others carry none. Two good ideas that do not fit together, and a third that makes them.
#
# ## 10. Read a published model's source
#
# Open the file `modeling_qwen3.py` of the library *transformers* (`src/transformers/models/qwen3/`
# in its repository, version 5; Qwen3 is a family of open models of 2025). The names below are
# those of the file. **Cover the right column, and say what each line does.**
#
# | name in the source | yours |
# |---|---|
# | `Qwen3RMSNorm`, with `weight` and `variance_epsilon` | `RMSNorm`, `gamma` and `eps`. It computes in float32, also when `x` has 16 bits; yours in the precision of `x` |
# | `Qwen3MLP`: `gate_proj`, `up_proj`, `down_proj`, `act_fn` | `SwiGLU`: `gate`, `up`, `down`, silu |
# | `Qwen3RotaryEmbedding`, `inv_freq`, `rope_theta` | the speeds of `apply_rotary`, and `base` |
# | `rotate_half`, `apply_rotary_pos_emb` | `apply_rotary`, in the layout of halves (section 4) |
# | `q_proj`, `k_proj`, `v_proj`, `o_proj` | `W_q`, `W_k`, `W_v`, `W_o`; the biases may be missing (`attention_bias`) |
# | `num_attention_heads`, `num_key_value_heads`, `num_key_value_groups` | `num_heads`, `num_kv_heads`, and how many heads share |
# | `repeat_kv` | `repeat_interleave` along the axis of the heads: 0 0 0 1 1 1 |
# | `q_norm`, `k_norm` | section 8: RMS norm of each head's queries and keys, before they are turned |
# | `past_key_values.update(...)` | `KVCache.append`, one for each layer (`layer_idx`); keys are turned first |
# | `scaling`, `eager_attention_forward` | $1/\sqrt{d_k}$ and lesson 3's function. The mask is **added**: 0 or a huge negative number, not True and False |
# | `ALL_ATTENTION_FUNCTIONS` | a choice of kernels: torch's own function, FlashAttention: section 7, exact |
# | `sliding_window` | only the last words are seen, in some layers |
# | `Qwen3DecoderLayer`: `input_layernorm`, `self_attn`, `post_attention_layernorm`, `mlp` | lesson 8's pre-norm block. Despite their names both norms are RMS norms, and both stand **before** a part |
#
# What models have added since, and this course does not teach: **experts**, many feed-forwards of which a router
# picks a few for each word (Mixtral, 2024; the larger Qwen3); **learned sinks**, one more number below the
# fraction line of each head's softmax, so that a head can look at nothing (gpt-oss, 2025); **gated memories**, in
# which part of the layers keep a sum that forgets (Qwen3-Next, 2025). Lesson 14 has the plain forms of the last
# two: a sink that models make for themselves, and the delta rule.
#
# Two things in it are in no lesson so far: `head_dim` is a number of its own, so that the heads
# together may be wider than $d_{model}$, and then `q_proj` is not square; and the sliding window, a
# mask that also hides what is long past. The parts that do the arithmetic you have written.
#
# ### What is often said, and what is right
#
# | often said | what is right | where shown |
# |---|---|---|
# | "RMS norm is a different norm." | Layer norm is RMS norm of the centred word. | section 2 |
# | "Rotary extrapolates to any length." | Any *position* is fine. New *distances* may not be: four heads of 16 lost a fifth of the words at twice the length, with another base none. | section 4, figure 1 |
# | "Llama's rotary is another one than the paper's." | The two layouts differ by a permutation of features. Mixing them up is the bug. | section 4 |
# | "Fewer key-value heads make attention cheaper." | The scores are as many. The cache is smaller, and so are two matrices. | sections 5, 6 |
# | "Flash attention is an approximation." | It is exact. | section 7 |
# | "Flash attention makes attention linear." | Memory grows with $n$, multiply-adds with $n^2$. | section 7 |
# | "A loop over blocks saves memory in training." | Only if the backward pass computes the scores again. | section 7 |
# | "The cache speeds up reading the prompt." | The prompt costs the same. What comes after it is cheaper. | section 6 |
# | "The new parts made models good." | Some equal the old ones, some are cheaper, few are shown to be better. | the whole lesson |
#
# ### Written answer: `written_modern`
#
# In 5 to 8 sentences (4 points). A friend wants to make a model of 2017 (layer norm, learned
# positions, 32 heads with keys and values of their own) answer long texts on a small machine:
#
# 1. Which of this lesson's parts change **nothing** in the output of a trained model, and which do?
#    Name two of each kind.
# 2. Which part saves memory for long texts, and in which of the two places: in the cache, or for the
#    scores?
# 3. The friend says: "I replace the positions by rotary ones, load the old weights, and it can read
#    texts of any length." Name two things that are wrong, each with a measurement of this lesson or
#    of lesson 7.

# %% [markdown] written="modern" points=4
# ### BEGIN SOLUTION
# A cache and a softmax in blocks change nothing: decoding in pieces equalled the whole pass to 1e-10,
# and blocks equalled lesson 3 to 1e-12. Fewer key-value heads do change the output (right after
# pooling to one head the accuracy fell below one half), and so do RMS norm, SwiGLU and rotary positions;
# all of these need training. The cache holds two vectors for each key-value head, layer and word, so
# grouped queries (or latent keys) make it smaller; the scores' $n^2$ numbers are avoided by blocks,
# which leave the cache as it is. To the friend: a model that was trained with added positions has not
# learned to use turned queries and keys, so the old weights do not fit and it must be trained again.
# And rotary is no licence for any length: with four heads of 16 features a fifth of the words was
# wrong at twice the trained length, since distances came up that training had never shown; with other
# speeds (another base, or more pairs) it carried on further.
#
# **Marking scheme** (4 points). 1 point: two exact parts (cache, blocks; also: the other rotary layout
# with permuted weights, as many key-value heads as heads). 1 point: two that change the output, with
# "needs training". 1 point: cache (grouped queries, multi-query, latent) and scores (blocks) told
# apart. 1 point: both faults of the friend, weights that do not fit **and** unseen distances, the
# second with a number; half a point for one of them.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | RMS norm | $x / \sqrt{\overline{x^2} + \epsilon} \odot \gamma$ | `RMSNorm` | size 1, no mean, no bias |
# | gated feed-forward | $(\operatorname{silu}(xW_{gate}) \odot xW_{up})\, W_{down}$ | `SwiGLU` | numbers and gate apart |
# | rotary positions | pair $i$ turns by $t \cdot base^{-2i/d_k}$ | `apply_rotary` | scores see distances |
# | grouped queries | head $h$ uses $h\,//\,(H\,//\,G)$ | `GroupedQueryAttention` | a smaller cache |
# | key-value cache | join, oldest first | `KVCache` | nothing computed twice |
# | online softmax | $e^{m_{old} - m_{new}}$ corrects what was collected | `blockwise_attention` | exact, no $n \times n$ scores held (without gradients) |
# | QK-norm | RMS norm of each query and key | two `RMSNorm` a layer | scores stay small |
# | latent keys | $(q_h {W^{up}_h}^{\!\top}) \cdot c$ | three products | a cache of one short vector |
#
# ## Check yourself
#
# <details><summary>1. The vectors that go into an RMS norm become 10 times larger. What changes in
# what comes out? And what changes in a pre-norm block?</summary>
#
# In the norm's output nothing, up to eps. (Add 10 to all features instead, and it changes: the mean
# stays in.) In a pre-norm block much: the stream is ten times larger, and what its parts add is as
# large as before, so each adds ten times less in proportion.
#
# </details>
#
# <details><summary>2. Why are values not turned?</summary>
#
# A turned value would carry its absolute position into the sum, and the sum of values that are turned
# by different angles means something else in each place. The position is needed where distance is
# judged: in the score.
#
# </details>
#
# <details><summary>3. A layer has 16 heads and 4 key-value heads. Someone repeats the keys with
# `K.repeat(1, 4, 1, 1)`. Does it run? Does it train?</summary>
#
# Both, with no loss in quality: heads share in another order, 0 1 2 3 0 1 2 3. But published
# weights then give rubbish, since their heads learned with other partners.
#
# </details>
#
# <details><summary>4. With a cache, how many rows has the mask when one new word is read after a prompt
# of 50? When a chunk of 5 is read?</summary>
#
# One row of 51, all True. Five rows of 55: the last five rows of the causal mask. A square mask of 5
# does not fit the scores, 5 by 55: it is an error.
#
# </details>
#
# <details><summary>5. In the online softmax, what happens if the largest score is never updated after
# the first block?</summary>
#
# In exact numbers, nothing: any number may be subtracted, if it is the same everywhere. In floating
# point a later score that is larger by 100 overflows in float32 (the limit is near 88).
#
# </details>
#
# ## Questions to ask yourself about a new part
#
# - Which old part does it equal, with which setting? Can I prove it on random weights?
# - What does it save: parameters, multiply-adds, numbers kept, or numbers carried?
# - Which control would show that the gain comes from this part?
# - Can old weights be used, and after how much training?
#
# ## References
#
# - Zhang, Sennrich (2019), *Root Mean Square Layer Normalization*.
# - Narang and others (2021), *Do Transformer Modifications Transfer Across Implementations and
#   Applications?*
# - Shazeer (2020), *GLU Variants Improve Transformer*.
# - Su, Lu, Pan, Murtadha, Wen, Liu (2021), *RoFormer: Enhanced Transformer with Rotary Position
#   Embedding*.
# - Shazeer (2019), *Fast Transformer Decoding: One Write-Head is All You Need*.
# - Ainslie, Lee-Thorp, de Jong, Zemlyanskiy, Lebrón, Sanghai (2023), *GQA: Training Generalized
#   Multi-Query Transformer Models from Multi-Head Checkpoints*.
# - Milakov, Gimelshein (2018), *Online Normalizer Calculation for Softmax*.
# - Dao, Fu, Ermon, Rudra, Ré (2022), *FlashAttention: Fast and Memory-Efficient Exact Attention with
#   IO-Awareness*.
# - Dao (2023), *FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning*.
# - Henry, Dachapally, Pawar, Chen (2020), *Query-Key Normalization for Transformers*.
# - Dehghani and others (2023), *Scaling Vision Transformers to 22 Billion Parameters*.
# - DeepSeek-AI (2024), *DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language
#   Model*.
# - Grattafiori and others (2024), *The Llama 3 Herd of Models*.
# - Qwen Team (2025), *Qwen3 Technical Report*.
#
# ## What comes next
#
# You can read a model of today. The next lesson looks into one that is already trained and
# published, in your own parts. What this lesson left alone is attention that is not exact, and
# cheaper for that.
