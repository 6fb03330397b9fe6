"""The start page: the lessons in order, and a student's own progress as saved."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbgrader.utils import compute_checksum

from autograder.build.build import build
from autograder.build.own_work import keep_own_work
from autograder.build.start_page import SETTINGS_FOLDER, START_FILE
from autograder.course.lessons import Course
from autograder.course.release import MANIFEST_FILE, read_manifest, record_release, release_in
from autograder.notebooks import is_answer, is_test, is_written
from lesson_kit.course_map import as_map, refresh
from lesson_kit.course_progress import (
    FORMER,
    LESSON,
    Progress,
    has_code,
    is_begun,
    progress_of,
)
from lesson_kit.ready import where_you_were

from ..conftest import COURSE, ROOT
from ..hand_outs import TINY, cell_named, handed_out, read, type_in


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handed_out(tmp_path_factory.mktemp("release"))


@pytest.fixture
def course(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "course"))


def shown(page: Path) -> str:
    (cell,) = [cell for cell in read(page).cells if cell.cell_type == "code"]
    return str(cell.outputs[0].data["text/markdown"])


def test_the_page_of_the_course_lists_its_lessons_in_order() -> None:
    page = ROOT / "course" / START_FILE
    nbformat.validate(read(page))
    first = read(page).cells[0]
    assert f"](attachment:{next(iter(first.attachments))})" in first.source
    path, details = shown(page).split("<details>")
    links = [f"{one.folder}/{one.notebook_name}.ipynb" for one in COURSE.lessons]
    assert sorted(re.findall(r"○\xa0\[[^]]*\]\(([^)]*)\)", path)) == links
    assert path.startswith(f"{refresh()}**Begin with ")
    assert "|" not in path, "a map, not a table"
    rows = [line for line in details.splitlines() if line.startswith("| [")]
    assert len(rows) == len(COURSE.lessons)
    for row, lesson in zip(rows, COURSE.lessons):
        link = f"{lesson.folder}/{lesson.notebook_name}.ipynb"
        assert f"| [{lesson.number:02d} {lesson.title}]({link}) | {lesson.about} |" in row
        assert f"| {lesson.minutes} |" in row
        assert (ROOT / "course" / link).is_file()
        for needed in lesson.needs:
            assert str(int(needed.split("-")[0])) in row.split("|")[4]
        answers = sum(is_answer(cell) or is_written(cell) for cell in lesson.notebook.cells)
        checks = sum("HIDDEN TESTS" not in cell.source for cell in lesson.tests.values())
        one = progress_of(ROOT / "course" / link)
        assert (one.begun, one.exercises, one.passing, one.checks) == (0, answers, 0, checks)


def test_a_cell_counts_as_begun_when_nbgraders_checksum_differs(course: Path) -> None:
    given = ROOT / "course"
    lessons = (given / one.folder / f"{one.notebook_name}.ipynb" for one in COURSE.lessons)
    notebooks = [course / TINY, *lessons]
    cells = [cell for path in notebooks for cell in read(path).cells]
    answers = [cell for cell in cells if is_answer(cell) or is_written(cell)]
    assert len(answers) > 10
    for cell in answers:
        assert not is_begun(cell)
        cell.source += "é"
        assert is_begun(cell)
        cell.metadata.nbgrader["checksum"] = compute_checksum(cell)
        assert not is_begun(cell), "nbgrader counts otherwise"


def ran(path: Path, name: str, *, error: bool = False) -> None:
    """Save a notebook as if one of its cells had been run."""
    notebook = read(path)
    cell = cell_named(notebook, name)
    cell.execution_count = 3
    if error:
        cell.outputs = [nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]
    nbformat.write(notebook, path)


def test_progress_is_what_was_saved(course: Path) -> None:
    one = progress_of(course / TINY)
    assert (one.begun, one.exercises, one.passing, one.checks) == (0, 4, 0, 3)
    type_in(course / TINY, double="def double(x):\n    return 2 * x\n", written_why="Because.")
    ran(course / TINY, "test_double")
    ran(course / TINY, "test_quadruple", error=True)
    ran(course / TINY, "test_double_errors")  # a hidden check: nothing was seen to pass
    one = progress_of(course / TINY)
    assert (one.begun, one.passing, one.done) == (2, 1, False)
    assert (one.title, one.minutes, one.needs) == (
        "01 Tiny",
        "5",
        "Python",
    )
    assert as_map([one]).startswith("**Go on with [01 Tiny](01-tiny/tiny.ipynb).**\n")
    assert "◐\xa0[01 Tiny](01-tiny/tiny.ipynb) (1\xa0of\xa03)" in as_map([one])
    assert one.next_step[0] == "quadruple"
    ahead = replace(one, title="11 Ahead")  # a look ahead leads nobody off the core path
    assert as_map([replace(one, core=True), ahead]).startswith("**Go on with [01 Tiny]")
    one.begun, one.passing = one.exercises, one.checks
    assert "More checks run when your work is graded." in as_map([one])
    assert "●\xa0[01 Tiny]" in as_map([one])


def test_the_setup_cell_says_where_the_student_was(course: Path) -> None:
    folder = course / "01-tiny"
    assert where_you_were(folder)[0] == "Ready."
    assert where_you_were(course) == ("", "")  # the start page uses the kit too
    type_in(course / TINY, double="def double(x):\n    return 2 * x\n")
    ran(course / TINY, "test_double")
    said, plain = where_you_were(folder)
    cell = cell_named(read(course / TINY), "quadruple")
    begin = "Ready. 1 of 3 visible checks pass here, as saved. Go on with"
    assert said == f"{begin} [quadruple](tiny.ipynb#cell-id={cell.id})."
    assert plain == f"{begin} quadruple."
    type_in(course / TINY, quadruple="def quadruple(x):\n    return x\n", written_why="Because.")
    assert "[quadruple](tiny.ipynb#cell-id=" in where_you_were(folder)[0]  # begun: to its check
    type_in(course / TINY, answer_size='answer_size = "b"')
    for name in ("quadruple", "answer_size"):
        ran(course / TINY, f"test_{name}")
    assert where_you_were(folder)[0] == "Ready. All 3 visible checks pass here."
    (course / TINY).write_text("{")
    assert where_you_were(folder)[0] == "Ready."


def test_a_solved_puzzle_has_its_tick(tmp_path: Path) -> None:
    judge = nbformat.v4.new_code_cell("puzzle(...)", metadata={"tags": ["puzzle"]})
    said = {"text/plain": "`puzzle_x` is solved, for all 2 examples."}
    for outputs, solved in (([], False), ([nbformat.v4.new_output("display_data", said)], True)):
        judge.outputs = outputs
        path = tmp_path / "01-x" / "x.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[judge])))
        lesson = progress_of(path)
        assert lesson.puzzle_solved == solved
        assert ("✓ its puzzle is solved" in as_map([lesson])) == solved


def test_what_is_off_the_core_path_stands_by_what_it_needs(course: Path) -> None:
    notebook = read(course / TINY)
    other = progress_of(course / TINY)
    assert not other.core
    notebook.metadata[LESSON]["core_minutes"] = 3
    nbformat.write(notebook, course / TINY)
    assert progress_of(course / TINY).core
    said = as_map([other, Progress("02/b.ipynb", "02 B", exercises=1, core=True)])
    assert said.startswith("**Begin with [02 B](02/b.ipynb).**")
    assert "**The core path**\n\n○\xa0[02 B](02/b.ipynb)\n" in said
    assert "**After Python**\n\n○\xa0[01 Tiny](01-tiny/tiny.ipynb)\n" in said
    assert "core path" not in as_map([Progress("02/b.ipynb", "02 B")])


def test_what_is_left_to_do_is_listed_with_a_sentence_and_a_link(
    course: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the boxes said when the checks ran last; nothing is run for the page."""
    wrong = {"double": "def double(x):\n    return 3 * x\n", "answer_size": 'answer_size = "b"'}
    type_in(course / TINY, **wrong)
    notebook = read(course / TINY)
    resources = {"metadata": {"path": str((course / TINY).parent)}}
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    running = nbformat.v4.new_notebook(cells=cells[:3])
    NotebookClient(running, timeout=120, allow_errors=True, resources=resources).execute()
    nbformat.write(notebook, course / TINY)
    check = cell_named(notebook, "test_double")
    assert "fork" not in capfd.readouterr().err, "a check that was only tried showed its box"
    said = as_map([progress_of(course / TINY)]).split("left to do:\n\n")[1].splitlines()
    name, _, why = said[0].partition(": ")
    assert name == f"- [double](01-tiny/tiny.ipynb#cell-id={check.id})"
    assert why.endswith((".", "?")) and why in " ".join(check.outputs[0].data["text/plain"].split())
    assert said[1:3] == [
        "- [answer_size](01-tiny/tiny.ipynb#cell-id="
        f"{cell_named(notebook, 'test_answer_size').id}): its check has not run yet",
        "- not begun: quadruple, written_why",
    ]


