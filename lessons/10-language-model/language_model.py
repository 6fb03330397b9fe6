# %% [markdown]
# ## What you will be able to do
#
# - **Write** the loss of a language model with its shift, and **assemble** a GPT from your own
#   blocks.
# - **Train** it with a step of your own, down to a floor that nobody can pass, and **check** it
#   before you train it.
# - **Sample** from it with temperature, top-k and top-p, and **measure** what each does.
# - **Count** its parameters and multiply-adds, and agree with torch's own counter.
# - **Write a test** that tells right training steps from broken ones of eight kinds, most of which a
#   loss curve does not show.

# %% tags=["setup"]
import copy
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lesson_kit.attention_view import attention_view
from lesson_kit.batteries import assert_each_alone, assert_results, assert_unchanged
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
    TransformerBlock,
    causal_mask,
    leaks_future,
)
from lesson_kit.figures import heatmap, show, text_table
from lesson_kit.guesses import puzzle, reply
from lesson_kit.hands_on import slider
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# The parts of lessons 5 to 8 are your own where they passed their checks, else the course's. The setup
# cell says which.
#
# ## 1. From parts to a model
#
# Three questions first, from earlier lessons. Answer each on paper before you unfold it.
#
# <details><summary>Lesson 6: position 3 of a text has read "the black cat is", a word at each position. Which word
# does it have to guess, and how many guesses does a text of 48 tokens give in one pass?</summary>
#
# "sleeping": the *next* one. 47: the last token has no successor in the text.
#
# </details>
#
# <details><summary>Lesson 7: which input is the same for every text, and what could a model not
# know without it?</summary>
#
# The position vectors. Attention without them sees a set of words, not their order (a causal mask
# tells a little of it).
#
# </details>
#
# <details><summary>Lesson 8: a pre-norm block adds to a stream that no norm ever touches. What must
# therefore stand between the last block and the read-out?</summary>
#
# One more layer norm. Without it the read-out gets a sum that grows from block to block.
#
# </details>

# %% [markdown]
# You have every part of a language model, and no language model of your own. In lesson 6 the model
# was given, the training was given, and the writing was given. In this lesson you write the model, its
# loss, its step, the loop of its training, and what it draws from.
# Then you do what takes most of the time in practice: you find out whether they are right. For this
# is the unpleasant thing about training. Here are the losses of three training loops of section 7,
# for the same model and the same texts. Two of the loops are broken.
#
# | mean loss of steps | loop 1 | loop 2 | loop 3 |
# |---|---|---|---|
# | 1 to 5 | 2.8 | 2.7 | 2.7 |
# | 16 to 20 | 1.4 | 1.3 | 1.3 |
# | 56 to 60 | 0.8 | 0.6 | 0.7 |
#
# No error, no NaN, a curve that falls. You cannot tell them apart here. In section 7 a function of
# yours can.
#
# ## 2. The loss, and its shift
#
# A text is a row of whole numbers, its **tokens**: ours are characters. The **vocabulary** is the
# set of all tokens, $V$ its size. For each position the model gives $V$ numbers, the **logits**.
# Their softmax is the guess for the **next** token. The loss is the mean of $-\ln p$ of what really
# came next, in nats (with $\ln$; with $\log_2$ it would be bits):
#
# $$\text{loss} = -\frac{1}{n-1} \sum_{t=0}^{n-2} \ln p_t(x_{t+1}), \qquad
# p_t = \operatorname{softmax}(\text{logits}_t) .$$
#
# By hand: a vocabulary of three tokens, the text 0 1 2, and these guesses.
#
# | position $t$ | reads | $p_t$ of 0, 1, 2 | next token | its probability |
# |---|---|---|---|---|
# | 0 | 0 | 0.50, 0.25, 0.25 | 1 | 0.25 |
# | 1 | 1 | 0.10, 0.10, 0.80 | 2 | 0.80 |
# | 2 | 2 | 0.20, 0.20, 0.60 | none | not counted |
#
# The loss is $-(\ln 0.25 + \ln 0.80)/2 = (1.386 + 0.223)/2 = 0.805$. **The text shifts, not the
# logits**: a text of $n$ tokens gives $n - 1$ predictions.
#
# Texts of different lengths are padded (lesson 3). Is a prediction of padding worth learning? No:
# a prediction counts when its **target** is a real token. The last real token reads a word, but
# what it has to guess is padding, and does not count.

# %% [markdown]
# ### Short answer 1: `answer_mean`
#
# Two padded texts: the first has 9 predictions that count, with a mean loss of 1; the second has 1,
# with a loss of 3. What is the loss of the two together, "over all counted predictions of all texts
# together"?
#
# - a) 2.0
# - b) 1.2
# - c) 0.6
# - d) 4.0

# %% answer="answer_mean"
### BEGIN SOLUTION
answer_mean = "b"
### END SOLUTION

# %% check="answer_mean" points=1
check_answer("answer_mean", answer_mean)

# %% [markdown]
# ### Exercise 1: `next_token_loss`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 15-20 minutes on it.
#
# - `logits (..., n, vocab)`, floating torch tensor; `tokens (..., n)`, torch integers.
# - Returns a torch scalar, shape `()`: the mean cross-entropy in nats. The logits at position `t`
#   are scored against `tokens[..., t + 1]`. The mean runs over all counted predictions of all texts
#   together.
# - `keep (..., n)`, boolean, `True` = a real token; `None` keeps all. A prediction counts exactly
#   when its *target* is kept. Tokens that are not kept may hold any integer, also `-100`.
# - `ValueError`: fewer than 2 tokens a text, or nothing to count.
# - Checked when graded: any number of leading axes, which broadcast; logits of 10,000 give a finite
#   loss; gradients flow to `logits`; float64 stays float64; the arguments are not changed.


# %% answer="next_token_loss"
def next_token_loss(logits, tokens, keep=None):
    """Mean cross-entropy of the logits at each position against the next token, in nats.

    Args:
        logits: (..., n, vocab).
        tokens: (..., n) integers.
        keep: boolean (..., n), True = a real token; a prediction counts when its target is kept.

    Returns:
        A torch scalar.

    Raises:
        ValueError: n < 2, or nothing to count.
    """
    ### BEGIN SOLUTION
    if tokens.shape[-1] < 2:
        raise ValueError(f"nothing follows in texts of one token: tokens {tuple(tokens.shape)}")
    keep = torch.ones_like(tokens, dtype=torch.bool) if keep is None else keep
    shape = torch.broadcast_shapes(logits.shape[:-1], tokens.shape, keep.shape)
    counted = keep.expand(shape)[..., 1:]  # (..., n - 1): is the target a real token?
    if not counted.any():
        raise ValueError("keep leaves no prediction to count")
    guesses = logits.expand(*shape, logits.shape[-1])[..., :-1, :]  # (..., n - 1, vocab)
    targets = tokens.expand(shape)[..., 1:]  # (..., n - 1)
    return F.cross_entropy(guesses[counted], targets[counted].long())
    ### END SOLUTION


# %% check="next_token_loss" points=3 means="Every target that is kept counts once, in texts of any lengths." card=["The logits at position `t` are scored against `tokens[..., t + 1]`", "A prediction counts exactly when its *target* is kept. Tokens that are not kept may hold any integer, also `-100`", "`ValueError`: fewer than 2 tokens a text, or nothing to count"]
# The table above, then two texts of five tokens, with and without padding.
p = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6]])
in_a_batch = next_token_loss(p.log()[None], torch.tensor([[0, 1, 2]]))
with check("the table, by hand", points=0.75):
    message = (
        "The guesses for the tokens 1 and 2 were 0.25 and 0.80. Logits at position t are scored "
        "against token t + 1; a text of 3 tokens gives 2 predictions. Return their mean, in nats."
    )
    assert_close(in_a_batch, torch.tensor((1.3863 + 0.2231) / 2), message, atol=1e-3)
with check("no leading axis: as in a batch of one", points=0.25):
    found, other = (next_token_loss(p.log(), torch.tensor(text)) for text in ([0, 1, 2], [0, 2, 1]))
    message = "logits (3, 3) and tokens (3,): the loss should be that in a batch of one."
    assert_close(found, in_a_batch, message, against="in a batch of one")
    differs = bool((torch.as_tensor(other) - torch.as_tensor(found)).abs() > 1e-3)
    assert_equal(differs, True, "The tokens 0, 2, 1 have another loss, and none is NaN.")
logits = torch.tensor(check_rng().normal(size=(2, 5, 4))).float()
tokens = torch.tensor([[0, 3, 1, 2, 2], [1, 0, 3, 2, 3]])
each = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
with check("two texts", points=1):
    message = "Two texts of 5 tokens give 8 predictions: the loss is the mean over them."
    assert_close(next_token_loss(logits.clone(), tokens.clone()), each.mean(), message)
keep = torch.tensor([[True] * 5, [True, True, False, False, False]])
with check("padding", points=0.5):
    padded = torch.where(keep | (tokens == 3), tokens, -100)  # padding may look like a token, or not
    message = "keep keeps five tokens and two: 4 predictions have a kept target, and 1. The mean is over these 5."
    expected = (each[0].sum() + each[1, 0]) / 5
    assert_close(next_token_loss(logits.clone(), padded, keep.clone()), expected, message)
with check("nothing to count is a ValueError", points=0.5, side=True):
    with assert_raises(ValueError, "A text of one token holds no prediction: a ValueError."):
        next_token_loss(logits[:, :1].clone(), tokens[:, :1].clone())
    with assert_raises(ValueError, "keep keeps first tokens only, and none is a target: a ValueError."):
        next_token_loss(logits.clone(), tokens.clone(), torch.tensor([[True] + [False] * 4] * 2))
checks_passed("next_token_loss")


# %% check="next_token_loss_keep" points=2 card=["A prediction counts exactly when its *target* is kept. Tokens that are not kept may hold any integer, also `-100`", "The mean runs over all counted predictions of all texts together"]
# Hidden checks of next_token_loss: padding on both sides, holes, a text without a target.
### BEGIN HIDDEN TESTS
rng = check_rng()
logits = torch.tensor(rng.normal(size=(3, 6, 5))).float()
tokens = torch.tensor(rng.integers(0, 5, size=(3, 6)))
each = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")


def compare(rows, message, others=0):
    """keep by rows of 1 and 0; what is not kept is set to another integer."""
    keep = torch.tensor([[one == "1" for one in row] for row in rows.split()])
    counted = keep[:, 1:]
    expected = torch.where(counted, each, 0).sum() / counted.sum()
    given = torch.where(keep, tokens, others)
    assert_close(next_token_loss(logits.clone(), given, keep), expected, f"keep {rows}: {message}")


message = "a prediction counts exactly when its target is kept, and the mean is over all that count."
with check("texts of other lengths", points=0.75):
    compare("111111 111000 110000", message)
with check("padding in front, and holes", points=0.5):
    compare("001111 000111 101101", message)
with check("padding of any integers", points=0.25):
    compare("111111 111000 110000", "tokens that are not kept hold -1 here.", -1)
    compare("111111 111000 110000", "tokens that are not kept hold 77 here, a vocabulary of 5.", 77)
with check("a text of which no target is kept", points=0.5):
    compare("111111 100000 111100", "the second text adds nothing to the mean.")
checks_passed("next_token_loss")
### END HIDDEN TESTS


# %% check="next_token_loss_batches" points=2 card="any number of leading axes, which broadcast"
# Hidden checks of next_token_loss: leading axes, broadcasting.
### BEGIN HIDDEN TESTS
rng = check_rng()


def compare(lead, lead_tokens, keep=None):
    """The loss, and the mean of the losses of the texts alone, each in a batch of one."""
    logits = torch.tensor(rng.normal(size=(*lead, 4, 6))).float()
    tokens = torch.tensor(rng.integers(0, 6, size=(*lead_tokens, 4)))
    whole = torch.broadcast_shapes(lead, lead_tokens)
    pairs = logits.expand(*whole, 4, 6).reshape(-1, 1, 4, 6), tokens.expand(*whole, 4).reshape(-1, 1, 4)
    kept = None if keep is None else keep[None]
    alone = [next_token_loss(*pair, kept) for pair in zip(*(x.clone() for x in pairs), strict=True)]
    alone = torch.stack([torch.as_tensor(loss) for loss in alone]).float()
    differs = len(alone) == 1 or bool(alone.std() > 1e-3)
    assert_equal(differs, True, "The texts alone have different losses, none NaN.", name="'they differ'")
    message = f"logits {(*lead, 4, 6)}, tokens {(*lead_tokens, 4)}: the mean of the losses of the texts alone."
    assert_close(next_token_loss(logits, tokens, keep), alone.mean(), message, against="for each text alone")


with check("three texts, each as in a batch of one", points=0.5):
    compare((3,), (3,))
with check("two leading axes", points=0.5):
    compare((2, 3), (2, 3))
with check("logits and tokens broadcast", points=0.5):
    compare((2, 1), (3,))
with check("one keep for all texts", points=0.5):
    compare((3,), (3,), torch.tensor([True, True, False, True]))
checks_passed("next_token_loss")
### END HIDDEN TESTS


# %% check="next_token_loss_numbers" points=2 card="logits of 10,000 give a finite loss; gradients flow to `logits`; float64 stays float64"
# Hidden checks of next_token_loss: large logits, gradients, float64.
### BEGIN HIDDEN TESTS
@probe
def gradient(logits, tokens):
    logits = logits.clone().requires_grad_()
    next_token_loss(logits, tokens).backward()
    return logits.grad


rng = check_rng()
logits, tokens = torch.tensor(rng.normal(size=(2, 5, 4))), torch.tensor(rng.integers(0, 4, size=(2, 5)))


def by_torch(logits):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


with check("logits of 10,000", points=0.75):
    large = 1e4 * torch.tensor(rng.permuted(np.tile(np.arange(4.0), (2, 5, 1)), axis=-1)).float()
    message = "Logits of 0, 10,000, 20,000 and 30,000 in float32: the loss should be finite, and right."
    assert_close(next_token_loss(large.clone(), tokens.clone()), by_torch(large), message)
with check("the gradient of logits: that of the mean cross-entropy", points=0.75):
    leaf = logits.clone().requires_grad_()
    by_torch(leaf).backward()
    message = "The gradient of logits should be that of the mean cross-entropy. If the loss is right: is something detached?"
    assert_close(gradient(logits.clone(), tokens.clone()), leaf.grad, message, name="the gradient of logits")
with check("float64 stays float64, the loss right to ten digits", points=0.5):
    expected = by_torch(logits)
    found = next_token_loss(logits.clone(), tokens.clone())
    message = "float64: the loss should be a float64 scalar, right to ten digits."
    assert_equal(str(getattr(found, "dtype", None)), "torch.float64", message, name="the dtype")
    assert_close(found, expected, message, precise=True)
checks_passed("next_token_loss")
### END HIDDEN TESTS


