"""`autograder update`: a new release comes, and no student's work goes."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.cli.main import main
from autograder.course.release import ManifestError, release_in
from autograder.notebooks import grade_id
from autograder.student import update
from autograder.student.update import KEPT, MERGED, NEW, REPLACED, SET, UpdateError, plan

from ..hand_outs import TINY, cell_named, everything_in, handed_out, read, type_in
from ..tiny import LESSON

NOW = datetime(2026, 1, 2, 3, 4, 5)
MISTAKES = "01-tiny/lesson_data.json"  # says what it was made from
STAMP = "20260102-030405"
ASIDE = f"01-tiny/tiny.before-update-{STAMP}.ipynb"
BESIDE = f"01-tiny/tiny.new-release-{STAMP}.ipynb"
MINE = "def double(x):\n    return x + x  # mine\n"

#: A cell of text that stays, one that changes, and one for experiments.
TEXT = "\n# %% [markdown]\n# {first}\n\n# %% [markdown]\n# The end.\n\n# %%\n# Experiments.\n"
OLD = LESSON + TEXT.format(first="An old explanation.")
FRESH = LESSON.replace("Is it twice x?", "Is each value twice that of x?").replace(
    "Four times x.", "x, four times."
) + TEXT.format(first="A better explanation.")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handed_out(tmp_path_factory.mktemp("old"), OLD)


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = handed_out(tmp_path_factory.mktemp("new"), FRESH)
    (made / "01-tiny" / "lesson_kit/figures.py").write_text("# A companion that changed.\n")
    (made / MISTAKES).write_text('{"mistakes": {}}\n')
    update.write_manifest(made, release_in(made))
    return made


@pytest.fixture
def course(old: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(old, tmp_path / "course"))


def take(course: Path, source: Path) -> dict[str, str]:
    found = plan(course, source, NOW)
    found.carry_out()
    return {step.name: step.what for step in found.steps}


def sources(path: Path) -> list[str]:
    return [cell.source for cell in read(path).cells]


@pytest.mark.slow
def test_untouched_files_become_those_of_the_new_release(course: Path, new: Path) -> None:
    (course / "notes.txt").write_text("mine")
    assert take(course, new) == {
        TINY: REPLACED,
        "01-tiny/lesson_kit/figures.py": REPLACED,
        MISTAKES: REPLACED,
    }
    (course / "notes.txt").unlink()
    assert everything_in(course) == everything_in(new)
    assert plan(course, new, NOW).steps == ()


def test_answers_and_own_cells_are_carried_over(course: Path, new: Path) -> None:
    type_in(course / TINY, double=MINE, written_why="![](attachment:a.png)")
    mine = read(course / TINY)
    cell_named(mine, "written_why")["attachments"] = {"a.png": {"image/png": "QUJD"}}
    at = mine.cells.index(cell_named(mine, "test_double")) + 1
    mine.cells.insert(at, nbformat.v4.new_code_cell("print(double(3))", id="student"))
    mine.cells.insert(at + 1, nbformat.v4.new_markdown_cell("I see."))
    free = next(cell for cell in mine.cells if cell.source == "# Experiments.")
    free.source = "# Experiments.\ndouble(5)"  # only the student changed it
    mine.cells.append(nbformat.v4.new_code_cell("double(7)"))
    nbformat.write(mine, course / TINY)
    before = (course / TINY).read_bytes()

    assert take(course, new)[TINY] == MERGED
    assert (course / ASIDE).read_bytes() == before
    merged = read(course / TINY)
    nbformat.validate(merged)
    assert cell_named(merged, "double").source == MINE
    assert cell_named(merged, "written_why").attachments == {"a.png": {"image/png": "QUJD"}}
    texts = [cell.source for cell in merged.cells]
    at = merged.cells.index(cell_named(merged, "test_double"))
    assert texts[at + 1 : at + 3] == ["print(double(3))", "I see."]
    assert texts[texts.index("The end.") + 1] == "# Experiments.\ndouble(5)"
    assert texts[-1] == "double(7)"
    assert "A better explanation." in texts and "An old explanation." not in texts
    # All else is the new release's, in its order.
    own = {MINE, "![](attachment:a.png)", "print(double(3))", "I see."}
    own |= {"# Experiments.\ndouble(5)", "double(7)"}
    released = [cell for cell in read(new / TINY).cells]
    kept = [cell for cell in merged.cells if cell.source not in own]
    names = {"double", "written_why"}
    assert kept == [
        cell for cell in released if grade_id(cell) not in names and cell.source != "# Experiments."
    ]
    # A second update finds nothing to do.
    assert plan(course, new, NOW).steps == ()


def test_a_third_release_begins_with_what_the_second_left(
    course: Path, new: Path, tmp_path: Path
) -> None:
    type_in(course / TINY, double=MINE)
    take(course, new)
    third = handed_out(tmp_path / "third", FRESH.replace("A better", "The best"))
    later = plan(course, third, datetime(2026, 2, 2))
    later.carry_out()
    texts = sources(course / TINY)
    assert texts.count("The best explanation.") == 1
    assert not any("better" in text or "old expl" in text for text in texts)
    assert cell_named(read(course / TINY), "double").source == MINE


def test_both_changed_one_cell_both_texts_stay(course: Path, new: Path) -> None:
    mine = read(course / TINY)
    place = next(cell for cell in mine.cells if cell.source == "An old explanation.")
    place.source = "An old explanation. I do not believe it."
    cell_named(mine, "quadruple").source = "def quadruple(x):\n    return 4 * x\n"
    nbformat.write(mine, course / TINY)
    found = plan(course, new, NOW)
    (step,) = [step for step in found.steps if step.name == TINY]
    assert any("yours is a cell of its own" in text for text in step.says)
    assert any("quadruple starts differently now" in text for text in step.says)
    found.carry_out()
    texts = sources(course / TINY)
    assert "A better explanation." in texts
    assert "An old explanation. I do not believe it." in texts


def test_checks_are_the_new_releases_and_come_back(course: Path, new: Path) -> None:
    type_in(course / TINY, test_double="pass")
    mine = read(course / TINY)
    mine.cells.remove(cell_named(mine, "test_quadruple"))
    nbformat.write(mine, course / TINY)
    found = plan(course, new, NOW)
    (step,) = [step for step in found.steps if step.name == TINY]
    assert any("your change of test_double is not taken over" in text for text in step.says)
    found.carry_out()
    assert everything_in(new)[TINY] == (course / TINY).read_bytes()
    assert cell_named(read(course / ASIDE), "test_double").source == "pass"


def test_of_two_answers_of_one_name_the_last_counts_and_both_stay(course: Path, new: Path) -> None:
    type_in(course / TINY, double="def double(x):\n    return 0\n")
    mine = read(course / TINY)
    again = nbformat.from_dict(cell_named(mine, "double"))
    again.source, again["id"] = MINE, "again"
    mine.cells.append(again)
    nbformat.write(mine, course / TINY)
    take(course, new)
    merged = read(course / TINY)
    assert [cell.source for cell in merged.cells if grade_id(cell) == "double"] == [MINE]
    assert "def double(x):\n    return 0\n" in [cell.source for cell in merged.cells]


def test_cell_ids_are_not_needed(course: Path, new: Path) -> None:
    """Some programs give every cell a new one, or none."""
    type_in(course / TINY, double=MINE)
    tree = json.loads((course / TINY).read_text())
    for cell in tree["cells"]:
        del cell["id"]
    tree["nbformat_minor"] = 4
    (course / TINY).write_text(json.dumps(tree))
    take(course, new)
    wanted = [
        MINE if grade_id(cell) == "double" else cell.source for cell in read(new / TINY).cells
    ]
    assert sources(course / TINY) == wanted


def test_what_was_printed_stays_where_the_code_is_the_same(course: Path, new: Path) -> None:
    mine = read(course / TINY)
    for name in ("test_quadruple", "test_double"):  # the second one's code is new
        cell_named(mine, name).execution_count = 7
        cell_named(mine, name).outputs = [nbformat.v4.new_output("stream", text="printed")]
    nbformat.write(mine, course / TINY)
    take(course, new)
    merged = read(course / TINY)
    assert cell_named(merged, "test_quadruple").outputs[0].text == "printed"
    assert cell_named(merged, "test_double").outputs == []


@pytest.mark.slow
def test_an_answer_without_a_place_keeps_the_notebook(course: Path, tmp_path: Path) -> None:
    type_in(course / TINY, double=MINE)
    before = (course / TINY).read_bytes()
    renamed = handed_out(tmp_path / "renamed", LESSON.replace("double", "twice"))
    found = plan(course, renamed, NOW)
    (step,) = [step for step in found.steps if step.what == KEPT]
    assert "no cell for your answer double" in step.says[0]
    found.carry_out()
    assert found.status == 1
    assert (course / TINY).read_bytes() == before
    assert (course / BESIDE).read_bytes() == (renamed / TINY).read_bytes()
    # It goes on being a notebook of the first release: a later one still finds its place.
    assert take(course, handed_out(tmp_path / "third", FRESH))[TINY] == MERGED
    assert cell_named(read(course / TINY), "double").source == MINE


@pytest.mark.parametrize("content", [b"{ broken", b"", b"\xff\xfe"])
def test_a_file_that_is_no_notebook_is_kept(course: Path, new: Path, content: bytes) -> None:
    (course / TINY).write_bytes(content)
    assert take(course, new)[TINY] == KEPT
    assert (course / TINY).read_bytes() == content
    assert (course / BESIDE).read_bytes() == (new / TINY).read_bytes()


def test_without_a_manifest_every_changed_file_is_kept_or_set_aside(
    course: Path, new: Path
) -> None:
    (course / ".release.json").unlink()
    type_in(course / TINY, double=MINE)
    before = (course / TINY).read_bytes()
    done = take(course, new)
    assert done == {TINY: KEPT, "01-tiny/lesson_kit/figures.py": SET, MISTAKES: SET}
    assert (course / TINY).read_bytes() == before


def test_other_files_that_were_changed_are_set_aside(course: Path, new: Path) -> None:
    (course / "01-tiny" / "lesson_kit/figures.py").write_text("# mine\n")
    assert take(course, new)["01-tiny/lesson_kit/figures.py"] == SET
    aside = course / "01-tiny" / f"lesson_kit/figures.before-update-{STAMP}.py"
    assert aside.read_text() == "# mine\n"


def test_a_manifest_that_names_files_elsewhere_moves_none_of_them(
    course: Path, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Notebooks and manifests are passed on among students."""
    outside = tmp_path / "diary.txt"
    outside.write_text("mine")
    manifest = json.loads((course / ".release.json").read_text())
    names = [f"../{outside.name}", str(outside), "01-tiny/../../diary.txt", "\x1b[2J"]
    manifest["files"] |= dict.fromkeys(names, "0" * 16)
    manifest["cells"] |= {name: [["x", "0" * 16, "double", 1e9]] for name in names}
    (course / ".release.json").write_text(json.dumps(manifest))
    before = {path for path in tmp_path.rglob("*") if course not in path.parents}
    assert main(["update", str(course), "--from", str(new)]) == 0
    assert outside.read_text() == "mine"
    assert {path for path in tmp_path.rglob("*") if course not in path.parents} == before
    assert "\x1b" not in capsys.readouterr().out
    assert json.loads((course / ".release.json").read_text()) == json.loads(
        (new / ".release.json").read_text()
    )


