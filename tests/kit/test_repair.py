"""Where one small change mends an answer, its line is named; and nothing else is said."""

from __future__ import annotations

import ast
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.diagnose.diagnosis import DIAGNOSIS_SEED
from autograder.grade import failed_exercises
from lesson_kit import advice as advice_module
from lesson_kit import checks, repair, setting
from lesson_kit.advice import in_this_notebook
from lesson_kit.failures import begin_cell
from lesson_kit.repair import nearest_repair
from lesson_kit.setting import as_grader

from ..submissions import SEED, graded, notebook_with
from ..tiny import tiny_course

X = np.arange(1.0, 31.0).reshape(2, 3, 5) ** 2


def passes_for(expected: Callable[[Any], Any]) -> Callable[[ast.Module], bool]:
    def passes(tree: ast.Module) -> bool:
        namespace: dict[str, Any] = {"np": np}
        try:
            exec(compile(tree, "<answer>", "exec"), namespace)
            got = namespace["f"](X.copy())
            return bool(np.shape(got) == np.shape(expected(X)) and np.allclose(got, expected(X)))
        except Exception:
            return False

    return passes


def softly(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("wrong", "expected", "line", "kind"),
    [
        ("return x.mean(axis=1)", lambda x: x.mean(axis=-1), 2, "axis"),
        ("n = x.shape[1]\n    return x.sum(-1) / n", lambda x: x.mean(-1), 2, "axis"),
        ("return x @ x.T", lambda x: x @ x.swapaxes(-1, -2), 2, "transposed"),
        ("return x @ x", lambda x: x @ x.swapaxes(-1, -2), 2, "transposed"),
        ("return x.min(-1)", lambda x: x.max(-1), 2, "function"),
        ("return np.cos(x)", np.sin, 2, "function"),
        ("return x[max(x.ndim - 3, 1)]", lambda x: x[0], 2, "changed: a number,"),
        ("return np.max(x - 90)", lambda x: np.abs(x - 90).max(), 2, "sign"),
        ("return x / x.shape[-1]", lambda x: x / x.shape[-1] ** 0.5, 2, "root"),
        ("i = np.arange(5)\n    return x + i / 5", lambda x: x + 2 * np.arange(5) / 5, 3, "number"),
        ("y = x * x\n    return x + 1", lambda x: x * x + 1, 3, "variable"),
        (
            "M = np.zeros((4, 4))\n    for i in range(2):\n        M[i : i + 2, i : i + 2] = 1\n"
            "    return M",
            lambda x: np.kron(np.eye(2), np.ones((2, 2))),
            4,
            "number",
        ),
        ("a, b = x + 1, x + 2\n    return a + a * x", lambda x: x + 1 + (x + 2) * x, 3, "variable"),
        ("return x.swapaxes(0, 1)", lambda x: x.swapaxes(-1, -2), 2, "axis"),
        ("return 1 - x", lambda x: x - 1, 2, "order"),
        ("x = x - x.mean()\n    return x", lambda x: x - x.mean(axis=-1, keepdims=True), 2, "axis"),
        (
            "p = np.exp(x - x.max(axis=-1, keepdims=True))\n    return p / p.sum(axis=-1)",
            softly,
            3,
            "kept",
        ),
    ],
)
def test_the_line_and_the_kind_of_a_small_mistake_are_named(
    wrong: str, expected: Callable[[Any], Any], line: int, kind: str
) -> None:
    said = nearest_repair(f"def f(x):\n    {wrong}\n", passes_for(expected), 20)
    assert f"Look at line {line} " in said, said
    assert kind in said, said


@pytest.mark.parametrize(
    "wrong",
    [
        "return x * 3 + np.sin(x)",  # far from right
        "import os\n    return x.sum(axis=0)",  # touches more than numbers
        "return x.sum(axis=",  # no Python
    ],
)
def test_nothing_is_said_where_no_single_change_mends_it(wrong: str) -> None:
    expected: Callable[[Any], Any] = lambda x: x.sum(axis=-1)  # noqa: E731
    assert nearest_repair(f"def f(x):\n    {wrong}\n", passes_for(expected), 2) == ""


