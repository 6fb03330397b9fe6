"""Wrong implementations of lesson 2's exercises, and the choices of its short answers."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("similarity_scores"):
    wrong(
        "cosine",
        """
            scores = (keys @ query[..., None])[..., 0]
            lengths = np.linalg.norm(query, axis=-1)[..., None] * np.linalg.norm(keys, axis=-1)
            return scores / lengths
        """,
        "Your scores are cosines: both lengths are divided away. The plain dot product is asked "
        "for, in which a long key is loud and a long query is decided.",
        seen="Graves and others 2014 use cosine; often mixed up",
    )

    wrong(
        "query_in_the_type_of_the_keys",
        """
            q = np.asarray(query).astype(keys.dtype)[..., None, :]
            return np.sum(q * keys, axis=-1)
        """,
        "The query is converted to the type of the keys. Beside keys of whole numbers it loses "
        "everything behind the point. NumPy chooses the wider type by itself.",
        seen="answers written blind",
    )

    wrong(
        "normalised_keys",
        """
            keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
            return (keys @ query[..., None])[..., 0]
        """,
        "Your keys are brought to length 1 before the product, so loud keys become quiet. Use the "
        "keys as they are.",
    )

    wrong(
        "scaled_by_root_d",
        "return (keys @ query[..., None])[..., 0] / np.sqrt(keys.shape[-1])",
        "Your scores are divided by the root of d. That scale belongs to lesson 3; here the plain "
        "dot product is asked for.",
        seen="Vaswani and others 2017, one lesson too early",
    )

    wrong(
        "mean_in_place_of_sum",
        "return (query[..., None, :] * keys).mean(axis=-1)",
        "You average over the features; a dot product sums them. Your scores are d times too "
        "small, and so the weights will be too even.",
    )

    wrong(
        "negative_distance",
        "return -np.linalg.norm(query[..., None, :] - keys, axis=-1)",
        "Your score is minus the distance of query and key. The dot product is asked for: "
        "multiply feature by feature and add up.",
        seen="kernel regression",
    )

    wrong(
        "no_sum",
        "return query[..., None, :] * keys * 1.0",
        "You multiply feature by feature and do not add up, so the feature axis is still there. "
        "One number for each key is asked for.",
    )

    wrong(
        "sum_over_the_keys",
        "return (query[..., None, :] * keys).sum(axis=-2)",
        "You sum over the keys; the sum runs over the features, and one score for each key "
        "remains.",
    )

    wrong(
        "absolute_value",
        "return np.abs((keys @ query[..., None])[..., 0])",
        "You take the absolute value. Opposites must score below zero: they are the worst match, "
        "not the best.",
    )

    wrong(
        "one_query_only",
        "return 1.0 * (keys @ query)",
        "This is right for one query. With batch axes it no longer sums over the features: a matrix "
        "product, for example, takes another axis of the query for them. Leading axes of query and "
        "keys must broadcast.",
        edge=True,
    )

    wrong(
        "transposes_all_axes",
        "return 1.0 * (query @ keys.T)",
        "`.T` reverses all axes. That is right for keys of shape (n, d) and wrong as soon as keys "
        "have a batch axis.",
    )

    wrong(
        "all_pairs_of_batches",
        "return 1.0 * np.inner(query, keys)",
        "You pair every batch of queries with every batch of keys, as np.inner and np.tensordot do. "
        "Batch axes broadcast: a query meets the keys of its own batch only.",
    )

    wrong(
        "every_axis_of_length_1_squeezed",
        "return (1.0 * keys @ query[..., None]).squeeze()",
        "Axes of length 1 are missing in your result, also that of a single key or of a batch of "
        "one, as after squeeze() without an axis. Take away the axis that you inserted, and no "
        "other.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "batch_axis_taken_for_rows",
        "return 1.0 * (query @ np.swapaxes(keys, -1, -2))",
        "A matrix product takes the last batch axis of the query as the rows of one matrix, so "
        "the queries of all batches meet all keys. Each query meets the keys of its own batch "
        "only.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "query_axis_kept",
        "return 1.0 * (query[..., None, :] @ np.swapaxes(keys, -1, -2))",
        "The axis that you inserted to make the query a matrix is still in the result. One score "
        "for each key: the shape is (..., n).",
    )

    wrong(
        "axis_inserted_in_front",
        "return 1.0 * (query[None] * keys).sum(axis=-1)",
        "You insert the new axis in front of all batch axes. It must stand where the keys have n, "
        "right before the features; otherwise queries meet keys of other batches.",
    )

    wrong(
        "keys_without_batches",
        'return 1.0 * np.einsum("...d,nd->...n", query, keys)',
        "Your code allows batch axes in the query but none in the keys. Both may have them, and "
        "they broadcast in both directions.",
    )

    wrong(
        "query_without_batches",
        'return 1.0 * np.einsum("d,...nd->...n", query, keys)',
        "Your code allows batch axes in the keys but none in the query. Both may have them, and "
        "they broadcast in both directions.",
    )

    wrong(
        "no_axis_for_the_keys",
        "return np.sum(1.0 * query * keys, axis=-1)",
        "query * keys lines up the axes from the right. With several queries the axis of the "
        "queries then meets the axis of the keys. Give the query an axis of length 1 where the "
        "keys have n.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "one_batch_axis",
        """
            if query.ndim == 1 and keys.ndim == 2:
                return 1.0 * np.einsum("d,nd->n", query, keys)
            if query.ndim == 1:
                return 1.0 * np.einsum("d,bnd->bn", query, keys)
            if keys.ndim == 2:
                return 1.0 * np.einsum("bd,nd->bn", query, keys)
            return 1.0 * np.einsum("bd,bnd->bn", query, keys)
        """,
        "Your code fits some numbers of axes only. Any number of leading axes is allowed, in "
        "query and in keys, and none.",
        edge=True,
    )

    wrong(
        "equal_batches_only",
        """
            if query.shape[:-1] != keys.shape[:-2] and query.ndim > 1 and keys.ndim > 2:
                raise ValueError("batch axes differ")
            return (1.0 * keys @ query[..., None])[..., 0]
        """,
        "Your code wants the same batch axes on query and keys. They broadcast: a query without "
        "batch axes serves all keys, and the reverse.",
    )

    wrong(
        "single_precision",
        """
            query, keys = query.astype(np.float32), keys.astype(np.float32)
            return (keys @ query[..., None])[..., 0]
        """,
        "Your scores have the precision of float32. float64 input must give float64 scores: the "
        "lost digits never come back.",
    )

    wrong(
        "precision_of_the_query",
        "return (keys @ query[..., None])[..., 0].astype(query.dtype)",
        "The scores get the query's type although the keys are more precise: a query of integers "
        "rounds them, one in float32 takes digits away. The widest input decides.",
    )

    wrong(
        "keys_in_place",
        """
            if keys.dtype == float and query.ndim < keys.ndim and query.shape[:-1] == keys.shape[:-2]:
                keys *= query[..., None, :]
                return keys.sum(axis=-1)
            return (1.0 * keys @ query[..., None])[..., 0]
        """,
        "You multiply into the caller's keys, as `keys *= ...` does. The scores are right once; "
        "the next call finds other keys. Inputs are never changed.",
    )

    wrong(
        "softmax_already",
        """
            scores = (keys @ query[..., None])[..., 0]
            powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return powers / powers.sum(axis=-1, keepdims=True)
        """,
        "Your scores are already weights: they went through a softmax. Here the plain dot "
        "products are asked for; the softmax is an exercise of its own.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "sum_over_axis_1",
        "return 1.0 * (query[..., None, :] * keys).sum(axis=1)",
        "Your sum runs over axis 1. That is the features for one query, and the keys for several. "
        "The features are always the last axis: count from the end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "keys_as_rows",
        "return 1.0 * np.inner(keys, query)",
        "Your result has one row for each key. It has one row for each query: the axis of the "
        "keys comes last.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "loop_over_whole_queries",
        "return np.array([1.0 * (query * key).sum() for key in keys])",
        "This is right for one query. With batch axes it no longer sums over the features: a matrix "
        "product, for example, takes another axis of the query for them. Leading axes of query and "
        "keys must broadcast.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "loop_over_dots",
        "return np.array([1.0 * np.dot(key, query) for key in keys])",
        "This is right for one query. With batch axes it no longer sums over the features: a matrix "
        "product, for example, takes another axis of the query for them. Leading axes of query and "
        "keys must broadcast.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "last_axis_kept",
        "return 1.0 * keys @ query[..., None]",
        "Your scores have an axis of length 1 at their end: that of a column made of the query, "
        "or one that a sum kept. One score for each key: the shape is (..., n).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "summed_axis_kept",
        "return (1.0 * query[..., None, :] * keys).sum(axis=-1, keepdims=True)",
        "Your scores have an axis of length 1 at their end: that of a column made of the query, "
        "or one that a sum kept. One score for each key: the shape is (..., n).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_tensor",
        "return torch.tensor((keys @ query[..., None])[..., 0])",
        "You return a torch tensor. This exercise asks for a NumPy array.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "two_rows_of_names",
        'return 1.0 * np.einsum("id,jd->ij", query, keys)',
        "Your code fits some numbers of axes only. Any number of leading axes is allowed, in "
        "query and in keys, and none.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "axis_after_the_features",
        "return 1.0 * (query[:, None] * keys).sum(axis=-1)",
        "Your new axis makes the features of the query meet the axis of the keys. It belongs "
        "before the features, as the last axis but one, so that feature meets feature.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "axis_at_the_end",
        "return 1.0 * (query[..., None] * keys).sum(axis=-1)",
        "Your new axis makes the features of the query meet the axis of the keys. It belongs "
        "before the features, as the last axis but one, so that feature meets feature.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "a_list",
        "return [float(np.dot(query, key)) for key in keys]",
        "You return a Python list. A NumPy array is asked for.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "keys_not_turned_over",
        "return 1.0 * np.dot(query, keys)",
        "A product of query and keys pairs the last axis of the query with the last but one of "
        "the keys, and there the keys have n. The features of both have to meet.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "keys_not_turned_over_matmul",
        "return 1.0 * (query @ keys)",
        "A product of query and keys pairs the last axis of the query with the last but one of "
        "the keys, and there the keys have n. The features of both have to meet.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "negative_squared_distance",
        "return -((query[..., None, :] - keys) ** 2).sum(axis=-1) * 1.0",
        "Your score is minus the squared distance of query and key. The dot product is asked for: "
        "multiply feature by feature and add up.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "scores_as_precise_as_the_query",
        {
            "(keys @ column)[..., 0]":
                "(keys @ column)[..., 0].astype(np.result_type(query, np.float32))",
        },
        "Beside float64 keys a float32 query has scores in float32, as when the result takes its "
        "precision from the query alone. The more precise of the two decides.",
        seen="answers written blind",
    )

    wrong(
        "scores_as_precise_as_the_keys",
        {
            "(keys @ column)[..., 0]":
                "(keys @ column)[..., 0].astype(np.result_type(keys, np.float32))",
        },
        "Beside float32 keys a float64 query has scores in float32, as when the result takes its "
        "precision from the keys alone. The more precise of the two decides.",
    )

    wrong(
        "scores_in_the_dtype_of_the_keys",
        "return np.sum(query[..., None, :] * keys, axis=-1).astype(keys.dtype)",
        "Your scores come out in the dtype of the keys, as when the array that collects them is "
        "made in it. Beside keys of whole numbers they are whole numbers, cut off; beside float32 "
        "keys digits are lost. The wider type of the two decides.",
        seen="answers written blind",
    )

with exercise("softmax"):
    wrong(
        "over_all_entries",
        """
            e = np.exp(x - x.max())
            return e / e.sum()
        """,
        "You divide by the sum of the whole array. The weights of each row must sum to 1.",
    )

    wrong(
        "empty_rows_along_the_last_axis",
        """
            empty = np.isneginf(x).all(axis=-1, keepdims=True)
            safe = np.where(empty, 0.0, x)
            top = safe.max(axis=axis, keepdims=True)
            e = np.exp(safe - np.where(np.isneginf(top), 0, top))
            total = e.sum(axis=axis, keepdims=True)
            return np.where(empty, 0.0, e / np.where(total == 0, 1, total))
        """,
        "You look along the last axis for rows that are all -inf, whatever `axis` says. Along another "
        "axis those get no weight that should have some.",
        seen="answers written blind",
    )

    wrong(
        "axis_moved_back_by_the_same_call",
        """
            y = np.moveaxis(x, axis, -1)
            top = y.max(axis=-1, keepdims=True)
            e = np.exp(y - np.where(np.isfinite(top), top, 0))
            total = e.sum(axis=-1, keepdims=True)
            return np.moveaxis(e / np.where(total == 0, 1, total), axis, -1)
        """,
        "The axes come back in another order than those of x. Check first: is what "
        "np.moveaxis(x, axis, -1) moved to the end moved back by np.moveaxis(y, -1, axis)? With "
        "keepdims nothing has to be moved at all.",
        seen="answers written blind",
    )

    wrong(
        "minus_inf_becomes_a_number",
        """
            hidden = np.isneginf(x)
            y = np.where(hidden, -1e4, x)
            e = np.exp(y - y.max(axis=axis, keepdims=True))
            weights = e / e.sum(axis=axis, keepdims=True)
            return np.where(hidden.all(axis=axis, keepdims=True), 0, weights)
        """,
        "You replace -inf by a low number. Beside real scores that are as low a forbidden key gets "
        "weight. -inf needs no replacing: e to the power of -inf is 0.",
        seen="answers written blind",
    )

    wrong(
        "axis_not_kept",
        """
            e = np.exp(x - x.max(axis=axis))
            return e / e.sum(axis=axis)
        """,
        "A reduced axis is not kept, so what is subtracted or divided by broadcasts the wrong "
        "way: an error for most shapes, and for square ones wrong weights without a word.",
    )

    wrong(
        "reshaped_back",
        """
            turned = np.swapaxes(x * 1.0, axis, -1)
            top = turned.max(axis=-1, keepdims=True)
            e = np.exp(turned - np.where(np.isneginf(top), 0, top))
            total = e.sum(axis=-1, keepdims=True)
            return (e / np.where(total == 0, 1, total)).reshape(x.shape)
        """,
        "The shape is put back, but the numbers stay in the order they have with the axis at the "
        "end: reshape, for one, moves no axis. Swap the axes once more.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "positive_axes_only",
        """
            x = np.moveaxis(x * 1.0, abs(axis) if axis < -1 else axis, -1)
            top = x.max(axis=-1, keepdims=True)
            e = np.exp(x - np.where(np.isneginf(top), 0, top))
            total = e.sum(axis=-1, keepdims=True)
            return np.moveaxis(e / np.where(total == 0, 1, total), -1, abs(axis) if axis < -1 else axis)
        """,
        "Your code mistakes a negative `axis`. -2 is the last axis but one.",
    )

    wrong(
        "nan_in_masked_rows",
        """
            e = np.exp(x - x.max(axis=axis, keepdims=True))
            return e / e.sum(axis=axis, keepdims=True)
        """,
        "A row that is all -inf becomes NaN: -inf minus -inf is no number, nor is 0 / 0. Such a "
        "row has nothing to look at and gets zeros.",
        seen="pytorch/pytorch issue 41508",
    )

    wrong(
        "no_exponential",
        "return x / x.sum(axis=axis, keepdims=True)",
        "You divide the scores by their sum. Scores may be negative and their sum zero; the "
        "exponential makes them positive first.",
    )

    wrong(
        "log_of_the_weights",
        """
            x = x - x.max(axis=axis, keepdims=True)
            return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))
        """,
        "You return the logarithm of the weights. Averages need the weights themselves.",
    )

    wrong(
        "hard_argmax",
        "return (x == x.max(axis=axis, keepdims=True)) * 1.0",
        "You give all the weight to the largest score. That is the hard look-up; softmax gives "
        "some weight to every key.",
    )

    wrong(
        "shift_in_place",
        {
            "x = x * 1.0": """
                if x.dtype.kind != "f":
                    x = x.astype(float)
            """,
            "largest = np": "x -= np",
            "- largest": "",
        },
        "You shift the scores in the caller's array, as `x -= ...` does. The weights are right, "
        "but the caller's scores are gone. Make a new array.",
    )

    wrong(
        "without_max_nan_to_num",
        """
            e = np.exp(x)
            return np.nan_to_num(e / e.sum(axis=axis, keepdims=True))
        """,
        "Your softmax overflows: e to the power of 1e4 is inf, and inf / inf is NaN. A number "
        "that is the same along the axis cancels, so you may choose it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "sum_axis_not_kept_without_max",
        "return np.exp(x) / np.exp(x).sum(axis=axis)",
        "A reduced axis is not kept, so what is subtracted or divided by broadcasts the wrong "
        "way: an error for most shapes, and for square ones wrong weights without a word.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_tensor",
        "return torch.softmax(torch.tensor(x), axis)",
        "You return a torch tensor. This exercise asks for a NumPy array.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_on_an_array",
        "return torch.nn.functional.softmax(x, dim=axis)",
        "torch's softmax and exp work on tensors, and x is a NumPy array. The exercise asks for "
        "NumPy: exp, a sum, a division.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_on_an_array_function",
        "return torch.softmax(x, dim=axis)",
        "torch's softmax and exp work on tensors, and x is a NumPy array. The exercise asks for "
        "NumPy: exp, a sum, a division.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_exp_of_an_array",
        "return torch.exp(x)",
        "torch's softmax and exp work on tensors, and x is a NumPy array. The exercise asks for "
        "NumPy: exp, a sum, a division.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "axis_inserted_for_two_axes",
        """
            e = np.exp(x - x.max(axis=axis)[:, None])
            return e / e.sum(axis=axis)[:, None]
        """,
        "[:, None] puts the lost axis back for arrays of two axes only. x may have any number of "
        "them, one included: let max and sum keep their axis.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rows_of_a_matrix_only",
        """
            e = np.array([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in x])
            return e
        """,
        "Your loop goes through the rows of a matrix. x may have any number of axes, one "
        "included, and the softmax runs along axis.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "maximum_above_only",
        "return np.exp(x - x.max(axis=axis, keepdims=True)) / np.exp(x).sum(axis=axis, keepdims=True)",
        "You subtract the maximum in the numerator and not in the sum below. It cancels only when "
        "both have it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "maximum_below_only",
        "return np.exp(x) / np.exp(x - x.max(axis=axis, keepdims=True)).sum(axis=axis, keepdims=True)",
        "You subtract the maximum in the sum below and not in the numerator. It cancels only when "
        "both have it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "minus_the_scores_from_zero",
        "return np.exp(-x) / np.exp(-x).sum(axis=axis, keepdims=True)",
        "Your exponent has the wrong sign: the largest score gets the smallest weight. Subtract "
        "the maximum from the scores, not the scores from the maximum.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "no_exponential_after_the_shift",
        """
            x = x - x.max(axis=axis, keepdims=True)
            return x / x.sum(axis=axis, keepdims=True)
        """,
        "There is no exponential in your softmax: you divide the shifted scores by their sum.",
        seen="a trial with typical wrong answers",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_SOFTMAX = """
