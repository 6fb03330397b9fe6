"""One submission, whatever it is, ends in a verdict with a reason."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.build.build import write_source
from autograder.course.bundle import Bundle, BundleError
from autograder.course.lessons import Course
from autograder.grade.limits import Limits
from autograder.grade.result import Result
from autograder.grade.submission import Missing, Unreadable, find_notebook, read_file
from autograder.notebooks import grade_id, is_test

from ..submissions import as_bytes, graded, notebook_with, points
from ..tiny import tiny_course

FULL = {"double": 3.0, "quadruple": 4.0, "answer_size": 1.0}
QUICK = Limits(cell=3, test=3, notebook=120)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("tiny")
    lesson = tiny_course(folder).lesson("01")
    write_source(lesson, folder / "source" / lesson.folder)
    return Bundle.load(folder / "source" / lesson.folder)


def outcome(verdict: Result, name: str) -> str:
    return next(test.outcome for test in verdict.tests if test.grade_id == name)


def message(verdict: Result, name: str) -> str:
    return next(test.message for test in verdict.tests if test.grade_id == name)


def with_cell(bundle: Bundle, source: str, position: int = 1) -> Any:
    notebook = notebook_with(bundle)
    notebook.cells.insert(position, nbformat.v4.new_code_cell(source))
    return notebook


def test_a_right_notebook_gets_everything(bundle: Bundle) -> None:
    verdict = graded(bundle, notebook_with(bundle))
    assert points(verdict) == FULL
    assert (verdict.score, verdict.max_score, verdict.status) == (8.0, 8.0, "graded")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"   \n", "empty"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a notebook"),
        (b'{"cells": []}', "not a notebook"),
        (b'{"nbformat": 4, "cells": 3}', "no list of cells"),
        (b'{"nbformat": 9, "cells": []}', "format 9"),
        (b'{"nbformat": 2}', "no list of cells"),
        (b'{"nbformat": true, "cells": []}', "not a notebook"),
    ],
)
def test_what_cannot_be_read_gets_a_reason(bundle: Bundle, data: bytes, says: str) -> None:
    verdict = graded(bundle, data)
    assert verdict.status == "unreadable"
    assert says in verdict.reason
    assert verdict.score == 0
    assert [test.outcome for test in verdict.tests] == ["missing"] * len(bundle.tests)


@pytest.mark.parametrize(
    "cells",
    [
        [None, 3, "text", {"cell_type": "code"}, {"cell_type": 4, "source": "x"}],
        [{"cell_type": "code", "source": {"a": 1}, "metadata": []}],
        [{"cell_type": "code", "source": "1", "metadata": {"nbgrader": [1]}, "outputs": "x"}],
        [{"cell_type": "code", "source": ["1", 2], "metadata": {"nbgrader": {"grade_id": 7}}}],
    ],
)
def test_odd_cells_are_survived(bundle: Bundle, cells: list[Any]) -> None:
    verdict = graded(bundle, as_bytes({"nbformat": 4, "cells": cells}))
    assert (verdict.status, verdict.score) == ("graded", 0)


def test_an_old_format_is_read(bundle: Bundle) -> None:
    cells = [
        {"cell_type": "code", "input": cell.source, "metadata": {}, "language": "python"}
        for cell in notebook_with(bundle).cells
        if cell.cell_type == "code" and not is_test(cell)
    ]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    verdict = graded(bundle, as_bytes(old))
    assert points(verdict) == FULL
    assert any("old format 3" in flag.words for flag in verdict.flags)


def test_test_cells_come_from_the_source(bundle: Bundle) -> None:
    wrong = {"double": "def double(x):\n    return 3 * x\n"}
    gone, edited, doubled = (notebook_with(bundle, wrong) for _ in range(3))
    gone.cells = [cell for cell in gone.cells if not is_test(cell)]
    for cell in edited.cells:
        if is_test(cell):
            cell.source = "pass"
            cell.metadata["tags"] = ["skip-execution"]
    doubled.cells += [copy.deepcopy(cell) for cell in doubled.cells if is_test(cell)]
    for notebook, flag in ((gone, "is missing"), (edited, "was edited"), (doubled, "2 times")):
        verdict = graded(bundle, notebook)
        assert points(verdict) == {"double": 0.0, "quadruple": 4.0, "answer_size": 1.0}
        assert all(
            any(flag in one.words and test.grade_id in one.words for one in verdict.flags)
            for test in bundle.tests
        )


def test_a_retyped_test_cell_without_metadata_is_not_run(bundle: Bundle) -> None:
    notebook = notebook_with(bundle)
    for cell in notebook.cells:
        if is_test(cell):
            cell.metadata = {}
    assert points(graded(bundle, notebook)) == FULL


def test_lost_metadata_cost_nothing(bundle: Bundle) -> None:
    notebook = notebook_with(bundle)
    for cell in notebook.cells:
        cell.metadata = {}
        cell.pop("id")
    verdict = graded(bundle, notebook)
    assert points(verdict) == FULL
    assert [flag.kind for flag in verdict.flags] == ["names_found", "written_found"]


@pytest.mark.parametrize(
    "extra",
    [
        "import warnings; warnings.warn('careful'); print('hello')",
        "print('x' * 10**6)",
        "1 / 0",
        "this is no Python",
        "%matplotlib inline\nimport matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()",
        "!echo hello",
        "import sys; sys.exit(3)",
        "input('name? ')",
        "np = None; torch = 3; F = 'force'",
    ],
)
def test_a_right_answer_survives_what_stands_around_it(bundle: Bundle, extra: str) -> None:
    position = 1 if "np = None" not in extra else len(bundle.notebook.cells)
    notebook = with_cell(bundle, extra, position)
    if "np = None" in extra:  # the answers then need an import of their own
        notebook.cells.append(nbformat.v4.new_code_cell("import numpy as np"))
    assert points(graded(bundle, notebook)) == FULL


def test_a_cell_that_ends_its_process_costs_nobody_else(bundle: Bundle) -> None:
    verdict = graded(bundle, with_cell(bundle, "import os; os._exit(7)"))
    assert points(verdict) == FULL
    assert any("status 7" in run.error for run in verdict.runs)


@pytest.mark.slow
def test_a_cell_that_never_ends_is_left_out(bundle: Bundle) -> None:
    verdict = graded(bundle, with_cell(bundle, "while True: pass"), limits=QUICK)
    assert points(verdict) == FULL
    assert any("did not finish within 3 seconds" in run.error for run in verdict.runs)


@pytest.mark.slow
def test_after_a_cell_that_never_ends_new_cells_wait_less_and_others_as_long_as_before(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.grade.in_box.CELL_AFTER_A_TIME_OUT", 1.0)
    notebook = notebook_with(bundle, {})
    slow = nbformat.v4.new_code_cell("import time; time.sleep(1.5); slept = True")
    notebook.cells.insert(0, slow)
    for source in ("while True: pass", "while True: assert slept"):
        notebook.cells.append(nbformat.v4.new_code_cell(source))
    verdict = graded(bundle, notebook, limits=Limits(cell=4, test=5, notebook=120))
    assert points(verdict) == FULL
    errors = [run.error for run in verdict.runs if run.error]
    assert [("within 4 seconds" in one, "within 1 seconds" in one) for one in errors] == [
        (True, False),
        (False, True),
    ]


def test_an_answer_that_ends_the_process_loses_its_own_points_only(bundle: Bundle) -> None:
    wrong = "def double(x):\n    import ctypes\n    ctypes.string_at(0)\n"
    verdict = graded(bundle, notebook_with(bundle, {"double": wrong}))
    assert points(verdict) == {"double": 0.0, "quadruple": 4.0, "answer_size": 1.0}
    assert outcome(verdict, "test_double") == "crashed"
    assert "SIGSEGV" in message(verdict, "test_double")


@pytest.mark.slow
def test_an_answer_that_never_ends_loses_its_own_points_only(bundle: Bundle) -> None:
    wrong = "def quadruple(x):\n    while True:\n        pass\n"
    verdict = graded(bundle, notebook_with(bundle, {"quadruple": wrong}), limits=QUICK)
    assert points(verdict) == {"double": 3.0, "quadruple": 0.0, "answer_size": 1.0}
    assert outcome(verdict, "test_quadruple") == "timeout"


@pytest.mark.slow
def test_after_one_time_out_the_other_tests_of_an_exercise_wait_less(bundle: Bundle) -> None:
    """The second test is caught in the same loop and says for how long; a third that is not
    caught keeps its points."""
    endless = "def double(x):\n    while True:\n        pass\n"
    verdict = graded(bundle, notebook_with(bundle, {"double": endless}), limits=QUICK)
    assert "within 3 seconds" in message(verdict, "test_double")
    assert "within 2 seconds" in message(verdict, "test_double_errors")
    only_sometimes = (
        "def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise ValueError\n"
        "    while True:\n        pass\n"
    )
    verdict = graded(bundle, notebook_with(bundle, {"double": only_sometimes}), limits=QUICK)
    assert outcome(verdict, "test_double") == "timeout"
    assert outcome(verdict, "test_double_errors") == "passed"


@pytest.mark.slow
def test_the_notebook_as_a_whole_has_a_limit(bundle: Bundle) -> None:
    notebook = with_cell(bundle, "import time; time.sleep(600)")
    verdict = graded(bundle, notebook, limits=Limits(cell=60, test=5, notebook=2))
    assert verdict.status == "graded"
    assert verdict.score == 0
    assert {test.outcome for test in verdict.tests} == {"timeout"}
    assert verdict.seconds < 300


def test_partly_right_gets_its_part(bundle: Bundle) -> None:
    verdict = graded(
        bundle, notebook_with(bundle, {"double": "def double(x):\n    return x + x\n"})
    )
    assert points(verdict) == {"double": 2.0, "quadruple": 4.0, "answer_size": 1.0}
    assert outcome(verdict, "test_double_errors") == "failed"


def test_an_exercise_is_graded_on_a_right_version_of_what_it_builds_on(bundle: Bundle) -> None:
    wrong = {"double": "def double(x):\n    return 3 * x\n"}
    verdict = graded(bundle, notebook_with(bundle, wrong))
    assert points(verdict) == {"double": 0.0, "quadruple": 4.0, "answer_size": 1.0}
    assert "course's own double" in message(verdict, "test_quadruple")


def test_building_on_a_failed_exercise_earns_nothing_by_itself(bundle: Bundle) -> None:
    wrong = {
        "double": "def double(x):\n    return 3 * x\n",
        "quadruple": "def quadruple(x):\n    return double(x)\n",
    }
    verdict = graded(bundle, notebook_with(bundle, wrong))
    assert points(verdict) == {"double": 0.0, "quadruple": 0.0, "answer_size": 1.0}


PARTS = (
    "# Named checks.\nfrom lesson_kit.checks import check\nx = check_rng().uniform(size=4)\n"
    'with check("small", points=1):\n'
    '    assert_close(quadruple(x), 4 * x, "Is it four times x?")\n'
    'with check("large", points=2):\n'
    '    assert_close(quadruple(x + 9), 4 * x + 36, "Is it four times x?")\n'
    'with check("the same", points=1):\n'
    '    assert_equal(quadruple(x) is not x, True, "A new array.")\n'
    'checks_passed("quadruple")\n\n'
)


@pytest.mark.parametrize(
    ("double", "quadruple", "earned"),
    [
        # Wrong for large x by itself, and wrong altogether since double is.
        ("3 * x", "double(double(x)) * (1 if np.max(x) < 5 else 7)", 2.0),
        # Right with a wrong double, and wrong with the right one: what was earned stays.
        (
            "2 * x + (1 if np.max(x) > 5 else 0)",
            "double(double(x)) - 3 if np.max(x) > 5 else 9 * x",
            3.0,
        ),
    ],
)
def test_what_is_right_in_part_with_the_courses_own_version_counts_and_nothing_is_lost(
    tmp_path: Path, double: str, quadruple: str, earned: float
) -> None:
    tiny_course(tmp_path)
    source = tmp_path / "lessons" / "01-tiny" / "tiny.py"
    text = source.read_text()
    start = text.index("@probe\ndef result_and_input")
    end = text.index('# %% tags=["demonstration"]')
    source.write_text(text[:start] + PARTS + text[end:])
    lesson = Course.load(tmp_path).lesson("01")
    write_source(lesson, tmp_path / "source" / lesson.folder)
    bundle = Bundle.load(tmp_path / "source" / lesson.folder)
    answers = {
        "double": f"def double(x):\n    return {double}\n",
        "quadruple": f"def quadruple(x):\n    return {quadruple}\n",
    }
    assert points(graded(bundle, notebook_with(bundle, answers)))["quadruple"] == earned


def test_a_hidden_test_shows_no_value(bundle: Bundle) -> None:
    telling = "def double(x):\n    raise TypeError(f'the input is {x}')\n"
    verdict = graded(bundle, notebook_with(bundle, {"double": telling}))
    assert "-3" not in message(verdict, "test_double_errors")
    assert "the input is" in message(verdict, "test_double")


def test_a_wrong_choice_gets_its_reason(bundle: Bundle) -> None:
    verdict = graded(bundle, notebook_with(bundle, {"answer_size": "answer_size = 'a'"}))
    assert "It is larger." in message(verdict, "test_answer_size")
    verdict = graded(bundle, notebook_with(bundle, {"answer_size": "answer_size = 'z'"}))
    assert "none of the choices" in message(verdict, "test_answer_size")


def test_a_cell_that_cannot_be_read_is_the_reason_given(bundle: Bundle) -> None:
    verdict = graded(bundle, notebook_with(bundle, {"double": "def double(x:\n    return 2*x"}))
    assert outcome(verdict, "test_double") == "missing"
    assert "SyntaxError" in message(verdict, "test_double")


def test_an_in_place_change_is_seen(bundle: Bundle) -> None:
    wrong = "def quadruple(x):\n    x *= 4\n    return x\n"
    verdict = graded(bundle, notebook_with(bundle, {"quadruple": wrong}))
    assert "changed in place" in message(verdict, "test_quadruple")


LIES = [
    "class Yes:\n    def __eq__(self, other): return True\n"
    "    def __getattr__(self, n): return self\n"
    "def double(x):\n    return Yes()",
    "class Yes(np.ndarray):\n    def __eq__(self, other): return True\n"
    "def double(x):\n    return np.zeros(3).view(Yes)",
    "def double(x):\n    import numpy.testing as t\n"
    "    t.assert_allclose = lambda *a, **k: None\n"
    "    np.isclose = lambda *a, **k: np.array(True)\n    return x",
    "import lesson_kit.checks\nlesson.checks.assert_close = lambda *a, **k: None\n"
    "def double(x):\n    return x",
    "def double(x):\n    return np.full(x.shape, None, dtype=object)",
    "def double(x):\n    return [2 * x]",
    "def double(x):\n    return None",
]


@pytest.mark.parametrize("lie", LIES)
def test_lies_earn_nothing(bundle: Bundle, lie: str) -> None:
    verdict = graded(bundle, notebook_with(bundle, {"double": lie}))
    assert points(verdict) == {"double": 0.0, "quadruple": 4.0, "answer_size": 1.0}


def test_bytes_of_its_own_on_the_wire_earn_nothing(bundle: Bundle) -> None:
    forge = (
        "import os, socket\n"
        "def double(x):\n"
        "    for fd in range(3, 60):\n"
        "        try:\n            os.write(fd, b'ATN1' + b'\\0' * 400)\n"
        "        except OSError:\n            pass\n"
        "    return x\n"
    )
    verdict = graded(bundle, notebook_with(bundle, {"double": forge}), limits=QUICK)
    assert points(verdict)["double"] == 0
    assert points(verdict)["answer_size"] == 1


def test_the_notebook_is_found_also_under_another_name(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"tiny\.ipynb"):
        find_notebook(tmp_path / "nowhere", bundle)
    with pytest.raises(Missing, match="No notebook"):
        find_notebook(tmp_path, bundle)
    (tmp_path / "mine.ipynb").write_text("{}")
    path, flags = find_notebook(tmp_path, bundle)
    assert path.name == "mine.ipynb" and "not tiny.ipynb" in flags[0].words
    (tmp_path / "other.ipynb").write_text("{}")
    with pytest.raises(Missing, match=r"mine\.ipynb, other\.ipynb"):
        find_notebook(tmp_path, bundle)
    (tmp_path / "tiny.ipynb").write_text("{}")
    assert find_notebook(tmp_path, bundle)[0].name == "tiny.ipynb"


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "real.ipynb").write_text("{}")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "real.ipynb")
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    assert read_file(tmp_path / "real.ipynb") == b"{}"
    for name in ("link", "pipe", "folder"):
        with pytest.raises(Unreadable):
            read_file(tmp_path / f"{name}.ipynb")


def test_a_damaged_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="holds 0"):
        Bundle.load(tmp_path)
    (tmp_path / "a.ipynb").write_text("{")
    with pytest.raises(BundleError, match="cannot be read"):
        Bundle.load(tmp_path)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"answers": {"answer_size": {}}}',
        b'{"answers": {"answer_size": 3}}',
        b"\xff",
        b"[" * 99_999,
    ],
    ids=["empty", "cut", "list", "null", "no choices", "number", "no text", "deep"],
)
def test_damaged_short_answers_are_named(tmp_path: Path, damaged: bytes) -> None:
    write_source(tiny_course(tmp_path / "course").lessons[0], tmp_path / "source")
    Bundle.load(tmp_path / "source")
    (tmp_path / "source" / "lesson_data.json").write_bytes(damaged)
    with pytest.raises(BundleError, match=r"lesson_data\.json is damaged .*; put back the file"):
        Bundle.load(tmp_path / "source")


def test_every_written_answer_that_is_more_than_the_stub_waits_for_a_person(
    bundle: Bundle,
) -> None:
    notebook = notebook_with(bundle)
    for text, waits in (("YOUR ANSWER HERE", False), ("Because it is.", True), ("  ", False)):
        for cell in notebook.cells:
            if grade_id(cell) == "written_why":
                cell.source = text
        assert graded(bundle, notebook).needs_manual_grade is waits


@pytest.mark.parametrize("backend", ["inline", "widget", "notebook", "TkAgg", ""])
def test_a_magic_of_a_kernel_does_not_stop_its_cell(bundle: Bundle, backend: str) -> None:
    """The cell of the answer goes on below it."""
    magics = f"%matplotlib {backend}\n%config InlineBackend.figure_format = 'retina'\n"
    answers = {"double": magics + bundle.exercises["double"]}
    verdict = graded(bundle, notebook_with(bundle, answers))
    assert points(verdict) == FULL
    assert not any(run.error for run in verdict.runs), [run.error for run in verdict.runs]


def test_the_setup_cell_is_the_graders(bundle: Bundle) -> None:
    notebook = notebook_with(bundle)
    (number,) = (n for n, cell in enumerate(notebook.cells) if "import numpy" in cell.source)
    del notebook.cells[number]
    assert points(graded(bundle, notebook)) == FULL


def test_an_error_that_an_answer_cell_did_not_write_is_not_a_stub(bundle: Bundle) -> None:
    """Only a `raise NotImplementedError` of the cell's own says that nothing was tried."""
    library = (
        "from numbers import Number\nimport asyncio\nasyncio.AbstractEventLoop().run_forever()"
    )
    verdict = graded(bundle, notebook_with(bundle, {"double": library}))
    assert outcome(verdict, "test_double") == "missing"
    verdict = graded(bundle, notebook_with(bundle, {"double": "raise NotImplementedError"}))
    assert outcome(verdict, "test_double") == "not_attempted"