@pytest.mark.parametrize("sizes", ["n, block = x.shape[-1], 3", "n = x.shape[-1]\n    block = 3"])
def test_the_size_of_a_block_is_not_what_is_wrong_between_two_blocks(sizes: str) -> None:
    wrong = (
        f"def f(x):\n    {sizes}\n    out, last = np.zeros(x.shape), 0\n"
        "    for start in range(0, n, block):\n        of_block = x[..., start : start + block]\n"
        "        out[..., start : start + block] = np.cumsum(of_block, axis=-1) + last\n"
        "        last = np.sum(of_block, axis=-1, keepdims=True) ** 1.01\n    return out\n"
    )
    in_one = wrong.replace("3", "6", 1)
    assert passes_for(lambda x: np.cumsum(x, axis=-1))(ast.parse(in_one))
    said = nearest_repair(wrong, passes_for(lambda x: np.cumsum(x, axis=-1)), 20)
    assert "** 1.01`" in said, said


@pytest.mark.parametrize(
    ("step", "named"), [("rng.normal(size=(900, 3))", False), ("np.sin(x)", True)]
)
def test_what_is_drawn_is_no_place_of_a_repair(step: str, named: bool) -> None:
    wrong = (
        f"def f(x):\n    rng = np.random.default_rng(0)\n    y = 2 * {step}\n    return y.std()\n"
    )
    right: Callable[[Any], Any] = (  # noqa: E731
        lambda x: np.sin(x).std() if named else np.random.default_rng(0).normal(size=(900, 3)).std()
    )
    said = nearest_repair(wrong, passes_for(right), 20)
    assert ("Look at line 3" in said) == named, said


@pytest.mark.parametrize(
    "test", ["far > 1e-4", "not np.allclose(far, 0, rtol=0, atol=1e-4)", "far > most"]
)
def test_a_smaller_tolerance_is_no_repair(test: str) -> None:
    """The difference that it sees is one of rounding; what is wrong is what is compared."""

    def passes(tree: ast.Module) -> bool:
        namespace: dict[str, Any] = {"np": np}
        try:
            exec(compile(tree, "<answer>", "exec"), namespace)
            return [bool(namespace["f"](far)) for far in (1e-9, 0.0)] == [True, False]
        except Exception:
            return False

    wrong = f"def f(far):\n    most = 1e-4\n    return {test}\n"
    assert passes(ast.parse(wrong.replace("1e-4", "0.0")))
    assert nearest_repair(wrong, passes, 20) == ""


@pytest.mark.parametrize(("most", "said"), [("1024", ""), ("4", "Look at line 2")])
def test_a_larger_limit_is_no_repair(most: str, said: str) -> None:
    """With a table of twice the size, say, longer inputs than those that were tried still fail."""
    wrong = f"def f(x):\n    most = {most}\n    return np.resize(x, most)\n"
    passes = passes_for(lambda x: np.resize(x, 2 * int(most)))
    assert passes(ast.parse(wrong.replace(most, str(2 * int(most)))))
    assert nearest_repair(wrong, passes, 20).startswith(said)
    assert bool(nearest_repair(wrong, passes, 20)) == bool(said)


def test_whether_something_is_kept_is_no_place_of_a_repair() -> None:
    """With a result that is never looked up the wrong name of the one that was kept is not seen."""

    def passes(tree: ast.Module) -> bool:
        namespace: dict[str, Any] = {}
        try:
            exec(compile(tree, "<answer>", "exec"), namespace)
            return [namespace["f"](3, by) for by in (2, 5)] == [6, 15]
        except Exception:
            return False

    wrong = (
        "kept = {}\ndef f(x, by):\n    if x not in kept:\n        kept[x] = x * by\n"
        "    return kept[x]\n"
    )
    assert passes(ast.parse(wrong.replace("x not in", "by not in")))
    assert nearest_repair(wrong, passes, 20) == ""


def test_two_steps_of_one_thing_are_not_exchanged() -> None:
    """In the other order the first of them may do nothing any more, and what is wrong stays."""
    wrong = (
        "def f(x):\n    y = x / x.sum()\n    y = y**2\n    y = np.tanh(y)\n    return y / y.sum()\n"
    )
    lines = wrong.splitlines(keepends=True)
    exchanged = "".join([*lines[:2], lines[3], lines[2], lines[4]])

    def right(x: Any) -> Any:
        squared = np.tanh(x / x.sum()) ** 2
        return squared / squared.sum()

    assert passes_for(right)(ast.parse(exchanged))
    assert nearest_repair(wrong, passes_for(right), 20) == ""


