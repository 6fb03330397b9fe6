"""Wrong implementations of lesson 3, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

# The right answer in few words, of which the wrong ones below are changes.
SHORT_DOT_PRODUCT_VARIANCE = """
def dot_product_variance(d_k, num_pairs, rng):
    q, k = rng.standard_normal((2, num_pairs, d_k))
    return float(np.var(np.sum(q * k, axis=-1)))
"""


with exercise("dot_product_variance", base=SHORT_DOT_PRODUCT_VARIANCE):
    wrong(
        "variance_standard_deviation",
        {"np.var": "np.std"},
        "You return the standard deviation of the scores. The exercise asks for the variance, "
        "which is its square: that is the quantity that adds up over the d_k terms.",
    )

    wrong(
        "variance_after_scaling",
        {"np.sum(q * k, axis=-1)": "np.sum(q * k, axis=-1) / math.sqrt(d_k)"},
        "Your variance is near 1 for every d_k. For one, the products q_i k_i are not added up; or "
        "there is a scale: the scores are divided by the square root of d_k, or their variance by "
        "d_k. Measure the whole dot product, without any scale.",
    )

    wrong(
        "variance_uniform_entries",
        {"rng.standard_normal((2, num_pairs, d_k))": "rng.uniform(-1, 1, (2, num_pairs, d_k))"},
        "Your entries are uniform, not standard normal. A uniform number between -1 and 1 has "
        "variance 1/3, so the products are too small.",
    )

    wrong(
        "variance_entries_between_0_and_1",
        {"rng.standard_normal": "rng.random"},
        "Your entries lie between 0 and 1, as those of rng.random do. The exercise asks for "
        "standard normal entries, with mean 0 and variance 1.",
    )

    wrong(
        "variance_one_query",
        """
            q = rng.standard_normal(d_k)
            return float(np.var(rng.standard_normal((num_pairs, d_k)) @ q))
        """,
        "All your pairs share one query or one key. Then you measure the squared length of that "
        "vector, which changes from seed to seed. Each pair needs a query and a key of its own.",
    )

    wrong(
        "variance_query_is_key",
        {"q, k": "q", "2, num_pairs": "num_pairs", "q * k": "q * q"},
        "You multiply each vector with itself: that is its squared length, whose variance is 2 "
        "d_k. Query and key are two independent draws.",
    )

    wrong(
        "variance_sum_over_pairs",
        {"axis=-1": "axis=0"},
        "With d_k = 1 your variance is 0, as of one number alone. For one, your "
        "sum runs over the pairs, and not over the d_k entries of a vector alone; or you draw a "
        "single pair: in rng.normal(a, b) a is the mean and b the standard deviation, not a "
        "shape.",
    )

    wrong(
        "variance_global_random",
        {"rng.standard_normal((2, num_pairs, d_k))": "np.random.randn(2, num_pairs, d_k)"},
        "You draw from NumPy's global random state, and not from rng alone. Then the same "
        "generator gives different values, and other people's random numbers change.",
    )

    wrong(
        "variance_own_generator",
        {"= rng": "= np.random.default_rng(0)"},
        "You make a generator of your own with a fixed seed, so every call gives the same value "
        "whatever rng is. Draw from the rng you are given.",
    )

    wrong(
        "variance_theory",
        "return float(d_k)",
        "You return what theory expects. The exercise measures it: draw the pairs and compute the "
        "variance of their dot products.",
    )

    wrong(
        "variance_of_products_times_d_k",
        {"np.var(np.sum(q * k, axis=-1))": "d_k * np.var(q * k)"},
        "You measure the variance of single products and multiply it by d_k. That takes from theory "
        "what is to be measured: the variance of the dot products themselves.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_keys_are_shuffled_queries",
        {
            "q, k = rng.standard_normal((2, num_pairs, d_k))":
                "q = rng.standard_normal((num_pairs, d_k)); k = rng.permuted(q, axis=0)",
        },
        "Your keys are the numbers of the queries in another order. Each pair has a key of its own: "
        "draw it anew.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_mean",
        {"np.var": "np.mean"},
        "You return the mean of the scores, which is near 0. The exercise asks for their variance.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_mean_over_d_k",
        {"np.sum": "np.mean"},
        "You average over the d_k products. A dot product adds them up: the mean is d_k times "
        "smaller, and its variance d_k squared times.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_of_each_feature",
        {"float(np.var(np.sum(q * k, axis=-1)))": "np.var(q * k, axis=0)"},
        "You return an array, one variance for each feature. One number is asked for: add up over "
        "the features first, then take the variance over the pairs.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_of_each_pair",
        {"float(np.var(np.sum(q * k, axis=-1)))": "np.var(q * k, axis=-1)"},
        "You return an array, one number for each pair. One number is asked for: the variance of "
        "the dot products over the pairs.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_scores_returned",
        {"float(np.var(np.sum(q * k, axis=-1)))": "np.sum(q * k, axis=-1)"},
        "You return the dot products themselves. One number is asked for: their variance.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_list_of_scores",
        "return [rng.standard_normal(d_k) @ rng.standard_normal(d_k) for _ in range(num_pairs)]",
        "You return the dot products themselves. One number is asked for: their variance.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_of_one_number",
        "return 0.0",
        "With d_k = 1 your variance is 0, as of one number alone. For one, your "
        "sum runs over the pairs, and not over the d_k entries of a vector alone; or you draw a "
        "single pair: in rng.normal(a, b) a is the mean and b the standard deviation, not a "
        "shape.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_shape_of_mean_and_deviation",
        "return float(np.var(rng.normal(num_pairs, d_k) * rng.normal(num_pairs, d_k)))",
        "With d_k = 1 your variance is 0, as of one number alone. For one, your "
        "sum runs over the pairs, and not over the d_k entries of a vector alone; or you draw a "
        "single pair: in rng.normal(a, b) a is the mean and b the standard deviation, not a "
        "shape.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "variance_chain_of_vectors",
        {
            "q, k = rng.standard_normal((2, num_pairs, d_k))":
                "chain = rng.standard_normal((num_pairs + 1, d_k)); q, k = chain[1:], chain[:-1]",
        },
        "Your values lie further from d_k than those of new pairs, as when pairs share vectors: "
        "for one, the key of a pair is the query of the next. Each pair has a query and a key of "
        "its own.",
        seen="answers written blind",
    )

    wrong(
        "variance_keys_are_queries_of_other_pairs",
        {
            "q, k = rng.standard_normal((2, num_pairs, d_k))":
                "q = rng.standard_normal((num_pairs, d_k)); k = np.roll(q, 1, axis=0)",
        },
        "With two pairs of one feature your variance is 0, or next to it, as when the keys are the "
        "queries of other pairs: for one, those of the pair before. Each pair has a query and a "
        "key of its own.",
        seen="answers written blind",
    )

    wrong(
        "variance_without_the_mean",
        {
            "float(np.var(np.sum(q * k, axis=-1)))":
                "float(np.sum(np.sum(q * k, axis=-1) ** 2) / np.float64(num_pairs - 1))",
        },
        "A single pair has the variance inf, as when the square of its dot product is divided by "
        "0. Check first: the variance is about the mean of these dot products, which is 0 in "
        "theory only; subtract it before you square.",
        seen="answers written blind",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_SCALED_DOT_PRODUCT_ATTENTION = """
def scaled_dot_product_attention(Q, K, V, mask=None):
    s = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
    w = softmax(s if mask is None else np.where(mask, s, -np.inf))
    return w @ V, w
