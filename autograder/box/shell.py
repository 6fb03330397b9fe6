"""The shell that runs a notebook's cells in a box: IPython's, with the magics of a kernel."""

from __future__ import annotations

import ast
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

    def transform_cell(self, raw_cell: str) -> str:
        """Magics as Python; IPython reads every token for it, which plain Python does not need."""
        if is_plain_python(raw_cell):
            return raw_cell if raw_cell.endswith("\n") else f"{raw_cell}\n"
        transformed: Any = super().transform_cell
        return str(transformed(raw_cell))


def is_plain_python(source: str) -> bool:
    """Whether IPython would run a cell as it is written."""
    if source.lstrip().startswith("In ["):  # a prompt that was copied, and also Python
        return False
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def shell(config: Config) -> Any:
    """The one shell of this process; ``%config InlineBackend`` is known to it."""
    made: Any = BoxShell.instance(config=config)
    made.configurables.append(InlineBackend.instance(parent=made, shell=made))
    return made
