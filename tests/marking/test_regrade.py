"""A mended test: one command takes it into the class, and says whose points change."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.folder import ClassError
from autograder.classroom.grades_file import read_grades
from autograder.classroom.new_class import new_class
from autograder.cli.main import main
from autograder.course.lessons import Course
from autograder.grade.flags import EARLIER_RELEASE
from autograder.marking.regrade import refresh
from autograder.marking.totals import changes
from autograder.report.numbers import make_report

from ..classes import (
    LESSON,
    entries,
    give_by_hand,
    hand_in,
    quiet,
    scores_in_gradebook,
    solved,
    without_workers,
)
from ..submissions import boxes
from ..tiny import tiny_course

pytestmark = pytest.mark.slow


@without_workers()
def test_regrading_after_a_test_was_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = tiny_course(tmp_path / "course")
    folder = new_class(course, tmp_path / "class", say=quiet)
    source = tmp_path / "course" / "lessons" / LESSON / "tiny.py"
    right = source.read_text()
    hand_in(folder, "ada", solved(folder, why="Because."))
    negative = "def double(x):\n    return x + x\n"
    hand_in(folder, "bob", solved(folder, double=negative))
    grade = ["grade", str(folder.root), "--quiet", "--sandbox", boxes().backend]
    assert main(grade) == 0
    give_by_hand(folder, "ada", 2.0)
    assert "not what they were" not in capsys.readouterr().out
    assert main([*grade, "--again", "--assignment", LESSON]) == 0
    assert "no points changed" in capsys.readouterr().out
    assert scores_in_gradebook(folder) == {"ada": 10.0, "bob": 7.0}

    # The author takes the hidden test back: a negative x is doubled like any other.
    source.write_text(
        right.replace("    double(np.array([-3.0]))", "    double('x' if 0 else 1/0)")
        .replace('ValueError, "A neg', 'ZeroDivisionError, "A neg')
        .replace("Is it twice x?", "Is it x and x?")
        .replace("a demonstration is not run", "a demonstration never runs")
    )
    again = ["grade", str(folder.root), "--mended", LESSON, "--quiet"]
    again += ["--course", str(tmp_path / "course"), "--sandbox", boxes().backend]
    assert main(again) == 0
    out = capsys.readouterr().out
    assert "points that are not what they were" in out
    # The notebooks have the tests that were handed out to them: nobody edited one.
    flags = [flag for one in entries(folder).values() for flag in one["flags"]]
    assert flags == [str(EARLIER_RELEASE.flag())] * 2
    about, found = read_grades(folder)
    assert not make_report(about, found).need_an_eye
    line = next(line for line in out.splitlines() if line.startswith("bob ") and "double" in line)
    assert line.split() == ["bob", LESSON, "double", "2", "3"]
    assert scores_in_gradebook(folder) == {"ada": 10.0, "bob": 8.0}
    kept = list((folder.root / "set_aside" / "lessons").iterdir())
    assert len(kept) == 1 and (kept[0] / "source" / "tiny.ipynb").exists()
    assert "-3.0" in (kept[0] / "source" / "tiny.ipynb").read_text()
    assert "-3.0" not in (folder.root / "source" / LESSON / "tiny.ipynb").read_text()
    assert main(again) == 0
    assert "the class has what the course has" in capsys.readouterr().out

    # Another reason of a short answer lies beside the notebook.
    reasons = source.with_name("misconceptions.py")
    reasons.write_text(reasons.read_text().replace("It is larger.", "It is smaller."))
    answers = folder.root / "source" / LESSON / "lesson_data.json"
    former = answers.read_bytes()
    assert main(again) == 0
    assert "taken from the course" in capsys.readouterr().out
    assert answers.read_bytes() != former

    # A test that is new: nothing is touched.
    source.write_text(right.replace("test_double_errors", "test_double_other"))
    before = (folder.root / "source" / LESSON / "tiny.ipynb").read_bytes()
    with pytest.raises(ClassError, match=r"-test_double_errors, \+test_double_other"):
        refresh(folder, Course.load(tmp_path / "course"), LESSON)
    assert (folder.root / "source" / LESSON / "tiny.ipynb").read_bytes() == before
    assert not list((folder.root / "source").glob(".*"))
    with Gradebook(folder.db_url) as gradebook:
        assert len(gradebook.find_notebook("tiny", LESSON).grade_cells) == 5


def test_changes_are_of_those_who_had_a_verdict() -> None:
    def entry(**points: float) -> dict[str, object]:
        return {"tests": [{"exercise": name, "points": value} for name, value in points.items()]}

    before = {("ada", LESSON): entry(a=1.0, b=2.0), ("bob", LESSON): entry(a=1.0)}
    after = {("ada", LESSON): entry(a=1.0, b=0.0), ("new", LESSON): entry(a=1.0)}
    found = [(one.student, one.exercise, one.before, one.after) for one in changes(before, after)]
    assert found == [("ada", "b", 2.0, 0.0)]