# %% check="next_token_loss_contract" points=1 card="the arguments are not changed"
# Hidden checks of next_token_loss: the arguments stay as they are.
### SIDE CONDITION: counts once another check of next_token_loss passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(logits, tokens, keep):
    next_token_loss(logits, tokens, keep)
    return logits, tokens, keep


logits = torch.tensor(check_rng().normal(size=(2, 4, 5)))
tokens = torch.tensor([[1, 2, -100, -100], [3, 4, 0, 1]])
assert_unchanged(afterwards, logits=logits, tokens=tokens, keep=tokens >= 0)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Cut the last position off the logits, and the first off the tokens. Both now have $n - 1$
# positions that belong together. `keep` is a statement about tokens: it is cut as they are. A
# boolean tensor as index, `guesses[counted]`, gives one row for each True, whatever the number of
# leading axes; the integers at the other places are never looked at.
#
# </details>

# %% [markdown]
# ## 3. The model
#
# A **GPT** (Radford and others, 2018) is lesson 8's stack with a causal mask, an embedding below it
# and a read-out above it. A token's way through it:
#
# $$\begin{aligned}
# x^0_t &= \text{token vector of } x_t + \text{position vector } t & (n, d_{model}) \\
# x^{l} &= \operatorname{Block}_l(x^{l-1}, \text{causal mask}), \quad l = 1, \ldots, L
# & (n, d_{model}) \\
# \text{logits} &= \operatorname{Norm}(x^L)\, W & (n, V)
# \end{aligned}$$
#
# The blocks are pre-norm, as in GPT-2 (Radford and others, 2019): nothing normalises the stream
# between them, so a last norm stands before the read-out.
#
# The same as a picture, from top to bottom, with the numbers of such a model after training:

# %% tags=["demonstration"]
from lesson_kit.token_way import show_way

show_way()

# %% [markdown]
# ### Exercise 2: `GPT`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 20-30 minutes on it.
#
# - `GPT(vocab_size, d_model, num_heads, d_ff, num_layers, max_len)` has five parts:
#   - `token_embedding`: `nn.Embedding(vocab_size, d_model)`;
#   - `position_embedding`: `LearnedPositionalEmbedding(max_len, d_model)` of lesson 7, which *adds*
#     its vectors to what it is given;
#   - `blocks`: an `nn.ModuleList` of `num_layers` blocks,
#     `TransformerBlock(d_model, num_heads, d_ff, norm_first=True)` of lesson 8, one object each;
#   - `final_norm`: `LayerNorm(d_model)` of lesson 8;
#   - `output`: `nn.Linear(d_model, vocab_size, bias=False)` with a weight of its own.
# - `forward(tokens (..., n)) -> logits (..., n, vocab_size)`. Causal: the logits at position `t`
#   depend on the tokens up to `t` only. A block's `forward(x, mask=mask)` returns
#   `(output, weights)`; its mask is a boolean torch tensor. `causal_mask(n)` is a NumPy array.
# - `n > max_len` is a `ValueError` (lesson 7's part raises it). No other error is graded.
# - No dropout, no scaling of the embeddings; `output` has no bias.
# - Checked when graded: any number of leading axes; every length up to `max_len`; float64 (after
#   `.double()`); gradients reach every parameter; the tokens are not changed.


# %% answer="GPT"
class GPT(nn.Module):
    """A decoder-only language model of pre-norm blocks.

    Parts token_embedding, position_embedding, blocks, final_norm, output.
    """

    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len):
        ### BEGIN SOLUTION
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = LearnedPositionalEmbedding(max_len, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)
        )
        self.final_norm = LayerNorm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        ### END SOLUTION

    def forward(self, tokens):
        """Guess the next token at each position.

        Args:
            tokens: (..., n) integers, n <= max_len.

        Returns:
            logits (..., n, vocab_size).

        Raises:
            ValueError: n > max_len.
        """
        ### BEGIN SOLUTION
        mask = torch.from_numpy(causal_mask(tokens.shape[-1]))  # (n, n)
        x = self.position_embedding(self.token_embedding(tokens))  # (..., n, d_model)
        for block in self.blocks:
            x, _ = block(x, mask=mask)
        return self.output(self.final_norm(x))
        ### END SOLUTION


# %% check="GPT" points=4 means="Your parts make a language model: each position guesses the next token from what it has read." card=["`blocks`: an `nn.ModuleList` of `num_layers` blocks", "`output`: `nn.Linear(d_model, vocab_size, bias=False)` with a weight of its own", "Causal: the logits at position `t` depend on the tokens up to `t` only", "`n > max_len` is a `ValueError`"]
# Two texts of five tokens; the same computation with the parts of lessons 7 and 8.
@probe
def run(parameters, tokens):
    model = GPT(7, 12, 3, 20, 2, 6)  # vocab_size, d_model, num_heads, d_ff, num_layers, max_len
    names = ("token_embedding", "position_embedding", "blocks", "final_norm", "output")
    kinds = [type(getattr(model, name, None)).__name__ for name in names]
    shapes = {name: list(value.shape) for name, value in model.named_parameters()}
    with torch.no_grad():
        model.load_state_dict(parameters, strict=False)
        return kinds, shapes, model(tokens.clone()) if len(tokens) else None


rng, block = check_rng(), TransformerBlock(12, 3, 20, norm_first=True)
sizes = {"token_embedding.weight": [7, 12], "final_norm.gamma": [12], "final_norm.beta": [12], "output.weight": [7, 12]}
sizes |= {f"position_embedding.{name}": [6, 12] for name, _ in LearnedPositionalEmbedding(6, 12).named_parameters()}
sizes |= {f"blocks.{i}.{name}": list(x.shape) for i in range(2) for name, x in block.named_parameters()}
p = {name: torch.tensor((0.4 if len(size) > 1 else 1) * rng.normal(size=size)).float() for name, size in sizes.items()}
tokens = torch.tensor(rng.integers(0, 7, size=(2, 5)))
x = p["token_embedding.weight"][tokens] + next(value for name, value in p.items() if "position" in name)[:5]
for i in range(2):
    of_block = {name: p[f"blocks.{i}.{name}"] for name, _ in block.named_parameters()}
    x, _ = torch.func.functional_call(block, of_block, (x,), {"mask": torch.ones(5, 5).tril() > 0})
logits = (F.layer_norm(x, (12,), p["final_norm.gamma"], p["final_norm.beta"]) @ p["output.weight"].T).detach()
with check("the five parts", points=1):
    kinds, shapes, _ = run({}, tokens[:0])
    message = "The five parts should be attributes, each of the card's kind."
    assert_equal(kinds, ["Embedding", "LearnedPositionalEmbedding", "ModuleList", "LayerNorm", "Linear"], message, name="the kinds")
    message = "The parts have the card's sizes, each block is its own object, output has no bias and its own weight."
    assert_equal(shapes, sizes, message, name="model.named_parameters()")
with check("the first position", points=1):  # it sees itself alone: no mask is needed
    message = "One token: token vector plus position vector, the pre-norm blocks one after another, final_norm, output, no softmax."
    assert_close(run(p, tokens[:, :1])[2], logits[:, :1], message)
with check("all positions, causal", points=1.5):
    message = "Five tokens: each position may see itself and those before it, in every block."
    assert_close(run(p, tokens)[2], logits, message)
with check("longer than max_len", points=0.5, side=True), assert_raises(ValueError, "7 tokens with max_len 6: a ValueError."):
    run(p, torch.zeros(2, 7, dtype=torch.long))
checks_passed("GPT")


# %% check="GPT_shapes" points=2 card=["any number of leading axes; every length up to `max_len`; float64 (after `.double()`)"]
# Hidden checks of GPT: leading axes, lengths, float64.
### BEGIN HIDDEN TESTS
@probe
def run(tokens, seed):
    torch.manual_seed(seed)
    model = GPT(7, 12, 3, 20, 2, 6).double()
    with torch.no_grad():
        return model(tokens)


@probe
def one_after_another(tokens, seed, lengths):
    """One model reads the first tokens of a text, so many at each call."""
    torch.manual_seed(seed)
    model = GPT(7, 12, 3, 20, 2, 6).double()
    with torch.no_grad():
        return [model(tokens[..., :n].clone()) for n in lengths]


rng = check_rng()
seed = int(rng.integers(1000))
tokens = torch.tensor(rng.integers(0, 7, size=(3, 6)))
with check("every length up to max_len", points=0.75):
    whole, *others = one_after_another(tokens, seed, [6, 1, 4])
    differs = whole.shape == (3, 6, 7) and bool((whole[0] - whole[1]).abs().max() > 1e-6)
    assert_equal(differs, True, "Logits (3, 6, 7), others for another text, no NaN.", name="'they differ'")
    for n, found in zip((1, 4), others, strict=True):
        message = f"The first {n} tokens should have the logits that they have in the whole text."
        assert_close(found, whole[:, :n], message, against="in the whole text")
with check("the same, a short text first", points=0.25):
    short, whole = one_after_another(tokens, seed, [1, 6])
    fresh = torch.as_tensor(one_after_another(tokens, seed, [6])[0])
    differs = fresh.shape == (3, 6, 7) and bool((fresh[0] - fresh[1]).abs().max() > 1e-6)
    assert_equal(differs, True, "Logits (3, 6, 7), others for another text, no NaN.", name="'they differ'")
    message = "After a shorter text a longer one should have the logits that a new model gives it."
    assert_close(whole, fresh, message, against="in a new model")
with check("three texts, each comes out as it does alone, without a leading axis", points=0.25):
    assert_each_alone(run, [(tokens, seed)], own_axes=(1,))
with check("two leading axes, each text comes out as it does alone", points=0.25):
    assert_each_alone(run, [(tokens[:, None, :4].expand(3, 2, 4), seed)], own_axes=(1,))
with check("float64 after .double()", points=0.5):
    found = run(tokens, seed)
    assert_equal(bool(found.std() > 1e-6), True, "Logits are no constant.", name="'they differ'")
    message = "After .double() the logits should be float64."
    assert_equal(str(found.dtype), "torch.float64", message, name="the dtype")
checks_passed("GPT")
### END HIDDEN TESTS


# %% check="GPT_causal" points=2 card="Causal: the logits at position `t` depend on the tokens up to `t` only"
# Hidden checks of GPT: no logits depend on a later token, and all depend on every earlier one.
### BEGIN HIDDEN TESTS
@probe
def changes(seed, tokens):
    torch.manual_seed(seed)
    model, n = GPT(7, 12, 3, 20, 2, 6).double(), len(tokens)
    moved = torch.zeros(n, n, dtype=torch.bool)  # (token that is changed, position)
    with torch.no_grad():
        before = model(tokens[None].clone())
        for t in range(n):
            other = tokens.clone()
            other[t] = (other[t] + 1) % 7
            moved[t] = (model(other[None]) - before)[0].abs().amax(-1) > 1e-9
    return moved


rng = check_rng()
moved = changes(int(rng.integers(1000)), torch.tensor(rng.integers(0, 7, size=5)))
message = (
    "Row: the token that is changed. Column: do the logits at this position move? They should at the "
    "changed position and after it, and nowhere before."
)
expected = torch.ones(5, 5, dtype=torch.bool).triu()
assert_equal(moved, expected, message, name="what moves (NaN counts as unmoved)")
### END HIDDEN TESTS


# %% check="GPT_training" points=1 card=["gradients reach every parameter; the tokens are not changed", "No dropout"]
# Hidden checks of GPT: gradients, tokens unchanged, both modes.
### BEGIN HIDDEN TESTS
@probe
def learn(tokens):
    torch.manual_seed(3)
    model = GPT(7, 12, 3, 20, 2, 6)
    logits = model(tokens)
    F.cross_entropy(logits.flatten(0, -2), tokens.flatten()).backward()
    lost = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    vectors = dict(model.named_parameters()).get("token_embedding.weight")
    lost += [] if vectors is None or vectors.grad[0].any() else ["token_embedding.weight[0]"]
    with torch.no_grad():
        return lost, tokens, logits.detach(), model.eval()(tokens.clone())


tokens = torch.tensor(check_rng().permuted(np.tile(np.arange(6), (4, 1)), axis=1))
lost, after, logits, evaluated = learn(tokens.clone())
message = "Every parameter should get a gradient that is not 0, the vector of token 0 too."
lost = [name for name in lost if not name.endswith("W_k.bias")]  # which softmax does not see
assert_equal(lost, [], message, name="the parameters without one")
assert_equal(after, tokens, "The tokens should be as before after the call.", name="the tokens")
differ = list(np.shape(logits)) == [4, 6, 7] and bool((logits[0] - logits[0, 0]).abs().max() > 1e-6)
assert_equal(differ, True, "Logits (4, 6, 7), others at other positions.", name="'they differ'")
message = "model.eval() should give the logits of training mode. Is there dropout?"
assert_close(evaluated, logits, message, against="in training mode")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Four lines of `forward`: the vectors with their positions; the mask; the loop over `self.blocks`,
# in which `x` becomes the *first* of the two results; norm and output. `torch.from_numpy` makes a
# tensor of a NumPy array. A plain Python list of blocks would hide their parameters from the
# optimiser: that is what `nn.ModuleList` is for. And `[block] * num_layers` is one block, several
# times.
#
# </details>
#
# ### What to check before you train
#
# A model that runs is not a model that is right. Four checks take seconds, and each finds mistakes
# that a loss curve does not show. We need the language of lesson 6 for them, word for word: 160
# sentences of 21 different characters, and texts that are one sentence after the other.

# %% tags=["demonstration"]
adjectives = ["black ", "white ", "old ", "small ", ""]  # lesson 6's language, word for word
nouns = ["cat", "dog", "bird", "animal"]
verbs = ["sleeping", "running", "singing", "tired"]
sentences = [
    f"the {adjective}{noun}{ending} {verb}"
    for adjective in adjectives
    for noun in nouns
    for ending in (" is", "s are")
    for verb in verbs
]
lot = np.random.default_rng(4).permutation(len(sentences))
held_out = [sentences[i] for i in sorted(lot[:16])]  # a tenth: no model of this lesson reads them
in_training = np.array([sentence for sentence in sentences if sentence not in held_out])
characters = sorted(set("\n".join(sentences)))
number_of = {character: i for i, character in enumerate(characters)}
n, vocab_size = 48, len(characters)
d_model, num_heads, d_ff, num_layers = 32, 4, 64, 2


def draw_texts(rng, batch):
    """Texts of n + 1 characters that begin with a line break: (batch, n + 1) tokens."""
    texts = ["\n" + "\n".join(rng.choice(in_training, size=4)) for _ in range(batch)]
    return torch.tensor([[number_of[c] for c in text[: n + 1]] for text in texts])


def as_text(tokens):
    return "".join(characters[i] for i in tokens)


def new_model(seed):
    torch.manual_seed(seed)
    return GPT(vocab_size, d_model, num_heads, d_ff, num_layers, max_len=n + 1)


