"""Wrong implementations of lesson 2's exercises, and the choices of its short answers."""

import numpy as np
import torch

from autograder.course.implementations import choice, misconception

# --- similarity_scores ---------------------------------------------------------------


@misconception(
    "similarity_scores",
    "cosine",
    sentence="Your scores are cosines: both lengths are divided away. The plain dot product is "
    "asked for, in which a long key is loud and a long query is decided.",
    seen="Graves and others 2014 use cosine; often mixed up",
)
def similarity_scores(query, keys):
    scores = (keys @ query[..., None])[..., 0]
    lengths = np.linalg.norm(query, axis=-1)[..., None] * np.linalg.norm(keys, axis=-1)
    return scores / lengths


@misconception(
    "similarity_scores",
    "normalised_keys",
    sentence="Your keys are brought to length 1 before the product, so loud keys become quiet. "
    "Use the keys as they are.",
    seen="folklore",
)
def similarity_scores(query, keys):
    keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    return (keys @ query[..., None])[..., 0]


@misconception(
    "similarity_scores",
    "scaled_by_root_d",
    sentence="Your scores are divided by the root of d. That scale belongs to lesson 3; here the "
    "plain dot product is asked for.",
    seen="Vaswani and others 2017, one lesson too early",
)
def similarity_scores(query, keys):
    return (keys @ query[..., None])[..., 0] / np.sqrt(keys.shape[-1])


