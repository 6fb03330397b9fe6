"""Wrong implementations of lesson 17, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("merge_pairs"):
    wrong(
        "longest_first",
        """
        pieces = {left + right for left, right in merges}
        word, start, result = "".join(symbols), 0, []
        while start < len(word):
            end = next((e for e in range(len(word), start + 1, -1) if word[start:e] in pieces), start + 1)
            result.append(word[start:end])
            start = end
        return result
        """,
        "Your cut is the one that takes the longest known piece at each place, as wordpiece does. Here "
        "merges are made in their order: the pair that stands earliest in the list goes first.",
        seen="tokenizers rewritten as longest-match, which spell the same text",
    )

    wrong(
        "leftmost_first",
        {"min(known, key=ranks.get)": "known[0]"},
        "It comes out as if the leftmost known pair were joined first. Of the known pairs, the one that "
        "stands earliest in merges goes first, wherever it is in the word.",
    )

    wrong(
        "latest_first",
        {"min(known, key=ranks.get)": "max(known, key=ranks.get)"},
        "Of the known pairs you join the one that stands latest in merges. The earliest goes first.",
    )

    wrong(
        "smallest_pair_first",
        {"min(known, key=ranks.get)": "min(known)"},
        "It comes out as if the known pairs were taken in the order of the alphabet. Their order is that "
        "of the list merges.",
    )

    wrong(
        "longest_pair_first",
        {"min(known, key=ranks.get)": "max(known, key=lambda pair: (len(pair[0] + pair[1]), -ranks[pair]))"},
        "Of the known pairs you join the one that gives the longest symbol. The pair that stands earliest "
        "in merges goes first, however short it is.",
    )

    wrong(
        "one_place_only",
        """
        symbols = list(symbols)
        for left, right in merges:
            for i in range(len(symbols) - 1):
                if (symbols[i], symbols[i + 1]) == (left, right):
                    symbols[i : i + 2] = [left + right]
                    break
        return symbols
        """,
        "Each merge is made at one place of the word only. It is made at every place where the two are "
        "neighbours.",
    )

    wrong(
        "from_the_right",
        """
        symbols = list(symbols)
        for left, right in merges:
            i = len(symbols) - 2
            while i >= 0:
                if (symbols[i], symbols[i + 1]) == (left, right):
                    symbols[i : i + 2] = [left + right]
                    i -= 1
                i -= 1
        return symbols
        """,
        "You join from right to left: of a a a the last two become one. It goes from left to right, and "
        "a a a becomes aa a.",
    )

    wrong(
        "overlapping",
        """
        symbols = list(symbols)
        for left, right in merges:
            done, i = [], 0
            while i < len(symbols):
                if tuple(symbols[i : i + 2]) == (left, right):
                    done.append(left + right)
                    i += 1 if left == right and symbols[i + 1 : i + 3] == [left, right] else 2
                else:
                    done.append(symbols[i])
                    i += 1
            symbols = done
        return symbols
        """,
        "Where a letter is repeated, your places overlap: one symbol is used in two pairs, and the result "
        "spells a longer word. After a pair, go on behind its second symbol.",
    )

    wrong(
        "one_round",
        {"symbols = joined": "return joined"},
        "You make one merge and stop. After a merge, look again: the joined symbol may be part of a known "
        "pair, and other pairs are left.",
    )

    wrong(
        "replace_in_a_text",
        """
        text = " ".join(symbols)
        for left, right in merges:
            text = text.replace(left + " " + right, left + right)
        return text.split(" ") if text else []
        """,
        "It comes out as where pairs are joined in a text with replace: 'a b' is found inside 'xa b' too, "
        "where the symbol is xa and not a. Compare whole symbols.",
        seen="the first published code of the method guards against this with a regular expression",
    )

    wrong(
        "stops_at_a_missing_merge",
        """
        symbols = list(symbols)
        for left, right in merges:
            i, before = 0, len(symbols)
            while i < len(symbols) - 1:
                if (symbols[i], symbols[i + 1]) == (left, right):
                    symbols[i : i + 2] = [left + right]
                i += 1
            if len(symbols) == before:
                break
        return symbols
        """,
        "You stop at the first merge of the list that the word does not have. Later ones may still fit: it "
        "ends when no neighbours are a known pair.",
        seen="answers written blind",
    )

    wrong(
        "once_from_left_to_right",
        """
        pieces = [left + right for left, right in merges]
        result = []
        for symbol in symbols:
            if result and result[-1] + symbol in pieces:
                result[-1] += symbol
            else:
                result.append(symbol)
        return result
        """,
        "It comes out as where one pass from left to right joins whatever is known. The earliest merge of "
        "the list goes first, at all its places, and then the next.",
        seen="answers written blind",
    )

    wrong(
        "returns_a_text",
        {"return symbols": 'return " ".join(symbols)'},
        "You return a text. It should be the list of symbols.",
    )

    wrong(
        "returns_pairs",
        {"joined[-1] = left + right": "joined[-1] = (left, right)", "return symbols": "return symbols"},
        "A joined symbol is a tuple in your result. It is one string, left + right, and may then be joined "
        "again.",
    )

    wrong(
        "changes_symbols",
        {
            "symbols = list(symbols)": "given = symbols",
            "return symbols": "given[:] = symbols\nreturn given",
        },
        "symbols is changed, or comes back as the same list. Build a new list: who called may still need "
        "the old one.",
    )


with exercise("learn_merges"):
    wrong(
        "counts_ignored",
        {"counts[pair] += word_counts[word]": "counts[pair] += 1"},
        "Every word counts once in your sums. A pair counts as often as its word occurs.",
    )

    wrong(
        "once_a_word",
        {"in pairwise(symbols):": "in set(pairwise(symbols)):"},
        "A pair that stands twice in a word counts only once in your sums. It counts at each of its "
        "places, times the word's count.",
    )

    wrong(
        "counted_without_overlap",
        {
            "for pair in pairwise(symbols):\n    counts[pair] += word_counts[word]": """
                i = 0
                while i < len(symbols) - 1:
                    counts[symbols[i], symbols[i + 1]] += word_counts[word]
                    i += 2 if symbols[i : i + 1] == symbols[i + 1 : i + 2] else 1
                """,
        },
        "In a a a your pair (a, a) counts once. All neighbours are counted, so it counts twice; only when "
        "they are joined, places do not overlap.",
        seen="answers written blind",
    )

    wrong(
        "stops_at_single_pairs",
        {"if not counts:": "if not counts or max(counts.values()) < 2:"},
        "You stop where every pair occurs only once. It goes on until num_merges, or until no word has two "
        "symbols left.",
        seen="answers written blind",
    )

    wrong(
        "never_counted_anew",
        """
        if num_merges < 0:
            raise ValueError(num_merges)
        counts = Counter()
        for word, count in word_counts.items():
            for pair in zip(word, word[1:]):
                counts[pair] += count
        return sorted(counts, key=lambda pair: (-counts[pair], pair))[:num_merges]
        """,
        "Your merges are the most frequent pairs of the beginning. After each merge the pairs are other "
        "ones, with joined symbols among them: count anew.",
    )

    wrong(
        "ties_largest",
        {"min(counts, key=lambda pair: (-counts[pair], pair))": "max(counts, key=lambda pair: (counts[pair], pair))"},
        "Of equally frequent pairs you take the largest. The smallest as a tuple of strings is asked for.",
    )

    wrong(
        "ties_first_seen",
        {"min(counts, key=lambda pair: (-counts[pair], pair))": "max(counts, key=counts.get)"},
        "Of equally frequent pairs you take the one that was counted first, which depends on the order of "
        "the words. The smallest as a tuple of strings is asked for.",
        seen="max over a dictionary, as in most code for this",
    )

    wrong(
        "ties_by_joined_text",
        {"(-counts[pair], pair)": '(-counts[pair], "".join(pair))'},
        "Of equally frequent pairs you take the one that spells the smallest text. They are compared as "
        "tuples: first left with left.",
    )

    wrong(
        "ties_longest",
        {"(-counts[pair], pair)": '(-counts[pair], -len("".join(pair)), pair)'},
        "Of equally frequent pairs you take the one that gives the longest symbol. Length plays no part: "
        "the smallest as a tuple of strings.",
    )

    wrong(
        "frequency_over_parts",
        {
            "best = min(counts, key=lambda pair: (-counts[pair], pair))": """
                single = Counter()
                for word, symbols in words.items():
                    for symbol in symbols:
                        single[symbol] += word_counts[word]
                best = min(counts, key=lambda pair: (-counts[pair] / single[pair[0]] / single[pair[1]], pair))
                """,
        },
        "Your order is that of count over the counts of both parts, as WordPiece learns. Here the plain "
        "count decides.",
        seen="WordPiece's training",
    )

    wrong(
        "over_the_edges_of_words",
        """
        if num_merges < 0:
            raise ValueError(num_merges)
        symbols = [letter for word, count in word_counts.items() for letter in word * min(count, 20)]
        merges = []
        for _ in range(num_merges):
            counts = Counter(zip(symbols, symbols[1:]))
            if not counts:
                break
            merges.append(min(counts, key=lambda pair: (-counts[pair], pair)))
            symbols = merge_pairs(symbols, merges[-1:])
        return merges
        """,
        "Pairs that reach from one word into the next are counted, as where all words stand in one list. "
        "Each word is by itself.",
    )

    wrong(
        "written_with_blanks",
        """
        if num_merges < 0:
            raise ValueError(num_merges)
        words = {" ".join(word): count for word, count in word_counts.items()}
        merges = []
        for _ in range(num_merges):
            counts = Counter()
            for word, count in words.items():
                for pair in pairwise(word.split()):
                    counts[pair] += count
            if not counts:
                break
            best = min(counts, key=lambda pair: (-counts[pair], pair))
            merges.append(best)
            words = {" ".join(merge_pairs(word.split(), [best])): n for word, n in words.items()}
        return merges
        """,
        "A blank inside a word is lost, as where the symbols of a word are kept in a text with blanks "
        "between them. Keep them in a list: ' the' begins with a blank.",
        seen="the first published code of the method, whose words hold no blanks",
    )

    wrong(
        "joined_texts",
        {"merges.append(best)": 'merges.append("".join(best))'},
        "Your list holds the joined texts. It should hold tuples (left, right): from the text alone nobody "
        "knows which two were joined.",
    )

    wrong(
        "no_early_end",
        {"if not counts:\n    break": "if not counts:\n    counts[(\"\", \"\")] = 1"},
        "Where no word has two symbols left, your list goes on with merges of nothing. It ends there.",
    )

    wrong(
        "empty_min",
        {"if not counts:\n    break\n": ""},
        "Where no word has two symbols left there is no best pair, and your code raises an error. It ends "
        "early, with the merges made so far.",
    )

    wrong(
        "one_too_many",
        {"range(num_merges)": "range(num_merges + 1)"},
        "You make one merge more than num_merges.",
    )

    wrong(
        "negative_accepted",
        {"if num_merges < 0:": "if False:"},
        "A negative num_merges is accepted. It should be a ValueError.",
    )

    wrong(
        "zero_refused",
        {"if num_merges < 0:": "if num_merges < 1:"},
        "num_merges = 0 is refused. It is allowed, and gives an empty list.",
    )

    wrong(
        "changes_word_counts",
        {"words[word] = merge_pairs(symbols, [best])": "words[word] = merge_pairs(symbols, [best])\nword_counts[word] += 0", "return merges": "word_counts.clear()\nreturn merges"},
        "word_counts is changed. Who called may still need it.",
    )


with exercise("bits_per_character"):
    wrong(
        "still_nats",
        {" / math.log(2)": ""},
        "Your result is in nats a character. A bit is ln 2 = 0.693 nats: divide by it.",
    )

    wrong(
        "times_ln_2",
        {" / math.log(2)": " * math.log(2)"},
        "You multiply by ln 2. A nat is more than a bit, so the number in bits is larger: divide.",
    )

    wrong(
        "upside_down",
        {"loss * num_tokens / num_characters": "loss * num_characters / num_tokens"},
        "Tokens and characters are exchanged. The loss of all tokens together is loss times num_tokens; it "
        "is spread over the characters.",
    )

    wrong(
        "bits_a_token",
        {"loss * num_tokens / num_characters": "loss"},
        "Your result is in bits a token: the counts play no part in it. Spread the loss of all tokens over "
        "the characters.",
    )

    wrong(
        "tokens_forgotten",
        {"loss * num_tokens / num_characters": "loss / num_characters"},
        "You divide by the characters, but loss is the mean over the tokens, not their sum. Multiply by "
        "num_tokens first.",
    )

    wrong(
        "the_sum",
        {"loss * num_tokens / num_characters": "loss * num_tokens"},
        "Your result is the bits of the whole text. It should be those of one character: divide by "
        "num_characters.",
    )

    wrong(
        "log_of_the_loss",
        {"loss * num_tokens / num_characters / math.log(2)": "math.log2(loss * num_tokens / num_characters) if loss else 0.0"},
        "It comes out as the logarithm of the loss. The loss is one already; from nats to bits it is only "
        "divided by ln 2.",
    )

    wrong(
        "perplexity",
        {"loss * num_tokens / num_characters / math.log(2)": "2 ** (loss * num_tokens / num_characters / math.log(2))"},
        "It comes out as a perplexity, 2 to the bits. The bits themselves are asked for.",
    )

    wrong(
        "zero_tokens_accepted",
        {"num_tokens < 1 or num_characters < 1": "num_characters < 1"},
        "A num_tokens below 1 is accepted. There is no mean over no tokens: a ValueError.",
    )

    wrong(
        "zero_characters_accepted",
        {"num_tokens < 1 or num_characters < 1": "num_tokens < 1"},
        "A num_characters below 1 does not give a ValueError. Ask before you divide.",
    )


COUNTING = '''
class NgramModel:
    def __init__(self, order):
        if order < 1:
            raise ValueError(order)
        self.order = order

    def fit(self, text):
        if not text:
            raise ValueError("empty")
        self.text = text
        return self

    def probability(self, character, context):
        context = context[max(len(context) - self.order + 1, 0):]
        return self.mixed(character, context)

    def mixed(self, character, context):
        k = len(context)
        after = [self.text[i] for i in range(k, len(self.text)) if self.text[i - k:i] == context]
        if k:
            shorter = self.mixed(character, context[1:])
        else:
            shorter = (character in self.text) / len(set(self.text))
        if not after:
            return shorter
        c, t = len(after), len(set(after))
        return (after.count(character) + t * shorter) / (c + t)
'''

with exercise("NgramModel", base=COUNTING):
    wrong(
        "mixes_only_what_followed",
        {
            "return (after.count(character) + t * shorter) / (c + t)":
                "return (after.count(character) + t * shorter) / (c + t) if character in after else shorter",
        },
        "A character that never followed the context keeps the whole probability of the shorter context. It "
        "gets t / (c + t) of it: else all together come to more than 1.",
        seen="answers written blind",
    )

    wrong(
        "first_characters_missing",
        {"for i in range(k, len(self.text))": "for i in range(self.order - 1, len(self.text))"},
        "Your counts leave out the first order - 1 characters of the text. They have a shorter context, or "
        "none, and count there.",
        seen="answers written blind",
    )

    wrong(
        "counted_by_str_count",
        {
            "after = [self.text[i] for i in range(k, len(self.text)) if self.text[i - k:i] == context]":
                "after = [one for one in set(self.text) for _ in range(self.text.count(context + one))]",
        },
        "Occurrences that overlap are missed, as with str.count: in 'anana' what follows 'an' is a both times, "
        "and str.count finds 'ana' once.",
        seen="answers written blind",
    )

    wrong(
        "no_mixing",
        {"return (after.count(character) + t * shorter) / (c + t)": "return after.count(character) / c"},
        "Your probability is the plain share: nothing of the shorter contexts is mixed in, so what never "
        "followed has probability 0.",
        seen="maximum likelihood, as in the first n-gram models of courses",
    )

    wrong(
        "adds_one",
        {
            "return (after.count(character) + t * shorter) / (c + t)":
                "return (after.count(character) + (character in self.text)) / (c + len(set(self.text)))",
        },
        "It comes out as add-one smoothing: every character gets one more count. The share is mixed with "
        "the next shorter context, with the weight t.",
        seen="Laplace's rule, the usual first answer",
    )

    wrong(
        "t_is_one",
        {"c, t = len(after), len(set(after))": "c, t = len(after), 1"},
        "The shorter context gets the weight 1 whatever followed. t is how many different characters came "
        "after the context.",
    )

    wrong(
        "t_of_the_text",
        {"c, t = len(after), len(set(after))": "c, t = len(after), len(set(self.text))"},
        "Your t is the number of different characters of the whole text. It is the number of those that "
        "came after this context.",
    )

    wrong(
        "half_and_half",
        {
            "return (after.count(character) + t * shorter) / (c + t)": "return (after.count(character) / c + shorter) / 2",
        },
        "Share and shorter context are mixed half and half. The weights are c and t: a context seen often "
        "counts more.",
    )

    wrong(
        "weights_exchanged",
        {
            "return (after.count(character) + t * shorter) / (c + t)": "return (t * after.count(character) / c + c * shorter) / (c + t)",
        },
        "The two weights are exchanged. The share has the weight c, the shorter context t.",
    )

    wrong(
        "counts_the_end",
        {
            "c, t = len(after), len(set(after))": """
                c = sum(self.text[i:i + k] == context for i in range(len(self.text) - k + bool(k)))
                t = len(set(after))
                """,
        },
        "A context at the very end of the text is counted, though nothing follows it there. c counts the "
        "places where something came after the context.",
    )

    wrong(
        "not_overlapping",
        {
            "after = [self.text[i] for i in range(k, len(self.text)) if self.text[i - k:i] == context]": """
                places, i = [], self.text.find(context)
                while i >= 0:
                    places.append(i + k)
                    i = self.text.find(context, i + max(k, 1))
                after = [self.text[j] for j in places if j < len(self.text)]
                """,
        },
        "Occurrences of the context that overlap are missed, as with str.find from behind the last one or "
        "with str.count. In 'aaa' the context 'aa' occurs twice.",
    )

    wrong(
        "newest_dropped",
        {"self.mixed(character, context[1:])": "self.mixed(character, context[:-1])"},
        "The shorter context drops the newest character. The oldest one goes: what stands nearest says "
        "most.",
    )

    wrong(
        "order_too_long",
        {"context[max(len(context) - self.order + 1, 0):]": "context[max(len(context) - self.order, 0):]"},
        "You look at `order` characters of the context. Order N looks at N - 1: with the character itself "
        "there are N.",
    )

    wrong(
        "order_too_short",
        {"context[max(len(context) - self.order + 1, 0):]": "context[max(len(context) - self.order + 2, 0):]"},
        "You look at one character too few. Order N looks at the last N - 1 characters of the context.",
    )

    wrong(
        "beginning_of_the_context",
        {"context[max(len(context) - self.order + 1, 0):]": "context[: self.order - 1]"},
        "You look at the first characters of the context. The last ones count.",
    )

    wrong(
        "straight_to_order_one",
        {"self.mixed(character, context[1:])": 'self.mixed(character, "")'},
        "From a long context you go straight to none at all. The next shorter one drops one character "
        "only.",
    )

    wrong(
        "no_uniform",
        {"shorter = (character in self.text) / len(set(self.text))": "return self.text.count(character) / len(self.text)"},
        "At order 1 you take the plain share. Below order 1 stands one more model, the uniform one, and it "
        "is mixed in too.",
    )

    wrong(
        "uniform_over_256",
        {"len(set(self.text))": "256"},
        "The uniform distribution at the bottom is one over 256 signs, or another fixed number. It is over the different "
        "characters of the text.",
    )

    wrong(
        "uniform_for_unknown",
        {"(character in self.text) / len(set(self.text))": "1 / len(set(self.text))"},
        "A character that the text does not hold gets a share of the uniform distribution. Its probability "
        "is 0, and those of the text's characters sum to 1.",
    )

    wrong(
        "unseen_context_is_uniform",
        {"if not after:\n    return shorter": "if not after:\n    return (character in self.text) / len(set(self.text))"},
        "A context that was never seen gives the uniform distribution. It is the next shorter context "
        "alone.",
    )

    wrong(
        "unseen_context_is_zero",
        {"if not after:\n    return shorter": "if not after:\n    return 0.0"},
        "A context that was never seen gives 0. It is the next shorter context alone.",
    )

    wrong(
        "backs_off",
        {") + ": ") or "},
        "The shorter context is used only for characters that never followed this one. It is mixed in for "
        "every character: c * share + t * shorter.",
        seen="back-off, as in Katz (1987), in place of interpolation",
    )

    wrong(
        "longest_seen_alone",
        {
            "return (after.count(character) + t * shorter) / (c + t)":
                "return after.count(character) / c if character in after else shorter",
        },
        "Where the character followed the context you take the plain share, and else the shorter context. "
        "Both are mixed, with the weights c and t.",
    )

    wrong(
        "everything_at_order_one",
        {"context[max(len(context) - self.order + 1, 0):]": "context[-(self.order - 1):]"},
        "At order 1 the whole context is used, as where it is cut with [-0:], which is [0:]. Order 1 looks at no "
        "character before.",
        seen="the slice [-k:] with k = 0",
    )

    wrong(
        "padded_with_blanks",
        {"self.text = text": 'self.text = " " * (self.order - 1) + text', "shorter = (character in self.text) / len(set(self.text))": 'own = self.text[self.order - 1:]\nshorter = (character in own) / len(set(own))'},
        "It comes out as if blanks stood before the text. Nothing stands there: its first characters have a "
        "shorter context, or none.",
        seen="n-gram models of words, which begin each sentence with a mark",
    )

    wrong(
        "fit_adds",
        {"self.text = text": 'self.text = getattr(self, "text", "") + text'},
        "A second fit adds to what was counted before. It starts anew.",
    )

    wrong(
        "fit_returns_nothing",
        {"self.text = text\nreturn self": "self.text = text"},
        "fit returns None. It should return the model itself, so that NgramModel(3).fit(text) can be used.",
    )

    wrong(
        "errors_missing",
        {"if order < 1:": "if False:", "if not text:": "if False:"},
        "A wrong order or an empty text does not give a ValueError.",
    )


choice(
    "answer_merged",
    "a",
    reason="That is longest first, or from left to right. Merge 1 is h i, and it takes the h and the i "
    "before t h or i n get them.",
)
choice(
    "answer_merged",
    "b",
    reason="i n and t h would both be made here. But merge 1, h i, comes first and takes the h and the i.",
)
choice(
    "answer_merged",
    "c",
    right=True,
    reason="h i comes first. Then no i and n are neighbours, no t and h, and no in and g.",
)
choice(
    "answer_merged",
    "d",
    reason="That begins with merge 2. Merge 1 of the list, h i, fits, so it goes first.",
)

choice(
    "answer_compare",
    "a",
    reason="These are nats a token, and A's tokens are shorter: it makes more predictions for the same text.",
)
choice(
    "answer_compare",
    "b",
    right=True,
    reason="2.0 / 2.5 / 0.693 = 1.15 and 3.1 / 4.4 / 0.693 = 1.02 bits a character.",
)
choice(
    "answer_compare",
    "c",
    reason="The losses a token cannot. Spread over the characters that the tokens spell, they can.",
)
choice(
    "answer_compare",
    "d",
    reason="Longer tokens alone are no merit: with 4.0 nats a token B would need 1.31 bits a character.",
)

choice(
    "answer_silent_bug",
    "a",
    reason="There is a little more text, and at order 3 it changes next to nothing. The gap grows with the "
    "order.",
)
choice(
    "answer_silent_bug",
    "b",
    reason="They fit: the places that are multiples of ten are held out, all others are not. The same *place* "
    "is never in both.",
)
choice(
    "answer_silent_bug",
    "c",
    right=True,
    reason="The help texts repeat paragraphs, and dict.fromkeys, which keeps each once, is missing. A long "
    "context finds the paragraph and knows how it goes on.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="They sum to 1, which your hidden checks ask of them. And yours at order 8 does not look better.",
)


with exercise("NgramModel"):
    wrong(
        "minus_zero",
        {"used = context[len(context) - length :]": "used = context[-length:]"},
        "The context of length 0 comes out as the whole one, as context[-k:] does for k = 0. So what follows "
        "whatever stands before is never counted.",
        seen="a reader's answer",
    )