def test_what_torch_has_not_implemented_is_not_called_unwritten(bundle: Bundle) -> None:
    whole = "import torch\ndef double(x):\n    return torch.tensor([1, 2]).softmax(-1)\n"
    verdict = graded(bundle, notebook_with(bundle, {"double": whole}))
    assert outcome(verdict, "test_double") == "failed"
    (said,) = [test.message for test in verdict.tests if test.grade_id == "test_double"]
    assert "torch asks for floating point numbers here" in said


@pytest.mark.parametrize(
    "last",
    [
        "type = 'causal'; list = [1, 2]; len = tuple = 3",
        "def quadruple(x):\n    return x",
        "double = None; np = 'a tune'",
        "import builtins\nbuiltins.tuple = builtins.list = None",
    ],
)
def test_an_exercise_is_tested_as_it_was_where_its_checks_stand(bundle: Bundle, last: str) -> None:
    """What a later cell binds anew does not count against it."""
    notebook = with_cell(bundle, last, len(bundle.notebook.cells))
    verdict = graded(bundle, notebook)
    assert points(verdict) == FULL, [test.message for test in verdict.tests]


def test_what_a_later_cell_mends_counts_too_and_is_said(bundle: Bundle) -> None:
    notebook = notebook_with(bundle, {"double": "def double(x):\n    return 3 * x\n"})
    right = nbformat.v4.new_code_cell(bundle.exercises["double"])
    notebook.cells.append(right)
    verdict = graded(bundle, notebook)
    assert points(verdict) == FULL
    assert "As your notebook ends this passes" in message(verdict, "test_double")


