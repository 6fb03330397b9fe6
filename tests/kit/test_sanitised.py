"""What notebooks show where HTML is sanitised: on GitHub, in nbconvert, in VS Code and Colab.

Styles and scripts go, and on GitHub an image's data too; the words stay.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import bleach
import numpy as np
import pytest
from nbconvert.preprocessors.sanitize import SanitizeHTML

from autograder.course.lessons import Lesson
from lesson_kit import shown
from lesson_kit.checks import assert_close
from lesson_kit.failures import CheckFailed, ChecksFailed, Part
from lesson_kit.token_way import as_image

from ..conftest import COURSE, ROOT
from ..hand_outs import read

#: What GitHub's filter of HTML lets through (html-pipeline's SanitizationFilter).
_TAGS = re.findall(
    r"\w+",
    "h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p ol ul table thead "
    "tbody tfoot blockquote dl dt dd kbd q samp var hr ruby rt rp li tr td th s strike summary "
    "details caption figure figcaption abbr bdo cite dfn mark small span time",
)
_ATTRIBUTES = {
    "*": ["align", "alt", "border", "colspan", "height", "open", "rowspan", "title", "width"],
    "a": ["href"],
    "img": ["src"],
}
_SCRIPT = re.compile(r"<script.*?</script>", re.S)


def on_github(text: str) -> str:
    return str(
        bleach.clean(_SCRIPT.sub("", text), _TAGS, _ATTRIBUTES, ["http", "https"], strip=True)
    )


def in_nbconvert(text: str) -> str:
    return str(SanitizeHTML().sanitize_html_tags(text))


def words(text: str) -> list[str]:
    """What is read of HTML, and of texts that stand in place of images."""
    alts = re.findall(r'alt="([^"]*)"', text)
    plain = re.sub(r"<[^>]+>", " ", _SCRIPT.sub("", text))
    return html.unescape(" ".join([plain, *alts])).split()


sanitised = pytest.mark.parametrize("clean", [on_github, in_nbconvert])


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The HTML that is shown, as in a notebook."""
    made: list[str] = []
    monkeypatch.setattr(shown, "in_notebook", lambda: True)
    publish = "IPython.display.publish_display_data"
    monkeypatch.setattr(publish, lambda data, metadata=None: made.append(data["text/html"]))
    return made


@sanitised
def test_a_box_says_its_words(clean: Callable[[str], str], published: list[str]) -> None:
    with pytest.raises(CheckFailed) as caught:
        assert_close(np.ones((2, 3)), np.zeros((2, 3)), "Is `x` the mask?")
    error = caught.value
    failed = ChecksFailed([Part("a batch", 1.0, error), Part("a mask", 2.0, error)])
    shown.show_box(failed.html(), failed.lines(), headline="A headline.")
    shown.show_pass("`softmax`: these checks pass.")
    assert len(published) == 2
    for text in published:
        read_there = words(html.unescape(clean(text)))
        assert [word for word in words(text) if word not in read_there] == []
    assert "Is" in words(published[0]) and "<script>" not in on_github(published[0])


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda one: one.folder)
def test_the_solved_lessons_say_their_words_on_github(lesson: Lesson) -> None:
    notebook = read(ROOT / "solutions" / lesson.folder / f"{lesson.notebook_name}.ipynb")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [
        output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})
    ]
    assert texts
    for text in texts:
        small = re.sub(r"base64,[^\"']+", "base64,", text)
        assert words(on_github(small)) == words(small)


@sanitised
def test_the_words_of_the_way_stay(clean: Callable[[str], str]) -> None:
    assert "A token's way." in html.unescape(clean(as_image("<svg/>", "A token's way.")))
