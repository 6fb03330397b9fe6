"""Wrong implementations of lesson 11, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("RMSNorm"):
    wrong(
        "rms_mean_subtracted",
        {"mean_square = x.square()": "x = x - x.mean(dim=-1, keepdim=True)\nmean_square = x.square()"},
        "You subtract the mean first: that is the layer norm of lesson 8, without its beta. RMS norm "
        "leaves the mean in.",
        seen="layer norm (Ba, Kiros, Hinton 2016)",
    )

    wrong(
        "rms_variance",
        {"x.square().mean(dim=-1, keepdim=True)": "x.var(dim=-1, keepdim=True, correction=0)"},
        "You divide by the standard deviation, which measures from the mean. RMS norm divides by the "
        "root of the mean of the squares themselves.",
    )

    wrong(
        "rms_sum_of_squares",
        {"x.square().mean(": "x.square().sum("},
        "You divide by the root of the sum of the squares, the length of the vector. It is their "
        "mean: otherwise the numbers become smaller the more features there are.",
        seen="F.normalize in public code",
    )

    wrong(
        "rms_no_root",
        {"torch.sqrt(mean_square + self.eps)": "(mean_square + self.eps)"},
        "You divide by the mean square. Divide by its root: otherwise features of size 10 become "
        "features of size 1/10.",
    )

    wrong(
        "rms_eps_outside",
        {"torch.sqrt(mean_square + self.eps)": "(torch.sqrt(mean_square) + self.eps)"},
        "eps is added after the root. It belongs inside, to the mean square; there it also keeps the "
        "gradient of a word of zeros finite.",
    )

    wrong(
        "rms_no_eps",
        {"mean_square + self.eps": "mean_square"},
        "eps is not used. A word of zeros then gives 0 / 0, which is NaN.",
    )

    wrong(
        "rms_eps_fixed",
        {"mean_square + self.eps": "mean_square + 1e-6"},
        "The argument eps has no effect: your code uses a small number of its own.",
    )

    wrong(
        "rms_eps_1e_5",
        {"eps=1e-6": "eps=1e-5"},
        "Your eps is 1e-5 when none is given, as in lesson 8's layer norm. Here the default is 1e-6.",
        seen="nn.LayerNorm's default",
    )

    wrong(
        "rms_eps_as_floor",
        {"mean_square + self.eps": "mean_square.clamp(min=self.eps)"},
        "eps is used as a smallest value of the mean square. It is always added to it.",
    )

    wrong(
        "rms_over_words",
        {"dim=-1": "dim=-2"},
        "The mean square runs over the words of the text, for each feature. Each word is normalised "
        "by itself, over its features.",
    )

    wrong(
        "rms_over_dim_1",
        {"dim=-1": "dim=1"},
        "The mean square runs over axis 1, which is the words of a batch. Count the axis from the "
        "end: the features are the last one.",
    )

    wrong(
        "rms_over_everything",
        {"x.square().mean(dim=-1, keepdim=True)": "x.square().mean()"},
        "One mean square for the whole tensor. Each word has one of its own, over its features.",
    )

    wrong(
        "rms_without_gamma",
        {"* self.gamma": ""},
        "gamma has no effect on your result. The layer could not choose how large each feature "
        "should be: multiply by it.",
    )

    wrong(
        "rms_one_plus_gamma",
        {"* self.gamma": "* (1 + self.gamma)"},
        "You multiply by 1 + gamma. Some libraries do so, and start gamma at 0; here gamma starts at 1 "
        "and multiplies as it is.",
        seen="Gemma's RMS norm",
    )

    wrong(
        "rms_gamma_zeros",
        {"torch.ones(d_model)": "torch.zeros(d_model)"},
        "gamma starts with zeros, so a new layer gives 0 for every word. It starts with ones.",
    )

    wrong(
        "rms_gamma_random",
        {"torch.ones(d_model)": "torch.randn(d_model)"},
        "gamma starts with random numbers. It starts with ones: a new layer just normalises.",
    )

    wrong(
        "rms_gamma_one_number",
        {"torch.ones(d_model)": "torch.ones(1)"},
        "gamma holds one number for all features. There is one for each: its shape is (d_model,).",
    )

    wrong(
        "rms_gamma_plain_tensor",
        {"nn.Parameter(torch.ones(d_model))": "torch.ones(d_model)"},
        "gamma is a plain tensor. An optimizer never sees it, so it is never trained. Wrap it in "
        "nn.Parameter.",
    )

    wrong(
        "rms_with_beta",
        {
            "))": ")); self.beta = nn.Parameter(torch.zeros(d_model))",
            "* self.gamma": "* self.gamma + self.beta",
        },
        "Your layer has a beta besides gamma. RMS norm has no shift: gamma is its only parameter.",
        seen="layer norm (Ba, Kiros, Hinton 2016)",
    )

    wrong(
        "rms_torch_names",
        {"self.gamma = nn": "self.weight = nn", "* self.gamma": "* self.weight"},
        "No gamma is found in your layer. Its parameter has another name, for one weight, as in "
        "torch; this course calls it gamma.",
        seen="nn.RMSNorm",
    )

    wrong(
        "rms_float32_inside",
        {
            "x.square().mean(dim=-1, keepdim=True)": "x.float().square().mean(dim=-1, keepdim=True)",
            "return x / torch.sqrt(mean_square + self.eps) * self.gamma":
                "return (x.float() / torch.sqrt(mean_square + self.eps)).to(x.dtype) * self.gamma",
        },
        "Float64 loses half its digits in your layer, as where the norm is computed in float32 "
        "inside. That helps numbers of 16 bits. Compute in the precision of x.",
        seen="Llama's RMS norm",
    )

    wrong(
        "rms_detached",
        {"x.square()": "x.detach().square()"},
        "No gradient flows through the size of the word, so the gradient of x lacks a part: when "
        "a feature grows, the divisor grows with it.",
    )

    wrong(
        "rms_no_super",
        {"super().__init__()": ""},
        "super().__init__() has not run when your constructor needs it. nn.Module needs it first, "
        "or it cannot keep parameters.",
    )

    wrong(
        "rms_in_place",
        {"return x / torch.sqrt(mean_square + self.eps) * self.gamma":
            "return x.detach().div_(torch.sqrt(mean_square + self.eps).detach()) * self.gamma"},
        "Your layer writes into x itself. The residual path, which still needs x, gets other "
        "numbers.",
    )

    wrong(
        "rms_batch_of_one_text",
        {
            "return x / torch.sqrt(mean_square + self.eps) * self.gamma": """
                x = x / torch.sqrt(mean_square + self.eps) * self.gamma
                return x.squeeze(0) if x.ndim > 2 else x
            """,
        },
        "A batch of one text does not come out in the shape of x, as where an axis of length 1 is "
        "squeezed away. All leading axes stay.",
        seen="answers written blind",
        edge=True,
    )


with exercise("SwiGLU"):
    wrong(
        "swiglu_relu",
        {"F.silu": "F.relu"},
        "Your gate goes through ReLU. That is a gated network too (ReGLU); SwiGLU's gate goes through "
        "silu.",
        seen="ReGLU (Shazeer 2020)",
    )

    wrong(
        "swiglu_sigmoid",
        {"F.silu": "torch.sigmoid"},
        "Your gate goes through the sigmoid alone (GLU). silu(z) is z times the sigmoid of z.",
        seen="GLU (Dauphin and others 2017)",
    )

    wrong(
        "swiglu_gelu",
        {"F.silu": "F.gelu"},
        "Your gate goes through GELU, which looks nearly like silu (GEGLU). SwiGLU takes silu.",
        seen="GEGLU (Shazeer 2020)",
    )

    wrong(
        "swiglu_silu_on_up",
        {"F.silu(self.gate(x)) * self.up(x)": "self.gate(x) * F.silu(self.up(x))"},
        "silu stands on up. It belongs to gate: published weights fit only then.",
    )

    wrong(
        "swiglu_silu_on_both",
        {"* self.up(x)": "* F.silu(self.up(x))"},
        "Both gate and up go through silu. Only the gate does.",
    )

    wrong(
        "swiglu_silu_of_product",
        {"F.silu(self.gate(x)) * self.up(x)": "F.silu(self.gate(x) * self.up(x))"},
        "silu comes after the product. It belongs to the gate alone, before the product.",
    )

    wrong(
        "swiglu_no_activation",
        {"F.silu(self.gate(x))": "self.gate(x)"},
        "The gate goes through nothing: the product of two linear layers. silu makes a gate of it.",
    )

    wrong(
        "swiglu_added",
        {"(x)) * self": "(x)) + self"},
        "You add gate and up. They are multiplied: a gate that is shut, 0, lets nothing through.",
    )

    wrong(
        "swiglu_no_gate",
        {"F.silu(self.gate(x)) * self.up(x)": "F.silu(self.up(x))"},
        "gate plays no part in your result. What you have is the old network with silu for ReLU.",
    )

    wrong(
        "swiglu_no_up",
        {" * self.up(x)": ""},
        "up plays no part in your result. The gate should decide about the numbers of up.",
    )

    wrong(
        "swiglu_with_biases",
        {
            "self.gate = nn.Linear(d_model, d_ff, bias=False)": "self.gate = nn.Linear(d_model, d_ff)",
            "self.up = nn.Linear(d_model, d_ff, bias=False)": "self.up = nn.Linear(d_model, d_ff)",
            "self.down = nn.Linear(d_ff, d_model, bias=False)": "self.down = nn.Linear(d_ff, d_model)",
        },
        "Your layers have biases. SwiGLU's three matrices have none: write bias=False.",
        seen="nn.Linear's default",
    )

    wrong(
        "swiglu_one_matrix",
        {
            "self.up = nn.Linear(d_model, d_ff, bias=False)": "",
            "self.gate = nn.Linear(d_model, d_ff, bias=False)":
                "self.gate = nn.Linear(d_model, 2 * d_ff, bias=False)",
            "return self.down(F.silu(self.gate(x)) * self.up(x))":
                "gate, up = self.gate(x).chunk(2, dim=-1); return self.down(F.silu(gate) * up)",
        },
        "gate and up are one matrix in your layer. That is quick, and some libraries do it; here they "
        "are two parts with names of their own.",
        seen="fused gate-up projections",
    )

    wrong(
        "swiglu_residual",
        {"return self.down": "return x + self.down"},
        "You add x to the result. The residual belongs to the block, not into this part.",
    )

    wrong(
        "swiglu_no_down",
        {"return self.down(F.silu(self.gate(x)) * self.up(x))": "return F.silu(self.gate(x)) * self.up(x)"},
        "Your result is what should go into down: it has d_ff features. down brings it back to "
        "d_model.",
    )

    wrong(
        "swiglu_detached_gate",
        {"self.gate(x))": "self.gate(x).detach())"},
        "No gradient comes back through the gate, as where it is detached: its matrix never "
        "learns.",
    )

    wrong(
        "swiglu_dropout",
        {"return self.down(F.silu(self.gate(x)) * self.up(x))":
            "return F.dropout(self.down(F.silu(self.gate(x)) * self.up(x)), 0.1, self.training)"},
        "In training mode your network gives other results than in evaluation mode, as with "
        "dropout. The exercise has none.",
    )

    wrong(
        "swiglu_no_super",
        {"super().__init__()": ""},
        "super().__init__() has not run when your constructor needs it. nn.Module needs it first, "
        "or it cannot keep parts.",
    )

    wrong(
        "swiglu_gate_in_float32",
        {"F.silu(self.gate(x))": "F.silu(self.gate(x).float()).to(x.dtype)"},
        "A layer of float64 gives results of fewer digits, about seven: for one, something is "
        "float32 on the way. Float64 should stay float64 from end to end.",
        seen="answers written blind",
    )

    wrong(
        "swiglu_batch_of_one_text",
        {
            "return self.down(F.silu(self.gate(x)) * self.up(x))": """
                y = self.down(F.silu(self.gate(x)) * self.up(x))
                return y.squeeze(0) if x.ndim > 2 else y
            """,
        },
        "A batch of one text does not come out in the shape of x, as where an axis of length 1 is "
        "squeezed away. All leading axes stay.",
        seen="answers written blind",
        edge=True,
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_ROTARY = """
def apply_rotary(x, positions, base=10000.0):
    d_k = x.shape[-1]
    if d_k % 2:
        raise ValueError(f"d_k = {d_k} is odd")
    i = torch.arange(d_k // 2, dtype=torch.float64)
    speeds = base ** (-2 * i / d_k)
    angles = positions[:, None] * speeds
    c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
"""

with exercise("design_product"):
    wrong(
        "product_one_gate",
        {"[1.0, -1.0], [0.0, 0.0]": "[1.0, 0.0], [0.0, 0.0]"},
        "Your output is silu of one feature times the other: right where the first is large, too small where it is "
        "small, and nearly 0 where it is negative. The second hidden number has to bring what silu takes away.",
    )

    wrong(
        "product_halves_added",
        {"[1.0, -1.0], [0.0, 0.0]": "[1.0, 1.0], [0.0, 0.0]"},
        "Your two halves are added, and where the product is small they nearly cancel: silu(z) + silu(-z) is no z. "
        "One of them has to be taken away.",
    )

    wrong(
        "product_with_the_other_sign",
        {"[1.0, -1.0], [0.0, 0.0]": "[-1.0, 1.0], [0.0, 0.0]"},
        "Your output is the product with the other sign.",
    )

    wrong(
        "product_twice",
        {"[1.0, -1.0], [0.0, 0.0]": "[2.0, -2.0], [0.0, 0.0]"},
        "Your output is twice the product: silu(z) - silu(-z) is z already.",
    )

    wrong(
        "product_half",
        {"[1.0, -1.0], [0.0, 0.0]": "[0.5, -0.5], [0.0, 0.0]"},
        "Your output is half the product. silu(z) - silu(-z) is z, not 2 z; and near 0 silu(z) is z / 2, not z.",
    )

    wrong(
        "product_square_of_the_first",
        {"[0.0, 1.0], [0.0, 1.0]": "[1.0, 0.0], [1.0, 0.0]"},
        "Your output is the square of the first feature. One feature goes to the gate, the other to up.",
    )

    wrong(
        "product_in_the_second_feature",
        {"[1.0, -1.0], [0.0, 0.0]": "[0.0, 0.0], [1.0, -1.0]"},
        "The first feature of your output is 0 for every word. Check first: are the two hidden "
        "numbers equal, so that they cancel? Does the product stand in the second feature? Are the "
        "matrices turned? nn.Linear holds (out, in): one row for each number that comes out.",
    )

    wrong(
        "product_small_gate_not_small_enough",
        {
            "[1.0, 0.0], [-1.0, 0.0]": "[1e-3, 0.0], [0.0, 0.0]",
            "[1.0, -1.0], [0.0, 0.0]": "[2e3, 0.0], [0.0, 0.0]",
        },
        "Your gate makes use of silu(z) being nearly z / 2 near 0. It is, but not near enough: the error grows with "
        "the feature, to some percent at 100.",
    )

    wrong(
        "product_for_a_positive_feature",
        {
            "[1.0, 0.0], [-1.0, 0.0]": "[1e4, 0.0], [0.0, 0.0]",
            "[1.0, -1.0], [0.0, 0.0]": "[1e-4, 0.0], [0.0, 0.0]",
        },
        "Your output is the product where one feature is positive, and 0 where it is negative: a gate so large works "
        "as ReLU does. The second hidden number can serve the negative ones.",
    )

    wrong(
        "product_by_quarter_squares",
        {
            "[1.0, 0.0], [-1.0, 0.0]": "[1e-4, 1e-4], [1e-4, -1e-4]",
            "[0.0, 1.0], [0.0, 1.0]": "[1.0, 1.0], [1.0, -1.0]",
            "[1.0, -1.0], [0.0, 0.0]": "[5e3, -5e3], [0.0, 0.0]",
        },
        "It comes out as the difference of two squares, of the sum and of the difference of the features: about right "
        "where they are alike in size, and far off where one is much larger than the other.",
    )

    wrong(
        "product_in_float64",
        {"return network": "return network.double()"},
        "Your network is float64. It should be the class as it is, in float32.",
    )


with exercise("apply_rotary", base=SHORT_ROTARY):
    wrong(
        "rotary_halves",
        {
            "a, b = x[..., 0::2], x[..., 1::2]": "a, b = x[..., : d_k // 2], x[..., d_k // 2 :]",
            "torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)":
                "torch.cat((a * c - b * s, a * s + b * c), -1)",
        },
        "You pair feature i with feature i + d_k / 2, the layout of halves of the library transformers. "
        "Here the pairs are neighbours, 2i and 2i + 1, as in the paper.",
        seen="rotate_half in transformers",
    )

    wrong(
        "rotary_joined_in_halves",
        {"torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)":
            "torch.cat((a * c - b * s, a * s + b * c), -1)"},
        "The right pairs are turned, but at the end all first features stand before all second ones. "
        "They should alternate again.",
    )

    wrong(
        "rotary_split_in_halves",
        {"a, b = x[..., 0::2], x[..., 1::2]": "a, b = x[..., : d_k // 2], x[..., d_k // 2 :]"},
        "Your pairs are taken from the two halves and put back as neighbours. Take neighbours as well: "
        "2i and 2i + 1.",
    )

    wrong(
        "rotary_neighbours_with_angles_of_halves",
        {
            "return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)": """
                c, s = torch.cat((c, c), -1), torch.cat((s, s), -1)
                return x * c + torch.stack((-b, a), -1).flatten(-2) * s
            """,
        },
        "Two layouts are mixed: what is added to each feature comes from its neighbour, and the angles stand in the "
        "order of halves, all of them and then all again. Both features of a pair turn by the same angle: each angle "
        "stands twice, side by side.",
        seen="rotary embeddings pieced together from two public sources",
    )

    wrong(
        "rotary_halves_with_angles_of_neighbours",
        {
            "return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)": """
                c, s = c.repeat_interleave(2, -1), s.repeat_interleave(2, -1)
                a, b = x[..., : d_k // 2], x[..., d_k // 2 :]
                return x * c + torch.cat((-b, a), -1) * s
            """,
        },
        "Two layouts are mixed: the angles are those of neighbours, 2i and 2i + 1, and what is added to "
        "each feature comes from the other half. No pair is turned by one angle then. Take neighbours "
        "for both.",
        seen="rotate_half of one library beside the angles of another",
    )

    wrong(
        "rotary_other_way",
        {"a * c - b * s, a * s + b * c": "a * c + b * s, b * c - a * s"},
        "Your hands turn the other way: by minus the angle. Scores do not notice, as long as all agree, "
        "but the minus sign belongs to the first of the two.",
    )

    wrong(
        "rotary_no_minus",
        {"a * c - b * s": "a * c + b * s"},
        "Both lines have a plus. That is no rotation: lengths change. The first of the two has a minus.",
    )

    wrong(
        "rotary_sin_and_cos_exchanged",
        {"a * c - b * s, a * s + b * c": "a * s - b * c, a * c + b * s"},
        "Sine and cosine have changed places. At position 0 a vector should stay as it is: cos 0 = 1.",
    )

    wrong(
        "rotary_positions_ignored",
        {"positions[:, None] * speeds": "torch.arange(x.shape[-2])[:, None] * speeds"},
        "The positions that are given are ignored: yours always begin at 0. With a cache the new words "
        "stand elsewhere.",
        seen="caches whose new words restart at 0",
    )

    wrong(
        "rotary_positions_from_the_first",
        {"positions[:, None] * speeds": "(positions[0] + torch.arange(len(positions)))[:, None] * speeds"},
        "You take the first position and count on from there. Every row has its own position, in any "
        "order.",
    )

    wrong(
        "rotary_counted_from_one",
        {"positions[:, None] * speeds": "(positions[:, None] + 1) * speeds"},
        "You add 1 to every position. Position 0 is not turned.",
    )

    wrong(
        "rotary_exponent_i",
        {"-2 * i / d_k": "-i / d_k"},
        "The exponent lacks the factor 2: pair i has base ** (-2i / d_k), so that the slowest pair "
        "turns by about 1 / base.",
    )

    wrong(
        "rotary_exponent_doubled",
        {"-2 * i / d_k": "-4 * i / d_k"},
        "The exponent is doubled, the mistake of lesson 7: is your i already 2i? Pair i turns by base "
        "** (-2i / d_k).",
        seen="lesson 7: the doubled exponent",
    )

    wrong(
        "rotary_exponent_positive",
        {"-2 * i / d_k": "2 * i / d_k"},
        "The exponent has no minus: your later pairs turn faster, up to nearly base radians a "
        "word. They turn more slowly.",
    )

    wrong(
        "rotary_one_speed",
        {"base ** (-2 * i / d_k)": "torch.ones_like(i)"},
        "All pairs turn at the same speed, 1 radian a word. Pair i turns by base ** (-2i / d_k).",
    )

    wrong(
        "rotary_to_one_over_base",
        {"-2 * i / d_k": "-i / max(1, d_k // 2 - 1)"},
        "Your speeds run from 1 to exactly 1 / base. The last exponent is -(d_k - 2) / d_k, not -1.",
        seen="a variant of sinusoids in public code",
    )

    wrong(
        "rotary_base_fixed",
        {"base ** (": "10000.0 ** ("},
        "With another base your result is not what that base gives: for one, base is ignored, or "
        "speeds are kept from an earlier call. The base of each call counts.",
    )

    wrong(
        "rotary_over_axis_1",
        {
            "c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)": """
                c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
                if x.ndim > 2:
                    c, s = c.unsqueeze(-2), s.unsqueeze(-2)
                    c, s = (y.reshape(y.shape[0], *[1] * (x.ndim - 3), 1, y.shape[-1]) for y in (c, s))
                    c, s = (y[: x.shape[0]] if len(y) >= x.shape[0] else y[:1] for y in (c, s))
            """,
        },
        "With a batch, your angles follow the first axis, the texts. The rows are the last axis but "
        "one.",
        edge=True,
    )

    wrong(
        "rotary_added",
        {"a * c - b * s, a * s + b * c": "a + c, b + s"},
        "You add the waves to x, as lesson 7's encoding does. Rotary turns: it multiplies.",
        seen="sinusoidal encoding (Vaswani and others 2017)",
    )

    wrong(
        "rotary_odd_accepted",
        {
            'raise ValueError(f"d_k = {d_k} is odd"':
                "return torch.cat([apply_rotary(x[..., :-1], positions, base), x[..., -1:]], -1",
        },
        "An odd d_k is accepted, where one feature has no partner. It should be a ValueError.",
        edge=True,
    )

    wrong(
        "rotary_float32_angles",
        {"dtype=torch.float64": "dtype=torch.float32"},
        "It comes out as if the angles were computed in float32, also for a float64 x. At "
        "position 100,000 such an angle is known to two decimals only. Compute it in the "
        "precision of x, or a better one.",
        seen="inv_freq in float32 in public code",
        edge=True,
    )

    wrong(
        "rotary_float64_result",
        {"angles.cos().to(x.dtype), angles.sin().to(x.dtype)": "angles.cos(), angles.sin()"},
        "A float32 x comes back as float64. Cosines with more digits than x, for one, carry it "
        "along. The precision of x is kept.",
        edge=True,
    )

    wrong(
        "rotary_float32_result",
        {".flatten(-2)": ".flatten(-2).float()"},
        "A float64 x comes back as float32. The precision of x is kept.",
        edge=True,
    )

    wrong(
        "rotary_detached",
        {"x[..., 0::2], x[..., 1::2]": "x.detach()[..., 0::2], x.detach()[..., 1::2]"},
        "No gradient comes back to x, as where it is detached: none reaches the projections of "
        "queries and keys.",
    )

    wrong(
        "rotary_in_place",
        {
            "return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)": """
                a, b = a * c - b * s, a * s + b * c
                x.data[..., 0::2], x.data[..., 1::2] = a, b
                return x
            """,
        },
        "Your function writes into x itself. x stays as it is, and the result is a new tensor.",
    )

    wrong(
        "rotary_overwritten",
        {
            "return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)":
                "a = a * c - b * s; b = a * s + b * c; return torch.stack((a, b), -1).flatten(-2)",
        },
        "It comes out as if the second line of the turn used the first feature after it was "
        "turned. Both lines need the old one.",
        seen="folklore: overwriting one coordinate of a rotation",
    )

    wrong(
        "rotary_table_of_positions",
        {
            "angles = positions[:, None] * speeds":
                "angles = (torch.arange(int(positions.max()) + 1)[:, None] * speeds)[positions]",
        },
        "Negative positions come out wrong, as where they are rows of a table, in which -1 is the "
        "last row. At a negative position a pair turns the other way, by the same formula.",
        seen="a list of inputs that no test had",
        edge=True,
    )

    wrong(
        "rotary_batch_of_one_text",
        {
            "return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)": """
                y = torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
                return y.squeeze(0) if x.ndim > 2 else y
            """,
        },
        "Leading axes of length 1 do not come out as they are in x, as where one is squeezed "
        "away. The result has the shape of x.",
        seen="a list of inputs that no test had",
        edge=True,
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_GROUPED = """
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model}")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_kv_heads {num_kv_heads}")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        width = num_kv_heads * d_model // num_heads
        self.W_q, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_k, self.W_v = nn.Linear(d_model, width), nn.Linear(d_model, width)

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        if mask is not None and 2 <= mask.ndim <= query.ndim:
            mask = mask.unsqueeze(-3)
        group = self.num_heads // self.num_kv_heads
        Q = split_heads(self.W_q(query), self.num_heads)
        K = split_heads(self.W_k(key), self.num_kv_heads)
        V = split_heads(self.W_v(value), self.num_kv_heads)
        K = K.repeat_interleave(group, dim=-3)
        V = V.repeat_interleave(group, dim=-3)
        heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)
        return self.W_o(combine_heads(heads)), weights
