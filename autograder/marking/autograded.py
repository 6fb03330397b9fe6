"""The autograded notebook: what an instructor sees in the Formgrader.

The student's cells with the original tests in place and the verdict as their output.
Outputs are rebuilt from an allow-list, so that nothing a student wrote runs in an
instructor's browser.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from nbformat import NotebookNode

from autograder.course.bundle import Bundle
from autograder.grade.cells import Cell
from autograder.grade.pictures import digest
from autograder.grade.result import Result
from autograder.notebooks import grade_id, joined, nbgrader_metadata

_PNG = b"\x89PNG\r\n\x1a\n"
MAX_TEXT = 20_000

#: Characters of markdown in a notebook, beyond which the Formgrader shows it as it was typed.
MAX_MARKDOWN = 400_000
#: What nbconvert's renderer looks for the end of, to the end of the cell, each time anew; and a run
#: of blanks, which it does the same with.
_SLOW = re.compile(r"\\\\\[|\\\\\(|\\begin\{|[^\S\n]{40}")
_MAX_SLOW = 100


def autograded_notebook(result: Result, bundle: Bundle) -> NotebookNode:
    """The notebook for ``autograded/<student>/<assignment>/``.

    Every graded cell of the source is in it once: at its place where the student kept it,
    at the end otherwise.
    """
    source = {grade_id(cell): cell for cell in bundle.notebook.cells if grade_id(cell)}
    last = {cell.grade_id: number for number, cell in enumerate(result.cells) if cell.grade_id}
    outcomes = {test.grade_id: test for test in result.tests}
    cells: list[NotebookNode] = []
    room = MAX_MARKDOWN

    def of_the_student(text: str) -> str:
        """Markdown that neither runs anything nor takes the page's server long."""
        nonlocal room
        room -= len(text)
        return quick_markdown(text) if room >= 0 else _as_typed(text)

    def add_original(name: str, text: str, pictures: tuple[tuple[str, str], ...] = ()) -> None:
        original = source[name]
        metadata = NotebookNode(nbgrader=NotebookNode(nbgrader_metadata(original)))
        if name in outcomes:
            test = outcomes[name]
            says = f"{test.outcome}: {test.points:g} of {test.max_points:g} points. {test.says}"
            output = _output("stream", name="stdout", text=says.strip() + "\n")
            cells.append(_code_cell(original.source, metadata=metadata, outputs=[output]))
            return
        if original.cell_type == "markdown":
            scheme = original.source.replace("### BEGIN SOLUTION", "**For the grader.**")
            scheme = scheme.replace("### END SOLUTION", "")
            cells.append(_markdown_cell(scheme))
            answer = _markdown_cell(of_the_student(text), metadata=metadata)
            _attach(answer, pictures)
            cells.append(answer)
            return
        cells.append(_code_cell(text, metadata=metadata))

    for number, cell in enumerate(result.cells):
        if cell.grade_id in source and last[cell.grade_id] == number:
            add_original(cell.grade_id, cell.source, cell.attachments)
            if cells[-1].cell_type == "code" and cell.grade_id not in outcomes:
                cells[-1]["outputs"] = safe_outputs(cell)
        elif cell.kind == "code":
            cells.append(_code_cell(cell.source, outputs=safe_outputs(cell)))
        elif cell.kind == "markdown":
            cells.append(_markdown_cell(of_the_student(cell.source)))
    for name in source:
        if name not in last:
            add_original(name, "")
    for number, made in enumerate(cells):
        made["id"] = f"cell-{number}"
    return NotebookNode(
        cells=cells,
        metadata=NotebookNode(bundle.notebook.metadata),
        nbformat=4,
        nbformat_minor=5,
    )


# nbformat's own constructors validate each part against the schema, which costs more than
# grading does; a test validates what is made of these.


def _code_cell(
    source: str,
    *,
    metadata: NotebookNode | None = None,
    outputs: list[NotebookNode] | None = None,
) -> NotebookNode:
    return NotebookNode(
        cell_type="code",
        execution_count=None,
        metadata=metadata or NotebookNode(),
        outputs=outputs or [],
        source=source,
    )


