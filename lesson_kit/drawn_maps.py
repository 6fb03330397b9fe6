"""What a map of numbers shows, as plain data, whether matplotlib drew it as mesh or as image."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["drawn_map"]


def drawn_map(axes: Any) -> dict[str, Any]:
    """What is on axes: rows from the top, columns from the left.

    Args:
        axes: what should be matplotlib Axes.

    Returns:
        ``returned``: the name of its type, ``Axes`` of any axes; of these ``maps``: how many meshes
        and images; ``labels`` of the vertical and the horizontal axis; and of the first map
        ``numbers (rows, columns)``, ``rows`` and ``columns``: the words at their middles, and
        ``colours``: where 0, 0.25, 0.5 and 1 stand on the colour map.
    """
    from matplotlib.axes import Axes

    if not isinstance(axes, Axes):
        return {"returned": type(axes).__name__}
    figure: Any = axes.figure
    others = [other for other in figure.axes if other is not axes and other.get_visible()]
    for other in others:  # ticks get their words when they are drawn; others' are not looked at
        other.set_visible(False)
    figure.draw_without_rendering()
    for other in others:
        other.set_visible(True)
    maps = [part for part in (*axes.images, *axes.collections) if part.get_array() is not None]
    seen: dict[str, Any] = {"returned": "Axes", "maps": len(maps)}
    seen["labels"] = [axes.get_ylabel(), axes.get_xlabel()]
    for part in maps[:1]:
        numbers = np.ma.filled(np.ma.asarray(part.get_array()).astype(float), np.nan)
        across, down = _edges(part, numbers.shape)
        for name, edges, axis in (("rows", down, axes.yaxis), ("columns", across, axes.xaxis)):
            middles, (first, last) = (edges[1:] + edges[:-1]) / 2, axis.get_view_interval()
            order = np.argsort(middles if (last > first) == (name == "columns") else -middles)
            numbers = numbers[order] if name == "rows" else numbers[:, order]
            seen[name] = _words(axis, middles[order], 0.05 * abs(edges[1] - edges[0]))
        seen["numbers"] = numbers
        colours: Any = part.norm
        seen["colours"] = np.array([float(colours(x)) for x in (0, 0.25, 0.5, 1)])
    return seen


def _edges(part: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Where the columns and the rows of a mesh or an image begin and end."""
    if not hasattr(part, "get_extent"):
        return part.get_coordinates()[0, :, 0], part.get_coordinates()[:, 0, 1]
    left, right, below, above = part.get_extent()
    first, last = (above, below) if part.origin == "upper" else (below, above)
    return np.linspace(left, right, shape[1] + 1), np.linspace(first, last, shape[0] + 1)


def _words(axis: Any, middles: np.ndarray, near: float) -> list[str]:
    """The words of the ticks at some places."""
    labels = [*axis.get_majorticklabels(), *axis.get_minorticklabels()]
    vertical = axis.axis_name == "y"
    ticks = [(label.get_position()[vertical], label.get_text()) for label in labels]
    words = [[word for at, word in ticks if abs(at - middle) < near] for middle in middles]
    return ["".join(dict.fromkeys(several)) for several in words]