@misconception(
    "similarity_scores",
    "mean_in_place_of_sum",
    sentence="You average over the features; a dot product sums them. Your scores are d times "
    "too small, and so the weights will be too even.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return (query[..., None, :] * keys).mean(axis=-1)


@misconception(
    "similarity_scores",
    "negative_distance",
    sentence="Your score is minus the distance of query and key. The dot product is asked for: "
    "multiply feature by feature and add up.",
    seen="kernel regression",
)
def similarity_scores(query, keys):
    return -np.linalg.norm(query[..., None, :] - keys, axis=-1)


@misconception(
    "similarity_scores",
    "no_sum",
    sentence="You multiply feature by feature and do not add up, so the feature axis is still "
    "there. One number for each key is asked for.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return query[..., None, :] * keys * 1.0


@misconception(
    "similarity_scores",
    "sum_over_the_keys",
    sentence="You sum over the keys; the sum runs over the features, and one score for each key "
    "remains.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return (query[..., None, :] * keys).sum(axis=-2)


@misconception(
    "similarity_scores",
    "absolute_value",
    sentence="You take the absolute value. Opposites must score below zero: they are the "
    "worst match, not the best.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return np.abs((keys @ query[..., None])[..., 0])


@misconception(
    "similarity_scores",
    "one_query_only",
    sentence="Your code serves one query. With batch axes the matrix product takes the wrong "
    "axis of the query as features. Leading axes of query and keys must broadcast.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return 1.0 * (keys @ query)


@misconception(
    "similarity_scores",
    "transposes_all_axes",
    sentence="`.T` reverses all axes. That is right for keys of shape (n, d) and wrong as soon as "
    "keys have a batch axis.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return 1.0 * (query @ keys.T)


@misconception(
    "similarity_scores",
    "all_pairs_of_batches",
    sentence="np.inner pairs every batch of queries with every batch of keys. Batch axes "
    "broadcast: a query meets the keys of its own batch only.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return 1.0 * np.inner(query, keys)


@misconception(
    "similarity_scores",
    "batch_axis_taken_for_rows",
    sentence="`@` takes the last batch axis of the query as the rows of one matrix, so the queries "
    "of all batches meet all keys. Each query meets the keys of its own batch only.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * (query @ np.swapaxes(keys, -1, -2))


@misconception(
    "similarity_scores",
    "query_axis_kept",
    sentence="The axis that you inserted to make the query a matrix is still in the result. One "
    "score for each key: the shape is (..., n).",
    seen="folklore",
)
def similarity_scores(query, keys):
    return 1.0 * (query[..., None, :] @ np.swapaxes(keys, -1, -2))


@misconception(
    "similarity_scores",
    "axis_inserted_in_front",
    sentence="You insert the new axis in front of all batch axes. It must stand where the keys "
    "have n, right before the features; otherwise queries meet keys of other batches.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return 1.0 * (query[None] * keys).sum(axis=-1)


@misconception(
    "similarity_scores",
    "keys_without_batches",
    sentence="Your code allows batch axes in the query but none in the keys. Both may have them, "
    "and they broadcast in both directions.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return 1.0 * np.einsum("...d,nd->...n", query, keys)


@misconception(
    "similarity_scores",
    "query_without_batches",
    sentence="Your code allows batch axes in the keys but none in the query. Both may have them, "
    "and they broadcast in both directions.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return 1.0 * np.einsum("d,...nd->...n", query, keys)


@misconception(
    "similarity_scores",
    "no_axis_for_the_keys",
    sentence="query * keys lines up the axes from the right. With several queries the axis of the "
    "queries then meets the axis of the keys. Give the query an axis of length 1 where the keys "
    "have n.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return np.sum(1.0 * query * keys, axis=-1)


@misconception(
    "similarity_scores",
    "one_batch_axis",
    sentence="Your code knows exactly one batch axis or none. Any number of leading axes is "
    "allowed.",
    seen="folklore",
)
def similarity_scores(query, keys):
    if query.ndim == 1 and keys.ndim == 2:
        return 1.0 * np.einsum("d,nd->n", query, keys)
    if query.ndim == 1:
        return 1.0 * np.einsum("d,bnd->bn", query, keys)
    if keys.ndim == 2:
        return 1.0 * np.einsum("bd,nd->bn", query, keys)
    return 1.0 * np.einsum("bd,bnd->bn", query, keys)


@misconception(
    "similarity_scores",
    "equal_batches_only",
    sentence="Your code wants the same batch axes on query and keys. They broadcast: a query "
    "without batch axes serves all keys, and the reverse.",
    seen="folklore",
)
def similarity_scores(query, keys):
    if query.shape[:-1] != keys.shape[:-2] and query.ndim > 1 and keys.ndim > 2:
        raise ValueError("batch axes differ")
    return (1.0 * keys @ query[..., None])[..., 0]


@misconception(
    "similarity_scores",
    "single_precision",
    sentence="You compute in float32. float64 input must give float64 scores: the lost digits "
    "never come back.",
    seen="folklore",
)
def similarity_scores(query, keys):
    query, keys = query.astype(np.float32), keys.astype(np.float32)
    return (keys @ query[..., None])[..., 0]


@misconception(
    "similarity_scores",
    "precision_of_the_query",
    sentence="The scores get the query's type although the keys are more precise: a query of "
    "integers rounds them, one in float32 takes digits away. The widest input decides.",
    seen="folklore",
)
def similarity_scores(query, keys):
    return (keys @ query[..., None])[..., 0].astype(query.dtype)


@misconception(
    "similarity_scores",
    "keys_in_place",
    sentence="You multiply into the caller's keys (`keys *= ...`). The scores are right once; "
    "the next call finds other keys. Inputs are never changed.",
    seen="folklore",
)
def similarity_scores(query, keys):
    if keys.dtype == float and query.ndim < keys.ndim and query.shape[:-1] == keys.shape[:-2]:
        keys *= query[..., None, :]
        return keys.sum(axis=-1)
    return (1.0 * keys @ query[..., None])[..., 0]


# --- softmax -------------------------------------------------------------------------


@misconception(
    "softmax",
    "softmax_without_max",
    sentence="Your softmax overflows: e to the power of 1e4 is inf, and inf / inf is NaN. A "
    "number that is the same along the axis cancels, so you may choose it.",
    seen="folklore",
)
def softmax(x, axis=-1):
    e = np.exp(x)
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "max_of_the_whole_array",
    sentence="You subtract the largest score of the whole array. In a row far below it every "
    "exponential becomes 0, and the row has no weights left. Each row needs its own maximum.",
    seen="public implementations of attention",
)
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, initial=-1e300))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "always_the_last_axis",
    sentence="Your softmax ignores `axis` and always works along the last one.",
    seen="folklore",
)
def softmax(x, axis=-1):
    top = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "sum_over_the_last_axis",
    sentence="The maximum is taken along `axis`, the sum along the last axis. Both use `axis`.",
    seen="folklore",
)
def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "first_axis_by_default",
    sentence="Your softmax runs over the first axis when none is given. The default is the last "
    "one: each row is one query.",
    seen="folklore",
)
def softmax(x, axis=0):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "over_all_entries",
    sentence="You divide by the sum of the whole array. The weights of each row must sum to 1.",
    seen="folklore",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max())
    return e / e.sum()


@misconception(
    "softmax",
    "axis_not_kept",
    sentence="The reduced axis is not kept, so the division broadcasts the wrong way: an error "
    "for most shapes, and for square ones wrong weights without a word.",
    seen="folklore",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis))
    return e / e.sum(axis=axis)


@misconception(
    "softmax",
    "positive_axes_only",
    sentence="Your code mistakes a negative `axis`. -2 is the last axis but one.",
    seen="folklore",
)
def softmax(x, axis=-1):
    x = np.moveaxis(x * 1.0, abs(axis) if axis < -1 else axis, -1)
    top = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return np.moveaxis(e / np.where(total == 0, 1, total), -1, abs(axis) if axis < -1 else axis)


@misconception(
    "softmax",
    "nan_in_masked_rows",
    sentence="A row that is all -inf becomes NaN: -inf minus -inf is not 0. Such a row has "
    "nothing to look at and gets zeros.",
    seen="pytorch/pytorch issue 41508",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "uniform_in_masked_rows",
    sentence="A row that is all -inf gets the weight 1/n everywhere: it looks at everything it "
    "may not see. It must be zeros.",
    seen="masks written as -1e9, as in many public implementations",
)
def softmax(x, axis=-1):
    x = np.maximum(x, -1e9)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "nan_to_num_of_scores",
    sentence="You replace -inf by the score 0 before the softmax. Forbidden keys then get "
    "weight. The weight of -inf is exactly 0.",
    seen="folklore",
)
def softmax(x, axis=-1):
    x = np.where(np.isneginf(x), 0, x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "low_rows_count_as_masked",
    sentence="A row of very negative but finite scores gets zeros, as if it were masked. Only "
    "rows that are all -inf do; after the shift the size of the scores does not matter.",
    seen="folklore",
)
def softmax(x, axis=-1):
    top = np.maximum(x.max(axis=axis, keepdims=True), 0)
    e = np.exp(x - top)
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "epsilon_in_the_sum",
    sentence="You add a small number to the sum to avoid a division by zero. It changes every "
    "weight a little, and the weights no longer sum to 1.",
    seen="folklore",
)
def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-6)


@misconception(
    "softmax",
    "clipped_scores",
    sentence="You clip the scores so that exp does not overflow. All scores above the limit then "
    "get the same weight. Shift them; do not cut them.",
    seen="folklore",
)
def softmax(x, axis=-1):
    e = np.where(np.isneginf(x), 0, np.exp(np.clip(x, -500, 500)))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "divided_by_max",
    sentence="You divide the scores by the largest one. That is another temperature for every "
    "row and changes the weights. What cancels in the fraction is a subtraction.",
    seen="folklore",
)
def softmax(x, axis=-1):
    e = np.exp(x / x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "no_exponential",
    sentence="You divide the scores by their sum. Scores may be negative and their sum zero; the "
    "exponential makes them positive first.",
    seen="folklore",
)
def softmax(x, axis=-1):
    return x / x.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "powers_of_two",
    sentence="You take powers of 2. The softmax takes powers of e; with 2 the weights are more "
    "even, as at a higher temperature.",
    seen="folklore",
)
def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp2(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "log_of_the_weights",
    sentence="You return the logarithm of the weights. Averages need the weights themselves.",
    seen="folklore",
)
def softmax(x, axis=-1):
    x = x - x.max(axis=axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


@misconception(
    "softmax",
    "hard_argmax",
    sentence="You give all the weight to the largest score. That is the hard look-up; softmax "
    "gives some weight to every key.",
    seen="folklore",
)
def softmax(x, axis=-1):
    return (x == x.max(axis=axis, keepdims=True)) * 1.0


@misconception(
    "softmax",
    "not_normalised",
    sentence="Your weights do not sum to 1: the division by the sum is missing.",
    seen="folklore",
)
def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    return np.exp(x - np.where(np.isneginf(top), 0, top))


@misconception(
    "softmax",
    "integer_result",
    sentence="The result has the type of the input, so integer scores give weights cut to 0. "
    "The weights must be floating.",
    seen="folklore",
)
def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=axis, keepdims=True)
    return (e / np.where(total == 0, 1, total)).astype(x.dtype)