def test_what_is_not_written_is_listed_where_every_check_passes() -> None:
    lesson = Progress("a.ipynb", "01 A", exercises=2, begun=1, checks=1, passing=1)
    lesson.untouched = ["written_why"]
    assert "left to do:\n\n- not begun: written_why" in as_map([lesson])
    lesson.passing = 0  # the check of what is begun comes first, and would be listed
    assert "written_why" not in as_map([lesson])


def test_a_notebook_that_was_renamed_is_found(course: Path) -> None:
    type_in(course / TINY, double="def double(x):\n    return 2 * x\n")
    aside = course / "01-tiny" / "a.before-update-2026.ipynb"
    aside.write_bytes((course / TINY).read_bytes())
    (course / "01-tiny" / "other.ipynb").write_text("{}")
    (course / TINY).rename(course / "01-tiny" / "tiny (mine).ipynb")
    one = progress_of(course / TINY)
    assert (one.link, one.begun, one.problem) == ("01-tiny/tiny%20(mine).ipynb", 1, "")


def test_what_a_lesson_is_comes_from_metadata_and_not_from_its_text(course: Path) -> None:
    notebook = read(course / TINY)
    notebook.cells[0].source = "# My own notes\n\nNothing of the lesson's heading is left."
    nbformat.write(notebook, course / TINY)
    one = progress_of(course / TINY)
    assert (one.title, one.minutes) == ("01 Tiny", "5")
    assert one.about == "Doubling, and what can be built on it."
    notebook.metadata[FORMER] = notebook.metadata.pop(LESSON)
    nbformat.write(notebook, course / TINY)
    assert progress_of(course / TINY) == one
    for damaged in ("text", {"minutes": None}, None):
        notebook.metadata[FORMER] = damaged
        nbformat.write(notebook, course / TINY)
        one = progress_of(course / TINY)
        assert not one.problem and one.exercises == 4
    assert (one.title, one.minutes, one.about) == ("01 tiny", "", "")
    assert "[01 tiny](01-tiny/tiny.ipynb)" in as_map([one])


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"cells": [3]}', b"\xff", None])
def test_a_damaged_notebook_has_its_line(course: Path, content: bytes | None) -> None:
    if content is None:
        (course / TINY).unlink()
    else:
        (course / TINY).write_bytes(content)
    one = progress_of(course / TINY)
    assert one.problem
    assert f"({one.problem})" in as_map([one])


