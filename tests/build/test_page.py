"""One exercise is one view: card, stub, and a check that is folded to one line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.build.demonstrations import (
    answered_apart,
    claims_after_replies,
    figures_opened,
    only_claims,
    parted,
)
from autograder.build.page import NEEDS_THE_KIT, as_page
from autograder.course.bundle import Bundle
from autograder.course.lessons import Course, Lesson
from autograder.notebooks import (
    GUESS,
    HIDDEN,
    ONWARD,
    SETUP,
    grade_id,
    is_answer,
    is_test,
    is_written,
    tags,
)
from lesson_kit.course_progress import has_code
from lesson_kit.shown import what_it_means

from ..conftest import COURSE, ROOT
from ..hand_outs import handed_out, read
from ..tiny import LESSON, head, tiny_course

each_lesson = pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda one: one.folder)


def folded(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("jupyter", {}).get("source_hidden"))


def statements(cells: list[NotebookNode]) -> list[str]:
    """What the code cells run, in no order, without what the page adds to checks and setup."""
    found = [
        ast.dump(node)
        for cell in cells
        if cell.cell_type == "code"
        for node in ast.parse(cell.source).body
    ]
    added = ast.parse(f"import lesson_kit.checks\n{NEEDS_THE_KIT}").body
    return sorted(one for one in found if one not in map(ast.dump, added))


@each_lesson
def test_the_page_runs_and_tells_what_the_source_does(lesson: Lesson) -> None:
    page, source = as_page(lesson).cells, lesson.notebook.cells
    assert statements(page) == statements(source)
    words = " ".join(cell.source for cell in page).split()
    for cell in source:
        if cell.cell_type == "markdown":
            assert set(cell.source.split()) <= set(words)
    assert len({cell["id"] for cell in page}) == len(page)


@each_lesson
def test_every_graded_cell_stands_on_the_page_once_under_its_own_name(lesson: Lesson) -> None:
    def graded(cells: list[NotebookNode]) -> dict[str, dict[str, object]]:
        found = [cell for cell in cells if grade_id(cell)]
        assert len(found) == len({grade_id(cell) for cell in found})
        return {grade_id(cell): dict(cell.metadata.nbgrader) for cell in found}

    assert graded(as_page(lesson).cells) == graded(lesson.notebook.cells)


@each_lesson
def test_between_an_answer_and_what_follows_stands_one_folded_line(lesson: Lesson) -> None:
    page = as_page(lesson).cells
    for at, cell in enumerate(page):
        if is_answer(cell):
            check, after = page[at + 1], page[at + 2]
            assert grade_id(check) == f"test_{grade_id(cell)}"
            assert folded(check)
            assert check.source.startswith(f"# Check of {grade_id(cell)}: ")
            assert not is_test(after)


@each_lesson
def test_what_is_checked_later_is_closed_and_stands_at_the_end(lesson: Lesson) -> None:
    page = as_page(lesson).cells
    later = [c for c in page if is_test(c) and not has_code(HIDDEN.sub("", c.source))]
    assert later
    *_, heading = page[: -len(later) - 1]
    assert page[-len(later) - 1 : -1] == later
    assert page[-1].source.startswith("## "), "a cell that is added below is not closed away"
    assert heading.source.startswith("## ") and heading.metadata["jp-MarkdownHeadingCollapsed"]


@each_lesson
def test_every_card_has_a_frame_its_points_and_what_is_checked_later(lesson: Lesson) -> None:
    page = as_page(lesson).cells
    cards = [cell.source for cell in page if "<div" in cell.source]
    wanted = [cell for cell in page if is_answer(cell) or is_written(cell)]
    assert len(cards) == len(wanted)
    points = {grade_id(cell): cell.metadata.nbgrader["points"] for cell in page if grade_id(cell)}
    for card, cell in zip(cards, wanted, strict=True):
        name = grade_id(cell)
        tests = [one for one in points if one == f"test_{name}" or one.startswith(f"test_{name}_")]
        most = sum(points[one] for one in tests) if tests else points[name]
        assert f"**{most:g} point" in card
        assert card.count("<div") == card.count("</div>") == 1
        hidden = [one for one in tests if not has_code(HIDDEN.sub("", lesson.tests[one].source))]
        if hidden:
            assert f"When graded: {len(hidden)} more check" in card
            listed = card.split("When graded")[1].count("\n- ")
            assert listed == len(hidden)
        assert "BEGIN" not in card


@each_lesson
def test_no_hint_is_left_behind_a_check(lesson: Lesson) -> None:
    hints = [c.source for c in as_page(lesson).cells if "<summary>Hint" in c.source]
    assert all("<div" in hint for hint in hints)


@each_lesson
def test_only_what_draws_is_folded(lesson: Lesson) -> None:
    names = set(lesson.exercises)
    for cell in as_page(lesson).cells:
        if "folded" in tags(cell):  # run first, and read where the text says so
            assert folded(cell) and re.match(r"# .* Section \d+ reads it\.\n", cell.source)
        elif cell.cell_type == "code" and "demonstration" in tags(cell):
            tree = ast.parse(cell.source)
            defines = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
            draws = "plt." in cell.source or "(axes, " in cell.source
            assert not (folded(cell) and defines and not draws)
            headings = ("# Draws ", "# Answers your guess: ", "# What the text says, asserted: ")
            assert not folded(cell) or cell.source.startswith(headings)
            replies = re.search(r"^reply\(", cell.source, re.M)
            assert folded(cell) or not replies or "plt." in cell.source
        elif folded(cell):
            assert is_test(cell) or SETUP in tags(cell)
    assert names


@each_lesson
def test_the_setup_is_one_line_and_the_end_leads_onward(lesson: Lesson) -> None:
    page = as_page(lesson).cells
    (setup,) = [cell for cell in page if SETUP in tags(cell)]
    assert folded(setup) and setup.source.startswith("# Setup: Shift+Enter runs it")
    course = read(ROOT / "course" / lesson.folder / f"{lesson.notebook_name}.ipynb").cells
    (onward,) = [cell.source for cell in course if cell.source.startswith(ONWARD)]
    links = re.findall(r"\]\(([^)]*)\)", onward)
    assert links[-1] == "../start.ipynb"
    assert len(links) == (1 if lesson is COURSE.lessons[-1] else 2)
    for link in links:
        assert (ROOT / "course" / lesson.folder / link).resolve().is_file()
    solved = read(ROOT / "solutions" / lesson.folder / f"{lesson.notebook_name}.ipynb").cells
    assert not [cell for cell in solved if "start.ipynb" in cell.source]


def test_a_wall_of_assertions_is_folded() -> None:
    wall = "low = 3\nassert low > 1\nassert low < 4"
    assert only_claims(wall)
    shown = ("assert low > 1", f"{wall}\nprint(low)", f"def f():\n    pass\n\n\n{wall}", "low = 3")
    assert not [source for source in shown if only_claims(source)]


@each_lesson
def test_what_came_out_is_not_asserted_in_the_open_before_a_guess_is_answered(
    lesson: Lesson,
) -> None:
    waiting: set[str] = set()
    for cell in as_page(lesson).cells:
        if cell.cell_type != "code":
            continue
        if GUESS in tags(cell):
            waiting |= set(re.findall(r"^(guess_\w+) = ", cell.source, re.M))
        elif waiting and not folded(cell) and not is_test(cell) and not is_answer(cell):
            assert not [n for n in ast.parse(cell.source).body if isinstance(n, ast.Assert)]
        waiting -= set(re.findall(r'\breply\(\s*"(guess_\w+)"', cell.source))
    assert not waiting


PREDICTED = [
    "guess_big = True  # write True or False",
    """\
