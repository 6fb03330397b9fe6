"""The class report as a table: one row an exercise."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict

from autograder.report.numbers import Report

_COLUMNS = (
    "assignment",
    "exercise",
    "max_points",
    "submissions",
    "attempted",
    "all_points",
    "some_points",
    "no_points",
    "not_attempted",
    "mean_share",
    "mean_share_attempted",
    "separation",
    "no_separation",
    "timeouts",
    "crashes",
    "misconceptions",
)


def report_csv(report: Report) -> str:
    """One row an exercise. It holds nothing that a student wrote, and no names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for assignment in report.assignments:
        for exercise in assignment.exercises:
            row = {"assignment": assignment.name, "exercise": exercise.name, **asdict(exercise)}
            del row["name"]
            for column, value in row.items():
                if isinstance(value, float):
                    row[column] = f"{value:.4g}"
            row["misconceptions"] = "; ".join(
                f"{mistake.name} ({mistake.submissions})"
                for mistake in report.misconceptions
                if (mistake.assignment, mistake.exercise) == (assignment.name, exercise.name)
            )
            writer.writerow(row)
    return text.getvalue()
