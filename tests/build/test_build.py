"""What is generated is what its source says, and gives nothing away."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.build import BuildError, build, without_outputs
from autograder.build.page import NEEDS_THE_KIT
from autograder.course.implementations import alternatives, misconceptions
from autograder.course.lessons import Course, Lesson
from autograder.course.release import read_manifest, release_in
from autograder.course.standalone import lay_out
from autograder.notebooks import (
    GUESS,
    HIDDEN,
    SETUP,
    grade_id,
    is_answer,
    is_test,
    is_written,
    png_of,
    tags,
)
from lesson_kit.setting import DATA_FILE, unpack

from ..conftest import COURSE, ROOT, sampled
from ..generated import drifted, files, without_alternative_text
from ..telling import BOILERPLATE, hidden_regions, solution_regions, telling_lines
from ..tiny import COURSE_TOML, LESSON, MISCONCEPTIONS, tiny_course


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course, built elsewhere; the solved notebooks are not run for this."""
    into = tmp_path_factory.mktemp("built")
    for lesson in COURSE.lessons:
        kept = into / "solutions" / lesson.folder
        kept.mkdir(parents=True)
        name = f"{lesson.notebook_name}.ipynb"
        (kept / name).write_bytes((ROOT / "solutions" / lesson.folder / name).read_bytes())
    told: list[str] = []
    build(COURSE, into, say=told.append)
    drifted = [line for line in told if "running it" in line]
    assert not drifted, f"solutions/ differs from lessons/, run `make course`: {drifted}"
    return into


@pytest.mark.parametrize("top", ["course", "solutions"])
def test_generated_files_match_their_source(built: Path, top: str) -> None:
    assert drifted(ROOT / top, built / top) == [], "they differ; run `make course`"


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_every_picture_of_a_solved_notebook_is_told_in_words(lesson: Lesson) -> None:
    path = ROOT / "solutions" / lesson.folder / f"{lesson.notebook_name}.ipynb"
    assert without_alternative_text(nbformat.read(path, as_version=4)) == []


def test_the_manifest_is_that_of_the_released_files() -> None:
    assert release_in(ROOT / "course") == read_manifest(ROOT / "course")


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_released_mistakes_hold_fingerprints_and_sentences_only(lesson: Lesson) -> None:
    """No name, no code, no value that an exercise should give."""
    text = (ROOT / "course" / lesson.folder / DATA_FILE).read_text(encoding="utf-8")
    tree = json.loads(text)["known_mistakes"]
    sentences = {one.sentence for one in misconceptions(lesson)}
    assert tree.keys() == {"mistakes"}
    assert tree["mistakes"].keys() <= set(lesson.exercises)
    visible = {name for name, cell in lesson.tests.items() if not HIDDEN.search(cell.source)}
    for entry in (entry for found in tree["mistakes"].values() for entry in unpack(found)):
        assert entry.keys() - {"claims"} == {"sentence", "seen"}
        assert entry["sentence"] in sentences
        words = [claim.removeprefix("axis ") for claim in entry.get("claims", [])]
        assert all(word in entry["sentence"] for word in words), "they say nothing more"
        assert entry["seen"].keys() <= visible
        for check, got, tolerance in (one for found in entry["seen"].values() for one in found):
            assert re.fullmatch(r"[0-9a-f]{12}|error", check)
            assert isinstance(tolerance, float)
            assert not any(isinstance(x, str) and len(x) > 200 for x in leaves(got))


def leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from leaves(value)
    else:
        yield tree


def test_building_twice_gives_the_same_bytes(built: Path) -> None:
    before = {name: (built / name).read_bytes() for name in files(built)}
    for lesson in sampled(COURSE.lessons):
        build(COURSE, built, say=lambda text: None, only=lesson.folder)
    assert {name: (built / name).read_bytes() for name in files(built)} == before


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_solutions_hold_outputs(lesson: Lesson) -> None:
    path = ROOT / "solutions" / lesson.folder / f"{lesson.notebook_name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code if cell.source.strip())
    assert any(cell.outputs for cell in code)
    data = [output.data for cell in code for output in cell.outputs if "data" in output]
    figures = [one for one in data if png_of(one)]
    assert figures and all(one.keys() == {"text/html", "text/plain"} for one in figures)
    assert without_outputs(notebook) != notebook


