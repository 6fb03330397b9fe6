"""A misconception is a change of the right answer, and one that cannot be made is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from autograder.course.edits import Unfit, code_of, edited, with_body
from autograder.course.implementations import Implementation, choices, misconceptions
from autograder.course.source_rules import LessonError

from ..tiny import MISCONCEPTIONS, tiny_course

HEAD = "from autograder.course.implementations import exercise, misconception, wrong\n"

LOOP = '''def total(x):
    """The sum of x."""
    result = 0.0  # of nothing
    for one in x:
        result = result + one
    return result
'''


def registered(folder: Path, text: str) -> list[Implementation]:
    """What a catalogue of the tiny lesson holds, without its short answer."""
    lesson = tiny_course(folder).lesson("01")
    (lesson.path / "misconceptions.py").write_text(HEAD + text + MISCONCEPTIONS)
    assert len(choices(lesson)) == 2
    return [one for one in misconceptions(lesson) if one.exercise != "answer_size"]


def test_the_code_of_an_answer_has_no_comments_docstrings_or_markers() -> None:
    source = (
        'class A:\n    """What it is."""\n\n    ### BEGIN SOLUTION\n    x = "# 1"  # one\n\n'
        '    y = """a\n\n# b"""\n    ### END SOLUTION\n'
    )
    assert code_of(source) == 'class A:\n    x = "# 1"\n    y = """a\n\n# b"""\n'


def test_an_edit_replaces_every_text_it_names() -> None:
    code = code_of(LOOP)
    assert edited(code, {"0.0": "1.0", "+ one": "- one"}) == code.replace("0.0", "1.0").replace(
        "+ one", "- one"
    )


def test_lines_of_an_edit_are_indented_like_the_line_they_begin_on() -> None:
    changed = edited(
        code_of(LOOP),
        {
            "for one in x:\n    result = result + one": """
                for one in x:
                    if one > 0:
                        result = result + one
            """
        },
    )
    assert changed == (
        "def total(x):\n    result = 0.0\n    for one in x:\n        if one > 0:\n"
        "            result = result + one\n    return result\n"
    )
    assert edited(code_of(LOOP), {"result = result + one": "one = 2 * one\nresult = one"}) == (
        "def total(x):\n    result = 0.0\n    for one in x:\n        one = 2 * one\n"
        "        result = one\n    return result\n"
    )


def test_a_line_of_which_nothing_is_left_is_gone() -> None:
    assert edited("def f(x):\n    x = 2\n    return x\n", {"x = 2": ""}) == (
        "def f(x):\n    return x\n"
    )


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"result": "r"}, "stands 4 times in the right answer, in the lines 2 and 4"),
        ({"results": "r"}, "stands nowhere in the right answer, which is\n\ndef total"),
        ({"of nothing": "x"}, "stands nowhere"),
        ({"": "x"}, "stands nowhere"),
        ({"in x": "in y", "one in": "1 in"}, "overlap in 'in'"),
        ({"return result": "return ("}, "what comes of it is no Python"),
        ({"return result": "return result"}, "it changes nothing"),
    ],
)
def test_an_edit_that_does_not_apply_exactly_once_is_refused(
    edit: dict[str, str], says: str
) -> None:
    with pytest.raises(Unfit) as refused:
        edited(code_of(LOOP), edit)
    assert says in str(refused.value)


def test_only_a_function_has_a_body_to_replace() -> None:
    assert with_body(code_of(LOOP), "return 0") == "def total(x):\n    return 0\n"
    with pytest.raises(Unfit, match="something else"):
        with_body("class A:\n    x = 1\n", "return 0")


ENTRIES = '''
TIMES_TWO = """
def quadruple(x):
    return 2 * (2 * x)
"""

with exercise("double"):
    wrong("thrice", {"2 * x": "3 * x"}, "It is twice.", seen="a course")
    wrong("nothing", "return 0 * x", "Zero.")

    @misconception("double", "written_out", sentence="Half.")
    def double(x):
        return x / 2

with exercise("quadruple", base=TIMES_TWO):
    wrong("twice", {"2 * (2 * x)": "2 * x"}, "Twice.")
    wrong("whole", """
        def quadruple(x, by=5):
            return by * x
    """, "Five times.")
'''


def test_a_misconception_has_its_whole_source_and_its_edit(tmp_path: Path) -> None:
    found = {one.name: one for one in registered(tmp_path, ENTRIES)}
    assert list(found) == ["thrice", "nothing", "written_out", "twice", "whole"]
    refusal = '    if np.any(np.asarray(x) < 0):\n        raise ValueError("x is negative")\n'
    assert found["thrice"].source == f"def double(x):\n{refusal}    return 3 * x\n"
    assert found["thrice"].edit == (("2 * x", "3 * x"),)
    assert found["thrice"].seen == "a course"
    assert found["nothing"].source == "def double(x):\n    return 0 * x\n"
    assert found["nothing"].edit == ()
    assert found["nothing"].seen == "folklore"
    assert found["written_out"].source == "def double(x):\n    return x / 2\n"
    assert found["twice"].source == "def quadruple(x):\n    return 2 * x\n"
    assert found["whole"].source == "def quadruple(x, by=5):\n    return by * x\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'with exercise("double"):\n    wrong("twofold", {"x": "y"}, "S.")\n',
            "double, 'twofold': ",
        ),
        (
            'with exercise("double"):\n    wrong("never", {"3 * x": "y"}, "S.")\n',
            "double, 'never': ",
        ),
        ('with exercise("double"):\n    wrong("text", "return (", "S.")\n', "double, 'text': "),
        (
            'with exercise("triple"):\n    wrong("a", "return x", "S.")\n',
            "'a' is of 'triple'; there",
        ),
        ('wrong("alone", {"2 * x": "x"}, "S.")\n', "wrong('alone', ...) belongs to no exercise"),
        ('with exercise("double"):\n' + '    wrong("a", "return x", "S.")\n' * 2, "'a' of double"),
        (
            'with exercise("double"):\n    wrong("a", "return x")\n',
            "misconceptions.py:3: TypeError",
        ),
        ("with exercise(:\n", "misconceptions.py:2: SyntaxError"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_with_its_file(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(LessonError) as refused:
        registered(tmp_path, text)
    assert says in str(refused.value)
    assert "misconceptions.py" in str(refused.value)


def test_a_catalogue_is_read_once_and_again_when_it_changes(tmp_path: Path) -> None:
    lesson = tiny_course(tmp_path).lesson("01")
    path = lesson.path / "misconceptions.py"
    counter = f"open({str(tmp_path / 'reads')!r}, 'a').write('.')\n"
    path.write_text(counter + MISCONCEPTIONS)
    assert misconceptions(lesson) == misconceptions(lesson)
    assert (tmp_path / "reads").read_text() == "."
    path.write_text(counter + MISCONCEPTIONS.replace("larger", "smaller"))
    assert misconceptions(lesson)[0].sentence == "It is smaller."


def test_what_only_an_answer_uses_is_not_imported_to_read_it(tmp_path: Path) -> None:
    text = "import turtle\nimport math\n\nclass Layer(turtle.Base):\n    pass\n\n"
    text += '@misconception("double", "flying", sentence=str(math.pi))\n@turtle.lifted(3)\n'
    answer = "def double(x, by=turtle.up):\n    return Layer(x)\n"
    (found,) = registered(tmp_path, text + answer)
    assert found.source == f"import turtle\n{answer}" and found.sentence.startswith("3.14")
    assert "turtle" not in sys.modules
