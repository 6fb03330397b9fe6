# %% [markdown]
# ## What you will be able to do
#
# - **Cut** a text into tokens with learnt merges, by hand and in code, and **learn** the merges.
# - **Read** a published tokenizer of 49,152 tokens from its file, and **prove** that yours cuts odd
#   texts as it does.
# - **Say** what the cut does to spelling, to arithmetic and to other languages, with counts.
# - **Compare** models whose tokens differ, in bits a character.
# - **Build** the model that a neural one is measured against, on text that people wrote, and **catch** a
#   held-out text that the model has seen.
#
# Three questions from earlier lessons first. Answer each before you unfold it.
#
# <details><summary>Lesson 12: the vocabulary holds <code>un, unh, happy, ##happi, ##ness</code>. How does
# the greedy cut, longest piece first, treat "unhappiness"?</summary>
#
# It takes `unh`, finds nothing for "appiness", never goes back, and the whole word is `[UNK]`.
#
# </details>
#
# <details><summary>Lesson 10: a model gives the right next token the probability 1/8, each time. What is
# its loss in nats, and in bits?</summary>
#
# $\ln 8 = 2.08$ nats; $\log_2 8 = 3$ bits. A bit is $\ln 2 = 0.693$ nats.
#
# </details>
#
# <details><summary>Lesson 6: the made language had a floor of about 0.21 nats a character. Why can
# nobody say the floor of real English?</summary>
#
# The floor is the loss of somebody who knows the true probability of each next character. We knew
# it because we had made the language. People's text has no such list.
#
# </details>

# %% tags=["setup"]
import math
import re
from collections import Counter
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from lesson_kit.chat_model import open_chat_model
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
from lesson_kit.earlier import GPT, training_step, wordpiece
from lesson_kit.figures import show, text_table
from lesson_kit.guesses import reply
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# The GPT and the training step of lesson 10 and the `wordpiece` of lesson 12 are your own where
# they passed their checks, else the course's. The setup cell says which.
#
# ## 1. What a model reads
#
# "How many r's are in strawberry?" People laugh at chat models that get this wrong. Before you laugh,
# look at what such a model reads. It is handed no letters. The tokenizer of section 4 gives
#
# | text | tokens | what the model gets |
# |---|---|---|
# | `strawberry` | `st` `raw` `berry` | 302, 1709, 9500 |
# | ` strawberry`, a blank before it | ` strawberry` | 35199 |
# | `Strawberry` | `St` `raw` `berry` | 1393, 1709, 9500 |
# | `STRAWBERRY` | `ST` `RAW` `B` `ERR` `Y` | 3127, 42634, 50, 15297, 73 |
#
# Each number is a row of a table of vectors. Nothing in the number 35199 says that there are three r's;
# the model has to have learnt it, token by token, as you learnt that "Wednesday" has a d.
#
# So why not give it letters? You did, in lessons 6 and 10. Three ways to cut a text:
#
# | tokens | vocabulary | length of a text | unknown |
# |---|---|---|---|
# | characters | 100, or 150,000 with all scripts | long: attention costs $n^2$ | signs never seen |
# | words | endless | short | every new name and typing mistake |
# | pieces | as large as you choose | between | nothing, if the smallest pieces are bytes |
#
# Lesson 12 had a list of pieces and took the longest that fits. This lesson makes the list itself:
# **byte-pair encoding** (Gage, 1994, to compress files; Sennrich, Haddow and Birch, 2016, for
# translation). Nearly all chat models of today use it.
#
# ## 2. Merges
#
# A word begins as its characters. Then **merges** are applied, each a pair of neighbours that becomes
# one symbol. They stand in a list in the order in which they were learnt (section 3), and **the pair
# that stands earliest in the list goes first**. With the four merges
# (1) `h e`, (2) `t h`, (3) `i s`, (4) `th is`:
#
# | word | begins as | after 1 | after 2 | after 3 | after 4 |
# |---|---|---|---|---|---|
# | this | `t h i s` | | `th i s` | `th is` | `this` |
# | then | `t h e n` | `t he n` | no `t h` is left | | |
# | hehe | `h e h e` | `he he` | | | |
#
# Look at "then". Both `th` and `he` are tokens, and they want the same h. Merge 1 comes first, so it
# gets the h: `t he n`. Who goes from left to right, or takes the longest piece first as in lesson 12,
# gets `th e n`. **Both cuts spell the word.** But a model that was trained on one of them has hardly
# ever seen the other.

# %% [markdown]
# ### Short answer 1: `answer_merged`
#
# The merges are (1) `h i`, (2) `i n`, (3) `t h`, (4) `in g`. How is "thing" cut?
#
# - a) `th ing`
# - b) `th in g`
# - c) `t hi n g`
# - d) `t h ing`

# %% answer="answer_merged"
### BEGIN SOLUTION
answer_merged = "c"
### END SOLUTION

# %% check="answer_merged" points=1
check_answer("answer_merged", answer_merged)

# %% [markdown]
# ### Exercise 1: `merge_pairs`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 15-20 minutes on it.
#
# - `merge_pairs(symbols, merges)`: `symbols` is a list of strings, those of one word (a blank may be
#   among them); `merges` a list of tuples `(left, right)` in the order in which they were learnt. It
#   returns the list of symbols after the merges.
# - Of the pairs of neighbours, the one that stands **earliest** in `merges` is joined, at all its
#   places, from left to right and without overlap: with `("a", "a")`, `a a a` becomes `aa a`. Then
#   again, until no two neighbours are a pair of the list.
# - A joined symbol is a symbol like any other, and later merges may join it again.
# - An empty list gives `[]`. Neither argument is changed. No errors are graded.


# %% answer="merge_pairs"
def merge_pairs(symbols, merges):
    """The symbols of one word after the merges, the earliest merge first.

    Args:
        symbols: list of strings.
        merges: list of tuples (left, right), in the order in which they were learnt.

    Returns:
        A new list of strings.
    """
    ### BEGIN SOLUTION
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    symbols = list(symbols)
    while True:
        known = [pair for pair in pairwise(symbols) if pair in ranks]
        if not known:
            return symbols
        left, right = min(known, key=ranks.get)  # the earliest in the list
        joined = []
        for symbol in symbols:
            if joined and joined[-1] == left and symbol == right:
                joined[-1] = left + right
            else:
                joined.append(symbol)
        symbols = joined
    ### END SOLUTION


# %% check="merge_pairs" points=4 card=["the one that stands **earliest** in `merges` is joined, at all its places, from left to right and without overlap", "A joined symbol is a symbol like any other, and later merges may join it again", "Neither argument is changed"]
he_th = [("h", "e"), ("t", "h"), ("i", "s"), ("th", "is")]
with check("one merge, at all its places", points=1):
    message = "The only merge is ('h', 'e'); it should be made at every place where h and e are neighbours."
    assert_equal(merge_pairs(list("then"), he_th[:1]), ["t", "he", "n"], f"'then'. {message}")
    found = merge_pairs(list("hehxe"), he_th[:1])
    assert_equal(found, ["he", "h", "x", "e"], f"'hehxe'. {message}")
    assert_equal(merge_pairs(list("hethe"), he_th[:1]), ["he", "t", "he"], f"'hethe'. {message}")
with check("joined symbols are joined again", points=1):
    message = "'this': t h i s, then th i s, th is, and last `this`, one symbol."
    assert_equal(merge_pairs(list("this"), he_th), ["this"], message)
    message = "'tin' with the list in, ti, t in: first t in, then tin. So ti is never made."
    merges = [("i", "n"), ("t", "i"), ("t", "in")]
    assert_equal(merge_pairs(list("tin"), merges), ["tin"], message)
    message = "'his': h i s, then h is. 'th is' needs th, which is not there."
    assert_equal(merge_pairs(list("his"), he_th), ["h", "is"], message)
with check("the earliest merge of the list first", points=1):
    message = (
        "('h', 'e') stands before ('t', 'h') in the list, so the h of 'then' goes to he. That "
        "another pair stands further to the left, or that a longer piece could be made, plays no "
        "part."
    )
    assert_equal(merge_pairs(list("then"), he_th), ["t", "he", "n"], message)
    message = "The list is at, ca, ats: the a of 'cats' goes to at, then at and s are joined."
    merges = [("a", "t"), ("c", "a"), ("at", "s")]
    assert_equal(merge_pairs(list("cats"), merges), ["c", "ats"], message)
with check("without overlap, from left to right", points=0.75):
    message = "The only merge is ('a', 'a'). From left to right, each a is used once."
    assert_equal(merge_pairs(list("aaa"), [("a", "a")]), ["aa", "a"], f"'aaa'. {message}")
    assert_equal(merge_pairs(list("aaaab"), [("a", "a")]), ["aa", "aa", "b"], f"'aaaab'. {message}")


@probe
def symbols_afterwards(symbols, merges):
    merge_pairs(symbols, merges)
    return symbols


with check("symbols as before", points=0.25, side=True):
    found = symbols_afterwards(list("thenthis"), he_th)
    assert_equal(found, list("thenthis"), "symbols should be as before the call.", name="symbols", against="before the call")
checks_passed("merge_pairs")


# %% check="merge_pairs_words" points=3 card=["the one that stands **earliest** in `merges` is joined, at all its places, from left to right and without overlap", "until no two neighbours are a pair of the list", "`symbols` is a list of strings, those of one word (a blank may be among them)"]
# Hidden checks of merge_pairs: random words and merges, repeated letters, blanks, other scripts.
### BEGIN HIDDEN TESTS
def after_one(symbols, pair):
    """The symbols after one merge."""
    done = []
    for symbol in symbols:
        fits = bool(done) and (done[-1], symbol) == pair
        done[-1:] = [done[-1] + symbol] if fits else [*done[-1:], symbol]
    return done


def after_all(symbols, merges):
    """After all merges, one pass in their order."""
    for pair in merges:
        symbols = after_one(symbols, pair)
    return symbols


def learnt(words, how_many):
    """Merges as they are learnt: the most frequent pair, the smallest of equals."""
    merges, words = [], [list(word) for word in words]
    while len(merges) < how_many:
        pairs = [pair for word in words for pair in pairwise(word)]
        if not pairs:
            break
        merges.append(min(pairs, key=lambda pair: (-pairs.count(pair), pair)))
        words = [after_one(word, merges[-1]) for word in words]
    return merges


def drawn(rng, letters, size):
    """A random word without two equal neighbours."""
    word = [rng.choice(letters)]
    while len(word) < size:
        word.append(rng.choice([letter for letter in letters if letter != word[-1]]))
    return "".join(map(str, word))


rng = check_rng()
cases = {"plain": [], "repeated": [], "signs": []}
for kind, alphabet in (("plain", "abcdef"), ("repeated", "ab"), ("signs", " éß中.")):
    for trial in range(12):
        letters = list(alphabet)
        size = [int(k) for k in rng.integers(2, 9, size=9)]
        if kind == "plain":
            words = [drawn(rng, letters, k) for k in size]
        else:
            words = ["".join(map(str, rng.choice(letters, size=k))) for k in size]
        merges = learnt(words[:6], 2 + trial)
        cases[kind] += [(list(word), merges) for word in words[4:]]
