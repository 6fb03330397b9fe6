"""Right implementations of lesson 17 that look different from its solutions."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np

from autograder.course.implementations import alternative


@alternative("merge_pairs", "one_pass_in_order")
def merge_pairs(symbols, merges):
    symbols = list(symbols)
    for left, right in merges:
        i = 0
        while i < len(symbols) - 1:
            if symbols[i] == left and symbols[i + 1] == right:
                symbols[i : i + 2] = [left + right]
            i += 1
    return symbols


@alternative("merge_pairs", "recursive")
def merge_pairs(symbols, merges):
    pairs = {(symbols[i], symbols[i + 1]) for i in range(len(symbols) - 1)}
    best = next((pair for pair in merges if pair in pairs), None)
    if best is None:
        return [*symbols]
    result, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == best:
            result.append("".join(best))
            i += 2
        else:
            result.append(symbols[i])
            i += 1
    return merge_pairs(result, merges)


@alternative("merge_pairs", "by_rank_at_each_place")
def merge_pairs(symbols, merges):
    symbols, last = symbols[:], len(merges)
    while len(symbols) > 1:
        ranks = [merges.index(p) if p in merges else last for p in pairwise(symbols)]
        place = ranks.index(min(ranks))  # the first of the earliest: then the next round
        if ranks[place] == last:
            break
        symbols[place] += symbols.pop(place + 1)
    return symbols


@alternative("merge_pairs", "folded")
def merge_pairs(symbols, merges):
    from functools import reduce

    def add(done, symbol, pair):
        if done and (done[-1], symbol) == pair:
            return [*done[:-1], "".join(pair)]
        return [*done, symbol]

    def once(symbols, pair):
        return reduce(lambda done, symbol: add(done, symbol, pair), symbols, [])

    return reduce(once, merges, list(symbols))


@alternative("learn_merges", "by_itself")
def learn_merges(word_counts, num_merges):
    if num_merges < 0:
        raise ValueError("num_merges must not be negative")
    from collections import defaultdict

    corpus = [(tuple(word), count) for word, count in word_counts.items()]
    result = []
    while len(result) < num_merges:
        totals = defaultdict(int)
        for word, count in corpus:
            for i in range(len(word) - 1):
                totals[word[i], word[i + 1]] += count
        if len(totals) == 0:
            return result
        top = max(totals.values())
        left, right = min(pair for pair, total in totals.items() if total == top)
        result.append((left, right))
        changed = []
        for word, count in corpus:
            new, i = [], 0
            while i < len(word):
                if word[i : i + 2] == (left, right):
                    new.append(left + right)
                    i += 2
                else:
                    new.append(word[i])
                    i += 1
            changed.append((tuple(new), count))
        corpus = changed
    return result


@alternative("learn_merges", "cut_again_each_time")
def learn_merges(word_counts, num_merges):
    if num_merges < 0:
        raise ValueError(f"num_merges = {num_merges}")
    merges = []
    for _ in range(num_merges):
        counts = Counter()
        for word, occurrences in word_counts.items():
            pieces = merge_pairs(list(word), merges)
            for pair, times in Counter(pairwise(pieces)).items():
                counts[pair] += times * occurrences
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if not ranked:
            break
        merges.append(ranked[0][0])
    return merges


@alternative("learn_merges", "only_words_that_change")
def learn_merges(word_counts, num_merges):
    if num_merges < 0:
        raise ValueError("num_merges: 0 or more")
    from collections import defaultdict

    cuts = {word: list(word) for word in word_counts}
    counts, where = Counter(), defaultdict(set)

    def book(word, sign):
        for pair in pairwise(cuts[word]):
            counts[pair] += sign * word_counts[word]
            where[pair].add(word)

    for word in cuts:
        book(word, +1)
    merges = []
    while len(merges) < num_merges:
        alive = [pair for pair, count in counts.items() if count > 0]
        if not alive:
            break
        best = sorted(alive, key=lambda pair: (-counts[pair], *pair))[0]
        merges.append(best)
        for word in where.pop(best):
            book(word, -1)
            cuts[word] = merge_pairs(cuts[word], [best])
            book(word, +1)
    return merges


@alternative("bits_per_character", "perplexity_first")
def bits_per_character(loss, num_tokens, num_characters):
    for name, count in (("num_tokens", num_tokens), ("num_characters", num_characters)):
        if count < 1:
            raise ValueError(f"{name} is {count}")
    return math.log2(math.exp(loss)) * (num_tokens / num_characters)


@alternative("bits_per_character", "numpy")
def bits_per_character(loss, num_tokens, num_characters):
    if min(num_tokens, num_characters) < 1:
        raise ValueError((num_tokens, num_characters))
    total_bits = loss * num_tokens * np.log2(np.e)
    return float(total_bits / num_characters)


@alternative("NgramModel", "recursive_on_tables")
class NgramModel:
    def __init__(self, order):
        if order < 1:
            raise ValueError("order must be at least 1")
        self.order = order
        self.counts = None

    def fit(self, text):
        if len(text) == 0:
            raise ValueError("nothing to fit")
        from collections import defaultdict

        self.alphabet = set(text)
        self.counts = defaultdict(lambda: defaultdict(int))
        for k in range(self.order):
            for i in range(len(text) - k):
                self.counts[text[i : i + k]][text[i + k]] += 1
        return self

    def probability(self, character, context):
        if self.order == 1:
            context = ""
        return self._mix(character, context[-(self.order - 1) :])

    def _mix(self, character, context):
        if context == "":
            lower = 1 / len(self.alphabet) if character in self.alphabet else 0
        else:
            lower = self._mix(character, context[1:])
        if context not in self.counts:
            return lower
        row = self.counts[context]
        c, t = sum(row.values()), len(row)
        share = row.get(character, 0) / c
        return (c * share + t * lower) / (c + t)


@alternative("NgramModel", "searches_the_text")
class NgramModel:
    def __init__(self, order):
        self.order = order
        if not order >= 1:
            raise ValueError(order)

    def fit(self, text):
        if text == "":
            raise ValueError("an empty text")
        self.text = text
        return self

    def probability(self, character, context):
        size = min(self.order - 1, len(context))
        p = float(character in set(self.text)) / len(set(self.text))
        for k in range(size + 1):
            end = context[len(context) - k :]
            after = [self.text[i + k] for i in range(len(self.text) - k) if self.text.startswith(end, i)]
            if after:
                lam = len(after) / (len(after) + len(set(after)))
                p = lam * after.count(character) / len(after) + (1 - lam) * p
        return p


@alternative("NgramModel", "one_counter_of_pieces")
class NgramModel:
    def __init__(self, order):
        if order <= 0:
            raise ValueError("order")
        self.n = order

    def fit(self, text):
        if not text:
            raise ValueError("text")
        pieces = (text[i : i + k] for k in range(1, self.n + 1) for i in range(len(text) - k + 1))
        self.pieces = Counter(pieces)
        self.total, self.kinds = Counter(), Counter()
        for piece, count in self.pieces.items():
            self.total[piece[:-1]] += count
            self.kinds[piece[:-1]] += 1
        return self

    def probability(self, character, context):
        context = context[len(context) - min(len(context), self.n - 1) :]
        p = (character in self.pieces) / self.kinds[""]
        for start in range(len(context), -1, -1):
            used = context[start:]
            c, t = self.total[used], self.kinds[used]
            if c:
                p = (self.pieces[used + character] + t * p) / (c + t)
        return p
