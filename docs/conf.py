"""The documentation as a site: ``make site``; with the solved lessons: ``make site SOLUTIONS=1``.

Sphinx reads the Markdown where it lies; ``build/site`` works without a server and without the
internet.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

from autograder.course.lessons import Course
from autograder.marking.formulas import as_mathml

sys.path.insert(0, str(Path(__file__).parent))
from lesson_pages import ROOT, as_page, as_solved_page, front_page, page_of

COURSE = Course.load(ROOT)
DESCRIPTION = (
    "A course of Jupyter notebooks with checks that say which mistake you made, and an autograder "
    "for classes."
)
project = "Attention course and autograder"
extensions = ["myst_nb"]
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
html_math_renderer = "mathml"
templates_path = ["templates"]
html_additional_pages = {"index": "the_course.html"}
html_context = {"course": front_page(COURSE)}
html_static_path = ["alignment.png"]
html_favicon = "favicon.svg"

root_doc = "docs/index"
include_patterns = ["docs/*.md", "SECURITY.md", "lessons/README.md"]
include_patterns += [f"{page_of(lesson)}.ipynb" for lesson in COURSE.lessons]
exclude_patterns = [".*", "build", "course/start.ipynb", "demo-class"]
WITH_SOLUTIONS = "solutions" in tags  # noqa: F821  (Sphinx gives its --tag)
if WITH_SOLUTIONS:
    include_patterns.append("solutions/*/*.ipynb")

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # they hold their outputs, which the tests compare
nb_render_markdown_format = "myst"  # captions have formulas too
suppress_warnings = ["myst.header"]  # a lesson's headings are its own

LESSONS = """
```{toctree}
:caption: The lessons
:maxdepth: 1

"""
SOLVED_LESSONS = """
```{toctree}
:caption: The solved lessons
:glob:
:maxdepth: 1

../solutions/*/*
```
"""


def _read(app: Sphinx, page: str, text: list[str]) -> None:
    """A page's source: the first page lists the lessons; these are laid out to be read."""
    if page == root_doc:
        lessons = LESSONS + "\n".join(f"/{page_of(one)}" for one in COURSE.lessons) + "\n```\n"
        before, documentation = text[0].split("```{toctree}", 1)
        text[0] = f"{before}{lessons}\n```{{toctree}}\n:caption: Documentation{documentation}"
        text[0] += SOLVED_LESSONS if WITH_SOLUTIONS else ""
    elif page.startswith("course/"):
        text[0] = as_page(page, text[0])
    elif page.startswith("solutions/"):
        text[0] = as_solved_page(text[0])


def _formula(writer: nodes.NodeVisitor, node: nodes.math | nodes.math_block) -> None:
    block = isinstance(node, nodes.math_block)
    made = as_mathml(node.astext(), block=block)
    if made is None:
        getLogger(__name__).warning("no MathML for %s", node.astext(), location=node)
    writer.body.append(made or writer.encode(node.astext()))
    raise nodes.SkipNode


def _described(
    app: Sphinx, page: str, template: str, context: dict[str, str], tree: nodes.document | None
) -> None:
    """What a search engine shows of a page."""
    about = {page_of(one): f"{one.title}. {one.about}" for one in COURSE.lessons}
    words = about.get(page.replace("solutions/", "course/", 1), f"{COURSE.title}. {DESCRIPTION}")
    meta = f'<meta name="description" content="{escape(words)}">'
    context["metatags"] = context.get("metatags", "") + meta


#: What the theme leaves out for who uses a keyboard or a screen reader, as axe-core says.
REACHABLE = {
    "<pre>": '<pre tabindex="0">',  # code that is wider than the page is scrolled
    '<div class="math-wrapper docutils container">': (
        '<div tabindex="0" class="math-wrapper docutils container">'
    ),
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
}


def _reachable(app: Sphinx, error: Exception | None) -> None:
    """Add it to the pages that were written."""
    for path in [] if error else Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for left_out, whole in REACHABLE.items():
            text = text.replace(left_out, whole)
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Formulas as MathML, which browsers draw; the lessons as pages, each with a description."""
    app.connect("html-page-context", _described)
    app.connect("build-finished", _reachable)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("source-read", _read)
