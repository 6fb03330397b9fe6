"""A window to talk to a model: what it asks, shows, and stops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from lesson_kit import chat_window
from lesson_kit.chat_window import Answer

#: How long an answer may take here.
SECONDS = 60


class Opened:
    """A window on a page, and a person in front of it."""

    def __init__(self, window: Any) -> None:
        self.said, below = window.children
        self.line, self.send, self.stop, self.anew = below.children

    def say(self, text: str) -> None:
        """Type, press Enter, and wait for the end of the answer."""
        self.type(text)
        self.wait()

    def type(self, text: str) -> None:
        self.line.value = text
        self.line._handle_custom_msg({"event": "submit"}, [])  # as a page says it

    def wait(self) -> None:
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and "_reply" in thread.name:
                thread.join(SECONDS)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], Opened]:
    shown: list[Any] = []
    monkeypatch.setattr(chat_window, "asked_by_a_page", lambda: True)
    monkeypatch.setattr(chat_window, "display", shown.append)

    def open_with(answer: Answer) -> Opened:
        chat_window.chat_window(answer)
        return Opened(shown.pop())

    return open_with


def test_without_a_page_no_model_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    chat_window.chat_window(lambda messages, say: 1 / 0)  # pytest is no page
    assert capsys.readouterr().out.startswith("Run this cell in JupyterLab")


def test_an_answer_comes_word_by_word_and_is_remembered(
    opened: Callable[[Answer], Opened],
) -> None:
    asked, seen = [], []

    def answer(messages: list[dict[str, str]], say: Callable[[str], bool]) -> None:
        asked.append(messages)
        for text in ("Well", "Well <b>", "Well <b> done"):
            assert say(text)
            seen.append(window.said.value)

    window = opened(answer)
    window.say("Hi & ho")
    window.say("More")
    assert window.line.value == ""
    assert "Hi &amp; ho" in seen[0] and "Well</p>" in seen[0] and "Well &lt;b&gt; done" in seen[2]
    hi, well = {"role": "user", "content": "Hi & ho"}, "Well <b> done"
    assert asked == [
        [hi],
        [hi, {"role": "assistant", "content": well}, {"role": "user", "content": "More"}],
    ]
    assert (window.send.disabled, window.stop.disabled) == (False, True)


def test_stop_ends_an_answer_and_blanks_ask_nothing(opened: Callable[[Answer], Opened]) -> None:
    ways = []

    def answer(messages: list[dict[str, str]], say: Callable[[str], bool]) -> None:
        ways.append(say("one"))
        assert window.send.disabled
        window.type("while it answers")  # is not sent
        window.stop.click()
        ways.append(say("one two"))

    window = opened(answer)
    window.say("   ")
    window.line.value = "Count"
    window.send.click()
    window.wait()
    assert ways == [True, False]
    assert "one two" in window.said.value


def test_an_error_is_said_and_the_talk_goes_on(opened: Callable[[Answer], Opened]) -> None:
    def answer(messages: list[dict[str, str]], say: Callable[[str], bool]) -> None:
        say("So far")
        raise ValueError("prompt is empty")

    window = opened(answer)
    window.say("Hi")
    assert "So far [stopped: ValueError: prompt is empty]" in window.said.value
    assert not window.send.disabled


def test_begun_anew_nothing_is_left_of_the_old_talk(opened: Callable[[Answer], Opened]) -> None:
    ways = []

    def answer(messages: list[dict[str, str]], say: Callable[[str], bool]) -> None:
        if len(ways) < 2:
            ways.append(say("old"))
            window.anew.click()
            ways.append(say("older"))
        else:
            ways.append(messages)

    window = opened(answer)
    window.say("First")
    assert "old" not in window.said.value
    window.say("Second")
    assert ways == [True, False, [{"role": "user", "content": "Second"}]]