print(len(sentences), "sentences,", len(held_out), "of them held out:", ", ".join(held_out[:2]), "...")
print(vocab_size, "characters; the beginning of a text:")
print(as_text(draw_texts(np.random.default_rng(0), 1)[0].tolist()))

# %% [markdown]
# **Check 1: the size.** Count the parameters by hand. Attention has four matrices with biases, the
# feed-forward two, a norm two vectors:

# %% tags=["demonstration"]
attention = 4 * (d_model * d_model + d_model)
feed_forward = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
block_size = attention + feed_forward + 2 * (2 * d_model)
by_hand = (
    vocab_size * d_model  # token vectors
    + (n + 1) * d_model  # position vectors
    + num_layers * block_size
    + 2 * d_model  # the last norm
    + d_model * vocab_size  # read-out
)
model = new_model(0)
counted = sum(p.numel() for p in model.parameters())
print(f"a block has {block_size} parameters, the model {by_hand}")
print("the model itself says:", counted)
assert counted == by_hand

# %% [markdown]
# **Check 2: the work.** torch can watch a forward pass and count floating-point operations, a
# multiply and an add as two. **Predict, then run:** for one text of 49 characters, which takes more
# multiply-adds: the scores and weighted sums of attention (lesson 4's $n^2$), or the matrices that
# work on each token by itself?

# %% tags=["demonstration", "guess"]
guess_work = "attention"  # write "attention" or "matrices"

# %% tags=["demonstration"]
length = n + 1
for_each_token = num_layers * (4 * d_model**2 + 2 * d_model * d_ff) + d_model * vocab_size
between_tokens = num_layers * 2 * length**2 * d_model  # QK^T and weights V, all heads together
work_by_hand = length * for_each_token + between_tokens
with FlopCounterMode(display=False) as counter:
    model(torch.zeros(1, length, dtype=torch.long))
print("multiply-adds by hand:", work_by_hand, " torch's counter / 2:", counter.get_total_flops() // 2)
print(f"between tokens: {between_tokens / work_by_hand:.0%} of them")
assert counter.get_total_flops() == 2 * work_by_hand

# %% tags=["demonstration"]
came_out = "attention" if between_tokens > work_by_hand / 2 else "matrices"
why = (
    "Most of the work is in the matrices, at this length. Not counted are softmax, norms, ReLU and the "
    "look-up of the embeddings, which is no multiplication at all."
)
reply("guess_work", guess_work, came_out, why)

# %% [markdown]
# And a training step? The rule of thumb is three times the forward pass: the backward pass costs about
# two of them. The counter says:

# %% tags=["demonstration"]
with FlopCounterMode(display=False) as training_counter:
    logits = model(torch.zeros(1, length, dtype=torch.long))
    next_token_loss(logits, torch.zeros(1, length, dtype=torch.long)).backward()
ratio = training_counter.get_total_flops() / counter.get_total_flops()
print(f"forward and backward / forward: {ratio:.2f}")
assert 2.8 < ratio <= 3

# %% [markdown]
# **Check 3: the first loss.** **Predict, then run:** the model is new and knows nothing; there are
# 21 characters. What is its loss?

# %% tags=["demonstration", "guess"]
guess_first_loss = 1.0  # write the loss in nats

# %% tags=["demonstration"]
fresh_texts = draw_texts(np.random.default_rng(999), 200)  # (200, n + 1): kept for testing
first_losses, copying_losses, sizes_of_logits = [], [], []
to_copy = nn.CrossEntropyLoss()  # a leak: each token is to guess itself
with torch.no_grad():
    for seed in range(5):
        logits = new_model(seed)(fresh_texts)
        first_losses.append(next_token_loss(logits, fresh_texts).item())
        copying_losses.append(to_copy(logits.mT, fresh_texts).item())
        sizes_of_logits.append(logits.var(dim=-1).mean().item())
print(f"ln {vocab_size} = {math.log(vocab_size):.2f}")
print("first losses, 5 seeds:", np.round(first_losses, 1))
print("variance of the logits, mean of 5 seeds:", np.round(np.mean(sizes_of_logits), 1))
print("the same, with targets that leak:", np.round(copying_losses, 1))
loud = new_model(0)
with torch.no_grad():
    loud.output.weight.mul_(20)
    loud_loss = next_token_loss(loud(fresh_texts), fresh_texts).item()
print(f"a new model whose output.weight is 20 times as large: {loud_loss:.0f}")
assert all(0 < loss - math.log(vocab_size) < 0.5 for loss in first_losses) and loud_loss > 6
assert all(abs(loss - math.log(vocab_size)) < 0.5 for loss in copying_losses)
assert abs(np.mean(sizes_of_logits) - 1 / 3) < 0.03

# %% tags=["demonstration"]
why = "To guess 1/21 for each character costs ln 21, and a new model guesses nearly so."
reply("guess_first_loss", guess_first_loss, round(float(np.mean(first_losses)), 1), why, within=0.3)

# %% [markdown]
# Equal guesses cost $-\ln \frac1V = \ln V$. A new model is a little above it, since its logits are
# not quite equal: for normal logits of variance $\sigma^2$ the excess is about $\sigma^2/2$ (here
# $\sigma^2 \approx 1/3$). A first loss far **above** $\ln V$: the start values are too large, and
# the first hundred steps only take them back. Far **below**: the model is not new, or the mean is
# taken over more than was summed. A *leak* does not show here: a new model cannot use it yet. It
# shows later, in a loss that falls below what is possible.
#
# **Check 4: the gradient.** `backward` is right if its numbers are the slope of the loss. The slope
# can be measured without it: move *one* parameter a little up and down, and divide,
# $\frac{L(w + h) - L(w - h)}{2h}$. In float64, since two nearly equal numbers are subtracted.

# %% tags=["demonstration"]
precise = new_model(0).double()
texts = fresh_texts[:2]
next_token_loss(precise(texts), texts).backward()
rng = np.random.default_rng(0)
worst, h = 0.0, 1e-5
for parameter in precise.parameters():
    place = tuple(int(rng.integers(size)) for size in parameter.shape)  # one number of each
    losses = []
    with torch.no_grad():
        for step in (h, -2 * h, h):  # up, down, and back again
            parameter[place] += step
            losses.append(next_token_loss(precise(texts), texts).item())
    slope = (losses[0] - losses[1]) / (2 * h)
    worst = max(worst, abs(slope - parameter.grad[place].item()))
print(len(list(precise.parameters())), "parameters, one number of each:")
print("largest difference between slope and gradient below 1e-8:", worst < 1e-8)
assert worst < 1e-8

# %% [markdown]
# It agrees for a part of every block. What would it have found? A `.detach()` or `.data` in the
# wrong place, an operation in NumPy: the loss stays right, and the gradient is not its slope. What
# can it *not* find? Anything that is wrong in the loss itself. A missing mask has a perfect
# gradient. For that there is lesson 6's detector. It wants a layer of vectors, and a GPT takes
# tokens; so we put a module in the place of its embedding that hands out the detector's vectors:


# %% tags=["demonstration"]
class Given(nn.Module):
    """An embedding that gives these vectors, whatever the tokens are."""

    def __init__(self, vectors):
        super().__init__()
        self.vectors = vectors

    def forward(self, tokens):
        return self.vectors


def as_layer(model):
    """Vectors (n, d_model) to logits (n, vocab_size), through the model's own forward."""
    model = copy.deepcopy(model)

    def layer(X):
        model.token_embedding = Given(torch.tensor(X))
        with torch.no_grad():
            return model(torch.zeros(len(X), dtype=torch.long)).numpy()

    return layer


leaks = leaks_future(as_layer(precise), 10, d_model, np.random.default_rng(0))
print("leaks the future:", leaks)
assert not leaks

# %% [markdown]
# ## 4. One step of training
#
# Everything that a training loop does, it does in one step, many times:
#
# 1. forget the gradients of the last step (torch **adds** new ones to what lies on `.grad`);
# 2. compute the loss, then its gradients;
# 3. **clip**: if the total norm of all gradients, $\|g\| = \sqrt{\sum_i g_i^2}$ over every number of
#    every parameter, is above `max_norm`, scale *all* of them by `max_norm` $/\ \|g\|$. The
#    direction stays; one strange batch cannot throw the model far away;
# 4. let the optimiser move the parameters.
#
# By hand: two parameters with the gradients $(3)$ and $(4)$, `max_norm = 1`. The total norm is 5,
# and they become $(0.6)$ and $(0.8)$. Clipped one by one they would be $(1)$ and $(1)$: another
# direction. With `max_norm = 10` they stay as they are.

# %% [markdown]
# ### Exercise 3: `training_step`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 15-20 minutes on it.
#
# - `model`: any module from tokens `(..., n)` to logits `(..., n, vocab)`, not only a `GPT`. It is
#   called **once**, on the whole text, and left in its mode (`train` or `eval`).
# - `optimizer`: any `torch.optim` optimiser; it holds the model's trainable parameters. Make **one**
#   step of it.
# - The loss is your `next_token_loss(logits, tokens)`.
# - The total gradient norm is clipped to `max_norm`, a number above 0: scaled down when it is
#   larger, left alone when it is not. `torch.nn.utils` has a function for it, or write the
#   formula. A difference of $10^{-5}$ of the size is rounding.
# - Gradients that lie on trainable parameters when the step is called have no influence.
# - Returns the loss **before** the step, a Python `float`.
# - Checked when graded: a parameter without `requires_grad` is left alone; other optimisers than
#   plain gradient descent; the tokens are not changed. No errors are graded.


# %% answer="training_step"
def training_step(model, optimizer, tokens, max_norm=1.0):
    """One optimiser step on next_token_loss, with the total gradient norm clipped.

    Args:
        model: module from tokens (..., n) to logits (..., n, vocab).
        optimizer: holds the model's trainable parameters.
        tokens: (..., n) integers.
        max_norm: the largest total norm of the gradients.

    Returns:
        The loss before the step, a Python float.
    """
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    loss = next_token_loss(model(tokens), tokens)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()
    ### END SOLUTION


# %% check="training_step" points=4 means="One call makes one clipped move, and only the texts of this call decide where to." card=["It is called **once**, on the whole text, and left in its mode", "The loss is your `next_token_loss(logits, tokens)`", "scaled down when it is larger, left alone when it is not", "Gradients that lie on trainable parameters when the step is called have no influence", "Returns the loss **before** the step, a Python `float`"]
@probe
def one_step(parameters, tokens, max_norm, old=()):
    calls = []
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 7)).eval()
    model.register_forward_pre_hook(lambda part, given: calls.append(list(given[0].shape)))
    model.load_state_dict(dict(zip(("0.weight", "1.weight", "1.bias"), parameters)))
    for parameter, gradient in zip(model.parameters(), old):
        parameter.grad = gradient.clone()
    loss = training_step(model, torch.optim.SGD(model.parameters(), lr=0.5), tokens, max_norm)
    return loss, torch.cat([value.detach().flatten() for value in model.parameters()]), calls, model.training


rng = check_rng()
parameters, old = ([torch.tensor(rng.normal(size=s)).float() for s in ((7, 5), (7, 5), (7,))] for _ in range(2))
tokens = torch.tensor(rng.integers(0, 7, size=(3, 6)))
E, W, b = leaves = [value.clone().requires_grad_() for value in parameters]
loss_before = F.cross_entropy(F.linear(E[tokens], W, b)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
gradient = torch.cat([one.flatten() for one in torch.autograd.grad(loss_before, leaves)])
start, norm = torch.cat([value.flatten() for value in parameters]), float(gradient.norm())
near = {"rtol": 1e-4, "atol": 1e-5, "name": "the parameters after the step"}
loss, after, calls, trains = one_step(parameters, tokens, 10 * norm)
with check("a step that needs no clipping", points=1):
    message = "The norm is below max_norm: each parameter moves by minus rate times gradient. Are zero_grad, backward and step in this order?"
    assert_close(after, start - 0.5 * gradient, message, **near)
with check("the loss before the step, a float", points=0.75):
    assert_equal(type(loss).__name__, "float", "The result should be a Python float.", name="the kind")
    assert_close(loss, loss_before.item(), "The result should be next_token_loss BEFORE the step.", name="the loss", rtol=1e-4)
with check("one call, on the whole text; the mode stays", points=0.25, side=True):
    message = "The model is called once, on the whole text of shape (3, 6)."
    assert_equal(calls, [[3, 6]], message, name="the shapes of the model's calls")
    assert_equal(trains, False, "The mode (here: eval) stays.", name="model.training")
with check("clipping", points=1):
    message = "max_norm is half the norm: ALL gradients are scaled by one half, after backward and before the update."
    assert_close(one_step(parameters, tokens, 0.5 * norm)[1], start - 0.25 * gradient, message, **near)
with check("old gradients have no influence", points=1):
    moved = bool((after - start).abs().max() > 1e-6 and after.std() > 1e-3)
    assert_equal(moved, True, "The parameters should move in a step.", name="'they moved, and none is NaN'")
    message = "Gradients lay on the parameters before the call: the step is the one that yours is without them."
    assert_close(one_step(parameters, tokens, 10 * norm, old)[1], torch.as_tensor(after), message, against="without old gradients", **near)
checks_passed("training_step")


# %% check="training_step_steps" points=2 card=["other optimisers than plain gradient descent", "any module from tokens `(..., n)` to logits `(..., n, vocab)`"]
# Hidden checks of training_step: several steps, other optimisers, other leading axes.
### BEGIN HIDDEN TESTS
@probe
def steps(parameters, kind, texts):
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 7)).double()
    model.load_state_dict(parameters)
    if kind == "Adam":
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9 if kind == "momentum" else 0)
    losses = [float(training_step(model, optimizer, tokens, 0.3)) for tokens in texts]
    return torch.tensor(losses), torch.cat([value.detach().flatten() for value in model.parameters()])


rng = check_rng()
sizes = {"0.weight": (7, 5), "1.weight": (7, 5), "1.bias": (7,)}


def compare(kind, *lead):
    """Four steps, with the gradients of the formula given to torch's optimisers."""
    parameters = {name: torch.tensor(rng.normal(size=size)) for name, size in sizes.items()}
    texts = [torch.tensor(rng.integers(0, 7, size=(*lead, 5))) for _ in range(4)]
    E, W, b = leaves = [value.clone().requires_grad_() for value in parameters.values()]
    optimizer = torch.optim.SGD(leaves, lr=0.1, momentum=0.9 if kind == "momentum" else 0)
    optimizer = torch.optim.Adam(leaves, lr=0.05) if kind == "Adam" else optimizer
    losses = []
    for tokens in texts:
        logits = F.linear(E[tokens], W, b)[..., :-1, :]
        losses.append(F.cross_entropy(logits.reshape(-1, 7), tokens[..., 1:].reshape(-1)))
        gradients = torch.autograd.grad(losses[-1], leaves)
        norm = torch.cat([one.flatten() for one in gradients]).norm()
        for leaf, one in zip(leaves, gradients, strict=True):
            leaf.grad = one * (0.3 / norm).clamp(max=1.0)
        optimizer.step()
    message = f"Four steps ({kind}), tokens {(*lead, 5)}, max_norm 0.3: the given optimiser steps once a call."
    expected = {"the losses": torch.stack(losses).detach(), "the parameters": torch.cat([x.detach().flatten() for x in leaves])}
    assert_results(steps(parameters, kind, texts), expected, message, rtol=1e-3, atol=1e-4)


