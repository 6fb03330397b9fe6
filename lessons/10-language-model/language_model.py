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
#
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


# %% check="next_token_loss" points=3
# The table above, then two texts of five tokens, with and without padding.
rng = check_rng()
p = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6]])
with check("the table, by hand", points=0.75):
    assert_close(
        next_token_loss(p.log()[None], torch.tensor([[0, 1, 2]])),
        torch.tensor((1.3863 + 0.2231) / 2),
        "One text, in a batch of one: logits (1, 3, 3), tokens (1, 3). The guesses for the tokens 1 "
        "and 2 were 0.25 and 0.80. Logits at position t are scored against token t + 1, and a text "
        "of 3 tokens gives 2 predictions. The result should be a torch scalar, their mean in nats.",
        atol=1e-3,
    )
with check("no leading axis: as in a batch of one", points=0.25):
    in_a_batch = next_token_loss(p.log()[None], torch.tensor([[0, 1, 2]]))
    message = (
        "The same text without a leading axis, logits (3, 3) and tokens (3,): the loss should be "
        "the one that you give in a batch of one."
    )
    found = next_token_loss(p.log(), torch.tensor([0, 1, 2]))
    assert_close(found, in_a_batch, message, against="in a batch of one")
    other = next_token_loss(p.log(), torch.tensor([0, 2, 1]))
    differs = bool((torch.as_tensor(other) - torch.as_tensor(found)).abs() > 1e-3)
    assert_equal(differs, True, "The tokens 0, 2, 1 have another loss, and none is NaN.")
logits = torch.tensor(rng.normal(size=(2, 5, 4))).float()
tokens = torch.tensor([[0, 3, 1, 2, 2], [1, 0, 0, 2, 3]])
with check("two texts", points=1):
    assert_close(
        next_token_loss(logits.clone(), tokens.clone()),
        F.cross_entropy(logits[:, :-1].reshape(8, 4), tokens[:, 1:].reshape(8)),
        "Two texts of 5 tokens, no keep: they give 8 predictions, and the loss should be the mean "
        "over them.",
    )
with check("padding", points=0.5):
    keep = torch.tensor([[True] * 5, [True, True, False, False, False]])
    padded = tokens.clone()  # padding may look like a token, or not
    padded[1, 3] = -100
    each = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    assert_close(
        next_token_loss(logits.clone(), padded.clone(), keep.clone()),
        (each[0].sum() + each[1, 0]) / 5,
        "keep keeps all of the first text and two tokens of the second. So the first has 4 "
        "predictions, the second 1: its first token guesses its second. A prediction counts when "
        "its target is kept, and the mean runs over the 5 that count.",
    )
    two = (
        next_token_loss(logits.clone(), padded.clone(), keep.clone()),
        next_token_loss(logits[:1].clone(), tokens[:1].clone()),
    )
    message = "With both texts the loss should not be that of the first alone."
    same = bool(torch.equal(*map(torch.as_tensor, two)))
    assert_equal(same, False, message, name="'the two losses are the same'")
with check("nothing to count is a ValueError", points=0.5, side=True):
    with assert_raises(ValueError, "A text of one token holds no prediction: a ValueError."):
        next_token_loss(logits[:, :1].clone(), tokens[:, :1].clone())
    message = "Two texts, of which keep keeps the first tokens only: no target. A ValueError."
    with assert_raises(ValueError, message):
        first_only = torch.tensor([[True, False, False, False, False]] * 2)
        next_token_loss(logits.clone(), tokens.clone(), first_only)
checks_passed("next_token_loss")


# %% check="next_token_loss_keep" points=2
# Hidden checks of next_token_loss: padding on both sides, holes, texts of other lengths.
### BEGIN HIDDEN TESTS
rng = check_rng()
n, vocab = 7, 5


def number(loss, message):
    """A loss as a float."""
    try:
        return float(loss)
    except (TypeError, ValueError, RuntimeError):
        single = False
    assert_equal(single, True, message, name="'the loss is a single number'")


logits = torch.tensor(rng.normal(size=(4, n, vocab)))
tokens = torch.tensor(rng.integers(0, vocab, size=(4, n)))
with check("padding of any integers on the right, as each text alone", points=1):
    lengths = [7, 2, 5, 3]
    keep = torch.arange(n) < torch.tensor(lengths)[:, None]
    garbage = torch.tensor(rng.choice([-100, -1, 10**6], size=(4, n)))
    error = "none"
    try:
        found = next_token_loss(logits, torch.where(keep, tokens, garbage), keep)
    except NotImplementedError:
        raise
    except Exception as raised:
        error = type(raised).__name__
    message = (
        "Logits of shape (4, 7, 5), tokens and keep of shape (4, 7): texts of 7, 2, 5 and 3 "
        "tokens, and behind them, where keep is False, -100, -1 or 1,000,000. No error should be "
        "raised. Check first: is an integer that is not kept taken as an index?"
    )
    assert_equal(error, "none", message, name="the error")
    message = "The loss of one text, and of four with keep, should be a single number."
    alone = [
        number(next_token_loss(one[None, :m], text[None, :m]), message)
        for one, text, m in zip(logits, tokens, lengths, strict=True)
    ]
    several = len({round(value, 6) for value in alone})
    different = "Four different texts, each alone: their losses should differ."
    assert_equal(several, 4, different, name="the number of different losses")
    expected = sum(value * (m - 1) for value, m in zip(alone, lengths, strict=True)) / 13
    assert_close(
        number(found, message),
        expected,
        "Four texts of 7, 2, 5 and 3 tokens, padded on the right with any integers, and keep: the "
        "loss should be the mean over the 6 + 1 + 4 + 2 predictions, each text as next_token_loss "
        "gives it alone.",
        against="from the texts alone",
    )
with check("the target decides: gaps, one target", points=0.5):
    keep = torch.tensor(rng.random((4, n)) < 0.6)
    keep[0] = torch.tensor([False, False, True, True, False, True, True])
    keep[1] = torch.tensor([True, False, True, False, True, False, True])
    each = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    assert_close(
        next_token_loss(logits, tokens, keep),
        each[keep[:, 1:]].mean(),
        "Four texts of 7 tokens, and a keep with gaps and with padding on the left: a prediction "
        "counts exactly when its target is kept, whatever its input is. The loss should be the "
        "mean over those that count.",
    )
    first_only = keep.clone()
    first_only[2:] = torch.arange(n) == 0  # two texts without a kept target
    message = (
        "Four texts, of which two have no kept target, only a kept first token: they add nothing. "
        "The loss should be the mean over the predictions of the other two, and no error be raised."
    )
    try:
        found = next_token_loss(logits, tokens, first_only)
    except ValueError:
        found = "a ValueError"
    assert_close(found, each[first_only[:, 1:]].mean(), message)
    for place in (1, 4, n - 1):
        only = torch.arange(n) == place
        message = (
            f"One text of 7 tokens, of which keep keeps token {place} alone: it is the target of one "
            "prediction, which counts. The loss should be that prediction's, and no error be raised."
        )
        try:
            found = next_token_loss(logits[2:3], tokens[2:3], only[None])
        except ValueError:
            found = "a ValueError"
        assert_close(found, each[2, place - 1], message)


def compare(lead, n, vocab, dtype, values, kept):
    """The loss with torch's cross_entropy of the predictions whose target is kept."""
    logits = torch.tensor(rng.normal(size=(*lead, n, vocab))).to(dtype)
    if values == "positive":
        logits = logits.abs() + 0.1
    elif values != "random":
        logits = logits[..., :1, :].expand(*lead, n, vocab) * (values != "zero")
    tokens = torch.tensor(rng.integers(0, vocab, size=(*lead, n)))
    keep = torch.ones(*lead, n, dtype=torch.bool)
    if kept == "some":
        keep = torch.tensor(rng.random((*lead, n)) < 0.6)
        keep[..., 1] = True
        keep.view(-1, n)[0] = False  # the first text: nothing
    guesses, targets = logits[..., :-1, :].reshape(-1, vocab), tokens[..., 1:].reshape(-1)
    each = F.cross_entropy(guesses, targets, reduction="none")
    message = (
        f"Logits of shape {tuple(logits.shape)} in {str(dtype)[6:]}, {values}; keep: {kept}. "
        "The loss should be the mean over the predictions whose target is kept, a torch scalar."
    )
    given = (logits, tokens) if kept is None else (logits, tokens, keep)
    expected = each[keep[..., 1:].reshape(-1)].mean()
    assert_close(next_token_loss(*given), expected, message)


with check("one leading axis: other sizes, with keep and without", points=0.25):
    compare((1,), 2, 2, torch.float64, "random", None)
    compare((3,), 3, 3, torch.float32, "random", None)
    compare((3,), 3, 3, torch.float64, "random", "all")
    compare((2,), 33, 65, torch.float32, "random", "some")
    compare((4,), 4, 17, torch.float64, "positive", "some")
    compare((4,), 4, 6, torch.float64, "zero", "all")
    compare((2,), 65, 4, torch.float32, "equal at all positions", "some")
    compare((2,), 3, 1, torch.float64, "random", None)
with check("no leading axis, and three, with keep and without", points=0.25):
    compare((), 2, 2, torch.float64, "random", None)
    compare((2, 1, 2), 4, 17, torch.float64, "random", "some")
    compare((1, 2, 1), 5, 130, torch.float32, "random", "some")
checks_passed("next_token_loss")
### END HIDDEN TESTS


# %% check="next_token_loss_batches" points=2
# Hidden checks of next_token_loss: leading axes, broadcasting.
### BEGIN HIDDEN TESTS
rng = check_rng()


def number(loss, message):
    """A loss as a float."""
    try:
        return float(loss)
    except (TypeError, ValueError, RuntimeError):
        single = False
    assert_equal(single, True, message, name="'the loss is a single number'")


def told(*given):
    """The loss, or what is raised in its place."""
    try:
        return next_token_loss(*given)
    except NotImplementedError:
        raise
    except Exception as error:
        return type(error).__name__


def compare(lead, lead_tokens, n=4, rng=rng):
    """The loss with these leading axes, and the mean of the losses of the texts alone."""
    logits = torch.tensor(rng.normal(size=(*lead, n, 6)))
    tokens = torch.tensor(rng.integers(0, 6, size=(*lead_tokens, n)))
    shape = torch.broadcast_shapes(lead, lead_tokens)
    texts = tokens.expand(*shape, n).reshape(-1, n)
    shapes = f"logits of shape {tuple(logits.shape)}, tokens of shape {tuple(tokens.shape)}"
    scalar = f"{shapes}, and each text in a batch of one: the loss should be a single number."
    alone = [
        number(next_token_loss(one[None], text[None]), scalar)
        for one, text in zip(logits.expand(*shape, n, 6).reshape(-1, n, 6), texts, strict=True)
    ]
    other = number(next_token_loss(logits, (tokens + 1) % 6), scalar)
    message = f"{shapes}, and each text alone: the loss should be a finite number, not NaN."
    finite = all(math.isfinite(loss) for loss in (other, *alone))
    assert_equal(finite, True, message, name="'the losses are finite'")
    message = f"{shapes}: other tokens should give another loss."
    differs = abs(other - sum(alone) / len(alone)) > 1e-6
    assert_equal(differs, True, message, name="'the losses differ'")
    found = next_token_loss(logits, tokens)
    assert_equal(tuple(np.shape(found)), (), scalar, name="the shape")
    message = (
        f"{shapes}: any number of leading axes is allowed, and they broadcast. The loss should be "
        "the mean of those that next_token_loss gives for each text alone."
    )
    mean = sum(alone) / len(alone)
    assert_close(number(found, scalar), mean, message, against="from the texts alone")


with check("one leading axis: as the mean of the texts alone", points=0.75):
    for lead, n in (((1,), 4), ((5,), 4), ((6,), 6), ((1,), 300)):
        compare(lead, lead, n)
with check("no leading axis, and two: as the mean of the texts alone", points=0.75):
    for lead, n in (((), 4), ((2, 3), 4), ((1, 1), 4), ((2, 1), 2), ((), 300)):
        compare(lead, lead, n)
