"""Short answers: each choice gets its own reason, and the file gives none of them away.

A released lesson holds, for each choice, a fingerprint and a sealed reply that only giving that
answer opens. Whoever tries all choices opens all; a class may therefore be handed the choices
alone, without fingerprints and replies.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b85decode, b85encode
from typing import Any

import numpy as np

from . import setting
from .failures import CheckFailed
from .setting import beside_notebook
from .shown import show_pass
from .words import N_, tr

__all__ = ["check_answer"]

#: The key in the file beside a notebook of what is known of the short answers. The tester gives
#: ``check_answer`` its own copy.
ANSWERS = "answers"

#: A choice as the text may print it: ``c)``, ``(c)``, ``c.``
_LETTER = re.compile(r"\(?([a-z])[).]?")


def _canonical_answer(value: Any) -> str:
    """One spelling for all answers that mean the same."""
    if isinstance(value, str):
        letter = _LETTER.fullmatch(value.strip().lower())
        return letter[1] if letter else value.strip().lower()
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, float, np.number)):
        return f"{float(value):.6g}"
    if isinstance(value, (set, frozenset, list, tuple)):
        return ",".join(sorted(str(item).strip().lower() for item in value))
    return f"?{type(value).__name__}"


def _sealing_bytes(purpose: str, exercise: str, value: Any, length: int) -> bytes:
    text = f"{purpose}|{exercise}|{_canonical_answer(value)}"
    return hashlib.shake_256(text.encode()).digest(length)


def seal_reply(exercise: str, value: Any, right: bool, reason: str) -> tuple[str, str]:
    """What a released lesson holds about one choice: a fingerprint and a sealed reply.

    The reply can be read by whoever gives that answer, and not by looking at the file.
    """
    reply = ("+" if right else "-").encode() + reason.encode()
    stream = _sealing_bytes("reply", exercise, value, len(reply))
    sealed = b85encode(bytes(byte ^ key for byte, key in zip(reply, stream))).decode()
    return _sealing_bytes("fingerprint", exercise, value, 10).hex(), sealed


def _open_reply(exercise: str, value: Any, sealed: str) -> tuple[bool, str]:
    former = re.fullmatch("[0-9a-f]*", sealed)  # earlier versions wrote digits alone
    data = bytes.fromhex(sealed) if former else b85decode(sealed)
    stream = _sealing_bytes("reply", exercise, value, len(data))
    reply = bytes(byte ^ key for byte, key in zip(data, stream)).decode()
    return reply[0] == "+", reply[1:]


def check_answer(exercise: str, value: Any) -> None:
    """Check a short answer; a wrong choice is answered with the reason it is wrong.

    Raises:
        NotImplementedError: the answer is still ``None``.
        CheckFailed: with the reason.
    """
    if value is None:
        still = N_("{exercise} is still None: put your choice there.")
        raise NotImplementedError(tr(still, exercise=exercise))
    answers = setting.now.answers
    if answers is None:
        answers = beside_notebook()[ANSWERS]
    known: dict[str, Any] = answers[exercise]
    if "replies" not in known:  # this class is told when it is graded
        if _canonical_answer(value) not in map(_canonical_answer, known["choices"]):
            raise _no_choice(exercise, value, known)
        noted = N_("{exercise}: noted. You learn when it is graded whether it is right.")
        show_pass(tr(noted, exercise=exercise), right=False)
        return
    sealed = known["replies"].get(_sealing_bytes("fingerprint", exercise, value, 10).hex())
    if sealed is None:
        raise _no_choice(exercise, value, known)
    right, reason = _open_reply(exercise, value, sealed)
    given = {"exercise": exercise, "value": repr(value), "reason": reason}
    if not right:
        raise CheckFailed(tr("{exercise} = {value} is not it. {reason}", **given))
    show_pass(tr("{exercise}: right. {reason}", **given))


def _no_choice(exercise: str, value: Any, known: dict[str, Any]) -> CheckFailed:
    none = N_("{exercise} = {value} is none of the choices: {choices}.")
    return CheckFailed(tr(none, exercise=exercise, value=repr(value), choices=known["choices"]))