@misconception(
    "softmax",
    "integers_refused",
    sentence="Your code divides or exponentiates into an integer array and fails. Integer scores "
    "are allowed.",
    seen="folklore",
)
def softmax(x, axis=-1):
    x = x.copy()
    top = x.max(axis=axis, keepdims=True)
    x -= np.where(np.isneginf(top), 0, top).astype(x.dtype)
    np.exp(x, out=x)
    total = x.sum(axis=axis, keepdims=True)
    return x / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "single_precision",
    sentence="You compute in float32. float64 scores must give float64 weights.",
    seen="folklore",
)
def softmax(x, axis=-1):
    return torch.softmax(torch.tensor(x).float(), axis).nan_to_num(0.0).numpy()


@misconception(
    "softmax",
    "shift_in_place",
    sentence="`x -= ...` writes into the caller's array. The weights are right, but the caller's "
    "scores are gone. Make a new array.",
    seen="folklore",
)
def softmax(x, axis=-1):
    if x.dtype.kind != "f":
        x = x.astype(float)
    top = x.max(axis=axis, keepdims=True)
    x -= np.where(np.isneginf(top), 0, top)
    e = np.exp(x)
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@misconception(
    "softmax",
    "masked_rows_in_place",
    sentence="You write into the caller's array where a row is all -inf, and so take away the "
    "caller's mask. Treat such rows in an array of your own.",
    seen="folklore",
)
def softmax(x, axis=-1):
    x = np.asarray(x, dtype=float)
    dead = np.isneginf(x).all(axis=axis, keepdims=True)
    np.copyto(x, 0.0, where=dead)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.where(dead, 0.0, e / e.sum(axis=axis, keepdims=True))