with check("words without equal neighbours", points=1.5):
    for symbols, merges in cases["plain"]:
        message = f"symbols {symbols}, merges {merges}: the earliest merge first, until none fits."
        assert_equal(merge_pairs(symbols, merges), after_all(symbols, merges), message)
with check("letters that repeat", points=1):
    for symbols, merges in cases["repeated"]:
        message = (
            f"symbols {symbols}, merges {merges}: the earliest merge first, each at all its places, "
            "from left to right and without overlap."
        )
        assert_equal(merge_pairs(symbols, merges), after_all(symbols, merges), message)
with check("blanks, points and letters of other scripts", points=0.5):
    for symbols, merges in cases["signs"]:
        message = f"symbols {symbols}, merges {merges}: a symbol may be any text, also a blank."
        assert_equal(merge_pairs(symbols, merges), after_all(symbols, merges), message)
checks_passed("merge_pairs")
### END HIDDEN TESTS


# %% check="merge_pairs_contract" points=1 card=["An empty list gives `[]`", "until no two neighbours are a pair of the list", "Neither argument is changed", "A new list of strings"]
# Hidden checks of merge_pairs: nothing to do; the arguments stay as they are.
### SIDE CONDITION: counts once another check of merge_pairs passes.
### BEGIN HIDDEN TESTS
@probe
def arguments_afterwards(symbols, merges):
    result = merge_pairs(symbols, merges)
    return result, symbols, merges, result is symbols


with check("nothing to join", points=0.5):
    some = [("a", "b")]
    assert_equal(merge_pairs([], some), [], "An empty list of symbols should give an empty list.")
    message = "Where no neighbours are a known pair, the symbols should come back as they are."
    assert_equal(merge_pairs(["b", "a"], some), ["b", "a"], message)
    assert_equal(merge_pairs(["a", "b"], []), ["a", "b"], f"No merges at all. {message}")
    assert_equal(merge_pairs(["a"], some), ["a"], f"One symbol. {message}")
merges = [("a", "b"), ("ab", "ab")]
with check("the arguments as they were", points=0.25):
    for word in ("abab", "ba"):
        _, symbols, afterwards, _ = arguments_afterwards(list(word), list(merges))
        assert_equal(symbols, list(word), "symbols should be as before the call.", name="symbols")
        assert_equal(afterwards, merges, "merges should be as before the call.", name="merges")
with check("a new list", points=0.25):
    for word in ("abab", "ba"):
        *_, same = arguments_afterwards(list(word), list(merges))
        message = "The result should be a new list, also where nothing was joined."
        assert_equal(same, False, message, name="'the result is the list symbols itself'")
checks_passed("merge_pairs")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `pairwise(symbols)` goes through the neighbours. To join a pair without overlap, build a new
# list: look at its last entry and at the next symbol; are they the pair? Joining in a text, with
# `replace`, looks shorter, and finds `a b` inside `xa b`.
#
# </details>
#
# ## 3. Learning the merges
#
# Where does the list come from? From counting. Take the words of a text and how often each occurs,
# and repeat: **count all pairs of neighbours, each as often as its word occurs; join the most
# frequent pair everywhere; write it down.** By hand, for five words:
#
# | merge | he, 9 times | hen, 3 | the, 1 | this, 5 | that, 4 | most frequent pair |
# |---|---|---|---|---|---|---|
# | begin | `h e` | `h e n` | `t h e` | `t h i s` | `t h a t` | `h e`: 9 + 3 + 1 = 13 |
# | 1 | `he` | `he n` | `t he` | `t h i s` | `t h a t` | `t h`: 5 + 4 = 9 |
# | 2 | `he` | `he n` | `t he` | `th i s` | `th a t` | `i s` and `th i`: 5 each |
# | 3 | `he` | `he n` | `t he` | `th is` | `th a t` | `th is`: 5 |
#
# At the beginning `t h` had 10, but merge 1 took the h of "the" away: after each merge, **count
# anew**. Of equally frequent pairs we take the smallest as Python compares tuples of strings:
# `("i", "s") < ("th", "i")`, since "i" < "th". These are the four merges of section 2.

# %% [markdown]
# ### Exercise 2: `learn_merges`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 20-25 minutes on it.
#
# - `learn_merges(word_counts, num_merges)`: `word_counts` is a dictionary from a word (a text, not
#   empty; a blank is a character like any other) to how often it occurs (an integer above 0). It
#   returns a list of tuples `(left, right)` in the order in which they were made.
# - Each time the pair that occurs most often, counted with the words' counts. In `aaa` the pair
#   `("a", "a")` counts twice. It becomes one symbol in every word, from left to right without overlap.
# - Of equally frequent pairs the smallest, as Python compares tuples of strings.
# - It ends early where no word has two symbols left. `num_merges = 0` gives `[]`.
# - `ValueError`: `num_merges` is negative. `word_counts` is not changed.
#
# Your `merge_pairs` may help: it makes one merge with a list of one pair.


# %% answer="learn_merges"
def learn_merges(word_counts, num_merges):
    """The merges of byte-pair encoding, most frequent pair first, counted anew after each.

    Args:
        word_counts: dictionary from a word to how often it occurs.
        num_merges: at most so many merges.

    Returns:
        List of tuples (left, right) in the order in which they were made.

    Raises:
        ValueError: num_merges is negative.
    """
    ### BEGIN SOLUTION
    if num_merges < 0:
        raise ValueError(f"num_merges is {num_merges}, and has to be 0 or more")
    words = {word: list(word) for word in word_counts}
    merges = []
    for _ in range(num_merges):
        counts = Counter()
        for word, symbols in words.items():
            for pair in pairwise(symbols):
                counts[pair] += word_counts[word]
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        for word, symbols in words.items():
            if best[0] in symbols:  # most words have nothing to join
                words[word] = merge_pairs(symbols, [best])
    return merges
    ### END SOLUTION


# %% check="learn_merges" points=4 card=["Each time the pair that occurs most often, counted with the words' counts", "counts twice. It becomes one symbol in every word, from left to right without overlap", "most frequent pair first, counted anew after each", "Of equally frequent pairs the smallest, as Python compares tuples of strings", "It ends early where no word has two symbols left. `num_merges = 0` gives `[]`", "`word_counts` is not changed"]
five = {"he": 9, "hen": 3, "the": 1, "this": 5, "that": 4}
with check("the first merge: the most frequent pair", points=1):
    message = (
        "The pair h e occurs 9 + 3 + 1 = 13 times, each word as often as its count says; t h occurs "
        "1 + 5 + 4 = 10 times. The result is a list of tuples."
    )
    assert_equal(learn_merges(five, 1), [("h", "e")], message)
    message = "'lo' once, 'no' 5 times: n o occurs 5 times, l o once."
    assert_equal(learn_merges({"lo": 1, "no": 5}, 1), [("n", "o")], message)
    message = "'aaa' 2 times, 'bc' 3 times: in a a a the pair (a, a) counts twice, so 4 times in all."
    assert_equal(learn_merges({"aaa": 2, "bc": 3}, 1), [("a", "a")], message)
with check("counted anew after each merge", points=1):
    message = (
        "The pair (a, b) occurs 9 times. Once ab is one symbol, b and c are no neighbours in 'abc' "
        "any more; ab and c are, 6 times, and d and e 5 times."
    )
    found = learn_merges({"abc": 6, "ab": 3, "de": 5}, 2)
    assert_equal(found, [("a", "b"), ("ab", "c")], message)
    message = "'xy' 5 times, 'xyz' 4 times, 'zy' once: x y 9 times, then xy z 4 times, then z y."
    found = learn_merges({"xy": 5, "xyz": 4, "zy": 1}, 3)
    assert_equal(found, [("x", "y"), ("xy", "z"), ("z", "y")], message)
with check("of equals the smallest, as tuples of strings", points=1):
    message = "After h e and t h, the pairs (i, s) and (th, i) occur 5 times each: 'i' < 'th'."
    found = learn_merges(five, 4)
    assert_equal(found, [("h", "e"), ("t", "h"), ("i", "s"), ("th", "is")], message)
    message = "'ab' 4 times, 'abx', 'ay' and 'cd' 3 each: after a b, three pairs occur 3 times each; first left is compared with left."
    found = learn_merges({"ab": 4, "abx": 3, "ay": 3, "cd": 3}, 4)
    assert_equal(found, [("a", "b"), ("a", "y"), ("ab", "x"), ("c", "d")], message)
    message = "The pairs (b, a) and (a, b) occur twice each: ('a', 'b') is the smaller tuple."
    assert_equal(learn_merges({"ba": 2, "ab": 2}, 1), [("a", "b")], message)
with check("it ends where nothing is left to join", points=0.5):
    message = "'ab' once: after (a, b) there is one symbol and no pair. So one merge, of 10 allowed."
    assert_equal(learn_merges({"ab": 1}, 10), [("a", "b")], message)
    message = "'aaa' once: a a becomes aa, then aa a becomes aaa. Two merges, of 10 allowed."
    assert_equal(learn_merges({"aaa": 1}, 10), [("a", "a"), ("aa", "a")], message)
with check("no merges: an empty list", points=0.25, side=True):
    assert_equal(learn_merges(five, 0), [], "num_merges is 0: an empty list.")


@probe
def counts_afterwards(word_counts):
    learn_merges(word_counts, 3)
    return word_counts


with check("word_counts as before", points=0.25, side=True):
    found = counts_afterwards(dict(five))
    assert_equal(found, five, "word_counts should be as before the call.", name="word_counts", against="before the call")
checks_passed("learn_merges")


# %% check="learn_merges_words" points=3 card=["Each time the pair that occurs most often, counted with the words' counts", "counts twice. It becomes one symbol in every word, from left to right without overlap", "Of equally frequent pairs the smallest, as Python compares tuples of strings", "It ends early where no word has two symbols left", "a blank is a character like any other"]
# Hidden checks of learn_merges: random words; letters that repeat; ties, to the very end; blanks.
### BEGIN HIDDEN TESTS
def joined(word, left, right):
    """The symbols of a word after one merge."""
    done = []
    for symbol in word:
        fits = bool(done) and done[-1] == left and symbol == right
        done[-1:] = [left + right] if fits else [*done[-1:], symbol]
    return done


def expected_merges(word_counts, how_many):
    """The merges, and whether one of them was chosen among equals."""
    words = [(list(word), count) for word, count in word_counts.items()]
    merges, tied = [], False
    while len(merges) < how_many:
        totals = {}
        for word, count in words:
            for pair in pairwise(word):
                totals[pair] = totals.get(pair, 0) + count
        if not totals:
            break
        best = sorted(pair for pair in totals if totals[pair] == max(totals.values()))
        tied = tied or len(best) > 1
        merges.append(best[0])
        words = [(joined(word, *best[0]), count) for word, count in words]
    return merges, tied


rng = check_rng()


def drawn(letters, most, how_many):
    """Random words with their counts."""
    sizes = rng.integers(1, 8, size=how_many)
    words = ["".join(map(str, rng.choice(list(letters), size=k))) for k in sizes]
    return {word: int(rng.integers(1, most)) for word in words}


