"""Which parts of earlier lessons a notebook uses: the student's own, or the course's, and why.

A part of the student's package is tried on its own check first, on two inputs. One that raises, or
gives other numbers, is set aside, and so in what builds on it. Where there is no package, as
wherever work is graded, the course's parts are used, and nothing is said.
"""

from __future__ import annotations

import contextlib
import dis
import importlib
import importlib.util
import io
import random
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from .course_progress import lesson_notebooks, progress_of
from .own_frame import kept_parts
from .own_package import Place, module_of, place
from .words import N_, tr

__all__ = ["chosen", "set_aside"]

#: A check's inputs: those of the notebook, and others.
_SEEDS = (2017, 2018)

#: Characters of what a check says that are said again.
_LONGEST = 300

_last: tuple[object, dict[str, Any]] = (None, {})
_aside: dict[str, str] = {}


def set_aside() -> dict[str, str]:
    """Which of the student's parts this notebook does not use, although it could; and why."""
    return dict(_aside)


def chosen(course: ModuleType) -> dict[str, Any]:
    """The student's parts among those that a lesson takes over; once for each run of a cell, which
    says what was chosen.

    Args:
        course: the parts as the course solves them; ``__all__`` names those that are asked for.
    """
    global _last
    here = place()
    if here is None or not hasattr(course, "__all__"):
        return {}
    run = sys.modules["IPython"].get_ipython().execution_count, here
    if _last[0] != run:
        with _nothing_left_behind():
            own, aside = _chosen(here, course)
        _last = run, own
        _aside.clear()
        _aside.update(aside)
        print(_said(here, course.__all__, own, aside))
    return _last[1]


def _chosen(here: Place, course: ModuleType) -> tuple[dict[str, Any], dict[str, str]]:
    """Own parts that can be used; and why others cannot."""
    kept = kept_parts(here.package) if here.package.is_dir() else {}
    asked = _with_what_they_use([name for name in course.__all__ if name in kept], kept)
    if not asked:
        return {}, {}
    package = _load(here.package)
    for name in here.parts:
        if name not in kept and hasattr(course, name):
            setattr(package, name, getattr(course, name))
    own: dict[str, Any] = {}
    aside: dict[str, str] = {}
    for name in (name for name in here.parts if name in asked):
        try:
            part = getattr(importlib.import_module(f"{here.name}.{kept[name][0]}"), name)
            with _with_all_that_is_used(part, getattr(course, name, None)):
                _try(here.name, name, kept[name][0])
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            aside[name] = _why(error)
            _use_instead(here.name, name, getattr(course, name, None))
        else:
            own[name] = part
    return {name: part for name, part in own.items() if name in course.__all__}, aside


def _with_what_they_use(names: list[str], kept: dict[str, tuple[str, str]]) -> set[str]:
    used, waiting = set(names), list(names)
    while waiting:
        words = set(re.findall(r"\w+", kept[waiting.pop()][1]))
        new = words & set(kept) - used
        used |= new
        waiting.extend(new)
    return used


