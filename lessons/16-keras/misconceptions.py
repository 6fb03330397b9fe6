"""Wrong implementations of lesson 16, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("KerasAttention"):
    wrong(
        "layer_no_scale",
        {" / math.sqrt(query.shape[-1])": ""},
        "Your scores are not divided by the square root of d_k.",
    )

    wrong(
        "layer_scaled_by_d_k",
        {"math.sqrt(query.shape[-1])": "query.shape[-1]"},
        "You divide the scores by d_k. It is the square root of d_k.",
    )

    wrong(
        "layer_scaled_by_the_values",
        {"math.sqrt(query.shape[-1])": "math.sqrt(value.shape[-1])"},
        "You take the root of the values' width. The scores are products of queries and keys: their width counts.",
    )

    wrong(
        "layer_scaled_by_the_length",
        {"math.sqrt(query.shape[-1])": "math.sqrt(key.shape[-2])"},
        "You take the root of the number of keys. The width of a key counts, its last axis.",
    )

    wrong(
        "layer_softmax_over_the_queries",
        {
            "weights = ops.softmax(scores, axis=-1)": "weights = ops.softmax(scores, axis=-2)",
            "ops.softmax(ops.where(mask, scores, -math.inf), axis=-1)":
                "ops.softmax(ops.where(mask, scores, -math.inf), axis=-2)",
        },
        "Your softmax runs over the queries. Each query spreads its weight over the keys, the last axis.",
    )

    wrong(
        "layer_mask_inverted",
        {
            "ops.where(mask, scores, -math.inf)": "ops.where(mask, -math.inf, scores)",
            "ops.where(mask, weights, 0.0)": "ops.where(mask, 0.0, weights)",
        },
        "Your mask says the opposite: True means may attend, in the course and in Keras.",
        seen="public issues: masks carried over from nn.MultiheadAttention, where True hides",
    )

    wrong(
        "layer_mask_after_the_softmax",
        {"ops.where(mask, scores, -math.inf)": "scores"},
        "Your mask acts on the weights only. What a hidden key would have got is lost, and the weights that are "
        "left no longer sum to 1.",
        seen="public questions on masks in custom layers",
    )

    wrong(
        "layer_mask_multiplied",
        {"ops.where(mask, scores, -math.inf)": "scores * ops.cast(mask, scores.dtype)",
         "weights = ops.where(mask, weights, 0.0)": ""},
        "It comes out as if the scores were multiplied by the mask. A score of 0 is a score like "
        "any other: the hidden key still gets weight.",
    )

    wrong(
        "layer_mask_multiplied_but_for_nothing",
        {"ops.where(mask, scores, -math.inf)": "scores * ops.cast(mask, scores.dtype)",
         "ops.where(mask, weights, 0.0)": "ops.where(ops.any(mask, axis=-1, keepdims=True), weights, 0.0)"},
        "Hidden keys get weight, as where the scores are multiplied by the mask. A score of 0 is a score like any "
        "other.",
        seen="answers written blind",
    )

    wrong(
        "layer_mask_added",
        {"ops.where(mask, scores, -math.inf)": "scores + ops.cast(mask, scores.dtype)",
         "weights = ops.where(mask, weights, 0.0)": ""},
        "It comes out as if the mask were added to the scores. True becomes 1 and False 0, so "
        "that nothing is hidden.",
        seen="additive masks, as in nn.MultiheadAttention's attn_mask of floats",
    )

    wrong(
        "layer_mask_ignored",
        {"if mask is None:": "if True:"},
        "With a mask your layer gives what it gives without one. A mask should hide keys.",
    )

    wrong(
        "layer_even_where_nothing_is_allowed",
        {"-math.inf": "-1e9", "weights = ops.where(mask, weights, 0.0)": ""},
        "A query that may attend to nothing attends to everything evenly, as when all its scores are the same "
        "large negative number. Its weights should be 0.",
        seen="Keras's attention layer, asked for its output alone",
    )

    wrong(
        "layer_nan_where_nothing_is_allowed",
        {"weights = ops.where(mask, weights, 0.0)": ""},
        "A query that may attend to nothing gets NaN, as from the softmax of a row of minus infinities: that is "
        "0/0. Its weights should be 0.",
    )

    wrong(
        "layer_nan_in_the_gradients",
        {"ops.where(mask, scores, -math.inf)": "scores + ops.log(ops.cast(mask, scores.dtype))"},
        "Your gradients are NaN where a query may attend to nothing. Where a mask is "
        "added, for one, the NaN of the softmax goes on to all scores of the row. where() passes no gradient to "
        "what it leaves out.",
        seen="additive masks made by a logarithm",
    )

    wrong(
        "layer_results_exchanged",
        {"return weights @ value, weights": "return weights, weights @ value"},
        "You return (weights, output). The output comes first.",
    )

    wrong(
        "layer_output_alone",
        {"return weights @ value, weights": "return weights @ value"},
        "You return one thing alone, as Keras's own layer does. Two are asked for: (output, weights).",
        seen="keras.layers.MultiHeadAttention without return_attention_scores",
    )

    wrong(
        "layer_value_before_key",
        {"(self, query, key, value, mask=None)": "(self, query, value, key, mask=None)"},
        "It goes wrong as in a call that takes (query, value, key). That is the order of "
        "keras.layers.MultiHeadAttention; here the key comes second.",
        seen="keras.layers.MultiHeadAttention's order of arguments",
    )

    wrong(
        "layer_all_axes_turned",
        {"ops.swapaxes(key, -1, -2)": "ops.transpose(key)"},
        "It goes wrong as where all axes are turned round, the leading ones too, which ops.transpose does without "
        "further arguments. Exchange the last two alone.",
    )

    wrong(
        "layer_weights_detached",
        {"return weights @ value, weights": "return weights @ value, ops.stop_gradient(weights)"},
        "No gradient flows through the weights that you return.",
    )

    wrong(
        "layer_all_detached",
        {"ops.cast(x, self.compute_dtype)": "ops.cast(ops.stop_gradient(x), self.compute_dtype)"},
        "No gradient reaches your inputs: something is detached, or converted to NumPy on the way.",
    )

    wrong(
        "layer_keys_detached",
        {"ops.swapaxes(key, -1, -2)": "ops.swapaxes(ops.stop_gradient(key), -1, -2)"},
        "No gradient reaches your keys.",
    )

    wrong(
        "layer_always_float64",
        {"ops.cast(x, self.compute_dtype)": 'ops.cast(x, "float64")'},
        "Your results are float64 whatever the layer's dtype is. They should have self.compute_dtype.",
    )

    wrong(
        "layer_softmax_twice",
        {"return weights @ value, weights":
            "weights = ops.softmax(weights, axis=-1); return weights @ value, weights"},
        "Your weights went through a softmax twice, which makes them nearly even.",
    )

    wrong(
        "layer_keys_as_values",
        {"return weights @ value, weights": "return weights @ key, weights"},
        "You average the keys. The output is made of the values.",
    )

    wrong(
        "layer_masked_weights_returned_only",
        {"weights = ops.softmax(ops.where(mask, scores, -math.inf), axis=-1)":
            "weights = ops.softmax(ops.where(mask, scores, -math.inf), axis=-1); unmasked = ops.softmax(scores, axis=-1)",
         "weights = ops.softmax(scores, axis=-1)\n": "weights = unmasked = ops.softmax(scores, axis=-1)\n",
         "return weights @ value, weights": "return unmasked @ value, weights"},
        "Your weights are masked, and your output is made of weights that are not.",
    )

    wrong(
        "layer_mask_kept",
        {
            "if mask is None:": """
                self.kept = getattr(self, "kept", None) if mask is None else mask
                mask = self.kept
                if mask is None:
            """
        },
        "After a call with a mask, a call of the same layer without one gives another output than a new layer, or "
        "an error, as where the mask is kept. Nothing of a call should be left on the layer.",
    )
    wrong(
        "layer_root_kept",
        {
            "scores = query @": """
                if not hasattr(self, "root"):
                    self.root = math.sqrt(query.shape[-1])
                scores = query @
            """,
            "/ math.sqrt(query.shape[-1])": "/ self.root",
        },
        "A layer that was called with one d_k gives another output for a second d_k than a new layer, as where the "
        "root is kept from the first call. Each call has its own d_k.",
    )
    wrong(
        "layer_mask_gets_a_third_axis",
        {
            "if mask is None:": """
                if mask is not None and len(mask.shape) == 2:
                    mask = mask[None]
                if mask is None:
            """
        },
        "Inputs without leading axes and a mask (n_q, n_k) give results with an axis too many, as where the mask "
        "gets an axis in front for a batch. Broadcasting needs none.",
        seen="answers written blind",
        edge=True,
    )
    wrong(
        "layer_false_everywhere_is_no_mask",
        {"if mask is None:": "if mask is None or not ops.any(mask):"},
        "With a mask that is False everywhere the weights are not 0, as when it is taken for no mask. Then no query "
        "may attend to anything: weights 0 and output 0.",
        seen="answers written blind",
    )

    wrong(
        "layer_mask_behind_the_texts",
        {
            "if mask is None:": """
                if mask is not None and mask.ndim == 3 and scores.ndim == 4:
                    mask = ops.expand_dims(mask, 1)
                if mask is None:
            """
        },
        "A mask of one axis fewer than the weights hides other keys than it should, or stops your code, "
        "as where its new axis is put at 1. Broadcasting adds axes in front.",
        seen="answers written blind",
        edge=True,
    )


with exercise("load_keras_weights"):
    wrong(
        "load_not_transposed",
        {"linear.weight.T.reshape(shape)": "linear.weight.reshape(shape)"},
        "Your kernels are not transposed. nn.Linear's weight is (out, in), and a kernel begins with in. The "
        "matrices are square, so nothing complains.",
        seen="public questions on moving weights between PyTorch and Keras",
    )

    wrong(
        "load_key_bias_left",
        {"moves.append((part.bias, linear.bias.reshape(part.bias.shape)))":
            'moves += [] if name == "key" else [(part.bias, linear.bias.reshape(part.bias.shape))]'},
        "You leave out the bias of the keys. It adds the same to all scores of a query, so no output shows it; but "
        "the layer was to hold all of the numbers.",
    )

    wrong(
        "load_only_inward_transposed",
        {"linear.weight.T.reshape(shape)": '(linear.weight if name == "output" else linear.weight.T).reshape(shape)'},
        "The numbers of output_dense stand in another order: W_o.weight is (out, in), and its kernel is (head, "
        "feature, out). All sizes fit, so nothing complains.",
    )

    wrong(
        "load_only_output_transposed",
        {"linear.weight.T.reshape(shape)": '(linear.weight.T if name == "output" else linear.weight).reshape(shape)'},
        "The kernels of queries, keys and values are not transposed: nn.Linear's weight is (out, in), a kernel "
        "begins with in.",
    )

    wrong(
        "load_heads_by_every_third",
        {"linear.weight.T.reshape(shape)":
            'linear.weight.T.reshape(shape) if name == "output" else linear.weight.T.reshape(d_model, d_head, heads).swapaxes(1, 2)'},
        "Your heads take every num_heads-th feature. A head's features stand side by side: cut into (head, feature).",
    )

    wrong(
        "load_inward_by_every_third",
        {
            "moves.append((part.kernel, linear.weight.T.reshape(shape)))": """
                into = linear.weight.T.reshape(d_model, d_head, heads).swapaxes(1, 2)
                moves.append((part.kernel, linear.weight.T.reshape(shape) if name == "output" else into))
            """,
            "moves.append((part.bias, linear.bias.reshape(part.bias.shape)))": """
                cut = linear.bias if name == "output" else linear.bias.reshape(d_head, heads).T
                moves.append((part.bias, cut))
            """,
        },
        "The heads of your queries, keys and values take every num_heads-th feature, in kernels and biases. A head's "
        "features stand side by side: cut into (head, feature).",
        seen="answers written blind",
    )

    wrong(
        "load_all_by_every_third",
        {
            "moves.append((part.kernel, linear.weight.T.reshape(shape)))": """
                last = (d_model, d_head, heads)
                into = linear.weight.T.reshape(last).swapaxes(1, 2)
                out = linear.weight.reshape(last).permute(2, 1, 0)
                moves.append((part.kernel, out if name == "output" else into))
            """,
            "moves.append((part.bias, linear.bias.reshape(part.bias.shape)))": """
                cut = linear.bias if name == "output" else linear.bias.reshape(d_head, heads).T
                moves.append((part.bias, cut))
            """,
        },
        "Your heads take every num_heads-th feature, in kernels and biases. A head's features stand side by side: cut "
        "into (head, feature).",
        seen="answers written blind",
    )

    wrong(
        "load_keys_and_queries_exchanged",
        {"attention.W_q, inward": "attention.W_k, inward",
         '("key", attention.W_k, inward)': '("key", attention.W_q, inward)'},
        "Queries and keys are exchanged.",
    )

    wrong(
        "load_keys_and_values_exchanged",
        {'("key", attention.W_k, inward)': '("key", attention.W_v, inward)',
         '("value", attention.W_v, inward)': '("value", attention.W_k, inward)'},
        "Keys and values are exchanged. Keras's call has the value second; its parts have names of their own.",
        seen="keras.layers.MultiHeadAttention's order of arguments",
    )

    wrong(
        "load_no_biases",
        {"moves.append((part.bias, linear.bias.reshape(part.bias.shape)))": ""},
        "The biases are not copied: Keras's start at 0, and yours are not 0 after training.",
    )

    wrong(
        "load_output_bias_forgotten",
        {"moves.append((part.bias, linear.bias.reshape(part.bias.shape)))":
            'moves += [(part.bias, linear.bias.reshape(part.bias.shape))] if name != "output" else []'},
        "The bias of output_dense is not copied.",
    )

    wrong(
        "load_inward_biases_forgotten",
        {"moves.append((part.bias, linear.bias.reshape(part.bias.shape)))":
            'moves += [(part.bias, linear.bias.reshape(part.bias.shape))] if name == "output" else []'},
        "Only the bias of output_dense is copied. Queries, keys and values have one too.",
    )

    wrong(
        "load_output_forgotten",
        {"for variable, numbers in moves:": "for variable, numbers in moves[:6]:"},
        "output_dense is not copied: it keeps the numbers that it had.",
    )

    wrong(
        "load_values_forgotten",
        {"for variable, numbers in moves:": "for variable, numbers in moves[:4] + moves[6:]:"},
        "value_dense is not copied: it keeps the numbers that it had.",
    )

    wrong(
        "load_memory_shared",
        {"variable.assign(numbers.detach())": "variable.value.data = numbers.detach()"},
        "Both layers share memory now: what changes one, changes the other. Copy the numbers.",
    )

    wrong(
        "load_no_look_at_sizes",
        {"if tuple(part.kernel.shape) != shape:": "if False:"},
        "The sizes are not all looked at before the first copy. assign refuses an array of another shape, but then "
        "what came before it has been copied already.",
    )

    wrong(
        "load_checked_one_by_one",
        {"moves.append((part.kernel, linear.weight.T.reshape(shape)))":
            "part.kernel.assign(linear.weight.T.reshape(shape).detach())",
         "moves.append((part.bias, linear.bias.reshape(part.bias.shape)))":
            "part.bias.assign(linear.bias.reshape(part.bias.shape).detach())"},
        "When the sizes are found not to fit, the first parts have been copied already. Look at all sizes before "
        "the first copy.",
    )

    wrong(
        "load_heads_checked_only",
        {"if tuple(part.kernel.shape) != shape:": "if keras_attention.num_heads != heads:"},
        "Not all sizes are looked at; for one, the number of heads alone is not enough. The widths can differ too: "
        "key_dim, value_dim, and what the layer "
        "was built for.",
    )

    wrong(
        "load_product_checked_only",
        {"if tuple(part.kernel.shape) != shape:": "if math.prod(part.kernel.shape) != math.prod(shape):",
         "linear.weight.T.reshape(shape)": "linear.weight.T.reshape(tuple(part.kernel.shape))"},
        "A layer with as many numbers is let through. Two heads of six features have as many as three heads of four, "
        "and are another layer.",
    )

    wrong(
        "load_assert_in_place_of_error",
        {"raise ValueError": "raise AssertionError"},
        "Sizes that differ should be a ValueError, not an AssertionError.",
    )

    wrong(
        "load_attention_frozen",
        {"d_model, heads = attention.W_q.in_features, attention.num_heads":
            "attention.requires_grad_(False); d_model, heads = attention.W_q.in_features, attention.num_heads"},
        "You freeze attention: its parameters can no longer be trained. detach() of a copy does not do that.",
    )

    wrong(
        "load_keras_frozen",
        {"variable.assign(numbers.detach())": "variable.assign(numbers.detach()); variable.trainable = False"},
        "The Keras layer's variables get no gradients, as when it is frozen. It should stay trainable.",
    )

    wrong(
        "load_returns_the_layer",
        {
            """
                for variable, numbers in moves:
                    variable.assign(numbers.detach())
            """: """
                for variable, numbers in moves:
                    variable.assign(numbers.detach())
                return keras_attention
            """,
        },
        "You return something. The layer is changed in place, and nothing is returned.",
    )

    wrong(
        "load_in_float32",
        {"variable.assign(numbers.detach())": "variable.assign(numbers.detach().float())"},
        "Between layers of float64 the numbers lose digits, as where they are made float32 on the way.",
    )

    wrong(
        "load_training_mode",
        {"moves = []": "attention.train()\nmoves = []"},
        "An attention in evaluation mode, or a part of it, is in training mode afterwards. It should be as it was, "
        "its mode too.",
    )

    wrong(
        "load_one_head_refused",
        {"if tuple(part.kernel.shape) != shape:":
            "if tuple(part.kernel.shape) != tuple(linear.weight.T.reshape(shape).squeeze().shape):"},
        "With a single head a Keras layer that fits is refused with a ValueError, as where squeeze() takes the "
        "heads' axis away. It stays, with length 1.",
        seen="answers written blind",
    )

choice(
    "answer_key_dim", "a",
    reason="That is eight heads of 64 features each: eight times as wide. It runs, and the output has the right "
    "shape.",
)
choice(
    "answer_key_dim", "b", right=True,
    reason="key_dim is the width of one head, 64 / 8, and value_dim is key_dim unless you say otherwise.",
)
choice(
    "answer_key_dim", "c",
    reason="num_heads comes first and is 8. This has 64 heads.",
)
choice(
    "answer_key_dim", "d",
    reason="value_dim is also the width of one head. This has values of 8 times 64 features.",
)

choice(
    "answer_mask", "a",
    reason="In Keras True means may attend, so this attends to the padding alone. And a mask needs an axis for the "
    "queries.",
)
choice(
    "answer_mask", "b",
    reason="The shape is right. True means may attend in Keras, so this attends to the padding alone.",
)
choice(
    "answer_mask", "c", right=True,
    reason="Turned round, and an axis of length 1 for the queries: (batch, 1, n_k), which serves every query and "
    "every head.",
)
choice(
    "answer_mask", "d",
    reason="Turned round, but the axis of length 1 is that of the keys: this hides whole queries, and no key.",
)

choice(
    "answer_silent_bug", "a",
    reason="The vector of word 0 is like any other, but a mask hangs on the result, and attention would read it.",
)
choice(
    "answer_silent_bug", "b",
    reason="key_dim is the width of one head: 4 times 4 is 16, as in lesson 5.",
)
choice(
    "answer_silent_bug", "c", right=True,
    reason="The mask is an attribute of the embedding's result. The sum is a new tensor, which has none.",
)
choice(
    "answer_silent_bug", "d",
    reason="Keras's attention reads the mask that hangs on its inputs. Here nothing hangs on x any more.",
)


# The right answer without KerasAttention, of which the wrong ones below are changes.
OF_DENSE_LAYERS = """
class KerasMultiHeadAttention(keras.layers.Layer):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model}, num_heads = {num_heads}")
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.W_q = keras.layers.Dense(d_model)
        self.W_k = keras.layers.Dense(d_model)
        self.W_v = keras.layers.Dense(d_model)
        self.W_o = keras.layers.Dense(d_model)

    def split(self, x):
        return keras.ops.reshape(x, (-1, x.shape[1], self.num_heads, self.d_head)).swapaxes(1, 2)

    def call(self, query, key=None, value=None, mask=None):
        ops = keras.ops
        if key is None:
            key = query
        if value is None:
            value = key
        Q, K, V = self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_v(value))
        scores = Q @ ops.swapaxes(K, 2, 3) / math.sqrt(self.d_head)
        if mask is not None:
            mask = ops.expand_dims(mask, -3)
            scores = ops.where(mask, scores, -1e30)
        weights = ops.softmax(scores, axis=-1)
        if mask is not None:
            weights = ops.where(mask, weights, 0.0)
        joined = ops.swapaxes(weights @ V, 1, 2)
        return self.W_o(ops.reshape(joined, query.shape)), weights
