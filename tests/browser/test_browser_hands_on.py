"""Sliders and switches on a student's page: moved from the keyboard, and read aloud."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from ..hand_outs import TINY, handed_out, read
from ..tiny import LESSON
from .accessible import violations
from .notebook_page import cell, run, said_below, wait_for_the_kernel
from .window import SECONDS, jupyter_lab, needs_chromium, window

expect.set_options(timeout=SECONDS * 1000)

MOVES = """
from lesson_kit.guesses import reply
from lesson_kit.hands_on import slider, switches

def bars(axes, factor):
    axes.bar(["one", "two"], np.array([1.0, 2.0]) * factor)
    axes.set(ylim=(0, 10))
    return f"The second bar is {2 * factor} high."

def lamps(axes, on):
    axes.bar(["left", "right"], np.asarray(on, dtype=float))
    return f"{int(np.sum(on))} of 2 are on."

reply("guess_high", guess_high, 4)
slider(bars, "factor", (1, 2, 3, 5), pictures=(1, 3), caption="Try it: a factor.")
switches(lamps, "lamps", ["left", "right"], pictures={"both": (True, True)}, caption="Try them.")
#"""


@pytest.mark.long
@needs_chromium
def test_a_slider_moves_by_keyboard_and_says_what_is_to_be_seen(tmp_path: Path) -> None:
    text = LESSON.replace('raise RuntimeError("a demonstration is not', MOVES).replace(
        '# %% tags=["demonstration"]',
        '# %% tags=["demonstration", "guess"]\nguess_high = 3  # a number\n\n'
        '# %% tags=["demonstration"]',
    )
    course = handed_out(tmp_path, text)
    cells = read(course / TINY).cells
    place = {
        key: number
        for number, one in enumerate(cells)
        for key in ("import numpy", "guess_high =", "slider(bars")
        if key in one.source
    }
    assert "guess_high = None" in cells[place["guess_high ="]].source
    with jupyter_lab(course, tmp_path) as lab, window() as browser:
        page = browser.open(lab.address(f"lab/tree/{TINY}"))
        wait_for_the_kernel(page)
        for key in ("import numpy", "guess_high ="):
            run(page, cell(page, place[key]))
        # Drawing is folded: the line is opened by a click.
        moves = cell(page, place["slider(bars"])
        folded = moves.locator(".jp-InputPlaceholder")
        if folded.is_visible():
            folded.click()
        run(page, moves)
        out = said_below(moves)
        expect(out.get_by_text("Write your guess first")).to_be_visible()

        handle = out.get_by_role("slider").first
        expect(out.get_by_text("factor", exact=True)).to_be_visible()
        expect(out.get_by_text("The second bar is 2 high.").first).to_be_visible()
        handle.focus()
        page.keyboard.press("ArrowRight")
        expect(out.get_by_role("img", name="factor: 2")).to_be_visible()
        expect(
            out.get_by_role("status").filter(has_text="The second bar is 4 high.")
        ).to_be_visible()

        right = out.get_by_role("checkbox", name="right")
        right.focus()
        page.keyboard.press("Space")
        expect(out.get_by_role("img", name="lamps: left")).to_be_visible()
        expect(out.get_by_role("status").filter(has_text="1 of 2 are on.")).to_be_visible()

        # What stands still is there too.
        out.get_by_text("The same without moving anything").first.click()
        expect(out.get_by_role("img", name="factor: 1. The second bar")).to_be_visible()
        found = violations(page, ".jp-OutputArea-output.jp-RenderedHTMLCommon")
        assert not found, "\n".join(found)
        assert not browser.asked_outside