def visible_lines(lesson: Lesson) -> set[str]:
    """The lines of a lesson's test cells that students see: scaffolding of hidden ones too."""
    found: set[str] = set()
    for cell in lesson.tests.values():
        found |= telling_lines(HIDDEN.sub("", cell.source))
    return found


#: What every training loop in torch says, in whatever lesson.
TRAINING = {
    "adam.step()",
    "loss.backward()",
    "nn.utils.clip_grad_norm_(model.parameters(),1.0)",
    "optimizer.step()",
    "optimizer.zero_grad()",
    "torch.manual_seed(1)",
    "torch.manual_seed(3)",
}


def shown_code(lesson: Lesson) -> set[str]:
    """The lines of cells that are neither answer nor test: also of code that is to be mended."""
    found: set[str] = set()
    for cell in lesson.notebook.cells:
        if cell.cell_type == "code" and not is_answer(cell) and not is_test(cell):
            found |= telling_lines(cell.source)
    return found


#: Lesson 10 asks for a training step and then for the test of one: steps, most of them broken, are
#: what the second is tried on, and the formula that the first is compared with tells the second.
TOLD_BY_THE_CHECK_OF = {"training_step": "judges_step", "judges_step": "training_step"}


def given_to(exercise: str, lesson: Lesson) -> set[str]:
    """What the lesson gives an exercise on purpose: the code that it mends, steps to be judged."""
    if exercise.startswith("mended_"):
        return shown_code(lesson)
    told_by = TOLD_BY_THE_CHECK_OF.get(exercise)
    if told_by is None:
        return set()
    return telling_lines(HIDDEN.sub("", lesson.tests[f"test_{told_by}"].source)) | shown_code(
        lesson
    )


#: A line of a right or wrong answer that is shorter than this stands in code of any kind.
SHORT = 25


def secrets_of(released: Lesson) -> dict[str, str]:
    """What may stand in no released file of a lesson.

    The solution and model answers of every lesson; its own hidden tests; and the wrong and
    other right answers of itself and of what comes after it.
    """
    secrets: dict[str, str] = {}
    shown = visible_lines(released) | shown_code(released)
    for one in COURSE.lessons:
        for cell in one.notebook.cells:
            if is_answer(cell):
                lines = telling_lines(solution_regions(cell.source))
                for line in lines - given_to(grade_id(cell) or "", one):
                    secrets[line] = f"the solution of {one.folder}"
            elif is_written(cell):
                for text in solution_regions(cell.source).splitlines():
                    if len(text.strip()) > 20:
                        secrets[re.sub(r"\s+", "", text)] = f"a model answer of {one.folder}"
            elif cell.cell_type == "code" and one == released:
                for line in telling_lines(hidden_regions(cell.source)) - shown:
                    if len(line) > 30:
                        secrets[line] = f"hidden tests of {one.folder}"
        if one.number >= released.number:
            for other in (*misconceptions(one), *alternatives(one)):
                for line in telling_lines(other.source) - given_to(other.exercise, one):
                    if len(line) > SHORT:
                        secrets.setdefault(line, f"{other.name} of {one.folder}")
    return {
        line: where
        for line, where in secrets.items()
        if line not in BOILERPLATE | TRAINING and not re.fullmatch(r"self\.(\w+)=\1", line)
    }


def released_lines(path: Path) -> Iterator[str]:
    if path.suffix == ".ipynb":
        for cell in nbformat.read(path, as_version=4).cells:
            yield from cell.source.splitlines()
    else:
        yield from path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_no_answer_reaches_course(lesson: Lesson) -> None:
    secrets = secrets_of(lesson)
    assert len(secrets) > 50, "the secrets were not collected"
    given_away = []
    for name in files(ROOT / "course" / lesson.folder):
        for line in released_lines(ROOT / "course" / lesson.folder / name):
            bare = re.sub(r"\s+", "", re.sub(r"\s+#.*$", "", line).strip())
            if bare in secrets:
                given_away.append(f"{name}: {line.strip()!r} is in {secrets[bare]}")
    assert not given_away, "\n".join(given_away)


