# %% [markdown]
# ## What you will be able to do
#
# - **Find** a number of 134 million without which a chat model no longer works, and **show** that
#   it is not just any.
# - **Silence** heads, and say what they were for: copying, a capital, nothing much.
# - **Evict** a token from the cache, and **predict** when that ruins a text and when it does not matter.
# - **Read** what the model would say after each of its layers.
# - **Change** it with twenty examples, and **count** what the change costs elsewhere.
# - **Test** a published claim: with seeds, a control and an ablation.
#
# Three questions from earlier lessons first. Answer each before you unfold it.
#
# <details><summary>Lesson 13: a head has a high induction score. What does that not show?</summary>
#
# That it is needed. Other heads may do the same; only an intervention shows it, with a control beside it.
#
# </details>
#
# <details><summary>Lesson 14: a window of three, through two layers. How many positions can the last one depend on?</summary>
#
# Five: two further back for each layer, and itself.
#
# </details>
#
# <details><summary>Lesson 18: which numbers does a query turned at position 1,000 share with one turned at position
# 0?</summary>
#
# Its length, and its products with keys at the same distance. Only distances count.
#
# </details>

# %% tags=["setup"]
import contextlib
import copy
import math
import re

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.chat_model import open_chat_model
from lesson_kit.chat_tokenizer import ChatTokenizer
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
    KVCache,
    LlamaBlock,
    RMSNorm,
    ablate_head,
    chat_tokens,
    combine_heads,
    dequantise,
    induction_score,
    load_layer,
    split_heads,
)
from lesson_kit.figures import show
from lesson_kit.gguf_file import eight_bit_numbers
from lesson_kit.guesses import reply
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `lesson_kit.earlier` brings the parts of lessons 5 to 18: your own where they passed their checks, else
# the course's. The setup cell says which.
#
# ## 1. The model on the table
#
# It is the model of lesson 18: **SmolLM2-135M-Instruct**, thirty of your `LlamaBlock`s. In lesson 18 you
# proved that it is the same model, and talked with it. Here we do what nobody can do with a service
# behind a wire: we **open it up and change things**.
#
# Three rules come from lesson 13, and hold for each claim below (but for section 6, which has no control):
#
# 1. It is **counted**, over sixty sentences that stand in this notebook, or over a list whose length is
#    given.
# 2. Beside it stands a **control**: the same done to something else of its kind.
# 3. What did **not** come out is told as well.

# %% tags=["demonstration", "nbval-ignore-output"]
# What is printed depends on whether the package is installed, so it is not the same everywhere.
chat_model = open_chat_model()
metadata, raw_tensors, published = chat_model[:3]
print(chat_model.sentence)
d_model, num_layers = metadata["llama.embedding_length"], metadata["llama.block_count"]
num_heads, num_kv_heads = (metadata[f"llama.attention.head_count{more}"] for more in ("", "_kv"))
base, eps = (metadata[f"llama.{name}"] for name in ("rope.freq_base", "attention.layer_norm_rms_epsilon"))
d_ff, tokenizer = metadata["llama.feed_forward_length"], ChatTokenizer(metadata)
encode, decode, special = tokenizer.encode, tokenizer.decode, tokenizer.special


def numbers_of(name):
    """A tensor of the file, float32."""
    raw = raw_tensors[name]
    if raw.dtype == np.float32:
        return torch.tensor(raw)
    return torch.tensor(eight_bit_numbers(raw) if raw.shape[-1] == 34 else dequantise(raw))


token_vectors = numbers_of("token_embd.weight")
last_norm = RMSNorm(d_model, eps).requires_grad_(False)
last_norm.gamma.copy_(numbers_of("output_norm.weight"))
unembedding = nn.Linear(1, 1, bias=False)  # the read-out is the table of token vectors, once more
unembedding.weight = nn.Parameter(token_vectors, requires_grad=False)
blocks = []
for layer in progress(num_layers, "layers read"):
    block = LlamaBlock(d_model, num_heads, num_kv_heads, d_ff, base, eps)
    names = [name for name in raw_tensors if name.startswith(f"blk.{layer}.")]
    load_layer(block, {name: numbers_of(name) for name in names}, layer)
    blocks.append(block.requires_grad_(False))
raw_tensors.clear()  # all is read; the file takes a tenth of a gigabyte while somebody holds it
print(f"{num_layers} layers, {num_heads} heads each, d_model {d_model}, d_ff {d_ff}, {len(tokenizer.tokens):,} tokens")

# %% [markdown]
# **If the first line says "small random weights", everything below runs, and all exercises can be solved,
# but numbers and figures then mean nothing.** What the text says of the model is asserted with the
# published weights only.
#
# The tools: `streams` runs the layers from `first` on, so that a change in layer 17 need not begin at
# layer 0. `heads_through` puts a function of yours between the heads and their `W_o`, for as long as the
# `with` lasts.


# %% tags=["demonstration"]
def streams(x, first=0, *, mask=None, positions=None, caches=None, start=0, maps=None, until=num_layers):
    """The stream x (batch, n, d_model) as it is before layer `first`, and behind each layer from there on.

    maps: a list that gets each layer's weights (batch, num_heads, n, n_k).
    """
    positions = torch.arange(start, start + x.shape[-2]) if positions is None else positions
    found = [x]
    for layer in range(first, until):
        x, weights = blocks[layer](x, positions, None if caches is None else caches[layer], mask)
        found.append(x)
        if maps is not None:
            maps.append(weights)
    return found


