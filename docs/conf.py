"""The documentation as a site: ``make site``; with the solved lessons: ``make site SOLUTIONS=1``.

Sphinx reads the Markdown where it lies; ``build/site`` works without a server and without the
internet.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

from autograder.marking.formulas import as_mathml

project = "Attention course and autograder"
extensions = ["myst_nb"]
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
html_math_renderer = "mathml"
templates_path = ["templates"]
html_additional_pages = {"index": "to_the_first_page.html"}

root_doc = "docs/index"
include_patterns = ["docs/*.md", "SECURITY.md", "lessons/README.md"]
exclude_patterns = [".*", "build", "course", "demo-class"]
WITH_SOLUTIONS = "solutions" in tags  # noqa: F821  (Sphinx gives its --tag)
if WITH_SOLUTIONS:
    include_patterns.append("solutions/*/*.ipynb")

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # they hold their outputs, which the tests compare
nb_render_markdown_format = "myst"  # captions have formulas too
suppress_warnings = ["myst.header"]  # a lesson's headings are its own

SOLVED_LESSONS = """
```{toctree}
:caption: The solved lessons
:glob:
:maxdepth: 1

../solutions/*/*
```
"""


def _add_solved_lessons(app: Sphinx, page: str, text: list[str]) -> None:
    if page == root_doc and WITH_SOLUTIONS:
        text[0] += SOLVED_LESSONS


def _formula(writer: nodes.NodeVisitor, node: nodes.math | nodes.math_block) -> None:
    block = isinstance(node, nodes.math_block)
    made = as_mathml(node.astext(), block=block)
    if made is None:
        getLogger(__name__).warning("no MathML for %s", node.astext(), location=node)
    writer.body.append(made or writer.encode(node.astext()))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Formulas as MathML, which browsers draw; the list of solved lessons, if wanted."""
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("source-read", _add_solved_lessons)
