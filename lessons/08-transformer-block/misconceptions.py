"""Wrong implementations of lesson 8, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

# The right answer in few words, of which the wrong ones below are changes.
SHORT_LAYER_NORM = """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta
"""


with exercise("LayerNorm", base=SHORT_LAYER_NORM):
    wrong(
        "norm_unbiased",
        {
            "m = x.mean": "m, v = x.mean(-1, keepdim=True), x.var",
            "v = x.var(-1, correction=0, keepdim=True)": "",
        },
        "You divide the sum of squares by d_model - 1. That is torch's default for var and std, "
        "and it estimates the variance of a larger population. Layer norm describes just these "
        "features: divide by d_model.",
        seen="public reimplementations that call x.var or x.std with torch's defaults",
    )

    wrong(
        "norm_unbiased_std_eps_outside",
        {
            "m = x.mean": "m, v = x.mean(-1, keepdim=True), x.std",
            "v = x.var(-1, correction=0, keepdim=True)": "",
            "torch.sqrt": "",
        },
        "Two differences from nn.LayerNorm at once: your standard deviation divides by d_model - "
        "1, and eps is added to it outside the root. The Annotated Transformer has it so; torch's "
        "layer, and this course, do not.",
        seen="The Annotated Transformer (Rush 2018)",
    )

    wrong(
        "norm_eps_outside",
        {"torch.sqrt(v + self.eps)": "(torch.sqrt(v) + self.eps)"},
        "eps is added to the standard deviation, after the root. It belongs to the variance, "
        "inside the root: there it also keeps the gradient finite and of the right size when all "
        "features of a word are equal.",
    )

    wrong(
        "norm_over_time",
        {"-1, keepdim=True": "-2, keepdim=True", "-1, correction=0": "-2, correction=0"},
        "Mean and variance run over the words of the text, for each feature. Then a word's result "
        "depends on its neighbours, and a causal model sees the future. Each word is normalised "
        "by itself, over its features.",
    )

    wrong(
        "norm_over_dim_1",
        {"-1, keepdim=True": "1, keepdim=True", "-1, correction=0": "1, correction=0"},
        "Mean and variance run over axis 1. That is the features of a single text (n, d_model), "
        "but the words of a batch. Count the axis from the end.",
    )

    wrong(
        "norm_over_batch",
        {"-1, keepdim=True": "0, keepdim=True", "-1, correction=0": "0, correction=0"},
        "Mean and variance run over the first axis, the texts of the batch. That is batch norm: a "
        "text's result then depends on which other texts come with it. Each word is normalised by "
        "itself, over its features.",
        seen="batch norm",
    )

    wrong(
        "norm_over_batch_and_time",
        {
            "m = x.mean(-1, keepdim=True)":
                "dims = tuple(range(x.ndim - 1)); m = x.mean(dims, keepdim=True)",
            "-1, correction=0": "dims, correction=0",
        },
        "Mean and variance run over all words of all texts, for each feature. That is batch norm. "
        "Each word is normalised by itself, over its features.",
        seen="nn.BatchNorm1d on sequences",
    )

    wrong(
        "norm_over_words_and_features",
        {
            "-1, keepdim=True": "(-2, -1), keepdim=True",
            "-1, correction=0": "(-2, -1), correction=0",
        },
        "Mean and variance run over words and features together: one number for a whole text. "
        "Then words influence each other, and padding changes everything. Each word is normalised "
        "by itself.",
        seen="layer norm of images",
    )

    wrong(
        "norm_over_all_but_first",
        {
            "m = x.mean(-1, keepdim=True)":
                "dims = tuple(range(1, x.ndim)); m = x.mean(dims, keepdim=True)",
            "-1, correction=0": "dims, correction=0",
        },
        "Mean and variance run over all axes but the first. That suits a picture; in a text it "
        "lets words influence each other. Only the last axis, the features, is normalised.",
        seen="F.layer_norm(x, x.shape[1:]) in public code",
    )

    wrong(
        "norm_over_everything",
        {
            """
                m = x.mean(-1, keepdim=True)
                v = x.var(-1, correction=0, keepdim=True)
            """: "",
            "x - m": "x - x.mean()",
            "v + self.eps": "x.var(correction=0) + self.eps",
        },
        "One mean and one variance for the whole tensor. Each word has a mean and a variance of "
        "its own, over its features.",
    )

    wrong(
        "norm_without_gamma",
        {"self.gamma * (x - m)": "(x - m)"},
        "Your results are those without gamma. The layer could then not choose how large each "
        "feature should be: multiply by it.",
    )

    wrong(
        "norm_without_beta",
        {"+ self.beta": ""},
        "Your results are those without beta. It is added at the end, so that a feature need not "
        "have mean 0.",
    )

    wrong(
        "norm_no_parameters",
        {
            """
                self.gamma = nn.Parameter(torch.ones(d_model))
                self.beta = nn.Parameter(torch.zeros(d_model))
            """: "",
            "self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta":
                "(x - m) / torch.sqrt(v + self.eps)",
        },
        "The layer has no gamma and no beta: it normalises and cannot learn anything. Both are "
        "nn.Parameters of shape (d_model,), and both are used.",
    )

    wrong(
        "norm_swapped",
        {"return self.gamma": "return self.beta", "+ self.beta": "+ self.gamma"},
        "gamma and beta have changed places: yours multiplies by beta and adds gamma. With the "
        "start values every result is 1.",
    )

    wrong(
        "norm_beta_before_gamma",
        {
            "(x - m) / torch.sqrt(v + self.eps) + self.beta":
                "((x - m) / torch.sqrt(v + self.eps) + self.beta)",
        },
        "beta is added before gamma multiplies, so the shift is scaled as well. First the scale, "
        "then the shift.",
    )

    wrong(
        "norm_gamma_zeros",
        {"torch.ones(d_model)": "torch.zeros(d_model)"},
        "gamma starts with zeros, so a new layer gives 0 for every word. It starts with ones: a "
        "new layer just normalises.",
    )

    wrong(
        "norm_beta_ones",
        {"torch.zeros(d_model)": "torch.ones(d_model)"},
        "beta starts with ones, so a new layer shifts every feature by 1. It starts with zeros: a "
        "new layer just normalises.",
    )

    wrong(
        "norm_random_start",
        {
            "torch.ones(d_model)": "torch.randn(d_model)",
            "torch.zeros(d_model)": "torch.randn(d_model)",
        },
        "gamma and beta start with random numbers, as the weights of a linear layer do. They "
        "start with ones and zeros: a new layer just normalises.",
    )

    wrong(
        "norm_plain_tensors",
        {
            "nn.Parameter(torch.ones(d_model))": "torch.ones(d_model)",
            "nn.Parameter(torch.zeros(d_model))": "torch.zeros(d_model)",
        },
        "gamma or beta is a plain tensor, or a buffer. An optimizer never sees it, so it is never "
        "trained. Wrap it in nn.Parameter.",
    )

    wrong(
        "norm_gamma_plain_tensor",
        {"nn.Parameter(torch.ones(d_model))": "torch.ones(d_model)"},
        "gamma or beta is a plain tensor, or a buffer. An optimizer never sees it, so it is never "
        "trained. Wrap it in nn.Parameter.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "norm_no_super",
        {"super().__init__()": ""},
        "The constructor makes a parameter before it has called super().__init__(). nn.Module "
        "needs it first, or it cannot keep parameters.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "norm_torch_names",
        {
            "self.gamma =": "self.weight =",
            "self.beta =": "self.bias =",
            "return self.gamma": "return self.weight",
            "+ self.beta": "+ self.bias",
        },
        "Your parameters are called weight and bias, as in torch. The paper and this course call "
        "them gamma and beta.",
        seen="nn.LayerNorm",
    )

    wrong(
        "norm_one_number",
        {"torch.ones(d_model)": "torch.ones(1)", "torch.zeros(d_model)": "torch.zeros(1)"},
        "gamma and beta hold one number each. There is one for every feature: their shape is "
        "(d_model,).",
    )

    wrong(
        "norm_no_eps",
        {"+ self.eps": ""},
        "Your results are those without eps. A word whose features are all equal has variance 0, "
        "and 0 / 0 is NaN.",
    )

    wrong(
        "norm_eps_fixed",
        {"+ self.eps": "+ 1e-5"},
        "The argument eps makes no difference in your results: your code uses a small number of "
        "its own, as 1e-5 is.",
    )

    wrong(
        "norm_eps_1e_6",
        {"eps=1e-5": "eps=1e-6"},
        "Your eps is 1e-6 when none is given. The default of nn.LayerNorm and of this exercise is "
        "1e-5; other libraries use other values, and published weights fit only their own.",
        seen="other libraries' default",
    )

    wrong(
        "norm_eps_1e_12",
        {"eps=1e-5": "eps=1e-12"},
        "Your eps is 1e-12 when none is given. The default of nn.LayerNorm and of this exercise "
        "is 1e-5; other libraries use other values, and published weights fit only their own.",
        seen="BERT's eps",
    )

    wrong(
        "norm_eps_squared",
        {"+ self.eps": "+ self.eps**2"},
        "eps is squared before it is added to the variance. It is added as it is.",
    )

    wrong(
        "norm_eps_as_floor",
        {"v + self.eps": "v.clamp(min=self.eps)"},
        "eps is used as a smallest value of the variance. It is always added to the variance.",
    )

    wrong(
        "norm_variance_not_root",
        {"torch.sqrt": ""},
        "You divide by the variance. Divide by its root, the standard deviation: otherwise "
        "features of size 10 become features of size 1/10.",
    )

    wrong(
        "norm_no_mean",
        {"m = x": "v = x.square()", "v = x.var(-1, correction=0, keepdim=True)": "", "x - m": "x "},
        "The mean is not subtracted. What you have is RMS norm, which is used in some newer "
        "models; layer norm first makes the mean 0.",
        seen="RMS norm (Zhang and Sennrich 2019)",
    )

    wrong(
        "norm_variance_about_zero",
        {
            "m = x": "m, v = x.mean(-1, keepdim=True), x.square()",
            "v = x.var(-1, correction=0, keepdim=True)": "",
        },
        "The mean is subtracted from x, but your variance is the mean of the squares of x itself. "
        "It is the mean of the squared differences from the mean.",
    )

    wrong(
        "norm_only_scaled",
        {"m = x.mean(-1, keepdim=True)": "", "x - m": "x "},
        "You divide by the standard deviation, and forget to subtract the mean.",
    )

    wrong(
        "norm_only_centred",
        {
            """
                m = x.mean(-1, keepdim=True)
                v = x.var(-1, correction=0, keepdim=True)
            """: "",
            "(x - m) / torch.sqrt(v + self.eps)": "(x - x.mean(-1, keepdim=True))",
        },
        "The mean is subtracted, but nothing is divided: the variance stays what it was.",
    )

    wrong(
        "norm_sum_of_squares",
        {
            "m = x": "m = x - x",
            "x.var(-1, correction=0, keepdim=True)": "m.square().sum(-1, keepdim=True)",
            "x - m": "m",
        },
        "You divide by the root of the sum of squares. That makes each word a vector of length 1, "
        "and its features small. The variance is their mean.",
    )

    wrong(
        "norm_axis_lost",
        {
            "m = x": "m, v = x",
            "(-1, keepdim=True)": "(-1), x.var(-1, correction=0)",
            "v = x.var(-1, correction=0, keepdim=True)": "",
        },
        "Shapes do not fit, or words are mixed, as where mean or variance has lost its axis and is "
        "then used along a wrong one. Keep the axis with length 1.",
    )

    wrong(
        "norm_one_batch_axis",
        {
            "m = x.mean(-1, keepdim=True)":
                "batch, n, d_model = x.shape; m = x.mean(2).reshape(batch, n, 1)",
            "x.var(-1, correction=0, keepdim=True)": "x.var(2, correction=0).reshape(batch, n, 1)",
        },
        "Your code fails without a batch axis. There may be none, one, two or more: count axes "
        "from the end.",
        edge=True,
    )

    wrong(
        "norm_rounded",
        {"m = x": "m = x.float()", "v = x": "v = x.float()"},
        "The result has the right type, but something on the way (mean and variance, for one) was "
        "rounded to float32. Float64 inputs should keep their precision.",
    )

    wrong(
        "norm_in_place",
        {
            "v = x.var(-1, correction=0, keepdim=True)": """
                v = x.var(-1, correction=0, keepdim=True)
                if x.requires_grad:
                    return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta
                x -= m
            """,
            "x - m": "x ",
        },
        "The mean is subtracted from x in place: the caller's tensor changes, and the residual "
        "connection around the layer would add the wrong thing.",
    )

    wrong(
        "norm_detached",
        {
            """
                m = x.mean(-1, keepdim=True)
                v = x.var(-1, correction=0, keepdim=True)
            """: """
                with torch.no_grad():
                    m = x.mean(-1, keepdim=True)
                    v = x.var(-1, correction=0, keepdim=True)
            """,
        },
        "Mean and variance are treated as constants, without gradient. They depend on x too, and "
        "the gradient through them matters.",
    )

    wrong(
        "norm_variance_detached",
        {"v = x": "v = x.detach()"},
        "The variance is treated as a constant, without gradient. It depends on x too, and the "
        "gradient through it matters.",
    )

    wrong(
        "norm_running",
        {
            "v = x.var(-1, correction=0, keepdim=True)": """
                v = x.var(-1, correction=0, keepdim=True)
                if self.training:
                    self.seen = m.mean().detach(), v.mean().detach()
                else:
                    m, v = self.seen
            """,
        },
        "In evaluation mode your layer uses statistics remembered from training. That is batch "
        "norm; layer norm remembers nothing and does the same in both modes.",
        seen="batch norm",
    )

    wrong(
        "norm_one_plus_gamma",
        {"return self.gamma": "return (1 + self.gamma)"},
        "The scale is 1 + gamma. Some models do so, with gamma starting at 0. Here gamma itself "
        "is the scale, and it starts at 1.",
        seen="Gemma's norm",
    )

    wrong(
        "norm_mean_of_squares_minus_square_of_mean",
        {
            "-1, keepdim=True": "dim=-1, keepdim=True",
            "x.var(-1, correction=0, keepdim=True)":
                "x.square().mean(dim=-1, keepdim=True) - m.square()",
        },
        "Your variance is the mean of the squares minus the square of the mean. Far from 0 these "
        "are two large numbers, nearly equal: rounding is all that is left of them, it can be "
        "below 0, and the root is NaN. Take the mean away first, then square.",
    )

    wrong(
        "norm_with_residual",
        {"return self.gamma": "return x + self.gamma"},
        "The input is added to the result. The residual connection belongs to the block, not to "
        "the norm.",
    )

    wrong(
        "norm_eps_learned",
        {"self.eps = eps": "self.eps = nn.Parameter(torch.tensor(float(eps)))"},
        "eps is among the parameters of your layer, so training would change it. It is a number "
        "that is given; the parameters are gamma and beta.",
        seen="answers written blind",
    )

    wrong(
        "norm_eps_or_default",
        {"self.eps = eps": "self.eps = eps or 1e-5"},
        "For small features your result with eps = 0 is another than with a tiny eps, as when 0 is "
        "taken for an eps that is not given. Any eps counts as it is.",
        seen="answers written blind",
    )

    wrong(
        "norm_loses_a_batch_of_one",
        {"m = x.mean": "x = x[0] if x.ndim == 3 and len(x) == 1 else x\nm = x.mean"},
        "A batch of one text comes out without its batch axis. The result has the shape of x, and "
        "axes of length 1 belong to it.",
    )

    wrong(
        "norm_scaled_in_place",
        {
            "return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta": """
                y = x - m
                v = (y**2).mean(-1, keepdim=True)
                y /= torch.sqrt(v + self.eps)
                y *= self.gamma
                y += self.beta
                return y
            """,
        },
        "The result is there, and asking for gradients ends in an error of torch's, as where a "
        "tensor is changed in place (by *= or +=, for one) though a gradient needs what it held. "
        "Make a new tensor in each step.",
        seen="answers written blind",
    )


with exercise("FeedForward"):
    wrong(
        "feed_no_relu",
        {"torch.relu(self.linear1(x))": "self.linear1(x)"},
        "There is no ReLU. Two linear layers without anything between them are one linear layer: "
        "the wide middle would be of no use.",
    )

    wrong(
        "feed_no_super",
        {"super().__init__()": ""},
        "The constructor makes a part before it has called super().__init__(). nn.Module needs it "
        "first, or it cannot keep its parts.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "feed_relu_last",
        {"self.linear2(torch.relu(self.linear1(x)))": "torch.relu(self.linear2(self.linear1(x)))"},
        "The ReLU comes after the second layer. Then the two layers are one linear layer, and the "
        "block could only add positive numbers to a word. ReLU stands between them.",
    )

    wrong(
        "feed_relu_twice",
        {
            "self.linear2(torch.relu(self.linear1(x)))":
                "torch.relu(self.linear2(torch.relu(self.linear1(x))))",
        },
        "A second ReLU follows the second layer. Then the block could only add positive numbers "
        "to a word. There is one ReLU, between the layers.",
    )

    wrong(
        "feed_relu_first",
        {"torch.relu(self.linear1(x))": "self.linear1(torch.relu(x))"},
        "The ReLU is applied to the input, before the first layer, so the negative half of every "
        "word is lost. It stands between the two layers.",
    )

    wrong(
        "feed_gelu",
        {"torch.relu": "F.gelu"},
        "You use GELU. Many later models do; the paper and this exercise have ReLU, and trained "
        "weights fit only one of them.",
        seen="BERT and GPT",
    )

    wrong(
        "feed_silu",
        {"torch.relu": "F.silu"},
        "You use SiLU. Some later models do; the paper and this exercise have ReLU.",
        seen="newer models",
    )

    wrong(
        "feed_leaky",
        {"torch.relu": "F.leaky_relu"},
        "You use a leaky ReLU: negative numbers come through, made small. ReLU makes them 0.",
    )

    wrong(
        "feed_tanh",
        {"torch.relu": "torch.tanh"},
        "You use tanh. The exercise asks for ReLU.",
    )

    wrong(
        "feed_dropout",
        {
            "torch.relu(self.linear1(x))":
                "F.dropout(torch.relu(self.linear1(x)), 0.1, self.training)",
        },
        "Dropout was left in. It makes results random while training, and this course's parts "
        "have none.",
        seen="the paper's own training setup",
    )

    wrong(
        "feed_dropout_always",
        {"torch.relu(self.linear1(x))": "F.dropout(torch.relu(self.linear1(x)), 0.1)"},
        "Dropout was left in and never switched off, so even evaluation is random. This course's "
        "parts have none.",
    )

    wrong(
        "feed_names_swapped",
        {
            "self.linear1 =": "self.linear2 =",
            "self.linear2 =": "self.linear1 =",
            "return self.linear2": "return self.linear1",
            "self.linear1(x)": "self.linear2(x)",
        },
        "linear1 and linear2 have changed names: linear1 should widen from d_model to d_ff, "
        "linear2 should come back. Weights stored under these names would not fit.",
    )

    wrong(
        "feed_sequential",
        """
            class FeedForward(nn.Module):
                def __init__(self, d_model, d_ff):
                    super().__init__()
                    self.net = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
                def forward(self, x):
                    return self.net(x)
        """,
        "Your module has no parts of the names linear1 and linear2 (yours are called something "
        "else, for one). Other code looks for them, for example to load weights.",
    )

    wrong(
        "feed_no_bias",
        {
            "(d_model, d_ff)": "(d_model, d_ff, bias=False)",
            "d_ff, d_model": "d_ff, d_model, bias=False",
        },
        "Your linear layers have no bias. Without it every threshold of the ReLU would be at 0.",
    )

    wrong(
        "feed_no_bias_at_the_end",
        {"d_ff, d_model": "d_ff, d_model, bias=False"},
        "linear2 has no bias. Both layers have one.",
    )

    wrong(
        "feed_d_ff_ignored",
        {"(d_model, d_ff)": "(d_model, 4 * d_model)", "d_ff,": "4 * d_model,"},
        "The hidden width is 4 * d_model and the argument d_ff makes no difference. Four times is "
        "a habit of the paper, not a law.",
        seen="GPT-2 style code",
    )

    wrong(
        "feed_narrow",
        {"(d_model, d_ff)": "(d_model, d_model)", "d_ff,": "d_model,"},
        "The hidden layer is as wide as the input and d_ff is not used for it. linear1 widens to "
        "d_ff, linear2 comes back.",
    )

    wrong(
        "feed_residual",
        {"return self": "return x + self"},
        "The input is added to the result. The residual connection belongs to the block: now it "
        "would be added twice.",
    )

    wrong(
        "feed_one_layer_only",
        {"self.linear2(torch.relu(self.linear1(x)))": "torch.relu(self.linear1(x))"},
        "The second linear layer is missing, or does nothing: the result should have d_model "
        "features again.",
    )

    wrong(
        "feed_gradient_cut",
        {"(self.linear1(x))": "(self.linear1(x)).detach()"},
        "The hidden layer is detached, or made without recording gradients, so no gradient comes "
        "to linear1 and to x.",
    )

    wrong(
        "feed_in_place",
        {
            "return self.linear2(torch.relu(self.linear1(x)))": """
                if x.requires_grad:
                    return self.linear2(torch.relu(self.linear1(x)))
                y = self.linear2(torch.relu(self.linear1(x)))
                x.relu_()
                return y
            """,
        },
        "ReLU is applied to x itself, in place: the caller's tensor loses its negative half, and "
        "so does the residual. ReLU stands between the layers.",
    )

    wrong(
        "feed_shared_over_words",
        {
            "return self.linear2(torch.relu(self.linear1(x)))": """
                h = torch.relu(self.linear1(x))
                return self.linear2(h.mean(-2, keepdim=True).expand_as(h))
            """,
        },
        "The hidden features are averaged over the words. The feed-forward works on each word by "
        "itself; only attention mixes words.",
    )

    wrong(
        "feed_no_gradient_in_evaluation",
        {
            "return self.linear2(torch.relu(self.linear1(x)))":
            """
                with torch.set_grad_enabled(self.training):
                    return self.linear2(torch.relu(self.linear1(x)))
            """,
        },
        "In evaluation mode no gradient reaches x. The two modes should agree, in the gradients too.",
        seen="a trial with typical wrong answers",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_TRANSFORMER_BLOCK = """
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w
"""


with exercise("TransformerBlock", base=SHORT_TRANSFORMER_BLOCK):
    wrong(
        "block_no_attention_residual",
        {"= x + a": "= a", "(x + a)": "(a)"},
        "The input is not added to what the attention gives. Without this residual connection a "
        "word forgets what it was before it looked around.",
    )

    wrong(
        "block_no_feed_forward_residual",
        {"return x + self": "return self", "x + self.feed_forward(x)": "self.feed_forward(x)"},
        "The residual around the feed-forward is missing: its result replaces the word. It should "
        "be added to it.",
    )

    wrong(
        "block_no_residual",
        {
            "= x + a": "= a",
            "return x + self": "return self",
            "(x + a)": "(a)",
            "x + self.feed_forward(x)": "self.feed_forward(x)",
        },
        "Both residual connections are missing. Each part should add to a word, not replace it.",
    )

    wrong(
        "block_residual_after_norm",
        {
            "self.norm1(x + a)": "x + self.norm1(a)",
            "self.norm2(x + self.feed_forward(x))": "x + self.norm2(self.feed_forward(x))",
        },
        "In post-norm you normalise only what a part gives, and add the residual afterwards. Add "
        "first, then normalise the sum.",
        seen="a public issue: x + norm(sublayer(x))",
    )

    wrong(
        "block_norm_after_part_in_pre_norm",
        {
            "self.norm1(x)": "x",
            "= x + a": "= x + self.norm1(a)",
            "self.feed_forward(self.norm2(x))": "self.norm2(self.feed_forward(x))",
        },
        "In pre-norm you normalise what a part gives. Normalise what goes into it.",
    )

    wrong(
        "block_always_post",
        {
            """
                if self.norm_first:
                    a, w = self.attention(self.norm1(x), mask=mask)
                    x = x + a
                    return x + self.feed_forward(self.norm2(x)), w
            """: "",
        },
        "Your block is post-norm also with norm_first=True, as if norm_first were ignored.",
    )

    wrong(
        "block_always_pre",
        {
            """
                if self.norm_first:
                    a, w = self.attention(self.norm1(x), mask=mask)
                    x = x + a
                    return x + self.feed_forward(self.norm2(x)), w
            """: "",
            "x, mask=mask": "self.norm1(x), mask=mask",
            "self.norm1(x + a)": "x + a",
            "self.norm2(x + self.feed_forward(x))": "x + self.feed_forward(self.norm2(x))",
        },
        "Your block is pre-norm also with norm_first=False, as if norm_first were ignored.",
    )

    wrong(
        "block_orders_swapped",
        {"self.norm_first:": "not self.norm_first:"},
        "The two orders are exchanged. norm_first=True means that a norm stands before each part.",
    )

    wrong(
        "block_default_pre",
        {"norm_first=False": "norm_first=True"},
        "Your block is pre-norm when nothing is said. The default is norm_first=False, post-norm "
        "as in the paper.",
        seen="newer models",
    )

    wrong(
        "block_norm_on_the_residual_path",
        {
            "a, w = self.attention(self.norm1(x), mask=mask)":
                "x = self.norm1(x); a, w = self.attention(x, mask=mask)",
            "= x + a": "= self.norm2(x + a)",
            "self.norm2(x)": "x",
        },
        "In pre-norm the norm stands on the residual path: x itself is replaced by its normalised "
        "version. The residual adds the untouched x; only the part's input is normalised.",
    )

    wrong(
        "block_first_norm_on_the_residual_path",
        {
            "a, w = self.attention(self.norm1(x), mask=mask)":
                "x = self.norm1(x); a, w = self.attention(x, mask=mask)",
        },
        "In pre-norm the first norm stands on the residual path: x itself is replaced by its "
        "normalised version. The residual adds the untouched x.",
    )

    wrong(
        "block_second_norm_on_the_residual_path",
        {"= x + a": "= self.norm2(x + a)", "self.norm2(x)": "x"},
        "In pre-norm the second norm stands on the residual path: the middle is replaced by its "
        "normalised version. The residual adds the untouched one.",
    )

    wrong(
        "block_one_norm_object",
        {", self.norm2 = LayerNorm(d_model),": " = self.norm2 ="},
        "norm2 has no gamma and beta of its own, as where norm1 and norm2 are one object. Make two.",
    )

    wrong(
        "block_norm1_twice",
        {"self.norm2(x)": "self.norm1(x)", "return self.norm2": "return self.norm1"},
        "norm1 is used in both places and norm2 never.",
    )

    wrong(
        "block_norms_exchanged",
        {
            "self.norm1(x)": "self.norm2(x)",
            "self.norm2(x)": "self.norm1(x)",
            "self.norm1(x + a)": "self.norm2(x + a)",
            "return self.norm2": "return self.norm1",
        },
        "norm1 and norm2 have changed places. norm1 belongs to the attention, norm2 to the "
        "feed-forward.",
    )

    wrong(
        "block_no_first_norm",
        {"self.norm1(x)": "x", "self.norm1(x + a)": "x + a"},
        "The norm that belongs to the attention is missing.",
    )

    wrong(
        "block_no_second_norm",
        {"self.norm2(x)": "x", "self.norm2(x + self.feed_forward(x))": "x + self.feed_forward(x)"},
        "The norm that belongs to the feed-forward is missing.",
    )

    wrong(
        "block_no_norm",
        {
            "self.norm1(x)": "x",
            "self.norm2(x)": "x",
            "self.norm1(x + a)": "x + a",
            "self.norm2(x + self.feed_forward(x))": "x + self.feed_forward(x)",
        },
        "Your output is that without norm1 and norm2, as if they were never used.",
    )

    wrong(
        "block_extra_final_norm",
        {
            "x + self.feed_forward(self.norm2(x))":
                "self.norm2(x + self.feed_forward(self.norm2(x)))",
        },
        "In pre-norm a norm follows at the end. A stack may have one after its last block; the "
        "block itself has not.",
    )

    wrong(
        "block_attention_of_raw_x",
        {"self.norm1(x)": "x"},
        "In pre-norm the attention works on x itself. It should work on the normalised x.",
    )

    wrong(
        "block_only_queries_normalised",
        {"(x), mask=mask": "(x), x, x, mask=mask"},
        "In pre-norm only the queries come from the normalised x; keys and values come from x "
        "itself. All three come from the normalised one.",
    )

    wrong(
        "block_feed_forward_of_raw_x",
        {"self.norm2(x)": "x"},
        "In pre-norm the feed-forward works on the middle itself. It should work on the "
        "normalised one.",
    )

    wrong(
        "block_second_residual_from_x",
        {
            "x = x": "h = x",
            "self.norm2(x)": "self.norm2(h)",
            "x = self.norm1(x + a)": "h = self.norm1(x + a)",
            "self.feed_forward(x)": "self.feed_forward(h)",
        },
        "The second residual adds the block's input again. It should add what the first half gave.",
    )

    wrong(
        "block_second_residual_before_norm1",
        {"self.norm1(x + a)": "x + a", "self.feed_forward(x)": "self.feed_forward(self.norm1(x))"},
        "In post-norm the second residual takes the sum before norm1. It takes the result of "
        "norm1.",
    )

    wrong(
        "block_parallel",
        {
            "x = x + a": "",
            "return x": "return x + a",
            "x = self.norm1(x + a)": "h = self.norm1(x + a)",
            "x + self.feed_forward(x)": "h + self.feed_forward(x)",
        },
        "Attention and feed-forward both work on the block's input, side by side. The feed-forward "
        "should work on what the first half gave.",
        seen="GPT-J's parallel block",
    )

    wrong(
        "block_no_feed_forward",
        {
            "x = x + a": "",
            "self.feed_forward(self.norm2(x))": "a",
            "x = self.norm1(x + a)": "",
            "x + self.feed_forward(x)": "self.norm1(x + a)",
        },
        "Your output is that without the feed-forward, as if it were never used.",
    )

    wrong(
        "block_mask_forgotten",
        {"(x), mask=mask": "(x)", "x, mask=mask": "x"},
        "The mask does not reach the attention, in one of the two orders or in both: every word "
        "sees every word, as without a mask.",
    )

    wrong(
        "block_mask_forgotten_in_pre_norm",
        {"(x), mask=mask": "(x)"},
        "The mask does not reach the attention, in one of the two orders or in both: every word "
        "sees every word, as without a mask.",
    )

    wrong(
        "block_mask_inverted",
        {
            "(x), mask=mask": "(x), mask=None if mask is None else ~mask",
            "x, mask=mask": "x, mask=None if mask is None else ~mask",
        },
        "The mask is turned around on its way to the attention. In this course True means: may "
        "attend, here and there.",
        seen="nn.TransformerEncoderLayer's src_mask",
    )

    wrong(
        "block_mask_as_key",
        {"(x), mask=mask": "(x), mask", "x, mask=mask": "x, mask"},
        "The mask lands in the attention's `key` or `value`: its second argument is `key`, its "
        "third `value`. Pass it by its name.",
    )

    wrong(
        "block_mask_gets_an_axis",
        {
            "if self.norm_first:": """
                mask = None if mask is None else mask.unsqueeze(-3) if mask.ndim > 1 else mask
                if self.norm_first:
            """,
        },
        "You insert a head axis into the mask. The attention does that itself where it is needed; "
        "yours makes the weights larger or mixes up texts and heads.",
        edge=True,
    )

    wrong(
        "block_always_causal",
        {
            "if self.norm_first:": """
                if mask is None:
                    mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
                if self.norm_first:
            """,
        },
        "Without a mask your block hides the future. None masks nothing: whoever wants a causal "
        "block passes a causal mask.",
        seen="GPT-style blocks",
    )

    wrong(
        "block_mask_hides_output",
        {
            """
                if self.norm_first:
                    a, w = self.attention(self.norm1(x), mask=mask)
                    x = x + a
                    return x + self.feed_forward(self.norm2(x)), w
            """: "",
            "x, mask=mask": "self.norm1(x) if self.norm_first else x, mask=mask",
            "x = self.norm1(x + a)": "h = x + a if self.norm_first else self.norm1(x + a)",
            "return self.norm2(x + self.feed_forward(x)), w": """
                y = self.feed_forward(self.norm2(h) if self.norm_first else h)
                y = h + y if self.norm_first else self.norm2(h + y)
                return y * (w.sum((-1, -3)) > 0)[..., None], w
            """,
        },
        "The rows of words that may attend to nothing are set to 0 at the end. Their residual and "
        "feed-forward go on as usual; only the attention finds nothing.",
    )

    wrong(
        "block_no_super",
        {"super().__init__()": ""},
        "The constructor makes a part before it has called super().__init__(). nn.Module needs it "
        "first, or it cannot keep its parts.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_tuple_added",
        {
            "a, w = self.attention(self.norm1(x), mask=mask)":
                "x = x + self.attention(self.norm1(x), mask=mask)",
            "x = x + a": "",
            "(self.norm2(x)), w": "(self.norm2(x))",
            "a, w = self.attention(x, mask=mask)": "",
            "(x + a)": "(x + self.attention(x, mask=mask))",
            "(x + self.feed_forward(x)), w": "(x + self.feed_forward(x))",
        },
        "The attention returns two things, its output and its weights, and you add the pair to x. "
        "Take it apart first.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_order_of_results",
        {
            "x + self.feed_forward(self.norm2(x)), w": "w, x + self.feed_forward(self.norm2(x))",
            "self.norm2(x + self.feed_forward(x)), w": "w, self.norm2(x + self.feed_forward(x))",
        },
        "You return (weights, output). The course's order is (output, weights).",
    )

    wrong(
        "block_weights_averaged",
        {
            "(self.norm2(x)), w": "(self.norm2(x)), w.mean(-3)",
            "(x + self.feed_forward(x)), w": "(x + self.feed_forward(x)), w.mean(-3)",
        },
        "The weights are averaged over the heads, as nn.MultiheadAttention does when nothing is "
        "said. Return them head by head.",
        seen="nn.MultiheadAttention",
    )

    wrong(
        "block_first_head_only",
        {
            "(self.norm2(x)), w": "(self.norm2(x)), w[..., :1, :, :]",
            "(x + self.feed_forward(x)), w": "(x + self.feed_forward(x)), w[..., :1, :, :]",
        },
        "Only the weights of the first head are returned. Return all heads.",
    )

    wrong(
        "block_weights_none",
        {
            "(self.norm2(x)), w": "(self.norm2(x)), None",
            "(x + self.feed_forward(x)), w": "(x + self.feed_forward(x)), None",
        },
        "The second result is None, as the attention of nn.TransformerEncoderLayer keeps its "
        "weights to itself. Return the weights of all heads.",
        seen="need_weights=False in torch's block",
    )

    wrong(
        "block_weights_detached",
        {
            "(self.norm2(x)), w": "(self.norm2(x)), w.detach()",
            "(x + self.feed_forward(x)), w": "(x + self.feed_forward(x)), w.detach()",
        },
        "The weights are cut off from the gradient. Gradients should flow through both results.",
    )

    wrong(
        "block_dropout",
        {
            "= x + a": "= x + F.dropout(a, 0.1, self.training)",
            "(x + a)": "(x + F.dropout(a, 0.1, self.training))",
        },
        "Dropout was left in. The paper trains with it; this course's block has none, so that it "
        "can be compared number by number.",
        seen="the paper's own training setup",
    )

    wrong(
        "block_torch_norms",
        {
            "= LayerNorm(d_model)": "= nn.LayerNorm(d_model)",
            ", LayerNorm(d_model)": ", nn.LayerNorm(d_model)",
        },
        "Your norms have no gamma and beta, as torch's nn.LayerNorm has none: it calls them weight "
        "and bias. The block should be built of your own LayerNorm, with gamma and beta.",
    )

    wrong(
        "block_torch_attention",
        {
            "MultiHeadAttention(d_model, num_heads)":
                "nn.MultiheadAttention(d_model, num_heads, batch_first=True)",
            """
                if self.norm_first:
                    a, w = self.attention(self.norm1(x), mask=mask)
                    x = x + a
                    return x + self.feed_forward(self.norm2(x)), w
            """: """
                hidden = None if mask is None else ~mask
                y = self.norm1(x) if self.norm_first else x
            """,
            "x, mask=mask": "y, y, y, attn_mask=hidden, average_attn_weights=False",
            "x = self.norm1(x + a)": "h = x + a if self.norm_first else self.norm1(x + a)",
            "return self.norm2(x + self.feed_forward(x)), w": """
                y = self.feed_forward(self.norm2(h) if self.norm_first else h)
                return h + y if self.norm_first else self.norm2(h + y), w
            """,
        },
        "Your attention has no W_q, W_k, W_v and W_o, as torch's nn.MultiheadAttention has none. The "
        "block should be built of lesson 5's MultiHeadAttention.",
    )

    wrong(
        "block_other_names",
        {
            "self.attention =": "self.attn =",
            "self.feed_forward =": "self.ffn =",
            "self.attention(self.norm1(x), mask=mask)": "self.attn(self.norm1(x), mask=mask)",
            "self.feed_forward(self.norm2(x))": "self.ffn(self.norm2(x))",
            "self.attention(x, mask=mask)": "self.attn(x, mask=mask)",
            "self.feed_forward(x)": "self.ffn(x)",
        },
        "Not all of your parts have the names attention, norm1, feed_forward and norm2. Weights "
        "stored under these names would not fit.",
    )

    wrong(
        "block_feed_forward_four_times",
        {"d_model, d_ff": "d_model, 4 * d_model"},
        "The argument d_ff is ignored: the feed-forward's hidden width is one of your own "
        "choosing.",
        seen="GPT-2 style code",
    )

    wrong(
        "block_one_head",
        {"(d_model, num_heads)": "(d_model, 1)"},
        "The attention has one head where num_heads asks for more.",
    )

    wrong(
        "block_in_place",
        {
            "= x + a": "= x + a if x.requires_grad else x.add_(a)",
            "(x + a)": "(x + a if x.requires_grad else x.add_(a))",
        },
        "The change is added to x in place, so the caller's tensor changes.",
    )

    wrong(
        "block_scaled_residual",
        {"x = x": "x = 2**0.5 * x", "(x + a)": "(2**0.5 * x + a)"},
        "The residual is multiplied by a number before it is added. Some deep models do so; here "
        "x is added as it is.",
        seen="DeepNorm (Wang and others 2022)",
    )

    wrong(
        "block_one_text_only",
        {
            "if self.norm_first:": """
                x = x[None] if x.ndim == 2 else x
                if self.norm_first:
            """,
        },
        "A single text without a batch axis gets one: the result has an axis too many. (n, "
        "d_model) in, (n, d_model) out.",
    )

    wrong(
        "block_float32",
        {
            "x + self.feed_forward(self.norm2(x))":
                "(x + self.feed_forward(self.norm2(x))).float()",
            "(x + self.feed_forward(x))": "(x + self.feed_forward(x)).float()",
        },
        "Your output is float32. Float64 inputs should keep their precision.",
    )

    wrong(
        "block_eps_of_its_own",
        {
            "LayerNorm(d_model), LayerNorm(d_model)":
                "LayerNorm(d_model, 1e-12), LayerNorm(d_model, 1e-12)",
        },
        "Your output differs a little from torch's, as with another eps than 1e-5 in the norms. "
        "That is the default of exercise 1, and of torch's block.",
        seen="answers written blind",
    )

choice(
    "answer_norm",
    "a",
    reason="Ten times larger features have a ten times larger mean difference and standard "
    "deviation: the quotient stays the same, up to the tiny effect of eps.",
)
choice(
    "answer_norm",
    "b",
    reason="The mean grows by 3 as well, and it is subtracted. The variance does not change.",
)
choice(
    "answer_norm",
    "c",
    reason="Mean and variance of 'cat' are computed from the features of 'cat' alone. A neighbour "
    "would matter if the norm ran over the words.",
)
choice(
    "answer_norm",
    "d",
    right=True,
    reason="One feature of 100 makes the standard deviation about 12, so that all the other features "
    "of the word become small. Layer norm keeps the pattern, that is, how the features of a word differ "
    "from each other, and this change is one of the pattern.",
)
choice(
    "answer_parameters",
    "a",
    reason="These are the six matrices alone: 4 * 64 * 64 + 2 * 64 * 256. Each linear layer has a "
    "bias, and the norms have parameters too.",
)
choice(
    "answer_parameters",
    "b",
    reason="One norm is missing. There are two, each with 64 numbers gamma and 64 numbers beta.",
)
choice(
    "answer_parameters",
    "c",
    right=True,
    reason="Attention 4 * (64 * 64 + 64) = 16,640; feed-forward 64 * 256 + 256 + 256 * 64 + 64 = "
    "33,088; two norms 2 * (64 + 64) = 256. The number of heads plays no part.",
)
choice(
    "answer_parameters",
    "d",
    reason="You count the attention eight times. The heads share out the 64 features: eight heads "
    "have as many parameters together as one.",
)
choice(
    "answer_depth",
    "a",
    reason="At the rate 0.01 warm-up helped. At 0.003 the same stack learned without it.",
)
choice(
    "answer_depth",
    "b",
    right=True,
    reason="At 0.01 the pre-norm stack and the one without norms learn from the start; the post-norm "
    "stack is stuck, and learns at 0.003 or, less well, with warm-up.",
)
choice(
    "answer_depth",
    "c",
    reason="Look at the stack without norms: it learns, a little less well than pre-norm at the same "
    "rate.",
)
choice(
    "answer_depth",
    "d",
    reason="It fails at 0.003 as well, where post-norm with residuals learns. Figure 3 shows what is "
    "wrong before the first step: all words have become alike.",
)
choice(
    "answer_silent_bug",
    "a",
    reason="causal_mask is True where a word may look, and the course's blocks want just that. Only "
    "torch's own layers need it turned around.",
)
choice(
    "answer_silent_bug",
    "b",
    right=True,
    reason="nn.LayerNorm([n, 16]) takes one mean and one variance over all words and features of the "
    "text. So a later word changes the result of an earlier one: the mask is passed by. Layer norm "
    "belongs to one word.",
)
choice(
    "answer_silent_bug",
    "c",
    reason="A larger eps makes the variance a little smaller than 1, for each word by itself. No word "
    "feels another one through it.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="A feed-forward of any width works on each word by itself. A wider one costs more, and "
    "leaks nothing.",
)


with exercise("mended_block"):
    wrong(
        "mend_copied",
        {"LayerNorm(16)\n": "nn.LayerNorm([n, 16])\n"},
        "Your block does what the friend's did as it was. Its norm1 takes one mean over all words "
        "and all features of a text, so each word feels the later ones.",
    )

    wrong(
        "mend_over_words",
        {"LayerNorm(16)\n": "nn.LayerNorm([n])\n"},
        "Your block takes no text of n words with 16 features, as where norm1 is made for the number "
        "of words. Mean and variance are those of one word, over its 16 features.",
    )

    wrong(
        "mend_no_norm",
        {"LayerNorm(16)\n": "nn.Identity()\n"},
        "The wrong norm is gone, and with it the norm. What goes into the attention is normalised, "
        "word by word.",
    )

    wrong(
        "mend_mask_turned",
        {"torch.tensor(causal_mask(n))": "torch.tensor(causal_mask(n)).T"},
        "You turned the mask around. It was right as it was: True means 'may attend', in lesson 6 "
        "as in this block.",
    )

    wrong(
        "mend_mask_inverted",
        {"torch.tensor(causal_mask(n))": "~torch.tensor(causal_mask(n))"},
        "You exchanged True and False of the mask. It was right as it was: True means 'may "
        "attend', unlike in torch's own layers.",
    )

    wrong(
        "mend_all_defaults",
        {"LayerNorm(16, eps=1e-3)": "LayerNorm(16)", "FeedForward(16, 128)": "FeedForward(16, 32)"},
        "You changed more than the mistake: the larger eps and the wider feed-forward were the "
        "friend's choice, and no bug.",
    )

    wrong(
        "mend_eps_default",
        {"LayerNorm(16, eps=1e-3)": "LayerNorm(16)"},
        "norm2 has the usual eps again. A larger one mixes no words: it was no bug.",
    )

    wrong(
        "mend_own_block",
        {
            "norm1 = LayerNorm(16)\n": "block = TransformerBlock(16, 2, 128, norm_first=True)\n",
            "norm2 = ": "block.norm2 = ",
            "feed_forward = FeedForward(16, 128)": "",
            "SideBySide(norm1, norm2, feed_forward)": "block",
        },
        "Your feed-forward works on what the attention has changed, as in your own pre-norm block. "
        "The friend's two parts work side by side on the same x, and that was no bug.",
    )

    wrong(
        "mend_post_norm",
        {
            "norm1 = LayerNorm(16)\n": "block = TransformerBlock(16, 2, 128)\n",
            "norm2 = ": "block.norm2 = ",
            "feed_forward = FeedForward(16, 128)": "",
            "SideBySide(norm1, norm2, feed_forward)": "block",
        },
        "Your block is post-norm. The friend normalises what goes into a part, and that was no bug.",
    )

    wrong(
        "mend_norm1_learns_nothing",
        {"LayerNorm(16)\n": "nn.LayerNorm(16, elementwise_affine=False)\n"},
        "Your norm1 has no scale and shift of 16 numbers each to learn. The friend's norm had a "
        "learned scale and shift, and they were no bug: only what they were taken over was.",
        seen="answers written blind",
    )

    wrong(
        "mend_another_class",
        {
            "mask = torch":
            """
                class Block(nn.Module):
                    def __init__(self, norm1, norm2, feed_forward):
                        super().__init__()
                        self.attention = MultiHeadAttention(16, 2)
                        self.norm1, self.norm2, self.feed_forward = norm1, norm2, feed_forward

                    def forward(self, x, mask=None):
                        seen, weights = self.attention(self.norm1(x), mask=mask)
                        return x + seen + self.feed_forward(self.norm2(x)), weights

                mask = torch
            """,
            "SideBySide(": "Block(",
        },
        "Your block is no SideBySide. The friend's class was no bug: the block is made of it.",
        seen="read in a review of the checks",
    )

    wrong(
        "mend_group_norm",
        {"LayerNorm(16)\n": "nn.GroupNorm(1, 16)\n"},
        "In a batch your texts come out otherwise than alone, as with a norm that takes its mean "
        "over the words too (nn.GroupNorm, for one, takes axis 1 for the features, and where n is "
        "another number than theirs it raises an error). Layer norm works on the last axis, "
        "whatever stands in front.",
        seen="answers written blind",
    )


choice(
    "answer_recall_positions",
    "a",
    reason="The fast hands repeat, but the slow ones tell positions far beyond 24 apart: no two of "
    "these vectors are equal.",
)
choice(
    "answer_recall_positions",
    "b",
    right=True,
    reason="With random starts, so that all positions were trained, a learned table had little "
    "trouble at 24. What was missing is training there, not a better formula.",
)
choice(
    "answer_recall_positions",
    "c",
    reason="The formula gives a vector for every position. It was the model that had never met them.",
)
choice(
    "answer_recall_heads",
    "a",
    reason="The four projections are d_model by d_model whatever the number of heads: the features "
    "are only divided among more heads.",
)
choice(
    "answer_recall_heads",
    "b",
    reason="Narrower: 64 / 8 = 8 features a head instead of 32.",
)
choice(
    "answer_recall_heads",
    "c",
    right=True,
    reason="One map a head, and the same number of parameters: each head works with fewer features.",
)
choice(
    "answer_recall_scale",
    "a",
    right=True,
    reason="The variance of a dot product of d_k random pairs is d_k. The root brings the scores "
    "back to size 1.",
)
choice(
    "answer_recall_scale",
    "b",
    reason="The softmax sees to that, with any scores.",
)
choice(
    "answer_recall_scale",
    "c",
    reason="Scores above 1 are fine, and still occur: the division brings their spread to about 1, "
    "it does not limit them.",
)
