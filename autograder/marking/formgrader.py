"""The Formgrader as it suits this engine: no internet, and the points that count.

nbgrader's page loads MathJax from a server elsewhere. Where that cannot be reached, formulas
stay as they were typed and the page's own script stops half-way. Here formulas are MathML when
the page leaves the server, so there is nothing to load. A class's ``nbgrader_config.py`` asks
for it.

nbgrader keeps what being late costs beside the points and shows it nowhere. Here the lists of
submissions show the points that are left, the number of all other places.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbgrader
from jinja2 import pass_context
from jinja2.runtime import Context
from mistune.plugins import import_plugin
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbgrader.api import SubmittedAssignment
from nbgrader.apps.api import NbGraderAPI
from traitlets.config import Config

import autograder
from autograder.marking.formulas import Formulas

_TEMPLATES = (
    Path(autograder.__file__).parent / "templates",  # its formgrade/ takes the place of MathJax
    Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates",
)


def without_internet(config: Config) -> None:
    """Set what makes the Formgrader's pages load nothing from elsewhere."""
    config.HTMLExporter.extra_template_basedirs = [str(path) for path in _TEMPLATES]
    config.HTMLExporter.filters = {"markdown2html": f"{__name__}.markdown_of_a_cell"}
    show_what_counts()


def show_what_counts() -> None:
    """Have the Formgrader's lists take late penalties off; nbgrader has no setting for it."""
    if getattr(NbGraderAPI, "takes_penalties_off", False):
        return
    of_assignment, of_student = NbGraderAPI.get_submissions, NbGraderAPI.get_student_submissions

    def get_submissions(api: Any, assignment_id: str) -> list[dict[str, Any]]:
        return _less_penalties(api, of_assignment(api, assignment_id))

    def get_student_submissions(api: Any, student_id: str) -> list[dict[str, Any]]:
        return _less_penalties(api, of_student(api, student_id))

    NbGraderAPI.get_submissions = get_submissions
    NbGraderAPI.get_student_submissions = get_student_submissions
    NbGraderAPI.takes_penalties_off = True


def _less_penalties(api: Any, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those submissions with the points that are left of each."""
    with api.gradebook as gradebook:
        penalties = {
            submission.id: submission.late_submission_penalty or 0.0
            for submission in gradebook.db.query(SubmittedAssignment)
            if submission.late_submission_penalty
        }
    for submission in listed:
        submission["score"] = max(0.0, submission["score"] - penalties.get(submission["id"], 0.0))
    return listed


@pass_context
def markdown_of_a_cell(context: Context, text: str) -> str:
    """:func:`markdown_with_formulas` with the pictures of the cell that a template shows."""
    return markdown_with_formulas(text, context.get("cell", {}).get("attachments"))


def markdown_with_formulas(text: str, attachments: dict[str, Any] | None = None) -> str:
    """Markdown as HTML, as nbconvert makes it, but for two things.

    Formulas are MathML, and an address becomes no link by itself. HTML tags in the text stay:
    what a student wrote comes here without tags and links (see
    :func:`autograder.marking.autograded.safe_markdown`).
    """
    renderer = _Renderer(escape=False, exclude_anchor_links=True, attachments=attachments)
    plugins = [
        import_plugin(plugin) for plugin in MarkdownWithMath.DEFAULT_PLUGINS if plugin != "url"
    ]
    return str(MarkdownWithMath(renderer=renderer, plugins=plugins).render(text))


class _Renderer(IPythonRenderer):
    """nbconvert's renderer; a formula that cannot be converted stays as it was typed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._formulas = Formulas()

    def inline_math(self, body: str) -> str:
        return self._mathml(body, block=False) or super().inline_math(body)

    def block_math(self, body: str) -> str:
        return self._mathml(body, block=True) or super().block_math(body)

    def latex_environment(self, name: str, body: str) -> str:
        whole = f"\\begin{{{name}}}{body}\\end{{{name}}}"
        return self._mathml(whole, block=True) or super().latex_environment(name, body)

    def _mathml(self, latex: str, *, block: bool) -> str:
        return str(self._formulas.mathml(latex, block=block) or "")
