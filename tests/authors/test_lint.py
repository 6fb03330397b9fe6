"""The mistakes that authors make are found, and the course makes none of them."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.authors.lint import lint
from autograder.cli.main import main
from autograder.course.lessons import Course, Lesson

from ..conftest import COURSE, sampled
from ..tiny import WITH_TORCH, head, tiny_course

CATALOGUE = """
import numpy as np

from autograder.course.implementations import choice, misconception

choice("answer_size", "a", reason="It is larger.")
choice("answer_size", "b", right=True, reason="It is.")
"""
WRONG = """
@misconception("{0}", "{0}_{1}", sentence="You add {1}.", seen="folklore")
def {0}(x):
    return {2} * x + {1}
"""
RIGHT = """
@alternative("{0}", "{0}_{1}")
def {0}(x):
    return {2} * x
"""


def lesson_with(folder: Path, *more: str, text: str = WITH_TORCH) -> Lesson:
    """The tiny lesson with a full catalogue, and with more cells."""
    tiny_course(folder)
    lesson = folder / "lessons" / "01-tiny"
    # For the catalogue's sake: a hidden test for the other exercise.
    hidden = head("test_quadruple_kinds", test=True, points=1) + (
        "# Hidden checks of quadruple: whole numbers.\n### BEGIN HIDDEN TESTS\n"
        'assert_close(quadruple(2.0), 8.0, "Of two.")\n### END HIDDEN TESTS\n'
    )
    (lesson / "tiny.py").write_text("\n".join([text, hidden, *more]))
    pairs = [(name, add, by) for name, by in (("double", 2), ("quadruple", 4)) for add in range(4)]
    wrong = [WRONG.format(name, add + 1, by) for name, add, by in pairs]
    right = [RIGHT.format(name, add, by) for name, add, by in pairs if add < 2]
    (lesson / "misconceptions.py").write_text(CATALOGUE + "\n".join(wrong))
    head_of_right = "from autograder.course.implementations import alternative\n"
    (lesson / "alternatives.py").write_text(head_of_right + "\n".join(right))
    return Course.load(folder).lesson("01")


def test_a_lesson_without_mistakes_is_left_in_peace(tmp_path: Path) -> None:
    assert lint(lesson_with(tmp_path)) == []


def cell(name: str, text: str, points: int = 1) -> str:
    return head(name, test=True, points=points) + text


MISTAKES = {
    "passes for the untouched stub": cell("test_double_never", "assert 1 + 1 == 2\n"),
    "the untouched stub stops it with": cell(
        "test_double_early", "x = double\nassert_close(x.size, 2.0, 'Size.')\n"
    ),
    "allclose broadcasts": cell(
        "test_double_loose", "x = np.ones(3)\nassert np.allclose(double(x), 2)\n"
    ),
    "a hidden test prints": cell(
        "test_double_print",
        "# Hidden checks of double.\n### BEGIN HIDDEN TESTS\nx = np.ones(3)\nprint(x)\n"
        "assert_close(double(x), 2 * x, 'Twice.')\n### END HIDDEN TESTS\n",
    ),
    "of other cells": "# %%\nelsewhere = 2.0\n\n"
    + cell("test_double_borrows", "assert_close(double(elsewhere), 4.0, 'Twice.')\n"),
    "global random state": cell(
        "test_double_random",
        "x = np.random.normal(size=3) ** 2\nassert_close(double(x), 2 * x, 'Twice.')\n",
    ),
    "are worth 2 points, the cell 3": cell(
        "test_double_named",
        "from lesson_kit.checks import check, checks_passed\nfor x in (1.0, 2.0):\n"
        "    with check('twice', points=1):\n        assert_close(double(x), 2 * x, 'Twice.')\n"
        "checks_passed('double')\n",
        points=3,
    ),
    "end the cell with it": cell(
        "test_double_unreported",
        "from lesson_kit.checks import check\ny = double(2.0)\n"
        "with check('two', points=1):\n    assert_close(y, 4.0, 'Twice.')\n",
    ),
    "compares double(x), 2 * double(x / 2)": cell(
        "test_double_halves",
        "x = np.ones(3)\nassert_close(double(x), 2 * double(x / 2), 'Halves.')\n",
    ),
    "a hidden test writes an exception's text": cell(
        "test_double_tells",
        "# Hidden checks of double.\n### BEGIN HIDDEN TESTS\ntry:\n    said = double(2.0)\n"
        "except ValueError as error:\n    said = f'no number: {error}'\n"
        "assert_equal(said, 4.0, 'Twice.')\n### END HIDDEN TESTS\n",
    ),
    "the solution fails it": cell(
        "test_double_wrong", "assert_close(double(2.0), 5.0, 'Twice.')\n"
    ),
}


@pytest.mark.parametrize("says", MISTAKES)
def test_a_mistake_in_a_test_cell_is_found(tmp_path: Path, says: str) -> None:
    found = lint(lesson_with(tmp_path, MISTAKES[says]))
    assert any(says in text for text in found), found


def promising(header: str, x: str = "check_rng().uniform(size=2)") -> str:
    return f"# %% {header} points=1\nx = {x}\nassert_close(double(x), 2.0 * x, 'Twice?')\n"


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([promising('check="double_a" card="a negative `x` is a ValueError"')], ""),
        ([promising('check="double_a"')], ""),  # no check of the lesson names a phrase
        ([promising('check="double_a" card="x twice"')], "'x twice' stands neither on the card"),
        (
            [promising('check="double_a" card="Twice x"'), promising('check="double_b"')],
            "test_double_b: names no phrase",
        ),
        (
            [promising('check="double_a" card=["Twice x"]', "np.ones(3, dtype=np.int8)")],
            "double: its checks give narrow whole numbers",
        ),
        ([promising('check="double_a" card="Twice x"', "np.full(2, 1e7)")], "above 10^6"),
        ([promising('check="double_a" card="Twice x"', "np.ones(2, np.float16)")], "half"),
    ],
)
def test_a_check_holds_a_phrase_of_its_card(tmp_path: Path, cells: list[str], says: str) -> None:
    found = lint(lesson_with(tmp_path, *cells))
    assert any(says in text for text in found) if says else found == [], found


EXERCISES = (
    head("mix") + 'def mix(Q, K):\n    """Softmax of Q K^T."""\n    ### BEGIN SOLUTION\n'
    "    s = Q @ K.T\n    e = np.exp(s - s.max(-1, keepdims=True))\n"
    "    return e / e.sum(-1, keepdims=True)\n    ### END SOLUTION\n\n"
)


def mixed(n_q: int, n_k: int, d: int, scale: float) -> str:
    return EXERCISES + cell(
        "test_mix",
        f"rng = check_rng()\nQ = {scale} * rng.normal(size=({n_q}, {d}))\n"
        f"K = {scale} * rng.normal(size=({n_k}, {d}))\n"
        "expected = torch.softmax(torch.tensor(Q @ K.T), -1).numpy()\n"
        'assert_close(mix(Q, K), expected, "Over the keys?")\n',
    )


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((4, 5, 3, 20.0), "nearly one-hot"),
        ((4, 4, 4, 0.5), "all sizes are equal"),
        ((4, 4, 3, 0.5), "have the same length in every test"),
    ],
)
def test_inputs_that_hide_a_mistake_are_found(
    tmp_path: Path, sizes: tuple[int, int, int, float], says: str
) -> None:
    found = lint(lesson_with(tmp_path, mixed(*sizes)))
    assert any(says in text for text in found), found


def test_one_length_is_right_where_the_docstring_says_n_of_both(tmp_path: Path) -> None:
    of_itself = mixed(4, 4, 3, 0.5).replace(
        '"""Softmax of Q K^T."""',
        '"""Softmax of Q K^T.\n\n    Q: (..., n, d)\n    K: (..., n, d)\n    """',
    )
    assert of_itself != mixed(4, 4, 3, 0.5)
    found = lint(lesson_with(tmp_path, of_itself))
    assert not any("same length" in text for text in found), found


def test_good_inputs_are_not_complained_about(tmp_path: Path) -> None:
    found = lint(lesson_with(tmp_path, mixed(4, 5, 3, 0.5)))
    assert all("catalogue" in text or "mix: " in text for text in found)
    assert not any("one-hot" in text or "length" in text or "sizes" in text for text in found)


def test_a_square_by_its_docstring_may_be_square(tmp_path: Path) -> None:
    said = "Args:\n        {}: (..., n, n), rows are queries.\n    "
    for argument, complains in (("M", False), ("other", True)):
        source = (
            head("trace") + f'def trace(M):\n    """The trace.\n\n    {said.format(argument)}"""\n'
            "    ### BEGIN SOLUTION\n    return np.trace(M)\n    ### END SOLUTION\n\n"
            + cell(
                "test_trace",
                "M = check_rng().normal(size=(4, 4))\n"
                'assert_close(trace(M), M.diagonal().sum(), "The sum of the diagonal.")\n',
            )
        )
        found = lint(lesson_with(tmp_path / argument, source))
        assert any("sizes are equal" in text for text in found) == complains, found


@pytest.mark.parametrize(("name", "complains"), [("images", False), ("X", True)])
def test_pictures_may_be_square(tmp_path: Path, name: str, complains: bool) -> None:
    source = head("halves") + (
        f'def halves({name}):\n    """Half of it."""\n    ### BEGIN SOLUTION\n'
        f"    return {name} / 2\n    ### END SOLUTION\n\n"
    )
    source += cell(
        "test_halves",
        "x = check_rng().normal(size=(3, 4, 4))\n"
        'assert_close(halves(x), 0.5 * x, "Half of each number.")\n',
    )
    found = lint(lesson_with(tmp_path, source))
    assert any("all sizes are equal" in text for text in found) == complains, found
    assert not any("fails" in text for text in found), found


def test_an_exercise_without_a_catalogue_is_found(tmp_path: Path) -> None:
    found = lint(lesson_with(tmp_path, mixed(4, 5, 3, 0.5)))
    assert any("mix: misconceptions.py has 0 of the 4 known mistakes" in text for text in found)
    assert any("mix: alternatives.py has 0 of the 2 right answers" in text for text in found)
    assert any("mix: no hidden test" in text for text in found)


def test_mistakes_that_no_test_tells_apart_need_one_sentence(tmp_path: Path) -> None:
    lesson = lesson_with(tmp_path)
    path = lesson.path / "misconceptions.py"
    twin = WRONG.format("double", 1, 2).replace("double_1", "twin").replace("You add 1", "Other")
    path.write_text(path.read_text() + twin)
    found = lint(lesson)
    assert any("no test tells double_1 from twin" in text for text in found), found


TRAINS = """# %% tags=["demonstration", "nbval-ignore-output"]
# Training.
def train(model, steps):
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in range(steps):
        loss = model(torch.ones(1, 2)).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