with check("axes that broadcast, keep too: as texts alone, or written out", points=0.5):
    compare((3,), ())
    compare((2, 1), (3,))
    logits = torch.tensor(rng.normal(size=(3, 5, 6)))
    tokens = torch.tensor(rng.integers(0, 6, size=(3, 5)))
    keep = torch.tensor([False, True, False, True, True])
    expected = next_token_loss(logits, tokens, keep.repeat(3, 1))
    message = (
        "Three texts and a keep of shape (5,) that serves all of them: the loss should be the one "
        "that you give when keep is written out for each text, and a single number."
    )
    found = number(next_token_loss(logits, tokens, keep), message)
    written_out = number(expected, message)
    assert_close(found, written_out, message, against="with keep written out")
    more = torch.tensor([[[True, True, False, False, True]], [[False, False, True, False, False]]])
    written = more.expand(2, 3, 5).clone()
    every = logits.expand(2, 3, 5, 6).clone(), tokens.expand(2, 3, 5).clone()
    message = (
        "Logits (3, 5, 6), tokens (3, 5) and a keep of shape (2, 1, 5): they broadcast to two "
        "times three texts, the second time with another keep. The loss should be the one that you "
        "give when all three are written out, and a single number."
    )
    found = number(next_token_loss(logits, tokens, more), message)
    written_out = number(next_token_loss(*every, written), message)
    assert_close(found, written_out, message, against="with all three written out")
    # The other way round: logits are what has the fewest axes.
    tokens_of = {"(3, 5)": tokens, "(5,)": tokens[0]}
    three = torch.tensor([[True, False, True, False, True], [True] * 5, [False] * 4 + [True]])
    for shape, given in tokens_of.items():
        every = logits[0].expand(3, 5, 6).clone(), given.expand(3, 5).clone()
        message = "Logits (3, 5, 6), tokens and keep (3, 5): the loss should be a finite number."
        each = number(next_token_loss(*every, three), message)
        assert_equal(math.isfinite(each), True, message, name="'the loss is finite'")
        message = (
            f"Logits (5, 6), tokens {shape} and a keep of shape (3, 5): they broadcast to three "
            "texts. The loss should be the one that you give when all three are written out, and a "
            "single number."
        )
        found = number(told(logits[0], given, three), message)
        assert_close(found, each, message, against="with all three written out")
checks_passed("next_token_loss")
### END HIDDEN TESTS


# %% check="next_token_loss_numbers" points=2
# Hidden checks of next_token_loss: large logits, gradients, float64.
### BEGIN HIDDEN TESTS
@probe
def loss_and_gradient(logits, tokens, keep):
    given = [None if x is None else x.clone() for x in (logits, tokens, keep)]
    given[0].requires_grad_()
    loss, raised = next_token_loss(*given), "nothing"
    for x, before in zip(given, (logits, tokens, keep), strict=True):
        if x is not None:  # that they stay as they are is another check
            x.data.copy_(before)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        try:
            loss.backward()
        except RuntimeError as error:
            raised = type(error).__name__
    return loss.detach() if isinstance(loss, torch.Tensor) else loss, given[0].grad, raised


@probe
def strided(logits, tokens, keep):
    """The same numbers, in another order in memory, and without gradients."""
    given = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in (logits, tokens, keep)]
    with torch.no_grad():
        try:
            return next_token_loss(*given)
        except NotImplementedError:
            raise
        except RuntimeError as error:
            return type(error).__name__


rng = check_rng()
tokens = torch.tensor(rng.integers(0, 5, size=(3, 6)))
keep = torch.arange(6) < torch.tensor([[6], [2], [4]])  # no gaps: they have a check of their own


def compare(size, keep, what):
    """Loss and gradient with those of torch's formula."""
    leaf = torch.tensor(size * rng.normal(size=(3, 6, 5))).requires_grad_()
    counted = torch.ones(3, 5, dtype=torch.bool) if keep is None else keep[:, 1:]
    expected = F.cross_entropy(leaf[:, :-1][counted], tokens[:, 1:][counted])
    expected.backward()
    loss, gradient, raised = loss_and_gradient(leaf.detach(), tokens, keep)
    message = (
        f"Logits in float64, three texts, {what} keep: backward from the loss should raise no "
        "error. Check first: is something changed in place after it was used?"
    )
    assert_equal(raised, "nothing", message, name="the error")
    message = (
        f"Logits of size {size:g} in float64, three texts of 6 tokens, {what} keep"
        f"{'' if keep is None else ' (6, 2 and 4 tokens are kept, padding on the right)'}: loss "
        "and gradient should be finite, and those of torch's cross_entropy over the predictions "
        "whose target is kept. Check first: is there a softmax, and then a logarithm? Is something "
        "detached?"
    )
    assert_close(gradient, leaf.grad, message, name="the gradient")
    assert_close(loss, expected.detach(), message, name="the loss")
    message = (
        f"Logits of size {size:g} in float64, three texts, {what} keep: loss and gradient should "
        "be those of torch's cross_entropy to seven digits. Check first: is something computed in "
        "float32?"
    )
    near = {"rtol": 1e-7, "atol": 1e-10, "precise": True}
    assert_close(gradient, leaf.grad, message, name="the gradient", **near)
    assert_close(loss, expected.detach(), message, name="the loss", **near)
    message = f"Logits in float64, three texts, {what} keep: the loss should be float64 too."
    assert_equal(str(getattr(loss, "dtype", None)), "torch.float64", message, name="the dtype")


with check("loss and gradients in float64; numbers in another order in memory", points=1):
    compare(1.0, keep, "with a")
    logits = torch.tensor(rng.normal(size=(3, 6, 5)))
    message = (
        "Logits (3, 6, 5), tokens and keep (3, 6) with their numbers in another order in memory, "
        "as after a transpose, under torch.no_grad(): the loss should be that of torch's "
        "cross_entropy."
    )
    expected = F.cross_entropy(logits[:, :-1][keep[:, 1:]], tokens[:, 1:][keep[:, 1:]])
    assert_close(strided(logits, tokens, keep), expected, message)
with check("logits of 10,000, in float64", points=1):
    compare(1e4, keep, "with a")
    compare(1e4, None, "no")
checks_passed("next_token_loss")
### END HIDDEN TESTS


# %% check="next_token_loss_contract" points=1
# Hidden checks of next_token_loss: errors; the arguments stay as they are.
### SIDE CONDITION: counts once another check of next_token_loss passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(logits, tokens, keep):
    next_token_loss(logits, tokens, keep)
    return logits, tokens, keep


rng = check_rng()
logits = torch.tensor(rng.normal(size=(2, 4, 5)))
tokens = torch.tensor([[1, 2, -100, -100], [3, 4, 0, 1]])
keep = tokens >= 0
keep[1, 2] = False  # a token all the same
after = arguments_after(logits.clone(), tokens.clone(), keep.clone())
message = "logits, tokens and keep should be as before after the call."
assert_equal(after, (logits, tokens, keep), message, name="the arguments")
message = "One token holds no prediction, also without leading axes: a ValueError."
with assert_raises(ValueError, message):
    next_token_loss(logits[0, :1], tokens[1, :1])
with assert_raises(ValueError, "keep is False everywhere: nothing to count, a ValueError."):
    next_token_loss(logits, tokens, keep & False)
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
# and a read-out above it. This is a token's way through:
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


# %% check="GPT" points=4
# Two texts of five tokens; the same computation with torch's own functions.
@probe
def parts_of(sizes):
    model = GPT(*sizes)
    shapes = {name: list(value.shape) for name, value in model.named_parameters()}
    places = [name for name in shapes if name.startswith("position_embedding.")]
    names = ("token_embedding", "position_embedding", "blocks", "final_norm", "output")
    kinds = {
        name: type(getattr(model, name)).__name__ if hasattr(model, name) else "missing"
        for name in names
    }
    return kinds, shapes, [shapes.pop(name) for name in places]


@probe
def run(sizes, parameters, tokens):
    model = GPT(*sizes)
    with torch.no_grad():
        next(model.position_embedding.parameters()).copy_(parameters["position"])
        model.load_state_dict(parameters, strict=False)
        return model(tokens.clone())


def draw_parameters(sizes, rng):
    vocab, d, _, d_ff, layers, max_len = sizes
    shapes = {"token_embedding.weight": (vocab, d), "position": (max_len, d)}
    for i in range(layers):
        for name in "qkvo":
            shapes[f"blocks.{i}.attention.W_{name}.weight"] = (d, d)
            shapes[f"blocks.{i}.attention.W_{name}.bias"] = (d,)
        for norm in ("norm1", "norm2"):
            shapes[f"blocks.{i}.{norm}.gamma"] = shapes[f"blocks.{i}.{norm}.beta"] = (d,)
        for name, (rows, columns) in (("linear1", (d_ff, d)), ("linear2", (d, d_ff))):
            shapes[f"blocks.{i}.feed_forward.{name}.weight"] = (rows, columns)
            shapes[f"blocks.{i}.feed_forward.{name}.bias"] = (rows,)
    shapes |= {"final_norm.gamma": (d,), "final_norm.beta": (d,), "output.weight": (vocab, d)}
    return {
        name: torch.tensor(rng.normal(size=shape) * (0.4 if len(shape) == 2 else 1.0)).float()
        for name, shape in shapes.items()
    }


def by_torch(sizes, p, tokens, causal=True, final_norm=True):
    d, heads, layers, n = sizes[1], sizes[2], sizes[4], tokens.shape[-1]
    x = F.embedding(tokens, p["token_embedding.weight"]) + p["position"][:n]
    for i in range(layers):

        def part(name, y, i=i):
            return F.linear(y, p[f"blocks.{i}.{name}.weight"], p[f"blocks.{i}.{name}.bias"])

        def norm(name, y, i=i):
            return F.layer_norm(y, (d,), p[f"blocks.{i}.{name}.gamma"], p[f"blocks.{i}.{name}.beta"])

        y = norm("norm1", x)
        q, k, v = (
            part(f"attention.W_{name}", y).unflatten(-1, (heads, -1)).transpose(-2, -3)
            for name in "qkv"
        )
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + part("attention.W_o", seen.transpose(-2, -3).flatten(-2))
        hidden = F.relu(part("feed_forward.linear1", norm("norm2", x)))
        x = x + part("feed_forward.linear2", hidden)
    if final_norm:
        x = F.layer_norm(x, (d,), p["final_norm.gamma"], p["final_norm.beta"])
    return x @ p["output.weight"].T


sizes = (7, 12, 3, 20, 2, 6)  # vocab_size, d_model, num_heads, d_ff, num_layers, max_len
rng = check_rng()
parameters = draw_parameters(sizes, rng)
tokens = torch.tensor(rng.integers(0, 7, size=(2, 5)))
with check("the five parts", points=1):
    kinds, shapes, positions = parts_of(sizes)
    expected = {
        "token_embedding": "Embedding",
        "position_embedding": "LearnedPositionalEmbedding",
        "blocks": "ModuleList",
        "final_norm": "LayerNorm",
        "output": "Linear",
    }
    found = {name: kinds.get(name) for name in expected}
    message = "The model should have the five parts as attributes, each of the card's kind."
    assert_equal(found, expected, message, name="the parts")
    message = (
        "GPT(7, 12, 3, 20, 2, 6): each part should have the card's sizes, each of the two blocks "
        "be an object of its own, the output have no bias and a weight of its own, and there "
        "should be nothing else to train. Each parameter is counted once: a name that shares "
        "another's tensor is missing."
    )
    expected = {name: list(v.shape) for name, v in parameters.items() if name != "position"}
    assert_equal(shapes, expected, message, name="the shapes of the parameters")
    message = "GPT(7, 12, 3, 20, 2, 6): position_embedding should hold max_len = 6 vectors of 12."
    assert_equal(positions, [[6, 12]], message, name="the position vectors")
with check("the first position", points=1):
    # It sees itself alone: no mask is needed to get it right.
    assert_close(
        run(sizes, parameters, tokens[:, :1]),
        by_torch(sizes, parameters, tokens[:, :1]),
        "Two texts of one token: token vector plus position vector, the blocks one after another, "
        "final_norm, output, and no softmax. The logits should be those of torch's own functions "
        "with the same parameters. Check first: are the blocks pre-norm, and has the output a "
        "weight of its own?",
    )
with check("all positions, causal", points=1.5):
    assert_close(
        run(sizes, parameters, tokens),
        by_torch(sizes, parameters, tokens),
        "Two texts of five tokens: each position may see itself and the ones before it, in every "
        "block. The logits should be those of torch's own functions with the same parameters.",
    )
with (
    check("longer than max_len", points=0.5, side=True),
    assert_raises(ValueError, "7 tokens with max_len 6 should be a ValueError."),
):
    run(sizes, parameters, torch.zeros(2, 7, dtype=torch.long))
checks_passed("GPT")