"""

with exercise("KerasMultiHeadAttention", base=OF_DENSE_LAYERS):
    wrong(
        "heads_reshaped_at_once",
        {
            "(-1, x.shape[1], self.num_heads, self.d_head)).swapaxes(1, 2)":
                "(-1, self.num_heads, x.shape[1], self.d_head))",
        },
        "Your heads hold numbers of several positions: the text is cut into pieces of the right shape, and not "
        "into heads. Check first: a single reshape to (batch, num_heads, n, d_head). Cut the last "
        "axis, then swap axes, as in lesson 5.",
        seen="public questions on custom layers: reshape in place of reshape and transpose",
    )

    wrong(
        "heads_joined_at_once",
        {"joined = ops.swapaxes(weights @ V, 1, 2)": "joined = weights @ V"},
        "The heads' weights are right, and your output mixes positions: heads are joined while their axis stands before "
        "the positions. Swap the two axes first, then reshape.",
        seen="public questions on custom layers: reshape in place of transpose and reshape",
    )

    wrong(
        "heads_every_other_feature",
        {
            "(-1, x.shape[1], self.num_heads, self.d_head)).swapaxes(1, 2)":
                "(-1, x.shape[1], self.d_head, self.num_heads)).transpose(1, 3)"
                ".swapaxes(2, 3)",
            "joined = ops.swapaxes(weights @ V, 1, 2)": "joined = ops.transpose(weights @ V, (0, 2, 3, 1))",
        },
        "A head of yours has features that stand apart (each num_heads-th one). A head's features stand side by "
        "side, as in lesson 5 and in nn.MultiheadAttention.",
    )

    wrong(
        "heads_scaled_by_d_model",
        {"math.sqrt(self.d_head)": "math.sqrt(query.shape[-1])"},
        "Your scores are divided by the root of d_model. A head's query has d_head features: that is the width whose root divides.",
        seen="public code: the scale of the whole layer in each head",
    )

    wrong(
        "heads_no_scale",
        {" / math.sqrt(self.d_head)": ""},
        "Your scores are not divided by the square root of the head's width.",
    )

    wrong(
        "heads_scaled_without_root",
        {"math.sqrt(self.d_head)": "self.d_head"},
        "You divide the scores by the head's width. It is the square root of that.",
    )

    wrong(
        "heads_softmax_over_queries",
        {"ops.softmax(scores, axis=-1)": "ops.softmax(scores, axis=-2)"},
        "Your softmax runs over the queries. Each query spreads its weight over the keys, the last axis.",
    )

    wrong(
        "heads_softmax_over_heads",
        {"ops.softmax(scores, axis=-1)": "ops.softmax(scores, axis=1)"},
        "Your softmax runs over the heads: for a query and a key the weights of the heads sum to 1. Each head "
        "spreads its own weight over the keys, the last axis.",
    )

    wrong(
        "heads_mask_inverted",
        {
            "ops.where(mask, scores, -1e30)": "ops.where(mask, -1e30, scores)",
            "ops.where(mask, weights, 0.0)": "ops.where(mask, 0.0, weights)",
        },
        "Your mask says the opposite: True means may attend, in the course and in Keras.",
        seen="masks carried over from nn.MultiheadAttention, where True hides",
    )

    wrong(
        "heads_mask_ignored",
        {"ops.where(mask, scores, -1e30)": "scores", "ops.where(mask, weights, 0.0)": "weights"},
        "The mask changes nothing in your results.",
    )

    wrong(
        "heads_mask_after_the_softmax",
        {"ops.where(mask, scores, -1e30)": "scores"},
        "Your mask acts on the weights only: what a hidden key would have got is lost, and the other weights of its "
        "row no longer sum to 1.",
    )

    wrong(
        "heads_mask_without_head_axis",
        {"mask = ops.expand_dims(mask, -3)": "mask = mask"},
        "The first axis of a mask (batch, n_q, n_k), the texts, meets the heads of your weights: the mask gets no axis "
        "for the heads, or gets it in front. It belongs third from the end.",
        seen="public questions: a padding mask (batch, 1, n) on weights of four axes",
        edge=True,
    )

    wrong(
        "heads_nothing_evenly",
        {"weights = ops.where(mask, weights, 0.0)": "pass"},
        "A query that may attend to nothing has equal weights on all keys in your layer. They should be 0.",
        seen="the large negative number of many published layers",
    )

    wrong(
        "heads_nothing_is_nan",
        {"-1e30": "-math.inf", "weights = ops.where(mask, weights, 0.0)": "pass"},
        "A query that may attend to nothing has NaN in your layer: a softmax over minus infinity alone is 0/0. Its "
        "weights should be 0.",
    )

    wrong(
        "heads_keys_as_values",
        {"self.W_v(value)": "self.W_v(key)"},
        "Your values are made of key, also where another value is given.",
    )

    wrong(
        "heads_value_is_query",
        {"value = key": "value = query"},
        "Where no value is given, yours is the query. It defaults to the key.",
    )

    wrong(
        "heads_one_projection",
        {"self.W_k(key)": "self.W_q(key)"},
        "Queries and keys come from one projection, W_q. Keys have their own, W_k.",
    )

    wrong(
        "heads_without_output_projection",
        {"self.W_o(ops.reshape(joined, query.shape))": "(self.W_o(query), ops.reshape(joined, query.shape))[1]"},
        "Your output are the joined heads. W_o comes last.",
    )

    wrong(
        "heads_no_bias",
        {
            "self.W_q = keras.layers.Dense(d_model)": "self.W_q = keras.layers.Dense(d_model, use_bias=False)",
            "self.W_k = keras.layers.Dense(d_model)": "self.W_k = keras.layers.Dense(d_model, use_bias=False)",
            "self.W_v = keras.layers.Dense(d_model)": "self.W_v = keras.layers.Dense(d_model, use_bias=False)",
            "self.W_o = keras.layers.Dense(d_model)": "self.W_o = keras.layers.Dense(d_model, use_bias=False)",
        },
        "Your Dense layers have no biases. Lesson 5's layers have, and so has Dense where nothing is said.",
    )

    wrong(
        "heads_of_d_head",
        {
            "self.W_q = keras.layers.Dense(d_model)": "self.W_q = keras.layers.Dense(self.d_head)",
            "self.W_k = keras.layers.Dense(d_model)": "self.W_k = keras.layers.Dense(self.d_head)",
            "self.W_v = keras.layers.Dense(d_model)": "self.W_v = keras.layers.Dense(self.d_head)",
            "return keras.ops.reshape(x, (-1, x.shape[1], self.num_heads, self.d_head)).swapaxes(1, 2)":
                "return keras.ops.repeat(keras.ops.expand_dims(x, 1), self.num_heads, axis=1)",
        },
        "Your W_q, W_k and W_v are as wide as one head, so that all heads see the same. They are "
        "Dense(d_model), and each head takes its own features of it.",
    )

    wrong(
        "heads_averaged",
        {"query.shape)), weights": "query.shape)), ops.mean(weights, axis=1)"},
        "Your weights are averaged over the heads, as nn.MultiheadAttention gives them. Here the weights of "
        "every head come back, (batch, num_heads, n_q, n_k).",
    )

    wrong(
        "heads_output_alone",
        {"query.shape)), weights": "query.shape))"},
        "One thing comes back. Two are asked for: the output and the weights.",
    )

    wrong(
        "heads_no_refusal",
        {"if d_model % num_heads": "if False"},
        "A d_model that is not a multiple of num_heads is taken, or refused at the first call alone. It should be a "
        "ValueError where the layer is made.",
    )

    wrong(
        "heads_detached",
        {"return self.W_o(ops.reshape(joined, query.shape)), weights": "return self.W_o(ops.reshape(joined, query.shape)), weights.detach()"},
        "No gradient flows through your weights: they are detached.",
    )