# --- soft_lookup ---------------------------------------------------------------------


@misconception(
    "soft_lookup",
    "multiplied_by_temperature",
    sentence="You multiply by the temperature. Then a hot look-up becomes hard and a cold one "
    "even: the reverse of what a temperature does.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) * temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "temperature_ignored",
    sentence="The temperature has no effect on your weights. It decides how the weight is "
    "spread: it acts on the scores, before the softmax.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys))
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "temperature_after_the_softmax",
    sentence="You divide the weights by the temperature. They no longer sum to 1, and they are "
    "as spread as before. Divide the scores.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys)) / temperature
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "root_of_temperature",
    sentence="You divide by the root of the temperature. Divide by the temperature itself.",
    seen="mixed up with the root of d_k in Vaswani and others 2017",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / np.sqrt(temperature))
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "scaled_by_root_d",
    sentence="You divide by the root of d as well. That scale belongs to lesson 3; here the "
    "temperature is the only scale.",
    seen="Vaswani and others 2017, one lesson too early",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature / np.sqrt(keys.shape[-1]))
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "cosine",
    sentence="You compare by cosine. The scores are plain dot products, in which length counts.",
    seen="Graves and others 2014",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    query = query / np.linalg.norm(query, axis=-1, keepdims=True)
    keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "softmax_over_the_queries",
    sentence="Your softmax runs over the queries: each key spreads itself over them. Each query "
    "spreads its weight over the keys, the last axis of the scores.",
    seen="the classic of square score matrices",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature, axis=0)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "hard_lookup",
    sentence="You return the value of the best key alone. A soft look-up averages all values.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    scores = similarity_scores(query, keys)
    weights = (scores == scores.max(axis=-1, keepdims=True)) * 1.0
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "not_normalised",
    sentence="Your weights are exponentials that are not divided by their sum.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    scores = similarity_scores(query, keys) / temperature
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "unstable",
    sentence="At a small temperature your exponentials overflow and the weights become NaN. "
    "Use a softmax that shifts its scores.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = np.exp(similarity_scores(query, keys) / temperature)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "power_of_the_weights_unstable",
    sentence="You raise exponentials to the power 1/T and normalise afterwards. In theory that "
    "is the same; at a small temperature the powers overflow or vanish. Divide the scores.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys)) ** (1 / temperature)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "value_only",
    sentence="You return the answer alone. Return the answer and the weights, in this order.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :]


