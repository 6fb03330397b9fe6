"""Wrong implementations of lesson 14, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

NEGATIVE_START = (
    "Near the beginning rows lack what they should see, as with a slice that starts at a negative number: "
    "Python counts that from the end of the row. Let no start lie below 0."
)

ONE_TEXT = (
    "With one leading axis of length 1 (one text) your result lacks that axis, as where squeeze() or an index takes "
    "it away. It stays: one text gives one output, with the axis of the texts in front."
)

with exercise("sliding_window_mask"):
    wrong(
        "window_from_a_negative_start",
        """
            if window < 1:
                raise ValueError("window")
            mask = np.zeros((n, n), dtype=bool)
            for t in range(n):
                mask[t, t - window + 1 : t + 1] = True
            return mask
        """,
        NEGATIVE_START,
    )

    wrong(
        "window_without_itself",
        {"back < window": "back <= window"},
        "Your window is the word itself and `window` words before it: one too many. The word itself is "
        "one of the `window` positions.",
        seen="libraries that count the words before a word",
    )

    wrong(
        "window_one_too_few",
        {"back < window": "back < window - 1"},
        "Your window has one position too few; with a window of 1 a word sees nothing at all. It is the "
        "word itself and `window - 1` before it.",
    )

    wrong(
        "window_before_the_word",
        {"(back >= 0) & (back < window)": "(back >= 1) & (back <= window)"},
        "Your window ends before the word. It ends at the word: a word sees itself.",
    )

    wrong(
        "window_both_sides",
        {"(back >= 0) & (back < window)": "np.abs(back) < window"},
        "Your window reaches to both sides: a word sees words after it. The window is causal.",
        seen="Longformer's window, for encoders",
    )

    wrong(
        "window_centred",
        {"(back >= 0) & (back < window)": "np.abs(back) <= window // 2"},
        "Your window is centred on the word, half of it in the future. It ends at the word.",
        seen="the window of an encoder",
    )

    wrong(
        "window_of_the_future",
        {"(back >= 0) & (back < window)": "(back <= 0) & (back > -window)"},
        "Your window lies behind the word, in the future. Row is the query, column the key: the key lies "
        "before the query.",
    )

    wrong(
        "window_not_causal",
        {"(back >= 0) & (back < window)": "back < window"},
        "The past is cut off, but the future is not hidden: a word sees every later word.",
    )

    wrong(
        "window_causal_only",
        {"(back >= 0) & (back < window)": "back >= 0"},
        "That is lesson 6's causal mask: the window is not used.",
    )

    wrong(
        "window_true_hides",
        {"(back >= 0) & (back < window)": "~((back >= 0) & (back < window))"},
        "Your True means 'hidden'. In this course True means 'may attend'.",
        seen="the attn_mask of torch's nn.MultiheadAttention",
    )

    wrong(
        "window_in_blocks",
        {"(back >= 0) & (back < window)": "(back >= 0) & (positions[:, None] // window == positions // window)"},
        "Your text is cut into blocks, and a word sees the words of its own block. The first word of a "
        "block then sees only itself. A window slides: it ends at each word.",
        seen="block-local attention",
    )

    wrong(
        "window_steps",
        {"(back >= 0) & (back < window)": "(back >= 0) & (back % window == 0)"},
        "You allow every `window`-th position of the past. A window is the last `window` positions, "
        "without gaps.",
        seen="strided attention (Child and others, 2019)",
    )

    wrong(
        "window_additive",
        {"return (back >= 0) & (back < window)": "return np.where((back >= 0) & (back < window), 0.0, -np.inf)"},
        "You return what is added to the scores, 0 and -inf. The exercise asks for the boolean mask.",
        seen="additive masks of many implementations",
    )

    wrong(
        "window_none_means_all",
        {'raise ValueError(f"window = {window}: a position sees at least itself, so at least 1")': "window = n"},
        "A window below 1 is accepted in silence, whatever it is taken to mean. It is a ValueError: whoever "
        "asks for it has made a mistake.",
        seen="libraries where 0 or -1 switches the window off",
    )

    wrong(
        "window_longer_refused",
        {"if window < 1:": "if window < 1 or window > n:"},
        "You refuse a window that is longer than the text. It is allowed, and hides nothing of the past.",
    )

    wrong(
        "window_cached",
        """
            def sliding_window_mask(n, window, kept={}):
                if window < 1:
                    raise ValueError(f"window = {window}")
                if (n, window) not in kept:
                    kept[n, window] = np.tri(n, dtype=bool) & ~np.tri(n, k=-window, dtype=bool)
                return kept[n, window]
        """,
        "You keep the mask and hand out the same array again. Whoever writes into it changes the mask for "
        "everybody. Make a new array each call.",
    )

    wrong(
        "window_entries_share_memory",
        """
            if window < 1:
                raise ValueError("window")
            line = np.zeros(2 * n - 1, dtype=bool)
            line[max(0, n - window) : n] = True
            step = line.strides[0]
            return np.lib.stride_tricks.as_strided(line[n - 1 :], (n, n), (-step, step))
        """,
        "When one entry of your mask is written to, others change with it, as where several entries lie at one "
        "place in memory. Each entry needs a place of its own: a copy has that.",
    )


with exercise("receptive_field"):
    wrong(
        "field_product",
        "return num_layers * window",
        "Your number is layers times window. The windows of two layers overlap in one position: "
        "each layer adds `window - 1` new ones.",
        seen="summaries of published models: layers times window",
    )

    wrong(
        "field_power",
        "return window**num_layers",
        "Your field grows by a factor a layer. Each layer looks `window - 1` positions further back, so it "
        "grows by a sum.",
        seen="dilated convolutions, where the reach does multiply",
    )

    wrong(
        "field_without_itself",
        "return num_layers * (window - 1)",
        "You count only the positions before the last one. It depends on itself, too: one more.",
    )

    wrong(
        "field_product_and_itself",
        "return num_layers * window + 1",
        "Each of your layers reaches `window` positions back. The word itself is one of the window, so it "
        "is `window - 1`.",
    )

    wrong(
        "field_one_layer_less",
        "return (num_layers - 1) * (window - 1) + 1",
        "You count one layer too few: a single layer already sees its whole window.",
    )

    wrong(
        "field_one_layer_more",
        "return (num_layers + 1) * (window - 1) + 1",
        "You count one layer too many. One layer sees its window, no more.",
    )

    wrong(
        "field_window_only",
        "return window",
        "Your field is the window, for any number of layers. A word in the window has looked at its own "
        "window one layer before.",
    )

    wrong(
        "field_both_sides",
        "return 2 * num_layers * (window - 1) + 1",
        "You count to both sides. The window is causal: nothing behind the last position is seen.",
        seen="receptive fields of convolutions",
    )

    wrong(
        "field_sum",
        "return window + num_layers",
        "Each layer adds one position in your count. It adds `window - 1`.",
    )

    wrong(
        "field_doubling",
        "return (window - 1) * 2 ** (num_layers - 1) + 1",
        "Your reach doubles with each layer. That needs gaps that grow; here each layer reaches the same "
        "`window - 1` positions further back.",
        seen="dilated windows",
    )

    wrong(
        "field_half_window",
        "return num_layers * (window // 2) + 1",
        "Each of your layers reaches half a window back. A causal window lies before the word with all of "
        "its length.",
        seen="centred windows",
    )

    wrong(
        "field_float",
        "return num_layers * (window - 1.0) + 1",
        "Your result is a float. A number of positions is a Python int.",
    )

    wrong(
        "field_paths_in_8_bits",
        """
            paths = np.ones(1, dtype=np.uint8)
            for _ in range(num_layers):
                paths = np.convolve(paths, np.ones(window, dtype=np.uint8))
            return int(np.count_nonzero(paths))
        """,
        "With more layers some positions are missing in your number, as where the ways to each of them "
        "are counted in numbers of few bits, which come back to 0. It is enough that there is a way.",
        seen="answers written blind",
    )


with exercise("linear_attention"):
    wrong(
        "linear_one_text_loses_its_axis",
        {
            "q, k = F.elu(Q) + 1": "Q, K, V = (x if x.ndim > 2 else x[None] for x in (Q, K, V))\nq, k = F.elu(Q) + 1",
            "return read / (q * z).sum(dim=-1, keepdim=True)": "return (read / (q * z).sum(dim=-1, keepdim=True)).squeeze(0)",
        },
        ONE_TEXT,
        edge=True,
    )
    wrong(
        "linear_not_causal",
        {".cumsum(dim=-3)": ".sum(dim=-3, keepdim=True)", "k.cumsum(dim=-2)": "k.sum(dim=-2, keepdim=True)"},
        "Your sums run over the whole text: every word sees the later ones. They run up to the word itself.",
        seen="linear attention of an encoder",
    )

    wrong(
        "linear_divisor_not_causal",
        {"k.cumsum(dim=-2)": "k.sum(dim=-2, keepdim=True)"},
        "The sum above the fraction line is causal, the divisor is not: it counts the keys of later words, "
        "too.",
    )

    wrong(
        "linear_values_not_causal",
        {".cumsum(dim=-3)": ".sum(dim=-3, keepdim=True)"},
        "The divisor is causal, the sum above the fraction line is not: it holds the values of later words.",
    )

    wrong(
        "linear_not_divided",
        {"return read / (q * z).sum(dim=-1, keepdim=True)": "return read"},
        "You do not divide. The weights of a word then sum to something that grows with the text.",
        seen="later linear attentions that leave the divisor out",
    )

    wrong(
        "linear_divided_by_count",
        {"(q * z).sum(dim=-1, keepdim=True)": "torch.arange(1, z.shape[-2] + 1, dtype=z.dtype)[:, None]"},
        "You divide by the number of words so far. The divisor is the sum of the features' products.",
    )

    wrong(
        "linear_divided_by_keys",
        {"(q * z).sum(dim=-1, keepdim=True)": "z.sum(dim=-1, keepdim=True)"},
        "Your divisor is the sum of the keys' features, and the query has no part in it. It is the product "
        "of the query's features with that sum.",
    )

    wrong(
        "linear_without_plus_one",
        {"F.elu(Q) + 1, F.elu(K) + 1": "F.elu(Q), F.elu(K)"},
        "The + 1 of the feature map is missing. Without it features can be negative, and weights, too.",
    )

    wrong(
        "linear_relu",
        {"F.elu(Q) + 1, F.elu(K) + 1": "F.relu(Q), F.relu(K)"},
        "Your features are ReLU: they can all be 0, and the divisor then, too. The map is elu(x) + 1.",
        seen="other feature maps",
    )

    wrong(
        "linear_relu_plus_one",
        {"F.elu(Q) + 1, F.elu(K) + 1": "F.relu(Q) + 1, F.relu(K) + 1"},
        "Your features are relu(x) + 1. For negative numbers the map is exp(x), which elu(x) + 1 gives.",
    )

    wrong(
        "linear_exp",
        {"F.elu(Q) + 1, F.elu(K) + 1": "Q.exp(), K.exp()"},
        "Your features are exp(x), also for positive numbers. There the map is x + 1.",
    )

    wrong(
        "linear_softmax_on_the_queries",
        {"F.elu(Q) + 1, F.elu(K)": "Q.softmax(-1), F.elu(K)"},
        "Your keys have the features elu(x) + 1, and your queries come out as those of a softmax over the features. "
        "That is another linear attention; here both have elu(x) + 1.",
        seen="efficient attention (Shen and others, 2021)",
    )

    wrong(
        "linear_softmax_on_queries_and_words",
        {"F.elu(Q) + 1, F.elu(K) + 1": "Q.softmax(-1), K.softmax(-2)"},
        "It comes out as with a softmax over the features for the queries and one over the words for the keys, which "
        "also lets later words through. Here both have the features elu(x) + 1.",
        seen="efficient attention (Shen and others, 2021)",
    )

    wrong(
        "linear_softmax_features",
        {"F.elu(Q) + 1, F.elu(K) + 1": "Q.softmax(dim=-1), K.softmax(dim=-1)"},
        "Your features are a softmax over d_k. The map elu(x) + 1 works on each number by itself.",
        seen="efficient attention (Shen and others, 2021)",
    )

    wrong(
        "linear_queries_without_features",
        {"F.elu(Q) + 1, F.elu(K) + 1": "Q, F.elu(K) + 1"},
        "The feature map is on the keys only. It is on the queries, too.",
    )

    wrong(
        "linear_keys_without_features",
        {"F.elu(Q) + 1, F.elu(K) + 1": "F.elu(Q) + 1, K"},
        "The feature map is on the queries only. It is on the keys, too.",
    )

    wrong(
        "linear_no_features",
        {"F.elu(Q) + 1, F.elu(K) + 1": "Q, K"},
        "There is no feature map: products of queries and keys are used as they are, and some are negative.",
    )

    wrong(
        "linear_scaled",
        {"F.elu(Q) + 1,": "F.elu(Q / Q.shape[-1] ** 0.5) + 1,"},
        "The queries are divided by the root of d_k. There is no scale here: no softmax is to be kept from "
        "saturating.",
        seen="scaled dot-product attention",
    )

    wrong(
        "linear_past_only",
        {
            ".cumsum(dim=-3)": ".cumsum(dim=-3) - V[..., :, None] * k[..., None, :]",
            "k.cumsum(dim=-2)": "k.cumsum(dim=-2) - k",
        },
        "A word does not see itself, and the first word sees nothing: 0 / 0. The sums include the word's own "
        "key and value.",
    )

    wrong(
        "linear_softmax_attention",
        "return F.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=True)[0]",
        "That is causal softmax attention. Here features' products stand in place of the exponential.",
    )

    wrong(
        "linear_plain_average",
        {"F.elu(Q) + 1, F.elu(K) + 1": "torch.ones_like(Q), torch.ones_like(K)"},
        "Your result is the plain average of the values so far: queries and keys have no part in it.",
    )

    wrong(
        "linear_eps",
        {"return read / (q * z).sum(dim=-1, keepdim=True)": "return read / ((q * z).sum(dim=-1, keepdim=True) + 1e-6)"},
        "With very negative queries and keys your result is wrong, as where a small number (an "
        "eps) keeps the divisor away from 0: the divisor itself is that small.",
        seen="the eps of published linear attentions",
    )

    wrong(
        "linear_divisor_at_least_one",
        {"(q * z).sum(dim=-1, keepdim=True)": "(q * z).sum(dim=-1, keepdim=True).clamp(min=1.0)"},
        "Your divisor is at least 1. It may be smaller, and is used as it is.",
        seen="the divisor of xLSTM's matrix memory",
    )

    wrong(
        "linear_forgetting",
        """
            q, k = F.elu(Q) + 1, F.elu(K) + 1
            S, z, outputs = 0.0, 0.0, []
            for t in range(K.shape[-2]):
                S = 0.9 * S + V[..., t, :, None] * k[..., t, None, :]
                z = 0.9 * z + k[..., t, :]
                read = (S * q[..., t, None, :]).sum(dim=-1)
                outputs.append(read / (q[..., t, :] * z).sum(dim=-1, keepdim=True))
            return torch.stack(outputs, dim=-2)
        """,
        "Your state fades a little with each word. In this exercise nothing fades: all words count by their "
        "products alone.",
        seen="retention, gated linear attention",
    )

    wrong(
        "linear_axes_from_the_left",
        {".cumsum(dim=-3)": ".cumsum(dim=0)", "k.cumsum(dim=-2)": "k.cumsum(dim=0)"},
        "It goes wrong as where the sums run along axis 0. With texts in front that is not the "
        "words: they are the last axis but one.",
    )

    wrong(
        "linear_one_batch_axis",
        {
            ".cumsum(dim=-3)": ".cumsum(dim=max(k.ndim - 2, 0) and 1)",
            "k.cumsum(dim=-2)": "k.cumsum(dim=max(k.ndim - 2, 0) and 1)",
        },
        "It goes wrong as where the sums run along axis 1 where there are texts in front: right "
        "for one leading axis, wrong for two. Count from the end.",
        edge=True,
    )

    wrong(
        "linear_detached",
        {"k.cumsum(dim=-2)": "k.cumsum(dim=-2).detach()"},
        "The keys' gradients lack what comes through the divisor, as where its sum z is detached. Gradients "
        "flow through S and through z.",
    )

    wrong(
        "linear_float32_inside",
        {"q, k = F.elu(Q) + 1, F.elu(K) + 1": "kind = Q.dtype\nq, k, V = F.elu(Q.float()) + 1, F.elu(K.float()) + 1, V.float()",
         "return read / (q * z).sum(dim=-1, keepdim=True)": "return (read / (q * z).sum(dim=-1, keepdim=True)).to(kind)"},
        "It comes out as if something on the way, or all of it, were computed in float32. Float64 "
        "should stay float64 on the whole way.",
    )

    wrong(
        "linear_with_state",
        {"return read / (q * z).sum(dim=-1, keepdim=True)": "return read / (q * z).sum(dim=-1, keepdim=True), S"},
        "You return more than the output. It is returned alone.",
    )

    wrong(
        "linear_last_only",
        {"return read / (q * z).sum(dim=-1, keepdim=True)": "return (read / (q * z).sum(dim=-1, keepdim=True))[..., -1, :]"},
        "You return the output of the last word. Every word has one.",
    )


with exercise("LinearAttentionState"):
    wrong(
        "state_first_value_as_it_is",
        """
            class LinearAttentionState:
                def __init__(self):
                    self.S = self.z = None
                def step(self, q, k, v):
                    q, k = F.elu(q) + 1, F.elu(k) + 1
                    new = v[..., :, None] * k[..., None, :]
                    if self.S is None:
                        self.S, self.z = new, k
                        return v * torch.ones_like(v)
                    self.S, self.z = self.S + new, self.z + k
                    read = (self.S * q[..., None, :]).sum(dim=-1)
                    return read / (q * self.z).sum(dim=-1, keepdim=True)
        """,
        "The output of your first step has the shape of v, as when v is returned as it is. It should have "
        "the leading axes of q and k, too, at the first step as at all others.",
    )

    wrong(
        "state_one_text_loses_its_axis",
        {
            "q, k = F.elu(q) + 1": "q, k, v = (x if x.ndim > 1 else x[None] for x in (q, k, v))\nq, k = F.elu(q) + 1",
            "return read / (q * self.z).sum(dim=-1, keepdim=True)": "return (read / (q * self.z).sum(dim=-1, keepdim=True)).squeeze(0)",
        },
        ONE_TEXT,
        edge=True,
    )

    wrong(
        "state_shared_by_all",
        """
            class LinearAttentionState:
                sums = {"S": 0.0, "z": 0.0}
                def step(self, q, k, v):
                    q, k = F.elu(q) + 1, F.elu(k) + 1
                    self.sums["S"] = self.sums["S"] + v[..., :, None] * k[..., None, :]
                    self.sums["z"] = self.sums["z"] + k
                    read = (self.sums["S"] * q[..., None, :]).sum(dim=-1)
                    return read / (q * self.sums["z"]).sum(dim=-1, keepdim=True)
        """,
        "All states share one pair of sums, as they do where it stands on the class, or outside of it: the "
        "words of one text turn up in the next. Make them in __init__.",
        seen="Python folklore: mutable class attributes",
    )

    wrong(
        "state_read_before_writing",
        """
            class LinearAttentionState:
                def __init__(self):
                    self.S = self.z = 0.0
                def step(self, q, k, v):
                    q, k = F.elu(q) + 1, F.elu(k) + 1
                    read = ((self.S + torch.zeros_like(v[..., :, None] * k[..., None, :])) * q[..., None, :]).sum(dim=-1)
                    out = read / (q * (self.z + torch.zeros_like(k))).sum(dim=-1, keepdim=True)
                    self.S = self.S + v[..., :, None] * k[..., None, :]
                    self.z = self.z + k
                    return out
        """,
        "A word does not see itself, as when you read before you write; and the first one gets 0 / 0.",
    )

    wrong(
        "state_divisor_before_writing",
        {"self.z = self.z + k": "old = self.z + 0 * k if isinstance(self.z, torch.Tensor) else k\nself.z = self.z + k",
         "(q * self.z).sum(": "(q * old).sum("},
        "The divisor is read before this word was added to it. Above and below the fraction line the word "
        "itself counts.",
    )

    wrong(
        "state_not_kept",
        {"self.S = self.S + v[..., :, None]": "self.S = v[..., :, None]", "self.z = self.z + k": "self.z = k"},
        "Your output is v at each step, as when each step begins anew and only its own word is in the state.",
    )

    wrong(
        "state_divisor_not_kept",
        {"self.z = self.z + k": "self.z = k"},
        "The values' sum is kept, the divisor's is not: you divide by the last word's product only.",
    )

    wrong(
        "state_values_not_kept",
        {"self.S = self.S + v[..., :, None]": "self.S = v[..., :, None]"},
        "The divisor's sum is kept, the values' is not.",
    )

    wrong(
        "state_not_divided",
        {"return read / (q * self.z).sum(dim=-1, keepdim=True)": "return read"},
        "You do not divide. The output then grows with the number of words.",
    )

    wrong(
        "state_divided_by_steps",
        {"self.z = self.z + k": "self.z = self.z + 1", "(q * self.z).sum(dim=-1, keepdim=True)": "self.z"},
        "You divide by the number of steps. The divisor is the sum of the features' products.",
    )

    wrong(
        "state_divided_by_keys",
        {"(q * self.z).sum(dim=-1, keepdim=True)": "self.z.sum(dim=-1, keepdim=True)"},
        "The query has no part in your divisor. It is the product of its features with z.",
    )

    wrong(
        "state_all_words_kept",
        """
            class LinearAttentionState:
                def __init__(self):
                    self.keys, self.values = [], []
                def step(self, q, k, v):
                    self.keys.append(F.elu(k) + 1)
                    self.values.append(v)
                    products = [((F.elu(q) + 1) * key).sum(-1, keepdim=True) for key in self.keys]
                    return sum(p * value for p, value in zip(products, self.values)) / sum(products)
        """,
        "What you keep grows with the text, as lesson 11's cache of all keys and values does. Keep the two sums.",
    )

    wrong(
        "state_without_plus_one",
        {"F.elu(q) + 1, F.elu(k) + 1": "F.elu(q), F.elu(k)"},
        "The + 1 of the feature map is missing. Without it features can be negative, and weights, too.",
    )

    wrong(
        "state_no_features",
        {"F.elu(q) + 1, F.elu(k) + 1": "q, k"},
        "There is no feature map. It is elu(x) + 1, on the query and on the key.",
    )

    wrong(
        "state_queries_without_features",
        {"F.elu(q) + 1, F.elu(k) + 1": "q, F.elu(k) + 1"},
        "The feature map is on the key only. It is on the query, too.",
    )

    wrong(
        "state_keys_without_features",
        {"F.elu(q) + 1, F.elu(k) + 1": "F.elu(q) + 1, k"},
        "The feature map is on the query only. It is on the key, too.",
    )

    wrong(
        "state_scaled",
        {"F.elu(q) + 1,": "F.elu(q / q.shape[-1] ** 0.5) + 1,"},
        "The query is divided by the root of d_k. There is no scale here.",
        seen="scaled dot-product attention",
    )

    wrong(
        "state_eps",
        {"(q * self.z).sum(dim=-1, keepdim=True)": "((q * self.z).sum(dim=-1, keepdim=True) + 1e-6)"},
        "With very negative queries and keys your output is wrong, as where a small number (an "
        "eps) keeps the divisor away from 0: the divisor itself is that small.",
        seen="the eps of published linear attentions",
    )

    wrong(
        "state_fading",
        {"self.S = self.S + v[..., :, None]": "self.S = 0.9 * self.S + v[..., :, None]", "self.z = self.z + k": "self.z = 0.9 * self.z + k"},
        "Your state fades with each word. In this exercise nothing fades.",
        seen="retention, gated linear attention",
    )

    wrong(
        "state_detached",
        {"self.S = self.S + v[..., :, None]": "self.S = (self.S.detach() if isinstance(self.S, torch.Tensor) else self.S) + v[..., :, None]"},
        "The state is detached between steps: no gradient reaches an earlier word's value.",
        seen="truncated backpropagation through time",
    )

    wrong(
        "state_without_gradients",
        {"self.z = self.z + k": "self.z = (self.z + k).detach()"},
        "The keys' gradients lack what comes through the divisor, as where its sum z is detached. Gradients "
        "flow through S and through z.",
    )

    wrong(
        "state_in_place",
        {"self.S = self.S + v[..., :, None] * k[..., None, :]":
            "self.S = self.S if isinstance(self.S, torch.Tensor) else torch.zeros_like(v[..., :, None] * k[..., None, :])\nself.S += v[..., :, None] * k[..., None, :]"},
        "Something that the gradients of earlier steps need as it was, such as the state, is changed in place: "
        "make a new tensor.",
    )

    wrong(
        "state_float32",
        {"q, k = F.elu(q) + 1, F.elu(k) + 1": "kind = q.dtype\nq, k, v = F.elu(q.float()) + 1, F.elu(k.float()) + 1, v.float()",
         "return read / (q * self.z).sum(dim=-1, keepdim=True)": "return (read / (q * self.z).sum(dim=-1, keepdim=True)).to(kind)"},
        "It comes out as if something on the way, or all of it, were computed in float32. Float64 "
        "should stay float64 on the whole way.",
    )

    wrong(
        "state_one_text_only",
        {"v[..., :, None] * k[..., None, :]": "torch.outer(v, k)"},
        "Your step takes one text alone; torch.outer, for one, knows no leading axes.",
        edge=True,
    )

    wrong(
        "state_returned",
        {"return read / (q * self.z).sum(dim=-1, keepdim=True)": "return self.S"},
        "You return the state. Asked for is what this word reads from it.",
    )


with exercise("mended_keys"):
    wrong(
        "keys_longest_begins_at_1",
        {"lengths.cummax(dim=-1).values": "lengths.cummax(dim=-1).values.clamp(min=1.0)"},
        "Where all keys so far are shorter than 1 they are divided by another number than the length of the longest, "
        "as when the largest length so far begins at 1. The first key is divided by its own length, however short.",
        seen="answers written blind",
    )
    wrong(
        "keys_largest_of_each_feature",
        "return K / K.abs().cummax(dim=-2).values.norm(dim=-1, keepdim=True)",
        "You take the largest of each feature so far, and the length of that. Its features may come from "
        "different keys: it is longer than any of them. First the lengths of the keys, then the largest.",
    )

    wrong(
        "keys_copied",
        {"lengths.cummax(dim=-1).values[..., None]": "lengths.amax(dim=-1)[..., None, None]"},
        "The first keys are divided by the length of a key that comes later, as in the friend's code.",
        seen="the key stabiliser of Performer's code: a maximum over the whole text (there it cancels, but for "
        "an eps)",
    )

    wrong(
        "keys_of_length_one",
        {"lengths.cummax(dim=-1).values": "lengths"},
        "Each key is divided by its own length, so all of them have length 1. A short key stays shorter than "
        "a long one: all are measured by the longest so far.",
        seen="layers that normalise keys",
    )

    wrong(
        "keys_cummax_of_a_pair",
        {"lengths.cummax(dim=-1).values": "lengths.cummax(dim=-1).indices"},
        "You divide by *where* the longest key so far stands. cummax returns two things, the values and their "
        "places.",
    )

    wrong(
        "keys_mean_so_far",
        {"lengths.cummax(dim=-1).values": "(lengths.cumsum(dim=-1) / torch.arange(1, lengths.shape[-1] + 1))"},
        "You divide by the mean length so far, so that keys longer than 1 are left. It is the largest length "
        "so far.",
    )

    wrong(
        "keys_before_only",
        {
            "return K / lengths.cummax(dim=-1).values[..., None]": """
                longest = lengths.cummax(dim=-1).values.roll(1, -1)
                longest[..., 0] = lengths[..., 0]
                return K / longest[..., None]
            """
        },
        "A key is measured by the keys before it, and not by itself: a new longest key then becomes longer "
        "than 1.",
    )

    wrong(
        "keys_first_only",
        {"lengths.cummax(dim=-1).values[..., None]": "lengths[..., :1, None]"},
        "All keys are divided by the length of the first one. That looks at no later key, but one that is "
        "longer than the first becomes longer than 1.",
    )

    wrong(
        "keys_largest_entry",
        {"K.norm(dim=-1)": "K.abs().amax(dim=-1)"},
        "You measure a key by its largest number. Its length is the root of the sum of its squares.",
    )

    wrong(
        "keys_each_feature",
        {"K / lengths.cummax(dim=-1).values[..., None]": "K / K.abs().cummax(dim=-2).values"},
        "Each feature is divided by its own largest size so far, so that keys change their direction. A key "
        "is divided by one number.",
    )

    wrong(
        "keys_axis_0",
        {"lengths.cummax(dim=-1)": "lengths.cummax(dim=0)"},
        "With several texts some keys are divided by another length than that of the longest key up to them. "
        "That is so, for one, where it is looked for along axis 0, from text to text; the words are the last axis "
        "of the lengths.",
    )

    wrong(
        "keys_longest_of_all_texts",
        {"lengths.cummax(dim=-1).values": "lengths.cummax(dim=-1).values.reshape(-1, lengths.shape[-1]).amax(dim=0)"},
        "One text is measured by the keys of another. Each text has its own longest key.",
    )

    wrong(
        "keys_unchanged",
        "return K",
        "The keys are returned as they came: nothing keeps them small.",
    )

    wrong(
        "keys_in_place",
        {"return K / lengths.cummax(dim=-1).values[..., None]": "K /= lengths.cummax(dim=-1).values[..., None]\nreturn K"},
        "You write into the keys that were given. The result is a new tensor.",
    )

    wrong(
        "keys_float32",
        {"K.norm(dim=-1)": "K.float().norm(dim=-1)", "return K /": "return K.float() /"},
        "It comes out as if something on the way, or all of it, were computed in float32. Float64 "
        "should stay float64 on the whole way.",
    )

with exercise("delta_rule_step"):
    wrong(
        "delta_one_text_loses_its_axis",
        {
            "read = (S": "S, k, v = (x if x.ndim > number else x[None] for x, number in ((S, 2), (k, 1), (v, 1)))\nread = (S",
            "return S + beta * error[..., :, None] * k[..., None, :]": "return (S + beta * error[..., :, None] * k[..., None, :]).squeeze(0)",
        },
        "With one leading axis of length 1 (one memory) your result lacks that axis, as where squeeze() or an index "
        "takes it away. It stays: the result has the shape of S.",
        edge=True,
    )
    wrong(
        "delta_no_error",
        {"error = v - read": "error = v"},
        "You add the value without reading first: that is the sum of linear attention. The delta rule writes "
        "what is missing, v - S k.",
        seen="linear attention (Katharopoulos and others, 2020)",
    )

    wrong(
        "delta_wrong_sign",
        {"error = v - read": "error = read - v"},
        "Your error has the wrong sign: the memory moves away from v.",
    )

    wrong(
        "delta_no_beta",
        {"beta * error": "error"},
        "beta has no part in your result: the whole error is corrected.",
    )

    wrong(
        "delta_beta_on_value",
        {"beta * error": "error", "error = v - read": "error = beta * v - read"},
        "beta stands on the value only. It should multiply the whole error, v - S k.",
    )

    wrong(
        "delta_beta_on_read",
        {"beta * error": "error", "error = v - read": "error = v - beta * read"},
        "beta stands on what was read only. It should multiply the whole error, v - S k.",
    )

    wrong(
        "delta_decay",
        {"return S + beta * error": "return (1 - beta) * S + beta * v"},
        "Your whole memory fades by 1 - beta, also what is stored under other keys. Only what stands under k "
        "is corrected.",
        seen="exponential moving averages",
    )

    wrong(
        "delta_gated_and_corrected",
        {"return S + beta * error": "return (1 - beta) * S + beta * error"},
        "Two mistakes at once: the memory fades as a whole, and is corrected as well. The old memory is kept, "
        "and the correction added.",
        seen="gated delta rules",
    )

    wrong(
        "delta_correction_only",
        {"return S + beta": "return beta"},
        "You return the correction alone. It is added to the old memory.",
    )

    wrong(
        "delta_key_normalised",
        {"read = (S": "k = k / k.norm(dim=-1, keepdim=True)\nread = (S"},
        "You bring the key to length 1 first. The formula uses it as it is.",
        seen="layers that normalise keys before the rule",
    )

    wrong(
        "delta_divided_by_length",
        {"beta * error": "beta / (k * k).sum(-1)[..., None, None] * error"},
        "You divide by the squared length of the key: for beta = 1 reading then gives v, however long the key is. "
        "The formula does not.",
        seen="normalised least mean squares",
    )

    wrong(
        "delta_read_transposed",
        """
            if S.shape[-1] == S.shape[-2]:
                read = (S * k[..., :, None]).sum(dim=-2)
            else:
                read = (S.mT @ k[..., None])[..., 0]
            return S + beta * (v - read)[..., :, None] * k[..., None, :]
        """,
        "You read with the transposed memory. S has the shape (d_v, d_k): S k sums over its columns.",
    )

    wrong(
        "delta_written_transposed",
        {"error[..., :, None] * k[..., None, :]": "(error[..., None, :] * k[..., :, None])"},
        "Key and error have changed places in the outer product. The rows of S belong to the value, its "
        "columns to the key.",
    )

    wrong(
        "delta_in_place",
        {"return S + beta * error[..., :, None] * k[..., None, :]": "S += beta * error[..., :, None] * k[..., None, :]\nreturn S"},
        "You write into the memory that was given. The result is a new tensor; gradients need the old one.",
    )

    wrong(
        "delta_detached",
        {"error = v - read": "error = v - read.detach()"},
        "What was read is detached: gradients do not see that the correction depends on the old memory.",
    )

    wrong(
        "delta_no_gradients",
        {"return S + beta": "return S.detach() + beta"},
        "The old memory is detached: gradients do not reach what was written before.",
    )

    wrong(
        "delta_two_axes_only",
        {"error[..., :, None] * k[..., None, :]": "torch.outer(error, k)"},
        "Your code takes one memory alone, as torch.outer does. There may be texts and heads in front.",
        edge=True,
    )

    wrong(
        "delta_float32",
        {"read = (S": "kind = S.dtype\nS, k, v = S.float(), k.float(), v.float()\nread = (S",
         "return S + beta * error[..., :, None] * k[..., None, :]": "return (S + beta * error[..., :, None] * k[..., None, :]).to(kind)"},
        "It comes out as if something on the way, or all of it, were computed in float32. Float64 "
        "should stay float64 on the whole way.",
    )

    wrong(
        "delta_beta_in_float32",
        {"return S + beta * error": "return S + torch.tensor(beta) * error"},
        "With float64 inputs your result loses digits, as where beta is made a float32 tensor. Float64 should stay "
        "float64 on the whole way, beta too.",
        seen="answers written blind",
    )

    wrong(
        "delta_beta_cut",
        {"S + beta * error": "S + min(max(beta, 0.0), 1.0) * error"},
        "With beta = 1.5 your result is that of beta = 1, as when beta is cut to the range from 0 "
        "to 1. It may be any number, and multiplies the error as it is.",
        seen="answers written blind",
    )

    wrong(
        "delta_squeeze_without_axis",
        {"read = (S * k[..., None, :]).sum(dim=-1)": "read = (S @ k[..., None]).squeeze()"},
        "With several memories, and d_v or a leading axis of length 1, your result has another "
        "shape than S, as where squeeze() without an axis takes away more than one axis of length "
        "1. Name the axis that should go.",
        seen="answers written blind",
    )

    wrong(
        "delta_correction_without_a_graph",
        """
            read = (S.detach() * k.detach()[..., None, :]).sum(dim=-1)
            error = v.detach() - read
            return S + beta * error[..., :, None] * k.detach()[..., None, :]
        """,
        "After backward k and v have no gradient, as where the correction is computed from detached tensors. "
        "S, k and v should each get one.",
        seen="answers written blind",
    )

# The right answer in few words, of which the wrong ones below are changes.
SHORT_RECOMPUTED = """
class RecomputedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, block_size):
        c = Q.shape[-1] ** -0.5
        m = torch.full_like(Q[..., :1], -math.inf)
        s, a = 0.0, 0.0
        for k, v in zip(K.split(block_size, -2), V.split(block_size, -2)):
            S = Q @ k.mT * c
            new = torch.maximum(m, S.amax(-1, keepdim=True))
            f, e = torch.exp(m - new), torch.exp(S - new)
            s, a, m = s * f + e.sum(-1, keepdim=True), a * f + e @ v, new
        O = a / s
        ctx.save_for_backward(Q, K, V, O, m + torch.log(s))
        ctx.block_size = block_size
        return O

    @staticmethod
    def backward(ctx, dO):
        Q, K, V, O, L = ctx.saved_tensors
        c, size = Q.shape[-1] ** -0.5, ctx.block_size
        delta = (dO * O).sum(-1, keepdim=True)
        dQ, dK, dV = torch.zeros_like(Q), [], []
        for k, v in zip(K.split(size, -2), V.split(size, -2)):
            P = torch.exp(Q @ k.mT * c - L)
            dS = P * (dO @ v.mT - delta)
            dQ += c * (dS @ k)
            dK.append(c * (dS.mT @ Q))
            dV.append(P.mT @ dO)
        return dQ, torch.cat(dK, -2), torch.cat(dV, -2), None