"""


with exercise("scaled_dot_product_attention", base=SHORT_SCALED_DOT_PRODUCT_ATTENTION):
    wrong(
        "attention_no_scale",
        {"/ math.sqrt(Q.shape[-1])": ""},
        "Your scores are plain dot products. Their standard deviation grows with the square root "
        "of d_k, and the softmax of large scores saturates. The scale keeps it near 1.",
    )

    wrong(
        "attention_divides_by_d_k",
        {"math.sqrt(Q.shape[-1])": "Q.shape[-1]"},
        "The scores are divided by d_k. The standard deviation of a score is the square root of "
        "d_k, so the weights come out too even.",
    )

    wrong(
        "attention_scale_of_n_k",
        {"Q.shape[-1]": "K.shape[-2]"},
        "The scale is made from the number of keys. A score is a sum over the features of a "
        "query, so the scale depends on their number.",
    )

    wrong(
        "attention_scale_of_axis_1",
        {"Q.shape[-1]": "Q.shape[1]"},
        "The scale is made from axis 1 of Q. That is d_k for one text, but the number of queries "
        "for a batch. Count the axis from the end.",
    )

    wrong(
        "attention_scale_of_d_v",
        {"Q.shape[-1]": "V.shape[-1]"},
        "The scale is made from the length of a value. Values take no part in the scores; the "
        "length of a query does.",
    )

    wrong(
        "attention_scale_after_softmax",
        """
            s = Q @ np.swapaxes(K, -1, -2)
            w = softmax(s if mask is None else np.where(mask, s, -np.inf)) / math.sqrt(Q.shape[-1])
            return w @ V, w
        """,
        "The softmax comes first and the scale after it, so the rows of weights no longer sum to "
        "1. The scale acts on the scores.",
    )

    wrong(
        "attention_softmax_over_queries",
        {"(mask, s, -np.inf)": "(mask, s, -np.inf), axis=-2"},
        "Your weights sum to 1 down each column: the softmax runs over the queries. Each query "
        "spreads its weight over the keys.",
        seen="a public issue: softmax with dim=1 on batched input",
    )

    wrong(
        "attention_softmax_axis_1",
        {"(mask, s, -np.inf)": "(mask, s, -np.inf), axis=1"},
        "The softmax runs over axis 1. That is the keys for one text, but the queries for a "
        "batch. Count the axis from the end.",
    )

    wrong(
        "attention_softmax_over_everything",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": """
                s = s if mask is None else np.where(mask, s, -np.inf)
                w = softmax(s.reshape(*s.shape[:-2], -1)).reshape(s.shape)
            """,
        },
        "The softmax is taken over the whole matrix at once. Each row, one query, should sum to 1 "
        "by itself.",
    )

    wrong(
        "attention_T",
        {"np.swapaxes(K, -1, -2)": "K.T"},
        "All axes of K are reversed, as by .T, the batch axes too. With batches only the last two "
        "axes of K are exchanged.",
    )

    wrong(
        "attention_one_batch_axis",
        {"np.swapaxes(K, -1, -2)": "(K.T if K.ndim == 2 else K.transpose(0, 2, 1))"},
        "The axes of K are exchanged for one batch axis at most. The signature has dots: there "
        "may be none, one, two or more.",
        edge=True,
    )

    wrong(
        "attention_wants_equal_batches",
        {
            "s = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])": """
                if not Q.shape[:-2] == K.shape[:-2] == V.shape[:-2]:
                    raise ValueError("batch axes differ")
                s = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
            """,
        },
        "Leading axes that differ end in an error, for one because you refuse them. They broadcast: "
        "a missing axis, or one of length 1, is repeated.",
    )

    wrong(
        "attention_every_text_on_every_text",
        {
            "Q @ np.swapaxes(K, -1, -2)": "np.dot(Q, np.swapaxes(K, -1, -2))",
            "w @ V": "np.dot(w, V)",
        },
        "Your product pairs every text of Q with every text of K. Batch axes go together: text 1 "
        "attends to text 1.",
    )

    wrong(
        "attention_mask_inverted",
        {"s, -np.inf": "-np.inf, s"},
        "Your mask hides where it is True. In this course True means: may attend. "
        "nn.MultiheadAttention has it the other way round.",
        seen="torch issues: opposite meaning of boolean masks",
    )

    wrong(
        "attention_mask_ignored",
        """
            w = softmax(Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]))
            return w @ V, w
        """,
        "The mask has no effect: forbidden keys get weight.",
    )

    wrong(
        "attention_mask_after_softmax",
        """
            w = softmax(Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]))
            w = w if mask is None else w * mask
            return w @ V, w
        """,
        "The mask sets weights to 0 after the softmax. The rest of the row then sums to less than "
        "1, and the forbidden keys have still taken part. The mask acts on the scores.",
    )

    wrong(
        "attention_mask_multiplies_scores",
        {"np.where(mask, s, -np.inf)": "s * mask"},
        "A forbidden score is set to 0. But a score of 0 is an ordinary score, and exp(0) = 1: "
        "the key still gets weight. It must go to minus infinity.",
    )

    wrong(
        "attention_mask_added_as_number",
        {"np.where(mask, s, -np.inf)": "s + mask"},
        "The mask is added to the scores as 1 and 0. That hides nothing: it only raises the "
        "allowed scores by 1. A forbidden score must go to minus infinity.",
        seen="torch issues: a float mask is added",
    )

    wrong(
        "attention_minus_1e9",
        {"-np.inf": "-1e9"},
        "A query that may attend to nothing still has weights, evenly spread: as when a large "
        "negative score stands for minus infinity, and the output alone is repaired, or nothing. "
        "Both its weights and its output should be 0.",
        seen="The Annotated Transformer",
    )

    wrong(
        "attention_minus_1e9_added",
        {"np.where(mask, s, -np.inf)": "s + np.where(mask, 0.0, -1e9)"},
        "-1e9 is added to forbidden scores. A query that may attend to nothing then attends as if "
        "there were no mask. Its weights and its output should be 0.",
        seen="the TensorFlow transformer tutorial",
    )

    wrong(
        "attention_minus_1e4",
        {
            "softmax(s if mask is None else np.where(mask, s, -np.inf))":
                "softmax(s) if mask is None else softmax(s + np.where(mask, 0.0, -1e4)) * mask",
        },
        "Forbidden scores become a number like -1e4, or are lowered by it, which is not enough: "
        "an ordinary score can be lower, and then the forbidden key wins.",
        seen="early Hugging Face models",
    )

    wrong(
        "attention_low_number_then_zeros",
        {
            "softmax(s if mask is None else np.where(mask, s, -np.inf))":
                "softmax(s) if mask is None else softmax(np.where(mask, s, -1e4)) * mask",
        },
        "It comes out as if a forbidden score became a number, or were lowered by one, that is not low "
        "enough: an allowed score can be lower still, and then its key has no weight.",
        seen="early Hugging Face models",
    )

    wrong(
        "attention_low_number_and_empty_rows",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": """
                w = softmax(s if mask is None else np.where(mask, s, -1e9))
                w = w if mask is None else w * np.any(mask, axis=-1, keepdims=True)
            """,
        },
        "It comes out as if a forbidden score became a number, or were lowered by one, that is not low "
        "enough: an allowed score can be lower still, and then its key has no weight.",
        seen="early Hugging Face models",
    )

    wrong(
        "attention_largest_of_all_scores",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": """
                e = np.exp(s - s.max(axis=-1, keepdims=True)) * (True if mask is None else mask)
                total = e.sum(axis=-1, keepdims=True)
                w = e / np.where(total == 0, 1, total)
            """,
        },
        "Forbidden keys still take part in the softmax, or in the largest score that it takes off. "
        "Where a forbidden score is thousands above the others, nothing is left for those: the query "
        "attends to nothing.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_nan_rows",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": """
                s = s if mask is None else np.where(mask, s, -np.inf)
                e = np.exp(s - s.max(axis=-1, keepdims=True))
                w = e / e.sum(axis=-1, keepdims=True)
            """,
        },
        "A query that may attend to nothing gives NaN: its row is 0 / 0, or minus infinity minus "
        "itself. Its weights and its output should be 0.",
        seen="torch issues: nn.MultiheadAttention on fully padded rows",
    )

    wrong(
        "attention_only_output_repaired",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": """
                if mask is None:
                    return softmax(s) @ V, softmax(s)
                w = softmax(np.where(mask, s, -1e9))
            """,
            "w @ V": "w * np.any(mask, axis=-1, keepdims=True) @ V",
        },
        "A query that may attend to nothing still has weights, evenly spread: as when a large "
        "negative score stands for minus infinity, and the output alone is repaired, or nothing. "
        "Both its weights and its output should be 0.",
    )

    wrong(
        "attention_mask_transposed",
        {"mask, s": "np.swapaxes(mask, -1, -2), s"},
        "The mask is read with its two axes exchanged. Its rows are queries, its columns keys.",
    )

    wrong(
        "attention_mask_by_index",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": """
                if mask is not None:
                    s[~mask] = -np.inf
                w = softmax(s)
            """,
        },
        "The mask is used as an index, so it must have the full shape of the scores. It only has "
        "to broadcast to it.",
    )

    wrong(
        "attention_mask_gets_an_axis",
        {"mask, s": "np.expand_dims(mask, -2), s"},
        "You insert an axis into the mask. A mask broadcasts to the weights as it is, from the "
        "right; an inserted axis turns batch axes into other ones or makes the weights larger.",
    )

    wrong(
        "attention_mask_of_fewer_axes_gets_one",
        {
            "w = softmax": """
                if mask is not None and 1 < mask.ndim == s.ndim - 1:
                    mask = np.expand_dims(mask, -2)
                w = softmax
            """,
        },
        "You insert an axis into the mask. A mask broadcasts to the weights as it is, from the "
        "right; an inserted axis turns batch axes into other ones or makes the weights larger.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_keys_as_values",
        {"w @ V": "w @ K"},
        "The weights average the keys. The output is an average of the values.",
    )

    wrong(
        "attention_output_only",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": "",
            "w @ V, w": "softmax(s if mask is None else np.where(mask, s, -np.inf)) @ V",
        },
        "You return one thing only. The exercise asks for two: the output and the weights.",
    )

    wrong(
        "attention_order_of_results",
        {"w @ V, w": "w, w @ V"},
        "You return (weights, output). The course's order is (output, weights).",
    )

    wrong(
        "attention_returns_scores",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))":
                "s = s if mask is None else np.where(mask, s, -np.inf)",
            "w @ V, w": "softmax(s) @ V, s",
        },
        "The second result holds the scores before the softmax. The exercise asks for the weights.",
    )

    wrong(
        "attention_float32",
        {
            "Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])":
                "(Q @ np.swapaxes(K, -1, -2)).astype(np.float32) / np.float32(math.sqrt(Q.shape[-1]))",
        },
        "The computation goes through float32. Float64 inputs should keep their precision.",
    )

    wrong(
        "attention_result_in_type_of_values",
        {"w @ V": "(w @ V).astype(V.dtype)"},
        "The output comes out in the type of V. With integer values everything after the decimal "
        "point is lost.",
    )

    wrong(
        "attention_scales_q_in_place",
        {
            "s = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])":
                "Q /= math.sqrt(Q.shape[-1]); s = Q @ np.swapaxes(K, -1, -2)",
        },
        "Q is divided in place: the caller's array is changed, and integers cannot take it.",
    )

    wrong(
        "attention_writes_into_the_mask",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": """
                if mask is None:
                    return softmax(s) @ V, softmax(s)
                empty = ~mask.any(axis=-1, keepdims=True)
                mask |= empty
                w = np.where(empty, 0.0, softmax(np.where(mask, s, -np.inf)))
            """,
        },
        "The caller's mask is changed: rows with nothing to attend to are opened in place.",
    )

    wrong(
        "attention_no_scale_and_over_queries",
        {"/ math.sqrt(Q.shape[-1])": "", "(mask, s, -np.inf)": "(mask, s, -np.inf), axis=-2"},
        "Two mistakes at once. The scores are plain dot products, without the scale that keeps "
        "their standard deviation near 1. And the weights sum to 1 down each column: the softmax "
        "runs over the queries, not over the keys.",
        seen="a composition of two",
    )

    wrong(
        "attention_minus_1e9_where_true",
        {"np.where(mask, s, -np.inf)": "s + mask * -1e9"},
        "Your mask hides where it is True. In this course True means: may attend. "
        "nn.MultiheadAttention has it the other way round.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_multiplies_by_the_root",
        {"/ math": "* math"},
        "You multiply by the square root of d_k. Divide by it: the scores are too large already, "
        "not too small.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_scale_of_n_q",
        {"Q.shape[-1]": "Q.shape[-2]"},
        "The scale is made from the number of queries. A score is a sum over the features of a "
        "query, so the scale depends on their number.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_truth_of_the_mask",
        {
            "s if mask is None else np.where(mask, s, -np.inf)":
                "np.where(mask, s, -np.inf) if mask else s",
        },
        "You ask a whole array whether it is true (mask != None compares each entry, too), which "
        "NumPy refuses. Ask whether the mask is None; ~mask turns each of its entries over.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_0_times_infinity",
        {"np.where(mask, s, -np.inf)": "s + (1 - mask) * -np.inf"},
        "You multiply a mask by infinity, and 0 times infinity is NaN. Choose between the score "
        "and minus infinity; do not compute with it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_transpose_of_torch",
        {"np.swapaxes(K, -1, -2)": "K.transpose(-2, -1)"},
        "The last two axes of K are not exchanged in your product: the features of Q have to meet "
        "those of K. (NumPy's transpose(-2, -1) is not torch's: it wants the new order of all "
        "axes. np.swapaxes exchanges two.)",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_keys_not_turned_over",
        {"Q @ np.swapaxes(K, -1, -2)": "np.matmul(Q, K)"},
        "The last two axes of K are not exchanged in your product: the features of Q have to meet "
        "those of K. (NumPy's transpose(-2, -1) is not torch's: it wants the new order of all "
        "axes. np.swapaxes exchanges two.)",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_names_two_axes",
        {"Q @ np.swapaxes(K, -1, -2)": 'np.einsum("qd,kd->qk", Q, K)'},
        "Your formula names exactly two axes of Q and K. The signature has dots: there may be any "
        "number of leading axes.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_renormalised_after_softmax",
        """
            w = softmax(Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]))
            if mask is not None:
                w = w * mask
                w = w / w.sum(axis=-1, keepdims=True)
            return w @ V, w
        """,
        "A query that may attend to nothing gives NaN: its row is 0 / 0, or minus infinity minus "
        "itself. Its weights and its output should be 0.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_unmasked_output",
        """
            w = softmax(Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]))
            if mask is None:
                return w @ V, w
            return w @ V, softmax(np.where(mask, Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]), -np.inf))
        """,
        "The output is made of the weights before the mask. Mask first; the output is the average "
        "with the weights that you return.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_mask_is_not",
        {
            "w = softmax(s if mask is None else np.where(mask, s, -np.inf))": """
                if mask is not None:
                    s[not mask] = -np.inf
                w = softmax(s)
            """,
        },
        "You ask a whole array whether it is true (mask != None compares each entry, too), which "
        "NumPy refuses. Ask whether the mask is None; ~mask turns each of its entries over.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_masked_fill",
        {"np.where(mask, s, -np.inf)": "s.masked_fill(~mask, -np.inf)"},
        "`masked_fill` is a method of torch's tensors. NumPy arrays do not have it; np.where "
        "chooses between two arrays.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_true_times_infinity",
        {"np.where(mask, s, -np.inf)": "s - mask * np.inf"},
        "You multiply a mask by infinity, and 0 times infinity is NaN. Choose between the score "
        "and minus infinity; do not compute with it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_score_times_infinity",
        {"np.where(mask, s, -np.inf)": "s * np.where(mask, 1.0, -np.inf)"},
        "You multiply forbidden scores by minus infinity: a negative one becomes plus infinity. "
        "Replace them by minus infinity.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_output_divided",
        {"/ math.sqrt(Q.shape[-1])": "", "w @ V": "w @ V / math.sqrt(Q.shape[-1])"},
        "You divide the output by the root of d_k. The scale acts on the scores, before the "
        "softmax.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_star_for_matmul",
        """
            w = softmax(Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]))
            return w * V, w
        """,
        "`*` multiplies entry by entry. The output is a matrix product of weights and values.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_star_for_scores",
        """
            w = softmax(Q * np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]))
            return w @ V, w
        """,
        "`*` multiplies entry by entry. The scores are a matrix product of queries and keys.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "attention_mask_a_row_for_each_text",
        {
            "w = softmax": """
                if mask is not None and mask.shape == (len(s), s.shape[-1]) and s.ndim == 3:
                    mask = mask[:, None]
                w = softmax
            """,
        },
        "Where there are as many texts as queries, a mask (n_q, n_k) comes out as if it had a row "
        "for each text. Its rows are queries: a mask broadcasts to the weights as it is, from the "
        "right.",
        seen="answers written blind",
    )

    wrong(
        "attention_batch_of_one_unpacked",
        {
            "return w @ V, w": """
                if w.ndim > 2 and len(w) == 1:
                    return (w @ V)[0], w[0]
                return w @ V, w
            """,
        },
        "A leading axis of length 1 is gone from your results, as when a batch of one is unpacked "
        "or squeezed. An axis that the arguments came with stays.",
    )

    wrong(
        "attention_lowest_number_of_the_queries",
        """
            s = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
            if mask is None:
                return softmax(s) @ V, softmax(s)
            w = np.where(mask, softmax(np.where(mask, s, np.finfo(Q.dtype).min)), 0)
            return w @ V, w
        """,
        "With a mask your function fails on whole numbers. Check first: np.finfo knows floating "
        "dtypes only, and those of the arguments may be whole; the scores are floating.",
        seen="answers written blind",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_PADDING_MASK = """
