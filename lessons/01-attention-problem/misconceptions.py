"""Known wrong implementations of lesson 1, and the choices of its short answers."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("hard_look"):
    wrong(
        "look_place_alone",
        "return np.array([words.index(word)])",
        "You return the place of the word. Asked is a row of n weights, with a 1 at that place.",
    )
    wrong(
        "look_at_nothing",
        "return np.array([float(other == word) for other in words])",
        "A word that does not stand in the sentence gives a row of zeros. It is a ValueError: there is "
        "nothing to look at.",
        edge=True,
    )
    wrong(
        "look_at_letters",
        "return np.array([float(letter == word[0]) for letter in word])",
        "Your row has a number for each letter of the word. Asked is one for each word of the sentence.",
    )
    wrong(
        "look_returns_nothing",
        "weights = np.zeros(len(words))\nweights[words.index(word)] = 1",
        "Your function returns None: no return is reached.",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_RNN_HIDDEN_STATES = """
def rnn_hidden_states(X, W_x, W_h, h0=None):
    h, H = np.zeros(W_h.shape[0]) if h0 is None else h0, []
    for x in X:
        h = np.tanh(x @ W_x + h @ W_h)
        H.append(h)
    return np.array(H)
"""


with exercise("rnn_hidden_states", base=SHORT_RNN_HIDDEN_STATES):
    wrong(
        "rnn_always_from_zeros",
        {"if h0 is None else h0": ""},
        "Your network starts from zeros even when a start state is given. The argument h0 is the "
        "state before the first word.",
    )

    wrong(
        "rnn_start_added_as_it_is",
        {"h @ W_h": "(h @ W_h if H or h0 is None else h)"},
        "Your start state enters the first state without W_h. It is a state like any other: the "
        "first word's state is made of it as each later one is of the state before.",
        seen="answers written blind",
    )

    wrong(
        "rnn_linear",
        {"np.tanh(x @ W_x + h @ W_h)": "x @ W_x + h @ W_h"},
        "Your states come out as plain sums of products, without tanh. The formula squeezes each "
        "new state into the range from -1 to 1.",
    )

    wrong(
        "rnn_transposed_state_matrix",
        {"h @ W_h": "W_h @ h"},
        "Your W_h enters transposed, or stands on the left of the state, which is the same. In "
        "this course vectors are rows and stand on the left of the matrix; W_h is square, so the "
        "mistake raises no error.",
    )

    wrong(
        "rnn_with_start_state",
        """
            H = [np.zeros(W_h.shape[0]) if h0 is None else h0]
            for x in X:
                H.append(np.tanh(x @ W_x + H[-1] @ W_h))
            return np.array(H)
        """,
        "Your result has one row too many: it begins with a row for the state before the first "
        "word. The rows are the states after each word.",
    )

    wrong(
        "rnn_states_before_the_word",
        """
            H = [np.zeros(W_h.shape[0]) if h0 is None else h0]
            for x in X:
                H.append(np.tanh(x @ W_x + H[-1] @ W_h))
            return np.array(H)[:-1]
        """,
        "Your rows are late by one: the first is the start state and the last word is never in "
        "them. Row t is the state after reading word t.",
    )

    wrong(
        "rnn_last_state_only",
        {"h, H": "h", "h0, []": "h0", "H.append(h)": "", "np.array(H)": "h"},
        "You return the last state alone. All states are asked for, one row per position: the "
        "others are what looking everywhere needs.",
    )

    wrong(
        "rnn_states_in_dtype_of_x",
        """
            h = np.zeros(W_h.shape[0]) if h0 is None else h0
            H = np.zeros((len(X), W_h.shape[0]), dtype=X.dtype)
            for t in range(len(X)):
                H[t] = h = np.tanh(X[t] @ W_x + h @ W_h)
            return H
        """,
        "Your states come out in the dtype of X, for one because the array that collects them has "
        "it. With whole numbers in X every state is cut to a whole number, with float32 it loses "
        "precision.",
    )

    wrong(
        "rnn_writes_into_h0",
        {
            "h, H = np.zeros(W_h.shape[0]) if h0 is None else h0, []":
                "h_ = np.zeros(W_h.shape[0]) if h0 is None else h0; H = []",
            "W_x + h": "W_x + h_",
            "H.append(h)": """
                if h_.dtype.kind == "f":
                    h_[:] = h
                else:
                    h_ = h
                H.append(h)
            """,
        },
        "Your function writes its states into the caller's h0. A second call with the same h0 "
        "would start elsewhere; inputs are never changed.",
    )

    wrong(
        "rnn_same_array_in_each_row",
        {
            "h, H = np.zeros(W_h.shape[0]) if h0 is None else h0, []":
                "h = np.zeros(W_h.shape[0]) if h0 is None else h0.astype(float); H = []",
            "h = np": "h[:] = np",
        },
        "All your rows come out equal to the last state, as when a list holds one array n times "
        "and each step writes over it. Each state needs a row of its own.",
    )

    wrong(
        "rnn_tanh_of_state_only",
        {"np.tanh(x @ W_x + h @ W_h)": "x @ W_x + np.tanh(h @ W_h)"},
        "Your tanh covers only the part from the old state; the word is added outside. It is "
        "taken of the whole sum.",
    )

    wrong(
        "rnn_reads_backwards",
        {"in X:": "in X[::-1]:", "np.array(H)": "np.array(H[::-1])"},
        "Your network reads the sentence from its end. Row t has to depend on words 1 to t.",
    )

    wrong(
        "rnn_truth_of_an_array",
        {"np.zeros(W_h.shape[0]) if h0 is None else h0": "h0 or np.zeros(W_h.shape[0])"},
        "You ask a whole array whether it is true (h0 == None compares each number, too), which "
        "NumPy refuses. Ask whether h0 is None.",
    )

    wrong(
        "rnn_writes_into_x",
        {"in X:": "in range(len(X)):", "x @ W_x": "X[x] @ W_x", "H.": "X[x] = 0; H."},
        "Your function writes into the caller's X. Inputs are never changed.",
    )

    wrong(
        "rnn_first_word_never_read",
        """
            H = np.zeros((len(X), W_h.shape[0]))
            H[0] = 0 if h0 is None else h0
            for t in range(1, len(X)):
                H[t] = np.tanh(X[t] @ W_x + H[t - 1] @ W_h)
            return H
        """,
        "Where your row 0 holds the start state, the first word is never read: the words enter "
        "from the second on. Row t is the state after reading word t, from the first word on; the "
        "start state is in no row.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_returns_a_list",
        {"np.array(H)": "H"},
        "You return a Python list of states. One NumPy array is asked for, with one row for each "
        "word.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_matrices_on_the_left",
        {"x @ W_x + h @ W_h": "W_x @ x + W_h @ h"},
        "Both of your matrices are transposed, or stand on the left of the vectors, which is the "
        "same. In this course vectors are rows and stand on the left of the matrices as they are; "
        "with square ones nothing raises an error.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_transposed_word_matrix",
        {"x @ W_x": "W_x @ x"},
        "Your W_x enters transposed, or stands on the left of the word, which is the same. In "
        "this course vectors are rows and stand on the left of the matrix as it is; with a square "
        "one the mistake raises no error.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_state_never_updated",
        """
            h = np.zeros(W_h.shape[0]) if h0 is None else h0
            return np.tanh(X @ W_x + h @ W_h)
        """,
        "Your states do not depend on the words before: the state after the word before is "
        "missing in each. The old state has to enter the new one, or the network has no memory.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_tanh_of_word_only",
        {"np.tanh(x @ W_x + h @ W_h)": "np.tanh(x @ W_x) + h @ W_h"},
        "Your tanh covers only the part from the word; the part from the old state is added "
        "outside. It is taken of the whole sum.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_tanh_of_each_part",
        {"np.tanh(x @ W_x + h @ W_h)": "np.tanh(x @ W_x) + np.tanh(h @ W_h)"},
        "You take tanh of the two parts and add them. It is taken once, of the whole sum.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_sigmoid",
        {"np.tanh(x @ W_x + h @ W_h)": "1 / (1 + np.exp(-(x @ W_x + h @ W_h)))"},
        "You squeeze with the sigmoid, whose values lie between 0 and 1. The formula has tanh, "
        "from -1 to 1.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_relu",
        {"np.tanh(x @ W_x + h @ W_h)": "np.maximum(x @ W_x + h @ W_h, 0)"},
        "You squeeze with max(0, .), the ReLU. The formula has tanh, from -1 to 1.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_no_start_state",
        {"np.zeros(W_h.shape[0]) if h0 is None else h0": "h0"},
        "When no start state is given, your old state is None or a single number, and a matrix "
        "product takes neither. The network then starts from zeros, one for each number of a "
        "state.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_no_start_state_transposed",
        "return np.tanh(X @ W_x + np.dot(h0, W_h))",
        "When no start state is given, your old state is None or a single number, and a matrix "
        "product takes neither. The network then starts from zeros, one for each number of a "
        "state.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_torch_tanh",
        {"H = np": "H = torch", "h = np": "h = torch", "np.array(H)": "torch.stack(H)"},
        "You mix torch and NumPy: the arguments are NumPy arrays, and torch.tanh takes tensors "
        "only. np.tanh takes arrays.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_torch_tanh_of_an_array",
        """
            h = np.zeros(W_h.shape[0]) if h0 is None else h0
            return torch.tanh(X @ W_x + h @ W_h)
        """,
        "You mix torch and NumPy: the arguments are NumPy arrays, and torch.tanh takes tensors "
        "only. np.tanh takes arrays.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_start_state_of_d_in",
        {"W_h.shape[0]": "X.shape[1]"},
        "Your start state is as long as a word, d_in. It is a state, of length d_h. With square "
        "matrices the two are equal, and nothing tells you.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_array_like_x",
        """
            h, H = np.zeros(W_h.shape[0]) if h0 is None else h0, np.zeros_like(X)
            for t in range(len(X)):
                H[t] = h = np.tanh(X[t] @ W_x + h @ W_h)
            return H
        """,
        "The array that collects your states has the shape of X. A state has d_h numbers, a word "
        "d_in; the result is (n, d_h).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_last_word_never_read",
        """
            h, H = np.zeros(W_h.shape[0]) if h0 is None else h0, np.zeros((len(X), W_h.shape[0]))
            for t in range(len(X) - 1):
                H[t] = h = np.tanh(X[t] @ W_x + h @ W_h)
            return H
        """,
        "The last of your rows is zero, as when a loop stops one word too early. There are n words, "
        "with the indices 0 to n - 1.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_returns_in_the_loop",
        """
            h = np.zeros(W_h.shape[0]) if h0 is None else h0
            return np.tanh(X[:1] @ W_x + h @ W_h)
        """,
        "Your result holds the state after the first word only, as when the return stands inside "
        "the loop. One row for each word is asked for.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_states_as_columns",
        {"np.array(H)": "np.array(H).T"},
        "Your states are the columns of the result. One row for each word is asked for: (n, d_h).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_states_in_one_row",
        {"np.array(H)": "np.concatenate(H)"},
        "Your states stand one after the other in a single axis. One row for each word is asked "
        "for: (n, d_h).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_extra_axis",
        {"W_h.shape[0]": "(1, W_h.shape[0])", "h0, []": "h0[None], []"},
        "Each of your states is a matrix of one row, so the result has an axis too many. It is "
        "(n, d_h).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_matrices_exchanged",
        {"W_x + h @ W_h": "W_h + h @ W_x"},
        "You have exchanged the matrices: the word goes through W_x, the old state through W_h.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_start_state_at_every_word",
        {"if h0 is None else h0": "", "@ W_h": "@ W_h + (0 if h0 is None else h0 @ W_h)"},
        "Every word of yours meets the start state again. It is the state before the first word "
        "only; after that each state uses the one before it.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_state_added",
        {"h = np": "h = h + np"},
        "You add the old state to the new one. The old state enters inside tanh only, through W_h.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_tanh_from_exponentials",
        """
            h = np.zeros(W_h.shape[0]) if h0 is None else h0
            states = []
            for x in X:
                up = np.exp(x @ W_x + h @ W_h)
                down = np.exp(-(x @ W_x + h @ W_h))
                h = (up - down) / (up + down)
                states.append(h)
            return np.stack(states)
        """,
        "You build tanh from functions that overflow for sums of some hundreds, as powers of e "
        "do: inf divided by inf is NaN. tanh itself is 1 or -1 there.",
    )

    wrong(
        "rnn_start_state_for_first",
        """
            H = [np.tanh(X[0] @ W_x) if h0 is None else h0]
            for x in X[1:]:
                H.append(np.tanh(x @ W_x + H[-1] @ W_h))
            return np.array(H)
        """,
        "Where your row 0 holds the start state, the first word is never read: the words enter "
        "from the second on. Row t is the state after reading word t, from the first word on; the "
        "start state is in no row.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "rnn_start_state_of_sum_0",
        {"if h0 is None else": "if h0 is None or not np.sum(h0) else"},
        "A start state whose numbers sum to 0, such as (1, -1), comes out as if none were given: "
        "your network starts from zeros. The numbers in h0 do not tell whether it is given.",
        seen="answers written blind",
    )

    wrong(
        "rnn_adds_in_place",
        {"h = np.tanh(x @ W_x + h @ W_h)": "drive = x @ W_x; drive += h @ W_h; h = np.tanh(drive)"},
        "The sum inside tanh is kept in the dtype of the word's part, as += does it. With whole "
        "numbers in X and W_x the old state's part does not fit in there, and of float64 beside "
        "float32 digits are lost.",
        seen="answers written blind",
    )

    wrong(
        "rnn_start_state_above_0",
        {"if h0 is None else": "if h0 is None or not (h0 > 0).any() else"},
        "A start state without a number above 0 comes out as if none were given: your network "
        "starts from zeros. The numbers in h0 do not tell whether it is given.",
        seen="answers written blind",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_POSITION_INFLUENCE = """
