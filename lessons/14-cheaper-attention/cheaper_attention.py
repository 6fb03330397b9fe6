# %% [markdown]
# ## What you will be able to do
#
# - **Tell apart** what is cheaper and exact from what is cheaper and different.
# - **Build** a sliding window, and **predict** how far a stack of windows sees.
# - **Write** linear attention twice, over a whole text and as a recurrence, and **prove** the two equal.
# - **Correct** a memory instead of adding to it: the delta rule.
# - **Measure** what each of them forgets, and **judge** when a cheaper attention pays.
#
# Three questions from memory first. Say your answer aloud, then unfold.
#
# <details><summary>Lesson 1: why did the translator with one vector for the whole sentence fail at
# long sentences?</summary>
#
# Its vector has a fixed size, however much it must hold. In this lesson a state of fixed size comes
# back. It is larger, and written to in another way. The question stays the same: what does it lose?
#
# </details>
#
# <details><summary>Lesson 6: how did you find out whether a layer looks ahead, without reading its
# code?</summary>
#
# Change a later input and see whether an earlier output changes. Section 2 measures in the same way
# how far *back* a stack of layers looks, and in section 4 your function of lesson 6 finds a bug.
#
# </details>
#
# <details><summary>Lesson 11: softmax in blocks needs few numbers in memory. What of its cost still
# grows with $n^2$?</summary>
#
# The multiply-adds: every query still meets every key. Here we get rid of those as well, and this
# time the result is another one.
#
# </details>

