"""Wrong answers that students write, each with a sentence for them."""

from autograder.course.implementations import exercise, wrong

with exercise("standard_scores"):
    wrong(
        "mean_of_everything",
        {"x.mean(axis=-1, keepdims=True)": "x.mean()"},
        "Your rows do not come out around 0: what is taken away is the mean of all numbers. A row "
        "that lies above the others is measured from its own mean.",
    )
    wrong(
        "spread_of_everything",
        {"x.std(axis=-1, keepdims=True)": "x.std()"},
        "Your rows have mean 0, and their spread is measured with one number for all of them. Each "
        "row has a standard deviation of its own.",
    )
    wrong(
        "variance",
        {"x.std(": "x.var("},
        "Your results are divided by the variance, the mean of the squares. The standard deviation "
        "is in the units of x, so that they cancel.",
    )
    wrong(
        "n_minus_one",
        {"x.std(axis=-1": "x.std(axis=-1, ddof=1"},
        "Your standard deviation divides by n - 1, as an estimate from a sample does. The formula "
        "above describes the numbers that are there: it divides by n.",
    )
    wrong(
        "not_divided",
        {" / x.std(axis=-1, keepdims=True)": ""},
        "Your rows have mean 0 and keep their units: points stay points. What makes exams "
        "comparable is the step in which they are counted.",
    )