# %% check="GPT_shapes" points=2
# Hidden checks of GPT: leading axes, lengths, other sizes, float64.
### BEGIN HIDDEN TESTS
@probe
def run(sizes, seed, tokens, other):
    torch.manual_seed(seed)
    model = GPT(*sizes).double()
    GPT(*sizes[:-1], 1)  # another model, with another max_len
    with torch.no_grad():
        try:
            now = tokens[..., :1]
            model(now.clone())  # a shorter text first: nothing of it stays
            now = tokens
            both = [model(tokens.clone()), model(other.clone())]
            alone = []
            for now in tokens.reshape(-1, 1, tokens.shape[-1]):
                alone.append(model(now.clone())[0])
        except NotImplementedError:
            raise
        except Exception as error:
            return type(error).__name__, tuple(now.shape), None, None
        try:  # integers of 32 bits
            small = model(tokens.int())
        except Exception as error:
            small = type(error).__name__
        try:  # a shorter text after a longer one
            half = tokens[..., : (tokens.shape[-1] + 1) // 2].clone()
            return both, alone, model(half), small
        except Exception as error:
            return both, alone, type(error).__name__, small


rng = check_rng()


def compare(lead, n, sizes):
    """Each text as in a batch of one, a shorter text as in the longer one, int32 as int64."""
    tokens = torch.tensor(rng.integers(0, sizes[0], size=(*lead, n)))
    given = f"GPT{sizes} in float64, tokens of shape {tuple(tokens.shape)}"
    both, alone, shorter, small = run(sizes, 7, tokens, (tokens + 1) % sizes[0])
    raised = both if isinstance(both, str) else "nothing"
    message = (
        f"GPT{sizes} in float64: with tokens of shape {alone if raised != 'nothing' else '(..., n)'} "
        f"the call raised {raised}. Any number of leading axes is allowed, none too, and every length "
        "up to max_len. Check first: does a shape or a mask count on exactly one leading axis?"
    )
    assert_equal(raised, "nothing", message, name="the error")
    found, other = both
    message = f"{given}: the logits should be a tensor of shape (..., n, vocab_size)."
    assert_equal(isinstance(found, torch.Tensor), True, message, name="'they are a tensor'")
    assert_equal(tuple(found.shape), (*lead, n, sizes[0]), message, name="the shape")
    message = f"{given}: other tokens should give other logits, without NaN."
    differs = bool((found - other).abs().max() > 1e-6)
    assert_equal(differs, True, message, name="'they are finite numbers that differ'")
    one_by_one = torch.stack(alone).double().reshape(found.shape)
    message = (
        f"{given}: any number of leading axes is allowed, and the logits should be those that the "
        "same model gives in a batch of one, in float64. (A shorter text went through it before, "
        "and another model was made, with max_len 1.)"
    )
    assert_close(found, one_by_one, message, precise=True, against="in a batch of one")
    half = (n + 1) // 2
    message = (
        f"{given}. One model gets the first token alone, then the whole text, then its first {half} "
        "alone: the last logits should be those that it gave at these positions of the whole text, "
        "where later tokens are hidden. Every length up to max_len is allowed, in any order of "
        "calls: for one, is a mask of an earlier, shorter text used again? And another model that "
        "was made since, with max_len 1, changes nothing."
    )
    assert_close(
        shorter,
        found[..., :half, :],
        message,
        name="the logits of the shorter text",
        against="in the longer text",
    )
    message = f"{given}: the same tokens as integers of 32 bits should give the same logits."
    assert_close(
        small,
        found,
        message,
        name="the logits of int32 tokens",
        against="with integers of 64 bits",
    )


@probe
def logits_of(sizes, parameters, tokens, training):
    model = GPT(*sizes).double().train(training)
    with torch.no_grad():
        tokens = tokens.transpose(0, -1).contiguous().transpose(0, -1)  # another order in memory
        try:
            next(model.position_embedding.parameters()).copy_(parameters["position"])
            model.load_state_dict(parameters, strict=False)
            return model(tokens)
        except NotImplementedError:
            raise
        except Exception as error:
            return type(error).__name__


def reference(sizes, tokens, rng):
    """Random parameters, and the logits that torch's own functions give with them."""
    vocab, d, heads, d_ff, layers, max_len = sizes
    p = {}

    def draw(name, *shape):
        p[name] = torch.tensor(rng.normal(size=shape) * (0.4 if len(shape) == 2 else 1.0))
        return p[name]

    def part(name, y, rows):
        weight = draw(f"{name}.weight", rows, y.shape[-1])
        return F.linear(y, weight, draw(f"{name}.bias", rows))

    def norm(name, y):
        return F.layer_norm(y, (d,), draw(f"{name}.gamma", d), draw(f"{name}.beta", d))

    x = F.embedding(tokens, draw("token_embedding.weight", vocab, d))
    x = x + draw("position", max_len, d)[: tokens.shape[-1]]
    for block in (f"blocks.{i}" for i in range(layers)):
        y = norm(f"{block}.norm1", x)
        q, k, v = (
            part(f"{block}.attention.W_{name}", y, d).unflatten(-1, (heads, -1)).transpose(-2, -3)
            for name in "qkv"
        )
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(-2, -3).flatten(-2)
        x = x + part(f"{block}.attention.W_o", seen, d)
        hidden = F.relu(part(f"{block}.feed_forward.linear1", norm(f"{block}.norm2", x), d_ff))
        x = x + part(f"{block}.feed_forward.linear2", hidden, d)
    return p, norm("final_norm", x) @ draw("output.weight", vocab, d).T


with check("one leading axis: each text as in a batch of one", points=0.75):
    compare((1,), 1, (5, 8, 8, 4, 1, 3))
    compare((3,), 6, (7, 6, 1, 9, 3, 6))
    compare((4,), 4, (5, 8, 4, 6, 1, 4))
    compare((1,), 300, (11, 4, 2, 3, 1, 300))
with check("no leading axis, two and more: each text as in a batch of one", points=0.5):
    compare((), 4, (7, 12, 3, 20, 2, 6))
    compare((2, 3), 5, (9, 12, 4, 8, 2, 8))
    compare((1, 1), 4, (7, 12, 3, 20, 2, 6))
    compare((2, 1), 8, (8, 8, 2, 8, 2, 8))
    compare((2, 1, 2), 3, (33, 4, 1, 1, 1, 130))
with check("other sizes: where the visible one is right, as torch", points=0.75, side=True):
    right = False
    for shape, sizes in (
        ((2, 5), (7, 12, 3, 20, 2, 6)),  # as in the visible check, which says what is wrong there
        ((1, 1), (5, 8, 8, 4, 1, 3)),
        ((3, 6), (7, 6, 1, 9, 3, 6)),
        ((33, 2), (70, 6, 3, 9, 1, 2)),
        ((2, 70), (9, 10, 5, 3, 2, 70)),
        ((2, 3), (33, 4, 1, 1, 1, 130)),
        ((2, 5), (5, 5, 5, 5, 3, 5)),
    ):
        tokens = torch.tensor(rng.integers(0, sizes[0], size=shape))
        parameters, expected = reference(sizes, tokens, rng)
        training = sizes[2] % 2 == 0
        message = (
            f"GPT{sizes} in float64, in {'training' if training else 'evaluation'} mode, tokens of "
            f"shape {shape}: the logits should be those of torch's own functions with the same "
            "parameters."
        )
        found = logits_of(sizes, parameters, tokens, training)
        if shape == (2, 5) and sizes[0] == 7 and isinstance(found, torch.Tensor):
            right = found.shape == expected.shape and bool((found - expected).abs().max() < 1e-3)
        if right:
            assert_close(found, expected, message)
checks_passed("GPT")
### END HIDDEN TESTS


# %% check="GPT_causal" points=2
# Hidden checks of GPT: no logits depend on a later token, and all depend on every earlier one.
### BEGIN HIDDEN TESTS
@probe
def changes(sizes, seed, tokens):
    torch.manual_seed(seed)
    model = GPT(*sizes).double()
    n = tokens.shape[-1]
    moved = torch.zeros(n, n, dtype=torch.bool)  # (token that is changed, position)
    with torch.no_grad():
        try:
            model(tokens[None, :1].clone())  # a shorter text first: nothing of it stays
            before = model(tokens[None].clone())
        except NotImplementedError:
            raise
        except Exception as error:
            return None, type(error).__name__
        for t in range(n):
            other = tokens.clone()
            other[t] = (other[t] + 1) % sizes[0]
            moved[t] = (model(other[None]) - before)[0].abs().amax(-1) > 1e-9
    return moved, "nothing"


rng = check_rng()
for sizes, n in (((7, 12, 3, 20, 2, 6), 5), ((6, 8, 2, 10, 1, 9), 9)):
    tokens = torch.tensor(rng.integers(0, sizes[0], size=n))
    expected = torch.ones(n, n, dtype=torch.bool).triu()
    moved, raised = changes(sizes, int(rng.integers(1000)), tokens)
    message = (
        f"GPT{sizes} in float64, tokens of shape (1, 1) and then (1, {n}): one of the two calls "
        f"raised {raised}."
    )
    assert_equal(raised, "nothing", message, name="the error")
    assert_equal(
        moved,
        expected,
        f"{sizes[4]} blocks, {n} tokens, after a shorter text. Row: the token that is changed. "
        "Column: do the logits at this position move? They should at the changed position and "
        "after it, and nowhere before.",
        name="what moves (NaN counts as unmoved)",
    )
### END HIDDEN TESTS


# %% check="GPT_training" points=1
# Hidden checks of GPT: gradients, tokens unchanged, both modes.
### BEGIN HIDDEN TESTS
@probe
def without_gradient(sizes, seed, tokens):
    torch.manual_seed(seed)
    model = GPT(*sizes)
    given = tokens.clone()
    logits = model(given)
    F.cross_entropy(logits.flatten(0, -2), tokens.flatten()).backward()
    lost = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    model.eval()
    with torch.no_grad():
        return lost, given, logits.detach(), model(tokens.clone())


@probe
def learning_tokens(sizes, seed, tokens):
    torch.manual_seed(seed)
    model = GPT(*sizes)
    F.cross_entropy(model(tokens).flatten(0, -2), tokens.flatten()).backward()
    weight = dict(model.named_parameters()).get("token_embedding.weight")
    if weight is None:  # a missing part is told elsewhere
        return torch.ones(6, dtype=torch.bool)
    return None if weight.grad is None else weight.grad[:6].abs().amax(-1) > 0


@probe
def with_new_parameters(sizes, seed, tokens):
    """What a model gives that gets another's parameters after a call, and what the other gives."""
    torch.manual_seed(seed)
    model, other = GPT(*sizes), GPT(*sizes)
    with torch.no_grad():
        model(tokens)
        model.load_state_dict(other.state_dict())
        changed = model(tokens)
    return changed, other(tokens).detach()


rng = check_rng()
tokens = torch.tensor(rng.integers(0, 7, size=(4, 6)))
lost, after, logits, evaluated = without_gradient((7, 12, 3, 20, 2, 6), 3, tokens.clone())
assert_equal(
    [name for name in lost if not name.endswith("W_k.bias")],
    [],
    "Four texts of 6 tokens: every parameter should get a gradient that is not 0. (The keys' bias "
    "is exempt: softmax does not see it.)",
    name="the parameters without one",
)
message = "The tokens should be as before after the call."
assert_equal(after, tokens, message, name="the tokens")
message = "tokens of shape (4, 6), vocab_size 7: the logits should have shape (4, 6, 7)."
assert_equal(list(np.shape(logits)), [4, 6, 7], message, name="the shape")
message = "The positions of one text should not all have the same logits."
differ = bool((logits[0] - logits[0, 0]).abs().max() > 1e-6)
assert_equal(differ, True, message, name="'they are finite numbers that differ'")
message = "model.eval() should give the logits that the same model gave in training mode."
assert_close(evaluated, logits, message, against="in training mode")
every = torch.stack([torch.arange(6), torch.arange(6).flip(0)])
assert_equal(
    learning_tokens((7, 12, 3, 20, 2, 6), 3, every),
    torch.ones(6, dtype=torch.bool),
    "Two texts of the tokens 0 to 5: the vector of each of these tokens in token_embedding should "
    "get a gradient that is not 0, also that of token 0.",
    name="'this token has a gradient of numbers, not all 0'",
)
changed, other = with_new_parameters((7, 12, 3, 20, 2, 6), 3, tokens.clone())
message = (
    "A model that was called before gets the parameters of another model, by load_state_dict. For "
    "the same tokens it should then give the logits that the other model gives."
)
assert_close(changed, other, message, against="from the other model")
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
in_training = [sentence for sentence in sentences if sentence not in held_out]
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
print("the same with targets that leak, within 0.5 of ln V too:", max(copying_losses) < 3.5)
loud = new_model(0)
with torch.no_grad():
    loud.output.weight.mul_(20)
    loud_loss = next_token_loss(loud(fresh_texts), fresh_texts).item()
print("the same model, output.weight times 20: more than 6:", loud_loss > 6)
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


# %% check="training_step" points=4
# A small model of three parts, gradient descent with rate 0.5; compared with the formula.
@probe
def one_step(parameters, tokens, old, max_norm):
    calls = []

    class Model(nn.Sequential):
        def forward(self, tokens):
            calls.append(list(tokens.shape))
            return super().forward(tokens)

    model = Model(nn.Embedding(7, 5), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 7))
    model.load_state_dict(parameters)
    if old is not None:
        for parameter, gradient in zip(model.parameters(), old, strict=True):
            parameter.grad = gradient.clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model.eval()
    if max_norm is None:
        loss = training_step(model, optimizer, tokens)
    else:
        loss = training_step(model, optimizer, tokens, max_norm=max_norm)
    after = torch.cat([value.detach().flatten() for value in model.parameters()])
    return loss, after, {"calls": calls, "train mode": model.training}


def by_formula(parameters, tokens, max_norm):
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 7))
    model.load_state_dict(parameters)
    logits = model(tokens)
    loss = F.cross_entropy(logits[..., :-1, :].reshape(-1, 7), tokens[..., 1:].reshape(-1))
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    norm = float(torch.sqrt(sum(g.square().sum() for g in gradients)))
    scale = min(1.0, max_norm / norm)
    pairs = zip(model.parameters(), gradients, strict=True)
    after = torch.cat([(value - 0.5 * scale * g).detach().flatten() for value, g in pairs])
    return loss.item(), after, norm


