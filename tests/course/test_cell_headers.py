"""Short headers of a lesson's cells stand for nbgrader's metadata."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.course.lessons import Course
from autograder.course.source_rules import LessonError

from ..tiny import LESSON, head, tiny_course

WRITTEN = next(line for line in LESSON.splitlines() if "[markdown]" in line)
SHORT = (
    LESSON.replace(head("double"), '# %% answer="double"\n')
    .replace(head("test_double", test=True, points=2), '# %% check="double" points=2\n')
    .replace(
        head("test_double_errors", test=True, points=1), '# %% check="double_errors" points=1\n'
    )
    .replace(head("quadruple"), '# %% answer="quadruple"\n')
    .replace(head("test_quadruple", test=True, points=4), '# %% check="quadruple" points=4\n')
    .replace(head("answer_size"), '# %% answer="answer_size"\n')
    .replace(head("test_answer_size", test=True, points=1), '# %% check="answer_size" points=1\n')
    .replace(WRITTEN, '# %% [markdown] written="why" points=3')
)


def notebook_of(folder: Path, text: str) -> str:
    tiny_course(folder)
    (folder / "lessons" / "01-tiny" / "tiny.py").write_text(text)
    return nbformat.writes(Course.load(folder).lesson("01").notebook)


def test_both_spellings_give_the_same_notebook(tmp_path: Path) -> None:
    assert "nbgrader={" not in SHORT
    assert notebook_of(tmp_path / "short", SHORT) == notebook_of(tmp_path / "long", LESSON)


def test_a_locked_cell_keeps_its_name_and_tags(tmp_path: Path) -> None:
    long = (
        '\n# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "given_two", '
        '"locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false, '
        '"cell_type": "code"}\ntwo = 2\n'
    )
    short = '\n# %% locked="given_two" tags=["demonstration"]\ntwo = 2\n'
    assert notebook_of(tmp_path / "short", LESSON + short) == notebook_of(
        tmp_path / "long", LESSON + long
    )


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ('chek="double" points=2', "'chek' is unknown; there are answer, card, check, locked"),
        ('check="double"', 'write # %% check="<name>" points=2'),
        ('check="double" points="2"', 'write # %% check="<name>" points=2'),
        ('check="double" points=-1', "points belong to check and written cells"),
        ('check="double errors" points=2', "check='double errors' is no name"),
        ('answer="double" points=2', 'write # %% answer="<name>"'),
        ('answer="double" check="double" points=2', "is one of # %% answer="),
        ("points=2", "is one of # %% answer="),
        ('written="why" points=2', 'write # %% [markdown] written="<name>" points=2'),
        ('[markdown] answer="why"', "answer= on a markdown cell"),
        ("[markdown] seconds=20", "write it as in seconds=20"),
        ('tags=["demonstration"] seconds="long"', "write it as in seconds=20"),
        ('answer="double" means="It is."', "it belongs to check="),
    ],
)
def test_a_header_that_cannot_be_understood_is_named(
    tmp_path: Path, header: str, says: str
) -> None:
    with pytest.raises(LessonError) as refused:
        notebook_of(tmp_path, SHORT + f"\n# %% {header}\n# the cell\n")
    assert says in str(refused.value)
    assert "tiny.py: the header of the cell beginning" in str(refused.value)


def test_a_mistake_names_the_line_of_a_short_header(tmp_path: Path) -> None:
    again = '\n# %% check="unknown" points=2\nassert True\n'
    line = (SHORT + again).splitlines().index('# %% check="unknown" points=2') + 1
    with pytest.raises(LessonError, match=rf"tiny\.py:{line}: the test cell 'test_unknown'"):
        notebook_of(tmp_path, SHORT + again)
