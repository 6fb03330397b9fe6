"""What stands below a check: small enough to be read, and calm where nothing is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lesson_kit import progress
from lesson_kit.checks import assert_close, assert_equal
from lesson_kit.differences import LONGEST, MOST, where_they_differ
from lesson_kit.failures import CheckFailed, ChecksFailed, Part, settle


def differing(shape: tuple[int, ...], place: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    want = np.arange(np.prod(shape), dtype=float).reshape(shape)
    got = want.copy()
    got[place] = -1
    return got, want


@pytest.mark.parametrize(
    ("shape", "place", "index", "shown"),
    [
        ((3,), (1,), "", (3,)),
        ((4, 5), (2, 3), "", (4, 5)),
        ((2, 3, 4, 5), (1, 0, 2, 3), " [1, 0]", (4, 5)),
        ((100,), (0,), " [0:8]", (8,)),
        ((100,), (99,), " [92:100]", (8,)),
        ((12, 10), (7, 3), " [7, 0:8]", (8,)),
        ((2, 30), (1, 20), " [1, 16:24]", (8,)),
        ((3, 40, 50), (2, 7, 25), " [2, 7, 21:29]", (8,)),
    ],
)
def test_the_smallest_part_that_differs_is_shown_with_its_index(
    shape: tuple[int, ...], place: tuple[int, ...], index: str, shown: tuple[int, ...]
) -> None:
    got, want = differing(shape, place)
    pair, where = where_they_differ(got, want, place)
    assert pair is not None
    assert where == index
    assert pair[0].shape == pair[1].shape == shown
    assert (pair[0] != pair[1]).sum() == 1
    assert pair[0].size <= MOST and pair[0].shape[-1] <= LONGEST


def test_a_large_difference_is_told_with_numbers_and_nothing_left_out() -> None:
    got, want = differing((3, 40), (2, 7))
    with pytest.raises(CheckFailed) as failed:
        assert_close(got, want, "Twice?", name="the weights")
    text, box = str(failed.value), failed.value.html()
    assert "1 of 120 values (the weights) differ" in text
    assert "..." not in text
    assert "Yours [2, 3:11]:" in text and "Expected [2, 3:11]:" in text
    assert "yours [2, 3:11]" in box and "expected [2, 3:11]" in box


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("the numbers", "The numbers have shape (2,) and should have shape (3,)."),
        ("the weights of each text", "The weights of each text have shape (2,) and should"),
        ("the loss", "The loss has shape (2,) and should have shape (3,)."),
        ("how many results", "how many results has shape (2,)"),
        ("the shape of the weights", "The shape of the weights has shape (2,)"),
    ],
)
def test_many_have_and_one_has(name: str, said: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        assert_close(np.zeros(2), np.zeros(3), "Three?", name=name)
    assert said in str(failed.value)


def test_what_is_wrong_stands_before_what_only_does_not_count_yet() -> None:
    wrong = Part("by hand", 1.0, CheckFailed("Is it twice x?"), over=True)
    parts = settle([Part("its input stays", 0.5, over=True, side=True), wrong], "double")
    failed = ChecksFailed(parts)
    text = failed.html()
    assert text.index("by hand") < text.index("<details>") < text.index("its input stays")
    assert failed.points() == 0


def test_a_part_of_a_part_is_said_by_both_numbers() -> None:
    with pytest.raises(CheckFailed) as failed:
        assert_equal([1, [2, (3, 4)]], [1, [2, (3, 5)]], "Which?", name="the list")
    assert "Item 1, 1, 1 of the list is 4 and should be 5." in str(failed.value)


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-8, 1e-12])
@pytest.mark.parametrize("size", [0.3, 700.0, 2e6, 3e-5])
def test_a_difference_is_seen_however_small_it_is(gap: float, size: float) -> None:
    want = size * np.array([1.0, 1.2, 1.4])
    got = want * np.array([1.0, 1.0 + gap, 1.0])
    with pytest.raises(CheckFailed) as failed:
        assert_close(got, want, "Each digit.", rtol=gap / 100, atol=0.0)
    yours, expected = re.findall(r"(?:Yours|Expected):\n(.*)", str(failed.value))
    assert yours != expected
    numbers = re.findall(r"at \[1\]: (\S+), expected (\S+)\.", str(failed.value))
    assert numbers and numbers[0][0] != numbers[0][1]
    box = failed.value.html()
    assert box.count("≠") == 1
    cells = re.findall(r"<td[^>]*>([^<]+)<", box)
    assert len(cells) == 6 and cells[0] == cells[3] and cells[1] != cells[4]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"it is even": True, "it is new": False}, "Does not hold: it is new."),
        ({"it is even": False, "it is new": False}, "Does not hold: it is even; it is new."),
    ],
)
def test_facts_that_do_not_hold_are_said_and_no_dictionary(
    found: dict[str, bool], said: str
) -> None:
    with pytest.raises(CheckFailed) as failed:
        assert_equal(found, dict.fromkeys(found, True), "Two facts.")
    assert str(failed.value).endswith(said)
    with pytest.raises(CheckFailed, match=r"True and should be False \(alike\): it is even\."):
        assert_equal({"it is even": True}, {"it is even": False}, "A fact.", name="alike")


@pytest.mark.parametrize(
    ("got", "want", "says"),
    [
        (
            np.array([1, 2]),
            np.array([1, 3]),
            "There are other values in the patches, first at [1].",
        ),
        (["[UNK]"], ["un", "##s"], "The patches: 1 item in place of 2."),
        (["un", "##s"], ["[UNK]"], "The patches: 2 items in place of 1."),
        (
            {"gate": 1, "bias": 2},
            {"gate": 1},
            "The keys of the patches should be others. Too many: bias.",
        ),
    ],
)
def test_what_differs_is_a_sentence_also_where_its_name_is_a_plural(
    got: Any, want: Any, says: str
) -> None:
    with pytest.raises(CheckFailed) as failed:
        assert_equal(got, want, "Cut.", name="the patches")
    assert says in str(failed.value).replace("\n", " ")


RIGHT = "def double(x):\n    return x + x\n"
STUB = "def double(x):\n    raise NotImplementedError()\n"
CHECK = 'assert_equal(double(2), 4, "Two.")\nchecks_passed("double")\n'


#: Cells that run one after another in one kernel, and what the last of them says.
ACCIDENTS = [
    ((CHECK,), "This cell could not run yet.", "run the cell in which you write it"),
    (("answer_size = b",), "This cell could not run yet.", 'quotes: `answer_size = "b"`'),
    (("guess_same = {later}",), "This cell could not run yet.", 'quotes: `"later"`'),
    (
        ("answer_size = b", 'check_answer("answer_size", answer_size)'),
        "This cell could not run yet.",
        "The last cell that defines `answer_size` did not run",
    ),
    (("print(made_later)",), "This cell could not run yet.", "If a cell further up makes it"),
    (("raise KeyboardInterrupt",), "Stopped by hand.", "still there"),
    (
        ("found = 0.2", 'assert found > 0.9, "Three heads learn it."'),
        "A claim does not hold.",
        "Three heads learn it. Line 1 claims: `assert found > 0.9",
    ),
    (
        ("answer_size = None", 'check_answer("answer_size", answer_size)'),
        "not answered",
        "None",
    ),
    ((STUB, CHECK), "double: not written yet.", "is not written yet"),
    ((STUB, "double(3)"), "Not yet.", "`double` is used here and is not written yet"),
]


def test_an_accident_is_no_mistake(student: Callable[..., list[str]]) -> None:
    shown = iter(student(*(cell for cells, *_ in ACCIDENTS for cell in cells)))
    for cells, headline, said in ACCIDENTS:
        *_, last = (next(shown) for _ in cells)
        assert headline in last and said in last
        assert "does not pass" not in last and "Traceback" not in last


@pytest.mark.slow
def test_what_torch_has_not_implemented_is_no_answer_that_is_not_written(
    student: Callable[..., list[str]],
) -> None:
    one, *rest = CHECK.splitlines()
    named = "\n".join(['with check("two", points=1):', f"    {one}", *rest])
    cells, says = ["import torch"], []
    for result, said in (
        ("torch.tensor([x]).softmax(-1)", "torch asks for floating point numbers"),
        ("torch.nn.ModuleList()(x)", "has no `forward`"),
    ):
        cells += [f"def double(x):\n    return {result}\n", CHECK, named]
        says += [said] * 2
    shown = student(*cells)[1:]
    for last, said in zip([text for n, text in enumerate(shown) if n % 3], says, strict=True):
        assert said in last and "does not pass" in last
        assert "not written" not in last and "Not yet" not in last


def test_an_exercise_that_has_not_run_since_the_restart_is_no_mistake_of_what_builds_on_it(
    student: Callable[..., list[str]],
) -> None:
    known = "from pathlib import Path\nimport json\nPath('lesson_data.json').write_text("
    known += "json.dumps({'known_mistakes': {'mistakes': {'double': [], 'quadruple': []}}}))\n"
    builds_on = "def quadruple(x):\n    return 2 * double(x)\n"
    check = 'with check("four", points=1):\n    assert_equal(quadruple(1), 4, "Four.")\n'
    check += 'checks_passed("quadruple")\n'
    _, _, first, _, last = student(known, builds_on, check, RIGHT, check)
    assert "This cell could not run yet." in first
    assert "`double` is used here and is not there yet" in first
    assert "does not pass" not in first and "misspelt" not in first
    assert "these checks pass" in last


def test_what_is_never_used_is_not_said_above_what_was_raised(
    student: Callable[..., list[str]],
) -> None:
    named = CHECK.replace("double(2)", "double(2, 3)").splitlines()
    check = "\n".join(['with check("two", points=1):', f"    {named[0]}", named[1]])
    _, wrong, _, raised = student(
        "def double(x, y):\n    return x\n", check, "def double(x, y):\n    return x.shape\n", check
    )
    assert "`y` is an argument of `double`" in wrong
    assert "has no `shape`" in raised and "`y` is an argument" not in raised


def test_an_error_of_the_students_own_code_elsewhere_looks_as_always(
    student: Callable[..., list[str]],
) -> None:
    *_, last = student("def mine(x):\n    return x + wieghts\n", "mine(1)")
    assert last == "name 'wieghts' is not defined"


def test_a_check_that_was_stopped_by_hand_accuses_nobody(
    student: Callable[..., list[str]],
) -> None:
    """Stopping the check of `double` says nothing of `double` to what builds on it."""
    stopped = "raise KeyboardInterrupt\n" + CHECK
    builds_on = "def quadruple(x):\n    return 3 * double(x)\n"
    check = 'assert_equal(quadruple(3), 12, "Four times.")\nchecks_passed("quadruple")\n'
    *_, last = student(RIGHT, stopped, builds_on, check)
    assert "mend that first" not in last
    assert "Four times." in last


def test_the_line_of_a_loop_says_what_was_noted_and_leaves_it_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, line: object) -> None:
            shown.append(repr(line))

    monkeypatch.setattr(progress, "display", lambda line, display_id: Handle())
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    for step in progress.progress(2, "a copier"):
        progress.note(f"loss {step}.5")
    assert len(shown) == 3
    assert "1/2, loss 0.5, " in shown[0] and "2/2, loss 1.5, " in shown[1]
    assert shown[2] == "a copier: 2 steps done"