rng = check_rng()
shapes = {"0.weight": (7, 5), "1.weight": (6, 5), "1.bias": (6,), "3.weight": (7, 6), "3.bias": (7,)}
parameters = {name: torch.tensor(rng.normal(size=shape)).float() for name, shape in shapes.items()}
old = [torch.tensor(rng.normal(size=shape)).float() for shape in shapes.values()]
tokens = torch.tensor(rng.integers(0, 7, size=(3, 6)))
start = torch.cat([value.flatten() for value in parameters.values()])
loss_before, plain, norm = by_formula(parameters, tokens, 1e9)
clipped = [(bound, by_formula(parameters, tokens, bound)[1]) for bound in (0.05 * norm, 0.5 * norm)]
with check("a step that needs no clipping", points=1):
    assert_close(
        one_step(parameters, tokens, None, 10 * norm)[1],
        plain,
        "Gradient descent on three texts, and the gradient's norm is below max_norm: each "
        "parameter should move by minus rate times its gradient. Check first: is the loss that of "
        "the next token? Do zero_grad, backward and step come in this order?",
        name="the parameters after the step",
        rtol=1e-4,
        atol=1e-5,
    )
with check("the loss before the step, a float; a step is made", points=0.75):
    loss, after, _ = one_step(parameters, tokens, None, 10 * norm)
    assert_equal(
        type(loss).__name__, "float", "The result should be a Python float.", name="the kind"
    )
    message = (
        "The result should be next_token_loss of the model's logits and the tokens, with the "
        "parameters as they were BEFORE the step."
    )
    assert_close(loss, loss_before, message, name="the loss", rtol=1e-4, atol=1e-5)
    moved = bool((after - start).abs().max() > 1e-6)
    message = "The parameters should move in a step."
    assert_equal(moved, True, message, name="'they moved, and none is NaN'")
with check("one call, on the whole text; the mode stays", points=0.25, side=True):
    facts = one_step(parameters, tokens, None, 10 * norm)[2]
    assert_equal(
        facts,
        {"calls": [[3, 6]], "train mode": False},
        "The model should be called once, on the whole text of shape (3, 6), and its mode (here: "
        "eval) be left as it is.",
        name="the calls and the mode",
    )
with check("clipping", points=1):
    for max_norm, expected in clipped:
        assert_close(
            one_step(parameters, tokens, None, max_norm)[1],
            expected,
            f"Gradient descent; the total norm of the gradients is {norm:.2f}, max_norm is "
            f"{max_norm:.2f}: ALL gradients should be scaled by the same number, after backward "
            "and before the optimiser's step.",
            name="the parameters after the step",
            rtol=1e-4,
            atol=1e-5,
        )
with check("old gradients as none, another text otherwise", points=1):
    fresh = one_step(parameters, tokens, None, 0.5 * norm)[1]
    message = "After the step the model should have as many numbers as before."
    assert_equal(list(np.shape(fresh)), list(start.shape), message, name="the shape")
    other = one_step(parameters, (tokens + 1) % 7, None, 0.5 * norm)[1]
    moved = bool((fresh - other).abs().max() > 1e-6)
    message = "Another text should give other parameters after the step."
    assert_equal(moved, True, message, name="'they are finite numbers that differ'")
    assert_close(
        one_step(parameters, tokens, old, 0.5 * norm)[1],
        fresh,
        "Gradients lay on the parameters before the call: the step should be the one that yours is "
        "without them. Check first: torch adds new gradients to old ones.",
        name="the parameters after the step",
        against="without old gradients",
        rtol=1e-4,
        atol=1e-5,
    )
checks_passed("training_step")


# %% check="training_step_steps" points=2
# Hidden checks of training_step: several steps, other optimisers, other leading axes.
### BEGIN HIDDEN TESTS
@probe
def steps(parameters, kind, texts, max_norm):
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 7)).double()
    model.load_state_dict(parameters)
    groups = [{"params": model[:2].parameters()}, {"params": model[2:].parameters()}]
    model[1].requires_grad_(kind != "momentum, one layer frozen")
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = {
        "Adam": lambda p: torch.optim.Adam(p, lr=0.05),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "two groups": lambda p: torch.optim.SGD(groups, lr=0.1, momentum=0.9),
    }[kind.split(",")[0]](trainable)
    if "by name" in kind:  # and the tokens in another order in memory
        given = {"model": model, "optimizer": optimizer, "max_norm": max_norm}
        turned = [x.transpose(0, -1).contiguous().transpose(0, -1) for x in texts]
        losses = [training_step(tokens=tokens, **given) for tokens in turned]
    elif "frozen" in kind:
        try:
            losses = [training_step(model, optimizer, tokens, max_norm) for tokens in texts]
        except NotImplementedError:
            raise
        except Exception as error:
            return type(error).__name__, None
    else:
        losses = [training_step(model, optimizer, tokens, max_norm) for tokens in texts]
    return losses, torch.cat([value.detach().flatten() for value in model.parameters()])


def by_torch(parameters, kind, texts, max_norm):
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 7)).double()
    model.load_state_dict(parameters)
    model[1].requires_grad_(kind != "momentum, one layer frozen")
    trainable = [p for p in model.parameters() if p.requires_grad]
    if kind.startswith("Adam"):
        optimizer = torch.optim.Adam(trainable, lr=0.05)
    else:
        optimizer = torch.optim.SGD(trainable, lr=0.1, momentum=0.9)
    losses = []
    for tokens in texts:
        logits = model(tokens)
        loss = F.cross_entropy(logits[..., :-1, :].reshape(-1, 7), tokens[..., 1:].reshape(-1))
        gradients = torch.autograd.grad(loss, trainable)
        norm = torch.sqrt(sum(g.square().sum() for g in gradients))
        for parameter, gradient in zip(trainable, gradients, strict=True):
            parameter.grad = gradient * (max_norm / norm).clamp(max=1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, torch.cat([value.detach().flatten() for value in model.parameters()])


rng = check_rng()
shapes = {"0.weight": (7, 5), "1.weight": (6, 5), "1.bias": (6,), "3.weight": (7, 6), "3.bias": (7,)}
cases = [
    (kind, lead, (5, 5, 5, 5))
    for kind in ("momentum", "Adam", "two groups")
    for lead in ((), (4,), (2, 3))
]
cases += [("momentum", (1,), (2, 7, 3, 5)), ("Adam", (2, 1), (5, 2, 2, 9))]  # other lengths
cases = [(*case, 0.3) for case in cases]
cases += [
    ("momentum, by name", (33,), (3, 3, 2, 3), 2),
    ("Adam, by name", (2,), (33, 65, 2, 70), 300),
    ("two groups", (1, 2, 1), (4, 130, 3, 4), 7.5),
    ("momentum, one layer frozen", (5,), (5, 5, 4, 5), 0.3),
]
for kind, lead, lengths, max_norm in cases:
    parameters = {name: torch.tensor(rng.normal(size=shape)) for name, shape in shapes.items()}
    texts = [torch.tensor(rng.integers(0, 7, size=(*lead, length))) for length in lengths]
    tokens = (*lead, 5) if len(set(lengths)) == 1 else [(*lead, length) for length in lengths]
    message = (
        f"Four steps ({kind}), tokens of shape {tokens}, max_norm {max_norm}: the losses, and the "
        "parameters in the end, should be those of the formula. All of the model's parameters "
        "have one norm together, in whatever group of the optimiser they are; the given "
        "optimiser moves them, once a call; no gradient of an earlier step counts."
    )
    if "by name" in kind:
        message += " Here the tokens lie in another order in memory, as after a transpose."
    expected, expected_after = by_torch(parameters, kind, texts, max_norm)
    losses, after = steps(parameters, kind, texts, max_norm)
    if "frozen" in kind:
        message += " Here the parameters of one layer have requires_grad False."
        raised = losses if isinstance(losses, str) else "nothing"
        stops = (
            f"Four steps ({kind}), tokens of shape {tokens}, max_norm {max_norm}: training_step "
            "stops with an error. The parameters of one layer have requires_grad False here. Check "
            "first: is their .grad used, which is None?"
        )
        assert_equal(raised, "nothing", stops, name="the error")
    attached = any(getattr(loss, "requires_grad", False) for loss in losses)
    floats = "Each step should return a Python float."
    assert_equal(attached, False, floats, name="'the losses require grad'")
    losses = np.array(losses, dtype=float)
    assert_close(losses, np.array(expected), message, name="the losses", rtol=1e-4, atol=1e-5)
    loose = {"rtol": 1e-3, "atol": 1e-4}
    assert_close(after, expected_after, message, name="the parameters", **loose)
### END HIDDEN TESTS


# %% check="training_step_clipping" points=2
# Hidden checks of training_step: the size and the direction of a clipped step, and the default.
### BEGIN HIDDEN TESTS
@probe
def movement(parameters, tokens, max_norm):
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 7)).double()
    model.load_state_dict(parameters)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = [value.detach().clone() for value in model.parameters()]
    if max_norm is None:
        training_step(model, optimizer, tokens)
    else:
        training_step(model, optimizer, tokens, max_norm)
    pairs = zip(before, model.parameters(), strict=True)
    return torch.cat([(a - b.detach()).flatten() for a, b in pairs])


rng = check_rng()
shapes = {"0.weight": (7, 5), "1.weight": (6, 5), "1.bias": (6,), "3.weight": (7, 6), "3.bias": (7,)}
parameters = {name: torch.tensor(rng.normal(size=shape)) for name, shape in shapes.items()}
parameters["3.weight"] *= 40  # a gradient far above 1
tokens = torch.tensor(rng.integers(0, 7, size=(4, 6)))
free = movement(parameters, tokens, 1e9)
size = float(free.norm())
message = (
    "Gradient descent with rate 1 and max_norm 1e9: the step should be the whole gradient, which "
    "is longer than 2 here."
)
assert_equal(size > 2, True, message, name="'it is longer than 2, and none of it is NaN'")
for max_norm in (None, 0.4, 0.7 * size):
    found = movement(parameters, tokens, max_norm)
    bound = 1.0 if max_norm is None else max_norm
    said = "left out" if max_norm is None else f"{max_norm:.2f}"
    assert_close(
        found,
        free * bound / size,
        f"max_norm is {said}, gradient descent with rate 1: the step should be the one that yours "
        f"is with max_norm 1e9, in the same direction, with the length {bound:.2f} as a whole.",
        name="the movement",
        against="with max_norm 1e9, shortened",
        rtol=1e-4,
        atol=1e-5,
    )


@probe
def moved_with_one_token(parameters, tokens):
    model = nn.Sequential(nn.Embedding(1, 5), nn.Linear(5, 1)).double()
    model.load_state_dict(parameters)
    try:
        training_step(model, torch.optim.SGD(model.parameters(), lr=1.0), tokens)
    except ArithmeticError as error:
        return type(error).__name__
    return model[0].weight.detach()


small = {"0.weight": (1, 5), "1.weight": (1, 5), "1.bias": (1,)}
small = {name: torch.tensor(rng.normal(size=shape)) for name, shape in small.items()}
message = (
    "A model with a vocabulary of one token is always right: loss and gradients are 0. That norm "
    "is below max_norm, so nothing is scaled, and the parameters should stay as they are: no NaN, "
    "no division by 0."
)
found = moved_with_one_token(small, torch.zeros(2, 3, dtype=torch.long))
assert_close(found, small["0.weight"], message, name="the embedding")
### END HIDDEN TESTS


# %% check="training_step_contract" points=1
# Hidden checks of training_step: frozen parameters, the mode, the tokens.
### SIDE CONDITION: counts once another check of training_step passes.
### BEGIN HIDDEN TESTS
@probe
def facts(tokens, mode):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 6), nn.Linear(6, 7))
    model[1].requires_grad_(False)
    frozen = model[1].weight.clone()
    model.train(mode)
    modes = []
    model.register_forward_pre_hook(lambda part, given: modes.append(part.training))
    trainable = [p for p in model.parameters() if p.requires_grad]
    before = [p.detach().clone() for p in trainable]
    loss = training_step(model, torch.optim.SGD(trainable, lr=0.1), tokens)
    pairs = zip(trainable, before, strict=True)
    moved = [not torch.equal(p.detach(), old) for p, old in pairs]
    return {
        "the frozen layer is as it was": torch.equal(frozen, model[1].weight),
        "the others moved": moved,
        "the mode is as it was": model.training == mode,
        "the call has this mode": modes == [mode],
        "the loss is a float": isinstance(loss, float),
    }, tokens


rng = check_rng()
tokens = torch.tensor(rng.integers(0, 7, size=(3, 6)))
for mode in (True, False):
    found, after = facts(tokens.clone(), mode)
    assert_equal(
        found,
        {
            "the frozen layer is as it was": True,
            "the others moved": [True] * 3,
            "the mode is as it was": True,
            "the call has this mode": True,
            "the loss is a float": True,
        },
        "One layer has requires_grad False, so its gradient is None: it should stay as it is, the "
        f"other parameters should move, the mode ({'train' if mode else 'eval'}) stay, also in the "
        "one call of the model, and the loss be a Python float.",
        name="what holds after the step",
    )
    message = "The tokens should be as before after the call."
    assert_equal(after, tokens, message, name="the tokens")
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
# cannot learn two texts by heart will not learn a language. **Predict, then run:** can the loss on
# these two texts become 0? Both begin with a line break and "the ".