def _load(folder: Path) -> ModuleType:
    """The package as it is now, whatever was loaded before."""
    for module in _modules_of(folder.name):
        del sys.modules[module.__name__]
    importlib.invalidate_caches()
    spec = importlib.util.spec_from_file_location(
        folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = package
    with contextlib.suppress(Exception):  # edited by hand: then no part can be imported
        spec.loader.exec_module(package)
    return package


def _modules_of(package: str) -> list[ModuleType]:
    return [sys.modules[key] for key in list(sys.modules) if key.partition(".")[0] == package]


def _try(package: str, name: str, module: str) -> None:
    """Run the check of a part, which raises where it fails."""
    tests = importlib.import_module(f"{package}.tests.test_{module}")
    checks = importlib.import_module(f"{package}.given.plain_checks")
    for seed in _SEEDS:
        with checks.inputs_of(seed):
            getattr(tests, f"test_{name}")()


class _Unfit(Exception):
    """A part passes its check, and lacks what a lesson uses; the message says what."""


@contextlib.contextmanager
def _with_all_that_is_used(part: Any, course: Any) -> Iterator[None]:
    """Refuse a class whose objects, as they are made in the block, lack an attribute that the
    course's have and this notebook speaks of: the check of a part does not ask for all that later
    lessons use."""
    if not (isinstance(part, type) and isinstance(course, type) and "__init__" in vars(part)):
        yield
        return
    text = " ".join(path.read_text("utf-8", "replace") for path in Path.cwd().glob("*.ipynb"))
    steps = dis.get_instructions(vars(course).get("__init__", object.__init__))
    sets = {str(step.argval) for step in steps if step.opname == "STORE_ATTR"}
    used = {name for name in sets if re.search(rf"\w\.{name}\b", text)}
    begin = vars(part)["__init__"]

    def watched(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        used.difference_update([name for name in used if hasattr(self, name)])
        made.append(self.__class__)

    made: list[type] = []
    part.__init__ = watched  # type: ignore[misc]
    try:
        yield
    finally:
        part.__init__ = begin  # type: ignore[misc]
    if made and used:
        raise _Unfit(tr("it has no `{name}`, which this lesson uses.", name=min(used)))


def _use_instead(package: str, name: str, course: Any) -> None:
    """Let what builds on a part use the course's."""
    for module in _modules_of(package):
        if course is not None and (module.__name__ == package or name in vars(module)):
            setattr(module, name, course)


def _why(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        unread = N_("its file cannot be read ({why}, line {line}).")
        return tr(unread, why=error.msg, line=error.lineno)
    text = " ".join(str(error).split())
    if isinstance(error, _Unfit):
        return text
    ends = re.match(rf".{{1,{_LONGEST}}}?[.?!](?=\s|$)", text)
    first = ends[0] if ends else textwrap.shorten(text, _LONGEST, placeholder=" …")
    if isinstance(error, AssertionError):
        return tr('its check does not pass, which says: "{first}"', first=first)
    stops = tr("its check stops with {kind}", kind=type(error).__name__)
    return stops + (f', "{first}"' if first else ".")


def _said(here: Place, names: list[str], own: dict[str, Any], aside: dict[str, str]) -> str:
    """One line, and a sentence for each part that was set aside."""
    yours = ", ".join(name for name in names if name in own) or tr("none")
    others = [name for name in names if name not in own]
    of_lesson: dict[str, list[str]] = {}
    for name in others:
        why = tr("set aside") if name in aside else _not_kept(here, name)
        of_lesson.setdefault(why, []).append(name)
    groups = [f"{', '.join(names)} ({why})" for why, names in of_lesson.items()]
    parts = N_("Parts of earlier lessons: yours: {yours}; the course's: {others}.")
    lines = [tr(parts, yours=yours, others=", ".join(groups) or tr("none"))]
    for name, why in aside.items():
        where = f"{here.name}/{module_of(here.parts[name])}.py"
        lines.append(
            tr("Your {name} ({where}) is set aside here: {why}", name=name, where=where, why=why)
        )
    return "\n".join(lines)


def _not_kept(here: Place, name: str) -> str:
    """Why a part is not in the package."""
    folder = here.parts.get(name, "")
    notebooks = [path for path in lesson_notebooks(here.course) if path.parent.name == folder]
    progress = progress_of(notebooks[0]) if notebooks else None
    if progress is None or progress.problem or name in progress.untouched:
        return tr("not begun")
    if name in [left for left, *_ in progress.left]:
        return tr("its check does not pass yet")
    return tr("not kept: run its check once more")


@contextlib.contextmanager
def _nothing_left_behind() -> Iterator[None]:
    """Keep random numbers, figures and what is printed as they are."""
    import numpy as np
    import torch

    state = random.getstate()
    numbers = np.random.get_state()
    plots = sys.modules.get("matplotlib.pyplot")
    figures = set(plots.get_fignums()) if plots else set[int]()
    with (
        torch.random.fork_rng(devices=[]),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            random.setstate(state)
            np.random.set_state(numbers)
            plots = sys.modules.get("matplotlib.pyplot")
            if plots:
                for number in set(plots.get_fignums()) - figures:
                    plots.close(number)