def padding_mask(lengths, n_k):
    lengths = np.asarray(lengths)
    if (lengths < 0).any() or (lengths > n_k).any():
        raise ValueError("lengths")
    return np.arange(n_k) < lengths[:, None, None]
"""


with exercise("padding_mask", base=SHORT_PADDING_MASK):
    wrong(
        "padding_inverted",
        {"(n_k) <": "(n_k) >="},
        "Your mask is True on the padding. In this course True means: may attend.",
        seen="nn.MultiheadAttention's key_padding_mask",
    )

    wrong(
        "padding_one_too_many",
        {"(n_k) <": "(n_k) <="},
        "Each text shorter than n_k keeps one position too many: positions are counted from 0, so "
        "position 'length' is already padding.",
    )

    wrong(
        "padding_two_axes",
        {"None, None": "None"},
        "The mask has shape (batch, n_k). Without the axis of length 1 in the middle its batch "
        "axis would meet the queries.",
    )

    wrong(
        "padding_four_axes",
        {"None, None": "None, None, None"},
        "The mask has four axes. One for heads is not asked for in this lesson: its shape should "
        "be (batch, 1, n_k).",
    )

    wrong(
        "padding_axis_last",
        {
            "np.arange(n_k) < lengths[:, None, None]":
                "(np.arange(n_k) < lengths[:, None])[:, :, None]",
        },
        "The axis of length 1 is the last one. It belongs in the middle, where the queries are: "
        "(batch, 1, n_k).",
    )

    wrong(
        "padding_square",
        {
            "np.arange(n_k) < lengths[:, None, None]":
                "np.repeat(np.arange(n_k) < lengths[:, None, None], n_k, axis=1)",
        },
        "The mask is repeated for n_k queries. Nobody said that there are as many queries as "
        "keys: the middle axis has length 1.",
    )

    wrong(
        "padding_only_upper_check",
        {"(lengths < 0).any() or (lengths > n_k).any()": "(lengths > n_k).any()"},
        "A negative length passes silently. It should be a ValueError, as a length above n_k is.",
    )

    wrong(
        "padding_only_lower_check",
        {"or (lengths > n_k).any()": ""},
        "A length above n_k passes silently. It should be a ValueError, as a negative length is.",
    )

    wrong(
        "padding_refuses_zero",
        {"lengths < 0": "lengths <= 0"},
        "You refuse a length of 0. An empty text is allowed: its row is all False.",
    )

    wrong(
        "padding_refuses_full",
        {"> n_k": ">= n_k"},
        "You refuse a length of n_k. A text without padding is allowed: its row is all True.",
    )

    wrong(
        "padding_checks_only_some",
        {
            """
                if (lengths < 0).any() or (lengths > n_k).any():
                    raise ValueError("lengths")
            """: """
                for length in (lengths[0], lengths[-1]):
                    if not 0 <= length <= n_k:
                        raise ValueError("lengths")
            """,
        },
        "Only the first and the last length are checked. Every length of the batch may be wrong.",
    )

    wrong(
        "padding_floats",
        {
            "np.arange(n_k) < lengths[:, None, None]":
                "(np.arange(n_k) < lengths[:, None, None]).astype(float)",
        },
        "The mask holds the numbers 1 and 0. It should be boolean: a number would be added to "
        "scores or used as an index by other code.",
        seen="Hugging Face attention masks",
    )

    wrong(
        "padding_wants_an_array",
        {
            "lengths = np.asarray(lengths)": "",
            "(lengths < 0).any() or (lengths > n_k).any()":
                "lengths.min() < 0 or lengths.max() > n_k",
        },
        "A list of lengths fails: a list has no shape and no min, and cannot be indexed with "
        "None. Both a list and an array are valid.",
    )

    wrong(
        "padding_wants_a_list",
        """
            if not lengths or min(lengths) < 0 or max(lengths) > n_k:
                raise ValueError("lengths")
            return np.array([[[j < length for j in range(n_k)]] for length in lengths])
        """,
        "An array of lengths fails: its truth value is ambiguous. Both a list and an array are "
        "valid.",
    )

    wrong(
        "padding_width_of_longest",
        {"(n_k)": "(lengths.max())"},
        "The mask is as wide as the longest text. Its width is n_k, also when every text is "
        "shorter.",
    )

    wrong(
        "padding_on_the_left",
        {"(n_k) <": "(n_k) >= n_k -"},
        "Your padding stands before the words. The exercise fills up after them: the first "
        "'length' positions are True.",
        seen="decoder-only tokenizers that pad on the left",
    )

    wrong(
        "padding_sorts_the_lengths",
        """
            lengths.sort()
            if lengths[0] < 0 or lengths[-1] > n_k:
                raise ValueError("lengths")
            return np.arange(n_k) < np.asarray(lengths)[:, None, None]
        """,
        "Your rows come in the order of the sorted lengths, so they no longer belong to their "
        "texts. (lengths.sort(), for one, changes the caller's list besides.)",
        seen="packed sequences, which want sorted lengths",
    )

    wrong(
        "padding_whole_numbers",
        {
            "np.arange(n_k) < lengths[:, None, None]":
                "(np.arange(n_k) < lengths[:, None, None]).astype(int)",
        },
        "The mask holds the numbers 1 and 0. It should be boolean: a number would be added to "
        "scores or used as an index by other code.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_list_indexed",
        "return np.arange(n_k) < lengths[:, None, None]",
        "A list of lengths fails: a list has no shape and no min, and cannot be indexed with "
        "None. Both a list and an array are valid.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_list_compared",
        """
            if lengths < 0 or lengths > n_k:
                raise ValueError("lengths")
            return np.arange(n_k) < np.asarray(lengths)[:, None, None]
        """,
        "You compare the whole list with a number, which Python refuses. Look at each length, or "
        "make an array of them first.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_list_compared_above",
        """
            if lengths > n_k or lengths < 0:
                raise ValueError("lengths")
            return np.arange(n_k) < np.asarray(lengths)[:, None, None]
        """,
        "You compare the whole list with a number, which Python refuses. Look at each length, or "
        "make an array of them first.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_truth_of_an_array",
        {"(lengths < 0).any() or (lengths > n_k).any()": "lengths < 0 or lengths > n_k"},
        "You ask an array of comparisons whether it is true, which NumPy refuses. Is one of them "
        "True? That is what any() says.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_one_too_few",
        {"(n_k)": "(1, n_k + 1)"},
        "Your texts lose their last word: positions are counted from 0, so the position 'length - "
        "1' is still a word.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_axis_first",
        {"np.arange(n_k) < lengths[:, None, None]": "(np.arange(n_k) < lengths[:, None])[None]"},
        "The axis of length 1 is the first one. It belongs in the middle, where the queries are: "
        "(batch, 1, n_k).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_heads_first",
        {
            "np.arange(n_k) < lengths[:, None, None]":
                "(np.arange(n_k) < lengths[:, None])[None, None]",
        },
        "The mask has four axes. One for heads is not asked for in this lesson: its shape should "
        "be (batch, 1, n_k).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_nested_lists",
        """
            if min(lengths) < 0 or max(lengths) > n_k:
                raise ValueError("lengths")
            return [[[j < int(n) for j in range(n_k)]] for n in lengths]
        """,
        "You return nested Python lists. A NumPy array is asked for.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_nothing_cut_from_the_end",
        {"lengths[:, None, None]": "np.where(lengths == n_k, 0, lengths)[:, None, None]"},
        "A text without padding gets no True, as when the padding is cut off by a negative index: "
        "without padding that is -0, which is 0, and the whole row is cut.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_minus_infinity",
        {
            "np.arange(n_k) < lengths[:, None, None]":
                "np.where(np.arange(n_k) < lengths[:, None, None], 0.0, -np.inf)",
        },
        "The mask holds 0 and minus infinity, to be added to scores. This exercise asks for a "
        "boolean one: True = may attend.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_and_for_or",
        {"(lengths < 0).any() or (lengths > n_k).any()": "((lengths < 0) | (lengths > n_k)).all()"},
        "Lengths outside 0 to n_k get through, or are quietly cut to the range. They should be a "
        "ValueError, so that the caller learns of the mistake. Every single length has to be "
        "compared.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_index_on_the_middle_axis",
        {
            "np.arange(n_k) < lengths[:, None, None]":
                "np.repeat(lengths[:, None, None] > 0, n_k, axis=2)",
        },
        "The whole row of a text with words becomes True, as when a slice cuts the middle axis, "
        "whose length is 1. The keys are the last axis.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_index_error",
        """
            mask = np.zeros((len(lengths), 1, n_k), dtype=bool)
            for i, length in enumerate(lengths):
                for j in range(length):
                    mask[i, 0, j] = True
            return mask
        """,
        "A length above n_k ends in an IndexError, and a negative one passes. Compare each length "
        "with 0 and n_k first; a wrong one is a ValueError.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "padding_checks_lists_only",
        """
            if not isinstance(lengths, np.ndarray):
                if min(lengths) < 0 or max(lengths) > n_k:
                    raise ValueError
            return np.arange(n_k) < np.asarray(lengths)[:, None, None]
        """,
        "Lengths out of range are refused where they come as a list, and not all of them where "
        "they come as an array. Both are the same misuse: a ValueError.",
        seen="answers written blind",
    )

    wrong(
        "padding_axis_of_the_keys_squeezed",
        {
            "return np.arange(n_k) < lengths[:, None, None]": """
                rows = (np.arange(n_k) < lengths[:, None, None]).squeeze()
                rows = rows[None] if rows.ndim == 1 else rows
                return rows[:, None, :]
            """,
        },
        "With one text and n_k = 1 your function fails, as when squeeze takes every axis of length "
        "1 away: also that of the keys is one to be kept.",
        seen="answers written blind",
    )


# The right answer in steps, of which the wrong ones below are changes.
TORCH_SCALED_DOT_PRODUCT_ATTENTION_IN_STEPS = """
def torch_scaled_dot_product_attention(Q, K, V, mask=None):
    s = Q @ K.mT / math.sqrt(Q.shape[-1])
    s = s if mask is None else s.masked_fill(~mask, -1e30)
    w = torch.softmax(s, -1)
    w = w if mask is None else w * mask
    return w @ V, w