with check("plain gradient descent, four steps", points=0.5):
    compare("SGD", 3)
with check("momentum", points=0.5):
    compare("momentum", 3)
with check("Adam", points=0.5):
    compare("Adam", 3)
with check("no leading axis, and two", points=0.5):
    compare("SGD")
    compare("SGD", 2, 3)
checks_passed("training_step")
### END HIDDEN TESTS


# %% check="training_step_clipping" points=2 card="The total gradient norm is clipped to `max_norm`, a number above 0: scaled down when it is larger, left alone when it is not"
# Hidden checks of training_step: the size and the direction of a clipped step, and the default.
### BEGIN HIDDEN TESTS
@probe
def movement(parameters, tokens, *max_norm):
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 7)).double()
    model.load_state_dict(parameters)
    training_step(model, torch.optim.SGD(model.parameters(), lr=1.0), tokens, *max_norm)
    pairs = zip(parameters.values(), model.parameters(), strict=True)
    return torch.cat([(before - after.detach()).flatten() for before, after in pairs])


rng = check_rng()
sizes = {"0.weight": (7, 5), "1.weight": (7, 5), "1.bias": (7,)}
parameters = {name: torch.tensor(rng.normal(size=size)) for name, size in sizes.items()}
parameters["1.weight"] *= 40  # a gradient far above 1
tokens = torch.tensor(rng.integers(0, 7, size=(4, 6)))
free = torch.as_tensor(movement(parameters, tokens, 1e9))
size = float(free.norm())


def compare(message, *max_norm):
    assert_equal(size > 2, True, "max_norm 1e9: the step is the whole gradient.", name="'it is longer than 2'")
    expected = free * (*max_norm, 1.0)[0] / size
    near = {"rtol": 1e-4, "atol": 1e-5, "against": "with max_norm 1e9, shortened"}
    assert_close(movement(parameters, tokens, *max_norm), expected, message, name="the movement", **near)


with check("a clipped step: the direction of a free one, and the length max_norm", points=0.75):
    compare("max_norm 0.4: the whole step should have the length 0.4.", 0.4)
with check("a max_norm above 1", points=0.5):
    compare(f"max_norm {0.7 * size:.2f}: the whole step should have this length.", 0.7 * size)
with check("max_norm left out: 1", points=0.75):
    compare("max_norm left out: the whole step should have the length 1.")
checks_passed("training_step")
### END HIDDEN TESTS


# %% check="training_step_contract" points=1 card=["a parameter without `requires_grad` is left alone", "the tokens are not changed", "left in its mode (`train` or `eval`)"]
# Hidden checks of training_step: frozen parameters, the mode, the tokens.
### SIDE CONDITION: counts once another check of training_step passes.
### BEGIN HIDDEN TESTS
@probe
def facts(tokens, mode):
    model, modes = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 6), nn.Linear(6, 7)).train(mode), []
    model[1].requires_grad_(False)
    model.register_forward_pre_hook(lambda part, given: modes.append(part.training))
    before = [p.detach().clone() for p in model.parameters()]
    training_step(model, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1), tokens)
    moved = [not torch.equal(p.detach(), old) for p, old in zip(model.parameters(), before)]
    return {"moved": moved, "modes": [*modes, model.training], "tokens": tokens}


tokens = torch.tensor(check_rng().integers(0, 7, size=(3, 6)))
for mode in (True, False):
    expected = {"moved": [True, False, False, True, True], "modes": [mode, mode], "tokens": tokens.clone()}
    message = (
        f"The second layer has requires_grad False: it stays, the others move. The mode (train: {mode}) "
        "stays, in the call of the model too, and so do the tokens."
    )
    assert_equal(facts(tokens.clone(), mode), expected, message, name="what holds after the step")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Six lines, in the order of the list above. `nn.utils.clip_grad_norm_(parameters, max_norm)` clips
# *all* the parameters that it is given as one; so it is called once, with all of them, at the one
# moment when the new gradients are there and the optimiser has not used them yet. `loss.item()`
# makes a float of a tensor.
#
# </details>
#
# ### Overfit one batch first
#
# Before the long training, the short one: **one** batch of two texts, again and again. A model that
# cannot learn two texts by heart will not learn a language.
#
# **Predict, then run.** Both texts begin with a line break and "the "; then they part. How small can the
# loss on the two become, as a mean over their 48 predictions each?

# %% tags=["demonstration", "guess"]
guess_two_texts = 0.0  # write the smallest possible loss, in nats


# %% tags=["demonstration"]
def overfit(seed, rate, steps=80):
    texts = draw_texts(np.random.default_rng(seed), 2)
    model = new_model(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)  # fused: less time a step
    losses = [training_step(model, optimizer, texts) for _ in range(steps)]
    same = (texts[0] == texts[1]).tolist()
    shared = same.index(False)  # where the texts part
    return losses[-1], 1 / n * math.log(2), shared


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
for seed in range(5):
    last, best, shared = overfit(seed, rate=1e-2)
    print(f"seed {seed}: loss {last:.4f}, the best possible {best:.4f} (alike up to {shared})")
    assert last < best + 0.03
slow, best, _ = overfit(0, rate=1e-4)
print(f"with a rate a hundred times smaller: {slow:.2f}")
assert slow > 1
why = "Where the two texts part, each of two characters is right half of the time: ln 2, once in 48 predictions."
reply("guess_two_texts", guess_two_texts, round(best, 4), why, within=0.002)

# %% [markdown]
# A loss that stops far above this says "something is broken", in two seconds and not after a night.
# The last line is the control: with a rate that is too small the check fails too. It does not say
# *what* is broken.
#
# ## 5. Down to the floor
#
# Now lesson 6's language: 144 sentences, all equally likely (16 of its 160 are held out). Its **floor**
# is known, the loss of somebody who knows the true probability of every next character. Beside it
# three controls. The best that can be done with the **last character alone**: a table of pairs, counted
# in 2,000 texts. With the last character and its **place** in the text: a table for each place. And the
# same model **without attention**, trained the same way: its blocks have only their feed-forward part.

# %% tags=["demonstration"]
beginnings = {}  # how many of the sentences begin so
for sentence in in_training:
    line = sentence + "\n"
    for k in range(len(line) + 1):
        beginnings[line[:k]] = beginnings.get(line[:k], 0) + 1


def smallest_losses(text):
    """-ln of the true probability of each character after the first: (n,)."""
    losses, so_far = [], ""
    for character in text[1:]:
        losses.append(math.log(beginnings[so_far] / beginnings[so_far + character]))
        so_far = "" if character == "\n" else so_far + character
    return np.array(losses)


floor = np.mean([smallest_losses(as_text(tokens)) for tokens in fresh_texts.tolist()])
many = draw_texts(np.random.default_rng(5), 2000)
pairs = torch.ones(vocab_size, vocab_size)  # counts begin at 1: no pair is impossible
pairs.index_put_((many[:, :-1].flatten(), many[:, 1:].flatten()), torch.tensor(1.0), accumulate=True)
pair_loss = next_token_loss((pairs / pairs.sum(1, keepdim=True)).log()[fresh_texts], fresh_texts)
place = torch.arange(n).expand(len(many), n)
placed = torch.full((n + 1, vocab_size, vocab_size), 0.01)  # a table of pairs for each place
where = (place.flatten(), many[:, :-1].flatten(), many[:, 1:].flatten())
placed.index_put_(where, torch.tensor(1.0), accumulate=True)
guesses = (placed / placed.sum(-1, keepdim=True)).log()[torch.arange(n + 1), fresh_texts]
place_loss = next_token_loss(guesses, fresh_texts).item()
print(f"no knowledge {math.log(vocab_size):.2f}, table of pairs {pair_loss.item():.2f}, ", end="")
print(f"table of place and character {place_loss:.2f}, floor {floor:.3f}")


# %% [markdown]
# ### One more exercise: `train`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10-15 minutes on it.
#
# The loop around your step: `train(model, optimizer, draw, steps)`.
#
# - `draw()` gives the texts of one step; call it **once a step**, and take one `training_step` on what it
#   gives.
# - The learning rate is the optimiser's own in the first half. In the second half it falls to 0 in a
#   straight line, which takes the noise of single batches out of the end: in step $s$, counted from 0,
#   it is the optimiser's own times $\min(1,\ 2 (\text{steps} - s) / \text{steps})$. A rate stands in
#   `group["lr"]` of each `group` in `optimizer.param_groups`.
# - Returns the losses of all steps, a list of `float`, in order.


# %% answer="train"
def train(model, optimizer, draw, steps):
    """Training steps on fresh texts, with a rate that falls to 0 in the second half.

    Args:
        model: module from tokens (..., n) to logits (..., n, vocab).
        optimizer: holds the model's parameters, with the learning rate of the first half.
        draw: a function without arguments; each call gives the tokens of one step.
        steps: how many steps; draw is called once in each.

    Returns:
        The losses before each step, a list of Python floats.
    """
    ### BEGIN SOLUTION
    rates = [group["lr"] for group in optimizer.param_groups]
    losses = []
    for step in range(steps):
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate * min(1.0, 2 * (steps - step) / steps)
        losses.append(training_step(model, optimizer, draw()))
    return losses
    ### END SOLUTION


# %% check="train" points=2 means="Your loop takes one step on each batch, and the rate falls to 0 at the end." card=["call it **once a step**, and take one `training_step` on what it", "In the second half it falls to 0 in a straight line", "Returns the losses of all steps"]
@probe
def trained(batches, rates):
    """Your loop, with a step in place of yours that only notes what it is given."""
    import inspect

    model = nn.Sequential(*[nn.Linear(2, 2) for _ in rates])
    groups = [{"params": part.parameters(), "lr": rate} for part, rate in zip(model, rates)]
    optimizer, waiting, tokens_of, rates_of = torch.optim.SGD(groups), list(batches), [], []

    def noted(model, optimizer, tokens, max_norm=1.0):
        tokens_of.append(tokens)
        rates_of.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()  # nothing has a gradient: it moves nothing
        return 1 / len(rates_of)

    names, own = inspect.unwrap(train).__globals__, training_step
    names["training_step"] = noted
    try:
        losses = train(model, optimizer, lambda: waiting.pop(0), len(batches))
    finally:
        names["training_step"] = own
    return losses, tokens_of, rates_of, len(waiting)


generator = torch.Generator().manual_seed(int(check_rng().integers(1_000_000)))
batches = list(torch.randint(0, 5, (6, 3, 8), generator=generator))
losses, tokens_of, rates_of, left = trained(batches, (4.0,))
with check("a step on each draw", points=0.75):
    message = "Six steps, each on a new draw(), in their order: the tokens of all steps."
    assert_equal(len(tokens_of), 6, "Six steps were asked for.", name="how many were made")
    assert_equal(torch.stack(tokens_of), torch.stack(batches), message)
    assert_equal(left, 0, "draw() is called once a step.", name="texts that nobody drew")
with check("the losses of all steps", points=0.5):
    message = "The steps gave 1, 1/2, 1/3, 1/4, 1/5 and 1/6: a list of these, in order."
    assert_close(losses and torch.tensor(losses), 1 / torch.arange(1.0, 7), message)
with check("the rates of all steps", points=0.75):
    message = "The rates of six steps are 4, 4, 4, 4, 8/3 and 4/3 (the own one times 1, 1, 1, 1, 2/3, 1/3)."
    assert_close(np.array(rates_of), np.array([[4.0], [4], [4], [4], [8 / 3], [4 / 3]]), message)
checks_passed("train")

# %% check="train_rates" points=1 card=["In the second half it falls to 0 in a straight line", "of each `group` in `optimizer.param_groups`"]
# Hidden checks of train: another number of steps, an optimiser with two rates.
### BEGIN HIDDEN TESTS
@probe
def rates_of_steps(steps, rates):
    import inspect

    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    groups = [{"params": part.parameters(), "lr": rate} for part, rate in zip(model, rates)]
    optimizer, used = torch.optim.SGD(groups), []

    def noted(model, optimizer, tokens, max_norm=1.0):
        used.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        return 0.5

    names, own = inspect.unwrap(train).__globals__, training_step
    names["training_step"] = noted
    try:
        train(model, optimizer, lambda: torch.arange(5)[None], steps)
    finally:
        names["training_step"] = own
    return used


def compare(rates):
    for steps in (4, 7):
        fall = [min(1.0, 2 * (steps - step) / steps) for step in range(steps)]
        message = f"{steps} steps from the rates {rates}: the rates of each step."
        assert_close(np.array(rates_of_steps(steps, rates)), np.outer(fall, rates), message)


with check("one rate, four and seven steps", points=0.5):
    compare((0.25, 0.25))
with check("two rates, four and seven steps", points=0.5):
    compare((0.25, 0.5))
checks_passed("train")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Remember the rates before the loop. In each step first set `group["lr"]` of every group, then append
# what `training_step(model, optimizer, draw())` returns. Or let `torch.optim.lr_scheduler.LambdaLR` do it.
#
# </details>
#
# Now train: five models of your own, with your loop and your step, 300 steps each, and five without
# attention. Copies of each are kept on the way.
#
# **Predict, then run.** How near will your five come to the floor? And where will those **without attention**
# stop?

# %% tags=["demonstration", "guess"]
guess_without = 1.2  # write the loss of the models without attention


# %% tags=["demonstration"]
@torch.no_grad()
def fresh_loss(model):
    return next_token_loss(model(fresh_texts), fresh_texts).item()


class NoAttention(nn.Module):
    """In place of attention: nothing comes from other places."""

    def forward(self, x, mask=None):
        return torch.zeros_like(x), None


def trained_model(seed, attention=True, steps=300):
    """A new model after your loop, its losses, and copies of it on the way."""
    model, rng = new_model(seed), np.random.default_rng(seed)
    if not attention:
        for block in model.blocks:
            block.attention = NoAttention()
    line = enumerate(progress(steps, f"seed {seed}" if attention else f"no attention, seed {seed}"))
    copies = {}

    def draw():
        step, _ = next(line)
        if step in (0, 50, 100):
            copies[step] = copy.deepcopy(model)
        return draw_texts(rng, 16)

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    losses = train(model, optimizer, draw, steps)
    next(line, None)  # the line of progress says that it is done
    return model, losses, {**copies, steps: model}


