"""The documentation as a site: whole, without broken links, and without a solution."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.marking.formulas import as_mathml
from autograder.notebooks import is_answer, is_written

from ..browser.accessible import violations
from ..browser.window import needs_chromium, window
from ..conftest import COURSE, ROOT
from ..hand_outs import read
from ..telling import BOILERPLATE, solution_regions, telling_lines

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def build(into: Path, *options: str) -> Path:
    """Build the site as ``make site`` does, into another folder."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-c", "docs", "-d", str(into / "doctrees")),
            *("--fail-on-warning", "--keep-going", "--quiet", *options, ".", str(into / "site")),
        ],
        cwd=ROOT,
        env=os.environ | {"HOME": str(into)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return into / "site"


def solution_lines() -> dict[str, str]:
    """Lines of answers and model answers, without white space; and their lessons."""
    found: dict[str, str] = {}
    for lesson in COURSE.lessons:
        for cell in lesson.notebook.cells:
            if is_answer(cell):
                lines = telling_lines(solution_regions(cell.source)) - BOILERPLATE
            elif is_written(cell):
                lines = {re.sub(r"\s+", "", one) for one in cell.source.splitlines()}
            else:
                continue
            found |= {line: lesson.folder for line in lines if len(line) > 20}
    return found


def words_of(path: Path) -> str:
    """The text of a file of the site, without tags and white space."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    return re.sub(r"\s+", "", html.unescape(re.sub(r"<[^>]+>", "", text)))


def given_away(site: Path) -> set[str]:
    """The lessons of which the site holds a line of a solution that students are not given."""
    books = [read(path) for path in (ROOT / "course").glob("*/*.ipynb")]
    given = re.sub(r"\s+", "", "\n".join(cell.source for book in books for cell in book.cells))
    secrets = {line: one for line, one in solution_lines().items() if line not in given}
    assert len(secrets) > 100, "the solutions were not collected"
    text = "\n".join(words_of(path) for path in site.rglob("*") if path.is_file())
    return {lesson for line, lesson in secrets.items() if line in text}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {path.relative_to(site / "docs").stem for path in (site / "docs").glob("*.html")}
    assert pages == {path.stem for path in (ROOT / "docs").glob("*.md")}
    front = (site / "index.html").read_text(encoding="utf-8")
    for lesson in COURSE.lessons:
        page = f"course/{lesson.folder}/{lesson.notebook_name}.html"
        assert f'href="{page}"' in front and lesson.title in front
        assert (site / page).is_file()
    assert "alignment.png" in front and (site / "_static" / "alignment.png").is_file()
    page = site / "course" / COURSE.lessons[0].folder / f"{COURSE.lessons[0].notebook_name}.html"
    lesson = page.read_text(encoding="utf-8")
    assert lesson.count("<img") > 0, "the figures"
    assert ">Setup<" in lesson and "Show code cell" not in lesson, "what is folded says what it is"
    assert "bubblewrap" in words_of(site / "SECURITY.html")
    assert "scheduler" in words_of(site / "docs" / "many-machines.html")
    for path in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"([^\"]+)", path.read_text()
        )
        loaded = [one for one in loaded if not one.startswith("data:image/png;base64,")]
        assert not [one for one in loaded if "//" in one], path
        assert path.read_text().count('<meta name="description" content="') == 1, path
    for path in site.rglob("*.css"):
        assert not re.findall(
            r"(?:url\(|@import)\s*['\"]?https?:", path.read_text(encoding="utf-8")
        ), path


@pytest.mark.long
@needs_chromium
def test_it_can_be_used_without_a_mouse_and_without_seeing_it(site: Path) -> None:
    lesson = COURSE.lesson("03")
    with window() as browser:
        for name in (f"course/{lesson.folder}/{lesson.notebook_name}", "index", "docs/student"):
            found = violations(browser.open((site / f"{name}.html").as_uri()))
            assert not found, "\n".join(["", name, *found])


def test_no_line_of_a_solution_is_in_the_site(site: Path) -> None:
    assert given_away(site) == set()


@pytest.mark.long
def test_with_the_switch_the_solved_lessons_are_there(tmp_path: Path) -> None:
    site = build(tmp_path, "--tag", "solutions")
    built = [one for one in COURSE.lessons if (ROOT / "solutions" / one.folder).is_dir()]
    assert built and given_away(site) >= {lesson.folder for lesson in built}
    first = words_of(site / "docs" / "index.html")
    for lesson in built:
        path = site / "solutions" / lesson.folder / f"{lesson.notebook_name}.html"
        page = path.read_text(encoding="utf-8")
        assert lesson.title.replace(" ", "") in first
        assert page.count("<img") > 0, "the figures"
        assert ">Setup<" in page and "BEGIN SOLUTION" not in page
        assert page.count("<math") >= 10 and "$$" not in page
        assert not re.findall(r"<em>[^<]*\$", page), "a caption's formulas"


def test_the_make_targets_do_what_is_tested() -> None:
    sphinx = "python -m sphinx -c docs -d build/site-doctrees --fail-on-warning --keep-going"
    switch = "--quiet $(if $(SOLUTIONS),--tag solutions) . build/site"
    assert f"{sphinx} \\\n\t  {switch}\n" in MAKEFILE
    assert "SCREENSHOTS=docs/images $(BIN)/pytest" in MAKEFILE


def test_the_pictures_are_small_and_shown() -> None:
    shown = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    pictures = sorted((ROOT / "docs" / "images").glob("*.webp"))
    assert pictures
    for picture in pictures:
        assert f"(images/{picture.name})" in shown
        assert picture.stat().st_size < 200_000


def test_every_formula_of_the_course_can_be_drawn_without_mathjax() -> None:
    count = 0
    for lesson in (*COURSE.lessons, *COURSE.drafts):
        for cell in lesson.notebook.cells:
            if cell.cell_type == "markdown":
                text = re.sub(r"`[^`\n]*`", "", cell.source)
                for block, inline in re.findall(r"\$\$(.+?)\$\$|\$(.+?)\$", text, re.S):
                    made = as_mathml(block or inline, block=bool(block))
                    assert made, block or inline
                    assert "\\" not in made, "an unknown command stays in it"
                    count += 1
    assert count > 500
