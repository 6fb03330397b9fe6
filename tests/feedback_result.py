"""What the grader found in one submission, for pages of feedback."""

from __future__ import annotations

from autograder.grade.cells import Cell
from autograder.grade.result import (
    FAILED,
    GRADED,
    PASSED,
    Result,
    TestResult,
)

NO_NAME = "double is not defined: run the cell."


def a_result(**more: object) -> Result:
    """Double passes; quadruple and the short answer stop for one reason; one answer to read."""
    tests = (
        TestResult("test_double", "double", 2.0, 2.0, PASSED),
        TestResult("test_double_errors", "double", 1.0, 1.0, PASSED),
        TestResult("test_quadruple", "quadruple", 0.0, 4.0, FAILED, message=NO_NAME),
        TestResult("test_answer_size", "answer_size", 0.0, 1.0, FAILED, message=NO_NAME),
    )
    parts: dict[str, object] = {
        "tests": tests,
        "max_score": 8.0,
        "written_to_read": frozenset({"written_why"}),
        "cells": (Cell("markdown", "Because.", "written_why"),),
        **more,
    }
    return Result("01-tiny", "tiny", GRADED, **parts)  # type: ignore[arg-type]
