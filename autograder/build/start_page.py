"""``course/start.ipynb``: the page on which JupyterLab opens, and its settings for students.

It is a notebook and not a Markdown file because a notebook can be asked again: its one cell reads
the lesson notebooks beside it and shows how far the student is, with nothing but the kit. Its
output is stored by the build, as Markdown, so that the lessons and their links are there before
anything was run, also in a notebook that is not trusted.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import nbformat

from autograder.course.lessons import Course
from autograder.course.translation import words_of
from autograder.errors import WrongUse
from autograder.files import write_whole
from autograder.notebooks import KERNEL
from lesson_kit.course_map import as_map, refresh
from lesson_kit.course_progress import lesson_notebooks, progress_of
from lesson_kit.words import N_, speaking, tr

START_FILE = "start.ipynb"

#: What ``make lab`` tells JupyterLab with ``--LabApp.app_settings_dir``: it asks nobody about news,
#: and shows a student no panel in which assignments are made.
SETTINGS_FOLDER = ".jupyterlab"
_SETTINGS = {
    "overrides.json": {
        "@jupyterlab/apputils-extension:notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
        }
    },
    "page_config.json": {"disabledExtensions": {"@jupyter/nbgrader:create-assignment": True}},
}

_WELCOME = N_("""\
Open a lesson with its link. An exercise is a card that says what to write, a cell to write
it in, and a check right below, folded to one line: **Shift+Enter** runs your answer, and once more
its check.""")

_MORE = N_("""\
The map shows your own progress as saved in the notebooks: save them, then click the button above it
(where it does nothing, click into the map and press **Shift+Enter**). JupyterLab may ask once
whether you trust this page, as it asks of any notebook that another computer made: its cell only
reads the notebooks beside it.

`autograder check` in a terminal runs all visible checks at once and says which pass. More checks
run when your work is graded.""")

_YOURS = N_("# Your progress")
_CODE = "\nfrom lesson_kit.course_progress import show_progress\n\nshow_progress()"


def write_start_page(folder: Path, course: Course) -> None:
    """Write the start page of the lessons that lie in a course folder, and settings.

    Args:
        folder: with one folder a lesson.
        course: whose title and picture it has.
    """
    with speaking(words_of(course.lessons[0])):
        cells = _cells(folder, course)
    for cell, name in zip(cells, ("welcome", "progress", "more")):
        cell["id"] = name
    page = nbformat.v4.new_notebook(cells=cells)
    page.metadata = nbformat.from_dict(KERNEL)
    write_whole(folder / START_FILE, nbformat.writes(page) + "\n")
    (folder / SETTINGS_FOLDER).mkdir(exist_ok=True)
    for name, tree in _SETTINGS.items():
        text = json.dumps(tree, indent=2)
        write_whole(folder / SETTINGS_FOLDER / name, text + "\n")


def _cells(folder: Path, course: Course) -> list[nbformat.NotebookNode]:
    table = refresh() + as_map([progress_of(path) for path in lesson_notebooks(folder)])
    shown = nbformat.v4.new_output(
        "display_data", {"text/markdown": table, "text/plain": "<IPython.core.display.Markdown>"}
    )
    # The code is folded away: the cell is there to be run, not to be read.
    hidden = {"jupyter": {"source_hidden": True}}
    return [
        _welcome(course),
        nbformat.v4.new_code_cell(tr(_YOURS) + _CODE, outputs=[shown], metadata=hidden),
        nbformat.v4.new_markdown_cell(tr(_MORE)),
    ]


def _welcome(course: Course) -> nbformat.NotebookNode:
    """The title, the course's picture, which is part of the cell, and what to do."""
    shown = course.picture
    picture = f"![{shown.says}](attachment:picture)\n\n{shown.caption}\n\n" if shown else ""
    cell = nbformat.v4.new_markdown_cell(f"# {course.title}\n\n{picture}{tr(_WELCOME)}")
    if shown:
        file = Path(shown.file)
        if not file.is_file():
            raise WrongUse(f"{file} is not there: course.toml names it as a picture; make it first")
        cell["attachments"] = {"picture": {"image/png": b64encode(file.read_bytes()).decode()}}
    return cell