"""


with exercise(
    "torch_scaled_dot_product_attention", base=TORCH_SCALED_DOT_PRODUCT_ATTENTION_IN_STEPS
):
    wrong(
        "torch_attention_bmm",
        {"Q @ K.mT": "(Q @ K.mT if Q.ndim == 2 else torch.bmm(Q, K.transpose(1, 2)))"},
        "`torch.bmm` takes exactly one batch axis. The signature has dots: there may be none, two "
        "or more, and they may differ.",
        edge=True,
    )

    wrong(
        "torch_attention_mask_after_softmax",
        {"s = s if mask is None else s.masked_fill(~mask, -1e30)": ""},
        "The mask sets weights to 0 after the softmax. The rest of the row then sums to less than "
        "1, and the forbidden keys have still taken part. The mask acts on the scores.",
    )

    wrong(
        "torch_attention_nan_rows",
        {"-1e30": "-math.inf"},
        "A query that may attend to nothing gives NaN: its row is 0 / 0, or minus infinity minus "
        "itself. Its weights and its output should be 0.",
        seen="torch issues: nn.MultiheadAttention on fully padded rows",
    )

    wrong(
        "torch_attention_nan_gradients",
        {
            "s.masked_fill(~mask, -1e30)": "s + torch.where(mask, 0.0, -math.inf)",
            "w * mask": "w.nan_to_num(0.0)",
        },
        "The result of an empty row is right, but its gradient is NaN. A NaN, or 0 divided by 0, "
        "arises on the way and is repaired afterwards; its gradient, 0 times NaN, is NaN again. "
        "Either it does not arise, or no gradient passes through it.",
        seen="torch issues: NaN gradients with nan_to_num after softmax",
    )

    wrong(
        "torch_attention_own_softmax_nan_gradients",
        """
            s = Q @ K.mT / math.sqrt(Q.shape[-1])
            allowed = torch.ones_like(s, dtype=torch.bool) if mask is None else mask.expand(s.shape)
            largest = s.detach().masked_fill(~allowed, -1e30).amax(-1, keepdim=True)
            e = torch.exp((s - largest) * allowed) * allowed
            total = e.sum(-1, keepdim=True)
            w = torch.where(total > 0, e / total, 0.0)
            return w @ V, w
        """,
        "The result of an empty row is right, but its gradient is NaN. A NaN, or 0 divided by 0, "
        "arises on the way and is repaired afterwards; its gradient, 0 times NaN, is NaN again. "
        "Either it does not arise, or no gradient passes through it.",
        seen="torch issues: torch.where and NaN gradients",
    )

    wrong(
        "torch_attention_no_grad",
        {"w @ V, w": "w.detach() @ V, w.detach()"},
        "Your weights are cut off from autograd, as by no_grad or detach, so Q and K get no "
        "gradient and cannot learn.",
    )

    wrong(
        "torch_attention_numpy_inside",
        """
            arrays = (x.detach().numpy() for x in (Q, K, V))
            mask = None if mask is None else mask.numpy()
            output, weights = scaled_dot_product_attention(*arrays, mask)
            return torch.tensor(output, dtype=Q.dtype), torch.tensor(weights, dtype=Q.dtype)
        """,
        "The numbers are right, but no gradient flows: the connection to Q, K and V is cut, for "
        "one by NumPy, by a new tensor, by detach or by no_grad.",
    )

    wrong(
        "torch_attention_in_place",
        {"s = Q @ K.mT / math.sqrt(Q.shape[-1])": "Q /= math.sqrt(Q.shape[-1]); s = Q @ K.mT"},
        "Q is divided in place: the caller's tensor is changed, and a leaf that requires a "
        "gradient refuses it.",
    )

    wrong(
        "torch_attention_mask_needs_full_shape",
        {
            "s = s if mask is None else s.masked_fill(~mask, -1e30)": """
                if mask is not None:
                    s[~mask] = -1e30
            """,
        },
        "The mask is used as an index, so it must have the full shape of the scores. It only has "
        "to broadcast to it.",
    )

    wrong(
        "torch_attention_mask_gets_head_axis",
        {
            "s = Q":
                "mask = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask; s = Q",
        },
        "You insert an axis into the mask. A mask broadcasts to the weights as it is; an inserted "
        "axis turns batch axes into other ones or makes the weights larger.",
    )

    wrong(
        "torch_attention_output_twice",
        {"w @ V, w": "w @ V, Q @ K.mT / math.sqrt(Q.shape[-1])"},
        "The second result is the matrix of scores, not the weights after the softmax.",
    )

    wrong(
        "torch_attention_output_only",
        "return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)",
        "You return one thing only. The exercise asks for two: the output and the weights.",
        seen="F.scaled_dot_product_attention",
    )

    wrong(
        "torch_attention_no_scale_and_over_queries",
        {"/ math.sqrt(Q.shape[-1])": "", "(s, -1)": "(s, -2)"},
        "Two mistakes at once. The scores are plain dot products, without the scale that keeps "
        "their standard deviation near 1. And the weights sum to 1 down each column: the softmax "
        "runs over the queries, not over the keys.",
        seen="a composition of two",
    )

    wrong(
        "torch_attention_numpy_of_a_leaf",
        """
            arrays = (x.numpy() for x in (Q, K, V))
            mask = None if mask is None else mask.numpy()
            output, weights = scaled_dot_product_attention(*arrays, mask)
            return torch.tensor(output, dtype=Q.dtype), torch.tensor(weights, dtype=Q.dtype)
        """,
        "A tensor is converted to NumPy, as NumPy's functions do it too, and one that requires a "
        "gradient refuses it; with detach it works and no gradient flows. Stay in torch from Q, K "
        "and V to the results.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_swaps_all",
        """
            w = torch.softmax(torch.bmm(Q, K) / math.sqrt(Q.shape[-1]), -1)
            return w @ V, w
        """,
        "The features of Q have to meet the features of K: the last two axes of K are not "
        "exchanged in your product.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_mask_ignored",
        {"s = s if mask is None else s.masked_fill(~mask, -1e30)": "mask = None"},
        "The mask has no effect: it is not used, or masked_fill gives a new tensor that nobody "
        "keeps. Forbidden keys get weight.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_given_softmax",
        {"torch.softmax(s, -1)": "softmax(s)", "w * mask": "w"},
        "The softmax of lesson 2 is for NumPy arrays. Use torch's, so that the result is a tensor "
        "and gradients flow.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_softmax_without_dim",
        {"(s, -1)": "(s)"},
        "torch.softmax wants to be told its dim. It runs over the keys, the last one.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_root_in_float32",
        {"math.sqrt(Q.shape[-1])": "torch.sqrt(torch.tensor(Q.shape[-1]))"},
        "From float64 your weights are right to seven digits or so: for one, torch takes the root of a "
        "whole number in float32. Float64 should stay float64 on the way, too.",
        seen="answers written blind",
    )

    wrong(
        "torch_attention_divides_by_at_least",
        """
            w = (Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])).softmax(-1)
            if mask is not None:
                w = w * mask
                w = w / w.sum(-1, keepdim=True).clamp(min=1e-6)
            return w @ V, w
        """,
        "You set forbidden weights to 0 after the softmax and divide by the sum that is left, with a "
        "bound below or a small number added. Where a forbidden key held nearly all the weight, that "
        "sum is smaller still, and the row does not sum to 1.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_no_scale",
        {"/ math.sqrt(Q.shape[-1])": ""},
        "Your scores are plain dot products. Their standard deviation grows with the square root "
        "of d_k, and the softmax of large scores saturates. The scale keeps it near 1.",
    )

    wrong(
        "torch_attention_softmax_dim_1",
        {"(s, -1)": "(s, 1)"},
        "The softmax runs over dim 1. That is the keys for one text, but the queries for a batch. "
        "Count the axis from the end.",
        seen="a public issue: softmax with dim=1 on batched input",
    )

    wrong(
        "torch_attention_softmax_over_queries",
        {"(s, -1)": "(s, -2)"},
        "Your weights sum to 1 down each column: the softmax runs over the queries. Each query "
        "spreads its weight over the keys.",
    )

    wrong(
        "torch_attention_mask_inverted",
        {"~mask": "mask", "w * mask": "w * ~mask"},
        "Your mask hides where it is True. In this course True means: may attend. masked_fill "
        "fills where its argument is True.",
        seen="torch issues: opposite meaning of boolean masks",
    )

    wrong(
        "torch_attention_minus_1e9",
        {"-1e30": "-1e9", "w * mask": "w"},
        "Forbidden scores become -1e9. A query that may attend to nothing then attends evenly to "
        "padding. Its weights and its output should be 0.",
        seen="The Annotated Transformer",
    )

    wrong(
        "torch_attention_low_number_then_zeros",
        {"-1e30": "-1e4"},
        "It comes out as if a forbidden score became a number, or were lowered by one, that is not low "
        "enough: an allowed score can be lower still, and then its key has no weight.",
        seen="early Hugging Face models",
    )

    wrong(
        "torch_attention_detached_weights",
        {"w @ V, w": "w @ V, w.detach()"},
        "No gradient flows through the weights you return: they are detached, for one. Gradients "
        "should flow through both results.",
    )

    wrong(
        "torch_attention_float32",
        {"Q @ K.mT": "(Q @ K.mT).float()", "return w @ V, w": "w = w.to(V.dtype); return w @ V, w"},
        "The computation goes through float32. Float64 inputs should keep their precision.",
    )

    wrong(
        "torch_attention_order_of_results",
        {"w @ V, w": "w, w @ V"},
        "You return (weights, output). The course's order is (output, weights).",
    )

    wrong(
        "torch_attention_only_output_repaired",
        {"-1e30": "-math.inf", "w @ V": "(w @ V).nan_to_num()"},
        "The output of a query that may attend to nothing is repaired, and its weights are still "
        "NaN. Both should be 0, and no NaN should arise on the way.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_T",
        {"K.mT": "K.T"},
        ".T reverses all axes, .t() takes two axes at most, and transpose(0, 1) takes the batch "
        "axis. With batches only the last two axes of K are exchanged.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_transpose_0_1",
        {"K.mT": "K.transpose(0, 1)"},
        ".T reverses all axes, .t() takes two axes at most, and transpose(0, 1) takes the batch "
        "axis. With batches only the last two axes of K are exchanged.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_t",
        {"K.mT": "K.t()"},
        ".T reverses all axes, .t() takes two axes at most, and transpose(0, 1) takes the batch "
        "axis. With batches only the last two axes of K are exchanged.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_keys_not_turned_over",
        {"K.mT": "K"},
        "The features of Q have to meet the features of K: the last two axes of K are not "
        "exchanged in your product.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_mask_multiplies_scores",
        {"s.masked_fill(~mask, -1e30)": "s * mask", "w * mask": "w"},
        "A forbidden score is set to 0. But a score of 0 is an ordinary score, and exp(0) = 1: "
        "the key still gets weight. It must go to minus infinity.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_mask_added",
        {"s.masked_fill(~mask, -1e30)": "s + mask", "w * mask": "w"},
        "The mask is added to the scores as 1 and 0. That hides nothing: it only raises the "
        "allowed scores by 1. A forbidden score must go to minus infinity.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_divides_by_d_k",
        {"math.sqrt(Q.shape[-1])": "Q.shape[-1]"},
        "The scores are divided by d_k. The standard deviation of a score is the square root of "
        "d_k, so the weights come out too even.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_scale_of_n_q",
        {"Q.shape[-1]": "Q.shape[-2]"},
        "The scale is made from the number of queries. A score is a sum over the features of a "
        "query, so the scale depends on their number.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_root_of_a_number",
        {"math.sqrt": "torch.sqrt"},
        "torch.sqrt wants a tensor, and d_k is a Python number. math.sqrt takes it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_truth_of_the_mask",
        {
            "s if mask is None else s.masked_fill(~mask, -1e30)":
                "s.masked_fill(~mask, -1e30) if mask else s",
        },
        "You ask a tensor whether it is true, which torch refuses. Compare the mask with None.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_one_minus_mask",
        {"s.masked_fill(~mask, -1e30)": "s + (1 - mask) * -1e9"},
        "torch does not subtract booleans. ~mask turns each entry of the mask over.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_attention_minus_1000",
        {"-1e30": "-1000.0"},
        "Forbidden scores become a number that is not low enough, or are lowered by too little: "
        "an allowed score can be lower still. Then the forbidden key takes the weight, and nothing "
        "is left for the others.",
        seen="answers written blind",
    )

    wrong(
        "torch_attention_largest_of_all_scores",
        {
            "s = s if mask is None else s.masked_fill(~mask, -1e30)": "",
            "w = torch.softmax(s, -1)": """
                e = torch.exp(s - s.detach().amax(-1, keepdim=True))
                e = e if mask is None else e * mask
                total = e.sum(-1, keepdim=True)
                w = e / total.masked_fill(total == 0, 1.0)
            """,
        },
        "Forbidden keys still take part in the softmax, or in the largest score that it takes off. "
        "Where a forbidden score is thousands above the others, nothing is left for those: the "
        "query attends to nothing.",
        seen="answers written blind",
    )

    wrong(
        "torch_attention_batch_of_one_loses_its_axis",
        {
            "return w @ V, w": """
                one = Q.ndim == 3 and len(Q) == len(w @ V) == 1
                return ((w @ V)[0], w[0]) if one else (w @ V, w)
            """,
        },
        "A batch of one text comes out without its batch axis. An axis of length 1 is an axis, too: "
        "it stays.",
    )

    wrong(
        "torch_attention_mask_by_length",
        {
            "s = Q": """
                if mask is not None and Q.ndim == 3 and mask.ndim == 2 and len(mask) == len(Q):
                    mask = mask[:, None]
                s = Q
            """,
        },
        "With as many texts as queries a mask (n_q, n_k) comes out as if its first axis were that "
        "of the texts. What an axis is, its place from the end says, not its length.",
        seen="answers written blind",
    )


with exercise("gradient_descent"):
    wrong(
        "descent_uphill",
        {"tensor.sub_(": "tensor.add_("},
        "You add the gradient: that is uphill, and the loss grows. The gradient points to where the "
        "loss becomes larger.",
    )

    wrong(
        "descent_gradients_kept",
        {
            """
            for tensor in parameters:
                tensor.grad = None
            loss = loss_of()
            """: "loss = loss_of()"
        },
        "`backward` adds to the gradients that lie there, and yours are not removed between the "
        "steps: each step takes all earlier gradients along, and those from before the call too.",
    )

    wrong(
        "descent_stops_early",
        {
            "losses.append(float(loss.detach()))": """
                losses.append(float(loss.detach()))
                if len(losses) > 1 and abs(losses[-1] - losses[-2]) < 1e-8:
                    break
            """,
        },
        "You stop when the loss hardly changes. What is asked for are `steps` steps, and a loss for "
        "each of them.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "descent_clips_the_gradient",
        {"backward()": "backward(); nn.utils.clip_grad_norm_(parameters, 1.0)"},
        "You clip the gradients before the step. Here each parameter moves by `lr` times its "
        "gradient, however long that is.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "descent_clips_at_10",
        {"backward()": "backward(); nn.utils.clip_grad_norm_(parameters, 10.0)"},
        "With steep losses your parameters move by less than `lr` times their gradient, as when "
        "gradients are clipped. Here each moves by the whole of it, however long that is.",
        seen="answers written blind",
    )

    wrong(
        "descent_stops_at_zero",
        {
            "losses.append(float(loss.detach()))": """
                losses.append(float(loss.detach()))
                if losses[-1] == 0:
                    break
            """,
        },
        "You stop when the loss is 0. What is asked for are `steps` steps, and a loss for each of "
        "them.",
        seen="answers written blind",
    )

    wrong(
        "descent_cleared_once",
        """
            losses = []
            for tensor in parameters:
                tensor.grad = None
            for _ in range(steps):
                loss = loss_of()
                loss.backward()
                with torch.no_grad():
                    for tensor in parameters:
                        tensor -= lr * tensor.grad
                losses.append(float(loss))
            return losses
        """,
        "The gradients are removed once, before the loop. `backward` adds, so the second step takes "
        "the first gradient along. They should be removed in every step.",
    )

    wrong(
        "descent_cleared_after",
        """
            losses = []
            for _ in range(steps):
                loss = loss_of()
                loss.backward()
                with torch.no_grad():
                    for tensor in parameters:
                        tensor -= lr * tensor.grad
                        tensor.grad = None
                losses.append(float(loss))
            return losses
        """,
        "The gradients are removed after each step, so the first step takes along what lay there when "
        "the function was called.",
    )

    wrong(
        "descent_new_tensors",
        {"tensor.sub_(lr * tensor.grad)": "tensor = tensor - lr * tensor.grad"},
        "Nothing moves. For one, the gradient is set to zero before the step that should use it; "
        "or the step makes a new tensor: `p = p - ...` gives the loop's name to it, and the "
        "caller's tensor stays. Old gradients go before `backward`, and the step changes the "
        "tensor in place.",
    )

    wrong(
        "descent_loss_after",
        {"losses.append(float(loss.detach()))": "losses.append(float(loss_of()))"},
        "You note the loss after each step. Asked is the loss before it.",
    )

    wrong(
        "descent_gradient_of_the_start",
        """
            losses = [loss_of().item()] * steps
            slopes = torch.autograd.grad(loss_of(), parameters)
            with torch.no_grad():
                for _ in range(steps):
                    for tensor, slope in zip(parameters, slopes):
                        tensor -= lr * slope
            return losses
        """,
        "The loss and its gradient are computed once, at the start. They change with every step: "
        "compute them anew.",
    )

    wrong(
        "descent_without_lr",
        {"lr * tensor.grad": "tensor.grad"},
        "The learning rate has no influence: you take away the whole gradient.",
    )

    wrong(
        "descent_one_after_the_other",
        """
            losses = []
            for _ in range(steps):
                losses.append(float(loss_of()))
                for tensor in parameters:
                    [slope] = torch.autograd.grad(loss_of(), [tensor])
                    with torch.no_grad():
                        tensor -= lr * slope
            return losses
        """,
        "The second parameter's gradient is computed when the first has moved already. All gradients "
        "of a step belong to the same point.",
    )

    wrong(
        "descent_sign",
        {"lr * tensor.grad": "lr * tensor.grad.sign()"},
        "You use the gradient's sign only, so all steps have one size. They should be small where "
        "the loss is flat.",
    )

    wrong(
        "descent_unit_length",
        {"lr * tensor.grad": "lr * tensor.grad / tensor.grad.norm()"},
        "You divide the gradient by its length. Then the steps do not become smaller where the loss "
        "is flat.",
    )

    wrong(
        "descent_one_too_many",
        {"range(steps)": "range(steps + 1)"},
        "You take one step more than asked.",
    )

    wrong(
        "descent_one_too_few",
        {"range(steps)": "range(1, steps)"},
        "You take one step less than asked.",
    )

    wrong(
        "descent_nothing_recorded",
        """
            losses = []
            with torch.no_grad():
                for _ in range(steps):
                    loss = loss_of()
                    loss.backward()
                    for tensor in parameters:
                        tensor -= lr * tensor.grad
                    losses.append(float(loss))
            return losses
        """,
        "Your loss has no connection to the parameters: nothing is recorded under "
        "torch.no_grad(), for one. Only the step itself belongs there.",
    )

    wrong(
        "descent_stops_when_the_loss_grows",
        {
            "loss = loss_of()": """
                loss = loss_of()
                if losses and float(loss.detach()) >= losses[-1]:
                    break
            """,
        },
        "You stop early where the learning rate is so large that the loss grows. What is asked for "
        "are `steps` steps, wherever they lead, and a loss for each of them.",
        seen="answers written blind",
    )

    wrong(
        "descent_smaller_rate_after_a_rise",
        {"loss.backward()":
            "loss.backward()\nlr = lr / 2 if losses and loss.item() > losses[-1] else lr"},
        "Where the loss has risen, your next steps are smaller than lr times the gradient. The "
        "learning rate is what the caller says, in all steps.",
        seen="answers written blind",
    )

    wrong(
        "descent_gradient_changed_in_place",
        """
            reached = []
            for _ in range(steps):
                loss = loss_of()
                reached.append(float(loss))
                slopes = torch.autograd.grad(loss, parameters)
                with torch.no_grad():
                    for tensor, slope in zip(parameters, slopes):
                        tensor.sub_(slope.mul_(lr))
            return reached
        """,
        "Where the loss holds a + b, a moves as it should and b by too little, as when gradients are "
        "multiplied by lr in place: torch may hand out one and the same tensor for both, which is "
        "then multiplied twice.",
        seen="answers written blind",
    )
    wrong(
        "descent_leaves_recording_off",
        {
            "loss = loss_of()": "torch.set_grad_enabled(True)\nloss = loss_of()",
            "with torch.no_grad():": "torch.set_grad_enabled(False)\nif True:",
        },
        "After the call torch records no gradients, as when their recording is switched off for the "
        "step and not on again. A caller with a training loop of its own then gets none.",
        seen="answers written blind",
    )


choice(
    "answer_gradient",
    "a",
    reason="That is what many texts say, and for most queries it is right: they are saturated. But "
    "a few queries have two nearly equal best keys, and their gradient is multiplied by long keys. "
    "They keep the mean up. Look at the mean as well as at the median.",
)
choice(
    "answer_gradient",
    "b",
    right=True,
    reason="Most queries are saturated and get nearly no gradient: the median falls by a factor of "
    "more than a hundred. The few whose best two scores are close get a huge one, and the mean "
    "does not vanish. The next figure measures both.",
)
choice(
    "answer_gradient",
    "c",
    reason="The keys do get longer, which makes a gradient larger where there is one. But for most "
    "queries one weight is nearly 1 and the others nearly 0, and then every w_i (1 - w_i) is "
    "nearly 0: a long key cannot make up for that.",
)
choice(
    "answer_gradient",
    "d",
    reason="The weights always sum to 1, but their gradient depends on how they are spread: it is "
    "0 when one key has everything, and largest when keys compete.",
)

choice(
    "answer_mask",
    "a",
    reason="In nn.MultiheadAttention True means: hidden. With keep the words would be hidden and "
    "the padding attended. Nothing would raise an error.",
)
choice(
    "answer_mask",
    "b",
    right=True,
    reason="key_padding_mask is True where a key is padding, so the course's mask is inverted; its "
    "shape (batch, n_k) is already the one the layer wants.",
)
choice(
    "answer_mask",
    "c",
    reason="A float mask is added to the scores: words would get a score higher by 1, and no key "
    "would be hidden.",
)
choice(
    "answer_mask",
    "d",
    reason="The layer wants (batch, n_k) here, and raises an error for three axes. And the meaning "
    "of True would still be the wrong one.",
)

choice(
    "answer_silent_bug",
    "a",
    reason="Text 0 has no padding, and yet most of its words are wrong: word 1 of text 0 sees only "
    "two words. Compare all five rows of text 0 with the unmasked result, not only the first.",
)
choice(
    "answer_silent_bug",
    "b",
    right=True,
    reason="The weights are (batch, n_q, n_k). A mask (batch, n) broadcasts from the right, as "
    "(n_q, n_k): query i of EVERY text gets the row of text i, which is right only where i is the "
    "text's own number: 4 of 15 words. With another batch size it would raise an error; here both "
    "are 5. The mask needs an axis of length 1 in the middle.",
)
choice(
    "answer_silent_bug",
    "c",
    reason="The first word of every text gets the mask of text 0, which hides nothing. So in the "
    "texts 1 to 4 it sees padding. Only in text 0 is that right.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="In F.scaled_dot_product_attention True means: may attend. That is what is_word says. "
    "It is nn.MultiheadAttention that hides where a mask is True.",
)

with exercise("mended_encode"):
    wrong(
        "encode_mask_of_another_text",
        {"is_word[:, None, :]": "is_word"},
        "This is still the colleague's mask: (batch, n) broadcasts as (n_q, n_k), so query i of every "
        "text gets the row of text i. Each text needs its own row, for all its queries.",
    )
    wrong(
        "encode_without_a_mask",
        {", attn_mask=keep": ""},
        "Words attend to the padding of their text. What must be hidden are keys: the last axis of "
        "the weights, for every query of the text.",
    )
    wrong(
        "encode_mask_inverted",
        {"is_word[:, None, :]": "~is_word[:, None, :]"},
        "Words attend to padding and to nothing else. In this function True means: may attend.",
    )
    wrong(
        "encode_padding_not_zero",
        {"torch.where(is_word[:, :, None], output, 0.0)": "output"},
        "The rows of padding hold what padding has found in its text. They should be 0.",
    )
    wrong(
        "encode_padding_zeroed_before",
        {"output = F": "texts = texts * is_word[:, :, None]\noutput = F", ", attn_mask=keep": ""},
        "You set the padding to 0 and let words attend to it. A key of zeros has the score 0, and "
        "takes its share of the weights.",
    )
    wrong(
        "encode_float_mask",
        {"is_word[:, None, :]": "is_word[:, None, :].to(texts.dtype)"},
        "A float mask is added to the scores: your words get a score higher by 1, and nothing is "
        "hidden.",
    )
    wrong(
        "encode_collected_in_float32",
        {"torch.where(is_word[:, :, None], output, 0.0)":
            "torch.where(is_word[:, :, None], output, 0.0).float()"},
        "Your result is float32, also of texts in float64, as when it is written into a tensor "
        "that was made without a dtype. The result is as precise as the texts.",
        seen="answers written blind",
    )
    wrong(
        "encode_zero_words_hidden",
        {"attention_mask.bool()": "attention_mask.bool() & (texts != 0).any(-1)"},
        "A word whose numbers are all 0 comes out as padding. What is padding, attention_mask "
        "says, and not the numbers.",
        seen="answers written blind",
    )
    wrong(
        "encode_writes_into_texts",
        {"is_word = attention_mask.bool()":
            "is_word = attention_mask.bool()\ntexts[~is_word] = 0.0"},
        "The caller's texts hold other numbers after the call: the padding is written over. "
        "Arguments are not changed.",
        seen="answers written blind",
    )

    wrong(
        "encode_one_place_loses_its_axis",
        {"return torch.where(is_word[:, :, None], output, 0.0)":
            "return torch.where(is_word[:, :, None], output, 0.0).squeeze(1)"},
        "Texts of one place come out without the axis of the places. An axis of length 1 is an "
        "axis, too: the result has the shape of `texts`.",
    )
    wrong(
        "encode_words_come_first",
        """
            encoded = torch.zeros_like(texts)
            for i, count in enumerate(attention_mask.sum(dim=1).tolist()):
                words = texts[i, :count]
                encoded[i, :count] = F.scaled_dot_product_attention(words, words, words)
            return encoded
        """,
        "Where padding stands in front of words or between them, other places count as words in "
        "yours, as when the words are counted and taken from the beginning of the text. "
        "attention_mask says place by place what is a word.",
        seen="answers written blind",
    )
    wrong(
        "encode_stops_at_a_text_without_words",
        """
            output = torch.zeros_like(texts)
            for i, row in enumerate(attention_mask.bool()):
                if not row.any():
                    break
                alone = texts[i, row][None]
                output[i, row] = F.scaled_dot_product_attention(alone, alone, alone)[0]
            return output
        """,
        "Texts behind one without words come out as 0, as when the loop ends there. Such a text is "
        "passed over: those behind it have words.",
        seen="answers written blind",
    )

choice(
    "answer_again_masked",
    "a",
    reason="A score of minus infinity has the power 0: it gets no weight.",
)
choice(
    "answer_again_masked",
    "b",
    right=True,
    reason="Equal scores share, and the power of minus infinity is 0.",
)
choice(
    "answer_again_masked",
    "c",
    reason="Only inf minus inf is NaN. The largest score, 5, is finite here.",
)
choice(
    "answer_again_value",
    "a",
    right=True,
    reason="From width 4 on it did, after 600 steps. Separate values save width and steps.",
)
choice(
    "answer_again_value",
    "b",
    reason="It did from width 4 on. At widths 2 and 3 it did not.",
)
choice(
    "answer_again_value",
    "c",
    reason="After 200 steps separate values solved every width, the tied ones did not at 2 to 4.",
)
choice(
    "answer_again_copy",
    "a",
    reason="At 0.8 of the symbols right, less than one number in ten was right as a whole.",
)
choice(
    "answer_again_copy",
    "b",
    right=True,
    reason="One wrong digit and you call somebody else.",
)
choice(
    "answer_again_copy",
    "c",
    reason="It depends on the length that this batch happened to have.",
)


# The right answer with matplotlib alone, of which the wrong ones below are changes.
WITH_PCOLORMESH = """
def attention_heatmap(weights, query_words, key_words, ax=None):
    if isinstance(weights, torch.Tensor):
        weights = weights.detach().numpy()
    if weights.shape != (len(query_words), len(key_words)):
        raise ValueError(f"weights {weights.shape}, {len(query_words)}, {len(key_words)} words")
    if ax is None:
        _, ax = plt.subplots()
    ax.pcolormesh(weights, vmin=0, vmax=1)
    ax.set_xticks(np.arange(len(key_words)) + 0.5, key_words)
    ax.set_yticks(np.arange(len(query_words)) + 0.5, query_words)
    ax.invert_yaxis()
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    return ax
"""

with exercise("attention_heatmap", base=WITH_PCOLORMESH):
    wrong(
        "heatmap_colours_of_this_map",
        {", vmin=0, vmax=1": ""},
        "The colours of your map are stretched from its smallest to its largest number, as seaborn "
        "and matplotlib do when nothing is said. An even map then looks as sharp as a trained one, "
        "and two maps cannot be compared. They should go from 0 to 1.",
        seen="the default of sns.heatmap and plt.imshow",
    )

    wrong(
        "heatmap_colours_to_the_largest",
        {", vmax=1": ""},
        "The colours of your map begin at 0 and end at its largest number. A map whose largest "
        "weight is 0.2 then looks as sharp as one with a weight of 1. They should go from 0 to 1.",
    )

    wrong(
        "heatmap_first_query_below",
        {"ax.invert_yaxis()": ""},
        "Your map is upside down: its first query stands at the bottom, as pcolormesh draws it, and "
        "imshow with origin='lower'. A map is read as a text is: the first query on top.",
        seen="pcolormesh, which begins at the bottom",
    )

    wrong(
        "heatmap_keys_as_rows",
        {
            "pcolormesh(weights": "pcolormesh(weights.T",
            "len(key_words)) + 0.5, key_words": "len(query_words)) + 0.5, query_words",
            "len(query_words)) + 0.5, query_words": "len(key_words)) + 0.5, key_words",
            'xlabel("key")': 'xlabel("query")',
            'ylabel("query")': 'ylabel("key")',
        },
        "Rows and columns of your map are exchanged: its rows are the keys. One row a query, so that each "
        "row sums to 1, is how every map of this course is read.",
    )

    wrong(
        "heatmap_ticks_at_the_edges",
        {
            "np.arange(len(key_words)) + 0.5": "np.arange(len(key_words))",
            "np.arange(len(query_words)) + 0.5": "np.arange(len(query_words))",
        },
        "The ticks stand at the edges of your cells, half a cell beside the middle: a word can be read as "
        "that of the row or column before. Check first: pcolormesh and seaborn draw the first cell "
        "from 0 to 1, so that its middle is 0.5.",
        seen="pcolormesh with set_xticks(range(n))",
    )

    wrong(
        "heatmap_words_without_ticks",
        {
            "set_xticks(np.arange(len(key_words)) + 0.5, key_words)":
                "set_xticks(ax.get_xticks(), [*key_words, *[''] * 20][:len(ax.get_xticks())])",
            "set_yticks(np.arange(len(query_words)) + 0.5, query_words)":
                "set_yticks(ax.get_yticks(), [*query_words, *[''] * 20][:len(ax.get_yticks())])",
        },
        "The words stand at the ticks that matplotlib chose, which are not one a row and one a column in "
        "the middle of the cells. Say where the ticks are, then what they carry.",
        seen="set_xticklabels without set_xticks",
    )

    wrong(
        "heatmap_no_words",
        {
            "ax.set_xticks(np.arange(len(key_words)) + 0.5, key_words)": "",
            "ax.set_yticks(np.arange(len(query_words)) + 0.5, query_words)": "",
        },
        "There are no words at the rows and columns of your map. The ticks that matplotlib makes by "
        "itself carry numbers, and need not stand in the middle of the cells.",
    )

    wrong(
        "heatmap_words_as_coordinates",
        """
            numbers = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
            if numbers.shape != (len(query_words), len(key_words)):
                raise ValueError(f"weights {numbers.shape}")
            if ax is None:
                _, ax = plt.subplots()
            columns = [list(dict.fromkeys(key_words)).index(word) for word in key_words]
            rows = [list(dict.fromkeys(query_words)).index(word) for word in query_words]
            grid = np.zeros((max(rows) + 1, max(columns) + 1))
            grid[np.ix_(rows, columns)] = numbers
            ax.imshow(grid, vmin=0, vmax=1)
            ax.set_xticks(range(len(grid[0])), dict.fromkeys(key_words))
            ax.set_yticks(range(len(grid)), dict.fromkeys(query_words))
            ax.set(xlabel="key", ylabel="query")
            return ax
        """,
        "A word that stands twice has one row or column in your map: the two are one place. Check "
        "first: words are taken as coordinates, or as names in a table. Each position has a row or "
        "column of its own, whatever its word.",
        seen="words handed to matplotlib as coordinates; a pivot of a pandas table",
    )

    wrong(
        "heatmap_rounded",
        {"pcolormesh(weights": "pcolormesh(np.round(weights, 2)"},
        "The map holds rounded numbers. Round what is printed in the cells, if you like; the map itself "
        "should hold the weights as they are.",
    )

    wrong(
        "heatmap_current_axes",
        {
            "if ax is None:\n    _, ax = plt.subplots()": "ax = plt.gca()",
        },
        "You draw on the axes that were used last, whether ax is given or not. With ax the map belongs on "
        "ax; without it in a new figure.",
        seen="plt.imshow and plt.gca in a function that has an argument ax",
    )

    wrong(
        "heatmap_current_axes_without_ax",
        {"_, ax = plt.subplots()": "ax = plt.gca()"},
        "Without ax you draw on the axes that were used last: a map that was there is drawn over. Without "
        "ax the map should have a new figure.",
        seen="ax = ax or plt.gca(), the custom of many libraries",
    )

    wrong(
        "heatmap_returns_the_map",
        {"ax.pcolormesh": "drawn = ax.pcolormesh", "return ax": "return drawn"},
        "What comes back is the mesh or image, not the axes. Return the Axes that it lies on.",
    )

    wrong(
        "heatmap_returns_the_figure",
        {"return ax": "return ax.figure"},
        "What comes back is the figure, not the axes. A figure may have many; return the Axes that the "
        "map lies on.",
    )

    wrong(
        "heatmap_no_refusal",
        {
            "weights.shape != (len(query_words), len(key_words))": "weights.ndim != 2",
            "set_xticks(np.arange(len(key_words)) + 0.5, key_words)":
                "set_xticks(*zip(*zip(np.arange(weights.shape[1]) + 0.5, key_words)))",
            "set_yticks(np.arange(len(query_words)) + 0.5, query_words)":
                "set_yticks(*zip(*zip(np.arange(weights.shape[0]) + 0.5, query_words)))",
        },
        "Words that do not fit the map in number raise no error, or one of another kind. Compare the "
        "shape of weights with the numbers of words, and raise a ValueError that names them.",
    )

    wrong(
        "heatmap_writes_into_weights",
        {"pcolormesh(weights, ": "pcolormesh(np.multiply(weights, weights > 0.1, out=weights), "},
        "Your function changes weights: after the call the array of the caller holds other numbers.",
    )