model = torch.nn.Linear(2, 1)
curve = train(model, 3)


def last_of(curves):
    return {name: curve[-1] for name, curve in curves.items()}


"""
SHOWS_TRAINED = [
    "print(curve[-1])",
    "print(f'loss {curve[-1]:.2f}')",
    "model.weight",
    "weight = model.weight.detach()\nshown = [weight.sum(), 1]\nprint(shown)",
    "best = {}\nbest['loss'] = min(curve)\nfor name, value in best.items():\n    print(value)",
    "table = []\ntable.append(curve[0])\nprint(table)",
    "print(last_of({'one': curve}))",
    "def told(losses):\n    print(losses[-1])\n\n\ntold(curve)",
    "def told():\n    print(curve[-1])\n\n\ntold()",
    "x = torch.zeros(2, requires_grad=True)\nfor _ in range(3):\n"
    "    (gradient,) = torch.autograd.grad((x - 1).square().sum(), x)\n"
    "    with torch.no_grad():\n        x -= 0.1 * gradient\nprint(x)",
]
SHOWS_NO_WEIGHT = [
    "print(curve[-1] < 5)",
    "print('loss below 5:', max(curve) < 5, len(curve), tuple(model.weight.shape))",
    "model = torch.nn.Linear(2, 1)\nprint(model.bias)",
    "for name, one in {'first': model}.items():\n    print(name, tuple(one.weight.shape))",
    "print([tuple(one.shape) for one in model.parameters()])",
    "def small(model):\n    return model.weight.abs().max() < 9\n\n\nprint(small(model))",
    "x = torch.ones(2, requires_grad=True)\n(3 * x).sum().backward()\nprint(x.grad)",
]


@pytest.mark.parametrize("text", SHOWS_TRAINED)
def test_a_compared_output_of_something_trained_is_found(tmp_path: Path, text: str) -> None:
    found = lint(lesson_with(tmp_path, TRAINS, f'# %% tags=["demonstration"]\n{text}\n'))
    assert len(found) == 1, found
    assert "which comes out of training" in found[0]
    ignored = f'# %% tags=["demonstration", "nbval-ignore-output"]\n{text}\n'
    assert lint(lesson_with(tmp_path / "ignored", TRAINS, ignored)) == []


@pytest.mark.parametrize("text", SHOWS_NO_WEIGHT)
def test_the_truth_of_a_bound_of_something_trained_may_be_compared(
    tmp_path: Path, text: str
) -> None:
    assert lint(lesson_with(tmp_path, TRAINS, f'# %% tags=["demonstration"]\n{text}\n')) == []


@pytest.mark.parametrize(
    ("source", "printed", "found"),
    [
        ("print(off)", "5.6e-17", True),
        ("print(off)", "change: 0.00000012, and more", True),
        ("print(off)", "0.0", False),
        ("print(off)", "0.000002 1e-06 1e5 v1e-9", False),
        ("print('below 1e-12:', off < 1e-12)", "below 1e-12: True", False),
    ],
)
def test_rounding_noise_in_a_compared_output_is_found(
    tmp_path: Path, source: str, printed: str, found: bool
) -> None:
    for tags, expected in (("demonstration", found), ("nbval-ignore-output", False)):
        folder = tmp_path / tags
        lesson = lesson_with(folder, f'# %% tags=["{tags}"]\noff = 0.0\n{source}\n')
        solved = nbformat.from_dict(lesson.notebook)
        solved.cells[-1].outputs = [nbformat.v4.new_output("stream", text=printed + "\n")]
        path = folder / "solutions" / lesson.folder / f"{lesson.notebook_name}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(solved, path)
        told = lint(lesson)
        assert len(told) == expected, told
        assert all("rounding noise" in text for text in told)
        # What is stored belongs to a cell that is no longer there: it will be made again.
        solved.cells[-1].source += "\n"
        nbformat.write(solved, path)
        assert lint(lesson) == []


def test_the_command_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lesson_with(tmp_path)
    assert main(["lint", "--course", str(tmp_path)]) == 0
    assert "nothing to mend" in capsys.readouterr().out
    lesson_with(tmp_path / "b", MISTAKES["passes for the untouched stub"])
    assert main(["lint", "01", "--course", str(tmp_path / "b")]) == 1
    assert "test_double_never" in capsys.readouterr().out


@pytest.mark.parametrize("lesson", sampled(COURSE.lessons), ids=lambda lesson: lesson.folder)
def test_the_course_has_nothing_to_mend(lesson: Lesson) -> None:
    assert lint(lesson) == []