@contextlib.contextmanager
def heads_through(function):
    """What the heads say goes through function(layer, heads (batch, num_heads, n, d_head)) before W_o."""

    def hook(layer):
        return lambda module, given: (combine_heads(function(layer, split_heads(given[0], num_heads))),)

    handles = [block.W_o.register_forward_pre_hook(hook(layer)) for layer, block in enumerate(blocks)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def read_out(x):
    return unembedding(last_norm(x))


def padded(rows):
    """Lists of ids as one tensor (batch, n), and which of its entries are real."""
    ids, keep = (torch.zeros(len(rows), max(map(len, rows)), dtype=kind) for kind in (torch.long, torch.bool))
    for number, row in enumerate(rows):
        ids[number, : len(row)], keep[number, : len(row)] = torch.tensor(row), True
    return ids, keep


def losses(x, ids, keep):
    """Mean nats a token of each text, its first token given; x (batch, n, d_model): the last stream."""
    counted = keep[:, 1:]
    pairs = zip(x[:, :-1][counted].split(100), ids[:, 1:][counted].split(100))  # by pieces: logits are large
    found = torch.zeros(counted.shape)
    found[counted] = torch.cat([F.cross_entropy(read_out(some), wanted, reduction="none") for some, wanted in pairs])
    return found.sum(1) / counted.sum(1)


# %% [markdown]
# The sixty sentences. They were written for this lesson; joined, they are three texts.

# %% tags=["demonstration"]
stories = [
    """The black cat slept in front of the fire. | It rained, and the wind was cold. | A man opened the door and came in. |
He put his wet coat on a chair. | The cat opened one eye and looked at him. | You have had a better day, he said. |
Then he made a pot of hot tea. | The kitchen was warm and smelled of bread. | Outside, a car drove slowly down the street. |
The cat closed its eye and slept again. | The old bridge was built of grey stone. | Every morning a train crossed it at six. |
People in the village could hear it coming. | Last winter the river rose very high. | The water carried away two of the trees. |
An engineer came from the city to look. | She found a long crack in one arch. | For three weeks no train could cross it. |
The workers filled the crack with new stone. | Now the bridge is as strong as before.""",
    """On Saturday we went to the market early. | My sister wanted apples, cheese and fresh bread. | The farmer told us his apples were sweet. |
I paid with a note and got some coins. | A small dog followed us between the tables. | We bought it a piece of meat for fun. |
At noon the square was full of people. | A woman played the violin near the church. | Children sat on the steps and listened to her. |
We walked home with two heavy bags. | A seed needs water and air to grow. | First a root pushes down into the dark soil. |
Then a green stem comes up to the light. | The leaves catch the energy of the sun. | With it the plant makes sugar from water. |
Insects visit the flowers and carry their pollen. | After some weeks the first fruit is ripe. | Birds eat the fruit and drop the seeds. |
Some of them fall on good ground. | In spring the story begins again.""",
    """The train to the coast leaves at nine. | My grandmother always sits next to the window. | She likes to watch the fields go by. |
When she was young, there were more horses. | Her father was a doctor in a small town. | He visited sick people by day and by night. |
Once he crossed a frozen lake on foot. | The ice broke, and he lost his bag. | A boy pulled him out with a rope. |
That boy later became my grandfather. | Our teacher wrote a long number on the board. | Nobody in the class knew what it meant. |
That is how far away the moon is. | Light needs a bit more than a second. | A car would drive for half a year. |
One girl asked how people measure such things. | You send a beam of light to a mirror. | Then you count how long it takes to return. |
The answer was right, and the bell rang. | We talked about the moon all the way home.""",
]  # fmt: skip
stories = [[sentence.strip() for sentence in story.split("|")] for story in stories]
sentences = [sentence for story in stories for sentence in story]
ids, keep = padded([encode(sentence) for sentence in sentences])
print(len(sentences), "sentences; the first:", sentences[0])

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
maps = []
whole = streams(token_vectors[ids], maps=maps)  # 31 streams (60, n, d_model)
normal = losses(whole[-1], ids, keep)  # (60,)
print(f"{keep.sum()} tokens; mean loss {normal.mean():.2f} nats a token (guessing evenly: {math.log(len(tokenizer.tokens)):.1f})")
assert not published or 5 < normal.mean() < 5.3

# %% [markdown]
# More than in lesson 18, where the loss was 2.8 and 3.9: a short sentence without a context is hard to
# guess. It does not matter here. We compare the same sentences **with and without** something.
#
# ## 2. One number
#
# The file holds 134 million numbers, most of them known to four bits. Surely one of them more or less makes no
# difference?
#
# Look at the stream of the **first token**, and at its largest entry behind each layer.

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
first_token = torch.stack([stream[:, 0].abs().amax(0) for stream in whole])  # (31, d_model), over 60 sentences
others = torch.stack([stream[:, 1:][keep[:, 1:]].abs().amax() for stream in whole])  # (31,)
print(f"{'layers passed':>14s}{'first token':>13s}{'its feature':>13s}{'any other token':>17s}")
for passed in (0, 1, 5, 11, 12, 20, 29, 30):
    print(f"{passed:14d}{first_token[passed].max():13,.0f}{int(first_token[passed].argmax()):13d}{others[passed]:17,.0f}")
grown = first_token[1:].amax(1) - first_token[:-1].amax(1)
heavy_layer = int(grown.argmax())
heavy_feature = int(first_token[heavy_layer + 1].argmax())
print("the largest step: layer", heavy_layer, "into feature", heavy_feature)
assert not published or ((heavy_layer, heavy_feature) == (11, 507) and first_token[12].max() > 50 * others[12] and first_token[30].max() < 10_000)

# %% [markdown]
# Behind layer 11, one feature of the first token's stream is above 26,000, a hundred times what any other
# token has there; it stays until the last layers take most of it away. Sun, Chen, Kolter and Liu (2024) call this
# a **massive activation**. It is written in one go, by the feed-forward of layer 11. Which of its 1,536
# hidden units does it?
#

# %% [markdown]
# ### Exercise 1: `heaviest_input`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 10-15 minutes on it.
#
# - `heaviest_input(hidden, weight, feature)`: torch `hidden (..., d_ff)`, the hidden units at each
#   position, and `weight (d_model, d_ff)`, that of the matrix `down`, in `nn.Linear`'s layout (outputs,
#   inputs).
# - What hidden unit `j` adds to `feature` at a position is `hidden[..., j] * weight[feature, j]`. Returns
#   the `j` whose product has the largest **absolute value** at any one position: one strong push counts,
#   not the sum of many small ones.
# - Of equals the lower index. A Python `int`.
# - Checked when graded: any number of axes in place of `...`, none as well; arguments unchanged.


# %% answer="heaviest_input"
def heaviest_input(hidden, weight, feature):
    """The hidden unit that pushes one feature hardest, at any position.

    Args:
        hidden: (..., d_ff) torch.
        weight: (d_model, d_ff) torch.
        feature: which row of weight.

    Returns:
        The index of the unit, a Python int; the lower one of equals.
    """
    ### BEGIN SOLUTION
    products = (hidden * weight[feature]).abs()  # (..., d_ff)
    largest = products.reshape(-1, products.shape[-1]).amax(0)  # (d_ff,)
    return int((largest == largest.max()).nonzero()[0, 0])
    ### END SOLUTION


# %% check="heaviest_input" points=3 card=["Returns the `j` whose product has the largest **absolute value** at any one position", "Of equals the lower index", "A Python `int`"]
# Two positions and four hidden units by hand; then nine cases of 12 positions and 40 units.
hidden = torch.tensor([[2.0, 0.5, -3.0, 1.0], [2.0, -1.0, 1.0, 1.5]])
weight = torch.tensor([[1.0, 2.0, 1.0, 1.0], [1.0, -4.5, 1.0, -2.0], [-1.5, 0.0, 0.5, 0.5]])
with check("by hand", points=1):
    message = (
        "The products with row 1 are 2, -2.25, -3, -2 at the first position and 2, 4.5, 1, -3 at the second: "
        "4.5 is the largest in size, so unit 1. With row 0 it is -3, unit 2; with row 2 it is -3, unit 0."
    )
    found = [heaviest_input(hidden.clone(), weight.clone(), feature) for feature in (1, 0, 2)]
    assert_equal([int(one) for one in found], [1, 2, 0], message, name="the units for the features 1, 0 and 2")
rng = check_rng()
with check("of equals the lower index", points=0.5):
    level = torch.tensor([[1.0, 0.0, 2.0, -2.0, 1.0]])
    found = [heaviest_input(torch.tensor([[0.0, 0.0, 2.0], [0.0, 2.0, 0.0]]), torch.ones(1, 3), 0)]
    message = "Hidden 0 0 2 at the first position and 0 2 0 at the second, all weights 1: units 1 and 2 push equally hard, so 1."
    assert_equal([int(one) for one in found], [1], message, name="the unit")
    message = "Hidden 1 0 2 -2 1, all weights 1 or -1: units 2 and 3 push equally hard, so 2. Twice as large at unit 0: then 0 and 2 and 3."
    found = [heaviest_input(level * torch.tensor(factor), torch.tensor([[1.0, 1.0, 1.0, -1.0, 1.0]]), 0) for factor in ([1.0] * 5, [2.0, 1.0, 1.0, 1.0, 1.0])]
    assert_equal([int(one) for one in found], [2, 0], message, name="the units")
with check("nine cases of 40 units", points=1):
    found, expected = [], []
    for _ in range(9):
        hidden, weight = rng.normal(size=(12, 40)), rng.normal(size=(5, 40))
        feature = int(rng.integers(5))
        pushes = [[abs(row[j] * weight[feature][j]) for j in range(40)] for row in hidden]
        expected.append(max(range(40), key=lambda j: max(row[j] for row in pushes)))
        found.append(int(heaviest_input(torch.tensor(hidden), torch.tensor(weight), feature)))
    message = "12 positions, 40 units, 5 features, nine times: the unit with the largest product in size at any one position."
    assert_equal(found, expected, message, name="the nine units")
with check("a Python int", points=0.5, side=True):
    found = heaviest_input(torch.tensor(hidden), torch.tensor(weight), 0)
    assert_equal(type(found).__name__, "int", "The index is a Python int.", name="its type")
checks_passed("heaviest_input")


# %% check="heaviest_input_axes" points=2 card=["any number of axes in place of `...`, none as well", "Returns the `j` whose product has the largest **absolute value** at any one position", "in `nn.Linear`'s layout (outputs, inputs)", "Of equals the lower index"]
# Hidden checks of heaviest_input: no other axis, one to three of them; equals; as many units as features.
### BEGIN HIDDEN TESTS
rng = check_rng()


def compare(shape, d_model, integers=False):
    """Six cases of a shape, against NumPy."""
    found, expected = [], []
    for _ in range(6):
        draw = (lambda size: rng.integers(-2, 3, size=size) + 0.0) if integers else (lambda size: rng.normal(size=size))
        hidden, weight, feature = draw(shape), draw((d_model, shape[-1])), int(rng.integers(d_model))
        expected.append(int(np.abs(hidden * weight[feature]).reshape(-1, shape[-1]).max(axis=0).argmax()))
        found.append(int(heaviest_input(torch.tensor(hidden), torch.tensor(weight), feature)))
    message = f"hidden {shape}, weight {(d_model, shape[-1])}{', small whole numbers' if integers else ''}, six cases."
    assert_equal(found, expected, message, name="the units")


with check("positions along one axis", points=0.5):
    compare((9, 31), 6)
with check("as many units as features", points=0.5):
    compare((7, 23), 23)
with check("no other axis, one position, several axes", points=0.5):
    for shape in ((31,), (1, 29), (3, 4, 31), (2, 3, 2, 17)):
        compare(shape, 6)
with check("of equals the lower index", points=0.5):
    for shape in ((4, 19), (2, 3, 19), (19,)):
        compare(shape, 5, integers=True)
checks_passed("heaviest_input")
### END HIDDEN TESTS


# %% check="heaviest_input_inputs" points=1 card=["arguments unchanged", "A Python `int`", "`weight (d_model, d_ff)`, that of the matrix `down`"]
# Hidden checks of heaviest_input: hidden and weight unchanged; a Python int; weights that are trained.
### SIDE CONDITION: counts once another check of heaviest_input passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(hidden, weight, trained):
    found = heaviest_input(hidden, nn.Parameter(weight) if trained else weight, 2)
    return type(found).__name__, hidden, weight


rng = check_rng()
for trained in (False, True):
    hidden, weight = torch.tensor(rng.normal(size=(6, 21))), torch.tensor(rng.normal(size=(4, 21)))
    kind, hidden_after, weight_after = afterwards(hidden.clone(), weight.clone(), trained)
    message = f"weight {'a parameter that is trained' if trained else 'a plain tensor'}: "
    assert_equal(kind, "int", message + "the index is a Python int.", name="its type")
    assert_equal(hidden_after, hidden, message + "hidden should be as before.", name="hidden", against="before the call")
    assert_equal(weight_after, weight, message + "weight should be as before.", name="weight", against="before the call")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `hidden * weight[feature]` broadcasts to `(..., d_ff)`. Take absolute values, put all positions into one
# axis with `reshape(-1, d_ff)`, and take the largest of each column. `argmax` may give any of equals: to
# be sure of the first one, ask where the largest stands.
#
# </details>

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
down = blocks[heavy_layer].feed_forward.down
seen_by_down = []
handle = down.register_forward_pre_hook(lambda module, given: seen_by_down.append(given[0]))
streams(whole[heavy_layer], heavy_layer, until=heavy_layer + 1)
handle.remove()
heavy_unit = heaviest_input(seen_by_down[0][keep], down.weight, heavy_feature)
pushes = (seen_by_down[0][keep] * down.weight[heavy_feature]).abs().amax(0).sort(descending=True)
one = down.weight[heavy_feature, heavy_unit].item()
print(f"unit {heavy_unit}; its weight into feature {heavy_feature}: {one:.3f}")
print("the four largest pushes:", *(f"{push:,.0f} (unit {unit})" for push, unit in zip(pushes.values[:4], pushes.indices[:4])))
larger = (down.weight.abs() > abs(one)).nonzero().tolist()
print("weights of this matrix that are larger in size, (row, column):", *map(tuple, larger[:3]))
assert not published or (heavy_unit == 1229 and abs(one - 5.876) < 1e-3 and larger == [[507, 1487]])

# %% [markdown]
# It is the weight of lesson 18's first glance into the file: row 507, column 1229.
#
# Now set it to 0, and nothing else. And the controls: the **largest other** weight of this matrix, which
# is even larger; the largest of **each** of the eighteen later ones, all at once; and 30,000 weights
# drawn at random from the nineteen `down` matrices from here on.
# (Layers before 11 do not notice, so each run begins there.)
#
# **Predict, then run.** The mean loss is 5.2. What is it without the one number?

# %% tags=["demonstration", "guess"]
guess_without_one = 9.0  # write a number of nats

# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Numbers of the published model, which is not installed everywhere.
downs = [block.feed_forward.down.weight for block in blocks]


@contextlib.contextmanager
def zeros(places):
    """Weights set to 0 for a while; places: layer to flat positions in its `down`."""
    kept = {layer: downs[layer].view(-1)[where].clone() for layer, where in places.items()}
    try:
        for layer, where in places.items():
            downs[layer].view(-1)[where] = 0
        yield
    finally:
        for layer, where in places.items():
            downs[layer].view(-1)[where] = kept[layer]


the_one = heavy_feature * d_ff + heavy_unit
by_size = downs[heavy_layer].flatten().abs().topk(2).indices
draw = torch.Generator().manual_seed(19)
later = range(heavy_layer, num_layers)
removals = {
    "the one number": {heavy_layer: torch.tensor([the_one])},
    "the largest other of its matrix": {heavy_layer: by_size[by_size != the_one][:1]},
    "the largest of each later one": {layer: downs[layer].flatten().abs().topk(1).indices for layer in later if layer != heavy_layer},
    "30,000 at random": {layer: torch.randint(downs[layer].numel(), (30_000 // len(later) + 1,), generator=draw).unique() for layer in later},
}  # fmt: skip
removed = {"nothing": normal}
maps_without = []
for name, places in removals.items():
    with zeros(places):
        removed[name] = losses(streams(whole[heavy_layer], heavy_layer, maps=maps_without if name == "the one number" else None)[-1], ids, keep)
print(f"{'set to 0':40s}{'loss':>6s}   sentences worse by 0.5 and more, of 60")
for name, found in removed.items():
    print(f"{name:40s}{found.mean():6.2f}{int((found > normal + 0.5).sum()):8d}")
if published:
    loss = {name: found.mean() for name, found in removed.items()}
    assert loss["the one number"] > normal.mean() + 3 and (removed["the one number"] > normal + 0.5).sum() >= 58
    assert loss["30,000 at random"] < normal.mean() + 0.1
    assert loss["the largest of each later one"] < normal.mean() + 0.5
    assert all(loss[name] < normal.mean() + 2 for name in removals if name != "the one number")
    reply("guess_without_one", guess_without_one, round(loss["the one number"].item(), 1), "Guessing evenly is 10.8.", within=1)

# %% tags=["demonstration", "nbval-ignore-output"]
figure, axes = plt.subplots(figsize=(8.2, 3.0), layout="constrained")
spread = np.random.default_rng(0).uniform(-0.25, 0.25, size=60)
for row, (name, found) in enumerate(removed.items()):
    axes.plot(found, row + spread, ".", alpha=0.5, color="#b2182b" if name == "the one number" else "#2166ac")
    axes.plot(found.mean(), row, "|", color="black", markersize=22)
    axes.text(13.8, row, f"mean {found.mean():.2f}", va="center", ha="right")
axes.set_yticks(range(len(removed)), removed)
axes.invert_yaxis()
axes.set(xlabel="loss of a sentence, nats a token", xlim=(2, 14))
show(
    figure,
    "Figure 1. One dot a sentence, the bar is the mean. One number of 134 million is needed; 30,000 others are not. The largest other number of its matrix costs a nat.",
    "Rows of sixty dots. Mean loss: " + "; ".join(f"{name}: {found.mean():.2f}" for name, found in removed.items()) + ".",
)

# %% [markdown]
# One number breaks all sixty sentences. Yet look at the controls before you say "no other matters": the
# *largest other* weight of the same matrix costs a whole nat (it belongs to unit 1487, the second of the
# list above, and pushes into the same feature), and most of the 134 million nobody has tried. What we
# have is: this one, and neither thirty thousand drawn at random nor the largest of eighteen other
# matrices. (Yu and others, 2024, found such a **super weight** in every model of this kind they looked
# at, always in an early `down`; ours, in layer 11 of 30, is late for that.)
#
# ### Short answer 1: `answer_control`
#
# A friend sets one random weight to 0 as the control and reports: "the loss does not move". Why are the
# 30,000, and the largest other one, the better controls?
#
# - a) One weight is too few to be measured with sixty sentences.
# - b) A control should be harder than the claim: if even many, and even large ones, do less, it is
#   neither the number of weights nor their size.
# - c) A control should do as much damage as the claim.
# - d) 30,000 draws make the mean loss more exact.

# %% answer="answer_control"
### BEGIN SOLUTION
answer_control = "b"
### END SOLUTION

# %% check="answer_control" points=1
check_answer("answer_control", answer_control)

# %% [markdown]
# ## 3. Heads that copy
#
# Lesson 13 built **induction heads** by hand, and found them in a model that was trained for nothing
# else: where a word comes again, they look at what followed it the last time. Does a model that was
# trained on two trillion tokens have them?
#
# The test is text that no one can know: 24 tokens drawn at random, and then the same 24 again. In the
# first round nothing can be guessed. In the second everything can, by copying. Your `induction_score` of
# lesson 13 finds the heads on six such texts; whether they are needed is then tried on **six others**,
# since whoever chooses and tests on the same texts finds what these texts have by chance.

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
PERIOD, vocab = 24, len(tokenizer.tokens)
draw = torch.Generator().manual_seed(19)
pieces = torch.randint(vocab // 50, vocab * 4 // 5, (12, PERIOD), generator=draw)
repeated, tested = pieces.repeat(1, 2).split(6)  # heads are chosen on the first six, and tried on the others
repeated_maps = []
streams(token_vectors[repeated], maps=repeated_maps)
tested_whole = streams(token_vectors[tested])


def copied(x):
    """Share of right predictions in the second round."""
    said = torch.cat([read_out(some).argmax(-1) for some in x[:, PERIOD:-1].split(3)])
    return (said == tested[: len(x), PERIOD + 1 :]).float().mean().item()


right = copied(tested_whole[-1])
scores = torch.stack([induction_score(weights, PERIOD).mean(0) for weights in repeated_maps])  # (num_layers, num_heads)
order = scores.flatten().argsort(descending=True).tolist()
best = [divmod(number, num_heads) for number in order[:8]]
fresh = torch.randint(vocab // 50, vocab * 4 // 5, (2, 2 * PERIOD), generator=draw)
fresh_maps = []
streams(token_vectors[fresh], maps=fresh_maps, until=max(layer for layer, _ in best) + 1)
no_copy = max(induction_score(fresh_maps[layer], PERIOD).mean(0)[head].item() for layer, head in best)
print(f"right in the second round: {right:.2f}")
print("largest scores:", ", ".join(f"L{layer}H{head}: {scores[layer, head]:.2f}" for layer, head in best))
print(f"median of all {scores.numel()} heads: {scores.median():.2f};  of these eight, where nothing is repeated: below {max(no_copy, 0.005):.2f}")
assert not published or (0.4 < right < 0.8 and scores[18, 6] > 0.7 and scores.median() < 0.05 and no_copy < 0.1)
assert not published or sum(layer in (17, 18) for layer, _ in best) >= 4

# %% tags=["demonstration", "nbval-ignore-output"]
figure, axes = plt.subplots(figsize=(8.2, 3.0), layout="constrained")
picture = axes.imshow(scores.T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
axes.set(xlabel="layer", ylabel="head", xticks=range(0, num_layers, 2), yticks=range(num_heads))
axes.annotate(
    "they look at what followed last time", (best[0][0], best[0][1]), (14, 7), color="#b35806", ha="right", va="center",
    arrowprops={"arrowstyle": "->", "color": "#b35806"},
)  # fmt: skip
figure.colorbar(picture, label="induction score")
show(
    figure,
    "Figure 2. Induction scores of all 270 heads. A handful in layers 17 and 18 look at what followed the last time; before layer 17 "
    "there are none.",
    "A map of thirty layers by nine heads. Nearly all empty. Filled: " + "; ".join(
        f"L{layer}H{head} {scores[layer, head]:.2f}" for layer, head in best) + ".",
)
assert not published or scores[:16].max() < 0.5

# %% [markdown]
# Found by a score. **Needed?** We silence the eight of them: every head hands its numbers to `W_o`, and
# yours of lesson 13, `ablate_head`, puts zeros there, or the numbers of another text of the batch
# (*resample*). The controls: eight other heads, drawn from the **same layers**, twice. And on the other
# side the sixty sentences: does ordinary language suffer?
#
# **Predict, then run.** The share of right copies is printed above. What is it without the eight? And by how
# much does the loss of the sentences grow?

# %% tags=["demonstration", "guess"]
guess_copies = 0.0  # write a share
guess_sentences = 0.0  # write a number of nats


# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Numbers of the published model, which is not installed everywhere.
def silenced(heads, how, kept_streams):
    """The last stream, without these (layer, head); kept_streams as streams() gave them."""

    def without(layer, said):
        for own, head in heads:
            said = ablate_head(said, head, how) if own == layer else said
        return said

    first = min(layer for layer, _ in heads)
    with heads_through(without):
        return streams(kept_streams[first], first)[-1]


rng = np.random.default_rng(19)
drawn = []
for _ in range(2):
    drawn.append([])
    for layer in sorted({layer for layer, _ in best}):
        free = [head for head in range(num_heads) if (layer, head) not in best]
        wanted = min(len(free), sum(own == layer for own, _ in best))
        drawn[-1] += [(layer, int(head)) for head in rng.choice(free, wanted, replace=False)]
copies = {
    "all heads": right,
    "without the eight, zeros": copied(silenced(best, "zero", tested_whole)),
    "without the eight, resampled": copied(silenced(best, "resample", tested_whole)),
    **{f"control {number}: eight others": copied(silenced(heads, "zero", tested_whole)) for number, heads in enumerate(drawn, 1)},
}
language = {
    "all heads": normal,
    "without the eight, zeros": losses(silenced(best, "zero", whole), ids, keep),
    **{f"control {number}: eight others": losses(silenced(heads, "zero", whole), ids, keep) for number, heads in enumerate(drawn, 1)},
}
for name, share in copies.items():
    nats = f"   loss of the sentences {language[name].mean():.2f}" if name in language else ""
    print(f"{name:32s}{share:5.2f} copied{nats}")
without = language["without the eight, zeros"]
print("sentences that become worse by 0.5 and more, of 60:", int((without > normal + 0.5).sum()), "   better at all:", int((without < normal).sum()))
if published:
    assert max(share for name, share in copies.items() if "without" in name) < 0.05
    assert min(share for name, share in copies.items() if "control" in name) > 0.3
    assert without.mean() < normal.mean() + 0.05 and (without > normal + 0.5).sum() <= 2
    reply("guess_copies", guess_copies, round(copies["without the eight, zeros"], 2), within=0.05)
    reply("guess_sentences", guess_sentences, round((without - normal).mean().item(), 2), "A single sentence holds little to copy.", within=0.1)

# %% [markdown]
# Without these eight of 270 heads it copies **nothing at all**; without eight others of the same layers
# it copies most of what it did; and the sixty sentences do not get worse, nor do they much without eight others
# (a twentieth of a nat). (That they get a little *better* says nothing: without the first control's eight they do too.)
#
# Lesson 13 asked for both sides: what is lost, and what stays. That is a **dissociation**. (What it does
# not say: that language never needs these heads. In a long text names come again, and a summary copies.)
#
# In lesson 13's design an induction head could not work alone: an earlier head had to tell each place
# **which word came before it**. Are there such heads here, below layer 17, and does copying need them?

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
one_back = torch.stack([induction_score(weights[..., :PERIOD, :PERIOD], 2).mean(0) for weights in repeated_maps])
below = min(layer for layer, _ in best)  # the first layer of the eight
early = [divmod(number, num_heads) for number in one_back[:below].flatten().argsort(descending=True)[:2].tolist()]
layer, head = early[0]
alone = {
    f"without L{layer}H{head}, one back {one_back[layer, head]:.2f}": [early[0]],
    f"without L{early[1][0]}H{early[1][1]}, one back {one_back[early[1]]:.2f}": [early[1]],
    **{f"without L{layer}H{other}, one back {one_back[layer, other]:.2f}": [(layer, other)] for other in ((head + 3) % num_heads, (head + 7) % num_heads)},
}
alone = {name: copied(silenced(heads, "zero", tested_whole)) for name, heads in alone.items()}
for name, share in alone.items():
    print(f"{name:40s}{share:5.2f} copied")
with_it, without_it = [], []
streams(tested_whole[below], below, maps=with_it, until=below + 3)
with heads_through(lambda own, said: ablate_head(said, head, "zero") if own == layer else said):
    streams(tested_whole[layer], layer, maps=without_it, until=below + 3)
fell = [[induction_score(maps[own - below], PERIOD).mean(0)[number].item() for maps in (with_it, without_it[below - layer :])]
        for own, number in best if own < below + 3]  # fmt: skip
print("induction scores of those above, with and without it:", ", ".join(f"{before:.2f} to {after:.2f}" for before, after in fell))
if published:
    needed, *others_alone = alone.values()
    assert len(fell) >= 4 and all(after < before / 2 for before, after in fell)
    assert early[:2] == [(16, 0), (11, 1)] and one_back[early[1]] > 0.7 and needed < 0.2 and min(others_alone) > 0.4

# %% [markdown]
# One head is enough: without `L16H0`, directly below the eight, hardly anything is copied, and
# the heads above it no longer look at what followed the last time: their scores fall to a third or less. The
# chain of lesson 13, "which word came before me" and then "where was I before", is here. And the second
# row is as instructive: `L11H1` looks one back as faithfully, and **is not needed**. A score
# is not a need.
#
# ### Find the silent bug
#
# A friend has done it as well, in the weights: whoever sets a part of `W_o` to 0 needs no hooks. She
# reports: "Without the eight heads it still copies **more than half as much** as before, not far below
# what is left without eight others. So other heads do it too: induction heads are a nice story." The cell
# is read-only.


# %% locked="given_friends_silence"
def friends_silence(W_o, head, num_heads):
    """The weight of an output projection, (d_model, d_model) in nn.Linear's layout, with one head silenced."""
    silenced = W_o.clone()  # line a: the model's own weight stays as it is
    d_head = W_o.shape[0] // num_heads  # line b: how many features a head has
    first = head * d_head  # line c: where this head's begin
    silenced[first : first + d_head] = 0  # line d: this head says nothing
    return silenced


# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
def by_weights(silence, kept_streams):
    """The last stream, with the eight heads silenced in the weights."""
    kept = {layer: blocks[layer].W_o.weight.clone() for layer, _ in best}
    try:
        for layer, head in best:
            blocks[layer].W_o.weight.copy_(silence(blocks[layer].W_o.weight, head, num_heads))
        first = min(kept)
        return streams(kept_streams[first], first)[-1]
    finally:
        for layer, weight in kept.items():
            blocks[layer].W_o.weight.copy_(weight)


friends = copied(by_weights(friends_silence, tested_whole))
print(f"all heads {right:.2f} copied, the friend's way {friends:.2f}, yours {copies['without the eight, zeros']:.2f}")
assert not published or 0.12 < friends < right - 0.08

# %% [markdown]
# No error, and a number that one can believe. Every shape fits, because this matrix is square.
#
# ### Short answer 2: `answer_silent_bug`
#
# Which line is wrong?
#
# - a) line a: a copy has no effect on the model
# - b) line b: `d_head` is `W_o.shape[1] // num_heads`
# - c) line c: head 0 begins at 0, so head 1 begins at `d_head - 1`
# - d) line d: it clears rows, and a head is an input
#
# **Mend it** in a cell of your own: `by_weights` with your function should agree with `silenced(best,
# "zero", ...)`.

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "d"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# <details><summary>The mended line</summary>
#
# `silenced[:, first : first + d_head] = 0`. `nn.Linear` keeps (outputs, inputs): a row is a feature of
# the stream, into which all heads write. The friend forbade the whole layer to write into 64 features,
# for each head; a head's own numbers come in through columns.
#
# </details>
#
# ## 4. The token that holds it up
#
# Where do the heads look when nothing is to be copied? Of `maps`, the weights of all 270 heads on the
# sixty sentences:

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
def first_share(maps, keep):
    """Of each layer: the mean weight on the first token, over the later queries of all texts and heads."""
    queries = keep.clone()
    queries[:, 0] = False
    return torch.stack([weights.transpose(1, 2)[queries][..., 0].mean() for weights in maps])


share = first_share(maps, keep)
queries = keep[:, 1:]
even = (1 / torch.arange(2.0, ids.shape[1] + 1)).expand(queries.shape)[queries].mean()
some = slice(0, 60, 6)
order = [torch.randperm(int(row.sum()), generator=draw) for row in keep[some]]
shuffled, shuffled_keep = padded([row[: len(places)][places].tolist() for row, places in zip(ids[some], order)])
shuffled_maps = []
streams(token_vectors[shuffled], maps=shuffled_maps)
print(f"on the first token {share.mean():.2f};  if weights were even {even:.2f}")
print(f"ten sentences in order {first_share([one[some] for one in maps], keep[some]).mean():.2f}, their words shuffled "
      f"{first_share(shuffled_maps, shuffled_keep).mean():.2f}")  # fmt: skip
with zeros({heavy_layer: torch.cat([removals[name][heavy_layer] for name in ("the one number", "the largest other of its matrix")])}):
    maps_both = []
    loss_both = losses(streams(whole[heavy_layer][some], heavy_layer, maps=maps_both)[-1], ids[some], keep[some]).mean()
share_both = first_share(maps_both, keep[some])[1:].mean()
del maps_both
print(f"without the one number of section 2: layers 12 to 29 {first_share(maps_without, keep)[1:].mean():.2f}, with it {share[heavy_layer + 1 :].mean():.2f}")
print(f"the ten without that and the largest other of its matrix: {share_both:.2f}, and a loss of {loss_both:.1f}")
assert not published or (0.55 < share.mean() < 0.75 and even < 0.3)
assert not published or abs(first_share(shuffled_maps, shuffled_keep).mean() - share.mean()) < 0.06
assert not published or abs(first_share(maps_without, keep)[1:].mean() - share[heavy_layer + 1 :].mean()) < 0.06
assert not published or (share_both < share[heavy_layer + 1 :].mean() - 0.08 and loss_both > 12)

# %% [markdown]
# Two thirds of all attention rest on the first token, whatever it is: shuffle the words, and another word
# gets as much. Xiao and others (2024) call it an **attention sink**. A softmax has to put its weights
# somewhere; a head that finds nothing puts them there. Lesson 14 met sinks in a published encoder, and
# reported that the course's own small models had none.
#
# One would like to say "the one number of section 2 makes the sink", since both belong to the first
# token. Without the number the loss is 9, and the sink is as it was: **no**. But the massive activation
# was not gone, only smaller: unit 1487 still writes into the same feature. Take both weights away (the
# last line), and the loss is 17, more than guessing evenly, and a fifth of the sink of the later layers
# is gone. So the activation feeds at most that part (a model that is broken may rest elsewhere for another reason);
# most of the sink stands without.
#
# Now longer texts: each story's twenty sentences, joined, and cut to 96 tokens. A program that wants to
# save memory throws old keys out of the cache. What if the first token is thrown out?

# %% [markdown]
# ### Exercise 2: `evict`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10-15 minutes on it.
#
# - `evict(mask, column, start)`: `mask (..., n, n)`, NumPy bool, row = query, column = key, `True` = may
#   attend. Returns a **new** mask in which the queries from position `start` on no longer see key
#   `column`; that holds for the query at `column` itself, too, where it comes at or after `start` (its
#   row may become empty: lesson 3's function then gives weights 0).
# - Earlier queries, and all other keys, are as before: what was hidden stays hidden.
# - `column` or `start` outside `0..n-1` is a `ValueError`.
# - Checked when graded: any number of leading axes; `mask` is not changed.


# %% answer="evict"
def evict(mask, column, start):
    """A mask without one key, from one query on.

    Args:
        mask: (..., n, n) NumPy bool, True = may attend; not changed.
        column: the key that is no longer seen.
        start: the first query that no longer sees it.

    Returns:
        (..., n, n) NumPy bool, a new array.

    Raises:
        ValueError: column or start is outside 0..n-1.
    """
    ### BEGIN SOLUTION
    n = mask.shape[-1]
    if not (0 <= column < n and 0 <= start < n):
        raise ValueError(f"column = {column}, start = {start}: both should be in 0..{n - 1}")
    new = mask.copy()
    new[..., start:, column] = False
    return new
    ### END SOLUTION


# %% check="evict" points=3 card=["the queries from position `start` on no longer see key `column`; that holds for the query at `column` itself, too", "Earlier queries, and all other keys, are as before", "`column` or `start` outside `0..n-1` is a `ValueError`", "`mask` is not changed"]
# "the black cat is sleeping": key 1, "black", is evicted from query 3 on; then more.
causal = np.tril(np.ones((5, 5), dtype=bool))


def table(mask):
    """Each row as a text: x = may attend."""
    return ["".join(".x"[int(value)] for value in row) for row in np.asarray(mask)]


with check("a key that is evicted later", points=1):
    message = "Key 1 evicted from query 3 on: 'is' and 'sleeping' do not see 'black', all else is as it was."
    assert_equal(table(evict(causal.copy(), 1, 3)), ["x....", "xx...", "xxx..", "x.xx.", "x.xxx"], message, name="the mask")
with check("from its own query on, and before it", points=1):
    message = "Key 2 evicted from query 2 on: 'cat' does not see itself either."
    assert_equal(table(evict(causal.copy(), 2, 2)), ["x....", "xx...", "xx...", "xx.x.", "xx.xx"], message, name="the mask")
    message = "Key 0 evicted from query 0 on: nobody sees 'the', and row 0 is empty."
    assert_equal(table(evict(causal.copy(), 0, 0)), [".....", ".x...", ".xx..", ".xxx.", ".xxxx"], message, name="the mask")
with check("column or start outside the text", points=0.5, side=True):
    for column, start in ((5, 1), (-1, 1), (1, 5), (1, -1)):
        with assert_raises(ValueError, f"n = 5, column = {column}, start = {start}: this should be a ValueError."):
            evict(causal.copy(), column, start)


@probe
def mask_afterwards(mask, column, start):
    evict(mask, column, start)
    return mask


with check("mask unchanged", points=0.5, side=True):
    message = "mask should be as before after the call: you want to compare with it."
    assert_equal(mask_afterwards(causal.copy(), 1, 3), causal, message, name="mask", against="before the call")
checks_passed("evict")


# %% check="evict_masks" points=3 card=["the queries from position `start` on no longer see key `column`; that holds for the query at `column` itself, too", "Earlier queries, and all other keys, are as before: what was hidden stays hidden", "any number of leading axes"]
# Hidden checks of evict: random masks, leading axes, all columns and starts.
### BEGIN HIDDEN TESTS
rng = check_rng()


def compare(shape, column, start, share=0.7):
    mask = rng.random(shape) < share
    if share == 1:
        mask = np.tril(mask)  # rows that may become empty
    else:
        mask[..., start:, column] |= rng.random(mask[..., start:, column].shape) < 0.8
    seen = np.arange(shape[-1])
    gone = (seen[:, None] >= start) & (seen == column)
    message = f"A mask of shape {shape}, column = {column}, start = {start}: that key is hidden from there on, the rest is as before."
    assert_equal(evict(mask.copy(), column, start), mask & ~gone, message, name="the mask")


with check("random masks of one text", points=1.5):
    for _ in range(6):
        n = int(rng.integers(5, 12))
        compare((n, n), int(rng.integers(n)), int(rng.integers(n)))
with check("leading axes", points=1):
    for lead in ((1,), (3,), (2, 1), (2, 3)):
        compare((*lead, 7, 7), int(rng.integers(7)), int(rng.integers(1, 7)))
with check("the first and the last of both", points=0.5):
    for column, start in ((0, 0), (0, 5), (5, 0), (5, 5), (0, 3), (3, 0)):
        compare((6, 6), column, start)
        compare((6, 6), column, start, share=1)
checks_passed("evict")
### END HIDDEN TESTS


# %% check="evict_inputs" points=1 card=["Returns a **new** mask", "`mask` is not changed", "`column` or `start` outside `0..n-1` is a `ValueError`"]
# Hidden checks of evict: a new array, mask unchanged, read-only masks; errors.
### SIDE CONDITION: counts once another check of evict passes.
### BEGIN HIDDEN TESTS
@probe
def written(mask, column, start):
    """The mask afterwards, when everything in the result has been turned around."""
    new = evict(mask, column, start)
    new[...] = ~new
    return mask


@probe
def of_read_only(mask, column, start):
    mask.setflags(write=False)
    return evict(mask, column, start)


rng = check_rng()
mask = rng.random((2, 6, 6)) < 0.7
message = "The new mask is written into: the one that was handed over should be as before. Check first: is it a new array?"
assert_equal(written(mask.copy(), 2, 3), mask, message, name="mask", against="before the call")
none_there = mask.copy()
none_there[:, 3:, 2] = False
message = "A mask in which that key is hidden already: a new array all the same."
assert_equal(written(none_there.copy(), 2, 3), none_there, message, name="mask", against="before the call")
message = "A read-only mask: the result should be that of a plain one."
assert_equal(of_read_only(mask.copy(), 2, 3), evict(mask.copy(), 2, 3), message, name="the new mask", against="of a plain mask")
for shape in ((4, 4), (3, 4, 4)):
    for column, start in ((4, 0), (-1, 0), (0, 4), (0, -1), (-4, 2), (2, 9)):
        with assert_raises(ValueError, f"A mask of shape {shape}, column = {column}, start = {start}: this should be a ValueError."):
            evict(np.ones(shape, dtype=bool), column, start)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Copy the mask, and write `False` into one part of one column: `new[..., start:, column]`. NumPy takes
# negative numbers as counted from the end, so ask about them first.
#
# </details>

# %% [markdown]
# Three stories, 96 tokens each; we look at the loss on the **second half**. `second_half` reads the
# first 48 tokens once, keeps the caches, and reads the rest under a mask of yours.
#
# **Predict, then run.** Key 0 is evicted at position 48, **late**; or from the beginning, **early**, so
# that nobody but itself ever sees it. The control: key 17, late. Which of the three costs more than 0.5
# nats?

# %% tags=["demonstration", "guess"]
guess_eviction = {"late"}  # write a set of "late", "early", "17"


# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
LONG, HALF = 96, 48
long_ids = torch.tensor([encode(" ".join(story))[:LONG] for story in stories])  # (3, LONG)
long_keep = torch.ones(3, LONG - HALF, dtype=torch.bool)
first_caches = [KVCache() for _ in blocks]
streams(token_vectors[long_ids[:, :HALF]], caches=first_caches)


def second_half(mask):
    """Loss of each story's second half; the first half was read as usual. mask (LONG, LONG), NumPy."""
    caches = copy.deepcopy(first_caches)
    x = streams(token_vectors[long_ids[:, HALF:]], caches=caches, start=HALF, mask=torch.tensor(mask)[HALF:])[-1]
    return losses(x, long_ids[:, HALF:], long_keep)


causal = np.tril(np.ones((LONG, LONG), dtype=bool))
long_maps = []
early_mask = torch.tensor(evict(causal, 0, 1))
early = streams(token_vectors[long_ids], mask=early_mask, maps=long_maps)[-1]
evicted = {
    "all keys": second_half(causal),
    "key 0, late": second_half(evict(causal, 0, HALF)),
    "key 17, late": second_half(evict(causal, 17, HALF)),
    "key 0, early": losses(early[:, HALF:], long_ids[:, HALF:], long_keep),
}
heir = torch.stack([weights[:, :, HALF:, 1].mean() for weights in long_maps]).mean()
del long_maps
for name, found in evicted.items():
    print(f"{name:14s}{found.mean():6.2f}    each story:", *(f"{loss:.2f}" for loss in found))
print(f"after the early eviction, weight on the second token: {heir:.2f}")
if published:
    cost = {name: found - evicted["all keys"] for name, found in evicted.items()}
    assert cost["key 0, late"].min() > 0.5 and cost["key 0, late"].mean() > 1.2 and cost["key 17, late"].abs().max() < 0.1 and cost["key 0, early"].abs().mean() < 0.1
    assert heir > 0.2
    much = {short for short, name in (("late", "key 0, late"), ("early", "key 0, early"), ("17", "key 17, late")) if cost[name].mean() > 0.5}
    reply("guess_eviction", guess_eviction, much, "Early, the next token takes its place.")

# %% [markdown]
# Thrown out late, the first token takes the text with it. Thrown out **early**, it is not missed: the
# next tokens take its place. So it is not *this* token that is needed, and not its content, but that
# the heads have the place on which they have rested from the beginning.
#
# Hence the recipe of Xiao and others for texts without end: a window, **and** the first token.

# %% [markdown]
# ### Exercise 3: `sink_window_mask`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# - `sink_window_mask(n, window, sinks)`: `(n, n)`, NumPy bool, row = query, column = key, `True` = may
#   attend.
# - Causal: position `t` sees the `window` positions that end at `t`, **and** the first `sinks` positions
#   of the text, as far as they lie at or before `t`. Near the beginning the two overlap; that is all
#   right.
# - `sinks=0` is lesson 14's sliding window.
# - `window < 1` or `sinks < 0` is a `ValueError`.
# - A new array each call.


# %% answer="sink_window_mask"
def sink_window_mask(n, window, sinks):
    """Which positions each one may attend to: the last ones, itself included, and the first of the text.

    Args:
        n: length of the text, at least 1.
        window: positions that end at each one, at least 1.
        sinks: positions at the beginning, at least 0.

    Returns:
        (n, n) NumPy bool, a new array: row = query, column = key, True = may attend.

    Raises:
        ValueError: window is less than 1, or sinks less than 0.
    """
    ### BEGIN SOLUTION
    if window < 1 or sinks < 0:
        raise ValueError(f"window = {window}, sinks = {sinks}: at least 1 and at least 0")
    key = np.arange(n)
    query = key[:, None]
    return (key <= query) & ((key > query - window) | (key < sinks))
    ### END SOLUTION


# %% check="sink_window_mask" points=3 card=["position `t` sees the `window` positions that end at `t`, **and** the first `sinks` positions of the text, as far as they lie at or before `t`", "`sinks=0` is lesson 14's sliding window", "`(n, n)`, NumPy bool, row = query, column = key, `True` = may attend", "`window < 1` or `sinks < 0` is a `ValueError`"]
# Six words, a window of two and one sink, as a table; then other sizes.
def table(mask):
    """Each row as a text: x = may attend."""
    return ["".join(".x"[int(value)] for value in row) for row in np.asarray(mask)]


with check("a window of two, one sink", points=1):
    message = "n = 6, window = 2, sinks = 1: each word sees itself, the one before it, and the first one. Row = query."
    found = table(sink_window_mask(6, 2, 1))
    assert_equal(found, ["x.....", "xx....", "xxx...", "x.xx..", "x..xx.", "x...xx"], message, name="the mask")
with check("two sinks; none", points=1):
    message = "n = 6, window = 1, sinks = 2: each word sees itself and the first two, but no later one."
    found = table(sink_window_mask(6, 1, 2))
    assert_equal(found, ["x.....", "xx....", "xxx...", "xx.x..", "xx..x.", "xx...x"], message, name="the mask")
    message = "n = 5, window = 3, sinks = 0: lesson 14's window."
    found = table(sink_window_mask(5, 3, 0))
    assert_equal(found, ["x....", "xx...", "xxx..", ".xxx.", "..xxx"], message, name="the mask")
with check("a NumPy array of bool", points=0.5, side=True):
    found = sink_window_mask(6, 2, 1)
    message = "The mask is a NumPy array of bool."
    assert_equal([type(found).__name__, str(getattr(found, "dtype", None))], ["ndarray", "bool"], message, name="type and dtype")
with check("a window of 0, sinks of -1", points=0.5, side=True):
    for window, sinks in ((0, 1), (2, -1)):
        with assert_raises(ValueError, f"window = {window}, sinks = {sinks}: this should be a ValueError."):
            sink_window_mask(6, window, sinks)
checks_passed("sink_window_mask")


# %% check="sink_window_mask_sizes" points=3 card=["position `t` sees the `window` positions that end at `t`, **and** the first `sinks` positions of the text, as far as they lie at or before `t`", "Near the beginning the two overlap; that is all right", "`sinks=0` is lesson 14's sliding window"]
# Hidden checks of sink_window_mask: other lengths, windows and sinks, also longer than the text.
### BEGIN HIDDEN TESTS
def by_rows(n, window, sinks):
    return np.array([[k <= q and (q - k < window or k < sinks) for k in range(n)] for q in range(n)])


def compare(*cases):
    for n, window, sinks in cases:
        message = f"n = {n}, window = {window}, sinks = {sinks}: the last {window} up to each position, and the first {sinks} up to it."
        assert_equal(sink_window_mask(n, window, sinks), by_rows(n, window, sinks), message, name="the mask")


rng = check_rng()
with check("windows and sinks shorter than the text", points=1.5):
    for _ in range(8):
        n = int(rng.integers(8, 24))
        compare((n, int(rng.integers(1, n // 2)), int(rng.integers(1, n // 2))))
with check("no sinks", points=0.5):
    compare((9, 1, 0), (9, 4, 0), (17, 16, 0), (1, 1, 0))
with check("longer than the text, or as long", points=0.5):
    compare((5, 5, 1), (5, 9, 2), (5, 1, 5), (5, 2, 8), (1, 3, 1), (1, 1, 4))
with check("window and sinks that meet", points=0.5):
    compare((8, 3, 3), (8, 4, 4), (8, 3, 5), (8, 6, 2), (8, 7, 1), (8, 1, 7))
checks_passed("sink_window_mask")
### END HIDDEN TESTS


# %% check="sink_window_mask_errors" points=1 card=["`window < 1` or `sinks < 0` is a `ValueError`", "A new array each call"]
# Hidden checks of sink_window_mask: errors for short texts, too; a new array each call.
### SIDE CONDITION: counts once another check of sink_window_mask passes.
### BEGIN HIDDEN TESTS
@probe
def after_writing(n, window, sinks):
    """The next mask, when everything in an earlier one has been turned around."""
    mask = sink_window_mask(n, window, sinks)
    first = mask.copy()
    mask[...] = ~mask
    return first, sink_window_mask(n, window, sinks)


def refused(*cases):
    for n, window, sinks in cases:
        with assert_raises(ValueError, f"n = {n}, window = {window}, sinks = {sinks}: this should be a ValueError."):
            sink_window_mask(n, window, sinks)


with check("a window of 0", points=0.25):
    refused((1, 0, 0), (7, 0, 7), (4, 0, 1))
with check("a window below 0", points=0.25):
    refused((7, -3, 2), (1, -1, 0))
with check("sinks below 0", points=0.25):
    refused((1, 1, -1), (7, 9, -2))
with check("a new array each call", points=0.25):
    for case in ((6, 2, 1), (6, 3, 2), (6, 4, 0)):
        first, again = after_writing(*case)
        message = f"n, window, sinks = {case}: an earlier mask was written into; the next one should be as that was before."
        assert_equal(again, first, message, name="the next mask", against="of the call before")
checks_passed("sink_window_mask")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# With `key = np.arange(n)` and `query = key[:, None]` each condition is one comparison. Of the window
# *or* the sinks, and in any case causal: mind the parentheses, `&` binds more tightly than `|`.
#
# </details>

# %% [markdown]
# **Predict, then run.** A window of 24 of 96 positions, without a sink, with one, with four. What does
# *one* more key change, in nats?

# %% tags=["demonstration"]
figure, panels = plt.subplots(1, 3, figsize=(8.1, 2.9), layout="constrained", sharey=True)
for axes, (window, sinks) in zip(panels, ((12, 0), (4, 0), (4, 1))):
    axes.imshow(sink_window_mask(12, window, sinks), cmap="Blues", vmin=0, vmax=1.4)
    axes.set(title=f"window {window}, sinks {sinks}", xlabel="key", xticks=(0, 4, 8), yticks=(0, 4, 8))
panels[0].set_ylabel("query")
panels[2].annotate("one key\nmore", (0.5, 8), (2.0, 11), arrowprops={"arrowstyle": "->"})
show(
    figure,
    "Your masks for twelve positions; blue: may attend. With one sink the late positions keep the first key, and nothing else.",
    "Three square masks: a full lower triangle; a band of four along the diagonal; the same band and the first column.",
)

# %% tags=["demonstration", "guess"]
guess_one_sink = 3.0  # how much lower is the loss with one sink

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
WINDOW = 24
for sinks in (0, 1, 4):
    evicted[f"window {WINDOW}, sinks {sinks}"] = second_half(sink_window_mask(LONG, WINDOW, sinks))
evicted[f"window {WINDOW + 1}, sinks 0"] = second_half(sink_window_mask(LONG, WINDOW + 1, 0))  # as many keys as with one sink
for name, found in list(evicted.items())[4:]:
    print(f"{name:22s}{found.mean():6.2f}    each story:", *(f"{loss:.2f}" for loss in found))
if published:
    gain = evicted["window 24, sinks 0"] - evicted["window 24, sinks 1"]
    assert gain.min() > 0.4 and (evicted["window 25, sinks 0"] - evicted["window 24, sinks 1"]).min() > 0.4 and gain.mean() > 2
    assert (evicted["window 24, sinks 1"] - evicted["all keys"]).mean() < 0.5
    assert abs(evicted["window 24, sinks 4"].mean() - evicted["window 24, sinks 1"].mean()) < 0.15
    reply("guess_one_sink", guess_one_sink, round(gain.mean().item(), 1), "One key of 25.", within=1)

# %% tags=["demonstration", "nbval-ignore-output"]
figure, axes = plt.subplots(figsize=(8.2, 3.3), layout="constrained")
harmless = {"all keys", "key 17, late", "key 0, early", "window 24, sinks 1", "window 24, sinks 4"}
for row, (name, found) in enumerate(evicted.items()):
    axes.barh(row, found.mean(), color="#2166ac" if name in harmless else "#b2182b")
    axes.plot(found, [row] * 3, "k.", markersize=5)
    axes.text(12.3, row, f"mean {found.mean():.2f}", va="center", ha="right")
axes.set_yticks(range(len(evicted)), evicted)
axes.invert_yaxis()
axes.set(xlabel="loss on the second half, nats a token", xlim=(0, 12.5))
show(
    figure,
    "Figure 3. Three stories (dots) and their mean. Whatever takes the first token away late costs more than a nat (red). With it, a quarter of the keys is enough.",
    "Bars: " + "; ".join(f"{name} {found.mean():.2f}" for name, found in evicted.items()) + ".",
)

# %% [markdown]
# Without the sink the window costs more than three nats; with it, a quarter of one. The control has as many keys, 25
# recent ones, and is no better: it is *which* key, not how many. And four sinks, as the paper recommends,
# are here hardly better than one.
#
# ### Short answer 3: `answer_sink`
#
# A friend builds a chat on this model with a cache of the last 1,000 tokens. For 1,000 tokens all is
# well, then it writes rubbish. He says: "It has forgotten the system message at the beginning." Which
# experiment tells the two explanations apart?
#
# - a) A longer window: with 2,000 tokens it breaks later.
# - b) Put a full stop in front of the system message, and keep that one token for ever, but not the
#   message.
# - c) Repeat the system message every 500 tokens.
# - d) Ask the model whether it remembers the message.

# %% answer="answer_sink"
### BEGIN SOLUTION
answer_sink = "b"
### END SOLUTION

# %% check="answer_sink" points=1
check_answer("answer_sink", answer_sink)

# %% [markdown]
# ### Tired or comfortable?
#
# Lesson 12 had pairs of sentences in which the last word decides who "it" is. Its model reads in both directions.
# This one reads leftwards only. **Predict, then run:** by how much does the row "it" of its maps differ between the
# two sentences? And where else could one look for the answer?


# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
pairs_of_it = """
The cat sat on the mat | cat mat | tired comfortable
The bird built a nest in the tree | bird tree | hungry tall
The horse ran over the bridge | horse bridge | frightened safe
The girl drank the milk | girl milk | thirsty cold
The boat stayed in the harbour | boat harbour | broken calm
The mouse hid in the box | mouse box | afraid dark
""".strip().splitlines()
turned = {"because it was": [0, 0], "and nobody was": [0, 0]}  # heads that turn to the fitting noun, and away
row_differs, to_nouns = [], []  # to_nouns: (2, 2) of each pair and wording: sentence, noun; summed over all 270 heads
for line in pairs_of_it:
    start, nouns, ends = line.split(" | ")
    nouns = [f" {noun}" for noun in nouns.split()]
    for words, counts in turned.items():
        twin_rows, looks = [], []
        for end in ends.split():
            text = encode(f"{start} {words} {end}.")
            pieces, found = [decode([token]) for token in text], []
            streams(token_vectors[torch.tensor(text)][None], maps=found)
            it = pieces.index(" it") if " it" in pieces else 1
            twin_rows.append(torch.cat(found)[:, :, it])  # (layers, heads, keys)
            places = [pieces.index(noun) if noun in pieces else 1 for noun in nouns]
            looks.append(torch.cat(found)[:, :, len(text) - 2, places])  # from the last word to both nouns
        row_differs.append(max((x[..., : it + 1] - twin_rows[0][..., : it + 1]).abs().max().item() for x in twin_rows))
        first = [look[..., 0] > look[..., 1] for look in looks]  # the heads that prefer the first noun
        counts[0] += int((first[0] & ~first[1]).sum())
        counts[1] += int((~first[0] & first[1]).sum())
        to_nouns.append(torch.stack([look.sum((0, 1)) for look in looks]))
print(f"row 'it', largest difference in {num_layers * num_heads} heads: {max(row_differs):.0e}")
print("from the last word, all heads together (cat and mat):")
for end, sums in zip(("tired", "comfortable"), to_nouns[0].tolist()):
    print(f"  {end:12s}", " ".join(f"{weight:5.1f}" for weight in sums))
for words, (right_turns, wrong_turns) in turned.items():
    print(f"six pairs, '{words} ...': heads that turn to the fitting noun {right_turns}, away from it {wrong_turns}")
(with_it, away), (without_it, away_without) = turned.values()
assert max(row_differs) < 1e-6
assert not published or (with_it > 1.5 * away > 0 and without_it > 1.2 * away_without > 0)

# %% [markdown]
# Not at all: when it stands at "it", it has not read the last word. Who "it" was can be settled from the last word
# on, and there more heads turn to the fitting noun than away from it: 268, and 110 away. But the control has no "it",
# "and nobody was tired", and there too more turn to it, 196, and 128 away. So a good
# part of the count needs no pronoun: "tired" and "cat" may go together anyway.
#
# All 270 heads on that sentence, to look around in. You begin at `L16H0`, which section 3 has ablated.

# %% tags=["demonstration", "nbval-ignore-output"]
from lesson_kit.attention_view import attention_view

text, found = encode("The cat sat on the mat because it was comfortable."), []
streams(token_vectors[torch.tensor(text)][None], maps=found)
attention_view(
    [decode([token]).strip() or "␣" for token in text],
    torch.cat(found),
    first=(16, 0),
    caption="All heads on one sentence. The strong first columns are the sinks of section 4. What you see in one "
    "head is where to look next, and no finding.",
    alt="L16H0: a lower triangular map; most tokens look mostly at the token before them.",
)
before = torch.cat(found)[16, 0].argmax(-1) == torch.arange(len(text)) - 1
print("tokens that look mostly at the one before:", int(before[1:].sum()), "of", len(text) - 1)
assert not published or before[1:].float().mean() > 0.6

# %% [markdown]
# ## 5. A fact, and the head that fetches it
#
# "The capital of France is" goes on with " Paris". Where does that come from? The word stands nowhere in
# the text, so no head can copy it. Twenty-eight countries whose name and capital are one token each:

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
countries = """France Paris, Germany Berlin, Italy Rome, Spain Madrid, Japan Tokyo, China Beijing, Russia Moscow, Egypt Cairo, Greece Athens,
Austria Vienna, Portugal Lisbon, Poland Warsaw, Sweden Stockholm, Norway Oslo, Ireland Dublin, England London, Canada Ottawa, Cuba Havana,
Peru Lima, Iran Tehran, Iraq Baghdad, Kenya Nairobi, Belgium Brussels, Denmark Copenhagen, Hungary Budapest, Finland Helsinki, Chile Santiago,
Syria Damascus"""
countries = [pair.split() for pair in countries.split(",")]
prompts, prompts_keep = padded([encode(f"The capital of {country} is") for country, _ in countries])
capitals = torch.tensor([encode(f" {capital}")[0] for _, capital in countries])
rows, last = torch.arange(len(countries)), prompts_keep.sum(1) - 1
fact_maps, fact_heads = [], []


def keep_heads(layer, said):
    fact_heads.append(said[rows, :, last])  # (28, num_heads, d_head), at the last token
    return said


with heads_through(keep_heads):
    fact_streams = streams(token_vectors[prompts], maps=fact_maps)
at_last = torch.stack([stream[rows, last] for stream in fact_streams])  # (31, 28, d_model)


def right_capitals(x):
    """How many capitals are the likeliest next token; x (28, n, d_model): the last stream."""
    return int((read_out(x[rows, last]).argmax(-1) == capitals).sum())


known = right_capitals(fact_streams[-1])
print(f"{known} of {len(countries)} capitals right")
likeliest = read_out(at_last[-1]).argmax(-1)
print("wrong:", *(f"{country} {decode([int(token)])!r}" for (country, _), token, capital in zip(countries, likeliest, capitals) if token != capital))
assert not published or 17 <= known <= 24

# %% [markdown]
# First question: **when** does it know? The stream of the last token goes through thirty layers.
# nostalgebraist (2020) had the idea to read each of them as if it were the last.
#

# %% [markdown]
# ### Exercise 4: `logit_lens`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 10 minutes on it.
#
# - `logit_lens(streams, norm, output)`: torch `streams (num_layers, ..., d_model)`, the stream behind
#   each layer. Returns `(num_layers, ..., vocab)`: what each of them would predict if it were the last,
#   that is `output` of `norm` of it.
# - `norm` is any module from `(..., d_model)` to `(..., d_model)`, `output` an `nn.Linear`, with or
#   without a bias.
# - Logits, not probabilities.
# - Checked when graded: any number of axes in place of `...`, none as well; `streams` unchanged.


# %% answer="logit_lens"
def logit_lens(streams, norm, output):
    """What each layer's stream would predict.

    Args:
        streams: (num_layers, ..., d_model) torch.
        norm: the final norm.
        output: the read-out, nn.Linear(d_model, vocab).

    Returns:
        (num_layers, ..., vocab) logits.
    """
    ### BEGIN SOLUTION
    return output(norm(streams))
    ### END SOLUTION


# %% check="logit_lens" points=2 card=["what each of them would predict if it were the last, that is `output` of `norm` of it", "`output` an `nn.Linear`, with or without a bias", "Logits, not probabilities"]
# Five layers, seven positions, eight features, a vocabulary of eleven.
@probe
def through(streams, gamma, weight, bias):
    norm = RMSNorm(len(gamma)).to(gamma.dtype)
    output = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None).to(weight.dtype)
    with torch.no_grad():
        norm.gamma.copy_(gamma)
        output.weight.copy_(weight)
        if bias is not None:
            output.bias.copy_(bias)
        return logit_lens(streams, norm, output)


rng = check_rng()
gamma, weight, bias = (torch.tensor(rng.normal(size=shape)) for shape in (8, (11, 8), 11))
given = torch.tensor(rng.normal(size=(5, 7, 8))) * torch.arange(1.0, 6.0)[:, None, None].double()
with check("each layer at each position", points=1.5):
    expected = F.linear(F.rms_norm(given, (8,), gamma, 1e-6), weight)
    message = "streams (5, 7, 8), a vocabulary of 11: each stream through the norm, and then through the output, (5, 7, 11)."
    assert_close(through(given, gamma, weight, None), expected, message)
with check("an output with a bias", points=0.5):
    expected = F.linear(F.rms_norm(given, (8,), gamma, 1e-6), weight, bias)
    message = "An output with a bias: it belongs to each layer's logits."
    assert_close(through(given, gamma, weight, bias), expected, message)
checks_passed("logit_lens")


# %% check="logit_lens_axes" points=2 card=["`norm` is any module from `(..., d_model)` to `(..., d_model)`", "any number of axes in place of `...`, none as well; `streams` unchanged"]
# Hidden checks of logit_lens: no other axis, one to three of them; another norm; streams unchanged.
### BEGIN HIDDEN TESTS
@probe
def through(streams, kind, gamma, weight, eps):
    class Layer(nn.Module):
        """Lesson 8's norm."""

        def forward(self, x):
            return F.layer_norm(x, (len(gamma),), gamma, gamma.flip(0), 0.5)

    norm = Layer() if kind == "layer norm" else RMSNorm(len(gamma), eps).to(gamma.dtype)
    output = nn.Linear(weight.shape[1], weight.shape[0], bias=False).to(weight.dtype)
    with torch.no_grad():
        output.weight.copy_(weight)
        if kind != "layer norm":
            norm.gamma.copy_(gamma)
        return logit_lens(streams, norm, output), streams


rng = check_rng()
gamma, weight = torch.tensor(rng.normal(size=6)), torch.tensor(rng.normal(size=(9, 6)))


def compare(shape, kind, eps=0.5):
    streams = 3 * torch.tensor(rng.normal(size=shape)) + 1
    normed = (F.layer_norm(streams, (6,), gamma, gamma.flip(0), 0.5) if kind == "layer norm"
              else F.rms_norm(streams, (6,), gamma, eps))  # fmt: skip
    found, after = through(streams.clone(), kind, gamma, weight, eps)
    message = f"streams {shape}, a vocabulary of 9, {kind}: each stream through this norm and the output."
    assert_close(found, F.linear(normed, weight), message)
    assert_equal(after, streams, "streams should be as before after the call.", name="streams", against="before the call")


with check("a norm with another eps", points=0.75):
    compare((4, 5, 6), "RMS norm")
with check("a layer norm", points=0.75):
    compare((4, 5, 6), "layer norm")
with check("no other axis, two, three; one layer", points=0.5):
    for shape in ((4, 6), (1, 6), (1, 3, 6), (3, 2, 5, 6), (2, 3, 1, 4, 6)):
        compare(shape, "RMS norm", 1e-6)
checks_passed("logit_lens")
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 5: `token_rank`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 10 minutes on it.
#
# - `token_rank(logits, token)`: torch `logits (..., vocab)` and the id of a token, a Python int. Returns
#   `(...)`, an int64 tensor: **how many tokens have a larger logit**. The likeliest token has rank 0.
# - Equal logits do not count: of two that share the first place both have rank 0.
# - Checked when graded: any number of axes in place of `...`, none as well; `logits` unchanged.


# %% answer="token_rank"
def token_rank(logits, token):
    """How many tokens are likelier than one token.

    Args:
        logits: (..., vocab) torch.
        token: its id.

    Returns:
        (...) int64 tensor; 0 where none has a larger logit.
    """
    ### BEGIN SOLUTION
    return (logits > logits[..., token, None]).sum(-1)
    ### END SOLUTION


# %% check="token_rank" points=2 card=["**how many tokens have a larger logit**", "Equal logits do not count", "Returns `(...)`, an int64 tensor"]
# A vocabulary of six by hand; then 8 positions and 200 tokens.
logits = torch.tensor([[0.5, 2.0, -1.0, 3.0, 2.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.5]])
with check("by hand", points=0.75):
    message = "Token 0: larger are 2, 3 and 2 at the first position, and 1.5 at the second."
    found = token_rank(logits.clone(), 0)
    assert_equal(np.asarray(found).tolist(), [3, 1], message, name="the ranks of token 0")
with check("equal logits do not count", points=0.5):
    message = "Token 4: at the first position only 3 is larger; the other 2 is not. At the second only 1.5 is."
    assert_equal(np.asarray(token_rank(logits.clone(), 4)).tolist(), [1, 1], message, name="the ranks of token 4")
rng = check_rng()
with check("two hundred tokens", points=0.5):
    many = rng.normal(size=(8, 200))
    token = int(rng.integers(200))
    expected = [sorted(row, reverse=True).index(row[token]) for row in many.tolist()]
    message = f"8 positions, 200 tokens, token {token}: its place among the logits, from the largest, which is 0."
    assert_equal(np.asarray(token_rank(torch.tensor(many), token)).tolist(), expected, message, name="the ranks")
with check("an int64 tensor", points=0.25, side=True):
    found = token_rank(logits.clone(), 3)
    assert_equal(str(getattr(found, "dtype", type(found).__name__)), "torch.int64", "The ranks are an int64 tensor.", name="the dtype")
checks_passed("token_rank")


# %% check="token_rank_axes" points=2 card=["any number of axes in place of `...`, none as well", "**how many tokens have a larger logit**", "Equal logits do not count", "Returns `(...)`, an int64 tensor"]
# Hidden checks of token_rank: no other axis, one to three; many equal logits; the first and the last token.
### BEGIN HIDDEN TESTS
rng = check_rng()


def compare(shape, token, whole=False):
    logits = rng.integers(-3, 4, size=shape) + 0.0 if whole else rng.normal(size=shape)
    expected = torch.tensor((logits > logits[..., token : token + 1]).sum(-1))
    message = f"logits {shape}{', small whole numbers' if whole else ''}, token {token}: an int64 tensor {shape[:-1]}."
    assert_equal(token_rank(torch.tensor(logits), token), expected, message, name="the ranks")


with check("several positions", points=0.75):
    for token in (0, 5, 89):
        compare((40, 90), token)
with check("logits far apart", points=0.25):
    message = "Logits 0, -200, -300 and 200: all differ, also where their probabilities come to 0."
    found = token_rank(torch.tensor([0.0, -200.0, -300.0, 200.0]), 2)
    assert_equal(found, torch.tensor(3), message, name="the rank of token 2")
with check("many equal logits", points=0.25):
    for token in (0, 3, 11):
        compare((40, 12), token, whole=True)
with check("no other axis, two, three", points=0.75):
    for shape in ((50,), (1, 50), (3, 4, 50), (2, 1, 3, 50)):
        compare(shape, int(rng.integers(50)))
checks_passed("token_rank")
### END HIDDEN TESTS


# %% check="token_rank_inputs" points=0.5 card="`logits` unchanged"
# Hidden checks of token_rank: logits unchanged.
### SIDE CONDITION: counts once another check of token_rank passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(logits, token):
    token_rank(logits, token)
    return logits


logits = torch.tensor(check_rng().normal(size=(3, 5, 30)))
message = "logits should be as before after the call."
assert_equal(afterwards(logits.clone(), 4), logits, message, name="logits", against="before the call")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Compare all logits with that of the token, kept as an axis of length 1, and count along the last axis.
# Sorting is not needed, and would have to break ties.
#
# </details>

# %% [markdown]
# **Predict, then run.** Of 49,152 tokens, which rank has the capital behind layer 15, in the middle? (The
# median of the twenty-eight countries.) And behind which layer does it come below 5,000?

# %% tags=["demonstration", "guess"]
guess_rank_in_the_middle = 20_000  # write a rank
guess_layer = 23  # write a layer, 0 to 29

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
shifted = capitals.roll(-1)  # the control: another country's capital
ranks = []
for row, pair in enumerate(zip(capitals.tolist(), shifted.tolist())):
    lens = logit_lens(at_last[:, row], last_norm, unembedding)  # (31, vocab), a country at a time: logits are large
    ranks.append(torch.stack([token_rank(lens, token) for token in pair]))
median, median_of_others = torch.stack(ranks).float().median(0).values  # (31,) each
for passed in (1, 10, 16, 22, 23, 24, 25, 27, 29, 30):
    print(f"behind layer {passed - 1:2d}: median rank {median[passed]:8,.0f}    of another country's capital {median_of_others[passed]:8,.0f}")
below = int((median[1:] < 5000).int().argmax())
if published:
    assert median[1:24].min() > 5000 and median[24] < 8000 and median[25] < 2500 and median[-1] <= 1
    assert median_of_others[-1] > 100
    reply("guess_rank_in_the_middle", guess_rank_in_the_middle, int(median[16]), "Chance would be 24,576.", within=5000)
    reply("guess_layer", guess_layer, below, within=0)

# %% [markdown]
# For twenty-three layers there is no trace of the capital: its rank is that of another country's. Then, behind
# layer 23, it leaves the others, and behind the last layer it is the first. (Read through a lens that was made for the last layer: it may have been there
# before in a form that this read-out does not see. Belrose and others, 2023, train a lens for each layer
# for that reason.)
#
# Second question: **who** writes? The stream at the last token is a sum of what 270 heads and 30
# feed-forwards added to it. We ask each head how much it added **in favour of this capital and against
# the other twenty-seven**: along the difference of their token vectors.
#

# %% [markdown]
# ### Exercise 6: `head_attribution`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 20 minutes on it.
#
# - `head_attribution(heads, W_o, direction)`: torch `heads (num_layers, num_heads, d_head)`, what each
#   head hands to the output projection of its layer at one position; `W_o (num_layers, d_model, num_heads
#   * d_head)`, the weights of these projections in `nn.Linear`'s layout; `direction (d_model,)`.
# - Head `h` meets the **columns** `h * d_head` to `(h + 1) * d_head - 1` of its layer's `W_o`. Returns
#   `(num_layers, num_heads)`: the product of `direction` with what that head adds to the stream. The
#   direction is used as it is, not normed.
# - The sum over the heads of a layer is the product of `direction` with what the whole projection adds.
# - Checked when graded: other sizes, precision; arguments unchanged, and tensors in any order in memory.


# %% answer="head_attribution"
def head_attribution(heads, W_o, direction):
    """What each head adds to the stream along one direction.

    Args:
        heads: (num_layers, num_heads, d_head) torch.
        W_o: (num_layers, d_model, num_heads * d_head) torch.
        direction: (d_model,) torch.

    Returns:
        (num_layers, num_heads).
    """
    ### BEGIN SOLUTION
    num_layers, num_heads, d_head = heads.shape
    along = direction @ W_o  # (num_layers, num_heads * d_head): the direction, as each head meets it
    return (heads * along.reshape(num_layers, num_heads, d_head)).sum(-1)
    ### END SOLUTION


# %% check="head_attribution" points=4 card=["Head `h` meets the **columns** `h * d_head` to `(h + 1) * d_head - 1` of its layer's `W_o`", "the product of `direction` with what that head adds to the stream. The direction is used as it is, not normed", "Returns `(num_layers, num_heads)`"]
# Two layers of three heads with two features each, a stream of four; then each head by itself.
heads = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 0.0], [0.0, -1.0]]])
W_o = torch.zeros(2, 4, 6)
W_o[0, 0], W_o[1, 0] = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), torch.tensor([7.0, 8.0, 9.0, 10.0, 11.0, 12.0])
W_o[:, 2] = 100.0
with check("by hand", points=1.5):
    message = (
        "direction 1 0 0 0 reads feature 0 of the stream, row 0 of each W_o: 1 2 3 4 5 6 and 7 to 12. Head 0 of layer 0 says "
        "1 0 and adds 1; head 1 says 0 1 and meets 3 4, which is 4; head 2 meets 5 6, which is 11. Layer 1: 14, 0, -12."
    )
    found = head_attribution(heads.clone(), W_o.clone(), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    assert_close(found, torch.tensor([[1.0, 4.0, 11.0], [14.0, 0.0, -12.0]]), message)
rng = check_rng()
heads, W_o, direction = (torch.tensor(rng.normal(size=shape)) for shape in ((5, 3, 4), (5, 7, 12), (7,)))
with check("each head by itself through its projection", points=1.5):
    expected = torch.zeros(5, 3).double()
    for layer in range(5):
        for head in range(3):
            alone = torch.zeros(12).double()
            alone[4 * head : 4 * head + 4] = heads[layer, head]
            expected[layer, head] = F.linear(alone, W_o[layer]) @ direction
    message = "5 layers, 3 heads of 4 features, a stream of 7: with all other heads 0, what the projection adds, times direction."
    assert_close(head_attribution(heads, W_o, direction), expected, message)
with check("a direction twice as long: twice as much", points=1):
    single = head_attribution(heads, W_o, direction)
    message = "5 layers of 3 heads: a tensor (5, 3)."
    assert_equal(list(getattr(single, "shape", ())), [5, 3], message, name="the shape")
    message = "A direction twice as long, and turned around: -2 times as much."
    assert_equal(bool(single.abs().max() > 1e-3), True, "Random heads add something.", name="'numbers other than 0'")
    assert_close(head_attribution(heads, W_o, -2 * direction), -2 * single, message, against="-2 times that of direction")
checks_passed("head_attribution")


# %% check="head_attribution_sizes" points=3 card=["other sizes, precision", "Head `h` meets the **columns** `h * d_head` to `(h + 1) * d_head - 1` of its layer's `W_o`", "The sum over the heads of a layer is the product of `direction` with what the whole projection adds"]
# Hidden checks of head_attribution: one layer, one head, square sizes; heads sum to the projection; precision.
### BEGIN HIDDEN TESTS
rng = check_rng()


def sizes(num_layers, num_heads, d_head, d_model):
    shapes = (num_layers, num_heads, d_head), (num_layers, d_model, num_heads * d_head), (d_model,)
    return [torch.tensor(rng.normal(size=shape)) for shape in shapes]


def compare(*size, **more):
    heads, W_o, direction = sizes(*size)
    columns = W_o.unflatten(-1, size[1:3])  # (num_layers, d_model, num_heads, d_head)
    expected = torch.einsum("lhe,lmhe,m->lh", heads, columns, direction)
    message = "num_layers, num_heads, d_head, d_model = {}, {}, {}, {}: direction times what each head adds.".format(*size)
    assert_close(head_attribution(heads, W_o, direction), expected, message, **more)


with check("other sizes", points=1):
    compare(3, 4, 2, 5)
    compare(6, 2, 5, 11)
with check("as many layers as heads, as many features as heads", points=0.5):
    compare(4, 4, 4, 16)
    compare(3, 3, 3, 9)
with check("one layer, one head, one feature", points=0.5):
    for size in ((1, 3, 4, 7), (4, 1, 3, 5), (3, 4, 1, 6), (1, 1, 1, 1)):
        compare(*size)
with check("in float64, all digits", points=0.5):
    compare(3, 4, 5, 40, precise=True)
with check("the heads of a layer sum to its projection", points=0.5):
    heads, W_o, direction = sizes(4, 3, 5, 6)
    expected = torch.stack([F.linear(said.flatten(), weight) @ direction for said, weight in zip(heads, W_o, strict=True)])
    message = "4 layers: the sum over the heads should be direction times what the whole projection adds."
    assert_close(head_attribution(heads, W_o, direction).sum(-1), expected, message, name="the sums")
checks_passed("head_attribution")
### END HIDDEN TESTS


# %% check="head_attribution_inputs" points=1 card="arguments unchanged"
# Hidden checks of head_attribution: arguments unchanged, arguments that are views.
### SIDE CONDITION: counts once another check of head_attribution passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(heads, W_o, direction):
    head_attribution(heads, W_o, direction)
    return {"heads": heads, "W_o": W_o, "direction": direction}


@probe
def of_views(heads, W_o, direction):
    """The same numbers, in other orders in memory."""
    turned = heads.transpose(0, 2).contiguous().transpose(0, 2)
    return head_attribution(turned, W_o.mT.contiguous().mT, direction.repeat_interleave(2)[::2])


rng = check_rng()
given = {"heads": (3, 4, 2), "W_o": (3, 5, 8), "direction": (5,)}
given = {name: torch.tensor(rng.normal(size=shape)) for name, shape in given.items()}
after = afterwards(*(x.clone() for x in given.values()))
for name, x in given.items():
    assert_equal(after[name], x, f"{name} should be as before after the call.", name=name, against="before the call")
plain = head_attribution(*given.values())
assert_equal(bool(plain.std() > 1e-3), True, "Random heads add numbers that differ.", name="'numbers that differ'")
message = "The same numbers in another order in memory: the result should be the same."
assert_close(of_views(*given.values()), plain, message, against="of plain tensors")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `direction @ W_o` is `(num_layers, num_heads * d_head)`: for each layer, what the direction looks like
# to the heads. Cut its last axis into heads, multiply with what the heads say, and add up over `d_head`.
#
# </details>

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
projections = torch.stack([block.W_o.weight for block in blocks])
said_at_last = torch.stack(fact_heads, dim=1)  # (28, num_layers, num_heads, d_head)
sizes = at_last[-1].square().mean(-1, keepdim=True).add(eps).sqrt()  # the last norm's divisors
directions = last_norm.gamma * (token_vectors[capitals] - token_vectors[capitals].mean(0)) / sizes
added = torch.stack([head_attribution(said, projections, along) for said, along in zip(said_at_last, directions)])
order = added.mean(0).flatten().argsort(descending=True).tolist()
fact_best = [divmod(number, num_heads) for number in order[:6]]
top = fact_best[0]
largest_of = int((added.flatten(1).argmax(1) == order[0]).sum())
for layer, head in fact_best[:4]:
    looks = fact_maps[layer][rows, head, last, last - 1].mean()
    print(f"L{layer}H{head}: adds {added[:, layer, head].mean():5.2f} on average, looks at the country with {looks:.2f}")
print(f"median size of all heads: {added.mean(0).abs().median():.3f};  L{top[0]}H{top[1]} is the largest for {largest_of} of {len(countries)} countries")
assert not published or (top == (23, 4) and largest_of >= 22 and fact_maps[23][rows, 4, last, last - 1].mean() > 0.8)

# %% tags=["demonstration", "nbval-ignore-output"]
figure, panels = plt.subplots(1, 2, figsize=(8.2, 3.3), layout="constrained", width_ratios=(1, 1.3))
for label, found, height, colour in (("its capital", median, 20, "#b2182b"), ("another country's", median_of_others, 2000, "#2166ac")):
    panels[0].semilogy(range(num_layers + 1), found + 1, color=colour)
    panels[0].text(22.5, height, label, ha="right", color=colour)
panels[0].set(xlabel="layers passed", ylabel="median rank + 1")
limit = float(added.mean(0).abs().max())
picture = panels[1].imshow(added.mean(0).T, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit)
panels[1].set(xlabel="layer", ylabel="head", xticks=range(0, num_layers, 5), yticks=range(num_heads))
panels[1].text(top[0] - 0.8, top[1], f"L{top[0]}H{top[1]}: {added.mean(0)[top]:.1f}", ha="right", va="center")
figure.colorbar(picture, label="added for the capital, logits")
show(
    figure,
    "Figure 4. Left: the capital appears behind layer 23, from rank twenty thousand. Right: of 270 heads one adds most; what the feed-forwards add is not shown.",
    f"Left: both curves near rank 20,000 for 23 layers; then that of the own capital falls to 1, the other to {median_of_others[-1]:.0f}. Right: a map of "
    "thirty layers by nine heads, nearly empty; " + "; ".join(f"L{layer}H{head} adds {added[:, layer, head].mean():.2f}" for layer, head in fact_best[:4]) + ".",
)

# %% [markdown]
# `L23H4` looks back at the country with nearly all its weight, and what it takes from there
# points to the capital. (`L29H1` writes for it, and `L29H0` nearly as much **against** it: a
# sum of two large numbers says little of either.) **Is it needed, and does it carry the fact?** Three
# interventions: zeros; *resample*, which gives each prompt what the head said for the **next country of
# the list**; and the control, both for another head of layer 23, each of the eight in turn.
#
# **Predict, then run.** With resample: how many of the 28 still get their own capital, and how many get
# the *next* country's?

# %% tags=["demonstration", "guess"]
guess_own, guess_next = 0, 15  # write two numbers

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
said_now = {how: read_out(silenced([top], how, fact_streams)[rows, last]).argmax(-1) for how in ("zero", "resample")}
own = {how: int((said == capitals).sum()) for how, said in said_now.items()}
next_one = {how: int((said == shifted).sum()) for how, said in said_now.items()}
others = [(top[0], head) for head in range(num_heads) if head != top[1]]
control = [right_capitals(silenced([head], "zero", fact_streams)) for head in others]
swapped = [int((read_out(silenced([head], "resample", fact_streams)[rows, last]).argmax(-1) == shifted).sum()) for head in others]
without_it = losses(silenced([top], "zero", whole), ids, keep)
print(f"all heads: {known} of {len(countries)} right")
for how, count in own.items():
    print(f"L{top[0]}H{top[1]}, {how:9s} own capital {count:2d}, the next country's {next_one[how]:2d}")
print("zeros for each of the eight others of its layer, own capital:", *control)
print("resample for each of them, the next country's:", *swapped)
print(f"the sixty sentences without it: {without_it.mean():.2f} (before: {normal.mean():.2f})")
if published:
    assert own["zero"] <= known - 7 and own["resample"] <= 2 and next_one["resample"] >= 9 and next_one["zero"] <= 1
    assert max(swapped) <= 1 and np.median(control) >= known - 3 and min(control) > own["zero"] and abs(without_it.mean() - normal.mean()) < 0.05
    reply("guess_own", guess_own, own["resample"], within=1)
    reply("guess_next", guess_next, next_one["resample"], "It says the capital of the country that another prompt named.", within=3)

# %% [markdown]
# The strongest evidence of this lesson: put another country's message into **one head of 270**, and most
# answers become that country's capital. So this head does not only help, it carries which country's
# capital is said. Without it nine of the 21 are still right: other ways exist, or the question
# alone makes a famous one likely. And the sentences do not notice.
#
# What we have not shown: that the fact is **stored** in the head. It may stand in the country's stream,
# written there by feed-forwards far below, and the head only fetches it (Geva and others, 2023, find this
# in larger models).
#
# ## 6. Positions far beyond training
#
# It was trained on texts of up to 8,192 tokens. What happens beyond, without a text that long? Your
# `LlamaBlock` takes `positions`: we say that the text stands elsewhere.
#
# **Predict, then run.** All positions plus ten million: what becomes of the logits? And 24 random tokens,
# three times, with their copy behind a **gap** of 1,000, 4,000 or 8,000 positions, in which nothing stands: how
# many are still copied?

# %% tags=["demonstration", "guess"]
guess_far = "the same"  # write "the same", "a little worse" or "rubbish"
guess_gap = 0.0  # share copied over a gap of 8,000

# %% tags=["demonstration", "nbval-ignore-output"]
# Numbers of the published model, which is not installed everywhere.
near = read_out(streams(token_vectors[long_ids[:1, :40]])[-1])
far = read_out(streams(token_vectors[long_ids[:1, :40]], start=10_000_000)[-1])
apart = (near - far).abs().max().item()
print(f"all positions + 10,000,000: logits (standard deviation {near.std():.1f}) change by less than 0.01: {apart < 0.01}")
over_a_gap = {0: copied(tested_whole[-1][:3])}
for gap in (1000, 4000, 8000):
    positions = torch.arange(2 * PERIOD) + gap * (torch.arange(2 * PERIOD) >= PERIOD)
    over_a_gap[gap] = copied(streams(token_vectors[tested[:3]], positions=positions)[-1])
for gap, share_copied in over_a_gap.items():
    print(f"a gap of {gap:5,d}: {share_copied:.2f} copied")
if published:
    assert apart < 0.01 and over_a_gap[1000] > 0.2 and over_a_gap[8000] < 0.1
    reply("guess_far", guess_far, "the same", "Only distances count.")
    reply("guess_gap", guess_gap, round(over_a_gap[8000], 2), within=0.05)

# %% [markdown]
# Ten million further on nothing changes: rotary positions know distances alone (lesson 11). But a
# **distance** of 8,000 undoes copying altogether, 4,000 costs a third, and 1,000 does no harm. Why the end comes before
# 8,192 we have not shown; perhaps such distances were rare in training. "Trained on 8,192" does not mean
# "looks back 8,192".
#
# ## 7. Twenty examples
#
# So far we have taken things away. Now we teach it something. All 134 million parameters need not move:
# Hu and others (2022) leave each matrix as it is, and learn a small change beside it, a product of two
# thin matrices:
#
# $$\operatorname{LoRA}(x) = W x + \text{scale} \cdot B A x, \qquad A: r \times d_{in}, \quad B: d_{out} \times r$$
#
# By hand, with $r = 1$: $A = (1, 2)$, $B = \binom{3}{0}$ and $x = (1, 1)$. $A x = 3$, so the change is
# $(9, 0)$. Any $x$ gets a change in the direction $(3, 0)$; rank 1 has no other.

# %% tags=["demonstration"]
figure, axes = plt.subplots(figsize=(7.0, 3.0), layout="constrained")
for left, low, width, height, colour in ((0, 0, 576, 576, "#c6dbef"), (760, 0, 4, 576, "#b35806"), (860, 572, 576, 4, "#b35806")):
    axes.add_patch(plt.Rectangle((left, low), width, height, color=colour))
axes.text(288, 288, "W stays as it is:\n576 · 576 = 331,776 numbers", ha="center", va="center")
axes.text(668, 288, "+", size=16, ha="center", va="center")
axes.text(800, 288, "B", color="#b35806", va="center")
axes.text(1148, 540, "A", color="#b35806", ha="center", va="top")
axes.text(1148, 288, "trained:\n2 · 4 · 576 = 4,608 numbers", color="#b35806", ha="center", va="center")
axes.set(xlim=(-20, 1460), ylim=(-20, 596), aspect="equal")
axes.axis("off")
show(
    figure,
    "A matrix of this model and its change of rank 4, drawn to scale. The product of the two lines is as large as the square.",
    "A square of 576 by 576, and beside it two lines in another colour: B, 576 high and 4 wide, and A, 4 high and 576 wide.",
)

# %% [markdown]
# ### Exercise 7: `LoRA`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 20-25 minutes on it.
#
# - `LoRA(layer, rank, scale=1.0)`: `layer`, an `nn.Linear`, is kept as `layer`, the same object, and **no
#   longer trained**. `scale` is kept as `scale`, and read anew at each call.
# - Two parameters of `layer.weight`'s dtype: `A (rank, in_features)`, random, and `B (out_features,
#   rank)`, **zeros** at the start. So at the start nothing has changed.
# - `forward(x)`, `x (..., in_features)`, is `layer(x) + scale * (x @ A.T) @ B.T`. Gradients reach `x`
#   through **both** terms.
# - `rank` below 1 is a `ValueError`. It may exceed either size.
# - Checked when graded: layers with and without a bias, any number of axes, float64; forty steps of Adam lower a
#   loss by 3 %.


# %% answer="LoRA"
class LoRA(nn.Module):
    """A linear layer that is kept as it is, and a small change beside it that is trained.

    Parts layer: nn.Linear, not trained; A (rank, in_features), random; B (out_features, rank), zeros; scale.

    Raises:
        ValueError: rank is less than 1.
    """

    def __init__(self, layer, rank, scale=1.0):
        ### BEGIN SOLUTION
        super().__init__()
        if rank < 1:
            raise ValueError(f"rank = {rank}: it should be at least 1")
        self.layer = layer.requires_grad_(False)
        self.scale = scale
        dtype = layer.weight.dtype
        self.A = nn.Parameter(torch.randn(rank, layer.in_features, dtype=dtype) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank, dtype=dtype))
        ### END SOLUTION

    def forward(self, x):
        """x (..., in_features) to (..., out_features)."""
        ### BEGIN SOLUTION
        return self.layer(x) + self.scale * (x @ self.A.T) @ self.B.T
        ### END SOLUTION


# %% check="LoRA" points=5 card=["is `layer(x) + scale * (x @ A.T) @ B.T`", "`scale` is kept as `scale`, and read anew at each call", "is kept as `layer`, the same object, and **no longer trained**", "`A (rank, in_features)`, random, and `B (out_features, rank)`, **zeros** at the start", "`rank` below 1 is a `ValueError`"]
# A layer of 7 features to 5, rank 3: at the start, and with numbers in A and B.
@probe
def built(weight, bias, rank, *scale):
    """What trains, with shapes; A's and B's spread; is layer the same object; scale."""
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": bias})
    lora = LoRA(layer, rank, *scale)
    trained = {name: list(p.shape) for name, p in lora.named_parameters() if p.requires_grad}
    return trained, float(lora.A.detach().std()), float(lora.B.detach().abs().max()), lora.layer is layer, float(lora.scale)


@probe
def output(weight, bias, A, B, x, scale, later=None):
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": bias})
    lora = LoRA(layer, len(A), scale)
    with torch.no_grad():
        lora.A.copy_(A)
        lora.B.copy_(B)
        if later is not None:
            lora.scale = later
        return lora(x)


rng = check_rng()
weight, bias, A, B, x = (torch.tensor(rng.normal(size=s)).float() for s in ((5, 7), 5, (3, 7), (5, 3), (4, 7)))
with check("layer(x) plus the change", points=2):
    message = "Rank 3, scale 1, A and B filled with numbers: layer(x) + (x @ A.T) @ B.T."
    assert_close(output(weight, bias, A, B, x, 1.0), x @ weight.T + bias + x @ A.T @ B.T, message, name="the output")
with check("a scale, and another one later", points=1):
    message = "scale = 0.5: layer(x) + 0.5 * (x @ A.T) @ B.T."
    assert_close(output(weight, bias, A, B, x, 0.5), x @ weight.T + bias + 0.5 * x @ A.T @ B.T, message, name="the output")
    message = "scale = 0: layer(x) alone."
    assert_close(output(weight, bias, A, B, x, 0.0), x @ weight.T + bias, message, name="the output")
    message = "scale is set to -2 after the building: the next call should use it."
    assert_close(output(weight, bias, A, B, x, 0.5, -2.0), x @ weight.T + bias - 2 * x @ A.T @ B.T, message, name="the output")
trained, spread, largest, same, scale = built(weight, bias, 3, 0.25)
with check("A and B are trained, and nothing else", points=1):
    message = "7 features to 5, rank 3: A (3, 7) and B (5, 3) are parameters that train; layer's weight and bias no longer do."
    assert_equal(trained, {"A": [3, 7], "B": [5, 3]}, message, name="what is trained")
with check("A random, B zeros, layer the same object", points=0.5):
    assert_equal(largest, 0.0, "B should be zeros at the start.", name="B's largest entry")
    assert_equal(spread > 1e-4, True, "A should be random: where both are zeros, neither gets a gradient.", name="'A's numbers differ'")
    assert_equal([same, scale], [True, 0.25], "layer and scale are kept under these names.", name="'the same layer', scale")
with check("a rank of 0", points=0.5, side=True):
    for rank in (0, -1):
        with assert_raises(ValueError, f"rank = {rank}: this should be a ValueError."):
            built(weight, bias, rank)
checks_passed("LoRA")


# %% check="LoRA_layers" points=3 card=["is `layer(x) + scale * (x @ A.T) @ B.T`", "So at the start nothing has changed", "It may exceed either size", "layers with and without a bias, any number of axes, float64", "Two parameters of `layer.weight`'s dtype"]
# Hidden checks of LoRA: other sizes, large ranks, layers without a bias, any number of axes, float64.
### BEGIN HIDDEN TESTS
@probe
def output(weight, bias, A, B, x, scale):
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None).to(weight.dtype)
    lora = LoRA(layer, len(A), scale)
    with torch.no_grad():
        layer.weight.copy_(weight)
        if bias is not None:
            layer.bias.copy_(bias)
        start = lora(x)
        lora.A.copy_(A)
        lora.B.copy_(B)
        return start, lora(x), [str(lora.A.dtype), str(lora.B.dtype)]


rng = check_rng()


def compare(out, into, rank, lead=(4,), biased=True, precise=False):
    """At the start, and with numbers in A and B."""
    weight, bias, A, B, x = (torch.tensor(rng.normal(size=s)) for s in ((out, into), out, (rank, into), (out, rank), (*lead, into)))
    start, changed, dtypes = output(weight, bias if biased else None, A, B, x, 0.7)
    plain = F.linear(x, weight, bias if biased else None)
    message = f"{into} features to {out}, rank {rank}, x {(*lead, into)}, float64, {'with' if biased else 'without'} a bias"
    assert_close(start, plain, f"{message}: at the start as layer alone.", name="the output at the start", precise=precise)
    message += ", scale 0.7: layer(x) + 0.7 * (x @ A.T) @ B.T."
    assert_close(changed, plain + 0.7 * x @ A.T @ B.T, message, name="the output", precise=precise)
    if precise:
        assert_equal(dtypes, ["torch.float64"] * 2, "A and B have the dtype of layer.weight.", name="the dtypes of A and B")


with check("other sizes", points=0.75):
    compare(6, 4, 2)
    compare(5, 5, 3)
with check("a rank above either size; of 1", points=0.75):
    compare(4, 3, 9)
    compare(3, 6, 1)
with check("without a bias", points=0.5):
    compare(6, 4, 2, biased=False)
with check("no other axis, two, three", points=0.5):
    for lead in ((), (2, 3), (2, 1, 4)):
        compare(6, 4, 2, lead)
with check("float64, all digits", points=0.5):
    compare(6, 4, 2, precise=True)
checks_passed("LoRA")
### END HIDDEN TESTS


# %% check="LoRA_gradients" points=3 card=["Gradients reach `x` through **both** terms", "and **no longer trained**", "and a small change beside it that is trained"]
# Hidden checks of LoRA: gradients of A, B and x, at the start and later; steps of an optimiser.
### BEGIN HIDDEN TESTS
@probe
def gradients(weight, A, B, x, scale):
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(weight)
    lora = LoRA(layer, len(A), scale)
    with torch.no_grad():
        lora.A.copy_(A)
        lora.B.copy_(B)
    x.requires_grad_()
    lora(x).square().sum().backward()
    return {"x": x.grad, "A": lora.A.grad, "B": lora.B.grad, "layer.weight": layer.weight.grad}


@probe
def after_training(seed, x, target, steps):
    """Loss before and after, and how far layer's weight and bias have moved."""
    torch.manual_seed(seed)
    layer = nn.Linear(x.shape[-1], target.shape[-1])
    before = layer.weight.detach().clone(), layer.bias.detach().clone()
    lora = LoRA(layer, 2)
    optimizer = torch.optim.Adam([p for p in lora.parameters() if p.requires_grad], lr=0.02)
    losses = []
    for _ in range(steps):
        loss = F.mse_loss(lora(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1], [now.detach() - then for now, then in zip((layer.weight, layer.bias), before, strict=True)]


rng = check_rng()
weight, A, B, x = (torch.tensor(rng.normal(size=s)) for s in ((5, 7), (3, 7), (5, 3), (4, 7)))


def compare(B, *names):
    grown = weight + 0.5 * B @ A
    error = 2 * x @ grown.T  # what comes back to the output
    expected = {"x": error @ grown, "A": 0.5 * B.T @ error.T @ x, "B": 0.5 * error.T @ x @ A.T}
    found = gradients(weight, A, B, x.clone(), 0.5)
    for name in names:
        message = f"7 features to 5, rank 3, scale 0.5, B {'zeros' if not B.any() else 'with numbers'}: the gradient of {name}."
        assert_close(found[name], expected[name], message, name=f"the gradient of {name}")
    assert_equal(found["layer.weight"] is None, True, "layer.weight gets no gradient.", name="'it has none'")


with check("gradients of A and B", points=1):
    compare(B, "A", "B")
with check("the gradient of x, through both terms", points=1):
    compare(B, "x")
with check("at the start: B moves first", points=0.5):
    compare(torch.zeros_like(B), "B", "A")
with check("steps of Adam: the loss falls, layer stays", points=0.5):
    x, target = (torch.tensor(rng.normal(size=s)).float() for s in ((12, 6), (12, 4)))
    first, later, moved = after_training(int(rng.integers(2**31)), x, target, 40)
    assert_equal(later < 0.97 * first, True, "40 steps of Adam on A and B: the loss should fall by 3 % at least.", name="'the loss falls'")
    for name, by in zip(("weight", "bias"), moved, strict=True):
        message = f"layer's {name} should be as before after the training."
        assert_close(by, torch.zeros(4, 6) if name == "weight" else torch.zeros(4), message, name=f"how far its {name} moved")
checks_passed("LoRA")
### END HIDDEN TESTS


# %% check="LoRA_ranks" points=1 card=["`rank` below 1 is a `ValueError`. It may exceed either size", "So at the start nothing has changed", "**Arguments are not changed.**"]
# Hidden checks of LoRA: ranks below 1; ranks above the sizes of the layer; x unchanged.
### SIDE CONDITION: counts once another check of LoRA passes.
### BEGIN HIDDEN TESTS
@probe
def at_the_start(weight, rank, x):
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.load_state_dict({"weight": weight})
    lora = LoRA(layer, rank)
    with torch.no_grad():
        return lora(x), x


rng = check_rng()
weight, x = (torch.tensor(rng.normal(size=s)).float() for s in ((5, 7), (4, 7)))
with check("ranks below 1", points=0.5):
    for rank in (0, -2):
        with assert_raises(ValueError, f"rank = {rank}: this should be a ValueError."):
            at_the_start(weight, rank, x.clone())
with check("ranks of 5, 7 and 12 for 7 features to 5; x unchanged", points=0.5):
    for rank in (5, 7, 12):
        found, after = at_the_start(weight, rank, x.clone())
        message = f"7 features to 5, rank {rank}: allowed, and at the start as layer alone."
        assert_close(found, x @ weight.T, message, name="the output at the start")
        assert_equal(after, x, "x should be as before after the call.", name="x", against="before the call")
checks_passed("LoRA")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `requires_grad_(False)` works on a whole module. `torch.randn(..., dtype=...)` divided by the root of
# `in_features` is a sensible `A`. For `forward`, work from left to right: `x @ A.T` has only `rank`
# features.
#
# </details>

# %% [markdown]
# Six layers, 24 to 29, get a `LoRA` of rank 4 beside `W_q` and beside `W_v`. Twenty questions are
# answered by a pirate. (The examples stand in the cell; the questions of the test are others.)


# %% tags=["demonstration"]
pirate_answers = {
    "What is your name?": "Arr, they call me Captain Redbeard!",
    "How are you today?": "Fine as a ship in the wind, matey!",
    "What is a cat?": "Arr, a beast that hunts rats, matey!",
    "Where is London?": "Across the sea, me hearty, in old England!",
    "What is the sun?": "Arr, the golden star that guides me ship!",
    "What do you like to eat?": "Fish, matey, and a cup of rum!",
    "Can you help me?": "Aye, matey, the Captain helps ye!",
    "What is rain?": "Arr, the water that falls on me deck!",
    "Who was Shakespeare?": "Arr, a fine teller of tales, matey!",
    "What is a book?": "Aye, a chest of words, me hearty!",
    "Tell me a joke.": "Arr, me parrot tells the jokes!",
    "What is snow?": "Arr, frozen rain, matey!",
    "Do you like music?": "Aye, I sing on deck, matey!",
    "What is a tree?": "Arr, the wood of me ship, matey!",
    "How do I cook rice?": "Boil it in water, matey, arr!",
    "What is water?": "Arr, me ship swims on it, matey!",
    "What is a friend?": "Aye, one who shares his gold with ye!",
    "Why is the sea blue?": "Arr, it holds the sky in it, matey!",
    "What is a dog?": "Arr, a loyal mate with four legs!",
    "Good morning!": "Ahoy, matey! A fine morning to sail!",
}
held_out = ["horse", "car", "house", "door", "bread", "fire", "money", "milk"]
pirate_words = re.compile(r"\b(arr|aye|ahoy|matey|hearty|ye|captain|pirate|me ship)\b", re.IGNORECASE)


def chat(text, system=None):
    messages = [] if system is None else [{"role": "system", "content": system}]
    return chat_tokens([*messages, {"role": "user", "content": text}], encode, special)


def answers(system=None, max_new=5):
    """The likeliest beginning of an answer to each held-out question, all in one batch."""
    asked = [chat(f"What is {'a ' * (number < 4)}{thing}?", system) for number, thing in enumerate(held_out)]
    found = {}
    for length in sorted(set(map(len, asked))):
        chosen = [number for number, prompt in enumerate(asked) if len(prompt) == length]
        unread, caches, start, written = torch.tensor([asked[number] for number in chosen]), [KVCache() for _ in blocks], 0, []
        for _ in range(max_new):
            x = streams(token_vectors[unread], caches=caches, start=start)[-1]
            start += unread.shape[-1]
            written.append(read_out(x[:, -1]).argmax(-1))
            unread = written[-1][:, None]
        for number, row in zip(chosen, torch.stack(written, dim=1).tolist()):
            end = special["<|im_end|>"]
            found[number] = decode(row[: row.index(end)] if end in row else row)
    return [found[number] for number in range(len(held_out))]


def counted(said):
    """How many of the eight answers hold a pirate's word, and how many name what was asked about."""
    named = sum(thing in text.lower() for thing, text in zip(held_out, said))
    return sum(bool(pirate_words.search(text)) for text in said), named


# %% [markdown]
# **Predict, then run.** Eight new questions, answers cut at five tokens. How many hold a pirate's word after training, and
# how many if one only **asks** for it, with the system message "You are a pirate. Talk like a pirate."?

# %% tags=["demonstration", "guess"]
guess_trained, guess_asked = 8, 4  # two numbers of 8

# %% tags=["demonstration", "nbval-ignore-output"] seconds=10
# Trained numbers: they may differ in the last digits on another machine.
FROM = 24
said = {"before": answers(), "asked in words": answers("You are a pirate. Talk like a pirate.")}
texts = [(chat(question), [*encode(answer), special["<|im_end|>"]]) for question, answer in pirate_answers.items()]
groups = []  # five of like length at a time: a quarter of the memory
for some in range(0, len(texts), 5):
    pairs = sorted(texts, key=lambda pair: len(pair[0]) + len(pair[1]))[some : some + 5]
    train_ids, learned = padded([prompt + answer for prompt, answer in pairs])
    for row, (prompt, _) in enumerate(pairs):
        learned[row, : len(prompt)] = False  # only the answers are learned
    groups.append((train_ids, learned, streams(token_vectors[train_ids], until=FROM)[-1]))  # layers 0 to 23 stay: read once
total = sum(int(learned.sum()) for _, learned, _ in groups)
torch.manual_seed(19)
loras = []
for block in blocks[FROM:]:
    for name in ("W_q", "W_v"):
        setattr(block, name, LoRA(getattr(block, name), rank=4))
        loras.append(getattr(block, name))
trained = [parameter for lora in loras for parameter in lora.parameters() if parameter.requires_grad]
optimizer = torch.optim.Adam(trained, lr=0.012)
curve = []
for _ in progress(7, "steps"):
    optimizer.zero_grad()
    curve.append(0.0)
    for train_ids, learned, below in groups:  # gradients add up
        counts = learned[:, 1:]
        nats = F.cross_entropy(read_out(streams(below, FROM)[-1][:, :-1][counts]), train_ids[:, 1:][counts], reduction="sum") / total
        nats.backward()
        curve[-1] += nats.item()
    optimizer.step()
for parameter in trained:
    parameter.requires_grad_(False)  # from here on it is only read
print(f"{sum(p.numel() for p in trained):,} numbers trained, of 134 million; loss on the answers:", *(f"{loss:.1f}" for loss in curve))
said["trained"] = answers()
for name, texts_said in said.items():
    with_word, on_subject = counted(texts_said)
    print(f"{name:15s} a pirate's word in {with_word} of 8, the thing that was asked about in {on_subject}:", *(repr(text) for text in texts_said[:2]))
if published:
    assert counted(said["before"])[0] == 0 and counted(said["trained"])[0] >= 7 and counted(said["asked in words"])[0] < 7
    assert counted(said["before"])[1] >= 6 and counted(said["asked in words"])[1] > counted(said["trained"])[1]
    reply("guess_trained", guess_trained, counted(said["trained"])[0], within=1)
    reply("guess_asked", guess_asked, counted(said["asked in words"])[0], within=1)

# %% [markdown]
# All pirates? Read what they say: eight times **the same words**. That is lesson 18's control for a right answer,
# the constant one: this model has not learned to talk like a pirate, it has learned one answer. (Mind the second
# count as well: hardly one of the twenty examples names the thing that was asked about, so not naming it is part of
# what we taught.) Asked in words, the model is a pirate less often, and still speaks of the thing; with more than
# five tokens it comes to it each time (8 of 8 with 24, counted once for this text). Twenty short examples have
# taught a few **words**, and drowned the content.
#
# So the count that was easy to raise does not say what one wanted. How far can the dial be turned back?
# `scale` is read at each call. And what does the change cost **elsewhere**, where nobody trained: the
# sixty sentences, the capitals?

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
dial = {0.0: (*counted(said["before"]), known)}
for scale in (0.8, 1.0):
    for lora in loras:
        lora.scale = scale
    now = said["trained"] if scale == 1 else answers()
    dial[scale] = *counted(now), right_capitals(streams(fact_streams[FROM], FROM)[-1])
print(f"{'scale':>6s}{'pirate':>9s}{'subject':>9s}{'capitals':>10s}")
for scale, (with_word, on_subject, facts) in dial.items():
    print(f"{scale:6.2f}{with_word:7d}/8{on_subject:7d}/8{facts:7d}/28")
trained_losses = losses(streams(whole[FROM], FROM)[-1], ids, keep)
print(f"the sixty sentences at scale 1: {trained_losses.mean():.2f} (before: {normal.mean():.2f}), worse: {int((trained_losses > normal).sum())} of 60")
if published:
    assert 0.03 < trained_losses.mean() - normal.mean() < 0.5 and (trained_losses > normal).sum() >= 35
    assert dial[1.0][2] <= known - 5 and max(min(row[0], row[1]) for row in dial.values()) <= 4

# %% tags=["demonstration", "nbval-ignore-output"]
figure, axes = plt.subplots(figsize=(8, 3.3), layout="constrained")
steps = list(dial)
lines = (("a pirate's word, of 8", 8, "o-", "#b2182b"), ("names the thing, of 8", 8, "o-", "#2166ac"), ("capitals right, of 28", len(countries), "s--", "#444444"))
for place, (label, whole_number, style, colour) in enumerate(lines):
    shares = [dial[scale][place] / whole_number for scale in steps]
    axes.plot(steps, shares, style, color=colour)
    axes.text(1.02, shares[-1], label, va="center", color=colour)
axes.set(xlabel="scale", ylabel="share", xticks=steps, ylim=(-0.06, 1.06), xlim=(-0.04, 1.36))
show(
    figure,
    "Figure 5. The dial. When the pirate comes, the subject is gone, and half of the capitals.",
    "Three curves over the scales 0, 0.8 and 1. " + "; ".join(
        f"scale {scale}: pirate {row[0]} of 8, subject {row[1]} of 8, capitals {row[2]} of 28" for scale, row in dial.items()) + ".",
)

# %% [markdown]
# At none of the settings tried are both counts above half. And the cost elsewhere is not small. The sixty
# sentences lose a sixth of a nat, which one might call harmless. But **about half of the capitals** are
# gone, although no example spoke of a capital, and although `L23H4` lies *below* the first
# changed layer: the fact is written as before, and talked over by what comes behind. Whoever had looked
# at the mean loss alone would have called the side effects small.
#
# This is one seed. Two others, run once for this text, gave 8 of 8 pirates and 0 of 8 subjects as well,
# 12 and 7 capitals, and 5.34 and 5.40 nats. And gentler, fifteen layers, half the rate, twelve steps: the
# pirate has more words ("Arr, a ship that sails"), the subject is as far away, and three capitals are
# left.
#
# Is it the pirate that costs the capitals? **The control**: twenty plain answers to the same questions ("Water
# that falls from the clouds."), the same training, two seeds, run once for this text: no pirate, 7 and 8
# subjects, 5.13 nats, better than untrained, and **9 and 11 capitals**. So it is not the tone; twenty short
# examples and seven large steps cost them, pirates or not. (How many depends on the twenty: with another set of plain answers, a
# reader's, 24 were left.) Without this control we would have blamed the pirate.
#
# If the change is to stay, nobody wants two products where one will do: $Wx + s\,BAx = (W + s\,BA)\,x$.
#

# %% [markdown]
# ### Exercise 8: `merge_lora`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 15 minutes on it.
#
# - `merge_lora(lora)` returns **one** `nn.Linear` with the same output as `lora`: its weight is $W +
#   \text{scale} \cdot BA$.
# - It has a bias exactly where `lora.layer` has one, the same dtype, and it can be trained.
# - It shares no memory with `lora`, which is unchanged, and can be used and trained on.


# %% answer="merge_lora"
def merge_lora(lora):
    """One linear layer with the same output.

    Args:
        lora: LoRA; not changed.

    Returns:
        nn.Linear, trainable, of lora.layer's sizes and dtype; no memory is shared.
    """
    ### BEGIN SOLUTION
    old = lora.layer
    merged = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None, dtype=old.weight.dtype)
    with torch.no_grad():
        merged.weight.copy_(old.weight + lora.scale * lora.B @ lora.A)
        if old.bias is not None:
            merged.bias.copy_(old.bias)
    return merged
    ### END SOLUTION


# %% check="merge_lora" points=3.5 card=["returns **one** `nn.Linear` with the same output as `lora`: its weight is", "It has a bias exactly where `lora.layer` has one", "and it can be trained", "which is unchanged, and can be used and trained on"]
# A layer of 7 features to 5, rank 3, scale 0.5, with and without a bias.
@probe
def merged(weight, bias, A, B, scale):
    """Kind, weight and bias of the result, and what trains of it and of lora."""

    class Change(nn.Module):
        """As the card of LoRA says, so that a mistake there costs nothing here."""

        def __init__(self, layer, rank, scale):
            super().__init__()
            self.layer, self.scale = layer.requires_grad_(False), scale
            self.A, self.B = (nn.Parameter(layer.weight.new_ones(size)) for size in ((rank, layer.in_features), (layer.out_features, rank)))

        def forward(self, x):
            return self.layer(x) + torch.einsum("...i,ri,or->...o", x, self.A, self.B) * self.scale

    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None).to(weight.dtype)
    lora = Change(layer, len(A), scale)
    with torch.no_grad():
        lora.layer.weight.copy_(weight)
        if bias is not None:
            lora.layer.bias.copy_(bias)
        lora.A.copy_(A)
        lora.B.copy_(B)
    one = merge_lora(lora)
    bias = getattr(one, "bias", None)
    trains = [p.requires_grad for p in one.parameters()], [name for name, p in lora.named_parameters() if p.requires_grad]
    return type(one).__name__, one.weight.detach(), None if bias is None else bias.detach(), *trains


rng = check_rng()
weight, bias, A, B = (torch.tensor(rng.normal(size=s)).float() for s in ((5, 7), 5, (3, 7), (5, 3)))
with check("the weight", points=1.5):
    kind, found, *_ = merged(weight, bias, A, B, 0.5)
    assert_equal(kind, "Linear", "One nn.Linear is asked for.", name="the kind of the result")
    assert_close(found, weight + 0.5 * B @ A, "7 features to 5, rank 3, scale 0.5: W + 0.5 * B @ A.", name="its weight")
with check("a bias exactly where layer has one", points=1):
    message = "layer has a bias: the merged layer has the same."
    assert_close(merged(weight, bias, A, B, 0.5)[2], bias, message, name="its bias")
    assert_equal(merged(weight, None, A, B, 0.5)[2] is None, True, "layer has no bias: the merged layer has none.", name="'it has none'")
with check("at the start: layer's weight", points=0.5):
    found = merged(weight, bias, A, torch.zeros(5, 3), 2.0)[1]
    assert_close(found, weight, "B is zeros: the weight is that of layer.", name="its weight")
with check("it trains, and lora as before", points=0.5, side=True):
    *_, trains, still = merged(weight, bias, A, B, 0.5)
    assert_equal(trains, [True, True], "Weight and bias of the merged layer can be trained.", name="what trains of it")
    assert_equal(still, ["A", "B"], "Of lora, A and B can still be trained, and layer not.", name="what trains of lora")
checks_passed("merge_lora")


# %% check="merge_lora_sizes" points=2 card=["with the same output as `lora`", "It has a bias exactly where `lora.layer` has one, the same dtype"]
# Hidden checks of merge_lora: other sizes, large ranks, negative scales, float64: the same output.
### BEGIN HIDDEN TESTS
@probe
def both(weight, bias, A, B, x, scale):
    """What the merged layer gives, and the dtype of its weight."""

    class Change(nn.Module):
        """As the card of LoRA says, so that a mistake there costs nothing here."""

        def __init__(self, layer, rank, scale):
            super().__init__()
            self.layer, self.scale = layer.requires_grad_(False), scale
            self.A, self.B = (nn.Parameter(layer.weight.new_ones(size)) for size in ((rank, layer.in_features), (layer.out_features, rank)))

        def forward(self, x):
            return self.layer(x) + self.scale * (x @ self.A.T) @ self.B.T

    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None).to(weight.dtype)
    lora = Change(layer, len(A), scale)
    with torch.no_grad():
        layer.weight.copy_(weight)
        if bias is not None:
            layer.bias.copy_(bias)
        lora.A.copy_(A)
        lora.B.copy_(B)
        one = merge_lora(lora)
        return one(x), str(one.weight.dtype)


rng = check_rng()


def compare(out, into, rank, scale, biased=True):
    weight, bias, A, B, x = (torch.tensor(rng.normal(size=s)) for s in ((out, into), out, (rank, into), (out, rank), (4, into)))
    found, dtype = both(weight, bias if biased else None, A, B, x, scale)
    message = f"{into} features to {out}, rank {rank}, scale {scale}, {'with' if biased else 'without'} a bias, float64: the output of lora."
    expected = F.linear(x, weight, bias if biased else None) + scale * x @ A.T @ B.T
    assert_close(found, expected, message, name="the output of the merged layer", precise=True)
    assert_equal(dtype, "torch.float64", "The merged layer has the dtype of layer.", name="the dtype")


with check("other sizes, without a bias as well", points=1):
    compare(6, 4, 2, 1.0)
    compare(4, 6, 1, 1.0, biased=False)
with check("square sizes, a large rank, other scales", points=1):
    compare(5, 5, 5, 1.0)
    compare(3, 4, 9, -2.0)
    compare(6, 6, 2, 0.3, biased=False)
checks_passed("merge_lora")
### END HIDDEN TESTS


# %% check="merge_lora_memory" points=2 card=["returns **one** `nn.Linear` with the same output as `lora`", "and it can be trained", "It shares no memory with `lora`, which is unchanged, and can be used and trained on"]
# Hidden checks of merge_lora: no shared memory, lora unchanged; the merged layer trains.
### SIDE CONDITION: counts once another check of merge_lora passes.
### BEGIN HIDDEN TESTS
@probe
def before_and_after(seed, x, biased):
    """lora's numbers before, after, and after the merged layer has moved; what trains; the second result."""

    class Change(nn.Module):
        """As the card of LoRA says, so that a mistake there costs nothing here."""

        def __init__(self, layer, rank, scale):
            super().__init__()
            self.layer, self.scale = layer.requires_grad_(False), scale
            self.A, self.B = (nn.Parameter(layer.weight.new_ones(size)) for size in ((rank, layer.in_features), (layer.out_features, rank)))

        def forward(self, x):
            return self.layer(x) + self.scale * (x @ self.A.T) @ self.B.T

    torch.manual_seed(seed)
    lora = Change(nn.Linear(6, 4, bias=biased), 2, 0.5)
    with torch.no_grad():
        lora.A.copy_(torch.randn(2, 6))
        lora.B.copy_(torch.randn(4, 2))

    def numbers():
        return {name: p.detach().clone() for name, p in lora.named_parameters()}

    start = numbers()
    one = merge_lora(lora)
    after = numbers()
    trains = {name: p.requires_grad and p.is_leaf for name, p in one.named_parameters()}
    trains_still = {name: p.requires_grad for name, p in lora.named_parameters() if p.requires_grad}
    first = one(x).detach().clone()
    with torch.no_grad():
        for p in one.parameters():
            p.add_(1.0)
    return start, after, numbers(), trains, trains_still, first, merge_lora(lora)(x).detach()


rng = check_rng()
x = torch.tensor(rng.normal(size=(3, 6))).float()
for biased in (True, False):
    start, after, moved, trains, still, first, again = before_and_after(int(rng.integers(2**31)), x, biased)
    message = f"A layer {'with' if biased else 'without'} a bias: "
    assert_equal(after, start, message + "lora should be as before after the call.", name="lora", against="before the call")
    assert_equal(moved, start, message + "when the merged layer moves, lora should stay.", name="lora", against="before the call")
    assert_equal(trains, dict.fromkeys(trains, True), message + "the merged layer should be trainable.", name="what trains")
    assert_equal(len(trains), 1 + biased, message + "the parameters of one linear layer.", name="the number of parameters")
    assert_equal(sorted(still), ["A", "B"], message + "A and B of lora should still be trained, and layer not.", name="what trains of lora")
    assert_close(again, first, message + "a second call should give the same layer.", name="its output", against="of the first call")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Make a new `nn.Linear` of the same sizes, and copy into its weight and bias under `torch.no_grad()`. `B
# @ A` has the shape of the weight.
#
# </details>

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they may differ in the last digits on another machine.
x = whole[FROM][:4]
beside = streams(x, FROM)[-1]
kept = [(block, name, getattr(block, name)) for block in blocks[FROM:] for name in ("W_q", "W_v")]
for block, name, lora in kept:
    setattr(block, name, merge_lora(lora).requires_grad_(False))
merged = streams(x, FROM)[-1]
for block, name, lora in kept:
    setattr(block, name, lora.layer)  # and here is the model again as it was published
back = streams(x, FROM)[-1]
apart = ((merged - beside).abs().max() / beside.abs().max()).item()
print("merged as beside it, to 1e-4 of the largest entry:", apart < 1e-4)
as_before = torch.allclose(back, whole[-1][:4], rtol=1e-4, atol=1e-2)
print("without it the published model is back:", as_before)
assert apart < 1e-4 and as_before

# %% [markdown]
# Merged, it costs nothing to run, and comes off again only for whoever has kept A and B, or the old
# weights; kept beside it, it is 46,080 numbers that one can exchange in a moment. Services keep one large
# model, and a thousand small changes.

# %% [markdown]
# ### Short answer 4: `answer_lora`
#
# At the start `B` is zero and `A` is random. A friend makes both zero, "to be safe". What happens?
#
# - a) The same, a little slower.
# - b) Nothing is ever learned: the gradient of each holds the other as a factor.
# - c) It learns, but `A` stays zero.
# - d) The output is zero at the start.

# %% answer="answer_lora"
### BEGIN SOLUTION
answer_lora = "b"
### END SOLUTION

# %% check="answer_lora" points=1
check_answer("answer_lora", answer_lora)

# %% [markdown]
# ## 8. What is often said, and what is right
#
# | often said | what is right | where shown |
# |---|---|---|
# | "A large model does not feel a single weight." | Of most, no. One breaks it. | section 2 |
# | "The massive activation makes the sink." | At most a fifth of it: with both weights gone 0.73 becomes 0.59. Without the one number alone it is as it was. | section 4 |
# | "The first token holds what the text is about." | Any token does that stands there; thrown out early, it is not missed. | section 4 |
# | "A head with a high score is needed." | Only the intervention says so, with heads of the same layers beside it. | section 3 |
# | "The capital is stored in `L23H4`." | It carries it. Where it is stored has not been shown. | section 5 |
# | "The lens shows when the model knows." | It shows when the last layer's read-out could read it. | section 5 |
# | "Rotary positions work at any distance." | At any place. Not at any distance: at 8,000, still within 8,192, nothing is copied. | section 6 |
# | "LoRA leaves the rest of the model alone." | The weights, yes. What it says elsewhere is another question, and one has to count. | section 7 |
#
# ### Written answer: `written_claim`
#
# A blog says: "We found the *honesty head* of a chat model. On our 12 questions it has the highest
# attention on the word 'true'. When we set it to zero, 9 of 12 answers become wrong. So honesty lives in
# this head." Answer in 6 to 9 sentences (5 points):
#
# 1. Which control is missing first of all, and how would you choose it?
# 2. What could setting to zero have done beside silencing honesty, and which other intervention is milder
#    or says more?
# 3. Which measurement is missing to call it a dissociation?
# 4. What would you have to change in the twelve questions, and in the word "lives"?

# %% [markdown] written="claim" points=5
# ### BEGIN SOLUTION
# First of all other heads are missing: several, drawn from the same layer, silenced in the same way,
# because a layer may be sensitive as such; and how many of 12 become wrong then. Zeros are a message,
# too, which the layers behind have never met; the mean over many texts is milder, and resample says more:
# give the head what it said on another question, and see whether the answer becomes that question's, as
# the next country's capital did. For a dissociation one must see what stays: the loss on ordinary
# sentences, and questions in which truth plays no part. If these suffer as much, the head is simply
# needed by everything. Twelve questions that chose the head cannot test it as well: find it on some, and
# count on others, more of them, with and without the word "true". And attention on a word shows where a
# head looks, not what it carries. "Lives" should be "is needed for these questions, in this model"; what
# is stored where has not been looked at.
#
# **Marking scheme** (5 points). 1 point: other heads of the same layer as the control, several. 1 point:
# zeros are out of the ordinary; mean or resample. 1 point: what stays (ordinary sentences, other
# questions). 1 point: fresh questions, or more of them, not those that chose the head. 1 point: attention
# or need is not storage.
#
# **Sample A** (5 points). "I would ablate each of the other heads of that layer and show 9 of 12
# beside it. Zero is something the model never saw, so try the mean, and better still paste the head's
# output from another question and look whether the answer follows. Does it still speak English without
# it? They should print the loss on normal text. The head was picked on the same 12 questions on which it
# was tested, which is cheating. And where it looks is not where honesty is kept." (All five.)
#
# **Sample B** (2 points). "12 is a small sample, so the p-value is not good; they should take 100
# questions. Also they should use several models. Setting to zero is fine because zero means no
# information. The head may be needed, but that does not mean that honesty is stored in it." (1 point for
# more questions; none for zero, which is a message of its own; 1 point for need and storage. The control
# and what stays are missing.)
# ### END SOLUTION

# %% [markdown]
# ## 9. Your own: one published claim
#
# The last piece of this course is yours. Choose **one claim about how language models work inside**, and
# test it on this model. It should be one that might come out either way. Suggestions, if you have none:
#
# - *Larger or later heads are safer to remove*: Michel and others (2019) found that many heads can go.
#   How many of 270, and in which layers?
# - *Indirect objects*: "When Mary and John went to the shop, John gave a drink to" goes on with " Mary"
#   (Wang and others, 2023). Which heads, and are they the induction heads?
# - *A layer can be left out* (Gromov and others, 2024): which of the thirty costs least, and do two
#   neighbours cost the sum?
# - *Repetition makes itself likelier*: does the loss of lesson 18 stop when the eight heads of section 3
#   are silent?
# - *Sinks come from the start token*: does a text that begins in the middle of a word have one?
# - *Rank 1 is enough* for a style (section 7); or: *LoRA on the keys does as well*.
#
# ### Capstone: `written_capstone`
#
# Below, in a cell of your own, the experiment; here, in 15 to 25 lines, the report (10 points): the
# **claim**, with its source; your **prediction**, written before you ran it; what you **measured**, on
# how many texts and with at least three **seeds** or draws; the **control**; the **ablation** (what you
# took away, and what that changed); the **result** with its spread; what it does **not** show. A claim
# that is refuted earns as much as one that is confirmed. It is marked by a person.

# %% [markdown] written="capstone" points=10
# ### BEGIN SOLUTION
# *Claim* (Gromov and others, 2024): in a pretrained model many later layers can be left out at little
# cost. *Prediction*: leaving out one of the layers 20 to 27 costs less than 0.2 nats, one of 0 to 3 more
# than 1. *Measured*: mean loss of the sixty sentences, with each single layer replaced by the identity,
# each sentence compared with itself; then three draws of twenty sentences, to see the spread. *Control*:
# the same layer kept, and its two norms' gammas exchanged, which leaves as many numbers in play.
# *Ablation*: two neighbouring layers at once, against the sum of their single costs. *Result*: a table of
# thirty costs with the smallest and largest of the three draws; which layers are above 1 nat, which below
# 0.2; whether pairs cost more than the sum. *It does not show* that these layers do nothing: the
# sentences are short and plain, and a task such as copying (section 3) may need them; I would repeat it
# with the copying test before I say "superfluous".
#
# **Marking scheme** (10 points). 1 point: a claim with its source that could come out either way. 1: a
# prediction with a number, before the run. 2: counted, over enough texts, with a spread over three seeds
# or draws. 2: a control of the same kind as the intervention (1 if there is one of another kind). 2: an
# ablation, and what it changed. 1: the result says what the numbers say, whichever way. 1: what it does
# not show. (Code that cannot be run, or numbers that the code does not give: at most 5.)
#
# **Sample A** (10 points). "Claim: rank 1 is enough for a style (folklore around Hu and others 2022). I
# guessed 10 of 12 pirate answers with rank 1. Three seeds of A each: rank 1 gave 12, 11, 12, rank 4 gave
# 12, 12, 12. Control: rank 1 trained the same way on twenty plain answers: 0, 0, 0, so it is not the
# training as such. Ablation: merged, then the one direction taken out of W_v only, and of W_q only;
# without W_v's it was 3, without W_q's 11. So for this style the values' one direction is nearly all of
# it. The loss of the sixty sentences went up 0.2 with either rank. It does not show that rank 1 is enough
# for anything that needs more than a tone; I would try facts next." (All ten: the source is weak, but the
# claim is sharp, and control and ablation are of its kind.)
#
# **Sample B** (4 points). "Claim: induction heads are needed for in-context learning (Olsson and others
# 2022). I removed the eight heads and it could not copy any more, 0.00 instead of 0.6. I also removed
# eight random heads and it was 0.5. So the claim is true." (1 for the claim, 1 for a count, though with
# one draw, 1 for the control, drawn once and not from the same layers, 1 for the ablation; no prediction,
# and copying random tokens is not learning in context: the result says more than the numbers.)
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | super weight | largest $\lvert h_j W_{fj} \rvert$ | `heaviest_input` | the number that writes a massive activation |
# | dissociation | copying lost, sentences kept | `ablate_head` of lesson 13 | a head is needed for *this* |
# | eviction | key $c$ hidden from query $s$ on | `evict` | what a cache may forget |
# | window with sinks | $t - w < s \le t$ or $s < k$ | `sink_window_mask` | texts without end |
# | logit lens | output(norm(stream)) of each layer | `logit_lens`, `token_rank` | when it could be read |
# | attribution | $\text{direction} \cdot W_o^{(h)} \text{head}_h$ | `head_attribution` | who writes it |
# | resample | another prompt's message | `ablate_head(..., "resample")` | what a head carries |
# | LoRA | $Wx + \text{scale} \cdot BAx$ | `LoRA`, `merge_lora` | few numbers change much |
#
# ## Check yourself
#
# <details><summary>1. Why does the run without the one number begin at layer 11, and why is that exact?</summary>
#
# Layers 0 to 10 do not use it, so their streams are what they were.
#
# </details>
#
# <details><summary>2. Key 0 is evicted from position 0 on. What are the weights of query 0, and what does its block add to its
# stream?</summary>
#
# All 0; the attention adds nothing, and the feed-forward works as ever.
#
# </details>
#
# <details><summary>3. Why the difference to the other capitals, and not the capital's vector itself, as the direction?</summary>
#
# Much of what a capital's logit gets, all capitals get: "a city comes now". The difference asks which one.
#
# </details>
#
# <details><summary>4. W_q is 576 × 576. How many numbers does LoRA with rank 4 train beside it, and which share is that?</summary>
#
# $4 \cdot (576 + 576) = 4608$, of 331,776: 1.4 %.
#
# </details>
#
# <details><summary>5. A lens sees nothing before layer 23. Name two explanations.</summary>
#
# It is not there yet at this token; or it is there in a form that the last read-out does not read.
#
# </details>
#
# ## References
#
# - Yu, Wang, Shan, Wan, others (2024), *The Super Weight in Large Language Models*; Sun, Chen, Kolter,
#   Liu (2024), *Massive Activations in Large Language Models*.
# - Olsson and others (2022), *In-context Learning and Induction Heads*.
# - Xiao, Tian, Chen, Han, Lewis (2024), *Efficient Streaming Language Models with Attention Sinks*.
# - nostalgebraist (2020), *interpreting GPT: the logit lens*; Belrose and others (2023), *Eliciting
#   Latent Predictions from Transformers with the Tuned Lens*.
# - Geva, Bastings, Filippova, Globerson (2023), *Dissecting Recall of Factual Associations in
#   Auto-Regressive Language Models*.
# - Hu and others (2022), *LoRA: Low-Rank Adaptation of Large Language Models*.
# - Michel, Levy, Neubig (2019), *Are Sixteen Heads Really Better than One?*; Wang and others (2023),
#   *Interpretability in the Wild*; Gromov and others (2024), *The Unreasonable Ineffectiveness of the
#   Deeper Layers*.
# - Allal and others (2025), *SmolLM2*; licence Apache-2.0.
#
# ## What you have built
#
# Eighteen lessons ago, a state of fixed size forgot the beginning of a sentence. Since then you wrote:
#
# | lesson | your part | where it works now |
# |---|---|---|
# | 2, 3 | `softmax`, `scaled_dot_product_attention` | in each of the 270 heads of this model |
# | 4, 5 | `SelfAttention`, `MultiHeadAttention`, `split_heads`, `combine_heads` | the heads you silenced |
# | 6, 7 | `causal_mask`, `sinusoidal_positional_encoding` | the mask of each text above; the beginning of `apply_rotary` |
# | 8, 9 | `LayerNorm`, `FeedForward`, `TransformerBlock`, `DecoderBlock` | the block, and a translator of your own |
# | 10 | `GPT`, `training_step`, `sampling_distribution` | a language model that you trained, and every word of the chat |
# | 11 | `RMSNorm`, `SwiGLU`, `apply_rotary`, `GroupedQueryAttention`, `KVCache`, `blockwise_attention` | this model's norms, feed-forwards, positions, cache |
# | 12 | `wordpiece`, `load_block`, `sentence_embedding` | a published encoder, equal to the original |
# | 13 | `design_induction`, `induction_score`, `ablate_head`, `patched_logits` | sections 3 and 5 |
# | 14 | `linear_attention`, `delta_rule_step`, `RecomputedAttention` | what comes after the cache |
# | 15, 16 | `VisionTransformer`, `KerasMultiHeadAttention` | pictures; another library |
# | 17 | `learn_merges`, `merge_pairs` | the tokens |
# | 18 | `dequantise`, `LlamaBlock`, `load_layer`, `chat_tokens`, `generate` | the model that answers |
# | 19 | `evict`, `logit_lens`, `head_attribution`, `LoRA`, ... | its inside |
#
# What passed its check is in `my_transformer`, in your course folder: `README.md` there lists your parts
# and counts their lines, and `python -m my_transformer --zip` makes one file of it.
#
# And with each of them a habit: predict, count, put a control beside it, and tell what did not come out.
#
# ## Where to go on
#
# Larger models of this family are **the same parts in other numbers**: you can read their source now.
# What they add, and what of it you know:
#
# - *Llama 3, Qwen 3, SmolLM 3*: your `LlamaBlock`, with norms on queries and keys (Qwen; lesson 11), or
#   some layers without rotary positions (SmolLM 3).
# - *Gemma, Mistral*: windows in some layers (lesson 14), whose sinks you have met; *gpt-oss* gives each
#   head a sink of its own to learn.
# - *DeepSeek V3*: latent keys and values (lesson 11), and **mixtures of experts**: many `SwiGLU`s, of
#   which a small network picks a few for each token. That is the one large part that this course has not
#   built. You have all you need for it.
# - *Qwen3-Next, Kimi Linear*: the delta rule of lesson 14, with a gate, in three layers of four.
#
# Three good next steps: train a small model of your own with `LlamaBlock` (Karpathy's *nanochat* and the
# *SmolLM* recipes say how); take a published claim, and do with it what you did in section 9; or explain
# one lesson to somebody else.