# %% tags=["demonstration", "nbval-ignore-output"] seconds=20
# Trained numbers: they may differ in the last digits on another machine.
models, curves, on_the_way = zip(*(trained_model(seed) for seed in range(5)))
fresh = [fresh_loss(model) for model in models]
blind_models, blind_curves, _ = zip(*(trained_model(seed, attention=False) for seed in range(5)))
blind = [fresh_loss(model) for model in blind_models]
print("losses on fresh texts, 5 seeds:", np.round(fresh, 3), f"floor {floor:.3f}")
print("without attention, 5 seeds:    ", np.round(blind, 3), f"place and character {place_loss:.3f}")
assert all(floor - 0.005 < loss < floor + 0.06 for loss in fresh)
assert all(abs(loss - place_loss) < 0.1 for loss in blind)
assert place_loss < pair_loss - 0.3 and max(fresh) < min(blind) - 0.4
why = "They know the last character and its place, and end where a table of these two ends."
reply("guess_without", guess_without, round(float(np.mean(blind)), 2), why, within=0.1)

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
figure, axes = plt.subplots(figsize=(8.2, 4.0))
for losses, blind_losses in zip(curves, blind_curves):
    axes.semilogy(blind_losses, lw=0.8, color="tab:orange")
    axes.semilogy(losses, lw=0.8, color="tab:blue")
lines = {
    "ln V: no knowledge": math.log(vocab_size),
    "table: last character": pair_loss.item(),
    "table: place, last character": place_loss,
    "the floor": floor,
}
for (name, height), style in zip(lines.items(), (":", "--", "-.", "-")):
    axes.axhline(height, color="black", ls=style, lw=1)
    axes.text(322, 1.03 * height, name, fontsize=9)
axes.text(150, 1.0, "five without attention", color="tab:orange", fontsize=9)
axes.text(190, 0.36, "five with attention", color="tab:blue", fontsize=9)
both_halves = (("without attention", pair_loss.item(), place_loss), ("by attention", place_loss, floor))
for name, above, below in both_halves:
    axes.annotate("", (312, below), (312, above), arrowprops={"arrowstyle": "<->"})
    axes.text(322, math.sqrt(above * below), f"{name}: {above - below:.2f} nats", va="center", fontsize=9)
axes.set(xlabel="training step", ylabel="loss (logarithmic)", xlim=(-8, 460))
axes.set_xticks(range(0, 301, 50))
axes.set_yticks((0.2, 0.3, 0.5, 1, 2, 3), ("0.2", "0.3", "0.5", "1", "2", "3"))
axes.minorticks_off()
figure.tight_layout()
at = (0, 20, 50, 100, 200, 299)
show(
    figure,
    "Figure 1. With attention (blue) all five models come down to the floor. Without it (orange) they stop where a "
    "table of place and last character stands: what is left from there on, only attention brings.",
    "Loss against step, logarithmic. Ten curves begin near 3.2. After some twenty steps they are as good as a table of "
    "the last character, 1.19. Five, without attention, then stay on the line of the table of place and last "
    "character, near 0.7; five, with attention, end just above the floor, near 0.2.",
    text_table(
        np.array([[losses[t] for t in at] for losses in (*curves, *blind_curves)]),
        [f"{kind}, seed {seed}" for kind in ("with", "without") for seed in range(5)],
        [f"step {t + 1}" for t in at],
        corner="loss",
    ),
)

# %% [markdown]
# The five models end within a few hundredths of the floor, from different starts. What is left is
# probability on characters that the grammar forbids, on sentences that were held out, and unequal chances.
#
# So of the way from a table of the last character (1.19) to the floor (0.2) about half needs no attention:
# every text begins with "the", and the place says roughly where in a sentence one is. The other half comes
# from the characters before the last one, which in this model only attention can bring. It does not take much: a table of the last **four** characters, counted in the same texts without any place, gets 0.21 as well
# (outside this notebook). A model that names the next character of this language needs no more.
#
# **And sentences that it has never read?** 16 were held out. Somebody who has learnt the 144 by heart gives
# them nothing at all; somebody who has understood the grammar and does not notice what is missing gives
# each 1 in 160, a loss of 5.08 nats for the sentence.

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
@torch.no_grad()
def nats(model, lines):
    """What each sentence costs, from line break to line break, in nats."""
    texts = [torch.tensor([[number_of[c] for c in f"\n{line}\n"]]) for line in lines]
    return np.array([next_token_loss(model(t), t).item() * (t.shape[1] - 1) for t in texts])


unread = [nats(model, held_out) for model in models]
read = [nats(model, in_training[:40]) for model in models]
print("nats for a sentence, mean of each model")
print("  read in training:", np.round([losses.mean() for losses in read], 1), "(1 in 144: 4.97)")
print("  held out:        ", np.round([losses.mean() for losses in unread], 1), "(1 in 160: 5.08)")
for losses, of_read in zip(unread, read):
    assert 5.08 + 0.2 < losses.mean() < 12 and of_read.mean() < 5.5

# %% [markdown]
# In between. A held-out sentence costs more than one that was read, and far less than a text at random,
# some 80 nats: the models put it together from parts, and have noticed that it never came. A loss near
# the floor does not say which of the two a model does.

# %% [markdown]
# ## 6. Writing: one distribution, three knobs
#
# The model gives logits; a text needs one token. `greedy_decode` of lesson 9 took the largest. One
# can also **draw** from the softmax, as lesson 6 did. Between the two lie three knobs. All of them
# at work on one distribution, by hand: five words may come after "the black cat is", with the
# logits $\ln$ of 8, 4, 2, 1, 1.
#
# | weights | sleeping | running | singing | tired | blue |
# |---|---|---|---|---|---|
# | softmax: 8, 4, 2, 1, 1 of 16 | 0.500 | 0.250 | 0.125 | 0.0625 | 0.0625 |
# | **temperature** 0.5: logits / 0.5, so squares: 64, 16, 4, 1, 1 of 86 | 0.744 | 0.186 | 0.047 | 0.012 | 0.012 |
# | temperature 2: square roots, of 8.243 | 0.343 | 0.243 | 0.172 | 0.121 | 0.121 |
# | **top-k** 2: the two largest, of 12 | 0.667 | 0.333 | 0 | 0 | 0 |
# | **top-p** 0.8: 0.5 + 0.25 < 0.8, so the third is needed too | 0.571 | 0.286 | 0.143 | 0 | 0 |
# | top-k 2, then top-p 0.6 of *what is left*: 0.667 is enough | 1 | 0 | 0 | 0 | 0 |
#
# A positive temperature other than 1 changes every ratio but 1, and removes nothing. Top-k (Fan, Lewis and Dauphin, 2018) keeps a
# number of tokens, whatever they weigh. Top-p, or *nucleus* sampling (Holtzman and others, 2020)
# keeps a share of the probability, however many tokens that takes: one where the model is sure, many
# where it is not.

# %% [markdown]
# ### Short answer 2: `answer_top_p`
#
# The last line of the table once more, in the other order: first top-p 0.6 on 8, 4, 2, 1, 1 of 16,
# then top-k 2. How many tokens stay, and what is the first one's probability?
#
# - a) One token; 1.
# - b) Two tokens; 0.5.
# - c) Two tokens; 0.667.
# - d) Three tokens; 0.571.

# %% answer="answer_top_p"
### BEGIN SOLUTION
answer_top_p = "c"
### END SOLUTION

# %% check="answer_top_p" points=1
check_answer("answer_top_p", answer_top_p)

# %% [markdown]
# ### Exercise 4: `sampling_distribution`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 25-30 minutes on it.
#
# - `logits (vocab,)`, floating torch tensor, may hold `-inf` (at least one is finite). Returns
#   `(vocab,)` torch probabilities, in the *tokens'* order, that sum to 1.
# - First `temperature`: softmax of logits / temperature. `temperature=0` puts all on the largest
#   logit (the first of equals).
# - Then `top_k`: exactly `top_k` tokens stay; of equal logits the lower index stays. A `top_k` above
#   `vocab` keeps all. `None`: nothing happens.
# - Then `top_p`, on what is left **and renormalised**: the smallest set of most likely tokens whose
#   sum is at least `top_p`. The token that crosses `top_p` is in it. Of equal logits the lower index
#   comes first. `None`: nothing happens.
# - What stays is renormalised.
# - `ValueError`: `temperature < 0`; `top_k < 1`; `top_p` outside $(0, 1]$. Also when
#   `temperature=0`.
# - Checked when graded: `-inf`, large logits, float64 stays float64, `logits` is not changed.


# %% answer="sampling_distribution"
def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    """The distribution from which the next token is drawn.

    Args:
        logits: (vocab,), may hold -inf.
        temperature: 0 puts all on the largest logit.
        top_k: how many tokens stay; None keeps all.
        top_p: the smallest set of most likely tokens with at least this sum stays; None keeps all.

    Returns:
        (vocab,) probabilities.

    Raises:
        ValueError: temperature < 0, top_k < 1, top_p outside (0, 1].
    """
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"temperature must not be negative: {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1: {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1: {top_p}")
    if temperature == 0:
        temperature, top_k = 1.0, 1
    values, order = logits.sort(descending=True, stable=True)
    p = torch.softmax((values - values[0]) / temperature, dim=-1)  # the most likely first
    if top_k is not None:
        p = torch.where(torch.arange(len(p)) < top_k, p, 0)
        p = p / p.sum()
    if top_p is not None:
        before = p.cumsum(dim=-1) - p  # the sum of all that are more likely
        p = torch.where(before < top_p, p, 0)
        p = p / p.sum()
    return torch.zeros_like(p).scatter(0, order, p)  # back to the tokens' order
    ### END SOLUTION


# %% check="sampling_distribution" points=4.5 means="The three knobs do what the table says, each alone and one after the other." card=["softmax of logits / temperature. `temperature=0` puts all on the largest logit (the first of equals)", "exactly `top_k` tokens stay; of equal logits the lower index stays", "the smallest set of most likely tokens whose sum is at least `top_p`", "`ValueError`: `temperature < 0`; `top_k < 1`; `top_p` outside $(0, 1]$. Also when `temperature=0`"]
# The table above, with the words in another order: blue, running, sleeping, tired, singing.
def compare(weights, message, *knobs, logits=(1.0, 4.0, 8.0, 1.0, 2.0)):
    expected = torch.tensor(weights).float() / sum(weights)
    found = sampling_distribution(torch.tensor(logits).log(), *knobs)
    assert_close(found, expected, f"(temperature, top_k, top_p) = {knobs}: {message}")


with check("temperature", points=0.5):
    compare([1, 4, 8, 1, 2], "the softmax of the logits.", 1.0)
    compare([1, 16, 64, 1, 4], "the softmax of the logits divided by the temperature.", 0.5)
with check("temperature 0", points=0.5):
    compare([0, 1, 0, 0], "all on the largest logit, the first of equals.", 0, logits=(1.0, 3.0, 3.0, 2.0))
with check("top_k", points=0.5):
    compare([0, 4, 8, 0, 0], "the two largest stay, in their places, and sum to 1.", 1.0, 2)
with check("top_k where logits are equal", points=0.25):
    compare([1, 4, 8, 0, 2], "exactly four stay; of the equal tokens 0 and 3 the lower index.", 1.0, 4)
with check("top_k above vocab", points=0.25):
    compare([1, 4, 8, 1, 2], "all stay.", 1.0, 9)
with check("top_p", points=0.75):
    message = "0.5 + 0.25 is below 0.8: the third token crosses it, and is in the set. What stays is renormalised."
    compare([0, 4, 8, 0, 2], message, 1.0, None, 0.8)
with check("a sum of exactly top_p, equal logits", points=0.25):
    message = "two of four equal tokens sum to AT LEAST 0.5, those of the lower indices."
    compare([1, 1, 0, 0], message, 1.0, None, 0.5, logits=(1.0, 1.0, 1.0, 1.0))
with check("one after the other", points=1):
    message = "top_k leaves 0.667 and 0.333, renormalised; for top_p 0.6 the first is enough."
    compare([0, 0, 1, 0, 0], message, 1.0, 2, 0.6)
    compare([0, 0, 1, 0, 0], "0.744 for the first: top_p 0.7 keeps it alone.", 0.5, None, 0.7)
with check("values out of range", points=0.5, side=True):
    for knobs in ((-1.0,), (1.0, 0), (0, 0), (1.0, None, 0.0), (1.0, None, 1.1), (0, None, 1.1)):
        with assert_raises(ValueError, f"(temperature, top_k, top_p) = {knobs} should be a ValueError."):
            sampling_distribution(torch.zeros(3), *knobs)
checks_passed("sampling_distribution")


# %% check="sampling_distribution_cases" points=5 card=["exactly `top_k` tokens stay; of equal logits the lower index stays. A `top_k` above `vocab` keeps all", "Then `top_p`, on what is left **and renormalised**: the smallest set of most likely tokens whose sum is at least `top_p`", "Of equal logits the lower index comes first"]
# Hidden checks of sampling_distribution: each knob on random logits, then two of them and all.
### BEGIN HIDDEN TESTS
def by_hand(logits, temperature, top_k=None, top_p=None):
    """The same, token by token."""
    p = torch.softmax(logits.double() / temperature, -1)
    kept = sorted(range(len(p)), key=lambda i: (-float(logits[i]), i))[:top_k]
    share, total, count = p[kept] / p[kept].sum(), 0.0, 0
    while top_p is not None and top_p < 1 and total < top_p:
        total, count = total + float(share[count]), count + 1
    kept = kept[:count] if count else kept
    result = torch.zeros(len(p)).double()
    result[kept] = p[kept] / p[kept].sum()
    return result.float()


rng = check_rng()
logits = torch.tensor(rng.normal(size=9)).float()
equal = logits.clone()
equal[[2, 5, 8]] = equal[4].item()
many = (2 * torch.tensor(rng.normal(size=200))).round().float()  # many equal ones


def compare(given, *knobs):
    said = f"{len(given)} tokens, (temperature, top_k, top_p) = {knobs}: first the temperature, then top_k, then top_p."
    assert_close(sampling_distribution(given.clone(), *knobs), by_hand(given, *knobs), said)


def each_top_p(given, temperature, top_k=None):
    """A top_p for one, two ... tokens, well between two sums."""
    p = by_hand(given, temperature, top_k).sort(descending=True).values
    for count in range(1, int((p > 0).sum())):
        compare(given, temperature, top_k, float(p[: count - 1].sum() + 0.6 * p[count - 1]))


with check("temperature 0, the first of equals", points=0.25):
    message = "Temperature 0, several largest logits: all on the first of them."
    tied = torch.where(logits > logits.median(), 1.5, logits)
    expected = F.one_hot((tied == 1.5).nonzero()[0, 0], 9).float()
    assert_close(sampling_distribution(tied.clone(), 0), expected, message)
with check("top_k, different logits", points=0.5):
    for top_k in (1, 3, 8, 9):
        compare(logits, 1.0, top_k)
