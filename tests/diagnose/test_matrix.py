"""The answer matrix: a cell is computed once, and anew when what it comes from changes."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from autograder.authors.trial import ALL, Share, trial, try_all, unproved
from autograder.build.beside import data_of
from autograder.course import dependencies
from autograder.course.dependencies import Dependencies, without_docstrings
from autograder.course.lessons import Course, Lesson
from autograder.diagnose import catalogue, matrix
from autograder.diagnose.lock import LOCK_FILE, Lock, LockError
from autograder.diagnose.matrix import MAKE_VALUES, Matrix
from autograder.diagnose.matrix_cache import MatrixCache
from lesson_kit.setting import pack, unpack

from ..conftest import COURSE, SHARD
from ..tiny import MISCONCEPTIONS, tiny_course

KNOWN = """
from autograder.course.implementations import exercise, wrong
with exercise("double"):
    wrong("thrice", {"2 * x": "3 * x"}, "It is three times x.")
with exercise("quadruple"):
    wrong("half_of_it", {"double(double(x))": "double(x)"}, "You double once.")
"""
ANSWER = {"quadruple": "def quadruple(x):\n    return double(x)\n"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRADER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    lesson = tiny_course(tmp_path).lesson("01")
    (lesson.path / "misconceptions.py").write_text(KNOWN + MISCONCEPTIONS)
    return tmp_path


def loaded(folder: Path) -> Lesson:
    return Course.load(folder).lesson("01")


def change(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / "lessons" / "01-tiny" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def key(folder: Path, seed: int = 1, *, as_graded: bool = True, box: str = "") -> str:
    with Matrix(loaded(folder)) as opened:
        return opened.key(ANSWER, "test_quadruple", seed, as_graded=as_graded, box=box)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Is it four times x?", "Four times?"),  # its test
        ('"points": 4', '"points": 3'),  # what that is worth
        ("return 2 * x", "return x + x"),  # what the answer builds on
        ("import numpy as np\n", "import numpy as np\nnp.seterr(all='raise')\n"),  # a setting
        ("import numpy as np\n", "import numpy.ma as np\n"),  # what a name stands for
    ],
)
def test_a_key_moves_with_the_code_that_a_cell_comes_from(course: Path, old: str, new: str) -> None:
    before = key(course)
    change(course, "tiny.py", old, new)
    assert key(course) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Because.", "# For this reason."),
        ("a demonstration is not run", "a picture is not drawn"),
        ("Is it twice x?", "Twice?"),  # another exercise's test
        ('answer_size = "b"', 'answer_size = "c"'),
        ("import math\n", "import math\nimport json\n"),
    ],
)
def test_a_key_stays_when_nothing_changes_that_reaches_the_cell(
    course: Path, old: str, new: str
) -> None:
    before = key(course)
    change(course, "tiny.py", old, new)
    assert key(course) == before


def test_a_key_moves_with_how_a_cell_is_computed(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [key(course), key(course, 2), key(course, as_graded=False), key(course, box="0")]
    with Matrix(loaded(course)) as opened:
        other = {"quadruple": ANSWER["quadruple"].replace("double(x)", "3 * x")}
        keys.append(opened.key(other, "test_quadruple", 1, as_graded=True))
        keys.append(opened.key(ANSWER, "test_double", 1, as_graded=True))
    monkeypatch.setattr(matrix, "makers", lambda: "another engine")
    keys.append(key(course))
    assert len(set(keys)) == len(keys)


def test_the_key_of_a_cell_that_uses_a_battery_moves_with_the_batteries(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = f"import math\nfrom {dependencies.FOR_TESTS[0]} import assert_refused\n"
    change(course, "tiny.py", "import math\n", imports)

    def keys() -> tuple[str, str]:
        with Matrix(loaded(course)) as opened:
            tests = ("test_quadruple", "test_double")
            first, second = (opened.key(ANSWER, t, 1, as_graded=True) for t in tests)
            return first, second

    without = keys()
    asserted = "assert_close(result, 4"
    change(course, "tiny.py", asserted, f"assert_refused(double, {{}})\n{asserted}")
    before = keys()
    monkeypatch.setattr(dependencies, "_code_of", lambda module: f"{module}, changed")
    after = keys()
    assert after[0] != before[0], "the cell that uses one"
    assert without[1] == before[1] == after[1], "the cell that uses none"


def test_the_code_that_makes_values_counts_without_its_words(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    digests = []
    for text in ('"""Says."""\nx = 1  # so\n', '"""Says more."""\nx = 1\n', "x = 2\n"):
        path.write_text(text)
        digests.append(without_docstrings(path))
    assert digests[0] != digests[2]
    assert digests[0] == digests[1]


def test_another_library_or_kernel_is_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    for name, value in [
        ("nothing", None),
        ("_versions", ["numpy 1.0"]),
        ("_numpy_features", ["none"]),
        ("_kernels", ["other"]),
    ]:
        if value is not None:
            monkeypatch.setattr(matrix, name, lambda *_, value=value: value)
        matrix.machine.cache_clear()
        seen.add(matrix.machine("import numpy"))
    matrix.machine.cache_clear()
    assert len(seen) == 4


def test_a_cell_is_computed_once(course: Path) -> None:
    for computed in (2, 0):
        with Matrix(loaded(course)) as opened:
            outcomes = opened.outcomes(ANSWER, ["test_quadruple", "test_double"], 1)
            assert opened.computed == computed
            assert [one.passed for one in outcomes.values()] == [False, True]
    with Matrix(loaded(course), anew=True) as opened:
        assert opened.outcomes(ANSWER, ["test_quadruple"], 1) == {
            "test_quadruple": outcomes["test_quadruple"]
        }
        assert opened.computed == 1


def test_a_cell_does_not_depend_on_the_tests_before_it() -> None:
    lesson = COURSE.lesson("05")
    tests = catalogue.graded_cells(lesson, "MultiHeadAttention")[:3]
    with Matrix(lesson, anew=True) as opened:
        wrong = catalogue.entries(lesson)["MultiHeadAttention"][0]
        together = opened.of(wrong, tests, 1)
        alone = {test: opened.of(wrong, [test], 1)[test] for test in reversed(tests)}
    assert together == alone


class Watched(Matrix):
    """Notes which of the package's modules run while a cell is computed."""

    ran: ClassVar[set[str]] = set()

    def _computed(self, *args: object) -> matrix.Outcome:
        def note(frame: object, event: str, argument: object) -> None:
            self.ran.add(frame.f_globals.get("__name__", ""))  # type: ignore[attr-defined]

        sys.setprofile(note)
        try:
            return super()._computed(*args)  # type: ignore[arg-type]
        finally:
            sys.setprofile(None)


