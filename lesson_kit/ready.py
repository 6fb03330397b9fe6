"""What a setup cell says when it has run: that all is ready, where the student was, and where the
lesson stands on the course's way.

It is said where a person's page asked for the cell; what runs a notebook without showing it prints
nothing. What counts is what the notebook held when it was saved last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["watch"]


def watch() -> None:
    """Say it once, after the cell that begins to use the kit and runs well."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return

    def after(result: Any) -> None:
        if result.success and "lesson_kit" in str(getattr(result.info, "raw_cell", "")):
            shell.events.unregister("post_run_cell", after)
            _say()

    shell.events.register("post_run_cell", after)


def _say() -> None:
    from IPython.display import publish_display_data

    from .cells import asked_by_a_page
    from .token_way import show_strip

    text, plain = where_you_were(Path.cwd())
    if asked_by_a_page() and text:
        publish_display_data({"text/markdown": text, "text/plain": plain})
        show_strip()


def where_you_were(folder: Path) -> tuple[str, str]:
    """How far a lesson's notebook is, and what to go on with.

    Args:
        folder: of the lesson.

    Returns:
        The same as Markdown, with a link to the cell, and as plain text; two empty texts where the
        folder is no lesson's, as on the start page.
    """
    from .course_progress import lesson_notebooks, progress_of
    from .words import tr

    notebooks = [path for path in lesson_notebooks(folder.parent) if path.parent == folder]
    if not notebooks:
        return "", ""
    progress = progress_of(notebooks[0])
    if progress.problem or not (progress.begun or progress.passing):
        return tr("Ready."), tr("Ready.")
    counted = {"passing": progress.passing, "checks": progress.checks}
    if progress.done:
        said = tr("Ready. All {checks} visible checks pass here.", **counted)
        return said, said
    count = tr("Ready. {passing} of {checks} visible checks pass here, as saved.", **counted)
    name, link = progress.next_step
    beside = link.partition("/")[2]
    linked = tr("Go on with {name}.", name=f"[{name}]({beside})")
    return f"{count} {linked}", f"{count} {tr('Go on with {name}.', name=name)}"