# %% tags=["setup"]
import math
import time

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from lesson.earlier import (
    KVCache,
    TransformerBlock,
    apply_rotary,
    attention_share,
    causal_mask,
    embed,
    leaks_future,
    load_block,
    scaled_dot_product_attention,
    sentence_embedding,
    torch_scaled_dot_product_attention,
    wordpiece,
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
differs = "This result is not what the text says. Do the checks of your exercises pass?"

# %% [markdown]
# `earlier` brings your tools of lessons 3 to 12, as the course solves them. To use your own, paste
# them into a cell below this one.
#
# ## 1. Cheap and exact, or cheap and different
#
# A causal attention over $n$ words computes a score for each pair of a word and an earlier one: about
# $n^2/2$. And whoever writes word by word keeps a key and a value of each word that ever was. Lesson 11
# made this cheaper and changed nothing: a cache computes nothing twice, blocks hold fewer scores. What
# is left is the price of the task as it stands: *every word may look at every earlier word*.
#
# To pay less than that, the task has to change:
#
# | | what a word may look at | numbers kept for the next word | multiply-adds for $n$ words | is it lesson 3's result? |
# |---|---|---|---|---|
# | full attention | every earlier word | $n\,(d_k + d_v)$ | grows with $n^2$ | yes |
# | with cache and blocks (lesson 11) | every earlier word | $n\,(d_k + d_v)$ | grows with $n^2$ | yes |
# | **window** (section 2) | the last $w$ words | $w\,(d_k + d_v)$ | grows with $n\,w$ | no |
# | **block-sparse** (section 3) | chosen blocks | depends on the choice | grows with the blocks | no |
# | **linear** (section 4) | a sum over all earlier words | $d_k\,(d_v + 1)$ | grows with $n$ | no |
# | **delta rule** (section 5) | a sum that is corrected | $d_k\,d_v$ | grows with $n$ | no |
#
# For the lower four the same two questions are asked: **what is saved?** and **what is lost?** The first
# can be counted. The second must be measured, and a picture of the method does not answer it.
#
# ## 2. A window
#
# The simplest way to look at fewer words: only at the last $w$ of them, the word itself included.
# "the black cat is sleeping", $w = 3$:
#
# | query at position | word | may see |
# |---|---|---|
# | 0 | the | the |
# | 1 | black | the, black |
# | 2 | cat | the, black, cat |
# | 3 | is | black, cat, is |
# | 4 | sleeping | cat, is, sleeping |
#
# Count in the table: from the third word on, every row has exactly three words. The word itself is one
# of them. (Some libraries count the words *before* it, and their window of 3 has four words.)

# %% [markdown]
# ### Exercise 1: `sliding_window_mask`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# - `sliding_window_mask(n, window)`: `(n, n)`, a NumPy array of bool: row = query, column = key,
#   `True` = may attend.
# - Causal: position `t` sees the `window` positions that end at `t`. Near the beginning there are
#   fewer of them.
# - A window of `n` or more is lesson 6's causal mask.
# - `window < 1` is a `ValueError` that names `window` and its value.
# - A new array each call: somebody may write into it.


# %% answer="sliding_window_mask"
def sliding_window_mask(n, window):
    """Which positions each position may attend to: the last ones, itself included.

    Args:
        n: length of the text, an integer of at least 1.
        window: how many positions each one sees at most, an integer of at least 1.

    Returns:
        (n, n) NumPy array of bool, a new one each call: one row a query, one column a key;
        True = may attend.

    Raises:
        ValueError: window is less than 1.
    """
    ### BEGIN SOLUTION
    if window < 1:
        raise ValueError(f"window = {window}: a position sees at least itself, so at least 1")
    positions = np.arange(n)
    back = positions[:, None] - positions  # how far the key lies behind the query
    return (back >= 0) & (back < window)
    ### END SOLUTION


# %% check="sliding_window_mask" points=3
# "the black cat is sleeping" with a window of 3: row = query, column = key.
def allowed(n, window):
    """Where the mask says True (or 1), whatever its dtype is."""
    mask = sliding_window_mask(n, window)
    message = f"The mask of a text of {n} words has one row for each query and one column for each key."
    assert_equal(np.shape(mask), (n, n), message, name="the shape of the mask")
    found = np.asarray(mask) == 1
    message = "Some pairs of query and key are allowed, and some are not. True means 'may attend'."
    assert_equal(bool(found.any() and not found.all()), True, message, name="'some are, some are not'")
    return found


later = np.array([[key > query for key in range(5)] for query in range(5)])
long_past = np.array([[key <= query - 3 for key in range(5)] for query in range(5)])
with check("the shape; bool, in NumPy", points=0.25):
    mask = sliding_window_mask(5, 3)
    assert_close(mask, np.asarray(mask) == 1, "The mask is a NumPy array of bool.", name="the mask")
    allowed(5, 3)
with check("each word sees itself", points=0.25):
    message = "A word should see itself: query and key are the same position."
    assert_equal(np.diag(allowed(5, 3)), np.array([True] * 5), message, name="the diagonal")
with check("no word sees a later one", points=0.5):
    message = "A word sees a later one. Is each row a query (not each column)? Is the window causal?"
    found = allowed(5, 3) & later
    assert_equal(found, np.zeros((5, 5), dtype=bool), message, name="what is allowed right of the diagonal")
with check("nothing before the window is seen", points=0.75):
    message = (
        "'is' should not see 'the', and 'sleeping' neither 'the' nor 'black': a window of 3 is the word "
        "itself and the two before it."
    )
    found = allowed(5, 3) & long_past
    assert_equal(found, np.zeros((5, 5), dtype=bool), message, name="what is allowed before the window")
with check("everything in the window is seen", points=0.5):
    message = "A word does not see its whole window: itself and the two words before it, where there are."
    inside = ~(later | long_past)
    assert_equal(allowed(5, 3) & inside, inside, message, name="what is allowed in the window")
with check("a window as long as the text, or longer", points=0.25):
    for window in (5, 9):
        found = allowed(5, window)
        message = f"Five words, window = {window}: nothing of the past is hidden, only the future."
        assert_equal(found, np.tri(5, dtype=bool), message, name="the mask")


@probe
def after_writing(n, window):
    """Two masks asked for while everything in an earlier one is False; it is put right again."""
    mask = sliding_window_mask(n, window)
    kept = mask.copy()
    mask[...] = False
    later = sliding_window_mask(n, window).copy()
    mask[...] = kept
    return later


with check("a new array each call", points=0.25, side=True):
    allowed(5, 3)
    message = "Somebody wrote False everywhere into one mask, and the next one changed with it."
    assert_equal(after_writing(5, 3), sliding_window_mask(5, 3), message, name="the next mask")
with check("a window of 0", points=0.25, side=True):
    for window in (0, -1):
        with assert_raises(ValueError, f"window = {window}: this should be a ValueError."):
            sliding_window_mask(5, window)
checks_passed("sliding_window_mask")


# %% check="sliding_window_mask_sizes" points=3
# Hidden checks of sliding_window_mask: other lengths and windows, down to 1 and beyond the text.
### BEGIN HIDDEN TESTS
def by_torch(n, window):
    lower = torch.ones(n, n).tril()
    return (lower - lower.tril(-window)).bool().numpy()


rng = check_rng()
with check("a window of 1, and one as long as the text", points=1):
    for n, window in ((4, 1), (1, 1), (1, 7), (6, 6), (7, 100)):
        found = sliding_window_mask(n, window)
        message = f"n = {n}, window = {window}: one row a query, one column a key."
        assert_equal(np.shape(found), (n, n), message, name="the shape")
        assert_equal(np.asarray(found) == 1, by_torch(n, window), message, name="the mask")
with check("windows shorter than the text", points=1.5):
    for _ in range(6):
        n = int(rng.integers(6, 20))
        window = int(rng.integers(2, n - 2))
        found = sliding_window_mask(n, window)
        message = f"n = {n}, window = {window}: position t sees the {window} positions that end at t."
        assert_equal(np.shape(found), (n, n), message, name="the shape")
        assert_equal(np.asarray(found) == 1, by_torch(n, window), message, name="the mask")
with check("the dtype", points=0.5):
    mask = sliding_window_mask(9, 4)
    found = np.asarray(mask)
    assert_equal(mask, found == 1, "The mask should be a NumPy array of bool.", name="the mask")
    assert_equal(bool(found.any() and not found.all()), True, "A mask hides something.")
checks_passed("sliding_window_mask")
### END HIDDEN TESTS


# %% check="sliding_window_mask_errors" points=0.5
# Hidden checks of sliding_window_mask: windows below 1, also for a text of one word; a new array.
### SIDE CONDITION: counts once another check of sliding_window_mask passes.
### BEGIN HIDDEN TESTS
@probe
def addresses(n, window):
    first, second = sliding_window_mask(n, window), sliding_window_mask(n, window)
    return [mask.__array_interface__["data"][0] for mask in (first, second)]


for n, window in ((1, 0), (6, -3), (4, 0)):
    with assert_raises(ValueError, f"n = {n}, window = {window}: this should be a ValueError."):
        sliding_window_mask(n, window)
first, second = addresses(6, 3)
message = "Two calls give the same memory. Somebody who changes one mask would change all of them."
assert_equal(first == second, False, message, name="'two masks share their memory'")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# For each pair, how far does the key lie behind the query? Subtract a row of positions from a column of
# positions: that is one matrix of distances. Which distances are allowed? There are `window` of them,
# and the smallest is 0.
#
# </details>

# %% [markdown]
# ### How far does a stack of windows see?
#
# With a window of 3, "sleeping" sees "cat", "is", and itself. Has it lost "black" for ever? Not in a
# stack. In layer 1, "cat" looks at "black" and takes something of it along. In layer 2, "sleeping" looks
# at "cat", and finds it there. What "sleeping" **can** depend on after each layer, $w = 3$:
#
# | layers | from | to | positions |
# |---|---|---|---|
# | 1 | $t - 2$ | $t$ | 3 |
# | 2 | $t - 4$ | $t$ | 5 |
# | 3 | $t - 6$ | $t$ | 7 |
#
# This is the **receptive field**, as in networks for images. **Before you write it:** with a window of
# $w$, by how many positions does one more layer reach further back?

# %% [markdown]
# ### Exercise 2: `receptive_field`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 5-10 minutes on it.
#
# - `receptive_field(num_layers, window)`: how many positions the last one can depend on, itself
#   included, through `num_layers` layers, each with `sliding_window_mask(n, window)`.
# - `num_layers` and `window` are integers of at least 1. The text is as long as needed.
# - Returns a Python `int`.
# - Checked when graded: windows of 1, many layers, very large numbers. No errors are graded.


# %% answer="receptive_field"
def receptive_field(num_layers, window):
    """How many positions the last one can depend on, through layers with a sliding window.

    Args:
        num_layers: at least 1.
        window: positions that each layer lets a position see, itself included; at least 1.

    Returns:
        The number of positions, a Python int.
    """
    ### BEGIN SOLUTION
    return int(num_layers * (window - 1) + 1)
    ### END SOLUTION


# %% check="receptive_field" points=2
# By hand, and counted with products of masks: where a path of num_layers looks leads.
with check("one layer: the window itself", points=0.5):
    for window in (3, 4):
        message = f"One layer with a window of {window}: the positions of the window."
        assert_equal(receptive_field(1, window), window, message, name="positions")
with check("the table above", points=0.75):
    for num_layers, expected in ((2, 5), (3, 7)):
        message = f"{num_layers} layers, window 3: see the table above the exercise."
        assert_equal(receptive_field(num_layers, 3), expected, message, name="positions")
with check("another window, followed by hand", points=0.75):
    for num_layers, window, expected in ((2, 4, 7), (3, 5, 13)):
        message = (
            f"{num_layers} layers, window {window}: each layer reaches {window - 1} positions further "
            "back, and the position itself counts once."
        )
        assert_equal(receptive_field(num_layers, window), expected, message, name="positions")
checks_passed("receptive_field")


# %% check="receptive_field_counted" points=2
# Hidden checks of receptive_field: many layers and windows, counted by following masks; large numbers.
### BEGIN HIDDEN TESTS
def by_masks(num_layers, window):
    n = num_layers * window + 3
    lower = torch.ones(n, n).tril()
    mask = (lower - lower.tril(-window)).double()
    return int((torch.linalg.matrix_power(mask, num_layers)[-1] > 0).sum())


rng = check_rng()
with check("several layers, several windows", points=1):
    for _ in range(6):
        num_layers, window = int(rng.integers(2, 7)), int(rng.integers(2, 9))
        message = f"num_layers = {num_layers}, window = {window}."
        found = receptive_field(num_layers, window)
        assert_equal(found, by_masks(num_layers, window), message, name="positions")
with check("a window of 1, and many layers", points=0.5):
    for num_layers, window, expected in ((5, 1, 1), (1, 1, 1), (32, 2, 33), (100, 3, 201)):
        message = f"num_layers = {num_layers}, window = {window}. A window of 1 is the word itself."
        assert_equal(receptive_field(num_layers, window), expected, message, name="positions")
with check("a Python int, also a large one", points=0.5):
    found = receptive_field(96, 131072)
    message = "96 layers with a window of 131,072. The result is a Python int."
    assert_equal(found, 96 * 131071 + 1, message, name="positions")
    assert_equal(type(found).__name__, "int", message, name="the kind of number")
checks_passed("receptive_field")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Count how many positions *before* its own the last one can reach: with one layer, with two, with
# three. Then add the position itself, once.
#
# </details>

# %% [markdown]
# ## 4. A sum in place of a look-up
#
# In lesson 3 the weight of a key is $e^{q \cdot k / \sqrt{d_k}}$, divided by the sum over all keys.
# Katharopoulos and others (2020) asked what happens if the exponential of the product is replaced by a
# **product of features**: one function $\phi$ of the query alone times the same function of the key
# alone.
#
# $$\text{out}_t = \frac{\sum_{s \le t} \bigl(\phi(q_t) \cdot \phi(k_s)\bigr)\, v_s}
# {\sum_{s \le t} \phi(q_t) \cdot \phi(k_s)}, \qquad \phi(x) = \operatorname{elu}(x) + 1 =
# \begin{cases} x + 1 & x > 0 \\ e^x & x \le 0 \end{cases}$$
#
# $\phi$ works on each feature by itself, and its values are positive, so that the weights are, too.
# Now comes the step on which everything rests. The query does not depend on $s$, so it can be taken
# **out of the sums**:
#
# $$\text{out}_t = \frac{\phi(q_t)\, S_t}{\phi(q_t) \cdot z_t}, \qquad
# S_t = \sum_{s \le t} \phi(k_s)\, v_s^\top \;\; (d_k \times d_v), \qquad z_t = \sum_{s \le t} \phi(k_s)$$
#
# The sums know nothing of the query. They grow by one term a word, and their *size* does not grow at
# all. With the exponential this cannot be done: $e^{q \cdot k}$ does not fall apart into a finite number
# of factors of $q$ and $k$.
#
# By hand, with one feature, all queries 0 (so $\phi(q) = 1$), keys 0, 1, 2, values 6, 3, 2:
#
# | $t$ | $\phi(k_t)$ | $S_t$ | $z_t$ | output |
# |---|---|---|---|---|
# | 0 | 1 | 6 | 1 | 6 |
# | 1 | 2 | 6 + 2·3 = 12 | 3 | 4 |
# | 2 | 3 | 12 + 3·2 = 18 | 6 | 3 |

# %% [markdown]
# ### Exercise 3: `linear_attention`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 25 minutes on it.
#
# - `linear_attention(Q, K, V)`: torch, `Q (..., n, d_k)`, `K (..., n, d_k)`, `V (..., n, d_v)`. Returns
#   the output `(..., n, d_v)` alone.
# - Causal: position `t` sees the keys and values up to `t`, its own included.
# - The feature map `elu(x) + 1` on `Q` and on `K`; no scale. The divisor is the sum of the features'
#   products, as in the formula, with no eps.
# - It never holds `n x n` scores when `n` is far above `d_k * d_v`.
# - Checked when graded: leading axes broadcast; float64 is computed in float64; entries of `Q` and `K`
#   from -10 to 10; gradients to all three; arguments unchanged. No errors are graded.


# %% answer="linear_attention"
def linear_attention(Q, K, V):
    """Causal attention with the features elu(x) + 1 in place of the softmax.

    Args:
        Q: (..., n, d_k), torch.
        K: (..., n, d_k).
        V: (..., n, d_v).

    Returns:
        The output (..., n, d_v).
    """
    ### BEGIN SOLUTION
    q, k = F.elu(Q) + 1, F.elu(K) + 1
    S = (k[..., :, None] * V[..., None, :]).cumsum(dim=-3)  # (..., n, d_k, d_v): written so far
    z = k.cumsum(dim=-2)  # (..., n, d_k)
    read = (q[..., :, None] * S).sum(dim=-2)  # (..., n, d_v)
    return read / (q * z).sum(dim=-1, keepdim=True)
    ### END SOLUTION


# %% check="linear_attention" points=3
# The table above; a second one with two features; then random numbers against the formula.
with check("one feature, by hand", points=0.75):
    found = linear_attention(
        torch.zeros(3, 1), torch.tensor([[0.0], [1], [2]]), torch.tensor([[6.0], [3], [2]])
    )
    message = (
        "The table above the exercise: 6, 4, 3. Each output is S / z after its own word was added. Does a "
        "position see itself, and no later one, above and below the fraction line?"
    )
    assert_close(found, torch.tensor([[6.0], [4], [3]]), message, name="the output")
with check("a negative key, by hand", points=0.5):
    found = linear_attention(
        torch.zeros(2, 1), torch.tensor([[-math.log(2)], [0]]), torch.tensor([[3.0], [6]])
    )
    message = (
        "Keys -ln 2 and 0 have the features 1/2 and 1; values 3 and 6. The outputs are 3, and "
        "(3/2 + 6) / (1/2 + 1) = 5."
    )
    assert_close(found, torch.tensor([[3.0], [5]]), message, name="the output")
with check("two features, by hand", points=0.75):
    found = linear_attention(
        torch.tensor([[0.0, 0], [2, 0]]), torch.tensor([[0.0, 1], [1, 0]]), torch.tensor([[10.0], [4]])
    )
    message = (
        "The second query has the features 3 and 1, the keys have 1 2 and 2 1. The products are 5 and 7, so "
        "the second output is (5 * 10 + 7 * 4) / 12 = 6.5. Is the feature map on the queries, too?"
    )
    assert_close(found, torch.tensor([[10.0], [6.5]]), message, name="the output")
rng = check_rng()
Q, K, V = (torch.tensor(rng.normal(size=s)).float() for s in ((2, 7, 4), (2, 7, 4), (2, 7, 3)))
products = (torch.where(Q > 0, Q + 1, Q.exp()) @ torch.where(K > 0, K + 1, K.exp()).mT).tril()
expected = products @ V / products.sum(-1, keepdim=True)
with check("two texts, against the formula", points=0.5):
    message = "Two texts of seven words, d_k = 4, d_v = 3: the sums run over the words of each text."
    found = linear_attention(Q.clone(), K.clone(), V.clone())
    assert_close(found, expected, message, name="the output")


@probe
def most_numbers(Q, K, V):
    """The largest number of numbers alive at one time, besides the inputs; small tensors left out."""
    held, given, most = {}, {x.untyped_storage().data_ptr() for x in (Q, K, V)}, [0]

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for x in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() not in given:
                    storage = x.untyped_storage()
                    reference = torch.multiprocessing.reductions.StorageWeakRef(storage)
                    if storage.nbytes() >= 64 * x.element_size():
                        held[storage.data_ptr()] = reference, storage.nbytes() // x.element_size()
            for place in [p for p, (reference, _) in held.items() if reference.expired()]:
                del held[place]
            most[0] = max(most[0], sum(n for _, n in held.values()))
            return result

    with torch.no_grad(), Watch():
        linear_attention(Q, K, V)
    return most[0]


with check("no n x n scores", points=0.5, side=True):
    n = 512
    Q, K, V = (torch.tensor(rng.normal(size=s)).float() for s in ((n, 2), (n, 2), (n, 1)))
    most = most_numbers(Q, K, V)
    message = (
        f"512 words, d_k = 2, d_v = 1: at one time {most:,} numbers are held besides the inputs. All scores "
        "would be 262,144. Take the query out of the sums, as in the formula for S and z."
    )
    assert_equal(most < n * n / 4, True, message, name="fewer than n x n numbers")
checks_passed("linear_attention")


# %% check="linear_attention_values" points=3
# Hidden checks of linear_attention: sizes, float64, entries from -10 to 10; one word; causality.
### BEGIN HIDDEN TESTS
def by_formula(Q, K, V):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (Q, K))
    products = (q @ k.mT).tril()
    return products @ V / products.sum(-1, keepdim=True)