@misconception(
    "soft_lookup",
    "weights_first",
    sentence="You return the weights first. The order is: answer, weights.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return weights, (weights[..., None, :] @ values)[..., 0, :]


@misconception(
    "soft_lookup",
    "scores_in_place_of_weights",
    sentence="The second result is the scores: the softmax is missing, or you return what goes "
    "into it. The weights are asked for.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    scores = similarity_scores(query, keys) / temperature
    return (softmax(scores)[..., None, :] @ values)[..., 0, :], scores


@misconception(
    "soft_lookup",
    "averages_the_keys",
    sentence="You average the keys. What is averaged is the values; the keys only decide how much "
    "of each.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ keys)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "mean_of_the_weighted_values",
    sentence="You take the mean of the weighted values, which divides by n once more. The weights "
    "already sum to 1: add the weighted values up.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None] * values).mean(axis=-2), weights


@misconception(
    "soft_lookup",
    "values_without_batches",
    sentence="`weights @ values` is right for values without batch axes. With them, the batch "
    "axis of the weights is taken for a row of a matrix.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return weights @ values, weights


@misconception(
    "soft_lookup",
    "values_share_no_axes",
    sentence="The values must have the batch axes of the weights in your code. They broadcast: "
    "values may have fewer, more, or axes of length 1.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    values = np.broadcast_to(values, (*weights.shape, values.shape[-1]))
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "accepts_zero",
    sentence="A temperature of 0 or below gets through, or is quietly replaced by a small one. It "
    "is a ValueError: dividing by it means nothing, and the caller should learn of the "
    "mistake.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature < 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "accepts_negative",
    sentence="A negative temperature gets through and prefers the worst key. It is a ValueError.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature == 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "no_check",
    sentence="A temperature of 0 or below gets through, or is quietly replaced by a small one. It "
    "is a ValueError: dividing by it means nothing, and the caller should learn of the "
    "mistake.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "asserts",
    sentence="You use `assert`, which raises an AssertionError (and nothing at all under "
    "`python -O`). A wrong temperature is a ValueError.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    assert temperature > 0
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "repairs_the_temperature",
    sentence="A temperature of 0 or below gets through, or is quietly replaced by a small one. It "
    "is a ValueError: dividing by it means nothing, and the caller should learn of the "
    "mistake.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    temperature = max(temperature, 1e-12)
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "refuses_small_temperatures",
    sentence="You refuse temperatures that are small but allowed. Everything above 0 is allowed.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature < 1e-3:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "integer_value",
    sentence="The answer gets the type of the values, so integer values cut the average. It must "
    "be floating.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :].astype(values.dtype), weights


@misconception(
    "soft_lookup",
    "integer_scores_divided",
    sentence="You use `//`, which cuts the scores to whole numbers. Divide with `/`.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) // temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "single_precision",
    sentence="The results are float32. float64 input must give float64 results.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature).astype(np.float32)
    return (weights[..., None, :] @ values.astype(np.float32))[..., 0, :], weights


@misconception(
    "soft_lookup",
    "query_in_place",
    sentence="`query /= temperature` writes into the caller's query. The next look-up is another "
    "one. Make a new array.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    if query.dtype.kind == "f":
        query /= temperature
    else:
        query = query / temperature
    weights = softmax(similarity_scores(query, keys))
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "values_in_place",
    sentence="`values *= weights` writes into the caller's values: the next look-up averages "
    "values that are already weighted. Make a new array.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / temperature)
    if weights.shape == values.shape[:-1] and values.dtype.kind == "f":
        values *= weights[..., None]
        return values.sum(axis=-2), weights
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "epsilon_in_the_temperature",
    sentence="You add a small number to the temperature to avoid a division by zero. At a very "
    "small temperature that number decides. Zero is refused anyway, so nothing needs protection.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    weights = softmax(similarity_scores(query, keys) / (temperature + 1e-8))
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "one_batch_axis",
    sentence="Your formula names its axes and so knows one batch axis at most. Any number of "
    "leading axes is allowed, in each of the three arguments.",
    seen="folklore",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError(f"temperature must be larger than 0 and is {temperature}")
    if query.ndim == 1 and keys.ndim == 2 and values.ndim == 2:
        weights = softmax(np.einsum("d,nd->n", query, keys) / temperature)
        return np.einsum("n,nv->v", weights, values), weights
    if keys.ndim == 2 and values.ndim == 2:
        weights = softmax(np.einsum("bd,nd->bn", query, keys) / temperature)
        return np.einsum("bn,nv->bv", weights, values), weights
    weights = softmax(np.einsum("bd,bnd->bn", query, keys) / temperature)
    return np.einsum("bn,bnv->bv", weights, values), weights


# --- short answers -------------------------------------------------------------------

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

# --- met in trials with typical wrong answers -------------------------------------------


@misconception(
    "similarity_scores",
    "softmax_already",
    sentence="Your scores are already weights: they went through a softmax. Here the plain dot "
    "products are asked for; the softmax is an exercise of its own.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    scores = (keys @ query[..., None])[..., 0]
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@misconception(
    "similarity_scores",
    "sum_over_axis_1",
    sentence="Your sum runs over axis 1. That is the features for one query, and the keys for "
    "several. The features are always the last axis: count from the end.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * (query[..., None, :] * keys).sum(axis=1)


@misconception(
    "similarity_scores",
    "keys_as_rows",
    sentence="Your result has one row for each key. It has one row for each query: the axis of "
    "the keys comes last.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * np.inner(keys, query)


@misconception(
    "similarity_scores",
    "loop_over_whole_queries",
    sentence="Your code serves one query. With batch axes the matrix product takes the wrong "
    "axis of the query as features. Leading axes of query and keys must broadcast.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return np.array([1.0 * (query * key).sum() for key in keys])


@misconception(
    "similarity_scores",
    "loop_over_dots",
    sentence="Your code serves one query. With batch axes the matrix product takes the wrong "
    "axis of the query as features. Leading axes of query and keys must broadcast.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return np.array([1.0 * np.dot(key, query) for key in keys])


@misconception(
    "similarity_scores",
    "last_axis_kept",
    sentence="Your scores have an axis of length 1 at their end, from the column that you made "
    "of the query. One score for each key: the shape is (..., n).",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * keys @ query[..., None]


@misconception(
    "similarity_scores",
    "summed_axis_kept",
    sentence="Your scores have an axis of length 1 at their end, from the column that you made "
    "of the query. One score for each key: the shape is (..., n).",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return (1.0 * query[..., None, :] * keys).sum(axis=-1, keepdims=True)


@misconception(
    "similarity_scores",
    "torch_tensor",
    sentence="You return a torch tensor. This exercise asks for a NumPy array.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return torch.tensor((keys @ query[..., None])[..., 0])


@misconception(
    "similarity_scores",
    "two_rows_of_names",
    sentence="Your code knows exactly one batch axis or none. Any number of leading axes is "
    "allowed.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * np.einsum("id,jd->ij", query, keys)


@misconception(
    "similarity_scores",
    "axis_after_the_features",
    sentence="Your new axis makes the features of the query meet the axis of the keys. It "
    "belongs before the features, as the last axis but one, so that feature meets "
    "feature.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * (query[:, None] * keys).sum(axis=-1)


@misconception(
    "similarity_scores",
    "axis_at_the_end",
    sentence="Your new axis makes the features of the query meet the axis of the keys. It "
    "belongs before the features, as the last axis but one, so that feature meets "
    "feature.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * (query[..., None] * keys).sum(axis=-1)


@misconception(
    "similarity_scores",
    "a_list",
    sentence="You return a Python list. A NumPy array is asked for.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return [float(np.dot(query, key)) for key in keys]


@misconception(
    "similarity_scores",
    "a_list_of_array_scalars",
    sentence="You return a Python list. A NumPy array is asked for.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return [np.dot(query, key) for key in keys]


@misconception(
    "similarity_scores",
    "keys_not_turned_over",
    sentence="A product of query and keys pairs the last axis of the query with the last but one "
    "of the keys, and there the keys have n. The features of both have to meet.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * np.dot(query, keys)


@misconception(
    "similarity_scores",
    "keys_not_turned_over_matmul",
    sentence="A product of query and keys pairs the last axis of the query with the last but one "
    "of the keys, and there the keys have n. The features of both have to meet.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return 1.0 * (query @ keys)


@misconception(
    "similarity_scores",
    "returns_nothing",
    sentence="Your function returns nothing. Is there a return at its end?",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return None


@misconception(
    "softmax",
    "without_max_nan",
    sentence="Your softmax overflows: e to the power of 1e4 is inf, and inf / inf is NaN. A "
    "number that is the same along the axis cancels, so you may choose it.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "without_max_nan_to_num",
    sentence="Your softmax overflows: e to the power of 1e4 is inf, and inf / inf is NaN. A "
    "number that is the same along the axis cancels, so you may choose it.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x)
    return np.nan_to_num(e / e.sum(axis=axis, keepdims=True))


@misconception(
    "softmax",
    "max_of_the_whole_array_nan",
    sentence="You subtract the largest score of the whole array. In a row far below it every "
    "exponential becomes 0, and the row has no weights left. Each row needs its own "
    "maximum.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    if np.isneginf(x).all():
        return np.zeros(x.shape)
    e = np.exp(x - x.max())
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "adds_the_maximum",
    sentence="You add the maximum. Subtract it: the largest power is then 1, and nothing "
    "overflows.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x + x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "subtracts_the_mean",
    sentence="You subtract the mean. Scores far above it still overflow; what has to be "
    "subtracted is the largest of the row.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.mean(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "subtracts_the_smallest",
    sentence="You subtract the smallest score of the row. Then all exponents are positive, and "
    "the large ones overflow; what has to be subtracted is the largest.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.min(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "sum_axis_not_kept",
    sentence="The reduced axis is not kept, so the division broadcasts the wrong way: an error "
    "for most shapes, and for square ones wrong weights without a word.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis)


@misconception(
    "softmax",
    "sum_axis_not_kept_without_max",
    sentence="The reduced axis is not kept, so the division broadcasts the wrong way: an error "
    "for most shapes, and for square ones wrong weights without a word.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis=axis)


@misconception(
    "softmax",
    "max_axis_not_kept",
    sentence="The reduced axis is not kept, so the division broadcasts the wrong way: an error "
    "for most shapes, and for square ones wrong weights without a word.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "over_all_entries_with_row_maximum",
    sentence="You divide by the sum of the whole array. The weights of each row must sum to 1.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum()


@misconception(
    "softmax",
    "torch_tensor",
    sentence="You return a torch tensor. This exercise asks for a NumPy array.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return torch.softmax(torch.tensor(x), axis)


@misconception(
    "softmax",
    "torch_on_an_array",
    sentence="torch's softmax wants a tensor, and x is a NumPy array. The exercise asks for "
    "NumPy: exp, a sum, a division.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return torch.nn.functional.softmax(x, dim=axis)


@misconception(
    "softmax",
    "torch_on_an_array_function",
    sentence="torch's softmax wants a tensor, and x is a NumPy array. The exercise asks for "
    "NumPy: exp, a sum, a division.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return torch.softmax(x, dim=axis)


@misconception(
    "softmax",
    "torch_exp_of_an_array",
    sentence="torch's softmax wants a tensor, and x is a NumPy array. The exercise asks for "
    "NumPy: exp, a sum, a division.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return torch.exp(x)


@misconception(
    "softmax",
    "axis_inserted_for_two_axes",
    sentence="[:, None] puts the lost axis back for arrays of two axes only. x may have any "
    "number of them, one included: let max and sum keep their axis.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis)[:, None])
    return e / e.sum(axis=axis)[:, None]


@misconception(
    "softmax",
    "rows_of_a_matrix_only",
    sentence="Your loop goes through the rows of a matrix. x may have any number of axes, one "
    "included, and the softmax runs along axis.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.array([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in x])
    return e


@misconception(
    "softmax",
    "maximum_above_only",
    sentence="You subtract the maximum in the numerator and not in the sum below. It cancels "
    "only when both have it.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return np.exp(x - x.max(axis=axis, keepdims=True)) / np.exp(x).sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "maximum_below_only",
    sentence="You subtract the maximum in the sum below and not in the numerator. It cancels "
    "only when both have it.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return np.exp(x) / np.exp(x - x.max(axis=axis, keepdims=True)).sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "maximum_of_the_columns",
    sentence="Your maximum runs along the first axis. Within a row every score must lose the "
    "same number, or the weights change: the maximum is taken along axis, as the sum "
    "is.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "sum_over_the_first_axis",
    sentence="Your sum runs along the first axis. It runs along axis, so that each row sums to "
    "1.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=0)


@misconception(
    "softmax",
    "minus_the_scores",
    sentence="Your exponent has the wrong sign: the largest score gets the smallest weight. "
    "Subtract the maximum from the scores, not the scores from the maximum.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x.max(axis=axis, keepdims=True) - x)
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "minus_the_scores_from_zero",
    sentence="Your exponent has the wrong sign: the largest score gets the smallest weight. "
    "Subtract the maximum from the scores, not the scores from the maximum.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return np.exp(-x) / np.exp(-x).sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "returns_nothing",
    sentence="Your function returns nothing. Is there a return at its end?",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    return None


@misconception(
    "softmax",
    "whole_array_refused_as_masked",
    sentence="A row that is all -inf becomes NaN: -inf minus -inf is not 0. Such a row has "
    "nothing to look at and gets zeros.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    if np.isneginf(x).all():
        return np.zeros_like(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "any_minus_infinity_gives_zeros",
    sentence="You give zeros to a whole row as soon as one of its scores is -inf. Only that key "
    "is forbidden; the others share the weight.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    w = e / e.sum(axis=axis, keepdims=True)
    return np.where(np.isneginf(x).any(axis=axis, keepdims=True), 0.0, w)


@misconception(
    "soft_lookup",
    "answer_axis_kept",
    sentence="The axis that you inserted to make the weights a matrix is still in the answer. "
    "Its shape is (..., d_v).",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature)
    return weights[..., None, :] @ values, weights


@misconception(
    "soft_lookup",
    "value_of_the_best_key",
    sentence="You return the value of the best key alone. A soft look-up averages all values.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature)
    return values[weights.argmax(-1)], weights


@misconception(
    "soft_lookup",
    "sum_over_the_features",
    sentence="Your sum runs over the features of the weighted values. It runs over the keys, "
    "axis -2, and an answer as long as a value remains.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None] * values).sum(-1), weights


@misconception(
    "soft_lookup",
    "sum_over_the_first_axis",
    sentence="Your sum runs over the first axis, which is the queries here. It runs over the "
    "keys, axis -2 of the weighted values.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None] * values).sum(0), weights


@misconception(
    "soft_lookup",
    "weights_meet_the_features",
    sentence="weights * values lines up the axes from the right, so the weights meet the "
    "features of the values. They belong to the keys: the weights need one more axis, "
    "of length 1, at their end.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights * values).sum(-2), weights


@misconception(
    "soft_lookup",
    "values_at_the_left",
    sentence="`values @ weights` pairs the features of the values with the queries. The weights "
    "stand on the left: each row of them weighs the rows of the values.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature)
    return values @ weights, weights


@misconception(
    "soft_lookup",
    "temperature_as_the_axis",
    sentence="You hand the temperature to softmax as its second argument, and that is the axis. "
    "Divide the scores by it before.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(similarity_scores(query, keys), temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "temperature_twice",
    sentence="You divide twice by the temperature: query and keys by it each. The scores are "
    "then divided by its square.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "refuses_below_1",
    sentence="You refuse temperatures that are small but allowed. Everything above 0 is allowed.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature < 1:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "values_by_np_dot",
    sentence="`weights @ values` is right for values without batch axes. With them, the batch "
    "axis of the weights is taken for a row of a matrix.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature)
    return np.dot(weights, values), weights


@misconception(
    "soft_lookup",
    "answer_divided",
    sentence="The temperature has no effect on your weights. It decides how the weight is "
    "spread: it acts on the scores, before the softmax.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys))
    return (weights[..., None, :] @ values)[..., 0, :] / temperature, weights


@misconception(
    "soft_lookup",
    "no_softmax",
    sentence="The second result is the scores: the softmax is missing, or you return what goes "
    "into it. The weights are asked for.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = similarity_scores(query, keys) / temperature
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "temperature_on_the_weights_and_again",
    sentence="You apply softmax twice. Once is enough: weights that go through it again become "
    "nearly even.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(softmax(similarity_scores(query, keys) / temperature))
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "returns_nothing",
    sentence="Your function returns nothing. Is there a return at its end?",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    return None


@misconception(
    "similarity_scores",
    "vdot",
    sentence="Your code serves one query. With batch axes the matrix product takes the wrong "
    "axis of the query as features. Leading axes of query and keys must broadcast.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return np.array([1.0 * np.vdot(query, key) for key in keys])


@misconception(
    "similarity_scores",
    "cosine_with_epsilon",
    sentence="Your scores are cosines: both lengths are divided away. The plain dot product is "
    "asked for, in which a long key is loud and a long query is decided.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    query = query / (np.linalg.norm(query, axis=-1, keepdims=True) + 1e-8)
    keys = keys / (np.linalg.norm(keys, axis=-1, keepdims=True) + 1e-8)
    return (keys @ query[..., None])[..., 0]


@misconception(
    "similarity_scores",
    "negative_squared_distance",
    sentence="Your score is minus the squared distance of query and key. The dot product is "
    "asked for: multiply feature by feature and add up.",
    seen="a trial with typical wrong answers",
)
def similarity_scores(query, keys):
    return -((query[..., None, :] - keys) ** 2).sum(axis=-1) * 1.0


@misconception(
    "softmax",
    "largest_absolute_value",
    sentence="You subtract the largest absolute value. In a row of very negative scores every "
    "exponential then becomes 0. Subtract the largest score itself, which may be "
    "negative.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    e = np.exp(x - np.abs(x).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@misconception(
    "softmax",
    "no_exponential_after_the_shift",
    sentence="There is no exponential in your softmax: you divide the shifted scores by their "
    "sum.",
    seen="a trial with typical wrong answers",
)
def softmax(x, axis=-1):
    x = x - x.max(axis=axis, keepdims=True)
    return x / x.sum(axis=axis, keepdims=True)


@misconception(
    "soft_lookup",
    "weights_turned_over",
    sentence="Your weights are transposed before the product. One row of weights for each query "
    "stands on the left of the values as it is.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(similarity_scores(query, keys) / temperature)
    return weights.T @ values, weights


@misconception(
    "soft_lookup",
    "formula_of_rows",
    sentence="Your formula names its axes and so knows one batch axis at most. Any number of "
    "leading axes is allowed, in each of the three arguments.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(similarity_scores(query, keys) / temperature)
    return np.einsum("bn,nd->bd", weights, values), weights


@misconception(
    "soft_lookup",
    "axis_at_place_1",
    sentence="Your new axis makes the weights meet the features of the values. They belong to "
    "the keys: the axis of length 1 stands at the end of the weights.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(similarity_scores(query, keys) / temperature)
    return (weights[:, None] * values).sum(-2), weights


@misconception(
    "soft_lookup",
    "softmax_axis_1",
    sentence="Your softmax runs over axis 1. That is the keys for several queries, and does not "
    "exist for one query alone. Count from the end.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    if temperature <= 0:
        raise ValueError
    weights = softmax(similarity_scores(query, keys) / temperature, axis=1)
    return (weights[..., None, :] @ values)[..., 0, :], weights


@misconception(
    "soft_lookup",
    "power_of_the_weights",
    sentence="You raise the weights to the power 1/T, and they no longer sum to 1. Divide the "
    "scores by the temperature, before the softmax.",
    seen="a trial with typical wrong answers",
)
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(similarity_scores(query, keys)) ** (1 / temperature)
    return (weights[..., None, :] @ values)[..., 0, :], weights
