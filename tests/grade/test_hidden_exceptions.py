"""Feedback on a hidden test tells an exception's text only where it can hold no input."""

from __future__ import annotations

import linecache
import operator
import random
import re
import time
from typing import Any

import numpy as np
import pytest
import torch

from autograder.box import inside
from autograder.box.box import BoxError
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.grade.exception_forms import TYPES
from autograder.grade.hidden_exceptions import SIGNS, let_through, number
from autograder.grade.limits import MAX_TOLD_BITS
from autograder.grade.telling import Telling
from lesson_kit.exceptions import REFUSED

from ..submissions import graded, notebook_with
from ..tiny import LESSON, tiny_course

OWN = "def double(x):\n    wieghts = x @ x.T\n    return weights.nun\n"
LINE = "wieghts = x @ x.T"


def raised(make: object) -> Exception:
    try:
        make()  # type: ignore[operator]
    except Exception as error:
        return error
    raise AssertionError


def changed_in_place() -> None:
    start = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    total = torch.zeros(3, 2, dtype=torch.float64)
    sums = []
    for row in start:
        total += row * start
        sums.append((total * start).sum())
    sum(sums).backward()  # type: ignore[union-attr]


def told(kind: str, text: str, line: str = LINE, own: str = OWN, *, below: bool = False) -> str:
    """What is told of an exception in the only hidden test of a submission."""
    return " ".join(Telling([own], 1).of(BoxError((kind,), text, False, line, below)))