with check("top_k above vocab", points=0.25):
    compare(logits, 1.0, 12)
with check("top_k where logits are equal", points=0.25):
    compare(equal, 1.0, 4)
    compare(many, 1.0, 120)
with check("top_p, different logits", points=1):
    each_top_p(logits, 1.0)
with check("top_p where logits are equal", points=0.25):
    each_top_p(equal, 1.0)
with check("top_p = 1", points=0.25):
    compare(logits, 1.0, None, 1.0)
with check("temperature, then top_k", points=0.25):
    compare(logits, 0.5, 3)
    compare(logits, 2.0, 3)
with check("temperature, then top_p", points=0.75):
    each_top_p(logits, 0.5)
    each_top_p(logits, 2.0)
with check("top_k, then top_p", points=0.75):
    each_top_p(logits, 1.0, 4)
with check("temperature, then top_k, then top_p", points=0.5):
    each_top_p(logits, 2.0, 5)
checks_passed("sampling_distribution")
### END HIDDEN TESTS


# %% check="sampling_distribution_numbers" points=2 card=["may hold `-inf` (at least one is finite)", "`-inf`, large logits, float64 stays float64, `logits` is not changed"]
# Hidden checks of sampling_distribution: -inf, large logits, float64, the argument.
### BEGIN HIDDEN TESTS
@probe
def afterwards(logits, *knobs):
    sampling_distribution(logits, *knobs)
    return [logits, *knobs]


logits = torch.tensor(check_rng().normal(size=7)).float()
with check("-inf, also with temperature 0, with top_k and with top_p = 1", points=0.5):
    some = logits.clone()
    some[[0, 3]] = -math.inf
    message = "Two of seven logits are -inf: a probability of 0 there, and no NaN."
    for knobs in ((1.0,), (2.0, 6), (1.0, None, 1.0)):
        expected = torch.softmax(some / knobs[0], -1)
        assert_close(sampling_distribution(some.clone(), *knobs), expected, f"{message} {knobs}")
    largest = F.one_hot(some.argmax(), 7).float()
    assert_close(sampling_distribution(some.clone(), 0), largest, f"{message} Temperature 0.")
message = "Logits 9999, 10000, -10000, 9998: it should be the softmax, without NaN."
large = torch.tensor([9999.0, 1e4, -1e4, 9998.0])
with check("large logits", points=0.25):
    assert_close(sampling_distribution(large.clone()), torch.softmax(large, -1), message, atol=1e-4)
with check("large logits, a temperature, top_k", points=0.25):
    found = sampling_distribution(large.clone(), 2.5, 3)
    assert_close(found, torch.softmax(large / 2.5, -1), message, atol=1e-4)
with check("temperature 0.5: float64, right to ten digits", points=0.5):
    expected = torch.softmax(logits.double() / 0.5, -1)
    message = "Logits in float64: the softmax should be float64, to ten digits."
    assert_close(sampling_distribution(logits.double(), 0.5), expected, message, precise=True)
with check("the logits stay as they are", points=0.5, side=True):
    for knobs in ((0.5, 3, 0.8), (0, None, None)):
        assert_unchanged(afterwards, logits=logits, temperature=knobs[0], top_k=knobs[1], top_p=knobs[2])
checks_passed("sampling_distribution")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Sort first, and do everything in sorted order: then top-k is a cut at a place, and top-p a
# question to a running sum. Which sum decides whether a token stays, the one with it or the one
# before it? `sort` has an argument `stable` that keeps equals in their order. It also returns where
# each value came from, and with that you put the results back.
#
# </details>
#
# ### The table, by your function
#
# The numbers by hand again, now from `sampling_distribution`, as a picture:

# %% tags=["demonstration"]
five = ["sleeping", "running", "singing", "tired", "blue"]
logits = torch.tensor([8.0, 4.0, 2.0, 1.0, 1.0]).log()
by_setting = {
    "as it is": {},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 2": {"temperature": 2.0},
    "top_k 2": {"top_k": 2},
    "top_p 0.8": {"top_p": 0.8},
    "top_k 2, top_p 0.6": {"top_k": 2, "top_p": 0.6},
    "temperature 0": {"temperature": 0},
}
probabilities = torch.stack([sampling_distribution(logits, **one) for one in by_setting.values()])
assert np.allclose(probabilities[1], [0.744, 0.186, 0.047, 0.012, 0.012], atol=1e-3)
assert np.allclose(probabilities[2], [0.343, 0.243, 0.172, 0.121, 0.121], atol=1e-3)
assert np.allclose(probabilities[4], [0.571, 0.286, 0.143, 0, 0], atol=1e-3)
heatmap(
    probabilities.numpy(),
    list(by_setting),
    five,
    row_label="setting",
    column_label="next word",
    caption="Figure 2. One distribution, three knobs. A temperature above 0 leaves none out; top_k "
    "and top_p cut the right-hand side off and share its part among the rest.",
    alt="Seven rows, one for each setting, five words. With temperature 2 all five have weight; "
    "with top_k 2 the last three are 0; with temperature 0 all lies on sleeping.",
)

# %% [markdown]
# ### What it says
#
# Now let your models speak: as they were after 0, 50, 100 and 300 steps, and at other temperatures.


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained: another machine may draw another text.
@torch.no_grad()
def write(model, count, seed=0, **knobs):
    """Texts of n characters after a line break, each token drawn from the distribution."""
    generator = torch.Generator().manual_seed(seed)
    texts = torch.full((count, 1), number_of["\n"])
    for _ in range(n):
        p = torch.stack([sampling_distribution(row, **knobs) for row in model(texts)[:, -1]])
        drawn = torch.multinomial(p, 1, generator=generator)
        texts = torch.cat([texts, drawn], dim=1)
    return [as_text(row)[1:] for row in texts.tolist()]


vocabulary = {word for sentence in sentences for word in sentence.split()}


def marked(text):
    """The text with brackets around what is no word; its last word may be cut off, and is not judged."""
    *whole, last = text.replace("\n", " \n ").split(" ")
    known = vocabulary | {"\n", ""}
    text = " ".join([word if word in known else f"[{word}]" for word in whole] + [last])
    return text.replace(" \n ", "\n")


def words_right(texts):
    """Share of the whole words that the language has."""
    words = [word for text in texts for word in text.replace("\n", " ").split(" ")[:-1] if word]
    return np.mean([word in vocabulary for word in words]) if words else 0.0


right_words = np.array([[words_right(write(m, 5)) for m in copies.values()] for copies in on_the_way])
print("share of the words that are words, 5 models (rows), after 0, 50, 100 and 300 steps:")
print(right_words.round(2))
assert right_words[:, 0].max() < 0.1 and right_words[:, 3].min() > 0.7
assert (np.diff(right_words, axis=1) > 0.02).all()


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained: another machine may draw another text.
figure, axes = plt.subplots(figsize=(8.2, 4.6))
axes.semilogy(curves[0], lw=1, color="tab:blue")
samples = {step: write(model, 1, seed=1)[0] for step, model in on_the_way[0].items()}
places = (45, 1.75), (95, 0.92), (145, 0.52), (195, 0.31)
for (step, text), place, share in zip(samples.items(), places, right_words[0]):
    said = f"after {step} steps ({share:.0%} words):\n{marked(text)}"
    at = min(step, 299), curves[0][min(step, 299)]
    axes.annotate(said, at, place, family="monospace", fontsize=9, arrowprops={"arrowstyle": "->", "color": "grey"})
axes.set(xlabel="training step", ylabel="loss (logarithmic)", ylim=(0.18, 4.2))
axes.set_yticks((0.2, 0.3, 0.5, 1, 2, 3), ("0.2", "0.3", "0.5", "1", "2", "3"))
axes.minorticks_off()
figure.tight_layout()
show(
    figure,
    "Figure 3. The loss of your first model, and what it writes on the way (temperature 1). In brackets: what "
    "is no word of the language. One text is luck; the share of words is that of five.",
    "; ".join(
        f"after {step} steps, {share:.0%} words: {' / '.join(marked(text).split(chr(10)))}"
        for (step, text), share in zip(samples.items(), right_words[0])
    ),
)

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained: another machine may draw another text.
def spoken(axes, temperature):
    """Four texts at one temperature, a bar for each line break; what is no word is red."""
    texts = write(models[0], 4, seed=3, temperature=temperature)
    axes.axis("off")
    for row, text in enumerate(texts):
        x, words = 0, text.replace("\n", " | ").split(" ")
        for place, word in enumerate(words):  # the last one may be cut off, and is not judged
            known = word in {*vocabulary, "|", ""} or place == len(words) - 1
            axes.text(x, -row, word, family="monospace", fontsize=8, color="black" if known else "tab:red")
            x += len(word) + 1
    axes.set(xlim=(0, 54), ylim=(-3.5, 1))
    return f"{words_right(texts):.0%} of the words that are finished are words of the language."


slider(
    spoken,
    "temperature",
    [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0],
    pictures=[1.0, 2.0],
    caption="Try it. Four texts, from the same random draws at each temperature; red is no word of the language. From "
    "which temperature on do such words appear? What do the four texts have in common at 0?",
    size=(4.1, 1.4),
)

# %% [markdown]
# Your first model has read "the cats ", and writes "are" next, not "is". For that the last space has to learn
# of the **s**, two places back. Which heads look there?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
letters = "\nthe cats "
x, mask = torch.tensor([number_of[c] for c in letters]), torch.from_numpy(causal_mask(len(letters)))
maps = []
with torch.no_grad():
    x = models[0].position_embedding(models[0].token_embedding(x))
    for block in models[0].blocks:
        x, weights = block(x, mask=mask)
        maps.append(weights)  # (num_heads, n, n)
maps, space, plural = torch.stack(maps), letters.rindex(" "), letters.index("s")
at_plural = maps[:, :, space, plural]  # (num_layers, num_heads)
best = divmod(int(at_plural.argmax()), num_heads)
attention_view(
    list(letters.replace("\n", "⏎").replace(" ", "␣")),
    maps,
    first=best,
    caption="All heads on \"the cats \" (⏎ begins the text), from the last space. The head that looks at the s most comes "
    "first; where do the others look? A map is where to look next, and no proof (lesson 9).",
    alt=f"L{best[0]}H{best[1]}, 10 by 10 characters. The last space looks at the s of cats with {at_plural[best]:.2f}.",
)

# %% [markdown]
# ### What greedy writing does
#
# **Predict, then run.** Each of the five trained models writes 20 texts from the same beginning, a
# line break, at four temperatures, and with two of the cuts. At temperature 0: how many *different*
# sentences stand in the 20 texts of a model? A text has room for one or two.

# %% tags=["demonstration", "guess"]
guess_different = 20  # write a number


# %% tags=["demonstration"]
def judged(texts):
    """Share of finished lines that are sentences, and how many different sentences there are."""
    lines = [line for text in texts for line in text.split("\n")[:-1]]
    return np.mean([line in sentences for line in lines]), len(set(lines) & set(sentences))


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
settings = {
    "temperature 0 (greedy)": {"temperature": 0},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 1": {},
    "temperature 2": {"temperature": 2.0},
    "temperature 2, top_k 4": {"temperature": 2.0, "top_k": 4},
    "temperature 2, top_p 0.8": {"temperature": 2.0, "top_p": 0.8},
}
found = {
    name: [judged(write(model, 20, **knobs)) for model in models]
    for name, knobs in settings.items()
}
print(f"{'':26s} finished lines that are sentences   different sentences")
print(f"{'':26s} five models                  mean   (mean)")
for name, results in found.items():
    shares = [share for share, _ in results]
    different = np.mean([count for _, count in results])
    print(f"{name:26s} {'  '.join(f'{share:.2f}' for share in shares)}  {np.mean(shares):.2f}   {different:.1f}")
greedy, cool, plain, hot, hot_k, hot_p = found.values()
means = {name: np.mean([share for share, _ in results]) for name, results in found.items()}
assert all(count == 1 for _, count in greedy) and all(share > 0.9 for share, _ in greedy)
assert all(share > 0.9 and count > 10 for share, count in cool)
assert all(p[0] > h[0] + 0.3 for p, h in zip(plain, hot))
assert all(p[0] > k[0] + 0.15 for p, k in zip(hot_p, hot_k))
assert means["temperature 2, top_p 0.8"] > 0.6 and means["temperature 2, top_k 4"] < 0.4
came_out = max(count for _, count in greedy)
reply("guess_different", guess_different, came_out, "Greedy writing has no choice to make.")

# %% [markdown]
# Greedy writing makes no mistake in its one text, and has one thing to say: the same text, twenty times. The
# language holds 144 sentences for it, all equally likely; greedy shows the one that it meets when it takes the
# likeliest *character* at each place: the beginning that most words share, and where none is shared
# what training noise has put a hair above the others. Drawing at temperature 1 shows the language, with some slips; at 0.5 the slips
# are gone, and the variety is nearly the same. At 2 most lines are broken: twenty wrong characters have
# a small probability each, at every one of 25 places, and one slip breaks a line.
#
# Top-k 4 helps a little, and top-p 0.8 mends most of it. The reason is this language. At most places
# exactly *one* character is right, and top-k 4 keeps three wrong ones; top-p keeps one there, and
# four where four nouns may follow. For another language other knobs are best: they trade mistakes
# against variety, and are set by trying.
#
# ## 7. Is the training step right? Write the test
#
# So far the course has tested you. Now it is the other way round. Here are seven training steps; one is
# right (yours), six are broken. All run without an error.

# %% tags=["demonstration"]
def shifted_loss(model, tokens):
    return next_token_loss(model(tokens), tokens)


def right(model, optimizer, tokens, max_norm=1.0):
    return training_step(model, optimizer, tokens, max_norm)  # yours


def keeps_gradients(model, optimizer, tokens, max_norm=1.0):
    loss = shifted_loss(model, tokens)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


def does_not_clip(model, optimizer, tokens, max_norm=1.0):
    optimizer.zero_grad()
    loss = shifted_loss(model, tokens)
    loss.backward()
    optimizer.step()
    return loss.item()


def clips_each(model, optimizer, tokens, max_norm=1.0):
    optimizer.zero_grad()
    loss = shifted_loss(model, tokens)
    loss.backward()
    for parameter in model.parameters():
        nn.utils.clip_grad_norm_(parameter, max_norm)
    optimizer.step()
    return loss.item()


def freezes_a_layer(model, optimizer, tokens, max_norm=1.0):
    optimizer.zero_grad()
    loss = shifted_loss(model, tokens)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    for parameter in list(model.parameters())[2:18]:  # in our GPT: the first block
        parameter.grad = None
    optimizer.step()
    return loss.item()


def reports_the_loss_after(model, optimizer, tokens, max_norm=1.0):
    right(model, optimizer, tokens, max_norm)
    with torch.no_grad():
        return shifted_loss(model, tokens).item()


