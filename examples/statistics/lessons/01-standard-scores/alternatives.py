"""Right answers that look different from the solution."""

import statistics

import numpy as np

from autograder.course.implementations import alternative


@alternative("standard_scores", "row_by_row")
def standard_scores(x):
    def of_a_row(row):
        mean, spread = statistics.fmean(row), statistics.pstdev(row)
        return np.array([(value - mean) / spread for value in row])

    return np.apply_along_axis(of_a_row, -1, x)


@alternative("standard_scores", "mean_of_squares")
def standard_scores(x):
    centred = x - np.einsum("...n->...", x)[..., None] / x.shape[-1]
    return centred / np.sqrt(np.mean(centred**2, axis=-1))[..., None]