REAL = [
    changed_in_place,
    lambda: np.ones((2, 3)) @ np.ones((4, 5)),
    lambda: np.ones((2, 3)) + np.ones((4, 5)),
    lambda: np.where(np.ones((3, 1, 5)) > 0, np.ones((6, 5, 5)), 0.0),
    lambda: np.dot(np.ones((2, 3)), np.ones((4, 5))),
    lambda: np.ones(3).sum(axis=2),
    lambda: np.zeros((2, 3)).__setitem__(0, np.ones(4)),
    lambda: torch.ones(2, 3) @ torch.ones(4, 5),
    lambda: torch.ones(2, 3) + torch.ones(4, 5),
    lambda: torch.ones(2, 4, 3) @ torch.ones(2, 4, 5),
    lambda: torch.ones(3).sum(dim=2),
    lambda: bool(np.ones(3)),
    lambda: bool(torch.ones(3)),
    lambda: np.ones(3)[0, 0],
    lambda: torch.ones(3, requires_grad=True).numpy(),
    lambda: torch.ones(3, requires_grad=True).add_(1),
    lambda: torch.ones(2, 3).T.view(6),
    lambda: operator.getitem((1, 2), (1, 2)),
    lambda: np.ones(3).nun,
    lambda: torch.zeros(3).__setitem__([0, 1], torch.ones(2, dtype=torch.float64)),
    lambda: torch.ones(2, 3) @ torch.ones(3, 2, dtype=torch.float64),
    lambda: torch.nn.Linear(3, 2)(torch.ones(2, 3, dtype=torch.float64)),
    lambda: torch.nn.LayerNorm(3)(torch.ones(2, 3, dtype=torch.float64)),
    lambda: torch.nn.LayerNorm(3).double()(torch.ones(2, 3)),
    lambda: torch.cat([torch.ones(2, 3), torch.ones(3, 4)]),
    lambda: torch.cat([torch.ones(2, 3), torch.ones(3)]),
    lambda: torch.stack([torch.ones(2, 3), torch.ones(3)]),
    lambda: torch.ones(2, 3).expand(4, 5),
    lambda: torch.ones(2, 3).reshape(4, 5),
    lambda: torch.ones(2, 3).permute(0, 1, 2),
    lambda: torch.zeros(2, 3).add_(torch.ones(4, 2, 3)),
    lambda: torch.zeros(3).__setitem__(slice(None), torch.ones(2, 3)),
    lambda: torch.zeros(3, 4).__setitem__(0, torch.ones(2, 3, 4)),
    lambda: torch.ones(2, 3) @ torch.ones(4),
    lambda: torch.outer(torch.ones(2, 3), torch.ones(3)),
    lambda: torch.outer(torch.ones(3), torch.ones(2, 3)),
    lambda: torch.bmm(torch.ones(2, 3), torch.ones(2, 3, 4)),
    lambda: torch.bmm(torch.ones(2, 3, 4), torch.ones(3, 4)),
    lambda: torch.dot(torch.ones(2, 3), torch.ones(3)),
    lambda: torch.dot(torch.ones(2), torch.ones(3)),
    lambda: torch.inner(torch.ones(2, 3), torch.ones(2, 4)),
    lambda: torch.mm(torch.ones(2, 3, 4), torch.ones(4, 5)),
    lambda: torch.mv(torch.ones(2, 3, 4), torch.ones(4)),
    lambda: torch.addmm(torch.ones(1), torch.ones(2, 3, 4), torch.ones(4, 5)),
    lambda: torch.ones(2, 3, 4).t(),
    lambda: torch.ones(3).mT,
    lambda: torch.ones(6).unflatten(0, (4, 2)),
    lambda: np.ones(3, int).__imul__(np.ones(3)),
    lambda: np.ones((2, 1, 3), bool).__iand__(np.ones((3, 3), bool)),
    lambda: np.ones(3) & np.ones(3),
    lambda: -np.ones(3, bool),
    lambda: np.exp(np.array([None])),
    lambda: np.broadcast_to(np.ones((2, 3)), (3, 3)),
    lambda: np.broadcast_arrays(np.ones((2, 3)), np.ones((3, 3))),
    lambda: np.tensordot(np.ones((2, 3)), np.ones((2, 3)), 1),
    lambda: np.ones(3)[np.array([0.0, 1.0])],
    lambda: np.ones(3).swapaxes(0, 1),
    lambda: np.moveaxis(np.ones(3), 1, 0),
    lambda: np.split(np.ones(5), 2),
    lambda: np.squeeze(np.ones((2, 3)), 0),
    lambda: np.repeat(np.ones(3), [1, 2]),
    lambda: torch.ones(2, 3)[torch.ones(3, dtype=torch.bool)],
    lambda: torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(2, 3)),
    lambda: torch.einsum("ij->i", torch.ones(2, 3), torch.ones(2, 3)),
    lambda: torch.einsum("ij,jk->ik", torch.ones(2, 3)),
    lambda: np.einsum("i,ij->j", np.ones((2, 3)), np.ones((2, 3))),
    lambda: np.einsum("ijk,ij->i", np.ones((2, 3)), np.ones((2, 3))),
    lambda: np.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((2, 3))),
    lambda: np.einsum("ij->i", np.ones((2, 3)), np.ones((2, 3))),
    lambda: np.einsum("ij,jk->ik", np.ones((2, 3))),
    lambda: np.dot(np.ones((1, 4, 4)), np.ones((1, 4, 1, 4))),
    lambda: np.finfo(np.int64),
    lambda: np.finfo(bool),
    lambda: torch.finfo(torch.int64),
    lambda: torch.nn.Embedding(3, 2)(torch.tensor([5])),
    lambda: torch.ones(3).backward(),
    lambda: torch.tensor([1, 2]).add_(0.5),
    lambda: 1 - torch.ones(3, dtype=torch.bool),
    lambda: np.ones((2, 3)).reshape(4, 5),
    lambda: np.concatenate([np.ones((2, 3)), np.ones((3, 4))]),
    lambda: np.stack([np.ones((2, 3)), np.ones(3)]),
    lambda: np.ones(3)[1.0],
    lambda: float(torch.ones(3)),
    lambda: operator.add(None, 1),
    lambda: operator.matmul((1,), 2),
    lambda: len(3),
]


#: Shapes of so many axes say more than a submission may.
TOO_MUCH = [
    lambda: np.ones((3, 4, 5)) @ np.ones((4, 5, 2)),
    lambda: np.einsum("bnd,bd->bn", np.ones((2, 3, 4)), np.ones((3, 4))),
]