"""

with exercise("RecomputedAttention", base=SHORT_RECOMPUTED):
    wrong(
        "recomputed_no_delta",
        {"dO @ v.mT - delta": "dO @ v.mT"},
        "The gradients of Q and K come out as where delta is missing: P times dP alone. The softmax takes away "
        "from each dP the mean of all of them, weighted with P: that is delta.",
    )

    wrong(
        "recomputed_delta_is_a_mean",
        {".sum(-1, keepdim=True)\ndQ": ".mean(-1, keepdim=True)\ndQ"},
        "The gradients of Q and K come out as with a delta that is too small by the factor d_v: for one, a mean over "
        "the features in place of their sum.",
    )

    wrong(
        "recomputed_delta_of_the_block",
        {"dO @ v.mT - delta": "dO @ v.mT - (P * (dO @ v.mT)).sum(-1, keepdim=True)"},
        "With one block the gradients are right, with several those of Q and K are not: they come out as if each "
        "block had a delta of its own. delta is the sum over all keys; dO and the output give it before the first "
        "block.",
    )

    wrong(
        "recomputed_delta_after_the_product",
        {"P * (dO @ v.mT - delta)": "P * (dO @ v.mT) - delta"},
        "The gradients of Q and K come out as if delta were not multiplied with P: dS = P * dP - delta. Both dP and "
        "delta are.",
    )

    wrong(
        "recomputed_no_weights_in_dS",
        {"dS = P * (dO @ v.mT - delta)": "dS = dO @ v.mT - delta"},
        "The gradients of Q and K come out as if dP - delta were taken for dS. A score changes the output in "
        "proportion to its weight P.",
    )

    wrong(
        "recomputed_no_scale_in_the_gradients",
        {"c * (dS @ k)": "dS @ k", "c * (dS.mT @ Q)": "dS.mT @ Q"},
        "The gradients of Q and K are too large by the square root of d_k. The scores are divided by it, and so are "
        "the gradients that come through them.",
    )

    wrong(
        "recomputed_no_scale_in_dQ",
        {"c * (dS @ k)": "dS @ k"},
        "The gradient of Q is too large by the square root of d_k, that of K is not.",
    )

    wrong(
        "recomputed_no_scale_in_dK",
        {"c * (dS.mT @ Q)": "dS.mT @ Q"},
        "The gradient of K is too large by the square root of d_k, that of Q is not.",
    )

    wrong(
        "recomputed_scores_without_scale_backward",
        {"P = torch.exp(Q @ k.mT * c - L)": "P = torch.exp(Q @ k.mT - L)"},
        "Forward is right. All three gradients come out as if the scores that are computed again were not divided "
        "by the square root of d_k.",
    )

    wrong(
        "recomputed_no_scale_at_all",
        {
            "c = Q.shape[-1] ** -0.5\nm": "c = 1.0\nm",
            "c, size = Q.shape[-1] ** -0.5": "c, size = 1.0",
        },
        "Output and gradients come out as where the scores are never divided by the square root of d_k.",
    )

    wrong(
        "recomputed_softmax_of_the_block",
        {"torch.exp(Q @ k.mT * c - L)": "torch.softmax(Q @ k.mT * c, -1)"},
        "With one block all gradients are right, with several none is: they come out as if the weights of each block "
        "summed to 1. They do so over all keys: that is what L is kept for.",
    )

    wrong(
        "recomputed_weights_without_the_sum",
        {"m + torch.log(s))": "m)"},
        "All gradients come out as with weights that lack the division by the sum of the exponentials. One number a "
        "query can hold both: the largest score plus the logarithm of the sum.",
    )

    wrong(
        "recomputed_sum_without_logarithm",
        {"m + torch.log(s))": "m + s)"},
        "All gradients come out as if the sum of the exponentials itself were added to the largest score in L. "
        "exp(S - L) divides by the sum where L holds its logarithm.",
    )

    wrong(
        "recomputed_log_of_the_sum_alone",
        {"m + torch.log(s))": "torch.log(s))"},
        "All gradients come out as if the largest score were missing in L. The sum was measured from it.",
    )

    wrong(
        "recomputed_dQ_of_the_last_block",
        {"dQ += c * (dS @ k)": "dQ = c * (dS @ k)"},
        "The gradient of Q is that of the last block alone. Every block adds to it.",
    )

    wrong(
        "recomputed_last_block_left_out",
        {
            "for k, v in zip(K.split(size, -2), V.split(size, -2)):":
                "whole = K.shape[-2] // size * size or K.shape[-2]\n"
                "for k, v in zip(K[..., :whole, :].split(size, -2), V[..., :whole, :].split(size, -2)):",
            "return dQ, torch.cat(dK, -2), torch.cat(dV, -2), None": """
                dK, dV = torch.cat(dK, -2), torch.cat(dV, -2)
                dK, dV = (F.pad(x, (0, 0, 0, K.shape[-2] - x.shape[-2])) for x in (dK, dV))
                return dQ, dK, dV, None
            """,
        },
        "Where block_size does not divide the number of keys, the gradients lack the last, shorter block.",
    )

    wrong(
        "recomputed_dV_with_dS",
        {"dV.append(P.mT @ dO)": "dV.append(dS.mT @ dO)"},
        "The gradient of V comes out as dS^T dO. A value enters the output with its weight: P^T dO.",
    )

    wrong(
        "recomputed_gradients_in_another_order",
        {
            "return dQ, torch.cat(dK, -2), torch.cat(dV, -2), None":
                "return dQ, torch.cat(dV, -2), torch.cat(dK, -2), None",
        },
        "Each of K and V gets the gradient of the other, or torch refuses them for their shapes. They are returned in "
        "the order of the arguments: Q, K, V, block_size.",
    )

    wrong(
        "recomputed_three_gradients",
        {"torch.cat(dV, -2), None": "torch.cat(dV, -2)"},
        "The output is right, and in the backward pass torch asks for another number of gradients. There is one for "
        "each argument of forward, so four; that of block_size is None.",
    )

    wrong(
        "recomputed_all_needed",
        {
            "return dQ, torch.cat(dK, -2), torch.cat(dV, -2), None": """
                found = [dQ, torch.cat(dK, -2), torch.cat(dV, -2)]
                wanted = [x for x, needed in zip(found, ctx.needs_input_grad) if needed]
                return (*wanted, *[None] * (4 - len(wanted)))
            """,
        },
        "Where one of Q, K, V asks for no gradient, the others go to the wrong places, or stop. Each argument keeps "
        "its place in what backward returns: None stands for one that needs nothing.",
    )

    wrong(
        "recomputed_weights_kept",
        """
        class RecomputedAttention(torch.autograd.Function):
            @staticmethod
            def forward(ctx, Q, K, V, block_size):
                P = (Q @ K.mT * Q.shape[-1] ** -0.5).softmax(-1)
                ctx.save_for_backward(Q, K, V, P)
                return P @ V

            @staticmethod
            def backward(ctx, dO):
                Q, K, V, P = ctx.saved_tensors
                dP = dO @ V.mT
                dS = P * (dP - (P * dP).sum(-1, keepdim=True)) * Q.shape[-1] ** -0.5
                return dS @ K, dS.mT @ Q, P.mT @ dO, None
        """,
        "Output and gradients are right, but all n_q * n_k weights are held in both passes and kept between them. "
        "Go through the keys block by block, and compute the scores again in the backward pass.",
    )

    wrong(
        "recomputed_blocks_kept",
        {
            "s, a, m = s * f": "kept.append(S)\ns, a, m = s * f",
            "s, a = 0.0, 0.0": "s, a, kept = 0.0, 0.0, []",
            "ctx.block_size = block_size": "ctx.block_size, ctx.kept = block_size, kept",
            "for k, v in zip(K.split(size, -2), V.split(size, -2)):":
                "for k, v, S in zip(K.split(size, -2), V.split(size, -2), ctx.kept):",
            "torch.exp(Q @ k.mT * c - L)": "torch.exp(S - L)",
        },
        "Output and gradients are right, but the scores of every block are kept for the backward pass: together they "
        "are n_q * n_k numbers. Compute them again there.",
    )

    wrong(
        "recomputed_all_at_once_backward",
        {
            "dQ, dK, dV = torch.zeros_like(Q), [], []": """
                P = torch.exp(Q @ K.mT * c - L)
                dS = c * P * (dO @ V.mT - delta)
                return dS @ K, dS.mT @ Q, P.mT @ dO, None
                dQ, dK, dV = torch.zeros_like(Q), [], []
            """,
        },
        "Output and gradients are right, and little is kept, but the backward pass computes all n_q * n_k scores at "
        "once. Go through the keys block by block there, too.",
    )

    wrong(
        "recomputed_by_autograd_at_once",
        """
        class RecomputedAttention(torch.autograd.Function):
            @staticmethod
            def forward(ctx, Q, K, V, block_size):
                ctx.save_for_backward(Q, K, V)
                c = Q.shape[-1] ** -0.5
                m = torch.full_like(Q[..., :1], -math.inf)
                s, a = 0.0, 0.0
                for k, v in zip(K.split(block_size, -2), V.split(block_size, -2)):
                    S = Q @ k.mT * c
                    new = torch.maximum(m, S.amax(-1, keepdim=True))
                    f, e = torch.exp(m - new), torch.exp(S - new)
                    s, a, m = s * f + e.sum(-1, keepdim=True), a * f + e @ v, new
                return a / s

            @staticmethod
            def backward(ctx, dO):
                given = [x.detach().requires_grad_() for x in ctx.saved_tensors]
                with torch.enable_grad():
                    Q, K, V = given
                    output = (Q @ K.mT * Q.shape[-1] ** -0.5).softmax(-1) @ V
                return *torch.autograd.grad(output, given, dO), None
        """,
        "Output and gradients are right, and little is kept, but the backward pass computes all n_q * n_k scores at "
        "once. Go through the keys block by block there, too.",
    )

    wrong(
        "recomputed_torchs_function",
        """
        class RecomputedAttention(torch.autograd.Function):
            @staticmethod
            def forward(ctx, Q, K, V, block_size):
                ctx.save_for_backward(Q, K, V)
                return F.scaled_dot_product_attention(Q, K, V)

            @staticmethod
            def backward(ctx, dO):
                given = [x.detach().requires_grad_() for x in ctx.saved_tensors]
                with torch.enable_grad():
                    output = F.scaled_dot_product_attention(*given)
                return *torch.autograd.grad(output, given, dO), None
        """,
        "You call torch's own attention. It works in blocks inside, but the exercise is to write that.",
    )

    wrong(
        "recomputed_no_correction",
        {"s * f + e": "s + e", "a * f + e": "a + e"},
        "What earlier blocks gave is never made smaller when a later block brings a larger score. Old and new were "
        "measured from different maxima.",
    )

    wrong(
        "recomputed_float32_backward",
        {
            "Q, K, V, O, L = ctx.saved_tensors": "Q, K, V, O, L = (x.float() for x in ctx.saved_tensors)\ndO = dO.float()",
        },
        "The gradients have fewer digits than float64: for one, they are computed in float32.",
    )

    wrong(
        "recomputed_two_axes_only",
        {"c = Q.shape[-1] ** -0.5\nm": "n_q, d_k = Q.shape\nc = Q.shape[-1] ** -0.5\nm"},
        "With leading axes your function stops, as where exactly two axes are expected. There may be texts and "
        "heads in front of them.",
        edge=True,
    )


choice(
    "answer_reach",
    "a",
    reason="Outside of one layer's window. But the words inside have looked at their own windows one layer "
    "before.",
)
choice(
    "answer_reach",
    "b",
    right=True,
    reason="100,000 / 4,095 is about 24.4, so 25 layers can carry it. The formula bounds what is possible; "
    "figure 1 shows how little may arrive.",
)
choice(
    "answer_reach",
    "c",
    reason="The span says that a path exists. In figure 1 the furthest position moved the last one more than "
    "100 times less than the neighbour.",
)
choice(
    "answer_reach",
    "d",
    reason="A key that is in the cache and outside of the window is not looked at: the mask hides it. Most such "
    "models do not even keep it.",
)
choice(
    "answer_state",
    "a",
    reason="It does not grow, but it is large from the first word on: 16,512 numbers, where a cache of two words "
    "has 512.",
)
choice(
    "answer_state",
    "b",
    right=True,
    reason="16,512 / 256 = 64.5: at 64 words the cache is smaller by a little, at 65 the state. For short texts "
    "the state is the larger memory.",
)
choice(
    "answer_state",
    "c",
    reason="A cache keeps a key *and* a value for each word, 256 numbers, so it takes half as many words.",
)
choice(
    "answer_state",
    "d",
    reason="That compares numbers with words. Each word takes 256 numbers in a cache.",
)
choice(
    "answer_memory",
    "a",
    right=True,
    reason="A correction for one key changes nothing at keys at a right angle to it. The losses come from "
    "overlap, not from a number of places.",
)
choice(
    "answer_memory",
    "b",
    reason="That was with 64 random keys, which overlap. Keys at right angles do not disturb each other.",
)
choice(
    "answer_memory",
    "c",
    reason="The last one always is. Which of the older ones are disturbed depends on their overlap with the "
    "later ones, and here there is none.",
)
choice(
    "answer_memory",
    "d",
    reason="32 directions at right angles fit into 32 dimensions, all of them.",
)
