"""The LMSs there are: one object each, which a distribution names as an entry point.

    [project.entry-points."autograder.lms"]
    blackboard = "my_package.blackboard:BLACKBOARD"

Those of this distribution are named so too, in pyproject.toml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from autograder.errors import WrongUse
from autograder.lms.layouts import GRADESCOPE, PLAIN, Layout

if TYPE_CHECKING:
    from autograder.classroom.folder import ClassFolder
    from autograder.lms.export import Export
    from autograder.lms.student_standings import StudentStanding

#: The entry points that name an LMS.
GROUP = "autograder.lms"


class Fill(Protocol):
    """Writes a class's grades as one LMS takes them."""

    def __call__(
        self,
        folder: ClassFolder,
        standings: list[StudentStanding],
        template: Path | None,
        columns: Mapping[str, str],
    ) -> Export:
        """The table, a template of the LMS filled where there is one.

        Raises:
            ExportError: it cannot be written so; the message says what to do.
        """


@dataclass(frozen=True)
class System:
    """An LMS.

    Attributes:
        name: what ``--layout`` and ``--to`` call it.
        pattern: of the path of a file in its archives, with groups as in :mod:`.layouts`; None
            where it makes no archives.
        fill: writes its table of grades; None where it takes none.
    """

    name: str
    pattern: re.Pattern[str] | None = None
    fill: Fill | None = None


#: Its archives say who handed in what in a file of their own; it takes grades as ``--to csv``.
GRADESCOPE_SYSTEM = System("gradescope", GRADESCOPE)


def systems() -> dict[str, System]:
    """Every LMS that is installed, by its name.

    Raises:
        WrongUse: an entry point names none, or two have one name.
    """
    known: dict[str, System] = {}
    for point in entry_points(group=GROUP):
        whose = f"the plugin {point.name} ({point.value})"
        try:
            named = point.load()
        except Exception as error:
            says = f"{type(error).__name__}: {error}"
            raise WrongUse(f"{whose} cannot be loaded: {says}; mend or uninstall it") from error
        if not isinstance(named, System):
            raise WrongUse(f"{whose} names no autograder.lms.systems.System; mend or uninstall it")
        if known.setdefault(named.name, named) is not named:
            raise WrongUse(f"{whose} brings a second {named.name}; uninstall one of the two")
    return known


def layouts() -> dict[str, Layout]:
    """The ways of naming files, nbgrader's own folders last."""
    known = {lms.name: Layout(lms.name, lms.pattern) for lms in systems().values() if lms.pattern}
    return known | {"plain": Layout("plain", PLAIN)}
