"""Wrong implementations of lesson 4, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

# The right answer in few words, of which the wrong ones below are changes.
SHORT_SELF_ATTENTION = """
class SelfAttention:
    def __init__(self, d_model, d_k, d_v, rng):
        self.W_q = rng.standard_normal((d_model, d_k)) / math.sqrt(d_model)
        self.W_k = rng.standard_normal((d_model, d_k)) / math.sqrt(d_model)
        self.W_v = rng.standard_normal((d_model, d_v)) / math.sqrt(d_model)

    def forward(self, X, mask=None):
        Q, K, V = X @ self.W_q, X @ self.W_k, X @ self.W_v
        output, weights = scaled_dot_product_attention(Q, K, V, mask)
        return output, weights
"""


with exercise("SelfAttention", base=SHORT_SELF_ATTENTION):
    wrong(
        "self_one_draw_for_all",
        {
            "self.W_k = rng.standard_normal((d_model, d_k)) / math.sqrt(d_model)":
                "self.W_k = self.W_q.copy()",
        },
        "W_q and W_k are the same random numbers. Then all scores are symmetric: each word finds "
        "another exactly as it is found. They are three independent draws.",
    )

    wrong(
        "self_zeros",
        {
            "self.W_q = rng.standard_normal": "self.W_q = np.zeros",
            "self.W_k = rng.standard_normal": "self.W_k = np.zeros",
            "rng.standard_normal((d_model, d_v))": "np.zeros((d_model, d_v))",
        },
        "All numbers of a matrix are the same, such as 0 or 1. Then all features of a query are "
        "equal, and no training could tell them apart. The matrices should be random draws from "
        "rng.",
    )

    wrong(
        "self_global_random",
        {
            "self.W_q = rng.standard_normal((d_model, d_k))":
                "self.W_q = np.random.randn(d_model, d_k)",
            "self.W_k = rng.standard_normal((d_model, d_k))":
                "self.W_k = np.random.randn(d_model, d_k)",
            "rng.standard_normal((d_model, d_v))": "np.random.randn(d_model, d_v)",
        },
        "Your draws come from NumPy's global random state, and not all from rng. Then the same "
        "generator gives different layers, and other people's random numbers change.",
    )

    wrong(
        "self_global_torch",
        """
            class SelfAttention:
                def __init__(self, d_model, d_k, d_v, rng):
                    self.W_q = torch.randn(d_model, d_k).numpy() / 4
                    self.W_k = torch.randn(d_model, d_k).numpy() / 4
                    self.W_v = torch.randn(d_model, d_v).numpy() / 4
                def forward(self, X, mask=None):
                    return scaled_dot_product_attention(X @ self.W_q, X @ self.W_k, X @ self.W_v, mask)
        """,
        "Your draws come from torch's global random state, and not all from rng. Use the methods "
        "of the generator that you are given.",
    )

    wrong(
        "self_seeds_the_global_state",
        {
            "self.W_q = rng.standard_normal((d_model, d_k)) / math.sqrt(d_model)": """
                np.random.seed(int(rng.integers(2**31)))
                self.W_q = np.random.randn(d_model, d_k) / math.sqrt(d_model)
            """,
            "self.W_k = rng.standard_normal((d_model, d_k))":
                "self.W_k = np.random.randn(d_model, d_k)",
            "rng.standard_normal((d_model, d_v))": "np.random.randn(d_model, d_v)",
        },
        "You seed NumPy's global random state. The layer is reproducible, but every other user of "
        "the global state is disturbed. Draw with rng's own methods.",
    )

    wrong(
        "self_shapes_transposed",
        """
            class SelfAttention:
                def __init__(self, d_model, d_k, d_v, rng):
                    self.W_q, self.W_k = rng.standard_normal((2, d_k, d_model)) / 4
                    self.W_v = rng.standard_normal((d_v, d_model)) / 4
                def forward(self, X, mask=None):
                    return scaled_dot_product_attention(X @ self.W_q.T, X @ self.W_k.T, X @ self.W_v.T, mask)
        """,
        "The matrices have the shape (d_out, d_in), as in nn.Linear. Here X @ W is computed, so W "
        "has the shape (d_in, d_out).",
        seen="nn.Linear keeps its weight transposed",
    )

    wrong(
        "self_values_of_width_d_k",
        {"d_model, d_v": "d_model, d_k"},
        "W_v has d_k columns. Values have a length of their own, d_v: only queries and keys must "
        "agree.",
    )

    wrong(
        "self_transposes_when_called",
        {
            "X @ self.W_q, X @ self.W_k, X @ self.W_v":
                "(X @ (W.T if len(W) == len(W.T) else W) for W in (self.W_q, self.W_k, self.W_v))",
        },
        "forward multiplies with the transposed matrices. When d_model and d_k are equal that "
        "raises no error and gives other numbers. The formula is X W.",
        seen="nn.Linear keeps its weight transposed",
    )

    wrong(
        "self_no_projections",
        {"X @ self.W_q, X @ self.W_k, X @ self.W_v": "X, X, X"},
        "The words themselves are queries, keys and values. Each word then attends mostly to "
        "itself. Project X with the three matrices first.",
    )

    wrong(
        "self_keys_from_w_q",
        {"@ self.W_k": "@ self.W_q"},
        "Your scores are those of queries and keys that are both made with W_q: W_k has no part "
        "in them. They are then symmetric. Check first: is a line copied and not changed?",
    )

    wrong(
        "self_queries_from_w_k",
        {"@ self.W_q": "@ self.W_k"},
        "Your scores are those of queries and keys that are both made with W_k: W_q has no part "
        "in them. They are then symmetric. Check first: is a line copied and not changed?",
    )

    wrong(
        "self_values_are_x",
        {"@ self.W_v": ""},
        "The average is taken over the words themselves: W_v has no part in it. A word gives its "
        "value, and the output has d_v features.",
    )

    wrong(
        "self_values_from_w_k",
        {"@ self.W_v": "@ self.W_k"},
        "The values are made with W_k. A word then gives what it is found by. The values have a "
        "projection of their own.",
    )

    wrong(
        "self_query_and_key_exchanged",
        {"@ self.W_q": "@ self.W_k", "@ self.W_k": "@ self.W_q"},
        "Queries and keys are exchanged, in the matrices that make them or in their product: row "
        "i then says who looks at word i, not where word i looks.",
    )

    wrong(
        "self_matrices_kept_from_the_start",
        {
            "self.W_v = rng.standard_normal((d_model, d_v)) / math.sqrt(d_model)": """
                self.W_v = rng.standard_normal((d_model, d_v)) / math.sqrt(d_model)
                self._all = [self.W_q.copy(), self.W_k.copy(), self.W_v.copy()]
            """,
            "X @ self.W_q, X @ self.W_k, X @ self.W_v": "(X @ W for W in self._all)",
        },
        "forward uses something of W_q, W_k or W_v as it was when the layer was built: for one, copies "
        "of them, or a product. Whoever loads other weights there gets results of the old ones.",
    )

    wrong(
        "self_views_kept_from_the_start",
        {
            "d_v)) / math.sqrt(d_model)":
                "d_v)) / math.sqrt(d_model); self._all = [self.W_q, self.W_k, self.W_v]",
            "X @ self.W_q, X @ self.W_k, X @ self.W_v": "(X @ W for W in self._all)",
        },
        "forward keeps the arrays that were drawn at the start. A change inside them is seen, but "
        "an attribute that is replaced by another array is not.",
    )

    wrong(
        "self_no_scale",
        {"(Q,": "(Q * math.sqrt(Q.shape[-1]),"},
        "The scores are not divided by the square root of d_k, so the weights are too hard.",
    )

    wrong(
        "self_scale_of_d_model",
        {"(Q,": "(Q * math.sqrt(Q.shape[-1] / X.shape[-1]),"},
        "The scores are divided by the square root of d_model. A score is a sum over the d_k "
        "features of a query, so d_k counts.",
    )

    wrong(
        "self_mask_ignored",
        {"V, mask": "V"},
        "The mask has no effect: forbidden words get weight. Check first: is it passed on?",
    )

    wrong(
        "self_mask_inverted",
        {"V, mask": "V, None if mask is None else ~mask"},
        "The mask hides where it is True. In this course True means: may attend. "
        "nn.MultiheadAttention has it the other way round.",
        seen="nn.MultiheadAttention",
    )

    wrong(
        "self_empty_rows_nan",
        {
            "output, weights = scaled_dot_product_attention(Q, K, V, mask)": """
                s = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
                s = s if mask is None else np.where(mask, s, -np.inf)
                with np.errstate(all="ignore"):
                    weights = np.exp(s - s.max(-1, keepdims=True))
                    weights = weights / weights.sum(-1, keepdims=True)
                output = weights @ V
            """,
        },
        "A word that may attend to nothing gives NaN: its row is 0 / 0, or minus infinity minus "
        "itself. Its weights and its output should be 0.",
    )

    wrong(
        "self_empty_rows_even",
        {
            "output, weights = scaled_dot_product_attention(Q, K, V, mask)": """
                s = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
                s = s if mask is None else np.where(mask, s, -1e9)
                weights = np.exp(s - s.max(-1, keepdims=True))
                weights = weights / weights.sum(-1, keepdims=True)
                output = weights @ V
            """,
        },
        "A word that may attend to nothing attends to everything evenly, as when a large negative "
        "number stands for minus infinity. Its weights and output should be 0.",
        seen="published code with -1e9",
    )

    wrong(
        "self_one_text_only",
        {
            "output, weights = scaled_dot_product_attention(Q, K, V, mask)": """
                s = Q @ K.T / math.sqrt(Q.shape[-1])
                s = s if mask is None else np.where(mask, s, -1e300)
                weights = np.exp(s - s.max(-1, keepdims=True))
                weights = weights / weights.sum(-1, keepdims=True)
                weights = weights if mask is None else weights * mask
                output = weights @ V
            """,
        },
        "The axes of the keys are all turned around, as by .T, the batch axes too. With batches "
        "only the last two axes of the keys are exchanged.",
        edge=True,
    )

    wrong(
        "self_attends_across_the_batch",
        {
            "Q, K, V =": "X = np.swapaxes(X, 0, -2) if X.ndim > 2 else X; Q, K, V =",
            "return output": "return np.swapaxes(output, 0, -2) if X.ndim > 2 else output",
        },
        "The words attend along the batch axis, to words of other texts. The positions are axis "
        "-2.",
        seen="torch issues: nn.MultiheadAttention without batch_first",
    )

    wrong(
        "self_no_softmax",
        {
            "output, weights = scaled_dot_product_attention(Q, K, V, mask)": """
                s = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
                weights = s if mask is None else np.where(mask, s, 0.0)
                output = weights @ V
            """,
        },
        "The scores are used as weights, without the softmax. Rows of weights are positive and "
        "sum to 1.",
    )

    wrong(
        "self_adds_x",
        {"return output": "return output + X if output.shape == X.shape else output"},
        "X is added to the output. That residual connection comes in a later lesson; here the "
        "output is only the average of the values.",
        seen="the transformer block",
    )

    wrong(
        "self_output_only",
        {"return output, weights": "return output"},
        "You return one thing only. forward returns two: the output and the weights.",
    )

    wrong(
        "self_order_of_results",
        {"return output, weights": "return weights, output"},
        "You return (weights, output). The course's order is (output, weights).",
    )

    wrong(
        "self_scores_as_weights",
        {
            "return output, weights":
                "return output, Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])",
        },
        "The second result is the matrix of scores before the softmax. It should be the weights.",
    )

    wrong(
        "self_in_place",
        {"Q, K, V =": "X *= 1.001; Q, K, V ="},
        "X is changed in place. The caller's word vectors must stay as they are.",
    )

    wrong(
        "self_mask_in_place",
        {
            "return output": """
                if mask is not None:
                    mask[...] |= ~mask.any(-1, keepdims=True)
                return output
            """,
        },
        "The mask is changed in place: empty rows are opened. The caller's mask must stay as it "
        "is.",
    )

    wrong(
        "self_float32",
        {
            "(Q, K, V, mask)": "(np.float32(Q), np.float32(K), np.float32(V), mask)",
            "return output, weights": "return np.float64(output), np.float64(weights)",
        },
        "The computation goes through float32. Float64 word vectors should keep their precision.",
    )

    wrong(
        "self_dtype_of_x",
        {
            "X @ self.W_q, X @ self.W_k, X @ self.W_v":
                "(X @ W.astype(X.dtype) for W in (self.W_q, self.W_k, self.W_v))",
        },
        "The projections are cast to the dtype of X. With integer word vectors everything behind "
        "the point is cut off.",
    )

    wrong(
        "self_values_not_kept",
        {"self.W_v =": "W_v ="},
        "W_v is no attribute of the layer: it is a local variable, or has another name. Each "
        "matrix should be an attribute of self.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "self_x_in_dtype_of_the_matrices",
        {"Q, K, V =": "X = X.astype(np.float64).astype(self.W_q.dtype); Q, K, V ="},
        "With whole numbers in W_q your results are those of an X whose fractions are cut off, as "
        "when X is brought to the dtype of a matrix. The result is as precise as the most precise "
        "of them.",
        seen="answers written blind",
    )

    wrong(
        "self_batch_of_one_loses_its_axis",
        {
            "return output, weights": """
                one = X.ndim == 3 and len(X) == 1
                return (output[0], weights[0]) if one else (output, weights)
            """,
        },
        "A batch of one text, (1, n, d_model), comes out without its batch axis. An axis of length "
        "1 is an axis, too: it stays.",
        seen="answers written blind",
    )

    wrong(
        "self_parts_of_a_block_overlap",
        {
            "self.W_v = rng.standard_normal((d_model, d_v)) / math.sqrt(d_model)": """
                block = rng.standard_normal((d_model, d_v)) / math.sqrt(d_model)
                self.W_v = np.concatenate([self.W_k[:, -1:], block[:, 1:]], axis=1)
            """,
        },
        "Two of your three matrices have numbers in common, as when one block is cut up and the "
        "parts overlap: for one, a part that begins a column too early. They are three independent "
        "draws.",
        seen="answers written blind",
    )


# The same in steps, with a name for each result.
TORCH_SELF_ATTENTION_IN_STEPS = """
class TorchSelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)
    def forward(self, X, mask=None):
        Q, K, V = self.W_q(X), self.W_k(X), self.W_v(X)
        output, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
        return output, weights