def test_changes_in_two_lines_that_mend_it_alike_are_not_guessed_between() -> None:
    wrong = "def f(x):\n    y = x + 1\n    return y + 1\n"
    assert nearest_repair(wrong, passes_for(lambda x: x + 1), 20) == ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("a_look", "said"), [(0.001, True), (0.05, False)])
def test_a_line_is_named_where_enough_was_tried_elsewhere(a_look: float, said: bool) -> None:
    wrong = (
        "def f(x):\n    y = np.exp(x / 900 - 1)\n    z = np.sqrt(y + 2) * 3\n"
        "    z = z - z.min() + y / 7\n    return z.mean(axis=1)\n"
    )

    def expected(x: Any) -> Any:
        y = np.exp(x / 900 - 1)
        z = np.sqrt(y + 2) * 3
        return (z - z.min() + y / 7).mean(axis=-1)

    ticks = itertools.count()  # each look at the clock takes so long
    found = nearest_repair(wrong, passes_for(expected), 20.0, clock=lambda: next(ticks) * a_look)
    assert ("Look at line 5" in found) == said


@pytest.mark.parametrize("elsewhere", [0, 7, 40])
def test_so_many_changes_are_tried_elsewhere_and_no_more(elsewhere: int) -> None:
    wrong = "def f(x):\n    y = x * 3 - 1\n    z = (y + 2) * 5 - y / 7\n    return z.mean(axis=1)\n"
    right = wrong.replace("axis=1", "axis=-1")
    tried: list[bool] = []

    def passes(tree: ast.Module) -> bool:
        tried.append(ast.unparse(tree).strip() == right.strip())
        return tried[-1]

    said = nearest_repair(wrong, passes, 20, elsewhere=elsewhere, clock=lambda: 0.0)
    assert "Look at line 4" in said
    afterwards = len(tried) - 1 - tried.index(True)
    assert elsewhere - 3 <= afterwards <= elsewhere  # one that drops an argument is not even tried


def test_what_kind_of_thing_is_asked_for_is_left_as_it_is() -> None:
    wrong = (
        "def f(x):\n    kind = np.result_type(x, np.float32)\n"
        "    if not np.issubdtype(kind, np.floating):\n        kind = np.float64\n"
        "    return x.astype(kind)\n"
    )
    seen: list[str] = []

    def passes(tree: ast.Module) -> bool:
        seen.append(ast.unparse(tree))
        return False

    nearest_repair(wrong, passes, 20)
    assert seen and all("np.issubdtype(kind, np.floating)" in text for text in seen)


def test_a_change_that_only_covers_the_mistake_up_is_not_named() -> None:
    """The length is kept from below by 1: a longer vector hides it, and line 2 is right."""
    wrong = (
        "def f(x):\n    y = x[..., :2, :].sum(-2) / 4000\n"
        "    return y / np.linalg.norm(y, axis=-1, keepdims=True).clip(min=1.0)\n"
    )

    def expected(x: Any) -> Any:
        total = x[..., :2, :].sum(-2)
        return total / np.linalg.norm(total, axis=-1, keepdims=True)

    ticks = itertools.count()  # each look at the clock takes a fiftieth of a second
    said = nearest_repair(wrong, passes_for(expected), 10.0, clock=lambda: next(ticks) / 50)
    assert "line 2" not in said


def test_the_source_is_as_it_was_after_every_change() -> None:
    seen: list[str] = []

    def passes(tree: ast.Module) -> bool:
        seen.append(ast.unparse(tree))
        return False

    source = "def f(x, y):\n    return -x.sum(axis=0) @ y.T / x.shape[1]"
    nearest_repair(source, passes, 20)
    assert len(set(seen)) > 20
    # One change each: no other tries the change before it as well.
    one_change = {text for text in seen if "axis=-1" in text}
    assert len(one_change) == 1


def test_a_change_that_never_ends_or_takes_all_memory_ends_with_its_copy() -> None:
    answer = (
        "def f(n):\n    i = 0\n    while i < n:\n        i = i + 1\n"
        "    return len([0] * (2 * n)) and i\n"
    )
    names: dict[str, Any] = {"kept": 1}
    started = time.monotonic()
    in_this_notebook(answer, "assert f(10**9) == 3", names, begin_cell, seconds=1.2)
    assert time.monotonic() - started < 30  # hangs otherwise
    assert names == {"kept": 1}