def compare(cases, asked):
    """Each case against what is expected of it."""
    for word_counts, how_many, expected in cases:
        message = f"word_counts {word_counts}, num_merges {how_many}: {asked}"
        assert_equal(learn_merges(word_counts, how_many), expected, message)


plain, repeated, ties, blanks = [], [], [], []
while min(map(len, (plain, repeated, ties, blanks))) < 6:
    for kind, letters, most, how_many in (
        (plain, "abcdefgh", 10**6, 3),
        (repeated, "ab", 10**6, 3),
        (ties, "abBzé", 3, 30),
        (blanks, "ab ", 10**6, 3),
    ):
        word_counts = drawn(letters, most, 14)
        if kind is plain or kind is blanks:
            word_counts = {w: c for w, c in word_counts.items() if not re.search(r"(.)\1", w)}
        expected, tied = expected_merges(word_counts, how_many)
        if len(kind) < 6 and tied == (kind is ties):
            kind.append((word_counts, how_many, expected))
with check("random words, no two pairs alike", points=1):
    compare(plain, "the most frequent pair each time, counted anew.")
with check("letters that repeat", points=1):
    compare(repeated, "in a a a the pair (a, a) counts twice, and becomes aa a.")
with check("ties, many merges, until nothing is left", points=0.5):
    compare(ties, "of equally frequent pairs the smallest tuple; until num_merges, or no pair.")
with check("words with blanks", points=0.5):
    compare(blanks, "a blank is a character like any other.")
checks_passed("learn_merges")
### END HIDDEN TESTS


# %% check="learn_merges_contract" points=1 card=["`num_merges = 0` gives `[]`", "`ValueError`: `num_merges` is negative", "`word_counts` is not changed"]
# Hidden checks of learn_merges: num_merges of 0 or less; word_counts stays as it is.
### SIDE CONDITION: counts once another check of learn_merges passes.
### BEGIN HIDDEN TESTS
@probe
def counts_afterwards(word_counts):
    learn_merges(word_counts, 3)
    return word_counts


with check("num_merges of 0 and below", points=0.5):
    assert_equal(learn_merges({"abc": 2}, 0), [], "num_merges is 0: an empty list.")
    for number in (-1, -7):
        with assert_raises(ValueError, f"num_merges is {number}: a ValueError."):
            learn_merges({"abc": 2}, number)
with check("word_counts as before", points=0.5):
    counts = {"abab": 2, "ba": 5}
    message = "word_counts should be as before the call."
    assert_equal(counts_afterwards(dict(counts)), counts, message, name="word_counts")
checks_passed("learn_merges")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Keep for each word its list of symbols, beside the dictionary. One round: a fresh `Counter` of pairs;
# is it empty? Then the best pair; `min` with a key `(-count, pair)` treats the ties too. Then join it
# in every word.
#
# </details>
# **Predict, then run.** A word of eight letters becomes one symbol, and you choose the word. With how few
# merges? (Seven are always enough.)

# %% tags=["demonstration", "guess"]
guess_fewest = 4  # write a number

# %% tags=["demonstration"]
for word in ("aardvark", "bookshop", "anananan"):
    print(word, *("".join(pair) for pair in learn_merges({word: 1}, 10)))
fewest = len(learn_merges({"anananan": 1}, 10))
assert fewest == 3 and len(learn_merges({"aardvark": 1}, 10)) == 6
why = "Where the word repeats itself, each merge doubles what is there."
reply("guess_fewest", guess_fewest, fewest, why)

# %% [markdown]
# ### Text that people wrote
#
# Every model of this course has read sentences that a program had made. For real text without
# internet we take what comes with every Python: the help texts of the language, module
# `pydoc_data.topics`. We keep the prose: paragraphs that are not indented, without tables and
# headings. What is not ASCII is left out, and so is a paragraph that stood there before. Every tenth
# paragraph is **held out**: nothing learns from it.


# %% tags=["demonstration", "nbval-ignore-output"]
# Another Python has other help texts, so what is printed of them is not the same everywhere.
from pydoc_data.topics import topics


def paragraphs():
    """The prose of Python's help texts, a paragraph a string, in order; some come again."""
    found = []
    for name in sorted(topics):
        for block in topics[name].split("\n\n"):
            plain = block.encode("ascii", "ignore").decode()
            drawn = any(3 * sign in plain for sign in "*=-~^>")  # headings, tables, code
            if plain.strip() and not plain[0].isspace() and not drawn:
                found.append(" ".join(plain.split()))
    return found


def split(paragraphs):
    """Text to learn from and held-out text: of ten paragraphs the first is held out."""
    learnt = "\n".join(one for i, one in enumerate(paragraphs) if i % 10) + "\n"
    held = "\n".join(paragraphs[::10]) + "\n"
    return learnt, "".join(sign for sign in held if sign in learnt)


manual, held_out = split(list(dict.fromkeys(paragraphs())))  # each paragraph once
print(f"{len(manual):,d} characters to learn from, {len(held_out):,d} held out")
print(manual[2000:2300])
assert 120_000 < len(manual) < 300_000 and 10_000 < len(held_out) < 40_000

# %% [markdown]
# A tokenizer cuts the text into words first, so that no token reaches over a word's edge. As in
# GPT-2 **the blank belongs to the word that follows it**: ` the` is a word, and `the` another one.
# Then your `learn_merges` counts.
#
# **Predict, then run.** The first merges have two characters each. Which pair will be the first that
# gives a whole word of three letters?

# %% tags=["demonstration", "nbval-ignore-output"]
# Python's texts are counted, see above.
word_pattern = re.compile(r" ?[^ \n]+|\n| ")
word_counts = Counter(word_pattern.findall(manual))
merges = learn_merges(word_counts, 200)
print(f"{sum(word_counts.values()):,d} words, {len(word_counts):,d} different")
for begin in (0, 10, 190):
    shown = ["".join(pair).replace(" ", "_") for pair in merges[begin : begin + 10]]
    print(f"merges {begin + 1:3d} to {begin + 10:3d}:", *shown)
assert len(merges) == 200

# %% [markdown]
# (Blanks are printed as `_`.) Merge 2 gives ` a`, a whole word already; the first of three letters
# is ` the`, made of ` t` and `he`. Nobody told the program what a word, a stem or an ending is; it
# counted neighbours.
#
# ### Bytes: nothing is unknown
#
# What if a text has a sign that the merges have never seen, 猫 or 🙂? A computer writes every sign as
# one to four **bytes** (UTF-8), and there are 256 of them. If the smallest symbols are bytes in place
# of characters, every text can be cut, and no `[UNK]` is needed. For us it is two words of code:
# `text.encode().decode("latin-1")` gives a text with one sign for each byte, and ASCII stays as it
# is, so the merges fit.


# %% tags=["demonstration"]
def cut(text, merges):
    """The tokens of a text, each word by merge_pairs; in bytes, written as one sign each."""
    seen, tokens = {}, []
    for word in word_pattern.findall(text.encode().decode("latin-1")):
        if word not in seen:  # a word is cut once
            seen[word] = merge_pairs(list(word), merges)
        tokens += seen[word]
    return tokens


def spelt(tokens):
    """The text that the tokens spell."""
    return "".join(tokens).encode("latin-1").decode()


some_merges = [(" ", "c"), ("a", "t"), (" c", "at")]
for example in ("the cat", "el gato", "naïve", "猫", "🙂", ""):
    tokens = cut(example, some_merges)
    sizes = len(example), len(example.encode()), len(tokens)
    print(f"{example:10s}{sizes[0]:2d} characters {sizes[1]:2d} bytes {sizes[2]:2d} tokens")
    assert spelt(tokens) == example

# %% [markdown]
# Every text comes back. The price: a sign that the merges do not know costs up to four tokens.
#
# How much shorter does a text become? And does that hold for a text of another kind? We cut four texts
# with the first 0, 25, 50, 100 and 200 merges.

