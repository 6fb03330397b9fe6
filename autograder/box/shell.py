"""The shell that runs a notebook's cells in a box: IPython's, with the magics of a kernel."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from matplotlib_inline.config import InlineBackend
from traitlets.config import Config


class BoxShell(InteractiveShell):
    """There is no window and no front end: where to draw is accepted and changes nothing."""

    def enable_gui(self, gui: str | None = None) -> None:
        """``%gui``: nothing to do."""

    def enable_matplotlib(self, gui: str | None = None) -> tuple[str | None, str]:
        """``%matplotlib inline``, ``widget`` and the like: figures are drawn in memory."""
        return gui, "agg"


def shell(config: Config) -> Any:
    """The one shell of this process; ``%config InlineBackend`` is known to it."""
    made: Any = BoxShell.instance(config=config)
    made.configurables.append(InlineBackend.instance(parent=made, shell=made))
    return made