def test_seaborn_is_imported_when_a_cell_draws_with_it(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    monkeypatch.setattr(matrix, "WHEN_USED", ("colorsys", "no_such_library"))
    change(course, "tiny.py", "import numpy as np\n", "import colorsys as cs\nimport numpy as np\n")
    with Matrix(loaded(course)) as opened:
        assert not opened.run.stopped
        assert "rgb_to_hsv" not in vars(sys.modules["colorsys"])
        red = "def double(x):\n    assert cs.rgb_to_hsv(1, 0, 0) == (0, 1, 1)\n    return 2 * x\n"
        assert opened.run.errors({"double": red}, 1, ["test_double"])["test_double"] is None
    assert "rgb_to_hsv" in vars(sys.modules["colorsys"])
    assert "no_such_library" not in sys.modules


def test_the_modules_that_take_part_in_a_value_are_in_its_key() -> None:
    lesson = COURSE.lesson("02")
    # A quarter of the answers, sampled by the commit.
    share = ALL if (shard := os.environ[SHARD]) == "all" else Share(int(shard), 4)
    with Watched(lesson, anew=True) as opened:
        trial(opened, "soft_lookup", seeds=[1], share=share)
        trial(opened, "answer_again_room", seeds=[1])
    ours = {name for name in Watched.ran if name.startswith(("autograder.", "lesson_kit."))}
    assert len(ours) > 8
    # The lesson is read, and the matrix asks; that says what is computed, and stands in the key.
    asks = ("autograder.course.", "autograder.notebooks", "autograder.diagnose.matrix")
    asks += dependencies.FOR_TESTS  # in the key of each cell that uses one
    # What a student reads of a check that passes; and answers of earlier lessons, as the key has
    # them, which run under that name.
    shows = {"lesson_kit.shown", "lesson_kit.earlier"}
    assert {name for name in ours - set(MAKE_VALUES) if not name.startswith(asks)} == shows


def built(folder: Path) -> Lesson:
    """The tiny lesson with its release and lock, as a build leaves them."""
    lesson = loaded(folder)
    path = catalogue.released_path(lesson)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data_of(lesson))
    catalogue.lock(lesson)
    return lesson


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise AssertionError("a cell is computed")

    monkeypatch.setattr(Matrix, "_computed", refuse)
    return None


