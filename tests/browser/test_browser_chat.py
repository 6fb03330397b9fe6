"""The chat cell of lesson 18 on a page, with the published model and the right answers."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from autograder.build.beside import write_data
from lesson_kit.chat_model import PACKAGE

from ..conftest import COURSE
from .notebook_page import cell, run, said_below, wait_for_the_kernel
from .window import SECONDS, jupyter_lab, needs_chromium, take_picture, window

expect.set_options(timeout=SECONDS * 1000)

#: The cells above the chat that it stands on, by what they hold.
NEEDED = re.compile(
    r"### BEGIN SOLUTION|^import |chat_model = open|def numbers_of|token_vectors = |^cat_ids = |"
    r"def byte_characters|def reader\(\)",
    re.M,
)


@pytest.mark.long
@needs_chromium
@pytest.mark.skipif(
    find_spec(PACKAGE.replace("-", "_")) is None,
    reason="The published chat model is not installed: `make lab` installs it.",
)
def test_it_talks_word_by_word_and_stops(tmp_path: Path) -> None:
    lesson = COURSE.lesson("18-talking-model")
    sources = [one.source for one in lesson.notebook.cells if one.cell_type == "code"]
    place = next(number for number, source in enumerate(sources) if "chat_window(" in source)
    above = [source for source in sources[:place] if NEEDED.search(source)]
    cells = [nbformat.v4.new_code_cell(source) for source in ("\n\n".join(above), sources[place])]
    folder = tmp_path / "course"
    folder.mkdir()
    write_data(lesson, folder)
    cells[0].source += "\n\n_ = torch.manual_seed(5)  # for the picture: a story, and no excuse"
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=lesson.notebook.metadata)
    nbformat.write(notebook, folder / "talking_model.ipynb")
    with jupyter_lab(folder, tmp_path) as lab, window(height=900) as browser:
        page = browser.open(lab.address("lab/tree/talking_model.ipynb"))
        wait_for_the_kernel(page)
        run(page, cell(page, 0))
        talk = cell(page, 1)
        run(page, talk)
        out = said_below(talk)
        line = out.get_by_placeholder("Say something, and press Enter")
        log, send, stop = (
            out.get_by_role("log"),
            out.get_by_role("button", name="Send"),
            out.get_by_role("button", name="Stop"),
        )

        line.fill("What is the capital of France?")
        line.press("Enter")
        expect(log.get_by_text("What is the capital of France?")).to_be_visible()
        expect(send).to_be_enabled()
        expect(log.get_by_text(re.compile(r"^The model: \w+"))).to_be_visible()
        assert line.input_value() == ""

        line.fill("Tell me a story about a black cat.")
        send.click()
        expect(stop).to_be_enabled()
        answer = log.locator("p").nth(3)
        expect(answer).to_have_text(re.compile(r"The model: (\S+\s+){35}"))
        early = answer.inner_text()
        expect(answer).not_to_have_text(early)  # it goes on
        talk.scroll_into_view_if_needed()
        take_picture(page, "chat")
        stop.click()
        expect(send).to_be_enabled()
        said = answer.inner_text()
        page.wait_for_timeout(2000)
        assert answer.inner_text() == said
        assert not browser.asked_outside
