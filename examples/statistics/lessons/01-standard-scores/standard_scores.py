# %% [markdown]
# After this lesson you can say whether 14 of 20 points in one exam is better than 70 of 100 in
# another, and do it for a whole table at once.

# %% tags=["setup"]
import numpy as np

from lesson_kit.checks import assert_close, assert_equal, check_rng, checks_passed, probe

# %% [markdown]
# ## Far from the mean, in steps of its own
#
# A mark says little without the others. A **standard score** says how far a number $x_i$ lies above
# the mean $\bar x$ of its row, in standard deviations $s$ of that row:
#
# $$z_i = \frac{x_i - \bar x}{s}, \qquad s = \sqrt{\frac{1}{n} \sum_i (x_i - \bar x)^2}$$

# %% [markdown]
# ### Exercise 1: `standard_scores`
#
# Write the formula for an array of rows, each with a mean and a standard deviation of its own.

# %% answer="standard_scores"
def standard_scores(x):
    """Standard scores of x (..., n) along its last axis; x is not changed."""
    ### BEGIN SOLUTION
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / x.std(axis=-1, keepdims=True)
    ### END SOLUTION


# %% check="standard_scores" points=3
x = check_rng().normal(size=(3, 5)) * 4 + [[10.0], [20.0], [50.0]]
mean = np.stack([x.sum(axis=1) / 5] * 5, axis=1)
spread = np.sqrt(np.stack([((x - mean) ** 2).sum(axis=1) / 5] * 5, axis=1))
assert_close(
    standard_scores(x),
    (x - mean) / spread,
    "Each row should come out with mean 0 and standard deviation 1. Are both those of its row?",
)
checks_passed("standard_scores")

# %% check="standard_scores_tables" points=1
# Hidden checks of standard_scores: points for everybody, and several tables at once.
### BEGIN HIDDEN TESTS
x = check_rng().normal(size=(2, 3, 5)) + 1
alone = standard_scores(x[1])
assert_equal(bool(np.ptp(alone) > 0), True, "The scores of a table are not all the same.")
assert_close(
    standard_scores(x[1] + 3),
    alone,
    "Three points more for everybody change no score.",
    against="without them",
)
assert_close(
    standard_scores(x)[1],
    alone,
    "Each of several tables should come out as if it were alone.",
    against="for that table alone",
)
### END HIDDEN TESTS

# %% check="standard_scores_inputs" points=1
# Hidden checks of standard_scores: its input stays as it is.
### SIDE CONDITION: counts once another check of standard_scores passes.
### BEGIN HIDDEN TESTS
@probe
def input_afterwards(x):  # runs beside the student's code; plain data come back
    standard_scores(x)
    return x


x = check_rng().normal(size=(2, 5))
assert_equal(input_afterwards(x.copy()), x, "standard_scores changes its input.")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# `keepdims=True` keeps the axis of a mean, so that it lines up with the rows.
#
# </details>

# %% tags=["demonstration"]
exams = {"algebra, of 20": [14, 9, 11, 10], "history, of 100": [70, 80, 75, 95]}
for exam, marks in exams.items():
    print(exam, np.round(standard_scores(np.array(marks, dtype=float)), 2))

# %% [markdown]
# The first student has 70 % of the points in both. In algebra nobody has more; in history everybody
# has.
