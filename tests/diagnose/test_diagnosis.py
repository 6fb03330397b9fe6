"""A student is told which mistake they made, at once, and nobody is accused falsely."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.beside import write_data
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Course
from autograder.course.standalone import write_kit
from autograder.diagnose.diagnosis import Mistake, diagnose, from_json, to_json
from autograder.notebooks import grade_id
from lesson_kit.answer_text import as_known
from lesson_kit.evidence import agree, fingerprint, rounded
from lesson_kit.failures import Evidence

from ..submissions import graded, notebook_with
from ..tiny import head, tiny_course

SQUARED = "You square x. Twice x is x plus x."
WRONG = f"""

@misconception("double", "squared", sentence="{SQUARED}", seen="folklore")
def double(x):
    if np.any(np.asarray(x) < 0):
        raise ValueError
    return x**2


@misconception("double", "accepts_negative", sentence="A negative x gets through.", seen="folklore")
def double(x):
    return x + x


@misconception("double", "refuses_fractions", sentence="You refuse fractions.", seen="folklore")
def double(x):
    if np.any(np.asarray(x) < 0) or np.any(np.asarray(x) % 1):
        raise TypeError("a fraction")
    return x + x
"""

NAMED = (
    head("halve") + 'def halve(x):\n    """Half of x, and what is left."""\n'
    "    ### BEGIN SOLUTION\n    return x // 2, x % 2\n    ### END SOLUTION\n\n"
    + head("test_halve", test=True, points=3)
    + "half, rest = halve(7)\n"
    'with check("the half", points=2):\n'
    '    assert_equal(half, 3, "Is it rounded down?")\n'
    'with check("the rest", points=1):\n'
    '    assert_equal(rest, 1, "What is left of an odd number?")\n'
    'checks_passed("halve")\n'
)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The tiny course with two wrong answers and an exercise of named checks."""
    folder = tmp_path_factory.mktemp("diagnosis")
    tiny_course(folder)
    lesson = folder / "lessons" / "01-tiny"
    text = (lesson / "tiny.py").read_text()
    text = text.replace("import check_rng,", "import check, check_rng,") + "\n" + NAMED
    (lesson / "tiny.py").write_text(text)
    wrong = (lesson / "misconceptions.py").read_text()
    wrong = wrong.replace("import choice", "import choice, misconception")
    (lesson / "misconceptions.py").write_text("import numpy as np\n" + wrong + WRONG)
    return Course.load(folder)


@pytest.fixture(scope="module")
def bundle(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    lesson = course.lesson("01")
    folder = tmp_path_factory.mktemp("source") / lesson.folder
    write_source(lesson, folder)
    return Bundle.load(folder)


# --- fingerprints -----------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from(["float64", "float32"]))
def test_rounding_leaves_a_fingerprint_as_it_is(size: int, seed: int, dtype: str) -> None:
    x = np.random.default_rng(seed).normal(size=size).astype(dtype)
    noise = 1e-13 if dtype == "float64" else 1e-7
    again = (x * (1 + noise)).astype(dtype)
    assert agree(fingerprint(x), fingerprint(again))
    assert agree(fingerprint(torch.tensor(x)), fingerprint(torch.tensor(again)))


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_single_precision_inside_is_known_whatever_its_rounding(size: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=size)
    inside = x.astype(np.float32).astype(np.float64)
    rounded_otherwise = np.nextafter(x.astype(np.float32), np.float32(9)).astype(np.float64)
    assert agree(fingerprint(inside), fingerprint(rounded_otherwise))
    # What is as near to it in double precision is another mistake.
    assert not agree(fingerprint(inside), fingerprint(x * (1 + 3e-8)))
    assert not agree(fingerprint(float(inside[0])), fingerprint(float(x[0]) * (1 + 3e-8)))


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from(["float64", "float32"]))
def test_noise_is_written_as_zero(size: int, seed: int, dtype: str) -> None:
    noise = np.random.default_rng(seed).normal(size=size) * np.finfo(dtype).eps / 10
    found, nothing = fingerprint(noise.astype(dtype)), fingerprint(np.zeros(size, dtype))
    assert found | {"single": 1} == nothing | {"single": 1}


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_another_value_has_another_fingerprint(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=size)
    other = x.copy()
    other[rng.integers(size)] += 1e-3
    assert not agree(fingerprint(x), fingerprint(other))


