"""The Formgrader's page as HTML: formulas drawn, nothing loaded, tables and tags as before."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from traitlets.config import Config

from autograder.marking.autograded import quick_markdown, safe_markdown
from autograder.marking.formgrader import markdown_with_formulas, without_internet
from autograder.marking.formulas import LONGEST_FORMULA, MAX_FORMULAS

from ..classes import new


def page(*cells: nbformat.NotebookNode) -> str:
    """What the Formgrader's exporter makes of a notebook."""
    config = Config()
    config.HTMLExporter.template_name = "formgrade"  # as the Formgrader sets it
    without_internet(config)
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    names = ("base_url", "notebook_id", "submission_id", "assignment_id", "notebook_path")
    resources = dict.fromkeys(names, "") | {"index": 0, "total": 1, "student": "ada"}
    html, _ = HTMLExporter(config=config).from_notebook_node(notebook, resources=resources)
    return str(html)


def test_the_page_loads_nothing_from_elsewhere() -> None:
    html = page(nbformat.v4.new_markdown_cell(r"by $\sqrt{d_k}$"))
    assert "<msqrt>" in html
    assert not re.findall(r"(?:src|href)=.?https?:", html)
    assert "window.MathJax" in html, "its script asks for it"


def test_a_new_class_asks_for_it(tmp_path: Path) -> None:
    config = (new(tmp_path).root / "nbgrader_config.py").read_text()
    made = Config()
    exec(config, {"get_config": lambda: made, "__file__": str(tmp_path / "none.py")})
    wanted = Config()
    without_internet(wanted)
    assert made.HTMLExporter == wanted.HTMLExporter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"$$\frac{a}{b}$$", "<mfrac>"),
        (r"\begin{equation}a_1\end{equation}", "<msub>"),
        ("| a |\n|---|\n| $x_1$ |", "<td><math"),
        ("<details><summary>Hint</summary>\n\n$x_1$\n\n</details>", "<details>"),
        (r"$\frac{$ costs 5 $", r"$\frac{$ costs 5 $"),
        ("$" + "x" * (LONGEST_FORMULA + 1) + "$", "$xxx"),
        ("# A heading", "<h1>A heading</h1>"),
    ],
)
def test_markdown_stays_what_it_was_but_for_formulas(text: str, expected: str) -> None:
    assert expected in markdown_with_formulas(text)


def test_no_text_brings_a_link_a_picture_or_much_work() -> None:
    text = "http://elsewhere.example ![](http://elsewhere.example/a.png) [x](http://b.example)"
    made = markdown_with_formulas(safe_markdown(text + " <http://c.example> <img src=x>"))
    assert "elsewhere.example" in made
    assert "<a" not in made and "<img" not in made
    many = markdown_with_formulas("$x_1$ " * (MAX_FORMULAS + 50))
    assert many.count("<math") == MAX_FORMULAS


@pytest.mark.parametrize(
    "text",
    [
        "a" + " " * 300_000 + "b",
        "\\\\[a " * 60_000,
        "\\\\(a " * 60_000,
        "\\begin{a}" * 40_000,
        "\\\\begin{a}" * 1_500,
        "~~~\n" + "word " * 10_000 + "\n~~~\n<script>x</script>",
    ],
)
def test_a_text_that_would_stop_the_server_is_shown_as_it_was_typed(text: str) -> None:
    """Rendered, the first ones take minutes: this test would not end."""
    made = markdown_with_formulas(quick_markdown(text))
    assert made.startswith("<pre>") and made.rstrip().endswith("</pre>")
    assert "<script" not in made


def test_an_ordinary_text_is_rendered() -> None:
    text = "# Why\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\\begin{equation}a\\end{equation}"
    assert quick_markdown(text) == text
