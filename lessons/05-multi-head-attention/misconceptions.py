"""Wrong implementations of lesson 5, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

# The right answer in few words, of which the wrong ones below are changes.
SHORT_SPLIT_HEADS = """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{num_heads}")
    *lead, n, d_model = x.shape
    return x.reshape(*lead, n, num_heads, d_model // num_heads).swapaxes(-2, -3)
"""


with exercise("split_heads", base=SHORT_SPLIT_HEADS):
    wrong(
        "split_reshape_only",
        {
            "(*lead, n, num_heads, d_model // num_heads).swapaxes(-2, -3)":
                "(*lead, num_heads, n, d_model // num_heads)",
        },
        "Your heads are those of a reshape alone. It gives the right shape and mixes positions: "
        "the first head gets several pieces of the first position. A reshape never changes the "
        "order of the numbers, so the axes must be exchanged in a second step.",
        seen="public issues: reshape where a transpose is needed",
    )

    wrong(
        "split_heads_after_positions",
        {".swapaxes(-2, -3)": ""},
        "Your result has the axes (position, head, feature). The head axis belongs before the "
        "position axis, so that the last two axes are (position, feature) and attention runs over "
        "positions.",
    )

    wrong(
        "split_every_other_feature",
        {
            "(*lead, n, num_heads, d_model // num_heads).swapaxes(-2, -3)":
                "(*lead, n, d_model // num_heads, num_heads).swapaxes(-1, -2).swapaxes(-3, -2)",
        },
        "Your heads take every num_heads-th feature. Head h should hold neighbours, features h * "
        "d_head to (h + 1) * d_head - 1. A model trained with the other order works, but the "
        "weights of torch's layer do not fit it.",
    )

    wrong(
        "split_one_batch_axis",
        {
            "*lead, n, d_model": "lead, n, d_model",
            "*lead, n, num_heads": "lead, n, num_heads",
            "-2": "1",
            ", -3": ", 2",
        },
        "Your code works with one batch axis and fails without one. There may be none, one, two or "
        "more: count axes from the end.",
    )

    wrong(
        "split_batch_invented",
        {
            "*lead, n, d_model": "x = x[None] if x.ndim == 2 else x; *lead, n, d_model",
            "-2, -3": "-3, -2",
        },
        "Without a batch axis your result has one too many. An input (n, d_model) gives "
        "(num_heads, n, d_head).",
    )

    wrong(
        "split_batches_flattened",
        """
            if x.shape[-1] % num_heads:
                raise ValueError(f"{num_heads}")
            n, d_model = x.shape[-2:]
            heads = x.reshape(-1, n, num_heads, d_model // num_heads).swapaxes(-3, -2)
            return heads[0] if x.ndim == 2 else heads
        """,
        "Your result has two batch axes merged into one. Two batch axes should stay two.",
    )

    wrong(
        "split_heads_first",
        {
            "return x.reshape(*lead, n, num_heads, d_model // num_heads).swapaxes(-2, -3)": """
                heads = x.reshape(*lead, n, num_heads, d_model // num_heads)
                return (
                    heads.swapaxes(-3, -2)
                    if not lead
                    else heads.swapaxes(0, -2).swapaxes(1, -2)
                    if len(lead) == 1
                    else heads.swapaxes(0, -2)
                )
            """,
        },
        "Your head axis stands at the very front, before the batch. It belongs directly before "
        "the position axis. Without a batch the two are the same.",
    )

    wrong(
        "split_positions_last",
        {
            "x.reshape(*lead, n, num_heads, d_model // num_heads).swapaxes(-2, -3)":
                "x.swapaxes(-1, -2).reshape(*lead, num_heads, d_model // num_heads, n)",
        },
        "The last two axes of your result are (feature, position). They should be (position, "
        "feature), as everywhere in the course.",
    )

    wrong(
        "split_heads_and_width_exchanged",
        {
            "n, num_heads": "n, d_model // num_heads",
            "d_model // num_heads": "num_heads",
            "-2": "-3",
            ", -3": ", -2",
        },
        "Your result has d_model / num_heads heads, each num_heads wide. It is the other way "
        "round: num_heads is the number of heads, and the width is d_model / num_heads.",
    )

    wrong(
        "split_no_check_for_torch",
        {"x.shape[-1] % num_heads": "False", "-2, -3": "-3, -2"},
        "With a torch tensor that does not divide, torch's RuntimeError is raised. (NumPy happens "
        "to raise a ValueError.) Check it yourself, before you cut, and say which two numbers do "
        "not fit.",
    )

    wrong(
        "split_features_dropped",
        """
            *lead, n, d_model = x.shape
            d_head = d_model // num_heads
            x = x[..., : num_heads * d_head]
            return x.reshape(*lead, n, num_heads, d_head).swapaxes(-3, -2)
        """,
        "When d_model is not a multiple of num_heads your code raises nothing. The last features, "
        "for one, are then thrown away without a word. It should raise a ValueError.",
    )

    wrong(
        "split_torch_only",
        {
            "x.reshape(*lead, n, num_heads, d_model // num_heads).swapaxes(-2, -3)":
                "x.view(*lead, n, num_heads, d_model // num_heads).transpose(-3, -2)",
        },
        "Your code uses a method as torch tensors have it. NumPy arrays do not have it, or mean "
        "something else by its name. It should serve NumPy arrays as "
        "well.",
        edge=True,
    )

    wrong(
        "split_numpy_only",
        {"*lead, n, d_model": "x = np.asarray(x); *lead, n, d_model", "-2, -3": "-3, -2"},
        "Your code turns torch tensors into NumPy arrays: the result has the wrong kind and its "
        "gradient is lost. Keep the kind of x.",
        edge=True,
    )

    wrong(
        "split_detached",
        {
            "= x.shape": "= x.shape; x = x.detach() if isinstance(x, torch.Tensor) else x",
            "-2, -3": "-3, -2",
        },
        "The numbers are right, but no gradient comes through: your result is cut off from x "
        "(detached, for one). Nothing before the heads could learn.",
    )

    wrong(
        "split_integers_to_floats",
        {"return x": "return (x * 1.0)", "-2": "-3", ", -3": ", -2"},
        "Integers come back as floating numbers. Cutting and turning changes no number, so the "
        "dtype should stay.",
    )

    wrong(
        "split_shape_in_place",
        {
            "*lead, n, d_model = x.shape": """
                *lead, n, d_model = x.shape
                if isinstance(x, np.ndarray) and x.flags.c_contiguous:
                    x.shape = (*lead, n, num_heads, d_model // num_heads)
            """,
            "-2, -3": "-3, -2",
        },
        "Your code gives x itself another shape. The caller's array must stay as it is: work on a "
        "new array or view.",
    )

    wrong(
        "split_transpose_1_2",
        {".swapaxes(-2, -3)": ".transpose(1, 2)"},
        "`transpose(1, 2)` is torch's way to exchange two axes. NumPy's transpose wants a place "
        "for every axis. And axes 1 and 2, counted from the front, are right for one batch axis "
        "only: count from the end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "split_swaps_0_and_1",
        {"-2, -3": "0, 1"},
        "You exchange axes 0 and 1, counted from the front. That is right only without a batch "
        "axis. Count from the end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "split_order_in_memory",
        """
            if x.shape[-1] % num_heads:
                raise ValueError(f"d_model = {x.shape[-1]}, num_heads = {num_heads}")
            shape = (*x.shape[:-1], num_heads, x.shape[-1] // num_heads)
            if isinstance(x, np.ndarray):
                return np.reshape(x, shape, order="A").swapaxes(-2, -3)
            return x.reshape(shape).swapaxes(-2, -3)
        """,
        "A NumPy array that lies in memory column by column, as the transpose of another does, "
        "comes out as if its numbers were read in the order in which they lie there. They have to "
        "be taken row by row, however they lie.",
        seen="answers written blind",
    )

    wrong(
        "split_numpy_through_torch",
        """
            if x.shape[-1] % num_heads:
                raise ValueError(f"d_model = {x.shape[-1]}, num_heads = {num_heads}")
            if isinstance(x, np.ndarray):
                return split_heads(torch.from_numpy(x), num_heads).numpy()
            return x.unflatten(-1, (num_heads, x.shape[-1] // num_heads)).swapaxes(-2, -3)
        """,
        "A NumPy array whose axis is turned around by ::-1 makes your function raise an error, as "
        "torch.from_numpy does, for one, which takes no negative strides. It is an array as any "
        "other.",
        seen="answers written blind",
    )


with exercise("combine_heads"):
    wrong(
        "combine_reshape_only",
        {"x.swapaxes(-3, -2)": "x"},
        "Your result is that of a reshape without exchanging the axes first. It has the right "
        "shape and mixes positions: the first row gets several positions of head 0. Every row "
        "should hold what all heads found for one position.",
        seen="public issues: reshape where a transpose is needed",
    )

    wrong(
        "combine_interleaved",
        {"(-3, -2)": "(-3, -2).swapaxes(-1, -2)"},
        "In your result the features of the heads alternate: first the first feature of every "
        "head, then the second. Head 0's features come first, all together.",
    )

    wrong(
        "combine_mean",
        {".reshape(*lead, n, num_heads * d_head)": ".sum(-2) / num_heads"},
        "You average the heads. Their features stand side by side: d_model features come out, and "
        "nothing is lost.",
    )

    wrong(
        "combine_sum",
        {".reshape(*lead, n, num_heads * d_head)": ".sum(-2)"},
        "You add the heads. Their features stand side by side: d_model features come out, and "
        "nothing is lost.",
    )

    wrong(
        "combine_along_positions",
        {
            "x.swapaxes(-3, -2)": "x",
            "*lead, n,": "*lead, num_heads * n,",
            "num_heads * d_head": "d_head",
        },
        "You join the heads along the positions, which gives num_heads * n rows. They are joined "
        "along the features.",
    )

    wrong(
        "combine_head_axis_left",
        {".reshape(*lead, n, num_heads * d_head)": ""},
        "Where this fails the head axis is still there: after exchanging the axes the last two, num_heads and "
        "d_head, become one.",
    )

    wrong(
        "combine_axes_from_the_front",
        {"-3, -2": "1, 2"},
        "You exchange axes 1 and 2, counted from the front. That is right for exactly one batch "
        "axis. Count from the end.",
    )

    wrong(
        "combine_positions_with_features",
        {
            "return x.swapaxes(-3, -2).reshape(*lead, n, num_heads * d_head)": """
                return (x.swapaxes(-1, -2).reshape(*lead, num_heads * d_head, n).swapaxes(-1, -2)[..., ::1, :]
                if n == 1
                else x.swapaxes(-1, -2).reshape(*lead, n, num_heads * d_head))
            """,
        },
        "You exchange positions and features. It is heads and positions that must change places.",
    )

    wrong(
        "combine_batch_invented",
        {"*lead, n,": "*lead or [1], n,"},
        "Without a batch axis your result has one too many. (num_heads, n, d_head) gives (n, "
        "d_model).",
    )

    wrong(
        "combine_first_axis_and_the_rest",
        {
            "return x.swapaxes(-3, -2).reshape(*lead, n, num_heads * d_head)": """
                merged = x.swapaxes(-3, -2)
                if not lead:
                    return merged.reshape(n, num_heads * d_head)
                return merged.reshape(lead[0], -1, num_heads * d_head)
            """,
        },
        "You keep the first leading axis and put the others into the positions. All leading axes stay "
        "as they are; only the heads and their features are merged.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "combine_batches_flattened",
        {
            "return x.swapaxes(-3, -2).reshape(*lead, n, num_heads * d_head)": """
                merged = x.swapaxes(-3, -2).reshape(-1, n, num_heads * d_head)
                return merged if lead else merged[0]
            """,
        },
        "Your result has two batch axes merged into one. Two batch axes should stay two.",
    )

    wrong(
        "combine_squeezed",
        {"(*lead, n, num_heads * d_head)": "(*lead, n, num_heads * d_head).squeeze()"},
        "Your code drops axes of length 1. A batch of one text, or a text of one position, keeps "
        "its axis.",
    )

    wrong(
        "combine_numpy_only",
        {"return x": "return np.asarray(x)"},
        "Your code turns torch tensors into NumPy arrays: the result has the wrong kind and its "
        "gradient is lost.",
        edge=True,
    )

    wrong(
        "combine_torch_only",
        {"x.swapaxes(-3, -2).reshape": "x.transpose(-3, -2).contiguous().view"},
        "Your code uses a method as torch tensors have it. NumPy arrays do not have it, or mean "
        "something else by its name. It should serve NumPy arrays as "
        "well.",
        edge=True,
    )

    wrong(
        "combine_view",
        {
            "*lead, num_heads, n, d_head = x.shape": """
                *lead, num_heads, n, d_head = x.shape
                swapped = x.swapaxes(-3, -2)
                if isinstance(x, torch.Tensor):
                    return swapped.view(*lead, n, num_heads * d_head)
            """,
            "x.swapaxes(-3, -2)": "swapped",
        },
        "After the axes were exchanged, the numbers no longer lie in order, and torch's view "
        "refuses. Make a copy in order, or use what copies when it must.",
        seen="torch forum: view size is not compatible",
    )

    wrong(
        "combine_detached",
        {".shape": ".shape; x = x.detach() if isinstance(x, torch.Tensor) else x"},
        "The numbers are right, but no gradient comes through: your result is cut off from x "
        "(detached, for one). Nothing before this step could learn.",
    )

    wrong(
        "combine_integers_to_floats",
        {"return x": "return (x * 1.0)"},
        "Integers come back as floating numbers. Moving numbers changes none of them, so the "
        "dtype should stay.",
    )

    wrong(
        "combine_writes_into_x",
        {
            "return x.swapaxes(-3, -2).reshape(*lead, n, num_heads * d_head)": """
                merged = x.swapaxes(-3, -2).reshape(*lead, n, num_heads * d_head)
                x[...] = merged.reshape(x.shape)
                return x.reshape(merged.shape)
            """,
        },
        "Your code writes the result into x. The argument must stay as it is.",
    )

    wrong(
        "combine_three_axes_refused",
        {
            "*lead, num_heads, n, d_head = x.shape": """
                *lead, num_heads, n, d_head = x.shape
                if x.ndim != 4:
                    raise ValueError("four axes")
            """,
        },
        "Your code raises an error for three axes, (num_heads, n, d_head). There may be no batch "
        "axis, one, two or more.",
    )

    wrong(
        "combine_numpy_through_torch",
        """
            if isinstance(x, np.ndarray):
                return combine_heads(torch.from_numpy(x)).numpy()
            return x.swapaxes(-2, -3).flatten(-2)
        """,
        "A NumPy array whose axis is turned around by ::-1 makes your function raise an error, as "
        "torch.from_numpy does, for one, which takes no negative strides. It is an array as any "
        "other.",
        seen="answers written blind",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_MULTI_HEAD_ATTENTION = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model}, {num_heads}")
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        if mask is not None and 2 <= mask.ndim <= query.ndim:
            mask = mask.unsqueeze(-3)
        Q, K, V = self.W_q(query), self.W_k(key), self.W_v(value)
        Q, K, V = (split_heads(x, self.num_heads) for x in (Q, K, V))
        heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
        return self.W_o(combine_heads(heads)), weights
"""


with exercise("MultiHeadAttention", base=SHORT_MULTI_HEAD_ATTENTION):
    wrong(
        "mha_scale_of_d_model",
        {"Q, K, V, mask": "Q / math.sqrt(self.num_heads), K, V, mask"},
        "The scores are divided by the square root of d_model. A score of one head is a sum over "
        "the features of that head only, so the scale is that of d_model / num_heads.",
        seen="public issues: hidden size in place of head size",
    )

    wrong(
        "mha_no_scale",
        {"Q, K, V, mask": "Q * math.sqrt(Q.shape[-1]), K, V, mask"},
        "Your weights are those of scores that are not scaled.",
    )

    wrong(
        "mha_merged_by_reshape",
        {
            "return self.W_o(combine_heads(heads)), weights": """
                output = heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)
                return self.W_o(output), weights
            """,
        },
        "Your heads come out merged as by a reshape alone, which mixes positions: the first row "
        "gets only head 0. Such a model trains, and even solves tasks in which every position is "
        "known in advance.",
        seen="public issues: reshape where a transpose is needed",
    )

    wrong(
        "mha_split_by_reshape",
        {
            "split_heads(x, self.num_heads)":
                "x.reshape(*x.shape[:-2], self.num_heads, x.shape[-2], -1)",
            "return self.W_o(combine_heads(heads)), weights": """
                output = heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)
                return self.W_o(output), weights
            """,
        },
        "Your heads are those of a split by a reshape alone, and of a merge in the same way. Then "
        "a head compares pieces of neighbouring positions. Splitting and merging undo each other, "
        "so a round trip looks fine.",
        seen="public issues: reshape where a transpose is needed",
    )

    wrong(
        "mha_attends_over_heads",
        {
            """
                if mask is not None and 2 <= mask.ndim <= query.ndim:
                    mask = mask.unsqueeze(-3)
            """: "",
            "(x, self.num_heads)": "(x, self.num_heads).swapaxes(-3, -2)",
            "V, mask": "V",
            "combine_heads(heads)": "heads.flatten(-2)",
        },
        "Your layer fails when queries and keys differ in number. That is so, for one, when the "
        "axes are (position, head, feature): then the heads of one position attend to each other. "
        "The position axis must be the last but one.",
        seen="folklore: missing transpose(1, 2)",
    )

    wrong(
        "mha_every_other_feature",
        {
            "split_heads(x, self.num_heads)":
                "x.unflatten(-1, (-1, self.num_heads)).movedim(-1, -3)",
            "combine_heads(heads)": "heads.movedim(-3, -1).flatten(-2)",
        },
        "Your head h works on every num_heads-th feature. It should work on neighbours, h * "
        "d_head to (h + 1) * d_head - 1. Such a layer can be trained, but the weights of torch's "
        "layer do not fit it.",
    )

    wrong(
        "mha_features_interleaved_at_the_end",
        {"combine_heads(heads)": "heads.movedim(-3, -1).flatten(-2)"},
        "The heads work on the right features, but at the end their features alternate. Side by "
        "side means: all of head 0 first.",
    )

    wrong(
        "mha_one_wide_head",
        """
            class MultiHeadAttention(nn.Module):
                def __init__(self, d_model, num_heads):
                    super().__init__()
                    if d_model % num_heads:
                        raise ValueError(f"{d_model}, {num_heads}")
                    self.num_heads = num_heads
                    self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
                def forward(self, query, key=None, value=None, mask=None):
                    key = query if key is None else key
                    value = key if value is None else value
                    if mask is not None and 2 <= mask.ndim <= query.ndim:
                        mask = mask.unsqueeze(-3)
                    Q, K, V = (x.unsqueeze(-3) for x in (self.W_q(query), self.W_k(key), self.W_v(value)))
                    heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
                    return self.W_o(heads.squeeze(-3)), weights.expand(
                        *weights.shape[:-3], self.num_heads, -1, -1
                    )
        """,
        "Your heads all have the same weights: those of one attention over the whole width. Every "
        "head should have weights of its own, from its own features.",
    )

    wrong(
        "mha_no_output_projection",
        {"self.W_o(combine_heads(heads))": "combine_heads(heads)"},
        "Your output is that without W_o. The results of the heads then stand side by side and are "
        "never mixed.",
    )

    wrong(
        "mha_averaged_weights",
        {"(combine_heads(heads)), weights": "(combine_heads(heads)), weights.mean(-3)"},
        "You average the weights over the heads, as torch's layer does unless it is told "
        "otherwise. Here every head's weights are returned: the average hides what the heads do.",
        seen="torch: average_attn_weights=True is the default",
    )

    wrong(
        "mha_weights_first",
        {"self.W_o(combine_heads(heads)), weights": "weights, self.W_o(combine_heads(heads))"},
        "You return (weights, output). The order is (output, weights).",
    )

    wrong(
        "mha_output_only",
        {"(combine_heads(heads)), weights": "(combine_heads(heads))"},
        "You return the output alone. Attention layers of this course return (output, weights).",
    )

    wrong(
        "mha_scores_for_weights",
        {
            "(combine_heads(heads)), weights":
                "(combine_heads(heads)), Q @ K.mT / math.sqrt(Q.shape[-1])",
        },
        "Your second result is the scores, before the softmax. It should be the weights.",
    )

    wrong(
        "mha_residual",
        {"(combine_heads(heads))": "(combine_heads(heads)) + query"},
        "You add the query to the output. That connection belongs to the transformer block of "
        "lesson 8, not into this layer.",
    )

    wrong(
        "mha_mask_inverted",
        {"V, mask": "V, None if mask is None else ~mask"},
        "Your mask hides where it is True, as in nn.MultiheadAttention. In this course True "
        "means: may attend.",
        seen="torch issues: opposite meaning of boolean masks",
    )

    wrong(
        "mha_mask_ignored",
        {"V, mask": "V"},
        "Your results are those without a mask: either the mask is not used, or what is made with "
        "it is dropped.",
    )

    wrong(
        "mha_mask_without_head_axis",
        {
            """
                if mask is not None and 2 <= mask.ndim <= query.ndim:
                    mask = mask.unsqueeze(-3)
            """: "",
        },
        "Your mask does not get the head axis where it is needed, before its last two axes. (A "
        "new axis at the very front changes nothing: broadcasting adds it anyway.) A mask for "
        "each text, (batch, n_q, n_k), then meets the head axis: an error, or, with as many texts "
        "as heads, each head silently gets the mask of one text.",
        seen="public issues: mask not unsqueezed",
        edge=True,
    )

    wrong(
        "mha_mask_always_new_axis",
        {"2 <= mask.ndim <= query.ndim": "mask.ndim > 1"},
        "Your mask gets a new axis also where it already has a head axis (it has more axes than "
        "query).",
        edge=True,
    )

    wrong(
        "mha_mask_axis_at_1",
        {"(-3)": "(1)"},
        "The new axis of the mask is inserted at place 1, counted from the front. It belongs "
        "before the last two axes: the mask may have no batch axis, or two.",
    )

    wrong(
        "mha_mask_of_four_axes",
        {"<= query.ndim": "!= 4"},
        "The number of a mask's axes alone tells your code whether it has one for the heads. That depends "
        "on the query: a mask has a head axis when it has more axes than query.",
    )

    wrong(
        "mha_mask_by_num_heads",
        {
            "if mask is not None and 2 <= mask.ndim <= query.ndim:": """
                if (
                    mask is not None
                    and mask.ndim > 1
                    and (mask.ndim < 3 or mask.shape[-3] not in (1, self.num_heads))
                ):
            """,
        },
        "With as many texts as heads your layer takes a mask for each text as a mask for each "
        "head, so the length of an axis decides. The number of axes should decide.",
    )

    wrong(
        "mha_mask_one_axis_refused",
        {"2 <= mask.ndim": "mask.ndim"},
        "A mask with one axis makes your layer fail: it has no place before its last two axes. It "
        "simply broadcasts, as it is.",
    )

    wrong(
        "mha_mask_one_axis_for_queries",
        {
            "value = key if value is None else value": """
                value = key if value is None else value
                if mask is not None and mask.ndim == 1:
                    mask = mask[: query.shape[-2], None] if len(mask) >= query.shape[-2] else mask
            """,
        },
        "A mask with one axis belongs to the keys, as everywhere in broadcasting. You read it as "
        "one truth value for each query.",
    )

    wrong(
        "mha_nan_rows",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = Q @ K.mT / math.sqrt(Q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask, -math.inf)
                weights = scores.softmax(-1)
                heads = weights @ V
            """,
        },
        "A query that may attend to nothing gives NaN, as a softmax does where all scores are "
        "minus infinity: 0 / 0. Its weights should be 0 and its output the bias of W_o.",
        seen="torch issues: NaN from fully masked rows",
    )

    wrong(
        "mha_minus_1e9",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = Q @ K.mT / math.sqrt(Q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask, -1e9)
                weights = scores.softmax(-1)
                heads = weights @ V
            """,
        },
        "Forbidden scores get -1e9. A query that may attend to nothing then attends to what is "
        "forbidden. Its weights should be 0.",
        seen="The Annotated Transformer",
    )

    wrong(
        "mha_forbidden_scores_next_to_0",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = Q @ K.mT / math.sqrt(Q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask, 1e-15)
                weights = scores.softmax(-1)
                heads = weights @ V
            """,
        },
        "Forbidden keys get weight, as where their scores become 0, or a number next to it. Such a "
        "score is a score like any other. It must go to minus infinity.",
        seen="answers as others published them",
    )

    wrong(
        "mha_heads_and_texts_joined_mask_in_another_order",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                lead, h = Q.shape[:-2], self.num_heads
                Q, K, V = (x.reshape(-1, *x.shape[-2:]) for x in (Q, K, V))
                if mask is not None:
                    mask = mask.expand(*lead, Q.shape[-2], K.shape[-2])[..., 0, :, :]
                    mask = mask.reshape(-1, *mask.shape[-2:]).repeat(h, 1, 1)
                heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
                heads, weights = (x.reshape(*lead, *x.shape[-2:]) for x in (heads, weights))
            """,
        },
        "Texts get each other's masks, as where texts and heads are joined to one axis and the mask is "
        "repeated in another order than theirs: text 0, text 1, text 0, text 1, and not text 0, text 0, "
        "text 1, text 1. A mask for each head is taken for that of head 0.",
        seen="a notebook of a course: heads folded into the batch",
    )

    wrong(
        "mha_nan_gradients",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = Q @ K.mT / math.sqrt(Q.shape[-1])
                if mask is not None:
                    scores = scores + torch.where(mask, 0.0, -math.inf)
                weights = scores.softmax(-1).nan_to_num(0.0)
                heads = weights @ V
            """,
        },
        "The result of an empty row is repaired, but its gradient is NaN. For one, an addition of "
        "minus infinity passes the NaN of the softmax on.",
        seen="torch issues: NaN gradients with nan_to_num after softmax",
    )

    wrong(
        "mha_softmax_over_heads",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = Q @ K.mT / math.sqrt(Q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask, -1e30)
                weights = scores.softmax(-3)
                heads = weights @ V
            """,
        },
        "Your softmax runs over the heads. Each head spreads its own weights over the keys.",
    )

    wrong(
        "mha_softmax_dim_1",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = Q @ K.mT / math.sqrt(Q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask, -1e30)
                weights = scores.softmax(1)
                heads = weights @ V
            """,
        },
        "Your softmax runs over axis 1. With a batch that is the head axis. Count from the end: "
        "the keys are the last axis.",
    )

    wrong(
        "mha_key_ignored",
        {
            "query if key is None else key": "value = query",
            "value = key if value is None else value": "",
        },
        "Keys and values come from query also where key and value are given. That is "
        "self-attention only.",
    )

    wrong(
        "mha_value_ignored",
        {"if value is None else value": ""},
        "Your values come from key, also when value is given.",
    )

    wrong(
        "mha_value_defaults_to_query",
        {"= key": "= query"},
        "When value is left out you take query. It defaults to key: keys and values describe the "
        "same text.",
    )

    wrong(
        "mha_key_and_value_exchanged",
        {"(key)": "(value)", "(value)": "(key)"},
        "Key and value are exchanged: the scores come from value, and the average is of key.",
    )

    wrong(
        "mha_query_and_key_exchanged",
        {"self.W_q(query)": "self.W_k(query)", "self.W_k(key)": "self.W_q(key)"},
        "W_q is applied to key and W_k to query. Each projection belongs to its own input.",
    )

    wrong(
        "mha_values_from_w_k",
        {"self.W_v(value)": "self.W_k(value)"},
        "Your values come from W_k, as if W_v were not there: keys and values are different "
        "projections.",
    )

    wrong(
        "mha_values_not_projected",
        {"self.W_v(value)": "value"},
        "Your values are not projected: the output is that without W_v.",
    )

    wrong(
        "mha_no_bias",
        {"d_model, d_model": "d_model, d_model, bias=False"},
        "Your projections have no bias. The exercise asks for nn.Linear(d_model, d_model), with "
        "one.",
        seen="folklore: lesson 4's layers have none",
    )

    wrong(
        "mha_keys_without_bias",
        {") for _ in range(4)": ", bias=name != 'k') for name in 'qkvo'"},
        "Your W_k has no bias. The softmax would not notice it, as it adds the same to all scores of a "
        "query; the card asks for it in all four projections, as torch's layer has it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "mha_narrow_projections",
        {"d_model, d_model": "d_model, d_model // num_heads"},
        "Your projections have the width of one head. Each is nn.Linear(d_model, d_model): all "
        "heads in one matrix.",
    )

    wrong(
        "mha_list_of_layers",
        """
            class MultiHeadAttention(nn.Module):
                def __init__(self, d_model, num_heads):
                    super().__init__()
                    if d_model % num_heads:
                        raise ValueError(f"{d_model}, {num_heads}")
                    self.num_heads = num_heads
                    width = d_model // num_heads
                    self.W_q, self.W_k, self.W_v = (
                        nn.ModuleList(nn.Linear(d_model, width) for _ in range(num_heads)) for _ in range(3)
                    )
                    self.W_o = nn.Linear(d_model, d_model)
                def forward(self, query, key=None, value=None, mask=None):
                    key = query if key is None else key
                    value = key if value is None else value
                    if mask is not None and 2 <= mask.ndim <= query.ndim:
                        mask = mask.unsqueeze(-3)
                    given = ((self.W_q, query), (self.W_k, key), (self.W_v, value))
                    Q, K, V = (torch.stack([layer(x) for layer in layers], -3) for layers, x in given)
                    heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
                    return self.W_o(combine_heads(heads)), weights
        """,
        "You keep a layer for each head. Then the parts W_q, W_k and W_v are lists, and weights "
        "of torch's layer cannot be copied in. One nn.Linear(d_model, d_model) holds all heads.",
    )

    wrong(
        "mha_one_shared_layer",
        {
            "self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))": """
                self.W_q = self.W_k = self.W_v = nn.Linear(d_model, d_model)
                self.W_o = nn.Linear(d_model, d_model)
            """,
        },
        "Queries, keys and values come from one and the same layer in your code. W_q, W_k and W_v "
        "should be three, each used for its own: otherwise a text's queries and keys are the same "
        "vectors, and its scores symmetric.",
    )

    wrong(
        "mha_no_check",
        {"d_model % num_heads": "False"},
        "The constructor accepts a d_model that is not a multiple of num_heads. It should raise a "
        "ValueError at once, and not leave the failure to forward.",
    )

    wrong(
        "mha_one_batch_axis",
        {"key =": "batch, n, d_model = query.shape; key ="},
        "Your layer works with one batch axis and fails without one. There may be none, one, two "
        "or more.",
        edge=True,
    )

    wrong(
        "mha_query_length_for_keys",
        {
            "Q, K, V = self": "lead, n = query.shape[:-2], query.shape[-2]; Q, K, V = self",
            "split_heads(x, self.num_heads)":
                "x.reshape(*lead, n, self.num_heads, -1).transpose(-3, -2)",
        },
        "Your keys and values are cut with the length of query. They have a length of their own.",
        seen="public issues: cross-attention with another length",
    )

    wrong(
        "mha_detached_weights",
        {"(combine_heads(heads)), weights": "(combine_heads(heads)), weights.detach()"},
        "No gradient flows through the second result, as if the weights were detached.",
    )

    wrong(
        "mha_no_grad",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                with torch.no_grad():
                    heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
            """,
        },
        "No gradient reaches query: the attention, or a part of it, is detached or runs without "
        "recording gradients. Then W_q, for one, never learns.",
    )

    wrong(
        "mha_float32_inside",
        {
            "Q, K, V, mask": "Q.float(), K.float(), V.float(), mask",
            "return": "heads, weights = heads.to(Q.dtype), weights.to(Q.dtype); return",
        },
        "Your results have the digits of float32: something is computed in it inside. Float64 "
        "should stay float64 on the whole way.",
    )

    wrong(
        "mha_dropout",
        {"return": "weights = F.dropout(weights, 0.1); heads = weights @ V; return"},
        "Your layer drops weights at random. The exercise has no dropout: the same input gives "
        "the same output.",
    )

    wrong(
        "mha_mask_changed",
        {
            "Q, K, V = self.W_q(query), self.W_k(key), self.W_v(value)": """
                if mask is not None:
                    mask = mask.logical_not_()
                Q, K, V = self.W_q(query), self.W_k(key), self.W_v(value)
            """,
            "V, mask": "V, None if mask is None else ~mask",
        },
        "Your layer turns the caller's mask around in place. Arguments must stay as they are.",
    )

    wrong(
        "mha_no_super",
        {
            "super().__init__()": "",
            "self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))": """
                self.W_q = nn.Linear(d_model, d_model)
                self.W_k = nn.Linear(d_model, d_model)
                self.W_v = nn.Linear(d_model, d_model)
                self.W_o = nn.Linear(d_model, d_model)
            """,
        },
        "Your constructor makes a part of the layer before it has called that of nn.Module: "
        "super().__init__() must come first. It makes the place in which a module keeps its parts.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "mha_mask_of_an_earlier_call",
        {
            "if mask is not None and 2":
            """
                if mask is not None:
                    self.kept = vars(self).get("kept", {})
                    mask = self.kept.setdefault(mask.shape, mask)
                if mask is not None and 2
            """,
        },
        "For a second mask of the same shape your layer gives what it gives for the first one, as when "
        "a mask is kept from an earlier call. Each call has its own mask.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "mha_one_query_loses_its_axis",
        {"self.W_o(combine_heads(heads))": "self.W_o(combine_heads(heads)).squeeze(-2)"},
        "With one query the output has lost the axis of the queries. It keeps the shape of `query`: an "
        "axis of length 1 is an axis, too.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "mha_weights_averaged_in_evaluation",
        {", weights\n": ", weights if self.training else weights.mean(-3)\n"},
        "In evaluation mode your weights have no axis of the heads. The weights of every head are asked "
        "for, in both modes.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "mha_mask_with_keys_only",
        {"key = query if key is None else key":
            "mask = None if key is None else mask\nkey = query if key is None else key"},
        "Called with `query` and `mask` alone, your layer gives what it gives without the mask. The "
        "mask counts, whatever `key` is.",
    )

    wrong(
        "mha_parameters_of_the_first_call",
        {
            "return self.W_o(combine_heads(heads)), weights": """
                if not hasattr(self, "first"):
                    self.first = self.W_o.weight.data.clone(), self.W_o.bias.data.clone()
                weight, bias = (x.to(query.dtype) for x in self.first)
                now = self.W_o.weight - self.W_o.weight.detach(), self.W_o.bias - self.W_o.bias.detach()
                return F.linear(combine_heads(heads), weight + now[0], bias + now[1]), weights
            """,
        },
        "When its parameters change after a call, your layer goes on with old ones, as when "
        "something made from them is kept. Each call takes them as they are then.",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_LOAD_BUILTIN_WEIGHTS = """
def load_builtin_weights(attention, builtin):
    d_model = attention.W_q.in_features
    num_heads = attention(torch.zeros(1, d_model, dtype=attention.W_q.weight.dtype))[1].shape[-3]
    if (builtin.embed_dim, builtin.num_heads) != (d_model, num_heads):
        raise ValueError("embed_dim or num_heads")
    if builtin.kdim != d_model or builtin.vdim != d_model:
        raise ValueError("kdim or vdim")
    weights = [*builtin.in_proj_weight.chunk(3), builtin.out_proj.weight]
    biases = [torch.zeros(d_model)] * 4
    if builtin.in_proj_bias is not None:
        biases = [*builtin.in_proj_bias.chunk(3), builtin.out_proj.bias]
    layers = attention.W_q, attention.W_k, attention.W_v, attention.W_o
    with torch.no_grad():
        for layer, weight, bias in zip(layers, weights, biases):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    return None
"""


with exercise("load_builtin_weights", base=SHORT_LOAD_BUILTIN_WEIGHTS):
    wrong(
        "load_transposed",
        {
            "*builtin.in_proj_weight.chunk(3)": "*(x.T for x in builtin.in_proj_weight.chunk(3))",
            "builtin.out_proj.weight": "builtin.out_proj.weight.T",
        },
        "Your weights are transposed. They are square, so nothing complains. Both layers use "
        "nn.Linear's convention, (out, in): copy them as they are.",
    )

    wrong(
        "load_out_proj_transposed",
        {"builtin.out_proj.weight": "builtin.out_proj.weight.T"},
        "The weight of W_o is transposed. It is square, so nothing complains.",
    )

    wrong(
        "load_keys_first",
        {".W_q,": ".W_k,", "attention.W_k": "attention.W_q"},
        "The thirds of in_proj_weight are in the order query, key, value. You take keys for "
        "queries.",
    )

    wrong(
        "load_no_biases",
        {"layer.bias.copy_(bias)": ""},
        "The biases are not copied. torch starts its biases at 0, but training changes them, and "
        "yours started at random numbers.",
    )

    wrong(
        "load_biases_always_zero",
        {"builtin.in_proj_bias is not None": "False"},
        "Your biases become 0 also where builtin has biases. Only for bias=False that is right.",
    )

    wrong(
        "load_out_bias_forgotten",
        {"layer.bias.copy_(bias)": "layer is attention.W_o or layer.bias.copy_(bias)"},
        "The bias of out_proj is not copied: the bias of W_o keeps its random start.",
    )

    wrong(
        "load_out_proj_forgotten",
        {", attention.W_o": ""},
        "out_proj is not copied: W_o keeps its random start.",
    )

    wrong(
        "load_bias_false_fails",
        {"builtin.in_proj_bias is not None": "True"},
        "With bias=False the builtin has no bias to copy, and your code fails. Yours should "
        "become 0.",
    )

    wrong(
        "load_shared_memory",
        {".copy_(weight)": ".data = weight.data"},
        "Weights of your layer, that of W_o for one, share memory with those of builtin: training "
        "one changes the other. Copy the numbers.",
    )

    wrong(
        "load_shared_out_proj",
        {"return None": "attention.W_o.weight = builtin.out_proj.weight"},
        "W_o's weight is the very parameter of builtin, or shares its memory: training one changes "
        "the other.",
    )

    wrong(
        "load_shared_biases",
        {".copy_(bias)": ".data = bias.data.to(layer.bias.dtype)"},
        "Your biases share memory with builtin's. Copy the numbers.",
    )

    wrong(
        "load_frozen",
        {"return None": "attention.requires_grad_(False)"},
        "Your parameters no longer require a gradient, so the layer cannot be trained any more.",
    )

    wrong(
        "load_wrong_direction",
        {
            "layer.weight": "weight",
            "(weight)": "(layer.weight)",
            "layer.bias": "bias",
            "(bias)": "(layer.bias)",
        },
        "You copy your weights into builtin. It goes the other way: builtin is read, attention is "
        "changed.",
    )

    wrong(
        "load_moves_the_weights",
        {"return None": "[parameter.data.zero_() for parameter in builtin.parameters()]"},
        "builtin's weights are set to 0 after they were read. builtin must not change.",
    )

    wrong(
        "load_returns_attention",
        {"return None": "return attention"},
        "Your function returns something (the layer, for one). The layer is changed in place, and "
        "nothing is returned.",
    )

    wrong(
        "load_no_num_heads_check",
        {
            "(builtin.embed_dim, builtin.num_heads) != (d_model, num_heads)":
                "builtin.embed_dim != d_model",
        },
        "Another number of heads is accepted. The matrices have the same shapes, so nothing "
        "complains, but the outputs differ.",
    )

    wrong(
        "load_errors_of_torch_translated",
        {
            "(builtin.embed_dim, builtin.num_heads) != (d_model, num_heads)":
                "builtin.num_heads != num_heads",
            '"embed_dim or num_heads"': '"num_heads"',
            "builtin.kdim != d_model or builtin.vdim != d_model": "builtin.in_proj_weight is None",
            """
                layer.weight.copy_(weight)
                layer.bias.copy_(bias)
            """: """
                try:
                    layer.weight.copy_(weight)
                    layer.bias.copy_(bias)
                except RuntimeError as error:
                    raise ValueError("embed_dim") from error
            """,
        },
        "An embed_dim of 1 is accepted. It is where torch's own errors are turned into a "
        "ValueError, for one: torch broadcasts this builtin, and it fills your whole matrices with "
        "a few numbers. Compare the sizes.",
    )

    wrong(
        "load_no_kdim_check",
        {"builtin.kdim != d_model or builtin.vdim != d_model": "False"},
        "A builtin with a kdim or vdim of its own has no in_proj_weight, and your code fails with "
        "another error. It should be a ValueError.",
    )

    wrong(
        "load_kdim_compared_with_vdim",
        {"builtin.kdim != d_model or builtin.vdim != d_model": "builtin.kdim != builtin.vdim"},
        "A kdim and a vdim that are equal to each other, and not to embed_dim, give no ValueError, "
        "as where the two are compared with each other. Both have to equal embed_dim.",
        seen="answers written blind",
    )

    wrong(
        "load_batch_second_transposes",
        {"(weight)": "(weight if builtin.batch_first else weight.T)"},
        "With batch_first=False you transpose the weights. That option changes the order of the "
        "inputs' axes, not the weights.",
    )

    wrong(
        "load_assert",
        {
            """
                if (builtin.embed_dim, builtin.num_heads) != (d_model, num_heads):
                    raise ValueError("embed_dim or num_heads")
                if builtin.kdim != d_model or builtin.vdim != d_model:
                    raise ValueError("kdim or vdim")
            """: """
                assert (builtin.embed_dim, builtin.num_heads) == (d_model, num_heads)
                assert builtin.kdim == d_model and builtin.vdim == d_model
            """,
        },
        "What does not fit ends in an AssertionError, as it comes from an assert. That is not a "
        "ValueError, and assert disappears when Python runs with -O.",
    )

    wrong(
        "load_float32",
        {"(weight)": "(weight.float())"},
        "The numbers lose digits, as on a way through float32. Copy them in their own precision.",
    )

    wrong(
        "load_in_proj_bias_forgotten",
        {"layer.bias.copy_(bias)": "layer is attention.W_o and layer.bias.copy_(bias)"},
        "in_proj_bias is not copied: the biases of W_q, W_k and W_v keep their random start.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "load_records_a_gradient",
        {"with torch.no_grad():": "with torch.enable_grad():"},
        "You write into a parameter while torch records gradients, and torch refuses. Copying is "
        "no computation to be learned from: do it where no gradient is recorded.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "load_assigns_tensors",
        {
            "with torch.no_grad():": "with torch.enable_grad():",
            "layer.weight.copy_(weight)": "layer.weight = weight",
            "layer.bias.copy_(bias)": "layer.bias = bias",
        },
        "You put a plain tensor in the place of a parameter, and torch refuses. Keep the "
        "parameter and write the numbers into it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "load_recording_left_off_without_biases",
        {
            "with torch.no_grad():": """
                torch.set_grad_enabled(False)
                if layers:
            """,
            "return None": "torch.set_grad_enabled(builtin.in_proj_bias is not None)",
        },
        "After loading from a builtin without biases torch records no gradients any more, "
        "anywhere, as where recording is switched off and an early return skips the line that "
        "switches it on. torch.no_grad() as a context switches it on again on every way out.",
        seen="answers written blind",
    )


with exercise("leave_one_head_out"):
    wrong(
        "leave_rows_of_the_weight",
        {"W_o.weight[:, mine] = 0.0": "W_o.weight[mine] = 0.0"},
        "You set rows of W_o's weight to zero. Rows belong to the features that come out; what goes "
        "in meets the columns, so the head is still there and a part of the output is gone.",
    )

    wrong(
        "leave_not_put_back",
        {
            """
                    W_o.weight.copy_(weight)
                    W_o.bias.copy_(bias)
            """: "pass"
        },
        "Nothing comes back (for one: what was kept is no copy): the second result is without two "
        "heads, and after the call the layer has no head left.",
    )

    wrong(
        "leave_put_back_at_the_end",
        """
            W_o = attention.W_o
            weight, bias = W_o.weight.detach().clone(), W_o.bias.detach().clone()
            width = weight.shape[1] // num_heads
            found = []
            try:
                for h in range(num_heads):
                    mine = slice(h * width, (h + 1) * width)
                    with torch.no_grad():
                        W_o.weight[:, mine] = 0.0
                        if means is not None:
                            W_o.bias += weight[:, mine] @ means[mine]
                    found.append(measure())
            finally:
                with torch.no_grad():
                    W_o.weight.copy_(weight)
                    W_o.bias.copy_(bias)
            return found
        """,
        "The layer is put back at the end only, so that the heads are removed one on top of the "
        "other. Each result should be without one head.",
    )

    wrong(
        "leave_bias_not_put_back",
        {"            W_o.bias.copy_(bias)": ""},
        "The weight of W_o comes back as it was and its bias does not: the means of all heads so "
        "far stay in it.",
    )

    wrong(
        "leave_copy_of_the_layer",
        {"W_o = attention.W_o": "import copy\nW_o = copy.deepcopy(attention).W_o"},
        "Each of your results is that of the whole layer: either you change a copy, or `measure` "
        "is called while no head is away. `measure` asks the layer itself, as it is at that "
        "moment.",
    )

    wrong(
        "leave_every_other_feature",
        {"slice(h * width, (h + 1) * width)": "slice(h, None, num_heads)"},
        "You remove features that lie num_heads apart. A head's features stand side by side: head 0 has the "
        "first d_model / num_heads of them.",
    )

    wrong(
        "leave_one_feature",
        {"slice(h * width, (h + 1) * width)": "slice(h, h + 1)"},
        "You remove one feature for each head. A head has d_model / num_heads of them.",
    )

    wrong(
        "leave_width_is_the_number",
        {"weight.shape[1] // num_heads": "num_heads"},
        "You remove as many features as there are heads. A head has d_model / num_heads features.",
    )

    wrong(
        "leave_only_this_head",
        {"W_o.weight[:, mine] = 0.0": "W_o.weight.zero_()\nW_o.weight[:, mine] = weight[:, mine]"},
        "You keep head h and remove all the others. It should be the other way round.",
    )

    wrong(
        "leave_from_the_last",
        {"for h in range(num_heads)": "for h in reversed(range(num_heads))"},
        "Your results stand in reversed order. Entry 0 belongs to head 0.",
    )

    wrong(
        "leave_without_the_bias",
        {"W_o.weight[:, mine] = 0.0": "W_o.weight[:, mine] = 0.0\nW_o.bias.zero_()"},
        "You remove the bias of W_o together with the head. The bias belongs to no head.",
    )

    wrong(
        "leave_values_without_their_bias",
        {
            "W_o = attention.W_o": "W_o, W_v = attention.W_o, attention.W_v\nvalues = W_v.weight.detach().clone()",
            "W_o.weight[:, mine] = 0.0": "W_v.weight[mine] = 0.0",
            "W_o.weight.copy_(weight)": "W_v.weight.copy_(values)",
        },
        "You set the head's value weights to zero. Their bias is left, so the head still says it, "
        "and with `means` both.",
    )

    wrong(
        "leave_queries_to_zero",
        {
            "W_o = attention.W_o": "W_o, W_q = attention.W_o, attention.W_q\nqueries = W_q.weight.detach().clone(), W_q.bias.detach().clone()",
            "W_o.weight[:, mine] = 0.0": "W_q.weight[mine], W_q.bias[mine] = 0.0, 0.0",
            "W_o.weight.copy_(weight)": "W_q.weight.copy_(queries[0])\nW_q.bias.copy_(queries[1])",
        },
        "Without its query or its key a head attends to all words alike. It still contributes the "
        "mean of the values, so it is not away.",
    )

    wrong(
        "leave_means_in_the_values",
        """
            W_v = attention.W_v
            weight, bias = W_v.weight.detach().clone(), W_v.bias.detach().clone()
            width = weight.shape[0] // num_heads
            found = []
            for h in range(num_heads):
                mine = slice(h * width, (h + 1) * width)
                try:
                    with torch.no_grad():
                        W_v.weight[mine] = 0.0
                        W_v.bias[mine] = 0.0 if means is None else means[mine]
                    found.append(measure())
                finally:
                    with torch.no_grad():
                        W_v.weight.copy_(weight)
                        W_v.bias.copy_(bias)
            return found
        """,
        "With `means`, a word that may attend to nothing gets 0 from the removed head, as where the "
        "mean takes the place of the values: it then arrives times the weights, and here these are 0. "
        "The head says its mean for every word.",
        seen="answers written blind",
    )

    wrong(
        "leave_means_of_a_zeroed_weight",
        {"W_o.bias += weight[:, mine]": "W_o.bias += W_o.weight[:, mine]"},
        "With `means` the head contributes 0, as it does without. It should then say its mean.",
    )

    wrong(
        "leave_means_on_top",
        {"W_o.weight[:, mine] = 0.0": "W_o.weight[:, mine] *= float(means is not None)"},
        "With `means` the head goes on speaking, and its mean is added to that. The mean takes the "
        "place of what it says.",
    )

    wrong(
        "leave_means_of_all_heads",
        {"weight[:, mine] @ means[mine]": "weight @ means"},
        "You add the means of all heads. The others still speak for themselves: only the removed "
        "head's part of `means` is needed.",
    )

    wrong(
        "leave_means_without_W_o",
        {"weight[:, mine] @ means[mine]": "means"},
        "You add `means` to the output as they are. They are what W_o *gets*: what it makes of the "
        "head's part belongs into the output.",
    )

    wrong(
        "leave_means_as_weights",
        {
            """
                W_o.weight[:, mine] = 0.0
                if means is not None:
                    W_o.bias += weight[:, mine] @ means[mine]
            """: "W_o.weight[:, mine] = 0.0 if means is None else means[mine]"
        },
        "You write the means into the weight of W_o. They are features, not weights: the head's "
        "features should be constant, and their weights as before.",
    )

    wrong(
        "leave_difference",
        {"found.append(measure())": "found.append(measure())", "found = []": "found, whole = [], measure()", "return found": "return [whole - one for one in found]"},
        "You return by how much the result changes. Asked is what `measure` returns without the head.",
    )

    wrong(
        "leave_last_missing",
        {"for h in range(num_heads)": "for h in range(num_heads - 1)"},
        "One result is missing. There is one for each head, from head 0 to the last.",
    )

    wrong(
        "leave_error_leaves_a_hole",
        """
            W_o = attention.W_o
            weight, bias = W_o.weight.detach().clone(), W_o.bias.detach().clone()
            width = weight.shape[1] // num_heads
            found = []
            for h in range(num_heads):
                mine = slice(h * width, (h + 1) * width)
                with torch.no_grad():
                    W_o.weight[:, mine] = 0.0
                    if means is not None:
                        W_o.bias += weight[:, mine] @ means[mine]
                found.append(measure())
                with torch.no_grad():
                    W_o.weight.copy_(weight)
                    W_o.bias.copy_(bias)
            return found
        """,
        "When `measure` raises an error the layer stays without its head. It should be put back then "
        "too.",
    )

    wrong(
        "leave_hook_left",
        """
            found, away = [], [0]

            def silence(part, given):
                heads = list(given[0].chunk(num_heads, dim=-1))
                says = torch.zeros_like(heads[away[0]])
                heads[away[0]] = says if means is None else says + means.chunk(num_heads)[away[0]]
                return torch.cat(heads, dim=-1)

            attention.W_o.register_forward_pre_hook(silence)
            for away[0] in range(num_heads):
                found.append(measure())
            return found
        """,
        "After the call W_o gives another output than its weight and bias make, as with a hook that was "
        "not removed. Afterwards the layer should work as before, also where measure raises an error.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "leave_in_evaluation_mode",
        {"found = []": "found = []; attention.eval()"},
        "The layer is in evaluation mode after the call. It was in training mode: leave it as it was.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "leave_in_training_mode",
        {"found = []": "found = []; attention.train()"},
        "A layer that comes in evaluation mode is in training mode after the call. Its mode, too, "
        "should be what it was.",
        seen="answers written blind",
    )

    wrong(
        "leave_pairs_taken_apart",
        {"found.append(measure())": """
            result = measure()
            found += result if isinstance(result, tuple) else [result]
        """},
        "Where measure() returns a pair, your list holds its two parts one after the other. One "
        "entry a head is asked for: what measure() returns, as it is.",
    )

    wrong(
        "leave_none_left_out",
        {"found.append(measure())": """
            result = measure()
            if result is not None:
                found.append(result)
        """},
        "Where measure() returns None, your list has no entry for that head. One entry a head is "
        "asked for: what measure() returns, as it is.",
    )


choice(
    "answer_cost",
    "a",
    reason="Every head has matrices of its own, but they are half as wide. Together they are the same "
    "d_model x d_model matrix, cut into more pieces.",
)
choice(
    "answer_cost",
    "b",
    reason="The parameters do stay. But every head has n x n weights, whatever its width, so twice as "
    "many heads have twice as many weights.",
)
choice(
    "answer_cost",
    "c",
    reason="The matrices are stored alike, but they are used differently: eight softmaxes in place of "
    "four. The outputs differ, and so does the memory for the weights.",
)
choice(
    "answer_cost",
    "d",
    right=True,
    reason="The matrices are d_model x d_model for any number of heads. But there are num_heads * n * "
    "n weights. (QK^T costs num_heads * n * n * (d_model / num_heads) multiply-adds: num_heads "
    "cancels.)",
)

choice(
    "answer_silent_bug",
    "a",
    reason="The scale is right: a score of a head is a sum over d_head features, and lesson 3's "
    "function divides by the square root of the width that it gets.",
)
choice(
    "answer_silent_bug",
    "b",
    right=True,
    reason="The head axis stands before the position axis. The reshape reads all positions of head 0 "
    "first, so the first rows of the output hold only head 0, of several positions. combine_heads "
    "exchanges the two axes first.",
)
choice(
    "answer_silent_bug",
    "c",
    reason="Projecting first and splitting afterwards is right: that is how one large matrix serves "
    "all heads. Your own layer does it in the same order.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="One W_o on the joined heads is right. It is the same as a piece of W_o for each head, "
    "with the results added.",
)

choice(
    "answer_mixed_row",
    "a",
    reason="That is what row 1 should hold. The reshape reads in the order (head, position, feature), "
    "so head 1 comes only after all four positions of head 0.",
)
choice(
    "answer_mixed_row",
    "b",
    reason="A row of the output holds d_model numbers: two positions of head 0. Row 0 already takes "
    "positions 0 and 1. What is left for row 1?",
)
choice(
    "answer_mixed_row",
    "c",
    right=True,
    reason="Row 0 takes head 0 at positions 0 and 1, row 1 head 0 at positions 2 and 3. Head 1 fills "
    "rows 2 and 3. Position 0 of the output knows nothing of what head 1 found.",
)
choice(
    "answer_mixed_row",
    "d",
    reason="Head 1 comes after all of head 0. Head 0 has four positions, which fill rows 0 and 1; "
    "head 1 begins in row 2.",
)

with exercise("mixes_rows"):
    wrong(
        "mixes_rows_reversed_only",
        {"torch.tensor([2, 0, 4, 1, 3])": "torch.arange(5).flip(0)"},
        "A layer that treats both directions alike, and still knows how far apart two words stand, "
        "comes through your test. It does where the reversed order is the only one that is tried, "
        "for one.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "mixes_reversed_only_six_words",
        {
            "torch.tensor([2, 0, 4, 1, 3])": "torch.arange(6).flip(0)",
            "torch.randn(3, 5, d_model": "torch.randn(3, 6, d_model",
        },
        "A layer that cuts the heads out by a reshape comes through your test. It can where the "
        "reversed order is the only one that is tried, for one; a layer that treats both "
        "directions alike comes through then too.",
        seen="answers written blind",
    )

    wrong(
        "mixes_copies_of_one_text",
        {
            "torch.randn(3, 5, d_model, generator=torch.Generator().manual_seed(0))":
                "torch.randn(1, 5, d_model, generator=torch.Generator().manual_seed(0)).repeat(3, 1, 1)",
        },
        "A layer whose texts attend to each other passes your test. Ask what a text says when it is "
        "alone, without the other texts of its batch; copies of it are no other texts.",
        seen="a trial with typical wrong answers",
    )
    wrong(
        "mixes_order_only",
        {"max(by_place, by_texts)": "by_place"},
        "A layer whose texts attend to each other passes your test. Ask what a text says when it is "
        "alone, without the other texts of its batch; copies of it are no other texts.",
    )
    wrong(
        "mixes_order_not_given_back",
        {"output[:, order]": "output"},
        "A right layer seems broken to you, too. If you put the words into another order: the rows "
        "of a right layer move with their words, so the old output has to be put into that order "
        "too. And equal means equal up to rounding.",
    )
    wrong(
        "mixes_order_that_stays",
        {"[2, 0, 4, 1, 3]": "[0, 1, 2, 3, 4]"},
        "A layer that knows places, or that mixes the rows of a text, comes through your test. It "
        "is found where words change their places and each row is compared with the old row of its "
        "word.",
    )
    wrong(
        "mixes_the_other_way_round",
        {"> 1e-4": "<= 1e-4"},
        "Your answer is the other way round: True means that the layer mixes rows.",
    )
    wrong(
        "mixes_returns_the_error",
        {"bool(max(by_place, by_texts) > 1e-4)": "float(max(by_place, by_texts))"},
        "You return how far the outputs differ. The exercise asks for a verdict, True or False.",
    )
    wrong(
        "mixes_weights_compared",
        {
            "output = layer(x)[0]": "output = layer(x)[1].mean(1)",
            "moved = layer(x[:, order])[0]": "moved = layer(x[:, order])[1].mean(1)[..., order.argsort()]",
            "layer(text[None])[0]": "layer(text[None])[1].mean(1)",
        },
        "A layer that mixes its output after right weights, as the colleague's does, comes through "
        "your test. It does where weights are compared, for one: compare outputs.",
    )
    wrong(
        "mixes_first_text_only",
        {"by_texts = (alone - output)": "by_texts = (alone - output)[0]"},
        "A layer in which each text gets something from the texts before it in the batch comes "
        "through your test. It does where only the first text is looked at, for one.",
        seen="answers written blind",
    )
    wrong(
        "mixes_tolerance_too_small",
        {"> 1e-4": "> 4e-6"},
        "A right layer whose outputs differ by less than 0.00001, by rounding, seems broken to you. "
        "The difference that you allow has to lie between rounding and mixing.",
        seen="read in a review of the checks",
    )
    wrong(
        "mixes_tolerance_too_large",
        {"> 1e-4": "> 2e-2"},
        "A layer that adds a small number to each position, another one at each, comes through your "
        "test. More than a thousandth is no rounding.",
        seen="read in a review of the checks",
    )

    wrong(
        "mixes_first_word_stays",
        {"[2, 0, 4, 1, 3]": "[0, 2, 4, 1, 3]"},
        "A layer that treats the first position of a text otherwise comes through your test. It does "
        "where the first word keeps its place, for one.",
        seen="a trial with typical wrong answers",
    )
    wrong(
        "mixes_last_word_stays",
        {"[2, 0, 4, 1, 3]": "[2, 0, 3, 1, 4]"},
        "A layer that treats the last position of a text otherwise comes through your test. It does "
        "where the last word keeps its place, for one.",
        seen="a trial with typical wrong answers",
    )

choice(
    "answer_again_order",
    "a",
    reason="That would be invariant. The rows move with their words.",
)
choice(
    "answer_again_order",
    "b",
    right=True,
    reason="It is equivariant: each word sees the same set of words as before.",
)
choice(
    "answer_again_order",
    "c",
    reason="Each word sees the same set of words: no row changes.",
)
choice(
    "answer_again_padding",
    "a",
    right=True,
    reason="A forbidden score becomes minus infinity, and the other weights still sum to 1.",
)
choice(
    "answer_again_padding",
    "b",
    reason="Then the rest of the row sums to less than 1, and padding has taken part in the sum.",
)
choice(
    "answer_again_padding",
    "c",
    reason="A value of zeros is averaged like any other: it takes its share of the weight.",
)
choice(
    "answer_again_circle",
    "a",
    reason="A long key can be looked at and look elsewhere: each row is divided by its own sum.",
)
choice(
    "answer_again_circle",
    "b",
    right=True,
    reason="Scores are symmetric, so the largest one between two different words is mutual.",
)
choice(
    "answer_again_circle",
    "c",
    reason="The proof does not depend on the width.",
)


# The right answer in few words, of which the wrong ones below are changes.
SHORT_FUSE_PROJECTIONS = """
def fuse_projections(attention):
    parts = [attention.W_q, attention.W_k, attention.W_v]
    d_model = attention.W_q.in_features
    fused = nn.Linear(d_model, 3 * d_model).to(attention.W_q.weight.dtype)
    fused.weight.data = torch.cat([part.weight.data for part in parts])
    fused.bias.data = torch.cat([part.bias.data for part in parts])
    return fused
"""

with exercise("fuse_projections", base=SHORT_FUSE_PROJECTIONS):
    wrong(
        "fuse_keys_first",
        {"attention.W_q, attention.W_k, attention.W_v": "attention.W_k, attention.W_q, attention.W_v"},
        "Queries and keys are exchanged: the first part of your output is W_k(x), the second W_q(x). The "
        "order is queries, keys, values.",
    )

    wrong(
        "fuse_own_biases",
        {"fused.bias.data = torch.cat([part.bias.data for part in parts])": ""},
        "The weights are right, and the biases are not those of attention. Check first: those that "
        "a new nn.Linear draws are still in place. They are copied, too.",
        seen="loading a published qkv by its weights alone",
    )

    wrong(
        "fuse_biases_of_0",
        {"torch.cat([part.bias.data for part in parts])": "torch.zeros_like(fused.bias.data)"},
        "The weights are right, and the biases of your fused layer are 0. Those of attention are not.",
    )

    wrong(
        "fuse_without_bias",
        {
            "3 * d_model)": "3 * d_model, bias=False)",
            "fused.bias.data = torch.cat([part.bias.data for part in parts])": "",
        },
        "Your fused layer has no bias, or its biases are 0. W_q, W_k and W_v have biases, which belong to what they give.",
    )

    wrong(
        "fuse_transposed",
        {"part.weight.data for": "part.weight.data.T for"},
        "Each of your three parts is a product with the transposed matrix. nn.Linear keeps its weight as "
        "(out, in) in both places: nothing is turned over.",
        seen="the X @ W of lesson 4, where W is (in, out)",
    )

    wrong(
        "fuse_side_by_side",
        {"[part.weight.data for part in parts]": "[part.weight.data for part in parts], dim=1"},
        "Your weight has the shape (d_model, 3 * d_model), which is no layer from d_model to 3 * d_model: "
        "nn.Linear keeps (out, in), so the three matrices lie on top of each other.",
    )

    wrong(
        "fuse_row_by_row",
        {
            "torch.cat([part.weight.data for part in parts])":
                "torch.stack([part.weight.data for part in parts], 1).reshape(-1, d_model)",
            "torch.cat([part.bias.data for part in parts])":
                "torch.stack([part.bias.data for part in parts], 1).reshape(-1)",
        },
        "In your output the features of queries, keys and values alternate: q, k, v, q, k, v. Cut into "
        "three equal parts it should give all queries, all keys, all values.",
    )

    wrong(
        "fuse_head_by_head",
        """
            layers = attention.W_q, attention.W_k, attention.W_v
            d_model = attention.W_q.in_features
            heads = attention(torch.zeros_like(attention.W_q.weight))[1].shape[-3]
            fused = nn.Linear(d_model, 3 * d_model).to(attention.W_q.weight.dtype)
            fused.weight.data = torch.cat(
                [part.weight.data.chunk(heads)[head] for head in range(heads) for part in layers]
            )
            fused.bias.data = torch.cat(
                [part.bias.data.chunk(heads)[head] for head in range(heads) for part in layers]
            )
            return fused
        """,
        "Your fused layer goes head by head: queries, keys and values of head 0, then those of head 1. Some "
        "published models store it so. Here all queries come first, then all keys, then all values.",
        seen="the qkv of GPT-NeoX and BLOOM, head by head",
    )

    wrong(
        "fuse_single_precision",
        {".to(attention.W_q.weight.dtype)": "", "part.weight.data for": "part.weight.data.float() for", "part.bias.data for": "part.bias.data.float() for"},
        "Your fused layer is in float32, also where attention is in float64: half of its digits are lost, "
        "and it does not take the same inputs. It should have the dtype of attention.",
    )

    wrong(
        "fuse_not_trainable",
        {"return fused": "return fused.requires_grad_(False)"},
        "The parameters of your fused layer require no gradient: nothing in it would ever be learned.",
    )

    wrong(
        "fuse_shares_memory",
        {
            "return fused": """
                for part, weight, bias in zip(parts, fused.weight.data.chunk(3), fused.bias.data.chunk(3)):
                    part.weight.data, part.bias.data = weight, bias
                return fused
            """,
        },
        "Your fused layer and attention share memory: what is written into one stands in the other. The "
        "numbers should be copied, and attention's parameters stay where they are.",
    )

    wrong(
        "fuse_freezes_attention",
        {"return fused": "attention.requires_grad_(False); return fused"},
        "After the call attention is frozen: its parameters require no gradient any more. It should be as "
        "it was before.",
    )

    wrong(
        "fuse_a_function",
        {"return fused": "return lambda x: torch.cat([part(x) for part in parts], dim=-1)"},
        "What comes back is a function that calls the three layers of attention: three products as before, "
        "and no parameters of its own. Return one nn.Linear.",
    )
