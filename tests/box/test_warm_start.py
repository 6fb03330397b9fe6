"""A forked box comes to what a stock Jupyter kernel comes to, on every solved notebook."""

from __future__ import annotations

import copy
import re

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.box.caps import MAX_OUTPUT_CHARACTERS
from autograder.build.beside import write_data
from autograder.course.bundle import Bundle
from autograder.course.lessons import Lesson
from autograder.notebooks import DEMONSTRATION, is_test, tags

from ..conftest import COURSE, sampled
from ..submissions import boxes, notebook_with


def plain(text: str) -> str:
    """Printed text without what differs by nature: addresses and white space at line ends."""
    text = re.sub(r"0x[0-9a-f]+", "ADDRESS", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def printed(cell: nbformat.NotebookNode) -> str:
    """What a cell printed and its last value, as a terminal would show them."""
    parts, stream = [], ""
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            stream += output.text  # on a busy machine one text comes in several pieces
        elif output.output_type == "execute_result":
            parts += [stream, output.data["text/plain"]]
            stream = ""
    return plain("\n".join(part.rstrip("\n") for part in (*parts, stream) if part))


@pytest.mark.parametrize("cut", range(1, 9))
def test_text_that_comes_in_pieces_is_one_text(cut: int) -> None:
    text = "one\n\ntwo\n"
    pieces = [nbformat.v4.new_output("stream", text=part) for part in (text[:cut], text[cut:])]
    noise = nbformat.v4.new_output("stream", name="stderr", text="a warning\n")
    value = nbformat.v4.new_output("execute_result", data={"text/plain": "3"})
    pieces = [pieces[0], noise, pieces[1], value]
    assert printed(nbformat.v4.new_code_cell("", outputs=pieces)) == "one\n\ntwo\n3"


#: A last cell: what the notebook's names are bound to, and what they compute. Lessons that print
#: in their demonstrations only are compared by this alone.
LEFT_BEHIND = """
import inspect as _inspect
def _told(_value):
    if isinstance(_value, type):
        return [_value.__name__, sorted(vars(_value)), str(_inspect.signature(_value))]
    if callable(_value):
        return str(_inspect.signature(_value))
    return repr(_value)
for _name in {names}:
    print(_name, _told(globals()[_name]))
print(np.geterr(), torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
_scores = np.random.default_rng(0).normal(size=(3, 5))
print(np.exp(_scores), torch.softmax(torch.tensor(_scores), -1), plt.rcParams["figure.figsize"])
"""


@pytest.mark.parametrize("lesson", sampled(COURSE.lessons), ids=lambda lesson: lesson.folder)
def test_a_box_prints_what_a_stock_kernel_prints(
    lesson: Lesson, bundles: dict[str, Bundle], tmp_path_factory: pytest.TempPathFactory
) -> None:
    bundle = bundles[lesson.folder]
    notebook = copy.deepcopy(notebook_with(bundle))
    notebook.cells = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and DEMONSTRATION not in tags(cell) and not is_test(cell)
    ]
    names = list(lesson.exercises)
    last = nbformat.v4.new_code_cell(LEFT_BEHIND.replace("{names}", repr(names)))
    notebook.cells.append(last)
    folder = tmp_path_factory.mktemp("kernel")
    write_data(lesson, folder)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=600, startup_timeout=300, resources=resources).execute()
    with boxes().start(bundle.companions) as box:
        for cell in notebook.cells:
            reply = box.run(cell.source, 600)
            assert reply.error is None, f"{cell.source}\n{reply.error}"
            shown = re.sub(r"^Out\[\d+\]: ?", "", plain(reply.output), flags=re.M)
            expected = printed(cell)
            assert len(expected) < MAX_OUTPUT_CHARACTERS
            assert plain(shown) == expected, cell.source
    assert all(f"{name} " in printed(last) for name in names), "nothing was compared"
