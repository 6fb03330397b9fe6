"""Wrong implementations of lesson 13, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

# Tests see what the designed model says, and several mistakes make it say the same.
SAME_WORD_AGAIN = (
    "Where your model says the present word again, it is for a reason such as these: the first layer looks at its own "
    "place, the second searches among the words in place of 'the word before me', or it fetches from the right "
    "place the word that stood BEFORE it. Search for the place before which your word stood, and fetch the "
    "word that stands there."
)
WORD_BEFORE = (
    "Your model says the word that stood before the present one, as it does when the first layer writes into features "
    "that are not free (the token, or the last ones, which are read as logits), or when query and key of "
    "the second layer are exchanged. Ask 'before whom did my word stand?', and write the answer last."
)
NO_LOGITS = (
    "No logit is the single largest, as when nothing arrives in the last features. Does the second layer write its "
    "value into the LAST vocab features? And the model computes x W with rows x: W[i, j] carries feature i to feature j."
)

with exercise("design_induction"):
    wrong(
        "design_place_0_claims_itself",
        {'tensors["W_k2"][place[0], word] = -1.0': ""},
        "When the first word of the text comes back, no logit is the single largest. Place 0 can attend only "
        "to itself: if the first layer writes there that its own word stood before it, the second finds two places, 1 "
        "and 0, and cannot decide. Make the key of place 0 worse.",
    )
    wrong(
        "design_soft",
        {"sharp = 100.0": "sharp = 1.0"},
        "The place that is searched does not win. Either your scores are about 1: a place that matches then "
        "gets e times the weight of one that does not, and the many others win (there is no scale in this model, so scores may be large). "
        "Or the largest score stands at another place than the one that is searched.",
    )
    wrong(
        "design_looks_two_back",
        {'tensors["W_q1"][place[1:], place[:-1]] = sharp': 'tensors["W_q1"][place[2:], place[:-2]] = sharp'},
        "Your model says what it says when the first layer looks two places back. The word that follows has the "
        "searched word directly before it.",
    )
    wrong(
        "design_looks_ahead",
        {'tensors["W_q1"][place[1:], place[:-1]] = sharp': 'tensors["W_q1"][place[:-1], place[1:]] = sharp'},
        "The first layer seems to fetch an even mixture of all words so far: no score stands out. It does so, for one, "
        "where query and key are exchanged: place t then asks for place t + 1, which the mask hides.",
    )
    wrong(
        "design_finds_the_copy",
        {'tensors["W_k2"][before, word] = 1.0': 'tensors["W_k2"][word, word] = 1.0'},
        SAME_WORD_AGAIN,
    )
    wrong(
        "design_logits_first",
        {"before = vocab_size + max_len + word": "logit = vocab_size + max_len + word", "logit = before + vocab_size": "before = logit + vocab_size"},
        WORD_BEFORE,
    )
    wrong(
        "design_no_answer",
        {'tensors["W_v2"][word, logit] = 1.0': 'tensors["W_v2"][word, word] = 1.0'},
        NO_LOGITS,
    )
    wrong(
        "design_second_layer_by_place",
        {'tensors["W_q2"][word, word] = sharp': 'tensors["W_q2"][place[4:], place[:-4]] = sharp', 'tensors["W_k2"][before, word] = 1.0': 'tensors["W_k2"][place, place] = 1.0'},
        "It comes out as if the second layer looked a fixed number of places back. That serves one length of the piece; "
        "the words should decide where it looks.",
    )
    wrong(
        "design_wrong_width",
        {"d_stream = 3 * vocab_size + max_len": "d_stream = 4 * vocab_size + max_len"},
        "Your matrices do not have d_stream = 3 * vocab_size + max_len rows and columns: the token, the "
        "place, and two times vocab_size free features.",
    )

LEADING_AXIS_OF_1 = (
    "For maps with a leading axis of length 1 your result has another shape than (...), as where squeeze() or an "
    "index takes such an axis away. It stays: one number for each map, in the shape of the leading axes."
)

# The right answer in other words, of which the wrong ones below are changes.
SCORE = """
def induction_score(weights, period):
    n = weights.shape[-1]
    if period < 1 or period > n - 1:
        raise ValueError("period")
    total = 0.0
    for t in range(period, n):
        total = total + weights[..., t, t - period + 1]
    return total / (n - period)