def test_what_is_asked_otherwise_and_does_not_end_costs_no_repair() -> None:
    def otherwise(_: object) -> str:
        while True:
            pass

    answer = "def f(x):\n    return x - 2\n"
    said = in_this_notebook(
        answer, "assert f(1) == 3", {}, begin_cell, seconds=20, otherwise=otherwise
    )
    assert "Look at line 2 of your cell" in said


@pytest.mark.parametrize(("a_try", "most"), [(0.5, 2), (0.3, 2), (0.01, 200)])
def test_a_search_that_is_too_slow_to_say_anything_ends_soon(a_try: float, most: int) -> None:
    tried: list[object] = []
    wrong = "def f(x):\n" + "".join(f"    x = x + {n}\n" for n in range(40)) + "    return x\n"

    def passes(tree: ast.Module) -> bool:
        tried.append(tree)
        return False

    assert nearest_repair(wrong, passes, 2.0, clock=lambda: len(tried) * a_try) == ""
    assert most - 1 <= len(tried) <= most + 1


@pytest.mark.slow
def test_a_search_that_does_not_end_costs_only_itself() -> None:
    answer = "def f(x):\n    import time\n    time.sleep(0 * x)\n    return 7\n"
    said = in_this_notebook(
        answer, "assert f(10**6) == 3", {}, begin_cell, seconds=3, otherwise=lambda _: "Seen."
    )
    assert said == "Seen."


def test_a_change_that_fits_what_an_answer_wrote_over_is_no_repair() -> None:
    # The numbers that it is compared with are those that it wrote.
    answer = "def f(x):\n    x += 1\n    return x + 1\n"
    check = "import numpy as np\nx = np.ones(3)\nassert (f(x) == x).all()\n"
    for settled in ("", "It writes."):
        said = in_this_notebook(
            answer,
            check,
            {},
            begin_cell,
            seconds=20,
            otherwise=lambda _: "It writes.",
            settled=settled,
        )
        assert ("Look at line" in said) == (not settled)
        assert said == "It writes." or not settled


def test_two_lines_in_the_wrong_order_are_a_small_change() -> None:
    answer = "def f(x):\n    y = x + 1\n    x = x * 3\n    y = y * x\n    x = x + 1\n    return y\n"
    check = "assert f(1) == 8 and f(2) == 21 and f(5) == 96\n"
    said = in_this_notebook(answer, check, {}, begin_cell, seconds=20)
    assert "Look at line 4 of your cell" in said
    assert "the order of two lines" in said


def test_a_repair_that_passes_on_one_set_of_inputs_only_is_none() -> None:
    answer = "def f(x):\n    return x - 2\n"
    check = (
        "from lesson_kit import setting\n"
        "assert f(1) == (3 if setting.now.seed == 2017 else {other})\n"
    )
    for other, found in ((3, True), (4, False)):
        said = in_this_notebook(answer, check.format(other=other), {}, begin_cell, seconds=20)
        assert ("Look at line 2" in said) == found


def test_a_repair_that_passes_on_one_set_of_inputs_only_is_none_when_graded(
    tmp_path: Path,
) -> None:
    lesson = tiny_course(tmp_path).lesson("01")
    folder = tmp_path / "source"
    write_source(lesson, folder)
    bundle = Bundle.load(folder)
    # Right for the numbers of one seed: those of the known mistakes' or those of the class.
    wrong = (
        "def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise ValueError\n"
        "    return 3 * x if round(float(np.sum(x)), 6) == {luck} else 3 * x - x * 2\n"
    )
    for seed in (DIAGNOSIS_SEED, SEED):
        with as_grader(seed, "{}"):
            luck = round(float(checks.check_rng().uniform(size=3).sum()), 6)
        verdict = graded(
            bundle, notebook_with(bundle, {"double": wrong.format(luck=luck)}), seed=SEED
        )
        of = {test.grade_id: test for test in verdict.tests}
        assert of["test_double"].points == 0
        assert "Look at line" not in of["test_double"].says


def test_a_notebook_names_the_line(student: Callable[..., list[str]]) -> None:
    wrong = "def double(x):\n    y = x + x\n    return x\n"
    check = 'assert_equal(double(2), 4, "Two.")\nchecks_passed("double")\n'
    *_, said, kept = student(wrong, check, "print(double(5), sorted(globals())[:0])")
    assert "Look at line 3 of your cell, `return x`" in said
    assert "which variable stands there" in said
    assert kept == "5 []"


