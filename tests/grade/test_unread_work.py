"""What a student did and no release holds is run, shown to a marker, or named: never silent."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell
from nbgrader.api import Gradebook
from PIL import Image

from autograder.build.build import write_source
from autograder.classroom.grades_file import read_grades
from autograder.cli.main import main
from autograder.course.bundle import Bundle
from autograder.grade.submission import find_notebook, parse
from autograder.lms.collecting import carry_out, plan
from autograder.marking.by_question import Marking
from autograder.marking.formgrader import markdown_with_formulas
from autograder.notebooks import grade_id
from autograder.report.review_queue import need_an_eye

from ..classes import LESSON, hand_in, new, pack, solved
from ..submissions import as_bytes, graded, notebook_with, points
from ..tiny import tiny_course

QUESTION = "### Why?\n\nSay it in a sentence."
ANSWER = "Because it is (twice as much)."
FULL = {"double": 3.0, "quadruple": 4.0, "answer_size": 1.0}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    place = tmp_path_factory.mktemp("bundle")
    lesson = tiny_course(place / "course").lesson("01")
    lesson.notebook.cells.insert(-1, new_markdown_cell(QUESTION))
    lesson.notebook.cells.append(new_markdown_cell("The end."))
    write_source(lesson, place / "01-tiny")
    return Bundle.load(place / "01-tiny")


def begun(bundle: Bundle, text: str = "YOUR ANSWER HERE") -> tuple[NotebookNode, int]:
    """A notebook with all code answered, and where its written answer stands."""
    notebook = notebook_with(bundle)
    at = [grade_id(cell) for cell in notebook.cells].index("written_why")
    notebook.cells[at].source = text
    return notebook, at


@pytest.mark.parametrize(
    ("cell", "after"),
    [
        (new_markdown_cell(ANSWER), 1),
        (new_markdown_cell(ANSWER), 0),  # between the question and the stub
        (new_raw_cell(ANSWER), 1),
        (new_code_cell("Because it is twice as much, nothing more."), 1),
        (new_code_cell("# Because it is twice as much."), 1),
    ],
)
def test_an_answer_beside_the_stub_is_read_as_the_answer(
    bundle: Bundle, cell: NotebookNode, after: int
) -> None:
    notebook, at = begun(bundle)
    notebook.cells.insert(at + after, cell)
    submission = parse(as_bytes(notebook), bundle)
    assert submission.written_answers(bundle) == {"written_why": cell.source}
    assert [flag.kind for flag in submission.flags] == ["written_beside"]
    assert cell.source not in [run.source for run in submission.to_run(bundle)]


def test_an_answer_that_goes_on_below_is_read_in_one(bundle: Bundle) -> None:
    notebook, at = begun(bundle, "First.")
    notebook.cells[at + 1 : at + 1] = [
        new_markdown_cell("Second."),
        new_code_cell("own = 1"),
        new_markdown_cell("Third."),
    ]
    submission = parse(as_bytes(notebook), bundle)
    assert submission.written_answers(bundle) == {"written_why": "First.\n\nSecond.\n\nThird."}
    assert "own = 1" in [cell.source for cell in submission.to_run(bundle)]


def test_an_answer_typed_into_the_question_is_read(bundle: Bundle) -> None:
    notebook, at = begun(bundle)
    notebook.cells[at - 1].source += f"\n\n{ANSWER}"
    text = parse(as_bytes(notebook), bundle).written_answers(bundle)["written_why"]
    assert "Say it in a sentence." in text and text.endswith(f"\n\n{ANSWER}")


def test_a_written_answers_cell_that_became_code_is_read_and_not_run(bundle: Bundle) -> None:
    notebook, at = begun(bundle, ANSWER)
    notebook.cells[at].cell_type = "code"
    submission = parse(as_bytes(notebook), bundle)
    assert submission.written_answers(bundle) == {"written_why": ANSWER}
    assert ANSWER not in [cell.source for cell in submission.to_run(bundle)]


def test_own_text_that_nobody_reads_is_named(bundle: Bundle) -> None:
    notebook, _ = begun(bundle)
    notebook.cells.insert(1, new_markdown_cell("Here is my real answer: <b>yes</b>."))
    (flag,) = parse(as_bytes(notebook), bundle).flags
    assert flag.kind == "own_text" and "“Here is my real answer: <b>yes</b>.”" in flag.words


@pytest.mark.parametrize("kind", ["markdown", "raw", "markdown without a name", "fenced"])
def test_an_answer_cell_that_became_text_is_run(bundle: Bundle, kind: str) -> None:
    notebook = notebook_with(bundle)
    for cell in notebook.cells:
        if grade_id(cell) == "double":
            cell.cell_type = "raw" if kind == "raw" else "markdown"
            cell.pop("outputs", None)
            if kind == "fenced":
                cell.source = f"```python\n{cell.source}\n```"
            if kind == "markdown without a name":
                cell.metadata = {}
    verdict = graded(bundle, notebook)
    assert points(verdict) == FULL
    assert [flag.kind for flag in verdict.flags] == ["answer_as_text"]


def test_an_attempt_that_was_put_aside_as_text_stays_aside(bundle: Bundle) -> None:
    notebook = notebook_with(bundle)
    notebook.cells.append(new_raw_cell("def double(x):\n    return 3 * x"))
    submission = parse(as_bytes(notebook), bundle)
    assert "3 * x" not in "".join(cell.source for cell in submission.to_run(bundle))
    assert [flag.kind for flag in submission.flags] == ["own_text"]


def picture(kind: str = "PNG", size: int = 8) -> str:
    made = io.BytesIO()
    Image.new("RGB", (size, size), (200, 30, 30)).save(made, kind)
    return base64.b64encode(made.getvalue()).decode()


def bomb() -> str:
    """A PNG of a few bytes that says it has 3,600 million pixels."""
    made = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")):
        checked = struct.pack(">I", zlib.crc32(kind + data))
        made += struct.pack(">I", len(data)) + kind + data + checked
    return base64.b64encode(made).decode()


def with_picture(bundle: Bundle, source: str, attachments: Any = None) -> tuple[Any, list[str]]:
    """The cell of the written answer after it was read, and what is said of its pictures."""
    notebook, at = begun(bundle, source)
    if attachments:
        notebook.cells[at]["attachments"] = attachments
    submission = parse(as_bytes(notebook), bundle)
    (cell,) = [cell for cell in submission.cells if cell.grade_id == "written_why"]
    return cell, [flag.words for flag in submission.flags]


@pytest.mark.parametrize(
    ("source", "attachments", "text"),
    [
        ("![a](attachment:a.png)", {"a.png": {"image/png": picture()}}, "[picture 1]"),
        (
            "See ![](attachment:b%20c.jpg).",
            {"b c.jpg": {"image/jpeg": picture("JPEG")}},
            "See [picture 1].",
        ),
        (f"![](data:image/png;base64,{picture()})", None, "[picture 1]"),  # as Colab does
        (f'<img src="data:image/png;base64,{picture()}" width=3>', None, "[picture 1]"),
        (
            "Gone.",
            {"a.png": {"image/png": picture()}},
            "Gone.\n\n[picture 1]",
        ),
    ],
)
def test_a_picture_in_a_written_answer_is_made_anew(
    bundle: Bundle, source: str, attachments: Any, text: str
) -> None:
    cell, told = with_picture(bundle, source, attachments)
    assert (cell.source, told) == (text, [])
    ((name, address),) = cell.attachments
    assert name == "picture 1" and address.startswith(("data:image/png;", "data:image/jpeg;"))
    content = base64.b64decode(address.partition(",")[2])
    assert Image.open(io.BytesIO(content)).size == (8, 8)


@pytest.mark.parametrize(
    ("source", "attachments", "why"),
    [
        ("![](sketch.png)", None, "(sketch.png): it is not in the notebook"),
        ("![](https://example.org/x.png)", None, "it is not in the notebook"),
        ("![](attachment:a.png)", None, "(a.png): it is not in the notebook"),
        ("![](attachment:a.gif)", {"a.gif": {"image/gif": picture("GIF")}}, "no PNG or JPEG"),
        (
            "![](attachment:a.png)",
            {"a.png": {"image/png": picture("PNG", 5100)}},
            "25 million pixels",
        ),
        ("![](attachment:a.png)", {"a.png": {"image/png": bomb()}}, "no PNG or JPEG"),
        (
            "![](attachment:a.svg)",
            {"a.svg": {"image/svg+xml": base64.b64encode(b"<svg onload='x()'/>").decode()}},
            "no PNG or JPEG",
        ),
        ("![](attachment:a.png)", {"a.png": {"image/png": "?"}}, "it is damaged"),
    ],
)
def test_a_picture_that_cannot_be_shown_is_named(
    bundle: Bundle, source: str, attachments: Any, why: str
) -> None:
    cell, (told,) = with_picture(bundle, source, attachments)
    assert cell.attachments == () and cell.source == "[a picture that is not shown]"
    assert why in told and "as PNG or JPEG" in told


def test_what_stands_behind_a_pictures_pixels_is_gone(bundle: Bundle) -> None:
    made = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    Image.new("RGB", (8, 8)).save(made, "JPEG", exif=exif)
    data = base64.b64encode(made.getvalue() + b"<script>").decode()
    cell, _ = with_picture(bundle, "![](attachment:a)", {"a": {"image/png": data}})
    content = base64.b64decode(cell.attachments[0][1].partition(",")[2])
    assert b"secret" not in content and b"script" not in content


@pytest.mark.slow
def test_pictures_and_unread_text_reach_marker_page_queue_and_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = new(tmp_path)
    drawn, lost = solved(folder, "![a](attachment:a.png)\n\nSee $x^2$."), solved(folder)
    for cell in drawn.cells:
        if grade_id(cell) == "written_why":
            cell["attachments"] = {"a.png": {"image/png": picture()}}
    lost.cells.insert(1, new_markdown_cell("My answer is here."))
    hand_in(folder, "ada", drawn)
    hand_in(folder, "bob", lost)
    capsys.readouterr()
    assert main(["grade", str(folder.root), "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "text of their own that nobody reads: 1: bob" in said

    with Gradebook(folder.db_url) as gradebook:
        marking = Marking(folder, gradebook, LESSON, marker="anna")
        (token,) = marking.tokens("written_why")
        answer = marking.answer("written_why", token)
    assert answer.text == "[picture 1]\n\nSee $x^2$."
    (address,) = answer.pictures
    assert address.startswith("data:image/png;base64,")
    page = (folder.root / "feedback/ada/01-tiny/tiny.html").read_text()
    assert f'<img src="{address}"' in page and "img-src data:" in page
    autograded = nbformat.read(folder.root / "autograded/ada/01-tiny/tiny.ipynb", 4)
    nbformat.validate(autograded)
    (cell,) = [cell for cell in autograded.cells if grade_id(cell) == "written_why"]
    assert f'<img src="{address}"' in markdown_with_formulas(cell.source, cell.attachments)

    assert "My answer is here." in (folder.root / "feedback/bob/01-tiny/tiny.html").read_text()
    entries = read_grades(folder)[1]
    (eye,) = need_an_eye(entries, {"ada": "1", "bob": "2"}, names=False)
    assert (eye.submission, eye.reasons[0].words) == (
        "2",
        "text in cells of the student's own is read by nobody",
    )


ENDINGS = [
    "tiny.ipynb.json",
    "tiny.ipynb.txt",
    "tiny.json",
    "tiny.ipynb.ipynb",
    "tiny.ipynb (1)",
    "tiny",
]


@pytest.mark.parametrize("name", ENDINGS)
def test_a_notebook_with_another_ending_is_taken(tmp_path: Path, name: str) -> None:
    folder = new(tmp_path)
    data = as_bytes(solved(folder))
    right = "Ada Lovelace_1_assignsubmission_file_/tiny.ipynb"
    path = pack(tmp_path / "m.zip", {f"Bob_2_assignsubmission_file_/{name}": data, right: data})
    carry_out(folder, plan(folder, [path]))
    assert (folder.root / "submitted/bob/01-tiny/tiny.ipynb").read_bytes() == data
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / name).write_bytes(data)
    assert find_notebook(tmp_path / "here", folder.bundle(LESSON))[0].name == name


def test_who_handed_in_other_files_alone_is_named_and_the_status_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = new(tmp_path)
    files = {"Ada_1_assignsubmission_file_/tiny.ipynb": as_bytes(solved(folder))}
    for number, other in enumerate(
        ("tiny.html", "tiny.ipynb.json", "tiny.pdf", "data.json", "x.docx")
    ):
        files[f"Bob{number}_{number + 2}_assignsubmission_file_/{other}"] = b'{"nbformat": 4}'
    files["Ada_1_assignsubmission_file_/data.json"] = b"[]"
    path = pack(tmp_path / "m.zip", files)
    assert main(["collect", str(folder.root), str(path)]) == 1
    said = capsys.readouterr().out
    assert "handed in files, and none of them a notebook: 5: bob0, bob1, bob2, bob3, bob4" in said
    del files["Bob0_2_assignsubmission_file_/tiny.html"]
    only = {name: data for name, data in files.items() if name.startswith("Ada")}
    assert main(["collect", str(folder.root), str(pack(tmp_path / "a.zip", only))]) == 0
