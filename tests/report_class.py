"""A class that was graded, as the report reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autograder.classroom.folder import ClassFolder

LESSON = "02-query-key-value"


#: Exercise and test cell; two points each.
CELLS = {"test_softmax": "softmax", "test_softmax_axis": "softmax", "test_lookup": "lookup"}


def submission(student: str, outcomes: str = "passed passed passed", **more: Any) -> dict[str, Any]:
    """An entry of grades.json; an outcome may be followed by ``:diagnosis``."""
    tests = []
    for (cell, exercise), outcome in zip(CELLS.items(), outcomes.split()):
        name, _, diagnosis = outcome.partition(":")
        points = {"passed": 2.0, "partial": 1.0}.get(name, 0.0)
        message = f"The {diagnosis} sentence.\nvalues" if diagnosis else ""
        tests.append(
            {
                "grade_id": cell,
                "exercise": exercise,
                "points": points,
                "max_points": 2.0,
                "outcome": name,
                "message": message,
                "diagnosis": diagnosis,
            }
        )
    return {
        "student": student,
        "assignment": LESSON,
        "notebook": "query_key_value",
        "status": "graded",
        "reason": "",
        "score": sum(test["points"] for test in tests),
        "max_score": 6.0,
        "needs_manual_grade": False,
        "tests": tests,
        "flags": [],
        "seconds": 0.1,
        **more,
    }


MISSING = "missing missing missing"


CLASS = [
    submission("ada_lovelace"),
    submission("grace.hopper", "passed failed:last_axis failed:no_scale", needs_manual_grade=True),
    submission("Zoë", "failed:last_axis failed:last_axis not_attempted"),
    submission("edsger-d", "not_attempted not_attempted not_attempted"),
    submission("hedy99", "timeout crashed partial"),
    submission(
        "mallory",
        flags=[
            "test cell test_softmax was edited; the original was used",
            "test cell mallory was edited; the original was used",
            "answer cell lookup stands 3 times; the last one counts",
            "the notebook was called mallory <script>alert(1)</script>.ipynb, not x.ipynb",
            "a new kind of flag that mallory wrote",
        ],
    ),
    submission("ida_r", MISSING, status="unreadable", reason="The file is empty. ida_r."),
    submission("john_b", MISSING, status="missing", reason="There are 2 (john_b.ipynb, x.ipynb)"),
    submission("niklaus", "", status="failed", reason="Traceback\nOSError: /x/niklaus/y"),
]


def a_class(root: Path, submissions: list[dict[str, Any]], **more: Any) -> ClassFolder:
    (root / "source").mkdir(parents=True)
    (root / "class.toml").write_text("seed = 7\n")
    tree = {"engine": "1", "sandbox": "bubblewrap", "course": "A <course>", **more}
    (root / "grades.json").write_text(json.dumps({**tree, "submissions": submissions}))
    return ClassFolder.open(root)