def test_a_short_answer_that_is_given_later_counts(bundle: Bundle) -> None:
    """Where none stands at its check, what the notebook ends with is the first and only guess."""
    for at_the_check in ("answer_size = None\n", "pass\n"):
        notebook = notebook_with(bundle, {"answer_size": at_the_check})
        notebook.cells.append(nbformat.v4.new_code_cell('answer_size = "b"'))
        assert points(graded(bundle, notebook)) == FULL


THREAD = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"


@pytest.mark.parametrize("begins", [THREAD, "import tqdm\nfor _ in tqdm.tqdm(range(3)): pass"])
@pytest.mark.parametrize("last", ["type = 'causal'; len = tuple = 3", "def double(x): return x"])
def test_a_thread_costs_no_point(bundle: Bundle, begins: str, last: str) -> None:
    """Of a box with one no copy can be had: the notebook runs once more, up to each check."""
    notebook = with_cell(bundle, last, len(bundle.notebook.cells))
    notebook.cells.insert(1, nbformat.v4.new_code_cell(begins))
    verdict = graded(bundle, notebook)
    assert points(verdict) == FULL, [test.message for test in verdict.tests]


def test_a_thread_gives_no_second_guess(bundle: Bundle) -> None:
    for at_the_check, at_the_end, due in (("a", "b", 0.0), ("b", "a", 1.0)):
        notebook = notebook_with(bundle, {"answer_size": f"answer_size = {at_the_check!r}\n"})
        notebook.cells.insert(1, nbformat.v4.new_code_cell(THREAD))
        notebook.cells.append(nbformat.v4.new_code_cell(f"answer_size = {at_the_end!r}"))
        assert points(graded(bundle, notebook)) == {**FULL, "answer_size": due}


def test_an_error_after_hidden_tests_is_not_shown(bundle: Bundle) -> None:
    """What cells say is what they said before any hidden test was run."""
    wrong = (
        "import pathlib\nprint('told' if pathlib.Path('seen').exists() else 'quiet')\n"
        "def double(x):\n    import os, pathlib\n    pathlib.Path('seen').touch()\n"
        "    if np.any(x < 0): os._exit(1)\n    return 2 * x\n"
    )
    verdict = graded(bundle, notebook_with(bundle, {"double": wrong}))
    assert [run.output for run in verdict.runs if "quiet" in run.output]
    assert not any("told" in run.output for run in verdict.runs)