rng = check_rng()
with check("the first word", points=0.5):
    Q, K, V = (torch.tensor(rng.normal(size=s)) for s in ((1, 3), (1, 3), (1, 5)))
    message = "A text of one word: its output is its value."
    assert_close(linear_attention(Q, K, V), V, message)
with check("several sizes", points=1.5):
    for n, d_k, d_v in ((5, 3, 2), (6, 1, 4), (9, 2, 7), (30, 5, 3)):
        Q, K, V = (torch.tensor(rng.normal(size=s)) for s in ((n, d_k), (n, d_k), (n, d_v)))
        message = f"n = {n}, d_k = {d_k}, d_v = {d_v}, in float64."
        assert_close(linear_attention(Q, K, V), by_formula(Q, K, V), message, precise=True)
with check("entries from -10 to 10", points=1):
    for n, d_k, d_v in ((6, 3, 2), (8, 4, 5)):
        Q, K = (torch.tensor(rng.uniform(-10, 10, size=(n, d_k))) for _ in range(2))
        Q[2], K[:3] = -9.0 - Q[2].abs() / 10, -8.0 - K[:3].abs() / 5
        V = torch.tensor(rng.normal(size=(n, d_v)))
        message = (
            "Entries of Q and K from -10 to 10, float64: the divisor is small in some rows, and is still the "
            "sum of the products, with nothing added to it."
        )
        assert_close(linear_attention(Q, K, V), by_formula(Q, K, V), message, rtol=1e-6, atol=1e-9)
