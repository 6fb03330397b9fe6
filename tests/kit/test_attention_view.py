"""An attention map to look around in, and what stands in its place where no page asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from lesson_kit.attention_view import attention_view, page_of

from ..browser.accessible import violations
from ..browser.window import needs_chromium, take_picture, window

WORDS = ["the", "<cat>", "sleeps"]


def weights() -> np.ndarray:
    """Two layers of two heads: L0H0 looks at itself, L0H1 back, L1H0 at the first, L1H1 at all."""
    back, first = np.eye(3, k=-1), np.zeros((3, 3))
    back[0, 0], first[:, 0] = 1, 1
    return np.array([[np.eye(3), back], [first, np.full((3, 3), 1 / 3)]])


@needs_chromium
def test_words_and_arrow_keys_lead_through_all_heads(tmp_path: Path) -> None:
    path = tmp_path / "view.html"
    body = page_of(WORDS, weights(), WORDS, (0, 1))
    path.write_text(f'<!doctype html><html lang="en"><title>View</title><main>{body}</main></html>')
    with window() as browser:
        page = browser.open(path.as_uri())
        said = page.get_by_role("status")
        expect(said).to_have_text("In L0H1, “sleeps” looks at “<cat>” 1.00.")
        page.get_by_role("button", name="<cat>").hover()
        expect(said).to_have_text("In L0H1, “<cat>” looks at “the” 1.00.")
        for key, says in (
            ("ArrowLeft", "In L0H0, “<cat>” looks at “<cat>” 1.00."),
            ("ArrowDown", "In L1H0, “<cat>” looks at “the” 1.00."),
            ("ArrowRight", "In L1H1, “<cat>” looks at “the” 0.33, “<cat>” 0.33, “sleeps” 0.33."),
            ("ArrowDown", "In L0H1, “<cat>” looks at “the” 1.00."),
        ):
            page.get_by_role("group").press(key)
            expect(said).to_have_text(says)
        page.get_by_role("button", name="L1H0").click()
        expect(said).to_have_text("In L1H0, “<cat>” looks at “the” 1.00.")
        assert page.locator("[aria-pressed=true]").count() == 2
        assert violations(page, ".av") == []
        take_picture(page, "attention-view")


def test_it_holds_all_it_shows_and_loads_nothing() -> None:
    text = page_of(WORDS, weights(), WORDS, (0, 0))
    assert "&lt;cat&gt;" in text and "<cat>" not in text
    assert "http" not in text and "import" not in text


def test_without_a_page_one_head_is_a_heat_map(capsys: pytest.CaptureFixture[str]) -> None:
    attention_view(WORDS, weights(), first=(1, 0), caption="Look.", alt="All look at the first.")
    out = capsys.readouterr().out
    assert "All look at the first." in out and "data-weights" not in out


@pytest.mark.parametrize(
    ("shape", "first", "says"),
    [((2, 3, 3), (0, 0), "need \\(layers, heads, 3, 3\\)"), ((2, 2, 3, 3), (2, 0), "first is")],
)
def test_what_does_not_fit_is_named(
    shape: tuple[int, ...], first: tuple[int, int], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        attention_view(WORDS, np.ones(shape), first=first, caption="", alt="")
