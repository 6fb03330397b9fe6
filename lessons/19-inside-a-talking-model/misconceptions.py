"""Wrong implementations of lesson 19, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("heaviest_input"):
    wrong(
        "first_position_of_equals",
        "products = (hidden * weight[feature]).abs()\nreturn int(products.argmax()) % products.shape[-1]",
        "Of equals at different positions you take that of the earlier position. The lower unit is asked for, wherever it pushes.",
        seen="answers written blind",
    )

    wrong(
        "signed",
        {"(hidden * weight[feature]).abs()": "hidden * weight[feature]"},
        "Your unit is the one with the largest product, signs counted. A push down counts as much: take absolute values.",
    )
    wrong(
        "absolute_factors_summed",
        {"largest = products.reshape(-1, products.shape[-1]).amax(0)": "largest = products.reshape(-1, products.shape[-1]).sum(0)"},
        "Your unit is the one whose pushes are largest when all positions are added up. One strong push at a single position is asked for.",
    )
    wrong(
        "net_push",
        {"(hidden * weight[feature]).abs()": "(hidden * weight[feature])", ".amax(0)": ".sum(0).abs()"},
        "Your unit is the one with the largest sum over the positions, signs counted, in which pushes up and down cancel. The largest product at one position is asked for.",
    )
    wrong(
        "last_position",
        {".amax(0)": "[-1]"},
        "It looks at the last position alone. The largest push may come at any position; in this model it comes at the first.",
    )
    wrong(
        "largest_weight",
        {"(hidden * weight[feature]).abs()": "(torch.ones_like(hidden) * weight[feature]).abs()"},
        "Your unit is the one with the largest weight into the feature, whatever the hidden units hold. A large weight on a silent unit adds nothing: take the product.",
    )
    wrong(
        "largest_hidden",
        {"(hidden * weight[feature]).abs()": "hidden.abs()"},
        "Your unit is the one with the largest hidden value, whatever its weight. What counts is what arrives at the feature: the product.",
    )
    wrong(
        "a_column",
        {"weight[feature]": "weight[:, feature]"},
        "It takes a column of weight where a row is needed. nn.Linear keeps (outputs, inputs): what arrives at a feature stands in its row.",
        seen="code for libraries that keep (inputs, outputs)",
    )
    wrong(
        "place_in_the_flat_array",
        "return int((hidden * weight[feature]).abs().argmax())",
        "Your number counts through all positions: it is a place in the flattened array, not the index of a hidden unit.",
    )
    wrong(
        "the_position",
        """
        products = (hidden * weight[feature]).abs()
        return int(products.reshape(-1, products.shape[-1]).amax(1).argmax())
        """,
        "Your number says at which position the largest push comes. Which hidden unit makes it is the question.",
    )
    wrong(
        "the_last_of_equals",
        {"nonzero()[0, 0]": "nonzero()[-1, 0]"},
        "Of units that push equally, yours is the last. The lower index is asked for.",
    )
    wrong(
        "a_tensor",
        {"int((largest == largest.max()).nonzero()[0, 0])": "(largest == largest.max()).nonzero()[0, 0]"},
        "Your result is a tensor. The index is a Python int.",
    )
    wrong(
        "two_axes_only",
        {"products.reshape(-1, products.shape[-1]).amax(0)": "products.amax(0)"},
        "It works where the positions lie along one axis. There may be none, or several: put them into one first.",
    )
    wrong(
        "in_place",
        {"(hidden * weight[feature]).abs()": "hidden.mul_(weight[feature].detach()).abs_()"},
        "Your function writes into hidden. It should be as before after the call.",
    )

with exercise("evict"):
    wrong(
        "from_the_beginning",
        {"new[..., start:, column]": "new[..., column]"},
        "The key is hidden from all queries, also from those before start. Those saw it while it was still there.",
    )
    wrong(
        "one_query_late",
        {"new[..., start:, column]": "new[..., start + 1 :, column]"},
        "The query at start still sees the key. It is hidden from that query on, start included.",
    )
    wrong(
        "one_query_early",
        {"new[..., start:, column]": "new[..., max(start - 1, 0) :, column]"},
        "The query before start does not see the key either. It is hidden from start on.",
    )
    wrong(
        "one_query_only",
        {"new[..., start:, column]": "new[..., start, column]"},
        "Only the query at start does not see the key. Whoever is thrown out stays out: all later queries do not see it either.",
    )
    wrong(
        "before_start",
        {"new[..., start:, column]": "new[..., :start, column]"},
        "The key is hidden from the queries before start. It is those from start on that no longer see it.",
    )
    wrong(
        "row_and_column_exchanged",
        {"new[..., start:, column]": "new[..., column, start:]"},
        "You hide keys from one query. A key is a column: it is one column whose later rows become False.",
    )
    wrong(
        "all_older_keys",
        {"new[..., start:, column]": "new[..., start:, : column + 1]"},
        "All keys up to column are hidden. Only that one goes.",
        seen="a window, which drops all that is old",
    )
    wrong(
        "rows_and_columns_of_a_batch",
        {"new[..., start:, column]": "new[start:, column]"},
        "With leading axes it hides something else: the last two axes are query and key, however many there are before.",
    )
    wrong(
        "itself_stays_seen",
        {"new[..., start:, column] = False": "new[..., start:, column] = False\nif start <= column:\n    new[..., column, column] = mask[..., column, column]"},
        "The query at column still sees itself. Where it comes at or after start its own key is gone, too, even if its row becomes empty.",
    )
    wrong(
        "empty_rows_opened",
        {"new[..., start:, column] = False": "new[..., start:, column] = False\nnew |= ~new.any(-1, keepdims=True)"},
        "A row that becomes empty is opened again, so that its query sees everything. It stays empty: lesson 3's function gives weights 0 then.",
    )
    wrong(
        "opened_instead",
        {"= False": "= True"},
        "The key is allowed from start on. True means 'may attend'.",
        seen="libraries whose True means 'hidden'",
    )
    wrong(
        "made_causal",
        {"new = mask.copy()": "new = np.tril(mask)"},
        "Your mask is causal, also where the one that was handed over is not. All other entries stay as they are.",
    )
    wrong(
        "built_anew",
        {"new = mask.copy()": "new = np.broadcast_to(np.tril(np.ones((n, n), dtype=bool)), mask.shape).copy()"},
        "You begin with a causal mask of your own. What the mask hid already should stay hidden, and what it allowed stays allowed.",
    )
    wrong(
        "in_place",
        {"mask.copy()": "mask"},
        "You write into the mask that was handed over. Return a new one: whoever called wants to compare the two.",
    )
    wrong(
        "no_errors",
        {"if not (0 <= column < n and 0 <= start < n):": "if False:"},
        "A column or start outside the text is not refused with a ValueError of your own. A negative number hides another key without a word.",
    )
    wrong(
        "negative_numbers",
        {"0 <= column < n and 0 <= start < n": "column < n and start < n"},
        "Negative numbers are let through: NumPy counts them from the end, and another key is hidden. They are a ValueError.",
    )
    wrong(
        "start_not_asked",
        {"0 <= column < n and 0 <= start < n": "0 <= column < n"},
        "A start outside the text is let through, and then nothing or something else is hidden. It is a ValueError.",
    )

with exercise("sink_window_mask"):
    wrong(
        "sinks_ahead",
        {"(key <= query) & ((key > query - window) | (key < sinks))": "(key <= query) & (key > query - window) | (key < sinks)"},
        "Early positions see sinks that lie ahead of them. The whole mask is causal: a sink is seen at or after its own position.",
        seen="& binds more tightly than |",
    )
    wrong(
        "not_causal",
        {"(key <= query) & ((": "(("},
        "Every position sees all later ones. The window ends at the position.",
    )
    wrong(
        "sinks_taken_from_the_window",
        {"key > query - window": "key > query - (window - sinks)"},
        "Your window is shorter by the number of sinks. Here they come on top: window positions, and the sinks.",
        seen="caches of a fixed size, which hold the sinks among their places",
    )
    wrong(
        "window_and_sinks",
        {"| (key < sinks)": "& (key < sinks)"},
        "A position has to lie in the window and among the sinks to be seen. One of the two is enough.",
    )
    wrong(
        "no_sinks",
        {"((key > query - window) | (key < sinks))": "(key > query - window)"},
        "The sinks are not seen. That is lesson 14's sliding window.",
    )
    wrong(
        "one_sink",
        {"key < sinks": "(key == 0) & (sinks > 0)"},
        "However many sinks are asked for, only the first position is one.",
    )
    wrong(
        "one_sink_too_many",
        {"key < sinks": "key <= sinks"},
        "One position too many counts as a sink: with sinks = 0 the first one is still seen.",
    )
    wrong(
        "window_one_too_many",
        {"key > query - window": "key >= query - window"},
        "Your window is the word itself and `window` words before it: one too many.",
    )
    wrong(
        "window_one_too_few",
        {"key > query - window": "key > query - window + 1"},
        "Your window is one position too short. It holds `window` positions, the word itself among them.",
    )
    wrong(
        "sinks_as_queries",
        {"key < sinks": "query < sinks"},
        "The first positions see more than their window, and nobody sees them from afar. Sinks are keys: columns of the mask.",
    )
    wrong(
        "true_hides",
        {"return (key <= query)": "return ~(key <= query)", "& ((key > query - window) | (key < sinks))": "| ~((key > query - window) | (key < sinks))"},
        "Your True means 'hidden'. In this course True means 'may attend'.",
        seen="the attn_mask of torch's nn.MultiheadAttention",
    )
    wrong(
        "rows_and_columns_exchanged",
        {"key = np.arange(n)\nquery = key[:, None]": "query = np.arange(n)\nkey = query[:, None]"},
        "Rows and columns are exchanged: a row is a query, a column a key.",
    )
    wrong(
        "from_a_negative_start",
        """
        if window < 1 or sinks < 0:
            raise ValueError("window, sinks")
        mask = np.zeros((n, n), dtype=bool)
        for t in range(n):
            mask[t, t - window + 1 : t + 1] = True
            mask[t, : min(sinks, t + 1)] = True
        return mask
        """,
        "Near the beginning your window is empty: its first position comes out negative there, and a slice takes that as counted from the end.",
    )
    wrong(
        "numbers",
        {"return (key <= query)": "return 1.0 * (key <= query)", "& ((key": "* ((key"},
        "Your mask holds the floats 0 and 1. A mask of the course is boolean.",
    )
    wrong(
        "no_errors",
        {"if window < 1 or sinks < 0:": "if False:"},
        "A window below 1 or sinks below 0 are not refused. Both are a ValueError.",
    )
    wrong(
        "negative_sinks",
        {"if window < 1 or sinks < 0:": "if window < 1:"},
        "Sinks below 0 are let through. They are a ValueError.",
    )
    wrong(
        "window_of_nothing",
        {"if window < 1 or sinks < 0:": "if window < 0 or sinks < 0:"},
        "A window of 0 is let through. A position sees at least itself: it is a ValueError.",
    )
    wrong(
        "needs_sinks",
        {"sinks < 0:": "sinks < 1:"},
        "sinks = 0 is refused. It is lesson 14's window, and allowed.",
    )

with exercise("logit_lens"):
    wrong(
        "gamma_of_the_norm",
        {"norm(streams)": "(streams / (streams.square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.gamma)"},
        "It comes out right for one kind of norm, and for one eps. Call the norm that was handed over, whatever it is.",
        seen="answers written blind",
    )

    wrong(
        "no_norm",
        {"output(norm(streams))": "output(streams)"},
        "Your logits are those of the streams as they are, without the norm. The read-out was trained behind the final norm, and the streams grow from layer to layer.",
        seen="the first lenses that people write",
    )
    wrong(
        "normed_twice",
        {"output(norm(streams))": "output(norm(norm(streams)))"},
        "Each stream goes through the norm twice. Once is asked for.",
    )
    wrong(
        "norm_of_the_last",
        {"norm(streams)": "norm(streams[-1]) / streams[-1] * streams"},
        "Every layer is divided by the last layer's size. Each stream is normed by itself, as if it were the last.",
        seen="lesson 13's attribution, where one divisor serves all parts",
    )
    wrong(
        "what_each_layer_adds",
        {"norm(streams)": "norm(torch.cat([streams[:1], streams[1:] - streams[:-1]]))"},
        "Your logits are those of what each layer adds. The lens reads the whole stream behind each layer.",
    )
    wrong(
        "probabilities",
        {"output(norm(streams))": "torch.softmax(output(norm(streams)), dim=-1)"},
        "Your result is probabilities. Logits are asked for.",
    )
    wrong(
        "log_probabilities",
        {"output(norm(streams))": "torch.log_softmax(output(norm(streams)), dim=-1)"},
        "Your result is logarithms of probabilities. Logits are asked for, as the output gives them.",
    )
    wrong(
        "last_layer_only",
        {"output(norm(streams))": "output(norm(streams[-1]))"},
        "Only the last layer's logits come back. The first axis stays: one row of logits a layer.",
    )
    wrong(
        "last_position_only",
        {"output(norm(streams))": "output(norm(streams))[:, -1]"},
        "Only one position comes back. Every position of each layer is asked for.",
    )
    wrong(
        "no_bias",
        {"output(norm(streams))": "norm(streams) @ output.weight.T"},
        "The output's bias is left out. Call output itself.",
    )
    wrong(
        "own_norm",
        {"norm(streams)": "(streams / (streams.square().mean(-1, keepdim=True) + getattr(norm, 'eps', 0)).sqrt())"},
        "Your streams are divided by their size, but the norm does more: this one has a gamma, too. Call the norm that was handed over.",
    )
    wrong(
        "an_rms_norm_of_your_own",
        {"norm(streams)": "(streams / (streams.square().mean(-1, keepdim=True) + 1e-6).sqrt() * getattr(norm, 'gamma', 1))"},
        "It comes out right for one kind of norm, and for one eps. Call the norm that was handed over, whatever it is.",
    )
    wrong(
        "weights_of_the_token",
        {"output(norm(streams))": "output(norm(streams)).argmax(-1)"},
        "Your result is the likeliest tokens. All logits are asked for.",
    )

with exercise("token_rank"):
    wrong(
        "of_probabilities",
        "p = torch.softmax(logits, dim=-1)\nreturn (p > p[..., token, None]).sum(-1)",
        "You compare probabilities. Where two of them come to 0 their logits may still differ: compare the logits.",
        seen="answers written blind",
    )

    wrong(
        "equal_ones_count",
        {"logits > logits[..., token, None]": "logits >= logits[..., token, None]"},
        "Tokens with an equal logit count as well, the token itself among them. Only larger logits do.",
    )
    wrong(
        "equal_others_count",
        {"(logits > logits[..., token, None]).sum(-1)": "(logits >= logits[..., token, None]).sum(-1) - 1"},
        "Other tokens with an equal logit count as well. Only larger logits do.",
    )
    wrong(
        "counts_from_one",
        {".sum(-1)": ".sum(-1) + 1"},
        "The likeliest token has rank 1 in your result. It has rank 0: no token is larger.",
    )
    wrong(
        "from_the_smallest",
        {"logits > logits": "logits < logits"},
        "You count the tokens that are less likely. The larger logits are asked for.",
    )
    wrong(
        "place_in_a_sorted_list",
        "return (logits.argsort(dim=-1, descending=True, stable=True) == token).int().argmax(-1)",
        "Your rank is a place in a sorted list, which breaks ties by the token's number. Of equal logits none counts.",
    )
    wrong(
        "sorted_upwards",
        "return (logits.argsort(dim=-1) == token).int().argmax(-1)",
        "Your rank counts from the smallest logit. The largest has rank 0.",
    )
    wrong(
        "the_sorted_token",
        "return logits.argsort(dim=-1, descending=True)[..., token]",
        "Your result says which token stands at place `token` of the sorted list. It is the other way round: at which place that token stands.",
        seen="argsort once, where a rank needs it twice",
    )
    wrong(
        "index_of_the_token",
        {"logits[..., token, None]": "token"},
        "The logits are compared with the token's number. Compare them with the token's logit.",
    )
    wrong(
        "all_positions_together",
        {".sum(-1)": ".sum()"},
        "Your result is one number for all positions together. Each position has a rank of its own.",
    )
    wrong(
        "other_axis",
        {".sum(-1)": ".sum(0)"},
        "You count along the first axis. It is the last one that holds the tokens.",
    )
    wrong(
        "other_dtype",
        {".sum(-1)": ".sum(-1).to(torch.int32)"},
        "Your ranks are right, and of another dtype. int64 is asked for.",
    )
    wrong(
        "in_place",
        {"return (logits > logits[..., token, None]).sum(-1)": "logits -= logits[..., token, None].clone()\nreturn (logits > 0).sum(-1)"},
        "Your function writes into logits. They should be as before after the call.",
    )

with exercise("head_attribution"):
    wrong(
        "memory_cut_anew",
        """
        num_layers, num_heads, d_head = heads.shape
        parts = W_o.reshape(num_layers, num_heads, d_head, -1)
        return (heads[..., None] * parts).sum(dim=-2) @ direction
        """,
        "A reshape of W_o from (d_model, num_heads * d_head) to (num_heads, d_head, d_model) mixes rows and columns: it exchanges "
        "no axes. Cut the last axis into heads, and leave d_model where it is.",
        seen="answers written blind",
    )

    wrong(
        "rows_of_the_projection",
        {"direction @ W_o": "direction @ W_o.mT"},
        "Your heads meet rows of W_o. nn.Linear keeps (outputs, inputs), and a head is an input: its numbers meet columns.",
        seen="code that silences a head by setting rows of the projection to 0",
    )
    wrong(
        "interleaved_columns",
        {"along.reshape(num_layers, num_heads, d_head)": "along.reshape(num_layers, d_head, num_heads).mT"},
        "Your head h meets every num_heads-th column. Its columns lie side by side: h * d_head to (h + 1) * d_head - 1.",
    )
    wrong(
        "first_layers_projection",
        {"direction @ W_o": "direction @ W_o[:1].expand_as(W_o)"},
        "Every layer goes through the projection of layer 0. Each layer has one of its own.",
    )
    wrong(
        "direction_normed",
        {"direction @ W_o": "direction / direction.norm() @ W_o"},
        "The direction is normed to length 1. It is used as it is, so that the sum is in units of the logit.",
    )
    wrong(
        "absolute",
        {".sum(-1)": ".sum(-1).abs()"},
        "Your numbers have no sign. A head that pushes against the direction counts as negative.",
    )
    wrong(
        "mean_over_features",
        {".sum(-1)": ".mean(-1)"},
        "You take the mean over the features of a head. What arrives in the stream is their sum.",
    )
    wrong(
        "heads_of_the_layer_summed",
        {".sum(-1)": ".sum(-1).sum(-1, keepdim=True).expand(num_layers, num_heads)"},
        "Every head of a layer gets what the whole layer adds. Each head has a share of its own.",
    )
    wrong(
        "heads_by_layers",
        {".sum(-1)": ".sum(-1).T"},
        "Your result is (num_heads, num_layers). The layers come first.",
    )
    wrong(
        "size_of_the_output",
        """
        num_layers, num_heads, d_head = heads.shape
        columns = W_o.reshape(num_layers, -1, num_heads, d_head)
        return torch.einsum("lmhe,lhe->lhm", columns, heads).norm(dim=-1)
        """,
        "Your numbers say how much each head adds at all. How much lies along the direction is the question.",
    )
    wrong(
        "cosine",
        """
        num_layers, num_heads, d_head = heads.shape
        columns = W_o.reshape(num_layers, -1, num_heads, d_head)
        added = torch.einsum("lmhe,lhe->lhm", columns, heads)
        return torch.nn.functional.cosine_similarity(added, direction, dim=-1)
        """,
        "Your numbers are cosines: they say where a head points, not how much it adds. A product is asked for.",
    )
    wrong(
        "shares",
        {"return (heads * along.reshape(num_layers, num_heads, d_head)).sum(-1)": "added = (heads * along.reshape(num_layers, num_heads, d_head)).sum(-1)\nreturn added / added.sum()"},
        "Your numbers are shares of a whole. They should be what each head adds, as it is.",
    )
    wrong(
        "float32",
        {"(heads * along.reshape(num_layers, num_heads, d_head)).sum(-1)": "(heads.float() * along.reshape(num_layers, num_heads, d_head).float()).sum(-1).to(heads.dtype)"},
        "Your numbers are right to seven digits: it comes out as if float64 went through float32.",
    )
    wrong(
        "in_place",
        {"(heads * along.reshape(num_layers, num_heads, d_head))": "heads.mul_(along.reshape(num_layers, num_heads, d_head))"},
        "Your function writes into heads. They should be as before after the call.",
    )

with exercise("LoRA"):
    wrong(
        "zero_is_one",
        {"self.scale = scale": "self.scale = scale or 1.0"},
        "A scale of 0 becomes 1. It is a scale like any other, and leaves layer alone.",
        seen="answers written blind",
    )

    wrong(
        "b_random",
        {"torch.zeros(layer.out_features, rank, dtype=dtype)": "torch.randn(layer.out_features, rank, dtype=dtype) / rank"},
        "B is not zero at the start, so that the layer is another one before anything has been learned.",
    )
    wrong(
        "a_zero_too",
        {"torch.randn(rank, layer.in_features, dtype=dtype) / layer.in_features**0.5": "torch.zeros(rank, layer.in_features, dtype=dtype)"},
        "A and B are both zero. Then neither gets a gradient, and nothing is ever learned.",
    )
    wrong(
        "a_zero_b_random",
        {"torch.randn(rank, layer.in_features, dtype=dtype) / layer.in_features**0.5": "torch.zeros(rank, layer.in_features, dtype=dtype)",
         "torch.zeros(layer.out_features, rank, dtype=dtype)": "torch.randn(layer.out_features, rank, dtype=dtype)"},
        "A is zero at the start and B is random. It is to be the other way round.",
    )  # fmt: skip
    wrong(
        "layer_still_trained",
        {"layer.requires_grad_(False)": "layer"},
        "layer's own weights are still trained. Only A and B are: that is what makes the change small.",
    )
    wrong(
        "bias_still_trained",
        {"self.layer = layer.requires_grad_(False)": "layer.weight.requires_grad_(False)\nself.layer = layer"},
        "layer's bias is still trained. Only A and B are.",
    )
    wrong(
        "a_copy_of_the_layer",
        {"layer.requires_grad_(False)": "nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, dtype=layer.weight.dtype).requires_grad_(False)\nself.layer.load_state_dict(layer.state_dict())"},
        "layer is a copy of what was handed over. Keep the object itself: a second copy of all weights is what LoRA is there to avoid.",
    )
    wrong(
        "no_scale",
        {"self.scale * (x @ self.A.T)": "(x @ self.A.T)"},
        "scale has no effect. It multiplies the change.",
    )
    wrong(
        "scale_of_everything",
        {"self.layer(x) + self.scale * (x @ self.A.T) @ self.B.T": "self.scale * (self.layer(x) + (x @ self.A.T) @ self.B.T)"},
        "scale multiplies layer(x), too. It belongs to the change alone.",
    )
    wrong(
        "scale_by_rank",
        {"self.scale * (x @ self.A.T)": "self.scale / len(self.A) * (x @ self.A.T)"},
        "The change is divided by the rank. Here scale is the whole factor.",
        seen="the paper's alpha / r",
    )
    wrong(
        "scale_fixed_at_the_start",
        {"self.scale = scale": "self.scale = scale\nself.fixed = scale", "self.scale * (x @ self.A.T)": "self.fixed * (x @ self.A.T)"},
        "A scale that is set later has no effect. Read self.scale at each call: it is the dial of this lesson.",
    )
    wrong(
        "without_the_layer",
        {"self.layer(x) + self.scale": "self.scale"},
        "layer(x) is missing: your output is the change alone.",
    )
    wrong(
        "without_the_bias",
        {"self.layer(x)": "x @ self.layer.weight.T"},
        "layer's bias is missing from the output. Call layer itself.",
    )
    wrong(
        "no_gradient_through_the_layer",
        {"self.layer(x) +": "self.layer(x.detach()) +"},
        "No gradient reaches x through layer(x). Its weights stand still, but what lies below has to learn through them.",
        seen="torch.no_grad() around the frozen layer",
    )
    wrong(
        "no_gradient_through_the_change",
        {"(x @ self.A.T)": "(x.detach() @ self.A.T)"},
        "No gradient reaches x through the change. Both terms are part of the function.",
    )
    wrong(
        "axes_of_a_exchanged",
        {"torch.randn(rank, layer.in_features, dtype=dtype)": "torch.randn(layer.in_features, rank, dtype=dtype)", "x @ self.A.T": "x @ self.A"},
        "A is (in_features, rank). It is asked for as (rank, in_features), as nn.Linear keeps its weights.",
    )
    wrong(
        "axes_of_both_exchanged",
        {"torch.randn(rank, layer.in_features, dtype=dtype)": "torch.randn(layer.in_features, rank, dtype=dtype)", "x @ self.A.T": "x @ self.A",
         "torch.zeros(layer.out_features, rank, dtype=dtype)": "torch.zeros(rank, layer.out_features, dtype=dtype)", "@ self.B.T": "@ self.B"},
        "A and B are both turned over: A should be (rank, in_features) and B (out_features, rank).",
    )  # fmt: skip
    wrong(
        "always_float32",
        {"torch.randn(rank, layer.in_features, dtype=dtype)": "torch.randn(rank, layer.in_features)", "torch.zeros(layer.out_features, rank, dtype=dtype)": "torch.zeros(layer.out_features, rank)",
         "(x @ self.A.T) @ self.B.T": "(x @ self.A.T.to(x.dtype)) @ self.B.T.to(x.dtype)"},
        "A and B are float32 whatever layer is. They have the dtype of layer.weight.",
    )  # fmt: skip
    wrong(
        "plain_tensors",
        {"nn.Parameter(torch.randn(rank, layer.in_features, dtype=dtype) / layer.in_features**0.5)": "torch.randn(rank, layer.in_features, dtype=dtype) / layer.in_features**0.5",
         "nn.Parameter(torch.zeros(layer.out_features, rank, dtype=dtype))": "torch.zeros(layer.out_features, rank, dtype=dtype)"},
        "A and B are plain tensors: no optimiser finds them. Make them nn.Parameter.",
    )  # fmt: skip
    wrong(
        "rank_not_asked",
        {"if rank < 1:": "if False:"},
        "A rank of 0 or below is not refused. It is a ValueError.",
    )
    wrong(
        "rank_at_most_the_size",
        {"if rank < 1:": "if not 1 <= rank <= min(layer.in_features, layer.out_features):"},
        "A rank above the sizes of the layer is refused. It is of no use, and allowed.",
    )

with exercise("merge_lora"):
    wrong(
        "through_float32",
        {", dtype=old.weight.dtype)": ")", "return merged": "return merged.to(old.weight.dtype)"},
        "The merged numbers have been through float32. The dtype is right afterwards; the digits are lost. Make the new layer "
        "with the dtype of the old one, and then copy.",
        seen="answers written blind",
    )

    wrong(
        "no_scale",
        {"lora.scale * lora.B @ lora.A": "lora.B @ lora.A"},
        "The merged weight takes no notice of scale.",
    )
    wrong(
        "scale_squared",
        {"lora.scale * lora.B": "lora.scale**2 * lora.B"},
        "scale enters twice. Once is asked for.",
    )
    wrong(
        "only_the_change",
        {"old.weight + lora.scale": "lora.scale"},
        "The merged weight is the change alone. layer's own weight belongs to it.",
    )
    wrong(
        "only_the_layer",
        {"old.weight + lora.scale * lora.B @ lora.A": "old.weight"},
        "The merged weight is layer's. The change is lost.",
    )
    wrong(
        "bias_forgotten",
        {"bias=old.bias is not None": "bias=False", "if old.bias is not None:": "if False:"},
        "The merged layer has no bias where layer has one.",
    )
    wrong(
        "bias_always",
        {"bias=old.bias is not None, ": "", "if old.bias is not None:\n    merged.bias.copy_(old.bias)": "if old.bias is not None:\n    merged.bias.copy_(old.bias)\nelse:\n    merged.bias.zero_()"},
        "The merged layer has a bias where layer has none, even if it is zero. It has one exactly where layer has.",
    )
    wrong(
        "bias_not_copied",
        {"if old.bias is not None:\n    merged.bias.copy_(old.bias)": "pass"},
        "The merged layer's bias is a random one. It is layer's.",
    )
    wrong(
        "into_the_layer",
        """
        with torch.no_grad():
            lora.layer.weight += lora.scale * lora.B @ lora.A
        return lora.layer
        """,
        "The change is written into lora.layer itself. lora is then changed twice over; it should be as before.",
        seen="libraries that merge in place",
    )
    wrong(
        "bias_shared",
        {"merged.bias.copy_(old.bias)": "merged.bias = nn.Parameter(old.bias.data)"},
        "The merged layer's bias shares its memory with lora's. Copy it.",
    )
    wrong(
        "not_trainable",
        {"return merged": "return merged.requires_grad_(False)"},
        "The merged layer cannot be trained. It is an ordinary layer again.",
    )
    wrong(
        "always_float32",
        {", dtype=old.weight.dtype": ""},
        "The merged layer is float32 whatever layer is. It has layer's dtype.",
    )
    wrong(
        "the_lora_stops_training",
        {"return merged": "lora.requires_grad_(False)\nreturn merged"},
        "A and B of lora can no longer be trained after the call. lora should be as before.",
    )
    wrong(
        "only_a_weight",
        {"return merged": "return merged.weight"},
        "Your result is a weight. One nn.Linear is asked for.",
    )

choice("answer_control", "a", reason="One weight was enough to be measured: the one number alone makes all sixty worse.")
choice(
    "answer_control",
    "b",
    reason="A claim that something is special has to beat rivals. One random weight is no rival; thirty thousand, and the largest ones, are.",
    right=True,
)
choice("answer_control", "c", reason="If it did as much, the number would not be special. It has to be of the same kind, not of the same effect.")
choice("answer_control", "d", reason="How exact the mean is depends on the sentences, which are the same sixty each time.")

choice("answer_silent_bug", "a", reason="by_weights copies the result into the model. And the copy keeps the original whole, which is right.")
choice("answer_silent_bug", "b", reason="The matrix is square: both are 576. In another model it might matter; it is not what is wrong here.")
choice("answer_silent_bug", "c", reason="Head 0 has features 0 to 63, so head 1 begins at 64, which is d_head. Right as it is.")
choice(
    "answer_silent_bug",
    "d",
    reason="nn.Linear keeps (outputs, inputs). The rows are 64 features of the stream, into which all nine heads write; a head comes in through 64 columns.",
    right=True,
)

choice("answer_sink", "a", reason="Both explanations say that: with a longer window both the message and the first token stay longer.")
choice(
    "answer_sink",
    "b",
    reason="If the rubbish stops although the message is gone, it was the place that was missing, not what stood there.",
    right=True,
)
choice("answer_sink", "c", reason="The message would then be in the window, but the rubbish comes all the same or not: with the first token gone you learn nothing of the sink unless it stays.")
choice("answer_sink", "d", reason="A model that writes rubbish does not answer, and one that answers may answer wrongly (lesson 18).")

choice("answer_lora", "a", reason="Slower by how much? The gradient of B is made of A x, and that of A of B: both are exactly 0.")
choice("answer_lora", "b", reason="B's gradient holds A x, A's holds B. Both zero: no step ever moves either. One of them has to be random.", right=True)
choice("answer_lora", "c", reason="B would have to move first, and its gradient is made of A x, which is 0.")
choice("answer_lora", "d", reason="The change is zero, and the output is that of layer: so it should be at the start.")