def test_no_sentence_about_a_choice_can_be_read_in_course() -> None:
    from autograder.course.implementations import choices

    for lesson in COURSE.lessons:
        data = (ROOT / "course" / lesson.folder / DATA_FILE).read_text(encoding="utf-8")
        text = json.dumps(json.loads(data)["answers"], ensure_ascii=False)
        for choice in choices(lesson):
            assert choice.reason not in text
            assert choice.reason[:25] not in text


#: Pillow comes with matplotlib.
STANDARD = {"numpy", "torch", "matplotlib", "PIL", "seaborn", "IPython", *sys.stdlib_module_names}


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_a_released_lesson_needs_only_what_it_brings(lesson: Lesson) -> None:
    """Every import is of the standard library, the four libraries, IPython, or the kit."""
    allowed = STANDARD | {"lesson_kit"}
    allowed |= {"sklearn"} if lesson.number == 15 else set()  # its digits
    allowed |= {"keras"} if lesson.number == 16 else set()  # or nothing in its place
    folder = ROOT / "course" / lesson.folder
    assert {name.name for name in files(folder)} == {DATA_FILE, f"{lesson.notebook_name}.ipynb"}
    notebook = nbformat.read(folder / f"{lesson.notebook_name}.ipynb", as_version=4)
    code = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert imported("\n".join(code)) <= allowed


def test_the_kit_needs_nothing_more() -> None:
    """Sliders ask for ipywidgets, and do without (tests/kit/test_hands_on.py); torch brings
    filelock."""
    needs = {"hands_on.py": "ipywidgets", "chat_window.py": "ipywidgets"}
    needs["own_keeping.py"] = "filelock"
    for path in (ROOT / "lesson_kit").glob("*.py"):
        more = {needs[path.name]} if path.name in needs else set()
        assert imported(path.read_text(encoding="utf-8")) <= STANDARD | more, path.name


def imported(code: str) -> set[str]:
    """The packages that some code imports, but for its own."""
    modules: list[str] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.append(node.module or "")
    return {module.split(".")[0] for module in modules}