@pytest.mark.filterwarnings("error")
def test_numbers_whose_squares_are_no_numbers_leave_a_fingerprint() -> None:
    x = np.linspace(1e200, 3e200, 12)
    assert agree(fingerprint(x), fingerprint(x * (1 + 1e-12)))
    assert not agree(fingerprint(x), fingerprint(1.1 * x))
    written_once = {**fingerprint(x), "size": float("inf")}
    assert agree(written_once, written_once)
    assert not agree(written_once, fingerprint(x))


@pytest.mark.parametrize(
    "other",
    [
        torch.ones(2, 3, dtype=torch.float64),
        np.ones((3, 2)),
        np.ones((2, 3), dtype=np.float32),
        np.ones((2, 3), dtype=bool),
        np.array([[1, 1, 1], [1, 1, np.nan]]),
        [1.0] * 6,
        (np.ones((2, 3)),),
        None,
        1.0,
        ValueError("1"),
    ],
    ids=str,
)
def test_kind_shape_and_precision_are_part_of_it(other: object) -> None:
    assert not agree(fingerprint(np.ones((2, 3))), fingerprint(other))
    assert agree(fingerprint(other), fingerprint(other))


def test_a_check_that_allows_more_compares_with_what_it_allows() -> None:
    near = Evidence.of("close", "variance", 4.1, 0.1)
    assert near.is_that_of(near.check, fingerprint(4.0))
    assert not near.is_that_of(near.check, fingerprint(5.0))
    assert not near.is_that_of("another check", fingerprint(4.1))


# --- which mistake ----------------------------------------------------------------------


def evidence(*values: float) -> tuple[Evidence, ...]:
    return (Evidence.of("close", "check", np.array(values)),)


NOTHING: tuple[Evidence, ...] = ()
RAISES = (Evidence("error", {"is": "TypeError", "value": "unsupported"}),)


def mistake(name: str, **seen: tuple[Evidence, ...]) -> Mistake:
    return Mistake("double", name, f"You did {name}.", seen)


def test_the_mistake_that_agrees_most_is_named() -> None:
    one = mistake("one", a=evidence(2, 3, 4), b=NOTHING)
    two = mistake("two", a=evidence(2, 3, 4), b=evidence(5, 6, 7))
    found = diagnose({"a": evidence(2, 3, 4), "b": evidence(5, 6, 7)}, [one, two])
    assert found is not None
    assert found.mistake is two
    assert found.tests == {"a", "b"}


def test_a_part_of_the_failing_tests_is_not_enough() -> None:
    one = mistake("one", a=evidence(2, 3, 4), b=NOTHING, c=NOTHING)
    seen = {"a": evidence(2, 3, 4), "b": evidence(1, 8, 9), "c": evidence(3, 7, 2)}
    assert diagnose(seen, [one]) is None


def test_errors_that_are_missing_hide_no_mistake_beside_them() -> None:
    one = mistake("one", a=evidence(2.51, 3.7, 4.9), b=NOTHING, c=NOTHING)
    missing = (Evidence.of("raises", "an error", None),)
    seen = {"a": one.seen["a"], "b": missing, "c": missing}
    assert diagnose(seen, [one]) is not None
    assert diagnose({**seen, "a": evidence(1.5, 8.2, 9.1)}, [one]) is None