def _markdown_cell(source: str, *, metadata: NotebookNode | None = None) -> NotebookNode:
    return NotebookNode(cell_type="markdown", metadata=metadata or NotebookNode(), source=source)


def _attach(cell: NotebookNode, pictures: tuple[tuple[str, str], ...]) -> None:
    """Show pictures below the text of a cell; what they are is in their names.

    Args:
        cell: of Markdown.
        pictures: name and data address of each, see :mod:`autograder.grade.pictures`.
    """
    for called, address in pictures:
        kind, _, data = address.removeprefix("data:").partition(";base64,")
        name = f"{called.replace(' ', '-')}-{digest(address)}.{kind.removeprefix('image/')}"
        cell.setdefault("attachments", NotebookNode())[name] = NotebookNode({kind: data})
        cell["source"] += f"\n\n![{called}](attachment:{name})"


_ATTACHED = re.compile(r"\n\n!\[picture \d+\]\(attachment:[\w.-]+\)")


def text_of_answer(cell: NotebookNode) -> str:
    """The text of a written answer in an autograded notebook, without its pictures."""
    return _ATTACHED.sub("", cell.source) if cell.get("attachments") else str(cell.source)


def pictures_of_answer(cell: NotebookNode) -> tuple[str, ...]:
    """The data addresses of its pictures."""
    return tuple(
        f"data:{kind};base64,{data}"
        for by_kind in cell.get("attachments", {}).values()
        for kind, data in by_kind.items()
    )


def _output(kind: str, **content: Any) -> NotebookNode:
    if kind == "display_data":
        return NotebookNode(output_type=kind, metadata=NotebookNode(), **content)
    return NotebookNode(output_type=kind, **content)


def safe_markdown(text: str) -> str:
    """Markdown in which no HTML tag, link or image is left: a space makes text of each.

    Addresses are not looked at: ``javascript`` can be spelt with backslashes and entities.
    """
    text = re.sub(r"<(?=[A-Za-z/!?])", "< ", text)
    text = re.sub(r"\](?=[(:])", "] ", text)
    return re.sub(r"\\(?=href|require)", r"\\ ", text)  # MathJax makes links too


def quick_markdown(text: str) -> str:
    """:func:`safe_markdown`, as it was typed where rendering it takes long."""
    quick = len(text) <= MAX_TEXT and len(_SLOW.findall(text)) <= _MAX_SLOW
    return safe_markdown(text) if quick else _as_typed(text)


def _as_typed(text: str) -> str:
    """:func:`safe_markdown` that is shown as it is; no line of the text can end it."""
    text = safe_markdown(text)
    longest = max(map(len, re.findall("~+", text)), default=0)
    fence = "~" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def safe_outputs(cell: Cell) -> list[NotebookNode]:
    """A cell's outputs as far as they are text or a PNG image."""
    kept: list[NotebookNode] = []
    for output in cell.outputs:
        kind = output.get("output_type")
        data = output.get("data")
        if kind == "stream":
            text = _text(output.get("text"))
            kept.append(_output("stream", name="stdout", text=text))
        elif kind in ("display_data", "execute_result") and isinstance(data, dict):
            image = _png(data.get("image/png"))
            safe = {"image/png": image} if image else {"text/plain": _text(data.get("text/plain"))}
            kept.append(_output("display_data", data=safe))
        elif kind == "error":
            text = f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}\n"
            kept.append(_output("stream", name="stderr", text=text))
    return kept


def _text(value: Any) -> str:
    return joined(value)[:MAX_TEXT]


def _png(value: Any) -> str:
    try:
        data = base64.b64decode("".join(joined(value).split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return base64.b64encode(data).decode() if data.startswith(_PNG) else ""


def written_answers(notebook: NotebookNode) -> dict[str, str]:
    """The written answers in an autograded notebook."""
    return {
        grade_id(cell): cell.source
        for cell in notebook.cells
        if grade_id(cell).startswith("written_")
    }
