"""The boxes with the most to say: small while folded, and seen after Shift+Enter."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from autograder.course.implementations import misconceptions
from autograder.course.lessons import Lesson
from autograder.notebooks import HIDDEN, KERNEL

from ..conftest import COURSE
from .notebook_page import MAX_HEIGHT, PINK, cell, run, wait_for_the_kernel
from .window import SECONDS, jupyter_lab, needs_chromium, window

expect.set_options(timeout=SECONDS * 1000)

HOW_MANY = 10

#: In a kernel: a cell with several named checks, the first two of which fail.
_SETUP = """\
import json
import numpy as np
import lesson_kit.checks
from lesson_kit.failures import CheckFailed, ChecksFailed, Part

boxes = json.load(open("boxes.json"))


def show(number):
    exercise, advice, message = boxes[number]
    if not message:
        raise RuntimeError("copying a parameter of another shape, " * 12)
    got = np.arange(24.0).reshape(3, 8)
    detail = "the result: 24 of 24 values differ by more than the check allows for rounding."
    errors = [CheckFailed(message, detail, shown=((got, got + 1), " [1, 0]")) for _ in range(2)]
    failed = ChecksFailed([Part(f"a batch of {n}", 1.0, error) for n, error in enumerate(errors)])
    failed.advice = advice
    raise failed
"""


def longest(lesson: Lesson) -> Iterator[tuple[str, str, str]]:
    """Of each exercise the longest sentence of a known mistake, and of a visible check."""
    for name in lesson.exercises:
        sentences = [one.sentence for one in misconceptions(lesson) if one.exercise == name]
        source = lesson.tests[f"test_{name}"].source
        if not sentences or HIDDEN.search(source):
            continue
        texts = [
            node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)
        ]
        messages = [text for text in texts if isinstance(text, str)]
        yield name, max(sentences, key=len), max(messages, key=len)


@pytest.mark.long
@needs_chromium
def test_the_tallest_boxes_are_small_and_their_headline_is_seen(tmp_path: Path) -> None:
    boxes = [box for lesson in COURSE.lessons for box in longest(lesson)]
    boxes = sorted(boxes, key=lambda box: -len(box[1] + box[2]))[:HOW_MANY]
    boxes.append(("state_dict", "It raised RuntimeError: copying a parameter", ""))
    folder = tmp_path / "boxes"
    folder.mkdir()
    (folder / "boxes.json").write_text(json.dumps(boxes))
    text = nbformat.v4.new_markdown_cell("\n\n".join(["A paragraph of a lesson."] * 12))
    cells = [nbformat.v4.new_code_cell(_SETUP), text]
    for number, (name, *_) in enumerate(boxes):
        check = f'show({number})  # checks_passed("{name}")'
        cells += [nbformat.v4.new_code_cell(check), text]
    for number, one in enumerate(cells):
        cells[number] = nbformat.from_dict({**one, "id": f"cell-{number}"})
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=KERNEL)
    nbformat.write(notebook, folder / "boxes.ipynb")
    with jupyter_lab(folder, tmp_path) as lab, window() as browser:
        page = browser.open(lab.address("lab/tree/boxes.ipynb"))
        wait_for_the_kernel(page)
        run(page, cell(page, 0))
        expect(cell(page, 0).locator(".jp-InputPrompt")).to_have_text("[1]:")
        for number, (name, advice, _) in enumerate(boxes):
            check = cell(page, 2 + 2 * number)
            check.locator(".cm-content").click()
            page.keyboard.press("Shift+Enter")
            box = check.get_by_role("alert")
            expect(box).to_contain_text(advice.replace("`", ""))
            page.wait_for_timeout(1000)
            assert (box.bounding_box() or {"height": 999})["height"] <= MAX_HEIGHT, name
            expect(box.locator("p").first).to_be_in_viewport()
            expect(box.locator("p").first).to_contain_text(name)
            expect(check.locator(PINK)).to_be_hidden()  # there is no traceback in it
