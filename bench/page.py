"""How long a student waits for the box, in JupyterLab in Chromium.

``python -m bench.page`` opens the solved notebook of a lesson, runs all of it, and then runs each
visible check of an exercise again by the keyboard. The time is the page's own, from the key to the
frame in which the box of a passing check stands; the student's code is part of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path

import nbformat
from playwright.sync_api import Page, expect

from autograder.course.lessons import Course
from autograder.notebooks import grade_id
from bench.markdown import table
from tests.browser.notebook_page import cell, wait_for_the_kernel
from tests.browser.window import SECONDS, jupyter_lab, window

_WATCH = """number => {
    const cell = document.querySelector(`.jp-Cell[data-windowed-list-index='${number}']`);
    window.began = window.ended = null;
    const key = event => { if (event.key === "Enter") window.began ??= performance.now(); };
    cell.addEventListener("keydown", key, { capture: true });
    const holds = node => node.matches?.("[role=status]") || node.querySelector?.("[role=status]");
    new MutationObserver(changes => {
        if (window.began === null || window.ended !== null) return;
        if (changes.some(change => [...change.addedNodes].some(holds)))
            requestAnimationFrame(() => { window.ended = performance.now(); });
    }).observe(cell, { childList: true, subtree: true });
}"""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lesson", default="02", help="such as 02")
    parser.add_argument("--times", type=int, default=5, help="that each check is run")
    parser.add_argument("--course", type=Path, default=Path())
    asked = parser.parse_args()
    lesson = Course.load(asked.course).lesson(asked.lesson)
    expect.set_options(timeout=SECONDS * 1000)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = Path(scratch, "course", lesson.folder)
        shutil.copytree(asked.course / "solutions" / lesson.folder, folder)
        released = asked.course / "course" / lesson.folder
        shutil.copytree(
            released, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.ipynb")
        )
        path = f"{lesson.folder}/{lesson.notebook_name}.ipynb"
        cells = nbformat.read(folder.parent / path, as_version=4).cells
        places = {
            name: number
            for number, one in enumerate(cells)
            if (name := grade_id(one).removeprefix("test_")) in lesson.exercises
        }
        with jupyter_lab(folder.parent, Path(scratch)) as lab, window() as browser:
            page = browser.open(lab.address(f"lab/tree/{path}"))
            rows = _measure(page, places, asked.times)
    load = os.getloadavg()[0]
    print(f"Lesson {asked.lesson}, load of the machine's {os.cpu_count()} cores: {load:.1f}.\n")
    print(table(["check", "ms, median", "ms, longest"], rows))


def _measure(page: Page, places: dict[str, int], times: int) -> list[list[str | float]]:
    wait_for_the_kernel(page)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_timeout(2000)
    wait_for_the_kernel(page)
    page.get_by_role("tab", name="Table of Contents").click()
    rows: list[list[str | float]] = []
    for name, number in places.items():
        headings = page.locator(".jp-TableOfContents-content").get_by_text(f": {name}")
        if not headings.count():
            continue
        headings.first.click()
        check = cell(page, number)
        check.scroll_into_view_if_needed()
        folded = check.locator(".jp-InputPlaceholder")
        if folded.is_visible():
            folded.click()
        took = []
        for _ in range(times + 1):  # the first one opens the cell, and is not counted
            check.locator(".cm-content").click()
            page.evaluate(_WATCH, number)
            page.keyboard.press("Control+Enter")
            page.wait_for_function("window.ended !== null")
            took.append(float(page.evaluate("window.ended - window.began")))
        rows.append([name, statistics.median(took[1:]), max(took[1:])])
    return rows


if __name__ == "__main__":
    main()
