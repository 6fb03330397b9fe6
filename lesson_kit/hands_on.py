"""A picture that answers to the hand: a slider or switches over a function that draws.

Where a person's page asked for the cell and ipywidgets is installed, the picture moves, and what it
looks like without moving is folded below it. Everywhere else (the build, nbval, a check on the
terminal, a machine without ipywidgets) that still picture is all there is, so that a notebook run
twice by a program has the same outputs: the identity of a widget is random.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown, display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .cells import asked_by_a_page
from .figures import WIDEST, as_image, show
from .words import said, tr

__all__ = ["slider", "switches"]

#: Draws one setting into axes, and returns in a sentence what is to be seen there.
Draw = Callable[[Axes, Any], str]

#: Settings that are drawn where nothing moves; by a name, where that says more than the setting.
Pictures = Sequence[Any] | Mapping[str, Any]


def slider(
    draw: Draw,
    label: str,
    settings: Sequence[Any],
    *,
    pictures: Pictures,
    caption: str,
    size: tuple[float, float] = (4.6, 3.4),
    polar: bool = False,
) -> None:
    """Show a picture with a slider; without one, pictures of a few of its settings.

    The slider stands at the first of ``pictures`` when it is shown.

    Args:
        draw: ``draw(axes, setting)`` draws, and returns what is to be seen, in a sentence.
        label: of the slider.
        settings: what it can be set to, in order.
        pictures: the settings that are drawn where nothing moves, side by side.
        caption: what to try and to look at, in a sentence or two.
        size: of one picture, in inches.
        polar: whether the axes are those of angles.
    """
    _shown(_Panel(draw, size, polar), _Slider(label, settings), pictures, caption)


def switches(
    draw: Draw,
    label: str,
    names: Sequence[str],
    *,
    rows: Sequence[str] = (),
    pictures: Pictures,
    caption: str,
    size: tuple[float, float] = (4.6, 3.4),
) -> None:
    """Show a picture with switches; without them, pictures of a few of their positions.

    They are as in the first of ``pictures`` when they are shown.

    Args:
        draw: ``draw(axes, on)`` draws; ``on`` is an array of bool, one a switch. It returns what
            is to be seen, in a sentence.
        label: of all switches together.
        names: of the switches.
        rows: one name for each row of switches; ``on`` is then (len(rows), len(names)).
        pictures: positions of the switches that are drawn where nothing moves, by a name if that
            says more.
        caption: what to try and to look at, in a sentence or two.
        size: of one picture, in inches.
    """
    _shown(_Panel(draw, size), _Switches(label, names, rows), pictures, caption)


class _Slider:
    """What a slider adds: its words for a setting, and its widgets."""

    def __init__(self, label: str, settings: Sequence[Any]) -> None:
        self._label, self._settings = label, list(settings)

    def words(self, setting: Any) -> str:
        return f"{self._label}: {setting}"

    def widgets(self, begin: Any, moved: Callable[[Any], None]) -> Any:
        import ipywidgets

        def changed(change: Any) -> None:
            moved(change["new"])

        made = ipywidgets.SelectionSlider(
            options=[(str(one), one) for one in self._settings],
            value=begin,
            description=self._label,
            style={"description_width": "initial"},
            layout={"width": "min(100%, 36em)"},
        )
        made.observe(changed, "value")
        return made


class _Switches:
    """What switches add: their words for a position, and their widgets."""

    def __init__(self, label: str, names: Sequence[str], rows: Sequence[str]) -> None:
        self._label, self._names, self._rows = label, list(names), list(rows)

    def words(self, on: Any) -> str:
        positions = np.asarray(on, dtype=bool)
        if not self._rows:
            return f"{self._label}: {self._listed(positions)}"
        return "; ".join(f"{row}: {self._listed(line)}" for row, line in zip(self._rows, positions))

    def _listed(self, on: np.ndarray) -> str:
        return ", ".join(name for name, one in zip(self._names, on) if one) or "none"

    def widgets(self, begin: Any, moved: Callable[[Any], None]) -> Any:
        import ipywidgets

        positions = np.atleast_2d(np.asarray(begin, dtype=bool))
        boxes = [
            [
                ipywidgets.Checkbox(
                    value=bool(one),
                    description=name,
                    tooltip=f"{row}: {name}" if row else name,
                    indent=False,
                    layout={"width": "auto", "margin": "0 1em 0 0"},
                )
                for name, one in zip(self._names, line)
            ]
            for row, line in zip(self._rows or [""], positions)
        ]

        def changed(_: Any) -> None:
            on = np.array([[one.value for one in line] for line in boxes])
            moved(on if self._rows else on[0])

        for line in boxes:
            for one in line:
                one.observe(changed, "value")
        lines = [
            ipywidgets.HBox(
                [ipywidgets.Label(row, layout={"width": "8em"}), *line] if row else line,
                layout={"flex_flow": "row wrap"},
            )
            for row, line in zip(self._rows or [""], boxes)
        ]
        return ipywidgets.VBox([ipywidgets.Label(self._label), *lines])


@dataclass(frozen=True)
class _Panel:
    """What is drawn, and how large."""

    draw: Draw
    size: tuple[float, float]
    polar: bool = False

    def side_by_side(self, settings: Sequence[Any], names: Sequence[str]) -> tuple[Figure, str]:
        """A figure with one panel a setting, in one line, and what is to be seen there."""
        figure, panels = plt.subplots(
            1,
            len(settings),
            figsize=(min(self.size[0] * len(settings), WIDEST), self.size[1]),
            layout="constrained",
            squeeze=False,
            subplot_kw={"polar": self.polar},
        )
        seen = []
        for axes, setting, name in zip(panels[0], settings, names):
            seen.append(f"{name}. {said(self.draw(axes, setting))}")
            if not axes.get_title():
                axes.set_title(name, wrap=True)
        return figure, " ".join(seen)

    def alone(self, setting: Any, name: str) -> str:
        """The picture of one setting as HTML, and what is to be seen, which is read aloud."""
        figure, axes = plt.subplots(
            figsize=self.size, layout="constrained", subplot_kw={"polar": self.polar}
        )
        try:
            seen = said(self.draw(axes, setting))
        except Exception as error:  # nobody sees a traceback of what a widget calls
            plt.close(figure)
            what = html.escape(f"{type(error).__name__}: {error}")
            told = tr("{name} could not be drawn.", name=name)
            return f'<p role="status">{html.escape(told)} {what}</p>'
        return f'{as_image(figure, name)}<p role="status">{html.escape(seen)}</p>'


def _shown(panel: _Panel, control: _Slider | _Switches, pictures: Pictures, caption: str) -> None:
    if isinstance(pictures, Mapping):
        names, settings = list(pictures), list(pictures.values())
    else:
        names, settings = [control.words(one) for one in pictures], list(pictures)
    figure, alt = panel.side_by_side(settings, names)
    if not _can_move():
        show(figure, caption, alt)
        return

    import ipywidgets

    still = as_image(figure, alt)
    moving = ipywidgets.HTML()
    kept: dict[str, str] = {}

    def moved(setting: Any) -> None:
        name = control.words(setting)
        if name not in kept:
            kept[name] = panel.alone(setting, name)
        moving.value = kept[name]

    moved(settings[0])
    display(ipywidgets.VBox([control.widgets(settings[0], moved), moving]))
    display(Markdown(f"*{html.escape(said(caption), quote=False)}*"))
    folded = (
        f"<details><summary>{tr('The same without moving anything')}</summary>\n\n"
        f"{still}<p>{html.escape(alt)}</p></details>"
    )
    display({"text/html": folded, "text/plain": alt}, raw=True)


def _can_move() -> bool:
    """Whether a page is there that shows widgets, as far as this side can know."""
    if not asked_by_a_page():
        return False
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True
