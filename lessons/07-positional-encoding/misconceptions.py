"""Wrong implementations of lesson 7, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

# The right answer in few words, of which the wrong ones below are changes.
SHORT_SINUSOIDAL_POSITIONAL_ENCODING = """
def sinusoidal_positional_encoding(seq_len, d_model):
    column = np.arange(d_model)
    angles = np.arange(seq_len)[:, None] / 10000 ** ((column - column % 2) / d_model)
    return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))
"""


with exercise("sinusoidal_positional_encoding", base=SHORT_SINUSOIDAL_POSITIONAL_ENCODING):
    wrong(
        "encoding_doubled_exponent",
        {
            "(d_model)": "(0, d_model, 2)",
            "column - column % 2": "2 * column",
            "return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))": """
                PE = np.zeros((seq_len, d_model))
                PE[:, 0::2], PE[:, 1::2] = np.sin(angles), np.cos(angles)[:, : d_model // 2]
                return PE
            """,
        },
        "Your exponent is doubled, as where a variable that already steps by 2 is multiplied by 2 "
        "once more. The frequencies then fall twice as fast, and most columns hardly change along "
        "a text. Heat map, training and the rotation look fine all the same; only values show it.",
        seen="many public implementations: range(0, d_model, 2) together with 2 * i / d_model",
    )

    wrong(
        "encoding_halved_exponent",
        {
            "(d_model)": "((d_model + 1) // 2)",
            "- column % 2": "",
            "return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))": """
                PE = np.zeros((seq_len, d_model))
                PE[:, 0::2], PE[:, 1::2] = np.sin(angles), np.cos(angles)[:, : d_model // 2]
                return PE
            """,
        },
        "Your exponent is half of what it should be, as where it counts pairs, i / d_model, and "
        "the formula has 2i / d_model. With d_model = 64 the slowest wave then repeats after about "
        "550 positions and not after about 47,000.",
    )

    wrong(
        "encoding_frequency_for_every_column",
        {"- column % 2": ""},
        "Every column has a frequency of its own. Sine and cosine of one pair must share their "
        "frequency: otherwise the pair is no point on a circle, and a shift is no rotation.",
        seen="public implementations that loop over all columns with the exponent column / d_model",
    )

    wrong(
        "encoding_doubled_for_every_column",
        {"column - column % 2": "2 * column"},
        "Your exponent uses twice the column number, with another frequency for each column. The "
        "2i of the formula is the even column of a pair, and both columns of a pair share it.",
        seen="public implementations that loop over all columns with 2 * column / d_model",
    )

    wrong(
        "encoding_halves",
        {
            "(d_model)": "(0, d_model, 2)",
            "- column % 2": "",
            "np.where(column % 2 == 0, np.sin(angles), np.cos(angles))":
                "np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, :d_model]",
        },
        "Your sines stand in the left half and your cosines in the right half, as in some "
        "libraries. The formula of the paper, and of this course, lets them take turns.",
        seen="tensor2tensor, and code that follows it",
    )

    wrong(
        "encoding_halves_end_to_end",
        """
            pairs = (d_model + 1) // 2
            w = np.exp(-math.log(10000) * np.arange(pairs) / max(pairs - 1, 1))
            angles = np.arange(seq_len)[:, None] * w
            return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, :d_model]
        """,
        "Your sines stand in the left half and your cosines in the right half, as in some "
        "libraries. The formula of the paper, and of this course, lets them take turns, and it "
        "divides the exponents by d_model.",
        seen="tensor2tensor",
    )

    wrong(
        "encoding_end_to_end",
        """
            pairs = (d_model + 1) // 2
            angles = np.outer(np.arange(seq_len), np.logspace(0, -4, pairs))
            both = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
            return both.reshape(seq_len, 2 * pairs)[:, :d_model]
        """,
        "Your frequencies run from 1 down to 1/10000 itself, so the steps between them are too "
        "large. The formula divides 2i by d_model: the last pair stays above 1/10000.",
        seen="tensor2tensor",
    )

    wrong(
        "encoding_sin_cos_swapped",
        {"np.sin(angles)": "np.cos(angles)", "np.cos(angles)": "np.sin(angles)"},
        "Your even columns hold cosines and your odd ones sines. It is the other way round: "
        "column 0 is a sine.",
    )

    wrong(
        "encoding_sines_only",
        """
            column = np.arange(d_model)
            return np.sin(np.arange(seq_len)[:, None] / 10000 ** ((column - column % 2) / d_model))
        """,
        "All your columns are sines. Without the cosine beside it, a sine cannot tell a rising "
        "wave from a falling one, and a shift is no rotation.",
    )

    wrong(
        "encoding_row_0_at_zero",
        {
            "return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))": """
                PE = np.where(column % 2 == 0, np.sin(angles), np.cos(angles))
                PE[0] = 0.0
                return PE
            """,
        },
        "Your row 0 is 0 everywhere. Position 0 is computed as all others: its sines are 0, and its "
        "cosines are 1.",
        seen="a table that was published many times, with zeros for the padding at place 0",
    )

    wrong(
        "encoding_base_e",
        {"/ 10000 ** (": "* np.exp(-"},
        "Your frequencies are exp(-2i / d_model): the base is e and not 10000. When the power is "
        "written with exp, the logarithm of 10000 belongs into the exponent.",
    )

    wrong(
        "encoding_floor_division",
        {"/ d_model": "// d_model"},
        "Your exponent is 0 for every column, as with an integer division, and every pair turns "
        "with the same speed.",
    )

    wrong(
        "encoding_multiplies",
        {"/ 10000": "* 10000"},
        "Your angles are the position times the power of 10000, where they should be the position "
        "divided by it. Your waves get faster from column to column; the formula's get slower.",
    )

    wrong(
        "encoding_positions_from_1",
        {"(seq_len)[:, None]": "(1, seq_len + 1)[:, None]"},
        "Your first row is position 1. Positions count from 0 here.",
    )

    wrong(
        "encoding_position_and_dimension_exchanged",
        {
            "(d_model)": "(seq_len)[:, None]",
            "(seq_len)[:, None]": "(d_model)",
            "/ d_model": "/ seq_len",
        },
        "Your rows and columns have changed roles: the sine or cosine, and the frequency, depend "
        "on the row. One row is one position; the columns of a row have the frequencies.",
    )

    wrong(
        "encoding_transposed",
        {
            "(column % 2 == 0, np.sin(angles), np.cos(angles))":
                "(column % 2 == 0, np.sin(angles), np.cos(angles)).T",
        },
        "Your matrix has the shape (d_model, seq_len), as a transposed one has. One row is one "
        "position.",
    )

    wrong(
        "encoding_odd_crashes",
        """
            angles = np.arange(seq_len)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
            PE = np.zeros((seq_len, d_model))
            PE[:, 0::2] = np.sin(angles)
            PE[:, 1::2] = np.cos(angles)
            return PE
        """,
        "It fails for an odd d_model: there are then fewer cosine columns than sine columns, and "
        "the two halves no longer fit.",
        seen="public issues about odd embedding sizes",
    )

    wrong(
        "encoding_odd_loses_a_column",
        """
            angles = np.arange(seq_len)[:, None] / 10000 ** (2 * np.arange(d_model // 2) / d_model)
            return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(seq_len, -1)
        """,
        "With an odd d_model your result has one column too few: the last sine, which has no "
        "cosine beside it, is missing.",
    )

    wrong(
        "encoding_odd_last_column_zero",
        """
            angles = np.arange(seq_len)[:, None] / 10000 ** (2 * np.arange(d_model // 2) / d_model)
            PE = np.zeros((seq_len, d_model))
            PE[:, 0 : d_model - d_model % 2 : 2], PE[:, 1::2] = np.sin(angles), np.cos(angles)
            return PE
        """,
        "With an odd d_model your last column is left at 0. It is a sine like the other even "
        "columns.",
        seen="libraries that fill an odd last column with zeros",
    )

    wrong(
        "encoding_odd_rounded_up",
        """
            even = d_model + d_model % 2
            angles = np.arange(seq_len)[:, None] / 10000 ** (np.arange(0, even, 2) / even)
            return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(seq_len, even)[:, :d_model]
        """,
        "With an odd d_model your values are those of d_model + 1, with a column cut off. The "
        "exponents then have the wrong denominator: it is d_model, odd or not.",
    )

    wrong(
        "encoding_float32",
        {
            "np.arange(d_model)": "torch.arange(d_model)",
            "angles = np": "angles = torch",
            "np.where(column % 2 == 0, np.sin(angles), np.cos(angles))":
                "torch.where(column % 2 == 0, torch.sin(angles), torch.cos(angles)).numpy()",
        },
        "Your result is float32, and so half of the digits are lost; where the angles are float32 "
        "too, the error reaches the fourth digit for late positions. The course asks for float64.",
        seen="torch's default dtype",
    )

    wrong(
        "encoding_float32_on_the_way",
        {
            "np.arange(d_model)": "torch.arange(d_model)",
            "angles = np": "angles = torch",
            "np.where(column % 2 == 0, np.sin(angles), np.cos(angles))":
                "torch.where(column % 2 == 0, torch.sin(angles), torch.cos(angles)).double().numpy()",
        },
        "The result is float64, but right to the digits of float32 only, as where something on the "
        "way was float32: the missing digits do not come back by a conversion at the end.",
        edge=True,
    )

    wrong(
        "encoding_batch_axis",
        {
            "(column % 2 == 0, np.sin(angles), np.cos(angles))":
                "(column % 2 == 0, np.sin(angles), np.cos(angles))[None]",
        },
        "Your result has an axis of length 1 in front. The matrix is (seq_len, d_model); "
        "broadcasting takes care of batches later.",
        seen="the PyTorch tutorial's buffer (1, max_len, d_model)",
    )

    wrong(
        "encoding_scaled_positions",
        {"[:, None]": "[:, None] / seq_len"},
        "You divide the positions by the length of the text. Then the same position has another "
        "code in every text length; it must depend on the position alone.",
    )

    wrong(
        "encoding_one_array_for_all_calls",
        {
            "column = np.arange(d_model)":
            """
                kept = sinusoidal_positional_encoding.__dict__
                if str((seq_len, d_model)) in kept:
                    return kept[str((seq_len, d_model))]
                column = np.arange(d_model)
            """,
            "return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))": """
                kept[str((seq_len, d_model))] = np.where(column % 2 == 0, np.sin(angles), np.cos(angles))
                return kept[str((seq_len, d_model))]
            """,
        },
        "What somebody writes into your result stands in the result of the next call with the same "
        "sizes too, as where results are kept and handed out again. Each call gives a new array.",
        seen="answers written blind",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_SHIFT_MATRIX = """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError(f"d_model {d_model} is odd")
    M = np.zeros((d_model, d_model))
    for i in range(0, d_model, 2):
        c, s = np.cos(offset / 10000 ** (i / d_model)), np.sin(offset / 10000 ** (i / d_model))
        M[i : i + 2, i : i + 2] = [[c, s], [-s, c]]
    return M
"""


with exercise("shift_matrix", base=SHORT_SHIFT_MATRIX):
    wrong(
        "shift_transposed",
        {"[c, s], [-s, c]": "[c, -s], [s, c]"},
        "Your matrix is transposed, so it moves every position back by offset and not forward. M "
        "stands left of the encoding as a column vector: PE[pos + offset] = M @ PE[pos].",
        seen="folklore: signs of the sine, or rows times matrix",
    )

    wrong(
        "shift_one_frequency_only",
        """
            if d_model % 2:
                raise ValueError(f"d_model {d_model} is odd")
            M = np.eye(d_model)
            c, s = math.cos(offset), math.sin(offset)
            M[:2, :2] = [[c, s], [-s, c]]
            return M
        """,
        "Only the first pair of columns is turned; the others stay where they are. Every pair "
        "turns, each by its own angle.",
    )

    wrong(
        "shift_same_turn_everywhere",
        """
            if d_model % 2:
                raise ValueError(f"d_model {d_model} is odd")
            c, s = math.cos(offset), math.sin(offset)
            return np.kron(np.eye(d_model // 2), np.array([[c, s], [-s, c]]))
        """,
        "Every pair turns by the same angle. Slow pairs turn less: the angle is the offset times "
        "the frequency of the pair.",
    )

    wrong(
        "shift_doubled_exponent",
        {
            "c, s = np.cos(offset / 10000 ** (i / d_model)), np.sin(offset / 10000 ** (i / d_model))": """
                w = 10000 ** (-2 * i / d_model)
                c, s = math.cos(offset * w), math.sin(offset * w)
            """,
        },
        "Your exponents are doubled, so the slower pairs turn too little. The matrix fits an "
        "encoding with the same slip, and so it can look right; it does not fit the formula.",
        seen="many public implementations of the encoding",
    )

    wrong(
        "shift_halves",
        """
            if d_model % 2:
                raise ValueError(f"d_model {d_model} is odd")
            turn = offset / 10000 ** (np.arange(0, d_model, 2) / d_model)
            C, S = np.diag(np.cos(turn)), np.diag(np.sin(turn))
            return np.block([[C, S], [-S, C]])
        """,
        "Your matrix is for an encoding whose sines stand in the left half and whose cosines "
        "stand in the right half. Here sine and cosine of a pair are neighbours.",
        seen="code for the split layout",
    )

    wrong(
        "shift_no_minus",
        {"-s, c": "s, c"},
        "A minus sign is missing: your blocks stretch and squeeze. The cosine of a sum has a "
        "minus: cos(a + b) = cos a cos b - sin a sin b.",
    )

    wrong(
        "shift_reflection",
        {"-s, c": "s, -c"},
        "Your blocks are reflections, not rotations: the minus stands at the wrong one of the "
        "four entries. An offset of 0 should give the identity.",
    )

    wrong(
        "shift_moves_dimensions",
        """
            if d_model % 2:
                raise ValueError(f"d_model {d_model} is odd")
            return np.roll(np.eye(d_model), offset, axis=0)
        """,
        "Your matrix moves the entries of a vector to other dimensions. A shift of the position "
        "turns each pair of dimensions and leaves it in its place.",
    )

    wrong(
        "shift_ignores_the_sign",
        {
            "c, s = np.cos(offset / 10000 ** (i / d_model)), np.sin(offset / 10000 ** (i / d_model))": """
                turn = abs(offset) / 10000 ** (i / d_model)
                c, s = math.cos(turn), math.sin(turn)
            """,
        },
        "A negative offset moves forward in your matrix, as the positive one does. It should turn "
        "the other way.",
    )

    wrong(
        "shift_refuses_negative",
        {
            "% 2:": "% 2 or offset < 0:",
            'f"d_model {d_model} is odd"': 'f"offset {offset}, d_model {d_model}"',
        },
        "You refuse negative offsets. They are allowed: they move to earlier positions.",
    )

    wrong(
        "shift_accepts_odd",
        {
            "d_model % 2": "False",
            "np.zeros((d_model, d_model))": "np.eye(d_model)",
            "0, d_model": "0, d_model - 1",
        },
        "An odd d_model is not refused. The last sine then has no cosine to turn with, and the "
        "equation does not hold for it. It should be a ValueError.",
    )

    wrong(
        "shift_float32",
        {"(d_model, d_model)": "(d_model, d_model), dtype=np.float32"},
        "Your matrix is float32: it keeps 7 digits. The course asks for float64.",
        seen="torch's default dtype",
    )

    wrong(
        "shift_off_by_one",
        {
            "c, s = np.cos(offset / 10000 ** (i / d_model)), np.sin(offset / 10000 ** (i / d_model))": """
                turn = (offset + 1) / 10000 ** (i / d_model)
                c, s = math.cos(turn), math.sin(turn)
            """,
        },
        "Your matrix moves by one position too many. An offset of 0 should give the identity.",
    )

    wrong(
        "shift_base_1000",
        {
            "np.cos(offset / 10000 ** (i / d_model))": "np.cos(offset / 1000 ** (i / d_model))",
            "np.sin(offset / 10000 ** (i / d_model))": "np.sin(offset / 1000 ** (i / d_model))",
        },
        "Your frequencies have the base 1000. The encoding has 10000.",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_LEARNED_POSITIONAL_EMBEDDING = """
class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.p = nn.Parameter(torch.randn(max_len, d_model))

    def forward(self, X):
        if X.shape[-2] > len(self.p):
            raise ValueError(f"{X.shape[-2]} positions")
        return X + self.p[: X.shape[-2]]
"""


with exercise("LearnedPositionalEmbedding", base=SHORT_LEARNED_POSITIONAL_EMBEDDING):
    wrong(
        "learned_batch_axis",
        {
            "return X + self.p[: X.shape[-2]]": """
                if X.dim() == 2:
                    return X + self.p[: len(X)]
                vectors = self.p[torch.arange(len(X)) % len(self.p)]
                return X + vectors.reshape(-1, *[1] * (X.dim() - 2), X.shape[-1])
            """,
        },
        "You take the positions from the first axis. In a batch that axis counts the texts. "
        "Positions are axis -2, whatever stands in front.",
        seen="tutorial code for (n, batch, d_model) used with (batch, n, d_model)",
    )

    wrong(
        "learned_counts_texts",
        {
            "if X.shape[-2]": "if X.shape[0]",
            'f"{X.shape[-2]} positions"': 'f"{X.shape[0]} positions"',
            ": X.shape[-2]": ": X.shape[0]",
        },
        "You take the positions from the first axis. In a batch that axis counts the texts. "
        "Positions are axis -2, whatever stands in front.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "learned_axis_1",
        {
            "if X.shape[-2]": "if X.shape[1]",
            'f"{X.shape[-2]} positions"': 'f"{X.shape[1]} positions"',
            ": X.shape[-2]": ": X.shape[1]",
        },
        "You take the number of positions from axis 1. That is right for exactly one batch axis. "
        "There may be none, two or more: count from the end.",
        seen="batch, n, d_model = X.shape",
        edge=True,
    )

    wrong(
        "learned_wants_three_axes",
        {
            "X.shape[-2] > len(self.p)": "X.dim() != 3",
            'f"{X.shape[-2]} positions"': 'f"X has shape {tuple(X.shape)}"',
            "return X + self.p[: X.shape[-2]]": """
                if X.shape[1] > len(self.p):
                    raise ValueError(f"{X.shape[1]} positions")
                return X + self.p[: X.shape[1]]
            """,
        },
        "An input without a batch axis is an error in your code, as where the shape is unpacked "
        "into three numbers. There may be none, one, two or more.",
        seen="batch, n, d_model = X.shape",
    )

    wrong(
        "learned_last_rows",
        {": X.shape[-2]": "-X.shape[-2] :"},
        "You add the last n vectors of the table. The first position always has row 0.",
    )

    wrong(
        "learned_random_start",
        {
            "return X + self.p[: X.shape[-2]]": """
                n, start = X.shape[-2], 0
                if self.training:
                    start = int(torch.randint(len(self.p) - n + 1, ()))
                return X + self.p[start : start + n]
            """,
        },
        "In training mode your text begins at a random row of the table. Here it always begins at "
        "row 0, in both modes; random starts are an experiment of their own.",
        seen="section 8 of this lesson, put into the module",
    )

    wrong(
        "learned_scales_x",
        {"return X": "return X * math.sqrt(X.shape[-1])"},
        "You multiply X by the square root of d_model. The paper does that with its word "
        "embeddings; this module only adds, and leaves X as it is.",
        seen="the paper's section 3.4, put into the wrong place",
    )

    wrong(
        "learned_scales_positions",
        {"self.p[: X.shape[-2]]": "self.p[: X.shape[-2]] / math.sqrt(X.shape[-1])"},
        "You multiply the position vectors by a factor before you add them. The module adds the "
        "rows of its parameter as they are.",
    )

    wrong(
        "learned_dropout",
        {
            "self.p =": "self.p, self.drop =",
            "(torch.randn(max_len, d_model))": "(torch.randn(max_len, d_model)), nn.Dropout(0.1)",
            "X + self.p[: X.shape[-2]]": "self.drop(X + self.p[: X.shape[-2]])",
        },
        "You add dropout. In training mode some entries are then 0 and the others larger. The "
        "exercise asks for the sum and nothing else.",
        seen="the PyTorch tutorial's PositionalEncoding",
    )

    wrong(
        "learned_layer_norm",
        {"X + self.p[: X.shape[-2]]": "F.layer_norm(X + self.p[: X.shape[-2]], X.shape[-1:])"},
        "You normalise the sum. The exercise asks for the sum and nothing else.",
        seen="BERT's embedding layer",
    )

    wrong(
        "learned_second_parameter",
        {
            "self.p =": "self.p, self.bias =",
            "(torch.randn(max_len, d_model))":
                "(torch.randn(max_len, d_model)), nn.Linear(1, d_model).bias",
            "self.p[: X.shape[-2]]": "self.p[: X.shape[-2]] + 0 * self.bias",
        },
        "The module has parameters besides the table of positions. Its only parameter is "
        "(max_len, d_model).",
        seen="BERT's embedding layer",
    )

    wrong(
        "learned_zeros",
        {"torch.randn": "torch.zeros"},
        "Your vectors begin all equal (at zero, for one). Then nothing tells the positions apart "
        "at the start. Begin with random numbers.",
        seen="nn.Parameter(torch.zeros(...))",
    )

    wrong(
        "learned_fixed_seed",
        {"__init__()": "__init__(); torch.manual_seed(0)"},
        "Two of your modules begin with the same numbers: a seed is set in the constructor, for "
        "one, or the numbers are not random. (A seed of torch's own also changes everybody else's "
        "random numbers.)",
    )

    wrong(
        "learned_transposed",
        {
            "(max_len, d_model)": "(d_model, max_len)",
            "len(self.p)": "self.p.shape[1]",
            "self.p[: X.shape[-2]]": "self.p.T[: X.shape[-2]]",
        },
        "Your parameter is (d_model, max_len). It is one row a position: (max_len, d_model).",
    )

    wrong(
        "learned_parameter_with_batch_axis",
        {
            "(max_len, d_model)": "(1, max_len, d_model)",
            "len(self.p)": "self.p.shape[1]",
            ": X.shape[-2]": "0, : X.shape[-2]",
        },
        "Your parameter has an axis of length 1 in front. Its shape is (max_len, d_model).",
        seen="public implementations: nn.Parameter(torch.randn(1, n, d))",
    )

    wrong(
        "learned_not_trainable",
        {"p = nn.Parameter(": 'register_buffer("p", '},
        "Your module has no parameter: the vectors are a buffer, a plain tensor or hidden in a "
        "list, for example. An optimizer does not see them, so they never learn: make them a "
        "parameter.",
        seen="register_buffer",
    )

    wrong(
        "learned_detached",
        {"self.p[: X.shape[-2]]": "self.p.data[: X.shape[-2]]"},
        "There is a parameter, but no gradient reaches it: .data or detach(), for example, cuts it "
        "off. The positions stay what they were at the start.",
    )

    wrong(
        "learned_new_numbers_each_call",
        {"self.p[: X.shape[-2]]": "torch.randn_like(self.p)[: X.shape[-2]]"},
        "You draw new random vectors in every call. A position must have the same vector each "
        "time, and it must be the parameter.",
    )

    wrong(
        "learned_positions_alone",
        {"X + self.p[: X.shape[-2]]": "self.p[: X.shape[-2]].expand(X.shape)"},
        "You return the position vectors without X. The words are lost.",
    )

    wrong(
        "learned_in_place",
        {"return X + self.p[: X.shape[-2]]": "X += self.p[: X.shape[-2]]; return X"},
        "You change X itself (an operation in place). Whoever passed it still needs it.",
        seen="X += ...",
    )

    wrong(
        "learned_changes_x_and_adds",
        {
            "return X + self.p[: X.shape[-2]]":
                "total = X + self.p[: X.shape[-2]]; X.data.copy_(total.data); return total",
        },
        "The output is right, but X holds the sum as well after the call. Whoever passed X still "
        "needs it: make a new tensor.",
        seen="X.data.add_(...)",
    )

    wrong(
        "learned_refuses_max_len",
        {"> len(self.p)": ">= len(self.p)"},
        "You refuse a text of exactly max_len positions. There is a vector for each of them; only "
        "more are too many.",
    )

    wrong(
        "learned_wants_max_len",
        {"self.p[: X.shape[-2]]": "self.p"},
        "Texts shorter than max_len fail in your code. They get the first n vectors.",
    )

    wrong(
        "learned_refuses_in_training_only",
        {"if X.shape[-2] > len(self.p):": "if self.training and X.shape[-2] > len(self.p):"},
        "In evaluation mode a text that is too long raises no ValueError. There are no more vectors in "
        "this mode than in the other.",
        seen="a trial with typical wrong answers",
    )


# The same with vectors that are looked up.
LOOKED_UP_POSITIONAL_EMBEDDING = """
class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.table = nn.Embedding(max_len, d_model)

    def forward(self, X):
        n = X.shape[-2]
        if n > self.table.num_embeddings:
            raise ValueError(f"{n} positions")
        return X + self.table(torch.arange(n))
"""


with exercise("LearnedPositionalEmbedding", base=LOOKED_UP_POSITIONAL_EMBEDDING):
    wrong(
        "learned_same_vector_everywhere",
        {"torch.arange(n)": "torch.tensor(n - 1)"},
        "Every position gets the same vector, as where one single number is looked up. Attention "
        "still cannot tell the positions apart. The vectors 0 to n - 1 are added, one a position.",
    )

    wrong(
        "learned_always_a_batch_axis",
        {"(torch.arange(n))": "(torch.arange(n)).unsqueeze(0)"},
        "An input without a batch axis comes back with one. The output has the shape of X.",
        seen="unsqueeze(0) on the position vectors",
    )

    wrong(
        "learned_positions_from_1",
        {"arange(n)": "arange(1, n + 1)"},
        "Your first position has the number 1, so vector 0 is never used and max_len positions "
        "are one too many. Positions count from 0.",
        seen="libraries that keep row 0 for padding",
    )

    wrong(
        "learned_padding_row",
        {"(max_len, d_model)": "(max_len, d_model, padding_idx=0)"},
        "Row 0 of your table is reserved for padding: it starts at 0 and never learns. But the "
        "numbers here are positions, not words, and position 0 needs a vector like every other.",
        seen="nn.Embedding(max_len, d_model, padding_idx=0)",
    )

    wrong(
        "learned_other_error",
        {"n > self.table.num_embeddings": "False"},
        "A text that is too long ends in another error than a ValueError, such as the IndexError or "
        "RuntimeError that torch raises. Compare the lengths first, and raise a ValueError that names "
        "both.",
        seen="nn.Embedding: index out of range in self",
    )

    wrong(
        "learned_last_vector_repeated",
        {
            "n > self.table.num_embeddings": "False",
            "arange(n)": "arange(n).clamp(max=self.table.num_embeddings - 1)",
        },
        "A text of more than max_len positions passes without an error: those beyond are cut off, "
        "or get no vector, or one that belongs to another position too. It should be a ValueError.",
        seen="torch.clamp on the positions",
    )

    wrong(
        "learned_gradient_averaged",
        {
            "(max_len, d_model)": "(max_len, d_model, scale_grad_by_freq=True)",
            "arange(n)": "arange(n).expand(X.shape[:-1])",
        },
        "The gradients of a position vector are divided by the number of texts, as with "
        "scale_grad_by_freq. It should get their sum, as in every module that the course builds.",
        seen="answers written blind",
    )

choice(
    "answer_order",
    "a",
    reason="Pair I is right. But look at pair II again: attention averages. With every word twice, "
    "each word's weight is split between its two copies, and the average stays what it was.",
)
choice(
    "answer_order",
    "b",
    right=True,
    reason="Without positions only the shares of the words count, neither their order nor the "
    "length of the text. Pair III has other shares: two thirds 'the' instead of one half.",
)
choice(
    "answer_order",
    "c",
    reason="In pair III the shares differ: 'the' is one half of the first text and two thirds of "
    "the second, so the weighted averages differ.",
)
choice(
    "answer_order",
    "d",
    reason="The order can get in nowhere: scores compare words with words, and the average over "
    "all words does not know their places. At least pair I gives the same result.",
)
choice(
    "answer_doubled",
    "a",
    reason="The heat map of the doubled exponent also has stripes that widen, and values between "
    "-1 and 1. Only beside a right one does it look different.",
)
choice(
    "answer_doubled",
    "b",
    reason="The model of this section was trained with doubled exponents, and more than nine of "
    "ten words were right. Half as many useful columns are enough for a short text.",
)
choice(
    "answer_doubled",
    "c",
    right=True,
    reason="A value that depends on the exponent tells at once: with the doubled exponent it is "
    "sin(1 / 10000^(4/64)) = 0.5332. One number by hand is worth more than a picture.",
)
choice(
    "answer_doubled",
    "d",
    reason="Sine and cosine of the same angle always give 1, whatever the angle is, and at "
    "position 0 all angles are 0. Neither depends on the exponent.",
)
choice(
    "answer_longer",
    "a",
    reason="That is the hope of the paper. The vectors exist and the rotation is exact, but the "
    "model was fitted to the twelve position vectors that it met, and nothing made it use the "
    "rotation.",
)
choice(
    "answer_longer",
    "b",
    reason="More keys hurt less than you think: at positions 0 to 9 the model is still nearly "
    "always right on texts of 24 words.",
)
choice(
    "answer_longer",
    "c",
    right=True,
    reason="The model has learned what to do with the position vectors it met in training, and "
    "little more. One or two positions beyond, it is close to guessing.",
)
choice(
    "answer_longer",
    "d",
    reason="The fall is much steeper: within about three positions beyond the trained length the "
    "model is close to guessing.",
)
choice(
    "answer_bug",
    "a",
    reason="float32 has 7 digits, and neighbouring positions differ in the first one. Your own "
    "working version converts in the same way.",
)
choice(
    "answer_bug",
    "b",
    right=True,
    reason="The rows of the table go along the first axis of X, which is the batch here: text 0 "
    "gets row 0 at all its words, text 1 gets row 1. The code was written for (n, batch, d_model). "
    "Broadcasting hides it.",
)
choice(
    "answer_bug",
    "c",
    reason="The value at a position does not depend on how many rows the table has: row 5 is the "
    "same in a table of 8 and of 512.",
)
choice(
    "answer_bug",
    "d",
    reason="Waves of size 0.7 do not drown words of size 1, as the working version shows. And the "
    "factor would make the words louder, not the waves.",
)


with exercise("mended_positions"):
    wrong(
        "mend_copied",
        {"table[: X.shape[-2]]": "table[:, None][: X.shape[0]]"},
        "Your results are those of the code as it was: every word of a text gets the same vector, "
        "which depends on the place of the text in the batch. The table's rows are positions, axis "
        "-2 of X.",
    )

    wrong(
        "mend_table_in_float32",
        {"torch.tensor(table, dtype=X.dtype)": "torch.tensor(table).float()"},
        "Something that you add is float32 on the way, although X is float64 (the table, for one, "
        "or one that is kept from an earlier call). The sum is float64 and right to seven digits "
        "only.",
        seen="answers written blind",
    )

    wrong(
        "mend_length_of_the_batch",
        {"X.shape[-2]": "X.shape[0]"},
        "You take as many rows as X has along its first axis. In a batch these are texts, not "
        "positions.",
    )

    wrong(
        "mend_axis_1",
        {"X.shape[-2]": "X.shape[1]"},
        "You count the positions along axis 1. That is right for one batch axis only: count from "
        "the end.",
        edge=True,
    )

    wrong(
        "mend_batch_axis_added",
        {"table[: X.shape[-2]]": "table[: X.shape[-2]][None]"},
        "Your table has a batch axis of its own, so that a text without one comes back with one. "
        "Without it the table broadcasts over any axes in front.",
    )

    wrong(
        "mend_words_scaled",
        {"return X + ": "return X * X.shape[-1] ** 0.5 + "},
        "You multiply the words by the root of d_model as well. That was not the mistake, and "
        "section 6 shows what it does.",
    )

    wrong(
        "mend_in_place",
        {"return X + table[: X.shape[-2]]": "return X.add_(table[: X.shape[-2]])"},
        "You write into X. Whoever called the function needs it as it was: return a new tensor.",
    )

    wrong(
        "mend_always_512_rows",
        {
            "(max_len, X.shape[-1])": "(512, X.shape[-1])",
            "table[: X.shape[-2]]": "table[: X.shape[-2]].expand_as(X)",
        },
        "With a max_len of 600, a text of 530 words finds no row for its last words. How long a "
        "text may be is for `max_len` to say: 512 is its default only.",
        seen="answers written blind",
    )

    wrong(
        "mend_detached",
        {"return X + ": "return X.detach() + "},
        "No gradient reaches X, as when X is detached or read into a new tensor. A reader that is "
        "trained with your function would not learn its word vectors.",
    )

choice(
    "answer_recall_mask",
    "a",
    reason='The weights of the future were in the sum of the softmax: they took a share away that is now missing.',
)
choice(
    "answer_recall_mask",
    "b",
    right=True,
    reason='The softmax has divided by a sum that holds the future. Mask before the softmax.',
)
choice(
    "answer_recall_mask",
    "c",
    reason='They sum to less than 1: a share was set to 0.',
)

choice(
    "answer_recall_permutation",
    "a",
    right=True,
    reason='That is permutation equivariance: permutation_error is 0 up to rounding.',
)
choice(
    "answer_recall_permutation",
    "b",
    reason='The rows move with their words. Only an average over all of them would stay.',
)
choice(
    "answer_recall_permutation",
    "c",
    reason='Neighbours are not a thing that attention knows: the same set of keys and values is there.',
)

choice(
    "answer_recall_temperature",
    "a",
    reason='That is what a very large temperature does.',
)
choice(
    "answer_recall_temperature",
    "b",
    reason='Not with a stable softmax: the largest score is taken away first.',
)
choice(
    "answer_recall_temperature",
    "c",
    right=True,
    reason='Scores are divided by the temperature, so their differences grow without limit.',
)