"""


with exercise("TorchSelfAttention", base=TORCH_SELF_ATTENTION_IN_STEPS):
    wrong(
        "torch_self_with_bias",
        {
            "self.W_q = nn.Linear(d_model, d_k, bias=False)": "self.W_q = nn.Linear(d_model, d_k)",
            "self.W_k = nn.Linear(d_model, d_k, bias=False)": "self.W_k = nn.Linear(d_model, d_k)",
            "d_v, bias=False": "d_v",
        },
        "There is a bias in your projections. Here all three are plain matrix products: nn.Linear "
        "adds a bias unless you say otherwise.",
        seen="default of nn.Linear",
    )

    wrong(
        "torch_self_value_with_bias",
        {"d_v, bias=False": "d_v"},
        "W_v has a bias. It moves every output of a word that attends to something, and not that "
        "of a word that attends to nothing. All three projections have none.",
    )

    wrong(
        "torch_self_sizes_exchanged",
        {
            "self.W_q = nn.Linear(d_model, d_k, bias=False)":
                "self.W_q = nn.Linear(d_k, d_model, bias=False)",
            "self.W_k = nn.Linear(d_model, d_k, bias=False)":
                "self.W_k = nn.Linear(d_k, d_model, bias=False)",
            "d_model, d_v": "d_v, d_model",
        },
        "The sizes of nn.Linear are exchanged. It takes the number of input features first.",
    )

    wrong(
        "torch_self_values_of_width_d_k",
        {"d_model, d_v": "d_model, d_k"},
        "W_v gives d_k features. Values have a length of their own, d_v.",
    )

    wrong(
        "torch_self_one_layer_for_both",
        {"self.W_k = nn.Linear(d_model, d_k, bias=False)": "self.W_k = self.W_q"},
        "W_q and W_k are the same object, so queries and keys share their numbers and all scores "
        "are symmetric. Each needs a layer of its own.",
    )

    wrong(
        "torch_self_parameters_not_linear",
        """
            class TorchSelfAttention(nn.Module):
                def __init__(self, d_model, d_k, d_v):
                    super().__init__()
                    self.W_q = nn.Parameter(torch.randn(d_model, d_k))
                    self.W_k = nn.Parameter(torch.randn(d_model, d_k))
                    self.W_v = nn.Parameter(torch.randn(d_model, d_v))
                def forward(self, X, mask=None):
                    return torch_scaled_dot_product_attention(X @ self.W_q, X @ self.W_k, X @ self.W_v, mask)
        """,
        "W_q, W_k and W_v are bare parameters. The exercise asks for nn.Linear layers, so that "
        "weights can be loaded and looked at in the usual way.",
    )

    wrong(
        "torch_self_not_a_module",
        {"(nn.Module)": "", "super().__init__()": ""},
        "The class is no nn.Module, so an optimizer does not find its parameters.",
    )

    wrong(
        "torch_self_frozen",
        {"d_v, bias=False)": "d_v, bias=False); self.requires_grad_(False)"},
        "The projections do not require a gradient: the layer cannot learn.",
    )

    wrong(
        "torch_self_weights_transposed",
        {
            "self.W_q(X), self.W_k(X), self.W_v(X)": """
                (
                    X @ W.weight if W.in_features == W.out_features else W(X)
                    for W in (self.W_q, self.W_k, self.W_v)
                )
            """,
        },
        "The weight of nn.Linear is used as if it had the shape (d_in, d_out). When both are "
        "equal no error shows it.",
        seen="nn.Linear keeps its weight transposed",
    )

    wrong(
        "torch_self_no_projections",
        {"self.W_q(X), self.W_k(X), self.W_v(X)": "X, X, X"},
        "The words themselves are queries, keys and values. Use the three projections.",
    )

    wrong(
        "torch_self_keys_from_w_q",
        {"self.W_k(X)": "self.W_q(X)"},
        "Your scores are those of queries and keys that are both made with W_q: W_k has no part "
        "in them. They are then symmetric, and W_k gets no gradient from them.",
    )

    wrong(
        "torch_self_queries_from_w_k",
        {"self.W_q(X)": "self.W_k(X)"},
        "Your scores are those of queries and keys that are both made with W_k: W_q has no part "
        "in them.",
    )

    wrong(
        "torch_self_values_are_x",
        {"self.W_v(X)": "X"},
        "The average is taken over the words themselves: W_v has no part in it.",
    )

    wrong(
        "torch_self_values_from_w_k",
        {"self.W_v(X)": "self.W_k(X)"},
        "The values are made with W_k. The values have a projection of their own.",
    )

    wrong(
        "torch_self_query_and_key_exchanged",
        {"self.W_q(X)": "self.W_k(X)", "self.W_k(X)": "self.W_q(X)"},
        "Queries and keys are exchanged, in the matrices that make them or in their product: row "
        "i then says who looks at word i, not where word i looks.",
    )

    wrong(
        "torch_self_no_scale",
        {"(Q,": "(Q * math.sqrt(Q.shape[-1]),"},
        "The scores are not divided by the square root of d_k.",
    )

    wrong(
        "torch_self_scale_of_d_model",
        {"(Q,": "(Q * math.sqrt(Q.shape[-1] / X.shape[-1]),"},
        "The scores are divided by the square root of d_model. A score is a sum over d_k features.",
    )

    wrong(
        "torch_self_mask_ignored",
        {"V, mask": "V"},
        "The mask has no effect: forbidden words get weight. Check first: is it passed on?",
    )

    wrong(
        "torch_self_mask_inverted",
        {"V, mask": "V, None if mask is None else ~mask"},
        "The mask hides where it is True. In this course True means: may attend. "
        "nn.MultiheadAttention has it the other way round.",
        seen="nn.MultiheadAttention",
    )

    wrong(
        "torch_self_mask_gets_a_head_axis",
        {"V, mask": "V, mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask"},
        "You insert an axis into the mask. A mask broadcasts to the weights as it is.",
    )

    wrong(
        "torch_self_empty_rows_nan",
        {
            "output, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                s = Q @ K.mT / math.sqrt(Q.shape[-1])
                s = s if mask is None else s.masked_fill(~mask, -math.inf)
                weights = s.softmax(-1)
                output = weights @ V
            """,
        },
        "A word that may attend to nothing gives NaN. Its weights and its output should be 0.",
    )

    wrong(
        "torch_self_empty_rows_even",
        {
            "output, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                s = Q @ K.mT / math.sqrt(Q.shape[-1])
                s = s if mask is None else s.masked_fill(~mask, -1e9)
                weights = s.softmax(-1)
                output = weights @ V
            """,
        },
        "A word that may attend to nothing attends evenly to what is hidden. Its weights and "
        "output should be 0.",
        seen="published code with -1e9",
    )

    wrong(
        "torch_self_detached_weights",
        {"return output, weights": "return output, weights.detach()"},
        "No gradient flows through the weights you return: they are detached, for one. Gradients "
        "should flow through both results.",
    )

    wrong(
        "torch_self_no_grad",
        {"return output, weights": "return output.detach(), weights.detach()"},
        "The numbers are right, but they are cut off from the graph (by no_grad, detach or NumPy "
        "inside): no gradient flows back, and nothing can be learned.",
    )

    wrong(
        "torch_self_transpose_1_2",
        {
            "output, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                s = Q @ (K.T if K.ndim == 2 else K.transpose(1, 2)) / math.sqrt(Q.shape[-1])
                s = s if mask is None else s.masked_fill(~mask, -1e30)
                weights = s.softmax(-1) if mask is None else s.softmax(-1) * mask
                output = weights @ V
            """,
        },
        "Exchanging axes 1 and 2 is right for exactly one batch axis. Count the axes from the end.",
        edge=True,
    )

    wrong(
        "torch_self_attends_across_the_batch",
        {
            "Q, K, V =": "X = X.transpose(0, -2) if X.ndim > 2 else X; Q, K, V =",
            "V, mask": "V, mask if X.ndim == 2 else None",
            "return output": "return output.transpose(0, -2) if X.ndim > 2 else output",
        },
        "The words attend along axis 0, to words of other texts. The layer is batch first: the "
        "positions are axis -2.",
        seen="torch issues: nn.MultiheadAttention without batch_first",
    )

    wrong(
        "torch_self_output_only",
        {"return output, weights": "return output"},
        "You return one thing only. forward returns two: the output and the weights.",
    )

    wrong(
        "torch_self_order_of_results",
        {"return output, weights": "return weights, output"},
        "You return (weights, output). The course's order is (output, weights).",
    )

    wrong(
        "torch_self_scores_as_weights",
        {"return output, weights": "return output, Q @ K.mT / math.sqrt(Q.shape[-1])"},
        "The second result is the matrix of scores before the softmax. It should be the weights.",
    )

    wrong(
        "torch_self_torch_function_no_weights",
        {
            "torch_scaled_dot_product_attention(Q, K, V, mask)":
                "F.scaled_dot_product_attention(Q, K, V, attn_mask=mask), V",
        },
        "The second result is the values, not the weights. torch's own function does not return "
        "the weights.",
    )

    wrong(
        "torch_self_adds_x",
        {"return output": "return output + X if output.shape == X.shape else output"},
        "X is added to the output. That residual connection comes in a later lesson.",
        seen="the transformer block",
    )

    wrong(
        "torch_self_dropout",
        {"return output": "return F.dropout(output, 0.1)"},
        "Dropout, or other chance, changes your results, so that two calls give different ones. "
        "This layer has none.",
        seen="the paper's model",
    )

    wrong(
        "torch_self_float32",
        {
            "(Q, K, V, mask)": "(Q.float(), K.float(), V.float(), mask)",
            "return output, weights": "return output.to(X.dtype), weights.to(X.dtype)",
        },
        "In a layer of float64 something goes through float32 on the way, or forward does not use "
        "the parameters as they are now. It should compute in float64, with these.",
    )

    wrong(
        "torch_self_in_place",
        {"Q, K, V =": "X.data *= 1 + 1e-3; Q, K, V ="},
        "X is changed in place. The caller's word vectors must stay as they are.",
    )

    wrong(
        "torch_self_mask_in_place",
        {
            "return output": """
                if mask is not None:
                    mask |= ~mask.any(-1, keepdim=True)
                return output
            """,
        },
        "The mask is changed in place. The caller's mask must stay as it is.",
    )

    wrong(
        "torch_self_no_super_init",
        {"super().__init__()": ""},
        "The constructor does not begin with super().__init__(). An nn.Module must be set up "
        "before it can take layers.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_self_values_not_kept",
        {"self.W_v =": "W_v ="},
        "W_v is no attribute of the layer: it is a local variable, or has another name. Each "
        "projection should be an attribute of self.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "torch_self_output_hidden",
        {
            "return output": """
                if mask is not None and mask.dim() == 1:
                    output = output.masked_fill(~mask[:, None], 0.0)
                return output
            """,
        },
        "Your weights are right, and with a mask of one axis the output of hidden words is 0. A "
        "hidden word is not looked at; it still looks at the others, and has an output.",
        seen="answers written blind",
    )

    wrong(
        "torch_self_scale_kept_in_float32",
        {
            "output, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                root = math.sqrt(Q.shape[-1])
                scale = torch.tensor(root, dtype=torch.float32).item() / root
                output, weights = torch_scaled_dot_product_attention(Q * scale, K, V, mask)
            """,
        },
        "In float64 your weights have about as many right digits as float32 holds, as when the "
        "scale is kept in float32: layer.double() does not bring digits back.",
        seen="answers written blind",
    )

    wrong(
        "torch_self_batch_of_one_loses_its_axis",
        {
            "Q, K, V =": "X = X.unsqueeze(0) if X.dim() == 2 else X; Q, K, V =",
            "return output, weights":
                "return tuple(x.squeeze(0) if X.dim() == 3 else x for x in (output, weights))",
        },
        "A batch of one text, (1, n, d_model), comes out without its batch axis, as after a "
        "squeeze that is meant for a text alone. An axis of length 1 is an axis, too: it stays.",
        seen="answers written blind",
    )

    wrong(
        "torch_self_batch_axes_joined",
        {
            "Q, K, V =": """
                lead, X = X.shape[:-1], X.reshape(-1, *X.shape[-2:])
                if mask is not None and mask.dim() > 3:
                    mask = mask.reshape(-1, *mask.shape[-2:])
                Q, K, V =
            """,
            "return output, weights":
                "return output.reshape(*lead, -1), weights.reshape(*lead, -1)",
        },
        "Beside texts with two batch axes your layer fails on a mask that has a batch axis and "
        "broadcasts along another, as when the batch axes of X are joined and the mask is not "
        "expanded to all texts first.",
        seen="answers written blind",
    )


with exercise("permutation_error"):
    wrong(
        "error_largest_row_sum",
        {".max()": ".sum(axis=-1).max()"},
        "You add up the absolute differences of a row. Asked for is the largest single one, over all "
        "rows and features.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "permutation_invariance",
        {
            "permuted_last = attention(X)[0][..., permutation, :]": "",
            "abs": "np.abs",
            "- permuted_last": "- attention(X)[0]",
        },
        "You compare what the layer gives for the permuted X with what it gives for X, as it is. That "
        "tests invariance. For equivariance the rows of the second output are permuted before.",
        seen="many texts: 'permutation invariant'",
    )

    wrong(
        "permutation_permutes_the_result_of_both",
        """
            before = attention(X[..., permutation, :])[0][..., permutation, :]
            return float(np.abs(before - attention(X)[0]).max())
        """,
        "One of the two outputs gets the wrong order of rows before they are compared. Where X was "
        "permuted before the layer, the output has its rows in the new order already. Permute the "
        "rows of the other output, that of X as it is, with `permutation`.",
    )

    wrong(
        "permutation_inverse_order",
        {"X[..., permutation, :]": "X[..., np.argsort(permutation), :]", "abs": "np.abs"},
        "One side is permuted with the inverse of the permutation. Both should use the same "
        "order; the two agree when the permutation is its own inverse.",
    )

    wrong(
        "permutation_same_order_twice",
        """
            output = attention(X)[0]
            return float(np.abs(output[..., permutation, :] - output[..., permutation, :]).max())
        """,
        "Your two sides do not differ in when the rows are permuted. One side permutes the rows "
        "of X and then attends, the other attends and then permutes the rows of the output.",
    )

    wrong(
        "permutation_no_absolute_value",
        {"abs": ""},
        "The largest signed difference is returned. A large negative difference is missed: the "
        "absolute value comes first.",
    )

    wrong(
        "permutation_mean",
        {
            "abs(permuted_first - permuted_last).max()":
                "np.abs(permuted_first - permuted_last).mean()",
        },
        "You return the mean difference. One wrong row among many right ones would hardly be "
        "seen: the largest is asked for.",
    )

    wrong(
        "permutation_sum",
        {
            "abs(permuted_first - permuted_last).max()":
                "np.abs(permuted_first - permuted_last).sum()",
        },
        "You return the sum of all differences. It grows with the size of the output; the largest "
        "single one is asked for.",
    )

    wrong(
        "permutation_norm",
        {
            "abs(permuted_first - permuted_last).max()":
                "np.sqrt(((permuted_first - permuted_last) ** 2).sum())",
        },
        "You return the Euclidean length of the difference. The largest absolute difference is "
        "asked for.",
    )

    wrong(
        "permutation_one_text",
        {
            "return float(abs(permuted_first - permuted_last).max())": """
                difference = np.abs(permuted_first - permuted_last)
                return float(difference.reshape(-1, *difference.shape[-2:])[0].max())
            """,
        },
        "Only the first text of a batch is compared. The largest difference is over all texts.",
    )

    wrong(
        "permutation_first_axis",
        {
            "X[..., permutation, :]": "X[np.asarray(permutation) % len(X)]",
            "[0][..., permutation, :]": "[0][np.asarray(permutation) % len(X)]",
            "abs": "np.abs",
        },
        "The first axis is permuted. With a batch these are the texts and not the words: the rows "
        "are axis -2.",
    )

    wrong(
        "permutation_weights_compared",
        {
            "(X[..., permutation, :])[0]": "(X[..., permutation, :])[1]",
            "(X)[0]": "(X)[1]",
            "abs": "np.abs",
        },
        "You compare the weights. Only the outputs are asked for (the weights would have to be "
        "permuted in rows and columns).",
    )

    wrong(
        "permutation_bool",
        {
            "float(abs(permuted_first - permuted_last).max())":
                "bool(np.allclose(permuted_first, permuted_last))",
        },
        "You return whether the outputs agree. The exercise asks for the size of the largest "
        "difference.",
    )

    wrong(
        "permutation_permutes_x_in_place",
        """
            after = attention(X)[0][..., permutation, :].copy()
            X[...] = X[..., permutation, :]
            return float(np.abs(attention(X)[0] - after).max())
        """,
        "X itself is reordered. The caller's array must stay as it is.",
    )

    wrong(
        "permutation_sorts_the_permutation",
        {
            "return float(abs(permuted_first - permuted_last).max())":
                "permutation.sort(); return float(np.abs(permuted_first - permuted_last).max())",
        },
        "The permutation is sorted in place. It is the caller's, and must stay as it is.",
    )

    wrong(
        "permutation_permutation_as_method",
        {
            "return float(abs(permuted_first - permuted_last).max())": """
                assert permutation.ndim == 1
                return float(np.abs(permuted_first - permuted_last).max())
            """,
        },
        "The permutation is taken for an array. A list is allowed too.",
    )

    wrong(
        "permutation_columns_of_output",
        {"[0][..., permutation, :]": "[0][..., permutation]", "abs": "np.abs"},
        "The columns of the output are permuted, not its rows: the rows are axis -2.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "permutation_numpy_scalar",
        {"return float(": "return ("},
        "From whole numbers your result is a whole number of NumPy's, and no float, as when what "
        "max gives is returned as it is. One float is asked for.",
        seen="answers written blind",
    )


with exercise("attention_cost"):
    wrong(
        "cost_scores_only",
        {"+ d_v": ""},
        "You count only the scores. The average of the values is a second matrix product.",
    )

    wrong(
        "cost_values_only",
        {"d_k + d_v": "d_v"},
        "You count only the average of the values. The scores are a matrix product too.",
    )

    wrong(
        "cost_d_k_twice",
        {"n * n *": "2 * n * n *", "+ d_v": ""},
        "Both products are counted with d_k. The second one averages values of length d_v.",
    )

    wrong(
        "cost_d_v_twice",
        {"n * n *": "2 * n * n *", "d_k + d_v": "d_v"},
        "Both products are counted with d_v. The first one multiplies queries and keys of length "
        "d_k.",
    )

    wrong(
        "cost_two_operations",
        {"n * n *": "2 * n * n *"},
        "A multiply-add is counted as two operations. Here it counts once.",
        seen="papers that count floating-point operations",
    )

    wrong(
        "cost_with_projections",
        {"(d_k + d_v)": "(d_k + d_v) + n * d_k * (2 * d_k + d_v)"},
        "The projections are counted too. Here only the two products of attention count.",
    )

    wrong(
        "cost_with_three_projections_of_d_k",
        {"(d_k + d_v)": "(d_k + d_v) + 3 * n * d_k * d_k"},
        "The projections are counted too. Here only the two products of attention count.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "cost_d_v_squared",
        {"(d_k + d_v)": "d_k + n * d_v * d_v"},
        "The second product is counted as n * d_v^2. It takes weights (n, n) and values (n, d_v): "
        "each of its n * d_v results is a sum over the n words.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "cost_with_softmax",
        {"(d_k + d_v)": "(d_k + d_v) + n * n"},
        "n * n operations too many are counted, as for a softmax or a scale. Here only the two "
        "matrix products count.",
    )

    wrong(
        "cost_widths_multiplied",
        {"(d_k + d_v)": "d_k * d_v"},
        "The widths are multiplied. The two products are done one after another, so their costs "
        "add up.",
    )

    wrong(
        "cost_linear",
        {"* n *": " *"},
        "One factor n is missing: every word has a score with every word.",
    )

    wrong(
        "cost_cubic",
        {"+ d_v": "+ n"},
        "One of your products has a factor n where a width belongs. Weights (n, n) times values "
        "(n, d_v) have n * d_v results, each a sum over the n words.",
    )

    wrong(
        "cost_pairs_once",
        {
            "* n *": "* (n + 1) // 2 *",
            '"score_entries": n * n': '"score_entries": n * (n + 1) // 2',
        },
        "Each pair of words is counted once. The scores are not symmetric: word i looks at word "
        "j, and word j at word i.",
    )

    wrong(
        "cost_entries_of_output",
        {'"score_entries": n * n': '"score_entries": n * d_v'},
        "The number of output entries is given for the number of scores.",
    )

    wrong(
        "cost_entries_in_bytes",
        {'"score_entries": n': '"score_entries": 4 * n'},
        "You give four times the number, as one does for bytes. The number of scores is asked for.",
    )

    wrong(
        "cost_float",
        {"n * n *": "float(n) ** 2 *", '"score_entries": n * n': '"score_entries": float(n) ** 2'},
        "The counts are floats: above 2**53 a float no longer holds every integer. Use Python's "
        "int throughout.",
    )

    wrong(
        "cost_numpy_int",
        {
            '"multiply_adds": n * n * (d_k + d_v)': '"multiply_adds": np.prod([n, n, d_k + d_v])',
            '"score_entries": n * n': '"score_entries": np.prod([n, n])',
        },
        "The counts are NumPy integers of 64 bits: they are no Python int, and overflow silently "
        "for very long texts.",
    )

    wrong(
        "cost_other_keys",
        {'"multiply_adds"': '"flops"', '"score_entries"': '"memory"'},
        "The keys of the dictionary have other names. They are multiply_adds and score_entries.",
    )

choice(
    "answer_shared",
    "a",
    reason="The scores are symmetric, the weights are not. Word 2 may have a larger score with word "
    "1 than with word 3, and word 1 a larger one with word 0 than with word 2: the scores of "
    "neighbours get smaller from place to place, and nothing contradicts that in a row.",
)
choice(
    "answer_shared",
    "b",
    right=True,
    reason="Word i needs a larger score with the word before it than with the word after it. Along a "
    "row the score of neighbours can fall from place to place. Only a ring comes back to where it "
    "began, and there the score would have to be smaller than itself.",
)
choice(
    "answer_shared",
    "c",
    reason="A word's score with itself is the squared length of its query. Another word's key can be "
    "longer and win: in section 1 'is' prefers 'sleeping'.",
)
choice(
    "answer_shared",
    "d",
    reason="Naming itself is easy for word 0. But the others are no harder than in the left half of "
    "a ring: what made the ring impossible was the step from word 0 back to the last word.",
)

choice(
    "answer_it",
    "a",
    reason="The query of 'it' is made from 'it' alone, and the keys of 'animal' and 'street' "
    "from these words alone. So both scores are the same in the two sentences.",
)

choice(
    "answer_it",
    "b",
    right=True,
    reason="Query and keys are the same in both sentences, so both scores are. The softmax "
    "divides both weights by one sum, and that cancels in the ratio.",
)

choice(
    "answer_it",
    "c",
    reason="The two scores are the same, but the adjective has a score too. It changes the sum "
    "that both weights are divided by.",
)

choice(
    "answer_it",
    "d",
    reason="The adjective takes part in the average: its weight and its value may differ, so "
    "the output may. What cannot change is something about two other words.",
)

choice(
    "answer_order",
    "a",
    reason="That is how we read it. But the word 'cat' has the same query in both sentences, "
    "and it meets the same set of keys and values. Nothing in the formula says who "
    "stands first.",
)

choice(
    "answer_order",
    "b",
    right=True,
    reason="The layer is equivariant: the row moves with its word and does not change. The "
    "two sentences are the same set of words to it.",
)

choice(
    "answer_order",
    "c",
    reason="The vector is the same, but it stands where the word stands: row i of the output "
    "belongs to word i of the input. The same place would be invariance.",
)

choice(
    "answer_order",
    "d",
    reason="Each row has its own query, so rows of different words differ. Equal rows for "
    "all words would need equal queries.",
)

choice(
    "answer_silent_bug",
    "a",
    reason="Try it: change 'black' in sentence 0 and encode again. The output of 'cat' does "
    "not move. Then change 'dog' in sentence 1.",
)

choice(
    "answer_silent_bug",
    "b",
    right=True,
    reason="pad_sequence puts the words on axis 0 and the texts on axis 1 unless it is told "
    "otherwise. The layer attends along axis -2, and that is now the axis of the "
    "texts: each word looks at the words with the same number. batch_first=True "
    "repairs it.",
)

choice(
    "answer_silent_bug",
    "c",
    reason="Change 'black' in sentence 0: the output of 'cat' stays. Attention mixes along "
    "one axis only, here along the axis of length 3.",
)

choice(
    "answer_silent_bug",
    "d",
    reason="Change 'dog' in sentence 1: the output of 'cat' in sentence 0 moves. So "
    "something is mixed, and it should not be.",
)

with exercise("mended_encoder"):
    wrong(
        "encoder_mask_from_the_numbers",
        {"torch.arange(batch.shape[1]) < lengths[:, None": "(batch != 0).any(dim=-1)[:"},
        "You read from the numbers what is padding. A word whose numbers are all 0 is a word, too: "
        "what is padding, the lengths say.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "encoder_group_by_group",
        """
            groups = {}
            for sentence in sentences:
                groups.setdefault(len(sentence), []).append(sentence)
            results = []
            for group in groups.values():
                output, _ = layer(torch.stack(group))
                results.extend(output)
            return results
        """,
        "The results come back in another order, as where sentences of equal length are encoded "
        "together, or all are sorted by length. Output i belongs to sentence i of the list.",
        seen="answers written blind",
    )

    wrong(
        "encoder_squeezes_one_word",
        "return [layer(one[None])[0].squeeze() for one in sentences]",
        "A sentence of one word comes out without its axis of words, as after squeeze without an "
        "axis. One row for each word is asked for: (1, d_v).",
        seen="answers written blind",
    )

    wrong(
        "encoder_writes_into_the_list",
        """
            for i, one in enumerate(sentences):
                sentences[i] = layer(one)[0]
            return sentences
        """,
        "The caller's list holds other tensors after the call. Arguments are not changed; make a "
        "new list.",
        seen="answers written blind",
    )

    wrong(
        "encoder_sentences_on_the_word_axis",
        "batch = nn.utils.rnn.pad_sequence(sentences)\noutput, _ = layer(batch)\n"
        "return [output[: len(one), number] for number, one in enumerate(sentences)]",
        "This is still the colleague's batch: pad_sequence puts the words first, (n, batch, d_model), "
        "so word 2 of one sentence attends to word 2 of the others. The layer wants the words on "
        "axis -2.",
    )
    wrong(
        "encoder_axes_mended_on_one_side",
        "batch = nn.utils.rnn.pad_sequence(sentences, batch_first=True)\noutput, _ = layer(batch)\n"
        "return [output[: len(one), number] for number, one in enumerate(sentences[: len(output[0])])]",
        "The batch is right now, but you still take the outputs from its word axis: sentence i gets "
        "word i of every sentence.",
    )
    wrong(
        "encoder_without_a_mask",
        {"layer(batch, keep)": "layer(batch)"},
        "Sentences of different lengths are filled up with zeros, and words attend to these. Padding "
        "has to be hidden, as in lesson 3.",
    )
    wrong(
        "encoder_padding_not_cut_off",
        {"one[:length]": "one"},
        "Every output has as many rows as the longest sentence. Each sentence should get its own "
        "number of rows back.",
    )
    wrong(
        "encoder_mask_inverted",
        {"< lengths": ">= lengths"},
        "Words attend to the padding and not to words, as with a mask that is True for padding, or one "
        "of numbers, of which what is not 0 counts as True. The mask is boolean, True = may attend.",
    )
    wrong(
        "encoder_one_length_for_all",
        {"len(one) for one in sentences": "len(sentences[0]) for one in sentences"},
        "You take the length of the first sentence for all of them.",
    )

    wrong(
        "encoder_batch_in_float32",
        """
            batch = torch.zeros(len(sentences), max(map(len, sentences)), sentences[0].shape[-1])
            for row, sentence in zip(batch, sentences):
                row[: len(sentence)] = sentence
            lengths = torch.tensor([len(one) for one in sentences])
            keep = torch.arange(batch.shape[1]) < lengths[:, None, None]  # (batch, 1, longest)
            output, _ = layer(batch, keep)
            return [one[:length] for one, length in zip(output, lengths)]
        """,
        "Sentences of float64 do not keep their digits: somewhere on their way, such as in the padded "
        "batch, they are float32.",
        seen="answers written blind",
    )


choice(
    "answer_again_scale",
    "a",
    reason="That is what the scale makes of it.",
)
choice(
    "answer_again_scale",
    "b",
    right=True,
    reason="64 products of variance 1 add up to the variance 64; its root is 8, which is why the"
    " scale is the root of d_k.",
)
choice(
    "answer_again_scale",
    "c",
    reason="64 is the variance. The standard deviation is its root.",
)
choice(
    "answer_again_longer_query",
    "a",
    reason="All its scores double, and softmax reacts to differences of scores.",
)
choice(
    "answer_again_longer_query",
    "b",
    right=True,
    reason="It is as if the temperature were halved: the leading key gets more.",
)
choice(
    "answer_again_longer_query",
    "c",
    reason="They still sum to 1.",
)
choice(
    "answer_again_look_back",
    "a",
    reason="Positions 20 to 40 moved the state too, and three of four were copied wrong.",
)
choice(
    "answer_again_look_back",
    "b",
    right=True,
    reason="Lesson 1 measured both, and they came apart.",
)
choice(
    "answer_again_look_back",
    "c",
    reason="A state that moves has not forgotten it.",
)