def test_the_verdict_names_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "LOOK_ON", 30.0)  # as much as it takes, on a busy machine too
    for name in ("REPAIRS_OF_AN_EXERCISE", "REPAIRS_OF_A_NOTEBOOK", "SECONDS_OF_A_REPAIR"):
        monkeypatch.setattr(failed_exercises, name, 60.0)
    lesson = tiny_course(tmp_path).lesson("01")
    folder = tmp_path / "source"
    write_source(lesson, folder)
    bundle = Bundle.load(folder)
    wrong = (
        "def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise ValueError\n"
        "    return x - 2\n"
    )
    right = "def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise ValueError\n    "
    verdict = graded(bundle, notebook_with(bundle, {"double": wrong.replace("x - 2", "x ** 2")}))
    of = {test.grade_id: test for test in verdict.tests}
    assert of["test_double"].says.startswith("Look at line 4 of your cell, `return x ** 2`")
    assert of["test_double"].points == 0
    again = graded(bundle, notebook_with(bundle, {"double": f"{right}return 2 * x\n"}))
    assert again.score == bundle.max_score


@pytest.mark.parametrize("taken", [0.0, 0.1, 0.39])
def test_the_search_gets_what_the_check_left_of_the_time(
    taken: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def search(*args: Any, seconds: float, **more: Any) -> str:
        given.append(seconds)
        return ""

    monkeypatch.setattr(advice_module, "source_of", lambda name: "def f(): pass")
    monkeypatch.setattr(advice_module, "source_of_cell", lambda: "f()")
    monkeypatch.setattr(advice_module, "seconds_of_cell", lambda: taken)
    monkeypatch.setattr(advice_module, "in_this_notebook", search)
    monkeypatch.setattr(advice_module.setting.now, "advice", True)
    advice_module.advice("f", (), begin_cell, list)
    assert len(given) == 1
    assert taken + given[0] < advice_module.ANSWERS_WITHIN == 1.5


def test_a_change_that_drops_an_argument_is_no_repair() -> None:
    wrong = "def f(n, d):\n    return 3 * n - d\n"
    expected = {"with": "3 * n + d", "without": "3 * n"}

    def passes_as(right: str) -> Callable[[ast.Module], bool]:
        def passes(tree: ast.Module) -> bool:
            namespace: dict[str, Any] = {}
            exec(compile(tree, "<answer>", "exec"), namespace)
            try:
                return bool(namespace["f"](4, 7) == eval(right, {"n": 4, "d": 7}))
            except Exception:
                return False

        return passes

    assert "line 2" in nearest_repair(wrong, passes_as(expected["with"]), 5)
    assert nearest_repair(wrong, passes_as(expected["without"]), 5) == ""


def test_in_haste_a_cell_of_named_checks_ends_at_the_first_that_fails() -> None:
    ran: list[str] = []

    def cell() -> None:
        for name in ("one", "two"):
            with checks.check(name, points=1):
                ran.append(name)
                checks.assert_equal(1, 2, "Two.")
        checks.checks_passed("f")

    with setting.in_haste(), pytest.raises(checks.CheckFailed):
        cell()
    assert ran == ["one"]
    ran.clear()
    begin_cell()
    with pytest.raises(checks.CheckFailed):
        cell()
    assert ran == ["one", "two"]
    assert not setting.now.hasty


@pytest.mark.parametrize(
    "wrong",
    [
        "if x.ndim == 3:\n        return x.mean(0)\n    return x.mean(-1)",
        "return x.mean(0) if x.ndim == 3 else x.mean(-1)",
    ],
)
def test_of_a_condition_is_said_that_the_mistake_may_hang_on_it(wrong: str) -> None:
    """Another condition goes round the mistake below it as well."""

    def expected(x: Any) -> Any:
        return x.mean(-1)

    def passes(tree: ast.Module) -> bool:
        # A mean over axis 0 of what has three axes is no small change away: both are tried.
        kept = "x.mean(0)" in ast.unparse(tree)
        return kept and passes_for(expected)(tree)

    said = nearest_repair(f"def f(x):\n    {wrong}\n", passes, 20)
    assert said.startswith("Look at line 2 of your cell, `")
    assert "and at what is done where its condition holds, or does not" in said
    assert "What was changed" not in said