def test_the_page_runs_with_what_is_in_the_course_folder(course: Path) -> None:
    """In a process without this package, as the kernel of the page would."""
    type_in(course / TINY, double="def double(x):\n    return 2 * x\n")
    (cell,) = [cell for cell in read(course / START_FILE).cells if cell.cell_type == "code"]
    code = (
        "import sys; sys.modules['autograder'] = None; sys.path.insert(0, '.')\n"
        "import IPython.display; IPython.display.display = lambda one: print(one.data)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + cell.source],
        cwd=course,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "◐\xa0[01 Tiny](01-tiny/tiny.ipynb) (0\xa0of\xa03)" in done.stdout
    assert (course / "lesson_kit" / "course_progress.py").is_file()


def test_the_make_target_opens_the_page() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"jupyter lab course --LabApp.default_url=/lab/tree/{START_FILE} " in makefile
    assert f'--LabApp.app_settings_dir="$(CURDIR)/course/{SETTINGS_FOLDER}"\n' in makefile


def test_the_manifest_is_that_of_the_files_and_stays_under_other_work(course: Path) -> None:
    known = read_manifest(course)
    assert known == release_in(course)
    assert known is not None
    points = {cell.grade_id: cell.points for cell in known.cells[TINY] if cell.points}
    assert points == {"test_double": 2.0, "test_quadruple": 4.0, "test_answer_size": 1.0}
    type_in(course / TINY, double="def double(x):\n    return 2 * x\n")
    record_release(
        course, known.package, "02-other"
    )  # another lesson was built; this one was worked in
    assert read_manifest(course) == known
    (course / TINY).write_text("half of it")
    record_release(course, known.package, "02-other")
    assert read_manifest(course) == known


def test_building_again_keeps_what_was_written_in_course(course: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5)
    assert keep_own_work(course, None, now)[1] == []
    type_in(course / TINY, double="def double(x):\n    return 2 * x\n")
    (course / "01-tiny" / "notes.txt").write_text("mine")
    work = (course / TINY).read_bytes()
    kept, names = keep_own_work(course, None, now)
    assert names == ["01-tiny/notes.txt", TINY]
    assert kept == course.parent / "course-before-build-20260102-030405"
    assert (kept / TINY).read_bytes() == work
    assert keep_own_work(course, "02-other", now)[1] == []


def test_a_build_writes_page_and_manifest_and_keeps_own_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = handed_out(tmp_path)
    fresh = {path.name: path.read_bytes() for path in course.iterdir() if path.is_file()}
    type_in(course / TINY, double="def double(x):\n    return 2 * x\n")
    work = (course / TINY).read_bytes()
    told: list[str] = []

    # Whether the solved version runs is not what this test is about.
    monkeypatch.setattr("autograder.build.build._same_cells", lambda *arguments: True)
    (tmp_path / "solutions" / "01-tiny").mkdir(parents=True)
    build(Course.load(tmp_path), tmp_path, say=told.append)
    made = {path.name: path.read_bytes() for path in course.iterdir() if path.is_file()}
    # What was handed out has the kit as well; a build's own manifest is that of its files.
    assert made.pop(MANIFEST_FILE) != fresh.pop(MANIFEST_FILE)
    assert made == fresh
    assert read_manifest(course) == release_in(course)
    assert sorted(fresh) == [START_FILE]
    (kept,) = tmp_path.glob("course-before-build-*")
    assert (kept / TINY).read_bytes() == work
    assert str(kept) in told[0]
    assert not is_begun(cell_named(read(course / TINY), "double"))


def test_visible_checks_are_those_with_code() -> None:
    for lesson in COURSE.lessons:
        page = read(ROOT / "course" / lesson.folder / f"{lesson.notebook_name}.ipynb")
        for cell in page.cells:
            if is_test(cell):
                source = lesson.tests[cell.metadata.nbgrader["grade_id"]].source
                assert has_code(cell.source) == ("BEGIN HIDDEN TESTS" not in source)