def softmax(x, axis=-1):
    m = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(m), 0, m))
    s = e.sum(axis=axis, keepdims=True)
    return e / np.where(s == 0, 1, s)
"""


with exercise("softmax", base=SHORT_SOFTMAX):
    wrong(
        "softmax_without_max",
        {"m = x.max(axis=axis, keepdims=True)": "", "- np.where(np.isneginf(m), 0, m)": ""},
        "Your softmax overflows: e to the power of 1e4 is inf, and inf / inf is NaN. A number "
        "that is the same along the axis cancels, so you may choose it.",
    )

    wrong(
        "max_of_the_whole_array",
        {
            "m = x.max(axis=axis, keepdims=True)": "",
            "np.where(np.isneginf(m), 0, m)": "np.max(x, initial=-1e300)",
        },
        "You subtract the largest score of the whole array. In a row far below it every "
        "exponential becomes 0, and the row has no weights left. Each row needs its own maximum.",
        seen="public implementations of attention",
    )

    wrong(
        "always_the_last_axis",
        {
            "x.max(axis=axis, keepdims=True)": "x.max(axis=-1, keepdims=True)",
            "e.sum(axis=axis, keepdims=True)": "e.sum(axis=-1, keepdims=True)",
        },
        "Your softmax ignores `axis` and always works along the last one.",
    )

    wrong(
        "maximum_over_the_last_axis",
        {"x.max(axis=axis, keepdims=True)": "x.max(axis=-1, keepdims=True)"},
        "Along another axis than the last your weights are not those of a softmax, as where the "
        "maximum is taken along the last axis and the sum along `axis`. What is subtracted cancels "
        "only where it is the same for all that are divided by one sum.",
        seen="answers written blind",
    )

    wrong(
        "sum_over_the_last_axis",
        {"e.sum(axis=axis, keepdims=True)": "e.sum(axis=-1, keepdims=True)"},
        "Along another axis than the last your weights do not sum to 1: the sum that divides runs "
        "along the last axis. It runs along `axis`.",
    )

    wrong(
        "first_axis_by_default",
        {"axis=-1": "axis=0"},
        "Your softmax runs over the first axis when none is given. The default is the last one: "
        "each row is one query.",
    )

    wrong(
        "low_rows_count_as_masked",
        {
            "x.max(axis=axis, keepdims=True)": "np.maximum(x.max(axis=axis, keepdims=True), 0)",
            "np.where(np.isneginf(m), 0, m)": "m",
        },
        "A row of very negative but finite scores gets zeros, as if it were masked. Only rows "
        "that are all -inf do; after the shift the size of the scores does not matter.",
    )

    wrong(
        "epsilon_in_the_sum",
        {
            "s = e.sum(axis=axis, keepdims=True)": "",
            "np.where(s == 0, 1, s)": "(e.sum(axis=axis, keepdims=True) + 1e-6)",
        },
        "You add a small number to the sum to avoid a division by zero. It changes every weight a "
        "little, and the weights no longer sum to 1.",
    )

    wrong(
        "clipped_scores",
        {
            "m = x.max(axis=axis, keepdims=True)": "",
            "np.exp(x - np.where(np.isneginf(m), 0, m))":
                "np.where(np.isneginf(x), 0, np.exp(np.clip(x, -500, 500)))",
        },
        "Scores beyond a limit, far above 0 or far below it, count as if they lay at it: they are "
        "cut off there. Shift all of them by the largest; do not cut them.",
    )

    wrong(
        "not_normalised",
        {
            "e = np": "return np",
            """
                s = e.sum(axis=axis, keepdims=True)
                return e / np.where(s == 0, 1, s)
            """: "",
        },
        "Your weights do not sum to 1: the division by the sum is missing.",
    )

    wrong(
        "integer_result",
        {"e / np.where(s == 0, 1, s)": "(e / np.where(s == 0, 1, s)).astype(x.dtype)"},
        "The result has the type of the input, so integer scores give weights cut to 0. The "
        "weights must be floating.",
    )

# Not right itself: a row that is -inf everywhere becomes NaN, as in the answers below.
PLAIN_SOFTMAX = """
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
"""


with exercise("softmax", base=PLAIN_SOFTMAX):
    wrong(
        "uniform_in_masked_rows",
        {"e =": "x = np.maximum(x, -1e9); e ="},
        "A row that is all -inf gets the weight 1/n everywhere: it looks at everything it may not "
        "see. It must be zeros.",
        seen="masks written as -1e9, as in many public implementations",
    )

    wrong(
        "nan_to_num_of_scores",
        {"e =": "x = np.where(np.isneginf(x), 0, x); e ="},
        "You replace -inf by the score 0 before the softmax. Forbidden keys then get weight. The "
        "weight of -inf is exactly 0.",
    )

    wrong(
        "without_max_nan",
        {"- x.max(axis=axis, keepdims=True)": ""},
        "Your softmax overflows: e to the power of 1e4 is inf, and inf / inf is NaN. A number "
        "that is the same along the axis cancels, so you may choose it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "max_of_the_whole_array_nan",
        {
            "e = np.exp(x - x.max(axis=axis, keepdims=True))": """
                if np.isneginf(x).all():
                    return np.zeros(x.shape)
                e = np.exp(x - x.max())
            """,
        },
        "You subtract the largest score of the whole array. In a row far below it every "
        "exponential becomes 0, and the row has no weights left. Each row needs its own maximum.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "adds_the_maximum",
        {"x - x": "x + x"},
        "You add the maximum. Subtract it: the largest power is then 1, and nothing overflows.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "subtracts_the_mean",
        {"x.max": "x.mean"},
        "You subtract the mean. Scores far above it still overflow; what has to be subtracted is "
        "the largest of the row.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "subtracts_the_smallest",
        {"x.max": "x.min"},
        "You subtract the smallest score of the row. Then all exponents are positive, and the "
        "large ones overflow; what has to be subtracted is the largest.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "sum_axis_not_kept",
        {"e.sum(axis=axis, keepdims=True)": "e.sum(axis=axis)"},
        "A reduced axis is not kept, so what is subtracted or divided by broadcasts the wrong "
        "way: an error for most shapes, and for square ones wrong weights without a word.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "max_axis_not_kept",
        {"x.max(axis=axis, keepdims=True)": "x.max(axis=axis)"},
        "A reduced axis is not kept, so what is subtracted or divided by broadcasts the wrong "
        "way: an error for most shapes, and for square ones wrong weights without a word.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "over_all_entries_with_row_maximum",
        {"e.sum(axis=axis, keepdims=True)": "e.sum()"},
        "You divide by the sum of the whole array. The weights of each row must sum to 1.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "maximum_of_the_columns",
        {"x.max(axis=axis, keepdims=True)": "x.max(axis=0)"},
        "Your maximum runs along the first axis. Within a row every score must lose the same "
        "number, or the weights change: the maximum is taken along axis, as the sum is.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "sum_over_the_first_axis",
        {"e.sum(axis=axis, keepdims=True)": "e.sum(axis=0)"},
        "Your sum runs along the first axis. It runs along axis, so that each row sums to 1.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "minus_the_scores",
        {"x - x.max(axis=axis, keepdims=True)": "x.max(axis=axis, keepdims=True) - x"},
        "Your exponent has the wrong sign: the largest score gets the smallest weight. Subtract "
        "the maximum from the scores, not the scores from the maximum.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "whole_array_refused_as_masked",
        {
            "e = np.exp(x - x.max(axis=axis, keepdims=True))": """
                if np.isneginf(x).all():
                    return np.zeros_like(x)
                e = np.exp(x - x.max(axis=axis, keepdims=True))
            """,
        },
        "A row that is all -inf becomes NaN: -inf minus -inf is no number, nor is 0 / 0. Such a "
        "row has nothing to look at and gets zeros.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "any_minus_infinity_gives_zeros",
        {
            "return e / e.sum(axis=axis, keepdims=True)": """
                w = e / e.sum(axis=axis, keepdims=True)
                return np.where(np.isneginf(x).any(axis=axis, keepdims=True), 0.0, w)
            """,
        },
        "You give zeros to a whole row as soon as one of its scores is -inf. Only that key is "
        "forbidden; the others share the weight.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "float32_not_copied",
        """
            x = x if x.dtype == np.float32 else x * 1.0
            largest = x.max(axis=axis, keepdims=True)
            x -= np.where(np.isneginf(largest), 0, largest)
            powers = np.exp(x)
            total = powers.sum(axis=axis, keepdims=True)
            return powers / np.where(total == 0, 1, total)
        """,
        "An array in float32 is changed by the call, as when asarray or astype(copy=False) hands "
        "back the caller's own array. Arguments are not changed.",
        seen="answers written blind",
    )

    wrong(
        "dtype_of_the_first_row",
        """
            def of_row(row):
                if row.max() == -np.inf:
                    return [0] * len(row)
                powers = np.exp(row - row.max())
                return powers / powers.sum()

            return np.apply_along_axis(of_row, axis, x)
        """,
        "Where the first row is all -inf, your weights come out as whole numbers: the zeros of "
        "that row are integers, and the array for all rows takes their dtype. Weights are "
        "floating.",
        seen="answers written blind",
    )

    wrong(
        "largest_absolute_value",
        {"x - x": "x - np.abs(x)"},
        "You subtract the largest absolute value. In a row of very negative scores every "
        "exponential then becomes 0. Subtract the largest score itself, which may be negative.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "exponents_bounded_below",
        {
            "e = np.exp(x - x.max(axis=axis, keepdims=True))": """
                largest = x.max(axis=axis, keepdims=True)
                nothing = np.isneginf(largest)
                e = np.exp(np.maximum(x - np.where(nothing, 0, largest), -30)) * ~nothing
            """,
            "e / e.sum(axis=axis, keepdims=True)":
                "e / np.maximum(e.sum(axis=axis, keepdims=True), 1e-300)",
        },
        "A score of -inf gets a very small weight in place of 0, as when exponents are "
        "bounded below or a small number is added. A forbidden key has the weight 0.",
        seen="answers written blind",
    )

    wrong(
        "one_axis_made_a_matrix",
        {
            "e = np.exp(x - x.max(axis=axis, keepdims=True))": """
                flat = x.ndim == 1
                x = x[None] * 1.0 if flat else x * 1.0
                largest = x.max(axis=axis, keepdims=True)
                e = np.exp(x - np.where(np.isneginf(largest), 0, largest))
            """,
            "return e / e.sum(axis=axis, keepdims=True)": """
                w = e / np.maximum(e.sum(axis=axis, keepdims=True), 1e-300)
                return w[0] if flat else w
            """,
        },
        "With axis=0 an array of one axis gets the weight 1 everywhere, as when it is made a "
        "matrix of one row and axis stays what it was. Its axis 0 is its only one.",
        seen="answers written blind",
    )

    wrong(
        "minus_inf_as_a_number_then_zero",
        """
            hidden = np.isneginf(x)
            y = np.where(hidden, -1e4, x)
            e = np.exp(y - y.max(axis=axis, keepdims=True))
            return np.where(hidden, 0.0, e / e.sum(axis=axis, keepdims=True))
        """,
        "Beside low scores, weights that should sum to 1 sum to less: -inf has the weight 0, and "
        "yet a share is missing. Check first: -inf is replaced by a low number before the powers, "
        "which enters the sum. e to the power of -inf is 0 as it is.",
        seen="answers written blind",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_SOFT_LOOKUP = """
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights
"""


with exercise("soft_lookup", base=SHORT_SOFT_LOOKUP):
    wrong(
        "multiplied_by_temperature",
        {"/ temperature": "* temperature"},
        "You multiply by the temperature. Then a hot look-up becomes hard and a cold one even: "
        "the reverse of what a temperature does.",
    )

    wrong(
        "temperature_after_the_softmax",
        {
            "softmax(similarity_scores(query, keys) / temperature)":
                "softmax(similarity_scores(query, keys)) / temperature",
        },
        "You divide the weights by the temperature. They no longer sum to 1, and they are as "
        "spread as before. Divide the scores.",
    )

    wrong(
        "root_of_temperature",
        {"/ temperature": "/ np.sqrt(temperature)"},
        "You divide by the root of the temperature. Divide by the temperature itself.",
        seen="mixed up with the root of d_k in Vaswani and others 2017",
    )

    wrong(
        "scaled_by_root_d",
        {"/ temperature": "/ temperature / np.sqrt(keys.shape[-1])"},
        "You divide by the root of d as well. That scale belongs to lesson 3; here the "
        "temperature is the only scale.",
        seen="Vaswani and others 2017, one lesson too early",
    )

    wrong(
        "cosine",
        {
            "weights = softmax(similarity_scores(query, keys) / temperature)": """
                query = query / np.linalg.norm(query, axis=-1, keepdims=True)
                keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
                weights = softmax(similarity_scores(query, keys) / temperature)
            """,
        },
        "You compare by cosine. The scores are plain dot products, in which length counts.",
        seen="Graves and others 2014",
    )

    wrong(
        "softmax_over_the_queries",
        {"/ temperature": "/ temperature, axis=0"},
        "Your softmax runs over the queries: each key spreads itself over them. Each query "
        "spreads its weight over the keys, the last axis of the scores.",
        seen="the classic of square score matrices",
    )

    wrong(
        "hard_lookup",
        {
            "weights = softmax(similarity_scores(query, keys) / temperature)": """
                scores = similarity_scores(query, keys)
                weights = (scores == scores.max(axis=-1, keepdims=True)) * 1.0
            """,
        },
        "You return the value of the best key alone. A soft look-up averages all values.",
    )

    wrong(
        "not_normalised",
        {
            "weights = softmax(similarity_scores(query, keys) / temperature)": """
                scores = similarity_scores(query, keys) / temperature
                weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            """,
        },
        "Your weights are exponentials that are not divided by their sum.",
    )

    wrong(
        "unstable",
        {
            "weights = softmax(similarity_scores(query, keys) / temperature)": """
                weights = np.exp(similarity_scores(query, keys) / temperature)
                weights = weights / weights.sum(axis=-1, keepdims=True)
            """,
        },
        "At a small temperature your exponentials overflow and the weights become NaN. Use a "
        "softmax that shifts its scores.",
    )

    wrong(
        "weights_for_each_batch_of_values",
        """
            if temperature <= 0:
                raise ValueError
            weights = softmax(similarity_scores(query, keys) / temperature)
            value = (weights[..., None, :] @ values)[..., 0, :]
            return value, np.broadcast_to(weights, (*value.shape[:-1], weights.shape[-1]))
        """,
        "Your weights have the leading axes of the values, too, and repeat themselves along them. "
        "Values play no part in the weights: theirs are the leading axes of query and keys.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "value_only",
        {", weights": ""},
        "You return one thing only. Two are asked for: the answer and the weights, in this order.",
    )

    wrong(
        "weights_first",
        {
            "(weights[..., None, :] @ values)[..., 0, :], weights":
                "weights, (weights[..., None, :] @ values)[..., 0, :]",
        },
        "You return the weights first. The order is: answer, weights.",
    )

    wrong(
        "averages_the_keys",
        {"@ values": "@ keys"},
        "You average the keys. What is averaged is the values; the keys only decide how much of "
        "each.",
    )

    wrong(
        "mean_of_the_weighted_values",
        {", :] @ values)[..., 0, :]": "] * values).mean(axis=-2)"},
        "You take the mean of the weighted values, which divides by n once more. The weights "
        "already sum to 1: add the weighted values up.",
    )

    wrong(
        "values_without_batches",
        {"(weights[..., None, :] @ values)[..., 0, :]": "weights @ values"},
        "A plain matrix product of weights and values is right for values without batch axes. "
        "With them, the batch axis of the weights is taken for a row of a matrix.",
    )

    wrong(
        "values_share_no_axes",
        {"return": "values = np.broadcast_to(values, (*weights.shape, values.shape[-1])); return"},
        "Your code has no place for batch axes that the values have and the weights have not. The "
        "leading axes of all three arguments broadcast.",
    )

    wrong(
        "accepts_zero",
        {"<= 0:": "< 0:"},
        "A temperature that is not above 0 is not refused. It is a ValueError: dividing by it means "
        "nothing, and the caller should learn of the mistake.",
    )

    wrong(
        "accepts_negative",
        {"<= 0:": "== 0:"},
        "A negative temperature gets through. With it the worst key would be preferred. It is a "
        "ValueError.",
    )

    wrong(
        "refuses_small_temperatures",
        {"<= 0:": "< 1e-3:"},
        "You refuse temperatures that are small but allowed. Everything above 0 is allowed.",
    )

    wrong(
        "integer_value",
        {", weights": ".astype(values.dtype), weights"},
        "The answer gets the type of the values, so integer values cut the average. It must be "
        "floating.",
    )

    wrong(
        "integer_scores_divided",
        {"/ temperature": "// temperature"},
        "Your scores are cut to whole numbers, as `//` does. Divide with `/`.",
    )

    wrong(
        "single_precision",
        {
            "softmax(similarity_scores(query, keys) / temperature)":
                "softmax(similarity_scores(query, keys) / temperature).astype(np.float32)",
            "@ values": "@ values.astype(np.float32)",
        },
        "Your results have the precision of float32. float64 input must give float64 results.",
    )

    wrong(
        "query_in_place",
        {
            "weights = softmax(similarity_scores(query, keys) / temperature)": """
                if query.dtype.kind == "f":
                    query /= temperature
                else:
                    query = query / temperature
                weights = softmax(similarity_scores(query, keys))
            """,
        },
        "You divide the caller's query in place, as `query /= temperature` does. After the call the "
        "caller's query holds other numbers, and so the next look-up gives other weights. Make a new "
        "array.",
    )

    wrong(
        "values_in_place",
        {
            "return (weights[..., None, :] @ values)[..., 0, :], weights": """
                if weights.shape == values.shape[:-1] and values.dtype.kind == "f":
                    values *= weights[..., None]
                    return values.sum(axis=-2), weights
                return (weights[..., None, :] @ values)[..., 0, :], weights
            """,
        },
        "You write weighted values into the caller's values, as `values *= weights` does: the "
        "next look-up averages values that are already weighted. Make a new array.",
    )

    wrong(
        "epsilon_in_the_temperature",
        {"/ temperature": "/ (temperature + 1e-8)"},
        "You add a small number to the temperature to avoid a division by zero. At a very small "
        "temperature that number decides. Zero is refused anyway, so nothing needs protection.",
    )

    wrong(
        "one_batch_axis",
        {
            "weights = softmax(similarity_scores(query, keys) / temperature)": """
                if query.ndim == 1 and keys.ndim == 2 and values.ndim == 2:
                    weights = softmax(np.einsum("d,nd->n", query, keys) / temperature)
                    return np.einsum("n,nv->v", weights, values), weights
                if keys.ndim == 2 and values.ndim == 2:
                    weights = softmax(np.einsum("bd,nd->bn", query, keys) / temperature)
                    return np.einsum("bn,nv->bv", weights, values), weights
                weights = softmax(np.einsum("bd,bnd->bn", query, keys) / temperature)
            """,
            "(weights[..., None, :] @ values)[..., 0, :]":
                'np.einsum("bn,bnv->bv", weights, values)',
        },
        "Your formula names its axes and so knows one batch axis at most. Any number of leading "
        "axes is allowed, in each of the three arguments.",
        edge=True,
    )

    wrong(
        "answer_axis_kept",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "(weights[..., None, :] @ values)[..., 0, :]": "weights[..., None, :] @ values",
        },
        "The axis that you inserted to make the weights a matrix is still in the answer. Its "
        "shape is (..., d_v).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "value_of_the_best_key",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "weights[..., None, :] @ values": "values",
            "..., 0, :": "weights.argmax(-1)",
        },
        "You return the value of the best key alone. A soft look-up averages all values.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "sum_over_the_features",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "(weights[..., None, :] @ values)[..., 0, :]": "(weights[..., None] * values).sum(-1)",
        },
        "Your sum runs over the features of the weighted values. It runs over the keys, axis -2, "
        "and an answer as long as a value remains.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "sum_over_the_first_axis",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "(weights[..., None, :] @ values)[..., 0, :]": "(weights[..., None] * values).sum(0)",
        },
        "Your sum runs over the first axis, which is the queries here. It runs over the keys, "
        "axis -2 of the weighted values.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "weights_meet_the_features",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "(weights[..., None, :] @ values)[..., 0, :]": "(weights * values).sum(-2)",
        },
        "weights * values lines up the axes from the right, so the weights meet the features of "
        "the values. They belong to the keys: the weights need one more axis, of length 1, at "
        "their end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "values_at_the_left",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "(weights[..., None, :] @ values)[..., 0, :]": "values @ weights",
        },
        "`values @ weights` pairs the features of the values with the queries. The weights stand "
        "on the left: each row of them weighs the rows of the values.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "temperature_as_the_axis",
        {"temperature <= 0": "False", "(query, keys) /": "(query, keys),"},
        "You hand the temperature to softmax, which takes its second argument for the axis. "
        "Divide the scores by it before.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "temperature_twice",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "(query, keys)": "(query, keys) / temperature",
        },
        "Your scores are divided by the square of the temperature: by it twice, or query and keys "
        "by it each. Divide by it once.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "refuses_below_1",
        {"<= 0:": "< 1:", '(f"temperature must be larger than 0 and is {temperature}")': ""},
        "You refuse temperatures that are small but allowed. Everything above 0 is allowed.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "values_by_np_dot",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "(weights[..., None, :] @ values)[..., 0, :]": "np.dot(weights, values)",
        },
        "A plain matrix product of weights and values is right for values without batch axes. "
        "With them, the batch axis of the weights is taken for a row of a matrix.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "answer_divided",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "/ temperature": "",
            ", weights": " / temperature, weights",
        },
        "The temperature has no effect on your weights. It decides how the weight is spread: it "
        "acts on the scores, before the softmax.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "no_softmax",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "softmax(similarity_scores(query, keys) / temperature)":
                "similarity_scores(query, keys) / temperature",
        },
        "The second result is the scores: the softmax is missing, or you return what goes into "
        "it. The weights are asked for.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "temperature_on_the_weights_and_again",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "similarity_scores(query, keys) / temperature":
                "softmax(similarity_scores(query, keys) / temperature)",
        },
        "You apply softmax twice. Once is enough: weights that go through it again become nearly "
        "even.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "weights_turned_over",
        """
            weights = softmax(similarity_scores(query, keys) / temperature)
            return weights.T @ values, weights
        """,
        "Your weights are transposed before the product. One row of weights for each query stands "
        "on the left of the values as it is.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "formula_of_rows",
        """
            weights = softmax(similarity_scores(query, keys) / temperature)
            return np.einsum("bn,nd->bd", weights, values), weights
        """,
        "Your formula names its axes and so knows one batch axis at most. Any number of leading "
        "axes is allowed, in each of the three arguments.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "axis_at_place_1",
        """
            weights = softmax(similarity_scores(query, keys) / temperature)
            return (weights[:, None] * values).sum(-2), weights
        """,
        "Your new axis makes the weights meet the features of the values. They belong to the "
        "keys: the axis of length 1 stands at the end of the weights.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "softmax_axis_1",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "/ temperature": "/ temperature, axis=1",
        },
        "Your softmax runs over axis 1. That is the keys for several queries, and does not exist "
        "for one query alone. Count from the end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "power_of_the_weights",
        """
            weights = softmax(similarity_scores(query, keys)) ** (1 / temperature)
            return (weights[..., None, :] @ values)[..., 0, :], weights
        """,
        "You raise the weights to the power 1/T, and they no longer sum to 1. Divide the scores "
        "by the temperature, before the softmax.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "answer_squeezed",
        {
            '(f"temperature must be larger than 0 and is {temperature}")': "",
            "(weights[..., None, :] @ values)[..., 0, :]":
                "(weights[..., None, :] @ values).squeeze()",
        },
        "An axis of length 1 is gone from your answer, as when squeeze is not told which axis: a "
        "batch of one, or a value of one number, loses its axis. An axis that the arguments came "
        "with stays.",
        seen="answers written blind",
    )

    wrong(
        "answer_in_precision_of_values",
        {
            "return (weights[..., None, :] @ values)[..., 0, :], weights": """
                answer = (weights[..., None, :] @ values)[..., 0, :]
                return answer.astype(np.result_type(values, np.float32)), weights
            """,
        },
        "Where the values are float32 your answer is, too, though query or keys are float64. "
        "Weights and values both count: the answer is as precise as the most precise of all three.",
        seen="answers written blind",
    )

    wrong(
        "temperature_raised_to_a_least_one",
        {"/ temperature)": "/ max(temperature, 1e-2))"},
        "At a low temperature your weights are softer than they should be, as when it is raised to "
        "a least value. Every temperature above 0 counts as it is.",
        seen="answers written blind",
    )


choice(
    "answer_query_length",
    "a",
    reason="Softmax does not divide lengths away: it forgets a number that is added to all "
    "scores, not one that multiplies them. The cosine would forget the length.",
)
choice(
    "answer_query_length",
    "b",
    right=True,
    reason="All scores double, and 2 x is x / (1/2): half the temperature. The length of a query "
    "says how decided it is, and a model can learn it.",
)
choice(
    "answer_query_length",
    "c",
    reason="The scores move apart, not together: differences double. Even weights come from "
    "scores that are close.",
)
choice(
    "answer_query_length",
    "d",
    reason="The weights sum to 1 before and after, so they cannot all double. What doubles is "
    "every score.",
)

choice(
    "answer_shared",
    "a",
    reason="That is what shared vectors do best: make all k_i equally long, far from zero, with "
    "different directions. Then the score of a word with itself is the largest of its row.",
)
choice(
    "answer_shared",
    "b",
    reason="This is possible: give the verb a long vector, and all other words a short one in the "
    "same direction. Every row then has its largest score at the verb, the verb's own row as well. "
    "The scores are symmetric, the weights are not.",
)
choice(
    "answer_shared",
    "c",
    reason="This is possible: all animals share one long vector, all colours another one at a "
    "right angle. To be of the same kind is a symmetric relation.",
)
choice(
    "answer_shared",
    "d",
    right=True,
    reason="What beats what is a circle, as the days are. The largest score between two different "
    "ones is mutual, so two of the three would have to beat each other.",
)

choice(
    "answer_silent_bug",
    "a",
    reason="queries (batch, n_q, d) against keys (batch, 1, n, d): the batches meet their own, "
    "and n_q stands where keys have the 1. The scores are right; compare one with np.dot.",
)
choice(
    "answer_silent_bug",
    "b",
    reason="Dividing is right: a high temperature makes scores small and weights even.",
)
choice(
    "answer_silent_bug",
    "c",
    right=True,
    reason="With scores (batch, n_q, n), axis 1 is the queries: each key spreads itself over "
    "them. weights.sum(axis=-1) is not 1. It was right while scores had two axes; axis=-1 is "
    "right for both. The square shape and the total hid it.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="(batch, n_q, n) @ (batch, n, d_v) is one matrix product per sentence. Nothing mixes.",
)

with exercise("mended_look_up"):
    wrong(
        "look_up_softmax_over_queries",
        {"softmax(scores / temperature)": "softmax(scores / temperature, axis=1)"},
        "This is still the bug: axis 1 holds the queries. The weights of a query are its shares among "
        "the keys, the last axis.",
    )
    wrong(
        "look_up_softmax_over_sentences",
        {"softmax(scores / temperature)": "softmax(scores / temperature, axis=0)"},
        "Your weights sum to 1 over the sentences. The weights of a query are its shares among the "
        "keys, the last axis.",
    )
    wrong(
        "look_up_without_an_axis",
        {"keys[:, None]": "keys"},
        "Queries (batch, n_q, d) and keys (batch, n, d) do not meet as they should: what stands before the "
        "features of the queries is taken for two batch axes. Line A of the given code is right.",
        seen="a trial with typical wrong answers",
    )
    wrong(
        "look_up_without_temperature",
        {"scores / temperature": "scores"},
        "The temperature has no effect on your weights. Each score is divided by it before the "
        "softmax.",
    )
    wrong(
        "look_up_temperature_multiplied",
        {"scores / temperature": "scores * temperature"},
        "You multiply the scores by the temperature. A high temperature makes weights more even: "
        "divide.",
    )
    wrong(
        "look_up_averages_the_keys",
        {"weights @ values": "weights @ keys"},
        "Your answers are averages of the keys. The keys only say where to look; the values are what "
        "one gets.",
    )
    wrong(
        "look_up_divides_once_more",
        {
            "weights = softmax(scores / temperature)":
                "weights = softmax(scores / temperature, axis=1)\n"
                "weights = weights / weights.sum(-1, keepdims=True)",
        },
        "Your rows sum to 1 now, but the softmax still runs over the queries: dividing afterwards "
        "does not give the right shares. Choose the axis of the softmax.",
    )
    wrong(
        "look_up_in_dtype_of_queries",
        {
            "return weights @ values, weights":
                "return (weights @ values).astype(queries.dtype), weights.astype(queries.dtype)",
        },
        "Your results have the dtype of the queries. With whole numbers there answers and weights "
        "are cut to whole numbers, with float32 digits of keys and values are lost.",
        seen="answers written blind",
    )
    wrong(
        "look_up_returns_weights_without_temperature",
        {"return weights @ values, weights": "return weights @ values, softmax(scores)"},
        "Your answers are right, and the weights that you return are not those they were made "
        "with: they come out as if the temperature were 1.",
        seen="answers written blind",
    )
    wrong(
        "look_up_divides_in_place",
        {"scores = sim": "queries /= temperature\nscores = sim", "scores / temperature": "scores"},
        "Queries are other ones after the call, or the call stops where they hold whole numbers, "
        "as when they are divided in place. Arguments are not changed.",
        seen="answers written blind",
    )

    wrong(
        "look_up_queries_not_turned_back",
        """
        batch, n_q, _ = queries.shape
        weights = softmax(similarity_scores(queries.transpose(1, 0, 2), keys) / temperature)
        answers = (weights[..., None, :] @ values)[..., 0, :]
        return answers.reshape(batch, n_q, -1), weights.reshape(batch, n_q, -1)
        """,
        "Your answers are right, but stand at other queries and sentences, as when queries and "
        "sentences change places for the look-up, and a reshape is to turn them back. A reshape "
        "keeps the order of the numbers; transpose turns axes.",
        seen="answers written blind",
    )

    wrong(
        "look_up_keys_repeated_in_another_order",
        """
        batch, n_q, d = queries.shape
        own_keys, own_values = np.tile(keys, (n_q, 1, 1)), np.tile(values, (n_q, 1, 1))
        scores = similarity_scores(queries.reshape(-1, d), own_keys)
        weights = softmax(scores / temperature)
        answers = (weights[..., None, :] @ own_values)[..., 0, :]
        return answers.reshape(batch, n_q, -1), weights.reshape(batch, n_q, -1)
        """,
        "Queries of yours meet keys of other sentences, as when keys are repeated in an order that "
        "is not that of the queries. Check first: np.tile repeats the whole batch, one copy behind "
        "the other, and np.repeat each sentence by itself.",
        seen="answers written blind",
    )

choice(
    "answer_again_room",
    "a",
    reason="The encoder makes twice as many states, but this decoder gets only the last one, and"
    " its size is that of every state.",
)
choice(
    "answer_again_room",
    "b",
    right=True,
    reason="One state of `d_h` numbers, whatever the length. The other states exist and are "
    "thrown away.",
)
choice(
    "answer_again_room",
    "c",
    reason="The size is the same, but no hard limit was near in lesson 1: 40 digits need 133 "
    "bits of 2048. What we found was a price, not a wall.",
)
choice(
    "answer_again_average",
    "a",
    reason="That is the sum of weight times value. The weights are divided by their sum, 8, "
    "first.",
)
choice(
    "answer_again_average",
    "b",
    right=True,
    reason="The normalised weights are 0.25, 0 and 0.75: 1 + 0 + 6.",
)
choice(
    "answer_again_average",
    "c",
    reason="That is the plain mean of the values. A weight of 0 means that its value is not "
    "looked at.",
)
choice(
    "answer_again_map",
    "a",
    right=True,
    reason="Any softmax of any scores makes such a map. Lesson 1 showed one before training.",
)
choice(
    "answer_again_map",
    "b",
    reason="The word vectors were random too. Nothing in the map is learned.",
)
choice(
    "answer_again_map",
    "c",
    reason="Training moved the large weights to other cells. The first map was no weak form of "
    "the second.",
)