"""

with exercise("GroupedQueryAttention", base=SHORT_GROUPED):
    wrong(
        "gqa_repeat_in_turn",
        {
            "K = K.repeat_interleave(group, dim=-3)": "K = torch.cat([K] * group, dim=-3)",
            "V = V.repeat_interleave(group, dim=-3)": "V = torch.cat([V] * group, dim=-3)",
        },
        "Your key-value heads come in the order 0 1 0 1 0 1. Neighbours share: 0 0 0 1 1 1. Such a "
        "layer trains as well, but published weights do not fit it.",
        seen="public issues: repeat where repeat_interleave is needed",
    )

    wrong(
        "gqa_keys_in_turn",
        {"K = K.repeat_interleave(group, dim=-3)": "K = torch.cat([K] * group, dim=-3)"},
        "Keys and values are shared in different orders: your keys come as 0 1 0 1 0 1, the values as "
        "0 0 0 1 1 1. Then a head looks with the keys of one group and fetches the values of another.",
    )

    wrong(
        "gqa_values_in_turn",
        {"V = V.repeat_interleave(group, dim=-3)": "V = torch.cat([V] * group, dim=-3)"},
        "Keys and values are shared in different orders: your values come as 0 1 0 1 0 1, the keys as "
        "0 0 0 1 1 1. Then a head looks with the keys of one group and fetches the values of another.",
    )

    wrong(
        "gqa_first_head_for_all",
        {
            "K = K.repeat_interleave(group, dim=-3)": "K = K[..., :1, :, :]",
            "V = V.repeat_interleave(group, dim=-3)": "V = V[..., :1, :, :]",
        },
        "All query heads use key-value head 0, as in multi-query attention. Head h uses h // "
        "(num_heads // num_kv_heads).",
        seen="multi-query attention (Shazeer 2019)",
    )

    wrong(
        "gqa_group_of_kv_heads",
        {
            "K = K.repeat_interleave(group, dim=-3)":
                "K = K[..., [h % self.num_kv_heads // 1 if h < self.num_kv_heads else h // self.num_kv_heads % self.num_kv_heads for h in range(self.num_heads)], :, :]",
            "V = V.repeat_interleave(group, dim=-3)":
                "V = V[..., [h % self.num_kv_heads // 1 if h < self.num_kv_heads else h // self.num_kv_heads % self.num_kv_heads for h in range(self.num_heads)], :, :]",
        },
        "Your query heads find the wrong key-value heads. Divide the number of the query head by the "
        "size of a group, num_heads // num_kv_heads, not by num_kv_heads.",
    )

    wrong(
        "gqa_multi_head",
        {
            "width = num_kv_heads * d_model // num_heads": "width = d_model",
            "split_heads(self.W_k(key), self.num_kv_heads)": "split_heads(self.W_k(key), self.num_heads)",
            "split_heads(self.W_v(value), self.num_kv_heads)": "split_heads(self.W_v(value), self.num_heads)",
            "K = K.repeat_interleave(group, dim=-3)": "",
            "V = V.repeat_interleave(group, dim=-3)": "",
        },
        "W_k and W_v have the full width d_model, as in lesson 5. They give num_kv_heads * d_head "
        "features: that is what makes the cache smaller.",
    )

    wrong(
        "gqa_width_of_a_head",
        {"width = num_kv_heads * d_model // num_heads": "width = d_model // num_kv_heads"},
        "W_k and W_v have d_model / num_kv_heads features. A head has d_model / num_heads, and there are "
        "num_kv_heads of them.",
    )

    wrong(
        "gqa_scale_of_d_model",
        {"attention(Q, K, V, mask)": "attention(Q / math.sqrt(self.num_heads), K, V, mask)"},
        "The scores are divided by the square root of d_model. A score of one head is a sum over the "
        "features of that head only.",
        seen="public issues: hidden size in place of head size",
    )

    wrong(
        "gqa_merged_by_reshape",
        {"self.W_o(combine_heads(heads))":
            "self.W_o(heads.reshape(*heads.shape[:-3], heads.shape[-2], -1))"},
        "It comes out as if the heads were merged by a reshape alone, which mixes positions: "
        "lesson 5's silent bug.",
        seen="public issues: reshape where a transpose is needed",
    )

    wrong(
        "gqa_no_output_projection",
        {"self.W_o(combine_heads(heads))": "combine_heads(heads)"},
        "Your output is what should go into W_o: W_o plays no part.",
    )

    wrong(
        "gqa_no_bias",
        {
            "nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)":
                "(nn.Linear(d_model, d_model, bias=False) for _ in range(2))",
            "nn.Linear(d_model, width), nn.Linear(d_model, width)":
                "(nn.Linear(d_model, width, bias=False) for _ in range(2))",
        },
        "Your projections have no bias. Many published models leave it out; the exercise asks for one, "
        "as in lesson 5.",
        seen="Llama's projections",
    )

    wrong(
        "gqa_averaged_weights",
        {"(combine_heads(heads)), weights": "(combine_heads(heads)), weights.mean(-3)"},
        "You average the weights over the heads. Every query head's weights are returned.",
    )

    wrong(
        "gqa_weights_of_kv_heads",
        {"(combine_heads(heads)), weights":
            "(combine_heads(heads)), weights.unflatten(-3, (-1, group)).mean(-3)"},
        "Your weights have one map for each key-value head. Every query head looks for itself: "
        "(..., num_heads, n_q, n_k).",
    )

    wrong(
        "gqa_output_only",
        {"(combine_heads(heads)), weights": "(combine_heads(heads))"},
        "You return the output alone. Attention layers of this course return (output, weights).",
    )

    wrong(
        "gqa_weights_first",
        {"self.W_o(combine_heads(heads)), weights": "weights, self.W_o(combine_heads(heads))"},
        "You return (weights, output). The order is (output, weights).",
    )

    wrong(
        "gqa_mask_inverted",
        {"V, mask)": "V, None if mask is None else ~mask)"},
        "Your mask hides where it is True, as in nn.MultiheadAttention. In this course True means: may "
        "attend.",
        seen="torch issues: opposite meaning of boolean masks",
    )

    wrong(
        "gqa_mask_ignored",
        {"V, mask)": "V)"},
        "A mask is accepted and has no effect.",
    )

    wrong(
        "gqa_mask_without_head_axis",
        {
            """
                if mask is not None and 2 <= mask.ndim <= query.ndim:
                    mask = mask.unsqueeze(-3)
            """: "",
        },
        "It goes wrong as where a mask does not get the head axis where it is needed, before its "
        "last two axes. A mask for each text, (batch, n_q, n_k), then meets the axis of the "
        "heads.",
        seen="public issues: mask not unsqueezed",
        edge=True,
    )

    wrong(
        "gqa_mask_of_four_axes",
        {"2 <= mask.ndim <= query.ndim": "mask.ndim in (2, 3)"},
        "It comes out as where the number of axes of the mask decides alone. It has a head axis "
        "when it has more axes than query.",
        edge=True,
    )

    wrong(
        "gqa_nan_rows",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = Q @ K.mT / math.sqrt(Q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask, -math.inf)
                weights = scores.softmax(-1)
                heads = weights @ V
            """,
        },
        "A query that may attend to nothing gives NaN: its softmax is 0 / 0. Its weights should be 0 "
        "and its output the bias of W_o.",
        seen="torch issues: NaN from fully masked rows",
    )

    wrong(
        "gqa_minus_1e9",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = Q @ K.mT / math.sqrt(Q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask, -1e9)
                weights = scores.softmax(-1)
                heads = weights @ V
            """,
        },
        "A query that may attend to nothing attends evenly to what is forbidden, as where "
        "forbidden scores become -1e9. Its weights should be 0.",
        seen="The Annotated Transformer",
    )

    wrong(
        "gqa_key_ignored",
        {"query if key is None else key": "query"},
        "Your keys come from query, also when key is given. That is self-attention only.",
    )

    wrong(
        "gqa_value_ignored",
        {"key if value is None else value": "key"},
        "Your values come from key, also when value is given.",
    )

    wrong(
        "gqa_value_defaults_to_query",
        {"key if value is None else value": "query if value is None else value"},
        "When value is left out you take query. It defaults to key.",
    )

    wrong(
        "gqa_no_check_of_kv_heads",
        {"num_heads % num_kv_heads": "False"},
        "The constructor accepts key-value heads that do not divide the heads. It should be a "
        "ValueError at once.",
    )

    wrong(
        "gqa_no_checks",
        {"d_model % num_heads": "False", "num_heads % num_kv_heads": "False"},
        "The constructor accepts a number of heads that does not fit; the failure comes later, or "
        "never. It should be a ValueError at once, where d_model is no multiple of num_heads and "
        "where num_heads is none of num_kv_heads.",
    )

    wrong(
        "gqa_one_batch_axis",
        {"key = query if key is None else key":
            "batch, n, d_model = query.shape\nkey = query if key is None else key"},
        "Without a leading axis, or with two, your layer stops, as where exactly one batch axis is "
        "expected. There may be none, two or more.",
        edge=True,
    )

    wrong(
        "gqa_repeat_at_axis_1",
        {
            "K = K.repeat_interleave(group, dim=-3)": "K = K.repeat_interleave(group, dim=1)",
            "V = V.repeat_interleave(group, dim=-3)": "V = V.repeat_interleave(group, dim=1)",
        },
        "It goes wrong as where you repeat along axis 1, which is the axis of the heads only with "
        "exactly one batch axis. Count from the end: it is the third from there.",
        seen="repeat_interleave(dim=1) in public code",
        edge=True,
    )

    wrong(
        "gqa_detached_weights",
        {"(combine_heads(heads)), weights": "(combine_heads(heads)), weights.detach()"},
        "No gradient flows through the second result, the weights, as after detach().",
    )

    wrong(
        "gqa_float32_inside",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                heads, weights = torch_scaled_dot_product_attention(Q.float(), K.float(), V.float(), mask)
                heads, weights = heads.to(Q.dtype), weights.to(Q.dtype)
            """,
        },
        "Float64 inputs give results with fewer digits than float64 has: for one, the attention is "
        "computed in float32 inside. Float64 should stay float64 on the whole way.",
        edge=True,
    )

    wrong(
        "gqa_no_super",
        {
            "super().__init__()": "",
        },
        "super().__init__() has not run when your constructor needs it: it must come first. It "
        "makes the place in which a module keeps its parts.",
    )

    wrong(
        "gqa_mask_ignored_without_key",
        {"key =": "mask = None if key is None else mask; key ="},
        "Where key is left out the mask does not do its work. It counts for a layer that looks at "
        "its own text as well: for one, is it handed on in every branch?",
        seen="a list of inputs that no test had",
        edge=True,
    )