def in_a_kernel(folder: Path, *sources: str) -> list[NotebookNode]:
    """Cells that were run where a notebook of the folder runs."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    resources = {"metadata": {"path": str(folder)}}
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, allow_errors=True, resources=resources).execute()
    return list(notebook.cells)


def test_a_lesson_that_is_handed_out_works_alone_with_its_own_kit(tmp_path: Path) -> None:
    """Also where another kit is installed, and with nothing else of this package."""
    lay_out(ROOT / "course", tmp_path)
    assert release_in(tmp_path) == read_manifest(tmp_path)
    folder = tmp_path / COURSE.lesson("03").folder
    hide = "import sys; sys.modules['autograder'] = None"
    setup = "from lesson_kit.earlier import softmax\nimport lesson_kit.checks, lesson_kit.figures"
    say = "print(lesson_kit.checks.__file__, softmax.__module__)"
    *_, said = in_a_kernel(folder, hide, setup, say)
    file, module = said.outputs[0].text.split()
    assert Path(file) == folder / "lesson_kit" / "checks.py"
    assert module == "lesson_kit.earlier"


def test_a_solved_notebook_finds_in_course_what_lies_beside_that() -> None:
    solved = ROOT / "solutions" / "03-scaled-dot-product-attention"
    assert [name.suffix for name in files(solved)] == [".ipynb"]
    say = "from lesson_kit.earlier import softmax; print(softmax.__module__)"
    (said,) = in_a_kernel(solved, say)
    assert said.outputs[0].text == "lesson_kit.earlier\n"


def test_without_the_kit_the_setup_cell_says_in_one_sentence_what_to_do(tmp_path: Path) -> None:
    for lesson in COURSE.lessons:
        notebook = nbformat.read(
            ROOT / "course" / lesson.folder / f"{lesson.notebook_name}.ipynb", as_version=4
        )
        setup = next(cell.source for cell in notebook.cells if SETUP in tags(cell))
        assert NEEDS_THE_KIT in setup
    hide = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f)]"
    *_, said = in_a_kernel(tmp_path, hide, setup)
    error = said.outputs[0]
    assert error.ename == "AssertionError"
    assert error.evalue.startswith("lesson_kit is missing: run `pip install .`")


RAISES = 'raise RuntimeError("a demonstration is not run when grading")'


def two_lessons(folder: Path) -> Course:
    """The tiny course, whose demonstration raises, and a second lesson whose does not."""
    tiny_course(folder)
    second = folder / "lessons" / "02-small"
    second.mkdir()
    (second / "small.py").write_text(LESSON.replace(RAISES, 'print("drawn")'))
    (second / "misconceptions.py").write_text(MISCONCEPTIONS)
    (second / "alternatives.py").write_text("")
    more = COURSE_TOML[COURSE_TOML.index("[[lesson]]") :].replace("01-tiny", "02-small")
    with (folder / "lessons" / "course.toml").open("a") as catalogue:
        catalogue.write(more)
    return Course.load(folder)


def below(folder: Path) -> dict[str, bytes]:
    """All that a build wrote of the tiny lesson."""
    places = [folder / top / "01-tiny" for top in ("build/source", "course", "solutions")]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for place in places
        for path in place.rglob("*")
        if path.is_file()
    }


def test_a_lesson_whose_demonstration_raises_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "lessons" / "01-tiny" / "tiny.py"
    course = two_lessons(tmp_path)
    told: list[str] = []
    with pytest.raises(BuildError) as refused:
        build(course, tmp_path, say=told.append)
    first, second = str(refused.value).splitlines()
    assert first.startswith("01-tiny: the solved notebook does not run through")
    assert "lessons/01-tiny/tiny.py" in first
    assert second.endswith(f"{RAISES}: RuntimeError: a demonstration is not run when grading")
    assert below(tmp_path) == {}
    small = nbformat.read(tmp_path / "solutions" / "02-small" / "small.ipynb", as_version=4)
    assert "drawn" in str(small.cells)
    recorded = read_manifest(tmp_path / "course")
    assert recorded is not None and "02-small/small.ipynb" in recorded.files

    source.write_text(LESSON.replace(RAISES, "print(double(4))"))
    build(Course.load(tmp_path), tmp_path, say=told.append, only="01-tiny")
    whole = below(tmp_path)
    assert "solutions/01-tiny/tiny.ipynb" in whole
    source.write_text(LESSON)
    with pytest.raises(BuildError):
        build(Course.load(tmp_path), tmp_path, say=told.append, only="01-tiny")
    assert below(tmp_path) == whole

    # What an earlier build kept of a notebook that raised is not taken for its outputs.
    solved = tmp_path / "solutions" / "01-tiny" / "tiny.ipynb"
    notebook = nbformat.read(solved, as_version=4)
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="x", traceback=[])
    next(cell for cell in notebook.cells if cell.source == "print(double(4))").outputs = [error]
    nbformat.write(notebook, solved)
    source.write_text(LESSON.replace(RAISES, "print(double(4))"))
    build(Course.load(tmp_path), tmp_path, say=told.append, only="01-tiny")
    assert "running it" in told[-1]
    assert below(tmp_path)["solutions/01-tiny/tiny.ipynb"] == whole["solutions/01-tiny/tiny.ipynb"]


def test_no_prediction_is_handed_out(tmp_path: Path) -> None:
    for path in sorted((ROOT / "course").glob("*/*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if GUESS in tags(cell):
                found = re.findall(
                    r"^(?:(?:guess|puzzle)_\w+(?:, )?)+ = (.*?)(?:\s+#.*)?$", cell.source, re.M
                )
                assert found and set(", ".join(found).split(", ")) == {"None"}, (path, cell.source)
