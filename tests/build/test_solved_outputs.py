"""A solved notebook is run again where running it could print something else."""

from __future__ import annotations

import copy
import inspect
from pathlib import Path

import pytest
from nbformat import NotebookNode, v4

from autograder.build import solved_outputs
from autograder.build.solved_outputs import take_outputs
from lesson_kit import batteries, checks

TEST = (
    "x = check_rng().normal(size=3)\n"
    'assert_close(double(x), x + x, "Is it twice x?", rtol=1e-6)\n'
    'with assert_raises(ValueError, "Nothing negative."):\n    double(-x)\n'
    'message = f"Not {x}."\nassert_equal(double(1), 2, message)\n'
    'said = "said"\nassert_equal(double(2), 4, said)\nprint(said)\n'
    'checks_passed("double")\n'
)


def notebook() -> NotebookNode:
    test = {"nbgrader": {"grade": True, "solution": False, "task": False, "grade_id": "test_x"}}
    return v4.new_notebook(
        cells=[
            v4.new_markdown_cell("Twice."),
            v4.new_code_cell("print(2)"),
            v4.new_code_cell(TEST, metadata=test),
        ]
    )


def solved() -> NotebookNode:
    made = copy.deepcopy(notebook())
    for number, cell in enumerate(made.cells[1:], start=1):
        cell["outputs"] = [v4.new_output("stream", text=f"output {number}\n")]
        cell["execution_count"] = number
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Twice.", "Two times."),
        ("Is it twice x?", "Is it x + x?"),
        ("Nothing negative.", "Refuse a negative x."),
        ("Not {x}.", "Never {x}."),
        ("double(-x)\n", "double(-x)  # no number of things\n"),
    ],
)
def test_what_only_a_failing_check_says_may_change(before: str, after: str) -> None:
    new = notebook()
    for cell in new.cells:
        cell.source = cell.source.replace(before, after)
    assert take_outputs(new, solved(), Path("nowhere")) == []
    assert [cell.outputs[0].text for cell in new.cells[1:]] == ["output 1\n", "output 2\n"]
    assert [cell.execution_count for cell in new.cells[1:]] == [1, 2]
    assert any(after in cell.source for cell in new.cells)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rtol=1e-6", "rtol=1e-5"),
        ("x + x", "2 * x"),
        ("assert_raises(ValueError", "assert_raises(TypeError"),
        ('checks_passed("double")', 'checks_passed("doubled")'),
        ('"said"', '"told"'),
    ],
)
def test_a_check_that_does_something_else_runs(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    ran = [v4.new_output("stream", text="now\n")]
    monkeypatch.setattr(
        solved_outputs, "_ran", lambda cells, changed, *_: dict.fromkeys(changed, ran)
    )
    new = notebook()
    for cell in new.cells:
        cell.source = cell.source.replace(before, after)
    assert take_outputs(new, solved(), Path("nowhere")) == ["test_x"]
    assert [cell.outputs[0].text for cell in new.cells[1:]] == ["output 1\n", "now\n"]


def test_the_places_of_messages_are_those_of_the_checks() -> None:
    there = {
        name: list(inspect.signature(check).parameters).index("message")
        for module in (batteries, checks)
        for name, check in vars(module).items()
        if name.startswith("assert_") and "message" in inspect.signature(check).parameters
    }
    assert there == solved_outputs.MESSAGES
