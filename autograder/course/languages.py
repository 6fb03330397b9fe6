"""The languages that a class can be held in; a class's settings ask, without reading a lesson."""

from __future__ import annotations

from pathlib import Path

import autograder
from autograder.errors import WrongUse

#: Of what the sources are written in.
ENGLISH = "en"

#: The folder of the catalogues of the engine's words.
ENGINE = Path(autograder.__file__).with_name("languages")


def languages() -> list[str]:
    """The languages of the engine's words, English first."""
    return [ENGLISH, *sorted(path.stem for path in ENGINE.glob("*.po"))]


def ask_for_language(name: object, where: str) -> str:
    """That language.

    Raises:
        WrongUse: there is none of that name; the message begins with ``where`` and lists them.
    """
    if name not in languages():
        raise WrongUse(
            f"{where}: there is no language {name!r}; there are {', '.join(languages())}"
        )
    return str(name)
