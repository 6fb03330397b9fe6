"""A class and its students at nbgrader's exchange, a folder of one machine."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from jupyter_core.application import NoStart
from nbgrader.apps import NbGraderApp

from autograder.cli.main import main

from ..classes import LESSON, new
from ..conftest import ROOT
from ..hand_outs import type_in
from ..submissions import boxes

#: As docs/hub.md has them.
PAGE = (ROOT / "docs" / "hub.md").read_text(encoding="utf-8")
SETTINGS = dedent(next(text for text in PAGE.split("```") if "c.Exchange.root" in text))
RIGHT = {
    "double": "def double(x):\n    if (x < 0).any():\n        raise ValueError\n    return 2 * x\n",
    "quadruple": "def quadruple(x):\n    return 4 * x\n",
    "answer_size": 'answer_size = "b"',
}


class Term:
    """A class, an exchange, and people at one machine, each in a home of their own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = new(root)
        self._root, self._patch = root, monkeypatch
        self.exchange = root / "exchange"
        self.exchange.mkdir()
        self.exchange.chmod(0o777)
        config = root / "etc" / "nbgrader_config.py"
        config.parent.mkdir()
        text = SETTINGS.replace("/srv/nbgrader/exchange", str(self.exchange))
        config.write_text(text.replace("spring-class", self.folder.root.name))

    def home(self, who: str) -> Path:
        place = self._root / who
        place.mkdir(exist_ok=True)
        return place

    def nbgrader(self, who: str, *words: str) -> None:
        """The command, as this person: the instructor in the class, a student at home."""
        home = self.folder.root if who == "instructor" else self.home(who)
        self._patch.chdir(home)
        self._patch.setenv("JUPYTERHUB_USER", who)
        self._patch.setenv("JUPYTER_DATA_DIR", str(self._root / "data" / who))
        self._patch.setenv("JUPYTER_CONFIG_PATH", str(self._root / "etc"))
        app = NbGraderApp.instance()
        try:
            app.initialize(list(words))
            app.start()
        except NoStart:  # how an application of Jupyter ends that has run another
            pass
        except SystemExit as ended:
            assert not ended.code, f"nbgrader {' '.join(words)}: status {ended.code}"
        finally:
            for one in (app.subapp, app):
                if one is not None:
                    type(one).clear_instance()

    def submit(self, who: str, answers: dict[str, str]) -> None:
        self.nbgrader(who, "fetch_assignment", LESSON)
        type_in(self.home(who) / LESSON / "tiny.ipynb", **answers)
        self.nbgrader(who, "submit", LESSON)

    def grade(self) -> None:
        root = str(self.folder.root)
        assert main(["grade", root, "--workers", "1", "--quiet", "--sandbox", boxes().backend]) == 0

    def page(self, who: str) -> str:
        """The feedback that somebody fetches."""
        self.nbgrader(who, "fetch_feedback", LESSON)
        (page,) = (self.home(who) / LESSON / "feedback").rglob("tiny.html")
        return page.read_text(encoding="utf-8")