checks_passed("linear_attention")
### END HIDDEN TESTS


# %% check="linear_attention_batches" points=2
# Hidden checks of linear_attention: leading axes, which broadcast; against each text by itself.
### BEGIN HIDDEN TESTS
rng = check_rng()
for lead_q, lead_k, lead_v in (
    ((2,), (2,), (2,)),
    ((3, 4), (3, 4), (3, 4)),
    ((5,), (5,), (5,)),
    ((), (3,), (3,)),
    ((3,), (), ()),
    ((2, 1), (3,), (2, 3)),
    ((), (), (2,)),
):
    Q = torch.tensor(rng.normal(size=(*lead_q, 5, 4)))
    K = torch.tensor(rng.normal(size=(*lead_k, 5, 4)))
    V = torch.tensor(rng.normal(size=(*lead_v, 5, 3)))
    lead = torch.broadcast_shapes(lead_q, lead_k, lead_v)
    found = linear_attention(Q, K, V)
    message = f"Leading axes {lead_q} of Q, {lead_k} of K and {lead_v} of V."
    assert_equal(list(np.shape(found)), [*lead, 5, 3], message, name="the shape")
    texts = [x.expand(*lead, *x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (Q, K, V)]
    alone = [linear_attention(q, k, v) for q, k, v in zip(*texts, strict=True)]
    expected = torch.stack(alone).double().reshape(*lead, 5, 3)
    assert_equal(bool(expected.std() > 1e-3), True, "The output is no constant.")
    assert_close(found, expected, message)
### END HIDDEN TESTS


# %% check="linear_attention_memory" points=3
# Hidden checks of linear_attention: how many numbers are held at once in a long text.
### SIDE CONDITION: counts once another check of linear_attention passes.
### BEGIN HIDDEN TESTS
@probe
def most_numbers(Q, K, V):
    held, given, most = {}, {x.untyped_storage().data_ptr() for x in (Q, K, V)}, [0]

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for x in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() not in given:
                    storage = x.untyped_storage()
                    reference = torch.multiprocessing.reductions.StorageWeakRef(storage)
                    if storage.nbytes() >= 64 * x.element_size():
                        held[storage.data_ptr()] = reference, storage.nbytes() // x.element_size()
            for place in [p for p, (reference, _) in held.items() if reference.expired()]:
                del held[place]
            most[0] = max(most[0], sum(n for _, n in held.values()))
            return result

    with torch.no_grad(), Watch():
        linear_attention(Q, K, V)
    return most[0]


rng = check_rng()
for n, d_k, d_v in ((1024, 2, 1), (1024, 1, 3)):
    Q, K, V = (torch.tensor(rng.normal(size=s)).float() for s in ((n, d_k), (n, d_k), (n, d_v)))
    most = most_numbers(Q, K, V)
    message = (
        f"{n} words, d_k = {d_k}, d_v = {d_v}: at one time {most:,} numbers are held besides the inputs. All "
        f"scores would be {n * n:,}; a state for each word is {n * d_k * d_v:,}."
    )
    assert_equal(most < n * n / 8, True, message, name="fewer than n x n numbers")
### END HIDDEN TESTS


# %% check="linear_attention_gradients" points=2
# Hidden checks of linear_attention: gradients to Q, K and V, against its own results nearby.
### BEGIN HIDDEN TESTS
@probe
def value_and_gradients(given, direction):
    given = [x.clone().requires_grad_() for x in given]
    output = linear_attention(*given)
    value = (output * direction).sum()
    if value.requires_grad:
        value.backward()
    return value.item(), [x.grad for x in given]


rng = check_rng()
given = [torch.tensor(rng.normal(size=s)) for s in ((2, 5, 4), (2, 5, 4), (2, 5, 3))]
direction = torch.tensor(rng.normal(size=(2, 5, 3)))
_, gradients = value_and_gradients(given, direction)
for number, (name, gradient) in enumerate(zip("QKV", gradients, strict=True)):
    way = torch.tensor(rng.normal(size=tuple(given[number].shape)))
    near = [[x + step * way if i == number else x for i, x in enumerate(given)] for step in (1e-5, -1e-5)]
    ends = [value_and_gradients(one, direction)[0] for one in near]
    slope = (ends[0] - ends[1]) / 2e-5
    assert_equal(abs(slope) > 1e-6, True, f"The result depends on {name}.")
    along = 0.0 if gradient is None else (gradient * way).sum().item()
    message = f"The gradient of {name} does not fit how the result changes. Is something detached?"
    assert_close(along, slope, message, name=f"the slope along {name}", rtol=1e-4, atol=1e-7)
### END HIDDEN TESTS


# %% check="linear_attention_inputs" points=1
# Hidden checks of linear_attention: arguments unchanged, precision kept.
### SIDE CONDITION: counts once another check of linear_attention passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_after(Q, K, V):
    linear_attention(Q, K, V)
    return Q, K, V


rng = check_rng()
given = [torch.tensor(rng.normal(size=s)) for s in ((2, 5, 4), (2, 5, 4), (2, 5, 3))]
for name, now, before in zip("QKV", arguments_after(*(x.clone() for x in given)), given, strict=True):
    assert_equal(now, before, f"{name} is changed by the call.", name=name)
for dtype in (torch.float32, torch.float64):
    found = linear_attention(*(x.to(dtype) for x in given))
    message = f"The inputs are {str(dtype)[6:]}, and so is the output."
    assert_equal(str(found.dtype), str(dtype), message, name="the dtype")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# A sum over all earlier positions, for every position, is a running sum: `cumsum` along the axis of the
# words. What runs is $\phi(k_s)\, v_s^\top$, one matrix a word: an axis of length 1 in the right place of
# `k` and of `V` makes it by broadcasting. Then multiply by $\phi(q)$ and sum over $d_k$. The same for
# $z$, without the values.
#
# </details>

# %% [markdown]
# ### Exercise 4: `LinearAttentionState`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 15-20 minutes on it.
#
# The same attention, word by word. This is what makes it interesting for writing: lesson 11's cache
# grows with every word, and this state does not.
#
# - `LinearAttentionState()` is empty.
# - `step(q, k, v)`: torch, `q (..., d_k)`, `k (..., d_k)`, `v (..., d_v)` of the next word. Returns its
#   output `(..., d_v)`, which sees this word too.
# - It equals `linear_attention` at every position.
# - Two states know nothing of each other.
# - Checked when graded: leading axes, which broadcast; a state is no larger after many steps than after
#   one; gradients flow through all steps; float64 is computed in float64; arguments unchanged. No errors
#   are graded.


# %% answer="LinearAttentionState"
class LinearAttentionState:
    """Linear attention as a recurrence: what is kept has a fixed size."""

    def __init__(self):
        ### BEGIN SOLUTION
        self.S = self.z = 0.0
        ### END SOLUTION

    def step(self, q, k, v):
        """Add the next word and read what it sees.

        Args:
            q: (..., d_k), torch.
            k: (..., d_k).
            v: (..., d_v).

        Returns:
            The output (..., d_v) of this word.
        """
        ### BEGIN SOLUTION
        q, k = F.elu(q) + 1, F.elu(k) + 1
        self.S = self.S + k[..., :, None] * v[..., None, :]  # (..., d_k, d_v)
        self.z = self.z + k  # (..., d_k)
        read = (q[..., :, None] * self.S).sum(dim=-2)  # (..., d_v)
        return read / (q * self.z).sum(dim=-1, keepdim=True)
        ### END SOLUTION


# %% check="LinearAttentionState" points=3
# The same table, step by step; then against the formula; two states in turn.
@probe
def stepped(Q, K, V):
    state = LinearAttentionState()
    steps = zip(Q.unbind(-2), K.unbind(-2), V.unbind(-2))
    return torch.stack([state.step(q, k, v) for q, k, v in steps], dim=-2)


@probe
def stepped_in_turn(one, other):
    states = LinearAttentionState(), LinearAttentionState()
    outputs = [], []
    for t in range(one[0].shape[-2]):
        for state, (Q, K, V), into in zip(states, (one, other), outputs):
            into.append(state.step(Q[..., t, :], K[..., t, :], V[..., t, :]))
    return [torch.stack(into, dim=-2) for into in outputs]


with check("the first word", points=0.5):
    found = stepped(torch.zeros(1, 1), torch.tensor([[1.0]]), torch.tensor([[6.0]]))
    message = "After one word the output is its value: a word sees itself."
    assert_close(found, torch.tensor([[6.0]]), message, name="the output")
with check("three words, by hand", points=1):
    found = stepped(torch.zeros(3, 1), torch.tensor([[0.0], [1], [2]]), torch.tensor([[6.0], [3], [2]]))
    message = "The table of exercise 3: 6, 4, 3. Is everything so far in the state, and this word too?"
    assert_close(found, torch.tensor([[6.0], [4], [3]]), message, name="the outputs")
rng = check_rng()
given = [torch.tensor(rng.normal(size=s)).float() for s in ((2, 7, 4), (2, 7, 4), (2, 7, 3))]
with check("two texts, against the formula", points=1):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in given[:2])
    products = (q @ k.mT).tril()
    expected = products @ given[2] / products.sum(-1, keepdim=True)
    message = "Two texts of seven words, d_k = 4, d_v = 3, step by step: equal to the whole formula."
    assert_close(stepped(*given), expected, message, name="the outputs")