@pytest.mark.parametrize("make", TOO_MUCH)
def test_a_text_of_too_many_numbers_is_not_told(make: object) -> None:
    error = raised(make)
    assert let_through(type(error).__name__, str(error), [OWN])[0]
    assert told(type(error).__name__, str(error)).strip() == ""


@pytest.mark.parametrize("make", REAL)
def test_errors_of_shapes_and_names_are_told_with_the_line(make: object) -> None:
    error = raised(make)
    said = told(type(error).__name__, str(error))
    assert str(error).strip().replace(", ", ",") in said.replace(", ", ",")
    assert LINE in said


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ValueError", "0.1234"),
        ("ValueError", "x is [1 2 3]"),
        ("ValueError", "operands could not be broadcast together with shapes (2,3) (4,5) 0.3"),
        ("NameError", "name 'secret_7_3_1' is not defined"),
        ("AttributeError", "'double' object has no attribute 'v1234'"),
        ("AttributeError", "'V1234' object has no attribute 'weights'"),
        ("TypeError", "v12() missing 1 required positional argument: 'x'"),
        ("Mine", "name 'weights' is not defined"),
        ("KeyError", "'weights'"),
        ("RuntimeError", "expected scalar type Secret but found Double"),
        ("TypeError", "unsupported operand type(s) for +: 'V1234' and 'int'"),
        ("TypeError", "cannot unpack non-iterable secret_7_3_1 object"),
        ("TypeError", "matmul(): argument 'other' (position 2) must be Tensor, not v1234"),
    ],
)
def test_what_code_can_choose_is_not_told(kind: str, text: str) -> None:
    assert told(kind, text).strip() == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "shape '[4, 5]' is invalid for input of size 4123",
            "'[4, 5]' is invalid for input of size …",
        ),
        ("index 1000000 is out of bounds for dimension 2 with size 5", "index … is out of bounds"),
        ("index -725 is out of bounds for dimension 2 with size 5", "index -… is out of bounds"),
        ("mat1 and mat2 shapes cannot be multiplied (2x725 and 725x4)", "(2x… and …x4)"),
        ("Target", ""),
    ],
)
def test_of_a_number_that_is_no_length_only_its_place_is_told(text: str, shown: str) -> None:
    said = told("RuntimeError", text).strip()
    assert shown in said
    assert bool(shown) == bool(said)
    assert not {"4123", "1000000", "725"} & set(re.findall(r"\d+", said))


def test_a_text_of_any_length_is_looked_at_in_no_time() -> None:
    """A box may say what it likes, such as digits without an end."""
    for digits in ("1" * 2_000, "1, " * 600):
        for text in (f"shape '[{digits}", f"shape '[{digits}]' is invalid for input of size"):
            assert let_through("RuntimeError", text, [OWN]) == ("", 0.0)  # hangs otherwise


def test_a_line_that_is_not_the_students_is_not_told() -> None:
    said = told("NameError", "name 'weights' is not defined", "x = [0.5, 0.25]")
    assert "weights" in said
    assert "0.25" not in said


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    root = tmp_path_factory.mktemp("hidden")
    lesson = tiny_course(root).lesson("01")
    hidden = 'with assert_raises(ValueError, "A negative x is to be refused."):\n    double('
    text = LESSON.replace(
        f"{hidden}np.array([-3.0]))", 'assert_close(double(7.25), 14.5, "Seven.")'
    )
    assert text != LESSON
    (root / "lessons" / "01-tiny" / "tiny.py").write_text(text)
    folder = tmp_path_factory.mktemp("source") / lesson.folder
    write_source(lesson, folder)
    return Bundle.load(folder)


def test_an_error_in_what_the_test_handed_over_is_not_called_the_lines_own() -> None:
    text = "not enough values to unpack (expected 3, got 2)"
    said = told("ValueError", text, below=True)
    assert f"in what your line `{LINE}` calls" in said
    assert f"in your line `{LINE}`" in told("ValueError", text)