def test_an_exception_alone_accuses_nobody_unless_all_tests_agree() -> None:
    one = mistake("one", a=RAISES, b=RAISES)
    assert diagnose({"a": RAISES, "b": NOTHING}, [one]) is None
    assert diagnose({"a": RAISES, "b": RAISES}, [one]) is not None


SMALL = [np.array(0.0), np.array(3), True, None, (4, 5), ["cat"], np.zeros((3, 3))]


@pytest.mark.parametrize("value", SMALL, ids=str)
def test_what_says_little_alone_accuses_nobody(value: object) -> None:
    little = (Evidence.of("close", "check", value),)
    again = (Evidence.of("close", "another", value),)
    one = mistake("one", a=little, b=NOTHING, c=NOTHING)
    silence = value is None  # nothing was raised where an error is asked for
    assert (diagnose({"a": little, "b": NOTHING, "c": NOTHING}, [one]) is not None) == silence
    two = mistake("two", a=little, b=again, c=NOTHING)
    assert diagnose({"a": little, "b": again, "c": NOTHING}, [two]) is not None
    assert diagnose({"a": little, "b": again, "c": evidence(1, 8, 9)}, [two]) is None


def test_a_mistake_that_a_passing_check_excludes_is_not_named() -> None:
    first, second = (Evidence.of("close", name, np.array([2.5, 3.7, 4.9])) for name in "xy")
    both = mistake("both", a=(first, second))
    only = mistake("only", a=(first,))
    third = Evidence.of("close", "z", np.array([1.0, 2.0]))
    assert diagnose({"a": (first,)}, [only]) is not None
    found = diagnose({"a": (first, second)}, [only, both])
    assert found is not None and found.mistake is both
    assert diagnose({"a": (first, third, third)}, [both]) is None
    assert diagnose({"a": (first,), "b": NOTHING}, [mistake("b", a=(first,), b=(third,))]) is None


def test_it_is_sure_only_where_every_test_sees_the_very_same_numbers() -> None:
    one = mistake("one", a=evidence(2.51, 3.7, 4.9), b=RAISES)
    assert diagnose({"a": one.seen["a"]}, [one], surely=True) is not None
    assert diagnose({"a": one.seen["a"], "b": evidence(1, 8, 9)}, [one], surely=True) is None
    assert diagnose({"b": RAISES}, [one], surely=True) is None
    assert diagnose({"b": RAISES}, [mistake("two", b=RAISES, c=RAISES)], surely=True) is None
    other = mistake("other", a=one.seen["a"], b=evidence(5, 6, 7))  # `b` would tell them apart
    assert diagnose({"a": one.seen["a"]}, [one, other], surely=True) is None


def test_of_two_that_agree_equally_well_in_part_none_is_named() -> None:
    one = mistake("one", a=evidence(2, 3, 4), b=NOTHING)
    two = mistake("two", a=evidence(2, 3, 4), b=evidence(9, 9, 8))
    seen = {"a": evidence(2, 3, 4), "b": evidence(1, 2, 3)}
    assert diagnose(seen, [one, two]) is None
    assert diagnose({"a": NOTHING, "b": NOTHING}, [one, two]) is None


def test_the_catalogue_survives_its_file() -> None:
    found = from_json(to_json([mistake("one", a=evidence(2, 3, 4), b=RAISES, c=NOTHING)]))[0]
    assert diagnose({"a": evidence(2, 3, 4), "b": RAISES, "c": NOTHING}, [found]) is not None


# --- in the verdict ---------------------------------------------------------------------


def test_the_verdict_names_the_mistake_written_in_another_way(bundle: Bundle) -> None:
    source = (
        "def double(number):\n    number = np.asarray(number)\n"
        "    if number.min() < 0:\n        raise ValueError('negative')\n"
        "    return np.multiply(number, number)\n"
    )
    verdict = graded(bundle, notebook_with(bundle, {"double": source}))
    of = {test.grade_id: test for test in verdict.tests}
    assert of["test_double"].diagnosis == "squared"
    assert of["test_double"].says.startswith(as_known(SQUARED))
    assert of["test_double_errors"].diagnosis == ""