with check("two states in turn", points=0.5):
    other = [x.flip(-2) + 0.5 for x in given]
    for found, text in zip(stepped_in_turn(given, other), (given, other), strict=True):
        expected = torch.as_tensor(stepped(*text))
        assert_equal(bool(expected.std() > 1e-3), True, "The outputs are no constant.")
        message = "Two states that are used in turn: each knows only its own words."
        assert_close(found, expected, message, name="the outputs")
checks_passed("LinearAttentionState")


# %% check="LinearAttentionState_values" points=3
# Hidden checks of LinearAttentionState: equal to the formula at every position, in float64.
### BEGIN HIDDEN TESTS
@probe
def stepped(Q, K, V):
    state = LinearAttentionState()
    steps = zip(Q.unbind(-2), K.unbind(-2), V.unbind(-2))
    with torch.no_grad():
        return torch.stack([state.step(q, k, v) for q, k, v in steps], dim=-2)


def by_formula(Q, K, V):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (Q, K))
    products = (q @ k.mT).tril()
    return products @ V / products.sum(-1, keepdim=True)


rng = check_rng()
with check("several sizes", points=2):
    for n, d_k, d_v in ((5, 3, 2), (6, 1, 4), (9, 2, 7), (40, 5, 3)):
        given = [torch.tensor(rng.normal(size=s)) for s in ((n, d_k), (n, d_k), (n, d_v))]
        message = f"n = {n}, d_k = {d_k}, d_v = {d_v}, in float64."
        assert_close(stepped(*given), by_formula(*given), message, precise=True)