# %% tags=["demonstration", "nbval-ignore-output"]
# Python's texts are counted, see above.
others = {
    "held-out text": held_out,
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft "
    "und Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen.",
    "letters at random": "".join(np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyz "), 300)),
}
sizes = [0, 25, 50, 100, 200]
characters_a_token = {"text learnt from": []} | {name: [] for name in others}
for name, one in {"text learnt from": manual, **others}.items():
    for size in sizes:
        characters_a_token[name].append(len(one) / len(cut(one, merges[:size])))
figure, axes = plt.subplots(figsize=(7.0, 3.8))
for (name, values), style in zip(characters_a_token.items(), ("-", "--", "-.", ":")):
    axes.plot(sizes, values, style, marker="o", ms=4)
    axes.annotate(name, (sizes[-1], values[-1]), (6, -3 if name != "held-out text" else -11), textcoords="offset points")  # fmt: skip
axes.set(xlabel="number of merges", ylabel="characters a token", xlim=(0, 262), ylim=(0.8, None))
figure.tight_layout()
show(
    figure,
    "Figure 1. What merges save they save on text like that which they were learnt from. Nothing was "
    "learnt by heart: the held-out text shrinks as much as the text learnt from.",
    "Characters a token against the number of merges. Text learnt from and held-out text rise together "
    "to about two; German to about one and a half; letters at random stay near one.",
    text_table(
        np.array(list(characters_a_token.values())), list(characters_a_token), list(map(str, sizes)), corner="merges"
    ),
)
learnt_from, held, german, random_letters = (values[-1] for values in characters_a_token.values())
assert abs(held / learnt_from - 1) < 0.08 and held > 1.8
assert german < 0.85 * held and random_letters < 1.25

# %% [markdown]
# ## 4. A published tokenizer
#
# **SmolLM2** (Allal and others, 2025) is a chat model that fits on a laptop; lesson 18 runs it. Its
# file is of the format **GGUF**: metadata, names with values, and then the tensors. Two of the values
# are lists of texts: 49,152 tokens and 48,900 merges. `open_chat_model` finds the file and reads it
# (`lesson_kit/gguf_file.py`, 90 lines of NumPy); nothing of the package is imported or run.

# %% tags=["demonstration", "nbval-ignore-output"]
# What is printed depends on whether the package is installed, so it is not the same everywhere.
chat_model = open_chat_model()
published = chat_model.published
print("The tokenizer of SmolLM2." if published else f"No published tokenizer. {chat_model.sentence}")

# %% [markdown]
# **If it says "No published tokenizer", go on all the same:** the cells of this section then show nothing, and
# everything else of the lesson runs. Nothing is fetched while the notebook runs.
#
# Around the merges stand two things, and you have met both. First the text is cut into words, here by
# the rules of GPT-2 (Radford and others, 2019): a blank belongs to the word that follows it, letters
# and other signs are words of their own, so are endings such as `'s`, **and each digit stands
# alone**. Then the words are written in bytes. Where we take Latin-1, GPT-2 has an alphabet that
# shows on paper: the blank is written `Ġ`, a line break `Ċ`.


# %% tags=["demonstration"]
def sign_of_byte():
    """GPT-2's sign for each byte: itself where it shows on paper, else one from 256 on."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


def words_of(text):
    """The text cut into words, each number sign alone, the rest by the pattern of GPT-2."""
    import unicodedata

    marked = "".join(f"\0{c}\0" if unicodedata.category(c)[0] == "N" else c for c in text)
    pattern = r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?(?:[^\w\s]|_)+|\s+(?!\S)|\s+"
    number_or_not = (part for part in marked.split("\0") if part)
    return [word for part in number_or_not for word in
            ([part] if unicodedata.category(part[0])[0] == "N" else re.findall(pattern, part))]  # fmt: skip


def encode(text):
    """The numbers of a text's tokens. Only merges whose result stands in the word are handed on."""
    numbers = []
    for word in words_of(text):
        signs = "".join(signs_of[byte] for byte in word.encode())
        inside = {signs[i:j] for i in range(len(signs)) for j in range(i + 2, len(signs) + 1)}
        candidates = sorted(rank_of[piece] for piece in inside if piece in rank_of)
        found = merge_pairs(list(signs), [published_merges[rank] for rank in candidates])
        numbers += [number_of[token] for token in found]
    return numbers


def shown(numbers):
    """Tokens as people read them, a blank as _."""
    byte_of = {sign: byte for byte, sign in signs_of.items()}
    raw = [bytes(byte_of[sign] for sign in published_tokens[number]) for number in numbers]
    return " ".join(one.decode(errors="replace").replace(" ", "_").replace("\n", "\\n") for one in raw)


if published:
    signs_of = sign_of_byte()
    published_tokens = chat_model.metadata["tokenizer.ggml.tokens"]
    number_of = {token: number for number, token in enumerate(published_tokens)}
    published_merges = [tuple(pair.split(" ")) for pair in chat_model.metadata["tokenizer.ggml.merges"]]
    rank_of = {left + right: rank for rank, (left, right) in enumerate(published_merges)}

# %% [markdown]
# **Is it the same tokenizer?** The witness is recorded: the library `tokenizers` (0.23.3), given the
# same tokens and merges, cut these texts into these numbers. They are chosen to be odd.

# %% tags=["demonstration", "nbval-ignore-output"]
# Only with the package, so not the same everywhere; so are the other cells of this section.
recorded = {
    "strawberry": [302, 1709, 9500],
    " strawberry": [35199],
    "Strawberry": [1393, 1709, 9500],
    "STRAWBERRY": [3127, 42634, 50, 15297, 73],
    "don't say they'LL": [12420, 982, 1643, 502, 23, 16421],
    "naïve café": [3546, 46494, 37366],
    "🙂 and 👩\u200d👧": [10813, 38887, 284, 15107, 235, 119, 321, 231, 10813, 235, 117],
    "a  b   c ": [81, 216, 278, 256, 265, 216],
    "\n\n\tx = 12345 + ½": [1116, 197, 104, 446, 216, 33, 34, 35, 36, 37, 1232, 216, 16738],
    "def f(x):\n    return x": [1604, 275, 24, 104, 727, 472, 1003, 1792],
    "मनुष्यों": [35090, 30658, 42990, 4300, 132, 16525, 32932, 42213, 35691],
    "一二三": [22924, 16736, 230, 7906, 227],
    "__init__": [890, 2563, 890],
    "…\xa0e\u0301": [2829, 15442, 85, 151, 219],
}
if published:
    print(len(published_tokens), "tokens,", len(published_merges), "merges")
    for example, numbers in recorded.items():
        print(f"{example!r:26s}", shown(encode(example)))
        assert encode(example) == numbers
    print("all numbers as recorded")

# %% [markdown]
# A sign � is a token that holds a part of a sign's bytes: 🙂 is two tokens, and no single one of them
# is a picture. A line break with the blanks of an indentation behind it is one token: code was in the
# text that the merges were learnt from.
#
# ### Spelling: one word, many numbers
#
# **Predict, then run.** In how many tokens is ` strawberries` cut, with a blank before it? And ` raspberry`?

# %% tags=["demonstration", "guess"]
guess_strawberries, guess_raspberry = 3, 3  # two numbers

# %% tags=["demonstration", "nbval-ignore-output"]
if published:
    for word in ("cat", " cat", "Cat", " Cat", "CAT", " CAT"):
        print(f"{word!r:8s} number {encode(word)}")
    silent = [byte for byte in range(256) if signs_of[byte] not in number_of]
    print(len(silent), "of the 256 bytes have no token")
    assert len({*map(tuple, map(encode, ("cat", " cat", "Cat", " Cat", "CAT", " CAT")))}) == 6
    cuts = [len(encode(word)) for word in (" strawberries", " raspberry")]
why = "What was frequent became one number, r's and all; a rarer word of the same kind is in pieces."
if published:
    reply("guess_strawberries", guess_strawberries, cuts[0], why)
    reply("guess_raspberry", guess_raspberry, cuts[1])
    assert cuts == [1, 2] and len(silent) == 21

# %% [markdown]
# Six numbers for one cat, and no letter in any of them. That `Cat` and ` cat` have to do with each other
# is something the model learns from texts. And "nothing is unknown" holds only if all 256 bytes are
# tokens. Here 21 are not. Thirteen of these occur in no text at all (UTF-8 does not use them), the other
# eight in control characters and in signs that do not exist yet; the library drops them without a word.
# Your `encode` stops with a `KeyError`.
#
# ### Longest first, on a published list
#
# How often does the rule matter? We cut the words of the help texts with this list of tokens twice:
# by merges, and longest piece first with your `wordpiece` of lesson 12.

# %% tags=["demonstration", "nbval-ignore-output"]
if published:
    inner_and_first = number_of | {"##" + token: number for token, number in number_of.items()}
    plain_words = sorted({word for word in word_counts if re.fullmatch(" [a-z]+", word)})
    otherwise = []
    for word in plain_words:
        pieces = wordpiece(word.replace(" ", "Ġ"), inner_and_first)
        longest_first = [number_of[piece.removeprefix("##")] for piece in pieces]
        if encode(word) != longest_first:
            otherwise.append((word, longest_first))
    share = len(otherwise) / len(plain_words)
    print(f"cut otherwise: {len(otherwise)} of {len(plain_words)} words, {share:.0%}")
    for word, longest_first in [*otherwise[::16], *(pair for pair in otherwise if pair[0] == " recursively")]:
        print(f"{word.strip():15s} by merges: {shown(encode(word)):20s}"
              f" longest first: {shown(longest_first)}")  # fmt: skip
    assert 0.02 < share < 0.12
    assert shown(encode(" recursively")) == "_recurs ively"

# %% [markdown]
# One in twenty of the different words. Longest first often looks *better* to us: `recursive ly`, where
# the merges give `recurs ively`. But the model was trained on the cut by merges. A tokenizer and its
# model belong together, and a cut that is as good or better is, for this model, a text with strange
# tokens. No error tells you.
#
# ### Other languages pay more
#
# The first sentence of the Universal Declaration of Human Rights says the same in every language.
# **Predict, then run:** English takes 13 tokens. How many times as many does Hindi take?

# %% tags=["demonstration", "guess"]
guess_hindi = 2.0  # write a number

# %% tags=["demonstration", "nbval-ignore-output"]
declaration = {
    "English": "All human beings are born free and equal in dignity and rights.",
    "Swahili": "Watu wote wamezaliwa huru, hadhi na haki zao ni sawa.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "Spanish": "Todos los seres humanos nacen libres e iguales en dignidad y derechos.",
    "Chinese": "人人生而自由，在尊严和权利上一律平等。",
    "Finnish": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan.",
    "Arabic": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.",
    "Russian": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "Japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
}
if published:
    counts = {name: (len(encode(one)), len(one)) for name, one in declaration.items()}
    figure, axes = plt.subplots(figsize=(7.0, 3.8))
    bars = axes.barh(list(counts), [tokens for tokens, _ in counts.values()], color="tab:blue")
    axes.bar_label(bars, padding=3)
    axes.invert_yaxis()
    axes.set(xlabel="tokens for the same sentence")
    figure.tight_layout()
    show(
        figure,
        "Figure 2. The same sentence in eleven languages. Who writes Hindi pays seven times as much as who "
        "writes English, where tokens are paid for, and fills the model's context seven times as fast.",
        "Bars: English 13 tokens; Swahili, German and Spanish about 25; Chinese, Finnish and Arabic 30 to "
        "45; Russian 54, Greek and Japanese about 70, Hindi 92.",
        text_table(np.array(list(counts.values())), list(counts), ["tokens", "characters"], corner="language"),
    )
    times = counts["Hindi"][0] / counts["English"][0]
    assert 6 < times < 8 and min(tokens for tokens, _ in counts.values()) == counts["English"][0] == 13
why = "Its letters are three bytes each, and few merges join them."
if published:
    reply("guess_hindi", guess_hindi, times, why, within=1)

# %% [markdown]
# Two causes. UTF-8 writes the Hindi sentence in 233 bytes and the English one in 63, 3.7 times as many,
# before any merge. The other factor of 1.9 is the merges, learnt from texts that are mostly English.
# Swahili shows the second alone: fewer bytes than English (53), and 23 tokens. (Measured for many
# tokenizers: Petrov, La Malfa, Torr and Bibi, 2023.)
#
# ### Arithmetic: where is the column of ones?
#
# This tokenizer cuts each digit alone; GPT-2's did not. What merges do to numbers needs no package:
# we learn 60 merges from the numbers 1 to 1999, the small ones more frequent, as in texts.

# %% tags=["demonstration"]
numbers = {str(number): 10_000 // number for number in range(1, 2000)}
number_merges = learn_merges(numbers, 60)
for number in (127, 1270, 1271, 1480, 3127, 12700):
    print(f"{number:6d}  cut as", *merge_pairs(list(str(number)), number_merges))
by_shape = Counter(
    " + ".join(str(len(piece)) for piece in merge_pairs(list(str(number)), number_merges))
    for number in range(1000, 10_000)
)
print("\nnumbers of four digits, by the lengths of their pieces:")
for shape, count in by_shape.most_common():
    print(f"  {shape:14s}{count:5d}")
assert len(by_shape) >= 4 and by_shape.most_common(1)[0][1] < 8000

# %% [markdown]
# Look at 1270 and 1271: one more, and cut otherwise. In a sum, the ones stand below the ones. Here the
# last token is the ones of some numbers and the tens and ones of others, so that no column has a place
# of its own; the model has to learn for each token what it is worth, and where. With one token a digit
# the columns are at least there. (Nogueira, Jiang and Lin, 2021, and Singh and Strouse, 2024, asked
# models with other cuts of numbers, and found that the cut matters much. That is not shown here.)
# %% [markdown]
# ## 5. What a number of loss means
#
# The loss of lesson 10 is nats **a token**. A friend has a loss of 1.2, you have one of 3.0, on the same
# text. The friend's tokens are characters, yours hold four characters each. Who predicts better?
#
# A token of four characters is four predictions in one. So spread the loss over what the tokens spell:
# the nats of all tokens together, divided by the number of characters, and in bits, since a bit is
# $\ln 2$ nats:
#
# $$\text{bits a character} = \frac{\text{loss} \cdot \text{number of tokens}}
# {\ln 2 \cdot \text{number of characters}}$$
#
# The friend: $1.2 / 0.693 = 1.73$. You: $3.0 / (4 \cdot 0.693) = 1.08$. It is also what a file would
# need: an ideal compressor that uses your model writes the text in 1.08 bits a character (Shannon, 1948;
# he let people guess letters in 1951, and came to between 0.6 and 1.3 bits for English).

# %% [markdown]
# ### Exercise 3: `bits_per_character`
#
# Difficulty: ●○○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 5 minutes on it.
#
# - `bits_per_character(loss, num_tokens, num_characters)`: `loss` is the mean cross-entropy in nats a
#   token, over `num_tokens` tokens that spell `num_characters` characters. It returns a float.
# - `ValueError`: a count below 1.


# %% answer="bits_per_character"
def bits_per_character(loss, num_tokens, num_characters):
    """A loss a token as bits a character, which does not depend on how the text was cut.

    Args:
        loss: mean cross-entropy in nats a token.
        num_tokens: how many tokens it is the mean of.
        num_characters: how many characters these tokens spell.

    Returns:
        A float.

    Raises:
        ValueError: a count below 1.
    """
    ### BEGIN SOLUTION
    if num_tokens < 1 or num_characters < 1:
        raise ValueError(f"num_tokens {num_tokens} and num_characters {num_characters} have to be at least 1")
    return loss * num_tokens / num_characters / math.log(2)
    ### END SOLUTION


# %% check="bits_per_character" points=2 card=["the nats of all tokens together, divided by the number of characters, and in bits", "the mean cross-entropy in nats a token, over `num_tokens` tokens that spell `num_characters` characters", "`ValueError`: a count below 1"]
with check("a token a character: nats become bits", points=1):
    message = "ln 2 nats are one bit, and here each token is one character."
    assert_close(bits_per_character(math.log(2), 10, 10), 1.0, f"A loss of ln 2. {message}")
    assert_close(bits_per_character(math.log(8), 5, 5), 3.0, f"A loss of ln 8. {message}")
with check("counts below 1", points=0.5, side=True):
    for tokens, characters in ((0, 5), (5, 0)):
        with assert_raises(ValueError, f"{tokens} tokens, {characters} characters: a ValueError."):
            bits_per_character(1.0, tokens, characters)
with check("tokens of several characters", points=0.5):
    message = "A loss of 3.0 nats; 100 tokens spell 400 characters: 300 nats for 400 characters."
    assert_close(bits_per_character(3.0, 100, 400), 300 / 400 / 0.6931471805599453, message)
    message = "A loss of ln 2; 20 tokens spell 10 characters (a token may be a part of one): 2 bits."
    assert_close(bits_per_character(math.log(2), 20, 10), 2.0, message)
checks_passed("bits_per_character")


# %% check="bits_per_character_numbers" points=1 card=["the nats of all tokens together, divided by the number of characters, and in bits", "`ValueError`: a count below 1"]
# Hidden checks of bits_per_character: other numbers; a loss of 0; counts below 1.
### BEGIN HIDDEN TESTS
rng = check_rng()
with check("other losses and counts", points=0.4):
    for _ in range(8):
        loss = float(rng.uniform(0.1, 6))
        tokens, characters = (int(number) for number in rng.integers(1, 1000, size=2))
        message = f"loss {loss}, {tokens} tokens that spell {characters} characters."
        expected = loss * tokens / (characters * float(np.log(2)))
        assert_close(bits_per_character(loss, tokens, characters), expected, message)
with check("a loss of 0", points=0.1, side=True):
    message = "A loss of 0: every token was certain, and a character costs 0 bits."
    assert_close(bits_per_character(0.0, 3, 7), 0.0, message)
with check("a count of tokens below 1", points=0.25, side=True):
    for tokens in (0, -2):
        with assert_raises(ValueError, f"{tokens} tokens, 5 characters: a ValueError."):
            bits_per_character(1.0, tokens, 5)
with check("a count of characters below 1", points=0.25, side=True):
    for characters in (0, -1):
        with assert_raises(ValueError, f"5 tokens, {characters} characters: a ValueError."):
            bits_per_character(1.0, 5, characters)
checks_passed("bits_per_character")
### END HIDDEN TESTS

# %% [markdown]
# ### Short answer 2: `answer_compare`
#
# The same held-out text. Model A: 2.0 nats a token, its tokens hold 2.5 characters in the mean. Model
# B: 3.1 nats a token, its tokens hold 4.4. Which sentence is right?
#
# - a) A predicts the text better: 2.0 is less than 3.1.
# - b) B predicts the text better: about 1.02 bits a character against 1.15.
# - c) They cannot be compared, since their vocabularies differ.
# - d) B predicts the text better: its tokens are longer.

# %% answer="answer_compare"
### BEGIN SOLUTION
answer_compare = "b"
### END SOLUTION

# %% check="answer_compare" points=1
check_answer("answer_compare", answer_compare)

# %% [markdown]
# ## 6. The model to beat
#
# Before a neural model is praised, ask what **counting** can do. An **n-gram** model of order $N$ looks
# at the last $N - 1$ characters, the context, and counts what came after them in the text. With order
# 3 and the context "th", it is the share of e, i, a, ... among all that followed "th".
#
# The counts have holes: a context that never occurred, a character that never came after it. A
# probability of 0 costs infinitely many bits. So the share is **mixed with the model of the next
# shorter context**, which drops the oldest character, and that again with a shorter one, down to
# "all characters of the text are equally likely". By how much? Witten and Bell (1991): if the context
# occurred $c$ times and $t$ *different* characters came after it,
#
# $$p = \frac{c \cdot \text{share} + t \cdot p_\text{shorter}}{c + t}$$
#
# A context that was followed by many different things expects one more new thing. By hand, on the text
# "banana" (three different characters: each 1/3 at the very bottom):
#
# | context | what followed | $c$ | $t$ | $p$(a) | $p$(n) | $p$(b) |
# |---|---|---|---|---|---|---|
# | none (order 1) | b a n a n a | 6 | 3 | (3 + 3/3)/9 = 4/9 | (2 + 3/3)/9 = 3/9 | (1 + 3/3)/9 = 2/9 |
# | "a" (order 2) | n, n; the last a is followed by nothing | 2 | 1 | (0 + 4/9)/3 = 4/27 | (2 + 3/9)/3 = 7/9 | (0 + 2/9)/3 = 2/27 |
# | "n" (order 2) | a, a | 2 | 1 | (2 + 4/9)/3 = 22/27 | (0 + 3/9)/3 = 1/9 | (0 + 2/9)/3 = 2/27 |
# | "x" (order 2) | never seen: as without context | | | 4/9 | 3/9 | 2/9 |
#
# ($c \cdot \text{share}$ is just the count of the character.)

# %% [markdown]
# ### Exercise 4: `NgramModel`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 25-30 minutes on it.
#
# - `NgramModel(order)`; `fit(text)` counts and returns the model itself; a second `fit` starts anew.
# - `probability(character, context)`: `character` is one character, `context` a text. It looks at the
#   last `order - 1` characters of the context; a shorter context is used whole.
# - Mixed as above. A context that was never followed by anything in the text is the next shorter one
#   alone. Below order 1 stands the uniform distribution over the different characters of the text; a
#   character that the text does not hold has probability 0.
# - The text is not padded: nothing stands before its first character or after its last.
# - `ValueError`: `order` below 1, or `fit("")`.


# %% answer="NgramModel"
class NgramModel:
    """Characters by counting, mixed with shorter contexts after Witten and Bell."""

    def __init__(self, order):
        """A model that looks at order - 1 characters. ValueError: order is below 1."""
        ### BEGIN SOLUTION
        if order < 1:
            raise ValueError(f"order is {order}, and has to be at least 1")
        self.order = order
        ### END SOLUTION

    def fit(self, text):
        """Count the text anew, and return the model itself. ValueError: text is empty."""
        ### BEGIN SOLUTION
        if not text:
            raise ValueError("text is empty: nothing can be counted")
        self.followers = {}  # by context: how often each character came after it
        for place, character in enumerate(text):
            for length in range(min(self.order - 1, place) + 1):
                context = text[place - length : place]
                self.followers.setdefault(context, Counter())[character] += 1
        self.occurrences = {context: after.total() for context, after in self.followers.items()}
        return self
        ### END SOLUTION

    def probability(self, character, context):
        """The probability, a float, that this character comes after the context, a text."""
        ### BEGIN SOLUTION
        known = self.followers[""]
        p = 1 / len(known) if character in known else 0.0
        for length in range(min(self.order - 1, len(context)) + 1):  # the shortest context first
            used = context[len(context) - length :]
            if used not in self.followers:
                break  # then a longer one was not seen either
            after, c = self.followers[used], self.occurrences[used]
            p = (after[character] + len(after) * p) / (c + len(after))
        return p
        ### END SOLUTION


# %% check="NgramModel" points=4 card=["Mixed as above", "It looks at the last `order - 1` characters of the context", "A context that was never followed by anything in the text is the next shorter one alone", "a character that the text does not hold has probability 0", "`fit(text)` counts and returns the model itself", "`ValueError`: `order` below 1, or `fit(\"\")`"]
@probe
def probabilities(order, text, questions):
    model = NgramModel(order)
    returned = model.fit(text)
    return [float(model.probability(*one)) for one in questions], returned is model


each = [("a", ""), ("n", ""), ("b", "")]
with check("order 1, by hand", points=1):
    message = "The text 'banana', order 1, no context: a occurs 3 times, n 2, b 1, of 6, and t is 3."
    found, _ = probabilities(1, "banana", each)
    assert_close(np.array(found), np.array([4, 3, 2]) / 9, message, name="p of a, n, b")
with check("order 2, by hand", points=1):
    message = "'banana', order 2, after 'a': n came twice, and nothing after the last a. c = 2, t = 1."
    found, _ = probabilities(2, "banana", [("a", "a"), ("n", "a"), ("b", "a")])
    assert_close(np.array(found), np.array([4, 21, 2]) / 27, message, name="p of a, n, b")
    message = "'banana', order 2, after 'n': a came twice. c = 2, t = 1."
    found, _ = probabilities(2, "banana", [("a", "n"), ("n", "n"), ("b", "n")])
    assert_close(np.array(found), np.array([22, 3, 2]) / 27, message, name="p of a, n, b")
with check("order 3; a long context: its last two characters", points=1):
    message = "'banana', order 3, after 'an': a twice, so (2 + p)/3, where p = 22/27 is that after 'n'."
    found, _ = probabilities(3, "banana", [("a", "an"), ("a", "ban")])
    assert_close(np.array(found), np.array([76, 76]) / 81, message, name="p after 'an', after 'ban'")
with check("what was never seen", points=0.5):
    message = "'banana', order 2, after 'x', which the text does not hold: as without a context."
    found, _ = probabilities(2, "banana", [("a", "x"), ("n", "x"), ("b", "x")])
    assert_close(np.array(found), np.array([4, 3, 2]) / 9, message, name="p of a, n, b")
    message = "'banana' holds no x: its probability is 0, after '' and after 'a'. That of a is not."
    found, _ = probabilities(2, "banana", [("x", ""), ("x", "a"), ("a", "")])
    assert_close(np.array(found), np.array([0, 0, 4]) / 9, message, name="p of x, x, a")
with check("fit returns the model", points=0.25):
    _, is_model = probabilities(1, "banana", each)
    assert_equal(is_model, True, "fit should return the model itself.", name="'fit(...) is model'")
with check("an order below 1, an empty text", points=0.25, side=True):
    for order, text in ((0, "abc"), (2, "")):
        with assert_raises(ValueError, f"order {order} and the text {text!r}: a ValueError, at the latest when it is fitted."):
            probabilities(order, text, [])
checks_passed("NgramModel")


# %% check="NgramModel_texts" points=3 card=["Mixed as above", "It looks at the last `order - 1` characters of the context; a shorter context is used whole", "A context that was never followed by anything in the text is the next shorter one alone", "Below order 1 stands the uniform distribution over the different characters of the text", "nothing stands before its first character or after its last"]
# Hidden checks of NgramModel: random texts, orders 1 to 5; unseen contexts; sums.
### BEGIN HIDDEN TESTS
@probe
def probabilities(order, text, questions):
    model = NgramModel(order)
    model.fit(text)
    return [float(model.probability(*one)) for one in questions]


def expected(order, text, character, context):
    """By going through the text for each question."""
    context = context[max(len(context) - order + 1, 0) :]
    places = [i for i in range(len(text)) if i >= len(context) and text[i - len(context) : i] == context]
    after = [text[i] for i in places]
    if context:
        shorter = expected(order, text, character, context[1:])
    else:
        shorter = (character in text) / len(set(text))
    different = len(set(after))
    return (after.count(character) + different * shorter) / (len(after) + different) if after else shorter


rng = check_rng()


def drawn(letters, size):
    return "".join(map(str, rng.choice(list(letters), size=size)))


def compare(order, text, questions, asked):
    """Each probability against the one that the text gives."""
    message = f"text {text!r}, order {order}: {asked}"
    right = np.array([expected(order, text, *one) for one in questions])
    found = np.array(probabilities(order, text, questions))
    assert_close(found, right, message, name=f"the probabilities for (character, context) {questions}")


with check("contexts that occur in the text, orders 1 to 5", points=1.5):
    for order in (1, 2, 3, 4, 5):
        text = drawn("abc", 60) + "abc"
        places = [int(i) for i in rng.integers(8, 60, size=8)]
        questions = [(text[i], text[i - order + 1 : i]) for i in places]
        questions += [("a", text[i - 8 : i]) for i in places]
        compare(order, text, questions, "the last order - 1 characters count, mixed as the card says.")
with check("contexts that do not, and shorter ones", points=1):
    for order in (2, 3, 5):
        text = drawn("abé ", 12)
        questions = [(one, drawn("abé x", int(k))) for one in "aé" for k in rng.integers(0, 7, size=10)]
        asked = "a context never followed by anything is the next shorter one alone; a short one is used whole."
        compare(order, text, questions, asked)
    questions = [("a", " "), ("a", "  "), (" ", "b "), ("b", "aa"), ("a", "ab")]
    compare(3, " a  ab", questions, "nothing stands before the text or after it.")
with check("a sum of 1 over the characters of the text", points=0.5):
    for order in (1, 3):
        text, context = drawn("abcd", 20), drawn("abcdx", 4)
        message = f"text {text!r}, order {order}, context {context!r}: the probabilities of its characters."
        found = probabilities(order, text, [(one, context) for one in sorted(set(text))])
        assert_close(sum(found), 1.0, message, name="their sum")
checks_passed("NgramModel")
### END HIDDEN TESTS


# %% check="NgramModel_edges" points=1 card=["`fit(text)` counts and returns the model itself; a second `fit` starts anew", "`ValueError`: `order` below 1, or `fit(\"\")`"]
# Hidden checks of NgramModel: a second fit, two models; a text of one character; errors.
### SIDE CONDITION: counts once another check of NgramModel passes.
### BEGIN HIDDEN TESTS
@probe
def after_other_texts(text, questions):
    alone = NgramModel(2)
    alone.fit(text)
    used, other = NgramModel(2), NgramModel(3)
    used.fit("cabbage")
    used.fit(text)
    other.fit("abracadabra")
    return [[float(model.probability(*one)) for one in questions] for model in (used, alone)]


@probe
def in_one_line(text, character, context):
    model = NgramModel(2)
    model.fit(text)
    two_lines = float(model.probability(character, context))
    return float(NgramModel(2).fit(text).probability(character, context)), two_lines


@probe
def error_of(order, text):
    try:
        NgramModel(order).fit(text)
    except ValueError:
        return "ValueError"
    except NotImplementedError:
        raise
    except Exception as error:
        return type(error).__name__
    return "nothing"


questions = [("a", "b"), ("n", "a"), ("g", "a"), ("b", "")]
with check("fit and probability in one line", points=0.25):
    message = "NgramModel(2).fit('banana').probability('n', 'a'): as in two lines."
    found, two_lines = in_one_line("banana", "n", "a")
    assert_close(found, two_lines, message, name="p of n after a", against="in two lines")
with check("a second fit starts anew, another model does not disturb", points=0.25):
    message = "fit on 'cabbage', then on 'banana': as one that was fitted on 'banana' alone."
    used, alone = after_other_texts("banana", questions)
    assert_close(np.array(used), np.array(alone), message, against="fitted once")
with check("errors", points=0.5):
    for order, text in ((0, "abc"), (-2, "abc"), (2, ""), (1, "")):
        message = f"order {order} and the text {text!r}: a ValueError, at the latest when it is fitted."
        assert_equal(error_of(order, text), "ValueError", message, name="the error")
    message = "order 3 and the text 'a', of one character: no error."
    assert_equal(error_of(3, "a"), "nothing", message, name="the error")
checks_passed("NgramModel")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# One dictionary for all lengths: context, from "" up to `order - 1` characters, to a `Counter` of what
# came after it. `probability` begins with the uniform distribution and goes up, from the shortest
# context to the longest that was seen; each step is one line, the formula. `context[-k:]` with `k = 0`
# is the whole text, not an empty one.
#
# </details>
#
# ### Orders 1 to 8 on real text
#
# **Predict, then run.** The model counts the text to learn from. Which order, 1 to 8, has the fewest
# bits a character on the held-out text?

# %% tags=["demonstration", "guess"]
guess_order = 8  # write a number from 1 to 8


# %% tags=["demonstration"]
def bits_by_counting(model, text):
    """Bits a character of a text, each after the characters before it."""
    nats = 0.0
    for place, character in enumerate(text):
        context = text[max(0, place - model.order + 1) : place]
        nats -= math.log(model.probability(character, context))
    return bits_per_character(nats / len(text), len(text), len(text))


# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Python's texts are counted, see section 3.
ngrams = {order: NgramModel(order).fit(manual) for order in range(1, 9)}
bits_learnt = [bits_by_counting(model, manual[:10_000]) for model in ngrams.values()]
bits_held = [bits_by_counting(model, held_out) for model in ngrams.values()]
sevens = Counter(manual[i : i + 7] for i in range(len(manual) - 7))
times_seen = np.array([sevens[held_out[i : i + 7]] for i in range(len(held_out) - 7)])
print(f"contexts of 7 characters: never seen {np.mean(times_seen == 0):.0%}, once {np.mean(times_seen == 1):.0%}")
figure, axes = plt.subplots(figsize=(6.5, 3.6))
axes.plot(range(1, 9), bits_held, "-o")
axes.plot(range(1, 9), bits_learnt, "--o", mfc="white")
axes.text(8, bits_held[-1] + 0.3, "held-out text", color="C0", ha="right")
axes.text(5.8, bits_learnt[5] - 0.5, "the text that was counted", color="C1", ha="right")
axes.annotate(f"least: {min(bits_held):.2f}", (1 + int(np.argmin(bits_held)), min(bits_held)), (0, 8), textcoords="offset points", ha="center")  # fmt: skip
axes.set(xlabel="order", ylabel="bits a character", ylim=(0, None))
figure.tight_layout()
show(
    figure,
    "Figure 3. Longer contexts help until too many of them have been seen once or never. From there on "
    "the model learns its own text by heart, and gets worse on the other.",
    "Bits a character against the order. Held-out text: from 4.6 down to about 1.8 at orders 5 and 6, "
    "then slowly up. The text that was counted: down all the way, below 1.",
    text_table(np.array([bits_held, bits_learnt]), ["held out", "counted"], [str(k) for k in ngrams], corner="order"),
)
best_order = 1 + int(np.argmin(bits_held))
assert best_order in (5, 6, 7) and bits_held[7] > min(bits_held) + 0.03
assert all(a > b for a, b in pairwise(bits_learnt)) and bits_learnt[7] < 1.1
assert np.mean(times_seen == 0) > 0.22 and np.mean(times_seen == 1) > 0.07
assert bits_held[0] > 4 and 1.5 < min(bits_held) < 2.0
reply("guess_order", guess_order, best_order, "Its neighbours are nearly as good.", within=1)

# %% [markdown]
# Shannon (1948) wrote texts with such counts by hand. From order 1 to order 5 the bits fall by more
# than half. Then it turns: of the contexts of seven characters in the held-out text more than a fifth were
# never seen, and some more only once, with one follower. The dashed curve is the warning of every lesson: on the text that was
# counted, the model always gets better.
#
# ### The same model on tokens
#
# `NgramModel` counts characters. Tokens are symbols as well: write each as **one sign** of a large
# alphabet, and your model counts tokens. With the 200 merges of section 3 an order of 3 then sees two
# tokens, which are four characters in the mean, and once in a while twenty.

# %% tags=["demonstration", "nbval-ignore-output"]
# Python's texts are counted, see section 3.
vocabulary = sorted(set(manual)) + ["".join(pair) for pair in merges]
tokens, held_tokens = cut(manual, merges), cut(held_out, merges)
sign_of = {token: chr(0x4E00 + number) for number, token in enumerate(vocabulary)}
signs = "".join(sign_of[token] for token in tokens + vocabulary)  # so none is impossible
held_signs = "".join(sign_of[token] for token in held_tokens)
bits_of_tokens = {}
for order in range(1, 6):
    model = NgramModel(order).fit(signs)
    nats = bits_by_counting(model, held_signs) * math.log(2)
    bits_of_tokens[order] = bits_per_character(nats, len(held_tokens), len(held_out))
    print(f"order {order}: {nats:.2f} nats a token; "
          f"{bits_of_tokens[order]:.2f} bits a character, on characters {bits_held[order - 1]:.2f}")  # fmt: skip
    if order == 3:
        nats_counted_tokens = nats
assert all(bits_of_tokens[order] < bits_held[order - 1] - 0.15 for order in (1, 2, 3))
assert min(bits_of_tokens, key=bits_of_tokens.get) == 4
assert abs(bits_of_tokens[3] - min(bits_held)) < 0.15

# %% [markdown]
# At the same order, tokens need far fewer bits: two tokens reach as far as four or five characters. Where
# each is at its best, tokens need 1.64 bits (order 4) and characters 1.74. What tokens buy is **reach**. For
# counting that is a tenth of a bit. For a model whose work grows with the number of tokens it is much more,
# as you will see.
#
# ## 7. Your GPT on the same text
#
# Now lesson 10's GPT, two blocks, `d_model` 64, windows of 64 tokens. One reads characters, the other
# tokens; both make 400 steps on 16 windows, which takes each about ten seconds. Both are scored on the
# held-out text, each token with at least 32 tokens before it.
#
# **Predict, then run.** Which needs the fewest bits a character: the GPT on characters, the GPT on
# tokens, or counting (order 5)?

# %% tags=["demonstration", "guess"]
guess_best = "tokens"  # write "characters", "tokens" or "counting"


# %% tags=["demonstration"]
n = 64


def numbers_of(tokens, vocabulary):
    """The tokens' places in the vocabulary, a torch tensor."""
    place = {token: number for number, token in enumerate(vocabulary)}
    return torch.tensor([place[token] for token in tokens])


def train(numbers, vocab_size, what, steps=400, seed=0, rate=5e-3):
    """A GPT after so many steps on 16 windows each; the rate falls to 0 in the second half."""
    torch.manual_seed(seed)
    model, rng = GPT(vocab_size, 64, 4, 256, 2, n), np.random.default_rng(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in progress(steps, what):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 20, 2 * (steps - step) / steps)
        starts = torch.tensor(rng.integers(len(numbers) - n, size=16))
        training_step(model, optimizer, numbers[starts[:, None] + torch.arange(n)])
    return model


@torch.no_grad()
def scored(model, numbers, vocabulary):
    """Nats a token and bits a character; each token has at least n / 2 before it."""
    lengths = torch.tensor([len(token) for token in vocabulary])
    nats, num_tokens, num_characters = 0.0, 0, 0
    for windows in numbers.unfold(0, n, n // 2).split(64):  # (64, n); they overlap by half
        targets = windows[:, n // 2 :]
        guesses = model(windows)[:, n // 2 - 1 : -1]  # (64, n / 2, vocab_size)
        losses = nn.functional.cross_entropy(guesses.flatten(0, 1), targets.flatten(), reduction="none")
        nats += losses.sum().item()
        num_tokens += targets.numel()
        num_characters += lengths[targets].sum().item()
    return nats / num_tokens, bits_per_character(nats / num_tokens, num_tokens, num_characters)


# %% tags=["demonstration", "nbval-ignore-output"] seconds=10
# Trained numbers: they may differ in the last digits on another machine.
characters = sorted(set(manual))
on_characters = train(numbers_of(manual, characters), len(characters), "on characters")

# %% tags=["demonstration", "nbval-ignore-output"] seconds=10
# Trained numbers, see above.
on_tokens = train(numbers_of(tokens, vocabulary), len(vocabulary), "on tokens")

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers, see above.
results = {
    "counting, order 5\non characters": (bits_held[4] * math.log(2), bits_held[4]),
    "counting, order 3\non tokens": (nats_counted_tokens, bits_of_tokens[3]),
    "GPT, 400 steps\non characters": scored(on_characters, numbers_of(held_out, characters), characters),
    "GPT, 400 steps\non tokens": scored(on_tokens, numbers_of(held_tokens, vocabulary), vocabulary),
}
figure, panels = plt.subplots(1, 2, figsize=(8.1, 3.2), sharey=True)
for axes, place, label, rank in zip(panels, (0, 1), ("nats a token", "bits a character"), ("last of the four", "third of the four")):
    bars = axes.barh(list(results), [pair[place] for pair in results.values()], color=["tab:gray"] * 2 + ["tab:blue"] * 2)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.text(0.1, 3, rank, color="white", va="center")
    axes.set(xlabel=label, xlim=(0, 1.15 * max(pair[place] for pair in results.values())))
panels[0].invert_yaxis()
figure.tight_layout()
show(
    figure,
    "Figure 4. The loss a token puts the GPT on tokens last. In bits a character it is far better than "
    "the GPT on characters. Counting beats both.",
    "Four bars in two units. Nats a token: about 1.2, 2.3, 2.1, 3.3. Bits a character: about 1.8, 1.7, "
    "3.0, 2.3. Counting on characters and on tokens, then the GPT on characters and on tokens.",
    text_table(
        np.array(list(results.values())),
        [name.replace("\n", " ") for name in results],
        ["nats a token", "bits a character"],
        corner="model",
    ),
)
(_, counted), (_, counted_tokens), (loss_c, bits_c), (loss_t, bits_t) = results.values()
assert loss_t > loss_c + 0.6 and bits_t < bits_c - 0.3
assert max(counted, counted_tokens) < bits_t - 0.2
reply("guess_best", guess_best, "counting", "After ten seconds of training; Figure 5 shows more.")

# %% [markdown]
# Two findings. **Tokens help a GPT**: in the same number of steps it sees twice as much text,
# its window reaches twice as far, and it has less to spell. And **counting wins**, clearly. A GPT has to
# find out by gradient descent what counting reads off. What the samples look like:

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers, see above.
def write_counted(model, size, seed=0):
    """A text of so many characters after "The ", each drawn from the model."""
    rng, written = np.random.default_rng(seed), "The "
    while len(written) < size:
        p = np.array([model.probability(one, written[-model.order :]) for one in characters])
        written += rng.choice(characters, p=p / p.sum())
    return written


@torch.no_grad()
def write(model, vocabulary, begin, size, seed=0):
    """The same from a GPT; it reads the last n tokens."""
    generator = torch.Generator().manual_seed(seed)
    numbers = numbers_of(begin, vocabulary).tolist()
    while len("".join(vocabulary[number] for number in numbers)) < size:
        p = model(torch.tensor(numbers[-n:]))[-1].softmax(-1)
        numbers.append(int(torch.multinomial(p, 1, generator=generator)))
    return "".join(vocabulary[number] for number in numbers)


for name, written in (
    ("counting, order 2", write_counted(ngrams[2], 160)),
    ("counting, order 5", write_counted(ngrams[5], 160)),
    ("GPT on characters", write(on_characters, characters, "The ", 160)),
    ("GPT on tokens", write(on_tokens, vocabulary, cut("The ", merges), 160)),
):
    print(f"{name}:", written.replace("\n", " / "), sep="\n   ", end="\n\n")

# %% [markdown]
# All at temperature 1, one sample each. A line break is printed as `/`.
#
# ### Where would that end?
#
# Counting has one way to get better: more text. Training has two: more text and more steps. The left
# panel takes an eighth, a quarter, a half and all of the text, the right one more steps. A part of the text is
# learnt by heart sooner, so each share has its own best number of steps: of 400, 800, 1600 and 3200 (for all of the
# text, of those in the right panel). The GPTs of both would take half an hour; they were **recorded** with the same
# code, on the help texts of Python 3.11, with one seed.

# %% tags=["demonstration", "nbval-ignore-output"]
# Python's texts are counted, see section 3.
shares = [1 / 8, 1 / 4, 1 / 2, 1]
by_share = [bits_by_counting(NgramModel(5).fit(manual[-int(share * len(manual)) :] + "".join(characters)), held_out) for share in shares]
recorded_steps = [400, 1600, 6400]
recorded_bits = {"GPT on characters": [3.00, 1.88, 1.70], "GPT on tokens": [2.30, 1.73, 2.24]}
recorded_by_share = {"GPT on characters": [2.43, 2.02, 1.70], "GPT on tokens": [2.60, 2.15, 1.73]}  # a quarter, half, all
recorded_learnt = {"GPT on characters": [2.88, 1.63, 1.19], "GPT on tokens": [2.13, 1.29, 0.59]}  # on the text learnt from
figure, (left, right) = plt.subplots(1, 2, figsize=(8.1, 3.6), sharey=True)
left.set_ylim(0, 3.2)
left.semilogx(shares, by_share, "-^", color="tab:gray", base=2)
left.text(shares[0], by_share[0] + 0.15, "counting, order 5", color="tab:gray")
labels = {"GPT on characters": ("tab:blue", "o", (1, 1.45), "right"), "GPT on tokens": ("tab:orange", "s", (0.27, 2.6), "left")}
for name, (colour, marker, place, side) in labels.items():
    left.semilogx(shares[1:], recorded_by_share[name], "-", marker=marker, color=colour, base=2)
    left.text(*place, name, color=colour, ha=side)
left.set(xlabel="share of the text", ylabel="bits a character, held out", title="more text")
left.set_xticks(shares, ["1/8", "1/4", "1/2", "1"])
for name, (colour, marker, *_) in labels.items():
    right.semilogx(recorded_steps, recorded_bits[name], "-", marker=marker, color=colour)
    right.semilogx(recorded_steps, recorded_learnt[name], ":", marker=marker, mfc="white", color=colour)
    right.text(7600, recorded_bits[name][-1] - 0.05, name.removeprefix("GPT "), color=colour, fontsize=9, va="center")
    by_heart = "learnt by heart" if name == "GPT on tokens" else "its own text"
    right.text(7600, recorded_learnt[name][-1], by_heart, color=colour, fontsize=9, va="center")
right.axhline(by_share[-1], color="tab:gray", ls="--")
right.text(380, by_share[-1] - 0.17, "counting", color="tab:gray", fontsize=9, va="center")
right.set(xlabel="steps", title="more steps", xlim=(340, 32_000))
right.set_xticks(recorded_steps, list(map(str, recorded_steps)))
right.minorticks_off()
figure.tight_layout()
show(
    figure,
    "Figure 5. Left: with four times the text counting gains about half a bit, the GPT on tokens 0.9. Right (dotted: the "
    "text learnt from): after 6400 steps the GPT on tokens knows its own text by heart and is worse on the other.",
    "Two panels. Counting on 1/8, 1/4, 1/2 and all of the text: about 2.7, 2.3, 2.0, 1.8 bits. GPT at its "
    "best steps on a quarter, half and all: on characters 2.43, 2.02, 1.70; on tokens 2.60, 2.15, 1.73. GPT after 400, 1600 and 6400 steps "
    "on all of it: on characters 3.00, 1.88, 1.70; on tokens 2.30, 1.73, 2.24, while on the text learnt from it "
    "falls to 0.59. A dashed line at about 1.8: counting on all the text.",
    text_table(np.array([by_share]), ["counting, order 5"], ["1/8", "1/4", "1/2", "all"], corner="share of the text")
    + "\n\n"
    + text_table(
        np.array([*recorded_bits.values(), *recorded_learnt.values()]),
        [*recorded_bits, *(f"{name}, text learnt from" for name in recorded_learnt)],
        list(map(str, recorded_steps)),
        corner="recorded, steps",
    ),
)
assert all(a > b + 0.05 for a, b in pairwise(by_share))
assert all(best[0] - best[-1] > by_share[1] - by_share[-1] + 0.1 for best in recorded_by_share.values())

# %% [markdown]
# Told as it comes out: after 1600 steps, less than a minute, the GPTs are near counting at order 5, and
# none of them reaches the best counting of section 6. With 6400 steps the one on characters is a little
# below the grey line, and the one on tokens recites. And more text? From a quarter of it to all, each at its best
# number of steps, the GPT on tokens gains 0.9 bits, the one on characters 0.7, and counting half a bit. So here text
# is of more use to a GPT than to counting; with one seed, on a booklet of 180,000 characters beside the trillions of
# tokens that published models read.
#
# So when somebody shows a small neural model on a small text and names no n-gram beside it, ask.
#
# ## 8. Find the silent bug
#
# A friend has better numbers. "I took your code, and the same help texts. At order 8 you need 1.9 bits,
# and I need 1.6. Long contexts are good!" Here are the friend's lines (the cell is read-only), and the
# numbers.


# %% locked="given_friends_texts"
def friends_texts():
    every = paragraphs()
    learnt = "\n".join(one for i, one in enumerate(every) if i % 10) + "\n"
    held = "\n".join(every[::10]) + "\n"
    return learnt, "".join(sign for sign in held if sign in learnt)


# %% tags=["demonstration", "nbval-ignore-output"] seconds=5
# Python's texts are counted, see section 3.
friends_text, friends_held_out = friends_texts()
friends = {order: NgramModel(order).fit(friends_text) for order in (3, 5, 8)}
friends_bits = {order: bits_by_counting(model, friends_held_out) for order, model in friends.items()}
print("order   yours   the friend's")
for order, bits in friends_bits.items():
    print(f"{order:5d}{bits_held[order - 1]:8.2f}{bits:10.2f}")
assert friends_bits[8] < bits_held[7] - 0.15 and friends_bits[8] < friends_bits[5]
assert abs(friends_bits[3] - bits_held[2]) < 0.2

# %% [markdown]
# ### Short answer 3: `answer_silent_bug`
#
# What is wrong with the friend's numbers?
#
# - a) Nothing: the friend has more text to learn from, and more text is better.
# - b) `every[::10]` and `i % 10` do not fit each other: a paragraph may be in both lists.
# - c) Some paragraphs of the held-out text stand word for word in the text that was counted.
# - d) High orders always look better: their probabilities do not sum to 1.
#
# Look before you answer: in a cell of your own, count how many of the friend's held-out lines are lines
# of `friends_text`. Then mend the lines in that cell, until the count is 0 and order 8 is worse than
# order 5 again.

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "c"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% tags=["demonstration", "nbval-ignore-output"]
# Python's texts are counted, see section 3.
known_lines = set(friends_text.splitlines())
parts = {"seen": [], "new": []}
for line in friends_held_out.splitlines():
    parts["seen" if line in known_lines else "new"].append(line)
bits_of_part = {name: bits_by_counting(friends[8], "\n".join(lines)) for name, lines in parts.items()}
for name, lines in parts.items():
    print(f"{len(lines):4d} held-out paragraphs {name}: {bits_of_part[name]:.2f} bits a character at order 8")
print("of yours,", len(set(manual.splitlines()) & set(held_out.splitlines())), "are seen")
assert len(parts["seen"]) / (len(parts["seen"]) + len(parts["new"])) > 0.15
assert bits_of_part["seen"] < 1 and bits_of_part["new"] > min(bits_held)
assert not set(manual.splitlines()) & set(held_out.splitlines())

# %% [markdown]
# Each function does what it says, and no test of the functions would find it. One line about the data
# does: the intersection of the two sets of paragraphs. The help texts *repeat*: a section stands under
# its own name and again in the chapter that it belongs to. A long context knows such a paragraph by
# heart. On what is new, order 8 is no better than yours. With texts of the internet it is the same on a
# large scale, and there the repetition is seldom word for word (Lee and others, 2022). Ours has some of
# that too: "This operation can be customized using the special ..." comes in several forms, and every
# number of this lesson is a little too good for it.
#
# ## 9. What one often reads
#
# | one often reads | what is right | shown in |
# |---|---|---|
# | "A model reads letters." | It reads numbers of pieces; ` strawberry` is one. | sections 1 and 4 |
# | "A tokenizer takes the longest piece." | WordPiece does. Byte-pair encoding makes the merges in their order: one word in twenty is cut otherwise. | section 4 |
# | "If the tokens spell the text, the cut is right." | Every cut spells the text. The model knows one of them. | sections 2 and 4 |
# | "With bytes nothing is unknown." | If every byte that a text can hold is a token. Here eight of these are not. | section 4 |
# | "A token is about four characters." | Of English, with this list, four to five. The same sentence in Hindi takes seven times as many tokens. | Figure 2 |
# | "A lower loss is a better model." | A loss a token says nothing before you know the tokens. | Figure 4 |
# | "A neural model beats counting." | Not here: the best counting is below every GPT of this lesson. What much more text does was not tried. | Figures 4 and 5 |
# | "Held out means never seen." | More than a third of the friend's held-out paragraphs were in the other text. | section 8 |
#
# ### Written answer: `written_claim`
#
# A company writes: "Our new model has a loss of 2.1 nats on the news of last year; the old one had 2.6.
# It has a new tokenizer with twice as many tokens." Answer in 6 to 9 sentences (5 points):
#
# 1. Can you tell from the two losses which model predicts better? What do you ask for, and what do you
#    compute? Give an example with numbers of your own in which the old one is better.
# 2. Why do you ask which texts the models were trained on, and how would you look for what you fear?
# 3. Which simple model should stand beside them, and why?
# 4. A user finds that it cannot count the letters of a word. What of that does the tokenizer explain,
#    and what not?

# %% [markdown] written="claim" points=5
# ### BEGIN SOLUTION
# No: the losses are nats a token, and the tokens differ. I ask on how many tokens each loss is a mean
# and how many characters they spell, and compute bits a character, loss times tokens over characters
# and over ln 2. Say the old tokens hold 5 characters and the new ones 4 (the text is full of names that
# the new list cuts): then the old model needs 2.6 / 5 / 0.693 = 0.75 bits a character and the new one
# 2.1 / 4 / 0.693 = 0.76. I ask for the training texts because news are copied from page to page: if
# last year's are in them, a part of the held-out text was learnt by heart. I would look for paragraphs
# that stand in both, also nearly word for word, and score the model on those and on the others
# separately. Beside them should stand an n-gram model with the same tokens on the same text, since it
# says what counting alone does; a difference of two models means little if both lose to it. A model
# gets the number of a token, and the letters are not in it, so that it has to learn the spelling of
# each token from texts; this explains why counting letters is hard. It does not follow that it is
# impossible: what occurs in texts can be learnt, and whether this model has learnt it only asking it
# with many words shows.
#
# **Marking scheme** (5 points). 1 point: not comparable, with what has to be known (tokens and
# characters, or characters a token). 1 point: an example whose numbers are right. 1 point:
# contamination, with a way to look for it. 1 point: counting as the model to beat. 1 point: the number
# does not hold the letters, and it can be learnt all the same (no point for "impossible").
# ### END SOLUTION

# %% [markdown]
# <details><summary>When yours is written: a good answer and a plausible bad one, each on one point only</summary>
#
# > I would look for paragraphs of the news that stand in the training texts, nearly word for word, and give
# > the bits a character on those and on all others separately. If only the first are low, it was learnt by
# > heart.
#
# Good: it says what to look for, and the two numbers show how much it matters.
#
# > The news are from last year, and the model was trained before, so they cannot be in the training texts.
#
# Plausible, and bad: nobody said when the training texts were gathered, and news copy older news. It is a
# reason to expect that all is well, and no look at the texts.
#
# </details>
#
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | merges | the earliest first, at all places | `merge_pairs` | a word becomes tokens |
# | learning them | the most frequent pair, counted anew | `learn_merges` | frequent pieces become one token |
# | bytes | 256 smallest symbols | `text.encode()` | nothing is unknown |
# | published tokenizer | rules for words, bytes, 48,900 merges | `encode` | the cut that a model knows |
# | bits a character | loss times tokens over characters, over $\ln 2$ | `bits_per_character` | losses with other tokens are comparable |
# | n-gram model | $(c \cdot \text{share} + t \cdot p_\text{shorter}) / (c + t)$ | `NgramModel` | the model to beat |
# | held-out text | no paragraph in both | `dict.fromkeys` | learnt by heart does not count |
#
# ## Check yourself
#
# <details><summary>1. Why is <code>learn_merges</code> run on words and not on the whole text as one
# string?</summary>
#
# A token would reach over the edge of words, such as `of the`. It can be done; then tokens of a word
# differ with its neighbours. Besides, a word that occurs a thousand times is counted once.
#
# </details>
#
# <details><summary>2. Two merges of the list make the same word in two ways: <code>t he</code> and
# <code>th e</code>. Can a text be cut in both?</summary>
#
# No. What decides is which of the pairs h e and t h stands earlier: it takes the h at every place. So
# each word has one cut.
#
# </details>
#
# <details><summary>3. A model has 49,152 tokens and d_model 576. How many numbers are the vectors of its
# tokens, and how does it compare with a vocabulary of 256 bytes?</summary>
#
# 28.3 million, against 147,000. The saving would be paid with texts that are four to five times as long, on
# which attention works some twenty times as much.
#
# </details>
#
# <details><summary>4. Counting at order 8 on the text that was counted gives 0.6 bits. Why is that no
# praise?</summary>
#
# It was asked for what it had counted. With a context that occurred once, there is one follower, and
# the model is nearly sure of it.
#
# </details>
#
# <details><summary>5. Your friend's tokenizer makes 200 merges on a text of 90 different characters. How
# large is the vocabulary?</summary>
#
# 290: each merge adds one token, and the characters stay.
#
# </details>
#
# Questions to ask yourself before you compare two models: *A loss of what, on what, per what? Was it in
# the training text? What does counting get?*
#
# ## References
#
# - Shannon (1948), *A Mathematical Theory of Communication*; (1951), *Prediction and Entropy of Printed
#   English*.
# - Witten, Bell (1991), *The Zero-Frequency Problem: Estimating the Probabilities of Novel Events in
#   Adaptive Text Compression*.
# - Gage (1994), *A New Algorithm for Data Compression*: byte-pair encoding.
# - Sennrich, Haddow, Birch (2016), *Neural Machine Translation of Rare Words with Subword Units*.
# - Radford, Wu, Child, Luan, Amodei, Sutskever (2019), *Language Models are Unsupervised Multitask
#   Learners*: bytes as the smallest symbols.
# - Nogueira, Jiang, Lin (2021), *Investigating the Limitations of Transformers with Simple Arithmetic
#   Tasks*; Singh, Strouse (2024), *Tokenization Counts*.
# - Lee and others (2022), *Deduplicating Training Data Makes Language Models Better*.
# - Petrov, La Malfa, Torr, Bibi (2023), *Language Model Tokenizers Introduce Unfairness Between
#   Languages*.
# - Allal and others (2025), *SmolLM2: When Smol Goes Big*; licence Apache-2.0.
#
# ## What comes next
#
# You have the tokenizer of a chat model. Lesson 18 reads the rest of its file into your own parts, and it
# answers.