def double(x):
    return 2 * x

# It did come out large.
assert double(2) > 3, "small"
print(double(2))
assert (
    double(3)
    > 4
)  # and this""",
    """\
if double:
    print(double(4))

if double:
    assert double(4) == 8
    reply("guess_big", guess_big, True)""",
]


def test_assertions_go_to_the_reply_with_their_comments() -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in PREDICTED]
    cells[0].metadata["tags"] = [GUESS]
    claims_after_replies(cells)
    assert cells[1].source == "def double(x):\n    return 2 * x\n\nprint(double(2))"
    shown, replies = answered_apart(cells[2].source)
    assert shown == "if double:\n    print(double(4))"
    assert replies.startswith('# It did come out large.\nassert double(2) > 3, "small"\nassert (')
    assert ")  # and this\nif double:\n    assert double(4) == 8\n    reply(" in replies


@each_lesson
def test_every_column_of_a_table_has_a_heading(lesson: Lesson) -> None:
    """Read aloud, a table without one begins with nothing."""
    for cell in as_page(lesson).cells:
        for names in re.findall(r"^\|(.*)\|\n\|[-:| ]+\|$", cell.source, re.M):
            assert all(name.strip() for name in names.split("|")), names


DRAWS = """\
scores = softmax(np.arange(3))
# Three bars.
figure, axes = plt.subplots()
axes.bar(range(3), scores)
show(figure, "Figure 4. Bars.", "Three bars.")
"""


def test_a_demonstration_is_parted_before_its_first_line_of_drawing() -> None:
    teaches, draws, what = parted(DRAWS, {"softmax"})
    assert teaches == "scores = softmax(np.arange(3))"
    assert draws.startswith("# Three bars.\nfigure, axes")
    assert what == "Figure 4"
    assert parted(DRAWS, set())[:2] == ("", DRAWS)
    assert parted("print(softmax(x))", {"softmax"}) == ("print(softmax(x))", "", "")
    assert parted("%matplotlib inline\nshow()", set())[1] == ""


def test_a_claim_before_a_figure_is_folded_with_it() -> None:
    source = "assert a\nassert b\nassert c\nheatmap(w)\n"
    assert parted(source, set())[:2] == ("", source)


