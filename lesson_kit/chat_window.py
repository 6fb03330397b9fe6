"""A window to talk to a model: its answer word by word, and a button that stops it.

It opens where a person's page asked for the cell and ipywidgets is installed. Everywhere else (the
build, nbval, a check on the terminal) one sentence says so, and no model is asked.
"""

from __future__ import annotations

import html
import threading
from collections.abc import Callable
from typing import Any

from IPython.display import display

from .cells import asked_by_a_page
from .words import N_, tr

__all__ = ["chat_window"]

#: A message has a ``role``, ``user`` or ``assistant``, and a ``content``.
Message = dict[str, str]

#: Answers the last of the messages. It hands all that it has written so far to its second argument,
#: again and again, and stops where that returns False.
Answer = Callable[[list[Message], Callable[[str], bool]], object]

_NAMES = {"user": N_("You"), "assistant": N_("The model")}


def chat_window(answer: Answer) -> None:
    """Open a window, or say where it opens.

    Args:
        answer: ``answer(messages, say)``; the last message is the user's. ``say(text)`` shows all
            of the answer so far, and returns False once the user wants no more of it. It runs
            beside the notebook, so that other cells can run meanwhile.
    """
    try:
        import ipywidgets
    except ImportError:
        print(tr("To talk here, install ipywidgets and run this cell again."))
        return
    if not asked_by_a_page():
        opens = N_(
            "Run this cell in JupyterLab: a window opens here, and you can talk with the model."
        )
        print(tr(opens))
        return
    display(_Window(answer, ipywidgets).all)


class _Window:
    """The widgets, and what has been said."""

    def __init__(self, answer: Answer, widgets: Any) -> None:
        self.answer = answer
        self.messages: list[Message] = []
        self.wanted = False  # whether more of an answer is
        self.said = widgets.HTML()
        self.line = widgets.Text(placeholder=tr("Say something, and press Enter"))
        self.line.layout.width = "60%"
        self.send = widgets.Button(description=tr("Send"), button_style="primary")
        self.stop = widgets.Button(description=tr("Stop"), disabled=True)
        self.anew = widgets.Button(description=tr("Begin anew"))
        self.line.on_msg(lambda _widget, content, _buffers: self._asked(content.get("event")))
        self.send.on_click(lambda _: self._asked("submit"))
        self.stop.on_click(lambda _: self._end())
        self.anew.on_click(lambda _: self._forget())
        below = widgets.HBox([self.line, self.send, self.stop, self.anew])
        self.all = widgets.VBox([self.said, below])

    def _asked(self, event: str | None) -> None:
        text = self.line.value.strip()
        if event != "submit" or not text or self.send.disabled:
            return
        self.line.value = ""
        self.messages.append({"role": "user", "content": text})
        self._busy(True)
        threading.Thread(target=self._reply, args=(self.messages,), daemon=True).start()

    def _reply(self, messages: list[Message]) -> None:
        asked = [dict(message) for message in messages]
        new = {"role": "assistant", "content": ""}
        messages.append(new)

        def say(text: str) -> bool:
            new["content"] = text
            self._show()
            return self.wanted and messages is self.messages

        try:
            say("")
            self.answer(asked, say)
        except Exception as error:  # the window stays, and says what went wrong
            stopped = tr("stopped: {error}", error=f"{type(error).__name__}: {error}")
            say(f"{new['content']} [{stopped}]".strip())
        finally:
            if messages is self.messages:
                self._busy(False)

    def _busy(self, busy: bool) -> None:
        self.wanted = busy
        self.send.disabled, self.stop.disabled = busy, not busy
        self._show()

    def _end(self) -> None:
        self.wanted = False

    def _forget(self) -> None:
        self.messages = []
        self._busy(False)

    def _show(self) -> None:
        lines = (
            f"<p style='white-space: pre-wrap'><b>{tr(_NAMES[message['role']])}:</b> "
            f"{html.escape(message['content'] or '...')}</p>"
            for message in self.messages
        )
        # The newest line stays in view: laid out from below, the page scrolls by itself.
        self.said.value = (
            "<div style='max-height: 24em; overflow-y: auto; display: flex; "
            "flex-direction: column-reverse' tabindex='0'>"
            f"<div role='log' aria-live='polite'>{''.join(lines)}</div></div>"
        )
