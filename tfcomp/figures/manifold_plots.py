"""Manifolds: activations of every stage in two dimensions (figure 9b)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import Factor
from tfcomp.figures import layout
from tfcomp.figures.cells import OUTLINE_COLOR, OUTLINE_LABEL

PANEL_SIZE = 2.3  # inches
MAX_COLUMNS = 6
# The ends of the cyclic colors are nearly white.
_EDGES: dict[str, Any] = {"linewidths": 0.25, "edgecolors": "0.3"}


def draw_manifolds(
    embeddings: Mapping[str, ArrayLike],
    factors: ArrayLike,
    is_ood: ArrayLike,
    *,
    space: Sequence[Factor],
    title: str = "",
) -> Figure:
    """Draws every stage: one factor as a curve, several as colored points.

    Several factors have a block of panels each, in which the same points have
    the colors of that factor, cyclic ones if it is periodic.

    Args:
        embeddings: Name of a stage to the places of its points, `[n, 2]`;
            points that are not finite, as in a dead stage, are left out.
        factors: Factor values of the points, `[n, F]`; of one factor rising.
        is_ood: Whether each point lies in the held-out region, `[n]`: the
            steps of a curve to and from it are underlaid, points are diamonds.
        space: The factors. The curve of a periodic one is closed.
    """
    places = {name: np.asarray(e, float) for name, e in embeddings.items()}
    factors, is_ood = np.asarray(factors, float), np.asarray(is_ood, bool)
    rows, columns = layout.arrange_panels(len(places), MAX_COLUMNS)
    shape = rows * len(space), columns
    # The additions make room for color bars and titles.
    size = columns * PANEL_SIZE + 1.2, shape[0] * (PANEL_SIZE + 0.1) + 0.8
    figure, grid = layout.make_panels(shape, size, pad=0.04)
    for axes in grid.ravel():
        axes.set(xticks=[], yticks=[])
        axes.set_box_aspect(1)
    is_curve = len(space) == 1 and not space[0].categorical
    for i, factor in enumerate(space):
        block = grid[i * rows : (i + 1) * rows]
        panels = layout.keep_panels(block, len(places))
        colors = _make_colors(factors[:, i], factor.periodic)
        shades = colors.to_rgba(factors[:, i])
        for axes, (stage, points) in zip(panels, places.items(), strict=True):
            if is_curve:
                _draw_curve(axes, points, shades, is_ood, factor.periodic)
            else:
                _draw_points(axes, points, shades, is_ood)
            if not np.isfinite(points).any():
                look: dict[str, Any] = {"ha": "center", "va": "center"}
                look["transform"] = axes.transAxes
                axes.text(0.5, 0.5, "no variance", **look)
            if i == 0:
                layout.add_panel_title(axes, stage, PANEL_SIZE)
        bar = figure.colorbar(colors, ax=panels, label=factor.label, pad=0.01)
        if factor.names:
            bar.set_ticks(factor.values().tolist(), labels=factor.names)
    layout.finish_figure(figure, title)
    return figure


def _make_colors(values: np.ndarray, periodic: bool) -> ScalarMappable:
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0, 1)
    if periodic and finite.size > 1:
        # The value after the last one is the first one again.
        high += (high - low) / (len(np.unique(finite)) - 1)
    cmap = "twilight" if periodic else "viridis"
    return ScalarMappable(Normalize(low, high), cmap)


def _draw_points(
    axes: Axes, points: np.ndarray, shades: np.ndarray, is_ood: np.ndarray
) -> None:
    for label, rows, marker, size in (
        ("training region", ~is_ood, "o", 6),
        (OUTLINE_LABEL, is_ood, "D", 18),
    ):
        look: dict[str, Any] = {"marker": marker, "s": size, **_EDGES}
        if rows.any():
            x, y = points[rows].T
            axes.scatter(x, y, c=shades[rows], **look)
            # The legend has a color that stands for no value.
            axes.scatter([], [], facecolor="0.6", label=label, **look)


def _draw_curve(
    axes: Axes,
    points: np.ndarray,
    shades: np.ndarray,
    is_ood: np.ndarray,
    periodic: bool,
) -> None:
    after = np.roll(points, -1, axis=0)
    steps = np.stack([points, after], axis=1)  # [n, 2 ends, 2]
    touches = is_ood | np.roll(is_ood, -1)
    if not periodic:
        steps, touches = steps[:-1], touches[:-1]
    if touches.any():
        look: dict[str, Any] = {
            "linewidths": 7,
            "alpha": 0.35,
            "capstyle": "round",
        }
        look |= {"colors": OUTLINE_COLOR, "label": OUTLINE_LABEL}
        axes.add_collection(LineCollection(list(steps[touches]), **look))
    axes.add_collection(
        LineCollection(list(steps), colors="0.45", linewidths=0.8)
    )
    x, y = points.T
    axes.scatter(x, y, c=shades, s=10, zorder=3, **_EDGES)