with check("entries from -10 to 10", points=1):
    Q, K = (torch.tensor(rng.uniform(-10, 10, size=(6, 3))) for _ in range(2))
    Q[2], K[:3] = -9.0 - Q[2].abs() / 10, -8.0 - K[:3].abs() / 5
    V = torch.tensor(rng.normal(size=(6, 4)))
    message = "Entries of q and k from -10 to 10, float64: nothing is added to the divisor."
    assert_close(stepped(Q, K, V), by_formula(Q, K, V), message, rtol=1e-6, atol=1e-9)
checks_passed("LinearAttentionState")
### END HIDDEN TESTS


# %% check="LinearAttentionState_batches" points=1.5
# Hidden checks of LinearAttentionState: leading axes, which broadcast; against each text by itself.
### BEGIN HIDDEN TESTS
@probe
def stepped(Q, K, V):
    state = LinearAttentionState()
    steps = zip(Q.unbind(-2), K.unbind(-2), V.unbind(-2))
    with torch.no_grad():
        return torch.stack([state.step(q, k, v) for q, k, v in steps], dim=-2)


rng = check_rng()
for lead_q, lead_k, lead_v in (
    ((), (), ()),
    ((3,), (3,), (3,)),
    ((2, 3), (2, 3), (2, 3)),
    ((4,), (), ()),
    ((2, 1), (3,), (2, 3)),
):
    Q = torch.tensor(rng.normal(size=(*lead_q, 5, 4)))
    K = torch.tensor(rng.normal(size=(*lead_k, 5, 4)))
    V = torch.tensor(rng.normal(size=(*lead_v, 5, 3)))
    lead = torch.broadcast_shapes(lead_q, lead_k, lead_v)
    found = stepped(Q, K, V)
    message = f"Leading axes {lead_q} of q, {lead_k} of k and {lead_v} of v."
    assert_equal(list(np.shape(found)), [*lead, 5, 3], message, name="the shape")
    texts = [x.expand(*lead, *x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (Q, K, V)]
    alone = [stepped(q, k, v) for q, k, v in zip(*texts, strict=True)]
    expected = torch.stack(alone).double().reshape(*lead, 5, 3)
    assert_equal(bool(expected.std() > 1e-3), True, "The outputs are no constant.")
    assert_close(found, expected, message)
### END HIDDEN TESTS


# %% check="LinearAttentionState_size" points=3
# Hidden checks of LinearAttentionState: it is no larger after many steps than after one.
### SIDE CONDITION: counts once another check of LinearAttentionState passes.
### BEGIN HIDDEN TESTS
@probe
def size_of(Q, K, V):
    """How many numbers the state's attributes hold after each step."""

    def numbers(thing, seen):
        if id(thing) in seen:
            return 0
        seen.add(id(thing))
        if isinstance(thing, torch.Tensor):
            return thing.untyped_storage().nbytes() // thing.element_size()
        if isinstance(thing, np.ndarray):
            return thing.size
        if isinstance(thing, dict):
            return sum(numbers(one, seen) for one in thing.values())
        if isinstance(thing, (list, tuple, set)):
            return sum(numbers(one, seen) for one in thing)
        if hasattr(thing, "__dict__") and not isinstance(thing, type) and not callable(thing):
            return numbers(vars(thing), seen)
        return 1

    state, sizes = LinearAttentionState(), []
    with torch.no_grad():
        for q, k, v in zip(Q, K, V):
            state.step(q.clone(), k.clone(), v.clone())
            on_the_class = [x for x in vars(type(state)).values() if isinstance(x, (list, dict))]
            sizes.append(numbers([getattr(state, "__dict__", {}), on_the_class], set()))
    return sizes


rng = check_rng()
sizes = size_of(*(torch.tensor(rng.normal(size=s)) for s in ((60, 3), (60, 3), (60, 2))))
message = (
    f"After one step the state holds {sizes[0] if len(sizes) else 0} numbers, after 60 steps "
    f"{sizes[-1] if len(sizes) else 0}. A state of fixed size keeps sums, not words."
)
assert_equal(len(sizes), 60, "Sixty steps.", name="steps")
assert_equal(max(sizes) <= sizes[0], True, message, name="no larger after 60 steps")
### END HIDDEN TESTS


# %% check="LinearAttentionState_gradients" points=1.5
# Hidden checks of LinearAttentionState: gradients of the last output reach every earlier word.
### BEGIN HIDDEN TESTS
@probe
def value_and_gradients(given, direction):
    given = [x.clone().requires_grad_() for x in given]
    state = LinearAttentionState()
    steps = zip(*(x.unbind(-2) for x in given))
    outputs = torch.stack([state.step(q, k, v) for q, k, v in steps], dim=-2)
    value = (outputs * direction).sum()
    if value.requires_grad:
        value.backward()
    return value.item(), [x.grad for x in given]


rng = check_rng()
given = [torch.tensor(rng.normal(size=s)) for s in ((2, 5, 4), (2, 5, 4), (2, 5, 3))]
direction = torch.tensor(rng.normal(size=(2, 5, 3)))
_, gradients = value_and_gradients(given, direction)
for number, (name, gradient) in enumerate(zip("qkv", gradients, strict=True)):
    way = torch.tensor(rng.normal(size=tuple(given[number].shape)))
    near = [[x + step * way if i == number else x for i, x in enumerate(given)] for step in (1e-5, -1e-5)]
    ends = [value_and_gradients(one, direction)[0] for one in near]
    slope = (ends[0] - ends[1]) / 2e-5
    assert_equal(abs(slope) > 1e-6, True, f"The result depends on {name}.")
    along = 0.0 if gradient is None else (gradient * way).sum().item()
    message = f"The gradient of {name} does not fit how the outputs change. Is the state detached?"
    assert_close(along, slope, message, name=f"the slope along {name}", rtol=1e-4, atol=1e-7)
### END HIDDEN TESTS


# %% check="LinearAttentionState_inputs" points=1
# Hidden checks of LinearAttentionState: arguments unchanged, precision kept, outputs kept.
### SIDE CONDITION: counts once another check of LinearAttentionState passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(Q, K, V):
    state, outputs, copies = LinearAttentionState(), [], []
    with torch.no_grad():
        for q, k, v in zip(Q, K, V):
            outputs.append(state.step(q, k, v))
            copies.append(outputs[-1].clone())
    return Q, K, V, torch.stack(outputs), torch.stack(copies)


rng = check_rng()
given = [torch.tensor(rng.normal(size=s)) for s in ((5, 4), (5, 4), (5, 3))]
for dtype in (torch.float32, torch.float64):
    before = [x.to(dtype) for x in given]
    *after, outputs, copies = afterwards(*(x.clone() for x in before))
    for name, now, then in zip("qkv", after, before, strict=True):
        assert_equal(now, then, f"{name} is changed by a step.", name=name)
    assert_equal(outputs, copies, "An output is changed by a later step.", name="the outputs")
    message = f"The arguments are {str(dtype)[6:]}, and so is the output."
    assert_equal(str(outputs.dtype), str(dtype), message, name="the dtype")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two attributes: $S$ and $z$, both 0 at first (the number 0 adds to a tensor of any shape). In a step:
# first add this word's term to both, then read. Make new tensors (`a = a + b`), since gradients need the
# old ones.
#
# </details>

# %% [markdown]
# ## 5. Correct, do not add: the delta rule
#
# A sum has a weakness that shows at once when something *changes*. Take the memory
# $S = \sum_s v_s k_s^\top$, shape $(d_v, d_k)$, read by $S k$. (This is linear attention without feature
# map and divisor.) First "the cat is black" is written: key *cat*, value *black*. Later "the cat is
# white". The sum holds both, and reading *cat* gives black + white.
#
# The **delta rule** (Widrow and Hoff, 1960; as an attention: Schlag, Irie and Schmidhuber, 2021) reads
# first, and writes only what is missing:
#
# $$S \;\leftarrow\; S + \beta\, (v - S k)\, k^\top$$
#
# $v - Sk$ is the error of what the memory says now. $\beta$ is how much of it is corrected. By hand,
# $d_k = d_v = 2$, $\beta = 1$:
#
# | write | $Sk$ before | error | $S$ afterwards |
# |---|---|---|---|
# | $k = (1, 0)$, $v = (3, 1)$ | (0, 0) | (3, 1) | (3, 0), (1, 0) |
# | $k = (1, 0)$, $v = (5, 5)$ | (3, 1) | (2, 4) | (5, 0), (5, 0) |
# | $k = (0.6, 0.8)$, $v = (1, 2)$ | (3, 3) | (−2, −1) | (3.8, −1.6), (4.4, −0.8) |
#
# (The last column shows the two rows of $S$.) The second line is the point: the old value is gone, where
# a sum would hold (8, 6). The third line shows the price: its key is *not* at a right angle to the first
# one, and reading (1, 0) now gives (3.8, 4.4) instead of (5, 5).

# %% [markdown]
# ### Exercise 5: `delta_rule_step`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 15 minutes on it.
#
# - `delta_rule_step(S, k, v, beta)`: torch, `S (..., d_v, d_k)`, `k (..., d_k)`, `v (..., d_v)`, `beta` a
#   number. Returns `S + beta * (v - S k) k^T`, a **new** tensor of the shape of `S`.
# - With `beta = 1` and a `k` of length 1, reading `k` afterwards gives `v`.
# - `k` is used as it is, also when its length is not 1.
# - Checked when graded: leading axes broadcast; float64 is computed in float64; gradients to `S`, `k` and
#   `v`; arguments unchanged. No errors are graded.


# %% answer="delta_rule_step"
def delta_rule_step(S, k, v, beta):
    """Write v under k by correcting what the memory says of k.

    Args:
        S: (..., d_v, d_k), torch: the memory; S k is what it says of k.
        k: (..., d_k).
        v: (..., d_v).
        beta: a number: 0 writes nothing, 1 corrects the whole error of a k of length 1.

    Returns:
        The new memory (..., d_v, d_k).
    """
    ### BEGIN SOLUTION
    read = (S * k[..., None, :]).sum(dim=-1)  # (..., d_v): what the memory says of k
    error = v - read
    return S + beta * error[..., :, None] * k[..., None, :]
    ### END SOLUTION


# %% check="delta_rule_step" points=3
# The three lines of the table, each from a given memory; then a batch.
def step(S, k, v, beta=1.0):
    return delta_rule_step(*(torch.tensor(x, dtype=torch.float64) for x in (S, k, v)), beta)


def as_tensor(rows):
    return torch.tensor(rows, dtype=torch.float64)


with check("into an empty memory", points=0.5):
    message = "An empty memory, k = (1, 0), v = (3, 1): the first column becomes v."
    found = step([[0, 0], [0, 0]], [1, 0], [3, 1])
    assert_close(found, as_tensor([[3, 0], [1, 0]]), message, name="S")
with check("the same key again: overwritten", points=0.75):
    message = (
        "The memory says (3, 1) of the key (1, 0); now (5, 5) is written. The error is (2, 4), and "
        "afterwards the memory says (5, 5), not (8, 6)."
    )
    found = step([[3, 0], [1, 0]], [1, 0], [5, 5])
    assert_close(found, as_tensor([[5, 0], [5, 0]]), message, name="S")
with check("a key that is not at a right angle", points=0.5):
    message = "The third line of the table: the error is (-2, -1), and it goes into both columns."
    found = step([[5, 0], [5, 0]], [0.6, 0.8], [1, 2])
    assert_close(found, as_tensor([[3.8, -1.6], [4.4, -0.8]]), message, name="S")
with check("half of the error", points=0.5):
    message = "beta = 0.5, k = (1, 0), memory (3, 1), v = (5, 5): half of the error (2, 4) is added."
    found = step([[3, 0], [1, 0]], [1, 0], [5, 5], 0.5)
    assert_close(found, as_tensor([[4, 0], [3, 0]]), message, name="S")
rng = check_rng()
with check("reading afterwards gives v", points=0.5):
    S, k, v = (torch.tensor(rng.normal(size=s)) for s in ((2, 3, 4), (2, 4), (2, 3)))
    k = k / k.norm(dim=-1, keepdim=True)
    after = torch.as_tensor(delta_rule_step(S.clone(), k.clone(), v.clone(), 1.0))
    message = "Two memories of 3 x 4, keys of length 1, beta = 1: the new memory times k is v."
    assert_equal(list(after.shape), [2, 3, 4], "S keeps its shape (..., d_v, d_k).", name="the shape")
    assert_close((after @ k[..., None])[..., 0], v, message, name="what is read")
with check("a new tensor", points=0.25, side=True):

    @probe
    def memory_afterwards(S, k, v):
        delta_rule_step(S, k, v, 1.0)
        return S

    message = "The memory that was given is changed. A new tensor is returned."
    assert_equal(memory_afterwards(S.clone(), k, v), S, message, name="the old memory")
checks_passed("delta_rule_step")


# %% check="delta_rule_step_values" points=3
# Hidden checks of delta_rule_step: sizes, several beta, keys of any length, float64, many steps.
### BEGIN HIDDEN TESTS
def by_formula(S, k, v, beta):
    d_k = k.shape[-1]  # the same, written as S (1 - beta k k^T) + beta v k^T
    outer = k[:, None] * k
    return S @ (torch.eye(d_k, dtype=S.dtype) - beta * outer) + beta * torch.outer(v, k)


rng = check_rng()
sizes = ((3, 4), (5, 2), (1, 6), (4, 4))
with check("keys of length 1", points=1):
    for d_v, d_k in sizes:
        S, k, v = (torch.tensor(rng.normal(size=s)) for s in ((d_v, d_k), d_k, d_v))
        k, beta = k / k.norm(), float(rng.uniform(0.2, 0.9))
        message = f"d_v = {d_v}, d_k = {d_k}, a key of length 1, beta = {beta:.2f}."
        assert_close(delta_rule_step(S, k, v, beta), by_formula(S, k, v, beta), message, precise=True)
with check("keys of any length", points=1):
    for d_v, d_k in sizes:
        S, k, v = (torch.tensor(rng.normal(size=s)) for s in ((d_v, d_k), d_k, d_v))
        beta, k = float(rng.uniform(0.2, 1.0)), 0.3 * k
        message = f"d_v = {d_v}, d_k = {d_k}: the key's length is not 1. It is used as it is."
        assert_close(delta_rule_step(S, k, v, beta), by_formula(S, k, v, beta), message)
with check("many steps, one after the other", points=1):
    S = expected = torch.tensor(rng.normal(size=(3, 4)))
    for number in range(20):
        k, v = (torch.tensor(rng.normal(size=d)) for d in (4, 3))
        k = k / k.norm()
        beta = 1.0 if number % 2 else 0.3
        S, expected = delta_rule_step(S, k, v, beta), by_formula(expected, k, v, beta)
        S = torch.as_tensor(S)
    assert_close(S, expected, "Twenty steps, each on the memory that the one before gave.")
checks_passed("delta_rule_step")
### END HIDDEN TESTS


# %% check="delta_rule_step_batches" points=2
# Hidden checks of delta_rule_step: leading axes, which broadcast; against each memory by itself.
### BEGIN HIDDEN TESTS
rng = check_rng()
for lead_s, lead_k, lead_v in (
    ((2,), (2,), (2,)),
    ((3, 4), (3, 4), (3, 4)),
    ((4,), (4,), (4,)),
    ((), (3,), (3,)),
    ((3,), (), ()),
    ((2, 1), (3,), (2, 3)),
):
    S = torch.tensor(rng.normal(size=(*lead_s, 3, 4)))
    k = torch.tensor(0.5 * rng.normal(size=(*lead_k, 4)))
    v = torch.tensor(rng.normal(size=(*lead_v, 3)))
    lead = torch.broadcast_shapes(lead_s, lead_k, lead_v)
    found = delta_rule_step(S, k, v, 0.7)
    message = f"Leading axes {lead_s} of S, {lead_k} of k and {lead_v} of v."
    assert_equal(list(np.shape(found)), [*lead, 3, 4], message, name="the shape")
    ones = (
        S.expand(*lead, 3, 4).reshape(-1, 3, 4),
        k.expand(*lead, 4).reshape(-1, 4),
        v.expand(*lead, 3).reshape(-1, 3),
    )
    alone = [delta_rule_step(*one, 0.7) for one in zip(*ones, strict=True)]
    expected = torch.stack(alone).double().reshape(*lead, 3, 4)
    assert_equal(bool(expected.std() > 1e-3), True, "The memory is no constant.")
    assert_equal(bool((expected - S).abs().max() > 1e-3), True, "Something is written.")
    assert_close(found, expected, message)
### END HIDDEN TESTS


# %% check="delta_rule_step_gradients" points=1.5
# Hidden checks of delta_rule_step: gradients to S, k and v through two steps.
### BEGIN HIDDEN TESTS
@probe
def value_and_gradients(given, direction):
    given = [x.clone().requires_grad_() for x in given]
    S, k, v = given
    S = delta_rule_step(S, k[0], v[0], 0.8)
    S = delta_rule_step(S, k[1], v[1], 0.6)
    value = (S * direction).sum()
    if value.requires_grad:
        value.backward()
    return value.item(), [x.grad for x in given], S.detach()


rng = check_rng()
given = [torch.tensor(rng.normal(size=s)) for s in ((3, 4), (2, 4), (2, 3))]
direction = torch.tensor(rng.normal(size=(3, 4)))
_, gradients, written = value_and_gradients(given, direction)
assert_equal(bool((written - given[0]).abs().max() > 1e-3), True, "Something is written.")
for number, (name, gradient) in enumerate(zip("Skv", gradients, strict=True)):
    way = torch.tensor(rng.normal(size=tuple(given[number].shape)))
    near = [[x + step * way if i == number else x for i, x in enumerate(given)] for step in (1e-5, -1e-5)]
    ends = [value_and_gradients(one, direction)[0] for one in near]
    slope = (ends[0] - ends[1]) / 2e-5
    assert_equal(abs(slope) > 1e-6, True, f"The result depends on {name}.")
    along = 0.0 if gradient is None else (gradient * way).sum().item()
    message = f"The gradient of {name} does not fit how the result changes. Is something detached?"
    assert_close(along, slope, message, name=f"the slope along {name}", rtol=1e-4, atol=1e-7)
### END HIDDEN TESTS


# %% check="delta_rule_step_inputs" points=1
# Hidden checks of delta_rule_step: arguments unchanged, also with beta = 0; precision kept.
### SIDE CONDITION: counts once another check of delta_rule_step passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(S, k, v, beta):
    new = delta_rule_step(S, k, v, beta)
    kept = new.clone()
    shared = new.untyped_storage().data_ptr() == S.untyped_storage().data_ptr()
    return S, k, v, kept, shared


rng = check_rng()
given = [torch.tensor(rng.normal(size=s)) for s in ((3, 4), (4,), (3,))]
for dtype in (torch.float32, torch.float64):
    for beta in (0.0, 0.5, 1):
        before = [x.to(dtype) for x in given]
        *after, new, shared = afterwards(*(x.clone() for x in before), beta)
        for name, now, then in zip("Skv", after, before, strict=True):
            assert_equal(now, then, f"{name} is changed by the call, beta = {beta}.", name=name)
        message = f"The result shares its memory with S, beta = {beta}. It is a new tensor."
        assert_equal(shared, False, message, name="'the memory is shared'")
        message = f"The arguments are {str(dtype)[6:]}, and so is the result."
        assert_equal(str(new.dtype), str(dtype), message, name="the dtype")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Three steps: read (a matrix times a vector), take the difference from `v`, add `beta` times the outer
# product of the error and the key. With leading axes, write both products with axes of length 1: the
# error stands along the rows of `S`, the key along its columns.
#
# </details>