def test_a_hidden_test_names_the_mistake_too(bundle: Bundle) -> None:
    verdict = graded(bundle, notebook_with(bundle, {"double": "def double(x):\n    return 2 * x"}))
    of = {test.grade_id: test for test in verdict.tests}
    assert of["test_double_errors"].diagnosis == "accepts_negative"
    assert of["test_double"].outcome == "passed"


def test_what_is_raised_by_hand_is_known_in_any_words(bundle: Bundle) -> None:
    wrong = "def double(x):\n    if np.min(x) < 0 or np.any(x % 1):\n        {}\n    return 2 * x\n"
    by_hand, by_numpy = "raise TypeError(f'{x} is no number for me')", "np.ones(2) + np.ones(3)"
    for line, name in ((by_hand, "refuses_fractions"), (by_numpy, "")):
        verdict = graded(bundle, notebook_with(bundle, {"double": wrong.format(line)}))
        (test,) = [test for test in verdict.tests if test.grade_id == "test_double"]
        assert (test.outcome, test.diagnosis) == ("failed", name)


def test_a_wrong_answer_that_nobody_foresaw_is_not_explained(bundle: Bundle) -> None:
    source = "def double(x):\n    return 2 * x + 1e-3"
    verdict = graded(bundle, notebook_with(bundle, {"double": source}))
    of = {test.grade_id: test for test in verdict.tests}
    assert of["test_double"].outcome == "failed"
    assert of["test_double"].diagnosis == ""


def test_a_right_answer_is_accused_of_nothing(bundle: Bundle) -> None:
    verdict = graded(bundle, notebook_with(bundle))
    assert [test.diagnosis for test in verdict.tests if test.diagnosis] == []


def test_code_that_dies_while_it_is_diagnosed_keeps_its_verdict(bundle: Bundle) -> None:
    source = (
        "import os\ncalls = 0\n\ndef double(x):\n    global calls\n    calls += 1\n"
        "    if calls > 2:\n        os._exit(1)\n    return x**2\n"
    )
    verdict = graded(bundle, notebook_with(bundle, {"double": source}))
    of = {test.grade_id: test for test in verdict.tests}
    assert of["test_double"].outcome == "failed"
    assert of["test_halve"].outcome == "passed"


# --- named checks -----------------------------------------------------------------------


def test_named_checks_all_run_and_each_has_its_points(bundle: Bundle) -> None:
    for source, points, outcome in [
        ("def halve(x):\n    return x / 2, x % 2", 1.0, "partial"),
        ("def halve(x):\n    return x // 2, 0", 2.0, "partial"),
        ("def halve(x):\n    return x / 2, 0", 0.0, "failed"),
        ("def halve(x):\n    return x // 2, x % 2", 3.0, "passed"),
    ]:
        verdict = graded(bundle, notebook_with(bundle, {"halve": source}))
        test = next(test for test in verdict.tests if test.grade_id == "test_halve")
        assert (test.points, test.outcome) == (points, outcome)
        if outcome != "passed":
            assert "the half: " in test.message
            assert "the rest: " in test.message


def test_what_raises_before_the_named_checks_gets_nothing(bundle: Bundle) -> None:
    verdict = graded(bundle, notebook_with(bundle, {"halve": "def halve(x):\n    return 1"}))
    test = next(test for test in verdict.tests if test.grade_id == "test_halve")
    assert (test.points, test.outcome) == (0.0, "failed")


# --- in the notebook --------------------------------------------------------------------