"""

with exercise("induction_score", base=SCORE):
    wrong(
        "score_at_the_copy",
        {"t - period + 1": "t - period"},
        "You measure the weight on the earlier copy of the word itself, t - period. An induction head looks "
        "one place further, at what followed it.",
    )
    wrong(
        "score_one_row_too_many",
        {"range(period, n)": "range(period - 1, n)", "(n - period)": "(n - period + 1)"},
        "You also count t = period - 1. There is no earlier copy yet: the mean begins at t = period.",
    )
    wrong(
        "score_one_row_too_few",
        {"range(period, n)": "range(period, n - 1) if period < n - 1 else range(period, n)", "(n - period)": "max(1, n - period - 1)"},
        "You leave the last place out. The mean is over all t >= period, to the end.",
    )
    wrong(
        "score_sum",
        {"total / (n - period)": "total"},
        "You return the sum. A mean does not grow with the length of the text.",
    )
    wrong(
        "score_divides_by_n",
        {"(n - period)": "n"},
        "You divide by n. Only the places from t = period on are counted, n - period of them.",
    )
    wrong(
        "score_columns_are_queries",
        {"weights[..., t, t - period + 1]": "weights[..., t - period + 1, t]"},
        "Your weights are those from place t - period + 1 to place t, as if rows were keys. Rows are queries: "
        "the weight FROM t stands in row t.",
    )
    wrong(
        "score_over_heads_too",
        {"total / (n - period)": "(total / (n - period)).mean()"},
        "You average over texts and heads as well. Each map has a score of its own: (..., n, n) gives (...).",
    )
    wrong(
        "score_hits",
        {"total + weights[..., t, t - period + 1]": "total + 1.0 * (weights[..., t, : t + 1].argmax(-1) == t - period + 1)"},
        "You count how often the largest weight lies there. The score is the mean of the weights themselves.",
    )
    wrong(
        "score_axes_from_the_front",
        {"weights[..., t, t - period + 1]": "weights[t, t - period + 1]"},
        "With leading axes it goes wrong as where axes are counted from the front. With heads or texts in front the places are the LAST two axes.",
    )
    wrong(
        "score_no_error",
        {"if period < 1 or period > n - 1:": "if False:", "(n - period)": "max(1, n - period)"},
        "A period outside 1..n-1 goes through, and the result means nothing. Raise a ValueError.",
    )
    wrong(
        "score_period_n_passes",
        {"period > n - 1": "period > n", "(n - period)": "max(1, n - period)"},
        "period = n goes through. Then no place has an earlier copy: a ValueError.",
    )
    wrong(
        "score_gives_numpy",
        {"return total / (n - period)": "return np.asarray(total / (n - period))[()]"},
        "A torch tensor comes back as a NumPy array. The result is of the kind of the argument.",
        edge=True,
    )
    wrong(
        "score_every_round",
        {"weights[..., t, t - period + 1]": "weights[..., t, (t + 1) % period : t : period].sum(-1)"},
        "You add up the weight on every place that holds the right word, of all earlier rounds. The score asks for one place, "
        "t - period + 1.",
    )

    wrong(
        "score_squeezed",
        {"return total / (n - period)": "return (total / (n - period)).squeeze()"},
        LEADING_AXIS_OF_1,
        seen="answers written blind",
        edge=True,
    )
    wrong(
        "score_zeros_left_out",
        """
            n = weights.shape[-1]
            if not 1 <= period < n:
                raise ValueError("no such period")
            picked = weights.diagonal(1 - period, -2, -1)[..., 1:]
            return picked.sum(-1) / (picked != 0).sum(-1)
        """,
        "Where weights are exactly 0 your score is not the mean over all t >= period, as when only those "
        "that are not 0 are counted. A place from which nothing is looked at counts too, with 0.",
        seen="answers written blind",
    )

    wrong(
        "score_summed_in_float32",
        {
            "total = 0.0": "total = torch.zeros(weights.shape[:-2]) if torch.is_tensor(weights) else 0.0",
            "total = total + weights": "total += weights",
        },
        "Torch weights of float64 give scores of float32, as where they are added up in a torch.zeros without "
        "a dtype. Scores have the dtype of the weights.",
        seen="answers written blind",
    )

with exercise("logit_attribution"):
    wrong(
        "attribution_bias_in_every_part",
        {"F.linear(normed, output.weight)": "output(normed)"},
        "The output's bias is added to every part, so the rows sum to too much. It belongs to no part: "
        "once, in the last row.",
    )
    wrong(
        "attribution_beta_in_every_part",
        {"/ torch.sqrt(variance + norm.eps)": "/ torch.sqrt(variance + norm.eps) + norm.beta"},
        "Norm's beta is added to every part, so the rows sum to too much. It belongs to no part: once, in "
        "the last row.",
    )
    wrong(
        "attribution_each_normed_alone",
        {".sum(0)": ""},
        "Each part is divided by its own spread. Then a tiny part counts as much as a large one, and the "
        "rows do not sum to the logits. The divisor is that of the whole stream.",
        seen="calling the final norm on each part",
    )
    wrong(
        "attribution_norm_called_on_parts",
        {"normed = norm.gamma * centred / torch.sqrt(variance + norm.eps)": "normed = norm(parts)"},
        "Each part goes through the whole norm: it gets its own divisor, and beta too. The divisor is that of the "
        "whole stream, and beta belongs to no part.",
        seen="calling the final norm on each part",
    )
    wrong(
        "attribution_no_norm",
        {"normed = norm.gamma * centred / torch.sqrt(variance + norm.eps)": "normed = parts"},
        "The norm is left out: parts go straight through W. The rows then do not sum to the logits.",
    )
    wrong(
        "attribution_not_centred",
        {"parts - parts.mean(dim=-1, keepdim=True)": "parts"},
        "A part's mean is not taken off. Layer norm takes off the mean of the sum, and that is the sum of "
        "the parts' means.",
    )
    wrong(
        "attribution_centred_by_the_whole",
        {"parts - parts.mean(dim=-1, keepdim=True)": "parts - parts.sum(0).mean(dim=-1, keepdim=True)"},
        "The mean of the WHOLE stream is taken off from each part, so it goes once a part. Each part "
        "carries its own mean.",
    )
    wrong(
        "attribution_equal_share_of_the_mean",
        {"parts - parts.mean(dim=-1, keepdim=True)": "parts - parts.sum(0).mean(dim=-1, keepdim=True) / len(parts)"},
        "Your rows come out as where an equal share of the whole stream's mean is taken off each part. Their sum "
        "is right then, and the rows are not: what goes from a part is its own mean.",
        seen="answers written blind",
    )
    wrong(
        "attribution_without_gamma",
        {"norm.gamma * centred": "centred"},
        "gamma is missing: norm multiplies each feature by it, part by part too.",
    )
    wrong(
        "attribution_without_eps",
        {"variance + norm.eps": "variance"},
        "Under the root stands not the norm's own eps: it is missing, or another number stands there. With the "
        "norm's own the rows sum to the logits.",
    )
    wrong(
        "attribution_eps_after_the_root",
        {"torch.sqrt(variance + norm.eps)": "(torch.sqrt(variance) + norm.eps)"},
        "Your eps is added to the divisor, after the root. It belongs to the variance, under the root.",
        seen="answers written blind",
    )
    wrong(
        "attribution_eps_of_torch",
        {"variance + norm.eps": "variance + 1e-5"},
        "eps is 1e-5 whatever the norm says. Read its attribute.",
    )
    wrong(
        "attribution_unbiased",
        {"correction=0": "correction=1"},
        "The variance divides by d_model - 1, torch's default. Layer norm divides by d_model.",
        seen="torch.var, whose default is unbiased",
    )
    wrong(
        "attribution_rest_without_beta",
        {"output(norm.beta)": "output(0 * norm.beta)"},
        "The last row lacks what beta does: beta goes through the output's weight.",
    )
    wrong(
        "attribution_rest_without_bias",
        {"output(norm.beta)": "F.linear(norm.beta, output.weight)"},
        "The last row lacks the output's bias.",
    )
    wrong(
        "attribution_rest_missing",
        {"torch.cat([by_part, rest])": "by_part"},
        "Your result has as many rows as there are parts, one too few: what beta and the output's bias add belongs "
        "to no part, and is a row of its own, the last one.",
    )
    wrong(
        "attribution_mean_over_the_parts",
        {"parts.mean(dim=-1, keepdim=True)": "parts.mean(dim=0, keepdim=True)"},
        "You take off the mean over the parts. Layer norm's mean runs over the features of a position.",
    )

    wrong(
        "attribution_gamma_into_the_output",
        """
            rest = output(norm.beta).detach()
            variance = parts.sum(0).var(dim=-1, correction=0, keepdim=True)
            centred = parts - parts.mean(dim=-1, keepdim=True)
            W = output.weight.detach()
            W *= norm.gamma.detach()
            by_part = F.linear(centred / torch.sqrt(variance + norm.eps), W)
            return torch.cat([by_part, rest.expand(1, *by_part.shape[1:])])
        """,
        "After your function the norm or the output is another one than before, as where gamma is multiplied "
        "into the output's weight in place (detach() makes no copy). The model should compute what it did "
        "before: make a new tensor.",
        seen="answers written blind",
    )

    wrong(
        "attribution_bias_added_to",
        {
            "rest = output(norm.beta).expand(1, *by_part.shape[1:])": """
                rest = output.weight.new_zeros(len(output.weight)) if output.bias is None else output.bias.detach()
                rest += output.weight.detach() @ norm.beta.detach()
                rest = rest.expand(1, *by_part.shape[1:])
            """,
        },
        "After your function the output has another bias than before, as where something is added to "
        "it in place (detach() makes no copy). Make a new tensor.",
        seen="answers written blind",
    )

with exercise("ablate_head"):
    wrong(
        "ablate_in_place",
        {"outputs.clone()": "outputs"},
        "You write into the tensor that you were given. The next experiment then starts from a model "
        "that is already damaged: return a new tensor.",
    )
    wrong(
        "ablate_mean_over_batch",
        {"mean(dim=(0, 1), keepdim=True)": "mean(dim=0, keepdim=True)"},
        "Your mean is over the batch only: every position keeps a mean of its own, and with it what the "
        "head says there. Average over the positions as well.",
    )
    wrong(
        "ablate_mean_over_positions",
        {"mean(dim=(0, 1), keepdim=True)": "mean(dim=1, keepdim=True)"},
        "Your mean is over the positions of each text: what the head says about this text is still in it. "
        "Average over the batch as well.",
    )
    wrong(
        "ablate_mean_over_everything",
        {"mean(dim=(0, 1), keepdim=True)": "mean()"},
        "Your mean is one number for all features. It is one vector: each of the d_head features has a "
        "mean of its own.",
    )
    wrong(
        "ablate_mean_of_all_heads",
        {"own.mean(dim=(0, 1), keepdim=True)": "outputs.mean(dim=(0, 1, 2)).expand(1, 1, -1)"},
        "You put the mean of all heads there. It is the mean of this head.",
    )
    wrong(
        "ablate_resample_the_other_way",
        {"roll(-1, dims=0)": "roll(1, dims=0)"},
        "Each text gets what the head says of the text BEFORE it. It is the next one's, and the last text "
        "takes the first's.",
    )
    wrong(
        "ablate_resample_without_axis",
        {"roll(-1, dims=0)": "roll(-1)"},
        "All numbers move by one place, as if they stood in one long row; a roll that names no axis does "
        "that. The batch is the axis that turns.",
        seen="np.roll and torch.roll, which flatten without an axis",
    )
    wrong(
        "ablate_resample_positions",
        {"roll(-1, dims=0)": "roll(-1, dims=1)"},
        "You move the positions of each text in a circle. The batch is the axis that turns: position t gets "
        "position t of another text.",
    )
    wrong(
        "ablate_resample_one_text",
        {"own.roll(-1, dims=0)": "own[:1].expand_as(own)"},
        "Every text gets what the head says of the first text. It is the next text's.",
    )
    wrong(
        "ablate_resample_all_heads",
        {".clone": ".roll(-1, dims=0) if how == 'resample' else outputs.clone"},
        "With 'resample' all heads take the next text's output. Only the one head does.",
    )
    wrong(
        "ablate_position_in_place_of_head",
        {
            "replaced[:, head] = other": "replaced[:, :, head % outputs.shape[2]] = other[:, :1]",
        },
        "You replace the output of all heads at one position. The head axis is axis 1.",
    )
    wrong(
        "ablate_only_the_head",
        {"replaced = outputs.clone()": "replaced = torch.zeros_like(outputs)"},
        "All other heads are zero in your result. They stay as they are.",
    )
    wrong(
        "ablate_nothing",
        {"replaced[:, head] = other": ""},
        "In your result the head's output is not replaced.",
    )
    wrong(
        "ablate_negative_head",
        {"if not 0 <= head < num_heads:": "if head >= num_heads:"},
        "A negative head goes through. As an index it counts from the end: head -1 is silently the last one. "
        "Raise a ValueError.",
    )
    wrong(
        "ablate_unknown_how",
        {
            "raise ValueError(f\"how = {how!r} is not 'zero', 'mean' or 'resample'\")":
                "other = own.roll(-1, dims=0)",
        },
        "A misspelt how goes through silently; an else, for one, takes it for one of the three. Raise a ValueError.",
    )

    wrong(
        "ablate_how_as_a_piece_of_text",
        {
            "raise ValueError(f\"how = {how!r} is not 'zero', 'mean' or 'resample'\")": """
                if how not in "zero mean resample":
                    raise ValueError(how)
                other = own.roll(-1, dims=0)
            """,
        },
        "With an empty text for how no ValueError comes, as where `in` looks for a piece of a longer text: the "
        "empty text is a piece of any. Compare with each of the three words.",
        seen="answers written blind",
    )

with exercise("patched_logits"):
    wrong(
        "patch_every_position",
        {"patched[..., position, :] = replacement[..., position, :]": "patched = replacement.clone()"},
        "You replace the output at all positions. Only the row `position` is to change: otherwise you "
        "cannot say where what matters is kept.",
    )
    wrong(
        "patch_first_axis",
        {"patched[..., position, :] = replacement[..., position, :]": "patched[position % len(patched)] = replacement[position % len(patched)]"},
        "You replace along the first axis. In a batch that is the text number `position`; positions are axis -2.",
    )
    wrong(
        "patch_on_axis_1",
        {
            "patched[..., position, :] = replacement[..., position, :]":
                "patched[:, position] = replacement[:, position]",
        },
        "Where tokens has a single axis your logits are those with one feature replaced at all positions, as where "
        "the position is counted on axis 1. Positions are axis -2, whatever the number of leading axes.",
        seen="answers written blind",
        edge=True,
    )
    wrong(
        "patch_first_row_of_replacement",
        {"replacement[..., position, :]": "replacement[..., 0, :]"},
        "You take row 0 of the replacement for every position. It is row `position`.",
    )
    wrong(
        "patch_from_here_on",
        {"patched[..., position, :] = replacement[..., position, :]": "patched[..., position:, :] = replacement[..., position:, :]"},
        "You replace this position and all later ones. Only one position is to change.",
    )
    wrong(
        "patch_in_place",
        {"first.clone()": "first"},
        "You write into the tensor that the module returned. Where a module gives its own input back, you "
        "change what the model uses elsewhere too. Write into a copy.",
    )
    wrong(
        "patch_hook_stays",
        {
            """
                try:
                    result = model(tokens)
                finally:
                    patching.remove()
                return result
            """: "return model(tokens)",
        },
        "Your patch (a hook, for one) stays on the module: later calls of the model are patched too, and the "
        "next experiment measures this one's patch. Remove it.",
        seen="forgotten hooks, the most frequent bug of such notebooks",
    )
    wrong(
        "patch_hook_stays_after_an_error",
        {
            """
                try:
                    result = model(tokens)
                finally:
                    patching.remove()
                return result
            """: """
                result = model(tokens)
                patching.remove()
                return result
            """,
        },
        "When the model raises an error, your patch (a hook, for one) stays on it. Removing has to happen in any case.",
    )
    wrong(
        "patch_forward_assigned_back",
        """
        own = module.forward

        def forward(*args, **kwargs):
            output = own(*args, **kwargs)
            first = output[0] if isinstance(output, tuple) else output
            patched = first.clone()
            patched[..., position, :] = replacement[..., position, :]
            return (patched, *output[1:]) if isinstance(output, tuple) else patched

        module.forward = forward
        try:
            return model(tokens)
        finally:
            module.forward = own
        """,
        "An attribute of yours stays on the module. Where the old forward is assigned back, for one: it was a "
        "method of the class and is now an attribute of this module. Delete what you put there, or use a hook.",
        seen="notebooks that replace forward for a while",
    )
    wrong(
        "patch_hook_takes_itself_away",
        {
            "def replace(_, inputs, output):": "def replace(_, inputs, output):\n    patching.remove()",
            """
                try:
                    result = model(tokens)
                finally:
                    patching.remove()
                return result
            """: "return model(tokens)",
        },
        "When the model raises an error before it calls the module, your patch (a hook, for one) stays on it. "
        "A hook that takes itself away does so only when it runs. Remove it in any case.",
    )
    wrong(
        "patch_tuple_loses_the_rest",
        {"return (patched, *output[1:]) if isinstance(output, tuple) else patched": "return patched"},
        "It goes wrong where the module returns a tuple, as when its first entry is returned alone. The other "
        "entries stay.",
    )
    wrong(
        "patch_tuple_untouched",
        {"first = output[0] if isinstance(output, tuple) else output": "if isinstance(output, tuple):\n    return output\nfirst = output"},
        "Where the module returns a tuple, nothing is replaced. Its first entry is the output.",
    )
    wrong(
        "patch_the_input",
        {
            "def replace(_, inputs, output):": "def replace(_, inputs):",
            "first = output[0] if isinstance(output, tuple) else output": "first = inputs[0].double()",
            "patched[..., position, :] = replacement[..., position, :]": "patched[..., position, :] = replacement[..., position, : patched.shape[-1]] if patched.ndim > 1 else 0",
            "return (patched, *output[1:]) if isinstance(output, tuple) else patched": "return (patched.to(inputs[0].dtype),)",
            "register_forward_hook": "register_forward_pre_hook",
        },
        "You replace what goes INTO the module. The exercise replaces what comes out of it.",
    )
    wrong(
        "patch_tuple_is_a_pair",
        {"(patched, *output[1:])": "(patched, output[1])"},
        "Of a tuple of three two entries come back to the model, as where a tuple is taken for a pair. All other "
        "entries stay, however many.",
        seen="answers written blind",
    )
    wrong(
        "patch_without_effect",
        {"return (patched, *output[1:]) if isinstance(output, tuple) else patched": "pass"},
        "The logits are those of the model without a patch. Does a hook run, on this very module of this very "
        "model, before the model is called, and does it return the patched output? What is not returned torch "
        "does not take.",
    )

ALWAYS_THE_SAME = (
    "Your control is the same head at every draw. It should be a random one, drawn from rng each time: a head "
    "that is chosen by its place or by its score may be special too."
)

with exercise("mended_control"):
    wrong(
        "control_copied",
        {
            "rng.integers(scores.size - 1)": "rng.integers(scores.size)",
            "other += other >= best": "",
            "divmod(best, num_heads), divmod(other, num_heads)": "divmod(best, len(scores)), divmod(other, len(scores))",
        },
        "It still behaves as the friend's code does: head numbers are taken apart by the number of layers, and the "
        "best head can be its own control.",
    )
    wrong(
        "control_may_be_the_best",
        {"rng.integers(scores.size - 1)": "rng.integers(scores.size)", "other += other >= best": ""},
        "Sometimes your control is the best head itself: its control shows then whatever the head shows.",
    )
    wrong(
        "control_divided_by_layers",
        {"divmod(best, num_heads), divmod(other, num_heads)": "divmod(best, len(scores)), divmod(other, len(scores))"},
        "It comes out as if the number of a head were taken apart by the number of layers. argmax "
        "counts row after row, and a row has num_heads entries.",
    )
    wrong(
        "control_never_the_last",
        {"other += other >= best": "other = other if other != best else (other + 1) % (scores.size - 1)"},
        "One head is never drawn. Every head but the best one is a control, with the same chance.",
    )
    wrong(
        "control_next_to_it",
        {"other += other >= best": "other = (best + 1) % scores.size"},
        ALWAYS_THE_SAME,
    )
    wrong(
        "control_moves_on",
        {"rng.integers(scores.size - 1)": "rng.integers(scores.size)", "other += other >= best": "other = (other + 1) % scores.size if other == best else other"},
        "The other heads do not come with the same chance. Where the next one is taken when the best head is "
        "drawn, for one, that one comes twice as often as the others.",
    )
    wrong(
        "control_of_another_layer",
        {"other += other >= best": "other = int(rng.choice([i for i in range(scores.size) if i // num_heads != best // num_heads] or [0]))"},
        "Your control comes from too few heads, for one as where it has to be of another layer. Any head but the best one may be drawn.",
    )
    wrong(
        "control_of_the_same_layer",
        {"other += other >= best": "other = int(rng.choice([i for i in range(scores.size) if i // num_heads == best // num_heads and i != best] or [0]))"},
        "Your control comes from too few heads, for one as where it has to be of the same layer. Any head but the best one may be drawn.",
    )
    wrong(
        "control_worst_head",
        {"other += other >= best": "other = int(scores.argmin())"},
        ALWAYS_THE_SAME,
    )
    wrong(
        "control_own_seed",
        {"other = int(rng.integers(scores.size - 1))": "other = int(np.random.default_rng(0).integers(scores.size - 1))"},
        ALWAYS_THE_SAME,
    )
    wrong(
        "control_largest_distance_from_0",
        {"scores.argmax()": "abs(scores).argmax()"},
        "Where scores are negative you take another head than the one with the largest score, as when minus "
        "signs are dropped. -1 is larger than -2.",
    )
    wrong(
        "control_smallest_is_best",
        {"scores.argmax()": "scores.argmin()"},
        "You take the head with the smallest score for the best.",
    )
    wrong(
        "control_exchanged",
        {"return divmod(best, num_heads), divmod(other, num_heads)": "return divmod(other, num_heads), divmod(best, num_heads)"},
        "The pairs stand in the wrong order: first the best head, then its control.",
    )

choice(
    "answer_exchanged",
    "a",
    reason="Both only add, but the second layer reads what the first has added. What it asks for has to be "
    "there when it asks.",
)
choice(
    "answer_exchanged",
    "b",
    reason="The searching layer comes first now, and the features that it searches are still empty. Nothing of "
    "what it writes is the word before.",
)
choice(
    "answer_exchanged",
    "c",
    reason="The features are there from the start: 2 * vocab free ones, all 0. Zeros raise no error.",
)
choice(
    "answer_exchanged",
    "d",
    right=True,
    reason="The search compares with 'the word before me', and these features are still 0 at every place. All "
    "scores are equal, and the weights say nothing.",
)

choice(
    "answer_direct",
    "a",
    reason="The number is what it adds to the logit directly. The second layer reads what the first writes, and that is "
    "not in it: without the first layer the model guesses.",
)
choice(
    "answer_direct",
    "b",
    reason="Where a head looks is in its map (figure 2). Attribution is about what it writes into the "
    "logit, not about its weights.",
)
choice(
    "answer_direct",
    "c",
    right=True,
    reason="Attribution counts the way from the part straight to the output. What a later layer does with it "
    "is booked under that later layer.",
)
choice(
    "answer_direct",
    "d",
    reason="The divisor is the same for all parts of a place, so it cannot make one part small beside another.",
)

choice(
    "answer_resample",
    "a",
    right=True,
    reason="When the three are silent, the one is right in 0.7 and more: so it needs nobody. When they name the "
    "word of another text, they win.",
)
choice(
    "answer_resample",
    "b",
    reason="The outputs of another text have exactly the usual sizes; that is the point of resampling. They "
    "are only of the wrong text.",
)
choice(
    "answer_resample",
    "c",
    reason="Compare with the row 'zero' of the same heads: 0.7 and more without them. A head that works "
    "alone does not need the others.",
)
choice(
    "answer_resample",
    "d",
    reason="More seeds would make the 0.05 surer. It is not in doubt; what it means is.",
)

choice(
    "answer_last",
    "a",
    reason="It was: in the corrupted run the second layer at place 21 gives another output, because it fetched something "
    "else. That is what the patch replaces.",
)
choice(
    "answer_last",
    "b",
    right=True,
    reason="The patch says that nothing goes round the second layer at place 21, and not where the work was done. The "
    "patches of place 6 say that.",
)
choice(
    "answer_last",
    "c",
    reason="Logits would show the same. The trouble is the place of the patch, not the unit.",
)
choice(
    "answer_last",
    "d",
    reason="It brings back 1.00 wherever the answer was made, as long as it passes there: after this module comes only "
    "the read-out.",
)
