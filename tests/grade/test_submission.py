"""Honest notebooks that tools and hands have changed: nothing is lost without a word."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.grade.submission import find_notebook, parse
from autograder.marking.autograded import safe_outputs
from autograder.notebooks import grade_id

from ..submissions import as_bytes, notebook_with
from ..tiny import tiny_course

QUESTION = "### Why?\n\nSay it in a sentence."


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    place = tmp_path_factory.mktemp("bundle")
    lesson = tiny_course(place / "course").lesson("01")
    lesson.notebook.cells.insert(-1, nbformat.v4.new_markdown_cell(QUESTION))
    lesson.notebook.cells.append(nbformat.v4.new_markdown_cell("The end."))
    write_source(lesson, place / "01-tiny")
    return Bundle.load(place / "01-tiny")


def answered(bundle: Bundle, text: str = "Because it is.") -> tuple[NotebookNode, NotebookNode]:
    notebook = notebook_with(bundle)
    cell = next(one for one in notebook.cells if grade_id(one) == "written_why")
    cell.source = text
    return notebook, cell


def why(bundle: Bundle, notebook: Any) -> tuple[str | None, list[str]]:
    """The written answer and what is said of it."""
    found = parse(as_bytes(notebook), bundle)
    told = [flag.words for flag in found.flags if "written_why" in flag.words]
    return found.written_answers(bundle).get("written_why"), told


def test_a_written_answer_in_its_place_is_not_spoken_of(bundle: Bundle) -> None:
    assert why(bundle, answered(bundle)[0]) == ("Because it is.", [])


@pytest.mark.parametrize("stub_first", [True, False])
def test_a_copied_cell_does_not_hide_the_answer(bundle: Bundle, stub_first: bool) -> None:
    notebook, cell = answered(bundle)
    stub = copy.deepcopy(cell)
    stub.source = "YOUR ANSWER HERE"
    notebook.cells.insert(notebook.cells.index(cell) + (not stub_first), stub)
    text, told = why(bundle, notebook)
    assert text == "Because it is."
    assert "stands 2 times" in told[0]


@pytest.mark.parametrize("everywhere", [True, False])
def test_an_answer_that_lost_its_name_is_found_by_its_place(
    bundle: Bundle, everywhere: bool
) -> None:
    notebook, cell = answered(bundle)
    for one in notebook.cells if everywhere else [cell]:
        one.metadata = {}
    text, told = why(bundle, notebook)
    assert text == "Because it is."
    assert told == ["the cell of written answer written_why had lost its name; it was found"]


def test_an_answer_that_cannot_be_found_for_certain_is_named(bundle: Bundle) -> None:
    notebook, cell = answered(bundle)
    cell.metadata = {}
    notebook.cells.insert(notebook.cells.index(cell), nbformat.v4.new_markdown_cell("A note."))
    text, told = why(bundle, notebook)
    assert text is None
    assert "nobody will read one; take the cell" in told[0]


def test_a_helper_in_a_check_cell_is_named_with_what_to_do(bundle: Bundle) -> None:
    notebook = notebook_with(bundle)
    for one in notebook.cells:
        if grade_id(one) == "test_double":
            one.source += "\ndef twice(x):\n    return x + x\n"
    flags = [flag.words for flag in parse(as_bytes(notebook), bundle).flags]
    told = [flag for flag in flags if "twice" in flag]
    assert len(told) == 1
    assert "belongs into a cell of its own, above the check" in told[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_read(bundle: Bundle, encoding: str) -> None:
    data = json.dumps(answered(bundle, "Größer.")[0], ensure_ascii=False).encode(encoding)
    assert parse(data, bundle).written_answers(bundle) == {"written_why": "Größer."}


@pytest.mark.parametrize(("version", "reads"), [(4.0, True), (4.5, False), (float("inf"), False)])
def test_a_version_with_a_point(bundle: Bundle, version: float, reads: bool) -> None:
    notebook = json.loads(as_bytes(answered(bundle)[0])) | {"nbformat": version}
    if reads:
        assert parse(json.dumps(notebook).encode(), bundle).cells
    else:
        with pytest.raises(Exception, match="not a notebook"):
            parse(json.dumps(notebook).encode(), bundle)


def test_an_ending_in_capitals_is_found(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "tiny.IPYNB").write_text("{}")
    path, flags = find_notebook(tmp_path, bundle)
    assert path.name == "tiny.IPYNB"
    assert [flag.words for flag in flags] == ["the notebook was called tiny.IPYNB, not tiny.ipynb"]


def test_a_second_notebook_is_named(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "tiny.ipynb").write_text("{}")
    assert find_notebook(tmp_path, bundle)[1] == []
    (tmp_path / "tiny-final.ipynb").write_text("{}")
    path, flags = find_notebook(tmp_path, bundle)
    assert path.name == "tiny.ipynb"
    says = "tiny-final.ipynb was handed in too and not graded; tiny.ipynb counts"
    assert [flag.words for flag in flags] == [says]


def test_a_solved_notebook_of_the_course_is_noticed(bundle: Bundle) -> None:
    notebook = notebook_with(bundle)
    assert not [flag for flag in parse(as_bytes(notebook), bundle).flags if flag.kind == "solved"]
    cell = next(one for one in notebook.cells if grade_id(one) == "double")
    cell.source = f"### BEGIN SOLUTION\n{cell.source}\n### END SOLUTION"
    (flag,) = [flag for flag in parse(as_bytes(notebook), bundle).flags if flag.kind == "solved"]
    assert "cell double holds the marks of the course's own solved notebook" in flag.words


def test_a_figure_stands_in_the_autograded_notebook_as_a_picture_alone(bundle: Bundle) -> None:
    """It came as HTML, of which nothing else is shown to whoever reads the notebook."""
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    figure = f'<img alt="A line." src="data:image/png;base64,{picture}">'
    notebook, _ = answered(bundle)
    outputs = [
        nbformat.v4.new_output("display_data", {"text/html": text, "text/plain": "A line."})
        for text in (figure, f"{figure}<script>LIVE</script>", figure.replace("png;", "svg+xml;"))
    ]
    notebook.cells.append(nbformat.v4.new_code_cell("show(figure)", outputs=outputs))
    (cell,) = (cell for cell in parse(as_bytes(notebook), bundle).cells if cell.outputs)
    shown = [dict(output.data) for output in safe_outputs(cell)]
    assert shown == [{"image/png": picture}, {"text/plain": "A line."}, {"text/plain": "A line."}]