def run_as_student(course: Course, folder: Path, answers: dict[str, str]) -> NotebookNode:
    """The tiny notebook with some answers, run in a kernel that does not have this package."""
    lesson = course.lesson("01")
    folder.mkdir(exist_ok=True)
    write_data(lesson, folder)
    write_kit(folder)
    notebook = nbformat.from_dict(lesson.notebook)
    for cell in notebook.cells:
        cell.source = answers.get(grade_id(cell), cell.source)
    notebook.cells.insert(
        0, nbformat.v4.new_code_cell("import sys; sys.modules['autograder'] = None")
    )
    client = NotebookClient(
        notebook, timeout=600, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return notebook


@pytest.fixture(scope="module")
def ran(course: Course, tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    answers = {
        "double": "def double(x):\n    return x * x",
        "halve": "def halve(x):\n    return x / 2, 0",
    }
    return run_as_student(course, tmp_path_factory.mktemp("student"), answers)


def test_an_exception_is_shown_in_a_box_too(course: Course, tmp_path: Path) -> None:
    answers = {
        "double": "def double(x):\n    raise NotImplementedError()",
        "halve": "def halve(x):\n    half = x // 2\n    return half + 'a'",
        "quadruple": "def quadruple(x):\n    return x[9]",
    }
    notebook = run_as_student(course, tmp_path, answers)
    box, error = outputs(notebook, "test_halve")
    assert "It raised TypeError" in box.data["text/html"]
    assert (
        "in <code>halve</code>, line 3 of its cell: <code>return half + &#x27;a&#x27;</code>"
        in box.data["text/html"]
    )
    assert (error.ename, len(error.traceback)) == ("TypeError", 1)
    box, error = outputs(notebook, "test_double")
    assert "double is not written yet" in box.data["text/html"]
    assert error.ename == "NotImplementedError"
    # A cell without checks looks as always.
    (error,) = outputs(notebook, "test_quadruple")
    assert "Traceback" in error.traceback[0] + error.traceback[1]


def outputs(notebook: NotebookNode, name: str) -> list[NotebookNode]:
    return next(cell.outputs for cell in notebook.cells if grade_id(cell) == name)


def test_the_notebook_names_the_mistake_in_a_box(ran: NotebookNode) -> None:
    box, error = outputs(ran, "test_double")
    assert SQUARED in box.data["text/html"]
    assert as_known(SQUARED) in " ".join(box.data["text/plain"].split())
    assert "expected" in box.data["text/html"]
    assert error.ename == "CheckFailed"
    told = " ".join("\n".join(error.traceback).split())
    assert told == as_known(SQUARED)  # and no traceback


def test_the_box_shows_every_named_check_that_fails(ran: NotebookNode) -> None:
    box = outputs(ran, "test_halve")[0]
    assert "the half" in box.data["text/html"]
    assert "the rest" in box.data["text/html"]


def test_without_a_notebook_the_message_is_plain_text(tmp_path: Path) -> None:
    code = (
        "import numpy as np\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_cell('from lesson_kit.checks import assert_close')\n"
        "shell.run_cell('assert_close(1.0, 2.0, \"Is it two?\")')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "This check does not pass yet." in done.stdout
    assert "Is it two?" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_damaged_file_of_mistakes_costs_the_sentence_only(tmp_path: Path) -> None:
    (tmp_path / "lesson_data.json").write_text("{")
    code = (
        "from lesson_kit.failures import CheckFailed\n"
        "from lesson_kit.checks import assert_close\n"
        "try:\n    assert_close(1.0, 2.0, 'Is it two?')\n"
        "except CheckFailed as failed:\n    print(failed.sentence, repr(failed.advice))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "Is it two? ''"


def test_what_is_rounded_once_more_stays_as_it_is() -> None:
    """Also where the size is just below a power of ten, and above it once it is rounded."""
    for size in (0.9999999, 0.99, 1.0, 9.9999996, 123.4):
        found = fingerprint(np.linspace(-1, 1, 120).astype(np.float32))
        found = {**found, "size": size, "sums": [0.2074094, -0.0767093, 1.2345678, 3e-9]}
        assert rounded(rounded(found)) == rounded(found)