def new_optimizer_each_time(model, optimizer, tokens, max_norm=1.0):
    fresh_one = torch.optim.Adam(model.parameters(), lr=optimizer.param_groups[0]["lr"])
    return right(model, fresh_one, tokens, max_norm)


loops = [
    right,
    keeps_gradients,
    does_not_clip,
    clips_each,
    freezes_a_layer,
    reports_the_loss_after,
    new_optimizer_each_time,
]

# %% [markdown]
# Run it: each trains the same new model on the same texts, with Adam, and with a
# `max_norm` of 0.1, so that the right loop clips at nearly every step. Which curves can you tell from
# the first one?

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Trained: the lines of progress come and go.
loop_losses, loop_models = {}, {}
sizes_before = []  # of the gradients of the right loop, before they are clipped


def total_norm(model, tokens):
    """The length of all gradients together."""
    slopes = torch.autograd.grad(shifted_loss(model, tokens), list(model.parameters()))
    return torch.cat([slope.flatten() for slope in slopes]).norm().item()


for step in loops:
    model, rng = new_model(0), np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    losses = loop_losses[step.__name__] = []
    for _ in progress(60, step.__name__):
        texts = draw_texts(rng, 16)
        if step is right:
            sizes_before.append(total_norm(model, texts))
        losses.append(step(model, optimizer, texts, max_norm=0.1))
    loop_models[step.__name__] = model
clipped = sum(size > 0.1 for size in sizes_before)
print("the right loop clips in more than 50 of its 60 steps:", clipped > 50)
assert clipped > 50

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
figure, axes = plt.subplots(figsize=(8.2, 4.2))
styles = ["-", "--", ":", "-.", (0, (1, 4)), (0, (5, 4)), (0, (3, 1, 1, 1, 1, 1))]
ends = {}
for (name, losses), style in zip(loop_losses.items(), styles):
    (line,) = axes.plot(losses, ls=style, lw=2.5 if name == "right" else 1.4)
    ends[name] = np.mean(losses[-5:]), line.get_color()
lowest = 0.0
for name, (end, colour) in sorted(ends.items(), key=lambda one: one[1][0]):  # the names, none on another
    lowest = max(end, lowest + 0.17)
    axes.annotate(name, (59, end), (64, lowest), color=colour, va="center", fontsize=9,
                  arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "relpos": (0, 0.5)})  # fmt: skip
axes.annotate("without the right one beside it,\nnone looks broken", (20, 1.3), (24, 2.2), arrowprops={"arrowstyle": "->"})
axes.set(xlabel="training step", ylabel="loss that the loop reports", xlim=(-2, 88), ylim=(0, 3.4))
axes.set_xticks(range(0, 61, 10))
figure.tight_layout()
blocks_of_five = {name: np.reshape(losses, (-1, 5)).mean(1) for name, losses in loop_losses.items()}
show(
    figure,
    "Figure 4. One right loop, six broken ones. All begin near ln V, all fall, none stops. Without clipping, or "
    "with each parameter clipped by itself, the curve lies close to the right one; one is even lower.",
    "Seven curves of loss against step, from about 3 down to between 0.6 and 1.2 after 60 steps. "
    "Three lie close to one another.",
    text_table(
        np.array([means[[0, 3, 7, 11]] for means in blocks_of_five.values()]),
        list(blocks_of_five),
        ["steps 1-5", "16-20", "36-40", "56-60"],
        corner="mean loss",
    ),
)
assert all(means[-1] < 0.6 * means[0] for means in blocks_of_five.values())
assert all(np.abs(means[3] - 1.35) < 0.3 for means in blocks_of_five.values())
for hidden in ("does_not_clip", "clips_each"):
    assert np.abs(blocks_of_five[hidden] - blocks_of_five["right"]).max() < 0.1

# %% [markdown]
# All seven had the same start and the same texts. (With four other starts and texts, outside this notebook, the two
# curves without a right clip stayed as close: within 0.08; the others were run once.) Why does the missing clip leave hardly a trace,
# although the right loop clipped all the time? Adam divides
# each gradient by its own recent size: make all gradients ten times larger, and Adam does the same. (It is not quite the same when one batch is
# much larger than the others, which is what clipping is for.) With plain gradient descent, SGD, the
# parameters move by exactly $-\text{rate} \cdot g$, and everything shows. So do not look at the
# curve. Look at **one step**, with an optimiser that you can compute by hand:
#
# | measured in one step with SGD, rate 1, `max_norm` 0.1 | should be |
# |---|---|
# | length of the move, all parameters together | 0.1: clipped |
# | parameters that did not move | none |
# | the loss that is returned, minus the loss before | 0 |
# | change of the move when old gradients lay there | 0 |
# | cosine between the move and minus the gradient: its direction | 1 |


# %% tags=["demonstration"]
def one_move(step, old=0.0):
    """The move of every parameter in one step of a fixed new model, and the loss returned."""
    model = new_model(3)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for p in model.parameters():
        p.grad = torch.full_like(p, old)
    plain_descent = torch.optim.SGD(model.parameters(), lr=1.0)
    loss = step(model, plain_descent, fresh_texts[:8], max_norm=0.1)
    return {name: p.detach() - before[name] for name, p in model.named_parameters()}, loss


def as_vector(move):
    return torch.cat([m.flatten() for m in move.values()])


model_3 = new_model(3)
loss_3 = shifted_loss(model_3, fresh_texts[:8])
loss_3.backward()
gradient = torch.cat([p.grad.flatten() for p in model_3.parameters()])
symptoms = {}
for step in loops:
    move, loss = one_move(step)
    dirty, _ = one_move(step, old=1e-3)
    # A bias of the keys never moves (softmax does not see it): it does not count as frozen.
    seen = [m for name, m in move.items() if not name.endswith("W_k.bias")]
    symptoms[step.__name__] = [
        as_vector(move).norm().item(),
        sum(bool(m.abs().max() < 1e-6) for m in seen),
        loss - loss_3.item(),
        (as_vector(dirty) - as_vector(move)).norm().item(),
        F.cosine_similarity(as_vector(move), -gradient, dim=0).item(),
    ]
normal, patterns = symptoms["right"], {}
print(f"{'':26s}  length  still  loss - before  old gradients      direction")
for name, row in symptoms.items():
    odd = ["" if abs(a - b) < 2e-3 else "*" for a, b in zip(row, normal)]
    digits = [3 if abs(value) < 10 else 0 for value in row]
    digits[1] = 0  # a count
    cells = [f"{x:.{d}f}{mark or ' '}" for x, d, mark in zip(row, digits, odd)]
    print(f"{name:26s} {cells[0]:>8s}{cells[1]:>8s}{cells[2]:>13s}{cells[3]:>14s}{cells[4]:>15s}")
    assert any(odd) == (name != "right")
    patterns[name] = tuple(odd)
assert patterns["clips_each"] == patterns["new_optimizer_each_time"] and len(set(patterns.values())) == 6

# %% [markdown]
# A star stands where a number is not that of the right step. Every broken loop has one, after one
# step, and where they stand says what to look for: a wrong length with the right direction is the
# missing clip; a wrong direction, though everything moves, is another rule. (Which rule, the stars do
# not say: the last loop has the same two as `clips_each`.) One setting does not show everything: a step that
# *always* scales to `max_norm`, also up, passes this table. It takes a second `max_norm`, above the
# gradient's norm. That is the difference between **watching** a training and
# **testing** it. Now write such a test, for any step, not only these.

# %% [markdown]
# ### Exercise 5: `judges_step`
#
# Difficulty: ●●●●● &nbsp; Importance: ●●●●● &nbsp; You should spend up to 40-60 minutes on it.
#
# - `step` is somebody's `training_step`: `step(model, optimizer, tokens, max_norm=1.0) -> float`.
# - Returns a Python `bool`: `True` if it does what exercise 3's card asks, `False` if it is broken.
#   A step that raises an error is broken.
# - The step works for any model: it knows nothing of its parts but `model.parameters()`, and any
#   optimiser. So **you** choose the model, the optimiser, the tokens, `max_norm`. Take what shows the
#   most. You may use `next_token_loss`, and all of torch.
# - Right steps are written in different ways, and differ by rounding: $10^{-5}$ of a number is no
#   mistake. (torch's own clipping divides by the norm *plus* $10^{-6}$.)
# - Graded on right steps, and on broken ones of these eight kinds: old gradients are kept, all or
#   some (those of biases alone, for one); no update; the update comes before `backward`; targets
#   are not shifted, or the wrong way; no clipping, or one that also scales small gradients *up*;
#   each parameter is clipped by itself; one layer is frozen, whichever; the loss is that after the step.
# - The check below tries one of each kind. The hidden ones try several of each, and steps that
#   raise an error. NumPy's global random state should be left as it was (torch's moves when layers are
#   built, and may).


# %% answer="judges_step"
def judges_step(step):
    """Whether a training step is right.

    Args:
        step: callable, step(model, optimizer, tokens, max_norm=1.0) -> float.

    Returns:
        A Python bool: True for a right step, False for a broken one.
    """
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(0)
    for max_norm in (0.1, 100.0):  # a step that is clipped, and one that is not
        model = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 11))
        model = model.double().eval()
        for p in model.parameters():
            p.data = torch.randn(p.shape, generator=generator, dtype=torch.float64)
            p.grad = torch.randn(p.shape, generator=generator, dtype=torch.float64)  # in the way
        tokens = torch.randint(11, (3, 7), generator=generator)
        before = [p.detach().clone() for p in model.parameters()]
        loss = next_token_loss(model(tokens), tokens)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        norm = math.sqrt(sum(g.square().sum().item() for g in gradients))
        scale = min(1.0, max_norm / norm)
        try:
            returned = step(model, torch.optim.SGD(model.parameters(), lr=0.5), tokens, max_norm)
        except Exception:
            return False
        if not isinstance(returned, float) or abs(returned - loss.item()) > 1e-4 or model.training:
            return False
        for p, old, g in zip(model.parameters(), before, gradients, strict=True):
            if not torch.allclose(p, old - 0.5 * scale * g, rtol=0, atol=1e-5):
                return False
    return True
    ### END SOLUTION


# %% check="judges_step" points=4.5 means="Your judge tells a right step from a broken one of each of the eight kinds." card=["`True` if it does what exercise 3's card asks, `False` if it is broken", "Returns a Python `bool`", "The check below tries one of each kind"]
@probe
def verdicts(*kinds):
    def made(old="cleared", shift=1, clip="all", frozen=False, update="last", report="before"):
        def loss_of(model, tokens):
            logits = model(tokens)[..., : tokens.shape[-1] - shift, :]
            return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[..., shift:].reshape(-1))
        def step(model, optimizer, tokens, max_norm=1.0):
            optimizer.zero_grad() if old == "cleared" else None
            optimizer.step() if update == "first" else None
            loss = loss_of(model, tokens)
            loss.backward()
            for part in {"all": [model.parameters()], "each": model.parameters(), "none": []}[clip]:
                nn.utils.clip_grad_norm_(part, max_norm)
            if frozen:
                next(model.parameters()).grad.zero_()
            optimizer.step() if update == "last" else None
            return (loss_of(model, tokens) if report == "after" else loss).item()
        return step
    found = [judges_step(made(**kind)) for kind in kinds]
    return [bool(one) for one in found], f"{type(found[0]).__module__}.{type(found[0]).__name__}"


def compare(message, broken):
    names = ["a right step", *(f"a step {what}" for what in broken)]
    named = dict(zip(names, verdicts({}, *broken.values())[0]))
    assert_equal(named, {name: name == names[0] for name in names}, f"{message} The verdict on the right step is True.", name="your verdicts")


with check("the update: a right step and broken ones", points=1):
    broken = {"without an update": {"update": "never"}, "that updates before backward": {"update": "first"}}
    broken["that freezes a layer"] = {"frozen": True}
    compare("Compare EVERY parameter with its place after a right step.", broken)
with check("the loss: a right step and broken ones", points=1):
    compare("A right step returns next_token_loss from before the update.", {"that does not shift": {"shift": 0}, "that returns the loss after it": {"report": "after"}})
with check("clipping: a right step and broken ones", points=1):
    compare("Above max_norm all gradients are scaled alike. Does your optimiser show the size of a gradient?", {"that does not clip": {"clip": "none"}, "that clips each parameter by itself": {"clip": "each"}})
with check("old gradients: a right step and a broken one", points=1):
    compare("Does something lie on .grad when you call the step, other than the new gradient?", {"that keeps old gradients": {"old": "kept"}})
with check("a Python bool", points=0.5, side=True):
    assert_equal(verdicts({})[1], "builtins.bool", "The verdict is Python's True or False, no tensor, no NumPy bool.", name="the kind")
checks_passed("judges_step")


# %% check="judges_step_kinds" points=7.5 card=["old gradients are kept, all or some (those of biases alone, for one); no update; the update comes before `backward`; targets are not shifted, or the wrong way; no clipping, or one that also scales small gradients *up*; each parameter is clipped by itself; one layer is frozen, whichever; the loss is that after the step", "Right steps are written in different ways, and differ by rounding", "A step that raises an error is broken"]
# Hidden checks of judges_step: several broken steps of each kind, beside right ones written in other ways.
### BEGIN HIDDEN TESTS
@probe
def verdicts(*kinds):
    errors = {"ValueError": ValueError, "RuntimeError": RuntimeError, "TypeError": TypeError, "ArithmeticError": ArithmeticError}

    def made(old="none", shift=1, reported=None, clip="torch", clips="between", frozen=None,
             update="last", report="before", clears=False, error=None):  # fmt: skip
        def loss_of(logits, tokens, shift):
            if shift < 0:
                return loss_of(logits.flip(-2), tokens.flip(-1), -shift)
            n, guesses = tokens.shape[-1], logits.log_softmax(-1)
            return -guesses[..., : n - shift, :].gather(-1, tokens[..., shift:, None]).mean()

        def clipped(parameters, max_norm):
            found = [p.grad for p in parameters if p.grad is not None]
            if clip == "torch":
                nn.utils.clip_grad_norm_(parameters, max_norm)
            elif clip == "each":
                for p in parameters:
                    nn.utils.clip_grad_norm_(p, max_norm)
            elif found and clip in ("formula", "up"):
                scale = max_norm / float(torch.cat([g.flatten() for g in found]).norm())
                for g in found:
                    g.mul_(scale if clip == "up" else min(1.0, scale))

        def step(model, optimizer, tokens, max_norm=1.0):
            parameters = list(model.parameters())
            for place, p in enumerate(parameters):
                kept = {"none": False, "all": True, "biases": p.ndim == 1, "all but the first": place > 0,
                        "all but the last": place + 1 < len(parameters)}[old]  # fmt: skip
                p.grad = p.grad if kept else None
            if update == "first":
                optimizer.step()
            logits = model(tokens)
            loss = loss_of(logits, tokens, shift)
            if clips == "early":
                clipped(parameters, max_norm)
            if update != "without backward":
                loss.backward()
            if clips == "between":
                clipped(parameters, max_norm)
            if frozen is not None:
                sizes = [float(p.grad.norm()) if p.grad is not None else 0.0 for p in parameters]
                parameters[frozen if frozen < 1 else sizes.index(max(sizes))].grad = None
            if update == "cleared before":
                optimizer.zero_grad()
            if update not in ("never", "first"):
                optimizer.step()
            if clips == "late":
                clipped(parameters, max_norm)
            if clears:
                optimizer.zero_grad()
            if error:
                raise errors[error]("no")
            logits = model(tokens) if report == "after" else logits
            return loss_of(logits.detach(), tokens, reported or shift).item()

        return step

    def verdict(step):
        try:
            return bool(judges_step(step))
        except NotImplementedError:
            raise
        except Exception as error:
            return type(error).__name__

    return [verdict(made(**kind)) for kind in kinds]