# %% tags=["demonstration"]
def overfit(seed, rate, steps=120):
    texts = draw_texts(np.random.default_rng(seed), 2)
    model = new_model(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
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
print(f"a hundred times slower: {slow:.2f}")
assert slow > 1

# %% [markdown]
# Nearly 0, but not quite: where the two texts part, nobody can know which one it is. That one
# guess costs $\ln 2$, a 48th of it in the mean: 0.0144. A loss that stops far above this says
# "something is broken", in two seconds and not after a night. The last line is the control: with a
# rate that is too small the check fails too. It does not say *what* is broken.
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


# %% check="train" points=2 card=["call it **once a step**", "In the second half it falls to 0 in a straight line", "Returns the losses of all steps"]
@probe
def trained(weight, batches, rate):
    model = nn.Embedding.from_pretrained(weight.clone(), freeze=False)  # a table: tokens to logits
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    waiting = list(batches)
    losses = train(model, optimizer, lambda: waiting.pop(0), len(batches))
    return losses, model.weight.detach(), len(waiting)


def by_hand(weight, batches, rate):
    weight, losses = weight.clone().requires_grad_(), []
    for step, tokens in enumerate(batches):
        loss = F.cross_entropy(weight[tokens[:, :-1]].flatten(0, 1), tokens[:, 1:].flatten())
        (slope,) = torch.autograd.grad(loss, weight)
        fall = min(1.0, 2 * (len(batches) - step) / len(batches))
        with torch.no_grad():
            weight -= rate * fall * slope * min(1.0, 1.0 / slope.norm().item())
        losses.append(loss.item())
    return losses, weight.detach()


generator = torch.Generator().manual_seed(int(check_rng().integers(1_000_000)))
weight = torch.randn(5, 5, generator=generator)
batches = list(torch.randint(0, 5, (6, 3, 8), generator=generator))
expected, expected_weight = by_hand(weight, batches, 4.0)
losses, weight_after, left = trained(weight, batches, 4.0)
with check("the losses of the first half", points=0.75):
    message = "Six steps at rate 4: the first three losses. Check first: is each step on a new draw()?"
    assert_close(torch.tensor(losses[:3]), torch.tensor(expected[:3]), message)
with check("all six losses", points=0.5):
    message = "Six losses, a list of floats. Check first: does the rate fall from the fourth step on?"
    assert_close(torch.tensor(losses), torch.tensor(expected), message)
with check("the parameters after six steps", points=0.75):
    message = "The rates of six steps are 4, 4, 4, 4, 8/3 and 4/3 (the own one times 1, 1, 1, 1, 2/3, 1/3)."
    assert_close(weight_after, expected_weight, message)
    assert_equal(left, 0, "draw() is called once a step.", name="texts that nobody drew")
checks_passed("train")

# %% check="train_rates" points=1 card=["In the second half it falls to 0 in a straight line", "of each `group` in `optimizer.param_groups`"]
# Hidden checks of train: another number of steps, an optimiser with two rates.
### BEGIN HIDDEN TESTS
@probe
def rates_of_steps(steps, rates):
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5))
    groups = [{"params": part.parameters(), "lr": rate} for part, rate in zip(model, rates)]
    optimizer, used = torch.optim.SGD(groups), []
    optimizer.register_step_pre_hook(
        lambda optimizer, *_: used.append([group["lr"] for group in optimizer.param_groups])
    )
    train(model, optimizer, lambda: torch.arange(5)[None], steps)
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
# Now train: five models of your own, with your loop and your step, 300 steps each. Copies of each are
# kept on the way. **Predict, then run:** how near will they come to the floor? And will all five seeds?


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

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = train(model, optimizer, draw, steps)
    next(line, None)  # the line of progress says that it is done
    return model, losses, {**copies, steps: model}


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
models, curves, on_the_way = zip(*(trained_model(seed) for seed in range(5)))
fresh = [fresh_loss(model) for model in models]
blind = [fresh_loss(trained_model(seed, attention=False)[0]) for seed in range(5)]
print("losses on fresh texts, 5 seeds:", np.round(fresh, 3), f"floor {floor:.3f}")
print("without attention, 5 seeds:    ", np.round(blind, 3), f"place and character {place_loss:.3f}")
assert all(floor - 0.005 < loss < floor + 0.06 for loss in fresh)
assert all(abs(loss - place_loss) < 0.1 for loss in blind)
assert place_loss < pair_loss - 0.3 and max(fresh) < min(blind) - 0.4

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
figure, axes = plt.subplots(figsize=(8.0, 3.8))
for seed, losses in enumerate(curves):
    axes.semilogy(losses, lw=0.8, label="five models" if seed == 0 else None, color="tab:blue")
for height, name, style in (
    (math.log(vocab_size), "ln V: no knowledge", ":"),
    (pair_loss.item(), "the last character only", "--"),
    (place_loss, "place and last character", "-."),
    (floor, "floor", "-"),
):
    axes.axhline(height, color="black", ls=style, lw=1, label=name)
axes.set(xlabel="training step", ylabel="loss (logarithmic)")
axes.set_yticks((0.2, 0.3, 0.5, 1, 2, 3), ("0.2", "0.3", "0.5", "1", "2", "3"))
axes.minorticks_off()
axes.legend()
figure.tight_layout()
at = (0, 20, 50, 100, 200, 299)
show(
    figure,
    "Figure 1. From ln V to the floor. After some twenty steps the model knows pairs of characters, "
    "and for a moment it is no better than a table of them. About half of the way from there to the "
    "floor needs no attention, only the place; the other half does.",
    "Loss against step, logarithmic. Five curves begin near 3.2, cross the dashed line of the "
    "table of pairs and the line of place and character near 0.7, and end just above the floor near 0.2.",
    text_table(
        np.array([[losses[t] for t in at] for losses in curves]),
        [f"seed {seed}" for seed in range(5)],
        [f"step {t + 1}" for t in at],
        corner="loss",
    ),
)

# %% [markdown]
# The five models end within a few hundredths of the floor, from different starts. What is left is
# mostly a little probability on characters that the grammar forbids, and on sentences that were held out.
#
# Who did the work? The same blocks without attention know the last character and its place, and end
# where a table of these two ends. So of the way from pairs (1.19) to the floor (0.2) about half needs no
# attention: every text begins with "the", and the place says roughly where in a sentence one is. The
# other half is attention's. (Without the control one would have called all of it attention's work.)
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


# %% check="sampling_distribution" points=4.5
# The table above, with the words in another order: blue, running, sleeping, tired, singing.
logits = torch.tensor([1.0, 4.0, 8.0, 1.0, 2.0]).log()
with check("temperature", points=0.5):
    message = "The softmax of the logits divided by the temperature, for five tokens."
    for temperature, weights in ((1.0, [1, 4, 8, 1, 2]), (0.5, [1, 16, 64, 1, 4])):
        expected = torch.tensor(weights) / sum(weights)
        found = sampling_distribution(logits.clone(), temperature)
        assert_close(found, expected, f"{message} Temperature {temperature}.")
with check("temperature 0", points=0.5):
    message = "Temperature 0, logits 0.5, 2, 2, 1: all on the largest logit, the first of equals."
    found = sampling_distribution(torch.tensor([0.5, 2.0, 2.0, 1.0]), 0)
    assert_close(found, torch.tensor([0.0, 1.0, 0.0, 0.0]), message)
with check("top_k", points=0.5):
    found = sampling_distribution(logits.clone(), top_k=2)
    message = "top_k = 2: the two largest stay, in their places, and sum to 1; the others are 0."
    assert_close(found, torch.tensor([0, 4 / 12, 8 / 12, 0, 0]), message)
with check("top_k where logits are equal", points=0.25):
    found = sampling_distribution(logits.clone(), top_k=4)
    message = (
        "top_k = 4 of five tokens: exactly four stay, renormalised. Tokens 0 and 3 are equal: the "
        "one with the lower index stays."
    )
    assert_close(found, torch.tensor([1 / 15, 4 / 15, 8 / 15, 0, 2 / 15]), message)
with check("top_k above vocab", points=0.25):
    found = sampling_distribution(logits.clone(), top_k=9)
    message = "top_k = 9 of five tokens: all stay, as with the softmax."
    assert_close(found, torch.tensor([1.0, 4, 8, 1, 2]) / 16, message)
with check("top_p", points=0.75):
    found = sampling_distribution(logits.clone(), top_p=0.8)
    message = (
        "top_p = 0.8: 0.5 + 0.25 is below it. The third most likely token crosses it, and is in "
        "the set. What stays is renormalised."
    )
    assert_close(found, torch.tensor([0, 4 / 14, 8 / 14, 0, 2 / 14]), message)
with check("a sum of exactly top_p, equal logits", points=0.25):
    found = sampling_distribution(torch.zeros(4), top_p=0.5)
    message = "Four equal tokens, top_p = 0.5: two sum to AT LEAST 0.5, those of the lower indices."
    assert_close(found, torch.tensor([0.5, 0.5, 0, 0]), message)
with check("one after the other", points=1):
    message = "top_k 2 leaves 0.667 and 0.333, renormalised. For top_p 0.6 the first is enough."
    found = sampling_distribution(logits.clone(), top_k=2, top_p=0.6)
    assert_close(found, torch.tensor([0.0, 0, 1, 0, 0]), message)
    message = "Temperature 0.5 first: 0.744 for the first, so that top_p 0.7 keeps it alone."
    found = sampling_distribution(logits.clone(), 0.5, top_p=0.7)
    assert_close(found, torch.tensor([0.0, 0, 1, 0, 0]), message)
with check("values out of range", points=0.5, side=True):
    for wrong in ({"temperature": -1.0}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.1}):
        for knobs in (wrong, {"temperature": 0} | wrong):
            with assert_raises(ValueError, f"{knobs} should be a ValueError."):
                sampling_distribution(logits.clone(), **knobs)
checks_passed("sampling_distribution")


# %% check="sampling_distribution_top" points=3
# Hidden checks of sampling_distribution: top_k and top_p on many distributions, alone.
### BEGIN HIDDEN TESTS
@probe
def result_or_error(logits, places, knobs):
    """The result; or the ValueError that no allowed values should raise."""
    try:
        return sampling_distribution(logits, *places, **knobs), "nothing"
    except ValueError as error:
        return None, type(error).__name__


def drawn(logits, *places, **knobs):
    """What sampling_distribution returns; that it refuses allowed values is told with the call."""
    given = dict(zip(("temperature", "top_k", "top_p"), places)) | knobs
    said = [f"{name} = {value if value is None else f'{value:.7g}'}" for name, value in given.items()]
    message = (
        f"Logits of shape ({len(logits)},), {', '.join(said) or 'no options'}: sampling_distribution "
        "should not raise an error. Allowed are a temperature from 0 on, a top_k from 1 on, a top_p "
        "above 0 and up to 1, which is allowed too, and None for the last two."
    )
    found, raised = result_or_error(logits, places, knobs)
    assert_equal(raised, "nothing", message, name="the error")
    return found


rng = check_rng()


def case(logits):
    """Logits, their softmax, and the tokens from the most likely on."""
    ranks = sorted(range(len(logits)), key=lambda i: (-float(logits[i]), i))
    return logits, torch.softmax(logits, -1), ranks


different = [case(torch.tensor(rng.normal(size=vocab))) for vocab in (1, 6, 13)]
logits = torch.tensor(rng.normal(size=13))
logits[[2, 5, 11]] = logits[4].item()  # four equal ones
equal = [case(logits), case((2 * torch.tensor(rng.normal(size=320))).round() / 2)]  # many


def keep_first(full, ranks, count):
    """The count most likely tokens, renormalised."""
    kept = torch.zeros(len(full), dtype=torch.bool)
    kept[ranks[:count]] = True
    return torch.where(kept, full, 0) / full[kept].sum()


def other_end(logits, message, **knobs):
    """Turned round, the least likely is the most likely one."""
    least = int(logits.argmin())
    found = torch.as_tensor(drawn(-logits, **knobs))
    name = "the place of the largest number (or of NaN)"
    assert_equal(int(found.argmax()), least, message, name=name)


