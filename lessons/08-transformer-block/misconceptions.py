"""Wrong implementations of lesson 8, each with the sentence its author needs."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.implementations import choice, misconception


class MultiHeadAttention(nn.Module):
    """Stand in, for the linter, for the layer of lesson 5."""


class LayerNorm(nn.Module):
    """Stand in, for the linter."""


class FeedForward(nn.Module):
    """Stand in, for the linter."""


# --- LayerNorm ----------------------------------------------------------------------------


@misconception(
    "LayerNorm",
    "norm_unbiased",
    sentence="You divide the sum of squares by d_model - 1. That is torch's default for var and "
    "std, and it estimates the variance of a larger population. Layer norm describes just "
    "these features: divide by d_model.",
    seen="public reimplementations that call x.var or x.std with torch's defaults",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m, v = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_unbiased_std_eps_outside",
    sentence="Two differences from nn.LayerNorm at once: your standard deviation divides by "
    "d_model - 1, and eps is added to it outside the root. The Annotated Transformer has "
    "it so; torch's layer, and this course, do not.",
    seen="The Annotated Transformer (Rush 2018)",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m, s = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.gamma * (x - m) / (s + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_eps_outside",
    sentence="eps is added to the standard deviation, after the root. It belongs to the variance, "
    "inside the root: there it also keeps the gradient finite when all features of a word "
    "are equal.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / (torch.sqrt(v) + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_over_time",
    sentence="Mean and variance run over the words of the text, for each feature. Then a word's "
    "result depends on its neighbours, and a causal model sees the future. Each word is "
    "normalised by itself, over its features.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-2, keepdim=True)
        v = x.var(-2, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_over_dim_1",
    sentence="Mean and variance run over axis 1. That is the features of a single text (n, "
    "d_model), but the words of a batch. Count the axis from the end.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(1, keepdim=True)
        v = x.var(1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_over_batch",
    sentence="Mean and variance run over the first axis, the texts of the batch. That is batch "
    "norm: a text's result then depends on which other texts come with it. Each word is "
    "normalised by itself, over its features.",
    seen="batch norm",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(0, keepdim=True)
        v = x.var(0, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_over_batch_and_time",
    sentence="Mean and variance run over all words of all texts, for each feature. That is batch "
    "norm. Each word is normalised by itself, over its features.",
    seen="nn.BatchNorm1d on sequences",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        dims = tuple(range(x.ndim - 1))
        m = x.mean(dims, keepdim=True)
        v = x.var(dims, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_over_words_and_features",
    sentence="Mean and variance run over words and features together: one number for a whole text. "
    "Then words influence each other, and padding changes everything. Each word is "
    "normalised by itself.",
    seen="layer norm of images",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean((-2, -1), keepdim=True)
        v = x.var((-2, -1), correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_over_all_but_first",
    sentence="Mean and variance run over all axes but the first. That suits a picture; in a text "
    "it lets words influence each other. Only the last axis, the features, is normalised.",
    seen="F.layer_norm(x, x.shape[1:]) in public code",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        dims = tuple(range(1, x.ndim))
        m = x.mean(dims, keepdim=True)
        v = x.var(dims, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_over_everything",
    sentence="One mean and one variance for the whole tensor. Each word has a mean and a variance "
    "of its own, over its features.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.gamma * (x - x.mean()) / torch.sqrt(x.var(correction=0) + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_without_gamma",
    sentence="gamma is never used. The layer could not choose how large each feature should be: "
    "multiply by it.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_without_beta",
    sentence="beta is never used. It is added at the end, so that a feature need not have mean 0.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps)


@misconception(
    "LayerNorm",
    "norm_no_parameters",
    sentence="The layer has no gamma and no beta: it normalises and cannot learn anything. Both "
    "are nn.Parameters of shape (d_model,), and both are used.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return (x - m) / torch.sqrt(v + self.eps)


@misconception(
    "LayerNorm",
    "norm_swapped",
    sentence="gamma and beta have changed places: yours multiplies by beta and adds gamma. With "
    "the start values every result is 1.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.beta * (x - m) / torch.sqrt(v + self.eps) + self.gamma


@misconception(
    "LayerNorm",
    "norm_beta_before_gamma",
    sentence="beta is added before gamma multiplies, so the shift is scaled as well. First the "
    "scale, then the shift.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * ((x - m) / torch.sqrt(v + self.eps) + self.beta)


@misconception(
    "LayerNorm",
    "norm_gamma_zeros",
    sentence="gamma starts with zeros, so a new layer gives 0 for every word. It starts with ones: "
    "a new layer just normalises.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.zeros(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_beta_ones",
    sentence="beta starts with ones, so a new layer shifts every feature by 1. It starts with "
    "zeros: a new layer just normalises.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_random_start",
    sentence="gamma and beta start with random numbers, as the weights of a linear layer do. They "
    "start with ones and zeros: a new layer just normalises.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.randn(d_model))
        self.beta = nn.Parameter(torch.randn(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_plain_tensors",
    sentence="gamma or beta is a plain tensor. An optimizer never sees it, so it is never trained. "
    "Wrap it in nn.Parameter.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = torch.ones(d_model)
        self.beta = torch.zeros(d_model)

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_gamma_plain_tensor",
    sentence="gamma or beta is a plain tensor. An optimizer never sees it, so it is never trained. "
    "Wrap it in nn.Parameter.",
    seen="a trial with typical wrong answers",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = torch.ones(d_model)
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_no_super",
    sentence="The constructor does not call super().__init__(). nn.Module needs it first, or it "
    "cannot keep parameters.",
    seen="a trial with typical wrong answers",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_torch_names",
    sentence="Your parameters are called weight and bias, as in torch. The paper and this course "
    "call them gamma and beta.",
    seen="nn.LayerNorm",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.weight * (x - m) / torch.sqrt(v + self.eps) + self.bias


@misconception(
    "LayerNorm",
    "norm_one_number",
    sentence="gamma and beta hold one number each. There is one for every feature: their shape is "
    "(d_model,).",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(1))
        self.beta = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_no_eps",
    sentence="eps is not used. A word whose features are all equal has variance 0, and 0 / 0 is "
    "NaN.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v) + self.beta


@misconception(
    "LayerNorm",
    "norm_eps_fixed",
    sentence="The argument eps is ignored; your code always uses 1e-5.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + 1e-5) + self.beta


@misconception(
    "LayerNorm",
    "norm_eps_1e_6",
    sentence="Your eps is 1e-6 when none is given. The default of nn.LayerNorm and of this "
    "exercise is 1e-5; other libraries use other values, and published weights fit only "
    "their own.",
    seen="other libraries' default",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_eps_1e_12",
    sentence="Your eps is 1e-12 when none is given. The default of nn.LayerNorm and of this "
    "exercise is 1e-5; other libraries use other values, and published weights fit only "
    "their own.",
    seen="BERT's eps",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-12):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_eps_squared",
    sentence="eps is squared before it is added to the variance. It is added as it is.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps**2) + self.beta


@misconception(
    "LayerNorm",
    "norm_eps_as_floor",
    sentence="eps is used as a smallest value of the variance. It is always added to the variance.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v.clamp(min=self.eps)) + self.beta


@misconception(
    "LayerNorm",
    "norm_variance_not_root",
    sentence="You divide by the variance. Divide by its root, the standard deviation: otherwise "
    "features of size 10 become features of size 1/10.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / (v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_no_mean",
    sentence="The mean is not subtracted. What you have is RMS norm, which is used in some newer "
    "models; layer norm first makes the mean 0.",
    seen="RMS norm (Zhang and Sennrich 2019)",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        v = x.square().mean(-1, keepdim=True)
        return self.gamma * x / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_variance_about_zero",
    sentence="The mean is subtracted from x, but your variance is the mean of the squares of x "
    "itself. It is the mean of the squared differences from the mean.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m, v = x.mean(-1, keepdim=True), x.square().mean(-1, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_only_scaled",
    sentence="You divide by the standard deviation, and forget to subtract the mean.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * x / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_only_centred",
    sentence="The mean is subtracted, but nothing is divided: the variance stays what it was.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.gamma * (x - x.mean(-1, keepdim=True)) + self.beta


@misconception(
    "LayerNorm",
    "norm_sum_of_squares",
    sentence="You divide by the root of the sum of squares. That makes each word a vector of "
    "length 1, and its features small. The variance is their mean.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        c = x - x.mean(-1, keepdim=True)
        v = c.square().sum(-1, keepdim=True)
        return self.gamma * c / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_absolute",
    sentence="You divide by the mean absolute difference from the mean. Layer norm divides by the "
    "root of the mean squared difference.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        c = x - x.mean(-1, keepdim=True)
        return self.gamma * c / (c.abs().mean(-1, keepdim=True) + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_min_max",
    sentence="Your features lie between 0 and 1: smallest and largest value are used. Layer norm "
    "uses mean and variance.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
        return self.gamma * (x - low) / (high - low + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_axis_lost",
    sentence="The mean loses its axis, and then it is subtracted along the wrong one, or the "
    "shapes do not fit. Keep the axis with length 1.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m, v = x.mean(-1), x.var(-1, correction=0)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_one_batch_axis",
    sentence="Your code takes exactly one batch axis. There may be none, two or more: count axes "
    "from the end.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        batch, n, d_model = x.shape
        m = x.mean(2).reshape(batch, n, 1)
        v = x.var(2, correction=0).reshape(batch, n, 1)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_float32",
    sentence="The computation goes through float32. Float64 inputs should keep their precision.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        x = x.float()
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return (self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta).float()


@misconception(
    "LayerNorm",
    "norm_rounded",
    sentence="The result has the right type, but on the way mean and variance were rounded to "
    "float32. Float64 inputs should keep their precision.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.float().mean(-1, keepdim=True)
        v = x.float().var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_in_place",
    sentence="The mean is subtracted from x in place: the caller's tensor changes, and the "
    "residual connection around the layer would add the wrong thing.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        if x.requires_grad:
            return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta
        x -= m
        return self.gamma * x / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_detached",
    sentence="Mean and variance are treated as constants, without gradient. They depend on x too, "
    "and the gradient through them matters.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        with torch.no_grad():
            m = x.mean(-1, keepdim=True)
            v = x.var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_variance_detached",
    sentence="The variance is treated as a constant, without gradient. It depends on x too, and "
    "the gradient through it matters.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.detach().var(-1, correction=0, keepdim=True)
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_running",
    sentence="In evaluation mode your layer uses statistics remembered from training. That is "
    "batch norm; layer norm remembers nothing and does the same in both modes.",
    seen="batch norm",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        if self.training:
            self.seen = m.mean().detach(), v.mean().detach()
        else:
            m, v = self.seen
        return self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_one_plus_gamma",
    sentence="The scale is 1 + gamma. Some models do so, with gamma starting at 0. Here gamma "
    "itself is the scale, and it starts at 1.",
    seen="Gemma's norm",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return (1 + self.gamma) * (x - m) / torch.sqrt(v + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_mean_of_squares_minus_square_of_mean",
    sentence="Your variance is the mean of the squares minus the square of the mean. Far from 0 "
    "these are two large numbers, nearly equal: rounding is all that is left of them, it can be "
    "below 0, and the root is NaN. Take the mean away first, then square.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.square().mean(dim=-1, keepdim=True) - mean.square()
        return self.gamma * (x - mean) / torch.sqrt(variance + self.eps) + self.beta


@misconception(
    "LayerNorm",
    "norm_with_residual",
    sentence="The input is added to the result. The residual connection belongs to the block, not "
    "to the norm.",
    seen="folklore",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, correction=0, keepdim=True)
        return x + self.gamma * (x - m) / torch.sqrt(v + self.eps) + self.beta


# --- FeedForward --------------------------------------------------------------------------


@misconception(
    "FeedForward",
    "feed_no_relu",
    sentence="There is no ReLU. Two linear layers without anything between them are one linear "
    "layer: the wide middle would be of no use.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x))


@misconception(
    "FeedForward",
    "feed_no_super",
    sentence="The constructor does not call super().__init__(). nn.Module needs it first, or it "
    "cannot keep its parts.",
    seen="a trial with typical wrong answers",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_relu_last",
    sentence="The ReLU comes after the second layer. Then the two layers are one linear layer, and "
    "the block could only add positive numbers to a word. ReLU stands between them.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return torch.relu(self.linear2(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_relu_twice",
    sentence="A second ReLU follows the second layer. Then the block could only add positive "
    "numbers to a word. There is one ReLU, between the layers.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return torch.relu(self.linear2(torch.relu(self.linear1(x))))


@misconception(
    "FeedForward",
    "feed_relu_first",
    sentence="The ReLU is applied to the input, before the first layer, so the negative half of "
    "every word is lost. It stands between the two layers.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(torch.relu(x)))


@misconception(
    "FeedForward",
    "feed_gelu",
    sentence="You use GELU. Many later models do; the paper and this exercise have ReLU, and "
    "trained weights fit only one of them.",
    seen="BERT and GPT",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.gelu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_silu",
    sentence="You use SiLU. Some later models do; the paper and this exercise have ReLU.",
    seen="newer models",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.silu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_leaky",
    sentence="You use a leaky ReLU: negative numbers come through, made small. ReLU makes them 0.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.leaky_relu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_tanh",
    sentence="You use tanh. The exercise asks for ReLU.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.tanh(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_sigmoid",
    sentence="You use a sigmoid. The exercise asks for ReLU.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.sigmoid(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_softmax",
    sentence="You use a softmax between the layers, as if hidden features competed. The exercise "
    "asks for ReLU.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.softmax(self.linear1(x), -1))


@misconception(
    "FeedForward",
    "feed_relu6",
    sentence="Your ReLU also cuts at the top. ReLU lets every positive number through as it is.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.clamp(self.linear1(x), 0, 1))


@misconception(
    "FeedForward",
    "feed_absolute",
    sentence="You take absolute values between the layers. ReLU keeps positive numbers and makes "
    "negative ones 0.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.abs(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_relu_inverted",
    sentence="Negative numbers come through and positive ones become 0. ReLU does the opposite.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.clamp(self.linear1(x), max=0))


@misconception(
    "FeedForward",
    "feed_dropout",
    sentence="Dropout was left in. It makes results random while training, and this course's parts "
    "have none.",
    seen="the paper's own training setup",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.dropout(torch.relu(self.linear1(x)), 0.1, self.training))


@misconception(
    "FeedForward",
    "feed_dropout_always",
    sentence="Dropout was left in and never switched off, so even evaluation is random. This "
    "course's parts have none.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.dropout(torch.relu(self.linear1(x)), 0.1))


@misconception(
    "FeedForward",
    "feed_names_swapped",
    sentence="linear1 and linear2 have changed names: linear1 should widen from d_model to d_ff, "
    "linear2 should come back. Weights stored under these names would not fit.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear2 = nn.Linear(d_model, d_ff)
        self.linear1 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear1(torch.relu(self.linear2(x)))


@misconception(
    "FeedForward",
    "feed_sequential",
    sentence="Your layers have other names than linear1 and linear2. Other code looks for them, "
    "for example to load weights.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        return self.net(x)


@misconception(
    "FeedForward",
    "feed_no_bias",
    sentence="Your linear layers have no bias. Without it every threshold of the ReLU would be at "
    "0.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff, bias=False)
        self.linear2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_no_bias_at_the_end",
    sentence="linear2 has no bias. Both layers have one.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_d_ff_ignored",
    sentence="The hidden width is always 4 * d_model and the argument d_ff is ignored. Four times "
    "is a habit of the paper, not a law.",
    seen="GPT-2 style code",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, 4 * d_model)
        self.linear2 = nn.Linear(4 * d_model, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_narrow",
    sentence="The hidden layer is as wide as the input and d_ff is not used for it. linear1 widens "
    "to d_ff, linear2 comes back.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_model)
        self.linear2 = nn.Linear(d_model, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_residual",
    sentence="The input is added to the result. The residual connection belongs to the block: now "
    "it would be added twice.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return x + self.linear2(torch.relu(self.linear1(x)))


@misconception(
    "FeedForward",
    "feed_norm",
    sentence="A layer norm at the end is one too many. The block has its norms already.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return F.layer_norm(self.linear2(torch.relu(self.linear1(x))), x.shape[-1:])


@misconception(
    "FeedForward",
    "feed_one_layer_only",
    sentence="The second linear layer is missing, or does nothing: the result should have d_model "
    "features again.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return torch.relu(self.linear1(x))


@misconception(
    "FeedForward",
    "feed_gradient_cut",
    sentence="The hidden layer is detached, so no gradient comes to linear1 and to x.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)).detach())


@misconception(
    "FeedForward",
    "feed_in_place",
    sentence="ReLU is applied to x itself, in place: the caller's tensor loses its negative half, "
    "and so does the residual. ReLU stands between the layers.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        if x.requires_grad:
            return self.linear2(torch.relu(self.linear1(x)))
        y = self.linear2(torch.relu(self.linear1(x)))
        x.relu_()
        return y


@misconception(
    "FeedForward",
    "feed_float32",
    sentence="The result is converted to float32. Float64 inputs should keep their precision.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x))).float()


@misconception(
    "FeedForward",
    "feed_shared_over_words",
    sentence="The hidden features are averaged over the words. The feed-forward works on each word "
    "by itself; only attention mixes words.",
    seen="folklore",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        h = torch.relu(self.linear1(x))
        return self.linear2(h.mean(-2, keepdim=True).expand_as(h))


# --- TransformerBlock ---------------------------------------------------------------------


@misconception(
    "TransformerBlock",
    "block_no_attention_residual",
    sentence="The input is not added to what the attention gives. Without this residual connection "
    "a word forgets what it was before it looked around.",
    seen="folklore",
)
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
            x = a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_no_feed_forward_residual",
    sentence="The residual around the feed-forward is missing: its result replaces the word. It "
    "should be added to it.",
    seen="folklore",
)
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
            return self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_no_residual",
    sentence="Both residual connections are missing. Each part should add to a word, not replace "
    "it.",
    seen="folklore",
)
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
            x = a
            return self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(a)
        return self.norm2(self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_residual_after_norm",
    sentence="In post-norm you normalise only what a part gives, and add the residual afterwards. "
    "Add first, then normalise the sum.",
    seen="a public issue: x + norm(sublayer(x))",
)
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
        x = x + self.norm1(a)
        return x + self.norm2(self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_norm_after_part_in_pre_norm",
    sentence="In pre-norm you normalise what a part gives. Normalise what goes into it.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(x, mask=mask)
            x = x + self.norm1(a)
            return x + self.norm2(self.feed_forward(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_always_post",
    sentence="norm_first is ignored: your block is always post-norm.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_always_pre",
    sentence="norm_first is ignored: your block is always pre-norm.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        a, w = self.attention(self.norm1(x), mask=mask)
        x = x + a
        return x + self.feed_forward(self.norm2(x)), w


@misconception(
    "TransformerBlock",
    "block_orders_swapped",
    sentence="The two orders are exchanged. norm_first=True means that a norm stands before each "
    "part.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if not self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_default_pre",
    sentence="Your block is pre-norm when nothing is said. The default is norm_first=False, post- "
    "norm as in the paper.",
    seen="newer models",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=True):
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


@misconception(
    "TransformerBlock",
    "block_norm_on_the_residual_path",
    sentence="In pre-norm the norm stands on the residual path: x itself is replaced by its "
    "normalised version. The residual adds the untouched x; only the part's input is "
    "normalised.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = self.norm1(x)
            a, w = self.attention(x, mask=mask)
            x = self.norm2(x + a)
            return x + self.feed_forward(x), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_first_norm_on_the_residual_path",
    sentence="In pre-norm the first norm stands on the residual path: x itself is replaced by its "
    "normalised version. The residual adds the untouched x.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = self.norm1(x)
            a, w = self.attention(x, mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_second_norm_on_the_residual_path",
    sentence="In pre-norm the second norm stands on the residual path: the middle is replaced by "
    "its normalised version. The residual adds the untouched one.",
    seen="folklore",
)
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
            x = self.norm2(x + a)
            return x + self.feed_forward(x), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_one_norm_object",
    sentence="norm1 and norm2 are one object, so both norms share gamma and beta. Make two.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = self.norm2 = LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_norm1_twice",
    sentence="norm1 is used in both places and norm2 never.",
    seen="folklore",
)
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
            return x + self.feed_forward(self.norm1(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm1(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_norms_exchanged",
    sentence="norm1 and norm2 have changed places. norm1 belongs to the attention, norm2 to the "
    "feed-forward.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm2(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm1(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm2(x + a)
        return self.norm1(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_no_first_norm",
    sentence="The norm that belongs to the attention is missing.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(x, mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = x + a
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_no_second_norm",
    sentence="The norm that belongs to the feed-forward is missing.",
    seen="folklore",
)
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
            return x + self.feed_forward(x), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return x + self.feed_forward(x), w


@misconception(
    "TransformerBlock",
    "block_no_norm",
    sentence="norm1 and norm2 are made and never used.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(x, mask=mask)
            x = x + a
            return x + self.feed_forward(x), w
        a, w = self.attention(x, mask=mask)
        x = x + a
        return x + self.feed_forward(x), w


@misconception(
    "TransformerBlock",
    "block_extra_final_norm",
    sentence="In pre-norm a norm follows at the end. A stack may have one after its last block; "
    "the block itself has not.",
    seen="folklore",
)
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
            return self.norm2(x + self.feed_forward(self.norm2(x))), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_extra_final_norm_of_its_own",
    sentence="In pre-norm a third norm follows at the end. A stack may have one after its last "
    "block; the block itself has not.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.norm3 = LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return self.norm3(x + self.feed_forward(self.norm2(x))), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_attention_of_raw_x",
    sentence="In pre-norm the attention works on x itself. It should work on the normalised x.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(x, mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_only_queries_normalised",
    sentence="In pre-norm only the queries come from the normalised x; keys and values come from x "
    "itself. All three come from the normalised one.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), x, x, mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_values_not_normalised",
    sentence="In pre-norm the values come from x itself. Queries, keys and values all come from "
    "the normalised x.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            y = self.norm1(x)
            a, w = self.attention(y, y, x, mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_feed_forward_of_raw_x",
    sentence="In pre-norm the feed-forward works on the middle itself. It should work on the "
    "normalised one.",
    seen="folklore",
)
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
            return x + self.feed_forward(x), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_second_residual_from_x",
    sentence="The second residual adds the block's input again. It should add what the first half "
    "gave.",
    seen="folklore",
)
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
            h = x + a
            return x + self.feed_forward(self.norm2(h)), w
        a, w = self.attention(x, mask=mask)
        h = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(h)), w


@misconception(
    "TransformerBlock",
    "block_second_residual_before_norm1",
    sentence="In post-norm the second residual takes the sum before norm1. It takes the result of "
    "norm1.",
    seen="folklore",
)
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
        x = x + a
        return self.norm2(x + self.feed_forward(self.norm1(x))), w


@misconception(
    "TransformerBlock",
    "block_parallel",
    sentence="Attention and feed-forward both work on the block's input, side by side. The feed- "
    "forward should work on what the first half gave.",
    seen="GPT-J's parallel block",
)
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
            return x + a + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        h = self.norm1(x + a)
        return self.norm2(h + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_feed_forward_first",
    sentence="The feed-forward comes before the attention. First the words look around, then each "
    "works by itself.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.feed_forward(self.norm2(x))
            a, w = self.attention(self.norm1(x), mask=mask)
            return x + a, w
        x = self.norm2(x + self.feed_forward(x))
        a, w = self.attention(x, mask=mask)
        return self.norm1(x + a), w


@misconception(
    "TransformerBlock",
    "block_no_feed_forward",
    sentence="The feed-forward is made and never used.",
    seen="folklore",
)
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
            return x + a, w
        a, w = self.attention(x, mask=mask)
        return self.norm2(self.norm1(x + a)), w


@misconception(
    "TransformerBlock",
    "block_mask_forgotten",
    sentence="The mask is not passed on to the attention, in one of the two orders or in both: "
    "every word sees every word.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x))
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_mask_forgotten_in_pre_norm",
    sentence="The mask is not passed on to the attention, in one of the two orders or in both: "
    "every word sees every word.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x))
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_mask_forgotten_in_post_norm",
    sentence="The mask is not passed on to the attention, in one of the two orders or in both: "
    "every word sees every word.",
    seen="folklore",
)
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
        a, w = self.attention(x)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_mask_inverted",
    sentence="The mask is turned around on its way to the attention. In this course True means: "
    "may attend, here and there.",
    seen="nn.TransformerEncoderLayer's src_mask",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=None if mask is None else ~mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=None if mask is None else ~mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_mask_as_key",
    sentence="The mask is passed as the attention's second argument, which is `key`. Pass it by "
    "its name.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_mask_transposed",
    sentence="The mask is transposed, so that keys and queries change places. Pass it on as it is.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        mask = mask.mT if mask is not None and mask.ndim > 1 else mask
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_mask_gets_an_axis",
    sentence="You insert a head axis into the mask. The attention does that itself where it is "
    "needed; yours makes the weights larger or mixes up texts and heads.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        mask = None if mask is None else mask.unsqueeze(-3) if mask.ndim > 1 else mask
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_always_causal",
    sentence="Without a mask your block hides the future. None masks nothing: whoever wants a "
    "causal block passes a causal mask.",
    seen="GPT-style blocks",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_mask_hides_output",
    sentence="The rows of words that may attend to nothing are set to 0 at the end. Their residual "
    "and feed-forward go on as usual; only the attention finds nothing.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        a, w = self.attention(self.norm1(x) if self.norm_first else x, mask=mask)
        h = x + a if self.norm_first else self.norm1(x + a)
        y = self.feed_forward(self.norm2(h) if self.norm_first else h)
        y = h + y if self.norm_first else self.norm2(h + y)
        return y * (w.sum((-1, -3)) > 0)[..., None], w


@misconception(
    "TransformerBlock",
    "block_change_hidden",
    sentence="Words that may attend to nothing get no change from the attention at all. Lesson 5's "
    "layer gives them the bias of W_o, and that is added as for every word.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        a, w = self.attention(self.norm1(x) if self.norm_first else x, mask=mask)
        a = a * (w.sum((-1, -3)) > 0)[..., None]
        h = x + a if self.norm_first else self.norm1(x + a)
        y = self.feed_forward(self.norm2(h) if self.norm_first else h)
        return h + y if self.norm_first else self.norm2(h + y), w


@misconception(
    "TransformerBlock",
    "block_output_only",
    sentence="You return only the output. The exercise asks for the output and the weights of all "
    "heads.",
    seen="folklore",
)
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
            return x + self.feed_forward(self.norm2(x))
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x))


@misconception(
    "TransformerBlock",
    "block_no_super",
    sentence="The constructor does not call super().__init__(). nn.Module needs it first, or it "
    "cannot keep its parts.",
    seen="a trial with typical wrong answers",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
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


@misconception(
    "TransformerBlock",
    "block_tuple_added",
    sentence="The attention returns two things, its output and its weights, and you add the pair to "
    "x. Take it apart first.",
    seen="a trial with typical wrong answers",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask=mask)
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask=mask))
        return self.norm2(x + self.feed_forward(x))


@misconception(
    "TransformerBlock",
    "block_order_of_results",
    sentence="You return (weights, output). The course's order is (output, weights).",
    seen="folklore",
)
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
            return w, x + self.feed_forward(self.norm2(x))
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return w, self.norm2(x + self.feed_forward(x))


@misconception(
    "TransformerBlock",
    "block_weights_averaged",
    sentence="The weights are averaged over the heads, as nn.MultiheadAttention does when nothing "
    "is said. Return them head by head.",
    seen="nn.MultiheadAttention",
)
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
            return x + self.feed_forward(self.norm2(x)), w.mean(-3)
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w.mean(-3)


@misconception(
    "TransformerBlock",
    "block_first_head_only",
    sentence="Only the weights of the first head are returned. Return all heads.",
    seen="folklore",
)
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
            return x + self.feed_forward(self.norm2(x)), w[..., :1, :, :]
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w[..., :1, :, :]


@misconception(
    "TransformerBlock",
    "block_weights_none",
    sentence="The second result is None, as the attention of nn.TransformerEncoderLayer keeps its "
    "weights to itself. Return the weights of all heads.",
    seen="need_weights=False in torch's block",
)
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
            return x + self.feed_forward(self.norm2(x)), None
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), None


@misconception(
    "TransformerBlock",
    "block_weights_detached",
    sentence="The weights are cut off from the gradient. Gradients should flow through both "
    "results.",
    seen="folklore",
)
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
            return x + self.feed_forward(self.norm2(x)), w.detach()
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w.detach()


@misconception(
    "TransformerBlock",
    "block_weights_of_another_call",
    sentence="The weights you return come from a second call of the attention, on the output. They "
    "should be those that were used.",
    seen="folklore",
)
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
            x = x + self.feed_forward(self.norm2(x))
            return x, self.attention(x, mask=mask)[1]
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        x = self.norm2(x + self.feed_forward(x))
        return x, self.attention(x, mask=mask)[1]


@misconception(
    "TransformerBlock",
    "block_dropout",
    sentence="Dropout was left in. The paper trains with it; this course's block has none, so that "
    "it can be compared number by number.",
    seen="the paper's own training setup",
)
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
            x = x + F.dropout(a, 0.1, self.training)
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + F.dropout(a, 0.1, self.training))
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_torch_norms",
    sentence="Your norms are torch's nn.LayerNorm. The block should be built of your own "
    "LayerNorm, with gamma and beta.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_torch_attention",
    sentence="Your attention is torch's nn.MultiheadAttention. The block should be built of lesson "
    "5's MultiHeadAttention.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        hidden = None if mask is None else ~mask
        y = self.norm1(x) if self.norm_first else x
        a, w = self.attention(y, y, y, attn_mask=hidden, average_attn_weights=False)
        h = x + a if self.norm_first else self.norm1(x + a)
        y = self.feed_forward(self.norm2(h) if self.norm_first else h)
        return h + y if self.norm_first else self.norm2(h + y), w


@misconception(
    "TransformerBlock",
    "block_other_names",
    sentence="Your parts have other names than attention, norm1, feed_forward and norm2. Weights "
    "stored under these names would not fit.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, num_heads)
        self.ffn = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attn(self.norm1(x), mask=mask)
            x = x + a
            return x + self.ffn(self.norm2(x)), w
        a, w = self.attn(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.ffn(x)), w


@misconception(
    "TransformerBlock",
    "block_feed_forward_width",
    sentence="The argument d_ff is ignored: the feed-forward's hidden width is one of your own "
    "choosing.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_model)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_feed_forward_four_times",
    sentence="The argument d_ff is ignored: the feed-forward's hidden width is one of your own "
    "choosing.",
    seen="GPT-2 style code",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, 4 * d_model)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_one_head",
    sentence="The attention always has one head: num_heads is ignored.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, 1)
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


@misconception(
    "TransformerBlock",
    "block_in_place",
    sentence="The change is added to x in place, so the caller's tensor changes.",
    seen="folklore",
)
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
            x = x + a if x.requires_grad else x.add_(a)
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a if x.requires_grad else x.add_(a))
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_input_detached",
    sentence="The residual path is detached: gradients reach the earlier blocks only through the "
    "attention.",
    seen="folklore",
)
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
            x = x.detach() + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x.detach() + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_scaled_residual",
    sentence="The residual is multiplied by a number before it is added. Some deep models do so; "
    "here x is added as it is.",
    seen="DeepNorm (Wang and others 2022)",
)
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
            x = 2**0.5 * x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(2**0.5 * x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_relu_between",
    sentence="A ReLU follows the first half. There is no other activation than the one inside the "
    "feed-forward.",
    seen="folklore",
)
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
            x = torch.relu(x + a)
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = torch.relu(self.norm1(x + a))
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_one_text_only",
    sentence="A single text without a batch axis gets one: the result has an axis too many. (n, "
    "d_model) in, (n, d_model) out.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = x[None] if x.ndim == 2 else x
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_batches_merged",
    sentence="All leading axes are merged into one. Two batch axes should stay two.",
    seen="folklore",
)
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = x if x.ndim < 4 else x.flatten(0, -3)
        if self.norm_first:
            a, w = self.attention(self.norm1(x), mask=mask)
            x = x + a
            return x + self.feed_forward(self.norm2(x)), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)), w


@misconception(
    "TransformerBlock",
    "block_float32",
    sentence="The output is converted to float32. Float64 inputs should keep their precision.",
    seen="folklore",
)
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
            return (x + self.feed_forward(self.norm2(x))).float(), w
        a, w = self.attention(x, mask=mask)
        x = self.norm1(x + a)
        return self.norm2(x + self.feed_forward(x)).float(), w


# --- short answers ------------------------------------------------------------------------

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
    reason="A new feed-forward with another width works on each word by itself. It costs more, and "
    "leaks nothing.",
)