right = {"right": {}, "right, by the formula": {"clip": "formula"}}
of_right = dict(zip(right, verdicts(*right.values()), strict=True))


def compare(option, *values, **others):
    """Right steps, and those that are broken in one thing."""
    broken = [{option: value, **others} for value in values]
    found = of_right | dict(zip([f"{option} = {value}" for value in values], verdicts(*broken), strict=True))
    wanted = dict.fromkeys(right, True) | {f"{option} = {value}": False for value in values}
    message = "The verdict on each right step should be True, and on each broken one False."
    assert_equal(found, wanted, message, name="your verdicts")


message = "Three right steps, of which the third clears the gradients when it is done, and a step without an update."
with check("right steps, one of which clears the gradients at the end", points=0.25):
    found = [*of_right.values(), *verdicts({"clears": True}, {"update": "never"})]
    assert_equal(found, [True, True, True, False], message, name="your verdicts")
with check("right steps, one clips by the formula and clears at the end", points=0.25):
    found = [*of_right.values(), *verdicts({"clears": True, "clip": "formula"}, {"update": "never"})]
    assert_equal(found, [True, True, True, False], message, name="your verdicts")
with check("no update, beside right steps", points=0.5):
    compare("update", "never", "first", "cleared before", "without backward")
with check("the first or the last parameter does not move, beside right steps", points=0.75):
    compare("frozen", 0, -1)
with check("another parameter does not move, beside right steps", points=0.75):
    compare("frozen", 1, -2)
with check("steps that raise a ValueError or a RuntimeError, beside right ones", points=0.25):
    compare("error", "ValueError", "RuntimeError")
with check("steps that raise other errors, beside right ones", points=0.5):
    compare("error", "TypeError", "ArithmeticError")
with check("clipping that is missing, too early or too late, beside right steps", points=0.75):
    compare("clip", "none")
    compare("clips", "early", "late")
with check("each parameter clipped by itself, beside right steps", points=0.75):
    compare("clip", "each")
with check("small gradients scaled up, beside right steps", points=0.5):
    compare("clip", "up")
with check("wrong targets, beside right steps", points=0.5):
    compare("shift", 0, -1)
with check("wrong targets, the right loss returned, beside right steps", points=0.25):
    compare("shift", 0, -1, reported=1)
with check("the loss after the update, beside right steps", points=0.75):
    compare("report", "after")
with check("old gradients kept, all or those of biases, beside right steps", points=0.5):
    compare("old", "all", "biases")
with check("some old gradients kept, beside right steps", points=0.25):
    compare("old", "biases", "all but the first", "all but the last")
checks_passed("judges_step")
### END HIDDEN TESTS


# %% check="judges_step_contract" points=1 card="NumPy's global random state should be left as it was"
# Hidden checks of judges_step: NumPy's random state.
### SIDE CONDITION: counts once another check of judges_step passes.
### BEGIN HIDDEN TESTS
@probe
def states():
    before = np.random.get_state()
    np.random.seed(5)
    expected = np.random.normal(size=4)
    np.random.seed(5)
    judges_step(lambda model, optimizer, tokens, max_norm=1.0: 0.0)
    drawn = np.random.normal(size=4)
    np.random.set_state(before)
    return drawn, expected


drawn, expected = states()
message = "NumPy's global random numbers should go on as without the call."
assert_equal(drawn, expected, message, name="what NumPy draws", against="without the call")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Build a small model (an embedding and a linear layer or two), and random tokens. Compute yourself
# what a right step has to do: the loss, the gradients, their total norm, and where SGD puts each
# parameter. Do that before the step is called, and keep copies. Then call the step, and compare
# with a tolerance.
#
# Go through the eight kinds one by one and ask: would I see it? Is my `max_norm` small enough that
# something is clipped? Have I put something on `.grad` for the step to forget? Do I compare every
# parameter? What if the step raises?
#
# </details>

# %% tags=["demonstration"]
for step in loops:
    print(f"{step.__name__:26s}{judges_step(step)}")
    # The last one is of a ninth kind, which your card does not ask for.
    assert judges_step(step) == (step is right) or step is new_optimizer_each_time

# %% [markdown]
# ## 8. Find the silent bug
#
# A friend trains with this step (the cell is read-only). "It must be right", the friend says,
# "all five lines are there, the clip too, and the curve is the same as yours."


# %% locked="given_friends_step"
def friends_step(model, optimizer, tokens, max_norm=1.0):
    optimizer.zero_grad()
    loss = next_token_loss(model(tokens), tokens)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    loss.backward()
    optimizer.step()
    return loss.item()


# %% tags=["demonstration"]
model, rng = new_model(0), np.random.default_rng(0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
friends_losses = [friends_step(model, optimizer, draw_texts(rng, 16), 0.1) for _ in range(20)]
nearness = np.abs(np.array(friends_losses) - loop_losses["right"][:20]).max()
print("20 steps with Adam, never more than 0.2 from the right curve:", nearness < 0.2)
print("your judge says:", judges_step(friends_step))
assert nearness < 0.2 and not judges_step(friends_step)

# %% [markdown]
# ### Short answer 3: `answer_silent_bug`
#
# What does `friends_step` do wrong?
#
# - a) It forgets to clear the old gradients.
# - b) It returns the loss after the step.
# - c) It clips nothing: when `clip_grad_norm_` is called, the gradients are not there yet.
# - d) It clips twice, so that the step is too short.
#
# Mend it in a cell of your own, until your judge says `True`.

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "c"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# ## 9. What one often reads
#
# | one often reads | what is right | shown in |
# |---|---|---|
# | "The loss falls, so the loop is right." | Six broken loops fall too. | Figure 4 |
# | "A first loss of ln V means that all is well." | It means that nothing is known yet. A leak cannot be used yet, and the six broken loops begin there too. | sections 3 and 7 |
# | "Clipping is always visible." | Adam divides the size of the gradients away: hardly a trace in 60 steps. | Figure 4 |
# | "A gradient check proves the model." | It proves that the gradient belongs to the loss. A wrong loss has a right gradient. | section 3 |
# | "Overfitting is bad." | As an aim. As a first test, on two texts, it is the cheapest there is. | section 4 |
# | "Attention's $n^2$ is where the work is." | Not at this length: the matrices that work on each token do most of it. | section 3 |
# | "The likeliest token at each place gives the best text." | It says the same each time. In large models such a text also repeats itself (Holtzman and others, 2020). | section 6 |
# | "Top-p 0.9 and top-k 40 are the same idea." | Top-k keeps a number, top-p a share. Where the model is sure, top-p keeps one token and top-k still 40. | the table of section 6 |
#
# ### Written answer: `written_debug`
#
# A colleague trains a small GPT on the texts of a project. The first loss is 9.7, with a vocabulary
# of 500 ($\ln 500 = 6.2$). It falls to 1.1 in a night, and the model writes the same sentence again
# and again with `temperature=0`. Answer in 6 to 9 sentences (5 points):
#
# 1. What does the first loss say, and what would you look at?
# 2. Which two checks of this lesson would you have run *before* the night? What does each show?
# 3. Is the repetition a proof that the training went wrong? Which experiment decides?
# 4. The colleague's training step has no clipping. Why may the curve not show it, and how would you
#    show it in one step?

# %% [markdown] written="debug" points=5
# ### BEGIN SOLUTION
# A model that knows nothing and says so costs ln V = 6.2. At 9.7 it is sure of wrong things: the
# start values of the logits are too large, for example because the last norm is missing or the
# output's weights are too big; I would look at the variance of the logits. Before the night I would
# overfit one batch of two texts: if the loss does not come near its smallest value, something in
# the model or the step is broken. And I would test the step with SGD and old gradients on the
# parameters, or check a few gradients against finite differences: the first shows a wrong step, the
# second a gradient that is not the loss's slope. The repetition proves nothing, for greedy writing
# repeats in a well trained model too: at each place it takes the same token. I would draw at
# temperature 1 (or with top-p) and look at how many lines are good and how many are different; if
# those are good, the training was. Without clipping the curve may be the same because Adam divides
# each gradient by its recent size. With SGD and a max_norm far below the gradient's norm, the length of one
# move is rate times max_norm if it is clipped, and larger if it is not.
#
# **Marking scheme** (5 points). 1 point: above ln V means too large logits, sure and wrong (not "too
# little training"), with something to look at. 1 point for each of two checks with what it shows
# (one batch, gradient check, leak detector, test of one step, count of parameters). 1 point: greedy
# repeats by itself; sampling decides. 1 point: Adam hides the size; SGD, or the norm of the move,
# shows it.
# ### END SOLUTION

# %% [markdown]
# ### Puzzle: brackets
#
# A language model that writes code has to know which bracket is still open. In the text, `+1` is an opening bracket and
# `-1` a closing one, never more than two deep. Write down scores with which each **closing** bracket looks at the
# one that it closes, and each opening one at itself. `puzzle_brackets` takes the text `(n,)` and `inside (n,)`: how deep
# each bracket stands, 1 or 2, the same for both brackets of a pair. It returns scores `(n, n)`; the causal mask is
# put over them. The cell below then says at which place each bracket looks: the mean of the places, by weight.
#
# *Nothing is trained here, and nothing is graded: you write the numbers down, and the cell below says what they do.*

# %% tags=["demonstration", "guess"]
puzzle_brackets = lambda text, inside: 900.0 * ((inside == inside[:, None]) & (text == 1)) + 30.0 * np.arange(len(text))  # write lambda text, inside: scores


# %% tags=["demonstration", "puzzle"]
def partners(text):
    open_ones, found = [], []
    for place, bracket in enumerate(text):
        found.append(place if bracket == 1 else open_ones[-1])
        open_ones = [*open_ones, place] if bracket == 1 else open_ones[:-1]
    return found


def looked_at(answer, text):
    inside = np.cumsum(text) + (text == -1)
    scores = np.where(causal_mask(len(text)), answer(text, inside), -np.inf)
    return torch.tensor(scores).softmax(-1).numpy() @ np.arange(len(text))


texts = [[1, -1], [1, 1, -1, -1], [1, -1, 1, 1, -1, 1, -1, -1, 1, -1]]
texts = [np.array(text) for text in texts]
puzzle("puzzle_brackets", puzzle_brackets, looked_at, partners, texts)

# %% [markdown]
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | shift | logits at $t$, token $t + 1$ | `logits[..., :-1, :]`, `tokens[..., 1:]` | $n - 1$ guesses a text |
# | padding in the loss | the target counts | `keep[..., 1:]` | nobody learns padding |
# | GPT | embeddings, pre-norm blocks, norm, read-out | `GPT` | a language model |
# | first loss | $\ln V + \sigma^2 / 2$ | before any step | start values are small enough |
# | gradient check | $(L(w+h) - L(w-h)) / 2h$ | float64 | the gradient is the loss's slope |
# | clipping | all gradients times $\min(1, \text{max} / \lVert g \rVert)$ | `clip_grad_norm_`, once | direction kept |
# | temperature | softmax of logits / $T$ | `temperature` | ratios change, nothing is removed |
# | top-k, top-p | a number; a share | sorted, cut, renormalised | cuts the improbable off |
# | test of a step | one step, SGD, by formula | `judges_step` | curves do not show it |
#
# ## Check yourself
#
# <details><summary>1. A loss of 0.05 after ten steps, where lesson 6's count says that less than 0.21 is
# impossible. Name two
# suspects.</summary>
#
# The targets are not shifted (the model copies its input), or the causal mask is missing. Both put
# the answer into the question.
#
# </details>
#
# <details><summary>2. Why does the judge of section 7 use SGD and not Adam?</summary>
#
# SGD moves each parameter by the rate times its gradient: size and direction of the gradient can be
# read off. Adam's first step is about the rate for every number, whatever the size of the
# gradient.
#
# </details>
#
# <details><summary>3. A batch of texts of 10 and of 1,000 tokens. Which is the loss, the mean of the
# two means or the mean over all predictions? What would the other one do?</summary>
#
# The mean over all predictions. With the mean of the means each prediction of the short text counts
# 111 times as much (999 / 9) as one of the long text.
#
# </details>
#
# <details><summary>4. top_p = 0.9, and the model is 95 % sure of one token. How many tokens can be
# drawn? And with top_k = 10?</summary>
#
# One. Ten: the nine others share up to 5 %, and over a long text some of them will be drawn.
#
# </details>
#
# <details><summary>5. Our vocabulary has 21 characters. What changes with a vocabulary of 50,000
# word pieces and d_model 768, as in GPT-2?</summary>
#
# The embedding alone holds 38 million parameters; with a read-out of its own it is twice that,
# nearly half of the model (its 12 blocks hold 85 million). GPT-2 therefore shares the two matrices
# (Press and Wolf, 2017). Ours has a weight of its own.
#
# </details>
#
# Questions to ask yourself before every training: *What should the first loss be? Can it learn two
# texts by heart? Which number would tell me that it cheats? Has anybody tested the step?*
#
# ## References
#
# - Radford, Narasimhan, Salimans, Sutskever (2018), *Improving Language Understanding by Generative
#   Pre-Training*.
# - Radford, Wu, Child, Luan, Amodei, Sutskever (2019), *Language Models are Unsupervised Multitask
#   Learners*: GPT-2, pre-norm with a last norm.
# - Pascanu, Mikolov, Bengio (2013), *On the difficulty of training recurrent neural networks*:
#   clipping the norm of the gradient.
# - Kingma, Ba (2015), *Adam: A Method for Stochastic Optimization*.
# - Fan, Lewis, Dauphin (2018), *Hierarchical Neural Story Generation*: top-k.
# - Holtzman, Buys, Du, Forbes, Choi (2020), *The Curious Case of Neural Text Degeneration*: top-p,
#   and repetition.
# - Press, Wolf (2017), *Using the Output Embedding to Improve Language Models*.
#
# ## What comes next
#
# Your model is a GPT nearly as of 2019 (that one has GELU for ReLU, and shares the token vectors with
# the read-out). Lesson 11 builds what has changed since: other norms, other
# positions, fewer keys, and a cache that makes writing cheap.