def position_influence(X, W_x, W_h):
    H, J, result = rnn_hidden_states(X, W_x, W_h), np.eye(W_h.shape[0]), []
    for h in H[::-1]:
        J = J * (1 - h**2)
        result.append(np.linalg.norm(J @ W_x.T))
        J = J @ W_h.T
    return np.array(result[::-1])
"""


with exercise("position_influence", base=SHORT_POSITION_INFLUENCE):
    wrong(
        "influence_squared",
        {"np.linalg.norm(J @ W_x.T)": "((J @ W_x.T) ** 2).sum()"},
        "You return the sum of squares, without the root. The Frobenius norm is the root of it.",
    )

    wrong(
        "influence_w_h_not_turned_over",
        {"W_h.T": "W_h"},
        "Your W_h stands the other way round than in the Jacobian, where it is transposed. It is "
        "square, so no error tells you.",
    )

    wrong(
        "influence_without_slope",
        {
            "H, J": "J",
            "rnn_hidden_states(X, W_x, W_h), np": "np",
            "H[::-1]": "X",
            "J = J * (1 - h**2)": "",
        },
        "Your chain leaves out the slope of tanh. It is 1 only where a state is zero, and smaller "
        "elsewhere.",
    )

    wrong(
        "influence_slope_of_its_own_state_only",
        {"J = J * (1 - h**2)": "", "J @ W_x.T": "(J * (1 - h**2)) @ W_x.T"},
        "The slope of tanh counts only at the word's own state. Each later state on the way has one "
        "too: carry it along when you go a step back.",
    )

    wrong(
        "influence_last_first",
        {"result[::-1]": "result"},
        "Your influences come in the wrong order: the first entry is the one that went through "
        "the fewest matrices. Entry t belongs to position t, and the last position is the one "
        "nearest to the last state.",
    )

    wrong(
        "influence_spectral_norm",
        {"W_x.T": "W_x.T, 2"},
        "You take the spectral norm (the largest singular value). The Frobenius norm counts all "
        "entries: the root of the sum of their squares.",
    )

    wrong(
        "influence_product_in_wrong_order",
        {"J * (1 - h**2)": "(1 - h**2)[:, None] * J", "J @ W_h.T": "W_h.T @ J"},
        "You multiply the links of the chain in the wrong order. Matrices do not commute: the "
        "later link stands on the left.",
    )

    wrong(
        "influence_slope_on_rows",
        {"J * (1 - h**2)": "(1 - h**2)[:, None] * J"},
        "Your slope of tanh scales the product so far on the wrong side, as if it belonged to its "
        "rows. It belongs to the state you stand at, that is to the columns.",
    )

    wrong(
        "influence_one_step_too_far",
        {"J * (1 - h**2)": "(J * (1 - h**2)) @ W_h.T", "J = J @ W_h.T": ""},
        "You go through W_h once too often: the last word reaches the last state without it.",
    )

    wrong(
        "influence_slope_not_squared",
        {"- h**2": "- h"},
        "Your slope of tanh is 1 - h. It is 1 minus the square of the state.",
    )

    wrong(
        "influence_slope_of_slope",
        {"- h**2": "- np.tanh(h)**2"},
        "Your slope is that of tanh at the number h, as if h were the sum inside. The state h is "
        "already the value of tanh, and the slope is written with that value.",
    )

    wrong(
        "influence_on_own_state",
        """
            H = rnn_hidden_states(X, W_x, W_h)
            return np.array([np.linalg.norm((1 - h**2)[:, None] * W_x.T) for h in H])
        """,
        "You measure how a word moves its own state. Asked is how it moves the last state, "
        "through all states between them.",
    )

    wrong(
        "influence_of_states",
        {"J = J * (1 - h**2)": "", "@ W_x.T": "", "J @ W_h.T": "J * (1 - h**2) @ W_h.T"},
        "You measure the influence of the states, not of the words: the way from the word into "
        "its state, through W_x, is missing.",
    )

    wrong(
        "influence_of_norms",
        {
            "np.eye(W_h.shape[0])": "1.0",
            "J = J * (1 - h**2)": "",
            "np.linalg.norm(J @ W_x.T)": "J * np.linalg.norm((1 - h**2)[:, None] * W_x.T)",
            "= J @ W_h.T": "*= np.linalg.norm((1 - h**2)[:, None] * W_h.T)",
        },
        "You multiply the norms of the links. The norm of a product is in general smaller than "
        "the product of the norms: multiply the matrices first.",
    )

    wrong(
        "influence_of_all_entries_at_once",
        {"W_x.T": "W_x.sum(axis=0)"},
        "You move all numbers of a word together. Movements of opposite sign cancel there; the "
        "Jacobian has one column for each number of the word.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_by_a_coarse_nudge",
        """
            last, result = rnn_hidden_states(X, W_x, W_h)[-1], np.zeros(X.shape)
            for index in np.ndindex(*X.shape):
                moved = X.astype(float)
                moved[index] += 0.01
                result[index] = (((rnn_hidden_states(moved, W_x, W_h)[-1] - last) / 0.01) ** 2).sum()
            return np.sqrt(result.sum(-1))
        """,
        "You estimate the derivative by a nudge that is too large. The Jacobian is exact; the "
        "chain rule gives it without a step size.",
    )

    wrong(
        "influence_writes_into_w_h",
        {"return": "W_h *= 0; return"},
        "Your function changes the caller's W_h in place. Inputs are never changed.",
    )

    wrong(
        "influence_without_slope_of_own_state",
        {"J = J * (1 - h**2)": "", "J @ W_h.T": "J * (1 - h**2) @ W_h.T"},
        "The slope of the word's own state is missing from your chain. The word reaches that "
        "state through tanh too, so the product has one slope for each state on the way, the "
        "first and the last included.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_without_slope_of_last_state",
        {
            "for h in H[::-1]:": """
                H[-1] = 0
                for h in H[::-1]:
            """,
        },
        "The slope of the last state is missing from your chain: every way ends in that state, "
        "through its tanh. The product has one slope for each state on the way, the last included.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_without_w_x",
        {"@ W_x.T": ""},
        "You measure the influence of the states, not of the words: the way from the word into "
        "its state, through W_x, is missing.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_w_x_not_turned_over",
        {"W_x.T": "W_x"},
        "Your W_x stands the other way round than in the Jacobian, where it is transposed. Where "
        "it is square no error tells you.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_no_matrix_turned_over",
        {"W_x.T": "W_x", "W_h.T": "W_h"},
        "Both of your matrices stand the other way round than in the Jacobian, where they are "
        "transposed, because vectors are rows in this course. Where they are square no error "
        "tells you.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_sum_of_absolute_values",
        {"np.linalg.norm(J @ W_x.T)": "np.abs(J @ W_x.T).sum()"},
        "You add up the absolute values. The Frobenius norm is the root of the sum of the squares.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_square_outside",
        {"(1 - h**2)": "(1 - h) ** 2"},
        "You square the difference, (1 - h)**2. The slope of tanh is 1 minus the square of the "
        "state.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_slope_plus",
        {"- h**2": "+ h**2"},
        "Your slope of tanh is 1 + h**2. It is 1 minus the square of the state: tanh grows more "
        "slowly away from zero.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_slope_of_sigmoid",
        {"(1 - h**2)": "h * (1 - h)"},
        "Your slope is h (1 - h), that of the sigmoid. The states come from tanh, whose slope is "
        "1 minus the square of the state.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_slope_of_the_words",
        {
            "H, J": "J",
            "rnn_hidden_states(X, W_x, W_h), np": "np",
            "H[::-1]": "X[::-1]",
            "- h**2": "- np.tanh(h @ W_x)**2",
        },
        "Your slopes are made from the words. The slope of tanh at a position is made from the "
        "state there.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_slope_of_the_state_before",
        {"H[::-1]": "[*H[-2::-1], np.zeros(W_h.shape[0])]"},
        "Your slopes belong to the state before. The slope at position t is made from the state "
        "after reading word t.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_array_like_x",
        {
            ", []": ", np.zeros_like(X)",
            "H[::-1]": "reversed(range(len(X)))",
            "- h**2": "- H[h]**2",
            "result.append(np.linalg.norm(J @ W_x.T))": "result[h] = np.linalg.norm(J @ W_x.T)",
            "np.array(result[::-1])": "result",
        },
        "The array that collects your influences has the shape of X. There is one number for each "
        "position: (n,).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_slope_as_a_vector",
        {"= J *": "= J @"},
        "A matrix product with the vector of slopes adds up over the state: an axis is lost. Each "
        "D_s is a diagonal matrix; it scales the columns and adds up nothing.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_returns_a_list",
        {
            "np.linalg.norm(J @ W_x.T)": "float(np.linalg.norm(J @ W_x.T))",
            "np.array(result[::-1])": "result[::-1]",
        },
        "You return a Python list. One NumPy array is asked for.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_forwards",
        {"H[::-1]": "H", "result[::-1]": "result"},
        "Your influences come in the wrong order: the first entry is the one that went through "
        "the fewest matrices. Entry t belongs to position t, and the last position is the one "
        "nearest to the last state.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_slope_of_later_state",
        """
            H, result = rnn_hidden_states(X, W_x, W_h), []
            for t in range(len(X)):
                J = (1 - H[t] ** 2)[:, None] * W_x.T
                for h in H[t + 1 :]:
                    J = W_h.T @ ((1 - h**2)[:, None] * J)
                result.append(np.linalg.norm(J))
            return np.array(result)
        """,
        "Matrix and slope of each link are exchanged. On the way from one state to the next the "
        "matrix comes first, then the tanh of the next state: the slope stands on the left of the "
        "matrix.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_largest_entry",
        {"np.linalg.norm(J @ W_x.T)": "np.abs(J @ W_x.T).max()"},
        "You take the largest absolute value of an entry. The Frobenius norm is the root of the "
        "sum of the squares of all entries.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_root_of_the_slope",
        {"(1 - h**2)": "np.sqrt(1 - h**2)"},
        "Your slope is the root of 1 - h**2. The slope of tanh is 1 - h**2 itself.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "influence_first_left_out",
        {
            ", []": ", [0.0]",
            "H[::-1]": "H[:0:-1]",
            "result.append(np.linalg.norm(J @ W_x.T))":
                "result.insert(1, np.linalg.norm(J @ W_x.T))",
            "result[::-1]": "result",
        },
        "The influence of the first position is 0 in yours, as when a loop stops before it. "
        "Positions have the indices n - 1 down to 0.",
        seen="a trial with typical wrong answers",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_WEIGHTED_AVERAGE = """