def test_where_an_error_arose_is_told_by_the_box() -> None:
    names: dict[str, Any] = {}
    cell = "def call(f):\n    return f(2)\n\ndef own():\n    return 1 / 0\n"
    name = "<ipython-input-1-abc>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    exec(compile(cell, name, "exec"), names)
    other = "def uses(x):\n    return own() + x\n"
    linecache.cache["<other>"] = (len(other), None, other.splitlines(keepends=True), "<other>")
    exec(compile(other, "<other>", "exec"), names)
    exec(compile("def fails(x):\n    return x / 0\n", inside.PROBE, "exec"), names)
    # Code of an earlier lesson has no lines in this notebook: the line is the one that called it.
    exec(compile("def earlier(x):\n    return x / 0\n", "<earlier lessons>", "exec"), names)
    for run, line, below in (
        (lambda: names["call"](names["fails"]), "return f(2)", True),
        (lambda: names["call"](names["earlier"]), "return f(2)", False),
        (names["own"], "return 1 / 0", False),
        (lambda: names["uses"](0), "return own() + x", True),
    ):
        try:
            run()
        except ZeroDivisionError as error:
            said = inside.describe(error)
            assert (said["line"], said["below"]) == (line, below)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("np.ones((2, 3)) @ np.ones((4, 5))", "line `np.ones((2, 3)) @ np.ones((4, 5))`"),
        ("undefined", "name 'undefined' is not defined"),
        ("raise KeyError(f'{x}')", f"raised an error. {REFUSED}"),
        ("raise RuntimeError(f'{x}')", f"raised an error. {REFUSED}"),
        ("raise NameError(\"name 'x' is not defined\")", f"raised an error. {REFUSED}"),
        ("raise type(f'V{x}', (TypeError,), {})(f'{x}')", f"raised an error. {REFUSED}"),
        ("{}[f'{x}']", "raised an error."),
        ("int(f'{x}')", "raised an error."),
        ("np.ones((2, int(100 * np.max(x)))) @ np.ones((2, 1))", "(size 2 is different from …)"),
    ],
)
def test_a_hidden_test_tells_shapes_and_names_and_nothing_chosen(
    bundle: Bundle, wrong: str, told: str
) -> None:
    source = f"def double(x):\n    if np.max(x) > 5:\n        {wrong}\n    return 2 * x\n"
    verdict = graded(bundle, notebook_with(bundle, {"double": source}))
    (test,) = [test for test in verdict.tests if test.grade_id == "test_double_errors"]
    assert told in test.message
    assert "7.25" not in test.message and "725" not in test.message


@pytest.mark.parametrize(
    ("inner", "told"),
    [
        ("expected m1 and m2 to have the same dtype, but got: float != long int", True),
        ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x2)", True),
        ("the mask began with 0110", False),
    ],
)
def test_what_keras_says_around_an_exception_is_left_out(inner: str, told: bool) -> None:
    text = (
        f"Exception encountered when calling Mine.call().\n\n\x1b[1m{inner}\x1b[0m\n\nArguments "
        "received by Mine.call():\n  • a=torch.Tensor(shape=torch.Size([7, 7]), dtype=float32)"
    )
    said = let_through("RuntimeError", text, [OWN])[0]
    assert said == (inner if told else "")


def test_what_keras_might_say_is_read_in_one_way_only() -> None:
    text = "Exception encountered when calling a().\n\n" + "x" * 100_000
    started = time.monotonic()
    assert let_through("RuntimeError", text, [OWN])[0] == ""
    assert let_through("RuntimeError", text + "\n\nArguments received by " * 1000, [OWN])[0] == ""
    assert time.monotonic() - started < 20  # hangs otherwise


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("name 'x' is not defined", "name 'x' is not defined"),
        ("operands could not be broadcast together with shapes (0002,3) (4, 5)", "(2,3) (4,5)"),
        ("shapes (\u0662,3) and (4,5) not aligned: 3 (dim 1) != 4 (dim 0)", ""),
        ("index \u0967 is out of bounds for axis 0 with size 3", ""),
        ("index 000 is out of bounds for axis 0 with size 03", "index 0 is out of bounds for axis"),
        ("index -0 is out of bounds for axis 0 with size 3", "index 0 is out of bounds for axis"),
        ("name 'x.x.wieghts.x' is not defined", "name 'x' is not defined"),
        ("name 'x is not defined", ""),
        ("expected scalar type dOuBlE but found Float", ""),
        ("shape '[1, 2, 3, 4, 5, 6, 7]' is invalid for input of size 5", ""),
    ],
)
def test_a_text_is_made_anew_of_what_was_recognised(text: str, shown: str) -> None:
    said = let_through("ValueError", text, [OWN])[0]
    assert shown in said
    assert bool(said) == bool(shown)
    assert said.isascii()