with exercise("KVCache"):
    wrong(
        "cache_newest_first",
        {"[self.K, k]": "[k, self.K]", "[self.V, v]": "[v, self.V]"},
        "The newest words stand first. The oldest come first, so that row t belongs to word t.",
    )

    wrong(
        "cache_along_axis_0",
        {"[self.K, k], dim=-2": "[self.K, k], dim=0", "[self.V, v], dim=-2": "[self.V, v], dim=0"},
        "It goes wrong as where you join along axis 0. With texts or heads in front that is not "
        "the words: they are the last axis but one.",
    )

    wrong(
        "cache_along_axis_1",
        {"[self.K, k], dim=-2": "[self.K, k], dim=1", "[self.V, v], dim=-2": "[self.V, v], dim=1"},
        "It goes wrong as where you join along axis 1. Count from the end: the words are the last "
        "axis but one.",
    )

    wrong(
        "cache_along_axis_2",
        {"[self.K, k], dim=-2": "[self.K, k], dim=2", "[self.V, v], dim=-2": "[self.V, v], dim=2"},
        "It goes wrong as where you join along axis 2, which is the words only with exactly two "
        "leading axes. Count from the end.",
        seen="caches written for (batch, heads, n, d_k)",
        edge=True,
    )

    wrong(
        "cache_along_features",
        {"[self.K, k], dim=-2": "[self.K, k], dim=-1", "[self.V, v], dim=-2": "[self.V, v], dim=-1"},
        "You join along the features: one word gets wider. New words are new rows, along the last axis "
        "but one.",
    )

    wrong(
        "cache_last_piece_only",
        {"k if self.K is None else torch.cat([self.K, k], dim=-2)": "k",
         "v if self.V is None else torch.cat([self.V, v], dim=-2)": "v"},
        "You return only what was just appended. Everything so far is returned.",
    )

    wrong(
        "cache_not_stored",
        "class KVCache:\n"
        "    def __init__(self):\n"
        "        self.K = self.V = None\n"
        "    def append(self, k, v):\n"
        "        if self.K is None:\n"
        "            self.K, self.V = k, v\n"
        "            return k, v\n"
        "        return torch.cat([self.K, k], dim=-2), torch.cat([self.V, v], dim=-2)\n",
        "The joined keys are returned and not kept: from the third call on, words are missing.",
    )

    wrong(
        "cache_several_words_begin_anew",
        {"k if self.K is None else": "k if self.K is None or k.shape[-2] > 1 else",
         "v if self.V is None else": "v if self.V is None or v.shape[-2] > 1 else"},
        "Several words at once begin a new text in your cache, and what was there is forgotten. They "
        "are appended like a single one: only the first call finds nothing.",
        seen="caches that take every call with several words for a prompt",
    )

    wrong(
        "cache_keys_twice",
        {"v if self.V is None else torch.cat([self.V, v], dim=-2)":
            "k if self.V is None else torch.cat([self.V, k], dim=-2)"},
        "Keys are kept as values, too; v is never used.",
    )

    wrong(
        "cache_values_first",
        {"return self.K, self.V": "return self.V, self.K"},
        "You return (V, K). The order is (K, V).",
    )

    wrong(
        "cache_returns_nothing",
        {"return self.K, self.V": "return None"},
        "append returns nothing. It returns everything so far, (K, V).",
    )

    wrong(
        "cache_shared_by_all",
        "class KVCache:\n"
        "    keys, values = [], []\n"
        "    def append(self, k, v):\n"
        "        self.keys.append(k)\n"
        "        self.values.append(v)\n"
        "        return torch.cat(self.keys, dim=-2), torch.cat(self.values, dim=-2)\n",
        "All caches share one store: the words of one layer, or of the last text, turn up in the "
        "next. What stands on the class or outside it, or is the default value of an argument, is "
        "made once. Make it in the body of __init__.",
        seen="Python folklore: mutable class attributes",
    )

    wrong(
        "cache_stacked",
        "class KVCache:\n"
        "    def __init__(self):\n"
        "        self.k, self.v = [], []\n"
        "    def append(self, k, v):\n"
        "        self.k.append(k)\n"
        "        self.v.append(v)\n"
        "        return torch.stack(self.k), torch.stack(self.v)\n",
        "You stack the pieces along a new axis in front. They are joined along the axis of the words, "
        "the last but one.",
    )

    wrong(
        "cache_one_word_at_a_time",
        {"[self.K, k], dim=-2": "[self.K, k[..., -1:, :]], dim=-2",
         "[self.V, v], dim=-2": "[self.V, v[..., -1:, :]], dim=-2"},
        "Of a later piece you keep only the last word. A piece may have any number of words.",
    )

    wrong(
        "cache_of_eight",
        {"return self.K, self.V": "self.K, self.V = self.K[..., -8:, :], self.V[..., -8:, :]\nreturn self.K, self.V"},
        "Your cache forgets the oldest words when it has eight. All words are kept.",
        seen="sliding-window caches",
    )

    wrong(
        "cache_in_float32",
        {"return self.K, self.V": "return self.K.float(), self.V.float()"},
        "Where k and v are float64 you return float32. Their precision is kept.",
        edge=True,
    )

    wrong(
        "cache_fixed_buffer",
        "class KVCache:\n"
        "    def __init__(self):\n"
        "        self.K = self.V = None\n"
        "        self.n = 0\n"
        "    def append(self, k, v):\n"
        "        if self.K is None:\n"
        "            self.K = k.new_zeros(*k.shape[:-2], 16, k.shape[-1])\n"
        "            self.V = v.new_zeros(*v.shape[:-2], 16, v.shape[-1])\n"
        "        self.K[..., self.n : self.n + k.shape[-2], :] = k\n"
        "        self.V[..., self.n : self.n + v.shape[-2], :] = v\n"
        "        self.n += k.shape[-2]\n"
        "        return self.K, self.V\n",
        "You return the whole store, with its empty rows. Return the rows that are filled, and let the "
        "store grow: any length is allowed.",
        seen="static caches",
    )

    wrong(
        "cache_same_length_needed",
        "class KVCache:\n"
        "    def __init__(self):\n"
        "        self.k, self.v = [], []\n"
        "    def append(self, k, v):\n"
        "        self.k.append(k)\n"
        "        self.v.append(v)\n"
        "        K, V = torch.stack(self.k, dim=-3), torch.stack(self.v, dim=-3)\n"
        "        return K.flatten(-3, -2), V.flatten(-3, -2)\n",
        "Your cache needs pieces of equal length. A prompt has many words and each later piece one: any "
        "length is allowed.",
    )

    wrong(
        "cache_squeezed",
        {
            "return self.K, self.V":
                "return tuple(x.squeeze(0) if x.ndim > 2 else x for x in (self.K, self.V))",
        },
        "Leading axes of length 1 do not stay in what you return, as where one is squeezed away. "
        "K and V have the leading axes of k and v.",
        seen="a list of inputs that no test had",
        edge=True,
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_BLOCKWISE = """
def blockwise_attention(Q, K, V, block_size):
    Q = Q / math.sqrt(Q.shape[-1])
    m = torch.full_like(Q[..., :1], -math.inf)
    s, a = 0.0, 0.0
    for k, v in zip(K.split(block_size, -2), V.split(block_size, -2)):
        S = Q @ k.mT
        new = torch.maximum(m, S.amax(-1, keepdim=True))
        f = torch.exp(m - new)
        w = torch.exp(S - new)
        s = s * f + w.sum(-1, keepdim=True)
        a = a * f + w @ v
        m = new
    return a / s
"""

with exercise("blockwise_attention", base=SHORT_BLOCKWISE):
    wrong(
        "blockwise_no_correction",
        {"s * f + w": "s + w", "a * f + w": "a + w"},
        "What earlier blocks gave is never made smaller when a later block brings a larger score. Old "
        "and new were measured from different maxima.",
    )

    wrong(
        "blockwise_sum_not_corrected",
        {"s * f + w": "s + w"},
        "The values collected so far are corrected, the sum is not. Both were measured from the old "
        "maximum.",
    )

    wrong(
        "blockwise_values_not_corrected",
        {"a * f + w": "a + w"},
        "The sum is corrected, the values collected so far are not. Both were measured from the old "
        "maximum.",
    )

    wrong(
        "blockwise_correction_upside_down",
        {"torch.exp(m - new)": "torch.exp(new - m).nan_to_num(posinf=0.0)"},
        "The correction is upside down: it makes the old part larger. The new maximum is the larger "
        "one, so the factor is exp(old - new), at most 1.",
    )

    wrong(
        "blockwise_maximum_of_block",
        {"torch.maximum(m, S.amax(-1, keepdim=True))": "S.amax(-1, keepdim=True)"},
        "It comes out as if your maximum were that of the block, also when an earlier block had a "
        "larger one. In exact numbers that is right; with large scores the factor overflows.",
    )

    wrong(
        "blockwise_no_maximum",
        {"maximum(m, S.amax(-1, keepdim=True)": "zeros_like(m"},
        "Your exponentials are too large, as where no maximum is subtracted. Scores above 88 "
        "overflow in float32.",
        seen="softmax without the largest score subtracted",
    )

    wrong(
        "blockwise_first_maximum",
        {"torch.maximum(m, S.amax(-1, keepdim=True))":
            "torch.where(m.isinf(), S.amax(-1, keepdim=True), m)"},
        "Your maximum stays that of the first block. A later score that is much larger overflows.",
    )

    wrong(
        "blockwise_maximum_over_queries",
        {"torch.maximum(m, S.amax(-1, keepdim=True))":
            "torch.maximum(m, S.amax((-2, -1), keepdim=True))"},
        "It comes out as with one maximum for all queries. In exact numbers that is right; but a "
        "query whose scores all lie far below it gets only zeros, and 0 / 0. Each query has a "
        "maximum of its own.",
    )

    wrong(
        "blockwise_each_block_normalised",
        {
            "s = s * f + w.sum(-1, keepdim=True)": "s = s + 1",
            "a = a * f + w @ v": "a = a + (w / w.sum(-1, keepdim=True)) @ v",
            "torch.maximum(m, S.amax(-1, keepdim=True))": "S.amax(-1, keepdim=True)",
        },
        "It comes out as if every block got a softmax of its own, and the results were averaged. "
        "A block with small scores should count less: divide once, at the end, by the sum over "
        "all keys.",
    )

    wrong(
        "blockwise_summed_softmaxes",
        {
            "s = s * f + w.sum(-1, keepdim=True)": "s = 1.0",
            "a = a * f + w @ v": "a = a + (w / w.sum(-1, keepdim=True)) @ v",
            "torch.maximum(m, S.amax(-1, keepdim=True))": "S.amax(-1, keepdim=True)",
        },
        "It comes out as if every block got a softmax of its own, and the results were added: "
        "with three blocks the weights sum to 3. Divide once, at the end, by the sum over all "
        "keys.",
    )

    wrong(
        "blockwise_not_divided",
        {"return a / s": "return a"},
        "The result is never divided by the sum.",
    )

    wrong(
        "blockwise_divided_in_the_loop",
        {"m = new": "m = new\na = a / s"},
        "It comes out as if you divided by the sum in every block and went on with the quotient. "
        "Divide once, at the end.",
    )

    wrong(
        "blockwise_no_scale",
        {"Q = Q / math.sqrt(Q.shape[-1])": ""},
        "The scores are not divided by the square root of d_k.",
    )

    wrong(
        "blockwise_scale_of_block",
        {"math.sqrt(Q.shape[-1])": "math.sqrt(block_size)"},
        "The scores are divided by the square root of block_size. It is d_k, the width of queries and "
        "keys.",
    )

    wrong(
        "blockwise_scale_not_rooted",
        {"math.sqrt(Q.shape[-1])": "Q.shape[-1]"},
        "The scores are divided by d_k. It is its square root.",
    )

    wrong(
        "blockwise_last_block_lost",
        {"for k, v in zip(K.split(block_size, -2), V.split(block_size, -2)):":
            "for k, v in [(K[..., i : i + block_size, :], V[..., i : i + block_size, :]) for i in range(0, K.shape[-2] - block_size + 1, block_size)]:"},
        "Keys are lost when block_size does not divide their number: the last, shorter block is left "
        "out.",
        edge=True,
    )

    wrong(
        "blockwise_first_block_only",
        {"for k, v in zip(K.split(block_size, -2), V.split(block_size, -2)):":
            "for k, v in [(K[..., :block_size, :], V[..., :block_size, :])]:"},
        "Only the first block is looked at.",
    )

    wrong(
        "blockwise_zero_padded",
        {"for k, v in zip(K.split(block_size, -2), V.split(block_size, -2)):":
            "K, V = (F.pad(x, (0, 0, 0, -x.shape[-2] % block_size)) for x in (K, V))\n"
            "for k, v in zip(K.split(block_size, -2), V.split(block_size, -2)):"},
        "It comes out as if the last block were filled up with zero keys, and they got weight: a "
        "score of 0 is not a weight of 0.",
    )

    wrong(
        "blockwise_must_divide",
        {"s, a = 0.0, 0.0": "if K.shape[-2] % block_size:\n    raise ValueError('block_size')\ns, a = 0.0, 0.0"},
        "A block_size that does not divide the number of keys makes your function stop: for one, "
        "it is refused. The last block may be shorter.",
        edge=True,
    )

    wrong(
        "blockwise_local",
        {
            "return a / s": """
                out, n = [], Q.shape[-2]
                for i in range(0, n, block_size):
                    b = slice(min(i, max(0, K.shape[-2] - block_size)), i + block_size)
                    w = (Q[..., i : i + block_size, :] @ K[..., b, :].mT).softmax(-1)
                    out.append(w @ V[..., b, :])
                return torch.cat(out, -2)
            """,
        },
        "The queries of a block look only at the keys of the same block: that is local attention. Every "
        "query looks at every key, block after block.",
        seen="local attention",
    )

    wrong(
        "blockwise_all_at_once",
        "return (Q @ K.mT / math.sqrt(Q.shape[-1])).softmax(-1) @ V",
        "The numbers are right, but all scores are held at once: n_q * n_k numbers, whatever "
        "block_size is. Go through the keys block by block.",
    )

    wrong(
        "blockwise_torchs_function",
        "return F.scaled_dot_product_attention(Q, K, V)",
        "You call torch's own attention. It works in blocks inside, but the exercise is to write that.",
    )

    wrong(
        "blockwise_scores_collected",
        """
        def blockwise_attention(Q, K, V, block_size):
            S = torch.cat([Q @ k.mT for k in K.split(block_size, -2)], -1) / math.sqrt(Q.shape[-1])
            return S.softmax(-1) @ V
        """,
        "All scores are kept for one softmax, n_q * n_k numbers, even where they are computed in "
        "blocks. Keep the largest score, the sum and the weighted values only.",
    )

    wrong(
        "blockwise_two_passes",
        """
        def blockwise_attention(Q, K, V, block_size):
            Q = Q / math.sqrt(Q.shape[-1])
            pairs = list(zip(K.split(block_size, -2), V.split(block_size, -2)))
            m = torch.full_like(Q[..., :1], -math.inf)
            for k, _ in pairs:
                m = torch.maximum(m, (Q @ k.mT).amax(-1, keepdim=True))
            s = a = 0.0
            for k, v in pairs:
                w = torch.exp(Q @ k.mT - m)
                s, a = s + w.sum(-1, keepdim=True), a + w @ v
            return a / s
        """,
        "Every score is computed twice, for one in two passes over the keys, the first for the "
        "largest score. The numbers are right, but one pass with one product for each block is "
        "enough: the online softmax corrects as it goes.",
    )

    wrong(
        "blockwise_float32_inside",
        {
            "Q = Q / math.sqrt(Q.shape[-1])":
                "kind = Q.dtype\nQ, K, V = (x.float() for x in (Q / math.sqrt(Q.shape[-1]), K, V))",
            "return a / s": "return (a / s).to(kind)",
        },
        "Float64 inputs give an output with fewer digits than float64 has: for one, everything is "
        "computed in float32 inside. Float64 should stay float64 on the whole way.",
        edge=True,
    )

    wrong(
        "blockwise_two_axes_only",
        {"s, a = 0.0, 0.0":
            "n_q, d_k = Q.shape\ns, a = 0.0, 0.0"},
        "With leading axes your function stops, as where exactly two axes are expected. There may "
        "be texts and heads in front of them.",
        edge=True,
    )

    wrong(
        "blockwise_batch_of_one_text",
        {"return a / s": "return (a / s).squeeze(0) if a.ndim > 2 else a / s"},
        "Leading axes of length 1 are not kept in your output, as where one is squeezed away. Its "
        "leading axes are those of Q, K and V, broadcast.",
        seen="a list of inputs that no test had",
        edge=True,
    )


choice(
    "answer_rms",
    "a",
    reason="Ten times as large, and the root of the mean square is ten times as large as well: the "
    "quotient stays, up to eps.",
)
choice(
    "answer_rms",
    "b",
    right=True,
    reason="Layer norm takes the mean off, and the 3 with it. RMS norm leaves it in: the shift changes "
    "the mean square and stays in every feature.",
)
choice("answer_rms", "c", reason="Each word is normalised by itself: no neighbour plays a part.")
choice(
    "answer_rms",
    "d",
    reason="Both forget the size of a word. But only layer norm takes the mean off; try it with the "
    "word 1 3 3 3 of the table, and with 4 6 6 6.",
)
choice(
    "answer_far",
    "a",
    reason="That is what happened to the learned table: row 1000 was never trained. Rotary has no "
    "table, and a score never sees a position by itself.",
)
choice(
    "answer_far",
    "b",
    reason="Every pair, fast or slow, stands at a new angle. But queries and keys are all turned on by "
    "the same 1000 steps, and the score sees only the difference.",
)
choice(
    "answer_far",
    "c",
    right=True,
    reason="The distances are the same as at positions 0 to 11, so every score is the same, up "
    "to rounding.",
)
choice(
    "answer_far",
    "d",
    reason="There is no table: the angle is the position times the speed, for any position.",
)
choice(
    "answer_cache",
    "a",
    reason="That would be with keys and values for each of the 32 heads. Only the 8 key-value heads are "
    "kept.",
)
choice(
    "answer_cache",
    "b",
    right=True,
    reason="2 (keys and values) x 32 layers x 8 heads x 128 features x 2 bytes = 128 KiB a word, "
    "times 8,192 words.",
)
choice(
    "answer_cache",
    "c",
    reason="Half of it: keys without values, or one byte a number. Both keys and values are kept.",
)
choice(
    "answer_cache",
    "d",
    reason="That is one layer's share. Each of the 32 layers has keys and values of its own.",
)
choice(
    "answer_silent_bug",
    "a",
    right=True,
    reason="The prompt's words stand at 0 to n - 1 in any case; the words after it do not. They "
    "begin where the cache ends.",
)
choice(
    "answer_silent_bug",
    "b",
    reason="A word's position does not change later, so its key may be turned once and kept. That is "
    "what most models do.",
)
choice(
    "answer_silent_bug",
    "c",
    reason="Positions are judged in the scores. Values are fetched as they are, in the paper and in "
    "every model of this lesson.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="The last n_new rows of the causal mask are just what the new words may see: all the old "
    "ones, and of the new ones those before them.",
)