def weighted_average(weights, values):
    if weights.shape[-1] != values.shape[-2] or (weights < 0).any():
        raise ValueError
    if not weights.any(-1).all():
        raise ValueError
    weights = weights / weights.sum(-1, keepdims=True)
    return np.einsum("...n,...nd->...d", weights, values)
"""


with exercise("weighted_average", base=SHORT_WEIGHTED_AVERAGE):
    wrong(
        "average_not_normalised",
        {"weights = weights / weights.sum(-1, keepdims=True)": "", ", weights": ", weights * 1.0"},
        "Your weights are not divided by their sum, so the result is a weighted sum: twice the "
        "weights give twice the result.",
    )

    wrong(
        "average_squeezes_every_axis",
        {'einsum("...n,...nd->...d", weights,': "squeeze(weights[..., None, :] @"},
        "Leading axes of length 1 are missing in your result, as after squeeze without an axis, "
        "which takes away every axis of length 1. Only the axis that you made should go.",
        seen="answers written blind",
    )

    wrong(
        "average_with_mean",
        {
            "weights = weights": "w = weights",
            'np.einsum("...n,...nd->...d", weights, values)':
                "np.mean(w[..., None] * values, axis=-2)",
        },
        "Your result is divided by the sum of the weights and by the number of values too, as by "
        "a mean. With weights that sum to 1 the average is a sum.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_with_softmax",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "e = np.exp(weights * 1.0)",
            ", weights": ", e / e.sum(-1, keepdims=True)",
        },
        "You put the weights through a softmax. They are weights already: dividing by their sum "
        "is enough, and a weight of 0 stays 0.",
    )

    wrong(
        "average_normalised_over_everything",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights / weights.sum()",
        },
        "You divide by the sum of all weights of the batch. Each row has its own sum.",
    )

    wrong(
        "average_normalised_over_the_batch",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights / weights.sum(0)",
        },
        "You normalise along the first axis, that is over the batch. The weights of one row, the "
        "last axis, have to sum to 1.",
    )

    wrong(
        "average_without_keepdims",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights / weights.sum(-1)",
        },
        "Your sums have no axis of length 1 at their end, so for a batch the division does not "
        "line up with the rows.",
    )

    wrong(
        "average_in_place",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": """
                if weights.dtype.kind == "f":
                    weights /= weights.sum(-1, keepdims=True)
                else:
                    weights = weights / weights.sum(-1, keepdims=True)
            """,
        },
        "You divide the caller's weights in place. Inputs are never changed.",
    )

    wrong(
        "average_over_features",
        {
            "weights = weights": "w = weights",
            'np.einsum("...n,...nd->...d", weights, values)': "(w[..., None] * values).sum(-1)",
        },
        "Your sum runs over the features of each value. The average runs over the positions.",
    )

    wrong(
        "average_by_plain_matmul",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            'np.einsum("...n,...nd->...d", weights, values)':
                "(weights / weights.sum(-1, keepdims=True)) @ values",
        },
        "A plain matrix product of weights and values is right for one row; with a batch, NumPy "
        "takes the batch for rows of a matrix and every row meets every batch element.",
    )

    wrong(
        "average_one_batch_axis_only",
        {
            "weights = weights": "w = weights",
            '"...n,...nd->...d", weights': '"n,nd->d" if w.ndim == 1 else "bn,bnd->bd", w',
        },
        "Your function takes at most one leading axis. Any number is allowed, and those of the "
        "two arguments broadcast.",
        edge=True,
    )

    wrong(
        "average_same_leading_axes_only",
        {
            "weights.shape[-1]": "weights.shape",
            "[-2] or": "[:-1] or",
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights / weights.sum(-1, keepdims=True)",
        },
        "Arguments whose leading axes differ end in an error, for one because you refuse them. They "
        "broadcast: one row of weights may serve a whole batch of values, and the other way round.",
    )

    wrong(
        "average_keeps_an_axis",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            'np.einsum("...n,...nd->...d", weights, values)':
                "(weights / weights.sum(-1, keepdims=True))[..., None, :] @ values",
        },
        "Your result keeps the position axis with length 1. It has been averaged away: the shape "
        "is (..., d_v).",
    )

    wrong(
        "average_accepts_negative",
        """
            if weights.shape[-1] != values.shape[-2] or not weights.any(-1).all():
                raise ValueError
            return np.einsum("...n,...nd->...d", weights / weights.sum(-1, keepdims=True), values)
        """,
        "A negative weight gets through: it is not looked at, it is made another number (zero, "
        "for one), or the rest of its row hides it. Look at each weight; a negative one is a "
        "ValueError, because an average with it can lie outside all values.",
    )

    wrong(
        "average_clips_negative",
        """
            weights = np.maximum(weights, 0)
            if weights.shape[-1] != values.shape[-2] or not weights.any(-1).all():
                raise ValueError
            return np.einsum("...n,...nd->...d", weights / weights.sum(-1, keepdims=True), values)
        """,
        "A negative weight gets through: it is not looked at, it is made another number (zero, "
        "for one), or the rest of its row hides it. Look at each weight; a negative one is a "
        "ValueError, because an average with it can lie outside all values.",
    )

    wrong(
        "average_refuses_only_all_zero",
        """
            if weights.shape[-1] != values.shape[-2] or (weights < 0).any() or not weights.any():
                raise ValueError
            with np.errstate(invalid="ignore"):
                return np.einsum("...n,...nd->...d", weights / weights.sum(-1, keepdims=True), values)
        """,
        "A row of weights that is all zero gets through: it gives a result (NaN or zeros, for "
        "two), or passes because other rows of the batch are fine. One such row is a ValueError: "
        "an average of nothing does not exist.",
    )

    wrong(
        "average_refuses_single_zeros",
        {
            "weights < 0": "weights <= 0",
            "not weights.any(-1).all()": "False",
            ", weights": ", weights / weights.sum(-1, keepdims=True)",
        },
        "You refuse rows that hold a zero. A weight of 0 is fine: that value is not looked at. "
        "Only a row that is all zero cannot be normalised.",
    )

    wrong(
        "average_wants_normalised_weights",
        {
            "weights.any(-1).all()": "np.allclose(weights.sum(-1), 1)",
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights * 1.0",
        },
        "You refuse weights that are allowed, for one because their sum is not 1. The function "
        "normalises them itself.",
    )

    wrong(
        "average_stretches_lengths",
        """
            if (weights < 0).any() or not weights.any(-1).all():
                raise ValueError
            return ((weights / weights.sum(-1, keepdims=True))[..., None] * values).sum(-2)
        """,
        "Lengths that differ get through: NumPy stretches a length of 1 silently, and cutting to "
        "the shorter one loses values without a word. Compare the lengths yourself; they are a "
        "ValueError when they differ.",
    )

    wrong(
        "average_stretches_one_weight",
        """
            if (weights < 0).any() or not weights.any(-1).all():
                raise ValueError
            if weights.shape[-1] not in (1, values.shape[-2]):
                raise ValueError
            return ((weights / weights.sum(-1, keepdims=True))[..., None] * values).sum(-2)
        """,
        "Lengths that differ get through: NumPy stretches a length of 1 silently, and cutting to "
        "the shorter one loses values without a word. Compare the lengths yourself; they are a "
        "ValueError when they differ.",
    )

    wrong(
        "average_checks_the_first_axis",
        {
            "weights.shape[-1]": "weights.shape[0]",
            "[-2] or": "[0] or",
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            'np.einsum("...n,...nd->...d", weights, values)':
                "((weights / weights.sum(-1, keepdims=True))[..., None] * values).sum(-2)",
        },
        "You compare the first axes, which with a batch are not the lengths. Positions are the "
        "last axis of weights and the second to last of values.",
    )

    wrong(
        "average_with_epsilon",
        {
            "weights = weights": "w = weights",
            "weights.sum(-1, keepdims=True)": "(weights.sum(-1, keepdims=True) + 1e-9)",
            ", weights": ", w",
        },
        "You add a small number to the sum that divides. Tiny weights then no longer sum to 1: "
        "the average shrinks towards zero.",
    )

    wrong(
        "average_takes_tiny_for_zero",
        {
            "not weights.any(-1).all()": "(weights.sum(-1) < 1e-8).any()",
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights / weights.sum(-1, keepdims=True)",
        },
        "You take tiny weights for zeros. Only their ratios matter: a row is all zero when every "
        "weight is exactly 0.",
    )

    wrong(
        "average_in_float32",
        {
            "weights = weights / weights.sum(-1, keepdims=True)":
                "w = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)",
            ", weights, values": ", w, values.astype(np.float32)",
        },
        "Your result has the precision of float32, also where an input is float64.",
    )

    wrong(
        "average_in_dtype_of_values",
        {
            "weights = weights": "w = weights",
            '("...n,...nd->...d", weights, values)':
                '("...n,...nd->...d", w, values).astype(values.dtype)',
        },
        "Your result has the dtype of values: with whole numbers the average is cut to a whole "
        "number, with float32 it loses precision.",
    )

    wrong(
        "average_ignores_weights",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", np.ones(weights.shape) / weights.shape[-1]",
        },
        "Your result is the plain mean: every value counts alike, whatever its weight.",
    )

    wrong(
        "average_sum_over_the_first_axis",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            'np.einsum("...n,...nd->...d", weights, values)':
                "((weights / weights.sum(-1, keepdims=True))[..., None] * values).sum(0)",
        },
        "Your sum runs over the first axis. That is the positions for one row of weights, and the "
        "batch for several. Positions are axis -2 of the values: count from the end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_by_np_average",
        """
            if (weights < 0).any() or not weights.any(-1).all():
                raise ValueError
            return np.average(values, axis=-2, weights=weights)
        """,
        "`np.average` takes weights of the shape of the values, or of one axis of them. It does not "
        "broadcast a batch of weights against shared values.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_by_np_average_first_axis",
        """
            if (weights < 0).any() or not weights.any(-1).all():
                raise ValueError
            return np.average(values, axis=0, weights=weights)
        """,
        "`np.average` takes weights of the shape of the values, or of one axis of them. It does not "
        "broadcast a batch of weights against shared values.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_weights_meet_the_features",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            'np.einsum("...n,...nd->...d", weights, values)':
                "((weights / weights.sum(-1, keepdims=True)) * values).sum(-2)",
        },
        "weights * values lines up the axes from the right, so the weights meet the features. "
        "They belong to the positions, axis -2 of the values: the weights need one more axis, of "
        "length 1, at their end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_divides_by_the_number",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights / weights.shape[-1]",
        },
        "You divide by the number of weights. Divide by their sum: the weights then sum to 1, "
        "whatever their size.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_divides_by_the_largest",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights / weights.max(-1, keepdims=True)",
        },
        "You divide by the largest weight. Divide by the sum of the row: the weights then sum to "
        "1.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_by_norm",
        {
            "weights = weights": "w = weights",
            "weights.sum(-1, keepdims=True)": "np.linalg.norm(weights, axis=-1, keepdims=True)",
            ", weights": ", w",
        },
        "You divide by the length of the row, the root of the sum of squares. Divide by the sum: "
        "the weights then sum to 1.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_by_np_dot",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            'np.einsum("...n,...nd->...d", weights, values)':
                "np.dot(weights / weights.sum(-1, keepdims=True), values)",
        },
        "A plain matrix product of weights and values is right for one row; with a batch, NumPy "
        "takes the batch for rows of a matrix and every row meets every batch element.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_divided_without_keepdims",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            '("...n,...nd->...d", weights, values)':
                '("...n,...nd->...d", weights, values) / weights.sum(-1)',
        },
        "Your sums have no axis of length 1 at their end, so for a batch the division does not "
        "line up with the rows.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_einsum_of_one_row",
        {
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            '"...n,...nd->...d"': '"n,nd->d"',
            ", weights": ", weights / weights.sum(-1, keepdims=True)",
        },
        "Your function takes at most one leading axis. Any number is allowed, and those of the "
        "two arguments broadcast.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_axis_at_place_1",
        {
            "weights = weights": "w = weights",
            'np.einsum("...n,...nd->...d", weights, values)': "(w[:, None] * values).sum(-2)",
        },
        "The new axis stands right after the first one, which is the end only for one row of "
        "weights. With a batch it must still be the last: count from the end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_axis_at_place_1_first_axis",
        {
            "weights = weights": "w = weights",
            'np.einsum("...n,...nd->...d", weights, values)': "(w[:, None] * values).sum(0)",
        },
        "The new axis stands right after the first one, which is the end only for one row of "
        "weights. With a batch it must still be the last: count from the end.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_lengths_of_features",
        {
            "[-2] or": "[-1] or",
            "weights = weights / weights.sum(-1, keepdims=True)": "",
            ", weights": ", weights / weights.sum(-1, keepdims=True)",
        },
        "You compare the number of weights with the number of features. It has to be the number "
        "of positions, axis -2 of the values.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_returns_nothing",
        "return None",
        "Your function returns None: either no return is reached, or what it returns is None "
        "(append, for one, gives None).",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_loop_over_rows",
        """
            if (weights < 0).any() or not weights.any(-1).all():
                raise ValueError
            total = np.zeros(values.shape[-1])
            for w, value in zip(weights, values):
                total += w * value
            return total / weights.sum()
        """,
        "Your function takes at most one leading axis. Any number is allowed, and those of the "
        "two arguments broadcast.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_einsum_of_rows",
        """
            if (weights < 0).any() or not weights.any(-1).all():
                raise ValueError
            return np.einsum("bn,nd->bd", weights / weights.sum(-1, keepdims=True), values)
        """,
        "Your formula names the axes of a batch of rows. Without a batch there is one axis less, "
        "with two batch axes one more: leading axes are written as three dots.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_and_weights",
        """
            w = weights / weights.sum(-1, keepdims=True)
            return np.einsum("...n,...nd->...d", w, values), w
        """,
        "You return the average and the weights. Only the average is asked for.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "average_zero_row_looked_for_in_the_last",
        """
            if weights.shape[-1] != values.shape[-2] or (weights < 0).any():
                raise ValueError
            if not weights.reshape(-1, weights.shape[-1])[-1].any():
                raise ValueError
            with np.errstate(invalid="ignore"):
                return np.einsum("...n,...nd->...d", weights / weights.sum(-1, keepdims=True), values)
        """,
        "A row of zeros gets through where a good row comes after it, as when only the last row is "
        "looked at, for one behind the loop. One such row anywhere in the batch is a ValueError.",
        seen="answers written blind",
    )


choice(
    "answer_influence",
    "a",
    reason="A flat curve would mean that nothing is lost on the way. But each step back "
    "multiplies by one more matrix, and this one shrinks vectors to about half.",
)
choice(
    "answer_influence",
    "b",
    right=True,
    reason="Each step back multiplies by about the same factor, near 0.5. Equal factors are "
    "equal steps on a logarithmic axis: a nearly straight line, a factor below 1e-12 from"
    " position 40 to position 1.",
)
choice(
    "answer_influence",
    "c",
    reason="A product of factors near 0.5 becomes tiny but never exactly zero, and the number "
    "of positions is not compared with d_h anywhere in the formula: a state is not a "
    "shelf with d_h places.",
)
choice(
    "answer_influence",
    "d",
    reason="The first word has been in the state for longest, but that means it has been "
    "multiplied most often. With a factor near 0.5 this makes it smaller, not larger.",
)

choice(
    "answer_order",
    "a",
    reason="There is no first in a sum. Position 1 enters like every other position: through "
    "its weight and its value.",
)
choice(
    "answer_order",
    "b",
    reason="The numbers of the result are features, not positions. Moving positions around does"
    " not move features.",
)
choice(
    "answer_order",
    "c",
    right=True,
    reason="A sum does not care for the order of its terms. So the average itself knows nothing"
    " of word order; whatever it knows must be in the values or in the weights. Lesson 7"
    " comes back to this.",
)
choice(
    "answer_order",
    "d",
    reason="The weights move together with their values, so each value keeps its own weight. "
    "The terms of the sum are the same, whether or not the weights are equal.",
)

choice(
    "answer_row",
    "a",
    reason="The decoder has read le, but the row is made in order to predict the next word. "
    "What is looked up serves that word. Labelled by the word read, the map would claim "
    "that le comes from cat.",
)
choice(
    "answer_row",
    "b",
    right=True,
    reason="The row's weighted average goes into the prediction of chat, so the row tells where"
    " the model looked for chat. Row t belongs to the word that step t predicts.",
)
choice(
    "answer_row",
    "c",
    reason="The labels differ by one row, and so do the stories they tell: with one chat looks "
    "at cat, with the other le does. Only one of them is what the code computes.",
)
choice(
    "answer_row",
    "d",
    reason="noir is predicted one step later, in the third row, after chat has been read.",
)

choice(
    "answer_bug",
    "a",
    right=True,
    reason="The state is set to zeros once, and then carried from sentence to sentence. The "
    "first sentence is right, so a test with one sentence passes; the same sentence "
    "twice gives two different states.",
)
choice(
    "answer_bug",
    "b",
    reason="The words are gone through inside rnn_hidden_states. One call for each sentence is "
    "what the function is for.",
)
choice(
    "answer_bug",
    "c",
    reason="The last state is what was asked for, and it depends on all words: each state is "
    "made from the one before.",
)
choice(
    "answer_bug",
    "d",
    reason="The docstring promises one row for each sentence, and np.stack makes exactly that.",
)

with exercise("mended_last_states"):
    wrong(
        "last_states_mean",
        {"rnn_hidden_states(X, W_x, W_h)[-1]": "rnn_hidden_states(X, W_x, W_h).mean(axis=0)"},
        "You return the mean of all states of a sentence. The decoder gets the last one.",
    )
    wrong(
        "last_states_first_row",
        {"[-1]": "[0]"},
        "You return the state after the first word. The last state is the last row.",
    )
    wrong(
        "last_states_all_in_one",
        "states = rnn_hidden_states(np.concatenate(sentences), W_x, W_h)\n"
        "return states[np.cumsum([len(X) for X in sentences]) - 1]",
        "This is still the bug: a sentence begins with what is left of the one before. Each is read "
        "from zeros.",
    )
    wrong(
        "last_states_one_vector",
        {"np.stack": "np.concatenate"},
        "Your states are joined into one long vector. Each sentence has a row of its own.",
    )
    wrong(
        "last_states_padded_at_the_end",
        """
            last = []
            for X in sentences:
                padded = np.zeros((max(map(len, sentences)), len(W_x)))
                padded[: len(X)] = X
                last.append(rnn_hidden_states(padded, W_x, W_h)[-1])
            return np.stack(last)
        """,
        "You fill short sentences up and read on over the filling, where W_h still changes the "
        "state. The state wanted is the one after a sentence's own last word.",
        seen="a trial with typical wrong answers",
    )
    wrong(
        "last_states_by_length",
        {"in sentences": "in sorted(sentences, key=len)"},
        "Your rows come in the order of the sentences' lengths. Row i belongs to sentence i.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "last_states_in_dtype_of_the_first",
        """
            last = np.zeros((len(sentences), len(W_h)), dtype=sentences[0].dtype)
            for i, X in enumerate(sentences):
                last[i] = rnn_hidden_states(X, W_x, W_h)[-1]
            return last
        """,
        "Your result has the dtype of the first sentence: with whole numbers there every state is "
        "cut to a whole number, with float32 digits are lost.",
        seen="answers written blind",
    )
    wrong(
        "last_states_empties_the_list",
        """
            last = []
            while sentences:
                last.append(rnn_hidden_states(sentences.pop(0), W_x, W_h)[-1])
            return np.stack(last)
        """,
        "The caller's list holds another number of sentences after the call. Arguments are not "
        "changed.",
        seen="answers written blind",
    )
    wrong(
        "last_states_one_for_each_length",
        """
            kept = {}
            for X in sentences:
                if len(X) not in kept:
                    kept[len(X)] = rnn_hidden_states(X, W_x, W_h)[-1]
            return np.stack([kept[len(X)] for X in sentences])
        """,
        "Sentences of one length come out with one and the same state, as when states are kept by "
        "the number of words. Other words of the same number have a state of their own.",
        seen="answers written blind",
    )