def test_what_is_locked_is_not_computed(course: Path, nothing_runs: None) -> None:
    with pytest.raises(AssertionError, match="a cell is computed"):
        catalogue.catalogue(loaded(course))


def test_a_lock_gives_what_the_matrix_gave(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = catalogue.catalogue(loaded(course))
    lesson = built(course)
    monkeypatch.setattr(Matrix, "_computed", lambda *_: pytest.fail("a cell is computed"))
    after = catalogue.catalogue(lesson)
    assert [(m.name, m.sentence, m.claims) for m in after] == [
        (m.name, m.sentence, m.claims) for m in before
    ]
    assert [{t: s for t, s in m.seen.items() if s} for m in after] == [
        {t: s for t, s in m.seen.items() if s} for m in before
    ]
    assert catalogue.not_locked([lesson]) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "anew"),
    [
        ("tiny.py", "# Because.", "# For this reason.", set()),
        ("tiny.py", "Is it four times x?", "Four times?", {"quadruple"}),
        ("tiny.py", "return 2 * x", "return 2*x+0", {"double", "quadruple"}),
        ("misconceptions.py", "You double once.", "It is doubled once.", set()),
        ("misconceptions.py", "3 * x", "x * 3", {"double"}),
    ],
)
def test_a_lock_fits_until_what_it_comes_from_changes(
    course: Path, name: str, old: str, new: str, anew: set[str]
) -> None:
    lesson = built(course)
    locked = Lock.read(lesson, catalogue.released(lesson)).exercises
    if old == "return 2 * x":
        change(course, "misconceptions.py", '{"2 * x"', '{"2*x+0"')
    change(course, name, old, new)
    now = loaded(course)
    found = {
        one
        for one in ("double", "quadruple")
        if not catalogue.fits(locked[one], catalogue.made_from(Dependencies(now), one))
    }
    assert found == anew
    assert bool(catalogue.not_locked([now])) is bool(anew)