def test_what_one_text_costs_is_the_length_of_a_code() -> None:
    """Of any sign, the texts that can be shown weigh at most 1 together (Kraft's inequality)."""
    names = {"x", "weights"}
    numbers = {str(n) for n in range(-99, 100)}
    pairs = [f"({a},{b})" for a in range(70) for b in range(70)]
    samples = {
        "N": numbers,
        "S": {"()", *(f"({n},)" for n in range(70)), *pairs},
        "R": {"(newaxis,)", *(f"({n},)" for n in range(70)), *pairs},
        "L": {"[]", *(f"[{n}]" for n in numbers)},
        "NxN": {f"{a}x{b}" for a in numbers for b in numbers},
        "ID": {f"{quote}{n}{quote}" for n in [*names, *TYPES] for quote in ("", "'")},
    }
    for sign, how in SIGNS.items():
        texts = samples.get(sign) or how.pattern.replace("\\", "").split("|")
        shown = {how.shown(text, names) for text in texts} - {None}
        assert shown, sign
        assert sum(2.0**-bits for _, bits in shown) <= 1 + 1e-9, sign
    # Shapes of more axes: each one more weighs what its number weighs.
    assert sum(2.0**-bits for _, bits in {number(n) for n in numbers}) <= 1
    newaxis = 2.0 ** -(2.0 + 0.42)
    assert (
        newaxis + sum(2.0 ** -(bits + 0.42) for _, bits in {number(str(n)) for n in range(99)}) <= 1
    )


def test_a_submission_tells_at_most_seventy_bits() -> None:
    """However many hidden tests there are, and whatever the box says of each."""
    draw = random.Random(1)
    for tests in (1, 8, 40):
        telling = Telling([OWN, *(f"v{n} = {n}" for n in range(300))], tests)
        spent, texts = 0.0, 0
        for _ in range(tests):
            first, second = ((draw.randrange(64), draw.randrange(64)) for _ in range(2))
            text = f"operands could not be broadcast together with shapes {first} {second}"
            line = f"v{draw.randrange(300)} = 1"
            before = telling.bits_left
            said = telling.of(BoxError(("ValueError",), text, False, line))
            spent += before - telling.bits_left
            texts += bool(said[0])
            assert bool(said[0]) == (telling.bits_left < before)
        assert spent <= MAX_TOLD_BITS
        assert texts == 1, "one that says much, and no other"


def test_the_same_text_once_more_costs_little() -> None:
    telling = Telling([OWN], 8)
    error = BoxError(("NameError",), "name 'wieghts' is not defined", False, LINE)
    assert telling.of(error) == telling.of(error) != ("", "")


def test_a_text_thrown_by_hand_into_a_library_says_no_more(bundle: Bundle) -> None:
    """``throw`` is no ``raise``: its text is taken for a library's."""
    source = (
        "def double(x):\n    if np.max(x) > 5:\n        n = int(100 * np.max(x))\n"
        "        text = f'shape \\'[{n:09d}, {n}]\\' is invalid for input of size {n}'\n"
        "        (_ for _ in ()).throw(RuntimeError(text))\n    return 2 * x\n"
    )
    verdict = graded(bundle, notebook_with(bundle, {"double": source}))
    (test,) = [test for test in verdict.tests if test.grade_id == "test_double_errors"]
    assert "shape '[…, …]' is invalid for input of size …" in test.message