def test_what_a_slider_draws_is_folded_with_it() -> None:
    source = "x = [gain(d) for d in (1, 2)]\n\n\ndef bars(axes, at):\n    axes.bar(x, at)\n\n\n"
    source += 'slider(bars, "gain", x, pictures=x, caption="Hands on.")\n'
    teaches, draws, what = parted(source, {"gain"})
    assert teaches == "x = [gain(d) for d in (1, 2)]"
    assert draws.startswith("def bars") and what == "a figure"


def test_what_an_answer_opens_is_followed_through_the_notebook_and_not_further() -> None:
    def code(source: str, name: str = "") -> NotebookNode:
        kind = {"solution": True, "grade": False, "grade_id": name}
        metadata = {"nbgrader": kind} if name else {}
        return nbformat.v4.new_code_cell(source, metadata=metadata)

    page = [
        code('show(f, "Figure 1. Before.")\ngain(1)'),
        code("def gain(x): ...", "gain"),
        code("rates = [gain(d) for d in range(3)]\nrng = new()"),
        code('draw(rates)\nshow(f, "Figure 2. With it.")'),
        code("def loss(x):\n    return x + 1\n\n\nrates = 3"),
        code('other = [d for d in rates]\nshow(f, "Figure 3. Without: rates is another one.")'),
        code("def uses(x):\n    return gain(x)"),
        code('many = uses(2)\nshow(f, "Figure 4. Through a function.")'),
        code("def later(x): return gain(x)", "later"),
        code('later(1)\nshow(f, "Figure 5. Through another answer.")'),
    ]
    assert figures_opened(page, "gain") == ["2", "4"]
    assert figures_opened(page, "later") == ["5"]


def test_a_figure_is_opened_by_the_last_answer_that_it_needs_and_the_check_says_so() -> None:
    page = as_page(COURSE.lesson("03")).cells

    def card(name: str) -> str:
        return next(c.source for c in page if f": `{name}`\n\n<div" in c.source)

    assert " Figures 5 and 6 will use your answer." in card("scaled_dot_product_attention")
    assert "A right answer opens Figures 5 and 6." in card("attention_heatmap")
    check = next(cell for cell in page if grade_id(cell) == "test_attention_heatmap")
    assert "Now open Figures 5 and 6." in what_it_means(check.source)


def test_a_long_cell_says_so_and_a_check_what_it_means(tmp_path: Path) -> None:
    demonstration = '# %% tags=["demonstration"'
    check_of_double = '# %% check="double" points=2'
    text = LESSON.replace(f"{demonstration}]", f"{demonstration}] seconds=20").replace(
        head("test_double", test=True, points=2), f'{check_of_double} means="Twice, each time."\n'
    )
    tiny_course(tmp_path)
    (tmp_path / "lessons" / "01-tiny" / "tiny.py").write_text(
        text + f'\n{demonstration}, "folded"] seconds=5\n# Draws nothing.\n1\n'
    )
    page = as_page(Course.load(tmp_path).lesson("01")).cells
    long = [cell.source for cell in page if "Takes about" in cell.source]
    assert long[0].startswith("# Takes about 20 s on a laptop.\n")
    assert long[1:] == ["# Draws nothing. Takes about 5 s on a laptop.\n1"]
    check = next(cell for cell in page if grade_id(cell) == "test_double")
    assert what_it_means(check.source)[0] == "Twice, each time."
    assert not any({"seconds", "means"} & set(cell.metadata) for cell in page)


def test_what_passed_is_said_by_the_titles_of_the_checks() -> None:
    check = (
        'with check("by hand", points=1):\n    pass\nwith check(\'one "text"\', 2, side=True):\n'
    )
    assert what_it_means(check) == ['Checked here: by hand; one "text".']
    assert what_it_means("assert_close(a, b)\n") == []


def test_the_grader_has_an_exercises_tests_together(tmp_path: Path) -> None:
    hidden = "### BEGIN HIDDEN TESTS\nassert double(2) == 4\n### END HIDDEN TESTS\n"
    text = '# %% tags=["setup"]\nfrom lesson_kit.checks import checks_passed\n\n'
    for name in ("double", "twice"):
        text += head(name) + f"def {name}(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n"
        text += "    ### END SOLUTION\n\n"
        text += head(f"test_{name}", test=True, points=1) + f"assert {name}(1) == 2\n"
        text += f'checks_passed("{name}")\n\n'
        text += head(f"test_{name}_large", test=True, points=1)
        text += f"# Hidden checks of {name}: large ones.\n{hidden}\n"
    handed_out(tmp_path, text)
    lesson = Course.load(tmp_path).lesson("01")
    names = [grade_id(cell) for cell in as_page(lesson).cells if is_test(cell)]
    assert names == ["test_double", "test_twice", "test_double_large", "test_twice_large"]
    bundle = Bundle.load(tmp_path / "build" / "source" / lesson.folder)
    grouped = ["test_double", "test_double_large", "test_twice", "test_twice_large"]
    assert [test.grade_id for test in bundle.tests] == grouped