def test_a_changed_test_is_looked_at_alone(
    course: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built(course)
    change(course, "tiny.py", "Is it twice x?", "Twice x?")
    computed: list[str] = []
    compute = Matrix._computed

    def noted(self: Matrix, answers: object, test: str, *rest: object) -> matrix.Outcome:
        computed.append(test)
        return compute(self, answers, test, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Matrix, "_computed", noted)
    monkeypatch.setenv("AUTOGRADER_CACHE", str(tmp_path / "empty"))
    lesson = built(course)
    assert set(computed) == {"test_double"}
    with Matrix(lesson) as opened:
        anew = catalogue.looked_at(opened, "double")
    assert set(computed) == {"test_double", "test_double_errors"}
    assert seen_by(catalogue.known_in(lesson)["double"]) == seen_by(anew) != {}


def seen_by(known: catalogue.Known) -> dict[tuple[str, str], object]:
    """What tests saw of each mistake, as graded."""
    every = ((name, test, its) for name, seen in known.graded.items() for test, its in seen.items())
    return {(name, test): pieces for name, test, pieces in every if pieces}


def test_what_was_proved_stands_in_the_lock_until_it_changes(course: Path) -> None:
    hidden = "### BEGIN HIDDEN TESTS"
    change(course, "tiny.py", hidden, f"### SIDE CONDITION: counts later.\n{hidden}")
    lesson = built(course)
    assert unproved(lesson) == ["double", "quadruple", "answer_size"]
    wanted = [(lesson, name) for name in lesson.exercises]
    assert [tried.complaints for _, tried in try_all(wanted)] == [[], [], []]
    assert unproved(loaded(course)) == []
    change(course, "misconceptions.py", "You double once.", "It is doubled once.")
    assert unproved(loaded(course)) == ["quadruple"]


def test_what_does_not_hold_is_not_proved(course: Path) -> None:
    (course / "lessons" / "01-tiny" / "misconceptions.py").write_text(
        KNOWN.replace("3 * x", "x + x") + MISCONCEPTIONS
    )
    lesson = built(course)
    ((_, tried),) = try_all([(lesson, "double")])
    assert any("thrice is accepted" in complaint for complaint in tried.complaints)
    assert "double" in unproved(lesson)


def test_a_mistake_that_goes_takes_its_place_in_the_lock_along(course: Path) -> None:
    """The file beside the notebook has fewer mistakes then than the lock refers to."""
    path = course / "lessons" / "01-tiny" / "misconceptions.py"
    path.write_text(KNOWN + MISCONCEPTIONS)
    before = Lock.read(lesson := built(course), catalogue.released(lesson)).exercises["double"]
    path.write_text(MISCONCEPTIONS)
    after = Lock.read(lesson := built(course), catalogue.released(lesson)).exercises["double"]
    assert len(after.seen) < len(before.seen) and len(after.handed_out) < len(before.handed_out)


def test_a_lock_beside_another_release_says_nothing_of_what_was_released(course: Path) -> None:
    """As after a merge that took the lock of one side and the released file of the other."""
    lesson = built(course)
    seen = seen_by(catalogue.known_in(lesson)["double"])
    before = catalogue.released_path(lesson).read_text()
    change(course, "tiny.py", "Is it twice x?", "Twice x?")
    lesson = built(course)
    anew = seen_by(catalogue.known_in(lesson)["double"])
    assert anew != seen
    catalogue.released_path(lesson).write_text(before)
    kept = Lock.read(lesson, catalogue.released(lesson)).exercises["double"].seen
    assert all("test_double" not in seen for seen in kept.values())
    assert seen_by(catalogue.known_in(lesson)["double"]) == anew


def leads_nowhere(text: str) -> str:
    tree = json.loads(text)
    seen = unpack(tree["exercises"]["double"]["seen"])
    (mistake, _) = seen.popitem()
    tree["exercises"]["double"]["seen"] = pack({**seen, mistake: {"test_double": 9}})
    return json.dumps(tree)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"format": 1', '"format": 7'),
        lambda text: text.replace('"made_from"', '"made of"'),
        leads_nowhere,
        lambda text: text.replace('"seen": "', '"seen": "QlpoO'),
        lambda text: "[]",
        lambda text: "",
    ],
)
def test_a_lock_that_cannot_be_used_is_named_with_what_to_do(course: Path, damage: object) -> None:
    lesson = built(course)
    path = lesson.path / LOCK_FILE
    text = path.read_text()
    damaged = damage(text)  # type: ignore[operator]
    assert damaged != text
    path.write_text(damaged)
    with pytest.raises(LockError) as refused:
        catalogue.catalogue(lesson)
    assert str(path) in str(refused.value)
    assert "autograder build --lesson 01" in str(refused.value)


def test_results_are_kept_for_every_clone(tmp_path: Path) -> None:
    first, second = MatrixCache(tmp_path), MatrixCache(tmp_path)
    first.put({str(number): "text" for number in range(1200)})
    assert len(second.get(map(str, range(2000)))) == 1200


def test_without_a_place_to_write_results_are_kept_for_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    results = MatrixCache(tmp_path / "file" / "folder")
    results.put({"key": "text"})
    assert results.get(["key"]) == {"key": "text"}


def test_a_damaged_file_of_results_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "answers.sqlite3").write_bytes(b"no database, but long enough to be one" * 100)
    results = MatrixCache(tmp_path)
    results.put({"key": "text"})
    assert results.get(["key"]) == {"key": "text"}
    assert sqlite3.connect(tmp_path / "answers.sqlite3").execute(
        "select count(*) from results"
    ).fetchone() == (1,)