def compare_top_k(logits, full, ranks):
    """Small and large top_k."""
    for top_k in sorted({1, 2, len(full) // 2 + 1, len(full)}):
        message = (
            f"top_k = {top_k} of {len(full)} tokens: exactly {min(top_k, len(full))} stay, of "
            "equal logits the lower index. They are renormalised, each in its place."
        )
        found = drawn(logits, top_k=top_k)
        assert_close(found, keep_first(full, ranks, top_k), message)
    other_end(logits, f"top_k = 1 of {len(full)} tokens: the largest stays.", top_k=1)


def compare_top_p(logits, full, ranks):
    """A top_p between the sums of so many tokens and of one fewer."""
    sums = torch.cat([torch.zeros(1), full[ranks].cumsum(0)])
    for count in sorted({1, 2, len(full) // 2, len(full) - 1} & set(range(1, len(full)))):
        top_p = float(sums[count - 1] + 0.6 * (sums[count] - sums[count - 1]))
        message = (
            f"top_p = {top_p:.3f} of {len(full)} tokens: the smallest set of most likely "
            f"tokens whose sum is at least that has {count}, of equal logits the lower index "
            "first. They are renormalised, each in its place."
        )
        found = drawn(logits, top_p=top_p)
        assert_close(found, keep_first(full, ranks, count), message)
    message = f"top_p = 1e-6 of {len(full)} tokens: the most likely token stays."
    other_end(logits, message, top_p=1e-6)


with check("top_k, different logits", points=0.75):
    for one in different:
        compare_top_k(*one)
with check("top_k where logits are equal", points=0.25):
    for one in equal:
        compare_top_k(*one)
with check("top_k above vocab", points=0.25):
    for logits, full, _ in different:
        message = f"top_k = {len(full) + 3} of {len(full)} tokens: all stay, as with the softmax."
        assert_close(drawn(logits, top_k=len(full) + 3), full, message)
with check("top_k where logits hardly differ", points=0.25):
    for dtype, little in ((torch.float32, 1e-9), (torch.float64, 1e-18)):
        message = (
            f"Logits 0 and {little:g} in {str(dtype)[6:]}, top_k = 1: the larger logit stays, that "
            "of token 1. Check first: what is sorted? The two probabilities are rounded to the "
            "same number."
        )
        found = drawn(torch.tensor([0.0, little], dtype=dtype), top_k=1)
        assert_close(found, torch.tensor([0.0, 1.0]), message)
with check("top_p, different logits", points=1):
    for one in different:
        compare_top_p(*one)
with check("top_p where logits are equal", points=0.25):
    for one in equal:
        compare_top_p(*one)
with check("top_p = 1", points=0.25):
    for logits, full, _ in [*different, *equal]:
        message = (
            f"top_p = 1 of {len(full)} tokens: all stay, as with the softmax. Check first: is a "
            "sum looked for that reaches 1, where rounding keeps it just below?"
        )
        assert_close(drawn(logits, top_p=1.0), full, message)
checks_passed("sampling_distribution")
### END HIDDEN TESTS


# %% check="sampling_distribution_order" points=2
# Hidden checks of sampling_distribution: first temperature, then top_k, then top_p.
### BEGIN HIDDEN TESTS
@probe
def order_or_error(logits, places, knobs):
    """The result; or the ValueError that no allowed values should raise."""
    try:
        return sampling_distribution(logits, *places, **knobs), "nothing"
    except ValueError as error:
        return None, type(error).__name__


def drawn(logits, *places, **knobs):
    """What sampling_distribution returns; that it refuses allowed values is told with the call."""
    given = dict(zip(("temperature", "top_k", "top_p"), places)) | knobs
    said = [f"{name} = {value if value is None else f'{value:.7g}'}" for name, value in given.items()]
    message = (
        f"Logits of shape ({len(logits)},), {', '.join(said) or 'no options'}: sampling_distribution "
        "should not raise an error. Allowed are a temperature from 0 on, a top_k from 1 on, a top_p "
        "above 0 and up to 1, which is allowed too, and None for the last two."
    )
    found, raised = order_or_error(logits, places, knobs)
    assert_equal(raised, "nothing", message, name="the error")
    return found


rng = check_rng()
logits = torch.tensor(rng.permutation([2.0, 1.5, 1.1, 0.4, -0.3, -1.0]) + 0.05 * rng.normal(size=6))
order = sorted(range(6), key=lambda i: -float(logits[i]))


def first(count, values):
    """The count most likely of these probabilities, renormalised."""
    kept = torch.zeros(6, dtype=torch.bool)
    kept[order[:count]] = True
    return torch.where(kept, values, 0) / values[kept].sum()


def smallest_set(values, top_p):
    sums = values[order].cumsum(0)
    return first(int((sums < top_p).sum()) + 1, values)


with check("temperature, then one of the two", points=0.25):
    for temperature in (0.3, 3.0, 0.1):
        warm = torch.softmax(logits / temperature, -1)
        for top_p in (0.37, 0.71, 0.93):
            message = (
                f"Six tokens, temperature {temperature}, then top_p = {top_p} of the new "
                "probabilities; what stays is renormalised."
            )
            found = drawn(logits, temperature, top_p=top_p)
            assert_close(found, smallest_set(warm, top_p), message)
        found = drawn(logits, temperature, top_k=3)
        message = (
            f"Six tokens, temperature {temperature}, then top_k = 3; what stays is renormalised, "
            "which is division by its sum: two tokens that stay keep the ratio that they have after "
            "the temperature. Check first: does the temperature act once, also with top_k?"
        )
        assert_close(found, first(3, warm), message)
with check("temperature, then top_k where logits are equal", points=0.25):
    many = (2 * torch.tensor(rng.normal(size=320))).round() / 2  # many equal ones
    ranks = sorted(range(320), key=lambda i: (-float(many[i]), i))
    warm = torch.softmax(many / 2, -1)
    for top_k in (2, 150, 319):
        kept = torch.zeros(320, dtype=torch.bool)
        kept[ranks[:top_k]] = True
        message = (
            f"320 tokens, many of them equal, temperature 2, then top_k = {top_k}: exactly {top_k} "
            "stay, of equal logits the lower index. They are renormalised, each in its place."
        )
        found = drawn(many, 2, top_k=top_k)
        assert_close(found, torch.where(kept, warm, 0) / warm[kept].sum(), message)
with check("top_k, then top_p of what is left; other options, by place", points=1):
    full = torch.softmax(logits, -1)
    for top_k in (2, 3, 4):
        left = first(top_k, full)
        sums, full_sums = left[order].cumsum(0), full[order].cumsum(0)
        for count in range(1, top_k):
            # Of what is left, renormalised, count tokens are enough; of everything, they are not.
            least = max(float(full_sums[count - 1]), float(sums[count - 2]) if count > 1 else 0.0)
            top_p = (least + float(sums[count - 1])) / 2
            message = (
                f"Six tokens: top_k = {top_k}, renormalised, and then top_p = {top_p:.3f} of that, "
                f"for which {count} are enough; renormalised."
            )
            found = drawn(logits, top_k=top_k, top_p=top_p)
            assert_close(found, first(count, full), message)
    for vocab, temperature, top_k, count in (
        (2, 1, 2, 1),
        (33, 0.7, 33, 20),
        (65, 2, 33, 31),
        (130, 1.5, 65, None),
        (130, 1.0, None, 66),
        (70, 3, None, None),
        (2, 2.5, 1, 1),
        (33, 1, 32, 1),
    ):
        some = torch.tensor(rng.normal(size=vocab))
        p = torch.softmax(some / temperature, -1)
        ranks = sorted(range(vocab), key=lambda i, some=some: -float(some[i]))
        kept = ranks if top_k is None else ranks[:top_k]
        sums = torch.cat([torch.zeros(1), (p[kept] / p[kept].sum()).cumsum(0)])
        top_p = None if count is None else float((sums[count - 1] + sums[count]) / 2)
        kept = kept[:count]
        expected = torch.zeros(vocab, dtype=torch.float64)
        expected[kept] = p[kept] / p[kept].sum()
        message = (
            f"{vocab} tokens, temperature {temperature}, top_k {top_k} and top_p "
            f"{'None' if top_p is None else f'{top_p:.4f}'}, all by place: {len(kept)} of them "
            "should stay, renormalised, each in its place."
        )
        found = drawn(some, temperature, top_k, top_p)
        assert_close(found, expected, message)
with check("temperature 0, also beside -inf", points=0.5):
    for more in ({}, {"top_k": 3}, {"top_p": 0.9}, {"top_k": 2, "top_p": 0.1}):
        found = drawn(logits, temperature=0, **more)
        message = (
            f"Temperature 0 with {more or 'nothing else'}: floating numbers, 1 at the largest logit "
            "and 0 at all others."
        )
        assert_close(found, first(1, torch.softmax(logits, -1)), message)
    found = drawn(logits, 0.0, top_p=1)
    message = "Temperature 0.0, a float, with top_p = 1, an int: 1 at the largest logit, 0 elsewhere."
    assert_close(found, first(1, torch.softmax(logits, -1)), message)
    message = "Logits -inf, -0.7, -inf, temperature 0: 1 at the finite one, 0 at the others, no NaN."
    found = drawn(torch.tensor([-math.inf, -0.7, -math.inf]), 0)
    assert_close(found, torch.tensor([0.0, 1.0, 0.0]), message)
checks_passed("sampling_distribution")
### END HIDDEN TESTS


# %% check="sampling_distribution_numbers" points=2
# Hidden checks of sampling_distribution: -inf, large logits, float32, errors, the argument.
### BEGIN HIDDEN TESTS
@probe
def argument_after(logits, *options):
    sampling_distribution(logits, *options)
    return logits


@probe
def strided(logits, options):
    """A column of a matrix, whose numbers do not lie side by side, and without gradients."""
    column = torch.stack([logits, logits + 1], dim=-1)[:, 0]
    with torch.no_grad():
        try:
            return sampling_distribution(column, **options)
        except NotImplementedError:
            raise
        except (RuntimeError, ValueError) as error:
            return type(error).__name__


@probe
def numbers_or_error(logits, places, knobs):
    """The result; or the ValueError that no allowed values should raise."""
    try:
        return sampling_distribution(logits, *places, **knobs), "nothing"
    except ValueError as error:
        return None, type(error).__name__


def drawn(logits, *places, **knobs):
    """What sampling_distribution returns; that it refuses allowed values is told with the call."""
    given = dict(zip(("temperature", "top_k", "top_p"), places)) | knobs
    said = [f"{name} = {value if value is None else f'{value:.7g}'}" for name, value in given.items()]
    message = (
        f"Logits of shape ({len(logits)},), {', '.join(said) or 'no options'}: sampling_distribution "
        "should not raise an error. Allowed are a temperature from 0 on, a top_k from 1 on, a top_p "
        "above 0 and up to 1, which is allowed too, and None for the last two."
    )
    found, raised = numbers_or_error(logits, places, knobs)
    assert_equal(raised, "nothing", message, name="the error")
    return found


rng = check_rng()
infinite = torch.tensor(rng.normal(size=7))
infinite[[0, 3]] = -math.inf
full = torch.softmax(infinite, -1)
largest = torch.zeros(7, dtype=torch.float64)
largest[int(full.argmax())] = 1.0
with check("-inf", points=0.5):
    message = "Seven tokens, two with a logit of -inf: a probability of 0 there, and no NaN."
    for more in ({}, {"top_k": 6}, {"top_p": 0.999999}, {"top_k": 5, "top_p": 1.0}):
        found = drawn(infinite, **more)
        sentence = f"{message} With {more or 'no options'} it should be the softmax of all."
        assert_close(found, full, sentence, atol=1e-5)
    for more in ({"top_k": 1}, {"top_p": 1e-3}):
        found = drawn(infinite, **more)
        sentence = (
            f"{message} With {more} it should be 1 at the largest logit, and 0 at all others, in "
            "floating numbers."
        )
        assert_close(found, largest, sentence)
    single = torch.tensor([-math.inf, -0.7, -math.inf])
    for more in ({}, {"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.9}):
        found = drawn(single, **more)
        sentence = (
            f"Logits -inf, -0.7, -inf, with {more or 'no options'}: 1 at the finite one, 0 at the "
            "others, and no NaN."
        )
        assert_close(found, torch.tensor([0.0, 1.0, 0.0]), sentence)
with check("large logits", points=0.25):
    large = torch.tensor([9999.0, 1e4, -1e4, 9998.0])
    for temperature in (1.0, 2.5):
        expected = torch.softmax(large / temperature, -1)
        found = drawn(large, temperature)
        message = (
            f"Logits 9999, 10000, -10000, 9998 in float32, temperature {temperature}: it should be "
            "the softmax, without NaN."
        )
        assert_close(found, expected, message, atol=1e-4)
        message = (
            f"Logits 9999, 10000, -10000, 9998 in float32, temperature {temperature}, top_k = 3 and "
            "top_p = 0.9999: nothing is left out but the fourth token, whose probability is 0. So it "
            "should be the softmax that the temperature gives, as your result is without top_k and "
            "top_p. Check first: does the temperature act once, also with top_k?"
        )
        found = drawn(large, temperature, 3, 0.9999)
        assert_close(found, expected, message, atol=1e-3)
    low = torch.tensor([-2001.0, -2000.0, -2002.0])
    message = "Logits -2001, -2000, -2002 in float32: it should be the softmax, without NaN."
    assert_close(drawn(low), torch.softmax(low, -1), message, atol=1e-4)
    far = torch.tensor([-3e15, -1e15, -2e15]).double()
    for more in ({"top_k": 1}, {"top_k": 2}, {"top_p": 0.5}):
        message = (
            f"Logits -3e15, -1e15, -2e15 in float64, with {more}: 1 at the largest, 0 at the others. "
            "Check first: is what stands for a token that is left out lower than any logit can be?"
        )
        assert_close(drawn(far, **more), torch.tensor([0.0, 1.0, 0.0]).double(), message)
    sums = drawn(large, 2.5, 2).double().sum()
    message = "The same logits, temperature 2.5, top_k = 2: the probabilities should sum to 1."
    assert_close(float(sums), 1.0, message, atol=1e-5)
with check("float64 stays float64; a column of a matrix", points=0.25):
    for more in ({"top_k": 1}, {"top_p": 1e-3}):
        found = drawn(infinite.nan_to_num(neginf=-9.0), **more)
        sentence = (
            f"As float32 stays float32, float64 stays float64. Seven logits in float64, with {more}: "
            "the result should be a float64 tensor with 1 at the largest logit, and 0 at all others."
        )
        assert_close(found, largest, sentence, precise=True)
    seven = torch.tensor(rng.normal(size=7))
    for options in ({}, {"temperature": 2, "top_k": 7}, {"temperature": 0.5, "top_p": 1}):
        message = (
            "Seven logits, a column of a matrix, so that they are not side by side in memory, "
            f"under torch.no_grad(), with {options or 'no options'}: all stay, and it should be "
            "the softmax that the temperature gives."
        )
        expected = torch.softmax(seven / options.get("temperature", 1), -1)
        assert_close(strided(seven, options), expected, message)
with check("the logits stay as they are; the errors", points=1, side=True):
    logits = torch.tensor(rng.normal(size=6))
    for options in ((0.5, 3, 0.8), (2.0, None, None), (0, None, None), (1.0, 2, None), (1.0, None, 0.5)):
        after = argument_after(logits.clone(), *options)
        message = (
            f"(temperature, top_k, top_p) = {options}: logits should be as before after the call."
        )
        assert_equal(after, logits, message, name="the logits")
    for name, values in {"temperature": (-0.1,), "top_k": (0, -2), "top_p": (0, -0.2, 1.001)}.items():
        for value in values:
            with assert_raises(ValueError, f"{name} = {value} should be a ValueError."):
                sampling_distribution(logits, **{name: value})
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
# Now let your first model speak: as it was after 0, 50, 100 and 300 steps, and at three temperatures. A
# word that the language does not have stands in brackets.


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


for step, model in on_the_way[0].items():
    print(f"--- after {step} steps")
    print(*map(marked, write(model, 2, seed=1)), sep="\n\n")
for temperature in (0.5, 1.0, 2.0):
    print(f"--- after 300 steps, temperature {temperature}")
    print(*map(marked, write(models[0], 2, seed=2, temperature=temperature)), sep="\n\n")
right_words = np.array([[words_right(write(m, 5)) for m in copies.values()] for copies in on_the_way])
print("\nshare of the words that are words, 5 models (rows), after 0, 50, 100 and 300 steps:")
print(right_words.round(2))
assert right_words[:, 0].max() < 0.1 and right_words[:, 3].min() > 0.7
assert (np.diff(right_words, axis=1) > 0.02).all()


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained: another machine may draw another text.
def spoken(axes, temperature):
    """Four texts at one temperature, a bar for each line break; what is no word is red."""
    texts = write(models[0], 4, seed=3, temperature=temperature)
    axes.axis("off")
    for row, text in enumerate(texts):
        x = 0
        for word in text.replace("\n", " | ").split(" "):
            colour = "black" if word in {*vocabulary, "|"} else "tab:red"
            axes.text(x, -row, word, family="monospace", fontsize=9, color=colour)
            x += len(word) + 1
    axes.set(xlim=(0, 54), ylim=(-3.5, 1))
    return f"{words_right(texts):.0%} of the whole words are words."


slider(
    spoken,
    "temperature",
    [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0],
    pictures=[0.5, 1.0, 2.0],
    caption="Figure 3. Four texts, from the same draws. Move the temperature: from which value on does it "
    "stammer, and what do the four have in common at 0? (A red word at the end may only be cut off.)",
    size=(4.8, 1.5),
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
print("share of the finished lines that are sentences: five models, mean; different ones, mean")
for name, results in found.items():
    shares = [share for share, _ in results]
    different = np.mean([count for _, count in results])
    print(f"{name:26s} {np.round(shares, 2)}   {np.mean(shares):.2f}   {different:5.1f}")
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
# Greedy writing makes no mistake, and has one thing to say: the same text, twenty times. The
# language holds 144 sentences for it, all equally likely; greedy shows the one that it meets when it takes the
# likeliest *character* at each place: the beginning that most words share, and where none is shared
# what training noise has put a hair above the others. Drawing at temperature 1 shows the language, with some slips; at 0.5 the slips
# are gone, and the variety is nearly the same. At 2 most lines are broken: twenty wrong characters have
# a small probability each, at every one of 25 places, and one slip breaks a line.
#
# Top-k 4 hardly helps, and top-p 0.8 mends nearly all of it. The reason is this language. At most places
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
# **Predict, then run:** each trains the same new model on the same texts, with Adam, and with a
# `max_norm` of 0.1, so that the right loop clips at nearly every step. Which curves can you tell from
# the first one?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained: the lines of progress come and go.
loop_losses, loop_models = {}, {}
sizes_before = []  # of the gradients of the right loop, before they are clipped


def total_norm(model, tokens):
    """The length of all gradients together."""
    slopes = torch.autograd.grad(shifted_loss(model, tokens), list(model.parameters()))
    return torch.cat([slope.flatten() for slope in slopes]).norm().item()


for step in loops:
    model, rng = new_model(0), np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
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
figure, axes = plt.subplots(figsize=(8.0, 4.2))
styles = ["-", "--", ":", "-.", (0, (1, 4)), (0, (5, 4)), (0, (3, 1, 1, 1, 1, 1))]
for (name, losses), style in zip(loop_losses.items(), styles):
    axes.plot(losses, ls=style, lw=2.5 if name == "right" else 1.4, label=name)
axes.set(xlabel="training step", ylabel="loss that the loop reports", ylim=(0, 3.4))
axes.legend(fontsize=8)
figure.tight_layout()
blocks_of_five = {name: np.reshape(losses, (-1, 5)).mean(1) for name, losses in loop_losses.items()}
show(
    figure,
    "Figure 4. One right loop, six broken ones. All begin near ln V, all fall, none stops. Without "
    "clipping, or with each parameter clipped by itself, the curve lies close to the right one. Others "
    "are slower, one is even lower: without the right one beside it none looks broken.",
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
# Why does the missing clip leave hardly a trace, although the right loop clipped all the time? Adam divides
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


# %% check="judges_step" points=4.5
@probe
def verdicts_on(names):
    def loss_of(model, tokens, shift=1):
        logits, n = model(tokens), tokens.shape[-1]
        guesses = logits[..., : n - shift, :].reshape(-1, logits.shape[-1])
        return F.cross_entropy(guesses, tokens[..., shift:].reshape(-1))

    def clip(model, max_norm):
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)

    def right_by_torch(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        clip(model, max_norm)
        optimizer.step()
        return loss.item()

    def right_by_hand(model, optimizer, tokens, max_norm=1.0):
        for p in model.parameters():
            p.grad = None
        log_p = model(tokens)[..., :-1, :].log_softmax(-1)
        loss = -log_p.gather(-1, tokens[..., 1:, None]).mean()
        loss.backward()
        found = [p.grad for p in model.parameters() if p.grad is not None]
        norm = torch.sqrt(sum(g.square().sum() for g in found))
        if norm > max_norm:
            for g in found:
                g.mul_(max_norm / norm)
        optimizer.step()
        return loss.item()

    def keeps_gradients(model, optimizer, tokens, max_norm=1.0):
        loss = loss_of(model, tokens)
        loss.backward()
        clip(model, max_norm)
        optimizer.step()
        return loss.item()

    def no_update(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        clip(model, max_norm)
        return loss.item()

    def update_before_backward(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        optimizer.step()
        loss = loss_of(model, tokens)
        loss.backward()
        clip(model, max_norm)
        return loss.item()

    def not_shifted(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens, shift=0)
        loss.backward()
        clip(model, max_norm)
        optimizer.step()
        return loss.item()

    def no_clipping(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        optimizer.step()
        return loss.item()

    def clips_each(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        for p in model.parameters():
            nn.utils.clip_grad_norm_(p, max_norm)
        optimizer.step()
        return loss.item()

    def first_layer_frozen(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        clip(model, max_norm)
        next(model.parameters()).grad.zero_()
        optimizer.step()
        return loss.item()

    def loss_after(model, optimizer, tokens, max_norm=1.0):
        right_by_torch(model, optimizer, tokens, max_norm)
        with torch.no_grad():
            return loss_of(model, tokens).item()

    steps = locals()
    return {name: judges_step(steps[name]) for name in names}


def plain(verdict):
    """True or False, also of another kind: of which kind a verdict is has a check of its own."""
    array = np.asarray(verdict)
    return bool(array) if array.dtype == bool and array.ndim == 0 else verdict


def compare(broken, message):
    names = ["right_by_torch", "right_by_hand", *broken]
    assert_equal(
        {name: plain(verdict) for name, verdict in verdicts_on(names).items()},
        {name: name not in broken for name in names},
        f"{message} Two right steps are judged too: the verdict on a step that is right, in "
        "whatever way it is written, should be True, and on a broken one False.",
        name="your verdicts",
    )


with check("the update: right steps and broken ones", points=1):
    compare(
        ["no_update", "update_before_backward", "first_layer_frozen"],
        "After a right step EVERY parameter is where the rule of the optimiser puts it.",
    )
with check("the loss: right steps and broken ones", points=1):
    compare(
        ["not_shifted", "loss_after"],
        "A right step trains with next_token_loss, and returns what that is before the update.",
    )
with check("clipping: right steps and broken ones", points=1):
    compare(
        ["no_clipping", "clips_each"],
        "When the total norm is above max_norm, all gradients are scaled by the same number. Check "
        "first: does your optimiser show the size of a gradient, or does it divide it away?",
    )
with check("old gradients: right steps and a broken one", points=1):
    compare(
        ["keeps_gradients"],
        "What lies on .grad when a step is called should have no influence on it. Check first: "
        "does something lie there when you call it, and another gradient than the new one? On a "
        "new model nothing does.",
    )
with check("a Python bool", points=0.5, side=True):
    types = {name: type(one) for name, one in verdicts_on(["right_by_torch"]).items()}
    # NumPy's is named bool, too.
    kinds = {name: f"{one.__module__}.{one.__name__}" for name, one in types.items()}
    message = (
        "right_by_torch, a right step, was judged: the verdict should be Python's own True or False, "
        "not a tensor or a NumPy bool. Here it is of the kind " + kinds["right_by_torch"] + "."
    )
    assert_equal(kinds, {"right_by_torch": "builtins.bool"}, message, name="the kind")
checks_passed("judges_step")


# %% check="judges_step_update" points=3
# Hidden checks of judges_step: every kind of missing or partial update; errors.
### BEGIN HIDDEN TESTS
@probe
def verdicts(seed, which):
    def loss_of(model, tokens):
        logits = model(tokens)
        guesses = logits[..., :-1, :].reshape(-1, logits.shape[-1])
        return F.cross_entropy(guesses, tokens[..., 1:].reshape(-1))

    def begin(model, optimizer, tokens, max_norm):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        return loss

    def with_zeros(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad(set_to_none=False)
        loss = loss_of(model, tokens)
        loss.backward()
        nn.utils.clip_grad_norm_(list(model.parameters()), max_norm, foreach=False)
        optimizer.step()
        return loss.item()

    def with_autograd(model, optimizer, tokens, max_norm=1.0):
        parameters = [p for p in model.parameters() if p.requires_grad]
        loss = loss_of(model, tokens)
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        norm = sum(float(g.double().square().sum()) for g in found if g is not None) ** 0.5
        for p, g in zip(parameters, found, strict=True):
            p.grad = None if g is None else g * min(1.0, max_norm / max(norm, 1e-12))
        optimizer.step()
        return float(loss.detach())

    def by_groups(model, optimizer, tokens, max_norm=1.0):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for p in parameters:
            p.grad = None
        loss = loss_of(model, tokens)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, max_norm)
        optimizer.step()
        return loss.item()

    def freezes(which, how):
        def step(model, optimizer, tokens, max_norm=1.0):
            loss = begin(model, optimizer, tokens, max_norm)
            sizes = [0.0 if p.grad is None else float(p.grad.norm()) for p in model.parameters()]
            # One that moves: whoever freezes what stands still anyway makes no mistake.
            moving = [
                p
                for p, size in zip(model.parameters(), sizes, strict=True)
                if size >= 0.3 * max(sizes)
            ]
            chosen = moving[which(len(moving))]
            kept = chosen.detach().clone()
            if how == "zero":
                chosen.grad.zero_()
            elif how == "none":
                chosen.grad = None
            optimizer.step()
            if how == "restore":
                with torch.no_grad():
                    chosen.copy_(kept)
            return loss.item()

        return step

    def no_step(model, optimizer, tokens, max_norm=1.0):
        return begin(model, optimizer, tokens, max_norm).item()

    def zero_before_step(model, optimizer, tokens, max_norm=1.0):
        loss = begin(model, optimizer, tokens, max_norm)
        optimizer.zero_grad()
        optimizer.step()
        return loss.item()

    def no_backward(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        optimizer.step()
        return loss.item()

    def step_then_backward(model, optimizer, tokens, max_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(model, tokens).detach()
        optimizer.step()
        loss_of(model, tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        return loss.item()

    def raises(error):
        def step(model, optimizer, tokens, max_norm=1.0):
            begin(model, optimizer, tokens, max_norm)
            optimizer.step()
            raise error

        return step

    middle = int(np.random.default_rng(seed).integers(1, 100))
    numbered = [
        [no_step, zero_before_step, no_backward, step_then_backward],
        [with_zeros, with_autograd, by_groups],
        [
            freezes(lambda count: 0, "none"),
            freezes(lambda count: count - 1, "zero"),
            freezes(lambda count: max(count - 2, 0), "restore"),
            freezes(lambda count: middle % count, "zero"),
        ],
        [
            raises(ValueError("shapes")),
            raises(RuntimeError("in place")),
            raises(ZeroDivisionError()),
            raises(TypeError("a name")),
            raises(AssertionError()),
            raises(LookupError("no row")),
        ],
    ]
    def verdict(step):
        try:
            return judges_step(step)
        except NotImplementedError:
            raise
        except Exception as error:
            return f"no verdict, but {type(error).__name__}"

    return [[verdict(step) for step in numbered[number]] for number in which]


#: Which are right is known here and not beside the student's code, which could look at its caller.
kinds = {
    "no update": (
        "no step",
        "gradients forgotten before the step",
        "no backward",
        "step, then backward",
    ),
    "right": ("zeros", "autograd", "groups"),
    "frozen": ("the first", "the last", "the last but one", "some other"),
    "errors": (
        "ValueError",
        "RuntimeError",
        "ZeroDivisionError",
        "TypeError",
        "AssertionError",
        "LookupError",
    ),
}
seed = int(check_rng().integers(2**31))


def plain(verdict):
    """True or False, also of another kind: of which kind a verdict is has a check of its own."""
    array = np.asarray(verdict)
    return bool(array) if array.dtype == bool and array.ndim == 0 else verdict


def compare(kind, message):
    both = ("right", kind)
    judged = verdicts(seed, [list(kinds).index(one) for one in both])
    found = {
        f"{one}: {name}": plain(verdict)
        for one, verdicts_of_it in zip(both, judged, strict=True)
        for name, verdict in zip(kinds[one], verdicts_of_it, strict=True)
    }
    message = (
        f"{message} Three right steps, written in other ways, are judged too: the verdict on a "
        "right step should be True, on a broken one False."
    )
    assert_equal(len(found) > 5, True, message, name="'all were judged'")
    expected = {f"{one}: {name}": one == "right" for one in both for name in kinds[one]}
    assert_equal(found, expected, message, name="your verdicts")


with check("no update, beside right steps", points=0.5):
    message = (
        "Broken here: no optimiser's step; gradients forgotten before it; no backward; backward "
        "after the step."
    )
    compare("no update", message)
with check("one parameter does not move, beside right steps", points=1.5):
    message = (
        "Broken here: one parameter does not move, of those with a large gradient: the first, the "
        "last, the last but one, some other."
    )
    compare("frozen", message)
with check("steps that raise errors, beside right ones", points=1):
    message = (
        "Broken here: the step moves the parameters and then raises an error, of six kinds, one of "
        "them LookupError. A step that raises an error of whatever kind is broken: judges_step "
        "should return False, and raise nothing itself."
    )
    compare("errors", message)
checks_passed("judges_step")
### END HIDDEN TESTS


# %% check="judges_step_clipping" points=2
# Hidden checks of judges_step: clipping that is missing, by itself, too early, also upwards.
### BEGIN HIDDEN TESTS
@probe
def verdicts_on_clipping(seed):
    def loss_of(model, tokens):
        logits = model(tokens)
        guesses = logits[..., :-1, :].reshape(-1, logits.shape[-1])
        return F.cross_entropy(guesses, tokens[..., 1:].reshape(-1))

    def with_clip(clip, early=False, late=False):
        def step(model, optimizer, tokens, max_norm=1.0):
            optimizer.zero_grad()
            loss = loss_of(model, tokens)
            if early:
                clip(model, max_norm)
            loss.backward()
            if not early and not late:
                clip(model, max_norm)
            optimizer.step()
            if late:
                clip(model, max_norm)
            return loss.item()

        return step

    def by_torch(model, max_norm):
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)

    def by_formula(model, max_norm):
        found = [p.grad for p in model.parameters() if p.grad is not None]
        norm = float(torch.cat([g.flatten() for g in found]).norm())
        for g in found:
            g.mul_(min(1.0, max_norm / (norm + 1e-6)))

    def nothing(model, max_norm):
        pass

    def each(model, max_norm):
        for p in model.parameters():
            nn.utils.clip_grad_norm_(p, max_norm)

    def each_by_hand(model, max_norm):
        for p in model.parameters():
            if p.grad is not None and p.grad.norm() > max_norm:
                p.grad *= max_norm / p.grad.norm()

    def up_too(model, max_norm):
        found = [p.grad for p in model.parameters() if p.grad is not None]
        norm = float(torch.cat([g.flatten() for g in found]).norm())
        for g in found:
            g.mul_(max_norm / (norm + 1e-6))

    return {
        "right: torch": judges_step(with_clip(by_torch)),
        "right: formula": judges_step(with_clip(by_formula)),
        "none": judges_step(with_clip(nothing)),
        "after the step": judges_step(with_clip(by_torch, late=True)),
        "before backward": judges_step(with_clip(by_torch, early=True)),
        "each": judges_step(with_clip(each)),
        "each, by hand": judges_step(with_clip(each_by_hand)),
        "small gradients scaled up": judges_step(with_clip(up_too)),
    }


def plain(verdict):
    """True or False, also of another kind: of which kind a verdict is has a check of its own."""
    array = np.asarray(verdict)
    return bool(array) if array.dtype == bool and array.ndim == 0 else verdict


judged = {}


def compare(kinds, message):
    """The verdicts on two right steps and on some wrong ones."""
    if not judged:
        judged.update({name: plain(one) for name, one in verdicts_on_clipping(0).items()})
    names = ("right: torch", "right: formula", *kinds)
    found = {name: judged[name] for name in names}
    expected = {name: name.startswith("right") for name in names}
    message = (
        f"{message} Two right steps, by torch's clipping and by the formula, are judged too: the "
        "verdict on a right step should be True, on a broken one False."
    )
    assert_equal(found, expected, message, name="your verdicts")


with check("clipping that is missing, too early, too late, or right", points=0.75):
    message = (
        "Gradients should be clipped after backward and before the optimiser's step. Broken here: "
        "no clipping, clipping before backward, clipping after the step."
    )
    compare(("none", "after the step", "before backward"), message)
with check("each parameter clipped by itself, beside right steps", points=0.75):
    message = (
        "All gradients together have one norm. Broken here: each parameter's gradient is clipped "
        "by itself, which changes the direction of the step."
    )
    compare(("each", "each, by hand"), message)
with check("small gradients scaled up, beside right steps", points=0.5):
    message = (
        "Clipping only shortens: gradients whose norm is below max_norm should stay as they are. "
        "Broken here: they are scaled up to max_norm."
    )
    compare(("small gradients scaled up",), message)
checks_passed("judges_step")
### END HIDDEN TESTS


# %% check="judges_step_loss" points=2.5
# Hidden checks of judges_step: losses of other targets, of another moment; old gradients.
### BEGIN HIDDEN TESTS
@probe
def verdicts_on_losses(kind):
    def cross_entropy(logits, targets):
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))

    def shifted(logits, tokens):
        return cross_entropy(logits[..., :-1, :], tokens[..., 1:])

    def backwards(logits, tokens):
        return cross_entropy(logits[..., 1:, :], tokens[..., :-1])

    def by_gather(logits, tokens):
        log_p = logits - logits.logsumexp(-1, keepdim=True)
        picked = log_p[..., :-1, :].gather(-1, tokens[..., 1:].unsqueeze(-1))
        return -picked.sum() / picked.numel()

    def with_loss(loss_of, old="forget", report="before", report_of=None):
        def step(model, optimizer, tokens, max_norm=1.0):
            if old == "forget":
                optimizer.zero_grad()
            if isinstance(old, int):  # that of one parameter is forgotten, all others are kept
                list(model.parameters())[old].grad = None
            for p in model.parameters():
                if old == "biases" and p.ndim != 1:  # those of one-dimensional ones are kept
                    p.grad = None
            logits = model(tokens)
            loss = loss_of(logits, tokens)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if report == "after":
                with torch.no_grad():
                    return loss_of(model(tokens), tokens).item()
            return (report_of or loss_of)(logits.detach(), tokens).item()

        return step

    kinds = {
        "targets": [with_loss(cross_entropy), with_loss(cross_entropy, report_of=shifted)],
        "moment": [with_loss(shifted, report="after")],
        "old": [with_loss(shifted, "keep"), with_loss(by_gather, "keep")],
    }
    kinds["targets"] += [with_loss(backwards), with_loss(backwards, report_of=shifted)]
    kinds["old"] += [with_loss(shifted, old=0), with_loss(shifted, old=-1)]
    kinds["old"] += [with_loss(shifted, old="biases")]
    steps = [with_loss(shifted), *kinds[kind], with_loss(by_gather)]
    return [judges_step(step) for step in steps]


#: Which are right is known here and not beside the student's code, which could look at its caller.
broken = {
    "targets": (
        "not shifted",
        "not shifted, the right loss reported",
        "shifted the wrong way",
        "shifted the wrong way, the right loss reported",
    ),
    "moment": ("after",),
    "old": (
        "kept",
        "kept, by gather",
        "all but the first kept",
        "all but the last kept",
        "those of one-dimensional parameters kept",
    ),
}


def plain(verdict):
    """True or False, also of another kind: of which kind a verdict is has a check of its own."""
    array = np.asarray(verdict)
    return bool(array) if array.dtype == bool and array.ndim == 0 else verdict


def compare(kind, message):
    first, *others, last = map(plain, verdicts_on_losses(kind))
    found = {"right": first, "right, by gather": last}
    found |= dict(zip(broken[kind], others, strict=True))
    message = (
        f"{message} Two right steps are judged too: the verdict on a right step should be True, on "
        "a broken one False."
    )
    assert_equal(len(found) >= 3, True, message, name="'all were judged'")
    names = ("right", "right, by gather", *broken[kind])
    expected = {name: name.startswith("right") for name in names}
    assert_equal(found, expected, message, name="your verdicts")


with check("wrong targets, beside right steps", points=0.75):
    message = (
        "The logits at position t should be scored against token t + 1. Broken here: against token "
        "t, or against token t - 1; and the same with the right loss returned."
    )
    compare("targets", message)
with check("the loss after the update, beside right steps", points=0.75):
    message = "A right step returns the loss before the update. Broken here: the one after it."
    compare("moment", message)
with check("old gradients kept, beside right steps", points=1):
    message = (
        "Gradients that lay on the parameters should have no influence on a step. Broken here: "
        "they are kept, and the new ones added: for all parameters, for all but the first or the "
        "last, or for those with one axis alone, such as biases."
    )
    compare("old", message)
checks_passed("judges_step")
### END HIDDEN TESTS


# %% check="judges_step_contract" points=1
# Hidden checks of judges_step: a step may insist on its contract, or clear its gradients; NumPy's random state.
### SIDE CONDITION: counts once another check of judges_step passes.
### BEGIN HIDDEN TESTS
@probe
def strict_and_state():
    def strict(model, optimizer, tokens, max_norm=1.0):
        assert isinstance(model, nn.Module) and isinstance(optimizer, torch.optim.Optimizer)
        assert isinstance(tokens, torch.Tensor) and not tokens.is_floating_point()
        optimizer.zero_grad()
        logits = model(tokens)
        guesses = logits[..., :-1, :].reshape(-1, logits.shape[-1])
        loss = F.cross_entropy(guesses, tokens[..., 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        return loss.item()

    def clears_again_at_the_end(model, optimizer, tokens, max_norm=1.0):
        loss = strict(model, optimizer, tokens, max_norm)
        optimizer.zero_grad()
        return loss

    before = np.random.get_state()
    np.random.seed(5)
    state = np.random.get_state()[1:3]
    verdict = judges_step(strict), judges_step(strict), judges_step(clears_again_at_the_end)
    after = np.random.get_state()[1:3]
    np.random.set_state(before)
    return list(verdict), after, state


verdict, after, state = strict_and_state()
verdict = [bool(one) if np.size(one) == 1 else one for one in verdict]
message = (
    "A right step that asks for a torch module, a torch optimiser and a torch tensor of integers, "
    "judged twice: both verdicts should be True."
)
assert_equal(verdict[:2], [True, True], message, name="your verdicts")
message = (
    "A right step that clears the gradients before it works, and once more when it has moved the "
    "parameters: the verdict should be True. What lies on .grad after a step is not asked for."
)
assert_equal(verdict[2:], [True], message, name="your verdict")
message = "NumPy's global random state should be as before after the call."
assert_equal(after, state, message, name="NumPy's state", against="before the call")
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
# | "The likeliest token at each place gives the best text." | It says one thing for ever. Holtzman and others (2020) found the same in large models. | section 6 |
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
# put over them.
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