def test_the_start_page_that_was_run_is_replaced(course: Path, new: Path, tmp_path: Path) -> None:
    page = read(course / "start.ipynb")
    page.cells[1].outputs = []
    nbformat.write(page, course / "start.ipynb")
    assert take(course, new)["start.ipynb"] == REPLACED
    assert not list(course.glob("start.*-update-*"))


def test_files_that_the_new_release_lacks_are_left_and_new_ones_come(
    course: Path, new: Path, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(new, tmp_path / "source"))
    kit = source / "01-tiny" / "lesson_kit"
    (kit / "raised.py").rename(kit / "other.py")
    update.write_manifest(source, release_in(source))
    found = plan(course, source, NOW)
    assert found.left == ("01-tiny/lesson_kit/raised.py",)
    found.carry_out()
    assert {step.name: step.what for step in found.steps}["01-tiny/lesson_kit/other.py"] == NEW
    assert (course / "01-tiny" / "lesson_kit" / "raised.py").is_file()


@pytest.mark.parametrize("writes", range(7))
def test_an_interrupted_update_loses_nothing_and_can_go_on(
    course: Path, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    type_in(course / TINY, double=MINE)
    (course / "01-tiny" / "lesson_kit/figures.py").write_text("# mine\n")
    before = everything_in(course)
    whole = Path(shutil.copytree(course, tmp_path / "whole"))
    take(whole, new)
    left = writes

    def stops_after(function: Any) -> Any:
        def write(*arguments: Any) -> None:
            nonlocal left
            if not left:
                raise OSError(28, "No space left on device", "course")
            left -= 1
            function(*arguments)

        return write

    with monkeypatch.context() as patched:
        for name in ("_copy_whole", "write_whole", "write_manifest"):
            patched.setattr(update, name, stops_after(getattr(update, name)))
        if writes < 6:
            with pytest.raises(UpdateError, match="No space left on device"):
                take(course, new)
        else:
            take(course, new)
    for name, content in before.items():
        if name not in (".release.json", MISTAKES):  # nobody changed these
            same = [one for one in everything_in(course).values() if one == content]
            assert same, f"{name} is lost after {writes} writes"
    take(course, new)
    for name in (TINY, "01-tiny/lesson_kit/figures.py", ".release.json"):
        assert (course / name).read_bytes() == (whole / name).read_bytes()


def test_a_name_that_is_taken_is_not_taken_again(course: Path, new: Path) -> None:
    type_in(course / TINY, double=MINE)
    (course / ASIDE).write_text("from before")
    take(course, new)
    assert (course / ASIDE).read_text() == "from before"
    assert (course / f"01-tiny/tiny.before-update-{STAMP}-2.ipynb").is_file()


def test_wrong_use_is_said_and_touches_nothing(course: Path, new: Path, tmp_path: Path) -> None:
    before = everything_in(course)
    for folders, says in (
        ((course, tmp_path / "nowhere"), "is no course folder"),
        ((tmp_path / "nowhere", new), "is no course folder"),
        ((course, course), "are one folder"),
        ((course, course.parent), "are one folder"),
    ):
        with pytest.raises(UpdateError, match=says):
            plan(*folders, NOW)
    worked_in = Path(shutil.copytree(new, tmp_path / "worked_in"))
    type_in(worked_in / TINY, double=MINE)
    with pytest.raises(UpdateError, match="is not as it was released"):
        plan(course, worked_in, NOW)
    assert everything_in(course) == before
    (course / ".release.json").write_text("[")
    with pytest.raises(ManifestError, match="is damaged"):
        plan(course, new, NOW)


def test_the_command(course: Path, new: Path, capsys: pytest.CaptureFixture[str]) -> None:
    type_in(course / TINY, double=MINE)
    before = everything_in(course)
    command = ["update", str(course), "--from", str(new)]
    assert main([*command, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert TINY in out and "carried over: double" in out and "Nothing was written" in out
    assert everything_in(course) == before
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "merged" in out and ".before-update-" in out and "Nothing was deleted." in out
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == []
    assert main(["update", str(course), "--from", str(course)]) == 2
    assert "unpack the new release elsewhere" in capsys.readouterr().err
    (course / TINY).write_text("{")
    assert main(command) == 1
    assert "by hand" in capsys.readouterr().out
