"""Wrong implementations of lesson 6, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("causal_mask"):
    wrong(
        "mask_upper",
        {"np.tri(n, dtype=bool)": "np.triu(np.ones((n, n), dtype=bool))"},
        "Your triangle stands on its head: each word sees itself and the words after it. Row i is "
        "the query at position i, and it may see the keys up to i. Text is read from the past.",
    )

    wrong(
        "mask_true_means_hidden",
        {"np.tri(n, dtype=bool)": "np.triu(np.ones((n, n), dtype=bool), k=1)"},
        "Your True stands where a key is hidden, as in nn.MultiheadAttention. In this course True "
        "means 'may attend': everything would be reversed without an error.",
        seen="the attn_mask of torch's nn.MultiheadAttention",
    )

    wrong(
        "mask_without_self",
        {"dtype=bool": "k=-1, dtype=bool"},
        "Your diagonal is False: a word may not see itself, and the first word sees nothing at "
        "all. The word at position i is already known when the next one is predicted.",
    )

    wrong(
        "mask_sees_next",
        {"dtype=bool": "k=1, dtype=bool"},
        "Your triangle is one diagonal too large: each word sees the next one, which is exactly "
        "what it has to predict.",
    )

    wrong(
        "mask_of_floats",
        {"np.tri(n, dtype=bool)": "np.tril(np.ones((n, n)))"},
        "Your mask holds the floats 0 and 1. A mask of the course is boolean; ~mask, for one, fails for "
        "floats.",
    )

    wrong(
        "mask_of_integers",
        {"dtype=bool": "dtype=int"},
        "Your mask holds the integers 0 and 1. A mask of the course is boolean: ~1 is -2, which "
        "is as true as 1.",
    )

    wrong(
        "mask_additive",
        {"np.tri(n, dtype=bool)": "np.where(np.tri(n) > 0, 0.0, -np.inf)"},
        "You return what is added to the scores, 0 and -inf. The exercise asks for the boolean "
        "mask, True = may attend; the attention function makes -inf of it.",
        seen="additive masks of many implementations",
    )

    wrong(
        "mask_cached",
        """
            def causal_mask(n, kept={}):
                if n not in kept:
                    kept[n] = np.tri(n, dtype=bool)
                return kept[n]
        """,
        "Two calls with one n give the same array, or views of one. Whoever writes into it changes "
        "the mask for everybody. Make a new array each call.",
    )

    wrong(
        "mask_cut_from_one",
        """
            def causal_mask(n, big=np.tri(64, dtype=bool)):
                return big[:n, :n]
        """,
        "Your masks of several lengths share one piece of memory, as when all are cut out of one "
        "big array: fast, but a change to one changes others. And a text longer than such an array "
        "has no mask.",
        seen="buffers of published GPT code",
    )

    wrong(
        "mask_read_only",
        """
            line = np.arange(2 * n - 1) < n
            return np.lib.stride_tricks.sliding_window_view(line, n)[::-1]
        """,
        "Your mask can only be read, as NumPy's views are that show one piece of memory many times. "
        "Somebody may write into a mask, so each call gives an array of its own.",
        seen="views made with as_strided or broadcast_to",
    )

    wrong(
        "mask_diagonal",
        {"np.tri": "np.eye"},
        "Each word sees only itself in your mask. It may see all words before it as well.",
    )

    wrong(
        "mask_one_row",
        {"np.tri(n, dtype=bool)": "np.arange(n) <= n"},
        "You return one row. Every query needs a row of its own, because each has another future.",
    )

    wrong(
        "mask_everything",
        {"np.tri(n, dtype=bool)": "np.ones((n, n), dtype=bool)"},
        "Your mask hides nothing.",
    )

    wrong(
        "mask_size",
        {"n, dtype=bool": "n + 1, dtype=bool"},
        "Your mask is one row and one column too large. A text of n words has n queries and n "
        "keys.",
    )

with exercise("combine_masks"):
    wrong(
        "combine_or",
        {"& mask": "| mask"},
        "Your result allows a key where ANY mask allows it. A key must be allowed by every mask: "
        "with 'any', padding of the past becomes visible again, and the future of real words too.",
    )

    wrong(
        "combine_drops_what_hides_nothing",
        """
            given = [mask for mask in masks if mask is not None]
            if not given:
                return None
            useful = [mask for mask in given if not mask.all()]
            result = (useful or given)[0]
            for mask in useful[1:]:
                result = result & mask
            return result
        """,
        "You leave out masks that are True everywhere. They hide nothing, but their axes count: the "
        "result has the shape to which all masks broadcast.",
        seen="answers written blind",
    )

    wrong(
        "combine_in_place",
        """
            there = [mask for mask in masks if mask is not None]
            if not there:
                return None
            result = there.pop(0)
            for mask in there:
                if np.broadcast_shapes(result.shape, mask.shape) == tuple(result.shape):
                    result &= mask
                else:
                    result = result & mask
            return result
        """,
        "You write the result into the first mask. The caller's mask is changed, and it stays "
        "changed for the next batch.",
    )

    wrong(
        "combine_fixed_shape",
        """
            masks = [mask for mask in masks if mask is not None]
            if not masks:
                return None
            result = masks[0] & True
            for mask in masks[1:]:
                result &= mask
            return result
        """,
        "You write into the first mask (or a copy of it), and so the result keeps its shape: (n, "
        "n) and (batch, 1, n) combine to (batch, n, n), whatever their order. Where it is the "
        "caller's mask itself, that one is changed as well.",
    )

    wrong(
        "combine_writes_into_the_first",
        {
            "combined = mask if combined is None else combined & mask": """
                if combined is None:
                    combined = mask
                else:
                    combined &= mask
            """,
        },
        "You write into the first mask (or a copy of it), and so the result keeps its shape: (n, "
        "n) and (batch, 1, n) combine to (batch, n, n), whatever their order. Where it is the "
        "caller's mask itself, that one is changed as well.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "combine_if_mask",
        {"is not None": ""},
        "Your code asks whether a whole array is true ('if mask', 'mask and other' or 'mask == "
        "None', for example). It has many values, and no single answer. Ask for None with 'is', "
        "and combine the values one by one, with the operator for arrays.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "combine_with_and",
        {"& mask": "and mask"},
        "Your code asks whether a whole array is true ('if mask', 'mask and other' or 'mask == "
        "None', for example). It has many values, and no single answer. Ask for None with 'is', "
        "and combine the values one by one, with the operator for arrays.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "combine_numpy_logical_and",
        {"combined & mask": "np.logical_and(combined, mask)"},
        "`np.logical_and` of two torch tensors gives a tensor of integers (uint8) and not of "
        "booleans: it is NumPy's function. Use what arrays and tensors share, the operator.",
        seen="a trial with typical wrong answers",
        edge=True,
    )

    wrong(
        "combine_first_two",
        """
            masks = [mask for mask in masks if mask is not None]
            if len(masks) > 1:
                return masks[0] & masks[1]
            return masks[0] if masks else None
        """,
        "You combine only the first two masks. The function takes any number.",
    )

    wrong(
        "combine_none_crashes",
        """
            if not masks:
                return None
            result = masks[0]
            for mask in masks[1:]:
                result = result & mask
            return result
        """,
        "A None among the masks is an error in your code. None means 'no mask here': leave it out.",
        edge=True,
    )

    wrong(
        "combine_stops_at_none",
        {
            """
                if mask is not None:
                    combined = mask if combined is None else combined & mask
            """: """
                if mask is None:
                    break
                combined = mask if combined is None else combined & mask
            """,
        },
        "Where the first mask is None you return None, as when a loop stops at the first None, and "
        "the masks after it are forgotten.",
    )

    wrong(
        "combine_any_none_is_none",
        """
            if any(mask is None for mask in masks):
                return None
            result = None
            for mask in masks:
                result = mask if result is None else result & mask
            return result
        """,
        "With a None among the masks you return None, and nothing is hidden any more. None says "
        "only that THIS mask hides nothing.",
    )

    wrong(
        "combine_all_true_is_none",
        {
            "return combined":
                "return None if combined is None or bool(combined.all()) else combined",
        },
        "A result that is True everywhere comes back as None. It hides nothing, but it is a mask: "
        "None is the result only where there was no mask at all.",
    )

    wrong(
        "combine_last_wins",
        {"if combined is None else combined & mask": ""},
        "You return the last mask. All of them must allow a key.",
    )

    wrong(
        "combine_always_numpy",
        {"combined = mask": "mask = np.asarray(mask); combined = mask"},
        "Torch tensors come out as NumPy arrays. The result is of the kind of the masks.",
    )

    wrong(
        "combine_always_torch",
        {"combined = mask": "mask = torch.as_tensor(mask); combined = mask"},
        "NumPy arrays come out as torch tensors. The result is of the kind of the masks.",
    )

    wrong(
        "combine_starts_from_true",
        {"= None": "= True", "mask if combined is None else combined": "combined"},
        "With no mask at all you return True and not None.",
    )

    wrong(
        "combine_stack",
        """
            masks = [mask for mask in masks if mask is not None]
            if not masks:
                return None
            if isinstance(masks[0], torch.Tensor):
                return torch.stack(masks).all(0)
            return np.stack(masks).all(0)
        """,
        "You stack the masks, which works only when all have one shape. (n, n) and (batch, 1, n) "
        "have to broadcast.",
    )

    wrong(
        "combine_truth_of_a_mask",
        {"None:": "None and mask.any():"},
        "A mask that hides everything is taken for None, or a result that does comes back as None. "
        "It is a mask like any other, and then nothing is left to attend to. Ask whether there is "
        "a mask, not what is in it.",
    )

    wrong(
        "combine_none_allows_nothing",
        """
            if all(mask is None for mask in masks):
                return None
            result = None
            for mask in masks:
                if mask is None:
                    mask = next(one for one in masks if one is not None) & False
                result = mask if result is None else result & mask
            return result
        """,
        "You take None for a mask that hides everything. It is no mask, so it hides nothing.",
    )

    wrong(
        "combine_inverted",
        {"= mask": "= ~mask", "& mask": "| ~mask"},
        "Your result is True where a key is hidden. In this course True means 'may attend', in "
        "the masks and in their combination.",
    )

    wrong(
        "combine_drops_what_allows_nothing",
        {
            "combined = mask if combined is None else combined & mask": """
                if combined is None or not combined.any():
                    combined = mask
                elif mask.any():
                    combined = combined & mask
            """,
        },
        "A mask that is False everywhere has no effect on your result: for one, it is taken for one "
        "that is not there. It allows nothing, and neither may the result.",
        seen="answers written blind",
    )

with exercise("leaks_future"):
    wrong(
        "leak_last_position_only",
        """
            X = rng.normal(size=(n, d_model))
            before = np.array(layer(X.copy()))
            if n == 1:
                return False
            X[-1] = rng.normal(size=d_model)
            return bool(np.abs(layer(X) - before)[:-1].max() > 1e-8)
        """,
        "Only what the last input does counts in your verdict. A position in the middle that sees "
        "the one after it stays unseen: every position from 1 on has to be changed once, and each comparison "
        "has to count.",
    )

    wrong(
        "leak_second_position_only",
        {
            """
                if np.abs(layer(changed) - before)[:t].max() > 1e-8:
                    return True
            """: "return bool(np.abs(layer(changed) - before)[:t].max() > 1e-8)",
        },
        "Only what the input at position 1 does counts in your verdict, as when a loop ends in its "
        "first round. Each position needs its turn: only 'this one leaks' may end it early.",
    )

    wrong(
        "leak_first_output_only",
        {"[:t].max()": "[0].max()"},
        "You compare only the first output. Every output before the changed position has to stay "
        "the same.",
    )

    wrong(
        "leak_neighbour_only",
        {"[:t].max()": "[t - 1].max()"},
        "You compare only the output just before the changed position. A position can see two "
        "steps ahead and not one.",
    )

    wrong(
        "leak_last_output",
        """
            X = rng.normal(size=(n, d_model))
            before = np.array(layer(X.copy()))
            X[:-1] = rng.normal(size=(n - 1, d_model))
            return n > 1 and bool(np.abs(layer(X) - before)[-1].max() > 1e-8)
        """,
        "You look at the last output. It has no future; it may change with every input. The "
        "outputs BEFORE the changed position are the ones that must not move.",
    )

    wrong(
        "leak_other_direction",
        {"changed[t]": "changed[t - 1]", "[:t].max()": "[t:].max()"},
        "You test whether an earlier input changes a later output. That is allowed: it is how the "
        "past is read. The question is whether a later input changes an earlier output.",
    )

    wrong(
        "leak_counts_itself",
        {"[:t].max()": "[:t + 1].max()"},
        "You also compare the output at the position that you changed. It may change: a position "
        "sees itself.",
    )

    wrong(
        "leak_misses_neighbour",
        {
            "np.abs(layer(changed) - before)[:t].max()":
                "t > 1 and np.abs(layer(changed) - before)[: t - 1].max()",
        },
        "You leave out the output just before the changed position. That is where a triangle that "
        "is off by one shows.",
    )

    wrong(
        "leak_everything_compared",
        {"[:t].max()": ".max()"},
        "Outputs at or after the changed position count in your comparison. They may change, in "
        "every layer: the ones before it must stay the same.",
    )

    wrong(
        "leak_very_coarse_tolerance",
        {"1e-8:": "1e-2:"},
        "Leaks of a few 1e-3 pass: what you compare with your tolerance is not above it there. "
        "Check first: is the tolerance far too large for the change that you make, or is the "
        "difference squared or averaged first? In float64 rounding is near 1e-16: there is much "
        "room below.",
    )

    wrong(
        "leak_exact",
        {"1e-8:": "0:"},
        "You ask for outputs that are equal to the last digit, or nearly so. A correct layer may "
        "add its numbers in another order, and rounding noise is no leak.",
    )

    wrong(
        "leak_adds_a_constant",
        {"= rng.normal(size=d_model)": "+= 1"},
        "A leak behind a layer norm stays unseen: you add one constant to all features of a "
        "position, which the norm takes away with the mean, or you add up differences with their "
        "signs, which sum to 0 behind it.",
    )

    wrong(
        "leak_scales_a_position_only",
        {"= rng.normal(size=d_model)": "*= 3"},
        "You scale a position. A layer that takes the direction alone, and not the size, does not feel "
        "that: what leaks after it stays unseen. Change the features differently.",
        seen="answers written blind",
    )

    wrong(
        "leak_shuffles_the_future",
        {"changed[t] = rng.normal(size=d_model)": "changed[t:] = changed[t:][::-1]"},
        "You put the later positions into another order. Their sum and their mean stay the same, "
        "so that a mean over the whole text passes. Put new vectors there.",
    )

    wrong(
        "leak_future_of_first_half",
        """
            X = rng.normal(size=(n, d_model))
            before = np.array(layer(X.copy()))
            half = n // 2
            X[half:] = rng.normal(size=(n - half, d_model))
            return bool(np.abs(layer(X) - before)[:half].max(initial=0) > 1e-8)
        """,
        "You change the second half and compare the first. A leak inside one half stays unseen: "
        "every position needs its turn.",
    )

    wrong(
        "leak_shorter_text",
        {
            """
                changed = X.copy()
                changed[t] = rng.normal(size=d_model)
            """: "",
            "np.abs(layer(changed) - before)[:t].max()":
                "np.abs(layer(X[:t].copy()) - before[:t]).max()",
        },
        "You compare with the output for a shorter text. A layer may refuse other lengths: keep n "
        "positions and change what stands there.",
    )

    wrong(
        "leak_nan_poison",
        {
            "before = np.array(layer(X.copy()))": "",
            "rng.normal(size=d_model)": "np.nan",
            """
                if np.abs(layer(changed) - before)[:t].max() > 1e-8:
                    return True
            """: """
                with np.errstate(invalid="ignore"):
                    if np.isnan(layer(changed)[:t]).any():
                        return True
            """,
        },
        "You put NaN (or infinity) into the future and look where NaN comes out. A masked layer "
        "multiplies it by a weight of 0, and 0 times NaN is NaN: correct layers look leaky. Put "
        "other numbers there.",
        seen="a well-known trick for convolutions",
    )

    wrong(
        "leak_huge_change",
        {"rng.normal(size=d_model)": "1e12"},
        "You put a huge number into the future. Rounding noise grows with it, and a softmax is "
        "driven out of the range where it works. Changes of order 1 are enough.",
    )

    wrong(
        "leak_torch_tensor",
        """
            X = torch.tensor(rng.normal(size=(n, d_model)))
            before = torch.as_tensor(layer(X.clone())).clone()
            for t in range(1, n):
                other = X.clone()
                other[t] = torch.tensor(rng.normal(size=d_model))
                if (torch.as_tensor(layer(other)) - before)[:t].abs().max() > 1e-8:
                    return True
            return False
        """,
        "You give the layer torch tensors. It is promised NumPy arrays.",
    )

    wrong(
        "leak_returns_size",
        {
            "()))": "())); worst = 0.0",
            """
                if np.abs(layer(changed) - before)[:t].max() > 1e-8:
                    return True
            """: "worst = max(worst, float(np.abs(layer(changed) - before)[:t].max()))",
            "False": "worst",
        },
        "You return the size of the change. The exercise asks for a verdict: True or False.",
    )

    wrong(
        "leak_inverted",
        {"True": "False", "False": "True"},
        "Your True means 'causal'. The exercise asks the opposite question: does it leak?",
    )

    wrong(
        "leak_global_random",
        {"rng.normal(size=d_model)": "np.random.normal(size=d_model)"},
        "You draw from NumPy's global random state. Other people's random numbers change. Draw "
        "from rng.",
    )

    wrong(
        "leak_one_feature",
        {"changed[t]": "changed[t, 0]", "size=d_model": ""},
        "A leak through the last features stays unseen: you change only the first feature, or the "
        "first ones. A layer can leak through another: change all features of a position.",
    )

    wrong(
        "leak_tiny_change",
        {
            "changed[t] =": "changed[t] += 1e-6 *",
            "np.abs(layer(changed) - before)[:t].max() > 1e-8":
                "not np.allclose(layer(changed)[:t], before[:t])",
        },
        "What comes through is lost in your tolerance: your change is too small beside it. Inputs "
        "of order 1 take changes of order 1.",
    )

    wrong(
        "leak_batch_axis",
        {
            "size=(n, d_model)": "size=(1, n, d_model)",
            "changed[t]": "changed[:, t]",
            "[:t].max()": "[:, :t].max()",
        },
        "You add a batch axis. The layer takes exactly (n, d_model).",
    )

    wrong(
        "leak_from_zeros",
        {"rng.normal(size=(n, d_model))": "np.zeros((n, d_model))"},
        "You start from inputs of zero. Where a layer multiplies, 0 times the future is 0, and "
        "the leak does not show. Start from random inputs.",
    )

    wrong(
        "leak_not_restored",
        {"changed = X.copy()": "", "changed[t]": "X[t]", "layer(changed)": "layer(X.copy())"},
        "Earlier inputs differ too where you compare (for one: a position is not restored after "
        "its turn). Then the outputs change because of these, and correct layers look leaky. Start "
        "each round from the same input.",
    )

    wrong(
        "leak_compares_with_itself",
        {"changed[t] = rng.normal(size=d_model)": ""},
        "Leaky layers pass, as where both sides of a comparison come from the same input, so that "
        "they are always equal. Change something in between.",
    )

    wrong(
        "leaks_allclose",
        {
            "np.abs(layer(changed) - before)[:t].max() > 1e-8":
                "not np.allclose(layer(changed)[:t], before[:t])",
        },
        "Your comparison allows a difference in proportion to the outputs (`np.allclose` does, "
        "with rtol). Beside large outputs a leak then passes for rounding. How large an output is "
        "says nothing about a leak.",
    )

    wrong(
        "leak_every_second_feature",
        {"changed[t] = rng.normal(size=d_model)": "changed[t, ::2] = rng.normal(size=(d_model + 1) // 2)"},
        "A layer that reads nothing but the last feature of a later position comes through your test. "
        "Change a position in all its features.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "leak_mean_of_the_changes",
        {".max() > 1e-8": ".mean() > 1e-5"},
        "A leak that moves a few numbers among many by some 1e-3 comes through your test, as where "
        "the mean of all changes is looked at, for one: the many numbers that stay make it small. "
        "One output that moves so far is a leak.",
        seen="answers written blind",
    )

choice(
    "answer_padding",
    "a",
    reason="The padding takes no share to begin with: it lies to the right of every real word, so "
    "the causal mask has already hidden it.",
)
choice(
    "answer_padding",
    "d",
    right=True,
    reason="Padding on the right lies in the future of every real word, and the causal mask hides "
    "the future. Only the padding's own rows change, and nobody uses them.",
)
choice(
    "answer_padding",
    "b",
    reason="The last real word sees itself and the words before it. Its neighbour on the right is "
    "its future, hidden as for all others.",
)
choice(
    "answer_padding",
    "c",
    reason="A row is empty only if every key is hidden. Each real word may still see itself.",
)

choice(
    "answer_half",
    "b",
    reason="That is float32. In float16 the largest number is 65504, and -1e9 does not exist: look "
    "at what it becomes when it is rounded.",
)
choice(
    "answer_half",
    "a",
    right=True,
    reason="In float16 -1e9 is rounded to -inf without a word. The row is all -inf, and softmax "
    "computes 0/0. The number was chosen to avoid exactly that.",
)
choice(
    "answer_half",
    "d",
    reason="scores.masked_fill(..., -1e9) does raise an error for float16. torch.where does not: "
    "it rounds the number to the type of the scores.",
)
choice(
    "answer_half",
    "c",
    reason="Zeros would be right, and need care: torch.softmax does not give them for a row in "
    "which everything is forbidden. Only torch's complete attention function does, and yours.",
)

choice(
    "answer_parallel",
    "a",
    reason="The other 47 positions of each text make guesses too, but these are not in the loss: "
    "nothing is learned from them.",
)
choice(
    "answer_parallel",
    "b",
    right=True,
    reason="The answer to the last guess is character 49, which is not among the inputs: nothing "
    "has to be hidden. But 47 of 48 guesses are thrown away. The mask makes all of them honest in "
    "the same pass.",
)
choice(
    "answer_parallel",
    "c",
    reason="It may see all others: they are its past. The answer, character 49, is not among the "
    "inputs. In Figure 3 too, the model without the mask has to guess at the last position.",
)
choice(
    "answer_parallel",
    "d",
    reason="The loss holds one position of each text, so that there are as many guesses as texts. "
    "Nothing is averaged before a guess.",
)

choice(
    "answer_silent_bug",
    "a",
    reason="Then the layers would leak, and the detector says that they do not. They use the same "
    "causal_mask as the honest model of section 6.",
)
choice(
    "answer_silent_bug",
    "b",
    reason="It does put one wrong target into each text. But nobody can know that one: it "
    "makes the loss larger, not smaller. The other 47 are the problem.",
)
choice(
    "answer_silent_bug",
    "c",
    right=True,
    reason="roll by +1 moves each character to the right: the target at position i is the "
    "character at i - 1, which the model may see. It learns to repeat the past. 'Next to each "
    "input' is true of both neighbours. roll by -1 would be the next character.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="Which sentence comes next is drawn at random, so that even a model that knows all 160 "
    "by heart cannot get below the floor: ln 160 for each sentence.",
)


with exercise("mended_tasks"):
    wrong(
        "mend_copied",
        {"texts[:, :-1], texts[:, 1:]": "texts[:, :-1], torch.roll(texts[:, :-1], 1, dims=-1)"},
        "Your targets are those of the friend's code as it was: each is the character before its "
        "input, which the model has just read.",
    )

    wrong(
        "mend_circle",
        {"texts[:, :-1], texts[:, 1:]": "texts[:, :-1], torch.roll(texts[:, :-1], -1, dims=-1)"},
        "The direction is right now, but the targets go in a circle, as with torch.roll: the last "
        "target of each text is its first character. The text has one character more than the "
        "inputs.",
    )

    wrong(
        "mend_copies_the_input",
        {"texts[:, :-1], texts[:, 1:]": "texts[:, :-1], texts[:, :-1]"},
        "Each target is its own input: the model only has to copy what it reads.",
    )

    wrong(
        "mend_exchanged",
        {"texts[:, :-1], texts[:, 1:]": "texts[:, 1:], texts[:, :-1]"},
        "Inputs and targets have changed places: your model reads the next character and says the "
        "one before.",
    )

    wrong(
        "mend_two_ahead",
        {"texts[:, :-1], texts[:, 1:]": "texts[:, :-1], torch.roll(texts, -2, dims=-1)[:, :-1]"},
        "Your targets lie two characters ahead. The next one is one place further on.",
    )

    wrong(
        "mend_whole_text_read",
        {"texts[:, :-1], texts[:, 1:]": "texts, torch.roll(texts, -1, dims=-1)"},
        "Your inputs hold the last character too, which has no next one: n + 1 inputs, and a "
        "target from the other end.",
    )

    wrong(
        "mend_in_place",
        """
            inputs = texts[:, :-1].clone()
            texts[:, :-1] = texts[:, 1:].clone()
            return inputs, texts[:, :-1].clone()
        """,
        "After your call texts itself holds the targets. The caller still needs the text. Make new "
        "tensors, do not write into an argument.",
        seen="answers written blind",
    )

choice(
    "answer_recall_average",
    "a",
    right=True,
    reason='An average can show a pattern that none of its parts has: look at heads one by one.',
)
choice(
    "answer_recall_average",
    "b",
    reason='An average knows nothing of importance: every head counts the same.',
)
choice(
    "answer_recall_average",
    "c",
    reason='Weights are never negative, so nothing can cancel.',
)

choice(
    "answer_recall_empty",
    "a",
    reason="That is what a plain softmax of -inf alone gives, 0/0. The course's functions catch it.",
)
choice(
    "answer_recall_empty",
    "b",
    reason='That is what -1e9 gives: equal weights on keys that are all forbidden.',
)
choice(
    "answer_recall_empty",
    "c",
    right=True,
    reason='And gradients stay finite. In this lesson you meet such rows in practice.',
)

choice(
    "answer_recall_state",
    "a",
    right=True,
    reason='A price, not a wall. Looking everywhere does not have to pay it.',
)
choice(
    "answer_recall_state",
    "b",
    reason='It has: 40 digits need about 133 bits, and 64 numbers of 32 bits hold 2048.',
)
choice(
    "answer_recall_state",
    "c",
    reason='Its first digits are copied best, and changing any of the 40 still moves the vector.',
)
